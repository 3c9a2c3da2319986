"""Training: counts of pre-tokens, or raw documents, to a tokenizer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.values import MAX_COUNT, MergeList, MergeRules, ProgressCallback
from bpe.counting import (
    apply_special_text,
    check_count_metadata,
    read_count_metadata,
)
from bpe.encoding.id_arrays import Texts, binary_array
from bpe.encoding.special_tokens import SpecialTokens
from bpe.encoding.tokenizer_model import MOST_TOKENS
from bpe.encoding.vocabulary_checks import check_tie_order
from bpe.errors import CountTableError, SettingsError
from bpe.pretokenizing.schemes import Scheme, get_scheme
from bpe.recipes.registry import RecipeSettings, train_recipe
from bpe.tokenizer import Tokenizer

__all__ = ["make_rules", "make_tokenizer", "read_counts", "train", "train_raw", "warn_if_short"]

_LOG = logging.getLogger(__name__)
_BASE_TOKENS = 256

_STOPPED_EARLY = {
    "min_frequency": "the best pair left is rarer than min_frequency={min_frequency}",
    "exhausted": "no pair is left to merge",
}


def train(
    counts: Mapping[bytes, int] | pa.Table,
    vocab_size: int | None = None,
    *,
    pretokenizer: str,
    recipe: str = "bpe",
    recipe_options: Mapping[str, Any] | None = None,
    merges: int | None = None,
    tie_order: str | None = None,
    min_frequency: int | None = None,
    special_tokens: Sequence[str] = (),
    max_token_bytes: int | None = None,
    max_words: int | None = None,
    forbidden_parts: Sequence[bytes] = (),
    progress: ProgressCallback | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Learn a tokenizer from counted pre-tokens; no merge crosses the ends of a pre-token.

    Args:
        counts: pre-tokens with their counts, or a table of `count_pretokens`. With the tie order
            `first`, a mapping is in the order of first occurrence, and a table has the column
            `first`.
        vocab_size: 256 bytes, merges and special tokens. Training stops earlier if the best count
            is below `min_frequency`, or if no pair is left; the training record names the reason.
        pretokenizer: scheme that made the pre-tokens; it must be that of the table.
        recipe: `bpe` (byte-level BPE), or another of `bpe.recipes.registry.RECIPES`.
        recipe_options: further options of that recipe.
        merges: how many merges to make, in place of `vocab_size`.
        tie_order: which of several pairs with the highest count is merged: `hf` (default), `id`,
            `bytes` or `first`; other recipes have others.
        min_frequency: stop when the best count is below it (default: 2; other recipes have
            others).
        max_token_bytes: never make a longer token; of the recipe `bpe`, as the next two.
        max_words: never make a token of more words.
        forbidden_parts: never make a token that contains one of these.
        special_tokens: get the last ids, in this order; no merge spells one.
        training_record: JSON values to keep in the tokenizer's training record.
        progress: called with (merges made, merges asked for) now and then.

    Raises:
        SettingsError: a value cannot be used.
        CountTableError: counts are not positive, not integers, or of another scheme.

    Examples:
        >>> train({b"aaaa": 2, b"bc": 5}, 258, pretokenizer="gpt2").merges
        [(b'a', b'a'), (b'b', b'c')]
    """
    settings = recipe_settings(
        recipe,
        vocab_size,
        merges,
        pretokenizer=pretokenizer,
        tie_order=tie_order,
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        options=recipe_options,
    )
    if recipe != "bpe":
        if (max_token_bytes, max_words, *forbidden_parts) != (None, None):
            raise SettingsError(
                f"recipe {recipe!r} takes no limits of tokens: leave max_token_bytes, max_words "
                "and forbidden_parts out"
            )
        columns = read_counts(counts, get_scheme(pretokenizer))
        made = train_recipe(*columns, settings, progress=progress, training_record=training_record)
        return made[settings.sizes[0]]
    vocab_size = settings.sizes[0]
    rules = make_rules(
        vocab_size,
        str(settings.tie_order),
        settings.min_frequency or 1,
        special_tokens,
        max_token_bytes,
        max_words=max_words,
        forbidden_parts=forbidden_parts,
    )
    columns = read_counts(counts, get_scheme(pretokenizer))
    return make_tokenizer(
        get_backend().train_words(*columns, rules, progress),
        vocab_size=vocab_size,
        rules=rules,
        pretokenizer=pretokenizer,
        special_tokens=special_tokens,
        training_record=training_record,
    )


