# SPDX-License-Identifier: Apache-2.0
"""A forecast as one of four words, for schedulers that know priorities: docs/kubernetes.md.

python -m glidepath.engines.slurm.urgency LOG --target 0.1 --budget 20000 --steps-per-hour 5000
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from glidepath.engines.slurm._model import Wish
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._outlook import Outlook, look_ahead
from glidepath.engines.slurm._traces import TraceStore

__all__ = ["main", "urgency"]


def urgency(outlook: Outlook, steps_per_hour: float) -> str | None:
    """Sort a run by the median time it still needs.

    Parameters
    ----------
    outlook : Outlook
    steps_per_hour : float
        Its pace.

    Returns
    -------
    str or None
        ``"glide-soon"`` within an hour, ``"glide-today"`` within a day, ``"glide-later"``,
        ``"glide-doubtful"`` for a run that more likely than not misses its target, None for one of
        which too little is known.
    """
    if not outlook.remaining:
        return None
    if outlook.probability < 0.5:
        return "glide-doubtful"
    hours = outlook.quantile(0.5) / steps_per_hour
    if math.isinf(hours):
        return "glide-doubtful"
    return "glide-soon" if hours <= 1 else "glide-today" if hours <= 24 else "glide-later"


def main(
    log: Annotated[Path, typer.Argument(help="Where the run logs.")],
    target: Annotated[float, typer.Option(help="Value at which the run is done.")],
    budget: Annotated[float, typer.Option(help="Step at which it ends in any case.")],
    steps_per_hour: Annotated[float, typer.Option(help="Its pace.")],
    metric: Annotated[str, typer.Option(help="Column of the log.")] = "",
    direction: Annotated[str, typer.Option(help="min or max.")] = "min",
) -> None:
    """Print the priority class of a run; exit with 1 when too little is known of it."""
    wish = Wish(target, budget, metric=metric, direction="max" if direction == "max" else "min")
    progress = TraceStore().read(log, metric=metric, direction=wish.direction)
    outlook = look_ahead(progress, wish, PilotOptions())
    word = urgency(outlook, steps_per_hour) if steps_per_hour > 0 else None
    if word is None:
        sys.stderr.write(f"urgency: {outlook.problem or 'too little is known'}\n")
        raise typer.Exit(1)
    sys.stdout.write(word + "\n")


if __name__ == "__main__":
    typer.run(main)
