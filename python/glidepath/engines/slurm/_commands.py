# SPDX-License-Identifier: Apache-2.0
"""The scheduler Slurm: reads the queue by squeue and sinfo, acts by scontrol and scancel.

A plain user may run every command on their own jobs; no administrator is needed. No libslurm, no
REST, no JSON: the text formats of the commands have been stable for 15 years.
"""

from __future__ import annotations

import getpass
import math
import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Real
from typing import Protocol

from glidepath import _core
from glidepath._arguments import MAX_WAIT_S, check_fields
from glidepath._core import InputError
from glidepath.engines._slurm_defaults import TIMEOUT_S
from glidepath.engines.slurm._model import (
    Action,
    Cluster,
    ClusterError,
    ClusterJob,
    ClusterTier,
    Outcome,
)
from glidepath.engines.slurm._text import (
    NODE_FIELDS,
    QUEUE_FIELDS,
    format_of,
    read_nodes,
    read_queue,
)

_BATCH = 100  # jobs per command line
_LOOKED_AT = 5000  # jobs per look: an argument may have 128 KiB
_PARALLEL = 4  # commands at a time; slurmctld takes them one by one anyway


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str = ""


class Runner(Protocol):
    """Runs a command; tests put a recorded cluster in its place."""

    def __call__(self, command: Sequence[str], timeout_s: float) -> Answer:
        """Raise ClusterError when the command is missing or does not end in time."""


