# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Fit a run
#
# A training loss falls along a curve with few parameters. Which family describes a run, and how well are its parameters known?

# %%
import matplotlib.pyplot as plt

import glidepath as gp

run = gp.read_traces("../data/curves/docs-transformer.csv.gz")[0]
run

# %% [markdown]
# Without a family the one with the smallest corrected information criterion (AICc) is chosen among the eight.

# %%
fit = gp.fit(run)
fit

# %% [markdown]
# Residuals show more than figures: a wave is a wrong family, a funnel is noise that shrinks. Where a few points are far off,
# `gp.fit(run, robust=True)` gives them less weight.

# %%
plt.axhspan(-2 * fit.sigma, 2 * fit.sigma, color="0.9", label="± 2 sigma")
plt.plot(run.step, run.loss - fit.predict(run.step), ".", label="observed minus fit")
plt.xlabel("step")
_ = plt.legend()

# %% [markdown]
# One family by name, and every parameter with its standard error:

# %%
power = gp.fit(run, family="pow3")
for name, value in power.params.items():
    print(f"{name:6} {value:9.4g} ± {power.stderr[name]:.2g}")
