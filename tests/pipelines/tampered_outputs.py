"""Changes finished outputs so that all hashes and records agree with what was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["rewrite_rows", "tamper"]


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
