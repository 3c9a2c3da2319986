"""Documents to ids and back for one tokenizer: special tokens, normalization, then the backend."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Decoder, Encoder
from bpe.encoding.added_finder import AddedFinder
from bpe.encoding.added_stream import AddedStream
from bpe.encoding.added_tokens import Find
from bpe.encoding.byte_rows import BYTE_PRESETS, ByteEncoder, count_reserved, first_reserved
from bpe.encoding.characters import CharacterEncoder
from bpe.encoding.final_tokens import FinalTokens
from bpe.encoding.id_arrays import (
    IdLists,
    Texts,
    binary_array,
    document_bytes,
    id_array,
    id_list_array,
    join_id_lists,
)
from bpe.encoding.special_tokens import SPECIAL_TEXT_POLICIES
from bpe.encoding.stream_encoder import StreamEncoder, are_in_merge_order
from bpe.encoding.token_lengths import TokenLengths
from bpe.encoding.token_offsets import EncodedText, character_offsets
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme

__all__ = ["DocumentEncoder"]

_COUNTED_BYTES = 8 << 20
"""Text whose ids are in memory at a time while tokens are counted."""


class DocumentEncoder:
    """Encodes and decodes with one model; safe to use from several threads.

    The backend's encoder and decoder are made when they are first needed, by the backend in force
    then.
    """

    def __init__(self, model: TokenizerModel) -> None:
        self._model = model
        self._has_vocabulary_tokens = any(not token.special for token in model.added_tokens)
        self._lock = threading.Lock()
        self._backend_encoder: Encoder | None = None
        self._backend_merger: Encoder | None = None
        self._backend_decoder: Decoder | None = None
        self._bytes = None if model.byte_preset is None else BYTE_PRESETS[model.byte_preset]

    @cached_property
    def _finder(self) -> AddedFinder:
        # Those of the second pass in their normal form, as they are looked for.
        return AddedFinder(self._model.encoding_model.added_tokens)

    @cached_property
    def id_type(self) -> pa.DataType:
        """Arrow type of ids in arrays: uint16 where the largest id fits, else uint32.

        Of a preset of bytes: uint8 where it fits.
        """
        if self._bytes is not None and self._model.max_id < 2**8:
            return pa.uint8()
        return pa.uint16() if self._model.max_id < 2**16 else pa.uint32()

    def encode(self, text: str | bytes, special_text: str) -> npt.NDArray[np.uint32]:
        """Ids of one document; see `Tokenizer.encode`."""
        data = document_bytes(text)
        self._model.missing_bytes.check(data, "text")
        find = self._find(special_text)
        if special_text == "reject":
            self._reject(pa.array([data], pa.large_binary()), lambda _: "text")
        return self._encode(data, find)

    def encode_ordinary(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of one document in which the text of special tokens is ordinary text."""
        return self._encode(data, self._find("text"))

    def encode_batch(self, texts: Texts, special_text: str, threads: int) -> pa.LargeListArray:
        """Ids of each document; see `Tokenizer.encode_batch`."""
        array, find = self._checked(texts, special_text)
        return self._encode_array(array, find, threads).cast(pa.large_list(self.id_type))

    def count_tokens(self, texts: Texts, special_text: str, threads: int) -> npt.NDArray[np.int64]:
        """Number of ids of each document; see `Tokenizer.count_tokens`."""
        array, find = self._checked(texts, special_text)
        counts = np.zeros(len(array), np.int64)
        ends = np.cumsum(pc.binary_length(array).to_numpy())
        start = 0
        while start < len(array):
            done = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, done + _COUNTED_BYTES, side="right")))
            encoded = self._encode_array(array[start:end], find, threads)
            counts[start:end] = np.diff(encoded.offsets.to_numpy())
            start = end
        return counts

    def encode_with_offsets(self, text: str | bytes, special_text: str) -> EncodedText:
        """Ids of one document with their places; see `Tokenizer.encode_with_offsets`."""
        data = document_bytes(text)
        if self._model.normalize(data) != data:
            raise InputError(
                f"text changes when it is normalized ({self._model.normalizer}), so that its "
                "tokens have no place in it; pass its normal form"
            )
        if self._model.scheme.drops_text:
            raise InputError(
                "this vocabulary's pre-tokenizer drops text, so that the places of its tokens "
                "are not known; use encode"
            )
        ids = self.encode(data, special_text)
        find = self._find(special_text)
        # Added tokens may take white space, and be found in a normal form of another length.
        if find and (self._model.normalizer or self._model.lossy_tokens(special_text)):
            ends = self._ends_by_segment(data, find)
        else:
            ends = np.cumsum(self._lengths[ids])
        offsets = np.stack((np.concatenate((np.zeros(1, np.int64), ends))[:-1], ends), axis=1)
        return EncodedText(
            ids, offsets, character_offsets(text if isinstance(text, str) else data, offsets)
        )

    def _ends_by_segment(self, data: bytes, find: Find) -> npt.NDArray[np.int64]:
        """Ends of tokens where an added token may take more of the text than it decodes to."""
        ends = [np.zeros(0, np.int64)]
        for start, end, token_id in self._encoder().cut(data, find):
            if token_id is None:
                ids = self._encoder().encode(data[start:end])
                ends.append(start + np.cumsum(self._lengths[ids]))
            else:
                ends.append(np.array([end], np.int64))
        return np.concatenate(ends)

    @cached_property
    def _lengths(self) -> TokenLengths:
        return TokenLengths(self._model.all_tokens)

    def _checked(self, texts: Texts, special_text: str) -> tuple[pa.LargeBinaryArray, Find]:
        """Documents that can be encoded, and what to look for in them."""
        array = binary_array(texts)
        self._model.missing_bytes.check_array(array)
        find = self._find(special_text)
        if special_text == "reject":
            self._reject(array, lambda row: f"texts[{row}]")
        return array, find

    def decode(self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array) -> bytes:
        """Bytes of ids; see `Tokenizer.decode`."""
        data = self._decoder().decode(id_array(ids))
        steps = self._model.normalizing
        return data if steps is None else data.removeprefix(steps.prefix)

    def decode_batch(self, ids: IdLists, threads: int) -> pa.LargeBinaryArray:
        """Bytes of each list of ids; see `Tokenizer.decode_batch`."""
        texts = self._decoder().decode_array(id_list_array(ids), threads=threads)
        steps = self._model.normalizing
        if steps is None or not steps.prefix:
            return texts
        return pc.replace_substring_regex(
            texts, rf"\A{re.escape(steps.prefix.decode())}", "", max_replacements=1
        )

    def stream(
        self, special_text: str, limit_bytes: int, block_bytes: int
    ) -> StreamEncoder | AddedStream:
        """Encoder of one document in chunks; see `Tokenizer.stream_encoder`."""
        if self._model.normalizer is not None:
            raise SettingsError(
                f"documents of this vocabulary are normalized ({self._model.normalizer}) as a "
                "whole, and cannot be encoded in chunks; use encode"
            )
        whole = self._model.whole_document_token(special_text)
        if whole is not None:
            raise SettingsError(
                f"added token {whole.text!r} depends on the text around it, so that documents of "
                "this vocabulary cannot be encoded in chunks; use encode"
            )
        find = self._find(special_text)
        if not find:
            return self._ordinary_stream(limit_bytes, block_bytes)
        return AddedStream(
            self._model.added_search,
            find,
            self._encode_ordinary_texts,
            partial(self._ordinary_stream, limit_bytes, block_bytes),
            limit_bytes=limit_bytes,
            block_bytes=block_bytes,
        )

    def _ordinary_stream(self, limit_bytes: int, block_bytes: int) -> StreamEncoder:
        model = self._model
        return StreamEncoder(
            model.scheme,
            model.tokens,
            self._encoder().encode,
            self._final_tokens,
            whole_piece=model.whole_piece,
            missing=model.missing_bytes,
            limit_bytes=limit_bytes,
            block_bytes=block_bytes,
        )

    def _encode_ordinary_texts(self, texts: Sequence[bytes]) -> list[npt.NDArray[np.uint32]]:
        encoded = self._encoder().encode_array(pa.array(texts, pa.large_binary()))
        offsets = encoded.offsets.to_numpy()
        values = encoded.values.to_numpy().astype(np.uint32)
        return [values[start:end] for start, end in pairwise(offsets)]

    def streams(self, special_text: str) -> bool:
        """Whether documents can be encoded in chunks; see `Tokenizer.streams`."""
        is_scheme = self._model.scheme.has_open_pretokens and self._model.normalizer is None
        is_free = self._model.whole_document_token(special_text) is None
        return is_scheme and is_free and self._has_merge_order

    def cut_finder(self, special_text: str) -> CutFinder:
        """Where documents may be cut; see `Tokenizer.cut_finder`."""
        model = self._model
        # Normalization, or a token that looks around, may join the two sides of a cut.
        is_whole = model.normalizer is not None or model.whole_document_token(special_text)
        find = self._find(special_text)
        return CutFinder(
            get_scheme("none") if is_whole else model.scheme,
            [token.text.encode() for token in model.added_tokens],
            special_text=special_text,
            looking=[t.text.encode() for t in model.added_tokens if t.looks_around],
            streams=self.streams(special_text),
            added=model.added_search if model.added_tokens else None,
            find=find,
        )

    @cached_property
    def _final_tokens(self) -> FinalTokens | None:
        return FinalTokens(self._model.tokens, self._merge) if self._has_merge_order else None

    @cached_property
    def _has_merge_order(self) -> bool:
        return are_in_merge_order(self._model.merges)

    def _merge(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of bytes as one pre-token, by merging alone."""
        if self._bytes is not None:
            return self._encoder().encode(data)
        with self._lock:
            if self._backend_merger is None:
                model = dataclasses.replace(
                    self._model.encoding_model,
                    whole_piece=False,
                    scheme=get_scheme("none"),
                    added_tokens=(),
                )
                self._backend_merger = get_backend().make_encoder(model, cache_bytes=1 << 20)
        return self._backend_merger.encode(data)

    def _find(self, special_text: str) -> Find:
        """What to look for by a policy; nothing if the vocabulary has none of it."""
        if special_text not in SPECIAL_TEXT_POLICIES:
            raise SettingsError(
                f"special_text is {special_text!r}: use one of {', '.join(SPECIAL_TEXT_POLICIES)}"
            )
        find = Find.ADDED | Find.SPECIALS if special_text == "allow" else Find.ADDED
        acts = self._model.special_tokens if special_text == "allow" else ()
        return find if acts or self._has_vocabulary_tokens else Find.NOTHING

    @cached_property
    def _puts_before_parts(self) -> bool:
        """Whether something is put before the text after an added token too."""
        steps = self._model.normalizing
        return steps is not None and bool(steps.prefix)

    def _rows_in_parts(
        self, array: pa.LargeBinaryArray, normalized: pa.LargeBinaryArray
    ) -> list[int]:
        """Documents in which the text between added tokens is to be normalized by itself."""
        if not self._puts_before_parts:
            # What is in its normal form as a whole is so in every part.
            is_same = normalized is array
            changed = [] if is_same else np.flatnonzero(pc.not_equal(array, normalized)).tolist()
            return list(changed)
        first = [token for token in self._model.added_tokens if not token.normalized]
        if all(token.special for token in first):
            return self._finder.rows_with_texts(array)
        return list(range(len(array)))

    def _has_first_pass(self, find: Find) -> bool:
        """Whether something is looked for in texts as they are, before they are normalized."""
        return bool(find) and any(
            not token.normalized and (not token.special or Find.SPECIALS in find)
            for token in self._model.added_tokens
        )

    def _encode(self, data: bytes, find: Find) -> npt.NDArray[np.uint32]:
        normalized = self._model.normalize(data)
        is_whole = normalized == data and not self._puts_before_parts
        if not self._has_first_pass(find) or is_whole:
            return self._encoder().encode(normalized, find)
        ids: npt.NDArray[Any] = self._encode_parts([self._parts(data, find)]).values.to_numpy()
        return ids.astype(np.uint32)

    def _encode_array(
        self, array: pa.LargeBinaryArray, find: Find, threads: int
    ) -> pa.LargeListArray:
        if self._model.normalizing is None:
            return self._encoder().encode_array(array, threads=threads, find=find)
        normalized = self._model.normalizing.normalize_array(array)
        encoded = self._encoder().encode_array(normalized, threads=threads, find=find)
        rows = self._rows_in_parts(array, normalized) if self._has_first_pass(find) else []
        if not rows:
            return encoded
        cut = self._encode_parts([self._parts(array[row].as_py(), find) for row in rows])
        plans = [[row] for row in range(len(array))]
        for index, row in enumerate(rows):
            plans[row] = [len(array) + index]
        return join_id_lists(pa.concat_arrays([encoded, cut.cast(encoded.type)]), plans)

    def _parts(self, data: bytes, find: Find) -> list[bytes | int]:
        """Ordinary text of a document, in its normal form, and the ids of added tokens."""
        parts: list[bytes | int] = []
        for start, end, token_id in self._encoder().cut(data, find | Find.FIRST):
            if token_id is not None:
                parts.append(token_id)
            else:
                normalized = self._model.normalize(data[start:end], begins=start == 0)
                parts += self._cut(normalized, find | Find.SECOND)
        return parts

    def _cut(self, data: bytes, find: Find) -> list[bytes | int]:
        return [
            data[start:end] if token_id is None else token_id
            for start, end, token_id in self._encoder().cut(data, find)
        ]

    def _encode_parts(self, documents: list[list[bytes | int]]) -> pa.LargeListArray:
        texts = [part for parts in documents for part in parts if isinstance(part, bytes)]
        numbers = iter(range(len(texts)))
        plans = [
            [next(numbers) if isinstance(part, bytes) else -1 - part for part in parts]
            for parts in documents
        ]
        encoded = self._encoder().encode_array(pa.array(texts, pa.large_binary()))
        return join_id_lists(encoded.cast(pa.large_list(self.id_type)), plans)

    def first_special(self, array: pa.LargeBinaryArray) -> tuple[int, int, str] | None:
        """First special token that counts in an array: row, start and text."""
        if self._bytes is not None and self._bytes.reserved:
            return first_reserved(self._bytes.reserved, array)
        names = {token.id: token.text for token in self._model.added_tokens}
        for row, start, token_id in self._special_places(array):
            return row, start, names[token_id]
        return None

    def count_special_text(self, texts: Texts) -> dict[str, int]:
        """How often each special token is found; see `Tokenizer.count_special_text`."""
        array, model = binary_array(texts), self._model
        if self._bytes is not None and self._bytes.reserved:
            return count_reserved(self._bytes.reserved, array)
        in_normal_form = any(token.special and token.normalized for token in model.added_tokens)
        found: Mapping[int, int]
        if model.normalizer is None:
            found = self._finder.count(array)
        elif not in_normal_form:  # the first pass looks at texts as they are
            found = self._finder.count(array, Find.ADDED | Find.SPECIALS | Find.FIRST)
        else:
            found = Counter(token_id for _, _, token_id in self._special_places(array))
        return {text: found[token_id] for text, token_id in model.special_tokens.items()}

    def _special_places(self, array: pa.LargeBinaryArray) -> Iterator[tuple[int, int, int]]:
        """Special tokens that encoding finds: row, start and id."""
        rows = set(self._finder.rows_with_texts(array))
        if self._model.normalizing is not None:
            normalized = self._model.normalizing.normalize_array(array)
            rows.update(self._finder.rows_with_texts(normalized))
        specials = set(self._model.special_tokens.values())
        for row in sorted(rows):
            for start, token_id in self._places(array[row].as_py()):
                if token_id in specials:
                    yield row, start, token_id

    def _places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Starts and ids of all added tokens of a document, special ones counting."""
        find = Find.ADDED | Find.SPECIALS
        for start, end, token_id in self._encoder().cut(data, find | Find.FIRST):
            if token_id is not None:
                yield start, token_id
                continue
            text = self._model.normalize(data[start:end], begins=start == 0)
            for begin, _, inner_id in self._encoder().cut(text, find | Find.SECOND):
                if inner_id is not None:
                    yield start + begin, inner_id

    def _reject(self, array: pa.LargeBinaryArray, name: Callable[[int], str]) -> None:
        found = self.first_special(array)
        if found is not None:
            row, start, token = found
            raise InputError(
                f"{name(row)} holds the special token {token!r} at byte {start}; "
                'pass special_text="text" to take it as ordinary text, or "allow" for its id'
            )

    def forget_encoder(self) -> None:
        """Free the encoder with its caches; see `Tokenizer.forget_encoder`."""
        with self._lock:
            self._backend_encoder = None

    def _encoder(self) -> Encoder:
        with self._lock:
            if self._backend_encoder is None and self._bytes is not None:
                added = tuple(self._model.added_tokens)
                self._backend_encoder = ByteEncoder(self._bytes.offset, self.id_type, added)
            if self._backend_encoder is None:
                made = get_backend().make_encoder(self._model.encoding_model)
                parts, _ = self._model.character_parts
                if parts:
                    ids = {data: i for i, data in self._model.tokens.items()}
                    made = CharacterEncoder(made, parts, [ids[bytes([b])] for b in range(256)])
                self._backend_encoder = made
            return self._backend_encoder

    def _decoder(self) -> Decoder:
        with self._lock:
            if self._backend_decoder is None:
                self._backend_decoder = get_backend().make_decoder(self._model.all_tokens)
            return self._backend_decoder
