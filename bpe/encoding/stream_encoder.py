"""Documents that arrive in chunks, and need not fit into memory.

A document of a scheme with certain cuts (`bpe.pretokenizing.cut_points`) is encoded up to the last
cut, or safe boundary, that its bytes so far show. Where they show none, most of them are one
pre-token; how far it surely goes is told by `bpe.pretokenizing.long_pretokens`, and which of its
tokens are final by `bpe.encoding.final_tokens`. A raw document (`none`) is one pre-token to its
end.

Where a pre-token ends may depend on what comes arbitrarily far after the place
(`bpe.pretokenizing.long_pretokens` names the cases). If the tokens are the same either way, the
question is left open for good; otherwise the bytes are kept until it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bpe.encoding.final_tokens import FinalTokens
from bpe.encoding.missing_bytes import MissingBytes
from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.long_pretokens import LongPiece, Outlook
from bpe.pretokenizing.schemes import Scheme

__all__ = ["StreamEncoder", "StreamLimitError", "are_in_merge_order"]

_Ids = npt.NDArray[np.uint32]
Encode = Callable[[bytes], _Ids]

_NOTHING: tuple[_Ids, int] = (np.zeros(0, np.uint32), 0)
_BLOCK_BYTES = 1 << 20
_CUT_WINDOW_BYTES = 256
_FEWEST_BYTES = 16  # of a pre-token that are passed over at its beginning
_FARTHEST_LOOK = 64  # times the longest token: bytes after a doubtful end


class StreamLimitError(InputError):
    """More bytes would have to be kept than is allowed.

    position: byte of the document where they begin. reason: why they have to be kept.
    """

    position: int = 0
    reason: str = ""


class StreamEncoder:
    """Ids of one document, chunk by chunk: all of `feed`'s, then `finish`'s, are its encoding.

    encode: ids of a whole document. final: what tells final tokens; None where merges have no order
        that lets tokens become final early.
    whole_piece: whether a pre-token that is a token as a whole is that token.
    missing: bytes without ids, which are refused.
    limit_bytes: `StreamLimitError` when more bytes have to be kept. block_bytes: work is done when
        so many are there.
    Not for several threads at once.
    """

    def __init__(
        self,
        scheme: Scheme,
        tokens: Mapping[int, bytes],
        encode: Encode,
        final: FinalTokens | None,
        *,
        whole_piece: bool = False,
        missing: MissingBytes | None = None,
        limit_bytes: int = 256 << 20,
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        if limit_bytes < 1 or block_bytes < 1:
            raise SettingsError(
                f"limit_bytes is {limit_bytes}, block_bytes {block_bytes}: both must be at least 1"
            )
        self._scheme = scheme
        self._tokens = tokens
        self._encode = encode
        self._final = final if scheme.has_open_pretokens else None
        self._cuts = CutFinder(scheme)
        self._piece = LongPiece(scheme) if scheme.is_hand_written else None
        self._missing = missing or MissingBytes(b"")
        self._has_whole_pieces = whole_piece
        self._longest = final.longest if final else max(map(len, tokens.values()))
        self._limit = limit_bytes
        self._block = max(block_bytes, self._longest + 1)
        self._pending = bytearray()
        self._position = 0  # of the first pending byte in the document
        self._next_try = self._block
        self._finished = False

    def feed(self, data: bytes | memoryview) -> _Ids:
        """Take more bytes; returns the ids that became final, uint32.

        Raises `StreamLimitError`, an `InputError`, where more than limit_bytes would have to be
        kept, and an `InputError` for a byte without id.
        """
        self._refuse_finished()
        found = [np.zeros(0, np.uint32)]
        view = memoryview(data)
        # By blocks, so that a large chunk is not kept as a whole.
        for start in range(0, len(view), self._block):
            place = self._position + len(self._pending)
            self._missing.check(view[start : start + self._block], "document", place)
            self._pending += view[start : start + self._block]
            while len(self._pending) >= self._next_try:
                found.append(self._advance())
            if len(self._pending) > self._limit:
                raise self._limit_error()
        return np.concatenate(found)

    def finish(self) -> _Ids:
        """End the document; returns the ids that were still open, uint32."""
        self._refuse_finished()
        self._finished = True
        rest = bytes(self._pending)
        self._pending.clear()
        if not self._position or self._final is None:
            return self._encode(rest)
        if self._piece is None:
            return self._final.merge(rest)
        if not self._piece.is_open:
            return self._encode(rest)
        end = self._piece.first_end(rest)
        return np.concatenate([self._final.merge(rest[:end]), self._encode(rest[end:])])

    def _advance(self) -> _Ids:
        """Make what can be made final so; sets how many bytes are worth another try."""
        data = bytes(self._pending)
        piece = self._piece
        if self._final is not None and piece is None:
            ids, end = self._final.find(data)
        elif not (piece and piece.is_open) and (cut := self._last_cut(data)):
            ids, end = self._encode(data[:cut]), cut
        elif piece is not None and self._final is not None:
            outlook = piece.look(data)
            if outlook.end is not None:
                return self._end_piece(data, outlook.end, piece)
            ids, end = self._go_on(data, outlook, piece, self._final)
        else:
            ids, end = _NOTHING
        self._drop(end)
        # A try takes time in proportion to the bytes, so after one in vain they have to double.
        self._next_try = len(self._pending) + (self._block if end else len(self._pending))
        return ids

    def _drop(self, count: int) -> None:
        del self._pending[:count]
        self._position += count

    def _end_piece(self, data: bytes, end: int, piece: LongPiece) -> _Ids:
        """Tokens of a pre-token to its end; what follows may be cut, and is tried at once."""
        ids = self._pretoken(data[:end])
        piece.close()
        self._drop(end)
        self._next_try = self._block
        return ids

    def _go_on(
        self, data: bytes, outlook: Outlook, piece: LongPiece, final: FinalTokens
    ) -> tuple[_Ids, int]:
        """Final tokens of the pre-token at the front of `data`, and the bytes they spell."""
        ids, border = final.find(data[: outlook.sure])
        if border >= (1 if piece.is_open else _FEWEST_BYTES):
            piece.pass_over(data, border)
            return ids, border
        if outlook.in_doubt:
            return self._leave_open(data, outlook.sure, piece, final)
        return _NOTHING

    def _leave_open(
        self, data: bytes, end: int, piece: LongPiece, final: FinalTokens
    ) -> tuple[_Ids, int]:
        """Tokens up to a doubtful end, if they and what follows are the same in either case."""
        if end == 0:
            return _NOTHING
        ids = final.merge(data[:end])
        if ids.tolist() != self._pretoken(data[:end]).tolist():
            return _NOTHING
        distance = 2 * self._longest
        while distance <= _FARTHEST_LOOK * self._longest and end + distance < len(data):
            if final.is_shared(data[: end + distance], end, int(ids[-1])):
                piece.decide(data)
                return ids, end
            distance *= 2
        return _NOTHING

    def _pretoken(self, data: bytes) -> _Ids:
        """Ids of a pre-token, or of the rest of one."""
        is_whole = self._piece is not None and not self._piece.is_open
        if self._has_whole_pieces and is_whole and len(data) <= self._longest:
            # Of tokens with the same bytes the last one counts.
            same = [token_id for token_id, token in self._tokens.items() if token == data]
            if same:
                return np.array(same[-1:], np.uint32)
        return self._final.merge(data) if self._final else self._encode(data)

    def _last_cut(self, data: bytes) -> int:
        """Last place that bounds a pre-token whatever follows; 0 if there is none."""
        if not self._cuts.can_cut:
            return 0
        window = _CUT_WINDOW_BYTES
        while True:
            start = max(0, len(data) - window)
            last, cut = 0, self._cuts.first_cut(data, start, final=False)
            while cut is not None:
                last, cut = cut, self._cuts.first_cut(data, cut, final=False)
            if last:
                return last
            if start == 0:
                return self._cuts.last_safe_boundary(data) or 0
            window *= 8

    def _limit_error(self) -> StreamLimitError:
        if not self._scheme.has_open_pretokens:
            reason = "of a document that the pre-tokenizer's pattern does not let be cut"
        elif self._final is None:
            reason = "whose tokens are open: this vocabulary's merges are not in a usable order"
        else:
            reason = "whose tokens depend on what follows"
        error = StreamLimitError(
            f"at byte {self._position} of the document begin more than {self._limit} bytes "
            f"{reason}; raise limit_bytes, or cut the document where that does no harm"
        )
        error.position, error.reason = self._position, reason
        return error

    def _refuse_finished(self) -> None:
        if self._finished:
            raise InputError("this document is finished: take a new stream encoder for another one")


def are_in_merge_order(merges: Sequence[tuple[int, int, int]]) -> bool:
    """Whether every merge comes after all merges that make its parts."""
    last = {made: rank for rank, (_, _, made) in enumerate(merges)}
    return all(
        last.get(left, -1) < rank and last.get(right, -1) < rank
        for rank, (left, right, _) in enumerate(merges)
    )
