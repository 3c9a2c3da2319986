r"""Certain cuts: positions that bound a pre-token whatever stands elsewhere in the document.

A certain cut lies between two characters whose classes force a boundary, and the character before
it is not white space, so that the patterns' looks ahead (`\s+(?!\S)`, `\s++$`) cannot tell the end
of a piece from the end of the document; in `superbpe`, it lies after the end of a line. The
pre-tokens of a document are then exactly those of `data[:p]` followed by those of `data[p:]`, each
taken as a document of its own. Ranges of one document agree on their borders without talking to
each other: each looks for the first certain cut at or after a mark, and what it finds depends on
bytes from the mark on alone.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection

from bpe.encoding.added_tokens import AddedSearch, Find
from bpe.pretokenizing.long_pretokens import CASE_CLASSES
from bpe.pretokenizing.schemes import Scheme
from bpe.pretokenizing.unicode_classes import OTHER, ClassTranslation

__all__ = ["CutFinder"]

# One letter a class. R is CR and LF, Q the apostrophe, P what is left of `OTHER`; S excludes R.
_CLASS_LETTERS = dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), "L")
_TO_CLASSES = ClassTranslation(
    _CLASS_LETTERS | {"M": "M", "N": "N", "S": "S", OTHER: "P"},
    {ord("\r"): "R", ord("\n"): "R", ord("'"): "Q"},
)

# A letter before a contraction's apostrophe binds to it in o200k, one after it does in the others,
# hence P before L is nowhere a cut. Where marks join letters (o200k) pairs with marks are left out.
_LETTERS_AND_DIGITS = r"(?<=L)(?!L|\Z)|(?<=N)(?!N|\Z)|(?<=[PMQ])(?=[NS])"
_CERTAIN_CUTS = {
    "gpt2": r"(?<=L)(?!L|\Z)|(?<=N)(?!N|\Z)|(?<=[PMQ])(?=[NSR])",
    "cl100k": _LETTERS_AND_DIGITS,
    "llama3": _LETTERS_AND_DIGITS,
    "qwen2": _LETTERS_AND_DIGITS,
    "o200k": r"(?<=L)(?=[NSRP])|(?<=N)(?=[LSRPQ])|(?<=[PQ])(?=[NS])",
    "whitespace": r"(?<=[^SR])(?=[SR])",
    "superbpe": r"(?<=\n)(?!\Z)",  # in the text itself, without classes
}
# Of superbpe, where a token may take white space beside it: never inside a run of that.
_CUTS_BEFORE_TEXT = r"(?<=\n)(?=\S)"
_WINDOW_BYTES = 4096
_LONGEST_CHARACTER = 4
_SAFE_BYTES = 1 << 18  # searched for safe boundaries at a time
_BORDER_BYTES = 1 << 18  # searched for added tokens at a time, which takes many times the memory
_LONGEST_CONTRACTION = 3  # characters of 'll, 've and 're


class CutFinder:
    """Finds certain cuts of one scheme, never inside an occurrence of a special token.

    special_tokens: bytes of the special tokens. They are kept whole even where their text is
        ordinary text, so that each occurrence is seen, and counted, by one reader.
    special_text: what their text means: `allow` ends the document before it, so that pre-tokens
        start anew after it; with `text` and `reject` it is text like any other.
    looking: those of special_tokens that look at the text beside them. No cut touches one, so that
        it is seen as in the whole document even where its text is ordinary text.
    added: finds the added tokens of a vocabulary that has some; their texts are among
        special_tokens.
    find: what ends documents. Without it, special_text says whether special tokens do.
    streams: whether a range that shows no cut may be handed on as `streamed_cut` divides it, for
        one who can encode it all the same.
    """

    def __init__(
        self,
        scheme: Scheme,
        special_tokens: Collection[bytes] = (),
        *,
        special_text: str = "text",
        looking: Collection[bytes] = (),
        streams: bool = False,
        added: AddedSearch | None = None,
        find: Find = Find.NOTHING,
    ) -> None:
        self.scheme = scheme
        self.streams = streams
        self._added = added
        self._find = find
        self._specials_end_documents = special_text == "allow"
        self._special_tokens = sorted(special_tokens, key=len, reverse=True)
        self._longest_special = max(map(len, self._special_tokens), default=0)
        self._by_start: dict[bytes, list[bytes]] = {}
        for token in self._special_tokens:
            self._by_start.setdefault(token[:2], []).append(token)
        self._any_special = re.compile(b"|".join(map(re.escape, self._special_tokens)))
        self._classes: dict[int, str] = {} if scheme.name == "superbpe" else _TO_CLASSES
        self._looking = frozenset(looking)
        pattern = _CERTAIN_CUTS.get(scheme.name)
        self._compiled = scheme.compiled
        if self._compiled is not None:
            self._classes = self._compiled.atoms
            pattern = self._compiled.cut_pattern
        if looking and scheme.name == "superbpe":
            pattern = _CUTS_BEFORE_TEXT
        self._cuts = re.compile(pattern) if pattern else None

    @property
    def can_cut(self) -> bool:
        """Whether the scheme has certain cuts at all: not `none`, and not every pattern."""
        return self._cuts is not None

    def first_cut(self, data: bytes | memoryview, start: int, *, final: bool) -> int | None:
        """First certain cut p of `data`, start < p < len(data), or None if `data` shows none.

        p depends on bytes at or after `start` alone, so that anyone who holds those finds the
        same one. final: `data` ends the document; if not, bytes may follow and the last few of
        `data` are not judged.
        """
        if self._cuts is None:
            return None
        lowest = start + max(1, self._longest_special)
        reach = self._longest_special - (0 if self._looking else 1)
        highest = len(data) - 1 if final else len(data) - max(1, reach)
        position = start + _continuation_bytes(data, start)
        while position < len(data):
            end = min(position + _WINDOW_BYTES, len(data))
            text, used = codecs.utf_8_decode(
                bytes(data[position:end]), "surrogateescape", final and end == len(data)
            )
            classes = text.translate(self._classes)
            # Between characters of one class there is no cut, and long ranges without are that.
            is_run = bool(self._classes) and classes.count(classes[:1]) == len(classes)
            for match in () if is_run else self._cuts.finditer(classes):
                cut = position + len(_to_bytes(text[: match.start()]))
                if cut > highest:
                    return None
                if cut >= lowest and not self._inside_special(data, cut):
                    return cut
            if end == len(data):
                return None
            # The next window begins with the last character of this one.
            position += used - len(_to_bytes(text[-1]))
        return None

    def last_safe_boundary(self, data: bytes) -> int | None:
        """Last pre-token boundary inside `data` that bytes after it cannot move, or None.

        For ranges without a certain cut, such as a megabyte of digits. `data` begins at a true
        pre-token boundary (the document's start, a certain cut, an earlier answer) and more bytes
        follow it. The pre-tokens of `data[:p]` and of the rest are those of the whole; so the
        pre-token before p is no white space, and p is not inside a special token.
        """
        if self._cuts is None:
            return None
        highest = len(data) - max(1, self._longest_special)
        start = 0
        if self._added is not None and self._find:
            found = self._end_of_last_added(data, self._added)
            if found is None:
                return None
            start, highest = found
        elif self._specials_end_documents:
            start = self._end_of_last_special(data, highest)
        text, _ = codecs.utf_8_decode(data[start:], "surrogateescape", False)
        if self._compiled is not None:
            for boundary in self._compiled.safe_boundaries(text):
                end = start + len(_to_bytes(text[:boundary]))
                if end <= highest and not self._inside_special(data, end):
                    return end
            return start if 0 < start < len(data) else None
        classes = text.translate(CASE_CLASSES)
        # o200k may go back from the end of a run of capitals to before them, which is open for the
        # last run.
        open_run = len(classes.rstrip("U")) if self.scheme.name == "o200k" else len(classes)
        # A space at the end may yet turn out to be one that superbpe leaves between two words.
        open_spaces = len(text.rstrip(" ")) if self.scheme.name == "superbpe" else len(text)
        boundary, end = len(classes), start + len(_to_bytes(text))
        # Of a line that superbpe ends with a space, the space would fall off.
        all_of = len(text) if self.scheme.name != "superbpe" else 1
        pieces = self.scheme.split_text(text)
        for piece, piece_before in zip(reversed(pieces), reversed(pieces[:-1]), strict=False):
            boundary -= len(piece)
            end -= len(_to_bytes(piece))
            if (
                classes[boundary - min(all_of, len(piece_before)) : boundary].strip("SR")
                and end <= highest
                and boundary < min(open_spaces, open_run)
                and (
                    "'" not in text[boundary - 1 : boundary + 1]
                    or boundary + _LONGEST_CONTRACTION <= len(classes)
                )
                and not self._inside_special(data, end)
            ):
                return end
        return start if 0 < start < len(data) else None

    def late_safe_boundary(self, data: bytes | memoryview) -> int | None:
        """A late safe boundary of much text, as `last_safe_boundary`; None if there is none.

        It is looked for in so much text at a time, since the search takes many times its text in
        memory.
        """
        boundary, size = 0, _SAFE_BYTES
        while boundary < len(data) and self.can_cut:
            end = min(boundary + size, len(data))
            found = self.last_safe_boundary(bytes(data[boundary:end]))
            if found is not None:
                boundary, size = boundary + found, _SAFE_BYTES
            elif end == len(data):
                break
            else:
                size *= 2
        return boundary or None

    def streamed_cut(self, data: bytes) -> int:
        r"""Where to divide a range of text for a stream, which may be cut anywhere else.

        No special token lies across it, and if possible no character and no `\r\n`. `data` begins
        with the range or at an earlier answer, and more bytes follow it. 0 if more of them must
        be seen: `data` shows no place that no added token spans, or, of a vocabulary without added
        tokens, is not longer than a special token and 4 bytes.
        """
        if self._added is not None:
            return self._streamed_border(data, self._added)
        highest = len(data) - max(1, self._longest_special)
        lowest = self._end_of_last_special(data, highest)
        cut = max(lowest, highest)
        return _whole_place(data, cut, lowest)

    def _streamed_border(self, data: bytes, added: AddedSearch) -> int:
        """Last whole character that no match spans; 0 if `data` shows none.

        Readers of the parts look for special tokens whatever the policy: to refuse or to count
        them. The two parts show what the whole shows if no match of either pass lies across the
        cut. Matches that start three tokens before the end are certain: those of the first pass
        may change within the last token, and so those of the second within the last two.
        """
        border, size = 0, _BORDER_BYTES
        while True:
            end = min(border + size, len(data))
            found = _whole_border(data[border:end], added)
            if end == len(data):
                return border + found
            border, size = border + found, _BORDER_BYTES if found else 2 * size

    def _inside_special(self, data: bytes | memoryview, cut: int) -> bool:
        """Whether a special token lies across a cut, or touches it and looks to its other side."""
        reach = max(0, self._longest_special - 1)
        first = max(0, cut - reach)
        around = bytes(data[first : cut + reach])
        return any(
            around.startswith(token, start) and start + len(token) > cut - first
            for start in range(cut - first)
            for token in self._by_start.get(around[start : start + 2], ())
        ) or any(
            token in (data[max(0, cut - len(token)) : cut], data[cut : cut + len(token)])
            for token in self._looking
        )

    def _end_of_last_added(self, data: bytes, added: AddedSearch) -> tuple[int, int] | None:
        """End of the last added token, 0 if there is none, and how far that is certain.

        None if a match that does not count lies across that end.
        """
        highest = added.last_border(data, self._find)
        ranges = added.cut(data[:highest], self._find)
        start = max((end for _, end, token_id in ranges if token_id is not None), default=0)
        is_border = start == 0 or added.last_border(data, self._find, start) == start
        return (start, highest) if is_border else None

    def _end_of_last_special(self, data: bytes, highest: int) -> int:
        end = 0
        if self._special_tokens:
            for match in self._any_special.finditer(data):
                # One that starts later might be a longer one, were more bytes there.
                if match.start() > highest:
                    break
                end = match.end()
        return end


def _whole_border(data: bytes, added: AddedSearch) -> int:
    find = Find.ADDED | Find.SPECIALS
    border = added.last_border(data, find)
    if border < _LONGEST_CHARACTER:
        # So near to the start, a whole place may not be in sight.
        return 0
    whole = _whole_place(data, border)
    # A step back may lead into a match, such as one that ends between CR and LF.
    return border if whole == border else added.last_border(data, find, whole)


def _whole_place(data: bytes, place: int, lowest: int = 0) -> int:
    """Last place up to `place` that is in no character and no CR LF; `place` if none is near."""
    for earlier in range(place, max(lowest, place - _LONGEST_CHARACTER), -1):
        if data[earlier] & 0xC0 != 0x80 and data[earlier - 1 : earlier + 1] != b"\r\n":
            return earlier
    return place


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _continuation_bytes(data: bytes | memoryview, start: int) -> int:
    """Bytes at `start`, at most 3, that may belong to a character which begins before it."""
    count = 0
    while count < 3 and start + count < len(data) and data[start + count] & 0xC0 == 0x80:
        count += 1
    return count
