"""What a backend does: counting, training, encoding and decoding.

There are two implementations: `bpe.reference.portable_backend` in Python and
`bpe.backends.native_backend` in C++. Both give the same bytes for everything defined here, and both
are tested against `bpe.reference.naive`. `bpe.backends.choice` says which one is in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.recipe_values import WordPieceList, WordPieceRules
from bpe.backends.values import (
    CutSegments,
    EncodingModel,
    MergeList,
    MergeRules,
    ProgressCallback,
    SimulatedMerges,
    StopBefore,
)
from bpe.encoding.added_tokens import Find, Segment
from bpe.pretokenizing.schemes import Scheme

__all__ = ["Backend", "Decoder", "Encoder", "RoundBackend"]


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

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Cut a text into ordinary text and added tokens, in order."""


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
        """Cut sequences between any two tokens that are no heavy pair, and sum up equal parts.

        heavy_left, heavy_right: pairs in rank order. sizes: descending; the first n heavy pairs
        count as heavy for the largest n whose result takes no more than cap_bytes, or else for
        the last. A segment takes its coded bytes and 1 more, head and tail their coded bytes.
        open_left, open_right: the first sequence goes on from elsewhere, the last goes on
        elsewhere: their outer parts become head and tail and are no segments, however short.
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

    def train_segments(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from run-coded sequences of ids of `tokens`, with weights.

        segments: in the order of their first occurrence, for the tie order `first`; distinct
        or not. Errors as of `simulate_merges`.
        """

    def train_wordpiece(
        self,
        words: pa.LargeBinaryArray,
        counts: pa.Int64Array,
        first_positions: pa.Int64Array | None,
        rules: WordPieceRules,
        progress: ProgressCallback | None = None,
    ) -> WordPieceList:
        """Learn the pieces of WordPiece by likelihood from distinct words with counts.

        first_positions is needed by the tie order `first` alone. Which words are left out:
        `bpe.reference.wordpiece`. Raises `CountTableError` as `train_words` does, and if all
        characters together occur more than `MAX_COUNT` times.
        """

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
