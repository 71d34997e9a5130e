# SPDX-License-Identifier: Apache-2.0
"""A search by Optuna that prunes what the forecast says cannot win."""

import numpy as np
import optuna

from glidepath.adapters.optuna import ForecastPruner

EPOCHS = 40


def train(trial: optuna.Trial) -> float:
    """Descend 0.25 + (w - 1)^2 with noise on what is seen of it."""
    rate = trial.suggest_float("rate", 1e-4, 0.3, log=True)
    noise = np.random.default_rng(trial.number)
    weight, loss = 3.0, 0.0
    for epoch in range(1, EPOCHS + 1):
        weight -= rate * 2.0 * (weight - 1.0)
        loss = 0.25 + (weight - 1.0) ** 2 + 0.01 * noise.standard_normal()
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


optuna.logging.set_verbosity(optuna.logging.WARNING)
sampler = optuna.samplers.RandomSampler(seed=1)
study = optuna.create_study(sampler=sampler, pruner=ForecastPruner(EPOCHS, mode="act"))
study.optimize(train, n_trials=15)

pruned = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
steps = sum(len(trial.intermediate_values) for trial in study.trials)
print(
    f"best {study.best_value:.3f}; {len(pruned)} of 15 trials pruned, {steps / 15:.0f} epochs each"
)
print(pruned[0].user_attrs["forecast_reason"])
