"""The seam between the two implementations: what a backend does, and which one is in force.

`python` is the executable specification, `native` the C++ core; both give the same bytes for
everything defined here. The environment variable `BPE_BACKEND` chooses: `auto` (default) takes
`native` and falls back to `python` with one warning, the two names insist.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.encoding.added_tokens import AddedToken, Find, Stretch
from bpe.errors import BackendError, SettingsError
from bpe.pretokenizing.schemes import Scheme

__all__ = [
    "BACKEND_NAMES",
    "MAX_COUNT",
    "TIE_ORDERS",
    "Backend",
    "CutSegments",
    "Decoder",
    "Encoder",
    "EncodingModel",
    "MergeList",
    "MergeRules",
    "ProgressCallback",
    "RoundBackend",
    "SimulatedMerges",
    "StopBefore",
    "count_words_in",
    "get_backend",
    "native_core",
    "native_core_if_there",
]

# Of the native core that these sources need, as in bpe/native/python/python_module.cc.
NATIVE_INTERFACE = 6

BACKEND_NAMES = ("auto", "native", "python")
TIE_ORDERS = ("hf", "id", "bytes", "first")
"""Names of the orders that decide between pairs of equal count; `MergeRules` says what each is."""

MAX_COUNT = 2**63 - 1
"""Largest count of a word or pair; a sum beyond it raises."""

ProgressCallback = Callable[[int, int], None]
"""Called with (merges made, merges asked for), now and then and at the end."""


@dataclass(frozen=True)
class MergeRules:
    """How the next merge is chosen, and when to stop.

    max_merges: stop after so many.
    tie_order: which of several pairs with the highest count is merged. `hf`: the lower pair of
        ids, base ids in GPT-2's printable-character order; `id`: the lower pair of ids, base ids
        being byte values; `bytes`: the lower left bytes, then the lower right bytes; `first`: the
        pair whose earliest occurrence in the current text comes first.
    min_frequency: stop when the best count is below it; at least 1.
    max_token_bytes: a pair that would make a longer token is never merged.
    forbidden: a pair whose bytes spell one of these is never merged (special tokens).
    max_words: a pair that would make a token of more words is never merged; see `count_words_in`.
    forbidden_parts: a pair whose bytes contain one of these is never merged.
    """

    max_merges: int
    tie_order: str = "hf"
    min_frequency: int = 2
    max_token_bytes: int | None = None
    forbidden: frozenset[bytes] = frozenset()
    max_words: int | None = None
    forbidden_parts: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if self.tie_order not in TIE_ORDERS:
            raise SettingsError(
                f"unknown tie order {self.tie_order!r}: use one of {', '.join(TIE_ORDERS)}"
            )
        for name, value, lowest in (
            ("max_merges", self.max_merges, 0),
            ("min_frequency", self.min_frequency, 1),
            ("max_token_bytes", self.max_token_bytes, 1),
            ("max_words", self.max_words, 1),
        ):
            if value is not None and value < lowest:
                raise SettingsError(f"{name} is {value}: it must be at least {lowest}")
        if b"" in self.forbidden_parts:
            raise SettingsError("forbidden_parts holds an empty part, which every token contains")

    def allows(self, token: bytes) -> bool:
        """Whether a merge may make this token."""
        return token not in self.forbidden and self.allows_containing(token)

    def allows_containing(self, token: bytes) -> bool:
        """Whether a merge may make some token that contains this one, as far as limits go.

        What is refused here is refused for every longer token around it, so that a place between
        two tokens whose union is refused stays as it is for good. `forbidden` is not like that:
        <|end|> may be refused, and <|end|>s not.
        """
        return (
            (self.max_token_bytes is None or len(token) <= self.max_token_bytes)
            and (self.max_words is None or count_words_in(token) <= self.max_words)
            and not any(part in token for part in self.forbidden_parts)
        )


def count_words_in(token: bytes) -> int:
    r"""Words of a token as the limit `max_words` counts them: what stands between spaces.

    >>> count_words_in(b" of the"), count_words_in(b"s,\n"), count_words_in(b"  ")
    (2, 1, 0)
    """
    return sum(1 for word in token.split(b" ") if word)


@dataclass(frozen=True)
class MergeList:
    """Result of a training.

    merges: (left bytes, right bytes) in the order they were made; index = rank.
    counts: pair count of each merge when it was chosen.
    stop_reason: `vocab_size` (max_merges reached), `min_frequency` (the best pair is rarer), or
        `exhausted` (no pair is left that may be merged).
    """

    merges: list[tuple[bytes, bytes]]
    counts: list[int]
    stop_reason: str


@dataclass(frozen=True)
class StopBefore:
    """A pair that may not be passed: picks end before the first that is not better.

    count: of the pair. left, right: its ids. A pick is better if its count is higher or, in the
    tie orders of ids (`hf`, `id`), if the counts are equal and its pair of ids is lower.
    """

    count: int
    left: int
    right: int

    def is_passed_by(self, pair: tuple[int, int], count: int, tie_order: str) -> bool:
        """Whether a pick of this pair and count is better."""
        if count != self.count or tie_order not in {"hf", "id"}:
            return count > self.count
        return pair < (self.left, self.right)


@dataclass(frozen=True)
class CutSegments:
    """The stretches of a shard between its cuts; see `RoundBackend.cut_segments`.

    size: how many heavy pairs were used, one of the sizes offered.
    segments: run-coded, distinct, ascending by bytes, of 3 tokens or more. weights: of each.
    head, tail: run-coded tokens before the first cut and behind the last; empty on a closed side.
    head_tokens, tail_tokens: how many these are.
    has_cut: False for a single sequence, open on both sides, without a cut: `head` is all of it.
    """

    size: int
    segments: pa.LargeBinaryArray
    weights: pa.Int64Array
    head: bytes
    tail: bytes
    head_tokens: int
    tail_tokens: int
    has_cut: bool


@dataclass(frozen=True)
class SimulatedMerges:
    """Merges in the order in which they were picked.

    left, right: uint32, ids. counts: int64, of the pair when it was picked.
    """

    left: pa.UInt32Array
    right: pa.UInt32Array
    counts: pa.Int64Array


@dataclass(frozen=True)
class EncodingModel:
    """What an encoder needs of a tokenizer.

    tokens: id to bytes, added tokens excluded; every single byte has an id.
    merges: (left id, right id, new id); index = rank.
    whole_piece: look a whole pre-token up in `tokens` before merging.
    scheme: how documents are cut into pre-tokens.
    added_tokens: what may be found in a text first; those that are looked for in its normal form
        have theirs as text.
    """

    tokens: dict[int, bytes]
    merges: list[tuple[int, int, int]]
    whole_piece: bool
    scheme: Scheme
    added_tokens: tuple[AddedToken, ...] = ()


class Encoder(Protocol):
    """Documents to ids, for one `EncodingModel`.

    Text between two added tokens is a document of its own.
    """

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes."""

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document (no nulls); values uint16 if the model's ids fit, else uint32."""

    def cut(self, text: bytes, find: Find) -> list[Stretch]:
        """Stretches of a text, in order: ordinary text and added tokens."""


