# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

ROOT = Path(__file__).parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"
TRACES = ROOT.parent / "shared" / "data" / "traces"


def trace(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s,gpus,duration_s\n" + text)
    return path


@pytest.fixture(scope="module")
def supercom() -> gp.Workload:
    return gp.read_workload(SUPERCOM)


def fifo_of_ten_lines(snapshot: gp.Snapshot) -> gp.Plan:
    kept = list(snapshot.running)
    room = [tier.gpus for tier in snapshot.tiers]
    for held in kept:
        room[held.tier] -= held.gpus
    for job in snapshot.jobs:
        if any(held.job == job.id for held in kept):
            continue
        fitting = [o for o in job.options if o.gpus <= room[o.tier]]
        if not fitting:
            break
        best = max(fitting, key=lambda option: option.steps_per_s)
        room[best.tier] -= best.gpus
        kept.append(gp.Allocation(job.id, best.tier, best.gpus, snapshot.now_s))
    return gp.Plan(allocations=kept)


@pytest.mark.parametrize(
    ("policy", "mean", "preemptions"), [("fifo", 405836.292, 0), ("srtf", 179684.673, 315)]
)
def test_published_results_are_reproduced(policy: str, mean: float, preemptions: int) -> None:
    path = TRACES / "philly_0e4a51_480.csv.gz"
    if not path.exists():
        pytest.skip("the shared trace is not on this machine")
    run = gp.simulate(gp.Workload.from_trace(path, gpus=60), policy)
    assert run.mean_jct_s == pytest.approx(mean, rel=1e-6)
    assert run.preemptions == preemptions


def test_a_python_policy_of_ten_lines_is_fifo(supercom: gp.Workload) -> None:
    ours = gp.simulate(supercom, fifo_of_ten_lines)
    named = gp.simulate(supercom, "fifo")
    assert ours.policy == "fifo_of_ten_lines"
    np.testing.assert_array_equal(ours.jobs["end_s"], named.jobs["end_s"])


def test_events_are_what_happened_and_a_policy_is_called_once_for_an_instant() -> None:
    jobs = {"job": range(4), "submit_s": [0, 0, 5, 5], "gpus": [1, 2, 2, 4], "duration_s": [9] * 4}
    calls = []

    def counted(snapshot: gp.Snapshot) -> gp.Plan:
        calls.append(snapshot.now_s)
        free, kept = 4, []
        for job in snapshot.jobs:
            gpus = job.options[0].gpus
            if gpus <= free:
                kept.append(gp.Allocation(job.id, 0, gpus, snapshot.now_s))
                free -= gpus
        return gp.Plan(kept)

    run = gp.simulate(gp.Workload([gp.Tier("a", 4)], jobs), counted)
    assert run.events == 8  # four arrivals and four ends
    assert calls == sorted(set(calls))
    assert len(calls) < 8


def test_a_policy_sees_prefixes_only(supercom: gp.Workload) -> None:
    truths = supercom.curves
    jobs = supercom.jobs
    seen = 0

    def spy(snapshot: gp.Snapshot) -> gp.Plan:
        nonlocal seen
        for job in snapshot.jobs:
            assert not hasattr(job, "truth")
            steps = job.observed_step
            assert steps.size == 0 or steps[-1] <= job.steps_done
            truth = truths[jobs["truth"][job.id]]
            np.testing.assert_array_equal(job.observed_loss, truth.loss[: steps.size])
            seen = max(seen, steps.size)
        return fifo_of_ten_lines(snapshot)

    gp.simulate(supercom, spy, round_s=3600)
    assert seen > 20


def test_columns_agree_with_each_other(supercom: gp.Workload) -> None:
    run = gp.simulate(supercom, "dare")
    jobs = run.jobs
    assert set(jobs) >= {
        "job", "submit_s", "start_s", "end_s", "jct_s", "wait_s", "preemptions", "gpu_seconds",
        "energy_j",
    }  # fmt: skip
    np.testing.assert_allclose(jobs["jct_s"], jobs["end_s"] - jobs["submit_s"])
    held = np.zeros(len(supercom))
    np.add.at(held, run.spans["job"], run.spans["end_s"] - run.spans["start_s"])
    np.testing.assert_allclose(jobs["wait_s"], jobs["jct_s"] - held, atol=1e-5)
    assert run.mean_jct_s == pytest.approx(jobs["jct_s"].mean())
    assert run.p95_jct_s == pytest.approx(np.percentile(jobs["jct_s"], 95))
    assert set(jobs["outcome"]) <= {"finished", "target", "never"}


def test_loss_aware_scheduling_beats_both_fifos(supercom: gp.Workload) -> None:
    dare = gp.simulate(supercom, "dare")
    for policy in ("fifo", "session_fifo"):
        other = gp.simulate(supercom, policy)
        assert dare.total_wait_s < other.total_wait_s
        assert dare.mean_wait_per_user_s < other.mean_wait_per_user_s
        assert dare.mean_jct_s < other.mean_jct_s


def test_a_simulation_gives_up_next_to_no_job_that_would_reach_its_target() -> None:
    reachable, lost = 0, 0
    for seed in range(3):
        workload = gp.generate_workload(SUPERCOM, users=30, seed=seed)
        patient = gp.simulate(workload, "fifo", stop_at_target=True).jobs["outcome"] == "target"
        reachable += int(patient.sum())
        for policy in ("dare", "best_value"):
            outcome = gp.simulate(workload, policy).jobs["outcome"]
            lost += int((patient & (outcome == "never")).sum())
            assert (outcome == "never").sum() > 10
    assert reachable > 100
    assert lost <= 0.02 * 2 * reachable


def test_the_bundled_jobs_are_those_of_seed_0(supercom: gp.Workload) -> None:
    drawn = gp.generate_workload(SUPERCOM, users=20, seed=0)
    for name, column in supercom.jobs.items():
        np.testing.assert_array_equal(column, drawn.jobs[name], err_msg=name)


def test_more_users_change_no_job_of_the_others() -> None:
    few = gp.generate_workload(SUPERCOM, users=10, seed=4).jobs
    many = gp.generate_workload(SUPERCOM, users=30, seed=4).jobs
    of_few = np.isin(many["user"], np.unique(few["user"]))
    for name in ("submit_s", "target_loss", "budget_steps", "truth"):
        np.testing.assert_array_equal(many[name][of_few], few[name])
    assert len(np.unique(many["user"])) == 30


def test_workloads_and_results_pickle_and_compare(supercom: gp.Workload) -> None:
    assert pickle.loads(pickle.dumps(supercom)) == supercom
    run = gp.simulate(supercom, "fifo")
    assert pickle.loads(pickle.dumps(run)) == run
    assert "mean JCT" in repr(run)
    assert run != gp.simulate(supercom, "first_fit")


def test_comparison_pairs_the_runs() -> None:
    calls: list[tuple[int, int]] = []
    table = gp.compare(
        lambda seed: gp.generate_workload(SUPERCOM, users=10, seed=seed),
        ["fifo", "dare"],
        seeds=3,
        progress=lambda done, runs: calls.append((done, runs)),
    )
    assert calls[-1] == (6, 6)
    assert table.policies == ["fifo", "dare"]
    mean, half = table.mean("mean_jct_s")["fifo"]
    values = table.values("fifo", "mean_jct_s")
    assert mean == pytest.approx(values.mean())
    assert half == pytest.approx(4.303 * values.std(ddof=1) / np.sqrt(3), rel=1e-3)
    ratio, _ = table.ratio("mean_jct_s", to="fifo")["dare"]
    assert ratio == pytest.approx(
        np.exp(np.mean(np.log(table.values("dare", "mean_jct_s") / values)))
    )
    with pytest.raises(gp.InputError, match="no policy 'lifo', expected one of fifo, dare"):
        table.values("lifo", "mean_jct_s")
    for ask in (table.mean, lambda metric: table.ratio(metric, to="fifo")):
        with pytest.raises(gp.InputError, match="no metric 'jct', expected one of mean_jct_s"):
            ask("jct")
    assert table == gp.compare(
        lambda seed: gp.generate_workload(SUPERCOM, users=10, seed=seed),
        ["fifo", "dare"],
        seeds=3,
        threads=1,
    )


@pytest.mark.parametrize(
    ("runs", "quantile"), [(2, 12.7062), (31, 2.04227), (32, 2.03951), (200, 1.97196)]
)
def test_an_interval_is_that_of_student_for_any_number_of_runs(runs: int, quantile: float) -> None:
    values = np.arange(runs, dtype=float)
    rows = tuple({"policy": "fifo", "mean_jct_s": value} for value in values)
    _, half = gp.Comparison(rows=rows).mean("mean_jct_s")["fifo"]
    assert half == pytest.approx(quantile * values.std(ddof=1) / np.sqrt(runs), rel=2e-4)


def test_comparison_of_nothing_is_refused(supercom: gp.Workload) -> None:
    with pytest.raises(gp.InputError, match="seeds is 0, expected at least 1"):
        gp.compare(supercom, ["fifo"], seeds=0)
    with pytest.raises(gp.InputError, match="no seeds"):
        gp.compare(supercom, ["fifo"], seeds=[])
    with pytest.raises(TypeError, match=r"seeds is 2\.5, expected how many or which"):
        gp.compare(supercom, ["fifo"], seeds=2.5)  # type: ignore[arg-type]
    with pytest.raises(gp.InputError, match="no workloads"):
        gp.compare([], ["fifo"])
    with pytest.raises(gp.InputError, match="a sequence of policies"):
        gp.compare(supercom, [])


def test_forecasts_shared_between_runs_change_nothing() -> None:
    policies = ["dare", "best_value", "gittins"]
    drawn = gp.generate_workload(SUPERCOM, users=15, seed=5)
    table = gp.compare(drawn, policies, seeds=1)
    for policy in policies:
        alone = gp.simulate(drawn, policy)
        assert table.values(policy, "mean_jct_s") == alone.mean_jct_s
        assert table.values(policy, "energy_kwh") == alone.energy_kwh


def test_jobs_from_columns_and_their_mistakes() -> None:
    tiers = [gp.Tier("a", 1, 4, idle_watts=10.0, busy_watts=100.0)]
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [4, 2], "duration_s": [10, 20]}
    run = gp.simulate(gp.Workload(tiers, jobs), "fifo")
    np.testing.assert_array_equal(run.jobs["end_s"], [10, 30])
    joules = 4 * 100 * 10 + (2 * 100 + 2 * 10) * 20
    assert run.energy_kwh == pytest.approx(joules / 3.6e6, rel=1e-12)
    with pytest.raises(gp.InputError, match="job 2 asks 8 GPUs, the largest tier has 4"):
        gp.Workload(tiers, jobs | {"gpus": [4, 8]})
    with pytest.raises(gp.InputError, match="2 jobs but 3 of gpus"):
        gp.Workload(tiers, jobs | {"gpus": [1, 1, 1]})
    with pytest.raises(gp.InputError, match="no column 'job'"):
        gp.Workload(tiers, {"gpus": [1]})


