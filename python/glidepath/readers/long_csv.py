# SPDX-License-Identifier: Apache-2.0
"""The long form, ``curve,step,value[,lr][,wall_seconds]``, plain or gzip; read by the core."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._trace import Trace, of_record


def recognises(path: Path, head: bytes) -> bool:
    """Whether it has columns of curves and steps."""
    return _core.is_long(os.fsencode(path), head)


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every curve of the file."""
    return [of_record(each) for each in _core.read_long_csv(os.fsencode(path), metric or "value")]


def read_in_folder(path: Path, metric: str | None, head: bytes) -> list[Trace]:
    """Read a file of a folder, where another may have the metric."""
    _core.require_column(os.fsencode(path), head, metric)
    return read(path, metric)
