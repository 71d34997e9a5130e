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
from glidepath._report import figures

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


def test_runs_get_a_forecast_and_the_verdict_of_a_watch(tmp_path: Path) -> None:
    step = np.arange(1.0, 201.0)
    traces = [
        gp.Trace(step, 2.0 + 3.0 * step**-0.5, name="on its way <b>"),
        gp.Trace(step, 4.0 + 3.0 * step**-1.5, name="hopeless"),
        gp.Trace(step, np.where(step > 190, np.nan, 2.0 + 3.0 * step**-0.5), name="diverged"),
    ]
    path = tmp_path / "runs.html"
    _report.write_runs(path, traces, target=2.15, budget=1000)
    text = path.read_text()
    rows = embedded(text, "data")
    assert [row["verdict"] for row in rows] == ["unknown", "never", "diverged"]
    assert [row["stop"] for row in rows] == [False, True, True]
    assert rows[0]["reason"].startswith("reaches 2.15 by step 1 000 with probability")
    assert "on its way <b>" not in text.replace(json.dumps("on its way <b>"), "")


def test_what_holds_for_all_runs_is_said_once_above_them(tmp_path: Path) -> None:
    step = np.arange(1.0, 201.0)
    plan = [gp.Trace(step, 2.0 + k * step**-0.5, name=f"{k}", planned_steps=900) for k in (2, 3)]
    free = gp.Trace(step, 2.0 + step**-0.5, name="free")
    path = tmp_path / "runs.html"
    _report.write_runs(path, plan, target=2.15)
    text = path.read_text()
    assert text.count("Budget: planned by the log; target read by the curve.") == 1
    assert "data-label='horizon'" not in text
    for runs in ([*plan, free], [free]):
        _report.write_runs(path, runs, target=2.15)
        assert path.read_text().count("data-label='horizon'") == len(runs)


def test_a_run_without_a_finite_value_has_a_sentence_in_place_of_its_fan(tmp_path: Path) -> None:
    blind = gp.Trace(np.arange(1.0, 41.0), np.full(40, np.nan), name="blind", metric="val_loss")
    path = tmp_path / "runs.html"
    _report.write_runs(path, [blind], target=1.0)
    assert "1 run, forecast from what it has logged." in path.read_text()
    (fan,) = embedded(path.read_text(), "figures").values()
    assert fan["data"] == []
    assert [note["text"] for note in fan["layout"]["annotations"]] == ["no finite value so far"]
    assert fan["layout"]["yaxis"]["title"]["text"] == "val_loss"


def test_each_run_has_a_picture_whatever_the_runs_are_called(tmp_path: Path) -> None:
    step = np.arange(1.0, 30.0)
    names = ("a", "a (3)", "a", "", "run 4", "a")
    traces = [gp.Trace(step, 1.0 / step, name=name) for name in names]
    _report.write_runs(tmp_path / "report.html", traces)
    assert len(embedded((tmp_path / "report.html").read_text(), "figures")) == len(names)


@pytest.mark.filterwarnings("error")
def test_a_picture_of_a_page_has_a_number_for_each_number() -> None:
    smallest, largest = 5e-324, np.finfo(float).max
    values = [smallest, 1e-305, 0.0, 1.23456789, -largest]
    assert figures._round(values).tolist() == [0.0, 0.0, 0.0, 1.23457, -1.79769e308]


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    trace = gp.Trace([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.5, 2.2])
    with pytest.raises(gp.IoError, match="missing"):
        _report.write_runs(tmp_path / "missing" / "page.html", [trace])
    assert list(tmp_path.iterdir()) == []


def test_a_log_of_its_gpus_gives_a_run_its_energy(tmp_path: Path) -> None:
    step = np.arange(1.0, 101.0)
    run = gp.Trace(step, 2.0 + 3.0 * step**-0.5, wall_seconds=2.0 * (step - 1), planned_steps=300)
    seconds = np.arange(0.0, 251.0)
    watts = np.stack([np.full(251, 150.0), np.full(251, 250.0)], axis=1)
    metrics = gp.Metrics(seconds, {"power_w": watts}, gpus=("0", "1"), name="log")
    path = tmp_path / "report.html"
    (row,) = _report.write_runs(path, [run], hardware=metrics)
    assert row["step_joules"] == pytest.approx(800.0)  # 400 W for 2 s
    assert row["mean_watts"] == pytest.approx(400.0)
    assert row["energy_kwh"] == pytest.approx(99 * 800.0 / 3.6e6)
    assert row["energy_ahead_kwh"] == pytest.approx(200 * 800.0 / 3.6e6)
    text = path.read_text()
    assert "800 J" in text
    assert "2 GPUs of log." in text
    alone = gp.Metrics(seconds, {"power_w": watts[:, :1]}, gpus=("0",), name="log")
    _report.write_runs(path, [run], hardware=alone)
    assert "1 GPU of log." in path.read_text()
    *powers, loss = list(embedded(text, "figures").values())[-1]["data"]
    assert [power["y"][0] for power in powers] == [150.0, 250.0]
    assert loss["yaxis"] == "y2"
    with pytest.raises(gp.InputError, match="of one run, there are 2"):
        _report.write_runs(path, [run, run], hardware=metrics)
    with pytest.raises(gp.InputError, match="neither power nor an energy counter"):
        _report.write_runs(path, [run], hardware=gp.Metrics(seconds, {"utilization": np.ones(251)}))