def test_bad_files_are_named_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match=r"jobs\.csv:2: gpus is -1"):
        gp.Workload.from_trace(trace(tmp_path, "1,0,-1,5\n"), gpus=4)
    with pytest.raises(gp.IoError, match=r"jobs\.csv:3: duration_s is -1"):
        gp.Workload.from_trace(trace(tmp_path, "1,0,1,5\n2,0,1,-1\n"), gpus=4)
    with pytest.raises(gp.IoError, match="no jobs"):
        gp.Workload.from_trace(trace(tmp_path, ""), gpus=4)
    with pytest.raises(gp.IoError, match="nowhere"):
        gp.read_workload(tmp_path / "nowhere")
    with pytest.raises(gp.InputError, match="gpus is 0"):
        gp.Workload.from_trace(trace(tmp_path, "1,0,1,5\n"), gpus=0)


def test_wrong_policies_are_refused(tmp_path: Path) -> None:
    workload = gp.Workload.from_trace(trace(tmp_path, "1,0,1,5\n"), gpus=4)
    with pytest.raises(gp.InputError, match="policy is 'sooner', expected one of fifo"):
        gp.simulate(workload, "sooner")
    with pytest.raises(TypeError, match="simulate: policy is 3, expected text or a function"):
        gp.simulate(workload, 3)  # type: ignore[arg-type]
    with pytest.raises(gp.InputError, match="job 9, which is not live"):
        gp.simulate(workload, lambda _: gp.Plan(allocations=[gp.Allocation(9, 0, 1)]))
    with pytest.raises(ZeroDivisionError):
        gp.simulate(workload, lambda _: 1 / 0)  # type: ignore[arg-type]


