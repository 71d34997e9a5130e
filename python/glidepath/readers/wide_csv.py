# SPDX-License-Identifier: Apache-2.0
"""Tables with a column a metric: Lightning, Keras, Ultralytics, DVCLive, AlgoPerf and others."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path

from glidepath._core import IoError
from glidepath._metrics import normal
from glidepath._trace import Trace
from glidepath.readers._series import (
    RefusedError,
    Series,
    clock_column,
    is_cut,
    lines,
    seconds_of,
    step_column,
    to_trace,
)

__all__ = ["read", "recognises", "unit"]


def _split(line: str) -> tuple[list[str], str]:
    """Split the header, and tell what splits it."""
    mark = "\t" if "\t" in line else ";" if ";" in line and "," not in line else ","
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=mark), [])], mark
    except csv.Error:
        return [], mark


def _is_placements(names: list[str]) -> bool:
    return {"step_time", "sync_time", "local_bsz"} <= set(names)


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line names steps or a loss, and no curves."""
    if b"\x00" in head[:1024] or head[:1] in (b"{", b"["):
        return False
    names, _ = _split(head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").strip("\r"))
    if "curve" in names or len(names) < 2 or any(_is_number(name) for name in names):
        return False
    # Not a line of a text log, such as "iter 10: loss 3.1, time 120ms".
    plain = all(0 < len(name) <= 80 and not re.search(r"\||: ", name) for name in names)
    known = step_column(names) is not None or any("loss" in normal(name) for name in names)
    return (plain and known) or _is_placements(names)


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run."""
    series, notes = columns(path, metric)
    planned = _planned_steps(path, series)
    return [to_trace(series, metric, path, path.name, notes, planned_steps=planned)]


# What a tool writes beside its table, by the column of steps that it counts in: Ultralytics'
# settings, and the hyper-parameters that Lightning saves.
_SETTINGS = {"epoch": ("args.yaml", "epochs"), "step": ("hparams.yaml", "max_steps")}


def _planned_steps(path: Path, series: Mapping[str, Series]) -> float | None:
    """Find the step at which the run ends by its settings, where they lie beside the table."""
    column = step_column(_split(next(lines(path), ""))[0])
    name, setting = _SETTINGS.get(normal(column or ""), ("", ""))
    settings = path.with_name(name) if name else path
    if settings == path or not settings.is_file():
        return None
    text = settings.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"^{setting}:\s*(\d+)\s*$", text, re.MULTILINE)
    if match is None or int(match[1]) == 0:
        return None
    first = min((column.step[0] for column in series.values() if column.step), default=1.0)
    return float(match[1]) - (first == 0)  # counted from 0, the last one is one less


def columns(path: Path, metric: str | None) -> tuple[dict[str, Series], list[str]]:
    """Read all metrics. An empty cell was not logged; "nan" was, and stays.

    Parameters
    ----------
    path : Path
    metric : str or None
        A column that must hold numbers; those of losses must in any case.

    Returns
    -------
    tuple of dict and list of str
        The metrics by name, and what was repaired.
    """
    text = lines(path)
    names, mark = _split(next(text, ""))
    if _is_placements(names):
        raise RefusedError(
            f"{path}:1: step times by placement, not the log of a run; curves are in the "
            "validation-*.csv beside it"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise IoError(f"{path}:1: two columns are called {twice!r}")
    column = step_column(names)
    clock, of_day = clock_column(names)
    series = {name: Series() for name in names if name not in (column, clock)}
    notes: list[str] = []
    if column is None:
        notes.append("no column of steps: rows are numbered from 1")
    origin: float | None = None
    short: str | None = None
    rows = csv.reader(text, delimiter=mark)
    count = 0
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise IoError(f"{path}:{rows.line_num + 1}: {error}") from None
        if row is None:
            break
        number = rows.line_num + 1
        if not any(cell.strip() for cell in row):
            continue
        if short is not None:
            raise IoError(short)
        if len(row) != len(names):
            short = f"{path}:{number}: {len(row)} fields where the header has {len(names)}"
            if len(row) > len(names):
                raise IoError(short)
            continue
        count += 1
        cells = dict(zip(names, (cell.strip() for cell in row), strict=True))
        step = float(count)
        if column is not None:
            if not cells[column]:
                continue
            step = float(cells[column]) if _is_number(cells[column]) else math.nan
            if not math.isfinite(step):
                raise IoError(f"{path}:{number}: {column} {cells[column]!r} is not a finite number")
        seconds = math.nan if clock is None else seconds_of(cells[clock])
        if of_day and not math.isnan(seconds):
            scale = 1e-3 if seconds > 1e11 else 1.0  # DVCLive's are of milliseconds
            origin = seconds if origin is None else origin
            seconds = (seconds - origin) * scale
        for name, found in series.items():
            cell = cells[name]
            if not cell:
                continue
            try:
                value = float(cell)
            except ValueError:
                if name == metric or "loss" in normal(name):
                    message = f"{path}:{number}: {name} {cell!r} is not a number"
                    raise IoError(message) from None
                continue  # a column of words
            found.add(step, value, seconds)
    if short is not None:
        if not count or not is_cut(path):
            raise IoError(short)
        notes.append("the last row is cut: left out")
    return series, notes
