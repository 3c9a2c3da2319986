"""Our model directory: written whole, verified when read, and its golden set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regex

from bpe import (
    InputError,
    ModelFileError,
    OutputError,
    SettingsError,
    Tokenizer,
    load_tokenizer,
)
from bpe.encoding.added_tokens import AddedToken
from bpe.formats import file_access, model_directory
from tests.bpe.model_cases import MERGES, NAMES, edit, make


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make().save(tmp_path / "model")
    return tmp_path / "model"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- writing -------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    "scheme", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "none", r"regex:\d|a+"]
)
def test_what_is_saved_loads_back(scheme: str, tmp_path: Path) -> None:
    tokenizer = make(scheme)
    tokenizer.save(tmp_path / "model")
    loaded = Tokenizer.load(tmp_path / "model")
    assert loaded.digest == tokenizer.digest
    assert loaded.model == tokenizer.model
    assert names_in(tmp_path / "model") == NAMES
    assert names_in(tmp_path) == ["model"]


def test_every_field_survives(tmp_path: Path) -> None:
    model = replace(
        make().model,
        added_tokens=[
            AddedToken("é ü", 300, special=False, lstrip=True),
            AddedToken("ab", 256, single_word=True),
            AddedToken("<x>", 70000),
            AddedToken("   ", 70001, special=False, normalized=True, rstrip=True),
        ],
        tokens={**make().model.tokens, 400: b"whole", 401: b"\xff\xff"},
        whole_piece=True,
        normalizer="NFC",
        tie_order=None,
        training={},
        post_processor={"type": "TemplateProcessing"},
    )
    Tokenizer(model).save(tmp_path / "model")
    assert Tokenizer.load(tmp_path / "model").model == model


def test_a_directory_of_format_1_is_read(directory: Path) -> None:
    def to_format_1(config: dict[str, Any]) -> None:
        del config["added_tokens"]
        config.update(format_version=1, special_tokens={"<|end|>": 260, "fin": 261})

    edit(directory / "config.json", to_format_1)
    assert Tokenizer.load(directory).digest == make().digest


@pytest.mark.parametrize(
    ("version", "what"), [(1, "holds no texts"), (2, "lacks the text 1 of those that [^:]*")]
)
def test_an_older_directory_without_golden_texts_was_cut(
    directory: Path, version: int, what: str
) -> None:
    (directory / "golden.jsonl").write_bytes(b"\n")
    (directory / "tokenizer_config.json").unlink()

    def to_older(config: dict[str, Any]) -> None:
        del config["files"]["tokenizer_config.json"]
        config["files"]["golden.jsonl"] = hashlib.sha256(b"\n").hexdigest()
        config.update(format_version=version)
        if version == 1:
            del config["added_tokens"]
            config.update(special_tokens={"<|end|>": 260, "fin": 261})

    edit(directory / "config.json", to_older)
    with pytest.raises(ModelFileError, match=rf"golden\.jsonl: {what}: it was cut"):
        Tokenizer.load(directory).check_files(directory)


def test_a_directory_of_format_2_is_read_and_checked(directory: Path) -> None:
    def to_format_2(config: dict[str, Any]) -> None:
        del config["files"]["tokenizer_config.json"]
        config.update(format_version=2)

    edit(directory / "config.json", to_format_2)
    (directory / "tokenizer_config.json").unlink()
    tokenizer = Tokenizer.load(directory)
    tokenizer.check_files(directory)
    (directory / "tokenizer_config.json").write_text("{}")  # the user's own
    tokenizer.check_files(directory)
    tokenizer.save(directory, overwrite=True)
    assert names_in(directory) == NAMES
    Tokenizer.load(directory).check_files(directory)


def test_transformers_finds_the_roles_of_special_tokens(tmp_path: Path) -> None:
    def saved(name: str, *special_tokens: str) -> dict[str, Any]:
        tokenizer = Tokenizer.from_merges([], pretokenizer="gpt2", special_tokens=special_tokens)
        tokenizer.save(tmp_path / name)
        text = (tmp_path / name / "tokenizer_config.json").read_text()
        found: dict[str, Any] = json.loads(text)
        return found

    plain = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 1000000000000000019884624838656,
        "clean_up_tokenization_spaces": False,
    }
    assert saved("none") == saved("other", "<|tool|>") == plain
    end = "<|endoftext|>"
    assert saved("gpt2", end) == plain | {"bos_token": end, "eos_token": end}
    roles = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    assert saved("llama", "<pad>", "</s>", "<s>") == plain | roles
    Tokenizer.from_merges([], pretokenizer=r"regex:\d|(?<=a)b{2,}+").save(tmp_path / "own")
    assert ("tokenizer_config.json" in names_in(tmp_path / "own")) == (
        "tokenizer.json" in names_in(tmp_path / "own")
    )


def test_a_changed_tokenizer_config_is_named(directory: Path) -> None:
    tokenizer = Tokenizer.load(directory)
    edit(directory / "tokenizer_config.json", lambda config: config.update(eos_token="fin"))
    with pytest.raises(ModelFileError, match=r"tokenizer_config\.json: sha256 is"):
        Tokenizer.load(directory)
    with pytest.raises(ModelFileError, match=r"tokenizer_config\.json: is missing, or is not"):
        tokenizer.check_files(directory)


def test_saving_twice_gives_the_same_bytes(directory: Path, tmp_path: Path) -> None:
    Tokenizer.load(directory).save(tmp_path / "again")
    for name in NAMES:
        assert (tmp_path / "again" / name).read_bytes() == (directory / name).read_bytes()


def test_the_configuration_tells_what_the_tokenizer_is(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    assert config["format"] == "beam-bpe tokenizer"
    assert config["format_version"] == 3
    assert config["scheme"] == "gpt2"
    assert config["tie_order"] == "id"
    assert config["unicode_version"] == "16.0.0"
    assert config["vocab_size"] == 262
    plain = {"special": True} | dict.fromkeys(("normalized", "lstrip", "rstrip"), False)
    plain |= {"single_word": False, "ordinary": False}
    assert config["added_tokens"] == [
        {"text": "<|end|>", "id": 260, **plain},
        {"text": "fin", "id": 261, **plain},
    ]
    assert config["training"]["inputs"] == ["é.txt"]
    assert config["without_tokenizer_json"] is None
    assert config["lossy"] is False
    assert sorted(config["files"]) == [name for name in NAMES if name != "config.json"]
    for name, sha256 in config["files"].items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == sha256


def test_gpt2s_files_and_tokenizer_json_stand_for_themselves(directory: Path) -> None:
    pair = directory / "vocab.json", directory / "merges.txt"
    imported = Tokenizer.from_gpt2(*pair, special_tokens=["<|end|>", "fin"])
    assert imported.digest == make().digest
    assert Tokenizer.from_huggingface(directory / "tokenizer.json").digest == make().digest


def test_tokenizer_json_is_left_out_where_it_would_mean_something_else(tmp_path: Path) -> None:
    make(r"regex:\w+").save(tmp_path / "model")
    assert "tokenizer.json" not in names_in(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert r"\w: not an escape" in config["without_tokenizer_json"]
    assert Tokenizer.load(tmp_path / "model").digest == make(r"regex:\w+").digest


def test_a_directory_with_other_files_takes_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "counts").mkdir()
    make().save(tmp_path)
    assert names_in(tmp_path) == sorted([*NAMES, "counts"])
    assert Tokenizer.load(tmp_path).digest == make().digest


def test_missing_parents_are_made(tmp_path: Path) -> None:
    make().save(tmp_path / "tokenizers" / "books" / "v1")
    assert names_in(tmp_path / "tokenizers" / "books") == ["v1"]


def test_a_tokenizer_is_not_overwritten_unasked(directory: Path) -> None:
    before = (directory / "config.json").read_bytes()
    with pytest.raises(OutputError, match=r"model holds vocab\.json already; .*--overwrite"):
        make("cl100k").save(directory)
    assert (directory / "config.json").read_bytes() == before
    make("cl100k").save(directory, overwrite=True)
    assert Tokenizer.load(directory).scheme.name == "cl100k"


def test_overwriting_leaves_nothing_of_the_old_one(directory: Path) -> None:
    make(r"regex:\w+").save(directory, overwrite=True)
    assert "tokenizer.json" not in names_in(directory)


def test_someone_elses_vocab_json_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(OutputError, match=r"holds vocab\.json already"):
        make().save(tmp_path)
    assert names_in(tmp_path) == ["vocab.json"]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/model cannot be written: Not a directory"):
        make().save(tmp_path / "file" / "model")
    with pytest.raises(OutputError, match=r"file is a file; choose another directory"):
        make().save(tmp_path / "file")


@pytest.mark.parametrize("failing", NAMES)
@pytest.mark.parametrize("folder", ["there", "new"])
def test_a_failure_half_way_leaves_no_tokenizer(
    failing: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file = file_access.write_file

    def fail(path: Path, data: bytes) -> None:
        if Path(path).name == failing:
            raise OutputError(f"{path} cannot be written: No space left on device")
        write_file(path, data)

    monkeypatch.setattr(model_directory, "write_file", fail)
    target = tmp_path / "model"
    if folder == "there":
        target.mkdir()
    with pytest.raises(OutputError, match="No space left on device"):
        make().save(target)
    assert not model_directory.is_model_directory(target)
    assert names_in(tmp_path) == (["model"] if folder == "there" else [])


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken cannot be written"):
        file_access.write_file(tmp_path / "taken", b"x")
    assert names_in(tmp_path) == ["taken"]


# ---- reading -------------------------------------------------------------------------------


def test_what_is_no_model_directory_is_named(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"nowhere is not there; give the directory of a tr"):
        Tokenizer.from_directory(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"vocab\.json is a file; give the directory"):
        Tokenizer.from_directory(directory / "vocab.json")
    with pytest.raises(ModelFileError, match=r"holds no config\.json, .* never finished"):
        Tokenizer.load(tmp_path)
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(ModelFileError, match=r"config\.json, column 2: not JSON"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "here"), [(r"\d|a+", "16.0.0"), (r"\w|a+", f"regex {regex.__version__}")]
)
def test_a_users_pattern_under_another_regex_module_is_said(
    pattern: str, here: str, tmp_path: Path
) -> None:
    make(f"regex:{pattern}").save(tmp_path / "model")

    def change(config: dict[str, Any]) -> None:
        config["unicode_version"] = "regex 2020.1.1"
        model = make(f"regex:{pattern}").model
        scheme = replace(model.scheme, unicode_version="regex 2020.1.1")
        config["digest"] = replace(model, scheme=scheme).digest

    edit(tmp_path / "model" / "config.json", change)
    with pytest.warns(UserWarning, match=rf"classes of regex 2020\.1\.1, these are of {here}"):
        tokenizer = Tokenizer.load(tmp_path / "model")
    assert tokenizer.scheme.unicode_version == "regex 2020.1.1"


# ---- any tokenizer -------------------------------------------------------------------------


def test_load_takes_any_tokenizer(directory: Path, tmp_path: Path) -> None:
    # test_zoo and test_published_tokenizers load the others' files through the same function.
    assert load_tokenizer == Tokenizer.load
    assert Tokenizer.load(directory / "tokenizer.json") == make()
    with pytest.raises(ModelFileError, match=r"holds no config\.json"):
        Tokenizer.from_directory(tmp_path)


def test_any_kind_of_path_is_loaded(directory: Path, tmp_path: Path) -> None:
    assert load_tokenizer(directory).digest == make().digest
    assert load_tokenizer(str(directory), pretokenizer="gpt2").digest == make().digest
    assert load_tokenizer(directory / "tokenizer.json").digest == make().digest
    make().to_tiktoken(tmp_path / "x.tiktoken")
    ranks = load_tokenizer(tmp_path / "x.tiktoken", pretokenizer="cl100k")
    assert ranks.scheme.name == "cl100k"
    assert ranks.merges == MERGES

    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "config.json").write_text('{"model_type": "gpt2"}')
    for name in ("vocab.json", "merges.txt", "tokenizer.json"):
        (hub / name).write_bytes((directory / name).read_bytes())
    assert load_tokenizer(hub).digest == make().digest
    (hub / "tokenizer.json").unlink()
    pair = load_tokenizer(hub, special_tokens=["<|end|>", "fin"])
    assert pair.digest == make().digest
    assert load_tokenizer(hub, pretokenizer="qwen2").scheme.name == "qwen2"
    (hub / "vocab.json").rename(hub / "encoder.json")
    (hub / "merges.txt").rename(hub / "vocab.bpe")
    assert load_tokenizer(hub).merges == MERGES


def test_a_published_rank_file_brings_its_special_tokens(rank_files: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(rank_files["cl100k_base"], pretokenizer="cl100k")
    assert tokenizer.token_id("<|endoftext|>") == 100257
    assert tokenizer.vocab_size == 100256 + 5
    assert tokenizer.max_id == 100276


def test_what_cannot_be_loaded_is_named(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"nowhere is not there: give a model directory, a \."):
        load_tokenizer(tmp_path / "nowhere")
    (tmp_path / "x.model").write_text("")
    with pytest.raises(ModelFileError, match=r"x\.model is none of a tokenizer's files: give"):
        load_tokenizer(tmp_path / "x.model")
    with pytest.raises(ModelFileError, match=r"x\.tiktoken: no such file"):
        load_tokenizer(tmp_path / "x.tiktoken", pretokenizer="gpt2")
    with pytest.raises(ModelFileError, match=r"holds no config\.json"):
        load_tokenizer(tmp_path)
    with pytest.raises(SettingsError, match=r"is of pre-tokenizer 'gpt2', and 'llama3' was asked"):
        load_tokenizer(directory, pretokenizer="llama3")
    with pytest.raises(SettingsError, match="says itself which tokens are special"):
        load_tokenizer(directory, special_tokens=["<x>"])
    assert issubclass(SettingsError, InputError)
