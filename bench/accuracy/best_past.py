#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score `best_so_far`: is the best of a run already past when it says so?

    python bench/accuracy/best_past.py FOLDER ... [--runs 20] [--learn]

Each FOLDER holds collections `NAME.csv.gz` (`curve,step,value`). A run is seen to 10, 20, 40, 60
and 80 %, its budget is its end. Scored is the event that no later level is better than the best so
far, read by the point in collections whose name or metric says held out, evaluation or score, else
by the curve. Printed: Brier scores, mean over groups (one repository, task or workload), of the
library, of the law of the curve without a correction, of the share of runs whose best is past, of
the number of levels since the best as a probability (logistic) and of the rule "none better in
3, 5, 10 levels"; then how often the best was past by what was said. Coefficients are learned on one
half of the groups, by a hash of the name, and judged on the other; `--learn` learns them from all
and prints the line `best` of the table of constants.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import glidepath as gp
from glidepath import _core

Floats = NDArray[np.float64]
SEEN = (0.1, 0.2, 0.4, 0.6, 0.8)
SIGNS = 5
PENALTY = 1e-3
UNIT = 0.1  # of a sign that is read as log odds
EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 1.0)
PATIENCE = (3, 5, 10)
SURE = 0.95
BY_POINT = re.compile("eval|val|max|test|map|acc|err|accuracy|held|share of|greedy|^rl-|algoperf$")


@dataclass(frozen=True)
class Case:
    """A run as far as it is seen, and whether its best was past."""

    collection: str
    group: str
    by: str
    seen: gp.Trace
    budget: float
    past: bool


