"""tokenizer.json of a Unigram model that encodes field by field."""

from __future__ import annotations

import json
from typing import Any

from bpe.formats.sentencepiece_model import Kind, SentencePieceModel

__all__ = ["render_unigram_json"]

_BLANK = "\u2581"
_SPECIAL = (Kind.UNKNOWN, Kind.CONTROL)


def render_unigram_json(model: SentencePieceModel) -> bytes | None:
    """The file, for `tokenizers`; None where that library cannot do the same.

    It looks for symbols of the user's before it puts blanks' signs into the text.
    """
    if any(piece.kind == Kind.USER_DEFINED for piece in model.pieces):
        return None
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    unknown = [i for i, piece in enumerate(model.pieces) if piece.kind == Kind.UNKNOWN]
    to_blank = {"type": "Replace", "pattern": {"String": _BLANK}, "content": " "}
    decoders: list[dict[str, Any]] = [
        to_blank,
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": piece.text, **flags, "special": True}
            for i, piece in enumerate(model.pieces)
            if piece.kind in _SPECIAL
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": _BLANK},
                {"type": "Replace", "pattern": {"String": " "}, "content": _BLANK},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "Unigram",
            "unk_id": unknown[0] if unknown else None,
            "vocab": [[piece.text, piece.score] for piece in model.pieces],
            "byte_fallback": model.byte_fallback,
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode()
