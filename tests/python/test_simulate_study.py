# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from pathlib import Path

import pytest

import glidepath as gp
from glidepath._bench import seed_study
from glidepath._bench.packing import Queue

SUPERCOM = Path(__file__).parents[2] / "data" / "workloads" / "supercom"


def test_the_study_writes_its_page_and_says_what_is_reached(tmp_path: Path) -> None:
    rows = seed_study.run(SUPERCOM, users=(10,), seeds=2)
    assert {(row["arm"], row["policy"]) for row in rows} == {
        (arm, policy)
        for arm in ("overfitting", "interrupted", "uninterrupted")
        for policy in ("fifo", "session_fifo", "dare", "best_value")
    }
    (said,) = seed_study.factors(rows)
    assert "83x in energy" in said["reached"]
    seed_study.write(tmp_path / "study.html", SUPERCOM, rows)
    page = (tmp_path / "study.html").read_text()
    assert "With retraining to overfitting" in page
    assert "Who held which GPU" in page
    seed_study.write(tmp_path / "study.png", SUPERCOM, rows)
    assert (tmp_path / "study.png").stat().st_size > 10000


def test_factors_are_reached_or_not() -> None:
    def row(arm: str, policy: str, wait: float, jct: float, energy: float) -> dict[str, object]:
        ratios = {"total_wait_s_ratio": wait, "mean_jct_s_ratio": jct, "energy_kwh_ratio": energy}
        return {"users": 7, "arm": arm, "policy": policy} | ratios

    rows = [
        row("overfitting", "dare", 0.01, 0.2, 0.5), row("overfitting", "best_value", 0.2, 0.1, 0.4),
        row("uninterrupted", "dare", 1.0, 0.9, 1.0),
        row("uninterrupted", "best_value", 1.0, 0.8, 1.0),
    ]  # fmt: skip
    (said,) = seed_study.factors(rows)
    assert said["wait"] == pytest.approx(100)
    assert said["JCT"] == pytest.approx(10)
    assert said["without_interruption"] == 0.8
    assert said["reached"] == (
        "at least 15 % less mean JCT without interruption, 80x in wait, not 80x in JCT, "
        "not 83x in energy"
    )
    rows[0]["total_wait_s_ratio"] = rows[1]["total_wait_s_ratio"] = math.nan
    assert "nobody waits under fifo" in seed_study.factors(rows)[0]["reached"]


def test_two_jobs_on_one_gpu_get_what_their_pair_was_measured_at() -> None:
    pytest.importorskip("scipy")
    jobs = {
        "job": [1, 2], "submit_s": [0, 0], "gpus": [1, 1], "budget_steps": [100, 100],
        "steps_per_s": [[2.0], [2.0]], "job_class": ["a", "b"],
    }  # fmt: skip
    queue = Queue(gp.Workload([gp.Tier("one", 1)], jobs, pairs=[("a", "b", 0, 0.8, 0.8)]))
    assert queue.gavel(packed=False) == pytest.approx(1)  # half of the time each
    assert queue.planned(packed=False) == pytest.approx(1)
    assert queue.gavel(packed=True) == pytest.approx(1.6)
    assert queue.planned(packed=True) == pytest.approx(1.6)
