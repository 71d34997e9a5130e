# SPDX-License-Identifier: Apache-2.0
"""`start_times` from Python, and the verbs that show it."""

from __future__ import annotations

import json
import math
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from slurm_world import CLUSTER_TIERS

import glidepath as gp
from glidepath import cli
from glidepath.engines.slurm import Cluster, ClusterJob, JobForecast, JobRequest, JobView
from glidepath.engines.slurm._starts import set_starts

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "data" / "traces"
TIERS = [gp.Tier("a", 1, 1)]


def job(number: int, left: list[float], submit_s: float = 0.0) -> gp.Job:
    return gp.Job(number, [gp.Option(0, 1, 1.0)], submit_s=submit_s, remaining_steps=left)


def queue() -> gp.Snapshot:
    jobs = [job(1, [10.0, 1000.0]), job(7, [5.0], 1.0), job(8, [50.0], 2.0)]
    return gp.Snapshot(TIERS, jobs, running=[gp.Allocation(1, 0, 1)], now_s=10.0)


def test_each_waiting_job_has_a_law_of_its_start() -> None:
    times = gp.start_times(queue(), "fifo")
    assert times.job.tolist() == [7, 8]
    assert times.levels.tolist() == [0.1, 0.5, 0.9]
    assert times.quantiles.shape == (3, 2)
    assert times.quantiles[[0, 2]].tolist() == [[10.0, 15.0], [1000.0, 1005.0]]
    assert pickle.loads(pickle.dumps(times)) == times
    chosen = gp.start_times(queue(), "fifo", levels=[0.25], horizon_s=100.0, samples=50, seed=3)
    assert chosen.quantiles.tolist() == [[10.0, 15.0]]
    late = gp.start_times(queue(), "fifo", levels=[0.9], horizon_s=100.0)
    assert late.quantiles.tolist() == [[math.inf, math.inf]]


def test_what_was_submitted_of_late_goes_on_to_come() -> None:
    # As much as the GPU can do, or more, for a while: the longest waits for long.
    recent = [job(20 + k, [4.0], float(k)) for k in range(10)]
    alone = gp.start_times(queue(), "srsf", levels=[0.3], samples=100).quantiles
    crowd = gp.start_times(queue(), "srsf", levels=[0.3, 0.9], recent=recent, samples=100).quantiles
    assert alone[0, 1] < crowd[0, 1]
    assert 2 * alone[0, 1] < crowd[1, 1] < math.inf
    believed = gp.start_times(queue(), "srsf", levels=[0.1], believed={8: 1.0, 7: 2.0})
    assert believed.quantiles.tolist() == [[60.0, 10.0]]  # the policy takes 8 for the shorter one


def test_the_first_start_of_a_job_costs_nothing_and_later_ones_do() -> None:
    def restarting(number: int, attained_s: float = 0.0) -> gp.Job:
        return gp.Job(
            number,
            [gp.Option(0, 1, 1.0)],
            remaining_steps=[100.0],
            submit_s=float(number),
            restart_s=50.0,
            attained_s=attained_s,
        )

    running = [gp.Allocation(1, 0, 1, 1.0)]
    new = [restarting(1, 9.0), restarting(2), restarting(3)]
    snapshot = gp.Snapshot(TIERS, new, running=running, now_s=10.0)
    assert gp.start_times(snapshot, "fifo", samples=1).quantiles[1].tolist() == [100.0, 200.0]
    again = [restarting(1, 9.0), restarting(2, 5.0), restarting(3)]
    snapshot = gp.Snapshot(TIERS, again, running=running, now_s=10.0)
    assert gp.start_times(snapshot, "fifo", samples=1).quantiles[1].tolist() == [100.0, 250.0]


@pytest.mark.parametrize("policy", ["sjf", "srtf", "srsf"])
def test_among_equals_of_one_moment_the_one_that_runs_goes_on(policy: str) -> None:
    gangs, lengths = (1, 2, 2), (10.0, 100.0, 100.0)
    jobs = [
        gp.Job(i, [gp.Option(0, gangs[i], 1.0)], remaining_steps=[lengths[i]]) for i in range(3)
    ]
    tiers = [gp.Tier("a", 3)]
    columns = {"job": [0, 1, 2], "submit_s": [0.0] * 3, "gpus": gangs, "duration_s": lengths}
    simulated = gp.simulate(gp.Workload(tiers, columns), policy).jobs["start_s"].tolist()
    times = gp.start_times(gp.Snapshot(tiers, jobs), policy, samples=1).quantiles[1]
    assert times.tolist() == simulated == [0.0, 0.0, 100.0]
    running = [gp.Allocation(1, 0, 2)]
    times = gp.start_times(gp.Snapshot(tiers, jobs, running=running), policy, samples=1)
    assert times.quantiles[1].tolist() == [0.0, 100.0]


