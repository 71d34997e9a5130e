# SPDX-License-Identifier: Apache-2.0
"""Which reader a log is for: by its content, or by what an object can do."""

from __future__ import annotations

import importlib
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from glidepath._arguments import checked
from glidepath._core import AbsentError, InputError, IoError, RefusedError, unknown_format
from glidepath._results import Result, counted
from glidepath._trace import Direction, Trace, renamed
from glidepath.readers._folder import read_folder
from glidepath.readers._formats import FORMATS, _format_of, _head, _reader, refusing
from glidepath.readers._series import collected, refused_address, without_secrets

__all__ = ["MetricInfo", "metrics_of", "read_traces"]

_NOTEBOOK = ".ipynb"
# What reads an object, by the method that tells what it is.
OBJECTS = {
    "scan_history": "wandb_api",
    "get_metric_history": "mlflow_client",
    "__arrow_c_stream__": "frame",
}


def _read_object(source: Any, metric: str | None) -> list[Trace]:
    for method, module in OBJECTS.items():
        if hasattr(source, method):
            with refusing(type(source).__name__):
                reader = importlib.import_module(f"glidepath.readers.{module}")
                found: list[Trace] = reader.read(source, metric)
                return found
    if hasattr(source, "readline"):  # its lines would be taken for paths
        raise InputError(
            f"read_traces: path is an open file ({type(source).__name__}), expected its path"
        )
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return [trace for each in source for trace in _read_each(each, metric, source)]
    raise _unreadable(type(source).__name__)


def _read_each(each: Any, metric: str | None, source: Iterable[Any]) -> list[Trace]:
    """Read one of several; what holds numbers or rows is named with them."""
    if isinstance(each, (Mapping, Number)):
        raise _unreadable(f"{type(source).__name__} of {type(each).__name__}")
    return read(each, metric)


def _unreadable(what: str) -> InputError:
    return InputError(
        f"read_traces: path has type {what}, expected a path, an address, a data frame (Arrow), a "
        "run of W&B, a client of MLflow or several of these"
    )


def _read_page(url: str, metric: str | None) -> list[Trace]:
    try:
        host = urlsplit(url).hostname
    except ValueError as error:
        raise refused_address(url, error) from None
    if host in ("wandb.ai", "www.wandb.ai"):
        from glidepath.readers import wandb_api

        return _read_object(wandb_api.open_url(url), metric)
    from glidepath.readers import mlflow_client

    return mlflow_client.read_url(url, metric)


@checked
def read_traces(
    path: str | os.PathLike[str] | Any,
    *,
    metric: str | None = None,
    format: str | None = None,  # noqa: A002 - the builtin is not needed here
    pattern: str | re.Pattern[str] | None = None,
) -> list[Trace]:
    r"""Read every run of a file, of all files of a folder and the folders in it, or of a server.

    Parameters
    ----------
    path : path_like or object
        A file of one of the formats below, or a folder with some; its other files are passed over,
        as are those that lack the metric. Or the address of an MLflow server or one of its pages,
        or of the page of a run or project of W&B (``https://wandb.ai/…``). Or a data frame of any
        library with Arrow's PyCapsule protocol (needs pyarrow), a run of ``wandb.Api()``, an
        ``mlflow.MlflowClient``, or several of these.
    metric : str, optional
        Name of the metric to read; `metrics_of` lists them. By default what a person would look
        at: the mean return of episodes, the training loss, a loss of evaluation, an error or a
        score, in this order; `docs/formats.md` has the list.
    format : str, optional
        ``"csv"`` is the long form ``curve,step,value[,lr][,wall_seconds]``, plain or gzip, one row
        a point, by default of the column ``value``. Rows without a value are passed over. A JSON
        file of the same stem beside it may say ``"direction": "max"`` and what `value` is,
        ``"metric"``. ``"table"`` is a CSV or TSV with a column a metric, ``"text"`` what a training
        loop prints, ``"jsonl"`` and ``"json"`` rows or one document of JSON; the others are
        ``"trainer_state"`` of Hugging Face, ``"tensorboard"``, ``"mlflow"`` (the file store),
        ``"mlflow_sqlite"``, ``"wandb"`` (its log on disk), ``"wandb_csv"`` (a panel),
        ``"trackio"``, ``"parquet"``, ``"dvclive"`` and ``"wandb_summary"``, which is refused. By
        default it is found from each file's content. For a file or folder only.
    pattern : str or re.Pattern, optional
        A regular expression for console logs of one's own, in place of `format`: of each line in
        which it is found, its groups ``step``, ``value`` or ``loss`` and, if it has them, ``lr``
        and ``planned_steps`` are numbers of a run, as in
        ``r"it (?P<step>\d+)/(?P<planned_steps>\d+).*err=(?P<value>\S+)"``. The metric is called
        `metric`, by default ``"loss"``.

    Returns
    -------
    list of Trace
        In the order of the file, and of the files' names. Of a folder, a run is named by its
        relative path; those of trackers by their id or name, and several of one file as it says.
        Where a run restarted, the later rows win, and the trace's `notes` tell. `metric` is the
        name that was read, `planned_steps` where the log says at which step the run will end.

    Raises
    ------
    IoError
        With file and line, when a file is missing, empty, malformed, of no known format or without
        the metric, or a folder has no file that is; with the server's words, when it gave none.
    InputError
        When `path` is none of the above or empty, `format` unknown or not for it, or `pattern` no
        regular expression with groups ``step`` and ``value``.
    """
    try:
        return read(path, metric, format, pattern)
    except (AbsentError, RefusedError) as error:  # kinds that the readers tell apart
        raise IoError(str(error)) from None


