# SPDX-License-Identifier: Apache-2.0
"""`solve_round` against SciPy's MILP, and on columns that are broken."""

import pickle

import numpy as np
import pytest

import glidepath as gp

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
    # A gang of 3 that stays leaves the second node alone to gangs of 3, and 5 GPUs in all.
    kept = gp.solve_round(*columns, node_gpus=[4], taken_tier=[0], taken_gpus=[3])
    assert kept.value == 3.0
    assert gp.solve_round(*columns, taken_tier=0, taken_gpus=3).value == 5.0
    with pytest.raises(
        gp.InputError, match="taken_tier has 1 entries, expected 2, one for each of"
    ):
        gp.solve_round(*columns, taken_tier=[0], taken_gpus=[1, 1])
    with pytest.raises(gp.InputError, match="option 1 names user 7, expected 0 to 1"):
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


def reason(tiers: list[gp.Tier], job: gp.Job) -> str:
    """Why the only job of a snapshot gets what it gets."""
    return gp.plan(gp.Snapshot(tiers, [job])).reasons[job.id]


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
    assert reason([], gp.Job(1, [gp.Option(0, 1, 1.0)])) == (
        "cannot be planned: job 1 names tier 0, expected none: there are no tiers"
    )
    ways = [gp.Option(0, 1 + i % 9, 1.0 + i) for i in range(50_000)]
    ways += [gp.Option(0, 1 + i % 9, 0.5, sharing="mps") for i in range(50_000)]
    many = gp.Job(1, ways, remaining_steps=[1.0])
    snapshot = gp.Snapshot([gp.Tier("a", 1)], [many])
    assert len(gp.plan(snapshot, sharing="mps").allocations) == 1
    worth = gp.Job(1, [gp.Option(0, 1, 1.0)], weight=1e15, remaining_steps=[1.0])
    assert gp.plan(gp.Snapshot([gp.Tier("a", 1)], [worth])).value == pytest.approx(1e15)
    tiers = [gp.Tier("a", 1)]
    assert reason(tiers, gp.Job(1, [gp.Option(0, 1, 1.0)], weight=-1.0)) == (
        "cannot be planned: job 1 has weight -1, expected 0 or more and finite"
    )
    assert reason(tiers, gp.Job(1, [gp.Option(0, 1, np.nan)])) == (
        "cannot be planned: job 1 runs at nan steps per second, expected 0 or more and finite"
    )


@pytest.mark.parametrize("gangs", [(16, 8, 4, 2, 1), (1, 2, 4, 8, 16), (4, 2, 1)])
def test_of_gangs_that_are_worth_the_same_the_smallest_runs(gangs: tuple[int, ...]) -> None:
    jobs = 500
    job = np.repeat(np.arange(jobs), len(gangs))
    gpus = np.tile(gangs, jobs)
    plan = gp.solve_round(job, np.zeros_like(job), gpus, np.ones(job.size), [jobs])
    assert plan.value == jobs
    assert set(gpus[plan.chosen]) == {1}


@pytest.mark.parametrize(("jobs", "tiers"), [(300, 2), (3000, 10)])
def test_a_round_of_equal_values_is_near_the_optimum(jobs: int, tiers: int) -> None:
    rng = np.random.default_rng(jobs)
    job = np.repeat(np.arange(jobs), 5)
    tier = rng.integers(0, tiers, job.size)
    gpus = 2 ** rng.integers(0, 5, job.size)
    capacity = rng.integers(jobs // tiers // 2, 2 * jobs // tiers, tiers)
    columns = job, tier, gpus, np.ones(job.size), capacity
    plan = gp.solve_round(*columns)
    best = milp(columns, relaxed=True)
    assert plan.bound >= best * (1 - 1e-9)
    assert plan.value >= 0.95 * best
