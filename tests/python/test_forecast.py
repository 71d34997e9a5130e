# SPDX-License-Identifier: Apache-2.0
"""Forecasts through the Python surface, against the published prototype and on odd input."""

from __future__ import annotations

import importlib.util
import json
import pickle
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import glidepath as gp

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
    np.testing.assert_allclose(ours.mean[few], stored["mean"], rtol=1e-8)
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
            np.testing.assert_allclose(ours.mean, theirs["mean"], rtol=1e-8)
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
        np.testing.assert_array_equal(batch.mean[i], single.mean)
        np.testing.assert_array_equal(batch.quantiles[:, i], single.quantiles)


def test_result_survives_pickle_and_says_whether_it_is_good() -> None:
    t, y = curve("power", 60, 0.01)
    f = gp.forecast(gp.Trace(t, y), [500.0, 900.0])
    again = pickle.loads(pickle.dumps(f))
    assert again == f
    assert "good" in repr(f)
    np.testing.assert_allclose(f.quantile(0.5), f.mean)
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
    assert np.isfinite(f.mean).all()
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
