# SPDX-License-Identifier: Apache-2.0
"""DVCLive's folder, ``plots/metrics/NAME.tsv``: a table a metric, in folders of nested names."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._core import Series
from glidepath._trace import Trace
from glidepath.readers import wide_csv
from glidepath.readers._series import to_trace


def _root(path: Path) -> Path | None:
    return next(
        (up for up in path.parents if up.name == "metrics" and up.parent.name == "plots"), None
    )


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a table with tabs below ``plots/metrics``."""
    return path.suffix == ".tsv" and _root(path) is not None and b"\t" in head.split(b"\n", 1)[0]


def unit(path: Path) -> Path:
    """Read the folder above ``plots``: one run."""
    root = _root(path)
    return path if root is None else root.parent.parent


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, or one of its tables."""
    if path.is_file():
        return wide_csv.read(path, metric)
    root = path / "plots" / "metrics"
    series: dict[str, Series] = {}
    notes: list[str] = []
    for file in sorted(root.rglob("*.tsv")):
        name = file.relative_to(root).with_suffix("").as_posix()
        (found,) = _core.read_table(os.fsencode(file), None)
        notes += [f"{name}: {note}" for note in found.notes]
        if found.series:  # its one column besides step and timestamp
            series[name] = next(iter(found.series.values()))
    return [to_trace(series, metric, path, path.name, notes)]
