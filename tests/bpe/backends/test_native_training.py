"""The native trainer equals the specification, stage by stage; its border to Python holds."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.values import TIE_ORDERS, MergeList, MergeRules
from bpe.errors import CountTableError, InputError, SettingsError
from bpe.reference.portable_backend import PythonBackend

_native = pytest.importorskip("bpe._native", reason="the native core is not built")

RULES: dict[str, Any] = {
    "max_merges": 1000,
    "tie_order": "hf",
    "min_frequency": 2,
    "max_token_bytes": None,
    "forbidden": [],
    "progress": None,
}


def binary(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def train_raw(documents: pa.Array, **changes: Any) -> MergeList:
    return MergeList(*_native.train_raw(documents, **(RULES | changes)))


def train_words(words: Any, counts: Any, firsts: Any = None, **changes: Any) -> MergeList:
    return MergeList(*_native.train_words(words, counts, firsts, **(RULES | changes)))


@st.composite
def repetitive_documents(draw: st.DrawFn) -> list[bytes]:
    alphabet = draw(st.sampled_from([b"a", b"ab", b"abc", b"\x00\xffa", bytes(range(97, 117))]))
    part = st.lists(st.sampled_from(list(alphabet)), max_size=6).map(bytes)
    run = st.tuples(part, st.integers(0, 9)).map(lambda pair: pair[0] * pair[1])
    return draw(st.lists(st.lists(run, max_size=6).map(b"".join), max_size=8))


@given(
    repetitive_documents(),
    st.sampled_from(TIE_ORDERS),
    st.integers(1, 4),
    st.sampled_from([None, 1, 2, 3, 5]),
    st.sets(st.sampled_from([b"aa", b"ab", b"ba", b"aaa", b"abab"])),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_equals_the_specification(
    documents: list[bytes],
    tie_order: str,
    min_frequency: int,
    max_token_bytes: int | None,
    forbidden: set[bytes],
    data: st.DataObject,
) -> None:
    rules = MergeRules(1000, tie_order, min_frequency, max_token_bytes, frozenset(forbidden))
    changes: dict[str, Any] = {
        "tie_order": tie_order,
        "min_frequency": min_frequency,
        "max_token_bytes": max_token_bytes,
        "forbidden": list(forbidden),
    }
    specification = PythonBackend()
    expected = specification.train_raw(binary(documents), rules)
    assert train_raw(binary(documents), **changes) == expected
    # The trainer may start a stage anew after any merge.
    assert train_raw(binary(documents), spare_seams=0, **changes) == expected

    words = binary(sorted(set(documents)))
    counts = pa.array(
        data.draw(
            st.lists(
                st.sampled_from([1, 2, 3, 70, 2**33, 2**50]),
                min_size=len(words),
                max_size=len(words),
            )
        ),
        pa.int64(),
    )
    firsts = pa.array(data.draw(st.permutations(range(0, 7 * len(words), 7))), pa.int64())
    expected = specification.train_words(words, counts, firsts, rules)
    assert train_words(words, counts, firsts, **changes) == expected
    assert train_words(words, counts, firsts, spare_seams=0, **changes) == expected


@pytest.mark.one_in(4)
@pytest.mark.parametrize("tie_order", TIE_ORDERS)
def test_many_stages_equal_the_specification(tie_order: str, tiny_text: bytes) -> None:
    text = binary([tiny_text[:40_000], b"", tiny_text[40_000:60_000]])
    expected = PythonBackend().train_raw(text, MergeRules(20_000, tie_order, 1))
    assert expected.stop_reason == "exhausted"
    changes: dict[str, Any] = {"max_merges": 20_000, "tie_order": tie_order, "min_frequency": 1}
    assert train_raw(text, **changes) == expected
    assert train_raw(text, **(changes | {"spare_seams": 100})) == expected


def test_units_of_32_bits_equal_those_of_16(tiny_text: bytes) -> None:
    text = binary([tiny_text[:300_000]])
    narrow = train_raw(text, max_merges=65_278)  # 65,534 ids and two marks: the most for 16 bits
    wide = train_raw(text, max_merges=65_279)
    assert narrow.stop_reason == wide.stop_reason == "min_frequency"
    assert narrow == wide


@pytest.fixture(scope="module")
def tiny_text(data_dir: Any) -> bytes:
    text: bytes = (data_dir / "tiny_shakespeare.txt").read_bytes()
    return text


def test_progress_rises_and_comes_to_the_end(tiny_text: bytes) -> None:
    seen: list[tuple[int, int]] = []
    found = train_raw(
        binary([tiny_text]), max_merges=2000, progress=lambda *made: seen.append(made)
    )
    assert [merges for merges, _ in seen] == sorted(merges for merges, _ in seen)
    assert seen[-1] == (len(found.merges), 2000)


def test_what_progress_raises_ends_the_training(tiny_text: bytes) -> None:
    def stop(_made: int, _most: int) -> None:
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        train_raw(binary([tiny_text]), progress=stop)


def test_other_python_threads_run_meanwhile(tiny_text: bytes) -> None:
    text = binary([tiny_text])
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    before = ticks
    _native.train_raw(text, **(RULES | {"max_merges": 5000}))
    during = ticks - before
    done.set()
    ticker.join()
    assert during > 3


def test_any_arrow_text_column_goes_in() -> None:
    expected = train_raw(binary([b"abab", b"ab"]))
    assert expected.merges == [(b"a", b"b")]
    for kind in (pa.binary(), pa.string(), pa.large_string(), pa.large_binary()):
        padded = pa.array([b"xx", b"abab", b"ab", b"xx"], pa.binary()).cast(kind)
        assert train_raw(padded[1:3]) == expected


def test_columns_of_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="documents: Arrow type 'l' holds no text"):
        train_raw(pa.array([1, 2]))
    with pytest.raises(InputError, match="words: element 1 is null"):
        train_words(pa.array([b"ab", None], pa.large_binary()), pa.array([1, 1]))
    with pytest.raises(InputError, match="counts: Arrow type 'i' is not int64"):
        train_words(binary([b"ab"]), pa.array([1], pa.int32()))
    with pytest.raises(AttributeError, match="__arrow_c_array__"):
        train_raw([b"ab"])  # type: ignore[arg-type]


def test_words_and_counts_must_match() -> None:
    with pytest.raises(CountTableError, match="one length"):
        train_words(binary([b"ab"]), pa.array([1, 2]))
    with pytest.raises(CountTableError, match=r"words\[1\] has count 0"):
        train_words(binary([b"ab", b"cd"]), pa.array([1, 0]))


def test_rules_are_checked() -> None:
    for changes, message in (
        ({"tie_order": "best"}, "unknown tie order 'best'"),
        ({"min_frequency": 0}, "min_frequency"),
        ({"max_merges": -1}, "max_merges"),
        ({"max_token_bytes": 0}, "max_token_bytes"),
    ):
        with pytest.raises(SettingsError, match=message):
            train_raw(binary([b"abab"]), **changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [("en200.txt.zst", 20 << 20), ("zh100.json.zst", 20 << 20)]
)
def test_large_vocabularies_equal_the_peers(shared_data: Any, name: str, size: int) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    rustbpe = pytest.importorskip("rustbpe")
    zstandard = pytest.importorskip("zstandard")
    from bpe.backends.native_backend import NativeBackend
    from bpe.pretokenizing.schemes import get_scheme

    reader = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    with (shared_data / "corpora" / name).open("rb") as file:
        data = reader.stream_reader(file).read(size)
    data = data.decode(errors="ignore").encode()
    backend = NativeBackend()
    scheme = get_scheme("gpt2")
    words, counts, _ = backend.count_words(binary([data]), scheme, threads=2)
    merges = 32768 - 256

    peer = rustbpe.Tokenizer()
    peer.train_from_iterator(iter([data.decode()]), 32768, pattern=scheme.pattern)
    found = backend.train_words(words, counts, None, MergeRules(merges, "id", 1))
    tokens = [left + right for left, right in found.merges]
    assert tokens == [bytes(token) for token, _ in peer.get_mergeable_ranks()[256:]]

    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=32768,
        min_frequency=1,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator([data.decode()], trainer)
    found = backend.train_words(words, counts, None, MergeRules(merges, "hf", 1))
    vocab = model.get_vocab()
    spelled = sorted(vocab, key=vocab.__getitem__)[256:]
    to_byte = {char: byte for byte, char in _gpt2_characters().items()}
    theirs = [bytes(to_byte[char] for char in token) for token in spelled]
    assert [left + right for left, right in found.merges] == theirs


def _gpt2_characters() -> dict[int, str]:
    from bpe.encoding.printable_bytes import to_printable

    return {value: to_printable(bytes([value])) for value in range(256)}
