# SPDX-License-Identifier: Apache-2.0
"""What every scheduler understands: jobs and tiers as read, actions as sent, their outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from glidepath.engines.slurm._comment import JobRequest, Move

#: The kind of GPUs whose nodes name none.
UNTYPED = "gpu"

#: Why a job waits that has a start time of its own.
BEGINS_LATER = "was submitted to begin later"


_REQUEUE_DELAY_S = 150  # Slurm starts a requeued job 2 minutes later unless told otherwise
_LONGEST_DELAY_S = 3600  # that a site may have set: a later start is what a person wants

#: How the reasons begin of a job that Slurm may start in another partition.
OF_A_PARTITION = ("Partition", "BadConstraints", "AccountNotAllowed", "QOSNotAllowed")

#: Why a task waits that starts once another of its array has ended.
ARRAY_LIMIT = "JobArrayTaskLimit"

# Why jobs wait that start as soon as there is room, in small letters. With any other reason Slurm
# starts a job for no GPU that we could free: it waits for a limit, a partition, a node, a licence.
_WAITS_FOR_ROOM = frozenset(
    ("", "priority", "resources", "begintime", "cleaning", "prolog", "scheddefer")
)


class ClusterError(RuntimeError):
    """The cluster did not answer in time: whether it did what was sent last is unknown."""


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job as the cluster describes it at one moment. Times in seconds since 1970."""

    id: str
    user: str
    state: str  # Slurm's words: PENDING, RUNNING, COMPLETING, SUSPENDED …
    partition: str
    name: str = ""
    reason: str = ""
    submit_s: float = 0.0
    start_s: float = 0.0  # of this attempt
    eligible_s: float = 0.0
    limit_s: float = math.inf
    used_s: float = 0.0  # by this attempt
    nice: int = 0
    nodes: tuple[str, ...] = ()
    gpus: int = 0
    gpu_type: str = ""
    gpus_by_socket: bool = False  # `gpus` is 0 and the job holds all of its nodes, for all we know
    restarts: int = 0
    comment: str = ""
    workdir: str = ""
    stdout: str = ""
    touchable: bool = True  # False: only known to hold GPUs, and never acted upon
    gpus_shared: int = 0  # of a node, of which it may hold parts (shards, MPS); `gpus` has none
    priority: int = 1  # of Slurm; 0 = held
    number: str = ""  # SLURM_JOB_ID of a task of an array that has started; its id is another

    @property
    def request(self) -> JobRequest | None:
        """The request in its comment; None when the comment does not begin with glidepath."""
        return JobRequest.read(self.comment)

    @property
    def move(self) -> Move | None:
        """The move that is under way, if any."""
        return Move.read(self.comment)

    def same_situation(self, other: ClusterJob) -> bool:
        """Whether a decision made for `other` still applies to this later state of the job."""
        return self._situation() == other._situation()

    def _situation(self) -> tuple[object, ...]:
        began = self.start_s if self.state == "RUNNING" else 0.0
        asked = self.request, self.move, self.held, self.reason.startswith("Dependency")
        begins = self.eligible_s if self.state == "PENDING" else 0.0
        size = self.limit_s, self.nice, self.gpus, self.gpu_type
        return (
            self.id,
            self.user,
            self.state,
            self.partition,
            self.restarts,
            self.submit_s,
            began,
            begins,
            asked,
            size,
        )

    @property
    def held(self) -> bool:
        """Whether it is held back: by a person, or by Slurm, which requeued it so."""
        if self.priority == 0 and self.state == "PENDING":
            return True
        why = self.reason.lower().replace("_", " ")
        return why.endswith(("held", "held state")) or why.startswith(("jobheld", "jobhold"))

    @property
    def barred(self) -> str:
        """Name what keeps Slurm from starting a waiting job, whatever is free; or nothing."""
        why = self.reason if self.state == "PENDING" else ""
        return "" if why.lower() in _WAITS_FOR_ROOM else why.partition(",")[0]

    def kept_waiting(self, now_s: float) -> str:
        """Say why a job waits for something else than GPUs; empty where it does not."""
        if self.state != "PENDING":
            return ""
        if self.held:
            return "is held by a person" if self.reason.startswith("JobHeld") else "is held"
        if self.reason.startswith("Dependency"):
            return "waits for another job"
        return (
            BEGINS_LATER if self.eligible_s > max(now_s + 1, self._requeued_until_s(now_s)) else ""
        )

    def _requeued_until_s(self, now_s: float) -> float:
        """Give the latest start that is a delay of Slurm's own, after a requeue."""
        if self.restarts == 0:
            return 0.0
        move = self.move  # says when that was, so that a longer delay is known, too
        return max(now_s + _REQUEUE_DELAY_S, move.since_s + _LONGEST_DELAY_S if move else 0.0)


