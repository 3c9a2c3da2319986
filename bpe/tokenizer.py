r"""The tokenizer: text to ids and back, loading, saving, import and export.

>>> tokenizer = Tokenizer.from_merges([(b"a", b"b"), (b" ", b"ab")], pretokenizer="gpt2")
>>> tokenizer.encode("ab ab").tolist()
[256, 257]
>>> tokenizer.decode([257, 64])
b' aba'
>>> tokenizer.decode([258])
Traceback (most recent call last):
...
bpe.errors.InputError: ids[0] is 258, which is no id of this vocabulary (258 ids, ...
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.encoding.added_stream import AddedStream
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.document_encoder import DocumentEncoder
from bpe.encoding.id_arrays import binary_array
from bpe.encoding.special_tokens import SpecialTokens
from bpe.encoding.stream_encoder import StreamEncoder
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import ModelFileError
from bpe.formats import gpt2_files, model_directory, tiktoken_ranks, tokenizer_json
from bpe.formats.golden import check_golden, read_golden_texts
from bpe.formats.model_check import check_model_files
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import Scheme, get_scheme
from bpe.version import __version__

__all__ = ["Tokenizer", "extend_golden"]

PathLike = str | os.PathLike[str]


class Tokenizer:
    """A vocabulary with its rules: encodes documents, decodes ids.

    Made by the class methods, by `bpe.train` or by `load_tokenizer`. Instances do not change and
    may be used by several threads. Pickled, one that lives in a model directory is its path and
    digest (loading checks both); any other is its own content.

    Byte input may be any bytes. With an NFC normalizer (some imported vocabularies) documents are
    normalized first; bytes that are not valid UTF-8 stay as they are, and the valid stretches
    between them are normalized. Such a tokenizer is `lossy`: decoding gives the normal form.
    Added tokens that take the white space next to them are lossy too.
    """

    def __init__(self, model: TokenizerModel, *, directory: PathLike | None = None) -> None:
        self._model = model
        self._directory = None if directory is None else str(Path(directory).absolute())
        self._documents = DocumentEncoder(model)

    # ---- making ----------------------------------------------------------------------------

    @classmethod
    def from_merges(
        cls,
        merges: Sequence[tuple[bytes, bytes]],
        *,
        pretokenizer: str,
        tie_order: str = "hf",
        special_tokens: Sequence[str] = (),
        training: Mapping[str, Any] | None = None,
    ) -> Tokenizer:
        """Tokenizer of learned merges, in rank order; ids are bytes, merges, special tokens.

        Raises `VocabularyError` for a merge of unknown parts, one that makes a token again, or
        one that spells a special token.
        """
        model = TokenizerModel.from_merges(
            merges,
            scheme=get_scheme(pretokenizer),
            tie_order=tie_order,
            special_tokens=special_tokens,
            training=training,
        )
        return cls(model)

    @classmethod
    def load(cls, directory: PathLike) -> Tokenizer:
        """Tokenizer of a model directory, verified: hashes, digest, and the golden texts' ids.

        Raises `ModelFileError` that names the file that does not fit.
        """
        model, golden = model_directory.read_model_directory(directory)
        tokenizer = cls(model, directory=directory)
        check_golden(golden, tokenizer._documents.encode_ordinary)
        return tokenizer

    @classmethod
    def from_tiktoken(
        cls,
        path: PathLike,
        *,
        pretokenizer: str | None = None,
        special_tokens: Mapping[str, int] | Sequence[str] | None = None,
    ) -> Tokenizer:
        """Tokenizer of a `.tiktoken` rank file, whatever its name is; rank is id.

        pretokenizer: must be named, since the file does not say it; None takes the published one
            of a published file. special_tokens: text to id; or texts, which get their published
            ids in a published file and the ids after the largest otherwise; None takes the
            published ones.
        """
        model = tiktoken_ranks.read_tiktoken_ranks(
            path, pretokenizer=pretokenizer, special_tokens=special_tokens
        )
        return cls(model)

    @classmethod
    def from_gpt2(
        cls,
        vocab_json: PathLike,
        merges_txt: PathLike,
        *,
        pretokenizer: str = "gpt2",
        special_tokens: Sequence[str] | None = None,
    ) -> Tokenizer:
        """Tokenizer of GPT-2's pair of files.

        special_tokens: entries of vocab.json that are special tokens; None takes those that no
        merge makes and that are written in angle or square brackets, as `<|endoftext|>` is.
        """
        model = gpt2_files.read_gpt2_files(
            vocab_json, merges_txt, scheme=get_scheme(pretokenizer), special_tokens=special_tokens
        )
        return cls(model)

    @classmethod
    def from_huggingface(cls, path: PathLike) -> Tokenizer:
        """Tokenizer of a byte-level BPE tokenizer.json; what cannot be honoured is refused."""
        return cls(tokenizer_json.read_tokenizer_json(path))

    # ---- writing ---------------------------------------------------------------------------

    def save(self, directory: PathLike, *, overwrite: bool = False) -> None:
        """Write a model directory; from then on this tokenizer pickles as its path and digest.

        Raises `OutputError` if it cannot be written, or holds a tokenizer's file already and
        overwrite is not set.
        """
        files = model_directory.render_model_files(
            self._model, self._documents.encode_ordinary, f"beam-bpe {__version__}"
        )
        model_directory.write_model_directory(directory, files, overwrite=overwrite)
        self._directory = str(Path(directory).absolute())

    def check_files(self, directory: PathLike) -> None:
        """Render the files of the model directory again that this was loaded from, and compare.

        Raises `ModelFileError` that names the file that is of another model, or was cut.
        """
        check_model_files(directory, self._model, self._documents.encode_ordinary)

    def to_tiktoken(self, path: PathLike) -> None:
        """Write a `.tiktoken` rank file; it holds neither special tokens nor the scheme.

        Raises `VocabularyError` where ids are not in merge order, or the file could not say it.
        """
        tiktoken_ranks.write_tiktoken_ranks(self._model, path)

    def to_huggingface(self, path: PathLike) -> None:
        """Write a tokenizer.json that gives the same ids for all valid text.

        Hugging Face's library finds special tokens in text unless `encode_special_tokens` is set.
        Raises `SettingsError` for a pattern of the user's that it would read differently.
        """
        tokenizer_json.write_tokenizer_json(self._model, path)

    # ---- what it is ------------------------------------------------------------------------

    @property
    def model(self) -> TokenizerModel:
        """The whole content."""
        return self._model

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left bytes, right bytes) by rank."""
        tokens = self._model.tokens
        return [(tokens[left], tokens[right]) for left, right, _ in self._model.merges]

    @property
    def vocab_size(self) -> int:
        """Number of ids: tokens and added tokens. Imported ids may have gaps; see `max_id`."""
        return self._model.vocab_size

    @property
    def max_id(self) -> int:
        """Largest id, added tokens included."""
        return self._model.max_id

    @property
    def id_type(self) -> pa.DataType:
        """Arrow type of ids in arrays: uint16 where the largest id fits, else uint32."""
        return self._documents.id_type

    @property
    def digest(self) -> str:
        """sha256 (hex) over what decides the ids; see `TokenizerModel.digest` for the bytes."""
        return self._model.digest

    @property
    def scheme(self) -> Scheme:
        """How documents are cut into pre-tokens."""
        return self._model.scheme

    @property
    def tie_order(self) -> str | None:
        """Tie order of the training; None for an imported vocabulary, which does not tell it."""
        return self._model.tie_order

    @property
    def special_tokens(self) -> dict[str, int]:
        """Special tokens, text to id."""
        return dict(self._model.special_tokens)

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """Special tokens and others with an id of their own, by id."""
        return tuple(self._model.added_tokens)

    @property
    def specials(self) -> SpecialTokens:
        """Special tokens with the rule that finds them in documents."""
        return self._model.specials

    @property
    def normalizer(self) -> str | None:
        """None, or "NFC"."""
        return self._model.normalizer

    @property
    def lossy(self) -> bool:
        """Whether decoding may give other bytes than were encoded, special tokens being text."""
        return self.is_lossy()

    def is_lossy(self, special_text: str = "text") -> bool:
        """Whether decoding may give other bytes than were encoded, by a policy.

        With a normalizer, and with added tokens that take white space next to them.
        """
        return self._model.normalizer is not None or bool(self._model.lossy_tokens(special_text))

    @property
    def training(self) -> dict[str, Any]:
        """Record of the training, as stored in the model directory; empty for imports."""
        return dict(self._model.training)

    def __repr__(self) -> str:
        return (
            f"Tokenizer(scheme={self.scheme.name!r}, vocab_size={self.vocab_size}, "
            f"digest={self.digest[:16]!r})"
        )

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of one id; a special token's are its text. `InputError` for an unknown id."""
        return self._model.token_bytes(token_id)

    def token_id(self, token: str | int) -> int:
        """Id of a token named by its text or by its id (`0` and "0" alike), checked to exist.

        Looked for among special tokens first, then, if it is a number, as an id, then among
        ordinary tokens.
        """
        return self._model.find_token(token)

    def truncate(self, vocab_size: int) -> Tokenizer:
        """Tokenizer with fewer merges, so that vocab_size = 256 + merges + special tokens.

        The same as training to that size, because merge lists nest. Special tokens are numbered
        anew, last. Refused for imports whose ids are not in merge order.
        """
        return Tokenizer(self._model.truncate(vocab_size))

    # ---- encoding --------------------------------------------------------------------------

    def encode(self, text: str | bytes, *, special_text: str = "text") -> npt.NDArray[np.uint32]:
        """Ids of one document, uint32.

        text: a str that UTF-8 can write, or any bytes. special_text: what the text of a special
        token is: "text" ordinary text, "allow" its id (the stretches around it are documents of
        their own), "reject" an `InputError` with the byte offset.
        """
        return self._documents.encode(text, special_text)

    def encode_batch(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        special_text: str = "text",
        threads: int = 1,
    ) -> pa.LargeListArray:
        """Ids of each document, in order: large_list of uint16 or uint32 by the largest id.

        texts: string or binary, their large and view kinds, chunked or not; no nulls.
        """
        return self._documents.encode_batch(texts, special_text, threads)

    def first_special(self, texts: pa.Array | pa.ChunkedArray) -> tuple[int, int, str] | None:
        """First special token that "allow" would find: its row, the byte where it starts, its text.

        In a document that is not in its normal form the byte may be that of the normal form.
        """
        return self._documents.first_special(binary_array(texts))

    def count_special_text(self, texts: pa.Array | pa.ChunkedArray) -> dict[str, int]:
        """How often "allow" would find each special token in documents; 0 included.

        A longer added token that covers the text of one hides it.
        """
        return self._documents.count_special_text(texts)

    def forget_encoder(self) -> None:
        """Free what encoding keeps, such as each thread's cache; it is made again when needed."""
        self._documents.forget_encoder()

    @property
    def streams(self) -> bool:
        """Whether `stream_encoder` takes any document in bounded memory.

        Not with a normalizer, a pattern of the user's, merges that come before their parts', or
        added tokens that look at the text around them.
        """
        return self.can_stream()

    def can_stream(self, special_text: str = "text") -> bool:
        """The same by a policy; see `streams`."""
        return self._documents.streams(special_text)

    def cut_finder(self, special_text: str = "text") -> CutFinder:
        """Finder of places where a document may be cut so that its parts have its ids."""
        return self._documents.cut_finder(special_text)

    def stream_encoder(
        self,
        *,
        special_text: str = "text",
        limit_bytes: int = 256 << 20,
        block_bytes: int = 1 << 20,
    ) -> StreamEncoder | AddedStream:
        """Encoder of one document that comes in chunks of bytes, cut anywhere.

        Its ids are those of `encode(document)`. special_text: "text" or "allow". limit_bytes: bytes
        that may have to be kept because their tokens depend on what follows: a block or so; the
        longest pre-token where `streams` is false, or with a pattern of the user's the whole
        document. Memory: a few times that at most. Raises `SettingsError` for a vocabulary with a
        normalizer, or with added tokens that look at the text around them.
        """
        return self._documents.stream(special_text, limit_bytes, block_bytes)

    def decode(self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array) -> bytes:
        """Bytes of ids; a special token's are its text.

        ids: integers of any kind: a sequence, a 1-d array, an Arrow array or list scalar.
        Raises `InputError` that names the position and the id if one is not of this vocabulary.
        """
        return self._documents.decode(ids)

    def decode_batch(
        self, ids: pa.Array | pa.ChunkedArray, *, threads: int = 1
    ) -> pa.LargeBinaryArray:
        """Bytes of each list of ids, in order: what `encode_batch` came from.

        ids: lists of integers of any width (list, large_list, fixed_size_list), chunked or not;
            no nulls. Errors as `decode`, with the list's place too: `ids[2][7]`.
        """
        return self._documents.decode_batch(ids, threads)

    def decode_text(
        self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array, errors: str = "replace"
    ) -> str:
        """Text of ids; errors: what becomes of invalid UTF-8, as in `bytes.decode`."""
        return self.decode(ids).decode("utf-8", errors)

    # ---- pickling --------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        if self._directory is not None:
            return _load_pickled, (self._directory, self.digest)
        return _rebuild_pickled, (self._model.to_bytes(),)


