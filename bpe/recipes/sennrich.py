r"""BPE over characters with a mark for the end of a word: Sennrich, Haddow and Birch, 2016.

The worked example has the mark as a symbol of its own, and takes the pair that occurs first:

>>> from bpe.training import train
>>> shop = {b"press": 8, b"pressed": 3, b"printer": 4, b"printed": 5, b"printing": 6}
>>> settings = {"recipe": "sennrich", "recipe_options": {"end_mark": "separate"}}
>>> made = train(shop, merges=6, pretokenizer="spaces", tie_order="first", **settings)
>>> [left + right for left, right in made.model.library.content.merges]
['pr', 'in', 'prin', 'print', 'pre', 'pres']
>>> made.vocab_size  # <unk>, 10 characters and marks, 6 merges
17
>>> made.model.library.pieces("imprint pressed printing")
'i@@ m@@ print pres@@ s@@ e@@ d print@@ in@@ g'
>>> made.decode(made.encode("imprint pressed printing"))
b'i<unk>print pressed printing'
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.choice import get_backend
from bpe.backends.values import MergeList, MergeRules
from bpe.backends.word_counts import check_word_counts
from bpe.encoding.tokenizer_model import MOST_TOKENS
from bpe.engines.library_model import LibraryModel
from bpe.engines.sennrich_content import END, END_MARKS, UNKNOWN, SennrichContent
from bpe.errors import SettingsError
from bpe.recipes.registry import RecipeSettings
from bpe.rounds.run_coding import encode_segments
from bpe.tokenizer import Tokenizer

__all__ = ["train_sizes"]

_LOG = logging.getLogger(__name__)
_WHY_EARLY = {
    "min_frequency": "the best pair left is rarer than min_frequency={}",
    "exhausted": "no pair is left to merge",
}


def train_sizes(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    firsts: pa.Int64Array | None,
    settings: RecipeSettings,
    *,
    progress: Callable[[int, int], None] | None,
    training_record: Mapping[str, Any],
) -> dict[int, Tokenizer]:
    """Train, and give a tokenizer for each size; see `bpe.recipes.registry.Trainer`."""
    end_mark = settings.options["end_mark"]
    if end_mark not in END_MARKS:
        raise SettingsError(f"end_mark is {end_mark!r}: use one of {', '.join(END_MARKS)}")
    others = (UNKNOWN, *settings.special_tokens)
    rules = MergeRules(
        0,
        settings.tie_order or "greatest",
        settings.min_frequency or 1,
        forbidden=frozenset(token.encode() for token in others),
    )
    check_word_counts(words, counts, firsts, rules)
    if rules.tie_order == "first" and firsts is not None:
        order = pc.sort_indices(firsts)
        words, counts = words.take(order), counts.take(order)
    usable, left_out = _usable_words(words)
    left_out_uses = sum(counts.filter(left_out).to_pylist())
    words, counts = words.filter(usable), counts.filter(usable)
    alphabet, sequences = _symbols(words, is_attached=end_mark == "attached")
    for token in set(others).intersection(alphabet):
        raise SettingsError(f"special token {token!r} is a character of the alphabet")
    base = len(alphabet) + len(others)
    most = _most_merges(settings, base)
    can_merge = pa.array(np.diff(sequences.offsets.to_numpy()) > 1)
    learned = get_backend().train_segments(
        encode_segments(sequences.filter(can_merge)),
        counts.filter(can_merge),
        [symbol.encode() for symbol in alphabet],
        MergeRules(most, rules.tie_order, rules.min_frequency, forbidden=rules.forbidden),
        progress,
    )
    record = {
        "min_frequency": settings.min_frequency,
        "tie_order": settings.tie_order,
        "end_mark": end_mark,
        "left_out_words": pc.sum(left_out).as_py() or 0,
        "left_out_uses": left_out_uses,
        **training_record,
    }
    return {size: _tokenizer(learned, alphabet, size, settings, record) for size in settings.sizes}


def _most_merges(settings: RecipeSettings, base: int) -> int:
    largest, least = settings.sizes[-1], settings.sizes[0]
    if settings.by_merges:
        if base + largest > MOST_TOKENS:
            raise SettingsError(
                f"{largest:,} merges and {base:,} other tokens: a tokenizer has at most "
                f"{MOST_TOKENS:,} tokens"
            )
        return largest
    if largest > MOST_TOKENS:
        raise SettingsError(f"vocabulary size {largest:,}: at most {MOST_TOKENS:,} is possible")
    if least < base:
        raise SettingsError(
            f"vocabulary size {least}: at least {base:,} is needed, for the characters of the text "
            "and the special tokens"
        )
    return largest - base


def _usable_words(words: pa.LargeBinaryArray) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Which words can be trained on; and which others are no white space either."""
    first = pc.binary_slice(words, 0, 1) if len(words) else words
    is_space = pc.is_in(first.cast(pa.large_binary()), pa.array([b" ", b"\r", b"\n", b""]))
    is_valid = _valid_utf8(words)
    marked = pc.match_substring(words, END)
    usable = pc.and_(pc.and_not(is_valid, marked), pc.invert(is_space))
    return usable, pc.and_(pc.invert(usable), pc.invert(is_space))


