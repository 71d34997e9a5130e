# SPDX-License-Identifier: Apache-2.0
"""Habits of programs that print: times before a line, colours without their escape, ordinals."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import check, one, write

import glidepath as gp

ROWS = range(1, 31)
BY_ROW = [float(i) for i in ROWS]
LOSSES = [round(1 + 2 * i**-0.5, 4) for i in ROWS]


def lines(form: str) -> str:
    """Give a line a row: `i` counts, `x` is the loss, `e` an epoch of ten rows and `h` an hour."""
    return "".join(
        form.format(i=i, x=x, e=(i - 1) // 10, b=(i - 1) % 10, h=(22 + i // 10) % 24, n=100 * i)
        + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )


# -------------------------------------------------------------------- what is no process


@pytest.mark.parametrize(
    "form",
    [
        "{h:02d}:15:{i:02d} step {i} loss {x}",
        "[{h:02d}:15:{i:02d}] step {i} loss {x}",
        "{h:02d}:15:{i:02d}.898 [main] INFO a.b.Trainer - step {i} loss {x}",
        "{e}:{i:02d} step {i} loss {x}",
        "[0{e}:{i:02d}:11<10:00:00] step {i} loss {x}",
    ],
)
def test_the_hour_of_a_line_is_no_process(form: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "log", lines(form))), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    "prefix",
    [
        "(train pid=10{e})",
        "worker {e}",
        "node{e}:",
        "10.0.0.{e}:",
        "device=cuda:{e}",
        "{e}:",
    ],
)
def test_a_machine_that_took_over_goes_on_with_the_run(prefix: str, tmp_path: Path) -> None:
    text = lines(prefix + " step {i} loss {x}")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


# ----------------------------------------------------------------------------------- counters


@pytest.mark.parametrize(
    "form",
    [
        "current step: {i}th step\nbatch loss:{x}",
        "the {i}th iteration has loss {x}",
        "Ep.{i:02d} loss={x}",
        "{e} {b} loss - {x}",
    ],
)
def test_a_count_in_words_is_one(form: str, tmp_path: Path) -> None:
    first = 1 if "{i" in form else 0
    run = one(write(tmp_path / "log", lines(form)))
    check(run, [first + i for i in range(30)], LOSSES)


@pytest.mark.parametrize(
    ("count", "steps"),
    [
        ("Progress on:train {n}it/10.0kit rate:1.0it/s", [100.0 * i for i in ROWS]),
        ("Progress on:train {i}.10kit/40.0kit rate:1.0it/s", [1000.0 * i + 100 for i in ROWS]),
    ],
)
def test_bars_of_tqdm_that_are_logged(count: str, steps: list[float], tmp_path: Path) -> None:
    text = lines(count + " remaining:2:45:00 elapsed:01:40 postfix:loss={x}")
    run = one(write(tmp_path / "log", text))
    check(run, steps, LOSSES)
    assert run.planned_steps in (10_000, 40_000)


def test_the_length_of_an_epoch_in_brackets_is_that_of_training(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch[{i // 3:03d}] Batch [{20 * (i % 3) + 19:04d}]/[0080]\tloss={x}\n"
        + (f"Batch [0019]/[0023]: evaluated\n[Epoch {i // 3}] validation: acc=0.5\n" * (i % 3 == 2))
        for i, x in enumerate(LOSSES)
    )
    steps = [80.0 * (i // 3) + 20 * (i % 3) + 19 for i in range(30)]
    check(one(write(tmp_path / "log", text)), steps, LOSSES)


def test_an_epoch_of_so_many_has_an_end(tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines("Epoch {i} of 40: loss {x}")))
    check(run, BY_ROW, LOSSES)
    assert run.planned_steps == 40


# ------------------------------------------------------------------------------------ colours


@pytest.mark.parametrize(
    "escape", ["#033", r"\x1b", r"\033", r"\u001b", "^[", "", "\x1b"], ids=repr
)
def test_colours_are_no_numbers_however_their_escape_is_written(
    escape: str, tmp_path: Path
) -> None:
    on, true, off = f"{escape}[32m", f"{escape}[38;2;255;100;0m", f"{escape}[0m"
    text = lines(f"{on}step {{i}}{off} loss {true}{{x}}{off}")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


def test_brackets_without_the_end_of_a_colour_are_no_colours(tmp_path: Path) -> None:
    text = lines("step {i} loss {x} [5m left]")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


# -------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("unit", ["912.5 samples/s", "0.52s/it", "1000.1/s"])
def test_what_stands_behind_a_speed_has_a_name_without_its_unit(unit: str, tmp_path: Path) -> None:
    text = lines("step {i} " + unit + " LR: 0.001 Loss: {x}")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES, [0.001] * 30)
    text = lines("step {i} " + unit + " loss {x}")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


def test_the_total_of_losses_is_one(tmp_path: Path) -> None:
    text = lines("[Epoch 0/30, Batch {i}/100] [Losses: x 0.25, conf 3.5, total {x}, recall: 0.5]")
    run = one(write(tmp_path / "log", text))
    assert (run.metric, run.direction) == ("total loss", "min")
    check(run, BY_ROW, LOSSES)


def test_a_logger_may_say_which_data_are_evaluated(tmp_path: Path) -> None:
    text = "".join(
        f"2020-02-10 21:04:42,460 - train.log - INFO - evaluate:{data}\n"
        f"2020-02-10 21:04:50,178 - train.log - INFO - accuracy: {x + shift:.4f}%; recall: 1.0%\n"
        for x in LOSSES
        for data, shift in (("dev", 0), ("test", 50))
    )
    file = write(tmp_path / "log", text)
    assert list(one(file, "dev accuracy").loss) == LOSSES
    assert {"dev accuracy", "test accuracy"} <= {info.metric for info in gp.metrics_of(file)}


# ---------------------------------------------------------------------- what tools round and scale


def test_steps_rounded_to_thousands_go_on_as_they_began(tmp_path: Path) -> None:
    # LeRobot prints 200, 400, 600, 800, 1K, 1K, 1K, 2K …: no row may be lost.
    steps = [200.0 * i for i in range(1, 41)]
    text = "".join(
        f"INFO 2026-01-02 ot_train.py:357 step:{s:.0f} smpl:{8 * s:.0f} loss:{1 + 9 / s:.4f}\n"
        if s < 1000
        else f"INFO 2026-01-02 ot_train.py:357 step:{s / 1000:.0f}K smpl:9K loss:{1 + 9 / s:.4f}\n"
        for s in steps
    )
    run = one(write(tmp_path / "log", text))
    check(run, steps, [round(1 + 9 / s, 4) for s in steps])
    assert any("rounded to thousands" in note for note in run.notes)


def test_rows_logged_twice_at_a_thousand_are_no_rounded_steps(tmp_path: Path) -> None:
    text = "".join(f"step {1000 * i} loss {5 - i}\nstep {1000 * i} loss {5 - i}\n" for i in (1, 2))
    check(one(write(tmp_path / "log", "step 500 loss 5\n" + text)), [500, 1000, 2000], [5, 4, 3])


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("log", "step:{i} - train/loss:{x} - train/lr(1e-3):{r} - train/time(s):4.5\n"),
        ("log.jsonl", '{{"step": {i}, "train/loss": {x}, "train/lr(1e-3)": {r}}}\n'),
    ],
)
def test_the_unit_of_a_learning_rate_is_in_its_name(name: str, form: str, tmp_path: Path) -> None:
    text = "".join(form.format(i=i, x=x, r=i / 64) for i, x in zip(ROWS, LOSSES, strict=True))
    run = one(write(tmp_path / name, text))
    assert run.lr is not None
    assert list(run.lr) == [i / 64 * 1e-3 for i in ROWS]
    assert list(run.loss) == LOSSES


def test_a_bar_above_the_rows_of_the_trainer_says_how_many_epochs_there_are(tmp_path: Path) -> None:
    text = "".join(
        f" {i}%|#     | {10 * i}/3000 [00:0{i % 10}<09:00,  1.00s/it]\n"
        f"{{'loss': {x}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {i / 10}}}\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )
    # An evaluation has a bar of its own, which says nothing of the run.
    text += "100%|######| 25/25 [00:09<00:00,  1.00s/it]\n{'eval_loss': 1.5, 'epoch': 3.0}\n"
    run = one(write(tmp_path / "log", text))
    assert run.planned_steps == 30
    check(run, [i / 10 for i in ROWS], LOSSES, [1e-5] * len(LOSSES))


# ------------------------------------------------------------------------- what is of other data


@pytest.mark.parametrize("heading", ["***** Eval results  *****", "***** Running Evaluation *****"])
def test_a_heading_between_stars_names_the_data_below(heading: str, tmp_path: Path) -> None:
    text = "".join(
        f"Epoch: {i}/30\n[Training] 9/9 [==============================] 1.4s/step  [ loss={x} ]\n"
        f"01/06/2024 09:07:54 - INFO - root -   {heading}\n"
        f"01/06/2024 09:07:54 - INFO - root -    acc: 0.5 - f1: 0.25 - loss: {2 * x}\n"
        "01/06/2024 09:07:54 - INFO - root -   ***** Running training *****\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )
    log = write(tmp_path / "log", text)
    check(one(log), BY_ROW, LOSSES)
    data = "eval" if "Eval results" in heading else "evaluation"
    check(one(log, f"{data} loss"), BY_ROW, [2 * x for x in LOSSES])


def test_settings_that_python_prints_are_no_metrics(tmp_path: Path) -> None:
    text = "INFO:Namespace(epochs=9, loss_weights=1.0, lr=0.1)\n" * 20
    with pytest.raises(gp.IoError, match="no known format"):
        gp.read_traces(write(tmp_path / "log.txt", text))


def test_the_loss_of_a_batch_comes_before_its_parts(tmp_path: Path) -> None:
    text = lines(
        "classify loss is 0.9, iou loss is 2.5\nEpoch is [1/6], mini-batch is [{i}/90], "
        "time is 1.5, batch_loss is {x}"
    )
    run = one(write(tmp_path / "log", text))
    assert (run.metric, list(run.loss)) == ("batch_loss", LOSSES)
