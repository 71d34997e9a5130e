# SPDX-License-Identifier: Apache-2.0
"""A workload run to its end under a policy."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._arguments import checked
from glidepath._core import InputError, IoError, JobSpan, PolicyInfo, SimulationOptions, Snapshot
from glidepath._plan import Plan
from glidepath._results import Result, require
from glidepath._workload import Column, Workload

Policy = str | Callable[[Snapshot], Plan]


def policies() -> list[PolicyInfo]:
    """Policies that `simulate` knows by name.

    Returns
    -------
    list of PolicyInfo
        Each with ``name``, ``description``, ``source`` (of the idea), ``checked_on`` (the traces,
        and in brackets with whose answers it was compared there), ``sees`` (``none``: nothing
        of the future; ``durations``: how long jobs without a curve take; ``all``: also where
        curves will go), ``stops_at_target``, ``session_s`` and ``round_s`` (seconds, or None),
        ``compared`` (by ``glidepath simulate --compare``), ``elastic`` (it chooses among the gangs
        that a job may have) and ``reads``: of the options of `simulate` that not every policy
        reads, those that it does. ``stops_at_target``,
        ``session_s`` and ``round_s`` hold where an option of `simulate` is not given;
        ``session_s`` of a policy that stops at targets only where jobs have curves.
    """
    return _core.policies()


POLICIES: tuple[str, ...] = tuple(policy.name for policy in policies())
_POLICY = {policy.name: policy for policy in policies()}


def policy_named(name: str) -> PolicyInfo:
    """Give the row of a policy; an objective may stand behind a colon. KeyError without one."""
    return _POLICY[name.partition(":")[0]]


def options_by_policy(
    policies: Sequence[Policy], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Share options out among policies that run side by side: each gets those that it reads.

    InputError names an option that none of them reads; to one alone `simulate` itself says so.
    """
    if len(policies) == 1:
        return [dict(options)]
    reads = [_reads(policy) for policy in policies]
    some = {name for policy in _POLICY.values() for name in policy.reads}
    given = {
        name
        for name in some & options.keys()
        if options[name] != getattr(_DEFAULTS, name) and options[name] is not None
    }
    unread = sorted(given.difference(*reads))
    if unread:
        names = ", ".join(map(name_of, policies))
        raise InputError(f"simulate: {unread[0]} is read by none of {names}")
    shares = [
        {name: options[name] for name in options if name not in given or name in own}
        for own in reads
    ]
    learned = [policy in ("learned", "best_value:learned") for policy in policies]
    if any(learned):
        for share, is_learned in zip(shares, learned, strict=True):
            planner = share.get("planner") or {}
            if "learned" in planner and "objective" not in planner and not is_learned:
                others = {name: planner[name] for name in planner if name != "learned"}
                share["planner"] = others or None
    return shares


def name_of(policy: Policy) -> str:
    """Give the name by which results call a policy."""
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", None)
    return name or type(policy).__name__


