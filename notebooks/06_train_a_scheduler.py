# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Train a scheduler
#
# `learned` is the planner with each job's value corrected by a small function. Here three of its weights are searched on
# jobs of our own; `bench/train_policy` searches all of them.

# %%
import tempfile
from pathlib import Path

import numpy as np

import glidepath as gp


def draw(seed: int, jobs: int = 80) -> gp.Workload:
    """Draw jobs for eight fast GPUs and eight slow ones."""
    rng = np.random.default_rng(seed)
    return gp.Workload(
        [gp.Tier("fast", 8, 1), gp.Tier("slow", 8, 1)],
        {
            "job": np.arange(jobs),
            "submit_s": np.floor(np.cumsum(rng.exponential(900, jobs))),
            "gpus": 2 ** rng.integers(0, 4, jobs),
            "duration_s": np.ceil(np.exp(rng.normal(8, 1.3, jobs))),
            "steps_per_s": np.stack([np.ones(jobs), rng.uniform(0.3, 0.8, jobs)], axis=1),
        },
    )


OPTIONS = {"forecast_sigma": 0.5, "restart_s": 60.0, "spans": False}

# %% [markdown]
# Values of zero are the planner itself; the ranges in which they hold stay those that are built in.

# %%
values = gp.learned_values()
values[:56] = 0
keeps, spread, progress = 6, 2, 3  # weights of plans, as `src/plan/learned.cpp` orders them


def jct(workloads: list[gp.Workload], weights: np.ndarray) -> float:
    """Mean JCT in hours."""
    mine = values.copy()
    mine[[keeps, spread, progress]] = weights
    planner = {"learned": mine}
    runs = [gp.simulate(each, "learned", planner=planner, **OPTIONS) for each in workloads]
    return float(np.mean([run.mean_jct_s for run in runs])) / 3600


seen = [draw(seed) for seed in range(6)]
planner = np.mean([gp.simulate(each, "best_value", **OPTIONS).mean_jct_s for each in seen]) / 3600
assert jct(seen, np.zeros(3)) == planner

# %% [markdown]
# An evolution: try some weights around the best so far, keep the best.

# %%
rng = np.random.default_rng(0)
best, curve = np.zeros(3), [planner]
for _ in range(8):
    tried = [best + 0.2 * rng.standard_normal(3) for _ in range(4)]
    costs = [jct(seen, weights) for weights in tried]
    if min(costs) < curve[-1]:
        best = tried[int(np.argmin(costs))]
    curve.append(min(curve[-1], *costs))
print("mean JCT in hours:", " ".join(f"{hours:.3f}" for hours in curve))

# %% [markdown]
# What was found on these jobs has to be judged on others.

# %%
unseen = [draw(seed) for seed in range(100, 108)]
base = np.array([gp.simulate(each, "best_value", **OPTIONS).mean_jct_s for each in unseen])
mine = np.array([3600 * jct([each], best) for each in unseen])
ratio = np.log(mine / base)
half = 2.365 * ratio.std(ddof=1) / np.sqrt(len(ratio))
print(f"learned / best_value on unseen jobs: {np.exp(ratio.mean()):.3f} ± {half:.3f}")

# %%
values[[keeps, spread, progress]] = best
file = Path(tempfile.mkdtemp()) / "learned.txt"
gp.write_learned_values(values, file)
gp.simulate(unseen[0], "learned", planner={"learned": file}, **OPTIONS)
