# SPDX-License-Identifier: Apache-2.0
"""Pictures of results: axes in, axes out.

Every function takes `ax=None` (a new figure when none is given), draws on it and returns it;
nothing is shown, saved or set globally. Colours are those of Okabe and Ito (2008), distinct to
colour-blind readers; every distinction is also one of line style, hatching or lightness, so that
a black-and-white print shows the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from glidepath._answer import SHOWN_LEVELS
from glidepath._hardware import COLUMNS, SM
from glidepath._pictures import series
from glidepath._results import require
from glidepath._step_profile import CATEGORIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from glidepath._core import Tier
    from glidepath._fit import Fit
    from glidepath._forecast import Forecast
    from glidepath._hardware import Metrics
    from glidepath._plan import Plan
    from glidepath._reach import Reach
    from glidepath._simulate import Simulation
    from glidepath._starts import StartTimes
    from glidepath._step_profile import StepProfile
    from glidepath._trace import Trace

INK = "#1a1a1a"
MUTED = "#6b6b6b"
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
PALETTE = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, "#000000", "#F0E442")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 4)))


def _axes(ax: Axes | None, figsize: tuple[float, float] = (7.0, 4.0)) -> Axes:
    """The axes to draw on; new ones belong to pyplot, so that a notebook shows them."""
    if ax is None:
        pyplot = require("matplotlib.pyplot")
        ax = pyplot.subplots(figsize=figsize, layout="constrained")[1]
    elif not hasattr(ax, "spines"):
        raise TypeError(f"plot: ax is {ax!r:.80}, expected axes of matplotlib")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(visible=True, color="#d9d9d9", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def _steps(ax: Axes, y: str, *seen: ArrayLike) -> None:
    """Name the axes of a picture over steps, as high as the losses that it shows."""
    limits = series.loss_limits(*seen)
    if limits is not None:
        ax.set_ylim(*limits)
    ax.set_xlabel("step")
    ax.xaxis.set_major_formatter(
        require("matplotlib.ticker").FuncFormatter(lambda at, _: series.count(at))
    )
    ax.set_ylabel(y)


def _over_time(
    ax: Axes,
    simulations: Sequence[Simulation],
    lines: Sequence[tuple[ArrayLike, ArrayLike]],
    linewidth: float,
) -> None:
    """Draw one line of steps per policy over seconds."""
    for i, (simulation, (seconds, values)) in enumerate(zip(simulations, lines, strict=True)):
        ax.step(
            np.asarray(seconds) / 3600.0,
            values,
            where="post",
            color=PALETTE[i % 8],
            linestyle=LINES[i % 8],
            linewidth=linewidth,
            label=simulation.policy,
        )
    ax.legend(frameon=False, fontsize=9)


def trace(trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Draw the points of a run."""
    ax = _axes(ax)
    _points(ax, trace)
    _steps(ax, trace.metric, trace.loss)
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
    ax = _axes(ax)
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
            label=f"GPU {gpu}",
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (hours)")
    ax.set_ylabel(COLUMNS[column])
    behind = ax.twinx()
    behind.spines["top"].set_visible(False)
    if trace is not None and trace.wall_seconds is not None:
        at, loss = series.thinned(trace.wall_seconds + began_s, trace.loss)
        behind.plot(at / 3600.0, loss, color=INK, linewidth=1.2, label=trace.metric)
        limits = series.loss_limits(trace.loss)
        if limits is not None:
            behind.set_ylim(*limits)
        behind.set_ylabel(trace.metric)
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
    ax = _axes(ax, (8.0, 1.4 + 0.55 * len(profiles)))
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
        profile.name or f"{profile.device} {profile.gpus} GPU{'' if profile.gpus == 1 else 's'}"
        for profile in profiles
    ]
    ax.set_yticks(range(len(profiles)), names)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("seconds of a step")
    ax.legend(frameon=False, fontsize=9, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def fit(fit: Fit, trace: Trace | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a fitted curve and, where given, the points it was fitted to."""
    ax = _axes(ax)
    trace = _with_points(trace)
    last = fit.last_step if trace is None else trace.step[-1]
    first = max(last / 1000.0 if trace is None else trace.step[0], 1e-9)
    seen = []
    if trace is not None:
        _points(ax, trace)
        seen.append(np.asarray(trace.loss))
    if last > 0:
        steps = np.geomspace(min(first, last), last, 400)
        curve = fit.predict(steps)
        ax.plot(steps, curve, color=BLUE, linewidth=2, label=f"{fit.family} ({fit.status})")
        # At the points, so that the first steep steps do not rule the axis.
        seen.append(curve if trace is None else fit.predict(trace.step))
    _steps(ax, "loss" if trace is None else trace.metric, *seen)
    if seen:
        ax.legend(frameon=False)
    return ax


def residuals(fit: Fit, trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Draw observed minus fitted values by step; the grey band is two sigmas to each side."""
    ax = _axes(ax)
    left = np.asarray(trace.loss) - fit.predict(trace.step)
    if math.isfinite(fit.sigma):
        ax.axhspan(-2 * fit.sigma, 2 * fit.sigma, color="#e6e6e6", zorder=0, label="± 2 sigma")
    ax.axhline(0.0, color=INK, linewidth=1)
    ax.plot(trace.step, left, ".", color=BLUE, markersize=4, label="observed minus fit")
    _steps(ax, "residual")
    ax.legend(facecolor="white", framealpha=1.0, edgecolor="none")  # the band lies behind it
    return ax


def _with_points(trace: Trace | None) -> Trace | None:
    """Give a run that has logged something; None of another, of which there is nothing to draw."""
    return trace if trace is not None and len(trace) else None


def _points(ax: Axes, trace: Trace, label: str = "observed") -> None:
    few = len(trace.step) <= 150
    ax.plot(
        trace.step,
        trace.loss,
        marker="o" if few else None,
        markersize=3,
        linestyle="none" if few else "-",
        linewidth=0.8,
        color=MUTED,
        label=label,
        rasterized=len(trace.step) > 20_000,
    )


def forecast(
    forecast: Forecast,
    *,
    trace: Trace | None = None,
    later: Trace | None = None,
    target: float | None = None,
    reach: Reach | None = None,
    decision: str | None = None,
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
    decision : str, optional
        A sentence for the title, such as the reason of a decision.
    """
    ax = _axes(ax)
    trace = _with_points(trace)
    seen = [np.asarray(forecast.quantiles), np.asarray(forecast.median)]
    for (low, high, cover), shade in zip(
        series.main_bands(forecast.levels), ("#bfdcec", "#6fb1d6"), strict=False
    ):
        ax.fill_between(
            forecast.at,
            forecast.quantiles[low],
            forecast.quantiles[high],
            color=shade,
            linewidth=0,
            label=f"{cover:.0%} of outcomes".replace("%", " %"),
        )
    ax.plot(forecast.at, forecast.median, color=BLUE, linewidth=2, label="forecast")
    if trace is not None:
        _points(ax, trace)
        ax.axvline(trace.step[-1], color=MUTED, linewidth=0.8, linestyle=":")
        seen.append(np.asarray(trace.loss))
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
        seen.append(np.asarray(later.loss))
    if target is not None:
        ax.axhline(target, color=INK, linewidth=1.2, linestyle="--", label=f"target {target:g}")
        seen.append(np.asarray([target]))
        if reach is not None:
            _mark_reach(ax, reach, target)
    _steps(ax, "loss" if trace is None else trace.metric, *seen)
    if decision:
        ax.set_title(decision, loc="left", fontsize=10)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _mark_reach(ax: Axes, reach: Reach, target: float) -> None:
    low, middle, high = (reach.quantile(p) for p in SHOWN_LEVELS)
    if math.isfinite(low):
        right = high if math.isfinite(high) else ax.get_xlim()[1]
        ax.plot([low, right], [target, target], color=INK, linewidth=5, solid_capstyle="butt")
    if math.isfinite(middle):
        ax.plot([middle], [target], "D", color="white", markeredgecolor=INK, markersize=8, zorder=5)


def reach(reach: Reach, *, ax: Axes | None = None) -> Axes:
    """Draw when the target is reached: a density over steps, beside it the chance of never."""
    ax = _axes(ax)
    edges, mass = series.reach_density(reach)
    never = reach.prob_never
    if mass.size:
        ax.stairs(mass / np.diff(edges), edges, fill=True, color="#6fb1d6")
        ax.stairs(mass / np.diff(edges), edges, color=BLUE, linewidth=1.5)
        for p, style in zip(SHOWN_LEVELS, (":", "-", ":"), strict=True):
            at = reach.quantile(p)
            if math.isfinite(at):
                ax.axvline(at, color=INK, linewidth=1, linestyle=style)
    else:
        ax.set_xticks([])
    ax.set_yticks([])
    _steps(ax, "density")
    bar = ax.inset_axes((0.93, 0.0, 0.05, 1.0))
    bar.bar([0], [1.0 - never], color="#6fb1d6", edgecolor=BLUE)
    bar.bar([0], [never], bottom=[1.0 - never], color="white", edgecolor=VERMILLION, hatch="///")
    bar.set_ylim(0, 1)
    bar.axis("off")
    for y, va, word, chance, colour in (
        (1.0, "top", "never", never, VERMILLION),
        (0.02, "bottom", "reached", 1 - never, BLUE),
    ):
        label = f"{word} {series.percent(chance)}"
        ax.text(0.92, y, label, transform=ax.transAxes, ha="right", va=va, color=colour)
    if mass.size:
        width = edges[-1] - edges[0]
        ax.set_xlim(edges[0], edges[-1] + 0.28 * width)
    return ax


def gantt(
    simulation: Simulation,
    *,
    tiers: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one row per GPU, one block per stretch of a job; a job keeps its colour."""
    ax = _axes(ax, (9.0, 4.5))
    boxes, lanes = series.gantt(simulation.spans)
    base, ticks, names = 0, [], []
    patches = require("matplotlib.patches")
    collections = require("matplotlib.collections")
    shapes, colours = [], []
    for tier, count in lanes.items():
        for box in (box for box in boxes if box.tier == tier):
            corner = (box.start_s / 3600.0, base + box.lane + 0.04)
            shapes.append(
                patches.Rectangle(corner, (box.end_s - box.start_s) / 3600.0, box.gpus - 0.08)
            )
            colours.append(_job_colour(box.job))
        ax.axhline(base, color=INK, linewidth=1)
        ticks.append(base + count / 2)
        names.append(tiers[tier] if tiers and tier < len(tiers) else f"tier {tier}")
        base += count
    ax.add_collection(
        collections.PatchCollection(
            shapes, facecolor=colours, edgecolor="white", linewidth=0.3, zorder=2
        )
    )
    end = max((box.end_s / 3600.0 for box in boxes), default=1.0)
    ax.set_xlim(0, end * 1.01)
    ax.set_ylim(max(base, 1), 0)
    ax.set_yticks(ticks, [f"{n}\n{c} GPUs" for n, c in zip(names, lanes.values(), strict=True)])
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("time (hours)")
    ax.set_title(simulation.policy, loc="left", fontsize=10)
    return ax


def _job_colour(job: int) -> tuple[float, float, float]:
    """Choose a colour: neighbouring jobs differ in hue and in lightness."""
    rgb = require("matplotlib.colors").to_rgb(PALETTE[job % 6])
    share = (0.0, 0.28, 0.5)[job // 6 % 3]
    red, green, blue = (part + (1 - part) * share for part in rgb)
    return red, green, blue


def policies(
    values: Mapping[str, float],
    *,
    label: str = "",
    errors: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one bar per policy.

    Parameters
    ----------
    values : mapping of policy name to value
    label : str
        Name of the metric, with its unit.
    errors : mapping of policy name to half-width, optional
    """
    ax = _axes(ax, (6.0, 0.9 + 0.42 * len(values)))
    names = list(values)
    heights = [values[name] for name in names]
    bars = ax.barh(
        range(len(names)),
        heights,
        color=[PALETTE[i % 8] for i in range(len(names))],
        edgecolor=INK,
        linewidth=0.8,
        xerr=None if errors is None else [errors[name] for name in names],
        ecolor=INK,
        capsize=3,
    )
    for i, bar in enumerate(bars):
        bar.set_hatch(HATCHES[i % 8])
    ax.bar_label(bars, [f"{height:,.4g}" for height in heights], padding=5, fontsize=9)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.margins(x=0.16)
    ax.set_xlim(left=0)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel(label)
    return ax


def study(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw four panels over the number of users, a line per policy; dashed: stops at the target.

    `rows` are those of ``_bench.policies.seed_study``.
    """
    from glidepath._simulate import policy_named

    figure: Figure
    figure, axes = require("matplotlib.pyplot").subplots(2, 2, figsize=(9.0, 6.4), sharex=True)
    panels = (
        ("mean_wait_per_user_s", 3600.0, "mean wait per user, hours", "symlog"),  # it can be 0
        ("mean_jct_s", 3600.0, "mean JCT, hours", "log"),
        ("utilization", 0.01, "GPUs in use, % of the makespan", "linear"),
        ("energy_kwh", 1.0, "energy, kWh", "log"),
    )
    names = list(dict.fromkeys(row["policy"] for row in rows))
    for ax, (metric, unit, title, scale) in zip(axes.flat, panels, strict=True):
        _axes(ax)
        for k, policy in enumerate(names):
            for arm, dash in (("overfitting", "-"), ("interrupted", "--")):
                line = [row for row in rows if row["policy"] == policy and row["arm"] == arm]
                if arm == "interrupted" and policy_named(policy).stops_at_target:
                    continue  # they stop anyway
                users = [row["users"] for row in line]
                mean = np.array([row[metric] for row in line]) / unit
                half = np.array([row[f"{metric}_ci"] for row in line]) / unit
                colour = PALETTE[k]
                label = policy if arm == "overfitting" else f"{policy}, stops at target"
                ax.plot(users, mean, dash, color=colour, marker="o", markersize=3, label=label)
                if arm == "overfitting":
                    low = np.maximum(mean - half, 0 if scale != "log" else mean / 3)
                    ax.fill_between(users, low, mean + half, color=colour, alpha=0.15, linewidth=0)
        ax.set_xscale("log")
        ax.set_yscale(scale, **({"linthresh": 0.1} if scale == "symlog" else {}))
        if scale != "log":
            ax.set_ylim(bottom=0)
        ticks = sorted({row["users"] for row in rows})
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_title(title, loc="left", fontsize=10)
    for ax in axes[1]:
        ax.set_xlabel("users")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    return figure


def jct_cdf(simulations: Sequence[Simulation], *, ax: Axes | None = None) -> Axes:
    """Draw the fraction of all jobs completed within a time, one line per policy."""
    ax = _axes(ax)
    lines = [simulation.jct_cdf() for simulation in simulations]
    _over_time(ax, simulations, lines, 1.8)
    positive = [jct[jct > 0] for jct, _ in lines]
    spread = np.concatenate(positive) if positive else np.empty(0)
    if spread.size and spread.max() > 200 * spread.min():
        ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("job completion time (hours)")
    ax.set_ylabel("fraction of jobs")
    return ax


def utilization(simulations: Sequence[Simulation], *, gpus: int, ax: Axes | None = None) -> Axes:
    """Draw the share of the `gpus` that jobs hold over time, one line per policy."""
    ax = _axes(ax)
    busy = [series.busy_gpus(simulation.spans) for simulation in simulations]
    _over_time(ax, simulations, [(time, held / max(gpus, 1)) for time, held in busy], 1.4)
    ax.set_ylim(0, 1.05)
    ax.set_xlim(left=0)
    ax.yaxis.set_major_formatter(require("matplotlib.ticker").PercentFormatter(1.0))
    ax.set_xlabel("time (hours)")
    ax.set_ylabel("GPUs held")
    return ax


def reliability(pit_values: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw observed against nominal coverage; a calibrated forecast is on the diagonal."""
    ax = _axes(ax, (4.6, 4.4))
    nominal = np.linspace(0.1, 0.9, 9)
    values = np.asarray(pit_values, dtype=float)
    observed = series.coverage(values, nominal)
    # Two standard errors of a binomial fraction: what chance alone would do.
    chance = 2 * np.sqrt(nominal * (1 - nominal) / max(values.size, 1))
    ax.fill_between(
        nominal, nominal - chance, nominal + chance, color="#e6e6e6", label="chance alone"
    )
    ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--")
    ax.plot(nominal, observed, "o-", color=BLUE, label=f"{values.size} forecasts")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("nominal coverage")
    ax.set_ylabel("observed coverage")
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return ax


def error_by_cutoff(errors: Mapping[str, Mapping[float, float]], *, ax: Axes | None = None) -> Axes:
    """Draw the mean error of each method against the share of the run it has observed."""
    ax = _axes(ax, (5.2, 3.6))
    for i, (name, by_cutoff) in enumerate(errors.items()):
        ax.plot(
            [100 * cutoff for cutoff in by_cutoff],
            list(by_cutoff.values()),
            color=PALETTE[i % len(PALETTE)],
            linestyle=LINES[i % len(LINES)],
            marker="o",
            label=name,
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("% of the run seen")
    ax.set_ylabel("mean error of the final value / range")
    ax.legend(frameon=False, fontsize=9)
    return ax


def starts(starts: StartTimes, *, ax: Axes | None = None) -> Axes:
    """Draw a row for each waiting job: the middle quantile of its start between the outermost.

    An arrow ends the row of a job that may not start within the horizon.
    """
    ax = _axes(ax)
    hours = starts.quantiles / 3600.0
    end = 1.1 * max(hours[np.isfinite(hours)].max(initial=0.0), 1e-3)
    middle = int(np.argmin(np.abs(starts.levels - 0.5)))
    for row, (low, mid, high) in enumerate(hours[[0, middle, -1]].T):
        ax.plot([min(low, end), min(high, end)], [row, row], color=BLUE, linewidth=3)
        if math.isinf(high):
            ax.plot([end], [row], ">", color=BLUE, clip_on=False)
        if math.isfinite(mid):
            ax.plot([mid], [row], "D", color="white", markeredgecolor=INK, zorder=5)
    ax.set_yticks(range(len(starts.job)), [f"job {job}" for job in starts.job])
    ax.set_ylim(len(starts.job) - 0.4, -0.6)
    ax.set_xlim(0.0, end)
    ax.grid(visible=False, axis="y")
    low, mid, high = (f"{100 * starts.levels[k]:g}" for k in (0, middle, -1))
    ax.set_xlabel(f"hours until it starts, quantiles {low}, {mid} and {high} %")
    return ax


def plan(plan: Plan, tiers: Sequence[Tier], *, ax: Axes | None = None) -> Axes:
    """Draw who holds the GPUs of each tier, and beside it the price of a GPU of the tier.

    The tiers are those of the snapshot that was planned.
    """
    ax = _axes(ax, (9.0, 3.5))
    used = [0] * len(tiers)
    for a in plan.allocations:
        if 0 <= a.partner < a.job:  # shares the GPUs of its partner, drawn there
            continue
        name = f"{a.job}" if a.partner < 0 else f"{a.job} + {a.partner}"
        colour = _job_colour(a.job)
        ink = INK if sum(colour) > 1.5 else "white"
        ax.barh(a.tier, a.gpus, 0.7, used[a.tier], color=colour, edgecolor="white")
        ax.text(used[a.tier] + a.gpus / 2, a.tier, name, ha="center", va="center", color=ink)
        used[a.tier] += a.gpus
    for row, tier in enumerate(tiers):
        idle = tier.gpus - used[row]
        if idle > 0:
            ax.barh(row, idle, 0.7, used[row], fill=False, edgecolor=MUTED, hatch="..")
    ax.set_yticks(range(len(tiers)), [f"{tier.name}\n{tier.gpus} GPUs" for tier in tiers])
    ax.set_ylim(len(tiers) - 0.4, -0.6)
    ax.set_xlim(0, max([tier.gpus for tier in tiers], default=0) or 1)
    ax.xaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(integer=True))
    ax.set_xlabel("GPUs, by the job that holds them")
    ax.grid(visible=False, axis="y")
    beside = ax.inset_axes((1.06, 0.0, 0.34, 1.0), sharey=ax)
    for side in ("top", "right"):
        beside.spines[side].set_visible(False)
    hourly = [3600.0 * price for price in plan.prices]
    beside.barh(range(len(hourly)), hourly, 0.5, color=MUTED)
    for row, price in enumerate(hourly):
        beside.annotate(
            f"{price:.3g}", (price, row), (4, 0), textcoords="offset points", va="center"
        )
    beside.tick_params(labelleft=False, labelbottom=False, bottom=False)  # the bars have numbers
    beside.set_xlim(0, 1.5 * max(hourly, default=0.0) or 1)
    beside.set_xlabel("value of a GPU-hour")
    return ax