# One process unpickles a tokenizer many times (once per stage and bundle, say) and needs it once.
_unpickled: weakref.WeakValueDictionary[tuple[Any, ...], Tokenizer] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _load_pickled(directory: str, digest: str) -> Tokenizer:
    with _unpickled_lock:
        tokenizer = _unpickled.get((directory, digest))
        if tokenizer is None:
            tokenizer = Tokenizer.load(directory)
            if tokenizer.digest != digest:
                raise ModelFileError(
                    f"{directory}: the tokenizer there has digest {tokenizer.digest}, the one "
                    f"that was sent here had {digest}: the directory was changed meanwhile; "
                    "restore it, or run again with the new tokenizer"
                )
            _unpickled[directory, digest] = tokenizer
        return tokenizer


def _rebuild_pickled(content: bytes) -> Tokenizer:
    with _unpickled_lock:
        tokenizer = _unpickled.get((content,))
        if tokenizer is None:
            tokenizer = _unpickled[content,] = Tokenizer(TokenizerModel.from_bytes(content))
        return tokenizer


def extend_golden(directory: PathLike, file: PathLike) -> int:
    """Add the texts of a file to the golden set of a model directory; returns how many.

    file: *.jsonl with `text` or `base64` and, if wanted, `ids` on each line (ids given are
    compared, and must be what the tokenizer gives); any other file is one text per line.
    """
    tokenizer = Tokenizer.load(directory)
    _, golden = model_directory.read_model_directory(directory)
    known = {entry.data for entry in golden}
    added = check_golden(read_golden_texts(file), tokenizer._documents.encode_ordinary)  # noqa: SLF001
    new = [entry for entry in added if entry.data not in known]
    model_directory.replace_golden(directory, [*golden, *new])
    return len(new)
