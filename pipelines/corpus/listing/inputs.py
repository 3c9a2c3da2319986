"""Lists the input files: patterns in, a sorted list of files with size, identity and format out.

A pattern is a path or glob of any Beam filesystem (`pipelines.storage.input_patterns`). A folder
stands for all files in it and below. Files and folders whose names start with `.` or `_` are left
out unless the pattern spells that character out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems

from bpe.errors import SettingsError
from pipelines.corpus.listing.file_formats import FIELD_FORMATS
from pipelines.corpus.listing.input_refusals import describe_refusals, find_formats
from pipelines.corpus.listing.name_filters import NameFilter
from pipelines.corpus.read_options import ReadOptions
from pipelines.storage.input_patterns import InputPattern, read_pattern
from pipelines.storage.local_files import LocalListing, list_local
from pipelines.storage.output_files import match_remote
from pipelines.storage.own_paths import is_local
from pipelines.storage.wording import counted

__all__ = [
    "REFUSED_NOTE",
    "InputFile",
    "InputList",
    "ReadOptions",
    "file_identity",
    "is_local",
    "list_inputs",
]

REFUSED_NOTE = "left out as bad files"
"""Beginning of the note about files whose names or contents are refused."""

_FILTERS = "--include and --exclude"


@dataclass(frozen=True)
class InputFile:
    """One file of the input.

    Attributes:
        index: position in the list of files sorted by path, from 0.
        path: absolute local path, or address of a remote object.
        size: bytes on storage, compressed where the file is.
        identity: size and modification time as the filesystem gives them; a file with another
            identity is another file.
        format: as in `ReadOptions`, but for `auto`.
        compression: `none`, or one that `pipelines.corpus.compression.byte_streams` unpacks.
        source: path below the folder that all patterns share, for the `source` column.
        refusal: why the file is not read, by its name or its first bytes; None if it is. Such a
            file has the format `refused`.
        stop: documents that start here or after are not read, because of `ReadOptions.limit`: a
            byte of the uncompressed file or, in tables, a row, from 0; None to read all.
        text_bytes: about how much text is before `stop`; None without one.
    """

    index: int
    path: str
    size: int
    identity: str
    format: str
    compression: str
    source: str
    refusal: str | None = None
    stop: int | None = None
    text_bytes: int | None = None


@dataclass(frozen=True)
class InputList:
    """The files to read, and what listing them brought up.

    Attributes:
        files: sorted by path, each once.
        notes: sentences for the user: what was left out and why.
        counts: `duplicate_files`, `hidden_files`, `empty_files`, `excluded_files`,
            `unreadable_inputs`, `linked_folders` (those that occurred).
        patterns: what each given path was taken for.
    """

    files: tuple[InputFile, ...]
    notes: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    patterns: tuple[InputPattern, ...] = field(default=(), compare=False)

    @property
    def total_bytes(self) -> int:
        """Size of all files on storage."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class _Match:
    """What one pattern found."""

    pattern: InputPattern
    visible: list[FileMetadata]
    hidden: list[str]
    unreadable: dict[str, str] = field(default_factory=dict)
    linked_folders: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)

    def filtered(self, names: NameFilter) -> _Match:
        """The same without the files that `--include` and `--exclude` leave out."""

        def keeps(path: str) -> bool:
            return names.keeps(path.removeprefix(self.pattern.folder))

        kept = [file for file in self.visible if keeps(file.path)]
        paths = {file.path for file in kept}
        return replace(
            self,
            visible=kept,
            unreadable={path: why for path, why in self.unreadable.items() if keeps(path)},
            excluded=[file.path for file in self.visible if file.path not in paths],
        )


