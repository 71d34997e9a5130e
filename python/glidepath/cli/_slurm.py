# SPDX-License-Identifier: Apache-2.0
"""`glidepath slurm status | plan | run | why`, and a rehearsal without Slurm."""

from __future__ import annotations

import math
import os
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glidepath._core import InputError
from glidepath._watch import ALPHA
from glidepath.cli._console import ANSWER, INTERRUPTED, WARNING, emit, say, stderr
from glidepath.cli._options import Gpus, Json, ReachedBy, Seed, Users, check_seed, was_typed
from glidepath.cli._signals import StopSignals
from glidepath.cli._slurm_rounds import document, print_jobs, print_round, story
from glidepath.engines._slurm_defaults import (
    DISRUPTIONS_PER_ROUND,
    GRACE_S,
    OBJECTIVE,
    ORDER,
    RESTART_S,
    ROUND_S,
    TIMEOUT_S,
)

if TYPE_CHECKING:  # the pilot takes time to load, and `--help` does not need it
    from glidepath.engines.slurm import Pilot, Round

app = typer.Typer(
    name="slurm",
    help="Advise the jobs of a Slurm cluster, or steer them.",
    epilog="Example: glidepath slurm --simulated data/workloads/supercom",
    no_args_is_help=True,
    invoke_without_command=True,
)

_Tiers = Annotated[
    str,
    typer.Option(
        "--tiers",
        metavar="NAME=SPEED,…",
        help="Partitions that are tiers, and their relative speeds. Default: found from the GPUs.",
    ),
]
_Trace = Annotated[
    list[str],
    typer.Option(
        "--trace",
        metavar="PATTERN",
        envvar="GLIDEPATH_TRACE",
        help="Where a job logs whose comment does not say it; %j %A %a %x %u as in sbatch. May be"
        " repeated.",
    ),
]
_Partitions = Annotated[
    str,
    typer.Option(
        "--partitions", metavar="NAME,…", help="Partitions whose jobs take part without a comment."
    ),
]
_AllUsers = Annotated[
    bool, typer.Option("--all-users", help="Jobs of all users, not only yours (for operators).")
]
_Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="The decision log.", envvar="GLIDEPATH_SLURM_LOG"),
]
_RoundS = Annotated[
    float, typer.Option("--round-s", metavar="SECONDS", help="Time between two rounds.")
]
_Order = Annotated[
    str, typer.Option("--order", metavar="defer|nice", help="How waiting jobs are kept behind.")
]
_Alpha = Annotated[
    float,
    typer.Option(
        "--alpha", metavar="RATE", help="Error rate of the verdicts will_reach and never."
    ),
]
_DisruptionsPerRound = Annotated[
    int,
    typer.Option(
        "--disruptions-per-round",
        metavar="N",
        help="Running jobs that a round stops or moves at most.",
    ),
]
_GraceS = Annotated[
    float,
    typer.Option(
        "--grace-s",
        metavar="SECONDS",
        help="Time from SIGUSR1 to requeue, for jobs that do not requeue themselves.",
    ),
]
_NoCancel = Annotated[
    bool,
    typer.Option(
        "--no-cancel", help="End no job, not even one that reached its target, is lost or diverged."
    ),
]
_Objective = Annotated[
    str, typer.Option("--objective", metavar="jct|learned", help="What the plan maximises.")
]
_RestartS = Annotated[
    float, typer.Option("--restart-s", metavar="SECONDS", help="Time that a move costs a job.")
]
_TimeoutS = Annotated[
    float,
    typer.Option(
        "--timeout-s", metavar="SECONDS", help="Time after which a Slurm command has failed."
    ),
]


