# SPDX-License-Identifier: Apache-2.0
"""Readers of the folders and databases of DVCLive and MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from log_files import INF, NAN, check, one, write

import glidepath as gp
from glidepath.readers import _sqlite

# ------------------------------------------------------------------------------ DVCLive and MLflow


def test_dvclive_folder_is_one_run_with_nested_names(tmp_path: Path) -> None:
    metrics = tmp_path / "exp" / "dvclive" / "plots" / "metrics"
    text = "timestamp\tstep\tloss\n1700000000000\t0\t3.0\n1700000002500\t1\t2.0\n"
    write(metrics / "train" / "loss.tsv", text)
    write(metrics / "eval" / "loss.tsv", "step\tloss\n0\t3.5\n")
    write(metrics / "lr.tsv", "step\tlr\n0\t0.1\n1\t0.2\n")
    (run,) = gp.read_traces(tmp_path)
    check(run, [0, 1], [3, 2], [0.1, 0.2])
    assert run.name == "exp/dvclive"
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [0, 2.5]
    check(one(tmp_path, "eval/loss"), [0], [3.5], [0.1])
    check(one(metrics / "train" / "loss.tsv"), [0, 1], [3, 2])


def test_mlflow_file_store_names_runs_by_id(tmp_path: Path) -> None:
    for run, first in (("aa11", 3.0), ("bb22", 4.0)):
        folder = tmp_path / "mlruns" / "0" / run
        write(folder / "meta.yaml", f"run_id: {run}\nlifecycle_stage: active\n")
        lines = f"1588459520000 {first} 0\n1588459521500 2.5 10\n"
        write(folder / "metrics" / "train" / "loss", lines)
        write(folder / "metrics" / "Test Accuracy", "1588459522000 0.75 10\n")
        write(folder / "params" / "lr", "0.1")
    runs = gp.read_traces(tmp_path / "mlruns")
    assert [run.name for run in runs] == ["aa11", "bb22"]
    check(runs[1], [0, 10], [4, 2.5])
    assert runs[0].wall_seconds is not None
    assert runs[0].wall_seconds.tolist() == [0, 1.5]
    accuracy = gp.read_traces(tmp_path, metric="Test Accuracy")
    assert [run.direction for run in accuracy] == ["max", "max"]
    metric = tmp_path / "mlruns" / "0" / "aa11" / "metrics" / "train" / "loss"
    check(one(metric), [0, 10], [3, 2.5])
    for step in ("zero", "9" * 400, "1 2"):
        write(metric, f"1588459520000 3.0 0\n1588459520000 3.0 {step}\n")
        with pytest.raises(gp.IoError, match=r"loss:2: not 'milliseconds value step'"):
            gp.read_traces(metric)


def test_metrics_of_mlflow_that_name_a_data_set_or_are_of_a_model_refuse_no_run(
    tmp_path: Path,
) -> None:
    run = tmp_path / "mlruns" / "0" / "aa11"
    write(run / "meta.yaml", "run_id: aa11\nlifecycle_stage: active\n")
    write(
        run / "metrics" / "loss",
        "1588459520000 3.0 0 train 4f1c2\n1588459521500 2.5 10 train 4f1c2\n",
    )
    model = tmp_path / "mlruns" / "0" / "models" / "m-9c1d"
    write(model / "meta.yaml", "model_id: m-9c1d\n")
    write(model / "metrics" / "loss", "1588459521500 2.5 10 aa11\n")
    (found,) = gp.read_traces(tmp_path)
    assert found.name == "aa11"
    check(found, [0, 10], [3, 2.5])
    write(run / "metrics" / "loss", "1588459520000 3.0 0\n1588459520000 3.0 1 2\n")
    with pytest.raises(gp.IoError, match=r"loss:2: not 'milliseconds value step'"):
        gp.read_traces(tmp_path)


def test_a_run_that_was_deleted_is_not_read_from_the_file_store_of_mlflow(tmp_path: Path) -> None:
    store = tmp_path / "mlruns"
    for run, stage in (("0/aa11", "active"), ("0/bb22", "deleted"), (".trash/1/cc33", "active")):
        write(store / run / "meta.yaml", f"lifecycle_stage: {stage}\nrun_id: {run[-4:]}\n")
        write(store / run / "metrics" / "loss", "1588459520000 3.0 0\n1588459521500 2.5 10\n")
    assert [run.name for run in gp.read_traces(store)] == ["aa11"]
    with pytest.raises(gp.IoError, match="bb22: a run of MLflow that was deleted"):
        gp.read_traces(store / "0" / "bb22")


def test_mlflow_database_gives_every_run_that_is_not_deleted(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, lifecycle_stage VARCHAR(20), "
            "start_time BIGINT)"
        )
        database.execute(
            "CREATE TABLE metrics (key VARCHAR(250), value DOUBLE, timestamp BIGINT, "
            "run_uuid VARCHAR(32), step BIGINT DEFAULT 0, is_nan BOOLEAN DEFAULT 0, "
            "PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan))"
        )
        database.executemany(
            "INSERT INTO runs VALUES (?, ?, ?)",
            [("late", "active", 9), ("early", "active", 5), ("gone", "deleted", 1)],
        )
        rows = [("loss", 3.0, 1000, "early", 1, 0), ("loss", 0.0, 3000, "early", 2, 1)]
        rows += [("loss", 1.7976931348623157e308, 4000, "early", 3, 0)]
        rows += [("loss", 1.0, 1000, "gone", 1, 0), ("loss", 2.0, 9000, "late", 1, 0)]
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    runs = gp.read_traces(file)
    assert [run.name for run in runs] == ["early", "late"]
    check(runs[0], [1, 2, 3], [3, NAN, INF])
    assert runs[0].wall_seconds is not None
    assert runs[0].wall_seconds.tolist() == [0, 2, 3]
    with pytest.raises(gp.IoError, match="no metric 'acc', only loss"):
        gp.read_traces(file, metric="acc")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE t (x)")
    with pytest.raises(gp.IoError, match=r"other\.db: not a database of MLflow"):
        gp.read_traces(other)


def test_a_view_is_no_table_as_it_may_have_no_end(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
        database.execute("CREATE TABLE runs (run_uuid, lifecycle_stage, start_time)")
        database.execute("INSERT INTO runs VALUES ('a', 'active', 1)")
        database.execute(
            f"CREATE VIEW metrics AS {numbers} 'a' AS run_uuid, 'loss' AS key, 1 AS value, "
            "i AS timestamp, i AS step, 0 AS is_nan, i AS rowid FROM n"
        )
        database.commit()
    with pytest.raises(gp.IoError, match="not a database of MLflow: no such table: metrics"):
        gp.read_traces(tmp_path / "mlflow.db")


def test_a_query_may_take_time_in_proportion_to_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "_STEPS", 0)
    file = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE runs (run_uuid, lifecycle_stage, start_time)")
        database.execute("INSERT INTO runs VALUES ('a', 'active', 1)")
        columns = "run_uuid, key, value, timestamp, step, is_nan"
        database.execute(f"CREATE TABLE metrics ({columns})")
        points = [(1 / step, step, step) for step in range(1, 3001)]
        database.executemany("INSERT INTO metrics VALUES ('a', 'loss', ?, ?, ?, 0)", points)
        database.commit()
        assert len(one(file)) == 3000
        # Now each of the rows belongs to 3,000 runs of one name: nine million rows of a join.
        database.execute("INSERT INTO runs SELECT 'a', 'active', 1 FROM metrics")
        database.commit()
    with pytest.raises(gp.IoError, match="not a database of MLflow: interrupted"):
        gp.read_traces(file)


def test_the_file_store_says_where_the_run_will_end(tmp_path: Path) -> None:
    metrics = tmp_path / "0" / "abc" / "metrics"
    write(metrics / "loss", "1700000000000 3.0 10\n1700000001000 2.0 20\n")
    write(tmp_path / "0" / "abc" / "params" / "max_steps", "500")
    assert one(metrics / "loss").planned_steps == 500
    write(tmp_path / "0" / "abc" / "params" / "max_steps", "-1")  # the Trainer's for "by epochs"
    assert one(metrics / "loss").planned_steps is None


def test_whatever_a_reader_meets_is_an_io_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path, metric: str | None) -> None:
        raise AttributeError("such as of a library")

    monkeypatch.setattr("glidepath.readers.wide_csv.read", broken)
    with pytest.raises(gp.IoError, match=r"a\.csv: AttributeError: such as of a library"):
        gp.read_traces(write(tmp_path / "a.csv", "step,loss\n1,2\n"))
    with pytest.raises(gp.InputError, match=r"http://\[::1/: Invalid IPv6 URL"):
        gp.read_traces("http://[::1/")


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_fault_of_a_reader_does_not_pass_for_another_format(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_with(error: Exception) -> None:
        def recognises(path: Path, head: bytes) -> bool:
            raise error

        monkeypatch.setattr("glidepath.readers.wandb_csv.recognises", recognises)

    file = write(tmp_path / "a.csv", "step,loss\n1,2\n")
    log = file if place == "file" else tmp_path
    fail_with(gp.IoError("of damage"))
    assert len(gp.read_traces(log)) == 1
    fail_with(TypeError("of our own"))
    with pytest.raises(gp.IoError, match=r"a\.csv: TypeError: of our own"):
        gp.read_traces(log)


def test_no_error_tells_the_login_of_an_address() -> None:
    with pytest.raises(gp.IoError) as refused:
        gp.read_traces("http://user:SECRET@127.0.0.1:9/?api_key=SECRET")
    assert str(refused.value) == "http://127.0.0.1:9/: Connection refused"