class Decoder(Protocol):
    """Ids to bytes, for one table of tokens.

    ids are integers of any width, numpy's or Arrow's, without nulls. `InputError` names the first
    that has no token: `ids[3]`, or `ids[2][3]` in the third of several lists.
    """

    def decode(self, ids: npt.NDArray[Any]) -> bytes:
        """Bytes of the ids of a 1-d array."""

    def decode_array(self, ids: pa.LargeListArray, *, threads: int = 1) -> pa.LargeBinaryArray:
        """Bytes of each list of ids."""


class RoundBackend(Protocol):
    """The steps of training in rounds that look at every token; `bpe.rounds` puts them together.

    sequences: large_list of uint16 or uint32, token ids without nulls, possibly a slice; merges
    never cross from one to the next. weights: int64, one for each sequence; None: 1 each.
    tokens: bytes of every id. Run-coded: see `bpe.rounds.run_coding`.
    """

    def count_state_pairs(
        self,
        sequences: pa.LargeListArray,
        weights: pa.Int64Array | None,
        tokens: Sequence[bytes],
        rules: MergeRules,
    ) -> pa.Table:
        """Weighted counts of adjacent pairs, overlaps included, ascending by (left, right).

        Columns left, right: uint32; count: int64. Holds the pairs whose union
        `rules.allows_containing`. Raises `CountTableError` for a count above `MAX_COUNT`, also
        of a pair that is left out, as training on the driver does.
        """

    def cut_segments(
        self,
        sequences: pa.LargeListArray,
        weights: pa.Int64Array | None,
        heavy_left: pa.UInt32Array,
        heavy_right: pa.UInt32Array,
        sizes: Sequence[int],
        cap_bytes: int,
        *,
        open_left: bool,
        open_right: bool,
    ) -> CutSegments:
        """Cut sequences between any two tokens that are no heavy pair, and sum up equal stretches.

        heavy_left, heavy_right: pairs in rank order. sizes: descending; the first n heavy pairs
        count as heavy for the largest n whose result takes no more than cap_bytes, or else for
        the last. A segment takes its coded bytes and 1 more, head and tail their coded bytes.
        open_left, open_right: the first sequence goes on from elsewhere, the last goes on
        elsewhere: their outer stretches become head and tail and are no segments, however short.
        No sequences are as one without tokens.
        Raises `CountTableError` for a weight above `MAX_COUNT`.
        """

    def apply_merges(
        self,
        sequences: pa.LargeListArray,
        left: pa.UInt32Array,
        right: pa.UInt32Array,
        first_id: int,
        id_type: pa.DataType,
    ) -> pa.LargeListArray:
        """Merge pairs in rank order, leftmost first: pair i becomes token first_id + i.

        id_type: uint16 or uint32, of the ids in the result.
        """

    def simulate_merges(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        stop: StopBefore | None,
    ) -> SimulatedMerges:
        """Train on run-coded segments with weights: the first merge makes token len(tokens).

        segments: of 2 tokens or more; may repeat. rules: max_merges is how many more to make at
        most; the tie order `first` is refused. Raises `CountTableError` as `train_words` does.
        """


