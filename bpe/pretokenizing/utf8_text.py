"""Text as the bytes of a document: the one way from `str` to UTF-8."""

from __future__ import annotations

import re

from bpe.errors import InputError

__all__ = ["utf8_bytes"]

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


def utf8_bytes(text: str, name: str = "text") -> bytes:
    r"""UTF-8 of a text; a surrogate pair is the character for which it stands in UTF-16.

    Raises `InputError` with the index for half of a pair, which UTF-8 cannot write. `name` says
    in that message what the text is.

    >>> utf8_bytes("\ud83d\ude00") == "\N{GRINNING FACE}".encode()
    True
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    lone = _LONE.search(text)
    if lone is not None:
        raise InputError(
            f"{name} holds a lone surrogate, {lone[0]!r}, at index {lone.start()}, which UTF-8 "
            "cannot write; pass bytes, or replace it"
        )
    return _PAIR.sub(_joined, text).encode()


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
