# SPDX-License-Identifier: Apache-2.0
"""Optuna itself: our pruner prunes what cannot win, keeps what wins, and writes what it expects."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
from glidepath.adapters.optuna import ForecastPruner  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
COMPLETE, PRUNED = ("COMPLETE", "PRUNED")
EPOCHS = 30


def states(study: Any) -> list[str]:
    return [trial.state.name for trial in study.trials]


def curve(floor: float, rate: float = 0.7, start: float = 2.0) -> list[float]:
    """Descend from `start` towards a floor, without noise."""
    return [floor + (start - floor) * epoch**-rate for epoch in range(1, EPOCHS + 1)]


def show(study: Any, values: list[float]) -> int:
    """Run one trial; give the epochs it was allowed."""
    trial = study.ask()
    for epoch, value in enumerate(values, 1):
        trial.report(value, epoch)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return epoch
    study.tell(trial, values[-1])
    return len(values)


def new_study(**options: Any) -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = ForecastPruner(EPOCHS, **options.pop("pruner", {}))
    return optuna.create_study(pruner=pruner, **options)


def test_the_example_finds_the_best_and_prunes_the_hopeless() -> None:
    example = runpy.run_path(str(EXAMPLES / "with_optuna.py"))
    study = example["study"]
    assert states(study).count(PRUNED) >= 5
    for trial in study.trials:
        assert trial.user_attrs.get("forecast_stop", 0.0) == float(trial.state.name == PRUNED)
    # The same search without a pruner: nothing that was pruned would have won.
    whole = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    whole.optimize(example["train"], n_trials=15)
    assert study.best_value == pytest.approx(whole.best_value, abs=0.03)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_hopeless_trial_ends_early_and_a_better_one_is_complete(direction: str) -> None:
    study = new_study(direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    assert show(study, [sign * value for value in curve(0.5)]) == EPOCHS
    assert show(study, [sign * value for value in curve(1.9)]) <= EPOCHS // 5
    assert show(study, [sign * value for value in curve(0.2)]) == EPOCHS
    assert show(study, [sign * (1.9 + 0.01 * (k % 2)) for k in range(EPOCHS)]) <= EPOCHS // 5
    assert study.best_value == pytest.approx(sign * curve(0.2)[-1])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_curves_without_noise_is_never_pruned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [curve(float(floor)) for floor in rng.uniform(0.1, 1.5, 20)]
    study = new_study()
    used = sum(show(study, run) for run in runs)
    assert study.best_value == min(run[-1] for run in runs)
    assert used <= 0.45 * 20 * EPOCHS


@pytest.mark.parametrize("spend", [0.15, 0.25, 0.4])
def test_a_study_spends_about_the_share_that_it_may(spend: float) -> None:
    rng = np.random.default_rng(0)
    study = new_study(pruner={"spend": spend})
    # Early values say little: no trial is hopeless, and ranks change.
    runs = [
        np.linspace(2.0, end, EPOCHS) + 0.1 * rng.standard_normal(EPOCHS)
        for end in rng.uniform(0.5, 0.6, 60)
    ]
    used = sum(show(study, run.tolist()) for run in runs) / (60 * EPOCHS)
    assert used == pytest.approx(spend, abs=0.05)


def test_trials_go_on_by_their_rank_among_all_that_got_as_far() -> None:
    study = new_study(pruner={"spend": 0.24})
    # Falling lines, the best first: none is hopeless, each is behind all before it.
    ends = [show(study, np.linspace(2.0 + 0.01 * k, 1.0, EPOCHS).tolist()) for k in range(10)]
    first = study.trials[0].user_attrs["forecast_reason"]
    assert ends[0] == EPOCHS
    assert first == "rank 1 of 1 at 0.67 of the budget"
    assert ends[1] == 1  # at a thirtieth of the budget the best 0.53 go on
    assert study.trials[1].user_attrs["forecast_reason"].endswith("where 1.1 go on")
    assert ends[8:] == [1, EPOCHS]  # 0.24 of ten budgets pays for a second whole trial
    assert study.trials[9].user_attrs["forecast_spared"] == 1.0


def test_a_tie_is_not_behind() -> None:
    study = new_study()
    for floor in (1.0, 0.8, 0.6):  # all begin at 2
        assert show(study, curve(floor)) == EPOCHS


def test_a_trial_that_diverges_is_pruned_at_once_even_the_first() -> None:
    for lost in (math.nan, math.inf):
        study = new_study()
        assert show(study, [2.0, 1.5, lost, *curve(0.5)[3:]]) == 3
        attributes = study.trials[0].user_attrs
        assert attributes["forecast_stop"] == 1.0
        assert "at step 3" in attributes["forecast_reason"]


def test_values_without_a_report_or_before_a_complete_trial_prune_nothing() -> None:
    study = new_study()
    assert not study.ask().should_prune()
    assert show(study, curve(1.9)) == EPOCHS
    assert "forecast_probability" not in study.trials[1].user_attrs


def test_advice_prunes_nothing_and_writes_the_same() -> None:
    study = new_study(pruner={"mode": "advise"})
    runs = [curve(0.5), curve(1.9), curve(1.5)]
    assert [show(study, run) for run in runs] == [EPOCHS] * 3
    acting = new_study()
    show(acting, runs[0])
    ended = show(acting, runs[1])
    assert ended < EPOCHS
    assert acting.trials[1].user_attrs["forecast_stop"] == 1.0
    assert study.trials[1].user_attrs["forecast_probability"] < 0.1


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_trial_carries_the_forecast_of_its_end(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = new_study(direction=direction, pruner={"mode": "advise"})
    noise = 0.01 * np.random.default_rng(3).standard_normal((2, EPOCHS))
    for i, floor in enumerate((0.5, 1.2)):
        show(study, [sign * (v + e) for v, e in zip(curve(floor), noise[i], strict=True)])
    said = study.trials[1].user_attrs
    assert said["forecast_low"] < said["forecast_value"] < said["forecast_high"]
    assert said["forecast_value"] == pytest.approx(study.trials[1].value, abs=0.05)
    assert 0.0 < said["forecast_probability"] < 0.1
    assert said["forecast_stop"] == 1.0
    assert said["forecast_reason"].startswith("rank 2 of 2 at 0.67 of the budget: to beat ")
    assert "of trial 0 it needs " in said["forecast_reason"]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_with_a_target_what_will_never_reach_it_is_pruned_before_any_is_complete(
    direction: str,
) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = new_study(direction=direction, pruner={"target": sign * 0.8})
    assert show(study, [sign * (1.9 + 0.001 * (k % 2)) for k in range(EPOCHS)]) < EPOCHS
    assert study.trials[0].user_attrs["forecast_target_probability"] < 0.05
    assert show(study, [sign * value for value in curve(0.3)]) == EPOCHS


def test_a_study_goes_on_in_another_process(tmp_path: Path) -> None:
    runs = [curve(0.5), curve(0.4), curve(1.9), curve(0.9)]
    whole = new_study()
    spent = [show(whole, run) for run in runs]
    storage = f"sqlite:///{tmp_path}/study.db"
    first = new_study(storage=storage, study_name="s")
    parts = [show(first, run) for run in runs[:2]]
    # Another pruner, which knows no more than the file.
    again = optuna.load_study(storage=storage, study_name="s", pruner=ForecastPruner(EPOCHS))
    parts += [show(again, run) for run in runs[2:]]
    assert parts == spent
    assert again.trials[2].user_attrs["forecast_stop"] == 1.0


def test_four_workers_share_a_study() -> None:
    rng = np.random.default_rng(0)
    runs = [curve(float(floor)) for floor in rng.uniform(0.1, 1.5, 24)]
    study = new_study()
    with ThreadPoolExecutor(4) as pool:
        spent = list(pool.map(lambda run: show(study, run), runs))
    assert study.best_value == min(run[-1] for run in runs)
    assert sum(spent) < 0.6 * 24 * EPOCHS
    assert states(study).count(PRUNED) >= 10


def test_a_sampler_that_learns_from_pruned_trials_goes_on() -> None:
    study = new_study(sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=5))

    def objective(trial: Any) -> float:
        floor = 0.2 + (trial.suggest_float("x", -2.0, 2.0) - 0.7) ** 2
        for epoch, value in enumerate(curve(floor), 1):
            trial.report(value, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=30)
    assert abs(study.best_params["x"] - 0.7) < 0.3
    assert states(study).count(PRUNED) >= 10


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ForecastPruner(30, mode="x"), "mode is 'x', expected"),
        (lambda: ForecastPruner(0), "budget is 0, expected above 0"),
        (lambda: ForecastPruner(30, spend=0.0), r"spend is 0\.0, expected above 0 to 1"),
        (lambda: ForecastPruner(30, target=math.nan), "target is nan, expected a finite number"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(gp.InputError, match=sentence):
        call()
