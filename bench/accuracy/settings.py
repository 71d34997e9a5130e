#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score forecasts of runs that have hardly begun, with and without their settings.

    python bench/accuracy/settings.py FILE.csv.gz ... [--runs 60] [--past 40] [--together]

FILE is a collection of runs whose ids tell their settings: ours, DeepOBS's, MLPerf's. Each of so
many runs, drawn at random, is forecast at its last step after 0, 1, 2, 3, 5, 10, 20 and 40 of its
points, with so many past runs that differ from it in more than the seed. Printed: the mean CRPS in
ranges of the run, at most 1 each, and the share of truths inside the 80 % interval, without past
runs, with past runs, and with settings. `--together` makes one collection of all files, of which
the file is a setting.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

import glidepath as gp

POINTS = (0, 1, 2, 3, 5, 10, 20, 40)
MIN_POINTS = 8  # of a run that is scored
KINDS = ("alone", "past runs", "settings")
LEVELS = [i / 20 for i in range(1, 20)]
OURS = re.compile(
    r"(\w+)-b(\d+)x(\d+)/([a-z]+)_\w+?_(\w+)-lr([\de.-]+?)(-noclip)?(?:-wd([\d.]+))?_s(\d+)$"
)


def settings_of(run: gp.Trace, task: str) -> dict[str, float | str | bool]:
    """What the id of a run says of its settings; what MLPerf's logs show of theirs."""
    if ours := OURS.match(run.name):
        size, batch, steps, schedule, optimizer, lr, no_clip, decay, seed = ours.groups()
        return {
            "task": task,
            "size": size,
            "schedule": schedule,
            "optimizer": optimizer,
            "batch": float(batch),
            "steps": float(steps),
            "lr": float(lr),
            "seed": float(seed),
            "clip": no_clip is None,
            "weight_decay": float(decay or 0),
        }
    if "Optimizer/" in run.name:
        problem, optimizer, rest, seed = run.name.split("/")
        found: dict[str, float | str | bool] = {"problem": problem, "optimizer": optimizer}
        for name, value in re.findall(r"([a-z][a-z_0-9]*?)__([^_]+)", rest + "__" + seed):
            try:
                found[name.strip("_")] = float(value)
            except ValueError:
                found[name.strip("_")] = value
        return found
    system = run.name.rsplit("/", 1)[0]
    interval = float(np.median(np.diff(run.step))) if len(run) > 1 else 1.0
    scaling = "weak" if "weak" in system else "strong"
    return {"round": system[:4], "submitter": system.split("/")[0][5:], "interval": interval,
            "scaling": scaling}  # fmt: skip


def crps(forecast: gp.Forecast, truth: float) -> float:
    """CRPS by the pinball losses of the quantiles."""
    levels, quantiles = np.asarray(forecast.levels), forecast.quantiles[:, 0]
    loss = np.maximum(levels * (truth - quantiles), (levels - 1) * (truth - quantiles))
    return float(2 * np.mean(loss))


def same_settings(a: gp.Trace, b: gp.Trace) -> bool:
    """Whether two runs differ in their seeds at most."""

    def but_seed(run: gp.Trace) -> dict[str, float | str]:
        return {k: v for k, v in run.settings.items() if k not in ("seed", "random_seed")}

    return but_seed(a) == but_seed(b)


def score(name: str, runs: list[gp.Trace], drawn: int, past: int) -> None:
    """Print a row for each number of points."""
    chance = np.random.RandomState(0)
    found: dict[tuple[int, str], list[tuple[float, bool]]] = {}
    for i in chance.permutation(len(runs))[:drawn]:
        run = runs[i]
        others = [each for each in runs if not same_settings(each, run)]
        chosen = [others[k] for k in chance.permutation(len(others))[:past]]
        finite = run.loss[np.isfinite(run.loss)]
        if len(finite) < MIN_POINTS or not np.isfinite(run.loss[-1]) or np.ptp(finite) == 0:
            continue
        learned = gp.PastRuns(chosen)
        for points in (n for n in POINTS if n < len(run) - 1):
            seen = run.until(run.step[points - 1]) if points else run.until(-1e300)
            bare = replace(seen, settings={})
            given = ((bare, None), (bare, learned), (seen, learned))
            for kind, (live, known) in zip(KINDS, given, strict=True):
                ahead = gp.forecast(live, run.step[-1], past=known, levels=LEVELS)
                low, high = (ahead.quantile(p)[0] for p in (0.1, 0.9))
                error = min(crps(ahead, run.loss[-1]) / np.ptp(finite), 1.0)
                inside = bool(low <= run.loss[-1] <= high)
                found.setdefault((points, kind), []).append((error, inside))
    print(f"{name}: {len(runs)} runs, {min(past, len(runs))} past ones")
    print(f"  {'points':>6} {'runs':>5}  " + "".join(f"{kind:>22}" for kind in KINDS))
    for points in POINTS:
        cells = [np.array(found.get((points, k), [])) for k in KINDS]
        if len(cells[0]):
            shown = "".join(f"{c[:, 0].mean():14.3f} / {c[:, 1].mean():.2f} " for c in cells)
            print(f"  {points:6d} {len(cells[0]):5d}  {shown}")


def main() -> None:
    """Score each file, or all of them together."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--past", type=int, default=40)
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    collections = {}
    for path in args.file:
        task = path.name.partition(".")[0]
        collections[task] = [
            replace(run, settings=settings_of(run, task)) for run in gp.read_traces(path)
        ]
    if args.together:
        collections = {"together": [run for runs in collections.values() for run in runs]}
    for name, runs in collections.items():
        score(name, runs, args.runs, args.past)


if __name__ == "__main__":
    main()
