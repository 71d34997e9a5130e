# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: exit codes, options, the two streams, tables, progress and input."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import glidepath as gp
from glidepath._answer import Columns, cells
from glidepath._core import SimulationOptions
from glidepath._drafts import write_whole
from glidepath._json import plain
from glidepath._results import counted, require
from glidepath._watch import READING
from glidepath.readers._folder import passing_over

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_CODES = {
    0: "an answer",
    1: "an answer with a warning status",
    2: "bad input",
    70: "a fault of glidepath",
    130: "Ctrl-C",
}
ANSWER, WARNING, BAD_INPUT, _, INTERRUPTED = EXIT_CODES
T = TypeVar("T")


def exit_codes(own: Mapping[int, str] | None = None) -> str:
    """Write the table of exit codes; a verb may have words of its own for some."""
    meanings = {**EXIT_CODES, **(own or {})}
    return f"Exit codes: {', '.join(f'{code} {text}' for code, text in meanings.items())}."


stdout = Console(emoji=False)  # 1:a:2 is no picture
stderr = Console(stderr=True, emoji=False)
_LONGEST_LINE = 100_000  # of what is printed to no terminal, which has no width

_FEW_PASSED = 5  # logs of a folder that are not read, each with its reason

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
    str | None, typer.Option(metavar="NAME", help="The metric of the log; default: its loss.")
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
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed for drawing users.")]
Gpus = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="GPUs of the cluster, for a CSV of jobs."),
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


