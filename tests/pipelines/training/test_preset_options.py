"""Presets: what `beam-bpe presets` lists is what `train --preset` does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe import Tokenizer
from bpe.formats.published_ranks import PUBLISHED_FILES
from pipelines.training.presets import PRESETS

# Smaller than published, for a small text.
SIZES = {
    "bert": ("--vocab-size", 400),
    "t5": ("--vocab-size", 300),
    "superbpe": ("--vocab-size", 400, "--superbpe-from", 50),
    "feste": ("--vocab-size", 300),
    "sennrich": ("--merges", 60),
}
NEEDS = {"bert": "tokenizers", "t5": "sentencepiece"}


def listed(text: str) -> dict[str, dict[str, str]]:
    """Options by preset, as `beam-bpe presets` shows them."""
    found: dict[str, dict[str, str]] = {}
    for block in text.split("\n\n"):
        name, _, rest = block.partition(": ")
        found[name] = dict(re.findall(r"^  (--\S+) +(.+)$", rest, re.MULTILINE))
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_the_options_that_are_listed(
    name: str, small: Path, run: Callable, tmp_path: Path
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    options = listed(run("presets").out)[name]
    specials = PRESETS[name].special_tokens
    if "--special-token" in options:
        shown = options.pop("--special-token")
        assert shown.split(" and ")[0].split() == list(specials[:3])
    given = ("train", "--input", small)
    size = SIZES.get(name, ("--vocab-size", 600))
    for option in size[::2]:
        options.pop(str(option), None)
    done = run(*given, "--preset", name, *size, "--output", tmp_path / "preset")
    assert done.code == 0, done.err
    each = [word for pair in options.items() for word in pair]
    each += [word for token in specials for word in ("--special-token", token)]
    plain = run(*given, *each, *size, "--output", tmp_path / "plain")
    assert plain.code == 0, plain.err
    made = Tokenizer.load(tmp_path / "preset")
    assert made == Tokenizer.load(tmp_path / "plain")
    assert made.training["settings"]["preset"] == name


def test_a_size_and_special_tokens_come_with_a_preset(
    small: Path, run: Callable, tmp_path: Path
) -> None:
    done = run(
        *("train", "--preset", "gpt4", "--input", small, "--output", tmp_path / "out"),
        *("--special-token", "<x>", "--special-token", "<|fim_middle|>"),
    )
    assert done.code == 0, done.err
    assert "100,261 were asked for" in done.out
    made = Tokenizer.load(tmp_path / "out")
    published = next(each for each in PUBLISHED_FILES.values() if each.name == "cl100k_base")
    assert list(made.special_tokens) == [*published.special_tokens, "<x>"]
    assert made.scheme.name == "cl100k"


def test_published_sizes_count_what_they_say() -> None:
    assert PRESETS["gpt2"].vocab_size == 256 + 50_000 + 1
    assert PRESETS["gpt4"].vocab_size == 100_256 + len(PRESETS["gpt4"].special_tokens)
    assert PRESETS["llama3"].vocab_size == 128_000 + len(PRESETS["llama3"].special_tokens)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--preset", "feste"), 2, "one of the arguments --vocab-size --merges is required"),
        ((), 2, "one of the arguments --vocab-size --merges is required"),
        (("--preset", "bert", "--recipe", "bpe"), 1, "does not go with --recipe bpe"),
        (("--preset", "gpt4", "--pretokenizer", "gpt2"), 1, "--preset gpt4 means --pretokenizer"),
        (("--preset", "sennrich", "--end-mark", "attached"), 1, "means --end-mark separate"),
        (("--preset", "t5", "--min-frequency", 2), 1, "means --min-frequency 1"),
        (("--preset", "superbpe", "--vocab-size", 300), 1, "needs --superbpe-from"),
    ],
)
def test_what_contradicts_a_preset_is_refused(
    options: tuple[object, ...], code: int, message: str, small: Path, run: Callable, tmp_path: Path
) -> None:
    done = run("train", "--input", small, "--output", tmp_path / "out", *options)
    assert done.code == code
    assert message in done.err
