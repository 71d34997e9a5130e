# SPDX-License-Identifier: Apache-2.0
"""The command line: one verb per stage.

Exit codes: 0 an answer, 1 an answer with a warning status, 2 bad input (one sentence on stderr),
130 Ctrl-C.
With ``--json``, stdout carries one JSON document and nothing else.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import glidepath as gp
from glidepath._fit import FAMILIES
from glidepath._pictures import series
from glidepath.cli import _bench as bench
from glidepath.cli import _slurm as slurm
from glidepath.cli._console import (
    ANSWER,
    BAD_INPUT,
    WARNING,
    Curve,
    Json,
    Log,
    Metric,
    Past,
    chosen,
    each,
    emit,
    learned,
    open_workload,
    print_table,
    progress,
    save,
    stderr,
    stdout,
)
from glidepath.cli._watch import watch

COMPARED = ("fifo", "session_fifo", "srtf", "dare", "best_value")

app = typer.Typer(
    name="glidepath",
    help="Forecast training-loss curves and schedule training jobs on tiered GPUs.",
    epilog="Exit codes: 0 an answer, 1 an answer with a warning status, 2 bad input, 130 Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
Users = Annotated[int | None, typer.Option(help="Draw this many users instead of jobs.csv.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the users drawn.")]
Gpus = Annotated[int | None, typer.Option(help="GPUs of the cluster, for a trace of jobs.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    command = typer.main.get_command(app)
    try:
        code = command.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="glidepath",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as of `glidepath … | head -1`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ANSWER
    except (gp.InputError, gp.IoError, ImportError) as error:
        _complain(str(error))
        return BAD_INPUT
    except OSError as error:  # a file of an option, such as one that cannot be written
        _complain(": ".join(filter(None, (error.filename, error.strerror))) or str(error))
        return BAD_INPUT
    except Exception as error:
        return _usage(error)
    return code if isinstance(code, int) else ANSWER


def _usage(error: Any) -> int:
    """Tell an error of click's own, which knows its exit code; raise any other again."""
    if not hasattr(error, "format_message"):
        raise error
    context = getattr(error, "ctx", None)
    if context is None or type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # the help
    else:
        said = error.format_message().rstrip(".")
        _complain(f"{said} ({context.command_path} --help tells more)")
    return int(error.exit_code)


def _complain(sentence: str) -> None:
    stderr.print(
        f"glidepath: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True
    )


