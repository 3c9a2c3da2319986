"""Documents to ids and back for one tokenizer: special tokens, normalization, then the backend."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backend import Decoder, Encoder, get_backend
from bpe.errors import InputError, SettingsError
from bpe.final_tokens import FinalTokens
from bpe.id_arrays import binary_array, id_array, id_list_array, join_id_lists
from bpe.normalization import normalize, normalize_array
from bpe.schemes import get_scheme
from bpe.special_tokens import SPECIAL_TEXT_POLICIES
from bpe.stream_encoder import StreamEncoder, are_in_merge_order
from bpe.tokenizer_model import TokenizerModel
from bpe.utf8_text import utf8_bytes

__all__ = ["DocumentEncoder"]


class DocumentEncoder:
    """Encodes and decodes with one model; safe to use from several threads.

    The backend's encoder and decoder are made when they are first needed, by the backend in force
    then.
    """

    def __init__(self, model: TokenizerModel) -> None:
        self._model = model
        self._specials = model.specials
        self._lock = threading.Lock()
        self._backend_encoder: Encoder | None = None
        self._backend_merger: Encoder | None = None
        self._backend_decoder: Decoder | None = None

    @cached_property
    def id_type(self) -> pa.DataType:
        """Arrow type of ids in arrays: uint16 where the largest id fits, else uint32."""
        return pa.uint16() if self._model.max_id < 2**16 else pa.uint32()

    def encode(self, text: str | bytes, special_text: str) -> npt.NDArray[np.uint32]:
        """Ids of one document; see `Tokenizer.encode`."""
        data = _document_bytes(text)
        if self._cuts(special_text):
            parts = [
                self.encode_ordinary(data[start:end])
                if special_id is None
                else np.array([special_id], dtype=np.uint32)
                for start, end, special_id in self._specials.split(data)
            ]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint32)
        if special_text == "reject":
            self._reject(data, "text")
        return self.encode_ordinary(data)

    def encode_ordinary(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of one document in which the text of special tokens is ordinary text."""
        return self._encoder().encode(self._normalize(data))

    def encode_batch(
        self, texts: pa.Array | pa.ChunkedArray, special_text: str, threads: int
    ) -> pa.LargeListArray:
        """Ids of each document; see `Tokenizer.encode_batch`."""
        array = binary_array(texts)
        hits: list[int] = []
        if self._cuts(special_text) or special_text == "reject":
            hits = self._specials.rows_with_hits(array)
        if hits and special_text == "reject":
            self._reject(array[hits[0]].as_py(), f"texts[{hits[0]}]")
        if hits:
            return self._encode_cut(array, set(hits), threads)
        return self._encode_array(array, threads)

    def decode(self, ids: Iterable[int] | npt.NDArray[Any] | pa.Array) -> bytes:
        """Bytes of ids; see `Tokenizer.decode`."""
        return self._decoder().decode(id_array(ids))

    def decode_batch(self, ids: pa.Array | pa.ChunkedArray, threads: int) -> pa.LargeBinaryArray:
        """Bytes of each list of ids; see `Tokenizer.decode_batch`."""
        return self._decoder().decode_array(id_list_array(ids), threads=threads)

    def stream(self, limit_bytes: int, block_bytes: int) -> StreamEncoder:
        """Encoder of one document in chunks; see `Tokenizer.stream_encoder`."""
        if self._model.normalizer is not None:
            raise SettingsError(
                f"documents of this vocabulary are normalized ({self._model.normalizer}) as a "
                "whole, and cannot be encoded in chunks; use encode"
            )
        model = self._model
        return StreamEncoder(
            model.scheme,
            model.tokens,
            self._encoder().encode,
            self._final_tokens,
            whole_piece=model.whole_piece,
            limit_bytes=limit_bytes,
            block_bytes=block_bytes,
        )

    @property
    def streams(self) -> bool:
        """Whether documents can be encoded in chunks; see `Tokenizer.streams`."""
        is_scheme = self._model.scheme.is_named and self._model.normalizer is None
        return is_scheme and self._has_merge_order

    @cached_property
    def _final_tokens(self) -> FinalTokens | None:
        return FinalTokens(self._model.tokens, self._merge) if self._has_merge_order else None

    @cached_property
    def _has_merge_order(self) -> bool:
        return are_in_merge_order(self._model.merges)

    def _merge(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of bytes as one pre-token, by merging alone."""
        with self._lock:
            if self._backend_merger is None:
                model = dataclasses.replace(
                    self._model.encoding_model, whole_piece=False, scheme=get_scheme("none")
                )
                self._backend_merger = get_backend().make_encoder(model, cache_bytes=1 << 20)
        return self._backend_merger.encode(data)

    def _encode_array(self, array: pa.LargeBinaryArray, threads: int) -> pa.LargeListArray:
        if self._model.normalizer is not None:
            array = normalize_array(self._model.normalizer, array)
        encoded = self._encoder().encode_array(array, threads=threads)
        # The encoder chose by the largest ordinary id; a special token's may be larger.
        return encoded.cast(pa.large_list(self.id_type))

    def _encode_cut(
        self, array: pa.LargeBinaryArray, hits: set[int], threads: int
    ) -> pa.LargeListArray:
        """Encode documents some of which hold special tokens, each stretch as a document."""
        stretches: list[bytes] = []
        # Of each document: the index of a stretch, or -1 - id for a special token.
        plans: list[list[int]] = []
        for row, data in enumerate(array.to_pylist()):
            plan: list[int] = []
            cuts = self._specials.split(data) if row in hits else [(0, len(data), None)]
            for start, end, special_id in cuts:
                if special_id is None:
                    plan.append(len(stretches))
                    stretches.append(data[start:end])
                else:
                    plan.append(-1 - special_id)
            plans.append(plan)
        encoded = self._encode_array(pa.array(stretches, type=pa.large_binary()), threads)
        return join_id_lists(encoded, plans)

    def _cuts(self, special_text: str) -> bool:
        if special_text not in SPECIAL_TEXT_POLICIES:
            raise SettingsError(
                f"special_text is {special_text!r}: use one of {', '.join(SPECIAL_TEXT_POLICIES)}"
            )
        return special_text == "allow" and bool(self._specials)

    def _reject(self, data: bytes, place: str) -> None:
        found = self._specials.find(data)
        if found is not None:
            start, end, _ = found
            raise InputError(
                f"{place} holds the special token {data[start:end].decode()!r} at byte {start}; "
                'pass special_text="text" to take it as ordinary text, or "allow" for its id'
            )

    def _normalize(self, data: bytes) -> bytes:
        form = self._model.normalizer
        return data if form is None else normalize(form, data)

    def forget_encoder(self) -> None:
        """Free the encoder with its caches; see `Tokenizer.forget_encoder`."""
        with self._lock:
            self._backend_encoder = None

    def _encoder(self) -> Encoder:
        with self._lock:
            if self._backend_encoder is None:
                backend = get_backend()
                self._backend_encoder = backend.make_encoder(self._model.encoding_model)
            return self._backend_encoder

    def _decoder(self) -> Decoder:
        with self._lock:
            if self._backend_decoder is None:
                self._backend_decoder = get_backend().make_decoder(self._model.all_tokens)
            return self._backend_decoder


def _document_bytes(text: str | bytes) -> bytes:
    if isinstance(text, str):
        return utf8_bytes(text)
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise InputError(f"text is of type {type(text).__name__}: pass str or bytes")
