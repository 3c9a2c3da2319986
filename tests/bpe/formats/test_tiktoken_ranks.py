"""Rank files: merges recovered by rank, whole-piece tokens, refusals, export."""

from __future__ import annotations

import base64
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import ModelFileError, SettingsError, Tokenizer, VocabularyError, load_tokenizer
from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.backends.values import EncodingModel
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.formats.tiktoken_ranks import PUBLISHED_FILES
from bpe.pretokenizing.schemes import get_scheme
from bpe.reference.ranks import recover_merges

BYTES = [bytes([byte]) for byte in range(256)]


def write(path: Path, tokens: list[bytes]) -> Path:
    lines = [b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens)]
    path.write_bytes(b"".join(lines))
    return path


def test_merges_are_recovered_by_rank(backend: Backend) -> None:
    ranks = {token: rank for rank, token in enumerate([*BYTES, b"bc", b"ab", b"abc", b"abcd"])}
    merges, unmerged = backend.recover_merges(ranks)
    # bc comes before ab, so that abc is a + bc although ab + c spells it too.
    assert merges == [(98, 99, 256), (97, 98, 257), (97, 256, 258), (258, 100, 259)]
    assert unmerged == []


@pytest.mark.usefixtures("backend")
def test_a_token_that_no_merge_makes_is_a_whole_piece_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tiktoken", [*BYTES, b"ab", b"xyz", b"abc"])
    tokenizer = Tokenizer.from_tiktoken(path, pretokenizer="gpt2")
    assert tokenizer.model.whole_piece
    assert tokenizer.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert tokenizer.encode("xyz").tolist() == [257]
    assert tokenizer.encode("xyza").tolist() == [*b"xyza"]
    assert tokenizer.encode(" xyz").tolist() == [*b" xyz"]
    assert tokenizer.decode([257, 258]) == b"xyzabc"


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(
        st.text("ab", min_size=2, max_size=8) | st.text("aé的", min_size=1, max_size=4),
        unique=True,
        max_size=30,
    ),
    texts=st.lists(st.text("ab", max_size=60) | st.text("aé的", max_size=12), max_size=6),
)
def test_ids_are_tiktokens(tokens: list[str], texts: list[str]) -> None:
    """Of any table: tokens before their parts, and tokens that no merge makes."""
    tiktoken = pytest.importorskip("tiktoken")
    table = dict.fromkeys([*BYTES, *map(str.encode, tokens)])
    ranks = {token: rank for rank, token in enumerate(table)}
    merges, unmerged = recover_merges(ranks)
    by_id = dict(enumerate(table))
    model = EncodingModel(by_id, merges, whole_piece=bool(unmerged), scheme=get_scheme("none"))
    theirs = tiktoken.Encoding("x", pat_str="(?s).+", mergeable_ranks=ranks, special_tokens={})
    for name in ("python", "native"):
        assert get_backend(name).recover_merges(ranks) == (merges, unmerged)
        ours = get_backend(name).make_encoder(model)
        for text in [*texts, "".join(texts), "".join(tokens), "".join(reversed(tokens))]:
            assert ours.encode(text.encode()).tolist() == theirs.encode_ordinary(text)


@settings(deadline=None)
@given(
    tokens=st.lists(st.binary(min_size=2, max_size=40) | st.text("ab", min_size=2).map(str.encode)),
    gap=st.integers(1, 2**33),
    whole=st.booleans(),
)
def test_backends_recover_the_same(tokens: list[bytes], gap: int, *, whole: bool) -> None:
    # Parts of tokens as tokens, so that merges meet; a byte less, so that one may be missing.
    parts = [part for token in tokens for part in (token[:2], token[-3:], token)]
    table = dict.fromkeys([*(BYTES if whole else BYTES[:200]), *reversed(parts)])
    ranks = {token: place * gap for place, token in enumerate(table)}
    found = []
    for name in ("python", "native"):
        try:
            found.append(get_backend(name).recover_merges(ranks))
        except VocabularyError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_backends_recover_the_same_of_published_files(
    name: str, rank_files: dict[str, Path]
) -> None:
    lines = rank_files[name].read_bytes().split(b"\n")[:30_000]
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    assert get_backend("native").recover_merges(ranks) == recover_merges(ranks)


