"""Byte streams give every byte of a file, or an error that names what is wrong with it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import BadFileError
from pipelines.corpus.compression import byte_streams, compressed_members
from pipelines.corpus.compression.byte_streams import ByteStream, check_whole, open_stream
from pipelines.corpus.compression.compressed_members import member_chunks
from pipelines.corpus.compression.zstd_frames import FrameError, zstd_chunks
from pipelines.corpus.listing.inputs import InputFile, ReadOptions, list_inputs

TEXT = b"".join(b"line %d of a text that packs well\n" % number for number in range(200))
PARTS = [TEXT[:1000], b"", TEXT[1000:1001], TEXT[1001:]]

Packer = Callable[[list[bytes]], bytes]


def gzip_members(parts: list[bytes]) -> bytes:
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def zstd_frames(parts: list[bytes]) -> bytes:
    packer = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(packer.compress(part) for part in parts)


def zstd_streamed(parts: list[bytes]) -> bytes:
    """Frames without checksum and content size, with a skippable frame between them."""
    packed = b"\x50\x2a\x4d\x18\x05\0\0\0extra"
    for part in parts:
        packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        packed += packer.compress(part[:500]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        packed += packer.compress(part[500:]) + packer.flush()
    return packed


def bzip2_streams(parts: list[bytes]) -> bytes:
    return b"".join(bz2.compress(part) for part in parts)


def xz_streams(parts: list[bytes]) -> bytes:
    """Streams of each kind of check that says something, with padding after."""
    checks = [lzma.CHECK_CRC64, lzma.CHECK_CRC32, lzma.CHECK_SHA256, lzma.CHECK_CRC64]
    return b"".join(
        lzma.compress(part, check=check) for part, check in zip(parts, checks, strict=False)
    )


PACKERS: dict[str, tuple[str, Packer]] = {
    "bzip2": ("a.txt.bz2", bzip2_streams),
    "xz": ("a.txt.xz", xz_streams),
    "gzip": ("a.txt.gz", gzip_members),
    "zstd": ("a.txt.zst", zstd_frames),
    "zstd-streamed": ("a.txt.zst", zstd_streamed),
}
packers = pytest.mark.parametrize("packer", PACKERS)


def listed(path: Path) -> InputFile:
    return list_inputs(path, ReadOptions()).files[0]


def read_all(path: Path, size: int = 1 << 16) -> bytes:
    with closing(open_stream(listed(path))) as stream:
        pieces = []
        while piece := stream.read(size):
            pieces.append(piece)
        assert all(len(piece) == size for piece in pieces[:-1])
        assert stream.position == sum(map(len, pieces))
        return b"".join(pieces)


@packers
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_members_and_frames_are_read_to_the_last(packer: str, size: int, tmp_path: Path) -> None:
    name, pack = PACKERS[packer]
    path = tmp_path / name
    path.write_bytes(pack(PARTS))
    assert read_all(path, size) == TEXT


def test_small_members_take_little_more_memory_than_their_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b""))
    members = (b"%9d\n" % number for number in range(100_000))
    stream = ByteStream(listed(path), io.BytesIO(), members)
    tracemalloc.start()
    try:
        assert len(stream.read(1_000_000)) == 1_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # An object of 43 bytes each, its place in a list, and the whole twice.
    assert peak < 12_000_000


@packers
@pytest.mark.parametrize("read_bytes", [1, 3, 64])
def test_small_reads_of_the_stored_file_change_nothing(
    packer: str, read_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_streams, "READ_BYTES", read_bytes)
    name, pack = PACKERS[packer]
    path = tmp_path / name
    path.write_bytes(pack(PARTS))
    assert read_all(path) == TEXT


@packers
def test_a_stream_cut_anywhere_but_between_members_is_truncated(
    packer: str, tmp_path: Path
) -> None:
    name, pack = PACKERS[packer]
    whole = pack(PARTS)
    between = {len(pack(PARTS[:count])) for count in range(1, len(PARTS) + 1)}
    if packer == "zstd-streamed":
        between.add(len(pack([])))
    path = tmp_path / name
    for size in range(1, len(whole) + 1):
        path.write_bytes(whole[:size])
        if size in between:
            assert TEXT.startswith(read_all(path))
        else:
            with pytest.raises(BadFileError, match=r"truncated.*copy the file again") as caught:
                check_whole(listed(path))
            assert str(path) in str(caught.value)
            assert f"at byte {size} " in str(caught.value)


@pytest.mark.parametrize("packer", ["gzip", "zstd", "bzip2", "xz"])
def test_no_changed_byte_goes_unnoticed(packer: str, tmp_path: Path) -> None:
    name, pack = PACKERS[packer]
    whole = pack(PARTS[:1])
    path = tmp_path / name
    # Bytes 4 to 9 of a gzip header (time, flags, system) decide nothing about the content.
    for place in range(10 if packer == "gzip" else 0, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        try:
            content = read_all(path)
        except BadFileError as error:
            assert str(path) in str(error)  # noqa: PT017  it may also be read right
        else:
            assert content == PARTS[0]


@packers
def test_garbage_after_the_last_member_is_an_error(packer: str, tmp_path: Path) -> None:
    name, pack = PACKERS[packer]
    path = tmp_path / name
    whole = pack(PARTS)
    path.write_bytes(whole + b"garbage")
    with pytest.raises(BadFileError, match=f"something else, from byte {len(whole)} "):
        read_all(path)


def test_zero_bytes_after_the_last_gzip_member_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip_members(PARTS) + bytes(3 << 20))
    assert read_all(path) == TEXT
    path.write_bytes(gzip_members(PARTS) + bytes(3 << 20) + b"x")
    with pytest.raises(BadFileError, match="something else"):
        read_all(path)


@packers
@pytest.mark.parametrize("content", [b"plain text, long enough", b"x"])
def test_what_is_not_packed_is_an_error(packer: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / PACKERS[packer][0]
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=r"a\.txt"):
        read_all(path)


def test_an_empty_packed_file_is_truncated(tmp_path: Path) -> None:
    for name in ("a.txt.gz", "a.txt.zst", "a.txt.bz2", "a.txt.xz"):
        file = InputFile(0, str(tmp_path / name), 0, "", "text", name[6:], name)
        (tmp_path / name).touch()
        (tmp_path / "other.txt").write_bytes(b"x")
        file = list_inputs([f"{tmp_path}/*"], ReadOptions()).files[0]
        with pytest.raises(BadFileError, match="truncated"):
            check_whole(file)
        (tmp_path / name).unlink()


def test_a_frame_with_a_dictionary_is_refused(tmp_path: Path) -> None:
    samples = [b"sample %d of some words for a dictionary" % number for number in range(2000)]
    dictionary = zstandard.train_dictionary(2000, samples)
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstandard.ZstdCompressor(dict_data=dictionary).compress(samples[0]))
    with pytest.raises(BadFileError, match="dictionary"):
        read_all(path)


def test_a_long_window_is_read(tmp_path: Path) -> None:
    far_apart = os.urandom(1 << 20) + bytes(160 << 20)
    text = far_apart + far_apart[: 1 << 20]
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=28, enable_ldm=True, write_content_size=False
    )
    path = tmp_path / "a.txt.zst"
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(packer.compress(text) + packer.flush())
    with pytest.raises(zstandard.ZstdError, match="memory"):
        zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read(1 << 20)
    checksum = 0
    with closing(open_stream(listed(path))) as stream:
        while piece := stream.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    assert checksum == zlib.crc32(text)


def test_padding_of_xz_files_comes_in_fours_and_anything_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.xz"
    first, second = xz_streams([b"one"]), xz_streams([b"two"])
    path.write_bytes(first + bytes(8) + second + bytes(4 << 20))
    assert read_all(path) == b"onetwo"
    for rest, place in ((bytes(3), 0), (bytes(5) + second, 0), (bytes(4) + b"x", 4)):
        path.write_bytes(first + rest)
        message = f"something else, from byte {len(first) + place} "
        with pytest.raises(BadFileError, match=message):
            read_all(path)


def test_nothing_pads_a_bzip2_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.bz2"
    for rest in (b"\0", b"BZ", b"BZh9garbage"):
        path.write_bytes(bzip2_streams([b"one"]) + rest)
        with pytest.raises(BadFileError, match=r"a\.txt\.bz2: bzip2 stream is"):
            read_all(path)


def test_an_xz_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.xz"
    path.write_bytes(lzma.compress(b"small", preset=9))
    assert read_all(path) == b"small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed_members, "_XZ_MEMORY_BYTES", 1 << 20)
        with pytest.raises(BadFileError, match=r"[Mm]emory"):
            read_all(path)


def test_the_longest_window_of_zstd_is_read(tmp_path: Path) -> None:
    """As of `zstd --ultra --long=31`; a frame whose header says so, and one raw block."""
    window_log, content = 31, b"some text"
    header = bytes([0, (window_log - 10) << 3])
    block = ((len(content) << 3) | 1).to_bytes(3, "little")
    path = tmp_path / "a.txt.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + header + block + content)
    assert read_all(path) == content
    # One more is beyond what the format's own tool unpacks.
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes([0, (32 - 10) << 3]) + block + content)
    with pytest.raises(BadFileError, match=r"a\.txt\.zst"):
        read_all(path)


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_unpacks_in_small_pieces(name: str) -> None:
    stored = iter([BOMBS[name](bytes(50 << 20))])

    def read() -> bytes:
        return next(stored, b"")

    chunks = zstd_chunks(read) if name == "zstd" else member_chunks(name, read)
    sizes = [len(piece) for piece in chunks]
    assert sum(sizes) == 50 << 20
    assert max(sizes) <= 1 << 20


@given(st.binary(max_size=60))
def test_random_bytes_are_never_a_zstd_stream(data: bytes) -> None:
    stored = iter([data])
    with pytest.raises(FrameError):
        list(zstd_chunks(lambda: next(stored, b"")))


def test_a_plain_file_can_be_entered_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    with closing(open_stream(listed(path))) as stream:
        stream.seek(1000)
        assert stream.read(5) == TEXT[1000:1005]
        stream.seek(len(TEXT) - 2)
        assert stream.read(5) == TEXT[-2:]
        assert stream.read(5) == b""


def test_a_packed_file_cannot_be_entered_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip_members(PARTS))
    with (
        closing(open_stream(listed(path))) as stream,
        pytest.raises(ValueError, match="compressed"),
    ):
        stream.seek(1)


def test_a_file_that_vanished_or_changed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    file = listed(path)
    path.write_bytes(TEXT + b"x")
    with pytest.raises(BadFileError, match=r"a\.txt: changed since the plan"):
        open_stream(file)
    path.unlink()
    with pytest.raises(BadFileError, match=r"a\.txt: was there when the plan"):
        open_stream(file)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    with closing(open_stream(listed(path))) as stream:
        path.write_bytes(b"")
        with pytest.raises(BadFileError, match="ends"):
            stream.read(len(TEXT))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(BadFileError, match="cannot be opened"):
        open_stream(listed(path))


def test_packed_content_of_another_format_is_an_error_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(gzip_members(PARTS)))
    with pytest.raises(BadFileError, match="starts like a gzip file"):
        open_stream(listed(path), sniff=True)
    assert read_all(path) == gzip_members(PARTS)
    path.write_bytes(gzip_members(PARTS))
    stream = open_stream(listed(path), sniff=True)
    assert stream.read(1 << 20) == b"".join(PARTS)
