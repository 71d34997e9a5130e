# SPDX-License-Identifier: Apache-2.0
"""Jobs of several gangs: workloads, what a policy sees of them, and plans beside HiGHS."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

import glidepath as gp


def elastic() -> gp.Workload:
    jobs = {
        "job": [1, 2],
        "submit_s": [0.0, 5.0],
        "budget_steps": [100.0, 50.0],
        "gpus": [1, 2],
        "steps_per_s": [[1.0], [2.0]],
        "restart_s": [3.0, -1.0],
        "gangs": [{2: [1.5], 4: [2.0]}, {}],
    }
    return gp.Workload([gp.Tier("a", 4)], jobs)


def test_gangs_and_restarts_are_columns_of_a_workload() -> None:
    work = elastic()
    assert work.jobs["gangs"].tolist() == [{2: [1.5], 4: [2.0]}, {}]
    assert work.jobs["restart_s"].tolist() == [3.0, -1.0]
    assert pickle.loads(pickle.dumps(work)) == work
    plain = gp.Workload([gp.Tier("a", 4)], {"job": [1], "submit_s": [0.0], "duration_s": [9.0]})
    assert not {"gangs", "restart_s"} & set(plain.jobs)
    with pytest.raises(gp.InputError, match="job 1 has its gang of 1 GPUs twice"):
        gp.Workload(work.tiers, {**work.jobs, "gangs": [{1: [1.0]}, {}]})
    with pytest.raises(TypeError, match="gangs is 3"):
        gp.Workload(work.tiers, {**work.jobs, "gangs": [3, {}]})


def test_gangs_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tiers.csv").write_text("name,nodes,gpus_per_node\na,4,1\n")
    (tmp_path / "jobs.csv").write_text(
        "job,submit_s,gpus,duration_s,restart_s\n1,0,1,100,3\n2,5,2,50,\n"
    )
    (tmp_path / "gangs.csv").write_text("job,gpus,steps_per_s_a\n1,2,1.5\n1,4,2\n")
    work = gp.read_workload(tmp_path)
    assert work.jobs["gangs"].tolist() == [{2: [1.5], 4: [2.0]}, {}]
    assert work.jobs["restart_s"].tolist() == [3.0, -1.0]
    (tmp_path / "gangs.csv").write_text("job,gpus,steps_per_s_a\n7,2,1.5\n")
    with pytest.raises(gp.IoError, match=r"gangs.csv:2: jobs.csv has no job 7"):
        gp.read_workload(tmp_path)


def test_a_policy_sees_the_gangs_and_may_change_them() -> None:
    def widest(snapshot: gp.Snapshot) -> gp.Plan:
        job = snapshot.jobs[0]
        assert [option.gpus for option in job.options] == ([1, 2, 4] if job.id == 1 else [2])
        gpus = max(option.gpus for option in job.options)
        return gp.Plan(allocations=[gp.Allocation(job=job.id, tier=0, gpus=gpus)])

    run = gp.simulate(elastic(), widest, restart_s=100)
    assert run.jobs["end_s"].tolist() == [50.0, 75.0]
    assert run.jobs["gpu_seconds"].tolist() == [200.0, 50.0]


def test_no_plan_of_gangs_is_better_than_the_bound_of_the_round() -> None:
    """HiGHS solves the same program: many jobs, each with gangs of 1 to 8 GPUs on three tiers."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        capacity = np.array([24, 24, 16])
        rows = [(j, t, k) for j in range(40) for t in range(3) for k in (1, 2, 4, 8)]
        job, tier, gpus = (np.array(column) for column in zip(*rows, strict=True))
        tail = rng.uniform(0.3, 1, 40)[job]
        value = rng.lognormal(0, 2, 40)[job] * rng.uniform(1, 4, (40, 3))[job, tier] * gpus**tail
        best = milp(
            -value,
            integrality=np.ones(len(rows)),
            bounds=(0, 1),
            constraints=[
                LinearConstraint(np.equal.outer(np.arange(40), job), ub=1),
                LinearConstraint(np.equal.outer(np.arange(3), tier) * gpus, ub=capacity),
            ],
            options={"mip_rel_gap": 1e-9},
        )
        round_ = gp.solve_round(job, tier, gpus, value, capacity=capacity, gap=0)
        assert best.success
        assert round_.value <= -best.fun * (1 + 1e-9)
        assert round_.bound >= -best.fun * (1 - 1e-9)
        assert round_.value >= 0.98 * -best.fun


@pytest.mark.parametrize("policy", [row.name for row in gp.policies() if not row.elastic])
@pytest.mark.parametrize("forecasts", [{}, {"forecast_sigma": 1.0, "restart_s": 30.0}])
def test_a_policy_that_chooses_no_gang_is_the_same_where_jobs_have_several(
    policy: str, forecasts: dict[str, float]
) -> None:
    random = np.random.default_rng(27)
    jobs = {
        "job": np.arange(12),
        "submit_s": np.sort(random.integers(0, 300, 12)),
        "duration_s": random.integers(20, 900, 12),
        "gpus": random.choice([1, 2, 4], 12),
        "steps_per_s": np.full((12, 1), 1.5),
    }
    one, several = (
        gp.simulate(gp.Workload([gp.Tier("a", 8)], jobs | more), policy, **forecasts)
        for more in ({}, {"gangs": [{8: [2.0]}] * 12})
    )
    assert one.jobs["end_s"].tolist() == several.jobs["end_s"].tolist()
    assert one.fallback == several.fallback
