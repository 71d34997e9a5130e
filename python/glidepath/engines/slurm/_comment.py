# SPDX-License-Identifier: Apache-2.0
"""The comment of a job: what its user asks there and, behind a bar, what we note."""

from __future__ import annotations

import functools
import math
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from glidepath import _words
from glidepath._trace import Direction

if TYPE_CHECKING:
    from glidepath.engines.slurm._job_forecast import JobView

#: A job whose comment begins with this word takes part.
KEYWORD = "glidepath"

# What a comment may say, so that no job can make the numbers of the others overflow.
_RANGES = {"target": (-1e30, 1e30), "budget": (1e-9, 1e15), "weight": (1e-6, 1e6)}

_CHANCE, _DONE = "P(target) ", "done "  # how the parts of a note before its reason begin
FAR_S = 1e9  # thirty years: no date, no time limit

CheckpointMode = Literal["none", "usr1", "requeue"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The request in the comment of a job, such as `glidepath target=0.1 budget=20000`.

    Attributes
    ----------
    target : float or None
        Value of the metric at which the run is done.
    budget : float or None
        Step at which the run ends in any case.
    trace : str
        Where the run logs: a file or a folder, with Slurm's %j %A %a %x %u; relative to the
        working directory of the job. Empty = `PilotOptions.trace_patterns`.
    metric : str
        Column of the log; empty = the one that `read_traces` takes.
    direction : {"min", "max"} or None
        Whether low or high values of it are better; None = what its name says.
    tiers : tuple of str
        Tiers on which the run may run; empty = where it was submitted to.
    checkpoint : {"none", "usr1", "requeue"}
        Whether a running job may be moved: never; after SIGUSR1, upon which it writes a
        checkpoint; or at any time, because it writes checkpoints on its own.
    weight : float
        What a second of the job is worth beside the others.
    stop : bool
        Whether the job may be ended before its budget; `stop=no` forbids it.
    problem : str
        The part of the comment that cannot be understood; such a job is left alone.
    """

    target: float | None = None
    budget: float | None = None
    trace: str = ""
    metric: str = ""
    direction: Direction | None = None
    tiers: tuple[str, ...] = ()
    checkpoint: CheckpointMode = "none"
    weight: float = 1.0
    stop: bool = True
    problem: str = ""

    @staticmethod
    @functools.lru_cache(maxsize=1 << 16)  # jobs are looked at many times a round, and many alike
    def read(comment: str) -> JobRequest | None:
        """Read a comment; None when the job did not opt in."""
        words = comment.partition("|")[0].split()
        if not words or words[0] != KEYWORD:
            return None
        request = JobRequest()
        seen = set[str]()
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if key in seen:  # nobody knows which is meant
                return replace(request, problem=f"{key} stands twice in the comment")
            seen.add(key)
            try:
                if not equals:
                    raise ValueError(word)
                request = request._with(key, value)
            except ValueError:
                return replace(request, problem=f"cannot read {word[:60]!r} in the comment")
        return request

    def _with(self, key: str, value: str) -> JobRequest:
        read: dict[str, Any] = {key: value}
        match key:
            case "target" | "budget" | "weight":
                read[key] = number = float(value)
                low, high = _RANGES[key]
                good = low <= number <= high
            case "trace" | "metric":
                good = value != ""
            case "direction":
                good = value in get_args(Direction)
            case "stop":
                read[key], good = value == "yes", value in ("yes", "no")
            case "tiers":
                read[key], good = tuple(value.split(",")), value != ""
            case "checkpoint":
                good = value in get_args(CheckpointMode)
            case _:
                good = False
        if not good:
            raise ValueError(key)
        return replace(self, **read)


@dataclass(frozen=True, slots=True)
class Move:
    """A job on its way from one tier to another, as its own comment says.

    The comment holds it, and not our memory: another process can go on from there.

    Attributes
    ----------
    to : str
        The tier; "-" = back to the queue, "end" = the run is done and ends once it is saved.
    since_s : int
        Time at which the job received the signal to write a checkpoint.
    """

    to: str
    since_s: int

    @classmethod
    def read(cls, comment: str) -> Move | None:
        """Read the part of a comment that glidepath wrote."""
        for word in comment.partition("|")[2].split():
            if word.startswith("moving="):
                to, _, since = word.removeprefix("moving=").partition("@")
                if to and re.fullmatch("[0-9]{1,12}", since):
                    return cls(to, int(since))
        return None


def with_note(comment: str, note: str) -> str:
    """Keep what the user wrote in a comment; replace what glidepath wrote behind the bar."""
    request = comment.partition("|")[0].strip() or KEYWORD
    note = " ".join(note.replace("|", "/").split())
    return f"{request} | {note[:200]}" if note else request


def note_of(view: JobView, now_s: float) -> str:
    """Write what becomes of a job: its chance, when it is done, and why."""
    forecast = view.forecast
    parts = []
    if not math.isnan(forecast.probability):
        parts.append(f"{_CHANCE}{_words.chance(forecast.probability, 2)}")
    if view.finish_s and view.finish_s[1] < FAR_S:
        clock = time.strftime("%d %b %H:%M", time.localtime(now_s + view.finish_s[1]))
        parts.append(f"{_DONE}{clock}")
    parts.append(view.reason or forecast.problem)
    return "; ".join(part for part in parts if part)


def gist(comment: str) -> tuple[str, str]:
    """Reduce a note to what must change for a new one: the first digit of P and the reason."""
    parts = comment.partition("|")[2].strip().split("; ")
    probability = ""
    if parts[0].startswith(_CHANCE):
        probability = parts.pop(0).removeprefix(_CHANCE)[:3]
    if parts and parts[0].startswith(_DONE):
        del parts[0]
    words = "".join(c for c in "; ".join(parts) if c.isalpha() or c == " ")
    return probability, " ".join(words.split())  # 9 411 has a blank more than 941
