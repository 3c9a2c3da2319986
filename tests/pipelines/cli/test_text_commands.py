"""`encode-text` and `decode`: standard input to ids, and back to the same bytes."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend
from bpe.tokenizer import Tokenizer
from pipelines.cli import standard_streams
from pipelines.cli.command_line import main
from pipelines.cli.commands import encode_text

ROOT = Path(__file__).resolve().parents[3]
TEXTS = st.lists(
    st.sampled_from(
        [
            *(b"the and", b"hand" * 9, b"\n", b"\r\n", b"\n\n", b" ", b"\xff", b"\x00"),
            *("é🙂".encode(), b"<|endoftext|>", b"<|end", b"1 2"),
        ]
    ),
    max_size=12,
).map(b"".join)

Pipe = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Pipe:
    """Runs a command on bytes; gives its exit code, standard output and standard error."""

    def run(data: bytes, *arguments: object, block: int = 1 << 20) -> tuple[int, bytes, str]:
        output = io.TextIOWrapper(io.BytesIO(), newline="")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(standard_streams, "_BLOCK_BYTES", block)
        capfd.readouterr()
        code = main([str(each) for each in arguments])
        buffer = output.buffer
        assert isinstance(buffer, io.BytesIO)
        return code, buffer.getvalue(), capfd.readouterr().err

    return run


@pytest.mark.parametrize("lines", [(), ("--lines",)])
@pytest.mark.parametrize("special_text", ["text", "allow"])
@example(text=b"", block=1)
@example(text=b"\n", block=1)
@example(text=b"the\nand", block=4)
@example(text=b"the\r\nand\r\n", block=4)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, block=st.integers(1, 20))
def test_decode_gives_back_every_byte(
    text: bytes,
    block: int,
    lines: tuple[str, ...],
    special_text: str,
    model_dir: Path,
    pipe: Pipe,
) -> None:
    given_options = ("--tokenizer", model_dir, *lines)
    code, ids, _ = pipe(
        text, "encode-text", *given_options, "--special-text", special_text, block=block
    )
    assert code == 0
    tokenizer = Tokenizer.load(model_dir)
    documents = text.split(b"\n") if lines else [text]
    expected = [
        " ".join(map(str, tokenizer.encode(each, special_text=special_text).tolist()))
        for each in documents
    ]
    # A document ends where its line ends; all of standard input is a line of ids.
    assert ids.decode() == "\n".join(expected if lines else [*expected, ""])
    assert pipe(ids, "decode", *given_options, block=block)[:2] == (0, text)


def test_ids_are_those_of_both_backends(backend: Backend, model_dir: Path, pipe: Pipe) -> None:
    del backend
    code, ids, _ = pipe(b"the and\n hand", "encode-text", "--tokenizer", model_dir, "--lines")
    assert (code, ids) == (0, b"83 257 220 260\n220 71 260")
    assert pipe(ids, "decode", "--tokenizer", model_dir, "--lines")[1] == b"the and\n hand"


def test_a_long_document_is_streamed(model_dir: Path, pipe: Pipe) -> None:
    text = b"the hand and the " * 400
    options = ("--tokenizer", model_dir, "--max-row-bytes", 200)
    for lines in ((), ("--lines",)):
        code, ids, error = pipe(text, "encode-text", *options, *lines, block=64)
        assert (code, error) == (0, "")
        assert list(map(int, ids.split())) == Tokenizer.load(model_dir).encode(text).tolist()
        assert pipe(ids, "decode", *options, *lines, block=64)[:2] == (0, text)


def test_what_does_not_fit_names_the_option(tmp_path: Path, pipe: Pipe) -> None:
    """A pattern of the user's cannot be cut, and a normalizer needs the whole document."""
    ranks, normalized = tmp_path / "regex", tmp_path / "nfc"
    Tokenizer.from_merges([(b"a", b"b")], pretokenizer=r"regex:\w+|\W+").save(ranks)
    huggingface = normalized / "tokenizer.json"
    normalized.mkdir()
    Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2").to_huggingface(huggingface)
    content = huggingface.read_text().replace('"normalizer": null', '"normalizer": {"type": "NFC"}')
    assert "NFC" in content
    huggingface.write_text(content)
    for tokenizer in (ranks, normalized):
        options = ("--tokenizer", tokenizer, "--max-row-bytes", 20)
        code, _, error = pipe(b"ab " * 20, "encode-text", *options)
        assert code == 1
        assert "error: --max-row-bytes=20 is too small for standard input: " in error
        code, _, error = pipe(b"x\n" + b"ab " * 20, "encode-text", "--lines", *options, block=16)
        assert code == 1
        assert "error: --max-row-bytes=20 is too small for line 2: " in error
        assert pipe(b"ab\nx", "encode-text", "--lines", *options)[1] == b"256\n87"


def test_a_lossy_tokenizer_is_noted(tmp_path: Path, pipe: Pipe) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2").to_huggingface(path)
    path.write_text(path.read_text().replace('"normalizer": null', '"normalizer": {"type": "NFC"}'))
    code, ids, error = pipe("e\u0301".encode(), "encode-text", "--tokenizer", path)
    assert code == 0
    assert "decoding gives the normal form" in error
    assert pipe(ids, "decode", "--tokenizer", path)[1] == "é".encode()


