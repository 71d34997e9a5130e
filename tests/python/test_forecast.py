# SPDX-License-Identifier: Apache-2.0
"""Forecasts through the Python surface, against the published prototype and on odd input."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import glidepath as gp
from glidepath import _core

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "golden" / "forecast_prototype.json"
PROTOTYPE = ROOT.parent / "shared" / "method" / "forecast_reference.py"


def curve(kind: str, total: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A generated run: deterministic, the noise from a fixed stream."""
    t = np.arange(1.0, total + 1) * 7
    x = t / t[-1]
    value = {
        "power": lambda: 2 + 3 * (t / 7) ** -0.5,
        "exponential": lambda: 0.5 + np.exp(-5 * x),
        "rising": lambda: 1 + x**2,
        "steep": lambda: 100 * (t / 7) ** -1.2 + 0.01,
        "waving": lambda: 2 + 0.3 * np.cos(9 * x) + t**-0.3,
    }[kind]()
    return t, value * np.exp(noise * np.random.RandomState(0).standard_normal(total))


CASES = [
    (kind, seen, total, noise)
    for kind in ("power", "exponential", "rising", "steep", "waving")
    for seen, total in ((4, 60), (20, 100), (200, 500))
    for noise in (0.0, 0.02)
]


def case_id(case: tuple[str, int, int, float]) -> str:
    kind, seen, total, noise = case
    return f"{kind}-{seen}of{total}-noise{noise:g}"


