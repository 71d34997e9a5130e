# SPDX-License-Identifier: Apache-2.0
"""`glidepath report`: one interactive page on runs, or on a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import glidepath as gp
from glidepath.cli._console import (
    ANSWER,
    Budget,
    Curve,
    Json,
    Log,
    Metric,
    ReachedBy,
    Target,
    check_budget,
    check_reached_by,
    chosen,
    emit,
    progress,
    say,
)
from glidepath.cli._simulate import simulate


def report(
    file: Log,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML page to write.")] = Path(
        "report.html"
    ),
    curve: Curve = None,
    target: Target = None,
    reached_by: ReachedBy = None,
    budget: Budget = None,
    metric: Metric = None,
    hardware: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What a monitor logged of the run's GPUs, from its beginning on: adds energy.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write one interactive page on the runs of a file: forecasts and advice.

    Without --budget a run is forecast to the step at which its log says that it ends, else to ten
    times the steps seen. For a workload folder, with tiers.csv and jobs.csv, the page is that of
    `simulate --compare`.
    """
    from glidepath import _report

    check_budget(budget)
    if (Path(file) / "tiers.csv").is_file():
        if (target, reached_by, budget, curve, metric, hardware) != (None,) * 6:
            raise gp.InputError(f"{file} is a workload: its jobs have targets and budgets")
        return simulate(Path(file), compare=True, report=output, as_json=as_json)
    check_reached_by(reached_by, target)
    traces = chosen(file, curve, metric)
    gpus = None if hardware is None else gp.read_metrics(hardware).busy()
    with progress("report") as update:
        rows = _report.write_runs(
            output,
            traces,
            target=target,
            reached_by=reached_by,
            budget=budget,
            hardware=gpus,
            title=Path(file).name,
            progress=update,
        )
    if as_json:
        emit(rows)
    else:
        say(f"Report: {output}")
    return ANSWER
