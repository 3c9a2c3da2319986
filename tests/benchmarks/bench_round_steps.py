"""Speed of the native steps of merge rounds, over a whole raw training in one process.

    python tests/benchmarks/bench_round_steps.py [--corpus en20] [--vocab-size 32768]
        [--budget 0.01] [--words] [--check]

One shard goes through all rounds: count pairs, cut segments, simulate, apply. For each step the
table has the seconds of all rounds on one core and, of the steps that look at every token, how
many tokens a second they took. --budget: cap of a round's segments, as a share of the corpus.
--words: pre-tokens of GPT-2 with counts in place of raw text. --check: train at once as well, and
compare.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench_train import CORPORA, prepare

from bpe.backends.native_backend import NativeBackend
from bpe.backends.values import CutSegments, MergeRules, SimulatedMerges, StopBefore
from bpe.pretokenizing.schemes import get_scheme
from bpe.reference.training import base_symbols
from bpe.rounds.run_coding import decode_segments, encode_runs

TIE_ORDER = "hf"
GRID = (1, 0.7, 0.5, 0.35, 0.2, 0.1, 0.03)
BACKEND = NativeBackend()


class Stopwatch:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, step: str, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Result of work(*args, **options), its time added to the step's."""
        start = time.perf_counter()
        result = work(*args, **options)
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
        return result


def first_state(
    path: Path, *, words: bool
) -> tuple[pa.LargeListArray, pa.Int64Array | None, pa.LargeBinaryArray]:
    """Sequences of base ids, their weights, and the texts that they are made of."""
    texts: pa.LargeBinaryArray = pa.array([path.read_bytes()], pa.large_binary())
    weights = None
    if words:
        texts, weights, _ = BACKEND.count_words(texts, get_scheme("gpt2"), threads=2)
    id_of_byte = np.zeros(256, np.uint16)
    id_of_byte[np.frombuffer(base_symbols(TIE_ORDER), np.uint8)] = np.arange(256)
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[: len(texts) + 1]
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(id_of_byte[data]))
    return lists, weights, texts


def rank_pairs(counts: pa.Table) -> pa.Table:
    """Pairs by falling count, then rising ids."""
    order = np.argsort(-counts["count"].to_numpy(), kind="stable")
    return counts.take(pa.array(order)).combine_chunks()


def with_short_segments(
    cut: CutSegments, heavy: pa.Table, tokens: list[bytes], rules: MergeRules
) -> tuple[pa.LargeBinaryArray, pa.Int64Array]:
    """All segments: those cut, and the places of heavy pairs that stand alone."""
    inside = BACKEND.count_state_pairs(decode_segments(cut.segments), cut.weights, tokens, rules)
    used = {
        (left, right): count
        for left, right, count in zip(*(c.to_pylist() for c in inside.columns), strict=True)
    }
    pairs = heavy.slice(0, cut.size)
    alone = [
        (encode_runs((left, right)), count - used.get((left, right), 0))
        for left, right, count in zip(*(c.to_pylist() for c in pairs.columns), strict=True)
    ]
    alone = [row for row in alone if row[1]]
    segments = pa.array([code for code, _ in alone], pa.large_binary())
    weights = pa.array([count for _, count in alone], pa.int64())
    return pa.concat_arrays([cut.segments, segments]), pa.concat_arrays([cut.weights, weights])


def next_coverage(coverage: float, cut: CutSegments, most: int, budget: int) -> float:
    """Share of all adjacencies that the next round's heavy pairs may cover."""
    if cut.size < most:
        return coverage * 0.85
    return coverage * float(np.clip((0.85 * budget / max(1, segment_bytes(cut))) ** 0.4, 0.9, 1.5))


def segment_bytes(cut: CutSegments) -> int:
    """What the cap counts, of a shard without open ends."""
    return sum(map(len, cut.segments.to_pylist())) + len(cut.segments)


