# SPDX-License-Identifier: Apache-2.0
"""Readers of `trainer_state.json`, JSON lines and tables."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from log_files import INF, NAN, check, one, trainer_state, write

import glidepath as gp

# ----------------------------------------------------------------------------------- trainer_state


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


# -------------------------------------------------------------------------------------- JSON lines


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


def test_json_lines_may_have_their_steps_in_a_nested_part(tmp_path: Path) -> None:
    text = (
        '{"metrics": {"train": {"epoch": 1, "step": 10, "loss": 3}}}\n'
        '{"metrics": {"train": {"epoch": 1, "step": 20, "loss": 2}}}\n'
        '{"metrics": {"val": {"epoch": 1, "step": 20, "loss": 2.5}}}\n'
    )
    file = write(tmp_path / "a.jsonl", text)
    check(one(file), [10, 20], [3, 2])
    check(one(file, "metrics/val/loss"), [20], [2.5])


def test_a_step_of_the_row_itself_goes_before_one_in_a_part_of_it(tmp_path: Path) -> None:
    rows = (
        '{"_step": 7, "eval": {"step": 1, "loss": 3}}',
        '{"_step": 9, "eval": {"step": 2, "loss": 2}}',
    )
    check(one(write(tmp_path / "a.jsonl", "\n".join(rows))), [7, 9], [3, 2])


def json_rows(path: Path, rows: Iterable[dict[str, object]]) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    "aside",
    [
        lambda i: {"time": {"step": 0.123 + i % 3 * 0.01, "epoch": 12.3}},
        lambda i: {"timing/step": 0.5 - i * 0.001},
        lambda i: {"time": {"step": (120, 123, 118)[i % 3]}},
        lambda i: {"best": {"step": i // 4 * 4}},
    ],
    ids=["seconds", "seconds that fall", "milliseconds", "the best so far"],
)
def test_what_a_step_takes_or_another_part_counts_now_and_then_is_no_step(
    tmp_path: Path, aside: Callable[[int], dict[str, object]]
) -> None:
    rows = ({"epoch": i, "loss": 60.0 - i} | aside(i) for i in range(60))
    run = one(json_rows(tmp_path / "a.jsonl", rows))
    check(run, [*range(60)], [60.0 - i for i in range(60)])


def test_each_part_of_a_row_has_the_steps_that_stand_beside_its_metric(tmp_path: Path) -> None:
    best = [i if i % 3 else max(i - 1, 0) for i in range(60)]
    rows = (
        {"model": {"step": i, "loss": 60.0 - i}, "ema": {"step": best[i], "loss": 0.5}}
        for i in range(60)
    )
    check(
        one(json_rows(tmp_path / "a.jsonl", rows), "model/loss"), [*range(60)], [*range(60, 0, -1)]
    )
    apart = (
        {"train": {"iter": 10 * i, "loss": 9.0 - i}, "val": {"iter": i, "loss": 8.0 - i}}
        for i in range(1, 9)
    )
    file = json_rows(tmp_path / "b.jsonl", apart)
    check(one(file, "train/loss"), [10 * i for i in range(1, 9)], [*range(8, 0, -1)])
    check(one(file, "val/loss"), [*range(1, 9)], [*range(7, -1, -1)])


# ------------------------------------------------------------------- rows of several runs and parts


def table_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    lines = [",".join(map(str, row.values())) for row in ({key: key for key in rows[0]}, *rows)]
    return write(path, "\n".join(lines) + "\n")


BOTH = pytest.mark.parametrize("put", [json_rows, table_rows], ids=["jsonl", "csv"])


@BOTH
@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("column", ["run", "seed", "model"])
def test_a_column_that_tells_rows_at_one_step_apart_makes_runs_of_them(
    tmp_path: Path, put: Callable[..., Path], column: str, alternating: bool
) -> None:
    named: tuple[object, ...] = (0, 1, 2) if column == "seed" else ("a", "b", "c")
    rows = [
        {column: name, "step": 10 * i, "loss": 9 - i / 8 + k}
        for k, name in enumerate(named)
        for i in range(1, 21)
    ]
    if alternating:
        rows.sort(key=lambda row: row["step"])
    runs = gp.read_traces(put(tmp_path / "log", rows))
    assert [run.name for run in runs] == [str(name) for name in named]
    for k, run in enumerate(runs):
        check(run, [10 * i for i in range(1, 21)], [9 - i / 8 + k for i in range(1, 21)])
        assert run.notes == ()


@BOTH
@pytest.mark.parametrize(
    ("column", "words"),
    [("set", ("train", "val")), ("event", ("training", "eval")), ("split", ("tr", "va"))],
)
def test_a_column_of_the_parts_of_the_data_names_the_metrics_of_each(
    tmp_path: Path, put: Callable[..., Path], column: str, words: tuple[str, str]
) -> None:
    rows = [
        {"epoch": i, column: word, "loss": 9 - i / 8 + k}
        for i in range(20)
        for k, word in enumerate(words)
    ]
    file = put(tmp_path / "log", rows)
    for k, word in enumerate(words):
        run = one(file, f"{word}/loss")
        check(run, [*range(20)], [9 - i / 8 + k for i in range(20)])
    assert one(file).metric == f"{words[0]}/loss"


@BOTH
def test_words_that_tell_no_repeated_steps_apart_make_no_runs(
    tmp_path: Path, put: Callable[..., Path]
) -> None:
    rows = [
        {
            "epoch": i,
            "session": "ab"[i > 12],
            "device": "gpu",
            "at": f"12:00:{i}",
            "loss": 9 - i / 8,
        }
        for i in [*range(13), *range(10, 20)]
    ]
    check(one(put(tmp_path / "log", rows)), [*range(20)], [9 - i / 8 for i in range(20)])


@BOTH
@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("type", ("step", "epoch")),
        ("stage", ("pretrain", "finetune")),
        ("hostname", ("node0", "node1")),
        ("checkpoint", ("train_0.pt", "train_1.pt")),
        ("speed", tuple(f"{k}.5it/s" for k in range(5))),
    ],
)
def test_other_words_that_differ_from_row_to_row_leave_a_run_whole(
    tmp_path: Path, put: Callable[..., Path], column: str, words: tuple[str, ...]
) -> None:
    steps = [*range(0, 500, 10), *range(400, 1000, 10)]
    rows = [
        {"step": step, column: words[i * len(words) // len(steps)], "loss": 9 - step / 200}
        for i, step in enumerate(steps)
    ]
    check(
        one(put(tmp_path / "log", rows)),
        [*range(0, 1000, 10)],
        [9 - s / 200 for s in range(0, 1000, 10)],
    )


@BOTH
def test_runs_of_two_parts_of_the_data_keep_both(tmp_path: Path, put: Callable[..., Path]) -> None:
    rows = [
        {"run": run, "split": part, "step": 10 * i, "loss": 9 - i / 8 + k}
        for run in "ab"
        for i in range(20)
        for k, part in enumerate(("train", "val"))
    ]
    file = put(tmp_path / "log", rows)
    for metric, more in (("train/loss", 0), ("val/loss", 1)):
        runs = gp.read_traces(file, metric=metric)
        assert [run.name for run in runs] == ["a", "b"]
        for run in runs:
            check(run, [10 * i for i in range(20)], [9 - i / 8 + more for i in range(20)])


def test_a_row_that_names_its_run_alone_goes_before_the_rows_of_that_run(tmp_path: Path) -> None:
    def rows(first: int, end: int) -> str:
        return "".join(f'{{"step": {10 * i}, "loss": {9 - i / 20}}}\n' for i in range(first, end))

    head = '{{"event": "start", "run_id": "{0}", "n_params": 124}}\n'
    text = head.format("a1") + rows(0, 40) + head.format("b2") + rows(35, 100)
    check(
        one(write(tmp_path / "a.jsonl", text)),
        [10 * i for i in range(100)],
        [9 - i / 20 for i in range(100)],
    )


@BOTH
@pytest.mark.parametrize(
    "form", ["2024-02-29T23:59:{i}.5", "2024-02-29 23:59:{i}Z", "2024-03-01T01:59:{i}.25+02:00"]
)
def test_dates_are_times_of_the_rows(tmp_path: Path, put: Callable[..., Path], form: str) -> None:
    rows = [{"timestamp": form.format(i=10 + 7 * i), "step": i, "loss": 9 - i} for i in range(6)]
    run = one(put(tmp_path / "log", rows))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [7.0 * i for i in range(6)]


@BOTH
@pytest.mark.parametrize("column", ["time", "datetime", "date", "created_at", "ts", "Walltime"])
@pytest.mark.parametrize("form", ["2024-02-29T23:59:{i}", "17092512{i}", "17092512{i}000"])
def test_times_of_day_are_known_by_what_a_column_holds(
    tmp_path: Path, put: Callable[..., Path], column: str, form: str
) -> None:
    cell = [form.format(i=10 + 7 * i) for i in range(6)]
    rows = [
        {column: cell[i] if "-" in form else int(cell[i]), "step": i, "loss": 9 - i}
        for i in range(6)
    ]
    file = put(tmp_path / "log", rows)
    run = one(file)
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [7.0 * i for i in range(6)]
    assert [info.metric for info in gp.metrics_of(file)] == ["loss"]
    still = [{column: rows[0][column], "step": i, "loss": 9 - i} for i in range(6)]
    assert one(put(tmp_path / "still", still)).wall_seconds is None


@BOTH
@pytest.mark.parametrize("column", ["timestamp", "created_at", "seconds"])
def test_rows_of_all_data_have_their_times(
    tmp_path: Path, put: Callable[..., Path], column: str
) -> None:
    rows = [
        {
            "split": split,
            "epoch": i,
            column: 10.0 * i if column == "seconds" else f"2024-02-29T23:5{i}:00",
            "loss": 9 - i,
        }
        for i in range(6)
        for split in ("train", "val")
    ]
    run = one(put(tmp_path / "log", rows), "val/loss")
    assert run.wall_seconds is not None
    each = 10.0 if column == "seconds" else 60.0
    assert run.wall_seconds.tolist() == [each * i for i in range(6)]


# -------------------------------------------------------------------------------- epochs and clocks

EPOCHS = [(1, i) for i in range(10, 101, 10)]
RESUMED = [*EPOCHS, *((2, i) for i in range(10, 51, 10))]
RESUMED += [(epoch, i) for epoch in (2, 3) for _, i in EPOCHS]


@pytest.mark.parametrize(
    "form",
    [
        "{epoch},{step},{loss}",
        '{{"mode": "train", "epoch": {epoch}, "iter": {step}, "loss": {loss}}}',
        "Epoch {epoch}/10, step {step}/100, loss={loss}",
        "mmdet - INFO - Epoch [{epoch}][{step}/100] lr: 1.0e-3, time: 0.3, loss: {loss}",
    ],
    ids=["csv", "jsonl", "text", "mmdet"],
)
def test_a_run_of_few_epochs_that_was_resumed_within_one_keeps_its_steps(
    tmp_path: Path, form: str
) -> None:
    lines = [
        form.format(epoch=epoch, step=step, loss=9 - i / 8)
        for i, (epoch, step) in enumerate(RESUMED)
    ]
    head = ["epoch,step,loss"] if form.startswith("{epoch}") else []
    run = one(write(tmp_path / "log", "\n".join([*head, *lines]) + "\n"))
    assert run.step.tolist() == [10.0 * i for i in range(1, 31)]
    kept = [9 - i / 8 for i in range(len(RESUMED)) if not 10 <= i < 15]
    np.testing.assert_allclose(run.loss, kept)
    assert any("restarted once, at step 110" in note for note in run.notes)


@pytest.mark.parametrize("each", [4, 6, 7])
def test_rows_of_an_epoch_are_no_repeats_of_each_other(tmp_path: Path, each: int) -> None:
    rows = ({"epoch": i // each, "loss": 60.0 - i} for i in range(60))
    check(one(json_rows(tmp_path / "a.jsonl", rows)), [*range(1, 61)], [*range(60, 0, -1)])


@pytest.mark.parametrize("each", [110, 140, 150])
def test_epochs_that_were_rounded_lose_no_row(tmp_path: Path, each: int) -> None:
    rows = [{"loss": 999.0 - i, "epoch": round(i / each, 2)} for i in range(1, 3 * each + 1)]
    run = one(json_rows(tmp_path / "a.jsonl", rows))
    assert run.loss.tolist() == [row["loss"] for row in rows]
    if each < 150:  # so few of them repeat that they still tell the epoch
        np.testing.assert_allclose(run.step, [row["epoch"] for row in rows], atol=0.01)


@pytest.mark.parametrize("column", ["seconds", "time", "elapsed", "walltime", "Runtime"])
def test_seconds_that_each_row_took_are_no_clock(tmp_path: Path, column: str) -> None:
    took, since = [12.1, 11.9, 12.3, 12.0, 12.2], [12.1, 24.0, 36.3, 48.3, 60.5]
    cases: list[tuple[list[float], list[float] | None]] = [(took, None), (since, since)]
    if column != "seconds":  # which a name so plain says of itself
        cases += [([12.1, 12.2, 12.4, 12.9, 13.5], None), ([0, 0, 0, 0, 1], None)]
    for seconds, clock in cases:
        rows = "".join(f"{i},{9 - i},{second}\n" for i, second in enumerate(seconds))
        run = one(write(tmp_path / "a.csv", f"epoch,loss,{column}\n" + rows))
        wall = run.wall_seconds
        assert (None if wall is None else wall.tolist()) == clock


@pytest.mark.parametrize(
    ("unit", "seconds"), [("", 1.0), ("s", 1.0), (" sec", 1.0), ("m", 60.0), (" hours", 3600.0)]
)
def test_the_time_of_a_console_line_is_in_its_unit(
    tmp_path: Path, unit: str, seconds: float
) -> None:
    text = "".join(f"step {i}, loss {9 - i}, elapsed: {1.5 * i}{unit}\n" for i in range(1, 7))
    run = one(write(tmp_path / "log", text))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [1.5 * seconds * i for i in range(1, 7)]


def test_a_better_clock_stands_before_a_column_of_time(tmp_path: Path) -> None:
    rows = "".join(f"{i},{9 - i},{5 * i},{7 * i}\n" for i in range(6))
    run = one(write(tmp_path / "a.csv", "epoch,loss,time,wall_seconds\n" + rows))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [7.0 * i for i in range(6)]


# ------------------------------------------------------------------------------------------ tables


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


@pytest.mark.parametrize("name", ["metrics/train/loss", "train/epoch_loss", "history/train_loss"])
def test_a_loss_of_training_is_one_wherever_it_stands(tmp_path: Path, name: str) -> None:
    text = f"step,{name},val/loss\n" + "".join(f"{k},{1 / k},{2 / k}\n" for k in range(1, 20))
    run = one(write(tmp_path / "log.csv", text))
    assert (run.metric, run.notes) == (name, ())


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
        ("epoch,pears,plums\n1,2,3\n", "none .* loss or a score; say metric= one of pears, plums"),
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


def test_a_table_of_semicolons_may_have_decimal_commas(tmp_path: Path) -> None:
    text = "epoch;loss;lr\n1;3,5;0,001\n2;2,25;1e-3\n3;nan;0,001\n"
    check(one(write(tmp_path / "a.csv", text)), [1, 2, 3], [3.5, 2.25, NAN], [1e-3] * 3)
    with pytest.raises(gp.IoError, match=r"a\.csv:2: loss '3,5,1' is not a number"):
        gp.read_traces(write(tmp_path / "a.csv", "epoch;loss\n1;3,5,1\n"))


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_comma_before_three_digits_is_decimal_where_another_one_is(
    mark: str, tmp_path: Path
) -> None:
    text = "epoch;loss;lr\n1;2,3461;1,125\n2;1,987;1,25\n3;1,8123;1,125\n".replace(";", mark)
    check(
        one(write(tmp_path / "a.csv", text)),
        [1, 2, 3],
        [2.3461, 1.987, 1.8123],
        [1.125, 1.25, 1.125],
    )
    text = "epoch;loss\n1;-0,346\n2;-1,987\n".replace(";", mark)
    check(one(write(tmp_path / "a.csv", text)), [1, 2], [-0.346, -1.987])


def test_a_comma_that_may_mark_thousands_is_no_point(tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match=r"a\.csv:2: loss '2,346' is not a number"):
        gp.read_traces(write(tmp_path / "a.csv", "epoch;loss\n1;2,346\n2;1,987\n"))


@pytest.mark.parametrize(
    ("spelled", "value"), [("1.#QNAN", NAN), ("-1.#IND00", NAN), ("-1.#INF", -INF)]
)
def test_a_table_has_numbers_as_windows_prints_them(
    spelled: str, value: float, tmp_path: Path
) -> None:
    text = f"epoch,loss\n1,2.5\n2,1.5\n3,{spelled}\n"
    check(one(write(tmp_path / "a.csv", text)), [1, 2, 3], [2.5, 1.5, value])


@pytest.mark.parametrize(("pack", "name"), [(bz2.compress, "bzip2"), (lzma.compress, "xz")])
def test_a_log_that_is_packed_by_another_program_than_gzip_says_so(
    tmp_path: Path, pack: Callable[[bytes], bytes], name: str
) -> None:
    (tmp_path / "a.csv").write_bytes(pack(b"epoch,loss\n1,2\n"))
    with pytest.raises(gp.IoError, match=rf"a\.csv: packed by {name}, of which only gzip is read"):
        gp.read_traces(tmp_path / "a.csv")


def test_a_link_to_a_log_of_the_same_folder_is_no_second_run(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "run-1" / "log.csv", "epoch,loss\n1,2\n2,1\n")
    (tmp_path / "logs" / "latest.csv").symlink_to(tmp_path / "logs" / "run-1" / "log.csv")
    assert [run.name for run in gp.read_traces(tmp_path / "logs")] == ["run-1/log.csv"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "log.csv").symlink_to(tmp_path / "logs" / "run-1" / "log.csv")
    assert [run.name for run in gp.read_traces(tmp_path / "other")] == ["log.csv"]


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


# ------------------------------------------------------------------ where the run will end, by plan


def test_trainer_state_and_its_metrics_say_at_which_step_the_run_will_end(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"loss": 3.0, "step": 10}, {"eval_loss": 2.5, "step": 20}]
    file = trainer_state(tmp_path / "trainer_state.json", rows)
    assert (one(file).metric, one(file).planned_steps) == ("loss", 99)
    run = one(file, "eval_loss")
    assert (run.metric, run.planned_steps) == ("eval_loss", 99)
    late = trainer_state(tmp_path / "late.json", [{"loss": 3.0, "step": 100}])
    assert one(late).planned_steps is None  # of another run, or the plan was changed
    for text in ("null", '"99"', "0", "-1", "1e400", "NaN", "true"):
        state = f'{{"log_history": [{{"loss": 3.0, "step": 10}}], "max_steps": {text}}}'
        assert one(write(tmp_path / "odd.json", state)).planned_steps is None


def test_json_lines_of_llamafactory_say_at_which_step_the_run_will_end(tmp_path: Path) -> None:
    row = '{"current_steps": 5, "total_steps": 9, "loss": 2.0, "epoch": 0.1}\n'
    run = one(write(tmp_path / "trainer_log.jsonl", row))
    assert (run.metric, run.planned_steps) == ("loss", 9)
    epochs = '{"epoch": 5, "total_steps": 900, "loss": 2.0}\n'  # not in the unit of the steps
    assert one(write(tmp_path / "epochs.jsonl", epochs)).planned_steps is None


def test_the_settings_beside_a_table_say_at_which_step_the_run_will_end(tmp_path: Path) -> None:
    results = write(tmp_path / "y" / "results.csv", "epoch, train/box_loss\n1, 4.5\n2, 3.5\n")
    assert one(results).planned_steps is None
    write(tmp_path / "y" / "args.yaml", "task: detect\nepochs: 30\nclose_mosaic: 10\n")
    assert one(results).planned_steps == 30
    write(results, "epoch, train/box_loss\n0, 4.5\n1, 3.5\n")
    assert one(results).planned_steps == 29  # counted from 0
    write(tmp_path / "y" / "args.yaml", "epochs: 1\nepochs_warmup: 50\n")
    assert one(results).planned_steps is None  # the run went on
    metrics = write(tmp_path / "l" / "metrics.csv", "epoch,step,train_loss\n0,49,3.0\n0,99,2.0\n")
    write(tmp_path / "l" / "hparams.yaml", "lr: 0.1\nmax_steps: 5000\nepochs: 3\n")
    assert one(metrics).planned_steps == 5000
    write(tmp_path / "l" / "hparams.yaml", "max_steps: -1\n")
    assert one(metrics).planned_steps is None


# ------------------------------------------------------------------------------ ends of lines


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_table_may_end_its_lines_as_any_system_does(tmp_path: Path, end: str, last: bool) -> None:
    tail = end if last else ""
    rows = [f"{i};{4 - i}" for i in range(1, 4)]
    wide = tmp_path / "wide.csv"
    wide.write_bytes((end.join(["step;loss", *rows]) + tail).encode())
    check(one(wide), [1, 2, 3], [3, 2, 1])
    wide.write_bytes((end.join(["step;loss", *rows]) + tail).encode("utf-16"))
    check(one(wide), [1, 2, 3], [3, 2, 1])
    long = tmp_path / "long.csv"
    text = end.join(["curve,step,value", "a,1,3", "b,1,5", "b,2,4"]) + tail
    long.write_bytes(text.encode())
    assert [list(run.loss) for run in gp.read_traces(long)] == [[3], [5, 4]]
    panel = tmp_path / "panel.csv"
    names = '"Step","a - loss","a - loss__MIN","a - loss__MAX"'
    panel.write_bytes((end.join([names, "10,3,3,3", "20,2,2,2"]) + tail).encode())
    check(one(panel), [10, 20], [3, 2])


def test_lines_of_one_table_may_end_in_different_ways(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_bytes(b'step,loss,note\r\n1,3,"a\rb"\r2,2,c\n3,1,d\r')
    check(one(table), [1, 2, 3], [3, 2, 1])


def test_a_pattern_is_looked_for_in_each_line_that_a_return_ends(tmp_path: Path) -> None:
    log = tmp_path / "bar.log"
    log.write_bytes(b"it 1 err=3\rit 2 err=2\rit 3 err=1\n")
    (run,) = gp.read_traces(log, pattern=r"it (?P<step>\d+) err=(?P<value>\S+)")
    check(run, [1, 2, 3], [3, 2, 1])


@pytest.mark.parametrize(
    ("metric", "noted"),
    [
        ("train/train_loss", False),
        ("Training/mean_train_loss", False),
        ("reduced_train_loss", False),
        ("loss (train)", False),
        ("train/box_loss", True),
        ("val/train_loss", True),
    ],
)
def test_only_what_is_no_training_loss_is_said_to_be_none(
    tmp_path: Path, metric: str, noted: bool
) -> None:
    run = one(write(tmp_path / "t.csv", f"step,{metric}\n1,3\n2,2\n"))
    assert any("called a training loss" in note for note in run.notes) == noted


def test_the_empty_field_that_flair_writes_more_is_left_out(tmp_path: Path) -> None:
    text = "EPOCH\tTIMESTAMP\tLEARNING_RATE\tTRAIN_LOSS\tTRAIN_F1\tDEV_LOSS\n" + "".join(
        f"{i}\t17:27:{i:02d}\t0.1000\t{3 / i}\t\t_\t{4 / i}\n" for i in range(1, 13)
    )
    tsv = write(tmp_path / "loss.tsv", text)
    check(one(tsv), list(range(1, 13)), [3 / i for i in range(1, 13)], [0.1] * 12)
    check(one(tsv, "DEV_LOSS"), list(range(1, 13)), [4 / i for i in range(1, 13)], [0.1] * 12)
    other = "step\tloss\tacc\n" + "1\t\t2.5\t0.5\n" * 3  # of which nobody knows the column more
    with pytest.raises(gp.IoError, match="4 fields where the header has 3"):
        gp.read_traces(write(tmp_path / "other.tsv", other))


def test_episodes_count_though_they_began_anew_once(tmp_path: Path) -> None:
    episodes = [*range(501, 541), *range(1, 31)]
    rows = "".join(f"{e},{e % 7 - 3},{300 + 97 * (5 * e % 11)}\n" for e in episodes)
    run = one(write(tmp_path / "log.csv", "episode,reward,steps\n" + rows))
    check(run, list(range(1, 31)), [e % 7 - 3 for e in range(1, 31)])
    assert any("restarted once" in note for note in run.notes)
