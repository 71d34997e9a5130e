# SPDX-License-Identifier: Apache-2.0
"""Forecasts through the Python surface, against the published prototype and on odd input."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from curves import AHEAD, constants_with, curve, noisy_power_law, wide
from numpy.typing import NDArray

import glidepath as gp
from glidepath import _core

Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "golden" / "forecast_prototype.json"
PUBLISHED = ROOT / "tests" / "golden" / "forecast_prototype.txt"

CASES = [
    (kind, seen, total, noise)
    for kind in ("power", "exponential", "rising", "steep", "waving")
    for seen, total in ((4, 60), (20, 100), (200, 500))
    for noise in (0.0, 0.02)
]


def case_id(case: tuple[str, int, int, float]) -> str:
    kind, seen, total, noise = case
    return f"{kind}-{seen}of{total}-noise{noise:g}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_published_constants_give_the_stored_answers_of_the_prototype(
    case: tuple[str, int, int, float],
) -> None:
    kind, seen, total, noise = case
    t, y = curve(kind, total, noise)
    stored = json.loads(STORED.read_text())[case_id(case)]
    ours = gp.forecast(gp.Trace(t[:seen], y[:seen]), t[seen:], constants=PUBLISHED.read_text())
    few = np.linspace(0, total - seen - 1, 9).astype(int)
    # The prototype adds 1e-10 to the noise for its Cholesky factor; a run without noise shows it.
    near = 5e-6 if noise == 0 else 2e-7
    np.testing.assert_allclose(ours.median[few], stored["mean"], rtol=near)
    np.testing.assert_allclose(
        ours.quantiles[np.ix_([0, 9, 18], few)], stored["quantiles"], rtol=near
    )


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


def test_a_batch_has_schedules_and_past_runs_as_single_forecasts_have_them() -> None:
    t, _ = curve("power", 40, 0.0)
    losses = 1 + t ** -np.linspace(0.2, 0.8, 5)[:, None]
    long = np.arange(1.0, 1001.0)
    past = gp.PastRuns([gp.Trace(long, 1 + 0.1 * i + long**-0.5) for i in range(4)])
    schedule = gp.Schedule.cosine(1.0, 1000.0)
    steps = np.linspace(300, 1000, 5)
    plain = gp.forecast_batch(t, losses, steps)
    options: list[dict[str, Any]] = [{"schedule": schedule}, {"past": past}]
    for given in (*options, {"schedule": schedule, "past": list(past.runs)}):
        batch = gp.forecast_batch(t, losses, steps, **given, threads=2)
        assert not np.array_equal(batch.median, plain.median)
        for i in range(5):
            single = gp.forecast(gp.Trace(t, losses[i]), steps, **given)
            np.testing.assert_array_equal(batch.median[i], single.median)
            np.testing.assert_array_equal(batch.quantiles[:, i], single.quantiles)
    with pytest.raises(gp.InputError, match="direction"):
        gp.forecast_batch(t, losses, steps, past=past, direction="max")


def test_steps_and_losses_serve_for_a_trace_wherever_one_is_taken() -> None:
    t, y = curve("power", 40, 0.01)
    trace = gp.Trace(t, y)
    for other in ((t, y), (list(t), list(y)), pandas.DataFrame({"step": t, "loss": y})):
        assert gp.fit(other) == gp.fit(trace)
        assert gp.forecast(other, 500) == gp.forecast(trace, 500)
        assert gp.reach(other, 0.1, budget=500) == gp.reach(trace, 0.1, budget=500)
        assert gp.PastRuns([other]).runs == (trace,)
        assert gp.forecast(trace, 500, past=[other]) == gp.forecast(trace, 500, past=[trace])


def test_a_frame_of_pandas_needs_no_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glidepath._trace.find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    t, y = curve("power", 40, 0.01)
    frame = pandas.DataFrame({"step": t, "loss": y, "lr": 0.1})
    assert gp.forecast(frame, 500) == gp.forecast(gp.Trace(t, y, lr=np.full(40, 0.1)), 500)


@pytest.mark.parametrize("other", [[[1, 2], [2, 1]], [1.0, 2.0], np.ones(3), None])
def test_what_is_no_trace_is_refused_with_what_would_make_one(other: object) -> None:
    found = type(other).__name__
    for verb, call in {
        "forecast": lambda: gp.forecast(other, 10),
        "reach": lambda: gp.reach(other, 1.0, budget=10),
    }.items():
        with pytest.raises(gp.InputError) as error:
            call()
        made = "gp.Trace(step, loss) makes one"
        assert str(error.value) == f"{verb}: expected a gp.Trace, got {found}: {made}"


def test_one_step_is_taken_as_a_list_of_one() -> None:
    t, y = curve("power", 60, 0.01)
    trace = gp.Trace(t, y)
    assert gp.forecast(trace, 500) == gp.forecast(trace, [500.0])
    assert gp.forecast(trace, 500).median.shape == (1,)
    assert gp.forecast_batch(t, [y, y], 500).median.shape == (2, 1)
    assert gp.forecast(trace, range(500, 503)) == gp.forecast(trace, (500, 501, 502))
    with pytest.raises(TypeError, match="at: expected an array of numbers"):
        gp.forecast(trace, ["500"])


HUGE = 1.7e308


@pytest.mark.parametrize(
    "losses",
    [
        [0, 0, HUGE, 0], [0, HUGE, 0, 0, 1, 2, 3, 4, 5], [-HUGE, HUGE, -HUGE, HUGE, 0],
        [HUGE, 0.9 * HUGE, 0.8 * HUGE, 0.7 * HUGE, 0.6 * HUGE], [1e-310, 9e-311, 8e-311, 7e-311],
        [5e-324, 0, 5e-324, 0, 5e-324], [HUGE, 1, 1e-300, 1e-320, 5e-324], [HUGE, HUGE, HUGE],
    ],
)  # fmt: skip
@pytest.mark.parametrize("direction", ["min", "max"])
def test_losses_at_the_limits_of_a_double_have_finite_quantiles_in_order(
    losses: list[float], direction: gp.Direction
) -> None:
    trace = gp.Trace(range(1, len(losses) + 1), losses, direction=direction)
    f = gp.forecast(trace, [20, 50, 1000])
    for quantiles in (f.quantiles, f.curve_quantiles):
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=0) >= 0).all()
    assert np.isfinite(f.median).all()


@pytest.mark.parametrize("power", [-1060, -940, 940, 1019])
def test_a_loss_may_be_counted_in_any_unit(power: int) -> None:
    steps, loss = range(1, 41), 1.5 + np.arange(1.0, 41.0) ** -0.5
    unit = 2.0 ** (power // 2) * 2.0 ** (power - power // 2)
    plain = gp.forecast(gp.Trace(steps, loss), [100, 400])
    found = gp.forecast(gp.Trace(steps, loss * unit), [100, 400])
    # The last digits of a number near the least of a double are its own.
    np.testing.assert_allclose(
        found.quantiles / unit, plain.quantiles, rtol=1e-9 if power > -1000 else 1e-3
    )


def test_an_interval_is_between_its_two_quantiles() -> None:
    t, y = curve("power", 60, 0.01)
    f = gp.forecast(gp.Trace(t, y), [500.0, 900.0])
    low, high = f.interval(0.8)
    np.testing.assert_array_equal(low, f.quantile(0.1))
    np.testing.assert_array_equal(high, f.quantile(0.9))
    with pytest.raises(gp.InputError, match="coverage is 80, expected above 0 and below 1"):
        f.interval(80)


def test_a_result_without_a_value_raises_and_does_not_crash() -> None:
    for made in (gp.Forecast, gp.ForecastBatch, gp.Reach, gp.Decision, gp.Schedule, gp.PastRuns):
        with pytest.raises(TypeError, match="never initialized"):
            repr(made.__new__(made))
    with pytest.raises(TypeError, match="never initialized"):
        gp.Watch.__new__(gp.Watch).decision()
    for name in ("Forecast", "ForecastBatch", "Reach", "Decision", "Schedule", "PastRuns", "Watch"):
        record = getattr(_core, f"{name}Record")
        empty = record.__new__(record)
        for public in (each for each in dir(record) if each[:1] != "_"):
            with pytest.raises(TypeError):
                getattr(empty, public)()
        with pytest.raises(TypeError):
            record()


def test_result_survives_pickle_and_says_whether_it_is_good() -> None:
    t, y = curve("power", 60, 0.01)
    f = gp.forecast(gp.Trace(t, y), [500.0, 900.0])
    again = pickle.loads(pickle.dumps(f))
    assert again == copy.deepcopy(f) == f
    assert "good" in repr(f)
    batch = gp.forecast_batch(t, [y, 2 * y], [500.0, 900.0])
    assert pickle.loads(pickle.dumps(batch)) == copy.copy(batch) == batch
    assert repr(batch) == "<ForecastBatch: 2 runs at 2 steps, 2 good>"
    np.testing.assert_allclose(f.quantile(0.5), f.median)
    np.testing.assert_allclose(again.quantile(0.3), f.quantiles[f.levels.tolist().index(0.3)])
    assert np.all(f.curve_quantile(0.9) <= f.quantile(0.9) + 1e-12)
    below = f.prob_below(float(f.quantile(0.2)[1]))
    assert below[1] == pytest.approx(0.2, abs=1e-6)


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


def test_a_forecast_of_no_value_says_so_in_words() -> None:
    past = [
        gp.Trace(np.arange(1.0, 61), (2 + 0.1 * i) * np.arange(1.0, 61) ** -0.5) for i in range(4)
    ]
    for loss, status in (([], "too_few_points"), ([np.nan] * 5, "not_finite")):
        f = gp.forecast((np.arange(len(loss)), loss), [10, 20])
        assert repr(f) == f"<Forecast: no finite value to forecast from, {status}>"
        assert "80 %" not in f._repr_html_()
    assert "good" in repr(gp.forecast(([], []), [10, 20], past=past))


def test_input_errors_name_the_value() -> None:
    t, y = curve("power", 30, 0.0)
    trace = gp.Trace(t, y)
    with pytest.raises(gp.InputError, match="step 5"):
        gp.forecast(trace, [5.0])
    with pytest.raises(gp.InputError, match="levels"):
        gp.forecast(trace, [500.0], levels=[0.5, 0.2])
    with pytest.raises(gp.InputError, match="line 1"):
        gp.forecast(trace, [500.0], constants="nonsense")


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


@pytest.mark.parametrize("at", [0, 20, -1])
def test_a_zero_that_a_logger_wrote_among_losses_changes_little(at: int) -> None:
    t, loss = noisy_power_law()
    calm = gp.forecast(gp.Trace(t, loss), AHEAD)
    loss[at] = 0
    f = gp.forecast(gp.Trace(t, loss), AHEAD)
    assert np.all(np.abs(f.median - calm.median) < 0.2 * wide(calm))
    np.testing.assert_allclose(wide(f), wide(calm), rtol=0.2)


def test_a_loss_that_comes_to_zero_is_taken_as_it_is() -> None:
    step = np.arange(1.0, 61)
    loss = np.maximum(0.0, np.round(2 - 0.05 * step, 2))  # 0 from step 40 on
    f = gp.forecast(gp.Trace(step, loss), [80.0, 120.0])
    np.testing.assert_allclose(f.median, 0, atol=0.05)


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


def test_the_curve_stays_within_two_ranges_beyond_the_worst_value() -> None:
    # It fell a thousandfold, and nothing tells how it goes on.
    loss = np.array([0.9, 0.2, 0.01, 0.2, 0.001, 0.1, 0.01])
    at, bound = [14.0, 70.0, 700.0], 3 * loss.max() - 2 * loss.min()
    logarithmic = constants_with(max_log_noise=99)
    f = gp.forecast(
        gp.Trace(np.arange(1.0, 8), loss), at, levels=[0.5, 0.999], constants=logarithmic
    )
    np.testing.assert_allclose(f.curve_quantile(0.999), bound, rtol=1e-12)
    risen = gp.Trace(np.arange(1.0, 8), 1 - loss, direction="max")
    f = gp.forecast(risen, at, constants=logarithmic)
    np.testing.assert_array_equal(f.curve_quantile(0.001), 0.0)


def test_a_loss_that_jumps_by_more_than_the_logarithm_bears_is_forecast_as_it_is() -> None:
    rng, t, levels = np.random.default_rng(8), np.arange(1.0, 301), np.arange(0.05, 1, 0.05)
    logarithmic, losses = constants_with(max_log_noise=99), []
    for _ in range(20):
        jumps = np.exp(rng.normal(0, 2.5, 300))  # of a model that has nearly learned all by heart
        loss = 0.6 * np.exp(-t / 4) + np.minimum(0.003 * jumps, 0.4)
        at = t[120::20]
        for table in (None, logarithmic):
            run = gp.Trace(t[:120], loss[:120])
            q = gp.forecast(run, at, levels=levels, constants=table).quantiles
            error = loss[120::20] - q
            losses.append(np.maximum(levels[:, None] * error, (levels[:, None] - 1) * error).mean())
    as_it_is, by_logarithm = np.mean(np.reshape(losses, (-1, 2)), axis=0)
    assert as_it_is < 0.9 * by_logarithm


@pytest.mark.parametrize("seen_after", [8, 20, 40])
def test_after_a_plateau_that_dropped_the_forecast_starts_at_the_new_level(
    seen_after: int,
) -> None:
    rng = np.random.RandomState(1)
    t = np.arange(1.0, 61 + seen_after)
    loss = np.where(t <= 60, 2.0, 1.0) * np.exp(0.01 * rng.standard_normal(t.size))
    f = gp.forecast(gp.Trace(t, loss), [t[-1] + 1, 2 * t[-1]])
    assert abs(f.median[0] - 1) < 0.1
    assert np.all((f.quantile(0.05) < 1) & (f.quantile(0.95) > 1))


def late_score(first: float = 900.0) -> gp.Trace:
    """An accuracy that began to rise with its log, every 10 steps, at step `first`."""
    rng = np.random.RandomState(2)
    t = np.arange(1.0, 21.0)
    miss = (0.2 + 0.1 * t**-0.8) * np.exp(0.003 * rng.standard_normal(t.size))
    return gp.Trace(first + 10 * (t - 1), 1 - miss, direction="max")


def test_a_score_whose_log_begins_late_is_forecast_by_two_clocks() -> None:
    run = late_score()
    at = run.step[-1] + np.array([10.0, 100.0, 1000.0])
    # Both numbers move quantiles away from the median of each law.
    table = constants_with(stretch=0, backtest_width=0)
    f = gp.forecast(run, at, constants=table)

    def by_loss(before: float) -> NDArray[np.float64]:
        """Levels of the score by its loss, which counts from step 0, `before` steps earlier."""
        loss = gp.Trace(run.step - before, 1 - run.loss)
        found = gp.forecast(loss, at - before, constants=table)
        return np.asarray(1 - found.curve_quantiles[::-1])

    from_zero, from_log = by_loss(0), by_loss(run.step[0] - 10)
    low, high = np.minimum(from_zero, from_log), np.maximum(from_zero, from_log)
    assert np.all((f.curve_quantiles > low - 1e-12) & (f.curve_quantiles < high + 1e-12))
    middle = f.curve_quantiles[9]
    assert np.all(np.abs(middle[1:] - from_zero[9, 1:]) > 1e-4)
    assert np.any(np.abs(middle - from_log[9]) > 1e-4)
    truth = 0.8 - 0.1 * (20 + (at - run.step[-1]) / 10) ** -0.8
    assert np.all(np.abs(middle - truth) < 0.002)


@pytest.mark.parametrize("first", [10.0, 50.0])
def test_a_score_whose_log_begins_soon_is_forecast_as_its_loss(first: float) -> None:
    run = late_score(first)
    at = run.step[-1] * np.array([1.5, 4.0])
    loss = gp.forecast(gp.Trace(run.step, 1 - run.loss), at)
    np.testing.assert_allclose(gp.forecast(run, at).median, 1 - loss.median, rtol=1e-12)


def test_a_log_that_counts_on_from_many_steps_is_forecast_as_from_its_own_start() -> None:
    rng = np.random.default_rng(0)
    step = 10.0 * np.arange(1, 101)
    loss = 0.5 + 2 * step**-0.4 + rng.normal(0, 0.01, 100)
    ahead = np.array([2000.0, 5000.0, 20000.0])
    own = gp.forecast(gp.Trace(step, loss), ahead)
    for before in (2e4, 1e5, 1e6):
        trace = gp.Trace(before + step, loss)
        late = gp.forecast(trace, before + ahead)
        assert np.abs(late.median - own.median).max() < 0.01
        low, high = late.interval(0.8)
        assert np.all(high - low > 0.05)
        assert gp.reach(trace, 0.3, budget=before + 20000).prob_never > 0.97


def test_a_run_whose_last_losses_are_not_finite_never_comes_to_a_target_ahead() -> None:
    step = 10.0 * np.arange(1, 101)
    loss = 0.5 + 2 * step**-0.4
    for lost, never in ((1, False), (2, True), (10, True), (100, True)):
        cut = loss.copy()
        cut[-lost:] = np.nan
        law = gp.reach(gp.Trace(step, cut), 0.62, budget=5000)
        assert (law.prob_never == 1) == never
        assert law.status == "not_finite"
        assert np.isinf(law.quantile(0.5)) == never
    # What was reached before stays reached.
    loss[-2:] = np.nan
    assert gp.reach(gp.Trace(step, loss), 1.0, budget=5000).prob_never == 0


def test_the_two_clocks_of_a_late_score_do_not_depend_on_the_unit_of_its_steps() -> None:
    run = late_score()
    at = run.step[-1] * np.array([1.1, 2.0])
    scaled = gp.Trace(7 * run.step, run.loss, direction="max")
    f, g = gp.forecast(run, at), gp.forecast(scaled, 7 * at)
    np.testing.assert_allclose(f.quantiles, g.quantiles, rtol=1e-9)


def test_past_runs_that_are_unlike_leave_a_late_score_its_two_clocks() -> None:
    run, at = late_score(), np.array([1200.0, 2000.0])
    step = np.arange(10.0, 2001.0, 10)
    past = [gp.Trace(step, 0.8 - 0.1 * (step / k) ** -0.8, direction="max") for k in (5, 6, 7)]
    with_past, alone = gp.forecast(run, at, past=past), gp.forecast(run, at)
    share = 1 / (1 + (len(run) / 3) ** 2)  # at most, of past runs in the law of so many points
    assert np.all(with_past.median >= alone.curve_quantile((0.5 - share) / (1 - share)))
    assert np.all(with_past.median <= alone.curve_quantile(0.5 / (1 - share)))


def late_loss(fall: float, noise: float) -> gp.Trace:
    """A loss that fell since step 0, logged every 10 steps from step 900 on."""
    rng = np.random.RandomState(3)
    t = np.arange(900.0, 1300.0, 10)
    return gp.Trace(t, (2 + fall * (t / 900) ** -0.5) * np.exp(noise * rng.standard_normal(t.size)))


def test_the_two_clocks_of_a_late_loss_do_not_depend_on_its_unit_or_that_of_its_steps() -> None:
    run, at = late_loss(0.3, 0.03), np.array([1400.0, 3300.0])
    f, g = gp.forecast(run, at), gp.forecast(gp.Trace(7 * run.step, 3 * run.loss), 7 * at)
    np.testing.assert_allclose(3 * f.quantiles, g.quantiles, rtol=1e-9)


def with_ahead(lean: float, far: float, widen: float) -> str:
    """The learned constants with these corrections ahead, whatever the run looks like."""
    rows = {"lean": lean, "lean_far": far, "widen": widen}
    lines = [f"ahead {name} {value} 0 0 0 0 0 0" for name, value in rows.items()]
    return "\n".join([_core.learned_table(), *lines])


def test_the_lean_moves_the_law_by_its_scales_and_the_widening_by_its_distance() -> None:
    t, loss = noisy_power_law()
    run, at = gp.Trace(t, loss), t[-1] * np.array([2.0, 8.0, 100.0])
    plain, leaning, far, wide = (
        gp.forecast(run, at, constants=with_ahead(*numbers))
        for numbers in ((0, 0, 0), (-0.3, 0, 0), (0, -0.3, 0), (0, 0, 0.2))
    )
    span = np.log(plain.curve_quantile(0.9) / plain.curve_quantile(0.1))
    lean, lean_far = (np.log(plain.median / f.median) for f in (leaning, far))
    assert np.all((lean > 0.02 * span) & (lean < 0.5 * span))
    ahead = np.minimum(np.log(at / t[-1]), 2.5)
    np.testing.assert_allclose(lean_far / lean, ahead, rtol=0.2)
    wider = np.log(wide.curve_quantile(0.9) / wide.curve_quantile(0.1)) / span
    # Not by as much: the components lie apart, and quantiles are clipped.
    assert np.all((wider > 1.03) & (wider < np.exp(0.2 * ahead)))


def test_intervals_are_stretched_by_their_distance_and_times_to_target_are_not() -> None:
    t, loss = noisy_power_law()
    run, at = gp.Trace(t, loss), t[-1] * np.array([1.5, 4.0, 100.0])
    plain, wide = (constants_with(stretch=number) for number in (0, 0.2))
    f, g = (
        gp.forecast(run, at, constants=table, levels=[0.3, 0.5, 0.7]) for table in (plain, wide)
    )
    np.testing.assert_array_equal(f.median, g.median)
    half, stretched = (np.log(each.curve_quantiles / each.median)[[0, 2]] for each in (f, g))
    factor = np.exp(0.2 * np.minimum(np.log(at / t[-1]), 2.5))
    np.testing.assert_allclose(stretched, factor * half, rtol=1e-9)
    by_plain, by_wide = (
        gp.reach(run, 0.9 * loss[-1], budget=1000, constants=table) for table in (plain, wide)
    )
    assert by_plain.prob_never == by_wide.prob_never


def smoothed_runs(alpha: float, runs: int = 40, steps: int = 4000) -> list[gp.Trace]:
    """Noisy power laws, logged as an exponential mean: a share alpha of each value."""
    rng, t = np.random.default_rng(11), np.arange(1.0, steps + 1)
    logs = []
    for _ in range(runs):
        loss = 0.5 + 2 * (t + 5) ** -rng.uniform(0.4, 0.8) + 0.2 * rng.standard_normal(steps)
        for i in range(1, steps):
            loss[i] = (1 - alpha) * loss[i - 1] + alpha * loss[i]
        logs.append(gp.Trace(t, loss))
    return logs


def held(runs: list[gp.Trace], known: int, constants: str | None = None) -> float:
    """Share of later points inside the 80 % interval."""
    at = np.linspace(known + 1, len(runs[0].step), 8).round()
    inside = []
    for run in runs:
        seen = gp.Trace(run.step[:known], run.loss[:known])
        low, high = gp.forecast(seen, at, levels=[0.1, 0.9], constants=constants).quantiles
        truth = np.array(run.loss)[at.astype(int) - 1]
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


def test_intervals_of_a_smoothed_log_hold_what_they_say() -> None:
    runs, white = smoothed_runs(alpha=0.1), constants_with(lasting_noise=0)
    assert held(runs, 2000, white) < 0.65  # successive values are closer than those apart
    assert 0.72 < held(runs, 2000) < 0.88


def test_noise_that_does_not_last_is_that_of_successive_values() -> None:
    # White noise, and a curve without any that bends: neither is taken for noise that lasts.
    white = constants_with(lasting_noise=0)
    t = np.arange(1.0, 501)
    for run in (*smoothed_runs(alpha=1, runs=3, steps=500), gp.Trace(t, 1 + 3 * t**-0.4)):
        f, g = (
            gp.forecast(run, [700, 1500], levels=[0.1, 0.9], constants=c) for c in (None, white)
        )
        np.testing.assert_allclose(
            np.diff(f.quantiles, axis=0), np.diff(g.quantiles, axis=0), rtol=0.1
        )
        np.testing.assert_array_equal(f.median, g.median)


def test_a_loss_that_falls_by_the_same_factor_each_time_keeps_its_logarithm() -> None:
    # An even fall of the logarithm, however steep, is no noise for which to leave it.
    t = np.arange(1.0, 13)
    for factor in (0.3, 0.1, 0.01):
        f = gp.forecast(gp.Trace(t, factor**t), [13, 16], levels=[0.1, 0.5, 0.9])
        assert np.all(f.quantiles > 0)
        truth = factor ** np.array([13.0, 16])
        assert np.all(np.abs(np.log(f.median / truth)) < 0.05 * np.abs(np.log(truth)))
        assert np.all((f.quantiles[0] < truth) & (truth < f.quantiles[2]))


def half_widths_by_backtest(run: gp.Trace) -> NDArray[np.float64]:
    """Width of the 80 % interval of the curve over that without the run's own backtest."""
    f, g = (
        gp.forecast(run, [130, 200, 400], levels=[0.1, 0.5, 0.9], constants=c)
        for c in (None, constants_with(backtest_width=0))
    )
    np.testing.assert_allclose(f.median, g.median, rtol=1e-12)
    return np.ptp(f.curve_quantiles[[0, 2]], axis=0) / np.ptp(g.curve_quantiles[[0, 2]], axis=0)


