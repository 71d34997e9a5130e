# SPDX-License-Identifier: Apache-2.0
"""Readers of other tools' logs: samples in each tool's layout, repairs, and what is refused."""

from __future__ import annotations

import gzip
import json
import math
import pickle
import re
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from wire import field, record, varint

import glidepath as gp

NAN, INF = math.nan, math.inf


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def one(path: Path, metric: str | None = None) -> gp.Trace:
    (run,) = gp.read_traces(path, metric=metric)
    return run


def check(
    run: gp.Trace, step: list[float], loss: list[float], lr: list[float] | None = None
) -> None:
    np.testing.assert_array_equal(run.step, step)
    np.testing.assert_array_equal(run.loss, loss)
    if lr is None:
        assert run.lr is None
    else:
        assert run.lr is not None
        np.testing.assert_array_equal(run.lr, lr)


# ------------------------------------------------------------------------- the trace's own notes


def test_notes_are_told_and_kept_but_do_not_make_traces_differ() -> None:
    run = gp.Trace([1, 2], [3, 2], notes=["one", "two"])
    assert run == gp.Trace([1, 2], [3, 2])
    assert run.notes == ("one", "two")
    assert run.until(1).notes == gp.clean(run).trace.notes == run.notes
    assert pickle.loads(pickle.dumps(run)).notes == run.notes
    assert repr(run) == "<Trace: 2 points, steps 1 to 2, loss 3 to 2; one; two>"


def test_import_brings_no_reader() -> None:
    code = "import sys, glidepath; print(*[m for m in sys.modules if 'glidepath.readers' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --------------------------------------------------------------------------------- trainer_state


def trainer_state(path: Path, history: list[dict[str, object]]) -> Path:
    # Python's json writes a bare NaN, as the Trainer does.
    state = {"best_metric": None, "global_step": 30, "log_history": history, "max_steps": 99}
    return write(path, json.dumps(state, indent=2))


def test_trainer_state_gives_loss_lr_and_the_other_metrics_by_name(tmp_path: Path) -> None:
    file = trainer_state(
        tmp_path / "trainer_state.json",
        [
            {"epoch": 0.1, "grad_norm": 1.5, "learning_rate": 1e-3, "loss": 3.0, "step": 10},
            {"epoch": 0.2, "grad_norm": 1.5, "learning_rate": 5e-4, "loss": 2.0, "step": 20},
            {"epoch": 0.2, "eval_loss": 2.25, "eval_accuracy": 0.5, "step": 20},
            {"epoch": 0.2, "predict_loss": 2.5, "predict_runtime": 7.0},
            {"epoch": 0.3, "total_flos": 1e9, "train_loss": 2.5, "train_runtime": 9.0, "step": 30},
        ],
    )
    run = one(file)
    check(run, [10, 20], [3, 2], [1e-3, 5e-4])
    assert (run.name, run.direction, run.notes) == ("trainer_state.json", "min", ())
    check(one(file, "eval_loss"), [20], [2.25], [5e-4])
    assert one(file, "eval_accuracy").direction == "max"
    check(one(file, "train_loss"), [30], [2.5])
    with pytest.raises(gp.IoError, match=r"no metric 'f1', only grad_norm, .*loss, eval_loss"):
        one(file, "f1")


def test_trainer_state_of_a_diverged_run_is_masked_to_nan(tmp_path: Path) -> None:
    file = trainer_state(
        tmp_path / "trainer_state.json",
        [
            {"grad_norm": 1.0, "loss": 3.0, "step": 10},
            {"grad_norm": NAN, "loss": 0.0, "step": 20},
            {"grad_norm": 0.5, "loss": 0.0, "step": 30},  # a loss that is truly 0 stays
            {"eval_loss": NAN, "step": 30},
        ],
    )
    run = one(file)
    check(run, [10, 20, 30], [3, NAN, 0])
    assert run.notes == ("loss 0 beside a NaN grad_norm in 1 row: read as NaN",)
    check(one(file, "eval_loss"), [30], [NAN])


