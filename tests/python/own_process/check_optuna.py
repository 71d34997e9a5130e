# SPDX-License-Identifier: Apache-2.0
"""Optuna itself, with the search of the example."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
COMPLETE, PRUNED = ("COMPLETE", "PRUNED")


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "with_optuna.py"))


def states(study: Any) -> list[str]:
    return [trial.state.name for trial in study.trials]


def test_the_example_finds_the_best_and_prunes_the_hopeless(example: dict[str, Any]) -> None:
    study = example["study"]
    assert states(study).count(PRUNED) >= 5
    for trial in study.trials:
        if trial.state.name == PRUNED:
            assert trial.user_attrs["forecast_stop"] == 1.0
            assert trial.user_attrs["forecast_probability"] <= 0.02
    # The same search without a pruner: nothing that was pruned would have won.
    whole = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    whole.optimize(example["train"], n_trials=15)
    assert study.best_value == pytest.approx(whole.best_value, abs=0.03)


def test_advice_prunes_nothing(example: dict[str, Any]) -> None:
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(sampler=sampler, pruner=example["ForecastPruner"](40))
    study.optimize(example["train"], n_trials=6)
    assert states(study) == [COMPLETE] * 6
    assert any(trial.user_attrs["forecast_stop"] == 1.0 for trial in study.trials)


def test_a_study_goes_on_in_another_process(example: dict[str, Any], tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    pruner = example["ForecastPruner"](40, mode="act")
    study = optuna.create_study(storage=storage, study_name="s", pruner=pruner)
    study.enqueue_trial({"rate": 0.2})
    study.optimize(example["train"], n_trials=1)
    again = optuna.load_study(
        storage=storage, study_name="s", pruner=example["ForecastPruner"](40, mode="act")
    )
    trial = again.ask()  # one that was begun there, and is judged here
    for epoch in range(1, 9):
        trial.report(4.0 + 0.001 * (epoch % 2), epoch)
    assert trial.should_prune()
    assert "that count as never" in again.trials[1].user_attrs["forecast_reason"]


def test_a_study_that_maximises_and_trials_that_diverge(example: dict[str, Any]) -> None:
    pruner = example["ForecastPruner"](30, target=0.9, mode="act")
    study = optuna.create_study(direction="maximize", pruner=pruner)
    good, bad, lost = study.ask(), study.ask(), study.ask()
    assert not lost.should_prune()  # nothing was reported yet
    for epoch in range(1, 5):
        lost.report(math.nan, epoch)
    assert not lost.should_prune()  # it has to be lost for five reports
    for epoch in range(1, 16):
        good.report(1.0 - 1.0 / epoch, epoch)
        bad.report(0.2 + 0.001 * (epoch % 2), epoch)
        lost.report(math.nan, epoch)
    assert (good.should_prune(), bad.should_prune(), lost.should_prune()) == (False, True, True)
    with pytest.raises(gp.InputError, match="mode 'x'"):
        example["ForecastPruner"](30, mode="x")