def run_command(command: Sequence[str], timeout_s: float) -> Answer:
    """Run a command of Slurm with times as seconds since 1970."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "SLURM_TIME_FORMAT": "%s"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{command[0]}: no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}") from None
    return Answer(done.returncode, done.stdout, done.stderr)


_AWAY = (
    "unable to contact slurm controller",
    "connection refused",
    "connection timed out",
    "socket timed out",
    "zero bytes were transmitted or received",
    "backup controller",
    "could not establish a configuration source",
    "protocol authentication error",
    "temporarily unable to",
)
_GONE = ("invalid job id", "already completing", "already finished", "invalid job array")


@dataclass
class Slurm:
    """The cluster that this machine's Slurm commands talk to.

    Parameters
    ----------
    users : iterable of str, optional
        Users whose jobs may be changed and whose logs are read with our rights; by default only
        the user who runs this. `all_users` is for an operator: a log of another user is read only
        where it is theirs, or everybody may read it.
    partitions : iterable of str
        Partitions whose jobs take part without a comment.
    tiers : mapping of str to float, optional
        Partitions that are tiers, and the relative speed of each. By default every partition of
        GPUs of one kind that shares no node with an earlier one; speeds are those of the
        catalogue. No running job is moved to or from a GPU that it lacks.
    timeout_s : float
        Seconds that a command may take; a busy controller needs 10 s at times.
    run : Runner
        Runs a command.
    clock : callable
        Seconds since 1970.

    Raises
    ------
    TypeError, InputError
        A field of another type, a timeout that is no time, a speed that is none.
    """

    users: Iterable[str] | None = None
    all_users: bool = False
    partitions: Iterable[str] = ()
    tiers: Mapping[str, float] | None = None
    timeout_s: float = TIMEOUT_S
    run: Runner = run_command
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.timeout_s <= MAX_WAIT_S:
            raise InputError(
                f"timeout_s is {self.timeout_s:g}, expected above 0 and at most {MAX_WAIT_S}"
            )
        for name, speed in (self.tiers or {}).items():
            if not isinstance(speed, Real):
                raise TypeError(f"Slurm: the speed of {name} is {speed!r:.40}, expected a number")
            if not 0 < speed < math.inf:
                raise InputError(f"tiers: {name} is {speed:g}, expected above 0 and finite")
        self._own = _own_name()
        self._users = frozenset([self._own] if self.users is None else self.users)
        self._partitions = frozenset(self.partitions)
        # Jobs of the round, by the start of their attempt, and whether they train through srun.
        self._has_steps: dict[tuple[str, float], bool] = {}

    # ------------------------------------------------------------------------------------ reading

    def read(self) -> Cluster:
        """Read queue and nodes: two commands."""
        self._has_steps.clear()
        now_s = self.clock()
        nodes = self._ask("sinfo", "-h", "-N", "-O", format_of(NODE_FIELDS))
        queue = self._ask("squeue", "-h", "-r", "-O", format_of(QUEUE_FIELDS))
        jobs, unread = read_queue(queue)
        tiers = self._tiers(read_nodes(nodes))
        remark = _remark(tiers)
        if unread and not jobs:
            remark = "no record of what squeue printed can be read, so no job is known"
        return Cluster(now_s, tuple(jobs), tuple(tiers), remark)

    def reread(self, ids: Sequence[str]) -> dict[str, ClusterJob]:
        """Read some jobs again; those that are gone are missing."""
        found: dict[str, ClusterJob] = {}
        for start in range(0, len(ids), _LOOKED_AT):
            listed = ",".join(ids[start : start + _LOOKED_AT])
            command = ("squeue", "-h", "-r", "-O", format_of(QUEUE_FIELDS), "-j", listed)
            answer = self.run(command, self.timeout_s)
            if answer.code and _is_any(answer.err, _GONE):
                continue  # it was the only one, and it is gone
            jobs, _ = read_queue(self._good(command, answer))
            found.update((job.id, job) for job in jobs)
        return found

    def may_touch(self, job: ClusterJob) -> bool:
        """Whether the job takes part and is ours, or we are operator."""
        if not job.touchable or (not self.all_users and job.user not in self._users):
            return False
        return job.request is not None or job.partition in self._partitions

    def reader(self, job: ClusterJob) -> str:
        """Say who must be able to read the log of a job: with `all_users` its own user.

        The comment of a job names any file, which we may read and the user may not.
        """
        return job.user if self.all_users and job.user != self._own else ""

    def _tiers(self, found: Sequence[ClusterTier]) -> list[ClusterTier]:
        if self.tiers is not None:
            by_name = {tier.name: tier for tier in found}
            for name in self.tiers:
                if name not in by_name:
                    raise InputError(f"tiers: no partition {name!r} with GPUs")
            _check_apart([by_name[name] for name in self.tiers])
            return [replace(by_name[name], speed=speed) for name, speed in self.tiers.items()]
        tiers: list[ClusterTier] = []
        taken: set[str] = set()
        # The smaller partition first: one that spans several tiers is an entrance, not a tier.
        for tier in sorted(found, key=lambda tier: len(tier.nodes)):
            if tier.gpu and taken.isdisjoint(tier.nodes):
                taken.update(tier.nodes)
                speed = _speed_of(tier.gpu)
                known = speed is not None
                tiers.append(replace(tier, speed=speed or 1.0, speed_known=known))
        return sorted(tiers, key=lambda tier: (tier.speed, tier.name))

    def _ask(self, *command: str) -> str:
        return self._good(command, self.run(command, self.timeout_s))

    @staticmethod
    def _good(command: Sequence[str], answer: Answer) -> str:
        if answer.code:
            said = (answer.err or answer.out).strip().splitlines() or [f"exit {answer.code}"]
            raise ClusterError(f"{command[0]}: {said[-1].removeprefix(f'{command[0]}: ')}")
        return answer.out

    # ------------------------------------------------------------------------------------- acting

    def commands(self, actions: Sequence[Action]) -> list[tuple[str, ...]]:
        """Give the commands that `send` would run.

        Where it cannot be found out to which part of a job a signal goes, to the batch script:
        this is for people to read, and `send` asks again.
        """
        signalled = [action.job for action in actions if action.kind == "checkpoint"]
        new = [job.id for job in signalled if (job.id, job.start_s) not in self._has_steps]
        try:
            steps = self._jobs_with_steps(new)
        except ClusterError:
            steps = set()
        for job in signalled:
            self._has_steps.setdefault((job.id, job.start_s), job.id in steps)
        known = {job.id for job in signalled if self._has_steps[job.id, job.start_s]}
        return commands_of(actions, known, self.clock())

    def send(self, actions: Sequence[Action]) -> list[Outcome]:
        """Check every job again, then act; jobs with the same change share a command.

        Raises
        ------
        ClusterError
            When the jobs could not be checked; nothing was sent then.
        """
        outcomes: dict[int, Outcome] = {}
        waiting: list[Action] = []
        steps = self._jobs_with_steps([a.job.id for a in actions if a.kind == "checkpoint"])
        # The last look before the first command: nothing slow may come between.
        seen = self.reread(sorted({action.job.id for action in actions}))
        for action in actions:
            now = seen.get(action.job.id)
            if now is None:
                outcomes[id(action)] = Outcome(action, "gone")
            elif not self.may_touch(now) or not now.same_situation(action.job):
                outcomes[id(action)] = Outcome(action, "changed", f"now {now.state} {now.reason}")
            else:
                waiting.append(action)
        with ThreadPoolExecutor(_PARALLEL) as threads:
            for group in threads.map(lambda g: self._carry_out(g, steps), _groups(waiting)):
                outcomes.update((id(outcome.action), outcome) for outcome in group)
        return [outcomes[id(action)] for action in actions]

    def _jobs_with_steps(self, ids: Sequence[str]) -> set[str]:
        """Find the jobs that train through srun: their signals go to it and not to bash."""
        if not ids:
            return set()
        command = ("squeue", "-h", "-s", "-o", "%i", "-j", ",".join(ids))
        answer = self.run(command, self.timeout_s)
        if answer.code and _is_any(answer.err, _GONE):
            if len(ids) == 1:
                return set()
            return {job for each in ids for job in self._jobs_with_steps([each])}
        steps = [line.rpartition(".") for line in self._good(command, answer).split()]
        return {job for job, _, step in steps if step.isdigit()}

    def _carry_out(self, group: _Group, steps: set[str]) -> list[Outcome]:
        first = group.actions[0]
        for command in group.commands(steps, self.clock()):
            try:
                answer = self.run(command, self.timeout_s)
            except ClusterError as error:
                return [Outcome(action, "unknown", str(error)) for action in group.actions]
            if answer.code:
                said = " ".join((answer.err or answer.out).split())
                if _is_any(said, _AWAY):
                    return [Outcome(action, "unknown", said) for action in group.actions]
                if len(group.actions) > 1:  # find out whose it was; every action bears repeating
                    return [
                        outcome
                        for action in group.actions
                        for outcome in self._carry_out(_Group((action,)), steps)
                    ]
                gone = _is_any(said, _GONE)
                return [Outcome(first, "gone" if gone else "refused", said)]
        return [Outcome(action, "done") for action in group.actions]


@dataclass(frozen=True, slots=True)
class _Group:
    """Actions that differ in the job alone."""

    actions: tuple[Action, ...]

    def commands(self, steps: set[str], now_s: float) -> list[tuple[str, ...]]:
        """Give its commands, as of now; `steps` has the jobs that train through srun."""
        first = self.actions[0]
        ids = [action.job.id for action in self.actions]
        update = ("scontrol", "update", f"JobId={','.join(ids)}")
        comment = (f"Comment={first.comment}",) if first.comment else ()
        match first.kind:
            case "stop":
                return [("scancel", *ids)]
            case "checkpoint":
                to_batch = () if first.job.id in steps else ("--batch",)
                signal = ("scancel", "--signal=USR1", *to_batch, *ids)
                # The comment comes first: whoever finds the job in between knows where it goes.
                return [(*update, *comment), signal]
            case "requeue":
                noted = [(*update, *comment)] if comment else []
                return [*noted, ("scontrol", "requeue", ",".join(ids))]
            case "place":
                to = (f"Partition={first.tier}",) if first.tier != first.job.partition else ()
                return [(*update, *to, "StartTime=now", *comment)]
            case "defer":
                # No time of day: in autumn an hour comes twice, and Slurm may mean the other one.
                return [(*update, f"StartTime=now+{max(1, round(first.until_s - now_s))}")]
            case "limit":
                return [(*update, f"TimeLimit={first.limit_min}")]
            case "rank":
                return [(*update, f"Nice={first.nice}")]
            case "annotate":
                return [(*update, *comment)]


def _groups(actions: Sequence[Action]) -> list[_Group]:
    groups: dict[tuple[object, ...], list[Action]] = defaultdict(list)
    for action in actions:
        alone = action.job.id if action.kind == "checkpoint" or action.comment else ""
        what = (action.kind, action.tier, action.until_s, action.limit_min, action.nice, alone)
        groups[what].append(action)
    return [
        _Group(tuple(group[start : start + _BATCH]))
        for group in groups.values()
        for start in range(0, len(group), _BATCH)
    ]


def commands_of(actions: Sequence[Action], steps: set[str], now_s: float) -> list[tuple[str, ...]]:
    """Give the commands that carry out these actions; `steps` has the jobs that train by srun."""
    return [command for group in _groups(actions) for command in group.commands(steps, now_s)]


def _own_name() -> str:
    """Give the name of the user; in a container that does not know it, the number, as squeue."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _check_apart(tiers: Sequence[ClusterTier]) -> None:
    """Refuse tiers that share a node: its GPUs would be planned with twice."""
    owner: dict[str, str] = {}
    for tier in tiers:
        for node in tier.nodes:
            other = owner.setdefault(node, tier.name)
            if other != tier.name:
                raise InputError(f"tiers: {other} and {tier.name} share node {node}")