def test_a_token_may_merge_before_its_parts(backend: Backend) -> None:
    ranks = {token: rank for rank, token in enumerate([*BYTES, b"xyz", b"yz", b"zx"])}
    merges = [(120, 257, 256), (121, 122, 257), (122, 120, 258)]
    assert backend.recover_merges(ranks) == (merges, [])
    model = EncodingModel(
        {rank: token for token, rank in ranks.items()},
        merges,
        whole_piece=False,
        scheme=get_scheme("none"),
    )
    encoder = backend.make_encoder(model)
    assert encoder.encode(b"xyzx").tolist() == [256, 120]
    assert encoder.encode(b"yxyzyzx").tolist() == [121, 256, 257, 120]
    assert encoder.encode(b"zxzx").tolist() == [258, 258]


def test_long_tokens_take_linear_time() -> None:
    ranks = {token: rank for rank, token in enumerate(BYTES)}
    ranks |= {b"a" * size: 254 + size for size in range(2, 4_002)}
    started = time.process_time()
    merges, unmerged = get_backend("native").recover_merges(ranks)
    assert time.process_time() - started < 8  # some 25 seconds in quadratic time
    assert len(merges) + len(unmerged) == 4_000
    few = {token: rank for token, rank in ranks.items() if len(token) < 150}
    assert get_backend("native").recover_merges(few) == recover_merges(few)


def test_the_scheme_must_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tiktoken", BYTES)
    for load in (Tokenizer.from_tiktoken, load_tokenizer):
        with pytest.raises(SettingsError, match=r"x\.tiktoken: .*pass pretokenizer=.*gpt2, cl100k"):
            load(path)
    with pytest.raises(SettingsError, match="unknown pre-tokenizer 'gpt5'"):
        Tokenizer.from_tiktoken(path, pretokenizer="gpt5")


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_published_file_says_all_by_its_content(
    name: str, rank_files: dict[str, Path], tmp_path: Path
) -> None:
    renamed = tmp_path / "tokenizer.model"
    shutil.copy(rank_files[name], renamed)
    for tokenizer in (Tokenizer.from_tiktoken(renamed), load_tokenizer(renamed)):
        assert tokenizer.scheme.name == name.removesuffix("_base")
        assert tokenizer.special_tokens["<|endoftext|>"] == {"cl": 100257, "o2": 199999}[name[:2]]


def test_a_rank_file_is_one_whatever_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "tokenizer.model", [*BYTES, b"ab"])
    assert load_tokenizer(path, pretokenizer="gpt2").encode("ab").tolist() == [256]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_tokenizer(path, pretokenizer="gpt2").encode("ab").tolist() == [256]
    with pytest.raises(SettingsError, match="not known by its sha256: pass pretokenizer="):
        load_tokenizer(path)
    path.write_bytes(b"\x0a\x0e\x0a\x05<unk>")
    with pytest.raises(ModelFileError, match="is no SentencePiece model, or a dam"):
        load_tokenizer(path)


def test_a_line_without_bytes_is_no_token(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tiktoken", [*BYTES, b"ab"])
    path.write_bytes(path.read_bytes() + b"= 257\n")
    tokenizer = Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens=["<s>"])
    assert tokenizer.special_tokens == {"<s>": 258}
    assert 257 not in tokenizer.model.tokens
    assert tokenizer.encode("ab").tolist() == [256]


def test_published_special_tokens_are_tiktokens() -> None:
    pytest.importorskip("tiktoken")
    from tiktoken_ext import openai_public

    source = Path(openai_public.__file__).read_text()
    openai = [item for item in PUBLISHED_FILES.items() if item[1].name.endswith("_base")]
    assert len(openai) == 4
    for sha256, published in openai:
        assert sha256 in source
        assert published.name in openai_public.ENCODING_CONSTRUCTORS
        for text, token_id in published.special_tokens.items():
            assert text in source
            assert str(token_id) in source


def test_special_tokens_get_published_or_free_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tiktoken", BYTES)
    named = Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens=["<a>", "<b>"])
    assert named.special_tokens == {"<a>": 256, "<b>": 257}
    mapped = Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens={"<a>": 999})
    assert mapped.special_tokens == {"<a>": 999}
    assert Tokenizer.from_tiktoken(path, pretokenizer="gpt2").special_tokens == {}
    with pytest.raises(SettingsError, match=r"special_tokens is the string '<a>': give a list"):
        Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens="<a>")


def test_names_get_their_published_ids(rank_files: dict[str, Path]) -> None:
    tokenizer = Tokenizer.from_tiktoken(
        rank_files["cl100k_base"],
        pretokenizer="cl100k",
        special_tokens=["<mine>", "<|endoftext|>"],
    )
    assert tokenizer.special_tokens == {"<|endoftext|>": 100257, "<mine>": 100277}


