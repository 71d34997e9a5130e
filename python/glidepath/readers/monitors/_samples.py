# SPDX-License-Identifier: Apache-2.0
"""What the readers of monitors share: cells, times, and the samples of several GPUs."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath._columns import Floats
from glidepath._core import InputError, IoError
from glidepath._hardware import JOULES_PER_KWH, Metrics
from glidepath._results import counted
from glidepath.readers._series import is_ended, lines

NAN = math.nan
# What a monitor writes where a GPU does not know.
_ABSENT = re.compile(
    r"-|\[?(?:n/?a|not supported|unknown error|insufficient permissions)\]?", re.IGNORECASE
)
_CELL = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s]*)")
# To the units of `Metrics`: cards are sold by what are GiB, and their GB is 1024 MiB.
UNITS = {
    "": 1.0,
    "%": 0.01,
    "GPM:%": 0.01,
    "W": 1.0,
    "mW": 1e-3,
    "J": 1.0,
    "mJ": 1e-3,
    "kWh": JOULES_PER_KWH,
    "MiB": 1 / 1024,
    "MB": 1 / 1024,
    "GiB": 1.0,
    "KiB": 2.0**-20,
    "B": 2.0**-30,
    "MHz": 1.0,
    "C": 1.0,
    "B/s": 1.0,
    "KB/s": 1e3,
    "MB/s": 1e6,
    "MiB/s": 2.0**20,
    "GPM:MiB/s": 2.0**20,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller says of a log."""

    every_s: float | None
    run: str | None


def quantity(cell: str, unit: str = "", *, name: str = "a value") -> float:
    """Read a cell in the unit of `Metrics`; its own unit counts before that of its column.

    ValueError, in which it is called `name`, where it is neither a number nor what stands for one
    that is not known.
    """
    text = cell.strip()
    match = _CELL.fullmatch(text)
    if match is None:
        if _ABSENT.fullmatch(text):
            return NAN
        raise ValueError(f"{name} is {text[:40]!r}, expected a number")
    factor = UNITS.get(match[2] or unit)
    if factor is None:
        known = ", ".join(filter(None, UNITS))
        raise ValueError(
            f"the unit of {name} is {(match[2] or unit)[:40]!r}, expected one of {known}"
        )
    return float(match[1]) * factor


def bare_number(cell: str, name: str) -> float:
    """Read a number without a unit; ValueError, in which it is called `name`, where it is none."""
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{name} is {cell[:40]!r}, expected a number") from None


_DATE = re.compile(
    r"(\d{4})[-/](\d\d?)[-/](\d\d?)[ T](\d\d?):(\d\d):(\d\d(?:\.\d*)?)(Z|[-+]\d\d:?\d\d)?"
)


def seconds(text: str, name: str = "a time") -> float:
    """Read a time: seconds since 1970, or a date and time of day; those without a zone as UTC.

    ValueError, in which it is called `name`, where it is neither.
    """
    text = text.strip()
    match = _DATE.fullmatch(text)
    if match is None:
        with suppress(ValueError):
            found = float(text)
            if math.isfinite(found):
                return found
        raise ValueError(f"{name} is {text[:40]!r}, expected seconds or a date and time")
    year, month, day, hour, minute = (int(match[k]) for k in range(1, 6))
    whole = datetime(year, month, day, hour, minute, tzinfo=timezone.utc).timestamp()
    zone = match[7] or "Z"
    shift = (
        0
        if zone == "Z"
        else (1 if zone[0] == "+" else -1) * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    )
    return whole + float(match[6]) - shift


class Days:
    """Times of day as seconds: a day has passed where they go back by half of one."""

    def __init__(self) -> None:
        self._last, self._days = -math.inf, 0

    def seconds(self, text: str) -> float:
        """Read ``HH:MM:SS``; ValueError where it is none."""
        try:
            hours, minutes, rest = text.split(":")
            now = int(hours) * 3600 + int(minutes) * 60 + float(rest)
        except ValueError:
            raise ValueError(f"a time is {text[:40]!r}, expected HH:MM:SS") from None
        if now < self._last - 43200:
            self._days += 1
        self._last = now
        return self._days * 86400.0 + now


@dataclass(slots=True)
class _Gpu:
    tick: array[int] = field(default_factory=lambda: array("q"))
    columns: dict[str, array[float]] = field(default_factory=dict)
    last: float = NAN  # when it was sampled before