def test_failures_sleep_and_carbon_are_accounted(supercom: gp.Workload) -> None:
    options = {
        "failures": {"node_every_s": 40000, "repair_s": 1800, "job_every_s": 20000,
                     "checkpoint_s": 900},
        "sleep": {"after_s": 600, "watts": 5, "wake_s": 60},
    }  # fmt: skip
    plain = gp.simulate(supercom, "srtf", carbon_g_per_kwh=300.0)
    run = gp.simulate(supercom, "srtf", carbon_g_per_kwh=[300.0, 300.0], restart_s=60, **options)
    assert plain.failures == 0
    assert plain.carbon_kg == pytest.approx(0.3 * plain.energy_kwh)
    assert run.carbon_kg == pytest.approx(0.3 * run.energy_kwh)
    assert run.failures == run.jobs["failures"].sum() > 0
    assert run.lost_gpu_seconds > 0
    assert run == gp.simulate(
        supercom, "srtf", carbon_g_per_kwh=[300.0, 300.0], restart_s=60, **options
    )
    for accounts in (run.user_accounts, run.tier_accounts):
        assert accounts["gpu_seconds"].sum() == pytest.approx(run.gpu_seconds)
    held = run.timeline["busy"][:-1] @ np.diff(run.timeline["time_s"])
    assert held == pytest.approx(run.gpu_seconds)
    asleep = gp.simulate(supercom, "srtf", sleep={"after_s": 600, "watts": 5})
    assert asleep.energy_kwh < plain.energy_kwh
    jct, share = run.jct_cdf()
    assert share[-1] == 1
    assert np.all(np.diff(jct) >= 0)


