# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers by name, as tables, JSON and console logs have them, and where their steps are.

A row may be sparse. The steps of a metric come from the best counter that its rows have; one that
begins anew in each epoch counts on from the epoch before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glidepath._metrics import CLOCKS, EPOCHS, STAMPS, STEPS, WITHIN, is_metric, normal
from glidepath.readers._series import Floats, Series, seconds_of

# What a row says of the end of its run, in the unit of optimizer steps or of epochs.
_PLANNED = {"total_steps": STEPS[:3], "max_steps": STEPS[:3], "total_epochs": EPOCHS}
# Parts of a row that configure or measure the run.
_NOT_METRICS = ("config", "args", "hparams", "hist_stats", "env_info")
_WRAPPED = re.compile(
    r"(?:tensor|np\.\w+|array)\(\[?([^\[\](),]{1,40})[\])].*|(.{1,40})%", re.DOTALL
)


def counters(names: Iterable[str]) -> list[str]:
    """Give the names that count steps, best first."""
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(normal(name), name)
    return [spelled[key] for key in STEPS if key in spelled]


def tells(names: Iterable[str]) -> bool:
    """Whether names are those of a log: one of a metric, or of what counts more than rows."""
    there = list(names)
    return any(map(is_metric, there)) or any(normal(n) not in WITHIN for n in counters(there))


def flat(row: Mapping[str, Any], mark: str, within: str = "") -> Iterator[tuple[str, Any]]:
    """Give the cells of a row of nested names, joined by a mark."""
    for key, value in row.items():
        if not isinstance(value, Mapping):
            yield within + key, value
        elif key not in _NOT_METRICS:
            yield from flat(value, mark, f"{within}{key}{mark}")


