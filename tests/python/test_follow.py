# SPDX-License-Identifier: Apache-2.0
"""Following a log that grows, is truncated or is replaced: each look sees what a reading sees."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from wire import field, record, varint

import glidepath as gp
from glidepath import _follow

OLD_NS = 10**18  # 2001: a file that has not changed for long


def rows(*steps: int) -> str:
    return "step,loss\n" + "".join(f"{step},{100 - step}\n" for step in steps)


def settle(file: Path, at_ns: int = OLD_NS) -> None:
    os.utime(file, ns=(at_ns, at_ns))


def steps(follow: gp.Follow) -> list[list[float]]:
    return [trace.step.tolist() for trace in follow.poll()]


def test_a_file_that_is_not_there_yet_grows_is_truncated_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    follow = gp.Follow(file)
    assert steps(follow) == []
    assert "log.csv" in follow.trouble
    file.write_text("")
    assert steps(follow) == []
    assert "log.csv" in follow.trouble
    file.write_text(rows(1, 2))
    assert steps(follow) == [[1, 2]]
    assert follow.trouble == ""
    assert steps(follow) == []
    with file.open("a") as out:
        out.write("3,97\n")
    assert steps(follow) == [[1, 2, 3]]
    os.truncate(file, len(rows(1)))  # as when a restart goes back
    assert steps(follow) == [[1]]
    (tmp_path / "new").write_text(rows(7, 8))
    (tmp_path / "new").replace(file)
    assert steps(follow) == [[7, 8]]
    file.unlink()
    assert steps(follow) == []
    assert follow.trouble
    assert follow.traces[0].step.tolist() == [7, 8]  # what was known stays known
    file.write_text(rows(7, 8))
    assert steps(follow) == []
    assert follow.trouble == ""


def test_a_file_of_the_same_length_and_time_is_read_while_it_may_still_change(
    tmp_path: Path,
) -> None:
    file = tmp_path / "log.csv"
    file.write_text("step,loss\n1,5\n")
    before = file.stat().st_mtime_ns
    follow = gp.Follow(file)
    assert follow.poll()[0].loss[-1] == 5
    file.write_text("step,loss\n1,4\n")
    settle(file, before)
    assert follow.poll()[0].loss[-1] == 4


def test_a_file_that_has_settled_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log.csv"
    file.write_text(rows(1))
    settle(file)
    follow = gp.Follow(file)
    assert steps(follow) == [[1]]
    with monkeypatch.context() as patch:
        patch.setattr(_follow, "read_traces", None)  # calling it would raise
        assert steps(follow) == []
    file.write_text(rows(1, 2))
    settle(file, OLD_NS + 1)
    assert steps(follow) == [[1, 2]]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let seconds pass by our clock."""
    at = [time.monotonic()]
    monkeypatch.setattr(_follow.time, "monotonic", lambda: at[0])

    def wait(seconds: float) -> None:
        at[0] += seconds

    return wait


HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize("ahead_ns", [0, HOUR_NS, -HOUR_NS], ids=["none", "ahead", "behind"])
def test_half_a_line_waits_for_its_end_whatever_the_clock_of_a_file_server_says(
    tmp_path: Path, passes: Callable[[float], None], ahead_ns: int
) -> None:
    file = tmp_path / "log.csv"

    def write(text: str) -> None:
        file.write_text(text)
        settle(file, time.time_ns() + ahead_ns)

    write(rows(1))
    follow = gp.Follow(file)
    assert steps(follow) == [[1]]
    passes(60)
    write(rows(1) + "2,0.")  # going on with 9375, say
    for seconds in (0.1, 1.8):
        assert steps(follow) == []
        assert follow.trouble.endswith("the last line is not complete yet")
        passes(seconds)
    write(rows(1) + "2,0.9")
    assert steps(follow) == []
    passes(2)
    assert follow.poll()[0].loss[-1] == 0.9  # its writer has gone: the line is what it is
    write(rows(1) + "2,0.9375\n")
    assert follow.poll()[0].loss[-1] == 0.9375


def test_a_file_of_a_server_whose_clock_is_ahead_is_not_read_again_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: Callable[[float], None]
) -> None:
    file = tmp_path / "log.csv"
    file.write_text(rows(1))
    settle(file, time.time_ns() + HOUR_NS)
    follow = gp.Follow(file)
    assert steps(follow) == [[1]]
    passes(2)
    assert steps(follow) == []
    monkeypatch.setattr(_follow, "read_traces", None)  # calling it would raise
    assert steps(follow) == []


