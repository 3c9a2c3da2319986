"""One way to open a token shard: its columns are checked, and errors name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from bpe.errors import BpeError, OutputError
from schemas.packed_shards import packed_shard_schema
from schemas.token_shards import token_shard_schema
from schemas.versions import check_version

__all__ = ["ShardReader", "open_shard", "shard_errors"]

_ID_TYPES = (pa.uint8(), pa.uint16(), pa.uint32())
_REMEDY = "beam-bpe verify tells what is damaged"


@contextmanager
def shard_errors(path: str, remedy: str = _REMEDY) -> Iterator[None]:
    """Raise what is wrong with a file as an `OutputError` that names it and says what to do."""
    try:
        yield
    except BpeError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OutputError(f"{path}: cannot be read as a shard ({error}); {remedy}") from error


class ShardReader:
    """A shard with the columns of `schemas.token_shards`, or of `schemas.packed_shards`.

    Args:
        file: an Arrow file, or its content.
        row_ids: ids in each packed row; None if the shard is not packed.
        id_type: of the tokenizer's ids; None for any.

    Attributes:
        file: the batches, as pyarrow reads them; not validated.
        dtype: of the ids.

    Raises:
        ValueError: the file holds something else; as `shard_errors` takes it.
    """

    def __init__(self, file: Any, row_ids: int | None, id_type: pa.DataType | None = None) -> None:
        self.file = pa.ipc.open_file(file)
        try:
            kind = self.file.schema.field("input_ids").type.value_type
        except (KeyError, AttributeError) as error:
            raise ValueError("it has no lists input_ids") from error
        self.dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        ids = id_type or (kind if kind in _ID_TYPES else pa.uint32())
        schema = token_shard_schema(ids) if row_ids is None else packed_shard_schema(ids, row_ids)
        check_version(self.file.schema, schema)

    def __len__(self) -> int:
        return int(self.file.num_record_batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, valid, and without nulls, which no writer makes."""
        for index in range(len(self)):
            batch = self.file.get_batch(index)
            batch.validate(full=True)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                values = column.flatten() if pa.types.is_nested(column.type) else column
                entries = getattr(values, "dictionary", values)
                if column.null_count or values.null_count or entries.null_count:
                    raise ValueError(f"the column {name} of record batch {index} holds nulls")
            yield batch


@contextmanager
def open_shard(
    path: str,
    row_ids: int | None,
    *,
    id_type: pa.DataType | None = None,
    size: int | None = None,
    remedy: str = _REMEDY,
) -> Iterator[ShardReader]:
    """A shard on any file system; batches are views of the mapped file where it is local.

    Args:
        path: of the file.
        row_ids: as in `ShardReader`.
        id_type: as there.
        size: bytes of the file, to be checked.
        remedy: ends the errors, also those of what is done with the batches.

    Raises:
        OutputError: the file is missing, damaged, or holds something else.
    """
    # Brings Beam, which those who map a file do without.
    from pipelines.storage.output_files import exists, open_for_reading  # noqa: PLC0415

    if not exists(path):
        raise OutputError(f"{path}: is missing; {remedy}")
    with shard_errors(path, remedy), open_for_reading(path) as file:
        if size not in (None, file.size()):
            raise OutputError(f"{path}: has {file.size()} bytes, the manifest {size}")
        yield ShardReader(file, row_ids, id_type)
