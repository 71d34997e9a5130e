# SPDX-License-Identifier: Apache-2.0
"""Samples of NVML, or one's own: JSON or CSV with a row a GPU and time, and names as below."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glidepath._core import IoError
from glidepath._hardware import COLUMNS
from glidepath.readers._series import is_ended, lines
from glidepath.readers.json_document import parsed
from glidepath.readers.monitors._samples import (
    NAN,
    Options,
    Samples,
    quantity,
    rows,
    seconds,
    table_rows,
    unfinished,
)

# The columns of `Metrics` by their names, and what NVML gives in its own units.
FIELDS = {
    **{name: (name, 1.0) for name in COLUMNS},
    "power_mw": ("power_w", 1e-3),
    "energy_mj": ("energy_counter_j", 1e-3),
    "utilization_gpu_pct": ("utilization", 0.01),
    "utilization_memory_pct": ("memory_utilization", 0.01),
    "memory_used_bytes": ("memory_used_gb", 2.0**-30),
    "memory_total_bytes": ("memory_total_gb", 2.0**-30),
}
_TIMES = {"time_s": 1.0, "timestamp": 1.0, "timestamp_ms": 1e-3}
_GPUS = ("gpu", "gpu_index", "index")


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    if head.lstrip()[:1] in ("{", "["):
        names = re.findall(r'"(\w+)"\s*:', head)
    else:
        names = [name.strip() for name in head.split("\n", 1)[0].split(",")]
    if {"step", "loss"} & set(names):  # the log of a run that watches its GPU
        return False
    return any(name in FIELDS for name in names) and any(name in _TIMES for name in names)


def _objects(path: Path, samples: Samples) -> Iterator[tuple[int, Any]]:
    """Rows with the number of their line, or of their object where all is one document."""
    head = next((line for line in lines(path) if line.strip()), "")
    if head.lstrip().startswith("["):
        yield from enumerate(parsed(path), 1)
    elif head.lstrip().startswith("{"):
        for number, line, last in rows(path, samples):
            try:
                row = json.loads(line)
            except ValueError as error:
                unfinished(samples, number, str(error), last=last and not is_ended(path))
                continue
            yield number, row
    else:
        table = table_rows(path, samples)
        names = [name.strip() for name in next(table, (0, []))[1]]
        for number, row in table:
            if len(row) != len(names):
                raise IoError(f"{path}:{number}: {len(row)} cells for {len(names)} names")
            yield number, {name: cell.strip() for name, cell in zip(names, row, strict=True)}


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    passed: dict[str, None] = {}
    try:
        for number, row in _objects(path, samples):
            if not isinstance(row, dict):
                what = f"a row is {row!r:.40}, expected an object of names and values"
                raise IoError(f"{path}:{number}: {what}")
            _add(samples, number, row, passed)
    except ValueError as error:
        raise IoError(f"{path}: {error}") from None
    if passed:
        samples.notes.append(f"passed over: {', '.join(list(passed)[:8])}")
    return samples


def _add(samples: Samples, number: int, row: dict[str, Any], passed: dict[str, None]) -> None:
    time, gpu, values = NAN, "0", dict[str, float]()
    for name, given in row.items():
        text = "" if given is None else str(given)
        try:
            if name in FIELDS:
                column, factor = FIELDS[name]
                values[column] = quantity(text, name=name) * factor if text else NAN
            elif name in _TIMES:
                time = seconds(text, name) * _TIMES[name]
            elif name in _GPUS:
                gpu = text
            else:
                passed[name] = None
        except ValueError as error:
            raise IoError(f"{samples.path}:{number}: {error}") from None
    samples.add(gpu, time, values)
