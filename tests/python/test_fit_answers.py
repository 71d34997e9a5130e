# SPDX-License-Identifier: Apache-2.0
"""Fits of real curves beside those that SciPy found: `bench/scipy_answers.py` stored them."""

from __future__ import annotations

import json
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

pytest.importorskip("scipy")

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = json.loads((ROOT / "tests/golden/scipy_answers.json").read_text())
COLLECTIONS = sorted({row["collection"] for row in ANSWERS})


@cache
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "bench/scipy_answers.py"))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_no_fit_leaves_more_than_scipy_did(collection: str, data: Path, request: Any) -> None:
    path = data / "curves" / f"{collection}.csv.gz"
    if not path.exists():
        path = request.getfixturevalue("shared") / "data" / "curves" / path.name
    traces = {trace.name: trace for trace in gp.read_traces(path)}
    rows = [row for row in ANSWERS if row["collection"] == collection]
    same = 0
    for row in rows:
        step, loss = script()["thinned"](traces[row["curve"]], row["family"])
        assert len(step) == row["points"]
        fit = gp.fit(gp.Trace(step, loss), family=row["family"])
        assert fit.status in ("converged", "poor"), row  # poor is a least sum of squares, too
        # SciPy too ends within some 1e-9 of the sum of its valley
        assert fit.rss <= row["rss"] * (1 + 1e-8), row
        if fit.rss < row["rss"] * (1 - 1e-8):
            continue  # a better valley than SciPy's
        same += 1
        theirs = dict(zip(fit.params, row["params"], strict=True))
        if all(fit.stderr[name] < 0.3 * abs(value) for name, value in fit.params.items()):
            for name, error in fit.stderr.items():
                on_bound = error == 0.0
                assert on_bound or abs(fit.params[name] - theirs[name]) <= 0.01 * error, (name, row)
    assert same >= len(rows) // 2
