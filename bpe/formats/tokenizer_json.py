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
from bpe.errors import ModelFileError, SettingsError, VocabularyError
from bpe.formats.file_access import decode_text, parse_json_object, read_file, shown, write_file
from bpe.formats.foreign_tokenizers import describe_bytes, describe_document
from bpe.formats.gpt2_files import (
    SpelledMerges,
    build_model,
    is_whole_pretoken,
    parse_vocab,
)
from bpe.formats.huggingface_patterns import (
    find_difference,
    is_published_cl100k,
    render_pre_tokenizer,
    scheme_name_of,
)
from bpe.formats.sentencepiece_bpe import (
    character_steps,
    model_of_vocab,
    render_character_parts,
    spell_token,
)
from bpe.pretokenizing.schemes import Scheme, get_scheme

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
# Of an added token; what a file does not say is false.
_FLAGS = dict.fromkeys(("special", "normalized", "lstrip", "rstrip", "single_word"), False)


def read_tokenizer_json(path: PathLike) -> TokenizerModel:
    """Model of a tokenizer.json.

    Ids are the file's, rank is a merge's index. `ignore_merges` becomes `whole_piece`; added
    tokens keep their flags; the post-processor is recorded and never applied; NFC is honoured.
    A pattern that is no named scheme's is read as `regex:PATTERN`, with a `UserWarning`.

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


class UnsupportedFileError(ModelFileError):
    """The file asks for what the core cannot do exactly; another library may."""

    remedy = "give a file without it, or take it out if your texts do not need it"


def _read_document(document: Mapping[str, Any], path: PathLike) -> TokenizerModel:
    _check_truncation(document, path)
    if _is_over_characters(document):
        return _read_characters(document, path)
    _check_decoder(document.get("decoder"), path)
    model = _member(document, "model", dict, path)
    for setting, allowed in _MODEL_VALUES.items():
        value = model.get(setting)
        _refuse_unless(value in allowed, path, f"model.{setting}", value)
    vocab = parse_vocab(_member(model, "vocab", dict, path), path)
    vocab.pop("", None)  # an entry that some files have: no text can be encoded to it
    try:
        return build_model(
            vocab,
            _read_merges(_member(model, "merges", list, path), path),
            _read_added_tokens(document.get("added_tokens"), vocab, path),
            scheme=_read_scheme(document.get("pre_tokenizer"), vocab, path),
            vocab_name=f"{path} (model.vocab)",
            merges_name=f"{path} (model.merges)",
            whole_piece=_flag(model, "ignore_merges", "model", path, default=False),
            normalizer=_read_normalizer(document.get("normalizer"), path),
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
    model = _member(document, "model", dict, path)
    for setting, allowed in _MODEL_VALUES.items():
        value = model.get(setting)
        is_set = setting in ("unk_token", "fuse_unk", "byte_fallback")
        _refuse_unless(is_set or value in allowed, path, f"model.{setting}", value)
    ignores = _flag(model, "ignore_merges", "model", path, default=False)
    _refuse_unless(not ignores, path, "model.ignore_merges", ignores)
    normalizer, pre_tokenizer = document.get("normalizer"), document.get("pre_tokenizer")
    steps = character_steps(
        _steps_of(normalizer, "normalizers", "normalizer", path) if normalizer else [],
        _steps_of(pre_tokenizer, "pretokenizers", "pre_tokenizer", path) if pre_tokenizer else [],
    )
    _refuse_unless(steps is not None, path, "normalizer with pre_tokenizer", pre_tokenizer)
    normalizing, cuts_at_blanks = steps or ([], False)
    vocab = parse_vocab(_member(model, "vocab", dict, path), path)
    added = _read_added_tokens(document.get("added_tokens"), vocab, path)
    # Metaspace sees texts after both passes, and what is a normalizer here goes before the second.
    late = [token for token in added if token.normalized and not normalizer]
    _refuse_unless(not late, path, "added_tokens: normalized, with Metaspace", late[:1])
    try:
        return model_of_vocab(
            vocab,
            _read_merges(_member(model, "merges", list, path), path),
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
    return {
        "normalizer": {"type": model.normalizer} if model.normalizer else None,
        "pre_tokenizer": render_pre_tokenizer(model.scheme, model.tokens.values()),
        "decoder": _byte_level(),
    }


def write_tokenizer_json(model: TokenizerModel, path: PathLike) -> None:
    """Write a model as tokenizer.json; errors as of `render_tokenizer_json`, with the file."""
    try:
        text = render_tokenizer_json(model)
    except VocabularyError as error:
        raise VocabularyError(f"{Path(path).name} cannot be written: {error}") from error
    write_file(path, text.encode())


def _member(parent: Mapping[str, Any], name: str, kind: type, path: PathLike) -> Any:
    value = parent.get(name)
    if not isinstance(value, kind):
        found = "is missing" if value is None else f"is a {type(value).__name__}"
        raise UnsupportedFileError(f"{path}: {name!r} {found}, where a {kind.__name__} is expected")
    return value


def _flag(
    parent: Mapping[str, Any], name: str, place: str, path: PathLike, *, default: bool
) -> bool:
    value = parent.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ModelFileError(f"{path}: {place}.{name} is {shown(value)}, not true or false")
    return value


def _steps_of(value: Any, members: str, setting: str, path: PathLike) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer: those of a Sequence one by one."""
    steps: Any = [value]
    if isinstance(value, dict) and value.get("type") == "Sequence":
        steps = value.get(members)
    if not isinstance(steps, list) or not all(
        isinstance(step, dict) and isinstance(step.get("type"), str) for step in steps
    ):
        raise UnsupportedFileError(
            f"{path}: {setting} is {shown(value)}, which is no step with a type, nor a Sequence of "
            f"such {members}"
        )
    return list(steps)


