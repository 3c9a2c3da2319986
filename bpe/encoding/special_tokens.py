r"""Special tokens: texts with an id of their own, and the one rule that finds them in documents.

Where several special tokens start at the same byte the longest is taken; matches go from left to
right and do not overlap.

    >>> specials = SpecialTokens({"<|a|>": 300, "<|a|>!": 301})
    >>> specials.split(b"x<|a|>!<|a|>")
    [(0, 1, None), (1, 7, 301), (7, 12, 300)]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from bpe.encoding.added_finder import AddedFinder
from bpe.encoding.added_tokens import AddedToken, check_text
from bpe.encoding.printable_bytes import from_printable
from bpe.errors import VocabularyError

__all__ = ["SPECIAL_TEXT_POLICIES", "SpecialTokens"]

SPECIAL_TEXT_POLICIES = ("text", "allow", "reject")
"""What a special token's text inside a document is: ordinary text, the special id, an error."""


class SpecialTokens:
    """A set of special tokens.

    mapping: text to id; texts are not empty and can be written as UTF-8, ids are distinct.
        Raises `VocabularyError` otherwise.
    """

    def __init__(self, mapping: Mapping[str, int]) -> None:
        names: dict[int, str] = {}
        for text, token_id in mapping.items():
            check_text(text)
            if token_id in names:
                raise VocabularyError(
                    f"special tokens {names[token_id]!r} and {text!r} both have id {token_id}: "
                    "give each an id of its own"
                )
            names[token_id] = text
        self._ids = dict(mapping)
        self._by_bytes = {text.encode(): token_id for text, token_id in mapping.items()}
        # Alternatives are tried in order, so the longest comes first.
        longest_first = sorted(self._by_bytes, key=len, reverse=True)
        alternatives = b"|".join(map(re.escape, longest_first))
        self._pattern = re.compile(alternatives) if longest_first else None
        # Ids of any size are for the caller; the finder goes by the order.
        self._finder = AddedFinder([AddedToken(text, place) for place, text in enumerate(mapping)])
        self.max_bytes = len(longest_first[0]) if longest_first else 0
        """Length of the longest special token, in bytes; 0 if there is none."""

    @property
    def ids(self) -> dict[str, int]:
        """Text to id."""
        return dict(self._ids)

    @property
    def forbidden_bytes(self) -> frozenset[bytes]:
        """What no ordinary token may spell.

        These are the tokens' own bytes, and the bytes whose printable spelling (`bpe.
        printable_bytes`) is the same text: vocab.json could not tell the two apart.
        """
        spelled = (from_printable(text) for text in self._ids)
        return frozenset(self._by_bytes).union(data for data in spelled if data is not None)

    def __bool__(self) -> bool:
        return bool(self._ids)

    def find(self, data: bytes, start: int = 0) -> tuple[int, int, int] | None:
        """First special token at or after byte `start`: (start, end, id); None if there is none."""
        match = self._pattern.search(data, start) if self._pattern else None
        return (*match.span(), self._by_bytes[match.group()]) if match else None

    def split(self, data: bytes) -> list[tuple[int, int, int | None]]:
        """Segments of a document as (start, end, id), offsets in bytes; id None: ordinary text.

        No segment is empty; together they cover the document.
        """
        segments: list[tuple[int, int, int | None]] = []
        position = 0
        for match in self._pattern.finditer(data) if self._pattern else ():
            start, end = match.span()
            if start > position:
                segments.append((position, start, None))
            segments.append((start, end, self._by_bytes[match.group()]))
            position = end
        if position < len(data):
            segments.append((position, len(data), None))
        return segments

    def count(self, texts: pa.Array) -> dict[str, int]:
        """How often each special token occurs in an array of texts; each has a key, 0 included.

        texts: string, binary, or their large or view kinds; a null holds nothing.
        """
        counts = self._finder.count(_without_nulls(texts.cast(pa.large_binary())))
        return dict(zip(self._ids, counts.values(), strict=True))

    def rows_with_hits(self, texts: pa.LargeBinaryArray) -> list[int]:
        """Find the indices of documents that hold a special token, ascending; nulls hold none."""
        return self._finder.rows_with_texts(_without_nulls(texts))

    def first(self, texts: pa.LargeBinaryArray) -> tuple[int, int, str] | None:
        """First special token in an array of texts: its row, the byte where it starts, its text."""
        for row in self.rows_with_hits(texts)[:1]:
            data = texts[row].as_py()
            start, end, _ = self.find(data) or (0, 0, 0)
            return row, start, data[start:end].decode()
        return None

    def check_against(self, tokens: Mapping[int, bytes]) -> None:
        """Raise `VocabularyError` if a token has the id of a special token, or spells one."""
        taken = {token_id: text for text, token_id in self._ids.items() if token_id in tokens}
        for token_id, text in taken.items():
            raise VocabularyError(
                f"special token {text!r} has id {token_id}, which is token {tokens[token_id]!r}: "
                "give it an id that is not in use"
            )
        forbidden = self.forbidden_bytes
        for token_id, data in tokens.items():
            if data in forbidden:
                text = self._spelled_by(data)
                raise VocabularyError(
                    f"token {token_id} ({data!r}) spells the special token {text!r}, so that "
                    "ordinary text could not be told from it: rename the special token, or train "
                    "with it so that no merge makes it"
                )

    def _spelled_by(self, data: bytes) -> str:
        same = (text for text in self._ids if data in (text.encode(), from_printable(text)))
        return next(same)


def _without_nulls(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    return texts.fill_null(b"") if texts.null_count else texts
