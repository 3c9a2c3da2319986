"""`beam-bpe encode-text`: standard input to token ids, in decimal, a line for each document."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.stream_encoder import StreamLimitError
from bpe.engines.sennrich_library import SennrichLibrary
from bpe.errors import InputError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands.load_tokenizer import load_given_tokenizer
from pipelines.cli.commands.tokenizer_notes import tell_lossy
from pipelines.cli.standard_streams import standard_input

__all__ = ["run"]

_Ids = npt.NDArray[np.uint32]

_BLOCK_BYTES = 1 << 20
_PRINTED_IDS = 1 << 18  # at a time: their decimal digits take ten times the memory


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.text_arguments` for the options."""
    tokenizer = load_given_tokenizer(arguments)
    if arguments.pieces:
        _print_pieces(tokenizer, standard_input(), arguments.max_row_bytes)
        return 0
    tell_lossy(tokenizer, arguments.special_text)
    rules = _Rules(tokenizer, arguments.special_text, arguments.max_row_bytes)
    if arguments.lines:
        _encode_lines(rules, standard_input())
    else:
        _encode_document(rules, standard_input())
    return 0


@dataclass(frozen=True)
class _Rules:
    """What holds for all documents."""

    tokenizer: Tokenizer
    special_text: str
    limit_bytes: int

    def open(self, place: str) -> _Document:
        """Begin a document, which messages call `place`."""
        # A special token in the text is seen by its id, and `reject` then refuses it.
        special_text = "text" if self.special_text == "text" else "allow"
        try:
            stream = self.tokenizer.stream_encoder(
                special_text=special_text,
                limit_bytes=self.limit_bytes,
                block_bytes=min(_BLOCK_BYTES, self.limit_bytes),
            )
        except SettingsError:
            return _WholeDocument(self, place)
        return _StreamedDocument(self, place, stream)

    def refuse_special(self, token: str, start: int, place: str) -> None:
        """Raise `InputError` for a special token that `reject` found."""
        raise InputError(
            f"{place}: the special token {token!r} is at byte {start}; take it as ordinary text "
            "(--special-text=text) or as the special token (--special-text=allow)"
        )

    def encode(self, texts: list[bytes], places: Iterable[str]) -> pa.LargeListArray:
        """Encode whole documents; `InputError` names the place of the first that is refused."""
        if self.special_text == "reject":
            found = self.tokenizer.first_special(texts)
            if found is not None:
                row, start, token = found
                self.refuse_special(token, start, list(places)[row])
        special_text = "text" if self.special_text == "reject" else self.special_text
        try:
            return self.tokenizer.encode_batch(texts, special_text=special_text)
        except InputError:
            for place, text in zip(places, texts, strict=True):
                try:
                    self.tokenizer.encode(text, special_text=special_text)
                except InputError as error:
                    raise InputError(f"{place}: {error}") from None
            raise


class _Document(ABC):
    """A document that arrives in blocks; the ids of all calls are its encoding."""

    def __init__(self, rules: _Rules, place: str) -> None:
        self._rules = rules
        self._place = place

    @abstractmethod
    def feed(self, data: bytes) -> _Ids:
        """Take more text; returns ids that are final."""

    @abstractmethod
    def finish(self) -> _Ids:
        """End the document; returns the other ids."""


class _StreamedDocument(_Document):
    """A document of any length, of a tokenizer that encodes in chunks."""

    def __init__(self, rules: _Rules, place: str, stream: Any) -> None:
        super().__init__(rules, place)
        self._stream = stream
        self._done = 0  # bytes of text that have ids
        refused = rules.tokenizer.reserved_texts if rules.special_text == "reject" else {}
        self._refused = {token_id: text for text, token_id in refused.items()}

    def feed(self, data: bytes) -> _Ids:
        """Take more text; returns ids that are final."""
        try:
            ids = self._stream.feed(data)
        except StreamLimitError as error:
            raise InputError(
                f"--max-row-bytes={self._rules.limit_bytes} is too small for {self._place}: at "
                f"byte {error.position} begin more bytes than that {error.reason}; raise the limit"
            ) from error
        except InputError as error:
            raise InputError(f"{self._place}: {error}") from error
        return self._checked(ids)

    def finish(self) -> _Ids:
        """End the document; returns the other ids."""
        return self._checked(self._stream.finish())

    def _checked(self, ids: _Ids) -> _Ids:
        """The ids, of which none is a special token that `reject` refuses."""
        if not self._refused:
            return ids
        found = np.flatnonzero(np.isin(ids, list(self._refused)))
        end = found[0] if len(found) else len(ids)
        self._done += len(self._rules.tokenizer.decode(ids[:end]))
        if len(found):
            token = self._refused[int(ids[end])]
            self._rules.refuse_special(token, self._done, self._place)
        return ids