class Backend(RoundBackend, Protocol):
    """One implementation of counting, training and encoding."""

    name: str
    """`python` or `native`."""

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
        the documents.
        """

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
        """

    def train_raw(
        self,
        documents: pa.LargeBinaryArray,
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from documents (no nulls); a merge crosses anything but their ends."""

    def make_encoder(self, model: EncodingModel, *, cache_bytes: int = 64 << 20) -> Encoder:
        """Make an encoder; cache_bytes bounds what it remembers of pre-tokens, per thread."""

    def make_decoder(self, tokens: Mapping[int, bytes]) -> Decoder:
        """Make a decoder; tokens: id to bytes, those of special tokens among them."""

    def recover_merges(
        self, ranks: Mapping[bytes, int]
    ) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Find the merges that a rank table stands for, and the tokens that no merge makes.

        A token's merge joins the two tokens that remain of its bytes once all shorter tokens in it
        are merged, by rank. Where more than two remain the token is a whole pre-token or nothing.
        A merge may have a lower rank than those that make its parts. Takes time in proportion to
        the tokens' bytes.
        Returns ((left rank, right rank, new rank) by new rank; ranks of the others, ascending).
        Raises `VocabularyError` where a token holds a byte that has no rank.
        """


def get_backend(name: str | None = None) -> Backend:
    """Backend of a name in `BACKEND_NAMES`; by default what `BPE_BACKEND` says, else `auto`.

    Raises `SettingsError` for another name, `BackendError` if `native` is asked for and missing.
    """
    wanted = name or os.environ.get("BPE_BACKEND") or "auto"
    if wanted not in BACKEND_NAMES:
        source = "backend" if name else "environment variable BPE_BACKEND"
        raise SettingsError(f"{source} is {wanted!r}: use one of {', '.join(BACKEND_NAMES)}")
    if wanted == "python":
        return _python_backend()
    if wanted == "native":
        return _native_backend()
    return _best_backend()


@lru_cache(maxsize=1)
def _python_backend() -> Backend:
    # Imported late: the implementations import this module for the types.
    backend: Backend = importlib.import_module("bpe.reference.portable_backend").PythonBackend()
    return backend


def native_core() -> Any:
    """The extension module, if it fits these sources: an old one would fail in the middle of work.

    Raises ImportError: it was not built, or from other sources.
    """
    core = importlib.import_module("bpe._native")
    found = getattr(core, "INTERFACE", None)
    if found != NATIVE_INTERFACE:
        raise ImportError(
            f"{core.__file__} was compiled from other sources (its interface is {found}, and "
            f"{NATIVE_INTERFACE} is needed)"
        )
    return core


@lru_cache(maxsize=1)
def native_core_if_there() -> Any:
    """The same, or None where there is none: for what no result depends on."""
    try:
        return native_core()
    except ImportError:
        return None


@lru_cache(maxsize=1)
def _native_backend() -> Backend:
    try:
        native_core()
        module = importlib.import_module("bpe.backends.native_backend")
    except ImportError as error:
        raise BackendError(
            f"backend 'native' is not available: {error}; install with a C++17 compiler at hand "
            "(pip install .), or set BPE_BACKEND=python"
        ) from error
    backend: Backend = module.NativeBackend()
    return backend


@lru_cache(maxsize=1)
def _best_backend() -> Backend:
    # Cached, so that a process warns once however often it asks.
    try:
        return _native_backend()
    except BackendError as error:
        warnings.warn(
            f"{error}; using the python backend, which gives the same results slowly",
            RuntimeWarning,
            stacklevel=3,
        )
        return _python_backend()
