# SPDX-License-Identifier: Apache-2.0
"""The pilot and its Slurm engine, over recorded text and a simulated cluster."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import slurm_stub
from slurm_stub import SlurmStub
from typer.testing import CliRunner

import glidepath
from glidepath import InputError
from glidepath.cli._slurm import app
from glidepath.engines.slurm import (
    Answer,
    Cluster,
    ClusterError,
    ClusterJob,
    DecisionLog,
    Event,
    LogError,
    Pilot,
    PilotOptions,
    Pool,
    Round,
    Slurm,
    Wish,
    checkpoint,
    run_command,
)
from glidepath.engines.slurm._model import Transit, with_note
from glidepath.engines.slurm._text import expand_nodes, read_nodes, read_queue
from glidepath.engines.slurm._traces import TraceStore, trace_path
from glidepath.engines.slurm.simulated import Run, Simulated

TIERS = {"bronze": 1.0, "silver": 2.0, "gold": 4.0}
POOLS = (
    Pool("bronze", "bronze", ("bronze0",), 4, 4, 1.0),
    Pool("silver", "silver", ("silver0",), 2, 2, 2.0),
    Pool("gold", "gold", ("gold0",), 1, 1, 4.0),
)
EASY = "glidepath target=0.4 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"
HOPELESS = "glidepath target=0.01 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"


def curve(seed: int, floor: float = 0.2, rate: float = 0.5) -> Callable[[int], float]:
    noise = np.random.default_rng(seed).normal(size=5000) * 0.005
    return lambda step: (floor + 2 * step**-rate) * math.exp(noise[step])


def job(number: int | str, comment: str = EASY, **more: object) -> ClusterJob:
    values: dict[str, object] = {"gpus": 1, "limit_s": 4 * 3600.0, "comment": comment}
    return ClusterJob(str(number), "me", "PENDING", "bronze", **{**values, **more})  # type: ignore[arg-type]


class World:
    """A simulated cluster behind Slurm's commands, and a pilot."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.cluster = Simulated(POOLS, folder / "logs")
        self.cluster.folder.mkdir(parents=True, exist_ok=True)
        self.stub = SlurmStub(self.cluster)
        self.log = folder / "decisions.db"
        self.options = {"mode": "act", "round_s": 30.0, "restart_s": 30.0, **options}
        self.pilot = self.new_pilot()

    def new_pilot(self, **more: object) -> Pilot:
        engine = Slurm(users=["me"], run=self.stub, tiers=TIERS, clock=lambda: self.cluster.now_s)
        options = PilotOptions(**{**self.options, **more})  # type: ignore[arg-type]
        return Pilot(engine, self.log, options, clock=lambda: self.cluster.now_s)

    def submit(self, submitted: ClusterJob, seed: int = 0, **more: object) -> Run:
        submitted = replace(submitted, workdir=str(self.cluster.folder))
        values: dict[str, object] = {"loss": curve(seed), "budget": 2000, **more}
        run = Run(submitted, **values)  # type: ignore[arg-type]
        self.cluster.submit(run)
        return run

    def fly(self, rounds: int = 400) -> list[Round]:
        seen = []
        with self.pilot:
            while self.cluster.live and len(seen) < rounds:
                seen.append(self.pilot.round())
                self.cluster.advance(30)
        return seen

    def story(self, number: int | str) -> list[Event]:
        with DecisionLog(self.log, readonly=True) as log:
            return log.events(str(number))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# ------------------------------------------------------------------------------------------- text

# What squeue 22.05.8 printed for: a held job, a task of an array, a job with a begin time and a
# newline in its comment, and a running job with a field separator in its name.
RECORDED = (
    "4\x1froot\x1fPENDING\x1fgold\x1fJobHeldUser\x1f1795252952\x1fN/A\x1fN/A\x1f1:00:00\x1f0:00"
    "\x1f0\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1f0\x1f(null)\x1fj.sh\x1f/tmp\x1f/tmp/slurm-4.out\x1f\x1e\n"
    "2_3\x1froot\x1fPENDING\x1ftrain\x1fJobArrayTaskLimit\x1f1795252952\x1fN/A\x1fN/A\x1f5-00:01:00"
    "\x1f0:00\x1f0\x1f1\x1f\x1fgres:gpu:silver:2\x1fN/A\x1f0\x1f(null)\x1farr\x1f/tmp"
    "\x1f/tmp/slurm-2.out\x1f\x1e\n"
    "3\x1froot\x1fPENDING\x1ftrain\x1fBeginTime\x1f1795252952\x1f1795256552\x1f1795256552\x1f1:00:00"
    "\x1f0:00\x1f100\x1f1\x1f\x1fgres:gpu:1\x1fN/A\x1f0\x1fglidepath a\nb\x1fj.sh\x1f/tmp"
    "\x1f/tmp/slurm-3.out\x1f\x1e\n"
    "1\x1froot\x1fRUNNING\x1ftrain\x1fNone\x1f1795252952\x1f1795252953\x1f1795252952\x1fUNLIMITED"
    "\x1f1-00:00:01\x1f0\x1f1\x1fgold0\x1fgres:gpu:1\x1fN/A\x1f2\x1fglidepath target=0.1\x1fodd"
    "\x1f na|me\x1f/tmp\x1f/tmp/slurm-1.out\x1f\x1e\n"
)


