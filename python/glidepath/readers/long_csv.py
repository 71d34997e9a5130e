# SPDX-License-Identifier: Apache-2.0
"""The long form, ``curve,step,value[,lr][,wall_seconds]``, plain or gzip; read by the core."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._trace import Trace, _trace
from glidepath.readers._series import AbsentError

__all__ = ["read", "recognises", "unit"]


def header(head: bytes) -> list[str]:
    """Split the first line of a CSV into the names of its columns."""
    text = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").strip()
    return [column.strip().strip('"') for column in text.split(",")]


def recognises(path: Path, head: bytes) -> bool:
    """Whether it has columns of curves and steps."""
    return {"curve", "step"} <= set(header(head))


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every curve of the file."""
    return [_trace(*row) for row in _core.read_long_csv(os.fsencode(path), metric or "value")]


def read_in_folder(path: Path, metric: str | None, head: bytes) -> list[Trace]:
    """Read a file of a folder, where another may have the metric."""
    if metric is not None and metric not in header(head):
        raise AbsentError(f"{path}:1: no column {metric!r}")
    return read(path, metric)
