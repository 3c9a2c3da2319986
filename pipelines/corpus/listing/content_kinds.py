"""What the first bytes of a file say it is, where that is anything but text.

Nothing here is a guess that damaged or old-fashioned text could meet: a format counts as found if
its magic number is there with the bytes that must follow it, if a checksum agrees, or if the
decoder of the format takes all of the head. Names that do not say what the file holds are also
looked at for what marks no format but binary data: many control characters of many kinds.
"""

from __future__ import annotations

import codecs
import re
import zlib
from typing import NamedTuple

__all__ = ["HEAD_BYTES", "Kind", "find_kind", "find_pointer"]

HEAD_BYTES = 4096
"""So many bytes of a file's beginning are looked at."""

_UNPACK = "unpack it first"
_CONVERT = "convert it to JSON lines or text"
_NAME = "give it the name of its format, such as {}"
_LEAST_BYTES = 64
# A stream that a decoder takes so far, without an error, is none by chance.
_LONG_BYTES = 1000


class Kind(NamedTuple):
    """A format: its name for people, and what to do to have the file read."""

    name: str
    remedy: str

    @property
    def refusal(self) -> str:
        """Why a file of this format is not read, as the rest of a sentence."""
        return (
            f"the content starts like a {self.name} file; {self.remedy}, or pass "
            "--input-format=text to take its bytes as they are"
        )


_BINARY = Kind("binary", _CONVERT)
_ZLIB = Kind("zlib", _UNPACK)
_DEFLATE = Kind("deflate", _UNPACK)

_POINTERS = {
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v\d+\r?\n(?:ext-[^\n]*\n)*oid ": Kind(
        "Git LFS pointer", "fetch the content with `git lfs pull`"
    ),
    rb"/annex/objects/[^\s/]+(?:\s|\Z)": Kind(
        "git-annex pointer", "fetch the content with `git annex get`"
    ),
}
_TEXT_ENCODINGS = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": Kind("UTF-32", "convert it to UTF-8"),
    rb"\xff\xfe|\xfe\xff": Kind("UTF-16", "convert it to UTF-8"),
}
# Of letters that text may begin with, more is asked than the magic number alone.
_MAGIC = {
    rb"\x1f\x8b": Kind("gzip", _NAME.format(".gz")),
    rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18": Kind("zstd", _NAME.format(".zst")),
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": Kind("bzip2", _NAME.format(".bz2")),
    rb"\xfd7zXZ\0": Kind("xz", _NAME.format(".xz")),
    rb"PAR[1E][\0-\x08\x0e-\x1f\x7f-\xff]": Kind("Parquet", _NAME.format(".parquet")),
    rb"ARROW1\0\0": Kind("Arrow", _NAME.format(".arrow")),
    # The continuation mark, a length below 16 MiB, and where the root table lies.
    rb"\xff{4}.{3}\0.\0{3}": Kind("Arrow stream", _NAME.format(".arrows")),
    rb"PK(?:\x03\x04|\x05\x06|\x07\x08)": Kind("zip", _UNPACK),
    rb"7z\xbc\xaf\x27\x1c": Kind("7-Zip", _UNPACK),
    rb"Rar!\x1a\x07": Kind("RAR", _UNPACK),
    rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18": Kind("LZ4", _UNPACK),
    rb"LZIP[\0\x01]": Kind("lzip", _UNPACK),
    rb"\x89LZO\0\r\n\x1a\n": Kind("lzop", _UNPACK),
    rb"\x5d\0\0.{2}(?:\xff{8}|.{4}\0{4})\0": Kind("lzma", _UNPACK),
    rb"\xff\x06\0\0sNaPpY": Kind("Snappy", _UNPACK),
    rb"\x1f\x9d": Kind("compress", _UNPACK),
    rb".{257}ustar(?:\0|  \0)": Kind("tar", _UNPACK),
    rb"!<arch>\n(?:.{58}`\n|\Z)": Kind("ar", _UNPACK),
    rb"MSCF\0{4}": Kind("cabinet", _UNPACK),
    rb"FEA1\0{4}": Kind("Feather 1", _CONVERT),
    rb"Obj\x01": Kind("Avro", _CONVERT),
    rb"ORC\n?[\0-\x08\x0e-\x1f\x7f-\xff]": Kind("ORC", _CONVERT),
    rb"SEQ[\x01-\x08]": Kind("Hadoop sequence", _CONVERT),
    rb"SQLite format 3\0": Kind("SQLite", _CONVERT),
    rb".{8}DUCK.\0{7}": Kind("DuckDB", _CONVERT),
    rb"\x89HDF\r\n\x1a\n": Kind("HDF5", _CONVERT),
    rb"\x93NUMPY": Kind("NumPy", _CONVERT),
    rb"GGUF(?:.\0{3}|\0{3}.)": Kind("GGUF", _CONVERT),
    rb"(?!\0{4}).{4}\0{4}\{[\"\s]": Kind("safetensors", _CONVERT),
    rb"\x80[\x04\x05]\x95.{6}\0\0|\x80\x02\x8a\x0al\xfc\x9cF\xf9": Kind("pickle", _CONVERT),
    rb"MMIDIDX\0|TNTIDX\0": Kind("token index", _CONVERT),
    rb"\x7fELF": Kind("ELF", _CONVERT),
    rb"\xca\xfe\xba\xbe": Kind("Java class", _CONVERT),
    rb"[\xce\xcf]\xfa\xed\xfe": Kind("Mach-O", _CONVERT),
    rb"\0asm": Kind("WebAssembly", _CONVERT),
    rb"MZ.{58}(?s:.{4,256})PE\0\0": Kind("Windows program", _CONVERT),
    rb"%PDF-[12]\.\d[ \t]*[\r\n%]": Kind("PDF", _CONVERT),
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": Kind("Microsoft Office", _CONVERT),
    rb"\x89PNG\r\n\x1a\n": Kind("PNG", _CONVERT),
    rb"\xff\xd8\xff": Kind("JPEG", _CONVERT),
    # The high byte of the width.
    rb"GIF8[79]a.[\0-\x08\x0e-\x1f]": Kind("GIF", _CONVERT),
    rb"II\*\0|MM\0\*": Kind("TIFF", _CONVERT),
    rb"RIFF.{4}(?:WEBP|WAVE|AVI )": Kind("RIFF", _CONVERT),
    rb"OggS\0|fLaC\0|ID3[\x02-\x04]": Kind("audio", _CONVERT),
    rb"\0\0\0.ftyp|\x1aE\xdf\xa3": Kind("video", _CONVERT),
}