def test_a_run_that_went_as_foreseen_is_forecast_more_closely() -> None:
    t, rng = np.arange(1.0, 101), np.random.RandomState(1)
    noise = np.exp(0.01 * rng.standard_normal(t.size))
    steady = gp.Trace(t, (0.5 + 2 * (t + 3) ** -0.6) * noise)
    broken = gp.Trace(t, (2 - 1.2 / (1 + np.exp((75 - t) / 2))) * noise)  # a plateau that ended
    assert np.all(half_widths_by_backtest(steady) < 0.9)
    assert np.all(half_widths_by_backtest(broken) > 1.05)


def test_times_to_target_and_short_runs_have_no_backtest() -> None:
    t, off = np.arange(1.0, 101), constants_with(backtest_width=0)
    run = gp.Trace(t, 0.5 + 2 * (t + 3) ** -0.6)
    f, g = (gp.reach(run, 0.6, budget=1000, constants=c) for c in (None, off))
    assert f.prob_never == g.prob_never
    f, g = (gp.forecast(run.until(5), [8, 20], constants=c) for c in (None, off))
    np.testing.assert_array_equal(f.quantiles, g.quantiles)


def test_times_to_target_do_not_count_noise_that_lasts_as_new_chances() -> None:
    run, white = smoothed_runs(alpha=0.1, runs=1)[0], constants_with(lasting_noise=0)
    f, g = (gp.reach(run, 0.45, budget=6000, constants=c) for c in (None, white))
    assert f.prob_never == g.prob_never


