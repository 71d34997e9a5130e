# SPDX-License-Identifier: Apache-2.0
"""Columns that only seem to count, names of values and of losses as other tools choose them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from log_files import check, one, write

ROWS = range(1, 31)
BY_ROW = [float(i) for i in ROWS]
LOSSES = [round(1 + 2 * i**-0.5, 4) for i in ROWS]


def table(head: str, form: str) -> str:
    return head + "".join(
        form.format(i=i, x=x, y=x + 5, z=200 + i * 5 % 7) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )


def test_steps_that_an_episode_took_count_no_episodes(tmp_path: Path) -> None:
    text = table("Episode,Reward,Epsilon,Steps\n", "{i},{x},0.9,{z}")
    check(one(write(tmp_path / "log.csv", text)), BY_ROW, LOSSES)


def test_steps_within_an_epoch_still_count_on(tmp_path: Path) -> None:
    rows = [f"{i},{i // 5},{i % 5},{x}" for i, x in enumerate(LOSSES)]
    text = "index,epoch,step,loss\n" + "\n".join(rows) + "\n"
    check(one(write(tmp_path / "log.csv", text)), [float(i) for i in range(30)], LOSSES)


@pytest.mark.parametrize("value", ["value", "scalar_value", "simple_value"])
def test_rows_by_tag_are_a_curve_for_each_tag(value: str, tmp_path: Path) -> None:
    text = "".join(
        json.dumps({"tag": tag, "global_step": i, value: x + shift}) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
        for tag, shift in (("train/loss", 0), ("val/loss", 5))
    )
    file = write(tmp_path / "log.jsonl", text)
    assert one(file).metric == "train/loss"
    check(one(file), BY_ROW, LOSSES)


def test_the_report_of_kaldi_counts_by_its_first_column(tmp_path: Path) -> None:
    text = table("%Iter\tduration\ttrain_objective\n", "{i}\t100.0\t-{x}")
    run = one(write(tmp_path / "accuracy.report", text))
    check(run, BY_ROW, [-x for x in LOSSES])
    assert run.direction == "max"


def test_wall_is_a_clock(tmp_path: Path) -> None:
    run = one(write(tmp_path / "log.csv", table("epoch,wall,loss\n", "{i},{i}.5,{x}")))
    assert run.wall_seconds is not None
    assert list(run.wall_seconds) == [i + 0.5 for i in ROWS]


@pytest.mark.parametrize(
    ("others", "metric"),
    [
        ("va_loss", "tr_loss"),
        ("Loss/scores/fake", "Loss/G/loss"),
        ("train/image_loss", "episode/score"),
    ],
)
def test_the_metric_that_a_person_would_look_at(others: str, metric: str, tmp_path: Path) -> None:
    text = table(f"step,{others},{metric}\n", "{i},{y},{x}")
    run = one(write(tmp_path / "log.csv", text))
    assert run.metric == metric
    check(run, BY_ROW, LOSSES)


@pytest.mark.parametrize("name", ["optimizer_step", "Optimizer Steps"])
def test_steps_of_the_optimizer_count(tmp_path: Path, name: str) -> None:
    table = write(tmp_path / "t.csv", f"epoch,{name},loss\n1,7,3\n1,14,2\n2,21,1\n")
    check(one(table), [7, 14, 21], [3, 2, 1])
