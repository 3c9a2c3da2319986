"""Checks of counted words before training, for every backend."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.recipe_values import WordPieceRules
from bpe.backends.values import MergeRules
from bpe.errors import CountTableError, SettingsError

__all__ = ["check_word_counts"]


def check_word_counts(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    first_positions: pa.Int64Array | None,
    rules: MergeRules | WordPieceRules,
) -> None:
    """Refuse words that cannot be trained on; see `Backend.train_words` for the arguments.

    Raises `SettingsError` if the tie order `first` lacks its positions, `CountTableError` for a
    count below 1 and for a word that is there twice.
    """
    if rules.tie_order == "first" and first_positions is None:
        raise SettingsError(
            "tie order 'first' needs the first position of each word: "
            "count with first_positions=True"
        )
    lowest = pc.min(counts).as_py()
    if lowest is not None and lowest < 1:
        word = words[pc.index(counts, lowest).as_py()].as_py()
        raise CountTableError(f"word {word!r} has count {lowest}: counts start at 1")
    if len(words) < 2 or pc.all(pc.less(words[:-1], words[1:])).as_py():
        return  # in ascending order, as counting leaves them
    if pc.count_distinct(words).as_py() == len(words):
        return
    repeats = pc.value_counts(words)
    worst = pc.index(repeats.field("counts"), pc.max(repeats.field("counts"))).as_py()
    word = repeats.field("values")[worst].as_py()
    raise CountTableError(f"word {word!r} has several counts: add them up first")
