# SPDX-License-Identifier: Apache-2.0
"""`glidepath simulate`: a workload under one policy or several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import glidepath as gp
from glidepath._answer import (
    ASKED_METRICS,
    UNKNOWN,
    simulation_columns,
    simulation_keys,
    simulation_metrics,
    with_energy,
)
from glidepath._arguments import refuse_twice
from glidepath._core import SimulationOptions
from glidepath._results import counted
from glidepath._simulate import options_by_policy, policy_named
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    emit,
    print_rows,
    print_table,
    progress,
    say,
    stderr,
)
from glidepath.cli._inputs import open_workload
from glidepath.cli._options import (
    Gpus,
    Json,
    Planner,
    Seed,
    Users,
    check_seed,
    planner_options,
    was_typed,
)
from glidepath.cli._outputs import check_page

_COMPARED = tuple(policy.name for policy in gp.policies() if policy.compared)


def simulate(
    context: typer.Context,
    workload: Annotated[
        Path, typer.Argument(metavar="WORKLOAD", help="A workload folder, or a log of jobs.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="A policy, such as fifo or dare; may be repeated; default: best_value.",
            autocompletion=lambda: list(gp.POLICIES),
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help=f"The policies {', '.join(_COMPARED)}.")
    ] = False,
    users: Users = None,
    seed: Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Repeat with this many seeds of users, forecast errors and failures: means and"
            " 95 % intervals.",
        ),
    ] = 1,
    gpus: Gpus = None,
    restart_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time without progress at each restart.")
    ] = 0.0,
    session_s: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Length of a session; default: the policy's own."),
    ] = None,
    round_s: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Also decide every so often; default: the policy's own."
        ),
    ] = None,
    stop_at_target: Annotated[
        bool | None,
        typer.Option(
            "--stop-at-target/--no-stop-at-target",
            help="Whether every policy ends a job at its target; default: as the policy does.",
        ),
    ] = None,
    forecast_sigma: Annotated[
        float | None,
        typer.Option(
            metavar="SIGMA",
            min=0.0,
            help="Error of what policies see of the durations of jobs without a curve.",
        ),
    ] = None,
    knows_phases: Annotated[
        bool,
        typer.Option(
            "--knows-phases/--no-knows-phases",
            help="Whether policies know how fast jobs with phases will be.",
        ),
    ] = True,
    in_nodes: Annotated[
        bool, typer.Option("--in-nodes", help="Gangs sit on as few nodes as they need.")
    ] = False,
    gpus_per_node: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="GPUs of a node, for a log of jobs.")
    ] = None,
    sharing: Annotated[
        str,
        typer.Option(metavar="NAME", help="How plans may pair jobs: exclusive, naive, mps or mig."),
    ] = "exclusive",
    user_gpus: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="GPUs that one user may hold, under slurm_backfill and policies that plan.",
        ),
    ] = None,
    planner: Planner = None,
    max_ftf: Annotated[
        float | None,
        typer.Option(
            metavar="RHO",
            help="fair_finish: the finish-time fairness at which a job goes before all others;"
            " default: 2.",
        ),
    ] = None,
    long_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="fair_finish: share of the GPUs for the longest jobs; default: 0."
        ),
    ] = None,
    patience: Annotated[
        bool,
        typer.Option(
            "--patience/--no-patience",
            help="Whether jobs wait for GPUs that soon come free, where restarts cost time.",
        ),
    ] = True,
    unfair_above: Annotated[
        float, typer.Option(metavar="RHO", help="Finish-time fairness that counts as unfair.")
    ] = SimulationOptions().unfair_above,
    node_every_h: Annotated[
        float | None,
        typer.Option(metavar="HOURS", help="A node fails every so often: mean time that it is up."),
    ] = None,
    repair_min: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Time that a node that failed is out; default: 60."),
    ] = None,
    job_every_h: Annotated[
        float | None,
        typer.Option(metavar="HOURS", help="A job crashes every so often: mean running time."),
    ] = None,
    checkpoint_min: Annotated[
        float,
        typer.Option(
            metavar="MINUTES", help="Time between checkpoints; 0 = a failure loses no work."
        ),
    ] = 0.0,
    sleep_after_min: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="A node that nobody uses goes to sleep after this."),
    ] = None,
    sleep_watts: Annotated[
        float, typer.Option(metavar="WATTS", help="What a GPU asleep draws.")
    ] = 0.0,
    wake_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="What a start on a node asleep waits.")
    ] = 0.0,
    carbon_g_per_kwh: Annotated[
        float | None, typer.Option(metavar="GRAMS", help="CO2 for each kWh of electricity.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one interactive HTML page.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run a workload to its end under one policy, or compare several."""
    if policy and compare:
        raise gp.InputError("--compare names its own policies: leave --policy out")
    refuse_twice("--policy", policy or ())
    fails = node_every_h is not None or job_every_h is not None
    if checkpoint_min and not fails:
        raise gp.InputError("--checkpoint-min is for failures: say --node-every-h or --job-every-h")
    if repair_min is not None and node_every_h is None:
        raise gp.InputError("--repair-min is for nodes that fail: say --node-every-h")
    if (sleep_watts or wake_s) and sleep_after_min is None:
        option = "--sleep-watts" if sleep_watts else "--wake-s"
        raise gp.InputError(f"{option} is for nodes that sleep: say --sleep-after-min")
    policies = list(policy or (_COMPARED if compare else ["best_value"]))
    drawn = fails or bool(users or forecast_sigma) or any(map(_draws, policies))
    check_seed(
        context, drawn=drawn, options="--users, --forecast-sigma, --node-every-h or --job-every-h"
    )
    options: dict[str, Any] = {
        "restart_s": restart_s,
        "session_s": session_s,
        "round_s": round_s,
        "stop_at_target": stop_at_target,
        "failures": {
            "node_every_s": 3600 * node_every_h if node_every_h is not None else math.inf,
            "job_every_s": 3600 * job_every_h if job_every_h is not None else math.inf,
            "checkpoint_s": 60 * checkpoint_min,
        }
        | ({} if repair_min is None else {"repair_s": 60 * repair_min}),
        "sleep": None
        if sleep_after_min is None
        else {"after_s": 60 * sleep_after_min, "watts": sleep_watts, "wake_s": wake_s},
        "carbon_g_per_kwh": carbon_g_per_kwh,
        "forecast_sigma": forecast_sigma,
        "knows_phases": knows_phases,
        "in_nodes": in_nodes,
        "sharing": sharing,
        "user_gpus": user_gpus,
        "planner": planner_options(planner or ()),
        "max_ftf": max_ftf,
        "long_share": long_share,
        "patience": patience,
        "unfair_above": unfair_above,
    }
    check_page("--report", report, workload)
    if seeds > 1:
        if report is not None:
            raise gp.InputError("--report shows one seed: leave --seeds out")
        jobs = open_workload(workload, users, seed, gpus, gpus_per_node)
        source = (lambda each: open_workload(workload, users, each, gpus)) if users else jobs
        drawn_from = range(seed, seed + seeds)
        who = counted(users, "user") if users else counted(len(jobs), "job")
        title = f"{workload.name}: {who}, seeds {drawn_from.start} to {drawn_from.stop - 1}"
        asked = _asked(context, jobs)
        return _compare_seeds(source, policies, drawn_from, title, options, asked, as_json=as_json)
    jobs = open_workload(workload, users, seed, gpus, gpus_per_node)
    results = _results(jobs, policies, seed, options)
    return show(results, jobs, report, _asked(context, jobs), seed=seed, as_json=as_json)


