# SPDX-License-Identifier: Apache-2.0
"""What `simulate` and its workloads refuse, and what a plan says of limits that cannot be kept."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp


def workload(gpus: list[float], **columns: Any) -> gp.Workload:
    jobs = {
        "job": [7 + k for k in range(len(gpus))],
        "submit_s": [0.0] * len(gpus),
        "gpus": gpus,
        "duration_s": [5000.0] * len(gpus),
    }
    return gp.Workload([gp.Tier("a", 4)], jobs | columns)


@pytest.mark.parametrize("gpus", [1.9, 0.46, math.nan, 1e30])
def test_a_fraction_of_a_gpu_is_no_gang(gpus: float) -> None:
    with pytest.raises(
        gp.InputError, match=r"job 8 has gpus (1\.9|0\.46|nan|1e\+30), expected a whole number"
    ):
        workload([1, gpus])
    assert workload([1.0, 2.0]).jobs["gpus"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("priority", "columns", "row"),
    [
        (2**40, "expected a whole number up to 2147483647", "expected at most 2147483647"),
        (-(2**40), "expected a whole number from -2147483647", "expected at least -2147483647"),
        (2**62, "expected a whole number up to 2147483647", "expected at most 2147483647"),
        (10.0**30, "expected a whole number up to 2147483647", "is not a whole number"),
        (1.5, "expected a whole number$", "'1.5' is not a whole number"),
    ],
)
def test_a_priority_that_no_class_has_is_refused_by_name(
    tmp_path: Path, priority: float, columns: str, row: str
) -> None:
    shown = re.escape(str(priority) if abs(priority) < 1e15 else f"{priority:g}")
    with pytest.raises(gp.InputError, match=f"^workload: job 7 has priority {shown}, {columns}"):
        workload([1], priority=[priority])
    file = tmp_path / "jobs.csv"
    file.write_text(f"job,submit_s,gpus,duration_s,priority\n1,0,1,10,{priority}\n")
    with pytest.raises(gp.IoError, match=rf"jobs\.csv:2: priority .*{row}"):
        gp.Workload.from_trace(file, gpus=1)
    file.write_text(f"job,submit_s,gpus,duration_s\n{2**80},0,1,10\n")
    with pytest.raises(gp.IoError, match=rf"job '{2**80}' is not a whole number of 64 bits"):
        gp.Workload.from_trace(file, gpus=1)
    assert workload([1], priority=[-(2.0**31) + 1]).jobs["priority"].tolist() == [-(2**31) + 1]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("las", {"restart_s": 1e9, "round_s": 600.0}),
        ("max_min", {"round_s": 1e-3}),
        (
            "first_fit",
            {"failures": {"job_every_s": 100.0, "checkpoint_s": math.inf}},
        ),
    ],
)
def test_a_simulation_that_comes_to_nothing_ends_in_one_sentence(
    policy: str, options: dict[str, Any]
) -> None:
    crowded = workload([4.0] * 3, duration_s=[1e5] * 3)
    with pytest.raises(gp.InputError, match=r"^simulate: after \d+ decisions \d+ of 3 jobs have"):
        gp.simulate(crowded, policy, **options)


def test_many_rounds_are_no_reason_to_give_up() -> None:
    long = gp.Workload(
        [gp.Tier("a", 1)],
        {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 1], "duration_s": [6e6, 6e6]},
    )
    run = gp.simulate(long, "session_fifo", session_s=60.0, spans=False)
    assert run.events > 150_000
    assert (run.jobs["outcome"] == "finished").all()


def test_numbers_that_nothing_can_be_made_of_are_refused_by_name() -> None:
    with pytest.raises(gp.InputError, match=r"restart_s is 1e\+300, expected at most 1e12"):
        gp.simulate(workload([1]), "dare", restart_s=1e300)
    with pytest.raises(gp.InputError, match=r"sleep\.watts is inf, expected 0 or more"):
        gp.simulate(workload([1]), "fifo", sleep={"after_s": 1.0, "watts": math.inf})


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"failures": {"repair_s": 5.0}}, "failures.repair_s without failures.node_every_s"),
        (
            {"failures": {"checkpoint_s": 5.0}},
            "failures.checkpoint_s without node_every_s or job_every_s",
        ),
        ({"sleep": {"watts": 5.0}}, "sleep.watts and sleep.wake_s need sleep.after_s"),
        ({"sleep": {"wake_s": 5.0}}, "sleep.watts and sleep.wake_s need sleep.after_s"),
        ({"planner": {"round_s": 5.0}}, "planner.round_s, say round_s in its place"),
        (
            {"planner": {"group_quota": {"g": 1}}},
            "planner.group_quota, the jobs of a workload have no groups",
        ),
    ],
)
def test_what_nothing_would_read_is_refused(option: Any, sentence: str) -> None:
    with pytest.raises(gp.InputError, match=re.escape(f"simulate: {sentence}")):
        gp.simulate(workload([1]), "best_value", **option)


@pytest.mark.parametrize("policy", ["best_value", "learned"])
@pytest.mark.parametrize("restart_s", [0.0, 60.0])
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"gap": -1.0}, "plan: gap is -1, expected 0 to 1"),
        ({"gap": math.nan}, "plan: gap is nan, expected 0 to 1"),
        ({"gap": 2.0}, "plan: gap is 2, expected 0 to 1"),
        ({"slack": 2.0}, "plan: slack is 2, expected 0 to less than 1"),
        ({"min_run_s": -1.0}, "plan: min_run_s is -1, expected 0 or more and finite"),
        ({"stop_probability": -1.0}, "plan: stop_probability is -1"),
    ],
)
def test_what_plan_refuses_is_refused_also_where_an_order_is_all_there_is_to_choose(
    policy: str, restart_s: float, option: Any, sentence: str
) -> None:
    with pytest.raises(gp.InputError, match=f"^{re.escape(sentence)}"):
        gp.simulate(workload([1]), policy, restart_s=restart_s, planner=option)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"seed": "x"}, "seed is 'x', expected a whole number"),
        ({"seed": None}, "seed is None, expected a whole number"),
        ({"restart_s": "x"}, "restart_s is 'x', expected a number"),
        ({"user_gpus": math.nan}, "user_gpus is nan, expected a whole number"),
    ],
)
def test_an_option_of_another_type_is_refused_by_name(option: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        gp.simulate(workload([1]), "fifo", **option)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"duration_s": [5.0], "budget_steps": [5.0]}, "has duration_s 5 beside budget_steps"),
        ({"duration_s": [5.0], "truth": [0]}, "has duration_s 5 beside a curve"),
        ({"truth": [0]}, "has neither duration_s nor budget_steps above 0"),
        (
            {"truth": [0], "budget_steps": [301.0], "target_loss": [0.1]},
            "has budget_steps 301, expected at most 300, where its curve ends",
        ),
        (
            {"truth": [0], "budget_steps": [300.0], "target_loss": [math.nan]},
            "has target_loss nan",
        ),
        ({"job": [-3], "duration_s": [5.0]}, "has an id below 0"),
    ],
)
def test_a_job_has_one_measure_of_its_work_and_a_record_as_long(
    columns: dict[str, Any], sentence: str
) -> None:
    curve = gp.Trace([100.0, 200.0, 300.0], [3.0, 2.0, 1.0])
    job = {"job": [7], "submit_s": [0.0]} | columns
    with pytest.raises(gp.InputError, match=f"^workload: job {job['job'][0]} {sentence}"):
        gp.Workload([gp.Tier("a", 4)], job, curves=[curve])


def test_two_tiers_of_one_name_are_refused() -> None:
    job = {"job": [7], "submit_s": [0.0], "duration_s": [5.0]}
    with pytest.raises(gp.InputError, match=r"^workload: tier 'a' is there twice"):
        gp.Workload([gp.Tier("a", 4), gp.Tier("a", 2)], job)


@pytest.mark.parametrize("policy", ["max_min", "max_min_unaware", "fifo_perf", "isolated"])
def test_a_policy_that_wakes_no_node_refuses_the_time_of_it(policy: str) -> None:
    with pytest.raises(gp.InputError, match=rf"^simulate: '{policy}' .* sleep\.wake_s is 60"):
        gp.simulate(workload([1]), policy, sleep={"after_s": 10.0, "wake_s": 60.0})
    gp.simulate(workload([1]), policy, sleep={"after_s": 10.0, "watts": 1.0})


def test_an_error_of_forecasts_is_for_jobs_without_a_curve() -> None:
    curve = gp.Trace([100.0, 200.0, 300.0], [3.0, 2.0, 1.0])
    job = {"job": [7], "submit_s": [0.0], "truth": [0], "budget_steps": [300.0]}
    only = gp.Workload([gp.Tier("a", 4)], job, curves=[curve])
    with pytest.raises(gp.InputError, match=r"^simulate: forecast_sigma is 0\.5, .* every job has"):
        gp.simulate(only, "best_value", forecast_sigma=0.5)


def test_a_limit_of_power_is_refused_where_no_power_is_known() -> None:
    jobs = [gp.Job(1, [gp.Option(0, 1, 1.0)], remaining_steps=[100.0])]
    unknown = gp.Snapshot([gp.Tier("a", 2)], jobs)
    for option in ({"power_cap_w": 500.0}, {"joule_value": 1.0}):
        (name,) = option
        with pytest.raises(gp.InputError, match=rf"^plan: {name} is .*, no tier has idle_watts or"):
            gp.plan(unknown, **option)
        with pytest.raises(gp.InputError, match=rf"^plan: {name} is .*, no tier has idle_watts or"):
            gp.simulate(workload([1]), "best_value", planner=option)
        gp.plan(gp.Snapshot([gp.Tier("a", 2, busy_watts=300.0)], jobs), **option)
    with pytest.raises(gp.InputError, match=r"^violations: power_cap_w is 500, no tier has"):
        gp.violations(unknown, gp.Plan(), power_cap_w=500.0)


def test_a_pair_where_gpus_are_exclusive_is_refused_by_its_jobs() -> None:
    def pair(snapshot: gp.Snapshot) -> gp.Plan:
        both = [gp.Allocation(7, 0, 1, partner=8), gp.Allocation(8, 0, 1, partner=7)]
        return gp.Plan(allocations=both)

    with pytest.raises(gp.InputError, match=r"^simulate: .* jobs 7 and 8 share .* exclusive"):
        gp.simulate(workload([1, 1]), pair)


def test_a_guaranteed_run_that_the_limits_end_says_so() -> None:
    tier = gp.Tier("a", 2, busy_watts=300.0)
    job = gp.Job(1, [gp.Option(0, 1, 1.0)], preemptible=False, remaining_steps=[1e4])
    young = gp.Job(2, [gp.Option(0, 1, 1.0)], remaining_steps=[1e4])
    held = [gp.Allocation(1, 0, 1, 0.0), gp.Allocation(2, 0, 1, 90.0)]
    now = gp.Snapshot([tier], [job, young], running=held, now_s=100.0)
    kept = gp.plan(now, min_run_s=60.0)
    assert {a.job for a in kept.allocations} == {1, 2}
    dark = gp.plan(now, min_run_s=60.0, power_cap_w=10.0)
    assert dark.allocations == []
    assert dark.reasons == {
        1: "gives way although it cannot be preempted: the limits leave it no room",
        2: "gives way although its guaranteed run is not over: the limits leave it no room",
    }
    assert gp.violations(now, dark, min_run_s=60.0, power_cap_w=10.0) == []
    assert len(gp.violations(now, dark, min_run_s=60.0)) == 2


def one_gpu(number: int, **options: Any) -> gp.Job:
    return gp.Job(number, [gp.Option(0, 1, 1.0)], remaining_steps=[100.0], **options)


def test_there_are_enough_for_all_only_where_nobody_waits() -> None:
    ways = [gp.Option(0, 2, 1.0)]
    jobs = [gp.Job(1, ways, remaining_steps=[100.0], priority=1)]
    jobs += [gp.Job(2, ways, remaining_steps=[100.0])]
    assert gp.plan(gp.Snapshot([gp.Tier("a", 4)], jobs)).reasons == {
        1: "gets 2 x a: there are enough for all",
        2: "gets 2 x a: there are enough for all",
    }
    plan = gp.plan(gp.Snapshot([gp.Tier("a", 3)], jobs))
    assert plan.reasons[1] == "gets 2 x a: these GPUs cost nothing now"
    assert plan.reasons[2].startswith("waits: no gang of 2 is left on a")


def test_a_guaranteed_job_that_a_quota_moves_says_so() -> None:
    ways = [gp.Option(0, 2, 2.0), gp.Option(0, 1, 1.0)]
    job = gp.Job(1, ways, remaining_steps=[100.0], preemptible=False, user="u")
    now = gp.Snapshot([gp.Tier("a", 4)], [job], running=[gp.Allocation(1, 0, 2, 0.0)], now_s=10.0)
    plan = gp.plan(now, user_quota={"u": 1})
    assert plan.reasons[1] == (
        "moves to 1 x a although it cannot be preempted: the limits leave it no room"
    )
    assert gp.violations(now, plan, user_quota={"u": 1}) == []
    assert gp.violations(now, plan, user_quota={"u": 2})


def test_gpus_are_kept_for_another_job_only_where_they_are() -> None:
    slow = gp.Job(2, [gp.Option(0, 2, 1.0), gp.Option(1, 1, 0.0)], remaining_steps=[100.0])
    first = gp.Job(1, [gp.Option(0, 2, 1.0)], remaining_steps=[1.0])
    plan = gp.plan(gp.Snapshot([gp.Tier("a", 3), gp.Tier("b", 1)], [first, slow]))
    assert [a.job for a in plan.allocations] == [1]
    assert plan.reasons[2] == "waits: no gang of 2 is left on a within the limits"


def test_a_guaranteed_job_on_gpus_that_are_none_of_its_options_says_so() -> None:
    odd = gp.Job(1, [gp.Option(0, 4, 1.0)], remaining_steps=[1e6])
    jobs = [odd, *(one_gpu(number) for number in range(2, 6))]
    held = [gp.Allocation(1, 0, 3, 0.0)]
    now = gp.Snapshot([gp.Tier("a", 4)], jobs, running=held, now_s=50.0)
    assert gp.plan(now, min_run_s=100.0).reasons[1] == (
        "gives way although its guaranteed run is not over: "
        "the 3 x a that it holds are none of its options"
    )


def test_a_guaranteed_job_for_which_too_few_gpus_are_left_says_so() -> None:
    jobs = [one_gpu(1, preemptible=False), one_gpu(2, preemptible=False)]
    held = [gp.Allocation(1, 0, 1, 0.0), gp.Allocation(2, 0, 1, 1.0)]
    plan = gp.plan(gp.Snapshot([gp.Tier("a", 1)], jobs, running=held, now_s=50.0))
    assert plan.reasons[1] == "keeps 1 x a: it cannot be preempted"
    assert plan.reasons[2] == (
        "gives way although it cannot be preempted: the GPUs do not suffice for all such jobs"
    )


def test_a_guaranteed_job_that_a_quota_parts_from_its_partner_says_so() -> None:
    jobs = [one_gpu(1, preemptible=False, user="b"), one_gpu(2, preemptible=False, user="a")]
    held = [gp.Allocation(1, 0, 1, 0.0, 2), gp.Allocation(2, 0, 1, 1.0, 1)]
    now = gp.Snapshot([gp.Tier("a", 1)], jobs, running=held, now_s=50.0)
    plan = gp.plan(now, sharing="mps", user_quota={"a": 0})
    assert plan.reasons == {
        1: "keeps 1 x a: it cannot be preempted",
        2: "gives way although it cannot be preempted: the limits leave it no room",
    }


def test_a_guaranteed_job_keeps_its_gpus_even_where_nobody_can_say_what_it_is_worth() -> None:
    slow = gp.Job(1, [gp.Option(0, 1, 1e-300)], remaining_steps=[1e300], preemptible=False)
    held = [gp.Allocation(1, 0, 1, 0.0)]
    now = gp.Snapshot([gp.Tier("a", 1)], [slow], running=held, now_s=10.0)
    plan = gp.plan(now, objective="fairness")
    assert plan.allocations == held
    assert gp.violations(now, plan) == []


@pytest.mark.parametrize("sharing", ["mig", "mps"])
def test_a_pair_that_is_together_may_stay_whatever_memory_it_needs(sharing: str) -> None:
    jobs = [one_gpu(number, preemptible=False, memory_gb=30.0) for number in (1, 2)]
    held = [gp.Allocation(1, 0, 1, 0.0, 2), gp.Allocation(2, 0, 1, 0.0, 1)]
    tier = gp.Tier("a", 1, memory_gb=40.0)
    now = gp.Snapshot([tier], jobs, running=held, now_s=10.0)
    plan = gp.plan(now, sharing=sharing)
    assert plan.allocations == held
    assert gp.violations(now, plan, sharing=sharing) == []
    apart = gp.Snapshot([tier], jobs, now_s=10.0)
    assert gp.violations(apart, plan, sharing=sharing) == [
        "jobs 1 and 2 need 60 GB together, the card has 40",
        "jobs 2 and 1 need 60 GB together, the card has 40",
    ]


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("column", ["user", "job_class"])
def test_a_name_that_is_missing_is_no_name(column: str, value: float | None) -> None:
    with pytest.raises(
        gp.InputError, match=f"^workload: {column} of row 1 of jobs is {value}, expected a text$"
    ):
        workload([1, 1], **{column: np.array(["a", value], dtype=object)})
    assert workload([1, 1], **{column: ["a", ""]}).jobs[column].tolist() == ["a", ""]


def test_a_target_without_a_curve_is_refused() -> None:
    with pytest.raises(gp.InputError, match=r"^workload: jobs have target_loss and no truth, "):
        workload([1, 1], target_loss=[0.3, 0.2])


def test_a_session_of_less_than_a_tick_is_one_of_a_tick() -> None:
    jobs = {"job": [0, 1], "submit_s": [0, 0], "duration_s": [2e-6, 1e-6]}
    run = gp.simulate(gp.Workload([gp.Tier("t", 1)], jobs), "session_fifo", session_s=1e-9)
    assert run.jobs["end_s"] == pytest.approx([3e-6, 2e-6])


@pytest.mark.parametrize("memory_gb", [-1.0, math.nan, math.inf])
def test_a_job_that_needs_no_memory_that_a_card_can_have_is_refused(memory_gb: float) -> None:
    # Else plan() leaves it out for good on a tier of unknown memory, where fifo runs it.
    expected = f"workload: job 7 has memory_gb {memory_gb:g}, expected 0 or more and finite"
    with pytest.raises(gp.InputError, match=f"^{re.escape(expected)}$"):
        workload([1], memory_gb=[memory_gb])
