# SPDX-License-Identifier: Apache-2.0
"""When will the waiting jobs of a queue start? Their users claim more time than they need."""

import numpy as np

import glidepath as gp

rng = np.random.default_rng(0)
hour = 3600.0
tier = gp.Tier("a100", 2, 4)  # two nodes of four GPUs


def job(number: int, gpus: int, hours: float) -> gp.Job:
    law = hours * hour * np.exp(rng.normal(0.0, 0.5, 32))  # say, from jobs like it
    return gp.Job(number, [gp.Option(0, gpus, 1.0)], submit_s=float(number), remaining_steps=law)


jobs = [job(1, 4, 3.0), job(2, 4, 5.0), job(3, 8, 2.0), job(4, 2, 1.0), job(5, 4, 6.0)]
running = [gp.Allocation(1, 0, 4), gp.Allocation(2, 0, 4)]
snapshot = gp.Snapshot([tier], jobs, running=running, now_s=10.0)

limits = {each.id: 12 * hour for each in jobs}  # what the scheduler counts on
times = gp.start_times(snapshot, "slurm_backfill", believed=limits)
for number, (low, middle, high) in zip(times.job, times.quantiles.T / hour, strict=True):
    print(f"job {number} starts in {middle:.1f} h ({low:.1f} to {high:.1f})")
