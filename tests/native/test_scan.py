"""Every instruction set's scan against the specification."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import SettingsError
from tests.native.scan_texts import PIECES, SCHEMES, random_text, reference_ends

native = pytest.importorskip("bpe._native", reason="the native core is not built")

ISAS = tuple(native.available_isas())
# Below 66 the vector scans leave the work to the scalar one.
BATCHES = (1, 3, 66, 200, 1000)


def check(
    data: bytes, schemes: tuple[str, ...] = SCHEMES, batches: tuple[int, ...] = BATCHES
) -> None:
    for scheme in schemes:
        expected = reference_ends(data, scheme)
        for isa in ISAS:
            for batch in batches:
                found = native.scan_ends(data, scheme, isa, batch=batch)
                np.testing.assert_array_equal(found, expected, f"{scheme} {isa} {batch} {data!r}")


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=120), st.integers(0, 63))
def test_scans_equal_the_specification(pieces: list[bytes], shift: int) -> None:
    check(b"x" * shift + b"".join(pieces), batches=(66,))


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    check(data, batches=(3, 66))


def test_random_texts_with_long_runs() -> None:
    rng = random.Random(20)
    for _ in range(300):
        check(random_text(rng), batches=(rng.choice(BATCHES),))


NEIGHBOURHOODS = ((b"a", b"a"), (b" ", b"b!"), (b"!", b"'s"), (b"\n ", b" \n1"))


@pytest.mark.one_in(7)
@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_every_piece_at_every_place_of_a_block(piece: bytes) -> None:
    for shift in range(64):
        for number, (before, after) in enumerate(NEIGHBOURHOODS):
            data = b"a b" * 22 + b"y" * shift + before + piece + after + b" end of it, 12345" * 6
            # In each of three neighbourhoods running the schemes of another third.
            turn = (shift + number) % 3
            check(data, SCHEMES[turn::3], batches=(1000,))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "context", ["{} ", " {}a", "1{}23", "'{}'s", "a{}A", "!{}\n", "\n{} ", "A{}a"]
)
def test_every_code_point_in_context(scheme: str, context: str) -> None:
    # Every plane in steps of a prime: each code point is seen by some context and scheme.
    step = 7
    first = (SCHEMES.index(scheme) + len(context)) % step
    planes = (*range(first, 0x38000, step), *range(0xE0000 + first, 0xE1000, step), 0x10FFFF)
    points = [c for c in planes if not 0xD800 <= c < 0xE000]
    check("".join(context.format(chr(c)) for c in points).encode(), (scheme,), (1000,))


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_code_points(scheme: str) -> None:
    for context in (" {}a", "1{}2", "'{}s", "a{} ", "\n{} ", "A{}A"):
        for start in range(0, 0x110000, 0x8000):
            points = [c for c in range(start, start + 0x8000) if not 0xD800 <= c < 0xE000]
            check("".join(context.format(chr(c)) for c in points).encode(), (scheme,), (1000,))


@pytest.mark.parametrize(
    "unit", [b"1", b"a", b" ", b"\n", b"\r\n", b"'s", b"'re", b"=", b" \n", b"/\n"]
)
def test_long_runs_take_linear_time(unit: bytes) -> None:
    # Minutes if anything were quadratic; the ends are checked on the scalar scan's word.
    data = b"x" + unit * (3_000_000 // len(unit)) + b"y"
    for scheme in SCHEMES:
        expected = native.scan_ends(data, scheme, "scalar", batch=500)
        for isa in ISAS:
            found = native.scan_ends(data, scheme, isa, batch=500)
            assert np.array_equal(found, expected), (scheme, isa)


def test_nasty_inputs(data_dir: Path) -> None:
    for line in (data_dir / "tiny_shakespeare.txt").read_bytes().split(b"\n\n")[:100]:
        check(line, batches=(66,))


def test_an_unknown_instruction_set_is_named() -> None:
    with pytest.raises(SettingsError, match="'mmx'"):
        native.scan_ends(b"a", "gpt2", "mmx", batch=1)