def read(
    path: str | os.PathLike[str] | Any,
    metric: str | None,
    format: str | None = None,  # noqa: A002
    pattern: str | re.Pattern[str] | None = None,
) -> list[Trace]:
    """Read as `read_traces` does; where a log lacks the metric or is refused, the error tells."""
    expression = None if pattern is None else _compiled(pattern, path, format)
    _check_text("metric", metric)
    if metric == "":
        raise InputError("read_traces: metric is '', expected the name of one")
    page = _address(path) if isinstance(path, str) else None
    if format is not None and (page is not None or not isinstance(path, (str, os.PathLike))):
        what = type(path).__name__ if page is None else "page"
        raise InputError(
            f"read_traces: format is {format!r} of a {what}, expected that of a file or folder"
        )
    if not isinstance(path, (str, os.PathLike)):
        return _read_object(path, metric)
    if page is not None:
        with refusing(without_secrets(page)):
            return _read_page(page, metric)
    _check_text("format", format)
    if format is not None and format not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"read_traces: format is {format!r:.80}, expected one of {known}")
    name = name_of(path, "read_traces")
    path = Path(name)
    with refusing(name):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise IoError(f"{path}: not a regular file")  # a pipe or a device may never end
        if expression is not None:
            return _read_pattern(path, metric, expression)
        return (read_folder if path.is_dir() else _read_file)(path, metric, format)


def _address(text: str) -> str | None:
    """Give the address of a page with a scheme in small letters; None where it is a path."""
    scheme, sign, rest = text.partition("://")
    if not sign or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or os.path.lexists(text):
        return None
    if scheme.lower() not in ("http", "https"):
        raise InputError(f"read_traces: the address begins with {scheme!r}, expected http or https")
    if re.search(r"\s", rest):
        raise InputError("read_traces: the address has a space, expected none")  # no login in it
    return f"{scheme.lower()}://{rest}"


def _check_text(name: str, given: object, verb: str = "read_traces") -> None:
    if given is None:
        return
    if not isinstance(given, str):
        raise InputError(f"{verb}: {name} is {given!r:.80}, expected text")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise InputError(f"{verb}: {name} is {given!r:.80}, expected text in Unicode") from None


