# SPDX-License-Identifier: Apache-2.0
"""A value of the wrong type is refused in one sentence; one that has one meaning is taken."""

from __future__ import annotations

import inspect
import math
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._arguments import hints_of

STEP = np.arange(1.0, 81.0) * 10
LOSS = 2 + 3 * STEP**-0.4 + 0.01 * np.sin(STEP)
RUN = gp.Trace(STEP, LOSS, planned_steps=4000)
TIERS = [gp.Tier("a", 8)]
JOBS: dict[str, Any] = {"job": [1, 2], "submit_s": 0, "gpus": 1, "duration_s": [500, 50]}
JOB = gp.Job(1, [gp.Option(0, 1, 1.0)], remaining_steps=[10.0])
QUEUE = gp.Snapshot(TIERS, [JOB])
SCALING: Any = gp.fit_scaling([1, 2, 4], [4.0, 2.0, 1.0])


def workload() -> gp.Workload:
    return gp.Workload(TIERS, JOBS)


def law() -> gp.Reach:
    return gp.reach(RUN, 2.1)


ANY: Any = gp  # what a checker would not let pass
SENTENCES: dict[str, tuple[Callable[[], object], str]] = {
    "robust": (
        lambda: ANY.fit(RUN, robust=1),
        "fit: robust is 1, expected True or False or text",
    ),
    "no robust": (
        lambda: ANY.fit(RUN, robust=None),
        "fit: robust is None, expected True or False or text",
    ),
    "places": (
        lambda: ANY.pod_violations([], [], 3),
        "pod_violations: places is 3, expected a list",
    ),
    "pods": (lambda: ANY.place_pods([], 3), "place_pods: pods is 3, expected a list"),
    "file of pairs": (lambda: ANY.read_pairs(3), "read_pairs: path is 3, expected text or a path"),
    "measured": (lambda: ANY.learn_pairs(1), "learn_pairs: measured is 1, expected a list"),
    "sliced jobs": (
        lambda: ANY.slice_speeds(1, TIERS[0]),
        "slice_speeds: jobs is 1, expected a list",
    ),
    "mixed jobs": (
        lambda: ANY.mix_speeds(1, "mps", TIERS[0]),
        "mix_speeds: jobs is 1, expected a list",
    ),
    "family": (
        lambda: ANY.fit(RUN, family=["pow3"]),
        "fit: family is ['pow3'], expected text",
    ),
    "status": (lambda: ANY.usable(None), "usable: status is None, expected text"),
    "no threads": (
        lambda: ANY.fit_batch([RUN], threads=None),
        "fit_batch: threads is None, expected a whole number",
    ),
    "threads": (
        lambda: ANY.forecast_batch(STEP, [LOSS], 4000, threads=1.5),
        "forecast_batch: threads is 1.5, expected a whole number",
    ),
    "one tier among others": (
        lambda: ANY.Workload([*TIERS, {"name": "a"}], workload().jobs),
        f"Workload: tiers[{len(TIERS)}] is {{'name': 'a'}}, expected a Tier",
    ),
    "threads of which a pool would never start one": (
        lambda: ANY.compare(workload(), ["fifo"], threads=math.nan),
        "compare: threads is nan, expected a whole number",
    ),
    "an array of threads": (
        lambda: ANY.fit_batch([RUN], threads=np.array([True])),
        "fit_batch: threads is array([ True]), expected a whole number",
    ),
    "levels of a forecast": (
        lambda: ANY.forecast(RUN, 4000).quantile([0.1, 0.9]),
        "Forecast.quantile: p is [0.1, 0.9], expected a number",
    ),
    "targets of a forecast": (
        lambda: ANY.forecast(RUN, 4000).prob_below([2.1, 2.2]),
        "Forecast.prob_below: target is [2.1, 2.2], expected a number",
    ),
    "coverage": (
        lambda: ANY.forecast(RUN, 4000).interval(None),
        "Forecast.interval: coverage is None, expected a number",
    ),
    "level of a reach": (
        lambda: ANY.reach(RUN, 2.1).quantile([0.5]),
        "Reach.quantile: p is [0.5], expected a number",
    ),
    "steps of a reach": (
        lambda: ANY.reach(RUN, 2.1).prob_by([1, 2]),
        "Reach.prob_by: step is [1, 2], expected a number",
    ),
    "samples of a reach": (
        lambda: ANY.reach(RUN, 2.1).remaining_steps(2.5),
        "Reach.remaining_steps: n is 2.5, expected a whole number",
    ),
    "targets of a run": (
        lambda: ANY.reach(RUN, [2.1, 2.2]),
        "reach: target is [2.1, 2.2], expected a number",
    ),
    "text for a target": (
        lambda: ANY.Watch(target="2"),
        "Watch: target is '2', expected a number or None",
    ),
    "budget": (
        lambda: ANY.reach(RUN, 2.1, budget="3"),
        "reach: budget is '3', expected a number or None",
    ),
    "loss": (
        lambda: ANY.Watch().add(1, None),
        "Watch.add: loss is None, expected a number",
    ),
    "peak": (
        lambda: ANY.Schedule.cosine("1", 100),
        "Schedule.cosine: peak is '1', expected a number",
    ),
    "snapshot": (lambda: ANY.plan(None), "plan: snapshot is None, expected a Snapshot"),
    "power": (
        lambda: ANY.plan(QUEUE, power_cap_w="1"),
        "plan: power_cap_w is '1', expected a number",
    ),
    "swapped": (
        lambda: ANY.violations(gp.Plan(), QUEUE),
        "violations: snapshot is <Plan: 0 jobs on 0 GPUs, 0 ended, value 0/s, gap 0.00%>, "
        "expected a Snapshot",
    ),
    "policy": (
        lambda: ANY.start_times(QUEUE, None),
        "start_times: policy is None, expected text",
    ),
    "recent": (
        lambda: ANY.start_times(QUEUE, recent=None),
        "start_times: recent is None, expected a list",
    ),
    "gpus": (
        lambda: ANY.Workload.from_trace("jobs.csv", gpus=4.0),
        "Workload.from_trace: gpus is 4.0, expected a whole number",
    ),
    "tiers": (
        lambda: ANY.Workload(None, JOBS),
        "Workload: tiers is None, expected a list",
    ),
    "jobs": (lambda: ANY.Workload(TIERS, None), "Workload: jobs is None, expected a dict"),
    "rows of jobs": (
        lambda: ANY.Workload(TIERS, np.zeros((1, 2))),
        "Workload: jobs is array([[0., 0.]]), expected a dict",
    ),
    "folder": (
        lambda: ANY.read_workload(None),
        "read_workload: folder is None, expected text or a path",
    ),
    "workload": (
        lambda: ANY.simulate(5, "fifo"),
        "simulate: workload is 5, expected a Workload",
    ),
    "stream": (
        lambda: ANY.simulate(workload(), "fifo", stream=5),
        "simulate: stream is 5, expected text or a path or a function or None",
    ),
    "progress": (
        lambda: ANY.compare(workload(), ["fifo"], progress=5),
        "compare: progress is 5, expected a function or None",
    ),
    "workloads": (
        lambda: ANY.compare(None, ["fifo"]),
        "compare: workloads is None, expected a Workload or a list or a function",
    ),
    "one of several workloads": (
        lambda: ANY.compare([workload(), None], ["fifo"]),
        "compare: a workload is None, expected a Workload",
    ),
    "one of several policies": (
        lambda: ANY.compare(workload(), ["fifo", 3]),
        "compare: a policy is 3, expected text or a function",
    ),
    "values that are words": (
        lambda: ANY.write_learned_values(["a"], "out.txt"),
        "values: expected an array of numbers, got dtype <U1",
    ),
    "utilization": (
        lambda: ANY.Tier("a", 1).watts([0.5]),
        "Tier.watts: utilization is [0.5], expected a number",
    ),
    "power of a GPU": (
        lambda: ANY.Tier("a", 1).utilization("x"),
        "Tier.utilization: watts is 'x', expected a number",
    ),
    "GPU of a tier": (
        lambda: ANY.Tier.of("a", 1, 2),
        "Tier.of: gpu is 1, expected text",
    ),
    "gangs": (
        lambda: SCALING.step_seconds(ANY.__name__),
        "Scaling.step_seconds: gpus is 'glidepath', expected a whole number",
    ),
    "cutoffs": (
        lambda: ANY.bench.accuracy([RUN], cutoffs=0.5),
        "accuracy: cutoffs is 0.5, expected a list",
    ),
    "runs of a benchmark": (
        lambda: ANY.bench.reach([RUN], max_runs="4"),
        "reach: max_runs is '4', expected a whole number",
    ),
    "axes": (
        lambda: ANY.forecast(RUN, 4000).plot(ax="x"),
        "plot: ax is 'x', expected axes of matplotlib",
    ),
    "params": (
        lambda: ANY.evaluate_batch("pow3", None, STEP),
        "evaluate_batch: params is None, expected a dict",
    ),
    "planned": (
        lambda: ANY.Trace(STEP, LOSS, planned_steps="100"),
        "Trace: planned_steps is '100', expected a number or None",
    ),
    "until": (
        lambda: ANY.Trace(STEP, LOSS).until("500"),
        "Trace.until: step is '500', expected a number",
    ),
    "name": (lambda: ANY.Trace(STEP, LOSS, name=None), "Trace: name is None, expected text"),
    "metric": (
        lambda: ANY.Trace(STEP, LOSS, metric=None),
        "Trace: metric is None, expected text",
    ),
    "text that no file can hold": (
        lambda: ANY.JobKind("a", "\ud800"),
        "JobKind: gpu is '\\ud800', expected text that UTF-8 can hold",
    ),
    "an array of several lines": (
        lambda: ANY.KindPair("g", "a", "b", np.full((9, 9), 1.5), 1.0),
        "KindPair: first_slowdown is array([[1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5], "
        "[1.5, 1.5, 1.5, 1.5, 1...., expected a number",
    ),
    "times of samples": (
        lambda: ANY.Metrics([0, {}], {}),
        "Metrics: time_s is [0, {}], expected numbers",
    ),
    "an option that compare sets": (
        lambda: ANY.compare(workload(), ["fifo"], spans=True),
        "compare: no option 'spans', expected one of restart_s, session_s, round_s, "
        "forecast_sigma, knows_phases, stop_at_target, failures, sleep, in_nodes, sharing, "
        "user_gpus, carbon_g_per_kwh, planner, max_ftf, long_share, patience, unfair_above",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), SENTENCES.values(), ids=SENTENCES.keys())
