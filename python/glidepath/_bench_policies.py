# SPDX-License-Identifier: Apache-2.0
"""Published results of other simulators beside ours: the program behind `glidepath bench policies`.

The traces are not part of the package; `docs/method/simulate.md` says where each comes from.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._core import IoError
from glidepath._simulate import Simulation, Workload, compare, generate_workload, simulate

__all__ = ["run", "seed_study", "verdicts", "write_study"]

_TIRESIAS = {
    "fifo": "fifo", "fjf": "first_fit", "sjf": "sjf", "shortest": "srtf", "shortest-gpu": "srsf",
    "dlas-gpu": "las",
}  # fmt: skip
_GAVEL = {
    "fifo_perf": "fifo_perf", "isolated": "isolated", "max_min_fairness": "max_min_unaware",
    "max_min_fairness_perf": "max_min",
}  # fmt: skip
_SEED_POLICIES = ("fifo", "session_fifo", "dare", "best_value")


def _row(
    source: str, case: str, policy: str, metric: str, ours: float, theirs: float
) -> dict[str, Any]:
    return {
        "source": source,
        "case": case,
        "policy": policy,
        "metric": metric,
        "ours": ours,
        "reference": theirs,
        "deviation": ours / theirs - 1 if theirs else ours - theirs,
    }


def _load(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text()) if path.exists() else {}
    return list(found.get("results", ()))


def _tiresias(traces: Path) -> Iterator[dict[str, Any]]:
    for row in _load(traces / "tiresias_reference.json"):
        policy = _TIRESIAS.get(row["policy"])
        if policy is None:
            continue
        workload = Workload.from_trace(traces / row["trace"], gpus=row["gpus"])
        result = simulate(workload, policy, events=False)
        case = f"{row['trace'].split('.')[0]}, {row['gpus']} GPUs"
        for metric in ("mean_jct_s", "p95_jct_s", "makespan_s", "preemptions"):
            ours = float(getattr(result, metric))
            yield _row("Tiresias", case, policy, metric, ours, float(row[metric]))


def _sessions(traces: Path) -> Iterator[dict[str, Any]]:
    for row in _load(traces / "session_fifo_reference.json"):
        if row["session_s"] is None:
            continue
        workload = Workload.from_trace(traces / row["trace"], gpus=row["gpus"])
        result = simulate(
            workload,
            "session_fifo",
            session_s=row["session_s"],
            restart_s=row["resume_cost_s"],
            events=False,
        )
        case = (
            f"{row['trace'].split('.')[0]}, {row['gpus']} GPUs, {row['session_s']:g} s, "
            f"cost {row['resume_cost_s']:g} s"
        )
        yield _row(
            "prototype", case, "session_fifo", "mean_jct_s", result.mean_jct_s, row["mean_jct_s"]
        )


def _gavel(traces: Path) -> Iterator[dict[str, Any]]:
    for row in _load(traces / "gavel_reference.json"):
        policy = _GAVEL.get(row["policy"])
        if policy is None:
            continue
        counts = map(int, row["cluster_v100_p100_k80"].split(":"))
        workload = Workload.from_gavel(
            traces / row["trace"],
            traces / "gavel_throughputs.csv.gz",
            cluster=dict(zip(("v100", "p100", "k80"), counts, strict=True)),
        )
        result = simulate(workload, policy, events=False)
        case = f"{row['trace'].split('.')[0]}, {row['cluster_v100_p100_k80']}"
        yield _row("Gavel", case, policy, "mean_jct_s", result.mean_jct_s, row["avg_jct_s"])
        yield _row("Gavel", case, policy, "makespan_s", result.makespan_s, row["makespan_s"])


def _speed(traces: Path) -> Iterator[dict[str, Any]]:
    path = traces / "philly.csv.gz"
    if not path.exists():
        return
    workload = Workload.from_trace(path, gpus=400)
    for policy in ("fifo", "srtf", "gittins"):
        best, result = _timed(partial(simulate, workload, policy, events=False))
        yield _row("target", "philly, 82 247 jobs, 400 GPUs", policy, "cpu_s", best, 0.25)
        rate = result.decisions / best
        yield _row("target", "philly, 82 247 jobs, 400 GPUs", policy, "events_per_s", rate, 6e5)


def _draw(folder: str | os.PathLike[str], users: int, seed: int) -> Workload:
    return generate_workload(folder, users=users, seed=seed)


def _timed(run_once: Callable[[], Simulation]) -> tuple[float, Simulation]:
    """Least CPU seconds of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        result = run_once()
        best = min(best, time.process_time() - start)
    return best, result


