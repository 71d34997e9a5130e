# SPDX-License-Identifier: Apache-2.0
"""How often a watch that may act stops a run that would have reached its target.

    PYTHONPATH=python python bench/stops.py data/curves

Each finished curve is watched at 100 points. Its target is the best loss at 85 % of the run, which
it reaches, or one tenth of its whole descent below its best, which it does not. Where the learning
rate was logged, the watch has it as the schedule. `stopped at` is the share of the run that had
passed where it was rightly given up.
"""

import sys
from pathlib import Path

import numpy as np

import glidepath as gp

# What an adapter waits for before it acts is `patience`: so many looks in a row.
LOOKS, CURVES, SEED, PATIENCE = 100, 20, 0, (1, 5)


def lost(run: gp.Trace, target: float) -> list[tuple[float, bool]]:
    """(share of the run that has passed, given up by a single look) until the target is met."""
    watch = gp.Watch(
        target=target,
        budget=run.step[-1],
        direction=run.direction,
        schedule=gp.Schedule.logged(run),
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


def main(folder: Path) -> None:
    print("| collection | runs | " + " | ".join(f"wrong, right at {p}" for p in PATIENCE), end="")
    print(" | stopped at |\n|---|---|" + "---|" * (len(PATIENCE) + 1))
    whole: list[np.ndarray] = []
    for file in sorted(folder.glob("*.csv.gz")):
        runs = [run for run in gp.read_traces(file) if len(run) >= 30]
        runs = [run for run in runs if np.isfinite(run.loss).all() and np.ptp(run.loss) > 0]
        found = []
        for i in np.random.RandomState(SEED).permutation(len(runs))[:CURVES]:
            sign = -1.0 if runs[i].direction == "max" else 1.0
            best = np.minimum.accumulate(sign * runs[i].loss)
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
    share = f"{100 * np.nanmedian(found[:, 0, 1]):.0f} %" if right[0] else ""
    print(f"| {name} | {len(found)} | " + " | ".join([*cells, share]) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
