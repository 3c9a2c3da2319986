"""The native counter equals the specification for any text, split and number of threads."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.schemes import SCHEME_NAMES, get_scheme
from bpe.reference.portable_backend import PythonBackend

_native = pytest.importorskip("bpe._native", reason="the native core is not built")
native_backend = pytest.importorskip("bpe.backends.native_backend")

PARTS = [b"a", b" the", b"\x00", b" ", b"\n", b"'s", b"12345", "诗歌".encode(), b"\xff", b"=" * 15]
PARTS += [b"sixteen-letters-", b"b" * 14, b"b" * 15, b"b" * 16, b"b" * 40, "́é".encode(), b"I'LL"]


def binary(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def drained(counter: _native.WordCounter) -> tuple[list[bytes], list[int], list[int]]:
    words, counts, firsts = (pa.array(column) for column in counter.drain())
    return words.to_pylist(), counts.to_pylist(), firsts.to_pylist()


@given(
    st.lists(st.lists(st.sampled_from(PARTS), max_size=30).map(b"".join), max_size=6),
    st.sampled_from([*SCHEME_NAMES, r"regex:\w+"]),
    st.sampled_from([1, 2, 3]),
)
@settings(max_examples=300, deadline=None)
def test_counts_equal_the_specification(
    documents: list[bytes], scheme_name: str, threads: int
) -> None:
    texts = binary(documents)
    scheme = get_scheme(scheme_name)
    expected = PythonBackend().count_words(texts, scheme, first_positions=True)
    with pytest.MonkeyPatch.context() as patch:
        # Long documents are cut for threads to share; here nearly all are long.
        patch.setattr(native_backend, "_SPLIT_BYTES", 9)
        found = native_backend.NativeBackend().count_words(
            texts, scheme, first_positions=True, threads=threads
        )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.equals(theirs)


def test_threads_share_one_document_and_many() -> None:
    text = b"".join(b" word%d is, of course, 'nt" % (i % 5000) for i in range(60_000))
    backend = native_backend.NativeBackend()
    scheme = get_scheme("cl100k")
    one = binary([text])
    rows = binary([text[start : start + 50] for start in range(0, len(text), 50)])
    for texts in (one, rows):
        alone = backend.count_words(texts, scheme, first_positions=True)
        shared = backend.count_words(texts, scheme, first_positions=True, threads=3)
        for ours, theirs in zip(shared, alone, strict=True):
            assert ours.equals(theirs)
    assert sum(alone[1].to_pylist()) > 60_000


def test_sliced_columns_count_their_own_rows() -> None:
    texts = binary([b"skip me", b"a b", b"b", b"skip"])[1:3]
    words, counts, firsts = native_backend.NativeBackend().count_words(
        texts, get_scheme("gpt2"), first_positions=True
    )
    assert words.to_pylist() == [b" b", b"a", b"b"]
    assert counts.to_pylist() == [1, 1, 1]
    assert firsts.to_pylist() == [1, 0, 3]


def test_words_of_all_lengths_are_kept_apart_and_sorted() -> None:
    words = [bytes([97 + length % 3]) * length for length in range(1, 70)]
    words += [word + b"\x00" for word in words] + [b"\x00" * length for length in range(1, 40)]
    counter = _native.WordCounter(None, threads=1)
    counter.add_words(binary(words))
    counter.add_words(binary(words[::2]))
    found, counts, _ = drained(counter)
    assert found == sorted(words)
    twice = set(words[::2])
    assert counts == [2 if word in twice else 1 for word in found]


def test_draining_bounds_memory_and_keeps_positions() -> None:
    counter = _native.WordCounter("whitespace", threads=1)
    empty = counter.memory_bytes
    counter.add_documents(binary([b" ".join(b"%d" % i for i in range(100_000))]))
    assert counter.memory_bytes > empty + 100_000 * 32
    found, _, _ = drained(counter)
    assert len(found) == 100_001
    assert counter.memory_bytes == empty
    counter.add_documents(binary([b"x"]))
    size = sum(len(b"%d" % i) for i in range(100_000)) + 99_999
    assert drained(counter) == ([b"x"], [1], [size])


def test_a_counter_says_what_it_cannot_do() -> None:
    with pytest.raises(SettingsError, match="scheme 'gpt9'"):
        _native.WordCounter("gpt9", threads=1)
    with pytest.raises(SettingsError, match="threads"):
        _native.WordCounter("gpt2", threads=0)
    with pytest.raises(InputError, match="add words"):
        _native.WordCounter(None, threads=1).add_documents(binary([b"x"]))


def test_a_column_is_handed_over_once() -> None:
    counter = _native.WordCounter(None, threads=1)
    counter.add_words(binary([b"x"]))
    words, _, _ = counter.drain()
    assert pa.array(words).to_pylist() == [b"x"]
    with pytest.raises(ValueError, match="already"):
        words.__arrow_c_array__()
