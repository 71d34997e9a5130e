# SPDX-License-Identifier: Apache-2.0
"""The best of a run so far, and the probability that it is already past."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glidepath as gp

STEP = np.arange(1.0, 61)
FALLING = gp.Trace(STEP, 1 + STEP**-0.5)
# Held-out loss of a run that overfits: it turns up after a third of its evaluations.
OVERFIT = gp.Trace(STEP, FALLING.loss + 0.02 * np.maximum(STEP - 20, 0), metric="eval_loss")


def past(run: gp.Trace, budget: float = 120, **more: object) -> float:
    return gp.best_so_far(run, budget=budget, **more).prob_past  # type: ignore[arg-type]


def test_the_best_of_a_run_that_falls_is_to_come_and_of_one_that_turned_up_is_past() -> None:
    assert past(FALLING) < 0.05
    assert past(OVERFIT) > 0.95
    assert gp.best_so_far(OVERFIT, budget=120).step == 20
    assert gp.best_so_far(OVERFIT, budget=120).value == OVERFIT.loss[19]


def test_the_longer_a_run_stays_above_its_best_the_likelier_it_is_past() -> None:
    said = [past(OVERFIT.until(end)) for end in (22, 26, 32, 45, 60)]
    assert said == sorted(said)


def test_with_less_to_come_the_best_is_likelier_past_and_at_the_end_it_is_certain() -> None:
    draw = np.random.default_rng(3)
    run = gp.Trace(STEP, 1 + 0.3 * STEP**-0.5 + 0.02 * draw.standard_normal(60), metric="eval_loss")
    said = [past(run, budget) for budget in (60, 61, 70, 90, 150, 600)]
    assert said[0] == 1
    assert said == sorted(said, reverse=True)
    assert past(run, 5) == 1


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=90), st.sampled_from(["curve", "point"]))
def test_the_best_is_the_least_median_of_as_many_values_as_make_a_level(
    values: list[float], by: str
) -> None:
    n = len(values)
    size = min(max(n // 10, 5), 63, n // 4) if by == "curve" else 1
    size = max(1, size - (size + 1) % 2)
    levels = [np.median(values[i - size : i]) for i in range(size, n + 1)]
    found = gp.best_so_far((np.arange(1.0, n + 1), values), budget=2.0 * n, reached_by=by)
    assert found.value == min(levels)
    assert found.step == size + int(np.argmin(levels))
    assert 0 <= found.prob_past <= 1


def test_values_that_are_not_finite_do_not_count() -> None:
    loss = OVERFIT.loss.copy()
    loss[[0, 30]] = np.nan
    found = gp.best_so_far(gp.Trace(STEP, loss, metric="eval_loss"), budget=120)
    assert (found.step, found.status) == (20, "good")
    nothing = gp.best_so_far(gp.Trace(STEP, np.full(60, np.nan)), budget=120)
    assert np.isnan([nothing.step, nothing.value, nothing.prob_past]).all()
    assert nothing.status == "not_finite"


def test_a_score_that_cannot_be_better_is_past_for_certain() -> None:
    accuracy = np.minimum(1.0, 0.5 + 0.02 * STEP)
    run = gp.Trace(STEP, accuracy, metric="accuracy", direction="max")
    assert past(run) == 1
    assert past(run.until(20)) < 0.5


def test_an_accuracy_and_its_error_have_the_same_answer() -> None:
    error = 0.1 + 0.4 * STEP**-0.7 + 0.002 * np.maximum(STEP - 25, 0)
    rising = gp.Trace(STEP, 1 - error, direction="max")
    assert past(rising, reached_by="point") == pytest.approx(
        past(gp.Trace(STEP, error), reached_by="point"), abs=1e-9
    )


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e5])
def test_neither_the_unit_of_the_loss_nor_of_the_steps_counts(unit: float) -> None:
    scaled = gp.Trace(STEP * unit, OVERFIT.loss * unit)
    assert past(scaled.until(40 * unit), 90 * unit) == pytest.approx(
        past(gp.Trace(STEP[:40], OVERFIT.loss[:40]), 90), abs=1e-9
    )


def test_past_runs_and_a_schedule_count() -> None:
    seen = FALLING.until(15)
    finished = [gp.Trace(STEP, (1 + 0.01 * k) * OVERFIT.loss, name=f"run {k}") for k in range(12)]
    assert past(seen, 60, past=gp.PastRuns(finished)) != past(seen, 60)
    assert past(seen, 60, schedule=gp.Schedule.linear(1.0, 60)) != past(seen, 60)


def test_the_planned_end_is_the_budget_and_without_one_it_must_be_given() -> None:
    planned = gp.Trace(STEP, OVERFIT.loss, planned_steps=120)
    assert gp.best_so_far(planned) == gp.best_so_far(planned, budget=120)
    with pytest.raises(gp.InputError, match="best_so_far: the trace has no planned_steps"):
        gp.best_so_far(FALLING)
    with pytest.raises(gp.InputError, match="best_so_far: budget is inf, expected between"):
        gp.best_so_far(FALLING, budget=np.inf)
    with pytest.raises(gp.InputError, match="has direction 'max'"):
        gp.best_so_far(FALLING, budget=90, past=[gp.Trace(STEP, STEP, direction="max")])


def test_it_is_a_result_as_any_other() -> None:
    found = gp.best_so_far(OVERFIT, budget=120)
    assert copy.deepcopy(found) == found == pickle.loads(pickle.dumps(found))
    assert gp.BestSoFar.from_dict(found.to_dict()) == found
    assert repr(found).startswith("<BestSoFar: best 1.2236 at step 20, already past with prob")
    with pytest.raises(gp.InputError, match="prob_past"):
        gp.BestSoFar.from_dict(found.to_dict() | {"prob_past": 2.0})


def test_the_best_of_a_run_that_diverged_is_past() -> None:
    loss = FALLING.loss.copy()
    loss[-2:] = np.nan
    assert past(gp.Trace(STEP, loss)) == 1


def test_past_runs_say_of_a_first_value_whether_it_stays_the_best_by_their_settings() -> None:
    def run(lr: float, seed: int) -> gp.Trace:
        draw = np.random.default_rng(seed)
        turn = (-0.1 if lr < 1 else 0.1) * (1 + 0.2 * draw.standard_normal())
        loss = 2 + turn * np.log(STEP) + 0.002 * draw.standard_normal(60)
        return gp.Trace(STEP, loss, settings={"lr": lr}, metric="eval_loss")

    known = gp.PastRuns([run(lr, seed) for seed in range(6) for lr in (0.1, 0.2, 10, 20)])
    falls, rises = (gp.Trace([1.0], [2.0], settings={"lr": lr}) for lr in (0.1, 10.0))
    assert past(falls, 60, past=known) < 0.1 < 0.4 < past(rises, 60, past=known)
