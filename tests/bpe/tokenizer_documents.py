"""Random byte-level tokenizer.json files, for comparisons with the `tokenizers` library.

`documents` is a strategy of hypothesis: whole files with random chains of pre-tokenizers, merges
and added tokens. `texts` makes texts that such files treat differently.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bpe import Tokenizer
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, to_printable

__all__ = ["byte_level", "compare", "document_of", "documents", "sequence", "split", "texts"]

_BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_PATTERNS = (
    *(r"\p{N}", r"\p{N}{1,3}", r"\s+", " ", "[a-c]+", "b", "[^a ]", "a|ab", r"\s+(?!\S)", "$"),
    *(r"[^\r\n\p{L}\p{N}]?\p{L}+", "a*", "(?=b)", "(?i:b)c?", "^ *", r"[a-d1&&[^b\p{N}]]+"),
    r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
)
_LETTERS = "aAbBc'st 12\n.-\t½é\u3042\U0001f600\u0301"
_PARTS = [bytes([byte]) for byte in b"aAbBcst 12.\n'"] + ["é".encode()[:1], "é".encode()[1:]]
_ADDED = ("<x>", "<x", "a b", " <y>", "1", "\n\n", "ab")


def byte_level(*, use_regex: bool = False, add_prefix_space: bool = False) -> dict[str, Any]:
    """The step that ends them all."""
    settings = {"add_prefix_space": add_prefix_space, "use_regex": use_regex}
    return {"type": "ByteLevel", "trim_offsets": True, **settings}


def split(pattern: str, behavior: str = "Isolated", *, invert: bool = False) -> dict[str, Any]:
    """A Split step of a regular expression."""
    settings = {"pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}
    return {"type": "Split", **settings}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """Steps one after another."""
    return {"type": "Sequence", "pretokenizers": list(steps)}


def document_of(
    pre_tokenizer: dict[str, Any],
    merges: list[tuple[bytes, bytes]],
    added_tokens: list[dict[str, Any]] | None = None,
    **model: Any,
) -> dict[str, Any]:
    """A whole file with 256 bytes, these merges, and added tokens after them."""
    tokens = [bytes([byte]) for byte in PRINTABLE_ORDER]
    tokens += dict.fromkeys(left + right for left, right in merges)
    vocab = {to_printable(token): rank for rank, token in enumerate(tokens)}
    pairs = [f"{to_printable(left)} {to_printable(right)}" for left, right in merges]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": len(vocab) + index, **token} for index, token in enumerate(added_tokens or ())
        ],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": byte_level(),
        "model": {"type": "BPE", "vocab": vocab, "merges": pairs, **model},
    }


def _step() -> st.SearchStrategy[dict[str, Any]]:
    behaviors = st.sampled_from(_BEHAVIORS)
    strings = st.sampled_from([" ", ".", "ab", "1", "-"]).map(lambda text: {"String": text})
    splits = st.builds(
        lambda pattern, behavior, invert: {
            **split("", behavior, invert=invert),
            "pattern": pattern,
        },
        st.sampled_from(_PATTERNS).map(lambda text: {"Regex": text}) | strings,
        behaviors,
        st.booleans(),
    )
    others = (
        st.builds(lambda each: {"type": "Digits", "individual_digits": each}, st.booleans()),
        st.builds(lambda each: {"type": "Punctuation", "behavior": each}, behaviors),
        st.just({"type": "WhitespaceSplit"}),
        st.just({"type": "CharDelimiterSplit", "delimiter": "-"}),
        st.just(sequence({"type": "Digits", "individual_digits": True})),
    )
    return splits | st.one_of(others)


@st.composite
def _merges(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    parts, merges = list(_PARTS), list[tuple[bytes, bytes]]()
    for _ in range(draw(st.integers(0, 12))):
        pair = (draw(st.sampled_from(parts)), draw(st.sampled_from(parts)))
        if pair[0] + pair[1] not in parts:
            parts.append(pair[0] + pair[1])
            merges.append(pair)
    return merges


def _added(merges: list[tuple[bytes, bytes]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    made = {left + right for left, right in merges}
    free = [text for text in _ADDED if text.encode() not in made and len(text) > 1]
    flags = {
        name: st.booleans() for name in ("special", "normalized", "lstrip", "rstrip", "single_word")
    }
    token = st.fixed_dictionaries({"content": st.sampled_from(free), **flags})
    return st.lists(token, max_size=3, unique_by=lambda each: str(each["content"]))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Whole files."""
    steps = draw(st.lists(_step(), max_size=4))
    adds_space = not steps and draw(st.booleans())
    steps.append(byte_level(use_regex=draw(st.booleans()), add_prefix_space=adds_space))
    merges = draw(_merges())
    added = draw(_added(merges))
    if adds_space:
        added = [{**token, "normalized": False} for token in added]
    return document_of(
        sequence(*steps) if len(steps) > 1 or draw(st.booleans()) else steps[0],
        merges,
        added,
        ignore_merges=draw(st.booleans()),
    )


def texts() -> st.SearchStrategy[str]:
    """Texts of few different characters, with the texts of added tokens in them."""
    part = st.sampled_from([*_LETTERS, *_ADDED, "  ", "ab", "123"])
    return st.lists(part, max_size=14).map("".join)


def compare(document: dict[str, Any], examples: list[str]) -> Tokenizer:
    """Compare the ids of texts with the library's, and those of what we write of the file."""
    import tokenizers

    content = json.dumps(document)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path, again = Path(folder, "tokenizer.json"), Path(folder, "again.json")
        path.write_text(content)
        ours = Tokenizer.from_huggingface(path)
        ours.to_huggingface(again)
        written = tokenizers.Tokenizer.from_file(str(again))
    theirs = tokenizers.Tokenizer.from_str(content)
    for specials_are_text in (False, True):
        theirs.encode_special_tokens = written.encode_special_tokens = specials_are_text
        policy = "text" if specials_are_text else "allow"
        for text in examples:
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, special_text=policy).tolist() == ids, (text, policy)
            assert written.encode(text, add_special_tokens=False).ids == ids, (text, policy)
            if not ours.is_lossy(policy):
                assert ours.decode(ids).decode() == text
    return ours
