# SPDX-License-Identifier: Apache-2.0
"""What the readers share: metrics as they were logged, and the way from there to a trace."""

from __future__ import annotations

import gzip
import math
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glidepath._core import IoError
from glidepath._metrics import (
    TRAINING_LOSSES,
    best_name,
    direction_by_name,
    is_rate,
    normal,
)
from glidepath._trace import Trace, make

HEAD_BYTES = 65536
# Bytes in a line of text, and in a file that was packed.
_LONGEST_LINE, _MOST_BYTES = 1 << 26, 1 << 30
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
_RATES = 16  # columns of learning rates that are looked at: those of layers may be many
Floats = NDArray[np.float64]


# Where `to_trace` leaves a trace of every metric of a run, while somebody collects them.
collected: ContextVar[list[Trace] | None] = ContextVar("collected", default=None)


class AbsentError(IoError):  # type: ignore[misc, unused-ignore] # a class of the extension
    """A sound file without the metric or points: a folder's other files may have it."""


class RefusedError(IoError):  # type: ignore[misc, unused-ignore]
    """A file of a known tool that holds no curve, or none that can be read."""


@dataclass(slots=True)
class Series:
    """One metric as it was logged: rows in the order of the file, nothing repaired yet."""

    step: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    # Since any origin, NaN where not known; none at all where no row has a time.
    seconds: list[float] = field(default_factory=list)
    # What was done to find the steps, where they will end by plan, and what they are called.
    notes: list[str] = field(default_factory=list)
    planned: float | None = None
    counter: str = ""

    def add(self, step: float, value: float, seconds: float = math.nan) -> None:
        """Append a row."""
        self.step.append(step)
        self.value.append(value)
        self.seconds.append(seconds)


