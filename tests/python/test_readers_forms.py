# SPDX-License-Identifier: Apache-2.0
"""Forms of logs that tools have: prefixes, bars, tables with a row a number, rows out of order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from log_files import BY_ROW, BY_TEN, LOSSES, ROWS, check, loss, one, write

import glidepath as gp
from glidepath._bench.accuracy.curves import collections


def lines(form: str) -> str:
    return "".join(form.format(i=i, n=10 * i, e=(i - 1) // 4, x=loss(i)) + "\n" for i in ROWS)


# ------------------------------------------------------------------------------- console lines


@pytest.mark.parametrize(
    "last",
    [
        "",
        "Validation DataLoader 0: 100%|##| 10/10 [00:01<00:00, 9.1it/s]\n",
        "Testing DataLoader 0: 100%|##| 20/20 [00:01<00:00, 9.1it/s]\n",
        "Testing DataLoader 0: 100%|##| 20/20 [00:01<00:00, 9.1it/s, test_loss=0.3]\n",
        "Loading: 100%|##| 900/900 [00:01<00:00, 9.1it/s]\n",
    ],
)
def test_a_bar_of_something_else_is_no_length_of_an_epoch(last: str, tmp_path: Path) -> None:
    bar = "Epoch {e}: {b}%|##| {b}/100 [00:10<00:05, 9.8it/s, train_loss={x}]\n"
    text = "".join(
        bar.format(e=(i - 1) // 4, b=25 * ((i - 1) % 4 + 1), x=loss(i))
        + ("Validation DataLoader 0: 100%|##| 10/10 [00:01<00:00]\n" if i % 4 == 0 else "")
        for i in ROWS
    )
    run = one(write(tmp_path / "log", text + last), "train_loss")
    check(run, [25.0 * i for i in ROWS], LOSSES)


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-05-01T12:00:00.123456789Z ",
        "2024-05-01T12:00:00Z ",
        "2024-05-01T12:00:00+00:00 ",
        "2024-05-01 12:00:00,123 -0500 ",
        "05/01/2024 12:00:00 PM ",
        "01-05-2024 12:00:00 ",
        "20240501_120000 ",
        "20240501-12:00:00 ",
        "pod/train-abc123 ",
        "INFO trainer ",
    ],
)
@pytest.mark.parametrize("form", ["step {n}, loss: {x}", "Step {n} Loss {x}", "iter {n}: loss {x}"])
def test_the_step_behind_a_prefix(prefix: str, form: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "log", lines(prefix + form))), BY_TEN, LOSSES)


@pytest.mark.parametrize(
    "prefix",
    ["May  1 12:00:00 ", "gpu01: ", "worker-0: ", "0: ", "(pid=123) ", "INFO:root:", "\tINFO\t"],
)
def test_a_step_in_brackets_behind_a_prefix(prefix: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "log", lines(prefix + "[{n}] loss={x}"))), BY_TEN, LOSSES)


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        ("[Learner] Critic Loss = {x} | Learner Steps = {n} | Policy Loss = -0.12", BY_TEN),
        ("Eval num_timesteps={n}, loss={x} +/- 10.23", BY_TEN),
        ("Score at iteration {n} is {x}", BY_TEN),
        ("Step {n}: train CrossEntropyLoss |  {x}\nStep {n}: eval CrossEntropyLoss |  9", BY_TEN),
        ("Iteration {n}, loss = {x}\n    Test net output #1: loss = 9.5 (* 1 = 9.5)", BY_TEN),
        ("2022-05-01 12:00:00,123 DEBUG TRAIN Epoch {i} loss {x}\nDEBUG CV loss 9.5", BY_ROW),
        ("Info: Epoch {i}\n  loss = {x}f0", BY_ROW),
        (
            "step {n} {{'loss': Array({x}, dtype=float32), 'acc': Array(0.5, dtype=float32)}}",
            BY_TEN,
        ),
        ("step {n} loss <tf.Tensor: shape=(), dtype=float32, numpy={x}> acc 0.5", BY_TEN),
        *((f"step {{n}} loss {sign} {{x}}", BY_TEN) for sign in ("->", "=>", "-->", "→", "≈")),
        ("step -> {n}, loss -> {x} (before 9 -> 8)", BY_TEN),
    ],
)
def test_a_line_as_a_tool_prints_it_is_read(form: str, steps: list[float], tmp_path: Path) -> None:
    check(one(write(tmp_path / "log", lines(form))), steps, LOSSES)


@pytest.mark.parametrize(
    "form",
    ["Patience: {}/10", "no gain [{}/10]", "{}/10 without gain", "correct {}/100", "mem {}/80GB"],
)
@pytest.mark.parametrize("restart", [0, 5])
def test_a_fraction_behind_the_loss_of_each_epoch_counts_no_rows(
    form: str, restart: int, tmp_path: Path
) -> None:
    rows = [*range(1, restart + 1), *ROWS]
    text = "".join(f"Epoch {i}/12 loss {loss(i)} " + form.format(i % 4) + "\n" for i in rows)
    run = one(write(tmp_path / "log", text))
    check(run, BY_ROW, LOSSES)
    assert run.planned_steps == 12


@pytest.mark.parametrize("name", ["patience", "GPU mem"])
def test_a_share_of_memory_and_patience_count_no_rows_of_an_epoch(
    name: str, tmp_path: Path
) -> None:
    text = "".join(f"Epoch {i // 6} loss {loss(i)} {name} {i % 3}/80\n" for i in ROWS)
    run = one(write(tmp_path / "log", text))
    check(run, BY_ROW, LOSSES)
    assert "rows are numbered from 1" in " ".join(run.notes)


@pytest.mark.parametrize(
    "form", ["loss[{n}] = {x}, acc[{n}] = 0.25", "loss({n}): {x} acc({n}): 0.25 lr({n}): 0.1"]
)
def test_an_index_that_all_metrics_of_a_line_have_is_their_step(form: str, tmp_path: Path) -> None:
    file = write(tmp_path / "log", lines(form))
    np.testing.assert_array_equal(one(file).step, BY_TEN)
    np.testing.assert_array_equal(one(file).loss, LOSSES)
    np.testing.assert_array_equal(one(file, "acc").step, BY_TEN)


def test_numbers_as_fortran_prints_them(tmp_path: Path) -> None:
    text = "".join(f"step {i} loss {loss(i) / 10:.5f}D+01\n" for i in ROWS)
    run = one(write(tmp_path / "log", text))
    np.testing.assert_allclose(run.loss, LOSSES)


@pytest.mark.parametrize(
    "form",
    [
        "Epoch: 0, Step: {n}, Rank: {r}, loss = {x}",
        "2022-05-01 12:00:00,123 INFO [train.py:895] ({r}/3) Epoch 1, batch {n}, loss={x}",
    ],
)
def test_of_ranks_within_the_line_the_first_is_read(form: str, tmp_path: Path) -> None:
    rows = [form.format(n=10 * i, x=loss(i) + r, r=r) for i in ROWS for r in ((2, 0, 1))]
    check(one(write(tmp_path / "log", "\n".join(rows) + "\n")), BY_TEN, LOSSES)


def test_a_bar_over_all_epochs_is_planned_once(tmp_path: Path) -> None:
    for name in ("steps: ", ""):
        text = "".join(
            (f"epoch {(i + 3) // 4}/3\n" if i % 4 == 1 else "")
            + f"{name} 2%|# | {i}/12 [00:01<00:39, 1.0it/s, avr_loss={loss(i)}]\n"
            for i in ROWS
        )
        run = one(write(tmp_path / "log", text))
        check(run, BY_ROW, LOSSES)
        assert run.planned_steps == 12


@pytest.mark.parametrize("digits", [2, 4, 5])
def test_decimal_commas_are_read_as_points(digits: int, tmp_path: Path) -> None:
    text = "".join(f"Epoch {i}; Loss: {loss(i):.{digits}f}\n" for i in ROWS).replace(".", ",")
    run = one(write(tmp_path / "log", text))
    check(run, BY_ROW, [round(x, digits) for x in LOSSES])


def test_marks_of_thousands_stay_beside_a_list_with_commas(tmp_path: Path) -> None:
    text = "GPUs: 0,1 kernel=3,5\n" + "".join(f"Step {1000 * i:,} | loss {loss(i)}\n" for i in ROWS)
    check(one(write(tmp_path / "log", text)), [1000.0 * i for i in ROWS], LOSSES)


def test_zeros_at_the_end_of_a_log_that_a_crash_left(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(lines("step {n} loss {x}").encode() + b"\0" * 4096)
    check(one(file), BY_TEN, LOSSES)


# ------------------------------------------------------------------------------- which metric


@pytest.mark.parametrize(
    ("form", "metric", "direction"),
    [
        ("{{'loss': 0.0001, 'reward': {x}, 'kl': 0.01, 'epoch': {i}.0}}", "reward", "max"),
        (
            "Learning iteration {i}/99\n Mean reward: {x}\n Mean episode rew_tracking: 0.5",
            "Mean reward",
            "max",
        ),
        (
            "Learning iteration {i}/99\n Mean reward: {x}\n Episode_Reward/track: 0.5",
            "Mean reward",
            "max",
        ),
        (
            "class_loss = 9.0, total_loss = 15.5\n {i}: 4.8, {x} avg loss, 0.1 rate",
            "avg loss",
            "min",
        ),
    ],
)
def test_the_metric_that_is_looked_at(
    form: str, metric: str, direction: str, tmp_path: Path
) -> None:
    run = one(write(tmp_path / "log", lines(form)))
    assert (run.metric, run.direction) == (metric, direction)
    np.testing.assert_array_equal(run.loss, LOSSES)


def test_the_loss_of_training_stands_before_the_same_one_of_validation(tmp_path: Path) -> None:
    text = "epoch,validation/main/loss,main/loss\n" + lines("{i},9.5,{x}")
    run = one(write(tmp_path / "log.csv", text))
    assert run.metric == "main/loss"
    check(run, BY_ROW, LOSSES)


def test_means_stand_before_counts_and_deviations(tmp_path: Path) -> None:
    rows = [{"Loss/G": {"num": 1000, "mean": loss(i), "std": 0.3}, "kimg": 10 * i} for i in ROWS]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    run = one(write(tmp_path / "stats.jsonl", text))
    assert run.metric == "Loss/G/mean"
    check(run, BY_TEN, LOSSES)


# -------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("column", ["mode", "type", "dataset", "is_train", "split"])
def test_the_data_of_a_row_by_a_column(column: str, tmp_path: Path) -> None:
    words = ("True", "False") if column == "is_train" else ("train", "val")
    text = f"epoch,{column},loss\n" + lines(f"{{i}},{words[0]},{{x}}\n{{i}},{words[1]},9.5")
    run = one(write(tmp_path / "a.csv", text))
    assert run.metric == "train/loss"
    check(run, BY_ROW, LOSSES)
    np.testing.assert_array_equal(one(tmp_path / "a.csv", "val/loss").loss, [9.5] * 12)


@pytest.mark.parametrize(
    ("column", "train", "held_out"),
    [
        *(("eval", "false", "true"), ("val", "false", "true"), ("training", "true", "false")),
        *(("is_eval", "0", "1"), ("is_validation", "false", "true")),
    ],
)
def test_a_flag_says_of_what_data_a_row_is(
    column: str, train: str, held_out: str, tmp_path: Path
) -> None:
    both = [(i, flag, value) for i in ROWS for flag, value in ((train, loss(i)), (held_out, 9.5))]
    rows = [f'{{"epoch": {i}, "{column}": {flag}, "loss": {value}}}' for i, flag, value in both]
    table = "".join(f"{i},{flag},{value}\n" for i, flag, value in both)
    for log in (
        write(tmp_path / "a.csv", f"epoch,{column},loss\n{table}"),
        write(tmp_path / "a.jsonl", "\n".join(rows) + "\n"),
        write(tmp_path / "a.json", f"[{','.join(rows)}]"),
    ):
        run = one(log)
        assert run.metric == "train/loss"
        check(run, BY_ROW, LOSSES)
        np.testing.assert_array_equal(one(log, "val/loss").loss, [9.5] * 12)
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (run,) = gp.read_traces(pandas.DataFrame(json.loads(f"[{','.join(rows)}]")))
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize("column", ["val", "train", "eval"])
def test_a_metric_of_ones_and_zeros_is_no_flag(column: str, tmp_path: Path) -> None:
    text = f"epoch,{column},loss\n" + "".join(f"{i},{i % 2},{loss(i)}\n" for i in ROWS)
    run = one(write(tmp_path / "a.csv", text))
    assert run.metric == "loss"
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("step,metric,value", "{i},{name},{x}"),
        ("wall_time,tag,step,value", "1.6e9,{name},{i},{x}"),
        ("key,value,step,timestamp,run_uuid", "{name},{x},{i},160,abc"),
        ("", '{{"step": {i}, "name": "{name}", "value": {x}}}'),
    ],
)
def test_tables_with_a_row_a_number_have_one_curve_a_name(
    head: str, row: str, tmp_path: Path
) -> None:
    text = (head + "\n" if head else "") + "".join(
        row.format(i=i, name=name, x=x) + "\n"
        for i in ROWS
        for name, x in (("train_loss", loss(i)), ("val_loss", 9.5))
    )
    run = one(write(tmp_path / "log", text))
    assert run.metric == "train_loss"
    check(run, BY_ROW, LOSSES)
    assert {info.metric for info in gp.metrics_of(tmp_path / "log")} >= {"train_loss", "val_loss"}


@pytest.mark.parametrize("column", ["run", "run_id", "seed", "fold", "trial"])
def test_a_column_of_runs_gives_a_trace_each(column: str, tmp_path: Path) -> None:
    for by_step in (False, True):  # one run behind the other, or side by side
        rows = [(i, r) for i in ROWS for r in (1, 2)]
        rows = rows if by_step else sorted(rows, key=lambda row: row[1])
        text = f"{column},step,loss\n" + "".join(f"{r},{i},{loss(i) + r}\n" for i, r in rows)
        runs = gp.read_traces(write(tmp_path / "log.csv", text))
        assert [run.name for run in runs] == ["1", "2"]
        for r, run in enumerate(runs, 1):
            check(run, BY_ROW, [x + r for x in LOSSES])
            assert not run.notes


def test_a_table_with_a_column_for_each_run_is_read_as_the_cookbook_says(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = [f"{i},{loss(i)},{loss(i) + 1 if i < 15 else ''}\n" for i in range(1, 21)]
    file = write(tmp_path / "sweep.csv", "step,run_a,run_b\n" + "".join(rows))
    frame = pandas.read_csv(file)
    melted = gp.read_traces(frame.melt("step", var_name="run", value_name="loss"))
    assert [(run.name, run.metric) for run in melted] == [("run_a", "loss"), ("run_b", "loss")]
    named = [gp.read_traces(file, metric=each.metric)[0] for each in gp.metrics_of(file)]
    assert [run.metric for run in named] == ["run_a", "run_b"]
    for runs in (melted, named):
        check(runs[0], [*range(1, 21)], [loss(i) for i in range(1, 21)])
        check(runs[1], [*range(1, 15)], [loss(i) + 1 for i in range(1, 15)])


def test_two_columns_of_runs_tell_each_run_apart(tmp_path: Path) -> None:
    rows = "".join(
        f"{model},{seed},{i},{loss(i) + ord(model) + seed}\n"
        for model in "ab"
        for seed in (1, 2)
        for i in ROWS
    )
    runs = gp.read_traces(write(tmp_path / "log.csv", "model,seed,epoch,loss\n" + rows))
    assert [run.name for run in runs] == ["a/1", "a/2", "b/1", "b/2"]
    for run in runs:
        model, seed = run.name.split("/")
        check(run, BY_ROW, [x + ord(model) + int(seed) for x in LOSSES])
        assert run.notes == ()


def test_a_seed_for_each_run_is_no_part_of_its_name(tmp_path: Path) -> None:
    rows = "".join(f"{run},{seed},{i},{loss(i)}\n" for run, seed in ("a7", "b8") for i in ROWS)
    runs = gp.read_traces(write(tmp_path / "log.csv", "run,seed,epoch,loss\n" + rows))
    assert [run.name for run in runs] == ["a", "b"]


def test_a_column_that_says_which_rows_are_best_tells_no_runs_apart(tmp_path: Path) -> None:
    rows = "".join(f"{'best' if i % 2 else 'last'},{i},{loss(i)}\n" for i in ROWS)
    run = one(write(tmp_path / "log.csv", "model,epoch,loss\n" + rows))
    check(run, BY_ROW, LOSSES)


def test_runs_that_go_on_from_one_another_are_one(tmp_path: Path) -> None:
    text = "run_id,step,loss\n" + lines("{e},{i},{x}")
    check(one(write(tmp_path / "log.csv", text)), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("run-.-tag-val_accuracy.csv", "Wall time,Step,Value"),
        ("val_accuracy.csv", "timestamp,step,value"),
    ],
)
def test_a_column_of_values_is_called_as_its_file(name: str, head: str, tmp_path: Path) -> None:
    run = one(write(tmp_path / name, head + "\n" + lines("1.6e9,{i},{x}")))
    assert (run.metric, run.direction) == ("val_accuracy", "max")
    check(run, BY_ROW, LOSSES)
    rising = head + "\n" + "".join(f"1.6e9,{i},{-loss(i)}\n" for i in ROWS)
    run = one(write(tmp_path / "export.csv", rising))
    assert run.direction == "max"
    assert any("does not say which way" in note for note in run.notes)


def test_a_column_of_values_can_be_asked_for_by_each_of_its_names(tmp_path: Path) -> None:
    text = "Wall time,Step,Value\n" + lines("1.6e9,{i},{x}")
    file = write(tmp_path / "run-e1-tag-val_loss.csv", text)
    assert [info.metric for info in gp.metrics_of(file)] == ["val_loss"]
    for name in ("val_loss", "Value"):
        (run,) = gp.read_traces(file, metric=name)
        assert run.metric == name
        check(run, BY_ROW, LOSSES)
    (run,) = gp.read_traces(tmp_path, metric="val_loss")
    check(run, BY_ROW, LOSSES)
    with pytest.raises(gp.IoError, match="no metric 'loss', only val_loss"):
        gp.read_traces(file, metric="loss")


def test_fractions_of_epochs_that_only_fall_are_not_spread(tmp_path: Path) -> None:
    rows = "".join(f"{(len(LOSSES) - i) // 2 * 0.25},{x}\n" for i, x in enumerate(LOSSES))
    run = one(write(tmp_path / "log.csv", "epoch,loss\n" + rows))
    check(run, BY_ROW, LOSSES)
    assert run.notes == ("many rows at each epoch: rows are numbered from 1",)


@pytest.mark.parametrize("form", ["log.csv", "log.jsonl", "log"])
def test_nan_between_values_of_other_metrics_was_not_logged(form: str, tmp_path: Path) -> None:
    rows = {
        "log.csv": ("epoch,loss,val_loss\n", "{i},{x},{v}\n"),
        "log.jsonl": ("", '{{"epoch": {i}, "loss": {x}, "val_loss": {v}}}\n'),
        "log": ("", "epoch {i} loss {x} val_loss {v}\n"),
    }
    head, row = rows[form]
    nan = "NaN" if form == "log.jsonl" else "nan"

    def text(last: float | str) -> str:
        return head + "".join(
            row.format(
                i=i,
                x=last if i > 10 else loss(i),
                v=nan if i % 3 or (i > 10 and last == nan) else i,
            )
            for i in ROWS
        )

    run = one(write(tmp_path / form, text(0.5)), "val_loss")
    check(run, [3, 6, 9, 12], [3, 6, 9, 12])
    assert any("beside other metrics: not logged there" in note for note in run.notes)
    run = one(write(tmp_path / form, text(nan)))  # which diverged
    assert np.isnan(run.loss[10:]).all()
    assert len(run) == len(LOSSES)


@pytest.mark.parametrize("name", ["tokens", "tokens_seen", "num_tokens"])
def test_tokens_count_steps_only_where_nothing_else_does_and_they_rise(
    name: str, tmp_path: Path
) -> None:
    rows = lines("{n},{x}")
    check(one(write(tmp_path / "a.csv", f"{name},loss\n" + rows)), BY_TEN, LOSSES)
    rows = lines("{i},{n},{x}")
    check(one(write(tmp_path / "b.csv", f"step,{name},loss\n" + rows)), BY_ROW, LOSSES)
    rows = "".join(f"{2048 + 7 * (i % 3)},{loss(i)}\n" for i in ROWS)
    check(one(write(tmp_path / "c.csv", f"{name},loss\n" + rows)), BY_ROW, LOSSES)


@pytest.mark.parametrize("word", ["No log", "_", "#N/A", "?", "<NA>", ".", "-", "None"])
def test_a_word_for_no_value_costs_the_other_columns_nothing(word: str, tmp_path: Path) -> None:
    text = "epoch,train_loss,val_loss\n" + lines("{i},{x}," + word)
    check(one(write(tmp_path / "log.csv", text)), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (",Unnamed: 0,epoch,Loss", "{e},{e},{i},{x}"),
        ("sep=;\nepoch;loss", "{i};{x}"),
        ("epoch,loss", "{i},{x},"),
        ("# step, loss, loss_test", "{i} {x} 9.5"),
    ],
)
def test_tables_as_tools_save_them(head: str, row: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "log.csv", head + "\n" + lines(row))), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    "value",
    [
        "tensor({x}, device='cuda:0')",
        "tensor({x}, device='cuda:0', grad_fn=<NllLossBackward0>)",
        "tf.Tensor({x}, shape=(), dtype=float32)",
        "<tf.Tensor: shape=(), dtype=float32, numpy={x}>",
        "Array({x}, dtype=float32, weak_type=True)",
        "np.float32({x})",
    ],
)
def test_a_number_of_a_framework_is_read_as_its_number(value: str, tmp_path: Path) -> None:
    table = write(tmp_path / "log.csv", "epoch,loss\n" + lines('{i},"' + value + '"'))
    rows = write(tmp_path / "log.jsonl", lines('{{"epoch": {i}, "loss": "' + value + '"}}'))
    for log in (table, rows):
        check(one(log), BY_ROW, LOSSES)


ORDERS: dict[str, Callable[[int], int]] = {
    "newest": lambda i: 13 - i,
    "mixed": lambda i: i * 5 % 13,
}


@pytest.mark.parametrize("order", ORDERS)
def test_rows_in_another_order_are_sorted(order: str, tmp_path: Path) -> None:
    steps = [ORDERS[order](i) for i in ROWS]
    text = "step,loss\n" + "".join(f"{i},{loss(i)}\n" for i in steps)
    run = one(write(tmp_path / "log.csv", text))
    check(run, BY_ROW, LOSSES)
    assert "rows are not in the order of their steps: sorted" in run.notes


def test_the_end_of_an_epoch_as_step_minus_one(tmp_path: Path) -> None:
    rows = [(e, s) for e in range(3) for s in (100, 200, 300, -1)]
    text = "epoch,steps,cosine_pearson\n" + "".join(
        f"{e},{s},{loss(i)}\n" for i, (e, s) in enumerate(rows, 1)
    )
    check(one(write(tmp_path / "log.csv", text)), [100.0 * i for i in ROWS], LOSSES)


def test_rows_of_dllogger_within_a_console_log_are_read(tmp_path: Path) -> None:
    text = "starting\n" + "".join(
        "DLLL " + json.dumps({"step": [0, i], "data": {"train.loss": loss(i)}}) + "\n" for i in ROWS
    )
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


# --------------------------------------------------------------------- tables within a console log


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("| epoch | loss   |\n|-------|--------|", "| {i} | {x} |"),
        ("+---+---+\n| epoch | loss |\n+===+===+", "| {i:5d} | {x} |\n+---+---+"),
        ("| Training Loss | Epoch | Validation Loss |\n|:--:|:--:|:--:|", "| {x} | {i} | 9.5 |"),
        (
            "|  Epoch  |  Time  |  Mini-batch  |\n|         | (hh:mm:ss) |  Loss  |\n|=====|",
            "|  {i}  |  00:00:01  |   {x}  |",
        ),
        ("      Iter       Train Loss   Remaining Time ", "         {i}      {x}         12.00s"),
        ("E    #       LOSS NER  SCORE\n---  ------  ------  -----", "  0   {i}     {x}    0.10"),
    ],
)
def test_tables_that_are_drawn(head: str, row: str, tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", head + "\n" + lines(row)))
    assert "loss" in run.metric.lower()
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize(
    "form",
    [
        "Epoch {i}\nTraining\nloss: {x}\nValidation\nloss: 9.5",
        "Epoch #{i}\n  train:\n    loss: {x}\n  val:\n    loss: 9.5",
        "Epoch {i}\n=== Train ===\nloss: {x}\n=== Test ===\nloss: 9.5",
    ],
)
def test_headings_of_the_data(form: str, tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines(form)))
    assert run.metric == "loss"
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize("unit", ["s", "ms", " s", " sec", " minutes"])
def test_how_long_training_took_is_no_metric(unit: str, tmp_path: Path) -> None:
    form = f"Epoch {{i}} train: {{x}}{unit}, val: 2.5{unit}"
    with pytest.raises(gp.IoError, match="no known format"):
        gp.read_traces(write(tmp_path / "log", lines(form)))
    file = write(tmp_path / "log", lines(form + "\nEpoch {i} loss: {x}"))
    assert [info.metric for info in gp.metrics_of(file)] == ["loss"]


def test_names_that_are_offered_are_no_words_of_a_sentence(tmp_path: Path) -> None:
    text = lines("Step {i}: Ran {n} train steps in 9.5 secs, found {x} here")
    with pytest.raises(gp.IoError) as caught:
        gp.read_traces(write(tmp_path / "log", text), format="text")
    assert "Ran" not in str(caught.value)
    assert "pattern=" in str(caught.value)


# ------------------------------------------------------------------------------------ documents


def test_a_history_as_pandas_writes_it(tmp_path: Path) -> None:
    columns = {"loss": LOSSES, "val_loss": [9.5] * 12}
    document = {name: dict(zip(map(str, range(12)), c, strict=True)) for name, c in columns.items()}
    run = one(write(tmp_path / "history.json", json.dumps(document)))
    assert run.metric == "loss"
    check(run, [float(i) for i in range(12)], LOSSES)
    steps = {"train_loss": dict(zip([f"{10 * i}" for i in ROWS], LOSSES, strict=True))}
    steps["val_loss"] = {"50": 9.5, "100": 9.25}  # as one that is sparse has them
    file = write(tmp_path / "steps.json", json.dumps(steps))
    check(one(file), [10.0 * i for i in ROWS], LOSSES)
    check(one(file, "val_loss"), [50, 100], [9.5, 9.25])


def test_a_history_that_pandas_split_into_columns_and_data_counts_by_its_index(
    tmp_path: Path,
) -> None:
    document: dict[str, object] = {"columns": ["loss", "val_loss"], "index": [10 * i for i in ROWS]}
    document["data"] = [
        [value, 9.5 if i % 5 == 0 else None] for i, value in zip(ROWS, LOSSES, strict=True)
    ]
    file = write(tmp_path / "history.json", json.dumps(document))
    check(one(file), BY_TEN, LOSSES)
    check(one(file, "val_loss"), [50, 100], [9.5, 9.5])
    del document["index"]
    run = one(write(tmp_path / "bare.json", json.dumps(document)))
    check(run, BY_ROW, LOSSES)
    assert run.notes == ("no column of steps: rows are numbered from 1",)


@pytest.mark.parametrize("form", ["records", "columns", "lists", "index", "split", "history"])
@pytest.mark.parametrize("column", ["run", "seed"])
def test_a_column_tells_the_runs_of_a_document_apart(
    column: str, form: str, tmp_path: Path
) -> None:
    runs: list[object] = ["a", "b"] if column == "run" else [1, 2]
    rows = [
        {column: run, "epoch": i, "loss": loss(i) + k} for k, run in enumerate(runs) for i in ROWS
    ]
    found = gp.read_traces(write(tmp_path / "log.json", json.dumps(as_document(rows, form))))
    assert [run.name for run in found] == [str(run) for run in runs]
    for k, run in enumerate(found):
        check(run, BY_ROW, [value + k for value in LOSSES])


@pytest.mark.parametrize("form", ["records", "columns", "lists", "index", "split", "history"])
def test_a_column_of_a_document_tells_training_from_validation(form: str, tmp_path: Path) -> None:
    rows = [
        {"phase": phase, "epoch": i, "loss": loss(i) + k}
        for i in ROWS
        for k, phase in enumerate(["train", "val"])
    ]
    file = write(tmp_path / "log.json", json.dumps(as_document(rows, form)))
    check(one(file, "train/loss"), BY_ROW, LOSSES)
    check(one(file, "val/loss"), BY_ROW, [value + 1 for value in LOSSES])


def as_document(rows: list[dict[str, object]], form: str) -> object:
    """Lay rows out as pandas and people do."""
    by_row = {name: {str(i): row[name] for i, row in enumerate(rows)} for name in rows[0]}
    forms = {
        "records": rows,
        "columns": by_row,
        "lists": {name: list(column.values()) for name, column in by_row.items()},
        "index": {str(i): row for i, row in enumerate(rows)},
        "split": {
            "columns": list(rows[0]),
            "index": list(range(len(rows))),
            "data": [list(row.values()) for row in rows],
        },
        "history": {"args": {"lr": 0.1}, "history": rows},
    }
    return forms[form]


VALID = [2 * value for value in LOSSES]
DOCUMENTS: dict[str, tuple[object, dict[str, list[float]]]] = {
    "parts": (
        {"val": {"loss": VALID}, "train": {"loss": LOSSES, "acc": VALID}},
        {"train/loss": LOSSES, "val/loss": VALID, "train/acc": VALID},
    ),
    "parts of a part": (
        {"log": {"test": {"loss": VALID}, "train": {"loss": LOSSES}}, "seconds": 9},
        {"train/loss": LOSSES, "test/loss": VALID},
    ),
    "values with their steps": (
        {
            "val_loss": {"step": [10, 20], "value": [3, 2]},
            "loss": {"steps": BY_ROW, "values": LOSSES},
        },
        {"loss": LOSSES, "val_loss": [3, 2]},
    ),
    "settings before": (
        {"args": {"lr": 0.1}, "metrics": {"train_loss": LOSSES}, "best_epoch": 9, "test_acc": 0.5},
        {"train_loss": LOSSES},
    ),
    "settings behind": (
        {"history": {"loss": LOSSES}, "params": {"epochs": 99, "steps": 20, "verbose": 1}},
        {"loss": LOSSES},
    ),
    "its end before": (
        {"epochs": 12, "final_loss": 0.5, "train": {"loss": LOSSES}},
        {"loss": LOSSES},
    ),
    "where it ended": (
        {"epoch": 12, "best_val_loss": 0.5, "metrics": {"train_loss": LOSSES}},
        {"train_loss": LOSSES},
    ),
    "rows": (
        {"log": [{"epoch": i, "loss": loss(i)} for i in ROWS], "final": {"loss": 0.5}},
        {"loss": LOSSES},
    ),
}


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_history_of_a_document_is_read_by_its_name(
    form: str, indent: int | None, tmp_path: Path
) -> None:
    document, expected = DOCUMENTS[form]
    file = write(tmp_path / "log.json", json.dumps(document, indent=indent) + "\n")
    assert one(file).metric == next(iter(expected))
    for metric, values in expected.items():
        np.testing.assert_array_equal(one(file, metric).loss, values)


def test_the_first_row_of_a_log_is_no_document_though_it_has_lists(tmp_path: Path) -> None:
    row = {"epoch": 3, "loss": 2.5, "val": {"acc": [0.1, 0.2, 0.3]}, "worst": [{"loss": 9}] * 2}
    check(one(write(tmp_path / "log.jsonl", json.dumps(row) + "\n")), [3], [2.5])


@pytest.mark.parametrize("indent", [None, 1])
def test_steps_above_a_history_count_its_rows_where_they_are_as_many(
    indent: int | None, tmp_path: Path
) -> None:
    steps = [10.0 * i for i in ROWS]
    document = {"step": steps, "history": {"loss": LOSSES}, "val": {"acc": [0.1, 0.2, 0.3]}}
    file = write(tmp_path / "log.json", json.dumps(document, indent=indent))
    check(one(file), steps, LOSSES)
    check(one(file, "acc"), [1, 2, 3], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "runs",
    [
        {"runs": {"a": {"loss": LOSSES}, "b": {"loss": VALID}}, "lr": 0.1},
        [{"name": "a", "lr": 0.1, "loss": LOSSES}, {"name": "b", "lr": 0.2, "loss": VALID}],
        {
            "1": {"name": "a", "log": [{"step": i, "loss": loss(i)} for i in ROWS]},
            "2": {"loss": VALID},
        },
    ],
    ids=["by a key", "in a list", "by number"],
)
def test_a_document_may_have_several_runs(runs: object, tmp_path: Path) -> None:
    found = gp.read_traces(write(tmp_path / "log.json", json.dumps(runs)))
    assert found[0].name == "a"
    assert [run.loss.tolist() for run in found] == [LOSSES, VALID]


def test_the_log_of_catboost_has_the_names_of_its_metrics_apart(tmp_path: Path) -> None:
    about = [{"best_value": "Min", "name": "RMSE"}]
    document = {
        "meta": {"test_sets": ["test"], "test_metrics": about, "learn_metrics": about}
        | {"learn_sets": ["learn"], "iteration_count": 100},
        "iterations": [
            {"iteration": i, "learn": [loss(i)], "test": [9.5], "passed_time": i / 8} for i in ROWS
        ],
    }
    for indent in (None, 1):
        file = write(tmp_path / "catboost_training.json", json.dumps(document, indent=indent))
        check(one(file), BY_ROW, LOSSES)
        assert one(file).metric == "learn/RMSE"
        assert one(file, "test/RMSE").loss.tolist() == [9.5] * 12


def test_of_a_list_of_rows_that_was_cut_the_whole_ones_are_read(tmp_path: Path) -> None:
    rows = [{"main/loss": loss(i), "epoch": i} for i in ROWS]
    for indent in (None, 1, 4):
        text = json.dumps(rows, indent=indent)
        run = one(write(tmp_path / "log", text[: -8 if indent is None else -12]))
        check(run, BY_ROW[:-1], LOSSES[:-1])
        assert "the file is cut: its last row was left out" in run.notes
        for end in range(text.rindex("{") + 1, text.rindex("}")):
            check(one(write(tmp_path / "log", text[:end])), BY_ROW[:-1], LOSSES[:-1])
    apart = ("," + " " * 200).join(map(json.dumps, rows))
    check(one(write(tmp_path / "log", f"[{apart[:-8]}")), BY_ROW[:-1], LOSSES[:-1])


def test_a_document_that_was_cut_says_so(tmp_path: Path) -> None:
    text = json.dumps({"loss": LOSSES, "val_loss": LOSSES}, indent=2)
    with pytest.raises(gp.IoError, match="ends too early, as if it was cut"):
        gp.read_traces(write(tmp_path / "history.json", text[:-30]))


def test_the_last_row_of_a_panel_of_wandb_may_be_cut(tmp_path: Path) -> None:
    head = '"Step","a - loss","a - loss__MIN","a - loss__MAX"\n'
    text = head + "".join(f'"{i}","{loss(i)}","{loss(i)}","{loss(i)}"\n' for i in ROWS)
    for lost in (10, 20):
        run = one(write(tmp_path / "panel.csv", text[:-lost]))
        check(run, BY_ROW[:-1], LOSSES[:-1])
        assert "the last row is cut: left out" in run.notes


# -------------------------------------------------------------------------------------- folders


def state(rows: range) -> str:
    history = [{"step": 10 * i, "loss": loss(i)} for i in rows]
    return json.dumps({"log_history": history, "global_step": 10 * rows[-1]})


def test_summaries_beside_a_curve_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "trainer_state.json", state(ROWS))
    write(tmp_path / "all_results.json", json.dumps({"epoch": 3.0, "train_loss": 0.5}))
    write(tmp_path / "eval_results.json", json.dumps({"epoch": 3.0, "eval_loss": 0.5}, indent=1))
    write(tmp_path / "tokenizer.json", json.dumps({"model": {"vocab": {"loss": 2, "step": 3}}}))
    write(tmp_path / "scores.csv", "id,score\n" + lines("{i},{x}"))
    write(tmp_path / "time_left.tsv", "iter\tPassed\tRemaining\n" + lines("{i}\t{n}\t1"))
    (run,) = gp.read_traces(tmp_path)
    assert run.name == "trainer_state.json"
    (tmp_path / "trainer_state.json").unlink()
    assert {each.name for each in gp.read_traces(tmp_path)} >= {"all_results.json"}


@pytest.mark.parametrize("name", ["metrics_epoch_", "seed[1]_epoch_", "a*_epoch_"])
@pytest.mark.parametrize("indent", [None, 2])
def test_files_of_an_epoch_each_are_one_run(indent: int | None, name: str, tmp_path: Path) -> None:
    for i in ROWS:
        row = {"best_epoch": 1, "epoch": i, "training_loss": loss(i), "validation_loss": 9.5}
        write(tmp_path / f"{name}{i}.json", json.dumps(row, indent=indent))
    check(one(tmp_path / f"{name}2.json"), [2], [loss(2)])
    (run,) = gp.read_traces(tmp_path)
    assert run.metric == "training_loss"
    check(run, BY_ROW, LOSSES)


def test_a_document_may_have_an_asterisk_in_its_name(tmp_path: Path) -> None:
    file = write(tmp_path / "history*.json", json.dumps({"loss": LOSSES}))
    check(one(file), BY_ROW, LOSSES)


def test_metrics_of_a_folder_are_called_by_path(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "log.csv", "step,loss,acc\n" + lines("{i},{x},0.5"))
    found = {(info.run, info.metric): info.read for info in gp.metrics_of(tmp_path)}
    assert found == {
        (f"{run}/log.csv", metric): metric == "loss" for run in "ab" for metric in ("loss", "acc")
    }


def test_metrics_of_a_folder_are_those_of_the_long_form_too(tmp_path: Path) -> None:
    write(tmp_path / "long.csv", "curve,step,value,other,who\nx,1,2,3,me\nx,2,1,4,me\n")
    write(tmp_path / "rest.csv", "curve,step,third\ny,1,2\ny,2,1\n")
    expected = {("x", "value"): True, ("x", "other"): False, ("y", "third"): False}
    for file in ("", "wide.csv"):
        if file:
            write(tmp_path / file, "step,loss,acc\n" + lines("{i},{x},0.5"))
            expected |= {(file, "loss"): True, (file, "acc"): False}
        listed = {(info.run, info.metric): info.read for info in gp.metrics_of(tmp_path)}
        assert listed == expected
    (third,) = gp.metrics_of(tmp_path / "rest.csv")
    assert (third.metric, third.read) == ("third", False)


def test_an_output_folder_of_the_trainer_is_one_run_and_not_one_more_for_each_checkpoint(
    tmp_path: Path,
) -> None:
    out = tmp_path / "a" / "out"
    for last in (3, 9, 12):
        write(out / f"checkpoint-{10 * last}" / "trainer_state.json", state(range(1, last + 1)))
    write(out / "checkpoint-5" / "trainer_state.json", state(range(3, 9)))  # of another attempt
    found = {run.name: run for run in gp.read_traces(tmp_path)}
    longest = "a/out/checkpoint-120/trainer_state.json"
    assert sorted(found) == [longest, "a/out/checkpoint-5/trainer_state.json"]
    note = "checkpoints that hold the beginning of this run are not read again"
    assert found[longest].notes == (note,)
    write(out / "trainer_state.json", state(ROWS))
    assert {run.name for run in gp.read_traces(out)} == {
        "trainer_state.json",
        "checkpoint-5/trainer_state.json",
    }
    (alone,) = gp.read_traces(out / "checkpoint-30")
    check(alone, [10, 20, 30], LOSSES[:3])
    assert len(gp.metrics_of(tmp_path)) == 2


def test_a_run_is_no_past_run_of_how_it_begins(tmp_path: Path) -> None:
    for last in (10, 11, 12):
        folder = tmp_path / "out" / f"saved-{10 * last}"
        folder.mkdir(parents=True)
        write(folder / "trainer_state.json", state(range(1, last + 1)))
    other = tmp_path / "out" / "other"
    other.mkdir()
    write(other / "trainer_state.json", state(range(2, 14)))
    (found,) = collections(tmp_path, max_curves=9)
    for curve in found.curves:
        past = {each.name.split("/")[-2] for each in found.others(curve)}
        assert past == ({"other"} if "saved" in curve.name else past)
        assert len(past) == (1 if "saved" in curve.name else 3)


# ------------------------------------------------------------------------------------- monitors


def test_a_monitor_that_was_cut_gives_no_half_number(tmp_path: Path) -> None:
    heads = {
        "nvml.csv": ("time_s,gpu,power_w\n", "{i},0,{w}\n"),
        "nvml.jsonl": ("", '{{"time_s": {i}, "gpu": 0, "power_w": {w}}}\n'),
        "power.csv": ("time,power0\n", "{i},{w}\n"),
        "windows.csv": (
            "start_time,window_name,elapsed_time,gpu0_energy\n",
            "{i},step,0.5,{w}\n",
        ),
        "dmon.txt": ("# gpu   pwr\n# Idx     W\n", "    0   {w}\n"),
    }
    for name, (head, row) in heads.items():
        text = head + "".join(row.format(i=i, w=200 + i) for i in ROWS)
        whole = gp.read_metrics(write(tmp_path / name, text))
        for lost in (1, 2, 3):
            cut = gp.read_metrics(write(tmp_path / name, text[:-lost]))
            complete = name == "nvml.jsonl" and lost == 1
            assert any("not finished" in note for note in cut.notes) != complete, name
            for column in cut.columns:
                kept = cut[column].shape[0]
                np.testing.assert_array_equal(cut[column], whole[column][:kept])


def test_a_table_of_nvidia_smi_without_units(tmp_path: Path) -> None:
    head = "timestamp, index, utilization.gpu, memory.used, power.draw\n"
    text = head + "".join(f"2024/05/01 12:00:{i:02d}.1, 0, 80, 1024, 200.5\n" for i in ROWS)
    metrics = gp.read_metrics(write(tmp_path / "smi.csv", text))
    assert metrics["utilization"].max() == pytest.approx(0.8)
    assert metrics["memory_used_gb"].max() == pytest.approx(1.0)
    lost = "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error\n"
    again = gp.read_metrics(write(tmp_path / "lost.csv", text + lost + text[len(head) :]))
    assert any("device handle" in note for note in again.notes)
    np.testing.assert_array_equal(again["power_w"], metrics["power_w"])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_a_monitor_in_utf16_as_powershell_writes_it_reads_like_one_in_utf8(
    encoding: str, mark: str, tmp_path: Path
) -> None:
    head = "timestamp, index, utilization.gpu [%], power.draw [W]\n"
    text = head + "".join(f"2024/05/01 12:00:{2 * i:02d}.1, 0, 90 %, {200 + i} W\n" for i in ROWS)
    plain = gp.read_metrics(write(tmp_path / "plain.csv", text))
    (tmp_path / "smi.csv").write_bytes((mark + text).encode(encoding))
    found = gp.read_metrics(tmp_path / "smi.csv")
    assert found.notes == plain.notes
    np.testing.assert_array_equal(found.time_s, plain.time_s)
    np.testing.assert_array_equal(found.energy_j(), plain.energy_j())
    json_too = tmp_path / "history.json"
    json_too.write_bytes((mark + json.dumps({"loss": LOSSES}, indent=1)).encode(encoding))
    check(one(json_too), BY_ROW, LOSSES)


def test_a_gpu_without_power_beside_one_that_has_it(tmp_path: Path) -> None:
    head = "timestamp, index, utilization.gpu [%], power.draw [W]\n"
    row = "2024/05/01 12:00:{i:02d}.1, 0, 90 %, 100 W\n2024/05/01 12:00:{i:02d}.1, 1, 90 %, [N/A]\n"
    text = head + "".join(row.format(i=i) for i in ROWS)
    metrics = gp.read_metrics(write(tmp_path / "smi.csv", text))
    assert "2 GPUs" in repr(metrics)
    with pytest.raises(gp.InputError, match="no power and no energy counter"):
        metrics.energy_j()


def test_rows_that_a_profile_leaves_out_count_by_its_total(tmp_path: Path) -> None:
    rule = "-" * 12 + "  " + "-" * 12 + "  " + "-" * 12 + "  " + "-" * 12 + "\n"
    rows = "Name  Self CPU  CPU total  # of Calls\n" + rule + "aten::mm  6.000ms  6.000ms  5\n"
    text = rule + rows + rule + "Self CPU time total: 20.000ms\n"
    profile = gp.read_profile(write(tmp_path / "table.txt", text))
    assert profile.step_seconds == pytest.approx(0.020)
    assert any("rows that the table lacks" in note for note in profile.notes)
