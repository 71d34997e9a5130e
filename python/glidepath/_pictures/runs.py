# SPDX-License-Identifier: Apache-2.0
"""Pictures of a run: its points, a fit, a forecast, when it reaches a target, where time goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from glidepath import _words
from glidepath._answer import SHOWN_LEVELS
from glidepath._hardware import COLUMNS, SM
from glidepath._pictures import series
from glidepath._pictures.style import (
    BLUE,
    HATCHES,
    INK,
    LINES,
    MUTED,
    PALETTE,
    VERMILLION,
    axes_for,
    literal,
    over_steps,
    say_nothing_is_known,
)
from glidepath._results import counted
from glidepath._step_profile import CATEGORIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from glidepath._fit import Fit
    from glidepath._forecast import Forecast
    from glidepath._hardware import Metrics
    from glidepath._reach import Reach
    from glidepath._step_profile import StepProfile
    from glidepath._trace import Trace


def trace(trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Draw the points of a run."""
    ax = axes_for(ax)
    _points(ax, trace)
    over_steps(ax, trace.metric, trace.loss)
    if len(trace) and not np.isfinite(trace.loss).any():
        say_nothing_is_known(ax, _words.NO_VALUE)
    return ax


def metrics(
    metrics: Metrics,
    *,
    trace: Trace | None = None,
    began_s: float = 0.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw watts over hours, a line a GPU; behind them, to the right, activity or a run's loss.

    Parameters
    ----------
    metrics : Metrics
    trace : Trace, optional
        A run with `wall_seconds`: its loss takes the place of the activity.
    began_s : float
        Seconds of the metrics at which the run began.
    """
    ax = axes_for(ax)
    column = next(name for name in ("power_w", *SM, *metrics.columns) if name in metrics)
    for i, (gpu, values) in enumerate(zip(metrics.gpus, metrics[column].T, strict=True)):
        time, mean, low, high = series.binned(metrics.time_s, values)
        ax.fill_between(time / 3600.0, low, high, color=PALETTE[i % 8], alpha=0.2, linewidth=0)
        ax.plot(
            time / 3600.0,
            mean,
            color=PALETTE[i % 8],
            linestyle=LINES[i % 8],
            linewidth=1.6,
            label=literal(f"GPU {gpu}"),
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (hours)")
    ax.set_ylabel(COLUMNS[column])
    behind = ax.twinx()
    behind.spines["top"].set_visible(False)
    if trace is not None and trace.wall_seconds is not None:
        at, loss = series.thinned(trace.wall_seconds + began_s, trace.loss)
        behind.plot(at / 3600.0, loss, color=INK, linewidth=1.2, label=literal(trace.metric))
        limits = series.loss_limits(trace.loss)
        if limits is not None:
            behind.set_ylim(*limits)
        behind.set_ylabel(literal(trace.metric))
    else:
        name = next((name for name in SM if name in metrics and name != column), None)
        if name is not None:
            time, mean, _, _ = series.binned(metrics.time_s, np.nanmean(metrics[name], axis=1))
            behind.plot(time / 3600.0, 100 * mean, color=MUTED, linewidth=0.8, label=name)
            behind.set_ylabel(f"{name}, %")
        behind.set_ylim(0, 105)
    lines = [*ax.get_lines(), *behind.get_lines()]
    ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, fontsize=9)
    return ax


def steps(profiles: Sequence[StepProfile], *, ax: Axes | None = None) -> Axes:
    """Draw where the time of a step goes: a stacked bar a profile, with percent."""
    ax = axes_for(ax, (8.0, 1.4 + 0.55 * len(profiles)))
    left = np.zeros(len(profiles))
    for i, category in enumerate(CATEGORIES):
        seconds = np.array([profile.seconds[category] for profile in profiles])
        shares = seconds / np.array([profile.step_seconds for profile in profiles])
        if shares.max() < 0.001:
            continue
        bars = ax.barh(
            range(len(profiles)),
            seconds,
            left=left,
            color=PALETTE[i % 8],
            edgecolor=INK,
            linewidth=0.6,
            hatch=HATCHES[i % 8],
            label=category.replace("_", " "),
        )
        words = [f"{100 * share:.0f} %" if share >= 0.05 else "" for share in shares]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        for text in ax.bar_label(bars, words, label_type="center", fontsize=9):
            if text.get_text():
                text.set_bbox(box)
        left += seconds
    names = [
        profile.name or f"{profile.device} {counted(profile.gpus, 'GPU')}" for profile in profiles
    ]
    ax.set_yticks(range(len(profiles)), list(map(literal, names)))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("seconds of a step")
    ax.legend(frameon=False, fontsize=9, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def fit(fit: Fit, trace: Trace | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a fitted curve and, where given, the points it was fitted to."""
    ax = axes_for(ax)
    trace = _with_points(trace)
    if trace is not None and not np.isfinite(trace.loss).any():
        over_steps(ax, trace.metric)
        say_nothing_is_known(ax, _words.NO_VALUE)
        return ax
    last = fit.last_step if trace is None else trace.step[-1]
    first = max(last / 1000.0 if trace is None else trace.step[0], 1e-9)
    seen = []
    if trace is not None:
        _points(ax, trace)
        seen.append(np.asarray(trace.loss))
    if last > 0:
        steps = np.geomspace(min(first, last), last, 400)
        curve = series.drawable(fit.predict(steps))
        ax.plot(steps, curve, color=BLUE, linewidth=2, label=f"{fit.family} ({fit.status})")
        # At the points, so that the first steep steps do not rule the axis.
        seen.append(curve if trace is None else fit.predict(trace.step))
    over_steps(ax, "loss" if trace is None else trace.metric, *seen)
    if seen:
        ax.legend(frameon=False)
    return ax


def _with_points(trace: Trace | None) -> Trace | None:
    """Give a run that has logged something; None of another, of which there is nothing to draw."""
    return trace if trace is not None and len(trace) else None


def _points(ax: Axes, trace: Trace) -> None:
    few = len(trace.step) <= 150
    ax.plot(
        trace.step,
        series.drawable(trace.loss),
        marker="o" if few else None,
        markersize=3,
        linestyle="none" if few else "-",
        linewidth=0.8,
        color=MUTED,
        label="observed",
        rasterized=len(trace.step) > 20_000,
    )


def forecast(
    forecast: Forecast,
    *,
    trace: Trace | None = None,
    later: Trace | None = None,
    target: float | None = None,
    reach: Reach | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a fan chart: the observed points, the median forecast and its bands.

    Parameters
    ----------
    forecast : Forecast
    trace : Trace, optional
        The observed points.
    later : Trace, optional
        The points that followed; drawn in another marker, to judge the forecast by.
    target : float, optional
        Value to reach, drawn as a line.
    reach : Reach, optional
        When the target is reached: its median and 80 % interval are marked on that line.
    """
    ax = axes_for(ax)
    trace = _with_points(trace)
    metric = "loss" if trace is None else trace.metric
    if forecast._is_blind:
        over_steps(ax, metric)
        ax.set_xlim(0.0, forecast.at[-1])
        say_nothing_is_known(ax, _words.NO_VALUE)
        return ax
    _bands(ax, forecast)
    seen: list[ArrayLike] = [forecast.quantiles, forecast.median]
    if trace is not None:
        _points(ax, trace)
        ax.axvline(trace.step[-1], color=MUTED, linewidth=0.8, linestyle=":")
        seen.append(trace.loss)
    if later is not None and len(later.step):
        many = len(later.step) > 150
        ax.plot(
            *series.thinned(np.asarray(later.step), np.asarray(later.loss)),
            "." if many else "x",
            color=VERMILLION,
            markersize=2 if many else 4,
            label="what happened",
            zorder=1.5 if many else 2,  # above the bands, below the median
        )
        seen.append(later.loss)
    if target is not None:
        ax.axhline(target, color=INK, linewidth=1.2, linestyle="--", label=f"target {target:g}")
        seen.append([target])
        if reach is not None:
            _mark_reach(ax, reach, target)
    over_steps(ax, metric, *seen)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _bands(ax: Axes, forecast: Forecast) -> None:
    """Draw two central bands of a forecast, and its median; of a single step they are bars."""
    single = len(forecast.at) == 1
    for (low, high, cover), shade, width in zip(
        series.main_bands(forecast.levels), ("#bfdcec", "#6fb1d6"), (6, 10), strict=False
    ):
        below, above = (series.drawable(forecast.quantiles[row]) for row in (low, high))
        label = f"{cover:.0%} of outcomes".replace("%", " %")
        if single:
            ax.vlines(forecast.at, below, above, color=shade, linewidth=width, label=label)
        else:
            ax.fill_between(forecast.at, below, above, color=shade, linewidth=0, label=label)
    ax.plot(
        forecast.at,
        series.drawable(forecast.median),
        marker="_" if single else None,  # as wide as it is, it hides no band
        markersize=14,
        markeredgewidth=2,
        color=BLUE,
        linewidth=2,
        label="forecast",
    )


def _mark_reach(ax: Axes, reach: Reach, target: float) -> None:
    low, middle, high = (reach.quantile(p) for p in SHOWN_LEVELS)
    if math.isfinite(low):
        right = high if math.isfinite(high) else ax.get_xlim()[1]
        ax.plot([low, right], [target, target], color=INK, linewidth=5, solid_capstyle="butt")
    if math.isfinite(middle):
        ax.plot([middle], [target], "D", color="white", markeredgecolor=INK, markersize=8, zorder=5)


def reach(reach: Reach, *, ax: Axes | None = None) -> Axes:
    """Draw when the target is reached: a density over steps, beside it the chance of never."""
    ax = axes_for(ax)
    edges, mass = series.reach_density(reach)
    never = reach.prob_never
    if mass.size:
        ax.stairs(mass / np.diff(edges), edges, fill=True, color="#6fb1d6")
        ax.stairs(mass / np.diff(edges), edges, color=BLUE, linewidth=1.5)
        for p, style in zip(SHOWN_LEVELS, (":", "-", "--"), strict=True):
            at = reach.quantile(p)
            if math.isfinite(at):
                label = f"{p:.0%} by then".replace("%", " %")
                ax.axvline(at, color=INK, linewidth=1, linestyle=style, label=label)
    else:
        ax.set_xticks([])
    ax.set_yticks([])
    over_steps(ax, "density")
    bar = ax.inset_axes((0.93, 0.0, 0.05, 1.0))
    bar.bar([0], [1.0 - never], color="#6fb1d6", edgecolor=BLUE)
    bar.bar([0], [never], bottom=[1.0 - never], color="white", edgecolor=VERMILLION, hatch="///")
    bar.set_ylim(0, 1)
    bar.axis("off")
    for y, va, word, chance, colour in (
        (1.0, "top", "never", never, VERMILLION),
        (0.02, "bottom", "reached", 1 - never, BLUE),
    ):
        label = f"{word} {_words.percent(chance)}"
        ax.text(0.92, y, label, transform=ax.transAxes, ha="right", va=va, color=colour)
    if mass.size:
        width = edges[-1] - edges[0]
        ax.set_xlim(edges[0], edges[-1] + 0.28 * width)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="center right", bbox_to_anchor=(0.92, 0.5), frameon=False, fontsize=9)
    return ax
