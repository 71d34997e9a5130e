# SPDX-License-Identifier: Apache-2.0
"""JSON lines, one object a row: LLaMA-Factory, detectron2, mmdet, RLlib, W&B, MLPerf, others."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._rows import Rows, counters, flat, number, tells
from glidepath.readers._series import is_cut, lines, to_trace

# What MLPerf writes before each of its rows.
_MLPERF = ":::MLLOG "
_FIRST = 1000  # lines in which rows begin: before them a log may have its configuration


def recognises(path: Path, head: bytes) -> bool:
    """Whether there are JSON objects with a step or a loss in its first lines."""
    if head.lstrip()[:1] != b"{" and _MLPERF.encode() not in head:
        return False
    for line in islice(lines(path), _FIRST):
        row = _row(line) if _MLPERF in line or line.lstrip()[:1] == "{" else {}
        # Names that begin with a number are the epochs of one whole document.
        if tells(n for n, c in row.items() if number(c) is not None and not n[:1].isdigit()):
            return True
    return False


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run; a last line that was cut is left out."""
    rows, notes = Rows(), []
    broken: str | None = None
    mlperf = any(_MLPERF in line for line in islice(lines(path), _FIRST))
    for count, line in enumerate(lines(path), 1):
        if not line.strip() or (mlperf and _MLPERF not in line):
            continue
        if broken is not None:
            raise IoError(broken)
        try:
            rows.add(_row(line))
        except (ValueError, RecursionError) as error:
            broken = f"{path}:{count}: {getattr(error, 'msg', error)}"
    if broken is not None:
        if not rows.count or not is_cut(path):
            raise IoError(broken)
        notes.append("the last line is cut: left out")
    return [to_trace(rows.series(), metric, path, path.name, notes)]


def _row(line: str) -> dict[str, Any]:
    """Read the cells of a line."""
    before, mlperf, text = line.partition(_MLPERF)
    row = json.loads(text if mlperf else before, parse_int=float)
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    if mlperf:
        meta = row.get("metadata")
        own = {str(row.get("key")): row.get("value"), "time_ms": row.get("time_ms")}
        row = own | ({**meta, "lineno": None} if isinstance(meta, dict) else {})
    cells = dict(flat(row, "/"))
    # OpenMMLab's rows of training and of validation differ by their mode alone.
    mode = cells.get("mode", "train")
    return {
        name if mode == "train" or counters([name]) else f"{mode}_{name}": cell
        for name, cell in cells.items()
    }