def _compiled(kinds: dict[bytes, Kind]) -> tuple[re.Pattern[bytes], list[Kind]]:
    """One pattern for all, whose groups are in the order of the kinds."""
    pattern = b"|".join(b"(" + each + b")" for each in kinds)
    return re.compile(pattern, re.DOTALL), list(kinds.values())


_POINTER_PATTERN = _compiled(_POINTERS)
_MAGIC_PATTERN = _compiled({**_POINTERS, **_MAGIC, **_TEXT_ENCODINGS})


def find_pointer(head: bytes) -> Kind | None:
    """The kind of pointer that a version-control system left in place of a file, if it is one."""
    return _match(_POINTER_PATTERN, head)


def find_kind(head: bytes, size: int, *, is_declared: bool) -> Kind | None:
    """The format that a file is of, if that is plainly none of text.

    Args:
        head: its first `HEAD_BYTES` bytes, or all.
        size: of the file; less than the truth if `head` is all that is known of a packed one.
        is_declared: whether the name says that it is text, so that only what is certain counts.
    """
    found = _match(_MAGIC_PATTERN, head)
    if found is not None:
        return found
    if _is_tfrecord(head):
        return Kind("TFRecord", _CONVERT)
    if _is_mds(head, size):
        return Kind("MDS shard", _CONVERT)
    is_all = size <= len(head)
    if (
        _is_zlib_header(head)
        and not head.isascii()
        and _inflates(head, zlib.MAX_WBITS, is_all=is_all)
    ):
        return _ZLIB
    return None if is_declared else _find_unmarked(head, is_all=is_all)


def _match(pattern: tuple[re.Pattern[bytes], list[Kind]], head: bytes) -> Kind | None:
    found = pattern[0].match(head)
    return None if found is None or found.lastindex is None else pattern[1][found.lastindex - 1]


def _find_unmarked(head: bytes, *, is_all: bool) -> Kind | None:
    """Formats without a magic number, which text might, in theory, be taken for."""
    if _is_msgpack(head):
        return Kind("MessagePack", _CONVERT)
    if not head.isascii() and _inflates(head, -zlib.MAX_WBITS, is_all=is_all):
        return _DEFLATE
    return _BINARY if _is_binary(head) else None


def _is_zlib_header(head: bytes) -> bool:
    return len(head) > 2 and head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0


def _inflates(head: bytes, wbits: int, *, is_all: bool) -> bool:
    """Whether all of a head is a stream of deflate, up to its end if the head is all there is."""
    if len(head) < (_LEAST_BYTES if is_all and wbits < 0 else 8 if is_all else _LONG_BYTES):
        return False
    stream = zlib.decompressobj(wbits)
    try:
        stream.decompress(head)
    except zlib.error:
        return False
    return stream.eof and not stream.unused_data if is_all else not stream.unused_data