@dataclass(frozen=True, slots=True)
class ClusterTier:
    """A partition whose GPUs are alike."""

    name: str
    gpu: str
    nodes: tuple[str, ...]
    gpus: int  # of the nodes that are up
    gpus_per_node: int
    speed: float = 1.0  # relative
    down: tuple[str, ...] = ()  # its nodes that take no new job; a job there may run on
    speed_known: bool = True  # False: `speed` is a guess

    def comparable(self, other: ClusterTier) -> bool:
        """Whether it is known how fast one tier is beside the other."""
        alike = self.name == other.name or self.gpu == other.gpu not in ("", UNTYPED)
        return alike or (self.speed_known and other.speed_known)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All jobs and tiers at one moment."""

    now_s: float
    jobs: tuple[ClusterJob, ...]
    tiers: tuple[ClusterTier, ...]
    remark: str = ""  # what a person should say of the tiers, because nothing else does

    def tier_of(self, job: ClusterJob) -> ClusterTier | None:
        """Find the tier on which a job runs or, while it waits, to which it was submitted."""
        for tier in self.tiers:
            if job.nodes and job.state != "PENDING":
                if job.nodes[0] in tier.nodes:
                    return tier
            elif job.partition == tier.name:
                return tier
        return None

    def down_node(self, job: ClusterJob) -> str:
        """Name a node of a running job that takes no new job; empty where all of them do."""
        tier = self.tier_of(job)
        return next((node for node in job.nodes if tier and node in tier.down), "")

    def held_gpus(self, job: ClusterJob) -> int:
        """Count those GPUs of its tier that a running job holds: a tier has none on down nodes."""
        tier = self.tier_of(job)
        if tier is None or not job.nodes:
            return job.gpus
        up = sum(node not in tier.down for node in job.nodes)
        if job.gpus_by_socket:
            return tier.gpus_per_node * up
        parts = min(job.gpus_shared, tier.gpus_per_node) * up
        return math.ceil(job.gpus * up / len(job.nodes)) + parts


ActionKind = Literal[
    "stop",  # end it for good
    "checkpoint",  # note where it goes in its comment, then tell it to write a checkpoint
    "requeue",  # back to the queue
    "place",  # to this tier, now
    "defer",  # not before until_s: a hold that ends by itself should we never come back
    "limit",  # lower (or give back) its time limit, so that backfill can start it
    "rank",  # set its nice value
    "annotate",  # write the forecast into its comment
]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to one job, with the look at the job that led to it."""

    kind: ActionKind
    job: ClusterJob
    why: str
    tier: str = ""  # of place
    until_s: int = 0  # of defer
    limit_min: int = 0  # of limit
    nice: int = 0  # of rank
    comment: str = ""  # of checkpoint, place and annotate
    submitted_to: str = ""  # of place: the partitions among which the job may start

    @property
    def disruptive(self) -> bool:
        """Whether a running job loses its GPUs by it."""
        return self.kind in ("stop", "checkpoint", "requeue") and self.job.state != "PENDING"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action.

    `status` is "done"; "changed" when the job was no longer as it was when the action was decided,
    so that nothing was sent; "refused" with the words of the cluster; "gone" when the job was not
    there any more; "unknown" when the cluster did not answer in time.
    """

    action: Action
    status: Literal["done", "changed", "refused", "gone", "unknown"]
    detail: str = ""


class Scheduler(Protocol):
    """A system that runs jobs: Slurm, or a simulation of it."""

    def read(self) -> Cluster:
        """Jobs and tiers now. Raises ClusterError."""

    def reread(self, ids: Sequence[str]) -> dict[str, ClusterJob]:
        """Look again at some jobs, right before an action. Raises ClusterError."""

    def may_touch(self, job: ClusterJob) -> bool:
        """Whether the job takes part and belongs to a user for whom the pilot may act."""

    def reader(self, job: ClusterJob) -> str:
        """User who must be able to read the log of the job; "" where it is enough that we are."""

    def commands(self, actions: Sequence[Action]) -> list[tuple[str, ...]]:
        """Give the commands that `send` would run."""

    def send(self, actions: Sequence[Action]) -> list[Outcome]:
        """Check the state of each job, then carry out its action; one outcome for each."""
