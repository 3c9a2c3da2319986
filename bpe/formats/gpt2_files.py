"""GPT-2's pair of files: vocab.json (spelling to id) and merges.txt (one merge a line, by rank).

Tokens are spelled with printable characters (`printable_bytes`). The pair names neither the
pre-tokenizer nor which entries are special tokens; `read_gpt2_files` says how they are found.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.printable_bytes import from_printable, from_printables, to_printable
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.encoding.vocabulary_checks import MAX_ID
from bpe.errors import ModelFileError, VocabularyError
from bpe.formats.added_token_files import read_added_token_files
from bpe.formats.file_access import BOM, parse_json_object, read_text, shown, write_file
from bpe.pretokenizing.schemes import Scheme

__all__ = [
    "SpelledMerges",
    "build_model",
    "find_gpt2_files",
    "is_whole_pretoken",
    "parse_merge_lines",
    "parse_vocab",
    "read_gpt2_files",
    "render_merges",
    "render_vocab",
    "write_gpt2_files",
]

_VERSION_PREFIX = "#version:"
_NAME_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class SpelledMerges:
    """Merges as a file spells them.

    lefts, rights: by rank. place_of: where the merge of a rank stands, `merges.txt, line 7`;
    names are made for the merges that errors are about, not for all.
    """

    lefts: Sequence[str]
    rights: Sequence[str]
    place_of: Callable[[int], str]


def find_gpt2_files(directory: PathLike) -> tuple[Path, Path] | None:
    """Find the vocabulary and merges files in a folder, under either of their two usual names."""
    for vocab_name, merges_name in _NAME_PAIRS:
        vocab, merges = Path(directory) / vocab_name, Path(directory) / merges_name
        if vocab.is_file() and merges.is_file():
            return vocab, merges
    return None


def read_gpt2_files(
    vocab_json: PathLike,
    merges_txt: PathLike,
    *,
    scheme: Scheme,
    special_tokens: Collection[str] | None = None,
) -> TokenizerModel:
    """Model of a pair of files.

    special_tokens: the entries of vocab.json that are special tokens. None: every entry that is
        neither a single byte nor made by a merge and is written in angle or square brackets
        (`<|endoftext|>`, `[PAD]`). Any other entry that no merge makes stays an ordinary token,
        which decodes but is never encoded to.
    added_tokens.json beside vocab.json, if there is one, adds its tokens (see
        `bpe.formats.added_token_files`); a text that is in special_tokens too is special.

    Raises `ModelFileError` that names the file, the line or entry, and what is wrong with it.
    """
    vocab = parse_vocab(parse_json_object(read_text(vocab_json), vocab_json), vocab_json)
    merges = parse_merge_lines(read_text(merges_txt), merges_txt)
    added = read_added_token_files(Path(vocab_json).parent)
    if special_tokens is None:
        special_tokens = [text for text in _bracketed_entries(vocab, merges) if text not in added]
    for text in special_tokens:
        if text not in vocab and text not in added:
            raise ModelFileError(f"{vocab_json} has no entry for the special token {text!r}")
    added |= {
        text: AddedToken(text, added[text].id if text in added else vocab[text])
        for text in special_tokens
    }
    specials = list(added.values())
    try:
        return build_model(
            vocab, merges, specials, scheme=scheme, vocab_name=vocab_json, merges_name=merges_txt
        )
    except VocabularyError as error:
        raise ModelFileError(f"{vocab_json}: {error}") from error


def parse_vocab(entries: Mapping[str, Any], path: PathLike) -> dict[str, int]:
    """Spelling to id, checked: ids are integers from 0, none twice."""
    ids = set(entries.values()) if set(map(type, entries.values())) == {int} else set()
    if len(ids) == len(entries) and 0 <= min(ids, default=0) <= max(ids, default=0) <= MAX_ID:
        return dict(entries)
    spellings: dict[int, str] = {}
    for spelling, token_id in entries.items():
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            raise ModelFileError(
                f"{path}: entry {shown(spelling)} has id {shown(token_id)}; an id is an integer "
                f"from 0 to {MAX_ID}: number the tokens anew"
            )
        if spellings.setdefault(token_id, spelling) != spelling:
            raise ModelFileError(
                f"{path}: entries {spellings[token_id]!r} and {spelling!r} both have id {token_id}"
            )
    return dict(entries)


def parse_merge_lines(text: str, path: PathLike) -> SpelledMerges:
    """Read merges by rank.

    Line 1 may be a `#version:` line. Blank lines are allowed at the end alone.
    """
    text = text.removeprefix(BOM)
    lines = text.rstrip("\n").split("\n") if text.strip("\n") else []
    first = 2 if lines and lines[0].startswith(_VERSION_PREFIX) else 1
    del lines[: first - 1]
    merges = [line.removesuffix("\r") for line in lines] if "\r" in text else lines

    def place_of(rank: int) -> str:
        return f"{path}, line {first + rank}"

    parts = " ".join(merges).split(" ") if merges else []
    if not (all(parts) and all(merge.count(" ") == 1 for merge in merges)):
        rank = next(rank for rank, merge in enumerate(merges) if not _is_pair(merge))
        raise ModelFileError(
            f"{place_of(rank)}: {lines[rank]!r} is no merge; write two tokens and one space "
            "between them"
        )
    return SpelledMerges(parts[::2], parts[1::2], place_of)


def _is_pair(merge: str) -> bool:
    parts = merge.split(" ")
    return len(parts) == 2 and all(parts)


def build_model(
    vocab: Mapping[str, int],
    merges: SpelledMerges,
    added_tokens: Collection[AddedToken],
    *,
    scheme: Scheme,
    vocab_name: PathLike,
    merges_name: PathLike,
    ordinary: Collection[str] | None = None,
    **options: Any,
) -> TokenizerModel:
    """Model of a spelled vocabulary.

    vocab may hold the added tokens or not. ordinary: texts of those that are ordinary tokens too;
    None for those whose ids ordinary text can get: as a single byte, by a merge, or as a whole
    pre-token. options: further fields of `TokenizerModel`.
    """
    alone = {token.text for token in added_tokens}
    if ordinary is None:
        alone.difference_update(merges.lefts, merges.rights)
        alone.difference_update(map(operator.add, merges.lefts, merges.rights))
        alone = {text for text in alone if len(from_printable(text) or b"") != 1}
        if options.get("whole_piece"):
            alone = {text for text in alone if not is_whole_pretoken(text, scheme)}
    else:
        alone.difference_update(ordinary)
    ids = {spelling: token_id for spelling, token_id in vocab.items() if spelling not in alone}
    tokens: dict[int, bytes] = {}
    for (spelling, token_id), data in zip(ids.items(), from_printables(ids), strict=True):
        if data is None:
            raise ModelFileError(
                f"{vocab_name}: entry {spelling!r} (id {token_id}) is not spelled with GPT-2's "
                "printable characters, so it is no byte-level token; if it is a special token, "
                "name it among the special tokens"
            )
        tokens[token_id] = data
    try:
        get_id = ids.__getitem__
        made = map(get_id, map(operator.add, merges.lefts, merges.rights))
        triples = list(
            zip(map(get_id, merges.lefts), map(get_id, merges.rights), made, strict=True)
        )
        return TokenizerModel(
            tokens=tokens,
            merges=triples,
            scheme=scheme,
            added_tokens=tuple(added_tokens),
            **options,
        )
    except (KeyError, VocabularyError):
        # What is wrong with a merge is said with its place in the file.
        _name_bad_merge(merges, ids, vocab, vocab_name, merges_name)
        raise


def is_whole_pretoken(spelling: str, scheme: Scheme) -> bool:
    """Whether a pre-token of some valid text is spelled like this."""
    data = from_printable(spelling)
    try:
        is_text = data is not None and bool(data.decode())
    except UnicodeDecodeError:
        return False
    return is_text and (not scheme.is_named or scheme.split(data or b"") == [data])


def _name_bad_merge(
    merges: SpelledMerges,
    ids: Mapping[str, int],
    vocab: Mapping[str, int],
    vocab_name: PathLike,
    merges_name: PathLike,
) -> None:
    """Raise for the first merge of what are no ordinary tokens, or that is there already."""
    ranks: dict[tuple[str, str], int] = {}
    for rank, (left, right) in enumerate(zip(merges.lefts, merges.rights, strict=True)):
        for spelling in (left, right, left + right):
            if spelling not in ids:
                kind = "a special token" if spelling in vocab else "not in the vocabulary"
                raise ModelFileError(
                    f"{merges.place_of(rank)}: merge {left!r} {right!r}: {spelling!r} is {kind} of "
                    f"{vocab_name}; do {vocab_name} and {merges_name} belong together?"
                )
        known = ranks.setdefault((left, right), rank)
        if known != rank:
            raise ModelFileError(
                f"{merges.place_of(rank)}: merge {left!r} {right!r} is there already "
                f"({merges.place_of(known)}); keep the first"
            )


def render_vocab(model: TokenizerModel) -> str:
    """vocab.json of a model: all tokens and special tokens, by id."""
    entries = {token_id: to_printable(data) for token_id, data in model.tokens.items()}
    entries |= {token.id: token.text for token in model.added_tokens}
    spelled = {entries[token_id]: token_id for token_id in sorted(entries)}
    return json.dumps(spelled, ensure_ascii=False, separators=(",", ":")) + "\n"


def render_merges(model: TokenizerModel) -> str:
    """merges.txt of a model."""
    spelled = {token_id: to_printable(data) for token_id, data in model.tokens.items()}
    lines = [f"{spelled[left]} {spelled[right]}\n" for left, right, _ in model.merges]
    return f"{_VERSION_PREFIX} 0.2\n" + "".join(lines)


def write_gpt2_files(model: TokenizerModel, vocab_json: PathLike, merges_txt: PathLike) -> None:
    """Write the pair; it does not hold the scheme, nor what only whole pre-tokens become."""
    write_file(vocab_json, render_vocab(model).encode())
    write_file(merges_txt, render_merges(model).encode())


def _bracketed_entries(vocab: Mapping[str, int], merges: SpelledMerges) -> list[str]:
    made = set(map(operator.add, merges.lefts, merges.rights))
    brackets = (("<", ">"), ("[", "]"))
    return [
        spelling
        for spelling in vocab
        if len(spelling) > 2 and (spelling[0], spelling[-1]) in brackets and spelling not in made
    ]
