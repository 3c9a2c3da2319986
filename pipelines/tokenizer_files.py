"""The tokenizer of an encode job as a file: copied into the output, loaded once per process."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from bpe.errors import ModelFileError
from bpe.tokenizer import Tokenizer
from pipelines.output_files import is_local, join, list_files, read_bytes, write_atomically

__all__ = ["TOKENIZER_FOLDER", "cached_tokenizer", "load_copy", "save_copy"]

TOKENIZER_FOLDER = "tokenizer"
# Written last: a folder without it is not a model directory yet.
_LAST_FILE = "config.json"

_cache: dict[str, Tokenizer] = {}
_cache_lock = threading.Lock()


def save_copy(tokenizer: Tokenizer, directory: str) -> None:
    """Write the tokenizer's model directory to `directory`, on any file system.

    A file that is there already is replaced by an equal one; `config.json` comes last.

    Raises:
        OutputError: it cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        tokenizer.save(folder)
        files = sorted(Path(folder).iterdir(), key=lambda file: file.name == _LAST_FILE)
        for file in files:
            write_atomically(directory, file.name, file.read_bytes())


def load_copy(directory: str) -> Tokenizer:
    """Load a model directory from any file system.

    Raises:
        ModelFileError: it is missing or damaged.
    """
    if is_local(directory):
        return Tokenizer.load(directory)
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        for name in list_files(directory):
            (Path(folder) / name).write_bytes(read_bytes(join(directory, name)))
        return Tokenizer.load(folder)


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
