# SPDX-License-Identifier: Apache-2.0
"""Readers of console logs and of TensorBoard's event files."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path

import pytest
from log_files import NAN, check, one, write
from wire import field, record, varint

import glidepath as gp

# --------------------------------------------------------------------------------------- text logs


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
def test_logs_as_training_programs_print_them_are_read(
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


# ------------------------------------------------------------------------------------- TensorBoard


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


def test_event_files_without_a_version_are_known_by_name_and_checksum(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents"
    events = event(101, 1, "Logloss", simple(4)) + event(102, 2, "Logloss", simple(3))
    file.write_bytes(events)
    check(one(file), [1, 2], [4, 3])
    file.write_bytes(events[:8] + b"\0\0\0\0" + events[12:])
    with pytest.raises(gp.IoError, match="a log of no known format"):
        one(file)


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


# -------------------------------------------------------------------------------- logs of one's own


MINE = r"it (?P<step>\d+)(?:/(?P<planned_steps>\d+))?: err=(?P<value>\S+)(?: rate=(?P<lr>\S+))?"


def test_a_pattern_reads_a_console_log_of_ones_own(tmp_path: Path) -> None:
    text = "starting\nit 10/50: err=3.5 rate=0.1\nit 20/50: err=nan\nsaved\nit 30/50: err=1e0\n"
    file = write(tmp_path / "train.out", text)
    (run,) = gp.read_traces(file, pattern=MINE)
    check(run, [10, 20, 30], [3.5, NAN, 1], [0.1, NAN, NAN])
    assert (run.name, run.metric, run.planned_steps) == ("train.out", "loss", 50)
    (run,) = gp.read_traces(file, pattern=MINE, metric="accuracy")
    assert (run.metric, run.direction) == ("accuracy", "max")
    write(tmp_path / "sub" / "b.out", "it 1: err=2\n")
    write(tmp_path / "other.txt", "nothing\n")
    found = gp.read_traces(tmp_path, pattern=MINE)
    assert [(run.name, len(run)) for run in found] == [("sub/b.out", 1), ("train.out", 3)]


def test_a_pattern_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.log", "it 1: err=oops\n")
    with pytest.raises(gp.IoError, match=r"a\.log:1: value 'oops' is not a number"):
        gp.read_traces(file, pattern=MINE)
    absent = r"x(?P<step>\d)(?P<value>2)"
    for path, said in ((file, "no line has"), (tmp_path, "no file of this folder has a line with")):
        with pytest.raises(gp.IoError, match=re.escape(f"{path}: {said} '{absent}'")):
            gp.read_traces(path, pattern=absent)
    with pytest.raises(gp.IoError, match="none"):
        gp.read_traces(tmp_path / "none", pattern=MINE)
    with pytest.raises(gp.InputError, match=r"expected a group \(\?P<value>"):
        gp.read_traces(file, pattern="(?P<step>1)")
    with pytest.raises(
        gp.InputError, match=r"pattern is '\(', expected a regular expression: missing \)"
    ):
        gp.read_traces(file, pattern="(")
    with pytest.raises(gp.InputError, match="format is 'table' beside a pattern"):
        gp.read_traces(file, pattern=MINE, format="table")
    with pytest.raises(gp.InputError, match="path has type list beside a pattern"):
        gp.read_traces([], pattern=MINE)


# ------------------------------------------------------------------ where the run will end, by plan


def test_text_logs_say_at_which_step_the_run_will_end(tmp_path: Path) -> None:
    megatron = " iteration  {}/ 1000 | consumed samples: 80 | lm loss: 12.0 | loss scale: 1.0\n"
    assert one(write(tmp_path / "a", megatron.format(20) * 2)).planned_steps == 1000
    for line, planned in (
        ("step:1/62 train_loss:9.5 train_time:74701ms", 62),
        ("step    1/19560 | loss 11.5 (+nanz)| norm 15.3", 19560),
        ("s:1 trl:10.5 lr:0.5", None),
        ("iter 10: loss 3.0, time 99ms, mfu 4%", None),
    ):
        run = one(write(tmp_path / "b", line + "\n"))
        assert run.planned_steps == planned
    # A run that has gone past its plan follows another one.
    assert one(write(tmp_path / "c", megatron.format(1001))).planned_steps is None
    assert one(tmp_path / "a").metric == "lm loss"


@pytest.mark.parametrize(
    ("file", "metric", "planned"),
    [
        ("hf-trainer-state/mt5-summarize.trainer_state.json", "loss", 9411),
        ("hf-trainer-state/whisper-asr.trainer_state.json", "loss", 10000),
        ("llamafactory-trainer-log-jsonl/luojiu-7b.head.trainer_log.jsonl", "loss", 8712),
        ("megatron-log/meg_ds_zero_perf.out", "lm loss", 1000),
        ("text-log/llmc-main.log", "train_loss", None),
        ("text-log/nanogpt-speedrun-adamh.txt", "val_loss", 4875),
        ("keras-csvlogger/mnist-cnn.training_log.csv", "loss", None),
        ("ultralytics-results-csv/train30.results.csv", "train/box_loss", None),
    ],
)
def test_shared_logs_name_their_metric_and_their_end(
    shared: Path, file: str, metric: str, planned: float | None
) -> None:
    run = one(shared / "data" / "logs" / file)
    assert (run.metric, run.planned_steps) == (metric, planned)


# ------------------------------------------------------------------------- several runs in a log


def folds(before: str, row: str, behind: str = "") -> str:
    """Three folds of ten epochs, each with a loss of its own."""
    return "".join(
        before.format(f=f)
        + "".join(row.format(f=f, e=e, l=f + 1 / e) for e in range(1, 11))
        + behind.format(f=f)
        for f in (1, 2, 3)
    )


@pytest.mark.parametrize(
    "text",
    [
        folds("Fold 1\n".replace("1", "{f}"), "Epoch {e}/10 loss: {l}\n"),
        folds("===== FOLD: {f}/3 =====\n", "Epoch {e} - loss: {l} - acc: 0.5\n"),
        folds("INFO Training fold #{f} of 3\n", "epoch {e} loss {l}\n", "Fold {f} accuracy: 0.9\n"),
        folds("K-Fold {f}\n", "Epoch {e}/10\n1/1 [==========] - 1s - loss: {l}\n"),
        folds("", "[Fold {f}][Epoch {e}] loss={l}\n"),
        folds("", "Fold: {f}/3, Epoch: {e}/10, Loss: {l}\n"),
        folds("", "epoch {e} loss {l}\n", "Fold {f} accuracy: 0.9\n"),  # named behind its epochs
    ],
)
def test_folds_of_a_console_log_are_runs_each(tmp_path: Path, text: str) -> None:
    log = write(tmp_path / "cv.log", text)
    runs = gp.read_traces(log)
    assert [run.name for run in runs] == ["fold 1", "fold 2", "fold 3"]
    for f, run in enumerate(runs, 1):
        check(run, list(range(1, 11)), [f + 1 / e for e in range(1, 11)])
        assert not any("restarted" in note for note in run.notes)
    assert {info.run for info in gp.metrics_of(log)} == {"fold 1", "fold 2", "fold 3"}


@pytest.mark.parametrize("word", ["Seed", "Trial", "Run"])
def test_headings_of_seeds_and_trials_tell_runs_apart(tmp_path: Path, word: str) -> None:
    text = folds(f"--- {word} {{f}} of 3 ---\n", "Epoch {e} loss {l}\n")
    names = [run.name for run in gp.read_traces(write(tmp_path / "t.log", text))]
    assert names == [f"{word.lower()} {f}" for f in (1, 2, 3)]
    both = "".join(f"Seed {s}\n" + folds("Fold {f}\n", "Epoch {e} loss {l}\n") for s in (1, 2))
    names = [run.name for run in gp.read_traces(write(tmp_path / "b.log", both))]
    assert names == [f"seed {s}/fold {f}" for s in (1, 2) for f in (1, 2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        folds("", "epoch {e} loss {l}\n"),  # restarts without a name
        folds("Fold of 5\n", "epoch {e} loss {l}\n"),
        folds("", "epoch {e} loss {l}\n", "scaffold {f}, n_fold {f}\n"),
        folds("run {f} of the evaluation\n", "epoch {e} loss {l}\n"),
        "epoch 1 loss 5\nFold 1\n" + folds("Fold {f}\n", "epoch {e} loss {l}\n"),  # whose is it?
    ],
)
def test_a_log_whose_lines_name_no_runs_stays_one(tmp_path: Path, text: str) -> None:
    assert one(write(tmp_path / "one.log", text)).name == "one.log"


def test_folds_that_count_on_are_one_run(tmp_path: Path) -> None:
    rows = (f"Fold {(e - 1) // 10 + 1}\nepoch {e} loss {9 - e / 9}\n" for e in range(1, 31))
    run = one(write(tmp_path / "on.log", "".join(rows)))
    assert (run.name, len(run)) == ("on.log", 30)
