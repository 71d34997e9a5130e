# SPDX-License-Identifier: Apache-2.0
"""The command line: one verb per stage.

Exit codes: 0 an answer, 1 an answer with a warning status, 2 bad input (one sentence on stderr).
With ``--json``, stdout carries one JSON document and nothing else.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import glidepath as gp
from glidepath.engines import _cli as slurm

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER, WARNING, BAD_INPUT = 0, 1, 2
COMPARED = ("fifo", "session_fifo", "srtf", "dare", "best_value")

app = typer.Typer(
    name="glidepath",
    help="Forecast training-loss curves and schedule training jobs on tiered GPUs.",
    epilog="Exit codes: 0 an answer, 1 an answer with a warning status, 2 bad input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
stdout = Console()
stderr = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Users = Annotated[int | None, typer.Option(help="Draw this many users instead of jobs.csv.")]
Seed = Annotated[int, typer.Option(help="Of the users drawn.")]
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
    except (gp.InputError, gp.IoError, ImportError) as error:
        _complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # click's own: usage errors and aborts know their code
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        return int(getattr(error, "exit_code", BAD_INPUT))
    return code if isinstance(code, int) else ANSWER


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


# ---------------------------------------------------------------------------------------- helpers


def plain(value: Any) -> Any:
    """Reduce a value to what JSON knows: arrays to lists, NaN and infinity to null and text."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def emit(document: Any) -> None:
    """Print the one JSON document."""
    sys.stdout.write(json.dumps(plain(document), indent=1, allow_nan=False) + "\n")


def _chosen(file: Path, curve: str | None, metric: str | None) -> list[gp.Trace]:
    traces = gp.read_traces(file, metric=metric)
    found = [trace for trace in traces if curve in (None, trace.name)]
    for trace in found:
        for note in trace.notes:  # what the reader had to repair
            stderr.print(f"{trace.name}: {note}", highlight=False, markup=False, soft_wrap=True)
    if not found:
        some = ", ".join(repr(trace.name) for trace in traces[:3])
        more = f" and {len(traces) - 3} more" if len(traces) > 3 else ""
        raise gp.InputError(f"{file}: no curve {curve!r}; it holds {some}{more}")
    return found


def _save(plot: Callable[..., Any], path: Path) -> None:
    from glidepath._results import require

    figure = require("matplotlib.figure").Figure(figsize=(8.0, 4.5), layout="constrained")
    plot(ax=figure.add_subplot())
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise gp.IoError(f"{path}: cannot write the picture: {error}") from None


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that shows itself only where someone can see it."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    ) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


def _table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: let the table be as wide as it is, so that no cell is cut.
    console = stdout if stdout.is_terminal else Console(width=200)
    console.print(table)


def _workload(source: Path, users: int | None, seed: int, gpus: int | None) -> gp.Workload:
    if not source.exists():
        raise gp.IoError(f"{source}: no such file or folder")
    if source.is_dir():
        if gpus is not None:
            raise gp.InputError(f"--gpus: the tiers of {source} say how many there are")
        if users is None:
            return gp.read_workload(source)
        return gp.generate_workload(source, users=users, seed=seed)
    if users is not None:
        raise gp.InputError(f"--users: {source} is a trace of jobs, users are drawn from a folder")
    if gpus is None:
        raise gp.InputError(f"{source} is a trace of jobs: say how many --gpus there are")
    return gp.Workload.from_trace(source, gpus=gpus)


# ------------------------------------------------------------------------------------------ verbs