def test_a_simulation_that_is_refused_leaves_the_stream_of_another(
    supercom: gp.Workload, tmp_path: Path
) -> None:
    path = tmp_path / "events.csv"
    gp.simulate(supercom, "fifo", stream=path, spans=False)
    before = path.read_text()
    for policy, options in (("magic", {}), ("fifo", {"max_ftf": 3.0})):
        with pytest.raises(gp.InputError):
            gp.simulate(supercom, policy, stream=path, **options)
        assert path.read_text() == before
    gp.simulate(supercom, "fifo", stream=path, spans=False)
    assert path.read_text() == before


def test_events_stream_into_a_file(supercom: gp.Workload, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    run = gp.simulate(supercom, "fifo", stream=path, spans=False)
    rows = np.genfromtxt(path, delimiter=",", names=True)
    kept = gp.simulate(supercom, "fifo").spans
    np.testing.assert_allclose(rows["end_s"], kept["end_s"])
    assert run.spans["job"].size == 0
    seen: list[gp.JobSpan] = []
    gp.simulate(supercom, "fifo", stream=seen.append)
    for name, column in kept.items():
        np.testing.assert_array_equal([getattr(span, name) for span in seen], column)
    with pytest.raises(gp.IoError, match="nowhere"):
        gp.simulate(supercom, "fifo", stream=tmp_path / "nowhere" / "events.csv")


def test_options_that_do_not_exist_are_named(supercom: gp.Workload) -> None:
    with pytest.raises(
        gp.InputError, match="failures has no 'node_s', expected one of node_every_s"
    ):
        gp.simulate(supercom, "fifo", failures={"node_s": 3})
    with pytest.raises(gp.InputError, match="planner has no 'goal'"):
        gp.simulate(supercom, "best_value", planner={"goal": "jct"})
    with pytest.raises(gp.InputError, match="sharing is '"):
        gp.simulate(supercom, "fifo", sharing="somehow")
    with pytest.raises(gp.InputError, match="'max_min' divides time among all GPUs"):
        gp.simulate(supercom, "max_min", failures={"job_every_s": 100})


def test_the_objective_of_the_planner_is_part_of_the_name_or_an_option(
    supercom: gp.Workload,
) -> None:
    named = gp.simulate(supercom, "best_value:energy")
    given = gp.simulate(supercom, "best_value", planner={"objective": "energy"})
    np.testing.assert_array_equal(named.jobs["end_s"], given.jobs["end_s"])


def test_measured_pairs_raise_what_a_cluster_gets_done() -> None:
    name = "gavel_minimize_makespan"
    if not (TRACES / f"{name}.csv.gz").exists():
        pytest.skip("the shared trace is not on this machine")
    workload = gp.Workload.from_gavel(
        TRACES / f"{name}.csv.gz",
        TRACES / "gavel_throughputs.csv.gz",
        cluster={"v100": 8, "p100": 16, "k80": 24},
        sharing=True,
    )
    assert pickle.loads(pickle.dumps(workload)) == workload
    alone = gp.simulate(workload, "best_value")
    pairs = gp.simulate(workload, "best_value", sharing="mps")
    assert (pairs.spans["partner"] >= 0).any()
    assert not (alone.spans["partner"] >= 0).any()
    assert pairs.mean_jct_s < alone.mean_jct_s


def test_the_ids_of_jobs_that_share_gpus_decide_nothing() -> None:
    jobs = {
        "submit_s": [0.0, 0.0, 50.0],
        "duration_s": [200.0, 200.0, 300.0],
        "sm_activity": [0.5, 0.1, 0.1],
        "weight": [1.0, 1.0, 2.0],
    }
    tier = gp.Tier("t", 1)
    up, down = (
        gp.simulate(gp.Workload([tier], {"job": ids} | jobs), "best_value", sharing="mps")
        for ids in ([1, 2, 3], [3, 2, 1])
    )
    assert up.spans["partner"].max() > 0
    assert up.jobs["end_s"].tolist() == down.jobs["end_s"].tolist()


def test_a_guest_is_weighed_against_its_host_on_the_gang_that_the_host_has() -> None:
    jobs = {"job": [1, 2], "submit_s": [0, 0], "duration_s": [1000, 1000], "gpus": [1, 2]}
    # At half its speed the host loses 1 of 2 steps a second, of which the guest makes 0.72.
    rates = {"steps_per_s": [[1.0], [0.8]], "gangs": [{2: [2.0]}, {}], "job_class": ["h", "g"]}
    workload = gp.Workload([gp.Tier("t", 1, 2)], jobs | rates, pairs=[("h", "g", 0, 0.5, 0.9)])
    run = gp.simulate(workload, "best_value", sharing="mps")
    assert run.spans["partner"].tolist() == [-1, -1]
    assert run.jobs["end_s"].tolist() == [500, 1750]


def test_files_of_gavel_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "two.trace").write_text(
        "LM (batch size 40)\tpython3 main.py\twd\t--steps\t0\t1000\t2\t1\t-1.000000\t0\n"
        "A3C\tpython3 main.py\twd\t--steps\t0\t500\t1\t1\t-1.000000\t60\n"
    )
    (tmp_path / "rates.json").write_text(
        '{"v100": {"(\'LM (batch size 40)\', 2)": {"null": 5.0}, "(\'A3C\', 1)": {"null": 2.0}},'
        ' "v100_unconsolidated": {"(\'A3C\', 1)": {"null": 1.0}}}'
    )
    workload = gp.Workload.from_gavel(
        tmp_path / "two.trace", tmp_path / "rates.json", cluster={"v100": 4}
    )
    run = gp.simulate(workload, "fifo")
    np.testing.assert_allclose(run.jobs["end_s"], [200, 310])
    (tmp_path / "bad.trace").write_text("LM\t3\n")
    with pytest.raises(gp.IoError, match=r"bad\.trace:1: expected ten fields"):
        gp.Workload.from_gavel(tmp_path / "bad.trace", tmp_path / "rates.json", cluster={"v100": 4})
    for rates, told in (
        ('{"(\'A3C\', 1)": {"null": ' + "9" * 400 + "}}", r"'v100', '\('A3C', 1\)': steps_per_s"),
        ('{"' + "9" * 400 + '": {"null": 1}}', "'9{80}' is not a job"),
    ):
        (tmp_path / "bad.json").write_text('{"v100": ' + rates + "}")
        with pytest.raises(gp.IoError, match=rf"bad\.json: {told}"):
            gp.Workload.from_gavel(
                tmp_path / "two.trace", tmp_path / "bad.json", cluster={"v100": 4}
            )


