# SPDX-License-Identifier: Apache-2.0
"""How fast fits are beside other people's solvers on the same curves: `glidepath bench fit`.

Thread CPU seconds, the median of interleaved rounds, so that a busy machine distorts ratios little.
The C++ rivals are the program `fit_rivals` of the release preset; without it, SciPy alone.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath._results import require

__all__ = ["curves", "run"]

Floats = NDArray[np.float64]
Row = dict[str, Any]

_CODE = {"pow3": 0, "exp3": 1, "pow4": 2}


def curves(family: str, n: int, m: int, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Make noisy curves over steps 1 to n: steps (n,) and losses (m, n).

    Floors are uniform in 0.1 to 2, scales log-uniform in 0.5 to 5, rates uniform in 0.3 to 1.2
    (pow4 0.4 to 1, with shifts of 0.5 to 5; exp3 2/n to 8/n); noise is 1 % of the scale, 0.2 % for
    pow4.
    """
    rng = np.random.default_rng(seed)
    step = np.arange(1.0, n + 1.0)
    floor, scale = rng.uniform(0.1, 2.0, m), np.exp(rng.uniform(np.log(0.5), np.log(5.0), m))
    if family == "exp3":
        shape = np.exp(-rng.uniform(2.0, 8.0, m)[:, None] / n * step)
    elif family == "pow4":
        shape = (step + rng.uniform(0.5, 5.0, m)[:, None]) ** -rng.uniform(0.4, 1.0, m)[:, None]
    else:
        shape = step ** -rng.uniform(0.3, 1.2, m)[:, None]
    noise = (0.002 if family == "pow4" else 0.01) * scale
    losses = floor[:, None] + scale[:, None] * shape + noise[:, None] * rng.normal(size=(m, n))
    return step, np.ascontiguousarray(losses)


def _formula(family: str) -> Callable[..., Floats]:
    if family == "exp3":
        return lambda t, c, a, b: c + a * np.exp(-b * t)
    if family == "pow4":
        return lambda t, c, a, b, d: c + a * (t + d) ** -b
    return lambda t, c, a, b: c + a * t**-b


def _start(family: str, step: Floats, loss: Floats) -> list[float]:
    rate = 3.0 / step.size if family == "exp3" else 0.5
    shape = [rate, 1.0] if family == "pow4" else [rate]
    first = float(_formula(family)(step[:1], 0.0, 1.0, *shape)[0])
    return [float(loss[-1]), float((loss[0] - loss[-1]) / first), *shape]


def _error(params: Floats, truth: Floats) -> float:
    return float(np.max(np.abs(params / truth - 1.0)))


def _program() -> str | None:
    """Find the C++ rivals: on the path, or in a build of this tree."""
    root = Path(__file__).resolve().parents[2]
    found = sorted(root.glob("build/*/bench/rivals/fit_rivals"))
    return str(found[0]) if found else shutil.which("fit_rivals")