def _is_any(text: str, phrases: Iterable[str]) -> bool:
    text = text.lower()
    return any(phrase in text for phrase in phrases)


def _remark(tiers: Sequence[ClusterTier]) -> str:
    if not tiers:
        return (
            "no tier was found, so no job is placed or moved: no partition has GPUs of one kind;"
            " name the tiers by --tiers NAME=SPEED,…"
        )
    unknown = ", ".join(tier.name for tier in tiers if not tier.speed_known)
    if len(tiers) == 1 or not unknown:
        return ""
    return (
        f"the speed of {unknown} is not known, so no running job is moved to or from there: name"
        " the speeds by --tiers NAME=SPEED,…"
    )


_MAKER = {"nvidia", "tesla", "geforce", "rtx", "amd", "instinct"}
_FORM = re.compile(r"sxm\d?|pcie|\d+gb")


def _speed_of(model: str) -> float | None:
    """Training speed of a GPU beside a V100, by the catalogue; None where it does not know it.

    The names of cluster and catalogue agree where the model is the same, and the one of the cluster
    says of form and memory nothing else than the catalogue: a part of an A100 is no A100.
    """
    wanted, form = _name_of(model)
    for gpu in _core.catalogue():
        name, known_form = _name_of(gpu.name)
        if gpu.relative_speed > 0 and name == wanted and form <= known_form:
            return float(gpu.relative_speed)
    return None


def _name_of(model: str) -> tuple[str, set[str]]:
    """Split the name of a GPU into its model and the words for form and memory."""
    words = [word for word in re.findall("[a-z0-9]+", model.lower()) if word not in _MAKER]
    form = {word for word in words if _FORM.fullmatch(word)}
    return "".join(word for word in words if word not in form).removeprefix("rtx"), form
