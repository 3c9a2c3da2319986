"""Hugging Face `datasets`: a folder that `load_from_disk` maps into memory, a row per document.

    data-00000-of-00002.arrow …   Arrow IPC streams
    dataset_info.json             {}: the column types are those of the Arrow schema
    state.json                    the names of the data files

Columns: `input_ids` list of uint8, uint16 or uint32, `document_id` string, `source` string,
`byte_start` int64, the last two of the document's beginning. Packed rows stay as they are, padding
included, with the columns of `schemas.packed_shards`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bpe.errors import SettingsError
from pipelines.exports.documents import DocumentBatch, whole_documents
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written, longest_document
from pipelines.exports.shard_source import ShardSource

__all__ = ["HfDatasetExport"]

_FILE_BYTES = 500_000_000
# Offsets of Arrow's lists have 31 bits.
_LARGEST_LIST = 2**31 - 1


class HfDatasetExport(Export):
    """Writes one data file after the other; a file closes when it has 500 MB, as theirs do."""

    title = "a Hugging Face dataset"
    dtypes = ("uint8", "uint16", "uint32")
    takes_packed_rows = True
    file_names = re.compile(r"data-\d{5,}-of-\d{5,}\.arrow|dataset_info\.json|state\.json")

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        if source.row_ids is not None:
            return
        longest = longest_document(source, _LARGEST_LIST)
        if longest > _LARGEST_LIST:
            raise SettingsError(
                f"{source.directory}: a document has {longest} ids, and a row of {self.title} "
                f"holds {_LARGEST_LIST}; megatron (int32 lengths too) and hf cannot hold it, npy "
                "and datatrove can"
            )

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the data files and the two descriptions."""
        files: list[ExportFile] = []
        writer: pa.RecordBatchWriter | None = None
        for batch in self._record_batches(source, folder):
            if writer is None:
                files.append(folder.create(f"data-{len(files):05d}"))
                writer = pa.ipc.new_stream(pa.PythonFile(files[-1], mode="w"), batch.schema)
            writer.write_batch(batch)
            if files[-1].size >= _FILE_BYTES:
                writer.close()
                files[-1].close()
                writer = None
        if writer is not None:
            writer.close()
            files[-1].close()
        for index, file in enumerate(files):
            file.name = f"data-{index:05d}-of-{len(files):05d}.arrow"
        _write_json(folder, "dataset_info.json", {})
        _write_json(folder, "state.json", _state([file.name for file in files], source))
        return Written(documents=source.documents, tokens=source.tokens)

    def _record_batches(
        self, source: ShardSource, folder: ExportFolder
    ) -> Iterator[pa.RecordBatch]:
        if source.row_ids is not None:
            yield from map(_plain_sources, source.packed_batches())
            return
        ids = pa.list_(pa.from_numpy_dtype(self.dtype(source)))
        schema = pa.schema(
            [
                pa.field("input_ids", ids, nullable=False),
                pa.field("document_id", pa.string(), nullable=False),
                pa.field("source", pa.string(), nullable=False),
                pa.field("byte_start", pa.int64(), nullable=False),
            ]
        )
        for batch in whole_documents(source.batches(), folder.spool):
            yield _record_batch(batch, schema)


def _record_batch(batch: DocumentBatch, schema: pa.Schema) -> pa.RecordBatch:
    offsets = np.concatenate([[0], np.cumsum(batch.lengths)]).astype(np.int32)
    columns = [
        pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(batch.ids), type=schema.field("input_ids").type
        ),
        batch.labels["document_id"],
        batch.labels["source"].cast(pa.string()),
        batch.labels["byte_start"],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_sources(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Packed rows with `sources` as text: dictionaries may differ from shard to shard."""
    place = batch.schema.get_field_index("sources")
    field = pa.field("sources", pa.list_(pa.string()), nullable=False)
    # Of their own schema's metadata the reader knows nothing.
    schema = batch.schema.set(place, field).remove_metadata()
    columns = batch.columns
    columns[place] = columns[place].cast(field.type)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _state(names: list[str], source: ShardSource) -> dict[str, object]:
    """What `load_from_disk` wants to know; the fingerprint names what a cache is made of."""
    return {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": source.digest[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def _write_json(folder: ExportFolder, name: str, value: object) -> None:
    file = folder.create(name)
    file.write(json.dumps(value, indent=2, sort_keys=True).encode() + b"\n")
    file.close()
