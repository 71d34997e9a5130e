# SPDX-License-Identifier: Apache-2.0
"""Losses that fall at the end of each epoch, as of a model that learns its examples by heart."""

import numpy as np
import pytest
from curves import constants_with

import glidepath as gp

EPOCH = 120


def fine_tuned(
    points: int, falls_at: tuple[float, ...] = (1, 2, 3, 4), size: float = 0.3
) -> gp.Trace:
    """A noisy loss that settles within the first epoch and falls at these epochs."""
    rng, t = np.random.default_rng(4), np.arange(1.0, points + 1)
    log_loss = 0.2 + 0.5 * np.exp(-t / 15) - 0.02 * t / EPOCH + 0.04 * rng.standard_normal(points)
    for epoch in falls_at:
        log_loss -= size * (t > epoch * EPOCH)
    return gp.Trace(10 * t, np.exp(log_loss))


def first(run: gp.Trace, points: int) -> gp.Trace:
    """The run as it was at a point."""
    return gp.Trace(run.step[:points], run.loss[:points])


NO_EPOCHS = constants_with(epochs=0)
STEPS_BESIDE = [10 * 2 * EPOCH - 5, 10 * 2 * EPOCH + 15]  # the end of the second epoch


def fall_ahead(run: gp.Trace, constants: str | None = None) -> float:
    """How far the median of the log loss falls at the end of the second epoch."""
    before, after = gp.forecast(run, STEPS_BESIDE, constants=constants).median
    return float(np.log(before / after))


def test_a_loss_that_fell_at_the_end_of_an_epoch_is_foreseen_to_fall_again() -> None:
    run = first(fine_tuned(4 * EPOCH), EPOCH + 60)
    assert fall_ahead(run, NO_EPOCHS) < 0.01
    assert 0.15 < fall_ahead(run) < 0.35
    ends = [10.0 * EPOCH * epoch - 50 for epoch in (2, 3, 4)]
    truth = np.interp(
        ends, *(np.array(x) for x in (fine_tuned(4 * EPOCH).step, fine_tuned(4 * EPOCH).loss))
    )
    ahead = gp.forecast(run, ends, levels=[0.1, 0.9])
    assert np.all((ahead.quantiles[0] <= truth) & (truth <= ahead.quantiles[1]))
    blind = gp.forecast(run, ends, constants=NO_EPOCHS)
    error, error_without = (np.abs(np.log(f.median / truth)).max() for f in (ahead, blind))
    assert error < 0.5 * error_without


def test_falls_at_three_epochs_go_on_at_the_fourth() -> None:
    run = first(fine_tuned(4 * EPOCH), 3 * EPOCH + 60)
    before, after = gp.forecast(run, [10 * 4 * EPOCH - 5, 10 * 4 * EPOCH + 15]).median
    assert 0.15 < np.log(before / after) < 0.35


@pytest.mark.parametrize(
    "run",
    [
        fine_tuned(EPOCH - 10),  # no epoch has ended
        fine_tuned(2 * EPOCH - 10, (1, 1.5)),  # the second fall is at no end of an epoch
        first(fine_tuned(3 * EPOCH, (1,)), 2 * EPOCH + 60),  # the second epoch ended without one
        fine_tuned(EPOCH + 60, (0.4,)),  # 48 points: as an evaluation once an epoch logs
        fine_tuned(EPOCH + 60, (1,), -0.3),  # it rises there
        gp.Trace(np.arange(1.0, 401), 0.5 + 3 / np.sqrt(np.arange(1.0, 401))),
        gp.Trace(np.arange(1.0, 401), 1 + 1 / (1 + np.exp((np.arange(1.0, 401) - 150) / 15))),
    ],
    ids=["first epoch", "elsewhere", "missing", "few points", "rise", "power law", "slow step"],
)
def test_other_runs_are_forecast_as_if_there_were_no_epochs(run: gp.Trace) -> None:
    at = np.linspace(1.01, 3, 12) * run.step[-1]
    f, g = (gp.forecast(run, at, constants=table) for table in (None, NO_EPOCHS))
    np.testing.assert_array_equal(f.quantiles, g.quantiles)


@pytest.mark.parametrize("epochs", [3, 100])
def test_a_fall_of_the_known_learning_rate_is_no_end_of_an_epoch(epochs: int) -> None:
    run, end = first(fine_tuned(3 * EPOCH), EPOCH + 60), 10 * EPOCH
    dropped = gp.Schedule([1, end, end + 1, epochs * end], [1e-3, 1e-3, 3e-4, 3e-4])
    f, g = (
        gp.forecast(run, STEPS_BESIDE, schedule=dropped, constants=table)
        for table in (None, NO_EPOCHS)
    )
    np.testing.assert_array_equal(f.quantiles, g.quantiles)
    cosine = gp.Schedule.cosine(1e-3, epochs * end)
    before, after = gp.forecast(run, STEPS_BESIDE, schedule=cosine).median
    assert np.log(before / after) > 0.15


def test_the_fall_is_as_sharp_among_many_steps() -> None:
    run = first(fine_tuned(4 * EPOCH), EPOCH + 60)
    every = np.arange(run.step[-1] + 10, 10 * 4 * EPOCH, 10)
    ahead = gp.forecast(run, every).median
    ends = np.flatnonzero(np.isin(every, [10 * 2 * EPOCH, 10 * 3 * EPOCH]))
    falls = np.log(ahead[:-1] / ahead[1:])
    steepest = np.sort(np.argsort(falls)[-2:])
    assert np.all(np.abs(steepest - (ends - 1)) <= 3)  # points from the end of each epoch
    assert falls[steepest].min() > 20 * np.delete(falls, steepest).max()
    beside = [steepest[0], steepest[0] + 1]
    few = gp.forecast(run, every[beside]).median
    np.testing.assert_allclose(ahead[beside], few, rtol=1e-3)


def test_a_forecast_among_as_many_steps_as_its_law_has_knots_is_the_same() -> None:
    run = first(fine_tuned(4 * EPOCH), EPOCH + 60)
    at = np.linspace(run.step[-1] + 10, 10 * 3 * EPOCH - 10, 16)  # 14 knots, and 2 at the fall
    among = gp.forecast(run, at)
    few = [gp.forecast(run, at[half]) for half in (slice(8), slice(8, 16))]
    np.testing.assert_allclose(among.median, np.concatenate([f.median for f in few]), rtol=0.01)


def test_times_to_target_and_watches_count_on_the_next_epoch() -> None:
    run = first(fine_tuned(4 * EPOCH), EPOCH + 60)
    target = 0.85 * np.median(run.loss[-30:])
    r, without = (
        gp.reach(run, target, budget=10 * 4 * EPOCH, constants=table) for table in (None, NO_EPOCHS)
    )
    assert r.prob_never < 0.4 < without.prob_never
    assert 10 * 2 * EPOCH <= r.quantile(0.5, if_reached=True) <= 10 * 3 * EPOCH
    watch = gp.Watch(target=target, budget=10 * 4 * EPOCH)
    for step, loss in zip(run.step, run.loss, strict=True):
        watch.add(step, loss)
    assert watch.decision().probability > 0.5