def test_backfill_starts_a_job_on_any_tier_where_it_delays_nobody() -> None:
    tiers = [gp.Tier("a", 3), gp.Tier("b", 1)]
    gangs, lengths = (2, 3, 1), (263.0, 498.0, 385.0)
    jobs = []
    for i in range(3):
        options = [gp.Option(0, gangs[i], 1.0)]
        if gangs[i] == 1:
            options.append(gp.Option(1, 1, 1.0))
        jobs.append(gp.Job(i, options, remaining_steps=[lengths[i]]))
    times = gp.start_times(gp.Snapshot(tiers, jobs), "slurm_backfill", samples=1).quantiles[1]
    columns = {"job": [0, 1, 2], "submit_s": [0.0] * 3, "gpus": gangs, "duration_s": lengths}
    simulated = gp.simulate(gp.Workload(tiers, columns), "slurm_backfill").jobs["start_s"]
    assert times.tolist() == simulated.tolist() == [0.0, 263.0, 0.0]


def test_a_snapshot_that_cannot_be_is_refused_with_the_job() -> None:
    def refused(message: str, option: gp.Option, now_s: float = 0.0, since_s: float = 0.0) -> None:
        jobs = [job(1, [10.0]), gp.Job(2, [option], remaining_steps=[1.0])]
        running = [gp.Allocation(1, 0, 1, since_s)]
        with pytest.raises(gp.InputError, match=message):
            gp.start_times(gp.Snapshot(TIERS, jobs, running=running, now_s=now_s), "fifo")

    good = gp.Option(0, 1, 1.0)
    refused("start_times: now_s is nan, expected a finite time", good, now_s=math.nan)
    refused("start_times: since_s of job 1 is nan, expected a finite time", good, since_s=math.nan)
    refused("start_times: job 2 runs at nan steps per second", gp.Option(0, 1, math.nan))
    refused("start_times: job 2 runs at inf steps per second", gp.Option(0, 1, math.inf))
    refused("start_times: job 2 asks 0 GPUs", gp.Option(0, 0, 1.0))
    refused("start_times: job 2 only shares GPUs", gp.Option(0, 1, 1.0, sharing="mps"))


