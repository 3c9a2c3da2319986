"""GPT-2's pair of files: what is read, what is refused and where, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe import InputError, ModelFileError, OutputError, Tokenizer, load_tokenizer
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, to_printable
from bpe.formats.gpt2_files import find_gpt2_files, write_gpt2_files

BYTES = {to_printable(bytes([byte])): rank for rank, byte in enumerate(PRINTABLE_ORDER)}
MERGES = "#version: 0.2\nĠ t\nĠt h\n"
VOCAB = {**BYTES, "Ġt": 256, "Ġth": 257, "<|endoftext|>": 258}


def write(folder: Path, vocab: object, merges: str) -> tuple[Path, Path]:
    vocab_json, merges_txt = folder / "vocab.json", folder / "merges.txt"
    vocab_json.write_text(vocab if isinstance(vocab, str) else json.dumps(vocab))
    merges_txt.write_bytes(merges.encode())
    return vocab_json, merges_txt


def test_the_pair_is_read(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_gpt2(*write(tmp_path, VOCAB, MERGES))
    assert tokenizer.merges == [(b" ", b"t"), (b" t", b"h")]
    assert tokenizer.special_tokens == {"<|endoftext|>": 258}
    assert tokenizer.encode(" the").tolist() == [257, BYTES["e"]]
    assert tokenizer.tie_order is None
    assert tokenizer.scheme.name == "gpt2"


@pytest.mark.parametrize(
    "merges", ["Ġ t\nĠt h", "#version: 0.2\r\nĠ t\r\nĠt h\r\n", MERGES + "\n", "\ufeff" + MERGES]
)
def test_headers_and_line_ends_vary(merges: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_gpt2(*write(tmp_path, VOCAB, merges))
    assert tokenizer.merges == [(b" ", b"t"), (b" t", b"h")]


def test_added_tokens_are_read_from_the_file_beside(tmp_path: Path) -> None:
    pair = write(tmp_path, "\ufeff" + json.dumps(VOCAB), MERGES)
    added = {"<|endoftext|>": 258, "<tool>": 259, "   ": 260, "[end]": 261}
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    tokenizer = Tokenizer.from_gpt2(*pair)
    # As in `transformers`: what no file gives a role is part of the vocabulary.
    assert tokenizer.special_tokens == {}
    ids = {token.text: token.id for token in tokenizer.added_tokens if not token.special}
    assert ids == added
    roles = {"eos_token": {"content": "<|endoftext|>"}, "additional_special_tokens": ["[end]"]}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(roles))
    tokenizer = Tokenizer.from_gpt2(*pair)
    assert tokenizer.special_tokens == {"<|endoftext|>": 258, "[end]": 261}
    assert load_tokenizer(tmp_path).digest == tokenizer.digest
    decoder = {"259": {"content": "<tool>", "special": True}, "260": {"content": "   "}}
    config = {"eos_token": "<|endoftext|>", "added_tokens_decoder": decoder}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.from_gpt2(*pair)
    assert tokenizer.special_tokens == {"<|endoftext|>": 258, "<tool>": 259, "[end]": 261}
    named = Tokenizer.from_gpt2(*pair, special_tokens=["   "])
    assert "   " in named.special_tokens


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("added_tokens.json", {"<a>": "x"}, r"added_tokens\.json: entry '<a>' has id 'x'"),
        ("added_tokens.json", {"<a>": 97}, r"special token '<a>' has id 97, which is token"),
        ("tokenizer_config.json", {"added_tokens_decoder": []}, r"added_tokens_decoder is \[\]"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"7": {"content": "<a>", "special": 1}}},
            r"tokenizer_config\.json: added_tokens_decoder\['7'\] is .* flags that are true or f",
        ),
    ],
)
def test_damaged_files_beside_are_named(
    name: str, content: object, message: str, tmp_path: Path
) -> None:
    pair = write(tmp_path, VOCAB, MERGES)
    (tmp_path / "added_tokens.json").write_text("{}")
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.from_gpt2(*pair)


def test_no_merges_are_no_error(tmp_path: Path) -> None:
    assert Tokenizer.from_gpt2(*write(tmp_path, BYTES, "")).merges == []


def test_a_merge_of_number_signs_is_no_header(tmp_path: Path) -> None:
    pair = write(tmp_path, {**BYTES, "##": 256}, "# #\n")
    assert Tokenizer.from_gpt2(*pair).merges == [(b"#", b"#")]


def test_bracketed_entries_that_no_merge_makes_are_special(tmp_path: Path) -> None:
    extra = {"<s>": 256, "[PAD]": 257, "Ġlost": 258, "<>": 259, "word": 260}
    tokenizer = Tokenizer.from_gpt2(*write(tmp_path, {**BYTES, **extra}, "< >\n"))
    assert tokenizer.special_tokens == {"<s>": 256, "[PAD]": 257}
    # What no merge makes and is not bracketed decodes, and is never encoded to.
    assert tokenizer.token_bytes(258) == b" lost"
    assert 258 not in tokenizer.encode(" lost").tolist()


def test_a_bracketed_entry_that_a_merge_makes_is_ordinary(tmp_path: Path) -> None:
    pair = write(tmp_path, {**BYTES, "<p": 256, "<p>": 257}, "< p\n<p >\n")
    tokenizer = Tokenizer.from_gpt2(*pair)
    assert tokenizer.special_tokens == {}
    assert tokenizer.encode("<p").tolist()[-1] == BYTES["p"]
    assert tokenizer.token_bytes(257) == b"<p>"


def test_special_tokens_may_be_named(tmp_path: Path) -> None:
    pair = write(tmp_path, {**BYTES, "BOS": 256, "fin de texte": 257}, "")
    tokenizer = Tokenizer.from_gpt2(*pair, special_tokens=["BOS", "fin de texte"])
    assert tokenizer.special_tokens == {"BOS": 256, "fin de texte": 257}
    with pytest.raises(ModelFileError, match=r"vocab\.json has no entry .*special token 'EOS'"):
        Tokenizer.from_gpt2(*pair, special_tokens=["EOS"])


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        (VOCAB, "#version: 0.2\nĠ t\nĠt\n", r"merges\.txt, line 3: 'Ġt' is no merge; write two"),
        (VOCAB, "Ġ t\n\nĠt h\n", r"merges\.txt, line 2: '' is no merge"),
        (VOCAB, "Ġ t h\n", r"merges\.txt, line 1: 'Ġ t h' is no merge"),
        (VOCAB, "Ġ  t\n", r"merges\.txt, line 1: 'Ġ  t' is no merge"),
        (VOCAB, MERGES + "x y\n", r"merges\.txt, line 4: .*'xy' is not in the vocabulary of .*voc"),
        (VOCAB, MERGES + "q1 y\n", r"line 4: merge 'q1' 'y': 'q1' is not in the vocabulary"),
        (VOCAB, MERGES + "Ġ t\n", r"line 4: merge 'Ġ' 't' is there already \(.*line 2\)"),
        ({**VOCAB, "a b": 300}, MERGES, r"entry 'a b' \(id 300\) is not spelled with .*name it"),
        ({**VOCAB, "zz": 5}, MERGES, r"entries '&' and 'zz' both have id 5"),
        ({**VOCAB, "zz": -1}, MERGES, r"entry 'zz' has id -1; an id is an integer from 0"),
        ({**VOCAB, "zz": "1"}, MERGES, r"entry 'zz' has id '1'"),
        ({"a": 0}, "", r"vocab\.json: .*lacks 255 of the 256 single bytes \(00 01 .*initial_alph"),
        ("[1]", MERGES, r"vocab\.json holds a JSON list, not an object"),
        ('{"a":\n 1,}', MERGES, r"vocab\.json, line 2, column 4: not JSON"),
        ('{"a": 1, "a": 2}', MERGES, r"vocab\.json: the key 'a' is there twice"),
    ],
)
def test_damage_is_named_with_file_and_place(
    vocab: object, merges: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.from_gpt2(*write(tmp_path, vocab, merges))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    vocab_json, merges_txt = write(tmp_path, VOCAB, MERGES)
    with pytest.raises(ModelFileError, match=r"missing\.txt: no such file; check the path"):
        Tokenizer.from_gpt2(vocab_json, tmp_path / "missing.txt")
    with pytest.raises(ModelFileError, match="is a directory; name a file in it"):
        Tokenizer.from_gpt2(vocab_json, tmp_path)
    merges_txt.write_bytes(b"a b\xff\n")
    with pytest.raises(ModelFileError, match=r"merges\.txt: byte 3 \(0xff\) is not UTF-8"):
        Tokenizer.from_gpt2(vocab_json, merges_txt)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    specials = ["<|endoftext|>", "[ü x]"]
    tokenizer = Tokenizer.from_merges(
        [(b" ", b"t"), (b"\xff", b"\x00")], pretokenizer="gpt2", special_tokens=specials
    )
    pair = tmp_path / "vocab.json", tmp_path / "merges.txt"
    write_gpt2_files(tokenizer.model, *pair)
    assert pair[1].read_text() == "#version: 0.2\nĠ t\nÿ Ā\n"
    assert Tokenizer.from_gpt2(*pair).digest == tokenizer.digest
    assert find_gpt2_files(tmp_path) == pair
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merges.txt", "vocab.json"]


def test_hugging_face_reads_the_pair(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = Tokenizer.from_merges([(b" ", b"t"), (b" t", b"h")], pretokenizer="gpt2")
    pair = tmp_path / "vocab.json", tmp_path / "merges.txt"
    write_gpt2_files(tokenizer.model, *pair)
    theirs = tokenizers.ByteLevelBPETokenizer(*map(str, pair))
    assert theirs.encode("x the th").ids == tokenizer.encode("x the th").tolist()


def test_an_unwritable_path_is_named(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_merges([], pretokenizer="gpt2")
    with pytest.raises(OutputError, match=r"missing/vocab\.json cannot be written: No such file"):
        write_gpt2_files(tokenizer.model, tmp_path / "missing" / "vocab.json", tmp_path / "m.txt")


def test_errors_are_value_errors(tmp_path: Path) -> None:
    assert issubclass(ModelFileError, InputError)
    assert issubclass(InputError, ValueError)
    assert find_gpt2_files(tmp_path) is None