def test_reads_what_a_real_squeue_printed() -> None:
    jobs, unreadable = read_queue(RECORDED)
    held, task, later = jobs
    assert (held.id, held.held, held.limit_s, held.gpus) == ("4", True, 3600.0, 1)
    assert (task.id, task.limit_s, task.gpus, task.gpu_type) == ("2_3", 432060.0, 2, "silver")
    assert (later.eligible_s, later.nice, later.comment) == (1795256552.0, 100, "glidepath a\nb")
    assert unreadable == 1  # a separator in its name: left alone rather than guessed at


def test_reads_a_running_job_with_its_attempt() -> None:
    (running,), unreadable = read_queue(RECORDED.split("\n")[-2].replace("odd\x1f", "odd"))
    assert unreadable == 0
    assert (running.limit_s, running.used_s, running.restarts) == (math.inf, 86401.0, 2)
    assert (running.nodes, running.start_s) == (("gold0",), 1795252953.0)


def test_a_name_cannot_forge_another_job() -> None:
    victim = job(7, "")
    record = slurm_stub.queue_text([replace(victim, comment=EASY, user="me")])
    forged = "\x1f".join(record.split("\x1f")[:-3])  # its last two fields will be the forger's own
    forger = replace(job(8), name=f"x\x1f\x1f\x1f\x1e\n{forged}")
    jobs, unreadable = read_queue(slurm_stub.queue_text([victim, forger]))
    assert [each.id for each in jobs] == ["8"]
    assert unreadable == 2


def test_the_stub_prints_what_the_reader_reads() -> None:
    jobs = [
        replace(job(1), state="RUNNING", nodes=("gold0",), start_s=5.0, used_s=100000.0),
        replace(job("2_7"), gpus=4, gpu_type="silver", limit_s=math.inf, nice=3, reason="Priority"),
    ]
    read, unreadable = read_queue(slurm_stub.queue_text(jobs))
    assert unreadable == 0
    assert [replace(each, name="", stdout="") for each in read] == jobs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gold0", ("gold0",)),
        ("gpu[01-03,7],login", ("gpu01", "gpu02", "gpu03", "gpu7", "login")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("", ()),
    ],
)
def test_expands_node_lists(text: str, names: tuple[str, ...]) -> None:
    assert expand_nodes(text) == names


def test_a_tier_is_a_partition_of_equal_gpus_that_shares_no_node() -> None:
    text = "".join(
        "".join(f"{field}\x1f" for field in row) + "\x1e\n"
        for row in [
            ("a0", "a", "idle", "gpu:v100:4(S:0-1)"),
            ("a1", "a", "down*", "gpu:v100:4"),
            ("b0", "b", "mixed-", "gpu:a100:8,shard:16"),
            ("a0", "all*", "idle", "gpu:v100:4"),
            ("b0", "all*", "mixed", "gpu:a100:8"),
            ("c0", "cpu", "idle", "(null)"),
        ]
    )
    pools = read_nodes(text)
    assert [(p.name, p.gpu, p.gpus) for p in pools] == [
        ("a", "v100", 4),
        ("b", "a100", 8),
        ("all", "", 12),
    ]
    engine = Slurm(run=lambda command, timeout_s: Answer(0, text if command[0] == "sinfo" else ""))
    found = engine.read().pools
    assert [pool.name for pool in found] == ["a", "b"]
    assert found[0].speed < found[1].speed  # by the catalogue


# ---------------------------------------------------------------------------------------- comments


def test_reads_a_comment() -> None:
    wish = Wish.read("glidepath target=-1.5 budget=1e4 tiers=a,b trace=runs/%j.csv weight=2 | x=1")
    assert wish == Wish(-1.5, 1e4, "runs/%j.csv", tiers=("a", "b"), weight=2.0)


@pytest.mark.parametrize(
    "comment", ["", "glidepathological", "x glidepath", "Glidepath", "a|glidepath"]
)
def test_only_the_first_word_opts_in(comment: str) -> None:
    assert Wish.read(comment) is None


@pytest.mark.parametrize(
    "word", ["target=low", "budget=-1", "budget=inf", "checkpoint=x", "typo=1", "x"]
)
def test_a_comment_that_cannot_be_read_says_so(word: str) -> None:
    wish = Wish.read(f"glidepath {word}")
    assert wish is not None
    assert word in wish.problem


def test_a_note_keeps_the_wish_and_replaces_the_note() -> None:
    comment = with_note("glidepath target=1 | old", "moving=gold@17 because | of\nit")
    assert comment == "glidepath target=1 | moving=gold@17 because / of it"
    assert Wish.read(comment) == Wish(target=1.0)
    assert Transit.read(comment) == Transit("gold", 17)
    assert Transit.read("glidepath target=1 moving=gold@17") is None  # the user's words, not ours


# ------------------------------------------------------------------------------------------ traces


def test_reads_only_whole_lines_of_a_growing_log(tmp_path: Path) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss,seconds\n1,2.0,10\n2,1.5,10.5\n3,1.2")
    seen = store.read(log)
    assert seen.trace is not None
    assert (seen.last_step, seen.best, seen.steps_per_s) == (2.0, 1.5, 2.0)
    with log.open("a") as file:
        file.write("5,11\n4,1.0,11.5\n")
    seen = store.read(log)
    assert seen.trace is not None
    assert list(seen.trace.loss) == [2.0, 1.5, 1.25, 1.0]
    assert store.read(log) is seen  # nothing new: not read again