class _WholeDocument(_Document):
    """A document of a tokenizer that needs all of its text at once."""

    def __init__(self, rules: _Rules, place: str) -> None:
        super().__init__(rules, place)
        self._text = bytearray()

    def feed(self, data: bytes) -> _Ids:
        """Keep more text."""
        self._text += data
        if len(self._text) > self._rules.limit_bytes:
            raise InputError(
                f"--max-row-bytes={self._rules.limit_bytes} is too small for {self._place}: this "
                "tokenizer encodes whole documents only; raise the limit, or cut the text"
            )
        return np.zeros(0, np.uint32)

    def finish(self) -> _Ids:
        """Encode the document."""
        encoded = self._rules.encode([bytes(self._text)], [self._place])
        ids: _Ids = encoded.flatten().to_numpy().astype(np.uint32)
        return ids


def _print_pieces(tokenizer: Tokenizer, blocks: Iterable[bytes], limit_bytes: int) -> None:
    """Print each line in pieces; bytes that are no valid UTF-8 become U+FFFD."""
    library = getattr(tokenizer.model, "library", None)
    if not isinstance(library, SennrichLibrary):
        raise SettingsError(
            "--pieces: this tokenizer has no such form; train one with --recipe sennrich, or leave "
            "--pieces out"
        )
    rest = b""
    for block in blocks:
        lines, feed, last = block.rpartition(b"\n")
        if feed:
            sys.stdout.write(library.pieces((rest + lines).decode("utf-8", "replace")) + "\n")
            rest = b""
        rest += last
        if len(rest) > limit_bytes:
            raise InputError(
                f"--max-row-bytes={limit_bytes} is too small: a line is longer; raise the limit"
            )
    sys.stdout.write(library.pieces(rest.decode("utf-8", "replace")))
    sys.stdout.flush()


def _encode_document(rules: _Rules, blocks: Iterable[bytes]) -> None:
    """Print one line of ids for all of the text."""
    document, line = rules.open("standard input"), _Line()
    for block in blocks:
        line.add(document.feed(block))
    line.add(document.finish())
    line.end()


def _encode_lines(rules: _Rules, blocks: Iterable[bytes]) -> None:
    """Print a line of ids for each line; it lacks its line feed where the line does.

    A carriage return before a line feed is text, so that decoding gives it back.
    """
    number, document, line = 1, None, _Line()
    for block in blocks:
        rest = block
        if document is not None:
            head, feed, rest = block.partition(b"\n")
            line.add(document.feed(head))
            if not feed:
                continue
            line.add(document.finish())
            line.end()
            number, document = number + 1, None
        *texts, rest = rest.split(b"\n")
        if texts:
            places = [f"line {number + index}" for index in range(len(texts))]
            _print_lists(rules.encode(texts, places))
            number += len(texts)
        if rest:
            document = rules.open(f"line {number}")
            line.add(document.feed(rest))
    if document is not None:
        line.add(document.finish())


class _Line:
    """Prints the ids of one document, with blanks between them."""

    def __init__(self) -> None:
        self._is_empty = True

    def add(self, ids: _Ids) -> None:
        """Print ids."""
        for start in range(0, len(ids), _PRINTED_IDS):
            part = ids[start : start + _PRINTED_IDS]
            (text,) = _joined(pa.ListArray.from_arrays([0, len(part)], pa.array(part)))
            sys.stdout.write(text.as_py() if self._is_empty else f" {text}")
            self._is_empty = False
        sys.stdout.flush()

    def end(self) -> None:
        """Print the line feed."""
        sys.stdout.write("\n")
        sys.stdout.flush()
        self._is_empty = True


def _print_lists(ids: pa.LargeListArray) -> None:
    sys.stdout.write("\n".join([*_joined(ids.cast(pa.list_(ids.type.value_type))).to_pylist(), ""]))
    sys.stdout.flush()


def _joined(lists: pa.ListArray) -> pa.StringArray:
    """Each list of ids as a text."""
    return pc.binary_join(lists.cast(pa.list_(pa.string())), " ")
