# SPDX-License-Identifier: Apache-2.0
"""Published results of other simulators beside ours: the program behind `glidepath bench policies`.

The traces are not part of the package; `docs/method/simulate.md` says where each comes from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._bench.packing import Queue
from glidepath._core import Tier
from glidepath._simulate import Simulation, simulate
from glidepath._workload import Workload

_TIRESIAS = {
    "fifo": "fifo", "fjf": "first_fit", "sjf": "sjf", "shortest": "srtf", "shortest-gpu": "srsf",
    "dlas-gpu": "las",
}  # fmt: skip
_GAVEL = {
    "fifo_perf": "fifo_perf", "isolated": "isolated", "max_min_fairness": "max_min_unaware",
    "max_min_fairness_perf": "max_min",
}  # fmt: skip


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
        result = simulate(workload, policy, spans=False)
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
            spans=False,
        )
        case = (
            f"{row['trace'].split('.')[0]}, {row['gpus']} GPUs, {row['session_s']:g} s, "
            f"cost {row['resume_cost_s']:g} s"
        )
        yield _row(
            "prototype", case, "session_fifo", "mean_jct_s", result.mean_jct_s, row["mean_jct_s"]
        )


_TYPES = ("v100", "p100", "k80")


def _gavel(traces: Path) -> Iterator[dict[str, Any]]:
    for row in _load(traces / "gavel_reference.json"):
        policy = _GAVEL.get(row["policy"])
        if policy is None:
            continue
        counts = map(int, row["cluster_v100_p100_k80"].split(":"))
        cluster = dict(zip(_TYPES, counts, strict=True))
        # Gavel's own file has the throughputs in full, the table six decimals of them.
        for name in ("simulation_throughputs.json", "gavel_throughputs.csv.gz"):
            if not (traces / name).exists():
                continue
            workload = Workload.from_gavel(traces / row["trace"], traces / name, cluster=cluster)
            result = simulate(workload, policy, spans=False)
            case = f"{row['trace'].split('.')[0]}, {row['cluster_v100_p100_k80']}, {name}"
            yield _row("Gavel", case, policy, "mean_jct_s", result.mean_jct_s, row["avg_jct_s"])
            yield _row("Gavel", case, policy, "makespan_s", result.makespan_s, row["makespan_s"])


_CASES = {"philly_0e4a51_480": 60, "philly_103959": 16, "philly_0e4a51": 32}
_NOISE = {0.5: (0.80, 0.60, 0.48), 2.0: (0.88, 0.64, 0.70), 20.0: (1.05, 1.05, 1.05)}


def _limits(traces: Path) -> Iterator[dict[str, Any]]:
    """Limits that the policies should keep on the traces, given as `reference`."""
    for place, (name, gpus) in enumerate(_CASES.items()):
        path = traces / f"{name}.csv.gz"
        if not path.exists():
            continue
        workload = Workload.from_trace(path, gpus=gpus)
        case = f"{name}, {gpus} GPUs"
        run = partial(simulate, workload, spans=False)
        better = min(run(policy).mean_jct_s for policy in ("srtf", "srsf"))
        las = run("las").mean_jct_s
        costly = run("srsf", restart_s=60)
        for policy in ("best_value", "gittins"):
            row = partial(_row, "limit", policy=policy)
            yield row(case, metric="mean_jct_s", ours=run(policy).mean_jct_s, theirs=better)
            for sigma, limits in _NOISE.items():
                noisy = [run(policy, forecast_sigma=sigma, seed=s).mean_jct_s for s in range(3)]
                metric = f"mean_jct_s / las, sigma {sigma:g}"
                yield row(case, metric=metric, ours=sum(noisy) / 3 / las, theirs=limits[place])
            patient = run(policy, restart_s=60)
            saved = patient.preemptions / costly.preemptions
            yield row(case, metric="preemptions / srsf, 60 s", ours=saved, theirs=0.55)
            jct = patient.mean_jct_s / costly.mean_jct_s
            yield row(case, metric="mean_jct_s / srsf, 60 s", ours=jct, theirs=1.02)
    for name, policy, metric, most in (
        ("gavel_max_min_fairness", "best_value", "mean_jct_s", 15018.448),
        ("gavel_max_min_fairness", "best_value", "worst_ftf", 2.0),
        ("gavel_minimize_makespan", "makespan", "makespan_s", 68885.650),
        ("gavel_minimize_makespan", "makespan", "worst_ftf", 2.0),
    ):
        table = traces / "gavel_throughputs.csv.gz"
        if not (traces / f"{name}.csv.gz").exists() or not table.exists():
            continue
        cluster = dict(zip(_TYPES, (8, 16, 24), strict=True))
        gavel = Workload.from_gavel(traces / f"{name}.csv.gz", table, cluster=cluster)
        ours = float(getattr(simulate(gavel, policy, spans=False), metric))
        yield _row("limit", f"{name}, 8:16:24", policy, metric, ours, most)


def _packing(traces: Path) -> Iterator[dict[str, Any]]:
    """Throughput of pairs over that of Gavel without them; the reference is Gavel's own gain."""
    table = traces / "gavel_throughputs.csv.gz"
    cluster = dict(zip(_TYPES, (8, 16, 24), strict=True))
    for name in ("gavel_max_min_fairness", "gavel_minimize_makespan"):
        path = traces / f"{name}.csv.gz"
        if not path.exists() or not table.exists() or find_spec("scipy") is None:
            continue
        queue = Queue(Workload.from_gavel(path, table, cluster=cluster, sharing=True))
        alone = queue.gavel(packed=False)
        gain = queue.gavel(packed=True) / alone
        case = f"{name}, all jobs at once, pairs"
        ours = queue.planned(packed=True)
        yield _row("Gavel", case, "best_value", "throughput / Gavel unpacked", ours / alone, gain)
        own = ours / queue.planned(packed=False)
        yield _row("Gavel", case, "best_value", "throughput / own unpacked", own, gain)


