# SPDX-License-Identifier: Apache-2.0
"""Forecast starts of waiting elastic jobs beside those of the simulation.

    PYTHONPATH=python python bench/elastic_starts.py [--sigma 0.5] [--second-tier]

Jobs of 50 to 3 000 s on one GPU come within 2 000 s and run on 1, 2, 4, ... GPUs at the speed
GPUs^a, a uniform from .5 to .95, under `best_value`. At the last submission each start is forecast
and compared with when the simulation gives the job GPUs next. `wait`: mean seconds of the true
waits; `late`: of the median forecast less them; `off`: of the difference; `within`: share of the
true waits in the 80 % interval; `cpu`: milliseconds of all forecasts, one thread.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import glidepath as gp
from glidepath import _core

WITHIN_S = 2000
# GPUs, jobs, largest gang
CASES = (
    (4, 15, 4), (4, 60, 4), (8, 20, 4), (8, 100, 4), (32, 60, 4), (32, 300, 4), (32, 100, 16),
)  # fmt: skip


def workload(
    gpus: int, jobs: int, largest: int, restart_s: float, seed: int, *, second_tier: bool
) -> gp.Workload:
    """Jobs that may double their gang up to the largest; a second tier is about twice as fast."""
    rng = np.random.default_rng(seed)
    gangs = 2 ** np.arange(1, 1 + int(np.log2(largest)))
    exponents = rng.uniform(0.5, 0.95, jobs)
    columns: dict[str, Any] = {
        "job": np.arange(jobs),
        "submit_s": np.floor(np.sort(rng.uniform(0, WITHIN_S, jobs))),
        "gpus": np.ones(jobs, int),
        "duration_s": rng.uniform(50, 3000, jobs),
        "restart_s": np.full(jobs, restart_s),
    }
    rates = np.ones((jobs, 1))
    tiers = [gp.Tier("a", gpus)]
    if second_tier:
        rates = np.column_stack([rates, 2 * np.exp(0.3 * rng.standard_normal(jobs))])
        tiers.append(gp.Tier("b", gpus))
    columns["steps_per_s"] = rates
    columns["gangs"] = [
        {int(gang): (rate * gang**a).tolist() for gang in gangs}
        for a, rate in zip(exponents, rates, strict=True)
    ]
    return gp.Workload(tiers, columns)


def starts(given: gp.Workload, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """True waits, quantiles of the forecast ones, and CPU seconds of the forecast."""
    spans = gp.simulate(given, "best_value", forecast_sigma=sigma, seed=seed).spans
    options = _core.SimulationOptions(forecast_sigma=sigma, seed=seed)
    last_s = float(given.jobs["submit_s"].max())
    (moment,) = _core.moments_of(given._record, "best_value", options, [last_s], 0)
    snapshot = moment.snapshot(given.tiers)
    begin = time.process_time()
    found = gp.start_times(snapshot, horizon_s=1e9, threads=1)
    cpu_s = time.process_time() - begin
    later = spans["start_s"] > moment.now_s
    true = [
        spans["start_s"][later & (spans["job"] == job)].min(initial=np.inf) - moment.now_s
        for job in found.job
    ]
    ends = np.isfinite(true)  # under `best_value` a job may be ended while it waits
    return np.array(true)[ends], found.quantiles[:, ends], cpu_s


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--second-tier", action="store_true", help="as many GPUs, twice as fast")
    parser.add_argument("--sigma", type=float, default=0.0, help="error of the forecasts")
    args = parser.parse_args()
    print("gpus jobs gang restart_s  waiting   wait   late    off  within   cpu")
    for gpus, jobs, largest in CASES:
        for restart_s in (0.0, 60.0):
            rows = []
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                given = workload(gpus, jobs, largest, restart_s, seed, second_tier=args.second_tier)
                rows.append(starts(given, args.sigma, seed))
            true = np.concatenate([row[0] for row in rows])
            if len(true) == 0:
                continue  # nobody waits
            low, middle, high = np.concatenate([row[1] for row in rows], axis=1)
            within = ((low <= true + 1e-3) & (true <= high + 1e-3)).mean()
            print(
                f"{gpus:4d} {jobs:4d} {largest:4d} {restart_s:9.0f} {len(true):8d} "
                f"{true.mean():6.0f} {(middle - true).mean():6.0f} "
                f"{abs(middle - true).mean():6.0f} {within:7.2f} "
                f"{1e3 * sum(row[2] for row in rows):5.0f}"
            )


if __name__ == "__main__":
    main()
