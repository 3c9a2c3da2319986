"""Train tokenizers from a count table, on the driver or inside a pipeline.

    (bucket, counts) ─ TrainBpe ─► one model directory per vocabulary size

Merge lists nest, so several vocabulary sizes come from one training to the largest.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe.backends.values import TIE_ORDERS
from bpe.count_sums import add_tables
from bpe.errors import SettingsError
from bpe.extension import extend_to_sizes
from bpe.pretokenizing.schemes import get_scheme
from bpe.recipes.registry import RecipeSettings, train_recipe
from bpe.second_stage import SUPERBPE, train_second_stage
from bpe.tokenizer import Tokenizer, extend_golden
from bpe.training import read_counts, train
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.tokenizer_files import copy_files
from pipelines.storage.output_files import join
from pipelines.training.count_tables import from_ipc
from pipelines.training.count_words import CountSettings

__all__ = [
    "TrainBpe",
    "TrainSettings",
    "model_directories",
    "save_models",
    "train_second_sizes",
    "train_sizes",
    "truncate_to_sizes",
]

_BYTES = 256


@dataclass(frozen=True)
class TrainSettings:
    """What decides the merges, besides the counts.

    Attributes:
        vocab_sizes: entries of each vocabulary: 256 bytes, merges, special tokens; ascending.
        pretokenizer: a scheme of `bpe.pretokenizing.schemes`, `regex:PATTERN`, or `none`.
        tie_order: `hf`, `id`, `bytes` or `first`.
        min_frequency: training stops when no pair occurs so often.
        max_token_bytes: longest token made, or None.
        special_tokens: added after the merges, in this order.
        special_text: what special tokens in the text meant when it was counted.
        superbpe_from: merges of a first stage that a second one goes on from, across words; None
            for a training of one stage. The pre-tokenizer is that of the first stage, or, for the
            second one itself, `superbpe`.
        preset: name of the preset that the settings come from, for the record; None for none.
        recipe: of `bpe.recipes.registry`; the fields above are those of `bpe`, and others take
            some of them.
        merges: how many merges each vocabulary has, in place of `vocab_sizes`, for other recipes
            than `bpe`; ascending.
        recipe_options: what the recipe takes besides.
        extends: digest of the tokenizer that is gone on from; its special tokens are among those
            above, and its merges and ids are in `vocab_sizes`.

    Raises:
        SettingsError: a vocabulary size without room for the bytes and the special tokens; a
            special token that is empty or given twice; a limit below 1.
    """

    vocab_sizes: tuple[int, ...]
    pretokenizer: str = "gpt2"
    tie_order: str = "hf"
    min_frequency: int = 2
    max_token_bytes: int | None = None
    special_tokens: tuple[str, ...] = ()
    special_text: str = "text"
    superbpe_from: int | None = None
    preset: str | None = None
    recipe: str = "bpe"
    merges: tuple[int, ...] = ()
    recipe_options: Mapping[str, Any] = field(default_factory=dict)
    extends: str | None = None

    def __post_init__(self) -> None:
        for token in self.special_tokens:
            if not token or self.special_tokens.count(token) > 1:
                fault = "given twice" if token else "empty"
                raise SettingsError(
                    f"--special-token {token!r}: is {fault}; give each once, with its own text"
                )
        if self.recipe != "bpe":
            self._check_recipe()
            return
        if self.tie_order not in TIE_ORDERS:
            known = ", ".join(TIE_ORDERS)
            raise SettingsError(f"--tie-order {self.tie_order}: --recipe bpe has {known}")
        least = _BYTES + len(self.special_tokens)
        if self.superbpe_from is not None:
            self._check_stages()
        if not self.vocab_sizes or self.vocab_sizes[0] < least:
            raise SettingsError(
                f"--vocab-size {','.join(map(str, self.vocab_sizes))}: at least {least} is needed: "
                f"{_BYTES} single bytes and {len(self.special_tokens)} special tokens"
            )
        if self.min_frequency < 1:
            raise SettingsError(f"--min-frequency {self.min_frequency}: at least 1 is needed")
        if self.max_token_bytes is not None and self.max_token_bytes < 1:
            raise SettingsError(f"--max-token-bytes {self.max_token_bytes}: at least 1 is needed")

    def _check_recipe(self) -> None:
        for option, value in (
            ("--superbpe-from", self.superbpe_from),
            ("--max-token-bytes", self.max_token_bytes),
            ("--pretokenizer none", self.pretokenizer == "none" or None),
        ):
            if value is not None:
                raise SettingsError(f"{option}: does not go with --recipe {self.recipe}")
        _ = self.of_recipe  # checks what it takes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes that were asked for, of vocabularies or numbers of merges."""
        return self.vocab_sizes or self.merges

    @property
    def of_recipe(self) -> RecipeSettings:
        """The settings as another recipe than `bpe` takes them."""
        return RecipeSettings(
            self.recipe,
            self.pretokenizer,
            self.sizes,
            by_merges=not self.vocab_sizes,
            tie_order=self.tie_order or None,
            min_frequency=self.min_frequency,
            special_tokens=self.special_tokens,
            options=self.recipe_options,
        )

    def _check_stages(self) -> None:
        first = self.superbpe_from or 0
        least = _BYTES + len(self.special_tokens) + first
        if first < 1:
            raise SettingsError(f"--superbpe-from {first}: at least 1 merge is needed")
        if self.vocab_sizes and self.vocab_sizes[0] <= least:
            raise SettingsError(
                f"--superbpe-from {first}: the first stage alone makes {least:,} tokens, "
                f"and --vocab-size asks for {self.vocab_sizes[0]:,}; ask for more, or for fewer "
                "merges of the first stage"
            )
        if self.pretokenizer == "none" or self.tie_order == "first":
            wrong = "--pretokenizer none" if self.pretokenizer == "none" else "--tie-order first"
            raise SettingsError(
                f"--superbpe-from {first}: does not go with {wrong}: the first stage needs words, "
                "and the second one cannot tell which pair comes first in the text"
            )

    @property
    def first_stage(self) -> TrainSettings:
        """Settings of the first of two stages."""
        size = _BYTES + len(self.special_tokens) + (self.superbpe_from or 0)
        return replace(self, vocab_sizes=(size,), superbpe_from=None)

    @property
    def second_stage(self) -> TrainSettings:
        """Settings of the second of two stages."""
        return replace(self, pretokenizer=SUPERBPE.scheme)

    @property
    def limits(self) -> dict[str, Any]:
        """Limits of tokens as `bpe.training.make_rules` takes them, besides their length."""
        if self.superbpe_from is None:
            return {}
        return {"max_words": SUPERBPE.max_words, "forbidden_parts": SUPERBPE.forbidden_parts}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the training record and for comparison."""
        further = {"superbpe_from": self.superbpe_from, "preset": self.preset}
        further["extends"] = self.extends
        values = self._usual_values() | {name: each for name, each in further.items() if each}
        if self.recipe == "bpe":
            return values
        sizes = {} if self.vocab_sizes else {"merges": list(self.merges)}
        return values | {"recipe": self.recipe, **sizes, **self.of_recipe.options}

    def _usual_values(self) -> dict[str, Any]:
        return {
            "vocab_sizes": list(self.vocab_sizes),
            "pretokenizer": self.pretokenizer,
            "tie_order": self.tie_order,
            "min_frequency": self.min_frequency,
            "max_token_bytes": self.max_token_bytes,
            "special_tokens": list(self.special_tokens),
            "special_text": self.special_text,
        }

    @property
    def counting(self) -> CountSettings:
        """How words have to be counted for this training."""
        return CountSettings(
            pretokenizer=self.pretokenizer,
            first_positions=self.tie_order == "first",
            special_text=self.special_text,
            special_tokens=self.special_tokens,
        )


def train_sizes(
    table: pa.Table,
    settings: TrainSettings,
    *,
    record: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
    base: Tokenizer | None = None,
) -> dict[int, Tokenizer]:
    """Train to the largest vocabulary size and cut the others from it.

    Args:
        table: counts, as `bpe.counting.count_pretokens` or a count artifact gives them.
        settings: what decides the merges.
        record: stored as each tokenizer's training record.
        progress: called with merges made and merges wanted, now and then.
        base: tokenizer that is gone on from, that of `settings.extends`.

    Returns:
        One tokenizer per size that was asked for; smaller than asked where nothing is left to
        merge.

    Raises:
        CountTableError: the table was counted with another scheme or policy.
    """
    if base is not None:
        return extend_to_sizes(
            table,
            base,
            settings.vocab_sizes,
            tie_order=settings.tie_order,
            min_frequency=settings.min_frequency,
            special_tokens=settings.special_tokens,
            max_token_bytes=settings.max_token_bytes,
            training_record=record,
            progress=progress,
        )
    if settings.recipe != "bpe":
        return train_recipe(
            *read_counts(table, get_scheme(settings.pretokenizer)),
            settings.of_recipe,
            progress=progress,
            training_record=record,
        )
    largest = train(
        table,
        settings.vocab_sizes[-1],
        pretokenizer=settings.pretokenizer,
        tie_order=settings.tie_order,
        min_frequency=settings.min_frequency,
        special_tokens=settings.special_tokens,
        max_token_bytes=settings.max_token_bytes,
        progress=progress,
        training_record=dict(record),
    )
    return truncate_to_sizes(largest, settings.vocab_sizes)


def train_second_sizes(
    table: pa.Table, first_stage: Tokenizer, settings: TrainSettings, *, record: Mapping[str, Any]
) -> dict[int, Tokenizer]:
    """Go on from a first stage, across words, to the largest size; and cut the others from it.

    Args:
        table: counts of the pre-tokens of the scheme `superbpe`.
        first_stage: all of its merges stay.
        settings: of the second stage.
        record: stored as each tokenizer's training record.

    Raises:
        CountTableError: the table was counted with another scheme or policy.
    """
    largest = train_second_stage(
        table,
        first_stage,
        settings.vocab_sizes[-1],
        min_frequency=settings.min_frequency,
        max_token_bytes=settings.max_token_bytes,
        training_record=dict(record),
    )
    return truncate_to_sizes(largest, settings.vocab_sizes)


def truncate_to_sizes(largest: Tokenizer, sizes: Iterable[int]) -> dict[int, Tokenizer]:
    """The tokenizers of several sizes that one training gives."""
    return {
        size: largest if size >= largest.vocab_size else largest.truncate(size) for size in sizes
    }


def model_directories(output: str, sizes: Iterable[int]) -> dict[int, str]:
    """Where each size goes: the output folder itself for one, a folder each for several."""
    each = list(sizes)
    if len(each) == 1:
        return {each[0]: output}
    return {size: join(output, str(size)) for size in each}


def save_models(output: str, models: Mapping[int, Tokenizer], golden: str | None = None) -> None:
    """Write one model directory per size, so that none is seen in part.

    Args:
        output: see `model_directories`.
        models: tokenizers by the size that was asked for.
        golden: a file with further texts whose ids are to be stored and checked on loading.

    Raises:
        OutputError: a file cannot be written.
    """
    directories = model_directories(output, models)
    for size, tokenizer in models.items():
        with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
            model = Path(folder) / "model"
            Tokenizer(tokenizer.model).save(model)
            if golden is not None:
                extend_golden(model, golden)
            copy_files(model, directories[size])


class TrainBpe(beam.PTransform):
    """Trains tokenizers inside a pipeline, for those who do not use the command line.

    Input: `(bucket, table)` as `CountWords` gives it. Output: `(vocab_size, directory)` per model
    directory written. All counts meet on one worker, so its memory has to hold them; the command
    line trains on the driver instead and keeps the counts as an artifact.

    The lines around it, with `units` as `CountWords` shows them:

        training = TrainSettings((300, 350), pretokenizer="gpt2")
        with beam.Pipeline() as pipeline:
            tables = pipeline | beam.Create(units) | CountWords(training.counting, read)
            tables | TrainBpe("tok", training)
        tokenizer = Tokenizer.load("tok/350")

    Args:
        output: where to write; see `model_directories`.
        settings: what decides the merges. The counts must have been made with
            `settings.counting`.
    """

    def __init__(self, output: str | os.PathLike[str], settings: TrainSettings) -> None:
        super().__init__()
        self._train = _TrainModels(os.fspath(output), settings)

    def expand(self, tables: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[Any]:
        """Apply to the summed buckets."""
        return (
            tables
            | "DropBucket" >> beam.Values()
            | "OneKey" >> beam.WithKeys(0).with_output_types(tuple[int, bytes])
            | "Gather" >> beam.GroupByKey()
            | "TrainModels" >> beam.ParDo(self._train).with_output_types(tuple[int, str])
        )


class _TrainModels(beam.DoFn):
    """Adds all buckets, trains, and writes the model directories."""

    def __init__(self, output: str, settings: TrainSettings) -> None:
        self._output = output
        self._settings = settings

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, str]]:
        """Train on all tables of the one key."""
        with reported_errors():
            table = add_tables([from_ipc(data) for data in element[1]])
            models = train_sizes(
                table, self._settings, record={"settings": self._settings.to_dict()}
            )
            save_models(self._output, models)
        yield from model_directories(self._output, models).items()


def words_memory(words: int, text_bytes: int, backend: str) -> int:
    """Bytes that training on a count table takes, roughly and rather too high.

    Args:
        words: how many distinct words there are.
        text_bytes: bytes of all of them together.
        backend: `python` or `native`.
    """
    per_byte, per_word = _WORD_COSTS[backend]
    # The table itself: text, an offset and a count.
    return text_bytes * (per_byte + 1) + words * (per_word + 16)


def raw_memory(text_bytes: int, backend: str) -> int:
    """Bytes that training without a pre-tokenizer takes, roughly and rather too high."""
    return text_bytes * _RAW_COSTS[backend]


# Bytes of memory per byte of distinct word and per distinct word; per byte of text without a
# pre-tokenizer. Measured on English books (20 MB) and rounded up.
_WORD_COSTS = {"python": (160, 600), "native": (24, 64)}
_RAW_COSTS = {"python": 200, "native": 40}
