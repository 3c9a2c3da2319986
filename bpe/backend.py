"""The seam between the two implementations: what a backend does, and which one is in force.

`python` is the executable specification, `native` the C++ core; both give the same bytes for
everything defined here. The environment variable `BPE_BACKEND` chooses: `auto` (default) takes
`native` and falls back to `python` with one warning, the two names insist.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import BackendError, SettingsError
from bpe.schemes import Scheme

__all__ = [
    "BACKEND_NAMES",
    "MAX_COUNT",
    "TIE_ORDERS",
    "Backend",
    "Decoder",
    "Encoder",
    "EncodingModel",
    "MergeList",
    "MergeRules",
    "ProgressCallback",
    "get_backend",
]

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
    """

    max_merges: int
    tie_order: str = "hf"
    min_frequency: int = 2
    max_token_bytes: int | None = None
    forbidden: frozenset[bytes] = frozenset()

    def __post_init__(self) -> None:
        if self.tie_order not in TIE_ORDERS:
            raise SettingsError(
                f"unknown tie order {self.tie_order!r}: use one of {', '.join(TIE_ORDERS)}"
            )
        for name, value, lowest in (
            ("max_merges", self.max_merges, 0),
            ("min_frequency", self.min_frequency, 1),
            ("max_token_bytes", self.max_token_bytes, 1),
        ):
            if value is not None and value < lowest:
                raise SettingsError(f"{name} is {value}: it must be at least {lowest}")


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
class EncodingModel:
    """What an encoder needs of a tokenizer.

    tokens: id to bytes, special tokens excluded; every single byte has an id.
    merges: (left id, right id, new id); index = rank.
    whole_piece: look a whole pre-token up in `tokens` before merging.
    scheme: how documents are cut into pre-tokens.
    """

    tokens: dict[int, bytes]
    merges: list[tuple[int, int, int]]
    whole_piece: bool
    scheme: Scheme


class Encoder(Protocol):
    """Documents to ids, for one `EncodingModel`; special tokens are the caller's."""

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes."""

    def encode_array(self, texts: pa.LargeBinaryArray, *, threads: int = 1) -> pa.LargeListArray:
        """Ids of each document (no nulls); values uint16 if the model's ids fit, else uint32."""


class Decoder(Protocol):
    """Ids to bytes, for one table of tokens.

    ids are integers of any width, numpy's or Arrow's, without nulls. `InputError` names the first
    that has no token: `ids[3]`, or `ids[2][3]` in the third of several lists.
    """

    def decode(self, ids: npt.NDArray[Any]) -> bytes:
        """Bytes of the ids of a 1-d array."""

    def decode_array(self, ids: pa.LargeListArray, *, threads: int = 1) -> pa.LargeBinaryArray:
        """Bytes of each list of ids."""


class Backend(Protocol):
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

        A token's merge joins the two tokens that remain of its bytes once everything of lower rank
        is merged. Where more than two remain the token is reached as a whole pre-token alone.
        Returns ((left rank, right rank, new rank) by new rank; ranks of the others, ascending).
        Raises `VocabularyError` where a merge needs a byte that has no rank.
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
    backend: Backend = importlib.import_module("bpe.python_backend").PythonBackend()
    return backend


@lru_cache(maxsize=1)
def _native_backend() -> Backend:
    try:
        module = importlib.import_module("bpe.native_backend")
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
