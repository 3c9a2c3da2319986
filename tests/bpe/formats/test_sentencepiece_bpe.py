"""BPE over characters with byte fallback: the ids of tokenizers and of sentencepiece."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import ModelFileError, Tokenizer
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.formats.sentencepiece_bpe import model_of_pieces
from bpe.formats.sentencepiece_model import Kind, parse_sentencepiece

tokenizers = pytest.importorskip("tokenizers")
sentencepiece = pytest.importorskip("sentencepiece")

SIGN = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SIGN}
PREPEND = {"type": "Prepend", "prepend": SIGN}
LLAMA = {"normalizer": {"type": "Sequence", "normalizers": [PREPEND, REPLACE]}}
GEMMA = {
    "normalizer": REPLACE,
    "pre_tokenizer": {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    },
}


def metaspace(prepend_scheme: str, *, split: bool) -> dict[str, Any]:
    step = {"type": "Metaspace", "replacement": SIGN, "prepend_scheme": prepend_scheme}
    return {"pre_tokenizer": {**step, "split": split}}


FRONTS = [
    *(LLAMA, GEMMA),
    *(
        metaspace(scheme, split=split)
        for scheme in ("always", "first", "never")
        for split in (False, True)
    ),
]
# The last one is no character of the vocabulary, and begins as one that is.
LETTERS = ["a", "b", ">", SIGN, "\u00e9", "\u4e2d", "\U0001f600", "\n", "\u4e2e"]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A tokenizer.json with a random vocabulary, added tokens and one of the fronts."""
    tokens = LETTERS[:-1]
    merges: list[list[str]] = []
    for _ in range(draw(st.integers(0, 12))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if left + right not in tokens and [left, right] not in merges:
            tokens = [*tokens, left + right]
            merges.append([left, right])
    pieces = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), *tokens]
    vocab = {text: i for i, text in enumerate(pieces)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added = [{"id": 1, "content": "<s>", **flags, "special": True}]
    front = draw(st.sampled_from(FRONTS))
    if draw(st.booleans()):
        # Metaspace would see what the second pass leaves: that goes to the library.
        normalized = draw(st.booleans()) and "normalizer" in front
        extra = {"id": len(vocab), "content": "bab", **flags, "normalized": normalized}
        added = added if "bab" in vocab else [*added, extra]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        **front,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": merges,
        },
    }


texts = st.lists(
    st.lists(st.sampled_from([*LETTERS, " ", " ", "bab", "<s>"]), max_size=12).map("".join),
    max_size=4,
)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60)
@given(document=documents(), cases=texts)
def test_random_vocabularies(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], cases: list[str]
) -> None:
    path = tmp_path_factory.mktemp("spm") / "tokenizer.json"
    path.write_text(json.dumps(document))
    ours = Tokenizer.load(path)
    assert isinstance(ours.model, TokenizerModel)
    for special_text in ("text", "allow"):
        theirs = tokenizers.Tokenizer.from_file(str(path))
        theirs.encode_special_tokens = special_text == "text"
        expected = [theirs.encode(case, add_special_tokens=False).ids for case in cases]
        assert ours.encode_batch(cases, special_text=special_text).to_pylist() == expected
        single = [ours.encode(case, special_text=special_text).tolist() for case in cases]
        assert single == expected
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    ours.to_huggingface(path)
    written = tokenizers.Tokenizer.from_file(str(path))
    written.encode_special_tokens = True
    for case in cases:
        assert written.encode(case, add_special_tokens=False).ids == ours.encode(case).tolist()


def train_model(text: str, **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.splitlines()),
        model_writer=model,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.99,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("prefix", [True, False])
def test_a_trained_sentencepiece_model(*, prefix: bool, data_dir: Path, tmp_path: Path) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_text()[:60_000]
    data = train_model(
        text, vocab_size=600, user_defined_symbols=["<|x|>"], add_dummy_prefix=prefix
    )
    path = tmp_path / "tokenizer.model"
    path.write_bytes(data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = Tokenizer.load(path)
    assert ours.model.characters
    cases = ["", " ", "   ", "a<|x|> b", "<|x|>", "\u4e2d \U0001f600 na\u00efve", f"a{SIGN} b"]
    cases += text[60:20_000].split("\n\n")
    assert ours.encode_batch(cases).to_pylist() == theirs.encode(cases)
    assert [ours.encode(case).tolist() for case in cases[:20]] == theirs.encode(cases[:20])
    # Where there is no sign for a blank in it, a text comes back, invalid bytes too.
    for case in (b"  a b", b"\xff\xe4\xbd ", text[:500].encode()):
        assert ours.decode(ours.encode(case)) == case
    assert ours.decode_batch(ours.encode_batch(["a", " b"])).to_pylist() == [b"a", b" b"]
    ours.save(tmp_path / "tok")
    again = Tokenizer.load(tmp_path / "tok")
    again.check_files(tmp_path / "tok")
    assert again == ours
    assert again.encode_batch(cases) == ours.encode_batch(cases)


def test_runs_of_blanks_with_one_score_are_merged_from_the_left(shared_data: Path) -> None:
    path = shared_data / "zoo" / "files" / "mistral-v3-spm" / "tokenizer.model"
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = Tokenizer.load(path)
    assert isinstance(ours.model, TokenizerModel)
    cases = ["x" + " " * size for size in range(80)] + ["[REFERENCE_DOC_1]x[REFERENCE_DOC_19]"]
    lines = (shared_data / "zoo" / "expected" / "mistral-v3-spm.jsonl").read_text().splitlines()
    cases += [json.loads(line)["text"] for line in lines]
    assert ours.encode_batch(cases).to_pylist() == theirs.encode(cases)
    assert ours.encode("a<s>", special_text="allow").tolist() == [*theirs.encode("a"), 1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"byte_fallback": False}, "it has no byte fallback"),
        ({"user_defined_symbols": ["a b"]}, "a symbol of the user's has a blank"),
        ({"normalization_rule_name": "nmt_nfkc"}, "its normalizer has rules"),
        ({"remove_extra_whitespaces": True}, "it takes extra blanks away"),
        ({"treat_whitespace_as_suffix": True}, "blanks end its words"),
    ],
)
def test_what_is_left_to_the_library(options: dict[str, Any], reason: str) -> None:
    model = io.BytesIO()
    settings = {
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat"] * 9),
        model_writer=model,
        model_type="bpe",
        vocab_size=280,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    with pytest.raises(ModelFileError, match=reason):
        model_of_pieces(parse_sentencepiece(model.getvalue(), "x"), "x")


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_damaged_models_are_refused(place: int, junk: bytes) -> None:
    data = b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\2" * 20 + b"\x12\4\x18\2\x20\1"
    damaged = data[:place] + junk + data[place + len(junk) :]
    try:
        model = parse_sentencepiece(damaged, "x.model")
    except ModelFileError as error:
        assert "x.model" in str(error)  # noqa: PT017
    else:
        assert len(model.pieces) <= 20
        assert all(piece.kind is not Kind.BYTE for piece in model.pieces)
