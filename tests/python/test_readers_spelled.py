# SPDX-License-Identifier: Apache-2.0
"""Numbers, marks and processes as other countries, printers and launchers spell them."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import check, one, write

import glidepath as gp

ROWS = range(1, 31)
BY_ROW = [float(i) for i in ROWS]
LOSSES = [round(1 + 2 * i**-0.5, 4) for i in ROWS]


def lines(form: str) -> str:
    """Give a line a row: `i` counts, `x` is the loss with a point and `c` with a comma."""
    return "".join(
        form.format(i=i, n=500 * i, x=f"{x:.4f}", c=f"{x:.4f}".replace(".", ",")) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )


# ------------------------------------------------------------------------------- decimal commas


@pytest.mark.parametrize(
    "form",
    [
        "01.04.2023 12:00:{i:02d} step {i} loss {c}",
        "12:00:{i:02d}.123 INFO step {i} loss {c}",
        "step {i} loss {c} time 0.5s",
        "time 1.25 step {i} loss: {c}, version 3.11",
    ],
)
def test_decimal_commas_of_a_metric_count_beside_points_of_other_numbers(
    form: str, tmp_path: Path
) -> None:
    check(one(write(tmp_path / "log", lines(form))), BY_ROW, LOSSES)


def test_a_decimal_comma_may_have_an_exponent_or_a_unit(tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines("step {i} elapsed {i},5s loss {c} lr 1,5E-04")))
    check(run, BY_ROW, LOSSES, [1.5e-4] * len(ROWS))
    assert run.wall_seconds is not None
    assert run.wall_seconds.tolist() == [i + 0.5 for i in ROWS]


def test_points_between_thousands_are_none_of_decimals_where_commas_are(tmp_path: Path) -> None:
    text = "".join(f"step {500 * i:,} loss {x:.4f}\n" for i, x in zip(ROWS, LOSSES, strict=True))
    text = text.translate(str.maketrans(",.", ".,"))
    check(one(write(tmp_path / "log", text)), [500 * i for i in BY_ROW], LOSSES)


@pytest.mark.parametrize(
    "form",
    ["gpus 0,1 step {i} loss {x}", "step {i} loss {x} shape 3,5 size=4,25", "epoch 1,20 loss {x}"],
)
def test_commas_of_a_list_are_no_points(form: str, tmp_path: Path) -> None:
    assert one(write(tmp_path / "log", lines(form))).loss.tolist() == LOSSES


# ------------------------------------------------------------------------------ other characters


@pytest.mark.parametrize("mark", ["_", "'", "\u2019", "\u202f", "\u00a0", ","])
def test_thousands_may_be_marked_in_any_way(mark: str, tmp_path: Path) -> None:
    text = "".join(
        f"step {500 * i:,}/{15000:,} ".replace(",", mark) + f"loss {x}\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
    )
    run = one(write(tmp_path / "log", text))
    check(run, [500 * i for i in BY_ROW], LOSSES)
    assert run.planned_steps == 15000


def test_names_with_numbers_have_no_thousands(tmp_path: Path) -> None:
    text = lines("run_1_000 'exp 2_5' step {i} loss {x} saved model_{i}_100.pt")
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


def test_a_sign_of_minus_is_one(tmp_path: Path) -> None:
    run = one(write(tmp_path / "log", lines("step {i} loss \u2212{x}")))
    check(run, BY_ROW, [-x for x in LOSSES])


@pytest.mark.parametrize(
    "form",
    [
        "Epoch {i}/40\uff0cLoss\uff1a{x}\uff0cAcc\uff1a0.5",
        "Epoch\uff1a{i}\u3001Loss\uff1d{x}\uff1bAcc\uff1d0.5",
        "Epoch\u00a0{i}:\u00a0Loss\u00a0{x},\u00a0Acc\u00a00.5",
        "\u7b2c1\u6b21\uff08Epoch {i}\uff09 Loss {x} Acc 0.5",
    ],
)
def test_wide_signs_stand_for_those_of_ascii(form: str, tmp_path: Path) -> None:
    file = write(tmp_path / "log", lines(form))
    check(one(file), BY_ROW, LOSSES)
    assert {"Loss", "Acc"} <= {info.metric for info in gp.metrics_of(file)}


def test_what_is_said_to_be_a_number_has_no_verb_in_its_name(tmp_path: Path) -> None:
    file = write(tmp_path / "log", lines("epoch: 1 step: {i}, loss is {x}"))
    check(one(file, "loss"), BY_ROW, LOSSES)


# ---------------------------------------------------------------------------------- data frames


def frame(index: list[str], names: list[str], rows: list[list[str]]) -> str:
    """Print a table as pandas and R do: names and numbers to the right, row numbers to the left."""
    cells = [names, *rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
    first = max(map(len, index))
    return "".join(
        f"{number:<{first}} "
        + " ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        + "\n"
        for number, row in zip(["", *index], cells, strict=True)
    )


@pytest.mark.parametrize("first", [0, 1, 25])
@pytest.mark.parametrize("step", ["{}", "{}.0"])
def test_a_printed_data_frame_has_no_name_for_its_row_numbers(
    first: int, step: str, tmp_path: Path
) -> None:
    index = [str(first + i) for i in range(len(ROWS))]
    rows = [[step.format(10 * i), f"{x:.4f}", "0.001"] for i, x in zip(ROWS, LOSSES, strict=True)]
    text = "fit done\n" + frame(index, ["step", "train_loss", "lr"], rows)
    run = one(write(tmp_path / "log", text))
    check(run, [10 * i for i in BY_ROW], LOSSES, [0.001] * len(ROWS))


@pytest.mark.parametrize(
    ("names", "form"),
    [
        ("  epoch    train_loss    valid_acc", "      {i}        {x}       0.5  +"),
        ("  epoch  loss  time", "{i}  {x}  12 s"),
        ("epoch  loss  acc", "{i}  {x}  0.5  7"),
    ],
)
def test_a_table_whose_rows_have_a_field_more_is_no_data_frame(
    names: str, form: str, tmp_path: Path
) -> None:
    check(one(write(tmp_path / "log", names + "\n" + lines(form))), BY_ROW, LOSSES)


# ---------------------------------------------------------------------------- tables of numbers


def test_a_table_of_decimal_commas_may_have_points_between_thousands(tmp_path: Path) -> None:
    text = "step;loss\n500;2,41\n1.000;1.234,5\n1.000.000;0,125\n"
    check(one(write(tmp_path / "a.csv", text)), [500, 1000, 1e6], [2.41, 1234.5, 0.125])
    text = "step;loss\n1;2.125\n2;1.125\n"
    check(one(write(tmp_path / "b.csv", text)), [1, 2], [2.125, 1.125])


def test_quoted_thousands_are_numbers(tmp_path: Path) -> None:
    text = 'step,loss\n500,"2,420.78"\n"1,000",3.5\n"12,000","-1,234,567"\n'
    check(one(write(tmp_path / "a.csv", text)), [500, 1000, 12000], [2420.78, 3.5, -1234567])
    with pytest.raises(gp.IoError, match=r"a\.csv:2: loss '2,42' is not a number"):
        gp.read_traces(write(tmp_path / "a.csv", 'step,loss\n1,"2,42"\n'))


def test_a_count_may_say_its_end_or_its_name(tmp_path: Path) -> None:
    run = one(write(tmp_path / "a.csv", "Epoch,loss\n1/50,3\n2/50,2\n3/50,1.5\n"))
    check(run, [1, 2, 3], [3, 2, 1.5])
    assert run.planned_steps == 50
    check(one(write(tmp_path / "b.csv", "Epoch,loss\nEpoch 1,3\nEpoch 2,2\n")), [1, 2], [3, 2])
    with pytest.raises(gp.IoError, match=r"c\.csv:2: Epoch 'a/50' is not a finite number"):
        gp.read_traces(write(tmp_path / "c.csv", "Epoch,loss\na/50,3\n"))


def test_rows_of_json_may_count_in_a_fraction(tmp_path: Path) -> None:
    text = lines('{{"loss": {x}, "epoch": 0.5, "global_step/max_steps": "{i}/500"}}')
    run = one(write(tmp_path / "logging.jsonl", text))
    check(run, BY_ROW, LOSSES)
    assert run.planned_steps == 500


@pytest.mark.parametrize("below", ["3\n2\n", "3\nthe end\n1\n", ""])
def test_a_column_alone_asks_for_numbers(below: str, tmp_path: Path) -> None:
    with pytest.raises(gp.IoError, match=r"'loss' alone needs three numbers or more below it"):
        gp.read_traces(write(tmp_path / "a.csv", f"loss\n{below}"))


def test_zeros_within_a_short_log_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "log"
    half = lines("step {i} loss {x}").encode().splitlines(keepends=True)
    file.write_bytes(b"".join(half[:15]) + b"\0" * 512 + b"".join(half[15:]))
    check(one(file), BY_ROW, LOSSES)
    file.write_bytes(b"\x01\x02\0\0" * 100 + lines("step {i} loss {x}").encode())
    with pytest.raises(gp.IoError, match="a log of no known format"):
        gp.read_traces(file)


# -------------------------------------------------------------------------------------- processes


def of_ranks(form: str) -> str:
    """Give each row of three processes, whose losses are apart, the last one first."""
    return "".join(
        form.format(i=i, x=x + r, r=r) + "\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
        for r in ((2, 0, 1) if i > 1 else (0, 1, 2))
    )


@pytest.mark.parametrize(
    "form",
    [
        "[INFO] local_rank={r} step {i} loss {x}",
        "[global_rank {r}] step {i} loss {x}",
        "worker-{r}: step {i} loss {x}",
        "node{r}: step {i} loss {x}",
        "10.0.0.{r}: step {i} loss {x}",
        "[{r}]<stdout>: step {i} loss {x}",
        "[{r}]<stdout>:step {i} loss {x}",
        "[1,mpirank:{r},algo-1]<stdout>:step {i} loss {x}",
        "[{r}] step {i} loss {x}",
        "trainer/{r} step {i} loss {x}",
        "[pod/job-worker-{r}/pytorch] step {i} loss {x}",
        "[xla:{r}]({i}) step {i} loss={x}",
    ],
)
def test_launchers_say_before_a_line_which_process_printed_it(form: str, tmp_path: Path) -> None:
    check(one(write(tmp_path / "log", of_ranks(form))), BY_ROW, LOSSES)


def test_the_master_of_pods_is_before_its_workers(tmp_path: Path) -> None:
    text = "".join(
        f"[pod/job-{pod}-0/pytorch] step {i} loss {x + (pod != 'master')}\n"
        for i, x in zip(ROWS, LOSSES, strict=True)
        for pod in ("worker", "master")
    )
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


@pytest.mark.parametrize(
    "form",
    ["[{e}] step {i} loss {x}", "[{i}] loss {x}", "lora_rank={e} step {i} loss {x}"],
)
def test_numbers_that_only_go_on_are_no_processes(form: str, tmp_path: Path) -> None:
    text = "".join(
        form.format(e=(i - 1) // 10, i=i, x=x) + "\n" for i, x in zip(ROWS, LOSSES, strict=True)
    )
    check(one(write(tmp_path / "log", text)), BY_ROW, LOSSES)


@pytest.mark.parametrize("rank", ["rank", "global_rank", "local_rank", "process_index"])
@pytest.mark.parametrize(
    ("name", "first", "form"),
    [
        ("a.csv", "step,{rank},loss\n", "{i},{r},{x}"),
        ("a.jsonl", "", '{{"step": {i}, "{rank}": {r}, "loss": {x}}}'),
        ("a.tsv", "{rank}\tepoch\tloss\n", "{r}\t{i}\t{x}"),
    ],
)
def test_a_column_of_ranks_has_the_first_one_read(
    rank: str, name: str, first: str, form: str, tmp_path: Path
) -> None:
    text = first.format(rank=rank) + of_ranks(form.replace("{rank}", rank))
    run = one(write(tmp_path / name, text))
    check(run, BY_ROW, LOSSES)
    assert "of 3 ranks the first was read" in run.notes


def test_rows_without_a_rank_stay_beside_those_of_the_first(tmp_path: Path) -> None:
    text = "".join(
        f'{{"step": {i}, "rank": 0, "loss": {x}}}\n{{"step": {i}, "rank": 1, "loss": 9}}\n'
        + (f'{{"step": {i}, "val_loss": {x + 1}}}\n' if i % 3 == 0 else "")
        for i, x in zip(ROWS, LOSSES, strict=True)
    )
    file = write(tmp_path / "a.jsonl", text)
    check(one(file), BY_ROW, LOSSES)
    check(one(file, "val_loss"), BY_ROW[2::3], [x + 1 for x in LOSSES[2::3]])


@pytest.mark.parametrize("ranks", [[5.0] * 10 + [7.0] * 20, [4.0, 8.0, 16.0] * 10])
def test_a_rank_that_others_do_not_share_steps_with_is_that_of_a_matrix(
    ranks: list[float], tmp_path: Path
) -> None:
    text = "step,rank,loss\n" + "".join(
        f"{i},{rank:g},{x}\n" for i, rank, x in zip(ROWS, ranks, LOSSES, strict=True)
    )
    check(one(write(tmp_path / "a.csv", text)), BY_ROW, LOSSES)
