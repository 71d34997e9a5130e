# SPDX-License-Identifier: Apache-2.0
"""A forecast as one of four words, for schedulers that know priorities: docs/kubernetes.md.

python -m glidepath.engines.slurm.urgency LOG --target 0.1 --budget 20000 --steps-per-s 1.4
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, NoReturn, cast, get_args

import typer

from glidepath._core import InputError
from glidepath._trace import Direction
from glidepath._verdicts import meaning
from glidepath.engines.slurm._comment import JobRequest
from glidepath.engines.slurm._job_forecast import JobForecast, forecast_job
from glidepath.engines.slurm._options import PilotOptions
from glidepath.engines.slurm._traces import TraceStore

__all__ = ["main", "urgency"]


def urgency(forecast: JobForecast, steps_per_s: float) -> str | None:
    """Sort a run by the median time it still needs.

    Parameters
    ----------
    forecast : JobForecast
    steps_per_s : float
        Pace of the run, above 0 and finite.

    Returns
    -------
    str or None
        ``"glide-soon"`` within an hour, ``"glide-today"`` within a day, ``"glide-later"``,
        ``"glide-doubtful"`` for a run that diverged or more likely than not does not reach its
        target, None where too little is known.

    Raises
    ------
    InputError
        A pace that is not above 0 and finite.
    """
    if not 0.0 < steps_per_s < math.inf:
        raise InputError(f"steps_per_s is {steps_per_s:g}, expected above 0 and finite")
    if meaning(forecast.verdict).is_lost:
        return "glide-doubtful"
    too_early = forecast.few_points and not meaning(forecast.verdict).is_settled
    if too_early or not forecast.remaining:
        return None
    if forecast.probability < 0.5:
        return "glide-doubtful"
    hours = forecast.quantile(0.5) / steps_per_s / 3600.0
    if math.isinf(hours):
        return "glide-doubtful"
    return "glide-soon" if hours <= 1 else "glide-today" if hours <= 24 else "glide-later"


def main(
    log: Annotated[Path, typer.Argument(help="The log of the run.")],
    target: Annotated[float, typer.Option(help="Value of the metric at which the run is done.")],
    budget: Annotated[float, typer.Option(help="Step at which the run ends in any case.")],
    steps_per_s: Annotated[float, typer.Option(help="Pace of the run, steps per second.")],
    metric: Annotated[str, typer.Option(help="Column of the log.")] = "",
    direction: Annotated[
        str | None,
        typer.Option(help="Which is better, min or max; default: what the metric's name says."),
    ] = None,
) -> None:
    """Print the priority class of a run; exit with 1 when too little is known of it."""
    if direction not in (None, *get_args(Direction)):
        _refuse(f"--direction is {direction}, expected min or max")
    if not 0.0 < steps_per_s < math.inf:
        _refuse(f"--steps-per-s is {steps_per_s:g}, expected above 0 and finite")
    if not 0.0 < budget < math.inf:
        _refuse(f"--budget is {budget:g}, expected above 0 and finite")
    if not math.isfinite(target):
        _refuse(f"--target is {target:g}, expected a finite number")
    request = JobRequest(target, budget, metric=metric, direction=cast(Direction | None, direction))
    progress = TraceStore().read(log, metric=metric, direction=request.direction)
    forecast = forecast_job(progress, request, PilotOptions())
    word = urgency(forecast, steps_per_s)
    if word is None:
        # A job says in its comment what is said by options here.
        problem = forecast.problem.replace("metric= in the comment", "--metric")
        problem = problem.replace("direction=", "--direction ")
        sys.stderr.write(f"urgency: {problem or 'too little is known'}\n")
        raise typer.Exit(1)
    sys.stdout.write(word + "\n")


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"urgency: {sentence}\n")
    raise typer.Exit(2)


if __name__ == "__main__":
    typer.run(main)
