# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Write your own policy
#
# A policy is a function from what may be known now (`Snapshot`) to who runs now (`Plan`). It sees each job's forecast and
# never its future.

# %%
import numpy as np

import glidepath as gp


def likely_seconds(job: gp.Job) -> float:
    """Seconds that the job needs still on its fastest tier, by the median of its forecast."""
    rate = max((option.steps_per_s for option in job.options), default=0.0)
    if len(job.remaining_steps) == 0 or rate == 0:
        return np.inf
    return float(np.median(job.remaining_steps)) / rate


def shortest_first(now: gp.Snapshot) -> gp.Plan:
    """Serve the job with the least left first, and interrupt nobody."""
    free = [tier.nodes * tier.gpus_per_node for tier in now.tiers]
    allocations = list(now.running)
    for held in allocations:
        free[held.tier] -= held.gpus
    running = {held.job for held in allocations}
    for job in sorted((job for job in now.jobs if job.id not in running), key=likely_seconds):
        possible = [option for option in job.options if option.gpus <= free[option.tier]]
        if possible:
            best = max(possible, key=lambda option: option.steps_per_s)
            free[best.tier] -= best.gpus
            allocations.append(gp.Allocation(job.id, best.tier, best.gpus, now.now_s))
    return gp.Plan(allocations=allocations)


# %% [markdown]
# `violations` says what is wrong with a plan; it shares no code with the planner.

# %%
workload = gp.read_workload("../data/workloads/supercom")


def checked(now: gp.Snapshot) -> gp.Plan:
    """Serve as `shortest_first` does, and refuse a plan that breaks a rule."""
    plan = shortest_first(now)
    assert gp.violations(now, plan) == []
    return plan


mine = gp.simulate(workload, checked)
mine

# %% [markdown]
# Beside two of the library's:

# %%
for name, policy in [("fifo", "fifo"), ("srtf", "srtf"), ("mine", shortest_first)]:
    result = gp.simulate(workload, policy)
    wait, jct = result.mean_wait_s / 3600, result.mean_jct_s / 3600
    print(f"{name:6} mean wait {wait:6.2f} h, mean JCT {jct:6.2f} h")
