# SPDX-License-Identifier: Apache-2.0
"""The backtest: its scores against ones worked out by hand, its refusals, its document."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp
from glidepath import bench as backtest
from glidepath._bench.accuracy import SCHEMA, collections


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    t = np.arange(1, 41)
    lines = ["curve,step,value"]
    for i in range(9):
        loss = 1 + 0.1 * i + t ** -(0.4 + 0.05 * i)
        lines += [f"run{i},{s},{v!r}" for s, v in zip(t.tolist(), loss.tolist(), strict=True)]
    lines += [f"short,{s},1.0" for s in range(1, 5)]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_last_value_scores_what_a_hand_calculation_gives(folder: Path) -> None:
    result = backtest.accuracy(folder, methods=["last"])
    row = next(r for r in result.rows if r["run"] == "run0" and r["cutoff"] == 0.4)
    loss = 1 + np.arange(1, 41) ** -0.4
    assert row["seen"] == 16
    assert row["error"] == pytest.approx(abs(loss[15] - loss[-1]) / np.ptp(loss))
    assert row["crps"] == pytest.approx(np.mean(np.abs(loss[15] - loss[16:])) / np.ptp(loss))
    assert result.table()[0]["skill"] == 0.0
    assert result.table()[0]["n"] == 9 * 5


def test_forecasts_beat_the_last_value_on_power_laws(folder: Path) -> None:
    result = backtest.accuracy(folder, methods=["glidepath", "glidepath+past", "pow3"])
    table = {row["method"]: row for row in result.table()}
    for method in ("glidepath", "glidepath+past", "pow3"):
        assert table[method]["skill"] > 0.3
        assert table[method]["mae"] < table["last"]["mae"]
    assert 0.0 <= table["glidepath"]["cov80"] <= 1.0
    assert {row["collection"] for row in result.table(by="collection")} == {"runs"}
    decisions = result.decisions()
    assert decisions["auc"] > 0.8
    document = json.loads(json.dumps(result.to_dict()))
    assert document["schema"] == SCHEMA
    names = {"n", "mae", "median_error", "crps", "bad", "skill", "cov80", "cov80_final", "rank"}
    assert {*names, "cpu_ms"} < set(document["overall"][0])


def test_widths_learned_from_runs_of_other_groups_bring_the_coverage_to_what_is_said(
    tmp_path: Path,
) -> None:
    # Walks in log time, which the forecast alone finds far too smooth.
    t = np.arange(1, 61)
    lines = ["curve,step,value"]
    for i in range(24):
        walk = np.cumsum(np.random.RandomState(i).standard_normal(60)) / t**0.5
        loss = np.exp(0.3 * walk) * (1 + 3 * t**-0.5)
        lines += [f"task{i}/a,{s},{v!r}" for s, v in zip(t.tolist(), loss.tolist(), strict=True)]
    (tmp_path / "walks.csv").write_text("\n".join(lines) + "\n")
    result = backtest.accuracy(
        tmp_path, methods=["glidepath", "glidepath+calibrated"], max_curves=24
    )
    table = {row["method"]: row for row in result.table()}
    alone, learned = (
        abs(table[name]["cov80"] - 0.8) for name in ("glidepath", "glidepath+calibrated")
    )
    assert alone > 0.05
    assert learned < 0.5 * alone
    assert table["glidepath"]["mae"] == table["glidepath+calibrated"]["mae"]


def test_widths_for_known_schedules_forecast_our_own_transformers_better() -> None:
    file = Path(__file__).parents[2] / "data/curves/docs-transformer.csv.gz"
    result = backtest.accuracy(file, methods=["glidepath+lr", "glidepath+lr+calibrated"])
    table = {row["method"]: row for row in result.table()}
    alone, learned = table["glidepath+lr"], table["glidepath+lr+calibrated"]
    assert 0.73 < learned["cov80"] < 0.87  # what widths from past runs are held to
    assert learned["mae"] < alone["mae"]  # the schedule misleads on them
    assert learned["crps"] < alone["crps"]


def test_times_to_target_of_a_method_that_knows_the_schedule_are_those_with_it() -> None:
    file = Path(__file__).parents[2] / "data/gpu/code-gpt.csv.gz"
    result = backtest.accuracy(file, methods=["glidepath+lr"], max_curves=3, cutoffs=[0.4])
    found = {row["run"]: row for row in result.rows if row["method"] == "glidepath+lr"}
    assert len(found) == 3
    for run in gp.read_traces(file):
        if run.name not in found:
            continue
        at, half = round(0.7 * len(run)), max(1, round(0.03 * len(run)))
        target = float(run.loss[at - half : at + half].mean())
        law = gp.reach(
            run.until(run.step[round(0.4 * len(run)) - 1]),
            target,
            budget=3 * run.step[-1],
            schedule=gp.Schedule.logged(run),
            reached_by="point",
        )
        truth = run.step[np.argmax(run.loss <= target)]
        error = abs(np.log(law.quantile(0.5, if_reached=True) / truth))
        assert found[run.name]["reach_error"] == pytest.approx(error)


def test_picture_of_errors_by_cutoff_has_a_line_for_each_method(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    result = backtest.accuracy(folder, methods=["glidepath"])
    ax = result.plot_cutoffs()
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"glidepath", "last"}
    for method, line in lines.items():
        table = {r["cutoff"]: r["mae"] for r in result.table(by="cutoff") if r["method"] == method}
        np.testing.assert_allclose(line.get_xdata(), 100 * np.array(list(table)))
        np.testing.assert_allclose(line.get_ydata(), list(table.values()))


def test_unknown_methods_and_empty_folders_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        gp.InputError, match="method is 'oracle', expected module:callable or one of"
    ):
        backtest.accuracy(folder, methods=["oracle"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(gp.IoError, match="empty: no traces in this folder"):
        backtest.accuracy(tmp_path / "empty")
    with pytest.raises(gp.InputError, match="no file with a curve of 10 finite points"):
        backtest.accuracy([gp.Trace([1, 2, 3], [3, 2, 1])])


def test_each_group_weighs_the_same_in_the_lines_by_share_seen(tmp_path: Path) -> None:
    t = np.arange(1, 41)
    lines = ["curve,step,value"]
    for name, rate in (("a/1", 0.5), ("a/2", 0.5), ("a/3", 0.5), ("b/1", 1.5), ("alone", 0.1)):
        loss = 1 + t**-rate
        lines += [f"{name},{s},{v!r}" for s, v in zip(t.tolist(), loss.tolist(), strict=True)]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    result = backtest.accuracy(tmp_path, methods=["glidepath"])
    lines_by_share = result.groups()
    assert [line["seen"] for line in lines_by_share] == ["all", "0.1", "0.2", "0.4", "0.6", "0.8"]
    assert {line["n_groups"] for line in lines_by_share} == {3}
    rows = [r for r in result.rows if r["method"] == "glidepath" and r["cutoff"] == 0.2]
    assert [r["run"] for r in rows] == ["a/1", "a/2", "a/3", "alone", "b/1"]
    each = [np.mean([r["crps"] for r in rows[:3]]), rows[3]["crps"], rows[4]["crps"]]
    assert lines_by_share[2]["crps"] == pytest.approx(np.mean(each))
    held = [np.mean([r["cov80"] for r in rows[:3]]), rows[3]["cov80"], rows[4]["cov80"]]
    assert lines_by_share[2]["within"] == np.mean([0.65 <= c <= 0.95 for c in held])
    last = result.groups("last")[2]
    truth = [1 + t[8:] ** -0.5, 1 + t[8:] ** -0.1, 1 + t[8:] ** -1.5]
    ranges = [1 - 40**-0.5, 1 - 40**-0.1, 1 - 40**-1.5]
    seen = [1 + 8**-0.5, 1 + 8**-0.1, 1 + 8**-1.5]
    by_hand = [np.mean(s - y) / r for s, y, r in zip(seen, truth, ranges, strict=True)]
    assert last["bias"] == pytest.approx(np.mean(by_hand))
    assert last["skill"] == 0.0


def test_tables_beside_curves_are_said_and_repeated_steps_count_once(
    tmp_path: Path,
) -> None:
    t = np.arange(1, 21)
    loss = 0.9 - 0.5 * t**-0.5
    lines = ["curve,step,value"]
    lines += [f"run,{s},{v!r}" for s, v in zip(t.tolist(), loss.tolist(), strict=True)]
    lines += ["run,3,0.25"]  # a second run of the same name begins
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "runs.json").write_text('{"direction": "max"}')
    (tmp_path / "index.csv").write_text("repository,size\na,1\n")
    table, collection = collections(tmp_path, max_curves=5)
    assert (table.name, table.curves) == ("index", ())
    assert table.trouble.endswith("index.csv: a log of no known format")
    np.testing.assert_array_equal(collection.curves[0].step, t)
    np.testing.assert_array_equal(collection.curves[0].loss, 1 - loss)
    with pytest.raises(gp.IoError, match="found only repository, size"):
        collections(tmp_path / "index.csv", max_curves=5)


def test_the_returns_of_a_collection_are_no_scores_where_some_are_below_1() -> None:
    """One task pays 0.9 at most: its runs are past runs of the others all the same."""
    t = np.arange(1.0, 41)
    runs = [
        gp.Trace(t, best * (1 - t**-0.5), name=f"task{i}/seed", direction="max")
        for i, best in enumerate((0.9, 300.0, 350.0, 400.0, 280.0, 320.0, 310.0))
    ]
    result = backtest.accuracy(runs, methods=["glidepath", "glidepath+past"])
    assert all(not row["failed"] for row in result.rows)


def test_links_within_a_folder_make_no_run_count_twice(folder: Path) -> None:
    alone = collections(folder, max_curves=99)
    (folder / "again").symlink_to(folder)
    (folder / "latest.csv").symlink_to(folder / "runs.csv")
    (folder / "above").symlink_to(folder.parent)
    linked = collections(folder, max_curves=99)
    assert [(each.name, len(each.curves)) for each in linked] == [
        (each.name, len(each.curves)) for each in alone
    ]
