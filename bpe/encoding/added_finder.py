"""Special tokens among added ones, counted in many documents: natively where the backend is.

What counts is what encoding would find with `special_text="allow"`: the text of a special token
that a longer added token covers does not. `AddedSearch` is the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from bpe.backends.choice import get_backend, native_core
from bpe.encoding.added_tokens import AddedSearch, AddedToken, Find

__all__ = ["AddedFinder"]


class AddedFinder:
    """Finds the special ones of added tokens in arrays of documents.

    tokens: distinct by text, and by id.
    """

    def __init__(self, tokens: Sequence[AddedToken]) -> None:
        self._tokens = tuple(tokens)
        self._specials = [token for token in tokens if token.special]

    def __reduce__(self) -> tuple[type[AddedFinder], tuple[Sequence[AddedToken]]]:
        return AddedFinder, (self._tokens,)

    def count(
        self, texts: pa.LargeBinaryArray, find: Find = Find.ADDED | Find.SPECIALS
    ) -> dict[int, int]:
        """How often each special token is found, by id, 0 included; texts: without nulls."""
        if get_backend().name == "native":
            counts = pa.array(self._native.count_specials(texts, find=find)).to_pylist()
            found = zip(self._tokens, counts, strict=True)
            return {token.id: count for token, count in found if token.special}
        totals = dict.fromkeys((token.id for token in self._specials), 0)
        for text in texts.to_pylist():
            for _, _, token_id in self._search.cut(text, find):
                if token_id in totals:
                    totals[token_id] += 1
        return totals

    def rows_with_texts(self, texts: pa.LargeBinaryArray) -> list[int]:
        """Documents in which the text of a special token occurs, ascending; texts: without nulls.

        The documents in which one is found are among them.
        """
        if get_backend().name == "native":
            rows: list[int] = pa.array(self._native.rows_with_specials(texts)).to_pylist()
            return rows
        names = [token.text.encode() for token in self._specials]
        documents = enumerate(texts.to_pylist())
        return [row for row, text in documents if any(name in text for name in names)]

    @cached_property
    def _native(self) -> Any:
        return native_core().AddedTokens([token.native_row for token in self._tokens])

    @cached_property
    def _search(self) -> AddedSearch:
        return AddedSearch(self._tokens)
