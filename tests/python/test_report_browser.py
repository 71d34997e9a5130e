# SPDX-License-Identifier: Apache-2.0
"""The HTML reports in a real browser: headless Chromium, opened from a file, without a network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath import _report

pytest.importorskip("plotly")
playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("Debian's chromium is not installed", allow_module_level=True)

SUPERCOM = Path(__file__).resolve().parents[2] / "data" / "workloads" / "supercom"
WIDTHS = [390, 1400]
PATIENCE_MS = 60_000  # for a busy machine; nothing waits that long on an idle one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    paths = {name: folder / f"{name}.html" for name in ("runs", "policies")}
    step = np.arange(1.0, 201.0)
    traces = [
        gp.Trace(step, 2.0 + 3.0 * step**-0.5, name="on its way <b>"),
        gp.Trace(step, 4.0 + 3.0 * step**-1.5, name="hopeless"),
        gp.Trace(step, 1.0 + 3.0 * step**-0.5, name="there"),
        *(gp.Trace(step, 2.0 + 3.0 * step**-0.4, name=f"another {i}") for i in range(5)),
    ]
    _report.write_runs(paths["runs"], traces, target=2.15, budget=1000)
    workload = gp.read_workload(SUPERCOM)
    results = [gp.simulate(workload, policy) for policy in ("fifo", "dare")]
    _report.write_simulations(paths["policies"], results, workload)
    return paths


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, timeout=PATIENCE_MS)
        yield started
        started.close()


class Opened:
    """A page, and what it complained of or asked the network for."""

    def __init__(self, browser: Any, path: Path, width: int) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        self.context.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.page = self.context.new_page()
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.goto(path.as_uri())

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"network: {request.url}")

    def scroll_to_every_figure(self) -> None:
        for figure in self.page.locator(".figure:visible").all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg.main-svg").first.wait_for(state="attached")

    def json(self, name: str) -> Any:
        return self.page.evaluate(f"JSON.parse(document.getElementById('{name}').textContent)")


@pytest.fixture(params=WIDTHS, ids=lambda width: f"{width}px", scope="module")
def opened(
    request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]
) -> Iterator[dict[str, Opened]]:
    both = {name: Opened(browser, path, request.param) for name, path in pages.items()}
    yield both
    for one in both.values():
        one.context.close()


@pytest.mark.parametrize("name", ["runs", "policies"])
def test_every_chart_is_drawn_and_nobody_complains(opened: dict[str, Opened], name: str) -> None:
    one = opened[name]
    one.scroll_to_every_figure()
    # What plotly drew, figure by figure: as many traces as the figure has, none of them empty.
    drawn = one.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".figure")]
            .filter(box => box.offsetParent)
            .map(box => [box.id, [...box.querySelectorAll(".scatterlayer > .trace, "
                + ".barlayer > .trace")].map(t => t.querySelectorAll("path").length)]))"""
    )
    figures = one.json("figures")
    assert drawn
    for figure, marks in drawn.items():
        assert len(marks) == len(figures[figure]["data"]), figure
        for trace, count in zip(figures[figure]["data"], marks, strict=True):
            assert count >= (len(trace["x"]) if trace["type"] == "bar" else 1), figure
    assert one.complaints == []


@pytest.mark.parametrize("name", ["runs", "policies"])
def test_the_page_fits_its_window(opened: dict[str, Opened], name: str) -> None:
    page = opened[name].page
    wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    inside = page.evaluate(
        """() => [...document.querySelectorAll("tbody td")].every(cell => {
            const box = cell.getBoundingClientRect(); return box.width > 0 && box.left >= 0; })"""
    )
    assert inside


@pytest.mark.parametrize("name", ["runs", "policies"])
def test_the_page_is_legible_by_day_and_by_night(opened: dict[str, Opened], name: str) -> None:
    one = opened[name]
    one.scroll_to_every_figure()
    for scheme, bright in (("dark", True), ("light", False)):
        one.page.emulate_media(color_scheme=scheme)
        one.page.wait_for_function(  # the charts follow once they are drawn again
            """bright => { const text = document.querySelector(".figure text");
                const red = text && getComputedStyle(text).fill.match(/[0-9]+/)[0];
                return text && (red > 128) === bright; }""",
            arg=bright,
        )
        legible(one.page)


