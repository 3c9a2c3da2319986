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


def rewrite_rows(folder: Path, change: Callable[[list[dict[str, Any]]], Any], shard: int) -> None:
    """Change the rows of a shard and make its hash agree, and what it says of its borders."""
    manifest = json.loads((folder / "__beam-bpe__/manifest.json").read_bytes())
    path = folder / manifest["shards"][shard]["file"]
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    rows = table.to_pylist()
    change(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=table.schema))
    path.write_bytes(sink.getvalue())
    names = [name for row in rows for name in row.get("document_ids") or [row["document_id"]]]
    facts = {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "first_document": names[0],
        "last_document": names[-1],
    }
    tamper(folder, lambda record: record["shards"][shard].update(facts))


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
    tables = []
    for path in paths:
        with pa.OSFile(str(path)) as file:
            tables.append(pa.ipc.open_file(file).read_all())
    rows = [table.to_pylist() for table in tables]
    change(rows)
    tokenizer = load_copy(str(folder / TOKENIZER_FOLDER))
    missing = 0
    for path, table, of_shard, shard in zip(paths, tables, rows, manifest["shards"], strict=True):
        facts = ShardFacts()
        batches = pa.Table.from_pylist(of_shard, schema=table.schema).to_batches()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                facts.add(batch)
        path.write_bytes(sink.getvalue())
        ids = [each["input_ids"][: sum(each.get("lengths", [2**31]))] for each in of_shard]
        missing += shard["documents"] - facts.documents
        shard.update(
            vars(facts),
            bytes=sum(len(tokenizer.token_bytes(each)) for row in ids for each in row),
            file_bytes=path.stat().st_size,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
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