LINES = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(BYTES))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (LINES + b"YWI=\n", r"x\.tiktoken, line 257: b'YWI=' is not a token in base64, a space"),
        (LINES + b"YWI= x\n", r"line 257: b'YWI= x' is not"),
        (LINES + b"YWI= -1\n", r"line 257: b'YWI= -1' is not"),
        (LINES + b"YWI= 256 7\n", r"line 257: b'YWI= 256 7' is not"),
        (LINES + b"Y*I= 256\n", r"line 257: b'Y\*I= 256' is not"),
        (LINES + b"YWI 256\n", r"line 257: b'YWI 256' is not"),
        (LINES + b"\nYQ== 256\n", r"line 258: token b'a' is there already, with rank 97 \(line 98"),
        (LINES + b"YWI= 97\n", r"line 257: rank 97 is there already, in line 98"),
        (LINES[: len(LINES) // 2], r"line \d+: .* is not a token in base64"),
        (b"", r"x\.tiktoken: the vocabulary lacks 256 of the 256 single bytes"),
        (LINES.replace(b"YQ== 97\n", b""), r"lacks 1 of the 256 single bytes \(61\)"),
    ],
)
def test_damage_is_named_with_file_and_line(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.from_tiktoken(path, pretokenizer="gpt2")


def test_a_token_that_spells_a_special_token_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tiktoken", [*BYTES, b"<s", b"<s>"])
    with pytest.raises(ModelFileError, match=r"x\.tiktoken: token 257 .*special token '<s>'"):
        Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens=["<s>"])


# ---- export --------------------------------------------------------------------------------


def make() -> TokenizerModel:
    return Tokenizer.from_merges(
        [(b"a", b"b"), (b"ab", b"c"), (b"x", b"y")], pretokenizer="gpt2"
    ).model


def swap_ids(model: TokenizerModel, first: int, second: int) -> TokenizerModel:
    new = {first: second, second: first}
    return replace(
        model,
        tokens={new.get(token_id, token_id): data for token_id, data in model.tokens.items()},
        merges=[
            (new.get(left, left), new.get(right, right), new.get(made, made))
            for left, right, made in model.merges
        ],
    )


def test_export_and_import_give_the_same_tokenizer(tmp_path: Path) -> None:
    tokenizer = Tokenizer(make())
    tokenizer.to_tiktoken(tmp_path / "x.tiktoken")
    again = Tokenizer.from_tiktoken(tmp_path / "x.tiktoken", pretokenizer="gpt2")
    assert again.digest == tokenizer.digest


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            swap_ids(make(), 257, 258),
            (
                r"x\.tiktoken cannot be written: .*not in the order of its merges "
                r"\(merge 1, \(b'ab', b'c'\), has id 258; by ids that place is token 257\); write"
            ),
        ),
        (replace(make(), normalizer="NFC"), r"no place for the normalizer NFC; write tokenizer"),
        (replace(make(), merges=make().merges[:2]), r"not in the order of its merges \(2 merges"),
        (
            replace(make(), tokens={**make().tokens, 300: b"qrs"}),
            r"token 300 \(b'qrs'\) is made by no merge, .*; write tokenizer\.json instead",
        ),
    ],
)
def test_export_is_refused_where_the_file_would_mean_something_else(
    model: TokenizerModel, message: str, tmp_path: Path
) -> None:
    with pytest.raises(VocabularyError, match=message):
        Tokenizer(model).to_tiktoken(tmp_path / "x.tiktoken")
    assert list(tmp_path.iterdir()) == []


def test_whole_piece_tokens_are_exported(tmp_path: Path) -> None:
    model = replace(make(), tokens={**make().tokens, 300: b"qrs"}, whole_piece=True)
    Tokenizer(model).to_tiktoken(tmp_path / "x.tiktoken")
    again = Tokenizer.from_tiktoken(tmp_path / "x.tiktoken", pretokenizer="gpt2")
    assert again.digest == Tokenizer(model).digest


def test_a_folder_with_a_rank_file_alone_says_to_name_it(tmp_path: Path) -> None:
    (tmp_path / "mine.tiktoken").write_bytes(b"YQ== 0\n")
    with pytest.raises(ModelFileError, match=r"but mine\.tiktoken: name that file, such as .*mine"):
        load_tokenizer(tmp_path)
