# SPDX-License-Identifier: Apache-2.0
"""Rounds of the pilot and the story of a job, as text and as JSON."""

from __future__ import annotations

import math
import shlex
import time
from typing import TYPE_CHECKING, Any

from glidepath import _words
from glidepath._answer import SHOWN_LEVELS, decision_keys, quantile_keys, starts
from glidepath._verdicts import meaning
from glidepath.cli._console import say, shown, stdout

if TYPE_CHECKING:  # the pilot takes time to load, and `--help` does not need it
    from glidepath.engines.slurm import Event, JobView, Round


def document(result: Round) -> dict[str, Any]:
    """Give a round as JSON has it."""
    return {
        "at_s": result.at_s,
        "mode": result.mode,
        "trouble": result.trouble,
        "jobs": [_row(view) for view in result.views],
        "commands": [list(command) for command in result.commands],
        "results": [
            {"job": o.action.job.id, "kind": o.action.kind, "status": o.status, "said": o.detail}
            for o in result.outcomes
        ],
    }


def _row(view: JobView) -> dict[str, Any]:
    forecast, request = view.forecast, view.request
    levels = SHOWN_LEVELS if forecast.remaining else ()
    return {
        "job": view.job.id,
        "user": view.job.user,
        "run": view.job.name,
        "metric": forecast.metric or request.metric or None,
        "state": view.job.state,
        "tier": view.tier,
        "planned_tier": view.planned,
        "observed_to": forecast.last_step,
        "loss": forecast.last_value,
        **decision_keys(
            target=request.target,
            budget=request.budget,
            reached_by=forecast.reached_by,
            verdict=forecast.verdict,
            probability=forecast.probability,
            reason=view.reason or forecast.reason or forecast.problem,
            observed_to=forecast.last_step,
            reach=[forecast.last_step + forecast.quantile(level) for level in levels] or None,
        ),
        **quantile_keys("seconds", view.finish_s),
        **quantile_keys("starts", view.starts_s),
    }


def print_round(result: Round) -> None:
    """Print what was sent in a round, and what came of it."""
    clock = time.strftime("%H:%M:%S", time.localtime(result.at_s))
    say(f"{clock} {'! ' if result.trouble else ''}{result.summary}")
    for command in result.commands:
        say(f"    {shlex.join(command)}")
    for outcome in result.outcomes:
        if outcome.status != "done":
            say(f"    {outcome.status}: {outcome.action.job.id} {outcome.detail}")


def print_jobs(result: Round) -> None:
    """Print a table of the jobs of a round."""
    if not result.views:
        say('No jobs take part: submit some with --comment "glidepath target=… budget=…".')
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("job", "state", "tier", "starts", "step", "P(target)", "left", "verdict"):
        table.add_column(column, no_wrap=True)
    table.add_column("reason", min_width=24)
    for view in result.views:
        forecast = view.forecast
        moves = view.planned and view.planned != view.tier
        row = (
            view.job.id,
            view.job.state.lower(),
            f"{view.tier} → {view.planned}" if moves else view.tier,
            "" if view.starts_s is None else starts(view.starts_s),
            _words.count(forecast.last_step) if forecast.last_step else "",
            "" if math.isnan(forecast.probability) else _words.chance(forecast.probability, 2),
            _left(view),
            meaning(forecast.verdict).words,
            view.reason or forecast.problem,
        )
        table.add_row(*map(shown, row))
    console = stdout if stdout.is_terminal else Console(width=160)
    console.print(table)


def _left(view: JobView) -> str:
    """Write the time that a job still needs: median, and the 10 % and 90 % quantiles."""
    if view.finish_s is None:
        return ""
    return _words.between(*map(_words.duration, view.finish_s))


def story(events: list[Event]) -> list[str]:
    """Write the events of one job as lines."""
    lines = []
    for event in events:
        clock = time.strftime("%d %b %H:%M:%S", time.localtime(event.at_s))
        detail = event.detail or {}
        if event.kind == "forecast":
            odds = detail.get("probability")
            where = f"{detail['state'].lower()} on {detail['tier'] or 'no tier'}"
            seen = detail["observed_to"]
            what = f"step {_words.count(seen)}" if seen else "no log yet"
            if odds is not None:
                what += f", P(target) {_words.chance(odds, 2)}, {meaning(detail['verdict']).words}"
            lines.append(f"{clock}  {where}: {what}; {event.why}")
        elif event.phase in ("intended", "advised"):
            lines.append(f"{clock}  {event.phase} {event.kind}: {event.why}")
            lines.append(f"{'':17}$ {event.command}")
        else:
            said = f": {detail['said']}" if "said" in detail else ""
            lines.append(f"{clock}  {event.phase} {event.kind}{said}")
    return lines
