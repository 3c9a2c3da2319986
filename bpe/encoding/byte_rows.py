"""Tokenizers of bytes: every byte has an id, and nothing is merged.

The models that take bytes number them in one of a few ways, which `BYTE_PRESETS` has by name:
MambaByte (`bytes`; Wang et al. 2024), ByT5 (`byt5`; Xue et al. 2022, as in `transformers`), the
Byte Latent Transformer (`blt`; Pagnoni et al. 2024) and H-Net (`hnet`; Hwang et al. 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.encoding.added_finder import AddedFinder
from bpe.encoding.added_tokens import AddedSearch, AddedToken, Find, Segment
from bpe.encoding.id_arrays import join_id_lists

__all__ = ["BYTE_PRESETS", "ByteEncoder", "BytePreset", "count_reserved", "first_reserved"]


@dataclass(frozen=True)
class BytePreset:
    """How a family of models numbers bytes.

    offset: added to a byte's value. special_tokens: text to id. bos, eos: ids that its models have
    around each document. framing_tokens: further special tokens, for those who ask for them.
    reserved: bytes whose ids mark a document's ends as well; UTF-8 never uses them.
    """

    offset: int = 0
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    bos: int | None = None
    eos: int | None = None
    framing_tokens: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)


BYTE_PRESETS = {
    "bytes": BytePreset(framing_tokens={"<bos>": 256, "<eos>": 257}),
    "byt5": BytePreset(
        offset=3,
        special_tokens={
            "<pad>": 0,
            "</s>": 1,
            "<unk>": 2,
            **{f"<extra_id_{index}>": 259 + index for index in range(125)},
        },
        eos=1,
    ),
    "blt": BytePreset(
        offset=4, special_tokens={"<boe>": 0, "<bos>": 1, "<eos>": 2, "<bpe>": 3}, bos=1, eos=2
    ),
    "hnet": BytePreset(reserved={"bos (byte 254)": 254, "eos (byte 255)": 255}),
}
"""The numberings by name. BLT pads with -1, which no column of ids can hold."""


class ByteEncoder:
    """Bytes to ids; an `Encoder` as the backends have them.

    offset: added to each byte. id_type: of the ids, uint8 or uint16. added: special tokens.
    """

    def __init__(self, offset: int, id_type: pa.DataType, added: tuple[AddedToken, ...]) -> None:
        self._offset = offset
        self._type = id_type
        self._dtype = np.dtype(id_type.to_pandas_dtype())
        self._search = AddedSearch(added)
        self._finder = AddedFinder(added)

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes."""
        ids = self.encode_array(pa.array([data], pa.large_binary()), find=find)
        flat: npt.NDArray[np.uint32] = ids.flatten().to_numpy().astype(np.uint32)
        return flat

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document (no nulls); without an offset, a view of its bytes if ids fit."""
        del threads
        ends, data = _bytes_of(texts)
        if self._offset:
            ids = data.astype(self._dtype)
            ids += np.array(self._offset, self._dtype)
        else:
            ids = data.astype(self._dtype, copy=False)
        encoded = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(ids, self._type))
        rows = self._finder.rows_with_texts(texts) if Find.SPECIALS in find else []
        return self._with_specials(encoded, texts, rows, find) if rows else encoded

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Cut a text into ordinary text and added tokens, in order."""
        return self._search.cut(text, find)

    def _with_specials(
        self, encoded: pa.LargeListArray, texts: pa.LargeBinaryArray, rows: list[int], find: Find
    ) -> pa.LargeListArray:
        """The lists, but for some rows those of the text between special tokens, and their ids."""
        plans = [[row] for row in range(len(texts))]
        between: list[bytes] = []
        for row in rows:
            data, plans[row] = texts[row].as_py(), []
            for start, end, token_id in self.cut(data, find):
                if token_id is None:
                    plans[row].append(len(texts) + len(between))
                    between.append(data[start:end])
                else:
                    plans[row].append(-1 - token_id)
        parts = self.encode_array(pa.array(between, pa.large_binary()))
        return join_id_lists(pa.concat_arrays([encoded, parts]), plans)


def first_reserved(
    reserved: Mapping[str, int], texts: pa.LargeBinaryArray
) -> tuple[int, int, str] | None:
    """First reserved byte in documents: row, place in it and name."""
    names = {byte: name for name, byte in reserved.items()}
    ends, data = _bytes_of(texts)
    found = np.flatnonzero(np.isin(data, list(names)))
    if not len(found):
        return None
    place = int(found[0])
    row = int(np.searchsorted(ends, place, side="right")) - 1
    return row, place - int(ends[row]), names[int(data[place])]


def count_reserved(reserved: Mapping[str, int], texts: pa.LargeBinaryArray) -> dict[str, int]:
    """How often each reserved byte is in documents."""
    _, data = _bytes_of(texts)
    return {name: int(np.count_nonzero(data == byte)) for name, byte in reserved.items()}


def _bytes_of(texts: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each document starts, and the last one ends, in all of their bytes; without a copy."""
    _, ends, data = texts.buffers()
    if not len(texts) or data is None:
        return np.zeros(len(texts) + 1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first = offsets[0]
    whole = np.frombuffer(data, np.uint8, count=int(offsets[-1] - first), offset=int(first))
    return offsets - first, whole
