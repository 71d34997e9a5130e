# SPDX-License-Identifier: Apache-2.0
"""What people bring who never saw this package: lines as their tools print them, whole or cut."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from log_files import BY_ROW, BY_TEN, LOSSES, ROWS, check, loss, one, write

import glidepath as gp

# ------------------------------------------------------------------- the last line, not finished

# Of each family: how a row is written, at a step of five digits whose last one may be cut off.
FAMILIES: dict[str, tuple[str, Callable[[int], str]]] = {
    "console": ("", lambda i: f"step {i * 10000} | train loss {loss(i):.4f}\n"),
    "loss first": ("", lambda i: f"loss: {loss(i):.4f} at step {i * 10000}\n"),
    "csv": ("step,loss\n", lambda i: f"{i * 10000},{loss(i):.4f}\n"),
    "csv, step last": ("loss,step\n", lambda i: f"{loss(i):.4f},{i * 10000}\n"),
    "json lines": ("", lambda i: json.dumps({"step": i * 10000, "loss": loss(i)}) + "\n"),
    "json in text": ("", lambda i: f"INFO | {json.dumps({'loss': loss(i), 'num_updates': i})}\n"),
    "carriage returns": ("", lambda i: f"{i}/99 [=====>......] - ETA: 9s - loss: {loss(i):.4f}\r"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_wherever_a_log_is_cut_no_number_is_half_of_one(family: str, tmp_path: Path) -> None:
    head, row = FAMILIES[family]
    text = head + "".join(map(row, ROWS))
    whole = one(write(tmp_path / "whole.log", text))
    values = dict(zip(whole.step.tolist(), whole.loss.tolist(), strict=True))
    assert len(values) == len(ROWS)
    rows = [len(head) + sum(len(row(j)) for j in range(1, i + 1)) for i in ROWS]
    for end in range(rows[5], len(text)):
        cut = one(write(tmp_path / "cut.log", text[:end]))
        finished = sum(at <= end for at in rows)
        assert finished <= len(cut) <= finished + 1, text[:end][-60:]
        for step, value in zip(cut.step.tolist(), cut.loss.tolist(), strict=True):
            assert values.get(step) == value, text[:end][-60:]
        assert set(cut.loss.tolist()) <= set(LOSSES), text[:end][-60:]


def test_files_that_were_written_whole_may_lack_the_last_end_of_line(tmp_path: Path) -> None:
    for head, row in (FAMILIES[name] for name in ("csv", "csv, step last", "json lines")):
        text = head + "".join(map(row, ROWS))
        run = one(write(tmp_path / "log", text.rstrip("\n")))
        np.testing.assert_array_equal(run.loss, LOSSES)
    console = "".join(map(FAMILIES["console"][1], ROWS))
    run = one(write(tmp_path / "log", console.rstrip("\n")))
    np.testing.assert_array_equal(run.loss, LOSSES[:-1])
    assert "the last line has no end: left out" in run.notes


# -------------------------------------------------------------------------------- console lines


def lines(form: str) -> str:
    """Twelve rows: `i` from 1 on, epochs of four batches, each of 100 steps."""
    return "".join(
        form.format(i=i, n=10 * i, t=1000 * i, e=(i - 1) // 4, b=100 * ((i - 1) % 4), x=loss(i))
        + "\n"
        for i in ROWS
    )


BY_THOUSAND = [1000.0 * i for i in ROWS]
BY_BATCH = [400.0 * ((i - 1) // 4) + 100 * ((i - 1) % 4) for i in ROWS]


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        # Keras, one line an epoch
        (
            "Epoch {i}/12\n469/469 - 2s - loss: {x} - accuracy: 0.5 - 2s/epoch - 5ms/step",
            BY_ROW,
        ),
        # what loggers put before
        ("2024-03-01 10:00:00,123 INFO train step {n} loss {x}", BY_TEN),
        ("2024-03-01 10:00:00,123 INFO my.module step {n} loss {x}", BY_TEN),
        ("INFO step {n} loss {x}", BY_TEN),
        ("root INFO step {n} loss {x}", BY_TEN),
        ("completed step: {n}, seconds: 3.412, loss: {x}", BY_TEN),
        ("[INFO] 3DBall. Step: {t}. Time Elapsed: 9.1 s. loss: {x}. Training.", BY_THOUSAND),
        ("2024-03-01T10:00:00.123456789Z stdout F step: {n} loss: {x}", BY_TEN),
        ('level=info step={n} loss={x} msg="training"', BY_TEN),
        # the counter before or behind the name of the metric
        ("Cost after epoch {i}: {x}", BY_ROW),
        ("Loss after epoch {i}: {x}", BY_ROW),
        ("Minibatch loss at step {n}: {x}", BY_TEN),
        ("Loss at step {n}: {x}", BY_TEN),
        ("Training loss (for one batch) at step {n}: {x}", BY_TEN),
        ("Train loss {n} {x} Grad Norm 1.12 1.2s/it", BY_TEN),
        # epochs and batches in brackets
        ("INFO Train: [{e}/300][{b}/400]\teta 0:20:00 lr 0.1\tloss {x} ({x})", BY_BATCH),
        ("[{e}/25][{b}/400]\tLoss: {x}\tD(x): 0.5", BY_BATCH),
        ("[{e}, {b:5d}] loss: {x}", BY_BATCH),
        ("{e}, {b}, loss = {x}", BY_BATCH),
        ("Epoch(train) [{e}][{b}/400]  lr: 1e-3  eta: 0:20:00  loss: {x}", BY_BATCH),
        ("Epoch: [{e}] [{b:3d}/400] learning_rate: 0.1 loss: {x} eta: 0:01:00", BY_BATCH),
        # counters in brackets
        ("I0301 10:00:00.123456 140 writer.py:48] [{n}] loss={x}, lr=0.1", BY_TEN),
        ("[batch={n}/4800]:\n\t Train loss/train/total: {x}", BY_TEN),
        # thousands
        ("Step {t:,} | loss {x}", BY_THOUSAND),
        ("step {i}k loss {x}", BY_THOUSAND),
        ("num episodes: {n} loss {x}", BY_TEN),
        ("[2024-03-01 10:00:00] Ep. 1 : Up. {n} : Sen. 12,345 : Cost {x} : Time 9.1s", BY_TEN),
        ("   --> STEP: {b}/400 -- GLOBAL_STEP: {n}\n     | > loss: {x} ({x})", BY_TEN),
        # brackets directly behind the name
        ("loss[{n}] = {x}", BY_TEN),
        ("loss({n}): {x}", BY_TEN),
        ("step {n} loss: {x} acc[1]: 0.5 acc[5]: 0.9", BY_TEN),
        # Darknet, whose layers come before their iteration
        (
            "v3 (mse loss, Normalizer: (iou: 0.75, cls: 1.00) Region 82 Avg (IOU: 0.23, GIOU: 0.1),"
            " Class: 0.5, count: 4, loss = 345.67, total_loss = 15.7 \n"
            " {n}: 9.5, {x} avg loss, 0.0001 rate, 2.3 seconds, 640 images, 12.3 hours left",
            BY_TEN,
        ),
        (
            "Region Avg IOU: 0.234567, Class: 0.5, Obj: 0.4, No Obj: 0.5, count: 4\n"
            "{n}: 9.5, {x} avg, 0.0001 rate, 2.3 seconds, 640 images",
            BY_TEN,
        ),
    ],
)
def test_a_line_that_a_tool_prints(form: str, steps: list[float], tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines(form)))
    np.testing.assert_array_equal(run.step, steps)
    np.testing.assert_array_equal(run.loss, LOSSES)


def test_numbers_with_marks_of_thousands(tmp_path: Path) -> None:
    text = "Step 999 | loss 1,000.5\nStep 1,000 | loss 900.5\nStep 1,234,567 | loss 8\n"
    check(one(write(tmp_path / "log", text)), [999, 1000, 1234567], [1000.5, 900.5, 8])
    pattern = r"Step (?P<step>[\d,]+) \| loss (?P<value>\S+)"
    (run,) = gp.read_traces(tmp_path / "log", pattern=pattern)
    check(run, [999, 1000, 1234567], [1000.5, 900.5, 8])


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        *(("Infinity", math.inf), ("-Infinity", -math.inf), ("1.#INF", math.inf)),
        *(("1.#QNAN", math.nan), ("-1.#IND", math.nan), ("1.#INF00", math.inf)),
    ],
)
def test_what_is_no_finite_number_is_read_as_it_was_printed(
    spelled: str, value: float, tmp_path: Path
) -> None:
    text = lines("step {n} loss {x} acc 0.5")
    file = write(tmp_path / "log", text.replace(f"loss {loss(6)}", f"loss {spelled}"))
    check(one(file), BY_TEN, [*LOSSES[:5], value, *LOSSES[6:]])


def test_a_pattern_with_epochs_counts_on(tmp_path: Path) -> None:
    file = write(tmp_path / "log", lines("ep {e} it {b} -> {x}"))
    pattern = r"ep (?P<epoch>\d+) it (?P<step>\d+) -> (?P<value>\S+)"
    (run,) = gp.read_traces(file, pattern=pattern)
    check(run, BY_BATCH, LOSSES)


def test_the_batches_of_an_epoch_are_no_plan_of_the_run(tmp_path: Path) -> None:
    first = "".join(lines("Train: [{e}/300][{b}/400]\tloss {x}").splitlines(keepends=True)[:4])
    run = one(write(tmp_path / "log", first))
    assert run.planned_steps == 300 * 400
    check(run, [0, 100, 200, 300], LOSSES[:4])
    unknown = first.replace("Train: ", "").replace("/300", "")
    assert one(write(tmp_path / "log", unknown)).planned_steps is None


def test_evaluations_with_another_number_of_batches(tmp_path: Path) -> None:
    train = lines("Train: {e} [{b:4d}/400 ( 25%)]  Loss: {x}  LR: 1.000e-03").splitlines()
    test = [f"Test: [{k:4d}/100]  Time: 0.9 (0.9)  Loss:   0.5 (0.5)  Acc@1: 71.1" for k in (0, 50)]
    epochs = [line for k in (0, 4, 8) for line in (*train[k : k + 4], *test)]
    run = one(write(tmp_path / "log", "\n".join(epochs) + "\n"))
    np.testing.assert_array_equal(run.step, BY_BATCH)
    np.testing.assert_array_equal(run.loss, LOSSES)


def test_a_batch_of_an_epoch_that_looks_like_a_fraction(tmp_path: Path) -> None:
    text = "".join(
        f"2024-03-01 10:00:00,123 DEBUG TRAIN Batch {e}/{b} loss {4 - e - b / 1000} lr 0.1\n"
        for e in range(3)
        for b in range(0, 700, 100)
    )
    run = one(write(tmp_path / "log", text))
    np.testing.assert_array_equal(run.step, np.arange(0, 2100, 100))


def test_batches_of_an_evaluation_do_not_shorten_an_epoch(tmp_path: Path) -> None:
    text = "".join(
        "".join(
            f"DEBUG TRAIN Batch {e}/{b} loss {4 - e - b / 1000} lr 0.1\n"
            for b in range(0, 700, 100)
        )
        + "".join(f"DEBUG CV Batch {e}/{b} loss 9.5 history loss 8.5\n" for b in range(0, 300, 100))
        + f"INFO Epoch {e} CV info cv_loss 3.5\n"
        for e in range(3)
    )
    run = one(write(tmp_path / "log", text))
    np.testing.assert_array_equal(run.step, np.arange(0, 2100, 100))


@pytest.mark.parametrize(
    "form",
    [
        "\x1b[36m(RayTrainWorker pid={pid}, ip=10.0.0.1)\x1b[0m step {n} loss {x}",
        "(RayTrainWorker pid={pid}, ip=10.0.0.1) step {n} loss {x}",
        "2024-03-01 10:00:00,123 INFO cuda:{r} step {n} loss {x}",
        "step={n} loss={x} rank={r}",
        '{{"step": {n}, "loss": {x}, "rank": {r}}}',
    ],
)
def test_of_several_ranks_the_first_is_read(form: str, tmp_path: Path) -> None:
    rows = [
        form.format(n=10 * i, x=loss(i) + rank, r=rank, pid=4100 + rank)
        for i in ROWS
        for rank in ((1, 0, 2) if i > 1 else (0, 1, 2))
    ]
    run = one(write(tmp_path / "log", "\n".join(rows) + "\n"))
    check(run, BY_TEN, LOSSES)


# ------------------------------------------------------------------------------- which metric


@pytest.mark.parametrize(
    ("text", "metric", "steps"),
    [
        ("EpLenMean,EpRewMean,TimestepsSoFar,loss_vf_loss\n{rows}", "EpRewMean", BY_THOUSAND),
        ("AverageEpLen,AverageEpRet,TotalEnvInteracts,LossV\n{rows}", "AverageEpRet", BY_THOUSAND),
        ("size,evaluation/Average Returns,steps,trainer/QF1 Loss\n{rows}", None, BY_THOUSAND),
    ],
)
def test_the_mean_return_of_episodes_comes_first(
    text: str, metric: str | None, steps: list[float], tmp_path: Path
) -> None:
    rows = "".join(f"100,{20 + i},{1000 * i},{loss(i)}\n" for i in ROWS)
    run = one(write(tmp_path / "progress.csv", text.format(rows=rows)))
    assert run.metric == (metric or "evaluation/Average Returns")
    assert run.direction == "max"
    check(run, steps, [20.0 + i for i in ROWS])


@pytest.mark.parametrize(
    ("form", "metric"),
    [
        (
            "Learning iteration {i}/1500\n Value function loss: {x}\n Mean reward: {n}.5",
            "Mean reward",
        ),
        ("Epoch #{i}: env_step={n}, loss={x}, rew={n}.00", "rew"),
        ("Episode {i}\tAverage Score: {n}.5", "Average Score"),
        ("step {i} Loss/classification_loss: {x} Loss/total_loss: {n}.5", "Loss/total_loss"),
        ("[{i}]\ttraining's binary_logloss: {x}\tvalid_1's auc: 0.5", "training's binary_logloss"),
        ("{{'loss': 0.0, 'reward': {n}.5, 'kl': 0.01, 'epoch': {i}.0}}", "reward"),
    ],
)
def test_the_metric_that_a_person_would_look_at(form: str, metric: str, tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines(form)))
    assert run.metric == metric
    assert len(run) == len(ROWS)


CARD = """---
license: mit
---
It achieves the following results on the evaluation set:
- Loss: 9.5
- step 7 loss: 9.5

