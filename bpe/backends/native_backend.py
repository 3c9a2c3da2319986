"""The native core as a backend; equal to the specification, and fast.

Importing this module fails with `ImportError` where `bpe._native` was not built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe import _native
from bpe.backends.native_rounds import NativeRounds, rule_arguments
from bpe.backends.protocol import Decoder, Encoder
from bpe.backends.recipe_values import WordPieceList, WordPieceRules
from bpe.backends.values import EncodingModel, MergeList, MergeRules, ProgressCallback
from bpe.backends.word_counts import check_word_counts
from bpe.encoding.added_tokens import AddedToken, Find, Segment
from bpe.encoding.dense_ids import SparseEncoder, are_dense
from bpe.encoding.id_arrays import join_id_lists
from bpe.encoding.missing_bytes import encodable_bytes
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import Scheme

__all__ = ["NativeBackend"]

_SPLIT_BYTES = 4 << 20
"""Documents longer than this are cut into pieces about as long, for threads to share."""


class NativeBackend(NativeRounds):
    """Counting, training and encoding in C++, off Python's lock; see `protocol.Backend`."""

    name = "native"

    def count_words(
        self,
        texts: pa.LargeBinaryArray,
        scheme: Scheme,
        *,
        first_positions: bool = False,
        threads: int = 1,
    ) -> tuple[pa.LargeBinaryArray, pa.Int64Array, pa.Int64Array | None]:
        """Distinct pre-tokens of documents (no nulls), ascending by bytes, and their counts.

        With first_positions also the smallest byte position of each within the concatenation of
        the documents. Memory: about 64 bytes for each distinct pre-token and thread.
        """
        counter = _native.WordCounter(_find_scan(scheme), threads=threads)
        if _has_scan(scheme):
            counter.add_documents(cut_long_documents(texts, scheme) if threads > 1 else texts)
        elif not scheme.steps:
            counter.add_words(texts)
        else:
            for text in texts:
                counter.add_words(pa.array(scheme.split(text.as_py()), pa.large_binary()))
        words, counts, firsts = (pa.array(column) for column in counter.drain())
        return words, counts, firsts if first_positions else None

    def train_words(
        self,
        words: pa.LargeBinaryArray,
        counts: pa.Int64Array,
        first_positions: pa.Int64Array | None,
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from distinct words (pre-tokens) with counts; in any order.

        first_positions is needed by the tie order `first` alone. Raises `CountTableError` for a
        count below 1, a word twice, or a pair count above `MAX_COUNT`.
        Memory: 8 to 15 bytes for each byte of the words, 4 for each word.
        """
        check_word_counts(words, counts, first_positions, rules)
        return MergeList(
            *_native.train_words(
                words, counts, first_positions, **rule_arguments(rules), progress=progress
            )
        )

    def train_raw(
        self,
        documents: pa.LargeBinaryArray,
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from documents (no nulls); a merge crosses anything but their ends.

        Memory: 5 to 8 bytes for each byte of text (7 to 10 beyond 65,534 tokens).
        """
        return MergeList(*_native.train_raw(documents, **rule_arguments(rules), progress=progress))

    def train_segments(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from run-coded sequences of ids of `tokens`, with weights."""
        spelled = pa.array(tokens, pa.large_binary())
        return MergeList(
            *_native.train_segments(
                segments, weights, spelled, **rule_arguments(rules), progress=progress
            )
        )

    def train_wordpiece(
        self,
        words: pa.LargeBinaryArray,
        counts: pa.Int64Array,
        first_positions: pa.Int64Array | None,
        rules: WordPieceRules,
        progress: ProgressCallback | None = None,
    ) -> WordPieceList:
        """Learn the pieces of WordPiece by likelihood from distinct words with counts."""
        check_word_counts(words, counts, first_positions, rules)
        arguments = {**asdict(rules), "limit_alphabet": rules.limit_alphabet or 0}
        firsts = first_positions if rules.tie_order == "first" else None
        return WordPieceList(
            *_native.train_wordpiece(words, counts, firsts, **arguments, progress=progress)
        )

    def make_encoder(self, model: EncodingModel, *, cache_bytes: int = 64 << 20) -> Encoder:
        """Make an encoder; cache_bytes bounds what it remembers of pre-tokens, per thread."""
        if are_dense(model.tokens):
            return NativeEncoder(model, cache_bytes=cache_bytes)
        return SparseEncoder(model, lambda dense: NativeEncoder(dense, cache_bytes=cache_bytes))

    def make_decoder(self, tokens: Mapping[int, bytes]) -> Decoder:
        """Make a decoder; tokens: id to bytes, those of special tokens among them."""
        return NativeDecoder(tokens)

    def recover_merges(
        self, ranks: Mapping[bytes, int]
    ) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Find the merges that a rank table stands for, and the tokens that no merge makes."""
        order = sorted(ranks, key=ranks.__getitem__)
        columns = _native.recover_merges(pa.array(order, pa.large_binary()))
        by_position = [ranks[token] for token in order]
        left, right, made, unmerged = (
            [by_position[position] for position in pa.array(column).to_pylist()]
            for column in columns
        )
        return list(zip(left, right, made, strict=True)), unmerged


class NativeEncoder:
    """Documents to ids for one model, on any number of threads.

    Each thread that encodes at the same time has a cache of pre-tokens of its own, which stays
    warm from call to call. cache_bytes: bound of one cache.
    """

    def __init__(self, model: EncodingModel, *, cache_bytes: int = 64 << 20) -> None:
        self._missing = encodable_bytes(model.tokens)
        self._scheme = model.scheme
        self._encoder = _native.Encoder(
            tokens=model.tokens,
            merges=model.merges,
            whole_piece=model.whole_piece,
            scheme=_find_scan(model.scheme),
            cache_bytes=cache_bytes,
            added=[token.native_row for token in model.added_tokens],
        )
        self._added = model.added_tokens

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes that have ids."""
        self._missing.check(data, "text")
        if self._split_in_python:
            texts = pa.array([data], pa.large_binary())
            ids: npt.NDArray[np.uint32] = self._encode_split(texts, find).values.to_numpy()
            return ids.astype(np.uint32)
        return self._encoder.encode(data, find)

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document (no nulls); values uint16 if the model's ids fit, else uint32."""
        self._missing.check_array(texts)
        if self._split_in_python:
            return self._encode_split(texts, find)
        added = self._added if find else ()
        if threads == 1 or not can_cut(self._scheme, added, find):
            return pa.array(self._encoder.encode_documents(texts, threads=threads, find=find))
        pieces = cut_long_documents(texts, self._scheme, [t.text.encode() for t in added])
        encoded = pa.array(self._encoder.encode_documents(pieces, threads=threads, find=find))
        return encoded if pieces is texts else _join_pieces(encoded, pieces, texts)

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Segments of a text, in order: ordinary text and added tokens."""
        texts = pa.array([text], pa.large_binary())
        _, *columns = self._encoder.cut_documents(texts, find=find)
        starts, ends, ids = (pa.array(column).to_pylist() for column in columns)
        found = [None if token_id < 0 else token_id for token_id in ids]
        return list(zip(starts, ends, found, strict=True))

    @property
    def _split_in_python(self) -> bool:
        # Patterns that are not compiled go through the `regex` module; `none` splits nothing.
        return bool(self._scheme.steps) and not _has_scan(self._scheme)

    def _encode_split(self, texts: pa.LargeBinaryArray, find: Find) -> pa.LargeListArray:
        if find:
            return self._encode_segments(texts, find)
        ends: list[int] = []
        first_pretokens = [0]
        kept: list[bytes] = []
        for text in texts:
            pieces = self._scheme.split(text.as_py())
            ends += accumulate(map(len, pieces))
            first_pretokens.append(len(ends))
            if self._scheme.drops_text:
                kept.append(b"".join(pieces))
        if self._scheme.drops_text:
            texts = pa.array(kept, pa.large_binary())
        return pa.array(
            self._encoder.encode_split_documents(
                texts, pa.array(ends, pa.int64()), pa.array(first_pretokens, pa.int64())
            )
        )

    def _encode_segments(self, texts: pa.LargeBinaryArray, find: Find) -> pa.LargeListArray:
        segments: list[bytes] = []
        plans: list[list[int]] = []
        for data in texts.to_pylist():
            plan: list[int] = []
            for start, end, token_id in self.cut(data, find):
                plan.append(len(segments) if token_id is None else -1 - token_id)
                if token_id is None:
                    segments.append(data[start:end])
            plans.append(plan)
        encoded = self._encode_split(pa.array(segments, pa.large_binary()), Find.NOTHING)
        return join_id_lists(encoded, plans)


class NativeDecoder:
    """Ids to bytes, on any number of threads.

    tokens: id to bytes, those of special tokens among them. Memory: 16 bytes for each id up to
    the largest one (2 MiB at least, 64 MiB at most), besides tokens of more than 15 bytes.
    """

    def __init__(self, tokens: Mapping[int, bytes]) -> None:
        self._decoder = _native.Decoder(dict(tokens))

    def decode(self, ids: npt.NDArray[Any]) -> bytes:
        """Bytes of ids; `InputError` names the first without token."""
        return self._decoder.decode(_decodable(pa.array(ids)))

    def decode_array(self, ids: pa.LargeListArray, *, threads: int = 1) -> pa.LargeBinaryArray:
        """Bytes of each list of ids; errors as `decode`, with the list's place."""
        values = _decodable(ids.values)
        return pa.array(self._decoder.decode_lists(values, ids.offsets, threads=threads))


def _decodable(ids: pa.Array) -> pa.Array:
    """The same integers in one of the types that the core reads without a copy."""
    if ids.type.bit_width >= 32 or ids.type == pa.uint16():
        return ids
    return ids.cast(pa.int32())


def _has_scan(scheme: Scheme) -> bool:
    return scheme.is_hand_written or _pattern_scan(scheme) is not None


def _find_scan(scheme: Scheme) -> str | _native.PatternScan | None:
    return scheme.name if scheme.is_hand_written else _pattern_scan(scheme)


@lru_cache(maxsize=64)
def _pattern_scan(scheme: Scheme) -> _native.PatternScan | None:
    """Scan of a scheme that is compiled to one automaton."""
    compiled = scheme.compiled
    automaton = compiled.automaton if compiled else None
    if compiled is None or automaton is None:
        return None
    return _native.PatternScan(
        starts=compiled.atoms.starts,
        atoms=compiled.atoms.numbers,
        next_states=automaton.next_states.tolist(),
        ends=automaton.ends.tolist(),
        certain_cuts=compiled.certain_cuts.tolist(),
    )


def can_cut(scheme: Scheme, added: Sequence[AddedToken], find: Find) -> bool:
    """Whether documents can be cut into pieces that have their ids each by itself."""
    return CutFinder(scheme).can_cut and not any(
        token.looks_around for token in added if Find.SPECIALS in find or not token.special
    )


def cut_long_documents(
    texts: pa.LargeBinaryArray, scheme: Scheme, whole: Sequence[bytes] = ()
) -> pa.LargeBinaryArray:
    """The same bytes with long documents in pieces, whose pre-tokens are those of the document.

    whole: texts that stay whole.
    """
    offsets = _offsets(texts)
    if len(texts) == 0 or int(np.diff(offsets).max()) <= _SPLIT_BYTES:
        return texts
    finder = CutFinder(scheme, whole)
    data = texts.buffers()[2]
    borders = [int(offsets[0])]
    for start, end in pairwise(offsets.tolist()):
        borders += _cuts_between(memoryview(data), start, end, finder)
        borders.append(end)
    cut: npt.NDArray[np.int64] = np.array(borders, np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cut) - 1, [None, pa.py_buffer(cut), data]
    )


def _offsets(texts: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    if len(texts) == 0:
        return np.zeros(1, np.int64)
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]


def _join_pieces(
    encoded: pa.LargeListArray, pieces: pa.LargeBinaryArray, texts: pa.LargeBinaryArray
) -> pa.LargeListArray:
    """One list for each text out of those of its pieces; the ids are not moved."""
    # Of equal borders any will do: between them stand empty texts, without ids.
    rows = np.searchsorted(_offsets(pieces), _offsets(texts), side="left")
    offsets = encoded.offsets.to_numpy()[rows]
    return pa.LargeListArray.from_arrays(pa.array(offsets), encoded.values)


def _cuts_between(data: memoryview, start: int, end: int, finder: CutFinder) -> list[int]:
    document = data[start:end]
    cuts: list[int] = []
    mark = _SPLIT_BYTES
    while mark < len(document):
        cut = finder.first_cut(document, mark, final=False)
        if cut is None:
            break
        cuts.append(start + cut)
        mark = cut + _SPLIT_BYTES
    return cuts
