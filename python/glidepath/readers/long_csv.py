# SPDX-License-Identifier: Apache-2.0
"""The long form, ``curve,step,value[,lr][,wall_seconds]``, plain or gzip; read by the core."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from glidepath import _core
from glidepath._core import AbsentError, IoError
from glidepath._trace import Trace, of_record
from glidepath.readers._series import collected

# Columns that are no metrics.
_NO_METRICS = ("curve", "step", "lr", "wall_seconds")
_VALUE = "value"  # the column that is read where none is named


def recognises(path: Path, head: bytes) -> bool:
    """Whether it has columns of curves and steps."""
    return _core.is_long(os.fsencode(path), head)


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every curve of the file."""
    _collect(path, metric, _core.head_of(os.fsencode(path)))
    return _read(path, metric or _VALUE)


def read_in_folder(path: Path, metric: str | None, head: bytes) -> list[Trace]:
    """Read a file of a folder, where another may have the metric."""
    _collect(path, metric, head)
    _core.require_column(os.fsencode(path), head, metric)
    return _read(path, metric or _VALUE)


def _read(path: Path, column: str) -> list[Trace]:
    return [of_record(each) for each in _core.read_long_csv(os.fsencode(path), column)]


def _collect(path: Path, metric: str | None, head: bytes) -> None:
    """Leave a trace of every metric of every curve, while somebody collects them.

    Who does lists them also where the one that would be read is absent.
    """
    found = collected.get()
    if found is None:
        return
    names, known = _core.header_of(head), len(found)
    for name in names:
        if name not in _NO_METRICS:
            with suppress(IoError):  # such as a column of words
                found += _read(path, name)
    if metric is None and _VALUE not in names and len(found) > known:
        raise AbsentError(f"{path}:1: no column {_VALUE!r}")