class Samples:
    """Rows of several GPUs, brought to one time: a tick is one row of each."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path, self.options = path, options
        self.notes: list[str] = []
        self._gpus: dict[str, _Gpu] = {}
        self._times = array("d")
        self._present: set[str] = set()
        self._interval = NAN

    def add(self, gpu: str, time: float, values: Mapping[str, float]) -> None:
        """Append a row: seconds since any origin, NaN where the log has none."""
        found = self._gpus.setdefault(gpu, _Gpu())
        late = len(self._times) > 0 and time - self._times[-1] > 0.5 * self._interval
        if gpu in self._present or not self._times or late:
            self._times.append(time)
            self._present.clear()
        self._present.add(gpu)
        if time > found.last:
            self._interval = time - found.last
        found.last = time
        found.tick.append(len(self._times) - 1)
        rows = len(found.tick)
        for name, value in values.items():
            column = found.columns.get(name)
            if column is None:
                column = found.columns[name] = array("d", [NAN] * (rows - 1))
            column.append(value)
        for column in found.columns.values():
            if len(column) < rows:
                column.append(NAN)

    def _time(self) -> tuple[Floats, NDArray[Any]]:
        """Times from 0 on, and which ticks they are, in order."""
        times = np.array(self._times, dtype=np.float64)
        every = self.options.every_s
        if np.isnan(times).all():
            if every is None and times.size > 1:
                self.notes.append("no times in this log: samples are taken to be 1 s apart")
            order: NDArray[Any] = np.arange(times.size)
            return order.astype(np.float64) * (every or 1.0), order
        if every is not None:
            raise InputError(
                f"read_metrics: {self.path} has times of its own, so every_s={every:g} is of no use"
            )
        if np.isnan(times).any():
            raise IoError(f"{self.path}: sample {int(np.argmax(np.isnan(times))) + 1} has no time")
        order = np.argsort(times, kind="stable")
        last = np.append(np.diff(times[order]) > 0, True)  # of equal times
        if last.size > last.sum():
            self.notes.append(f"{counted(int((~last).sum()), 'repeated time')}: the later was kept")
        if (np.diff(order) < 0).any():
            self.notes.append("times go back: samples were sorted")
        order = order[last]
        return times[order] - times[order[0]], order

    def metrics(self, name: str) -> Metrics:
        """Make the columns; IoError where there was no row or nothing known in them."""
        if not self._times:
            raise IoError(f"{self.path}: no samples")
        time, order = self._time()
        names = list(dict.fromkeys(key for gpu in self._gpus.values() for key in gpu.columns))
        columns: dict[str, Floats] = {}
        for key in names:
            values = np.full((len(self._times), len(self._gpus)), NAN)
            for at, gpu in enumerate(self._gpus.values()):
                if key in gpu.columns:
                    values[np.array(gpu.tick), at] = np.array(gpu.columns[key])
            if np.isfinite(values).any():
                columns[key] = values[order]
        if not columns:
            raise IoError(f"{self.path}: no activity, memory, power or energy was read")
        if "energy_counter_j" in columns:
            columns["energy_counter_j"] = self._counted_up(columns["energy_counter_j"])
        step = np.diff(time)
        if step.size and step.max() > 10 * np.median(step):
            at = int(np.argmax(step))
            self.notes.append(f"no sample for {step[at]:.4g} s after {time[at]:.6g} s")
        try:
            return Metrics(time, columns, gpus=list(self._gpus), name=name, notes=self.notes)
        except InputError as error:  # such as a negative power
            raise IoError(f"{self.path}: {error}") from None

    def _counted_up(self, counter: Floats) -> Floats:
        """Energy since the first sample; a counter that began anew goes on where it was."""
        out = np.full(counter.shape, NAN)
        for gpu, values in enumerate(counter.T):
            known = np.flatnonzero(np.isfinite(values))
            if known.size == 0:
                continue
            steps = np.diff(values[known])
            if (steps < 0).any():
                times = "once" if (steps < 0).sum() == 1 else f"{int((steps < 0).sum())} times"
                self.notes.append(
                    f"the energy counter of GPU {list(self._gpus)[gpu]} began anew "
                    f"{times}: what it had counted between is lost"
                )
            out[known, gpu] = np.concatenate([[0.0], np.cumsum(np.maximum(steps, 0.0))])
        return out


def rows(
    path: Path, samples: Samples, *, whole_cells: bool = False
) -> Iterator[tuple[int, str, bool]]:
    """Number the lines of a text, and tell which is the last; NUL bytes are left out.

    With `whole_cells` a last line without its end is left out, where no unit ends its numbers.

    Blank lines and comments of Slurm's or a shell's making are for the reader to know.
    """
    nuls, held = 0, None
    for number, line in enumerate(lines(path), 1):
        if "\0" in line:
            nuls += line.count("\0")
            line = line.replace("\0", "")
        if line.strip():
            if held is not None:
                yield (*held, False)
            held = (number, line)
    if held is not None and whole_cells and not is_ended(path):
        unfinished(samples, held[0], "", last=True)  # its last number may be half of one
    elif held is not None:
        yield (*held, True)
    if nuls:
        samples.notes.append(f"{counted(nuls, 'NUL byte')} left out")


def table_rows(path: Path, samples: Samples | None = None) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV that are not blank, with the numbers of their lines, the header first.

    With `samples` a last row without an end of line is left out, as its last number may be half of
    one, and its notes say so.
    """
    table = csv.reader(lines(path))
    held: tuple[int, list[str]] | None = None
    try:
        for row in table:
            if row and held is not None:
                yield held
            held = (table.line_num, row) if row else held
    except csv.Error as error:
        raise IoError(f"{path}:{table.line_num}: {error}") from None
    if held is None:
        return
    if samples is None or held[0] == 1 or is_ended(path):
        yield held
    else:
        unfinished(samples, held[0], "", last=True)


def unfinished(samples: Samples, number: int, trouble: str, *, last: bool) -> None:
    """Pass over a last row that its writer did not finish; IoError of any other."""
    if not last:
        raise IoError(f"{samples.path}:{number}: {trouble}")
    samples.notes.append(f"line {number}, the last, is not finished and was left out")
