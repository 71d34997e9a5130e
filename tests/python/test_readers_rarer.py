# SPDX-License-Identifier: Apache-2.0
"""Logs of tools that fewer people use: lines in the form that each prints, with made-up numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from log_files import BY_ROW, LOSSES, ROWS, check, loss, one, write

import glidepath as gp


def score(i: int) -> float:
    return round(0.9 - 0.6 / math.sqrt(i), 4)


SCORES = [score(i) for i in ROWS]
RATES = [round(0.01 - i / 10000, 4) for i in ROWS]


def test_an_evaluation_has_another_number_of_iterations_than_training(tmp_path: Path) -> None:
    # PaddleClas
    text = "".join(
        f"[2022/03/30 06:55:12] ppcls INFO: [Train][Epoch {i // 4 + 1}/3][Iter: {10 * (i % 4)}/40]"
        f"lr(PiecewiseDecay): 0.0125, top1: {score(i + 1)}, loss: {x}, eta: 0:00:56\n"
        + f"[2022/03/30 06:57:06] ppcls INFO: [Eval][Epoch {i // 4 + 1}][Iter: 0/16]loss: 2.5\n"
        * (i % 4 == 3)
        for i, x in enumerate(LOSSES)
    )
    run = one(write(tmp_path / "train.log", text), "loss")
    np.testing.assert_array_equal(run.step, [10.0 * i for i in range(12)])
    np.testing.assert_array_equal(run.loss, LOSSES)
    assert run.planned_steps == 120


def nnunet(dice: str) -> str:
    """Lines of nnU-Net, a blank at the end of each, its version 2."""
    return "Using splits of 20 training and 5 validation cases.\n" + "".join(
        f"2024-04-26 09:39:10.910043: Epoch {i - 1} \n"
        f"2024-04-26 09:39:10.914042: lr: {RATES[i - 1]} \n"
        f"2024-04-26 09:41:39.493872: train_loss {-score(i)} \n"
        f"2024-04-26 09:41:39.498914: val_loss {0.05 - score(i):.4f} \n"
        f"2024-04-26 09:41:39.501914: {dice.format(a=score(i), b=score(i + 1))} \n"
        "2024-04-26 09:41:39.505914: Epoch time: 148.59 s \n"
        for i in ROWS
    )


def test_a_line_of_a_score_alone_is_of_the_epoch_before_it(tmp_path: Path) -> None:
    file = write(tmp_path / "log.txt", nnunet("Average global foreground Dice: [{a}]"))
    check(one(file), [i - 1.0 for i in ROWS], [-x for x in SCORES], RATES)
    dice = one(file, "Average global foreground Dice")
    check(dice, [i - 1.0 for i in ROWS], SCORES, RATES)
    assert dice.direction == "max"


@pytest.mark.parametrize("form", ["[{a}, {b}]", "[np.float32({a}), np.float32({b})]", "[{a} {b}]"])
def test_each_number_of_a_list_is_a_metric(form: str, tmp_path: Path) -> None:
    file = write(tmp_path / "log.txt", nnunet(f"Pseudo dice {form}"))
    assert one(file).metric == "train_loss"
    for name, first in (("Pseudo dice", 1), ("Pseudo dice[1]", 2)):
        check(
            one(file, name),
            [i - 1.0 for i in ROWS],
            [score(i + first - 1) for i in ROWS],
            RATES,
        )


def test_a_class_that_a_list_lacks_keeps_the_names_of_those_behind_it(tmp_path: Path) -> None:
    file = write(tmp_path / "log.txt", nnunet("Pseudo dice [{a}, nan, {b}]"))
    np.testing.assert_array_equal(one(file, "Pseudo dice[2]").loss, [score(i + 1) for i in ROWS])


def test_what_stands_in_brackets_behind_a_metric_is_of_its_name(tmp_path: Path) -> None:
    text = "".join(
        f"epoch {i} lr(Cosine): 0.1, F1 (macro) = {score(i)}, F1 (micro) = {score(i + 1)}\n"
        f" mean average precision (mAP@0.50) = {score(i)}, or {100 * score(i):.2f} % \n"
        for i in ROWS
    )
    file = write(tmp_path / "log.txt", text)
    check(one(file, "F1 (macro)"), BY_ROW, SCORES, [0.1] * 12)
    np.testing.assert_array_equal(one(file, "F1 (micro)").loss, [score(i + 1) for i in ROWS])
    check(one(file, "mean average precision (mAP@0.50)"), BY_ROW, SCORES, [0.1] * 12)
    assert {each.direction for each in gp.metrics_of(file) if "F1" in each.metric} == {"max"}


def test_the_twelve_numbers_of_coco_are_metrics_each(tmp_path: Path) -> None:
    def numbers(i: int, kind: str, plus: float) -> str:
        row = " Average {} @[ IoU={:<9} | area={:>6s} | maxDets={:>3d} ] = {:.4f}\n"
        precision, recall = "Precision  (AP)", "Recall     (AR)"
        return f"IoU metric: {kind}\n" + "".join(
            [
                row.format(precision, "0.50:0.95", "all", 100, score(i) + plus),
                row.format(precision, "0.50", "all", 100, score(i + 1) + plus),
                row.format(precision, "0.50:0.95", "small", 100, -1),
                row.format(recall, "0.50:0.95", "all", 1, score(i + 2) + plus),
                row.format(recall, "0.50:0.95", "large", 100, score(i + 3) + plus),
            ]
        )

    text = "".join(
        f"Epoch: [{i}]  [ 0/20]  eta: 0:00:54  lr: 0.1  loss: {loss(i) + 1:.4f} (0.5)\n"
        f"Epoch: [{i}]  [19/20]  eta: 0:00:00  lr: 0.1  loss: {loss(i)} (0.5)\n"
        + numbers(i, "bbox", 0)
        + numbers(i, "segm", -0.25)
        for i in ROWS
    )
    file = write(tmp_path / "log.txt", text)
    assert one(file).metric == "loss"
    names = {each.metric: each for each in gp.metrics_of(file)}
    assert set(names) == {"loss", "lr"} | {
        f"{kind} {name}"
        for kind in ("bbox", "segm")
        for name in ("AP", "AP50", "recall@1", "recall large")
    }
    for name, first, plus in (
        ("bbox AP", 0, 0),
        ("bbox AP50", 1, 0),
        ("bbox recall@1", 2, 0),
        ("segm AP", 0, -0.25),
        ("segm recall large", 3, -0.25),
    ):
        expected = [score(i + first) + plus for i in ROWS]
        np.testing.assert_allclose(one(file, name).loss, expected, atol=1e-9)
        assert names[name].direction == "max"


def test_a_table_may_have_comments_below_its_header(tmp_path: Path) -> None:
    # lcurve.out of DeePMD-kit
    text = "#  step      rmse_val    rmse_trn      lr\n# If there is no data, rmse_* is nan\n"
    text += "".join(f"{100 * i:7d}      {loss(i) + 1:.4f}    {loss(i)}    1.0e-03\n" for i in ROWS)
    file = write(tmp_path / "lcurve.out", text)
    check(one(file, "rmse_trn"), [100.0 * i for i in ROWS], LOSSES, [1e-3] * 12)


@pytest.mark.parametrize("metric", ["", " 0.25"])
def test_the_terms_of_a_loss_without_names_are_summed(metric: str, tmp_path: Path) -> None:
    # loss.dat of DeepXDE
    text = "# step, loss_train, loss_test, metrics_test\n" + "".join(
        f"{1000 * i:.18e} {loss(i):.18e} 0.5 {2 * loss(i):.18e} 0.25{metric}\n" for i in ROWS
    )
    file = write(tmp_path / "loss.dat", text)
    steps = [1000.0 * i for i in ROWS]
    check(one(file), steps, [x + 0.5 for x in LOSSES])
    assert one(file).metric == "loss_train"
    assert "2 terms of a loss in each row: loss_train is their sum" in one(file).notes
    check(one(file, "loss_train[0]"), steps, LOSSES)
    check(one(file, "loss_test"), steps, [2 * x + 0.25 for x in LOSSES])
    names = {each.metric for each in gp.metrics_of(file)}
    assert ("metrics_test" in names) == bool(metric)
    write(file, text.rstrip()[:-30])  # a row that its writer did not finish
    check(one(file), steps[:-1], [x + 0.5 for x in LOSSES[:-1]])


def test_a_table_that_is_printed_may_have_lists_in_its_cells(tmp_path: Path) -> None:
    # DeepXDE
    text = "Training model...\n\nStep      Train loss              Test loss     Test metric\n"
    text += "".join(
        f"{1000 * i:<9d} [{loss(i):.4f}, 5.00e-01]    [{2 * loss(i):.4f}]    []  \n" for i in ROWS
    )
    file = write(
        tmp_path / "out.log", text + "\nBest model at step 9000:\n  train loss: 1.57e+00\n"
    )
    steps = [1000.0 * i for i in ROWS]
    check(one(file), steps, [x + 0.5 for x in LOSSES])
    assert one(file).metric == "Train loss"
    check(one(file, "Train loss[0]"), steps, LOSSES)
    check(one(file, "Test loss"), steps, [2 * x for x in LOSSES])


@pytest.mark.parametrize(
    "form",
    [
        "Starting iteration {i}\nSteps executed: 1001 Return: -20.0\nAverage return: {x}\n",
        "[0101 10:00:12 @base.py:275] Start Epoch {i} ...\ncross_entropy_loss: {x}\n",
        "Now training epoch {i}. LR=0.1\nAvg loss: {x}\n",
        "2022-01-01 10:00:12,123 INFO Time taken for epoch {i} is 123.4 sec\nTrain loss: {x}\n",
    ],
)
def test_what_is_said_to_begin_counts_the_lines_below(form: str, tmp_path: Path) -> None:
    text = "".join(form.format(i=i, x=loss(i)) for i in ROWS)
    metric = "Average return" if "return" in form else None
    run = one(write(tmp_path / "log", text), metric)
    np.testing.assert_array_equal(run.step, BY_ROW)
    np.testing.assert_array_equal(run.loss, LOSSES)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("Prec@1", "max"),
        ("validation_fscore", "max"),
        ("s_fmeasure", "max"),
        ("results/fid50k_full", "min"),
        ("kid50k", "min"),
    ],
)
@pytest.mark.parametrize("values", [LOSSES, SCORES])
def test_the_way_of_a_score_is_that_of_its_name(
    name: str, direction: str, values: list[float], tmp_path: Path
) -> None:
    rows = [json.dumps({"epoch": i, name: x}) for i, x in zip(ROWS, values, strict=True)]
    run = one(write(tmp_path / "metrics.jsonl", "\n".join(rows) + "\n"))
    assert (run.metric, run.direction) == (name, direction)


def test_a_loss_of_a_step_or_an_epoch_is_no_counter(tmp_path: Path) -> None:
    # Lightning
    text = "".join(
        f"Epoch {i}: 100%|####| 50/50 [00:12<00:00,  4.12it/s, v_num=0, train_loss_step={loss(i)}, "
        f"val_loss={loss(i) + 1:.4f}, train_loss_epoch={loss(i) + 2:.4f}]\n"
        for i in ROWS
    )
    file = write(tmp_path / "out.log", text)
    check(one(file), BY_ROW, LOSSES)
    assert one(file).metric == "train_loss_step"
    np.testing.assert_allclose(one(file, "train_loss_epoch").loss, np.add(LOSSES, 2), atol=1e-9)


def test_results_at_an_iteration_are_of_the_data_that_they_name(tmp_path: Path) -> None:
    # GPT-NeoX
    text = "".join(
        f" samples/sec: 62 | iteration {10 * i}/ 120 | lm_loss: {loss(i):.6E} | loss scale: 1 |\n"
        f" validation results at iteration {10 * i} | lm_loss value: {loss(i) + 1:.6E} | \n"
        for i in ROWS
    )
    file = write(tmp_path / "out.log", text)
    np.testing.assert_allclose(one(file).loss, LOSSES)
    held_out = one(file, "validation lm_loss")
    np.testing.assert_array_equal(held_out.step, [10.0 * i for i in ROWS])
    np.testing.assert_allclose(held_out.loss, np.add(LOSSES, 1))


def test_a_list_of_the_twelve_numbers_of_coco_is_a_metric_each(tmp_path: Path) -> None:
    # DETR
    rows = [
        {
            "train_loss": loss(i),
            "test_coco_eval_bbox": [score(i), score(i + 1), *[0.25] * 8, -1.0, score(i + 2)],
            "epoch": i,
        }
        for i in ROWS
    ]
    file = write(tmp_path / "log.txt", "".join(json.dumps(row) + "\n" for row in rows))
    assert one(file).metric == "train_loss"
    for name, first in (("AP", 0), ("AP50", 1), ("recall large", 2)):
        run = one(file, f"test_coco_eval_bbox {name}")
        check(run, BY_ROW, [score(i + first) for i in ROWS])
        assert run.direction == "max"
    assert len(gp.metrics_of(file)) == 1 + 11


@pytest.mark.parametrize(
    ("logger", "metric"), [("mi-test", "loss_gen"), ("44k", "loss_gen"), ("test", "test loss_gen")]
)
def test_the_name_of_a_run_in_a_logger_names_no_data(
    logger: str, metric: str, tmp_path: Path
) -> None:
    # RVC, whose first run is called "mi-test"
    text = "".join(
        f"2023-05-01 10:00:12,123\t{logger}\tINFO\tstep={i}, loss_gen={loss(i)}\n" for i in ROWS
    )
    run = one(write(tmp_path / "train.log", text))
    assert run.metric == metric
    check(run, BY_ROW, LOSSES)
