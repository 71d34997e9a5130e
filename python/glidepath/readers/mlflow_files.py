# SPDX-License-Identifier: Apache-2.0
"""MLflow's file store: ``mlruns/EXPERIMENT/RUN/metrics/NAME``, lines "milliseconds value step".

The name and the digest of a data set may follow. What ``mlruns/EXPERIMENT/models`` has of models is
in the runs, too.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from itertools import islice
from pathlib import Path

from glidepath._core import AbsentError, IoError, RefusedError, Series, settings_of_texts
from glidepath._trace import Trace
from glidepath.readers._rows import number
from glidepath.readers._series import lines, open_plain, to_trace

_MOST_PARAMETERS, _LONGEST_PARAMETER = 1000, 1000  # files, and bytes of one
_LINE = re.compile(rb"\d{10,16} \S+( -?\d+)?\r?\n?")
_DELETED = re.compile(r"lifecycle_stage:\s*['\"]?deleted")


def _root(path: Path) -> Path | None:
    """Find the folder of metrics: the uppermost, as a metric may be called metrics/x."""
    found = [
        up for up in path.parents if up.name == "metrics" and (up.parent / "meta.yaml").exists()
    ]
    return found[-1] if found else next((up for up in path.parents if up.name == "metrics"), None)


def recognises(path: Path, head: bytes) -> bool:
    """Whether it lies below ``metrics`` and begins as MLflow's files do."""
    root = _root(path)
    return root is not None and not _is_of_model(root.parent) and _LINE.match(head) is not None


def _is_of_model(folder: Path) -> bool:
    return folder.name.startswith("m-") and folder.parent.name == "models"


def _is_deleted(run: Path) -> bool:
    """Whether a run was deleted, or the experiment that it is of."""
    if ".trash" in (run.parent.name, run.parent.parent.name):
        return True
    about = run / "meta.yaml"
    return about.is_file() and any(_DELETED.match(line) for line in lines(about))


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
    if _is_deleted(run):
        raise RefusedError(f"{run}: a run of MLflow that was deleted")
    series: dict[str, Series] = defaultdict(Series)
    first: float | None = None
    for file in files:
        column = series[file.relative_to(root).as_posix()]
        for count, line in enumerate(lines(file), 1):
            cells = line.split()
            if not cells:
                continue
            try:
                if len(cells) not in (2, 3, 5):
                    raise ValueError(line)
                stamp, value = float(int(cells[0])), float(cells[1])
                step = float(int(cells[2])) if len(cells) > 2 else 0.0
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
    planned, (settings, notes) = _planned_steps(run), _settings(run)
    return [
        to_trace(series, metric, path, run.name, notes, planned_steps=planned, settings=settings)
    ]


def _settings(run: Path) -> tuple[dict[str, float | str], list[str]]:
    """Read the parameters of a run, a file each; with a note of those that cannot be read."""
    texts: dict[str, str] = {}
    damaged = ""
    root = run / "params"
    for file in islice(sorted(root.rglob("*")), _MOST_PARAMETERS):
        if not file.is_file():
            continue
        try:
            with open_plain(file) as opened:
                text = opened.read(_LONGEST_PARAMETER + 1)
        except OSError as error:
            damaged = damaged or f"a parameter was not read: {error}"
            continue
        if len(text) <= _LONGEST_PARAMETER:
            texts[file.relative_to(root).as_posix()] = text.decode(errors="replace").strip()
    return settings_of_texts(texts), [damaged] if damaged else []


def _planned_steps(run: Path) -> float | None:
    """Read how many steps the run was to take, where that is among its parameters."""
    given = run / "params" / "max_steps"
    return number(next(lines(given), "")) if given.is_file() else None
