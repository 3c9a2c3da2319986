"""The tokenizer of whatever is at a path: our own model directory, or what other programs wrote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bpe.errors import ModelFileError, SettingsError
from bpe.formats import gpt2_files, model_directory, tiktoken_ranks
from bpe.formats.file_access import read_file
from bpe.formats.foreign_tokenizers import describe_bytes
from bpe.tokenizer import Tokenizer

__all__ = ["find_lone_pair", "find_published", "load_tokenizer"]

PathLike = str | os.PathLike[str]

# Where other programs keep tokenizers of other kinds.
_OTHER_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt")


def load_tokenizer(
    path: PathLike,
    *,
    pretokenizer: str | None = None,
    special_tokens: Mapping[str, int] | Sequence[str] | None = None,
) -> Tokenizer:
    """Load the tokenizer at a path, of any format.

    Args:
        path: a model directory; a tiktoken rank file of any name; a tokenizer.json, or a folder
            that holds one; a folder that holds GPT-2's pair (vocab.json and merges.txt, or
            encoder.json and vocab.bpe).
        pretokenizer: scheme of a rank file that is not a published one, or of GPT-2's pair
            (default: `gpt2`). All other files name their scheme, and it must be the same.
        special_tokens: of a rank file or of GPT-2's pair. None takes the published ones of a
            published rank file, and the bracketed entries of vocab.json.

    Raises:
        ModelFileError: the path holds none of these.
        SettingsError: the file names another scheme.
    """
    location = Path(path)
    if _is_rank_file(location):
        return Tokenizer.from_tiktoken(
            location, pretokenizer=pretokenizer, special_tokens=special_tokens
        )
    pair = find_lone_pair(location)
    if pair:
        names = None if special_tokens is None else list(special_tokens)
        return Tokenizer.from_gpt2(*pair, pretokenizer=pretokenizer or "gpt2", special_tokens=names)
    if special_tokens:
        raise SettingsError(
            f"{path} says itself which tokens are special; leave special_tokens out"
        )
    tokenizer = _load_complete(location)
    if pretokenizer not in (None, tokenizer.scheme.name):
        raise SettingsError(
            f"{path} is of pre-tokenizer {tokenizer.scheme.name!r}, and {pretokenizer!r} was asked "
            "for; leave it out"
        )
    return tokenizer


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


def _load_complete(location: Path) -> Tokenizer:
    """Load what holds its own scheme: a model directory, or a tokenizer.json."""
    if location.suffix == ".json":
        return Tokenizer.from_huggingface(location)
    if location.is_dir() and not model_directory.is_meant_as_model_directory(location):
        if (location / "tokenizer.json").is_file():
            return Tokenizer.from_huggingface(location / "tokenizer.json")
        _refuse_other_kinds(location)
        sizes = _sizes_in(location)
        if sizes:
            shown = ", ".join(str(location / str(size)) for size in sizes)
            raise ModelFileError(f"{location} holds several sizes: give one of {shown}")
        _name_rank_files(location)
    elif not location.is_dir():
        _refuse_other_kind(location)
        found = "is none of a tokenizer's files" if location.exists() else "is not there"
        raise ModelFileError(
            f"{location} {found}: give a model directory, a .tiktoken file, a tokenizer.json, or a "
            "folder with vocab.json and merges.txt"
        )
    return Tokenizer.load(location)


def _refuse_other_kinds(folder: Path) -> None:
    """Raise for a folder whose tokenizer is of a kind that is not read."""
    for name in _OTHER_FILES:
        _refuse_other_kind(folder / name)
    if (folder / "tekken.json").is_file():
        Tokenizer.from_huggingface(folder / "tekken.json")


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


def _refuse_other_kind(path: Path) -> None:
    kind = describe_bytes(read_file(path)) if path.is_file() else None
    if kind is not None:
        raise ModelFileError(f"{path} is {kind[0]}; {kind[1]}")


def _sizes_in(location: Path) -> list[int]:
    """Vocabulary sizes of the model directories that a training to several left here."""
    return sorted(
        int(folder.name)
        for folder in location.iterdir()
        if folder.name.isdecimal()
        and folder.is_dir()
        and model_directory.is_meant_as_model_directory(folder)
    )
