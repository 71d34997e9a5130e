# SPDX-License-Identifier: Apache-2.0
"""JSON lines, one object a row: LLaMA-Factory's `trainer_log.jsonl` and others of that kind."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import (
    Series,
    clock_column,
    counted,
    flat,
    is_cut,
    lines,
    seconds_of,
    step_column,
    to_trace,
)

__all__ = ["read", "recognises", "unit"]

# LLaMA-Factory's name for the number of optimizer steps that a run will have.
_PLANNED = "total_steps"
# The columns of steps that count them.
_OPTIMIZER_STEPS = ("current_steps", "step", "global_step")


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line is a JSON object with a step."""
    first = head.lstrip().split(b"\n", 1)[0].strip()
    if first[:1] != b"{" or first[-1:] != b"}":
        return False
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and step_column(dict(flat(row, "/"))) is not None


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run; rows without a step are passed over, as is a last line that was cut."""
    series: dict[str, Series] = defaultdict(Series)
    notes = []
    broken: str | None = None
    without = 0
    origin: float | None = None
    planned: float | None = None
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        if broken is not None:
            raise IoError(broken)
        try:
            row = json.loads(line, parse_int=float)
        except (ValueError, RecursionError) as error:
            broken = f"{path}:{number}: {getattr(error, 'msg', error)}"
            continue
        if not isinstance(row, dict):
            raise IoError(f"{path}:{number}: not a JSON object")
        cells = dict(flat(row, "/"))
        column = step_column(cells)
        step = cells.get(column) if column is not None else None
        if step is None:
            without += 1
            continue
        if not isinstance(step, (int, float)) or not math.isfinite(step):
            raise IoError(f"{path}:{number}: {column} {step!r} is not a finite number")
        if column in _OPTIMIZER_STEPS and isinstance(cells.get(_PLANNED), float):
            planned = cells.pop(_PLANNED)
        clock, of_day = clock_column(cells)
        seconds = math.nan if clock is None else seconds_of(str(cells[clock]))
        if of_day:
            origin = seconds if origin is None else origin
            seconds -= origin
        for key, value in cells.items():
            if key in (column, clock) or isinstance(value, bool):
                continue
            if isinstance(value, (int, float)):
                series[key].add(step, value, seconds)
    if broken is not None:
        if not series or not is_cut(path):
            raise IoError(broken)
        notes.append("the last line is cut: left out")
    if without:
        notes.append(f"{counted(without, 'row')} without a step: left out")
    return [to_trace(series, metric, path, path.name, notes, planned_steps=planned)]
