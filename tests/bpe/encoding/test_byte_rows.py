"""Presets of bytes: ids as their models have them, natively and not, saved and pickled."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import InputError, ModelFileError, SettingsError, VocabularyError
from bpe.tokenizer import Tokenizer

NAMES = list(BYTE_PRESETS)
FRAMED = {"bytes": Tokenizer.load("bytes", special_tokens=["<bos>", "<eos>"])}
LOADED = {name: Tokenizer.load(name) for name in NAMES}


def test_ids_are_those_of_the_models(data_dir: Path) -> None:
    golden = json.loads((data_dir / "cases" / "bytes.json").read_text())
    for case in golden["cases"]:
        name, data = case["preset"], bytes.fromhex(case["hex"])
        tokenizer, preset = LOADED[name], BYTE_PRESETS[name]
        assert tokenizer.encode(data).tolist() == case["ids"]
        assert tokenizer.decode(case["ids"]) == data
        framed = [preset.bos, *case["ids"], preset.eos]
        assert [each for each in framed if each is not None] == case["with_defaults"]
    for name in NAMES:
        known: dict[str, Any] = golden[name]
        shown = FRAMED.get(name, LOADED[name])
        assert shown.vocab_size == known["vocab"]
        assert BYTE_PRESETS[name].offset == known["offset"]
    assert FRAMED["bytes"].special_tokens == {"<bos>": 256, "<eos>": 257}
    assert LOADED["byt5"].special_tokens["<extra_id_124>"] == 383


@pytest.mark.parametrize("name", NAMES)
@given(
    texts=st.lists(
        st.lists(st.sampled_from([b"<eos>", b"</s>", b"<", b"\xff", b"a", b""]) | st.binary()).map(
            b"".join
        )
    ),
    start=st.integers(0, 3),
    block=st.integers(1, 9),
)
def test_every_way_of_encoding_adds_the_offset(
    name: str, texts: list[bytes], start: int, block: int
) -> None:
    tokenizer, offset = LOADED[name], BYTE_PRESETS[name].offset
    array = pa.array(texts, pa.large_binary())[start:]
    expected = [[byte + offset for byte in text] for text in texts[start:]]
    encoded = tokenizer.encode_batch(array)
    assert encoded.type.value_type == tokenizer.id_type
    assert encoded.to_pylist() == expected
    assert tokenizer.count_tokens(array).tolist() == list(map(len, expected))
    assert tokenizer.decode_batch(encoded).to_pylist() == texts[start:]
    for text, ids in zip(texts[start:], expected, strict=True):
        stream = tokenizer.stream_encoder(block_bytes=block)
        found = [*(stream.feed(text[at : at + 5]) for at in range(0, len(text), 5))]
        assert np.concatenate([*found, stream.finish()]).tolist() == ids


@pytest.mark.usefixtures("backend")
def test_special_tokens_count_where_they_are_allowed() -> None:
    tokenizer = Tokenizer.load("byt5")
    text = b"a</s>b<extra_id_10>"
    assert tokenizer.encode(text, special_text="allow").tolist() == [100, 1, 101, 269]
    assert tokenizer.encode_batch([b"x", text], special_text="allow").to_pylist()[1] == [
        *(100, 1, 101, 269)
    ]
    assert tokenizer.encode(text).tolist() == [byte + 3 for byte in text]
    with pytest.raises(InputError, match="'</s>' at byte 1"):
        tokenizer.encode(text, special_text="reject")


def test_only_what_fits_a_byte_has_uint8_ids() -> None:
    assert LOADED["bytes"].id_type == LOADED["hnet"].id_type == pa.uint8()
    others = (
        FRAMED["bytes"],
        LOADED["byt5"],
        LOADED["blt"],
        Tokenizer.from_merges([], pretokenizer="gpt2"),
    )
    assert {each.id_type for each in others} == {pa.uint16()}


@pytest.mark.usefixtures("backend")
def test_bytes_that_mark_ends_are_counted_and_refused() -> None:
    tokenizer = Tokenizer.load("hnet")
    texts = [b"plain", b"", b"a\xff\xfe\xff"]
    assert tokenizer.count_special_text(texts) == {"bos (byte 254)": 1, "eos (byte 255)": 2}
    assert tokenizer.first_special(texts) == (2, 1, "eos (byte 255)")
    assert tokenizer.first_special(texts[:2]) is None
    with pytest.raises(InputError, match=r"texts\[2\] holds .*eos \(byte 255\).* at byte 1"):
        tokenizer.encode_batch(texts, special_text="reject")
    assert tokenizer.encode(texts[2]).tolist() == [97, 255, 254, 255]


@pytest.mark.parametrize("tokenizer", [*LOADED.values(), *FRAMED.values()])
def test_a_preset_is_saved_and_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    sent = pickle.loads(pickle.dumps(Tokenizer(tokenizer.model)))
    tokenizer.save(tmp_path / "saved")
    loaded = Tokenizer.load(tmp_path / "saved")
    for other in (sent, loaded):
        assert other == tokenizer
        assert other.model.byte_preset == tokenizer.model.byte_preset
        assert other.id_type == tokenizer.id_type
    loaded.check_files(tmp_path / "saved")


def test_presets_differ_also_where_their_ids_do_not() -> None:
    assert len({each.digest for each in (*LOADED.values(), *FRAMED.values())}) == 5


@pytest.mark.parametrize("name", NAMES)
def test_tokenizer_json_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    LOADED[name].to_huggingface(tmp_path / "tokenizer.json")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "Hällo  wörld </s> 1,234\n\n <pad>世界"
    expected = LOADED[name].encode(text, special_text="allow").tolist()
    assert library.encode(text, add_special_tokens=False).ids == expected


def test_a_path_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2").save("blt")
    assert Tokenizer.load("blt").merges == [(b"a", b"b")]
    Path("hnet").write_text("no tokenizer")
    with pytest.raises(ModelFileError):
        Tokenizer.load("hnet")


def test_what_a_preset_has_not_is_refused() -> None:
    with pytest.raises(SettingsError, match="leave the pre-tokenizer out"):
        Tokenizer.load("bytes", pretokenizer="gpt2")
    with pytest.raises(SettingsError, match="it has <bos> 256, <eos> 257 to ask for"):
        Tokenizer.load("bytes", special_tokens=["<pad>"])
    with pytest.raises(SettingsError, match="it has none to ask for"):
        Tokenizer.load("byt5", special_tokens={"</s>": 1})


@pytest.mark.parametrize(
    "changed", [{"byte_preset": "byt5"}, {"byte_preset": "other"}, {"merges": [(0, 1, 300)]}]
)
def test_a_preset_that_does_not_fit_its_tokens_is_refused(changed: dict[str, Any]) -> None:
    model = LOADED["bytes"].model
    assert isinstance(model, TokenizerModel)
    values: dict[str, Any] = {
        "tokens": model.tokens | ({300: b"\0\1"} if "merges" in changed else {}),
        "merges": [],
        "scheme": model.scheme,
        "byte_preset": "bytes",
    }
    with pytest.raises(VocabularyError, match="byte preset"):
        TokenizerModel(**(values | changed))
