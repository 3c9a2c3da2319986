"""`.tiktoken` rank files: lines of a token in base64, a space, and its rank, which is its id.

Such a file holds no merges, no pre-tokenizer and no special tokens. Merges are recovered by rank;
the caller names the rest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpe.added_tokens import special_added_tokens
from bpe.backend import get_backend
from bpe.errors import ModelFileError, SettingsError, VocabularyError
from bpe.formats.file_access import read_file, write_file
from bpe.schemes import SCHEME_NAMES, get_scheme
from bpe.tokenizer_model import TokenizerModel

__all__ = [
    "PUBLISHED_FILES",
    "PublishedFile",
    "published_file",
    "read_tiktoken_ranks",
    "write_tiktoken_ranks",
]

# A file without surprises; any other is read line by line.
_PLAIN = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]{1,18}\n)*")


@dataclass(frozen=True)
class PublishedFile:
    """What is known of a rank file that a vendor published.

    name: the vendor's name of the encoding; pretokenizer: its scheme here; special_tokens: text
    to id, as published.
    """

    name: str
    pretokenizer: str
    special_tokens: Mapping[str, int]


_GPT3_SPECIALS = {"<|endoftext|>": 50256}

PUBLISHED_FILES: Mapping[str, PublishedFile] = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": PublishedFile(
        "r50k_base", "gpt2", _GPT3_SPECIALS
    ),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": PublishedFile(
        "p50k_base", "gpt2", _GPT3_SPECIALS
    ),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": PublishedFile(
        "cl100k_base",
        "cl100k",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": PublishedFile(
        "o200k_base", "o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
    ),
}
"""Published rank files by the sha256 (hex) of the unpacked file."""


def published_file(path: str | os.PathLike[str]) -> PublishedFile | None:
    """Tell which published file this one is a copy of, if one of `PUBLISHED_FILES`."""
    return PUBLISHED_FILES.get(hashlib.sha256(read_file(path)).hexdigest())


def read_tiktoken_ranks(
    path: str | os.PathLike[str],
    *,
    pretokenizer: str | None,
    special_tokens: Mapping[str, int] | Sequence[str] = (),
) -> TokenizerModel:
    """Model of a rank file.

    pretokenizer: the scheme that the vocabulary was made with; the file does not tell it, and
        None is refused with the name to pass where the file is a published one.
    special_tokens: text to id; or texts alone, which get their published ids in a published
        file, and the next free ids after the largest rank otherwise.

    Raises `ModelFileError` that names the file and line, `SettingsError` for the arguments.
    """
    data = read_file(path)
    published = PUBLISHED_FILES.get(hashlib.sha256(data).hexdigest())
    if pretokenizer is None:
        raise SettingsError(_which_pretokenizer(path, published))
    scheme = get_scheme(pretokenizer)
    ranks = _parse_ranks(data, path)
    if not isinstance(special_tokens, Mapping):
        special_tokens = _number_specials(special_tokens, ranks, published)
    try:
        merges, unmerged = get_backend().recover_merges(ranks)
        return TokenizerModel(
            tokens={rank: token for token, rank in ranks.items()},
            merges=merges,
            scheme=scheme,
            added_tokens=special_added_tokens(special_tokens),
            whole_piece=bool(unmerged),
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def write_tiktoken_ranks(model: TokenizerModel, path: str | os.PathLike[str]) -> None:
    """Write the rank file of a model; special tokens and the scheme are not part of it.

    Raises `VocabularyError` if the file would not mean the same: ids that are not in the order
    of the merges, tokens that are reached in another way, or a normalizer.
    """
    target = Path(path).name
    if model.normalizer is not None:
        raise VocabularyError(
            f"{target} cannot be written: a .tiktoken file has no place for the normalizer "
            f"{model.normalizer}; write tokenizer.json instead"
        )
    # Single bytes that the file lacks ranks for cannot occur: every model has all 256.
    merges, unmerged = get_backend().recover_merges(
        {data: token_id for token_id, data in model.tokens.items()}
    )
    if merges != model.merges:
        raise VocabularyError(
            f"{target} cannot be written: ranks in a .tiktoken file are ids, and the ids of this "
            f"vocabulary are not in the order of its merges {_first_difference(merges, model)}; "
            "write tokenizer.json instead"
        )
    if unmerged and not model.whole_piece:
        raise VocabularyError(
            f"{target} cannot be written: token {unmerged[0]} ({model.tokens[unmerged[0]]!r}) is "
            "made by no merge, and a .tiktoken file would give it to whole pre-tokens; "
            "write tokenizer.json instead"
        )
    lines = [
        b"%s %d\n" % (base64.b64encode(model.tokens[token_id]), token_id)
        for token_id in sorted(model.tokens)
    ]
    write_file(path, b"".join(lines))


def _parse_ranks(data: bytes, path: str | os.PathLike[str]) -> dict[bytes, int]:
    return _parse_plain_ranks(data) or _parse_lines(data, path)


def _parse_plain_ranks(data: bytes) -> dict[bytes, int] | None:
    """Ranks of a file that holds nothing to complain of; None for any other."""
    if not _PLAIN.fullmatch(data):
        return None
    fields = data.split()
    try:
        ranks = dict(
            zip(map(binascii.a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True)
        )
    except binascii.Error:
        return None
    distinct = len(ranks) == len(set(ranks.values())) == len(fields) // 2
    return ranks if distinct else None


def _parse_lines(data: bytes, path: str | os.PathLike[str]) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    lines: dict[int, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        fields = line.split()
        try:
            token = base64.b64decode(fields[0], validate=True)
            rank = int(fields[1])
            well_formed = len(fields) == 2 and bool(token) and rank >= 0
        except (IndexError, ValueError, binascii.Error):
            well_formed = False
        if not well_formed:
            raise ModelFileError(
                f"{path}, line {number}: {line[:60]!r} is not a token in base64, a space and a "
                "rank; is this a .tiktoken file?"
            )
        if token in ranks:
            raise ModelFileError(
                f"{path}, line {number}: token {token!r} is there already, with rank "
                f"{ranks[token]} (line {lines[ranks[token]]})"
            )
        if rank in lines:
            raise ModelFileError(
                f"{path}, line {number}: rank {rank} is there already, in line {lines[rank]}"
            )
        ranks[token] = rank
        lines[rank] = number
    return ranks


def _number_specials(
    texts: Sequence[str], ranks: Mapping[bytes, int], published: PublishedFile | None
) -> dict[str, int]:
    if isinstance(texts, str):
        raise SettingsError(f"special_tokens is the string {texts!r}: give a list, [{texts!r}]")
    known = published.special_tokens if published else {}
    numbered = {text: known[text] for text in texts if text in known}
    next_id = max((*ranks.values(), *known.values()), default=-1) + 1
    for text in texts:
        if text not in numbered:
            numbered[text] = next_id
            next_id += 1
    return numbered


def _which_pretokenizer(path: str | os.PathLike[str], published: PublishedFile | None) -> str:
    if published is None:
        return (
            f"{path}: a .tiktoken file does not say how text is cut into pre-tokens, and with "
            "another scheme than the vocabulary's own the ids come out different; "
            f"pass pretokenizer= (--pretokenizer): one of {', '.join(SCHEME_NAMES)}, or "
            "regex:PATTERN"
        )
    return (
        f"{path}: a .tiktoken file does not say how text is cut into pre-tokens; this one is "
        f"{published.name} (by its sha256), so pass pretokenizer={published.pretokenizer!r} "
        f"(--pretokenizer {published.pretokenizer})"
    )


def _first_difference(merges: Sequence[tuple[int, int, int]], model: TokenizerModel) -> str:
    for rank, (found, wanted) in enumerate(zip(merges, model.merges, strict=False)):
        if found != wanted:
            left, right, new = wanted
            pair = (model.tokens[left], model.tokens[right])
            return f"(merge {rank}, {pair}, has id {new}; by ids that place is token {found[2]})"
    return f"({len(model.merges)} merges, of which ids give {len(merges)})"
