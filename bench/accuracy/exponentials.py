# SPDX-License-Identifier: Apache-2.0
"""Score forecasts of runs that fall exponentially to a level and stay there.

    python bench/accuracy/exponentials.py [--runs 60] [--seed 5] [--constants FILE]

A run is `c + A exp(-t / tau)` at 200 steps, `c` within .1 to 1, `A` within 1 to 3, `tau` within 3
to 10 % of the run, with white noise. It is seen to 20, 40 and 60 %. Printed, in units of `A`: the
share of last values inside the 80 % interval, the mean of median less true level, the mean width.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

STEPS = 200
NOISE = (0.0, 0.001, 0.01, 0.05)
SEEN = (0.2, 0.4, 0.6)


def scores(
    rng: np.random.Generator, runs: int, noise: float, seen: float, constants: str | None
) -> NDArray[np.float64]:
    """Coverage, bias and width, the latter two in units of the fall."""
    step = np.arange(1.0, STEPS + 1)
    rows = []
    for _ in range(runs):
        fall, level = rng.uniform(1, 3), rng.uniform(0.1, 1)
        curve = level + fall * np.exp(-step / (STEPS * rng.uniform(0.03, 0.1)))
        loss = curve + noise * fall * rng.standard_normal(STEPS)
        known = round(seen * STEPS)
        trace = gp.Trace(step[:known], loss[:known])
        forecast = gp.forecast(trace, at=[STEPS], levels=[0.1, 0.5, 0.9], constants=constants)
        low, middle, high = forecast.quantiles[:, 0]
        rows.append((low <= loss[-1] <= high, (middle - curve[-1]) / fall, (high - low) / fall))
    return np.asarray(rows, dtype=np.float64).mean(axis=0)


def main() -> None:
    """Print a line for each noise and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--constants", type=Path)
    given = parser.parse_args()
    constants = given.constants.read_text() if given.constants else None
    print("noise   seen   inside   bias    width")
    for noise in NOISE:
        for seen in SEEN:
            rng = np.random.default_rng(given.seed)
            inside, bias, width = scores(rng, given.runs, noise, seen, constants)
            print(f"{noise:<7} {seen:.1f}    {inside:.2f}    {bias:+.3f}   {width:.3f}")


if __name__ == "__main__":
    main()
