"""What the driver does between the jobs: choose heavy pairs, accept merges, leave a record.

Each of these reads files, writes files, and a record last; it can run on the driver or, where
several rounds are chained in one pipeline, on a worker.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.values import MergeRules
from bpe.errors import OutputError
from bpe.rounds.heavy_set import FIRST_COVERAGE, HeavySet, choose_heavy, next_coverage
from bpe.rounds.round_driver import RoundResult, accept_merges, rank_all, training_end
from pipelines.storage.output_files import join, list_files
from pipelines.training.rounds.checkpoints import (
    clear_round,
    read_count_record,
    read_segments_record,
    write_count_record,
    write_segments_record,
)
from pipelines.training.rounds.count_step import read_bucket_pairs
from pipelines.training.rounds.round_files import (
    ENDS_OF_COUNT,
    ENDS_OF_SEGMENTS,
    FIXES,
    HEAVY,
    MERGES_FILE,
    SEGMENTS_FILE,
    ends_from_table,
    ends_to_table,
    read_table,
    round_folder,
    write_table,
)
from pipelines.training.rounds.round_results import merges_of, read_heavy, tokens_after
from pipelines.training.rounds.segment_step import read_segments
from pipelines.training.rounds.setup import RoundSetup
from pipelines.training.rounds.state_files import STATE_FOLDER, delete_state, read_sidecar
from schemas import (
    BOUNDARY_FIXES,
    BOUNDARY_RECORDS,
    MERGES,
    RANKED_PAIRS,
    CountRecord,
    SegmentsRecord,
)

__all__ = ["finish_count", "finish_segments"]


def finish_count(
    setup: RoundSetup, round_: int, state_names: list[str], started: float
) -> CountRecord:
    """Choose a round's heavy pairs from what the buckets found, or see that nothing is left.

    Args:
        setup: of the training.
        round_: number of the round; its `CountPairs` is done.
        state_names: of the files that were counted, by shard.
        started: when the step began, seconds since 1970.

    Raises:
        CountTableError: counts were lost on the way.
        OutputError: a file is missing or damaged, or cannot be written.
    """
    done = read_count_record(setup.folder, round_)
    if done is not None:
        return done
    folder = round_folder(setup.folder, round_)
    merges = merges_of(setup.folder, round_ - 1)
    tokens = tokens_after(merges, setup.rules.tie_order)
    rules = _rest(setup.rules, merges.num_rows)
    found = read_bucket_pairs(setup, round_)
    ends = ends_from_table(read_table(folder, ENDS_OF_COUNT, BOUNDARY_RECORDS))
    _check_shards(setup, len(ends))
    ranking = rank_all([each.ranking for each in found], ends, tokens, rules)
    reason = training_end(ranking, tokens, rules)
    files = {}
    if reason is None:
        heavy = choose_heavy(ranking, tokens, rules, coverage=_coverage(setup, round_))
        files[HEAVY] = write_table(folder, HEAVY, heavy.to_table(), RANKED_PAIRS)
    state = join(setup.folder, STATE_FOLDER)
    ended = time.time()
    record = CountRecord(
        round=round_,
        settings_digest=setup.settings_digest,
        merges=merges.num_rows,
        adjacencies=ranking.total,
        bytes_sent=sum(each.size for each in found),
        files=files,
        stop_reason=reason,
        state_files=[read_sidecar(state, name) for name in state_names],
        seconds=ended - started,
        ended=ended,
    )
    write_count_record(setup.folder, record)
    return record


def _rest(rules: MergeRules, merges: int) -> MergeRules:
    return replace(rules, max_merges=rules.max_merges - merges)


def _coverage(setup: RoundSetup, round_: int) -> float:
    before = read_segments_record(setup.folder, round_ - 1) if round_ else None
    return before.coverage if before else FIRST_COVERAGE


def _check_shards(setup: RoundSetup, found: int) -> None:
    if found != setup.shards:
        raise OutputError(
            f"{setup.folder}: {found} of {setup.shards} shards reported: the runner lost or "
            "repeated some; run the same command again, and report it"
        )


def finish_segments(
    setup: RoundSetup, round_: int, state_names: list[str], started: float
) -> SegmentsRecord:
    """Simulate a round's segments, and leave the merges that are certain.

    State of earlier rounds, and tables that are of no more use, are removed.

    Args:
        setup: of the training.
        round_: number of the round; its `SendSegments` is done.
        state_names: of the files of this round's state, which stay.
        started: when the step began, seconds since 1970.

    Raises:
        CountTableError: segments were lost on the way.
        OutputError: a file is missing or damaged, or cannot be written.
    """
    done = read_segments_record(setup.folder, round_)
    if done is not None:
        return done
    folder = round_folder(setup.folder, round_)
    before = merges_of(setup.folder, round_ - 1)
    names = sorted(name for name in list_files(folder) if name.startswith(f"{SEGMENTS_FILE}-"))
    segments, bytes_sent = read_segments(setup.folder, round_, names)
    ends = ends_from_table(read_table(folder, ENDS_OF_SEGMENTS, BOUNDARY_RECORDS))
    _check_shards(setup, len(ends))
    heavy = read_heavy(setup.folder, round_)
    tokens = tokens_after(before, setup.rules.tie_order)
    rules = _rest(setup.rules, before.num_rows)
    result = accept_merges(heavy, segments, ends, tokens=tokens, rules=rules, backend=get_backend())
    merges = _add_merges(before, result)
    fixes = ends_to_table(result.fixes, BOUNDARY_FIXES)
    files = {
        MERGES_FILE: write_table(folder, MERGES_FILE, merges, MERGES),
        FIXES: write_table(folder, FIXES, fixes, BOUNDARY_FIXES),
    }
    ended = time.time()
    record = SegmentsRecord(
        round=round_,
        settings_digest=setup.settings_digest,
        merges=merges.num_rows,
        last_count=merges["count"][-1].as_py() if merges.num_rows else None,
        heavy_pairs=result.size,
        segments=sum(each.table.num_rows for each in segments),
        segment_bytes=result.sent_bytes,
        bytes_sent=bytes_sent,
        coverage=_next_coverage(setup, heavy, result),
        files=files,
        stop_reason="vocab_size" if merges.num_rows >= setup.rules.max_merges else None,
        seconds=ended - started,
        ended=ended,
    )
    write_segments_record(setup.folder, record)
    delete_state(join(setup.folder, STATE_FOLDER), state_names)
    clear_round(setup.folder, round_, kept=(MERGES_FILE, FIXES))
    return record


def _next_coverage(setup: RoundSetup, heavy: HeavySet, result: RoundResult) -> float:
    return next_coverage(
        heavy,
        used=result.size,
        sent_bytes=result.sent_bytes,
        budget=setup.budget,
    )


def _add_merges(before: pa.Table, result: RoundResult) -> pa.Table:
    new = pa.table([result.left, result.right, result.counts], schema=pa.schema(list(MERGES)))
    return pa.concat_tables([before.replace_schema_metadata(None), new])
