"""tokenizer_config.json: what Hugging Face's `transformers` reads beside tokenizer.json.

`AutoTokenizer.from_pretrained(DIRECTORY)` gets the roles of special tokens from it. A vocabulary
does not say which of its special tokens ends a document: their names do, by custom.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["render_transformers_config"]

# For each role the customary texts; the first that is a special token has it.
_ROLES = {
    "bos_token": (
        "<|begin_of_text|>",
        "<|startoftext|>",
        "<|bos|>",
        "<bos>",
        "<s>",
        "[BOS]",
        "<|endoftext|>",  # GPT-2's one special token is both
    ),
    "eos_token": (
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|eos|>",
        "<eos>",
        "</s>",
        "[EOS]",
        "<|im_end|>",
        "<|end|>",
    ),
    "pad_token": (
        "<|pad|>",
        "<|padding|>",
        "<|finetune_right_pad_id|>",
        "<pad>",
        "[PAD]",
    ),
}

# How that library writes "no limit known": a tokenizer has none, the model that uses it has.
_NO_LIMIT = int(1e30)


def render_transformers_config(special_tokens: Iterable[str]) -> bytes:
    """Content of tokenizer_config.json for a vocabulary with these special tokens.

    A role that no special token has by its name is left out.
    """
    known = set(special_tokens)
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": _NO_LIMIT,
        # It would take spaces out of decoded text.
        "clean_up_tokenization_spaces": False,
    }
    for role, texts in _ROLES.items():
        named = [text for text in texts if text in known]
        if named:
            config[role] = named[0]
    return (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode()