def gavel(trace: str) -> gp.Workload:
    if not (TRACES / f"{trace}.csv.gz").exists():
        pytest.skip("the shared trace is not on this machine")
    return gp.Workload.from_gavel(
        TRACES / f"{trace}.csv.gz",
        TRACES / "gavel_throughputs.csv.gz",
        cluster={"v100": 8, "p100": 16, "k80": 24},
    )


@pytest.mark.parametrize(
    ("trace", "policy", "mean", "makespan", "within"),
    [
        ("gavel_max_min_fairness", "fifo_perf", 19526.854, 72319.858, 1e-5),
        ("gavel_minimize_makespan", "fifo_perf", 40257.935, 90701.292, 1e-5),
        ("gavel_max_min_fairness", "max_min", 15018.448, 63029.533, 0.03),
        ("gavel_minimize_makespan", "max_min", 35822.467, 68885.650, 0.03),
        ("gavel_max_min_fairness", "isolated", 19865.035, 78163.363, 0.012),
        ("gavel_minimize_makespan", "isolated", 37581.229, 82944.778, 0.012),
    ],
)
def test_gavel_policies_are_reproduced(
    trace: str, policy: str, mean: float, makespan: float, within: float
) -> None:
    run = gp.simulate(gavel(trace), policy)
    assert run.mean_jct_s == pytest.approx(mean, rel=within)
    assert run.makespan_s == pytest.approx(makespan, rel=within)