def _asked(context: typer.Context, jobs: gp.Workload) -> list[str]:
    """Name the options that were typed and the columns of jobs that ask for a metric."""
    there = {"deadline_s": bool(np.isfinite(jobs.jobs["deadline_s"]).any())}
    return [name for name in ASKED_METRICS if there.get(name) or was_typed(context, name)]


def _draws(policy: str) -> bool:
    """Whether a policy itself draws: those that play in rounds draw the order of equals."""
    return policy in gp.POLICIES and policy_named(policy).round_s is not None


def show(
    results: Sequence[gp.Simulation],
    workload: gp.Workload,
    report: Path | None,
    asked: Sequence[str] = (),
    *,
    seed: int,
    as_json: bool,
) -> int:
    """Print results, write their page where one is named, and give the exit code."""
    if report is not None:
        from glidepath import _report

        _report.write_simulations(report, results, workload, asked)
    rows = [with_energy(simulation_keys(result, seed=seed)) for result in results]
    if as_json:
        emit(rows)
    else:
        for result in results:
            if result.fallback:
                say(f"{result.policy}: {result.fallback}", to=stderr)
        tiers = ", ".join(
            counted(tier.gpus, "GPU") if tier.name == "gpu" else f"{tier.gpus} {tier.name}"
            for tier in workload.tiers  # the one of a trace is called gpu
        )
        title = f"{workload.name}: {counted(len(workload), 'job')} on {tiers}"
        print_rows(title, simulation_columns(asked), rows)
        if report is not None:
            say(f"Report: {report}")
    return WARNING if any("unfinished" in row["outcomes"] for row in rows) else ANSWER


def _results(
    workload: gp.Workload, policies: Sequence[str], seed: int, options: dict[str, Any]
) -> list[gp.Simulation]:
    results = []
    for name, own in zip(policies, options_by_policy(policies, options), strict=True):
        with progress(name) as update:
            shown = update if stderr.is_terminal else None
            results.append(gp.simulate(workload, name, seed=seed, progress=shown, **own))
    return results


def _compare_seeds(
    source: gp.Workload | Callable[[int], gp.Workload],
    policies: Sequence[str],
    seeds: range,
    title: str,
    options: dict[str, Any],
    asked: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Print means over seeds, and ratios to the first policy."""
    with progress("simulations") as update:
        compared = gp.compare(source, policies, seeds=seeds, progress=update, **options)
    if as_json:
        emit([with_energy(row) for row in compared.rows])
    else:
        _print_comparison(title, compared, asked)
    unfinished = dict.fromkeys(compared.policies, 0)
    for row in compared.rows:
        unfinished[row["policy"]] += row["outcomes"].get("unfinished", 0)
    for policy, jobs in unfinished.items():
        if jobs:
            say(f"{policy}: {counted(jobs, 'job')} did not end, of all seeds together", to=stderr)
    return WARNING if any(unfinished.values()) else ANSWER


def _print_comparison(title: str, compared: gp.Comparison, asked: Sequence[str]) -> None:
    cells: dict[str, list[str]] = {policy: [policy] for policy in compared.policies}
    metrics, first_row = simulation_metrics(asked), with_energy(compared.rows[0])
    for metric, divisor, digits in metrics.values():
        for policy, (mean, half) in compared.mean(metric).items():
            cell = f"{mean / divisor:.{digits}f} ±{half / divisor:.{digits}f}"
            cells[policy].append(UNKNOWN if first_row[metric] is None else cell)
    first, *others = compared.policies
    ratios = compared.ratio("mean_jct_s", to=first) if others else {}
    for policy, (ratio, half) in ratios.items():
        cells[policy].append(f"{ratio:.3f} ±{half:.3f}")
    beside = [f"JCT / {first}"] if others else []
    print_table(title, ("policy", *metrics, *beside), cells.values())
