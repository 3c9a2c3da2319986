"""Every error that the library raises on purpose.

    BpeError
    ├── InputError (ValueError)       something that the caller handed over cannot be used
    │   ├── SettingsError             an option or argument has a value that cannot be honoured
    │   ├── VocabularyError           merges, ids or special tokens that contradict each other
    │   ├── ModelFileError            a tokenizer file is missing, damaged or of another kind
    │   ├── CountTableError           a count table does not fit the training that asks for it
    │   ├── BadRecordError            one row of the input is unusable (policy: ``--on-bad-record``)
    │   └── BadFileError              one file of the input is unusable (policy: ``--on-bad-file``)
    ├── OutputError (OSError)         the output cannot be written, or holds something else
    ├── LimitError (OSError)          a limit of the process, such as ``ulimit -n``, is too low
    └── BackendError (RuntimeError)   the compute backend asked for is not there

The text of each names the file or argument, the place in it, the value found, and the remedy.
Errors that come from the operating system and fit none of these pass unchanged.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "BadFileError",
    "BadRecordError",
    "BpeError",
    "CountTableError",
    "InputError",
    "LimitError",
    "ModelFileError",
    "OutputError",
    "SettingsError",
    "VocabularyError",
]

_LONGEST_MESSAGE = 2000


class BpeError(Exception):
    """Base class of every error that this project raises on purpose."""


class InputError(BpeError, ValueError):
    """Something that the caller handed over cannot be used."""


class SettingsError(InputError):
    """An option or argument has a value that cannot be honoured."""


class VocabularyError(InputError):
    """Merges, ids or special tokens that contradict each other."""


class ModelFileError(InputError):
    """A tokenizer file is missing, damaged, or of a kind that cannot be read exactly.

    A long message, which quotes a long value of the file, loses its middle.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE // 2]} ... {message[-_LONGEST_MESSAGE // 2 :]}"
        super().__init__(message)


class CountTableError(InputError):
    """A table of pre-token counts does not fit the training that asks for it."""


class BadRecordError(InputError):
    """One row of an input file is unusable."""


class BadFileError(InputError):
    """One input file is unusable as a whole."""


class OutputError(BpeError, OSError):
    """The output cannot be written, or already holds something made with other settings."""


class LimitError(BpeError, OSError):
    """A limit that the system sets for this process is too low."""


class BackendError(BpeError, RuntimeError):
    """The compute backend that was asked for is not available."""
