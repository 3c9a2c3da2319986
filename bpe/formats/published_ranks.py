"""Rank files that vendors published: the scheme and special tokens that they leave unsaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["PUBLISHED_FILES", "PublishedFile"]


@dataclass(frozen=True)
class PublishedFile:
    """What is known of a rank file that a vendor published.

    name: the vendor's name of the encoding; pretokenizer: its scheme here; special_tokens: text
    to id, as published; normalizer: what the vendor's program does to text before.
    """

    name: str
    pretokenizer: str
    special_tokens: Mapping[str, int]
    normalizer: str | None = None


def _number(first_id: int, texts: Sequence[str]) -> dict[str, int]:
    return {text: first_id + index for index, text in enumerate(texts)}


_GPT3_SPECIALS = {"<|endoftext|>": 50256}

_LLAMA3_SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
    *(f"<|reserved_special_token_{number}|>" for number in range(2, 246)),
)

# Without the reserved ones, which have no meaning yet.
_LLAMA4_SPECIALS = {
    "<|begin_of_text|>": 200000,
    "<|end_of_text|>": 200001,
    "<|fim_prefix|>": 200002,
    "<|fim_middle|>": 200003,
    "<|fim_suffix|>": 200004,
    "<|header_start|>": 200005,
    "<|header_end|>": 200006,
    "<|eom|>": 200007,
    "<|eot|>": 200008,
    "<|step|>": 200009,
    "<|python_start|>": 200016,
    "<|python_end|>": 200017,
    "<|finetune_right_pad|>": 200018,
    "<|image_start|>": 200080,
    "<|image_end|>": 200081,
    "<|tile_x_separator|>": 200084,
    "<|tile_y_separator|>": 200085,
    "<|image|>": 200090,
    "<|patch|>": 200092,
    "<|reasoning_thinking_start|>": 201142,
    "<|reasoning_thinking_end|>": 201143,
}

PUBLISHED_FILES: Mapping[str, PublishedFile] = {
    # OpenAI's; the first is Whisper's gpt2.tiktoken too.
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": PublishedFile(
        "r50k_base", "gpt2", _GPT3_SPECIALS
    ),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": PublishedFile(
        "p50k_base", "gpt2", _GPT3_SPECIALS
    ),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": PublishedFile(
        "cl100k_base",
        "cl100k",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": PublishedFile(
        "o200k_base", "o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
    ),
    # Ids of further special tokens depend on how many languages a model has.
    "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126": PublishedFile(
        "Whisper's multilingual", "gpt2", {"<|endoftext|>": 50257, "<|startoftranscript|>": 50258}
    ),
    # Special tokens as of Llama 3.3; some that are reserved in 3.0 have names here.
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": PublishedFile(
        "Llama 3", "llama3", _number(128000, _LLAMA3_SPECIALS)
    ),
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": PublishedFile(
        "Llama 4", "o200k", _LLAMA4_SPECIALS
    ),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": PublishedFile(
        "Qwen",
        "qwen2",
        _number(
            151643,
            (
                "<|endoftext|>",
                "<|im_start|>",
                "<|im_end|>",
                *(f"<|extra_{number}|>" for number in range(205)),
            ),
        ),
        normalizer="NFC",
    ),
}
"""Published rank files by the sha256 (hex) of the unpacked file."""
