"""Encode the units of a finished output again from the input, and compare the bytes.

The same input and settings give the same bytes, so that equal hashes prove all that a shard holds.
What runs is the code of `encode` itself, in a temporary folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from bpe.backends.process_memory import give_back_memory
from bpe.errors import OutputError
from pipelines.corpus.listing.inputs import InputList
from pipelines.corpus.plan import Plan, Unit, make_plan
from pipelines.corpus.read_documents import KEPT_BYTES
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import BAD_FILE, BAD_PART
from pipelines.encoding.encode_documents import encode_unit
from pipelines.encoding.shuffle_buckets import Bucket, plan_buckets, spill_unit, write_bucket
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import input_record
from pipelines.shards.tokenizer_files import cached_tokenizer
from pipelines.shards.write_shards import input_identity
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import MANIFEST, TOKENIZER_FOLDER
from pipelines.storage.output_names import unit_record_name
from pipelines.storage.record_checks import shown_value
from pipelines.verify.verify_ranges import ranges_of_units
from schemas.sidecars import Manifest, ShardSidecar, UnitRecord

__all__ = ["EncodedAgain", "encode_again", "recorded_options"]


@dataclass(frozen=True)
class EncodedAgain:
    """What was encoded again and has the same bytes.

    Attributes:
        units, shards: how many; of a global shuffle whose units were sampled, no shards.
        all_units: how many the output has.
    """

    units: int
    shards: int
    all_units: int


def recorded_options(
    manifest: Manifest, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> ReadOptions:
    """The options that an output was read with.

    Bad rows and files are set aside as they were then.

    Args:
        manifest: of the output.
        include: as in `ReadOptions`; the manifest lists the files that were taken alone.
        exclude: as there.

    Raises:
        SettingsError: the manifest's settings are damaged.
    """
    rejects = manifest.totals.rejects
    had_bad_files = bool(rejects.get(BAD_FILE) or rejects.get(BAD_PART))
    return ReadOptions.from_settings(
        manifest.settings,
        on_bad_record="skip",
        on_bad_file="skip" if had_bad_files else "fail",
        include=tuple(include),
        exclude=tuple(exclude),
    )


def encode_again(
    output: str,
    manifest: Manifest,
    inputs: InputList,
    read: ReadOptions,
    *,
    units: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> EncodedAgain:
    """Encode units of an output again, and compare their shards with those that are there.

    Args:
        output: a finished output.
        manifest: its manifest, checked already (`pipelines.verify.verify_output.verify_output`).
        inputs: what it was made of.
        read: from `recorded_options`.
        units: so many of them, spread over the plan; None for all.
        progress: called with the number of units done so far.

    Raises:
        OutputError: the input is another one, or gives other bytes; names the shard and the field.
        SettingsError: the settings are of another version.
    """
    settings = EncodeSettings.from_dict(manifest.settings, read)
    plan = make_plan(inputs, read)
    _check_inputs(output, manifest, plan)
    # The workers of `encode` take it from the cache by its digest.
    cached_tokenizer(join(output, TOKENIZER_FOLDER), settings.tokenizer_digest)
    chosen = _spread(plan.units, units)
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        again = _Again(output, manifest, settings, plan, folder, progress)
        shards = again.shuffle(chosen) if settings.shuffle == "global" else again.encode(chosen)
    return EncodedAgain(len(chosen), shards, len(plan.units))


def _spread(units: Sequence[Unit], wanted: int | None) -> list[Unit]:
    """So many units, evenly from the first to the last."""
    if wanted is None or wanted >= len(units):
        return list(units)
    last = len(units) - 1
    return [units[index * last // max(1, wanted - 1)] for index in range(wanted)]


def _check_inputs(output: str, manifest: Manifest, plan: Plan) -> None:
    found = {each["path"]: each["identity"] for each in input_record(plan)}
    wanted = {each["path"]: each["identity"] for each in manifest.inputs}
    for path in sorted(found.keys() | wanted.keys()):
        if found.get(path) != wanted.get(path):
            what = (
                "is no input of this output"
                if path not in wanted
                else "is not among the inputs given"
                if path not in found
                else f"is {found[path]}, and was {wanted[path]} when it was encoded"
            )
            raise OutputError(
                f"{path}: {what}; give the --input, --include and --exclude of the encode command, "
                f"with the files as they were then, or leave them out to check {output} without "
                "its input"
            )
    ranges = ranges_of_units(output, manifest)
    for unit in plan.units:
        if ranges.get(unit.index) != input_identity(unit):
            raise OutputError(
                f"{join(output, MANIFEST)}: unit {unit.index} reads other ranges than the plan of "
                "this input has: units are lost or changed"
            )
    if len(ranges) > len(plan.units):
        raise OutputError(
            f"{join(output, MANIFEST)}: has {len(ranges)} units, and the plan of this input has "
            f"{len(plan.units)}"
        )


@dataclass(frozen=True)
class _Again:
    """One comparison of an output with its input."""

    output: str
    manifest: Manifest
    settings: EncodeSettings
    plan: Plan
    folder: str
    progress: Callable[[int], None]

    def encode(self, units: Iterable[Unit]) -> int:
        """Encode units; returns how many shards are the same."""
        return sum(self._run(self._encode_unit, units))

    def shuffle(self, units: Sequence[Unit]) -> int:
        """Spill units, and write the buckets if all of them are there; returns as `encode`."""
        buckets = plan_buckets(self.plan, self.settings)
        self._run(lambda unit: self._spill_unit(unit, len(buckets)), units)
        if len(units) < len(self.plan.units):
            return 0
        known = {shard.unit for shard in self.manifest.shards}
        if known != {bucket.index for bucket in buckets}:
            raise OutputError(
                f"{join(self.output, MANIFEST)}: has {len(known)} buckets, and this input gives "
                f"{len(buckets)}"
            )
        return sum(self._run(self._write_bucket, buckets))

    def _run(self, work: Callable[[Any], int], items: Iterable[Any]) -> list[int]:
        """The results of some work, done by as many threads as there are cores."""
        done = []
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            try:
                for result in threads.map(work, items):
                    done.append(result)
                    self.progress(len(done))
            finally:
                threads.shutdown(cancel_futures=True)
        return done

    def _encode_unit(self, unit: Unit) -> int:
        folder = Path(self.folder, str(unit.index))
        found = encode_unit(str(folder), unit, self.settings)
        shutil.rmtree(folder)
        give_back_memory(keep_bytes=KEPT_BYTES)
        return self._compare(unit.index, found)

    def _spill_unit(self, unit: Unit, buckets: int) -> int:
        data = spill_unit(self.folder, unit, self.settings, buckets)
        give_back_memory(keep_bytes=KEPT_BYTES)
        found = msgspec.json.decode(data, type=UnitRecord)
        place = join(self.output, unit_record_name(unit.index))
        _compare_records(place, self.manifest.units[unit.index], found)
        return 0

    def _write_bucket(self, bucket: Bucket) -> int:
        found = write_bucket(self.folder, bucket, self.settings)
        give_back_memory()
        return self._compare(bucket.index, found)

    def _compare(self, index: int, found: Sequence[bytes]) -> int:
        sidecars = [msgspec.json.decode(data, type=ShardSidecar) for data in found]
        stored = [shard for shard in self.manifest.shards if shard.unit == index]
        if len(sidecars) != len(stored):
            raise OutputError(
                f"{join(self.output, stored[0].file)}: there are {len(stored)} shards of this "
                f"number, and encoding the input again gives {len(sidecars)}"
            )
        for old, new in zip(stored, sidecars, strict=True):
            _compare_records(join(self.output, old.file), old, new)
        return len(stored)


def _compare_records(place: str, stored: Any, found: Any, field: str = "") -> None:
    """Compare two records, field by field."""
    if stored == found:
        return
    if is_dataclass(stored) and type(stored) is type(found):
        for each in fields(stored):
            name = f"{field}.{each.name}" if field else each.name
            _compare_records(place, getattr(stored, each.name), getattr(found, each.name), name)
        return
    raise OutputError(
        f"{place}: {field} is {shown_value(stored)}, and encoding the input again gives "
        f"{shown_value(found)}: the output is not what this input gives"
    )
