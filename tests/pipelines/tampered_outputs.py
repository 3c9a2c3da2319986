"""Changes finished outputs so that all hashes and records agree with what was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from pipelines.shards.manifest import add_up
from pipelines.shards.shard_files import ShardFacts
from pipelines.shards.tokenizer_files import load_copy
from pipelines.storage.output_layout import MANIFEST, TOKENIZER_FOLDER
from schemas.sidecars import ShardSidecar, UnitRecord

__all__ = ["forge_rows", "rewrite_rows", "seal", "tamper"]


def tamper(folder: Path, change: Callable[[Any], Any]) -> None:
    """Change the manifest, and the records so that they agree with it."""
    path = folder / "__beam-bpe__/manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))
    for shard in manifest["shards"]:
        (folder / f"__beam-bpe__/sidecars/{shard['file']}.json").write_text(json.dumps(shard))
    for unit in manifest["units"]:
        (folder / "__beam-bpe__/units" / f"unit-{unit['unit']:05d}.json").write_text(
            json.dumps(unit)
        )


def _read(path: Path) -> pa.Table:
    # Not mapped: the file is written again.
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> tuple[str, ShardFacts]:
    """Write a shard; returns its hash and the facts of its rows."""
    facts, sink = ShardFacts(), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in pa.Table.from_pylist(rows, schema=schema).to_batches():
            writer.write_batch(batch)
            facts.add(batch)
    path.write_bytes(sink.getvalue())
    return hashlib.sha256(path.read_bytes()).hexdigest(), facts


def rewrite_rows(folder: Path, change: Callable[[list[dict[str, Any]]], Any], shard: int) -> None:
    """Change the rows of a shard and make its hash agree, and what it says of its borders."""
    manifest = json.loads((folder / "__beam-bpe__/manifest.json").read_bytes())
    path = folder / manifest["shards"][shard]["file"]
    table = _read(path)
    rows = table.to_pylist()
    change(rows)
    sha256, facts = _write(path, rows, table.schema)
    borders = {"first_document": facts.first_document, "last_document": facts.last_document}
    tamper(folder, lambda record: record["shards"][shard].update(sha256=sha256, **borders))


def seal(folder: Path) -> None:
    """Make the totals agree with what the manifest says of shards and units."""

    def add_again(manifest: Any) -> None:
        shards = msgspec.convert(manifest["shards"], list[ShardSidecar])
        units = msgspec.convert(manifest["units"], list[UnitRecord])
        manifest["totals"] = msgspec.to_builtins(add_up(shards, units))

    tamper(folder, add_again)


def forge_rows(
    folder: Path, change: Callable[[list[list[dict[str, Any]]]], Any], *, keeps_counts: bool = False
) -> None:
    """Change the rows of all shards, and make every hash, fact and total agree with them."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    paths = [folder / shard["file"] for shard in manifest["shards"]]
    tables = [_read(path) for path in paths]
    rows = [table.to_pylist() for table in tables]
    change(rows)
    tokenizer = load_copy(str(folder / TOKENIZER_FOLDER))
    missing = 0
    for path, table, of_shard, shard in zip(paths, tables, rows, manifest["shards"], strict=True):
        sha256, facts = _write(path, of_shard, table.schema)
        ids = [each["input_ids"][: sum(each.get("lengths", [2**31]))] for each in of_shard]
        missing += shard["documents"] - facts.documents
        shard.update(
            vars(facts),
            bytes=sum(len(tokenizer.token_bytes(each)) for row in ids for each in row),
            file_bytes=path.stat().st_size,
            sha256=sha256,
        )
        if not keeps_counts and shard["unit_totals"] is not None and not manifest["units"]:
            shard["unit_totals"]["documents_in"] -= missing
            missing = 0
    if manifest["units"] and not keeps_counts:
        manifest["units"][0]["totals"]["documents_in"] -= missing

    def replace(found: Any) -> None:
        found.update(manifest)

    tamper(folder, replace)
    seal(folder)
