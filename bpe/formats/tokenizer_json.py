"""Hugging Face's tokenizer.json for byte-level BPE.

What the file asks for and this library does exactly is read; anything else is refused by name.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.printable_bytes import from_printable, to_printable
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.encoding.vocabulary_checks import MAX_ID
from bpe.errors import ModelFileError, VocabularyError
from bpe.formats.file_access import decode_text, parse_json_object, read_file, shown, write_file
from bpe.formats.foreign_tokenizers import describe_bytes, describe_document
from bpe.formats.gpt2_files import (
    SpelledMerges,
    build_model,
    is_whole_pretoken,
    parse_vocab,
)
from bpe.formats.huggingface_patterns import (
    render_pre_tokenizer,
)
from bpe.formats.pre_tokenizers import read_pre_tokenizer
from bpe.formats.sentencepiece_bpe import (
    character_steps,
    model_of_vocab,
    render_character_parts,
    spell_token,
)
from bpe.formats.tokenizer_fields import (
    UnsupportedFileError,
    flag,
    member,
    refuse_unless,
    steps_of,
)
from bpe.pretokenizing.normalizers import normalizer_spec

__all__ = [
    "UnsupportedFileError",
    "parse_tokenizer_json",
    "read_tokenizer_json",
    "render_tokenizer_json",
    "write_tokenizer_json",
]

PathLike = str | os.PathLike[str]

# Settings of the file's `model` that are honoured with these values and no others.
_MODEL_VALUES: Mapping[str, tuple[object, ...]] = {
    "type": (None, "BPE"),
    "dropout": (None, 0, 0.0),
    "unk_token": (None, ""),
    "fuse_unk": (None, False),
    "byte_fallback": (None, False),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}
_SPACE_BEFORE = ("PrependMissing", " ")  # ByteLevel's add_prefix_space, as a normalizer
# Of an added token; what a file does not say is false.
_FLAGS = dict.fromkeys(("special", "normalized", "lstrip", "rstrip", "single_word"), False)


def read_tokenizer_json(path: PathLike) -> TokenizerModel:
    """Model of a tokenizer.json.

    Ids are the file's, rank is a merge's index. `ignore_merges` becomes `whole_piece`; added
    tokens keep their flags; the post-processor is recorded and never applied; NFC is honoured.
    Steps that are no named scheme are read as `regex:PATTERN` or `chain:STEPS`, with a
    `UserWarning`.

    Raises `ModelFileError` that names the file, the setting and its value.
    """
    return parse_tokenizer_json(read_file(path), path)


def parse_tokenizer_json(data: bytes, path: PathLike) -> TokenizerModel:
    """Model of the content of a tokenizer.json; path: for messages. See `read_tokenizer_json`."""
    kind = describe_bytes(data)
    if kind is not None:
        raise ModelFileError(f"{path} is {kind[0]}; {kind[1]}")
    document = parse_json_object(decode_text(data, path), path)
    try:
        return _read_document(document, path)
    except UnsupportedFileError as refusal:
        what, remedy = describe_document(document) or (None, refusal.remedy)
        found = f": this is {what}" if what else ""
        raise UnsupportedFileError(f"{refusal}{found}; {remedy}") from None


def _read_document(document: Mapping[str, Any], path: PathLike) -> TokenizerModel:
    _check_truncation(document, path)
    if _is_over_characters(document):
        return _read_characters(document, path)
    _check_decoder(document.get("decoder"), path)
    model = member(document, "model", dict, path)
    for setting, allowed in _MODEL_VALUES.items():
        value = model.get(setting)
        refuse_unless(value in allowed, path, f"model.{setting}", value)
    vocab = parse_vocab(member(model, "vocab", dict, path), path)
    vocab.pop("", None)  # an entry that some files have: no text can be encoded to it
    tokens = (from_printable(text) or b"" for text in vocab)
    scheme, adds_space = read_pre_tokenizer(document.get("pre_tokenizer"), tokens, path)
    added = _read_added_tokens(document.get("added_tokens"), vocab, path)
    # The space goes before texts after both passes, what is a normalizer here before the second.
    late = [token for token in added if token.normalized and adds_space]
    refuse_unless(not late, path, "added_tokens: normalized, with add_prefix_space", late[:1])
    try:
        return build_model(
            vocab,
            _read_merges(member(model, "merges", list, path), path),
            added,
            scheme=scheme,
            vocab_name=f"{path} (model.vocab)",
            merges_name=f"{path} (model.merges)",
            whole_piece=flag(model, "ignore_merges", "model", path, default=False),
            normalizer=_read_normalizer(document.get("normalizer"), path, adds_space=adds_space),
            post_processor=document.get("post_processor"),
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _check_truncation(document: Mapping[str, Any], path: PathLike) -> None:
    # Padding does nothing to a text that is encoded alone.
    truncation = document.get("truncation")
    if truncation is not None:
        raise ModelFileError(
            f"{path}: truncation is {shown(truncation)}, which cannot be honoured: it would cut "
            'every text; set "truncation" to null in the file (no_truncation() in `tokenizers`), '
            "and cut rows with --max-row-tokens or --pack"
        )


def _is_over_characters(document: Mapping[str, Any]) -> bool:
    """Whether unknown characters become bytes: SentencePiece's kind."""
    model = document.get("model")
    is_byte_level = '"ByteLevel"' in json.dumps(document.get("pre_tokenizer"))
    return isinstance(model, dict) and model.get("byte_fallback") is True and not is_byte_level