def counted(number: int, what: str) -> str:
    """Write a number of things: ``"1 row"``, ``"2 rows"``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def direction_of(name: str, value: Floats) -> tuple[str, list[str]]:
    """Tell whether a metric is better when high: by its name, else by where its values went."""
    known = direction_by_name(name)
    if known is not None:
        return known, []
    finite = value[np.isfinite(value)]
    quarter = finite.size // 4
    if quarter == 0:
        return "min", []
    before, after = float(np.median(finite[:quarter])), float(np.median(finite[-quarter:]))
    direction, taken = ("max", "high") if after > before else ("min", "low")
    return direction, [
        f"the name {name!r} does not say which way is better: it went from {before:.4g} to "
        f"{after:.4g}, so {taken} values are"
    ]


def choose(points: Mapping[str, float], metric: str | None, path: Path | str) -> str:
    """Pick the metric to read.

    Parameters
    ----------
    points : mapping of str to float
        The metrics of the run, and how often each was logged.
    metric : str or None
        The one to read. Without it the one that `glidepath._metrics.best_name` finds.
    path : Path or str
        Who to blame: a file, or what a server calls its run.

    Returns
    -------
    str

    Raises
    ------
    AbsentError
        When it is not there; the message names those that are.
    """
    there = list(points)
    shown = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
    if not there:
        raise AbsentError(f"{path}: no metric was logged")
    if metric is None:
        found = best_name(points)
        if found is None:
            raise AbsentError(
                f"{path}: none of the metrics is a loss or a score; say metric= one of {shown}"
            )
        return found
    if metric not in points:
        raise AbsentError(f"{path}: no metric {metric!r}, only {shown}")
    return metric


def _later_wins(step: Floats) -> tuple[NDArray[np.intp], list[str]]:
    """Choose the rows to keep where steps repeat or go back, and say so."""
    if step.size < 2:
        return np.arange(step.size), []
    # A row stays when every later row is above it: what a restart repeats goes, at any depth.
    above = np.append(np.minimum.accumulate(step[::-1])[::-1][1:], np.inf)
    kept = np.flatnonzero(step < above)
    change = np.diff(step)
    back, same = np.flatnonzero(change < 0), int(np.count_nonzero(change == 0))
    notes = []
    if back.size:
        where = ", ".join(f"{step[i + 1]:g}" for i in back[:5]) + (" …" if back.size > 5 else "")
        times = "once" if back.size == 1 else f"{back.size} times"
        gone = step.size - kept.size - same
        notes.append(
            f"restarted {times}, at step {where}: "
            f"{counted(max(gone, 0), 'earlier row')} gave way to later ones"
        )
    if same:
        notes.append(f"{counted(same, 'repeated step')}: the later row was kept")
    return kept, notes


def to_trace(
    series: Mapping[str, Series],
    metric: str | None,
    path: Path | str,
    name: str,
    notes: Iterable[str] = (),
    *,
    planned_steps: float | None = None,
) -> Trace:
    """Make the trace of one run.

    Parameters
    ----------
    series : mapping of str to Series
        All its metrics; those without rows count as absent. Learning rates are found by name and
        put where they were logged at the same step.
    metric : str or None
        As in `choose`.
    path : Path or str
        The file, for messages.
    name : str
        Name of the run.
    notes : iterable of str
        What the reader repaired already.
    planned_steps : float, optional
        The step at which the log says that the run will end, in the unit of its steps. One before
        the last step is left out: the run has gone on under another plan.

    Returns
    -------
    Trace
        With what was repaired in its `notes`.
    """
    full = {key: column for key, column in series.items() if column.step}
    found = collected.get()
    if found is not None:
        collected.set(None)
        for each in full:
            with suppress(IoError):
                found.append(to_trace(full, each, path, name, notes, planned_steps=planned_steps))
        collected.set(found)
    key = choose({name: len(column.step) for name, column in full.items()}, metric, path)
    column = full[key]
    said = [*notes, *column.notes]
    planned_steps = column.planned if planned_steps is None else planned_steps
    if metric is None and normal(key) not in TRAINING_LOSSES:
        said.append(f"no metric is called a training loss: {key!r} was read")
    step, value = np.array(column.step, dtype=float), np.array(column.value, dtype=float)
    if not np.isfinite(step).all():
        raise IoError(f"{path}: a step of {key!r} is not a finite number")
    if step.size > 1 and not step.any():
        said.append("every row is at step 0: rows are numbered from 1 instead")
        planned_steps = None
        step = np.arange(1.0, step.size + 1)
    kept, repairs = _later_wins(step)
    said += repairs
    step, value = step[kept], value[kept]
    rated = [each for each in full if is_rate(each) and each != key][:_RATES]
    logged = [_at_same_step(step, full[each]) for each in rated]
    rates = max(logged, key=lambda each: int(np.isfinite(each).sum()), default=None)
    if rates is not None:
        bad = (rates < 0) | np.isinf(rates)
        if bad.any():
            said.append(f"{counted(int(bad.sum()), 'learning rate')} below 0 or infinite: left out")
            rates[bad] = math.nan
        if np.isnan(rates).all():
            rates = None
    seconds = np.array(column.seconds or [math.nan] * len(column.step), dtype=float)[kept]
    direction, guess = direction_of(key, value)
    said += guess
    wall = None if np.isnan(seconds).all() else seconds
    if planned_steps is not None and not (max(0.0, step[-1]) <= planned_steps < math.inf):
        planned_steps = None
    return make(
        {
            "step": step,
            "loss": value,
            "lr": rates,
            "wall_seconds": wall,
            "name": name,
            "metric": key,
            "direction": direction,
            "planned_steps": planned_steps or None,
            "notes": said,
        }
    )


def traces_of(
    runs: Mapping[str, Mapping[str, Series]],
    metric: str | None,
    path: Path | str,
    *,
    names: Mapping[str, str] | None = None,
    notes: Mapping[str, Iterable[str]] | None = None,
) -> list[Trace]:
    """Make the traces of several runs; those without the metric are left out.

    Parameters
    ----------
    runs : mapping
        The metrics of each run, by any key.
    metric, path
        As in `to_trace`.
    names : mapping, optional
        What the runs are called, where it is not their key.
    notes : mapping, optional
        What was repaired already of a run.

    Returns
    -------
    list of Trace

    Raises
    ------
    AbsentError
        When no run has the metric.
    """
    traces, absent = [], None
    for key, series in runs.items():
        try:
            name, said = (names or {}).get(key, key), (notes or {}).get(key, ())
            traces.append(to_trace(series, metric, path, name, said))
        except AbsentError as error:
            absent = error
    if not traces:
        raise absent or AbsentError(f"{path}: no metric was logged")
    return traces


def _at_same_step(step: Floats, column: Series) -> Floats:
    """Take the values logged at each of the steps; NaN where there is none."""
    at, value = np.array(column.step, dtype=float), np.array(column.value, dtype=float)
    kept, _ = _later_wins(at)
    at, value = at[kept], value[kept]
    place = np.minimum(np.searchsorted(at, step), at.size - 1)
    return np.where(at[place] == step, value[place], math.nan)


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file as it is; a pipe or a device may never end, and is an IoError."""
    try:
        # With O_NONBLOCK a pipe does not wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise IoError(f"{path}: not a regular file")
    return os.fdopen(handle, "rb")


