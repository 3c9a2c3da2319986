"""tokenizer.json: what is honoured, what is refused by name, and what is written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpe import ModelFileError, SettingsError, Tokenizer, VocabularyError
from bpe.encoding.added_tokens import AddedToken, special_added_tokens
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, to_printable
from bpe.formats.tokenizer_json import render_tokenizer_json
from bpe.pretokenizing.schemes import get_scheme

BYTES = {to_printable(bytes([byte])): rank for rank, byte in enumerate(PRINTABLE_ORDER)}
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
SPLIT = {
    "type": "Split",
    "pattern": {"Regex": get_scheme("llama3").pattern},
    "behavior": "Isolated",
    "invert": False,
}
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
# Begins every text with the special token.
FRAMING = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<|end|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [258], "tokens": ["<|end|>"]}},
}
DOCUMENT: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [
        {"id": 258, "content": "<|end|>", "special": True, **FLAGS},
        {"id": 259, "content": "<think>", "special": False, **FLAGS},
    ],
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    "post_processor": FRAMING,
    "decoder": BYTE_LEVEL,
    "model": {
        "type": "BPE",
        "unk_token": None,
        "vocab": {**BYTES, "Ġt": 256, "Ġth": 257, "<|end|>": 258},
        "merges": ["Ġ t", "Ġt h"],
    },
}

Change = Callable[[dict[str, Any]], Any]


def write(folder: Path, change: Change | None = None) -> Path:
    document = copy.deepcopy(DOCUMENT)
    if change is not None:
        change(document)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(document))
    return path


def test_the_file_is_read(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_huggingface(write(tmp_path))
    assert tokenizer.scheme.name == "gpt2"
    assert tokenizer.merges == [(b" ", b"t"), (b" t", b"h")]
    assert tokenizer.special_tokens == {"<|end|>": 258}
    think = AddedToken("<think>", 259, special=False)
    assert tokenizer.added_tokens == (AddedToken("<|end|>", 258), think)
    assert not tokenizer.model.whole_piece
    assert tokenizer.encode(" th<think>", special_text="allow").tolist() == [257, 259]


def test_the_post_processor_is_recorded_and_never_applied(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_huggingface(write(tmp_path))
    assert tokenizer.model.post_processor == FRAMING
    assert tokenizer.encode("").tolist() == []


def test_padding_changes_nothing_for_one_text(tmp_path: Path) -> None:
    padding = {"strategy": "BatchLongest", "pad_id": 0, "pad_token": "!"}
    padded = Tokenizer.from_huggingface(write(tmp_path, lambda d: d.update(padding=padding)))
    assert padded.digest == Tokenizer.from_huggingface(write(tmp_path)).digest


def test_truncation_is_refused_with_what_to_change(tmp_path: Path) -> None:
    path = write(tmp_path, lambda document: document.update(truncation={"max_length": 5}))
    with pytest.raises(ModelFileError, match=r'set "truncation" to null .* --max-row-tokens'):
        Tokenizer.from_huggingface(path)


def test_merges_may_be_lists(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["model"]["merges"] = [["Ġ", "t"], ["Ġt", "h"]]

    merges = Tokenizer.from_huggingface(write(tmp_path, change)).merges
    assert merges == [(b" ", b"t"), (b" t", b"h")]


def test_ids_are_the_files_and_rank_is_the_merges_index(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        # Special tokens first, as Hugging Face's trainer numbers them, and merges out of order.
        vocab = {spelling: token_id + 2 for spelling, token_id in BYTES.items()}
        document["model"]["vocab"] = {"<|end|>": 0, "<think>": 1, **vocab, "Ġth": 258, "Ġt": 259}
        document["added_tokens"][0]["id"] = 0
        document["added_tokens"][1]["id"] = 1

    tokenizer = Tokenizer.from_huggingface(write(tmp_path, change))
    assert tokenizer.merges == [(b" ", b"t"), (b" t", b"h")]
    assert tokenizer.encode(" th t").tolist() == [258, 259]
    with pytest.raises(VocabularyError, match="cannot be truncated"):
        tokenizer.truncate(259)
    with pytest.raises(VocabularyError, match="not in the order of its merges"):
        tokenizer.to_tiktoken(tmp_path / "x.tiktoken")


def test_ignore_merges_looks_whole_pieces_up(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["model"]["vocab"]["Ġxyz"] = 300
        document["model"]["ignore_merges"] = True

    tokenizer = Tokenizer.from_huggingface(write(tmp_path, change))
    assert tokenizer.model.whole_piece
    assert tokenizer.encode(" xyz").tolist() == [300]
    assert len(tokenizer.encode(" xyzz")) == 5


@pytest.mark.parametrize(
    "normalizer",
    [{"type": "NFC"}, {"type": "Sequence", "normalizers": [{"type": "NFC"}]}],
)
def test_nfc_is_honoured_and_lossy(normalizer: dict[str, Any], tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = write(tmp_path, lambda document: document.update(normalizer=normalizer))
    ours = Tokenizer.from_huggingface(path)
    assert ours.normalizer == "NFC"
    assert ours.lossy
    theirs = tokenizers.Tokenizer.from_file(str(path))
    for text in ("e\u0301 th", "\u212b", "a\u0323\u0307", "가"):
        assert ours.encode(text).tolist() == theirs.encode(text, add_special_tokens=False).ids
    ours.to_huggingface(tmp_path / "again.json")
    assert Tokenizer.from_huggingface(tmp_path / "again.json").digest == ours.digest


def test_an_empty_sequence_of_normalizers_is_none(tmp_path: Path) -> None:
    empty = {"type": "Sequence", "normalizers": []}
    path = write(tmp_path, lambda document: document.update(normalizer=empty))
    assert Tokenizer.from_huggingface(path).normalizer is None


@pytest.mark.parametrize(
    ("pre_tokenizer", "scheme"),
    [
        ({**BYTE_LEVEL, "use_regex": True}, "gpt2"),
        (BYTE_LEVEL, "none"),
        ({"type": "Sequence", "pretokenizers": [SPLIT, BYTE_LEVEL]}, "llama3"),
        (
            {
                "type": "Sequence",
                "pretokenizers": [{**SPLIT, "behavior": "Removed", "invert": True}, BYTE_LEVEL],
            },
            "llama3",
        ),
    ],
)
def test_pre_tokenizers_become_schemes(
    pre_tokenizer: dict[str, Any], scheme: str, tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = write(tmp_path, lambda document: document.update(pre_tokenizer=pre_tokenizer))
    ours = Tokenizer.from_huggingface(path)
    assert ours.scheme.name == scheme
    theirs = tokenizers.Tokenizer.from_file(str(path))
    for text in ("x  th 1234's\n\n the", " th th"):
        assert ours.encode(text).tolist() == theirs.encode(text, add_special_tokens=False).ids


def with_split(**changes: Any) -> Change:
    split = {**SPLIT, **changes}
    steps = {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL]}
    return lambda document: document.update(pre_tokenizer=steps)


def test_an_unknown_pattern_is_read_as_a_users_and_said_so(tmp_path: Path) -> None:
    path = write(tmp_path, with_split(pattern={"Regex": r"\p{L}+|\s(?<!x)"}))
    with pytest.warns(UserWarning, match=r"tokenizer\.json: the pattern .* no named scheme's"):
        tokenizer = Tokenizer.from_huggingface(path)
    assert tokenizer.scheme.name == r"regex:\p{L}+|\s(?<!x)"


def in_model(**changes: Any) -> Change:
    return lambda document: document["model"].update(changes)


def in_added(**changes: Any) -> Change:
    return lambda document: document["added_tokens"][0].update(changes)


def at_top(**changes: Any) -> Change:
    return lambda document: document.update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_model(type="WordPiece"), r'model\.type is "WordPiece", which cannot be honoured'),
        (in_model(dropout=0.1), r"model\.dropout is 0\.1"),
        (in_model(unk_token="<unk>"), r'model\.unk_token is "<unk>"'),
        (in_model(fuse_unk=True), r"model\.fuse_unk is true"),
        (in_model(byte_fallback=True), r"model\.byte_fallback is true"),
        (in_model(continuing_subword_prefix="##"), r'model\.continuing_subword_prefix is "##"'),
        (in_model(end_of_word_suffix="</w>"), r'model\.end_of_word_suffix is "</w>"'),
        (at_top(truncation={"max_length": 5}), r'truncation is \{"max_length": 5\}'),
        (at_top(normalizer={"type": "NFKC"}), r'normalizer is \{"type": "NFKC"\}'),
        (
            at_top(
                normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]}
            ),
            r'normalizer is \{"type": "Strip"\}',
        ),
        (at_top(decoder={"type": "Metaspace"}), r'decoder is \{"type": "Metaspace"\}'),
        (at_top(pre_tokenizer=None), r"pre_tokenizer is null"),
        (at_top(pre_tokenizer={"type": "Whitespace"}), r'pre_tokenizer is \{"type": "Whitesp'),
        (
            at_top(
                pre_tokenizer={
                    "type": "Sequence",
                    "pretokenizers": [SPLIT, {**BYTE_LEVEL, "add_prefix_space": True}],
                }
            ),
            r"ByteLevel\.add_prefix_space after other steps is true",
        ),
        (
            at_top(
                pre_tokenizer={
                    "type": "Sequence",
                    "pretokenizers": [{"type": "Whitespace"}, BYTE_LEVEL],
                }
            ),
            r'pre_tokenizer is \{"type": "Whitespace"\}',
        ),
        (
            at_top(
                pre_tokenizer={
                    "type": "Sequence",
                    "pretokenizers": [BYTE_LEVEL, {"type": "Digits"}],
                }
            ),
            r'pre_tokenizer is \{"type": "Sequence", .*"Digits"',
        ),
        (with_split(behavior="Dropped"), r'Split\.behavior is "Dropped"'),
        (with_split(pattern={"String": ""}), r'Split\.pattern is \{"String": ""\}'),
        (with_split(pattern={"Regex": r"\w"}), r"Split\.pattern \(\\w: not an escape that both"),
        (with_split(pattern={"Regex": r"\p{N}{1,3}+"}), r"Split\.pattern \(\{1,3\}\+: Oniguruma"),
        (with_split(pattern={"Regex": "(a"}), r"tokenizer\.json: Split\.pattern: .*not compile"),
        (in_added(id=7), r"added_tokens\[0\] \('<\|end\|>'\) has id 7, model\.vocab says 258"),
        (in_added(content=None), r"added_tokens\[0\] is \{.*needs a content and an id"),
        (in_model(vocab=None), r"'vocab' is missing, where a dict is expected"),
        (in_model(merges={}), r"'merges' is a dict, where a list is expected"),
        (at_top(model=None), r"'model' is missing"),
        (in_model(merges=["Ġ t", "Ġ"]), r"model\.merges\[1\] is 'Ġ', not a pair"),
        (in_model(merges=[["Ġ", "t", "h"]]), r"model\.merges\[0\] is .* not a pair"),
        (in_model(merges=["x y"]), r"model\.merges\[0\]: merge 'x' 'y': 'xy' is not in"),
        (in_model(merges=["Ġ t", "Ġ t"]), r"model\.merges\[1\]: .*is there already .*merges\[0\]"),
        (in_model(vocab={"a": 0}, merges=[]), r"lacks 255 of the 256 single bytes"),
        (
            lambda document: document["model"]["vocab"].update({"a b": 400}),
            r"entry 'a b' \(id 400\) is not spelled with GPT-2's printable characters",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    change: Change, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        Tokenizer.from_huggingface(write(tmp_path, change))
    assert "tokenizer.json" in str(caught.value)


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_an_added_token_that_ordinary_text_can_be_is_both(
    ignore_merges: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    tokenizers = pytest.importorskip("tokenizers")

    def change(document: dict[str, Any]) -> None:
        added = {"<think>": 259, "th": 260, "the": 261, "Ã©Ã©": 262, "xyz": 263}
        document["model"]["vocab"] |= added
        document["model"]["merges"] += ["t h", "th e"]
        document["model"]["ignore_merges"] = ignore_merges
        document["added_tokens"] += [
            {"id": token_id, "content": content, "special": True, **FLAGS}
            for content, token_id in (("the", 261), ("éé", 264), ("xyz", 263), ("a", BYTES["a"]))
        ]

    path = write(tmp_path, change)
    ours = Tokenizer.from_huggingface(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.encode_special_tokens = True
    for text in ("the a éé xyz", "thethe", "xyz", "xyzxyz", "éé"):
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).tolist() == expected
        assert ours.decode(expected) == text.encode()
    assert (263 in ours.model.tokens) == ignore_merges
    ours.to_huggingface(tmp_path / "again.json")
    assert Tokenizer.from_huggingface(tmp_path / "again.json").model == ours.model
    ours.save(tmp_path / "model")
    assert Tokenizer.load(tmp_path / "model").model == ours.model


def test_flags_and_the_post_processor_are_written_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    again = tmp_path / "again.json"
    Tokenizer.from_huggingface(path).to_huggingface(again)
    before, after = json.loads(path.read_text()), json.loads(again.read_text())
    assert after["added_tokens"] == before["added_tokens"]
    assert after["post_processor"] == FRAMING
    assert Tokenizer.from_huggingface(again).model == Tokenizer.from_huggingface(path).model


# ---- writing -------------------------------------------------------------------------------


def make(scheme: str = "cl100k") -> Tokenizer:
    return Tokenizer.from_merges(
        [(b" ", b"t"), (b" t", b"h")], pretokenizer=scheme, special_tokens=["<|end|>"]
    )


def test_the_file_is_split_and_byte_level() -> None:
    document = json.loads(render_tokenizer_json(make("o200k").model))
    split, byte_level = document["pre_tokenizer"]["pretokenizers"]
    assert split["behavior"] == "Isolated"
    assert split["pattern"] == {"Regex": get_scheme("o200k").pattern}
    assert (byte_level["add_prefix_space"], byte_level["use_regex"]) == (False, False)
    assert document["model"]["merges"] == ["Ġ t", "Ġt h"]
    assert document["added_tokens"][0]["id"] == 258


def test_gpt2_is_written_as_byte_level_with_its_own_pattern(tmp_path: Path) -> None:
    document = json.loads(render_tokenizer_json(make("gpt2").model))
    assert document["pre_tokenizer"] == {**BYTE_LEVEL, "trim_offsets": True, "use_regex": True}
    make("gpt2").to_huggingface(tmp_path / "tokenizer.json")
    assert Tokenizer.from_huggingface(tmp_path / "tokenizer.json").digest == make("gpt2").digest


def test_cl100k_is_written_as_published_where_no_token_tells_them_apart(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    newline_space = Tokenizer.from_merges([(b"\n", b" ")], pretokenizer="cl100k")
    texts = ("a\n ", "\n  \n ", " \r\n\t", "th\n\n  th", "\n \u00a0", "it'S 1234\n ")
    for tokenizer, behavior in ((make(), "Removed"), (newline_space, "Isolated")):
        path = tmp_path / "tokenizer.json"
        tokenizer.to_huggingface(path)
        split = json.loads(path.read_text())["pre_tokenizer"]["pretokenizers"][0]
        assert split["behavior"] == behavior
        theirs = tokenizers.Tokenizer.from_file(str(path))
        for text in texts:
            assert theirs.encode(text).ids == tokenizer.encode(text).tolist()
        assert Tokenizer.from_huggingface(path).digest == tokenizer.digest
    # The published form keeps the newline from the space at the end, as Llama 3 does.
    document = json.loads(render_tokenizer_json(newline_space.model))
    document["pre_tokenizer"] = json.loads(render_tokenizer_json(make().model))["pre_tokenizer"]
    path.write_text(json.dumps(document))
    assert Tokenizer.from_huggingface(path).scheme.name == "llama3"
    assert Tokenizer.from_huggingface(path).encode("a\n ").tolist() == [64, 198, 220]
    assert newline_space.encode("a\n ").tolist() == [64, 256]


def test_raw_text_is_written_without_a_split() -> None:
    document = json.loads(render_tokenizer_json(make("none").model))
    assert document["pre_tokenizer"]["type"] == "ByteLevel"


def test_a_users_pattern_is_written_if_both_libraries_read_it_alike(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = make(r"regex:\d| ?\p{L}+")
    tokenizer.to_huggingface(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("the th 12 th!! th", "  th"):
        assert theirs.encode(text).ids == tokenizer.encode(text).tolist()
    with pytest.raises(SettingsError, match=r"\{1,3\}\+: Oniguruma repeats .* without it"):
        make(r"regex:\d{1,3}+").to_huggingface(tmp_path / "refused.json")
    assert not (tmp_path / "refused.json").exists()


def test_whole_piece_tokens_are_written_as_ignore_merges(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = replace(make().model, added_tokens=(), tokens={**make().model.tokens, 258: b" xyz"})
    for whole_piece in (True, False):
        tokenizer = Tokenizer(replace(model, whole_piece=whole_piece))
        tokenizer.to_huggingface(tmp_path / "tokenizer.json")
        theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        assert theirs.encode(" xyz th").ids == tokenizer.encode(" xyz th").tolist()
        assert Tokenizer.from_huggingface(tmp_path / "tokenizer.json").digest == tokenizer.digest


def test_ids_that_would_reach_ordinary_text_are_refused(tmp_path: Path) -> None:
    # With ignore_merges, an entry of the vocabulary is given to any pre-token spelled like it.
    model = replace(
        make("none").model, added_tokens=special_added_tokens({"<|end|>": 500}), whole_piece=True
    )
    with pytest.raises(VocabularyError, match=r"x\.json cannot be written: special token '<\|end"):
        Tokenizer(model).to_huggingface(tmp_path / "x.json")
    Tokenizer(replace(model, scheme=get_scheme("gpt2"))).to_huggingface(tmp_path / "x.json")


def test_added_tokens_are_numbered_as_the_library_numbers_them(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")

    def add(document: dict[str, Any]) -> None:
        flags = {"special": False, **FLAGS}
        document["added_tokens"] = [
            {"id": 258, "content": "<|end|>", "special": True, **FLAGS},
            {"id": 300, "content": "<a>", **flags},
            {"id": 256, "content": "\u0120t", **flags},
            {"id": 260, "content": "<b>", **flags},
        ]

    path = write(tmp_path, add)
    with pytest.warns(UserWarning, match=r"added_tokens\[1\] \('<a>'\) has id 300 .* 259 here"):
        tokenizer = Tokenizer.from_huggingface(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    text = "x<b><a> t"
    assert tokenizer.encode(text).tolist()[1:3] == [260, 259]
    assert theirs.encode(text, add_special_tokens=False).ids == tokenizer.encode(text).tolist()
