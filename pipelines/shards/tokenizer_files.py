"""The tokenizer of an encode job as a file: copied into the output, loaded once per process."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from bpe.errors import ModelFileError
from bpe.formats.model_directory import CONFIG_NAME, MODEL_FILES, is_model_directory
from bpe.tokenizer import Tokenizer
from pipelines.storage.output_files import (
    delete_files,
    exists,
    join,
    list_files,
    match_remote,
    read_bytes,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.own_paths import escape, is_local

__all__ = [
    "as_tokenizer",
    "cached_tokenizer",
    "clear_model",
    "copy_files",
    "find_models",
    "is_finished_model",
    "load_copy",
    "save_copy",
]

_cache: dict[str, Tokenizer] = {}
_cache_lock = threading.Lock()


def as_tokenizer(given: Tokenizer | str | os.PathLike[str]) -> Tokenizer:
    """The tokenizer that a caller gives: itself, a tokenizer file, or a model directory.

    A model directory may lie on any file system.

    Raises:
        ModelFileError: the path holds no tokenizer, or a damaged one.
    """
    if isinstance(given, Tokenizer):
        return given
    path = os.fspath(given).removeprefix("file://")
    if not is_local(path) or is_model_directory(path):
        return load_copy(path)
    return Tokenizer.load(path)


def copy_files(model: Path, directory: str) -> None:
    """Copy a local model directory to `directory`, on any file system.

    Files that are there already are replaced one by one; `config.json` comes last.

    Raises:
        OutputError: a file cannot be written.
    """
    # Without config.json the folder is no model directory while its files change.
    files = sorted(model.iterdir(), key=lambda file: file.name == CONFIG_NAME)
    delete_files(directory, [CONFIG_NAME])
    for file in files:
        if file.is_file():
            write_atomically(directory, file.name, file.read_bytes())
    remove_temporary_files(directory)


def save_copy(tokenizer: Tokenizer, directory: str) -> None:
    """Write the model directory of a job's tokenizer to `directory`, on any file system.

    Workers in this process then take the tokenizer as it is, and need not load the copy.

    Args:
        tokenizer: the tokenizer; its model directory, if it has one, is copied with the golden set.
        directory: where to.

    Raises:
        OutputError: a file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        model = Path(folder) / "model"
        source = tokenizer.directory
        if source is not None and is_model_directory(source):
            model.mkdir()
            for name in MODEL_FILES:
                if (Path(source) / name).is_file():
                    (model / name).write_bytes((Path(source) / name).read_bytes())
        else:
            Tokenizer(tokenizer.model).save(model)
        copy_files(model, directory)
    with _cache_lock:
        _cache.setdefault(tokenizer.digest, tokenizer)


def is_finished_model(directory: str) -> bool:
    """Whether a folder holds a complete model directory."""
    return exists(join(directory, CONFIG_NAME))


def find_models(output: str) -> list[str]:
    """Model directories of a training output: the folder itself, and those named by a size."""
    found = [output] if is_finished_model(output) else []
    if is_local(output):
        folders = _numbered_folders(output)
        # Other programs have folders named by numbers with a config.json as well.
        folders = [folder for folder in folders if is_model_directory(folder)]
    else:
        pattern = join(escape(output), "*", CONFIG_NAME)
        folders = [item.path.rsplit("/", 1)[0] for item in match_remote(pattern)]
    return found + sorted(each for each in folders if each.rsplit("/", 1)[-1].isdigit())


def _numbered_folders(output: str) -> list[str]:
    try:
        with os.scandir(output) as entries:
            return [
                os.path.join(output, entry.name)
                for entry in entries
                if entry.name.isdigit() and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def clear_model(directory: str) -> None:
    """Remove the files of a model directory, `config.json` first; others stay."""
    delete_files(directory, [CONFIG_NAME])
    delete_files(directory, list(MODEL_FILES))


def load_copy(directory: str, *, checks_files: bool = False) -> Tokenizer:
    """Load a model directory from any file system.

    Args:
        directory: the folder.
        checks_files: render all its files again and compare them (`Tokenizer.check_files`).

    Raises:
        ModelFileError: it is missing or damaged.
    """
    if is_local(directory):
        for name in MODEL_FILES:
            join(directory, name)  # refuses links
        return _load(directory, checks_files=checks_files)
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        for name in list_files(directory):
            (Path(folder) / name).write_bytes(read_bytes(join(directory, name)))
        return _load(folder, checks_files=checks_files)


def _load(directory: str, *, checks_files: bool) -> Tokenizer:
    tokenizer = Tokenizer.from_directory(directory)
    if checks_files:
        tokenizer.check_files(directory)
    return tokenizer


def cached_tokenizer(directory: str, digest: str) -> Tokenizer:
    """The tokenizer with this digest, loaded once per process whatever the runner does.

    A DoFn's `setup()` is no place for it: some runners call that once per bundle.

    Raises:
        ModelFileError: the folder is missing, damaged, or holds another tokenizer.
    """
    with _cache_lock:
        if digest not in _cache:
            tokenizer = load_copy(directory)
            if tokenizer.digest != digest:
                raise ModelFileError(
                    f"{directory}: holds the tokenizer {tokenizer.digest}, but the job started "
                    f"with {digest}; do not change an output folder while a job runs"
                )
            _cache[digest] = tokenizer
        return _cache[digest]