def name_of(path: str | os.PathLike[str], verb: str) -> str:
    """Give the name of a file or folder; InputError where none can have it."""
    name = os.fsdecode(path)
    _check_text("path", name, verb)
    if not name:
        raise InputError(f"{verb}: path is '', expected the name of a file or folder")
    if "\0" in name:
        raise InputError(f"{verb}: path is {name!r:.80}, expected a path without a NUL")
    return name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MetricInfo(Result):
    """A metric that a log holds.

    Attributes
    ----------
    run, metric : str
        Names of the run and of the metric.
    direction : str
        ``"min"`` where low values are better, ``"max"`` where high ones are.
    points : int
        How many points a trace of it has.
    observed_to : float
        The last step.
    read : bool
        Whether `read_traces` reads this one where none is named.
    """

    run: str
    metric: str
    direction: str
    points: int
    observed_to: float
    read: bool

    def _check(self) -> None:
        if self.direction not in get_args(Direction):
            raise ValueError(f"direction is {self.direction!r:.40}, expected min or max")
        if self.points < 0:
            raise ValueError(f"points is {self.points}, expected 0 or more")

    def _summary(self) -> str:
        default = ", read where none is named" if self.read else ""
        points = counted(self.points, "point")
        return f"{self.metric!r} of {self.run!r}, {points}, {self.direction}{default}"


@checked
def metrics_of(
    path: str | os.PathLike[str] | Any,
    *,
    metric: str | None = None,
    pattern: str | re.Pattern[str] | None = None,
) -> list[MetricInfo]:
    """List every metric that `read_traces` could read.

    Parameters
    ----------
    path : path_like or object
        As in `read_traces`. Of a server of MLflow only what would be read is listed.
    metric : str, optional
        List this one alone, in the runs that have it.
    pattern : str or re.Pattern, optional
        As in `read_traces`.

    Returns
    -------
    list of MetricInfo
        In the order of the log, also of one in which no metric is a loss or a score.

    Raises
    ------
    IoError, InputError
        As `read_traces`.
    """
    found: list[Trace] = []
    token = collected.set(found)
    try:
        chosen = read(path, metric, pattern=pattern)
    except (AbsentError, RefusedError) as error:
        if isinstance(error, RefusedError) or not found or metric is not None:
            raise IoError(str(error)) from None
        chosen = []
    finally:
        collected.reset(token)
    if metric is not None:
        found = chosen
    shown = {(trace.name, trace.metric) for trace in chosen}
    return [
        MetricInfo(
            trace.name,
            trace.metric,
            trace.direction,
            len(trace),
            float(trace.step[-1]) if len(trace) else math.nan,
            read=(trace.name, trace.metric) in shown,
        )
        for trace in found
    ]


def _compiled(
    pattern: str | re.Pattern[str],
    path: Any,
    format: str | None,  # noqa: A002
) -> re.Pattern[str]:
    if format is not None:
        raise InputError(
            f"read_traces: format is {format!r} beside a pattern, expected one of the two"
        )
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            f"read_traces: path has type {type(path).__name__} beside a pattern, expected a file "
            "or folder"
        )
    text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    _check_text("pattern", text)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"read_traces: pattern is {text!r:.80}, expected a regular expression: {error}"
        ) from None
    groups = expression.groupindex
    for group in ("step", "value"):
        if group not in groups and (group == "step" or "loss" not in groups):
            raise InputError(
                f"read_traces: pattern is {text!r:.80}, expected a group (?P<{group}>…) in it"
            )
    return expression


def _read_pattern(path: Path, metric: str | None, expression: re.Pattern[str]) -> list[Trace]:
    """Read a file, or every file of a folder in which the pattern is found."""
    reader = _reader("text")
    if not path.is_dir():
        return [reader.read_pattern(path, metric, expression)]
    traces = []
    for file in sorted(path.rglob("*")):
        try:
            if file.is_file() and b"\x00" not in _head(file).rstrip(b"\x00"):
                found = reader.read_pattern(file, metric, expression)
                traces.append(renamed(found, file.relative_to(path).as_posix()))
        except AbsentError:
            continue
    if not traces:
        raise IoError(f"{path}: no file of this folder has a line with '{expression.pattern}'")
    return traces


def _read_file(path: Path, metric: str | None, format: str | None) -> list[Trace]:  # noqa: A002
    if format is None and path.suffix == _NOTEBOOK:  # only by its own path, not as one of a folder
        from glidepath.readers import notebook

        return notebook.read(path, metric)
    kind = format if path.is_file() else "csv"
    if kind is None:
        head = _head(path)
        kind = _format_of(path, head)
        # Of a file that is none of ours some reader says what it lacks.
        kind = kind or unknown_format(os.fsencode(path), head, ", ".join(FORMATS))
    found: list[Trace] = _reader(kind).read(path, metric)
    return found
