# SPDX-License-Identifier: Apache-2.0
"""What ``dcgmi dmon -e …`` prints: a row a GPU and sample, perhaps with a time before each line."""

from __future__ import annotations

import re
from pathlib import Path

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

# Short names of the fields that are read, their columns, and their unit where no line says it.
FIELDS = {
    "POWER": ("power_w", "W"),
    "TOTEC": ("energy_counter_j", "mJ"),
    "PCITP": ("pcie_tx_sampled_bytes_s", "KB/s"),
    "PCIRP": ("pcie_rx_sampled_bytes_s", "KB/s"),
    "GPUTL": ("utilization", "%"),
    "MCUTL": ("memory_utilization", "%"),
    "GRACT": ("gr_activity", ""),
    "SMACT": ("sm_activity", ""),
    "SMOCC": ("sm_occupancy", ""),
    "TENSO": ("tensor_activity", ""),
    "DRAMA": ("memory_activity", ""),
    "FP64A": ("fp64_activity", ""),
    "FP32A": ("fp32_activity", ""),
    "FP16A": ("fp16_activity", ""),
    "PCITX": ("pcie_tx_bytes_s", ""),
    "PCIRX": ("pcie_rx_bytes_s", ""),
    "NVLTX": ("nvlink_tx_bytes_s", ""),
    "NVLRX": ("nvlink_rx_bytes_s", ""),
    "FBUSD": ("memory_used_gb", "MB"),
    "FBTTL": ("memory_total_gb", "MB"),
    "TMPTR": ("temperature_c", "C"),
    "SMCLK": ("sm_clock_mhz", "MHz"),
}
_HEADER = re.compile(r"^(?P<time>[^#]*?)#\s*Entity\s+(?P<names>\S.*)$")
_ROW = re.compile(r"^(?P<time>.*?)\b(?P<gpu>GPU(?:-[CI]+)?\s+[\d/]+)\s+(?P<cells>\S.*)$")


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return any(_HEADER.match(line) for line in head.splitlines()[:50])


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    names: list[str] = []
    passed = 0
    for number, line, last in rows(path, samples):
        header = _HEADER.match(line)
        if header is not None:
            names = header["names"].split()
            continue
        row = _ROW.match(line)
        if row is None or not names:  # the line of units below a header, or a shell's words
            continue
        cells = row["cells"].split()
        if len(cells) != len(names):
            unfinished(samples, number, f"{len(cells)} values for {len(names)} fields", last=last)
            continue
        kind, gpu = row["gpu"].split()
        if kind != "GPU":
            passed += 1
            continue
        try:
            time = seconds(row["time"]) if row["time"].strip() else NAN
            values = {
                FIELDS[name][0]: quantity(cell, FIELDS[name][1], name=name)
                for name, cell in zip(names, cells, strict=True)
                if name in FIELDS
            }
        except ValueError as error:
            unfinished(samples, number, str(error), last=last)
            continue
        samples.add(gpu, time, values)
    if not names:
        raise IoError(f"{path}: no line of names (#Entity …)")
    if passed:
        samples.notes.append(f"{counted(passed, 'row')} of parts of a GPU (MIG) passed over")
    return samples
