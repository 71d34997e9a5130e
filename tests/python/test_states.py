# SPDX-License-Identifier: Apache-2.0
"""Every public value that has a JSON form: written, read again and equal."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from records import public_records

import glidepath as gp
from glidepath import _core

STEP = np.arange(1.0, 61.0) * 10
LOSS = 2 + 3 * STEP**-0.4 + 0.01 * np.sin(STEP)
RUN = gp.Trace(
    STEP, LOSS, lr=np.linspace(1, 0.1, 60), name="inf", planned_steps=4000, notes=["repaired"]
)
TIERS = [gp.Tier("a", 8, busy_watts=300, idle_watts=50)]
QUEUE = gp.Snapshot(TIERS, [gp.Job(1, [gp.Option(0, 1, 1.0)], remaining_steps=[10.0, np.inf])])
JOBS: dict[str, Any] = {"job": [1, 2], "submit_s": 0, "gpus": 1, "duration_s": [500, 50]}

# Values without a JSON form, by the reason.
WITHOUT = {
    "Workload": "a folder of files, see write_jobs",
    "Follow": "a reader of a file",
    "SharedSpeeds": "two numbers",
    "InputError": "an exception",
    "IoError": "an exception",
}


def values() -> list[Any]:
    """One of each public value that has a JSON form."""
    watch = gp.Watch(target=2.2, budget=4000)
    for step, loss in zip(STEP.tolist(), LOSS.tolist(), strict=True):
        watch.add(step, loss)
    workload = gp.Workload(TIERS, {**JOBS, "user": ["ada", "bob"]})
    past = gp.PastRuns([RUN, RUN])
    file = Path(__file__).parents[2] / "data/curves/digits-mlp.csv.gz"
    return [
        RUN,
        gp.clean(RUN),
        gp.Schedule.cosine(1e-3, 1000),
        gp.fit(RUN),
        gp.fit(gp.Trace([1.0], [1.0])),
        gp.fit_batch(STEP, [LOSS, LOSS * np.nan], family="pow3"),
        gp.fit_schedule_law([RUN]),
        gp.forecast(RUN, [1000, 2000]),
        gp.forecast_batch(STEP, [LOSS, LOSS + 1], 1000),
        gp.reach(RUN, 2.2),
        gp.best_so_far(RUN, budget=400),
        past,
        past.widths,
        watch,
        watch.decision(),
        gp.Watch().decision(),
        gp.plan(QUEUE),
        gp.solve_round([0, 1], [0, 0], [1, 1], [1.0, 2.0], 1),
        gp.choose_accelerator(QUEUE.jobs[0], TIERS)[0],
        gp.start_times(QUEUE),
        gp.simulate(workload, "fifo"),
        gp.compare(workload, ["fifo", "srtf"], seeds=2),
        gp.metrics_of(file)[0],
        gp.Metrics([0, 1], {"power_w": [1.0, np.nan]}, name="a", notes=["b"]),
        gp.StepProfile(2.0, notes=("marked",)),
        *public_records(),
    ]


@pytest.mark.parametrize("value", values(), ids=lambda value: type(value).__name__)
def test_a_state_that_lacks_something_is_refused_by_its_name(value: Any) -> None:
    state = value.to_dict()
    for key in state:
        rest = {name: item for name, item in state.items() if name != key}
        with pytest.raises(gp.InputError, match=key):
            type(value).from_dict(rest)


@pytest.mark.parametrize("value", values(), ids=lambda value: type(value).__name__)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    state = value.to_dict()
    again = type(value).from_dict(json.loads(json.dumps(state, allow_nan=False)))
    assert again == value
    assert again.to_dict() == state
    if hasattr(value, "notes"):
        assert again.notes == value.notes
    for damaged in ([], None, {**state, next(iter(state)): {"a": 1}}):
        with pytest.raises(gp.InputError):
            type(value).from_dict(damaged)


def test_every_public_value_has_a_json_form_or_a_reason() -> None:
    classes = {name for name in gp.__all__ if inspect.isclass(getattr(gp, name))}
    having = {name for name in classes if hasattr(getattr(gp, name), "to_dict")}
    assert having == {type(value).__name__ for value in values()}
    assert classes - having == WITHOUT.keys()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"gpus": "two"}, "Option: the state is damaged: gpus: 'two' is no int"),
        ({"gpus": 2.5}, "Option: the state is damaged: gpus: 2.5 is no int"),
        ({"gpus": True}, "Option: the state is damaged: gpus: True is no int"),
        (
            {"gpus": 1 << 40},
            "Option: the state is damaged: gpus is 1099511627776, expected a whole",
        ),
        ({"sharing": 3}, "Option: the state is damaged: sharing: 3 is no str"),
        ({"steps_per_s": "0.5"}, "Option: the state is damaged: steps_per_s: '0.5' is no float"),
        (
            {"pace": 1.0},
            "Option: the state is damaged: no field 'pace', expected one of tier, gpus",
        ),
    ],
)
def test_a_field_of_a_record_that_does_not_fit_is_named(
    damage: dict[str, Any], sentence: str
) -> None:
    state = gp.Option(0, 1, 1.0).to_dict()
    with pytest.raises(gp.InputError, match=re.escape(sentence)):
        gp.Option.from_dict({**state, **damage})
    job = gp.Job(1, [gp.Option(0, 1, 1.0)]).to_dict()
    with pytest.raises(gp.InputError, match=r"^Job: the state is damaged: "):
        gp.Job.from_dict({**job, "options": [{**state, **damage}]})


def test_a_state_that_is_no_dict_is_refused_as_such() -> None:
    with pytest.raises(
        gp.InputError, match=re.escape("Tier: the state is damaged: [1] is no dict")
    ):
        gp.Tier.from_dict([1])  # type: ignore[arg-type]


def test_a_whole_number_is_not_cut_to_fit_its_column() -> None:
    state = gp.solve_round([0, 1], [0, 0], [1, 1], [1.0, 2.0], 1).to_dict()
    with pytest.raises(gp.InputError, match=r"chosen: \[0.5\] is no list of whole numbers"):
        gp.RoundPlan.from_dict({**state, "chosen": [0.5]})


def test_the_parameters_of_a_fit_go_by_their_names() -> None:
    fit = gp.fit(RUN, family="pow3")
    state = fit.to_dict()
    assert state["params"] == fit.params
    turned = {name: state["params"][name] for name in reversed(state["params"])}
    again = gp.Fit.from_dict({**state, "params": turned})
    assert again == fit
    assert list(again.params) == list(fit.params)
    with pytest.raises(gp.InputError, match="stderr has not the parameters of pow3: floor, scale"):
        gp.Fit.from_dict({**state, "stderr": {"floor": 1.0}})


NOWHERE: list[tuple[type[Any], dict[str, Any], str]] = [
    (gp.Fit, {"sigma": -1.0}, "sigma is -1, expected 0 or more"),
    (gp.Fit, {"points": -1}, "points is -1, expected 0 or more"),
    (gp.FitBatch, {"family": "nope", "params": {}}, "family is 'nope', expected one of pow2"),
    (gp.FitBatch, {"params": {}}, "params is empty, expected floor, scale, rate"),
    (gp.FitBatch, {"status": ["converged", "bogus"]}, "status is 'bogus', expected one of"),
    (gp.FitBatch, {"status": ["converged"]}, "its columns have different lengths"),
    (gp.FitBatch, {"sigma": [-1.0, 1.0]}, "sigma is -1, expected 0 or more"),
    (gp.Forecast, {"median": [99.0, 99.0]}, "a median of 99 beside "),
    (gp.Forecast, {"median": [None, None]}, "a median of nan beside "),
    (gp.Forecast, {"at": [None, None]}, "step nan after "),
    (gp.Forecast, {"at": [2000.0, 1000.0]}, "step 1000 after 2000: steps must increase"),
    (gp.ForecastBatch, {"median": [[99.0], [99.0]]}, "a median of 99 beside "),
    (gp.Reach, {"budget": -1.0}, "a budget of -1 beside steps up to 4000"),
    (gp.Reach, {"budget": None}, "a budget of nan beside steps up to 4000"),
    (gp.Reach, {"target": None}, "target is nan, expected a number"),
    (gp.BestSoFar, {"budget": "inf"}, "budget is inf, expected a finite number"),
    (gp.Decision, {"probability": 7.0}, "probability is 7, expected 0 to 1"),
    (gp.Decision, {"probability": -1.0}, "probability is -1, expected 0 to 1"),
    (gp.Decision, {"steps_to_target": [-3.0, 1.0, 2.0]}, "(-3.0, 1.0, 2.0) of the steps to"),
    (gp.MetricInfo, {"direction": "x"}, "direction is 'x', expected min or max"),
    (gp.MetricInfo, {"points": -1}, "points is -1, expected 0 or more"),
]


@pytest.mark.parametrize(("kind", "damage", "sentence"), NOWHERE)
def test_a_state_that_nothing_can_have_written_is_refused(
    kind: type[Any], damage: dict[str, Any], sentence: str
) -> None:
    state = next(value for value in values() if type(value) is kind).to_dict()
    assert kind.from_dict(state).to_dict() == state
    with pytest.raises(gp.InputError, match=re.escape(sentence)):
        kind.from_dict({**state, **damage})


def test_a_forecast_whose_levels_fall_is_refused() -> None:
    for made in (gp.forecast(RUN, [1000]), gp.forecast_batch(STEP, [LOSS], 1000)):
        state = made.to_dict()
        with pytest.raises(gp.InputError, match=r"levels must increase and lie between 0 and 1"):
            type(made).from_dict({**state, "levels": state["levels"][::-1]})
        with pytest.raises(gp.InputError, match="a median of "):
            type(made).from_dict({**state, "quantiles": state["quantiles"][::-1]})


def test_a_policy_is_read_where_the_library_has_it() -> None:
    state = gp.policies()[0].to_dict()
    with pytest.raises(gp.InputError, match="this library has no such PolicyInfo, called 'fif'"):
        gp.PolicyInfo.from_dict({**state, "name": "fif"})


def test_past_runs_keep_the_notes_of_their_runs() -> None:
    past = gp.PastRuns([RUN])
    assert gp.PastRuns.from_dict(past.to_dict()).runs[0].notes == ("repaired",)


# ---------------------------------------------------------------------------- what a value shows


def test_a_batch_of_forecasts_has_what_one_forecast_has() -> None:
    batch = gp.forecast_batch(STEP, [LOSS, LOSS + 1], [1000, 2000])
    singles = [gp.forecast((STEP, loss), [1000, 2000]) for loss in (LOSS, LOSS + 1)]
    assert batch.quantile(0.1).tolist() == [one.quantile(0.1).tolist() for one in singles]
    for side in (0, 1):
        both = [one.interval(0.8)[side].tolist() for one in singles]
        np.testing.assert_allclose(batch.interval(0.8)[side], both)
    with pytest.raises(
        gp.InputError, match=r"forecast_batch: no level 0.33, expected one of 0.05, 0.1"
    ):
        batch.quantile(0.33)
    with pytest.raises(gp.InputError, match="coverage is 80, expected above 0 and below 1"):
        batch.interval(80)
    table = batch.to_pandas()
    assert table.index.names == ["run", "step"]
    assert list(table.columns[1:4]) == ["q5", "q10", "q15"]
    assert list(singles[0].to_pandas().columns) == list(table.columns)
    assert table.loc[(1, 2000.0), "median"] == batch.median[1, 1]
    assert table["q10"].tolist() == batch.quantile(0.1).ravel().tolist()


def test_what_a_function_gives_cannot_be_written_to() -> None:
    batch = gp.fit_batch(STEP, [LOSS], family="pow3")
    ahead = gp.forecast_batch(STEP, [LOSS], 1000)
    chosen = gp.solve_round([0], [0], [1], [3.0], [2])
    starts = gp.start_times(QUEUE)
    for column in (
        *(*batch.params.values(), batch.sigma, batch.status),
        *(ahead.status, ahead.median, gp.fit(RUN, family="pow3").covariance),
        *(chosen.chosen, chosen.prices, gp.plan(QUEUE).prices),
        *(starts.job, starts.levels, starts.quantiles),
    ):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[0]


def test_one_thing_is_no_several() -> None:
    one = gp.Trace([1.0], [2.0])
    workload = gp.Workload([gp.Tier("a", 1, 1)], JOBS | {"job": [1], "duration_s": [500]})
    for value, shown in (
        (gp.Plan([gp.Allocation(1, 0, 1)]), "1 job on 1 GPU, 0 ended"),
        (gp.fit(one), "1 point>"),
        (gp.PastRuns([RUN]), "PastRuns: 1 run;"),
        (gp.forecast_batch(RUN.step, RUN.loss[None], [1e6]), "1 run at 1 step"),
        (gp.fit_batch(RUN.step, RUN.loss[None], family="exp3"), "1 exp3 curve,"),
        (gp.compare(workload, ["fifo"], seeds=[0]), "1 policy over 1 run,"),
        (workload, "1 job on 1 a"),
    ):
        assert shown in repr(value)


def test_live_values_show_what_they_are_for() -> None:
    watch = gp.Watch(target=2.2, budget=4000)
    assert repr(watch) == "<Watch: 0 points, target 2.2 by the curve, budget 4000>"
    watch.add(1, 3.0)
    assert repr(watch) == "<Watch: 1 point to step 1, target 2.2 by the curve, budget 4000>"
    assert repr(gp.Watch()) == "<Watch: 0 points>"
    workload = gp.Workload(TIERS, JOBS, name="two")
    assert repr(workload) == "<Workload: 'two', 2 jobs on 8 a>"
    follow = gp.Follow("nowhere.csv")
    follow.poll()
    for value, shown in ((watch, "unknown"), (workload, "8 GPUs"), (follow, "nowhere.csv")):
        assert shown in value._repr_html_()


# ------------------------------------------------------------------------------------- one source


def test_defaults_are_those_of_the_library() -> None:
    for function, kinds in (
        (gp.plan, (_core.PlanOptions,)),
        (gp.violations, (_core.PlanLimits,)),
        (gp.options_of, (_core.PlacementOptions,)),
        (gp.choose_accelerator, (_core.RunLimits,)),
        (gp.start_times, (_core.StartOptions,)),
        (gp.simulate, (_core.SimulationOptions,)),
    ):
        parameters = inspect.signature(function).parameters
        for made in (kind() for kind in kinds):
            same = [name for name in parameters if hasattr(made, name)]
            assert same
            for name in same:
                if parameters[name].default not in (None, ()):
                    assert parameters[name].default == getattr(made, name), name


def test_the_policies_that_are_played_forward_are_in_the_docstring() -> None:
    with pytest.raises(gp.InputError) as error:
        gp.start_times(QUEUE, "themis")
    played = str(error.value).rpartition(": ")[2].split(", ")
    said = (gp.start_times.__doc__ or "").partition("policy : str")[2].partition("samples : int")[0]
    assert re.findall(r"``(\w+)``", said) == played
