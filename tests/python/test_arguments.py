# SPDX-License-Identifier: Apache-2.0
"""An argument is used or refused in one sentence, never dropped."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import glidepath as gp
from glidepath import cli
from glidepath.cli._app import app

ROUND: dict[str, Any] = {"job": [0, 1], "tier": [0, 0], "gpus": [1, 1], "value": [1.0, 2.0]}
TIERS = [gp.Tier("only", 2)]
CURVE = gp.Trace(np.arange(1.0, 40.0), 1 + 1 / np.arange(1.0, 40.0), name="kept", metric="wer")


def workload() -> gp.Workload:
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 2], "duration_s": [500, 50]}
    return gp.Workload(TIERS, jobs)


def snapshot() -> gp.Snapshot:
    jobs = [gp.Job(i, [gp.Option(0, 1, 1.0)], remaining_steps=[10.0 * i]) for i in (1, 2, 3)]
    return gp.Snapshot(TIERS, jobs)


def scaling() -> gp.Scaling:
    return gp.fit_scaling([1, 2], [1.0, 0.6])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda number: gp.reach(CURVE, number, budget=500), "reach: target"),
        (lambda number: gp.reach(CURVE, 1.01, budget=number), "reach: budget"),
        (lambda number: gp.Watch(target=-number), "Watch: target"),
        (lambda number: gp.Watch().add(number, 1.0), "Watch.add: step"),
        (lambda number: gp.Schedule.cosine(0.1, number), "Schedule.cosine: steps"),
    ],
)
def test_a_whole_number_that_no_float_can_be_is_named(
    call: Callable[[int], object], name: str
) -> None:
    for digits in (400, 5000):
        with pytest.raises((gp.InputError, TypeError), match=rf"^{name} is beyond 1\.8e\+308, the"):
            call(10**digits)


def test_rows_that_differ_in_length_are_told_in_the_same_words() -> None:
    for call in (
        lambda: gp.fit_batch([1, 2, 3], [[1, 2, 3], [1]], family="pow3"),
        lambda: gp.forecast_batch([1, 2, 3], [[1, 2, 3], [1]], 10),
        lambda: gp.Trace([1, 2], [[1, 2], [1]]),
    ):
        with pytest.raises(gp.InputError, match=r"^loss: its rows differ in length$"):
            call()
    for call in (
        lambda: gp.fit_batch([1, 2, 3], [1, 2, 3], family="pow3"),
        lambda: gp.forecast_batch([1, 2, 3], [1, 2, 3], 10),
    ):
        with pytest.raises(gp.InputError, match=r"^loss: expected 2 dimensions, got 1$"):
            call()


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "user_quota": (
        lambda: gp.solve_round(**ROUND, capacity=[2], user_quota=[0]),
        "solve_round: user_quota without user",
    ),
    "group_quota": (
        lambda: gp.solve_round(**ROUND, capacity=[2], group_quota=[0]),
        "solve_round: group_quota without group",
    ),
    "power_cap_w": (
        lambda: gp.solve_round(**ROUND, capacity=[2], power_cap_w=1.0),
        "solve_round: power_cap_w without watts",
    ),
    "name": (lambda: gp.clean(CURVE, name="other"), "clean: a Trace has its own name"),
    "metric": (lambda: gp.clean(CURVE, metric="loss"), "clean: a Trace has its own metric"),
    "direction": (lambda: gp.clean(CURVE, direction="max"), "clean: a Trace has its own direction"),
    "planned_steps": (
        lambda: gp.clean(CURVE, planned_steps=50),
        "clean: a Trace has its own planned_steps",
    ),
    "lr": (lambda: gp.clean(CURVE, lr=CURVE.loss), "clean: a Trace has its own lr"),
    "slack": (
        lambda: gp.plan(snapshot(), slack=0.1),
        "plan: slack is 0.1, expected 0 without objectives in order",
    ),
    "pairs of a plan": (
        lambda: gp.plan(snapshot(), pairs=gp.learn_pairs([])),
        "plan: pairs without a way of sharing",
    ),
    "sharing": (
        lambda: gp.options_of(TIERS, [scaling()], sharing="mps"),
        "options_of: sharing without a partner",
    ),
    "partner": (
        lambda: gp.options_of(TIERS, [scaling()], partner=gp.Profile()),
        "options_of: a partner without sharing",
    ),
    "pairs of options": (
        lambda: gp.options_of(TIERS, [scaling()], pairs=gp.learn_pairs([])),
        "options_of: pairs without sharing",
    ),
    "pairs": (
        lambda: gp.shared_speeds(gp.Profile(), gp.Profile(), "mps", pairs=gp.learn_pairs([])),
        "shared_speeds: pairs without gpu",
    ),
    "gpu": (
        lambda: gp.shared_speeds(gp.Profile(), gp.Profile(), "mps", gpu="A100"),
        "shared_speeds: gpu without pairs",
    ),
    "starts": (
        lambda: gp.fit(CURVE, starts=4),
        "fit: starts is for the solver 'ceres' and robust losses",
    ),
    "learned": (
        lambda: gp.plan(snapshot(), learned=gp.learned_values()),
        "plan: learned is for the objective 'learned'",
    ),
    "traces beside losses": (
        lambda: gp.fit_batch([CURVE], CURVE.loss, family="pow3"),
        "fit_batch: a gp.Trace has steps and losses of its own, expected the steps that the rows of"
        " loss share",
    ),
    "traces for steps": (
        lambda: gp.forecast_batch([CURVE], CURVE.loss, [50.0]),
        "forecast_batch: a gp.Trace has steps and losses of its own, expected the steps that the"
        " rows of loss share",
    ),
    "reached_by": (
        lambda: gp.choose_accelerator(snapshot().jobs[0], TIERS, reached_by="point"),
        "choose_accelerator: reached_by without target",
    ),
    "believed of nobody": (
        lambda: gp.start_times(snapshot(), "srtf", believed={99: 5.0}),
        "start_times: believed steps of job 99, which is not there",
    ),
    "believed under fifo": (
        lambda: gp.start_times(snapshot(), "fifo", believed={1: 5.0}),
        "start_times: 'fifo' does not read believed steps",
    ),
    "two objectives": (
        lambda: gp.simulate(workload(), "best_value:jct", planner={"objective": "energy"}),
        "simulate: 'best_value:jct' has its own objective, leave that of planner out",
    ),
    "objective of themis": (
        lambda: gp.simulate(workload(), "themis", planner={"objective": "energy"}),
        "simulate: 'themis' has its own objective, leave that of planner out",
    ),
    "the default objective of themis": (
        lambda: gp.simulate(workload(), "themis", planner={"objective": "jct"}),
        "simulate: 'themis' has its own objective, leave that of planner out",
    ),
    "the default objective of learned": (
        lambda: gp.simulate(workload(), "learned", planner={"objective": "jct", "gap": 0.1}),
        "simulate: 'learned' has its own objective, leave that of planner out",
    ),
    "an objective said twice": (
        lambda: gp.simulate(workload(), "best_value:jct", planner={"objective": "jct"}),
        "simulate: 'best_value:jct' has its own objective, leave that of planner out",
    ),
    "carbon without watts": (
        lambda: gp.simulate(workload(), "fifo", carbon_g_per_kwh=300.0),
        "simulate: carbon_g_per_kwh is given, no tier has idle_watts or busy_watts",
    ),
    "weight of rows": (
        lambda: gp.fit_batch([1, 2, 3], [[1, 2, 3]], family="pow2", weight=[[1, 1, 1]]),
        "fit_batch: weight is for traces, rows over shared steps are fitted by least squares",
    ),
    "solver of rows": (
        lambda: gp.fit_batch([1, 2, 3], [[1, 2, 3]], family="pow2", solver="ceres"),
        "fit_batch: solver is for traces, rows over shared steps are fitted by least squares",
    ),
    "starts of a batch": (
        lambda: gp.fit_batch([CURVE], starts=4),
        "fit: starts is for the solver 'ceres' and robust losses",
    ),
    "weight of too few": (
        lambda: gp.fit_batch([CURVE, CURVE], weight=[CURVE.loss]),
        "fit_batch: weight has 1 columns, expected 2, one for each trace",
    ),
    "no objective in a dict": (
        lambda: gp.plan(snapshot(), objective={}),
        "plan: no objective",
    ),
    "no objective in a list": (
        lambda: gp.plan(snapshot(), objective=[]),
        "plan: no objective",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_argument_without_effect_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(gp.InputError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    "kind", [gp.BestSoFar, gp.Fit, gp.Forecast, gp.ForecastBatch, gp.Reach, gp.Decision]
)
def test_a_result_is_made_by_a_function_alone(kind: type) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} is a result, which a function"):
        kind()
    assert "record" not in str(inspect.signature(kind))


def test_what_goes_together_is_accepted() -> None:
    chosen = gp.solve_round(**ROUND, capacity=[2], user=[0, 1], user_quota=[1, 0]).chosen
    assert chosen.tolist() == [0]
    assert gp.solve_round(**ROUND, capacity=[2], watts=[5.0, 9.0], power_cap_w=6.0).value == 1
    # The power of options is a fact about them: without a cap it limits nothing.
    assert gp.solve_round(**ROUND, capacity=[2], watts=[5.0, 9.0]).value == 3
    # A weight of 0 asks for nothing; a learner weighs what the tiers say nothing of, too.
    assert gp.plan(snapshot(), objective={"jct": 1.0, "energy": 0.0}).allocations
    # Jobs without a forecast are taken to need a round at least, whatever the objective.
    unknown = gp.Snapshot(TIERS, [gp.Job(1, [gp.Option(0, 1, 1.0)])])
    assert gp.plan(unknown, round_s=60.0).value > gp.plan(unknown, round_s=3600.0).value
    empty: dict[str, Any] = {name: [] for name in ROUND}
    assert gp.solve_round(**empty, capacity=[2], user_quota=[3]).value == 0
    cleaned = gp.clean(CURVE).trace
    assert (cleaned.name, cleaned.metric) == ("kept", "wer")
    named = gp.clean(CURVE.step, CURVE.loss, name="x", metric="acc", direction="max").trace
    assert (named.name, named.metric, named.direction) == ("x", "acc", "max")
    assert gp.start_times(snapshot(), "srtf", believed={3: 1.0}).job.tolist() == [1, 2, 3]


# ------------------------------------------------------------------------- options of policies

# A value of each option that not every policy reads.
OPTIONS: dict[str, Any] = {
    "session_s": 60.0,
    "round_s": 30.0,
    "sharing": "mps",
    "user_gpus": 2,
    "planner": {"hysteresis": 0.2},
    "max_ftf": 1.5,
    "long_share": 0.25,
    "patience": False,
}
# What an option needs beside it.
NEEDS: dict[str, dict[str, Any]] = {"patience": {"restart_s": 5.0}}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_policy_reads_an_option_or_refuses_it_by_name(option: str) -> None:
    readers = [policy.name for policy in gp.policies() if option in policy.reads]
    assert readers
    for policy in gp.policies():
        if policy.name in readers:
            given = {option: OPTIONS[option], **NEEDS.get(option, {})}
            gp.simulate(workload(), policy.name, **given)
            continue
        with pytest.raises(gp.InputError) as error:
            gp.simulate(workload(), policy.name, **{option: OPTIONS[option]})
        assert str(error.value) == (
            f"simulate: '{policy.name}' does not read {option}, known to read it: "
            f"{', '.join(readers)}"
        )


def test_the_table_names_only_options_of_simulate() -> None:
    assert {name for policy in gp.policies() for name in policy.reads} == set(OPTIONS)


def test_a_policy_of_ones_own_refuses_what_only_the_planner_reads() -> None:
    for option in ("session_s", "round_s", "sharing"):
        gp.simulate(workload(), gp.plan, **{option: OPTIONS[option]})
    for option in ("user_gpus", "planner", "max_ftf", "long_share", "patience"):
        with pytest.raises(gp.InputError, match=f"of one's own does not read {option}"):
            gp.simulate(workload(), gp.plan, **{option: OPTIONS[option]})


def crowd() -> gp.Workload:
    """Jobs enough for rounds and sessions to matter where a policy reads them."""
    random = np.random.default_rng(3)
    n = 60
    jobs = {
        "job": np.arange(n), "submit_s": np.sort(random.integers(0, 4000, n)),
        "gpus": random.choice([1, 1, 2, 4], n), "duration_s": random.integers(50, 4000, n),
        "user": random.choice(["ann", "bob"], n),
    }  # fmt: skip
    return gp.Workload([gp.Tier("a", 8), gp.Tier("b", 4)], jobs)


@pytest.mark.parametrize(("option", "value"), [("session_s", 130.0), ("round_s", 97.0)])
def test_a_policy_that_refuses_an_option_decides_the_same_at_more_moments(
    option: str, value: float
) -> None:
    """What is refused would change nothing: a clock beside the policy asks it as often."""
    readers = {policy.name for policy in gp.policies() if option in policy.reads}
    changed = {
        name
        for name in readers
        if not np.array_equal(
            gp.simulate(crowd(), name, forecast_sigma=0.8, restart_s=20).jobs["end_s"],
            gp.simulate(crowd(), name, forecast_sigma=0.8, restart_s=20, **{option: value}).jobs[
                "end_s"
            ],
        )
    }
    assert {"session_fifo"} <= changed if option == "session_s" else {"las", "max_min"} <= changed


def test_policies_side_by_side_share_an_option_that_one_of_them_reads() -> None:
    both = gp.compare(workload(), ["fifo", "session_fifo"], session_s=60.0)
    alone = gp.simulate(workload(), "session_fifo", session_s=60.0)
    assert both.values("session_fifo", "preemptions") == alone.preemptions
    assert both.values("fifo", "mean_jct_s") == gp.simulate(workload(), "fifo").mean_jct_s
    with pytest.raises(gp.InputError) as error:
        gp.compare(workload(), ["fifo", "srtf"], session_s=60.0)
    assert str(error.value) == "simulate: session_s is read by none of fifo, srtf"


def test_the_environment_for_learning_refuses_what_it_does_not_read() -> None:
    pytest.importorskip("gymnasium", reason="needs glidepath[gym]")
    from glidepath.gym import SchedulingEnv

    with pytest.raises(gp.InputError, match="environment: does not read session_s, but restart_s"):
        SchedulingEnv(workload(), session_s=3.0)
    with pytest.raises(TypeError, match="environment: no option 'pace', expected one of restart_s"):
        SchedulingEnv(workload(), pace=3.0)


# --------------------------------------------------------------------------- the command line

# The functions of Python that a verb stands for, and its options that are none of theirs.
VERBS: dict[str, tuple[tuple[Callable[..., Any], ...], set[str]]] = {
    "metrics": ((gp.metrics_of,), set()),
    "fit": ((gp.read_traces, gp.fit_batch), {"run", "plot"}),
    "forecast": ((gp.read_traces, gp.forecast, gp.reach), {"run", "observed", "lr", "plot"}),
    "watch": ((gp.Watch, gp.Follow), {"run", "lr", "once", "until_decided"}),
    "report": (
        (gp.read_traces, gp.forecast, gp.reach, gp.Metrics.profile),
        {"output", "run", "lr", "hardware"},
    ),
    "plan": (
        (gp.plan, gp.reach, gp.generate_workload, gp.Workload.from_trace),
        {"at_h", "tiers", "planner", "plot"},
    ),
    "place": ((gp.place_pods,), set()),
    "simulate": (
        (gp.simulate, gp.compare, gp.generate_workload, gp.Workload.from_trace),
        {
            *("compare", "node_every_h", "repair_min", "job_every_h", "checkpoint_min", "report"),
            *("sleep_after_min", "sleep_watts", "wake_s"),
        },
    ),
    "bench accuracy": ((gp.bench.accuracy,), {"method", "cutoff", "out", "plot", "plot_cutoffs"}),
    "bench reach": ((gp.bench.reach,), {"method"}),
    "bench starts": (
        (gp.start_times, gp.simulate, gp.compare, gp.Workload.from_trace),
        {"moments", "redraw"},
    ),
}
# Defaults that differ: many seeds of a comparison, and recent jobs by their number.
OTHER_DEFAULTS = {("bench starts", "recent")}


def options_of(verb: str) -> dict[str, Any]:
    """The options of a verb and their defaults; None is that of the library."""
    command: Any = get_command(app)
    for word in verb.split():
        command = command.commands[word]
    return {
        each.name: each.default
        for each in command.params
        if each.param_type_name == "option" and each.name != "as_json"
    }


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_of_a_verb_has_the_name_and_the_default_of_python(verb: str) -> None:
    functions, own = VERBS[verb]
    defaults: dict[str, list[Any]] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            defaults.setdefault(name, []).append(parameter.default)
    options = options_of(verb)
    assert own <= options.keys(), "an option on the table is gone"
    assert options.keys() - own <= defaults.keys()
    assert not own & defaults.keys(), "an option on the table is one of Python's"
    for name in options.keys() - own:
        if options[name] is not None and (verb, name) not in OTHER_DEFAULTS:
            assert options[name] in [*defaults[name], inspect.Parameter.empty], name


def jobs_of_my_own(folder: Path) -> list[str]:
    rows = "\n".join(f"{step},{1 + 1 / step}" for step in range(1, 40))
    (folder / "a.csv").write_text(f"step,loss\n{rows}\n")
    (folder / "jobs.csv").write_text("job,log,target,budget,steps_per_s_x\na,a.csv,1.01,200,1\n")
    (folder / "tiers.csv").write_text("name,nodes,gpus_per_node\nx,1,2\n")
    return ["plan", str(folder / "jobs.csv"), "--tiers", str(folder / "tiers.csv")]


@pytest.mark.parametrize(
    "flags",
    [
        *(("--at-h", "3"), ("--users", "2"), ("--seed", "1"), ("--gpus", "4")),
        *(("--sharing", "mps"), ("--pairs", "pairs.csv")),
    ],
)
def test_what_is_for_a_workload_is_refused_for_jobs_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, str]
) -> None:
    line = jobs_of_my_own(tmp_path)
    assert cli.main(line) == 0
    capsys.readouterr()
    assert cli.main([*line, *flags]) == 2
    said = capsys.readouterr().err
    assert f"{flags[0]} is for a workload, " in said
    assert "has jobs of your own" in " ".join(said.split())


def test_a_flag_without_effect_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = tmp_path / "trace.csv"
    jobs.write_text("job,submit_s,gpus,duration_s\n1,0,1,10\n")
    simulate = ["simulate", str(jobs), "--gpus", "2"]
    once = ["watch", str(jobs), "--once"]
    for line, said in (
        ([*simulate, "--compare", "-p", "srtf"], "--compare names its own policies"),
        (
            [*simulate, "-p", "fifo", "--session-s", "5"],
            "'fifo' does not read session_s, known to read it",
        ),
        ([*once, "--alpha", "0.1"], "--alpha 0.1: say with --target"),
        ([*once, "--target", "1", "--until-decided"], "--until-decided is for more than one look"),
        ([*once, "--every-s", "5"], "--every-s 5 is for more than one look: leave --once out"),
        ([*simulate, "--checkpoint-min", "5"], "--checkpoint-min is for failures"),
        ([*simulate, "--sleep-watts", "5"], "--sleep-watts is for nodes that sleep: say"),
        ([*simulate, "--wake-s", "5"], "--wake-s is for nodes that sleep: say"),
        ([*simulate, "--stop-at-target"], "stop_at_target is for jobs with curves"),
    ):
        assert cli.main(line) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert cli.main([*simulate, "-p", "fifo", "-p", "session_fifo", "--session-s", "5"]) == 0
