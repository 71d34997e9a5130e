# SPDX-License-Identifier: Apache-2.0
"""Which jobs get which GPUs in the next round? Usage: 03_plan_one_round.py"""

import numpy as np

import glidepath as gp

# Two tiers of 8 and 4 GPUs. Job 0 may run on 4 of either; job 1 needs 8 of tier 0; jobs 2 and 3
# take 2 or 4. The value says what a round of it is worth.
job = np.array([0, 0, 1, 2, 2, 3, 3])
tier = np.array([0, 1, 0, 0, 1, 0, 1])
gpus = np.array([4, 4, 8, 2, 2, 4, 2])
value = np.array([4.0, 7.0, 8.0, 2.5, 3.0, 4.5, 3.5])

plan = gp.solve_round(job, tier, gpus, value, capacity=np.array([8, 4]))
for i in plan.chosen:
    print(f"job {job[i]}: {gpus[i]} GPUs of tier {tier[i]}")
print(f"value {plan.value:.2f}, no plan is worth more than {plan.bound:.2f}")