def _version(asked: bool) -> None:
    if asked:
        stdout.print(gp.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: glidepath fit data/curves/digits-mlp.csv.gz --family pow3")
def fit(
    file: Log,
    curve: Curve = None,
    family: Annotated[
        str,
        typer.Option(
            help="A family, or auto: the best by AICc.",
            autocompletion=lambda: ["auto", *FAMILIES],
        ),
    ] = "auto",
    robust: Annotated[bool, typer.Option("--robust", help="Shrug off spikes.")] = False,
    metric: Metric = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the first fit.")] = None,
    as_json: Json = False,
) -> int:
    """Fit a learning-curve family to each run of a file."""
    traces = chosen(file, curve, metric)
    fits: list[gp.Fit] = []
    with progress("fits") as update:
        for first in range(0, len(traces), 256):
            fits += gp.fit_batch(traces[first : first + 256], family=family, robust=robust)
            update(len(fits), len(traces))
    if plot is not None:
        save(lambda ax: fits[0].plot(ax=ax, trace=traces[0]), plot)
    if as_json:
        emit(
            [
                {
                    "curve": trace.name,
                    "family": fit.family,
                    "status": fit.status,
                    "params": fit.params,
                    "stderr": fit.stderr,
                    "sigma": fit.sigma,
                    "aicc": fit.aicc,
                    "bic": fit.bic,
                    "points": fit.points,
                }
                for trace, fit in zip(traces, fits, strict=True)
            ]
        )
    else:
        print_table(
            f"{len(fits)} fits of {Path(file).name}",
            ("curve", "points", "family", "parameters", "sigma", "status"),
            (
                (
                    trace.name,
                    str(len(trace)),
                    fit.family,
                    "  ".join(f"{key} {value:.4g}" for key, value in fit.params.items()),
                    f"{fit.sigma:.3g}",
                    fit.status,
                )
                for trace, fit in zip(traces, fits, strict=True)
            ),
        )
    return ANSWER if all(fit.status == "converged" for fit in fits) else WARNING


@app.command(
    epilog="Example: glidepath forecast data/curves/digits-mlp.csv.gz --observed 0.3 --target 0.4"
)
def forecast(
    file: Log,
    curve: Curve = None,
    observed: Annotated[
        float, typer.Option(help="Share of the points shown to the forecast, in (0, 1].")
    ] = 1.0,
    until: Annotated[
        float | None, typer.Option(help="Last step; default: the run's, or twice the last seen.")
    ] = None,
    target: Annotated[float | None, typer.Option(help="Loss to reach.")] = None,
    schedule: Annotated[
        bool,
        typer.Option("--schedule", help="The file's learning rate was planned: use what is ahead."),
    ] = False,
    past: Past = None,
    metric: Metric = None,
    plot: Annotated[Path | None, typer.Option(help="Fan chart of the first run.")] = None,
    as_json: Json = False,
) -> int:
    """Forecast each run of a file, and when (and whether) it reaches a target."""
    if not 0.0 < observed <= 1.0:
        raise gp.InputError(f"--observed {observed:g} is not in (0, 1]")
    if until is not None and not math.isfinite(until):
        raise gp.InputError(f"--until {until:g} is no step")
    traces = chosen(file, curve, metric)
    runs = learned(past, metric, traces)
    rows: list[dict[str, Any]] = []
    for index, trace in enumerate(each("forecasts", traces)):
        points = max(1, math.ceil(observed * len(trace)))
        seen = trace.until(float(trace.step[points - 1]))
        last = float(seen.step[-1])
        end = until if until is not None else float(trace.step[-1])
        if end <= last:
            if until is not None:
                raise gp.InputError(f"--until {until:g} is not after step {last:g} of {trace.name}")
            end = last + max(abs(last), 1.0)
        steps = np.unique(last + np.geomspace((end - last) / 50.0, end - last, 50))
        plan = _planned(trace) if schedule else None
        ahead = gp.forecast(seen, steps, schedule=plan, past=runs)
        reach = (
            None if target is None else gp.reach(seen, target, budget=end, schedule=plan, past=runs)
        )
        if plot is not None and index == 0:
            save(
                lambda ax, ahead=ahead, seen=seen, trace=trace, reach=reach: _fan(
                    ax, ahead, seen, trace, target, reach
                ),
                plot,
            )
        row: dict[str, Any] = {
            "curve": trace.name,
            "status": ahead.status,
            "observed_to": last,
            "step": end,
            "median": float(ahead.median[-1]),
            "q10": float(ahead.quantile(0.1)[-1]),
            "q90": float(ahead.quantile(0.9)[-1]),
        }
        if reach is not None:
            row |= {
                "target": target,
                "prob_reached": 1.0 - reach.prob_never,
                "reach_q10": reach.quantile(0.1),
                "reach_q50": reach.quantile(0.5),
                "reach_q90": reach.quantile(0.9),
            }
        if as_json:
            row |= {"steps": ahead.at, "medians": ahead.median}
            row |= {"levels": ahead.levels, "quantiles": ahead.quantiles}
        rows.append(row)
    if as_json:
        emit(rows)
    else:
        _print_forecasts(file, rows, target)
    return ANSWER if all(row["status"] == "good" for row in rows) else WARNING


app.command(
    epilog="Example: glidepath watch run/metrics.csv --target 1.8 --until-decided || scancel 71\n\n"
    "Exit codes: 0 no run needs to be stopped, 1 stopping one is advised (never, diverged), "
    "2 bad input, 130 Ctrl-C.",
)(watch)


def _planned(trace: gp.Trace) -> gp.Schedule:
    plan = gp.Schedule.logged(trace)
    if plan is None:
        raise gp.InputError(f"--schedule: {trace.name or 'the run'} has no learning rate")
    return plan


def _fan(
    ax: Any,
    ahead: gp.Forecast,
    seen: gp.Trace,
    trace: gp.Trace,
    target: float | None,
    reach: gp.Reach | None,
) -> None:
    from glidepath._pictures import plots

    rest = trace.step > seen.step[-1]
    later = gp.Trace(trace.step[rest], trace.loss[rest]) if rest.any() else None
    plots.forecast(ahead, trace=seen, later=later, target=target, reach=reach, ax=ax)
    ax.set_title(trace.name, loc="left", fontsize=10)


def _print_forecasts(file: str, rows: list[dict[str, Any]], target: float | None) -> None:
    columns = ["curve", "seen to", "at step", "loss", "80 % within", "status"]
    if target is not None:
        columns += [f"reaches {target:g}", "at step", "80 % within"]
    cells = []
    for row in rows:
        cell = [
            row["curve"],
            f"{row['observed_to']:g}",
            f"{row['step']:g}",
            f"{row['mean']:.4g}",
            f"{row['q10']:.4g} to {row['q90']:.4g}",
            row["status"],
        ]
        if target is not None:
            cell += [
                f"{row['prob_reached']:.0%}",
                _step(row["reach_q50"]),
                f"{_step(row['reach_q10'])} to {_step(row['reach_q90'])}",
            ]
        cells.append(cell)
    print_table(f"{len(rows)} forecasts of {Path(file).name}", columns, cells)
    if len(rows) == 1 and target is not None:
        stdout.print(_sentence(rows[0]), highlight=False, markup=False, soft_wrap=True)


def _sentence(row: dict[str, Any]) -> str:
    """Say when the target is reached, steps to three digits: the interval is wider than that."""
    chance = series.percent(row["prob_reached"])
    low, middle, high = (
        series.count(float(f"{round(step):.3g}")) if math.isfinite(step) else "never"
        for step in (row["reach_q10"], row["reach_q50"], row["reach_q90"])
    )
    if row["reach_q10"] == row["reach_q90"] <= row["observed_to"]:
        return f"reached {row['target']:g} at step {series.count(row['reach_q50'])}"
    if middle == "never":
        return f"reaches {row['target']:g} by step {series.count(row['step'])}: {chance}"
    return f"reaches {row['target']:g} at step {middle} ({low}–{high}), {chance}"


def _step(step: float) -> str:
    return f"{step:.0f}" if math.isfinite(step) else "never"


@app.command(epilog="Example: glidepath plan data/workloads/supercom --users 50 --at 12")
def plan(
    workload: Annotated[Path, typer.Argument(help="A workload folder.")],
    at: Annotated[float, typer.Option(help="Hour to plan; before it best_value decides.")] = 12.0,
    users: Users = None,
    seed: Seed = 0,
    gpus: Gpus = None,
    objective: Annotated[
        str, typer.Option(help="What a second of a job is worth; several, in order: deadline,jct.")
    ] = "jct",
    sharing: Annotated[
        str, typer.Option(help="How jobs may share GPUs: exclusive, naive, mps or mig.")
    ] = "exclusive",
    pairs: Annotated[
        Path | None, typer.Option(help="Measured pairs of classes of jobs, a CSV.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the tiers and their prices.")] = None,
    as_json: Json = False,
) -> int:
    """Show the plan of one moment: who runs where, who waits, who ends, and why."""
    if math.isnan(at):
        raise gp.InputError(f"--at {at:g} is no hour")
    measured = None if pairs is None else gp.learn_pairs(gp.read_pairs(pairs))
    drawn = open_workload(workload, users, seed, gpus)
    with progress("planning"):
        snapshot = _snapshot_at(drawn, at * 3600.0)
        planned = gp.plan(snapshot, objective=objective.split(","), sharing=sharing, pairs=measured)
    if plot is not None:
        save(lambda ax: planned.plot(drawn.tiers, ax=ax), plot)
    tiers = [tier.name for tier in drawn.tiers]
    if as_json:
        emit(
            {
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
                "reasons": dict(planned.reasons),
            }
        )
        return ANSWER
    placed = {a.job: f"{a.gpus} {tiers[a.tier]}" for a in planned.allocations}
    state = dict.fromkeys(planned.stop, "ends") | placed
    jobs = sorted(snapshot.jobs, key=lambda job: (job.id not in state, job.id))
    print_table(
        f"{drawn.name} at {snapshot.now_s / 3600:.1f} h: {planned!r}",
        ("job", "user", "state", "steps", "why"),
        (
            (
                str(job.id),
                job.user,
                state.get(job.id, "waits"),
                f"{job.steps_done:.0f} of {job.budget_steps:.0f}",
                planned.reasons.get(job.id, ""),
            )
            for job in jobs
        ),
    )
    print_table(
        "Prices",
        ("tier", "GPUs", "value of one more GPU-hour"),
        (
            (tier.name, str(tier.gpus), f"{3600.0 * price:.4g}")
            for tier, price in zip(drawn.tiers, planned.prices, strict=True)
        ),
    )
    return ANSWER


class _Reached(Exception):  # noqa: N818 - an event, not an error
    """The simulation has come to the moment asked for."""


def _snapshot_at(workload: gp.Workload, now_s: float) -> gp.Snapshot:
    seen: list[gp.Snapshot] = []

    def watch(snapshot: gp.Snapshot) -> gp.Plan:
        seen[:] = [snapshot]
        if snapshot.now_s >= now_s:
            raise _Reached
        return gp.plan(snapshot, reasons=False)

    try:
        gp.simulate(workload, watch, round_s=360.0, session_s=300.0, stop_at_target=True)
    except _Reached:
        return seen[0]
    raise gp.InputError(f"--at {now_s / 3600:g}: the last job of {workload.name} has ended by then")


@app.command(
    epilog="Example: glidepath simulate data/workloads/supercom --users 50 --compare"
    " --report report.html"
)
def simulate(
    workload: Annotated[Path, typer.Argument(help="A workload folder, or a CSV trace of jobs.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="Repeat for several.",
            autocompletion=lambda: list(gp.POLICIES),
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help=f"The policies {', '.join(COMPARED)}.")
    ] = False,
    users: Users = None,
    seed: Seed = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Repeat with this many seeds: means and 95 % intervals.")
    ] = 1,
    gpus: Gpus = None,
    restart: Annotated[float, typer.Option(help="Seconds without progress at a restart.")] = 0.0,
    session: Annotated[float | None, typer.Option(help="Length of a session in seconds.")] = None,
    stop_at_target: Annotated[
        bool, typer.Option("--stop-at-target", help="Every policy ends a job at its target.")
    ] = False,
    node_mtbf: Annotated[
        float | None, typer.Option(help="Mean hours between failures of a node; an hour's repair.")
    ] = None,
    job_mtbf: Annotated[
        float | None, typer.Option(help="Mean running hours between crashes of a job.")
    ] = None,
    checkpoint: Annotated[float, typer.Option(help="Minutes between checkpoints.")] = 0.0,
    carbon: Annotated[float | None, typer.Option(help="Intensity in g of CO2 per kWh.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write one interactive HTML page.")] = None,
    as_json: Json = False,
) -> int:
    """Run a workload to its end under one policy, or compare several."""
    names = list(policy or (COMPARED if compare else ["best_value"]))
    options: dict[str, Any] = {
        "restart_s": restart,
        "session_s": session,
        "stop_at_target": True if stop_at_target else None,
        "failures": {
            "node_every_s": 3600 * node_mtbf if node_mtbf is not None else math.inf,
            "job_every_s": 3600 * job_mtbf if job_mtbf is not None else math.inf,
            "checkpoint_s": 60 * checkpoint,
        },
        "carbon_g_per_kwh": carbon,
    }
    if seeds > 1:
        if report is not None:
            raise gp.InputError("--report shows one seed: leave --seeds out")
        if users is None:
            raise gp.InputError("--seeds draws users anew: say how many --users")
        return _compare_seeds(workload, names, users, range(seed, seed + seeds), options, as_json)
    drawn = open_workload(workload, users, seed, gpus)
    results: list[gp.Simulation] = []
    for name in names:
        with progress(name) as update:
            results.append(
                gp.simulate(
                    drawn,
                    name,
                    seed=seed,
                    progress=update if stderr.is_terminal else None,
                    **options,
                )
            )
    if report is not None:
        from glidepath import _report

        _report.write_simulations(report, results, drawn)
    if as_json:
        emit(
            [
                {"policy": result.policy, "workload": result.workload}
                | result.metrics()
                | {"outcomes": outcomes(result)}
                for result in results
            ]
        )
    else:
        _print_simulations(drawn, results)
        if report is not None:
            stdout.print(f"Report: {report}", highlight=False, markup=False)
    unfinished = any("unfinished" in outcomes(result) for result in results)
    return WARNING if unfinished else ANSWER


