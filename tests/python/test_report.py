# SPDX-License-Identifier: Apache-2.0
"""The HTML reports: self-contained, complete, with the numbers of the results."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _report

ROOT = Path(__file__).resolve().parents[2]
SUPERCOM = ROOT / "data" / "workloads" / "supercom"

pytest.importorskip("plotly")


def embedded(page: str, name: str) -> Any:
    found = re.search(rf"<script type=application/json id={name}>(.*?)</script>", page, re.DOTALL)
    assert found
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[gp.Simulation]]:
    workload = gp.read_workload(SUPERCOM)
    results = [gp.simulate(workload, policy) for policy in ("fifo", "dare")]
    path = tmp_path_factory.mktemp("report") / "report.html"
    _report.write_simulations(path, results, workload)
    return path.read_text(), results


def test_the_page_needs_nothing_from_outside(page: tuple[str, list[gp.Simulation]]) -> None:
    markup = re.sub(r"<script>.*?</script>", "", page[0], flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)\s*=\s*['\"]?(?:https?:)?//", markup)
    assert page[0].count("plotly.js v") == 1


def test_the_table_and_the_data_have_the_metrics(page: tuple[str, list[gp.Simulation]]) -> None:
    text, results = page
    for row, result in zip(embedded(text, "data"), results, strict=True):
        assert row["policy"] == result.policy
        assert row["mean_jct_s"] == result.mean_jct_s
        assert row["energy_kwh"] == result.energy_kwh
        assert f"<span>{result.mean_jct_s / 3600:.2f}</span></td>" in text


def test_every_figure_has_its_place_and_its_points(
    page: tuple[str, list[gp.Simulation]],
) -> None:
    text, results = page
    figures = embedded(text, "figures")
    assert set(figures) == set(re.findall(r"<div class=figure id=(figure-\d+)", text))
    # The Gantt charts: hours drawn times one row per GPU are the GPU-hours of the simulation.
    charts = [figure for figure in figures.values() if "base" in figure["data"][0]]
    for chart, result in zip(charts, results, strict=True):
        assert sum(chart["data"][0]["x"]) * 3600 == pytest.approx(result.gpu_seconds, rel=1e-4)


def test_runs_get_a_forecast_and_advice(tmp_path: Path) -> None:
    step = np.arange(1.0, 201.0)
    traces = [
        gp.Trace(step, 2.0 + 3.0 * step**-0.5, name="on its way <b>"),
        gp.Trace(step, 4.0 + 3.0 * step**-0.5, name="hopeless"),
        gp.Trace(step, np.where(step > 190, np.nan, 2.0 + 3.0 * step**-0.5), name="diverged"),
    ]
    path = tmp_path / "runs.html"
    _report.write_runs(path, traces, target=2.15, budget=1000)
    text = path.read_text()
    rows = embedded(text, "data")
    assert rows[0]["advice"].startswith("continue")
    assert rows[1]["advice"].startswith("stop")
    assert rows[2]["advice"] == "stop: diverged, its last loss is not finite"
    assert "on its way <b>" not in text.replace(json.dumps("on its way <b>"), "")


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    trace = gp.Trace([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.5, 2.2])
    with pytest.raises(gp.IoError, match="missing"):
        _report.write_runs(tmp_path / "missing" / "page.html", [trace])
    assert list(tmp_path.iterdir()) == []