class Rounds:
    """A raw or weighted training, round by round.

    watch: time of each step. tokens_seen: tokens of the state, summed over all rounds.
    """

    def __init__(
        self, state: pa.LargeListArray, weights: pa.Int64Array | None, vocab_size: int, budget: int
    ) -> None:
        self.state, self.weights = state, weights
        self.vocab_size, self.budget = vocab_size, budget
        self.tokens = [bytes([value]) for value in base_symbols(TIE_ORDER)]
        self.merges: list[tuple[bytes, bytes]] = []
        self.counts: list[int] = []
        self.watch = Stopwatch()
        self.coverage = 0.2
        self.tokens_seen = 0

    def run(self) -> None:
        """All rounds."""
        while len(self.tokens) < self.vocab_size and self.run_round():
            pass

    def run_round(self) -> bool:
        """One round; False if there is nothing left to merge."""
        rules = MergeRules(self.vocab_size - len(self.tokens), TIE_ORDER)
        before = dict(self.watch.seconds)
        self.tokens_seen += len(self.state.values)
        counts = self.watch.run(
            "count", BACKEND.count_state_pairs, self.state, self.weights, self.tokens, rules
        )
        pairs = rank_pairs(counts)
        if not len(pairs) or pairs["count"][0].as_py() < rules.min_frequency:
            return False
        cut, most = self.cut(pairs)
        segments = self.watch.run("(short)", with_short_segments, cut, pairs, self.tokens, rules)
        stop = None
        if cut.size < len(pairs):
            row = pairs.slice(cut.size, 1).to_pylist()[0]
            stop = StopBefore(row["count"], row["left"], row["right"])
        made = self.watch.run(
            "simulate", BACKEND.simulate_merges, *segments, self.tokens, rules, stop
        )
        self.apply(made)
        self.coverage = next_coverage(self.coverage, cut, most, self.budget)
        spent = [
            f"{step} {seconds - before.get(step, 0):.2f}"
            for step, seconds in self.watch.seconds.items()
        ]
        print(
            f"{len(self.tokens):6} tokens, {len(made.left):6} of {most:6} pairs, "
            f"{segment_bytes(cut):9,} bytes of segments, {len(pairs):9,} pairs; {', '.join(spent)}"
        )
        return True

    def cut(self, pairs: pa.Table) -> tuple[CutSegments, int]:
        """Segments, and how many heavy pairs they may at most be cut by."""
        covered = np.cumsum(pairs["count"].to_numpy())
        most = max(1, int(np.searchsorted(covered, self.coverage * covered[-1])))
        heavy = [pairs[name].chunk(0).slice(0, most) for name in ("left", "right")]
        sizes = sorted({max(1, int(most * share)) for share in GRID}, reverse=True)
        cut = self.watch.run(
            "cut",
            BACKEND.cut_segments,
            self.state,
            self.weights,
            *heavy,
            sizes,
            self.budget,
            open_left=False,
            open_right=False,
        )
        return cut, most

    def apply(self, made: SimulatedMerges) -> None:
        """Take the merges over."""
        first_id = len(self.tokens)
        for left, right in zip(made.left.to_pylist(), made.right.to_pylist(), strict=True):
            self.merges.append((self.tokens[left], self.tokens[right]))
            self.tokens.append(self.tokens[left] + self.tokens[right])
        self.counts += made.counts.to_pylist()
        id_type = pa.uint16() if len(self.tokens) <= 1 << 16 else pa.uint32()
        self.state = self.watch.run(
            "apply", BACKEND.apply_merges, self.state, made.left, made.right, first_id, id_type
        )


def check(rounds: Rounds, texts: pa.LargeBinaryArray) -> None:
    """Compare with the training at once."""
    rules = MergeRules(rounds.vocab_size - 256, TIE_ORDER)
    start = time.perf_counter()
    expected = (
        BACKEND.train_raw(texts, rules)
        if rounds.weights is None
        else BACKEND.train_words(texts, rounds.weights, None, rules)
    )
    took = time.perf_counter() - start
    same = (rounds.merges, rounds.counts) == (expected.merges, expected.counts)
    print(f"    at once    {took:7.2f} s, {'the same merges' if same else 'OTHER MERGES'}")


def main() -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--corpus", default="en20", choices=[*CORPORA])
    parser.add_argument("--vocab-size", type=int, default=32768)
    parser.add_argument("--budget", type=float, default=0.01)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = prepare(options.corpus, Path(folder))
        size = path.stat().st_size
        state, weights, texts = first_state(path, words=options.words)
        rounds = Rounds(state, weights, options.vocab_size, int(size * options.budget))
        del state
        rounds.run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{options.corpus}: {len(rounds.merges)} merges, peak {peak} MiB; all rounds:")
    for step, seconds in rounds.watch.seconds.items():
        print(f"    {step:10} {seconds:7.2f} s", end="")
        if step not in {"simulate", "(short)"}:
            print(f"  {rounds.tokens_seen / seconds / 1e6:6.0f} M tokens/s", end="")
        print()
    print(f"    total      {sum(rounds.watch.seconds.values()):7.2f} s")
    if options.check:
        check(rounds, texts)


if __name__ == "__main__":
    main()
