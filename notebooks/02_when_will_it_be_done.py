# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # When will it be done?
#
# From the first 40 % of a run: what it will log, and by which step it reaches a target.

# %%
import numpy as np

import glidepath as gp

run = gp.read_traces("../data/curves/docstring-t5.csv.gz")[0]
seen = run.until(400)
ahead = gp.forecast(seen, np.linspace(420, 1000, 30))
ahead

# %% [markdown]
# A target is reached at a step, perhaps never: a distribution of steps with some probability at never.

# %%
target = 2.25
reach = gp.reach(seen, target, budget=1000)
reach

# %% [markdown]
# The target in the picture of the forecast, with what happened after.

# %%
later = run.step > 400
ax = ahead.plot()
ax.plot(run.step[later], run.loss[later], "x", label="what happened")
ax.axhline(target, linestyle="--", label=f"target {target:g}")
_ = ax.legend()