def test_arguments_of_another_kind_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"start_times: snapshot is \[\], expected a Snapshot"):
        gp.start_times([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed is 'x', expected a whole number"):
        gp.start_times(queue(), seed="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="believed is 3, expected a dict of jobs and steps"):
        gp.start_times(queue(), believed=3)  # type: ignore[arg-type]
    with pytest.raises(gp.InputError, match="policy is 'themis', expected one that is played"):
        gp.start_times(queue(), "themis")


def test_plan_shows_when_the_others_start(capsys: pytest.CaptureFixture[str]) -> None:
    workload = str(ROOT / "data" / "workloads" / "supercom")
    asked = ["plan", workload, "--users", "40", "--at-h", "6"]
    assert cli.main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    waiting = [row for row in document["jobs"] if row["state"] == "waits"]
    assert waiting
    assert all(row["starts_q10"] is None for row in document["jobs"] if row["state"] != "waits")
    for times in waiting:
        assert 0 <= times["starts_q10"] <= times["starts_q50"] <= times["starts_q90"]
    assert cli.main([*asked, "--objective", "energy", "--json"]) == 0
    # Only the order of completion times is played forward.
    rows = json.loads(capsys.readouterr().out)["jobs"]
    assert all(row["starts_q10"] is None for row in rows)


def waiting(number: int, now: float, **more: object) -> ClusterJob:
    fields = {"state": "PENDING", "submit_s": now - 100 + number, "gpus": 1, "limit_s": 3600.0}
    return ClusterJob(str(number), "me", partition="bronze", **(fields | more))  # type: ignore[arg-type]


def test_slurm_status_counts_on_all_jobs_of_the_queue() -> None:
    now = time.time()
    tier = next(tier for tier in CLUSTER_TIERS if tier.name == "bronze")
    node = (tier.nodes[0],)
    mine = waiting(5, now)
    running = [
        waiting(k - 100, now, state="RUNNING", used_s=600.0, nodes=node, start_s=now - 600)
        for k in range(tier.gpus)
    ]
    held = waiting(1, now, reason="JobHeldUser")
    first = waiting(2, now)
    views = [JobView(mine, JobRequest())]
    set_starts(Cluster(now, (*running, held, first, mine), tuple(CLUSTER_TIERS)), views)
    behind = views[0].starts_s
    assert behind is not None
    low, middle, high = behind
    assert 0 < low < middle < high <= 3000.0  # the limits end the others by then
    # A log that says how long the first one will run moves those behind it.
    views = [JobView(mine, JobRequest())]
    logs = [JobView(each, JobRequest(), base_rate=1.0) for each in running]
    for view in logs:
        view.forecast = JobForecast(remaining=(1e9,))
    set_starts(Cluster(now, (*running, first, mine), tuple(CLUSTER_TIERS)), [*views, *logs])
    assert views[0].starts_s is not None
    assert views[0].starts_s[0] >= 3000.0  # now all of them use their limits up


def test_the_bench_scores_starts_on_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    at, rows = 0.0, ["job,submit_s,gpus,duration_s"]
    for number in range(150):
        at += rng.exponential(700.0)
        rows.append(f"{number},{at:.0f},{rng.integers(1, 4)},{np.exp(rng.normal(7, 1)):.0f}")
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(rows) + "\n")
    asked = ["bench", "starts", str(path), "--gpus", "8", "--moments", "8", "--json"]
    errors = ["--forecast-sigma", "0", "--forecast-sigma", "0.5"]
    assert cli.main([*asked, "-p", "fifo", "-p", "srsf", *errors]) == 0
    fifo, noisy_fifo, _, noisy = json.loads(capsys.readouterr().out)
    assert (fifo["policy"], fifo["forecast_sigma"], noisy["policy"], noisy["forecast_sigma"]) == (
        "fifo", 0, "srsf", 0.5,
    )  # fmt: skip
    assert fifo["coverage"] == 1.0  # forecasts without an error give the simulation itself
    assert fifo["error"] < 1e-9
    assert fifo["error_expected"] == fifo["error_of_known"] == 0.0
    assert fifo["error_of_limits"] > 0.2
    for row in (noisy_fifo, noisy):
        assert row["waiting"] > 10
        assert 0 < row["coverage_se"] < 0.3
        assert 0.5 < row["coverage"] <= 1.0
        assert row["ratio"] < 1.0
        assert row["error_of_known"] < row["error"]  # durations are most of what is in doubt
        assert 0.5 < row["error_expected"] / row["error"] < 2.0


def test_the_bench_scores_starts_on_traces_drawn_again(tmp_path: Path) -> None:
    from glidepath._bench import starts

    rng = np.random.default_rng(1)
    jobs = {
        "job": np.arange(60), "submit_s": np.cumsum(rng.exponential(300.0, 60)),
        "gpus": rng.integers(1, 4, 60), "duration_s": np.exp(rng.normal(7, 1, 60)),
    }  # fmt: skip
    given = gp.Workload([gp.Tier("a", 6)], jobs)
    first, other = (starts._drawn_again(given, seed).jobs for seed in (0, 1))
    gaps = [np.sort(np.diff(each["submit_s"])) for each in (given.jobs, first, other)]
    np.testing.assert_allclose(gaps[1], gaps[0])
    np.testing.assert_allclose(gaps[2], gaps[0])
    assert {*first["duration_s"]} < {*given.jobs["duration_s"]}
    assert first["duration_s"].tolist() != other["duration_s"].tolist()
    asked = {"policies": ["srsf"], "sigmas": [0.5], "moments": 4, "redraw": True}
    (alone,), (several,) = (starts.run(given, seeds=seeds, **asked) for seeds in (1, 4))
    assert math.isnan(alone["coverage_se"])  # one draw does not tell how others would differ
    assert several["coverage_se"] > 0
    assert several["waiting"] > alone["waiting"]


def test_starts_are_covered_and_better_than_limits_on_a_public_trace() -> None:
    from glidepath._bench import starts

    path = TRACES / "philly_0e4a51_480.csv.gz"
    if not path.exists():
        pytest.skip("the shared trace is not on this machine")
    workload = gp.Workload.from_trace(path, gpus=60)
    rows = starts.run(workload, policies=["first_fit", "las"], sigmas=[0.5], moments=8, seeds=2)
    for row in rows:
        assert row["ratio"] < 0.5
        assert 0.6 < row["coverage"] <= 1.0
