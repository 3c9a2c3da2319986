"""Tokenizers of bytes by name, where others are read from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import SettingsError
from bpe.pretokenizing.schemes import get_scheme

__all__ = ["is_byte_preset", "make_byte_model"]


def is_byte_preset(path: Path) -> bool:
    """Whether a path is the name of a preset of bytes, and nothing is there."""
    return str(path) in BYTE_PRESETS and not path.exists()


def make_byte_model(
    name: str, special_tokens: Mapping[str, int] | Sequence[str] | None = None
) -> TokenizerModel:
    """Model of a preset.

    special_tokens: those that it has on request (`bytes`: `<bos>` 256 and `<eos>` 257), all of
        them; None or nothing for none of these.
    Raises `SettingsError` for others.
    """
    preset = BYTE_PRESETS[name]
    asked = _as_mapping(special_tokens, preset.framing_tokens)
    if asked and asked != dict(preset.framing_tokens):
        has = ", ".join(f"{text} {i}" for text, i in preset.framing_tokens.items()) or "none"
        raise SettingsError(
            f"special_tokens of {name}: it has {has} to ask for, not {', '.join(asked)}; ask for "
            "all of them, or leave special_tokens out"
        )
    return TokenizerModel(
        tokens={byte + preset.offset: bytes([byte]) for byte in range(256)},
        merges=[],
        # Nothing is merged, so that any scheme gives the same ids; this one can be cut anywhere.
        scheme=get_scheme("gpt2"),
        added_tokens=special_added_tokens({**preset.special_tokens, **asked}),
        byte_preset=name,
    )


def _as_mapping(
    given: Mapping[str, int] | Iterable[str] | None, known: Mapping[str, int]
) -> dict[str, int]:
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    return {text: known.get(text, -1) for text in given}
