# SPDX-License-Identifier: Apache-2.0
"""A workload run to its end under a policy."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._core import IoError, Snapshot
from glidepath._plan import Plan
from glidepath._results import Result, require
from glidepath._workload import Column, Workload

__all__ = ["POLICIES", "Simulation", "simulate"]

POLICIES: tuple[str, ...] = _core.POLICIES
Policy = str | Callable[[Snapshot], Plan]


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
        failures, gpu_seconds, energy_j, ftf, outcome`` and, where the workload names them,
        ``user``. NaN where a job never started or ended. Outcomes are ``finished``, ``target``
        (reached), ``never`` (stopped as out of reach) and ``unfinished``.
    spans : dict of str to ndarray, shape (spans,)
        Stretches during which a job held GPUs: ``job, tier, gpus, start_s, end_s, partner`` (the
        job on the same GPUs, or -1), in order of their end.
    timeline : dict of str to ndarray, shape (times,)
        ``time_s, running, queued`` (jobs) and ``busy`` (GPUs), from each row's time to the next's.
    users, tier_accounts : tuple of dict
        ``user, jobs, mean_jct_s, wait_s, gpu_seconds, energy_kwh`` of each user and ``tier, starts,
        gpu_seconds, utilization, energy_kwh`` of each tier, its idle GPUs included.
    mean_jct_s, median_jct_s, p95_jct_s, mean_wait_s, total_wait_s : float
    mean_wait_per_user_s : float
        Mean over users of the sum of the waits of their jobs.
    makespan_s : float
        From the first submission to the last end.
    preemptions : int
        Suspensions by the policy, ends of sessions included.
    gpu_seconds, utilization, energy_kwh : float
        GPUs held, their share of all GPU-seconds, and the energy of all GPUs over the makespan.
    carbon_kg : float
        Of that energy; NaN without an intensity.
    worst_ftf, share_unfair : float
        Largest finish-time fairness (JCT over the time with a fair share of the cluster), and the
        share of jobs for which it is above 1.
    share_in_time : float
        Of the jobs with a deadline, those that met it; NaN without deadlines.
    failures : int
        Of jobs, those of nodes under them included.
    lost_gpu_seconds : float
        Work done again after failures.
    lower_bound_jct_s : float
        No schedule has a smaller mean JCT; NaN where jobs have curves.
    events : int
        Events.
    """

    policy: str
    workload: str
    tiers: tuple[str, ...]
    jobs: dict[str, Column]
    spans: dict[str, Column]
    timeline: dict[str, Column]
    users: tuple[dict[str, Any], ...]
    tier_accounts: tuple[dict[str, Any], ...]
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
    share_in_time: float
    failures: int
    lost_gpu_seconds: float
    lower_bound_jct_s: float
    events: int

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
        """Every scalar metric by name."""
        return {name: float(getattr(self, name)) for name in METRICS}

    def jct_cdf(self) -> tuple[Column, Column]:
        """Completion times in ascending order, and the share of all jobs that took no longer."""
        jct = np.sort(self.jobs["jct_s"][np.isfinite(self.jobs["jct_s"])])
        return jct, np.arange(1, len(jct) + 1) / max(1, len(self.jobs["jct_s"]))

    def plot(self, ax: Any = None) -> Any:
        """Gantt chart: who held which GPUs when."""
        from glidepath._pictures import plots

        return plots.gantt(self, ax=ax)

    def to_pandas(self) -> Any:
        """One row per job."""
        return require("pandas").DataFrame(dict(self.jobs))


METRICS = (
    "mean_jct_s",
    "median_jct_s",
    "p95_jct_s",
    "mean_wait_s",
    "total_wait_s",
    "mean_wait_per_user_s",
    "makespan_s",
    "preemptions",
    "gpu_seconds",
    "utilization",
    "energy_kwh",
    "carbon_kg",
    "worst_ftf",
    "share_unfair",
    "share_in_time",
    "failures",
    "lost_gpu_seconds",
    "lower_bound_jct_s",
    "events",
)


