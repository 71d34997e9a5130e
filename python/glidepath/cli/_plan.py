# SPDX-License-Identifier: Apache-2.0
"""`glidepath plan`: the plan of one moment of a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath import _core, _words
from glidepath._answer import quantile_keys
from glidepath._answer import starts as words
from glidepath._core import PlanOptions
from glidepath._simulate import policy_named
from glidepath.cli._console import ANSWER, WARNING, emit, print_table, progress, say, stderr
from glidepath.cli._inputs import open_workload
from glidepath.cli._options import (
    Gpus,
    Json,
    Planner,
    Plot,
    ReachedBy,
    Seed,
    Users,
    check_seed,
    numbers_by_name,
    planner_options,
    was_typed,
)
from glidepath.cli._outputs import check_plot, save

_Objective = Annotated[
    str,
    typer.Option(
        metavar="NAME,…",
        help="What the plan maximises; of several a later one chooses among the best by those"
        " before it, and NAME:WEIGHT,… are added.",
    ),
]
_InNodes = Annotated[
    bool, typer.Option("--in-nodes", help="Gangs sit on as few nodes as they need.")
]
_OF_A_WORKLOAD = ("at_h", "users", "seed", "gpus", "sharing", "pairs")


def plan(
    context: typer.Context,
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD", help="A workload folder, or a CSV of your own jobs and their logs."
        ),
    ],
    at_h: Annotated[
        float,
        typer.Option(
            metavar="HOURS",
            help="Moment to plan: the first decision from then on of best_value, which makes those"
            " before, too.",
        ),
    ] = 12.0,
    users: Users = None,
    seed: Seed = 0,
    gpus: Gpus = None,
    objective: _Objective = "jct",
    sharing: Annotated[
        str,
        typer.Option(metavar="NAME", help="How jobs may share GPUs: exclusive, naive, mps or mig."),
    ] = "exclusive",
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A CSV of measured pairs of job classes.")
    ] = None,
    tiers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The GPUs for a CSV of jobs: a tiers.csv."),
    ] = None,
    in_nodes: _InNodes = False,
    planner: Planner = None,
    reached_by: ReachedBy = None,
    plot: Plot = None,
    as_json: Json = False,
) -> int:
    """Show the plan of one moment: who runs where, who waits, who ends, and why.

    A CSV of jobs has the columns job, log, target and perhaps budget, gpus, steps_per_s_TIER (else
    the pace of the log), metric, run, user, priority, weight, deadline_s, hardware (a log of
    nvidia-smi, DCGM ... from which comes how busy it keeps a GPU, and its memory).
    """
    check_plot("--plot", plot, workload, tiers, pairs)
    limits = _limits(planner or (), in_nodes=in_nodes)
    if workload.is_file() and workload.suffix == ".csv" and (gpus is None or tiers is not None):
        if tiers is None:
            raise gp.InputError(f"{workload}: say with --tiers FILE which GPUs there are")
        for name in _OF_A_WORKLOAD:
            if was_typed(context, name):
                option = f"--{name.replace('_', '-')}"
                raise gp.InputError(f"{option} is for a workload, {workload} has jobs of your own")
        return _plan_own(workload, tiers, reached_by, objective, limits, plot, as_json=as_json)
    for option, given in (("--tiers", tiers), ("--reached-by", reached_by)):
        if given is not None:
            raise gp.InputError(f"{option}: {workload} is no CSV of jobs")
    if not at_h >= 0.0:
        raise gp.InputError(f"--at-h is {at_h:g}, expected 0 hours or more")
    check_seed(context, drawn=users is not None, options="--users")
    goals = _objectives(objective)
    measured = None if pairs is None else gp.learn_pairs(gp.read_pairs(pairs))
    drawn = open_workload(workload, users, seed, gpus)
    with progress("planning"):
        snapshot = _snapshot_at(drawn, at_h)
        planned = gp.plan(snapshot, objective=goals, sharing=sharing, pairs=measured, **limits)
        plain = objective == "jct" and sharing == "exclusive" and not limits
        starts = _starts(snapshot, planned) if plain else {}
    _say_fallback(planned)
    if plot is not None:
        save(lambda ax: planned.plot(ax=ax), plot)
    rows = [
        {"job": str(job.id), "user": job.user, **row, "reason": planned.reasons.get(job.id, "")}
        for job, row in zip(snapshot.jobs, _placed(snapshot, planned, starts), strict=True)
    ]
    if as_json:
        emit(_document(snapshot, planned, rows))
    else:
        _print_jobs(drawn, snapshot, planned, rows)
        _print_prices(drawn, planned)
    return ANSWER


def _objectives(text: str) -> dict[str, float] | list[str] | str:
    """Read ``--objective`` as ``--planner objective=`` of `glidepath simulate` is read."""
    return numbers_by_name(text) or (text.split(",") if "," in text else text)


_FLAGS = ("objective", "sharing", "pairs", "in_nodes")  # of gp.plan, by names of their own


def _limits(given: Sequence[str], *, in_nodes: bool) -> dict[str, Any]:
    """Read ``--planner``, and ``--in-nodes`` beside it."""
    names = [text.partition("=")[0] for text in given]
    for name in _FLAGS:
        if name in names:
            flag = name.replace("_", "-")
            raise gp.InputError(f"--planner: {name}, say --{flag} in its place")
    try:
        limits = planner_options(given) or {}
    except gp.InputError as error:  # which checks them as options of a simulation
        raise gp.InputError(str(error).replace("simulate: planner", "--planner", 1)) from None
    if "group_quota" in limits:
        raise gp.InputError("--planner: group_quota, these jobs have no groups")
    return limits | ({"in_nodes": True} if in_nodes else {})


def _say_fallback(planned: gp.Plan) -> None:
    if planned.fallback:
        say(f"learned: planned by jct: {planned.fallback}", to=stderr)


def _plan_own(
    path: Path,
    tiers: Path,
    reached_by: str | None,
    objective: str,
    limits: dict[str, Any],
    plot: Path | None,
    *,
    as_json: bool,
) -> int:
    """Plan the jobs of a file."""
    from glidepath.cli._plan_jobs import outlook_in_words, read_jobs

    there, notes = _core.read_tiers(tiers)
    for note in notes:
        say(note, to=stderr)
    jobs = read_jobs(path, there, reached_by=reached_by)
    if "stop_probability" in limits:
        raise gp.InputError(f"--planner: stop_probability, the logs of {path} decide who ends")
    goals = _objectives(objective)
    planned = gp.plan(jobs.snapshot, objective=goals, stop_probability=1.0, **limits)
    _say_fallback(planned)
    if plot is not None:
        save(lambda ax: planned.plot(ax=ax), plot)
    starts = _starts(jobs.snapshot, planned) if objective == "jct" and not limits else {}
    rows: list[dict[str, Any]] = [
        {
            "job": jobs.names[job.id],
            "user": job.user,
            **row,
            **jobs.outlooks[job.id],
            "reason": jobs.endings.get(job.id) or planned.reasons.get(job.id, ""),
        }
        for job, row in zip(
            jobs.snapshot.jobs, _placed(jobs.snapshot, planned, starts), strict=True
        )
    ]
    rows += [
        {
            "job": name,
            "user": None,
            "state": "refused",
            **_NOWHERE,
            **quantile_keys("starts", None),
            "reason": reason,
        }
        for name, reason in jobs.refused.items()
    ]
    if as_json:
        emit(_document(jobs.snapshot, planned, rows))
    else:
        print_table(
            f"{path.name}: {planned._summary()}",
            ("job", "GPUs", "starts", "reaches its target", "why"),
            [
                (
                    row["job"],
                    _place_cell(row),
                    _start_cell(row),
                    outlook_in_words(row) if "probability" in row else "",
                    row["reason"],
                )
                for row in rows
            ],
        )
    return WARNING if jobs.refused else ANSWER


_NOWHERE: dict[str, Any] = {"tier": None, "gpus": None, "since_s": None, "partner": None}


def _placed(snapshot: gp.Snapshot, planned: gp.Plan, starts: _Starts) -> list[dict[str, Any]]:
    """Say of each job what it gets, as keys of an answer."""
    held = {a.job: a for a in planned.allocations}
    rows = []
    for job in snapshot.jobs:
        row = {"state": "ends" if job.id in planned.stop else "waits", **_NOWHERE}
        if job.id in held:
            a = held[job.id]
            row = {
                "state": "runs",
                "tier": snapshot.tiers[a.tier].name,
                "gpus": a.gpus,
                "since_s": a.since_s,
                "partner": str(a.partner) if a.partner >= 0 else None,
            }
        rows.append(row | quantile_keys("starts", starts.get(job.id)))
    return rows


def _place_cell(row: Mapping[str, Any]) -> str:
    if row["state"] == "runs":
        return f"{row['gpus']} {row['tier']}"
    return "none" if row["state"] == "refused" else str(row["state"])


_Starts = dict[int, tuple[float, ...]]


def _starts(snapshot: gp.Snapshot, planned: gp.Plan) -> _Starts:
    """Say when the jobs that a plan by plain jct lets wait will start: it is played forward."""
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
    return words([row[key] for key in keys]) if row.get(keys[0]) is not None else ""


class _Reached(Exception):  # noqa: N818 - an event, not an error
    """The simulation has come to the moment to plan."""


def _snapshot_at(workload: gp.Workload, at_h: float) -> gp.Snapshot:
    """Run a workload under the planner; give what it sees at its first decision from then on."""
    seen: list[gp.Snapshot] = []

    def watch(snapshot: gp.Snapshot) -> gp.Plan:
        seen[:] = [snapshot]
        if snapshot.now_s >= at_h * 3600.0:
            raise _Reached
        return gp.plan(snapshot, reasons=False)

    try:
        # The sessions of the planner, and the rounds that its plans are for.
        gp.simulate(
            workload,
            watch,
            round_s=PlanOptions().round_s,
            session_s=policy_named("best_value").session_s,
            stop_at_target=True if workload.curves else None,
        )
    except _Reached:
        return seen[0]
    raise gp.InputError(f"--at-h {at_h:g}: the last job of {workload.name} has ended by then")


def _document(
    snapshot: gp.Snapshot, planned: gp.Plan, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    names = [tier.name for tier in snapshot.tiers]
    return {
        "at_s": snapshot.now_s,
        "value": planned.value,
        "bound": planned.bound,
        "gap": planned.gap,
        "prices": dict(zip(names, planned.prices, strict=True)),
        "jobs": rows,
    }


def _whole(steps: float) -> str:
    return _words.count(float(f"{steps:.0f}"))


def _steps(job: gp.Job) -> str:
    """Say the steps of a job so far; of how many, where it has a budget."""
    end = f" of {_whole(job.budget_steps)}" if job.budget_steps else ""
    return _whole(job.steps_done) + end


def _print_jobs(
    workload: gp.Workload, snapshot: gp.Snapshot, planned: gp.Plan, rows: list[dict[str, Any]]
) -> None:
    jobs = sorted(
        zip(snapshot.jobs, rows, strict=True),
        key=lambda each: (each[1]["state"] == "waits", each[0].id),
    )
    print_table(
        f"{workload.name} at {snapshot.now_s / 3600:.1f} h: {planned._summary()}",
        ("job", "user", "GPUs", "starts", "steps", "why"),
        (
            (
                row["job"],
                job.user,
                _place_cell(row),
                _start_cell(row),
                _steps(job),
                row["reason"],
            )
            for job, row in jobs
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
