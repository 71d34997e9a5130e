# SPDX-License-Identifier: Apache-2.0
"""``glidepath bench``: one verb per stage, each beside its rivals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath.cli._bench_stoppers import bench_stoppers
from glidepath.cli._console import (
    ANSWER,
    WARNING,
    Json,
    emit,
    plain,
    print_table,
    progress,
    save,
    stdout,
)

app = typer.Typer(
    name="bench", help="Measure a stage: on your own data, beside its rivals.", no_args_is_help=True
)


@app.callback()
def _bench() -> None:
    """Measure a stage: on your own data, beside its rivals."""


@app.command(
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
    plot_cutoffs: Annotated[
        Path | None, typer.Option(help="Draw errors against the share of the run seen.")
    ] = None,
    json_: Json = False,
) -> None:
    """Cut finished curves, forecast the rest, and score us and the usual baselines."""
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
    if json_:
        emit({key: value for key, value in result.to_dict().items() if key != "rows"})
        return
    for by, title in ((None, "All collections"), ("collection", "By collection")):
        table = result.table(by=by)
        columns = list(table[0])
        cells = [
            [f"{v:.3f}" if isinstance(v, float) else str(v) for v in r.values()] for r in table
        ]
        print_table(title, columns, cells)
    decisions = {k: f"{v:.3f}" for k, v in result.decisions().items()}
    print_table("Decisions of glidepath", list(decisions), [list(decisions.values())])


app.command("stoppers", epilog="Example: glidepath bench stoppers data/sweeps --seeds 3")(
    bench_stoppers
)


@app.command("fit", epilog="Example: glidepath bench fit --quick")
def bench_fit(
    quick: Annotated[bool, typer.Option(help="One family, one round.")] = False,
    as_json: Json = False,
) -> None:
    """Time fits beside SciPy and, where `fit_rivals` is built, Ceres, TinySolver and cminpack."""
    from glidepath._bench import fit as bench_fit

    sizes: dict[str, Any] = {"families": ("pow3",), "rounds": 1} if quick else {}
    with progress("fits", still=True) as update:
        rows = bench_fit.run(**sizes, progress=update)
    verdicts = bench_fit.verdicts(rows)
    if as_json:
        emit({"rows": rows, "verdicts": verdicts})
        return
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
        "Ratios that were asked for; the worse of two families",
        ("what", "against", "family", "n", "measured", "target", ""),
        (
            (
                row["what"],
                row["against"],
                row["family"],
                str(row["n"]),
                f"{row['measured']:.3g}",
                f"{row['target']:g}",
                "met" if row["met"] else "missed",
            )
            for row in verdicts
        ),
    )


@app.command("plan", epilog="Example: glidepath bench plan --quick")
def bench_plan(
    traces: Annotated[
        Path | None, typer.Option(help="Folder with the tables of throughput and pairs.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes and few instances.")] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="rounds, plans, exact, ortools, highs, certificates, scaling or sharing; may be"
            " repeated. All of them by default, the last two with --traces."
        ),
    ] = None,
    instances: Annotated[
        int, typer.Option(min=1, help="Whose certificate is checked against the MILP of HiGHS.")
    ] = 500,
    largest: Annotated[int, typer.Option(min=2, help="Jobs of the largest of these.")] = 1000,
    as_json: Json = False,
) -> int:
    """Time and certify the planner beside HiGHS; exit code 1 where it falls short of a target."""
    from glidepath._bench import plan as bench_plan

    parts = part or [name for name in bench_plan.PARTS if name != "ortools" or not quick]
    sizes: dict[str, Any] = (
        {
            "sizes": (100, 1_000),
            "repeats": 3,
            "highs_jobs": 200,
            "milp_instances": min(instances, 10),
            "milp_jobs": min(largest, 30),
            "scaling_jobs": 10,
        }
        if quick
        else {"milp_instances": instances, "milp_jobs": largest}
    )
    with progress("plans", still=True) as update:
        rows = bench_plan.run(**sizes, parts=parts, traces=traces, progress=update)
    if as_json:
        emit(rows)
    else:
        verdict = {None: "", True: "met", False: "missed"}
        print_table(
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


@app.command(
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
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Page of the study (.html) or its picture (.png, .svg); repeat for both."
        ),
    ] = None,
    speed: Annotated[bool, typer.Option(help="Also time Philly, 10^6 jobs and the gym.")] = True,
    as_json: Json = False,
) -> int:
    """Put results of other simulators beside ours, with the deviation."""
    from glidepath._bench import policies as bench_policies

    if not source.is_dir():
        raise gp.IoError(f"{source}: no such folder")
    pages = out or [Path("seed-study.html")]
    for page in pages:
        if page.suffix not in (".html", ".png", ".svg"):
            raise gp.InputError(f"--out {page}: neither .html nor .png nor .svg")
    if seed_study:
        with progress("simulations") as update:
            rows = bench_policies.seed_study(
                source, users=tuple(users or (10, 20, 50, 100, 200)), seeds=seeds, progress=update
            )
        for path in pages:
            bench_policies.write_study(path, source, rows)
    else:
        with progress("simulations", still=True):
            rows = bench_policies.run(source, speed=speed)
        if not rows:
            raise gp.IoError(f"{source}: no *_reference.json with its traces in this folder")
    if as_json:
        emit(rows)
    elif seed_study:
        _print_study(source, rows, seeds)
        for row in bench_policies.verdicts(rows):
            stdout.print(
                f"{row['users']} users: mean JCT {row['without_interruption']:.2f} of fifo without "
                f"interruption; with it wait / {row['wait']:.1f}, JCT / {row['JCT']:.1f}, "
                f"energy / {row['energy']:.1f}: {row['reached']}",
                highlight=False,
                soft_wrap=True,
            )
        stdout.print(f"written: {', '.join(map(str, pages))}", highlight=False, soft_wrap=True)
    else:
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
