# SPDX-License-Identifier: Apache-2.0
"""Workloads to train and judge the policy `learned` on, each a function of its seed."""

from __future__ import annotations

import csv
import gzip
import shutil
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath import _core
from glidepath._simulate import _run

Floats = NDArray[np.float64]
LARGEST_GANG = 64


def generator(*key: object) -> np.random.Generator:
    """Draw from a seed of any words and numbers."""
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


@cache
def columns(file: Path) -> dict[str, Floats]:
    """Rows of (submit_s, gpus, duration_s), by virtual cluster where the trace has them."""
    rows: dict[str, list[tuple[float, ...]]] = {}
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as text:
        for row in csv.DictReader(text):
            job = tuple(float(row[name] or 0) for name in ("submit_s", "gpus", "duration_s"))
            if job[2] > 0 and job[1] <= LARGEST_GANG:
                rows.setdefault(row.get("vc", ""), []).append(job)
    return {cluster: np.array(jobs) for cluster, jobs in rows.items()}


def generated(rng: np.random.Generator, jobs: int) -> tuple[Floats, list[str]]:
    """Bursts of users whose jobs are alike, lognormal durations, gangs of 1 to 16."""
    submit_s = np.cumsum(rng.gamma(rng.uniform(0.3, 1.0), 1, jobs))
    user = rng.integers(0, max(2, jobs // 20), jobs)
    log_s = rng.normal(8, 1.2, jobs)[user] + rng.normal(0, rng.uniform(0.3, 1.5), jobs)
    odds = np.exp(-rng.uniform(0.2, 1.2) * np.arange(5))
    gpus = 2 ** rng.choice(5, jobs, p=odds / odds.sum())
    table = np.stack([submit_s, gpus, np.clip(np.exp(log_s), 30, 3e6)], axis=1)
    return table, [f"user{u}" for u in user]


def window(
    rng: np.random.Generator,
    draw: Mapping[str, Any],
    traces: Path | None,
    clusters: Sequence[str],
    source: str | None = None,
) -> tuple[Floats, list[str]]:
    """Some successive jobs of a trace, or generated ones."""
    jobs = int(rng.integers(*draw["jobs"]))
    source = source or str(rng.choice(["philly", "philly", "philly", "gavel", "generated"]))
    if source == "generated" or traces is None:
        return generated(rng, jobs)
    if traces.is_file():
        table = np.concatenate(list(columns(traces).values()))
        table = table[np.argsort(table[:, 0], kind="stable")]
    elif source == "gavel":
        table = np.concatenate(list(columns(traces / "gavel_msr_seed0.csv.gz").values()))
        table = table[np.argsort(table[:, 0], kind="stable")]
    else:
        chosen = source if source in clusters else str(rng.choice(list(clusters)))
        table = columns(traces / "philly.csv.gz")[chosen]
    first = int(rng.integers(0, max(1, len(table) - jobs)))
    return table[first : first + jobs], []


# What a GPU draws when idle and at most: the limits of an A100, a V100, a P100 and half a K80 card;
# idle as monitors show them.
WATTS = {
    "gpu": (50, 400), "fast": (50, 400), "slow": (40, 300),
    "v100": (40, 300), "p100": (30, 250), "k80": (25, 150),
}  # fmt: skip


def tier(name: str, gpus: int) -> gp.Tier:
    """Nodes of one GPU."""
    idle, busy = WATTS[name]
    return gp.Tier(name, gpus, 1, idle_watts=idle, busy_watts=busy)


def workload(
    rng: np.random.Generator, draw: Mapping[str, Any], jobs: tuple[Floats, list[str]], tiers: int
) -> gp.Workload:
    """The jobs on as many GPUs as give a load that is drawn, of one speed or two."""
    table, users = jobs
    submit_s = table[:, 0] - table[0, 0]
    gpus, duration_s = table[:, 1].astype(int), np.maximum(1, np.ceil(table[:, 2]))
    load = float(np.exp(rng.uniform(*np.log(draw["load"]))))
    span_s, work = max(submit_s.max(), 1.0), float((gpus * duration_s).sum())
    low, high = draw["max_gpus"]
    total = int(max(gpus.max(), low, min(high, round(work / span_s / load))))
    asked: dict[str, Any] = {
        "job": np.arange(len(table)),
        "submit_s": np.floor(submit_s * (work / load / total / span_s)),
        "gpus": gpus,
        "duration_s": duration_s,
    }
    if users:
        asked["user"] = users
    if tiers == 1:
        return gp.Workload([tier("gpu", total)], asked)
    fast = max(int(gpus.max()), round(total * rng.uniform(*draw["fast_share"])))
    slow = max(int(gpus.max()), total - fast)
    unlike = rng.normal(0, rng.uniform(0, draw["unlike"]), len(table))
    speed = np.clip(rng.uniform(*draw["slow_speed"]) * np.exp(unlike), 0.1, 1.2)
    asked["steps_per_s"] = np.stack([np.ones(len(table)), np.round(speed, 3)], axis=1)
    return gp.Workload([tier("fast", fast), tier("slow", slow)], asked)


def gavel(traces: Path, name: str) -> gp.Workload:
    """One of the traces of Gavel on the cluster of its paper."""
    gpus = {"v100": 8, "p100": 16, "k80": 24}
    read = gp.Workload.from_gavel(
        traces / f"{name}.csv.gz", traces / "gavel_throughputs.csv.gz", cluster=gpus
    )
    return gp.Workload([tier(kind, count) for kind, count in gpus.items()], read.jobs, name=name)


DATA = Path(__file__).parents[2] / "data"
SUPERCOM = DATA / "workloads" / "supercom"
# Recorded runs of other tasks than supercom's, which no training saw, for each of its classes.
OTHERS = {
    "bart-small": ("docs-lstm",),
    "flan-t5-small": ("numbers-translation", "digits-contrastive"),
    "flan-t5-base": ("digits-diffusion",),
}
LOGS = 40  # of a run, as of supercom's


def supercom(users: int, seed: int) -> gp.Workload:
    """Jobs with curves and budgets of many users, on three tiers."""
    return gp.generate_workload(SUPERCOM, users=users, seed=seed)


def other_curves(users: int, seed: int) -> gp.Workload:
    """The users, classes and tiers of supercom, whose jobs follow the runs of other tasks."""
    with TemporaryDirectory() as folder:
        write_other_curves(Path(folder))
        return gp.generate_workload(folder, users=users, seed=seed)


def write_other_curves(folder: Path) -> None:
    """Write supercom's folder with other curves, which take as long as those of the class did."""
    for name in ("tiers.csv", "habits.csv"):
        shutil.copy(SUPERCOM / name, folder)
    (folder / "truth").mkdir()
    for collection in sorted({name for names in OTHERS.values() for name in names}):
        with (folder / "truth" / f"{collection}.csv").open("w", newline="") as file:
            write = csv.writer(file)
            write.writerow(("curve", "step", "value"))
            for run in gp.read_traces(DATA / "curves" / f"{collection}.csv.gz"):
                for group in np.array_split(np.arange(len(run)), LOGS):
                    mean = round(float(run.loss[group].mean()), 6)
                    write.writerow((f"{collection}/{run.name}", int(run.step[group[-1]]), mean))
    with (SUPERCOM / "classes.csv").open() as file:
        classes = list(csv.DictReader(file))
    with (folder / "classes.csv").open("w", newline="") as file:
        write = csv.DictWriter(file, classes[0])
        write.writeheader()
        for row in classes:
            length = steps(OTHERS[row["class"]]) / steps(row["curves"].split(";"))
            rates = {
                name: float(row[name]) * length for name in row if name.startswith("steps_per")
            }
            names = ";".join(f"{name}/" for name in OTHERS[row["class"]])
            write.writerow(row | rates | {"curves": names})


def steps(collections: Sequence[str]) -> float:
    """Mean length of the runs of collections, or of those whose names begin so."""
    last = []
    for name in collections:
        collection, _, prefix = name.partition("/")
        runs = gp.read_traces(DATA / "curves" / f"{collection}.csv.gz")
        last += [float(run.step[-1]) for run in runs if run.name.startswith(prefix)]
    return float(np.mean(last))


def play(
    jobs: gp.Workload, policy: str, how: Mapping[str, Any], memo: _core.ForecastMemo
) -> gp.Simulation:
    """Simulate with the forecasts of curves that are there already."""
    return _run(jobs, policy, _core.SimulationOptions(**how, spans=False), memo=memo)


def conditions(rng: np.random.Generator, draw: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `simulate`: errors of the forecasts, restarts, failures."""
    failures = {
        "node_every_s": 86400 * float(rng.choice(draw["node_every_d"])),
        "job_every_s": 86400 * float(rng.choice(draw["job_every_d"])),
        "checkpoint_s": float(rng.choice(draw["checkpoint_s"])),
    }
    return {
        "forecast_sigma": float(rng.choice(draw["sigma"])),
        "restart_s": float(rng.choice(draw["restart_s"])),
        "failures": failures if rng.random() < draw["failing"] else None,
        "seed": int(rng.integers(1 << 30)),
    }
