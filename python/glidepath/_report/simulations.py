# SPDX-License-Identifier: Apache-2.0
"""The page of one workload under several policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp
from glidepath._answer import simulation_columns, simulation_keys, simulation_metrics, with_energy
from glidepath._pictures import series
from glidepath._report import figures
from glidepath._report.page import Figure, Page
from glidepath._results import counted

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
