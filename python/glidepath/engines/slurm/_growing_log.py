# SPDX-License-Identifier: Apache-2.0
"""A plain log of one run while it is written: only whole lines count, and none is read twice.

A run that went back to its checkpoint takes up the curve from there.
"""

from __future__ import annotations

import functools
import json
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from glidepath._core import CLOCKS, IoError, best_name, is_step_within_epoch, step_columns

_PIECE, _MOST_STEPS = 1 << 24, 2_000_000  # bytes that are read at once, and steps of a log
_LINES_AT_ONCE, _MOST_NAMES = 4096, 10_000  # that are held as objects, and names of columns
_END_BYTES = 256  # of what was read that are looked at again, for another log may be in its place
FURTHEST_STEP = 1e15  # a step beyond is none


@dataclass
class GrowingLog:
    """A log file that grows, read up to its last whole line.

    The metric is the one that `read_traces` would take: by its name, and by how often it and the
    others were logged so far. Where later lines say another one, the file is read again.
    """

    identity: tuple[int, int] = (0, 0)  # of the file; another one starts anew
    metric: str = ""  # the column that is taken
    offset: int = 0
    end: bytes = b""  # what stood before the offset
    header: list[str] | None = None
    step: array[float] = field(default_factory=lambda: array("d"))
    loss: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    points: Counter[str] = field(default_factory=Counter)  # numbers by the name of their column
    rows: int = 0  # that stand below a header or name their cells
    bad_lines: int = 0
    ends_in_header: bool = False  # a header of its own, behind the rows of somebody else

    def goes_on_in(self, file: IO[bytes]) -> bool:
        """Whether the file has what was read: a restart may have written it over, and further."""
        file.seek(self.offset - len(self.end))
        return file.read(len(self.end)) == self.end

    def read(self, file: IO[bytes], metric: str) -> None:
        """Read on from where the last look ended."""
        self._check_length(file.name)
        file.seek(self.offset)
        while piece := file.read(_PIECE):
            whole = piece[: piece.rfind(b"\n") + 1]
            if not whole and len(piece) == _PIECE:
                raise IoError(f"{file.name}: more than {_PIECE >> 20} MiB in a line")
            if not whole:
                return
            self.offset += len(whole)
            self.end = (self.end + whole[-_END_BYTES:])[-_END_BYTES:]
            text = whole.decode("utf-8", errors="replace").replace("\r\n", "\n")
            self.feed(text.split("\n"), metric)
            self._check_length(file.name)
            file.seek(self.offset)

    def _check_length(self, name: str) -> None:
        if len(self.step) > _MOST_STEPS:
            raise IoError(f"{name}: more than {_MOST_STEPS} steps")
        if len(self.points) > _MOST_NAMES:
            raise IoError(f"{name}: more than {_MOST_NAMES} metrics")

    def feed(self, lines: list[str], metric: str) -> None:
        last = next((line for line in reversed(lines) if line.strip()), None)
        if self.header is None and lines and not lines[0].startswith("{"):
            self._rows([lines.pop(0)], metric)
        if not self._columns(lines, metric):
            for at in range(0, len(lines), _LINES_AT_ONCE):
                self._rows(lines[at : at + _LINES_AT_ONCE], metric)
        if last is not None:
            self.ends_in_header = _names_of(last) == self.header

    def _columns(self, lines: list[str], metric: str) -> bool:
        """Take all lines at once, ten times as fast; False, and nothing taken, if one is odd."""
        if self.header is None:
            return False
        rows = [line.split(",") for line in lines if line]
        if any(len(row) != len(self.header) for row in rows):
            return False
        if not rows:
            return True
        text = dict(zip(self.header, zip(*rows, strict=True), strict=True))
        points = self.points + Counter({name: _numbers(cells) for name, cells in text.items()})
        taken = self._taken(points, metric)
        try:
            steps, losses = (
                np.array(text[name], dtype=float)
                for name in (_counters(tuple(self.header))[0], taken)
            )
            time = next((name for name in CLOCKS if name in self.header), None)
            seconds = np.array(text[time], dtype=float) if time else np.full(len(steps), math.nan)
        except (ValueError, KeyError):
            return False
        before = self.step[-1] if self.step else -math.inf
        if not (
            np.all(np.abs(steps) <= FURTHEST_STEP) and np.all(np.diff(steps, prepend=before) > 0)
        ):
            return False
        self.points, self.metric = points, taken
        self.rows += len(rows)
        self.step.extend(steps.tolist())
        self.loss.extend(losses.tolist())
        self.seconds.extend(seconds.tolist())
        return True

    def best(self) -> str:
        """Name the metric that a reader of the whole log would take."""
        return best_name(dict(self.points)) or ""

    def _taken(self, points: Counter[str], metric: str) -> str:
        return metric or self.metric or best_name(dict(points)) or ""

    def _rows(self, lines: list[str], metric: str) -> None:
        """Take lines one by one: each is a row or a bad line."""
        records = [record for line in lines if (record := self._record(line)) is not None]
        for record in records:
            self.points.update(name for name, value in record.items() if _is_number(value))
        self.metric = self._taken(self.points, metric)
        self.rows += len(records)
        for record in records:
            try:
                row = self._row(record)
            except (ValueError, KeyError, TypeError):
                self.bad_lines += 1
                continue
            if row is not None:
                self._append(*row)

    def _record(self, line: str) -> dict[str, Any] | None:
        """Give the cells of a line by name; None for a blank, a header or what is neither."""
        if not line.strip():
            return None
        try:
            if line.lstrip().startswith("{"):
                record = json.loads(line, parse_int=float)
                if isinstance(record, dict):
                    return record
                raise ValueError(line)
            if self.header is not None:
                return dict(zip(self.header, line.split(","), strict=True))
            header = _names_of(line)
            if len({*header}) < len(header):  # one column would hide the other
                raise ValueError(line)
            _counters(tuple(header))  # a first line without a step is not a header
            self.header = header
        except (ValueError, KeyError, RecursionError):
            self.bad_lines += 1
        return None

    def _row(self, record: dict[str, Any]) -> tuple[float, float, float] | None:
        """Give step, value and seconds of a row; None where it has another metric."""
        if record.get(self.metric) in ("", None):
            return None
        counters = _counters(tuple(record))
        step = next((name for name in counters if record[name] not in ("", None)), counters[0])
        time = next((name for name in CLOCKS if record.get(name) not in ("", None)), None)
        seconds = math.nan if time is None else float(record[time])
        where = float(record[step])
        if not abs(where) <= FURTHEST_STEP:
            raise ValueError(step)
        return where, float(record[self.metric]), seconds

    def _append(self, step: float, loss: float, seconds: float) -> None:
        while self.step and self.step[-1] >= step:  # resumed from a checkpoint
            del self.step[-1], self.loss[-1], self.seconds[-1]
        self.step.append(step)
        self.loss.append(loss)
        self.seconds.append(seconds)


def _names_of(header: str) -> list[str]:
    return [name.strip().strip('"') for name in header.split(",")]


@functools.lru_cache(maxsize=256)  # rows are many and alike
def _counters(names: tuple[str, ...]) -> list[str]:
    """Find the columns that count steps, best first; KeyError where none does for a whole run."""
    found = step_columns(names)
    if not found or is_step_within_epoch(found[0]):
        raise KeyError("step")
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, float)


def _numbers(cells: Sequence[str]) -> int:
    """Count the numbers of a column by its first cell: a column is of numbers or of text."""
    first = next(filter(None, cells), "")
    return len(cells) - cells.count("") if _is_number(first) else 0
