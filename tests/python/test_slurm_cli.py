# SPDX-License-Identifier: Apache-2.0
"""`glidepath slurm`: its tables, its JSON, its exit codes."""

from __future__ import annotations

import inspect
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import slurm_stub
from slurm_world import CLUSTER_TIERS, TIERS, curve

from glidepath import cli
from glidepath.cli import _slurm
from glidepath.cli._signals import StopSignals
from glidepath.engines.slurm import ClusterJob, Pilot, PilotOptions, Slurm


def _commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: Sequence[ClusterJob]) -> None:
    """Put a squeue and a sinfo that print a recording, and a scontrol that notes, on the path."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (
        ("squeue", slurm_stub.queue_text(jobs)),
        ("sinfo", slurm_stub.nodes_text(CLUSTER_TIERS)),
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
    log.write_text("step,loss,seconds\n" + "".join(f"{k},{loss(k)},{k}\n" for k in range(1, 1000)))
    now = time.time()
    return ClusterJob("17", getpass.getuser(), "RUNNING", "bronze", submit_s=now - 300,
                      start_s=now - 200, used_s=200.0, gpus=1, nodes=("bronze0",),
                      workdir=str(tmp_path),
                      comment="glidepath target=0.01 budget=2000 trace=hopeless.csv")  # fmt: skip


def slurm(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["slurm", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("log", "why"),
    [("nope.csv", "no log at {}/nope.csv yet"), ("two.csv", "{}/two.csv holds 2 curves")],
)
def test_status_says_why_a_running_job_has_no_forecast(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
    log: str,
    why: str,
) -> None:
    rows = "".join(f"{run},{k},{1 / k}\n" for run in "ab" for k in range(1, 9))
    (tmp_path / "two.csv").write_text("curve,step,value\n" + rows)
    comment = f"glidepath target=0.01 budget=2000 trace={log}"
    _commands(tmp_path, monkeypatch, [replace(mine, comment=comment)])
    code, out, _ = slurm(capsys, "status", "--tiers", "bronze=1,silver=2,gold=4", "--json")
    assert code == 0
    reason = json.loads(out)["rounds"][0]["jobs"][0]["reason"]
    assert reason.startswith(f"runs on: it writes no checkpoint; {why.format(tmp_path)}")


@pytest.mark.parametrize(
    ("words", "options", "likely_s"),
    [
        ("", (), 0.0),
        (" stop=no", (), 1001.0),  # a step a second
        ("", ("--no-cancel",), 1001.0),
    ],
)
def test_a_job_that_nobody_ends_at_its_target_holds_its_gpus_to_its_budget(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
    words: str,
    options: tuple[str, ...],
    likely_s: float,
) -> None:
    there = f"glidepath target=1 budget=2000 trace=hopeless.csv{words}"
    first = replace(mine, comment=there, partition="gold", nodes=("gold0",))
    after = ClusterJob("18", mine.user, "PENDING", "gold", submit_s=mine.submit_s, gpus=1,
                       workdir=mine.workdir, comment="glidepath target=1 budget=2000")  # fmt: skip
    _commands(tmp_path, monkeypatch, [first, after])
    tiers = ("--tiers", "bronze=1,silver=2,gold=4")
    code, out, _ = slurm(capsys, "plan" if options else "status", *tiers, *options, "--json")
    assert code == 0
    held, waits = json.loads(out)["rounds"][0]["jobs"]
    assert held["verdict"] == "reached"
    assert waits["starts_q50"] == pytest.approx(likely_s, abs=2)


def test_status_plan_run_and_why_tell_one_story(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    code, out, _ = slurm(capsys, "status", "--tiers", "bronze=1,silver=2,gold=4")
    assert code == 0
    assert "17" in out
    assert "never" in out
    assert "scancel 17" in slurm(capsys, "plan")[1]
    assert "scancel" not in slurm(capsys, "plan", "--no-cancel")[1]
    assert not (tmp_path / "log.db").exists()
    assert "would: 1 stop" in slurm(capsys, "run", "--rounds", "1")[1]
    assert not (tmp_path / "sent").exists()
    document = json.loads(slurm(capsys, "run", "--rounds", "1", "--act", "--json")[1])
    assert document["rounds"][0]["results"] == [
        {"job": "17", "kind": "stop", "status": "done", "said": ""}
    ]
    assert (tmp_path / "sent").read_text() == "scancel 17\n"
    code, out, _ = slurm(capsys, "why", "17")
    assert code == 0
    assert "advised" in out
    assert "$ scancel 17" in out
    assert "done stop" in out
    events = json.loads(slurm(capsys, "why", "17", "--json")[1])["story"]
    assert [event["phase"] for event in events] == ["noted", "advised", "intended", "done"]


def test_run_with_no_cancel_ends_no_job(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    assert "scancel" not in slurm(capsys, "run", "--rounds", "1", "--act", "--no-cancel")[1]
    assert "scancel" not in (tmp_path / "sent").read_text()  # it tells the user, that is all


def test_a_job_has_the_keys_of_every_other_verb(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    timed = replace(mine, id="18", comment="glidepath budget=2000 trace=hopeless.csv")
    _commands(tmp_path, monkeypatch, [mine, timed])
    document = json.loads(slurm(capsys, "status", "--json")[1])
    hopeless, timed_row = document["rounds"][0]["jobs"]
    assert (hopeless["observed_to"], hopeless["target"], hopeless["budget"]) == (999, 0.01, 2000)
    assert (hopeless["verdict"], hopeless["metric"]) == ("never", "loss")
    assert (hopeless["reached_by"], timed_row["reached_by"]) == ("curve", None)
    assert hopeless["probability"] < 0.02
    assert hopeless["steps_q50"] == 1001  # it would run to its budget
    # A budget without a target: no verdict, but the time left is known.
    assert (timed_row["verdict"], timed_row["probability"]) == ("unknown", None)
    assert (timed_row["steps_q50"], timed_row["reach_q50"]) == (1001, 2000)


def test_a_job_has_the_name_of_the_metric_that_was_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    rows = "".join(f"{k},{k / 99}\n" for k in range(1, 50))
    (tmp_path / "score.csv").write_text(f"step,val_accuracy\n{rows}")
    scored = replace(mine, id="18", comment="glidepath target=0.9 budget=2000 trace=score.csv")
    absent = replace(mine, id="19", comment="glidepath target=0.9 budget=2000 trace=none.csv")
    _commands(tmp_path, monkeypatch, [scored, absent])
    jobs = json.loads(slurm(capsys, "status", "--json")[1])["rounds"][0]["jobs"]
    assert [job["metric"] for job in jobs] == ["val_accuracy", None]


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    assert slurm(capsys, "plan", "--tiers", "gold=1,silver=2,gold=3") == (
        2,
        "",
        "glidepath: --tiers: gold stands twice\n",
    )
    for verb in (["plan"], ["status"]):
        assert slurm(capsys, *verb, "--tiers", "godl=1") == (
            2,
            "",
            "glidepath: tiers: no partition 'godl' with GPUs\n",
        )
    assert slurm(capsys, "plan", "--tiers", "gold=fast") == (
        2,
        "",
        "glidepath: --tiers: cannot read 'gold=fast', expected NAME=SPEED\n",
    )
    code, _, err = slurm(capsys, "why", "99")
    assert (code, err) == (
        2,
        f"glidepath: {tmp_path / 'log.db'}: no such decision log: nothing was decided so far\n",
    )
    slurm(capsys, "run", "--rounds", "1")
    code, _, err = slurm(capsys, "why", "99")
    assert (code, err) == (1, f"glidepath: {tmp_path / 'log.db'} has no entry for job 99\n")
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho squeue: error: away >&2\nexit 1\n")
    code, out, err = slurm(capsys, "status", "--json")
    assert (code, err) == (1, "glidepath: squeue: error: away\n")
    assert json.loads(out)["rounds"][0]["trouble"] == "squeue: error: away"


def test_without_jobs_status_says_how_to_take_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _commands(tmp_path, monkeypatch, [])
    assert "--comment" in slurm(capsys, "status")[1]


def test_the_error_rate_and_the_disruptions_of_a_line_reach_the_pilot(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    seen: list[PilotOptions] = []
    look = Pilot.look

    def note(pilot: Pilot) -> Any:
        seen.append(pilot.options)
        return look(pilot)

    monkeypatch.setattr(Pilot, "look", note)
    assert slurm(capsys, "status", "--alpha", "0.1")[0] == 0
    slurm(capsys, "plan", "--alpha", "0.2", "--disruptions-per-round", "3")
    assert [(each.alpha, each.disruptions_per_round) for each in seen] == [(0.1, 20), (0.2, 3)]
    code, _, err = slurm(capsys, "run", "--disruptions-per-round", "-1")
    assert (code, err) == (
        2, "glidepath: disruptions_per_round is -1, expected 0 or more and finite\n"
    )  # fmt: skip


def test_the_defaults_of_the_command_line_are_those_of_the_pilot() -> None:
    options = {field.name: field.default for field in fields(PilotOptions)}
    options["timeout_s"] = Slurm.__dataclass_fields__["timeout_s"].default
    for verb in (_slurm.rehearse, _slurm.plan, _slurm.run):
        given = inspect.signature(verb).parameters
        shared = [name for name in given if name in options]
        assert len(shared) >= 4
        assert {name: given[name].default for name in shared} == {n: options[n] for n in shared}


def test_a_user_without_a_name_and_a_home_gets_a_sentence_and_an_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    """As in a container whose /etc/passwd does not have them; squeue prints their number then."""
    _commands(tmp_path, monkeypatch, [replace(mine, user=str(os.getuid()))])

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_STATE_HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    code, out, _ = slurm(capsys, "status")
    assert (code, "17" in out) == (0, True)
    monkeypatch.delenv("GLIDEPATH_SLURM_LOG")
    for verb in (["status"], ["why", "17"]):
        code, out, err = slurm(capsys, *verb)
        assert (code, out, err) == (
            2,
            "",
            "glidepath: there is no home directory for the decision log: say --log FILE\n",
        )


def test_the_help_does_not_load_the_pilot() -> None:
    line = "import sys, glidepath.cli._slurm; print('glidepath.engines.slurm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def _gres(tmp_path: Path, gpus: str) -> None:
    """Let sinfo print other GPUs for every node."""
    for name in TIERS:
        text = (tmp_path / "sinfo").read_text().replace(f"gpu:{name}:", gpus)
        (tmp_path / "sinfo").write_text(text)


def test_without_a_tier_status_says_so_and_names_the_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    late = replace(mine, id="18", state="PENDING", nodes=(), start_s=0.0, used_s=0.0)
    _commands(tmp_path, monkeypatch, [mine, late])
    _gres(tmp_path, "gpu:a100:1,gpu:v100:")
    for verb in ("status", "plan"):
        code, out, err = slurm(capsys, verb)
        assert code == 0
        assert "17" in out
        assert "no tier was found" in err
        assert "--tiers NAME=SPEED" in err


def test_gpus_without_a_type_are_a_tier_of_unknown_speed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    waits = replace(mine, id="18", state="PENDING", nodes=(), start_s=0.0, used_s=0.0)
    _commands(tmp_path, monkeypatch, [replace(waits, comment="glidepath target=0.2")])
    _gres(tmp_path, "gpu:")
    code, out, err = slurm(capsys, "status")
    assert (code, "gets 1 x bronze" in " ".join(out.split())) == (0, True), out
    assert "the speed of bronze, gold, silver is not known" in err
    assert slurm(capsys, "status", "--tiers", "bronze=1,silver=2,gold=4")[2] == ""


def test_plan_and_the_decision_log_show_the_command_that_is_sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    log = "trace=hopeless.csv checkpoint=usr1"
    moves = replace(mine, comment=f"glidepath target=0.2 tiers=bronze,gold {log}")
    _commands(tmp_path, monkeypatch, [moves])
    squeue = tmp_path / "bin" / "squeue"
    for step, sent in (("batch", "scancel --signal=USR1 --batch 17"),
                       ("0", "scancel --signal=USR1 17")):  # fmt: skip
        squeue.write_text(
            f'#!/bin/sh\ncase "$*" in *"-h -s"*) echo 17.{step};; *) cat {tmp_path}/squeue;; esac\n'
        )
        (tmp_path / "sent").write_text("")
        assert sent in slurm(capsys, "plan", "--tiers", "bronze=1,gold=4")[1].splitlines()
        slurm(capsys, "run", "--rounds", "1", "--act", "--tiers", "bronze=1,gold=4")
        assert sent in (tmp_path / "sent").read_text().splitlines()
        assert f"; {sent}" in slurm(capsys, "why", "17")[1].replace("\n", " ")
        (tmp_path / "log.db").unlink()


def test_rounds_that_end_in_trouble_end_with_a_warning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    assert slurm(capsys, "run", "--rounds", "1")[0] == 0
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho squeue: error: away >&2\nexit 1\n")
    code, out, err = slurm(capsys, "run", "--rounds", "2", "--round-s", "0.01")
    assert (code, out.count("! squeue: error: away"), err) == (1, 2, "")
    code, _, err = slurm(capsys, "run", "--rounds", "1", "--json")
    assert (code, err) == (1, "glidepath: squeue: error: away\n")


def test_blanks_between_partitions_are_no_part_of_their_names(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [replace(mine, comment="")])
    for names in ("gold,bronze", "gold, bronze"):
        out = slurm(capsys, "status", "--json", "--partitions", names)[1]
        assert [job["job"] for job in json.loads(out)["rounds"][0]["jobs"]] == ["17"]


def test_a_round_without_its_tier_ends_in_the_sentence_of_the_other_verbs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: ClusterJob,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    code, out, err = slurm(capsys, "run", "--rounds", "1", "--tiers", "godl=1")
    assert (code, err) == (1, "")
    assert out.endswith("! tiers: no partition 'godl' with GPUs\n")


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_run_that_is_interrupted_ends_as_other_verbs_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mine: ClusterJob,
    number: int,
    expected: int,
) -> None:
    _commands(tmp_path, monkeypatch, [mine])
    command = [sys.executable, "-m", "glidepath", "slurm", "run", "--round-s", "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_between_two_rounds_before_python_calls_its_handler(
    number: signal.Signals,
) -> None:
    """A handler is called between two instructions: too late for a wait that has just begun."""
    before = signal.getsignal(number)
    with StopSignals() as stop:
        signal.signal(number, lambda *_: None)  # as if it were not called before the wait
        assert not stop.is_set()
        assert not stop.wait(0.01)
        os.kill(os.getpid(), number)
        assert stop.wait(60.0)
        assert stop.is_set()
        assert stop.numbers_caught() == {number}
        assert stop.wait(60.0), "it stays set"
    assert signal.getsignal(number) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_in_the_middle_of_the_wait_and_a_call_of_set_end_it() -> None:
    with StopSignals() as stop:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        assert stop.wait(60.0)
    with StopSignals() as stop:
        assert stop.numbers_caught() == set()
        stop.set()
        assert stop.wait(60.0)
        assert stop.numbers_caught() == set()
