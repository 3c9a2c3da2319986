"""More merges for a tokenizer that is there: its own stay, with all ids.

Merges that are new come after the old ones, and none makes a token that was there. So a text has
first its old tokens, and where no new merge applies it keeps them.

    >>> from bpe.training import train
    >>> old = train({b"low": 9}, 258, pretokenizer="gpt2", special_tokens=["<|end|>"])
    >>> new = extend({b"lower": 9, b"wider": 5}, old, 260)
    >>> new.encode("lowlow").tolist() == old.encode("lowlow").tolist()
    True
    >>> new.special_tokens, new.id_to_token(258)
    ({'<|end|>': 257}, b'er')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.values import EncodingModel, MergeList, MergeRules
from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.tokenizer_model import MOST_TOKENS, TokenizerModel
from bpe.errors import SettingsError, VocabularyError
from bpe.pretokenizing.schemes import get_scheme
from bpe.rounds.shard_state import ShardState, state_id_type
from bpe.second_stage import SUPERBPE, continue_merges
from bpe.tokenizer import Tokenizer
from bpe.training import make_rules, read_counts, warn_if_short

__all__ = ["check_base", "extend", "extend_to_sizes"]


def extend(
    counts: Mapping[bytes, int] | pa.Table,
    base: Tokenizer,
    vocab_size: int,
    *,
    tie_order: str | None = None,
    min_frequency: int = 2,
    special_tokens: Sequence[str] = (),
    max_token_bytes: int | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Go on from any tokenizer of byte-level BPE: it keeps its merges and ids, and learns more.

    New tokens have the ids after the largest; new special tokens have the last ones. A text whose
    ids hold none of them has the ids that the old tokenizer gives.

    Args:
        counts: pre-tokens of the tokenizer's scheme, as for `bpe.train`.
        base: its added tokens stay too.
        vocab_size: of all ids: old ones, new merges and new special tokens.
        tie_order: `hf`, `id` or `bytes`; None for that of the base's training, or `hf`.
        min_frequency: as in `bpe.train`; so are the others.
        special_tokens: new ones; those that the base has are left out.
        max_token_bytes: of new tokens.
        training_record: JSON values to keep in the training record.

    Raises:
        SettingsError: a value cannot be used.
        VocabularyError: the base is of another kind.
        CountTableError: as in `bpe.train`.
    """
    made = extend_to_sizes(
        counts,
        base,
        [vocab_size],
        tie_order=tie_order,
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        max_token_bytes=max_token_bytes,
        training_record=training_record,
    )
    return made[vocab_size]


def check_base(base: Tokenizer) -> TokenizerModel:
    """The content of a tokenizer that can be extended; `VocabularyError` for another."""
    model = base.model
    if not isinstance(model, TokenizerModel) or model.characters:
        raise VocabularyError(
            "this tokenizer cannot be extended: its merges are not those of byte-level BPE"
        )
    if model.byte_preset is not None:
        raise VocabularyError(
            f"this tokenizer cannot be extended: {model.byte_preset} numbers bytes, for models "
            "that take no others"
        )
    if model.normalizer is not None:
        raise VocabularyError(
            f"this tokenizer cannot be extended: it normalizes texts ({model.normalizer}), and "
            "words are counted as they are"
        )
    return model


