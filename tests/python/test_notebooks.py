# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from the first cell to the last, and results show themselves in them."""

from __future__ import annotations

import os
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
SUPERCOM = ROOT / "data" / "workloads" / "supercom"


def test_all_six_notebooks_are_found() -> None:
    assert len(NOTEBOOKS) == 6


# Jupyter's own libraries warn about each other.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = str(Path(gp.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    notebook = jupytext.read(path)
    # Raises at the first cell that fails, with its traceback; no time limit on a busy machine.
    client = nbclient.NotebookClient(
        notebook, timeout=None, startup_timeout=600, kernel_name="python3"
    )
    client.execute(cwd=str(path.parent))
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output.get("name") == "stderr"]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert kinds & {"text/html", "image/png"}, "no result shows itself"


def test_notebooks_use_what_is_public() -> None:
    for path in NOTEBOOKS:
        assert not re.search(r"\b(from|import) glidepath[\w.]*\._", path.read_text()), path.name


def test_no_stop_of_the_notebook_was_wrong_by_the_rule_that_its_watch_reads_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (p for p in NOTEBOOKS if p.stem == "03_stop_hopeless_runs")
    monkeypatch.chdir(path.parent)
    runpy.run_path(path.name)
    assert ", 0 of them wrongly" in capsys.readouterr().out


class Tags(HTMLParser):
    """Opens and closes every tag, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def results() -> dict[str, Any]:
    step = np.arange(1.0, 101.0)
    run = gp.Trace(step, 2.0 + 3.0 * step**-0.5, name="run")
    watch = gp.Watch(target=2.2, budget=400)
    for t, y in zip(run.step, run.loss, strict=True):
        watch.add(t, y)
    plans: list[gp.Plan] = []

    def keep(now: gp.Snapshot) -> gp.Plan:
        plans.append(gp.plan(now))
        return plans[-1]

    simulation = gp.simulate(gp.read_workload(SUPERCOM), keep)
    return {
        "Fit": gp.fit(run, family="pow3"),
        "Forecast": gp.forecast(run, [150.0, 200.0]),
        "Reach": gp.reach(run, 2.2, budget=400),
        "Decision": watch.decision(),
        "Plan": next(plan for plan in plans if plan.reasons),
        "Simulation": simulation,
    }


def test_results_show_themselves_in_a_notebook() -> None:
    for name, result in results().items():
        page = Tags()
        page.feed(result._repr_html_())
        assert page.open == [], name
        assert name in page.text
        assert result._summary() in page.text, name
        for row in result._rows():
            assert row[0] in page.text, name
            assert row[1] in page.text, name
        drawn = "<svg" in result._repr_html_()
        assert drawn == (name != "Decision"), name
