"""Rank files of model families: the ids that their makers' library gives."""

from __future__ import annotations

import base64
import importlib.util
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bpe import Tokenizer, load_tokenizer
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.formats.tiktoken_ranks import read_tiktoken_ranks

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN35 = (
    r"regex:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def zoo(shared_data: Path) -> Path:
    return shared_data / "zoo"


@pytest.fixture(scope="module")
def llama3_file() -> Path:
    """Llama 3's tokenizer.model, which may not be passed on; the package llama-models has it."""
    found = importlib.util.find_spec("llama_models")
    if found is None or found.origin is None:
        pytest.skip("Llama 3's tokenizer.model is not here: pip install --no-deps llama-models")
    return Path(found.origin).parent / "llama3" / "tokenizer.model"


def expected_rows(zoo: Path, name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (zoo / "expected" / name).read_text().splitlines()]
    assert len(rows) == 138
    return rows


def read_model(path: Path, pretokenizer: str | None = None) -> TokenizerModel:
    """Read with the native core, as the reference takes half a minute to find 250,000 merges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_BACKEND", "native")
        return read_tiktoken_ranks(path, pretokenizer=pretokenizer)


@pytest.fixture(scope="module")
def qwen(zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> TokenizerModel:
    path = tmp_path_factory.mktemp("qwen") / "qwen3_6.tiktoken"
    packed = zoo / "files/qwen3.6-tiktoken/qwen3_6.tiktoken.xz"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return read_model(path, QWEN35)


@pytest.fixture(scope="module")
def tekken(zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> TokenizerModel:
    packed = (zoo / "files/tekken/tekken_240718.json.xz").read_bytes()
    content = json.loads(lzma.decompress(packed))
    config = content["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    path = tmp_path_factory.mktemp("tekken") / "tekken.tiktoken"
    path.write_text("".join("{token_bytes} {rank}\n".format(**r) for r in content["vocab"][:size]))
    return read_model(path, f"regex:{config['pattern']}")


@pytest.fixture(scope="module")
def llama3(llama3_file: Path) -> TokenizerModel:
    return read_model(llama3_file)


@pytest.fixture(scope="module")
def whisper(zoo: Path) -> TokenizerModel:
    return read_model(zoo / "files/whisper-tiktoken/multilingual.tiktoken")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("qwen", "qwen3.5-3.6.tiktoken.jsonl"),
        ("tekken", "tekken.tiktoken.jsonl"),
        ("llama3", "llama-3.tiktoken.jsonl"),
        ("whisper", "whisper-tiktoken.jsonl"),
    ],
)
@pytest.mark.usefixtures("backend")
def test_ids_of_the_zoo(
    family: str, expected: str, zoo: Path, request: pytest.FixtureRequest
) -> None:
    tokenizer = Tokenizer(request.getfixturevalue(family))
    for row in expected_rows(zoo, expected):
        assert tokenizer.encode(row["text"]).tolist() == row["ids"], row["text"]


@pytest.mark.usefixtures("backend")
def test_a_llama_3_token_that_comes_before_its_parts(llama3: TokenizerModel) -> None:
    tokenizer = Tokenizer(llama3)
    assert tokenizer.encode(" наказание").tolist() == [114573, 27717]
    assert len(tokenizer.special_tokens) == 256
    assert tokenizer.special_tokens["<|eot_id|>"] == 128009
    assert tokenizer.max_id == 128255


def test_llama_4_is_known(llama3_file: Path) -> None:
    tokenizer = load_tokenizer(llama3_file.parent.parent / "llama4" / "tokenizer.model")
    assert tokenizer.scheme.name == "o200k"
    assert tokenizer.encode("a<|eot|>", special_text="allow").tolist()[1:] == [200008]


def test_llama_3_in_many_languages(
    llama3: TokenizerModel, llama3_file: Path, shared_data: Path
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    tokenizer = Tokenizer(llama3)
    lines = map(bytes.split, llama3_file.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    theirs = tiktoken.Encoding("x", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens={})
    texts = zipfile.ZipFile(shared_data / "corpora" / "udhr2.zip")
    count = 0
    for name in texts.namelist():
        text = texts.read(name).decode("utf-8", "replace")
        assert tokenizer.encode(text).tolist() == theirs.encode_ordinary(text), name
        count += 1
    assert count > 380
