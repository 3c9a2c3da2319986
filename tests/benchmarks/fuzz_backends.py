"""Compare the native core with the specification for as long as you like.

    [BPE_ISA=scalar] python tests/benchmarks/fuzz_backends.py [--seconds 600] [--rounds N]
        [--seed 1]

Scans: every scheme, every instruction set of this machine, texts shifted by 0..63 bytes. Encoders:
random merges, every scheme, on the instruction set that BPE_ISA names or on the best one. Prints
the first difference, with the text, and exits with 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bpe import _native
from bpe.backends.native_backend import NativeBackend
from bpe.reference.encoding import ReferenceEncoder
from tests.native.scan_texts import SCHEMES, random_text, reference_ends
from tests.native.test_encoder import random_model


def fuzz_scans(rng: random.Random) -> str | None:
    """One text through every scan; what differs, None if nothing does."""
    data = b"x" * rng.randrange(64) + random_text(rng)
    for scheme in SCHEMES:
        expected = reference_ends(data, scheme)
        for isa in _native.available_isas():
            batch = rng.choice([1, 66, 200, 1000])
            found = _native.scan_ends(data, scheme, isa, batch=batch)
            if not np.array_equal(found, expected):
                return f"scan {scheme} {isa} batch={batch}: {data!r}"
    return None


def text_of_key_lengths(rng: random.Random) -> bytes:
    """Pieces about as long as the longest key of the cache, which ends with a mark of its own."""
    shared = bytes(rng.choice(b"abc") for _ in range(40))
    pieces = [
        shared[: rng.choice([30, 31, 31, 32, 33, 40])] + rng.choice([b"", b"\x01", b"\xff"])
        for _ in range(40)
    ]
    return b" ".join(pieces)


def fuzz_encoder(rng: random.Random) -> str | None:
    """A few texts through one random model."""
    scheme = rng.choice([*SCHEMES, "none"])
    model = random_model(rng, scheme, shuffled=rng.random() < 0.3)
    encoder = NativeBackend().make_encoder(model, cache_bytes=rng.choice([1, 1 << 20]))
    reference = ReferenceEncoder(model)
    for make_text in (*[random_text] * 5, text_of_key_lengths):
        data = make_text(rng)
        if not np.array_equal(encoder.encode(data), reference.encode(data)):
            return f"encode {scheme} {model}: {data!r}"
    return None


def main() -> int:
    """Run until the time is over or something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, help="stop after so many, if the time allows it")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    end = time.monotonic() + options.seconds
    rounds = 0
    while time.monotonic() < end and rounds != options.rounds:
        for fuzz in (fuzz_scans, fuzz_encoder):
            difference = fuzz(rng)
            if difference:
                print(f"DIFFERENT (seed {options.seed}, round {rounds}): {difference}")
                return 1
        rounds += 1
    scans = ", ".join(_native.available_isas())
    print(f"{rounds} rounds equal: scans on {scans}, encoders on {_native.isa()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
