# SPDX-License-Identifier: Apache-2.0
"""Wrong stops against steps saved, by how much a run that is given up may still gain.

    PYTHONPATH=python python bench/stop_rules.py data/curves ../shared/data/wild --group 8

The runs and targets of bench/decisions.py, by one watch each with the logged schedule. What makes
`never` (docs/live.md) is computed here from the forecast's probability and the losses, so that one
play of the runs scores the whole family of rules: the first row is the rule without the gain.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import decisions
import numpy as np

import glidepath as gp

ALPHA, PATIENCE, SETTLED, PLATEAU = 0.02, 5, 0.1 - 1e-9, 0.5
BEFORE = "before", 2.5, 0.2, np.inf  # name, power of the share, way, gain
FAMILY = [BEFORE, *((f"gain {c:g}", 3.0, 0.3, c) for c in (1, 0.5, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05))]


def seen(run: gp.Trace, target: float) -> np.ndarray:
    """(share, probability, climbed above its start, way, gain) at each look until the target."""
    budget, sign = float(run.step[-1]), -1.0 if run.direction == "max" else 1.0
    watch = gp.Watch(
        target=target,
        budget=budget,
        direction=run.direction,
        schedule=gp.Schedule.logged(run),
    )
    loss, goal, start = sign * run.loss, sign * target, min(float(run.step[0]), 0.0)
    at, rows = set(decisions.looks(run)), []
    for i, (step, value) in enumerate(zip(run.step.tolist(), run.loss.tolist(), strict=True)):
        watch.add(step, value)
        if i not in at:
            continue
        decision = watch.decision()
        if decision.verdict == "reached":
            break
        first, tail = np.median(loss[:3]), np.median(loss[max(i - 4, 0) : i + 1])
        half = max(int(np.searchsorted(run.step, start + 0.5 * (step - start))), 3)
        level, before = decisions.level(loss[: i + 1]), decisions.level(loss[:half])
        left = (budget - step) / (step - start)
        gain = (before - level) * max(left, left**2) / max(level - goal, 1e-300)
        climbed = tail > first + max(first - loss[: i + 1].min(), 0.5 * abs(first))
        share, way = (step - start) / (budget - start), (first - tail) / (first - goal)
        rows.append((share, decision.probability, climbed and i >= 9, way, gain))
    return np.array(rows).reshape(-1, 5)


def stopped(looks: np.ndarray, power: float, way: float, gain: float) -> float:
    """Share of the budget at which a rule stops the run; NaN where it does not."""
    share, probability, climbed, way_made, gained = looks.T
    settled = (share >= SETTLED) & ((way_made >= way) | (share >= PLATEAU))
    never = settled & (probability <= ALPHA * share**power) & (gained < gain)
    lost = never | ((climbed > 0) & (share >= (0 if np.isinf(gain) else PLATEAU)))
    in_row = 0
    for at, gone in zip(share, lost, strict=True):
        in_row = in_row + 1 if gone else 0
        if in_row == PATIENCE:
            return float(at)
    return np.nan


def played(run: gp.Trace) -> list[tuple[bool, list[float]]]:
    """For each target, whether it is reached, and where each rule stops the run."""
    return [
        (reached, [stopped(looks, *rule) for _, *rule in FAMILY])
        for target, reached in decisions.targets(run)
        for looks in [seen(run, target)]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="folders, or files of curves")
    parser.add_argument("--curves", type=int, default=10**6, help="runs of a collection")
    parser.add_argument("--group", type=int, default=8, help="runs of a group in a collection")
    options = parser.parse_args()
    runs = list(decisions.finished(options.paths, options.curves, options.group))
    with ProcessPoolExecutor() as pool:
        found = [each for mine in pool.map(played, [run.run for run in runs]) for each in mine]
    reached, at = np.array([r for r, _ in found]), np.array([stops for _, stops in found])
    groups = {source: [run.source == source for run in runs] for source in (r.source for r in runs)}
    groups = {half: [run.half == half for run in runs] for half in ("even", "odd")} | groups
    print(f"{reached.sum()} reach their target, {(~reached).sum()} do not\n")
    print(
        "| rule | wrong | saved | " + " | ".join(groups) + " |\n" + "|---" * (len(groups) + 3) + "|"
    )
    for k, (name, *_) in enumerate(FAMILY):
        wrong, saved = np.isfinite(at[:, k]), np.nan_to_num(1 - at[~reached, k]).mean()
        cells = [name, f"{wrong[reached].mean():.1%}", f"{saved:.0%}"]
        for mine in groups.values():
            cells.append(f"{wrong[reached & np.repeat(mine, 3)].mean():.1%}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
