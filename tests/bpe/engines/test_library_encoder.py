"""Tokenizers of other kinds: ids are the library's, by whole documents or word by word."""

from __future__ import annotations

import json
import lzma
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bpe import InputError, ModelFileError, SettingsError, Tokenizer, VocabularyError
from bpe.engines import tokenizers_library
from bpe.engines.library_model import LibraryModel

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.filterwarnings("ignore:.*ids are made by")

WORDS = ["the", "##s", "a", "b", "##b", "ca", "##fe", "fee", "!", ",", "\u4e2d", "don", "'", "t"]
BERT_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(BERT_VOCAB) + "\n")
    return Tokenizer.load(folder)


def unigram(**changes: Any) -> Any:
    """A tokenizer of T5's form, with a small vocabulary."""
    pieces = ["\u2581", "\u2581the", "s", "\u2581a", "b", "e", "t", "h", "\u2581t", "he", ".", "!"]
    vocab = [("<unk>", 0.0), *((piece, -1.0 - i / 8) for i, piece in enumerate(pieces))]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, unk_id=0))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace()]
    )
    made.normalizer = tokenizers.normalizers.NFKC()
    made.decoder = tokenizers.decoders.Metaspace()
    for name, value in changes.items():
        setattr(made, name, value)
    made.add_special_tokens(["</s>"])
    return made