def _refuse_unless(honoured: bool, path: PathLike, setting: str, value: object) -> None:  # noqa: FBT001
    if not honoured:
        text = shown(value) if not isinstance(value, str) else f'"{shown(value)[1:-1]}"'
        raise UnsupportedFileError(f"{path}: {setting} is {text}, which cannot be honoured exactly")


def _check_decoder(decoder: Any, path: PathLike) -> None:
    honoured = decoder is None or (
        isinstance(decoder, dict) and decoder.get("type") in (None, "ByteLevel")
    )
    _refuse_unless(honoured, path, "decoder", decoder)


def _read_normalizer(normalizer: Any, path: PathLike) -> str | None:
    if normalizer is None:
        return None
    steps = _steps_of(normalizer, "normalizers", "normalizer", path)
    for step in steps:
        _refuse_unless(step["type"] == "NFC", path, "normalizer", step)
    return "NFC" if steps else None


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


def _read_scheme(pre_tokenizer: Any, vocab: Mapping[str, int], path: PathLike) -> Scheme:
    _refuse_unless(pre_tokenizer is not None, path, "pre_tokenizer", pre_tokenizer)
    steps = _steps_of(pre_tokenizer, "pretokenizers", "pre_tokenizer", path)
    kinds = [step["type"] for step in steps]
    _refuse_unless(
        kinds in (["ByteLevel"], ["Split", "ByteLevel"]), path, "pre_tokenizer", pre_tokenizer
    )
    byte_level = steps[-1]
    # The library's own defaults are true for both.
    place = "pre_tokenizer: ByteLevel"
    adds_space = _flag(byte_level, "add_prefix_space", place, path, default=True)
    uses_regex = _flag(byte_level, "use_regex", place, path, default=True)
    _refuse_unless(not adds_space, path, "pre_tokenizer: ByteLevel.add_prefix_space", adds_space)
    if len(steps) == 1:
        return get_scheme("gpt2" if uses_regex else "none")
    _refuse_unless(
        not uses_regex, path, "pre_tokenizer: ByteLevel.use_regex after Split", uses_regex
    )
    if is_published_cl100k(steps, (from_printable(text) or b"" for text in vocab)):
        return get_scheme("cl100k")
    return _read_split(steps[0], path)


def _read_split(split: Mapping[str, Any], path: PathLike) -> Scheme:
    pattern = split.get("pattern")
    text = pattern.get("Regex") if isinstance(pattern, dict) else None
    _refuse_unless(isinstance(text, str) and bool(text), path, "Split.pattern", pattern)
    text = str(text)
    behavior = split.get("behavior")
    invert = _flag(split, "invert", "Split", path, default=False)
    name = scheme_name_of(text)
    # Named patterns match every character, so that dropping what they do not match drops nothing.
    keeps_all = behavior == "Isolated" or (
        name is not None and (behavior, invert) == ("Removed", True)
    )
    _refuse_unless(keeps_all, path, "Split.behavior", behavior)
    if name is not None:
        return get_scheme(name)
    try:
        scheme = get_scheme(f"regex:{text}")
    except SettingsError as error:
        raise ModelFileError(f"{path}: Split.pattern: {error}") from error
    difference = find_difference(text)
    _refuse_unless(difference is None, path, f"Split.pattern ({difference})", text)
    warnings.warn(
        f"{path}: the pattern {shown(text)} is no named scheme's; it is read as regex:PATTERN, "
        f"whose Unicode classes are those of {scheme.unicode_version}, not of the file's library",
        UserWarning,
        stacklevel=6,
    )
    return scheme


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
