# SPDX-License-Identifier: Apache-2.0
"""What the verbs print: exit codes, the two streams, tables, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from glidepath._answer import Columns, cells
from glidepath._json import plain

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


def shown(text: str, style: str = "") -> Text:
    """Write a text that came from elsewhere: what does not print, such as ESC, as its escape."""
    return Text("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), style)


def say(sentence: str, *, to: Console = stdout, style: str = "") -> None:
    """Print a sentence on one line; where stderr cannot take it, the answer on stdout stands."""
    with suppress(OSError) if to is stderr else nullcontext():
        to.print(shown(sentence, style), highlight=False, soft_wrap=True)


def emit(document: Any) -> None:
    """Print the one JSON document."""
    sys.stdout.write(json.dumps(plain(document), indent=1, allow_nan=False) + "\n")


def hint(*options: str) -> None:
    """Name on stderr what else the command can say."""
    if options:
        say(f"See also: {'; '.join(options)}.", to=stderr, style="dim")


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