def _is_tfrecord(head: bytes) -> bool:
    """Whether there is a length, and after it the masked CRC-32C of its eight bytes."""
    if len(head) < 12 or head[5:8] != bytes(3):  # no record has a terabyte
        return False
    crc = 0xFFFFFFFF
    for byte in head[:8]:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return masked == int.from_bytes(head[8:12], "little")


def _is_mds(head: bytes, size: int) -> bool:
    """Whether there are a number, so many rising offsets and one more, and the columns as JSON."""
    count = int.from_bytes(head[:4], "little")
    table = 4 * (count + 2)
    if not count or not table < int.from_bytes(head[4:8], "little") <= size:
        return False
    known = head[4 : min(table, len(head) // 4 * 4)]
    offsets = [int.from_bytes(known[at : at + 4], "little") for at in range(0, len(known), 4)]
    if len(offsets) < 2 or offsets != sorted(offsets) or offsets[-1] > size:
        return False
    return head[table : table + 1] in {b"{", b""}


_KEY = re.compile(rb"[A-Za-z_][\w .:/-]*")
_MAPS = re.compile(
    rb"(?:[\x91-\x9f]|\xdc..|\xdd....)?"
    rb"(?P<map>(?:[\x81-\x8f]|\xde..|\xdf....)(?:[\xa1-\xbf]|\xd9.))",
    re.DOTALL,
)


def _is_msgpack(head: bytes) -> bool:
    """Whether it begins with a map, in a list or not, whose first key is a name.

    Some letters of Japanese and of DOS have such bytes too. What decides is after the first map:
    nothing, or another that begins in the same way. A map longer than the head is one if its first
    value is a string of UTF-8 up to there.
    """
    found = _MAPS.match(head)
    if found is None:
        return False
    length = found[0][-1] if found[0][-2:-1] == b"\xd9" else found[0][-1] & 0x1F
    at = found.end() + length
    if at >= len(head) or _KEY.fullmatch(head[found.end() : at]) is None:
        return False
    end = _msgpack_end(head, found.start("map"))
    if end <= len(head):
        return end == len(head) or head.startswith(head[found.start("map") : at], end)
    if len(head) < HEAD_BYTES or not 0xD9 <= head[at] <= 0xDB:
        return False
    start = at + 1 + _MSGPACK_SIZED[head[at]]
    size = int.from_bytes(head[at + 1 : start], "big")
    return start + size > len(head) and _is_utf8_start(head[start:])


def _is_utf8_start(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


# After the first byte of an object: so many bytes, or bytes of a length and so many bytes.
_MSGPACK_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4}
_MSGPACK_FIXED |= {0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
_MSGPACK_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_MSGPACK_NESTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def _msgpack_end(head: bytes, at: int) -> int:
    """Where the object that begins at `at` ends; after the head if it does not end in it."""
    missing = 1
    while missing and at < len(head):
        byte = head[at]
        at, missing = at + 1, missing - 1
        width = _MSGPACK_NESTED.get(byte, 0) or _MSGPACK_SIZED.get(byte, 0)
        size = int.from_bytes(head[at : at + width], "big")
        if 0x80 <= byte < 0xA0:
            missing += (byte & 0xF) * (1 if byte & 0x10 else 2)
        elif 0xA0 <= byte < 0xC0:
            at += byte & 0x1F
        elif byte in _MSGPACK_NESTED:
            at, missing = at + width, missing + size * (1 if byte < 0xDE else 2)
        elif byte in _MSGPACK_SIZED:
            at += width + size + (0xC7 <= byte <= 0xC9)
        else:
            at += _MSGPACK_FIXED.get(byte, 0)
    return at if not missing else len(head) + 1


# Bell, backspace, tabulators, line and page ends and escape occur in text, NUL where it is damaged.
_CONTROLS = bytes(set(range(32)) - {0, 7, 8, 9, 10, 11, 12, 13, 27})
_NO_CONTROLS = bytes(set(range(256)) - set(_CONTROLS))
_FEWEST_CONTROLS = 8
_CONTROL_SHARE = 0.05


def _is_binary(head: bytes) -> bool:
    """Whether more than one byte in twenty is a control character, and these are of many kinds.

    Numbers, packed and encrypted data have twice as many; no encoding of text has any.
    """
    found = head.translate(None, _NO_CONTROLS)
    share = _CONTROL_SHARE * (len(head) - head.count(0))
    return len(set(found)) >= _FEWEST_CONTROLS and len(found) >= share
