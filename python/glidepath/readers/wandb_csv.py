# SPDX-License-Identifier: Apache-2.0
"""The CSV of a W&B panel: of each run a column ``NAME - METRIC``, with its ``__MIN``, ``__MAX``."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

from glidepath._core import IoError, RefusedError, Series
from glidepath._results import counted
from glidepath._trace import Trace
from glidepath.readers._series import is_ended, lines, traces_of

_MARK = " - "


def _header(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _is_table_of_runs(names: list[str]) -> bool:
    return {"Name", "State", "Runtime"} <= set(names)


def recognises(path: Path, head: bytes) -> bool:
    """Whether its columns are those of a panel, or of the table of runs."""
    names = _header(head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").strip("\r"))
    panel = any(_MARK in name and f"{name}__MIN" in names for name in names)
    return panel or _is_table_of_runs(names)


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every run, by its name. Points that stand for several steps are counted in the notes."""
    rows = csv.reader(lines(path))
    try:
        names = next(rows, [])
        if _is_table_of_runs(names):
            raise RefusedError(
                f"{path}:1: the table of runs of W&B has only the last value of each metric; "
                "export a panel, or read the address of the run's page"
            )
        columns = [
            (i, names.index(f"{name}__MIN"), names.index(f"{name}__MAX"), name.rpartition(_MARK))
            for i, name in enumerate(names)
            if _MARK in name and {f"{name}__MIN", f"{name}__MAX"} <= set(names)
        ]
        runs: dict[str, dict[str, Series]] = {
            run: defaultdict(Series) for *_, (run, _, _) in columns
        }
        several = Counter[str]()
        short = ""
        for row in rows:
            if short:
                raise IoError(short)
            if len(row) != len(names):
                wrong = f"{len(row)} fields where the header has {len(names)}"
                short = f"{path}:{rows.line_num}: {wrong}"
                continue  # the last row may be cut
            for i, low, high, (run, _, key) in columns:
                if row[i] and key[:1] != "_":  # its own counters and clocks
                    runs[run][key].add(float(row[0]), float(row[i]))
                    several[run] += row[low] != row[high]
    except (csv.Error, ValueError) as error:
        raise IoError(f"{path}:{rows.line_num}: {error}") from None
    notes = {
        run: [f"{counted(count, 'point')} of the panel stand for several steps each"]
        for run, count in several.items()
        if count
    }
    if short:
        if len(row) > len(names) or is_ended(path):
            raise IoError(short)
        for run in runs:
            notes.setdefault(run, []).append("the last row is cut: left out")
    return traces_of(runs, metric, path, notes=notes)
