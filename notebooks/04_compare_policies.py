# ---
# # SPDX-License-Identifier: Apache-2.0
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Compare policies
#
# The same jobs on the same GPUs, scheduled in four ways. Who waits, who finishes, and what does it cost?

# %%
import matplotlib.pyplot as plt

import glidepath as gp

workload = gp.read_workload("../data/workloads/supercom")
results = [gp.simulate(workload, policy) for policy in ("fifo", "srtf", "dare", "best_value")]
results[2]

# %% [markdown]
# Completion times of all jobs, not only their mean:

# %%
for result in results:
    jct_s, share = result.jct_cdf()
    plt.step(jct_s / 3600, share, where="post", label=result.policy)
plt.xlabel("job completion time (hours)")
plt.ylabel("fraction of jobs")
_ = plt.legend()

# %% [markdown]
# Who held which GPUs when, under one of them, and the energy that each takes:

# %%
_ = results[2].plot()

# %%
plt.bar([result.policy for result in results], [result.energy_kwh for result in results])
_ = plt.ylabel("energy (kWh)")

# %% [markdown]
# One workload is one draw of luck. `compare` repeats it over seeds, with users drawn anew; means come with 95 % intervals.

# %%
folder = "../data/workloads/supercom"
many = gp.compare(
    lambda seed: gp.generate_workload(folder, users=15, seed=seed), ["fifo", "dare"], seeds=3
)
for policy, (ratio, half) in many.ratio("mean_jct_s", to="fifo").items():
    print(f"{policy:6} mean JCT {ratio:.2f} ± {half:.2f} of fifo's")
