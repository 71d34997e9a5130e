# SPDX-License-Identifier: Apache-2.0
"""Readers of other tools' logs: folders, formats, restarts, and what is refused."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_files import check, one, trainer_state, write

import glidepath as gp

# --------------------------------------------------------------------------- the trace's own notes


def test_notes_are_shown_and_kept_but_do_not_make_traces_differ() -> None:
    run = gp.Trace([1, 2], [3, 2], notes=["one", "two"])
    assert run == gp.Trace([1, 2], [3, 2])
    assert run.notes == ("one", "two")
    assert run.until(1).notes == gp.clean(run).trace.notes == run.notes
    assert pickle.loads(pickle.dumps(run)).notes == run.notes
    assert repr(run) == "<Trace: 2 points, steps 1 to 2, loss 3 to 2; one; two>"


def test_import_brings_no_reader_of_a_format() -> None:
    code = "import sys, glidepath; print(*[m for m in sys.modules if 'glidepath.readers' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shared = ("", "._series", "._formats", "._folder", "._open")
    assert set(done.stdout.split()) == {f"glidepath.readers{name}" for name in shared}


# ---------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize(
    ("steps", "kept", "note"),
    [
        ([1, 2, 3, 4, 3, 4, 5], [0, 1, 4, 5, 6], "restarted once, at step 3: 2 earlier rows"),
        ([1, 2, 3, 1, 2], [3, 4], "restarted once, at step 1: 3 earlier rows"),
        ([1, 3, 5, 4, 6, 2, 7], [0, 5, 6], "restarted 2 times, at step 4, 2: 4 earlier rows"),
        ([1, 2, 2, 3], [0, 2, 3], "1 repeated step: the later row was kept"),
    ],
)
def test_after_a_restart_the_later_rows_win_and_a_note_says_so(
    tmp_path: Path, steps: list[int], kept: list[int], note: str
) -> None:
    rows = "".join(f"{step},{10 + i}\n" for i, step in enumerate(steps))
    run = one(write(tmp_path / "a.csv", "step,loss\n" + rows))
    check(run, [steps[i] for i in kept], [10 + i for i in kept])
    (said,) = run.notes
    assert said.startswith(note)


# ---------------------------------------------------------------------- refusals, folders, formats


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
    "csv wandb wandb_csv wandb_summary trainer_state jsonl json tensorboard mlflow trackio "
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
    (lambda file: file.name == "SOURCES.md", "a page of Markdown, expected a table in it"),
    (lambda file: file.name == "meta.yaml", "a log of no known format"),
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


# ------------------------------------------------------------------------------------ all metrics


def test_all_metrics_of_a_log_are_listed(tmp_path: Path) -> None:
    text = "step,loss,acc,apples\n1,3,0.5,\n2,2,0.6,7\n"
    listed = gp.metrics_of(write(tmp_path / "a.csv", text))
    assert [(m.metric, m.direction, m.points, m.observed_to, m.read) for m in listed] == [
        ("loss", "min", 2, 2.0, True),
        ("acc", "max", 2, 2.0, False),
        ("apples", "min", 1, 2.0, False),
    ]
    assert (
        repr(listed[0])
        == "<MetricInfo: 'loss' of 'a.csv', 2 points, min, read where none is named>"
    )
    # Also of a log of which nothing would be read.
    (pears, plums) = gp.metrics_of(write(tmp_path / "b.csv", "step,pears,plums\n1,2,3\n"))
    assert (pears.read, plums.read) == (False, False)
    long = gp.metrics_of(write(tmp_path / "c.csv", "curve,step,value,other\nx,1,2,3\nx,2,1,4\n"))
    assert [(m.run, m.points) for m in long] == [("x", 2), ("x", 2)]
    with pytest.raises(gp.IoError, match="no metric was logged"):
        gp.metrics_of(write(tmp_path / "d.csv", "step,loss\n"))


def test_a_folder_is_read_without_a_long_form_that_lacks_the_value(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "step,loss\n1,3\n2,2\n")
    write(tmp_path / "b.csv", "curve,step,acc\nx,1,0.5\nx,2,0.6\n")
    write(tmp_path / "c.csv", "curve,step,note\nx,1,late\n")
    assert [run.name for run in gp.read_traces(tmp_path)] == ["a.csv"]
    listed = {(info.run, info.metric): info.read for info in gp.metrics_of(tmp_path)}
    assert listed == {("a.csv", "loss"): True, ("x", "acc"): False}
    (run,) = gp.read_traces(tmp_path, metric="acc")
    assert (run.metric, run.direction) == ("acc", "max")


@pytest.mark.parametrize("text", [None, "", "curve,step,note\na,1,x\n"])
def test_a_log_without_metrics_is_refused_as_it_is_where_it_is_read(
    text: str | None, tmp_path: Path
) -> None:
    log = tmp_path / "README.md"
    if text is not None:
        log = write(tmp_path / "log.csv", text)
    with pytest.raises(gp.IoError) as read:
        gp.read_traces(log)
    with pytest.raises(gp.IoError) as listed:
        gp.metrics_of(log)
    assert str(listed.value) == str(read.value)
    if text is None:
        assert str(listed.value) == f"{log}: No such file or directory"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(gp.IoError, match="not a regular file"):
            gp.read_traces(path)
        with pytest.raises(gp.IoError, match="not a regular file"):
            gp.read_traces(path, format="text")
        with pytest.raises(gp.IoError, match="not a regular file"):
            gp.read_traces(path, pattern=r"(?P<step>\d+) (?P<value>\d+)")


@pytest.mark.parametrize(
    "read",
    [
        gp.read_pairs,
        lambda path: gp.Workload.from_trace(path, gpus=4),
        lambda path: gp.Workload.from_gavel(path, path, cluster={"v100": 1}),
    ],
)
def test_no_table_of_jobs_or_pairs_is_read_from_a_device_that_never_ends(read: Any) -> None:
    with pytest.raises(gp.IoError, match=r"^/dev/zero: (is a device, not a file|not a regular)"):
        read("/dev/zero")


def test_a_wide_table_is_read_in_linear_time(tmp_path: Path) -> None:
    names = ",".join(f"column{i}" for i in range(100_000))
    text = f"step,loss,{names}\n" + f"1,2,{'3,' * 99_999}4\n" * 2
    began = time.process_time()
    assert one(write(tmp_path / "wide.csv", text)).metric == "loss"
    assert time.process_time() - began < 20
