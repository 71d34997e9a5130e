# SPDX-License-Identifier: Apache-2.0
"""The page of a set of runs: their forecasts and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import glidepath as gp
from glidepath import _words
from glidepath._answer import forecast_cells, when
from glidepath._hardware import JOULES_PER_KWH
from glidepath._horizon import Look, horizon, in_words, look, reasons_in_words
from glidepath._judge import rule
from glidepath._report import figures
from glidepath._report.page import Figure, Page
from glidepath._results import counted
from glidepath._verdicts import meaning


def write_runs(
    path: Path,
    traces: Sequence[gp.Trace],
    *,
    target: float | None = None,
    reached_by: str | None = None,
    budget: float | None = None,
    schedule: gp.Schedule | None = None,
    schedule_from: str | None = None,
    past: gp.PastRuns | None = None,
    hardware: gp.Metrics | None = None,
    title: str = "Training runs",
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Write the report of a set of runs; give the numbers of each, which the page embeds.

    With `hardware`, what the GPUs of the one run did from its beginning on, the page has the energy
    of its steps, and of the way to its horizon.

    Without a target, the value that every run should reach, only a run that diverged has a verdict;
    it is reached by the reading of `reach`. The budget, the last step allowed, is by default that
    of `horizon`, which knows the schedule, too; a run that is beyond it has spent it, as for
    `glidepath watch`. `past` are runs that ended, without those of the page. IoError when the
    page cannot be written, ImportError when plotly is missing.
    """
    if hardware is not None and len(traces) != 1:
        raise gp.InputError(f"a log of hardware is of one run, there are {len(traces)}: choose one")
    fans: dict[str, Figure] = {}
    rows: list[dict[str, Any]] = []
    for done, trace in enumerate(traces):
        if progress is not None:
            progress(done, len(traces))
        plan = horizon(trace, budget=budget, schedule=schedule, schedule_from=schedule_from)
        seen = look(trace, plan, target=target, reached_by=reached_by, past=past)
        known = 0 if past is None else len(past.runs)
        rows.append(seen.keys() | {"past_runs": known} | _verdict(seen, past))
        if hardware is not None:
            rows[-1] |= _energy(hardware, trace, rows[-1]["at"])
        fans[_title_of(trace, fans)] = figures.fan(
            seen.ahead, trace, target=target, metric=trace.metric
        )
    aim = "" if target is None else f" Target {target:g}."
    one = len(rows) == 1
    count, who = counted(len(rows), "run"), "it" if one else "each"
    page = Page(title, f"{count}, forecast from what {who} has logged.{aim}")
    _add_runs(page, rows)
    page.heading("Forecasts")
    page.grid(fans)
    if hardware is not None:
        page.heading("Hardware", f"{counted(len(hardware.gpus), 'GPU')} of {hardware.name}.")
        page.rows(
            {
                "run": lambda row: row["run"] or "run",
                "energy of a step": "{step_joules:.4g} J",
                "power": "{mean_watts:.4g} W",
                "energy so far": "{energy_kwh:.4g} kWh",
                "from here to the horizon": "{energy_ahead_kwh:.4g} kWh",
            },
            rows,
        )
        page.grid({f"{hardware.name}: power and loss": figures.hardware(hardware, traces[0])})
    page.write(path, rows)
    return rows


def _title_of(trace: gp.Trace, fans: Mapping[str, Figure]) -> str:
    """Give the picture of a run a title of its own: runs of several files may share a name."""
    name = title = trace.name or f"run {len(fans) + 1}"
    number = len(fans) + 1
    while title in fans:
        title, number = f"{name} ({number})", number + 1
    return title


def _add_runs(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add a table of what is expected of each run; what holds for all is said once, above it."""
    reasons = {reasons_in_words(row) for row in rows}
    same = reasons.pop() if len(reasons) == 1 and len(rows) > 1 else None
    page.heading("Runs", f"{same[0].upper()}{same[1:]}." if same else "")
    page.rows(
        {
            "run": lambda row: row["run"] or "run",
            "observed to": lambda row: _words.count(row["observed_to"]),
            "last value": "{loss:.4g}",
            "forecast, 80 % within": _forecast_in_words,
            **({} if same else {"horizon": in_words}),
            "status": "{status}",
            "verdict": lambda row: meaning(row["verdict"]).words,
            "why": "{reason}",
            "reaches its target": lambda row: "" if row["target"] is None else when(row),
            "ends": lambda row: "stop it" if row["stop"] else "",
        },
        rows,
    )


def _forecast_in_words(row: Mapping[str, Any]) -> str:
    median, within = forecast_cells(row)
    return median if row["median"] is None else f"{median} ({within}) at {_words.count(row['at'])}"


def _verdict(seen: Look, past: gp.PastRuns | None) -> dict[str, Any]:
    """Give the verdict on a run as keys of an answer, as `glidepath watch` does."""
    target = None if seen.reach is None else seen.reach.target
    found = rule(
        seen.seen,
        seen.horizon,
        target=target,
        past=past,
        reached_by=seen.reached_by,
        law=seen.reach,
    )
    verdict = found.decision.verdict
    return {"verdict": verdict, "reason": found.reason, "stop": found.stop}


def _energy(hardware: gp.Metrics, trace: gp.Trace, at: float) -> dict[str, float]:
    """Energy of a step, of the steps seen and of those ahead, of all GPUs together."""
    profile = hardware.profile(trace=trace)
    if profile.step_joules == 0:
        raise gp.InputError(f"{hardware.name} has neither power nor an energy counter")
    seen = float(trace.step[-1] - trace.step[0])
    return {
        "step_joules": profile.step_joules,
        "mean_watts": profile.step_joules / profile.step_seconds,
        "energy_kwh": profile.step_joules * seen / JOULES_PER_KWH,
        "energy_ahead_kwh": profile.step_joules
        * max(0.0, at - float(trace.step[-1]))
        / JOULES_PER_KWH,
    }
