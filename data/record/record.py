# SPDX-License-Identifier: Apache-2.0
"""Train every run of the table and write the recorded curves.

    python data/record/record.py [--only COLLECTION] [--out DIR] [--parts DIR]

Runs already in the parts folder are kept, so an interrupted recording continues where it stopped.
Seeds are fixed, but another machine or library version may round differently, and its clock and
memory certainly differ.
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

import corpus
import torch
from runs import RUNS, Run
from tasks import TASKS, Task

ROOT = Path(__file__).resolve().parents[2]
RECORDED = "2026-11"
COLUMNS = ("curve", "step", "value", "lr", "valid_loss", "wall_seconds", "memory_mb")
VALID_EVERY = 10  # logged points
NONFINITE_POINTS = 5  # logged after the loss is lost, before the run is given up

SETUP = {
    "docs-transformer": (
        "Decoder-only byte-level transformers (pre-norm, relative positions) predict the next byte "
        "of the Python language reference, 64 bytes at a time."
    ),
    "docs-lstm": (
        "Byte-level LSTMs predict the next byte of the docstrings of Python's standard library, "
        "48 bytes at a time, from a zero state."
    ),
    "docstring-t5": (
        "T5-style encoder-decoders over bytes (relative positions, RMSNorm, no biases), trained "
        "from scratch, write the summary line of a standard-library docstring from its body."
    ),
    "digits-mlp": (
        "Fully connected ReLU networks classify scikit-learn's 8x8 digits with fresh Gaussian "
        "noise on every training image; the held-out images have none."
    ),
    "digits-cnn": (
        "Convolutional ReLU networks classify scikit-learn's 8x8 digits with fresh Gaussian noise "
        "on every training image; the held-out images have none."
    ),
}
NOTES = (
    "value is the mean minibatch cross-entropy (nats) since the previous logged step; lr is that "
    "of the logged step; valid_loss is the cross-entropy of a fixed held-out sample, empty where "
    "not evaluated; wall_seconds counts training and validation since the run's first step, on one "
    "core of a machine that had other work; memory_mb is the peak resident memory of the run's "
    "process so far. Spikes are left in."
)

Row = tuple[str, int, str, str, str, str, str]


def _optimizer(run: Run, model: torch.nn.Module) -> torch.optim.Optimizer:
    if run.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=run.peak_lr, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=run.peak_lr, betas=(0.9, 0.95))


def train(run: Run, task: Task) -> list[Row]:
    """Train one model and return its logged points."""
    torch.manual_seed(run.seed)
    rng = torch.Generator().manual_seed(run.seed)
    model = task.sizes[run.size]()
    optimizer = _optimizer(run, model)
    rows: list[Row] = []
    recent: list[float] = []
    lost = 0
    start = time.perf_counter()
    for step in range(1, run.steps + 1):
        lr = run.lr(step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = task.loss(model, run.batch, rng)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), run.clip)
        optimizer.step()
        recent.append(loss.item())
        if step % run.log_every:
            continue
        value = sum(recent) / len(recent)
        recent.clear()
        valid = ""
        if step % (VALID_EVERY * run.log_every) == 0:
            with torch.no_grad():
                valid = f"{task.valid_loss(model).item():.6g}"
        wall = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            (run.curve, step, f"{value:.6g}", f"{lr:.6g}", valid, f"{wall:.3f}", f"{memory:.1f}")
        )
        lost += not math.isfinite(value)
        if lost == NONFINITE_POINTS:
            break
    return rows


def _part(parts: Path, run: Run) -> Path:
    return parts / run.collection / (run.curve.replace("/", "__") + ".csv")


def _record(run: Run, task: Task, path: Path) -> None:
    rows = train(run, task)
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    unfinished.rename(path)


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
        child = fork.Process(target=_record, args=(run, tasks[run.collection], path))
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


def _write(name: str, origin: str, runs: Sequence[tuple[Run, list[list[str]]]], out: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for _, rows in runs:
        writer.writerows(rows)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    about = {
        "collection": name,
        "metric": "training loss (cross-entropy, nats)",
        "direction": "min",
        "step_unit": "optimizer step",
        "setup": SETUP[origin],
        "recorded": RECORDED,
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scikit-learn", "torch")},
        },
        "seeds": sorted({run.seed for run, _ in runs}),
        "notes": NOTES,
        "has_lr": True,
        "curves": len(runs),
        "points": sum(len(rows) for _, rows in runs),
    }
    (out / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")


def gather(runs: Sequence[Run], parts: Path, out: Path) -> None:
    """Write one CSV and its description per collection; curves that hold NaN or inf go apart."""
    for collection in dict.fromkeys(run.collection for run in runs):
        finite: list[tuple[Run, list[list[str]]]] = []
        nonfinite: list[tuple[Run, list[list[str]]]] = []
        for run in runs:
            if run.collection != collection:
                continue
            with _part(parts, run).open(newline="") as file:
                rows = list(csv.reader(file))
            whole = all(math.isfinite(float(row[2])) for row in rows)
            (finite if whole else nonfinite).append((run, rows))
        _write(collection, collection, finite, out)
        if nonfinite:
            _write(f"{collection}-nonfinite", collection, nonfinite, out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train every run and write the recorded curves.")
    parser.add_argument("--only", choices=sorted(TASKS), help="one collection")
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "curves")
    parser.add_argument("--parts", type=Path, default=ROOT / "build" / "record")
    args = parser.parse_args()
    runs = [run for run in RUNS if args.only in (None, run.collection)]
    if len({(run.collection, run.curve) for run in runs}) != len(runs):
        raise SystemExit("two runs share a curve id")
    torch.set_num_threads(1)
    for name, checksum in corpus.checksums().items():
        print(f"{name}: {checksum}")
    record(runs, args.parts)
    gather(runs, args.parts, args.out)


if __name__ == "__main__":
    main()
