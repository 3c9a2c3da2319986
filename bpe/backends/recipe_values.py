"""Values that go into the trainers of other recipes than BPE, and come out of them."""

from __future__ import annotations

from dataclasses import dataclass

from bpe.errors import SettingsError

__all__ = ["WordPieceList", "WordPieceRules"]


@dataclass(frozen=True)
class WordPieceRules:
    """How WordPiece chooses the next merge, what it trains on, and when it stops.

    max_tokens: stop at so many, reserved ones among them. max_merges: stop after so many.
    min_frequency: a pair that occurs less often is not merged; at least 1.
    tie_order: which of several pairs with the highest score is merged. `id`: the lower pair of
        ids; `bytes`: the lower left, then the lower right written form by UTF-8 bytes; `first`:
        the pair that occurs first, by word and place.
    reserved: tokens with the first ids; a merge that spells one keeps its id.
    forbidden: written forms that no merge may make.
    max_word_chars: longest word, in code points; at least 1.
    limit_alphabet: so many characters, the most frequent, ties to the lower code point; None: all.
    """

    max_tokens: int
    max_merges: int
    min_frequency: int = 5
    tie_order: str = "id"
    reserved: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    max_word_chars: int = 100
    limit_alphabet: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_frequency", "max_word_chars", "limit_alphabet"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name} is {value}: it must be at least 1")


@dataclass(frozen=True)
class WordPieceList:
    """Result of a training of WordPiece.

    tokens: written forms by id: reserved ones, the alphabet by UTF-8 bytes, those of merges.
    merges: (left, right, count of the pair, of the left part, of the right part), in the order
        they were made.
    stop_reason: `vocab_size` (a limit was reached), or `exhausted` (no pair is left that may be
        merged).
    left_out_words, left_out_uses: words that were not trained on, and how often they occur.
    """

    tokens: list[str]
    merges: list[tuple[str, str, int, int, int]]
    stop_reason: str
    left_out_words: int
    left_out_uses: int
