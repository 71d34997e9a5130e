# SPDX-License-Identifier: Apache-2.0
"""What the readers share: metrics as they were logged, and the way from there to a trace."""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from glidepath._core import IoError
from glidepath._metrics import direction_by_name, normal
from glidepath._trace import Trace, make

__all__ = [
    "HEAD_BYTES",
    "AbsentError",
    "RefusedError",
    "Series",
    "choose",
    "header",
    "lines",
    "open_log",
    "to_trace",
    "traces_of",
    "tracked",
]

HEAD_BYTES = 65536
Floats = NDArray[np.float64]

# Names under which the training loss is looked for, best first; see `normal` for the spelling.
PREFERRED = (
    *("loss", "train_loss", "training_loss", "loss_train", "lm_loss", "trl"),
    *("train_loss_step", "train_loss_epoch", "loss_step", "loss_epoch"),
)
# Where there is none of training: losses of evaluation, best first.
SECOND = ("eval_loss", "val_loss", "valid_loss", "validation_loss", "test_loss", "tel")
# Under which Hugging Face and Lightning log their step to a tracker whose own counts calls.
TRAINERS = ("train_global_step", "trainer_global_step")
STEPS = (
    *("step", "global_step", "current_steps", "iteration", "iter", *TRAINERS, "_step"),
    *("n_iter", "epoch"),
)
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SECONDS = ("wall_seconds", "elapsed_seconds", "elapsed_time", "total_duration", "_runtime")
STAMPS = ("timestamp", "_timestamp", "wall_time")
_RATE = re.compile(r"(^|_)(lr|learning_rate)(_|$)|^lr")


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

    def add(self, step: float, value: float, seconds: float = math.nan) -> None:
        """Append a row."""
        self.step.append(step)
        self.value.append(value)
        self.seconds.append(seconds)


def counted(number: int, what: str) -> str:
    """Write a number of things: ``"1 row"``, ``"2 rows"``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def is_rate(name: str) -> bool:
    """Whether a column holds learning rates."""
    return _RATE.search(normal(name)) is not None


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


def choose(names: Iterable[str], metric: str | None, path: Path | str) -> str:
    """Pick the metric to read.

    Parameters
    ----------
    names : iterable of str
        The metrics of the run.
    metric : str or None
        The one to read. Without it, in this order: `PREFERRED`, any with both "train" and "loss"
        in its name, `SECOND`, any with "loss", "metric", and the only one there is.
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
    there = list(names)
    shown = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
    if not there:
        raise AbsentError(f"{path}: no metric was logged")
    if metric is not None:
        if metric in there:
            return metric
        raise AbsentError(f"{path}: no metric {metric!r}, only {shown}")
    spelled = {normal(name): name for name in reversed(there)}
    for wanted in PREFERRED:
        if wanted in spelled:
            return spelled[wanted]
    losses = [name for key, name in reversed(spelled.items()) if "loss" in key]
    for name in losses:
        if "train" in normal(name):
            return name
    for wanted in SECOND:
        if wanted in spelled:
            return spelled[wanted]
    if losses:
        return losses[0]
    if "metric" in spelled:
        return spelled["metric"]
    curves = [name for name in there if not is_rate(name)]
    if len(curves) == 1:
        return curves[0]
    raise AbsentError(f"{path}: none of the metrics is a loss; say metric= one of {shown}")


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
    key = choose(full, metric, path)
    said = list(notes)
    if metric is None and normal(key) not in PREFERRED:
        said.append(f"no metric is called a training loss: {key!r} was read")
    column = full[key]
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
    rates = None
    rate = next((other for other in full if is_rate(other) and other != key), None)
    if rate is not None:
        rates = _at_same_step(step, full[rate])
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


def flat(row: Mapping[str, Any], mark: str, within: str = "") -> Iterator[tuple[str, Any]]:
    """Give the cells of a row of nested names, joined by a mark."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, mark, f"{within}{key}{mark}")
        else:
            yield within + key, value


def tracked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Series]:
    """Gather what a tracker holds of a run, a row a call of its `log`.

    Parameters
    ----------
    rows : sequence of mappings
        Metrics by name beside the tracker's own ``_step`` and, in seconds, ``_runtime``. Other
        names that begin with ``_`` are its own too. Words for NaN and infinity are numbers.

    Returns
    -------
    dict of str to Series
        By the step of the trainer where every row has one, as the tracker's counts calls of `log`.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    of_trainer = (name for name in names if normal(name) in TRAINERS)
    column = next((name for name in of_trainer if all(name in row for row in rows)), "_step")
    series: dict[str, Series] = defaultdict(Series)
    for row in rows:
        step, seconds = row.get(column), row.get("_runtime")
        if not isinstance(step, (int, float)):
            continue
        seconds = seconds if isinstance(seconds, (int, float)) else math.nan
        for name, value in row.items():
            value = _WORDS.get(value, value) if isinstance(value, str) else value
            if name == column or name[:1] == "_" or isinstance(value, bool):
                continue
            if isinstance(value, (int, float)):
                series[name].add(float(step), float(value), seconds)
    return series


def open_log(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a file, unpacking it where it is gzip."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return gzip.open(path) if packed else path.open("rb")
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None


def header(head: bytes) -> list[str]:
    """Split the first line of a CSV into the names of its columns."""
    text = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").strip()
    return [column.strip().strip('"') for column in text.split(",")]


def lines(path: Path) -> Iterator[str]:
    """Read the lines of a text, without their ends; bytes that are not UTF-8 are replaced."""
    try:
        with open_log(path) as file:
            for line in file:
                yield line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise IoError(f"{path}: {error}") from None


def is_cut(path: Path) -> bool:
    """Whether a text stops within a line, as when its writer was killed."""
    with path.open("rb") as file:
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
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def step_column(names: Iterable[str]) -> str | None:
    """Find the column of steps, by the names that tools give it."""
    spelled = {normal(name): name for name in names}
    return next((spelled[wanted] for wanted in STEPS if wanted in spelled), None)


def clock_column(names: Iterable[str]) -> tuple[str | None, bool]:
    """Find the column of wall-clock time, and whether it holds times of day."""
    spelled = {normal(name): name for name in names}
    for wanted in SECONDS:
        if wanted in spelled:
            return spelled[wanted], False
    for wanted in STAMPS:
        if wanted in spelled:
            return spelled[wanted], True
    return None, False
