# SPDX-License-Identifier: Apache-2.0
"""A tiny model trained by Keras, which forecasts its own loss."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

from glidepath.adapters.keras import ForecastCallback

draw = np.random.default_rng(0)
x = draw.standard_normal((512, 10))
y = x @ np.linspace(-1, 1, 10) + 0.5 * draw.standard_normal(512)

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.02), "mse")

# The noise alone has a loss of 0.25.
callback = ForecastCallback(target=0.1, monitor="val_loss", mode="act")
history = model.fit(
    x[:384],
    y[:384],
    validation_data=(x[384:], y[384:]),
    batch_size=64,
    epochs=40,
    callbacks=[callback],
    verbose=0,
)
print(f"stopped after epoch {len(history.epoch)}: {callback.adviser.decision}")
print("chances, epoch by epoch:", np.round(history.history["forecast_probability"], 2))
