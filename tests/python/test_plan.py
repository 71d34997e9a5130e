# SPDX-License-Identifier: Apache-2.0
"""The planner as Python sees it: against SciPy's MILP, and on input that is broken."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._bench.plan import held_out_scaling_errors, held_out_sharing_errors
from glidepath.cli import main

Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def random_round(seed: int, jobs: int, tiers: int = 3, load: float = 2.0) -> Columns:
    rng = np.random.default_rng(seed)
    options = rng.integers(4, 14, jobs)
    job = np.repeat(np.arange(jobs), options)
    tier = rng.integers(0, tiers, job.size)
    gpus = 2 ** rng.integers(0, 4, job.size)
    value = rng.lognormal(0, 1, jobs)[job] * gpus**0.8 * (1 + 0.4 * tier)
    value *= rng.uniform(0.7, 1.3, job.size)
    capacity = np.full(tiers, int(gpus.mean() * jobs / load / tiers) + 1)
    return job, tier, gpus, value, capacity


def milp(columns: Columns, *, relaxed: bool = False) -> float:
    """Optimum of HiGHS, or of its linear relaxation."""
    job, tier, gpus, value, capacity = columns
    optimize = pytest.importorskip("scipy.optimize")
    sparse = pytest.importorskip("scipy.sparse")
    n = job.size
    rows = np.concatenate([job, job.max() + 1 + tier])
    weight = np.concatenate([np.ones(n), gpus])
    matrix = sparse.csr_matrix((weight, (rows, np.tile(np.arange(n), 2))))
    limit = np.concatenate([np.ones(job.max() + 1), capacity])[: matrix.shape[0]]
    result = optimize.milp(
        -value,
        constraints=optimize.LinearConstraint(matrix, -np.inf, limit),
        integrality=np.zeros(n) if relaxed else np.ones(n),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": 1e-9},
    )
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize("seed", range(20))
def test_value_and_bound_enclose_the_optimum_of_highs(seed: int) -> None:
    columns = random_round(seed, 60)
    plan = gp.solve_round(*columns)
    optimum = milp(columns)
    assert plan.value <= optimum * (1 + 1e-9)
    assert plan.bound >= optimum * (1 - 1e-9)
    assert plan.gap <= 0.01


def test_bound_is_as_tight_as_the_linear_relaxation() -> None:
    columns = random_round(3, 1000)
    plan = gp.solve_round(*columns)
    assert plan.bound <= milp(columns, relaxed=True) * 1.0002
    assert plan.gap <= 5e-4


def test_columns_may_be_lists_and_the_choice_is_feasible() -> None:
    plan = gp.solve_round([5, 5, 9], [0, 1, 0], [2, 1, 2], [3.0, 2.0, 2.5], [2, 1])
    assert plan.chosen.tolist() == [1, 2]
    assert (plan.value, plan.bound, plan.gap) == (4.5, 4.5, 0.0)
    assert plan == pickle.loads(pickle.dumps(plan))
    assert "gap 0.00%" in repr(plan)


def test_power_quotas_and_nodes_limit_the_choice() -> None:
    columns = ([0, 1, 2], [0, 0, 0], [3, 3, 2], [3.0, 3.0, 2.0], [8])
    assert gp.solve_round(*columns).value == 8.0
    assert gp.solve_round(*columns, node_gpus=[4]).value == 6.0
    assert gp.solve_round(*columns, watts=[900, 900, 600], power_cap_w=1500).value == 5.0
    limited = gp.solve_round(*columns, user=[0, 0, 1], user_quota=[3, 8])
    assert limited.value == 5.0
    assert gp.solve_round(*columns, group=[0, 0, 0], group_quota=[2]).value == 2.0
    with pytest.raises(gp.InputError, match="option 1 names user 7, there are 2"):
        gp.solve_round(*columns, user=[0, 7, 1], user_quota=[3, 8])


def test_columns_that_are_no_columns_are_refused() -> None:
    with pytest.raises(TypeError, match="job"):
        gp.solve_round([0.5], [0], [1], [1.0], [1])
    with pytest.raises(gp.InputError, match="option 0 of job 3 has value -1"):
        gp.solve_round([3], [0], [1], [-1.0], [1])
    with pytest.raises(gp.InputError, match="columns of different length"):
        gp.solve_round([3, 4], [0], [1], [1.0], [1])
    with pytest.raises(gp.InputError, match="has value nan"):
        gp.solve_round([3], [0], [1], [np.nan], [1])
    assert len(gp.solve_round([], [], [], [], []).chosen) == 0


def test_extreme_columns_give_a_clear_error_or_the_obvious_plan() -> None:
    million = 1_000_000
    best = gp.solve_round(
        np.zeros(million, np.int64),
        np.zeros(million, np.int64),
        np.ones(million, np.int64),
        np.arange(million, dtype=float),
        [1],
    )
    assert best.chosen.tolist() == [million - 1]
    assert best.value == best.bound == million - 1
    large = gp.solve_round([0, 1, 2], [0, 0, 0], [1, 1, 1], [1e15, 1e15, 1.0], [3])
    assert large.value == large.bound == 2e15 + 1
    with pytest.raises(gp.InputError, match="option 0 of job 0 has value"):
        gp.solve_round([0], [0], [1], [1.1e15], [3])
    nothing = gp.solve_round([0], [0], [1], [1.0], [0])
    assert (len(nothing.chosen), nothing.value, nothing.bound) == (0, 0.0, 0.0)
    assert len(gp.solve_round([0], [0], [9], [1.0], [8]).chosen) == 0
    with pytest.raises(gp.InputError, match="tier"):
        gp.solve_round([0], [0], [1], [1.0], [])
    with pytest.raises(gp.InputError, match="capacity"):
        gp.solve_round([0], [0], [1], [1.0], [-1])
    with pytest.raises(gp.InputError):
        gp.solve_round([0], [0], [0], [1.0], [1])
    # The same option twice, and a job whose options are apart, are no conflict.
    twice = gp.solve_round([0, 1, 0], [0, 0, 0], [1, 1, 1], [1.0, 1.0, 1.0], [2])
    assert twice.value == 2.0
    assert gp.plan(gp.Snapshot([], [])).allocations == []
    with pytest.raises(gp.InputError, match="job 1 names tier 0, there are 0"):
        gp.plan(gp.Snapshot([], [gp.Job(1, [gp.Option(0, 1, 1.0)])]))
    ways = [gp.Option(0, 1 + i % 9, 1.0 + i) for i in range(50_000)]
    ways += [gp.Option(0, 1 + i % 9, 0.5, sharing="mps") for i in range(50_000)]
    many = gp.Job(1, ways, remaining_steps=[1.0])
    snapshot = gp.Snapshot([gp.Tier("a", 1)], [many])
    assert len(gp.plan(snapshot, sharing="mps").allocations) == 1
    worth = gp.Job(1, [gp.Option(0, 1, 1.0)], weight=1e15, remaining_steps=[1.0])
    assert gp.plan(gp.Snapshot([gp.Tier("a", 1)], [worth])).value == pytest.approx(1e15)
    with pytest.raises(gp.InputError, match="job 1 has weight -1"):
        gp.plan(gp.Snapshot([gp.Tier("a", 1)], [gp.Job(1, [gp.Option(0, 1, 1.0)], weight=-1.0)]))
    with pytest.raises(gp.InputError, match="job 1 runs at nan steps per second"):
        gp.plan(gp.Snapshot([gp.Tier("a", 1)], [gp.Job(1, [gp.Option(0, 1, np.nan)])]))


def cluster(jobs: list[gp.Job], **options: Any) -> gp.Snapshot:
    tiers = [gp.Tier("slow", 2, 2, memory_gb=11), gp.Tier("fast", 1, 2, memory_gb=24)]
    return gp.Snapshot(tiers, jobs, **options)


def job(number: int, remaining: list[float] | None, **options: Any) -> gp.Job:
    ways = [gp.Option(0, 1, 1.0), gp.Option(1, 1, 2.0)]
    return gp.Job(number, ways, remaining_steps=remaining, memory_gb=8, **options)


def test_a_plan_explains_every_job() -> None:
    jobs = [job(i, [1000.0 * i]) for i in range(1, 8)]
    jobs += [job(8, [0.0]), job(9, [np.inf])]
    snapshot = cluster(jobs, running=[gp.Allocation(7, 0, 1, 40.0)], now_s=50.0)
    plan = gp.plan(snapshot)
    assert gp.violations(snapshot, plan) == []
    assert {a.job for a in plan.allocations} == {1, 2, 3, 4, 5, 6}
    assert list(plan.stop) == [8, 9]
    assert plan.value <= plan.bound
    assert set(plan.reasons) == set(range(1, 10))
    assert plan.reasons[7].startswith("gives way")
    assert plan == pickle.loads(pickle.dumps(plan))
    assert "6 jobs on 6 GPUs, 2 ended" in repr(plan)
    assert "gives way" in plan._repr_html_()


def test_a_plan_of_ones_own_is_checked() -> None:
    snapshot = cluster([job(1, None), job(2, None)])
    assert gp.violations(snapshot, gp.Plan([gp.Allocation(1, 0, 1)])) == []
    found = gp.violations(snapshot, gp.Plan([gp.Allocation(1, 0, 9), gp.Allocation(3, 0, 1)]))
    assert any("tier slow has 4 GPUs" in line for line in found)
    assert any("job 3 is placed but not in the queue" in line for line in found)


def test_snapshot_keeps_what_it_was_given() -> None:
    original = job(4, [1.0, np.inf], user="ada", observed_step=[1, 2], observed_loss=[3.0, 2.5])
    snapshot = cluster([original], now_s=7.0)
    again = pickle.loads(pickle.dumps(snapshot))
    assert again == snapshot
    assert snapshot.jobs[0] == original
    assert snapshot.jobs[0].observed_loss.tolist() == [3.0, 2.5]
    assert snapshot.jobs[0].user == "ada"
    assert snapshot.tiers[1].gpus == 2
    assert cluster([job(4, [1.0])]) != snapshot


def test_broken_snapshots_are_refused_by_name() -> None:
    with pytest.raises(gp.InputError, match="job 1 appears twice"):
        gp.plan(cluster([job(1, None), job(1, None)]))
    with pytest.raises(gp.InputError, match="job 1 asks 9 GPUs, largest tier 'slow' has 4"):
        gp.plan(cluster([gp.Job(1, [gp.Option(0, 9, 1.0)])]))
    with pytest.raises(gp.InputError, match="unknown objective 'speed', known: jct, known_size"):
        gp.plan(cluster([]), objective="speed")
    with pytest.raises(gp.InputError, match="tier 'x': -1 nodes"):
        gp.Tier("x", -1)
    assert gp.plan(cluster([])).allocations == []


def test_objectives_and_limits_by_name() -> None:
    jobs = [job(i, [1000.0 + i], user="ada" if i < 4 else "bob") for i in range(10)]
    snapshot = cluster(jobs)
    for objective in ("jct", "known_size", "quality", "deadline", "fairness", "energy", "cost"):
        plan = gp.plan(snapshot, objective=objective, user_quota={"ada": 1})
        assert gp.violations(snapshot, plan) == []
        assert sum(a.job < 4 for a in plan.allocations) <= 1
    both = gp.plan(snapshot, objective={"jct": 1.0, "edp": 0.5}, sharing="naive", in_nodes=True)
    assert gp.violations(snapshot, both) == []
    with pytest.raises(gp.InputError, match="unknown way of sharing 'magic'"):
        gp.plan(snapshot, sharing="magic")


def test_goals_in_order_and_a_plan_checked_against_its_limits() -> None:
    urgent = job(1, [900.0], deadline_s=500.0)
    snapshot = cluster([urgent, job(2, [100.0]), job(3, [200.0])])
    tight = {"user_quota": {"": 1}}
    by_deadline = gp.plan(snapshot, objective=["deadline", "jct"], **tight)
    by_time = gp.plan(snapshot, objective=["jct", "deadline"], **tight)
    assert [a.job for a in by_deadline.allocations] == [1]
    assert [a.job for a in by_time.allocations] == [2]
    assert gp.violations(snapshot, by_time, **tight) == []
    found = gp.violations(snapshot, gp.plan(snapshot), **tight)
    assert found == ["the user '' holds 3 GPUs, the quota is 1"]
    with pytest.raises(gp.InputError, match="slack is -1, expected 0 to less than 1"):
        gp.plan(snapshot, objective=["jct", "cost"], slack=-1)
    with pytest.raises(TypeError, match=r"whole numbers of GPUs, got .ada.: 2"):
        gp.plan(snapshot, user_quota={"ada": 2.5})  # type: ignore[dict-item]


def test_the_measured_pair_is_predicted_and_memory_is_checked() -> None:
    # DLRM 5.36 h and ResNet152 1.05 h alone, 6.09 and 1.11 h in time slices of one A100
    first, second = gp.shared_speeds(0.05, 0.82, "naive", first_gb=29.1, second_gb=8.5, gpu_gb=40)
    assert first == pytest.approx(5.36 / 6.09, abs=0.01)
    assert second == pytest.approx(1.05 / 1.11, abs=0.01)
    assert gp.shared_speeds(0.05, 0.82, "mps", first_gb=29.1, second_gb=8.5, gpu_gb=24) == (0, 0)


def test_measured_pairs_are_read_and_asked_before_the_activities(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("gpu,job_a,job_b,slowdown_a,slowdown_b,sharing\nA100,dlrm,resnet,1.25,2,mps\n")
    (pair,) = gp.read_pairs(table)
    assert (pair.first, pair.second, pair.sharing, pair.predicted) == (
        "dlrm",
        "resnet",
        "mps",
        False,
    )
    pairs = gp.learn_pairs([pair])
    assert pickle.loads(pickle.dumps(pairs)) == pairs
    kinds: dict[str, Any] = {"gpu": "A100", "kinds": ("resnet", "dlrm"), "pairs": pairs}
    assert gp.shared_speeds(0.5, 0.5, "mps", **kinds) == (0.5, 0.8)
    assert gp.shared_speeds(0.5, 0.5, "naive", **kinds) == gp.shared_speeds(0.5, 0.5, "naive")
    assert gp.shared_speeds(0.5, 0.5, "mps", first_gb=30, second_gb=30, gpu_gb=40, **kinds) == (
        0,
        0,
    )
    table.write_text("gpu,job_a,job_b,slowdown_a,slowdown_b\nA100,dlrm,resnet,-1,2\n")
    with pytest.raises(gp.IoError, match=r"pairs.csv:2: a slowdown is -1"):
        gp.read_pairs(table)
    table.write_text("gpu,a,b\n")
    with pytest.raises(gp.IoError, match="job_a"):
        gp.read_pairs(table)


def test_a_plan_pairs_jobs_by_what_was_measured() -> None:
    tiers = [gp.Tier("only", 1, 1, gpu="A100", memory_gb=40)]
    jobs = [
        gp.Job(
            i,
            [gp.Option(0, 1, 1.0)],
            remaining_steps=[1000.0 + 100 * i],
            sm_activity=0.5,
            kind=kind,
            memory_gb=8,
        )
        for i, kind in enumerate(("host", "loud", "quiet"))
    ]
    snapshot = gp.Snapshot(tiers, jobs)
    pairs = gp.learn_pairs(
        [
            gp.KindPair("A100", "host", "loud", 4.0, 4.0, sharing="mps"),
            gp.KindPair("A100", "host", "quiet", 1.1, 1.2, sharing="mps"),
        ]
    )
    plan = gp.plan(snapshot, sharing="mps", pairs=pairs)
    assert [a.job for a in plan.allocations] == [0, 2]
    assert gp.violations(snapshot, plan, sharing="mps") == []
    assert [a.job for a in gp.plan(snapshot, sharing="mps").allocations] == [0, 1]


def test_the_verb_pairs_jobs_by_a_table_of_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = str(Path(__file__).resolve().parents[2] / "data" / "workloads" / "supercom")

    def partners(slowdown: float) -> int:
        table = tmp_path / "pairs.csv"
        rows = [f"RTX 3090,bart-small,bart-small,{slowdown},{slowdown},mps"]
        rows += [f"RTX 3090,bart-small,flan-t5-small,{slowdown},{slowdown},mps"]
        rows += [f"RTX 3090,flan-t5-small,flan-t5-small,{slowdown},{slowdown},mps"]
        table.write_text("gpu,job_a,job_b,slowdown_a,slowdown_b,sharing\n" + "\n".join(rows))
        options = ["--users", "60", "--at", "20", "--sharing", "mps", "--pairs", str(table)]
        assert main(["plan", workload, *options, "--json"]) == 0
        placed = json.loads(capsys.readouterr().out)["allocations"]
        return sum(a["partner"] is not None for a in placed)

    assert partners(1.0) >= 2
    assert partners(10.0) == 0
    assert main(["plan", workload, "--sharing", "magic"]) == 2
    assert "unknown way of sharing 'magic'" in capsys.readouterr().err


@pytest.mark.parametrize(("leave", "most"), [("kind", 0.055), ("pair", 0.035)])
def test_speeds_of_pairs_that_were_not_measured(shared: Path, leave: str, most: float) -> None:
    table = shared / "data" / "traces" / "gavel_throughputs.csv.gz"
    errors = held_out_sharing_errors(table, leave)
    assert errors.size > 1800
    assert errors.mean() <= most


def test_the_options_of_a_job_come_from_its_scaling() -> None:
    tiers = [
        gp.Tier("small", 2, 4, gpu="T4", memory_gb=16),
        gp.Tier("large", 1, 4, gpu="A100", memory_gb=40),
    ]
    gpus = np.array([1, 2, 4, 8])
    fit = gp.fit_scaling(gpus, 0.1 + 0.8 / gpus, nodes=(gpus + 3) // 4, batch_per_gpu=64 / gpus)
    options = gp.options_of(tiers, {"small": fit, "large": fit}, batch=64.0)
    assert [(o.tier, o.gpus) for o in options] == [
        *[(0, k) for k in (1, 2, 4, 8)],
        *[(1, k) for k in (1, 2, 4)],
    ]
    for option in options:
        assert option.steps_per_s == pytest.approx(1 / (0.1 + 0.8 / option.gpus), rel=0.03)
    heavy = gp.Profile(sm_activity=0.2, memory_gb=20)
    shared = gp.options_of(
        tiers, [fit, fit], alone=heavy, batch=64.0, sharing="mps", partner=gp.Profile(0.1, 10)
    )
    assert [(o.tier, o.gpus, o.sharing) for o in shared] == [
        *[(1, k, "exclusive") for k in (1, 2, 4)],
        *[(1, k, "mps") for k in (1, 2, 4)],
    ]
    assert shared[3].steps_per_s < shared[0].steps_per_s
    assert pickle.loads(pickle.dumps(shared)) == shared
    live = gp.Job(1, shared, memory_gb=20, remaining_steps=[1000.0])
    assert len(gp.choose_accelerator(live, tiers)) == 6
    assert [a.gpus for a in gp.plan(gp.Snapshot(tiers, [live])).allocations] == [4]
    with pytest.raises(gp.InputError, match="no tier 'huge', known: large, small"):
        gp.options_of(tiers, {"huge": fit})
    with pytest.raises(gp.InputError, match="1 fits of scaling for 2 tiers"):
        gp.options_of(tiers, [fit])
    assert gp.options_of(tiers, [None, None]) == []


def test_an_accelerator_is_chosen_under_limits() -> None:
    tiers = [
        gp.Tier("small", 4, memory_gb=11, busy_watts=250, price_per_gpu_hour=0.5),
        gp.Tier("large", 4, memory_gb=24, busy_watts=400, price_per_gpu_hour=2),
    ]
    candidate = job(1, [3600.0, 7200.0, 10800.0, 14400.0])
    best, other = gp.choose_accelerator(candidate, tiers, max_hours=2, confidence=0.7)
    assert (best.tier, best.probability, best.hours, best.good) == ("large", 1.0, 1.0, True)
    assert (other.tier, other.probability, other.good) == ("small", 0.5, False)
    assert "may take too long" in repr(other)
    assert gp.choose_accelerator(candidate, tiers, prefer="cost")[0].tier == "small"
    with pytest.raises(gp.InputError, match="no forecast"):
        gp.choose_accelerator(job(1, None), tiers)
    with pytest.raises(gp.InputError, match=r"job 1 has no curve to forecast the target 0\.3"):
        gp.choose_accelerator(candidate, tiers, target=0.3)
    with pytest.raises(gp.InputError, match="prefer is 'luck'"):
        gp.choose_accelerator(candidate, tiers, prefer="luck")


def test_an_accelerator_is_chosen_from_the_curve_and_a_target() -> None:
    step = np.arange(1.0, 201.0)
    ways = [gp.Option(0, 1, 1.0), gp.Option(1, 1, 2.0)]
    running = gp.Job(
        1,
        ways,
        steps_done=200.0,
        budget_steps=5000.0,
        observed_step=step,
        observed_loss=1.0 + 3.0 * step**-0.5,
    )
    tiers = [gp.Tier("a", 1), gp.Tier("b", 1)]
    easy = gp.choose_accelerator(running, tiers, target=1.15, max_hours=24)
    hopeless = gp.choose_accelerator(running, tiers, target=0.2, max_hours=24)
    assert easy[0].tier == "b"
    assert easy[0].probability > 0.8 > 0.2 > hopeless[0].probability


def test_scaling_is_fitted_and_predicts_between_its_measurements() -> None:
    gpus = np.array([1, 2, 4, 8, 16])
    seconds = 0.02 + 0.8 / gpus + 0.01 * np.log2(gpus)
    scaling = gp.fit_scaling(gpus, seconds, batch_per_gpu=64 / gpus)
    assert scaling.seconds(4, batch_per_gpu=16.0) == pytest.approx(seconds[2], rel=0.03)
    assert scaling.terms["compute"] > 0
    assert pickle.loads(pickle.dumps(scaling)).seconds(8) == scaling.seconds(8)
    with pytest.raises(gp.InputError, match="measurement 0 took 0 s"):
        gp.fit_scaling([1], [0.0])


def test_the_bench_proves_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    assert main(["bench", "plan", "--quick", "--json"]) in (0, 1)  # 1: a slow machine
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    facts = [row for what, row in rows.items() if "gap" in what or row["unit"] in ("times", "")]
    assert len(facts) >= 6
    assert [row for row in facts if row["holds"] is False] == []


@pytest.mark.parametrize(
    ("table", "strict"),
    [
        ("elasticflow_throughputs", False),
        ("elasticflow_throughputs", True),
        ("sia_throughput", False),
    ],
)
def test_scaling_predicts_held_out_gpu_counts(shared: Path, table: str, strict: bool) -> None:
    errors = held_out_scaling_errors(
        shared / "data" / "traces" / f"{table}.csv.gz", most=60, strict=strict
    )
    assert np.median(errors) <= 0.05
    assert np.quantile(errors, 0.9) <= 0.15  # the smallest and largest counts included


def test_gittins_index_of_a_known_size_and_of_a_gamble() -> None:
    assert gp.gittins_index([4.0]) == 0.25
    # half the time done in 1: P / E = 0.5 / 1
    assert gp.gittins_index([np.inf, 1.0]) == 0.5
    with pytest.raises(gp.InputError):
        gp.gittins_index([])


def test_tiers_come_out_of_the_catalogue() -> None:
    tier = gp.Tier.of("Bronze", "RTX 2080 Ti", 2, 4)
    assert (tier.gpus, tier.memory_gb, tier.watts(1.0)) == (8, 11.0, 250.0)
    assert all(row["source"] for row in gp.catalogue())
    with pytest.raises(gp.InputError, match="unknown GPU"):
        gp.Tier.of("x", "GTX 1", 1)
