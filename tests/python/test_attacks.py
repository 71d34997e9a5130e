# SPDX-License-Identifier: Apache-2.0
"""Random attacks: logs with damaged bytes, runs and rounds and workloads of any numbers.

`conftest.py` has the two profiles: the usual one tries few cases, the same each time; with
GLIDEPATH_FUZZ=10000 that many others are tried for each property. What was found stands here as
`@example`.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import samples

import glidepath as gp
from glidepath._core import OBJECTIVES
from glidepath.readers._formats import FORMATS

SAMPLES = samples()
TOKENS = [
    *(
        b"\0",
        b"\xff",
        b",",
        b"\n",
        b"\r",
        b"\r\n",
        b'"',
        b"nan",
        b"inf",
        b"-1",
        b"1e999",
        b"{",
        b"}",
    ),
    *(b"9" * 400, b"9" * 5000, b"[" * 3000, b"]" * 50, b"loss", b"step", b"curve", b"\x1f\x8b"),
    *(b"\xed\xa0\x80", b"|", b"%", b" " * 99, b"\x1b[31m", b"1/1 |", b":00:00", b"\xef\xbb\xbf"),
]


def logs(*more: tuple[str, bytes]) -> st.SearchStrategy[tuple[str, bytes]]:
    """Samples in which a few bytes were changed, cut, repeated, or replaced by awkward ones."""

    @st.composite
    def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
        name, content = draw(st.sampled_from([*SAMPLES.items(), *more]))
        for _ in range(draw(st.integers(1, 5))):
            at, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
            kind = draw(st.sampled_from(("change", "token", "cut", "repeat", "end")))
            middle = {
                "change": lambda at=at: draw(st.binary(min_size=1, max_size=3)),
                "token": lambda: draw(st.sampled_from(TOKENS)),
                "cut": lambda: b"",
                "repeat": lambda at=at, end=end, whole=content: whole[at:end] * 2,
                "end": lambda: b"",
            }[kind]()
            rest = {"cut": end, "repeat": end, "end": len(content)}.get(kind, at + len(middle))
            content = content[:at] + middle + content[rest:]
        if name.endswith(".gz") and draw(st.booleans()):  # damage under the packing, too
            content = gzip.compress(content, 1, mtime=0)
        return name, content

    return damaged()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def test_every_sample_is_read_as_it_was_written(folder: Path) -> None:
    for name, content in SAMPLES.items():
        (trace,) = gp.read_traces(written(folder / "whole", name, content))
        if name != "docs-lstm.csv.gz":
            assert len(trace) == 24, name
            assert trace.loss[-1] == pytest.approx(0.5082, abs=1e-4), name


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def read_or_refused(read: Callable[[], list[Any]]) -> list[Any] | None:
    try:
        return read()
    except (gp.IoError, gp.InputError):
        return None


def packed_with_damage() -> bytes:
    packed = bytearray(SAMPLES["table.csv.gz"])
    packed[40] ^= 0x55
    return bytes(packed)


def row(text: str) -> bytes:
    return (f'{{"step": 1, "loss": 2, {text}}}\n{{"step": 2, "loss": 1, {text}}}\n').encode()


@settings(max_examples=4 * settings.default.max_examples)
@given(logs(), st.sampled_from([None, None, *FORMATS]), st.sampled_from([None, "loss", "lr"]))
@example(("table.csv.gz", packed_with_damage()), None, None)
@example(("rows.jsonl", row('"elapsed_time": "' + "9" * 400 + ':00:00"')), None, None)
@example(("rows.jsonl", row('"elapsed_time": "' + "9" * 5000 + ':00:00"')), None, None)
@example(("rows.jsonl", row('"x": ' + "9" * 400)), None, "x")
@example(("rows.jsonl", row('"x": ' + "[" * 5000)), None, None)
@example(("rows.jsonl", row('"x": ' + '{"a":' * 900 + "1" + "}" * 900)), None, None)
@example(("history.json", b'{"loss": [1, 2], "x": ' + b"[" * 90000), None, None)
@example(("console.log", b"iteration 1/1 |" * 2000), None, None)
@example(("long.csv", b"curve,step,value" + b",x" * 9), None, "\udcff")
@example(("mlflow.db", SAMPLES["mlflow.db"].replace(b"TABLE runs", b"TABLE \xff\xfes")), None, None)
@example(("wide.csv", b"x" * 65_535 + b",step,loss\n1,2,3\n"), None, None)
def test_of_any_bytes_come_traces_or_a_refusal(
    folder: Path, log: tuple[str, bytes], form: str | None, metric: str | None
) -> None:
    name, content = log
    file = written(folder / "damaged", name, content)
    if form != "parquet" or "table.parquet" in SAMPLES:
        for trace in (
            read_or_refused(lambda: gp.read_traces(file, format=form, metric=metric)) or []
        ):
            assert np.isfinite(trace.step).all()
            assert (np.diff(trace.step) > 0).all()
            assert len(trace.step) == len(trace.loss)
            assert all(note.strip() for note in trace.notes)
    if form is None:
        read_or_refused(lambda: gp.metrics_of(file))
        run = read_or_refused(lambda: gp.read_traces(folder / "damaged", metric=metric))
        assert run is None or len(run) > 0
    file.unlink()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("console.log", b"iteration 1/1 |" * 253_000),
        (
            "wide.csv",
            b",".join(b"c%d" % i for i in range(200_000)) + b"\n" + b"1," * 199_999 + b"1\n",
        ),
    ],
    ids=["console", "columns"],
)
def test_what_took_a_minute_takes_seconds(folder: Path, name: str, content: bytes) -> None:
    file = written(folder / "long", name, content)
    began = time.process_time()
    with pytest.raises(gp.IoError):
        gp.read_traces(file)
    assert time.process_time() - began < 10


# ------------------------------------------------------------------------------------------- runs


def test_a_million_threads_are_no_more_than_there_are() -> None:
    rows = np.random.default_rng(0).random((5000, 8))
    many = gp.fit_batch(np.arange(1.0, 9), rows, family="pow2", threads=10**6)
    assert many == gp.fit_batch(np.arange(1.0, 9), rows, family="pow2", threads=1)


losses = st.one_of(
    st.floats(),
    st.floats(0.01, 10),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e-300]),
)


@st.composite
def traces(draw: st.DrawFn) -> gp.Trace:
    count = draw(st.integers(0, 40))
    gaps = draw(st.lists(st.floats(1e-3, 1e6) | st.just(1.0), min_size=count, max_size=count))
    loss = draw(st.lists(losses, min_size=count, max_size=count))
    if draw(st.booleans()):  # a run such as there are
        noise = draw(st.floats(0, 0.1))
        loss = [2 / (i + 1) ** 0.5 + noise * math.sin(9 * i) for i in range(count)]
    return gp.Trace(np.cumsum(gaps), loss, direction=draw(st.sampled_from(["min", "max"])))


@given(traces(), st.lists(st.floats(1.001, 1e4), min_size=1, max_size=4))
@example(gp.Trace([1, 2, 3, 4], [0.0, 0.0, 1.7e308, 0.0]), [2.0])
@example(gp.Trace([1, 2, 3, 4, 5], [1e308, 9e307, 8e307, 7e307, 6e307]), [2.0])
def test_a_forecast_has_ordered_finite_quantiles_or_says_why_not(
    trace: gp.Trace, ahead: list[float]
) -> None:
    last = float(trace.step[-1]) if len(trace) else 1.0
    try:
        law = gp.forecast(trace, sorted({last * each for each in ahead}))
    except gp.InputError:
        assert len(trace) == 0 or not np.isfinite(trace.loss).any()
        return
    assert law.quantiles.shape == (len(law.levels), len(law.at))
    assert np.isfinite(law.quantiles).all()
    assert np.isfinite(law.median).all()
    assert (np.diff(law.quantiles, axis=0) >= 0).all()


@given(traces(), losses, st.floats(1.001, 100), st.sampled_from(["curve", "point"]))
def test_a_reach_is_a_law_of_steps_beyond_the_last(
    trace: gp.Trace, target: float, ahead: float, by: str
) -> None:
    last = float(trace.step[-1]) if len(trace) else 1.0
    try:
        law = gp.reach(trace, target, budget=ahead * last, reached_by=by)
    except gp.InputError:
        assert len(trace) == 0 or not math.isfinite(target) or not np.isfinite(trace.loss).any()
        return
    assert 0 <= law.prob_never <= 1
    steps = [law.quantile(level) for level in (0.05, 0.25, 0.5, 0.75, 0.95)]
    assert steps == sorted(steps)
    assert all(0 < step <= ahead * last * (1 + 1e-9) or step == math.inf for step in steps)


# ---------------------------------------------------------------------------------- rounds, plans


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[Any], ...]:
    """Options of a few jobs, and capacities; sometimes with a value that is refused."""
    tiers = draw(st.integers(1, 3))
    capacity = draw(st.lists(st.integers(0, 12), min_size=tiers, max_size=tiers))
    value = st.floats(0, 1e15) | st.floats(0, 10) | st.sampled_from([0.0, 5e-324])
    option = st.tuples(st.integers(0, 5), st.integers(0, tiers - 1), st.integers(1, 8), value)
    options = draw(st.lists(option, max_size=14))
    return (*([each[i] for each in options] for i in range(4)), capacity)


def best_value(job: list[int], tier: list[int], gpus: list[int], value: list[float],
               capacity: list[int]) -> float:  # fmt: skip
    """The optimum by trying everything."""
    if not job:
        return 0.0
    first = job[0]
    rest = [i for i, each in enumerate(job) if each != first]
    left = [[column[i] for i in rest] for column in (job, tier, gpus, value)]
    best = best_value(*left, capacity)  # type: ignore[arg-type]
    for i, each in enumerate(job):
        if each == first and gpus[i] <= capacity[tier[i]]:
            room = [*capacity]
            room[tier[i]] -= gpus[i]
            best = max(best, value[i] + best_value(*left, room))  # type: ignore[arg-type]
    return best


@given(rounds())
def test_a_round_is_feasible_and_its_bound_holds(columns: tuple[list[Any], ...]) -> None:
    job, tier, gpus, value, capacity = columns
    plan = gp.solve_round(*columns)
    chosen = plan.chosen.tolist()
    assert len({job[i] for i in chosen}) == len(chosen)
    for t, room in enumerate(capacity):
        assert sum(gpus[i] for i in chosen if tier[i] == t) <= room
    assert plan.value == pytest.approx(sum(value[i] for i in chosen), rel=1e-12)
    optimum = best_value(job, tier, gpus, value, capacity)
    assert plan.value <= optimum * (1 + 1e-12)
    assert plan.bound >= optimum * (1 - 1e-9)


@st.composite
def snapshots(draw: st.DrawFn) -> gp.Snapshot:
    """Jobs with numbers from sound to absurd, on two tiers."""
    number = st.floats(1e-6, 1e6) | st.floats(-1e300, 1e300) | st.sampled_from([math.inf, math.nan])
    remaining = st.lists(st.floats(0, 1e9) | st.just(math.inf), min_size=1, max_size=4)
    jobs = []
    for i in range(draw(st.integers(0, 6))):
        odd = draw(st.integers(0, 3)) == 0
        rate = draw(number if odd else st.floats(1e-3, 1e3))
        ways = [gp.Option(t, g, rate * (1 + t)) for t in (0, 1) for g in (1, 2)]
        jobs.append(
            gp.Job(
                i,
                ways,
                weight=draw(number if odd else st.floats(0.1, 10)),
                user=draw(st.sampled_from("ab")),
                remaining_steps=draw(st.none() | remaining.map(sorted)),
                restart_s=draw(number if odd else st.floats(0, 600)),
            )
        )
    return gp.Snapshot([gp.Tier("slow", 2, 2), gp.Tier("fast", 1, 2)], jobs, now_s=60.0)


@given(snapshots(), st.sampled_from(OBJECTIVES))
def test_a_plan_breaks_no_rule_and_says_something_of_each_job(
    snapshot: gp.Snapshot, objective: str
) -> None:
    try:
        plan = gp.plan(snapshot, objective=objective)
    except gp.InputError:  # an objective that needs what these jobs lack
        return
    assert gp.violations(snapshot, plan) == []
    assert plan.value <= plan.bound * (1 + 1e-9) + 1e-9
    assert set(plan.reasons) == {job.id for job in snapshot.jobs}
    assert all(reason for reason in plan.reasons.values())


def milliseconds(low: float, high: float) -> st.SearchStrategy[float]:
    """Seconds of whole milliseconds, which the simulator's clock has exactly."""
    return st.integers(int(1000 * low), int(1000 * high)).map(lambda each: each / 1000)


