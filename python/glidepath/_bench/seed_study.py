# SPDX-License-Identifier: Apache-2.0
"""What forecasts are worth, by load: the program behind `glidepath bench policies --seed-study`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._compare import Comparison, run_all
from glidepath._core import IoError
from glidepath._simulate import policy_named, simulate
from glidepath._workload import generate_workload

POLICIES = ("fifo", "session_fifo", "dare", "best_value")


def run(
    folder: str | os.PathLike[str],
    *,
    users: tuple[int, ...] = (10, 20, 50, 100, 200),
    seeds: int = 10,
    progress: Callable[[int, int], object] | None = None,
) -> list[dict[str, Any]]:
    """Compare the policies of the system that supercom is modelled on with ours, by load.

    `folder` is ``data/workloads/supercom``, of which `seeds` workloads are drawn for each load. One
    row for each load, arm and policy. The arms: ``overfitting`` (policies that do not watch losses
    run every job to its budget), ``interrupted`` (every policy stops at the target) and
    ``uninterrupted`` (none does; dare still gives up on targets out of reach). Means over seeds
    with the half-width of their 95 % intervals, and geometric means of the ratio to fifo.
    """

    def blind(name: str) -> bool:
        return policy_named(name).sees == "none"

    rows = []
    metrics = (
        "mean_jct_s", "total_wait_s", "mean_wait_per_user_s", "makespan_s", "gpu_seconds",
        "utilization", "energy_kwh", "preemptions",
    )  # fmt: skip
    tables = _tables(folder, users, seeds, progress)
    for count in users:
        stops, runs = tables[count, True], tables[count, False]
        for arm, table_of in (
            ("overfitting", {name: runs if blind(name) else stops for name in POLICIES}),
            ("interrupted", dict.fromkeys(POLICIES, stops)),
            ("uninterrupted", dict.fromkeys(POLICIES, runs)),
        ):
            base = {name: table_of["fifo"].values("fifo", name) for name in metrics}
            for policy, table in table_of.items():
                row: dict[str, Any] = {"users": count, "arm": arm, "policy": policy}
                for metric in metrics:
                    row[metric], row[f"{metric}_ci"] = table.mean(metric)[policy]
                for metric in ("mean_jct_s", "energy_kwh"):
                    ratio = np.log(table.values(policy, metric) / base[metric])
                    row[f"{metric}_ratio"] = float(np.exp(ratio.mean()))
                waits = base["total_wait_s"].sum()
                wait = table.values(policy, "total_wait_s").sum()
                row["total_wait_s_ratio"] = float(wait / waits) if waits else float("nan")
                rows.append(row)
    return rows


def _tables(
    folder: str | os.PathLike[str],
    users: tuple[int, ...],
    seeds: int,
    progress: Callable[[int, int], object] | None,
) -> dict[tuple[int, bool], Comparison]:
    """Run every policy at every load, stopped at the target and not; the long runs first.

    A larger load has the jobs of the smaller ones, so that all runs share their forecasts.
    """
    cases = [
        (count, stop, policy, seed)
        for count in sorted(users, reverse=True)
        for policy in reversed(POLICIES)
        for stop in (True, False)
        for seed in range(seeds)
    ]
    drawn = {
        (count, seed): generate_workload(folder, users=count, seed=seed)
        for count in users
        for seed in range(seeds)
    }
    runs = [
        (drawn[count, seed], policy, seed, {"stop_at_target": stop})
        for count, stop, policy, seed in cases
    ]
    rows: dict[tuple[int, bool], list[dict[str, Any]]] = {}
    for case, row in zip(cases, run_all(runs, 0, progress), strict=True):
        rows.setdefault(case[:2], []).append(row)
    return {block: Comparison(rows=tuple(found)) for block, found in rows.items()}


def write(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], rows: list[dict[str, Any]]
) -> None:
    """Write what `run` found as an HTML page with Gantt charts of the first seed.

    A path that ends in ``.png`` or ``.svg`` gets the picture alone. IoError where it cannot be
    written.
    """
    from glidepath import _report
    from glidepath._pictures import clusters

    out = Path(path)
    if out.suffix != ".html":
        figure = clusters.study(rows)
        try:
            figure.savefig(out, dpi=110, bbox_inches="tight")
        except OSError as error:
            raise IoError(f"{out}: {error.strerror}") from None
        return
    loads = list(dict.fromkeys(row["users"] for row in rows))
    shown = min(loads, key=lambda load: abs(load - 20))
    drawn = generate_workload(folder, users=shown, seed=0)
    arms = (("fifo", None), ("session_fifo", None), ("fifo", True), ("dare", None),
            ("best_value", None))  # fmt: skip
    charts = {}
    for policy, stop in arms:
        title = f"{policy}, stopped at the target" if stop else policy
        charts[title] = simulate(drawn, policy, stop_at_target=stop)
    _report.write_study(out, Path(folder).name, rows, factors(rows), shown, charts)


# What the system that supercom is modelled on reports: 15 % less JCT and wait without interruption,
# up to 80 times less wait and JCT and 83 times less energy with it.
_REPORTED = {"wait": 80.0, "JCT": 80.0, "energy": 83.0}


def factors(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare the factors of each load, from the rows of `run`, with those reported.

    ``without_interruption`` is the smaller mean JCT of dare and best_value over that of fifo when
    no job stops at its target; ``wait``, ``JCT`` and ``energy`` are the larger factor of the two,
    with interruption, below fifo that trains every job to its budget; ``reached`` is a sentence.
    """
    found = {(row["users"], row["arm"], row["policy"]): row for row in rows}
    out = []
    for load in dict.fromkeys(row["users"] for row in rows):
        best: dict[str, Any] = {"users": load}
        ours = ("dare", "best_value")
        calm = {name: found[load, "uninterrupted", name]["mean_jct_s_ratio"] for name in ours}
        best["without_interruption"] = min(calm.values())
        said = [
            f"{'at least' if best['without_interruption'] <= 0.85 else 'not'} 15 % less mean JCT "
            "without interruption"
        ]
        for name, metric in (
            ("wait", "total_wait_s_ratio"), ("JCT", "mean_jct_s_ratio"),
            ("energy", "energy_kwh_ratio"),
        ):  # fmt: skip
            ratio = min(found[load, "overfitting", policy][metric] for policy in ours)
            best[name] = 1 / ratio if ratio else float("inf")
            if ratio != ratio or ratio == 0:
                said.append(f"nobody waits under {'ours' if ratio == 0 else 'fifo'}")
                continue
            reached = best[name] >= _REPORTED[name]
            said.append(f"{'' if reached else 'not '}{_REPORTED[name]:.0f}x in {name}")
        best["reached"] = ", ".join(said)
        out.append(best)
    return out