def extend_to_sizes(
    counts: Mapping[bytes, int] | pa.Table,
    base: Tokenizer,
    vocab_sizes: Sequence[int],
    *,
    tie_order: str | None = None,
    min_frequency: int = 2,
    special_tokens: Sequence[str] = (),
    max_token_bytes: int | None = None,
    training_record: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[int, Tokenizer]:
    """As `extend`, to several sizes at once: each is a beginning of the next larger one."""
    model = check_base(base)
    known = {token.text for token in model.added_tokens}
    specials = [text for text in special_tokens if text not in known]
    least = model.vocab_size + len(specials)
    for size in vocab_sizes:
        if not least <= size <= MOST_TOKENS:
            raise SettingsError(
                f"vocab_size is {size:,}: this tokenizer and {len(specials)} new special tokens "
                f"have {least:,} already, and at most {MOST_TOKENS:,} are supported"
            )
    rules = _rules(model, max(vocab_sizes) - least, specials, tie_order, min_frequency)
    rules = replace(rules, max_token_bytes=max_token_bytes)
    if model.scheme.name == SUPERBPE.scheme:
        limits = SUPERBPE.max_words, SUPERBPE.forbidden_parts
        rules = replace(rules, max_words=limits[0], forbidden_parts=limits[1])
    words, weights, _ = read_counts(counts, get_scheme(model.scheme.name))
    numbers = sorted(model.tokens)
    tokens = [model.tokens[number] for number in numbers]
    state = _begin(words, weights, model)
    learned = continue_merges(state, tokens, rules, get_backend())
    if progress is not None:
        progress(len(learned.merges), rules.max_merges)
    return {
        size: Tokenizer(
            _extended(model, learned, size - least, specials, size, rules, training_record or {})
        )
        for size in vocab_sizes
    }


def _rules(
    model: TokenizerModel,
    merges: int,
    specials: Sequence[str],
    tie_order: str | None,
    min_frequency: int,
) -> MergeRules:
    """Rules that never make a token of the base again, nor a special token."""
    chosen = tie_order or model.tie_order or "hf"
    if chosen == "first":
        raise SettingsError(
            "tie order 'first' cannot be had when a tokenizer is extended, as its words do not "
            "tell which pair comes first in the text: choose hf, id or bytes"
        )
    size = 256 + len(specials) + merges
    rules = make_rules(size, chosen, min_frequency, specials, None)
    there = frozenset(model.all_tokens.values())
    return replace(rules, forbidden=rules.forbidden | there)


def _begin(words: pa.LargeBinaryArray, counts: pa.Int64Array, model: TokenizerModel) -> ShardState:
    """Words as the base has them, in places of its tokens by id; none that is one token."""
    encoder = get_backend().make_encoder(
        EncodingModel(model.tokens, model.merges, model.whole_piece, get_scheme("none"))
    )
    encoded = encoder.encode_array(words)
    ids = encoded.values.to_numpy()
    places = np.searchsorted(np.array(sorted(model.tokens), np.uint32), ids)
    values = pa.array(places, state_id_type(len(model.tokens)))
    sequences = pa.LargeListArray.from_arrays(encoded.offsets, values)
    can_merge = pa.array(np.diff(encoded.offsets.to_numpy()) > 1)
    return ShardState(sequences.filter(can_merge), counts.filter(can_merge))


def _extended(
    model: TokenizerModel,
    learned: MergeList,
    wanted: int,
    specials: Sequence[str],
    size: int,
    rules: MergeRules,
    record: Mapping[str, Any],
) -> TokenizerModel:
    """The base with the first of the new merges, and then the new special tokens."""
    tokens, merges = dict(model.tokens), list(model.merges)
    ids = {data: token_id for token_id, data in tokens.items()}
    new = learned.merges[:wanted]
    for new_id, (left, right) in enumerate(new, model.max_id + 1):
        tokens[new_id] = left + right
        merges.append((ids[left], ids[right], new_id))
        ids[left + right] = new_id
    first = model.max_id + 1 + len(new)
    added = special_added_tokens({text: first + place for place, text in enumerate(specials)})
    reason = "vocab_size" if len(new) == wanted else learned.stop_reason
    warn_if_short(size - wanted + len(new), size, reason, rules.min_frequency)
    return replace(
        model,
        tokens=tokens,
        merges=merges,
        added_tokens=[*model.added_tokens, *added],
        training={
            "vocab_size": size,
            "min_frequency": rules.min_frequency,
            "max_token_bytes": rules.max_token_bytes,
            "stop_reason": reason,
            "last_merge_count": learned.counts[len(new) - 1] if new else None,
            "extends": model.digest,
            "inherited_merges": len(model.merges),
            **record,
        },
    )
