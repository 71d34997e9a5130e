# SPDX-License-Identifier: Apache-2.0
"""CPU time of one plan of many live jobs on twelve crowded tiers, in milliseconds.

    PYTHONPATH=python python bench/live_jobs.py

Each job may run on each tier, with a gang of 1, 2, 4 or 8 GPUs and 64 samples of its forecast; the
GPUs are a third of what all would take. Then the same within nodes of 8, and with odd gangs.
"""

import hashlib
import time
from functools import partial

import numpy as np

import glidepath as gp

TIERS, SAMPLES, LOAD, TIMES = 12, 64, 3.0, 5
GANGS, ODD_GANGS = (1, 2, 4, 8), (1, 2, 3, 4, 6, 8)


def snapshot(jobs: int, gangs: tuple[int, ...]) -> gp.Snapshot:
    """Lognormal jobs with other speeds on each tier."""
    rng = np.random.default_rng(0)
    gpus = rng.choice(gangs, size=jobs)
    steps = np.exp(8 + 1.5 * rng.standard_normal(jobs))
    nodes = max(1, int(gpus.sum() / LOAD / TIERS / 8))
    live = []
    for j in range(jobs):
        samples = np.sort(steps[j] * np.exp(0.5 * rng.standard_normal(SAMPLES)))
        speeds = 1 + 0.1 * rng.integers(0, 8, TIERS)
        options = [
            gp.Option(tier=t, gpus=int(gpus[j]), steps_per_s=float(speed))
            for t, speed in enumerate(speeds)
        ]
        live.append(gp.Job(id=j, options=options, remaining_steps=samples))
    return gp.Snapshot(tiers=[gp.Tier(f"t{t}", nodes, 8) for t in range(TIERS)], jobs=live)


def least_ms(make: partial[gp.Plan]) -> tuple[float, gp.Plan]:
    """The least time of some, and the plan."""
    times = []
    for _ in range(TIMES):
        begin = time.process_time()
        made = make()
        times.append(time.process_time() - begin)
    return 1e3 * min(times), made


def main() -> None:
    """Print a line for each case; the digest tells whether plans kept their bytes."""
    print("  jobs      gangs  in nodes  cold ms  warm ms  digest")
    for jobs in (1000, 10000):
        for name, gangs, in_nodes in (
            ("even", GANGS, False),
            ("even", GANGS, True),
            ("odd", ODD_GANGS, True),
        ):
            given = snapshot(jobs, gangs)
            cold, made = least_ms(partial(gp.plan, given, in_nodes=in_nodes))
            again = partial(gp.plan, given, prices=made.prices, in_nodes=in_nodes)
            warm, _ = least_ms(again)
            answer = repr((made.allocations, made.reasons, made.value, made.bound, made.prices))
            digest = hashlib.sha256(answer.encode()).hexdigest()[:12]
            print(f"{jobs:6} {name:>10} {in_nodes!s:>9} {cold:8.1f} {warm:8.1f}  {digest}")


if __name__ == "__main__":
    main()
