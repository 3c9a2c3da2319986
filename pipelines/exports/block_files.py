"""Files of equal blocks of ids, for formats that know no documents.

The ids run on through the blocks; of packed shards, each row is a block, with its padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.errors import SettingsError
from pipelines.exports.export_folder import ExportFile
from pipelines.exports.protocol import Written
from pipelines.exports.shard_source import ShardSource

__all__ = ["LEFT_OVER", "blocks_written", "check_block_size", "write_block_files"]

LEFT_OVER = "tokens at the end, less than a block"


def check_block_size(source: ShardSource, block_size: int, largest: int) -> None:
    """Check that there is at least one block, and that a file can hold one.

    Raises:
        SettingsError: names the number.
    """
    if source.row_ids not in (None, block_size):
        raise SettingsError(
            f"--block-size {block_size}: the rows of {source.directory} are packed with "
            f"{source.row_ids} ids, and each is a block; give --block-size {source.row_ids}, or "
            "encode without --pack"
        )
    if block_size > largest:
        raise SettingsError(f"--block-size {block_size}: a file holds up to {largest} such ids")
    if source.row_ids is None and source.tokens < block_size:
        raise SettingsError(
            f"--block-size {block_size}: {source.directory} holds {source.tokens} tokens, not "
            "even one block; give a smaller size"
        )


def blocks_written(source: ShardSource, block_size: int) -> Written:
    """What the blocks hold."""
    if source.row_ids is not None:
        return Written(documents=source.documents, tokens=source.tokens)
    left_over = source.tokens % block_size
    return Written(
        documents=source.documents,
        tokens=source.tokens - left_over,
        left_out={LEFT_OVER: left_over},
    )


def _id_ranges(source: ShardSource) -> Iterator[npt.NDArray[Any]]:
    if source.row_ids is None:
        for batch in source.batches():
            yield batch.ids
    else:
        for rows in source.packed_batches():
            yield rows["input_ids"].flatten().to_numpy()


def write_block_files(
    source: ShardSource,
    block_size: int,
    blocks_per_file: int,
    dtype: np.dtype[Any],
    begin: Callable[[int, int], ExportFile],
) -> list[tuple[ExportFile, int]]:
    """Write all whole blocks of the source.

    Args:
        source: the shards.
        block_size: ids in a block.
        blocks_per_file: in each file but the last.
        dtype: of the ids in the files.
        begin: makes the file of a number, and writes what comes before its blocks, whose number is
            the second argument.

    Returns:
        Each file and its blocks.
    """
    left = source.tokens // block_size if source.row_ids is None else source.rows
    files: list[tuple[ExportFile, int]] = []
    room = 0
    for found in _id_ranges(source):
        ids = found
        while len(ids):
            if not room:
                if not left:
                    break
                blocks = min(left, blocks_per_file)
                files.append((begin(len(files), blocks), blocks))
                left -= blocks
                room = blocks * block_size
            part, ids = ids[:room], ids[room:]
            files[-1][0].write_array(part, dtype)
            room -= len(part)
            if not room:
                files[-1][0].close()
    return files
