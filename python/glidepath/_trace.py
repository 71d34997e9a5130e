# SPDX-License-Identifier: Apache-2.0
"""Traces: what was logged of a training run, checked once and never changed afterwards."""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

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
    notes : iterable of str, optional
        What a reader repaired, a sentence each. Two traces are equal whatever their notes say.

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
    notes: tuple[str, ...] = field(compare=False)

    def __init__(
        self,
        step: ArrayLike,
        loss: ArrayLike,
        *,
        lr: ArrayLike | None = None,
        wall_seconds: ArrayLike | None = None,
        name: str = "",
        direction: str = "min",
        notes: Iterable[str] = (),
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
        put(self, "notes", tuple(notes))

    def __len__(self) -> int:
        return self.step.size

    def __bool__(self) -> bool:
        return True  # a trace without points is still a trace

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.step, self.loss, self.lr, self.wall_seconds)
        return _trace, (*columns, self.name, self.direction, self.notes)

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
            self.notes,
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
        return "; ".join([", ".join(parts), *self.notes])


def _trace(
    step: ArrayLike,
    loss: ArrayLike,
    lr: ArrayLike | None,
    wall_seconds: ArrayLike | None,
    name: str,
    direction: str,
    notes: tuple[str, ...] = (),
) -> Trace:
    """Build a trace of columns that nobody else refers to, in the order of `_core`."""
    for column in (step, loss, lr, wall_seconds):
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return Trace(
        step,
        loss,
        lr=lr,
        wall_seconds=wall_seconds,
        name=name,
        direction=direction,
        notes=notes,
    )


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
    notes: tuple[str, ...] = ()
    if isinstance(step, Trace):
        if loss is not None or lr is not None or wall_seconds is not None:
            raise InputError("clean: a Trace has its own loss, lr and wall_seconds")
        raw = step
        step, loss, lr, wall_seconds = raw.step, raw.loss, raw.lr, raw.wall_seconds
        name, direction, notes = raw.name, raw.direction, raw.notes
    if loss is None:
        raise InputError("clean: loss is missing")
    columns, *counts = _core.clean_columns(
        step, loss, lr, wall_seconds, max_points, winsorise_sigmas
    )
    steps, losses, rates, seconds, *_ = columns
    kept = _trace(steps, losses, rates, seconds, name, direction, notes)
    return Cleaned(kept, *counts)


# What recognises and reads each format: a module of `glidepath.readers`, imported when a file is
# read. In the order in which they are asked whether a file is theirs.
FORMATS = {
    "csv": "long_csv",
    "wandb": "wandb_log",
    "wandb_csv": "wandb_csv",
    "wandb_summary": "wandb_summary",
    "trainer_state": "trainer_state",
    "jsonl": "json_lines",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow_files",
    "trackio": "trackio",
    "mlflow_sqlite": "mlflow_sqlite",
    "parquet": "parquet",
    "dvclive": "dvclive",
    "table": "wide_csv",
    "text": "text_log",
}
# What reads an object, by the method that tells what it is.
OBJECTS = {
    "scan_history": "wandb_api",
    "get_metric_history": "mlflow_client",
    "__arrow_c_stream__": "frame",
}


def _reader(format: str) -> Any:  # noqa: A002
    return importlib.import_module(f"glidepath.readers.{FORMATS[format]}")


def _read_object(source: Any, metric: str | None) -> list[Trace]:
    for method, module in OBJECTS.items():
        if hasattr(source, method):
            found: list[Trace] = importlib.import_module(f"glidepath.readers.{module}").read(
                source, metric
            )
            return found
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return [trace for each in source for trace in read_traces(each, metric=metric)]
    raise TypeError(
        f"read_traces: {type(source).__name__} is no path, address, data frame (Arrow), run of W&B "
        "or client of MLflow"
    )


def _read_page(url: str, metric: str | None) -> list[Trace]:
    if urlsplit(url).hostname in ("wandb.ai", "www.wandb.ai"):
        from glidepath.readers import wandb_api

        return _read_object(wandb_api.open_url(url), metric)
    from glidepath.readers import mlflow_client

    return mlflow_client.read_url(url, metric)


