# SPDX-License-Identifier: Apache-2.0
"""Train language models of source code on one GPU and write the recorded curves.

    python data/record/code_gpt.py tokens.npz --parts DIR [--seconds N]

A run is captured once as a CUDA graph and replayed step by step, so its clock is that of the GPU.
Runs are trained in the order of the table until the seconds are used up; a run that would not be
finished is not begun. Seeds are fixed, but another card or library version rounds differently.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from code_model import Text, Trainer
from code_runs import VALID_EVERY, Run, table

LOG_EVERY = 10  # steps


def train(trainer: Trainer, keep: frozenset[int]) -> tuple[list[list[str]], dict[int, Any]]:
    """Train; return the logged points and the checkpoints after the steps to keep."""
    run = trainer.run
    rows: list[list[str]] = []
    kept: dict[int, Any] = {}
    device = trainer.text.tokens.device
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for step in range(1, run.steps + 1):
        trainer.step()
        if step in keep:
            kept[step] = trainer.state()
        if step % LOG_EVERY:
            continue
        value = trainer.losses[step - LOG_EVERY : step].mean().item()
        valid = f"{trainer.valid_loss():.6g}" if step % VALID_EVERY == 0 else ""
        wall = time.perf_counter() - start
        memory = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0.0
        rows.append(
            [
                run.curve,
                str(run.first_step + step),
                f"{value:.6g}",
                f"{run.lr(step):.6g}",
                valid,
                f"{wall:.3f}",
                f"{memory:.1f}",
            ]
        )
        if not math.isfinite(value):
            break
    return rows, kept


def record(runs: list[Run], text: Text, parts: Path, seconds: float) -> None:
    """Train the runs one after the other, with the checkpoints that later ones begin from."""
    device = text.tokens.device
    checkpoints: dict[str, Any] = {}
    begun = time.perf_counter()
    pace: dict[tuple[str, int], float] = {}  # seconds per step of a size and batch
    for number, run in enumerate(runs, start=1):
        left = seconds - (time.perf_counter() - begun)
        if run.steps * pace.get((run.size, run.batch), 0.004) > left:
            print("no time for", run.collection, run.curve, flush=True)
            continue
        if run.begins_from and run.begins_from not in checkpoints:
            continue
        branches = [later.begins_from for later in runs if later.begins_from]
        keep = {int(at) for curve, at in (b.split("@", 1) for b in branches) if curve == run.curve}
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        trainer = Trainer(run, text, checkpoints.get(run.begins_from))
        ready = time.perf_counter()
        rows, kept = train(trainer, frozenset(keep))
        for step, state in kept.items():
            checkpoints[f"{run.curve}@{step}"] = state
        done = time.perf_counter()
        pace[run.size, run.batch] = (done - start) / run.steps
        part = parts / f"{run.collection}__{run.curve.replace('/', '__')}.csv"
        with part.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        with (parts / "settings.jsonl").open("a") as file:
            file.write(json.dumps({"curve": run.curve, **asdict(run)}) + "\n")
        print(
            f"[{number}/{len(runs)}] {run.collection} {run.curve}: {rows[-1][2]}, {rows[-1][4]} in "
            f"{ready - start:.1f} + {done - ready:.1f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Train language models of code on one GPU.")
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--only", default="", help="train the runs whose curve has this in it")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokens = torch.from_numpy(np.load(args.tokens)["tokens"].astype(np.int16)).to(device)
    args.parts.mkdir(parents=True, exist_ok=True)
    runs = [run for run in table() if args.only in run.curve]
    print(
        len(runs), "runs,", sum(run.steps for run in runs), "steps,", torch.__version__, flush=True
    )
    record(runs, Text(tokens), args.parts, args.seconds)


if __name__ == "__main__":
    main()
