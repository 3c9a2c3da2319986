"""A second stage of training: more merges, learned across the borders of words (SuperBPE).

The first stage is a training like any other. The second one begins with its first merges, and cuts
documents by another scheme: `superbpe` keeps the words of a line together, but for digits, marks
that stand together and white space at a line's end. Lest tokens become whole sentences, none of
more than four words is made, nor any that contains a colon and a space.

    >>> from bpe.training import train
    >>> one = train({b"so": 9, b" it": 9, b" is": 9}, 260, pretokenizer="gpt2")
    >>> two = train_second_stage({b"so it is: it is so": 9}, one, 263)
    >>> [left + right for left, right in two.merges[4:]]
    [b' it is', b' so', b'so it is']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.backends.values import EncodingModel, MergeList, MergeRules
from bpe.errors import SettingsError
from bpe.pretokenizing.schemes import get_scheme
from bpe.rounds.run_coding import encode_segments
from bpe.rounds.shard_state import ShardState, state_id_type
from bpe.tokenizer import Tokenizer
from bpe.training import make_rules, make_tokenizer, read_counts

__all__ = [
    "SUPERBPE",
    "SecondStage",
    "begin_second_stage",
    "continue_merges",
    "stage_tokens",
    "train_second_stage",
]


@dataclass(frozen=True)
class SecondStage:
    """What a second stage may merge.

    scheme: how documents are cut. max_words, forbidden_parts: see `MergeRules`.
    """

    scheme: str
    max_words: int | None
    forbidden_parts: tuple[bytes, ...]


SUPERBPE = SecondStage(scheme="superbpe", max_words=4, forbidden_parts=(b": ",))
"""The second stage of SuperBPE's published tokenizers."""


def begin_second_stage(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    first_stage: Tokenizer,
    *,
    backend: Backend | None = None,
) -> ShardState:
    """The tokens that the second stage starts from: words by the merges of the first.

    words: pre-tokens of the second stage's scheme, distinct; counts: of each. Words that are one
    token are left out: no merge can come of them.
    Raises `SettingsError` if the first stage's ids are not in the order of its merges.
    """
    stage_tokens(first_stage)
    model = first_stage.model
    encoder = (backend or get_backend()).make_encoder(
        EncodingModel(model.tokens, model.merges, whole_piece=False, scheme=get_scheme("none"))
    )
    sequences = encoder.encode_array(words)
    can_merge = pa.array(np.diff(sequences.offsets.to_numpy()) > 1)
    return ShardState(sequences.filter(can_merge), counts.filter(can_merge))


def stage_tokens(first_stage: Tokenizer) -> list[bytes]:
    """Bytes of the ids that the second stage starts from, special tokens left out.

    Raises `SettingsError` if they are not in the order of the merges.
    """
    if not first_stage.model.has_merge_order:
        raise SettingsError(
            "the first stage's ids are not the 256 bytes and the merges in their order: train the "
            "first stage here, or import a vocabulary whose ids are in merge order"
        )
    tokens = first_stage.model.tokens
    return [tokens[number] for number in range(len(tokens))]


def train_second_stage(
    counts: Mapping[bytes, int] | pa.Table,
    first_stage: Tokenizer,
    vocab_size: int,
    *,
    stage: SecondStage = SUPERBPE,
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Go on from a tokenizer with more merges, by another scheme and within other limits.

    counts: pre-tokens of the second stage's scheme, as for `bpe.train`. first_stage: all of its
        merges stay, so truncate it first; its special tokens get the last ids again.
    vocab_size: 256 + merges of both stages + special tokens.

    Raises `SettingsError` and `CountTableError` as `bpe.train` does, and for a first stage that
    cannot be gone on from.
    """
    specials = list(first_stage.special_tokens)
    tokens = stage_tokens(first_stage)
    inherited = first_stage.merges
    rules = make_rules(
        vocab_size,
        first_stage.tie_order or "hf",
        min_frequency,
        specials,
        max_token_bytes,
        max_words=stage.max_words,
        forbidden_parts=stage.forbidden_parts,
    )
    if rules.max_merges < len(inherited):
        raise SettingsError(
            f"vocab_size is {vocab_size:,}, and the first stage alone makes "
            f"{first_stage.vocab_size:,} tokens: truncate it, or ask for more"
        )
    words, weights, _ = read_counts(counts, get_scheme(stage.scheme))
    backend = get_backend()
    state = begin_second_stage(words, weights, first_stage, backend=backend)
    rest = replace(rules, max_merges=rules.max_merges - len(inherited))
    learned = continue_merges(state, tokens, rest, backend)
    return make_tokenizer(
        MergeList(inherited + learned.merges, learned.counts, learned.stop_reason),
        vocab_size=vocab_size,
        rules=rules,
        pretokenizer=stage.scheme,
        special_tokens=specials,
        training_record={"inherited_merges": len(inherited), **(training_record or {})},
    )


def continue_merges(
    state: ShardState, tokens: list[bytes], rules: MergeRules, backend: Backend
) -> MergeList:
    """Learn more merges from tokens of an earlier training, which `tokens` spells; it grows.

    state: ids are places in `tokens`. rules: max_merges is how many more there may be.
    """
    picks = backend.simulate_merges(
        encode_segments(state.sequences), state.weights, tokens, rules, None
    )
    merges: list[tuple[bytes, bytes]] = []
    for left, right in zip(picks.left.to_pylist(), picks.right.to_pylist(), strict=True):
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    reason = "vocab_size"
    if len(merges) < rules.max_merges:
        id_type = state_id_type(len(tokens))
        first_id = len(tokens) - len(merges)
        rest = backend.apply_merges(state.sequences, picks.left, picks.right, first_id, id_type)
        pairs = backend.count_state_pairs(rest, state.weights, tokens, rules)
        left = zip(pairs["left"].to_pylist(), pairs["right"].to_pylist(), strict=True)
        can_merge = any(rules.allows(tokens[first] + tokens[second]) for first, second in left)
        reason = "min_frequency" if can_merge else "exhausted"
    return MergeList(merges, picks.counts.to_pylist(), reason)
