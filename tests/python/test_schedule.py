# SPDX-License-Identifier: Apache-2.0
"""Schedules, and forecasts under them."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curves import constants_with, lagged, noisy_power_law, schedule_law

import glidepath as gp
from glidepath._schedule import inferred

ROOT = Path(__file__).resolve().parents[2]


def test_a_log_without_its_warmup_is_forecast_as_if_the_rate_had_risen() -> None:
    whole = constants_with(warmup=1)
    ours, counted = [], []
    for warmup in (100, 200, 400, 800):
        for seed, power in enumerate((0.3, 0.5, 0.7)):
            t = np.arange(1.0, 3001)
            lr = np.minimum(t / warmup, 1)
            noise = np.random.RandomState(seed).standard_normal(3000)
            y = (2 + 3 * (np.cumsum(lr) / 50) ** -power) * np.exp(0.001 * noise)
            first, seen = warmup, warmup + 300
            trace = gp.Trace(t[first:seen], y[first:seen], lr=lr[first:seen])
            rest = gp.Schedule(t[first:], lr[first:])
            for constants, errors in ((None, ours), (whole, counted)):
                f = gp.forecast(trace, t[seen:], schedule=rest, constants=constants)
                errors.append(abs(f.median[-1] - y[-30:].mean()) / np.ptp(y[first:]))
    assert np.mean(ours) < 0.5 * np.mean(counted)


def test_time_passes_more_slowly_while_the_rate_is_low_but_not_in_proportion() -> None:
    t, _, lr = schedule_law(1500, 300, 0)
    pace = np.where(t < 300, lr**0.5, lr**0.9)
    y = 2 + 12 * np.cumsum(pace) ** -0.5
    without_gain = [
        re.sub(r"(?m)^gain .*$", "", table) + "\ngain 0 0\n"
        for table in (constants_with(), constants_with(clock=1, warm_clock=1))
    ]
    for seen in (150, 600, 1000):
        trace = gp.Trace(t[:seen], y[:seen], lr=lr[:seen])
        ours, proportional = (
            abs(
                gp.forecast(trace, t[seen:], schedule=gp.Schedule(t, lr), constants=c).median[-1]
                - y[-1]
            )
            for c in without_gain
        )
        assert ours < proportional


def test_a_run_that_learns_nothing_is_not_promised_a_drop_by_its_schedule() -> None:
    t = np.arange(1.0, 251)
    lr = np.where(t > 190, 0.2, 1.0)
    for seed in range(4):
        y = 2.3 + 0.002 * np.random.RandomState(seed).standard_normal(250)
        f = gp.forecast(gp.Trace(t[:50], y[:50], lr=lr[:50]), t[50:], schedule=gp.Schedule(t, lr))
        assert abs(f.median[-1] - 2.3) < np.ptp(y[:50])


@pytest.mark.parametrize(
    ("power", "planned", "grows"),
    # Falls of 0.28, 0.035 and 0.21 an octave, which fade by the root of the steps to come.
    [(0.4, 300, True), (0.05, 300, False), (0.3, 300, True), (0.3, 12000, False)],
)
def test_a_run_that_will_still_fall_fast_at_the_end_gains_more_by_annealing(
    power: float, planned: int, grows: bool
) -> None:
    grid = constants_with(gain_fall=1e9)
    t = np.arange(1.0, planned + 1)
    lr = np.minimum(1.0, 2 * (1 - t / planned))
    trace = gp.Trace(t[:120], 3 * t[:120] ** -power, lr=lr[:120])
    ours, plain = (
        gp.forecast(trace, t[120:], schedule=gp.Schedule(t, lr), constants=c).median
        for c in (None, grid)
    )
    if grows:
        assert ours[-1] < 0.98 * plain[-1]
    else:
        np.testing.assert_array_equal(ours, plain)


def test_runs_that_were_foreseen_get_narrower_intervals_under_a_schedule_that_hold() -> None:
    without = constants_with(backtest=0)
    width, wider, holds = [], [], []
    for seed in range(6):
        t, y, lr = schedule_law(1500, 100, seed)
        for seen in (600, 900):
            trace = gp.Trace(t[:seen], y[:seen], lr=lr[:seen])
            narrow = gp.forecast(trace, t[seen:], schedule=gp.Schedule(t, lr)).quantiles
            wide = gp.forecast(
                trace, t[seen:], schedule=gp.Schedule(t, lr), constants=without
            ).quantiles
            width.append((narrow[17] - narrow[1]).mean())
            wider.append((wide[17] - wide[1]).mean())
            holds.append(((y[seen:] >= narrow[1]) & (y[seen:] <= narrow[17])).mean())
            blind = gp.forecast(gp.Trace(t[:seen], y[:seen]), t[seen:])
            again = gp.forecast(gp.Trace(t[:seen], y[:seen]), t[seen:], constants=without)
            np.testing.assert_array_equal(blind.quantiles, again.quantiles)
    assert np.mean(width) < 0.7 * np.mean(wider)
    assert np.mean(holds) > 0.75


def test_an_erratic_run_keeps_its_width_under_a_schedule() -> None:
    t, _, lr = schedule_law(400, 20, 0)
    walk = np.cumsum(np.random.RandomState(1).standard_normal(400)) * 0.05
    y = np.exp(walk - walk.min())
    trace = gp.Trace(t[:200], y[:200], lr=lr[:200])
    ours = gp.forecast(trace, t[200:], schedule=gp.Schedule(t, lr)).quantiles
    wide = gp.forecast(
        trace, t[200:], schedule=gp.Schedule(t, lr), constants=constants_with(backtest=0)
    ).quantiles
    assert (ours[17] - ours[1]).mean() > 0.7 * (wide[17] - wide[1]).mean()


def error_at_the_end(
    run: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: int,
    seen: int,
    schedule: gp.Schedule | None,
) -> float:
    """Error of the last forecast of a log from point `first` on, in units of its range."""
    t, y, lr = run
    trace = gp.Trace(t[first:seen], y[first:seen], lr=lr[first:seen])
    ahead = gp.forecast(trace, t[seen:], schedule=schedule).median
    return float(abs(ahead[-1] - y[-20:].mean()) / np.ptp(y[first:]))


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_a_run_that_does_not_follow_its_rate_is_forecast_as_without_the_schedule(
    rate: float,
) -> None:
    t = np.arange(1.0, 401.0)
    curve = 3 * t**-0.3 * np.exp(0.005 * np.random.default_rng(1).normal(size=400))
    schedule = gp.Schedule([1.0, 100.0, 101.0, 1600.0], [1.0, 1.0, rate, rate])
    at = np.array([800.0, 1600.0])
    f = gp.forecast(
        gp.Trace(t, curve, lr=np.asarray(schedule.at(t))), at, schedule=schedule, levels=(0.1, 0.9)
    )
    truth = 3 * at**-0.3
    np.testing.assert_allclose(f.median, truth, rtol=0.06)
    assert np.all((f.quantiles[0] < truth) & (truth < f.quantiles[1]))


def test_a_schedule_helps_on_a_resumed_log_of_which_the_first_part_is_missing() -> None:
    blind, known, whole = [], [], []
    for seed in range(12):
        t, _, lr = run = schedule_law(2000, 100, seed)
        for first in (1000, 1600):
            rest, back = gp.Schedule(t[first:], lr[first:]), gp.Schedule(t, lr)
            for share in (0.1, 0.2, 0.4, 0.6):
                seen = first + int(share * (2000 - first))
                blind.append(error_at_the_end(run, first, seen, None))
                known.append(error_at_the_end(run, first, seen, rest))
                whole.append(error_at_the_end(run, first, seen, back))
    assert np.mean(known) < 0.5 * np.mean(blind)
    assert np.mean(whole) < np.mean(known)


def test_restarts_of_the_rate_inside_a_log_are_followed() -> None:
    t = np.arange(1.0, 1801)
    lr = 0.55 + 0.45 * np.cos(np.pi * ((t - 1) % 600) / 600)
    blind, known = [], []
    for seed in range(3):
        noise = 0.001 * np.random.RandomState(seed).standard_normal(1800)
        annealed = lagged(1 - lr, 10)
        y = (2 + 12 * np.cumsum(lr) ** -0.5) * np.exp(-0.05 * annealed + noise)
        for first, seen in ((0, 700), (0, 1200), (0, 1300), (600, 1000), (600, 1300)):
            schedule = gp.Schedule(t[first:], lr[first:])
            blind.append(error_at_the_end((t, y, lr), first, seen, None))
            known.append(error_at_the_end((t, y, lr), first, seen, schedule))
    assert np.mean(known) < 0.6 * np.mean(blind)


def test_a_watch_of_a_resumed_run_uses_the_schedule_from_its_start() -> None:
    t, y, lr = schedule_law(2000, 100, 0)
    probability = []
    for first in (0, 1000):
        watch = gp.Watch(
            target=float(y[-20:].mean() * 1.003),
            budget=2000,
            schedule=gp.Schedule(t[first:], lr[first:]),
        )
        for step, loss, rate in zip(t[1000:1300], y[1000:1300], lr[1000:1300], strict=True):
            watch.add(step, loss, rate)
        probability.append(watch.decision().probability)
    assert probability[0] != probability[1]
    assert probability[0] > 0.5


def test_a_rising_metric_is_promised_less_by_its_schedule_than_a_loss() -> None:
    t, y, lr = schedule_law(2000, 100, 0)
    share = y / (1.1 * y.max())
    seen = 500
    rise = [
        gp.forecast(
            gp.Trace(t[:seen], values[:seen], lr=lr[:seen], direction=direction),
            t[seen:],
            schedule=gp.Schedule(t, lr),
        ).median[-1]
        for values, direction in ((share, "min"), (1 - share, "max"))
    ]
    assert 1 - rise[1] > rise[0]


def test_a_schedule_is_straight_between_its_steps_and_constant_outside() -> None:
    schedule = gp.Schedule([10, 20, 40], [0.1, 0.3, 0.1])
    np.testing.assert_allclose(schedule.at([0, 10, 15, 30, 40, 99]), [0.1, 0.1, 0.2, 0.2, 0.1, 0.1])
    assert schedule.at(15) == pytest.approx(0.2)
    assert gp.Schedule.constant(0.5).at(1e9) == 0.5


def test_factories_give_the_shapes_that_trainers_have() -> None:
    steps = np.linspace(0, 1000, 501)
    warm = np.minimum(steps / 100, 1)
    cosine = gp.Schedule.cosine(2.0, 1000, warmup=100, final=0.2)
    x = np.clip((steps - 100) / 900, 0, 1)
    exact = np.where(steps < 100, 2 * warm, 0.2 + 1.8 * 0.5 * (1 + np.cos(np.pi * x)))
    np.testing.assert_allclose(cosine.at(steps), exact, atol=2e-4)
    linear = gp.Schedule.linear(2.0, 1000, warmup=100)
    np.testing.assert_allclose(linear.at(steps), np.minimum(2 * warm, 2 * (1 - x)), atol=1e-12)
    wsd = gp.Schedule.wsd(2.0, 1000, warmup=100, decay=0.25)
    exact = np.minimum(2 * warm, 2 * np.minimum((1000 - steps) / 250, 1))
    np.testing.assert_allclose(wsd.at(steps), exact, atol=1e-12)
    assert gp.Schedule.wsd(2.0, 1000, decay=1) == gp.Schedule.linear(2.0, 1000)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: gp.Schedule([1, 2], [0.1]), "schedule: 2 steps but 1 learning rates"),
        (lambda: gp.Schedule([], []), "schedule: it has no point"),
        (
            lambda: gp.Schedule([2, 2], [0.1, 0.1]),
            "schedule: step[1] is 2, expected above the 2 before it",
        ),
        (
            lambda: gp.Schedule([1, 2], [0.1, -1]),
            "schedule: lr[1] is -1, expected 0 or more and finite",
        ),
        (
            lambda: gp.Schedule([1, 2], [0.1, np.nan]),
            "schedule: lr[1] is nan, expected 0 or more and finite",
        ),
        (lambda: gp.Schedule.constant(-1), "constant: lr is -1, expected 0 or more and finite"),
        (
            lambda: gp.Schedule.cosine(1, 100, warmup=100),
            "cosine: warmup is 100, expected 0 to below the 100 steps",
        ),
        (lambda: gp.Schedule.linear(1, 0), "linear: steps is 0, expected more than 0"),
        (
            lambda: gp.Schedule.wsd(1, 100, decay=0),
            "wsd: decay is 0, expected a share of the steps, above 0 to 1",
        ),
        (
            lambda: gp.Schedule.wsd(1, 100, warmup=30, decay=0.9),
            "wsd: the decay begins at step 10, within the warm-up of 30 steps",
        ),
        (
            lambda: gp.Schedule.from_dict({"step": [1]}),
            "schedule: expected 'step' and 'lr', got {'step': [1]}",
        ),
        (
            lambda: gp.forecast(gp.Trace([1, 2], [2, 1]), 3, schedule=([1, 2], [1, 1])),
            "schedule: expected a gp.Schedule, got tuple: gp.Schedule(step, lr)",
        ),
    ],
)
def test_a_broken_schedule_is_refused_in_a_sentence(
    make: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(gp.InputError) as error:
        make()
    assert str(error.value) == sentence


def test_a_schedule_survives_pickle_json_and_copies() -> None:
    schedule = gp.Schedule.cosine(3e-4, 1000, warmup=50)
    assert pickle.loads(pickle.dumps(schedule)) == copy.deepcopy(schedule) == schedule
    assert gp.Schedule.from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule
    assert schedule != gp.Schedule.cosine(4e-4, 1000, warmup=50)
    assert repr(schedule) == "<Schedule: 130 points, steps 0 to 1000, peak 0.0003, final 0>"
    with pytest.raises(ValueError, match="read-only"):
        schedule.lr[0] = 1.0


def test_the_logged_schedule_takes_the_nearest_earlier_rate_where_one_is_missing() -> None:
    rates = [np.nan, 0.3, np.nan, 0.1, 0.1]
    schedule = gp.Schedule.logged(gp.Trace([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], lr=rates))
    assert schedule is not None
    assert schedule.lr.tolist() == [0.3, 0.3, 0.3, 0.1, 0.1]
    few = gp.Trace([1, 2], [2, 1], lr=[0.1, np.nan])
    assert gp.Schedule.logged(few) is None
    assert gp.Schedule.logged(gp.Trace([1, 2], [2, 1])) is None


def test_a_schedule_is_used_whether_the_trace_logged_its_rate_or_not() -> None:
    t, y, lr = schedule_law(600, 60, 0)
    schedule = gp.Schedule(t, lr)
    logged = gp.Trace(t[:300], y[:300], lr=lr[:300])
    unlogged = gp.Trace(t[:300], y[:300])
    under = gp.forecast(logged, t[300:], schedule=schedule).quantiles
    np.testing.assert_array_equal(
        gp.forecast(unlogged, t[300:], schedule=schedule).quantiles, under
    )
    blind = gp.forecast(unlogged, t[300:]).quantiles
    assert not np.allclose(under, blind)
    np.testing.assert_array_equal(gp.forecast(logged, t[300:]).quantiles, blind)
    # Gaps of the log are filled by the schedule.
    gaps = np.where(t[:300] % 3 == 0, np.nan, lr[:300])
    with_gaps = gp.Trace(t[:300], y[:300], lr=gaps)
    np.testing.assert_array_equal(
        gp.forecast(with_gaps, t[300:], schedule=schedule).quantiles, under
    )
    assert gp.reach(unlogged, y[450], budget=600, schedule=schedule) == gp.reach(
        logged, y[450], budget=600, schedule=schedule
    )


def logged_runs(root: Path) -> list[gp.Trace]:
    files = sorted((root / "data" / "curves").glob("*.csv.gz"))
    runs = [run for file in files for run in gp.read_traces(file)[::12]]
    usable = [run for run in runs if len(run) >= 10 and np.isfinite(run.loss).all()]
    return [run for run in usable if run.lr is not None]


def test_a_log_agrees_with_its_own_schedule_though_rounded_or_one_interval_late(
    root: Path,
) -> None:
    runs = logged_runs(root)
    assert len(runs) > 20
    for run in runs:
        schedule = gp.Schedule.logged(run)
        for share in (0.1, 0.5):
            k = int(np.ceil(share * len(run)))
            rounded = [float(f"{rate:.1e}") for rate in run.lr]
            late = np.r_[run.lr[:1], run.lr[:-1]]
            for rates in (run.lr, rounded, late):
                seen = gp.Trace(run.step[:k], run.loss[:k], lr=rates[:k])
                gp.forecast(seen, run.step[-1], schedule=schedule)


def test_a_schedule_of_another_peak_or_shape_is_refused(root: Path) -> None:
    for run in logged_runs(root):
        seen = run.until(0.3 * run.step[-1])
        for factor in (0.5, 2.0):
            other = gp.Schedule(run.step, factor * run.lr)
            with pytest.raises(gp.InputError, match="where the run logged"):
                gp.forecast(seen, run.step[-1], schedule=other)
    t, loss = noisy_power_law()
    falling = gp.Trace(t, loss, lr=1 - t / 200)
    for other in (gp.Schedule.constant(1.0), gp.Schedule.cosine(1.0, 200)):
        with pytest.raises(gp.InputError, match="where the run logged"):
            gp.forecast(falling, 200, schedule=other)
    steady = gp.Trace(t, loss, lr=np.full(100, 0.001))
    with pytest.raises(gp.InputError) as error:
        gp.reach(steady, 1.1, budget=200, schedule=gp.Schedule.linear(0.001, 200))
    assert str(error.value) == (
        "schedule: learning rate 0.0005 at step 100, where the run logged 0.001: a schedule is "
        "that of the whole run, past and planned"
    )


def test_a_schedule_in_epochs_for_a_log_in_steps_is_refused() -> None:
    epochs = gp.Schedule.cosine(0.1, 30)
    for t in (np.arange(10.0, 2001, 10), np.arange(10.0, 1001, 10), np.arange(100.0, 301, 100)):
        run, last = gp.Trace(t, 3 * t**-0.3), float(t[-1])
        watch = gp.Watch(target=0.1, budget=2 * last, schedule=epochs)
        for step, loss in zip(run.step, run.loss, strict=True):
            watch.add(step, loss)
        for verb in (
            lambda run=run, last=last: gp.forecast(run, 2 * last, schedule=epochs),
            lambda run=run, last=last: gp.reach(run, 0.1, budget=2 * last, schedule=epochs),
            lambda run=run, last=last: gp.best_so_far(run, budget=2 * last, schedule=epochs),
            watch.decision,
        ):
            with pytest.raises(gp.InputError) as error:
                verb()
            assert str(error.value) == (
                "schedule: learning rate 0 from step 30 on, expected above 0 at most of the log, "
                f"whose steps are {t[0]:g} to {last:g}: a schedule counts the steps of the log"
            )


def test_a_log_that_goes_on_after_its_plan_is_forecast_by_its_schedule() -> None:
    t, loss = noisy_power_law()
    run = gp.Trace(t, loss)
    for ended in (
        gp.Schedule.cosine(0.1, 50),
        gp.Schedule.cosine(0.1, 20),
        gp.Schedule.cosine(0.1, 30, final=0.01),
    ):
        assert gp.forecast(run, 200, schedule=ended).status == "good"


def test_a_constant_schedule_changes_no_forecast() -> None:
    t, loss = noisy_power_law()
    plain = gp.forecast(gp.Trace(t, loss), [120, 200])
    for rate in (0.0, 0.1):
        steady = gp.forecast(gp.Trace(t, loss), [120, 200], schedule=gp.Schedule.constant(rate))
        np.testing.assert_array_equal(steady.quantiles, plain.quantiles)


@pytest.mark.parametrize("digits", [3, 7])
@pytest.mark.parametrize(
    ("plan", "share", "shape"),
    [
        (gp.Schedule.cosine(3e-4, 5000, warmup=100, final=3e-5), 0.3, "cosine"),
        (gp.Schedule.cosine(3e-4, 5000), 0.9, "cosine"),
        (gp.Schedule.linear(3e-4, 5000, warmup=500), 0.4, "linear"),
        (gp.Schedule.wsd(3e-4, 5000, warmup=100), 0.9, "wsd"),
        (gp.Schedule.constant(1e-3), 0.97, "constant"),
    ],
)
def test_a_clear_schedule_is_inferred_from_the_logged_rates(
    plan: gp.Schedule, share: float, shape: str, digits: int
) -> None:
    seen = live(plan.at(np.arange(10.0, 5000 * share, 10.0)), digits)
    found = inferred(seen)
    assert found is not None
    assert found[0] == shape
    ahead = np.linspace(seen.step[-1], 5000, 100)
    assert np.abs(found[1].at(ahead) - plan.at(ahead)).max() < 0.01 * plan.lr.max()
    assert gp.Schedule.infer(seen) == found[1]


@pytest.mark.parametrize(
    "rates",
    [
        1e-3 * np.exp(-np.arange(150) / 200),  # of no shape that is known
        1e-3 / np.sqrt(np.arange(1, 151)),
        gp.Schedule.cosine(1e-3, 2000).at(np.arange(10.0, 1510, 10)),  # ends before the plan
        gp.Schedule.cosine(1e-3, 20000).at(np.arange(10.0, 1510, 10)),  # ends after the plan
        np.full(150, 1e-3),  # a decay may follow
        1e-3 * 0.5 ** (np.arange(150) // 50),  # steps
        gp.Schedule.linear(1e-3, 5000).at(np.arange(10.0, 110, 10)),  # too few points
        gp.Schedule.linear(1e-3, 5000, warmup=2000).at(np.arange(10.0, 1510, 10)),  # warms up
        np.zeros(150),
    ],
)
def test_a_schedule_that_is_not_clear_is_not_guessed(rates: Any) -> None:
    assert gp.Schedule.infer(live(rates, 7)) is None


def test_a_schedule_is_not_inferred_without_rates_or_a_plan() -> None:
    step = np.arange(10.0, 1510, 10)
    rates = gp.Schedule.linear(1e-3, 5000).at(step)
    for given in ({"lr": rates}, {"planned_steps": 5000}, {"lr": rates, "planned_steps": 1500}):
        assert gp.Schedule.infer(gp.Trace(step, step, **given)) is None


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["digits-mlp", "docs-lstm", "docstring-t5"])
def test_no_schedule_of_a_bundled_run_is_inferred_wrongly(name: str, share: float) -> None:
    shapes = set()
    for trace in gp.read_traces(ROOT / "data" / "curves" / f"{name}.csv.gz"):
        assert trace.lr is not None
        seen = trace.until(trace.step[int(share * len(trace))])
        planned = gp.Trace(seen.step, seen.loss, lr=seen.lr, planned_steps=trace.step[-1])
        found = inferred(planned)
        if found is not None:
            shapes.add(found[0])
            assert np.nanmax(np.abs(found[1].at(trace.step) - trace.lr)) < 0.01 * trace.lr.max()
    assert share < 0.3 or "cosine" in shapes
    assert share < 0.9 or "wsd" in shapes


def live(rates: Any, digits: int) -> gp.Trace:
    """A run of 5000 planned steps that logs its rate every 10 with so many digits."""
    step = np.arange(10.0, 10.0 * len(rates) + 10, 10.0)
    logged = [float(f"{rate:.{digits - 1}e}") for rate in rates]
    return gp.Trace(step, 2 + step**-0.5, lr=logged, planned_steps=5000)
