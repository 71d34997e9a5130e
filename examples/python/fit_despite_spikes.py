# SPDX-License-Identifier: Apache-2.0
"""A fit that spikes do not move."""

import numpy as np

import glidepath as gp

draw = np.random.default_rng(0)
step = np.arange(10.0, 1010.0, 10.0)
loss = 2 + 3 * step**-0.5 + 0.01 * draw.standard_normal(len(step))
loss[[20, 47, 48, 83]] += [1.5, 2.0, 1.0, 3.0]  # four bad batches
run = gp.Trace(step, loss)

plain = gp.fit(run, family="pow3")
robust = gp.fit(run, family="pow3", robust=True)

for name, fit in (("plain", plain), ("robust", robust)):
    print(f"{name:6}: floor {fit.params['floor']:.3f}, sigma {fit.sigma:.3f}; the truth is 2, 0.01")