def test_only_forecasts_like_those_learned_from_lean() -> None:
    t, loss = noisy_power_law()
    late = t + 4 * t[-1]  # too late for a backtest, which would mix in a forecast without schedule
    at, tables = late[-1] * np.array([2.0, 8.0]), (with_ahead(0, 0, 0), with_ahead(-0.3, -0.3, 0.2))
    lr = 1 - late / (10 * late[-1])
    known = {"schedule": gp.Schedule([1.0, 10 * late[-1]], [1 - 0.1 / late[-1], 0.0])}
    resumed = gp.Trace(late, loss[-1] * (late / late[-1]) ** -0.5, lr=lr)  # as from step 0
    for run, options in ((gp.Trace(t, loss - loss[-1]), {}), (resumed, known)):
        plain, leaning = (gp.forecast(run, at, constants=table, **options) for table in tables)
        np.testing.assert_array_equal(leaning.quantiles, plain.quantiles)


def test_a_metric_that_is_signed_moves_by_a_share_of_what_its_shapes_foresee() -> None:
    t, loss = noisy_power_law()
    at = t[-1] * np.array([1.2, 1.6, 2.4])
    whole, half, none = (
        gp.forecast(gp.Trace(t, loss - 2), at, constants=constants_with(linear_move=share)).median
        for share in (1, 0.5, 0)
    )
    np.testing.assert_allclose(none, none[0], rtol=1e-3)  # it stays
    assert np.all(np.diff(none - whole) > 0.002)
    np.testing.assert_allclose((none - half) / (none - whole), 0.5, rtol=0.1)
    above_zero = gp.Trace(t, loss)
    np.testing.assert_array_equal(
        gp.forecast(above_zero, at, constants=constants_with(linear_move=0)).quantiles,
        gp.forecast(above_zero, at).quantiles,
    )


