# SPDX-License-Identifier: Apache-2.0
"""Settings of the Slurm pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from glidepath._arguments import MAX_WAIT_S, check_fields
from glidepath._core import InputError
from glidepath._watch import ALPHA, READING, Watch
from glidepath.engines._slurm_defaults import (
    DISRUPTIONS_PER_ROUND,
    GRACE_S,
    OBJECTIVE,
    ORDER,
    RESTART_S,
    ROUND_S,
)

Mode = Literal["advise", "act"]
Order = Literal["defer", "nice"]
Objective = Literal["jct", "learned"]
_WORDS = {
    "mode": get_args(Mode),
    "order": get_args(Order),
    "objective": get_args(Objective),
}
_NOT_NEGATIVE = ("grace_s", "restart_s", "disruptions_per_round")


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotOptions:
    """Settings of the Slurm pilot.

    Attributes
    ----------
    mode : {"advise", "act"}
        Whether actions are only shown, or carried out.
    round_s : float
        Seconds between rounds, at most 1 000 000.
    trace_patterns : sequence of str
        Where a job logs whose comment does not say it.
    alpha : float
        Error rate of the verdicts will_reach and never, as in `glidepath.Watch`.
    reached_by : {"curve", "point"} or None
        By what a target is reached, as in `glidepath.Watch`; None = what the name of the metric
        says.
    cancel : bool
        Whether jobs may be ended that reached their target, cannot reach it or diverged.
    order : {"defer", "nice"}
        How jobs that the plan leaves waiting are kept behind: by a start time a little ahead,
        which runs out by itself; or by a higher nice value, which leaves Slurm free to fill a gap
        but which only an operator may take back.
    grace_s : float
        Seconds between SIGUSR1 and requeue, for a job that does not requeue itself.
    restart_s : float
        Seconds that a move costs a job.
    objective : {"jct", "learned"}
        What the plan maximises, as in `glidepath.plan`.
    disruptions_per_round : int
        Upper limit on running jobs stopped or moved in a round.

    Raises
    ------
    TypeError, InputError
        A field of another type, a word that is not known, a number out of range.
    """

    mode: Mode = "advise"
    round_s: float = ROUND_S
    trace_patterns: Sequence[str] = ("glidepath-%j.csv",)
    alpha: float = ALPHA
    reached_by: str | None = None
    cancel: bool = True
    order: Order = ORDER
    grace_s: float = GRACE_S
    restart_s: float = RESTART_S
    objective: Objective = OBJECTIVE
    disruptions_per_round: int = DISRUPTIONS_PER_ROUND

    def __post_init__(self) -> None:
        check_fields(self)
        for name, known in _WORDS.items():
            given = getattr(self, name)
            if given not in known:
                raise InputError(f"{name} is {given!r}, expected {' or '.join(map(repr, known))}")
        if not 0 < self.round_s <= MAX_WAIT_S:
            raise InputError(
                f"round_s is {self.round_s:g}, expected above 0 and at most {MAX_WAIT_S}"
            )
        Watch(target=0.0, alpha=self.alpha, reached_by=self.reached_by or READING)  # its rules
        for name in _NOT_NEGATIVE:
            number = getattr(self, name)
            if not 0 <= number < math.inf:
                raise InputError(f"{name} is {number:g}, expected 0 or more and finite")

    @property
    def lease_s(self) -> float:
        """Seconds for which a waiting job is deferred: three rounds, as the next may be late."""
        return max(30.0, 3 * self.round_s)
