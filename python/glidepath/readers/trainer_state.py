# SPDX-License-Identifier: Apache-2.0
"""`trainer_state.json` of Hugging Face's Trainer: training and evaluation rows in one list."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import Series, counted, open_log, to_trace

__all__ = ["read", "recognises", "unit"]

_NOT_METRICS = ("step", "epoch")


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is JSON with a `log_history`."""
    return head.lstrip()[:1] == b"{" and b'"log_history"' in head


def unit(path: Path) -> Path:
    """Read each file alone: a checkpoint's holds what the earlier ones hold."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run. A diverged run's loss 0 beside a NaN gradient norm is NaN again."""
    try:
        with open_log(path) as file:
            text = file.read().decode("utf-8-sig", errors="replace")
        history = json.loads(text, parse_int=float)["log_history"]  # no integer is too large
    except json.JSONDecodeError as error:
        raise IoError(f"{path}:{error.lineno}: {error.msg}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise IoError(f"{path}: {error}") from None
    except (KeyError, TypeError):
        raise IoError(f"{path}: no 'log_history'") from None
    if not isinstance(history, list):
        raise IoError(f"{path}: 'log_history' is not a list")
    series: dict[str, Series] = {}
    masked = 0
    for i, row in enumerate(history):
        if not isinstance(row, dict):
            raise IoError(f"{path}: log_history[{i}] is not an object")
        step = row.get("step")
        if step is None and "loss" not in row and "eval_loss" not in row:
            continue  # what predict() logs belongs to no step
        if isinstance(step, bool) or not isinstance(step, (int, float)) or not math.isfinite(step):
            raise IoError(f"{path}: log_history[{i}] has no step")
        # The last row sums the run up: its train_loss is a mean over all steps, not a point.
        summary = "train_runtime" in row
        norm = row.get("grad_norm")
        diverged = isinstance(norm, float) and math.isnan(norm) and row.get("loss") == 0
        masked += diverged
        for key, value in row.items():
            if key in _NOT_METRICS or (summary and metric != key):
                continue
            if value is not None and not isinstance(value, (int, float)):
                continue
            if key == "loss" and (diverged or value is None):
                value = math.nan
            if value is not None:
                series.setdefault(key, Series()).add(step, value)
    notes = []
    if masked:
        notes.append(f"loss 0 beside a NaN grad_norm in {counted(masked, 'row')}: read as NaN")
    return [to_trace(series, metric, path, path.name, notes)]