def list_inputs(
    patterns: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: ReadOptions
) -> InputList:
    """List the files that the patterns name.

    Args:
        patterns: one or several paths, folders or globs; `gs://`, `s3://` and the like go to Beam's
            filesystems.
        options: decide which files to leave out, and the format of each.

    Raises:
        SettingsError: a pattern matches nothing, or there is nothing to read; or, unless bad files
            are to be skipped, files have names of formats that cannot be read, or a local pattern
            matches a link that leads nowhere, or a folder that may not be opened.
        BadFileError: unless bad files are to be skipped, files start like another format than text.
    """
    if isinstance(patterns, str | os.PathLike):
        patterns = [patterns]
    if not patterns:
        raise SettingsError("no input: pass --input with at least one path or pattern")
    chosen = NameFilter(options.include, options.exclude)
    matches = [_match(read_pattern(os.fspath(pattern))).filtered(chosen) for pattern in patterns]
    unreadable = {path: why for match in matches for path, why in match.unreadable.items()}
    _check_readable(unreadable, options)
    found: dict[str, FileMetadata] = {}
    duplicates: dict[str, None] = {}
    for match in matches:
        for metadata in match.visible:
            if metadata.path in found:
                duplicates[metadata.path] = None
            found[metadata.path] = metadata
    hidden = sorted({path for match in matches for path in match.hidden} - found.keys())
    excluded = sorted({path for match in matches for path in match.excluded} - found.keys())
    folder = _shared_folder([match.pattern.folder for match in matches])
    files, refused = _input_files(found, folder, options)
    _check_files(files, hidden, excluded, options)
    empty = [file.path for file in files if file.size == 0]
    linked = sorted({path for match in matches for path in match.linked_folders})
    notes, counts = _notes(
        duplicates=list(duplicates),
        hidden=hidden,
        empty=empty,
        excluded=excluded,
        unreadable=sorted(unreadable),
        linked=linked,
    )
    notes += (f"{REFUSED_NOTE}: {refused}",) if refused else ()
    notes += tuple(f"{pattern!r} of {_FILTERS} matches no file" for pattern in chosen.unused)
    if options.limit is not None:
        # Reads files, by modules that take their names from here.
        from pipelines.corpus.listing.first_documents import first_documents  # noqa: PLC0415

        every = len(files)
        files, documents = first_documents(files, options, options.limit)
        first = counted(documents, "first document")
        notes += (f"--limit: only the {first} are read, of {len(files)} of {every} files",)
    names = [match.pattern.wild_name for match in matches if match.pattern.wild_name]
    notes += _name_notes(names)
    return InputList(tuple(files), notes, counts, tuple(match.pattern for match in matches))


def _input_files(
    found: Mapping[str, FileMetadata], folder: str, options: ReadOptions
) -> tuple[list[InputFile], str]:
    """All files in order, and in words which of them are not read."""
    sizes = {path: metadata.size_in_bytes for path, metadata in found.items()}
    listed, refusals = find_formats(sizes, options)
    files = [
        InputFile(
            index=index,
            path=path,
            size=size,
            identity=file_identity(found[path]),
            format=format_,
            compression=compression,
            source=_printable(path.removeprefix(folder)),
            refusal=refusals.get(path),
        )
        for index, (path, size, format_, compression) in enumerate(listed)
    ]
    return files, describe_refusals(refusals, len(files))


def file_identity(metadata: FileMetadata) -> str:
    """Size and modification time of a file, as text that two listings agree on."""
    modified = metadata.last_updated_in_seconds
    # Object stores give whole seconds in one answer and fractions in another.
    stamp = repr(modified) if is_local(metadata.path) else str(int(modified))
    return f"{metadata.size_in_bytes} bytes, modified {stamp}"


def _match(pattern: InputPattern) -> _Match:
    """Files of one pattern, those with hidden names apart."""
    local = is_local(pattern.path)
    if pattern.is_file and (not local or os.path.exists(pattern.path)):
        return _single(pattern)
    listing = list_local(pattern) if local else LocalListing(_list(pattern))
    if not listing.files and not listing.unreadable:
        looked_for = pattern.folder + pattern.rest
        shown = pattern.given
        if looked_for != shown:
            shown += f" (looked for {looked_for})"
        raise SettingsError(
            f"--input: no file matches {shown}; quote patterns so that the shell leaves them "
            f"alone, and use ** to look into sub-folders{_hint(listing)}"
        )
    return _Match(
        pattern,
        [file for file in listing.files if pattern.shows(file.path)],
        [file.path for file in listing.files if not pattern.shows(file.path)],
        {path: why for path, why in listing.unreadable.items() if pattern.shows(path)},
        [path for path in listing.linked_folders if pattern.shows(path)],
    )


def _hint(listing: LocalListing) -> str:
    linked = listing.linked_folders
    return f"; {linked[0]} is a link to a folder, which is looked into when named" if linked else ""


def _single(pattern: InputPattern) -> _Match:
    """A file named exactly, even if its name holds glob characters or starts with a dot."""
    path = pattern.path
    if not is_local(path):
        metadata = FileSystems.get_filesystem(path).metadata(path)
        return _Match(pattern, [metadata], [])
    if not os.path.isfile(path):
        raise SettingsError(
            f"--input: {pattern.given} is a pipe or device; write its content to a file first, "
            f"since inputs are read in ranges and may be read twice"
        )
    metadata = FileMetadata(path, os.path.getsize(path), os.path.getmtime(path))
    return _Match(pattern, [metadata], [])