def shown(text: str, style: str = "") -> Text:
    """Write a text that came from elsewhere: what does not print, such as ESC, as its escape."""
    return Text("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), style)


def say(sentence: str, *, to: Console = stdout, style: str = "") -> None:
    """Print a sentence on one line."""
    to.print(shown(sentence, style), highlight=False, soft_wrap=True)


def begins_at_target(trace: gp.Trace, row: Mapping[str, Any]) -> bool:
    """Whether a run, of which `row` says when it is at its target, was there at its first value."""
    return bool(row["reach_q10"] == row["reach_q90"] == trace.step[0])


def doubt_target(traces: Sequence[gp.Trace], target: float | None) -> None:
    """Ask whether a target that these runs begin at is in their unit, such as 0.9 of 90 %."""
    if target is None or not traces:
        return
    first = traces[0]
    more = f", and of {len(traces) - 1} more" if len(traces) > 1 else ""
    say(
        f"{first.name}{more}: the first value, {first.loss[0]:.4g}, is at the target already:"
        f" is --target {target:g} in the unit of {first.metric}?",
        to=stderr,
    )


def emit(document: Any) -> None:
    """Print the one JSON document."""
    sys.stdout.write(json.dumps(plain(document), indent=1, allow_nan=False) + "\n")


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


def hint(*options: str) -> None:
    """Name on stderr what else the command can say."""
    if options:
        say(f"See also: {'; '.join(options)}.", to=stderr, style="dim")


def check_reached_by(reached_by: str | None, target: float | None) -> None:
    if reached_by is not None and target is None:
        raise gp.InputError(f"--reached-by {reached_by}: say with --target what is to be reached")


def check_budget(budget: float | None) -> None:
    if budget is not None and not 0 < budget < math.inf:
        raise gp.InputError(f"--budget is {budget:g}, expected a step above 0")


def chosen(file: str, run: str | None, metric: str | None, pattern: str | None) -> list[gp.Trace]:
    """Read the runs of a file that a command is about; say what a folder has that is not read."""
    with progress("reading"), passing_over() as passed:
        traces = gp.read_traces(file, metric=metric, pattern=pattern)
    for sentence in passed[:_FEW_PASSED]:
        say(f"passed over: {sentence}", to=stderr)
    if len(passed) > _FEW_PASSED:
        say(f"passed over: {counted(len(passed), 'log')} in all", to=stderr)
    found = [trace for trace in traces if run in (None, trace.name)]
    for trace in found:
        for note in trace.notes:  # what the reader had to repair
            say(f"{trace.name}: {note}", to=stderr)
    if not found:
        raise gp.InputError(no_run(file, run, traces))
    return found


def no_run(file: str, run: str | None, traces: Sequence[gp.Trace]) -> str:
    """Say that a log lacks the run of `--run`, and which it has."""
    some = ", ".join(repr(trace.name) for trace in traces[:3])
    more = f" and {len(traces) - 3} more" if len(traces) > 3 else ""
    return f"{file}: no run {run!r}; it holds {some}{more}"


def called(file: str) -> str:
    """Give the name of a log for a title, also of a folder such as `.`."""
    return Path(file).name or Path(file).resolve().name


def learned(
    past: str | None,
    metric: str | None,
    pattern: str | None,
    live: Sequence[gp.Trace],
    *,
    quiet: bool,
) -> gp.PastRuns | None:
    """Learn from the runs of ``--past``, without those in `live`; say how many unless quiet."""
    if past is None:
        return None
    runs = gp.read_traces(past, metric=metric, pattern=pattern)
    finished = gp.PastRuns._restored(runs, gp.Widths()).without(*live).runs
    if not finished:
        raise gp.InputError(f"--past {past}: it holds only the runs to be forecast")
    used = f"--past: {len(finished)} of {counted(len(runs), 'run')} used"
    left = len(runs) - len(finished)
    said = f", {left} left out: to be forecast, or empty" if left else ""
    if not quiet:
        say(f"{used}{said}", to=stderr, style="dim")
    with progress("learning"):
        return gp.PastRuns(finished)


_WRITTEN = (".html", ".png", ".svg", ".pdf")  # what a command may write again


def check_output(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse to write over a folder, or a file that the command reads, by itself or in a folder.

    Before hours of work, not after: a file in a folder that is not there is refused, too.
    """
    if output is None:
        return
    if not output.exists():
        if not output.parent.is_dir():
            raise gp.IoError(f"{option} {output}: no folder {output.parent}")
        return
    if output.is_dir():
        raise gp.InputError(f"{option} {output} is a folder, expected a file")
    for given in (Path(each) for each in inputs if each is not None):
        try:
            within = given.is_dir() and output.resolve().is_relative_to(given.resolve())
            read = given.exists() and given.samefile(output)
        except OSError:  # such as an address that is too long for a name
            continue
        if read or (within and output.suffix not in _WRITTEN):
            raise gp.InputError(f"{option} {output}: this command reads that file")


def check_page(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse what `check_output` refuses, and a name of another kind of file.

    A pipe or a device has a name without an ending.
    """
    check_output(option, output, *inputs)
    if output is not None and output.suffix.lower() not in ("", ".html", ".htm"):
        raise gp.InputError(f"{option} {output}: neither .html nor .htm")


def check_plot(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse what `check_output` refuses, and a name that says no kind of picture."""
    check_output(option, output, *inputs)
    if output is None:
        return
    known = require("matplotlib.figure").Figure().canvas.get_supported_filetypes()
    if output.suffix[1:].lower() not in known:
        raise gp.InputError(f"{option} {output}: neither .png nor .svg nor .pdf")


def save(plot: Callable[..., Any], path: Path) -> None:
    figure = require("matplotlib.figure").Figure(figsize=(8.0, 4.5), layout="constrained")
    plot(ax=figure.add_subplot())
    picture = BytesIO()
    figure.savefig(picture, dpi=150, format=path.suffix[1:])
    try:
        write_whole(path, picture.getvalue())
    except OSError as error:
        raise gp.IoError(f"{path}: cannot write the picture: {error.strerror}") from None


@contextmanager
def with_cursor(drawing: Live | Progress) -> Iterator[None]:
    """Draw, and leave the terminal its cursor: who is ended by SIGTERM could not give it back."""
    with drawing:
        drawing.console.show_cursor(show=True)
        yield


@contextmanager
def progress(label: str, *, still: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr, in a terminal only.

    A still bar is drawn at each update and by no thread of its own: it does not disturb timings.
    """
    if not stderr.is_terminal:  # in which rich before 14.1 prints a line even of no bar
        yield lambda done, total: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
        auto_refresh=not still,
    )
    with with_cursor(bar):
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, refresh=still)

        yield update


def each(label: str, items: Sequence[T]) -> Iterator[T]:
    """Go through items under a bar."""
    with progress(label) as update:
        for done, item in enumerate(items):
            update(done, len(items))
            yield item


def print_table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(shown(column), justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(shown, row))
    console = wide_stdout()
    # A title of the table itself would be broken at the width of the table.
    console.print(shown(title, "table.title"), soft_wrap=True)
    console.print(table)


def wide_stdout() -> Console:
    """Give stdout; a pipe has no width, so nothing that is printed to one is broken."""
    return stdout if stdout.is_terminal else Console(width=_LONGEST_LINE, emoji=False)


def print_rows(title: str, columns: Columns, rows: Iterable[Mapping[str, Any]]) -> None:
    print_table(title, columns, cells(columns, rows))


def holds(row: Mapping[str, Any]) -> str:
    """Write whether a limit holds; nothing where there is none."""
    return {None: "", True: "yes", False: "no"}[row["holds"]]


def open_workload(
    source: Path,
    users: int | None,
    seed: int,
    gpus: int | None,
    gpus_per_node: int | None = None,
) -> gp.Workload:
    """Read or draw what a command simulates, and say what of it is not read."""
    workload = _workload_of(source, users, seed, gpus, gpus_per_node)
    for note in workload.notes:
        say(note, to=stderr)
    return workload


def _workload_of(
    source: Path, users: int | None, seed: int, gpus: int | None, gpus_per_node: int | None
) -> gp.Workload:
    if not source.exists():
        raise gp.IoError(f"{source}: no such file or folder")
    if source.is_dir():
        if gpus is not None:
            raise gp.InputError(f"--gpus: {source} is a workload, its tiers have their own GPUs")
        if gpus_per_node is not None:
            raise gp.InputError(f"--gpus-per-node: {source} is a workload with nodes of its own")
        if users is None:
            return gp.read_workload(source)
        return gp.generate_workload(source, users=users, seed=seed)
    if users is not None:
        raise gp.InputError(f"--users: {source} is a CSV of jobs, users are drawn from a folder")
    if gpus is None:
        raise gp.InputError(f"{source} is a CSV of jobs: say how many --gpus there are")
    return gp.Workload.from_trace(source, gpus=gpus, gpus_per_node=gpus_per_node)