def test_a_loss_that_falls_to_zero_at_once_has_diverged_where_no_gradient_norm_tells(
    tmp_path: Path,
) -> None:
    def losses(*values: float) -> gp.Trace:
        rows: list[dict[str, object]] = [
            {"loss": loss, "step": 10 * i} for i, loss in enumerate(values, 1)
        ]
        return one(trainer_state(tmp_path / "trainer_state.json", rows))

    run = losses(2.5, 2.25, 0.0, 0.0)
    check(run, [10, 20, 30, 40], [2.5, 2.25, NAN, NAN])
    assert run.notes == ("loss 0 after 2.25 in 2 rows: read as NaN",)
    run = losses(0.5, 0.03, 0.0002, 0.0)  # rounded to four digits
    check(run, [10, 20, 30, 40], [0.5, 0.03, 0.0002, 0])
    assert run.notes == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"log_history": [\n{"loss": 1.0, "step"', r"trainer_state\.json:3: "),
        ('{"log_history": {}}', "'log_history' is not a list"),
        ('{"log_history": [{"loss": 1.0}]}', r"log_history\[0\] has no step"),
        ('{"log_history": [{"loss": 1.0, "step": NaN}]}', r"log_history\[0\] has no step"),
        ('{"log_history": [3]}', r"log_history\[0\] is not an object"),
        ('{"log_history": []}', "no metric was logged"),
    ],
)
def test_a_broken_trainer_state_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(gp.IoError, match=message):
        gp.read_traces(write(tmp_path / "trainer_state.json", text))


# ------------------------------------------------------------------------------------ JSON lines


def test_llamafactory_json_lines_with_time_and_a_cut_last_line(tmp_path: Path) -> None:
    rows = [
        {"current_steps": 5, "total_steps": 9, "loss": 2.0, "eval_loss": None}
        | {"learning_rate": 1e-4, "epoch": 0.1, "elapsed_time": "0:01:40"},
        {"current_steps": 10, "total_steps": 9, "loss": 1.5, "eval_loss": None}
        | {"learning_rate": 2e-4, "epoch": 0.2, "elapsed_time": "1 day, 0:00:01"},
    ]
    whole = "".join(json.dumps(row) + "\n" for row in rows)
    run = one(write(tmp_path / "trainer_log.jsonl", whole))
    check(run, [5, 10], [2, 1.5], [1e-4, 2e-4])
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [100, 86401]
    cut = one(write(tmp_path / "cut.jsonl", whole + '{"current_steps": 15, "lo'))
    assert cut.loss.tolist() == [2, 1.5]
    assert cut.notes == ("the last line is cut: left out",)
    broken = write(tmp_path / "broken.jsonl", whole + "{oops\n" + whole)
    with pytest.raises(gp.IoError, match=r"broken\.jsonl:3: "):
        gp.read_traces(broken)


def test_json_lines_may_be_nested(tmp_path: Path) -> None:
    text = '{"step": 1, "train": {"loss": 3}}\n{"step": 2, "train": {"loss": NaN}}\n'
    check(one(write(tmp_path / "a.jsonl", text)), [1, 2], [3, NAN])


# ---------------------------------------------------------------------------------------- tables


def test_lightning_metrics_keep_train_and_validation_apart(tmp_path: Path) -> None:
    text = (
        "epoch,lr-Adam,step,train_loss,val_loss\n0,0.1,49,,\n0,,49,3.0,\n0,,50,,3.5\n1,,99,nan,\n"
    )
    file = write(tmp_path / "metrics.csv", text)
    check(one(file), [49, 99], [3, NAN], [0.1, NAN])
    check(one(file, "val_loss"), [50], [3.5])


def test_ultralytics_columns_are_padded(tmp_path: Path) -> None:
    text = (
        "   epoch,   train/box_loss,   metrics/mAP50(B),   val/box_loss,   lr/pg0\n"
        "       1,              4.5,               0.01,            4.0,      0.1\n"
        "       2,              3.5,               0.02,            3.0,     0.05\n"
    )
    run = one(write(tmp_path / "results.csv", text))
    check(run, [1, 2], [4.5, 3.5], [0.1, 0.05])
    assert run.notes == ("no metric is called a training loss: 'train/box_loss' was read",)
    assert one(tmp_path / "results.csv", "metrics/mAP50(B)").direction == "max"


