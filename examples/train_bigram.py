"""A training loop on token shards, with NumPy alone: which token follows which.

    python examples/train_bigram.py out/tokens
    python examples/train_bigram.py out/packed train      # one split of an output with splits

Batches are drawn as for a GPT: random ranges of all tokens, with targets one token later. The model
is a bigram table, trained by gradient descent; put your model in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.errors import BpeError
from pipelines import TokenShards

BATCH, CONTEXT, STEPS, RATE = 16, 64, 300, 30.0

Ids = npt.NDArray[np.int64]


def batches(shards: TokenShards, seed: int) -> Iterator[tuple[Ids, Ids]]:
    """Inputs and targets, int64 of shape (BATCH, CONTEXT), without end."""
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, shards.token_count - CONTEXT, BATCH)
        rows = [shards.tokens(start, start + CONTEXT + 1) for start in starts]
        # PyTorch: torch.from_numpy of this.
        stacked = np.stack(rows).astype(np.int64)
        yield stacked[:, :-1], stacked[:, 1:]


def train(shards: TokenShards, vocab_size: int) -> tuple[float, float]:
    """Train a table of logits; returns the first and the last loss, in nats per token."""
    table: npt.NDArray[Any] = np.zeros((vocab_size, vocab_size), np.float32)
    losses = []
    for step, (inputs, targets) in enumerate(batches(shards, seed=1)):
        x, y = inputs.ravel(), targets.ravel()
        logits = table[x]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        losses.append(float(-np.log(odds[np.arange(len(y)), y]).mean()))
        odds[np.arange(len(y)), y] -= 1
        np.add.at(table, x, -RATE / len(x) * odds)
        if step == STEPS:
            break
    return losses[0], losses[-1]


def main() -> None:
    """Train on the folder, or on one split of it, that the command line names."""
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python examples/train_bigram.py FOLDER_OF_SHARDS [SPLIT]")
    try:
        shards = TokenShards(*sys.argv[1:])
    except BpeError as error:
        sys.exit(f"error: {error}")
    if shards.token_count <= CONTEXT:
        sys.exit(f"error: {shards}: too few for ranges of {CONTEXT + 1} tokens")
    print(shards)
    vocab_size = max(shard.max_id or 0 for shard in shards.manifest.shards) + 1
    first, last = train(shards, vocab_size)
    print(f"loss {first:.3f} at the start, {last:.3f} after {STEPS} steps")


if __name__ == "__main__":
    main()
