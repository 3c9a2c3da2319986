"""The specification after the interface of a backend: plain Python, exact, slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from bpe.backends.protocol import Decoder, Encoder
from bpe.backends.recipe_values import WordPieceList, WordPieceRules
from bpe.backends.values import EncodingModel, MergeList, MergeRules, ProgressCallback
from bpe.backends.word_counts import check_word_counts
from bpe.pretokenizing.schemes import Scheme
from bpe.reference.encoding import ReferenceDecoder, ReferenceEncoder
from bpe.reference.ranks import recover_merges
from bpe.reference.rounds import ReferenceRounds
from bpe.reference.training import learn_merges, learn_symbol_merges
from bpe.reference.wordpiece import learn_wordpieces
from bpe.rounds.run_coding import decode_runs

__all__ = ["PythonBackend"]


class PythonBackend(ReferenceRounds):
    """Counting, training and encoding in plain Python; see `bpe.backends.protocol.Backend`."""

    name = "python"

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
        the documents. threads is for other implementations: this one holds Python's lock.
        """
        del threads
        counts: Counter[str] = Counter()
        firsts: dict[str, int] = {}
        start = 0
        for text in texts:
            data = text.as_py()
            pieces = scheme.split_text(data.decode("utf-8", "surrogateescape"))
            counts.update(pieces)
            if first_positions:
                for piece in pieces:
                    firsts.setdefault(piece, start)
                    start += len(_to_bytes(piece))
        words = sorted((_to_bytes(piece), piece) for piece in counts)
        return (
            pa.array([word for word, _ in words], pa.large_binary()),
            pa.array([counts[piece] for _, piece in words], pa.int64()),
            pa.array([firsts[piece] for _, piece in words], pa.int64())
            if first_positions
            else None,
        )

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
        check_word_counts(words, counts, first_positions, rules)
        return learn_merges(_rows(words, counts, first_positions, rules), rules, progress)

    def train_raw(
        self,
        documents: pa.LargeBinaryArray,
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from documents (no nulls); a merge crosses anything but their ends."""
        return learn_merges(((text.as_py(), 1) for text in documents), rules, progress)

    def train_segments(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        progress: ProgressCallback | None = None,
    ) -> MergeList:
        """Learn merges from run-coded sequences of ids of `tokens`, with weights."""
        rows = zip(segments.to_pylist(), weights.to_pylist(), strict=True)
        sequences = ((decode_runs(coded), weight) for coded, weight in rows)
        return learn_symbol_merges(sequences, tokens, rules, progress)

    def train_wordpiece(
        self,
        words: pa.LargeBinaryArray,
        counts: pa.Int64Array,
        first_positions: pa.Int64Array | None,
        rules: WordPieceRules,
        progress: ProgressCallback | None = None,
    ) -> WordPieceList:
        """Learn the pieces of WordPiece by likelihood from distinct words with counts."""
        del progress
        check_word_counts(words, counts, first_positions, rules)
        return learn_wordpieces(_rows(words, counts, first_positions, rules), rules)

    def make_encoder(self, model: EncodingModel, *, cache_bytes: int = 64 << 20) -> Encoder:
        """Make an encoder; cache_bytes bounds what it remembers of pre-tokens."""
        return ReferenceEncoder(model, cache_bytes=cache_bytes)

    def make_decoder(self, tokens: Mapping[int, bytes]) -> Decoder:
        """Make a decoder; tokens: id to bytes, those of special tokens among them."""
        return ReferenceDecoder(tokens)

    def recover_merges(
        self, ranks: Mapping[bytes, int]
    ) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Find the merges that a rank table stands for, and the tokens that no merge makes."""
        return recover_merges(ranks)


def _rows(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    first_positions: pa.Int64Array | None,
    rules: MergeRules | WordPieceRules,
) -> list[tuple[bytes, int]]:
    """Words with their counts; for the tie order `first` in the order of the text."""
    rows = list(zip(words.to_pylist(), counts.to_pylist(), strict=True))
    if rules.tie_order == "first" and first_positions is not None:
        # Pre-tokens do not overlap: the order of their starts is the order of their places.
        order = np.argsort(first_positions.to_numpy(), kind="stable")
        rows = [rows[index] for index in order.tolist()]
    return rows


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
