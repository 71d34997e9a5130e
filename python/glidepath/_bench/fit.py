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
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp
from glidepath import _core
from glidepath._columns import Floats
from glidepath._results import require

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


def _row(what: str, family: str, n: int, per_second: float, error: float = 0.0) -> Row:
    return {"what": what, "family": family, "n": n, "per_second": per_second, "error": error}


def _error(params: Floats, truth: Floats) -> float:
    return float(np.max(np.abs(params / truth - 1.0)))


def _program(name: str) -> str | None:
    """Find a C++ program of bench/rivals: in the release build of this tree, or on the path."""
    root = Path(__file__).resolve().parents[2]
    found = root / "build/release/bench/rivals" / name
    return str(found) if found.exists() else shutil.which(name)


def _lines(*command: str) -> list[Row]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _python_rows(family: str, step: Floats, losses: Floats) -> list[Row]:
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
    # As many as a second of SciPy is worth: the first few find the caches cold after it.
    passes = 50

    def from_python() -> Floats:
        for _ in range(passes):
            found = [gp.fit(trace, family=family) for trace in traces]
        return np.array([[*fit.params.values()] for fit in found])

    runs: dict[str, Callable[[], Floats]] = {
        _PYTHON: from_python,
        "scipy curve_fit lm": lambda: by_scipy(maxfev=10000),
        "scipy curve_fit trf, bounds": lambda: by_scipy(bounds=(lower, np.inf), max_nfev=10000),
    }
    rows: list[Row] = []
    for what, work in runs.items():
        begin = time.thread_time()
        params = work()
        fitted = len(few) * (passes if what == _PYTHON else 1)
        speed = fitted / (time.thread_time() - begin)
        # The error against glidepath's optimum, which fit_rivals checks against long double.
        rows.append(_row(what, family, n, speed, _error(params, truth)))
    return rows


def _medians(turns: Sequence[Sequence[Row]]) -> list[Row]:
    """Take the median speed and the largest error of each row over turns with the same rows."""
    return [
        {
            **same[0],
            "per_second": statistics.median(row["per_second"] for row in same),
            "error": max(row["error"] for row in same),
        }
        for same in zip(*turns, strict=True)
    ]


def _call_row(family: str, step: Floats, losses: Floats) -> Row:
    """Measure what a call from Python costs beyond the fit, in microseconds."""
    traces = [gp.Trace(step, loss) for loss in losses[:20]] * 25
    columns = [trace.step for trace in traces], [trace.loss for trace in traces]

    def one_by_one() -> None:
        for trace in traces:
            gp.fit(trace, family=family)

    def together() -> None:
        _core.fit_batch(*columns, [], family, "none", -np.inf, "closed_form", None, -np.inf, 1)

    # The least of many turns: a difference of microseconds drowns in what else a machine does.
    least = [float("inf")] * 2
    for _ in range(300):
        for i, work in enumerate((one_by_one, together)):
            begin = time.thread_time()
            work()
            least[i] = min(least[i], (time.thread_time() - begin) / len(traces))
    return _row(_CALL, family, step.size, 1e6 * (least[0] - least[1]))