def test_keras_rows_without_an_epoch_are_numbered(tmp_path: Path) -> None:
    run = one(write(tmp_path / "a.csv", "loss,acc,val_loss\n2,0.5,3\n1,0.6,2\n"))
    check(run, [1, 2], [2, 1])
    assert run.notes == ("no column of steps: rows are numbered from 1",)


def test_algoperf_measurements_have_mostly_empty_cells(tmp_path: Path) -> None:
    text = "global_step,loss,lr,train/loss,total_duration\n0,7,0,,\n1,,,6.5,300\n100,5,0.1,,\n"
    file = write(tmp_path / "measurements.csv", text)
    check(one(file), [0, 100], [7, 5], [0, 0.1])
    run = one(file, "train/loss")
    assert run.wall_seconds is not None
    assert (run.loss.tolist(), run.wall_seconds.tolist()) == ([6.5], [300])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch,loss\n1,2\n2,oops\n", r"a\.csv:3: loss 'oops' is not a number"),
        ("epoch,loss\nx,2\n", r"a\.csv:2: epoch 'x' is not a finite number"),
        ("epoch,loss\n1,2\n2\n3,1\n", r"a\.csv:3: 1 fields where the header has 2"),
        ("epoch,loss\n1,2\n2\n", r"a\.csv:3: 1 fields where the header has 2"),
        ("epoch,loss\n1,2,3\n", r"a\.csv:2: 3 fields where the header has 2"),
        ("epoch,loss,loss\n1,2,3\n", r"a\.csv:1: two columns are called 'loss'"),
        ("epoch,loss\n", "no metric was logged"),
        ("epoch,acc,f1\n1,2,3\n", "none of the metrics is a loss; say metric= one of acc, f1"),
        (
            "placement,local_bsz,step_time,sync_time\n1,32,0.1,0.2\n",
            "step times by placement, not the log of a run",
        ),
    ],
)
def test_a_broken_table_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(gp.IoError, match=message):
        gp.read_traces(write(tmp_path / "a.csv", text))


def test_a_table_whose_writer_was_killed_loses_its_last_row_only(tmp_path: Path) -> None:
    run = one(write(tmp_path / "a.csv", "epoch,loss,acc\n1,2,0.5\n2,1"))
    check(run, [1], [2])
    assert run.notes == ("the last row is cut: left out",)


def test_a_table_may_be_gzip(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv.gz").write_bytes(gzip.compress(b"step,loss\n1,2\n"))
    check(one(tmp_path / "metrics.csv.gz"), [1], [2])
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"step,loss\n" + b"1,2\n" * 99)[:-12])
    with pytest.raises(gp.IoError, match=r"cut\.csv\.gz"):
        gp.read_traces(tmp_path / "cut.csv.gz")


def test_a_name_that_does_not_say_which_way_is_better_leaves_it_to_the_values(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{i},{i / 9},{9 - i},{i / 9},{i}\n" for i in range(8))
    file = write(tmp_path / "a.csv", "step,score,distance,val_loss,error\n" + rows)
    up, down = one(file, "score"), one(file, "distance")
    assert (up.direction, down.direction) == ("max", "min")
    assert up.notes == (
        "the name 'score' does not say which way is better: it went from 0.05556 to 0.7222, "
        "so high values are",
    )
    assert down.notes[0].endswith("so low values are")
    for name in ("val_loss", "error"):  # these say it, whatever the run did
        assert (one(file, name).direction, one(file, name).notes) == ("min", ())


# -------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize(
    ("steps", "kept", "note"),
    [
        ([1, 2, 3, 4, 3, 4, 5], [0, 1, 4, 5, 6], "restarted once, at step 3: 2 earlier rows"),
        ([1, 2, 3, 1, 2], [3, 4], "restarted once, at step 1: 3 earlier rows"),
        ([1, 3, 5, 4, 6, 2, 7], [0, 5, 6], "restarted 2 times, at step 4, 2: 4 earlier rows"),
        ([1, 2, 2, 3], [0, 2, 3], "1 repeated step: the later row was kept"),
    ],
)
def test_after_a_restart_the_later_rows_win_and_it_is_told(
    tmp_path: Path, steps: list[int], kept: list[int], note: str
) -> None:
    rows = "".join(f"{step},{10 + i}\n" for i, step in enumerate(steps))
    run = one(write(tmp_path / "a.csv", "step,loss\n" + rows))
    check(run, [steps[i] for i in kept], [10 + i for i in kept])
    (told,) = run.notes
    assert told.startswith(note)


