# SPDX-License-Identifier: Apache-2.0
"""A tiny net of skorch, which forecasts its own loss."""

import numpy as np
import torch
from skorch import NeuralNetRegressor

from glidepath.adapters.skorch import ForecastCallback

draw = np.random.default_rng(0)
x = draw.standard_normal((512, 10)).astype(np.float32)
y = (x @ np.linspace(-1, 1, 10) + 0.5 * draw.standard_normal(512)).astype(np.float32)[:, None]

torch.manual_seed(0)
net = NeuralNetRegressor(
    torch.nn.Linear,
    module__in_features=10,
    module__out_features=1,
    lr=0.02,
    batch_size=64,
    max_epochs=40,
    # The noise alone has a loss of 0.25.
    callbacks=[("forecast", ForecastCallback(target=0.1, mode="act"))],
    verbose=0,
)
net.fit(x, y)
print(f"stopped after epoch {len(net.history)}")
print("chances, epoch by epoch:", np.round(net.history[:, "forecast_probability"], 2))
