"""Training from text files in one call, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.values import ProgressCallback
from bpe.count_sums import add_tables
from bpe.counting import count_pretokens
from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import BadFileError, InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from bpe.recipes.registry import get_recipe
from bpe.tokenizer import Tokenizer
from bpe.training import make_rules, recipe_settings, train

__all__ = ["count_files", "train_from_files"]

PathLike = str | os.PathLike[str]

_SUFFIXES = ("", ".txt", ".text", ".md", ".rst", ".log")
# Tables are added when they have grown to this.
_TABLE_BYTES = 64 << 20
# A cut is looked for so near the end of a block first.
_NEAR_BYTES = 1 << 12


def train_from_files(
    paths: PathLike | Iterable[PathLike],
    vocab_size: int | None = None,
    *,
    pretokenizer: str | None = None,
    recipe: str = "bpe",
    recipe_options: Mapping[str, Any] | None = None,
    merges: int | None = None,
    tie_order: str | None = None,
    min_frequency: int | None = None,
    special_tokens: Sequence[str] = (),
    special_text: str = "text",
    max_token_bytes: int | None = None,
    max_words: int | None = None,
    forbidden_parts: Sequence[bytes] = (),
    threads: int = 1,
    progress: ProgressCallback | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Learn a tokenizer from text files, each one document, as `beam-bpe train` does.

    Memory holds the distinct pre-tokens, and a block of a file at a time.

    Args:
        paths: text files (.txt, .text, .md, .rst, .log, or without a suffix), not compressed. Their
            order matters for the tie order `first` alone.
        vocab_size: 256 + merges + special tokens; training may stop earlier, as in `train`.
        pretokenizer: scheme, or `regex:PATTERN` (default: `gpt2`; other recipes have others);
            `none` is for `train_raw`.
        recipe: as in `train`.
        recipe_options: as in `train`.
        merges: as in `train`.
        tie_order: as in `train`.
        min_frequency: as in `train`.
        special_tokens: as in `train`.
        special_text: as in `count_pretokens`.
        max_token_bytes: as in `train`.
        max_words: as in `train`.
        forbidden_parts: as in `train`.
        threads: for counting.
        progress: as in `train`.
        training_record: as in `train`.

    Raises:
        SettingsError: a file of another format, or a value that cannot be honoured.
        BadFileError: a file cannot be read; names it.
        InputError: with `reject`, a special token occurs; names the file.
    """
    pretokenizer = pretokenizer or get_recipe(recipe).pretokenizer
    rules: dict[str, Any] = {
        "tie_order": tie_order,
        "min_frequency": min_frequency,
        "special_tokens": special_tokens,
    }
    # Fails before the files are read.
    settings = recipe_settings(
        recipe, vocab_size, merges, pretokenizer=pretokenizer, options=recipe_options, **rules
    )
    limits: dict[str, Any] = {
        "max_token_bytes": max_token_bytes,
        "max_words": max_words,
        "forbidden_parts": forbidden_parts,
    }
    if recipe == "bpe":
        order, least = str(settings.tie_order), settings.min_frequency or 1
        make_rules(settings.sizes[0], order, least, special_tokens, **limits)
    counts = count_files(
        paths,
        pretokenizer,
        first_positions=tie_order == "first",
        special_text=special_text,
        special_tokens=special_tokens,
        threads=threads,
    )
    rules |= limits | {"progress": progress, "training_record": training_record}
    rules |= {"recipe": recipe, "recipe_options": recipe_options, "merges": merges}
    return train(counts, vocab_size, pretokenizer=pretokenizer, **rules)


