# SPDX-License-Identifier: Apache-2.0
"""What the verbs read: runs of a log, past runs, a workload; and what they say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import glidepath as gp
from glidepath._results import counted
from glidepath.cli._console import progress, say, stderr
from glidepath.readers._folder import passing_over

_FEW_PASSED = 5  # logs of a folder that are not read, each with its reason


def begins_at_target(trace: gp.Trace, row: Mapping[str, Any]) -> bool:
    """Whether a run, of which `row` says when it is at its target, was there at its first value."""
    return bool(row["reach_q10"] == row["reach_q90"] == trace.step[0])


def doubt_target(traces: Sequence[gp.Trace], target: float | None) -> None:
    """Ask whether a target that these runs begin at is in their unit, such as 0.9 of 90 %."""
    if target is None or not traces:
        return
    first = traces[0]
    more = f", and of {len(traces) - 1} more" if len(traces) > 1 else ""
    say(
        f"{first.name}{more}: the first value, {first.loss[0]:.4g}, is at the target already:"
        f" is --target {target:g} in the unit of {first.metric}?",
        to=stderr,
    )


def chosen(file: str, run: str | None, metric: str | None, pattern: str | None) -> list[gp.Trace]:
    """Read the runs of a file that a command is about; say what a folder has that is not read."""
    with progress("reading"), passing_over() as passed:
        traces = gp.read_traces(file, metric=metric, pattern=pattern)
    for sentence in passed[:_FEW_PASSED]:
        say(f"passed over: {sentence}", to=stderr)
    if len(passed) > _FEW_PASSED:
        say(f"passed over: {counted(len(passed), 'log')} in all", to=stderr)
    found = [trace for trace in traces if run in (None, trace.name)]
    for trace in found:
        for note in trace.notes:  # what the reader had to repair
            say(f"{trace.name}: {note}", to=stderr)
    if not found:
        raise gp.InputError(no_run(file, run, traces))
    return found


def no_run(file: str, run: str | None, traces: Sequence[gp.Trace]) -> str:
    """Say that a log lacks the run of `--run`, and which it has."""
    some = ", ".join(repr(trace.name) for trace in traces[:3])
    more = f" and {len(traces) - 3} more" if len(traces) > 3 else ""
    return f"{file}: no run {run!r}; it holds {some}{more}"


def called(file: str) -> str:
    """Give the name of a log for a title, also of a folder such as `.`."""
    return Path(file).name or Path(file).resolve().name


def learned(
    past: str | None,
    metric: str | None,
    pattern: str | None,
    live: Sequence[gp.Trace],
    *,
    quiet: bool,
) -> gp.PastRuns | None:
    """Learn from the runs of ``--past``, without those in `live`; say how many unless quiet."""
    if past is None:
        return None
    runs = gp.read_traces(past, metric=metric, pattern=pattern)
    finished = gp.PastRuns._restored(runs, gp.Widths()).without(*live).runs
    if not finished:
        raise gp.InputError(f"--past {past}: it holds only the runs to be forecast")
    used = f"--past: {len(finished)} of {counted(len(runs), 'run')} used"
    left = len(runs) - len(finished)
    said = f", {left} left out: to be forecast, or empty" if left else ""
    if not quiet:
        say(f"{used}{said}", to=stderr, style="dim")
    with progress("learning"):
        return gp.PastRuns(finished)


def open_workload(
    source: Path,
    users: int | None,
    seed: int,
    gpus: int | None,
    gpus_per_node: int | None = None,
) -> gp.Workload:
    """Read or draw what a command simulates, and say what of it is not read."""
    workload = _workload_of(source, users, seed, gpus, gpus_per_node)
    for note in workload.notes:
        say(note, to=stderr)
    return workload


def _workload_of(
    source: Path, users: int | None, seed: int, gpus: int | None, gpus_per_node: int | None
) -> gp.Workload:
    if not source.exists():
        raise gp.IoError(f"{source}: no such file or folder")
    if source.is_dir():
        if gpus is not None:
            raise gp.InputError(f"--gpus: {source} is a workload, its tiers have their own GPUs")
        if gpus_per_node is not None:
            raise gp.InputError(f"--gpus-per-node: {source} is a workload with nodes of its own")
        if users is None:
            return gp.read_workload(source)
        return gp.generate_workload(source, users=users, seed=seed)
    if users is not None:
        raise gp.InputError(f"--users: {source} is a CSV of jobs, users are drawn from a folder")
    if gpus is None:
        raise gp.InputError(f"{source} is a CSV of jobs: say how many --gpus there are")
    return gp.Workload.from_trace(source, gpus=gpus, gpus_per_node=gpus_per_node)
