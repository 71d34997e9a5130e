# SPDX-License-Identifier: Apache-2.0
"""Pictures of a cluster: who holds its GPUs, who waits for them, what policies make of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glidepath import _words
from glidepath._pictures import series
from glidepath._pictures.style import BLUE, HATCHES, INK, MUTED, PALETTE, axes_for, literal
from glidepath._results import counted, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from glidepath._core import Tier
    from glidepath._plan import Plan
    from glidepath._simulate import Simulation
    from glidepath._starts import StartTimes


def plan(plan: Plan, tiers: Sequence[Tier], *, ax: Axes | None = None) -> Axes:
    """Draw who holds the GPUs of each tier, and beside it the price of a GPU of the tier.

    The tiers are those of the snapshot that was planned.
    """
    ax = axes_for(ax, (9.0, 3.5))
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
    ax.set_yticks(
        range(len(tiers)), [f"{literal(tier.name)}\n{counted(tier.gpus, 'GPU')}" for tier in tiers]
    )
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


def starts(starts: StartTimes, *, ax: Axes | None = None) -> Axes:
    """Draw a row for each waiting job: the middle quantile of its start between the outermost.

    An arrow ends the row of a job that may not start within the horizon. Of many jobs the picture
    is higher, and of more than a hundred not every row has a name.
    """
    count = len(starts.job)
    ax = axes_for(ax, (7.0, min(max(4.0, 0.9 + 0.22 * count), 24.0)))
    hours = starts.quantiles / 3600.0
    end = 1.1 * max(hours[np.isfinite(hours)].max(initial=0.0), 1e-3)
    middle = int(np.argmin(np.abs(starts.levels - 0.5)))
    for row, (low, mid, high) in enumerate(hours[[0, middle, -1]].T):
        ax.plot([min(low, end), min(high, end)], [row, row], color=BLUE, linewidth=3)
        if math.isinf(high):
            ax.plot([end], [row], ">", color=BLUE, clip_on=False)
        if math.isfinite(mid):
            ax.plot([mid], [row], "D", color="white", markeredgecolor=INK, zorder=5)
    named = slice(0, count, max(1, math.ceil(count / 100)))
    ax.set_yticks(range(count)[named], [f"job {job}" for job in starts.job[named]])
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_xlim(0.0, end)
    ax.grid(visible=False, axis="y")
    low, mid, high = (f"{100 * starts.levels[k]:g}" for k in (0, middle, -1))
    ax.set_xlabel(f"hours until it starts, quantiles {low}, {mid} and {high} %")
    return ax


def gantt(simulation: Simulation, *, ax: Axes | None = None) -> Axes:
    """Draw one row per GPU, one block per stretch of a job; a job keeps its colour."""
    ax = axes_for(ax, (9.0, 4.5))
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
        names.append(simulation.tiers[tier])
        base += count
    ax.add_collection(
        collections.PatchCollection(
            shapes, facecolor=colours, edgecolor="white", linewidth=0.3, zorder=2
        )
    )
    end = max((box.end_s / 3600.0 for box in boxes), default=1.0)
    ax.set_xlim(0, end * 1.01)
    ax.set_ylim(max(base, 1), 0)
    ax.set_yticks(
        ticks,
        [f"{literal(n)}\n{counted(c, 'GPU')}" for n, c in zip(names, lanes.values(), strict=True)],
    )
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("time (hours)")
    ax.set_title(literal(simulation.policy), loc="left", fontsize=10)
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
    ax = axes_for(ax, (6.0, 0.9 + 0.42 * len(values)))
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
    numbers = [_words.count(float(f"{height:.4g}")) for height in heights]
    ax.bar_label(bars, numbers, padding=5, fontsize=9)
    ax.set_yticks(range(len(names)), list(map(literal, names)))
    ax.invert_yaxis()
    ax.margins(x=0.16)
    ax.set_xlim(left=0)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel(label)
    return ax


def study(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw four panels over the number of users, a line per policy; dashed: stops at the target.

    `rows` are those of ``_bench.seed_study.run``.
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
        axes_for(ax)
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
