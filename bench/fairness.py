#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What finish-time fairness costs: fair_finish beside other policies on traces of jobs.

    python bench/fairness.py TRACE:GPUS ... philly.csv.gz:ed69ec:6 --seeds 4
    python bench/fairness.py TRACE:GPUS --phases 3

Prints the worst fairness, its 0.99 quantile, mean JCT and makespan over the least of srtf, srsf,
gittins and best_value, and preemptions. A cluster is the jobs of a table with that `vc`, of gangs
up to its GPUs. Geometric means over seeds where forecasts have an error.

With --phases, jobs whose batch grows in mid-run, drawn so many times: policies that know how fast
they will be beside the same ones that take the present speed to last, with fairness by static
contention.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp

BEST = ("srtf", "srsf", "gittins", "best_value")
OTHERS = ("las", "themis", "max_min")
# A policy of shares of time has neither forecasts nor restarts.
WITHOUT_OPTIONS = {"max_min"}


def cluster(table: Path, name: str, gpus: int) -> gp.Workload:
    """The jobs of one virtual cluster, the first at 0."""
    with gzip.open(table, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["vc"] == name]
    rows = [row for row in rows if 1 <= int(row["gpus"]) <= min(gpus, 64)]
    rows = [row for row in rows if float(row["duration_s"]) > 0]
    first = min(float(row["submit_s"]) for row in rows)
    columns = {
        "job": np.arange(len(rows)),
        "submit_s": np.array([float(row["submit_s"]) - first for row in rows]),
        "gpus": np.array([int(row["gpus"]) for row in rows]),
        "duration_s": np.array([float(row["duration_s"]) for row in rows]),
    }
    order = np.argsort(columns["submit_s"], kind="stable")
    jobs = {key: column[order] for key, column in columns.items()}
    return gp.Workload([gp.Tier("gpu", gpus)], jobs, name=f"{name}, {gpus}")


def workload(text: str) -> gp.Workload:
    """TRACE:GPUS, or TABLE:CLUSTER:GPUS."""
    *words, gpus = text.split(":")
    if len(words) == 2:
        return cluster(Path(words[0]), words[1], int(gpus))
    return gp.Workload.from_trace(words[0], gpus=int(gpus))


def figures(
    jobs: gp.Workload, policy: str, sigma: float, restart_s: float, seeds: int, **options: Any
) -> np.ndarray:
    """Worst fairness, its 0.99 quantile, mean JCT, makespan and preemptions."""
    if policy not in WITHOUT_OPTIONS:
        options["restart_s"] = restart_s
        options["forecast_sigma"] = sigma or None
    rows = []
    for seed in range(1, 1 + (seeds if sigma else 1)):
        run = gp.simulate(jobs, policy, seed=seed, spans=False, **options)
        late = float(np.quantile(run.jobs["ftf"], 0.99))
        rows.append((run.worst_ftf, late, run.mean_jct_s, run.makespan_s, run.preemptions + 1e-9))
    geometric: np.ndarray = np.exp(np.log(rows).mean(axis=0))
    return geometric


def growing(jobs: gp.Workload, seed: int) -> gp.Workload:
    """The same jobs, with batches that grow, as two rules of Shockwave's trace have it.

    By the noise of gradients a batch doubles up to three times, each worth a factor of 1 to 1.5;
    by critical regimes it is large but for the first 30 % and some stretch later, for 1.2 to 3.
    """
    draw = np.random.default_rng(seed)
    phases = []
    for _ in range(len(jobs)):
        if draw.random() < 0.5:
            at = np.sort(draw.uniform(0.1, 0.9, draw.integers(1, 4)))
            phases.append(dict(zip(at, np.cumprod(draw.uniform(1, 1.5, len(at))), strict=True)))
        else:
            again, speed = draw.uniform(0.4, 0.9), draw.uniform(1.2, 3)
            phases.append({0.3: speed, again: 1.0, again + 0.05: speed})
    return gp.Workload(jobs.tiers, {**jobs.jobs, "phases": phases}, name=jobs.name)


def known_and_present(jobs: gp.Workload, draws: int) -> None:
    """Print what it costs not to know how fast jobs will be."""
    for policy in (*BEST, "fair_finish", "themis", "las"):
        for knows in (True, False):
            rows = []
            for seed in range(1, 1 + draws):
                run = gp.simulate(growing(jobs, seed), policy, knows_phases=knows, spans=False)
                rows.append((run.mean_jct_s, run.worst_ftf, run.worst_ftf_static, run.makespan_s))
            figures = np.exp(np.log(rows).mean(axis=0))
            print(
                f"{jobs.name}: {policy:12} {'knows' if knows else 'present':8}"
                + "".join(f"{figure:12.2f}" for figure in figures),
                flush=True,
            )


def main() -> None:
    """Print a table for each trace, error and cost of a start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="+", help="TRACE:GPUS or TABLE:CLUSTER:GPUS")
    parser.add_argument("--sigma", type=float, action="append")
    parser.add_argument("--restart-s", type=float, action="append")
    parser.add_argument("--max-ftf", type=float, action="append")
    parser.add_argument("--long-share", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--phases", type=int, metavar="DRAWS", help="jobs that grow instead")
    given = parser.parse_args()
    if given.phases:
        print("trace: policy, speeds  mean JCT s  worst ftf  worst ftf_static  makespan s")
        for source in given.source:
            known_and_present(workload(source), given.phases)
        return
    print("trace, sigma, restart: policy  worst ftf  p99 ftf  mean JCT  makespan  preemptions")
    for source in given.source:
        jobs = workload(source)
        for sigma in given.sigma or (0.0, 0.5):
            for restart_s in given.restart_s or (0.0, 60.0):
                rows = {
                    policy: figures(jobs, policy, sigma, restart_s, given.seeds)
                    for policy in (*BEST, *OTHERS)
                }
                least = np.min([rows[policy] for policy in BEST], axis=0)
                for multiple in given.max_ftf or (1.5, 2.0, 3.0):
                    how = {"max_ftf": multiple, "long_share": given.long_share}
                    rows[f"fair_finish {multiple:g}"] = figures(
                        jobs, "fair_finish", sigma, restart_s, given.seeds, **how
                    )
                for policy, (worst, late, jct, makespan, preemptions) in rows.items():
                    print(
                        f"{jobs.name}, {sigma:g}, {restart_s:g}: {policy:16} {worst:8.2f} "
                        f"{late:7.2f} {jct / least[2]:7.3f} {makespan / least[3]:7.3f} "
                        f"{preemptions:8.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
