# SPDX-License-Identifier: Apache-2.0
"""States that were written as JSON and damaged since: refused in a sentence, or of use."""

from __future__ import annotations

import copy
import json
import math
import random
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curves import annealed_runs
from records import public_records

import glidepath as gp
from glidepath._json import restored

ODD: list[Any] = [
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**400, -(10**400), 1e308, 5e-324),
    *(math.nan, math.inf, -math.inf, "", "x", "inf", "nan", "1", "\ud800", "\0", "a" * 9999),
    *([], {}, [[]], [None], ["x"], [1, 2], [[1, 2], [3]], {"a": 1}, b"x", (), 1j),
]


def watched_run() -> gp.Trace:
    return annealed_runs(1, gain=0.05)[0]


def watched() -> gp.Watch:
    run = watched_run()
    watch = gp.Watch(target=0.2, budget=300, schedule=gp.Schedule.cosine(1.0, 300.0))
    for step, loss in zip(run.step[:40].tolist(), run.loss[:40].tolist(), strict=True):
        watch.add(step, loss)
    return watch


def queue() -> gp.Snapshot:
    ways = [gp.Option(0, 1, 1.0), gp.Option(1, 2, 3.0)]
    jobs = [gp.Job(each, ways, remaining_steps=[10.0, 30.0]) for each in range(3)]
    return gp.Snapshot([gp.Tier("a", 1, 2), gp.Tier("b", 1, 2)], jobs, now_s=60.0)


def two_jobs() -> gp.Workload:
    columns = {"job": [1, 2], "submit_s": [0, 5], "gpus": [1, 2], "duration_s": [500, 50]}
    return gp.Workload([gp.Tier("a", 8)], columns)


def choice() -> gp.AcceleratorChoice:
    tiers = [gp.Tier.of("card", "A100 PCIe 40GB", 1, 1)]
    return gp.choose_accelerator(queue().jobs[0], tiers * 2)[0]


def metrics() -> gp.Metrics:
    columns = {"power_w": [100, math.nan, 200], "sm_activity": [0.1, 0.2, 0.3]}
    return gp.Metrics([0, 1, 2.5], columns, name="m", notes=["a note"])


RUN = watched_run()
# Every public class with `from_dict`, each made by what makes it.
STATES: dict[type[Any], Callable[[], Any]] = {
    gp.AcceleratorChoice: choice,
    gp.BestSoFar: lambda: gp.best_so_far(RUN, budget=400),
    gp.Cleaned: lambda: gp.clean(RUN),
    gp.Comparison: lambda: gp.compare(two_jobs(), ["fifo", "srtf"]),
    gp.Decision: lambda: watched().decision(),
    gp.Fit: lambda: gp.fit(RUN),
    gp.FitBatch: lambda: gp.fit_batch(RUN.step, [RUN.loss] * 2, family="pow3"),
    gp.Forecast: lambda: gp.forecast(RUN, [350.0, 400.0]),
    gp.ForecastBatch: lambda: gp.forecast_batch(RUN.step, [RUN.loss], [350.0]),
    gp.MetricInfo: lambda: gp.metrics_of("data/curves/docs-transformer.csv.gz")[0],
    gp.Metrics: metrics,
    gp.PastRuns: lambda: gp.PastRuns(annealed_runs(4, gain=0.05)),
    gp.Plan: lambda: gp.plan(queue()),
    gp.Reach: lambda: gp.reach(RUN, 0.2, budget=400),
    gp.RoundPlan: lambda: gp.solve_round([0, 1], [0, 0], [1, 1], [3.0, 2.0], [2]),
    gp.Schedule: lambda: gp.Schedule.cosine(1.0, 300.0),
    gp.ScheduleLaw: lambda: gp.fit_schedule_law(annealed_runs(4, gain=0.05)),
    gp.Simulation: lambda: gp.simulate(two_jobs(), "fifo"),
    gp.StartTimes: lambda: gp.start_times(queue(), samples=20),
    gp.StepProfile: lambda: gp.StepProfile(step_seconds=0.5, kernel_s=0.3),
    gp.Trace: lambda: RUN,
    gp.Watch: watched,
    gp.Widths: lambda: gp.PastRuns(annealed_runs(4, gain=0.05)).widths,
    **{type(record): partial(copy.copy, record) for record in public_records()},
}


