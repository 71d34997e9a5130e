# SPDX-License-Identifier: Apache-2.0
"""One self-contained interactive page: figures as plotly JSON, one embedded copy of plotly.js.

The page needs no network and opens from a file. Tables are HTML tables, every number on the page
comes from the JSON it embeds, colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import glidepath as gp
from glidepath import _series
from glidepath._plots import PALETTE
from glidepath._results import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "5px,1px", "1px,3px")
SHAPES = ("", "/", ".", "\\", "x", "-", "+", "|")
OBSERVED_SHARE = 0.3  # of each curve in the forecast pictures of a simulation's report

Figure = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5c5c5c; --line: #d5d5d5;
  --page: #ffffff; --card: #f6f7f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --soft: #a9a9a9; --line: #3c3f44; --page: #16181b; --card: #1f2226; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1.2rem; color: var(--ink);
  background: var(--page); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p { max-width: 46rem; } .soft { color: var(--soft); }
a { color: inherit; }
.scroll { overflow-x: auto; margin-bottom: 1rem; } .scroll:focus-visible, button:focus-visible {
  outline: 3px solid #0072B2; outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.words { white-space: normal; text-align: left; min-width: 9rem; overflow-wrap: anywhere; }
tr.best td { font-weight: 600; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: 1rem; }
.card { background: var(--card); border-radius: .5rem; padding: .5rem; min-width: 0; }
.card h3 { margin: .2rem .5rem; font-size: .95rem; overflow-wrap: anywhere; }
.figure { width: 100%; }
[role=tablist] { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }
button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: .4rem; padding: .25rem .7rem; cursor: pointer; }
button[aria-selected=true] { background: #0072B2; border-color: #0072B2; color: #fff; }
[hidden] { display: none; }
@media (max-width: 40rem) { /* a row becomes a card: nobody reads a wide table on a phone */
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; display: block; }
  table, tbody, tr, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  td, td:first-child, .words { border: 0; display: flex; justify-content: space-between; gap: 1rem;
    padding: .1rem .3rem; text-align: right; white-space: normal; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; flex: none; }
  td:first-child { font-weight: 600; text-align: left; } td:first-child::before { content: none; } }
"""

SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function themed(layout) {
  const ink = dark.matches ? "#ececec" : "#1a1a1a", line = dark.matches ? "#3c3f44" : "#d5d5d5";
  const axis = {gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true};
  const all = {...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {color: ink, family: "system-ui, sans-serif", size: 13}};
  all.xaxis = {...axis, ...layout.xaxis}; all.yaxis = {...axis, ...layout.yaxis};
  return all;
}
function draw(id) {
  const box = document.getElementById(id), figure = figures[id];
  return Plotly.react(box, figure.data, themed(figure.layout),
    {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"]});
}
// A figure is drawn when it comes near the window: fifty at once would hold up the page.
const drawn = new Set();
const near = new IntersectionObserver(entries => entries.forEach(({isIntersecting, target}) => {
  if (!isIntersecting) return;
  near.unobserve(target); drawn.add(target.id); draw(target.id);
}), {rootMargin: "600px"});
document.querySelectorAll(".figure").forEach(box => near.observe(box));
const drawRest = () => document.querySelectorAll(".figure").forEach(box => {
  if (box.offsetParent && !drawn.has(box.id)) { drawn.add(box.id); draw(box.id); }
});
document.querySelectorAll("[role=tablist]").forEach(list => {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = tab => {
    tabs.forEach(each => {
      const on = each === tab, panel = document.getElementById(each.getAttribute("aria-controls"));
      each.setAttribute("aria-selected", on); each.tabIndex = on ? 0 : -1; panel.hidden = !on;
    });
  };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      next.focus(); choose(next);
    });
  });
});
dark.addEventListener("change", () => drawn.forEach(draw));
addEventListener("beforeprint", drawRest);
"""


class _Page:
    """Collects sections and figures, then writes the page."""

    def __init__(self, title: str, lead: str) -> None:
        self._title = title
        self._body = [f"<h1>{html.escape(title)}</h1><p class=soft>{html.escape(lead)}</p>"]
        self._figures: dict[str, Figure] = {}

    def heading(self, text: str, words: str = "") -> None:
        self._body.append(f"<h2>{html.escape(text)}</h2>")
        if words:
            self._body.append(f"<p class=soft>{html.escape(words)}</p>")

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, best: int | None = None
    ) -> None:
        rows = list(rows)
        # A column with sentences is set as text, its heading too.
        words = [
            any(", " in row[i] or len(row[i]) > 40 for row in rows) for i in range(len(columns))
        ]
        kinds = [" class=words" if wordy else "" for wordy in words]
        head = "".join(
            f"<th scope=col{kind}>{html.escape(column)}</th>"
            for column, kind in zip(columns, kinds, strict=True)
        )
        body = "".join(
            f"<tr{' class=best' if index == best else ''}>"
            + "".join(
                f"<td{kind} data-label='{html.escape(column, quote=True)}'>"
                f"<span>{html.escape(text)}</span></td>"
                for text, column, kind in zip(row, columns, kinds, strict=True)
            )
            + "</tr>"
            for index, row in enumerate(rows)
        )
        self._body.append(
            "<div class=scroll tabindex=0 role=region aria-label=table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _box(self, figure: Figure, label: str) -> str:
        name = f"figure-{len(self._figures)}"
        self._figures[name] = figure
        height = figure["layout"]["height"]
        return (
            f"<div class=figure id={name} role=img aria-label='{html.escape(label, quote=True)}'"
            f" style='height:{height}px'></div>"
        )

    def grid(self, figures: Mapping[str, Figure]) -> None:
        cards = "".join(
            f"<div class=card><h3>{html.escape(title)}</h3>{self._box(figure, title)}</div>"
            for title, figure in figures.items()
        )
        self._body.append(f"<div class=grid>{cards}</div>")

    def tabs(self, label: str, figures: Mapping[str, Figure]) -> None:
        start = len(self._figures)
        buttons, panels = [], []
        for index, (title, figure) in enumerate(figures.items()):
            panel = f"panel-{start + index}"
            chosen = "true" if index == 0 else "false"
            buttons.append(
                f"<button role=tab aria-controls={panel} aria-selected={chosen} "
                f"tabindex={0 if index == 0 else -1}>{html.escape(title)}</button>"
            )
            panels.append(
                f"<div class=card role=tabpanel id={panel}{' hidden' if index else ''}>"
                f"{self._box(figure, f'{label}: {title}')}</div>"
            )
        name = html.escape(label, quote=True)
        self._body.append(
            f"<div role=tablist aria-label='{name}'>{''.join(buttons)}</div>{''.join(panels)}"
        )

    def write(self, path: Path, data: Any) -> None:
        plotly_js = require("plotly.offline").get_plotlyjs()
        parts = [
            "<!doctype html><html lang=en><head><meta charset=utf-8>",
            "<meta name=viewport content='width=device-width, initial-scale=1'>",
            "<link rel=icon href='data:,'>",
            f"<title>{html.escape(self._title)}</title><style>{STYLE}</style></head><body>",
            *self._body,
            f"<p class=soft>Written by glidepath {html.escape(gp.__version__)}.</p>",
            _embedded("data", data),
            _embedded("figures", self._figures),
            f"<script>{plotly_js}</script><script>{SCRIPT}</script></body></html>",
        ]
        _write_whole(path, "".join(parts))


def _embedded(name: str, value: Any) -> str:
    from glidepath._console import plain

    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    return f"<script type=application/json id={name}>{text}</script>"


def _write_whole(path: Path, text: str) -> None:
    """Write all of it or nothing: a reader never meets half a page."""
    beside = path.with_name(path.name + f".{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise gp.IoError(f"{path}: cannot write the report: {error.strerror}") from None


# ---------------------------------------------------------------------------------------- figures


def _layout(height: int, x: str, y: str, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "xaxis": {"title": {"text": x}} | more.pop("xaxis", {}),
        "yaxis": {"title": {"text": y}} | more.pop("yaxis", {}),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
    } | more


def _round(values: Any, digits: int = 6) -> NDArray[np.float64]:
    """Six significant digits: what a picture shows, at half the bytes."""
    array = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(array == 0, 1.0, 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(array)))))
        return np.where(np.isfinite(array), np.round(array * scale) / scale, array)


def bars(values: Mapping[str, float]) -> Figure:
    """One bar per policy; the card around it says of what."""
    names = list(values)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": _round(list(values.values()), 4),
                "text": [f"{value:,.4g}" for value in values.values()],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {
                    "color": [PALETTE[i % 8] for i in range(len(names))],
                    "pattern": {"shape": [SHAPES[i % 8] for i in range(len(names))]},
                },
                "hovertemplate": "%{y}: %{x}<extra></extra>",
            }
        ],
        "layout": _layout(
            40 + 34 * len(names),
            "",
            "",
            xaxis={
                "title": None,
                "range": [0, 1.15 * max((v for v in values.values()), default=1.0) or 1.0],
            },
            yaxis={"autorange": "reversed", "title": None},
        ),
    }


def gantt(simulation: gp.Simulation) -> Figure:
    """One row per GPU: bars of the jobs that held it."""
    boxes, lanes = _series.gantt(simulation.events)
    rows: list[str] = []
    bases: dict[int, int] = {}
    for tier, count in lanes.items():
        bases[tier] = len(rows)
        rows += [f"{simulation.tiers[tier]} {lane + 1}" for lane in range(count)]
    users = simulation.jobs.get("user")
    jobs = simulation.jobs["job"]
    place = {int(job): index for index, job in enumerate(jobs)}
    start, length, row, colour, text = [], [], [], [], []
    for box in boxes:
        index = place[box.job]
        who = f", {users[index]}" if users is not None else ""
        words = f"job {box.job}{who}: {simulation.jobs['outcome'][index]}"
        for lane in range(box.lane, box.lane + box.gpus):
            start.append(box.start_s / 3600.0)
            length.append((box.end_s - box.start_s) / 3600.0)
            row.append(rows[bases[box.tier] + lane])
            colour.append(PALETTE[box.job % 6])
            text.append(words)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "base": _round(start),
                "x": _round(length),
                "y": row,
                "text": text,
                "textposition": "none",
                "marker": {"color": colour, "line": {"color": "white", "width": 0.6}},
                "hovertemplate": "%{text}<br>from hour %{base:.2f}, %{x:.2f} h<extra></extra>",
            }
        ],
        "layout": _layout(
            max(220, 70 + 26 * min(len(rows), 40)),
            "hours",
            "",
            yaxis={
                "title": None,
                "autorange": "reversed",
                "type": "category",
                "categoryorder": "array",
                "categoryarray": rows,
            },
            barmode="overlay",
            bargap=0.15,
        ),
    }


def _steps_figure(
    lines: Mapping[str, tuple[Any, Any]], x: str, y: str, *, percent: bool = True
) -> Figure:
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": _round(xs),
            "y": _round(ys, 5),
            "line": {"shape": "hv", "color": PALETTE[i % 8], "dash": DASHES[i % 8], "width": 2},
        }
        for i, (name, (xs, ys)) in enumerate(lines.items())
    ]
    axis: dict[str, Any] = {"rangemode": "tozero"}
    if percent:
        axis["tickformat"] = ".0%"
    return {"data": data, "layout": _layout(320, x, y, yaxis=axis)}


def fan(
    ahead: gp.Forecast,
    seen: gp.Trace,
    *,
    later: gp.Trace | None = None,
    target: float | None = None,
) -> Figure:
    """What was seen, what is expected and how sure that is."""
    data: list[dict[str, Any]] = []
    steps = _round(ahead.steps)
    for (low, high, cover), opacity in zip(
        _series.main_bands(ahead.levels), (0.22, 0.4), strict=False
    ):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "line": {"width": 0},
                "x": np.concatenate([steps, steps[::-1]]),
                "y": np.concatenate(
                    [_round(ahead.quantiles[low], 5), _round(ahead.quantiles[high], 5)[::-1]]
                ),
                "fill": "toself",
                "fillcolor": f"rgba(0,114,178,{opacity})",
                "name": f"{cover:.0%} of outcomes",
                "hoverinfo": "skip",
            }
        )
    data.append(_line("forecast", ahead.steps, ahead.mean, PALETTE[0], width=3))
    data.append(_line("seen", seen.step, seen.loss, "#7f7f7f"))
    shown = [ahead.quantiles, seen.loss]
    if later is not None and len(later):
        data.append(_line("what happened", later.step, later.loss, PALETTE[3], dash="dot"))
        shown.append(later.loss)
    if target is not None:
        ends = np.array([seen.step[0], ahead.steps[-1]])
        data.append(_line("target", ends, np.array([target, target]), PALETTE[1], dash="dash"))
        shown.append(np.array([target]))
    limits = _series.loss_limits(*shown)
    axis = {} if limits is None else {"range": list(limits)}
    return {"data": data, "layout": _layout(340, "step", "loss", yaxis=axis)}


def _line(
    name: str, x: Any, y: Any, colour: str, *, width: float = 1.6, dash: str = "solid"
) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), 400)).astype(int))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": _round(np.asarray(x)[keep]),
        "y": _round(np.asarray(y)[keep], 5),
        "line": {"color": colour, "width": width, "dash": dash},
    }


# ------------------------------------------------------------------------------------------ pages

_COLUMNS: tuple[tuple[str, str, Callable[[gp.Simulation], float]], ...] = (
    ("total wait h", ".1f", lambda s: s.total_wait_s / 3600),
    ("wait per user h", ".2f", lambda s: s.mean_wait_per_user_s / 3600),
    ("mean JCT h", ".2f", lambda s: s.mean_jct_s / 3600),
    ("p95 JCT h", ".2f", lambda s: s.p95_jct_s / 3600),
    ("makespan h", ".1f", lambda s: s.makespan_s / 3600),
    ("GPU-hours", ".1f", lambda s: s.gpu_seconds / 3600),
    ("kWh", ".1f", lambda s: s.energy_kwh),
    ("preemptions", ".0f", lambda s: float(s.preemptions)),
)
_BARS = ("total wait h", "mean JCT h", "GPU-hours", "kWh")


def write_simulations(
    path: Path, simulations: Sequence[gp.Simulation], workload: gp.Workload
) -> None:
    """Write the report of one workload under several policies.

    Parameters
    ----------
    path : Path
    simulations : sequence of Simulation
        Of the same workload.
    workload : Workload

    Raises
    ------
    IoError
        When the page cannot be written.
    ImportError
        When plotly is missing.
    """
    tiers = ", ".join(f"{tier.gpus} {tier.name}" for tier in workload.tiers)
    lead = (
        f"{len(workload)} jobs on {tiers}. Times in hours; a wait is the time a job holds no GPU; "
        "energy counts idle GPUs until the last job ends."
    )
    page = _Page(f"{workload.name}: {len(simulations)} policies", lead)
    page.heading("Policies")
    best = min(range(len(simulations)), key=lambda i: simulations[i].mean_jct_s)
    page.table(
        ("policy", *(name for name, _, _ in _COLUMNS), "jobs"),
        (
            (
                s.policy,
                *(format(value(s), spec) for _, spec, value in _COLUMNS),
                ", ".join(f"{count} {kind}" for kind, count in _outcomes(s).items()),
            )
            for s in simulations
        ),
        best=best,
    )
    page.grid(
        {
            name: bars({s.policy: value(s) for s in simulations})
            for name, _, value in _COLUMNS
            if name in _BARS
        }
    )
    page.heading(
        "Who held which GPU",
        "One row per GPU, one colour per job; which GPU of a tier is chosen for the picture.",
    )
    page.tabs("Gantt chart", {s.policy: gantt(s) for s in simulations})
    page.heading("Job completion times and use of the GPUs")
    gpus = sum(tier.gpus for tier in workload.tiers)
    busy = {s.policy: _series.busy_gpus(s.events) for s in simulations}
    page.grid(
        {
            "Jobs completed within a time": _steps_figure(
                {
                    s.policy: (x / 3600, y)
                    for s in simulations
                    for x, y in [_series.cdf(s.jobs["jct_s"])]
                },
                "hours",
                "share of jobs",
            ),
            "GPUs held over time": _steps_figure(
                {name: (x / 3600, y / max(gpus, 1)) for name, (x, y) in busy.items()},
                "hours",
                "share of GPUs",
            ),
        }
    )
    forecasts = _forecasts(workload)
    if forecasts:
        page.heading(
            "What the forecasts see",
            f"Runs of this workload, forecast from their first {OBSERVED_SHARE:.0%} of points; "
            "no policy sees the dotted rest.",
        )
        page.grid(forecasts)
    page.write(
        path,
        [{"policy": s.policy, "outcomes": _outcomes(s)} | s.metrics() for s in simulations],
    )


def write_study(
    path: Path,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Mapping[str, Any]],
    shown: int,
    charts: Mapping[str, gp.Simulation],
) -> None:
    """Write the study of loads: tables, pictures over the load, Gantt charts of one draw."""
    page = _Page(
        f"{name}: how much forecasts are worth, by load",
        "Policies of DARE-ML's experiment and ours on the same users, with recorded loss curves. "
        "Retraining to overfitting: who does not watch losses runs every job to its budget. With "
        "interruption: every policy ends a job at its target. Without: none does.",
    )
    page.heading(
        "Are the reported factors reached?",
        "Reported: 15 % less JCT without interruption; with it up to 80 times less wait and JCT "
        "and 83 times less energy than Baseline FIFO. Ours is the better of dare and best_value; "
        "Baseline FIFO retrains to overfitting.",
    )
    page.table(
        ("users", "JCT / fifo without interruption", "wait: times less", "JCT: times less",
         "energy: times less", "reached"),
        (
            (
                str(row["users"]),
                f"{row['without_interruption']:.2f}",
                *(f"{row[key]:.1f}" for key in ("wait", "JCT", "energy")),
                row["reached"],
            )
            for row in verdicts
        ),
    )  # fmt: skip
    loads = list(dict.fromkeys(row["users"] for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    columns = (
        ("total wait, h", "total_wait_s", 3600.0),
        ("wait per user, h", "mean_wait_per_user_s", 3600.0),
        ("mean JCT, h", "mean_jct_s", 3600.0),
        ("GPUs in use, %", "utilization", 0.01),
        ("energy, kWh", "energy_kwh", 1.0),
    )
    arms = (
        ("asked", "With retraining to overfitting"),
        ("stopped", "With interruption at the target"),
        ("unstopped", "Without interruption"),
    )
    for arm, title in arms:
        page.heading(title, "Mean over seeds and half of the 95 % interval.")
        of_arm = {(row["users"], row["policy"]): row for row in rows if row["arm"] == arm}
        page.grid(
            {
                label: _lines_figure(
                    {
                        policy: [of_arm[load, policy][metric] / unit for load in loads]
                        for policy in policies
                    },
                    loads,
                    label,
                )
                for label, metric, unit in columns
            }
        )
        page.table(
            ("users", "policy", *(label for label, _, _ in columns), "preemptions"),
            (
                (
                    str(load),
                    policy,
                    *(
                        f"{of_arm[load, policy][metric] / unit:.4g} ± "
                        f"{of_arm[load, policy][f'{metric}_ci'] / unit:.2g}"
                        for _, metric, unit in columns
                    ),
                    f"{of_arm[load, policy]['preemptions']:.0f}",
                )
                for load in loads
                for policy in policies
            ),
        )
    page.heading("Who held which GPU", f"{shown} users of seed 0; one row per GPU.")
    page.tabs("Gantt chart", {title: gantt(run) for title, run in charts.items()})
    page.write(path, {"rows": list(rows), "verdicts": list(verdicts)})


def _lines_figure(
    lines: Mapping[str, Sequence[float]], loads: Sequence[int], label: str
) -> dict[str, Any]:
    """One line per policy over the load, both axes logarithmic."""
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": list(loads),
                "y": _round(values),
                "line": {"color": PALETTE[index % len(PALETTE)]},
            }
            for index, (name, values) in enumerate(lines.items())
        ],
        "layout": _layout(
            260,
            "users",
            label,
            xaxis={"type": "log", "tickvals": list(loads)},
            yaxis={"type": "log"},
        ),
    }


def _outcomes(simulation: gp.Simulation) -> dict[str, int]:
    kinds, counts = np.unique(simulation.jobs["outcome"], return_counts=True)
    return {str(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}


def _forecasts(workload: gp.Workload, count: int = 4) -> dict[str, Figure]:
    """Fan charts of the first jobs whose curves differ."""
    jobs = workload.jobs
    if "truth" not in jobs or not workload.curves:
        return {}
    curves = workload.curves
    figures: dict[str, Figure] = {}
    for truth, target in zip(jobs["truth"], jobs["target_loss"], strict=True):
        if truth < 0 or len(figures) == count:
            continue
        curve = curves[int(truth)]
        points = max(4, round(OBSERVED_SHARE * len(curve)))
        if curve.name in figures or len(curve) <= points + 1:
            continue
        seen = curve.head(float(curve.step[points - 1]))
        ahead = gp.forecast(
            seen, np.geomspace(curve.step[points], curve.step[-1], min(40, len(curve) - points))
        )
        later = gp.Trace(curve.step[points:], curve.loss[points:])
        figures[curve.name] = fan(ahead, seen, later=later, target=float(target))
    return figures


def write_runs(
    path: Path,
    traces: Sequence[gp.Trace],
    *,
    target: float | None = None,
    budget: float | None = None,
    title: str = "Training runs",
) -> None:
    """Write the report of a set of runs: forecasts and advice.

    Parameters
    ----------
    path : Path
    traces : sequence of Trace
    target : float, optional
        Loss that every run should reach; without it there are forecasts but no advice.
    budget : float, optional
        Last step allowed; by default twice the last observed step of each run.
    title : str

    Raises
    ------
    IoError
        When the page cannot be written.
    ImportError
        When plotly is missing.
    """
    rows: list[tuple[str, ...]] = []
    figures: dict[str, Figure] = {}
    data: list[dict[str, Any]] = []
    for trace in traces:
        last = float(trace.step[-1])
        end = budget if budget is not None and budget > last else 2.0 * last
        ahead = gp.forecast(trace, np.geomspace(last + (end - last) / 40.0, end, 40))
        reach = None if target is None else gp.reach(trace, target, budget=end)
        advice = "" if reach is None else advise(reach)
        low, high = ahead.quantile(0.1)[-1], ahead.quantile(0.9)[-1]
        rows.append(
            (
                trace.name or "run",
                _series.count(last),
                f"{trace.loss[-1]:.4g}",
                f"{ahead.mean[-1]:.4g} ({low:.4g} to {high:.4g}) at {_series.count(end)}",
                ahead.status,
                advice,
            )
        )
        name = trace.name or f"run {len(figures) + 1}"
        figures[name if name not in figures else f"{name} ({len(figures) + 1})"] = fan(
            ahead, trace, target=target
        )
        data.append(
            {"run": trace.name, "last_step": last, "loss": trace.loss[-1], "status": ahead.status}
            | {"step": end, "mean": ahead.mean[-1], "q10": low, "q90": high, "advice": advice}
            | (
                {}
                if reach is None
                else {
                    "prob_reached": 1.0 - reach.prob_never,
                    "reach_step": [reach.quantile(p) for p in (0.1, 0.5, 0.9)],
                }
            )
        )
    aim = "" if target is None else f" Target {target:g}."
    page = _Page(title, f"{len(rows)} runs, forecast from what each has logged.{aim}")
    page.heading("Runs")
    page.table(("run", "seen to", "loss now", "forecast, 80 % within", "status", "advice"), rows)
    page.heading("Forecasts")
    page.grid(figures)
    page.write(path, data)


def advise(reach: gp.Reach, *, alpha: float = 0.02) -> str:
    """One sentence on what to do with a run that has a target."""
    chance = 1.0 - reach.prob_never
    if reach.step.size == 1 and chance == 1.0:
        return f"reached: at step {_series.count(reach.step[0])}"
    says = _series.percent(chance)
    if chance <= alpha:
        return f"stop: {says} to reach its target"
    if chance < 0.5:
        return f"watch: {says} to reach its target"
    low, middle, high = (reach.quantile(p) for p in (0.1, 0.5, 0.9))
    until = _series.count(round(high)) if np.isfinite(high) else "never"
    return (
        f"continue: {says} to reach it, at step {_series.count(round(middle))} "
        f"({_series.count(round(low))} to {until})"
    )
