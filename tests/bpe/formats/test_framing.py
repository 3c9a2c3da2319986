"""What a post-processor puts around each text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import Tokenizer
from bpe.formats.framing import framing_of
from bpe.formats.tokenizer_json import render_tokenizer_json

TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"SpecialToken": {"id": "<t>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {
        name: {"id": name, "ids": [token_id], "tokens": [name]}
        for name, token_id in (("<s>", 257), ("<t>", 258), ("</s>", 259))
    },
}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 259],
    "cls": ["<s>", 257],
    "trim_offsets": True,
    "add_prefix_space": False,
}
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": False,
    "use_regex": True,
}


@pytest.mark.parametrize(
    "post_processor",
    [
        None,
        BYTE_LEVEL,
        TEMPLATE,
        ROBERTA,
        {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]},
    ],
)
def test_framing_is_that_of_the_library(post_processor: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = Tokenizer.from_merges(
        [(b"a", b"b")], pretokenizer="gpt2", special_tokens=["<s>", "<t>", "</s>"]
    ).model
    document = json.loads(render_tokenizer_json(model)) | {"post_processor": post_processor}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
    before, after = framing_of(post_processor)
    assert theirs.encode("ab").ids == [*before, 256, *after]


@given(
    st.recursive(
        st.none() | st.integers() | st.sampled_from(["TemplateProcessing", "Sequence", "<s>"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [*TEMPLATE, "processors", "cls", "sep", "Sequence", "SpecialToken", "id", "ids"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_taken(value: Any) -> None:
    before, after = framing_of(value)
    assert all(isinstance(token_id, int) for token_id in before + after)
