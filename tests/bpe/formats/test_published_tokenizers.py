"""Published vocabularies give the ids of their own libraries, and survive export to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe import Tokenizer
from bpe.encoding.tokenizer_model import TokenizerModel

PUBLISHED_NAMES = ("gpt2", "cl100k_base", "o200k_base")

SCHEMES = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "none")
MADE = [f"made_{scheme}" for scheme in SCHEMES]


@pytest.mark.parametrize("name", PUBLISHED_NAMES)
@pytest.mark.usefixtures("backend")
def test_ids_of_nasty_inputs_are_tiktokens_and_all_come_back(
    name: str, published_models: dict[str, TokenizerModel], nasty_inputs: list[Any]
) -> None:
    tokenizer = Tokenizer(published_models[name])
    for case in nasty_inputs:
        ids = tokenizer.encode(case.data)
        if case.is_valid:
            assert ids.tolist() == case.ids[name], case.name
        assert tokenizer.decode(ids) == case.data, case.name


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("gpt2", [187, 270, 338, 1105, 2682]),
        ("cl100k_base", [187, 275, 596, 220, 4513, 19]),
        ("o200k_base", [187, 64190, 220, 7633, 19]),
    ],
)
@pytest.mark.usefixtures("backend")
def test_an_invalid_byte_is_a_character_of_class_other(
    name: str, ids: list[int], published_models: dict[str, TokenizerModel]
) -> None:
    assert Tokenizer(published_models[name]).encode(b"\xffit's 1234").tolist() == ids


@pytest.mark.usefixtures("backend")
def test_facts_about_gpt2(published_models: dict[str, TokenizerModel]) -> None:
    gpt2 = Tokenizer(published_models["gpt2"])
    assert gpt2.vocab_size == 50257
    assert gpt2.max_id == 50256
    assert gpt2.special_tokens == {"<|endoftext|>": 50256}
    first = [left + right for left, right in gpt2.merges[:8]]
    assert first == [b" t", b" a", b"he", b"in", b"re", b"on", b" the", b"er"]
    for text, ids in {
        " strawberry": [41236],
        "strawberry": [301, 1831, 8396],
        " 1234567": [17031, 2231, 3134],
        " SolidGoldMagikarp": [43453],
        " petertodd": [37444],
        " davidjl": [23282],
    }.items():
        assert gpt2.encode(text).tolist() == ids, text


@pytest.mark.parametrize(("name", "tokens"), [("gpt2", 21), ("cl100k_base", 11), ("o200k_base", 3)])
@pytest.mark.usefixtures("backend")
def test_tamil_has_the_published_number_of_tokens(
    name: str, tokens: int, published_models: dict[str, TokenizerModel]
) -> None:
    assert len(Tokenizer(published_models[name]).encode("வணக்கம்")) == tokens


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PUBLISHED_NAMES)
@pytest.mark.usefixtures("backend")
def test_special_tokens_are_tiktokens_when_allowed(
    name: str, published_models: dict[str, TokenizerModel]
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    model = published_models[name]
    theirs = tiktoken.Encoding(
        name,
        pat_str=model.scheme.pattern,
        mergeable_ranks={data: token_id for token_id, data in model.tokens.items()},
        special_tokens=model.special_tokens,
    )
    text = "one <|endoftext|>two\n <|endoftext|><|endoftext|> \n<|endoftext"
    ours = Tokenizer(model).encode(text, special_text="allow")
    assert ours.tolist() == theirs.encode(text, allowed_special="all")
    assert Tokenizer(model).encode(text).tolist() == theirs.encode_ordinary(text)


@pytest.fixture(scope="module")
def exportable(published_models: dict[str, TokenizerModel]) -> dict[str, Tokenizer]:
    """The published ones, and a vocabulary of our own numbering for every scheme."""
    merges = Tokenizer(published_models["gpt2"]).merges[:4000]
    made = {
        f"made_{scheme}": Tokenizer.from_merges(
            merges, pretokenizer=scheme, special_tokens=["<|end|>", "<pad>"]
        )
        for scheme in SCHEMES
    }
    return made | {name: Tokenizer(model) for name, model in published_models.items()}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [*MADE, *PUBLISHED_NAMES])
def test_exported_tokenizer_json_gives_the_same_ids(
    name: str, exportable: dict[str, Tokenizer], nasty_inputs: list[Any], tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    ours = exportable[name]
    path = tmp_path / "tokenizer.json"
    ours.to_huggingface(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.encode_special_tokens = True
    assert theirs.get_vocab_size() == ours.vocab_size
    texts = [case.data.decode() for case in nasty_inputs if case.is_valid]
    for text in [*texts, "it'ſ IT'ſ 'ſt ﬆ's ß's", "a<|end|>b <|endoftext|>"]:
        assert theirs.encode(text).ids == ours.encode(text).tolist(), text
    for text, token_id in ours.special_tokens.items():
        assert theirs.token_to_id(text) == token_id
    assert Tokenizer.from_huggingface(path).digest == ours.digest


# Raw text has no pattern that tiktoken could be given.
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [*MADE[:-1], "gpt2", "cl100k_base"])
def test_exported_rank_file_gives_the_same_ids(
    name: str, exportable: dict[str, Tokenizer], nasty_inputs: list[Any], tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    from tiktoken import Encoding
    from tiktoken.load import load_tiktoken_bpe

    ours = exportable[name]
    path = tmp_path / f"{name}.tiktoken"
    ours.to_tiktoken(path)
    theirs = Encoding(
        name,
        pat_str=ours.scheme.pattern,
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens=ours.special_tokens,
    )
    for case in nasty_inputs:
        if case.is_valid:
            text = case.data.decode()
            assert theirs.encode_ordinary(text) == ours.encode(text).tolist(), case.name
    again = Tokenizer.from_tiktoken(
        path, pretokenizer=ours.scheme.name, special_tokens=ours.special_tokens
    )
    assert again.digest == ours.digest


def test_published_rank_files_have_a_merge_for_every_token(
    published_models: dict[str, TokenizerModel],
) -> None:
    for name, merges in {"cl100k_base": 100_000, "o200k_base": 199_742}.items():
        model = published_models[name]
        assert len(model.merges) == merges
        assert not model.whole_piece
        assert model.has_merge_order
