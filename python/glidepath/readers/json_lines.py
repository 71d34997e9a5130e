# SPDX-License-Identifier: Apache-2.0
"""JSON lines, one object a row: LLaMA-Factory, detectron2, mmdet, RLlib, MLPerf; by the core."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._trace import Trace
from glidepath.readers import json_document
from glidepath.readers._series import of_run


def recognises(path: Path, head: bytes) -> bool:
    """Whether there are JSON objects with a step or a loss in its first lines."""
    if json_document.is_of_epoch(path) and head.strip().count(b"\n") == 0:
        return False  # a row, whose neighbours are in other files
    return _core.is_json_lines(os.fsencode(path), head)


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, or each that a column tells apart; a last line that was cut is left out."""
    return [of_run(run, metric, path) for run in _core.read_json_lines(os.fsencode(path), metric)]