def test_a_decision_on_a_signed_metric_takes_the_whole_move() -> None:
    t, loss = noisy_power_law()
    run = gp.Trace(t, loss - 2)
    target, budget = run.loss[-1] - 0.05, 20 * t[-1]
    by_share, whole = (
        gp.reach(run, target, budget=budget, constants=table)
        for table in (None, constants_with(linear_move=1))
    )
    assert by_share.prob_never == whole.prob_never
    assert by_share.quantile(0.5) == whole.quantile(0.5)
    median = gp.forecast(run, [budget]).median[0]
    whole_median = gp.forecast(run, [budget], constants=constants_with(linear_move=1)).median[0]
    assert whole_median < median  # the forecast itself moves by the share


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
    # where it stood before is more likely out of reach than not
    assert gp.reach(gp.Trace(t, loss), 1.0, budget=200).prob_never > 0.5


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


@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_a_run_that_has_levelled_off_exponentially_is_forecast_to_stay(noise: float) -> None:
    rng = np.random.default_rng(1)
    step = np.arange(1.0, 201)
    inside, below = [], []
    for _ in range(40):
        curve = rng.uniform(0.1, 1) + 2 * np.exp(-step / rng.uniform(6, 20))
        loss = curve + noise * rng.standard_normal(200)
        f = gp.forecast(gp.Trace(step[:100], loss[:100]), [200.0], levels=[0.1, 0.5, 0.9])
        inside.append(f.quantiles[0, 0] <= loss[-1] <= f.quantiles[2, 0])
        below.append(curve[-1] - f.median[0])
    assert np.mean(inside) >= 0.8
    assert np.mean(below) < 0.02  # 1 % of the fall