@app.callback()
def rehearse(
    context: typer.Context,
    *,
    simulated: Annotated[
        Path | None,
        typer.Option(
            metavar="WORKLOAD",
            help="Rehearse without Slurm: play a workload folder, or a log of jobs, under the"
            " pilot on a simulated cluster; say what it decided, and what first come, first"
            " served takes. The options beside it are for this.",
        ),
    ] = None,
    gpus: Gpus = None,
    users: Users = None,
    seed: Seed = 0,
    checkpoint: Annotated[
        str, typer.Option(metavar="usr1|none", help="What the comments of the jobs say.")
    ] = "usr1",
    round_s: _RoundS = ROUND_S,
    order: _Order = ORDER,
    restart_s: _RestartS = RESTART_S,
    objective: _Objective = OBJECTIVE,
    disruptions_per_round: _DisruptionsPerRound = DISRUPTIONS_PER_ROUND,
    no_cancel: _NoCancel = False,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Keep the decision log here, for `why`."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Play the rehearsal; an option of it that a verb would drop is refused."""
    given = locals()
    del given["context"], given["simulated"]
    if context.invoked_subcommand is not None:
        typed = [option for option in context.params if was_typed(context, option)]
        if typed:
            option = typed[0].removeprefix("as_").replace("_", "-")
            raise InputError(
                f"--{option} before {context.invoked_subcommand}: it goes with --simulated, and a"
                " rehearsal has no verb"
            )
        return ANSWER
    if simulated is None:
        raise InputError("say --simulated WORKLOAD for a rehearsal, or a verb: --help lists them")
    check_seed(context, drawn=users is not None, options="--users")
    from glidepath.cli import _slurm_rehearsal

    return _slurm_rehearsal.play(simulated, **given)


def _default_log() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    try:
        return Path(state).expanduser() / "glidepath" / "slurm.db"
    except RuntimeError:  # such as in a container that does not know the user
        raise InputError(
            "there is no home directory for the decision log: say --log FILE"
        ) from None


def _speeds(text: str) -> dict[str, float] | None:
    if not text:
        return None
    speeds: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name in speeds:
            raise InputError(f"--tiers: {name} stands twice")
        try:
            speeds[name] = float(value) if equals else 1.0
        except ValueError:
            speeds[name] = math.nan
        if not name or not (0 < speeds[name] < math.inf):
            raise InputError(f"--tiers: cannot read {part!r}, expected NAME=SPEED")
    return speeds


def _pilot(
    *,
    tiers: str,
    trace: list[str],
    partitions: str,
    all_users: bool,
    log: Path | None,
    timeout_s: float = TIMEOUT_S,
    act: bool = False,
    no_cancel: bool = False,
    **options: Any,
) -> Pilot:
    """Make the pilot of a verb from its options by name."""
    from glidepath.engines.slurm import Pilot, PilotOptions, Slurm

    scheduler = Slurm(
        tiers=_speeds(tiers),
        partitions=[name.strip() for name in partitions.split(",") if name.strip()],
        all_users=all_users,
        timeout_s=timeout_s,
    )
    patterns = tuple(trace) or PilotOptions().trace_patterns
    settings = PilotOptions(
        trace_patterns=patterns,
        mode="act" if act else "advise",
        cancel=not no_cancel,
        **options,
    )
    return Pilot(scheduler, log or _default_log(), settings)


@app.command(epilog="Example: glidepath slurm status")
def status(
    *,
    tiers: _Tiers = "",
    trace: _Trace = [],  # noqa: B006 - how typer repeats an option
    partitions: _Partitions = "",
    all_users: _AllUsers = False,
    log: _Log = None,
    alpha: _Alpha = ALPHA,
    reached_by: ReachedBy = None,
    as_json: Json = False,
) -> int:
    """Show your jobs: forecast, verdict, tier, reason. Changes nothing."""
    given = locals()
    del given["as_json"]
    return _show(_pilot(**given).look(), as_json=as_json, with_commands=False)


@app.command(epilog="Example: glidepath slurm plan --tiers slow=1,fast=3")
def plan(
    *,
    tiers: _Tiers = "",
    trace: _Trace = [],  # noqa: B006
    partitions: _Partitions = "",
    all_users: _AllUsers = False,
    log: _Log = None,
    round_s: _RoundS = ROUND_S,
    order: _Order = ORDER,
    restart_s: _RestartS = RESTART_S,
    objective: _Objective = OBJECTIVE,
    no_cancel: _NoCancel = False,
    disruptions_per_round: _DisruptionsPerRound = DISRUPTIONS_PER_ROUND,
    alpha: _Alpha = ALPHA,
    reached_by: ReachedBy = None,
    as_json: Json = False,
) -> int:
    """Show the exact commands that a round would run now. Changes nothing."""
    given = locals()
    del given["as_json"]
    return _show(_pilot(**given).look(), as_json=as_json, with_commands=True)


@app.command(epilog="Example: glidepath slurm run --tiers slow=1,fast=3")
def run(
    *,
    act: Annotated[
        bool, typer.Option("--act", help="Carry the plan out; without it, only advise.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, metavar="N", help="End after this many rounds.")
    ] = None,
    tiers: _Tiers = "",
    trace: _Trace = [],  # noqa: B006
    partitions: _Partitions = "",
    all_users: _AllUsers = False,
    log: _Log = None,
    round_s: _RoundS = ROUND_S,
    order: _Order = ORDER,
    grace_s: _GraceS = GRACE_S,
    restart_s: _RestartS = RESTART_S,
    objective: _Objective = OBJECTIVE,
    no_cancel: _NoCancel = False,
    disruptions_per_round: _DisruptionsPerRound = DISRUPTIONS_PER_ROUND,
    alpha: _Alpha = ALPHA,
    reached_by: ReachedBy = None,
    timeout_s: _TimeoutS = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Plan round after round until interrupted. It may be killed and started again at any time."""
    given = locals()
    del given["rounds"], given["as_json"]
    pilot = _pilot(**given)
    seen: list[Round] = []

    def note(result: Round) -> None:
        if result.remark and not (seen and seen[-1].remark == result.remark):
            _warn(result.remark)
        if not as_json:
            seen.clear()  # the last one will do
            print_round(result)
        seen.append(result)

    with StopSignals() as stop:
        pilot.run(rounds=rounds, stop=stop, on_round=note)
        caught = stop.numbers_caught()
    if as_json:
        emit({"rounds": [document(result) for result in seen]})
    if caught:
        return INTERRUPTED if signal.SIGINT in caught else ANSWER
    if seen and seen[-1].trouble:
        if as_json:
            _warn(seen[-1].trouble)
        return WARNING
    return ANSWER


@app.command(epilog="Example: glidepath slurm why 4711")
def why(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="Number of the job, such as 17 or 12_3.")
    ],
    *,
    log: _Log = None,
    as_json: Json = False,
) -> int:
    """Show what was forecast, decided and done for a job, and why."""
    from glidepath.engines.slurm import DecisionLog, LogError

    path = log or _default_log()
    if not path.exists():
        raise InputError(f"{path}: no such decision log: nothing was decided so far")
    try:
        with DecisionLog(path, readonly=True) as book:
            events = book.events(job)
    except LogError as error:
        raise InputError(str(error)) from None
    if as_json:
        keys = ("at_s", "round", "kind", "phase", "why", "command", "detail")
        rows = [{key: getattr(event, key) for key in keys} for event in events]
        emit({"job": job, "story": rows})
    else:
        for line in story(events):
            say(line)
    if not events:
        _warn(f"{path} has no entry for job {job}")
        return WARNING
    return ANSWER


def _warn(sentence: str) -> None:
    say(f"glidepath: {sentence}", to=stderr)


def _show(result: Round, *, as_json: bool, with_commands: bool) -> int:
    if as_json:
        emit({"rounds": [document(result)]})
    elif not result.trouble:
        print_jobs(result)
        if with_commands:
            for command in result.commands:
                say(shlex.join(command))
    if result.remark:
        _warn(result.remark)
    if result.trouble:
        _warn(result.trouble)
        return WARNING
    return ANSWER
