#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask `reach`, with past runs, for ever harder targets: is a harder one ever the likelier?

    python bench/accuracy/harder_targets.py FOLDER ... [--past 6] [--runs 12] [--verbose]

Each FOLDER holds collections `NAME.csv.gz` (`curve,step,value`). A run is seen to 15, 30 or 50 %;
14 targets lie evenly from the best it has logged to the best that it or a past run ever logs.
Printed: the Brier score of the probabilities to be there by a tenth, a quarter, half and the end of
what is left, mean over collections; how many neighbouring targets are out of order by more than
.02, and the worst.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._bench.accuracy.curves import Collection, collections

SEEN = (0.15, 0.3, 0.5)
LEFT = (0.1, 0.25, 0.5, 1.0)
TARGETS = 14
MIN_POINTS = 6
MAX_POINTS = 3000
MAX_CURVES = 40
OUT_OF_ORDER = 0.02


@dataclass
class Score:
    """What was found in one collection."""

    brier: list[float] = field(default_factory=list)
    steps_up: list[float] = field(default_factory=list)  # from a target to the next harder one

    @property
    def out_of_order(self) -> int:
        return sum(up > OUT_OF_ORDER for up in self.steps_up)


def curves(collection: Collection) -> list[gp.Trace]:
    """Finite runs that are short enough to be asked often."""
    return [
        run
        for run in collection.usable
        if MIN_POINTS < len(run.step) <= MAX_POINTS and np.isfinite(run.loss).all()
    ]


def is_there(live: gp.Trace, target: float, step: float) -> bool:
    """Whether the curve of a run has come to a target by a step."""
    seen = live.until(step)
    return gp.reach(seen, target, budget=float(live.step[-1])).prob_by(step) == 1


def ask(live: gp.Trace, past: list[gp.Trace], points: int, score: Score) -> None:
    """Ask for all targets of one run as far as it is seen."""
    sign = -1.0 if live.direction == "max" else 1.0
    seen, budget = live.until(float(live.step[points - 1])), float(live.step[-1])
    best = float(np.min(sign * seen.loss))
    last = min(float(np.min(sign * run.loss)) for run in [live, *past])
    if not last < best:
        return
    now = float(seen.step[-1])
    steps = [now + part * (budget - now) for part in LEFT]
    said, true = np.empty((TARGETS, len(LEFT))), np.empty((TARGETS, len(LEFT)))
    for i, share in enumerate(np.linspace(0.05, 1.0, TARGETS)):
        target = sign * (best - float(share) * (best - last))
        answer = gp.reach(seen, target, budget=budget, past=past)
        said[i] = [answer.prob_by(step) for step in steps]
        true[i] = [is_there(live, target, step) for step in steps]
    score.brier.append(float(np.mean((said - true) ** 2)))
    score.steps_up.extend(np.diff(said, axis=0).ravel().tolist())


def score_of(runs: list[gp.Trace], past_runs: int, count: int, rng: np.random.Generator) -> Score:
    """Ask about `count` runs of a collection, each with others of it as past runs."""
    score = Score()
    for _ in range(count):
        drawn = rng.permutation(len(runs))[: past_runs + 1]
        live, *past = (runs[i] for i in drawn)
        points = max(MIN_POINTS, int(float(rng.choice(SEEN)) * len(live.step)))
        if points < len(live.step) - 3:
            ask(live, past, points, score)
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--past", type=int, default=6, help="past runs")
    parser.add_argument("--runs", type=int, default=12, help="of each collection")
    parser.add_argument("--verbose", action="store_true", help="a line for each collection")
    arguments = parser.parse_args()
    rng = np.random.default_rng(5)
    scores = []
    for folder in arguments.folder:
        for collection in collections(folder, max_curves=MAX_CURVES):
            runs = curves(collection)
            if len(runs) <= arguments.past:
                continue
            score = score_of(runs, arguments.past, arguments.runs, rng)
            if not score.brier:
                continue
            scores.append(score)
            if arguments.verbose:
                brier = np.mean(score.brier)
                print(f"{collection.name:40} Brier {brier:.4f}, out of order {score.out_of_order}")
    steps_up = [up for score in scores for up in score.steps_up]
    print(
        f"{len(scores)} collections: Brier {np.mean([np.mean(s.brier) for s in scores]):.4f};"
        f" of {len(steps_up)} neighbours {sum(s.out_of_order for s in scores)} out of order,"
        f" the worst by {max(steps_up):.2f}"
    )


if __name__ == "__main__":
    main()
