# SPDX-License-Identifier: Apache-2.0
"""Whatever a job brings, its log, its comment or its folder, is the trouble of that job alone."""

from __future__ import annotations

import fcntl
import gzip
import os
import pwd
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import IO

import pytest
from log_files import write
from slurm_world import HOPELESS, TIERS, World, job

import glidepath as gp
from glidepath.engines.slurm import DecisionLog, Event, LogError, Slurm, _reader_process
from glidepath.engines.slurm._growing_log import GrowingLog
from glidepath.engines.slurm._job_forecast import forecast_job
from glidepath.engines.slurm._reader_process import ReaderProcess
from glidepath.engines.slurm._traces import TraceStore

ASKED = "glidepath target=0.3 budget=2000 checkpoint=usr1 tiers=bronze,silver,gold"
ROWS = "step,loss\n" + "".join(f"{i},{1 / i + 0.2}\n" for i in range(1, 60))


def curve(
    step: Callable[[int], float] = float,
    loss: Callable[[int], float] = lambda i: 1 / i,
    seconds: Callable[[int], float] = float,
) -> str:
    rows = (f"{step(i)},{loss(i)},{seconds(i)}\n" for i in range(1, 99))
    return "step,loss,seconds\n" + "".join(rows)


LOGS = {
    "numbers of 400 digits": ("a.jsonl", '{"step": 1, "loss": ' + "9" * 400 + "}\n"),
    "steps of 400 digits": ("a.jsonl", '{"loss": 1, "step": ' + "9" * 400 + "}\n"),
    "half a letter": ("a.jsonl", '{"\\ud800": 1, "step": 1, "loss": 1}\n' * 9),
    "a name a row": (
        "a.jsonl",
        "".join(f'{{"step": {i}, "loss_{i}": 1}}\n' for i in range(11_000)),
    ),
    "nested deeply": ("a.jsonl", '{"step": 1, "loss": 1, "x": ' + "[" * 5000 + "\n"),
    "far steps": ("a.csv", curve(step=lambda i: i * 1e13)),
    "steps beyond": ("a.csv", curve(step=lambda i: i * 1e300)),
    "a fast clock": ("a.csv", curve(seconds=lambda i: i * 1e-310)),
    "a broken clock": ("a.csv", curve(seconds=lambda i: (-1) ** i * 1e999)),
    "huge losses": ("a.csv", curve(loss=lambda i: 1e308 * (-1) ** i)),
    "tiny losses": ("a.csv", curve(loss=lambda i: 5e-324 * i)),
    "escapes": ("\x1b[31m.csv", "\x1b[31mred,\x07\n1,2\n" * 9),
    "a record of many bytes": ("events.out.tfevents.1", "\x01" * 9000),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_fails_its_job_alone(world: World, tmp_path: Path, name: str) -> None:
    log = write(tmp_path / LOGS[name][0], LOGS[name][1])
    check_alone(world, f"{ASKED} trace={log}")


def check_alone(world: World, comment: str) -> None:
    """Two jobs with this comment, and one that the pilot has to end, for which it needs a plan."""
    good = world.submit(job(1, HOPELESS))
    for number in (2, 3):
        world.submit(job(number, comment), number)
    for _ in range(8):
        world.cluster.advance(60)
        done = world.pilot.round()
        assert done.trouble == ""
        for view in done.views:
            said = view.reason + view.forecast.problem
            assert said.isprintable()
            assert len(said) < 1000
        if good.ended:
            break
    assert good.ended == "CANCELLED"


def test_what_never_ends_is_no_log(world: World, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    sparse = tmp_path / "sparse.csv"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    deep = tmp_path / "many"
    deep.mkdir()
    for number in range(5001):
        (deep / f"{number}").touch()
    for name, said in {
        "fifo.csv": "not a regular file",
        "zero.csv": "not a regular file",
        "loop.csv": "symbolic links",
        "sparse.csv": "more than 16 mib in a line",
        "many": "a folder of more than 5000 files is no log",
        "a\0b": "embedded null byte",
        "a" * 300: "too long",
    }.items():
        seen = TraceStore().read(tmp_path / name)
        assert seen.trace is None
        assert said in seen.problem.lower()
    check_alone(world, f"{ASKED} trace={tmp_path}/fifo.csv")


def test_a_log_has_as_many_rows_and_letters_in_a_line_as_can_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glidepath.engines.slurm._growing_log._PIECE", 1 << 12)
    monkeypatch.setattr("glidepath.engines.slurm._growing_log._MOST_STEPS", 1000)
    store, log = TraceStore(), tmp_path / "a.csv"
    write(log, "step,loss\n" + "".join(f"{i},{1 / i}\n" for i in range(1, 1000)))
    seen = store.read(log)
    assert seen.trace is not None  # of several pieces
    assert (len(seen.trace), seen.last_step) == (999, 999)
    with log.open("a") as file:
        file.writelines(f"{i},{1 / i}\n" for i in range(1000, 1300))
    assert "more than 1000 steps" in store.read(log).problem
    assert "more than 1000 steps" in store.read(log).problem
    write(log, "step,loss\n" + "1" * 5000)
    assert "in a line" in store.read(log).problem


def test_a_damaged_log_is_a_sentence_of_its_job(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(ROWS.encode()))
    packed[30] ^= 0x55
    (tmp_path / "a.csv.gz").write_bytes(packed)
    store = TraceStore()
    assert "a.csv.gz" in store.read(tmp_path / "a.csv.gz").problem
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    seen = store.read(tmp_path / "b.csv.gz")
    assert seen.problem == ""
    assert seen.last_step == 59
    assert store.read(tmp_path / "b.csv.gz") is seen  # nothing new: not read again


@pytest.mark.parametrize(
    "words",
    [
        *("weight=1e300", "weight=1e-300", "weight=1e6", "budget=1e300", "budget=1e15"),
        *("budget=1e-9", "target=1e300", "target=-1e30", "target=nan", "tiers=nowhere"),
        *("trace=/usr", "trace=a\x7fb", "metric=\x1b[31m", "direction=max", "weight=9" + "9" * 500),
        *("| moving=gold@" + "9" * 5000, "| moving=gold@²", "| moving=gold@999999999999"),
        *("| moving=end@1", "| moving=nowhere@1", "| moving=-@1", "x" * 60_000),
    ],
    ids=lambda words: words[:24].encode("ascii", "replace").decode(),
)
def test_a_comment_fails_its_job_alone(world: World, words: str) -> None:
    said = words.partition("=")[0]
    others = [word for word in ASKED.split() if word.partition("=")[0] != said]
    check_alone(world, " ".join([*others, words]))


def test_a_forecast_that_fails_is_of_its_job_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = forecast_job

    def broken(progress: object, request: object, options: object) -> object:
        if getattr(request, "weight", 1.0) == 7:
            raise OverflowError("such as of a date")
        return real(progress, request, options)

    monkeypatch.setattr("glidepath.engines.slurm._pilot.forecast_job", broken)
    check_alone(world, f"{ASKED} weight=7")


def test_a_round_that_fails_is_reported_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit(job(1, HOPELESS))
    with monkeypatch.context() as patched:
        patched.setattr("glidepath.engines.slurm._pilot.ActionPlanner.decide", lambda _: 1 / 0)
        assert "division by zero" in world.pilot.round().trouble
    assert world.pilot.round().trouble == ""


# -------------------------------------------------------------------------- the process that reads


def test_a_log_that_takes_too_long_ends_the_process_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reader_process, "LONGEST_S", 1)
    reader = ReaderProcess()
    slow = write(tmp_path / "slow.txt", "step 1 loss 2\n" * 2_000_000)
    with pytest.raises(gp.IoError, match=r"slow\.txt: cannot be read within 1 s"):
        reader.read(slow, None)
    monkeypatch.undo()  # a good one may take longer on a busy machine
    (trace,) = reader.read(write(tmp_path / "good.csv", ROWS), None)  # by another process
    assert len(trace) == 59
    with pytest.raises(gp.IoError, match=r"bad\.csv:2: loss 'x' is not a number"):
        reader.read(write(tmp_path / "bad.csv", "step,loss\n1,x\n"), None)


class PipeThen:
    """Does something after a question was sent."""

    def __init__(self, pipe: IO[bytes], then: Callable[[], object]) -> None:
        self.write, self.close, self._pipe, self._then = pipe.write, pipe.close, pipe, then

    def flush(self) -> None:
        self._pipe.flush()
        self._then()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_reader_that_is_killed_while_it_reads_is_a_sentence(tmp_path: Path) -> None:
    reader = ReaderProcess()
    good = write(tmp_path / "good.csv", ROWS)
    process = reader._started()
    assert process.stdin is not None
    process.send_signal(signal.SIGSTOP)  # or it might answer before
    process.stdin = PipeThen(process.stdin, process.kill)  # type: ignore[assignment]
    with pytest.raises(gp.IoError, match=r"good\.csv: cannot be read: it ended the process"):
        reader.read(good, None)
    assert len(reader.read(good, None)) == 1


def test_a_reader_that_ended_between_two_logs_fails_none_of_them(tmp_path: Path) -> None:
    """Such as one that was killed for its memory: no job may lose its forecast for a round."""
    reader = ReaderProcess()
    good = write(tmp_path / "good.csv", ROWS)
    assert len(reader.read(good, None)) == 1
    assert reader._process is not None
    reader._process.kill()
    reader._process.wait()
    assert len(reader.read(good, None)) == 1


def test_logs_are_read_where_less_memory_is_allowed_than_a_reader_may_take(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", ROWS)
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "from glidepath.engines.slurm._reader_process import ReaderProcess\n"
        "print(len(ReaderProcess().read(sys.argv[1], None)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(good)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_an_answer_that_ctrl_c_left_is_not_taken_for_that_of_another_log(tmp_path: Path) -> None:
    reader = ReaderProcess()
    first, second = write(tmp_path / "first.csv", ROWS), write(tmp_path / "second.csv", ROWS)
    reader.read(first, None)
    process = reader._process
    assert process is not None
    assert process.stdin is not None
    process.stdin = PipeThen(process.stdin, interrupted)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        reader.read(first, None)
    assert process.wait(60) == -signal.SIGKILL
    (trace,) = reader.read(second, None)
    assert trace.name == "second.csv"


def test_a_log_that_ctrl_c_left_half_read_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = write(tmp_path / "log.csv", ROWS), TraceStore()
    with monkeypatch.context() as patch:
        patch.setattr(GrowingLog, "feed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.read(log)
    found = store.read(log).trace
    assert found is not None
    assert len(found) == 59


def test_threads_may_share_a_store_of_logs(tmp_path: Path) -> None:
    store, lasts = TraceStore(), range(2, 42)
    for last in lasts:  # the reading process reads tables of several curves
        rows = "".join(f"run,{step},{1 / step}\n" for step in range(1, last + 1))
        write(tmp_path / f"{last}.csv", f"curve,step,value\n{rows}")
    with ThreadPoolExecutor(8) as pool:
        seen = pool.map(lambda last: store.read(tmp_path / f"{last}.csv").last_step, lasts)
        assert list(seen) == list(lasts)


# -------------------------------------------------------------------------------- whose log it is


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter, and the users "me" and "eve", who is somebody else."""
    uids = {"me": os.getuid(), "eve": os.getuid() + 4711}

    def known(name: str) -> SimpleNamespace:
        return SimpleNamespace(pw_uid=uids[name])

    monkeypatch.setattr(pwd, "getpwnam", known)
    before = os.umask(0o022)  # whatever that of the tests is: others may read what is made here
    try:
        with TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            yield Path(name)
    finally:
        os.umask(before)


def readable(path: Path, user: str) -> bool:
    seen = TraceStore().read(path, user=user)
    if seen.trace is None:
        assert seen.problem == f"no log at {path} that {user} may read"
    return seen.trace is not None


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.csv.gz"])
def test_a_log_is_read_only_for_those_who_may_read_it(folder: Path, name: str) -> None:
    private = folder / "private"
    private.mkdir(0o700)
    log = private / name
    log.write_bytes(gzip.compress(ROWS.encode()) if name.endswith("gz") else ROWS.encode())
    log.chmod(0o644)
    assert readable(log, "me")
    assert not readable(log, "eve")  # who may not enter the folder
    assert not readable(log, "nobody we know")
    (folder / "link.csv").symlink_to(log)
    (folder / "loop").symlink_to(private)
    assert not readable(folder / "link.csv", "eve")
    assert not readable(folder / "loop" / name, "eve")
    assert not readable(folder / "absent.csv", "eve")  # in the same words
    private.chmod(0o755)
    assert readable(log, "eve")
    assert readable(folder / "loop" / name, "eve")
    log.chmod(0o640)
    assert not readable(log, "eve")


def test_a_folder_that_the_operator_may_not_enter_is_a_sentence(folder: Path) -> None:
    log = folder / "private" / "a.csv"
    write(log, ROWS)
    log.parent.chmod(0o700 if os.geteuid() == 0 else 0)
    if os.geteuid() == 0:
        os.seteuid(65_534)
    try:
        seen = TraceStore().read(log)
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        log.parent.chmod(0o700)
    assert seen.trace is None
    assert seen.problem == f"cannot read {log}: Permission denied"


def test_of_a_folder_only_the_files_of_its_user_are_read(folder: Path) -> None:
    run = folder / "mlruns" / "0" / "abc"
    rows = "".join(f"{1_700_000_000_000 + 2000 * i} {1 / i} {i}\n" for i in range(1, 41))
    for name in ("loss", "secret"):
        write(run / "metrics" / name, rows)
    write(run / "meta.yaml", "run_id: abc\n")
    (run / "metrics" / "secret").chmod(0o600)
    store = TraceStore()
    seen = store.read(folder / "mlruns", user="eve")
    assert (seen.problem, seen.last_step) == ("", 40)
    hidden = store.read(folder / "mlruns", user="eve", metric="secret")
    assert hidden.trace is None
    assert "glidepath" not in hidden.problem  # such as the folder to which it was copied
    assert store.read(folder / "mlruns", metric="secret", direction="min").last_step == 40
    checkpoint = folder / "mlruns" / "0" / "abc" / "model.ckpt"
    with checkpoint.open("wb") as file:
        file.truncate(1 << 36)  # beside a log there may be large files
    for user in ("eve", ""):
        assert TraceStore().read(folder / "mlruns", user=user, metric="loss").last_step == 40
    (folder / "mlruns").chmod(0o700)
    assert store.read(folder / "mlruns", user="eve").trace is None


def test_an_operator_lends_nobody_their_eyes(folder: Path, tmp_path: Path) -> None:
    """The forecast goes into the comment of the job: it must not tell of a file of another."""
    secret = write(folder / "secret.csv", ROWS)
    secret.chmod(0o600)
    world = World(tmp_path)
    scheduler = Slurm(
        all_users=True, run=world.stub, tiers=TIERS, clock=lambda: world.cluster.now_s
    )
    world.pilot.scheduler = scheduler
    for number, user in ((1, "eve"), (2, "me")):
        world.submit(replace(job(number, f"{ASKED} trace={secret}"), user=user))
    assert scheduler.reader(replace(job(3), user=scheduler._own)) == ""
    world.cluster.advance(60)
    start_s = world.cluster.runs["2"].job.start_s
    os.utime(secret, (start_s, start_s))
    for _ in range(3):
        done = world.pilot.round()
        assert done.trouble == ""
        eve, me = sorted(done.views, key=lambda view: view.job.user)
        assert eve.forecast.problem == f"no log at {secret} that eve may read"
        assert eve.forecast.last_step == 0
        assert me.forecast.verdict == "reached"
        world.cluster.advance(60)
    assert all("P(target)" not in run.job.comment for run in world.cluster.runs.values()
               if run.job.user == "eve")  # fmt: skip


# ------------------------------------------------------------------------------- the decision log


def damaged(path: Path) -> bytes:
    """A decision log of some rows, of which one page is overwritten."""
    with DecisionLog(path) as log:
        for number in range(200):
            log.add(number, number, [Event(str(number), "stop", "intended", "why", "x" * 300)])
    raw = bytearray(path.read_bytes())
    raw[8192:16384] = bytes(range(256)) * 32
    path.write_bytes(raw)
    return bytes(raw)


@pytest.mark.parametrize("kind", ["page", "no database", "text", "detail", "kind of value"])
def test_a_damaged_log_is_set_aside_and_never_lost(world: World, kind: str) -> None:
    world.submit(job(1, HOPELESS))
    path = world.log
    if kind == "page":
        damaged(path)
    elif kind == "no database":
        path.write_bytes(b"something else " * 300)
    else:
        with DecisionLog(path) as log:
            log.add(1, 1.0, [Event("7", "stop", "intended", "whywhywhy", "words")])
        raw = sqlite3.connect(path)
        raw.execute("DROP TRIGGER event_kept")
        change = {"text": "why = CAST(x'ff' AS TEXT)", "detail": "detail = '{'",
                  "kind of value": "command = x'00'"}[kind]  # fmt: skip
        raw.execute(f"UPDATE event SET {change}")
        raw.commit()
        raw.close()
    before = path.read_bytes()
    with (
        pytest.raises(LogError, match=r"decisions\.db: damaged"),
        DecisionLog(path, readonly=True) as seen,
    ):
        seen.events()
    assert path.read_bytes() == before  # who only looks changes nothing
    trouble = world.pilot.round().trouble
    assert "damaged" in trouble
    (aside,) = path.parent.glob("decisions.db.damaged-*[0-9]")
    assert aside.name in trouble
    if kind in ("page", "no database"):
        assert aside.read_bytes()[100:] == before[100:]  # behind a header with counts of changes
    else:
        with closing(sqlite3.connect(aside)) as raw:
            assert raw.execute("SELECT count(*) FROM event WHERE job = '7'").fetchone() == (1,)
    assert world.pilot.round().trouble == ""
    assert path.exists()


def test_a_log_that_cannot_be_opened_is_not_locked(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    path.mkdir()  # no file can be opened here
    for _ in range(2):
        with pytest.raises(LogError, match="unable to open"):
            DecisionLog(path)
    path.rmdir()
    with DecisionLog(path) as log:
        assert log.events() == []
    with pytest.raises(LogError, match="closed"):
        log.events()


def test_a_lock_is_let_go_whatever_stops_the_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decisions.db"

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", interrupted)
        with pytest.raises(KeyboardInterrupt):
            DecisionLog(path)
    with Path(f"{path}.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where another holds it
    assert stat.S_IMODE(Path(f"{path}.lock").stat().st_mode) == 0o600
