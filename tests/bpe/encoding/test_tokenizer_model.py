"""What a tokenizer is made of: its digest, prefixes of its merges, contradictions, pickles."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpe import InputError, ModelFileError, SettingsError, Tokenizer, VocabularyError
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.printable_bytes import PRINTABLE_ORDER
from bpe.encoding.tokenizer_model import TokenizerModel
from tests.bpe.small_tokenizer import FIRST_SPECIAL, MERGES, SPECIAL_TOKENS, make, make_nfc

# ---- token ids, digest, truncation ---------------------------------------------------------


def test_token_id_finds_names_and_ids() -> None:
    tokenizer = make()
    assert tokenizer.token_id("<pad>") == FIRST_SPECIAL + 2
    assert tokenizer.token_id(256) == tokenizer.token_id("256") == 256
    assert tokenizer.token_id(" ab") == 257
    with pytest.raises(InputError, match=r"'<eos>' is no token .*special tokens: '<\|end\|>', "):
        tokenizer.token_id("<eos>")
    with pytest.raises(InputError, match="id 9999 is no id"):
        tokenizer.token_id("9999")


def test_the_digest_is_of_the_content_alone() -> None:
    same = Tokenizer.from_merges(
        MERGES, pretokenizer="gpt2", special_tokens=SPECIAL_TOKENS, training={"other": 1}
    )
    assert same.digest == make().digest
    # Stored in model directories and manifests, so it must not change by accident.
    assert make().digest == "42fce686fc0c1218ed8c3738269869f3788b5f95fb8d171c4bc58735f13dcca9"
    others = [
        make("cl100k"),
        make(tie_order="id"),
        Tokenizer.from_merges(MERGES[:-1], pretokenizer="gpt2", special_tokens=SPECIAL_TOKENS),
        Tokenizer.from_merges(MERGES, pretokenizer="gpt2", special_tokens=SPECIAL_TOKENS[::-1]),
        Tokenizer(replace(make().model, whole_piece=True)),
    ]
    assert len({other.digest for other in [make(), *others]}) == 1 + len(others)
    assert repr(make()).startswith("Tokenizer(scheme='gpt2', vocab_size=267, digest='")


def test_the_digest_is_made_as_documented() -> None:
    content = {
        "merges": [[64, 65, 256]],
        "normalizer": None,
        "scheme": "gpt2",
        "special_tokens": [[257, "<é>"]],
        "tokens": [[rank, f"{byte:02x}"] for rank, byte in enumerate(PRINTABLE_ORDER)]
        + [[256, "6162"]],
        "unicode_version": "16.0.0",
        "whole_piece": False,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"beam-bpe tokenizer content 1\n{text}".encode()).hexdigest()
    tokenizer = Tokenizer.from_merges(MERGES[:1], pretokenizer="gpt2", special_tokens=["<é>"])
    assert tokenizer.digest == digest


def test_flags_are_part_of_the_digest_as_documented() -> None:
    plain = Tokenizer.from_merges(MERGES[:1], pretokenizer="gpt2", special_tokens=["<é>"]).model
    digests = {plain.digest}
    for position, flag in enumerate(
        ("special", "normalized", "lstrip", "rstrip", "single_word"), start=2
    ):
        row: list[Any] = [257, "<é>", True, False, False, False, False]
        row[position] = not row[position]
        token = AddedToken("<é>", 257, **{flag: row[position]})
        model = replace(plain, added_tokens=[token])
        content = {
            "added_tokens": [row],
            "merges": [[64, 65, 256]],
            "normalizer": None,
            "scheme": "gpt2",
            "tokens": [[rank, f"{byte:02x}"] for rank, byte in enumerate(PRINTABLE_ORDER)]
            + [[256, "6162"]],
            "unicode_version": "16.0.0",
            "whole_piece": False,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert model.digest == sha256_of(f"beam-bpe tokenizer content 2\n{text}")
        assert TokenizerModel.from_bytes(model.to_bytes()) == model
        digests.add(model.digest)
    assert len(digests) == 6


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_truncation_keeps_the_first_merges_and_renumbers_special_tokens() -> None:
    small = make().truncate(256 + 2 + 3)
    expected = Tokenizer.from_merges(MERGES[:2], pretokenizer="gpt2", special_tokens=SPECIAL_TOKENS)
    assert small.merges == MERGES[:2]
    assert small.digest == expected.digest
    assert small.training == make().training
    assert make().truncate(make().vocab_size).digest == make().digest


def test_truncation_rewrites_the_training_record() -> None:
    record = {
        "vocab_size": 300,
        "min_frequency": 2,
        "stop_reason": "exhausted",
        "last_merge_count": 5,
    }
    whole = Tokenizer(replace(make().model, training=record))
    assert whole.truncate(261).training == {
        "vocab_size": 261,
        "min_frequency": 2,
        "stop_reason": "vocab_size",
        "last_merge_count": None,
    }
    assert whole.truncate(whole.vocab_size).training == record
    assert make().truncate(261).training == make().training


@pytest.mark.parametrize("size", [258, 268])
def test_truncation_names_the_range(size: int) -> None:
    with pytest.raises(SettingsError, match=rf"vocab size {size} is out of range: .*259 .*267"):
        make().truncate(size)


def test_truncation_is_refused_where_ids_are_not_in_merge_order() -> None:
    model = make().model
    shifted = replace(
        model,
        tokens={token_id + 10: data for token_id, data in model.tokens.items()},
        merges=[(left + 10, right + 10, new + 10) for left, right, new in model.merges],
        added_tokens=(),
    )
    with pytest.raises(VocabularyError, match="cannot be truncated: its ids are not the 256 bytes"):
        Tokenizer(shifted).truncate(258)


# ---- construction --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([(b"ab", b"c")], r"merge 0 \(b'ab', b'c'\): b'ab' is neither a single byte nor made"),
        ([(b"a", b"b"), (b"a", b"b")], r"merge 1 .*makes b'ab', which is token 256 already"),
        ([(b"", b"b")], r"merge 0 \(b'', b'b'\): b'' is neither"),
        ([(b"<", b"x"), (b"<x", b">")], r"token 257 \(b'<x>'\) spells the special token '<x>'"),
    ],
)
def test_merges_that_contradict_are_refused_by_name(
    merges: list[tuple[bytes, bytes]], message: str
) -> None:
    with pytest.raises(VocabularyError, match=message):
        Tokenizer.from_merges(merges, pretokenizer="gpt2", special_tokens=["<x>"])


def test_special_tokens_given_twice_are_refused() -> None:
    with pytest.raises(VocabularyError, match="'<x>' is given twice"):
        Tokenizer.from_merges([], pretokenizer="gpt2", special_tokens=["<x>", "<x>"])


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="unknown tie order 'lex': use one of hf, id"):
        make(tie_order="lex")
    with pytest.raises(SettingsError, match="normalizer 'NFX' is not known"):
        replace(make().model, normalizer="NFX")


def without(tokens: dict[int, bytes], *ids: int) -> dict[int, bytes]:
    return {token_id: data for token_id, data in tokens.items() if token_id not in ids}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"tokens": without(m.tokens, 0)}, r"lacks 1 of the 256 single bytes \(21\)"),
        (lambda m: {"tokens": {**m.tokens, 999: b"ab"}}, r"tokens 256 and 999 are both b'ab'"),
        (lambda m: {"tokens": {**m.tokens, 999: b""}}, r"token 999 is empty"),
        (lambda m: {"tokens": {**m.tokens, -1: b"zz"}}, r"id -1 is out of range"),
        (lambda _: {"added_tokens": [AddedToken("<x>", 2**32)]}, r"id 4294967296 is out of range"),
        (lambda _: {"added_tokens": [AddedToken("<x>", "7")]}, r"id '7' is not an integer"),
        (
            lambda _: {"added_tokens": [AddedToken("<x>", 0)]},
            r"'<x>' has id 0, which is token b'!'",
        ),
        (lambda _: {"merges": [(64, 65, 999)]}, r"merge 0 \(64, 65\) -> 999: .*no token 999"),
        (lambda _: {"merges": [(64, 66, 256)]}, r"merge 0: b'a' and b'c' do not make token 256"),
        (lambda _: {"merges": [(64, 65, 256)] * 2}, r"merges 0 and 1 are both \(b'a', b'b'\)"),
    ],
)
def test_models_that_contradict_are_refused_by_name(change: object, message: str) -> None:
    model = make().model
    with pytest.raises(VocabularyError, match=message):
        replace(model, **change(model))  # type: ignore[operator]


# ---- pickling and threads ------------------------------------------------------------------


def test_a_tokenizer_pickles_as_its_own_bytes() -> None:
    for tokenizer in (make(), make_nfc(), make(r"regex:\w+")):
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again.digest == tokenizer.digest
        assert again.training == tokenizer.training
        assert again.tie_order == tokenizer.tie_order
        assert again.encode(" ab\xff12").tolist() == tokenizer.encode(" ab\xff12").tolist()


def test_a_tokenizer_in_a_directory_pickles_as_path_and_digest(tmp_path: Path) -> None:
    tokenizer = make()
    tokenizer.save(tmp_path / "model")
    for saved in (tokenizer, Tokenizer.load(tmp_path / "model")):
        data = pickle.dumps(saved)
        assert len(data) < 500
        assert str(tmp_path / "model").encode() in data
        first, second = pickle.loads(data), pickle.loads(data)
        assert first.digest == tokenizer.digest
        assert first is second


def test_unpickling_names_a_directory_that_changed_or_is_gone(tmp_path: Path) -> None:
    tokenizer = make()
    tokenizer.save(tmp_path / "model")
    data = pickle.dumps(tokenizer)
    make("cl100k").save(tmp_path / "model", overwrite=True)
    with pytest.raises(ModelFileError, match=rf"model: .*{make('cl100k').digest}.*{make().digest}"):
        pickle.loads(data)
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(ModelFileError, match=r"model is not there"):
        pickle.loads(data)


def test_a_models_bytes_read_back_whole() -> None:
    model = replace(make().model, post_processor={"type": "x"}, normalizer="NFC")
    assert TokenizerModel.from_bytes(model.to_bytes()) == model
