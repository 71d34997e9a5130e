# SPDX-License-Identifier: Apache-2.0
"""How often a watch that may act stops a run that would have reached its target.

    PYTHONPATH=python python bench/stops.py data/curves      (or files of curves)

Each finished curve is watched at 100 points, and read as the name of its metric says: `level` is
what is compared with a target. Its target is the best level at 85 % of the run, which it reaches,
or one tenth of its whole descent below its best, which it does not. Where the learning rate was
logged, the watch has it as the schedule. `stopped at` is the share of the run that had passed where
it was rightly given up at five looks, `saved` the mean share of hopeless runs that was not spent.
"""

import sys
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._core import reached_by_name

# What an adapter waits for before it acts is `patience`: so many looks in a row.
LOOKS, CURVES, SEED, PATIENCE = 100, 20, 0, (1, 5)


def level(run: gp.Trace) -> np.ndarray:
    """What is compared with a target, with signs by which less is better: docs/live.md."""
    loss = -run.loss if run.direction == "max" else run.loss
    if reached_by_name(run.metric) == "point":
        return loss
    window = [int(min(n / 4, max(5, n / 10), 63)) for n in range(1, len(loss) + 1)]
    odd = [max(k - (k % 2 == 0), 1) for k in window]
    return np.array([np.median(loss[i + 1 - k : i + 1]) for i, k in enumerate(odd)])


def lost(run: gp.Trace, target: float) -> list[tuple[float, bool]]:
    """(share of the run that has passed, given up by a single look) until its target."""
    watch = gp.Watch(
        target=target,
        budget=run.step[-1],
        direction=run.direction,
        schedule=gp.Schedule.logged(run),
        reached_by=reached_by_name(run.metric),
    )
    looks = {*np.linspace(0, len(run) - 2, LOOKS).astype(int).tolist()}
    found = []
    for i, (step, loss) in enumerate(zip(run.step.tolist(), run.loss.tolist(), strict=True)):
        watch.add(step, loss)
        if i in looks:
            verdict = watch.decision().verdict
            if verdict == "reached":
                break
            found.append(((i + 1) / len(run), verdict in ("never", "diverged")))
    return found


def stopped(looks: list[tuple[float, bool]], patience: int) -> float:
    """Share of the run that had passed when it was given up; NaN where it was not."""
    for i in range(patience - 1, len(looks)):
        if all(gone for _, gone in looks[i - patience + 1 : i + 1]):
            return looks[i][0]
    return np.nan


def main(paths: list[Path]) -> None:
    files = [f for p in paths for f in (sorted(p.glob("*.csv.gz")) if p.is_dir() else [p])]
    print("| collection | runs | " + " | ".join(f"wrong, right at {p}" for p in PATIENCE), end="")
    print(" | stopped at | saved |\n|---|---|" + "---|" * (len(PATIENCE) + 2))
    whole: list[np.ndarray] = []
    for file in files:
        runs = [run for run in gp.read_traces(file) if len(run) >= 30]
        runs = [run for run in runs if np.isfinite(run.loss).all() and np.ptp(run.loss) > 0]
        found = []
        for i in np.random.RandomState(SEED).permutation(len(runs))[:CURVES]:
            sign = -1.0 if runs[i].direction == "max" else 1.0
            best = np.minimum.accumulate(level(runs[i]))
            beyond = best[-1] - 0.1 * (best[0] - best[-1])
            sights = [lost(runs[i], sign * goal) for goal in (best[int(0.85 * len(best))], beyond)]
            found.append([[stopped(looks, p) for looks in sights] for p in PATIENCE])
        if found:
            whole.append(np.array(found))
            row(file.name.split(".")[0], whole[-1])
    row("all", np.concatenate(whole))


def row(name: str, found: np.ndarray) -> None:
    """One line; `found` is (runs, patience, reached or not): the share that had passed."""
    wrong, right = np.isfinite(found).sum(0).T
    cells = [f"{a}, {b}" for a, b in zip(wrong, right, strict=True)]
    share = f"{100 * np.nanmedian(found[:, -1, 1]):.0f} %" if right[-1] else ""
    saved = f"{100 * np.nan_to_num(1 - found[:, -1, 1]).mean():.0f} %"
    print(f"| {name} | {len(found)} | " + " | ".join([*cells, share, saved]) + " |", flush=True)


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
