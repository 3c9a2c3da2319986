"""Google's `sentencepiece` as an engine."""

from __future__ import annotations

from collections.abc import Sequence

from bpe.encoding.added_tokens import AddedToken
from bpe.engines.library import Encoded, flatten, import_library
from bpe.errors import ModelFileError
from bpe.formats.sentencepiece_model import MODEL_KINDS, parse_sentencepiece

__all__ = ["open_content"]

_BLANK = "\u2581"


class SentencePieceLibrary:
    """A SentencePiece model; see `Library`.

    The library never takes text for a control symbol (`<s>`): `finds_specials` is false.
    """

    name = "sentencepiece"
    finds_specials = False
    # Scores are float32 sums along a whole text: ids of a word depend on what precedes it.
    words_apart = False
    words_are_fields = False
    post_processor = None

    def __init__(self, content: bytes) -> None:
        library = import_library(self.name)
        try:
            self._processor = library.SentencePieceProcessor(model_proto=content)
        except Exception as error:  # the library raises nothing narrower
            raise ModelFileError(
                f"sentencepiece {library.__version__} does not read it: {str(error)[:500]}"
            ) from error
        self.version: str = library.__version__
        unknown = self._processor.unk_id()
        self.unknown_id = unknown if unknown >= 0 else None
        model_type = parse_sentencepiece(content, "the model").model_type
        self.kind = f"SentencePiece {MODEL_KINDS.get(model_type, 'model')}"

    def tokens(self) -> dict[int, bytes]:
        """Id to text; the library's sign for a blank is a blank."""
        processor = self._processor
        return {
            token_id: _bytes_of(processor.id_to_piece(token_id), processor.is_byte(token_id))
            for token_id in range(processor.get_piece_size())
        }

    def added_tokens(self) -> list[AddedToken]:
        """Control symbols, which only a policy finds; and what the user defined, found always."""
        processor = self._processor
        return [
            AddedToken(processor.id_to_piece(i), i, special=True)
            for i in range(processor.get_piece_size())
            if processor.is_control(i)
        ]

    def encode(self, texts: Sequence[str], *, specials: bool, threads: int) -> Encoded:
        """Ids of each text; specials has no effect."""
        del specials
        return flatten(self._processor.encode(list(texts), out_type=int, num_threads=threads))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; a control symbol is its name."""
        parts: list[str] = []
        run: list[int] = []
        for token_id in ids:
            if self._processor.is_control(token_id):
                parts += [self._processor.decode(run), self._processor.id_to_piece(token_id)]
                run = []
            else:
                run.append(int(token_id))
        return "".join([*parts, self._processor.decode(run)])


def open_content(content: bytes) -> SentencePieceLibrary:
    """The library with a model."""
    return SentencePieceLibrary(content)


def _bytes_of(piece: str, is_byte: bool) -> bytes:  # noqa: FBT001
    return bytes([int(piece[1:-1], 16)]) if is_byte else piece.replace(_BLANK, " ").encode()
