# SPDX-License-Identifier: Apache-2.0
"""Every kind of picture against one that was looked at: its shapes as pixels, its words as words.

    python tests/python/test_pictures.py    # draws what is expected anew, and says where to look

Versions of matplotlib set text a little otherwise, and the layout makes room for it: words are
compared as such, and all else in axes of a fixed place. What is drawn is written here and not
computed by a stage, so that a better forecast changes none.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.testing.compare import compare_images  # noqa: E402
from matplotlib.text import Text  # noqa: E402

import glidepath as gp  # noqa: E402
from glidepath import _core  # noqa: E402
from glidepath._pictures import clusters, runs, scores  # noqa: E402

EXPECTED = Path(__file__).parent / "pictures"
WORDS = EXPECTED / "words.json"
# RMS of 0 to 255 per pixel; matplotlib 3.7.5 and 3.11.2 draw the same to the last one.
TOLERANCE = 1.0
STYLE = {"font.family": "DejaVu Sans", "savefig.dpi": 60}

STEP = np.linspace(100.0, 10_000.0, 100)
LATER = np.linspace(10_100.0, 40_000.0, 60)
LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
SPREAD = np.array([-1.64, -1.28, -0.67, 0.0, 0.67, 1.28, 1.64])
HOUR = 3600.0


def loss(step: np.ndarray) -> np.ndarray:
    return np.asarray(1.6 + 20.0 * step**-0.45 + 0.02 * np.sin(step / 131.0))


TRACE = gp.Trace(STEP, loss(STEP), name="run")


@dataclass
class Ahead:
    at: np.ndarray = field(default_factory=lambda: LATER)
    median: np.ndarray = field(default_factory=lambda: 1.6 + 20.0 * LATER**-0.45)
    levels: np.ndarray = field(default_factory=lambda: LEVELS)
    _is_blind = False

    @property
    def quantiles(self) -> np.ndarray:
        width = 0.01 + 0.06 * np.log(self.at / STEP[-1])
        return np.asarray(self.median + SPREAD[:, None] * width)


class Curve:
    family, status, sigma, last_step = "pow3", "converged", 0.0142, 10_000.0

    def predict(self, steps: Any) -> np.ndarray:
        return np.asarray(1.6 + 20.0 * np.asarray(steps) ** -0.45)


def when(never: float) -> gp.Reach:
    grid = np.linspace(10_000.0, 60_000.0, 201)
    cdf = 1.0 / (1.0 + np.exp(-(grid - 32_000.0) / 3_000.0))
    cdf *= (1.0 - never) / cdf[-1]
    record = _core.ReachRecord(
        step=grid, cdf=cdf, prob_never=never, target=1.8, budget=60_000.0, status="good"
    )
    return gp.Reach._of(record)


@dataclass
class Ran:
    policy: str
    tiers = ("Bronze", "Gold")

    @property
    def spans(self) -> dict[str, np.ndarray]:
        start = HOUR * np.array([0, 0, 1, 2, 2, 4, 5, 6], dtype=float)
        return {
            "job": np.arange(8),
            "tier": np.array([0, 1, 0, 0, 1, 0, 1, 0]),
            "gpus": np.array([2, 1, 2, 1, 2, 4, 1, 2]),
            "start_s": start,
            "end_s": start + HOUR * np.array([2, 2, 1, 2, 3, 2, 4, 3]),
        }


# A forecast that is a little too sure of itself.
PIT = np.clip(0.5 + 1.15 * ((np.arange(400) + 0.5) / 400 - 0.5), 0.001, 0.999)

PICTURES: dict[str, Callable[[], Any]] = {
    "trace": lambda: runs.trace(TRACE),
    "fit": lambda: runs.fit(Curve(), TRACE),
    "fan": lambda: runs.forecast(
        Ahead(),
        trace=TRACE,
        later=gp.Trace(LATER, loss(LATER)),
        target=1.8,
        reach=when(0.07),
    ),
    "reach": lambda: runs.reach(when(0.25)),
    "never": lambda: runs.reach(when(1.0)),
    "reliability": lambda: scores.reliability(PIT),
    "gantt": lambda: clusters.gantt(Ran("dare")),
    "energy": lambda: clusters.policies(
        {"fifo": 65.3, "session_fifo": 65.0, "srtf": 64.8, "dare": 35.3}, label="energy (kWh)"
    ),
    "waiting": lambda: clusters.policies(
        {"fifo": 67.4, "srtf": 20.1, "dare": 1.9},
        errors={"fifo": 15.4, "srtf": 6.0, "dare": 1.2},
        label="total wait (hours)",
    ),
}


def draw(
    name: str, path: Path, change: Callable[[Any], Any] = lambda _: None, *, whole: bool = False
) -> list[str]:
    """Draw without words, unless it is to be looked at; give the words."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE, "backend": "agg"}):
        ax = PICTURES[name]()
        change(ax)
        figure = ax.figure
        figure.canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
        words = [text.get_text() for text in texts if text.get_visible()]
        if not whole:
            figure.set_layout_engine("none")
            ax.set_position((0.1, 0.1, 0.85, 0.8))
            if ax.get_legend() is not None:
                ax.get_legend().remove()
            for text in texts:
                text.set_alpha(0)
        figure.savefig(path, metadata={"Software": None})
        pyplot.close(figure)
    return words


def differs(name: str, folder: Path, change: Callable[[Any], Any] = lambda _: None) -> str | None:
    """Say in what a picture differs from the one that was looked at."""
    expected, drawn = folder / "expected.png", folder / f"{name}.png"
    expected.write_bytes((EXPECTED / f"{name}.png").read_bytes())
    words = draw(name, drawn, change)
    if words != json.loads(WORDS.read_text())[name]:
        return f"words: {words}"
    found: str | None = compare_images(str(expected), str(drawn), TOLERANCE)
    return found


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_the_one_that_was_looked_at(name: str, tmp_path: Path) -> None:
    assert differs(name, tmp_path) is None


def test_every_expected_picture_is_of_a_kind_that_is_drawn() -> None:
    assert {path.stem for path in EXPECTED.glob("*.png")} == set(PICTURES)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda ax: ax.get_lines()[-2].remove(),  # the interval of the time to the target
        lambda ax: ax.collections[0].remove(),  # the wider band
        lambda ax: ax.set_xlabel(""),  # what the axis is
        lambda ax: ax.get_legend().remove(),
    ],
    ids=["interval", "band", "axis", "legend"],
)
def test_what_is_lost_is_noticed(loss_of: Callable[[Any], Any], tmp_path: Path) -> None:
    assert differs("fan", tmp_path, loss_of) is not None


def test_bars_differ_in_more_than_colour() -> None:
    bars = PICTURES["energy"]().patches
    assert len({bar.get_hatch() for bar in bars}) == len(bars)


def test_a_target_out_of_reach_is_a_picture_too() -> None:
    ax = PICTURES["never"]()
    assert "never 100 %" in [text.get_text() for text in ax.texts]
    assert math.isinf(when(1.0).quantile(0.5))


if __name__ == "__main__":
    look = Path(tempfile.mkdtemp(prefix="pictures-"))
    said = {kind: draw(kind, EXPECTED / f"{kind}.png") for kind in PICTURES}
    WORDS.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    for kind in PICTURES:
        draw(kind, look / f"{kind}.png", whole=True)
    sys.stdout.write(f"look at each in {look}, in colour and in grey\n")
