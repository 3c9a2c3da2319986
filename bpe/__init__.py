"""Exact byte-level BPE: counting, training, encoding, and the file formats of tokenizers.

Everything public is here. A name is imported when it is first used: the command line imports
`bpe.errors` at every start, and needs neither NumPy nor pyarrow to show its help.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe.backends.choice import get_backend
    from bpe.backends.values import TIE_ORDERS
    from bpe.counting import count_pretokens
    from bpe.encoding.token_offsets import EncodedText
    from bpe.errors import (
        BackendError,
        BadFileError,
        BadRecordError,
        BpeError,
        CountTableError,
        InputError,
        ModelFileError,
        OutputError,
        SettingsError,
        VocabularyError,
    )
    from bpe.extension import extend
    from bpe.file_training import count_files, train_from_files
    from bpe.pretokenizing.schemes import SCHEME_NAMES, Scheme, get_scheme
    from bpe.tokenizer import Tokenizer, extend_golden
    from bpe.training import train, train_raw
    from bpe.version import __version__

    load_tokenizer = Tokenizer.load
    """The same as `Tokenizer.load`."""

__all__ = [
    "SCHEME_NAMES",
    "TIE_ORDERS",
    "BackendError",
    "BadFileError",
    "BadRecordError",
    "BpeError",
    "CountTableError",
    "EncodedText",
    "InputError",
    "ModelFileError",
    "OutputError",
    "Scheme",
    "SettingsError",
    "Tokenizer",
    "VocabularyError",
    "__version__",
    "count_files",
    "count_pretokens",
    "extend",
    "extend_golden",
    "get_backend",
    "get_scheme",
    "load_tokenizer",
    "train",
    "train_from_files",
    "train_raw",
]

_HOMES = {
    "SCHEME_NAMES": "bpe.pretokenizing.schemes",
    "TIE_ORDERS": "bpe.backends.values",
    "BackendError": "bpe.errors",
    "BadFileError": "bpe.errors",
    "BadRecordError": "bpe.errors",
    "BpeError": "bpe.errors",
    "CountTableError": "bpe.errors",
    "EncodedText": "bpe.encoding.token_offsets",
    "InputError": "bpe.errors",
    "ModelFileError": "bpe.errors",
    "OutputError": "bpe.errors",
    "Scheme": "bpe.pretokenizing.schemes",
    "SettingsError": "bpe.errors",
    "Tokenizer": "bpe.tokenizer",
    "VocabularyError": "bpe.errors",
    "__version__": "bpe.version",
    "count_files": "bpe.file_training",
    "count_pretokens": "bpe.counting",
    "extend": "bpe.extension",
    "extend_golden": "bpe.tokenizer",
    "get_backend": "bpe.backends.choice",
    "get_scheme": "bpe.pretokenizing.schemes",
    "train": "bpe.training",
    "train_from_files": "bpe.file_training",
    "train_raw": "bpe.training",
}


def __getattr__(name: str) -> Any:
    if name == "load_tokenizer":
        found = __getattr__("Tokenizer").load
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
