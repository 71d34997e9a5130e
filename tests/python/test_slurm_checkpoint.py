# SPDX-License-Identifier: Apache-2.0
"""The training script: signals, whole files, a log that goes on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import glidepath
from glidepath.engines.slurm import checkpoint
from glidepath.engines.slurm._traces import TraceStore


def test_a_training_script_saves_when_asked_and_requeues_itself(tmp_path: Path) -> None:
    """The loop of docs/slurm.md, and a scontrol that does as the real one: it ends the job."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\necho "$@" >> requeued\nkill -TERM $PPID\n')
    scontrol.chmod(0o755)
    page = (Path(__file__).resolve().parents[2] / "docs/slurm.md").read_text()
    (loop,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if "SaveFlag()" in block
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
            end = time.monotonic() + 120
            while not log.exists() or len(log.read_text().splitlines()) < lines + 5:
                assert time.monotonic() < end
                time.sleep(0.02)
            process.send_signal(signal.SIGUSR1)
            assert process.wait(120) == 128 + signal.SIGTERM
        assert (tmp_path / "requeued").read_text() == "requeue 30_2\n" * (attempt + 1)
    trace = TraceStore().read(log).trace
    assert trace is not None
    # Not a step is lost or repeated, and the pause between the attempts is not in the seconds.
    assert list(trace.step) == list(range(1, len(trace.step) + 1))
    assert np.diff(trace.wall_seconds).max() < 5  # type: ignore[arg-type]


WORKERS = """
import multiprocessing, signal, sys, time
from glidepath.engines.slurm import checkpoint
checkpoint.SaveFlag()  # of an earlier training in this process
asked = checkpoint.SaveFlag()
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:  # which ends its workers by SIGTERM
    pool.map(abs, range(4))
    pool.apply_async(time.sleep, (1000,))
worker = context.Process(target=time.sleep, args=(1000,), daemon=True)
worker.start()
worker.terminate()
worker.join()
assert worker.exitcode == -signal.SIGTERM, worker.exitcode
signal.raise_signal(signal.SIGTERM)
assert asked
"""


def test_workers_that_a_script_forks_end_upon_sigterm_and_the_script_saves() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKERS], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as script:
        try:
            _, said = script.communicate(timeout=120)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)
    assert (script.returncode, said) == (0, "")


REFUSED = """
import os, signal, sys
from glidepath.engines.slurm import checkpoint
asked = checkpoint.SaveFlag()
signal.raise_signal(signal.SIGUSR1)
asked.leave()
assert not asked
print("goes on")
"""


@pytest.mark.parametrize(
    ("scontrol", "expected"),
    [
        (None, (0, "goes on\n", "")),
        ("exit 1", (0, "goes on\n", "")),
        # The end comes as the move is refused.
        ("kill -TERM $PPID; exit 1", (128 + signal.SIGTERM, "", "")),
    ],
    ids=["no scontrol", "refused", "refused at the end"],
)
def test_a_job_that_cannot_be_requeued_goes_on_unless_it_ends_meanwhile(
    tmp_path: Path, scontrol: str | None, expected: tuple[int, str, str]
) -> None:
    if scontrol is not None:
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{scontrol}\n")
        (tmp_path / "scontrol").chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path), "SLURM_JOB_ID": "31"}
    done = subprocess.run(
        [sys.executable, "-c", REFUSED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == expected


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


def test_replacing_writes_to_where_a_link_leads(tmp_path: Path) -> None:
    scratch, link = tmp_path / "scratch", tmp_path / "model.txt"
    scratch.mkdir()
    link.symlink_to(scratch / "model.txt")
    for text in ("first", "second"):
        with checkpoint.replacing(link) as draft:
            draft.write_text(text)
    assert link.is_symlink()
    assert (scratch / "model.txt").read_text() == "second"
    assert [path.name for path in scratch.iterdir()] == ["model.txt"]


def test_threads_that_save_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    saved, model = tmp_path / "model.npz", np.arange(10_000.0)

    def save(_: int) -> None:
        with checkpoint.replacing(saved) as path:
            np.savez(path, model)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(40)))
    with np.load(saved) as found:
        assert np.array_equal(found["arr_0"], model)
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


@pytest.mark.parametrize("cut", ["2,1.5,6", "2,1.5,61.25\n3,1.2,nan\n4,1.1,6"])
def test_seconds_go_on_from_the_last_whole_line_that_has_some(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"step,loss,seconds\n1,2,60.5\n{cut}")
    with checkpoint.TraceLog(path) as log:
        log.add(5, 1.0)
    assert 60 <= float(path.read_text().splitlines()[-1].split(",")[2]) < 70
