"""The tokenizer of whatever is at a path: our own model directory, or what other programs wrote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.engines.library_model import LibraryModel
from bpe.engines.loading import read_by_library, read_sentencepiece, read_wordpiece_vocab
from bpe.errors import ModelFileError, SettingsError
from bpe.formats import gpt2_files, model_directory, tiktoken_ranks
from bpe.formats.byte_presets import is_byte_preset, make_byte_model
from bpe.formats.file_access import read_file
from bpe.formats.foreign_tokenizers import SENTENCEPIECE, WORDPIECE, describe_bytes
from bpe.formats.golden import GoldenText
from bpe.formats.sentencepiece_bpe import model_of_pieces
from bpe.formats.sentencepiece_model import parse_sentencepiece
from bpe.formats.tekken import is_tekken, parse_tekken
from bpe.formats.tokenizer_json import UnsupportedFileError, parse_tokenizer_json
from bpe.pretokenizing.schemes import get_scheme

__all__ = ["find_lone_pair", "find_published", "read_tokenizer"]

PathLike = str | os.PathLike[str]

# Where other programs keep tokenizers of other kinds.
_OTHER_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt")


def read_tokenizer(
    path: PathLike,
    *,
    pretokenizer: str | None = None,
    special_tokens: Mapping[str, int] | Sequence[str] | None = None,
) -> tuple[TokenizerModel | LibraryModel, list[GoldenText] | None]:
    """Model of the tokenizer at a path, of any format; see `Tokenizer.load` for the arguments.

    With the model of a model directory come its golden texts, for the caller to check.
    """
    location = Path(path)
    if is_byte_preset(location):
        if pretokenizer is not None:
            raise SettingsError(f"{path} merges nothing: leave the pre-tokenizer out")
        return make_byte_model(str(location), special_tokens), None
    if _is_rank_file(location):
        model = tiktoken_ranks.read_tiktoken_ranks(
            location, pretokenizer=pretokenizer, special_tokens=special_tokens
        )
        return model, None
    pair = find_lone_pair(location)
    if pair:
        names = None if special_tokens is None else list(special_tokens)
        scheme = get_scheme(pretokenizer or "gpt2")
        return gpt2_files.read_gpt2_files(*pair, scheme=scheme, special_tokens=names), None
    if special_tokens:
        raise SettingsError(
            f"{path} says itself which tokens are special; leave special_tokens out"
        )
    complete, golden = _read_complete(location)
    if pretokenizer is not None and get_scheme(pretokenizer).name != complete.scheme.name:
        raise SettingsError(
            f"{path} is of pre-tokenizer {complete.scheme.name!r}, and {pretokenizer!r} was asked "
            "for; leave it out"
        )
    return complete, golden


def find_lone_pair(path: PathLike) -> tuple[Path, Path] | None:
    """GPT-2's pair of files in a folder where nothing names their pre-tokenizer; else None."""
    location = Path(path)
    if (
        model_directory.is_meant_as_model_directory(location)
        or (location / "tokenizer.json").is_file()
    ):
        return None
    return gpt2_files.find_gpt2_files(location)


def find_published(path: PathLike) -> tiktoken_ranks.PublishedFile | None:
    """What is known of a published `.tiktoken` file; None for anything else."""
    location = Path(path)
    return tiktoken_ranks.published_file(location) if _is_rank_file(location) else None


def _is_rank_file(location: Path) -> bool:
    return location.suffix == ".tiktoken" or (
        location.is_file() and tiktoken_ranks.is_rank_file(location)
    )


def _read_complete(location: Path) -> tuple[TokenizerModel | LibraryModel, list[GoldenText] | None]:
    """Read what holds its own scheme: a model directory, a tokenizer.json, or another kind."""
    if location.suffix == ".json":
        return _read_json(location), None
    if location.is_dir() and not model_directory.is_meant_as_model_directory(location):
        if (location / "tokenizer.json").is_file():
            return _read_json(location / "tokenizer.json"), None
        for name in _OTHER_FILES:
            other = _read_other_kind(location / name)
            if other is not None:
                return other, None
        if (location / "tekken.json").is_file():
            return _read_json(location / "tekken.json"), None
        sizes = _sizes_in(location)
        if sizes:
            shown = ", ".join(str(location / str(size)) for size in sizes)
            raise ModelFileError(f"{location} holds several sizes: give one of {shown}")
        _name_rank_files(location)
    elif not location.is_dir():
        other = _read_other_kind(location)
        if other is not None:
            return other, None
        found = "is none of a tokenizer's files" if location.exists() else "is not there"
        raise ModelFileError(
            f"{location} {found}: give a model directory, a .tiktoken file, a tokenizer.json, or a "
            "folder with vocab.json and merges.txt"
        )
    return model_directory.read_model_directory(location)


def _read_json(path: Path) -> TokenizerModel | LibraryModel:
    """Model of a tekken.json or tokenizer.json: natively where that is exact, else by a library."""
    data = read_file(path)
    if is_tekken(data):
        return parse_tekken(data, path)
    try:
        return parse_tokenizer_json(data, path)
    except UnsupportedFileError as refusal:
        return read_by_library(path, refusal)


def _name_rank_files(folder: Path) -> None:
    """Raise for a folder without tokenizer.json and the like that holds files to be named alone."""
    if (folder / "config.json").exists():
        return
    names = [name for name in sorted(os.listdir(folder)) if _is_rank_file(folder / name)]
    if names:
        raise ModelFileError(
            f"{folder} holds no tokenizer.json, no vocab.json with merges.txt and no config.json, "
            f"but {', '.join(names[:3])}: name that file, such as {folder / names[0]}"
        )


def _read_other_kind(path: Path) -> TokenizerModel | LibraryModel | None:
    """Model of a file of another kind; None for none, `ModelFileError` for one nobody reads."""
    kind = describe_bytes(read_file(path)) if path.is_file() else None
    if kind is None:
        return None
    refusal = ModelFileError(f"{path} is {kind[0]}; {kind[1]}")
    if kind[0] == SENTENCEPIECE:
        try:
            return model_of_pieces(parse_sentencepiece(read_file(path), path), path)
        except ModelFileError as native_refusal:
            return read_sentencepiece(path, native_refusal)
    if kind[0] == WORDPIECE:
        return read_wordpiece_vocab(path, refusal)
    raise refusal


def _sizes_in(location: Path) -> list[int]:
    """Vocabulary sizes of the model directories that a training to several left here."""
    return sorted(
        int(folder.name)
        for folder in location.iterdir()
        if folder.name.isdecimal()
        and folder.is_dir()
        and model_directory.is_meant_as_model_directory(folder)
    )
