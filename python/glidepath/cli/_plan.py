# SPDX-License-Identifier: Apache-2.0
"""`glidepath plan`: the plan of one moment of a workload."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath._answer import quantile_keys
from glidepath._answer import starts as words
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    Gpus,
    Json,
    Plot,
    ReachedBy,
    Seed,
    Users,
    emit,
    open_workload,
    print_table,
    progress,
    save,
)

_ROUND_S, _SESSION_S = 360.0, 300.0  # of the simulation that leads to the moment


def plan(
    workload: Annotated[
        Path, typer.Argument(help="A workload folder, or a CSV of your own jobs and their logs.")
    ],
    at_h: Annotated[
        float, typer.Option(metavar="HOURS", help="Moment to plan; before it, best_value decides.")
    ] = 12.0,
    users: Users = None,
    seed: Seed = 0,
    gpus: Gpus = None,
    objective: Annotated[
        str,
        typer.Option(help="What the plan maximises; several in order of weight: deadline,jct."),
    ] = "jct",
    sharing: Annotated[
        str, typer.Option(help="How jobs may share GPUs: exclusive, naive, mps or mig.")
    ] = "exclusive",
    pairs: Annotated[
        Path | None, typer.Option(help="A CSV of measured pairs of job classes.")
    ] = None,
    tiers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The GPUs for a CSV of jobs: a tiers.csv."),
    ] = None,
    reached_by: ReachedBy = None,
    plot: Plot = None,
    as_json: Json = False,
) -> int:
    """Show the plan of one moment: who runs where, who waits, who ends, and why.

    A CSV of jobs has the columns job, log, target and perhaps budget, gpus, steps_per_s_TIER (else
    the pace of the log), metric, curve, user, priority, weight, deadline_s.
    """
    if workload.is_file() and workload.suffix == ".csv" and gpus is None:
        return _plan_own(workload, tiers, reached_by, objective.split(","), plot, as_json=as_json)
    for option, given in (("--tiers", tiers), ("--reached-by", reached_by)):
        if given is not None:
            raise gp.InputError(f"{option}: {workload} is no CSV of jobs")
    if math.isnan(at_h):
        raise gp.InputError(f"--at-h {at_h:g} is no hour")
    measured = None if pairs is None else gp.learn_pairs(gp.read_pairs(pairs))
    drawn = open_workload(workload, users, seed, gpus)
    with progress("planning"):
        snapshot = _snapshot_at(drawn, at_h)
        planned = gp.plan(snapshot, objective=objective.split(","), sharing=sharing, pairs=measured)
        starts = _starts(snapshot, planned, objective, sharing)
    if plot is not None:
        save(lambda ax: planned.plot(ax=ax), plot)
    if as_json:
        emit(_document(snapshot, planned, [tier.name for tier in drawn.tiers], starts))
    else:
        _print_jobs(drawn, snapshot, planned, starts)
        _print_prices(drawn, planned)
    return ANSWER


def _plan_own(
    path: Path,
    tiers: Path | None,
    reached_by: str | None,
    objective: list[str],
    plot: Path | None,
    *,
    as_json: bool,
) -> int:
    """Plan the jobs of a file."""
    from glidepath.cli._plan_jobs import read_jobs, read_tiers

    if tiers is None:
        raise gp.InputError(f"{path}: say with --tiers FILE which GPUs there are")
    found = read_tiers(tiers)
    jobs = read_jobs(path, found, reached_by=reached_by)
    planned = gp.plan(jobs.snapshot, objective=objective)
    if plot is not None:
        save(lambda ax: planned.plot(ax=ax), plot)
    state = _states(planned, found)
    starts = _starts(jobs.snapshot, planned, ",".join(objective), "exclusive")
    rows: list[dict[str, Any]] = [
        {
            "job": name,
            "gpus": state.get(index, "waits"),
            **quantile_keys("starts", starts.get(index)),
            **jobs.outlooks[index],
            "reason": planned.reasons.get(index, ""),
        }
        for index, name in jobs.names.items()
    ]
    rows += [
        {"job": name, "gpus": "none", "forecast": None, "reason": reason}
        for name, reason in jobs.refused.items()
    ]
    if as_json:
        emit({"value": planned.value, "bound": planned.bound, "gap": planned.gap, "jobs": rows})
    else:
        print_table(
            f"{path.name}: {planned!r}",
            ("job", "GPUs", "starts", "reaches its target", "why"),
            [
                (
                    row["job"],
                    row["gpus"],
                    _start_cell(row),
                    row["forecast"] or "",
                    row["reason"],
                )
                for row in rows
            ],
        )
    return WARNING if jobs.refused else ANSWER


def _states(planned: gp.Plan, tiers: list[gp.Tier]) -> dict[int, str]:
    """Say of each job that does not wait what it gets."""
    placed = {a.job: f"{a.gpus} {tiers[a.tier].name}" for a in planned.allocations}
    return dict.fromkeys(planned.stop, "ends") | placed


_Starts = dict[int, tuple[float, ...]]


def _starts(snapshot: gp.Snapshot, planned: gp.Plan, objective: str, sharing: str) -> _Starts:
    """Say when the jobs that a plan lets wait will start, where the rule can be played forward."""
    if objective != "jct" or sharing != "exclusive":
        return {}
    ended = set(planned.stop)
    after = gp.Snapshot(
        snapshot.tiers,
        [job for job in snapshot.jobs if job.id not in ended],
        running=planned.allocations,
        now_s=snapshot.now_s,
    )
    times = gp.start_times(after)
    return dict(zip(times.job.tolist(), map(tuple, times.quantiles.T.tolist()), strict=True))


def _start_cell(row: Mapping[str, Any]) -> str:
    keys = ("starts_q10", "starts_q50", "starts_q90")
    return words([row[key] for key in keys]) if keys[0] in row else ""


class _Reached(Exception):  # noqa: N818 - an event, not an error
    """The simulation has come to the moment to plan."""


def _snapshot_at(workload: gp.Workload, at_h: float) -> gp.Snapshot:
    """Run a workload under the planner until a moment; give what it sees then."""
    seen: list[gp.Snapshot] = []

    def watch(snapshot: gp.Snapshot) -> gp.Plan:
        seen[:] = [snapshot]
        if snapshot.now_s >= at_h * 3600.0:
            raise _Reached
        return gp.plan(snapshot, reasons=False)

    try:
        gp.simulate(workload, watch, round_s=_ROUND_S, session_s=_SESSION_S, stop_at_target=True)
    except _Reached:
        return seen[0]
    raise gp.InputError(f"--at-h {at_h:g}: the last job of {workload.name} has ended by then")


def _document(
    snapshot: gp.Snapshot, planned: gp.Plan, tiers: list[str], starts: _Starts
) -> dict[str, Any]:
    return {
        "now_s": snapshot.now_s,
        "value": planned.value,
        "bound": planned.bound,
        "gap": planned.gap,
        "prices": dict(zip(tiers, planned.prices, strict=True)),
        "allocations": [
            {
                "job": a.job,
                "tier": tiers[a.tier],
                "gpus": a.gpus,
                "since_s": a.since_s,
                "partner": a.partner if a.partner >= 0 else None,
            }
            for a in planned.allocations
        ],
        "stop": list(planned.stop),
        "starts": {job: quantile_keys("starts", times) for job, times in starts.items()},
        "reasons": dict(planned.reasons),
    }


def _print_jobs(
    workload: gp.Workload, snapshot: gp.Snapshot, planned: gp.Plan, starts: _Starts
) -> None:
    state = _states(planned, workload.tiers)
    jobs = sorted(snapshot.jobs, key=lambda job: (job.id not in state, job.id))
    print_table(
        f"{workload.name} at {snapshot.now_s / 3600:.1f} h: {planned!r}",
        ("job", "user", "GPUs", "starts", "steps", "why"),
        (
            (
                str(job.id),
                job.user,
                state.get(job.id, "waits"),
                words(starts[job.id]) if job.id in starts else "",
                f"{job.steps_done:.0f} of {job.budget_steps:.0f}",
                planned.reasons.get(job.id, ""),
            )
            for job in jobs
        ),
    )


def _print_prices(workload: gp.Workload, planned: gp.Plan) -> None:
    print_table(
        "Prices",
        ("tier", "GPUs", "value of one more GPU-hour"),
        (
            (tier.name, str(tier.gpus), f"{3600.0 * price:.4g}")
            for tier, price in zip(workload.tiers, planned.prices, strict=True)
        ),
    )