# ----------------------------------------------------------------------------- DVCLive and MLflow


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


# -------------------------------------------------------------------------------------- text logs


def test_megatron_lines_among_others(tmp_path: Path) -> None:
    text = (
        "  loss_scale ...................... None\n"
        * 5000
        + "511: iteration        1/    1000 | elapsed time per iteration (ms): 123742.4 | "
        "learning rate: 1.875E-05 | lm loss: 1.252221E+01 | loss scale: 1024.0 | "
        "number of nan iterations:   0 |\n"
        " iteration        2/    1000 | consumed samples:           8 | learning rate: 3.75E-05 | "
        "global batch size:     4 | lm loss: nan | grad norm: 16.9 |\n"
        " validation loss at iteration 2 | lm loss value: 8.0E+00 | lm loss PPL: 3.0E+03 | \n"
    )
    file = write(tmp_path / "train.out", text)
    check(one(file), [1, 2], [12.52221, NAN], [1.875e-5, 3.75e-5])
    check(one(file, "validation lm loss"), [2], [8], [3.75e-5])


@pytest.mark.parametrize(
    ("text", "train", "validation"),
    [
        (
            "number of parameters: 10.65M\nstep 0: train loss 4.25, val loss 4.5\n"
            "iter 0: loss 4.0, time 120.5ms, mfu -100.00%\niter 10: loss 3.0, time 99ms, mfu 4%\n",
            ([0, 10], [4, 3], None),
            ("val loss", [0], [4.5]),
        ),
        (
            "iter 0: loss 4.0, time 120.5ms, mfu -100.00%\niter 10: loss nan, time 99ms, mfu 4%\n",
            ([0, 10], [4, NAN], None),
            None,
        ),
        (
            "s:0 tel:11.0\ns:0 trl:10.5 lr:0.5 norm:15.37\ns:1 trl:10.0 lr:0.25 norm:1\n"
            "s:1 eval:0.25\n",
            ([0, 1], [10.5, 10], [0.5, 0.25]),
            ("val_loss", [0], [11]),
        ),
        (
            "import torch\nstep:0/62 val_loss:10.5 train_time:285ms step_avg:nanms\n"
            "step:1/62 train_loss:9.5 train_time:74701ms step_avg:nanms\n",
            ([1], [9.5], None),
            ("val_loss", [0], [10.5]),
        ),
        (
            "step    1/19560 | loss 11.5 (+nanz)| norm 15.3 (+nanz)| lr 1.00e-06 | 1234.5 ms | x\n",
            ([1], [11.5], [1e-6]),
            None,
        ),
        (
            "[default0]:steps: 10 loss: 9.0 iter time (s): 1.2 samples/sec: 3.4\n",
            ([10], [9], None),
            None,
        ),
    ],
    ids=[
        "nanogpt",
        "nanogpt without its head",
        "llm.c file",
        "modded-nanogpt",
        "llm.c console",
        "deepspeed",
    ],
)
def test_text_logs(
    tmp_path: Path,
    text: str,
    train: tuple[list[float], list[float], list[float] | None],
    validation: tuple[str, list[float], list[float]] | None,
) -> None:
    file = write(tmp_path / "main.log", text)
    check(one(file), *train)
    if validation is not None:
        metric, step, loss = validation
        run = one(file, metric)
        assert (run.step.tolist(), run.loss.tolist()) == (step, loss)


def test_a_line_of_many_words_is_read_in_no_time(tmp_path: Path) -> None:
    words = "word " * 20_000 + " " * 20_000 + "x" * 100_000
    file = write(tmp_path / "a.log", f"step:1/9 train_loss:3.5 {words} lr:0.5\n")
    began = time.process_time()
    check(one(file), [1], [3.5], [0.5])
    assert time.process_time() - began < 5  # hours, were it quadratic


def test_a_step_too_large_for_a_number_is_an_io_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.log", f"s:1 trl:3.5\ns:{'9' * 400} trl:3.25\n")
    with pytest.raises(gp.IoError, match="a step of 'train_loss' is not a finite number"):
        gp.read_traces(file)


