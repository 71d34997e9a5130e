# SPDX-License-Identifier: Apache-2.0
"""One self-contained interactive page: style, script, one embedded copy of plotly.js.

The page needs no network and opens from a file. Tables are HTML tables, every number on the page
comes from the JSON it embeds, colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import glidepath as gp
from glidepath._answer import Columns, cells
from glidepath._drafts import write_whole
from glidepath._results import require

Figure = dict[str, Any]  # as plotly's JSON has it

_LONGEST_CELL = 30  # letters on one line: a column of longer ones is set as text
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
.number { white-space: nowrap; } tr.best td { font-weight: 600; }
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
// The blue of a forecast and its bands is too dark for a dark page.
function coloured(data) {
  if (!dark.matches || !data.some(trace => trace.fillcolor)) return data;
  const lighter = colour =>
    colour?.replace("0,114,178", "86,180,233").replace("#0072B2", "#56B4E9");
  return data.map(trace => ({...trace, fillcolor: lighter(trace.fillcolor),
    line: {...trace.line, color: lighter(trace.line.color)}}));
}
function draw(id) {
  const box = document.getElementById(id), figure = figures[id];
  return Plotly.react(box, coloured(figure.data), themed(figure.layout),
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


class Page:
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
            any(", " in row[i] or len(row[i]) > _LONGEST_CELL for row in rows)
            for i in range(len(columns))
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
                f"<span>{_unbroken(text)}</span></td>"
                for text, column, kind in zip(row, columns, kinds, strict=True)
            )
            + "</tr>"
            for index, row in enumerate(rows)
        )
        self._body.append(
            "<div class=scroll tabindex=0 role=region aria-label=table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def rows(
        self, columns: Columns, rows: Sequence[Mapping[str, Any]], *, best: int | None = None
    ) -> None:
        self.table(list(columns), cells(columns, rows), best=best)

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


def _unbroken(text: str) -> str:
    """Escape a text; a number of several groups of digits, or with its %, stays on one line."""
    number = r"\d+(?: \d{3})+\b|[\d.]+ %"
    return re.sub(number, r"<span class=number>\g<0></span>", html.escape(text))


def _embedded(name: str, value: Any) -> str:
    from glidepath._json import plain

    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")  # no name may end the element, or begin a comment in it
    return f"<script type=application/json id={name}>{text}</script>"


def _write_whole(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode("utf-8", errors="backslashreplace"))  # of any file name
    except OSError as error:
        raise gp.IoError(f"{path}: cannot write the report: {error.strerror}") from None
