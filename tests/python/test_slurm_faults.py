# SPDX-License-Identifier: Apache-2.0
"""Faults: a controller that is down, a full disk, a pilot that is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import slurm_stub
from slurm_world import EASY, HOPELESS, World, curve, job

from glidepath.engines.slurm import Answer, ClusterError, DecisionLog, Event, LogError, Round, Slurm
from glidepath.engines.slurm._commands import run_command


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


def test_a_log_that_was_made_a_moment_ago_is_read_as_an_empty_one(world: World) -> None:
    """Its writer makes the file first and the tables then, or was killed in between."""
    world.log.touch()
    assert world.story(1) == []
    assert world.pilot.look().trouble == ""
    with DecisionLog(world.log) as log:
        assert log.events() == []


def test_the_tables_of_a_log_come_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, seen = tmp_path / "log.db", sqlite3.connect, []
    looks = 0

    def look(statement: str) -> None:
        nonlocal looks
        if "CREATE" in statement:
            looks += 1
            with DecisionLog(path, readonly=True) as log:
                seen.append(log.interrupted())

    def connect(*given: Any, **more: Any) -> sqlite3.Connection:
        connection = real(*given, **more)
        if given[0] == path:
            connection.set_trace_callback(look)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    DecisionLog(path).close()
    assert looks >= 5
    assert seen == [[]] * looks


def test_two_pilots_do_not_work_at_once(world: World) -> None:
    world.submit(job(1))
    with DecisionLog(world.log):
        assert "another glidepath" in world.pilot.round().trouble
    assert world.stub.sent == []
    assert world.pilot.round().trouble == ""


def test_two_pilots_do_not_work_at_once_by_two_names_of_a_log(tmp_path: Path) -> None:
    log, link = tmp_path / "a" / "log.db", tmp_path / "link.db"
    with DecisionLog(log):
        link.symlink_to(log)
        with pytest.raises(LogError, match=r"link\.db: another glidepath writes to it"):
            DecisionLog(link)
    with DecisionLog(link), pytest.raises(LogError, match="another glidepath writes to it"):
        DecisionLog(log)


READS = """
import os, sys
from glidepath.engines.slurm import DecisionLog
if os.geteuid() == 0:
    os.setuid(65534)  # whom permissions bind
with DecisionLog(sys.argv[1], readonly=True) as log:
    print(*(event.why for event in log.events()))
"""


def test_whoever_may_only_read_a_log_reads_it_also_where_nobody_writes_to_it() -> None:
    with TemporaryDirectory() as name:  # pytest's own are closed to other users
        folder, log = Path(name), Path(name, "log.db")
        with DecisionLog(log) as book:
            book.add(book.begin_round(1.0, "act", ""), 1.0, [Event("1", "forecast", "noted", "so")])
        log.chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READS, log], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == ("so\n", "")
        folder.chmod(0o755)


def test_a_controller_that_is_down_is_waited_for(world: World) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(600)
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
    world.cluster.advance(600)
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
    world.cluster.advance(600)

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
    world.cluster.advance(600)
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
    os.utime(log, (world.cluster.now_s, world.cluster.now_s))
    result = world.pilot.round()
    assert result.views[0].forecast.last_step == run.step
    assert result.views[0].forecast.verdict != "reached"


def test_a_full_disk_stops_the_acting_and_nothing_else(world: World) -> None:
    """The log cannot grow: nothing may be done that could not be noted."""
    world.submit(job(1, HOPELESS))
    world.cluster.advance(600)
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


def test_no_room_for_the_intent_means_no_action(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit(job(1, HOPELESS))
    world.cluster.advance(600)
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


GONE = Answer(1, "", "slurm_load_jobs error: Invalid job id specified")
AWAY = Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller")


@pytest.mark.parametrize(("answer", "sends"), [(GONE, True), (AWAY, False)])
def test_steps_that_cannot_be_listed_lose_no_view_and_get_no_signal_unless_there_are_none(
    world: World, answer: Answer, sends: bool
) -> None:
    for number in (1, 2):
        world.submit(job(number, EASY, gpus=4 if number == 2 else 1), loss=curve(3, floor=0.1))
    world.cluster.advance(600)
    real = world.stub.__call__

    def runs(command: Sequence[str], timeout_s: float) -> Answer:
        return answer if "-s" in command else real(command, timeout_s)

    assert isinstance(world.pilot.scheduler, Slurm)
    world.pilot.scheduler.run = runs
    seen = world.pilot.look()
    assert seen.trouble == ""
    assert ("scancel", "--signal=USR1", "--batch", "1") in seen.commands
    result = world.pilot.round()
    assert len(result.views) == 2
    assert (("scancel", "--signal=USR1", "--batch", "1") in world.stub.sent) == sends
    assert ("Unable to contact" in result.trouble) != sends


def test_a_job_that_ends_hides_not_the_steps_of_the_others() -> None:
    def runs(command: Sequence[str], timeout_s: float) -> Answer:
        listed = command[-1].split(",")
        return GONE if "7" in listed else Answer(0, "".join(f"{each}.0\n" for each in listed))

    assert Slurm(run=runs)._jobs_with_steps(["6", "7", "8"]) == {"6", "8"}
