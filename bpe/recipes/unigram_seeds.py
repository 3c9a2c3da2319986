"""Seed pieces of a Unigram vocabulary: every substring of words with its exact number of uses.

SentencePiece's own seeds count each distinct word the same, whatever its count. These count uses.
A substring that is always followed by one same character within a word is no seed: the longer one
says as much. What comes out plays the part of the suffix array of Kudo (2018), and is a sum over
words, so that words may be spread over workers in any way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import CountTableError

__all__ = [
    "BLANK",
    "TrainingWords",
    "add_substrings",
    "count_substrings",
    "join_seeds",
    "keep_to",
    "pick_seeds",
    "training_words",
]

BLANK = "\u2581"
"""SentencePiece writes a blank so; each word begins with one."""

LONGEST_WORD = 4192
"""Bytes of a word at most: SentencePiece drops longer ones without a word."""

# White_Space of Unicode, in RE2's syntax.
_BLANK_ROW = (
    r"^[\x{9}-\x{d} \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
# NUL ends a text for SentencePiece; it uses the other two signs itself; lines end its rows.
_UNUSABLE = "[\\x{0}\t\n\r\\x{2581}\\x{2585}]"
_CHUNK_BYTES = 1 << 20
_NO_FOLLOWER = -1
_MOST_USES = 2**62


@dataclass(frozen=True)
class TrainingWords:
    """Words that SentencePiece can be trained on.

    words: large_string. counts: int64. left_out_words, left_out_uses: of those that it cannot take.
    """

    words: pa.LargeStringArray
    counts: pa.Int64Array
    left_out_words: int
    left_out_uses: int


def training_words(words: pa.LargeBinaryArray, counts: pa.Int64Array) -> TrainingWords:
    """The words of a count table that can be trained on, in their order.

    words: pre-tokens of the scheme `whitespace`: white space is passed over. Words that are no
    valid UTF-8, hold a tab, a line's end, NUL, U+2581 or U+2585, or are longer than `LONGEST_WORD`
    bytes, are left out, and counted.
    """
    fits = pc.less_equal(pc.binary_length(words), LONGEST_WORD)
    is_text = pc.and_(fits, _valid(words))
    texts = words.filter(is_text).cast(pa.large_string())
    uses = counts.filter(is_text)
    is_word = pc.invert(pc.match_substring_regex(texts, _BLANK_ROW))
    usable = pc.and_(is_word, pc.invert(pc.match_substring_regex(texts, _UNUSABLE)))
    unusable = pc.and_(is_word, pc.invert(usable))
    left_out = pc.sum(pc.filter(counts, pc.invert(is_text))).as_py() or 0
    left_out += pc.sum(pc.filter(uses, unusable)).as_py() or 0
    count = len(words) - len(texts) + (pc.sum(unusable).as_py() or 0)
    return TrainingWords(texts.filter(usable), uses.filter(usable), count, left_out)


def keep_to(found: TrainingWords, lowest: tuple[int, bytes]) -> TrainingWords:
    """The words up to one: more frequent ones, and those as frequent up to it by bytes."""
    count, word = lowest
    words = found.words.cast(pa.large_binary())
    before = pc.less_equal(words, pa.scalar(word, pa.large_binary()))
    is_even = pc.and_(pc.equal(found.counts, count), before)
    kept = pc.or_(pc.greater(found.counts, count), is_even)
    return replace(found, words=found.words.filter(kept), counts=found.counts.filter(kept))


def _valid(words: pa.LargeBinaryArray) -> pa.BooleanArray:
    """Which words are valid UTF-8."""
    try:
        words.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([_is_valid(word.as_py()) for word in words], pa.bool_())
    return pa.array(np.ones(len(words), np.bool_))


def _is_valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def count_substrings(
    words: pa.LargeStringArray, counts: pa.Int64Array, longest: int
) -> Iterator[pa.Table]:
    """Substrings of 2 to `longest` characters of words, a blank's sign before each.

    Yields tables for parts of the words, to be added by `add_substrings`. Columns: `word`
    (large_binary, distinct), `count` (int64), and `low` and `high` (int32), the least and the
    largest character that follows one in a word, -1 for a word's end.
    """
    sizes = np.cumsum(pc.binary_length(words).to_numpy())
    start = 0
    while start < len(words):
        done = int(sizes[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(sizes, done + _CHUNK_BYTES, side="right")))
        yield _count_part(words[start:end], counts[start:end], longest)
        start = end


def _count_part(words: pa.LargeStringArray, counts: pa.Int64Array, longest: int) -> pa.Table:
    """The substrings of a few words."""
    blank, nothing = (pa.scalar(each, pa.large_string()) for each in (BLANK, ""))
    text = pc.binary_join_element_wise(blank, words, nothing)
    _, offsets, buffer = text.buffers()
    borders = np.frombuffer(offsets, np.int64)[text.offset :][: len(text) + 1]
    data = buffer[int(borders[0]) : int(borders[-1])].to_pybytes()
    ends = np.cumsum(pc.utf8_length(text).to_numpy())
    codes = np.frombuffer(data.decode().encode("utf-32-le"), np.int32)
    raw = np.frombuffer(data, np.uint8)
    places = np.append(np.flatnonzero((raw & 0xC0) != 0x80), len(raw))
    word = np.repeat(np.arange(len(text)), np.diff(ends, prepend=0))
    left = ends[word] - np.arange(len(codes))  # characters of the word from each place on
    uses = counts.to_numpy()[word]
    parts = []
    for size in range(2, longest + 1):
        begins = np.flatnonzero(left >= size)
        if not len(begins):
            break
        goes_on = left[begins] > size
        follows = np.full(len(begins), _NO_FOLLOWER, np.int32)
        follows[goes_on] = codes[begins[goes_on] + size]
        pieces = _slices(raw, places[begins], places[begins + size])
        columns = [pieces, uses[begins], follows, follows]
        parts.append(_add(pa.table(columns, names=["word", "count", "low", "high"])))
    return pa.concat_tables(parts) if parts else _NOTHING


def _slices(
    data: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> pa.LargeBinaryArray:
    """Parts of the bytes, copied."""
    lengths = ends - begins
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    index = np.arange(int(offsets[-1])) + np.repeat(begins - offsets[:-1], lengths)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[index])]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(begins), buffers)


def add_substrings(tables: Sequence[pa.Table]) -> pa.Table:
    """The sum of tables of `count_substrings`; `CountTableError` where it is too large."""
    return _add(pa.concat_tables([_NOTHING, *tables]))


def _add(table: pa.Table) -> pa.Table:
    if float(np.sum(table["count"].to_numpy().astype(np.float64))) > _MOST_USES:
        raise CountTableError("the words occur too often to be counted: train on a sample")
    added = table.group_by("word").aggregate([("count", "sum"), ("low", "min"), ("high", "max")])
    return added.select(["word", "count_sum", "low_min", "high_max"]).rename_columns(
        _NOTHING.schema.names
    )


_NOTHING = pa.schema(
    [
        pa.field("word", pa.large_binary()),
        pa.field("count", pa.int64()),
        pa.field("low", pa.int32()),
        pa.field("high", pa.int32()),
    ]
).empty_table()


def pick_seeds(table: pa.Table, most: int) -> pa.Table:
    """The best seeds of whole sums: columns `word` and `count`, of `most` rows at most.

    A seed is used twice at least. They are in the order of uses times characters, the largest
    first, and then of bytes; so the best of several parts are the best of all.
    """
    free = pc.or_(pc.not_equal(table["low"], table["high"]), pc.less(table["low"], 0))
    kept = table.filter(pc.and_(free, pc.greater_equal(table["count"], 2)))
    lengths = pc.utf8_length(kept["word"].cast(pa.large_string()))
    # As float64 first: a product beyond int64 would be small again.
    if len(kept) and float(pc.max(kept["count"]).as_py()) * pc.max(lengths).as_py() > _MOST_USES:
        raise CountTableError("the words occur too often to be counted: train on a sample")
    scored = kept.append_column("score", pc.multiply(kept["count"], lengths.cast(pa.int64())))
    return join_seeds([scored], most)


def join_seeds(tables: Sequence[pa.Table], most: int) -> pa.Table:
    """The best of several tables of `pick_seeds`, of distinct seeds, in the same order."""
    if not tables:
        return _NOTHING
    table = pa.concat_tables(tables)
    order = pc.sort_indices(table, [("score", "descending"), ("word", "ascending")])
    return table.take(order[:most])
