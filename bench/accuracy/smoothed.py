# SPDX-License-Identifier: Apache-2.0
"""Score forecasts of logs that were smoothed before they were written.

    python bench/accuracy/smoothed.py [--runs 60] [--seed 3] [--constants FILE]

A run is `c + A (t + s)^-p`, `c` within .1 to 1, `A` within 1 to 3, `s` within 1 to 10, `p` within
.3 to .9, with white noise of .1 A. What is logged is its exponential mean, each point a share
`alpha` of the value and the rest of the mean before it; with alpha 1 the values themselves. It is
seen to 20, 40 and 60 %. Printed: the share of six later points inside the 80 % interval, and the
mean width in units of `A`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

LENGTHS = (200, 1000, 5000)
ALPHAS = (1.0, 0.3, 0.1, 0.03)
SEEN = (0.2, 0.4, 0.6)
NOISE = 0.1
POINTS = 6


def exponential_mean(values: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Smoothed values, (n,)."""
    smoothed = values.copy()
    for i in range(1, len(values)):
        smoothed[i] = (1 - alpha) * smoothed[i - 1] + alpha * values[i]
    return smoothed


def scores(
    rng: np.random.Generator, runs: int, steps: int, alpha: float, constants: str | None
) -> NDArray[np.float64]:
    """Coverage and width of each share seen, (2, shares)."""
    step = np.arange(1.0, steps + 1)
    rows = []
    for _ in range(runs):
        fall, level = rng.uniform(1, 3), rng.uniform(0.1, 1)
        curve = level + fall * (step + rng.uniform(1, 10)) ** -rng.uniform(0.3, 0.9)
        noise = NOISE * fall * rng.standard_normal(steps)
        loss = np.abs(exponential_mean(curve + noise, alpha))
        for known in (round(seen * steps) for seen in SEEN):
            at = np.linspace(known + 1, steps, POINTS).round()
            trace = gp.Trace(step[:known], loss[:known])
            forecast = gp.forecast(trace, at=at, levels=[0.1, 0.5, 0.9], constants=constants)
            low, _, high = forecast.quantiles
            truth = loss[at.astype(int) - 1]
            rows.append((((low <= truth) & (truth <= high)).mean(), (high - low).mean() / fall))
    return np.asarray(rows, dtype=np.float64).reshape(runs, len(SEEN), 2).mean(axis=0).T


def main() -> None:
    """Print a line for each length and degree of smoothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--constants", type=Path)
    given = parser.parse_args()
    constants = given.constants.read_text() if given.constants else None
    print(f"steps  alpha   inside at {SEEN}    width")
    for steps in LENGTHS:
        for alpha in ALPHAS:
            rng = np.random.default_rng(given.seed)
            inside, width = scores(rng, given.runs, steps, alpha, constants)
            columns = [
                " ".join(f"{value:.{digits}f}" for value in row)
                for row, digits in ((inside, 2), (width, 3))
            ]
            print(f"{steps:<6} {alpha:<7} {columns[0]}          {columns[1]}")


if __name__ == "__main__":
    main()
