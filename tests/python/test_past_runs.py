# SPDX-License-Identifier: Apache-2.0
"""What finished runs teach about live ones."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from curves import annealed_runs, constants_with, finished_runs, noisy_power_law

import glidepath as gp
from glidepath import _core


def widths_only(past: gp.PastRuns) -> gp.PastRuns:
    """What was learned of widths, without the runs as shapes."""
    return gp.PastRuns.from_dict(past.to_dict() | {"runs": []})


def shapeless(runs: list[gp.Trace]) -> gp.PastRuns:
    """Widths by forecasts without past runs as shapes, in which the schedule alone can help."""
    learned = _core.learn_widths(runs, [], constants=None, threads=0)
    return gp.PastRuns._restored([], gp.Widths._from_record(learned))


def with_factor(factor: float) -> gp.PastRuns:
    """Widths times `factor` at every horizon."""
    state = gp.PastRuns().to_dict()
    state["widths"] |= {"horizon": [0.0], "factor": [factor], "runs": 50}
    return gp.PastRuns.from_dict(state)


def test_learned_widths_stretch_intervals_by_their_factor_and_leave_the_median() -> None:
    runs = finished_runs(12)
    assert gp.PastRuns(runs).widths.runs == 12
    trace, steps = gp.Trace(runs[0].step[:40], runs[0].loss[:40]), [44.2, 60.0, 79.0]
    plain = gp.forecast(trace, steps)
    wide = gp.forecast(trace, steps, past=with_factor(2.0))
    np.testing.assert_array_equal(plain.median, wide.median)
    ratio = np.log(wide.quantile(0.95) / wide.median) / np.log(plain.quantile(0.95) / plain.median)
    np.testing.assert_allclose(ratio, 2.0, rtol=1e-9)


@pytest.mark.parametrize("factor", [0.3, 4.0, 10.0])
def test_stretched_intervals_keep_their_clip_and_their_probabilities(factor: float) -> None:
    t, loss = noisy_power_law()
    f = gp.forecast(gp.Trace(t, loss), [150.0, 2e4], past=with_factor(factor))
    # Two ranges of the metric above the largest value: the tail of a log-t would explode.
    assert np.all(f.curve_quantile(0.999) <= loss.max() + 2.1 * np.ptp(loss))
    for p in (0.3, 0.4, 0.5, 0.7):
        for j, value in enumerate(f.quantile(p)):
            assert f.prob_below(float(value))[j] == pytest.approx(p, abs=2e-3)


def test_a_run_with_a_loss_that_is_no_number_is_left_out_of_its_own_past_runs() -> None:
    runs = finished_runs(4)
    odd = runs[1].loss.copy()
    odd[3] = np.nan
    past = gp.PastRuns([runs[0], gp.Trace(runs[1].step, odd), *runs[2:]])
    assert len(past.without(gp.Trace(runs[1].step[:30], odd[:30]))) == 3
    assert len(past.without(runs[0].until(30))) == 3
    assert len(past.without(gp.Trace([], []))) == 4  # one that has not begun is none of them


def test_a_plain_list_serves_as_shapes_and_teaches_no_widths() -> None:
    runs = finished_runs(12)
    seen, steps = finished_runs(13)[12].until(40), [60.0, 79.0]
    shapes = gp.forecast(seen, steps, past=runs)
    learned = gp.forecast(seen, steps, past=gp.PastRuns(runs))
    np.testing.assert_array_equal(shapes.median, learned.median)
    assert not np.allclose(shapes.quantiles, learned.quantiles)
    assert not np.allclose(shapes.median, gp.forecast(seen, steps).median)
    with pytest.raises(gp.InputError, match=r"past: expected a list of gp\.Trace, got one"):
        gp.forecast(seen, steps, past=runs[0])
    with pytest.raises(gp.InputError, match=r"past: expected a gp.Trace, got list: gp.Trace\("):
        gp.forecast(seen, steps, past=[[runs[0].step, runs[0].loss]])


def test_past_runs_survive_json_pickle_and_copies() -> None:
    for runs in (annealed_runs(6, gain=0.05), finished_runs(6), []):
        past = gp.PastRuns(runs)
        assert list(past.runs) == runs
        again = gp.PastRuns.from_dict(json.loads(json.dumps(past.to_dict(), allow_nan=False)))
        assert again == past
        assert pickle.loads(pickle.dumps(past)) == copy.deepcopy(past) == past
    assert gp.PastRuns(finished_runs(6)) != gp.PastRuns(finished_runs(5))
    holes = np.where(np.arange(80) % 7 == 3, np.nan, finished_runs(1)[0].loss)
    rates = np.full(80, 0.1)
    endless = gp.Trace(np.arange(1.0, 81), holes, lr=rates, metric="ppl", planned_steps=500)
    past = gp.PastRuns([endless])
    text = json.dumps(past.to_dict(), allow_nan=False)
    assert gp.PastRuns.from_dict(json.loads(text)) == past


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            {"format": "other"},
            "past: expected a state of format 'glidepath.past_runs', got 'other'",
        ),
        ({"version": 2}, "past: state of version 2, this library reads 1"),
        (
            {"widths": gp.PastRuns([]).widths.to_dict() | {"runs": "x"}},
            "past: the state is damaged: runs: 'x' is no int",
        ),
        ({"runs": 3}, "past: the state is damaged: 'int' object is not iterable"),
        (
            {"runs": [gp.Trace([1, 2], [1, 2]).to_dict() | {"loss": [1]}]},
            "past: the state is damaged: trace: 2 steps",
        ),
        ({"runs": [{"step": [1, 2], "loss": [1, 2]}]}, "past: the state is damaged: Trace: the st"),
        ({"runs": [gp.Trace([1, 2], [1, 2]).to_dict() | {"x": 1}]}, "past: the state is damaged: "),
    ],
)
def test_a_foreign_or_damaged_state_is_refused_in_a_sentence(
    damage: dict[str, object], sentence: str
) -> None:
    state = gp.PastRuns(finished_runs(2)).to_dict()
    with pytest.raises(gp.InputError) as error:
        gp.PastRuns.from_dict(state | damage)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"factor": [1.0]}, "2 horizons, 1 factors"),
        ({"scheduled_factor": [1.0]}, "2 horizons, 1 scheduled factors"),
        ({"factor": [1.0, 0.0]}, "factor is 0, expected above 0 and finite"),
        ({"factor": [1.0, "inf"]}, "factor is inf, expected above 0 and finite"),
        ({"horizon": [0.4, 0.1]}, "horizon[1] is 0.1, expected a finite number above 0.4"),
        ({"runs": -1}, "runs is -1, expected 0 or more"),
    ],
)
def test_damaged_widths_are_refused_in_a_sentence(damage: dict[str, object], sentence: str) -> None:
    state = with_factor(2.0).to_dict()
    state["widths"] |= {"horizon": [0.1, 0.4], "factor": [2.0, 3.0]} | damage
    with pytest.raises(gp.InputError) as error:
        gp.PastRuns.from_dict(state)
    assert str(error.value).endswith(sentence)


def test_runs_with_a_learning_rate_teach_widths_of_their_own_for_forecasts_that_know_it() -> None:
    runs = annealed_runs(12, gain=0.03)
    past = shapeless(runs)
    widths = past.widths
    assert widths.scheduled_runs == widths.runs == 12
    assert widths.schedule_helps
    assert not np.allclose(widths.scheduled_factor, widths.factor)
    run, k = annealed_runs(13, gain=0.03)[12], 60
    seen, steps = gp.Trace(run.step[:k], run.loss[:k], lr=run.lr[:k]), run.step[[69, 89, 119]]
    known = {"schedule": gp.Schedule.logged(run)}
    for options, factor in (({}, widths.factor), (known, widths.scheduled_factor)):
        plain = gp.forecast(seen, steps, **options)
        wide = gp.forecast(seen, steps, past=past, **options)
        np.testing.assert_array_equal(plain.median, wide.median)
        high = wide.quantile(0.95) / wide.median
        ratio = np.log(high) / np.log(plain.quantile(0.95) / plain.median)
        np.testing.assert_allclose(
            ratio, np.interp(np.log(steps / k), widths.horizon, factor), rtol=1e-9
        )
    # Runs without one teach nothing about such forecasts, which keep their widths.
    unlogged = shapeless([gp.Trace(r.step, r.loss) for r in runs])
    blind = unlogged.widths
    assert blind.scheduled_factor.size == blind.scheduled_runs == 0
    np.testing.assert_array_equal(blind.factor, widths.factor)
    np.testing.assert_array_equal(
        gp.forecast(seen, steps, past=unlogged, **known).quantiles,
        gp.forecast(seen, steps, **known).quantiles,
    )
    online = gp.PastRuns().update(runs[0])
    assert online.widths.runs == online.widths.scheduled_runs == len(online) == 1


def helps(runs: list[gp.Trace]) -> bool:
    return shapeless(runs).widths.schedule_helps


def test_a_schedule_that_misled_on_finished_runs_is_left_out_of_account() -> None:
    # Runs on which the logged learning rate has no effect: no drop where it falls, no slower clock.
    # It falls so late that few prefixes can test it on what they have seen.
    t = np.arange(1.0, 121)
    lr = np.where(t < 60, 1.0, 0.02)
    runs = [
        gp.Trace(
            t,
            (1 + t ** -(0.3 + 0.02 * i))
            * np.exp(0.01 * np.random.RandomState(i).standard_normal(120)),
            lr=lr,
        )
        for i in range(12)
    ]
    misled = shapeless(runs)
    assert not misled.widths.schedule_helps
    assert "mislead" in repr(misled)
    seen, known = runs[0].until(50), {"schedule": gp.Schedule(t, lr)}
    heeded, warned, blind = (
        gp.forecast(seen, [115.0], **options).quantiles
        for options in (known, {"past": misled, **known}, {"past": misled})
    )
    np.testing.assert_array_equal(warned, blind)
    assert not np.array_equal(warned, heeded)
    # A loss that falls to 0 is no evidence about the schedule, whatever its logarithm.
    # (Seen to 80 or 60 %, PastRuns looks at steps 107 and 108.)
    for judged in (runs, annealed_runs(12, gain=0.1)):
        fallen = [gp.Trace(r.step, np.where(t > 105, 0.0, r.loss), lr=r.lr) for r in judged]
        assert helps(fallen) == helps(judged)
    # Four runs are too few to judge by.
    assert helps(runs[:4])


def test_past_runs_of_another_direction_are_refused() -> None:
    run = finished_runs(1)[0]
    rising = gp.Trace(run.step, 1 - np.exp(-run.step / 30), direction="max", name="accuracy")
    with pytest.raises(gp.InputError, match=r"past: 'accuracy' has direction 'max', .* 'min'"):
        gp.PastRuns([run, rising])
    with pytest.raises(gp.InputError, match=r"direction 'min', the live run 'max'"):
        gp.Watch(target=0.9, direction="max", past=[run])
    with pytest.raises(gp.InputError, match=r"past: .* direction 'min', the live run 'max'"):
        gp.reach(rising, 0.9, budget=100, past=gp.PastRuns([run]))
    with pytest.raises(gp.InputError, match=r"'accuracy' has direction 'max', the first run 'min'"):
        gp.PastRuns([run]).update(rising)


def test_widths_narrow_what_was_too_wide_for_easy_runs() -> None:
    # Exact power laws are easier than the runs that the widths were learned from.
    assert np.all(gp.PastRuns(finished_runs(30, noise=0.0)).widths.factor < 1.0)


def test_a_few_odd_runs_do_not_widen_the_forecasts_of_all_others() -> None:
    # A quarter jump to three times their loss: to hold 80 % of the runs, intervals would have to be
    # ten times as wide.
    regular = finished_runs(40)
    odd = [
        gp.Trace(r.step, np.where(r.step > 45, 3 * r.loss, r.loss)) for r in finished_runs(10, 0.03)
    ]
    learned = shapeless(regular[:30] + odd)
    assert max(learned.widths.factor) < 2

    def mean_loss(past: gp.PastRuns | None) -> float:
        total = 0.0
        for run in regular[30:]:
            f = gp.forecast(run.until(30), [60.0, 80.0], past=past)
            for p in (0.1, 0.3, 0.5, 0.7, 0.9):
                above = run.loss[[59, 79]] - f.quantile(p)
                total += float(np.sum(np.where(above > 0, p, p - 1) * above))
        return total

    assert mean_loss(learned) < 1.02 * mean_loss(None)
    assert mean_loss(with_factor(6.0)) > 1.5 * mean_loss(None)


def test_the_newest_fifty_runs_teach_widths() -> None:
    t = np.arange(1.0, 11)
    short = [gp.Trace(t, 1 + (1 + 0.01 * i) / t, name=str(i)) for i in range(52)]
    past = gp.PastRuns(short)
    assert len(past) == 52
    assert past.widths.runs == 50


def test_a_run_is_left_out_where_it_is_the_live_one() -> None:
    runs = finished_runs(6)
    past = gp.PastRuns(runs)
    without = past.without(runs[2].until(30))
    assert [run for run in runs if run is not runs[2]] == list(without.runs)
    assert without.widths == past.widths
    assert past.without(gp.Trace([1, 2], [9, 8])) is past


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
    without = constants_with(analogy=0)
    errors = np.zeros((2, 9))
    for i, rate in enumerate(np.linspace(0.25, 0.55, 9)):
        whole = run(rate, 100 + i)
        for j, constants in enumerate((None, without)):
            f = gp.forecast(whole.until(150), [300.0], past=past, constants=constants)
            errors[j, i] = abs(np.log(f.median[0] / whole.loss[-1]))
            assert f.quantile(0.05)[0] <= whole.loss[-1] <= f.quantile(0.95)[0]
    assert errors[0].mean() < 0.7 * errors[1].mean()


def test_twins_among_the_past_runs_do_not_stand_for_a_run_that_has_none() -> None:
    # How a run of the folder began has no bearing on what follows, but each has a twin that does.
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
    tables = [constants_with(template_odds=1e-9, analogy=mass) for mass in (1, 0)]

    def moved(kind: int, past: list[gp.Trace]) -> float:
        """By how much of the 80 % interval the analogy moves its quantiles."""
        seen = run(kind).until(100)
        ours, plain = (
            gp.forecast(seen, [200.0], past=past, constants=c).quantiles[:, 0] for c in tables
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


def test_an_update_narrows_by_2_percent_where_it_held_and_widens_by_8_where_not() -> None:
    easy = finished_runs(5, noise=0.0)
    past = gp.PastRuns()
    for run in easy:
        past = past.update(run)
    assert past.widths.runs == len(past) == 5
    np.testing.assert_allclose(past.widths.factor, np.exp(5 * 0.1 * -0.2))
    assert past.widths.horizon.tolist() == gp.PastRuns(easy).widths.horizon.tolist()
    # A run that leaps up at 70 % is where no interval would have it, for those who look that far.
    step = np.arange(1.0, 201.0)
    leaping = gp.Trace(step, 1 + step**-0.4 + 50 * (step > 100))
    after = past.update(leaping)
    np.testing.assert_allclose(after.widths.factor[2:], past.widths.factor[2:] * np.exp(0.08))
    assert past.widths.runs == len(past) == 5  # the one before stays as it was
    assert after.runs == (*past.runs, leaping)
    # A run too short to have a score changes no widths.
    assert past.update(gp.Trace([1, 2, 3], [3, 2, 1])).widths == past.widths
    with pytest.raises(gp.InputError, match="other horizons than an update can learn"):
        with_factor(2.0).update(leaping)


def test_updates_cover_what_changes_its_kind() -> None:
    """At the widths that the first had taught the last runs would be outside too often."""
    runs = finished_runs(40, noise=0.0) + finished_runs(120, noise=0.1)
    past = gp.PastRuns()
    for run in runs[:40]:
        past = widths_only(past.update(run))
    before = past.widths.factor[2]
    for run in runs[40:]:
        past = widths_only(past.update(run))
    assert before < 0.7 < past.widths.factor[2]

    def holds(widths: gp.PastRuns) -> float:
        inside = []
        for run in runs[120:]:
            f = gp.forecast(run.until(30), [80.0], past=widths)
            inside.append(f.quantile(0.1)[0] <= run.loss[-1] <= f.quantile(0.9)[0])
        return float(np.mean(inside))

    assert holds(with_factor(before)) < 0.8 < holds(past)


def stepped(floor: float, points: int = 100, seed: int = 0) -> gp.Trace:
    """A run that drops by .5 about step 600, which its first points do not show."""
    t = 10 * np.arange(1, 101.0)
    noise = 0.01 * np.random.default_rng(seed).standard_normal(100)
    loss = 1.5 + floor + 7 * t**-0.5 - 0.5 / (1 + np.exp(-(t - 600) / 40)) + noise
    return gp.Trace(t[:points], loss[:points])


def test_a_step_beyond_all_past_runs_leaves_the_nearer_ones_their_past_runs() -> None:
    past = [stepped(0.2 * seed / 12, seed=seed) for seed in range(12)]
    live, truth = stepped(0.1, 30, seed=20), stepped(0.1, seed=20)
    near = gp.forecast(live, [900.0], past=past)
    assert abs(near.median[0] - truth.loss[89]) < 0.1
    far = gp.forecast(live, [900.0, 1000.0, 1500.0, 3000.0], past=past)
    np.testing.assert_allclose(far.median[0], near.median[0], rtol=1e-4)
    assert np.all(np.diff(far.median) < 0)  # on from where the past runs end
    widths = np.subtract(*far.interval(0.8)[::-1])
    assert np.all(np.diff(widths) > 0)


def test_a_step_beyond_past_runs_has_one_forecast_in_any_list() -> None:
    past = [stepped(0.2 * seed / 12, seed=seed) for seed in range(12)]
    live = stepped(0.1, 30, seed=20)
    alone = gp.forecast(live, [1100.0], past=past)
    assert alone.median[0] < 0.9 * gp.forecast(live, [1100.0]).median[0]
    for near in (500.0, 1000.0, 1021.0):
        among = gp.forecast(live, [near, 1100.0], past=past)
        np.testing.assert_allclose(among.median[1], alone.median[0], rtol=1e-3)
        np.testing.assert_allclose(among.quantile(0.9)[1], alone.quantile(0.9)[0], rtol=1e-2)


def test_of_more_past_runs_than_count_the_newest_do() -> None:
    def run(floor: float, seed: int) -> gp.Trace:
        noise = 0.01 * np.random.default_rng(seed).standard_normal(100)
        t = 10 * np.arange(1, 101.0)
        return gp.Trace(t, floor + 7 * t**-0.5 + noise)

    old = [run(2.5 + 0.3 * seed / 150, seed) for seed in range(150)]
    new = [run(1.2 + 0.1 * seed / 60, 200 + seed) for seed in range(60)]
    live = new[0].until(150)

    def width(past: list[gp.Trace]) -> float:
        low, high = gp.forecast(live, [900.0], past=past).interval(0.8)
        return float(high[0] - low[0])

    assert width(old + new) < 0.6 * width(old)
    assert width(old + new) < 1.3 * width(new)


def test_a_loss_that_is_no_number_is_one_point_less_of_a_past_run() -> None:
    runs = finished_runs(9)

    def holed(run: gp.Trace) -> gp.Trace:
        loss = run.loss.copy()
        loss[len(loss) // 2] = np.nan
        return gp.Trace(run.step, loss)

    live, steps = runs[8].until(20), [60.0, 79.0]
    whole = gp.forecast(live, steps, past=runs[:8])
    with_holes = gp.forecast(live, steps, past=[holed(run) for run in runs[:8]])
    np.testing.assert_allclose(with_holes.median, whole.median, rtol=0.01)
    assert not np.array_equal(with_holes.median, gp.forecast(live, steps).median)
    few = gp.forecast(live.until(2), steps, past=[holed(run) for run in runs[:8]])
    assert few.status == "good"


@pytest.mark.parametrize("points", [1, 2])
def test_a_run_of_one_or_two_points_comes_to_a_target_as_its_forecast_has_it(points: int) -> None:
    rng = np.random.default_rng(0)

    def run(floor: float, scale: float) -> gp.Trace:
        t = 10 * np.arange(1, 101.0)
        return gp.Trace(t, floor + scale * t**-0.5 + 0.005 * rng.standard_normal(100))

    past = gp.PastRuns([run(1.5 + 0.2 * rng.random(), 6 + 2 * rng.random()) for _ in range(20)])
    live = run(1.45, 6.0)
    seen = gp.Trace(live.step[:points], live.loss[:points])
    below = gp.forecast(seen, [500.0, 1000.0], past=past).prob_below(1.7)
    law = gp.reach(seen, 1.7, budget=1000, past=past, reached_by="point")
    assert law.prob_by(1000) == pytest.approx(below[1], abs=0.05)
    assert law.prob_by(500) == pytest.approx(below[0], abs=0.05)


def sudden(fall: float, rng: np.random.Generator, noise: float = 0.0) -> gp.Trace:
    """A run on a plateau, that falls to 0.05 about one step."""
    t = np.arange(1.0, 201.0)
    level = 0.05 + 2.25 / (1 + np.exp((t - fall) / 6))
    return gp.Trace(t, level * np.exp(noise * rng.standard_normal(200)))


@pytest.mark.parametrize("points", [3, 8, 20])
def test_what_past_runs_came_to_is_in_reach_of_a_run_that_still_stands(points: int) -> None:
    rng = np.random.default_rng(0)
    past = gp.PastRuns([sudden(fall, rng) for fall in np.linspace(60, 100, 20)])
    seen = sudden(83.0, rng, noise=0.01).until(points)
    forecast = gp.forecast(seen, [200.0], past=past)
    assert forecast.prob_below(0.2)[0] > 0.3
    assert forecast.prob_below(0.5)[0] > 0.3
    assert gp.reach(seen, 0.5, budget=200, past=past).prob_by(200) > 0.5


def test_past_runs_say_more_of_a_run_of_a_few_points_than_its_own_curve() -> None:
    rng = np.random.default_rng(1)
    t = np.arange(1.0, 201.0)

    def run() -> gp.Trace:
        curve = rng.normal(2, 0.1) + rng.normal(5, 0.4) * t ** -rng.uniform(0.4, 0.6)
        return gp.Trace(t, curve * np.exp(0.01 * rng.standard_normal(200)))

    errors, held = {1: [], 2: [], 3: [], 5: []}, {1: [], 2: [], 3: [], 5: []}
    for _ in range(40):
        past, live = gp.PastRuns([run() for _ in range(8)]), run()
        for points in errors:
            ahead = gp.forecast(live.until(points), [200.0], past=past)
            low, high = ahead.interval(0.8)
            held[points].append(low[0] <= live.loss[-1] <= high[0])
            errors[points].append(abs(ahead.median[0] - live.loss[-1]))
    medians = {points: np.median(each) for points, each in errors.items()}
    assert medians[3] < 1.25 * medians[2]
    assert medians[5] < 1.25 * medians[2]
    for points in (3, 5):
        assert np.mean(held[points]) > 0.6


def test_runs_that_differ_by_noise_alone_leave_the_next_one_its_own() -> None:
    rng = np.random.default_rng(2)
    t = np.arange(1.0, 101.0)

    def run() -> gp.Trace:
        return gp.Trace(t, (2 + 3 * t**-0.5) * np.exp(0.02 * rng.standard_normal(100)))

    held = []
    for _ in range(60):
        past, live = [run() for _ in range(5)], run()
        low, high = gp.forecast(live.until(1), t[20:], past=past).interval(0.8)
        held.append(np.mean((low <= live.loss[20:]) & (live.loss[20:] <= high)))
    assert 0.65 < np.mean(held) < 0.97


def test_past_runs_that_ended_where_another_arrived_were_not_there_yet() -> None:
    t = np.arange(1.0, 201.0)
    curve = 2.5 + 5 * t**-0.5
    ended = [gp.Trace(t, curve + 0.01 * k) for k in range(9)]
    arrived = gp.Trace(t, np.r_[curve[:-1], 2.55])
    for past in ([arrived, *ended], [*ended, arrived]):
        law = gp.reach(gp.Trace([], []), 2.6, budget=300, past=past)
        assert law.prob_by(300) == pytest.approx(0.1)


def test_a_log_that_begins_late_is_not_taken_for_a_run_that_has_just_begun() -> None:
    t = np.arange(1.0, 101.0)
    past = [gp.Trace(t, 0.3 + (3 + 0.1 * k) * np.exp(-t / (60 + 2 * k))) for k in range(12)]
    settled = gp.Trace(t[49:53], [1.0, 0.999, 1.001, 1.0])
    assert gp.forecast(settled, [100.0], past=past).quantile(0.1)[0] > 0.9  # the others halve


def test_returns_of_past_runs_tell_that_a_hundred_is_no_bound() -> None:
    t = np.arange(1.0, 601.0)

    def run(pace: float) -> gp.Trace:
        return gp.Trace(t, 20 + pace * t, direction="max", metric="score")

    past = gp.PastRuns([run(pace) for pace in (0.9, 0.95, 1.0, 1.05, 1.1)] * 4)
    seen = run(1.0).until(60)
    low, high = gp.forecast(seen, [600.0], past=past).interval(0.8)
    assert low[0] < 620 < high[0]
    assert gp.reach(seen, 150, budget=600, past=past).prob_by(600) > 0.9
    odd = gp.PastRuns([run(0.1)] * 4 + [run(1.0)])  # one beyond it is the odd one
    assert gp.forecast(seen, [600.0], past=odd).interval(0.8)[1][0] < 100
