"""Documents to ids and back by another library: what `DocumentEncoder` is for byte-level BPE."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.added_finder import AddedFinder
from bpe.encoding.added_tokens import AddedSearch, Find
from bpe.encoding.id_arrays import (
    IdLists,
    Texts,
    binary_array,
    document_bytes,
    id_array,
    id_list_array,
)
from bpe.encoding.special_tokens import SPECIAL_TEXT_POLICIES
from bpe.engines.library import Encoded
from bpe.engines.library_model import LibraryModel
from bpe.engines.word_cache import WordCache, cut_fields, cut_words
from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme

__all__ = ["LibraryEncoder"]

# Text that is handed to a library at a time: it makes an object of each token for a while.
_BATCH_BYTES = 4 << 20


class LibraryEncoder:
    """Encodes and decodes with one library model; safe to use from several threads.

    Libraries take text, so bytes that are no valid UTF-8 become U+FFFD before.
    """

    def __init__(self, model: LibraryModel) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._words: dict[bool, WordCache] = {}
        self._finder = AddedFinder(model.added_tokens)

    @cached_property
    def id_type(self) -> pa.DataType:
        """Arrow type of ids in arrays: uint16 where the largest id fits, else uint32."""
        return pa.uint16() if self._model.max_id < 2**16 else pa.uint32()

    def encode(self, text: str | bytes, special_text: str) -> npt.NDArray[np.uint32]:
        """Ids of one document; see `Tokenizer.encode`."""
        array = pa.array([document_bytes(text)], pa.large_binary())
        if special_text == "reject":
            self._reject(array, "text")
        return self._encode(array, special_text, 1)[0]

    def encode_ordinary(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of one document in which the text of special tokens is ordinary text."""
        return self.encode(data, "text")

    def encode_batch(self, texts: Texts, special_text: str, threads: int) -> pa.LargeListArray:
        """Ids of each document; see `Tokenizer.encode_batch`."""
        array = binary_array(texts)
        if special_text == "reject":
            self._reject(array, "texts")
        ids, lengths = self._encode(array, special_text, threads)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(ids).cast(self.id_type))

    def count_tokens(self, texts: Texts, special_text: str, threads: int) -> npt.NDArray[np.int64]:
        """Number of ids of each document; see `Tokenizer.count_tokens`."""
        encoded = self.encode_batch(texts, special_text, threads)
        counts: npt.NDArray[np.int64] = np.diff(encoded.offsets.to_numpy())
        return counts

    def encode_with_offsets(self, text: str | bytes, special_text: str) -> NoReturn:
        """Raise `SettingsError`: the libraries normalize, and their tokens have no exact place."""
        del text, special_text
        raise SettingsError(
            f"{self._named()}: it changes texts before it encodes them, so that tokens have no "
            "exact place in a text; use encode"
        )

    def decode(self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array) -> bytes:
        """Bytes of ids; see `Tokenizer.decode`."""
        array = id_array(ids)
        known = self._model.all_tokens
        for place, token_id in enumerate(array.tolist()):
            if token_id not in known:
                raise InputError(f"ids[{place}] is {token_id}, which is {self._model.no_such_id()}")
        return self._model.library.decode(array.tolist()).encode()

    def decode_batch(self, ids: IdLists, threads: int) -> pa.LargeBinaryArray:
        """Bytes of each list of ids; see `Tokenizer.decode_batch`."""
        del threads
        rows = id_list_array(ids)
        return pa.array([self._decode_row(i, row) for i, row in enumerate(rows)], pa.large_binary())

    def _decode_row(self, index: int, row: pa.LargeListScalar) -> bytes:
        try:
            return self.decode(row.values)
        except InputError as error:
            raise InputError(str(error).replace("ids[", f"ids[{index}][", 1)) from None

    def stream(self, special_text: str, limit_bytes: int, block_bytes: int) -> NoReturn:
        """Raise `SettingsError`: a library sees each document as a whole."""
        del special_text, limit_bytes, block_bytes
        raise SettingsError(f"{self._named()}: it takes whole documents; use encode")

    def streams(self, special_text: str) -> bool:
        """Whether documents can be encoded in chunks: they cannot."""
        del special_text
        return False

    def cut_finder(self, special_text: str) -> CutFinder:
        """Where documents may be cut: nowhere."""
        return CutFinder(
            get_scheme("none"),
            [token.text.encode() for token in self._model.added_tokens],
            special_text=special_text,
        )

    def first_special(self, array: pa.LargeBinaryArray) -> tuple[int, int, str] | None:
        """First special token that counts in an array: row, start and text.

        The start is 0 where the library finds one in its own form of a text alone.
        """
        for row in self._rows_with_specials(array):
            found = self._search.cut(array[row].as_py(), Find.ADDED | Find.SPECIALS)
            names = {token_id: text for text, token_id in self._model.special_tokens.items()}
            for start, _, token_id in found:
                if token_id in names:
                    return row, start, names[token_id]
            for token_id in self._encode(array.slice(row, 1), "allow", 1)[0].tolist():
                if token_id in names:
                    return row, 0, names[token_id]
        return None

    def count_special_text(self, texts: Texts) -> dict[str, int]:
        """How often each special token is found; see `Tokenizer.count_special_text`."""
        array, specials = binary_array(texts), self._model.special_tokens
        if not self._finds_in_own_form:
            counts = self._finder.count(array)
            return {text: counts[token_id] for text, token_id in specials.items()}
        found = self._encode(array, "allow", 1)[0]
        ordinary = self._encode(array, "text", 1)[0]
        return {
            text: int((found == i).sum() - (ordinary == i).sum()) for text, i in specials.items()
        }

    def forget_encoder(self) -> None:
        """Free the caches; see `Tokenizer.forget_encoder`."""
        with self._lock:
            self._words = {}

    @cached_property
    def _search(self) -> AddedSearch:
        return AddedSearch(self._model.added_tokens)

    @cached_property
    def _finds_in_own_form(self) -> bool:
        """Whether the library looks for special tokens in a text that it has normalized."""
        specials = [token for token in self._model.added_tokens if token.special]
        return self._model.library.finds_specials and any(t.normalized for t in specials)

    def _rows_with_specials(self, array: pa.LargeBinaryArray) -> list[int]:
        if self._finds_in_own_form:
            return list(range(len(array)))
        return self._finder.rows_with_texts(array)

    def _reject(self, array: pa.LargeBinaryArray, name: str) -> None:
        found = self.first_special(array)
        if found is not None:
            row, start, token = found
            place = name if name == "text" else f"{name}[{row}]"
            raise InputError(
                f"{place} holds the special token {token!r} at byte {start}; "
                'pass special_text="text" to take it as ordinary text, or "allow" for its id'
            )

    def _encode(self, array: pa.LargeBinaryArray, special_text: str, threads: int) -> Encoded:
        if special_text not in SPECIAL_TEXT_POLICIES:
            raise SettingsError(
                f"special_text is {special_text!r}: use one of {', '.join(SPECIAL_TEXT_POLICIES)}"
            )
        specials = special_text == "allow"
        parts = [self._encode_batch(batch, threads, specials=specials) for batch in _batches(array)]
        none = (np.zeros(0, np.uint32), np.zeros(0, np.int64))
        ids, lengths = zip(*parts, strict=True) if parts else (none[:1], none[1:])
        return np.concatenate(ids), np.concatenate(lengths)

    def _encode_batch(self, array: pa.LargeBinaryArray, threads: int, *, specials: bool) -> Encoded:
        library = self._model.library
        if specials and not library.finds_specials:
            rows = self._finder.rows_with_texts(array)
            if rows:
                return self._encode_between(array, threads)
        if library.words_apart:
            return self._word_cache(specials=specials).encode(_text_array(array))
        return library.encode(_text_array(array).to_pylist(), specials=specials, threads=threads)

    def _encode_between(self, array: pa.LargeBinaryArray, threads: int) -> Encoded:
        """Ids of documents in which special tokens stand, for a library that does not find them.

        What is between two of them is a text of its own.
        """
        find = Find.ADDED | Find.SPECIALS
        documents = [self._search.cut(data, find) for data in array.to_pylist()]
        texts = [
            array[row].as_py()[start:end]
            for row, cuts in enumerate(documents)
            for start, end, token_id in cuts
            if token_id is None
        ]
        ids, lengths = self._encode_batch(
            pa.array(texts, pa.large_binary()), threads, specials=False
        )
        between = iter(np.split(ids, np.cumsum(lengths)[:-1]) if len(lengths) else ())
        rows = [
            [
                next(between) if token_id is None else np.array([token_id], np.uint32)
                for _, _, token_id in cuts
            ]
            for cuts in documents
        ]
        counts = np.array([sum(map(len, row)) for row in rows], np.int64)
        flat = [part for row in rows for part in row]
        return np.concatenate([np.zeros(0, np.uint32), *flat]), counts

    def _word_cache(self, *, specials: bool) -> WordCache:
        library = self._model.library
        with self._lock:
            if specials not in self._words:
                self._words[specials] = WordCache(
                    lambda words: library.encode(words, specials=specials, threads=1),
                    cut_fields if library.words_are_fields else cut_words,
                )
            return self._words[specials]

    def _named(self) -> str:
        return f"this tokenizer is encoded by {self._model.engine}"


def _batches(array: pa.LargeBinaryArray) -> Iterator[pa.LargeBinaryArray]:
    """Documents of some megabytes together, or one longer document."""
    ends = np.cumsum(pc.binary_length(array).to_numpy())
    start = 0
    while start < len(array):
        done = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, done + _BATCH_BYTES, side="right")))
        yield array[start:end]
        start = end


def _text_array(array: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Documents as text, with U+FFFD for what is no valid UTF-8."""
    try:
        return array.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = [data.decode("utf-8", "replace") for data in array.to_pylist()]
        return pa.array(texts, pa.large_string())
