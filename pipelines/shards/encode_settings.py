"""What decides the shards of an encoding run, besides the input itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

from bpe.errors import SettingsError
from pipelines.corpus.plan import Plan
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.settings import digest_of, reading_settings
from pipelines.storage.output_names import Split, check_splits
from pipelines.storage.wording import describe_differences
from schemas.sidecars import EncodeValues

__all__ = ["COMPRESSIONS", "PACK_MODES", "PACK_TAILS", "SHUFFLES", "EncodeSettings", "RunTarget"]

COMPRESSIONS = ("none", "lz4", "zstd")
PACK_MODES = ("concat", "best-fit", "pad")
PACK_TAILS = ("pad", "drop")
SHUFFLES = ("none", "shard", "global")
# Longer rows would soon overflow the 32-bit offsets of Arrow lists.
LARGEST_PACK = 1 << 26


class EncodeSettings(msgspec.Struct, frozen=True):
    """What decides the shards, besides the input itself.

    Attributes:
        tokenizer_digest: of the tokenizer in the output.
        read: how the input files are read.
        bos: id put before each document, or None.
        eos: id put after each document, or None.
        special_text: what special tokens in the text mean: `text`, `allow` or `reject`.
        shard_bytes: a shard closes once it holds so many bytes of text.
        max_row_tokens: most ids in a row; without effect on packed rows.
        compression: of the shards' buffers: `none`, `lz4` or `zstd`.
        splits: names and shares of the folders that documents are divided among by hash
            (`pipelines.shards.split_documents`); empty for a single output.
        pack: ids in each row; None for a row per document.
        pack_mode: how rows are filled: `concat`, `best-fit` or `pad`
            (`pipelines.encoding.pack_rows`).
        pack_tail: what becomes of the last, incomplete row of `concat`: `pad` or `drop`.
        pad: id that fills rows up; None where nothing has to be filled.
        pack_window: `best-fit` packs after so many ids at a time.
        shuffle: `none`, `shard` or `global` (`pipelines.encoding.shuffle_rows`).
        seed: of splits and shuffle.

    Raises:
        SettingsError: a value that cannot be honoured; names the option.
    """

    tokenizer_digest: str
    read: ReadOptions
    bos: int | None = None
    eos: int | None = None
    special_text: str = "text"
    shard_bytes: int = 256 << 20
    max_row_tokens: int = 1 << 24
    compression: str = "none"
    splits: tuple[Split, ...] = ()
    pack: int | None = None
    pack_mode: str = "concat"
    pack_tail: str = "pad"
    pad: int | None = None
    pack_window: int = 1 << 24
    shuffle: str = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_row_tokens < 1:
            raise SettingsError(f"--max-row-tokens {self.max_row_tokens}: at least 1 is needed")
        _check_choice("--compression", self.compression, COMPRESSIONS)
        _check_choice("--shuffle", self.shuffle, SHUFFLES)
        check_splits(self.splits)
        if self.pack is None:
            return
        _check_choice("--pack-mode", self.pack_mode, PACK_MODES)
        _check_choice("--pack-tail", self.pack_tail, PACK_TAILS)
        if not 1 <= self.pack <= LARGEST_PACK:
            raise SettingsError(
                f"--pack {self.pack}: a row has at least 1 and at most {LARGEST_PACK} ids"
            )
        if self.pack_tail == "drop" and self.pack_mode != "concat":
            raise SettingsError(
                f"--pack-tail drop: with --pack-mode {self.pack_mode} any row may be incomplete, "
                "and all are filled up; it belongs to --pack-mode concat"
            )
        if self.pack_window < 1:
            raise SettingsError(f"pack_window={self.pack_window}: at least 1 is needed")
        if self.pad is None and self.pack_tail == "pad":
            raise SettingsError(
                "--pack: rows that are not full need an id to fill them with; give --pad-id"
                + (", or --pack-tail drop" if self.pack_mode == "concat" else "")
            )

    @property
    def split_names(self) -> tuple[str, ...]:
        """Folders of the shards below the output, in order; one empty name without splits."""
        return tuple(name for name, _ in self.splits) or ("",)

    @property
    def packs_best_fit(self) -> bool:
        """Whether documents are packed where they fit, in any order."""
        return self.pack is not None and self.pack_mode == "best-fit"

    def to_dict(self) -> EncodeValues:
        """Plain values for digests, manifests and comparison; None for what has no effect."""
        packs = self.pack is not None
        seeded = bool(self.splits) or self.shuffle != "none"
        values = {
            "tokenizer_digest": self.tokenizer_digest,
            "bos": self.bos,
            "eos": self.eos,
            "special_text": self.special_text,
            "shard_bytes": self.shard_bytes,
            "max_row_tokens": None if packs else self.max_row_tokens,
            "compression": self.compression,
            "splits": [list(split) for split in self.splits],
            "pack": self.pack,
            "pack_mode": self.pack_mode if packs else None,
            "pack_tail": self.pack_tail if packs else None,
            "pad": self.pad if packs else None,
            "pack_window": self.pack_window if self.packs_best_fit else None,
            "shuffle": self.shuffle,
            "seed": self.seed if seeded else None,
            **reading_settings(self.read),
        }
        return cast("EncodeValues", values)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], read: ReadOptions) -> EncodeSettings:
        """The settings that `to_dict` gave.

        Args:
            settings: plain values, as a manifest has them.
            read: the options for reading among them (`ReadOptions.from_settings`).

        Raises:
            SettingsError: they are damaged, or those of another version.
        """
        names = [name for name in cls.__struct_fields__ if settings.get(name) is not None]
        values = {name: settings[name] for name in names}
        try:
            found = msgspec.convert({**values, "read": {}}, cls)
        except msgspec.ValidationError as error:
            raise SettingsError(f"the settings are damaged: {error}") from error
        found = msgspec.structs.replace(found, read=read)
        differences = describe_differences(settings, found.to_dict())
        if differences:
            raise SettingsError(
                f"the settings are those of another version ({'; '.join(differences)}); use the "
                "version that wrote them"
            )
        return found

    @property
    def digest(self) -> str:
        """SHA-256 over `to_dict()`; a sidecar with another one belongs to another run."""
        return digest_of(self.to_dict())


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{option} must be one of {', '.join(choices)}, not {value!r}")


class RunTarget(Protocol):
    """What the transforms of a run need to know of it: an `EncodeRun` has these."""

    output: str
    settings: EncodeSettings
    plan: Plan
    bucket_count: int