@pytest.mark.parametrize(
    ("trace", "mean", "makespan"),
    [
        ("gavel_max_min_fairness", 19437.764, 78223.084),
        ("gavel_minimize_makespan", 40669.169, 86710.948),
    ],
)
def test_shares_among_types_that_are_all_alike_are_those_of_a_solver_on_average(
    trace: str, mean: float, makespan: float
) -> None:
    workload = gavel(trace)
    runs = [gp.simulate(workload, "max_min_unaware", seed=seed) for seed in range(10)]
    assert runs[0].mean_jct_s == pytest.approx(mean, rel=0.03)
    assert np.mean([run.mean_jct_s for run in runs]) == pytest.approx(mean, rel=0.03)
    assert np.mean([run.makespan_s for run in runs]) == pytest.approx(makespan, rel=0.03)


def test_the_planner_beats_gavel_on_its_own_trace() -> None:
    run = gp.simulate(gavel("gavel_max_min_fairness"), "best_value")
    assert run.mean_jct_s < 15018
    assert run.lower_bound_jct_s < run.mean_jct_s


def test_finish_time_fairness_of_equal_sharing_is_one() -> None:
    tiers = [gp.Tier("a", 1)]
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 1], "duration_s": [100, 100]}
    run = gp.simulate(gp.Workload(tiers, jobs), "fifo")
    # The first ends at 100 with two live: 100 / (100 x 2); the second at 200, with 1.5 on average.
    np.testing.assert_allclose(run.jobs["ftf"], [0.5, 200 / 150])
    assert run.worst_ftf == pytest.approx(200 / 150)


def test_finish_time_fairness_by_static_contention_has_one_share_for_all_jobs() -> None:
    tiers = [gp.Tier("a", 1)]
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 1], "duration_s": [100, 100]}
    run = gp.simulate(gp.Workload(tiers, jobs), "fifo", unfair_above=0.9)
    np.testing.assert_allclose(run.jobs["ftf_static"], [100 / 200, 200 / 200])
    assert (run.worst_ftf_static, run.share_unfair_static) == (1.0, 0.5)
    assert run.metrics()["worst_ftf_static"] == 1.0


def short_and_long_jobs() -> gp.Workload:
    """Many short jobs among long ones: a job of seconds may have a forecast of hours."""
    rng = np.random.default_rng(1)
    gpus, count = 32, 1500
    duration_s = np.ceil(np.exp(rng.normal(6, 2.5, count)).clip(1, 5e5))
    gang = rng.choice([1, 1, 1, 2, 4, 8], count)
    span_s = float((duration_s * gang).sum()) / (0.9 * gpus)
    submit_s = np.floor(np.sort(rng.uniform(0, span_s, count)))
    jobs = {"job": np.arange(count), "submit_s": submit_s, "gpus": gang, "duration_s": duration_s}
    return gp.Workload([gp.Tier("gpu", gpus)], jobs)


def test_patience_costs_no_fairness_where_forecasts_are_wrong_by_far() -> None:
    work = short_and_long_jobs()

    def over_without(seed: int) -> tuple[float, float, float]:
        patient, hasty = (
            gp.simulate(
                work,
                "gittins",
                forecast_sigma=2.0,
                restart_s=0.001,
                seed=seed,
                spans=False,
                patience=p,
            )
            for p in (True, False)
        )
        return (
            patient.mean_jct_s / hasty.mean_jct_s,
            patient.worst_ftf / hasty.worst_ftf,
            patient.preemptions / hasty.preemptions,
        )

    jct, fairness, preemptions = np.exp(
        np.log([over_without(seed) for seed in range(1, 11)]).mean(axis=0)
    )
    assert jct <= 1.01
    assert fairness <= 1.02
    assert preemptions < 1


