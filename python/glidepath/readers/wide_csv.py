# SPDX-License-Identifier: Apache-2.0
"""Tables with a column a metric: Lightning, Keras, Ultralytics, Stable-Baselines3, RLlib."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from glidepath._core import IoError
from glidepath._metrics import normal
from glidepath._trace import Trace
from glidepath.readers._rows import Rows, counters, number, tells
from glidepath.readers._series import RefusedError, Series, is_cut, lines, to_trace

_FIRST = 20  # lines in which the header is: before it may be comments
_NOTHING = ("-", "--", "na", "n/a", "none", "null")
# Gym's monitor: return, length and time of each episode.
_MONITOR = ("r", "l", "t")


def _split(line: str) -> tuple[list[str], str]:
    """Split the header, and tell what splits it: ``" "`` for any number of blanks."""
    mark = "\t" if "\t" in line else ";" if ";" in line and "," not in line else ","
    if mark == "," and "," not in line and " " in line.strip():
        return line.split(), " "
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=mark), [])]
    except csv.Error:
        return [], mark
    if names and names[0] in ("", "Unnamed: 0"):  # of pandas
        names[0] = "index"
    return [name or f"column {i}" for i, name in enumerate(names, 1)], mark


def _is_placements(names: list[str]) -> bool:
    return {"step_time", "sync_time", "local_bsz"} <= set(names)


def _is_header(names: list[str]) -> bool:
    """Whether names are those of columns, one of them of steps or of a metric, none of curves."""
    if "curve" in names or len(names) < 2 or any(number(name) is not None for name in names):
        return False
    # Not a line of a text log, such as "iter 10: loss 3.1, time 120ms".
    plain = all(len(name) <= 200 and not re.search(r"\||[:=]( |$)|=\S", name) for name in names)
    known = tuple(names[:3]) == _MONITOR or tells(names)
    return (plain and known) or _is_placements(names)


def _header(text: Iterable[str]) -> tuple[list[str], str, int]:
    """Find the header: its names, what splits it, and its line."""
    for count, line in enumerate(islice(text, _FIRST), 1):
        comment = line.lstrip()[:1] == "#"
        names, mark = _split(line.lstrip("# ") if comment else line)
        if line.strip() and (not comment or _is_header(names)):
            return names, mark, count
    return [], ",", 0


def recognises(path: Path, head: bytes) -> bool:
    """Whether its header names steps or a metric, and no curves."""
    if b"\x00" in head[:1024] or head[:1] in (b"{", b"["):
        return False
    names, mark, _ = _header(head.decode("utf-8-sig", errors="replace").split("\n"))
    if mark != " ":
        return _is_header(names)
    # Words with blanks between are a header when numbers stand below them.
    below = head.decode("utf-8-sig", errors="replace").lstrip().split("\n")[1:2]
    cells = below[0].split() if below else []
    is_row = len(cells) == len(names) and all(number(cell) is not None for cell in cells)
    return is_row and _is_header(names)


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run."""
    rows, notes = rows_of(path, metric)
    series = rows.series()
    planned = _planned_steps(path, series)
    return [to_trace(series, metric, path, path.name, notes, planned_steps=planned)]


# What a tool writes beside its table, by the column of steps that it counts in: Ultralytics'
# settings, and the hyper-parameters that Lightning saves.
_SETTINGS = {"epoch": ("args.yaml", "epochs"), "step": ("hparams.yaml", "max_steps")}


def _planned_steps(path: Path, series: Mapping[str, Series]) -> float | None:
    """Find the step at which the run ends by its settings, where they lie beside the table."""
    column = next((column.counter for column in series.values() if column.counter), "")
    name, setting = _SETTINGS.get(normal(column), ("", ""))
    settings = path.with_name(name) if name else path
    if settings == path or not settings.is_file():
        return None
    text = "\n".join(lines(settings))
    match = re.search(rf"^{setting}:[ \t]*(\d{{1,15}})[ \t]*$", text, re.MULTILINE)
    if match is None or int(match[1]) == 0:
        return None
    first = min((column.step[0] for column in series.values() if column.step), default=1.0)
    return float(match[1]) - (first == 0)  # counted from 0, the last one is one less


def _cells(
    text: Iterator[str], mark: str, start: int, path: Path
) -> Iterator[tuple[int, list[str]]]:
    """Give the cells of each row after the header, and its line."""
    rows = csv.reader(text, delimiter=mark)
    try:
        for row in rows if mark != " " else map(str.split, text):
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield start + rows.line_num, cells
    except csv.Error as error:
        raise IoError(f"{path}:{start + rows.line_num}: {error}") from None


def rows_of(path: Path, metric: str | None) -> tuple[Rows, list[str]]:
    """Read all columns of numbers. An empty cell was not logged; "nan" was, and stays.

    Parameters
    ----------
    path : Path
    metric : str or None
        A column that must hold numbers; those of losses must in any case.

    Returns
    -------
    tuple of Rows and list of str
        The rows, and what was repaired.
    """
    names, mark, start = _header(lines(path))
    if _is_placements(names):
        raise RefusedError(
            f"{path}:1: step times by placement, not the log of a run; curves are in the "
            "validation-*.csv beside it"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise IoError(f"{path}:{start}: two columns are called {twice!r}")
    steps = counters(names)
    strict = {name for name in names if name == metric or "loss" in normal(name)}
    rows, notes = Rows(), []
    short: str | None = None
    monitor, length = tuple(names[:3]) == _MONITOR, 0.0
    for line, row in _cells(islice(lines(path), start, None), mark, start, path):
        if short is not None:
            raise IoError(short)
        if row == names:  # another run was appended
            continue
        if len(row) != len(names):
            short = f"{path}:{line}: {len(row)} fields where the header has {len(names)}"
            if len(row) > len(names):
                raise IoError(short)
            continue
        cells = {n: cell for n, cell in zip(names, row, strict=True) if cell}
        for name in strict & cells.keys():
            if number(cells[name]) is None and cells[name].lower() not in _NOTHING:
                raise IoError(f"{path}:{line}: {name} {cells[name]!r} is not a number")
        if len(steps) == 1 and not _finite(cells.get(steps[0], "0")):
            raise IoError(f"{path}:{line}: {steps[0]} {cells[steps[0]]!r} is not a finite number")
        length += number(cells.get("l", "0")) or 0.0
        rows.add(_of_monitor(cells, length) if monitor else cells)
    if short is not None:
        if not rows.count or not is_cut(path):
            raise IoError(short)
        notes.append("the last row is cut: left out")
    return rows, notes


def _of_monitor(cells: Mapping[str, str], length: float) -> dict[str, Any]:
    """Name the cells of Gym's monitor, whose steps are those of all episodes until here."""
    reward, seconds = cells.get("r", ""), cells.get("t", "")
    return {"episode_reward": reward, "wall_seconds": seconds, "timesteps": length}


def _finite(cell: str) -> bool:
    value = number(cell)
    return value is not None and value - value == 0
