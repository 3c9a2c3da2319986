"""The lengths of a tokenizer's tokens, once in a process."""

from __future__ import annotations

import threading

from bpe.encoding.token_lengths import TokenLengths
from bpe.tokenizer import Tokenizer

__all__ = ["TokenLengths", "token_lengths"]

# One job has one tokenizer; the table of a large vocabulary takes tens of milliseconds.
_latest: tuple[str, TokenLengths] | None = None
_lock = threading.Lock()


def token_lengths(tokenizer: Tokenizer) -> TokenLengths:
    """Bytes of each id of a tokenizer."""
    global _latest  # noqa: PLW0603 - a cache
    with _lock:
        if _latest is None or _latest[0] != tokenizer.digest:
            _latest = (tokenizer.digest, TokenLengths(tokenizer.model.all_tokens))
        return _latest[1]