@pytest.mark.parametrize("policy", ["gittins", "fair_finish"])
def test_without_patience_a_start_that_costs_nothing_changes_nothing(policy: str) -> None:
    work = short_and_long_jobs()
    free = gp.simulate(work, policy).jobs["end_s"]
    next_to_free = {"restart_s": 1e-9}  # less than a tick
    np.testing.assert_array_equal(
        gp.simulate(work, policy, patience=False, **next_to_free).jobs["end_s"], free
    )
    assert not np.array_equal(gp.simulate(work, policy, restart_s=1e-3).jobs["end_s"], free)


def test_without_patience_more_jobs_lose_their_gpus_and_the_order_is_the_same() -> None:
    work = short_and_long_jobs()
    for policy in ("gittins", "best_value", "learned", "fair_finish"):
        asked = {"restart_s": 60.0, "forecast_sigma": 0.5}
        patient = gp.simulate(work, policy, **asked)
        hasty = gp.simulate(work, policy, patience=False, **asked)
        assert patient.preemptions < hasty.preemptions, policy
        assert patient.mean_jct_s == pytest.approx(hasty.mean_jct_s, rel=0.03), policy


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("gittins", {}),
        ("gittins", {"restart_s": 9.0, "session_s": 60.0}),
        ("best_value", {"restart_s": 9.0, "round_s": 60.0}),
        ("learned", {"restart_s": 9.0, "planner": {"max_wait_s": 3600.0}}),
        ("fair_finish", {"restart_s": 9.0, "in_nodes": True}),
    ],
)
def test_patience_is_refused_where_there_is_none(policy: str, options: dict[str, Any]) -> None:
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 2], "duration_s": [500, 50]}
    work = gp.Workload([gp.Tier("a", 2, 2)], jobs)
    with pytest.raises(gp.InputError) as error:
        gp.simulate(work, policy, patience=False, **options)
    assert str(error.value) == (
        f"simulate: patience is off, '{policy}' has none here: it needs restart_s and no more to "
        "choose than an order"
    )


def test_every_policy_ends_every_job(supercom: gp.Workload) -> None:
    for policy in gp.POLICIES:
        run = gp.simulate(supercom, policy)
        assert np.isfinite(run.jobs["end_s"]).all(), policy


