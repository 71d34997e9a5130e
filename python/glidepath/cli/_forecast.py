# SPDX-License-Identifier: Apache-2.0
"""`glidepath forecast`: where each run of a file is going, and when it reaches a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import glidepath as gp
from glidepath._answer import forecast_keys, metric_of, reach_keys, run_keys, when
from glidepath._pictures import series
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    Budget,
    Curve,
    Json,
    Log,
    Metric,
    Past,
    Plot,
    Target,
    check_budget,
    chosen,
    counted,
    each,
    emit,
    learned,
    print_table,
    save,
    stdout,
)

_STEPS = 50  # of a forecast, closer together near the last observation


def forecast(
    file: Log,
    curve: Curve = None,
    observed: Annotated[
        float, typer.Option(help="Use this share of the points of each run, in (0, 1].")
    ] = 1.0,
    budget: Budget = None,
    target: Target = None,
    schedule: Annotated[
        bool,
        typer.Option(
            "--schedule", help="Use the learning rate that the file has beyond --observed."
        ),
    ] = False,
    past: Past = None,
    metric: Metric = None,
    plot: Plot = None,
    as_json: Json = False,
) -> int:
    """Forecast each run of a file, and when (and whether) it reaches a target.

    Without --budget a run is forecast to its last step in the file, or to twice the last step that
    was observed.
    """
    if not 0.0 < observed <= 1.0:
        raise gp.InputError(f"--observed {observed:g} is not in (0, 1]")
    check_budget(budget)
    traces = chosen(file, curve, metric)
    runs = learned(past, metric, traces)
    rows: list[dict[str, Any]] = []
    for trace in each("forecasts", traces):
        seen, end = _seen(trace, observed, budget)
        plan = _planned(trace) if schedule else None
        look = _look(trace, seen, end, target, plan, runs)
        if plot is not None and not rows:
            save(lambda ax, look=look: _fan(ax, look, target), plot)
        rows.append(_row(look, curves=as_json))
    if as_json:
        emit(rows)
    else:
        _print(file, rows, target)
    return ANSWER if all(row["status"] == "good" for row in rows) else WARNING


@dataclass(frozen=True, slots=True)
class _Look:
    """A run, the part that was observed, and its forecast."""

    trace: gp.Trace
    seen: gp.Trace
    ahead: gp.Forecast
    reach: gp.Reach | None


def _seen(trace: gp.Trace, observed: float, budget: float | None) -> tuple[gp.Trace, float]:
    """Cut a run where it is observed; give the last step of its forecast, too."""
    points = max(1, math.ceil(observed * len(trace)))
    seen = trace.until(float(trace.step[points - 1]))
    last = float(seen.step[-1])
    end = budget if budget is not None else float(trace.step[-1])
    if end <= last:
        if budget is not None:
            raise gp.InputError(f"--budget {budget:g} is not after step {last:g} of {trace.name}")
        end = last + max(abs(last), 1.0)
    return seen, end


def _look(
    trace: gp.Trace,
    seen: gp.Trace,
    end: float,
    target: float | None,
    plan: gp.Schedule | None,
    runs: gp.PastRuns | None,
) -> _Look:
    last = float(seen.step[-1])
    steps = np.unique(last + np.geomspace((end - last) / _STEPS, end - last, _STEPS))
    ahead = gp.forecast(seen, steps, schedule=plan, past=runs)
    reach = None
    if target is not None:
        reach = gp.reach(seen, target, budget=end, schedule=plan, past=runs)
    return _Look(trace, seen, ahead, reach)


def _planned(trace: gp.Trace) -> gp.Schedule:
    plan = gp.Schedule.logged(trace)
    if plan is None:
        raise gp.InputError(f"--schedule: {trace.name or 'the run'} has no learning rate")
    return plan


def _row(look: _Look, *, curves: bool) -> dict[str, Any]:
    """Give the numbers of one run; with `curves` those of every step."""
    row = run_keys(look.seen) | {"run": look.trace.name} | forecast_keys(look.ahead)
    if look.reach is not None:
        row |= reach_keys(look.reach, row["observed_to"])
    if curves:
        names = ("at", "median", "levels", "quantiles")
        row["forecast"] = {name: getattr(look.ahead, name) for name in names}
    return row


def _fan(ax: Any, look: _Look, target: float | None) -> None:
    from glidepath._pictures import plots

    rest = look.trace.step > look.seen.step[-1]
    later = gp.Trace(look.trace.step[rest], look.trace.loss[rest]) if rest.any() else None
    plots.forecast(look.ahead, trace=look.seen, later=later, target=target, reach=look.reach, ax=ax)
    ax.set_ylabel(metric_of(look.trace))
    ax.set_title(look.trace.name, loc="left", fontsize=10)


def _print(file: str, rows: list[dict[str, Any]], target: float | None) -> None:
    metrics = {row["metric"] for row in rows}
    value = metrics.pop() if len(metrics) == 1 else "value"
    columns = ["run", "observed to", "at step", value, "80 % within", "status"]
    if target is not None:
        columns += [f"reaches {target:g}", "when (80 % within)"]
    print_table(
        f"{counted(len(rows), 'forecast')} of {Path(file).name}",
        columns,
        [_cells(row) for row in rows],
    )
    if len(rows) == 1 and target is not None:
        stdout.print(_sentence(rows[0]), highlight=False, markup=False, soft_wrap=True)


def _cells(row: dict[str, Any]) -> list[str]:
    cells = [
        row["run"],
        f"{row['observed_to']:g}",
        f"{row['at']:g}",
        f"{row['median']:.4g}",
        f"{row['q10']:.4g} to {row['q90']:.4g}",
        row["status"],
    ]
    return cells + ([series.percent(row["probability"]), _when(row)] if "target" in row else [])


def _when(row: dict[str, Any]) -> str:
    return when(row["reach_q10"], row["reach_q50"], row["reach_q90"])


def _sentence(row: dict[str, Any]) -> str:
    """Say whether and when the target is reached."""
    target, chance = row["target"], series.percent(row["probability"])
    if row["reach_q10"] == row["reach_q90"] <= row["observed_to"]:
        return f"reached {target:g} at step {series.count(row['reach_q50'])}"
    if math.isfinite(row["reach_q50"]):
        return f"reaches {target:g} {_when(row)}, {chance}"
    return f"reaches {target:g} by step {series.count(row['at'])}: {chance}"
