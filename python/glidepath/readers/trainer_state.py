# SPDX-License-Identifier: Apache-2.0
"""`trainer_state.json` of Hugging Face's Trainer: training and evaluation rows in one list."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import Series, counted, to_trace
from glidepath.readers.json_document import parsed

_NOT_METRICS = ("step", "epoch")
# The Trainer rounds to four digits: from above this, no honest loss falls to 0 from row to row.
_FALLS_TO_ZERO = 0.05


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is JSON with a `log_history`."""
    return head.lstrip()[:1] == b"{" and b'"log_history"' in head


def unit(path: Path) -> Path:
    """Read each file alone: a checkpoint's holds what the earlier ones hold."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run. The loss 0 that the Trainer writes for NaN is NaN again."""
    state = parsed(path)
    history = state.get("log_history") if isinstance(state, dict) else None
    if history is None:
        raise IoError(f"{path}: no 'log_history'")
    planned = state.get("max_steps")
    if not isinstance(history, list):
        raise IoError(f"{path}: 'log_history' is not a list")
    series: dict[str, Series] = defaultdict(Series)
    masked, before = [0, 0], 0.0  # beside a NaN grad_norm, without one; the loss before
    for i, row in enumerate(history):
        if not isinstance(row, dict):
            raise IoError(f"{path}: log_history[{i}] is not an object")
        step = row.get("step")
        if step is None and "loss" not in row and "eval_loss" not in row:
            continue  # what predict() logs belongs to no step
        if not isinstance(step, float) or not math.isfinite(step):
            raise IoError(f"{path}: log_history[{i}] has no step")
        # The last row sums the run up: its train_loss is a mean over all steps, not a point.
        summary = "train_runtime" in row
        if "loss" in row:
            loss, norm = row["loss"], row.get("grad_norm")
            if loss is None:
                row["loss"] = math.nan
            elif loss == 0 and (before > _FALLS_TO_ZERO if norm is None else norm != norm):
                row["loss"] = math.nan
                masked[norm is None] += 1
            elif isinstance(loss, float):
                before = loss
        for key, value in row.items():
            if type(value) is not float or key in _NOT_METRICS or (summary and metric != key):
                continue
            column = series[key]
            column.step.append(step)
            column.value.append(value)
    notes = [
        f"loss 0 {where} in {counted(rows, 'row')}: read as NaN"
        for rows, where in zip(masked, ("beside a NaN grad_norm", f"after {before:g}"), strict=True)
        if rows
    ]
    planned_steps = planned if isinstance(planned, float) else None
    return [to_trace(series, metric, path, path.name, notes, planned_steps=planned_steps)]
