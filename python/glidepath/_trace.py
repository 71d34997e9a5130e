# SPDX-License-Identifier: Apache-2.0
"""Traces: what was logged of a training run, checked once and never changed afterwards."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import InputError, IoError
from glidepath._results import Result, require

__all__ = ["Cleaned", "Trace", "clean", "read_traces"]

Floats = NDArray[np.float64]
Direction = Literal["min", "max"]


def _column(values: ArrayLike, name: str) -> Floats:
    """Give a read-only column of float64: the array itself where it is one, else a copy."""
    try:
        found = np.asarray(values)
    except ValueError as error:  # rows of different length
        raise InputError(f"{name}: {error}") from None
    if found.dtype.kind not in "fiub" and found.size > 0:
        raise TypeError(f"{name}: expected an array of numbers, got dtype {found.dtype}")
    if found.ndim != 1:
        raise InputError(f"{name}: expected 1 dimension, got {found.ndim}")
    if found.dtype == np.float64 and found.flags.c_contiguous and not found.flags.writeable:
        return found
    column = np.array(found, dtype=np.float64, order="C")
    column.flags.writeable = False
    return column


def _beside(values: ArrayLike | None, name: str, points: int) -> Floats | None:
    """Check an optional column: as long as the others, NaN where it was not recorded."""
    if values is None:
        return None
    column = _column(values, name)
    if column.size != points:
        raise InputError(f"trace: {points} steps but {column.size} of {name}")
    return column


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Trace(Result):
    """One training run: a metric at increasing steps.

    Parameters
    ----------
    step : array_like, shape (n,)
        Finite and strictly increasing, in the unit of the run (optimizer steps, epochs, tokens).
    loss : array_like, shape (n,)
        The metric at each step. NaN and infinite values are kept: a fit reports them as a status.
    lr : array_like, shape (n,), optional
        Learning rate at each step, NaN where it was not recorded.
    wall_seconds : array_like, shape (n,), optional
        Seconds since the run began, NaN where they were not recorded.
    name : str, optional
        What reports call the run.
    direction : {"min", "max"}, optional
        Whether the metric is better when low, as a loss is, or when high, as an accuracy is.

    Raises
    ------
    InputError
        When the columns differ in length, the steps do not increase or a learning rate is negative
        or infinite.
    TypeError
        When a column does not hold numbers.

    Notes
    -----
    Columns are copied unless they are read-only already; the trace's own are read-only. `len()` is
    the number of points. To repair steps that repeat or go back, as they do when a run restarts
    from a checkpoint, see `clean`.
    """

    step: Floats
    loss: Floats
    lr: Floats | None
    wall_seconds: Floats | None
    name: str
    direction: Direction

    def __init__(
        self,
        step: ArrayLike,
        loss: ArrayLike,
        *,
        lr: ArrayLike | None = None,
        wall_seconds: ArrayLike | None = None,
        name: str = "",
        direction: str = "min",
    ) -> None:
        if direction not in ("min", "max"):
            raise InputError(f"trace: direction {direction!r} is neither 'min' nor 'max'")
        steps, losses = _column(step, "step"), _column(loss, "loss")
        _core.validate_trace(steps, losses)
        rates = _beside(lr, "lr", steps.size)
        if rates is not None:
            bad = np.flatnonzero((rates < 0) | np.isinf(rates))
            if bad.size:
                raise InputError(f"trace: lr[{bad[0]}] is {rates[bad[0]]:g}")
        put = object.__setattr__  # the class is frozen
        put(self, "step", steps)
        put(self, "loss", losses)
        put(self, "lr", rates)
        put(self, "wall_seconds", _beside(wall_seconds, "wall_seconds", steps.size))
        put(self, "name", str(name))
        put(self, "direction", direction)

    def __len__(self) -> int:
        return self.step.size

    def __bool__(self) -> bool:
        return True  # a trace without points is still a trace

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.step, self.loss, self.lr, self.wall_seconds)
        return _trace, (*columns, self.name, self.direction)

    def head(self, last_step: float) -> Trace:
        """Keep the points up to and including `last_step`: what was known then. No copy.

        Parameters
        ----------
        last_step : float
            In the unit of `step`; not NaN.

        Returns
        -------
        Trace
        """
        if np.isnan(last_step):
            raise InputError("head: last_step is nan")
        kept = int(np.searchsorted(self.step, last_step, side="right"))
        return _trace(
            self.step[:kept],
            self.loss[:kept],
            None if self.lr is None else self.lr[:kept],
            None if self.wall_seconds is None else self.wall_seconds[:kept],
            self.name,
            self.direction,
        )

    def to_pandas(self) -> Any:
        """Make a DataFrame of the columns that were recorded.

        Returns
        -------
        pandas.DataFrame
            `step`, `loss`, and `lr` and `wall_seconds` where the trace has them.
        """
        columns = {"step": self.step, "loss": self.loss}
        if self.lr is not None:
            columns["lr"] = self.lr
        if self.wall_seconds is not None:
            columns["wall_seconds"] = self.wall_seconds
        return require("pandas").DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the run.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure without it.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from glidepath import _plots

        return _plots.trace(self, ax=ax)

    def _summary(self) -> str:
        parts = [repr(self.name)] if self.name else []
        parts.append(f"{len(self)} point{'' if len(self) == 1 else 's'}")
        if len(self):
            parts.append(f"steps {self.step[0]:g} to {self.step[-1]:g}")
            parts.append(f"loss {self.loss[0]:.4g} to {self.loss[-1]:.4g}")
        broken = len(self) - int(np.count_nonzero(np.isfinite(self.loss)))
        if broken:
            parts.append(f"{broken} not finite")
        if self.lr is not None:
            parts.append("with lr")
        if self.direction == "max":
            parts.append("higher is better")
        return ", ".join(parts)


def _trace(
    step: ArrayLike,
    loss: ArrayLike,
    lr: ArrayLike | None,
    wall_seconds: ArrayLike | None,
    name: str,
    direction: str,
) -> Trace:
    """Build a trace of columns that nobody else refers to, in the order of `_core`."""
    for column in (step, loss, lr, wall_seconds):
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return Trace(step, loss, lr=lr, wall_seconds=wall_seconds, name=name, direction=direction)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cleaned(Result):
    """A trace fit for fitting, and what had to be done to it.

    Attributes
    ----------
    trace : Trace
    dropped_nonfinite : int
        Points left out because step or loss was NaN or infinite.
    dropped_repeats : int
        Points left out because their step was recorded again later.
    pulled_in : int
        Spikes pulled in to the range of their neighbours.
    thinned : int
        Points left out by thinning.
    """

    trace: Trace
    dropped_nonfinite: int
    dropped_repeats: int
    pulled_in: int
    thinned: int

    def _summary(self) -> str:
        done = [
            f"{count} {what}"
            for count, what in (
                (self.dropped_nonfinite, "not finite dropped"),
                (self.dropped_repeats, "repeated dropped"),
                (self.pulled_in, "spikes pulled in"),
                (self.thinned, "thinned out"),
            )
            if count
        ]
        return f"{len(self.trace)} points, {', '.join(done) or 'nothing to do'}"


def clean(
    step: ArrayLike | Trace,
    loss: ArrayLike | None = None,
    *,
    lr: ArrayLike | None = None,
    wall_seconds: ArrayLike | None = None,
    name: str = "",
    direction: str = "min",
    max_points: int = 512,
    winsorise_sigmas: float = 0.0,
) -> Cleaned:
    """Make a trace of raw logs: drop what is not finite, sort by step, thin.

    Where a step was recorded more than once, as after a restart from a checkpoint, the later row
    wins.

    Parameters
    ----------
    step, loss, lr, wall_seconds, name, direction
        As in `Trace`, except that steps may repeat, go back or be NaN. A `Trace` in place of `step`
        stands for all of them.
    max_points : int, optional
        More points than this are thinned to as many, evenly in log step, keeping the first and the
        last.
    winsorise_sigmas : float, optional
        Losses further than this many noise levels from the median of the five around them are
        pulled in to that distance; 0 pulls in none. The noise level is the median absolute
        deviation of successive differences.

    Returns
    -------
    Cleaned

    Raises
    ------
    InputError
        When columns differ in length or an option is out of range.
    """
    if isinstance(step, Trace):
        if loss is not None or lr is not None or wall_seconds is not None:
            raise InputError("clean: a Trace has its own loss, lr and wall_seconds")
        raw = step
        step, loss, lr, wall_seconds = raw.step, raw.loss, raw.lr, raw.wall_seconds
        name, direction = raw.name, raw.direction
    if loss is None:
        raise InputError("clean: loss is missing")
    columns, *counts = _core.clean_columns(
        step, loss, lr, wall_seconds, max_points, winsorise_sigmas
    )
    steps, losses, rates, seconds, *_ = columns
    return Cleaned(_trace(steps, losses, rates, seconds, name, direction), *counts)


class Format(NamedTuple):
    """A kind of log file. `read` takes the file and a metric, None for the usual one."""

    recognises: Callable[[Path], bool]
    read: Callable[[Path, str | None], list[Trace]]


def csv_header(path: Path) -> list[str]:
    """Read the column names of a CSV, plain or gzip; none when they cannot be read."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            line = file.readline(65536)
    except (OSError, EOFError):
        return []
    text = line.decode("utf-8-sig", errors="replace").strip()
    return [column.strip().strip('"') for column in text.split(",")]