def number(value: Any) -> float | None:
    """Read a number, or text that is one; None of anything else."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        wrapped = _WRAPPED.fullmatch(value) if isinstance(value, str) else None
        return None if wrapped is None else number(wrapped[1] or wrapped[2])


@dataclass(slots=True)
class Column:
    """The numbers of one name, and the rows in which they stand."""

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Rows:
    """Rows as they were logged, a column a name."""

    columns: dict[str, Column] = field(default_factory=dict)
    count: int = 0
    planned: dict[str, float] = field(default_factory=dict)
    """How far a counter will count, by its name."""

    def add(self, cells: Mapping[str, Any]) -> None:
        """Append a row; what is no number is left out."""
        for name, value in cells.items():
            found = number(value)
            if found is None:
                if not isinstance(value, str) or normal(name) not in CLOCKS:
                    continue
                found = seconds_of(value)
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = Column()
            column.rows.append(self.count)
            column.values.append(found)
        self.count += 1

    def series(self) -> dict[str, Series]:
        """Give each metric by its steps."""
        clock, seconds = self._clock()
        known: dict[tuple[int, ...], tuple[list[int], Series]] = {}
        series = {}
        for name, column in self.columns.items():
            if name == clock or normal(name) in STEPS:
                continue
            rows = tuple(column.rows)
            if rows not in known:
                known[rows] = self._steps(column.rows)
            kept, steps = known[rows]
            value = column.values if len(kept) == len(rows) else [column.values[i] for i in kept]
            at = column.rows if len(kept) == len(rows) else [rows[i] for i in kept]
            series[name] = Series(
                steps.step, value, [seconds.get(row, math.nan) for row in at] if seconds else [],
                notes=list(steps.notes), planned=steps.planned, counter=steps.counter,
            )  # fmt: skip
        return series

    def _clock(self) -> tuple[str | None, dict[int, float]]:
        """Find the column of time, and give the seconds of each row since the run began."""
        spelled = {normal(name): name for name in reversed(self.columns)}
        name = next((spelled[key] for key in (*CLOCKS, *STAMPS) if key in spelled), None)
        if name is None:
            return None, {}
        column = self.columns[name]
        value = np.array(column.values)
        if normal(name) in STAMPS:
            scale = 1e-3 if value[0] > 1e11 else 1.0  # of milliseconds, as DVCLive's are
            value = (value - value[0]) * scale
        return name, dict(zip(column.rows, value.tolist(), strict=True))

    def _steps(self, rows: list[int]) -> tuple[list[int], Series]:
        """Find the steps of some rows: which of them have one, and the steps in a series."""
        best: tuple[list[int], str] | None = None
        for name in counters(self.columns):
            column = self.columns[name]
            if column.rows == rows:
                kept, values = list(range(len(rows))), column.values
            else:
                there = dict(zip(column.rows, column.values, strict=True))
                kept = [i for i, row in enumerate(rows) if row in there]
                values = [there[rows[i]] for i in kept]
            counts = len(set(values)) > 1 or (len(rows) < 3 and normal(name) != "total_steps")
            if counts and len(kept) > (1.1 * len(best[0]) if best else len(rows) / 2):
                best = kept, name
            if best and len(best[0]) >= 0.9 * len(rows):
                break
        if best is not None:
            kept, name = best
            found = self._counted(name, [rows[i] for i in kept])
            if found is not None:
                left = len(rows) - len(kept)
                if left:
                    rest = f"{left} row{'' if left == 1 else 's'} without a step: left out"
                    found.notes.append(rest)
                return kept, found
        step = [row + 1.0 for row in rows]
        constant = best is None and bool(counters(self.columns))
        why = "no step that counts" if constant else "no column of steps"
        if best is not None:
            why = f"many rows at each {best[1]}"
        return list(range(len(rows))), Series(step, notes=[f"{why}: rows are numbered from 1"])

    def _values(self, name: str, rows: list[int]) -> Floats | None:
        """Give a column at some rows; None where it is not in all of them."""
        column = self.columns[name]
        if column.rows == rows:
            return np.array(column.values)
        there = dict(zip(column.rows, column.values, strict=True))
        values = np.array([there.get(row, math.nan) for row in rows])
        return None if np.isnan(values).any() else values

    def _counted(self, name: str, rows: list[int]) -> Series | None:
        """Make steps of a counter; None where it says too little."""
        value = self._values(name, rows)
        assert value is not None
        key, notes, planned = normal(name), [], self.planned.get(name)
        for other, units in _PLANNED.items():
            if key in units and other in self.columns:
                planned = self.columns[other].values[-1]
        change = np.diff(value)
        if key in EPOCHS and change.size:
            same = float(np.mean(change == 0))
            if same > (0.85 if np.all(value == np.floor(value)) else 0.3):
                return None
        back = change < 0
        if back.any() and key not in EPOCHS:
            epoch, of = self._epochs(rows, back, key)
            if epoch is not None:
                gap = change[change > 0].min(initial=math.inf)
                length = planned or value.max() + (gap if value.min() == 0 < gap < math.inf else 0)
                base = 1.0 if epoch.min() >= 1 else 0.0
                value = (epoch - base) * length + value
                epochs = self.planned.get(of)
                planned = None if epochs is None else epochs * length
                notes.append(f"steps count on from epoch to epoch, {length:g} {name} in each")
        return Series(value.tolist(), notes=notes, planned=planned, counter=name)

    def _epochs(self, rows: list[int], back: Any, key: str) -> tuple[Floats | None, str]:
        """Number the epochs in which a counter begins anew, where it does.

        They are counted by what rises where the other goes back, and stands still elsewhere.
        """
        for name in counters(self.columns):
            epoch = None if normal(name) == key else self._values(name, rows)
            if epoch is None:
                continue
            change = np.diff(np.floor(epoch))
            rises, stands = change[back] > 0, change[~back] == 0
            if rises.sum() >= 0.8 * rises.size and stands.sum() >= 0.8 * stands.size:
                return np.floor(epoch), name
        if key not in WITHIN:
            return None, ""
        return np.concatenate([[0.0], np.cumsum(back)]), ""


def tracked(rows: Iterable[Mapping[str, Any]]) -> dict[str, Series]:
    """Gather what a tracker holds of a run, a row a call of its `log`.

    Names that begin with ``_`` are the tracker's own: of them its step, which counts calls, is
    taken where the trainer logged none, and the seconds of ``_runtime``.
    """
    found = Rows()
    for row in rows:
        own = ("_step", "_runtime")
        found.add({name: cell for name, cell in row.items() if name[:1] != "_" or name in own})
    return found.series()
