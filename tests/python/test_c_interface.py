# SPDX-License-Identifier: Apache-2.0
"""glidepath.h through ctypes: the bytes of the Python package, and a sentence for every misuse."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import json
import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _core

HEADER = Path(__file__).resolve().parents[2] / "include/glidepath/glidepath.h"
CTYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
}
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.35)
OK, INPUT_ERROR, IO_ERROR = 0, 1, 2
PLACES = ("job", "tier", "gpus")


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def fields_of(body: str) -> Iterator[tuple[str, Any]]:
    """Fields of a struct: `const double *step, *loss;`, `double parameters[4], sigma;` ..."""
    for declaration in filter(None, map(str.strip, body.split(";"))):
        words = re.fullmatch(r"(?:const )?(\w+)(\*?(?: const\*)?)\s+(.*)", declaration, re.S)
        assert words, declaration
        base, star, declarators = words.groups()
        for declarator in declarators.split(","):
            found = re.fullmatch(r"\s*(\*?)(\w+)(?:\[(\d+)\])?", declarator)
            assert found, declaration
            text = base == "char" and "const" not in star
            pointer = ctypes.c_char_p if text else ctypes.c_void_p
            kind = pointer if star or found[1] else CTYPES[base]
            yield found[2], kind * int(found[3]) if found[3] else kind


def structs_of(text: str) -> dict[str, type[ctypes.Structure]]:
    """The structs of the header, as ctypes lays them out."""
    found = re.findall(r"typedef struct (\w+)_t \{(.*?)\} \w+;", without_comments(text), re.S)
    return {
        name: type(name, (ctypes.Structure,), {"_fields_": list(fields_of(body))})
        for name, body in found
    }


STRUCTS = structs_of(HEADER.read_text())
FUNCTIONS = {
    name: [each.strip() for each in arguments.split(",")]
    for name, arguments in re.findall(
        r"^(?:glidepath_status|void) (glidepath_\w+)\((.*?)\);",
        without_comments(HEADER.read_text()),
        re.S | re.M,
    )
}


@pytest.fixture(scope="module")
def library(root: Path) -> ctypes.CDLL:
    found = sorted((root / "build" / "dev").glob("*/libglidepath.so"))
    if not found:
        pytest.skip("no shared library: the preset dev builds one with its examples")
    library = ctypes.CDLL(str(found[0]))
    library.glidepath_last_error.restype = ctypes.c_char_p
    library.glidepath_version.restype = ctypes.c_char_p
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = [argument_type(each) for each in arguments]
        if name.endswith("_free"):
            function.restype = None
    return library


def argument_type(argument: str) -> Any:
    if "*" in argument:
        return ctypes.c_void_p
    return CTYPES[argument.split()[0]]


def new(name: str, **values: Any) -> Any:
    """A struct with its size set, as GLIDEPATH_INIT declares it; arrays by their address."""
    struct = STRUCTS[f"glidepath_{name}"]()
    struct.size = ctypes.sizeof(struct)
    struct.kept = list(values.values())
    for field, value in values.items():
        setattr(struct, field, value.ctypes.data if isinstance(value, np.ndarray) else value)
    return struct


def as_options(name: str, asked: dict[str, Any]) -> Any:
    """The options of a function of Python in C: text, numbers, and numbers by their address."""
    struct = STRUCTS[f"glidepath_{name}"]
    values: dict[str, Any] = {}
    for field, value in asked.items():
        kind = dict(struct._fields_)[field]
        by_address = kind is ctypes.c_void_p
        values[field] = value.encode() if isinstance(value, str) else value
        if by_address:
            values[field] = np.array([value], float)
    return new(name, **values)


def trace_of(trace: gp.Trace) -> Any:
    lr = {} if trace.lr is None else {"lr": trace.lr}
    return new("trace", points=len(trace), step=trace.step, loss=trace.loss, **lr)


def column(address: int, count: int, kind: Any = ctypes.c_double) -> np.ndarray:
    return np.ctypeslib.as_array((kind * count).from_address(address)).copy()


class Handle:
    """What `make` gives, and `free` for it."""

    def __init__(
        self, library: ctypes.CDLL, free: str, status: int, pointer: ctypes.c_void_p
    ) -> None:
        assert status == OK, library.glidepath_last_error()
        self.pointer = pointer
        self._free = getattr(library, free)

    def __enter__(self) -> ctypes.c_void_p:
        return self.pointer

    def __exit__(self, *_: object) -> None:
        self._free(self.pointer)


def handle(library: ctypes.CDLL, kind: str, function: str, *arguments: Any) -> Handle:
    pointer = ctypes.c_void_p()
    status = getattr(library, function)(*arguments, ctypes.byref(pointer))
    return Handle(library, f"glidepath_{kind}_free", status, pointer)


def view_of(library: ctypes.CDLL, function: str, name: str, pointer: ctypes.c_void_p) -> Any:
    view = new(name)
    assert getattr(library, function)(pointer, ctypes.byref(view)) == OK
    return view


@pytest.fixture
def run(root: Path) -> gp.Trace:
    return gp.read_traces(root / "data/curves/docs-transformer.csv.gz")[0]


def test_every_function_of_the_header_is_in_the_library(library: ctypes.CDLL) -> None:
    assert len(FUNCTIONS) >= 25
    assert library.glidepath_version().decode() == gp.__version__


# What stands in C for an argument of Python of another name, or counts the values of another field.
OF_C = {"level_count", "options", "tiers", "users", "groups", "taken", "size"}


@pytest.mark.parametrize(
    ("struct", "functions"),
    [
        ("fit_options", (gp.fit,)),
        ("forecast_options", (gp.forecast, gp.forecast_batch, gp.reach, gp.best_so_far)),
        ("watch_options", (gp.Watch,)),
        ("round", (gp.solve_round,)),
        ("round_options", (gp.solve_round,)),
        ("plan_options", (gp.plan,)),
    ],
)
def test_what_c_takes_is_called_as_in_python(struct: str, functions: tuple[Any, ...]) -> None:
    fields = {name for name, _ in STRUCTS[f"glidepath_{struct}"]._fields_}  # type: ignore[misc]
    known = {name for function in functions for name in inspect.signature(function).parameters}
    assert fields - OF_C <= known


@pytest.mark.parametrize(
    "asked",
    [
        {"family": "pow4", "lowest_floor": 1.7},
        {"family": "pow3", "robust": "huber"},
        {"from_step": 300.0},
    ],
    ids=str,
)
def test_options_of_a_fit_count_as_in_python(
    library: ctypes.CDLL, run: gp.Trace, asked: dict[str, Any]
) -> None:
    options, fit, trace = as_options("fit_options", asked), new("fit"), trace_of(run)
    arguments = (ctypes.byref(trace), ctypes.byref(options), ctypes.byref(fit))
    assert library.glidepath_fit(*arguments) == OK, library.glidepath_last_error()
    expected = gp.fit(run, **asked)
    found = fit.parameters[: fit.parameter_count]
    assert (fit.family.decode(), found) == (expected.family, list(expected.params.values()))
    assert fit.points == expected.points
    assert expected.params != gp.fit(run, family=asked.get("family", "auto")).params


def test_a_file_is_read_as_python_reads_it(library: ctypes.CDLL, root: Path, run: gp.Trace) -> None:
    path = str(root / "data/curves/docs-transformer.csv.gz").encode()
    with handle(library, "traces", "glidepath_read_traces", path, None, None) as traces:
        count = ctypes.c_size_t()
        assert library.glidepath_traces_count(traces, ctypes.byref(count)) == OK
        assert count.value == len(gp.read_traces(root / "data/curves/docs-transformer.csv.gz"))
        trace = new("trace")
        assert library.glidepath_traces_get(traces, 0, ctypes.byref(trace)) == OK
        assert column(trace.step, trace.points).tobytes() == run.step.tobytes()
        assert column(trace.loss, trace.points).tobytes() == run.loss.tobytes()
        assert trace.name.decode() == run.name
        assert library.glidepath_traces_get(traces, count.value, ctypes.byref(trace)) == INPUT_ERROR
        assert b"no trace" in library.glidepath_last_error()


def test_a_fit_has_the_bytes_of_python(library: ctypes.CDLL, run: gp.Trace) -> None:
    for family in [None, *_core.FAMILIES]:
        options = new("fit_options", family=family and family.encode())
        fit = new("fit")
        trace = trace_of(run)
        status = library.glidepath_fit(
            ctypes.byref(trace), ctypes.byref(options), ctypes.byref(fit)
        )
        assert status == OK
        expected = gp.fit(run, family=family or "auto")
        names = [name.decode() for name in fit.parameter_names[: fit.parameter_count]]
        params = dict(zip(names, fit.parameters, strict=False))
        assert (fit.family.decode(), params) == (expected.family, expected.params)
        assert (fit.status.decode(), fit.sigma, fit.aicc) == (
            expected.status,
            expected.sigma,
            expected.aicc,
        )
        steps = np.array([1e3, 1e4])
        losses = np.empty(2)
        assert (
            library.glidepath_fit_predict(
                ctypes.byref(fit), steps.ctypes.data, 2, losses.ctypes.data
            )
            == OK
        )
        np.testing.assert_allclose(losses, expected.predict(steps), rtol=1e-12)


def test_a_forecast_has_the_bytes_of_python(library: ctypes.CDLL, run: gp.Trace) -> None:
    seen = run.until(run.step[-1] / 3)
    seen = gp.Trace(seen.step, seen.loss)  # without the rates that it logged
    at = np.linspace(run.step[-1] / 2, run.step[-1], 7)
    schedule = gp.Schedule.cosine(1.0, float(run.step[-1]))
    lr = new("schedule", points=len(schedule.step), step=schedule.step, lr=schedule.lr)
    levels = np.array([0.1, 0.5, 0.9])
    options = new(
        "forecast_options", schedule=ctypes.addressof(lr), levels=levels, level_count=len(levels)
    )
    trace = trace_of(seen)
    arguments = (ctypes.byref(trace), at.ctypes.data, len(at), ctypes.byref(options))
    expected = gp.forecast(seen, at, schedule=schedule, levels=levels)
    with handle(library, "forecast", "glidepath_forecast", *arguments) as forecast:
        view = view_of(library, "glidepath_forecast_get", "forecast_view", forecast)
        assert column(view.median, 7).tobytes() == expected.median.tobytes()
        assert column(view.quantiles, 21).tobytes() == expected.quantiles.tobytes()
        assert view.status.decode() == expected.status
        values = np.empty(7)
        assert library.glidepath_forecast_quantile(forecast, 0.3, values.ctypes.data) == OK
        assert values.tobytes() == expected.quantile(0.3).tobytes()
        assert library.glidepath_forecast_prob_below(forecast, 2.0, values.ctypes.data) == OK
        assert values.tobytes() == expected.prob_below(2.0).tobytes()
        assert library.glidepath_forecast_quantile(forecast, 1.5, values.ctypes.data) == INPUT_ERROR


def test_settings_of_a_trace_that_was_read_count_as_in_python(
    library: ctypes.CDLL, tmp_path: Path
) -> None:
    log = tmp_path / "runs.csv"
    rows = [
        f"run{i},{step},{1 + rate + 3 * step**-rate}"
        for i, rate in enumerate(RATES)
        for step in range(1, 61)
    ]
    log.write_text("\n".join(["curve,step,value", *rows, ""]))
    settings = {f"run{i}": {"lr": rate} for i, rate in enumerate(RATES)}
    log.with_suffix(".json").write_text(json.dumps({"settings": settings}))
    runs = gp.read_traces(log)
    live, at = runs[-1], np.array([30.0, 60.0])
    past = gp.PastRuns(runs[:-1])
    seen = gp.Trace(live.step[:1], live.loss[:1], settings=live.settings)
    expected = gp.forecast(seen, at, past=past).median
    unknown = gp.forecast(gp.Trace(seen.step, seen.loss), at, past=past).median
    assert expected.tobytes() != unknown.tobytes()
    path, before = str(log).encode(), tmp_path / "before.csv"
    before.write_text("\n".join(["curve,step,value", *rows[:-60], ""]))
    before.with_suffix(".json").write_text(json.dumps({"settings": settings}))
    read = (library, "traces", "glidepath_read_traces")
    with (
        handle(*read, path, None, None) as traces,
        handle(*read, str(before).encode(), None, None) as finished,
        handle(library, "past_runs", "glidepath_past_runs_learn", finished, 1) as learned,
    ):
        trace = new("trace")
        last = len(RATES) - 1
        assert library.glidepath_traces_get(traces, last, ctypes.byref(trace)) == OK
        trace.points = 1
        options = new("forecast_options", past=learned.value)
        arguments = (ctypes.byref(trace), at.ctypes.data, 2, ctypes.byref(options))
        for medians in (expected, unknown):
            with handle(library, "forecast", "glidepath_forecast", *arguments) as forecast:
                view = view_of(library, "glidepath_forecast_get", "forecast_view", forecast)
                assert column(view.median, 2).tobytes() == medians.tobytes()
            trace.size = type(trace).settings.offset  # as a program of an older version has it


def test_past_runs_change_a_forecast_as_in_python(library: ctypes.CDLL, root: Path) -> None:
    path = root / "data/curves/docs-transformer.csv.gz"
    runs = gp.read_traces(path)
    seen = runs[0].until(runs[0].step[-1] / 3)
    at = np.array([runs[0].step[-1]])
    trace = trace_of(seen)
    with (
        handle(
            library, "traces", "glidepath_read_traces", str(path).encode(), None, None
        ) as traces,
        handle(library, "past_runs", "glidepath_past_runs_learn", traces, 1) as past,
    ):
        options = new("forecast_options", past=past.value)
        arguments = (ctypes.byref(trace), at.ctypes.data, 1, ctypes.byref(options))
        with handle(library, "forecast", "glidepath_forecast", *arguments) as forecast:
            view = view_of(library, "glidepath_forecast_get", "forecast_view", forecast)
            expected = gp.forecast(seen, at, past=gp.PastRuns(runs))
            assert column(view.quantiles, 19).tobytes() == expected.quantiles.tobytes()


def test_a_reach_has_the_bytes_of_python(library: ctypes.CDLL, run: gp.Trace) -> None:
    seen = run.until(run.step[-1] / 3)
    target, budget = float(run.loss[-1]), float(run.step[-1])
    expected = gp.reach(seen, target, budget=budget)
    trace = trace_of(seen)
    with handle(
        library, "reach", "glidepath_reach", ctypes.byref(trace), target, budget, None
    ) as reach:
        view = view_of(library, "glidepath_reach_get", "reach_view", reach)
        assert column(view.cdf, view.points).tobytes() == expected.cdf.tobytes()
        assert view.prob_never == expected.prob_never
        value = ctypes.c_double()
        assert library.glidepath_reach_prob_by(reach, budget / 2, ctypes.byref(value)) == OK
        assert value.value == expected.prob_by(budget / 2)
        assert library.glidepath_reach_quantile(reach, 0.25, ctypes.byref(value)) == OK
        assert value.value == expected.quantile(0.25)
        steps = np.empty(9)
        assert library.glidepath_reach_remaining_steps(reach, 9, steps.ctypes.data) == OK
        assert steps.tobytes() == expected.remaining_steps(9).tobytes()


@pytest.mark.parametrize("by", ["curve", "point"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_best_so_far_has_the_bytes_of_python(
    library: ctypes.CDLL, run: gp.Trace, by: str, share: float
) -> None:
    seen = run.until(run.step[-1] * share)  # of no point at all, of some, of the whole run
    budget = float(run.step[-1])
    options = new("forecast_options", reached_by=by.encode())
    trace, best = trace_of(seen), new("best_so_far")
    status = library.glidepath_best_so_far(
        ctypes.byref(trace), budget, ctypes.byref(options), ctypes.byref(best)
    )
    assert status == OK, library.glidepath_last_error()
    expected = gp.best_so_far(seen, budget=budget, reached_by=by)
    assert best.status.decode() == expected.status
    found = np.array([best.step, best.value, best.prob_past, best.budget])
    said = [expected.step, expected.value, expected.prob_past, expected.budget]
    assert found.tobytes() == np.array(said).tobytes()


def test_a_watch_decides_as_in_python(library: ctypes.CDLL, run: gp.Trace) -> None:
    target, budget = ctypes.c_double(run.loss[-1]), ctypes.c_double(run.step[-1])
    options = new(
        "watch_options",
        target=ctypes.addressof(target),
        budget=ctypes.addressof(budget),
        alpha=0.05,
    )
    expected = gp.Watch(target=target.value, budget=budget.value, alpha=0.05)
    with handle(library, "watch", "glidepath_watch", ctypes.byref(options)) as watch:
        for step, loss in itertools.islice(zip(run.step, run.loss, strict=True), 200):
            expected.add(step, loss)
            assert library.glidepath_watch_add(watch, step, loss, math.nan) == OK
        decision = new("decision")
        assert library.glidepath_watch_decision(watch, ctypes.byref(decision)) == OK
        answer = expected.decision()
        assert decision.verdict.decode() == answer.verdict
        assert decision.probability == answer.probability
        assert list(decision.steps_to_target) == list(answer.steps_to_target)
        assert decision.reason.decode() == answer.reason
        assert library.glidepath_watch_add(watch, math.inf, 1.0, math.nan) == INPUT_ERROR


def test_a_round_is_solved_as_in_python(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    job = np.sort(rng.integers(0, 40, 120))
    tier, gpus = rng.integers(0, 2, 120), 2 ** rng.integers(0, 4, 120)
    value, watts = rng.uniform(1, 9, 120), 300.0 * gpus
    capacity = np.array([24, 16])
    cap, gap = ctypes.c_double(6000.0), ctypes.c_double(0.0)
    problem = new(
        "round",
        options=len(job),
        job=job,
        tier=tier,
        gpus=gpus,
        value=value,
        tiers=len(capacity),
        capacity=capacity,
        watts=watts,
        power_cap_w=ctypes.addressof(cap),
    )
    options = new("round_options", gap=ctypes.addressof(gap))
    arguments = (ctypes.byref(problem), ctypes.byref(options))
    expected = gp.solve_round(
        job, tier, gpus, value, capacity, watts=watts, power_cap_w=cap.value, gap=0.0
    )
    with handle(library, "round_plan", "glidepath_solve_round", *arguments) as plan:
        view = view_of(library, "glidepath_round_plan_get", "round_plan_view", plan)
        chosen = column(view.chosen, view.chosen_count, ctypes.c_int64)
        assert chosen.tolist() == expected.chosen.tolist()
        assert (view.value, view.bound) == (expected.value, expected.bound)
        assert column(view.prices, 2).tobytes() == expected.prices.tobytes()
    for threads in (0, 2):
        count = ctypes.c_int32(threads)
        options.threads = ctypes.addressof(count)
        with handle(library, "round_plan", "glidepath_solve_round", *arguments) as plan:
            view = view_of(library, "glidepath_round_plan_get", "round_plan_view", plan)
            assert (view.value, view.bound) == (expected.value, expected.bound)
    samples = np.array([10.0, 20.0, math.inf])
    index = ctypes.c_double()
    assert library.glidepath_gittins_index(samples.ctypes.data, 3, ctypes.byref(index)) == OK
    assert index.value == gp.gittins_index(samples)


def live_jobs() -> tuple[gp.Snapshot, Any]:
    """A snapshot in Python, and the same in C."""
    rng = np.random.default_rng(2)
    count, samples = 30, 20
    job, submit_s = np.arange(100, 100 + count), np.sort(rng.uniform(0, 5e3, count))
    weight = rng.uniform(0.5, 2.0, count)
    remaining = rng.lognormal(9, 1, (count, samples))
    remaining[3] = math.nan  # nothing is known
    remaining[4] = math.inf  # never: the job is ended
    option_job = np.repeat(job, 2)
    option_tier = np.tile([0, 1], count)
    option_gpus = 2 ** rng.integers(0, 3, 2 * count)
    rate = rng.uniform(0.5, 2.0, 2 * count)
    tiers = [gp.Tier("tier 0", 4, 4, busy_watts=300.0), gp.Tier("tier 1", 2, 8, busy_watts=400.0)]
    running = [gp.Allocation(int(job[0]), 0, int(option_gpus[0]), 5e3)]
    snapshot = gp.Snapshot(
        tiers,
        [
            gp.Job(
                int(job[i]),
                [
                    gp.Option(t, int(option_gpus[2 * i + t]), rate[2 * i + t], utilization=1.0)
                    for t in (0, 1)
                ],
                submit_s=submit_s[i],
                weight=weight[i],
                remaining_steps=None if i == 3 else remaining[i],
            )
            for i in range(count)
        ],
        running=running,
        now_s=6e3,
    )
    given = new(
        "snapshot",
        now_s=6e3,
        tiers=2,
        nodes=np.array([4, 2]),
        gpus_per_node=np.array([4, 8]),
        busy_watts=np.array([300.0, 400.0]),
        jobs=count,
        job=job,
        submit_s=submit_s,
        weight=weight,
        remaining_steps=remaining,
        samples=samples,
        options=2 * count,
        option_job=option_job,
        option_tier=option_tier,
        option_gpus=option_gpus,
        option_steps_per_s=rate,
        running=1,
        running_job=job[:1],
        running_tier=np.array([0]),
        running_gpus=option_gpus[:1],
        running_since_s=np.array([5e3]),
    )
    return snapshot, given


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"objective": "energy", "power_cap_w": 8e3, "in_nodes": True},
        {"objective": "fairness", "round_s": 9e4},
        {"hysteresis": 9.0},
        {"max_wait_s": 2e3},
        {"min_run_s": 5e3},
    ],
    ids=str,
)
def test_live_jobs_are_planned_as_in_python(library: ctypes.CDLL, asked: dict[str, Any]) -> None:
    snapshot, given = live_jobs()
    expected = gp.plan(snapshot, **asked)
    options = as_options("plan_options", asked)
    arguments = (ctypes.byref(given), ctypes.byref(options))
    with handle(library, "plan", "glidepath_plan", *arguments) as plan:
        view = view_of(library, "glidepath_plan_get", "plan_view", plan)
        found = zip(
            *(column(getattr(view, name), view.allocations, ctypes.c_int64) for name in PLACES),
            strict=True,
        )
        assert [tuple(map(int, row)) for row in found] == [
            tuple(getattr(each, name) for name in PLACES) for each in expected.allocations
        ]
        assert column(view.stop, view.stop_count, ctypes.c_int64).tolist() == list(expected.stop)
        assert (view.value, view.bound) == (expected.value, expected.bound)
        texts = (ctypes.c_char_p * view.reason_count).from_address(view.reasons)
        assert [text.decode() for text in texts] == [
            text for _, text in sorted(expected.reasons.items())
        ]


def test_an_option_of_a_job_that_is_not_there_is_refused(library: ctypes.CDLL) -> None:
    _, given = live_jobs()
    unknown = np.full(given.options, 7)
    given.option_job = unknown.ctypes.data
    refused = ctypes.c_void_p()
    status = library.glidepath_plan(ctypes.byref(given), None, ctypes.byref(refused))
    assert status == INPUT_ERROR
    assert b"option 0 is of job 7" in library.glidepath_last_error()


@pytest.mark.parametrize("flag", [7, 2, -1])
def test_a_flag_that_is_neither_0_nor_1_is_refused(library: ctypes.CDLL, flag: int) -> None:
    _, given = live_jobs()
    options, refused = new("plan_options", in_nodes=flag), ctypes.c_void_p()
    status = library.glidepath_plan(
        ctypes.byref(given), ctypes.byref(options), ctypes.byref(refused)
    )
    assert (status, refused.value) == (INPUT_ERROR, None)
    said = f"plan options: in_nodes is {flag}, expected 0 or 1"
    assert library.glidepath_last_error().decode() == said


def test_a_number_of_more_than_32_bits_is_refused(library: ctypes.CDLL) -> None:
    _, given = live_jobs()
    nodes = np.full(given.tiers, 2**40)
    given.nodes = nodes.ctypes.data
    refused = ctypes.c_void_p()
    status = library.glidepath_plan(ctypes.byref(given), None, ctypes.byref(refused))
    assert status == INPUT_ERROR
    said = f"snapshot: nodes is {2**40}, expected a number of 32 bits"
    assert library.glidepath_last_error().decode() == said


@pytest.mark.parametrize("name", FUNCTIONS)
def test_null_is_refused_by_name(library: ctypes.CDLL, name: str) -> None:
    zeros = [None if "*" in argument else 0 for argument in FUNCTIONS[name]]
    status = getattr(library, name)(*zeros)
    if name.endswith("_free"):
        return  # as free() does
    assert status == INPUT_ERROR
    assert library.glidepath_last_error().endswith(b" is NULL")


def test_a_missing_file_is_an_io_error_that_names_it(library: ctypes.CDLL) -> None:
    traces = ctypes.c_void_p(1)
    status = library.glidepath_read_traces(b"/no/such.csv", None, None, ctypes.byref(traces))
    assert (status, traces.value) == (IO_ERROR, None)
    assert b"/no/such.csv" in library.glidepath_last_error()


def test_the_last_error_belongs_to_its_thread(library: ctypes.CDLL) -> None:
    library.glidepath_traces_count(None, None)
    seen: list[bytes] = []
    thread = threading.Thread(target=lambda: seen.append(library.glidepath_last_error()))
    thread.start()
    thread.join()
    assert seen == [b""]
    assert library.glidepath_last_error() != b""


def test_an_older_caller_gets_what_it_has_room_for(library: ctypes.CDLL, run: gp.Trace) -> None:
    fit = new("fit")
    fit.size = STRUCTS["glidepath_fit"].parameters.offset
    trace = trace_of(run)
    trace.size = STRUCTS["glidepath_trace"].weight.offset
    trace.weight = 1  # beyond what the caller has: not read
    assert library.glidepath_fit(ctypes.byref(trace), None, ctypes.byref(fit)) == OK
    assert fit.family.decode() == gp.fit(run).family
    assert list(fit.parameters) == [0, 0, 0, 0]


def test_a_newer_caller_is_refused_where_it_sets_what_is_not_known(library: ctypes.CDLL) -> None:
    newer = STRUCTS["glidepath_watch_options"]
    buffer = (ctypes.c_char * (ctypes.sizeof(newer) + 8))()
    options = newer.from_buffer(buffer)
    options.size = ctypes.sizeof(buffer)
    with handle(library, "watch", "glidepath_watch", ctypes.byref(options)):
        pass
    buffer[ctypes.sizeof(newer) + 3] = b"\1"
    watch = ctypes.c_void_p()
    assert library.glidepath_watch(ctypes.byref(options), ctypes.byref(watch)) == INPUT_ERROR
    assert b"does not know" in library.glidepath_last_error()


@pytest.mark.parametrize("size", [0, 7, 1 << 40])
def test_a_struct_without_its_size_is_refused(library: ctypes.CDLL, size: int) -> None:
    options = new("watch_options")
    options.size = size
    watch = ctypes.c_void_p()
    assert library.glidepath_watch(ctypes.byref(options), ctypes.byref(watch)) == INPUT_ERROR
    assert b"GLIDEPATH_INIT" in library.glidepath_last_error()
