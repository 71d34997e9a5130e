# SPDX-License-Identifier: Apache-2.0
"""`glidepath slurm --simulated`: what the pilot would do, before it does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import cli
from glidepath.engines.slurm import DecisionLog, PilotOptions
from glidepath.engines.slurm.rehearsal import Rehearsal, rehearse

TIERS = [gp.Tier("slow", 1, gpu="a"), gp.Tier("fast gpu", 1, gpu="b")]


@pytest.fixture(scope="module")
def workload(root: Path) -> gp.Workload:
    return gp.generate_workload(root / "data" / "workloads" / "supercom", users=4)


@pytest.fixture(scope="module")
def played(
    workload: gp.Workload, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Rehearsal, Path]:
    log = tmp_path_factory.mktemp("rehearsal") / "decisions.db"
    return rehearse(workload, log=log), log


def ends(rehearsal: Rehearsal) -> dict[str, float]:
    """When each job was over: ended by itself, or by the pilot for good."""
    return {e.job: e.at_s for e in rehearsal.events if e.kind in ("end", "cancel")}


def test_the_events_are_the_pilots_own_decisions(played: tuple[Rehearsal, Path]) -> None:
    rehearsal, log = played
    with DecisionLog(log, readonly=True) as book:
        noted = Counter(event.kind for event in book.events() if event.phase == "done")
    kinds = Counter(event.kind for event in rehearsal.events)
    assert kinds["cancel"] == noted["stop"] > 0
    assert kinds["suspend"] == noted["checkpoint"] > 0
    assert all(event.reason for event in rehearsal.events)


def test_the_metrics_follow_from_the_events(
    workload: gp.Workload, played: tuple[Rehearsal, Path]
) -> None:
    rehearsal, _ = played
    submit_s = workload.jobs["submit_s"] - workload.jobs["submit_s"].min()
    over = ends(rehearsal)
    jct = [over[str(j)] - at for j, at in zip(workload.jobs["job"], submit_s, strict=True)]
    assert rehearsal.metrics["mean_jct_s"] == pytest.approx(np.mean(jct), rel=1e-12)
    assert rehearsal.metrics["makespan_s"] == pytest.approx(max(over.values()), rel=1e-12)
    starts = Counter(event.job for event in rehearsal.events if event.kind == "start")
    assert rehearsal.metrics["preemptions"] == sum(starts.values()) - len(starts)
    assert sum(rehearsal.metrics["outcomes"].values()) == len(workload)
    assert [event.at_s for event in rehearsal.events] == sorted(e.at_s for e in rehearsal.events)


def test_no_tier_ever_holds_more_jobs_than_it_has_gpus(
    workload: gp.Workload, played: tuple[Rehearsal, Path]
) -> None:
    where: dict[str, str] = {}
    for event in played[0].events:
        where.pop(event.job, None)
        if event.kind == "start":
            where[event.job] = event.tier
        held = Counter(where.values())
        assert all(held[tier.name] <= tier.gpus for tier in workload.tiers)
    assert where == {}


def test_a_rehearsal_gives_the_same_answer_each_time(
    workload: gp.Workload, played: tuple[Rehearsal, Path]
) -> None:
    assert rehearse(workload) == played[0]


def test_jobs_without_checkpoints_are_never_moved_and_nothing_is_ended_where_it_may_not(
    workload: gp.Workload,
) -> None:
    still = rehearse(workload, checkpoint="none")
    assert still.metrics["preemptions"] == 0
    kept = rehearse(workload, PilotOptions(cancel=False))
    assert kept.metrics["outcomes"] == {"finished": len(workload)}
    assert "cancel" not in {event.kind for event in kept.events}
    # Running to the budget at its own pace on the fastest tier is the least a job can take.
    jobs = workload.jobs
    least = (jobs["budget_steps"] / jobs["steps_per_s"].max(axis=1)).mean()
    assert kept.metrics["mean_jct_s"] > least


def test_two_jobs_on_one_gpu_take_what_one_works_out_by_hand() -> None:
    jobs = {"job": [7, 8], "submit_s": [100, 160], "gpus": [1, 1], "duration_s": [600, 300]}
    tiers = [gp.Tier("only", 1, idle_watts=100, busy_watts=300)]
    found = rehearse(gp.Workload(tiers, jobs), PilotOptions(restart_s=0.0), checkpoint="none")
    assert [(e.kind, e.job) for e in found.events] == [
        ("start", "7"), ("end", "7"), ("start", "8"), ("end", "8")
    ]  # fmt: skip
    # Time goes in ticks of 5 s, and Slurm may look at the second job a deferral (180 s) late.
    assert found.events[1].at_s == pytest.approx(600, abs=10)
    assert found.events[3].at_s - found.events[2].at_s == pytest.approx(300, abs=10)
    assert 0 <= found.events[2].at_s - found.events[1].at_s <= 190
    busy_s = found.metrics["gpu_seconds"]
    idle_s = found.metrics["makespan_s"] - busy_s
    assert found.metrics["energy_kwh"] == pytest.approx((300 * busy_s + 100 * idle_s) / 3.6e6)


def test_a_job_runs_only_where_it_can() -> None:
    jobs = {"job": [1, 2], "submit_s": [0, 0], "gpus": [1, 1], "duration_s": [400, 400],
            "steps_per_s": [[0.0, 2.0], [1.0, 0.0]]}  # fmt: skip
    found = rehearse(gp.Workload(TIERS, jobs), PilotOptions(restart_s=0.0))
    where = {event.job: event.tier for event in found.events if event.kind == "start"}
    assert where == {"1": "fast-gpu", "2": "slow"}  # a comment has no blank in a name
    over = ends(found)
    assert over["1"] == pytest.approx(200, abs=10)
    assert over["2"] == pytest.approx(400, abs=10)


def test_what_cannot_be_played_is_refused(tmp_path: Path) -> None:
    jobs: dict[str, Any] = {"job": [1], "submit_s": [0], "gpus": [1], "duration_s": [400]}
    workload = gp.Workload(TIERS, jobs)
    with pytest.raises(gp.InputError, match="checkpoint is 'often', expected 'usr1' or 'none'"):
        rehearse(workload, checkpoint="often")  # type: ignore[arg-type]
    (tmp_path / "log.db").touch()
    with pytest.raises(gp.InputError, match="exists; a rehearsal begins a decision log of its own"):
        rehearse(workload, log=tmp_path / "log.db")
    with pytest.raises(gp.IoError, match=r"the rehearsal ended early: .*inside"):
        rehearse(workload, log=tmp_path / "log.db" / "inside.db")


def test_the_command_line_gives_one_document_with_the_keys_of_simulate(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job,submit_s,gpus,duration_s\n1,0,1,900\n2,30,2,300\n3,60,1,200\n")
    assert cli.main(["slurm", "--simulated", str(trace), "--gpus", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert cli.main(["simulate", str(trace), "--gpus", "2", "-p", "fifo", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    pilot, fifo = document["policies"]
    assert (pilot["policy"], fifo["policy"]) == ("pilot", "fifo")
    assert set(pilot) == set(fifo) < set(row)
    assert pilot["outcomes"] == fifo["outcomes"] == {"finished": 3}
    assert set(document["story"][0]) == {"at_s", "job", "kind", "tier", "reason"}
    assert cli.main(["slurm", "--simulated", str(trace), "--gpus", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1].endswith("energy not known.")  # nobody said what its GPUs draw
    assert len([line for line in said if "  start  " in line]) >= 3


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["--json", "status"], "--json before status: it goes with --simulated, and a rehearsal"),
        (["--gpus", "4"], "say --simulated WORKLOAD for a rehearsal, or a verb"),
        (["--simulated", "{trace}"], "is a CSV of jobs: say how many --gpus there are"),
        (["--simulated", "nowhere"], "nowhere: no such file or folder"),
        (["--simulated", "{trace}", "--gpus", "1"], "job 2"),
        (["--simulated", "{trace}", "--gpus", "2", "--order", "random"], "order is 'random'"),
        (["--simulated", "{trace}", "--gpus", "2", "--round-s", "0"], "round_s is 0"),
    ],
)
def test_a_rehearsal_that_cannot_be_says_so_in_one_sentence(
    line: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job,submit_s,gpus,duration_s\n1,0,1,900\n2,30,2,300\n")
    assert cli.main(["slurm", *(word.format(trace=trace) for word in line)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1