def recipe_settings(
    recipe: str,
    vocab_size: int | None,
    merges: int | None,
    *,
    pretokenizer: str,
    tie_order: str | None = None,
    min_frequency: int | None = None,
    special_tokens: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> RecipeSettings:
    """The settings of a training, checked as far as the recipe says; see `train`.

    Those of `bpe` have its size, whichever was given.
    """
    if isinstance(special_tokens, str):
        raise _one_string(special_tokens)
    size = merges if vocab_size is None else vocab_size
    if size is None or (vocab_size is not None and merges is not None):
        raise SettingsError("give either vocab_size or merges")
    if size < 0:
        raise SettingsError(f"{size} is no number of tokens or merges: give one from 0 on")
    by_merges = vocab_size is None
    if recipe == "bpe" and by_merges:
        size, by_merges = _BASE_TOKENS + size + len(special_tokens), False
    return RecipeSettings(
        recipe,
        pretokenizer,
        (size,),
        by_merges=by_merges,
        tie_order=tie_order,
        min_frequency=min_frequency,
        special_tokens=tuple(special_tokens),
        options=options or {},
    )


def train_raw(
    documents: Texts,
    vocab_size: int,
    *,
    tie_order: str = "hf",
    min_frequency: int = 2,
    special_tokens: Sequence[str] = (),
    special_text: str = "text",
    max_token_bytes: int | None = None,
    max_words: int | None = None,
    forbidden_parts: Sequence[bytes] = (),
    progress: ProgressCallback | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Learn a tokenizer of the scheme `none` from raw documents: merges cross all but their ends.

    Errors and arguments are those of `train`, except:

    - `documents`: any number; an Arrow array may have any string or binary type.
    - `special_text`: meaning of a special token's text: `text` is ordinary text; `allow` ends the
      document before it and starts another one after it; `reject` is an `InputError`.

    Examples:
        >>> train_raw([b"ba az"], 259, min_frequency=1).merges
        [(b'a', b'z'), (b'a', b' '), (b'b', b'a ')]
    """
    rules = make_rules(
        vocab_size,
        tie_order,
        min_frequency,
        special_tokens,
        max_token_bytes,
        max_words=max_words,
        forbidden_parts=forbidden_parts,
    )
    texts = binary_array(documents, "documents")
    texts, _ = apply_special_text(texts, special_text, special_tokens)
    learned = get_backend().train_raw(texts, rules, progress)
    return make_tokenizer(
        learned,
        vocab_size=vocab_size,
        rules=rules,
        pretokenizer="none",
        special_tokens=special_tokens,
        training_record=training_record,
    )


def make_rules(
    vocab_size: int,
    tie_order: str,
    min_frequency: int,
    special_tokens: Sequence[str],
    max_token_bytes: int | None,
    *,
    max_words: int | None = None,
    forbidden_parts: Sequence[bytes] = (),
) -> MergeRules:
    """The rules of a training, checked; see `train` for the arguments and errors."""
    if isinstance(special_tokens, str):
        raise _one_string(special_tokens)
    for token in special_tokens:
        if not token or special_tokens.count(token) > 1:
            fault = "twice" if token else "empty"
            raise SettingsError(f"special token {token!r} is {fault}: give each its own text")
    check_tie_order(tie_order)
    lowest = _BASE_TOKENS + len(special_tokens)
    if vocab_size > MOST_TOKENS:
        raise SettingsError(
            f"vocab_size is {vocab_size:,}: a tokenizer has at most {MOST_TOKENS:,} tokens"
        )
    if vocab_size < lowest:
        raise SettingsError(
            f"vocab_size is {vocab_size}: it must be at least {lowest}, "
            f"{_BASE_TOKENS} bytes and {len(special_tokens)} special tokens"
        )
    specials = SpecialTokens({token: index for index, token in enumerate(special_tokens)})
    return MergeRules(
        vocab_size - lowest,
        tie_order,
        min_frequency,
        max_token_bytes,
        specials.forbidden_bytes,
        max_words,
        tuple(forbidden_parts),
    )


def _one_string(tokens: str) -> SettingsError:
    return SettingsError(f"special_tokens is the str {tokens!r}: pass a list, [{tokens!r}]")


def read_counts(
    counts: Mapping[bytes, int] | pa.Table, scheme: Scheme
) -> tuple[pa.LargeBinaryArray, pa.Int64Array, pa.Int64Array | None]:
    """Words, their counts and their first positions, where known; see `train` for the errors."""
    if isinstance(counts, pa.Table):
        _check_scheme(counts, scheme.name, scheme.unicode_version)
        return _table_columns(counts)
    return _mapping_columns(counts)


def _check_scheme(table: pa.Table, scheme: str, unicode_version: str) -> None:
    # A table without our metadata was made with anything; whoever hands it over vouches for it.
    if b"beam_bpe.schema" not in (table.schema.metadata or {}):
        return
    found = read_count_metadata(table)
    expected = {**found.__dict__, "scheme": scheme, "unicode_version": unicode_version}
    check_count_metadata(found, type(found)(**expected))


def _table_columns(
    table: pa.Table,
) -> tuple[pa.LargeBinaryArray, pa.Int64Array, pa.Int64Array | None]:
    kinds = {"word": pa.large_binary(), "count": pa.int64(), "first": pa.int64()}
    columns: list[pa.Array | None] = []
    for name, kind in kinds.items():
        if name not in table.column_names:
            if name != "first":
                raise CountTableError(
                    f"the count table has no column {name!r}, only {table.column_names}: "
                    "it needs word (binary) and count (int64)"
                )
            columns.append(None)
            continue
        column = table[name]
        if column.null_count:
            raise CountTableError(f"column {name!r} of the count table holds nulls: drop them")
        try:
            columns.append(
                pa.concat_arrays(
                    [each.cast(kind) for each in column.chunks] or [pa.array([], kind)]
                )
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise CountTableError(
                f"column {name!r} of the count table is {column.type}, not {kind}: {error}"
            ) from error
    return columns[0], columns[1], columns[2]


def _mapping_columns(
    counts: Mapping[bytes, int],
) -> tuple[pa.LargeBinaryArray, pa.Int64Array, pa.Int64Array]:
    for word, count in counts.items():
        if not isinstance(word, bytes):
            raise CountTableError(f"word {word!r} is a {type(word).__name__}: words are bytes")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MAX_COUNT:
            raise CountTableError(
                f"word {word!r} has count {count!r}: counts are integers from 1 to {MAX_COUNT}"
            )
    return (
        pa.array(list(counts), pa.large_binary()),
        pa.array(list(counts.values()), pa.int64()),
        pa.array(range(len(counts)), pa.int64()),
    )


def warn_if_short(made: int, vocab_size: int, stop_reason: str, min_frequency: int) -> None:
    """Log a warning if a training ended with fewer tokens than were asked for."""
    if made < vocab_size:
        reason = _STOPPED_EARLY[stop_reason].format(min_frequency=min_frequency)
        _LOG.warning("stopped at %d of %d tokens: %s", made, vocab_size, reason)


def make_tokenizer(
    learned: MergeList,
    *,
    vocab_size: int,
    rules: MergeRules,
    pretokenizer: str,
    special_tokens: Sequence[str],
    training_record: Mapping[str, Any] | None,
) -> Tokenizer:
    """The tokenizer of merges that were learned by these rules; see `train` for the arguments.

    Its training record says how training ended; a warning is logged if that was early.
    """
    made = _BASE_TOKENS + len(learned.merges) + len(special_tokens)
    warn_if_short(made, vocab_size, learned.stop_reason, rules.min_frequency)
    record: dict[str, Any] = {
        "vocab_size": vocab_size,
        "min_frequency": rules.min_frequency,
        "max_token_bytes": rules.max_token_bytes,
        "stop_reason": learned.stop_reason,
        "last_merge_count": learned.counts[-1] if learned.counts else None,
    }
    if rules.max_words is not None:
        record["max_words"] = rules.max_words
    if rules.forbidden_parts:
        record["forbidden_parts"] = [
            part.decode("utf-8", "backslashreplace") for part in rules.forbidden_parts
        ]
    return Tokenizer.from_merges(
        learned.merges,
        pretokenizer=pretokenizer,
        tie_order=rules.tie_order,
        special_tokens=special_tokens,
        training={**record, **(training_record or {})},
    )
