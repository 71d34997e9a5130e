# SPDX-License-Identifier: Apache-2.0
"""`glidepath bench`: one verb a stage, each beside other people's programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath._json import plain
from glidepath.cli._bench_stoppers import bench_stoppers
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    Json,
    emit,
    print_table,
    progress,
    save,
    stdout,
)

app = typer.Typer(
    name="bench",
    help="Measure a stage on your own data, beside other programs.",
    no_args_is_help=True,
)


@app.callback()
def _bench() -> None:
    """Measure a stage on your own data, beside other programs."""


_HOLDS = {None: "", True: "yes", False: "no"}


@app.command(
    "accuracy",
    epilog="Example: glidepath bench accuracy data/curves --max-curves 5 --method glidepath",
)
def accuracy(
    folder: Annotated[Path, typer.Argument(help="Finished curves: CSV files, or one of them.")],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="A method; may be repeated. Default: the usual ones."),
    ] = None,
    max_curves: Annotated[
        int, typer.Option(min=1, help="Curves drawn from each file, with a fixed seed.")
    ] = 20,
    constants: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another table of constants.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every row: .json or .parquet.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the reliability diagram.")
    ] = None,
    plot_cutoffs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw errors against the share of the run observed."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Cut finished curves, forecast the rest, and score glidepath and the usual baselines."""
    from glidepath._bench import accuracy as backtest

    with progress("curves") as update:
        result = backtest.run(
            folder,
            methods=tuple(method) if method else backtest.DEFAULT_METHODS,
            max_curves=max_curves,
            constants=constants.read_text(errors="replace") if constants else None,
            progress=update,
        )
    if plot is not None:
        save(result.plot, plot)
    if plot_cutoffs is not None:
        save(result.plot_cutoffs, plot_cutoffs)
    if rows is not None and rows.suffix == ".parquet":
        result.to_pandas().to_parquet(rows)
    elif rows is not None:
        rows.write_text(json.dumps(plain(result.to_dict())))
    if as_json:
        emit({key: value for key, value in result.to_dict().items() if key != "rows"})
    else:
        _print_accuracy(result)
    return ANSWER


def _print_accuracy(result: Any) -> None:
    for by, title in ((None, "All collections"), ("collection", "By collection")):
        table = result.table(by=by)
        cells = [[_cell(value) for value in row.values()] for row in table]
        print_table(title, list(table[0]), cells)
    decisions = result.decisions()
    cells = [[_cell(value) for value in decisions.values()]]
    print_table("Decisions of glidepath", list(decisions), cells)


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


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

    sizes: dict[str, Any] = {"families": ("pow3",), "rounds": 1} if quick else {}
    with progress("fits", still=True) as update:
        rows = bench.run(**sizes, progress=update)
    limits = bench.limits(rows)
    if as_json:
        emit({"rows": rows, "limits": limits})
    else:
        _print_fits(rows, limits)
    return ANSWER


def _print_fits(rows: Iterable[dict[str, Any]], limits: Iterable[dict[str, Any]]) -> None:
    print_table(
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
    print_table(
        "Ratios and their limits; the worse of two families",
        ("what", "against", "family", "n", "measured", "limit", "holds"),
        (
            (
                row["what"],
                row["against"],
                row["family"],
                str(row["n"]),
                f"{row['measured']:.3g}",
                f"{row['limit']:g}",
                _HOLDS[row["holds"]],
            )
            for row in limits
        ),
    )


@app.command("plan", epilog="Example: glidepath bench plan --quick")
def plan(
    traces: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with the tables of throughput and pairs."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few instances.")] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="rounds, plans, exact, ortools, highs, certificates, scaling or sharing; may be"
            " repeated. Default: all of them, scaling and sharing with --traces only."
        ),
    ] = None,
    instances: Annotated[
        int, typer.Option(min=1, help="Instances whose certificate HiGHS checks.")
    ] = 500,
    largest: Annotated[int, typer.Option(min=2, help="Jobs of the largest instance.")] = 1000,
    as_json: Json = False,
) -> int:
    """Time and certify the planner beside HiGHS; exit code 1 where a limit does not hold."""
    from glidepath._bench import plan as bench

    parts = part or [name for name in bench.PARTS if name != "ortools" or not quick]
    sizes: dict[str, Any] = {"milp_instances": instances, "milp_jobs": largest}
    if quick:
        sizes = {
            "sizes": (100, 1_000),
            "repeats": 3,
            "highs_jobs": 200,
            "milp_instances": min(instances, 10),
            "milp_jobs": min(largest, 30),
            "scaling_jobs": 10,
        }
    with progress("plans", still=True) as update:
        rows = bench.run(**sizes, parts=parts, traces=traces, progress=update)
    if as_json:
        emit(rows)
    else:
        _print_plans(rows)
    return WARNING if any(row["holds"] is False for row in rows) else ANSWER


def _print_plans(rows: Iterable[dict[str, Any]]) -> None:
    print_table(
        "Planner, CPU time of one thread",
        ("what", "measured", "limit", "holds"),
        (
            (
                row["what"],
                f"{row['measured']:.4g} {row['unit']}",
                "" if row["limit"] is None else f"{row['limit']:g}",
                _HOLDS[row["holds"]],
            )
            for row in rows
        ),
    )


@app.command(
    "policies", epilog="Example: glidepath bench policies traces --no-speed --json > rows.json"
)
def policies(
    source: Annotated[
        Path, typer.Argument(help="Folder of the public traces; a workload for --seed-study.")
    ],
    seed_study: Annotated[
        bool,
        typer.Option("--seed-study", help="Compare loads and arms as DARE-ML's experiment does."),
    ] = False,
    users: Annotated[
        list[int] | None,
        typer.Option(help="Load of the study; may be repeated. Default: 10 20 50 100 200."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Workloads drawn for each load.")] = 10,
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
    if not source.is_dir():
        raise gp.IoError(f"{source}: no such folder")
    pages = out or [Path("seed-study.html")]
    for page in pages:
        if page.suffix not in (".html", ".png", ".svg"):
            raise gp.InputError(f"--out {page}: neither .html nor .png nor .svg")
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
    print_table(
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


def _study(
    source: Path, loads: tuple[int, ...], seeds: int, pages: list[Path], *, as_json: bool
) -> int:
    from glidepath._bench import policies as bench

    with progress("simulations") as update:
        rows = bench.seed_study(source, users=loads, seeds=seeds, progress=update)
    for path in pages:
        bench.write_study(path, source, rows)
    if as_json:
        emit(rows)
        return ANSWER
    _print_study(source, rows, seeds)
    for row in bench.factors(rows):
        stdout.print(
            f"{row['users']} users: mean JCT {row['without_interruption']:.2f} of fifo without "
            f"interruption; with it wait / {row['wait']:.1f}, JCT / {row['JCT']:.1f}, "
            f"energy / {row['energy']:.1f}: {row['reached']}",
            highlight=False,
            soft_wrap=True,
        )
    stdout.print(f"written: {', '.join(map(str, pages))}", highlight=False, soft_wrap=True)
    return ANSWER


def _print_study(source: Path, rows: list[dict[str, Any]], seeds: int) -> None:
    def hours(row: dict[str, Any], metric: str) -> str:
        return f"{row[metric] / 3600:.1f} ±{row[f'{metric}_ci'] / 3600:.1f}"

    print_table(
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
