# SPDX-License-Identifier: Apache-2.0
"""Which changes of a run leave its forecast alone: the table of docs/method/invariances.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from curves import noisy_power_law
from numpy.typing import NDArray

import glidepath as gp

Floats = NDArray[np.float64]
CURVES = Path(__file__).resolve().parents[2] / "data" / "curves"
RUN, *OTHERS = gp.read_traces(CURVES / "docstring-t5.csv.gz")[:8]
STEP, LOSS, AT = RUN.step[:40], RUN.loss[:40], RUN.step[[40, 80, 199]]


def forecast(step: Floats, loss: Floats, at: Floats = AT, direction: str = "min") -> gp.Forecast:
    return gp.forecast(gp.Trace(step, loss, direction=direction), at)


def same(found: Floats, expected: Floats) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12)


BASE = forecast(STEP, LOSS)


@pytest.mark.parametrize("factor", [1e-3, 1000.0])
def test_a_loss_in_other_units_has_the_forecast_in_these_units(factor: float) -> None:
    found = forecast(STEP, LOSS * factor)
    same(found.median, BASE.median * factor)
    same(found.quantiles, BASE.quantiles * factor)


@pytest.mark.parametrize("loss", [[-3.0], [-3.0, -3.0], [-3.0] * 6, [-3.0, -3.0 - 1e-15, -3.0]])
def test_so_has_a_signed_metric_that_has_only_one_value(loss: list[float]) -> None:
    step, value = np.arange(1, len(loss) + 1.0), np.array(loss)
    base, found = forecast(step, value), forecast(step, value / 1000)
    same(found.quantiles, base.quantiles / 1000)
    assert found.status == base.status


@pytest.mark.parametrize("factor", [0.37, 1000.0])
def test_steps_in_other_units_have_the_same_forecast(factor: float) -> None:
    same(forecast(STEP * factor, LOSS, AT * factor).quantiles, BASE.quantiles)


def test_a_target_in_other_units_is_reached_with_the_same_probability() -> None:
    base = gp.reach(gp.Trace(STEP, LOSS), 2.3, budget=1000)
    found = gp.reach(gp.Trace(STEP * 7, LOSS * 1000), 2300, budget=7000)
    same(1 - found.cdf, 1 - base.cdf)  # what is computed: the chance that it is not there yet
    same(found.step, base.step * 7)


@pytest.mark.parametrize("whole", [1, 100])
def test_a_share_of_errors_and_a_share_of_hits_have_one_forecast(whole: int) -> None:
    error = LOSS / (1.05 * LOSS.max())
    down, up = forecast(STEP, error), forecast(STEP, whole * (1 - error), direction="max")
    same(1 - up.median / whole, down.median)
    same(1 - up.quantiles[::-1] / whole, down.quantiles)


def test_a_rising_metric_of_any_size_is_a_falling_one_upside_down() -> None:
    value = 50 * (LOSS - LOSS.mean()) + 200
    down, up = forecast(STEP, -value), forecast(STEP, value, direction="max")
    same(-up.quantiles[::-1], down.quantiles)


def test_a_loss_that_touches_zero_is_the_same_upside_down() -> None:
    step = np.arange(1, 61.0)
    loss = np.maximum(2 - 0.5 * np.log(step), 0)
    found = gp.forecast(gp.Trace(step, -loss, direction="max"), AT)
    expected = gp.forecast(gp.Trace(step, loss), AT)
    same(-found.median, expected.median)
    same(-found.quantiles[::-1], expected.quantiles)


def test_a_signed_metric_may_be_moved() -> None:
    signed = LOSS - LOSS.mean()
    found, base = forecast(STEP, signed + 0.3), forecast(STEP, signed)
    np.testing.assert_allclose(found.quantiles - 0.3, base.quantiles, atol=1e-12)


def test_divergence_is_told_by_the_size_of_the_first_value() -> None:
    def verdict(value: Floats, target: float, direction: str) -> str:
        watch = gp.Watch(target=target, direction=direction)
        for step, each in enumerate(value, 1):
            watch.add(float(step), float(each))
        return watch.decision().verdict

    hits = np.array([0.10, 0.12, 0.15] + [0.16] * 7 + [0.01] * 8)
    assert verdict(hits, 0.9, "max") == "diverged"
    assert verdict(1 - hits, 0.1, "min") == "unknown"
    assert verdict(-hits - 0.1, -0.9, "min") == "unknown"
    assert verdict(-hits, -0.8, "min") == "diverged"


def test_the_distance_of_a_loss_from_zero_counts() -> None:
    moved = forecast(STEP, LOSS + 10)
    assert np.abs(moved.median - 10 - BASE.median).max() > 0.01


def test_the_step_of_the_first_point_counts() -> None:
    moved = forecast(STEP + 1000, LOSS, AT + 1000)
    assert np.abs(moved.median - BASE.median).max() > 0.05


def test_a_log_that_begins_at_0_or_below_is_one_that_begins_after_an_interval() -> None:
    same(forecast(STEP - STEP[0] - 50, LOSS, AT - STEP[0] - 50).quantiles, BASE.quantiles)


def test_only_the_shape_of_a_schedule_counts() -> None:
    assert RUN.lr is not None
    found = [
        gp.forecast(
            gp.Trace(STEP, LOSS, lr=factor * RUN.lr[:40]),
            AT,
            schedule=gp.Schedule(RUN.step, factor * RUN.lr),
        )
        for factor in (1.0, 10.0)
    ]
    same(found[1].quantiles, found[0].quantiles)


def test_past_runs_are_in_the_units_of_the_run() -> None:
    def taught(factor: float, past_factor: float) -> Floats:
        past = gp.PastRuns([gp.Trace(run.step, run.loss * past_factor) for run in OTHERS])
        return gp.forecast(gp.Trace(STEP, LOSS * factor), AT, past=past).median

    same(taught(1000, 1000), 1000 * taught(1, 1))
    assert np.abs(taught(1000, 1) / 1000 - taught(1, 1)).max() > 0.01


def test_horizons_beside_others_are_interpolated_beyond_fourteen() -> None:
    many = forecast(STEP, LOSS, RUN.step[40:])
    few = forecast(STEP, LOSS, RUN.step[40::50])
    np.testing.assert_allclose(many.quantiles[:, ::50], few.quantiles, rtol=1e-3)


def test_steps_in_other_units_have_the_same_forecast_under_a_schedule() -> None:
    run = gp.Trace(*noisy_power_law(n=20))
    medians = []
    for unit in (1.0, 0.1, 3.0):
        seen = gp.Trace(run.step * unit, run.loss)
        known = gp.Schedule.cosine(1e-3, 200 * unit)
        medians.append(gp.forecast(seen, [200 * unit], schedule=known).median)
    np.testing.assert_allclose(medians[1:], [medians[0]] * 2, rtol=1e-9)