def _is_long_csv(path: Path) -> bool:
    return {"curve", "step"} <= set(csv_header(path))


def _read_long_csv(path: Path, metric: str | None) -> list[Trace]:
    return [_trace(*row) for row in _core.read_long_csv(os.fsencode(path), metric or "value")]


# In the order in which they are asked whether a file is theirs.
FORMATS: dict[str, Format] = {"csv": Format(_is_long_csv, _read_long_csv)}


def read_traces(
    path: str | os.PathLike[str],
    *,
    metric: str | None = None,
    format: str | None = None,  # noqa: A002 - the builtin is not needed here
) -> list[Trace]:
    """Read every run of a file, or of all files of a folder and the folders in it.

    Parameters
    ----------
    path : path_like
        A file of one of the formats below, or a folder with some; its other files are passed over.
    metric : str, optional
        Name of the metric to read, the format's usual one by default.
    format : str, optional
        ``"csv"`` is the long form ``curve,step,value[,lr][,wall_seconds]``, plain or gzip, one row
        a point. Rows without a value are passed over. A JSON file of the same stem beside it may
        say ``"direction": "max"``. By default the format is found from each file's content.

    Returns
    -------
    list of Trace
        In the order of the file, and of the files' names.

    Raises
    ------
    IoError
        With file and line, when a file is missing, empty, malformed or of no known format, or a
        folder has no file that is.
    InputError
        When `format` is unknown.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"read_traces: format {format!r} is none of {', '.join(FORMATS)}")
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, metric, format)
    kind = format or _format_of(path)
    if kind is None:
        # Not of any format, or broken before that shows: the CSV reader says what is wrong.
        kind = "csv"
    return FORMATS[kind].read(path, metric)


def _format_of(path: Path) -> str | None:
    return next((name for name, kind in FORMATS.items() if kind.recognises(path)), None)


def _read_folder(folder: Path, metric: str | None, format: str | None) -> list[Trace]:  # noqa: A002
    traces: list[Trace] = []
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        kind = _format_of(file)
        if kind is None or (format is not None and kind != format):
            continue
        if kind == "csv" and metric is not None and metric not in csv_header(file):
            continue
        traces += FORMATS[kind].read(file, metric)
    if not traces:
        wanted = f" with a metric {metric!r}" if metric is not None else ""
        formats = format or ", ".join(FORMATS)
        raise IoError(f"{folder}: no traces in this folder{wanted} (formats: {formats})")
    return traces
