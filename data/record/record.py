# SPDX-License-Identifier: Apache-2.0
"""Train every run of the table and write the recorded curves.

    python data/record/record.py [--only COLLECTION ...] [--out DIR] [--parts DIR]

A collection is one file of what its runs train on and, for the tasks of small_tasks.py, one of a
metric on held-out examples. Runs already in the parts folder are kept, so an interrupted recording
continues where it stopped. Seeds are fixed, but another machine or library version may round
differently, and its clock and memory certainly differ.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import multiprocessing
import platform
import resource
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import corpus
import torch
from about import ABOUT, METRIC_NOTES, About
from runs import RUNS as CHOSEN
from runs import Run
from search import searched
from small_tasks import SMALL_TASKS
from tasks import TASKS as FIRST_TASKS
from tasks import Task

ROOT = Path(__file__).resolve().parents[2]
RECORDED = "2026-11"
TASKS = FIRST_TASKS | SMALL_TASKS
RUNS = (*CHOSEN, *searched())
COLUMNS = ("curve", "step", "value", "lr", "valid_loss", "wall_seconds", "memory_mb")
METRIC_COLUMNS = ("curve", "step", "value", "lr", "wall_seconds")
VALID_EVERY = 10  # logged points
METRIC_EVERY = 4
NONFINITE_POINTS = 5  # logged after the loss is lost, before the run is given up

Row = tuple[str, int, str, str, str, str, str]
MetricRow = tuple[str, int, str, str, str]
Rows = list[list[str]]
Recorded = Sequence[tuple[Run, Rows]]


def _optimizer(run: Run, model: torch.nn.Module) -> torch.optim.Optimizer:
    weights = model.parameters()
    match run.optimizer:
        case "sgd":
            return torch.optim.SGD(weights, lr=run.peak_lr, momentum=0.9)
        case "rmsprop":
            return torch.optim.RMSprop(weights, lr=run.peak_lr)
        case "adagrad":
            return torch.optim.Adagrad(weights, lr=run.peak_lr)
        case "adamw":
            return torch.optim.AdamW(
                weights, lr=run.peak_lr, betas=(0.9, 0.95), weight_decay=run.weight_decay
            )


def train(run: Run, task: Task) -> tuple[list[Row], list[MetricRow]]:
    """Train one model; return the logged points of what it trains on and of the metric."""
    torch.manual_seed(run.seed)
    rng = torch.Generator().manual_seed(run.seed)
    model = task.sizes[run.size]()
    optimizer = _optimizer(run, model)
    rows: list[Row] = []
    scores: list[MetricRow] = []
    recent: list[float] = []
    lost = 0
    start = time.perf_counter()
    for step in range(1, run.steps + 1):
        lr = run.lr(step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss, recorded = task.loss(model, run.batch, rng)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), run.clip)
        optimizer.step()
        recent.append(recorded.item())
        if step % run.log_every:
            continue
        value = sum(recent) / len(recent)
        recent.clear()
        valid = ""
        if step % (VALID_EVERY * run.log_every) == 0:
            with torch.no_grad():
                held_out = task.valid_loss(model)
            valid = "" if held_out is None else f"{held_out.item():.6g}"
        wall = time.perf_counter() - start
        if task.metric is not None and step % (METRIC_EVERY * run.log_every) == 0:
            with torch.no_grad():
                score = task.metric.score(model).item()
            scores.append((run.curve, step, f"{score:.6g}", f"{lr:.6g}", f"{wall:.3f}"))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            (run.curve, step, f"{value:.6g}", f"{lr:.6g}", valid, f"{wall:.3f}", f"{memory:.1f}")
        )
        lost += not math.isfinite(value)
        if lost == NONFINITE_POINTS:
            break
    return rows, scores


def _part(parts: Path, run: Run, metric: str = "") -> Path:
    return (
        parts / run.collection / (run.curve.replace("/", "__") + f"{metric and '-' + metric}.csv")
    )


def _store(rows: Sequence[tuple[Any, ...]], path: Path) -> None:
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    unfinished.rename(path)


def _record(run: Run, task: Task, parts: Path) -> None:
    rows, scores = train(run, task)
    if task.metric is not None:
        _store(scores, _part(parts, run, task.metric.name))
    _store(rows, _part(parts, run))  # the last one: a run with this file is finished


def record(runs: Sequence[Run], parts: Path) -> None:
    """Train the runs that are missing, each in a process of its own so that memory is its own."""
    fork = multiprocessing.get_context("fork")
    tasks: dict[str, Task] = {}
    for number, run in enumerate(runs, start=1):
        path = _part(parts, run)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if run.collection not in tasks:
            tasks[run.collection] = TASKS[run.collection]()
        start = time.perf_counter()
        child = fork.Process(target=_record, args=(run, tasks[run.collection], parts))
        child.start()
        child.join()
        if child.exitcode != 0:
            raise SystemExit(f"{run.collection} {run.curve}: exit status {child.exitcode}")
        last = path.read_text().splitlines()[-1].split(",")[2]
        seconds = time.perf_counter() - start
        print(
            f"[{number}/{len(runs)}] {run.collection} {run.curve}: {last} in {seconds:.1f} s",
            flush=True,
        )


def _write(name: str, about: About, columns: Sequence[str], runs: Recorded, out: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for _, rows in runs:
        writer.writerows(rows)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    record = {
        "collection": name,
        "metric": about.metric,
        "direction": about.direction,
        "step_unit": "optimizer step",
        "setup": about.setup,
        "recorded": RECORDED,
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scikit-learn", "torch")},
        },
        "seeds": sorted({run.seed for run, _ in runs}),
        "notes": about.notes,
        "has_lr": True,
        "curves": len(runs),
        "points": sum(len(rows) for _, rows in runs),
        **(
            {"beside": about.beside}
            if about.beside
            else {"settings": {run.curve: run.settings() for run, _ in runs}}
        ),
    }
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _rows(path: Path) -> Rows:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def _lost(runs: Recorded) -> set[Run]:
    return {run for run, rows in runs if not all(math.isfinite(float(row[2])) for row in rows)}


def _write_both(
    name: str, about: About, columns: Sequence[str], runs: Recorded, lost: set[Run], out: Path
) -> None:
    """Write the runs that are lost to NaN or infinity apart; one with no row is in neither file."""
    for title, apart in ((name, False), (f"{name}-nonfinite", True)):
        part = [(run, rows) for run, rows in runs if rows and (run in lost) == apart]
        if part:
            _write(title, about, columns, part, out)


def gather(runs: Sequence[Run], parts: Path, out: Path) -> None:
    """Write one CSV and its description per collection, and per metric of a collection."""
    for collection in dict.fromkeys(run.collection for run in runs):
        mine = [run for run in runs if run.collection == collection]
        found = [(run, _rows(_part(parts, run))) for run in mine]
        lost = _lost(found)
        _write_both(collection, ABOUT[collection], COLUMNS, found, lost, out)
        metric = TASKS[collection]().metric
        if metric is not None:
            about = About(
                ABOUT[collection].setup, metric.text, metric.direction, METRIC_NOTES, collection
            )
            found = [(run, _rows(_part(parts, run, metric.name))) for run in mine]
            lost |= _lost(found)
            name = f"{collection}-{metric.name}"
            _write_both(name, about, METRIC_COLUMNS, found, lost, out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train every run and write the recorded curves.")
    parser.add_argument("--only", choices=sorted(TASKS), nargs="+", help="collections")
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "curves")
    parser.add_argument("--parts", type=Path, default=ROOT / "build" / "record")
    args = parser.parse_args()
    runs = [run for run in RUNS if not args.only or run.collection in args.only]
    if len({(run.collection, run.curve) for run in runs}) != len(runs):
        raise SystemExit("two runs share a curve id")
    torch.set_num_threads(1)
    for name, checksum in corpus.checksums().items():
        print(f"{name}: {checksum}")
    record(runs, args.parts)
    gather(runs, args.parts, args.out)


if __name__ == "__main__":
    main()
