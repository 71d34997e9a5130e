# SPDX-License-Identifier: Apache-2.0
"""The tables that ``nvidia-smi`` prints, one or, with ``-l``, many; the rest of a log may be any.

A table begins with the version and has two lines a GPU, whose shape has stayed since driver 450.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

from glidepath.readers.monitors._samples import NAN, Options, Samples, quantity, rows

_TABLE = re.compile(r"^\|\s*NVIDIA-SMI\s+[\d.]+")
_GPU = re.compile(r"^\|\s+(\d+)\s+\S.*\|.*[\dA-Fa-f]{8}:[\dA-Fa-f]{2}:[\dA-Fa-f]{2}\.\d")
_USE = re.compile(
    r"^\|\s*\S+\s+(?P<temperature>\d+|N/A)C?\s+\S+\s+(?P<power>\S+?)\s*/\s*\S+\s*\|"
    r"\s*(?P<used>\d+MiB|N/A)\s*/\s*(?P<total>\d+MiB|N/A)\s*\|\s*(?P<utilization>\d+%|N/A)"
)
_DATE = re.compile(r"^\w{3} (\w{3})\s+(\d+) (\d\d:\d\d:\d\d) (?:\w+ )?(\d{4})\s*$")


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    return any(_TABLE.match(line) for line in head.splitlines())


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    gpu, time = None, NAN
    for _, line, _ in rows(path, samples):
        date = _DATE.match(line)
        if date is not None:
            text = f"{date[1]} {date[2]} {date[3]} {date[4]}"
            day = datetime.strptime(text, "%b %d %H:%M:%S %Y")
            time = day.replace(tzinfo=timezone.utc).timestamp()
        elif (found := _GPU.match(line)) is not None:
            gpu = found[1]
        elif gpu is not None and (use := _USE.match(line)) is not None:
            samples.add(
                gpu,
                time,
                {
                    "power_w": quantity(use["power"]),
                    "utilization": quantity(use["utilization"]),
                    "memory_used_gb": quantity(use["used"]),
                    "memory_total_gb": quantity(use["total"]),
                    "temperature_c": quantity(use["temperature"]),
                },
            )
            gpu = None
    return samples
