"""Check a finished output folder against what it says of itself.

Every file's hash, every shard's columns, counts and ids, the balance of documents, the tokenizer's
golden set; and rows are encoded again from their own decoded text, which must give the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import BpeError, OutputError
from bpe.tokenizer import Tokenizer
from pipelines.manifest import file_sha256, read_manifest
from pipelines.output_files import exists, join, open_for_reading
from pipelines.tokenizer_files import TOKENIZER_FOLDER, load_copy
from schemas.sidecars import Manifest, ShardSidecar
from schemas.token_shards import token_shard_schema
from schemas.versions import check_version

__all__ = ["Verified", "verify_output"]

# Of each shard, the first rows are encoded again, up to so many ids.
_SAMPLE_IDS = 50_000


@dataclass
class Verified:
    """What was checked.

    Attributes:
        shards: files whose hash and content agree with the manifest.
        rows: in all shards.
        tokens: in all shards.
        encoded_again: rows whose ids were made again and agree.
    """

    shards: int = 0
    rows: int = 0
    tokens: int = 0
    encoded_again: int = 0


def verify_output(
    output: str, *, full: bool = False, progress: Callable[[int], None] = lambda _: None
) -> Verified:
    """Check a finished output of `beam-bpe encode`.

    Args:
        output: the folder.
        full: encode every row again, not a sample of each shard.
        progress: called with the number of shards checked so far.

    Raises:
        OutputError: something does not agree; names the file, the row and the values.
        ModelFileError: the tokenizer's copy is damaged or fails its golden set.
    """
    manifest = read_manifest(output)
    tokenizer = load_copy(join(output, TOKENIZER_FOLDER))
    if tokenizer.digest != manifest.tokenizer_digest:
        raise OutputError(
            f"{join(output, TOKENIZER_FOLDER)}: is the tokenizer {tokenizer.digest}, the manifest "
            f"names {manifest.tokenizer_digest}"
        )
    done = Verified()
    for sidecar in manifest.shards:
        check = _ShardCheck(output, manifest, tokenizer, sidecar)
        done.encoded_again += check.run(full=full)
        done.shards += 1
        done.rows += sidecar.rows
        done.tokens += sidecar.tokens
        progress(done.shards)
    for name in ("rows", "tokens"):
        if getattr(done, name) != manifest.totals[name]:
            raise OutputError(
                f"{output}: the shards hold {getattr(done, name)} {name}, the manifest says "
                f"{manifest.totals[name]}"
            )
    return done


class _ShardCheck:
    """Checks one shard."""

    def __init__(
        self, output: str, manifest: Manifest, tokenizer: Tokenizer, sidecar: ShardSidecar
    ) -> None:
        self._path = join(output, sidecar.file)
        self._manifest = manifest
        self._tokenizer = tokenizer
        self._sidecar = sidecar

    def run(self, *, full: bool) -> int:
        """Check hash, schema, counts, ids and a sample; returns the rows encoded again."""
        self._check_file()
        with open_for_reading(self._path) as file:
            reader = pa.ipc.open_file(file)
            try:
                check_version(reader.schema, token_shard_schema(self._tokenizer.max_id))
            except ValueError as error:
                raise self._failure(str(error)) from error
            rows = documents = tokens = again = 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                ids = batch["input_ids"].flatten().to_numpy()
                self._check_ids(ids)
                if full or tokens < _SAMPLE_IDS:
                    again += self._encode_again(batch, rows, full=full)
                rows += batch.num_rows
                documents += batch["is_last"].true_count
                tokens += len(ids)
        found = {"rows": rows, "documents": documents, "tokens": tokens}
        for name, value in found.items():
            if value != getattr(self._sidecar, name):
                raise self._failure(
                    f"holds {value} {name}, the manifest says {getattr(self._sidecar, name)}"
                )
        return again

    def _check_file(self) -> None:
        if not exists(self._path):
            raise self._failure("is missing")
        sha256 = file_sha256(self._path)
        if sha256 != self._sidecar.sha256:
            raise self._failure(
                f"its sha256 is {sha256}, the manifest says {self._sidecar.sha256}: the file was "
                "changed or damaged; remove manifest.json and run the encode command again"
            )

    def _check_ids(self, ids: npt.NDArray[Any]) -> None:
        if len(ids) and int(ids.max()) > self._tokenizer.max_id:
            raise self._failure(
                f"holds id {int(ids.max())}, the tokenizer's largest is {self._tokenizer.max_id}"
            )

    def _encode_again(self, batch: pa.RecordBatch, first_row: int, *, full: bool) -> int:
        """Encode the decoded text of rows that stand for themselves."""
        checked = seen = 0
        for row, ids in _whole_rows(batch, self._manifest):
            if not full and seen > _SAMPLE_IDS:
                break
            policy = "allow" if self._manifest.settings["special_text"] == "allow" else "text"
            try:
                again = self._tokenizer.encode(self._tokenizer.decode(ids), special_text=policy)
            except BpeError as error:
                raise self._failure(f"row {first_row + row}: {error}") from error
            if not np.array_equal(again, ids):
                raise self._failure(
                    f"row {first_row + row} ({batch['document_id'][row]}): encoding its text again "
                    f"gives {len(again)} other ids than the {len(ids)} that are stored"
                )
            checked += 1
            seen += len(ids)
        return checked

    def _failure(self, what: str) -> OutputError:
        return OutputError(f"{self._path}: {what}")


def _whole_rows(
    batch: pa.RecordBatch, manifest: Manifest
) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
    """Rows that hold a whole piece, without BOS and EOS: (row, ids).

    A piece longer than `max_row_tokens` goes over several rows, whose texts cannot be encoded
    alone: such rows are full, or follow a full one.
    """
    cap = manifest.settings["max_row_tokens"]
    bos, eos = manifest.settings["bos"], manifest.settings["eos"]
    parts, lasts = batch["part"].to_pylist(), batch["is_last"].to_pylist()
    # A batch never begins inside a piece.
    after_full = False
    for row in range(batch.num_rows):
        ids = batch["input_ids"][row].values.to_numpy().astype(np.uint32)
        is_full = len(ids) >= cap
        alone = not is_full and not after_full
        after_full = is_full
        if not alone:
            continue
        if bos is not None and parts[row] == 0:
            ids = ids[1:]
        if eos is not None and lasts[row]:
            ids = ids[:-1]
        yield row, ids
