# SPDX-License-Identifier: Apache-2.0
"""`glidepath report`: one interactive page on runs, or on a workload."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import glidepath as gp
from glidepath.cli._console import ANSWER, WARNING, emit, progress, say
from glidepath.cli._inputs import chosen, learned
from glidepath.cli._options import (
    Budget,
    Json,
    Log,
    Lr,
    Metric,
    Past,
    Pattern,
    ReachedBy,
    Run,
    Target,
    check_budget,
    check_reached_by,
    planned_lr,
)
from glidepath.cli._outputs import check_page
from glidepath.cli._simulate import simulate


def report(
    context: typer.Context,
    file: Log,
    output: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML page to write.")
    ] = Path("report.html"),
    run: Run = None,
    target: Target = None,
    reached_by: ReachedBy = None,
    budget: Budget = None,
    lr: Lr = None,
    past: Past = None,
    metric: Metric = None,
    pattern: Pattern = None,
    hardware: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What a monitor logged of the run's GPUs, from its beginning on: adds energy.",
        ),
    ] = None,
    step_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With --hardware, how long a step takes, for a log without times.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write one interactive page on the runs of a file: forecasts and verdicts.

    Without --budget a run is forecast to the step at which its log says that it ends, else to the
    end of --lr, else to ten times the steps seen. A run that is past its --budget has spent it, as
    for `watch`. For a workload folder, with tiers.csv and jobs.csv, the page is that of
    `simulate --compare`.
    """
    from glidepath import _report

    check_budget(budget)
    check_page("--out", output, file, hardware, past)
    if (Path(file) / "tiers.csv").is_file():
        others = target, reached_by, budget, lr, past, run, metric, pattern, hardware, step_seconds
        if others != (None,) * len(others):
            raise gp.InputError(f"{file} is a workload: its jobs have targets and budgets")
        return simulate(context, Path(file), compare=True, report=output, as_json=as_json)
    check_reached_by(reached_by, target)
    if step_seconds is not None and (hardware is None or not 0 < step_seconds < math.inf):
        why = "is for --hardware" if hardware is None else "is not a positive number"
        raise gp.InputError(f"--step-seconds {step_seconds:g} {why}")
    plan = planned_lr(lr)
    traces = chosen(file, run, metric, pattern)
    runs = learned(past, metric, pattern, traces, quiet=as_json)
    gpus = None
    if hardware is not None:
        gpus = gp.read_metrics(hardware).busy()
        traces = [_timed(trace, step_seconds) for trace in traces]
    with progress("report") as update:
        rows = _report.write_runs(
            output,
            traces,
            target=target,
            reached_by=reached_by,
            budget=budget,
            schedule=plan,
            schedule_from=None if plan is None else f"--lr {lr}",
            past=runs,
            hardware=gpus,
            title=Path(file).name,
            progress=update,
        )
    if as_json:
        emit(rows)
    else:
        say(f"Report: {output}")
    return ANSWER if all(row["status"] == "good" for row in rows) else WARNING


def _timed(trace: gp.Trace, step_seconds: float | None) -> gp.Trace:
    """Give the run a clock where its log has none."""
    if trace.wall_seconds is not None:
        if step_seconds is not None:
            raise gp.InputError(f"--step-seconds: {trace.name} has times of its own")
        return trace
    if step_seconds is None:
        raise gp.InputError(
            f"--hardware: {trace.name} has no times: say --step-seconds, how long one of its steps "
            "takes"
        )
    return replace(trace, wall_seconds=(trace.step - trace.step[0]) * step_seconds)
