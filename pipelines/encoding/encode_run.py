"""An encoding run in an output folder: claimed at its beginning, given its manifest at its end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType

import apache_beam as beam

from bpe.backends.choice import get_backend
from bpe.engines.library_model import LibraryModel
from bpe.tokenizer import Tokenizer
from pipelines.corpus.plan import Plan, Unit, create_units
from pipelines.encoding.resume import (
    EncodeFolder,
    find_finished_groups,
    find_read_units,
    remove_spills,
    remove_stale_files,
)
from pipelines.encoding.shuffle_buckets import Bucket, plan_buckets
from pipelines.encoding.write_manifest import make_manifest, write_manifest
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import input_record
from pipelines.shards.tokenizer_files import as_tokenizer, save_copy
from pipelines.shards.write_shards import ShardGroup
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import TOKENIZER_FOLDER
from pipelines.storage.run_folder import Claim, claimed
from schemas.run_record import RunRecord
from schemas.sidecars import EngineRecord, Manifest

__all__ = ["EncodeRun"]


class EncodeRun:
    """One run of encoding, from the claim of its output folder to the manifest.

        with EncodeRun("enc", encoding, plan, tokenizer) as run, beam.Pipeline() as pipeline:
            pipeline | run.units() | EncodeDocuments(run)
        print(run.manifest.totals.tokens)

    At the beginning it locks the folder, compares it with this run, puts the tokenizer there and
    removes what an interrupted run left half done. At the end, which must come after the
    pipeline's, it checks that no document is lost and writes the manifest: without one an output is
    unfinished. After an exception it writes none. The same run started again makes the units that
    are missing; of a finished output it makes nothing.

    Args:
        output: folder of the shards, local or on a file system that Beam knows; it is created.
        settings: what decides the shards; of a global shuffle, `SpillDocuments` takes `units()` in
            one pipeline, and then `WriteBuckets` takes `buckets()` in another.
        plan: of the input.
        tokenizer: that `settings` names by its digest; or its path, as `EncodeToBatches` takes it.
        overwrite: remove what an earlier run made, whatever its settings.
        listing: `InputList.counts`, for the record.

    Attributes:
        found: what the folder held; `found.finished` if nothing is to be done.
        missing_units: of the plan, in order, that are to be encoded.
        missing_buckets: of a global shuffle, that are to be written.
        bucket_count: of a global shuffle, how many buckets there are; 0 without one.
        kept: how many units, or units and buckets, an earlier run has made.
        removed: how many files of units were removed that are made again.
        manifest: of the finished output; None until then.

    Raises:
        OutputError: entering: another run works there, or the folder holds the shards of other
            settings or inputs, or files that are not ours. Leaving: a shard is missing, or
            documents in differ from documents out and rejects.
        BadRecordError: leaving: the run skipped more rows than `max_bad_records` allows.
        BadFileError: leaving: the run skipped all of the input.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        settings: EncodeSettings,
        plan: Plan,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        overwrite: bool = False,
        listing: Mapping[str, int] | None = None,
    ) -> None:
        self.output = os.fspath(output)
        self.settings = settings
        self.plan = plan
        self.found: Claim[Manifest] = Claim()
        self.missing_units: list[Unit] = []
        self.missing_buckets: list[Bucket] = []
        self.kept = 0
        self.removed = 0
        self.manifest: Manifest | None = None
        self._buckets = plan_buckets(plan, settings) if settings.shuffle == "global" else []
        self.bucket_count = len(self._buckets)
        self._tokenizer = as_tokenizer(tokenizer)
        self._overwrite = overwrite
        self._listing = listing
        self._open = ExitStack()

    def __enter__(self) -> EncodeRun:  # noqa: PYI034 - typing.Self needs Python 3.11
        wanted = RunRecord(
            command="encode", settings=dict(self.settings.to_dict()), inputs=input_record(self.plan)
        )
        folder = EncodeFolder(
            self.output, wanted, overwrite=self._overwrite, settings=self.settings
        )
        with ExitStack() as stack:
            self.found = stack.enter_context(claimed(folder))
            self.manifest = self.found.record
            if not self.found.finished:
                self._find_missing()
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            if kind is None and self.manifest is None:
                self._finish()

    def units(self) -> beam.PTransform:
        """The missing units as a PCollection of JSON (bytes); none if the output is finished."""
        return create_units(self.missing_units)

    def buckets(self) -> beam.PTransform:
        """The missing buckets of a global shuffle as a PCollection of JSON (bytes)."""
        return "Buckets" >> beam.Create([bucket.to_json() for bucket in self.missing_buckets])

    def _find_missing(self) -> None:
        """Put the tokenizer there, and find what the folder lacks."""
        output, settings, plan, buckets = self.output, self.settings, self.plan, self._buckets
        save_copy(self._tokenizer, join(output, TOKENIZER_FOLDER))
        groups = [each.group for each in buckets] or [ShardGroup.of_unit(u) for u in plan.units]
        resumed = self.found.resumed
        written = find_finished_groups(output, settings, groups) if resumed else set()
        read = written
        if buckets and resumed:
            needed = len(written) < len(buckets)
            read = find_read_units(output, settings, plan, with_spills=needed)
        self.removed = remove_stale_files(output, settings.split_names, written, read)
        self.missing_units = [unit for unit in plan.units if unit.index not in read]
        self.missing_buckets = [bucket for bucket in buckets if bucket.index not in written]
        self.kept = len(read) + (len(written) if buckets else 0)

    def _finish(self) -> None:
        manifest = make_manifest(
            self,
            backend=get_backend().name,
            listing=self._listing,
            engine=_engine_of(self._tokenizer),
        )
        # Only now: a run that lacks a bucket makes it again from the spills.
        if self._buckets:
            remove_spills(self.output)
        write_manifest(self.output, manifest)
        self.manifest = manifest


def _engine_of(tokenizer: Tokenizer) -> EngineRecord | None:
    model = tokenizer.model
    if not isinstance(model, LibraryModel):
        return None
    return EngineRecord(
        name=model.engine,
        version=model.library.version,
        kind=model.kind,
        file_sha256=model.file_sha256,
        lossy=True,
    )
