# SPDX-License-Identifier: Apache-2.0
"""What published simulators answered on traces of our own; nothing outside this repository.

Both were run once by bench/rivals/cluster_simulators.py, without a changed line: Gavel
(stanford-futuredata/gavel at c4fa400, MIT; Python 3.11.7, cvxpy 1.9.3, ECOS 2.0.14, SciPy 1.17.1)
with one GPU a server, rounds of 360 s and seed 0; Tiresias as tests/published_test.cpp says.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import glidepath as gp

TRACES = Path(__file__).parents[2] / "data" / "traces"


def tiers120(*, sharing: bool = False) -> gp.Workload:
    return gp.Workload.from_gavel(
        TRACES / "tiers120.csv.gz",
        TRACES / "rates.csv.gz",
        cluster={"v100": 8, "p100": 16, "k80": 24},
        sharing=sharing,
    )


def digest(run: gp.Simulation) -> int:
    """CRC-32 of the completion times of all jobs, cut to seconds where none is close to a cut."""
    return zlib.crc32("".join(f"{int(jct + 0.1)}\n" for jct in run.jobs["jct_s"]).encode())


@pytest.mark.parametrize(
    ("policy", "mean", "median", "p95", "makespan", "jobs"),
    [
        ("fifo_perf", 45711.153, 38963.157, 93735.522, 133457.438, 0x5C3A4EE9),
        ("isolated", 36592.514, 28754.712, 89942.985, 173068.166, 0x2E7E4C72),
    ],
)
def test_policies_of_gavel_that_solve_nothing_are_reproduced_job_by_job(
    policy: str, mean: float, median: float, p95: float, makespan: float, jobs: int
) -> None:
    run = gp.simulate(tiers120(), policy)
    assert run.mean_jct_s == pytest.approx(mean, rel=1e-7)
    assert run.median_jct_s == pytest.approx(median, rel=1e-7)
    assert run.p95_jct_s == pytest.approx(p95, rel=1e-7)
    assert run.makespan_s == pytest.approx(makespan, rel=1e-7)
    assert digest(run) == jobs


@pytest.mark.parametrize(
    ("solver", "mean", "p95", "makespan"),
    [("ECOS", 30377.207, 73074.292, 128627.616), ("HiGHS", 30657.822, 73218.558, 127868.186)],
)
def test_fair_shares_by_throughput_are_those_of_either_solver(
    solver: str, mean: float, p95: float, makespan: float
) -> None:
    run = gp.simulate(tiers120(), "max_min")
    assert run.mean_jct_s == pytest.approx(mean, rel=0.015), solver
    assert run.p95_jct_s == pytest.approx(p95, rel=0.04), solver
    assert run.makespan_s == pytest.approx(makespan, rel=0.015), solver


def test_fair_shares_among_types_that_are_all_alike_lie_between_those_of_two_solvers() -> None:
    # A linear program with many optima, between which the solver chooses: Gavel's mean is 36 677 s
    # with ECOS and 39 713 s with HiGHS, its makespan 173 395 s and 177 883 s.
    workload = tiers120()
    runs = [gp.simulate(workload, "max_min_unaware", seed=seed) for seed in range(10)]
    assert 36677 < np.mean([run.mean_jct_s for run in runs]) < 39713
    assert np.mean([run.makespan_s for run in runs]) == pytest.approx(173394.977, rel=0.06)


def test_the_planner_beats_gavel_on_tiers_that_suit_jobs_differently() -> None:
    run = gp.simulate(tiers120(), "best_value")
    assert run.mean_jct_s < 0.8 * 30377
    assert run.lower_bound_jct_s < run.mean_jct_s


def test_pairs_with_known_speeds_raise_what_a_cluster_gets_done() -> None:
    workload = tiers120(sharing=True)
    alone = gp.simulate(workload, "best_value")
    pairs = gp.simulate(workload, "best_value", sharing="mps")
    assert (pairs.spans["partner"] >= 0).any()
    assert not (alone.spans["partner"] >= 0).any()
    assert pairs.mean_jct_s < alone.mean_jct_s


@pytest.mark.parametrize(
    ("policy", "mean", "preemptions"), [("fifo", 14601.956, 0), ("srtf", 6032.723, 270)]
)
def test_tiresias_is_reproduced_from_python_too(policy: str, mean: float, preemptions: int) -> None:
    run = gp.simulate(gp.Workload.from_trace(TRACES / "queue480.csv.gz", gpus=60), policy)
    assert run.mean_jct_s == pytest.approx(mean, rel=1e-6)
    assert run.preemptions == preemptions


def test_the_traces_are_those_of_the_script_beside_them(tmp_path: Path) -> None:
    script = tmp_path / "make_traces.py"
    script.write_text((TRACES / "make_traces.py").read_text())
    run_path(str(script), run_name="__main__")
    made = sorted(path.name for path in tmp_path.glob("*.gz"))
    assert made == sorted(path.name for path in TRACES.glob("*.gz"))
    for name in made:
        assert rows(tmp_path / name) == rows(TRACES / name), name


def rows(path: Path) -> list[str]:
    with gzip.open(path, "rt") as file:
        return file.read().splitlines()
