# SPDX-License-Identifier: Apache-2.0
"""Which reader a log of a monitor is for: by its content."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from glidepath._core import InputError, IoError
from glidepath._hardware import Metrics
from glidepath.readers._formats import refusing
from glidepath.readers._open import name_of
from glidepath.readers._series import HEAD_BYTES, open_log
from glidepath.readers.monitors._samples import Options

# In the order in which they get to judge whether a file is theirs.
FORMATS = (
    *("radt", "dcgmi_dmon", "dcgm_exporter", "nvidia_smi_csv", "nvidia_smi_dmon", "nvidia_smi"),
    *("zeus", "codecarbon", "samples"),
)
# What a file lacks that nearly is one of theirs, by how it begins.
_LACKS = {
    r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, |[^\n]*\d (?:W|MiB|%)(?:,|\s*$)": (
        "nvidia-smi without its line of names: leave noheader out of --format"
    ),
    r"gpu, ?pwr\b|#? *gpu\b.*\bpwr\b": (
        "nvidia-smi dmon without its line of units: leave nounit out of --format"
    ),
    r'\{[^\n]*"gpus"': (
        "gpustat's JSON is not read: log with nvidia-smi "
        "--query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv -l 1"
    ),
    r"device,[^\n]*Power \(W\)": (
        "rocm-smi's table is not read: columns time_s, gpu and power_w would be"
    ),
    r"(?=[^\n]*\b(?:timestamp|time)\b)[^\n]*(?:power|util|gpu)": (
        "a table of samples needs columns such as time_s, gpu and power_w, utilization, "
        "memory_used_gb: see docs/formats.md"
    ),
}


def _reader(format: str) -> Any:  # noqa: A002
    return importlib.import_module(f"glidepath.readers.monitors.{format}")


def _beginning(path: Path) -> str:
    with refusing(str(path)), open_log(path) as file:
        head = file.read(HEAD_BYTES).replace(b"\0", b"")
    return head.decode("utf-8-sig", errors="replace")


def _lack_of(path: Path) -> str:
    """Say what a file lacks that no reader recognises."""
    text = _beginning(path).lstrip()
    found = (said for begins, said in _LACKS.items() if re.match(begins, text))
    return f"no log of a monitor that is known: {next(found, 'none of their columns')}"


def format_of(path: Path) -> str | None:
    """Which monitor wrote a file; None where it is no known one's."""
    text = _beginning(path)
    for name in FORMATS:
        with suppress(Exception):  # of a damaged file a reader may not know what to make
            if _reader(name).recognises(text):
                return name
    return None


def read_metrics(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the builtin is not needed here
    every_s: float | None = None,
    run: str | None = None,
) -> Metrics:
    """Read what a monitor logged: `glidepath.read_metrics`."""
    if format is not None and format not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"read_metrics: format is {format!r:.80}, expected one of {known}")
    if every_s is not None and not 0 < every_s < float("inf"):
        raise InputError(f"read_metrics: every_s is {every_s}, expected above 0 and finite")
    name = name_of(path, "read_metrics")
    file = Path(name)
    with refusing(name):
        if file.is_dir():
            raise IoError(f"{file}: a folder; read_metrics reads one file")
        kind = format or format_of(file)
        if kind is None:
            raise IoError(f"{file}: {_lack_of(file)} (formats: {', '.join(FORMATS)})")
        if run is not None and kind not in ("zeus", "codecarbon"):
            raise InputError(f"read_metrics: run={run!r} is not for a log of {kind}")
        found: Metrics = _reader(kind).read(file, Options(every_s, run)).metrics(file.name)
        return found
