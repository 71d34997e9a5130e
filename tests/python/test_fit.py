# SPDX-License-Identifier: Apache-2.0
"""Fits through the Python surface."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _core

STEPS = np.arange(1.0, 201.0)
TRUTH = {
    "pow2": {"scale": 3.0, "rate": 0.3},
    "pow3": {"floor": 1.5, "scale": 3.0, "rate": 0.4},
    "pow4": {"floor": 1.5, "scale": 3.0, "rate": 0.6, "shift": 5.0},
    "exp3": {"floor": 1.5, "scale": 3.0, "rate": 0.03},
    "weibull4": {"floor": 1.5, "scale": 3.0, "rate": 0.02, "shape": 0.7},
    "mmf4": {"floor": 1.5, "scale": 3.0, "half": 40.0, "shape": 1.2},
    "log2": {"floor": 5.0, "scale": 0.3},
    "powexp": {"floor": 1.5, "scale": 3.0, "rate": 0.3, "decay": 0.005},
}
FORMULA = {
    "pow2": lambda t, scale, rate: scale * t**-rate,
    "pow3": lambda t, floor, scale, rate: floor + scale * t**-rate,
    "pow4": lambda t, floor, scale, rate, shift: floor + scale * (t + shift) ** -rate,
    "exp3": lambda t, floor, scale, rate: floor + scale * np.exp(-rate * t),
    "weibull4": lambda t, floor, scale, rate, shape: floor + scale * np.exp(-((rate * t) ** shape)),
    "mmf4": lambda t, floor, scale, half, shape: floor + scale / (1 + (t / half) ** shape),
    "log2": lambda t, floor, scale: floor - scale * np.log(t),
    "powexp": lambda t, floor, scale, rate, decay: floor + scale * t**-rate * np.exp(-decay * t),
}


def sample(family: str, noise: float = 0.0, seed: int = 0, steps: np.ndarray = STEPS) -> gp.Trace:
    loss = FORMULA[family](steps, **TRUTH[family])
    return gp.Trace(steps, loss + noise * np.random.default_rng(seed).normal(size=steps.size))


@pytest.mark.parametrize("family", TRUTH)
def test_a_noiseless_curve_is_recovered(family: str) -> None:
    fit = gp.fit(sample(family), family=family)
    assert fit.status == "converged"
    assert fit.params == pytest.approx(TRUTH[family], rel=1e-6)
    assert fit.predict([5.0, 500.0]) == pytest.approx(
        FORMULA[family](np.array([5.0, 500.0]), **fit.params), rel=1e-12
    )


@pytest.mark.parametrize("family", TRUTH)
def test_scipy_finds_the_same_optimum(family: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    trace = sample(family, noise=0.005)
    fit = gp.fit(trace, family=family)
    best, covariance = optimize.curve_fit(
        FORMULA[family],
        trace.step,
        trace.loss,
        p0=list(TRUTH[family].values()),
        xtol=1e-13,
        ftol=1e-13,
        gtol=1e-13,
    )
    assert list(fit.params.values()) == pytest.approx(best, rel=2e-5)
    assert list(fit.stderr.values()) == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-2)


def test_auto_reports_every_family() -> None:
    fit = gp.fit(sample("pow3", noise=1e-4))
    own = next(score for score in fit.scores if score.family == "pow3")
    assert own.aicc < fit.aicc + 4.0
    assert {score.family for score in fit.scores} == set(TRUTH)
    assert min(score.aicc for score in fit.scores) == fit.aicc


def test_robust_shrugs_off_spikes() -> None:
    trace = sample("pow3", noise=0.005)
    loss = trace.loss.copy()
    loss[20::15] += 4.0
    spoiled = gp.Trace(trace.step, loss)
    for robust in (True, "huber", "cauchy"):
        fit = gp.fit(spoiled, family="pow3", robust=robust)
        assert fit.predict([1000.0])[0] == pytest.approx(
            FORMULA["pow3"](1000.0, **TRUTH["pow3"]), abs=0.03
        )


def test_bad_traces_have_a_status_and_do_not_stop_others() -> None:
    good = sample("pow3")
    nan = gp.Trace([1, 2, 3, 4], [3, np.nan, 2, 1])
    fits = gp.fit_batch(
        [nan, good, good.until(2), gp.Trace(STEPS, np.full(200, 2.0))], family="pow3"
    )
    assert [f.status for f in fits] == ["not_finite", "converged", "too_few_points", "flat"]
    assert np.isnan(list(fits[0].params.values())).all()
    assert fits[3].predict([7.0]) == pytest.approx([2.0])


def test_bad_options_are_refused_in_a_sentence() -> None:
    with pytest.raises(gp.InputError, match="family is 'pow5', expected one of auto, pow2"):
        gp.fit(sample("pow3"), family="pow5")
    with pytest.raises(gp.InputError, match="solver is 'gpu', expected closed_form or ceres"):
        gp.fit(sample("pow3"), solver="gpu")
    with pytest.raises(gp.InputError, match="robust"):
        gp.fit(sample("pow3"), robust="tukey")
    with pytest.raises(gp.InputError, match="weight"):
        gp.fit(sample("pow3"), weight=[1.0])
    with pytest.raises(gp.InputError, match="threads"):
        gp.fit_batch([sample("pow3")], threads=-1)
    with pytest.raises(gp.InputError, match="needs a family"):
        gp.fit_batch(STEPS, np.ones((2, 200)), family="auto")
    with pytest.raises(gp.InputError, match="199"):
        gp.fit_batch(STEPS[1:], np.ones((2, 200)), family="pow3")


def test_weights_out_of_all_measure_are_refused_in_a_sentence() -> None:
    for weight in (0.0, 1e-301, 1e-21):
        with pytest.raises(gp.InputError, match=r"weight is .*, expected at least 1e-20"):
            gp.fit(sample("pow3"), weight=np.full(200, weight))
    with pytest.raises(gp.InputError, match=r"weight\[0\] is 1e\+101, expected 0 to 1e\+100"):
        gp.fit(sample("pow3"), weight=np.full(200, 1e101))
    one = gp.fit(sample("pow3", 0.01), weight=np.ones(200))
    for weight in (2.0**-60, 2.0**300):
        scaled = gp.fit(sample("pow3", 0.01), weight=np.full(200, weight))
        assert scaled.status == one.status
        assert scaled.params == pytest.approx(one.params, rel=1e-6)


@pytest.mark.parametrize("family", [*_core.FAMILIES, "auto"])
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e300, 1.7e308, -1.7e308])
def test_a_fit_that_is_usable_has_finite_parameters(family: str, scale: float) -> None:
    step = np.arange(1.0, 31.0)
    for shape in (step**-0.5, np.where(step % 2 == 0, 1.0, -1.0), 1 / (1 + step)):
        fit = gp.fit(gp.Trace(step, scale * shape), family=family)
        if gp.usable(fit.status):
            assert np.isfinite(list(fit.params.values())).all()
        if family != "auto":
            batch = gp.fit_batch(step, [scale * shape], family=family)
            if gp.usable(batch.status[0]):
                assert all(np.isfinite(column).all() for column in batch.params.values())


def test_a_batch_is_its_rows_for_any_threads_and_any_split() -> None:
    rng = np.random.default_rng(3)
    loss = np.stack([sample("pow3", 0.01, seed).loss * rng.uniform(0.5, 2) for seed in range(70)])
    loss[4, 9] = np.inf
    for family in TRUTH:
        whole = gp.fit_batch(STEPS, loss, family=family, threads=1)
        assert whole == gp.fit_batch(STEPS, loss, family=family, threads=2)
        parts = [gp.fit_batch(STEPS, part, family=family) for part in (loss[:3], loss[3:])]
        for name, column in whole.params.items():
            joined = np.concatenate([part.params[name] for part in parts])
            assert np.array_equal(column, joined, equal_nan=True)
        assert whole.status[4] == "not_finite"
        usual = {"converged", "poor"} if family in ("pow2", "exp3", "log2") else {"converged"}
        assert set(np.delete(whole.status, 4)) <= usual
        one = gp.fit(gp.Trace(STEPS, loss[7]), family=family)
        assert one.params == pytest.approx(
            {name: column[7] for name, column in whole.params.items()}, rel=1e-5, abs=1e-9
        )


@pytest.mark.parametrize("family", TRUTH)
def test_evaluate_batch_fills_the_callers_array(family: str) -> None:
    params = {name: value * np.linspace(1, 1.3, 5) for name, value in TRUTH[family].items()}
    steps = np.array([1.0, 3.0, 10.0, 1000.0])
    out = np.empty((5, 4))
    result = gp.evaluate_batch(family, params, steps, out=out)
    assert result is out
    expected = [
        FORMULA[family](steps, **{name: column[i] for name, column in params.items()})
        for i in range(5)
    ]
    assert out == pytest.approx(np.array(expected), rel=1e-12)
    with pytest.raises(TypeError):
        gp.evaluate_batch(family, params, steps, out=np.empty((5, 4), dtype=np.float32))
    with pytest.raises(gp.InputError):
        gp.evaluate_batch(family, {"floor": params.get("floor", steps)}, steps)


def test_results_compare_pickle_and_say_whether_they_are_good() -> None:
    fit = gp.fit(sample("pow3", noise=0.01))
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert fit != gp.fit(sample("pow3", noise=0.01, seed=1))
    assert "converged" in repr(fit)
    assert "rate" in fit._repr_html_()
    batch = gp.fit_batch(
        STEPS, np.stack([sample("exp3", 0.01, s).loss for s in range(3)]), family="exp3"
    )
    assert pickle.loads(pickle.dumps(batch)) == batch
    assert "3 exp3 curves, 3 converged" in repr(batch)
    with pytest.raises((AttributeError, TypeError)):
        fit.sigma = 1.0  # type: ignore[misc]


def test_any_object_with_steps_and_losses_will_do() -> None:
    class Bare:
        step = STEPS
        loss = sample("pow3").loss

    assert gp.fit(Bare(), family="pow3").status == "converged"


def schedules() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    steps = np.arange(100.0, 10001.0, 100.0)
    cosine = 3e-4 * (0.1 + 0.9 * 0.5 * (1 + np.cos(np.pi * steps / 10000)))
    return {
        "constant": (steps, np.full(steps.size, 3e-4)),
        "cosine": (steps, cosine),
        "two_stage": (steps, np.where(steps < 5000, 3e-4, 9e-5)),
        "linear": (steps, 3e-4 * (1.05 - steps / 10000)),
    }


@pytest.mark.parametrize("law", ["annealing", "multi_power"])
def test_a_schedule_law_recovers_itself_and_predicts_an_unseen_schedule(law: str) -> None:
    params = {
        "floor": 2.5,
        "scale": 0.6,
        "rate": 0.45,
        "drop": 1.1,
        "memory": 400.0,
        "warmup": 20.0,
    }
    if law == "multi_power":
        params = {"floor": 2.5, "scale": 0.6, "rate": 0.45, "drop": 600.0, "speed": 0.05}
        params |= {"shape": 0.6, "power": 0.7, "warmup": 20.0}
    truth = gp.ScheduleLaw(law, "converged", params, 0.0, 0.0, 0)
    runs = {
        name: gp.Trace(step, truth.predict(step, lr), lr=lr)
        for name, (step, lr) in schedules().items()
    }
    found = gp.fit_schedule_law(
        [runs[name] for name in ("constant", "cosine", "two_stage")], kind=law
    )
    assert found.status == "converged"
    assert found.predict(runs["linear"].step, runs["linear"].lr) == pytest.approx(
        runs["linear"].loss, abs=1e-5
    )
    assert found == gp.fit_schedule_law(
        [runs[name] for name in ("constant", "cosine", "two_stage")], kind=law
    )


def test_a_schedule_law_needs_learning_rates() -> None:
    with pytest.raises(gp.InputError, match=r"^fit_schedule_law: trace .* learning rates"):
        gp.fit_schedule_law([sample("pow3")])
    step, lr = schedules()["cosine"]
    with pytest.raises(gp.InputError, match="expected annealing or multi_power"):
        gp.fit_schedule_law([gp.Trace(step, lr, lr=lr)], kind="cosine")
    with pytest.raises(gp.InputError, match=r"^fit_schedule_law: trace '0' has no .* above 0"):
        gp.fit_schedule_law([gp.Trace(step, lr, lr=0 * lr)])
    params = {"floor": 2.5, "scale": 0.6, "rate": 0.45, "drop": 1.1, "memory": 400.0, "warmup": 0.0}
    law = gp.ScheduleLaw("annealing", "converged", params, 0.0, 0.0, 0)
    with pytest.raises(gp.InputError, match=r"^ScheduleLaw.predict: no learning rate is above 0"):
        law.predict(step, 0 * lr)
    with pytest.raises(gp.InputError, match=r"^ScheduleLaw.predict: a learning .* expected 0 or"):
        law.predict(step, -lr)


SIZES = ("25M", "100M", "400M")
FITTED = ("cosine_24000", "constant_24000", "wsdcon_9")  # the others are predicted


def scores(law: gp.ScheduleLaw, runs: dict[str, gp.Trace]) -> tuple[float, float]:
    """Mean R² and mean absolute error over the runs that were not fitted."""
    r2, error = [], []
    for name, t in runs.items():
        if name not in FITTED:
            residual = law.predict(t.step, t.lr) - t.loss
            r2.append(1 - np.sum(residual**2) / np.sum((t.loss - t.loss.mean()) ** 2))
            error.append(np.abs(residual).mean())
    return float(np.mean(r2)), float(np.mean(error))


@pytest.fixture(scope="module")
def published_runs(shared: Path) -> dict[str, dict[str, gp.Trace]]:
    traces = gp.read_traces(shared / "data" / "curves" / "multipowerlaw.csv.gz")
    return {
        size: {t.name.split("/")[1]: t for t in traces if t.name.startswith(size + "/")}
        for size in SIZES
    }


# R² as measured, less 0.0004; the published ones are 0.9988, 0.9983 and 0.9978
@pytest.mark.parametrize(
    ("law", "at_least"),
    [("annealing", (0.9977, 0.9980, 0.9971)), ("multi_power", (0.9974, 0.9970, 0.9964))],
)
def test_schedule_laws_predict_published_runs(
    law: str, at_least: tuple[float, ...], published_runs: dict[str, dict[str, gp.Trace]]
) -> None:
    for size, least in zip(SIZES, at_least, strict=True):
        runs = published_runs[size]
        found = gp.fit_schedule_law([runs[name] for name in FITTED], kind=law)
        assert found.status == "converged"
        r2, error = scores(found, runs)
        assert r2 >= least
        assert error < 0.006


# floor, scale, rate, drop, speed, shape, power: github.com/thu-yao-01-luo/MultiPowerLaw, config.py
PUBLISHED = {
    "25M": (3.04045406, 0.52468604, 0.50786857, 363.78751622, 2.06560812, 0.58279013, 0.64142257),
    "100M": (2.6514477, 0.60115152, 0.45295811, 437.9464276, 2.13245612, 0.59785199, 0.65523644),
    "400M": (2.37474466, 0.65421216, 0.42878731, 523.42464371, 2.02462735, 0.59350493, 0.63472457),
}


def test_the_published_parameters_predict_as_was_published(
    published_runs: dict[str, dict[str, gp.Trace]],
) -> None:
    for size, r2 in zip(SIZES, (0.9988, 0.9983, 0.9978), strict=True):
        names = ("floor", "scale", "rate", "drop", "speed", "shape", "power")
        params = dict(zip(names, PUBLISHED[size], strict=True)) | {"warmup": 2160.0}
        law = gp.ScheduleLaw("multi_power", "converged", params, 0.0, 0.0, 0)
        # where between two logged steps the rate jumped is not in the traces
        assert scores(law, published_runs[size])[0] == pytest.approx(r2, abs=4e-4)


def test_a_batch_of_traces_takes_what_one_fit_takes() -> None:
    run, other = sample("pow3"), sample("exp3")
    first, second = np.linspace(1, 2, len(run)), np.linspace(2, 1, len(other))
    assert gp.fit_batch([run, other], family="pow3", weight=[first, second]) == [
        gp.fit(run, family="pow3", weight=first),
        gp.fit(other, family="pow3", weight=second),
    ]
    options: dict[str, Any] = {"family": "pow3", "solver": "ceres", "starts": 2}
    assert gp.fit_batch([run, other], **options) == [
        gp.fit(run, **options), gp.fit(other, **options)
    ]  # fmt: skip


def test_a_tuple_of_steps_and_losses_is_a_trace_and_anything_else_is_refused() -> None:
    run = sample("pow3")
    assert gp.fit((run.step, run.loss)) == gp.fit(run)
    assert gp.fit_batch([(run.step, run.loss), run]) == [gp.fit(run)] * 2
    for wrong, kind in (([run.step, run.loss], "list"), ([run], "list"), (run.loss, "ndarray")):
        with pytest.raises(gp.InputError, match=rf"fit: expected a gp\.Trace, got {kind}: "):
            gp.fit(wrong)
    with pytest.raises(gp.InputError, match=r"fit_batch: expected a gp\.Trace, got float64: "):
        gp.fit_batch(run.loss)
    with pytest.raises(
        gp.InputError, match=r"fit_batch: expected a list of gp.Trace, got one gp.Trace"
    ):
        gp.fit_batch(run)
    with pytest.raises(gp.InputError, match="fit_batch: robust is for traces, rows over shared"):
        gp.fit_batch(STEPS, np.ones((2, 200)), family="pow3", robust=True)


def test_a_fit_with_a_usable_status_has_numbers() -> None:
    flat = gp.Trace([1, 2, 3, 4], [2, 2, 2, 2])
    for trace in (sample("pow3"), flat, gp.Trace([1, 2], [2, 1]), gp.Trace([1, 2], [np.nan, 1])):
        fit = gp.fit(trace, family="pow3")
        assert gp.usable(fit.status) == bool(np.isfinite(list(fit.params.values())).all())
    with pytest.raises(gp.InputError, match="status is 'good', expected one of converged, "):
        gp.usable("good")


def test_the_library_s_records_pickle_copy_print_and_compare() -> None:
    score = gp.FitScore(family="pow3", aicc=1.5, status="converged")
    law = _core.ScheduleLawRecord(kind="annealing", floor=1.0, memory=400.0)
    run = _core.TraceRecord([1, 2], [3, 2], name="a", metric="val_acc", planned_steps=9)
    for record in (score, law, run):
        assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == record
    assert repr(score) == "FitScore(family='pow3', aicc=1.5, status='converged')"
    assert score != gp.FitScore(family="pow3", aicc=2.5, status="converged")
    with pytest.raises(gp.InputError, match="family is 'pow5', expected one of pow2, pow3"):
        gp.FitScore(family="pow5", aicc=1.5, status="converged")
    with pytest.raises(TypeError, match="ScheduleLawRecord: floor is 'low', expected a number"):
        _core.ScheduleLawRecord(floor="low")


def test_the_picture_of_a_fit_shows_its_points_and_names_its_metric() -> None:
    pytest.importorskip("matplotlib")
    run = sample("pow3", noise=0.01)
    ax = gp.fit(run, family="pow3").plot(trace=run)
    assert [line.get_label() for line in ax.lines] == ["observed", "pow3 (converged)"]


def drop_at_the_end() -> gp.Trace:
    """A power that falls by a tenth of its descent before its end, as when the rate is cut."""
    run = sample("pow3", noise=0.01)
    return gp.Trace(run.step, run.loss - 0.5 * (run.step > 170))


def test_a_fit_that_misses_the_end_of_the_curve_is_poor_on_every_path() -> None:
    run = drop_at_the_end()
    good = sample("pow3", noise=0.01)
    assert gp.fit(run, family="pow3").status == "poor"
    assert gp.fit(run, family="pow3", solver="ceres").status == "poor"
    assert gp.fit(run, family="pow3", robust=True).status == "poor"
    assert gp.fit(run, family="pow3", weight=np.ones(200)).status == "poor"
    statuses = [fit.status for fit in gp.fit_batch([run, good], family="pow3")]
    assert statuses == ["poor", "converged"]
    for family in ("pow3", "exp3", "pow4"):
        rows = gp.fit_batch(STEPS, np.stack([run.loss, good.loss]), family=family)
        alone = [gp.fit(each, family=family).status for each in (run, good)]
        assert rows.status.tolist() == alone
        assert alone[0] == "poor"
    assert np.isfinite(list(gp.fit(run, family="pow3").params.values())).all()
    assert not gp.usable("poor")


@pytest.mark.parametrize("family", list(TRUTH))
def test_a_fit_of_the_true_family_is_not_poor(family: str) -> None:
    for seed in range(10):
        for noise in (0.0, 0.001, 0.03, 0.3):
            assert gp.fit(sample(family, noise, seed), family=family).status != "poor"


def test_spikes_at_the_end_do_not_make_a_robust_fit_poor() -> None:
    run = sample("pow3", noise=0.01)
    run = gp.Trace(run.step, run.loss + 4.0 * (run.step % 10 == 5))
    assert gp.fit(run, family="pow3", robust=True).status == "converged"


def test_points_of_no_weight_do_not_make_a_fit_poor() -> None:
    run = drop_at_the_end()
    weight = np.where(run.step > 170, 0.0, 1.0)
    assert gp.fit(run, family="pow3", weight=weight).status == "converged"


def test_points_before_from_step_are_left_out() -> None:
    run = sample("pow3", noise=0.01)
    rough = gp.Trace(run.step, np.where(run.step < 50, 9.0 - run.step / 50, run.loss))
    kept = gp.Trace(run.step[49:], run.loss[49:])
    fit = gp.fit(rough, family="pow3", from_step=50)
    assert fit == gp.fit(kept, family="pow3")
    assert fit.points == 151
    assert gp.fit(rough, from_step=49.5) == gp.fit(kept)
    assert gp.fit_batch([rough], family="pow3", from_step=50) == [fit]
    rows = gp.fit_batch(STEPS, rough.loss[None], family="pow3", from_step=50)
    bare = gp.fit_batch(STEPS[49:], kept.loss[None], family="pow3")
    assert rows.params == bare.params
    assert gp.fit(rough, from_step=1e9).status == "too_few_points"
    with pytest.raises(gp.InputError, match="fit: from_step is nan"):
        gp.fit(rough, from_step=np.nan)


@pytest.mark.parametrize("family", ["pow2", "log2"])
def test_a_lowest_floor_is_refused_for_a_family_that_does_not_level_off(family: str) -> None:
    step = np.arange(1.0, 41.0)
    with pytest.raises(gp.InputError, match=f"levels off, '{family}' does not"):
        gp.fit(gp.Trace(step, 2 + step**-0.5), family=family, lowest_floor=1.0)
    with pytest.raises(gp.InputError, match=f"levels off, '{family}' does not"):
        gp.fit_batch(step, [2 + step**-0.5], family=family, lowest_floor=1.0)


def test_a_point_of_no_weight_counts_for_nothing() -> None:
    t = 10 * np.arange(1, 101.0)
    loss = 1.5 + 8 * t**-0.5 + 0.02 * np.random.default_rng(3).standard_normal(100)
    weight = np.zeros(100)
    weight[[3, 20, 50, 90]] = 1
    kept = weight > 0
    assert gp.fit((t, loss), family="pow3", weight=weight) == gp.fit(
        (t[kept], loss[kept]), family="pow3", weight=weight[kept]
    )
    loss[0] = np.nan
    assert gp.fit((t, loss), family="pow3", weight=np.arange(100.0)).status == "converged"
    weight[[20, 50]] = 0
    assert gp.fit((t, loss), family="pow3", weight=weight).status == "too_few_points"


@pytest.mark.parametrize("family", ["pow3", "exp3"])
def test_the_closed_form_finds_no_worse_a_minimum_than_ceres(family: str) -> None:
    rng = np.random.default_rng(5)
    for points in [100, 150, 300] * 60:
        t = np.arange(1, points + 1.0)
        curve = 1.8 + rng.uniform(0.1, 2) * t ** -rng.uniform(0.2, 1.5)
        loss = curve + rng.choice([0.01, 0.03, 0.1]) * rng.standard_normal(points)
        own = gp.fit((t, loss), family=family)
        assert own.rss <= gp.fit((t, loss), family=family, solver="ceres").rss * (1 + 1e-7)
    # The scan of merged points puts the valley of these beside that of all points.
    t = np.arange(1, 101.0)
    loss = 1.8 + 0.44 * (10 * t) ** -0.84 + 0.03 * np.random.default_rng(546).standard_normal(100)
    rate = gp.fit((t, loss), family="pow3").params["rate"]
    assert rate == pytest.approx(0.35558, rel=1e-4)
