# SPDX-License-Identifier: Apache-2.0
"""What `simulate` counts and when it asks: scores, slow steps, limits in time, jobs without end."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

STEPS = np.arange(1, 201) * 10.0
SCORES = 0.9 - 0.8 * np.exp(-STEPS / 400)


def one_curve(values: np.ndarray[Any, Any], direction: str, target: float) -> gp.Workload:
    curve = gp.Trace(STEPS, values, direction=direction, metric="value")
    job = {"job": 0, "submit_s": 0, "truth": 0, "target_loss": target, "budget_steps": 1500}
    return gp.Workload([gp.Tier("t", 1)], {key: [one] for key, one in job.items()}, curves=[curve])


@pytest.mark.parametrize("policy", ["dare", "best_value", "slaq", "gittins"])
def test_a_score_ends_where_it_first_is_as_high_as_its_target(policy: str) -> None:
    score = gp.simulate(one_curve(SCORES, "max", 0.7), policy, stop_at_target=True)
    loss = gp.simulate(one_curve(-SCORES, "min", -0.7), policy, stop_at_target=True)
    assert score.jobs["outcome"].tolist() == ["target"]
    assert score.jobs["end_s"][0] == 560 == STEPS[np.argmax(SCORES >= 0.7)]
    assert score.events == loss.events
    low = gp.simulate(one_curve(1 - SCORES, "min", 0.3), policy, stop_at_target=True)
    assert low.jobs["end_s"][0] == 560


def test_a_score_of_a_folder_is_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "truth").mkdir()
    (tmp_path / "tiers.csv").write_text("name,nodes,gpus_per_node\nt,1,1\n")
    header = "job,submit_s,gpus,curve,target_loss,budget_steps,steps_per_s_t\n"
    (tmp_path / "jobs.csv").write_text(f"{header}0,0,1,a,0.7,1500,1\n")
    rows = [f"a,{step:.0f},{value}\n" for step, value in zip(STEPS, SCORES, strict=True)]
    (tmp_path / "truth" / "score.csv").write_text("".join(["curve,step,value\n", *rows]))
    about = json.dumps({"metric": "accuracy", "direction": "max"})
    (tmp_path / "truth" / "score.json").write_text(about)
    assert gp.simulate(gp.read_workload(tmp_path), "dare").jobs["end_s"][0] == 560


def test_a_policy_of_ones_own_sees_a_score_turned_round_as_forecasts_do() -> None:
    seen: list[tuple[float, float]] = []

    def look(snapshot: gp.Snapshot) -> gp.Plan:
        for job in snapshot.jobs:
            if len(job.observed_loss):
                seen.append((job.observed_loss[-1], job.target_loss))
        return gp.plan(snapshot)

    workload = one_curve(SCORES, "max", 0.7)
    gp.simulate(workload, look, round_s=100.0)
    assert seen[0] == (1 - SCORES[9], 1 - 0.7)
    assert workload.curves[0].direction == "max"
    assert workload.curves[0].loss[9] == SCORES[9]


@pytest.mark.parametrize("policy", ["gittins", "best_value", "dare"])
def test_an_accuracy_is_simulated_as_the_share_of_errors(policy: str) -> None:
    scores = one_curve(SCORES, "max", 0.7)
    errors = one_curve(1 - np.asarray(SCORES), "min", 1 - 0.7)
    rising, falling = gp.simulate(scores, policy).jobs, gp.simulate(errors, policy).jobs
    assert rising["end_s"] == falling["end_s"]
    assert rising["outcome"] == falling["outcome"]


@pytest.mark.parametrize("policy", ["sia", "goodput"])
def test_slow_steps_are_counted_by_the_time_that_they_take(policy: str) -> None:
    n = 40  # of 12 epochs of 4 hours each, one after the other
    jobs = {
        "job": list(range(n)),
        "submit_s": [2e5 * k for k in range(n)],
        "budget_steps": [12] * n,
        "steps_per_s": [[1 / 14400]] * n,
    }
    run = gp.simulate(gp.Workload([gp.Tier("t", 1)], jobs), policy, spans=False)
    assert (run.jobs["outcome"] == "finished").all()
    assert run.events > 110_000


def two_long_jobs() -> gp.Workload:
    jobs = {"job": [0, 1], "submit_s": [0, 10], "duration_s": [1e6, 2e6]}
    return gp.Workload([gp.Tier("t", 1)], jobs)


def test_a_wait_is_bounded_also_where_nothing_happens() -> None:
    run = gp.simulate(two_long_jobs(), "best_value", planner={"max_wait_s": 7200.0})
    assert run.jobs["start_s"].tolist() == [0, 7210]
    assert gp.simulate(two_long_jobs(), "best_value").jobs["start_s"].tolist() == [0, 1e6]


def test_a_wait_that_is_long_enough_is_looked_at_in_the_next_round() -> None:
    options: dict[str, Any] = {"planner": {"max_wait_s": 7200.0}, "round_s": 1000.0}
    run = gp.simulate(two_long_jobs(), "best_value", **options)
    assert run.jobs["start_s"].tolist() == [0, 8000]


def test_a_guaranteed_run_gives_way_as_soon_as_it_is_over() -> None:
    jobs = {"job": [0, 1], "submit_s": [0, 10], "duration_s": [1e6, 100]}
    run = gp.simulate(
        gp.Workload([gp.Tier("t", 1)], jobs), "best_value", planner={"min_run_s": 600.0}
    )
    assert run.jobs["start_s"].tolist() == [0, 600]


def test_fifo_perf_gives_nobody_a_tier_whose_memory_is_too_small() -> None:
    big = gp.Tier("big", 4, memory_gb=40.0)
    jobs = {
        "job": [0, 1, 2],
        "submit_s": [0.0] * 3,
        "gpus": [3, 4, 1],
        "duration_s": [20000.0, 1000.0, 20000.0],
        "memory_gb": [20.0] * 3,
    }
    alone = gp.simulate(gp.Workload([big], jobs), "fifo_perf")
    beside = gp.Workload([big, gp.Tier("small", 8, memory_gb=11.0)], jobs)
    starts = gp.simulate(beside, "fifo_perf").jobs["start_s"]
    assert starts.tolist() == alone.jobs["start_s"].tolist()


@pytest.mark.parametrize("policy", ["fifo", "max_min"])
def test_a_fair_share_has_no_tier_on_which_the_gang_never_fits(policy: str) -> None:
    def fairness(rate: float) -> list[float]:
        jobs = {
            "job": [0, 1],
            "submit_s": [0, 0],
            "gpus": [8, 8],
            "budget_steps": [1e4, 1e4],
            "steps_per_s": [[1.0, rate]] * 2,
        }
        workload = gp.Workload([gp.Tier("a", 8), gp.Tier("b", 4)], jobs)
        run = gp.simulate(workload, policy)
        return [*run.jobs["ftf"], *run.jobs["ftf_static"]]

    assert fairness(1.0) == fairness(0.0)


def test_what_a_job_has_had_never_falls_when_it_no_longer_shares_gpus() -> None:
    jobs = {
        "job": [0, 1],
        "submit_s": [0, 0],
        "budget_steps": [4000, 4000],
        "steps_per_s": [[1.0], [1.0]],
        "sm_activity": [0.2, 0.2],
        "gangs": [{2: [1.8]}, {2: [1.8]}],
    }
    seen: list[tuple[float, float]] = []

    def apart_later(snapshot: gp.Snapshot) -> gp.Plan:
        seen.append((snapshot.now_s, snapshot.jobs[0].attained_gpu_s))
        ids = [job.id for job in snapshot.jobs]
        if snapshot.now_s < 300:
            pair = [gp.Allocation(0, 0, 2, partner=1), gp.Allocation(1, 0, 2, partner=0)]
            return gp.Plan(allocations=pair)
        return gp.Plan(allocations=[gp.Allocation(one, 0, 1) for one in ids])

    gp.simulate(gp.Workload([gp.Tier("t", 2)], jobs), apart_later, sharing="mps", round_s=100.0)
    # 2 GPUs for two, then one for each
    assert seen[1:6] == [(100, 100), (200, 200), (300, 300), (400, 400), (500, 500)]


def test_jobs_of_whole_seconds_that_share_gpus_end_within_a_second() -> None:
    tier = gp.Tier("t", 1, memory_gb=40, idle_watts=10, busy_watts=110)
    jobs = {"job": [1, 2], "submit_s": 0, "duration_s": 100, "job_class": ["x", "y"]}
    workload = gp.Workload([tier], jobs, pairs=[gp.PairSpeeds("x", "y", 0, 0.7, 0.35)])

    def together(now: gp.Snapshot) -> gp.Plan:
        ids = [job.id for job in now.jobs]
        partner = {1: 2, 2: 1} if len(ids) == 2 else {}
        return gp.Plan([gp.Allocation(i, 0, 1, now.now_s, partner=partner.get(i, -1)) for i in ids])

    run = gp.simulate(workload, together, sharing="mps")
    first = 100 / 0.7
    assert run.jobs["end_s"] == pytest.approx([first, first + 100 - 0.35 * first], abs=1e-5)
    assert run.jobs["gpu_seconds"].sum() == pytest.approx(run.makespan_s, abs=1e-5)


def test_a_run_in_which_no_job_ends_has_all_rows_and_columns() -> None:
    tier = gp.Tier("t", 4, idle_watts=50.0, busy_watts=300.0)
    jobs = {"job": [0, 1], "submit_s": [0, 0], "duration_s": [100, 100]}
    run = gp.simulate(gp.Workload([tier], jobs), "best_value", planner={"power_cap_w": 100.0})
    assert run.jobs["outcome"].tolist() == ["unfinished"] * 2
    assert {len(column) for column in run.jobs.values()} == {2}
    assert np.isnan(run.jobs["ftf"]).all()
    assert run.tier_accounts["name"].tolist() == ["t"]
    assert math.isnan(run.carbon_kg)
    assert math.isnan(run.worst_ftf)
    assert len(run.to_pandas()) == 2


def test_a_comparison_becomes_a_table_in_markdown_as_the_cookbook_says() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("tabulate")
    jobs = {"job": [0, 1], "submit_s": [0, 0], "duration_s": [100, 300]}
    found = gp.compare(gp.Workload([gp.Tier("t", 1)], jobs), ["fifo", "srtf"], seeds=2)
    means = found.to_pandas().groupby("policy")[["mean_jct_s", "p95_jct_s"]].mean()
    assert [line.split()[1] for line in means.to_markdown().splitlines()[2:]] == ["fifo", "srtf"]


def test_gpus_count_up_to_when_the_last_of_them_were_given_back() -> None:
    tier = gp.Tier("t", 2, idle_watts=50.0, busy_watts=300.0)
    jobs = {"job": [0, 1, 2], "submit_s": [0, 0, 4000], "gpus": [1, 1, 2]}
    workload = gp.Workload([tier], jobs | {"duration_s": [10, 5000, 10]})

    def for_a_while(snapshot: gp.Snapshot) -> gp.Plan:
        held = [gp.Allocation(job.id, 0, 1) for job in snapshot.jobs]
        return gp.Plan(allocations=held if snapshot.now_s < 1000 else [])

    run = gp.simulate(workload, for_a_while)
    assert run.makespan_s == 10
    assert run.gpu_seconds == 4010
    assert run.utilization == pytest.approx(4010 / 8000)
    joules = 4010 * 300 + 3990 * 50
    assert run.energy_kwh == pytest.approx(joules / 3.6e6)
    assert run.tier_accounts["utilization"].tolist() == pytest.approx([4010 / 8000])


def test_a_job_that_can_never_run_is_unfinished_with_rounds_as_without() -> None:
    jobs = {"job": [0, 1], "submit_s": [0, 0], "gpus": [1, 2], "user": ["a", "b"]}
    workload = gp.Workload([gp.Tier("t", 4)], jobs | {"duration_s": [100, 100]})
    planner = {"user_quota": {"b": 1}}
    for round_s in (None, 60.0):
        run = gp.simulate(workload, "best_value", planner=planner, round_s=round_s)
        assert run.jobs["outcome"].tolist() == ["finished", "unfinished"]


@pytest.mark.parametrize(
    "options",
    [
        {"failures": {"node_every_s": 20_000.0}, "planner": {"user_quota": {"b": 1}}},
        {"planner": {"user_quota": {"b": 1}, "max_wait_s": 1e9}},
    ],
    ids=["nodes that fail meanwhile", "a wait of many rounds"],
)
def test_a_job_that_can_never_run_is_unfinished_whatever_else_comes_in_its_rounds(
    options: dict[str, Any],
) -> None:
    jobs = {"job": [0, 1], "submit_s": [0, 0], "gpus": [1, 2], "user": ["a", "b"]}
    workload = gp.Workload([gp.Tier("t", 4)], jobs | {"duration_s": [100, 100]})
    run = gp.simulate(workload, "best_value", round_s=60.0, **options)
    assert run.jobs["outcome"].tolist() == ["finished", "unfinished"]


def test_a_job_that_waits_for_more_rounds_than_an_idle_cluster_plays_has_its_turn() -> None:
    tier = gp.Tier("t", 1, idle_watts=100, busy_watts=300)
    workload = gp.Workload([tier], {"job": [0], "submit_s": [0], "duration_s": [100]})
    planner = {"joule_value": 1.0, "max_wait_s": 1e7}
    run = gp.simulate(workload, "best_value", planner=planner, round_s=60.0)
    assert run.jobs["start_s"].tolist() == [math.ceil(1e7 / 60) * 60]


def test_a_policy_that_waits_for_its_hour_is_asked_until_then() -> None:
    jobs = {"job": [0], "submit_s": [0], "duration_s": [100]}

    def later(snapshot: gp.Snapshot) -> gp.Plan:
        held = [gp.Allocation(job.id, 0, 1) for job in snapshot.jobs]
        return gp.Plan(allocations=held if snapshot.now_s >= 86400 else [])

    run = gp.simulate(gp.Workload([gp.Tier("t", 1)], jobs), later, round_s=60.0)
    assert run.jobs["start_s"].tolist() == [86400]


def test_a_restart_of_less_than_a_second_counts_beside_whole_seconds() -> None:
    jobs = {"job": [0], "submit_s": [0], "duration_s": [100]}
    workload = gp.Workload([gp.Tier("t", 1)], jobs)

    def late(snapshot: gp.Snapshot) -> gp.Plan:
        held = [gp.Allocation(job.id, 0, 1) for job in snapshot.jobs]
        return gp.Plan(allocations=held if snapshot.now_s >= 60 else [])

    run = gp.simulate(workload, late, round_s=60.0, sleep={"after_s": 10.0, "wake_s": 0.4})
    assert run.jobs["end_s"].tolist() == [160.4]


@pytest.mark.parametrize(
    ("gpus", "count", "most"), [(1, 2, 1.02), (1, 5, 1.02), (2, 3, 0.78), (3, 7, 0.82)]
)
def test_makespan_changes_who_runs_more_seldom_the_dearer_a_restart_is(
    gpus: int, count: int, most: float
) -> None:
    jobs = {"job": list(range(count)), "submit_s": [0.0] * count, "duration_s": [1e5] * count}
    workload = gp.Workload([gp.Tier("t", gpus)], jobs)
    ends = {
        policy: gp.simulate(workload, policy, restart_s=300.0).makespan_s
        for policy in ("makespan", "fifo")
    }
    assert ends["makespan"] <= most * ends["fifo"]


@pytest.mark.parametrize("restart_s", [0.0, 60.0, 1000.0])
@pytest.mark.parametrize(("gpus", "apart_s"), [(8, 1000.0), (16, 0.0), (16, 300.0)])
def test_makespan_ends_within_a_percent_of_first_fit_or_before_whatever_a_restart_costs(
    gpus: int, apart_s: float, restart_s: float
) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        jobs = {
            "job": range(100),
            "submit_s": np.cumsum(rng.exponential(1, 100)) * apart_s,
            "gpus": rng.choice([1, 1, 2, 4, 8], 100),
            "duration_s": np.exp(rng.normal(8, 1.2, 100)),
        }
        workload = gp.Workload([gp.Tier("t", gpus)], jobs)
        ours, theirs = (
            gp.simulate(workload, policy, restart_s=restart_s).makespan_s
            for policy in ("makespan", "first_fit")
        )
        assert ours <= 1.01 * theirs, seed


def test_makespan_is_the_same_beside_a_tier_that_no_job_may_use() -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "job": range(60),
        "submit_s": np.cumsum(rng.exponential(300, 60)),
        "gpus": rng.choice([1, 2, 4], 60),
        "duration_s": np.exp(rng.normal(8, 1, 60)),
    }
    one = gp.Workload([gp.Tier("a", 8)], columns)
    unusable = {**columns, "steps_per_s": [[1.0, 0.0]] * 60}
    two = gp.Workload([gp.Tier("a", 8), gp.Tier("b", 64)], unusable)
    for restart_s in (0.0, 60.0):
        plain, beside = (gp.simulate(w, "makespan", restart_s=restart_s) for w in (one, two))
        assert plain.jobs["end_s"].tolist() == beside.jobs["end_s"].tolist()


def test_of_two_limits_of_a_user_the_smaller_holds() -> None:
    jobs = {"job": [0, 1, 2], "submit_s": [0, 0, 0], "user": ["a", "a", "b"]}
    workload = gp.Workload([gp.Tier("t", 4)], jobs | {"duration_s": [100, 100, 100]})
    for quota, ends in ((1, [100, 200, 100]), (3, [100, 100, 100])):
        planner = {"user_quota": {"a": quota}}
        run = gp.simulate(workload, "best_value", user_gpus=2, planner=planner)
        assert sorted(run.jobs["end_s"][:2]) == ends[:2]
        assert run.jobs["end_s"][2] == 100
    tight = gp.simulate(workload, "best_value", user_gpus=1, planner={"user_quota": {"a": 3}})
    assert sorted(tight.jobs["end_s"]) == [100, 100, 200]


def test_the_targets_that_are_drawn_for_scores_are_what_other_runs_reached(tmp_path: Path) -> None:
    supercom = Path(__file__).parents[2] / "data" / "workloads" / "supercom"
    (tmp_path / "truth").mkdir()
    for name in ("tiers.csv", "classes.csv", "habits.csv"):
        (tmp_path / name).write_bytes((supercom / name).read_bytes())
    with gzip.open(supercom / "truth" / "curves.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["value"] = f"-{row['value']}"
    with (tmp_path / "truth" / "curves.csv").open("w", newline="") as file:
        write = csv.DictWriter(file, rows[0])
        write.writeheader()
        write.writerows(rows)
    (tmp_path / "truth" / "curves.json").write_text(json.dumps({"direction": "max"}))
    scores = gp.generate_workload(tmp_path, users=10)
    losses = gp.generate_workload(supercom, users=10)
    assert (scores.jobs["target_loss"] == -losses.jobs["target_loss"]).all()
    assert gp.simulate(scores, "dare").mean_jct_s == gp.simulate(losses, "dare").mean_jct_s


@pytest.mark.parametrize("policy", ["sia", "goodput", "pollux"])
def test_a_round_of_no_whole_number_of_ticks_is_a_round_all_the_same(policy: str) -> None:
    n = 40
    jobs = {
        "job": list(range(n)),
        "submit_s": [400.0 * k for k in range(n)],
        "budget_steps": [600.0] * n,
        "steps_per_s": [[1.0]] * n,
    }
    workload = gp.Workload([gp.Tier("t", 2)], jobs)
    for round_s in (100 / 3, 33.3333333):
        run = gp.simulate(workload, policy, round_s=round_s, spans=False)
        assert (run.jobs["outcome"] == "finished").all()
        assert (run.jobs["start_s"] - run.jobs["submit_s"]).max() <= 300


@pytest.mark.parametrize("restart_s", [0.0, 1.0, 120.0])
def test_a_session_of_dare_ends_as_long_after_a_restart_as_after_a_first_start(
    restart_s: float,
) -> None:
    curves = [gp.Trace(STEPS, 0.3 + 2 * np.exp(-STEPS / tau)) for tau in (500.0, 150.0)]
    jobs = {
        "job": [0, 1, 2],
        "submit_s": [0, 0, 1010],
        "truth": [0, 0, 1],
        "target_loss": [0.301, 0.301, 0.31],
        "budget_steps": [2000] * 3,
    }
    workload = gp.Workload([gp.Tier("t", 1)], jobs, curves=curves)
    run = gp.simulate(workload, "dare", session_s=300, restart_s=restart_s)
    assert run.jobs["start_s"][:2].tolist() == [0, 300]
    # One session after the other: the second run of job 0 or 1 begins at 600 s with a restart.
    begins = 600 + restart_s
    assert run.jobs["start_s"][2] == begins + 300 * math.ceil((1010 - begins) / 300)


@pytest.mark.parametrize("policy", ["max_min", "max_min_unaware", "fifo_perf", "isolated"])
def test_a_job_that_waits_for_its_share_has_it_at_the_next_renewal(policy: str) -> None:
    # Shares were last renewed when the first job ended.
    jobs = {"job": [0, 1, 2], "submit_s": [1000, 1200, 1e6], "duration_s": [100] * 3}
    run = gp.simulate(gp.Workload([gp.Tier("t", 1)], jobs), policy)
    assert run.jobs["start_s"].tolist() == [1000, 1100 + 1920, 1e6]


@pytest.mark.parametrize("policy", [each for each in gp.POLICIES if each != "pollux"])  # it draws
def test_a_workload_that_begins_whole_rounds_later_is_served_alike(policy: str) -> None:
    draw = np.random.default_rng(1)
    submit = np.sort(draw.choice(4000, 14, replace=False)).astype(float)
    seconds = draw.integers(50, 4000, 14).astype(float)
    gangs = draw.choice([1, 1, 2, 4], 14)
    rates = np.stack([np.ones(14), draw.uniform(1.2, 3, 14)], axis=1)

    def served(start_s: float, **more: Any) -> dict[str, Any]:
        jobs = {"job": range(14), "gpus": gangs, "duration_s": seconds, **more}
        times = {"submit_s": submit + start_s, "deadline_s": submit + 3 * seconds + start_s}
        tiers = [gp.Tier("a", 2, 2), gp.Tier("b", 1, 4)][: 2 if more else 1]
        ran = gp.simulate(gp.Workload(tiers, {**jobs, **times}), policy).jobs
        moments = {key: ran[key] - start_s for key in ("start_s", "end_s")}
        return {**moments, **{key: ran[key] for key in ("wait_s", "preemptions", "gpu_seconds")}}

    for more in ({}, {"steps_per_s": rates}):
        first, later = served(0, **more), served(3600, **more)
        for key, column in first.items():
            assert later[key].tolist() == pytest.approx(column.tolist(), abs=2e-6), key


def test_a_job_that_is_given_up_is_not_in_time_and_without_work_has_no_fairness() -> None:
    jobs = {"job": [0, 1], "submit_s": [0, 0], "duration_s": [100, 100], "deadline_s": [500, 500]}
    workload = gp.Workload([gp.Tier("t", 1)], jobs)

    def gives_up(snapshot: gp.Snapshot) -> gp.Plan:
        stop = [job.id for job in snapshot.jobs if job.id == 1 and snapshot.now_s >= 50]
        held = [gp.Allocation(job.id, 0, 1) for job in snapshot.jobs if job.id == 0]
        return gp.Plan(allocations=held, stop=stop)

    run = gp.simulate(workload, gives_up, round_s=50.0)
    assert run.jobs["outcome"].tolist() == ["finished", "never"]
    assert run.share_in_time == 0.5
    for ftf, worst in (("ftf", run.worst_ftf), ("ftf_static", run.worst_ftf_static)):
        assert np.isnan(run.jobs[ftf][1])
        assert worst == run.jobs[ftf][0]


def test_a_gang_for_which_nodes_have_no_room_lets_those_behind_it_run() -> None:
    def starts(third: int, durations: list[float]) -> list[float]:
        jobs = {"job": range(5), "submit_s": [0, 0, 10, 20, 20], "gpus": [3, 3, third, 1, 1]}
        workload = gp.Workload([gp.Tier("t", 2, 4)], jobs | {"duration_s": durations})
        return gp.simulate(workload, "slurm_backfill", in_nodes=True).jobs["start_s"].tolist()

    assert starts(2, [9000, 9000, 1000, 100, 100]) == [0, 0, 9000, 20, 20]
    assert starts(2, [500, 9000, 1000, 9000, 9000]) == [0, 0, 500, 20, 20]  # there is room for all
    # The gang of 4 has the first node from 500 s on: who would sit there then waits.
    assert starts(4, [500, 9000, 1000, 9000, 400]) == [0, 0, 500, 500, 20]


@pytest.mark.parametrize(
    ("policy", "shorter"), [("gittins", 0), ("fair_finish", 0), ("dare", 0), ("makespan", 500)]
)
def test_a_gang_for_which_no_layout_has_room_lets_those_behind_it_run(
    policy: str, shorter: int
) -> None:
    curves = [gp.Trace(STEPS, 0.3 + np.exp(-STEPS / 300))]
    jobs = {"job": range(5), "submit_s": [0.0] * 5, "gpus": [3, 3, 2, 1, 1], "truth": [0] * 5}
    budgets = [2000, 2000, 2000, 2000 - shorter, 2000 - shorter]
    work = {"budget_steps": budgets, "target_loss": [0.0] * 5}
    workload = gp.Workload([gp.Tier("t", 2, 4)], jobs | work, curves=curves)
    run = gp.simulate(workload, policy, in_nodes=True)
    assert sorted(run.jobs["start_s"])[:4] == [0] * 4
    assert run.jobs["start_s"][2] > 0


def test_a_gang_of_a_job_with_a_curve_moves_others_under_gittins() -> None:
    curves = [gp.Trace(STEPS, 0.3 + np.exp(-STEPS / 300))]
    gangs = [3, 3, 1, 1, 4]  # those of 1 stay apart when those of 3 have ended
    budgets = [100, 100, 2000, 2000, 50]
    jobs = {"job": list(range(5)), "submit_s": [0.0] * 4 + [200.0], "gpus": gangs}
    work = {"budget_steps": budgets, "truth": [0] * 5, "target_loss": [0.0] * 5}
    workload = gp.Workload([gp.Tier("t", 2, 4)], jobs | work, curves=curves)
    run = gp.simulate(workload, "gittins", in_nodes=True)
    assert run.jobs["start_s"][4] == 200
    assert run.preemptions == 1


@pytest.mark.parametrize("policy", ["best_value", "goodput", "sia", "pollux", "dare"])
def test_a_gang_that_moves_in_the_instant_of_its_start_is_not_preempted(policy: str) -> None:
    jobs = {"job": range(4), "submit_s": [0.0] * 4, "gpus": [1, 2, 3, 2], "duration_s": [100.0] * 4}
    workload = gp.Workload([gp.Tier("t", 2, 4)], jobs)
    run = gp.simulate(workload, policy, in_nodes=True, restart_s=30)
    assert run.jobs["end_s"].tolist() == [100] * 4
    assert run.preemptions == 0
    assert run.tier_accounts["starts"].tolist() == [4] == [len(run.spans["job"])]


def test_a_policy_of_ones_own_sees_what_a_restart_will_cost_before_the_first_start() -> None:
    seen: list[list[float]] = []

    def look(snapshot: gp.Snapshot) -> gp.Plan:
        seen.append([job.restart_s for job in snapshot.jobs])
        return gp.plan(snapshot)

    jobs = {"job": [0, 1], "submit_s": [0.0, 300.0], "duration_s": [1000.0, 10.0]}
    workload = gp.Workload([gp.Tier("t", 1)], jobs | {"restart_s": [-1.0, 5.0]})
    run = gp.simulate(workload, look, restart_s=60)
    assert seen[:2] == [[60], [60, 5]]
    assert run.jobs["end_s"].tolist() == [1070, 310]  # the first start costs nothing


def test_jobs_of_no_time_and_jobs_that_wait_for_years_are_placed_under_makespan() -> None:
    jobs = {"job": [0, 1, 2], "submit_s": [0.0, 1.0, 300.0], "duration_s": [1000.0, 1e-7, 1e-7]}
    run = gp.simulate(gp.Workload([gp.Tier("t", 1)], jobs), "makespan")
    assert run.jobs["outcome"].tolist() == ["finished"] * 3
    jobs = {"job": [0, 1], "submit_s": [0.0, 0.0], "duration_s": [1e9, 1.0], "gpus": [1, 16]}
    run = gp.simulate(gp.Workload([gp.Tier("t", 16)], jobs), "makespan", round_s=1e8)
    assert run.jobs["outcome"].tolist() == ["finished"] * 2


@pytest.mark.parametrize("policy", ["srtf", "srsf", "gittins", "best_value"])
def test_a_job_shorter_than_the_clock_can_tell_takes_a_tick(policy: str) -> None:
    jobs = {"job": range(4), "submit_s": [0.0] * 4, "duration_s": [1e-7, 1000.0, 1e-6, 2e-6]}
    workload = gp.Workload([gp.Tier("t", 2)], jobs | {"gpus": [1, 1, 1, 2]})
    run = gp.simulate(workload, policy, restart_s=60)
    assert run.jobs["end_s"] == pytest.approx([1e-6, 1000 + 3e-6, 1e-6, 3e-6], rel=1e-15, abs=0)
    assert run.preemptions == 0  # none in the instant of its start
    assert len(run.spans["job"]) == 4


def test_a_job_that_crashes_in_the_instant_in_which_its_node_fails_has_failed_once() -> None:
    jobs = {"job": [0], "submit_s": [0.0], "duration_s": [1e6]}
    workload = gp.Workload([gp.Tier("t", 1)], jobs)
    often = {"node_every_s": 1000, "repair_s": 60, "job_every_s": 500, "checkpoint_s": 0}
    for seed in range(4):
        run = gp.simulate(workload, "fifo", failures=often, seed=seed)
        assert len(run.spans["job"]) == run.failures + 1
        assert run.jobs["failures"].tolist() == [run.failures]
