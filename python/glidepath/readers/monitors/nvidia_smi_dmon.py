# SPDX-License-Identifier: Apache-2.0
"""What ``nvidia-smi dmon`` prints, with or without dates and times (``-o DT``)."""

from __future__ import annotations

import re
from pathlib import Path

from glidepath._core import IoError
from glidepath.readers.monitors._samples import (
    NAN,
    Days,
    Options,
    Samples,
    quantity,
    rows,
    seconds,
    unfinished,
)

# Names that are read, their columns, and their unit where no line says it.
FIELDS = {
    "pwr": ("power_w", "W"),
    "sm": ("utilization", "%"),
    "mem": ("memory_utilization", "%"),
    "fb": ("memory_used_gb", "MB"),
    "gtemp": ("temperature_c", "C"),
    "temp": ("temperature_c", "C"),
    "pclk": ("sm_clock_mhz", "MHz"),
    "rxpci": ("pcie_rx_sampled_bytes_s", "MB/s"),
    "txpci": ("pcie_tx_sampled_bytes_s", "MB/s"),
    "gract": ("gr_activity", "%"),
    "smutil": ("sm_activity", "%"),
    "smocc": ("sm_occupancy", "%"),
    "mmaact": ("tensor_activity", "%"),
    "dram": ("memory_activity", "%"),
    "fp64": ("fp64_activity", "%"),
    "fp32": ("fp32_activity", "%"),
    "fp16": ("fp16_activity", "%"),
    "pcitx": ("pcie_tx_bytes_s", "MiB/s"),
    "pcirx": ("pcie_rx_bytes_s", "MiB/s"),
    "nvlrx": ("nvlink_rx_bytes_s", "MiB/s"),
    "nvltx": ("nvlink_tx_bytes_s", "MiB/s"),
}


def _cells(line: str) -> list[str]:
    return [cell for cell in re.split(r"[,\s]+", line.strip().lstrip("#").strip()) if cell]


def _is_header(line: str) -> bool:
    cells = [cell.lower() for cell in _cells(line)]
    return line.lstrip().startswith("#") and "gpu" in cells and any(c in FIELDS for c in cells)


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return any(_is_header(line) for line in head.splitlines()[:50])


def _time(row: dict[str, str], days: Days) -> float:
    if "date" in row:
        date = row["date"]
        return seconds(f"{date[:4]}-{date[4:6]}-{date[6:8]} {row.get('time', '00:00:00')}")
    return days.seconds(row["time"]) if "time" in row else NAN


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples, days = Samples(path, options), Days()
    names: list[str] = []
    for number, line, last in rows(path, samples, whole_cells=True):
        if line.lstrip().startswith("#"):
            if _is_header(line):
                names = [cell.lower() for cell in _cells(line)]
            continue  # the line of units, too: they are always the same
        if not names:
            continue
        cells = _cells(line)
        if len(cells) != len(names):
            unfinished(samples, number, f"{len(cells)} values for {len(names)} names", last=last)
            continue
        row = dict(zip(names, cells, strict=True))
        try:
            values = {
                column: quantity(row[name], unit, name=name)
                for name, (column, unit) in FIELDS.items()
                if name in row
            }
            time = _time(row, days)
        except ValueError as error:
            unfinished(samples, number, str(error), last=last)
            continue
        samples.add(row["gpu"], time, values)
    if not names:
        raise IoError(f"{path}: no line of names (# gpu …)")
    return samples