COLUMNS = {  # heading: metric, divisor, digits
    "total wait h": ("total_wait_s", 3600.0, 1),
    "wait per user h": ("mean_wait_per_user_s", 3600.0, 2),
    "mean JCT h": ("mean_jct_s", 3600.0, 2),
    "p95 JCT h": ("p95_jct_s", 3600.0, 2),
    "makespan h": ("makespan_s", 3600.0, 1),
    "GPU-hours": ("gpu_seconds", 3600.0, 1),
    "kWh": ("energy_kwh", 1.0, 1),
    "preemptions": ("preemptions", 1.0, 0),
}


def _compare_seeds(
    workload: Path,
    names: list[str],
    users: int,
    seeds: range,
    options: dict[str, Any],
    as_json: bool,
) -> int:
    """Print means over workloads drawn with each seed, and ratios to the first policy."""
    with progress("simulations") as update:
        compared = gp.compare(
            lambda seed: open_workload(workload, users, seed, None),
            names,
            seeds=seeds,
            progress=update,
            **options,
        )
    if as_json:
        emit(list(compared.rows))
        return ANSWER
    cells: dict[str, list[str]] = {policy: [policy] for policy in compared.policies}
    for metric, divisor, digits in COLUMNS.values():
        for policy, (mean, half) in compared.mean(metric).items():
            cells[policy].append(f"{mean / divisor:.{digits}f} ±{half / divisor:.{digits}f}")
    first = compared.policies[0]
    for policy, (ratio, half) in compared.ratio("mean_jct_s", to=first).items():
        cells[policy].append(f"{ratio:.3f} ±{half:.3f}")
    print_table(
        f"{workload.name}: {users} users, seeds {seeds.start} to {seeds.stop - 1}",
        ("policy", *COLUMNS, f"JCT / {first}"),
        cells.values(),
    )
    return ANSWER


