# SPDX-License-Identifier: Apache-2.0
"""The runs of a folder: which of its files are read, and which of their traces are copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

import numpy as np

from glidepath._core import AbsentError, IoError, RefusedError, is_metric_name, normal_name
from glidepath._trace import Trace, renamed
from glidepath.readers._formats import FORMATS, _format_of, _head, _reader
from glidepath.readers._series import collected

# How files are called that should be logs.
_LOG_SUFFIXES = {".log", ".txt", ".out", ".err", ".csv", ".tsv", ".jsonl"}
# What was passed over in folders, a sentence a log, while somebody asks.
_passed: ContextVar[list[str] | None] = ContextVar("passed", default=None)


@contextmanager
def passing_over() -> Iterator[list[str]]:
    """Collect a sentence of each log in a folder that `read_traces` passes over within."""
    found: list[str] = []
    token = _passed.set(found)
    try:
        yield found
    finally:
        _passed.reset(token)


def pass_over(sentence: str) -> None:
    """Say that a log of a folder is not read."""
    found = _passed.get()
    if found is not None:
        found.append(sentence)


def is_called_log(file: Path) -> bool:
    """Whether a file is called as logs are, plain or gzip."""
    return bool(_LOG_SUFFIXES & set(file.suffixes[-2:])) and not file.name.startswith(".")


def _leave_out(names: set[str], why: str, traces: list[Trace]) -> list[Trace]:
    """Pass over some traces, also where every metric is listed."""
    listed = collected.get()
    if listed is not None:
        listed[:] = [trace for trace in listed if trace.name not in names]
    for name in sorted(names):
        pass_over(f"{name}: {why}")
    return [trace for trace in traces if trace.name not in names]


def _without(values: set[str], traces: list[Trace]) -> list[Trace]:
    """Leave out summaries, such as `all_results.json`, where another log has a curve."""
    if not any(len(trace) > 1 and trace.name not in values for trace in traces):
        return traces
    return _leave_out(values, "no curve of a loss or a score", traces)


def _leads_into(file: Path, folder: Path) -> bool:
    """Whether a file is a link to one that is in the folder anyway."""
    return file.is_symlink() and file.resolve().is_relative_to(folder.resolve())


def _beginning_noted(trace: Trace) -> Trace:
    note = "checkpoints that hold the beginning of this run are not read again"
    return replace(trace, notes=(*trace.notes, note))


def _holds(trace: Trace, other: Trace) -> bool:
    """Whether a trace has all points of another one."""
    if len(other) < 2 or normal_name(trace.metric) != normal_name(other.metric):
        return False
    there = np.isin(trace.step, other.step)
    return bool(
        np.array_equal(trace.step[there], other.step)
        and np.array_equal(trace.loss[there], other.loss, equal_nan=True)
    )


def _without_copies(traces: list[Trace], origins: list[tuple[Path, str]]) -> list[Trace]:
    """Leave out traces whose points another one of their folder has in another format.

    Tools write a run twice. The longer trace stays, or the one with settings, or the first.
    """
    of_folder: dict[Path, list[int]] = {}
    for i, (folder, _) in enumerate(origins):
        of_folder.setdefault(folder, []).append(i)
    worth = [(len(trace), bool(trace.settings), -i) for i, trace in enumerate(traces)]
    copies = {
        i
        for beside in of_folder.values()
        if len({origins[i][1] for i in beside}) > 1
        for i in beside
        for k in beside
        if origins[i][1] != origins[k][1] and worth[k] > worth[i] and _holds(traces[k], traces[i])
    }
    return _leave_out(
        {traces[i].name for i in copies}, "another log beside it has its points", traces
    )


def read_folder(folder: Path, metric: str | None, format: str | None) -> list[Trace]:  # noqa: A002
    traces: list[Trace] = []
    origins: list[tuple[Path, str]] = []
    done: set[tuple[str, Path]] = set()
    values: set[str] = set()  # names of what is no curve of a loss or a score
    begun: set[str] = set()  # names of runs that other files hold the beginning of
    passed: IoError | None = None
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or _leads_into(file, folder):
            continue
        head = _head(file)
        kind = _format_of(file, head)
        if kind is None or (format is not None and kind != format):
            if kind is None and is_called_log(file):
                pass_over(f"{file}: {'a log of no known format' if head else 'the file is empty'}")
            continue
        reader = _reader(kind)
        unit: Path = reader.unit(file) if hasattr(reader, "unit") else file
        if kind == "trainer_state" and (unit := reader.whole(file, folder)) != file:
            begun.add(unit.relative_to(folder).as_posix())
        if (kind, unit) in done:
            continue
        done.add((kind, unit))
        listed = [] if (kept := collected.get()) is None else kept
        before = len(listed)
        try:
            if kind == "csv":
                traces += reader.read_in_folder(unit, metric, head)
                origins += [(unit.parent, kind)] * (len(traces) - len(origins))
                continue
            found = reader.read(unit, metric)
        except (AbsentError, RefusedError) as error:
            passed = passed or error
            if is_called_log(file):
                pass_over(str(error))
            continue
        # A run called as its file is; an id of MLflow is a name of its own.
        if len(found) == 1 and found[0].name == unit.name and kind != "mlflow":
            inside = folder in unit.parents
            name = unit.relative_to(folder).as_posix() if inside else folder.resolve().name
            found = [renamed(found[0], name)]
            listed[before:] = [renamed(trace, name) for trace in listed[before:]]
        document = kind == "json" or (kind == "jsonl" and file.suffix == ".json")
        values |= {
            trace.name
            for trace in found
            if (document and len(trace) == 1) or not (metric or is_metric_name(trace.metric))
        }
        traces += found
        origins += [(unit.parent, kind)] * len(found)
    traces = _without_copies(traces, origins)
    traces = [_beginning_noted(trace) if trace.name in begun else trace for trace in traces]
    traces = _without(values, traces)
    if not traces:
        wanted = f" with a metric {metric!r}" if metric is not None else ""
        formats = format or ", ".join(FORMATS)
        reason = "" if passed is None else f"; {passed}"
        raise IoError(f"{folder}: no traces in this folder{wanted} (formats: {formats}){reason}")
    return traces