def _read_characters(document: Mapping[str, Any], path: PathLike) -> TokenizerModel:
    model = member(document, "model", dict, path)
    for setting, allowed in _MODEL_VALUES.items():
        value = model.get(setting)
        is_set = setting in ("unk_token", "fuse_unk", "byte_fallback")
        refuse_unless(is_set or value in allowed, path, f"model.{setting}", value)
    ignores = flag(model, "ignore_merges", "model", path, default=False)
    refuse_unless(not ignores, path, "model.ignore_merges", ignores)
    normalizer, pre_tokenizer = document.get("normalizer"), document.get("pre_tokenizer")
    steps = character_steps(
        steps_of(normalizer, "normalizers", "normalizer", path) if normalizer else [],
        steps_of(pre_tokenizer, "pretokenizers", "pre_tokenizer", path) if pre_tokenizer else [],
    )
    refuse_unless(steps is not None, path, "normalizer with pre_tokenizer", pre_tokenizer)
    normalizing, cuts_at_blanks = steps or ([], False)
    vocab = parse_vocab(member(model, "vocab", dict, path), path)
    added = _read_added_tokens(document.get("added_tokens"), vocab, path)
    # Metaspace sees texts after both passes, and what is a normalizer here goes before the second.
    late = [token for token in added if token.normalized and not normalizer]
    refuse_unless(not late, path, "added_tokens: normalized, with Metaspace", late[:1])
    try:
        return model_of_vocab(
            vocab,
            _read_merges(member(model, "merges", list, path), path),
            added,
            normalizer=normalizing,
            cuts_at_blanks=cuts_at_blanks,
            path=path,
            post_processor=document.get("post_processor"),
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def render_tokenizer_json(model: TokenizerModel) -> str:
    """Write a model as tokenizer.json text, which gives the same ids for text without specials.

    The `tokenizers` library finds special tokens in text unless `encode_special_tokens` is set.
    Raises `SettingsError` for a pattern, `VocabularyError` for ids, that cannot be written.
    """
    spell = spell_token if model.characters else to_printable
    vocab = {spell(model.tokens[token_id]): token_id for token_id in sorted(model.tokens)}
    vocab |= {spell_token(data, is_spare=True): i for i, data in model.spare_tokens.items()}
    alone = [token for token in model.added_tokens if token.id not in model.tokens]
    if [token.id for token in alone] != list(range(len(vocab), len(vocab) + len(alone))):
        # The library numbers added tokens itself, from the vocabulary's size up; only what is in
        # the vocabulary keeps its id.
        _check_hidden_tokens(model, alone)
        vocab |= {token.text: token.id for token in alone}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_render_added_token(token) for token in model.added_tokens],
        **(render_character_parts(model) if model.characters else _byte_level_parts(model)),
        "post_processor": model.post_processor,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": model.characters,
            "ignore_merges": model.whole_piece,
            "vocab": vocab,
            "merges": [
                [spell(model.tokens[left]), spell(model.tokens[right])]
                if model.characters
                else f"{spell(model.tokens[left])} {spell(model.tokens[right])}"
                for left, right, _ in model.merges
            ],
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _byte_level_parts(model: TokenizerModel) -> dict[str, Any]:
    steps = list(model.normalizing.steps) if model.normalizing else []
    adds_space = steps[-1:] == [_SPACE_BEFORE]
    forms = [{"type": step[0]} for step in steps if step != _SPACE_BEFORE]
    pre_tokenizer = render_pre_tokenizer(model.scheme, model.tokens.values(), adds_space=adds_space)
    return {
        "normalizer": forms[0] if forms else None,
        "pre_tokenizer": pre_tokenizer,
        "decoder": _byte_level(),
    }


