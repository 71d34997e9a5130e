# SPDX-License-Identifier: Apache-2.0
"""Habits of programs whose logs were read for the first time, or were misread before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from log_files import BY_ROW, BY_TEN, LOSSES, ROWS, check, loss, one, write

import glidepath as gp


def epochs(form: str, batches: range, count: int = 3) -> str:
    """Write a line a batch of each epoch."""
    return "".join(
        form.format(e=e, b=b, x=round(4 - e - b / 1000, 3)) + "\n"
        for e in range(count)
        for b in batches
    )


# ------------------------------------------------------------------------------- what counts


def test_an_epoch_that_data_are_in_counts(tmp_path: Path) -> None:
    """A person wrote "TRAIN in epoch 0 , step 50": no epoch is a restart of the one before."""
    text = epochs("TRAIN in epoch {e} , step {b}, loss = {x}", range(0, 400, 100))
    run = one(write(tmp_path / "log", text))
    np.testing.assert_array_equal(run.step, np.arange(0, 1200, 100))
    assert "restarted" not in " ".join(run.notes)


@pytest.mark.parametrize("prefix", ["", "INFO:tensorflow:", "I1215 08:37:02.2 139472 train.py:8] "])
def test_a_step_in_brackets_may_be_padded_with_blanks(prefix: str, tmp_path: Path) -> None:
    text = "".join(
        f"{prefix}[{10 * i:6d}] | gnorm  0.36 lr  0.00025 | loss {loss(i)}\n" for i in ROWS
    )
    run = one(write(tmp_path / "log", text))
    check(run, BY_TEN, LOSSES, [0.00025] * 12)


@pytest.mark.parametrize(
    ("form", "batches", "again", "planned"),
    [
        ("[epoch: {e}/3, batch: {b}/%d] loss: {x}", (500, 400), (50, 40), 150),
        ("Epoch {e} Step: {b}, loss: {x}", (500, 500), (40, 40), None),
    ],
)
def test_a_run_that_begins_anew_has_epochs_of_its_own_length(
    form: str, batches: tuple[int, int], again: tuple[int, int], planned: int | None, tmp_path: Path
) -> None:
    """An appended log tells of a run of shorter epochs: its steps are not those of the first."""
    text = ""
    for length, last in (batches, again):
        text += epochs(form.replace("%d", str(length)), range(last // 4, last + 1, last // 4))
    run = one(write(tmp_path / "log", text))
    own = range(again[1] // 4, again[1] + 1, again[1] // 4)
    np.testing.assert_array_equal(run.step, [again[0] * e + b for e in range(3) for b in own])
    assert run.planned_steps == planned


def test_a_score_of_each_epoch_is_no_score_of_its_last_batch(tmp_path: Path) -> None:
    """The last batch that is logged is 425 in some epochs and 625 in others."""
    text = "".join(
        "".join(f"[epoch: {e}/12, iter: {b}/640] cost_a: 0.5\n" for b in range(0, last, 25))
        + f"Validation accuracy: {e / 20}\n"
        for e, last in enumerate([450, 450, *[650] * 6, 450, *[650] * 3])
    )
    run = one(write(tmp_path / "log", text), "Validation accuracy")
    check(run, [float(e) for e in range(12)], [e / 20 for e in range(12)])
    assert run.planned_steps == 12


# ------------------------------------------------------------------------------- which metric


@pytest.mark.parametrize("name", ["Train_Return", "test/reward", "train_return", "eval/return"])
def test_a_return_of_some_data_is_what_a_run_is_for(name: str, tmp_path: Path) -> None:
    rows = [f"{i},{loss(i)},{-loss(i)}\n" for i in ROWS]
    file = write(tmp_path / "log.csv", f"Iteration,Critic_Loss,{name}\n" + "".join(rows))
    run = one(file)
    assert (run.metric, run.direction) == (name, "max")


@pytest.mark.parametrize(
    ("form", "metric"),
    [
        ("Step {i}: det loss: 0.5, bbox loss: 0.1, all_loss: {x}", "all_loss"),
        ("iter {i} loss_weight 0.5 loss_a {x}", "loss_a"),
        ("iter {i} router_aux_loss_coef 0.5 loss_a {x}", "loss_a"),
        ("[epoch:  0, iter:  {i}, lr:(1.0e-04,)] [eta: 1:02:03] l_pix: {x} ", "l_pix"),
        ("[epoch:  0, iter:  {i}, lr:(1.0e-04,)] l_g_pix: {x} l_d_real: 0.5 ", "l_g_pix"),
    ],
)
def test_the_whole_loss_and_no_weight_of_one_is_read(
    form: str, metric: str, tmp_path: Path
) -> None:
    run = one(write(tmp_path / "log", "".join(form.format(i=i, x=loss(i)) + "\n" for i in ROWS)))
    assert (run.metric, run.direction) == (metric, "min")
    np.testing.assert_array_equal(run.step, BY_ROW)
    np.testing.assert_array_equal(run.loss, LOSSES)


def test_an_error_of_python_is_no_metric(tmp_path: Path) -> None:
    text = "  0%|          | 0/10 [00:00<?, ?it/s]\n" + 3 * (
        "torch.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.\n"
    )
    with pytest.raises(gp.IoError):
        gp.read_traces(write(tmp_path / "train.err", text))


# ------------------------------------------------------------------------------- in Chinese


@pytest.mark.parametrize(
    "form",
    [
        "第{i}轮，训练损失：{x}，验证损失：9.5，准确率：0.5",
        "2024-05-01 10:00:00,123 - INFO - 第 {i}/12 轮 训练损失: {x} 学习率: 0.1",
        "轮次: {i}/12, 训练集损失值: {x}, 最佳验证损失: 9.5",
        "[INFO] Epoch {i}/12 训练损失 {x} 验证准确率 40.5%",
        "第3折 第{i}个epoch 訓練損失: {x}",
    ],
)
def test_a_log_in_chinese_is_read_by_its_words(form: str, tmp_path: Path) -> None:
    text = "".join(form.format(i=i, x=loss(i)) + "\n" for i in ROWS)
    run = one(write(tmp_path / "log", "训练轮数: 12\n" + text))
    np.testing.assert_array_equal(run.step, BY_ROW)
    np.testing.assert_array_equal(run.loss, LOSSES)
    assert (run.metric, run.direction) == ("train loss", "min")


def test_a_metric_of_a_log_in_chinese_may_be_called_as_the_log_calls_it(tmp_path: Path) -> None:
    rows = "".join(f"第{i}轮，训练损失：9.5，验证损失：{loss(i)}\n" for i in ROWS)
    file = write(tmp_path / "log", rows)
    for name in ("验证损失", "val loss"):
        run = one(file, name)
        np.testing.assert_array_equal(run.loss, LOSSES)
        assert run.metric == "val loss"
    with pytest.raises(gp.IoError, match="no metric '困惑度', only train loss, val loss"):
        one(file, "困惑度")


def test_a_table_in_chinese_keeps_its_names(tmp_path: Path) -> None:
    rows = "".join(f"{10 * i},{loss(i)},{i / 20},0.1\n" for i in ROWS)
    file = write(tmp_path / "log.csv", "步骤,损失,准确率,学习率\n" + rows)
    run = one(file)
    check(run, BY_TEN, LOSSES, [0.1] * 12)
    assert run.metric == "损失"
    assert one(file, "准确率").direction == "max"


# ------------------------------------------------------------------------------- notebooks


def notebook(path: Path, *cells: list[dict[str, object]]) -> Path:
    """Write a notebook as Jupyter saves it: a page of text, and cells with their outputs."""
    page = {"cell_type": "markdown", "metadata": {}, "source": ["epoch 1 loss 9.5\n"]}
    codes = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs}
        for outputs in cells
    ]
    return write(path, json.dumps({"cells": [page, *codes], "nbformat": 4, "nbformat_minor": 5}))


def printed(text: str) -> dict[str, object]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def table(kind: str) -> dict[str, object]:
    """A table as the Trainer displays it, or as pandas shows a data frame."""
    head = "<tr style='text-align: left;'><th>Step</th><th>Training Loss</th></tr>"
    rows = "".join(f"<tr>\n<td>{10 * i}</td>\n<td><b>{loss(i)}</b></td>\n</tr>" for i in ROWS)
    page = f"<div><progress></progress></div>\n<table class='dataframe'>{head}{rows}</table><p>"
    data = {"text/html": [page], "text/plain": ["<IPython.core.display.HTML object>"]}
    return {"output_type": kind, "metadata": {}, "data": data}


def test_a_notebook_is_read_by_what_its_cells_printed(tmp_path: Path) -> None:
    """A person saved a notebook of Keras: each cell that trained is a run, others are none."""
    keras = "".join(
        f"Epoch {i}/12\n1/9 [....] - ETA: 3s - loss: 9.5\x08\x08\r"
        f"9/9 [==========] - 1s - loss: {x}\n"
        for i, x in enumerate(LOSSES, 1)
    )
    short = printed("Epoch 1, loss: 0.5\nEpoch 2, loss: 0.4\n")
    file = notebook(tmp_path / "a.ipynb", [short], [printed(keras[:300]), printed(keras[300:])], [])
    run = one(file)
    check(run, BY_ROW, LOSSES)
    assert (run.name, run.metric, run.planned_steps) == ("a.ipynb", "loss", 12)
    assert [each.run for each in gp.metrics_of(file)] == ["a.ipynb"]

    more = notebook(tmp_path / "b.ipynb", [short], [printed(keras)], [printed(keras)])
    assert [each.name for each in gp.read_traces(more)] == ["cell 3", "cell 4"]


def test_a_notebook_is_read_by_the_table_of_the_trainer(tmp_path: Path) -> None:
    file = notebook(tmp_path / "a.ipynb", [printed("loading\n"), table("display_data")])
    run = one(file, "Training Loss")
    check(run, BY_TEN, LOSSES)


def test_a_data_frame_of_a_notebook_is_no_log_of_it(tmp_path: Path) -> None:
    file = notebook(tmp_path / "a.ipynb", [table("execute_result")])
    with pytest.raises(gp.IoError, match=r"a\.ipynb: no cell has printed a loss or a score at 3"):
        gp.read_traces(file)
    write(tmp_path / "log", "".join(f"step {i} loss {x}\n" for i, x in enumerate(LOSSES, 1)))
    assert [run.name for run in gp.read_traces(tmp_path)] == ["log"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"cells": 5}', '{"cells": [5, {"outputs": 5}, {"outputs": [5, {}]}]}'],
)
def test_what_is_no_notebook_is_refused_by_its_name(text: str, tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match=r"a\.ipynb"):
        gp.read_traces(write(tmp_path / "a.ipynb", text))
