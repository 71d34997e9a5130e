# SPDX-License-Identifier: Apache-2.0
"""What ``nvidia-smi --query-gpu=… --format=csv`` prints, with or without units and times."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from glidepath._core import IoError
from glidepath._results import counted
from glidepath.readers.monitors._samples import (
    NAN,
    Options,
    Samples,
    quantity,
    rows,
    seconds,
    unfinished,
)

# Properties that are read; of several for one column the first that is there counts.
FIELDS = {
    "power.draw": "power_w",
    "power.draw.instant": "power_w",
    "power.draw.average": "power_w",
    "utilization.gpu": "utilization",
    "utilization.memory": "memory_utilization",
    "memory.used": "memory_used_gb",
    "memory.total": "memory_total_gb",
    "temperature.gpu": "temperature_c",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.sm": "sm_clock_mhz",
}
# The units in which nvidia-smi prints, for a table that lost them.
_UNITS = {"utilization": "%", "memory": "MiB", "power": "W", "clocks": "MHz"}
# What nvidia-smi prints among its rows when a GPU was lost.
_LOST = "Unable to determine the device handle"
# What tells GPUs apart, best first.
_GPUS = ("index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid")
# Rows of one look at several GPUs come this soon one after the other, and by far sooner than looks.
_ONE_LOOK_S, _FAR_SOONER, _MOST_GPUS = 0.25, 4.0, 16
_NAME = re.compile(r"^([\w.]+)(?:\s*\[(.+)\])?$")


def _unit(name: str) -> str:
    return _UNITS.get(name.split(".")[0], "") if name in FIELDS else ""


def _header(line: str) -> list[tuple[str, str]] | None:
    """Names and units of the properties; None where a line is no header."""
    found = [_NAME.match(cell.strip()) for cell in line.split(",")]
    names = [(match[1], match[2] or _unit(match[1])) if match else ("", "") for match in found]
    return names if any(name in FIELDS for name, _ in names) else None


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return any(_header(line) is not None for line in head.splitlines()[:50])


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    names: list[tuple[str, str]] = []
    chosen: dict[str, int] = {}
    gpu_at = time_at = -1
    lost = 0
    nameless: list[tuple[float, dict[str, float]]] = []
    for number, line, last in rows(path, samples):
        header = _header(line)
        if header is not None:
            names = header
            plain = [name for name, _ in names]
            chosen = {}
            for field, column in FIELDS.items():
                if field in plain:
                    chosen.setdefault(column, plain.index(field))
            gpu_at = next((plain.index(name) for name in _GPUS if name in plain), -1)
            time_at = plain.index("timestamp") if "timestamp" in plain else -1
            continue
        if not names:  # words of a shell above the header
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if line.startswith(_LOST):
            lost += 1
            continue
        if len(cells) != len(names):
            unfinished(
                samples, number, f"{len(cells)} cells for {len(names)} properties", last=last
            )
            continue
        try:
            values = {
                column: quantity(cells[at], names[at][1], name=names[at][0])
                for column, at in chosen.items()
            }
            time = seconds(cells[time_at], "timestamp") if time_at >= 0 else NAN
        except ValueError as error:
            unfinished(samples, number, str(error), last=last)
            continue
        if gpu_at >= 0:
            samples.add(cells[gpu_at], time, values)
        else:
            nameless.append((time, values))
    if not names:
        raise IoError(f"{path}:1: no line of names: leave noheader out of nvidia-smi's --format")
    if lost:
        samples.notes.append(f"{counted(lost, 'line')} {_LOST!r}: passed over")
    _add_nameless(samples, nameless)
    return samples


def _add_nameless(samples: Samples, found: list[tuple[float, dict[str, float]]]) -> None:
    """Take rows of one look, milliseconds apart, for as many GPUs, in the order of nvidia-smi."""
    times = np.array([time for time, _ in found])
    gaps = np.diff(times)
    if gaps.size == 0 or np.isnan(gaps).any():
        looks = np.arange(times.size)
    else:
        # One gap in so many is at least that between two looks, whatever the number of GPUs.
        usual = float(np.quantile(gaps, 1.0 - 1.0 / (2 * _MOST_GPUS)))
        soon = gaps < min(_ONE_LOOK_S, usual / _FAR_SOONER)
        looks = np.concatenate([[0], np.cumsum(~soon)])
    rows = np.bincount(looks) if looks.size else np.array([1])
    gpus = int(rows.max())
    if (rows[:-1] != gpus).any():
        raise IoError(
            f"{samples.path}: looks with {rows.min()} to {gpus} rows and no column that tells GPUs "
            "apart: add index to --query-gpu"
        )
    if gpus > 1:
        samples.notes.append(f"no index: the {gpus} rows of each look are taken for {gpus} GPUs")
    for i, (time, values) in enumerate(found):
        samples.add(str(i % gpus), float(times[i - i % gpus]) if gpus > 1 else time, values)
