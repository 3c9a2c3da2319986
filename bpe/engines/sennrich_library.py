r"""BPE over characters with a mark for the end of a word, as subword-nmt has it, in the core.

Words end at blanks and line ends, so a blank in a word's place of the mark is a byte that no word
holds. UTF-8 is prefix-free: merges that assemble characters from their bytes come first, then, for
the attached mark, those of each character and the blank, then the learned ones. The bytes of
a character that is no token stay apart: the first becomes `<unk>`, and the others are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Encoder
from bpe.backends.values import EncodingModel
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.characters import assembled_characters
from bpe.engines.library import Encoded
from bpe.engines.sennrich_content import END, parse_content
from bpe.pretokenizing.schemes import get_scheme

__all__ = ["SennrichLibrary", "open_content"]

_BLANK = b" "
_SEPARATORS = b" \r\n"
_BLANKS = _SEPARATORS.decode()
_CHUNK_BYTES = 4 << 20
_UNKNOWN_ID = 0
_DROPPED = np.uint32(2**32 - 1)

Words = tuple[pa.LargeBinaryArray, npt.NDArray[np.int64]]


class SennrichLibrary:
    """A sennrich.json; see `Library`.

    Special tokens are found by who calls.
    """

    name = "sennrich"
    version = "1"
    finds_specials = False
    # Words are cached by the core.
    words_apart = False
    words_are_fields = False
    post_processor = None
    unknown_id: int | None = _UNKNOWN_ID

    def __init__(self, data: bytes) -> None:
        self.content = parse_content(data)
        self.kind = f"Sennrich BPE, {self.content.end_mark} end mark"
        self._first_special = len(self.content.tokens)

    def tokens(self) -> dict[int, bytes]:
        """Id to text, with the mark as it is written."""
        every = (*self.content.tokens, *self.content.special_tokens)
        return {token_id: text.encode() for token_id, text in enumerate(every)}

    def added_tokens(self) -> list[AddedToken]:
        """The special tokens. `<unk>` is none: in a document, that is ordinary text."""
        return [
            AddedToken(text, self._first_special + index, special=True)
            for index, text in enumerate(self.content.special_tokens)
        ]

    def encode(self, texts: Sequence[str], *, specials: bool, threads: int) -> Encoded:
        """Ids of each text; specials has no effect."""
        del specials
        ids: list[npt.NDArray[np.uint32]] = []
        lengths: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
        for batch in _batches(texts):
            made, ends = self._encode_words(*_cut_words(batch), threads)
            ids.append(made)
            lengths.append(np.diff(ends, prepend=0))
        every = np.concatenate([np.zeros(0, np.uint32), *ids])
        return every, _summed(texts, np.concatenate(lengths))

    def decode(self, ids: Sequence[int]) -> str:
        """Words with a blank between them; `<unk>` where a character was not known."""
        parts = [self._spelled[token_id] for token_id in ids]
        return "".join(parts).removesuffix(" ")

    def pieces(self, text: str) -> str:
        """A text in subword-nmt's form: a blank between pieces, and @@ where a word goes on.

        Characters that are no token stay as they are, and so do lines with the blanks around them.
        """
        lines = text.split("\n")
        words, ends = _cut_words(lines)
        encoded = self._encoder.encode_array(words).to_pylist()
        shown: list[str] = []
        for line, start, end in zip(lines, [0, *ends.tolist()], ends.tolist(), strict=False):
            before = line[: len(line) - len(line.lstrip(_BLANKS))]
            after = line[len(line.rstrip(_BLANKS)) :] if end > start else ""
            pieces = " ".join(piece for ids in encoded[start:end] for piece in self._word(ids))
            shown.append(f"{before}{pieces}{after}")
        return "\n".join(shown)

    def _word(self, ids: Sequence[int]) -> list[str]:
        """Pieces of a word from the model's own ids."""
        pieces: list[bytes] = []
        for token_id in ids:
            data = self._model.tokens[token_id]
            if self._kept[token_id] == _DROPPED:
                pieces[-1] += data
            else:
                pieces.append(data)
        last = pieces.pop().removesuffix(_BLANK) or pieces.pop()
        return [*(f"{piece.decode()}@@" for piece in pieces), last.decode()]

    @cached_property
    def _spelled(self) -> list[str]:
        every = [
            token.removesuffix(END) + " " * token.endswith(END) for token in self.content.tokens
        ]
        return [*every, *self.content.special_tokens]

    @cached_property
    def _model(self) -> EncodingModel:
        """Merges over bytes that do the same, and tokens by ids of their own."""
        known = [_own_bytes(token) for token in self.content.tokens[1:]]
        # A word's last character may be known elsewhere in a word alone, and so the other way.
        characters = sorted({data.removesuffix(_BLANK).decode() for data in known} - {""})
        tokens = {byte: bytes([byte]) for byte in range(256)}
        for character in characters:
            if len(character) == 1 and not character.isascii():
                tokens[len(tokens)] = character.encode()
        parts, merges = assembled_characters(tokens, len(tokens))
        tokens |= parts
        ids = {data: token_id for token_id, data in tokens.items()}
        pairs = [tuple(map(_own_bytes, pair)) for pair in self.content.merges]
        if self.content.end_mark == "attached":
            single = [each.encode() for each in characters if len(each) == 1]
            pairs = [*((each, _BLANK) for each in single), *pairs]
        for left, right in pairs:
            made = len(tokens)
            tokens[made] = left + right
            ids[left + right] = made
            merges.append((ids[left], ids[right], made))
        return EncodingModel(tokens, merges, whole_piece=False, scheme=get_scheme("none"))

    @cached_property
    def _kept(self) -> npt.NDArray[np.uint32]:
        """By id of the model: the token's id, that of `<unk>`, or `_DROPPED`."""
        known = {_own_bytes(token): i for i, token in enumerate(self.content.tokens) if i}
        kept = np.full(len(self._model.tokens), _UNKNOWN_ID, np.uint32)
        for token_id, data in self._model.tokens.items():
            if data in known:
                kept[token_id] = known[data]
            elif data == _BLANK or data[0] & 0xC0 == 0x80:
                kept[token_id] = _DROPPED
        return kept

    @cached_property
    def _encoder(self) -> Encoder:
        return get_backend().make_encoder(self._model)

    def _encode_words(
        self, words: pa.LargeBinaryArray, ends: npt.NDArray[np.int64], threads: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Ids of words, and how many there are up to the end of each text."""
        encoded = self._encoder.encode_array(words, threads=threads)
        kept = self._kept[encoded.values.to_numpy()]
        stays = kept != _DROPPED
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(stays)))
        return kept[stays], before[encoded.offsets.to_numpy()[ends]]


def open_content(content: bytes) -> SennrichLibrary:
    """The engine with a sennrich.json."""
    return SennrichLibrary(content)


def _own_bytes(token: str) -> bytes:
    """A token with a blank in place of the mark."""
    return token.encode() if not token.endswith(END) else token[: -len(END)].encode() + _BLANK


def _parts(text: str) -> Iterator[bytes]:
    """A text in parts of some megabytes, cut where words end."""
    data = text.encode()
    start = 0
    while len(data) - start > _CHUNK_BYTES:
        mark = start + _CHUNK_BYTES
        cut = max(data.rfind(bytes([sign]), start, mark) for sign in _SEPARATORS)
        if cut <= start:
            found = [data.find(bytes([sign]), mark) for sign in _SEPARATORS]
            cut = min((place for place in found if place >= 0), default=len(data))
        yield data[start:cut]
        start = cut
    yield data[start:]


def _batches(texts: Sequence[str]) -> Iterator[list[bytes]]:
    """Parts of texts, of some megabytes together."""
    batch: list[bytes] = []
    size = 0
    for text in texts:
        for part in _parts(text):
            batch.append(part)
            size += len(part)
            if size > _CHUNK_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _summed(texts: Sequence[str], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Lengths of texts from those of their parts."""
    if len(lengths) == len(texts):
        return lengths
    counts = [sum(1 for _ in _parts(text)) for text in texts]
    return np.add.reduceat(lengths, np.cumsum([0, *counts[:-1]]))


def _cut_words(texts: Sequence[bytes | str]) -> Words:
    """Words of all texts, each with a blank after it; and how many there are up to each end."""
    parts = [text.encode() if isinstance(text, str) else text for text in texts]
    data = np.frombuffer(b"\n".join([*parts, b""]), np.uint8)
    is_text = ~np.isin(data, np.frombuffer(_SEPARATORS, np.uint8))
    begins = is_text.copy()
    begins[1:] &= ~is_text[:-1]
    word_of: npt.NDArray[np.int64] = np.cumsum(begins, dtype=np.int64)  # of each byte, from 1 on
    kept = np.flatnonzero(is_text)
    word_of_kept = word_of[kept] - 1
    count = int(word_of[-1]) if len(data) else 0
    out = np.full(len(kept) + count, _BLANK[0], np.uint8)
    out[np.arange(len(kept)) + word_of_kept] = data[kept]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(word_of_kept, minlength=count) + 1, out=offsets[1:])
    words = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    )
    text_ends = np.cumsum([len(part) + 1 for part in parts], dtype=np.int64)
    return words, word_of[text_ends - 1] if parts else np.zeros(0, np.int64)