def _valid_utf8(words: pa.LargeBinaryArray) -> pa.BooleanArray:
    try:
        words.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([_is_utf8(word) for word in words.to_pylist()], pa.bool_())
    return pa.array(np.ones(len(words), np.bool_))


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def _symbols(
    words: pa.LargeBinaryArray, *, is_attached: bool
) -> tuple[list[str], pa.LargeListArray]:
    """The alphabet by UTF-8 bytes, and each word as positions in it."""
    texts = words.cast(pa.large_string())
    sizes = pc.utf8_length(texts).to_numpy().astype(np.int64)
    code_points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
    ends = np.cumsum(sizes)
    keys = code_points.astype(np.int64) * 2
    if is_attached:
        keys[ends - 1] += 1
    else:
        keys = np.insert(keys, ends, 1)  # the mark alone: of no character
        ends = ends + np.arange(1, len(ends) + 1)
    found, places = np.unique(keys, return_inverse=True)
    written = [_written(key) for key in found.tolist()]
    by_bytes = sorted(range(len(written)), key=lambda place: written[place].encode())
    ranks = np.empty(len(written), np.uint32)
    ranks[by_bytes] = np.arange(len(written), dtype=np.uint32)
    offsets: npt.NDArray[np.int64] = np.concatenate((np.zeros(1, np.int64), ends))
    sequences = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ranks[places]))
    return [written[place] for place in by_bytes], sequences


def _written(key: int) -> str:
    character, ends = divmod(key, 2)
    return (chr(character) if key > 1 else "") + (END if ends else "")


def _tokenizer(
    learned: MergeList,
    alphabet: list[str],
    size: int,
    settings: RecipeSettings,
    record: Mapping[str, Any],
) -> Tokenizer:
    wanted = size - len(alphabet) - 1 - len(settings.special_tokens)
    if settings.by_merges:
        wanted = size
    count = min(wanted, len(learned.merges))
    reason = learned.stop_reason if count < wanted else "vocab_size"
    if reason != "vocab_size":
        why = _WHY_EARLY[reason].format(settings.min_frequency)
        _LOG.warning("stopped at %d of %d merges: %s", count, wanted, why)
    merges = [(left.decode(), right.decode()) for left, right in learned.merges[:count]]
    content = SennrichContent(
        settings.options["end_mark"],
        (UNKNOWN, *alphabet, *(left + right for left, right in merges)),
        tuple(merges),
        settings.special_tokens,
    )
    of_size = {
        **({} if settings.by_merges else {"vocab_size": size}),
        "merges": count,
        "stop_reason": reason,
        "last_merge_count": learned.counts[count - 1] if count else None,
    }
    return Tokenizer(LibraryModel("sennrich", content.render(), {**of_size, **record}))
