# SPDX-License-Identifier: Apache-2.0
"""Judge the policy `learned` on clusters that its training never saw, beside others.

    python bench/train_policy/judge.py TRACES OUT.csv [--values learned.txt] [--set test]

Windows of 300 jobs of each cluster of the set, on one tier and on two of unlike speeds, forecasts
wrong by exp(N(0, sigma)), restarts of 60 s and failures, ten seeds. Rows that OUT.csv has are not
played again. Prints each metric over that of best_value: the geometric mean and the half of its
95 % interval over seeds.
"""

from __future__ import annotations

import argparse
import csv
import json
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from linear import RUNNING, SLOTS, act
from scipy import stats
from workloads import generator, window, workload

import glidepath as gp
from glidepath.gym import SchedulingEnv

HERE = Path(__file__).parent
SETTINGS = tomllib.loads((HERE / "settings.toml").read_text())
POLICIES = ("best_value", "learned", "gittins", "srsf", "las", "fifo", "linear")
METRICS = ("mean_jct_s", "p95_jct_s", "worst_ftf", "preemptions")
DAY_S = 86400.0
HARDSHIP = {
    "restart_s": 60.0,
    "failures": {"node_every_s": 15 * DAY_S, "job_every_s": 2 * DAY_S, "checkpoint_s": 1800.0},
}
KEY = ("where", "sigma", "cluster", "seed", "policy")
Row = dict[str, Any]


def matches(traces: Path, clusters: list[str], seeds: int, tiers: list[int]) -> list[Row]:
    """Give what is to be played: the key of a row, a function that draws, options."""
    found: list[Row] = []
    draw = SETTINGS["draw"] | {"jobs": [300, 301]}

    def drawn(cluster: str, seed: int, tiers: int) -> gp.Workload:
        rng = generator("judge", cluster, seed, tiers)
        return workload(rng, draw, window(rng, draw, traces, clusters, cluster), tiers)

    for seed in range(seeds):
        for count in tiers:
            where = "one tier" if count == 1 else "two tiers"
            for cluster in clusters:
                for sigma in (0.0, 0.5, 1.0, 2.0):
                    key = {"where": where, "sigma": sigma, "cluster": cluster, "seed": seed}
                    how = HARDSHIP | {"forecast_sigma": sigma, "seed": seed}
                    found.append(key | {"draw": partial(drawn, cluster, seed, count), "how": how})
    return found


def play_linear(weights: list[float], jobs: gp.Workload, how: Row) -> gp.Simulation:
    """One episode of the linear policy."""
    options = how | {"slots": SLOTS, "running": RUNNING}
    seed = options.pop("seed")
    env = SchedulingEnv(jobs, **options)
    seen, info = env.reset(seed=seed)
    over = False
    while not over:
        action = act(np.array([weights]), seen[None], info["action_mask"][None])[0]
        seen, _, over, _, info = env.step(action)
    return env.simulation()


def play(match: Row, policy: str, given: argparse.Namespace, jobs: gp.Workload) -> Row:
    """One simulation as a row."""
    if policy == "linear":
        run = play_linear(json.loads(given.linear.read_text()), jobs, match["how"])
    else:
        values = policy == "learned" and given.values is not None
        planner = {"learned": given.values} if values else None
        how = match["how"] | {"planner": planner, "spans": False}
        run = gp.simulate(jobs, policy, **how)
    row = {name: match[name] for name in KEY[:-1]} | {"policy": policy}
    return row | {name: getattr(run, name) for name in METRICS} | {"fallback": run.fallback}


def ratio_cells(pairs: list[tuple[Row, Row]]) -> list[str]:
    """Each metric of the first over the second, as geometric mean over seeds and interval."""
    cells = []
    for metric in METRICS:
        extra = 5.0 if metric == "preemptions" else 0.0
        by_seed: dict[str, list[float]] = {}
        for row, base in pairs:
            ratio = np.log((float(row[metric]) + extra) / (float(base[metric]) + extra))
            by_seed.setdefault(str(row["seed"]), []).append(ratio)
        logs = np.array([np.mean(ratios) for ratios in by_seed.values()])
        half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
        cells.append(f"{np.exp(logs.mean()):.3f} ± {np.exp(logs.mean()) * half:.3f}")
    return cells


def table(rows: list[Row]) -> None:
    """Print the ratios to best_value, and those of best_value with known durations."""
    of = {tuple(str(row[name]) for name in KEY): row for row in rows}
    for where, sigma in dict.fromkeys((str(row["where"]), str(row["sigma"])) for row in rows):
        bases = {key: of[key] for key in of if key[:2] == (where, sigma) and key[4] == POLICIES[0]}
        for policy in POLICIES[1:]:
            same = [(of.get((*key[:4], policy)), base) for key, base in bases.items()]
            pairs = [(row, base) for row, base in same if row is not None]
            if len({row["seed"] for row, _ in pairs}) > 1:
                print(f"| {where} | {sigma} | `{policy}` | {' | '.join(ratio_cells(pairs))} |")
        known = [(of.get((where, "0.0", *key[2:])), base) for key, base in bases.items()]
        pairs = [(row, base) for row, base in known if row is not None]
        if sigma != "0.0" and len({row["seed"] for row, _ in pairs}) > 1:
            print(f"| {where} | {sigma} | durations known | {' | '.join(ratio_cells(pairs))} |")


def main() -> None:
    """Play what is missing, then print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--values", type=Path)
    parser.add_argument("--set", default="test", choices=("validate", "test"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tiers", type=int, nargs="*", default=[1, 2], choices=(1, 2))
    parser.add_argument("--policy", action="append")
    parser.add_argument("--linear", type=Path, help="weights of linear.py, to play them as well")
    given = parser.parse_args()
    rows: list[Row] = []
    if given.out.exists():
        with given.out.open() as file:
            rows = list(csv.DictReader(file))
    had = {tuple(row[name] for name in KEY) for row in rows}
    with given.out.open("a", newline="") as file:
        write = csv.DictWriter(file, [*KEY, *METRICS, "fallback"])
        if not rows:
            write.writeheader()
        for match in matches(given.traces, SETTINGS[given.set], given.seeds, given.tiers):
            keys = [str(match[name]) for name in KEY[:-1]]
            asked = [*(given.policy or POLICIES[:-1])]
            if given.linear:
                asked.append("linear")
            missing = [policy for policy in asked if (*keys, policy) not in had]
            if not missing:
                continue
            jobs = match["draw"]()
            for policy in missing:
                row = play(match, policy, given, jobs)
                rows.append(row)
                write.writerow(row)
                file.flush()
    table(rows)


if __name__ == "__main__":
    main()
