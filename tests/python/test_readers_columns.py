# SPDX-License-Identifier: Apache-2.0
"""Columns that only seem to count, names of values and of losses as other tools choose them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from log_files import check, one, write

import glidepath as gp

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


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (["0.5k", "1k", "1.005k", "1.2M"], [500, 1000, 1005, 1_200_000]),
        (["900", "950", "1.0 K", "2.5K"], [900, 950, 1000, 2500]),
        (["0.5k/1M", "1k/1M", "2k/1M", "3k/1M"], [500, 1000, 2000, 3000]),
        (["1B", "2B", "2.5G", "3G"], [1e9, 2e9, 2.5e9, 3e9]),
    ],
)
def test_steps_may_be_written_in_thousands_and_millions(
    tmp_path: Path, steps: list[str], expected: list[float]
) -> None:
    for mark, name in ((",", "t.csv"), ("\t", "t.tsv"), ("|", "t.txt")):
        rows = "".join(f"{step}{mark}{4 - i}\n" for i, step in enumerate(steps))
        run = one(write(tmp_path / name, f"global_step{mark}loss\n{rows}"))
        check(run, expected, [4, 3, 2, 1])
        assert run.planned_steps == (1e6 if "/" in steps[0] else None)
    if " " not in steps[2] and "/" not in steps[0]:
        rows = "".join(f"{step} {4 - i}\n" for i, step in enumerate(steps))
        check(one(write(tmp_path / "blanks", f"step loss\n{rows}")), expected, [4, 3, 2, 1])
        rows = "".join(f"| {step} | {4 - i} |\n" for i, step in enumerate(steps))
        text = f"Progress\n\n| step | loss |\n|---|---|\n{rows}"
        check(one(write(tmp_path / "log", text)), expected, [4, 3, 2, 1])


@pytest.mark.parametrize("step", ["1.2m", "k", "1.2.3k", "-1k", "1e3k", "0x1k", "1kk"])
def test_what_only_resembles_thousands_is_no_step(tmp_path: Path, step: str) -> None:
    with pytest.raises(gp.IoError, match=rf":3: step '{step}' is not a finite number"):
        one(write(tmp_path / "t.csv", f"step,loss\n1,3\n{step},2\n"))


FORMS_WITH_BARS = {
    "sqlite": "step|loss|lr|note\n" + "{rows}",
    "psql": " step |  loss  |  lr   | note\n------+--------+-------+------\n{rows}(30 rows)\n\n",
    "without outer bars": "step | loss | lr | note\n--- | :---: | --: | ---\n{rows}",
    "Markdown": "| step | loss | lr | note |\n|------|-----:|:---|---|\n{rows}",
    "ruled": "+-----+-----+-----+----+\n|step |loss |lr |note|\n+-----+-----+-----+----+\n{rows}"
    "+-----+-----+-----+----+\n",
}


@pytest.mark.parametrize("form", FORMS_WITH_BARS)
@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.md", "log"])
@pytest.mark.parametrize("commas", [False, True])
def test_tables_between_bars_are_tables(tmp_path: Path, form: str, name: str, commas: bool) -> None:
    row = "| {} | {} | 0.001 | ok |" if form in ("Markdown", "ruled") else " {} | {} | 0.001 | ok"
    row = "{}|{}|0.001|" if form == "sqlite" else row
    rows = "".join(row.format(i, x) + "\n" for i, x in zip(ROWS, LOSSES, strict=True))
    if commas and form not in ("Markdown", "ruled"):
        rows = rows.replace(".", ",")
    run = one(write(tmp_path / name, FORMS_WITH_BARS[form].format(rows=rows)))
    check(run, BY_ROW, LOSSES, [0.001] * 30)


def test_lines_of_a_log_between_bars_stay_lines_of_a_log(tmp_path: Path) -> None:
    rows = "".join(f"step {i} | loss {x} | lr 0.001\n" for i, x in zip(ROWS, LOSSES, strict=True))
    for head in ("", "run | started\n", "step | loss | lr\n"):
        run = one(write(tmp_path / "log", head + rows))
        check(run, BY_ROW, LOSSES, [0.001] * 30)
        assert "of lines as" in run.notes[0]


@pytest.mark.parametrize("name", ["optimizer", "Optimizer", "optim", "optimizer_name"])
def test_a_column_that_names_the_optimizer_is_a_setting(tmp_path: Path, name: str) -> None:
    text = table(f"step,{name},loss\n", "{i},adamw,{x}")
    run = one(write(tmp_path / "t.csv", text))
    check(run, BY_ROW, LOSSES)
    assert run.settings == {name: "adamw"}
    rows = [{"step": i, name: "adamw", "loss": x} for i, x in zip(ROWS, LOSSES, strict=True)]
    rows[0]["config"] = {"width": 8}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert one(write(tmp_path / "t.jsonl", text)).settings == {name: "adamw", "width": 8}
    arrow = pytest.importorskip("pyarrow", reason="pip install 'glidepath[arrow]'")
    table_of = arrow.table({"step": BY_ROW, "loss": LOSSES, name: ["adamw"] * 30})
    assert gp.read_traces(table_of)[0].settings == {name: "adamw"}


def test_optimizers_at_the_same_steps_are_runs_with_a_setting_each(tmp_path: Path) -> None:
    text = "seed,optimizer,step,loss\n"
    for seed in (1, 2):
        for shift, optimizer in enumerate(("adam", "sgd")):
            text += table("", f"{seed},{optimizer},{{i}},{'{x}' if shift == 0 else '{y}'}")
    runs = gp.read_traces(write(tmp_path / "t.csv", text))
    assert [(run.name, dict(run.settings)) for run in runs] == [
        (f"{seed}/{optimizer}", {"optimizer": optimizer})
        for seed in (1, 2)
        for optimizer in ("adam", "sgd")
    ]
    for run in runs:
        check(run, BY_ROW, LOSSES if "adam" in run.name else [x + 5 for x in LOSSES])
    # One that takes over from another tells nothing apart.
    rows = [f"{i},{'adam' if i < 15 else 'sgd'},{x}\n" for i, x in zip(ROWS, LOSSES, strict=True)]
    run = one(write(tmp_path / "t.csv", "step,optimizer,loss\n" + "".join(rows)))
    check(run, BY_ROW, LOSSES)
    assert run.settings == {}
