# SPDX-License-Identifier: Apache-2.0
"""How often a watch that may act stops a run that would have reached its target.

    PYTHONPATH=python python bench/stops.py data/curves

Each finished curve is watched at 100 points. Its target is the best loss at 85 % of the run, which
it reaches, or one tenth of its whole descent below its best, which it does not. The rate of
learning is not told to the watch.
"""

import sys
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath.adapters._adviser import Adviser

LOOKS, CURVES, PATIENCE = 100, 20, (1, 3, 5, 10)


def stopped(run: gp.Trace, target: float, patience: int) -> bool:
    """Whether the run was given up before it came to its target."""
    adviser = Adviser(
        "act", target=target, budget=run.step[-1], direction=run.direction, patience=patience
    )
    adviser.begin()
    looks = {*np.linspace(0, len(run) - 2, LOOKS).astype(int).tolist()}
    for i, (step, loss) in enumerate(zip(run.step.tolist(), run.loss.tolist(), strict=True)):
        if i in looks:
            adviser.add(step, loss)
            if adviser.stop:
                return adviser.decision is not None and adviser.decision.verdict != "REACHED"
        else:
            adviser.watch.add(step, loss)
    return False


def main(folder: Path) -> None:
    print("| collection | runs | " + " | ".join(f"wrong, right at {p}" for p in PATIENCE) + " |")
    print("|---|---|" + "---|" * len(PATIENCE))
    for file in sorted(folder.glob("*.csv.gz")):
        runs = [run for run in gp.read_traces(file) if len(run) >= 30][:CURVES]
        runs = [run for run in runs if np.isfinite(run.loss).all()]
        cells = []
        for patience in PATIENCE:
            wrong = right = 0
            for run in runs:
                sign = -1.0 if run.direction == "max" else 1.0
                best = np.minimum.accumulate(sign * run.loss)
                wrong += stopped(run, sign * best[int(0.85 * len(run))], patience)
                beyond = best[-1] - 0.1 * (best[0] - best[-1])
                right += stopped(run, sign * beyond, patience)
            cells.append(f"{wrong}, {right}")
        if runs:
            print(f"| {file.name.split('.')[0]} | {len(runs)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    import logging

    logging.disable()
    main(Path(sys.argv[1]))