def _list(pattern: InputPattern) -> list[FileMetadata]:
    try:
        return match_remote(pattern.whole)
    except (BeamIOError, ValueError) as error:
        raise SettingsError(f"--input: cannot list {pattern.given}: {error}") from error


def _shared_folder(folders: Sequence[str]) -> str:
    """The longest common folder of paths that end in slashes, itself with a slash; may be ""."""
    shared = []
    for components in zip(*(folder.split("/")[:-1] for folder in folders), strict=False):
        if len(set(components)) > 1:
            break
        shared.append(components[0])
    return "/".join([*shared, ""])


def _printable(path: str) -> str:
    """A path as valid Unicode: bytes that are not UTF-8 show as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _check_readable(unreadable: Mapping[str, str], options: ReadOptions) -> None:
    if unreadable and options.on_bad_file == "fail":
        path = min(unreadable)
        more = f", and {len(unreadable) - 1} more of the kind" if len(unreadable) > 1 else ""
        raise SettingsError(
            f"--input: {path}: {unreadable[path]}{more}; mend or remove it, choose a pattern "
            "without it, or leave such inputs out with --on-bad-file=skip"
        )


def _check_files(
    files: Sequence[InputFile],
    hidden: Sequence[str],
    excluded: Sequence[str],
    options: ReadOptions,
) -> None:
    if not files and excluded:
        raise SettingsError(
            f"--input: nothing to read: {_FILTERS} leave out all that matches, "
            f"{counted(len(excluded), 'file')} such as {excluded[0]}; patterns with a / are "
            "compared with the path below the fixed part of the input"
        )
    if not files and not hidden:
        raise SettingsError("--input: nothing to read: nothing that matches can be read")
    if not files:
        raise SettingsError(
            f"--input: nothing to read: all {len(hidden)} matching files have names that start "
            f"with '.' or '_', such as {hidden[0]}; name them exactly to read them"
        )
    if all(file.refusal for file in files):
        refusals = {file.path: file.refusal or "" for file in files}
        raise SettingsError(f"--input: nothing to read: {describe_refusals(refusals, len(files))}")
    if not any(file.size for file in files):
        raise SettingsError(
            f"--input: nothing to read: no matching file holds a byte, {len(files)} in all, "
            f"such as {files[0].path}"
        )
    formats = {file.format for file in files if file.refusal is None}
    if options.document_separator is not None and "text" not in formats:
        raise SettingsError(
            f"--document-separator belongs to text files, but all inputs are read as "
            f"{', '.join(sorted(formats))}, such as {files[0].path}"
        )
    if options.id_field is not None and not formats & FIELD_FORMATS:
        raise SettingsError(
            f"--id-field needs rows with fields, but all inputs are read as "
            f"{', '.join(sorted(formats))}, such as {files[0].path}"
        )


def _notes(
    *,
    duplicates: Sequence[str],
    hidden: Sequence[str],
    empty: Sequence[str],
    excluded: Sequence[str],
    unreadable: Sequence[str],
    linked: Sequence[str],
) -> tuple[tuple[str, ...], dict[str, int]]:
    cases = [
        ("duplicate_files", duplicates, "file", "matched by more than one pattern, read once"),
        ("hidden_files", hidden, "file", "left out because a name starts with '.' or '_'"),
        ("empty_files", empty, "file", "empty"),
        ("excluded_files", excluded, "file", f"left out by {_FILTERS}"),
        ("unreadable_inputs", unreadable, "input", "left out because it cannot be read"),
        ("linked_folders", linked, "linked folder", "not looked into; name it to read it"),
    ]
    notes = tuple(
        f"{len(paths)} {kind}{'s' if len(paths) > 1 else ''} {what}: {paths[0]}"
        + (" and others" if len(paths) > 1 else "")
        for _, paths, kind, what in cases
        if paths
    )
    return notes, {name: len(paths) for name, paths, _, _ in cases if paths}


def _name_notes(names: Sequence[str]) -> tuple[str, ...]:
    """The note about paths that would have been patterns, had nothing had their names."""
    if not names:
        return ()
    others = " and others" if len(names) > 1 else ""
    return (f"{names[0]}{others} exists, and is taken as a name, not as a pattern",)
