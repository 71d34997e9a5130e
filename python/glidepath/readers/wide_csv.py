# SPDX-License-Identifier: Apache-2.0
"""Tables with a column a metric: Lightning, Keras, Ultralytics, RLlib; read by the core."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._trace import Trace
from glidepath.readers._series import of_run


def recognises(path: Path, head: bytes) -> bool:
    """Whether its header names steps or a metric, and no curves."""
    return _core.is_table(os.fsencode(path), head)


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, or each that a column names. An empty cell was not logged; "nan" was."""
    return [of_run(run, metric, path) for run in _core.read_table(os.fsencode(path), metric)]