def schedule(total: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(1.0, total + 1) * 10
    lr = 0.5 * (1 + np.cos(np.pi * t / t[-1]))
    noise = np.random.RandomState(1).standard_normal(total)
    return t, (2 + 3 * (t / 10) ** -0.4 - 0.05 * (1 - lr)) * np.exp(0.005 * noise), lr


def constants_with(**numbers: float) -> str:
    """The learned constants with some of them changed."""
    table = _core.constants_named("learned")
    for key, value in numbers.items():
        table, found = re.subn(rf"(?m)^{key} .*$", f"{key} {value:g}", table)
        assert found == 1
    return table


def past_runs() -> list[tuple[np.ndarray, np.ndarray]]:
    t = np.arange(1.0, 301) * 10
    return [(t, 1.8 + 0.1 * i + 3 * (t / 10) ** -(0.3 + 0.05 * i)) for i in range(6)]


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_prototype_constants_give_the_stored_answers_of_the_prototype(
    case: tuple[str, int, int, float],
) -> None:
    kind, seen, total, noise = case
    t, y = curve(kind, total, noise)
    stored = json.loads(STORED.read_text())[case_id(case)]
    ours = gp.forecast(gp.Trace(t[:seen], y[:seen]), t[seen:], constants="prototype")
    few = np.linspace(0, total - seen - 1, 9).astype(int)
    np.testing.assert_allclose(ours.median[few], stored["mean"], rtol=1e-8)
    np.testing.assert_allclose(
        ours.quantiles[np.ix_([0, 9, 18], few)], stored["quantiles"], rtol=1e-8
    )


@pytest.fixture(scope="module")
def prototype() -> ModuleType:
    pytest.importorskip("scipy")
    if not PROTOTYPE.exists():
        pytest.skip("the prototype is not beside this repository")
    spec = importlib.util.spec_from_file_location("forecast_prototype", PROTOTYPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prototype_constants_equal_the_prototype_itself(prototype: ModuleType) -> None:
    for kind, noise in (("power", 0.05), ("waving", 0.001)):
        t, y = curve(kind, 120, noise)
        for seen in (5, 30, 90):
            theirs = prototype.forecast(t[:seen], y[:seen], t[seen:])
            ours = gp.forecast(gp.Trace(t[:seen], y[:seen]), t[seen:], constants="prototype")
            np.testing.assert_allclose(ours.median, theirs["mean"], rtol=1e-8)
            np.testing.assert_allclose(ours.quantiles, theirs["quantiles"], rtol=1e-8)


def test_known_schedules_equal_the_prototype(prototype: ModuleType) -> None:
    t, y, lr = schedule(300)
    for seen in (30, 120, 250):
        theirs = prototype.forecast(t[:seen], y[:seen], t[seen:], lr=(lr[:seen], lr[seen:]))
        trace = gp.Trace(t[:seen], y[:seen], lr=lr[:seen])
        ours = gp.forecast(trace, t[seen:], lr_ahead=lr[seen:], constants="prototype")
        np.testing.assert_allclose(ours.quantiles, theirs["quantiles"], rtol=1e-8)


def test_past_runs_equal_the_prototype(prototype: ModuleType) -> None:
    t, y, _ = schedule(300)
    past = past_runs()
    traces = [gp.Trace(step, loss) for step, loss in past]
    for seen in (30, 120, 250):
        theirs = prototype.forecast(t[:seen], y[:seen], t[seen:], past=past)
        ours = gp.forecast(
            gp.Trace(t[:seen], y[:seen]), t[seen:], past=traces, constants="prototype"
        )
        np.testing.assert_allclose(ours.quantiles, theirs["quantiles"], rtol=1e-8)


def test_batch_rows_equal_single_forecasts_whatever_the_threads() -> None:
    t, _ = curve("power", 40, 0.0)
    noise = np.random.RandomState(2).standard_normal((23, 40))
    losses = (1 + t ** -np.linspace(0.1, 1, 23)[:, None]) * np.exp(0.02 * noise)
    steps = np.linspace(300, 2000, 40)
    batch = gp.forecast_batch(t, losses, steps, threads=1)
    assert gp.forecast_batch(t, losses, steps, threads=2) == batch
    for i in (0, 7, 22):
        single = gp.forecast(gp.Trace(t, losses[i]), steps)
        np.testing.assert_array_equal(batch.median[i], single.median)
        np.testing.assert_array_equal(batch.quantiles[:, i], single.quantiles)


def test_result_survives_pickle_and_says_whether_it_is_good() -> None:
    t, y = curve("power", 60, 0.01)
    f = gp.forecast(gp.Trace(t, y), [500.0, 900.0])
    again = pickle.loads(pickle.dumps(f))
    assert again == f
    assert "good" in repr(f)
    np.testing.assert_allclose(f.quantile(0.5), f.median)
    np.testing.assert_allclose(again.quantile(0.3), f.quantiles[5])
    assert np.all(f.curve_quantile(0.9) <= f.quantile(0.9) + 1e-12)
    below = f.prob_below(float(f.quantile(0.2)[1]))
    assert below[1] == pytest.approx(0.2, abs=1e-6)


def test_reach_is_a_distribution_with_an_atom_at_never() -> None:
    t, y = curve("power", 100, 0.002)
    r = gp.reach(gp.Trace(t, y), 2.2, budget=7000)
    assert 0 <= r.prob_never <= 1
    assert r.prob_by(7000) == pytest.approx(1 - r.prob_never)
    assert r.quantile(0.1) < r.quantile(0.5)
    assert gp.reach(gp.Trace(t, y), 0.1, budget=7000).quantile(0.5) == np.inf
    assert gp.reach(gp.Trace(t, y), float(y[10]), budget=7000).prob_never == 0


@pytest.mark.parametrize(
    ("loss", "status"),
    [
        ([2.0], "too_few_points"),
        ([2.0, 1.0], "too_few_points"),
        ([1.0, 1.0, 1.0], "flat"),
        ([3.0, 2.0, np.nan], "not_finite"),
        ([np.nan] * 5, "not_finite"),
        ([3.0, 2.0, 1.0, 0.5], "good"),
        ([3.0, -2.0, -4.0, -5.0], "good"),
    ],
)
def test_odd_traces_get_finite_answers_and_a_status(loss: list[float], status: str) -> None:
    trace = gp.Trace(np.arange(len(loss)), loss)
    f = gp.forecast(trace, [10, 20, 30])
    assert f.status == status
    assert np.isfinite(f.quantiles).all()
    assert np.isfinite(f.median).all()
    assert 0 <= gp.reach(trace, -100.0, budget=50).prob_never <= 1


def test_input_errors_name_the_value() -> None:
    t, y = curve("power", 30, 0.0)
    trace = gp.Trace(t, y)
    with pytest.raises(gp.InputError, match="step 5"):
        gp.forecast(trace, [5.0])
    with pytest.raises(gp.InputError, match="levels"):
        gp.forecast(trace, [500.0], levels=[0.5, 0.2])
    with pytest.raises(gp.InputError, match="learning rate"):
        gp.forecast(gp.Trace(t, y, lr=y), [500.0, 600.0], lr_ahead=[0.1])
    with pytest.raises(gp.InputError, match="line 1"):
        gp.forecast(trace, [500.0], constants="nonsense")


def finished_runs(count: int, noise: float = 0.02) -> list[gp.Trace]:
    t = np.arange(1.0, 81)
    return [
        gp.Trace(
            t,
            (1 + 0.1 * i + t ** -(0.3 + 0.02 * i))
            * np.exp(noise * np.random.RandomState(i).standard_normal(80)),
        )
        for i in range(count)
    ]


def test_calibration_changes_widths_by_its_factor_and_survives_json() -> None:
    runs = finished_runs(12)
    calibration = gp.calibrate(runs)
    assert calibration.runs == 12
    again = gp.Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again == calibration
    trace, steps = gp.Trace(runs[0].step[:40], runs[0].loss[:40]), [44.2, 60.0, 79.0]
    plain = gp.forecast(trace, steps, calibration=None)
    wide = gp.forecast(
        trace, steps, calibration=gp.Calibration(np.array([0.0]), np.array([2.0]), 50)
    )
    np.testing.assert_array_equal(plain.median, wide.median)
    ratio = np.log(wide.quantiles[18] / wide.median) / np.log(plain.quantiles[18] / plain.median)
    np.testing.assert_allclose(ratio, 2.0, rtol=1e-9)
    with pytest.raises(gp.InputError, match=r"glidepath\.calibration"):
        gp.Calibration.from_dict({"format": "other"})
    with pytest.raises(gp.InputError, match="no finished runs"):
        gp.calibrate([])


def annealed_runs(count: int, gain: float, noise: float = 0.02) -> list[gp.Trace]:
    """Power laws under cosine schedules, which fall by `gain` as the learning rate does."""
    t = np.arange(1.0, 121)
    lr = 0.5 * (1 + np.cos(np.pi * t / 120))
    spent = np.cumsum(lr)
    return [
        gp.Trace(
            t,
            (1 + 3 * spent ** -(0.3 + 0.02 * i))
            * np.exp(-gain * (1 - lr) + noise * np.random.RandomState(i).standard_normal(120)),
            lr=lr,
            name=f"run{i}",
        )
        for i in range(count)
    ]


def test_runs_with_a_learning_rate_teach_widths_of_their_own_for_forecasts_that_know_it() -> None:
    runs = annealed_runs(12, gain=0.05)
    calibration = gp.calibrate(runs)
    assert calibration.scheduled_runs == calibration.runs == 12
    assert calibration.schedule_helps
    assert not np.allclose(calibration.scheduled_factor, calibration.factor)
    again = gp.Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again == calibration
    run, k = annealed_runs(13, gain=0.05)[12], 60
    seen, steps = gp.Trace(run.step[:k], run.loss[:k], lr=run.lr[:k]), run.step[[69, 89, 119]]
    known = {"lr_ahead": (run.step[k:], run.lr[k:])}
    for options, factor in (({}, calibration.factor), (known, calibration.scheduled_factor)):
        plain = gp.forecast(seen, steps, **options)
        wide = gp.forecast(seen, steps, calibration=calibration, **options)
        np.testing.assert_array_equal(plain.median, wide.median)
        ratio = np.log(wide.quantiles[18] / wide.median) / np.log(
            plain.quantiles[18] / plain.median
        )
        np.testing.assert_allclose(
            ratio, np.interp(np.log(steps / k), calibration.horizon, factor), rtol=1e-9
        )
    # Runs without one say nothing of such forecasts, which keep their widths.
    blind = gp.calibrate([gp.Trace(r.step, r.loss) for r in runs])
    assert blind.scheduled_factor.size == blind.scheduled_runs == 0
    np.testing.assert_array_equal(blind.factor, calibration.factor)
    np.testing.assert_array_equal(
        gp.forecast(seen, steps, calibration=blind, **known).quantiles,
        gp.forecast(seen, steps, **known).quantiles,
    )
    online = gp.Calibration().update(runs[0])
    assert online.runs == online.scheduled_runs == 1


def test_a_schedule_that_misled_on_finished_runs_is_left_out_of_account() -> None:
    # Runs on which the logged learning rate has no effect: no drop where it falls, no slower clock.
    t = np.arange(1.0, 121)
    lr = np.where(t < 40, 1.0, 0.02)
    runs = [
        gp.Trace(
            t,
            (1 + t ** -(0.3 + 0.02 * i))
            * np.exp(0.01 * np.random.RandomState(i).standard_normal(120)),
            lr=lr,
        )
        for i in range(12)
    ]
    misled = gp.calibrate(runs)
    assert not misled.schedule_helps
    assert "mislead" in repr(misled)
    seen = gp.Trace(t[:30], runs[0].loss[:30], lr=lr[:30])
    known = {"lr_ahead": (t[30:], lr[30:])}
    heeded = gp.forecast(seen, [110.0], **known)
    told = gp.forecast(seen, [110.0], calibration=misled, **known)
    blind = gp.forecast(seen, [110.0], calibration=misled)
    np.testing.assert_array_equal(told.quantiles, blind.quantiles)
    truth = 1 + 110.0**-0.3
    assert abs(told.median[0] - truth) < abs(heeded.median[0] - truth)
    # A loss that falls to 0 says nothing of the schedule, whatever its logarithm.
    # (Seen to 80 or 60 %, calibrate looks at steps 107 and 108.)
    for judged in (runs, annealed_runs(12, gain=0.05)):
        fallen = [gp.Trace(r.step, np.where(t > 105, 0.0, r.loss), lr=r.lr) for r in judged]
        assert gp.calibrate(fallen).schedule_helps == gp.calibrate(judged).schedule_helps
    # Four runs are too few to judge by.
    assert gp.calibrate(runs[:4]).schedule_helps


def test_when_a_target_is_reached_if_at_all_leaves_never_out_of_account() -> None:
    t = np.arange(1.0, 101)
    loss = (1 + 2 * t**-0.5) * np.exp(0.01 * np.random.RandomState(0).standard_normal(100))
    law = gp.reach(gp.Trace(t, loss), 1.03, budget=700)
    assert 0.5 < law.prob_never < 1
    assert law.quantile(0.5) == np.inf
    when = law.quantile(0.5, if_reached=True)
    assert 100 < when < 700
    assert law.prob_by(when) == pytest.approx(0.5 * (1 - law.prob_never))
    assert law.quantile(1.0, if_reached=True) <= 700
    assert f"if so by step {when:.5g} (median)" in repr(law)
    assert f"step {when:.5g} (80 %: " in law._repr_html_()
    sure = gp.Reach(np.array([1.0, 2.0]), np.array([0.0, 1.0]), 0.0, 1.0, 2.0, "good")
    assert sure.quantile(0.3, if_reached=True) == sure.quantile(0.3) == 1.3
    never = gp.Reach(np.array([1.0, 2.0]), np.zeros(2), 1.0, 1.0, 2.0, "good")
    assert never.quantile(0.0, if_reached=True) == np.inf
    assert "if so" not in repr(never)


def test_past_runs_of_another_direction_are_refused() -> None:
    run = finished_runs(1)[0]
    rising = gp.Trace(run.step, 1 - np.exp(-run.step / 30), direction="max", name="accuracy")
    with pytest.raises(gp.InputError, match=r"past: 'accuracy' has direction 'max', .* 'min'"):
        gp.forecast(run, [100.0], past=[run, rising])
    with pytest.raises(gp.InputError, match=r"direction 'min', the live run 'max'"):
        gp.Watch(target=0.9, direction="max", past=[run])


def test_a_calibration_of_version_1_is_read_and_a_broken_one_refused() -> None:
    state = {
        "format": "glidepath.calibration",
        "version": 1,
        "horizon": [0.1, 0.4],
        "factor": [2.0, 3.0],
        "runs": 9,
    }
    before = gp.Calibration.from_dict(state)
    assert before == gp.Calibration(np.array([0.1, 0.4]), np.array([2.0, 3.0]), 9)
    with pytest.raises(gp.InputError, match="no 'factor'"):
        gp.Calibration.from_dict({k: v for k, v in state.items() if k != "factor"})
    with pytest.raises(gp.InputError, match="2 horizons, 1 scheduled factors"):
        gp.Calibration.from_dict(state | {"version": 2, "scheduled_factor": [1.0]})
    with pytest.raises(gp.InputError, match="version 3"):
        gp.Calibration.from_dict(state | {"version": 3})
    run = finished_runs(1)[0]
    with pytest.raises(gp.InputError, match="2 horizons, 1 factors"):
        gp.forecast(run, [100.0], calibration=gp.Calibration(np.zeros(2), np.ones(1), 1))


def test_calibration_narrows_what_was_too_wide_for_easy_runs() -> None:
    # Exact power laws are easier than the runs that the widths were learned from.
    assert np.all(gp.calibrate(finished_runs(30, noise=0.0)).factor < 1.0)


def test_watch_tells_reached_from_will_reach_from_never_from_diverged() -> None:
    t = np.arange(1.0, 201)
    loss = (1 + 2 * t**-0.5) * np.exp(0.002 * np.random.RandomState(0).standard_normal(200))

    def verdict(target: float, seen: int, values: np.ndarray = loss) -> gp.Decision:
        watch = gp.Watch(target=target, budget=1000)
        for step, value in zip(t[:seen], values[:seen], strict=True):
            watch.add(step, value)
        return watch.decision()

    assert verdict(1.2, 200).verdict == "reached"
    assert verdict(0.4, 150).verdict == "never"
    assert verdict(float(loss[149]) * 0.999, 149).probability > 0.9
    assert verdict(1.1, 3).verdict == "unknown"
    nan_tail = np.where(t > 60, np.nan, loss)
    assert verdict(1.1, 70, nan_tail).verdict == "diverged"
    assert verdict(1.1, 61, nan_tail).verdict != "diverged"  # one NaN may be the logger's
    assert verdict(1.1, 80, np.where(t > 60, 50.0, loss)).verdict == "diverged"
    assert verdict(1.1, 62, np.where(t == 60, 500.0, loss)).verdict != "diverged"  # a spike
    for decision in (verdict(1.2, 200), verdict(1.1, 150), verdict(0.4, 150)):
        low, middle, high = decision.steps_to_target
        assert low <= middle <= high
        assert decision.reason


def test_watch_excludes_nothing_before_it_has_seen_enough() -> None:
    def verdict(points: int, budget: float) -> str:
        watch = gp.Watch(target=0.01, budget=budget)
        for step in range(1, points + 1):
            watch.add(step, 2 + 1e-3 * (step % 2))
        return watch.decision().verdict

    assert verdict(12, 100) == "never"
    assert verdict(12, 1000) == "unknown"  # few points of a small part of the budget
    assert verdict(50, 1000) == "never"


def test_watch_spends_its_error_rate_as_it_spends_its_budget() -> None:
    # The same run, target and end: what excludes the target for good late in the run did not early.
    rng = np.random.RandomState(4)
    t = np.arange(1.0, 401)
    loss = (1 + 2 * t**-0.5) * np.exp(0.01 * rng.standard_normal(400))
    watch = gp.Watch(target=0.95, budget=500, alpha=0.02)
    for step, value in zip(t, loss, strict=True):
        watch.add(step, value)
        decision = watch.decision()
        if decision.verdict == "never":
            assert decision.probability <= 0.02 * (step / 500) ** 3
            break
    else:
        pytest.fail("a target that far below was never excluded")


def lagged(annealed: np.ndarray, points: float) -> np.ndarray:
    follows = [0.0]
    for value in annealed:
        follows.append(follows[-1] + (value - follows[-1]) / points)
    return np.array(follows[1:])


def schedule_law(total: int, warmup: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step, loss and rate: a law in the sum of the rate, which rises straight, then a cosine."""
    t = np.arange(1.0, total + 1)
    cosine = 0.55 + 0.45 * np.cos(np.pi * (t - warmup) / (total - warmup))
    lr = np.where(t < warmup, t / warmup, cosine)
    annealed = np.where(t < warmup, 0.0, 1 - lr)
    noise = np.random.RandomState(seed).standard_normal(total)
    law = 2 + 12 * np.cumsum(lr) ** -0.5
    return t, law * np.exp(-0.05 * lagged(annealed, 0.02 * total) + 0.001 * noise), lr


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
            for constants, errors in ((None, ours), (whole, counted)):
                f = gp.forecast(trace, t[seen:], lr_ahead=lr[seen:], constants=constants)
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
            abs(gp.forecast(trace, t[seen:], lr_ahead=lr[seen:], constants=c).median[-1] - y[-1])
            for c in without_gain
        )
        assert ours < proportional


def test_a_run_that_learns_nothing_is_not_promised_a_drop_by_its_schedule() -> None:
    t = np.arange(1.0, 251)
    lr = np.where(t > 190, 0.2, 1.0)
    for seed in range(4):
        y = 2.3 + 0.002 * np.random.RandomState(seed).standard_normal(250)
        f = gp.forecast(gp.Trace(t[:50], y[:50], lr=lr[:50]), t[50:], lr_ahead=lr[50:])
        assert abs(f.median[-1] - 2.3) < np.ptp(y[:50])


def test_a_run_that_still_falls_fast_gains_more_by_annealing_than_one_that_does_not() -> None:
    grid = constants_with(gain_fall=0)
    t = np.arange(1.0, 301)
    lr = np.where(t > 150, 1 - (t - 150) / 150, 1.0)
    for power, grows in ((0.4, True), (0.1, False)):  # falls of 0.28 and 0.07 an octave
        trace = gp.Trace(t[:120], 3 * t[:120] ** -power, lr=lr[:120])
        ours, plain = (
            gp.forecast(trace, t[120:], lr_ahead=lr[120:], constants=c).median for c in (None, grid)
        )
        if grows:
            assert ours[-1] < 0.97 * plain[-1]
        else:
            np.testing.assert_array_equal(ours, plain)


def test_runs_that_were_foreseen_get_narrower_intervals_under_a_schedule_that_hold() -> None:
    without = constants_with(backtest=0)
    width, wider, holds = [], [], []
    for seed in range(6):
        t, y, lr = schedule_law(1500, 100, seed)
        for seen in (600, 900):
            trace = gp.Trace(t[:seen], y[:seen], lr=lr[:seen])
            narrow = gp.forecast(trace, t[seen:], lr_ahead=lr[seen:]).quantiles
            wide = gp.forecast(trace, t[seen:], lr_ahead=lr[seen:], constants=without).quantiles
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
    ours = gp.forecast(trace, t[200:], lr_ahead=lr[200:]).quantiles
    wide = gp.forecast(
        trace, t[200:], lr_ahead=lr[200:], constants=constants_with(backtest=0)
    ).quantiles
    assert (ours[17] - ours[1]).mean() > 0.7 * (wide[17] - wide[1]).mean()


def test_watch_foresees_what_a_planned_decay_brings() -> None:
    t = np.arange(1.0, 301)
    lr = np.where(t > 200, (300 - t) / 100, 1.0)
    noise = np.random.RandomState(0).standard_normal(300)
    y = (2 + 3 * t**-0.4) * np.exp(-0.05 * lagged(1 - lr, 9) + 0.002 * noise)
    target = float(y[-20:].mean())
    blind = gp.Watch(target=target, budget=300)
    told = gp.Watch(target=target, budget=300, schedule=([1, 200, 300], [1.0, 1.0, 0.0]))
    for step, value in zip(t[:180], y[:180], strict=True):
        blind.add(step, value)
        told.add(step, value, lr=1.0)
    assert told.decision().probability > blind.decision().probability + 0.3
    again = gp.Watch()
    again.load_state_dict(json.loads(json.dumps(told.state_dict(), allow_nan=False)))
    assert again.decision() == told.decision()
    with pytest.raises(gp.InputError, match="not above"):
        gp.Watch(target=1.0, schedule=([10.0, 5.0], [0.1, 0.2]))


def test_watch_reads_a_state_of_the_version_before() -> None:
    watch = gp.Watch(target=1.0)
    for step in range(1, 30):
        watch.add(step, 2 - 0.01 * step)
    old = {k: v for k, v in watch.state_dict().items() if k not in ("lr", "schedule")}
    again = gp.Watch()
    again.load_state_dict({**old, "version": 1})
    assert again.decision() == watch.decision()


def test_watch_knows_the_noise_of_a_run_whose_old_points_it_has_merged() -> None:
    rng = np.random.RandomState(8)
    t, y = np.arange(1.0, 2001), np.maximum(1 + 0.02 * rng.standard_normal(2000), 0.921)
    watch = gp.Watch(target=0.92, budget=4000)
    for step, value in zip(t, y, strict=True):
        watch.add(step, value)
    # A record low of the noise is as likely as from all the points.
    whole = gp.reach(gp.Trace(t, y), 0.92, budget=4000)
    assert watch.decision().probability == pytest.approx(1 - whole.prob_never, abs=0.1)


def test_watch_continues_from_its_state_through_json_and_pickle() -> None:
    watch = gp.Watch(target=1.05, budget=5000, alpha=0.05)
    for step in range(1, 3001):
        watch.add(step, 1 + step**-0.5)
    text = json.dumps(watch.state_dict(), allow_nan=False)
    assert len(text) < 8000
    other = gp.Watch()
    other.load_state_dict(json.loads(text))
    assert other.decision() == watch.decision()
    assert pickle.loads(pickle.dumps(watch)).decision() == watch.decision()
    watch.add(3001, 1.01)
    other.add(3001, 1.01)
    assert other.state_dict() == watch.state_dict()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": "something else"}, "format"),
        ({"version": 3}, "version"),
        ({"version": None}, "version"),
        ({"step": [1.0, 1.0], "loss": [1.0, 2.0], "weight": [1.0, 1.0]}, "damaged"),
        ({"loss": "x"}, "damaged"),
    ],
)
def test_watch_refuses_a_foreign_state_and_stays_as_it_was(
    damage: dict[str, object], message: str
) -> None:
    watch = gp.Watch(target=1.0)
    for step in range(1, 9):
        watch.add(step, 2 - 0.1 * step)
    before = watch.state_dict()
    with pytest.raises(gp.InputError, match=message):
        watch.load_state_dict({**before, **damage})
    with pytest.raises(gp.InputError, match="lacks"):
        watch.load_state_dict({key: value for key, value in before.items() if key != "loss"})
    assert watch.state_dict() == before


def test_watch_takes_a_step_back_as_a_restart() -> None:
    watch, straight = gp.Watch(target=0.5), gp.Watch(target=0.5)
    for step in range(1, 30):
        watch.add(step, 1 + 1 / step)
        if step < 20:
            straight.add(step, 1 + 1 / step)
    for step in range(20, 40):
        watch.add(step, 1 + 1 / step)
        straight.add(step, 1 + 1 / step)
    assert watch.decision() == straight.decision()
    assert watch.state_dict()["restarts"] == 1


def wide(f: gp.Forecast) -> np.ndarray:
    """Width of the 80 % interval of raw observations."""
    return f.quantiles[17] - f.quantiles[1]


def noisy_power_law(seed: int = 0, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(1.0, n + 1)
    noise = np.random.RandomState(seed).standard_normal(n)
    return t, (1 + 2 * t**-0.5) * np.exp(0.01 * noise)


AHEAD = [101.0, 150.0, 300.0]


@pytest.mark.parametrize("at", [1, 5, 50, 96, 98, 99])
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-3])
@pytest.mark.parametrize("shift", [0.0, -1.2])  # positive, and signed
def test_one_spike_changes_neither_the_forecast_nor_its_width(
    at: int, factor: float, shift: float
) -> None:
    t, loss = noisy_power_law()
    spiked = loss.copy()
    spiked[at] *= factor
    calm = gp.forecast(gp.Trace(t, loss + shift), AHEAD)
    f = gp.forecast(gp.Trace(t, spiked + shift), AHEAD)
    assert np.all(np.abs(f.median - calm.median) < wide(calm))
    assert np.all(wide(f) < 2 * wide(calm))


def test_five_spikes_and_a_rising_metric_that_drops_to_zero_once() -> None:
    t, loss = noisy_power_law()
    calm = gp.forecast(gp.Trace(t, loss), AHEAD)
    spiked = loss.copy()
    spiked[[10, 30, 50, 70, 90]] *= 1000
    f = gp.forecast(gp.Trace(t, spiked), AHEAD)
    assert np.all(np.abs(f.median - calm.median) < wide(calm))
    accuracy = 1 - 0.3 * loss
    dropped = accuracy.copy()
    dropped[60] = 0.0
    up = gp.forecast(gp.Trace(t, accuracy, direction="max"), AHEAD)
    f = gp.forecast(gp.Trace(t, dropped, direction="max"), AHEAD)
    assert np.all(np.abs(f.median - up.median) < wide(up))
    assert np.all(f.quantiles <= 1)


@pytest.mark.parametrize("seen_after", [8, 20, 40])
def test_after_a_plateau_that_dropped_the_forecast_starts_at_the_new_level(
    seen_after: int,
) -> None:
    rng = np.random.RandomState(1)
    t = np.arange(1.0, 61 + seen_after)
    loss = np.where(t <= 60, 2.0, 1.0) * np.exp(0.01 * rng.standard_normal(t.size))
    f = gp.forecast(gp.Trace(t, loss), [t[-1] + 1, 2 * t[-1]])
    assert abs(f.median[0] - 1) < 0.1
    assert f.quantiles[0, 0] < 1 < f.quantiles[18, 0]
    assert f.quantiles[0, 1] < 1 < f.quantiles[18, 1]


def test_three_points_at_a_new_level_are_believed_by_half() -> None:
    # One is a spike; eight are a level (above): in between the law has both.
    rng = np.random.RandomState(1)
    t = np.arange(1.0, 101)
    loss = np.where(t <= 96, 2.0, 1.0) * np.exp(0.01 * rng.standard_normal(100))
    f = gp.forecast(gp.Trace(t, loss), [101.0])
    assert f.quantile(0.01)[0] < 1.1
    assert f.quantile(0.99)[0] > 1.9


def test_a_divergence_is_expected_to_go_on_within_its_clip() -> None:
    t, loss = noisy_power_law()
    loss = loss * np.exp(np.maximum(t - 80, 0) / 5)
    f = gp.forecast(gp.Trace(t, loss), AHEAD)
    assert np.all(f.median > 0.9 * loss[-1])
    # log-loss may rise by as much as the run has spanned, not further
    assert np.all(f.quantiles <= loss.max() ** 2 / loss.min() * (1 + 1e-9))
    assert gp.reach(gp.Trace(t, loss), 1.0, budget=200).prob_never > 0.8


def test_nan_inside_a_run_is_left_out_and_at_its_end_is_reported() -> None:
    t, loss = noisy_power_law()
    holes = np.where(t % 3 == 0, np.nan, loss)
    clean = np.isfinite(holes)
    f = gp.forecast(gp.Trace(t, holes), AHEAD)
    assert f.status == "good"
    g = gp.forecast(gp.Trace(t[clean], loss[clean]), AHEAD)
    np.testing.assert_array_equal(f.quantiles, g.quantiles)
    for tail in (np.nan, np.inf, -np.inf):
        ended = np.where(t > 90, tail, loss)
        f = gp.forecast(gp.Trace(t, ended), AHEAD)
        assert f.status == "not_finite"
        assert np.isfinite(f.quantiles).all()
        assert abs(f.median[0] - loss[90]) < 0.1


@pytest.mark.parametrize(("count", "status"), [(1, "too_few_points"), (2, "too_few_points")])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_or_two_points_give_the_last_value_and_a_wide_interval(
    count: int, status: str, sign: float
) -> None:
    t, loss = noisy_power_law()
    last = sign * loss[count - 1]
    f = gp.forecast(gp.Trace(t[:count], sign * loss[:count]), [3.0, 30.0])
    assert f.status == status
    np.testing.assert_allclose(f.median, last)
    # in units of the value, or, of a signed metric, of the step that it took
    unit = abs(last) if sign > 0 or count == 1 else abs(loss[0] - loss[1])
    assert np.all(wide(f) > 0.3 * unit)
    assert wide(f)[1] > wide(f)[0]


@pytest.mark.parametrize("count", [3, 4])
def test_three_or_four_points_give_a_forecast_that_widens(count: int) -> None:
    t, loss = noisy_power_law()
    f = gp.forecast(gp.Trace(t[:count], loss[:count]), [count + 1.0, 10.0, 40.0])
    assert f.status == "good"
    assert np.all(np.diff(wide(f)) > 0)
    assert np.all(f.median < loss[count - 1])
    assert np.all(f.quantiles > 0)


@pytest.mark.parametrize("level", [2.0, -3.0, 0.0, 1e-30, 1e30])
def test_a_constant_run_stays_where_it_is(level: float) -> None:
    f = gp.forecast(gp.Trace(np.arange(1.0, 51), np.full(50, level)), [60.0, 500.0])
    assert f.status == "flat"
    np.testing.assert_allclose(f.median, level)
    assert np.all(wide(f) > 0)
    assert np.all(wide(f) <= 0.1 * max(abs(level), 1.0))
    below = gp.reach(gp.Trace(np.arange(1.0, 51), np.full(50, level)), level - 1.0, budget=500)
    assert below.prob_never > 0.99 or level == 1e30  # where 1 is less than a rounding


def test_noise_around_a_constant_stays_noise() -> None:
    t = np.arange(1.0, 101)
    loss = 2 + 0.01 * np.random.RandomState(0).standard_normal(100)
    f = gp.forecast(gp.Trace(t, loss), AHEAD)
    assert np.all(np.abs(f.median - 2) < 0.01)
    assert np.all((wide(f) > 0.015) & (wide(f) < 0.1))


def test_signed_metrics_are_forecast_beyond_zero() -> None:
    t = np.arange(1.0, 101)
    f = gp.forecast(gp.Trace(t, -np.sqrt(t)), AHEAD)
    assert np.all(np.diff(f.median) < 0)
    assert np.all((f.quantiles[0] < -np.sqrt(AHEAD)) & (-np.sqrt(AHEAD) < f.quantiles[18]))
    crossing = gp.forecast(gp.Trace(t, 1 - 0.02 * t), AHEAD)
    assert np.all(crossing.median[1:] < -1.2)
    reward = gp.Trace(t, -100 + 80 * (1 - np.exp(-t / 30)), direction="max")
    f = gp.forecast(reward, AHEAD)
    assert np.all(np.diff(f.median) > 0)
    assert np.all((f.median > -23) & (f.median < 0))


def test_a_metric_in_percent_is_the_same_metric() -> None:
    t, loss = noisy_power_law()
    share = gp.forecast(gp.Trace(t, 1 - 0.3 * loss, direction="max"), AHEAD)
    percent = gp.forecast(gp.Trace(t, 100 * (1 - 0.3 * loss), direction="max"), AHEAD)
    np.testing.assert_allclose(percent.quantiles, 100 * share.quantiles, rtol=1e-9)


def test_reach_counts_the_first_logged_loss_not_the_curve() -> None:
    rng = np.random.RandomState(0)
    t = np.arange(1.0, 201)
    smooth = 1 + t**-1.0
    noisy = smooth * np.exp(0.05 * rng.standard_normal(200))
    # The curve never falls to 0.95; one of 200 further points with 5 % of noise all but must.
    assert gp.reach(gp.Trace(t, smooth), 0.95, budget=400).prob_never > 0.95
    target = float(noisy.min()) * 0.999
    law = gp.reach(gp.Trace(t, noisy), target, budget=400)
    assert law.prob_never < 0.4
    # Fewer observations to come, less of a chance; far below the noise, none.
    assert law.prob_by(220) < law.prob_by(300) < law.prob_by(400)
    assert gp.reach(gp.Trace(t, noisy), 0.4, budget=400).prob_never > 0.98


def test_reach_is_calibrated_on_noisy_power_laws() -> None:
    # 150 runs, one target each that does not know the future: the mean of the probabilities is the
    # share that reached it. Seeds are fixed; the tolerance is three standard errors.
    probability, reached = [], []
    t = np.arange(1.0, 201)
    for seed in range(150):
        rng = np.random.RandomState(seed)
        curve = rng.uniform(0.5, 2) + t ** -rng.uniform(0.2, 0.8)
        loss = curve * np.exp(rng.uniform(0.003, 0.03) * rng.standard_normal(200))
        target = loss[:80].min() * (1 - rng.uniform(0, 0.15))
        probability.append(1 - gp.reach(gp.Trace(t[:80], loss[:80]), target, budget=200).prob_never)
        reached.append(bool((loss[80:] <= target).any()))
    assert abs(np.mean(probability) - np.mean(reached)) < 3 * 0.5 / np.sqrt(150)
    sure = np.array(probability) < 0.02
    assert sure.sum() > 10
    assert np.array(reached)[sure].mean() < 0.1


def kind(seed: int, drop_at: float, level: float, n: int = 120) -> gp.Trace:
    """One run of a kind: a plateau that drops at a step that only past runs can tell."""
    t = np.arange(1.0, n + 1)
    noise = np.random.RandomState(seed).standard_normal(n)
    curve = level * (1 + 1 / t + 1 / (1 + np.exp((t - drop_at) / 4)))
    return gp.Trace(t, curve * np.exp(0.003 * noise))


def errors_with_and_without(past: list[gp.Trace], runs: list[gp.Trace], k: int) -> np.ndarray:
    """Mean errors of the final value with and without past runs, and the mean pinball losses."""
    out = []
    levels = np.arange(1, 20) / 20
    for run in runs:
        seen, steps = gp.Trace(run.step[:k], run.loss[:k]), run.step[k:]
        for given in (past, None):
            f = gp.forecast(seen, steps, past=given)
            over = run.loss[k:] - f.quantiles
            pinball = np.maximum(levels[:, None] * over, (levels[:, None] - 1) * over).mean()
            out.append((abs(f.median[-1] - run.loss[-1]), pinball))
    return np.array(out).reshape(len(runs), 2, 2).mean(0)


def test_what_follows_is_learned_from_the_past_runs_that_were_like_this_one_so_far() -> None:
    # The steeper a run began, the more it falls at step 200: no run moved or stretched says so.
    t = np.arange(1.0, 301)

    def run(rate: float, seed: int) -> gp.Trace:
        noise = np.random.RandomState(seed).standard_normal(300)
        fall = 1 - (rate - 0.2) * 1.5 * np.clip((t - 200) / 40, 0, 1)
        return gp.Trace(t, 3 * t**-rate * fall * np.exp(0.004 * noise))

    rates = np.random.RandomState(5).uniform(0.2, 0.6, 40)
    past = [run(rate, seed) for seed, rate in enumerate(rates)]
    text = gp._core.constants_named("learned")
    without = "\n".join(line for line in text.splitlines() if not line.startswith("analogy"))
    errors = np.zeros((2, 9))
    for i, rate in enumerate(np.linspace(0.25, 0.55, 9)):
        whole = run(rate, 100 + i)
        for j, constants in enumerate((None, without)):
            f = gp.forecast(whole.until(150), [300.0], past=past, constants=constants)
            errors[j, i] = abs(np.log(f.median[0] / whole.loss[-1]))
            assert f.quantile(0.05)[0] <= whole.loss[-1] <= f.quantile(0.95)[0]
    assert errors[0].mean() < 0.7 * errors[1].mean()


def test_twins_among_the_past_runs_do_not_vouch_for_a_run_that_has_none() -> None:
    # How a run of the folder began tells nothing of what follows, but each has a twin that does.
    t = np.arange(1.0, 201)

    def run(kind: int, twin: int = 0) -> gp.Trace:
        rng = np.random.RandomState(kind)
        fell = np.cumsum([rng.uniform(0, 0.3), *rng.uniform(0.05, 0.45, 4)])
        z = np.interp(np.log(t), np.log([1, 12.5, 25, 50, 100]), 1 - fell)
        jump = rng.uniform(-0.5, 0.5) * np.clip((t - 100) / 50, 0, 1)
        noise = np.random.RandomState(1000 + 2 * kind + twin).standard_normal(200)
        return gp.Trace(t, np.exp(z + jump + 0.001 * noise))

    folder = [run(kind, twin) for kind in range(20) for twin in (0, 1)]
    # Without past runs as shapes, which are believed by their fit alone.
    told = [constants_with(template_odds=1e-9, analogy=mass) for mass in (1, 0)]

    def moved(kind: int, past: list[gp.Trace]) -> float:
        """By how much of the 80 % interval the analogy moves its quantiles."""
        seen = run(kind).until(100)
        ours, plain = (
            gp.forecast(seen, [200.0], past=past, constants=c).quantiles[:, 0] for c in told
        )
        return float(abs(ours - plain)[[3, 9, 15]].max() / (plain[17] - plain[1]))

    alone = [moved(kind, folder) for kind in range(20, 32)]
    with_twin = [moved(kind, [*folder, run(kind, 1)]) for kind in range(20, 32)]
    assert np.mean(alone) < 0.05
    assert np.mean(with_twin) > 2 * np.mean(alone)


def test_five_past_runs_of_the_same_kind_help() -> None:
    past = [kind(i, 60, 0.8 + 0.05 * i) for i in range(5)]
    runs = [kind(100 + i, 60, 0.83 + 0.04 * i) for i in range(6)]
    with_past, alone = errors_with_and_without(past, runs, 40)
    assert np.all(with_past < 0.5 * alone)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_unrelated_past_runs_do_no_harm(count: int) -> None:
    t = np.arange(1.0, 121)
    rng = np.random.RandomState(7)
    shapes = (
        lambda: np.exp(-t / rng.uniform(5, 50)) + rng.uniform(0.01, 0.2),
        lambda: 50 + 300 / t,
        lambda: 8 - 0.05 * t + 0.3 * np.sin(t / rng.uniform(2, 9)),
        lambda: 1 + 3 / (1 + np.exp((t - rng.uniform(20, 110)) / 3)),
        lambda: 2 + 0.02 * t,
    )
    past = [gp.Trace(t, shapes[i % len(shapes)]()) for i in range(count)]
    runs = [gp.Trace(*noisy_power_law(seed, 120)) for seed in range(8)]
    with_past, alone = errors_with_and_without(past, runs, 40)
    assert np.all(with_past <= 1.1 * alone + 1e-3)


def test_a_folder_of_mixed_runs_is_no_worse_than_none_and_finds_the_ones_alike() -> None:
    t = np.arange(1.0, 121)
    rng = np.random.RandomState(3)
    mixed = [
        gp.Trace(t, rng.uniform(0.3, 4) * (rng.uniform(0.1, 1) + t ** -rng.uniform(0.1, 1.5)))
        for _ in range(20)
    ]
    runs = [gp.Trace(*noisy_power_law(seed, 120)) for seed in range(8)]
    with_past, alone = errors_with_and_without(mixed, runs, 40)
    assert np.all(with_past <= 1.1 * alone + 1e-3)
    alike = [kind(i, 60, 0.8 + 0.05 * i) for i in range(5)]
    runs = [kind(100 + i, 60, 0.83 + 0.04 * i) for i in range(6)]
    with_past, alone = errors_with_and_without(mixed + alike, runs, 40)
    assert np.all(with_past < 0.7 * alone)


def test_an_online_calibration_narrows_by_2_percent_where_it_held_and_widens_by_8_where_not() -> (
    None
):
    easy = finished_runs(5, noise=0.0)
    calibration = gp.Calibration()
    for run in easy:
        calibration = calibration.update(run)
    assert calibration.runs == 5
    np.testing.assert_allclose(calibration.factor, np.exp(5 * 0.1 * -0.2))
    assert calibration.horizon.tolist() == gp.calibrate(easy).horizon.tolist()
    # A run that leaps up at 70 % is where no interval would have it, for those who look that far.
    step = np.arange(1.0, 201.0)
    leaping = gp.Trace(step, 1 + step**-0.4 + 50 * (step > 100))
    after = calibration.update(leaping)
    np.testing.assert_allclose(after.factor[2:], calibration.factor[2:] * np.exp(0.08))
    assert calibration.runs == 5  # the one before stays as it was
    # A run too short to say anything changes nothing.
    assert calibration.update(gp.Trace([1, 2, 3], [3, 2, 1])) == calibration
    with pytest.raises(gp.InputError, match="other horizons"):
        gp.Calibration(np.array([0.0]), np.array([2.0]), 50).update(leaping)


def test_an_online_calibration_covers_what_changes_its_kind() -> None:
    """Six in ten of the last runs would miss at the widths that the first had taught."""
    runs = finished_runs(40, noise=0.0) + finished_runs(120, noise=0.1)
    calibration = gp.Calibration()
    for run in runs[:40]:
        calibration = calibration.update(run)
    before = calibration.factor[2]
    for run in runs[40:]:
        calibration = calibration.update(run)
    fixed = gp.calibrate(runs[40:]).factor[2]
    assert before < 0.5 < fixed
    assert calibration.factor[2] == pytest.approx(fixed, rel=0.35)