def open_log(path: Path) -> BufferedReader | gzip.GzipFile:
    """Open a regular file, unpacking it where it is gzip."""
    file = open_plain(path)
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not packed:
        return file
    unpacked = gzip.GzipFile(fileobj=file, mode="rb")
    unpacked.myfileobj = file  # type: ignore[assignment] # which is closed with it
    return unpacked


def read_whole(path: Path) -> bytes:
    """Read a file to its end, unpacked where it is gzip: to no more than `_MOST_BYTES` then."""
    with open_log(path) as file:
        most = _MOST_BYTES if isinstance(file, gzip.GzipFile) else -1
        try:
            data = file.read(most if most < 0 else most + 1)
        except _DAMAGED as error:
            raise IoError(f"{path}: {error}") from None
    if len(data) > most >= 0:
        raise IoError(f"{path}: more than {most >> 20} MiB, unpacked")
    return data


def header(head: bytes) -> list[str]:
    """Split the first line of a CSV into the names of its columns."""
    text = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").strip()
    return [column.strip().strip('"') for column in text.split(",")]


def lines(path: Path) -> Iterator[str]:
    """Read the lines of a text, without their ends; bytes that are not UTF-8 are replaced.

    What is longer than `_LONGEST_LINE` is an IoError.
    """
    left, count = _MOST_BYTES, 1
    with open_log(path) as file:
        try:
            while line := file.readline(_LONGEST_LINE + 1):
                left -= len(line) if isinstance(file, gzip.GzipFile) else 0
                if left < 0 or len(line) > _LONGEST_LINE:
                    what = "unpacked" if left < 0 else "in a line"
                    size = (_MOST_BYTES if left < 0 else _LONGEST_LINE) >> 20
                    raise IoError(f"{path}:{count}: more than {size} MiB {what}")
                yield line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
                count += 1
        except _DAMAGED as error:
            raise IoError(f"{path}:{count}: {error}") from None


def without_secrets(text: str) -> str:
    """Leave the login and the query of an address out of a message."""
    text = re.sub(r"://[^/@\s]{1,999}@", "://", text)
    return re.sub(r"(://[^\s?]{1,999})\?[^\s:]+", r"\1", text)


def is_cut(path: Path) -> bool:
    """Whether a text stops within a line, as when its writer was killed."""
    with open_plain(path) as file:
        if file.read(2) == b"\x1f\x8b" or not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) not in b"\r\n"


def seconds_of(text: str) -> float:
    """Read a duration: seconds, or ``[D day[s],] H:MM:SS`` as Python prints it."""
    match = re.fullmatch(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)", text.strip())
    if match is None:
        try:
            return float(text)
        except ValueError:
            return math.nan
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds
