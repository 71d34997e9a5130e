# SPDX-License-Identifier: Apache-2.0
"""What policies make of elastic jobs on T4, RTX 2080 Ti and A100: the workloads of Sia (SOSP 2023).

    python bench/elastic.py FOLDER [--policy NAME ...] [--workload 1 ...] [--in-nodes]
    python bench/elastic.py FOLDER --copies 1 --copies 32

FOLDER has ``sia_throughput.csv.gz``, ``sia_validation.csv.gz`` and ``sia_workloads_philly.csv.gz``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp
from glidepath._csv_rows import csv_rows

# GPUs per node and nodes of Sia's heterogeneous cluster.
TIERS = {"aws": ("T4", 4, 6), "rtx": ("RTX 2080 Ti", 8, 3), "dgx-ext": ("A100", 8, 2)}
# Of each model: epochs, seconds of a restart, and by how much the real cluster was slower than the
# tables: as in Sia's simulator.
MODELS = {
    "bert": (2, 120, 1.2),
    "cifar10": (100, 50, 1.8),
    "deepspeech2": (80, 25, 1.2),
    "imagenet": (90, 250, 1.2),
    "yolov3": (50, 80, 1.2),
}


POLICIES = ("fifo", "las", "srtf", "pollux", "sia", "best_value", "goodput")


class Model:
    """Step times and gradient statistics of a model, as Sia measured them."""

    def __init__(self, name: str, steps: list[dict[str, str]], runs: list[dict[str, str]]) -> None:
        self.epochs, self.restart_s, self.slowdown = MODELS[name]
        # Of each GPU and placement: local batch, seconds of a step, of these in the exchange.
        found: dict[Any, list[tuple[float, float, float]]] = defaultdict(list)
        for row in steps:
            if row["placement"]:
                key: Any = tuple(sorted(map(int, row["placement"])))
            else:
                key = int(row["num_nodes"]), -int(row["num_replicas"])
            values = (row["local_bsz"], row["step_time_s"], row["sync_time_s"])
            found[row["node_type"], key].append(tuple(map(float, values)))  # type: ignore[arg-type]
        self.table = {key: np.array(sorted(rows)).T for key, rows in found.items()}
        by_batch: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
        for row in runs:
            values = (row["progress"], row["grad_sqr"], row["grad_var"])
            by_batch[int(row["batch_size"])].append(tuple(map(float, values)))  # type: ignore[arg-type]
        self.batches = np.array(sorted(by_batch))
        columns = [np.array(by_batch[batch][: self.epochs]).T for batch in self.batches]
        # Progress at the end of each epoch, in steps of the smallest batch.
        self.progress = np.min([each[0] for each in columns], axis=0)
        self.rates: dict[tuple[str, int], float] = {}
        self.sqr, self.var = (np.array([each[k] for each in columns]) for k in (1, 2))

    def steps(self, tier: str, gpus: int) -> Any:
        """Columns of the table for a gang on as few nodes as it needs; None where none is there."""
        per_node = TIERS[tier][1]
        nodes, rest = divmod(gpus, per_node)
        placement = tuple(sorted([per_node] * nodes + [rest] * (rest > 0)))
        found = self.table.get((tier, placement))
        return found if found is not None else self.table.get((tier, (len(placement), -gpus)))

    def rate(self, tier: str, gpus: int) -> float:
        """Useful steps per second: each epoch with the batch of largest goodput."""
        key = tier, gpus
        if key not in self.rates:
            self.rates[key] = self._rate(tier, gpus)
        return self.rates[key]

    def _rate(self, tier: str, gpus: int) -> float:
        table = self.steps(tier, gpus)
        if table is None:  # five nodes of four: between four and six
            around = [self.steps(tier, gpus + k * TIERS[tier][1]) for k in (-1, 1)]
            if any(each is None for each in around):
                return 0.0
            return float(np.mean([self.rate(tier, gpus + k * TIERS[tier][1]) for k in (-1, 1)]))
        best = np.zeros(self.epochs)
        for total in np.unique(np.geomspace(*self.batches[[0, -1]], 200).round()):
            best = np.maximum(best, self.goodput(table, gpus, total))
        if not best.all():
            return 0.0
        lengths = np.diff(self.progress, prepend=0)
        return float(self.progress[-1] / (lengths / best).sum() / self.slowdown)

    def goodput(self, table: Any, gpus: int, total: float) -> Any:
        """Goodput in each epoch with a batch of about `total`; 0 where it is out of range."""
        local, step_s, sync_s = table
        least, most = self.batches[[0, -1]]
        of_gpu = math.ceil(total / gpus)
        passes = math.ceil(of_gpu / local[-1])
        if gpus == 1 and total > least:
            passes = max(2, passes)  # Pollux measures the noise between passes
        per_pass = math.ceil(of_gpu / passes)
        batch = per_pass * passes * gpus
        if per_pass < local[0] or not least <= batch <= most:
            return 0.0
        whole, sync = np.interp(per_pass, local, step_s), np.interp(per_pass, local, sync_s)
        seconds = whole + (passes - 1) * (whole - sync)
        at = np.clip(np.searchsorted(self.batches, batch) - 1, 0, len(self.batches) - 2)
        share = (batch - self.batches[at]) / (self.batches[at + 1] - self.batches[at])
        sqr, var = ((1 - share) * x[at] + share * x[at + 1] for x in (self.sqr, self.var))
        return (var + sqr) / (var * least / batch + sqr) / seconds


def read_models(folder: Path) -> dict[str, Model]:
    steps, runs = (csv_rows(folder / f"sia_{name}.csv.gz") for name in ("throughput", "validation"))
    return {
        name: Model(
            name,
            [row for row in steps if row["app"] == name],
            [row for row in runs if row["app"] == name],
        )
        for name in MODELS
    }


def configurations(per_node: int, gpus: int) -> list[int]:
    """Gangs of Sia: powers of two inside a node, then whole nodes."""
    inside = [2**k for k in range(per_node.bit_length()) if 2**k <= per_node]
    return inside + list(range(2 * per_node, gpus + 1, per_node))


def gangs(model: Model) -> dict[int, list[float]]:
    """Rates on each tier of each gang that some tier has."""
    found: dict[int, list[float]] = {}
    for place, (tier, (_, per_node, nodes)) in enumerate(TIERS.items()):
        for gpus in configurations(per_node, per_node * nodes):
            found.setdefault(gpus, [0.0] * len(TIERS))[place] = model.rate(tier, gpus)
    return {gpus: rates for gpus, rates in found.items() if any(rates)}


def workload(folder: Path, models: dict[str, Model], number: int, copies: int = 1) -> gp.Workload:
    """One of the eight workloads, with each job `copies` times on as many clusters.

    The gang that a job asks for is the largest of Sia's up to the one that was tuned for it.
    """
    tiers = [gp.Tier(gpu, nodes * copies, per_node) for gpu, per_node, nodes in TIERS.values()]
    columns: dict[str, list[Any]] = defaultdict(list)
    rows = csv_rows(folder / "sia_workloads_philly.csv.gz")
    for row in [row for row in rows if int(row["workload"]) == number] * copies:
        model = models[row["model"]]
        rates = gangs(model)
        asked = max(gpus for gpus in rates if gpus <= int(row["gpus"]))
        columns["job"].append(len(columns["job"]))
        columns["submit_s"].append(float(row["submit_s"]))
        columns["gpus"].append(asked)
        columns["job_class"].append(row["model"])
        columns["budget_steps"].append(model.progress[-1])
        columns["steps_per_s"].append(rates.pop(asked))
        columns["restart_s"].append(float(model.restart_s))
        columns["gangs"].append(rates)
    return gp.Workload(tiers, columns, name=f"philly-{number}")


def completion_times(given: argparse.Namespace, models: dict[str, Model]) -> None:
    """Print mean JCT of each policy over the workloads, and what it took."""
    works = [workload(given.folder, models, number) for number in given.workload or range(1, 9)]
    # Sia counts the first start of a job, too, which a simulation does not.
    first = np.mean([np.mean(work.jobs["restart_s"]) for work in works]) / 3600
    columns = ("JCT h", "with start", "spread", "p95 h", "GPU h", "restarts", "makespan h")
    print(f"{'policy':12}" + "".join(f"{column:>11}" for column in columns))
    for policy in given.policy or POLICIES:
        runs = [gp.simulate(work, policy, in_nodes=given.in_nodes, spans=False) for work in works]
        jobs = sum(map(len, works))
        jct = [run.mean_jct_s / 3600 for run in runs]
        figures = (
            *(np.mean(jct), np.mean(jct) + first, np.std(jct, ddof=1)),
            np.mean([run.p95_jct_s for run in runs]) / 3600,
            sum(run.gpu_seconds for run in runs) / 3600 / jobs,
            sum(run.preemptions for run in runs) / jobs,
            np.mean([run.makespan_s for run in runs]) / 3600,
        )
        print(f"{policy:12}" + "".join(f"{figure:11.3f}" for figure in figures), flush=True)
    print(f"{'bound':12}{np.mean([work.lower_bound_jct_s for work in works]) / 3600:11.3f}")


def decisions(given: argparse.Namespace, models: dict[str, Model]) -> None:
    """Print the processor time of a decision on as many clusters with as many jobs.

    The time from one decision to the next, all that the simulation does in between included.
    """
    columns = ("GPUs", "jobs", "live", "rounds", "mean ms", "p99 ms", "most ms")
    print(f"{'policy':12}" + "".join(f"{column:>9}" for column in columns))
    for copies in given.copies:
        work = workload(given.folder, models, (given.workload or [1])[0], copies)
        for policy in given.policy or ("goodput", "sia"):
            at: list[float] = []
            run = gp.simulate(
                work,
                policy,
                in_nodes=given.in_nodes,
                progress=lambda *_, at=at: at.append(time.process_time()),
            )
            rounds = int(run.makespan_s / 60)
            took_ms = 1000 * np.sort(np.diff(at))[-rounds:]  # those between rounds decide nothing
            live = (run.timeline["running"] + run.timeline["queued"]).max()
            figures = (took_ms.mean(), np.quantile(took_ms, 0.99), took_ms[-1])
            print(
                f"{policy:12}{sum(tier.gpus for tier in work.tiers):9}{len(work):9}{live:9}"
                f"{rounds:9}" + "".join(f"{figure:9.2f}" for figure in figures),
                flush=True,
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", action="append", choices=gp.POLICIES)
    parser.add_argument("--workload", action="append", type=int, choices=range(1, 9))
    parser.add_argument("--in-nodes", action="store_true")
    parser.add_argument("--copies", action="append", type=int, help="decision times instead")
    given = parser.parse_args()
    models = read_models(given.folder)
    (decisions if given.copies else completion_times)(given, models)


if __name__ == "__main__":
    main()