def _speed(traces: Path) -> Iterator[dict[str, Any]]:
    path = traces / "philly.csv.gz"
    if not path.exists():
        return
    workload = Workload.from_trace(path, gpus=400)
    for policy in ("fifo", "srtf", "gittins"):
        best, result = _timed(partial(simulate, workload, policy, spans=False))
        yield _row("limit", "philly, 82 247 jobs, 400 GPUs", policy, "cpu_s", best, 0.25)
        rate = result.events / best
        yield _row("limit", "philly, 82 247 jobs, 400 GPUs", policy, "events_per_s", rate, 6e5)
    cpu_s, peak_mib = _million(path)
    yield _row("limit", "philly tiled, 1 000 000 jobs", "srtf", "cpu_s", cpu_s, 6.0)
    yield _row("limit", "philly tiled, 1 000 000 jobs", "srtf", "peak_mib", peak_mib, 1024.0)
    if (one := traces / "philly_b436b2.csv.gz").exists():
        alone = Workload.from_trace(one, gpus=64)
        best, _ = _timed(partial(simulate, alone, "srtf", spans=False))
        yield _row("Tiresias", "philly_b436b2", "srtf", "times as fast", _TIRESIAS_S / best, 500.0)
    if find_spec("gymnasium"):
        yield _row("limit", "64 environments", "random", "steps_per_s", _steps_per_s(), 50_000.0)


_TIRESIAS_S = 25.0  # its simulator on philly_b436b2 under SRTF
_MILLION = """
import resource, sys, time
import numpy as np
import glidepath as gp
once = gp.Workload.from_trace(sys.argv[1], gpus=400).jobs
n, count = len(once["submit_s"]), 1_000_000
turn, random = np.arange(count) // n, np.random.default_rng(0)
submit_s = once["submit_s"][np.arange(count) % n] + turn * (once["submit_s"].max() + 1)
submit_s += random.integers(0, 600, count)
order = np.argsort(submit_s, kind="stable")
jobs = {name: once[name][order % n] for name in ("gpus", "duration_s")}
workload = gp.Workload(
    [gp.Tier("a", 400)], {"job": np.arange(count), "submit_s": submit_s[order], **jobs}
)
start = time.process_time()
gp.simulate(workload, "srtf", spans=False)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _million(trace: Path) -> tuple[float, float]:
    """CPU seconds of a million jobs, the trace tiled with jitter, and the peak of their process."""
    command = [sys.executable, "-c", _MILLION, str(trace)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu_s, peak_mib = map(float, done.stdout.split())
    return cpu_s, peak_mib


def _steps_per_s() -> float:
    """Steps of 64 environments of 60 jobs in a second of CPU time, actions at random."""
    from glidepath.gym import SchedulingVectorEnv

    workloads = []
    for seed in range(64):
        random = np.random.default_rng(seed)
        submit_s = np.sort(random.integers(0, 20_000, 60)).astype(float)
        gpus, duration_s = random.choice([1, 1, 2, 4], 60), np.exp(random.normal(6.5, 1.5, 60))
        columns = {"job": np.arange(60), "submit_s": submit_s, "gpus": gpus}
        workloads.append(Workload([Tier("a", 8)], {**columns, "duration_s": 1 + duration_s}))
    env: Any = SchedulingVectorEnv(workloads, num_envs=64)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.single_action_space.n, (1000, 64))
    start = time.process_time()
    for each in actions:
        env.step(each)
    return float(actions.size / (time.process_time() - start))


def _timed(run_once: Callable[[], Simulation]) -> tuple[float, Simulation]:
    """Least CPU seconds of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        result = run_once()
        best = min(best, time.process_time() - start)
    return best, result


def run(traces: str | os.PathLike[str], *, speed: bool = True) -> list[dict[str, Any]]:
    """Run every reference case whose trace is in the folder, beside a ``*_reference.json``.

    With `speed` also time the whole Philly trace, a million jobs and the environment for learning.
    A row has ``source, case, policy, metric, ours, reference, deviation`` (relative; absolute where
    the reference is 0).
    """
    folder = Path(traces)
    rows = [
        *_tiresias(folder),
        *_sessions(folder),
        *_gavel(folder),
        *_limits(folder),
        *_packing(folder),
    ]
    if speed:
        rows += _speed(folder)
    return rows