def load(made: Any, folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    made.save(str(path))
    return Tokenizer.load(path)


@pytest.mark.parametrize("family", ["bert", "clip", "t5"])
def test_published_files_give_the_expected_ids(
    family: str, shared_data: Path, tmp_path: Path
) -> None:
    for source in (shared_data / "zoo" / "files" / family).iterdir():
        data = source.read_bytes()
        is_packed = source.suffix == ".xz"
        (tmp_path / source.name.removesuffix(".xz")).write_bytes(
            lzma.decompress(data) if is_packed else data
        )
    tokenizer = Tokenizer.load(tmp_path)
    lines = (shared_data / "zoo" / "expected" / f"{family}.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    found = tokenizer.encode_batch([case["text"] for case in cases], special_text="allow")
    assert found.to_pylist() == [case["ids"] for case in cases]
    assert tokenizer.model.library.words_apart
    # Word by word as by document, in many scripts.
    texts = [case["text"] * 3 for case in cases]
    whole = tokenizer.model.library.encode(texts, specials=False, threads=1)[0]
    assert tokenizer.encode_flat(texts)[0].tolist() == whole.tolist()


def test_a_sentencepiece_model_gives_the_library_s_ids(shared_data: Path, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    source = shared_data / "recipes" / "unigram_plain.model"
    path = tmp_path / "spiece.model"
    shutil.copy(source, path)
    tokenizer = Tokenizer.load(tmp_path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    texts = ["", "a", " two  words ", "line\nfeed", "\u4e2d\u6587 <s>x</s>"]
    assert tokenizer.encode_batch(texts).to_pylist() == theirs.encode(texts)
    assert tokenizer.model.kind == "SentencePiece Unigram"
    bos = tokenizer.special_tokens["<s>"]
    expected = [*theirs.encode("a "), bos, *theirs.encode("b")]
    assert tokenizer.encode("a <s>b", special_text="allow").tolist() == expected
    assert tokenizer.decode([bos, *theirs.encode("b c")]) == b"<s>b c"
    assert tokenizer.count_special_text(["<s> <s>", "x"])["<s>"] == 2


@example(["A\x1e\x1fA b", "a b"])
@given(st.lists(st.text(alphabet="a bthes!,\u4e2d\u0301\u00e9\x1e\x1f\n'A\u00a0"), max_size=6))
def test_words_have_the_ids_that_they_have_in_their_text(bert: Tokenizer, texts: list[str]) -> None:
    whole = bert.model.library.encode(texts, specials=False, threads=1)
    found, offsets = bert.encode_flat(texts)
    assert found.tolist() == whole[0].tolist()
    assert offsets.tolist() == [0, *whole[1].cumsum().tolist()]


@given(texts=st.lists(st.text(alphabet="a bthes.!\u0308\u4e2d</>\n"), max_size=6))
def test_unigram_words_stand_apart(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    tokenizer = load(unigram(), tmp_path_factory.mktemp("unigram"))
    assert tokenizer.model.library.words_apart
    for special_text in ("text", "allow"):
        whole = tokenizer.model.library.encode(texts, specials=special_text == "allow", threads=1)
        assert tokenizer.encode_flat(texts, special_text=special_text)[0].tolist() == (
            whole[0].tolist()
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"pre_tokenizer": tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")},
        {"pre_tokenizer": None},
        {"normalizer": tokenizers.normalizers.Replace("a b", "c")},
        {"normalizer": tokenizers.normalizers.Prepend("_")},
    ],
)
def test_where_words_are_not_apart_documents_are_whole(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    tokenizer = load(unigram(**changes), tmp_path)
    assert not tokenizer.model.library.words_apart
    texts = ["the a b", "a b a", " the"]
    assert tokenizer.encode_batch(texts).to_pylist() == [
        encoding.ids for encoding in unigram(**changes).encode_batch(texts)
    ]


def test_special_tokens_follow_the_policy(bert: Tokenizer) -> None:
    assert bert.encode("[SEP]", special_text="allow").tolist() == [3]
    assert 3 not in bert.encode("[SEP]").tolist()
    with pytest.raises(InputError, match=r"texts\[1\] holds the special token '\[SEP\]' at byte 2"):
        bert.encode_batch(["a", "a [SEP]"], special_text="reject")
    assert bert.count_special_text(["[SEP] [SEP]", "[MASK]"]) == {
        "[PAD]": 0, "[UNK]": 0, "[CLS]": 0, "[SEP]": 2, "[MASK]": 1
    }  # fmt: skip


def test_it_is_declared_lossy_and_takes_whole_documents(bert: Tokenizer) -> None:
    assert bert.lossy
    assert not bert.streams
    assert not bert.cut_finder().can_cut
    assert bert.encode(b"a\xff").tolist() == bert.encode("a\ufffd").tolist()
    for call in (bert.stream_encoder, lambda: bert.encode_with_offsets("a")):
        with pytest.raises(SettingsError, match="encoded by tokenizers: it"):
            call()
    for write in (bert.to_tiktoken, lambda _: bert.truncate(300)):
        with pytest.raises(VocabularyError, match="WordPiece"):
            write("x.tiktoken")


def test_a_model_directory_holds_the_file(bert: Tokenizer, tmp_path: Path) -> None:
    bert.save(tmp_path / "tok")
    again = Tokenizer.load(tmp_path / "tok")
    assert again == bert
    assert again.encode("the cafe").tolist() == bert.encode("the cafe").tolist()
    again.check_files(tmp_path / "tok")
    for tokenizer in (bert, again):
        assert pickle.loads(pickle.dumps(tokenizer)) == bert
    config_path = tmp_path / "tok" / "config.json"
    config = json.loads(config_path.read_text())
    assert (config["engine"], config["lossy"]) == ("tokenizers", True)
    config_path.write_text(json.dumps({**config, "engine_version": "0.1"}))
    with pytest.warns(UserWarning, match="written with version '0.1'; here is"):
        Tokenizer.load(tmp_path / "tok")
    config_path.write_text(json.dumps({**config, "engine": "os"}))
    with pytest.raises(ModelFileError, match="engine is 'os'"):
        Tokenizer.load(tmp_path / "tok")
    (tmp_path / "tok" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: sha256 is"):
        Tokenizer.load(tmp_path / "tok")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["model"].update(dropout=0.1), r"model\.dropout is 0\.1"),
        (
            lambda d: d["model"].update(type="WordPiece", vocab={"a": -1}),
            "tokenizers .* does not read it",
        ),
        (lambda d: d.update(normalizer={"type": "Unknown"}), "tokenizers .* does not read it"),
    ],
)
def test_what_the_library_cannot_take_is_refused(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    document = {"pre_tokenizer": None, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
    change(document)
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.load(tmp_path)


def test_memory_of_the_word_cache_is_bounded(
    bert: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bpe.engines import word_cache

    monkeypatch.setattr(word_cache, "_MOST_BYTES", 1000)
    cache = word_cache.WordCache(
        lambda words: bert.model.library.encode(words, specials=False, threads=1),
        word_cache.cut_words,
    )
    for start in range(0, 300, 10):
        cache.encode(pa.array([f"w{start + i} a" for i in range(10)], pa.large_string()))
        assert len(cache._places) <= 30


def test_bert_is_cased_where_the_vocabulary_or_the_configuration_says_so(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT_VOCAB, "The"]) + "\n")
    assert Tokenizer.load(tmp_path).encode("The").tolist() == [len(BERT_VOCAB)]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert Tokenizer.load(tmp_path / "vocab.txt").encode("The").tolist() == [
        BERT_VOCAB.index("the")
    ]


def test_the_warning_names_library_and_kind(tmp_path: Path) -> None:
    unigram().save(str(tmp_path / "tokenizer.json"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokenizer = Tokenizer.load(tmp_path)
    assert isinstance(tokenizer.model, LibraryModel)
    version = tokenizers_library.import_library("tokenizers").__version__
    assert f"ids are made by tokenizers {version} (Unigram)" in str(caught[-1].message)
