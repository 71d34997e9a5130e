# SPDX-License-Identifier: Apache-2.0
"""Wrong stops against steps saved, by how much a run that is given up may still gain.

    PYTHONPATH=python python bench/stop_rules.py data/curves ../shared/data/wild --group 8

The runs and targets of bench/decisions.py, by one watch each with the logged schedule. What makes
`never` (docs/live.md) is computed here from the forecast's probability and the losses, so that one
play of the runs scores the whole family of rules: the first two rows are rules without the gain.

The second table chooses the rule on some groups and judges it on others: of all `CHOICES`, the one
that saves the most with at most a given share of wrong stops on nine tenths of the groups plays the
runs of the last tenth; so each run is judged by a rule that its group had no part in. Means over
many ways to divide the groups.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import decisions
import numpy as np

import glidepath as gp

ALPHA, PATIENCE, SETTLED, PLATEAU = 0.02, 5, 0.1 - 1e-9, 0.5
FOLDS, DIVISIONS, SEED = 10, 20, 0
ALLOWED = 0.01, 0.0125, 0.015, 0.0175, 0.02  # wrong stops of those that choose


class Rule(NamedTuple):
    """Power of the share by which alpha is spent, way made, and gain at most, until `never`."""

    power: float
    way: float
    gain: float


GAINS = 1, 0.5, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05
FAMILY = {
    "earlier": Rule(3.0, -np.inf, np.inf),
    "before": Rule(2.5, 0.2, np.inf),
    **{f"gain {gain:g}": Rule(3.0, 0.3, gain) for gain in GAINS},
}
CHOICES = [
    Rule(*each)
    for each in itertools.product(
        (2.5, 3, 3.5, 4), (0.2, 0.3, 0.4), (2, 1, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)
    )
]


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


def stopped(looks: np.ndarray, rule: Rule) -> float:
    """Share of the budget at which a rule stops the run; NaN where it does not."""
    share, probability, climbed, way_made, gained = looks.T
    settled = (share >= SETTLED) & ((way_made >= rule.way) | (share >= PLATEAU))
    never = settled & (probability <= ALPHA * share**rule.power) & (gained < rule.gain)
    lost = never | ((climbed > 0) & (share >= (0 if np.isinf(rule.gain) else PLATEAU)))
    if len(lost) < PATIENCE:
        return np.nan
    in_row = np.convolve(lost, np.ones(PATIENCE), "valid") == PATIENCE
    return float(share[in_row.argmax() + PATIENCE - 1]) if in_row.any() else np.nan


def played(run: gp.Trace) -> list[tuple[bool, list[float]]]:
    """For each target, whether it is reached, and where each rule stops the run."""
    return [
        (reached, [stopped(looks, rule) for rule in [*FAMILY.values(), *CHOICES]])
        for target, reached in decisions.targets(run)
        for looks in [seen(run, target)]
    ]


def score(at: np.ndarray, reached: np.ndarray) -> tuple[float, float]:
    """Give the share of wrong stops and of steps saved."""
    wrong, saved = np.isfinite(at[reached]), np.nan_to_num(1 - at[~reached])
    return float(wrong.mean()), float(saved.mean())


def chosen(at: np.ndarray, reached: np.ndarray, allowed: float) -> int:
    """Give the rule that saves the most of those with few enough wrong stops."""
    scores = [score(column, reached) for column in at.T]
    able = [k for k, (wrong, _) in enumerate(scores) if wrong <= allowed]
    return max(able, key=lambda k: scores[k][1])


def print_family(at: np.ndarray, reached: np.ndarray, runs: list[decisions.Finished]) -> None:
    """Print a row for each rule of the family, and its wrong stops by source."""
    parts = {source: [run.source == source for run in runs] for source in (r.source for r in runs)}
    parts = {half: [run.half == half for run in runs] for half in ("even", "odd")} | parts
    print(
        "| rule | wrong | saved | " + " | ".join(parts) + " |\n" + "|---" * (len(parts) + 3) + "|"
    )
    for name, column in zip(FAMILY, at.T, strict=True):
        wrong, saved = score(column, reached)
        cells = [name, f"{wrong:.1%}", f"{saved:.0%}"]
        for mine in parts.values():
            late = reached & np.repeat(mine, 3)
            cells.append(f"{np.isfinite(column[late]).mean():.1%}")
        print("| " + " | ".join(cells) + " |", flush=True)


def print_left_out(at: np.ndarray, reached: np.ndarray, groups: np.ndarray) -> None:
    """Print what rules do on groups that had no part in choosing them."""
    names = np.unique(groups)
    print("\n| allowed where it is chosen | wrong, left out | saved, left out | chosen most |")
    print("|---|---|---|---|")
    for allowed in ALLOWED:
        rng, found, choices = np.random.default_rng(SEED), [], Counter[Rule]()
        for _ in range(DIVISIONS):
            fold = dict(zip(names, rng.permutation(len(names)) % FOLDS, strict=True))
            folds = np.array([fold[group] for group in groups])
            stops = np.empty(len(at))
            for k in range(FOLDS):
                best = chosen(at[folds != k], reached[folds != k], allowed)
                stops[folds == k] = at[folds == k, best]
                choices[CHOICES[best]] += 1
            found.append(score(stops, reached))
        wrong, saved = np.array(found).T
        print(
            f"| {allowed:.2%} | {wrong.mean():.1%} ({wrong.min():.1%} to {wrong.max():.1%}) | "
            f"{saved.mean():.0%} | {', '.join(f'{x:g}' for x in choices.most_common(1)[0][0])} |",
            flush=True,
        )


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
    print(f"{reached.sum()} reach their target, {(~reached).sum()} do not\n")
    print_family(at[:, : len(FAMILY)], reached, runs)
    print_left_out(at[:, len(FAMILY) :], reached, np.repeat([run.group for run in runs], 3))


if __name__ == "__main__":
    main()