def run(traces: str | os.PathLike[str], *, speed: bool = True) -> list[dict[str, Any]]:
    """Run every reference case whose trace is there.

    Parameters
    ----------
    traces : path
        Folder with the traces and the ``*_reference.json`` beside them.
    speed : bool
        Also time the whole Philly trace.

    Returns
    -------
    list of dict
        ``source, case, policy, metric, ours, reference, deviation`` (relative; absolute where the
        reference is 0).
    """
    folder = Path(traces)
    rows = [*_tiresias(folder), *_sessions(folder), *_gavel(folder)]
    if speed:
        rows += _speed(folder)
    return rows


def seed_study(
    folder: str | os.PathLike[str],
    *,
    users: tuple[int, ...] = (10, 20, 50, 100, 200),
    seeds: int = 10,
    progress: Callable[[int, int], object] | None = None,
) -> list[dict[str, Any]]:
    """Compare the policies of the system that supercom is modelled on with ours, by load.

    Parameters
    ----------
    folder : path
        The workload folder, ``data/workloads/supercom``.
    users : tuple of int
    seeds : int
        Workloads drawn for each load.
    progress : callable, optional
        Called with (runs done, runs) within each block.

    Returns
    -------
    list of dict
        One row for each load, arm and policy. The arms: ``asked`` (who does not watch losses runs
        the whole budget: retraining to overfitting), ``stopped`` (every policy stops at the target)
        and ``unstopped`` (none does; dare still gives up on targets out of reach). Means over seeds
        with the half-width of their 95 % intervals, and geometric means of the ratio to fifo.
    """
    rows = []
    metrics = (
        "mean_jct_s", "total_wait_s", "mean_wait_per_user_s", "makespan_s", "gpu_seconds",
        "utilization", "energy_kwh", "preemptions",
    )  # fmt: skip
    for count in users:
        stops, runs = (
            compare(
                partial(_draw, folder, count),
                _SEED_POLICIES,
                seeds=seeds,
                stop_at_target=stop,
                progress=progress,
            )
            for stop in (True, False)
        )
        for arm, table_of in (
            ("asked", {name: runs if "fifo" in name else stops for name in _SEED_POLICIES}),
            ("stopped", dict.fromkeys(_SEED_POLICIES, stops)),
            ("unstopped", dict.fromkeys(_SEED_POLICIES, runs)),
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


def write_study(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], rows: list[dict[str, Any]]
) -> None:
    """Write what `seed_study` found as a page, with Gantt charts of the first seed.

    Parameters
    ----------
    path : path
        Of the HTML page; ``.png`` or ``.svg`` for the picture alone.
    folder : path
        The workload folder.
    rows : list of dict
    """
    from glidepath import _plots, _report

    out = Path(path)
    if out.suffix != ".html":
        figure = _plots.study(rows)
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
    _report.write_study(out, Path(folder).name, rows, verdicts(rows), shown, charts)


# What the system that supercom is modelled on reports: 15 % less JCT and wait without interruption,
# up to 80 times less wait and JCT and 83 times less energy with it.
_REPORTED = {"wait": 80.0, "JCT": 80.0, "energy": 83.0}


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say for each load which of the reported factors are reached.

    Parameters
    ----------
    rows : list of dict
        Of `seed_study`.

    Returns
    -------
    list of dict
        ``users``; ``without_interruption``, the smaller mean JCT of dare and best_value over that
        of fifo when no job stops at its target; ``wait``, ``JCT`` and ``energy``, the larger factor
        of the two, with interruption, below fifo that trains every job to its budget; ``policy``
        of each; ``reached``, a sentence.
    """
    found = {(row["users"], row["arm"], row["policy"]): row for row in rows}
    out = []
    for load in dict.fromkeys(row["users"] for row in rows):
        best: dict[str, Any] = {"users": load}
        ours = ("dare", "best_value")
        calm = {name: found[load, "unstopped", name]["mean_jct_s_ratio"] for name in ours}
        best["without_interruption"] = min(calm.values())
        said = [
            f"{'at least' if best['without_interruption'] <= 0.85 else 'not'} 15 % less mean JCT "
            "without interruption"
        ]
        for name, metric in (
            ("wait", "total_wait_s_ratio"), ("JCT", "mean_jct_s_ratio"),
            ("energy", "energy_kwh_ratio"),
        ):  # fmt: skip
            ratio = min(found[load, "asked", policy][metric] for policy in ours)
            best[name] = 1 / ratio if ratio else float("inf")
            if ratio != ratio or ratio == 0:
                said.append(f"nobody waits under {'ours' if ratio == 0 else 'fifo'}")
                continue
            reached = best[name] >= _REPORTED[name]
            said.append(f"{'' if reached else 'not '}{_REPORTED[name]:.0f}x in {name}")
        best["reached"] = ", ".join(said)
        out.append(best)
    return out
