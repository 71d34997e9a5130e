# SPDX-License-Identifier: Apache-2.0
"""Judge the policy `learned` on jobs that its training never saw, beside others.

    python bench/train_policy/judge.py TRACES OUT.csv [--values learned.txt] [--set test]

Windows of 300 jobs of each virtual cluster of the set, on one tier and on two of unlike speeds; two
traces of Gavel on its three tiers; supercom with 20 to 200 users, and the same users with the
curves of other tasks than any training saw. Forecasts of durations are wrong by
exp(N(0, sigma)), jobs with curves have the forecasts of these; restarts take 60 s and nodes and
jobs fail; ten seeds. Rows that OUT.csv has are not played again. Prints each metric over that of
best_value: the geometric mean and the half of its 95 % interval over seeds.
"""

from __future__ import annotations

import argparse
import csv
import json
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from linear import RUNNING, SLOTS, act
from scipy import stats
from workloads import gavel, generator, other_curves, play, supercom, window, workload

import glidepath as gp
from glidepath import _core
from glidepath.gym import SchedulingEnv

HERE = Path(__file__).parent
SETTINGS = tomllib.loads((HERE / "settings.toml").read_text())
POLICIES = ("best_value", "learned", "gittins", "srsf", "las", "fifo", "linear")
METRICS = ("mean_jct_s", "p95_jct_s", "worst_ftf", "preemptions", "energy_kwh")
DAY_S = 86400.0
HARDSHIP = {
    "restart_s": 60.0,
    "failures": {"node_every_s": 15 * DAY_S, "job_every_s": 2 * DAY_S, "checkpoint_s": 1800.0},
}
SIGMAS = (0.0, 0.5, 1.0, 2.0)
CURVES = "curves"  # in the column of sigma
GAVEL = ("gavel_max_min_fairness", "gavel_minimize_makespan")
USERS = (20, 50, 100, 200)
TOLERANCE = 1.02
KEY = ("where", "sigma", "cluster", "seed", "policy")
Row = dict[str, Any]


def cases(traces: Path, clusters: list[str], seed: int) -> Iterator[Row]:
    """Give where, sigmas and cluster of what a seed plays, with a function that draws the jobs."""
    draw = SETTINGS["draw"] | {"jobs": [300, 301]}

    def philly(cluster: str, tiers: int) -> gp.Workload:
        rng = generator("judge", cluster, seed, tiers)
        return workload(rng, draw, window(rng, draw, traces, clusters, cluster), tiers)

    for count, where in ((1, "one tier"), (2, "two tiers")):
        for cluster in clusters:
            jobs = partial(philly, cluster, count)
            yield {"where": where, "sigmas": SIGMAS, "cluster": cluster, "jobs": jobs}
    for name in GAVEL:
        jobs = partial(gavel, traces, name)
        yield {"where": "Gavel", "sigmas": SIGMAS, "cluster": name, "jobs": jobs}
    for users in USERS:
        for name, draw_jobs in {"supercom": supercom, "other curves": other_curves}.items():
            where, jobs = f"{name}, {users} users", partial(draw_jobs, users, seed)
            yield {"where": where, "sigmas": (CURVES,), "cluster": name, "jobs": jobs}


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


def rows_of(case: Row, seed: int, given: argparse.Namespace, had: set[Row]) -> Iterator[Row]:
    """Simulate what is missing of a case; the policies share the forecasts of curves."""
    jobs, memo = None, _core.ForecastMemo()
    for sigma in case["sigmas"]:
        sees = {"stop_at_target": True} if sigma == CURVES else {"forecast_sigma": sigma}
        how = HARDSHIP | {"seed": seed} | sees
        for policy in given.policy or POLICIES:
            key = dict(zip(KEY, (case["where"], sigma, case["cluster"], seed, policy), strict=True))
            if tuple(map(str, key.values())) in had:
                continue
            jobs = jobs or case["jobs"]()
            if policy == "linear":
                run = play_linear(json.loads(given.linear.read_text()), jobs, how)
            else:
                own = policy == "learned" and given.values is not None
                planner = {"learned": given.values} if own else None
                run = play(jobs, policy, how | {"planner": planner}, memo)
            yield key | {name: getattr(run, name) for name in METRICS} | {"fallback": run.fallback}


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


def print_ratios(label: str, pairs: list[tuple[Row | None, Row]]) -> None:
    """Print a row of the table where two seeds or more have both."""
    both = [(row, base) for row, base in pairs if row is not None]
    if len({row["seed"] for row, _ in both}) > 1:
        print(f"| {label} | {' | '.join(ratio_cells(both))} |")


def table(rows: list[Row]) -> None:
    """Print the ratios to best_value, and those of best_value with known durations."""
    of = {tuple(str(row[name]) for name in KEY): row for row in rows}
    for where, sigma in dict.fromkeys((str(row["where"]), str(row["sigma"])) for row in rows):
        bases = {key: of[key] for key in of if key[:2] == (where, sigma) and key[4] == POLICIES[0]}
        for policy in POLICIES[1:]:
            pairs = [(of.get((*key[:4], policy)), base) for key, base in bases.items()]
            print_ratios(f"{where} | {sigma} | `{policy}`", pairs)
        if sigma not in ("0.0", CURVES):
            pairs = [(of.get((where, "0.0", *key[2:])), base) for key, base in bases.items()]
            print_ratios(f"{where} | {sigma} | durations known", pairs)
    ratios = {
        key: float(row["mean_jct_s"]) / float(of[*key[:4], POLICIES[0]]["mean_jct_s"])
        for key, row in of.items()
        if key[4] == "learned" and (*key[:4], POLICIES[0]) in of
    }
    above = {
        " ".join(key[:4]): f"{value:.3f}" for key, value in ratios.items() if value > TOLERANCE
    }
    print(f"learned: {len(above)} of {len(ratios)} runs above {TOLERANCE} of best_value: {above}")


def main() -> None:
    """Play what is missing, then print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--values", type=Path)
    parser.add_argument("--set", default="test", choices=("validate", "test"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="so that others judge again")
    parser.add_argument(
        "--where", action="append", help="one tier, two tiers, Gavel, supercom, other curves"
    )
    parser.add_argument("--policy", action="append", choices=POLICIES)
    parser.add_argument("--linear", type=Path, default=HERE / "trained" / "linear.json")
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
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for case in cases(given.traces, SETTINGS[given.set], seed):
                if given.where and case["where"].split(",")[0] not in given.where:
                    continue
                for row in rows_of(case, seed, given, had):
                    rows.append(row)
                    write.writerow(row)
                    file.flush()
    table(rows)


if __name__ == "__main__":
    main()
