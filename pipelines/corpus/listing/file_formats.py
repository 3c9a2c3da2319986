"""What a file's name says about its format and compression, and which names are refused."""

from __future__ import annotations

import posixpath

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.listing.content_kinds import find_kind

__all__ = ["FIELD_FORMATS", "TABLE_FORMATS", "check_magic", "classify", "is_declared"]

COMPRESSIONS = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
    ".xz": "xz",
}
TEXT_SUFFIXES = frozenset((".txt", ".text", ".md", ".rst", ".log"))
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
# fmt: off
PACKED_SUFFIXES = frozenset({
    ".7z", ".br", ".deflate", ".lrz", ".lz", ".lz4", ".lzma", ".lzo", ".rar", ".snappy", ".sz",
    ".tar", ".tbz2", ".tgz", ".txz", ".tzst", ".z", ".zip", ".zlib",
})
# Formats whose bytes are not text. Programs and PyTorch's files are told by their content alone:
# `.so` also names Somali text, and `.pt` Portuguese.
BINARY_SUFFIXES = frozenset({
    ".avi", ".avro", ".bin", ".bmp", ".class", ".ckpt", ".db", ".dll", ".doc", ".docx", ".ds",
    ".duckdb", ".epub", ".exe", ".flac", ".gguf", ".gif", ".h5", ".hdf5", ".idx", ".jar", ".jpeg",
    ".jpg", ".lmdb", ".m4a", ".mds", ".mkv", ".mobi", ".mov", ".mp3", ".mp4", ".msgpack", ".npy",
    ".npz", ".odt", ".ogg", ".onnx", ".orc", ".pdf", ".pickle", ".pkl", ".png", ".ppt", ".pptx",
    ".pth", ".pyc", ".safetensors", ".sqlite", ".sqlite3", ".tfrecord", ".tfrecords", ".tif",
    ".tiff", ".wasm", ".wav", ".webm", ".webp", ".whl", ".xls", ".xlsx",
})
# fmt: on
# Text formats with structure: read as plain text, their markup would be learned and encoded too.
STRUCTURED_SUFFIXES = {
    ".json": "--input-format=jsonl if every line is a JSON object",
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


def check_magic(path: str, head: bytes, *, is_declared: bool = True) -> None:
    """Refuse a file that is taken for text and starts like something else.

    Args:
        path: the file, for the message.
        head: its first `content_kinds.HEAD_BYTES` bytes.
        is_declared: whether the name says that it is text.

    Raises:
        BadFileError: `head` is that of a compressed or binary format.
    """
    kind = find_kind(head, len(head), is_declared=is_declared)
    if kind is not None:
        raise BadFileError(f"{path}: {kind.refusal}")


def is_declared(path: str) -> bool:
    """Whether a file's name says what it holds, compressed or not."""
    stem, suffix = posixpath.splitext(posixpath.basename(path).lower())
    if suffix in COMPRESSIONS:
        suffix = posixpath.splitext(stem)[1]
    return suffix in TEXT_SUFFIXES or suffix in ROW_SUFFIXES or suffix in TABLE_SUFFIXES
