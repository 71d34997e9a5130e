# SPDX-License-Identifier: Apache-2.0
"""Pictures of how good forecasts are: their coverage, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from glidepath._pictures import series
from glidepath._pictures.style import BLUE, INK, LINES, PALETTE, axes_for, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability(pit_values: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw observed against nominal coverage; a calibrated forecast is on the diagonal."""
    ax = axes_for(ax, (4.6, 4.4))
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
    ax = axes_for(ax, (5.2, 3.6))
    for i, (name, by_cutoff) in enumerate(errors.items()):
        ax.plot(
            [100 * cutoff for cutoff in by_cutoff],
            list(by_cutoff.values()),
            color=PALETTE[i % len(PALETTE)],
            linestyle=LINES[i % len(LINES)],
            marker="o",
            label=literal(name),
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("% of the run seen")
    ax.set_ylabel("mean error of the final value / range")
    ax.legend(frameon=False, fontsize=9)
    return ax
