"""Documents that nothing cuts: encoded as streams, with the ids of the whole, in bounded pieces."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from bpe.tokenizer import Tokenizer
from pipelines import TokenShards
from pipelines.corpus import cut_documents
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.encoding import encode_long_documents

SPECIAL = "<|end|>"
MERGES = [
    *((b"a", b"a"), (b"aa", b"a"), (b"=", b"="), (b" ", b" "), (b"  ", b"  "), (b"h", b"a")),
    *(
        (b"t", b"h"),
        (b"th", b"e"),
        (b" ", b"the"),
        (b"\r", b"\n"),
        (b"\xe4", b"\xb8"),
        (b"|", b">"),
    ),
]
# Runs that are one pre-token, in some scheme or other, and special tokens around and within them.
TEXT = b"".join(
    [
        *(b"the " * 40, b"a" * 3001, SPECIAL.encode() * 3, b" " * 2000, b"the end\n", b"=" * 2500),
        *(
            b"the the ",
            b"\xe4\xb8\xad" * 900,
            SPECIAL.encode(),
            b"\xe4\xb8\xad" * 900,
            b"\r\n" * 800,
        ),
        *(b" " * 1700, b"A" * 1500, b"ha" * 1500, SPECIAL.encode()[:4] * 500, b"\xff" * 1100, b"!"),
    ]
)
SCHEMES = ["gpt2", "cl100k", "o200k", "llama3", "none"]


@pytest.fixture
def small_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes small documents show what large ones do."""
    monkeypatch.setattr(encode_long_documents, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(cut_documents, "LOOK_BYTES", 64)


def save(folder: Path, scheme: str, merges: list[tuple[bytes, bytes]] = MERGES) -> Tokenizer:
    tokenizer = Tokenizer.from_merges(merges, pretokenizer=scheme, special_tokens=[SPECIAL])
    tokenizer.save(folder)
    return tokenizer


def rows(output: Path) -> list[dict[str, Any]]:
    """The rows of all shards, in order."""
    found: list[dict[str, Any]] = []
    for path in sorted(output.glob("shard-*.arrow")):
        with pa.memory_map(str(path)) as file:
            found += pa.ipc.open_file(file).read_all().to_pylist()
    return found


@pytest.mark.one_in(5)
@pytest.mark.usefixtures("backend", "small_streams")
@pytest.mark.parametrize("policy", ["text", "allow"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_ids_are_those_of_the_whole(
    scheme: str, policy: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    tokenizer = save(tmp_path / "model", scheme)
    (tmp_path / "a.txt").write_bytes(TEXT)
    expected = tokenizer.encode(TEXT, special_text=policy).tolist()
    range_bytes = 150 if policy == "text" else 401
    output = tmp_path / str(range_bytes)
    done = run(
        *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model"),
        *("--output", output, "--range-bytes", range_bytes, "--max-row-bytes", 1500),
        *("--special-text", policy, "--append-eos", SPECIAL),
    )
    assert done.code == 0, done.err
    found = rows(output)
    ids = [token_id for row in found for token_id in row["input_ids"]]
    assert ids == [*expected, tokenizer.token_id(SPECIAL)]
    check_rows(tokenizer, found, longest=2 * range_bytes + 1800)
    manifest = json.loads((output / "__beam-bpe__/manifest.json").read_text())
    assert manifest["totals"]["documents"] == 1
    assert manifest["totals"]["bytes"] == len(TEXT)
    assert manifest["totals"]["special_text"] == {SPECIAL: TEXT.count(SPECIAL.encode())}
    assert manifest["totals"]["accepted"]["streamed"] >= 1
    verified = run("verify", output)
    assert verified.code == 0, verified.err
    assert "ids of documents in several rows, which cannot be encoded alone" in verified.out


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("small_streams")
@pytest.mark.parametrize("layout", [[], ["--shuffle", "shard"], ["--shuffle", "global"]])
@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_all_rows_are_encoded_again_whatever_the_layout(
    scheme: str, layout: list[str], tmp_path: Path, run: Callable[..., Any]
) -> None:
    save(tmp_path / "model", scheme)
    (tmp_path / "a.txt").write_bytes(b"@@".join([TEXT, b"the end", b"", TEXT[:3000]]))
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model", *layout),
        *("--output", output, "--range-bytes", 200, "--max-row-bytes", 1500),
        *("--shard-bytes", 4000, "--document-separator", "@@"),
    )
    assert done.code == 0, done.err
    verified = run("verify", output, "--full", "--input", tmp_path / "a.txt")
    assert verified.code == 0, verified.err
    assert "encoded again from the input: " in verified.out
    assert ", same bytes" in verified.out


def check_rows(tokenizer: Tokenizer, found: list[dict[str, Any]], longest: int) -> None:
    """Rows are short, and each says where in the file its text is."""
    place = 0
    for number, row in enumerate(found):
        text = tokenizer.decode(row["input_ids"])
        is_last = number == len(found) - 1
        text = text.removesuffix(SPECIAL.encode()) if is_last else text
        assert row["byte_start"] == place
        assert TEXT[place : place + len(text)] == text
        assert len(text) <= longest
        assert row["is_last"] == is_last
        assert (row["part"] == 0) == (number == 0)
        place += len(text)
    assert place == len(TEXT)


@pytest.mark.usefixtures("small_streams")
@pytest.mark.parametrize("form", ["gz", "separated"])
@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_documents_within_files(
    scheme: str, form: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    tokenizer = save(tmp_path / "model", scheme)
    texts = [b"the", TEXT, b"", b"a" * 5000, b"the end"] if form == "separated" else [TEXT]
    data = b"@@".join(texts)
    path = tmp_path / ("a.txt" if form == "separated" else "a.txt.gz")
    path.write_bytes(data if form == "separated" else gzip.compress(data))
    separator = ["--document-separator", "@@"] if form == "separated" else []
    done = run(
        *("encode", "--input", path, "--tokenizer", tmp_path / "model", "--output"),
        *(tmp_path / "out", "--range-bytes", 200, "--max-row-bytes", 1500, *separator),
    )
    assert done.code == 0, done.err
    shards = TokenShards(str(tmp_path / "out"))
    found = [np.asarray(shards.document(index)).tolist() for index in range(len(texts))]
    assert found == [tokenizer.encode(text).tolist() for text in texts]


@pytest.mark.usefixtures("small_streams")
@pytest.mark.parametrize("layout", [["--pack", "64", "--pad-id", "0"], ["--shuffle", "global"]])
def test_layouts_take_streamed_documents(
    layout: list[str], tmp_path: Path, run: Callable[..., Any]
) -> None:
    tokenizer = save(tmp_path / "model", "none")
    (tmp_path / "a.txt").write_bytes(TEXT)
    done = run(
        *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model", *layout),
        *("--output", tmp_path / "out", "--range-bytes", 200, "--max-row-bytes", 1500),
    )
    assert done.code == 0, done.err
    expected = tokenizer.encode(TEXT).tolist()
    ids = [token_id for row in rows(tmp_path / "out") for token_id in row["input_ids"]]
    assert ids[: len(expected)] == expected
    assert set(ids[len(expected) :]) <= {0}
    assert run("verify", tmp_path / "out").code == 0


def test_a_special_token_far_inside_is_refused_by_place(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    save(tmp_path / "model", "none")
    (tmp_path / "a.txt").write_bytes(b"ab" * 2000 + SPECIAL.encode() + b"a" * 500)
    refused = run(
        *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model"),
        *("--output", tmp_path / "out", "--range-bytes", 200, "--special-text", "reject"),
    )
    assert refused.code == 1
    assert "a.txt: document 0:0 holds the special token '<|end|>' at byte 4000" in refused.err


@pytest.mark.usefixtures("small_streams")
def test_what_cannot_be_streamed_is_refused_by_name(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    def encode(model: str, text: bytes) -> str:
        (tmp_path / "a.txt").write_bytes(text)
        refused = run(
            *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / model),
            *("--output", tmp_path / f"out-{model}", "--range-bytes", 200),
            *("--max-row-bytes", 1500),
        )
        assert refused.code == 1
        return str(refused.err)

    save(tmp_path / "open", "cl100k", [(b"\n", b" ")])
    message = encode("open", b"x the end\n" + b" " * 4000)
    assert "--max-row-bytes=1500 is too small for a.txt, document 0:0: from byte 9 on" in message
    assert "whose tokens depend on what follows; raise the limit" in message
    save(tmp_path / "regex", r"regex:\w+|\W", [(b"a", b"a")])
    message = encode("regex", b"a" * 4000)
    assert "a.txt: the document at byte 0 is longer than --max-row-bytes=1500" in message
    model = Tokenizer.from_merges([(b"a", b"b"), (b"ab", b"c")], pretokenizer="none").model
    Tokenizer(replace(model, merges=model.merges[::-1])).save(tmp_path / "order")
    message = encode("order", b"a" * 4000)
    assert "a.txt: the document at byte 0 is longer than --max-row-bytes=1500" in message


@pytest.mark.one_in(3)
@pytest.mark.parametrize("limit", [1000, 150_000, 3 << 20])
@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_a_small_limit_refuses_no_stream(
    scheme: str, limit: int, tmp_path: Path, run: Callable[..., Any]
) -> None:
    tokenizer = save(tmp_path / "model", scheme)
    text = b"a" * 400_000 + b"\0"
    (tmp_path / "a.txt").write_bytes(text)
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model"),
        *("--output", output, "--range-bytes", 30_000, "--max-row-bytes", limit),
    )
    assert done.code == 0, done.err
    # The units are told apart, since what is counted are no documents.
    assert "accepted         nul 1 piece, streamed 1 range\n" in done.out
    assert (TokenShards(output).document(0) == tokenizer.encode(text)).all()


@pytest.mark.parametrize("specials", [[], [b"aa"], [b"\xc3\xa9<", b"<"], [b"ab", b"abab", b"\r"]])
def test_streamed_pieces_divide_no_special_token(specials: list[bytes], tmp_path: Path) -> None:
    data = (b"abab\r\n\xc3\xa9<\xe4\xb8\xad a" * 40 + b"a" * 333) * 3
    (tmp_path / "a.txt").write_bytes(data)
    for range_bytes in (2, 5, 8, 64):
        read = ReadOptions(range_bytes=range_bytes)
        unit = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read).units[0]
        finder = CutFinder(get_scheme("none"), specials, streams=True)
        batches = list(read_unit(unit, read, finder, Rejects(unit, read)))
        pieces = pa.Table.from_batches(batches).to_pylist()
        assert b"".join(piece["text"] for piece in pieces) == data
        assert [piece["goes_on"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        assert max(len(piece["text"]) for piece in pieces) <= max(2 * range_bytes, 16)
        for token in specials[:1]:
            # Of tokens that may overlap, each is read where it is read in the whole.
            assert sum(piece["text"].count(token) for piece in pieces) == data.count(token)


CHARACTERS = [
    b"a",
    b"B",
    b"1",
    b",",
    b" ",
    b"\n",
    b"\r\n",
    b"'s",
    "\u00e9".encode(),
    "\u4e2d".encode(),
]
CHARACTERS += ["\U0001f642".encode(), b"\xf0", b"\x9f", b"\x80", b"\xff", b"\0"]


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=90).map(b"".join),
    st.sampled_from(["gpt2", "cl100k", "o200k", "whitespace", "none"]),
    st.sampled_from([1, 1, 2, 3, 5]),
    st.integers(1, 40),
)
def test_short_ranges_hold_every_byte_once(
    data: bytes, scheme: str, range_bytes: int, marks: int
) -> None:
    finder = CutFinder(get_scheme(scheme), streams=True)
    found = b""
    for start in range(0, len(data), range_bytes * marks):
        stop = start + range_bytes * marks
        pieces = cut_documents.cut_pieces(
            io.BytesIO(data[start:]).read,
            finder,
            name="a.txt",
            document_start=0,
            start=start,
            stop=stop if stop < len(data) else None,
            range_bytes=range_bytes,
            max_bytes=1 << 20,
        )
        found += b"".join(piece.text for piece in pieces)
    assert found == data
