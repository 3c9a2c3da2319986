"""Our own model directory: a tokenizer with everything that is needed to trust it.

    config.json      format version, scheme, added tokens, training record, sha256 of the others
    vocab.json       tokens and added tokens, in GPT-2's format
    merges.txt       merges by rank, in GPT-2's format
    tokenizer.json   for Hugging Face's library; left out, and config.json says why, where that
                     library cannot do the same
    tokenizer_config.json   which special tokens are bos, eos and pad, for AutoTokenizer; comes with
                     tokenizer.json; since format version 3
    golden.jsonl     texts with their ids (`bpe.formats.golden`)

Since format version 4, the directory of a tokenizer over characters has neither vocab.json nor
merges.txt, which cannot spell it: tokenizer.json holds both. That of a tokenizer that another
library encodes holds that library's file in place of the first four
(`bpe.formats.library_directory`). Since format version 5, config.json names the preset that numbers
bytes (`bpe.encoding.byte_rows`).

config.json is written last: a directory without it is not a tokenizer yet.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe.encoding.added_tokens import AddedToken, special_added_tokens
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.engines.library_model import LibraryModel
from bpe.errors import InputError, ModelFileError, OutputError, SettingsError
from bpe.formats.file_access import (
    decode_text,
    parse_json,
    parse_json_object,
    read_file,
    read_text,
    shown,
    write_file,
)
from bpe.formats.golden import (
    GoldenText,
    check_golden,
    default_texts,
    parse_golden,
    render_golden,
)
from bpe.formats.gpt2_files import (
    build_model,
    parse_merge_lines,
    parse_vocab,
    render_merges,
    render_vocab,
)
from bpe.formats.library_directory import (
    FILE_NAMES,
    FURTHER_NAMES,
    read_library_model,
    render_library_files,
)
from bpe.formats.tokenizer_json import parse_tokenizer_json, render_tokenizer_json
from bpe.formats.transformers_config import render_transformers_config
from bpe.pretokenizing.schemes import Scheme, get_scheme
from bpe.pretokenizing.unicode_classes import UNICODE_VERSION

__all__ = [
    "CONFIG_NAME",
    "FORMAT_VERSION",
    "MODEL_FILES",
    "is_meant_as_model_directory",
    "is_model_directory",
    "read_model_directory",
    "render_model_files",
    "replace_golden",
    "write_model_directory",
]

CONFIG_NAME = "config.json"
FORMAT_VERSION = 3
KINDS_VERSION = 4
"""Format version of directories whose vocabulary vocab.json cannot hold."""
BYTES_VERSION = 5
"""Format version of directories whose config.json has `byte_preset`."""

_FORMAT = "beam-bpe tokenizer"
_VOCAB, _MERGES, _HUGGING_FACE = "vocab.json", "merges.txt", "tokenizer.json"
_TRANSFORMERS, _GOLDEN = "tokenizer_config.json", "golden.jsonl"
_LIBRARY_FILES = tuple(sorted(set(FILE_NAMES.values()) - {_HUGGING_FACE}))
MODEL_FILES = (
    *(_VOCAB, _MERGES, _HUGGING_FACE, _TRANSFORMERS),
    *(*_LIBRARY_FILES, *FURTHER_NAMES, _GOLDEN, CONFIG_NAME),
)
"""Files of a model directory; config.json last, as it is written."""

_OF_USERS = "regex "  # how the version of a users' pattern begins that the module ran

_REQUIRED = (_VOCAB, _MERGES, _GOLDEN)

PathLike = str | os.PathLike[str]
Encode = Callable[[bytes], Iterable[int]]


def is_model_directory(path: PathLike) -> bool:
    """Whether a folder holds a config.json of this format, readable or not by this version."""
    config_path = Path(path, CONFIG_NAME)
    try:
        return parse_json_object(read_text(config_path), config_path).get("format") == _FORMAT
    except ModelFileError:
        return False


def is_meant_as_model_directory(path: PathLike) -> bool:
    """Whether a folder is a model directory, or one that was damaged or never finished.

    Another program's tokenizer comes with a whole config.json of its own, or with none, and without
    golden.jsonl. Of anything else, nothing may be read before all of it was verified.
    """
    config = Path(path, CONFIG_NAME)
    if Path(path, _GOLDEN).exists() or is_model_directory(path):
        return True
    try:
        return config.is_file() and not isinstance(parse_json(read_text(config), config), dict)
    except ModelFileError:
        return True


def render_model_files(
    model: TokenizerModel | LibraryModel, encode: Encode, written_by: str
) -> dict[str, bytes]:
    """Content of each file of a model directory by name, config.json last.

    encode: the model's own encoding of one document, for golden.jsonl. written_by: the program
    and its version, for the record.
    """
    if isinstance(model, LibraryModel):
        files, facts = render_library_files(model, encode)
        return _with_config(files, KINDS_VERSION, written_by, facts)
    texts = [
        GoldenText(data, None)
        for data in default_texts(model.scheme, model.special_tokens)
        if not model.missing_bytes.is_in(data)
    ]
    files = {_GOLDEN: render_golden(check_golden(texts, encode))}
    if not model.characters:
        pair = {_VOCAB: render_vocab(model).encode(), _MERGES: render_merges(model).encode()}
        files = pair | files
    try:
        files[_HUGGING_FACE] = render_tokenizer_json(model).encode()
        files[_TRANSFORMERS] = render_transformers_config(model.special_tokens)
        without = None
    except InputError as error:
        without = str(error)
    facts = {
        "digest": model.digest,
        "vocab_size": model.vocab_size,
        "scheme": model.scheme.name,
        "unicode_version": model.scheme.unicode_version,
        "tie_order": model.tie_order,
        "whole_piece": model.whole_piece,
        "normalizer": model.normalizer,
        "lossy": model.normalizer is not None
        or model.scheme.drops_text
        or bool(model.lossy_tokens("text")),
        "added_tokens": [
            {**token.to_json(), "ordinary": token.id in model.tokens}
            for token in model.added_tokens
        ],
        "post_processor": model.post_processor,
        "training": model.training,
        "without_tokenizer_json": without,
    }
    version = KINDS_VERSION if model.characters else FORMAT_VERSION
    if model.byte_preset is not None:
        facts["byte_preset"], version = model.byte_preset, BYTES_VERSION
    return _with_config(files, version, written_by, facts)


def _with_config(
    files: dict[str, bytes], version: int, written_by: str, facts: Mapping[str, Any]
) -> dict[str, bytes]:
    """The files, and the config.json that describes them."""
    config = {
        "format": _FORMAT,
        "format_version": version,
        "written_by": written_by,
        **facts,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    return {**files, CONFIG_NAME: _render_config(config)}


def write_model_directory(
    directory: PathLike, files: Mapping[str, bytes], *, overwrite: bool = False
) -> None:
    """Write the files of `render_model_files` so that a half-written tokenizer is never seen.

    A new directory appears whole. In one that exists (with other files in it, say) config.json
    comes last. Raises `OutputError` if a tokenizer's file is there already and overwrite is not
    set, or if writing fails.
    """
    target = Path(directory)
    if not target.exists():
        _write_new_directory(target, files)
        return
    if not target.is_dir():
        raise OutputError(f"{directory} is a file; choose another directory")
    present = [name for name in MODEL_FILES if (target / name).exists()]
    if present and not overwrite:
        raise OutputError(
            f"{directory} holds {present[0]} already; choose another directory, or ask for it "
            "to be overwritten (overwrite=True, --overwrite)"
        )
    try:
        for name in reversed(present):  # config.json first
            (target / name).unlink()
    except OSError as error:
        raise OutputError(f"{directory} cannot be overwritten: {error.strerror}") from error
    for name, data in files.items():
        write_file(target / name, data)


def read_model_directory(
    directory: PathLike,
) -> tuple[TokenizerModel | LibraryModel, list[GoldenText]]:
    """Model of a directory, and its golden texts, which are for the caller to check.

    Every file is compared with its sha256, the model with its digest. Raises `ModelFileError`
    that names the file that does not fit, what was expected and what was found.
    """
    config = _read_config(directory)
    contents = _read_verified(directory, config)
    if config["format_version"] == KINDS_VERSION:
        config_path, golden_path = Path(directory, CONFIG_NAME), Path(directory, _GOLDEN)
        golden = parse_golden(decode_text(contents[_GOLDEN], golden_path), golden_path)
        if "engine" in config:
            return read_library_model(config, contents, config_path), golden
        return _read_characters(directory, config, contents), golden
    return _read_byte_level(directory, config, contents)


def _read_byte_level(
    directory: PathLike, config: Mapping[str, Any], files: Mapping[str, bytes]
) -> tuple[TokenizerModel, list[GoldenText]]:
    contents = {name: decode_text(data, Path(directory, name)) for name, data in files.items()}
    vocab_path, merges_path = Path(directory, _VOCAB), Path(directory, _MERGES)
    added, ordinary = _read_added_tokens(config, directory)
    vocab = parse_vocab(parse_json_object(contents[_VOCAB], vocab_path), vocab_path)
    for token in added:
        if vocab.get(token.text) != token.id:
            raise ModelFileError(
                f"{Path(directory, CONFIG_NAME)}: added token {token.text!r} has id {token.id}, "
                "and vocab.json gives it another id, or none; write the directory again"
            )
    try:
        model = build_model(
            vocab,
            parse_merge_lines(contents[_MERGES], merges_path),
            added,
            scheme=_read_scheme(config, directory),
            vocab_name=vocab_path,
            merges_name=merges_path,
            ordinary=ordinary,
            whole_piece=_member(config, "whole_piece", bool, directory),
            normalizer=config.get("normalizer"),
            tie_order=config.get("tie_order"),
            training=_member(config, "training", dict, directory),
            post_processor=config.get("post_processor"),
        )
        model = dataclasses.replace(model, byte_preset=config.get("byte_preset"))
    except InputError as error:
        raise ModelFileError(f"{directory}: {error}") from error
    _check_digest(model, config, directory)
    return model, parse_golden(contents[_GOLDEN], Path(directory, _GOLDEN))


def _check_digest(model: TokenizerModel, config: Mapping[str, Any], directory: PathLike) -> None:
    if model.digest != config.get("digest"):
        raise ModelFileError(
            f"{Path(directory, CONFIG_NAME)}: the digest is {config.get('digest')!r}, the content "
            f"of the directory has {model.digest!r}: config.json was changed after it was written"
        )


def _read_characters(
    directory: PathLike, config: Mapping[str, Any], files: Mapping[str, bytes]
) -> TokenizerModel:
    """Model over characters: vocabulary and merges of tokenizer.json, all else of config.json."""
    path = Path(directory, _HUGGING_FACE)
    if _HUGGING_FACE not in files:
        raise ModelFileError(f"{Path(directory, CONFIG_NAME)}: 'files' does not list {path.name}")
    spelled = parse_tokenizer_json(files[_HUGGING_FACE], path)
    added, _ = _read_added_tokens(config, directory)
    try:
        model = dataclasses.replace(
            spelled,
            added_tokens=added,
            scheme=_read_scheme(config, directory),
            normalizer=config.get("normalizer"),
            training=_member(config, "training", dict, directory),
            post_processor=config.get("post_processor"),
        )
    except InputError as error:
        raise ModelFileError(f"{directory}: {error}") from error
    _check_digest(model, config, directory)
    return model


def replace_golden(directory: PathLike, texts: Sequence[GoldenText]) -> None:
    """Write another golden.jsonl into a model directory, and its sha256 into config.json.

    Between the two the directory does not verify; a reader then is told so, and tries again.
    """
    config = _read_config(directory)
    data = render_golden(texts)
    config["files"][_GOLDEN] = hashlib.sha256(data).hexdigest()
    write_file(Path(directory, _GOLDEN), data)
    write_file(Path(directory, CONFIG_NAME), _render_config(config))


def _write_new_directory(target: Path, files: Mapping[str, bytes]) -> None:
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, data in files.items():
            write_file(temporary / name, data)
        temporary.rename(target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{target} cannot be written: {reason}") from error


def _render_config(config: Mapping[str, Any]) -> bytes:
    return (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode()


def _read_config(directory: PathLike) -> dict[str, Any]:
    path = Path(directory, CONFIG_NAME)
    if not Path(directory).is_dir():
        kind = "a file" if Path(directory).exists() else "not there"
        raise ModelFileError(f"{directory} is {kind}; give the directory of a trained tokenizer")
    if not path.is_file():
        raise ModelFileError(
            f"{directory} holds no {CONFIG_NAME}, so it is no model directory, or was never "
            "finished; give the directory that training wrote"
        )
    try:
        config = parse_json_object(read_text(path), path)
    except ModelFileError as error:
        raise ModelFileError(
            f"{error}; the file is damaged: restore it, or write the directory again"
        ) from error
    if config.get("format") != _FORMAT:
        raise ModelFileError(
            f"{path}: format is {config.get('format')!r}, not {_FORMAT!r}: another program wrote "
            "this config.json; import its tokenizer.json or vocab.json and merges.txt instead"
        )
    if config.get("format_version") not in range(1, BYTES_VERSION + 1):
        raise ModelFileError(
            f"{path}: format_version is {config.get('format_version')!r}, and this version reads "
            f"1 to {BYTES_VERSION}; it was written by {config.get('written_by')!r}: install that"
        )
    return config


def _read_verified(directory: PathLike, config: Mapping[str, Any]) -> dict[str, bytes]:
    hashes = _member(config, "files", dict, directory)
    is_other_kind = config["format_version"] == KINDS_VERSION
    for name in (_GOLDEN,) if is_other_kind else _REQUIRED:
        if name not in hashes:
            raise ModelFileError(f"{Path(directory, CONFIG_NAME)}: 'files' does not list {name}")
    contents: dict[str, bytes] = {}
    for name, expected in hashes.items():
        if name not in MODEL_FILES:
            raise ModelFileError(f"{Path(directory, CONFIG_NAME)}: 'files' lists {name!r}")
        path = Path(directory, name)
        data = read_file(path)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise ModelFileError(
                f"{path}: sha256 is {found}, config.json says {expected}: the file was changed "
                "after it was written; restore it, or write the directory again"
            )
        contents[name] = data
    return contents


def _member(config: Mapping[str, Any], name: str, kind: type, directory: PathLike) -> Any:
    value = config.get(name)
    if not isinstance(value, kind):
        raise ModelFileError(
            f"{Path(directory, CONFIG_NAME)}: {name!r} is {shown(value)}, where a {kind.__name__} "
            "is expected; write the directory again"
        )
    return value


def _read_added_tokens(
    config: Mapping[str, Any], directory: PathLike
) -> tuple[tuple[AddedToken, ...], list[str]]:
    """The added tokens, and the texts of those that are ordinary tokens too."""
    if config["format_version"] == 1:
        return special_added_tokens(_member(config, "special_tokens", dict, directory)), []
    names = {field.name for field in dataclasses.fields(AddedToken)}
    rows = _member(config, "added_tokens", list, directory)
    for row in rows:
        if (
            not isinstance(row, dict)
            or set(row) != {*names, "ordinary"}
            or (type(row["text"]), type(row["id"])) != (str, int)
            or not all(isinstance(row[name], bool) for name in row if name not in ("text", "id"))
        ):
            raise ModelFileError(
                f"{Path(directory, CONFIG_NAME)}: 'added_tokens' holds {shown(row)}, where an "
                f"object with {', '.join(sorted(names))} and ordinary is expected; write the "
                "directory again"
            )
    added = [AddedToken(**{name: row[name] for name in names}) for row in rows]
    return tuple(added), [row["text"] for row in rows if row["ordinary"]]


def _read_scheme(config: Mapping[str, Any], directory: PathLike) -> Scheme:
    stored = str(config.get("unicode_version"))
    try:
        scheme = get_scheme(_member(config, "scheme", str, directory))
    except SettingsError as error:
        raise ModelFileError(f"{Path(directory, CONFIG_NAME)}: {error}") from error
    if stored == scheme.unicode_version:
        return scheme
    message = (
        f"{Path(directory, CONFIG_NAME)}: the tokenizer was made with the character classes of "
        f"{stored}, these are of {scheme.unicode_version}"
    )
    if scheme.unicode_version == UNICODE_VERSION and not stored.startswith(_OF_USERS):
        raise ModelFileError(f"{message}; use the version that wrote it")
    # A pattern that is not compiled is run by whichever `regex` is installed, and one may be
    # compiled now that was not; golden.jsonl is the safeguard.
    warnings.warn(f"{message}; ids of rare characters may differ", UserWarning, stacklevel=4)
    return dataclasses.replace(scheme, unicode_version=stored)
