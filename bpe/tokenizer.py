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
from bpe.encoding.document_encoder import DocumentEncoder
from bpe.encoding.id_arrays import IdLists, Texts, binary_array
from bpe.encoding.stream_encoder import StreamEncoder
from bpe.encoding.token_offsets import EncodedText
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.engines.library_encoder import LibraryEncoder
from bpe.engines.library_model import LibraryModel
from bpe.errors import ModelFileError, VocabularyError
from bpe.formats import gpt2_files, model_directory, tiktoken_ranks, tokenizer_json
from bpe.formats.file_access import write_file
from bpe.formats.golden import GoldenText, check_golden, read_golden_texts
from bpe.formats.model_check import check_model_files
from bpe.formats.sentencepiece_model import parse_sentencepiece
from bpe.formats.tokenizer_loading import read_tokenizer
from bpe.formats.unigram_json import render_unigram_json
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from bpe.version import __version__
from bpe.vocabulary import Vocabulary

__all__ = ["Tokenizer", "extend_golden"]

PathLike = str | os.PathLike[str]


class Tokenizer(Vocabulary):
    """A vocabulary with its rules: encodes documents, decodes ids.

    The class methods and `bpe.train` make one. A tokenizer does not change, and
    several threads may use it. Pickling a tokenizer of a model directory stores its path and
    digest, and unpickling checks both; any other tokenizer is pickled with its content.

    Documents may hold any bytes. Some imported vocabularies have an NFC normalizer: it normalizes
    valid UTF-8 and keeps all other bytes. Such a tokenizer is `lossy`, because decoding gives the
    normal form. A tokenizer with added tokens that take the white space next to them is lossy too.
    """

    def __init__(
        self, model: TokenizerModel | LibraryModel, *, directory: PathLike | None = None
    ) -> None:
        super().__init__(model)
        self._directory = None if directory is None else str(Path(directory).absolute())
        self._documents = (
            LibraryEncoder(model) if isinstance(model, LibraryModel) else DocumentEncoder(model)
        )

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
        """Tokenizer of learned merges; ids are bytes, then merges, then special tokens.

        Args:
            merges: (left bytes, right bytes), by rank.
            pretokenizer: scheme that cuts documents into pre-tokens.
            tie_order: of the training; decides the ids of the bytes.
            special_tokens: get the last ids, in this order.
            training: record of the training, to keep with the tokenizer.

        Raises:
            VocabularyError: a merge has unknown parts, makes a token again, or spells a special
                token.
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
    def load(
        cls,
        path: PathLike,
        *,
        pretokenizer: str | None = None,
        special_tokens: Mapping[str, int] | Sequence[str] | None = None,
    ) -> Tokenizer:
        """Load the tokenizer at a path, of any format.

        Args:
            path: a model directory; a tiktoken rank file of any name; a tokenizer.json or Mistral's
                tekken.json, or a folder that holds one; a folder that holds GPT-2's pair
                (vocab.json and merges.txt, or encoder.json and vocab.bpe).
            pretokenizer: scheme of a rank file that is not a published one, or of GPT-2's pair
                (default: `gpt2`). All other files name their scheme, and it must be the same.
            special_tokens: of a rank file or of GPT-2's pair. None takes the published ones of a
                published rank file, and the bracketed entries of vocab.json.

        Raises:
            ModelFileError: the path holds none of these, or a model directory failed a check of
                its hashes, its digest or its golden texts; names the file.
            SettingsError: the file names another scheme.
        """
        model, golden = read_tokenizer(
            path, pretokenizer=pretokenizer, special_tokens=special_tokens
        )
        return cls(model) if golden is None else cls._checked(model, golden, path)

    @classmethod
    def from_directory(cls, directory: PathLike) -> Tokenizer:
        """Load a model directory, and nothing else; see `load` for the checks and errors."""
        return cls._checked(*model_directory.read_model_directory(directory), directory)

    @classmethod
    def _checked(
        cls, model: TokenizerModel | LibraryModel, golden: Sequence[GoldenText], directory: PathLike
    ) -> Tokenizer:
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
        """Load a tiktoken rank file of any name; the ranks are the ids.

        Args:
            path: of the file.
            pretokenizer: scheme; the file does not name it. None is enough for a published file.
            special_tokens: texts with their ids, or texts alone. Texts alone get their published
                ids in a published file, and otherwise the ids after the largest. None takes the
                published special tokens.
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
        """Load GPT-2's pair of files.

        Args:
            vocab_json: tokens and their ids.
            merges_txt: merges by rank.
            pretokenizer: scheme; the files do not name it.
            special_tokens: entries of vocab.json that are special tokens. None takes the entries
                in angle or square brackets that no merge makes, such as `<|endoftext|>`.
        """
        model = gpt2_files.read_gpt2_files(
            vocab_json, merges_txt, scheme=get_scheme(pretokenizer), special_tokens=special_tokens
        )
        return cls(model)

    @classmethod
    def from_huggingface(cls, path: PathLike) -> Tokenizer:
        """Load a byte-level BPE tokenizer.json.

        Raises:
            ModelFileError: the file needs something that would give other ids here.
        """
        return cls(tokenizer_json.read_tokenizer_json(path))

    # ---- writing ---------------------------------------------------------------------------

    def save(self, directory: PathLike, *, overwrite: bool = False) -> None:
        """Write a model directory; from then on this tokenizer pickles as its path and digest.

        Raises:
            OutputError: the directory cannot be written, or it holds a tokenizer's file and
                `overwrite` is not set.
        """
        files = model_directory.render_model_files(
            self._model, self._documents.encode_ordinary, f"beam-bpe {__version__}"
        )
        model_directory.write_model_directory(directory, files, overwrite=overwrite)
        self._directory = str(Path(directory).absolute())

    @property
    def directory(self) -> str | None:
        """Model directory that this was loaded from or saved to last; None if there is none."""
        return self._directory

    def check_files(self, directory: PathLike) -> None:
        """Compare the files of a model directory with those that this tokenizer would write.

        Raises:
            ModelFileError: a file belongs to another model, or was cut; names the file.
        """
        check_model_files(directory, self._model, self._documents.encode_ordinary)

    def to_tiktoken(self, path: PathLike) -> None:
        """Write a tiktoken rank file, which holds neither special tokens nor the scheme.

        Raises:
            VocabularyError: the ids are not in merge order, or the format cannot hold the
                vocabulary.
        """
        tiktoken_ranks.write_tiktoken_ranks(self._byte_level("a rank file"), path)

    def to_huggingface(self, path: PathLike) -> None:
        """Write a tokenizer.json that gives the same ids for all valid text.

        Hugging Face's library finds special tokens in text unless `encode_special_tokens` is set.

        Raises:
            SettingsError: that library would read the pattern of `regex:PATTERN` differently.
        """
        if isinstance(self._model, LibraryModel) and self._model.engine == "tokenizers":
            write_file(path, self._model.content)
            return
        if isinstance(self._model, LibraryModel) and self._model.engine == "sentencepiece_fields":
            rendered = render_unigram_json(parse_sentencepiece(self._model.content, path))
            if rendered is not None:
                write_file(path, rendered)
                return
        tokenizer_json.write_tokenizer_json(self._byte_level("tokenizer.json"), path)

    def _byte_level(self, form: str) -> TokenizerModel:
        if isinstance(self._model, LibraryModel):
            raise VocabularyError(
                f"{form} cannot be written: this tokenizer is of another kind "
                f"({self._model.kind}), and {self._model.engine} encodes with it"
            )
        return self._model

    # ---- what it is ------------------------------------------------------------------------

    @property
    def id_type(self) -> pa.DataType:
        """Arrow type of ids in arrays: uint16 where the largest id fits, else uint32."""
        return self._documents.id_type

    def __repr__(self) -> str:
        return (
            f"Tokenizer(scheme={self.scheme.name!r}, vocab_size={self.vocab_size}, "
            f"digest={self.digest[:16]!r})"
        )

    def truncate(self, vocab_size: int) -> Tokenizer:
        """Tokenizer with fewer merges, so that vocab_size = 256 + merges + special tokens.

        The same as training to that size, because merge lists nest. Special tokens are numbered
        anew, last. Refused for imports whose ids are not in merge order.
        """
        return Tokenizer(self._model.truncate(vocab_size))

    # ---- encoding --------------------------------------------------------------------------

    def encode(self, text: str | bytes, *, special_text: str = "text") -> npt.NDArray[np.uint32]:
        """Encode one document; returns its ids.

        Args:
            text: a str that UTF-8 can write, or any bytes.
            special_text: meaning of a special token's text: `text` is ordinary text; `allow` is the
                special token, and the text around it is encoded as documents of its own; `reject`
                is an error.

        Raises:
            InputError: with `reject`, a special token occurs; names the byte.
        """
        return self._documents.encode(text, special_text)

    def encode_batch(
        self,
        texts: Texts,
        *,
        special_text: str = "text",
        threads: int = 1,
    ) -> pa.LargeListArray:
        """Encode many documents; returns a list of ids for each, in order.

        The ids are uint16 if the tokenizer's largest id fits, and uint32 if not.

        Args:
            texts: string or binary, large and view types too, chunked or not, without nulls; or a
                list of str and bytes.
            special_text: as in `encode`.
            threads: how many to use.

        Raises:
            InputError: texts of another type, or with a null; names the row.
        """
        return self._documents.encode_batch(texts, special_text, threads)

    def encode_flat(
        self, texts: Texts, *, special_text: str = "text", threads: int = 1
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Encode many documents; returns all ids in one array, and where each document starts.

        The ids of document i are `ids[offsets[i] : offsets[i + 1]]`. The ids are uint16 or uint32,
        as `id_type` says. The offsets are int64, one more than documents, and begin with 0.
        Arguments and errors are those of `encode_batch`.
        """
        encoded = self.encode_batch(texts, special_text=special_text, threads=threads)
        offsets = encoded.offsets.to_numpy()
        values = encoded.values.to_numpy()[offsets[0] : offsets[-1]]
        return values, offsets - offsets[0] if offsets[0] else offsets

    def encode_with_offsets(self, text: str | bytes, *, special_text: str = "text") -> EncodedText:
        r"""Encode one document; returns its ids, each with its place in bytes and in characters.

        The ids are those of `encode`. Byte offsets are exact. A token that splits a character has
        the whole character in its character offsets. The place of an added token includes the
        white space that it takes.

        Args:
            text: as in `encode`.
            special_text: as in `encode`.

        Raises:
            InputError: as in `encode`; or the tokenizer has a normalizer, and the text is not in
                its normal form.

        Examples:
            >>> tokenizer = Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2")
            >>> encoded = tokenizer.encode_with_offsets("ab\u00e9")
            >>> encoded.byte_offsets.tolist(), encoded.character_offsets.tolist()
            ([[0, 2], [2, 3], [3, 4]], [[0, 2], [2, 3], [2, 3]])
        """
        return self._documents.encode_with_offsets(text, special_text)

    def count_tokens(
        self, texts: Texts, *, special_text: str = "text", threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """Count the ids of each document; returns int64, one count for each.

        Memory holds the ids of some megabytes of text, or of one longer document, at a time.
        Arguments and errors are those of `encode_batch`.
        """
        return self._documents.count_tokens(texts, special_text, threads)

    def first_special(self, texts: Texts) -> tuple[int, int, str] | None:
        """First special token that `allow` would find: its row, the byte where it starts, its text.

        If the tokenizer normalizes the document, the byte may be a place in the normal form.
        """
        return self._documents.first_special(binary_array(texts))

    def count_special_text(self, texts: Texts) -> dict[str, int]:
        """How often `allow` would find each special token in documents; 0 included.

        Text inside a longer added token does not count.
        """
        return self._documents.count_special_text(texts)

    def forget_encoder(self) -> None:
        """Free the caches of encoding; the next call makes them again."""
        self._documents.forget_encoder()

    @property
    def streams(self) -> bool:
        """Whether `stream_encoder` takes any document in bounded memory.

        It does not with a normalizer, a `regex:PATTERN`, merges that come before those of their
        parts, or added tokens that look at the text around them.
        """
        return self.can_stream()

    def can_stream(self, special_text: str = "text") -> bool:
        """As `streams`, for a meaning of special tokens' text."""
        return self._documents.streams(special_text)

    def cut_finder(self, special_text: str = "text") -> CutFinder:
        """Finder of the places where a document may be cut without changing its ids."""
        return self._documents.cut_finder(special_text)

    def stream_encoder(
        self,
        *,
        special_text: str = "text",
        limit_bytes: int = 256 << 20,
        block_bytes: int = 1 << 20,
    ) -> StreamEncoder | AddedStream:
        """Encoder of one document that comes in chunks of bytes, cut anywhere.

        Its ids are those of `encode(document)`. It keeps bytes whose tokens depend on what follows:
        about a block; if `streams` is false, the longest pre-token; with a `regex:PATTERN`, the
        whole document. Memory is at most a few times that.

        Args:
            special_text: `text` or `allow`, as in `encode`.
            limit_bytes: most bytes to keep.
            block_bytes: how much to encode at a time.

        Raises:
            SettingsError: the tokenizer has a normalizer, or added tokens that look at the text
                around them.
        """
        return self._documents.stream(special_text, limit_bytes, block_bytes)

    def decode(self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array) -> bytes:
        """Decode ids to bytes; a special token gives its text.

        Args:
            ids: integers of any width: a sequence, a 1-d array, an Arrow array or list scalar.

        Raises:
            InputError: an id is not in this vocabulary; names the position and the id.
        """
        return self._documents.decode(ids)

    def decode_batch(self, ids: IdLists, *, threads: int = 1) -> pa.LargeBinaryArray:
        """Decode many lists of ids to bytes, in order: the inverse of `encode_batch`.

        Args:
            ids: lists of integers of any width (list, large_list, fixed_size_list), chunked or not,
                without nulls; or a list of sequences or 1-d arrays.
            threads: how many to use.

        Raises:
            InputError: an id is not in this vocabulary; names its place, such as `ids[2][7]`.
        """
        return self._documents.decode_batch(ids, threads)

    def decode_text(
        self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array, errors: str = "replace"
    ) -> str:
        """Decode ids to text; `errors` treats invalid UTF-8 as `bytes.decode` does."""
        return self.decode(ids).decode("utf-8", errors)

    # ---- pickling --------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        if self._directory is not None:
            return _load_pickled, (self._directory, self.digest)
        return _rebuild_pickled, (self._model.to_bytes(), type(self._model))


# One process unpickles a tokenizer many times (once per stage and bundle, say) and needs it once.
_unpickled: weakref.WeakValueDictionary[tuple[Any, ...], Tokenizer] = weakref.WeakValueDictionary()
_unpickled_lock = threading.Lock()


def _load_pickled(directory: str, digest: str) -> Tokenizer:
    with _unpickled_lock:
        tokenizer = _unpickled.get((directory, digest))
        if tokenizer is None:
            tokenizer = Tokenizer.from_directory(directory)
            if tokenizer.digest != digest:
                raise ModelFileError(
                    f"{directory}: the tokenizer there has digest {tokenizer.digest}, the one "
                    f"that was sent here had {digest}: the directory was changed meanwhile; "
                    "restore it, or run again with the new tokenizer"
                )
            _unpickled[directory, digest] = tokenizer
        return tokenizer


def _rebuild_pickled(
    content: bytes, kind: type[TokenizerModel | LibraryModel] = TokenizerModel
) -> Tokenizer:
    with _unpickled_lock:
        tokenizer = _unpickled.get((content,))
        if tokenizer is None:
            tokenizer = _unpickled[content,] = Tokenizer(kind.from_bytes(content))
        return tokenizer


def extend_golden(directory: PathLike, file: PathLike) -> int:
    """Add the texts of a file to the golden set of a model directory; returns how many.

    Args:
        directory: of the model.
        file: JSON lines (`.jsonl`) with `text` or `base64`, and optional `ids`, which must be the
            tokenizer's; any other file has a text on each line.
    """
    tokenizer = Tokenizer.from_directory(directory)
    _, golden = model_directory.read_model_directory(directory)
    known = {entry.data for entry in golden}
    added = check_golden(read_golden_texts(file), tokenizer._documents.encode_ordinary)  # noqa: SLF001
    new = [entry for entry in added if entry.data not in known]
    model_directory.replace_golden(directory, [*golden, *new])
    return len(new)
