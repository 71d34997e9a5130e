# SPDX-License-Identifier: Apache-2.0
"""`glidepath fit`: a curve through each run of a file."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath import _words
from glidepath._answer import UNKNOWN, Columns, run_keys
from glidepath._fit import FAMILIES
from glidepath._results import counted
from glidepath.cli._console import ANSWER, WARNING, emit, print_rows, progress
from glidepath.cli._inputs import called, chosen
from glidepath.cli._options import Json, Log, Metric, Pattern, Plot, Run
from glidepath.cli._outputs import check_plot, save

_BATCH = 256  # runs between two updates of the bar


def fit(
    file: Log,
    run: Run = None,
    family: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A family of curves, or auto: the best by AICc.",
            autocompletion=lambda: ["auto", *FAMILIES],
        ),
    ] = "auto",
    robust: Annotated[
        bool, typer.Option("--robust", help="Give spikes and outliers little weight.")
    ] = False,
    from_step: Annotated[
        float | None,
        typer.Option(
            metavar="STEP",
            help="Leave out the points before this step: a warm-up or a rough start.",
        ),
    ] = None,
    lowest_floor: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="Lowest value that the metric can take: no fitted floor is below it.",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(metavar="closed_form|ceres", help="What fits; ceres is the slow reference."),
    ] = "closed_form",
    metric: Metric = None,
    pattern: Pattern = None,
    plot: Plot = None,
    as_json: Json = False,
) -> int:
    """Fit a learning-curve family to each run of a file."""
    check_plot("--plot", plot, file)
    traces = chosen(file, run, metric, pattern)
    fits = _fits(
        traces,
        family=family,
        robust=robust,
        from_step=from_step,
        lowest_floor=lowest_floor,
        solver=solver,
    )
    if plot is not None:
        save(lambda ax: fits[0].plot(ax=ax, trace=traces[0]), plot)
    rows = [_row(trace, fit) for trace, fit in zip(traces, fits, strict=True)]
    if as_json:
        emit(rows)
    else:
        columns: Columns = {
            "run": "{run}",
            "points": lambda row: _words.count(row["points"]),
            "family": "{family}",
            "parameters": _parameters,
            "sigma": _sigma,
            "status": "{status}",
        }
        print_rows(f"{counted(len(rows), 'fit')} of {called(file)}", columns, rows)
    return ANSWER if all(fit.status == "converged" for fit in fits) else WARNING


def _fits(traces: list[gp.Trace], **options: Any) -> list[gp.Fit]:
    fits: list[gp.Fit] = []
    with progress("fits") as update:
        for first in range(0, len(traces), _BATCH):
            fits += gp.fit_batch(traces[first : first + _BATCH], **options)
            update(len(fits), len(traces))
    return fits


def _row(trace: gp.Trace, fit: gp.Fit) -> dict[str, Any]:
    return {
        **run_keys(trace),
        "points": fit.points,
        "status": fit.status,
        "family": fit.family,
        "params": fit.params,
        "stderr": fit.stderr,
        "sigma": fit.sigma,
        "aicc": fit.aicc,
        "bic": fit.bic,
    }


def _sigma(row: dict[str, Any]) -> str:
    return f"{row['sigma']:.3g}" if math.isfinite(row["sigma"]) else UNKNOWN


def _parameters(row: dict[str, Any]) -> str:
    """Write the parameters; a dash where there is no curve."""
    if not all(map(math.isfinite, row["params"].values())):
        return UNKNOWN
    return "  ".join(f"{key} {value:.4g}" for key, value in row["params"].items())
