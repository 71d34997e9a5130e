# SPDX-License-Identifier: Apache-2.0
"""Logs of tools that fewer people use: lines in the form that each prints, with made-up numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from log_files import one, write

ROWS = range(1, 13)


def loss(i: int) -> float:
    return round(1 + 3 * i**-0.5, 4)


def score(i: int) -> float:
    return round(0.9 - 0.6 * i**-0.5, 4)


LOSSES = [loss(i) for i in ROWS]


def test_an_evaluation_has_another_number_of_iterations_than_training(tmp_path: Path) -> None:
    # PaddleClas
    text = "".join(
        f"[2022/03/30 06:55:12] ppcls INFO: [Train][Epoch {i // 4 + 1}/3][Iter: {10 * (i % 4)}/40]"
        f"lr(PiecewiseDecay): 0.0125, top1: {score(i + 1)}, loss: {x}, eta: 0:00:56\n"
        + f"[2022/03/30 06:57:06] ppcls INFO: [Eval][Epoch {i // 4 + 1}][Iter: 0/16]loss: 2.5\n"
        * (i % 4 == 3)
        for i, x in enumerate(LOSSES)
    )
    run = one(write(tmp_path / "train.log", text), "loss")
    np.testing.assert_array_equal(run.step, [10.0 * i for i in range(12)])
    np.testing.assert_array_equal(run.loss, LOSSES)
    assert run.planned_steps == 120