def test_every_class_that_is_restored_is_damaged_here() -> None:
    public = {getattr(gp, name) for name in gp.__all__}
    assert STATES.keys() == {each for each in public if hasattr(each, "from_dict")}


def places(state: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a state, of a list only to its first ones."""
    yield above
    if isinstance(state, dict):
        for key in state:
            yield from places(state[key], (*above, key))
    elif isinstance(state, list):
        for index in range(min(len(state), 3)):
            yield from places(state[index], (*above, index))


def changed(state: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    state = copy.deepcopy(state)
    inner = state
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return state


def damaged(state: Any, rng: random.Random) -> Any:
    """A state with one value that is odd, is missing, or is cut."""
    place = rng.choice(list(places(state)))
    value = state
    for key in place:
        value = value[key]
    if isinstance(value, list) and rng.random() < 0.3:
        return changed(state, place, value[: rng.randrange(len(value) + 1)])
    if isinstance(value, dict) and value and rng.random() < 0.3:
        left = rng.choice(list(value))
        return changed(state, place, {key: each for key, each in value.items() if key != left})
    return changed(state, place, rng.choice(ODD))


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: str(kind.__name__))
def test_a_damaged_state_is_refused_or_of_use(
    kind: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    state, read = STATES[kind]().to_dict(), kind.from_dict
    whole = json.dumps(state, allow_nan=False)
    assert read(json.loads(whole)).to_dict() == state
    rng, refused, read_on = random.Random(4), 0, 0
    for _ in range(500):
        try:
            got = read(damaged(state, rng))
        except gp.InputError:
            refused += 1
            continue
        read_on += 1
        assert repr(got)
        again = json.dumps(got.to_dict(), allow_nan=False)
        assert read(json.loads(again)).to_dict() == got.to_dict()
        if kind is gp.Watch:
            got.decision()
            got.add(400.0, 0.3)
            got.decision()
    # Most of a comparison are metrics, for which any number stands.
    assert refused > (50 if kind is gp.Comparison else 150)
    assert read_on > 20 or kind is gp.PolicyInfo  # of a policy nothing may be changed
    assert json.dumps(state, allow_nan=False) == whole


@pytest.mark.parametrize("target", [math.inf, -math.inf, 0.5, None])
def test_a_watch_of_any_target_goes_through_json(target: float | None) -> None:
    watch = gp.Watch(target=target, budget=None if target is None else 100)
    again = gp.Watch.from_dict(json.loads(json.dumps(watch.to_dict(), allow_nan=False)))
    assert again == watch
    assert again._settings["target"] == target


def test_what_is_masked_is_not_recorded() -> None:
    step = np.arange(1.0, 65.0)
    loss = np.ma.array(2 * step**-0.5, mask=np.arange(64) % 7 == 3)
    loss.data[loss.mask] = 1e9
    known = gp.Trace(step, loss.filled(math.nan))
    trace = gp.Trace(step, loss, lr=np.ma.masked_less(step, 5.0))
    np.testing.assert_array_equal(trace.loss, known.loss)
    assert trace.lr is not None
    assert np.isnan(trace.lr).sum() == 4
    assert gp.clean(step, loss).trace == gp.clean(known).trace
    rows = np.ma.stack([loss, loss])
    forecasts = gp.forecast_batch(step, rows, [100.0])
    np.testing.assert_allclose(forecasts.median[0], gp.forecast(known, [100.0]).median, rtol=1e-12)
    assert gp.fit_batch(step, rows, family="pow2").status.tolist() == ["not_finite"] * 2


def test_an_array_is_read_by_an_alias_of_its_type() -> None:
    class Alias:  # as `type NDArray[Scalar] = ...` makes one, which NumPy 2.5 has
        __value__ = np.ndarray[Any, np.dtype[typing.TypeVar("Scalar", bound=np.generic)]]

    read = restored([1.5, None], types.GenericAlias(Alias, (np.float64,)))
    assert read.dtype == np.float64
    assert read[0] == 1.5
    assert np.isnan(read[1])
    with pytest.raises(TypeError, match="is no list of whole numbers"):
        restored([1.5], types.GenericAlias(Alias, (np.int64,)))
