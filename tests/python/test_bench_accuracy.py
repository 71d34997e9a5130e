# SPDX-License-Identifier: Apache-2.0
"""The backtest: its scores against ones worked out by hand, its refusals, its document."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp
from glidepath._bench import accuracy as backtest


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
    result = backtest.run(folder, methods=["last"])
    row = next(r for r in result.rows if r["curve"] == "run0" and r["cutoff"] == 0.4)
    loss = 1 + np.arange(1, 41) ** -0.4
    assert row["seen"] == 16
    assert row["error"] == pytest.approx(abs(loss[15] - loss[-1]) / np.ptp(loss))
    assert row["crps"] == pytest.approx(np.mean(np.abs(loss[15] - loss[16:])) / np.ptp(loss))
    assert result.table()[0]["skill"] == 0.0
    assert result.table()[0]["n"] == 9 * 5


def test_forecasts_beat_the_last_value_on_power_laws(folder: Path) -> None:
    result = backtest.run(folder, methods=["glidepath", "glidepath+past", "pow3"])
    table = {row["method"]: row for row in result.table()}
    for method in ("glidepath", "glidepath+past", "pow3"):
        assert table[method]["skill"] > 0.3
        assert table[method]["mae"] < table["last"]["mae"]
    assert 0.0 <= table["glidepath"]["cov80"] <= 1.0
    assert {row["collection"] for row in result.table(by="collection")} == {"runs"}
    decisions = result.decisions()
    assert decisions["auc"] > 0.8
    document = json.loads(json.dumps(result.to_dict()))
    assert document["schema"] == backtest.SCHEMA
    names = {"n", "mae", "median", "crps", "bad", "skill", "cov80", "cov80_final", "rank"}
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
    result = backtest.run(tmp_path, methods=["glidepath", "glidepath+calibrated"], max_curves=24)
    table = {row["method"]: row for row in result.table()}
    alone, learned = (
        abs(table[name]["cov80"] - 0.8) for name in ("glidepath", "glidepath+calibrated")
    )
    assert alone > 0.05
    assert learned < 0.5 * alone
    assert table["glidepath"]["mae"] == table["glidepath+calibrated"]["mae"]


def test_widths_for_known_schedules_bring_our_own_transformers_to_what_is_said() -> None:
    file = Path(__file__).parents[2] / "data/curves/docs-transformer.csv.gz"
    result = backtest.run(file, methods=["glidepath+lr", "glidepath+lr+calibrated"])
    table = {row["method"]: row for row in result.table()}
    alone, learned = table["glidepath+lr"], table["glidepath+lr+calibrated"]
    assert abs(learned["cov80"] - 0.8) < 0.5 * abs(alone["cov80"] - 0.8)
    assert learned["mae"] < alone["mae"]  # the schedule misleads on them
    assert learned["crps"] < alone["crps"]


def test_picture_of_errors_by_cutoff_has_a_line_for_each_method(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    result = backtest.run(folder, methods=["glidepath"])
    ax = result.plot_cutoffs()
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"glidepath", "last"}
    for method, line in lines.items():
        table = {r["cutoff"]: r["mae"] for r in result.table(by="cutoff") if r["method"] == method}
        np.testing.assert_allclose(line.get_xdata(), 100 * np.array(list(table)))
        np.testing.assert_allclose(line.get_ydata(), list(table.values()))


def test_unknown_methods_and_empty_folders_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(gp.InputError, match="unknown method 'oracle'"):
        backtest.run(folder, methods=["oracle"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(gp.InputError, match="no file with a curve"):
        backtest.run(tmp_path / "empty")