# ------------------------------------------------------------------------------------ TensorBoard


def event(wall: float, step: int, tag: str, value: bytes) -> bytes:
    summary = field(1, field(1, tag.encode()) + value)
    return record(b"\x09" + struct.pack("<d", wall) + b"\x10" + varint(step) + field(5, summary))


def simple(value: float) -> bytes:
    return b"\x15" + struct.pack("<f", value)


VERSION = record(b"\x09" + struct.pack("<d", 100.0) + field(3, b"brain.Event:2"))


def test_tensorboard_reads_simple_values_and_tensors(tmp_path: Path) -> None:
    plugin = field(9, field(1, field(1, b"scalars")))  # metadata
    packed = field(8, b"\x08\x01" + field(2, b"") + field(5, struct.pack("<f", 2.5)))
    content = field(8, b"\x08\x02" + field(4, struct.pack("<d", 1.25)))
    text = field(8, b"\x08\x07" + field(2, b"\x12\x02\x08\x01") + field(8, b"hello"))
    file = tmp_path / "events.out.tfevents.1.host"
    file.write_bytes(
        VERSION
        + event(100, 0, "args/text_summary", text)
        + event(101, 1, "train/loss", simple(4))
        + event(101, 1, "train/learning_rate", simple(0.5))
        + event(103, 300, "train/loss", plugin + packed)
        + event(104, 1 << 40, "train/loss", content + plugin)
    )
    run = one(file)
    check(run, [1, 300, 1 << 40], [4, 2.5, 1.25], [0.5, NAN, NAN])
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [0, 2, 3]
    with pytest.raises(gp.IoError, match="no metric 'x', only train/loss, train/learning_rate"):
        one(file, "x")


def test_tensorboard_folder_is_a_run_where_the_later_file_wins(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    for stamp, rows in ((1, [(1, 9.0), (2, 8.0), (3, 7.0)]), (2, [(2, 6.0), (4, 5.0)])):
        events = b"".join(event(100 + s, s, "loss", simple(v)) for s, v in rows)
        (run / f"events.out.tfevents.{stamp}.host").write_bytes(VERSION + events)
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "empty" / "events.out.tfevents.3.host").write_bytes(VERSION)
    found = one(tmp_path)
    check(found, [1, 2, 4], [9, 6, 5])
    assert found.name == "runs/a"
    assert found.notes == ("restarted once, at step 2: 2 earlier rows gave way to later ones",)
    assert one(run).name == "a"