def read_traces(
    path: str | os.PathLike[str] | Any,
    *,
    metric: str | None = None,
    format: str | None = None,  # noqa: A002 - the builtin is not needed here
) -> list[Trace]:
    """Read every run of a file, of all files of a folder and the folders in it, or of a server.

    Parameters
    ----------
    path : path_like or object
        A file of one of the formats below, or a folder with some; its other files are passed over,
        as are those that lack the metric. Or the address of an MLflow server or one of its pages,
        or of the page of a run or project of W&B (``https://wandb.ai/…``). Or a data frame of any
        library with Arrow's PyCapsule protocol (needs pyarrow), a run of ``wandb.Api()``, an
        ``mlflow.MlflowClient``, or several of these.
    metric : str, optional
        Name of the metric to read. By default the training loss: ``loss``, ``train_loss`` and the
        like, else a loss of evaluation; `docs/formats.md` has the list.
    format : str, optional
        ``"csv"`` is the long form ``curve,step,value[,lr][,wall_seconds]``, plain or gzip, one row
        a point, by default of the column ``value``. Rows without a value are passed over. A JSON
        file of the same stem beside it may say ``"direction": "max"``. ``"table"`` is a CSV or TSV
        with a column a metric (Lightning, Keras, Ultralytics, AlgoPerf); the others are
        ``"trainer_state"`` of Hugging Face, ``"jsonl"``, ``"tensorboard"``, ``"mlflow"`` (the file
        store), ``"mlflow_sqlite"``, ``"wandb"`` (its log on disk), ``"wandb_csv"`` (a panel),
        ``"trackio"``, ``"parquet"``, ``"dvclive"``, ``"text"`` (Megatron-LM, DeepSpeed, nanoGPT,
        llm.c) and ``"wandb_summary"``, which is refused. By default it is found from each file's
        content. Of a file or folder only.

    Returns
    -------
    list of Trace
        In the order of the file, and of the files' names. Of a folder, a run is named by its
        relative path; those of trackers by their id or name, and several of one file as it says.
        Where a run restarted, the later rows win, and the trace's `notes` tell.

    Raises
    ------
    IoError
        With file and line, when a file is missing, empty, malformed, of no known format or without
        the metric, or a folder has no file that is; with the server's words, when it gave none.
    InputError
        When `format` is unknown, or the path empty.
    TypeError
        When `path` is none of the above.
    """
    if not isinstance(path, (str, os.PathLike)):
        return _read_object(path, metric)
    if isinstance(path, str) and path.startswith(("http://", "https://")):
        return _read_page(path, metric)
    if format is not None and format not in FORMATS:
        raise InputError(f"read_traces: format {format!r} is none of {', '.join(FORMATS)}")
    if not os.fspath(path):
        raise InputError("read_traces: the path is empty")
    path = Path(path)
    try:
        return (_read_folder if path.is_dir() else _read_file)(path, metric, format)
    except IoError:
        raise
    except OSError as error:  # such as a folder or file that may not be read
        raise IoError(f"{error.filename or path}: {error.strerror or error}") from None


def _read_file(path: Path, metric: str | None, format: str | None) -> list[Trace]:  # noqa: A002
    kind = format if path.is_file() else "csv"
    if kind is None:
        head = _head(path)
        kind = _format_of(path, head)
        if kind is None:
            _refuse_unknown(path, head)
    # Of a file that is empty, or a long CSV that lacks a column, the CSV reader says so.
    found: list[Trace] = _reader(kind or "csv").read(path, metric)
    return found


def _refuse_unknown(path: Path, head: bytes) -> None:
    """Say of a file that is none of ours what it lacks; of nothing, nothing."""
    from glidepath.readers.long_csv import header

    names = header(head)
    if not head.strip(b"\xef\xbb\xbf \t\r\n") or "curve" in names:
        return
    if ".csv" in path.suffixes and all(name.isprintable() for name in names):
        columns = ", ".join(name[:30] for name in names[:8]) + (" …" if len(names) > 8 else "")
        raise IoError(
            f"{path}:1: a table needs a column of steps (step, epoch, iteration …) or a loss, the "
            f"long form curve, step and value: found only {columns}"
        )
    raise IoError(f"{path}: a log of no known format (formats: {', '.join(FORMATS)})")


def _head(path: Path) -> bytes:
    """How a file begins, unpacked where it is gzip; nothing when it cannot be read."""
    from glidepath.readers._series import HEAD_BYTES, open_log

    try:
        with open_log(path) as file:
            return file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _format_of(path: Path, head: bytes) -> str | None:
    return next((name for name in FORMATS if _reader(name).recognises(path, head)), None)


def _read_folder(folder: Path, metric: str | None, format: str | None) -> list[Trace]:  # noqa: A002
    from glidepath.readers._series import AbsentError, RefusedError

    traces: list[Trace] = []
    done: set[tuple[str, Path]] = set()
    passed: IoError | None = None
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        head = _head(file)
        kind = _format_of(file, head)
        if kind is None or (format is not None and kind != format):
            continue
        reader = _reader(kind)
        unit: Path = reader.unit(file)
        if (kind, unit) in done:
            continue
        done.add((kind, unit))
        try:
            if kind == "csv":
                traces += reader.read_in_folder(unit, metric, head)
                continue
            found = reader.read(unit, metric)
        except (AbsentError, RefusedError) as error:
            passed = passed or error
            continue
        # A run called as its file is; an id of MLflow is a name of its own.
        if len(found) == 1 and found[0].name == unit.name and kind != "mlflow":
            inside = folder in unit.parents
            name = unit.relative_to(folder).as_posix() if inside else folder.resolve().name
            object.__setattr__(found[0], "name", name)  # nobody else has seen it yet
        traces += found
    if not traces:
        wanted = f" with a metric {metric!r}" if metric is not None else ""
        formats = format or ", ".join(FORMATS)
        reason = "" if passed is None else f"; {passed}"
        raise IoError(f"{folder}: no traces in this folder{wanted} (formats: {formats}){reason}")
    return traces
