"""Unigram vocabularies, trained by `sentencepiece` on counted words (Kudo 2018).

What that library does by its own settings is set here, so that the same counts give the same
pieces: no normalization, every character kept, a fixed number of threads (its sums are float32),
and seed pieces that are counted exactly (`bpe.recipes.unigram_seeds`). Texts are encoded field by
field, between single blanks.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe.engines.library import import_library
from bpe.engines.library_model import LibraryModel
from bpe.errors import CountTableError, SettingsError
from bpe.formats.sentencepiece_model import drop_paths
from bpe.recipes.registry import RecipeSettings
from bpe.recipes.unigram_seeds import (
    BLANK,
    TrainingWords,
    add_substrings,
    count_substrings,
    pick_seeds,
    training_words,
)
from bpe.tokenizer import Tokenizer

__all__ = ["most_seeds", "select_words", "train_sizes", "train_with_seeds"]

_PASSED_ON = (
    *("byte_fallback", "split_by_unicode_script", "split_by_number", "split_digits"),
    *("max_sentencepiece_length", "seed_sentencepiece_size", "num_threads"),
)


def train_sizes(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    firsts: pa.Int64Array | None,
    settings: RecipeSettings,
    *,
    progress: Callable[[int, int], None] | None,
    training_record: Mapping[str, Any],
) -> dict[int, Tokenizer]:
    """Train each size; see `bpe.recipes.registry.Trainer`."""
    del firsts, progress
    chosen = select_words(words, counts, settings)
    longest = settings.options["max_sentencepiece_length"]
    total = add_substrings([])
    for part in count_substrings(chosen.words, chosen.counts, longest):
        total = add_substrings([total, part])
    seeds = pick_seeds(total, most_seeds(chosen, settings))
    return train_with_seeds(chosen, seeds, settings, training_record=training_record)


def select_words(
    words: pa.LargeBinaryArray, counts: pa.Int64Array, settings: RecipeSettings
) -> TrainingWords:
    """The words to train on, ascending by bytes.

    Those rarer than `min_frequency`, and those beyond the `max_words` most frequent (ties by
    bytes), are left out, and counted.

    Raises:
        CountTableError: no word is left.
    """
    found = training_words(words, counts)
    table = pa.table({"word": found.words.cast(pa.large_binary()), "count": found.counts})
    order = pc.sort_indices(table, [("count", "descending"), ("word", "ascending")])
    kept = table.take(order[: settings.options["max_words"]])
    kept = kept.filter(pc.greater_equal(kept["count"], settings.min_frequency or 1))
    kept = kept.sort_by("word").combine_chunks()
    if not kept.num_rows:
        raise CountTableError("no word is left to train on: give more text")
    uses = (pc.sum(found.counts).as_py() or 0) - pc.sum(kept["count"]).as_py()
    return TrainingWords(
        pa.concat_arrays(kept["word"].chunks).cast(pa.large_string()),
        pa.concat_arrays(kept["count"].chunks),
        found.left_out_words + table.num_rows - kept.num_rows,
        found.left_out_uses + uses,
    )


def most_seeds(chosen: TrainingWords, settings: RecipeSettings) -> int:
    """How many seeds there may be: single characters are added to them."""
    alphabet = len(_characters(chosen)) + 1
    return max(0, int(settings.options["seed_sentencepiece_size"]) - alphabet)


def train_with_seeds(
    chosen: TrainingWords,
    seeds: pa.Table,
    settings: RecipeSettings,
    *,
    training_record: Mapping[str, Any],
) -> dict[int, Tokenizer]:
    """Train each size from seeds that are counted.

    Args:
        chosen: of `select_words`.
        seeds: of `pick_seeds`, in order.
        settings: of the recipe.
        training_record: kept with each tokenizer.

    Raises:
        SettingsError: sentencepiece does not train by these settings.
        BackendError: it is not installed.
    """
    library = import_library("sentencepiece")
    with tempfile.TemporaryDirectory(prefix="beam-bpe-") as folder:
        table, pieces = Path(folder) / "words.tsv", Path(folder) / "seeds.tsv"
        _write_rows(table, chosen.words, chosen.counts)
        _write_rows(pieces, seeds["word"], seeds["count"])
        given = {
            **{name: settings.options[name] for name in _PASSED_ON},
            "control_symbols": list(settings.special_tokens),
            "user_defined_symbols": list(settings.options["user_defined_symbols"]),
            "required_chars": _characters(chosen),
            "input": str(table),
            # An empty file of seeds is as none.
            **({"seed_sentencepieces_file": str(pieces)} if seeds.num_rows else {}),
        }
        contents = {size: _train(library, given, size) for size in settings.sizes}
    return {
        size: Tokenizer(
            LibraryModel(
                "sentencepiece_fields",
                content,
                {
                    "vocab_size": size,
                    "min_frequency": settings.min_frequency,
                    **settings.options,
                    "sentencepiece": library.__version__,
                    "seeds": seeds.num_rows,
                    "left_out_words": chosen.left_out_words,
                    "left_out_uses": chosen.left_out_uses,
                    **training_record,
                },
            )
        )
        for size, content in contents.items()
    }


def _train(library: Any, given: Mapping[str, Any], size: int) -> bytes:
    """The `.model` of one size."""
    content = io.BytesIO()
    try:
        library.SentencePieceTrainer.train(
            **given,
            input_format="tsv",
            model_writer=content,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=True,
            character_coverage=1.0,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            shuffle_input_sentence=False,
            input_sentence_size=0,
            minloglevel=2,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingsError(
            f"vocabulary size {size}: sentencepiece does not train it: {str(error)[:500]}"
        ) from error
    return drop_paths(content.getvalue())


def _characters(chosen: TrainingWords) -> str:
    """Every character of the words, once, ascending."""
    # By words of some megabytes: each character of a part becomes an object.
    found: set[str] = set()
    for start in range(0, len(chosen.words), 1 << 16):
        found.update(*chosen.words[start : start + (1 << 16)].to_pylist())
    return "".join(sorted(found - {BLANK}))


def _write_rows(path: Path, texts: pa.LargeStringArray, counts: pa.Int64Array) -> None:
    """Rows of a text and a count, in UTF-8 with line feeds."""
    rows = pc.binary_join_element_wise(
        texts.cast(pa.large_string()),
        counts.cast(pa.large_string()),
        pa.scalar("\t", pa.large_string()),
    )
    with path.open("wb") as file:
        for start in range(0, len(rows), 1 << 16):
            part = rows[start : start + (1 << 16)].to_pylist()
            file.write("".join(f"{row}\n" for row in part).encode())
