# SPDX-License-Identifier: Apache-2.0
"""A scheduling policy of your own beside two of the library's.

Usage: 05_write_a_policy.py [FOLDER]
"""

import sys

import numpy as np

import glidepath as gp


def likely_seconds(job: gp.Job) -> float:
    """Seconds that a job is likely to need still on its fastest tier, by its forecast's median."""
    rate = max((option.steps_per_s for option in job.options), default=0.0)
    if len(job.remaining_steps) == 0 or rate == 0:
        return np.inf
    steps = sorted(job.remaining_steps)
    return steps[len(steps) // 2] / rate


def shortest_first(now: gp.Snapshot) -> gp.Plan:
    """The job with the least left goes first, to the fastest tier that has room.

    Nothing is interrupted. A policy is any function from what may be known to what shall run.
    """
    free = [tier.nodes * tier.gpus_per_node for tier in now.tiers]
    allocations = list(now.running)
    for held in allocations:
        free[held.tier] -= held.gpus

    running = {held.job for held in allocations}
    waiting = [job for job in now.jobs if job.id not in running]
    for job in sorted(waiting, key=likely_seconds):
        possible = [option for option in job.options if option.gpus <= free[option.tier]]
        if not possible:
            continue
        best = max(possible, key=lambda option: option.steps_per_s)
        free[best.tier] -= best.gpus
        allocations.append(gp.Allocation(job.id, best.tier, best.gpus, now.now_s))
    return gp.Plan(allocations=allocations)


workload = gp.read_workload(sys.argv[1] if len(sys.argv) > 1 else "data/workloads/supercom")
for name, policy in [("fifo", "fifo"), ("srtf", "srtf"), ("shortest_first", shortest_first)]:
    run = gp.simulate(workload, policy)
    print(
        f"{name:14} mean wait {run.mean_wait_s / 3600:8.2f} h, "
        f"mean JCT {run.mean_jct_s / 3600:8.2f} h"
    )
