# SPDX-License-Identifier: Apache-2.0
"""Early stopping with a probability in the place of patience."""

import numpy as np

import glidepath as gp

draw = np.random.default_rng(0)
step = np.arange(100.0, 6100.0, 100.0)  # an evaluation every 100 steps, 6000 planned
# The model overfits from step 2000 on.
loss = 1 + 8 * step**-0.5 + 1.5e-4 * np.maximum(step - 2000, 0)
loss += 0.005 * draw.standard_normal(len(step))

for seen in range(4, len(step) + 1):
    run = gp.Trace(step[:seen], loss[:seen], metric="eval_loss", planned_steps=6000)
    best = gp.best_so_far(run)
    if best.prob_past >= 0.95:
        print(f"stop at step {run.step[-1]:.0f}; keep the checkpoint of step {best.step:.0f}")
        break
print(f"the best of the whole run was at step {step[loss.argmin()]:.0f}")
