# SPDX-License-Identifier: Apache-2.0
"""The pages: a set of runs, one workload under several policies, a study of loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp
from glidepath._answer import (
    forecast_cells,
    simulation_columns,
    simulation_keys,
    simulation_metrics,
    when,
    with_energy,
)
from glidepath._hardware import JOULES_PER_KWH
from glidepath._horizon import Look, horizon, in_words, look, reasons_in_words
from glidepath._judge import rule
from glidepath._pictures import series
from glidepath._report import figures
from glidepath._report.page import Figure, Page
from glidepath._results import counted
from glidepath._verdicts import meaning

OBSERVED_SHARE = 0.3  # of each curve in the forecast pictures of a simulation's report
_FANS = 4  # of its curves that are forecast
_BARS = ("total wait h", "mean JCT h", "GPU-hours", "kWh")


def write_simulations(
    path: Path,
    simulations: Sequence[gp.Simulation],
    workload: gp.Workload,
    asked: Sequence[str] = (),
) -> None:
    """Write the report of one workload under several policies.

    `asked` are options of `simulate` that ask for a metric, such as `carbon_g_per_kwh`.
    IoError when the page cannot be written, ImportError when plotly is missing.
    """
    tiers = ", ".join(f"{tier.gpus} {tier.name}" for tier in workload.tiers)
    lead = (
        f"{counted(len(workload), 'job')} on {tiers}. Times in hours; a wait is the time a job "
        "holds no GPU; energy counts idle GPUs until the last job ends."
    )
    page = Page(f"{workload.name}: {counted(len(simulations), 'policy')}", lead)
    rows = [with_energy(simulation_keys(each)) for each in simulations]
    _add_metrics(page, rows, asked)
    page.heading(
        "Who held which GPU",
        "One row per GPU, one colour per job; which GPU of a tier is chosen for the picture.",
    )
    page.tabs("Gantt chart", {s.policy: figures.gantt(s) for s in simulations})
    _add_times(page, simulations, sum(tier.gpus for tier in workload.tiers))
    forecasts = _forecasts(workload)
    if forecasts:
        page.heading(
            "What the forecasts see",
            f"Runs of this workload, forecast from their first {OBSERVED_SHARE:.0%} of points; "
            "no policy sees the dotted rest.",
        )
        page.grid(forecasts)
    page.write(path, rows)


def _add_metrics(page: Page, rows: Sequence[Mapping[str, Any]], asked: Sequence[str]) -> None:
    """Add a table of the metrics, and bars of the main ones."""
    page.heading("Policies")
    page.rows(
        simulation_columns(asked),
        rows,
        best=min(range(len(rows)), key=lambda i: rows[i]["mean_jct_s"]),
    )
    page.grid(
        {
            heading: figures.bars({row["policy"]: row[metric] / divisor for row in rows})
            for heading, (metric, divisor, _) in simulation_metrics().items()
            if heading in _BARS and all(row[metric] is not None for row in rows)
        }
    )


def _add_times(page: Page, simulations: Sequence[gp.Simulation], gpus: int) -> None:
    """Add the distribution of completion times, and the use of the GPUs."""
    page.heading("Job completion times and use of the GPUs")
    done = {s.policy: s.jct_cdf() for s in simulations}
    busy = {s.policy: series.busy_gpus(s.spans) for s in simulations}
    page.grid(
        {
            "Jobs completed within a time": figures.steps(
                {name: (x / 3600, y) for name, (x, y) in done.items()}, "hours", "share of jobs"
            ),
            "GPUs held over time": figures.steps(
                {name: (x / 3600, y / max(gpus, 1)) for name, (x, y) in busy.items()},
                "hours",
                "share of GPUs",
            ),
        }
    )


_STUDY_COLUMNS = (
    ("total wait, h", "total_wait_s", 3600.0),
    ("wait per user, h", "mean_wait_per_user_s", 3600.0),
    ("mean JCT, h", "mean_jct_s", 3600.0),
    ("GPUs in use, %", "utilization", 0.01),
    ("energy, kWh", "energy_kwh", 1.0),
)
_ARMS = (
    ("overfitting", "With retraining to overfitting"),
    ("interrupted", "With interruption at the target"),
    ("uninterrupted", "Without interruption"),
)


def write_study(
    path: Path,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    factors: Sequence[Mapping[str, Any]],
    shown: int,
    charts: Mapping[str, gp.Simulation],
) -> None:
    """Write the study of loads: tables, pictures over the load, Gantt charts of one draw."""
    page = Page(
        f"{name}: how much forecasts are worth, by load",
        "Policies of DARE-ML's experiment and ours on the same users, with recorded loss curves. "
        "Retraining to overfitting: policies that do not watch losses run every job to its budget. "
        "With interruption: every policy ends a job at its target. Without: none does.",
    )
    _add_factors(page, factors)
    for arm, title in _ARMS:
        _add_arm(page, title, [row for row in rows if row["arm"] == arm])
    page.heading("Who held which GPU", f"{shown} users of seed 0; one row per GPU.")
    page.tabs("Gantt chart", {title: figures.gantt(run) for title, run in charts.items()})
    page.write(path, {"rows": list(rows), "factors": list(factors)})


def _add_factors(page: Page, factors: Sequence[Mapping[str, Any]]) -> None:
    page.heading(
        "Are the reported factors reached?",
        "Reported: 15 % less JCT without interruption; with it up to 80 times less wait and JCT "
        "and 83 times less energy than Baseline FIFO. Ours is the better of dare and best_value; "
        "Baseline FIFO retrains to overfitting.",
    )
    page.rows(
        {
            "users": "{users}",
            "JCT / fifo without interruption": "{without_interruption:.2f}",
            "wait: times less": "{wait:.1f}",
            "JCT: times less": "{JCT:.1f}",
            "energy: times less": "{energy:.1f}",
            "reached": "{reached}",
        },
        factors,
    )


def _add_arm(page: Page, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add pictures and table of one arm of the study."""
    loads = list(dict.fromkeys(row["users"] for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    found = {(row["users"], row["policy"]): row for row in rows}
    page.heading(title, "Mean over seeds and half of the 95 % interval.")
    page.grid(
        {
            label: figures.lines(
                {
                    policy: [found[load, policy][metric] / unit for load in loads]
                    for policy in policies
                },
                loads,
                label,
            )
            for label, metric, unit in _STUDY_COLUMNS
        }
    )

    def mean(metric: str, unit: float) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: f"{row[metric] / unit:.4g} ± {row[f'{metric}_ci'] / unit:.2g}"

    page.rows(
        {
            "users": "{users}",
            "policy": "{policy}",
            **{label: mean(metric, unit) for label, metric, unit in _STUDY_COLUMNS},
            "preemptions": "{preemptions:.0f}",
        },
        [found[load, policy] for load in loads for policy in policies],
    )


def _forecasts(workload: gp.Workload) -> dict[str, Figure]:
    """Fan charts of the first jobs whose curves differ."""
    jobs = workload.jobs
    if "truth" not in jobs or not workload.curves:
        return {}
    curves = workload.curves
    fans: dict[str, Figure] = {}
    for truth, target in zip(jobs["truth"], jobs["target_loss"], strict=True):
        if truth < 0 or len(fans) == _FANS:
            continue
        curve = curves[int(truth)]
        points = max(4, round(OBSERVED_SHARE * len(curve)))
        if curve.name in fans or len(curve) <= points + 1:
            continue
        seen = curve.until(float(curve.step[points - 1]))
        ahead = gp.forecast(
            seen, np.geomspace(curve.step[points], curve.step[-1], min(40, len(curve) - points))
        )
        later = gp.Trace(curve.step[points:], curve.loss[points:])
        fans[curve.name] = figures.fan(ahead, seen, later=later, target=float(target))
    return fans


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
            "observed to": lambda row: series.count(row["observed_to"]),
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
    return median if row["median"] is None else f"{median} ({within}) at {series.count(row['at'])}"


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