def write_tokenizer_json(model: TokenizerModel, path: PathLike) -> None:
    """Write a model as tokenizer.json; errors as of `render_tokenizer_json`, with the file."""
    try:
        text = render_tokenizer_json(model)
    except VocabularyError as error:
        raise VocabularyError(f"{Path(path).name} cannot be written: {error}") from error
    write_file(path, text.encode())


def _check_decoder(decoder: Any, path: PathLike) -> None:
    honoured = decoder is None or (
        isinstance(decoder, dict) and decoder.get("type") in (None, "ByteLevel")
    )
    refuse_unless(honoured, path, "decoder", decoder)


def _read_normalizer(normalizer: Any, path: PathLike, *, adds_space: bool) -> str | None:
    steps = steps_of(normalizer, "normalizers", "normalizer", path) if normalizer else []
    for step in steps:
        refuse_unless(step["type"] == "NFC", path, "normalizer", step)
    forms = [("NFC",)] if steps else []
    return normalizer_spec([*forms, _SPACE_BEFORE] if adds_space else forms)


def _read_merges(merges: list[Any], path: PathLike) -> SpelledMerges:
    lefts: list[str] = []
    rights: list[str] = []
    for index, merge in enumerate(merges):
        # Written as "left right" by older versions of the library, as ["left", "right"] by newer.
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if (
            not isinstance(parts, list)
            or len(parts) != 2
            or not all(isinstance(part, str) and part for part in parts)
        ):
            raise ModelFileError(
                f"{path}: model.merges[{index}] is {shown(merge)}, not a pair of two tokens"
            )
        lefts.append(parts[0])
        rights.append(parts[1])
    return SpelledMerges(lefts, rights, lambda rank: f"{path}, model.merges[{rank}]")


def _read_added_tokens(added: Any, vocab: Mapping[str, int], path: PathLike) -> list[AddedToken]:
    if not isinstance(added, (list, type(None))):
        raise ModelFileError(f"{path}: added_tokens is {shown(added)}, not a list")
    found: dict[str, AddedToken] = {}
    ids: dict[str, int] = {}
    largest = len(vocab) - 1
    for index, entry in enumerate(added or ()):
        place = f"added_tokens[{index}]"
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("content"), str)
            or type(entry.get("id")) is not int
            or not 0 <= entry["id"] <= MAX_ID
        ):
            raise ModelFileError(
                f"{path}: {place} is {shown(entry)}; it needs a content and an id, an integer from "
                f"0 to {MAX_ID}"
            )
        text, token_id = entry["content"], entry["id"]
        if vocab.get(text, token_id) != token_id:
            raise ModelFileError(
                f"{path}: {place} ({shown(text)}) has id {token_id}, model.vocab says {vocab[text]}"
            )
        flags = {name: entry.get(name, _FLAGS[name]) for name in _FLAGS}
        if not set(map(type, flags.values())) <= {bool}:
            raise ModelFileError(
                f"{path}: {place} is {shown(entry)}; its flags must be true or false"
            )
        if entry["id"] != ids.setdefault(text, token_id):
            raise ModelFileError(
                f"{path}: {place} ({shown(text)}) is there already, with another id"
            )
        if text not in found:
            # The library numbers what is not in the vocabulary itself, without gaps.
            token_id = vocab.get(text, largest + 1)
            largest = max(largest, token_id)
        if token_id != entry["id"]:
            warnings.warn(
                f"{path}: {place} ({shown(text)}) has id {entry['id']} in the file, and "
                f"{token_id} here: tokenizers numbers added tokens that are not in model.vocab in "
                "the order of the file, without gaps",
                UserWarning,
                stacklevel=4,
            )
        # Of several entries the library keeps the last.
        found[text] = AddedToken(text, found[text].id if text in found else token_id, **flags)
    return list(found.values())


def _check_hidden_tokens(model: TokenizerModel, alone: list[AddedToken]) -> None:
    if not model.whole_piece:
        return
    for token in alone:
        if is_whole_pretoken(token.text, model.scheme):
            raise VocabularyError(
                f"special token {token.text!r} (id {token.id}) is one whole pre-token of scheme "
                f"{model.scheme.name!r}, and ignore_merges would give its id to ordinary text; "
                f"give the special tokens the ids from {len(model.tokens)} up"
            )


def _render_added_token(token: AddedToken) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    flags = {name: getattr(token, name) for name in names}
    return {"id": token.id, "content": token.text, **flags}


def _byte_level() -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