| Task | Epochs |
|:----:|:------:|
| mine | many   |

### Training results

| Training Loss | Epoch | Step | Validation Loss | Accuracy |
|:-------------:|:-----:|:----:|:---------------:|:--------:|
| No log        | 1.0   | 125  | 0.75            | 0.5      |
"""


def test_a_model_card_is_read_by_the_table_of_its_training(tmp_path: Path) -> None:
    card = write(tmp_path / "README.md", CARD + "| 0.5 | 2.0 | 250 | 0.25 | 0.625 |\n\nloss: 3\n")
    assert [info.metric for info in gp.metrics_of(card)] == [
        *("Validation Loss", "Accuracy", "Training Loss")
    ]
    check(one(card, "Validation Loss"), [125, 250], [0.75, 0.25])
    check(one(card, "Training Loss"), [250], [0.5])
    alone = one(write(tmp_path / "one" / "README.md", CARD))
    assert alone.metric == "Validation Loss"
    check(alone, [125], [0.75])
    state = {"log_history": [{"loss": 2.0, "step": 1}]}
    write(tmp_path / "trainer_state.json", json.dumps(state))
    assert [run.name for run in gp.read_traces(tmp_path)] == ["trainer_state.json"]


def test_a_page_without_a_table_of_steps_is_no_log(tmp_path: Path) -> None:
    page = write(tmp_path / "a.md", "| Model | Loss |\n|---|---|\n| a | 1 |\n\nstep 1 loss 2.0\n")
    said = "a.md: a page of Markdown, expected a table in it with a column of steps or epochs"
    with pytest.raises(gp.IoError, match=said):
        gp.read_traces(page)
    prose = "# Title\n\nIt forecasts the loss, says when it falls, and\nschedules jobs, by that.\n"
    for text in (prose, f"curve, value\n\n{prose}", "# Title\n"):
        with pytest.raises(gp.IoError, match=said):
            gp.read_traces(write(page, text))
    (run,) = gp.read_traces(write(page, "step,loss\n1,2.5\n2,2\n"))
    check(run, [1, 2], [2.5, 2])
    (run,) = gp.read_traces(write(page, "step 1 loss 2.5\nstep 2 loss 2.0\n"), format="text")
    check(run, [1, 2], [2.5, 2])


@pytest.mark.parametrize(
    ("form", "metric", "direction"),
    [
        ("[{i}]\tvalid_0's l2: {x}", "valid_0's l2", "min"),
        ("[{i}]\tvalid_0's rmse: {x}\tvalid_0's l1: 9.5", "valid_0's rmse", "min"),
        ("[{i}]\tcv_agg's rmse: {x} + 0.0123", "cv_agg's rmse", "min"),
        ("[{i}]\ttrain-merror:{x}\teval-merror:9.5", "train-merror", "min"),
        ("[12:34:56] [{i}]\ttrain-map@10:{x}\teval-map@10:0.5", "train-map@10", "max"),
        ("step {i} recall@10: {x} ndcg@10 : 0.5", "recall@10", "max"),
        ("epoch {i} Acc@1  {x} (9.5)\tAcc@5  0.9 (0.9)", "Acc@1", "max"),
        ("epoch {i} mAP@.5:.95: {x} mAP@0.5: 0.5", "mAP@.5:.95", "max"),
        ("epoch {i} Top-1: {x} Top-5 0.5", "Top-1", "max"),
    ],
)
def test_a_name_keeps_its_digits_and_what_they_are_of(
    form: str, metric: str, direction: str, tmp_path: Path
) -> None:
    run = one(write(tmp_path / "log", lines(form)))
    assert (run.metric, run.direction) == (metric, direction)
    check(run, BY_ROW, LOSSES)
    check(one(tmp_path / "log", metric), BY_ROW, LOSSES)


def test_rounds_of_boosting_with_a_metric_of_ones_own_name_it(tmp_path: Path) -> None:
    file = write(tmp_path / "log", lines("[{i}]\tvalid_0's mine: {x}"))
    with pytest.raises(gp.IoError, match=r"say metric= one of valid_0's mine, or pattern=") as told:
        gp.read_traces(file)
    assert "JSON" not in str(told.value)
    check(one(file, "valid_0's mine"), BY_ROW, LOSSES)


def test_the_command_line_of_lightgbm_is_read_by_its_error_in_training(tmp_path: Path) -> None:
    form = (
        "[LightGBM] [Info] Iteration:{i}, valid_1 auc : 0.5\n"
        "[LightGBM] [Info] Iteration:{i}, training l2 : {x}\n"
        "[LightGBM] [Info] Iteration:{i}, valid_1 l2 : 9.5\n"
        "[LightGBM] [Info] 0.25 seconds elapsed, finished iteration {i}"
    )
    file = write(tmp_path / "log", lines(form))
    run = one(file)
    assert (run.metric, run.direction) == ("training l2", "min")
    check(run, BY_ROW, LOSSES)
    names = [info.metric for info in gp.metrics_of(file)]
    assert names == ["valid_1 auc", "training l2", "valid_1 l2"]


@pytest.mark.parametrize(
    "form",
    [
        "epoch:{i}, loss:{x}, acc:0.5",
        "step:{i},loss:{x}",
        "step {i}, loss:{x}",
        "step:{i}; loss:{x}",
        "iter:{i}\tloss:{x}",
        "epoch-{i}, loss-{x}",
        "epoch:{i},loss:{x},val_loss:nan",
    ],
)
def test_names_with_a_number_behind_a_mark_are_no_table(form: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "runs" / "log", lines(form))), BY_ROW, LOSSES)
    write(tmp_path / "runs" / "table.csv", "step,loss:0,loss:1\n" + lines("{i},{x},0.5"))
    run, table = gp.read_traces(tmp_path / "runs")
    assert (run.name, table.name, table.metric) == ("log", "table.csv", "loss:0")
    check(table, BY_ROW, LOSSES)


def test_the_rows_of_each_split_are_metrics_of_their_own(tmp_path: Path) -> None:
    table = "epoch,phase,loss\n" + "".join(
        f"{i},{name},{loss(i) + plus}\n" for i in ROWS for name, plus in (("train", 0), ("val", 1))
    )
    rows = "".join(
        json.dumps({"epoch": i, "split": name, "loss": loss(i) + plus}) + "\n"
        for i in ROWS
        for name, plus in (("train", 0), ("val", 1))
    )
    for text in (table, rows):
        file = write(tmp_path / "log", text)
        check(one(file), BY_ROW, LOSSES)
        assert one(file).metric == "train/loss"
        check(one(file, "val/loss"), BY_ROW, [x + 1 for x in LOSSES])


@pytest.mark.parametrize(
    ("name", "trailer"),
    [
        ("valid_0's binary_logloss: ", "Early stopping, best iteration is:"),  # LightGBM
        ("validation_0-rmse:", "Stopping. Best iteration:"),  # XGBoost
    ],
)
def test_a_trailer_that_repeats_the_best_iteration_is_no_restart(
    name: str, trailer: str, tmp_path: Path
) -> None:
    text = lines(f"[{{i}}]\t{name}{{x}}") + f"{trailer}\n[3]\t{name}2.7321\n\n"
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


def test_what_a_log_says_beside_its_metrics_is_no_metric(tmp_path: Path) -> None:
    text = "tokens per iteration will be: 491,520\nnumber of parameters: 10.65M\n" + lines(
        "[2024-03-01 10:00:00] (trainer:280) (main.py 189): step {n} loss {x} 1.2it/s 3s/epoch"
    )
    text += "Epoch 00012: val_loss did not improve from 1.25000\n" * 4
    names = {info.metric for info in gp.metrics_of(write(tmp_path / "log", text))}
    assert names == {"loss"}


# ---------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("powershell.log", "", "Größe 🙂 Step {i}, Loss: {y:.4f}"),
        ("table.csv", "step,loss\n", "{i},{y:.4f}"),
        ("own.csv", "curve,step,value\n", "ü🙂,{i},{y:.4f}"),
        ("log.jsonl", "", '{{"step": {i}, "loss": {y:.4f}, "note": "ü🙂"}}'),
    ],
)
def test_a_log_in_utf16_as_powershell_writes_it_reads_like_one_in_utf8(
    name: str, head: str, row: str, encoding: str, tmp_path: Path
) -> None:
    text = head + "".join(row.format(i=i, y=3 / i) + "\n" for i in range(1, 40))
    marked = encoding in ("utf-16-le", "utf-16-be")
    file = tmp_path / name
    for mark in ("\ufeff", "") if marked else ("",):
        check_encoded(file, text, row, encoding, mark)


def check_encoded(file: Path, text: str, row: str, encoding: str, mark: str) -> None:
    for whole in (text, text + row.format(i=40, y=0.075)[:-4]):  # also with a cut last line
        file.write_bytes((mark + whole.replace("\n", "\r\n")).encode(encoding))
        found = one(file)
        file.write_text(whole, "utf-8")
        plain = one(file)
        assert found == plain
        assert found.notes == plain.notes
        assert len(found) == 39
    file.write_bytes((mark + text).encode(encoding)[:-1])  # half of a character
    assert len(one(file)) in (38, 39)


# ---------------------------------------------------------------------------------- sentences


def test_a_log_that_no_reader_knows_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match="say pattern="):
        gp.read_traces(write(tmp_path / "log", "10 3.5\n20 3.4\n30 3.3\n"))


def test_an_evaluation_log_without_a_loss_is_called_one(tmp_path: Path) -> None:
    rows = [{"current_steps": i, "total_steps": 99, "percentage": i / 99} for i in ROWS]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(gp.IoError, match=r"evaluations.*without a loss"):
        gp.read_traces(write(tmp_path / "trainer_log.jsonl", text))


# ------------------------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    ("name", "text", "metric", "steps"),
    [
        ("train_loss.csv", "1.5e+00\n1.25e+00\n1.0e+00\n", "train_loss", [1, 2, 3]),
        ("loss.csv", "0\n1.5\n1.25\n1.0\n", "loss", [1, 2, 3]),
        ("val_loss.csv", ",0\n0,1.5\n1,1.25\n2,1.0\n", "val_loss", [0, 1, 2]),
        ("loss.csv", "10   , 1.5\n20   , 1.25\n30   , 1.0\n", "loss", [10, 20, 30]),
        ("test_loss.txt", "5 1.5\n10 1.25\n15 1.0", "test_loss", [5, 10, 15]),
        ("run7.csv", "loss\n1.5\n1.25\n1.0\n", "loss", [1, 2, 3]),
    ],
)
def test_a_list_is_read_by_the_name_above_it_or_that_of_its_file(
    name: str, text: str, metric: str, steps: list[int], tmp_path: Path
) -> None:
    trace = one(write(tmp_path / name, text))
    assert (trace.metric, list(trace.step), list(trace.loss)) == (metric, steps, [1.5, 1.25, 1.0])


def test_a_list_of_counts_begins_with_its_0(tmp_path: Path) -> None:
    trace = one(write(tmp_path / "rewards.csv", "0\n1\n3\n2\n"))
    assert (trace.direction, list(trace.loss)) == ("max", [0, 1, 3, 2])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numbers.csv", "1.5\n1.25\n1.0\n"),  # of what, nobody knows
        ("loss.csv", "0.9,0.8\n0.7,0.75\n0.6,0.7\n"),  # two lists, of which none are steps
        ("loss.csv", "1.5\n1.25\n"),
        ("loss.csv", "1.5\nthe end\n1.0\n"),
    ],
)
def test_other_numbers_are_no_list_of_a_metric(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(
        gp.IoError, match=r"csv:1: the first line is the number.*, such as step,loss"
    ):
        gp.read_traces(write(tmp_path / name, text))


# --------------------------------------------------------------------------------------- time


@pytest.mark.parametrize("form", ["step {i} loss_{i}: 1.0\n", '{{"step": {i}, "loss_{i}": 1.0}}\n'])
def test_time_is_linear_in_the_number_of_names(form: str, tmp_path: Path) -> None:
    text = "".join(form.format(i=i) for i in range(20_000))
    file = write(tmp_path / "log", text)
    began = time.process_time()
    assert len(one(file)) == 1
    assert len(gp.metrics_of(file)) == 20_000
    assert time.process_time() - began < 20.0
