# SPDX-License-Identifier: Apache-2.0
"""Time of one decision of `learned` beside `jct`: python bench/train_policy/decision_time.py [JOBS]

A plan of so many live jobs (1 000) on two tiers, each with 40 samples of what it still needs; the
least of 20 calls.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import glidepath as gp


def snapshot(jobs: int) -> gp.Snapshot:
    """Jobs of 1 to 8 GPUs for 64 fast and 64 slow ones."""
    rng = np.random.default_rng(0)
    live = []
    for job in range(jobs):
        steps = np.sort(np.exp(rng.normal(8 + rng.normal(), 0.5, 40)))
        gpus = int(2 ** rng.integers(0, 4))
        options = [gp.Option(tier=t, gpus=gpus, steps_per_s=rate) for t, rate in ((0, 1), (1, 0.5))]
        live.append(gp.Job(id=job, options=options, remaining_steps=steps.tolist()))
    tiers = [gp.Tier("fast", 64, 1), gp.Tier("slow", 64, 1)]
    return gp.Snapshot(now_s=0.0, tiers=tiers, jobs=live, running=[])


def main() -> None:
    """Print milliseconds."""
    now = snapshot(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    for objective in ("jct", "learned"):
        times = []
        for _ in range(20):
            began = time.process_time()
            plan = gp.plan(now, objective=objective, reasons=False)
            times.append(time.process_time() - began)
        print(f"{objective}: {1e3 * min(times):.2f} ms, {plan.fallback or 'not left for jct'}")


if __name__ == "__main__":
    main()
