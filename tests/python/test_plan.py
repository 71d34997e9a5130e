# SPDX-License-Identifier: Apache-2.0
"""Plans of live jobs as Python sees them, and on input that is broken."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath.cli import main


def cluster(jobs: list[gp.Job], **options: Any) -> gp.Snapshot:
    tiers = [gp.Tier("slow", 2, 2, memory_gb=11), gp.Tier("fast", 1, 2, memory_gb=24)]
    return gp.Snapshot(tiers, jobs, **options)


def job(number: int, remaining: list[float] | None, **options: Any) -> gp.Job:
    ways = [gp.Option(0, 1, 1.0), gp.Option(1, 1, 2.0)]
    return gp.Job(number, ways, remaining_steps=remaining, memory_gb=8, **options)


def test_weights_near_0_are_weighed_against_each_other_as_others_are() -> None:
    for unit in (1.0, 1e-310):
        jobs = [job(i, [1000.0], weight=i * unit) for i in range(1, 9)]
        plan = gp.plan(cluster(jobs), objective={"jct": 1.0, "known_size": 1.0})
        assert {a.job for a in plan.allocations} == {3, 4, 5, 6, 7, 8}


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


def test_a_broken_job_does_not_fail_the_plan_of_a_thousand() -> None:
    good = [job(i, [100.0 + 37 * i % 5000]) for i in range(997)]
    bad = [
        job(2000, [-20.0]),
        gp.Job(2001, [gp.Option(0, 9, 1.0)], remaining_steps=[10.0]),
        gp.Job(2002, [gp.Option(0, 1, np.nan)], remaining_steps=[10.0]),
    ]
    snapshot = cluster([*good[:500], *bad, *good[500:]])
    plan, without = gp.plan(snapshot), gp.plan(cluster(good))
    assert plan.allocations == without.allocations
    assert plan.value == without.value
    reasons = plan.reasons
    assert len(reasons) == 1000
    assert reasons[2000] == (
        "cannot be planned: job 2000 has -20 remaining steps, expected 0 or more"
    )
    fits_none = "cannot be planned: job 2001 asks 9 GPUs, tier 'slow' has 4"
    assert reasons[2001] == fits_none
    assert reasons[2002] == (
        "cannot be planned: job 2002 runs at nan steps per second, expected 0 or more and finite"
    )
    assert {job: text for job, text in reasons.items() if job < 2000} == without.reasons
    assert gp.violations(snapshot, plan) == []


def test_broken_snapshots_are_refused_by_name() -> None:
    with pytest.raises(gp.InputError, match="job 1 appears twice"):
        gp.plan(cluster([job(1, None), job(1, None)]))
    with pytest.raises(
        gp.InputError, match="objective is 'speed', expected one of jct, known_size"
    ):
        gp.plan(cluster([]), objective="speed")
    with pytest.raises(gp.InputError, match="tier 'x': nodes is -1, expected 0 or more"):
        gp.Tier("x", -1)
    assert gp.plan(cluster([])).allocations == []


def test_objectives_and_limits_by_name() -> None:
    jobs = [job(i, [1000.0 + i], user="ada" if i < 4 else "bob") for i in range(10)]
    known: dict[str, float] = {"idle_watts": 20, "busy_watts": 300, "price_per_gpu_hour": 2}
    tiers = [gp.Tier("slow", 2, 2, memory_gb=11, **known), gp.Tier("fast", 1, 2, memory_gb=24)]
    snapshot = gp.Snapshot(tiers, jobs)
    for objective in ("jct", "known_size", "quality", "deadline", "fairness", "energy", "cost"):
        plan = gp.plan(snapshot, objective=objective, user_quota={"ada": 1})
        assert gp.violations(snapshot, plan) == []
        assert sum(a.job < 4 for a in plan.allocations) <= 1
    both = gp.plan(snapshot, objective={"jct": 1.0, "edp": 0.5}, sharing="naive", in_nodes=True)
    assert gp.violations(snapshot, both) == []
    with pytest.raises(gp.InputError, match="sharing is 'magic'"):
        gp.plan(snapshot, sharing="magic")


@pytest.mark.parametrize("deadline_s", [1000.0, np.inf])
def test_a_goal_after_the_deadline_chooses_among_options_that_are_as_fast(
    deadline_s: float,
) -> None:
    # The jct within `deadline` leaves it no more than that, but it leaves that.
    tiers = [gp.Tier("hungry", 1, busy_watts=400), gp.Tier("thrifty", 1, busy_watts=100)]
    ways = [gp.Option(0, 1, 1.0), gp.Option(1, 1, 1.0)]
    one = gp.Job(1, ways, remaining_steps=[900.0], deadline_s=deadline_s)
    snapshot = gp.Snapshot(tiers, [one])
    (alone,) = gp.plan(snapshot, objective=["deadline"]).allocations
    (then,) = gp.plan(snapshot, objective=["deadline", "energy"]).allocations
    assert (alone.tier, then.tier) == (0, 1)


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
        gp.plan(snapshot, objective=["jct", "deadline"], slack=-1)
    with pytest.raises(TypeError, match=r"whole numbers of GPUs, got .ada.: 2"):
        gp.plan(snapshot, user_quota={"ada": 2.5})  # type: ignore[dict-item]


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
        options = ["--users", "60", "--at-h", "20", "--sharing", "mps", "--pairs", str(table)]
        assert main(["plan", workload, *options, "--json"]) == 0
        placed = json.loads(capsys.readouterr().out)["jobs"]
        return sum(row["partner"] is not None for row in placed)

    assert partners(1.0) >= 2
    assert partners(10.0) == 0
    assert main(["plan", workload, "--sharing", "magic"]) == 2
    assert "sharing is 'magic'" in capsys.readouterr().err


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
    assert (best.node_watts, other.node_watts) == (400, 250)
    assert gp.choose_accelerator(candidate, tiers, max_node_watts=300)[0].tier == "small"
    with pytest.raises(gp.InputError, match="no forecast"):
        gp.choose_accelerator(job(1, None), tiers)
    with pytest.raises(gp.InputError, match=r"job 1 has no curve to forecast the target 0\.3"):
        gp.choose_accelerator(candidate, tiers, target=0.3)
    with pytest.raises(gp.InputError, match="prefer is 'luck'"):
        gp.choose_accelerator(candidate, tiers, prefer="luck")


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        *[({limit: 9.0}, "watts") for limit in ("max_watts", "max_node_watts", "max_kwh")],
        *[({"prefer": "kwh"}, "watts"), ({"prefer": "watts"}, "watts")],
        *[({"max_cost": 9.0}, "price_per_gpu_hour"), ({"prefer": "cost"}, "price_per_gpu_hour")],
    ],
    ids=str,
)
def test_a_limit_that_no_accelerator_would_be_held_to_is_refused(asked: Any, lacks: str) -> None:
    tiers = [gp.Tier("small", 4), gp.Tier("large", 4)]
    ((name, value),) = asked.items()
    shown = f"'{value}'" if name == "prefer" else f"{value:g}"
    with pytest.raises(gp.InputError) as error:
        gp.choose_accelerator(job(1, [3600.0]), tiers, **asked)
    assert str(error.value).startswith(f"choose_accelerator: {name} is {shown}, no tier has ")
    assert str(error.value).endswith(lacks)
    known = [gp.Tier("small", 4), gp.Tier("large", 4, busy_watts=400, price_per_gpu_hour=2)]
    assert len(gp.choose_accelerator(job(1, [3600.0]), known, **asked)) == 2


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


def test_the_bench_proves_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    assert main(["bench", "plan", "--quick", "--json"]) in (0, 1)  # 1: a slow machine
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    facts = [row for what, row in rows.items() if "gap" in what or row["unit"] in ("times", "")]
    assert len(facts) >= 6
    assert [row for row in facts if row["holds"] is False] == []


def test_gittins_index_of_a_known_size_and_of_a_gamble() -> None:
    assert gp.gittins_index([4.0]) == 0.25
    # half the time done in 1: P / E = 0.5 / 1
    assert gp.gittins_index([np.inf, 1.0]) == 0.5
    with pytest.raises(gp.InputError):
        gp.gittins_index([])


def sharing_pair() -> gp.Snapshot:
    """Two jobs on the same GPU that may not be preempted."""
    jobs = [
        gp.Job(
            number,
            [gp.Option(0, 1, 1.0, utilization=0.3)],
            user="u",
            remaining_steps=[1e4],
            attained_s=100.0 / number,
            preemptible=False,
            sm_activity=0.3,
        )
        for number in (1, 2)
    ]
    running = [gp.Allocation(1, 0, 1, 0.0, 2), gp.Allocation(2, 0, 1, 50.0, 1)]
    tiers = [gp.Tier("a", 4, 1, idle_watts=50.0, busy_watts=300.0)]
    return gp.Snapshot(tiers, jobs, running=running, now_s=100.0)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, [1, 2]),
        ({"power_cap_w": 205.0}, [1, 2]),
        ({"power_cap_w": 150.0}, [1]),
        ({"user_quota": {"u": 2}}, [1, 2]),
        ({"user_quota": {"u": 1}}, [1]),
    ],
)
def test_a_pair_stays_together_as_far_as_the_limits_allow(
    limits: dict[str, Any], kept: list[int]
) -> None:
    snapshot = sharing_pair()
    plan = gp.plan(snapshot, sharing="mps", **limits)
    assert sorted(held.job for held in plan.allocations) == kept
    assert gp.violations(snapshot, plan, sharing="mps", **limits) == []
    lost = ["job 2 loses its GPUs, it may not be preempted"] if kept == [1] else []
    assert gp.violations(snapshot, plan, sharing="mps") == lost
