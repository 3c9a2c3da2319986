"""WordPiece by likelihood: pieces that raise the likelihood of the text most, in BERT's files.

Words that hold a character without a piece, or are longer than `max_word_chars`, are `[UNK]`.
Encoding takes the longest piece at each place, so that the order of merges plays no part.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.recipe_values import WordPieceList, WordPieceRules
from bpe.encoding.tokenizer_model import MOST_TOKENS
from bpe.engines.library_model import LibraryModel
from bpe.errors import SettingsError
from bpe.recipes.registry import RecipeSettings
from bpe.tokenizer import Tokenizer

__all__ = ["SPECIALS", "train_sizes"]

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Tokens with the first ids."""

_LOG = logging.getLogger(__name__)
_PRE_TOKENIZERS = {"bert": "BertPreTokenizer", "whitespace": "WhitespaceSplit"}


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
    pre_tokenizer = _PRE_TOKENIZERS[settings.pretokenizer]
    for token in set(settings.special_tokens).intersection(SPECIALS):
        raise SettingsError(f"special token {token!r} is there already: leave it out")
    largest = settings.sizes[-1]
    extra = len(settings.special_tokens)
    rules = WordPieceRules(
        max_tokens=MOST_TOKENS - extra if settings.by_merges else max(largest - extra, 0),
        max_merges=largest if settings.by_merges else MOST_TOKENS,
        min_frequency=settings.min_frequency or 1,
        tie_order=settings.tie_order or "id",
        reserved=SPECIALS,
        forbidden=settings.special_tokens,
        max_word_chars=settings.options["max_word_chars"],
        limit_alphabet=settings.options["limit_alphabet"],
    )
    learned = get_backend().train_wordpiece(words, counts, firsts, rules, progress)
    for token in set(settings.special_tokens).intersection(learned.tokens):
        raise SettingsError(
            f"special token {token!r} is a character of the alphabet: take another text for it"
        )
    made = _made_by(learned)
    return {
        size: _tokenizer(learned, made, size, settings, pre_tokenizer, training_record)
        for size in settings.sizes
    }


def _made_by(learned: WordPieceList) -> list[int]:
    """How many tokens there are before the first merge, after it, and so on."""
    known = set(learned.tokens)
    named = [left + right.removeprefix("##") for left, right, *_ in learned.merges]
    new = sum(1 for token in named if token in known and token not in SPECIALS)
    counts = [len(learned.tokens) - new]
    for token in named:
        counts.append(counts[-1] + (token not in SPECIALS))
    return counts


def _tokenizer(
    learned: WordPieceList,
    made: list[int],
    size: int,
    settings: RecipeSettings,
    pre_tokenizer: str,
    training_record: Mapping[str, Any],
) -> Tokenizer:
    extra = len(settings.special_tokens)
    if settings.by_merges:
        merges = min(size, len(learned.merges))
    else:
        if made[0] + extra > size:
            raise SettingsError(
                f"vocabulary size {size}: at least {made[0] + extra:,} is needed, for "
                f"{len(SPECIALS) + extra} special tokens and {made[0] - len(SPECIALS):,} pieces of "
                "one character; ask for more, or for a smaller alphabet (limit_alphabet)"
            )
        merges = sum(1 for count in made[1:] if count + extra <= size)
    is_early = merges < size if settings.by_merges else made[merges] + extra < size
    if is_early:
        _LOG.warning("stopped at %d merges: no pair is left to merge", merges)
    tokens = [*learned.tokens[: made[merges]], *settings.special_tokens]
    record = {
        **({} if settings.by_merges else {"vocab_size": size}),
        "merges": merges,
        "min_frequency": settings.min_frequency,
        "tie_order": settings.tie_order,
        **settings.options,
        "stop_reason": "exhausted" if is_early else "vocab_size",
        "left_out_words": learned.left_out_words,
        "left_out_uses": learned.left_out_uses,
    }
    special = [*SPECIALS, *settings.special_tokens]
    content = _render(tokens, special, pre_tokenizer, settings.options["max_word_chars"])
    return Tokenizer(LibraryModel("tokenizers", content, {**record, **training_record}))


def _render(tokens: list[str], special: list[str], pre_tokenizer: str, longest: int) -> bytes:
    """tokenizer.json."""
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": vocab[text], "content": text, **flags, "special": True} for text in special
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": pre_tokenizer},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": longest,
            "vocab": vocab,
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode()
