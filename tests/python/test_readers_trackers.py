# SPDX-License-Identifier: Apache-2.0
"""Readers of experiment trackers and data frames, against the tools themselves where they run."""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from log_files import check
from wire import field

import glidepath as gp

NAN, INF = math.nan, math.inf


# --------------------------------------------------------------------------------- W&B, on disk


def history(**row: Any) -> bytes:
    items = (
        field(1, key.encode()) + field(16, json.dumps(value).encode()) for key, value in row.items()
    )
    return b"\x08\x01" + field(2, b"".join(field(1, item) for item in items))


def framed(messages: list[bytes]) -> bytes:
    """LevelDB's framing: a record that does not fit into its block goes on in the next."""
    data = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for message in messages:
        first = True
        while first or message:
            room = 32768 - len(data) % 32768
            if room < 7:
                data += b"\x00" * room
                continue
            part, message = message[: room - 7], message[room - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3}.get(
                (first, not message), 4
            )
            data += struct.pack("<IHB", crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
    return data


RUN = field(17, field(1, b"abc123") + field(2, b"entity"))
ROWS = [
    history(_step=10, _runtime=1.5, loss=3.0, lr=0.5, hist={"_type": "histogram", "values": [1]}),
    history(_step=20, _runtime=2.5, loss=NAN, text="x" * 70000),
    history(_step=30, _runtime=4.5, loss=2.0, lr=0.25, nested={"val": 1}),
]


def test_the_log_of_wandb_is_read_across_blocks(tmp_path: Path) -> None:
    file = tmp_path / "run-20260101_000000-abc123" / "run-abc123.wandb"
    file.parent.mkdir()
    file.write_bytes(framed([RUN, *ROWS]))
    (run,) = gp.read_traces(file)
    check(run, [10, 20, 30], [3, NAN, 2], [0.5, NAN, 0.25])
    assert (run.name, run.notes) == ("abc123", ())
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [1.5, 2.5, 4.5]
    (nested,) = gp.read_traces(tmp_path, metric="nested.val")
    check(nested, [30], [1], [0.25])
    assert nested.name == "abc123"


def test_a_log_of_wandb_that_is_cut_or_damaged(tmp_path: Path) -> None:
    file = tmp_path / "run-abc123.wandb"
    whole = framed([RUN, *ROWS])
    for end in (len(whole) - 1, 60000, 40000):  # within a record, within a part of one
        file.write_bytes(whole[:end])
        (run,) = gp.read_traces(file)
        assert len(run) < 3
        assert run.notes == ("the last record is cut: left out",)
    file.write_bytes(whole[:100] + b"?" + whole[101:])
    with pytest.raises(gp.IoError, match=f"wandb: damaged record at byte {len(framed([RUN]))}"):
        gp.read_traces(file)
    file.write_bytes(framed([RUN, field(2, field(1, field(1, b"loss") + field(16, b"{")))]))
    with pytest.raises(gp.IoError, match=r"run-abc123\.wandb: damaged record: Expecting"):
        gp.read_traces(file)
    file.write_bytes(framed([RUN]))
    with pytest.raises(gp.IoError, match="no metric was logged"):
        gp.read_traces(file)


def test_a_tracker_counts_calls_so_the_step_of_the_trainer_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "run-1.wandb"
    rows = [
        {"_step": 0, "train/global_step": 100, "train/loss": 3.0},
        {"_step": 1, "train/global_step": 100, "eval/loss": 3.5},
        {"_step": 2, "train/global_step": 200, "train/loss": 2.0},
    ]
    file.write_bytes(framed([RUN, *(history(**row) for row in rows)]))
    check(gp.read_traces(file)[0], [100, 200], [3, 2])
    file.write_bytes(framed([RUN, *(history(**row) for row in rows), history(_step=3, other=1)]))
    check(gp.read_traces(file)[0], [100, 200], [3, 2])
    check(gp.read_traces(file, metric="other")[0], [3], [1])


WANDB_RUN = """
import math, sys, wandb
run = wandb.init(project="p", id="abc123", mode="offline", dir=sys.argv[1],
                 settings=wandb.Settings(console="off", silent=True,
                                         init_timeout=600, x_service_wait=600))
for i in range(1, 41):
    row = {"train/loss": math.inf if i == 40 else 3.0 / i, "nested": {"lr": 0.1 / i}}
    run.log(row | {"weights": wandb.Histogram([1.0, 2.0])}, step=10 * i)
run.finish()
"""


@pytest.fixture(scope="module")
def wandb_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the tool itself, offline."""
    pytest.importorskip("wandb", reason="wandb is not installed")
    folder = tmp_path_factory.mktemp("wandb")
    done = subprocess.run(
        [sys.executable, "-c", WANDB_RUN, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "WANDB_ERROR_REPORTING": "false", "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_an_offline_run_of_wandb_itself_is_read(wandb_run: Path) -> None:
    (run,) = gp.read_traces(wandb_run)
    values = [3.0 / i for i in range(1, 40)] + [INF]
    check(run, [10.0 * i for i in range(1, 41)], values, [0.1 / i for i in range(1, 41)])
    assert (run.name, run.notes) == ("abc123", ())
    assert run.wall_seconds is not None
    assert np.all(np.diff(run.wall_seconds) >= 0)


# ---------------------------------------------------------------------------------- TensorBoard


def test_event_files_of_tensorboardx_itself_are_read(tmp_path: Path) -> None:
    tool = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    with tool.SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("config", "loss: 7")
        writer.add_histogram("weights", np.arange(9.0), 3)
        for i in range(1, 12_001):  # more than the 10 000 that TensorBoard itself would keep
            writer.add_scalar("train/loss", 3.0 / i, 10 * i, walltime=100.0 + i)
            writer.add_scalar("train/learning_rate", 0.5, 10 * i, walltime=100.0 + i)
    (run,) = gp.read_traces(tmp_path)
    steps = [10.0 * i for i in range(1, 12_001)]
    check(run, steps, [float(np.float32(3.0 / i)) for i in range(1, 12_001)], [0.5] * 12_000)
    assert run.wall_seconds is not None
    assert run.wall_seconds[-1] == 11_999
    assert run.notes == ()


# --------------------------------------------------------------------------- W&B, server and CSV


def api_run(rows: list[dict[str, Any]], name: str = "warm-sun-1") -> Any:
    """The part of `wandb.apis.public.Run` that is read."""
    return SimpleNamespace(
        path=["entity", "project", "abc123"],
        id="abc123",
        name=name,
        scan_history=lambda: iter(rows),
    )


def test_the_history_of_a_server_of_wandb() -> None:
    rows = [
        {"_step": 0, "_timestamp": 100.0, "loss": 3.0, "lr": 0.5, "h": {"_type": "histogram"}},
        {"_step": 5, "_timestamp": 102.5, "loss": "NaN", "lr": None},
        {"_step": 9, "_timestamp": 104.0, "loss": "Infinity", "flag": True},
    ]
    (run,) = gp.read_traces(api_run(rows))
    check(run, [0, 5, 9], [3, NAN, INF], [0.5, NAN, NAN])
    assert run.name == "warm-sun-1"
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [0, 2.5, 4]
    both = gp.read_traces([api_run(rows), api_run(rows, "other")], metric="loss")
    assert [run.name for run in both] == ["warm-sun-1", "other"]
    with pytest.raises(gp.IoError, match="W&B run entity/project/abc123: no metric 'x', only loss"):
        gp.read_traces(api_run(rows), metric="x")


def test_the_client_of_wandb_has_what_the_reader_asks_for() -> None:
    public = pytest.importorskip("wandb.apis.public", reason="wandb is not installed")
    assert callable(public.Run.scan_history)
    assert isinstance(public.Run.name, property)
    assert isinstance(public.Run.path, property)


def test_a_server_that_fails_is_an_io_error_with_its_words() -> None:
    def refuse() -> Iterator[dict[str, Any]]:
        raise RuntimeError("401 unauthorized")

    run = api_run([])
    run.scan_history = refuse
    with pytest.raises(gp.IoError, match="W&B run entity/project/abc123: 401 unauthorized"):
        gp.read_traces(run)
    with pytest.raises(gp.InputError, match="not the page of a project of W&B"):
        gp.read_traces("https://wandb.ai/home")


PANEL = """\
"Step","warm - sun - train/loss","warm - sun - train/loss__MIN","warm - sun - train/loss__MAX",\
"b - train/loss","b - train/loss__MIN","b - train/loss__MAX",\
"b - _step","b - _step__MIN","b - _step__MAX"
"10","3","3","3","","","","10","10","10"
"20","2","1.5","2.5","NaN","NaN","NaN","20","20","20"
"""


def test_the_csv_of_a_panel_of_wandb_holds_several_runs(tmp_path: Path) -> None:
    file = tmp_path / "wandb_export.csv"
    file.write_text(PANEL)
    warm, other = gp.read_traces(tmp_path)
    check(warm, [10, 20], [3, 2])
    check(other, [20], [NAN])
    assert (warm.name, other.name) == ("warm - sun", "b")
    assert warm.notes == ("1 point of the panel stand for several steps each",)
    file.write_text(PANEL + '"30","x","1","1","","","","","",""\n')
    with pytest.raises(gp.IoError, match=r"wandb_export\.csv:4: could not convert .*'x'"):
        gp.read_traces(file)
    file.write_text(PANEL + '"30"\n')
    with pytest.raises(gp.IoError, match=r"wandb_export\.csv:4: 1 fields where the header has 10"):
        gp.read_traces(file)
    file.write_text('"Name","State","Runtime","loss"\n"a","finished","9","0.5"\n')
    with pytest.raises(gp.IoError, match="the table of runs of W&B has only the last value"):
        gp.read_traces(file)


# --------------------------------------------------------------------------------------- Trackio

# As Trackio 0.43 writes it; before 0.20 there was no run_id.
TRACKIO = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, {run_id} timestamp TEXT NOT NULL,
    run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_name TEXT NOT NULL);
"""


@pytest.mark.parametrize("with_id", [True, False])
def test_the_database_of_trackio(tmp_path: Path, with_id: bool) -> None:
    file = tmp_path / "demo.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(TRACKIO.format(run_id="run_id TEXT NOT NULL," if with_id else ""))
        for run in ("first", "second"):
            for i, loss in enumerate((3.0, "NaN", "-Infinity")):
                metrics = {"train": {"loss": loss}, "train/learning_rate": 0.5, "note": "x"}
                stamp = f"2026-01-01T00:00:0{i}.500000+00:00"
                text = json.dumps(metrics | {"train/global_step": 10 * i}).encode()
                database.execute(
                    "INSERT INTO metrics (timestamp, run_name, step, metrics"
                    + (", run_id) VALUES (?, ?, ?, ?, ?)" if with_id else ") VALUES (?, ?, ?, ?)"),
                    (stamp, run, i, text, *(["id of " + run] if with_id else [])),
                )
    first, second = gp.read_traces(tmp_path)
    check(first, [0, 10, 20], [3, NAN, -INF], [0.5, 0.5, 0.5])
    assert (first.name, second.name) == ("first", "second")
    assert first.wall_seconds is not None
    assert first.wall_seconds.tolist() == [0, 1, 2]
    with pytest.raises(gp.IoError, match="no metric 'x', only train/loss, train/learning_rate"):
        gp.read_traces(file, metric="x")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE metrics SET metrics = '[1]' WHERE id = 2")
    with pytest.raises(gp.IoError, match=r"demo\.db: not a database of Trackio"):
        gp.read_traces(file)


# ----------------------------------------------------------------------------------- data frames

WIDE = {
    "run": ["a", "a", "a", "b", "b", "b"],
    "step": [1, 2, 3, 1, 2, 3],
    "loss": [3.0, 2.0, 1.5, NAN, 1.0, 0.5],
    "lr": [0.5, None, 0.25, 0.5, 0.25, 0.25],
    "who": ["x", "y", "x", "y", "x", "y"],
}


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_frames_of_any_library(library: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = module.table(WIDE) if library == "pyarrow" else module.DataFrame(WIDE)
    a, b = gp.read_traces(frame)
    check(a, [1, 2, 3], [3, 2, 1.5], [0.5, NAN, 0.25])
    # pandas does not tell a NaN that was logged from a cell that is empty.
    whole = [1, 2, 3], [NAN, 1, 0.5], [0.5, 0.25, 0.25]
    check(b, *([column[1:] for column in whole] if library == "pandas" else whole))
    assert (a.name, b.name) == ("a", "b")
    (alone,) = gp.read_traces(frame[:3] if library == "pandas" else frame.slice(0, 3))
    assert alone == a


@pytest.mark.parametrize("file", ["", "a.parquet"])
@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars_name_runs(kind: str, file: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    named = polars.Enum(["b", "a"]) if kind == "Enum" else polars.Categorical
    names = [*("a", None, "b", "a", "b")]
    frame = polars.DataFrame(
        {"run": polars.Series(names, dtype=named), "step": [1, 2, 1, 3, 2], "loss": [3, 9, 6, 2, 5]}
    )
    if file:
        frame.write_parquet(tmp_path / file)
    found = {run.name: run for run in gp.read_traces(tmp_path / file if file else frame)}
    assert sorted(found) == ["a", "b"]
    check(found["a"], [1, 2, 3], [3, 9, 2])
    check(found["b"], [1, 2], [6, 5])


def test_a_program_that_read_parquet_beside_polars_ends_well(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    file = tmp_path / "a.parquet"
    polars.DataFrame({"step": range(200), "loss": range(200)}).write_parquet(file)
    program = f"import polars, glidepath as gp; print(len(*gp.read_traces({str(file)!r})))"
    for _ in range(5):  # one in two aborted
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(gp.__file__).parents[1])},
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


@pytest.mark.parametrize("file", ["", "a.parquet", "a.csv"])
def test_columns_tell_runs_and_data_apart_in_a_frame_as_in_a_table(
    file: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = [
        {"model": model, "seed": seed, "split": split, "epoch": epoch, "loss": k + 3 / (epoch + 1)}
        for k, (model, seed, split) in enumerate(product("ab", (1, 2), ("train", "val")))
        for epoch in range(20)
    ]
    for ordered in (rows, sorted(rows, key=lambda row: row["epoch"])):
        frame = pandas.DataFrame(ordered)
        if file:
            source = tmp_path / file
            (frame.to_csv if file == "a.csv" else frame.to_parquet)(source, index=False)
        found = gp.read_traces(source if file else frame, metric="val/loss")
        assert [run.name for run in found] == ["a/1", "a/2", "b/1", "b/2"]
        for k, run in enumerate(found):
            check(run, list(range(20)), [2 * k + 1 + 3 / (epoch + 1) for epoch in range(20)])


@pytest.mark.parametrize("column", ["timestamp", "time", "created_at"])
def test_times_of_a_frame_are_its_clock(column: str) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    times = arrow.array([1_700_000_000 + 5 * i for i in range(6)], arrow.timestamp("s"))
    frame = {"step": list(range(6)), "loss": [9.0 - i for i in range(6)], column: times}
    (run,) = gp.read_traces(arrow.table(frame))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [5.0 * i for i in range(6)]
    text = arrow.table(frame | {column: ["noon"] * 6} if column != "timestamp" else frame)
    assert len(gp.read_traces(text)) == 1  # words in such a column are no error


def test_steps_that_are_a_range_in_the_index_of_pandas_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    index = pandas.RangeIndex(100, 4001, 100, name="step")
    frame = pandas.DataFrame({"loss": 3.0 / np.arange(1, 41)}, index=index)
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.parquet"):
        (trace,) = gp.read_traces(source)
        assert trace.step.tolist() == list(range(100, 4001, 100))
        assert trace.notes == ()
    (part,) = gp.read_traces(frame[10:20])
    assert part.step.tolist() == list(range(1100, 2001, 100))


@pytest.mark.parametrize(
    ("index", "steps"),
    [
        (range(100, 4001, 100), range(100, 4001, 100)),
        ([*range(5, 44), 60], [*range(5, 44), 60]),
        (None, range(1, 41)),  # it numbers rows
        (range(40, 0, -1), range(1, 41)),
        ([7] * 40, range(1, 41)),
        (["a"] * 40, range(1, 41)),
    ],
)
def test_an_index_of_pandas_without_a_name_is_the_step_where_it_increases(
    tmp_path: Path, index: Any, steps: Iterable[int]
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"loss": 3.0 / np.arange(1, 41)}, index=index)
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.parquet"):
        (trace,) = gp.read_traces(source)
        assert trace.step.tolist() == list(steps)
    counted = frame.assign(step=np.arange(1, 41) * 8)
    assert gp.read_traces(counted)[0].step.tolist() == (8 * np.arange(1, 41)).tolist()
    two = frame.assign(run=["a"] * 20 + ["b"] * 20)  # of several runs it numbers rows
    assert [run.step.tolist() for run in gp.read_traces(two)] == [list(range(1, 21))] * 2


def test_an_open_file_is_no_list_of_paths(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n1,2\n2,1\n")
    for mode in ("r", "rb"):
        with (tmp_path / "a.csv").open(mode) as file:
            kind = type(file).__name__
            said = f"read_traces: path is an open file ({kind}), expected its path"
            with pytest.raises(gp.InputError, match=re.escape(said)):
                gp.read_traces(file)


def test_parquet_wide_and_long(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

    def written(name: str, columns: dict[str, Any]) -> Path:
        parquet.write_table(arrow.table(columns), tmp_path / name)
        return tmp_path / name

    wide = written("wide.parquet", {"step": [1, 2], "loss": [3.0, 2.0]})
    (run,) = gp.read_traces(wide)
    check(run, [1, 2], [3, 2])
    assert run.name == "wide.parquet"
    ours = written("ours.parquet", {"curve": ["x", "x"], "step": [1, 2], "value": [3.0, 2.0]})
    (run,) = gp.read_traces(ours)
    check(run, [1, 2], [3, 2])
    assert (run.name, run.notes) == ("x", ())
    # What Neptune's exporter writes: decimal steps, times of day, an attribute a row.
    stamps = arrow.array([0, 1_500_000, 1_500_000, None], arrow.timestamp("us", "UTC"))
    neptune = {
        "project_id": ["p"] * 4,
        "run_id": ["R-1"] * 4,
        "attribute_path": ["train/loss", "train/loss", "lr", "name"],
        "step": arrow.array([1, 2, 2, None], arrow.float64()).cast(arrow.decimal128(18, 6)),
        "timestamp": stamps,
        "float_value": [3.0, 2.0, 0.5, None],
    }
    (run,) = gp.read_traces(written("neptune.parquet", neptune))
    check(run, [1, 2], [3, 2], [NAN, 0.5])
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [0, 1.5]
    assert [run.name for run in gp.read_traces(tmp_path)] == ["R-1", "x", "wide.parquet"]


@pytest.mark.parametrize(
    ("columns", "metric", "kind", "message"),
    [
        ({"step": ["x"], "loss": [1.0]}, None, gp.IoError, "column 'step' holds text, not numbers"),
        ({"step": [1], "loss": ["a"]}, "loss", gp.IoError, "column 'loss' holds text, not numbers"),
        ({"step": [1], "loss": ["a"]}, None, gp.IoError, "no metric was logged: column 'loss' hol"),
        (
            {"step": ["1"], "loss": ["2"], "run": ["a"]},
            None,
            gp.IoError,
            "no metric was logged: columns 'step', 'loss' hold text, not numbers",
        ),
        ({"step": [1], "loss": [None]}, None, gp.IoError, "data frame: no metric was logged$"),
        ({"step": [1], "a": [1.0], "b": [1.0]}, None, gp.IoError, "say metric= one of a, b"),
        ({"step": [1.0, NAN], "loss": [1.0, 1.0]}, None, gp.IoError, "a step of 'loss' is not a"),
    ],
)
def test_a_frame_that_holds_no_curve(
    columns: dict[str, Any], metric: str | None, kind: type[Exception], message: str
) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with pytest.raises(kind, match=message):
        gp.read_traces(arrow.table(columns), metric=metric)


@pytest.mark.parametrize("column", ["run", "trial"])
def test_a_row_without_a_run_is_of_the_run_above_it(column: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    csv = pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")
    columns = {"step": [1, 2, 3, 1, 2, 3], "loss": [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]}

    def runs(names: list[str | None]) -> list[tuple[str, list[float]]]:
        table = arrow.table({**columns, column: arrow.array(names, arrow.string())})
        csv.write_csv(table, tmp_path / "runs.csv")
        read, of_file = gp.read_traces(table), gp.read_traces(tmp_path / "runs.csv")
        assert [run.loss.tolist() for run in read] == [run.loss.tolist() for run in of_file]
        return [(run.name, run.loss.tolist()) for run in read]

    two = [("a", [6, 5, 4]), ("b", [3, 2, 1])]
    assert runs(["a", None, "a", "b", None, None]) == two
    assert runs([None, None, "a", "b", None, "b"]) == two
    assert runs([None] * 6) == [("", [3, 2, 1])]


def test_other_objects_are_refused() -> None:
    for thing in (3, {"step": [1]}, b"path"):
        with pytest.raises(gp.InputError, match="expected a path, an address, a data frame"):
            gp.read_traces(thing)
    for several, name in (
        (np.ones((2, 2)), "ndarray of float64"),
        ([{"step": 1, "loss": 2}], "list of dict"),
        ((3,), "tuple of int"),
    ):
        with pytest.raises(gp.InputError, match=f"^read_traces: path has type {name}, expected"):
            gp.read_traces(several)