def legible(page: Any) -> None:
    for text in ("body", ".soft", "td", ".figure text"):
        assert contrast(page, text) >= 4.5, text


def contrast(page: Any, selector: str) -> float:
    """Contrast of a text with the page, as WCAG 2 defines it."""
    paper, ink = page.evaluate(
        """selector => {
            const box = document.querySelector(selector), style = getComputedStyle(box);
            return [getComputedStyle(document.body).backgroundColor,
                    box instanceof SVGElement ? style.fill : style.color]; }""",
        selector,
    )
    lighter, darker = sorted((luminance(paper), luminance(ink)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_that_of_the_standard() -> None:
    assert luminance("rgb(255, 255, 255)") == pytest.approx(1.0)
    assert luminance("rgb(119, 119, 119)") == pytest.approx(0.1845, abs=1e-4)


def cells(page: Any) -> list[list[str]]:
    rows: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll("tbody tr")].map(
            row => [...row.cells].map(cell => cell.textContent))"""
    )
    return rows


def test_the_numbers_of_the_policies_are_those_of_the_json(opened: dict[str, Opened]) -> None:
    one = opened["policies"]
    hour = 3600
    for row, data in zip(cells(one.page), one.json("data"), strict=True):
        assert row == [
            data["policy"],
            f"{data['total_wait_s'] / hour:.1f}",
            f"{data['mean_wait_per_user_s'] / hour:.2f}",
            f"{data['mean_jct_s'] / hour:.2f}",
            f"{data['p95_jct_s'] / hour:.2f}",
            f"{data['makespan_s'] / hour:.1f}",
            f"{data['gpu_seconds'] / hour:.1f}",
            f"{data['energy_kwh']:.1f}",
            f"{data['preemptions']:.0f}",
            ", ".join(f"{count} {kind}" for kind, count in data["outcomes"].items()),
        ]


def test_the_numbers_of_the_runs_are_those_of_the_json(opened: dict[str, Opened]) -> None:
    one = opened["runs"]
    rows, data = cells(one.page), one.json("data")
    assert [row[0] for row in rows] == [run["run"] for run in data]
    assert rows[0][0] == "on its way <b>"
    for row, run in zip(rows, data, strict=True):
        assert row[2] == f"{run['loss']:.4g}"
        ahead = f"{run['median']:.4g} ({run['q10']:.4g} to {run['q90']:.4g}) at {run['at']:,.0f}"
        assert row[3] == ahead.replace(",", " ")
        assert row[6] == run["reason"]
    assert [row[5] for row in rows[:3]] == ["unknown", "never", "reached"]
    assert [row[8] for row in rows[:3]] == ["", "stop it", "stop it"]
    (chance,) = re.findall(r"with probability (.+),", rows[0][6])
    assert chance in (f"{data[0]['probability']:.0%}".replace("%", " %"), "> 99 %")
    (middle,) = re.findall(r"at step ([\d ]+) \(", rows[0][7])
    assert int(middle.replace(" ", "")) == pytest.approx(data[0]["reach_q50"], rel=5e-3)


def test_everything_is_within_reach_of_the_keyboard(opened: dict[str, Opened]) -> None:
    page = opened["policies"].page
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    met = []
    for _ in range(40):
        page.keyboard.press("Tab")
        met.append(page.evaluate("document.activeElement.getAttribute('role')"))
        if met[-1] == "tab":
            break
    assert "region" in met
    assert met[-1] == "tab"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    shown = "[...document.querySelectorAll('[role=tabpanel]')].map(panel => !panel.hidden)"
    assert page.evaluate(shown) == [True, False]
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown) == [False, True]
    assert page.evaluate("document.activeElement.textContent") == "dare"
    panel = page.locator("[role=tabpanel]:not([hidden]) .figure")
    panel.scroll_into_view_if_needed()
    panel.locator(".barlayer path").first.wait_for(state="attached")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown) == [True, False]


def test_a_page_that_breaks_is_noticed(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text("<script src='https://example.org/x.js'></script><script>nothing()</script>")
    one = Opened(browser, path, 390)
    said = " ".join(one.complaints)
    one.context.close()
    assert "network: https://example.org/x.js" in said
    assert "nothing is not defined" in said
