"""`sentencepiece` as an engine, field by field: what stands between single blanks, each alone.

A word then has the ids that it was trained to have, wherever it stands: scores are float32 sums
along a text, so that whole texts may be cut otherwise. An empty field is a blank's sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from bpe.engines.library import Encoded, flatten
from bpe.engines.sentencepiece_library import SentencePieceLibrary

__all__ = ["open_content"]


class SentencePieceFields(SentencePieceLibrary):
    """A SentencePiece model whose texts are fields; see `Library`."""

    words_apart = True
    words_are_fields = True

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._empty = [self._processor.piece_to_id("\u2581")]

    def encode(self, texts: Sequence[str], *, specials: bool, threads: int) -> Encoded:
        """Ids of each field; specials has no effect."""
        del specials
        found = self._processor.encode(list(texts), out_type=int, num_threads=threads)
        rows = zip(found, texts, strict=True)
        return flatten([ids if text else self._empty for ids, text in rows])


def open_content(content: bytes) -> SentencePieceFields:
    """The library with a model."""
    return SentencePieceFields(content)
