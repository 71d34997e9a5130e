# SPDX-License-Identifier: Apache-2.0
"""Faults made by hand: short reads, signals, a full disk, a rename that fails, a late clock."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_disk import files_of_at_most
from samples import samples
from slurm_world import EASY, HOPELESS, World, job

import glidepath as gp
from glidepath import _compare, _core
from glidepath._report import page
from glidepath.engines.slurm import DecisionLog, Event, LogError
from glidepath.engines.slurm._traces import TraceStore
from glidepath.readers import _series

SAMPLES = samples()
READ_IN_PYTHON = [
    *("history.json", "panel.csv", "run/metrics/loss", "events.out.tfevents.1", "run-a.wandb"),
]
ROWS = [f"{i},{1 / i + 0.2}\n" for i in range(1, 60)]


class Short(io.RawIOBase):
    """A file of which each read gives a few bytes, as a pipe or a network does."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.file, self.most = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def fileno(self) -> int:
        return self.file.fileno()

    def readinto(self, buffer: Any) -> int:
        self.most = self.most % 7 + 1
        data = self.file.read(min(len(buffer), self.most))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.file.close()
        super().close()


def same(a: list[gp.Trace], b: list[gp.Trace]) -> bool:
    return len(a) == len(b) and all(
        x == y and x.notes == y.notes for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("name", READ_IN_PYTHON)
def test_short_reads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(SAMPLES[name])
    whole, real = gp.read_traces(file), _series.open_plain
    monkeypatch.setattr(_series, "open_plain", lambda path: io.BufferedReader(Short(real(path))))
    assert same(gp.read_traces(file), whole)


@contextmanager
def interrupted_often() -> Iterator[list[int]]:
    """A signal each millisecond, which interrupts what the system was asked for."""
    seen: list[int] = []
    over = threading.Event()
    before = signal.signal(signal.SIGUSR2, lambda number, _: seen.append(number))
    signal.siginterrupt(signal.SIGUSR2, True)

    def send() -> None:
        while not over.wait(0.001):
            os.kill(os.getpid(), signal.SIGUSR2)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield seen
    finally:
        over.set()
        sender.join()
        signal.signal(signal.SIGUSR2, before)


def test_signals_interrupt_neither_readers_nor_the_decision_log(tmp_path: Path) -> None:
    files = []
    for name, content in SAMPLES.items():
        files.append(tmp_path / name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_bytes(content)
    whole = [gp.read_traces(file) for file in files]
    with interrupted_often() as seen, DecisionLog(tmp_path / "decisions.db") as log:
        rows = 0
        while len(seen) < 100:
            assert all(map(same, [gp.read_traces(file) for file in files], whole))
            log.add(rows, rows, [Event("1", "stop", "intended", "why")])
            rows += 1
        assert len(log.events()) == rows


# -------------------------------------------------------------------------------------- full disks


def test_a_full_disk_loses_no_row_of_the_decision_log(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    pair = [Event("1", "stop", "intended", "x" * 500), Event("2", "stop", "intended", "y" * 500)]
    with DecisionLog(path) as log:
        pages = log._db.execute("PRAGMA page_count").fetchone()[0]
        log._db.execute(f"PRAGMA max_page_count = {pages + 8}")
        written = 0
        with contextlib.suppress(LogError):
            for written in range(1000):  # noqa: B007 - the number of those that were
                log.add(1, 1.0, pair)
        assert 0 < written < 999
        with pytest.raises(LogError, match=r"decisions\.db: database or disk is full"):
            log.add(1, 1.0, pair)
        assert len(log.events()) == 2 * written  # both or none
        log._db.execute(f"PRAGMA max_page_count = {pages + 1000}")  # there is room again
        log.add(1, 1.0, pair)
        assert len(log.events()) == 2 * written + 2
    assert not list(tmp_path.glob("*damaged*"))


@pytest.mark.parametrize("broken", ["write", "replace"])
def test_a_page_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    old = tmp_path / "page.html"
    old.write_text("old")

    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refused(path: Path, target: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    if broken == "write":
        monkeypatch.setattr(Path, "write_bytes", half)
    else:
        monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(
        gp.IoError, match=r"page\.html: cannot write the report: (No space|Invalid)"
    ):
        page._write_whole(old, "<p>new</p>")
    assert old.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [old]


def test_a_page_that_its_user_alone_may_read_stays_so(tmp_path: Path) -> None:
    old = tmp_path / "page.html"
    old.write_text("old")
    old.chmod(0o600)
    page._write_whole(old, "<p>new</p>")
    assert old.read_text() == "<p>new</p>"
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


@pytest.mark.parametrize("which", ["jobs", "values"])
def test_what_is_compiled_replaces_a_file_whole_or_not_at_all(tmp_path: Path, which: str) -> None:
    name = {"jobs": "jobs.csv", "values": "learned.txt"}[which]
    (tmp_path / "kept").mkdir()
    kept = tmp_path / "kept" / name
    kept.write_text("old")
    kept.chmod(0o640)
    link = tmp_path / name
    link.symlink_to(kept)

    def write() -> None:
        if which == "values":
            gp.write_learned_values(gp.learned_values(), link)
        else:
            jobs = {"job": range(99), "submit_s": np.zeros(99), "duration_s": np.ones(99)}
            gp.Workload([gp.Tier("a", 1)], jobs).write_jobs(link)

    with files_of_at_most(100), pytest.raises(gp.IoError, match=f"{name}: cannot be written: File"):
        write()
    assert kept.read_text() == "old"
    assert sorted(tmp_path.rglob("*")) == sorted([kept.parent, kept, link])

    write()
    assert len(kept.read_text()) > 100
    assert link.is_symlink()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    with pytest.raises(gp.IoError, match="No such file"):
        gp.write_learned_values(gp.learned_values(), tmp_path / "none" / "learned.txt")
    with pytest.raises(gp.IoError, match="directory"):
        gp.write_learned_values(gp.learned_values(), kept.parent)


def test_a_damaged_log_that_cannot_be_renamed_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decisions.db"
    path.write_bytes(b"no database " * 500)

    def refused(path: Path, target: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refused)
        for _ in range(2):  # the lock is let go each time
            with pytest.raises(LogError, match=r"damaged .*: cannot be set aside: Permission"):
                DecisionLog(path)
    assert path.read_bytes() == b"no database " * 500
    for _ in range(2):  # two within a second do not overwrite each other
        with pytest.raises(LogError, match="set aside as"):
            DecisionLog(path)
        path.write_bytes(b"another one " * 500)
    assert len(list(tmp_path.glob("decisions.db.damaged-*"))) == 2


def test_a_database_in_use_is_waited_for_and_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    with DecisionLog(path) as log:
        log._db.execute("PRAGMA busy_timeout = 50")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogError, match="locked"):
            log.add(1, 1.0, [Event("1", "stop", "intended", "why")])
        other.execute("ROLLBACK")
        other.close()
        log.add(1, 1.0, [Event("1", "stop", "intended", "why")])
        assert len(log.events()) == 1


# ------------------------------------------------------------------------------------------ clocks


def test_a_pilot_whose_clock_is_set_back_goes_on(world: World) -> None:
    runs = [world.submit(job(1, HOPELESS), 1), world.submit(job(2, EASY), 2)]
    with world.pilot:
        for number in range(60):
            if not world.cluster.live:
                break
            if number in (3, 9):  # an hour, and to before the jobs began
                world.pilot._clock = lambda back=(3600, 10**9)[number == 9]: (
                    world.cluster.now_s - back
                )
            done = world.pilot.round()
            assert done.trouble == ""
            world.cluster.advance(30)
    assert [run.ended for run in runs] == ["CANCELLED"] * 2
    numbers = [event.id for event in world.story(1)]
    assert numbers == sorted(numbers)
    assert world.story(1)[-1].phase == "done"


def test_a_log_is_followed_while_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, now = tmp_path / "log.csv", [time.time_ns()]

    def back() -> int:
        now[0] -= 10**10
        return now[0]

    monkeypatch.setattr(time, "time_ns", back)
    follow = gp.Follow(log)
    log.write_text("step,loss\n")
    for number, row in enumerate(ROWS, 1):
        with log.open("a") as file:
            file.write(row)
        stamp = now[0] - number * 10**9  # the file's own time goes back, too
        os.utime(log, ns=(stamp, stamp))
        (run,) = follow.poll()
        assert len(run) == number
    assert follow.trouble == ""


def test_a_job_whose_log_has_an_older_time_is_still_read(tmp_path: Path) -> None:
    log, store = tmp_path / "log.csv", TraceStore()
    log.write_text("step,loss\n")
    for number, row in enumerate(ROWS, 1):
        with log.open("a") as file:
            file.write(row)
        os.utime(log, ns=(10**18 - number * 10**9,) * 2)
        seen = store.read(log)
        assert (seen.problem, seen.last_step) == ("", number)

    assert replace(seen, problem="a\x1bb").problem == "a?b"


def test_a_log_that_goes_while_it_is_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = tmp_path / "metrics" / "loss", TraceStore()  # as MLflow keeps it, read in Python
    log.parent.mkdir()
    log.write_text("".join(f"{1_700_000_000_000 + i} {1 / i} {i}\n" for i in range(1, 60)))
    assert store.read(log).last_step == 59
    real = os.fstat

    def gone(handle: int) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "fstat", gone)
    assert "Stale file handle" in store.read(log).problem
    monkeypatch.setattr(os, "fstat", real)
    assert store.read(log).last_step == 59
    log.unlink()
    assert store.read(log).problem == f"no log at {log} yet"


def test_threads_that_write_one_file_leave_the_whole_file_of_one_of_them(tmp_path: Path) -> None:
    jobs = {"job": range(5000), "submit_s": np.zeros(5000), "duration_s": np.ones(5000)}
    work, kept = gp.Workload([gp.Tier("a", 1)], jobs), tmp_path / "jobs.csv"
    work.write_jobs(kept)
    whole = kept.read_bytes()
    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(work.write_jobs, kept) for _ in range(100)]
        while not all(write.done() for write in writes):
            assert kept.read_bytes() == whole
        for write in writes:
            write.result()
    assert list(tmp_path.iterdir()) == [kept]


def test_threads_that_write_one_page_leave_it_whole(tmp_path: Path) -> None:
    kept, text = tmp_path / "page.html", "<p>new</p>" * 10_000
    with ThreadPoolExecutor(8) as pool:
        for write in [pool.submit(page._write_whole, kept, text) for _ in range(200)]:
            write.result()
    assert kept.read_text() == text
    assert list(tmp_path.iterdir()) == [kept]


def test_a_policy_keeps_its_own_error_beside_a_file_of_spans(tmp_path: Path) -> None:
    jobs = {"job": np.arange(99), "submit_s": np.arange(99), "duration_s": np.ones(99)}
    work, spans = gp.Workload([gp.Tier("a", 1)], jobs), tmp_path / "spans.csv"

    def lost(_: object) -> gp.Plan:
        raise ConnectionResetError(errno.ECONNRESET, "the server of the policy went away")

    with pytest.raises(ConnectionResetError, match="the server of the policy"):
        gp.simulate(work, lost, stream=spans)
    with files_of_at_most(100), pytest.raises(gp.IoError, match=r"spans\.csv: File too large"):
        gp.simulate(work, "fifo", stream=spans)
    with pytest.raises(gp.IoError, match=r"spans\.csv: No such file"):
        gp.simulate(work, "fifo", stream=tmp_path / "none" / "spans.csv")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="asks for the cores of a process")
def test_compare_takes_the_cores_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = {"job": np.arange(9), "submit_s": np.arange(9), "duration_s": np.ones(9)}
    work, most = gp.Workload([gp.Tier("a", 1)], jobs), []

    class Pool(ThreadPoolExecutor):
        def __init__(self, threads: int) -> None:
            most.append(threads)
            super().__init__(threads)

    monkeypatch.setattr(_compare, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(os, "cpu_count", lambda: 4096)  # of a node, of which we have a share
    gp.compare(work, ["fifo", "srtf"])
    assert most == [_core.available_threads()]