@app.command(
    epilog="Example: glidepath report data/curves/docs-lstm.csv.gz --target 2.0\n\n"
    "Example: glidepath report data/workloads/supercom -o policies.html"
)
def report(
    file: Log,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    curve: Curve = None,
    target: Annotated[float | None, typer.Option(help="Loss that the runs should reach.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Last step allowed; default: twice the last one seen.")
    ] = None,
    metric: Metric = None,
    as_json: Json = False,
) -> int:
    """Write one interactive page on the runs of a file: forecasts and advice.

    Of a workload folder, with tiers.csv and jobs.csv, it is the page of `simulate --compare`.
    """
    from glidepath import _report

    if budget is not None and not 0 < budget < math.inf:
        raise gp.InputError(f"--budget {budget:g} is no step")
    if (Path(file) / "tiers.csv").is_file():
        if (target, budget, curve, metric) != (None, None, None, None):
            raise gp.InputError(f"{file} is a workload: its jobs say their targets and budgets")
        return simulate(Path(file), compare=True, report=output, as_json=as_json)
    traces = chosen(file, curve, metric)
    with progress("report") as update:
        rows = _report.write_runs(
            output, traces, target=target, budget=budget, title=Path(file).name, progress=update
        )
    if as_json:
        emit(rows)
    else:
        stdout.print(f"Report: {output}", highlight=False, markup=False)
    return ANSWER


def outcomes(result: gp.Simulation) -> dict[str, int]:
    """How many jobs ended in which way."""
    kinds, counts = np.unique(result.jobs["outcome"], return_counts=True)
    return {str(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}


def _print_simulations(workload: gp.Workload, results: list[gp.Simulation]) -> None:
    tiers = ", ".join(f"{tier.gpus} {tier.name}" for tier in workload.tiers)
    print_table(
        f"{workload.name}: {len(workload)} jobs on {tiers}",
        ("policy", *COLUMNS, "jobs"),
        (
            (
                result.policy,
                *(
                    f"{getattr(result, metric) / divisor:.{digits}f}"
                    for metric, divisor, digits in COLUMNS.values()
                ),
                ", ".join(f"{count} {kind}" for kind, count in outcomes(result).items()),
            )
            for result in results
        ),
    )


app.add_typer(bench.app)
app.add_typer(slurm.app)


if __name__ == "__main__":
    sys.exit(main())