def window(by: str, points: int) -> int:
    """How many values make a level, as `level_window` of the library."""
    size = min(max(points // 10, 5), 63, points // 4) if by == "curve" else 1
    return max(1, size - (size + 1) % 2)


def group_of(name: str, run: str) -> str:
    """One repository, task or workload."""
    if name.startswith("wild"):
        return run.split("/")[0]
    first = re.split(r"[/|:]", run)[0] if re.search(r"[/|:]", run) else ""
    return f"{'-'.join(name.split('-')[:2])}:{first}".removesuffix("-train:").removesuffix(":")


def cases(path: Path, most: int) -> Iterator[Case]:
    """Runs of a collection, cut."""
    name = path.name[:-7]
    beside = json.loads(path.with_name(f"{name}.json").read_text())
    by = "point" if BY_POINT.search(f"{name} {beside.get('metric', '')}") else "curve"
    runs = [
        run
        for run in gp.read_traces(path)
        if len(run) >= 10 and np.isfinite(run.loss).all() and np.ptp(run.loss) > 0
    ]
    for i in sorted(np.random.RandomState(0).permutation(len(runs))[:most]):
        run = runs[i]
        low = run.loss if run.direction == "min" else -run.loss
        group = group_of(name, run.name)
        for share in SEEN:
            points = max(4, int(np.ceil(share * len(run))))
            if points > 0.9 * len(run):
                continue
            size = window(by, points)
            best = min(np.median(low[i - size : i]) for i in range(size, points + 1))
            past = not any(
                np.median(low[i - window(by, i) : i]) < best
                for i in range(points + 1, len(run) + 1)
            )
            seen = run.until(float(run.step[points - 1]))
            yield Case(name, group, by, seen, float(run.step[-1]), past)


def log_odds(case: Case, constants: str) -> float:
    """What the library says with a table of constants."""
    found = gp.best_so_far(case.seen, budget=case.budget, reached_by=case.by, constants=constants)
    p = np.clip(found.prob_past, 1e-12, 1 - 1e-12)
    return float(np.log(p / (1 - p)))


def signs_of(each: list[Case]) -> Floats:
    """Read the signs of each case, by tables of constants that show one sign."""
    lines = _core.learned_table().splitlines()
    table = "\n".join(line for line in lines if not line.startswith("best "))
    rows = []
    for i in range(SIGNS):
        unit = [UNIT * (i == j) for j in range(SIGNS)]
        shows = f"{table}\nbest 0 {' '.join(map(str, unit))}\n"
        rows.append([log_odds(case, shows) / UNIT for case in each])
    return np.array(rows).T


def learned(signs: Floats, past: Floats, weight: Floats) -> Floats:
    """Logistic regression, a constant and a coefficient of each sign."""
    x = np.column_stack([np.ones(len(signs)), signs])

    def loss(b: Floats) -> tuple[float, Floats]:
        u = x @ b
        wrong = weight * (1 / (1 + np.exp(-u)) - past)
        penalty = np.r_[0.0, b[1:]]
        value = weight @ (np.logaddexp(0, u) - past * u) + PENALTY * (penalty @ penalty)
        return float(value), x.T @ wrong + 2 * PENALTY * penalty

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


def chance(coefficients: Floats, signs: Floats) -> Floats:
    """The probability of a logistic regression."""
    odds = coefficients[0] + signs @ coefficients[1:]
    return np.asarray(1 / (1 + np.exp(-odds)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--runs", type=int, default=20, help="most runs of a collection")
    parser.add_argument("--learn", action="store_true", help="print the line of the table")
    given = parser.parse_args()
    each: list[Case] = []
    for path in (path for folder in given.folders for path in sorted(folder.glob("*.csv.gz"))):
        # Races end at their target: their last value is the best by choice.
        if "nonfinite" in path.name or path.name.startswith("mlperf"):
            continue
        try:
            each += cases(path, 1000 if path.name.startswith("wild") else given.runs)
        except gp.IoError as trouble:
            print(f"left out: {trouble}")
    past = np.array([case.past for case in each], float)
    groups = np.array([case.group for case in each])
    names, member = np.unique(groups, return_inverse=True)
    hashed = [int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 for name in names]
    half = np.array(hashed)[member]
    weight = 1 / np.sqrt(np.bincount(member)[member])  # a group weighs as the root of its cases
    signs = signs_of(each)
    patience = np.expm1(signs[:, 1:2])
    if given.learn:
        row = learned(signs, past, weight / weight.sum())
        print("best", " ".join(f"{value:.4f}" for value in row))
        return
    said = {"law of the curve": 1 / (1 + np.exp(-signs[:, 0]))}
    for name, x in (("corrected", signs), ("levels since", signs[:, 1:2]), ("share", signs[:, :0])):
        said[name] = np.empty(len(past))
        for other in (0, 1):
            taught = np.where(half != other, weight, 0.0)
            b = learned(x, past, taught / taught.sum())
            said[name][half == other] = chance(b, x[half == other])
    said |= {f"none in {most}": (patience[:, 0] >= most).astype(float) for most in PATIENCE}
    said["library"] = 1 / (
        1 + np.exp(-np.array([log_odds(case, _core.learned_table()) for case in each]))
    )
    report(each, past, member, half, said)


def report(
    each: list[Case],
    past: Floats,
    member: NDArray[np.intp],
    half: NDArray[np.int_],
    said: dict[str, Floats],
) -> None:
    """Print Brier scores by kind of collection and reliability."""
    kinds = np.array([f"{case.collection.split('-')[0] == 'wild'} {case.by}" for case in each])
    print(f"{len(past)} cases of {member.max() + 1} groups, best past in {past.mean():.3f}")
    parts = {"all": past >= 0, "half 0": half == 0, "half 1": half == 1}
    parts |= {
        str(kind).replace("True", "wild").replace("False", "other"): kinds == kind
        for kind in np.unique(kinds)
    }
    for part, of in parts.items():
        row = {}
        for name, p in said.items():
            wrong = (p - past) ** 2
            row[name] = np.mean([wrong[of & (member == g)].mean() for g in np.unique(member[of])])
        scores = "  ".join(f"{name} {value:.4f}" for name, value in row.items())
        print(f"{part:12s} {of.sum():5d} cases, past {past[of].mean():.2f}: {scores}")
    for name, p in said.items():
        sure = p >= SURE
        if sure.any():
            print(f"{name}: says past of {sure.sum()} cases, right of {past[sure].mean():.3f}")
    for name in ("law of the curve", "corrected"):
        print(name)
        for low, high in itertools.pairwise(EDGES):
            here = (said[name] >= low) & (said[name] < high + (high == 1.0))
            if here.any():
                print(
                    f"  said {low:.2f} to {high:.2f}: {here.sum():5d} cases, "
                    f"mean {said[name][here].mean():.3f}, was past {past[here].mean():.3f}"
                )


if __name__ == "__main__":
    main()
