# SPDX-License-Identifier: Apache-2.0
"""`glidepath forecast`: where each run of a file is going, and when it reaches a target."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer

import glidepath as gp
from glidepath import _words
from glidepath._answer import UNKNOWN, best_in_words, forecast_cells, when
from glidepath._horizon import Horizon, Look, horizon, in_words, look, reasons_in_words
from glidepath._results import counted
from glidepath.cli._console import ANSWER, WARNING, each, emit, hint, print_table, say, shown
from glidepath.cli._inputs import begins_at_target, called, chosen, doubt_target, learned
from glidepath.cli._options import (
    Budget,
    Json,
    Log,
    Lr,
    Metric,
    Past,
    Pattern,
    Plot,
    ReachedBy,
    Run,
    Target,
    check_budget,
    check_reached_by,
    planned_lr,
)
from glidepath.cli._outputs import check_plot, save


def forecast(
    file: Log,
    run: Run = None,
    observed: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Use this share of the points of each run, in (0, 1]."),
    ] = 1.0,
    budget: Budget = None,
    target: Target = None,
    reached_by: ReachedBy = None,
    lr: Lr = None,
    past: Past = None,
    metric: Metric = None,
    pattern: Pattern = None,
    plot: Plot = None,
    as_json: Json = False,
) -> int:
    """Forecast each run of a file, and when (and whether) it reaches a target.

    Without --budget a run is forecast to the step at which its log says that it ends, else to the
    end of --lr, else with --observed to its last step in the file, else to ten times the steps
    seen. The answer says which.
    """
    if not 0.0 < observed <= 1.0:
        raise gp.InputError(f"--observed is {observed:g}, expected above 0 to 1")
    check_budget(budget)
    check_plot("--plot", plot, file, past)
    check_reached_by(reached_by, target)
    logged = lr == "logged"
    given = None if logged else planned_lr(lr)
    traces = chosen(file, run, metric, pattern)
    runs = learned(past, metric, pattern, traces, quiet=as_json)
    rows: list[dict[str, Any]] = []
    begun_there: list[gp.Trace] = []  # at the target
    for trace in each("forecasts", traces):
        plan = _planned(trace) if logged else given
        seen, ahead = _seen(trace, observed, budget, plan, f"--lr {lr}")
        found = look(seen, ahead, target=target, reached_by=reached_by, past=runs)
        if plot is not None and not rows:
            save(lambda ax, trace=trace, found=found: _fan(ax, trace, found, target), plot)
        row = found.keys() | {"past_runs": len(runs.runs) if runs else 0}
        if len(seen) > 1 and begins_at_target(seen, row):
            begun_there.append(seen)
        if as_json:
            row["forecast"] = _whole(found.ahead)
        rows.append(row)
    doubt_target(begun_there, target)
    if as_json:
        emit(rows)
    else:
        _print(file, rows, target)
        hint(
            *("--target VALUE for when a value is reached",) * (target is None),
            *("--budget STEP for another horizon",) * (budget is None),
            *("--plot FILE for a picture",) * (plot is None),
            *("--past FOLDER to learn from finished runs",) * (past is None),
        )
    return ANSWER if all(row["status"] == "good" for row in rows) else WARNING


def _seen(
    trace: gp.Trace, observed: float, budget: float | None, plan: gp.Schedule | None, source: str
) -> tuple[gp.Trace, Horizon]:
    """Cut a run where it is observed; say how far it is forecast, too."""
    points = max(1, math.ceil(observed * len(trace)))
    seen = trace.until(float(trace.step[points - 1]))
    last = float(seen.step[-1])
    if budget is not None and budget <= last:
        seen_to = f"{_words.count(last)}, the last seen of {trace.name}"
        raise gp.InputError(f"--budget is {budget:g}, expected a step after {seen_to}")
    end = float(trace.step[-1])
    source_of = None if plan is None else source
    return seen, horizon(seen, budget=budget, file_end=end, schedule=plan, schedule_from=source_of)


def _whole(ahead: gp.Forecast) -> dict[str, Any]:
    """Give every value of a forecast, each NaN where nothing observed was finite."""
    names = ("at", "median", "levels", "quantiles")
    whole = {name: getattr(ahead, name) for name in names}
    if ahead._is_blind:
        whole |= {name: np.full_like(whole[name], math.nan) for name in ("median", "quantiles")}
    return whole


def _planned(trace: gp.Trace) -> gp.Schedule:
    plan = gp.Schedule.logged(trace)
    if plan is None:
        raise gp.InputError(f"--lr logged: {trace.name or 'the run'} has no learning rate")
    return plan


def _fan(ax: Any, trace: gp.Trace, found: Look, target: float | None) -> None:
    from glidepath._pictures import runs

    rest = trace.step > found.seen.step[-1]
    later = gp.Trace(trace.step[rest], trace.loss[rest]) if rest.any() else None
    runs.forecast(
        found.ahead, trace=found.seen, later=later, target=target, reach=found.reach, ax=ax
    )
    ax.set_title(shown(trace.name).plain, loc="left", fontsize=10)


def _print(file: str, rows: list[dict[str, Any]], target: float | None) -> None:
    metrics = {row["metric"] for row in rows}
    value = metrics.pop() if len(metrics) == 1 else "value"
    columns = ["run", "observed to", "at step", value, "80 % within", "status"]
    several = len(rows) > 1
    if several:
        columns.append("best is past")
    if target is not None:
        columns += [f"reaches {target:g}", "when (80 % within)"]
    print_table(
        f"{counted(len(rows), 'forecast')} of {called(file)}",
        columns,
        [_cells(row, several=several) for row in rows],
    )
    said = [] if several else [best_in_words(rows[0])]
    if not several and target is not None:
        said.append(_sentence(rows[0]))
    for sentence in [*said, *_horizons(rows)]:
        say(sentence)


def _horizons(rows: list[dict[str, Any]]) -> list[str]:
    """Say how far the runs are forecast and why: each once, with the number of its runs."""
    alike: dict[str, int] = {}
    for row in rows:
        words = in_words(row) if len(rows) == 1 else reasons_in_words(row)
        alike[words] = alike.get(words, 0) + 1
    if len(alike) == 1:
        return list(alike)
    return [f"{counted(number, 'run')}: {words}" for words, number in alike.items()]


def _cells(row: dict[str, Any], *, several: bool) -> list[str]:
    cells = [
        row["run"],
        _words.count(row["observed_to"]),
        _words.count(row["at"]),
        *forecast_cells(row),
        row["status"],
    ]
    if several:
        cells.append(UNKNOWN if row["best"] is None else _words.percent(row["prob_best_past"]))
    return cells + (
        [_words.percent(row["probability"]), when(row)] if row["target"] is not None else []
    )


def _sentence(row: dict[str, Any]) -> str:
    """Say whether and when the target is reached."""
    target, chance = row["target"], _words.percent(row["probability"])
    if row["reach_q10"] == row["reach_q90"] <= row["observed_to"]:
        return f"reached {target:g} at step {_words.count(row['reach_q50'])}"
    if math.isfinite(row["reach_q50"]):
        return f"reaches {target:g} {when(row)}, {chance}"
    return f"reaches {target:g} by step {_words.count(row['at'])}: {chance}"
