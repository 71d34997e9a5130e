# SPDX-License-Identifier: Apache-2.0
"""Fit real curves with SciPy and store what it found: figures, not curves.

    PYTHONPATH=python python bench/scipy_answers.py tests/golden/scipy_answers.json

The formulas, the search and its four starts are this file's own; `tests/python/test_fit_answers.py`
fits the same points with glidepath and compares. Families take turns over the curves. Bounds are
those that glidepath states: a decay of at least 1e-7 over the trace, 0 <= shift <= 10 last step,
0.1 <= shape <= 10.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

import glidepath as gp

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
FEWEST, MOST = 12, 200
OWN, OTHERS = 24, 10  # curves of ours, and of each collection in ../shared

# of log t, t and the shapes: log φ
EXPONENT: dict[str, Callable[..., Floats]] = {
    "pow2": lambda lt, t, rate: -rate * lt,
    "pow3": lambda lt, t, rate: -rate * lt,
    "pow4": lambda lt, t, rate, shift: -rate * np.log(t + shift),
    "exp3": lambda lt, t, rate: -rate * t,
    "weibull4": lambda lt, t, rate, shape: -np.exp(shape * (np.log(rate) + lt)),
    "mmf4": lambda lt, t, half, shape: -np.logaddexp(0.0, shape * (lt - np.log(half))),
    "powexp": lambda lt, t, rate, decay: -rate * lt - decay * t,
}
FAMILIES = [*EXPONENT, "log2"]


def thinned(trace: gp.Trace, family: str) -> tuple[Floats, Floats]:
    """At most 200 points, evenly among those that the family sees."""
    from_zero = family in ("exp3", "weibull4", "mmf4")
    seen = np.flatnonzero(trace.step >= 0 if from_zero else trace.step > 0)
    if family in ("weibull4", "mmf4"):
        seen = seen[trace.step[seen] > 0]
    kept = seen[np.unique(np.linspace(0, len(seen) - 1, MOST).round().astype(int))]
    return trace.step[kept], trace.loss[kept]


def starts(family: str, t: Floats) -> tuple[list[list[float]], list[float], list[float]]:
    """Four starts of the shapes, and their bounds."""
    last, span = t[-1], np.log(t[-1] / max(t[0], 1e-9 * t[-1]))
    rates = [0.3 / span, 1.0 / span, 3.0 / span, 10.0 / span]
    decays = [0.3 / last, 1.0 / last, 4.0 / last, 20.0 / last]
    slow, slowest, fast = 1e-7 / span, 1e-7 / (last - t[0]), np.inf
    match family:
        case "exp3":
            return [[d] for d in decays], [slowest], [fast]
        case "pow4":
            shifts = [0.1 * t[0], t[0], 0.03 * last, 0.3 * last]
            pairs = [[4 * r, s] for r, s in zip(rates, shifts, strict=True)]
            return pairs, [slow, 0], [fast, 10 * last]
        case "weibull4":
            return (
                [[d, s] for d, s in zip(decays, (0.3, 0.5, 1.0, 2.0), strict=True)],
                [1e-12 / last, 0.1],
                [fast, 10],
            )
        case "mmf4":
            return (
                [[1 / d, s] for d, s in zip(decays, (0.3, 0.5, 1.0, 2.0), strict=True)],
                [1e-12 * last, 0.1],
                [fast, 10],
            )
        case "powexp":
            pairs = [[0.3 * r, 0.3 * d] for r, d in zip(rates, decays, strict=True)]
            return pairs, [slow, slowest], [fast, fast]
    return [[r] for r in rates], [slow], [fast]


def answer(family: str, t: Floats, y: Floats) -> tuple[list[float], float] | None:
    """Parameters in the family's order and the residual sum, from the best of four starts."""
    centre, spread = (0.0, np.abs(y).max()) if family == "pow2" else (y[-1], np.ptp(y))
    v = (y - centre) / spread
    lt = np.log(np.where(t > 0, t, np.nan)) if family == "exp3" else np.log(t)
    floors = [] if family == "pow2" else [0.0]
    if family == "log2":
        design = np.stack([np.ones_like(t), -lt], axis=1)
        (floor, scale), *_ = np.linalg.lstsq(design, y, rcond=None)
        return [float(floor), float(scale)], float(np.sum((y - design @ [floor, scale]) ** 2))

    def shape(q: Floats) -> Floats:  # 1 at the first point
        e = EXPONENT[family](lt, t, *q)
        return np.exp(np.clip(e - e[0], -700, 700))

    best = None
    first_shapes, lower, upper = starts(family, t)
    for q in first_shapes:
        f = shape(np.array(q))
        design = np.stack([np.ones_like(t), f], axis=1) if floors else f[:, None]
        linear, *_ = np.linalg.lstsq(design, v, rcond=None)
        free = [-np.inf] * len(linear), [np.inf] * len(linear)
        found = least_squares(
            lambda p: (p[0] if floors else 0.0) + p[len(floors)] * shape(p[len(floors) + 1 :]) - v,
            [*linear, *q],
            bounds=([*free[0], *lower], [*free[1], *upper]),
            x_scale="jac",
            xtol=1e-13,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=400,
        )
        if best is None or found.cost < best.cost:
            best = found
    q = best.x[len(floors) + 1 :]
    lift = float(EXPONENT[family](lt, t, *q)[0])
    if abs(lift) > 600:
        return None
    scale = spread * best.x[len(floors)] * np.exp(-lift)
    params = [*(centre + spread * best.x[: len(floors)]), scale, *q]
    return [float(p) for p in params], float(2 * best.cost * spread**2)


def main() -> None:
    """Fit and store."""
    rows: list[dict[str, Any]] = []
    for folder, most in ((ROOT / "data/curves", OWN), (ROOT.parent / "shared/data/curves", OTHERS)):
        for path in sorted(folder.glob("*.csv.gz")):
            traces = [
                trace
                for trace in gp.read_traces(path)
                if np.isfinite(trace.loss).all() and np.sum(trace.step > 0) >= FEWEST
            ]
            if folder.parent.parent == ROOT:
                most = OWN // 4
            for trace in traces[:: max(1, len(traces) // most)][:most]:
                # the same family whichever curves there are
                family = FAMILIES[zlib.crc32(f"{path.name}/{trace.name}".encode()) % len(FAMILIES)]
                t, y = thinned(trace, family)
                found = answer(family, t, y) if np.ptp(y) > 0 else None
                if found is None:
                    continue
                rows.append(
                    {
                        "collection": path.name.removesuffix(".csv.gz"),
                        "curve": trace.name,
                        "family": family,
                        "points": len(t),
                        "params": found[0],
                        "rss": found[1],
                    }
                )
    lines = ",\n".join(json.dumps(row) for row in rows)
    Path(sys.argv[1]).write_text(f"[\n{lines}\n]\n")
    print(f"{len(rows)} answers")


if __name__ == "__main__":
    main()