def test_a_file_that_ended_within_a_line_long_ago_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(rows(1) + "2,0.5")
    settle(file)
    assert steps(gp.Follow(file)) == [[1, 2]]


def test_a_document_caught_half_written_is_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "trainer_state.json"
    whole = '{"log_history": [{"loss": 3.0, "step": 1}]}\n'
    follow = gp.Follow(file)
    file.write_text(whole)
    assert steps(follow) == [[1]]
    file.write_text(whole[:30] + "\n")
    assert steps(follow) == []
    assert "trainer_state.json:" in follow.trouble
    file.write_text(whole.replace('"step": 1', '"step": 2'))
    assert steps(follow) == [[2]]


def test_of_a_folder_only_the_runs_that_changed_are_given(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(rows(1))
    follow = gp.Follow(tmp_path)
    assert sorted(trace.name for trace in follow.poll()) == ["a.csv", "b.csv"]
    (tmp_path / "b.csv").write_text(rows(1, 2))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d.csv").write_text(rows(4))
    assert [(t.name, t.step[-1]) for t in follow.poll()] == [("b.csv", 2), ("c/d.csv", 4)]
    shutil.rmtree(tmp_path / "c")
    assert follow.poll() == []
    assert len(follow.traces) == 2


def test_a_checkpoint_that_goes_while_a_folder_is_looked_at_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.csv").write_text(rows(1, 2))
    gone = tmp_path / "checkpoint-1"
    gone.mkdir()
    scan = os.scandir

    def removed(path: Any) -> Any:
        if os.fspath(path) == str(gone):
            gone.rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", removed)
    follow = gp.Follow(tmp_path)
    assert [trace.name for trace in follow.poll()] == ["log.csv"]
    assert follow.trouble == ""
    assert not gone.exists()


def test_what_sqlite_keeps_beside_its_database_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "demo.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE metrics (id, timestamp, run_name, step, metrics)")
        follow = gp.Follow(file)
        for step in (1, 2):
            database.execute(
                "INSERT INTO metrics VALUES (?, '2026-01-01T00:00:00', 'r', ?, '{\"loss\": 1.0}')",
                (step, step),
            )
            database.commit()
            settle(file)  # only what lies beside it is new
            settle(Path(f"{file}-wal"), OLD_NS + step)
            assert steps(follow) == [[1, 2][:step]]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [gp.Trace([1], [2], name="a"), gp.Trace([1], [3], name="a")]
    assert list(_follow.by_name(runs).values()) == runs


def test_iterating_waits_between_the_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.csv"
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) != 2:  # one look finds nothing new
            file.write_text(rows(*range(1, len(pauses) + 1)))

    monkeypatch.setattr(_follow.time, "sleep", sleep)
    found = []
    for (run,) in gp.Follow(file, every_s=30):
        found.append(len(run))
        if len(found) == 3:
            break
    assert found == [1, 3, 4]
    assert all(pause >= 30 for pause in pauses)


def test_bad_arguments_are_told_at_once(tmp_path: Path) -> None:
    for every_s in (-1.0, math.nan, math.inf, 1e20):  # the last would overflow as it waits
        with pytest.raises(gp.InputError, match=r"every_s is .*, expected 0 to 1000000$"):
            gp.Follow(tmp_path, every_s=every_s)
    with pytest.raises(gp.InputError, match="format is 'x', expected one of"):
        gp.Follow(tmp_path, format="x").poll()
    with pytest.raises(gp.InputError, match="path has type int"):
        gp.Follow(3).poll()


# --------------------------------------------------------------------------- format by format


def long_csv(rows: list[tuple[int, float]]) -> bytes:
    return ("curve,step,value\n" + "".join(f"a,{t},{v}\n" for t, v in rows)).encode()


def table(rows: list[tuple[int, float]]) -> bytes:
    return ("epoch,loss,val_loss\n" + "".join(f"{t},{v},\n" for t, v in rows)).encode()


def json_lines(rows: list[tuple[int, float]]) -> bytes:
    return "".join(json.dumps({"loss": v, "step": t}) + "\n" for t, v in rows).encode()


