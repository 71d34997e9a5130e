#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of a forecast: 200 points, 14 horizons, 19 levels, one core.

    python bench/forecast_speed.py [FOLDER]

Thread CPU time, the best of several rounds, so that other work on the machine counts little. Three
made-up runs, and the first runs of every CSV of FOLDER where one is given. `batch` is a row of 50
rows on the same steps; `add` and `decide` are those of a Watch that has seen the run. Beside them a
fit of pow3 to the same points, measured in the same process, and its ratio to a forecast.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import glidepath as gp


def microseconds(work: Callable[[], object], repeat: int = 30, rounds: int = 5) -> float:
    """Best mean CPU time of `repeat` calls."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(repeat):
            work()
        best = min(best, (time.thread_time() - began) / repeat)
    return 1e6 * best


def main() -> int:
    """Print one line per run."""
    t = np.arange(1.0, 201)
    noise = np.random.RandomState(0).standard_normal(200)
    runs = {
        "power law, noise 1 %": gp.Trace(t, (2 + 3 * t**-0.5) * np.exp(0.01 * noise)),
        "power law, no noise": gp.Trace(t, 2 + 3 * t**-0.5),
        "exponential, noise 3 %": gp.Trace(t, (1 + np.exp(-t / 40)) * np.exp(0.03 * noise)),
    }
    if len(sys.argv) > 1:
        for file in sorted(Path(sys.argv[1]).glob("*.csv*")):
            for trace in gp.read_traces(str(file))[:2]:
                if len(trace) >= 40 and np.isfinite(trace.loss).all():
                    some = np.unique(np.linspace(0, len(trace) - 1, 200).astype(int))
                    name = f"{file.name.split('.')[0]}: {trace.name}"
                    runs[name] = gp.Trace(trace.step[some], trace.loss[some])
    print("forecast  reach  batch  add  decide  pow3 fit  ratio  (us, one core)")
    for name, trace in runs.items():
        last = max(float(trace.step[-1]), 1.0)
        steps = last * np.geomspace(1.01, 5.0, 14)
        target = float(trace.loss[-1]) * 0.98
        single = microseconds(partial(gp.forecast, trace, steps))
        law = microseconds(partial(gp.reach, trace, target, budget=5 * last))
        losses = np.tile(trace.loss, (50, 1))
        batch = microseconds(
            partial(gp.forecast_batch, trace.step, losses, steps, threads=1), repeat=1
        )
        watch = gp.Watch(target=target, budget=5 * last)

        def follow(watch: gp.Watch = watch, trace: gp.Trace = trace) -> None:
            for step, loss in zip(trace.step, trace.loss, strict=True):
                watch.add(step, loss)

        add = microseconds(follow, repeat=3) / len(trace)
        decide = microseconds(watch.decision)
        fit = microseconds(partial(gp.fit, trace, family="pow3"), repeat=3, rounds=3)
        print(
            f"{single:8.0f} {law:6.0f} {batch / 50:6.0f} {add:4.1f} {decide:7.0f} {fit:9.0f}"
            f" {fit / single:6.1f}  {name}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