def count_files(
    paths: PathLike | Iterable[PathLike],
    pretokenizer: str,
    *,
    first_positions: bool = False,
    special_text: str = "text",
    special_tokens: Sequence[str] = (),
    threads: int = 1,
    block_bytes: int = 16 << 20,
    limit_bytes: int = 256 << 20,
) -> pa.Table:
    """Count the distinct pre-tokens of text files; the table is that of `count_pretokens`.

    Args:
        paths: as in `train_from_files`.
        pretokenizer: as in `train_from_files`.
        first_positions: as in `count_pretokens`.
        special_text: as in `count_pretokens`.
        special_tokens: as in `count_pretokens`.
        threads: how many to use.
        block_bytes: how much of a file to read at a time.
        limit_bytes: most bytes to hold where a file cannot be cut: of one pre-token; with a
            `regex:PATTERN`, of the whole file.

    Raises:
        SettingsError: a file of another format; or one that cannot be cut needs more bytes.
        BadFileError: a file cannot be read; names it.
        InputError: as `count_pretokens`; names the file.
    """
    files = _check_paths(paths, pretokenizer)
    specials = SpecialTokens({token: index for index, token in enumerate(special_tokens)})
    finder = CutFinder(
        get_scheme(pretokenizer),
        [token.encode() for token in specials.ids],
        special_text=special_text,
    )
    options: dict[str, Any] = {
        "first_positions": first_positions,
        "special_text": special_text,
        "special_tokens": special_tokens,
        "threads": threads,
    }
    tables = [count_pretokens(b"", pretokenizer, **options)]
    base, limit = 0, _TABLE_BYTES
    for path in files:
        size = 0
        for part in _read_parts(path, finder, block_bytes, limit_bytes):
            if special_text == "reject":
                _refuse_special(specials, part, path, size)
            table = count_pretokens(part, pretokenizer, **options)
            tables.append(_move_positions(table, base + size))
            size += len(part)
            if sum(each.nbytes for each in tables) > limit:
                tables = [add_tables(tables)]
                limit = max(_TABLE_BYTES, 2 * tables[0].nbytes)
        base += size
    return add_tables(tables)


def _check_paths(paths: PathLike | Iterable[PathLike], pretokenizer: str) -> list[Path]:
    if get_scheme(pretokenizer).name == "none":
        raise SettingsError(
            "pretokenizer 'none' trains on whole documents: pass them to train_raw, or use "
            "beam-bpe train --rounds"
        )
    files = list(map(Path, [paths] if isinstance(paths, (str, os.PathLike)) else paths))
    if not files:
        raise SettingsError("paths is empty: give at least one text file")
    for path in files:
        if path.is_dir():
            raise SettingsError(f"{path} is a directory: list its files, or use beam-bpe train")
        if path.suffix.lower() not in _SUFFIXES:
            raise SettingsError(
                f"{path} is no plain text by its name ({', '.join(_SUFFIXES[1:])}): use beam-bpe "
                "train, or read its texts and pass them to count_pretokens and train"
            )
    return files


def _refuse_special(specials: SpecialTokens, part: bytes, path: Path, base: int) -> None:
    found = specials.find(part)
    if found is not None:
        start, end, _ = found
        raise InputError(
            f"{path} holds the special token {part[start:end].decode()!r} at byte {base + start}: "
            "remove it, or take it as special_text='text' or 'allow'"
        )


def _read_parts(
    path: Path, finder: CutFinder, block_bytes: int, limit_bytes: int
) -> Iterator[bytes]:
    """A file in parts whose pre-tokens are together those of the file."""
    kept, wanted = b"", block_bytes
    try:
        with path.open("rb") as file:
            while block := file.read(wanted):
                kept += block
                cut = _last_cut(kept, finder)
                if cut is not None:
                    yield kept[:cut]
                    kept, wanted = kept[cut:], block_bytes
                elif len(kept) > limit_bytes:
                    raise SettingsError(
                        f"{path} cannot be cut within {limit_bytes} bytes with pre-tokenizer "
                        f"{finder.scheme.name!r}: raise limit_bytes, or divide the file"
                    )
                else:
                    # Twice as much each time, so that searching again takes linear time.
                    wanted = max(block_bytes, min(len(kept), limit_bytes + 1 - len(kept)))
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    if kept:
        yield kept


def _last_cut(data: bytes, finder: CutFinder) -> int | None:
    """A late place that divides no pre-token, whatever follows; None if there is none."""
    if not finder.can_cut:
        return None
    near = _NEAR_BYTES
    while True:
        cut = finder.first_cut(data, max(0, len(data) - near), final=False)
        if cut is not None:
            return cut
        if near >= len(data):
            break
        near *= 16
    return finder.late_safe_boundary(data)


def _move_positions(table: pa.Table, base: int) -> pa.Table:
    if "first" not in table.schema.names or not base:
        return table
    place = table.schema.get_field_index("first")
    moved = pc.add(table["first"], base)
    return table.set_column(place, table.schema.field("first"), moved)
