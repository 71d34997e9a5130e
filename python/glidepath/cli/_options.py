# SPDX-License-Identifier: Apache-2.0
"""The options that verbs share: what each is called, how its text is read, what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath._core import SimulationOptions
from glidepath._watch import READING

Log = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A log, a folder of logs, or the address of a server's page."
    ),
]


def runs_of(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a run from the log that the line names."""
    log = context.params.get("file") or next(iter(context.args), None)  # a line is not finished
    if log is None:
        return []
    try:
        traces = gp.read_traces(log)
    except (OSError, ValueError, ImportError):
        return []
    return [trace.name for trace in traces if trace.name.startswith(incomplete)]


Run = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this run.", autocompletion=runs_of)
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The metric of the log; default: the one that `metrics` marks."
    ),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="How a line of a console log is read: groups (?P<step>…) and (?P<value>…), if any "
        "epoch, lr and planned_steps, too.",
    ),
]
Target = Annotated[
    float | None, typer.Option(metavar="VALUE", help="Value of the metric that a run must reach.")
]
Budget = Annotated[
    float | None, typer.Option(metavar="STEP", help="Last step that a run may take.")
]


def _known_reading(reached_by: str | None) -> str | None:
    """Refuse another word before the command reads or waits for a log."""
    gp.Watch(target=0.0, reached_by=reached_by or READING)
    return reached_by


ReachedBy = Annotated[
    str | None,
    typer.Option(
        "--reached-by",
        callback=_known_reading,
        metavar="curve|point",
        help="What must be at the target: the median of the newest tenth of the logged values, or "
        "one value; default: what the name of the metric says.",
    ),
]


def was_typed(context: typer.Context, option: str) -> bool:
    """Whether an option of a command line was given, not left at its default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def check_seed(context: typer.Context, *, drawn: bool, options: str) -> None:
    """Refuse a seed where nothing is drawn by it; `options` are those that draw."""
    for option in ("seed", "seeds"):
        if was_typed(context, option) and not drawn:
            given = context.params[option]
            raise gp.InputError(f"--{option} {given}: nothing is drawn at random without {options}")


Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the first result: .png, .svg or .pdf.")
]
Users = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Draw the jobs of this many users, not those of jobs.csv."
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Seed of what is drawn: users; in `simulate` errors and failures, too.",
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="GPUs of the cluster, for a log of jobs."),
]
Planner = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OPTION=VALUE",
        help="An option of gp.plan for what calls it, such as max_wait_s=7200,"
        " power_cap_w=9000 or user_quota=ann:4,bob:2; may be repeated.",
    ),
]
Past = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="A log or folder of finished runs of the same kind, to learn from."
    ),
]
Lr = Annotated[
    str | None,
    typer.Option(
        "--lr",
        metavar="SCHEDULE",
        help="Learning rates of the whole run: linear, cosine or wsd:PEAK:STEPS[:WARMUP], "
        "constant:LR, or in forecast logged, those of a file that goes beyond --observed.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def numbers_by_name(text: str) -> dict[str, float] | None:
    """Read NAME:NUMBER,… of an option; None where it is something else."""
    pairs = [part.rpartition(":") for part in text.split(",")]
    try:
        numbers = {name: float(number) for name, colon, number in pairs if colon}
    except ValueError:
        return None
    if len(numbers) < len(pairs):
        return None
    return {name: int(n) if n.is_integer() else n for name, n in numbers.items()}


def planner_options(given: Sequence[str]) -> dict[str, Any] | None:
    """Read OPTION=VALUE: a number, a name, names in order, or NAME:NUMBER of several."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise gp.InputError(f"--planner: cannot read {text!r}, expected OPTION=VALUE")
        if name in options:
            raise gp.InputError(f"--planner: {name} is given twice")
        options[name] = _value(value)
    if not options:
        return None
    try:
        SimulationOptions(planner=options)
    except TypeError as error:  # a text of the command line, not a mistake of a program
        raise gp.InputError(f"--planner: {error}") from None
    return options


def _value(text: str) -> Any:
    """Give the value that a text of the command line stands for."""
    with suppress(ValueError):
        return float(text)
    parts = text.split(",")
    return numbers_by_name(text) or (parts if len(parts) > 1 else text)


def planned_lr(text: str | None) -> gp.Schedule | None:
    """Read ``--lr``."""
    if text is None:
        return None
    shape, *fields = text.split(":")
    try:
        numbers = [float(field) for field in fields]
        if shape == "constant" and len(numbers) == 1:
            return gp.Schedule.constant(numbers[0])
        if shape in ("linear", "cosine", "wsd") and len(numbers) in (2, 3):
            warmup = numbers[2] if len(numbers) == 3 else 0.0
            schedule: gp.Schedule = getattr(gp.Schedule, shape)(*numbers[:2], warmup=warmup)
            return schedule
    except gp.InputError as error:
        raise gp.InputError(f"--lr {text}: {error}") from None
    except ValueError:
        pass
    raise gp.InputError(
        f"--lr {text}: expected linear, cosine or wsd:PEAK:STEPS[:WARMUP], constant:LR, or in "
        "forecast logged"
    )


def check_reached_by(reached_by: str | None, target: float | None) -> None:
    if reached_by is not None and target is None:
        raise gp.InputError(f"--reached-by {reached_by}: say with --target what is to be reached")


def check_budget(budget: float | None) -> None:
    if budget is not None and not 0 < budget < math.inf:
        raise gp.InputError(f"--budget is {budget:g}, expected a step above 0")
