# SPDX-License-Identifier: Apache-2.0
"""What the tests of the readers share: files to read, and what must come out of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

import glidepath as gp

NAN, INF = math.nan, math.inf
ROWS = range(1, 13)


def loss(i: int) -> float:
    return round(1 + 3 * i**-0.5, 4)


LOSSES = [loss(i) for i in ROWS]
BY_ROW = [float(i) for i in ROWS]
BY_TEN = [10.0 * i for i in ROWS]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def one(path: Path, metric: str | None = None) -> gp.Trace:
    (run,) = gp.read_traces(path, metric=metric)
    return run


def check(
    run: gp.Trace, step: list[float], loss: list[float], lr: list[float] | None = None
) -> None:
    np.testing.assert_array_equal(run.step, step)
    np.testing.assert_array_equal(run.loss, loss)
    if lr is None:
        assert run.lr is None
    else:
        assert run.lr is not None
        np.testing.assert_array_equal(run.lr, lr)


def trainer_state(path: Path, history: list[dict[str, object]]) -> Path:
    # Python's json writes a bare NaN, as the Trainer does.
    state = {"best_metric": None, "global_step": 30, "log_history": history, "max_steps": 99}
    return write(path, json.dumps(state, indent=2))