def _reads(policy: Policy) -> tuple[str, ...]:
    if not isinstance(policy, str):
        return _core.POLICY_READS
    try:
        return policy_named(policy).reads
    except KeyError:
        known = ", ".join(POLICIES)
        raise InputError(f"simulate: policy is '{policy}', expected one of {known}") from None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation(Result):
    """What came of a workload under a policy. Times in seconds.

    Attributes
    ----------
    policy, workload : str
    tiers : tuple of str
        Their names, for the tiers of `spans`.
    jobs : dict of str to ndarray, shape (n,)
        In order of submission: ``job, submit_s, start_s, end_s, jct_s, wait_s, preemptions,
        failures, gpu_seconds, energy_j, ftf, ftf_static, outcome`` and, where the workload
        names them, ``user``. NaN where a job never started or ended. Outcomes are ``finished``,
        ``target`` (reached), ``never`` (stopped as out of reach) and ``unfinished``.
    spans : dict of str to ndarray, shape (spans,)
        Stretches during which a job held GPUs: ``job, tier, gpus, start_s, end_s, partner`` (the
        job on the same GPUs, or -1), in order of their end.
    timeline : dict of str to ndarray, shape (times,)
        ``time_s, running, queued`` (jobs) and ``busy`` (GPUs), from each row's time to the next's.
    user_accounts, tier_accounts : dict of str to ndarray, shape (users,) and (tiers,)
        ``name, jobs, mean_jct_s, wait_s, gpu_seconds, energy_kwh`` of each user and ``name, starts,
        gpu_seconds, utilization, energy_kwh`` of each tier, its idle GPUs included.
    mean_jct_s, median_jct_s, p95_jct_s, mean_wait_s, total_wait_s : float
    mean_wait_per_user_s : float
        Mean over users of the sum of the waits of their jobs.
    makespan_s : float
        From the first submission to the last end.
    preemptions : int
        Suspensions by the policy, ends of sessions included.
    gpu_seconds, utilization, energy_kwh : float
        GPUs held, their share of all GPU-seconds, and the energy of all GPUs over the makespan; up
        to when a job that does not end last gave GPUs back, if that is later. The energy is 0 where
        no tier has watts; the command line writes null then.
    carbon_kg : float
        Emitted for that energy; NaN without an intensity.
    worst_ftf, share_unfair : float
        Largest finish-time fairness (JCT over the time with a fair share of the cluster), and the
        share of jobs for which it is above ``unfair_above``; NaN where no job ends. A job that was
        given up before it did any work has none.
    worst_ftf_static, share_unfair_static : float
        The same where a fair share is 1 / (jobs of the whole workload) of the GPUs throughout, as
        Shockwave reports them (Zheng et al., NSDI 2023).
    share_in_time : float
        Share of the jobs with a deadline that ended by then and were not given up; NaN without
        deadlines.
    failures : int
        Failures of jobs, those of nodes under them included.
    lost_gpu_seconds : float
        Work done again after failures.
    lower_bound_jct_s : float
        No schedule has a smaller mean JCT; NaN where jobs have curves.
    events : int
        Ends, arrivals, failures, repairs, and times for which a policy or a round asked; it decides
        once for all of an instant.
    fallback : str
        How many decisions ``learned`` left to the objective ``jct``, and why the first of them;
        empty where none.
    """

    policy: str
    workload: str
    tiers: tuple[str, ...]
    jobs: dict[str, Column]
    spans: dict[str, Column]
    timeline: dict[str, Column]
    user_accounts: dict[str, Column]
    tier_accounts: dict[str, Column]
    mean_jct_s: float
    median_jct_s: float
    p95_jct_s: float
    mean_wait_s: float
    total_wait_s: float
    mean_wait_per_user_s: float
    makespan_s: float
    preemptions: int
    gpu_seconds: float
    utilization: float
    energy_kwh: float
    carbon_kg: float
    worst_ftf: float
    share_unfair: float
    worst_ftf_static: float
    share_unfair_static: float
    share_in_time: float
    failures: int
    lost_gpu_seconds: float
    lower_bound_jct_s: float
    events: int
    fallback: str

    def _summary(self) -> str:
        ended = int(np.isfinite(self.jobs["jct_s"]).sum())
        return (
            f"{self.policy}, {ended} of {len(self.jobs['job'])} jobs ended, mean JCT "
            f"{self.mean_jct_s:.6g} s, utilization {self.utilization:.1%}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        for name in METRICS:
            yield name, f"{getattr(self, name):.6g}"

    def metrics(self) -> dict[str, float]:
        """Every scalar metric by name; counts are whole numbers."""
        return {name: getattr(self, name) for name in METRICS}

    def jct_cdf(self) -> tuple[Column, Column]:
        """Completion times in ascending order, in seconds, and the share of all jobs up to each.

        Two arrays of one entry for each job that ended; those that did not are part of all jobs.
        """
        jct = np.sort(self.jobs["jct_s"][np.isfinite(self.jobs["jct_s"])])
        return jct, np.arange(1, len(jct) + 1) / max(1, len(self.jobs["jct_s"]))

    def plot(self, ax: Any = None) -> Any:
        """Gantt chart: who held which GPUs when."""
        from glidepath._pictures import clusters

        return clusters.gantt(self, ax=ax)

    def to_pandas(self) -> Any:
        """One row per job."""
        return require("pandas").DataFrame(dict(self.jobs))


METRICS = tuple(field.name for field in fields(Simulation) if field.type in ("float", "int"))
_DEFAULTS = SimulationOptions()
_SPAN = ("job", "tier", "gpus", "start_s", "end_s", "partner")
_OPTIONS = [key for key, kind in vars(SimulationOptions).items() if isinstance(kind, property)]


@checked
def simulate(
    workload: Workload,
    policy: Policy,
    *,
    seed: int = _DEFAULTS.seed,
    restart_s: float = _DEFAULTS.restart_s,
    session_s: float | None = None,
    round_s: float | None = None,
    forecast_sigma: float | None = None,
    knows_phases: bool = _DEFAULTS.knows_phases,
    stop_at_target: bool | None = None,
    failures: Mapping[str, float] | None = None,
    sleep: Mapping[str, float] | None = None,
    in_nodes: bool = _DEFAULTS.in_nodes,
    sharing: str = _DEFAULTS.sharing,
    user_gpus: int | None = None,
    carbon_g_per_kwh: float | Sequence[float] | None = None,
    planner: Mapping[str, Any] | None = None,
    max_ftf: float | None = None,
    long_share: float | None = None,
    patience: bool = _DEFAULTS.patience,
    unfair_above: float = _DEFAULTS.unfair_above,
    spans: bool = _DEFAULTS.spans,
    stream: str | os.PathLike[str] | Callable[[JobSpan], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Simulation:
    """Run a workload to its end under a policy.

    Parameters
    ----------
    workload : Workload
    policy : str or callable
        One of `POLICIES`; ``best_value:`` and an objective of `plan`, such as
        ``best_value:energy``; or a function from `Snapshot` to `Plan` that is called at each
        arrival, end of a job, failure, end of a session and round. In a Snapshot a curve of
        direction ``max`` and its target are taken from 1 or 100, where the curve lies between 0
        and that, else from 0: losses, as `plan` takes them.
    seed : int
        Seed of forecast errors and failures, 0 or more. A run that draws neither is the same for
        every seed, so that a comparison can give one to all of its policies.
    restart_s : float
        GPUs are held without progress at each start after the first.
    session_s : float, optional
        Length of a session; a callable decides again when one ends. By default that of the policy,
        see `policies`.
    round_s : float, optional
        Also decide every so often; by default as the policy does, see `policies`.
    forecast_sigma : float, optional
        Policies see duration × exp(N(0, σ)) of a job without a curve instead of the duration.
    knows_phases : bool
        Policies know how fast jobs with phases will be. Otherwise they assume that a job keeps the
        speed of its present phase; ``forecast_sigma`` is then refused.
    stop_at_target : bool, optional
        A job with a curve ends where the curve reaches its target; by default as the policy
        does, see `policies`. True is refused where no job has a curve.
    failures : mapping, optional
        ``node_every_s`` (mean time that a node is up), ``repair_s`` (3600), ``job_every_s`` (mean
        running time between crashes of a job), ``checkpoint_s`` (time between checkpoints; 0 loses
        nothing, inf all work since the start). When and what fails depends on the seed alone.
    sleep : mapping, optional
        ``after_s``: a node that nobody uses for so long draws ``watts`` per GPU, and a start on it
        waits for ``wake_s``.
    in_nodes : bool
        A gang up to a node sits on one node, a larger one on whole nodes and a part of another; one
        for which no nodes have room waits on.
    sharing : str
        How two jobs share GPUs where a plan says so: ``naive``, ``mps``, ``mig``.
    user_gpus : int, optional
        GPUs that one user may hold, under ``slurm_backfill`` and policies that call `plan`.
    carbon_g_per_kwh : float or sequence of float, optional
        Intensity, or that of each hour, repeated; refused where no tier says its watts.
    planner : mapping, optional
        Keyword arguments of `plan` for policies that call it: ``objective`` (``best_value`` alone),
        ``max_wait_s`` ... What `plan` refuses for these tiers is refused, and ``round_s``,
        ``in_nodes`` and ``sharing``, which are options above.
    max_ftf : float, optional
        Finish-time fairness at which ``fair_finish`` puts a job before all others (2).
    long_share : float, optional
        Share of the GPUs that ``fair_finish`` gives to jobs that take longer than all live work
        would take on all GPUs (0), for a shorter makespan.
    patience : bool
        With ``restart_s``, jobs under ``gittins``, ``best_value``, ``learned`` and ``fair_finish``
        wait for GPUs that soon come free rather than take those of others, if the policy chooses
        nothing but an order: one tier of GPUs that gangs may spread over, no curves.
    unfair_above : float
        Finish-time fairness above which a job counts in ``share_unfair``.
    spans : bool
        Keep ``Simulation.spans`` and ``.timeline``.
    stream : path or callable, optional
        A CSV file for the rows of ``spans`` as they end, or a callable that is given a `JobSpan`;
        with ``spans=False`` nothing of them stays in memory.
    progress : callable, optional
        Called with (jobs ended, jobs) after each event.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        An unknown policy, a plan that cannot be carried out, an option out of range or one that the
        policy does not read (see `policies`), a simulation that comes to nothing: far more
        decisions than its jobs need, and no end.
    """
    given = locals()
    options = SimulationOptions(**{name: given[name] for name in _OPTIONS})
    return _run(workload, policy, options, stream=stream, progress=progress)


def _run(
    workload: Workload,
    policy: Policy,
    options: SimulationOptions,
    *,
    stream: str | os.PathLike[str] | Callable[[JobSpan], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    memo: _core.ForecastMemo | None = None,
) -> Simulation:
    """`simulate`, also with a memo of forecasts."""

    def run(stream: Callable[[JobSpan], object] | None) -> Simulation:
        record = _core.simulate(workload._record, policy, options, memo, stream, progress)
        return _simulation(record, policy=name_of(policy))

    if stream is None or callable(stream):
        return run(stream)
    if isinstance(stream, str) and "\0" in stream:
        raise InputError(f"simulate: stream is {stream!r}, expected a path")
    path, begun = os.fspath(stream), False
    with _naming(path):
        file = Path(path).open("a", newline="")  # noqa: SIM115
    writer = csv.writer(file)

    def begin() -> None:
        """Empty the file of another simulation; not before, as this one may yet be refused."""
        nonlocal begun
        if not begun:
            begun = True
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.truncate(0)
            writer.writerow(_SPAN)

    def write(span: JobSpan) -> None:
        with _naming(path):
            begin()
            writer.writerow([getattr(span, name) for name in _SPAN])

    try:
        result = run(write)
        with _naming(path):
            begin()
        return result
    finally:
        with _naming(path):
            file.close()


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file where it is the trouble; an OSError of a policy is its own."""
    try:
        yield
    except OSError as error:
        raise IoError(f"{path}: {error.strerror}") from None


def _simulation(record: _core.SimulationRecord, **named: Any) -> Simulation:
    jobs = record.jobs
    jobs["outcome"] = np.asarray(_core.OUTCOMES)[jobs["outcome"]]
    return Simulation._from_record(record, jobs=jobs, tiers=tuple(record.tiers), **named)
