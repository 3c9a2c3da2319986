"""What a file's name says about its format and compression, and which names are refused."""

from __future__ import annotations

import posixpath

from bpe.errors import BadFileError, SettingsError

__all__ = ["FIELD_FORMATS", "TABLE_FORMATS", "check_magic", "classify"]

COMPRESSIONS = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
    ".xz": "xz",
}
ROW_SUFFIXES = {
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
# Tables in formats of their own, which compress inside.
TABLE_SUFFIXES = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
TABLE_FORMATS = frozenset(TABLE_SUFFIXES.values())
"""Formats that are read by column through Arrow; their documents have row numbers for places."""
FIELD_FORMATS = TABLE_FORMATS | {"jsonl", "csv", "tsv"}
"""Formats whose rows have fields, of which `--text-field` and `--id-field` name two."""

# Names that say "compressed" or "archive", but that no reader here unpacks.
PACKED_SUFFIXES = frozenset(
    (".7z", ".br", ".lz4", ".lzma", ".rar", ".tar", ".tbz2", ".tgz", ".txz", ".z", ".zip")
)
# Formats whose bytes are not text.
# fmt: off
BINARY_SUFFIXES = frozenset({
    ".avro", ".bin", ".doc", ".docx", ".epub", ".gif", ".h5", ".hdf5", ".jpeg", ".jpg", ".mp3",
    ".mp4", ".npy", ".npz", ".orc", ".pdf", ".pickle", ".pkl", ".png", ".pt", ".safetensors",
    ".sqlite", ".tfrecord", ".wav", ".xls", ".xlsx",
})
# fmt: on
# Text formats with structure: read as plain text, their markup would be learned and encoded too.
STRUCTURED_SUFFIXES = {
    ".json": "--input-format=jsonl if every line is a JSON object",
}

MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"%PDF-": "PDF",
}


def classify(path: str, input_format: str) -> tuple[str, str]:
    """Format (as in `ReadOptions`, but for `auto`) and compression (`none`, `gzip`, …) of a file.

    Args:
        path: name or address of the file; only its last component counts.
        input_format: as in `ReadOptions`; anything but `auto` decides the format.

    Raises:
        SettingsError: the name is that of a format that cannot be read; says what to do.
    """
    stem, suffix = posixpath.splitext(posixpath.basename(path).lower())
    compression = COMPRESSIONS.get(suffix, "none")
    if compression != "none":
        suffix = posixpath.splitext(stem)[1]
    if suffix in PACKED_SUFFIXES:
        raise SettingsError(
            f"{path}: {suffix} files are not read; unpack it first "
            f"(plain files, .gz, .zst, .bz2 and .xz are read), or leave it out of --input"
        )
    if suffix in BINARY_SUFFIXES:
        raise SettingsError(
            f"{path}: {suffix} files are not read; convert it to JSON lines or text, "
            f"or leave it out of --input"
        )
    if suffix in TABLE_SUFFIXES:
        return _table_format(path, suffix, input_format, compression), "none"
    if input_format in TABLE_FORMATS and compression != "none":
        raise SettingsError(f"{path}: {_PACKED_TABLE.format(name=input_format)}")
    if input_format != "auto":
        return input_format, compression
    if suffix in STRUCTURED_SUFFIXES:
        raise SettingsError(
            f"{path}: the name does not say how to read it; {STRUCTURED_SUFFIXES[suffix]}, "
            f"or pass --input-format=text or lines to take its bytes as they are"
        )
    return ROW_SUFFIXES.get(suffix, "text"), compression


_PACKED_TABLE = "packed {name} files are not read; unpack it first, since {name} packs inside"


def _table_format(path: str, suffix: str, input_format: str, compression: str) -> str:
    format_ = TABLE_SUFFIXES[suffix]
    if compression != "none":
        raise SettingsError(f"{path}: {_PACKED_TABLE.format(name=format_)}")
    if input_format not in {"auto", format_}:
        raise SettingsError(
            f"{path}: {suffix} files are not read with --input-format={input_format}; leave it out "
            f"of --input, or the format to be told by the name"
        )
    return format_


def check_magic(path: str, head: bytes) -> None:
    """Refuse a file that is named like plain text and starts like something else.

    Args:
        path: the file, for the message.
        head: its first bytes, 8 are enough.

    Raises:
        BadFileError: `head` starts with the magic number of a compressed or binary format.
    """
    for magic, name in MAGIC.items():
        if head.startswith(magic):
            raise BadFileError(
                f"{path}: the name says plain text, but the content starts like a {name} file; "
                f"give it the name of its format, or pass --input-format=text to take its bytes "
                f"as they are"
            )