@pytest.mark.parametrize("policy", ["srtf", "srsf", "sjf", "edf", "las"])
def test_a_policy_whose_starts_take_time_is_the_same_beside_a_tier_that_no_job_may_use(
    policy: str,
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        jobs = 12
        columns: dict[str, Any] = {
            "job": range(jobs),
            "submit_s": np.sort(rng.integers(0, 200, jobs)).astype(float),
            "gpus": rng.integers(1, 3, jobs),
            "duration_s": rng.integers(5, 80, jobs).astype(float),
        }
        one = gp.Workload([gp.Tier("a", 2)], columns)
        unusable = {**columns, "steps_per_s": [[1.0, 0.0]] * jobs}
        two = gp.Workload([gp.Tier("a", 2), gp.Tier("b", 1)], unusable)
        plain = gp.simulate(one, policy, restart_s=20.0)
        beside = gp.simulate(two, policy, restart_s=20.0)
        assert plain.jobs["end_s"].tolist() == beside.jobs["end_s"].tolist()
        assert plain.preemptions == beside.preemptions


def test_a_pending_start_does_not_make_a_job_give_way() -> None:
    columns = {"job": [0, 1, 2], "submit_s": [3.0, 20.0, 37.0], "gpus": [2, 2, 1]}
    workload = gp.Workload([gp.Tier("a", 2)], {**columns, "duration_s": [55.0, 14.0, 48.0]})
    result = gp.simulate(workload, "srtf", restart_s=20.0)
    # At 37 s job 0 has 38 s of work left, and 20 s of its start: less work than job 2.
    assert result.jobs["end_s"].tolist() == [92.0, 34.0, 140.0]
    assert result.preemptions == 1


@pytest.mark.parametrize(
    "limits", [{}, {"user_gpus": 1}, {"planner": {"power_cap_w": 160.0}}], ids=str
)
def test_measured_pairs_keep_to_quotas_and_the_power_cap(limits: dict[str, Any]) -> None:
    columns = {
        "job": [0, 1],
        "submit_s": [0.0, 0.0],
        "gpus": [1, 1],
        "duration_s": [100.0, 100.0],
        "user": ["u", "u"],
        "job_class": ["x", "x"],
        "sm_activity": [0.3, 0.3],
        "utilization": [0.4, 0.4],
    }
    tiers = [gp.Tier("a", 2, 1, idle_watts=50.0, busy_watts=300.0)]
    pairs = [gp.PairSpeeds("x", "x", 0, 0.9, 0.9)]
    workload = gp.Workload(tiers, columns, pairs=pairs)
    result = gp.simulate(workload, "best_value", sharing="mps", **limits)
    starts = sorted(result.jobs["start_s"].tolist())
    assert starts == ([0.0, 100.0] if limits else [0.0, 0.0])


@pytest.mark.parametrize("utilization", [0.1, 0.27, 0.33])
def test_a_measured_pair_that_draws_as_much_as_the_power_cap_runs_together(
    utilization: float,
) -> None:
    columns = {
        "job": [0, 1],
        "submit_s": [0.0, 0.0],
        "gpus": [1, 1],
        "duration_s": [100.0, 100.0],
        "job_class": ["x", "x"],
        "utilization": [0.05, utilization],
    }
    tiers = [gp.Tier("a", 1, 1, idle_watts=53.1, busy_watts=301.7)]
    pairs = [gp.PairSpeeds("x", "x", 0, 0.9, 0.9)]
    workload = gp.Workload(tiers, columns, pairs=pairs)
    both_w = (53.1 + 0.05 * 248.6) + utilization * 248.6
    result = gp.simulate(workload, "best_value", sharing="mps", planner={"power_cap_w": both_w})
    assert result.jobs["start_s"].tolist() == [0.0, 0.0]


def test_a_guest_keeps_its_gpus_for_as_long_as_the_planner_guarantees() -> None:
    columns = {
        "job": [0, 1, 2],
        "submit_s": [295.0, 823.0, 997.0],
        "gpus": [1, 1, 1],
        "duration_s": [885.0, 952.0, 130.0],
        "sm_activity": [0.404, 0.857, 0.37],
        "restart_s": [20.0, 0.0, 0.0],
    }
    workload = gp.Workload([gp.Tier("a", 1)], columns)
    result = gp.simulate(workload, "best_value", sharing="mps", planner={"min_run_s": 300.0})
    of_guest = result.spans["job"] == 1
    assert result.spans["start_s"][of_guest][0] == 823.0
    # It shares a GPU with one job after the other, and is at work all the time.
    starts, ends = result.spans["start_s"][of_guest], result.spans["end_s"][of_guest]
    together = 823.0
    for start_s, end_s in zip(starts, ends, strict=True):
        if start_s == together:
            together = end_s
    assert together >= 823.0 + 300.0


def test_backfill_counts_a_job_late_by_the_tier_on_which_it_would_run() -> None:
    columns = {
        "job": range(5),
        "submit_s": [0.0, 1.0, 2.0, 3.0, 4.0],
        "gpus": [1, 2, 3, 1, 1],
        "duration_s": [1000.0, 100.0, 50.0, 80.0, 80.0],
        "steps_per_s": [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.5, 1.0], [0.5, 1.0]],
    }
    workload = gp.Workload([gp.Tier("slow", 4), gp.Tier("fast", 1)], columns)
    starts = gp.simulate(workload, "slurm_backfill").jobs["start_s"]
    assert starts[2] == 101.0  # when the GPUs that it is promised are free


@pytest.mark.parametrize("policy", ["max_min", "max_min_unaware", "fifo_perf", "isolated"])
def test_policies_that_divide_time_pay_for_each_start_after_the_first(policy: str) -> None:
    columns = {"job": range(6), "submit_s": [0.0] * 6, "gpus": [1] * 6, "duration_s": [4000.0] * 6}
    crowd = gp.Workload([gp.Tier("a", 2)], columns)
    free, paid = (gp.simulate(crowd, policy, restart_s=seconds) for seconds in (0.0, 60.0))
    assert free.jobs["gpu_seconds"].tolist() == pytest.approx([4000.0] * 6)
    restarts = paid.jobs["gpu_seconds"] - 4000.0
    assert restarts.tolist() == pytest.approx((60.0 * paid.jobs["preemptions"]).tolist())
    assert (paid.preemptions > 0) == (policy != "fifo_perf")
