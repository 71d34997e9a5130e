# SPDX-License-Identifier: Apache-2.0
"""`glidepath bench`: one verb a stage, each beside other people's programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath._answer import Columns
from glidepath._arguments import refuse_twice
from glidepath._core import StartOptions
from glidepath._results import counted
from glidepath.cli._bench_accuracy import ACCURACY_VERBS
from glidepath.cli._bench_stoppers import bench_stoppers
from glidepath.cli._console import ANSWER, WARNING, emit, holds, print_rows, progress, say
from glidepath.cli._inputs import open_workload
from glidepath.cli._options import Json, was_typed
from glidepath.cli._outputs import check_output

SAMPLES = StartOptions().samples

app = typer.Typer(
    name="bench",
    help="Measure a stage on your own data, beside other programs.",
    no_args_is_help=True,
)


@app.callback()
def _bench() -> None:
    """Measure a stage on your own data, beside other programs."""


for _verb, _function, _example in ACCURACY_VERBS:
    app.command(_verb, epilog=f"Example: glidepath bench {_example}")(_function)
app.command("stoppers", epilog="Example: glidepath bench stoppers data/sweeps --seeds 3")(
    bench_stoppers
)


@app.command("fit", epilog="Example: glidepath bench fit --quick")
def fit(
    quick: Annotated[bool, typer.Option("--quick", help="One family, one round.")] = False,
    as_json: Json = False,
) -> int:
    """Time fits beside SciPy and, where `fit_rivals` is built, Ceres, TinySolver and cminpack."""
    from glidepath._bench import fit as bench

    with progress("fits", still=True) as update:
        rows = bench.run(quick=quick, progress=update)
    limits = bench.limits(rows)
    if as_json:
        emit({"rows": rows, "limits": limits})
    else:
        print_rows(
            "Fits, CPU time of one thread (ratio to scipy lm; values: to filling the memory)",
            {
                "what": "{what}",
                "family": "{family}",
                "n": "{n}",
                "per second": "{per_second:,.0f}",
                "ratio": "{ratio:.3g}",
                "error": "{error:.1e}",
            },
            rows,
        )
        print_rows(
            "Ratios and their limits; the worse of two families",
            {
                "what": "{what}",
                "against": "{against}",
                "family": "{family}",
                "n": "{n}",
                "measured": "{measured:.3g}",
                "limit": "{limit:g}",
                "holds": holds,
            },
            limits,
        )
    return ANSWER


@app.command("plan", epilog="Example: glidepath bench plan --quick")
def plan(
    context: typer.Context,
    traces: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with the tables of throughput and pairs."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few instances.")] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="rounds, plans, exact, ortools, highs, certificates, scaling or sharing; may be"
            " repeated. Default: all of them, scaling and sharing with --traces only.",
        ),
    ] = None,
    instances: Annotated[
        int, typer.Option(min=1, metavar="N", help="Instances whose certificate HiGHS checks.")
    ] = 500,
    largest: Annotated[
        int, typer.Option(min=2, metavar="N", help="Jobs of the largest instance.")
    ] = 1000,
    as_json: Json = False,
) -> int:
    """Time and certify the planner beside HiGHS; exit code 1 where a limit does not hold."""
    from glidepath._bench import plan as bench

    refuse_twice("--part", part or ())
    _check_parts(context, part, quick=quick)
    with progress("plans", still=True) as update:
        rows = bench.run(
            parts=part,
            quick=quick,
            instances=instances,
            largest=largest,
            traces=traces,
            progress=update,
        )
    if as_json:
        emit(rows)
    else:
        columns: Columns = {
            "what": "{what}",
            "measured": "{measured:.4g} {unit}",
            "limit": lambda row: "" if row["limit"] is None else f"{row['limit']:g}",
            "holds": holds,
        }
        print_rows("Planner, CPU time of one thread", columns, rows)
    return WARNING if any(row["holds"] is False for row in rows) else ANSWER


def _check_parts(context: typer.Context, part: list[str] | None, *, quick: bool) -> None:
    """Refuse options of parts that are not measured, or that --quick measures in its own sizes."""
    for option, parts in (
        ("instances", ("certificates",)),
        ("largest", ("certificates",)),
        ("traces", ("scaling", "sharing")),
    ):
        if not was_typed(context, option):
            continue
        if part and not set(parts) & set(part):
            raise gp.InputError(f"--{option} is for --part {' and '.join(parts)}")
        if quick and option != "traces":
            raise gp.InputError(f"--{option}: --quick has sizes of its own")


@app.command(
    "policies", epilog="Example: glidepath bench policies traces --no-speed --json > rows.json"
)
def policies(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Folder of the public traces; a workload for --seed-study."
        ),
    ],
    seed_study: Annotated[
        bool,
        typer.Option("--seed-study", help="Compare loads and arms as DARE-ML's experiment does."),
    ] = False,
    users: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", help="Load of the study; may be repeated. Default: 10 20 50 100 200."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Workloads drawn for each load.")
    ] = 10,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Page of the study (.html) or its picture (.png, .svg); may be repeated.",
        ),
    ] = None,
    speed: Annotated[
        bool, typer.Option(help="Also time Philly, a million jobs and the gym.")
    ] = True,
    as_json: Json = False,
) -> int:
    """Compare results of other simulators with ours on the same traces."""
    for name in ("speed",) if seed_study else ("users", "seeds", "out"):
        if was_typed(context, name):
            given = "--speed and --no-speed" if name == "speed" else f"--{name}"
            where = "the traces: leave --seed-study out" if seed_study else "--seed-study"
            raise gp.InputError(f"{given}: only for {where}")
    refuse_twice("--users", users or ())
    if not source.is_dir():
        raise gp.IoError(f"{source}: no such folder")
    pages = out or [Path("seed-study.html")]
    for page in pages:
        if page.suffix not in (".html", ".png", ".svg"):
            raise gp.InputError(f"--out {page}: neither .html nor .png nor .svg")
        if seed_study:
            check_output("--out", page, source)
    if seed_study:
        loads = tuple(users or (10, 20, 50, 100, 200))
        return _study(source, loads, seeds, pages, as_json=as_json)
    return _references(source, speed=speed, as_json=as_json)


def _references(source: Path, *, speed: bool, as_json: bool) -> int:
    from glidepath._bench import policies as bench

    with progress("simulations", still=True):
        rows = bench.run(source, speed=speed)
    if not rows:
        raise gp.IoError(f"{source}: no *_reference.json with its traces in this folder")
    if as_json:
        emit(rows)
        return ANSWER
    print_rows(
        f"Policies on the traces of {source}",
        {
            **{name: f"{{{name}}}" for name in ("source", "case", "policy", "metric")},
            "ours": "{ours:,.6g}",
            "reference": "{reference:,.6g}",
            "deviation": "{deviation:+.2e}",
        },
        rows,
    )
    return ANSWER


def _study(
    source: Path, loads: tuple[int, ...], seeds: int, pages: list[Path], *, as_json: bool
) -> int:
    from glidepath._bench import seed_study as bench

    with progress("simulations") as update:
        rows = bench.run(source, users=loads, seeds=seeds, progress=update)
    for path in pages:
        bench.write(path, source, rows)
    if as_json:
        emit(rows)
        return ANSWER
    _print_study(source, rows, seeds)
    for row in bench.factors(rows):
        say(
            f"{row['users']} users: mean JCT {row['without_interruption']:.2f} of fifo without "
            f"interruption; with it wait / {row['wait']:.1f}, JCT / {row['JCT']:.1f}, "
            f"energy / {row['energy']:.1f}: {row['reached']}"
        )
    say(f"written: {', '.join(map(str, pages))}")
    return ANSWER


_Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", "-p", metavar="NAME", help="A policy; may be repeated. Default: five of them."
    ),
]
_Sigmas = Annotated[
    list[float] | None,
    typer.Option(
        min=0.0,
        metavar="SIGMA",
        help="Error of the forecasts; may be repeated. Default: 0.5 and 1.",
    ),
]


@app.command("starts", epilog="Example: glidepath bench starts trace.csv --gpus 60 --policy fifo")
def starts(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="A log of jobs.")],
    gpus: Annotated[int, typer.Option(min=1, metavar="N", help="GPUs of the cluster.")],
    policy: _Policies = None,
    forecast_sigma: _Sigmas = None,
    moments: Annotated[
        int, typer.Option(min=1, metavar="N", help="Random moments of each run.")
    ] = 40,
    samples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Samples of each forecast.")
    ] = SAMPLES,
    recent: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Last jobs from which those to come are drawn; 0 = none."
        ),
    ] = 300,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each kind.")] = 1,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the jobs of each run again from the trace.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Forecast when waiting jobs start, at random moments of a trace, and score it.

    The coverage is that of the 80 % interval, the error the median of |log(1 + wait in minutes)|,
    beside that of the same play-forward with twice each true duration and nobody to come, as a
    scheduler estimates from time limits. The error expected is what the intervals themselves say
    that it is; durations known leaves in doubt only who will come.
    """
    from glidepath._bench import starts as bench

    refuse_twice("--policy", policy or ())
    refuse_twice("--forecast-sigma", forecast_sigma or ())
    workload = open_workload(trace, None, 0, gpus)
    with progress("simulations", still=True):
        rows = bench.run(
            workload,
            policies=policy or bench.POLICIES,
            sigmas=forecast_sigma if forecast_sigma is not None else bench.SIGMAS,
            moments=moments,
            samples=samples,
            recent=recent,
            seeds=seeds,
            redraw=redraw,
        )
    if as_json:
        emit(rows)
        return ANSWER
    print_rows(
        f"Starts forecast on {workload.name}, {counted(gpus, 'GPU')}",
        {
            "policy": "{policy}",
            "sigma": "{forecast_sigma:g}",
            "moments": "{moments}",
            "waiting": "{waiting}",
            "coverage": "{coverage:.2f} ±{coverage_se:.2f}",
            "error": "{error:.2f}",
            "expected": "{error_expected:.2f}",
            "durations known": "{error_of_known:.2f}",
            "error from limits": "{error_of_limits:.2f}",
            "ratio": "{ratio:.2f}",
            "ms a call": "{wall_ms:.0f}",
        },
        rows,
    )
    return ANSWER


def _print_study(source: Path, rows: list[dict[str, Any]], seeds: int) -> None:
    def mean(metric: str, unit: float) -> Callable[[dict[str, Any]], str]:
        return lambda row: f"{row[metric] / unit:.1f} ±{row[f'{metric}_ci'] / unit:.1f}"

    print_rows(
        f"{source.name}, {seeds} seeds; in the last three columns fifo of the same arm is 1",
        {
            "users": "{users}",
            "arm": "{arm}",
            "policy": "{policy}",
            "total wait h": mean("total_wait_s", 3600),
            "mean JCT h": mean("mean_jct_s", 3600),
            "kWh": mean("energy_kwh", 1),
            "wait": "{total_wait_s_ratio:.3f}",
            "JCT": "{mean_jct_s_ratio:.3f}",
            "energy": "{energy_kwh_ratio:.3f}",
        },
        rows,
    )
