# SPDX-License-Identifier: Apache-2.0
"""What all pictures have in common: axes, colours, lines and hatching.

Colours are those of Okabe and Ito (2008), distinct to colour-blind readers; every distinction is
also one of line style, hatching or lightness, so that a black-and-white print shows the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from glidepath import _words
from glidepath._pictures import series
from glidepath._results import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def axes_for(ax: Axes | None, figsize: tuple[float, float] = (7.0, 4.0)) -> Axes:
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


def literal(name: str) -> str:
    """Give a name of the user's for matplotlib, which reads what stands between dollars as TeX."""
    return name.replace("$", r"\$")


def over_steps(ax: Axes, y: str, *seen: ArrayLike) -> None:
    """Name the axes of a picture over steps, as high as the losses that it shows."""
    limits = series.loss_limits(*seen)
    if limits is not None:
        ax.set_ylim(*limits)
    ax.set_xlabel("step")
    ax.xaxis.set_major_formatter(
        require("matplotlib.ticker").FuncFormatter(lambda at, _: _words.count(at))
    )
    ax.set_ylabel(literal(y))


def say_nothing_is_known(ax: Axes, why: str) -> None:
    """Say in the middle of axes why there is nothing to draw in them."""
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED)
    ax.set_yticks([])