def test_tensorboard_file_that_is_cut_or_damaged(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1.host"
    whole = VERSION + event(101, 1, "loss", simple(4))
    file.write_bytes(whole + event(102, 2, "loss", simple(3))[:-5])
    run = one(file)
    check(run, [1], [4])
    assert "ends within a record" in run.notes[0]
    file.write_bytes(whole + b"\xff" * 40)
    with pytest.raises(gp.IoError, match=f"damaged record at byte {len(whole)}"):
        one(file)
    file.write_bytes(VERSION + record(b"\x2a\xff\xff"))
    with pytest.raises(gp.IoError, match=f"damaged record at byte {len(VERSION)}"):
        one(file)
    file.write_bytes(VERSION)
    with pytest.raises(gp.IoError, match="no metric was logged"):
        one(file)


# --------------------------------------------------------------------- refusals, folders, formats


def test_a_summary_of_wandb_is_refused_with_what_to_do(tmp_path: Path) -> None:
    summary = write(tmp_path / "wandb-summary.json", '{"loss": 1.0, "_step": 7, "_wandb": {}}')
    with pytest.raises(gp.IoError, match=r"only the last value of each metric.*run-\*\.wandb"):
        gp.read_traces(summary)
    with pytest.raises(gp.IoError, match=r"no traces in this folder.*only the last value"):
        gp.read_traces(tmp_path)


def test_a_folder_of_several_tools_names_runs_by_their_path(tmp_path: Path) -> None:
    trainer_state(tmp_path / "hf" / "trainer_state.json", [{"loss": 3.0, "step": 1}])
    write(tmp_path / "keras" / "log.csv", "epoch,loss\n0,2\n")
    write(tmp_path / "long.csv", "curve,step,value\nmine,1,5\n")
    write(tmp_path / "notes.md", "iter 1: loss 2.0\n")
    write(tmp_path / "config.json", '{"hidden": 3}')
    runs = gp.read_traces(tmp_path)
    assert [run.name for run in runs] == ["hf/trainer_state.json", "keras/log.csv", "mine"]
    assert [run.name for run in gp.read_traces(tmp_path, format="table")] == ["keras/log.csv"]


def test_an_unknown_file_is_refused_with_the_formats(tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match=r"notes\.txt: a log of no known format .formats: csv, "):
        gp.read_traces(write(tmp_path / "notes.txt", "nothing of ours\n"))


FORMATS = (
    "csv wandb wandb_csv wandb_summary trainer_state jsonl tensorboard mlflow trackio "
    "mlflow_sqlite parquet dvclive table text"
)


@pytest.mark.parametrize("name", FORMATS.split())
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"\xff" * 99, b"{}\n", b'"a\n1,2\rx'])
def test_a_format_forced_on_garbage_is_an_io_error(
    tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / "garbage"
    file.write_bytes(content)
    with pytest.raises(gp.IoError, match="garbage"):
        gp.read_traces(file, format=name)
    with pytest.raises(gp.IoError, match="garbage"):
        gp.read_traces(file)
    with pytest.raises(gp.IoError, match="none"):
        gp.read_traces(tmp_path / "none", format=name)


# What each shared file that is not read must say; all others must be read.
REFUSED: list[tuple[Callable[[Path], bool], str]] = [
    (lambda file: file.name.endswith("wandb-summary.json"), "only the last value of each metric"),
    (
        lambda file: "placements" in file.name or "scalability" in file.name,
        "step times by placement",
    ),
    (lambda file: file.name.endswith("8136.0"), "no metric was logged"),
    (lambda file: file.name in ("SOURCES.md", "meta.yaml"), "a log of no known format"),
    (lambda file: "params" in file.parts, "a log of no known format"),
]


def test_every_shared_log_is_read_or_refused_with_the_right_sentence(shared: Path) -> None:
    files = [file for file in sorted((shared / "data" / "logs").rglob("*")) if file.is_file()]
    assert len(files) >= 40
    for file in files:
        sentence = next((text for judge, text in REFUSED if judge(file)), None)
        if sentence is not None:
            with pytest.raises(gp.IoError, match=re.escape(sentence)):
                gp.read_traces(file)
            continue
        (run,) = gp.read_traces(file)
        assert len(run) > 0, file
        assert np.isfinite(run.loss).all(), file


def test_a_metric_of_the_shared_logs_that_has_no_name_is_taken_as_it_runs(shared: Path) -> None:
    folder = shared / "data" / "logs" / "pollux-trace"
    assert one(folder / "cifar10.validation-128.csv").direction == "max"  # an accuracy
    assert one(folder / "deepspeech2.validation-20.csv").direction == "min"  # a word error rate


@pytest.mark.parametrize(
    ("file", "points", "first", "last", "has_lr"),
    [
        ("hf-trainer-state/mt5-summarize.trainer_state.json", 700, 25.5062, None, True),
        ("hf-trainer-state/whisper-asr.trainer_state.json", 400, 11.030513916015625, None, True),
        ("text-log/llmc-main.log", 19560, 11.0091, 3.2217, True),
        ("text-log/nanogpt-speedrun-adamh.txt", 40, 10.82584, 3.27637, False),
        ("megatron-log/meg_ds_zero_perf.out", 4, 12.52221, None, True),
        ("keras-csvlogger/mnist-cnn.training_log.csv", 30, 0.3654542565345764, None, True),
        ("algoperf-measurements-csv/ogbg_jax.measurements.csv", 247, 0.7576822, None, True),
        ("ultralytics-results-csv/train30.results.csv", 33, 6.2705, None, True),
    ],
)
def test_shared_logs_have_the_points_that_stand_in_them(
    shared: Path, file: str, points: int, first: float, last: float | None, has_lr: bool
) -> None:
    run = one(shared / "data" / "logs" / file)
    assert (len(run), run.loss[0], run.lr is not None) == (points, first, has_lr)
    if last is not None:
        assert run.loss[-1] == last
