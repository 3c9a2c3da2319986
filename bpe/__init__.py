"""Exact byte-level BPE: counting, training, encoding, and the file formats of tokenizers.

Everything public is here.
"""

from __future__ import annotations

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
    "extend_golden",
    "get_backend",
    "get_scheme",
    "load_tokenizer",
    "train",
    "train_from_files",
    "train_raw",
]
