"""Build of beam-bpe: the packages, the native core `bpe._native`, and `pipelines._io` beside it.

Environment variables (all optional, none is read at run time):

    BPE_NO_NATIVE=1           build no native core; the library then runs on its Python backend
    BPE_OPTIONAL_NATIVE=1     a compiler that fails gives a warning and the Python backend
    BPE_DEBUG_BUILD=1         debug symbols, light optimisation, warnings are errors
    BPE_SANITIZE=address,undefined    instrument for these sanitizers (implies debug symbols)
    BPE_BUILD_JOBS=N          compiler processes at once (default: the number of cores)
    BPE_JOIN_BINDINGS=1       compile all files that include pybind11 as one: a build from nothing
                              is sooner done, one after a change later
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError

CORE_FOLDER = Path("bpe") / "native"
IO_FOLDER = Path("pipelines") / "native"
# Of the core, what the second extension is compiled with too: it holds no state.
SHARED_SOURCES = [
    str(CORE_FOLDER / "python" / name)
    for name in ("arrow_columns.cc", "python_columns.cc", "python_errors.cc")
]
X86_64 = platform.machine().lower() in {"x86_64", "amd64"}

# Only files of these names may hold instructions beyond the platform's baseline; which of them
# runs is decided at run time. On other processors they are left out of the build.
AVX2_FLAGS = ["-mavx2", "-maes", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt", "-msse4.2"]
AVX512_FLAGS = [
    *(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vbmi", "vbmi2")),
    *AVX2_FLAGS,
]
X86_FILE_FLAGS = {
    "encode_passes_avx2.cc": AVX2_FLAGS,
    "scan_avx2.cc": AVX2_FLAGS,
    "scan_avx512.cc": AVX512_FLAGS,
}

HINT = """
The native core of beam-bpe did not compile (the compiler's own message is above).
It needs a C++17 compiler (g++ 9 or newer, or clang 10 or newer) and Python's headers:
    Debian, Ubuntu   apt-get install g++ python3-dev
    Fedora, RHEL     dnf install gcc-c++ python3-devel
    macOS            xcode-select --install
A compiler elsewhere is named with CXX=/path/to/g++ (and CC). Without one, install with
BPE_NO_NATIVE=1: everything works, many times slower, on the Python backend.
"""


def switched_on(name: str) -> bool:
    """True if the environment variable is set to anything but nothing or 0."""
    return os.environ.get(name, "") not in {"", "0"}


def sources_in(folder: Path) -> list[str]:
    """Every C++ source file of a folder that this processor can use."""
    sources = sorted(str(f) for f in folder.rglob("*.cc"))
    return [f for f in sources if X86_64 or not f.endswith(tuple(X86_FILE_FLAGS))]


def join_bindings(name: str, sources: list[str]) -> list[str]:
    """The sources with one file in place of those that include pybind11, if that is switched on.

    Most of the time that such a file takes goes into pybind11's own headers.
    """
    bindings = [f for f in sources if is_binding(f)]
    if not switched_on("BPE_JOIN_BINDINGS"):
        return sources
    joined = Path("build") / "python" / f"{name}.cc"
    joined.parent.mkdir(parents=True, exist_ok=True)
    names = [os.path.relpath(f, joined.parent) for f in bindings]
    joined.write_text("".join(f'#include "{name}"\n' for name in names))
    return [str(joined), *(f for f in sources if f not in bindings)]


def is_binding(source: str) -> bool:
    """True of a file that includes pybind11's headers."""
    return Path(source).parent.name == "python" or source.endswith("python_module.cc")


def all_headers() -> list[Path]:
    """Every header that a source file may include."""
    return sorted(f for folder in (CORE_FOLDER, IO_FOLDER) for f in folder.rglob("*.h"))


def flags_of_file(source: str) -> list[str]:
    """The flags that this source file needs beside those of all files."""
    if is_binding(source):
        # pybind11's headers shadow names of their own. A thread that is ended unwinds without an
        # exception object, which UBSan takes for a reference to null wherever it is caught.
        return ["-Wno-shadow", *(["-fno-sanitize=null"] if os.environ.get("BPE_SANITIZE") else [])]
    return next((flags for end, flags in X86_FILE_FLAGS.items() if source.endswith(end)), [])


def compiler_flags() -> tuple[list[str], list[str]]:
    """The flags for compiling and for linking."""
    sanitizers = os.environ.get("BPE_SANITIZE", "")
    compile_flags = ["-O3", "-g0", "-fvisibility=hidden", "-pthread"]
    link_flags = ["-pthread"]
    if switched_on("BPE_DEBUG_BUILD") or sanitizers:
        compile_flags = ["-O1", "-g", "-fvisibility=hidden", "-pthread", "-fno-omit-frame-pointer"]
        compile_flags += ["-Wall", "-Wextra", "-Wshadow", "-Wnon-virtual-dtor", "-Werror"]
    if sanitizers:
        compile_flags += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
        link_flags += [f"-fsanitize={sanitizers}"]
    return compile_flags, link_flags


def needs_recompile(obj: str, source: str) -> bool:
    """True if an object file is older than anything that it may be made from."""
    if not Path(obj).exists():
        return True
    sources = [Path(source), Path(__file__), *all_headers()]
    return Path(obj).stat().st_mtime <= max(file.stat().st_mtime for file in sources)


class BuildNative(build_ext):
    """Adds the flags of single files, and turns a compiler's failure into a hint."""

    def build_extensions(self) -> None:
        """Compile and link; `SystemExit` with the hint where that fails."""
        plain_compile = self.compiler._compile  # noqa: SLF001 - the one hook per source file

        def compile_one(
            obj: str, src: str, ext_: str, cc_args: list[str], extra: list[str], pp: list[str]
        ) -> None:
            plain_compile(obj, src, ext_, cc_args, [*extra, *flags_of_file(src)], pp)

        self.compiler._compile = compile_one  # noqa: SLF001
        # What other settings compiled (a sanitizer's objects, say) must not be linked in.
        stamp = Path(self.build_temp) / "flags"
        flags = repr((compiler_flags(), X86_FILE_FLAGS))
        if not stamp.exists() or stamp.read_text() != flags:
            shutil.rmtree(self.build_temp, ignore_errors=True)
            stamp.parent.mkdir(parents=True)
            self.force = True
        try:
            super().build_extensions()
            stamp.write_text(flags)
        except CCompilerError as error:
            if not switched_on("BPE_OPTIONAL_NATIVE"):
                raise SystemExit(f"{error}\n{HINT}") from error
            sys.stderr.write(f"warning: {error}\n{HINT}\n")

    def copy_extensions_to_source(self) -> None:
        """Put the extensions beside the packages' sources, as far as there are any."""
        self.extensions = [
            extension
            for extension in self.extensions
            if Path(self.build_lib, self.get_ext_filename(extension.name)).exists()
        ]
        super().copy_extensions_to_source()


def native_build() -> dict[str, Any]:
    """The arguments of `setup` that build the native core; none if it is switched off."""
    if switched_on("BPE_NO_NATIVE"):
        return {}
    # Needed for the native core only.
    from pybind11.setup_helpers import ParallelCompile, Pybind11Extension  # noqa: PLC0415

    ParallelCompile(
        "BPE_BUILD_JOBS", default=os.cpu_count() or 1, needs_recompile=needs_recompile
    ).install()
    compile_flags, link_flags = compiler_flags()
    extensions = [
        Pybind11Extension(
            name,
            join_bindings(name, sources),
            cxx_std=17,
            include_dirs=[str(CORE_FOLDER), str(IO_FOLDER)],
            extra_compile_args=compile_flags,
            extra_link_args=link_flags,
            depends=[str(header) for header in all_headers()],
        )
        for name, sources in (
            ("bpe._native", sources_in(CORE_FOLDER)),
            ("pipelines._io", [*sources_in(IO_FOLDER), *SHARED_SOURCES]),
        )
    ]
    return {"ext_modules": extensions, "cmdclass": {"build_ext": BuildNative}}


setup(
    packages=find_packages(include=["bpe", "bpe.*", "pipelines", "pipelines.*", "schemas"]),
    package_data={"bpe": ["py.typed", "*.pyi"], "pipelines": ["*.pyi"]},
    **native_build(),
)
