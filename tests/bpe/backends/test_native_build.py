"""The source distribution holds all that its native core is made of, and setup.py says no well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "bpe" / "native"
READING = ROOT / "pipelines" / "native"
PYTHON_HEADER = re.compile(r"#include [<\"](pybind11/|Python\.h|python/(python_|bind))")


def run_setup(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pybind11")
    return subprocess.run(
        [sys.executable, "setup.py", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_source_distribution_holds_every_native_file(tmp_path: Path) -> None:
    done = run_setup("-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for folder, least in ((CORE, 90), (READING, 9)):
        native = {str(file.relative_to(ROOT)) for file in folder.rglob("*.*")}
        assert len(native) >= least, folder
        assert native <= names
    assert {"setup.py", "pyproject.toml", "bpe/_native.pyi", "bpe/py.typed"} <= names
    assert "pipelines/_io.pyi" in names


def test_what_is_installed_has_the_stubs(tmp_path: Path) -> None:
    done = run_setup(
        "-q", "egg_info", "-e", str(tmp_path), "build_py", "--build-lib", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    stubs = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.pyi")}
    assert stubs == {"bpe/_native.pyi", "pipelines/_io.pyi"}


def test_a_compiler_that_fails_gives_a_hint_or_a_warning(tmp_path: Path) -> None:
    folders = ["--build-temp", str(tmp_path / "temp"), "--build-lib", str(tmp_path / "lib")]
    no_compiler = {"CXX": "/bin/false", "CC": "/bin/false", "BPE_BUILD_JOBS": "2"}
    failed = run_setup("build_ext", *folders, **no_compiler)
    assert failed.returncode != 0
    assert "apt-get install g++" in failed.stderr
    assert "BPE_NO_NATIVE=1" in failed.stderr
    assert "Traceback" not in failed.stderr
    passed = run_setup("build_ext", *folders, **no_compiler, BPE_OPTIONAL_NATIVE="1")
    assert passed.returncode == 0, passed.stderr
    assert "warning" in passed.stderr
    skipped = run_setup("build_ext", *folders, **no_compiler, BPE_NO_NATIVE="1")
    assert skipped.returncode == 0, skipped.stderr
    assert not list((tmp_path / "lib").rglob("*.so"))


def test_the_core_is_free_of_pythons_headers_and_bindings_compile_apart() -> None:
    for file in [*CORE.rglob("*.*"), *READING.rglob("*.*")]:
        if file.parent.name != "python" and file.name != "python_module.cc":
            assert not PYTHON_HEADER.search(file.read_text(encoding="utf-8")), file
    bindings = {file.stem for file in (CORE / "python").glob("bind_*.cc")}
    assert {"bind_counting", "bind_encoding", "bind_rounds", "bind_training"} <= bindings
    assert not list(CORE.rglob("bind_*.h"))


def test_there_is_one_pool_of_pages() -> None:
    assert [file.parent.name for file in ROOT.glob("*/native/**/page_pool.cc")] == ["memory"]
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert "page_pool" not in setup


def test_what_is_written_once_is_written_once() -> None:
    text = {
        file: file.read_text(encoding="utf-8")
        for file in (*CORE.rglob("*.*"), *READING.rglob("*.*"))
    }
    for definition in (
        r"\bpair_key\(\w+ \w+, \w+ \w+\) \{",
        r"\bmix_key\(\w+ \w+\) \{",
        r"\b0xF5\s*\?",
    ):
        found = [file.name for file, content in text.items() if re.search(definition, content)]
        assert len(found) == 1, (definition, found)


def test_the_core_says_pre_token_and_its_classes_bear_the_names_of_their_files() -> None:
    # WordPiece has pieces.
    for file in (file for file in CORE.rglob("*.*") if file.parent.name != "recipes"):
        text = file.read_text(encoding="utf-8").replace('py::arg("whole_piece")', "")
        assert not re.search("(?<!word)piece(?! of work)", text, re.IGNORECASE), file
    for name in ("merge_list", "linear_merger", "pair_lookup", "pretoken_cache", "pretoken_merger"):
        (header,) = CORE.rglob(f"{name}.h")
        kind = name.title().replace("_", "")
        assert f"class {kind} {{" in header.read_text(encoding="utf-8")