def _peak_row() -> Row:
    """Peak memory of a batch beyond its input and output, in MiB."""
    m, n = 100_000, 100
    program = """
import resource, sys
import numpy as np
import glidepath as gp
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
m, n = int(sys.argv[1]), int(sys.argv[2])
step, loss = np.arange(1.0, n + 1), np.empty((m, n))
for i in range(m):
    loss[i] = 1.0 + 3.0 * step ** -0.5 + 0.01 * np.sin(i + step * step)
before = peak()
found = gp.fit_batch(step, loss, family="pow3")
out = sum(c.nbytes for c in found.params.values()) + found.sigma.nbytes + found.status.nbytes
print(peak() - before - out / 2**20)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(m), str(n)], check=True, capture_output=True, text=True
    )
    return _row("peak memory beyond input and output, MiB", "pow3", n, float(done.stdout))


_SINGLE, _SHARED = "glidepath fit", "glidepath fit_batch, shared steps"
_OWN_STEPS, _PYTHON = "glidepath fit_batch, own steps", "glidepath from Python"
_SCIPY, _CERES = "scipy curve_fit lm", "Ceres loop, autodiff, default"
_TINY = "TinySolver analytic, tight"
_CALL = "a call from Python, us beyond the fit"
_ALL = (50, 200, 1000)
_LIMITS: tuple[tuple[str, str, tuple[str, ...], tuple[int, ...], tuple[float, ...]], ...] = (
    (_SINGLE, _SCIPY, ("pow3", "exp3"), _ALL, (300, 120, 50)),
    (_SINGLE, _TINY, ("pow3", "exp3"), _ALL, (8, 10, 10)),
    (_SINGLE, _SCIPY, ("pow4",), _ALL, (140, 60, 26)),
    (_SHARED, _SCIPY, ("pow3", "exp3"), _ALL, (900, 500, 280)),
    (_SHARED, _CERES, ("pow3", "exp3"), _ALL, (200, 350, 550)),
    (_SHARED, _TINY, ("pow3", "exp3"), _ALL, (26, 43, 65)),
    (_OWN_STEPS, _CERES, ("pow3", "exp3"), _ALL, (60, 60, 60)),
    (_PYTHON, _SCIPY, ("pow3", "exp3"), (200,), (60,)),
    ("shared steps, 2 threads", "shared steps, 1 of 2 threads", ("pow3",), (200,), (1.8,)),
    ("arithmetic alone, 2 threads", "arithmetic alone, 1 of 2 threads", ("pow3",), (200,), (1.8,)),
    ("evaluate, arbitrary", "libmvec AVX2 exp loop", ("pow3",), (1024,), (1,)),
    ("evaluate, arbitrary", "std::pow loop", ("pow3",), (1024,), (10,)),
    ("evaluate, log-spaced", "limit: fill the memory", ("pow3",), (1024,), (0.75,)),
)


def limits(rows: Sequence[Row]) -> list[Row]:
    """Put the limits that ratios should keep beside the ratios that `run` measured.

    ``measured`` is the worst of the families; the last row is what a call from Python costs beyond
    the fit, in microseconds, where less is better.
    """
    speed = {(row["what"], row["family"], row["n"]): row["per_second"] for row in rows}
    keys = ("what", "against", "family", "n", "measured", "limit", "holds")
    found: list[tuple[Any, ...]] = []
    for what, against, families, points, least in _LIMITS:
        for n, limit in zip(points, least, strict=True):
            ratios = [
                speed[what, family, n] / speed[against, family, n]
                for family in families
                if (what, family, n) in speed and (against, family, n) in speed
            ]
            if ratios:
                worst = min(ratios)
                found.append((what, against, ", ".join(families), n, worst, limit, worst >= limit))
    calls = [row["per_second"] for row in rows if row["what"] == _CALL]
    if calls:
        most = max(calls)
        found.append((_CALL, "a list of fits in C++", "pow3, exp3", 200, most, 1.5, most <= 1.5))
    return [dict(zip(keys, values, strict=True)) for values in found]


def run(*, quick: bool = False, progress: Callable[[int, int], object] | None = None) -> list[Row]:
    """Measure every solver on the same curves, in rounds in which they take turns.

    With `quick` one family and one round.

    A row has ``what``, ``family``, ``n``, ``per_second`` (fits, or values of a batch evaluation),
    ``error`` (largest relative error of a parameter or value) and ``ratio`` (fits per second over
    those of ``scipy curve_fit lm``, values over those of filling the memory). The last rows are
    microseconds that a call costs and a peak of memory in MiB, their ratios those to the limits of
    1.5 us and 64 MiB.
    """
    families, rounds = (("pow3",), 1) if quick else (("pow3", "exp3", "pow4"), 5)
    program, evaluate = _program("fit_rivals"), _program("evaluate_rivals")
    rows: list[Row] = []
    sets = [(family, n) for family in families for n in _ALL]
    for done, (family, n) in enumerate(sets):
        if progress is not None:
            progress(done, len(sets))
        step, losses = curves(family, n, 512 if n < 500 else 128)
        turns = []
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            head = np.array([_CODE[family], n, len(losses)], dtype=np.float64)
            file.write(head.tobytes() + step.tobytes() + losses.tobytes())
            file.flush()
            for _ in range(rounds):
                turn = _python_rows(family, step, losses)
                if program is not None:
                    turn += _lines(program, file.name, "1")
                turns.append(turn)
        part = _medians(turns)
        base = next(r["per_second"] for r in part if r["what"] == _SCIPY)
        for row in part:
            row["ratio"] = row["per_second"] / base
        rows += part
    if evaluate is not None:
        values = _lines(evaluate)
        for row in values:
            row["ratio"] = row["per_second"] / values[0]["per_second"]
        rows += values
    for family in families[:2]:
        row = _call_row(family, *curves(family, 200, 512))
        rows.append({**row, "ratio": row["per_second"] / 1.5})
    row = _peak_row()
    return [*rows, {**row, "ratio": row["per_second"] / 64.0}]