def test_signed_metrics_are_forecast_beyond_zero() -> None:
    t = np.arange(1.0, 101)
    f = gp.forecast(gp.Trace(t, -np.sqrt(t)), AHEAD)
    assert np.all(np.diff(f.median) < 0)
    assert np.all((f.quantile(0.05) < -np.sqrt(AHEAD)) & (-np.sqrt(AHEAD) < f.quantile(0.95)))
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


def test_a_forecast_is_compared_with_anything_without_a_warning() -> None:
    run = gp.Trace([1.0, 2.0, 3.0], [3.0, 2.0, 1.5])
    found = gp.forecast(run, [5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found != None  # noqa: E711
        assert found != 1
        assert found == gp.forecast(run, [5])
        assert found != gp.forecast(run.until(2.0), [5])


def test_a_step_of_a_late_log_has_the_same_forecast_among_many_as_alone() -> None:
    step = 10 * np.arange(1, 61.0)
    noise = 0.02 * np.random.default_rng(0).standard_normal(60)
    run = gp.Trace(50_000 + step, 1.5 + 8 * step**-0.5 + noise)
    many = gp.forecast(run, np.linspace(50_700, 100_000, 100))
    for i in (0, 1, 5, 40, 99):
        alone = gp.forecast(run, [many.at[i]])
        width = np.subtract(*alone.interval(0.8)[::-1])[0]
        assert abs(many.median[i] - alone.median[0]) < 0.05 * width


@pytest.mark.parametrize("count", [5, 40])
@pytest.mark.parametrize("kind", ["power", "plateau", "score"])
def test_the_probability_below_a_quantile_is_its_level(kind: str, count: int) -> None:
    t = 10 * np.arange(1, 61.0)
    noise = 0.02 * np.random.default_rng(0).standard_normal(60)
    if kind == "plateau":  # its lower tail ends in the clip of the curve
        run = gp.Trace(t, np.where(t < 300, 2.5, 2.5 - (t - 300) / 300) + noise)
    elif kind == "score":
        run = gp.Trace(t, 0.9 - 2 * t**-0.5 + noise, direction="max")
    else:
        run = gp.Trace(t, 1.5 + 8 * t**-0.5 + noise)
    f = gp.forecast(run, np.linspace(620, 2000, count))
    off = 1e-2 if kind == "plateau" else 1e-3  # where a third of the law lies at one value
    for p in (0.01, 0.1, 0.3, 0.5, 0.9, 0.99):
        for j, value in enumerate(f.quantile(p)):
            assert f.prob_below(float(value))[j] == pytest.approx(p, abs=off)


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("direction", ["min", "max"])
@pytest.mark.parametrize("points", [0, 1, 3, 6])
def test_at_most_a_quantile_lies_at_least_its_level_where_many_have_one_value(
    points: int, direction: str, count: int
) -> None:
    # So few points show no noise, and quantiles end in the clip of the curve.
    loss = np.array([-0.4, -0.5, -2.3, -2.9, -2.4, -4.7])[:points]
    run = gp.Trace(np.arange(1.0, points + 1), loss, direction=direction)
    f = gp.forecast(run, np.geomspace(points + 1, 3000, count))
    off = 1e-6 if count == 3 else 0.02  # between knots of which one alone has it
    for level, row in zip(f.levels, f.quantiles, strict=True):
        for j, value in enumerate(row):
            nudge = 1e-8 * float(f.quantiles[-1, j] - f.quantiles[0, j])
            assert f.prob_below(float(value))[j] >= level - off
            assert f.prob_below(float(value) - nudge)[j] <= level + off
    assert not f.prob_below(-np.inf).any()
    assert f.prob_below(np.inf).all()


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e-150])
def test_a_spike_near_the_largest_number_leaves_the_others_their_digits(unit: float) -> None:
    steps = np.arange(1.0, 101.0)
    loss = unit * (1 + steps**-0.5)
    plain = gp.forecast(gp.Trace(steps, loss), [150.0, 200.0])
    loss[10] = 1e299
    for seen in (20, 100):
        f = gp.forecast(gp.Trace(steps[:seen], loss[:seen]), [150.0, 200.0])
        np.testing.assert_allclose(f.median, plain.median, rtol=0.1)
        assert (np.diff(f.quantiles[:, 0]) > 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_rise_where_the_clip_holds_the_median(seed: int) -> None:
    step = 10 * np.arange(1, 23.0)
    noise = np.exp(0.2 * np.random.default_rng(seed).standard_normal(22))
    run = gp.Trace(10_000 + step, (1 + 10 * (step + 50) ** -0.4) * noise)
    f = gp.forecast(run, [11_000.0, 20_000.0, 100_000.0])
    for p in (0.05, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95):
        for j, value in enumerate(f.quantile(p)):  # perhaps that of many levels
            assert f.prob_below(float(value) * (1 - 1e-9))[j] <= p + 1e-6
            assert f.prob_below(float(value) * (1 + 1e-9))[j] >= p - 1e-6
    targets = np.linspace(f.quantile(0.001)[2], f.quantile(0.999)[2], 200)
    assert np.all(np.diff([f.prob_below(float(y))[2] for y in targets]) >= 0)


def test_the_largest_steps_have_finite_quantiles_in_a_long_list() -> None:
    run = gp.Trace(2**53 + 2.0 * np.arange(60), 1 + np.arange(1, 61.0) ** -0.5)
    f = gp.forecast(run, 2**53 + 130 + 2.0 * np.arange(40))
    assert np.isfinite(f.quantiles).all()


def test_a_score_near_0_may_take_off_and_another_one_does_as_its_curve_says() -> None:
    rng = np.random.default_rng(3)
    steps = np.arange(1.0, 21.0)
    without = constants_with(take_off=0)
    low, high = (gp.Trace(steps, at + 0.002 * rng.random(20), direction="max") for at in (0, 0.4))

    def chance(run: gp.Trace, budget: float, constants: str | None = None) -> float:
        return gp.reach(run, 0.5, budget=budget, constants=constants).prob_by(budget)

    assert chance(low, 200, without) < 1e-3 < 0.1 < chance(low, 200) < 0.4
    assert chance(low, 25) < 0.01 < chance(low, 60) < chance(low, 200)
    assert chance(high, 200) == chance(high, 200, without)
    for ahead in (gp.forecast(low, [200.0], constants=c) for c in (None, without)):
        assert ahead.interval(0.8)[1] < 0.1  # intervals tell what scores do that stay


def test_past_runs_that_stayed_near_0_leave_little_of_a_take_off() -> None:
    rng = np.random.default_rng(3)
    steps = np.arange(1.0, 201.0)
    runs = [gp.Trace(steps, 0.002 * rng.random(200), direction="max") for _ in range(13)]
    live, past = runs[0].until(20), gp.PastRuns(runs[1:])
    assert gp.reach(live, 0.3, budget=200).prob_by(200) > 0.1
    assert gp.reach(live, 0.3, budget=200, past=past).prob_by(200) < 0.05


def test_a_loss_may_fall_to_less_than_a_third_of_its_lowest_value() -> None:
    steps = np.arange(1.0, 6.0)
    run = gp.Trace(steps, [1.556, 1.604, 1.584, 1.579, 1.544])
    clipped = gp.forecast(run, [100.0], constants=constants_with(max_fall=0))
    ahead = gp.forecast(run, [100.0])
    assert clipped.prob_below(0.3)[0] == 0
    assert 0.001 < ahead.prob_below(0.3)[0] < 0.1
    np.testing.assert_array_equal(ahead.median, clipped.median)
    assert 0 < ahead.interval(0.98)[0][0] < 0.5
