"""scan_avx512.cc on emulated vectors: its logic is tested where the processor lacks AVX-512."""

from __future__ import annotations

import ctypes
import platform
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.native.scan_texts import SCHEMES, random_text, reference_ends

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "bpe" / "native"
SCAN = NATIVE / "scan"
PROBE = """
#include <vector>
#include "scan/scan.h"
extern "C" size_t scan_all(int scheme, const uint8_t* text, size_t length, size_t readable,
                           size_t batch, uint64_t* found) {
  using namespace beam_bpe;
  std::vector<uint32_t> ends(batch + kScanSlack);
  size_t count = 0;
  for (size_t at = 0; at < length;) {
    const ScanResult result = avx512_scans()[static_cast<SchemeId>(scheme)](
        {text, length, readable}, at, ends.data(), batch);
    for (size_t i = 0; i < result.count; ++i) found[count++] = at + ends[i];
    at = result.position;
  }
  return count;
}
"""


@pytest.fixture(scope="module")
def scan_all(tmp_path_factory: pytest.TempPathFactory) -> ctypes._NamedFuncPointer:
    compiler = shutil.which("g++")
    if compiler is None or platform.machine().lower() not in {"x86_64", "amd64"}:
        pytest.skip("needs g++ on x86-64")
    folder = tmp_path_factory.mktemp("emulated")
    (folder / "probe.cc").write_text(PROBE)
    library = folder / "emulated.so"
    sources = [SCAN / name for name in ("scan_avx512.cc", "scan_scalar.cc", "class_tables.cc")]
    subprocess.run(
        [
            *(compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-mavx2", "-mbmi2", "-mpopcnt"),
            *("-include", str(HERE / "emulated_avx512.h"), f"-I{NATIVE}", "-o", str(library)),
            *(str(folder / "probe.cc"), *map(str, sources)),
        ],
        check=True,
    )
    function = ctypes.CDLL(str(library)).scan_all
    function.restype = ctypes.c_size_t
    return function


@pytest.mark.slow
def test_emulated_scans_equal_the_specification(scan_all: ctypes._NamedFuncPointer) -> None:
    rng = random.Random(5)

    def ends(data: bytes, scheme: str, batch: int) -> npt.NDArray[np.uint64]:
        found = np.empty(len(data), np.uint64)
        after = rng.choice([b"", b" a" * 32])  # may be read, and must change nothing
        count = scan_all(
            SCHEMES.index(scheme),
            data + after,
            ctypes.c_size_t(len(data)),
            ctypes.c_size_t(len(data + after)),
            ctypes.c_size_t(batch),
            found.ctypes.data_as(ctypes.c_void_p),
        )
        return found[:count]

    for _ in range(400):
        data = random_text(rng)
        for scheme in SCHEMES:
            expected = reference_ends(data, scheme)
            np.testing.assert_array_equal(ends(data, scheme, 200), expected, f"{scheme} {data!r}")