@pytest.mark.parametrize("block", [3, 1 << 20])
@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (
            b"the <|endoftext|>",
            (),
            "standard input: the special token '<|endoftext|>' is at byte 4;",
        ),
        (b"a\nb\nthe <|endoftext|>", ("--lines",), "line 3: the special token '<|endoftext|>' is "),
        (
            b"a\n<|endoftext|>\nb",
            ("--lines",),
            "line 2: the special token '<|endoftext|>' is at by",
        ),
    ],
)
def test_reject_names_line_and_byte(
    text: bytes, lines: tuple[str, ...], expected: str, block: int, model_dir: Path, pipe: Pipe
) -> None:
    options = ("--tokenizer", model_dir, "--special-text", "reject", *lines)
    code, _, error = pipe(text, "encode-text", *options, block=block)
    assert code == 1
    assert error.startswith(f"error: {expected}")
    assert "--special-text=allow" in error
    assert pipe(b"the <|end\nx", "encode-text", *options)[0] == 0


@pytest.mark.parametrize("block", [3, 1 << 20])
@pytest.mark.parametrize(
    ("ids", "line", "value"),
    [
        (b"65 66\n\n262 67\n", 3, "'262'"),
        (b"65 x66", 1, "'x66'"),
        (b"65\n-1\n", 2, "'-1'"),
        (b"65\n1.0", 2, "'1.0'"),
        (b"65\n0x41", 2, "'0x41'"),
        (b"65\n1_0", 2, "'1_0'"),
        (b"65 99999999999999999999999999", 1, "'99999999999999999999999999'"),
        (b"65\n18446744073709551681", 2, "'18446744073709551681'"),
        (b"65 \xff", 1, r"'\\xff'"),
        (b"\x0065", 1, r"'\x0065'"),
    ],
)
def test_what_is_no_id_is_named(
    ids: bytes, line: int, value: str, block: int, model_dir: Path, pipe: Pipe
) -> None:
    code, _, error = pipe(ids, "decode", "--tokenizer", model_dir, block=block)
    assert code == 1
    assert error == (
        f"error: line {line}: {value} is no id of this vocabulary (262 ids, the largest is 261)\n"
    )


def test_ids_are_separated_by_any_white_space(model_dir: Path, pipe: Pipe) -> None:
    given = b"\t 64  0065\r\n\v66\n \n67"
    assert pipe(given, "decode", "--tokenizer", model_dir)[1] == b"abcd"
    assert pipe(given, "decode", "--tokenizer", model_dir, "--lines")[1] == b"ab\nc\n\nd"
    assert pipe(b" ", "decode", "--tokenizer", model_dir)[1] == b""


def test_digits_without_end_are_refused(model_dir: Path, pipe: Pipe) -> None:
    code, _, error = pipe(b"64\n" + b"0" * 200_000, "decode", "--tokenizer", model_dir, block=999)
    assert code == 1
    assert error.startswith("error: line 2: '0000")
    assert error.endswith("is longer than any id\n")


def test_another_library_decodes_whole_lines(
    model_dir: Path, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "reencodes", False)
    options = ("--tokenizer", model_dir, "--max-row-bytes", 8)
    assert pipe(b"64 65\n66 67\n", "decode", *options, block=4)[1] == b"abcd"
    code, text, error = pipe(b"64 65\n66 67 68 69\n", "decode", *options, block=4)
    assert (code, text) == (1, b"ab")
    assert error.startswith("error: --max-row-bytes=8 is too small for line 2: ")


def test_ids_are_printed_in_parts(
    model_dir: Path, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_text, "_PRINTED_IDS", 3)
    code, ids, _ = pipe(b"the and the hand", "encode-text", "--tokenizer", model_dir)
    expected = Tokenizer.load(model_dir).encode("the and the hand").tolist()
    assert (code, ids.decode()) == (0, " ".join(map(str, expected)) + "\n")


@pytest.mark.parametrize("command", ["encode-text", "decode"])
def test_closed_streams(command: str, model_dir: Path) -> None:
    """Nobody reads on: the end of the command. Nothing to read from: an error."""
    program = f"{sys.executable} -m pipelines.cli {command} --tokenizer {model_dir}"
    done = subprocess.run(
        ["bash", "-c", f"yes 65 | {program} | head -c 9; echo ${{PIPESTATUS[1]}}; {program} <&-"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.stdout.endswith(b"0\n")
    assert done.returncode == 1
    assert done.stderr.decode() == "error: [Errno 9] Bad file descriptor: 'standard input'\n"


def test_encode_text_does_without_beam(model_dir: Path) -> None:
    code = (
        "import sys\nfrom pipelines.cli import command_line\n"
        f"command_line.main(['encode-text', '--tokenizer', {str(model_dir)!r}])\n"
        "sys.exit('apache_beam' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, input=b"a", check=False)
    assert done.returncode == 0