def test_a_wrong_type_is_named_in_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == sentence


BEYOND: dict[str, tuple[Callable[[], object], str]] = {
    "starts": (
        lambda: gp.fit(RUN, starts=2**40),
        "fit: starts is 1099511627776, expected a whole number of at most 31 bits",
    ),
    "threads": (
        lambda: gp.fit_batch([RUN], threads=2**31),
        f"fit_batch: threads is {2**31}, expected a whole number of at most 31 bits",
    ),
    "gpus": (
        lambda: gp.Option(0, 2**40, 1.0),
        "Option: gpus is 1099511627776, expected a whole number of at most 32 bits",
    ),
    "a large seed": (
        lambda: gp.simulate(workload(), "fifo", seed=2**64),
        f"simulate: seed is {2**64}, expected a whole number of at most 64 bits",
    ),
    "seed of a simulation": (
        lambda: gp.simulate(workload(), "fifo", seed=-1),
        "simulate: seed is -1, expected 0 or more",
    ),
    "seed of a comparison": (
        lambda: gp.compare(workload(), ["fifo"], seeds=[-1]),
        "compare: seed is -1, expected 0 or more",
    ),
    "seed of starts": (
        lambda: gp.start_times(QUEUE, seed=-1),
        "start_times: seed is -1, expected 0 or more",
    ),
    "seed of pods": (
        lambda: gp.place_pods([], [], seed=-1),
        "place_pods: seed is -1, expected 0 or more",
    ),
    "seed of users": (
        lambda: gp.generate_workload("folder", users=2, seed=-1),
        "generate_workload: seed is -1, expected 0 or more",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BEYOND.values(), ids=BEYOND.keys())
def test_a_whole_number_out_of_range_is_of_the_right_type(
    call: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(gp.InputError) as error:
        call()
    assert str(error.value) == sentence


LISTS: dict[str, Callable[[Any], object]] = {
    "PastRuns": gp.PastRuns,
    "fit_batch": gp.fit_batch,
    "fit_schedule_law": gp.fit_schedule_law,
    "past": lambda given: gp.Watch(past=given),
    "reach_batch": lambda given: gp.reach_batch(given, 2.0),
}


@pytest.mark.parametrize("verb", LISTS)
def test_what_is_no_list_of_traces_is_refused(verb: str) -> None:
    given: list[tuple[Any, str]] = [(RUN, "one gp.Trace"), (5, "int")]
    if verb != "past":
        given += [(None, "NoneType"), (gp.PastRuns(), "PastRuns")]
    for each, what in given:
        with pytest.raises(gp.InputError) as error:
            LISTS[verb](each)
        assert str(error.value) == f"{verb}: expected a list of gp.Trace, got {what}"


def public_functions() -> dict[str, Callable[..., Any]]:
    """Every public function and method that is written in Python."""
    found: dict[str, Callable[..., Any]] = {}
    for name in gp.__all__:
        value = getattr(gp, name)
        if inspect.isfunction(value):
            found[name] = value
        elif inspect.isclass(value):
            for each, member in vars(value).items():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and (each == "__init__" or each[0] != "_"):
                    found[f"{name}.{each}"] = function
    return found


def test_every_public_function_names_the_argument_whose_type_is_wrong() -> None:
    functions = public_functions()
    assert {"fit", "plan", "read_traces", "Watch.add", "Schedule.cosine"} <= functions.keys()
    for name, function in functions.items():
        if inspect.signature(function).parameters:
            assert hasattr(function, "__wrapped__"), name
            hints_of(function.__wrapped__)  # raises where a type has no name


def test_the_error_of_a_function_of_the_user_stays() -> None:
    def policy(snapshot: gp.Snapshot) -> gp.Plan:
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        gp.simulate(workload(), policy)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'at'"):
        ANY.forecast(RUN)


# -------------------------------------------------------------------------- what is almost right


def test_a_number_is_a_column_of_one() -> None:
    fitted = gp.fit(RUN, family="pow3")
    at = fitted.predict([4000.0])
    assert fitted.predict(4000).tolist() == at.tolist()
    assert gp.evaluate_batch("pow3", fitted.params, 4000).tolist() == [at.tolist()]
    assert gp.gittins_index(5.0) == gp.gittins_index([5.0]) == 0.2
    assert gp.start_times(QUEUE, levels=0.5) == gp.start_times(QUEUE, levels=[0.5])
    assert gp.fit_scaling(1, 1.0) == gp.fit_scaling([1], [1.0])
    flat = gp.fit_scaling([1, 2], [1.0, 0.5], nodes=[1, 1], batch_per_gpu=[2.0, 2.0])
    assert gp.fit_scaling([1, 2], [1.0, 0.5], nodes=1, batch_per_gpu=2.0) == flat
    one = gp.solve_round(0, 0, 1, 3.0, 2)
    assert one == gp.solve_round([0], [0], [1], [3.0], [2])
    assert one.value == 3.0


def test_one_value_is_that_of_every_job() -> None:
    columns = {**JOBS, "submit_s": [0, 0], "gpus": [1, 1], "user": ["ada", "ada"]}
    assert gp.Workload(TIERS, {**JOBS, "user": "ada"}) == gp.Workload(TIERS, columns)
    without = {name: values for name, values in columns.items() if name != "gpus"}
    assert gp.Workload(TIERS, without).jobs["gpus"].tolist() == [1, 1]
    one = gp.Workload(TIERS, {"job": 7, "submit_s": 0, "duration_s": 5})
    assert one.jobs["job"].tolist() == [7]


def test_bools_of_numpy_and_one_note_are_taken() -> None:
    assert ANY.fit(RUN, robust=np.bool_(True)) == gp.fit(RUN, robust=True)
    assert ANY.fit(RUN, robust=np.bool_(False)) == gp.fit(RUN)
    assert gp.Trace([1], [1], notes="one note").notes == ("one note",)


def test_no_rows_and_rows_of_different_length() -> None:
    none = gp.forecast_batch(STEP, np.empty((0, STEP.size)), 4000)
    assert none.quantiles.shape == (19, 0, 1)
    for call, name in (
        (lambda ragged: gp.forecast_batch(STEP, ragged, 4000), "loss"),
        (lambda ragged: gp.start_times(QUEUE, levels=ragged), "levels"),
        (lambda ragged: gp.Metrics(ragged, {}), "metrics: time_s"),
        (lambda ragged: gp.Metrics([0, 1], {"power_w": ragged}), "metrics: power_w"),
    ):
        with pytest.raises(gp.InputError, match=rf"^{name}: "):
            call([[1, 2], [1]])


# ------------------------------------------------------------------------------- runs in tables

RATES = np.full(STEP.size, 0.1)


class Logged:
    """An object with what a trace has."""

    step, loss, lr, direction, metric = STEP, 1 - 1 / LOSS, RATES, "max", "accuracy"
    planned_steps = 4000.0


def test_an_object_keeps_all_that_a_trace_has() -> None:
    given: Any = Logged()
    whole = gp.Trace(
        STEP, Logged.loss, lr=RATES, direction="max", metric="accuracy", planned_steps=4000
    )
    assert gp.reach(given, 0.6) == gp.reach(whole, 0.6)
    with pytest.raises(gp.InputError, match=r"where the run logged 0.1"):
        gp.forecast(given, 4000, schedule=gp.Schedule.linear(1e-3, 4000))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_read_as_read_traces_reads_it(library: str) -> None:
    frames = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    frame = frames.DataFrame({"step": STEP, "loss": LOSS, "lr": RATES})
    (run,) = gp.read_traces(frame)
    assert run.lr is not None
    assert gp.fit(frame) == gp.fit(run)
    assert gp.forecast(frame, 4000) == gp.forecast(run, 4000)
    assert gp.reach(frame, 2.1, budget=4000) == gp.reach(run, 2.1, budget=4000)
    assert gp.clean(frame).trace == gp.clean(run).trace
    assert gp.PastRuns([frame]) == gp.PastRuns(frame) == gp.PastRuns([run])
    assert gp.Schedule.logged(frame) == gp.Schedule.logged(run)
    assert gp.fit_schedule_law([frame]) == gp.fit_schedule_law([run])
    with pytest.raises(gp.InputError, match=r"where the run logged 0.1"):
        gp.forecast(frame, 4000, schedule=gp.Schedule.linear(1e-3, 4000))
    two = frames.DataFrame({"run": ["a", "b"], "step": [1, 1], "loss": [2.0, 3.0]})
    assert len(gp.fit_batch(two)) == 2
    with pytest.raises(gp.InputError, match=r"^fit: expected one run, the data frame has 2"):
        gp.fit(two)


def test_a_tuple_serves_wherever_a_trace_does() -> None:
    pair = (STEP, LOSS)
    plain = gp.Trace(*pair)
    assert gp.clean(pair).trace == gp.clean(plain).trace == gp.clean(*pair).trace
    assert gp.Schedule.infer(pair) is None
    assert gp.Schedule.logged(pair) is None
    with pytest.raises(gp.InputError, match="80 steps but 0 learning rates"):
        ANY.fit_schedule_law([pair])


# --------------------------------------------------------------------- refused, not left unread


def refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(gp.InputError) as error:
        call()
    assert re.sub(r"(?<= of jobs), expected one of.*", "", str(error.value)) == sentence


NEEDS_TARGET: dict[str, Any] = {
    "budget": 100,
    "schedule": gp.Schedule.constant(0.1),
    "past": [RUN],
    "alpha": 0.1,
    "reached_by": "point",
}


def test_what_would_have_no_effect_is_refused() -> None:
    columns = {**JOBS, "utilisation": [1, 1]}
    refused(lambda: gp.Workload(TIERS, columns), "workload: no column 'utilisation' of jobs")
    refused(
        lambda: gp.simulate(workload(), "fifo", stop_at_target=True),
        "simulate: stop_at_target is for jobs with curves, the workload has none",
    )
    gp.simulate(workload(), "fifo", stop_at_target=False)
    for name, given in NEEDS_TARGET.items():
        refused(
            lambda name=name, given=given: gp.Watch(**{name: given}),  # type: ignore[misc]
            f"watch: {name} without target",
        )
    refused(lambda: gp.start_times(QUEUE, levels=[]), "start_times: no levels")
    refused(lambda: gp.fit(RUN, robust=""), "fit: robust is '', expected huber or cauchy")
    refused(lambda: gp.reach(RUN, 2.1, reached_by=""), "reached_by is '', expected curve or point")
    refused(lambda: law().prob_by(math.nan), "reach: step is nan, expected a number")
    refused(lambda: gp.Schedule.constant(0.1).at([[5, 7]]), "step: expected 1 dimension, got 2")
    refused(
        lambda: gp.evaluate_batch("x", {}, 1.0),
        "evaluate_batch: family is 'x', expected one of pow2, pow3, pow4, exp3, weibull4, mmf4, "
        "log2, powexp",
    )


NUMBERS: dict[str, tuple[Callable[[], object], str]] = {
    "gap": (lambda: gp.plan(QUEUE, gap=-1), "plan: gap is -1, expected 0 to 1"),
    "prices": (
        lambda: gp.plan(QUEUE, prices=[1, 2]),
        "plan: prices has 2 values, expected 1, one for each tier",
    ),
    "a price": (
        lambda: gp.plan(QUEUE, prices=[-1]),
        "plan: a price is -1, expected 0 or more and finite",
    ),
    "curves": (
        lambda: ANY.Workload(TIERS, JOBS, curves=[None]),
        "workload: expected a gp.Trace, got NoneType: gp.Trace(step, loss) makes one",
    ),
    "a path with a NUL": (
        lambda: gp.simulate(workload(), "fifo", stream="a\0b"),
        "simulate: stream is 'a\\x00b', expected a path",
    ),
    "values in a file with a NUL": (
        lambda: gp.plan(QUEUE, objective="learned", learned="a\0b"),
        "learned is 'a\\x00b', expected a path without a NUL",
    ),
    "seeds beyond counting": (
        lambda: gp.compare(workload(), ["fifo"], seeds=2**63),
        f"compare: seeds is {2**63}, expected at most 1000000",
    ),
    "directions": (
        lambda: ANY.Trace(STEP, LOSS, direction=np.array(["min", "max"])),
        "trace: direction is array(['min', 'max'], dtype='<U3'), expected min or max",
    ),
    "large": (
        lambda: gp.Workload(TIERS, {**JOBS, "gpus": 80}),
        "workload: job 1 asks 80 GPUs, the largest tier has 8",
    ),
    "no GPU": (
        lambda: SCALING.step_seconds(0),
        "step_seconds: 0 GPUs on 1 nodes, expected 1 or more nodes and no fewer GPUs",
    ),
    "nodes": (
        lambda: SCALING.step_seconds(1, nodes=5),
        "step_seconds: 1 GPUs on 5 nodes, expected 1 or more nodes and no fewer GPUs",
    ),
    "batch": (
        lambda: SCALING.step_seconds(1, batch_per_gpu=-1),
        "step_seconds: batch_per_gpu is -1, expected above 0 and finite",
    ),
    "watts": (
        lambda: TIERS[0].watts(2),
        "Tier.watts: utilization is 2, expected 0 to 1",
    ),
    "exclusive": (
        lambda: gp.shared_speeds(gp.Profile(), gp.Profile(), "exclusive"),
        "shared_speeds: 'exclusive' shares no GPU",
    ),
    "exclusive pair": (
        lambda: gp.learn_pairs([gp.KindPair("g", "a", "b", 2.0, 2.0, sharing="exclusive")]),
        "learn_pairs: 'a' beside 'b' on 'g' is 'exclusive', which shares no GPU",
    ),
    "a share of nothing": (
        lambda: gp.place_pods([gp.FreeNode("n")], [gp.Pod("p", gpus=0, gpu_milli=500)]),
        "pod 'p': gpu_milli is 500 of no GPU",
    ),
    "guaranteed run": (
        lambda: gp.violations(QUEUE, gp.Plan(), min_run_s=-5),
        "violations: min_run_s is -5, expected 0 or more and finite",
    ),
    "cap": (
        lambda: gp.violations(QUEUE, gp.Plan(), power_cap_w=-1),
        "violations: power_cap_w is -1, expected 0 or more",
    ),
    "looks": (
        lambda: gp.Follow("log", every_s=math.nan),
        "Follow: every_s is nan, expected 0 to 1000000",
    ),
    "threads of starts": (
        lambda: gp.start_times(QUEUE, threads=-2),
        "threads is -2, expected 0 or more",
    ),
    "threads of a round": (
        lambda: gp.solve_round(0, 0, 1, 3.0, 2, threads=-1),
        "threads is -1, expected 0 or more",
    ),
    "threads of policies": (
        lambda: gp.compare(workload(), ["fifo"], threads=-1),
        "threads is -1, expected 0 or more",
    ),
    "falling levels": (
        lambda: gp.start_times(QUEUE, levels=[0.9, 0.1]),
        "start_times: level 0.1 after 0.9: levels must increase and lie between 0 and 1",
    ),
    "equal levels": (
        lambda: gp.start_times(QUEUE, levels=[0.5, 0.5]),
        "start_times: level 0.5 after 0.5: levels must increase and lie between 0 and 1",
    ),
    "policies": (
        lambda: gp.compare(workload(), ["fifo", "fifo"]),
        "compare: the policy fifo is there twice",
    ),
    "seeds": (
        lambda: gp.compare(workload(), ["fifo"], seeds=[1, 1]),
        "compare: the seed 1 is there twice",
    ),
    "cutoffs": (
        lambda: gp.bench.accuracy([RUN], cutoffs=[0.5, 0.5]),
        "bench: the cutoff 0.5 is there twice",
    ),
    "seed of a benchmark": (
        lambda: gp.bench.accuracy([RUN], seed=-1),
        "bench: seed is -1, expected 0 to 4294967295",
    ),
    "seed of runs": (
        lambda: gp.bench.reach([RUN], target=2.5, seed=-1),
        "bench: seed is -1, expected 0 to 4294967295",
    ),
    "no runs": (
        lambda: gp.bench.reach([RUN], target=2.5, max_runs=0),
        "bench: max_runs is 0, expected 1 or more",
    ),
    "past": (
        lambda: gp.bench.reach([RUN], target=2.5, past_runs=-1),
        "bench: past_runs is -1, expected 0 or more",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_out_of_range_is_refused_in_one_sentence(
    call: Callable[[], object], sentence: str
) -> None:
    refused(call, sentence)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_alone_is_no_run(library: str) -> None:
    column = pytest.importorskip(library).Series(LOSS)
    pytest.importorskip("pyarrow")
    refused(lambda: gp.fit(column), "data frame: a Series is one column, expected steps and losses")


def test_lists_of_what_the_library_knows_take_no_argument() -> None:
    for listing in (gp.slices, gp.partitions, gp.catalogue, gp.pod_policies, gp.policies):
        unchecked: Any = listing
        with pytest.raises(TypeError, match=r"takes 0 positional arguments but 1 was given"):
            unchecked(1)
        assert listing()


def test_without_a_policy_pods_are_placed_by_what_is_known() -> None:
    nodes = [gp.FreeNode("n", cpu_milli=8000, memory_mib=8000, gpu_milli=[1000] * 4)]
    pods = [gp.Pod(str(k), cpu_milli=500, gpus=1, gpu_milli=300 + k) for k in range(8)]
    defaults = [info for info in gp.pod_policies() if info.by_default]
    assert [info.reads_expected for info in defaults] == [False, True]
    blind, informed = (info.name for info in defaults)
    assert gp.place_pods(nodes, pods) == gp.place_pods(nodes, pods, policy=blind)
    known = gp.place_pods(nodes, pods, expected=pods)
    assert known == gp.place_pods(nodes, pods, policy=informed, expected=pods)


def test_no_traces_are_no_excuse_for_bad_options() -> None:
    assert gp.reach_batch([], 2.0) == []
    refused(lambda: gp.reach_batch([], [1, 2]), "reach_batch: 0 traces but 2 targets")
    refused(
        lambda: gp.reach_batch([], 2.0, reached_by="x"),
        "reached_by is 'x', expected curve or point",
    )
    refused(lambda: gp.reach_batch([], 2.0, threads=-5), "threads is -5, expected 0 or more")


def test_a_state_of_a_watch_without_target_is_restored() -> None:
    watch = gp.Watch()
    watch.add(1, 2.0)
    state = watch.to_dict()
    schedule = gp.Schedule.constant(0.1).to_dict()
    for older in (
        {},
        {"alpha": 0.1, "reached_by": "point"},
        {"budget": 100, "schedule": schedule, "lr": [0.1]},
    ):
        assert gp.Watch.from_dict({**state, **older}) == watch


class Named:
    """A path of a kind of its own."""

    def __init__(self, name: object) -> None:
        self._name = name

    def __fspath__(self) -> Any:
        return self._name


def test_a_path_that_no_file_can_have_is_refused_wherever_it_goes(tmp_path: Path) -> None:
    takes: dict[str, Callable[[Any], object]] = {
        "read_learned_values": gp.read_learned_values,
        "write_learned_values": lambda path: gp.write_learned_values(gp.learned_values(), path),
        "from_trace": lambda path: gp.Workload.from_trace(path, gpus=4),
        "read_workload": gp.read_workload,
        "generate_workload": lambda path: gp.generate_workload(path, users=2),
        "write_jobs": workload().write_jobs,
        "read_pairs": gp.read_pairs,
        "read_traces": gp.read_traces,
        "metrics_of": gp.metrics_of,
        "read_metrics": gp.read_metrics,
        "read_profile": gp.read_profile,
        "plan": lambda path: gp.plan(QUEUE, objective="learned", learned=path),
    }
    wrong = {
        "a\0b": "is 'a\\x00b', expected a path without a NUL",
        "\ud800": "is '\\ud800', expected text in Unicode",
    }
    for verb, take in takes.items():
        for name, said in wrong.items():
            for path in (name, Named(name)):
                with pytest.raises(gp.InputError) as error:
                    take(path)
                assert str(error.value).endswith(said), verb
        with pytest.raises(TypeError, match=r"Named\.__fspath__"):
            take(Named(3))
        with pytest.raises(gp.IoError, match="absent"):  # whatever its bytes are
            take(Named(os.fsencode(tmp_path / "absent" / "a") + b"\xff"))


def test_text_that_no_file_can_hold_is_refused_by_the_name_of_its_argument() -> None:
    for call, name in (
        (lambda: gp.Watch(reached_by="\ud800"), "Watch: reached_by"),
        (lambda: gp.start_times(QUEUE, "\ud800"), "start_times: policy"),
        (lambda: gp.forecast(RUN, [1e3], constants="\ud800"), "forecast: constants"),
    ):
        with pytest.raises(TypeError, match=rf"^{name} is '\\ud800', expected text that UTF-8"):
            call()  # type: ignore[no-untyped-call]


def test_a_reader_refuses_in_our_words(tmp_path: Path) -> None:
    refused(
        lambda: gp.read_traces(None),
        "read_traces: path has type NoneType, expected a path, an address, a data frame (Arrow), "
        "a run of W&B, a client of MLflow or several of these",
    )
    log = tmp_path / "a.log"
    log.write_text("it 1 obj 3.0\nit 2 obj 2.0\n")
    pattern = r"it (?P<step>\d+) obj (?P<value>\S+)"
    assert gp.read_traces(log, pattern=re.compile(pattern)) == gp.read_traces(log, pattern=pattern)
    refused(lambda: ANY.read_traces(log, pattern=5), "read_traces: pattern is 5, expected text")
    frame = pytest.importorskip("pandas").DataFrame({"step": [1, 2], "loss": [3.0, 2.0]})
    for source, what in ((frame, "DataFrame"), ("http://127.0.0.1:1/x", "page")):
        refused(
            lambda source=source: gp.read_traces(source, format="zz"),  # type: ignore[misc]
            f"read_traces: format is 'zz' of a {what}, expected that of a file or folder",
        )
    for read in (gp.read_traces, gp.metrics_of):
        for metric in ("absent", None):
            (tmp_path / "wandb-summary.json").write_text('{"loss": 1.0, "_step": 3}')
            file = log if metric else tmp_path / "wandb-summary.json"
            with pytest.raises(gp.IoError) as error:
                read(file, metric=metric)
            assert type(error.value) is gp.IoError


@pytest.mark.parametrize("kind", [gp.Fit, gp.Trace, gp.Watch, gp.Follow, gp.Workload, gp.PastRuns])
def test_an_object_without_its_initialization_says_so(kind: Any) -> None:
    empty = kind.__new__(kind)
    sentence = f"this {kind.__name__} was never initialized: call its class, not __new__"
    for use in (repr, pickle.dumps):
        with pytest.raises(TypeError) as error:
            use(empty)
        assert str(error.value) == sentence
    with pytest.raises(AttributeError, match=f"'{kind.__name__}' object has no attribute 'zz'"):
        _ = empty.zz


@pytest.mark.parametrize("share", [np.float32(2.9), np.float16(2.9), np.array(2.9)], ids=repr)
def test_a_share_of_any_type_is_no_whole_number_of_threads_points_or_samples(share: Any) -> None:
    batch = gp.fit_batch(STEP, [LOSS], family="pow3")
    calls: list[Callable[[], object]] = [
        lambda: batch.predict([4000.0], threads=share),
        lambda: law().remaining_steps(share),
        lambda: gp.clean(STEP, LOSS, max_points=share),
        lambda: gp.evaluate_batch("pow2", {"scale": [1], "rate": [0.5]}, [3.0], threads=share),
        lambda: gp.fit(RUN, family="pow3", starts=share),
        lambda: gp.fit_batch(STEP, [LOSS], threads=share),
        lambda: gp.forecast_batch(STEP, [LOSS], 4000, threads=share),
        lambda: gp.reach_batch([RUN], [2.1], threads=share),
        lambda: gp.start_times(QUEUE, "fifo", samples=share),
        lambda: gp.PastRuns([RUN], threads=share),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r" is .*2\.9.*, expected a whole number"):
            call()
