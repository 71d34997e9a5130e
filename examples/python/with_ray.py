# SPDX-License-Identifier: Apache-2.0
"""A search by Ray Tune that stops what has nothing left to gain."""

import os
import tempfile

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray import tune

from glidepath.adapters.ray import ForecastStopper

EPOCHS = 30


def train(config: dict[str, float]) -> None:
    """Descend 0.25 + (w - 1)^2."""
    weight = 3.0
    for _ in range(EPOCHS):
        weight -= config["rate"] * 2.0 * (weight - 1.0)
        tune.report({"loss": 0.25 + (weight - 1.0) ** 2})


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
stopper = ForecastStopper("loss", target=0.3, budget=EPOCHS, mode="act")
tuner = tune.Tuner(
    train,
    param_space={"rate": tune.grid_search([0.001, 0.3])},
    tune_config=tune.TuneConfig(reuse_actors=True),
    run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), stop=stopper, verbose=0),
)
results = tuner.fit()
ray.shutdown()
for result in results:
    told = result.metrics
    print(f"rate {told['config']['rate']}: stopped at {told['training_iteration']},", end=" ")
    print(f"chance {told['forecast_probability']:.2f}")