def trainer_state(rows: list[tuple[int, float]]) -> bytes:
    history = [{"loss": v, "step": t} for t, v in rows]
    return (json.dumps({"log_history": history}, indent=2) + "\n").encode()


def megatron(rows: list[tuple[int, float]]) -> bytes:
    lines = (f" iteration {t:8d}/  90000 | lm loss: {v:.6E} | loss scale: 1.0 |\n" for t, v in rows)
    return "".join(lines).encode()


def nanogpt(rows: list[tuple[int, float]]) -> bytes:
    return "".join(f"iter {t}: loss {v}, time 120.5ms, mfu 4.00%\n" for t, v in rows).encode()


def llmc(rows: list[tuple[int, float]]) -> bytes:
    return "".join(f"s:{t} trl:{v} lr:0.5\n" for t, v in rows).encode()


def mlflow(rows: list[tuple[int, float]]) -> bytes:
    return "".join(f"1588459520000 {v} {t}\n" for t, v in rows).encode()


def dvclive(rows: list[tuple[int, float]]) -> bytes:
    return ("step\tloss\n" + "".join(f"{t}\t{v}\n" for t, v in rows)).encode()


def tensorboard(rows: list[tuple[int, float]]) -> bytes:
    def event(step: int, value: float) -> bytes:
        scalar = field(1, field(1, b"loss") + b"\x15" + struct.pack("<f", value))
        return record(b"\x10" + varint(step) + field(5, scalar))

    return record(field(3, b"brain.Event:2")) + b"".join(event(t, v) for t, v in rows)


def wandb(rows: list[tuple[int, float]]) -> bytes:
    data = b":W&B\xe1\xbe\x00"
    for t, v in rows:
        items = ((b"_step", str(t)), (b"loss", str(v)))
        history = b"".join(
            field(1, field(1, key) + field(16, text.encode())) for key, text in items
        )
        part = field(2, history)
        data += struct.pack("<IHB", crc32(b"\x01" + part), len(part), 1) + part
    return data


FILES: dict[str, Callable[[list[tuple[int, float]]], bytes]] = {
    "a.csv": long_csv,
    "log.csv": table,
    "log.jsonl": json_lines,
    "trainer_state.json": trainer_state,
    "train.out": megatron,
    "nano.log": nanogpt,
    "main.log": llmc,
    "run/metrics/loss": mlflow,
    "dvc/plots/metrics/loss.tsv": dvclive,
    "events.out.tfevents.1.host": tensorboard,
    "run-abc.wandb": wandb,
}
ROWS = [(10 * i, 2.0**-i) for i in range(1, 9)]


def points(run: gp.Trace) -> list[tuple[int, float]]:
    return [(int(t), v) for t, v in zip(run.step, run.loss, strict=True)]


@pytest.fixture(params=FILES)
def file_of(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[Path, Callable[[list[tuple[int, float]]], bytes]]:
    file = tmp_path / request.param
    file.parent.mkdir(parents=True, exist_ok=True)
    return file, FILES[request.param]


def test_every_format_is_followed_as_it_grows_is_truncated_and_is_replaced(
    file_of: tuple[Path, Callable[[list[tuple[int, float]]], bytes]],
) -> None:
    file, written = file_of
    follow = gp.Follow(file)
    other = [(3, 0.5), (4, 0.25)]
    for rows in (ROWS[:2], ROWS[:5], ROWS, ROWS[:3], ROWS[:4], other):
        if rows is other:
            beside = file.with_name("new")
            beside.write_bytes(written(rows))
            beside.replace(file)
        else:
            file.write_bytes(written(rows))
        (run,) = follow.poll()
        assert points(run) == rows
        assert follow.poll() == []


def test_no_cut_of_any_format_gives_a_point_that_was_not_logged(
    file_of: tuple[Path, Callable[[list[tuple[int, float]]], bytes]],
) -> None:
    file, written = file_of
    follow, whole, most = gp.Follow(file), written(ROWS[:4]), 0
    for end in range(len(whole) + 1):  # as its writer's buffer happens to be flushed
        file.write_bytes(whole[:end])
        for run in follow.poll():
            assert points(run) == ROWS[: len(run)]
            assert len(run) >= most
            most = len(run)
    assert most == 4