def simulate(
    workload: Workload,
    policy: Policy,
    *,
    seed: int = 0,
    restart_s: float = 0.0,
    session_s: float | None = None,
    round_s: float | None = None,
    forecast_sigma: float | None = None,
    stop_at_target: bool | None = None,
    failures: Mapping[str, float] | None = None,
    sleep: Mapping[str, float] | None = None,
    in_nodes: bool = False,
    sharing: str = "exclusive",
    user_gpus: int | None = None,
    carbon_g_per_kwh: float | Sequence[float] | None = None,
    planner: Mapping[str, Any] | None = None,
    spans: bool = True,
    stream: str | os.PathLike[str] | Callable[..., object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Simulation:
    """Run a workload to its end under a policy.

    Parameters
    ----------
    workload : Workload
    policy : str or callable
        One of `POLICIES`; ``best_value:`` and an objective of `plan`, such as
        ``best_value:energy``; or a function from `Snapshot` to `Plan` that is asked at each
        arrival, end of a job, failure, end of a session and round.
    seed : int
        Of forecast errors and failures.
    restart_s : float
        GPUs are held without progress at each start after the first.
    session_s : float, optional
        Length of a session of ``session_fifo`` (3600) and of those that watch losses (300); a
        callable is asked again when a session ends, if one is given.
    round_s : float, optional
        Also decide every so often.
    forecast_sigma : float, optional
        Policies see duration × exp(N(0, σ)) of a job without a curve instead of the duration.
    stop_at_target : bool, optional
        A job with a curve ends where the curve reaches its target; by default only under the
        policies that watch losses (``dare``, ``best_value``, ``optimus``, ``slaq`` ...).
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
        GPUs that one user may hold, under ``slurm_backfill`` and the planner.
    carbon_g_per_kwh : float or sequence of float, optional
        Intensity, or that of each hour, repeated.
    planner : mapping, optional
        Keyword arguments of `plan` for ``best_value``: ``objective``, ``max_wait_s`` ...
    spans : bool
        Keep ``Simulation.spans`` and ``.timeline``.
    stream : path or callable, optional
        A CSV file for the rows of ``spans`` as they end, or a callable of their six values; with
        ``spans=False`` nothing of them stays in memory.
    progress : callable, optional
        Called with (jobs ended, jobs) after each event.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        An unknown policy, a plan that cannot be carried out, a workload that cannot be run.
    """
    return _run(
        workload, policy, stream=stream, seed=seed, restart_s=restart_s, session_s=session_s,
        round_s=round_s, forecast_sigma=forecast_sigma, stop_at_target=stop_at_target,
        failures=failures, sleep=sleep, in_nodes=in_nodes, sharing=sharing, user_gpus=user_gpus,
        carbon_g_per_kwh=carbon_g_per_kwh, planner=planner, spans=spans, progress=progress,
    )  # fmt: skip


def _run(
    workload: Workload,
    policy: Policy,
    *,
    stream: str | os.PathLike[str] | Callable[..., object] | None = None,
    **given: Any,
) -> Simulation:
    """`simulate`, also with a memo of forecasts."""
    if not isinstance(workload, Workload):
        raise TypeError(f"workload: expected a Workload, got {type(workload).__name__}")
    if not isinstance(policy, str) and not callable(policy):
        raise TypeError(f"policy: expected a name or a callable, got {type(policy).__name__}")
    options = _options(**given)
    if stream is None or callable(stream):
        fields = _core.simulate(workload._record, policy, options | {"stream": stream})
    else:
        try:
            with Path(stream).open("w", newline="") as file:
                write = csv.writer(file).writerow
                write(("job", "tier", "gpus", "start_s", "end_s", "partner"))
                options["stream"] = lambda *row: write(row)
                fields = _core.simulate(workload._record, policy, options)
        except OSError as error:
            raise IoError(f"{os.fspath(stream)}: {error.strerror}") from None
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", None)
    return _simulation(fields, workload, name or type(policy).__name__)


_DEFAULTS: dict[str, Any] = {
    "seed": 0, "restart_s": 0.0, "session_s": None, "round_s": None, "forecast_sigma": None,
    "stop_at_target": None, "failures": None, "sleep": None, "in_nodes": False,
    "sharing": "exclusive", "user_gpus": None, "carbon_g_per_kwh": None, "planner": None,
    "spans": True, "progress": None, "memo": None,
}  # fmt: skip


def _options(**given: Any) -> dict[str, Any]:
    """Every option of a simulation as the core takes it."""
    unknown = next((name for name in given if name not in _DEFAULTS), None)
    if unknown is not None:
        raise TypeError(f"no option '{unknown}', known are {', '.join(_DEFAULTS)}")
    options = _DEFAULTS | given
    for name in ("failures", "sleep", "planner"):
        options[name] = dict(options[name] or {})
    carbon = options["carbon_g_per_kwh"]
    options["carbon_g_per_kwh"] = [] if carbon is None else np.atleast_1d(carbon).tolist()
    return options


def _simulation(fields: dict[str, Any], workload: Workload, policy: str) -> Simulation:
    jobs = fields["jobs"]
    jobs["outcome"] = np.asarray(_core.OUTCOMES)[jobs["outcome"]]
    if "user" in jobs:
        jobs["user"] = np.asarray(jobs["user"])
    fields["policy"] = policy
    return Simulation(
        workload=workload.name, tiers=tuple(tier.name for tier in workload.tiers), **fields
    )
