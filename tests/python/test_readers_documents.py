# SPDX-License-Identifier: Apache-2.0
"""Histories with counters of their own: documents of JSON, columns of other data, doubled logs."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path

import pytest
from log_files import check, one, write

import glidepath as gp

ROWS = range(1, 31)
BY_ROW = [float(i) for i in ROWS]
BY_TEN = [10.0 * i for i in ROWS]
LOSSES = [round(1 + 2 * i**-0.5, 4) for i in ROWS]
AT, VALID = [0.0, 100.0, 200.0], [3.0, 2.0, 1.5]


# ------------------------------------------------------------------- counters of other data


@pytest.mark.parametrize(
    ("step", "loss", "other", "valid"),
    [
        ("iters", "loss", "val_iters", "val_loss"),
        ("steps", "loss", "eval_steps", "eval_loss"),
        ("train_iters", "train_loss", "val_iters", "val_loss"),
        ("train_steps", "train_loss", "valid_step", "valid_loss"),
    ],
)
@pytest.mark.parametrize("longer", ["training", "validation"])
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_columns_of_other_data_have_a_counter_of_their_own(
    kind: str, step: str, loss: str, other: str, valid: str, longer: str, tmp_path: Path
) -> None:
    trained, held_out = ((BY_TEN, LOSSES), (AT, VALID))
    if longer == "validation":
        trained, held_out = held_out, trained
    columns = {step: trained[0], loss: trained[1], other: held_out[0], valid: held_out[1]}
    rows = [",".join(columns)] + [
        ",".join("" if cell is None else f"{cell:g}" for cell in row)
        for row in zip_longest(*columns.values())
    ]
    text = json.dumps(columns) if kind == "json" else "\n".join(rows) + "\n"
    file = write(tmp_path / f"log.{kind}", text)
    check(one(file, loss), *trained)
    check(one(file, valid), *held_out)
    assert {info.metric for info in gp.metrics_of(file)} == {loss, valid}


def test_rows_with_steps_of_their_own_need_no_others(tmp_path: Path) -> None:
    text = "step,val_step,loss,val_loss\n" + "".join(
        f"{10 * i},{i},{x},{x + 1}\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )
    check(one(write(tmp_path / "log.csv", text), "val_loss"), BY_TEN, [x + 1 for x in LOSSES])


@pytest.mark.parametrize(
    "step", ["train_steps", "train_iter", "train_iters", "train_epochs", "global_steps"]
)
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_steps_of_training_are_steps(step: str, kind: str, tmp_path: Path) -> None:
    text = f"{step},train_loss\n" + "".join(
        f"{t:g},{x}\n" for t, x in zip(BY_TEN, LOSSES, strict=True)
    )
    text = json.dumps({step: BY_TEN, "train_loss": LOSSES}) if kind == "json" else text
    check(one(write(tmp_path / f"log.{kind}", text)), BY_TEN, LOSSES)


# ------------------------------------------------------------------------- documents of JSON


@pytest.mark.parametrize("indent", [None, 1])
def test_a_curve_by_its_points_is_called_by_the_keys_above_it(
    indent: int | None, tmp_path: Path
) -> None:
    def curve(x: list[float], y: list[float]) -> dict[str, object]:
        return {"name": "any", "x": x, "y": y}

    document = {
        "loss": {"train": curve(BY_TEN, LOSSES), "val": curve(AT, VALID)},
        "train": {"loss": curve(BY_ROW, LOSSES)},
    }
    file = write(tmp_path / "scalars.json", json.dumps(document, indent=indent))
    check(one(file, "loss/train"), BY_TEN, LOSSES)
    check(one(file, "loss/val"), AT, VALID)
    check(one(file), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    ("name", "metric"), [("run-a-tag-train_loss.json", "train_loss"), ("download.json", "value")]
)
def test_a_scalar_that_the_page_of_tensorboard_saved(
    name: str, metric: str, tmp_path: Path
) -> None:
    points = [[1.7e9 + i, i, x] for i, x in zip(ROWS, LOSSES, strict=True)]
    run = one(write(tmp_path / name, json.dumps(points)))
    assert run.metric == metric
    check(run, BY_ROW, LOSSES)
    assert run.wall_seconds is not None
    assert run.wall_seconds[-1] == 29
    with pytest.raises(gp.IoError, match="a log of no known format"):
        gp.read_traces(write(tmp_path / "c.json", json.dumps([[1, 2, 3], [2, 3, 4]])))


@pytest.mark.parametrize("timed", [False, True])
def test_points_under_the_name_of_a_metric_are_its_curve(timed: bool, tmp_path: Path) -> None:
    def points(steps: list[float], values: list[float]) -> list[list[float]]:
        rows = zip(steps, values, strict=True)
        return [[1.7e9 + step, step, x] if timed else [step, x] for step, x in rows]

    document = {"runs/a/train/loss": points(BY_TEN, LOSSES), "runs/a/val/loss": points(AT, VALID)}
    file = write(tmp_path / "all_scalars.json", json.dumps(document))
    run = one(file)
    check(run, BY_TEN, LOSSES)
    assert (run.wall_seconds is not None) == timed
    check(one(file, "runs/a/val/loss"), AT, VALID)
    places = {"box_loss": [[3, 1.0], [1, 2.0], [2, 3.0]], "loss": LOSSES}
    file = write(tmp_path / "places.json", json.dumps(places))
    check(one(file), BY_ROW, LOSSES)
    assert [info.metric for info in gp.metrics_of(file)] == ["loss"]


def test_points_that_do_not_go_on_are_no_curve(tmp_path: Path) -> None:
    document = {"loss": LOSSES, "landscape": {"x": [3, 1, 2], "y": [1.0, 2.0, 3.0]}}
    file = write(tmp_path / "log.json", json.dumps(document))
    check(one(file), BY_ROW, LOSSES)
    assert "landscape" not in {info.metric for info in gp.metrics_of(file)}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "key", ["epoch_{}", "epoch {}", "Epoch_{}", "step_{}", "iter{}", "round_{}", "epoch-{:03d}"]
)
def test_keys_that_count_are_the_steps_of_their_rows(
    key: str, indent: int | None, tmp_path: Path
) -> None:
    document = {
        key.format(10 * i): {"train": {"loss": x}, "lr": 0.1}
        for i, x in zip(ROWS, LOSSES, strict=True)
    }
    file = write(tmp_path / "log.json", json.dumps(document, indent=indent))
    check(one(file), BY_TEN, LOSSES, [0.1] * len(ROWS))


def test_a_row_of_json_with_numbered_parts_is_a_row(tmp_path: Path) -> None:
    text = "".join(
        json.dumps({"step": i, "loss": x, "layer_1": {"norm": 2.0}}) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )
    check(one(write(tmp_path / "log.jsonl", text)), BY_ROW, LOSSES)
    first = text.splitlines()[0] + "\n"
    check(one(write(tmp_path / "first.jsonl", first)), [1], LOSSES[:1])


# ------------------------------------------------------------------------------- which metric


@pytest.mark.parametrize(
    ("valid", "trained"),
    [
        ("adam/val_loss", "adam/loss"),
        ("fold_0/val_loss", "fold_0/loss"),
        ("Validation Loss", "Mini-batch Loss"),
        ("bert_dev_loss", "bert_loss"),
    ],
)
def test_a_loss_of_validation_gives_way_to_the_same_one_of_training(
    valid: str, trained: str, tmp_path: Path
) -> None:
    text = f"epoch,{valid},{trained}\n" + "".join(
        f"{i},9.5,{x}\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )
    run = one(write(tmp_path / "log.csv", text))
    assert run.metric == trained
    check(run, BY_ROW, LOSSES)


# --------------------------------------------------------------------------- clocks and folders


def test_milliseconds_are_known_by_their_name(tmp_path: Path) -> None:
    text = "step,time_ms,loss\n" + "".join(
        f"{i},{500 * i},{x}\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )
    run = one(write(tmp_path / "log.csv", text))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [(i - 1) / 2 for i in ROWS]


def test_milliseconds_that_rows_took_are_no_clock(tmp_path: Path) -> None:
    text = "step,time_ms,loss\n" + "".join(
        f"{i},{500 + i % 3},{x}\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )
    assert one(write(tmp_path / "log.csv", text)).wall_seconds is None


def table(plus: float = 0) -> str:
    return "training_iteration,loss\n" + "".join(
        f"{i},{x + plus}\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )


def rows(plus: float = 0) -> str:
    return "".join(
        json.dumps({"training_iteration": i, "loss": x + plus, "config": {"lr": 0.1}}) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )


def test_a_run_that_a_tool_writes_twice_is_one(tmp_path: Path) -> None:
    for trial in ("a", "b"):
        write(tmp_path / trial / "progress.csv", table())
        write(tmp_path / trial / "result.json", rows())
    found = gp.read_traces(tmp_path)
    assert [run.name for run in found] == ["a/result.json", "b/result.json"]
    assert {info.run for info in gp.metrics_of(tmp_path)} == {"a/result.json", "b/result.json"}


def test_logs_of_a_folder_that_differ_or_have_one_format_are_runs_each(tmp_path: Path) -> None:
    write(tmp_path / "progress.csv", table())
    write(tmp_path / "copy.csv", table())
    write(tmp_path / "result.json", rows(plus=0.5))
    write(tmp_path / "other" / "result.json", rows())
    assert len(gp.read_traces(tmp_path)) == 4


def test_the_longer_one_of_two_logs_of_a_run_stays(tmp_path: Path) -> None:
    state = {
        "log_history": [
            {"step": i, "loss": x, "epoch": 0.5} for i, x in zip(ROWS, LOSSES, strict=True)
        ],
        "max_steps": 40,
    }
    write(tmp_path / "trainer_state.json", json.dumps(state))
    log = "".join(
        json.dumps({"current_steps": i, "total_steps": 40, "loss": x}) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
        if i < 30
    )
    write(tmp_path / "trainer_log.jsonl", log)
    (run,) = gp.read_traces(tmp_path)
    assert (run.name, run.planned_steps) == ("trainer_state.json", 40)
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize("saved", ["checkpoint_{}", "tmp-checkpoint-{}", "checkpoint-{}"])
def test_checkpoints_by_any_name_begin_the_run_beside_them(saved: str, tmp_path: Path) -> None:
    for last in (10, 30):
        history = [{"step": i, "loss": LOSSES[i - 1]} for i in range(1, last + 1)]
        folder = tmp_path / saved.format(last)
        write(folder / "trainer_state.json", json.dumps({"log_history": history}))
    (run,) = gp.read_traces(tmp_path)
    check(run, BY_ROW, LOSSES)
