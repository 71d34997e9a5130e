# SPDX-License-Identifier: Apache-2.0
"""How early a target is taken for reached: by a point, by the median of five, by the curve.

    PYTHONPATH=python python bench/reached.py data/curves [FOLDER or FILE ...]

Up to twenty runs of each collection are scored. The curve of a finished run is its centred running
median over a tenth of its points (fewer near its ends), and the best of it so far; targets are
where it is after 30, 50, 70 and 85 % of the points, which are the true steps. `early` is the share
of targets that are taken for reached more than a tenth before, `late` of those more than a quarter
after or not at all; `median` is the middle deviation of the step. `curve` is `gp.reach`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import glidepath as gp

SHARES, RUNS, MIN_POINTS, MAX_POINTS, SEED = (0.3, 0.5, 0.7, 0.85), 20, 10, 10_000, 0


def curve_of(loss: np.ndarray) -> np.ndarray:
    """Centred running median of values of which less is better, and the best of it so far."""
    half, last = max(2, len(loss) // 20), len(loss) - 1
    width = [min(half, i, last - i) for i in range(len(loss))]
    middle = [np.median(loss[i - w : i + w + 1]) for i, w in enumerate(width)]
    return np.minimum.accumulate(middle)


def median_of_five(run: gp.Trace, target: float) -> float:
    """Step at which the median of the newest five values is at the target."""
    rising = run.direction == "max"
    middle = np.median(sliding_window_view(run.loss, 5), axis=1)
    there = np.flatnonzero(middle >= target if rising else middle <= target)
    return float(run.step[there[0] + 4]) if there.size else np.inf


def by(reached_by: str) -> Callable[[gp.Trace, float], float]:
    """Step at which `reach` says that the target is reached."""

    def reached(run: gp.Trace, target: float) -> float:
        law = gp.reach(run, target, budget=float(run.step[-1]), reached_by=reached_by)
        return float(law.step[0]) if law.prob_never == 0 else np.inf

    return reached


RULES = {"point": by("point"), "median of 5": median_of_five, "curve": by("curve")}


def deviations(run: gp.Trace) -> list[list[float]]:
    """Relative deviation of the step, by each rule, for each target."""
    sign = -1.0 if run.direction == "max" else 1.0
    curve, found = curve_of(sign * run.loss), []
    steps = run.step - min(0.0, run.step[0])
    for share in SHARES:
        goal = curve[int(share * len(run))]
        true = steps[np.argmax(curve <= goal)]
        if goal < curve[0] and true > steps[3]:
            at = [rule(run, sign * goal) - run.step[0] + steps[0] for rule in RULES.values()]
            found.append([step / true - 1 for step in at])
    return found


def row(name: str, points: str, found: np.ndarray) -> None:
    cells = [
        f"{100 * (each < -0.1).mean():.0f} %, {100 * (each > 0.25).mean():.0f} %, "
        f"{100 * np.median(each):+.0f} %"
        for each in found.T
    ]
    print(f"| {name} | {points} | " + " | ".join(cells) + " |", flush=True)


def main(paths: list[Path]) -> None:
    files = [f for p in paths for f in (sorted(p.glob("*.csv.gz")) if p.is_dir() else [p])]
    print(
        "| collection | points | " + " | ".join(f"{r}: early, late, median" for r in RULES) + " |"
    )
    print("|---|---|" + "---|" * len(RULES))
    whole: list[np.ndarray] = []
    for file in sorted(files):
        runs = [run for run in gp.read_traces(file) if np.isfinite(run.loss).all()]
        runs = [run.until(float(run.step[min(len(run), MAX_POINTS) - 1])) for run in runs]
        runs = [run for run in runs if len(run) >= MIN_POINTS]
        chosen = [runs[i] for i in np.random.RandomState(SEED).permutation(len(runs))[:RUNS]]
        found = [each for run in chosen for each in deviations(run)]
        if found:
            whole.append(np.array(found))
            row(
                file.name.split(".")[0], f"{np.median([len(run) for run in chosen]):.0f}", whole[-1]
            )
    row("all", "", np.concatenate(whole))


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
