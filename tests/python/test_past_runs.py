# SPDX-License-Identifier: Apache-2.0
"""What finished runs teach about live ones."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from curves import annealed_runs, constants_with, finished_runs, noisy_power_law

import glidepath as gp


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