def test_a_run_that_went_back_to_its_checkpoint_goes_on_from_there(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("step,loss\n1,5\n2,4\n3,9\n4,9\n3,3\n")
    trace = TraceStore().read(log).trace
    assert trace is not None
    assert (list(trace.step), list(trace.loss)) == ([1, 2, 3], [5, 4, 3])


def test_a_log_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    log, store = tmp_path / "a.csv", TraceStore()
    log.write_text("step,loss\n1,5\n2,4\n3,3\n")
    store.read(log)
    (tmp_path / "b").write_text("step,loss\n1,7\n")
    (tmp_path / "b").replace(log)
    assert store.read(log).best == 7.0


def test_reads_json_lines_and_a_named_metric(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"step": 1, "acc": 0.5}\n{"step": 1, "loss": 3}\n{"step": 2, "acc": 0.7}\n')
    assert TraceStore().read(log, metric="acc", direction="max").best == 0.7


@pytest.mark.parametrize(
    "content", ["", "step,loss\n", "\0\0\0\0", "step,loss\n1,nan\n", "hello\nworld\n1\n", "[1]"]
)
def test_a_useless_log_is_a_sentence_not_an_error(tmp_path: Path, content: str) -> None:
    log = tmp_path / "a.csv"
    log.write_text(content)
    seen = TraceStore().read(log)
    assert seen.trace is None
    assert str(log) in seen.problem or "a.csv" in seen.problem


def test_pace_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    rows = [f"{k},1.0,{k}" for k in range(1, 50)] + [
        f"{k},1.0,{900 + k / 4}" for k in range(50, 80)
    ]
    log.write_text("step,loss,seconds\n" + "\n".join(rows) + "\n")
    assert TraceStore().read(log).steps_per_s == 4.0


def test_finds_the_log_of_a_job(tmp_path: Path) -> None:
    array = replace(job("12_3"), workdir=str(tmp_path), name="net", user="ann")
    named = trace_path(array, Wish(trace="%u/%x-%A-%a-%j.csv"), ())
    assert named == tmp_path / "ann/net-12-3-12_3.csv"
    assert trace_path(array, Wish(), ("no.csv", "glidepath-%j.csv")) is None
    (tmp_path / "glidepath-12_3.csv").touch()
    found = trace_path(array, Wish(), ("no.csv", "glidepath-%j.csv"))
    assert found == tmp_path / "glidepath-12_3.csv"


# --------------------------------------------------------------------------------------------- log


def test_the_log_only_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with DecisionLog(path) as log:
        (row,) = log.add(1, 5.0, [Event("7", "stop", "intended", "why", "scancel 7")])
        assert [event.job for event in log.interrupted()] == ["7"]
        log.add(1, 6.0, [Event("7", "stop", "done", "why", of=row)])
        assert log.interrupted() == []
    with sqlite3.connect(path) as raw:
        for change in ("DELETE FROM event", "UPDATE event SET why = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                raw.execute(change)
    raw.close()


def test_two_pilots_do_not_fly_at_once(world: World) -> None:
    world.submit(job(1))
    with DecisionLog(world.log):
        assert "another glidepath" in world.pilot.round().trouble
    assert world.stub.sent == []
    assert world.pilot.round().trouble == ""


# ------------------------------------------------------------------------------------------- pilot


def test_advice_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, mode="advise")
    for number in range(10):
        world.submit(job(number), number)
    assert world.cluster.now_s < 2e9
    rounds = world.fly(20)
    assert world.stub.sent == []
    assert any(result.commands for result in rounds)


def test_advise_is_the_default() -> None:
    assert PilotOptions().mode == "advise"


def test_looking_leaves_no_trace(world: World) -> None:
    world.submit(job(1))
    seen = world.pilot.look()
    assert [view.job.id for view in seen.views] == ["1"]
    assert world.stub.sent == []
    assert not world.log.exists()


def test_acting_beats_first_come_first_served(tmp_path: Path) -> None:
    """Same jobs, same submission: the mean completion time must fall by more than half."""
    means = {}
    for mode in ("advise", "act"):
        world = World(tmp_path / mode, mode=mode)
        start = world.cluster.now_s
        for number in range(12):
            world.submit(job(number, HOPELESS if number % 3 == 0 else EASY), number)
        world.fly()
        runs = world.cluster.runs.values()
        means[mode] = np.mean([run.end_s - start for run in runs])
    assert means["act"] < 0.5 * means["advise"]


def test_a_hopeless_job_is_cancelled_and_the_log_says_why(world: World) -> None:
    run = world.submit(job(1, HOPELESS), budget=2000)
    world.fly()
    assert run.ended == "CANCELLED"
    assert run.step < 1000
    told = [event for event in world.story(1) if event.kind == "stop"]
    assert [event.phase for event in told] == ["intended", "done"]
    assert "P(reaching 0.01 by step 2000)" in told[0].why
    assert told[0].command == "scancel 1"


def test_a_hopeless_job_without_a_budget_is_left_to_run(world: World) -> None:
    run = world.submit(job(1, "glidepath target=0.01"), budget=300)
    world.fly()
    assert run.ended == "DONE"


def test_a_job_that_reached_its_target_saves_and_ends(world: World) -> None:
    run = world.submit(job(1, EASY))
    world.fly()
    assert run.ended == "CANCELLED"
    assert 0 < run.saved < 2000
    assert min(run.loss(step) for step in range(1, run.saved + 1)) <= 0.4


def test_a_job_moves_up_and_resumes_from_its_checkpoint(world: World) -> None:
    world.cluster.pools = (POOLS[0], POOLS[1])
    comment = "glidepath target=0.26 budget=4000 tiers=bronze,silver checkpoint=usr1"
    run = world.submit(job(1, comment), budget=4000)
    world.cluster.advance(60)
    assert run.job.nodes == ("bronze0",)
    seen = 0
    for _ in range(6):
        world.pilot.round()
        world.cluster.advance(5)
        assert run.step >= run.saved >= seen
        seen = run.saved
    assert run.job.nodes == ("silver0",)
    assert run.job.restarts == 1
    assert run.saved > 50
    kinds = [(event.kind, event.phase) for event in world.story(1) if event.kind != "forecast"]
    assert kinds.index(("checkpoint", "done")) < kinds.index(("place", "done"))


def test_no_job_is_signalled_before_it_logged_a_step_since_its_start(world: World) -> None:
    """SIGUSR1 kills a process that has not installed its handler yet."""
    comment = "glidepath target=0.25 budget=2000 tiers=bronze,silver,gold checkpoint=usr1"
    for number in range(12):
        world.submit(job(number, comment), number, load_s=100.0)
    world.fly()
    runs = world.cluster.runs.values()
    assert sum(run.job.restarts for run in runs) >= 3  # some were moved, all the same
    assert "FAILED" not in {run.ended for run in runs}


@pytest.mark.parametrize("usr1", ["save", "ignore"])
def test_a_job_that_does_not_requeue_itself_is_requeued_after_the_grace_time(
    tmp_path: Path, usr1: str
) -> None:
    world = World(tmp_path, grace_s=20.0)
    run = world.submit(job(1, "glidepath target=0.2 tiers=silver checkpoint=usr1"), usr1=usr1,
                       save_every=10)  # fmt: skip
    run.job = replace(run.job, partition="silver")
    world.cluster.advance(10)
    world.cluster.update("1", comment="glidepath target=0.2 tiers=gold,silver checkpoint=usr1")
    for _ in range(8):
        world.pilot.round()
        world.cluster.advance(10)
    assert run.job.nodes == ("gold0",)
    sent = [command[:2] for command in world.stub.sent]
    assert sent.count(("scontrol", "requeue")) == 1


def test_a_job_without_checkpoints_is_never_moved(world: World) -> None:
    for number in range(8):
        world.submit(job(number, "glidepath target=0.21 tiers=bronze,silver,gold"), number,
                     steps_per_s=0.2)  # fmt: skip
    world.fly(60)
    assert not any(run.job.restarts for run in world.cluster.runs.values())


def test_a_waiting_job_gets_the_time_limit_it_needs(world: World) -> None:
    run = world.submit(job(1, limit_s=24 * 3600.0), steps_per_s=1.0)
    world.cluster.advance(30)
    world.cluster.requeue("1")
    world.cluster.advance(5)
    for number in range(2, 9):  # no room for it
        blocker = world.submit(replace(job(number, ""), user="other"), number, steps_per_s=0.001)
        blocker.job = replace(blocker.job, partition=("bronze", "silver", "gold")[number % 3])
    world.cluster.advance(1)
    for _ in range(2):
        world.pilot.round()
    assert 60 <= run.job.limit_s <= 3600
    # Never below what its forecast may still need.
    assert run.job.limit_s >= 2000 / 1.0 - run.step or run.job.limit_s > 600


def test_a_deferred_job_starts_by_itself_when_nobody_comes_back(world: World) -> None:
    for number in range(9):
        world.submit(job(number), number, budget=100)
    world.pilot.round()
    assert any("StartTime" in " ".join(command) for command in world.stub.sent)
    world.cluster.advance(1500)  # killed; and nobody ever starts it again
    assert {run.ended for run in world.cluster.runs.values()} == {"DONE"}


def test_the_users_own_begin_time_and_hold_stand(world: World) -> None:
    later = world.submit(job(1))
    later.job = replace(later.job, eligible_s=world.cluster.now_s + 5000, reason="BeginTime")
    held = world.submit(job(2))
    held.job = replace(held.job, reason="JobHeldUser")
    for _ in range(10):
        world.pilot.round()
        world.cluster.advance(30)
    assert (later.job.state, held.job.state) == ("PENDING", "PENDING")
    changes = [c for c in world.stub.sent if not c[3].startswith("Comment=")]
    assert changes == []


def test_nice_ranks_leave_slurm_to_fill_the_gaps(tmp_path: Path) -> None:
    world = World(tmp_path, order="nice")
    runs = [world.submit(job(number), number) for number in range(9)]
    world.pilot.round()
    assert sum(run.job.nice == 1000 for run in runs) == 2
    assert not any("StartTime=2" in " ".join(command) for command in world.stub.sent)


def test_a_round_does_nothing_twice(world: World) -> None:
    for number in range(10):
        world.submit(job(number), number)
    world.pilot.round()
    before = list(world.stub.sent)
    again = world.new_pilot().round()  # another process, same moment
    assert [action.kind for action in again.actions if action.kind != "annotate"] == []
    assert all("Comment=" in " ".join(command) for command in world.stub.sent[len(before) :])


def test_disruptions_are_rationed(tmp_path: Path) -> None:
    world = World(tmp_path, disruptions_per_round=1)
    for number in range(4):
        world.submit(job(number, HOPELESS.replace("checkpoint=usr1", "")), number)
    world.cluster.advance(100)
    for _ in range(3):
        assert sum(action.disruptive for action in world.pilot.round().actions) <= 1


def test_a_refused_action_is_not_repeated_every_round(world: World) -> None:
    world.submit(job(1, "glidepath target=0.3 tiers=silver"))
    world.stub.cluster.pools = POOLS
    refuse = Answer(1, "", "scontrol: error: Access/permission denied")
    real = world.stub._answer

    def answer(command: tuple[str, ...]) -> Answer:
        return refuse if "Partition=silver" in command else real(command)

    world.stub._answer = answer  # type: ignore[method-assign]
    first, second = world.pilot.round(), world.pilot.round()
    assert [o.status for o in first.outcomes if o.action.kind == "place"] == ["refused"]
    assert "place" not in [action.kind for action in second.actions]


def test_one_bad_job_does_not_spoil_the_command_of_the_others(world: World) -> None:
    for number in range(9):
        world.submit(job(number), number)
    gone = {"done": False}

    def vanish(command: Sequence[str]) -> None:
        if command[:2] == ("scontrol", "update") and not gone["done"]:
            gone["done"] = True
            last = command[2].removeprefix("JobId=").split(",")[-1]
            world.cluster.cancel(last)

    world.stub.before = vanish
    result = world.pilot.round()
    assert sorted({outcome.status for outcome in result.outcomes}) == ["done", "gone"]


@pytest.mark.parametrize(
    "options",
    [{"mode": "fly"}, {"order": "best"}, {"round_s": 0.0}, {"stop_probability": 0.4}],
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        PilotOptions(**options)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ faults


def test_a_controller_that_is_down_is_waited_for(world: World) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(200)
    world.stub.before = slurm_stub.down
    results: list[Round] = []
    world.pilot.options = replace(world.pilot.options, round_s=0.01)
    world.pilot.run(rounds=3, on_round=results.append)
    assert all("Unable to contact" in result.trouble for result in results)
    assert world.stub.sent == []
    world.stub.before = lambda _: None
    assert world.pilot.round().trouble == ""
    assert world.stub.sent == [("scancel", "1")]


def test_a_controller_that_goes_away_before_the_check_gets_nothing(world: World) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(200)
    world.stub.before = lambda command: slurm_stub.down(command) if "-j" in command else None
    assert "Unable to contact" in world.pilot.round().trouble
    assert world.stub.sent == []
    world.stub.before = lambda _: None
    world.pilot.round()
    assert world.stub.sent == [("scancel", "1")]
    assert [e.phase for e in world.story(1) if e.kind == "stop"] == [
        "intended", "unknown", "intended", "done",
    ]  # fmt: skip


def test_an_answer_that_is_lost_is_not_sent_again_blindly(world: World) -> None:
    """The controller took the command and died before it said so."""
    run = world.submit(job(1, "glidepath target=0.2 tiers=silver,gold checkpoint=requeue"),
                       save_every=5)  # fmt: skip
    run.job = replace(run.job, partition="silver")
    world.cluster.advance(60)

    def lose(command: Sequence[str]) -> None:
        if command[:2] == ("scontrol", "requeue"):
            slurm_stub.down(command)

    world.stub.after = lose
    assert "unknown" in {outcome.status for outcome in world.pilot.round().outcomes}
    world.stub.after = lambda _: None
    for _ in range(6):
        world.cluster.advance(2)
        world.pilot.round()
    assert run.job.restarts == 1
    assert run.job.nodes == ("gold0",)


def test_a_slow_controller_only_makes_a_round_slow(tmp_path: Path) -> None:
    slow = tmp_path / "squeue"
    slow.write_text("#!/bin/sh\nsleep 0.3\n")
    slow.chmod(0o755)
    assert run_command([str(slow)], 10).code == 0
    with pytest.raises(ClusterError, match=r"no answer within 0\.05 s"):
        run_command([str(slow)], 0.05)
    with pytest.raises(ClusterError, match="No such file"):
        run_command([str(tmp_path / "absent")], 1)


def test_a_job_that_changes_between_read_and_act_is_left_alone(world: World) -> None:
    run = world.submit(job(1, HOPELESS))
    world.cluster.advance(200)

    def opt_out(command: Sequence[str]) -> None:
        if "-j" in command:
            world.cluster.update("1", comment="mine again")

    world.stub.before = opt_out
    (outcome,) = world.pilot.round().outcomes
    assert outcome.status == "changed"
    assert world.stub.sent == []
    assert run.ended == ""


def test_a_job_that_vanishes_between_read_and_act_is_noted(world: World) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(200)
    world.stub.before = lambda command: (
        world.cluster._end(world.cluster.runs["1"], "DONE") if "-j" in command else None
    )
    (outcome,) = world.pilot.round().outcomes
    assert outcome.status == "gone"
    assert world.stub.sent == []


def test_a_half_written_trace_is_read_up_to_its_last_whole_line(world: World) -> None:
    run = world.submit(job(1, EASY))
    world.cluster.advance(30)
    log = world.cluster.log_of(run)
    with log.open("a") as file:
        file.write(f"{run.step + 1},0.0")  # of 0.0123: as it stands it would be below the target
    result = world.pilot.round()
    assert result.views[0].outlook.last_step == run.step
    assert result.views[0].outlook.verdict != "reached"


def test_a_full_disk_stops_the_acting_and_nothing_else(world: World) -> None:
    """The log cannot grow: nothing may be done that could not be noted."""
    world.submit(job(1, HOPELESS))
    world.cluster.advance(200)
    world.new_pilot(mode="advise").round()
    script = textwrap.dedent("""
        import resource, signal, sqlite3, sys
        from glidepath.engines.slurm import DecisionLog, Event, LogError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with DecisionLog(sys.argv[1]) as log:
                log.add(1, 1.0, [Event("1", "stop", "intended", "x" * 100000)])
        except LogError as error:
            sys.exit(str(error))
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, str(world.log)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert str(world.log) in done.stderr


def test_a_folder_of_mlflow_is_read_again_as_it_grows(tmp_path: Path) -> None:
    run = tmp_path / "mlruns" / "0" / "abc"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\nrun_name: x\n")
    rows = [f"{1_700_000_000_000 + 2000 * i} {2 + 3 / i**0.5} {i}\n" for i in range(1, 41)]
    store = TraceStore()
    for count in (20, 40):
        (run / "metrics" / "loss").write_text("".join(rows[:count]))
        progress = store.read(tmp_path / "mlruns")
        assert progress.problem == ""
        assert progress.last_step == count
        assert progress.best == 2 + 3 / count**0.5
        assert progress.steps_per_s == pytest.approx(0.5)


def test_no_room_for_the_intent_means_no_action(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(200)
    real = DecisionLog.add

    def full(self: DecisionLog, *arguments: object) -> list[int]:
        raise LogError("decisions.db: database or disk is full")

    monkeypatch.setattr(DecisionLog, "add", full)
    assert "disk is full" in world.pilot.round().trouble
    assert world.stub.sent == []
    monkeypatch.setattr(DecisionLog, "add", real)
    world.pilot.round()
    assert world.stub.sent == [("scancel", "1")]


def test_a_log_in_a_folder_that_cannot_be_made_is_a_sentence(world: World) -> None:
    world.pilot.log_path = Path("/dev/null/decisions.db")
    assert "decisions.db" in world.pilot.round().trouble


def test_killed_at_any_command_the_next_start_goes_on(tmp_path: Path) -> None:
    """A pilot that dies before or after its n-th command; the next one must finish the story."""

    class Killed(BaseException):
        pass

    for after in (False, True):
        for n in range(12):
            world = World(tmp_path / f"{after}{n}", grace_s=20.0)
            runs = [
                world.submit(job(1, HOPELESS), 1),
                world.submit(job(2, EASY), 2),
                world.submit(job(3, EASY.replace("usr1", "requeue")), 3, save_every=5),
            ]
            count = 0

            def die(command: Sequence[str], fatal: int = n + 1) -> None:
                nonlocal count
                if command[0] in ("scontrol", "scancel"):
                    count += 1
                    if count == fatal:
                        raise Killed

            if after:
                world.stub.after = die
            else:
                world.stub.before = die
            for _ in range(60):
                try:
                    world.pilot.round()
                except Killed:
                    world.pilot = world.new_pilot()
                world.cluster.advance(10)
                if not world.cluster.live:
                    break
            world.pilot.round()  # the fatal command may have been the last one of all
            assert [run.ended for run in runs] == ["CANCELLED"] * 3, (after, n)
            assert all(run.job.restarts <= 3 for run in runs)
            with DecisionLog(world.log) as log:
                assert log.interrupted() == []


def test_kill_9_in_the_middle_of_a_round_leaves_the_log_whole(tmp_path: Path) -> None:
    log = tmp_path / "decisions.db"
    script = textwrap.dedent("""
        import itertools, sys
        from glidepath.engines.slurm import DecisionLog, Event
        with DecisionLog(sys.argv[1]) as log:
            for n in itertools.count():
                row, = log.add(n, n, [Event(str(n), "stop", "intended", "why")])
                print(n, flush=True)
                log.add(n, n, [Event(str(n), "stop", "done", "why", of=row)])
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(log)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 20:
                os.kill(process.pid, signal.SIGKILL)
                break
        rest = process.stdout.read().split()
    last = int(rest[-1]) if rest else 20
    with DecisionLog(log) as book:  # the lock died with its holder
        assert len({event.job for event in book.events()}) >= last
        assert len(book.interrupted()) <= 1


# ------------------------------------------------------------------------------------------ safety


def test_never_touches_a_job_that_did_not_opt_in(tmp_path: Path) -> None:
    """1 000 rounds of a cluster where all changes all the time, also between read and act."""
    rng = random.Random(8)
    world = World(tmp_path, grace_s=20.0)
    cluster = world.cluster
    out = ["", "", "(null)", "glidepathx target=0.3", "my glidepath", "Glidepath"]
    odd = ["glidepath", "glidepath typo", "glidepath budget=50", "glidepath target=0.3 tiers=gold"]
    comments = [*out, *odd, EASY, EASY, HOPELESS, HOPELESS, EASY.replace("usr1", "requeue")]
    numbers = iter(range(1, 100000))

    def submit() -> None:
        number = next(numbers)
        name = str(number) if rng.random() < 0.8 else f"{number}_{rng.randrange(9)}"
        new = job(
            name,
            rng.choice(comments),
            gpus=rng.choice([0, 1, 1, 1, 2, 4]),
            limit_s=rng.choice([600.0, 7200.0, math.inf]),
        )
        user, where = rng.choice(["me", "me", "me", "other"]), rng.choice([*TIERS, "entry"])
        new = replace(new, user=user, partition=where, workdir=str(cluster.folder))
        cluster.submit(
            Run(
                new,
                loss=curve(number % 50, floor=rng.uniform(0, 0.4)),
                budget=rng.choice([50, 500, 2000]),
                steps_per_s=rng.uniform(0.2, 3),
                usr1=rng.choice(["requeue", "requeue", "save", "ignore", "die"]),
                save_every=rng.choice([0, 20]),
            )
        )
        if rng.random() < 0.1:
            cluster.update(new.id, reason=rng.choice(["JobHeldUser", "Dependency"]))

    def meddle(ids: Sequence[str] | None = None) -> None:
        live = [run for run in cluster.live if ids is None or run.job.id in ids]
        if not live:
            return
        run = rng.choice(live)
        match rng.randrange(6):
            case 0:
                cluster.update(run.job.id, comment=rng.choice(comments))
            case 1:
                cluster.cancel(run.job.id)
            case 2 if run.job.state == "RUNNING":
                cluster.requeue(run.job.id)
            case 3 if run.job.state == "PENDING":
                cluster.update(run.job.id, eligible_s=cluster.now_s + rng.choice([0, 40, 4000]))
            case 4:
                cluster.update(run.job.id, nice=run.job.nice + 1)
            case 5:
                submit()

    def between(command: Sequence[str]) -> None:
        if command[0] in ("squeue", "sinfo") and rng.random() < 0.3:
            meddle(command[-1].split(",") if "-j" in command else None)
        if rng.random() < 0.003:
            slurm_stub.down(command)

    world.stub.before = between
    seen = {"stop": 0, "checkpoint": 0, "place": 0, "defer": 0, "changed": 0}
    pilots = contextlib.ExitStack()
    for n in range(1000):
        while len(cluster.live) < 12:
            submit()
        meddle()
        if len(cluster.live) > 15:
            cluster.cancel(cluster.live[0].job.id)
        if n % 50 == 0:
            pilots.close()
            world.pilot = pilots.enter_context(world.new_pilot())
        result = world.pilot.round()
        for outcome in result.outcomes:
            for name in (outcome.status, outcome.action.kind):
                if name in seen:
                    seen[name] += 1
        cluster.advance(rng.choice([2, 10, 30]))
    pilots.close()
    wrong = [
        (touched.id, touched.user, touched.comment, command)
        for touched, command in world.stub.touched
        if touched.user != "me" or Wish.read(touched.comment) is None
    ]
    assert wrong == []
    assert len(world.stub.touched) > 500
    assert min(seen.values()) > 10, seen  # it did meet what it is meant to withstand


# ------------------------------------------------------------------------------------------- speed


def test_a_round_over_5000_recorded_jobs_is_planned_in_seconds(tmp_path: Path) -> None:
    """Figures: docs/method/engines.md. The bound here is loose, for a machine that is busy."""
    folder = tmp_path / "logs"
    folder.mkdir()
    jobs = []
    pools = [Pool(name, name, (f"{name}0",), 400, 400, TIERS[name]) for name in TIERS]
    for number in range(5000):
        each = replace(job(number + 1), workdir=str(folder), submit_s=1.8e9, eligible_s=1.8e9)
        if number < 500:
            tier = list(TIERS)[number % 3]
            each = replace(
                each, state="RUNNING", partition=tier, nodes=(f"{tier}0",), start_s=1.8e9
            )
            loss = curve(number % 40)
            rows = "".join(f"{k},{loss(k):.6g},{k}\n" for k in range(1, 201))
            (folder / f"glidepath-{number + 1}.csv").write_text("step,loss,seconds\n" + rows)
        jobs.append(each)
    queue, nodes = slurm_stub.queue_text(jobs), slurm_stub.nodes_text(pools)

    def recorded(command: Sequence[str], timeout_s: float) -> Answer:
        return Answer(0, {"sinfo": nodes, "squeue": queue}.get(command[0], ""))

    engine = Slurm(users=["me"], run=recorded, tiers=TIERS, clock=lambda: 1.8e9 + 300)
    pilot = Pilot(engine, tmp_path / "log.db", PilotOptions(mode="act"), clock=lambda: 1.8e9 + 300)
    began = time.process_time()
    result = pilot.round()
    took = time.process_time() - began
    assert result.trouble == ""
    assert len(result.views) == 5000
    assert sum(outlook.probability == outlook.probability for outlook in
               (view.outlook for view in result.views)) == 500  # fmt: skip
    assert took < 12.0, f"{took:.1f} s of processor time, {dict(result.seconds)}"


# ------------------------------------------------------------------------------------ training side


def test_a_training_script_saves_when_asked_and_requeues_itself(tmp_path: Path) -> None:
    """The loop of docs/slurm.md, and a scontrol that does as the real one: it ends the job."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\necho "$@" >> requeued\nkill -TERM $PPID\n')
    scontrol.chmod(0o755)
    page = (Path(__file__).resolve().parents[2] / "docs/slurm.md").read_text()
    (loop,) = [
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Asked()" in block
    ]
    setting = """
import time
def train_one_step():
    time.sleep(0.01)
    return 1.5
"""
    script = setting + loop
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(glidepath.__file__).parents[1]),
        "SLURM_JOB_ID": "31",
        "SLURM_ARRAY_JOB_ID": "30",
        "SLURM_ARRAY_TASK_ID": "2",
    }
    log = tmp_path / "glidepath-30_2.csv"
    for attempt in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment
        ) as process:
            lines = len(log.read_text().splitlines()) if log.exists() else 0
            end = time.monotonic() + 30
            while not log.exists() or len(log.read_text().splitlines()) < lines + 5:
                assert time.monotonic() < end
                time.sleep(0.02)
            process.send_signal(signal.SIGUSR1)
            assert process.wait(30) == 128 + signal.SIGTERM
        assert (tmp_path / "requeued").read_text() == "requeue 30_2\n" * (attempt + 1)
    trace = TraceStore().read(log).trace
    assert trace is not None
    # Not a step is lost or repeated, and the pause between the attempts is not in the seconds.
    assert list(trace.step) == list(range(1, len(trace.step) + 1))
    assert np.diff(trace.wall_seconds).max() < 5  # type: ignore[arg-type]


def test_replacing_keeps_the_old_file_when_writing_fails(tmp_path: Path) -> None:
    saved = tmp_path / "model.npz"
    saved.write_text("old")

    def fails() -> None:
        with checkpoint.replacing(saved) as path:
            path.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert saved.read_text() == "old"
    assert list(tmp_path.iterdir()) == [saved]


def test_a_log_goes_on_after_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("step,loss,seconds\n1,2,30.0\n2,1.")
    with checkpoint.TraceLog(path) as log:
        log.add(2, 1.5)
    text = path.read_text().splitlines()
    assert text[2] == "2,1."
    step, loss, seconds = text[3].split(",")
    assert (step, loss) == ("2", "1.5")
    assert 30 <= float(seconds) < 40


# --------------------------------------------------------------------------------------------- cli


def _commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: Sequence[ClusterJob]) -> None:
    """Put a squeue and a sinfo that print a recording, and a scontrol that notes, on the path."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (
        ("squeue", slurm_stub.queue_text(jobs)),
        ("sinfo", slurm_stub.nodes_text(POOLS)),
    ):
        (tmp_path / name).write_text(text)
        (bin_ / name).write_text(f"#!/bin/sh\ncat {tmp_path / name}\n")
    for name in ("scontrol", "scancel"):
        (bin_ / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path / "sent"}\n')
    for path in bin_.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    monkeypatch.setenv("GLIDEPATH_SLURM_LOG", str(tmp_path / "log.db"))


@pytest.fixture
def mine(tmp_path: Path) -> ClusterJob:
    import getpass

    log = tmp_path / "hopeless.csv"
    loss = curve(1)
    log.write_text("step,loss,seconds\n" + "".join(f"{k},{loss(k)},{k}\n" for k in range(1, 200)))
    now = time.time()
    return ClusterJob("17", getpass.getuser(), "RUNNING", "bronze", submit_s=now - 300,
                      start_s=now - 200, used_s=200.0, gpus=1, nodes=("bronze0",),
                      workdir=str(tmp_path),
                      comment="glidepath target=0.01 budget=2000 trace=hopeless.csv")  # fmt: skip


def test_status_plan_run_and_why_tell_one_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: ClusterJob
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    cli = CliRunner()
    shown = cli.invoke(app, ["status", "--tiers", "bronze=1,silver=2,gold=4"])
    assert shown.exit_code == 0
    assert "17" in shown.stdout
    assert "never" in shown.stdout
    planned = cli.invoke(app, ["plan"])
    assert "scancel 17" in planned.stdout
    assert not (tmp_path / "log.db").exists()
    advised = cli.invoke(app, ["run", "--rounds", "1"])
    assert "would: 1 stop" in advised.stdout
    assert not (tmp_path / "sent").exists()
    acted = cli.invoke(app, ["run", "--rounds", "1", "--act", "--json"])
    document = json.loads(acted.stdout)
    assert document["rounds"][0]["outcomes"] == [
        {"job": "17", "kind": "stop", "status": "done", "said": ""}
    ]
    assert (tmp_path / "sent").read_text() == "scancel 17\n"
    told = cli.invoke(app, ["why", "17"])
    assert told.exit_code == 0
    assert "advised" in told.stdout
    assert "$ scancel 17" in told.stdout
    assert "done stop" in told.stdout
    events = json.loads(cli.invoke(app, ["why", "17", "--json"]).stdout)["events"]
    assert [event["phase"] for event in events] == ["noted", "advised", "intended", "done"]


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: ClusterJob
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    cli = CliRunner()
    assert cli.invoke(app, ["plan", "--tiers", "gold=fast"]).exit_code == 2
    assert cli.invoke(app, ["why", "99"]).exit_code == 2  # no log yet
    cli.invoke(app, ["run", "--rounds", "1"])
    assert cli.invoke(app, ["why", "99"]).exit_code == 1
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho squeue: error: away >&2\nexit 1\n")
    away = cli.invoke(app, ["status", "--json"])
    assert away.exit_code == 1
    assert json.loads(away.stdout)["rounds"][0]["trouble"] == "squeue: error: away"


def test_without_jobs_status_says_how_to_take_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _commands(tmp_path, monkeypatch, [])
    assert "--comment" in CliRunner().invoke(app, ["status"]).stdout


def test_a_cluster_knows_the_tier_of_a_job() -> None:
    cluster = Cluster(0.0, (), POOLS)
    running = replace(job(1), state="RUNNING", partition="entry", nodes=("silver0",))
    assert cluster.pool_of(running) == POOLS[1]
    assert cluster.pool_of(replace(job(1), partition="entry")) is None
    assert cluster.pool_of(replace(job(1), partition="gold")) == POOLS[2]
