# SPDX-License-Identifier: Apache-2.0
"""When, and whether, a run reaches its target."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from curves import constants_with, curve, noisy_power_law

import glidepath as gp
from glidepath import _core


def test_reach_is_a_distribution_with_an_atom_at_never() -> None:
    t, y = curve("power", 100, 0.002)
    r = gp.reach(gp.Trace(t, y), 2.2, budget=7000)
    assert 0 <= r.prob_never <= 1
    assert r.prob_by(7000) == pytest.approx(1 - r.prob_never)
    assert r.quantile(0.1) < r.quantile(0.5)
    assert gp.reach(gp.Trace(t, y), 0.1, budget=7000).quantile(0.5) == np.inf
    assert gp.reach(gp.Trace(t, y), float(y[10]), budget=7000).prob_never == 0


def test_rows_without_a_value_change_no_answer() -> None:
    rng = np.random.default_rng(3)
    step = np.arange(10.0, 4001.0, 10.0)
    loss = 1.5 + 3 * (1 + step / 120) ** -0.6 + rng.normal(0, 0.1, 400)
    full = gp.Trace(step[9::10], loss[9::10])
    holes = np.full(400, np.nan)
    holes[9::10] = full.loss
    sparse = gp.Trace(step, holes)
    past = [gp.Trace(step, loss + 0.1 * i, name=f"run {i}") for i in range(4)]
    for runs in (None, past):
        asked = {"budget": 8000, "past": runs}
        assert gp.reach(sparse, 1.72, **asked) == gp.reach(full, 1.72, **asked)
        assert gp.best_so_far(sparse, **asked) == gp.best_so_far(full, **asked)
    watch = gp.Watch(target=1.72, budget=8000)
    for pair in zip(step, holes, strict=True):
        watch.add(*pair)
    assert watch.decision().probability == 1 - gp.reach(sparse, 1.72, budget=8000).prob_never


def test_two_points_among_past_runs_come_to_a_target_as_their_forecast_has_it() -> None:
    s = np.arange(1.0, 401.0)
    past = [gp.Trace(s, 0.9 + 0.05 * i + 3 * s ** -(0.4 + 0.02 * i)) for i in range(5)]
    for points in (1, 2):
        seen = s[:points]
        run = gp.Trace(seen, 1.2 * (1 + 3 * seen**-0.45))
        by_forecast = gp.forecast(run, [390.0], past=past).prob_below(1.4)[0]
        by_reach = 1 - gp.reach(run, 1.4, budget=390, past=past).prob_never
        assert by_reach == pytest.approx(by_forecast, abs=0.1)


def law_of(cdf: list[float]) -> gp.Reach:
    """A law over the steps 1, 2 ..."""
    step = np.arange(1.0, len(cdf) + 1)
    fields = {
        "step": step,
        "cdf": cdf,
        "prob_never": 1 - cdf[-1],
        "target": 1.0,
        "budget": step[-1],
    }
    return gp.Reach._of(_core.ReachRecord(**fields, status="good"))


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
    sure = law_of([0.0, 1.0])
    assert sure.quantile(0.3, if_reached=True) == sure.quantile(0.3) == 1.3
    never = law_of([0.0, 0.0])
    assert never.quantile(0.0, if_reached=True) == np.inf
    assert "if so" not in repr(never)


def test_by_the_point_reach_counts_the_first_logged_loss_not_the_curve() -> None:
    rng = np.random.RandomState(0)
    t = np.arange(1.0, 201)
    smooth = 1 + t**-1.0
    noisy = smooth * np.exp(0.05 * rng.standard_normal(200))
    # The curve never falls to 0.95; one of 200 further points with 5 % of noise all but must.
    assert gp.reach(gp.Trace(t, smooth), 0.95, budget=400).prob_never > 0.95
    target = float(noisy.min()) * 0.999
    law = gp.reach(gp.Trace(t, noisy), target, budget=400, reached_by="point")
    assert law.prob_never < 0.4
    assert gp.reach(gp.Trace(t, noisy), target, budget=400).prob_never > 0.95  # its level stays
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


def test_remaining_steps_are_equally_likely_never_negative_and_infinite_for_never() -> None:
    t, loss = noisy_power_law()
    trace = gp.Trace(t, loss)
    law = gp.reach(trace, 1.15, budget=300)
    remaining = law.remaining_steps(20)
    levels = (np.arange(20) + 0.5) / 20
    np.testing.assert_array_equal(remaining, [law.quantile(p) - 100 for p in levels])
    assert np.all(np.diff(remaining[np.isfinite(remaining)]) >= 0)
    assert remaining[0] > 0
    assert remaining[-1] == np.inf
    # What was reached already needs no steps; what cannot be reached needs infinitely many.
    assert gp.reach(trace, float(loss[10]), budget=300).remaining_steps(3).tolist() == [0, 0, 0]
    assert gp.reach(trace, 1.15, budget=50).remaining_steps(2).tolist() == [np.inf, np.inf]
    with pytest.raises(gp.InputError, match="reach: remaining_steps is 0, expected at least 1"):
        law.remaining_steps(0)


def test_reaches_of_a_batch_equal_single_ones_whatever_the_threads() -> None:
    runs = [gp.Trace(*noisy_power_law(seed, 40 + 10 * seed)) for seed in range(7)]
    targets = [0.98 * run.loss[-1] for run in runs]
    budgets = [3.0 * run.step[-1] for run in runs]
    past = gp.PastRuns([gp.Trace(*noisy_power_law(seed, 400)) for seed in range(20, 26)])
    alone = [
        gp.reach(run, target, budget=budget, past=past)
        for run, target, budget in zip(runs, targets, budgets, strict=True)
    ]
    for threads in (1, 2, 5):
        found = gp.reach_batch(runs, targets, budgets=budgets, past=past, threads=threads)
        assert found == alone
    shared = gp.reach_batch(runs, 1.1, budgets=500)
    assert shared == [gp.reach(run, 1.1, budget=500) for run in runs]
    assert gp.reach_batch([], 1.1, budgets=500) == []


def test_a_batch_that_does_not_fit_is_refused_in_a_sentence() -> None:
    runs = [gp.Trace(*noisy_power_law(seed)) for seed in range(3)]
    with pytest.raises(
        gp.InputError, match=r"^reach_batch: trace 1: reach: target is nan, expected a number$"
    ):
        gp.reach_batch(runs, [1.1, np.nan, 1.2], budgets=200)
    with pytest.raises(gp.InputError, match=r"^reach_batch: 3 traces but 2 targets$"):
        gp.reach_batch(runs, [1.1, 1.2], budgets=200)
    rising = gp.Trace(runs[0].step, 1 - runs[0].loss / 4, direction="max")
    with pytest.raises(gp.InputError, match="the traces mix directions 'min' and 'max'"):
        gp.reach_batch([*runs, rising], 1.1, budgets=200)
    with pytest.raises(gp.InputError, match=r"expected a list of gp\.Trace, got one"):
        gp.reach_batch(runs[0], 1.1, budgets=200)


def test_a_reach_needs_a_budget_or_a_run_that_knows_its_end() -> None:
    with pytest.raises(gp.InputError) as error:
        gp.reach(gp.Trace(*noisy_power_law(), name="run7"), 1.1)
    assert str(error.value) == (
        "reach: run7 has no planned_steps: give the budget, the step after which the run ends"
    )


def test_the_planned_end_of_a_run_is_its_budget() -> None:
    t, loss = noisy_power_law()
    runs = [gp.Trace(t, loss, planned_steps=end) for end in (300, 400)]
    assert gp.reach(runs[0], 1.15) == gp.reach(runs[0], 1.15, budget=300)
    assert [law.budget for law in gp.reach_batch(runs, 1.15)] == [300, 400]
    assert gp.reach(runs[1], 1.15, budget=200).budget == 200


def test_a_reach_survives_pickle_and_copies() -> None:
    law = gp.reach(gp.Trace(*noisy_power_law()), 1.15, budget=300)
    assert pickle.loads(pickle.dumps(law)) == copy.deepcopy(law) == law
    assert (law.target, law.budget, law.status) == (1.15, 300.0, "good")
    assert law != gp.reach(gp.Trace(*noisy_power_law()), 1.15, budget=301)


def test_a_probability_is_never_shown_as_certain_when_it_is_not() -> None:
    for chance, shown in ((2e-5, "< 0.001"), (1 - 2e-5, "> 0.999"), (0.25, "0.250")):
        law = law_of([0.0, chance])
        assert f"with probability {shown}" in repr(law)
        rows = dict(law._rows())
        assert rows["never"] not in ("0.000", "1.000")
    assert "with probability 0.000" in repr(law_of([0.0, 0.0]))  # this is certain


def resumed(points: int = 60) -> gp.Trace:
    """A run whose log begins at step 50 000 and shows its own fall."""
    step = 10 * np.arange(1, points + 1.0)
    noise = 0.02 * np.random.default_rng(0).standard_normal(points)
    return gp.Trace(50_000 + step, 1.5 + 8 * step**-0.5 + noise)


@pytest.mark.parametrize("budget", [52_000, 100_000, 506_000, 1e9])
def test_a_budget_farther_away_does_not_change_what_comes_before_it(budget: float) -> None:
    for run, target, by in ((resumed(), 1.78, 51_200.0), (early(), 1.78, 1200.0)):
        near = gp.reach(run, target, budget=by)
        far = gp.reach(run, target, budget=budget)
        assert far.prob_by(by) == pytest.approx(near.prob_by(by), abs=0.03)


def smooth(noise: float = 0.0, points: int = 320) -> gp.Trace:
    """A falling power law with next to no noise."""
    step = np.arange(1.0, points + 1)
    errors = np.random.default_rng(0).standard_normal(points)
    return gp.Trace(step, (2 + 5 * step**-0.5) * np.exp(noise * errors))


@pytest.mark.parametrize("noise", [0, 1e-3])
@pytest.mark.parametrize("by", [400.0, 900.0])
def test_of_a_run_with_little_noise_reach_says_what_its_forecast_says(
    noise: float, by: float
) -> None:
    run = smooth(noise)
    # Intervals alone are scaled by how well a run was foreseen so far.
    table = constants_with(backtest_width=0)
    ahead = gp.forecast(run, [by], constants=table)
    levels = np.arange(0.1, 0.95, 0.05)
    targets = [float(ahead.curve_quantile(float(level))[0]) for level in levels]
    said = np.array(
        [gp.reach(run, target, budget=by, constants=table).prob_by(by) for target in targets]
    )
    np.testing.assert_allclose(said, levels, atol=0.07)  # the level of a run trails its curve
    steps = np.diff(said)  # from a target to the next easier one: no flights of stairs
    assert steps.min() > 0.015
    assert steps.max() < 0.1


@pytest.mark.parametrize("noise", [0, 5e-3, 2e-2])
@pytest.mark.parametrize("points", [40, 80, 320])
def test_a_run_comes_to_a_target_as_soon_whatever_the_budget_after_it(
    noise: float, points: int
) -> None:
    run = smooth(noise, points)
    near = 1.25 * points
    for level in (0.1, 0.3, 0.6, 0.9):
        target = float(gp.forecast(run, [near]).curve_quantile(level)[0])
        by_then = gp.reach(run, target, budget=near).prob_by(near)
        for farther in (2, 10, 100):
            far = gp.reach(run, target, budget=farther * near)
            assert far.prob_by(near) == pytest.approx(by_then, abs=0.03)


def test_a_target_far_below_what_a_run_moved_so_far_is_not_impossible() -> None:
    step = 10.0 * np.arange(1, 13)  # a classifier of ten classes leaves chance
    loss = [2.3026, 2.3020, 2.30, 2.295, 2.288, 2.28, 2.268, 2.25, 2.228, 2.2, 2.165, 2.12]
    targets = np.linspace(0.9, 0.3, 25)
    chances = [1 - gp.reach((step, loss), float(t), budget=12_000.0).prob_never for t in targets]
    falls = -np.diff(chances)
    assert chances[0] > 0.8
    assert chances[-1] > 0.5
    assert falls.min() >= 0
    assert falls.max() < 0.05


def early() -> gp.Trace:
    run = resumed()
    return gp.Trace(run.step - 50_000, run.loss)


def test_the_steps_left_of_a_resumed_run_are_those_of_its_own_clock() -> None:
    watch, own = gp.Watch(target=1.78), gp.Watch(target=1.78)
    for watched, run in ((watch, resumed()), (own, early())):
        for step, loss in zip(run.step, run.loss, strict=True):
            watched.add(step, loss)
    left, left_of_own = watch.decision().steps_to_target[1], own.decision().steps_to_target[1]
    assert left == pytest.approx(left_of_own, rel=0.15)


def test_a_target_above_a_hundred_tells_that_the_metric_is_no_percentage() -> None:
    t = np.arange(1.0, 61.0)
    rising = gp.Trace(t, 20 + t, direction="max", metric="score")
    assert gp.reach(rising, 150, budget=600).prob_by(600) > 0.5
    assert gp.forecast(rising, [600.0]).quantile(0.9)[0] < 100  # by itself it may be one


@pytest.mark.parametrize("metric", ["rollout/ep_rew_mean", "mean return of 32 episodes", "Reward"])
def test_a_return_is_no_percentage(metric: str) -> None:
    t = np.arange(1.0, 61.0)
    rising = gp.Trace(t, 20 + t, direction="max", metric=metric)
    ahead = gp.forecast(rising, [600.0])
    assert ahead.median[0] > 100
    other = gp.Trace(t, -20 - t, metric="cost")  # the same, turned round
    np.testing.assert_allclose(ahead.quantiles, -gp.forecast(other, [600.0]).quantiles[::-1])
    stays = gp.Trace(t, (20 + t) / 100, direction="max", metric=metric)
    assert gp.forecast(stays, [600.0]).quantile(0.95)[0] <= 1  # a share of successes


def test_past_returns_and_returns_that_hardly_began_are_no_percentages() -> None:
    t = np.arange(1.0, 61.0)
    runs = [gp.Trace(t, k + t, direction="max", metric="reward", name=str(k)) for k in range(6)]
    past = gp.PastRuns(runs)
    for points in (1, 2, 10):
        live = gp.Trace(t[:points], 20 + t[:points], direction="max", metric="reward")
        same = gp.Trace(t[:points], -20 - t[:points])
        turned = gp.PastRuns([gp.Trace(t, -run.loss, name=run.name) for run in runs])
        np.testing.assert_allclose(
            gp.forecast(live, [60.0], past=past).quantiles,
            -gp.forecast(same, [60.0], past=turned).quantiles[::-1],
        )
