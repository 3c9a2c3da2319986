"""Which shards of a finished output a reader takes: those of one split, or all if there is none."""

from __future__ import annotations

from bpe.errors import SettingsError
from schemas.sidecars import Manifest, ShardSidecar

__all__ = ["shards_of_split", "split_names"]


def split_names(manifest: Manifest) -> list[str]:
    """Names of the splits, in the order of `--split`; empty if the documents were not divided."""
    return [name for name, _ in manifest.settings.get("splits") or ()]


def shards_of_split(
    directory: str, manifest: Manifest, split: str | None, option: str
) -> list[ShardSidecar]:
    """The shards of a split, in order.

    Args:
        directory: whose manifest it is, for messages.
        manifest: of a finished output.
        split: its name; None for an output without splits.
        option: what the split was given by, for messages.

    Raises:
        SettingsError: no such split, or several and none named.
    """
    names = split_names(manifest)
    if split is None and not names:
        return manifest.shards
    if split is None:
        raise SettingsError(
            f"{directory}: its documents are divided into {', '.join(names)}; name one with "
            f"{option}"
        )
    if split not in names:
        known = f"it has {', '.join(names)}" if names else "it was encoded without --split"
        raise SettingsError(f"{option} {split}: {directory} has no such split; {known}")
    return [shard for shard in manifest.shards if shard.split == split]
