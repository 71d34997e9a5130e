# SPDX-License-Identifier: Apache-2.0
"""MLflow's file store: ``mlruns/EXPERIMENT/RUN/metrics/NAME``, lines "milliseconds value step"."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._rows import number
from glidepath.readers._series import AbsentError, Series, lines, to_trace

_LINE = re.compile(rb"\d{10,16} \S+( -?\d+)?\r?\n?")


def _root(path: Path) -> Path | None:
    """Find the folder of metrics: the uppermost, as a metric may be called metrics/x."""
    found = [
        up for up in path.parents if up.name == "metrics" and (up.parent / "meta.yaml").exists()
    ]
    return found[-1] if found else next((up for up in path.parents if up.name == "metrics"), None)


def recognises(path: Path, head: bytes) -> bool:
    """Whether it lies below ``metrics`` and begins as MLflow's files do."""
    return _root(path) is not None and _LINE.match(head) is not None


def unit(path: Path) -> Path:
    """Read the run's folder."""
    root = _root(path)
    return path if root is None else root.parent


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, named by its id; of a file of one metric, that metric."""
    if path.is_file():
        root = _root(path)
        run = path.parent if root is None else root.parent
        files, root = [path], path.parent if root is None else root
    else:
        run, root = path, path / "metrics"
        files = sorted(file for file in root.rglob("*") if file.is_file())
    series: dict[str, Series] = defaultdict(Series)
    first: float | None = None
    for file in files:
        column = series[file.relative_to(root).as_posix()]
        for count, line in enumerate(lines(file), 1):
            cells = line.split()
            if not cells:
                continue
            try:
                if len(cells) not in (2, 3):
                    raise ValueError(line)
                stamp, value = float(int(cells[0])), float(cells[1])
                step = float(int(cells[2])) if len(cells) == 3 else 0.0
            except (ValueError, OverflowError):
                raise IoError(f"{file}:{count}: not 'milliseconds value step'") from None
            first = stamp if first is None else min(first, stamp)
            column.add(step, value, stamp)
    for column in series.values():
        column.count_seconds(first or 0.0, 1e3)
    if path.is_file() and metric is None:
        metric = next(iter(series))
        if not any(not math.isnan(value) for value in series[metric].value):
            raise AbsentError(f"{path}: no metric was logged")
    return [to_trace(series, metric, path, run.name, planned_steps=_planned_steps(run))]


def _planned_steps(run: Path) -> float | None:
    """Read how many steps the run was to take, where that is among its parameters."""
    given = run / "params" / "max_steps"
    return number(next(lines(given), "")) if given.is_file() else None
