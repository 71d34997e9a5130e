# SPDX-License-Identifier: Apache-2.0
"""What the planner achieves, measured side by side with HiGHS: `glidepath bench plan`.

Times are CPU seconds of one thread, the best of a few runs, so that a busy machine distorts them
little. Rows with a limit say whether it holds.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath._bench.hardware import (
    held_out_scaling_errors,
    held_out_sharing_errors,
    hindsight_sharing_errors,
)
from glidepath._results import require

Columns = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]
]
Row = dict[str, Any]

PARTS = ("rounds", "plans", "exact", "ortools", "highs", "certificates", "scaling", "sharing")
ELASTICFLOW, SIA = "elasticflow_throughputs.csv.gz", "sia_throughput.csv.gz"
GAVEL = "gavel_throughputs.csv.gz"
TABLES = {"scaling": (ELASTICFLOW, SIA), "sharing": (GAVEL,)}  # that a part reads


def random_round(jobs: int, *, seed: int = 0, tiers: int = 3, load: float = 2.0) -> Columns:
    """Columns (job, tier, gpus, value, capacity) of a busy cluster.

    Gangs of 1, 2, 4 and 8 GPUs, about 8.5 options per job, GPUs for 1/load of the demand; values
    scale with gangs to a power of 0.6 to 0.98 and differ between jobs by a lognormal factor.
    """
    rng = np.random.default_rng(seed)
    grid = np.arange(jobs * tiers * 4)
    keep = rng.random(grid.size) < 8.5 / (tiers * 4)
    job, tier, size = grid // (tiers * 4), grid // 4 % tiers, grid % 4
    gpus = 2**size
    worth = rng.lognormal(0.0, 1.0, jobs)
    power = rng.uniform(0.6, 0.98, jobs)
    speed = (1.0 + 0.5 * np.arange(tiers)) * rng.uniform(0.7, 1.3, (jobs, tiers))
    value = worth[job] * speed[job, tier] * gpus ** power[job]
    capacity = np.full(tiers, max(1, round(3.75 * jobs / load / tiers)))
    return job[keep], tier[keep], gpus[keep], value[keep], capacity


def _cpu(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least CPU seconds of a few runs, and the result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.thread_time()
        result = work()
        best = min(best, time.thread_time() - start)
    return best, result


def _highs(
    columns: Columns, *, integer: bool, gap: float = 1e-6, limit_s: float = np.inf
) -> tuple[float, float, float]:
    """CPU seconds, value and bound of HiGHS, which SciPy carries."""
    job, tier, gpus, value, capacity = columns
    jobs, n = int(job.max()) + 1, job.size
    rows = np.stack([job, jobs + tier], axis=1).ravel()
    weights = np.stack([np.ones(n), gpus], axis=1).ravel()
    limit = np.concatenate([np.ones(jobs), capacity]).astype(float)
    cells = weights, (rows, np.repeat(np.arange(n), 2))
    matrix = require("scipy.sparse").csr_matrix(cells, shape=(limit.size, n))
    optimize = require("scipy.optimize")
    start = time.process_time()
    result = optimize.milp(
        -value,
        constraints=optimize.LinearConstraint(matrix, -np.inf, limit),
        integrality=np.full(n, int(integer)),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": gap, "time_limit": limit_s},
    )
    seconds = time.process_time() - start
    if result.x is None:  # nothing found in time
        return seconds, 0.0, np.inf
    bound = -result.mip_dual_bound if integer else -result.fun
    return seconds, float(-result.fun), float(bound)


def _ortools(columns: Columns, seconds: float) -> tuple[float, float, float] | None:
    """CPU seconds, value and bound of OR-tools CP-SAT, where it is installed."""
    try:
        cp_model = importlib.import_module("ortools.sat.python.cp_model")
    except ImportError:
        return None
    job, tier, gpus, value, capacity = columns
    model = cp_model.CpModel()
    take = [model.NewBoolVar("") for _ in range(job.size)]
    for j in range(int(job.max()) + 1):
        model.AddAtMostOne(take[i] for i in np.flatnonzero(job == j))
    for t, room in enumerate(capacity):
        model.Add(sum(int(gpus[i]) * take[i] for i in np.flatnonzero(tier == t)) <= int(room))
    micro = np.round(value * 1e6).astype(np.int64)
    model.Maximize(sum(int(v) * x for v, x in zip(micro, take, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    start = time.process_time()
    solver.Solve(model)
    spent = time.process_time() - start
    return spent, solver.ObjectiveValue() / 1e6, solver.BestObjectiveBound() / 1e6


def _against_ortools(jobs: int) -> list[Row]:
    """CP-SAT beside our round, in its own process: its copy of HiGHS may clash with SciPy's."""
    program = (
        "import json; from glidepath._bench import plan as b;"
        f"print(json.dumps(b._ortools(b.random_round({jobs}, seed={jobs}), 20.0)))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    rival = json.loads(done.stdout)
    if rival is None:
        return []
    columns = random_round(jobs, seed=jobs)
    own_s, own = _cpu(partial(gp.solve_round, *columns), 3)
    seconds, value, bound = rival
    label = f"OR-tools CP-SAT, {jobs:,} jobs"
    return [
        _row(label, 1e3 * seconds, "ms", None),
        _row(f"{label} / own cold round", seconds / own_s, "x", None),
        _row(f"{label}, gap", 100 * (1 - value / bound), "%", None),
        _row(f"{label}, own value below its value", 100 * (1 - own.value / value), "%", None),
        _row(f"{label}, own bound below its value", float(own.bound < value - 1e-3), "times", 0.0),
    ]


def _row(what: str, measured: float, unit: str, limit: float | None, *, least: bool = False) -> Row:
    holds = None if limit is None else bool(measured >= limit if least else measured <= limit)
    return {"what": what, "measured": measured, "unit": unit, "limit": limit, "holds": holds}


def _rounds(sizes: Sequence[int], repeats: int) -> list[Row]:
    """Time and gap of one round, cold and from the prices of the round before."""
    limit_ms = {1_000: 1.5, 10_000: 15.0, 100_000: 200.0}
    limit_gap = {100: 0.3, 1_000: 0.05, 10_000: 0.05, 100_000: 0.05}
    rows = []
    for jobs in sizes:
        columns = random_round(jobs, seed=jobs)
        cold_s, cold = _cpu(partial(gp.solve_round, *columns), repeats)
        drift = np.random.default_rng(1).uniform(0.99, 1.01, columns[3].size)
        later = (*columns[:3], columns[3] * drift, columns[4])
        warm_s, warm = _cpu(partial(gp.solve_round, *later, prices=cold.prices), 2 * repeats)
        limit = limit_ms.get(jobs)
        rows.append(_row(f"round of {jobs:,} jobs, warm", 1e3 * warm_s, "ms", limit))
        four = None if limit is None else 4 * limit
        rows.append(_row(f"round of {jobs:,} jobs, cold", 1e3 * cold_s, "ms", four))
        gap = 100 * max(cold.gap, warm.gap)
        rows.append(_row(f"round of {jobs:,} jobs, certified gap", gap, "%", limit_gap.get(jobs)))
    return rows


def _against_highs(jobs: int) -> list[Row]:
    columns = random_round(jobs, seed=jobs)
    own_s, own = _cpu(partial(gp.solve_round, *columns), 15)
    lp_s, lp, _ = _highs(columns, integer=False)
    label = f"HiGHS LP / own cold round, {jobs:,} jobs"
    return [
        _row(f"HiGHS LP of {jobs:,} jobs", 1e3 * lp_s, "ms", None),
        _row(label, lp_s / own_s, "x", 500.0 if jobs >= 10_000 else None, least=True),
        _row(f"own bound above the LP, {jobs:,} jobs", 100 * (own.bound / lp - 1), "%", 0.02),
    ]


def _certificates(instances: int, jobs: int, gap: float) -> list[Row]:
    """How often the optimum of HiGHS is outside [value, bound].

    Sizes are log-uniform. HiGHS has a second for each: what it has found by then is a plan whose
    value must not be above our bound, and a bound that must not be below our value.
    """
    rng = np.random.default_rng(5)
    below = above = proved = 0
    worst = 0.0
    for seed in range(instances):
        size = round(2 * (jobs / 2) ** rng.uniform())
        load, tiers = float(rng.uniform(0.5, 4)), int(rng.integers(1, 5))
        columns = random_round(size, seed=1000 + seed, tiers=tiers, load=load)
        own = gp.solve_round(*columns)
        _, value, bound = _highs(columns, integer=True, gap=gap, limit_s=1.0)
        # HiGHS proves optimum <= bound and has a plan worth value.
        below += own.bound < value * (1 - 1e-9)
        above += own.value > bound * (1 + 1e-9)
        proved += bound <= value * (1 + 2 * gap)
        if value > 0:
            worst = max(worst, 1 - own.value / value)
    label = f"{instances} instances of 2 to {jobs} jobs"
    return [
        _row(f"bound below what HiGHS found, {label}", float(below), "times", 0.0),
        _row(f"value above the bound of HiGHS, {label}", float(above), "times", 0.0),
        _row(f"worst value below what HiGHS found, {label}", 100 * worst, "%", None),
        _row(f"of these HiGHS proved its optimum, {label}", float(proved), "times", None),
    ]


def _exhaustive(columns: Columns) -> float:
    """Optimum by trying every choice."""
    job, tier, gpus, value, capacity = columns
    groups = [np.flatnonzero(job == j) for j in np.unique(job)]

    def best(index: int, room: tuple[int, ...]) -> float:
        if index == len(groups):
            return 0.0
        top = best(index + 1, room)
        for option in groups[index]:
            t, k = int(tier[option]), int(gpus[option])
            if room[t] >= k:
                rest = (*room[:t], room[t] - k, *room[t + 1 :])
                top = max(top, float(value[option]) + best(index + 1, rest))
        return top

    return best(0, tuple(int(room) for room in capacity))


def _small(instances: int) -> list[Row]:
    """Up to 8 jobs against every choice (few options, so that Python can try them all)."""
    wrong = 0
    for seed in range(instances):
        rng = np.random.default_rng(seed)
        jobs = 2 + seed % 7
        job, tier, gpus, value, capacity = random_round(jobs, seed=seed, tiers=1 + seed % 3)
        keep = rng.random(job.size) < min(1.0, 3.0 * jobs / job.size)
        columns = (job[keep], tier[keep], gpus[keep], value[keep], capacity)
        best = _exhaustive(columns)
        wrong += abs(gp.solve_round(*columns).value - best) > 1e-9 * max(best, 1e-300)
    return [_row(f"differs from exhaustive search, {instances} x 2-8 jobs", wrong, "times", 0.0)]


def random_snapshot(jobs: int, *, seed: int = 0) -> gp.Snapshot:
    """Live jobs with forecasts on three tiers, a third of the GPUs held."""
    rng = np.random.default_rng(seed)
    job, tier, gpus, _, capacity = random_round(jobs, seed=seed)
    tiers = [
        gp.Tier(name, int(c) // 8 + 1, 8, memory_gb=24, idle_watts=20, busy_watts=300)
        for name, c in zip(("bronze", "silver", "gold"), capacity, strict=True)
    ]
    first = np.searchsorted(job, np.arange(jobs + 1))
    live, running, left = [], [], [t.gpus // 3 for t in tiers]
    for j in range(jobs):
        ways = [
            gp.Option(int(t), int(k), float(rng.uniform(0.7, 1.3) * (1 + t) * k**0.85))
            for t, k in zip(
                tier[first[j] : first[j + 1]], gpus[first[j] : first[j + 1]], strict=True
            )
        ] or [gp.Option(0, 1, 1.0)]
        steps = np.sort(rng.lognormal(9, 1) * rng.lognormal(0, 0.5, 64))
        steps[int(64 * rng.uniform(0.6, 1.0)) :] = np.inf
        live.append(
            gp.Job(j, ways, memory_gb=8, attained_s=10.0, restart_s=60, remaining_steps=steps)
        )
        if ways[0].gpus <= left[ways[0].tier]:
            left[ways[0].tier] -= ways[0].gpus
            running.append(gp.Allocation(j, ways[0].tier, ways[0].gpus, 0.0))
    return gp.Snapshot(tiers, live, running=running, now_s=1000.0)


def _plans(sizes: Sequence[int], repeats: int) -> list[Row]:
    limit_ms = {100: 0.5, 10_000: 50.0}
    rows = []
    for jobs in sizes:
        snapshot = random_snapshot(jobs, seed=jobs)
        prices = gp.plan(snapshot).prices
        seconds, plan = _cpu(partial(gp.plan, snapshot, prices=prices), 3 * repeats)
        label = f"plan of {jobs:,} live jobs"
        rows.append(_row(label, 1e3 * seconds, "ms", limit_ms.get(jobs)))
        rows.append(_row(f"{label}, certified gap", 100 * plan.gap, "%", None))
        found = gp.violations(snapshot, plan)
        rows.append(_row(f"{label}, violations", float(len(found)), "", 0.0))
    return rows


def _gittins() -> list[Row]:
    samples = np.sort(np.random.default_rng(0).lognormal(3, 1, 1000))
    gp.gittins_index(samples)
    count = 2000

    def many() -> None:
        for _ in range(count):
            gp.gittins_index(samples)

    seconds, _ = _cpu(many, 5)
    return [_row("Gittins index of 1 000 sorted samples", 1e6 * seconds / count, "us", 2.0)]


def _scaling(traces: Path, most: int | None) -> list[Row]:
    rows = []
    for name, table, strict in (
        ("elasticflow", ELASTICFLOW, False),
        ("elasticflow", ELASTICFLOW, True),
        ("sia", SIA, False),
    ):
        errors = 100 * held_out_scaling_errors(traces / table, most=most, strict=strict)
        label = f"held-out GPU counts{' of all batch sizes' * strict}, {name} ({errors.size})"
        rows.append(_row(f"{label}, median error", float(np.median(errors)), "%", 5.0))
        rows.append(_row(f"{label}, 90th percentile", float(np.quantile(errors, 0.9)), "%", 15))
    return rows


def _sharing(traces: Path) -> list[Row]:
    rows = []
    for leave, label, limit in (
        ("kind", "every pair of a model at one batch size", 0.055),
        ("model", "every pair of a model", 0.055),
        ("profiled", "the same but beside one job of each other model", None),
        ("pair", "single pairs", None),
    ):
        errors = held_out_sharing_errors(traces / GAVEL, leave)
        rows.append(_row(f"sharing, held out: {label} ({errors.size})", errors.mean(), "", limit))
    hindsight = hindsight_sharing_errors(traces / GAVEL)
    label = "sharing, in hindsight: sums of two numbers a kind"
    rows.append(_row(f"{label} ({hindsight.size})", hindsight.mean(), "", None))
    return rows


def _check_tables(part: str, traces: Path | None) -> None:
    """Refuse a part without its tables before others have run for minutes."""
    for table in TABLES.get(part, ()):
        if traces is None:
            raise gp.InputError(f"bench plan: the part '{part}' needs traces, a folder of tables")
        if not (traces / table).is_file():
            raise gp.IoError(f"{traces / table}: no such table, the part '{part}' needs it")


def run(
    *,
    parts: Sequence[str] | None = None,
    quick: bool = False,
    instances: int = 500,
    largest: int = 1000,
    traces: str | Path | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Row]:
    """Measure the planner: the `parts` of `PARTS`, with `quick` at small sizes.

    The certificates of so many random `instances`, of up to `largest` jobs, are checked against the
    MILP of HiGHS. `traces` is the folder with the throughput tables of Elasticflow, Sia and Gavel,
    without which scaling and sharing are left out of the parts by default. A row has ``what``,
    ``measured``, ``unit``, ``limit`` (None = for information) and ``holds``. InputError for an
    unknown part, or for one that needs `traces`; IoError for a table that is not there.
    """
    sizes, repeats = ((100, 1_000), 3) if quick else ((100, 1_000, 10_000, 100_000), 5)
    if quick:
        instances, largest = min(instances, 10), min(largest, 30)
    measure: dict[str, Callable[[], list[Row]]] = {
        "rounds": lambda: _rounds(sizes, repeats),
        "plans": lambda: _plans((100, 10_000), repeats) + _gittins(),
        "exact": lambda: _small(200),
        "ortools": lambda: _against_ortools(300),
        "highs": lambda: _against_highs(200 if quick else 10_000),
        "certificates": lambda: _certificates(instances, largest, 1e-6),
    }
    folder = None if traces is None else Path(traces)
    if folder is not None:
        measure["scaling"] = lambda: _scaling(folder, 10 if quick else None)
        measure["sharing"] = lambda: _sharing(folder)
    chosen = list(parts or [part for part in measure if part != "ortools" or not quick])
    for part in chosen:
        if part not in PARTS:
            known = ", ".join(PARTS)
            raise gp.InputError(f"bench plan: no part '{part}', expected one of {known}")
        _check_tables(part, folder)
    rows: list[Row] = []
    for done, part in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen))
        rows += measure[part]()
    return rows