@app.command(epilog="Example: glidepath fit data/curves/digits-mlp.csv.gz --family pow3")
def fit(
    file: Annotated[Path, typer.Argument(help="Curves, such as a long CSV curve,step,value.")],
    curve: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    family: Annotated[str, typer.Option(help="A family, or auto: the best by AICc.")] = "auto",
    robust: Annotated[bool, typer.Option("--robust", help="Shrug off spikes.")] = False,
    metric: Annotated[str | None, typer.Option(help="Column that holds the loss.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the first fit.")] = None,
    as_json: Json = False,
) -> int:
    """Fit a learning-curve family to each run of a file."""
    traces = _chosen(file, curve, metric)
    fits = gp.fit_many(traces, family=family, robust=robust)
    if plot is not None:
        _save(lambda ax: fits[0].plot(ax=ax, trace=traces[0]), plot)
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
        _table(
            f"{len(fits)} fits of {file.name}",
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
    file: Annotated[Path, typer.Argument(help="Curves, such as a long CSV curve,step,value.")],
    curve: Annotated[str | None, typer.Option(help="Only this one.")] = None,
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
    metric: Annotated[str | None, typer.Option(help="Column that holds the loss.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Fan chart of the first run.")] = None,
    as_json: Json = False,
) -> int:
    """Forecast each run of a file, and when (and whether) it reaches a target."""
    if not 0.0 < observed <= 1.0:
        raise gp.InputError(f"--observed {observed:g} is not in (0, 1]")
    rows: list[dict[str, Any]] = []
    for index, trace in enumerate(_chosen(file, curve, metric)):
        points = max(1, math.ceil(observed * len(trace)))
        seen = trace.head(float(trace.step[points - 1]))
        last = float(seen.step[-1])
        end = until if until is not None else float(trace.step[-1])
        if end <= last:
            if until is not None:
                raise gp.InputError(f"--until {until:g} is not after step {last:g} of {trace.name}")
            end = 2.0 * last
        steps = np.unique(np.geomspace(last + (end - last) / 50.0, end, 50))
        lr_ahead = (steps, _planned(trace, steps)) if schedule else None
        ahead = gp.forecast(seen, steps, lr_ahead=lr_ahead)
        reach = None if target is None else gp.reach(seen, target, budget=end, lr_ahead=lr_ahead)
        if plot is not None and index == 0:
            _save(
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
            "mean": float(ahead.mean[-1]),
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
            row |= {"steps": ahead.steps, "means": ahead.mean}
            row |= {"levels": ahead.levels, "quantiles": ahead.quantiles}
        rows.append(row)
    if as_json:
        emit(rows)
    else:
        _print_forecasts(file, rows, target)
    return ANSWER if all(row["status"] == "good" for row in rows) else WARNING


def _planned(trace: gp.Trace, steps: Any) -> Any:
    if trace.lr is None:
        raise gp.InputError(f"--schedule: {trace.name or 'the run'} has no learning rate")
    return np.interp(steps, trace.step, trace.lr)


def _fan(
    ax: Any,
    ahead: gp.Forecast,
    seen: gp.Trace,
    trace: gp.Trace,
    target: float | None,
    reach: gp.Reach | None,
) -> None:
    from glidepath import _plots

    rest = trace.step > seen.step[-1]
    later = gp.Trace(trace.step[rest], trace.loss[rest]) if rest.any() else None
    _plots.forecast(ahead, trace=seen, later=later, target=target, reach=reach, ax=ax)
    ax.set_title(trace.name, loc="left", fontsize=10)


def _print_forecasts(file: Path, rows: list[dict[str, Any]], target: float | None) -> None:
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
    _table(f"{len(rows)} forecasts of {file.name}", columns, cells)


def _step(step: float) -> str:
    return f"{step:.0f}" if math.isfinite(step) else "never"


@app.command(epilog="Example: glidepath plan data/workloads/supercom --users 50 --at 12")
def plan(
    workload: Annotated[Path, typer.Argument(help="A workload folder.")],
    at: Annotated[float, typer.Option(help="Hour to plan; before it best_value decides.")] = 12.0,
    users: Users = None,
    seed: Seed = 0,
    gpus: Gpus = None,
    objective: Annotated[str, typer.Option(help="What a second of a job is worth.")] = "jct",
    as_json: Json = False,
) -> int:
    """Show the plan of one moment: who runs where, who waits, who ends, and why."""
    drawn = _workload(workload, users, seed, gpus)
    snapshot = _snapshot_at(drawn, at * 3600.0)
    planned = gp.plan(snapshot, objective=objective)
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
                    {"job": a.job, "tier": tiers[a.tier], "gpus": a.gpus, "since_s": a.since_s}
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
    _table(
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
    _table(
        "Prices",
        ("tier", "GPUs", "value of one more GPU-second"),
        (
            (tier.name, str(tier.gpus), f"{price:.4g}")
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
        list[str] | None, typer.Option("--policy", "-p", help="Repeat for several.")
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
    report: Annotated[Path | None, typer.Option(help="Write one interactive HTML page.")] = None,
    as_json: Json = False,
) -> int:
    """Run a workload to its end under one policy, or compare several."""
    names = list(policy or (COMPARED if compare else ["best_value"]))
    options: dict[str, Any] = {
        "restart_s": restart,
        "session_s": session,
        "stop_at_target": True if stop_at_target else None,
    }
    if seeds > 1:
        if report is not None:
            raise gp.InputError("--report shows one seed: leave --seeds out")
        if users is None:
            raise gp.InputError("--seeds draws users anew: say how many --users")
        return _compare_seeds(workload, names, users, range(seed, seed + seeds), options, as_json)
    drawn = _workload(workload, users, seed, gpus)
    results: list[gp.Simulation] = []
    for name in names:
        with _progress(name) as progress:
            results.append(
                gp.simulate(
                    drawn,
                    name,
                    seed=seed,
                    progress=progress if stderr.is_terminal else None,
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
    with _progress("simulations") as progress:
        compared = gp.compare(
            lambda seed: _workload(workload, users, seed, None),
            names,
            seeds=seeds,
            progress=progress,
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
    _table(
        f"{workload.name}: {users} users, seeds {seeds.start} to {seeds.stop - 1}",
        ("policy", *COLUMNS, f"JCT / {first}"),
        cells.values(),
    )
    return ANSWER


@app.command(epilog="Example: glidepath report data/curves/docs-lstm.csv.gz --target 2.0")
def report(
    file: Annotated[Path, typer.Argument(help="Curves, such as a long CSV curve,step,value.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    target: Annotated[float | None, typer.Option(help="Loss that the runs should reach.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Last step allowed; default: twice the last one seen.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Column that holds the loss.")] = None,
) -> int:
    """Write one interactive page on the runs of a file: forecasts and advice."""
    from glidepath import _report

    traces = _chosen(file, None, metric)
    _report.write_runs(output, traces, target=target, budget=budget, title=file.name)
    stdout.print(f"Report: {output}", highlight=False, markup=False)
    return ANSWER


def outcomes(result: gp.Simulation) -> dict[str, int]:
    """How many jobs ended in which way."""
    kinds, counts = np.unique(result.jobs["outcome"], return_counts=True)
    return {str(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}


def _print_simulations(workload: gp.Workload, results: list[gp.Simulation]) -> None:
    tiers = ", ".join(f"{tier.gpus} {tier.name}" for tier in workload.tiers)
    _table(
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


# ------------------------------------------------------------------------------------------ bench

bench = typer.Typer(
    name="bench", help="Measure a stage: on your own data, beside its rivals.", no_args_is_help=True
)
app.add_typer(bench)


@bench.callback()
def _bench() -> None:
    """Measure a stage: on your own data, beside its rivals."""


@bench.command(
    epilog="Example: glidepath bench accuracy data/curves --max-curves 5 --method glidepath"
)
def accuracy(
    folder: Annotated[Path, typer.Argument(help="Finished curves: CSV files, or one of them.")],
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Repeat for several; default: most.")
    ] = None,
    max_curves: Annotated[int, typer.Option(min=1, help="Of each file.")] = 20,
    constants: Annotated[Path | None, typer.Option(help="Another table of constants.")] = None,
    rows: Annotated[Path | None, typer.Option(help="Write every row: .json or .parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the reliability diagram.")] = None,
    json_: Json = False,
) -> None:
    """Cut finished curves, forecast the rest, and score us and the usual baselines."""
    from glidepath import _bench_accuracy as backtest

    with _progress("curves") as update:
        result = backtest.run(
            folder,
            methods=tuple(method) if method else backtest.DEFAULT_METHODS,
            max_curves=max_curves,
            constants=constants.read_text() if constants else None,
            progress=update,
        )
    if plot is not None:
        _save(result.plot, plot)
    if rows is not None and rows.suffix == ".parquet":
        result.to_pandas().to_parquet(rows)
    elif rows is not None:
        rows.write_text(json.dumps(plain(result.to_dict())))
    if json_:
        emit({key: value for key, value in result.to_dict().items() if key != "rows"})
        return
    for by, title in ((None, "All collections"), ("collection", "By collection")):
        table = result.table(by=by)
        columns = list(table[0])
        cells = [
            [f"{v:.3f}" if isinstance(v, float) else str(v) for v in r.values()] for r in table
        ]
        _table(title, columns, cells)
    decisions = {k: f"{v:.3f}" for k, v in result.decisions().items()}
    _table("Decisions of glidepath", list(decisions), [list(decisions.values())])


@bench.command("fit", epilog="Example: glidepath bench fit --quick")
def bench_fit(
    quick: Annotated[bool, typer.Option(help="One family, one round.")] = False,
    as_json: Json = False,
) -> None:
    """Time fits beside SciPy and, where `fit_rivals` is built, Ceres, TinySolver and cminpack."""
    from glidepath import _bench_fit

    rows = _bench_fit.run(families=("pow3",), rounds=1) if quick else _bench_fit.run()
    if as_json:
        emit(rows)
        return
    _table(
        "Fits, CPU time of one thread (ratio to scipy lm; values: to filling the memory)",
        ("what", "family", "n", "per second", "ratio", "error"),
        (
            (
                row["what"],
                row["family"],
                str(row["n"]),
                f"{row['per_second']:,.0f}",
                f"{row['ratio']:.3g}",
                f"{row['error']:.1e}",
            )
            for row in rows
        ),
    )


@bench.command("plan", epilog="Example: glidepath bench plan --quick")
def bench_plan(
    traces: Annotated[
        Path | None, typer.Option(help="Folder with the throughput tables, for scaling.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes and few instances.")] = False,
    as_json: Json = False,
) -> int:
    """Time and certify the planner beside HiGHS; exit code 1 where it falls short of a target."""
    from glidepath import _bench_plan

    rows = (
        _bench_plan.run(
            sizes=(100, 1_000),
            repeats=3,
            highs_jobs=200,
            milp_instances=10,
            milp_jobs=30,
            traces=traces,
            scaling_jobs=10,
        )
        if quick
        else _bench_plan.run(traces=traces)
    )
    if as_json:
        emit(rows)
    else:
        verdict = {None: "", True: "met", False: "missed"}
        _table(
            "Planner, CPU time of one thread",
            ("what", "measured", "target", ""),
            (
                (
                    row["what"],
                    f"{row['measured']:.4g} {row['unit']}",
                    "" if row["target"] is None else f"{row['target']:g}",
                    verdict[row["met"]],
                )
                for row in rows
            ),
        )
    return WARNING if any(row["met"] is False for row in rows) else ANSWER


@bench.command(
    "policies", epilog="Example: glidepath bench policies traces --no-speed --json > rows.json"
)
def bench_policies(
    source: Annotated[
        Path, typer.Argument(help="Folder of the public traces; a workload for --seed-study.")
    ],
    seed_study: Annotated[
        bool, typer.Option("--seed-study", help="Loads and arms of DARE-ML's experiment instead.")
    ] = False,
    users: Annotated[
        list[int] | None, typer.Option(help="Loads of the study; default 10 20 50 100 200.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Workloads drawn for each load.")] = 10,
    speed: Annotated[bool, typer.Option(help="Also time the whole Philly trace.")] = True,
    as_json: Json = False,
) -> int:
    """Put results of other simulators beside ours, with the deviation."""
    from glidepath import _bench_policies

    if not source.is_dir():
        raise gp.IoError(f"{source}: no such folder")
    if seed_study:
        with _progress("simulations") as progress:
            rows = _bench_policies.seed_study(
                source, users=tuple(users or (10, 20, 50, 100, 200)), seeds=seeds, progress=progress
            )
    else:
        rows = _bench_policies.run(source, speed=speed)
        if not rows:
            raise gp.IoError(f"{source}: no *_reference.json with its traces in this folder")
    if as_json:
        emit(rows)
    elif seed_study:
        _print_study(source, rows, seeds)
    else:
        _table(
            f"Policies on the traces of {source}",
            ("source", "case", "policy", "metric", "ours", "reference", "deviation"),
            (
                (
                    row["source"],
                    row["case"],
                    row["policy"],
                    row["metric"],
                    f"{row['ours']:,.6g}",
                    f"{row['reference']:,.6g}",
                    f"{row['deviation']:+.2e}",
                )
                for row in rows
            ),
        )
    return ANSWER


def _print_study(source: Path, rows: list[dict[str, Any]], seeds: int) -> None:
    def hours(row: dict[str, Any], metric: str) -> str:
        return f"{row[metric] / 3600:.1f} ±{row[f'{metric}_ci'] / 3600:.1f}"

    _table(
        f"{source.name}, {seeds} seeds; in the last three columns fifo of the same arm is 1",
        ("users", "arm", "policy", "total wait h", "mean JCT h", "kWh", "wait", "JCT", "energy"),
        (
            (
                str(row["users"]),
                row["arm"],
                row["policy"],
                hours(row, "total_wait_s"),
                hours(row, "mean_jct_s"),
                f"{row['energy_kwh']:.1f} ±{row['energy_kwh_ci']:.1f}",
                f"{row['total_wait_s_ratio']:.3f}",
                f"{row['mean_jct_s_ratio']:.3f}",
                f"{row['energy_kwh_ratio']:.3f}",
            )
            for row in rows
        ),
    )


# ------------------------------------------------------------------------------------------ slurm

app.add_typer(slurm.app)


if __name__ == "__main__":
    sys.exit(main())
