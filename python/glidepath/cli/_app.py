# SPDX-License-Identifier: Apache-2.0
"""The command line: its verbs put together, and what happens to an error.

With ``--json``, stdout carries one JSON document and nothing else. Exit codes: `EXIT_CODES`.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import glidepath as gp
from glidepath.cli import _bench as bench
from glidepath.cli import _slurm as slurm
from glidepath.cli._console import ANSWER, BAD_INPUT, INTERRUPTED, exit_codes, say, stderr, stdout
from glidepath.cli._fit import fit
from glidepath.cli._forecast import forecast
from glidepath.cli._metrics import metrics
from glidepath.cli._place import place
from glidepath.cli._plan import plan
from glidepath.cli._report import report
from glidepath.cli._simulate import simulate
from glidepath.cli._watch import watch

app = typer.Typer(
    name="glidepath",
    help="Forecast training-loss curves and schedule training jobs on tiered GPUs.",
    epilog=exit_codes(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    _open_closed_streams()
    _escape_what_no_byte_stands_for()
    try:
        code = typer.main.get_command(app).main(
            args=list(arguments) if arguments is not None else None,
            prog_name="glidepath",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _unread()
    except SystemExit as end:  # of typer or rich, which would end with 1: that stops a run
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return _unread()
    except (gp.InputError, gp.IoError, ImportError) as error:
        said = str(error).replace("say metric=", "say --metric")
        _complain(said.replace("pattern=r'", "--pattern '"))
        return BAD_INPUT
    except OSError as error:  # a file of an option, such as one that cannot be written
        _complain(": ".join(filter(None, (error.filename, error.strerror))) or str(error))
        return BAD_INPUT
    except TypeError as error:  # an option is a number, but may be too large for one
        if "expected a whole number of at most" not in str(error):
            raise
        _complain(str(error))
        return BAD_INPUT
    except Exception as error:
        return _usage(error)
    return code if isinstance(code, int) else ANSWER


def _open_closed_streams() -> None:
    """Open what whoever started us closed, or the first file that is opened takes its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _escape_what_no_byte_stands_for() -> None:
    """Let a name or sign that the encoding of a stream lacks be printed as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")


def _unread() -> int:
    """End where nobody reads on, such as `glidepath … | head -1`: what was read is an answer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ANSWER


def _usage(error: Any) -> int:
    """Print an error of click's own, which knows its exit code; raise any other again."""
    if not hasattr(error, "format_message"):
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # the help
    else:
        said = _wrong_number(error) or _several_logs(error) or error.format_message().rstrip(".")
        context = getattr(error, "ctx", None)
        _complain(f"{said} (see {context.command_path if context else 'glidepath'} --help)")
    return int(error.exit_code)


def _several_logs(error: Any) -> str | None:
    """Say what to do with several logs, as `runs/*.csv` of a shell makes them; None else."""
    _, surplus, more = error.format_message().partition("unexpected extra argument")
    context = getattr(error, "ctx", None)
    if not surplus or context is None:
        return None
    taken = [each.name for each in context.command.params if each.param_type_name == "argument"]
    if taken != ["file"]:
        return None
    others = more.removeprefix("(s)").strip(" .").removeprefix("(").removesuffix(")")
    return f"expected one log, or one folder of logs, not also {others}"


_NUMBERS = {
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "{le:g} or less",
}


def _wrong_number(error: Any) -> str | None:
    """Write what pydantic, which newer typers read numbers by, refuses as we refuse; None else."""
    option = getattr(error, "param", None)
    faults: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if option is None or not faults or faults[0]["type"] not in _NUMBERS:
        return None
    fault = faults[0]
    expected = _NUMBERS[fault["type"]].format(**fault.get("ctx", {}))
    return f"{option.opts[0]} is {fault['input']}, expected {expected}"


def _complain(sentence: str) -> None:
    with suppress(OSError):  # where nobody can be told there is still the exit code
        say(f"glidepath: {sentence}", to=stderr, style="red")


def _version(shown: bool) -> None:
    if shown:
        stdout.print(gp.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command(epilog="Example: glidepath metrics run/train.log")(metrics)
app.command(epilog="Example: glidepath fit data/curves/digits-mlp.csv.gz --family pow3")(fit)
app.command(
    epilog="Example: glidepath forecast data/curves/digits-mlp.csv.gz --observed 0.3 --target 0.4"
)(forecast)
app.command(
    epilog="Example: glidepath watch run/metrics.csv --target 1.8 --until-decided;"
    " [ $? -eq 1 ] && scancel 71\n\n"
    + exit_codes({0: "every run may go on", 1: "a run is lost: never, diverged"}),
)(watch)
app.command(epilog="Example: glidepath plan data/workloads/supercom --users 50 --at-h 12")(plan)
app.command(epilog="Example: glidepath place nodes.csv pods.csv --expected last_month.csv")(place)
app.command(
    epilog="Example: glidepath simulate data/workloads/supercom --users 50 --compare"
    " --report report.html"
)(simulate)
app.command(
    epilog="Example: glidepath report data/curves/docs-lstm.csv.gz --target 2.0\n\n"
    "Example: glidepath report data/workloads/supercom -o policies.html"
)(report)
app.add_typer(bench.app)
app.add_typer(slurm.app)


def _fill_width(verbs: typer.Typer) -> None:
    """Let the paragraphs of help fill the width of a terminal, not that of our sources."""
    for verb in verbs.registered_commands:
        paragraphs = (inspect.getdoc(verb.callback) or "").split("\n\n")
        verb.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    for group in verbs.registered_groups:
        if group.typer_instance is not None:
            _fill_width(group.typer_instance)


_fill_width(app)


if __name__ == "__main__":
    sys.exit(main())
