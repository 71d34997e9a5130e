# SPDX-License-Identifier: Apache-2.0
"""`glidepath slurm`: its tables, its JSON, its exit codes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import slurm_stub
from slurm_world import CLUSTER_TIERS, curve
from typer.testing import CliRunner

from glidepath.cli._slurm import app
from glidepath.engines.slurm import ClusterJob


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
