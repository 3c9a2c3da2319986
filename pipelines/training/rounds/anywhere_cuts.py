"""Where raw text may be cut when what was cut is joined again: anywhere, with a little tact.

Rounds train on documents whose parts lie in different shards; the ends of shards are looked
after when pairs are counted and merged (`bpe.rounds.boundaries`). So a reader may stop at any byte,
as long as the reader of the next range starts at the same one.
"""

from __future__ import annotations

from bpe.pretokenizing.cut_points import CutFinder

__all__ = ["OpenCutFinder"]

# The most bytes that follow the first one of a character.
_CONTINUATIONS = 3


class OpenCutFinder(CutFinder):
    r"""Cuts soon after any mark: between characters, not inside `\r\n`, off special tokens.

    None of this matters to the merges. Characters and line ends are left whole so that anomalies
    are counted as in whole documents, and a cut keeps clear of both ends of a special token so that
    either side of it can tell whether the document goes on there.
    """

    @property
    def can_cut(self) -> bool:
        """Always true."""
        return True

    def first_cut(self, data: bytes | memoryview, start: int, *, final: bool) -> int | None:
        """See `CutFinder.first_cut`."""
        longest = max(1, self._longest_special)
        highest = len(data) - 1 if final else len(data) - longest - 1
        for cut in range(start + longest + _CONTINUATIONS, highest + 1):
            if self._may_cut(data, cut):
                return cut
        return None

    def last_safe_boundary(self, data: bytes) -> int | None:
        """End of the last special token that is surely one; see `CutFinder.last_safe_boundary`."""
        end = self._end_of_last_special(data, len(data) - max(1, self._longest_special))
        return end if 0 < end < len(data) else None

    def _may_cut(self, data: bytes | memoryview, cut: int) -> bool:
        # Bytes that continue no character are no reason to look further than one would go on.
        before = data[cut - _CONTINUATIONS : cut]
        if _is_continuation(data[cut]) and not all(map(_is_continuation, before)):
            return False
        if data[cut - 1] == ord("\r") and data[cut] == ord("\n"):
            return False
        return not self._touches_special(data, cut)

    def _touches_special(self, data: bytes | memoryview, cut: int) -> bool:
        for token in self._special_tokens:
            if token in bytes(data[max(0, cut - len(token)) : cut + len(token)]):
                return True
        return False


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80
