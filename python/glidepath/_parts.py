# SPDX-License-Identifier: Apache-2.0
"""Nodes and pods from CSV files, for `place_pods`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from glidepath._core import FreeNode, IoError, Pod
from glidepath._workload import csv_rows

T = TypeVar("T")
_NODES = ("node", "cpu_milli", "memory_mib", "gpus", "gpu_model")
_PODS = ("job", "cpu_milli", "memory_mib", "gpus", "gpu_milli", "gpu_spec")
_OPTIONAL = ("gpu_model", "gpu_milli", "gpu_spec")
_MOST_GPUS = 1 << 20  # of one node


def read_free_nodes(path: str | os.PathLike[str]) -> tuple[list[FreeNode], list[str]]:
    """Read a CSV of free nodes; the second list names the columns that are not read.

    Columns: ``node,cpu_milli,memory_mib,gpus`` and perhaps ``gpu_model``.
    """

    def made(row: dict[str, str]) -> FreeNode:
        gpus = _whole(row, "gpus")
        if not 0 <= gpus <= _MOST_GPUS:
            raise ValueError(f"{gpus} GPUs")
        return FreeNode(
            row["node"],
            cpu_milli=_whole(row, "cpu_milli"),
            memory_mib=_whole(row, "memory_mib"),
            gpu_milli=[1000] * gpus,
            gpu_model=row.get("gpu_model") or "",
        )

    return _read(path, _NODES, made)


def read_pods(path: str | os.PathLike[str]) -> tuple[list[Pod], list[str]]:
    """Read a CSV of pods; the second list names the columns that are not read.

    Columns: ``job,cpu_milli,memory_mib,gpus`` and perhaps ``gpu_milli`` (1000 where it is blank)
    and ``gpu_spec`` (allowed models between |).
    """

    def made(row: dict[str, str]) -> Pod:
        gpus = _whole(row, "gpus")
        return Pod(
            row["job"],
            cpu_milli=_whole(row, "cpu_milli"),
            memory_mib=_whole(row, "memory_mib"),
            gpus=gpus,
            gpu_milli=_whole(row, "gpu_milli") if gpus and row.get("gpu_milli") else 1000,
            gpu_models=[model for model in (row.get("gpu_spec") or "").split("|") if model],
        )

    return _read(path, _PODS, made)


def _read(
    path: str | os.PathLike[str], columns: Sequence[str], made: Callable[[dict[str, str]], T]
) -> tuple[list[T], list[str]]:
    rows = csv_rows(path)
    name = os.fspath(path)
    if not rows:
        raise IoError(f"{name}: no rows below the header")
    for column in columns:
        if column not in rows[0] and column not in _OPTIONAL:
            raise IoError(f"{name}:1: no column '{column}'")
    found = []
    for line, row in enumerate(rows, 2):
        try:
            found.append(made(row))
        except (ValueError, TypeError) as error:
            raise IoError(f"{name}:{line}: {error}") from None
    return found, [column for column in rows[0] if column and column not in columns]


def _whole(row: dict[str, str], column: str) -> int:
    try:
        return int(row[column])
    except (ValueError, TypeError):
        hint = "; parts of a GPU are gpu_milli" if column == "gpus" else ""
        raise ValueError(f"{column} is {row[column]!r}, expected a whole number{hint}") from None
