# SPDX-License-Identifier: Apache-2.0
"""Finds the log of a running job and reads what is complete of it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from glidepath._core import IoError, direction_by_name
from glidepath._trace import Direction, Trace, pace
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._growing_log import FURTHEST_STEP, GrowingLog
from glidepath.engines.slurm._log_files import copy_as, files_of, open_as
from glidepath.engines.slurm._model import ClusterJob
from glidepath.engines.slurm._reader_process import ReaderProcess

_MAX_ROWS = 2048  # of a log that are looked at: more cost time and change little
_MOST_SAID = 600  # letters of what is said of a log
_FASTEST_PACE = 1e9  # more steps in a second are none
_Stamp = tuple[tuple[str, int, int, int], ...]
_Key = tuple[str, str, Direction | None, str]  # path, metric, direction, user


@dataclass(frozen=True, slots=True)
class Progress:
    """A log as far as it has been written; `problem` says why there is no trace."""

    trace: Trace | None = None  # its finite values, thinned
    last_step: float = 0.0
    steps_per_s: float | None = None  # at its latest pace, where the log has seconds
    modified_s: float = 0.0
    nonfinite_steps: tuple[float, ...] = ()  # at the end, beyond what was a gap before
    ends_in_header: bool = False  # behind rows: whoever wrote it has logged no step yet
    problem: str = ""  # goes to terminals and comments, with what the log made us say

    def __post_init__(self) -> None:
        text = "".join(c if c.isprintable() else "?" for c in self.problem[:_MOST_SAID])
        object.__setattr__(self, "problem", text)


def trace_path(job: ClusterJob, request: JobRequest, patterns: Sequence[str]) -> Path | None:
    """Find where the job logs.

    The comment's own `trace=` counts; else the first of `patterns` that exists. Slurm's %j %A %a
    %x %u are filled in, and a relative path starts at the working directory of the job. For %j of
    a task of an array that is SLURM_JOB_ID, as in sbatch; else 12_3, as our own `TraceLog` has it.
    """
    array, _, task = job.id.partition("_")
    values = {"A": array, "a": task, "x": job.name, "u": job.user, "%": "%"}

    def absolute(pattern: str, number: str) -> Path:
        known = {**values, "j": number}
        return Path(job.workdir or ".") / re.sub(
            r"%([jAaxu%])", lambda match: known[match[1]], pattern
        )

    numbers = dict.fromkeys((job.number or job.id, job.id))
    wanted = (request.trace,) if request.trace else patterns
    candidates = [absolute(pattern, number) for pattern in wanted for number in numbers]
    found = next((path for path in candidates if os.path.exists(path)), None)  # noqa: PTH110
    return candidates[0] if found is None and request.trace else found


class TraceStore:
    """Reads logs and remembers how far, by path. A new store costs time, nothing else.

    Where several threads share it, they read one after the other.
    """

    def __init__(self) -> None:
        self._turn = threading.RLock()
        self._growing: dict[_Key, GrowingLog] = {}
        self._progress: dict[_Key, tuple[_Stamp, Progress]] = {}
        self._reader = ReaderProcess()

    def read(
        self, path: Path, *, metric: str = "", direction: Direction | None = None, user: str = ""
    ) -> Progress:
        """Read a log as far as `user` may, "" for whatever we may.

        The direction is what the name of the metric says, unless it is given; where neither says
        it there is no trace.
        It never raises for what a log may be or contain, and takes a minute at most.
        """
        key = (str(path), metric, direction, user)
        with self._turn:
            try:
                return self._read(path, key)
            except BaseException:  # Ctrl-C: how far the log was read nobody knows
                self._growing.pop(key, None)
                raise

    def _read(self, path: Path, key: _Key) -> Progress:
        user = key[-1]
        try:
            if not user:
                path.stat()
            files = files_of(path, user)
            stamp = tuple((str(f), s.st_ino, s.st_size, s.st_mtime_ns) for f, s in files)
            known = self._progress.get(key)
            if known is not None and known[0] == stamp:
                return known[1]
            progress = self._lines(path, key)
            if progress is None:
                progress = self._other(path, files, key)
        except FileNotFoundError:
            return Progress(problem=f"no log at {path} yet")
        except Exception as error:  # whatever it was, it is the trouble of this job alone
            why = getattr(error, "strerror", None)
            return Progress(problem=f"cannot read {path}: {why}" if why else str(error))
        self._progress[key] = (stamp, progress)
        return progress

    def keep_only(self, paths: set[Path]) -> None:
        """Forget the logs of jobs that are gone."""
        names = {str(path) for path in paths}
        with self._turn:
            self._growing = {k: v for k, v in self._growing.items() if k[0] in names}
            self._progress = {k: v for k, v in self._progress.items() if k[0] in names}

    def _lines(self, path: Path, key: _Key) -> Progress | None:
        """Read a plain CSV or JSON-lines log of one run; None where `read_traces` has to."""
        _, metric, direction, user = key
        if path.suffix not in (".csv", ".jsonl", ".json", ".log", ".txt") or path.is_dir():
            return None
        with open_as(path, user) as file:
            start = file.read(256)
            if start.startswith((b"\x1f\x8b", b"curve,", b"[")):
                return None
            if b"\r" in start and b"\n" not in start:  # which ends its lines
                return None
            status = os.fstat(file.fileno())
            growing = self._growing.setdefault(key, GrowingLog())
            identity = (status.st_dev, status.st_ino)
            if growing.identity != identity or not growing.goes_on_in(file):
                growing = self._growing[key] = GrowingLog(identity=identity)
            growing.read(file, metric)
            if not metric and growing.best() != growing.metric:
                growing = self._growing[key] = GrowingLog(identity, growing.best())
                growing.read(file, metric)
        count = len(growing.step)
        if growing.rows == growing.bad_lines == 0:
            return Progress(problem=f"{path} has no points yet")
        if count == 0 or growing.bad_lines > max(2, 0.01 * count):
            return None  # cells in quotes, a word for no value: or damage, which it names
        if not metric and not any(growing.loss):  # which gives way to another metric there
            return None
        trace = Trace(
            growing.step,
            growing.loss,
            wall_seconds=growing.seconds,
            name=path.name,
            metric=growing.metric,
        )
        progress = self._of(trace, direction, status.st_mtime)
        return replace(progress, ends_in_header=growing.ends_in_header)

    def _other(self, path: Path, files: list[tuple[Path, os.stat_result]], key: _Key) -> Progress:
        """Read a folder of TensorBoard or MLflow, a long CSV …: whatever `read_traces` knows."""
        _, metric, direction, user = key
        with TemporaryDirectory() if user else nullcontext() as folder:
            where = path if folder is None else copy_as(files, path, user, Path(folder))
            try:
                traces = self._reader.read(where, metric or None)
            except IoError as error:
                raise IoError(str(error).replace(str(where), str(path))) from None
        if len(traces) != 1:
            return Progress(
                problem=f"{path} holds {len(traces)} curves, expected one; name it by"
                " metric= in the comment, where its metric has a name of its own"
            )
        return self._of(traces[0], direction, max(status.st_mtime for _, status in files))

    @staticmethod
    def _of(trace: Trace, direction: Direction | None, modified_s: float) -> Progress:
        known = direction or direction_by_name(trace.metric)
        if known is None:
            return Progress(
                problem=f"{trace.name}: the name of its metric {trace.metric!r} does not say which"
                " way is better: give direction=min or direction=max"
            )
        trace = replace(trace, direction=cast(Direction, known))
        finite = np.isfinite(trace.loss)
        if len(trace) and abs(trace.step[-1]) > FURTHEST_STEP:
            return Progress(problem=f"{trace.name}: step {trace.step[-1]:g} is too far")
        if not finite.any():
            return Progress(problem=f"{trace.name}: the metric is not finite anywhere")
        return Progress(
            trace=_thinned(trace, finite),
            last_step=float(trace.step[-1]),
            steps_per_s=_sane_pace(trace),
            modified_s=modified_s,
            nonfinite_steps=_nonfinite_end(trace.step, finite),
        )


def _sane_pace(trace: Trace) -> float | None:
    """Give the pace by the log's clock, unless the clock is none."""
    with np.errstate(all="ignore"):
        found = pace(trace)
    return found if found is not None and 1 / _FASTEST_PACE <= found <= _FASTEST_PACE else None


def _thinned(trace: Trace, finite: np.ndarray) -> Trace:
    """Take the finite values; of a long log every so many, with the last and the best."""
    rows = np.flatnonzero(finite)
    losses = trace.loss[rows]
    best = rows[losses.argmax() if trace.direction == "max" else losses.argmin()]
    each = rows.size // _MAX_ROWS + 1
    rows = np.union1d(rows[(rows.size - 1) % each :: each], best)
    return Trace(
        trace.step[rows],
        trace.loss[rows],
        wall_seconds=None if trace.wall_seconds is None else trace.wall_seconds[rows],
        name=trace.name,
        metric=trace.metric,
        direction=trace.direction,
    )


def _nonfinite_end(step: np.ndarray, finite: np.ndarray) -> tuple[float, ...]:
    """Find the steps of a divergence: the rows without a number at the end of a log.

    A metric that is logged now and then has none in most rows. Rows up to the longest such gap
    between two numbers are no divergence.
    """
    known = np.flatnonzero(finite)
    gap = int(np.diff(known).max()) - 1 if known.size > 1 else 0
    return tuple(step[known[-1] + 1 + gap :].tolist())