POLICIES = [each.name for each in gp.policies()]
ROUNDED = {each.name for each in gp.policies() if "round_s" in each.reads}


@given(
    st.lists(
        st.tuples(milliseconds(0, 1e5), st.integers(1, 4), milliseconds(1, 1e5)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(POLICIES),
    milliseconds(0, 300),
    st.integers(0, 2**31),
)
def test_a_simulation_ends_every_job_and_loses_no_work(
    folder: Path, jobs: list[tuple[float, int, float]], policy: str, restart_s: float, seed: int
) -> None:
    rows = "".join(
        f"{i},{at!r},{gpus},{length!r}\n" for i, (at, gpus, length) in enumerate(sorted(jobs))
    )
    file = written(folder / "jobs", "jobs.csv", f"job,submit_s,gpus,duration_s\n{rows}".encode())
    workload = gp.Workload.from_trace(file, gpus=4)
    rounds = {"round_s": 20_000.0} if policy in ROUNDED else {}
    result = gp.simulate(workload, policy, restart_s=restart_s, seed=seed, **rounds)
    known = (result.mean_jct_s, result.total_wait_s, result.makespan_s, result.gpu_seconds)
    assert all(math.isfinite(each) for each in known)
    assert len(result.jobs["outcome"]) == len(jobs)
    work = sum(gpus * length for _, gpus, length in jobs)
    assert result.gpu_seconds >= work * (1 - 1e-12)
    assert result.makespan_s >= max(length for *_, length in jobs) * (1 - 1e-12)


@given(
    st.dictionaries(st.floats(0, 0.99), st.floats(0.1, 100), max_size=4),
    milliseconds(0.001, 1e4),
    st.sampled_from(POLICIES),
)
def test_a_job_alone_takes_the_time_of_its_phases(
    phases: dict[float, float], duration_s: float, policy: str
) -> None:
    jobs = {"job": [1], "submit_s": [0.0], "duration_s": [duration_s], "phases": [phases]}
    result = gp.simulate(gp.Workload([gp.Tier("a", 1)], jobs), policy)
    ends = [*sorted(phases), 1.0]
    lengths = [ends[0], *(b - a for a, b in itertools.pairwise(ends))]
    speeds = [1.0, *(phases[start] for start in sorted(phases))]
    alone_s = duration_s * sum(n / speed for n, speed in zip(lengths, speeds, strict=True))
    assert result.mean_jct_s == pytest.approx(alone_s, rel=1e-9, abs=2e-6)
    assert result.worst_ftf_static == pytest.approx(1, rel=1e-9, abs=2e-6 / alone_s)


# --------------------------------------------------------------------------------------- comments


@given(
    st.text(st.characters(codec="utf-8"), max_size=60) | st.text("gw=.1e|-movintare@ ", max_size=60)
)
@example("weight=1e300")
@example("budget=1e300")
@example("| moving=gold@" + "9" * 5000)
@example("trace=/usr")
def test_a_comment_is_read_or_said_to_be_unreadable(words: str) -> None:
    from glidepath.engines.slurm import JobRequest
    from glidepath.engines.slurm._comment import Move

    request = JobRequest.read(f"glidepath {words}")
    assert request is not None
    assert 0 < request.weight <= 1e6
    assert request.budget is None or 0 < request.budget <= 1e15
    assert request.target is None or abs(request.target) <= 1e30
    assert request.problem.isprintable()
    move = Move.read(f"glidepath {words}")
    assert move is None or move.since_s < 10**12
    json.dumps(request.problem)