def _scipy_rows(family: str, step: Floats, losses: Floats, rounds: int) -> list[Row]:
    optimize = require("scipy.optimize")
    formula, n = _formula(family), step.size
    few = losses[: max(8, 4000 // n)]
    traces = [gp.Trace(step, loss) for loss in few]
    fits = [gp.fit(trace, family=family) for trace in traces]
    truth = np.array([list(fit.params.values()) for fit in fits])

    def by_scipy(**options: Any) -> Floats:
        return np.array(
            [
                optimize.curve_fit(formula, step, y, p0=_start(family, step, y), **options)[0]
                for y in few
            ]
        )

    lower = [-np.inf, -np.inf, *[0.0] * (len(truth[0]) - 2)]
    runs: dict[str, Callable[[], Floats]] = {
        "glidepath from Python": lambda: np.array(
            [list(gp.fit(trace, family=family)._record.params) for trace in traces]
        ),
        "scipy curve_fit lm": lambda: by_scipy(maxfev=10000),
        "scipy curve_fit trf, bounds": lambda: by_scipy(bounds=(lower, np.inf), max_nfev=10000),
    }
    seconds: dict[str, list[float]] = {what: [] for what in runs}
    errors: dict[str, float] = {}
    for _ in range(rounds):
        for what, work in runs.items():
            begin = time.thread_time()
            params = work()
            seconds[what].append((time.thread_time() - begin) / len(few))
            errors[what] = _error(params, truth)
    return [
        {
            "what": what,
            "family": family,
            "n": n,
            "per_second": 1.0 / statistics.median(times),
            # against glidepath's optimum, which fit_rivals checks against long double
            "error": errors[what],
        }
        for what, times in seconds.items()
    ]


def _evaluate_rows() -> list[Row]:
    """Batch evaluation beside NumPy and beside filling the same memory."""
    rng = np.random.default_rng(0)
    m, h = 2048, 1024
    params = {
        "floor": rng.uniform(0.1, 2.0, m),
        "scale": rng.uniform(0.5, 5.0, m),
        "rate": rng.uniform(0.3, 1.2, m),
    }
    arbitrary = np.sort(rng.uniform(100.0, 1e6, h))
    spaced = np.exp(np.linspace(np.log(100.0), np.log(1e6), h))
    out = np.empty((m, h))
    column = {name: values[:, None] for name, values in params.items()}
    runs: dict[str, Callable[[], Any]] = {
        "fill the memory": lambda: out.fill(1.0),
        "evaluate, log-spaced": lambda: gp.evaluate_batch(
            "pow3", params, spaced, threads=1, out=out
        ),
        "evaluate, arbitrary": lambda: gp.evaluate_batch(
            "pow3", params, arbitrary, threads=1, out=out
        ),
        "numpy power": lambda: column["floor"] + column["scale"] * arbitrary ** -column["rate"],
    }
    rows = []
    for what, work in runs.items():
        times = []
        for _ in range(5):
            begin = time.thread_time()
            work()
            times.append(time.thread_time() - begin)
        rows.append(
            {
                "what": what,
                "family": "pow3",
                "n": h,
                "per_second": m * h / statistics.median(times),
                "error": 0.0,
            }
        )
    return rows


def run(
    *,
    families: Sequence[str] = ("pow3", "exp3", "pow4"),
    points: Sequence[int] = (50, 200, 1000),
    rounds: int = 3,
) -> list[Row]:
    """Measure every solver on the same curves.

    Parameters
    ----------
    families, points : sequences, optional
        What to fit, and to how many points.
    rounds : int, optional
        Rounds in which the solvers take turns.

    Returns
    -------
    list of dict
        ``what``, ``family``, ``n``, ``per_second`` (fits, or values of a batch evaluation),
        ``error`` (largest relative error of a parameter) and ``ratio`` (fits per second over those
        of ``scipy curve_fit lm``, values over those of ``fill the memory``).
    """
    program = _program()
    rows: list[Row] = []
    for family in families:
        for n in points:
            step, losses = curves(family, n, 512 if n < 500 else 128)
            part = _scipy_rows(family, step, losses, rounds)
            if program is not None:
                with tempfile.NamedTemporaryFile(suffix=".bin") as file:
                    head = np.array([_CODE[family], n, len(losses)], dtype=np.float64)
                    file.write(head.tobytes() + step.tobytes() + losses.tobytes())
                    file.flush()
                    lines = subprocess.run(
                        [program, file.name, str(rounds)],
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout.splitlines()
                part += [json.loads(line) for line in lines]
            base = next(r["per_second"] for r in part if r["what"] == "scipy curve_fit lm")
            for row in part:
                row["ratio"] = row["per_second"] / base
            rows += part
    memory = _evaluate_rows()
    for row in memory:
        row["ratio"] = row["per_second"] / memory[0]["per_second"]
    return rows + memory
