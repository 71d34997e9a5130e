# SPDX-License-Identifier: Apache-2.0
"""The figures of the reports, as plotly JSON: the pictures of `_pictures`, here to be explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import glidepath as gp
from glidepath import _words
from glidepath._pictures import series
from glidepath._pictures.style import PALETTE
from glidepath._report.page import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "5px,1px", "1px,3px")
SHAPES = ("", "/", ".", "\\", "x", "-", "+", "|")


def _layout(height: int, x: str, y: str, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "xaxis": {"title": {"text": x}} | more.pop("xaxis", {}),
        "yaxis": {"title": {"text": y}} | more.pop("yaxis", {}),
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "font": {"size": 12},
        },
        "hovermode": "closest",
    } | more


def _round(values: Any, digits: int = 6) -> NDArray[np.float64]:
    """Round to six significant digits: as much as a picture shows, at half the bytes."""
    array = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = digits - 1 - np.floor(np.log10(np.abs(array)))
        scale = np.where(array == 0, 1.0, 10.0 ** np.minimum(power, 300.0))  # 1e-305 becomes 0
        return np.where(np.isfinite(array), np.round(array * scale) / scale, array)


def bars(values: Mapping[str, float]) -> Figure:
    """Draw one bar per policy; the card around it names the metric."""
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
    """Draw one row per GPU: bars of the jobs that held it."""
    boxes, lanes = series.gantt(simulation.spans)
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


def steps(lines: Mapping[str, tuple[Any, Any]], x: str, y: str) -> Figure:
    """Draw shares that change in steps."""
    data = [
        _scatter(
            name,
            xs,
            ys,
            {"shape": "hv", "color": PALETTE[i % 8], "dash": DASHES[i % 8], "width": 2},
        )
        for i, (name, (xs, ys)) in enumerate(lines.items())
    ]
    axis = {"rangemode": "tozero", "tickformat": ".0%"}
    return {"data": data, "layout": _layout(320, x, y, yaxis=axis)}


def fan(
    ahead: gp.Forecast,
    seen: gp.Trace,
    *,
    later: gp.Trace | None = None,
    target: float | None = None,
    metric: str = "loss",
) -> Figure:
    """Draw a forecast: the observed points, the median and its bands."""
    if ahead._is_blind:
        return _nothing_known(metric, last=float(ahead.at[-1]))
    data: list[dict[str, Any]] = []
    for (low, high, cover), opacity in zip(
        series.main_bands(ahead.levels), (0.22, 0.4), strict=False
    ):
        data.append(
            _scatter(
                f"{cover:.0%} within".replace("%", " %"),
                np.concatenate([ahead.at, ahead.at[::-1]]),
                np.concatenate([ahead.quantiles[low], ahead.quantiles[high][::-1]]),
                {"width": 0},
                fill="toself",
                fillcolor=f"rgba(0,114,178,{opacity})",
                hoverinfo="skip",
            )
        )
    data.append(_line("forecast", ahead.at, ahead.median, PALETTE[0], width=3))
    data.append(_line("seen", seen.step, seen.loss, "#7f7f7f"))
    shown = [ahead.quantiles, seen.loss]
    if later is not None and len(later):
        data.append(_line("what happened", later.step, later.loss, PALETTE[3], dash="dot"))
        shown.append(later.loss)
    if target is not None:
        ends = np.array([seen.step[0], ahead.at[-1]])
        data.append(_line("target", ends, np.array([target, target]), PALETTE[1], dash="dash"))
        shown.append(np.array([target]))
    limits = series.loss_limits(*shown)
    axis = {} if limits is None else {"range": list(limits)}
    return {"data": data, "layout": _layout(340, "step", metric, yaxis=axis)}


def _nothing_known(metric: str, *, last: float) -> Figure:
    """Draw the axes of a run without a finite value, and say so between them."""
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    layout = _layout(
        340,
        "step",
        metric,
        xaxis={"range": [0.0, last]},
        yaxis={"range": [0.0, 1.0], "showticklabels": False},
        annotations=[{"text": _words.NO_VALUE} | middle],
    )
    return {"data": [], "layout": layout}


def hardware(metrics: gp.Metrics, run: gp.Trace) -> Figure:
    """Draw the watts of each GPU over hours and, on an axis to the right, the loss of the run."""
    column = "power_w" if "power_w" in metrics else next(iter(metrics.columns))
    data = []
    for i, (gpu, values) in enumerate(zip(metrics.gpus, metrics[column].T, strict=True)):
        time, mean, _, _ = series.binned(metrics.time_s, values)
        data.append(_line(f"GPU {gpu}", time / 3600.0, mean, PALETTE[i % 8], dash=DASHES[i % 8]))
    assert run.wall_seconds is not None
    loss = _line(run.metric, run.wall_seconds / 3600.0, run.loss, "#7f7f7f")
    data.append(loss | {"yaxis": "y2"})
    limits = series.loss_limits(run.loss)
    right = {
        "overlaying": "y",
        "side": "right",
        "showgrid": False,
        "automargin": True,
        "title": {"text": run.metric},
    } | ({} if limits is None else {"range": list(limits)})
    y = {"rangemode": "tozero"}
    return {"data": data, "layout": _layout(340, "hours", column, yaxis=y, yaxis2=right)}


def _line(
    name: str, x: Any, y: Any, colour: str, *, width: float = 1.6, dash: str = "solid"
) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), 400)).astype(int))
    line = {"color": colour, "width": width, "dash": dash}
    return _scatter(name, np.asarray(x)[keep], np.asarray(y)[keep], line)


def _scatter(name: str, x: Any, y: Any, line: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": _round(x),
        "y": _round(y, 5),
        "line": line,
    } | more


def lines(lines: Mapping[str, Sequence[float]], loads: Sequence[int], label: str) -> Figure:
    """Draw one line per policy over the load, both axes logarithmic."""
    data = [
        _scatter(name, loads, values, {"color": PALETTE[i % 8]}, mode="lines+markers")
        for i, (name, values) in enumerate(lines.items())
    ]
    x = {"type": "log", "tickvals": list(loads)}
    return {"data": data, "layout": _layout(260, "users", label, xaxis=x, yaxis={"type": "log"})}


def _marked(name: str, x: Any, y: Any, place: int) -> dict[str, Any]:
    """Draw a line with its points; sixty-four differ in colour or dash."""
    dash = DASHES[(place + place // 8) % 8]
    line = {"color": PALETTE[place % 8], "dash": dash, "width": 2}
    return _scatter(name, x, y, line, mode="lines+markers")


def reliability(shares: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the share of observations below each quantile; right ones are on the diagonal."""
    ends = np.array([0.0, 1.0])
    data = [_scatter("calibrated", ends, ends, {"color": "#7f7f7f", "dash": "dot", "width": 1})]
    for place, (name, share) in enumerate(shares.items()):
        levels = np.arange(1, len(share) + 1) / (len(share) + 1)
        data.append(_marked(name, levels, share, place))
    axis = {"range": [0, 1]}
    layout = _layout(340, "level of the quantile", "share below", xaxis=axis, yaxis=axis)
    return {"data": data, "layout": layout}


def by_share(lines: Mapping[str, Mapping[float, float]]) -> Figure:
    """Draw a score of each method against the share of the run seen."""
    data = [
        _marked(name, list(line), list(line.values()), place)
        for place, (name, line) in enumerate(lines.items())
    ]
    x, y = {"tickformat": ".0%", "rangemode": "tozero"}, {"rangemode": "tozero"}
    return {"data": data, "layout": _layout(340, "share seen", "", xaxis=x, yaxis=y)}
