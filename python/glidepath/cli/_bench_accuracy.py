# SPDX-License-Identifier: Apache-2.0
"""``glidepath bench accuracy``, ``compare`` and ``reach``: score forecasters on finished runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath._answer import Columns
from glidepath._bench.accuracy.methods import METHODS
from glidepath._results import counted
from glidepath.cli._console import ANSWER, WARNING, emit, print_rows, progress, say, stderr
from glidepath.cli._options import Json, Metric
from glidepath.cli._outputs import check_output, check_plot, save

__all__ = ["ACCURACY_VERBS"]

Source = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Finished runs: a log of any format, or a folder.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="module:callable of yours, glidepath[+lr][+past][+calibrated], or one of "
        f"{', '.join(METHODS)}; may be repeated.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Draws the curves, and is handed to methods.")
]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Results file (.json) or page (.html) to write; may be repeated."
    ),
]


def accuracy(
    folder: Source,
    method: Methods = None,
    max_curves: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Curves drawn from each collection, by the seed."),
    ] = 20,
    cutoff: Annotated[
        list[float] | None,
        typer.Option(
            metavar="SHARE",
            help="Share of a curve that is seen; may be repeated. Default: .1 .2 .4 .6 .8.",
        ),
    ] = None,
    seed: Seed = 0,
    metric: Metric = None,
    constants: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another table of constants for ours.")
    ] = None,
    out: Out = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the first method's reliability.")
    ] = None,
    plot_cutoffs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw errors against the share of the run observed."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Cut finished curves, forecast the rest by each method, and compare them.

    Exit code 1 where a method failed on some prefix; failures are counted and shown.
    """
    from glidepath._bench.accuracy import CUTOFFS, DEFAULT_METHODS

    files = _checked_out(out, folder, constants)
    check_plot("--plot", plot, folder)
    check_plot("--plot-cutoffs", plot_cutoffs, folder)
    with progress("curves") as update, redirect_stdout(sys.stderr):  # methods may print
        result = gp.bench.accuracy(
            folder,
            tuple(method) if method else DEFAULT_METHODS,
            max_curves=max_curves,
            cutoffs=tuple(cutoff) if cutoff else CUTOFFS,
            seed=seed,
            metric=metric,
            constants=constants.read_text(errors="replace") if constants else None,
            progress=update,
        )
    if plot is not None:
        save(result.plot, plot)
    if plot_cutoffs is not None:
        save(result.plot_cutoffs, plot_cutoffs)
    return _show(result, files, as_json=as_json)


def compare(
    results: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Results files of bench accuracy.")
    ],
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Print results files again, several as one comparison, or write their page.

    Exit code 1 where a method failed on some prefix.
    """
    files = _checked_out(out, *results)
    return _show(gp.bench.read_accuracy(*results), files, as_json=as_json)


def reach(
    folder: Source,
    method: Methods = None,
    target: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE", help='Value to reach; default: "target" in the JSON beside each file.'
        ),
    ] = None,
    max_runs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs drawn from each collection.")
    ] = 40,
    past_runs: Annotated[
        int, typer.Option(min=0, metavar="N", help="Past runs that a method may see.")
    ] = 12,
    seed: Seed = 0,
    metric: Metric = None,
    as_json: Json = False,
) -> int:
    """Score when methods say that a run comes to its target.

    Exit code 1 where a method failed on some run.
    """
    from glidepath._bench.reach import DEFAULT_METHODS

    if target is not None and not math.isfinite(target):
        raise gp.InputError(f"--target is {target:g}, expected a number")
    with progress("runs") as update, redirect_stdout(sys.stderr):
        result = gp.bench.reach(
            folder,
            tuple(method) if method else DEFAULT_METHODS,
            target=target,
            max_runs=max_runs,
            past_runs=past_runs,
            seed=seed,
            metric=metric,
            progress=update,
        )
    if as_json:
        emit(result.to_dict())
    else:
        columns: Columns = {
            "collection": "{collection}",
            "method": "{method}",
            "n": "{n}",
            "failed": "{n_failed}",
            "median |log|": "{error:.3f}",
            "10 to 90 % holds": "{inside:.2f}",
            "P of arriving": "{probability:.3f}",
            "called hopeless": "{hopeless:.3f}",
            "ms each": "{wall_ms:.3g}",
        }
        print_rows("Time to target", columns, result.table())
        _print_failures(result.failures())
    return WARNING if result.failures() else ANSWER


def _checked_out(out: Sequence[Path] | None, *inputs: Path | None) -> list[Path]:
    """Give the files to write as absolute paths: a method may go to another folder."""
    for file in out or ():
        if file.suffix not in (".json", ".html"):
            raise gp.InputError(f"--out {file}: neither .json nor .html")
        check_output("--out", file, *inputs)
    return [file.absolute() for file in out or ()]


def _show(result: gp.bench.Accuracy, files: Sequence[Path], *, as_json: bool) -> int:
    from glidepath._report import write_accuracy

    for file in files:
        if file.suffix == ".json":
            result.write(file)
        else:
            write_accuracy(file, result)
    if as_json:
        emit({key: value for key, value in result.to_dict().items() if key != "rows"})
    else:
        _print(result)
    for file in files:
        say(f"written: {file}", to=stderr)
    return WARNING if result.failures() else ANSWER


def _print(result: gp.bench.Accuracy) -> None:
    from glidepath._report import accuracy as page

    collections = result.about.get("collections", [])
    passed = [each["trouble"] for each in collections if each.get("trouble")]
    for sentence in passed:
        say(f"passed over: {sentence}", to=stderr)
    left = sum(each.get("dropped", 0) for each in collections)
    out = [f"{counted(left, 'curve')} left out: short, flat or not finite"] * (left > 0)
    out += [f"{counted(len(passed), 'log')} not read"] * (len(passed) > 0)
    note = f" ({'; '.join(out)})" if out else ""
    print_rows(f"All collections{note}", page.SCORE_COLUMNS, result._with_intervals())
    print_rows("By collection", *page.by_collection(result))
    first = result.methods[0]
    pairs = [pair for score in ("crps", "error") for pair in result.pairs(score=score)]
    if pairs:
        print_rows(f"Against {first}, on the same prefixes", page.PAIR_COLUMNS, pairs)
    title = f"{first}: mean over groups, by share seen"
    print_rows(title, page.GROUP_COLUMNS, result.groups(first))
    decided = [{"method": name, **result.decisions(name)} for name in result.methods]
    decided = [line for line in decided if line["n"]]
    if decided:
        print_rows("Decisions and times to target", page.DECISION_COLUMNS, decided)
    _print_failures(result.failures())


def _print_failures(failures: Sequence[dict[str, Any]]) -> None:
    from glidepath._report.accuracy import FAILURE_COLUMNS

    if failures:
        print_rows("Failures, each counted as the largest error", FAILURE_COLUMNS, failures)


# Verb, function, example.
ACCURACY_VERBS = (
    (
        "accuracy",
        accuracy,
        "accuracy data/curves --max-curves 5 -m glidepath -m aic --out results.json",
    ),
    ("compare", compare, "compare results.json --out page.html"),
    ("reach", reach, "reach data/curves/docstring-t5.csv.gz --target 2.2 -m glidepath"),
)
