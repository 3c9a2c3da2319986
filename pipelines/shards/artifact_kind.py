"""What a path is that was given where the output of a command is wanted, and what to give instead.

Folders are known by the files that commands leave in them: `run.json` says whose a folder is, and
`manifest.json`, `config.json` and `export.json` that it is finished. An output of `encode` has its
own in `pipelines.storage.output_layout.OWN_FOLDER`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec

from bpe.errors import OutputError
from bpe.formats.model_directory import CONFIG_NAME
from pipelines.shards.tokenizer_files import find_models
from pipelines.storage.output_files import exists, is_local, join, list_files, read_bytes
from pipelines.storage.output_layout import (
    ENCODE_RUN,
    MANIFEST,
    OLD_MANIFEST,
    OLD_TOKENIZER,
    OWN_FOLDER,
    RUN,
    TOKENIZER_FOLDER,
)
from pipelines.storage.output_names import SHARD_FILE, is_split_name
from schemas.count_manifest import COUNTS_FORMAT

__all__ = ["Place", "recognize", "what_to_give"]

_SHOWN = 3


@dataclass(frozen=True)
class Place:
    """What is at a path.

    Attributes:
        kind: `shards`, `unfinished`, `split`, `tokenizer`, `sizes`, `counts`, `training`, `export`,
            `parent`, `file`, `nothing` or `other`.
        what: a phrase for a message, such as "is a file".
        shards: folder of the finished output that it belongs to or was made from; None if none is
            known.
        tokenizer: a tokenizer that belongs to it; None if none is known.
        split: name of the split that it is; "" for what is none.
    """

    kind: str
    what: str
    shards: str | None = None
    tokenizer: str | None = None
    split: str = ""


class _Record(msgspec.Struct):
    """The parts of records by which folders are known; those of other records are left out."""

    command: str = ""
    format: str = ""
    inputs: list[dict[str, str]] = []
    settings: dict[str, object] = {}
    shards: list[msgspec.Raw] | None = None


def recognize(path: str) -> Place:
    """What is at a path; never fails on what it finds there."""
    try:
        return _recognize(path)
    except OutputError as error:
        return Place("other", f"cannot be looked into ({error})")


def _recognize(path: str) -> Place:
    if is_local(path) and not os.path.isdir(path):
        return _no_folder(path)
    parent = path.rstrip("/").rpartition("/")[0] or "."
    if exists(join(path, MANIFEST)):
        return Place(
            "shards", "is an output of beam-bpe encode", path, join(path, TOKENIZER_FOLDER)
        )
    run = _run_of(path)
    if exists(join(path, OLD_MANIFEST)):
        manifest = _read(join(path, OLD_MANIFEST))
        if manifest.format == COUNTS_FORMAT:
            counts = "is a table of counts from beam-bpe train"
            return Place("counts", counts, tokenizer=_model_in(parent))
        model = join(path, OLD_TOKENIZER)
        # A manifest that cannot be read may be that of counts.
        if manifest.shards is not None or run.command == "encode" or exists(model):
            old = "is an output of beam-bpe encode, of an earlier version"
            return Place("shards", old, path, model)
    if run.command == "encode":
        inside = _model_in(join(path, TOKENIZER_FOLDER))
        return Place(
            "unfinished", "is an output of beam-bpe encode that is not finished", None, inside
        )
    if run.command == "export":
        source = run.inputs[0].get("path") if run.inputs else None
        return Place("export", "is an output of beam-bpe export", source)
    models = find_models(path)
    if models:
        is_one = exists(join(path, CONFIG_NAME))
        kind = "tokenizer" if is_one else "sizes"
        what = "is a tokenizer" if is_one else "holds tokenizers of several sizes"
        return Place(kind, what, _shards_in(parent), models[0])
    if run.command == "train":
        return Place("training", "is an output of beam-bpe train that is not finished")
    return _unmarked(path, parent)


def _no_folder(path: str) -> Place:
    folder = os.path.dirname(path) or "."
    if not os.path.exists(path):
        return Place("nothing", "is not there")
    model = _model_in(folder) if os.path.basename(path) == CONFIG_NAME else None
    return Place("file", "is a file", _shards_in(folder), model)


def _unmarked(path: str, parent: str) -> Place:
    """A folder without a record of its own."""
    above = _run_of(parent)
    name = path.rstrip("/").rpartition("/")[2]
    splits = above.settings.get("splits")
    listed = splits if isinstance(splits, list) else []
    named = [split[0] for split in listed if isinstance(split, list) and split]
    if above.command == "encode" and is_split_name(name) and name in named:
        return Place("split", f"is the split {name} of an output", _shards_in(parent), split=name)
    if above.command:
        return Place(
            "other", f"is a part of an output of beam-bpe {above.command}", _shards_in(parent)
        )
    found = _outputs_below(path)
    if found:
        shown = ", ".join(found[:_SHOWN]) + (" and others" if len(found) > _SHOWN else "")
        return Place("parent", f"is no output itself, but holds some: {shown}", found[0])
    names = sorted(list_files(path))
    if any(SHARD_FILE.fullmatch(name) for name in names):
        return Place("unfinished", "is an output of beam-bpe encode that is not finished")
    return Place("other", f"holds no output of beam-bpe{', but ' + names[0] if names else ''}")


def what_to_give(place: Place, *, tokenizer: bool = False, split_option: str = "") -> str:
    """What to do about a path where an output of encode is wanted.

    Args:
        place: what is there.
        tokenizer: a tokenizer is wanted instead.
        split_option: the option by which the command takes one split of an output, if it does.
    """
    if tokenizer:
        if place.tokenizer is not None:
            return f"give {place.tokenizer}"
        if place.kind == "training":
            return "run the same train command again, which finishes it"
        return "give a tokenizer: the output of beam-bpe train, or what other programs wrote"
    if place.kind in {"unfinished", "training"}:
        command = "encode" if place.kind == "unfinished" else "train"
        return f"run the same {command} command again, which finishes it"
    if place.shards is not None and place.kind != "parent":
        option = f" with {split_option} {place.split}" if place.split and split_option else ""
        return f"give {place.shards}{option}"
    one = "one of these" if place.kind == "parent" else "the --output folder of a beam-bpe encode"
    other = "; beam-bpe inspect shows a tokenizer" if place.tokenizer else ""
    return f"give {one}{other}"


def _read(path: str) -> _Record:
    try:
        return msgspec.json.decode(read_bytes(path), type=_Record)
    except (msgspec.MsgspecError, OSError, ValueError):
        return _Record()


def _run_of(folder: str) -> _Record:
    run = _read(join(folder, ENCODE_RUN))
    return run if run.command else _read(join(folder, RUN))


def _model_in(folder: str) -> str | None:
    models = find_models(folder)
    return models[0] if models else None


def _shards_in(folder: str) -> str | None:
    """The folder, or that of which it is `OWN_FOLDER`, if it is a finished output of encode."""
    output = folder.removesuffix(f"/{OWN_FOLDER}") or "/"
    return output if exists(join(output, MANIFEST)) else None


def _outputs_below(path: str) -> list[str]:
    if not is_local(path):
        return []
    with os.scandir(path) as entries:
        folders = sorted(entry.path for entry in entries if entry.is_dir())
    return [folder for folder in folders if _shards_in(folder)]
