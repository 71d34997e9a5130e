# SPDX-License-Identifier: Apache-2.0
"""The simulator: a workload run to its end under a policy, and policies compared over seeds."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glidepath import _core
from glidepath._core import InputError, IoError, Snapshot, Tier
from glidepath._plan import Plan
from glidepath._results import Result, require, same
from glidepath._trace import Trace

__all__ = [
    "POLICIES",
    "Comparison",
    "Simulation",
    "Workload",
    "compare",
    "generate_workload",
    "read_workload",
    "simulate",
]

POLICIES: tuple[str, ...] = _core.POLICIES
Policy = str | Callable[[Snapshot], Plan]
Column = NDArray[Any]


class Workload:
    """Tiers of GPUs and the jobs that come to them.

    Parameters
    ----------
    tiers : sequence of Tier
    jobs : mapping of str to array_like, shape (n,)
        Columns: ``job`` (unique ids), ``submit_s``, ``gpus``, and ``duration_s`` or, with curves,
        ``truth`` (index into `curves`), ``target_loss`` and ``budget_steps``; perhaps ``user``,
        ``job_class``, ``memory_gb`` (per GPU), ``utilisation`` (0 to 1) and ``steps_per_s`` of
        shape (n, tiers), 0 where a job cannot run.
    curves : sequence of Trace, optional
        Hidden truths: no policy sees more of one than the job has run.
    name : str, optional

    Raises
    ------
    InputError
        Naming the job: a gang below 1 or larger than every tier, a negative time, no work.
    """

    __slots__ = ("_record",)

    def __init__(
        self,
        tiers: Sequence[Tier],
        jobs: Mapping[str, ArrayLike],
        *,
        curves: Sequence[Trace] = (),
        name: str = "",
    ) -> None:
        columns = {
            key: list(map(str, np.asarray(values)))
            if key in ("user", "job_class")
            else np.asarray(values)
            for key, values in jobs.items()
        }
        plain = [(curve.name, curve.step, curve.loss) for curve in curves]
        self._record = _core.make_workload(list(tiers), columns, plain, name)

    @classmethod
    def _of(cls, record: Any) -> Workload:
        workload = cls.__new__(cls)
        workload._record = record
        return workload

    @classmethod
    def from_trace(
        cls, path: str | os.PathLike[str], *, gpus: int, gpus_per_node: int | None = None
    ) -> Workload:
        """Read a cluster trace as a workload of one tier.

        Parameters
        ----------
        path : path
            CSV, plain or gzip, with the columns ``job,submit_s,gpus,duration_s`` and perhaps
            ``user``.
        gpus : int
            Of the cluster.
        gpus_per_node : int, optional

        Returns
        -------
        Workload

        Raises
        ------
        IoError
            Naming file and line.
        """
        return cls._of(_core.workload_from_trace(os.fsencode(path), gpus, gpus_per_node))

    @classmethod
    def from_gavel(
        cls,
        path: str | os.PathLike[str],
        throughputs: str | os.PathLike[str],
        *,
        cluster: Mapping[str, int],
    ) -> Workload:
        """Read a trace with the measured rate of each job on each type of GPU.

        Parameters
        ----------
        path : path
            CSV, plain or gzip, with the columns ``job,submit_s,gpus,model,batch,total_steps``.
        throughputs : path
            CSV with the columns ``gpu_type,consolidated,model,batch,gpus,other_model,steps_per_s``;
            rows with a partner or spread over servers are left out.
        cluster : mapping of str to int
            GPUs of each type, such as ``{"v100": 8, "p100": 16, "k80": 24}``.

        Returns
        -------
        Workload

        Raises
        ------
        IoError
            A file that cannot be read; a job without a rate.
        """
        rates = {
            (row["gpu_type"], row["model"], row["batch"], row["gpus"]): float(row["steps_per_s"])
            for row in _rows(throughputs)
            if row["consolidated"] == "1" and not row["other_model"]
        }
        jobs: dict[str, list[Any]] = {
            "job": [], "submit_s": [], "gpus": [], "budget_steps": [], "steps_per_s": [],
        }  # fmt: skip
        for row in _rows(path):
            kind = (row["model"], row["batch"], row["gpus"])
            speed = [rates.get((gpu, *kind), 0.0) for gpu in cluster]
            if not any(speed):
                raise IoError(f"{os.fspath(path)}: job {row['job']} has no rate in the throughputs")
            jobs["job"].append(int(row["job"]))
            jobs["submit_s"].append(float(row["submit_s"]))
            jobs["gpus"].append(int(row["gpus"]))
            jobs["budget_steps"].append(float(row["total_steps"]))
            jobs["steps_per_s"].append(speed)
        tiers = [Tier(gpu, count) for gpu, count in cluster.items()]
        return cls(tiers, jobs, name=os.path.basename(os.fspath(path)).split(".")[0])  # noqa: PTH119

    @property
    def name(self) -> str:
        """What reports call it."""
        return str(self._record.name)

    @property
    def tiers(self) -> list[Tier]:
        """Pools of equal GPUs."""
        return list(self._record.tiers)

    @property
    def jobs(self) -> dict[str, Column]:
        """Columns of the jobs, as the constructor takes them."""
        return {key: np.asarray(values) for key, values in self._record.jobs().items()}

    @property
    def curves(self) -> list[Trace]:
        """The hidden truths."""
        return [Trace(step, loss, name=name) for name, step, loss in self._record.curves()]

    @property
    def lower_bound_jct_s(self) -> float:
        """Mean JCT that no schedule can beat: pooled preemptive SRPT; NaN for jobs with curves."""
        return float(_core.lower_bound_jct_s(self._record))

    def write_jobs(self, path: str | os.PathLike[str]) -> None:
        """Write the jobs as the ``jobs.csv`` that `read_workload` reads."""
        _core.write_jobs(self._record, os.fsencode(path))

    def __len__(self) -> int:
        return int(self._record.job_count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return (
            self.name == other.name
            and self.tiers == other.tiers
            and same(self.jobs, other.jobs)
            and self.curves == other.curves
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.tiers, self.jobs, self.curves, self.name)

    def __repr__(self) -> str:
        tiers = " + ".join(f"{tier.gpus} {tier.name}" for tier in self.tiers)
        return f"<Workload {self.name}: {len(self)} jobs on {tiers}>"


def _rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a CSV file, plain or gzip."""
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
        return list(csv.DictReader(text.splitlines()))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise IoError(f"{os.fspath(path)}: {error}") from None


def _rebuild(
    tiers: list[Tier], jobs: dict[str, Column], curves: list[Trace], name: str
) -> Workload:
    return Workload(tiers, jobs, curves=curves, name=name)


def read_workload(folder: str | os.PathLike[str]) -> Workload:
    """Read ``tiers.csv``, ``jobs.csv`` and the curves of ``truth/`` of a folder.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Workload

    Raises
    ------
    IoError
        Naming file and line.
    InputError
        Naming the job.
    """
    return Workload._of(_core.read_workload(os.fsencode(folder)))


def generate_workload(folder: str | os.PathLike[str], *, users: int, seed: int = 0) -> Workload:
    """Draw the jobs of many users from the classes and habits of a workload folder.

    Parameters
    ----------
    folder : path
        With ``tiers.csv``, ``classes.csv``, ``habits.csv`` and ``truth/``, such as
        ``data/workloads/supercom``.
    users : int
        More users add jobs and change none of the others'.
    seed : int

    Returns
    -------
    Workload

    Raises
    ------
    IoError, InputError
    """
    return Workload._of(_core.generate_workload(os.fsencode(folder), users, seed))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation(Result):
    """What came of a workload under a policy. Times in seconds.

    Attributes
    ----------
    policy, workload : str
    tiers : tuple of str
        Their names, for the tiers of `events`.
    jobs : dict of str to ndarray, shape (n,)
        In order of submission: ``job, submit_s, start_s, end_s, jct_s, wait_s, preemptions,
        gpu_seconds, energy_j, ftf, outcome`` and, where the workload names them, ``user``. NaN
        where a job never started or ended. Outcomes are ``finished``, ``target`` (reached),
        ``never`` (stopped as out of reach) and ``unfinished``.
    events : dict of str to ndarray
        Stretches during which a job held GPUs: ``job, tier, gpus, start_s, end_s``.
    mean_jct_s, median_jct_s, p95_jct_s, mean_wait_s, total_wait_s : float
    mean_wait_per_user_s : float
        Mean over users of the sum of the waits of their jobs.
    makespan_s : float
        From the first submission to the last end.
    preemptions : int
        Suspensions by the policy, ends of sessions included.
    gpu_seconds, utilization, energy_kwh : float
        GPUs held, their share of all GPU-seconds, and the energy of all GPUs over the makespan.
    worst_ftf : float
        Largest finish-time fairness: JCT over the time with a fair share of the cluster.
    lower_bound_jct_s : float
        No schedule has a smaller mean JCT; NaN where jobs have curves.
    decisions : int
        Events.
    """

    policy: str
    workload: str
    tiers: tuple[str, ...]
    jobs: dict[str, Column]
    events: dict[str, Column]
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
    worst_ftf: float
    lower_bound_jct_s: float
    decisions: int

    def _summary(self) -> str:
        ended = int(np.isfinite(self.jobs["jct_s"]).sum())
        return (
            f"{self.policy}, {ended} of {len(self.jobs['job'])} jobs ended, mean JCT "
            f"{self.mean_jct_s:.6g} s, utilisation {self.utilization:.1%}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        for name in METRICS:
            yield name, f"{getattr(self, name):.6g}"

    def metrics(self) -> dict[str, float]:
        """Every scalar metric by name."""
        return {name: float(getattr(self, name)) for name in METRICS}

    def plot(self, ax: Any = None) -> Any:
        """Gantt chart: who held which GPUs when."""
        from glidepath import _plots

        return _plots.gantt(self, ax=ax)

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
    "worst_ftf",
    "lower_bound_jct_s",
    "decisions",
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
    events: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Simulation:
    """Run a workload to its end under a policy.

    Parameters
    ----------
    workload : Workload
    policy : str or callable
        One of `POLICIES`, or a function from `Snapshot` to `Plan` that is asked at each arrival,
        end of a job, end of a session and round.
    seed : int
        Of the forecast errors.
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
    events : bool
        Keep ``Simulation.events``.
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
    if not isinstance(workload, Workload):
        raise TypeError(f"workload: expected a Workload, got {type(workload).__name__}")
    if not isinstance(policy, str) and not callable(policy):
        raise TypeError(f"policy: expected a name or a callable, got {type(policy).__name__}")
    fields = _core.simulate(
        workload._record,
        policy,
        seed,
        restart_s,
        session_s,
        round_s,
        forecast_sigma,
        stop_at_target,
        events,
        progress,
    )
    jobs = fields["jobs"]
    jobs["outcome"] = np.asarray(_core.OUTCOMES)[jobs["outcome"]]
    if "user" in jobs:
        jobs["user"] = np.asarray(jobs["user"])
    if not isinstance(policy, str):
        fields["policy"] = getattr(policy, "__name__", type(policy).__name__)
    return Simulation(
        workload=workload.name, tiers=tuple(tier.name for tier in workload.tiers), **fields
    )


# Two-sided 97.5 % points of Student's t for 1, 2 ... degrees of freedom; 1.96 far beyond.
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Result):
    """Policies on the same workloads: one row per run, and means with confidence intervals.

    Attributes
    ----------
    rows : tuple of dict
        ``workload``, ``policy``, ``seed`` and every metric of a Simulation.
    """

    rows: tuple[dict[str, Any], ...]

    @property
    def policies(self) -> list[str]:
        """In the order given."""
        return list(dict.fromkeys(row["policy"] for row in self.rows))

    def values(self, policy: str, metric: str) -> Column:
        """Give a metric of each run of a policy."""
        return np.array([row[metric] for row in self.rows if row["policy"] == policy])

    def mean(self, metric: str) -> dict[str, tuple[float, float]]:
        """Mean of a metric and the half-width of its 95 % confidence interval (Student's t)."""
        return {policy: _mean(self.values(policy, metric)) for policy in self.policies}

    def ratio(self, metric: str, *, to: str) -> dict[str, tuple[float, float]]:
        """Geometric mean over runs of the metric over that of policy `to`, and its half-width."""
        base = self.values(to, metric)
        out = {}
        for policy in self.policies:
            middle, half = _mean(np.log(self.values(policy, metric) / base))
            out[policy] = math.exp(middle), math.exp(middle) * math.sinh(half)
        return out

    def _summary(self) -> str:
        means = self.mean("mean_jct_s")
        best = min(means, key=lambda policy: means[policy][0])
        runs = len(self.rows) // max(1, len(means))
        return (
            f"{len(means)} policies over {runs} runs, least mean JCT {best} {means[best][0]:.6g} s"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        for policy, (mean, half) in self.mean("mean_jct_s").items():
            yield policy, f"mean JCT {mean:.6g} ± {half:.3g} s"

    def plot(self, ax: Any = None, *, metric: str = "mean_jct_s") -> Any:
        """One bar per policy with its confidence interval."""
        from glidepath import _plots

        means = self.mean(metric)
        return _plots.policies(
            {policy: mean for policy, (mean, _) in means.items()},
            errors={policy: half for policy, (_, half) in means.items()},
            ax=ax,
        )

    def to_pandas(self) -> Any:
        """One row per run."""
        return require("pandas").DataFrame(list(self.rows))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as Parquet."""
        self.to_pandas().to_parquet(path)


def _mean(values: Column) -> tuple[float, float]:
    n = len(values)
    if n < 2:
        return float(values.mean()) if n else math.nan, 0.0
    t = _T975[n - 2] if n - 2 < len(_T975) else 1.96
    return float(values.mean()), float(t * values.std(ddof=1) / math.sqrt(n))


def compare(
    workloads: Workload | Sequence[Workload] | Callable[[int], Workload],
    policies: Sequence[Policy],
    *,
    seeds: int | Iterable[int] = 1,
    threads: int = 0,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Comparison:
    """Run every policy on every workload with every seed, in parallel.

    Parameters
    ----------
    workloads : Workload, sequence of Workload, or callable
        A callable is given each seed and draws the workload from it.
    policies : sequence of str or callable
    seeds : int or iterable of int
        How many (0, 1, ...), or which.
    threads : int
        0 = one for each core. Changes no number.
    progress : callable, optional
        Called with (runs done, runs) after each.
    **options
        Of `simulate`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> c = gp.compare(lambda s: gp.generate_workload(folder, users=20, seed=s),
    ...                ["fifo", "dare"], seeds=10)
    >>> c.ratio("mean_jct_s", to="fifo")
    """
    chosen = range(seeds) if isinstance(seeds, int) else list(seeds)
    if isinstance(policies, str) or not policies:
        raise InputError("compare: expected a sequence of policies")
    runs: list[tuple[Workload, Policy, int]] = []
    for seed in chosen:
        if callable(workloads):
            drawn: Sequence[Workload] = (workloads(seed),)
        elif isinstance(workloads, Workload):
            drawn = (workloads,)
        else:
            drawn = workloads
        runs += [(workload, policy, seed) for workload in drawn for policy in policies]

    def one(run: tuple[Workload, Policy, int]) -> dict[str, Any]:
        workload, policy, seed = run
        result = simulate(workload, policy, seed=seed, events=False, **options)
        row = {"workload": workload.name, "policy": result.policy, "seed": seed}
        return row | result.metrics()

    rows = []
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for row in pool.map(one, runs):
            rows.append(row)
            if progress is not None:
                progress(len(rows), len(runs))
    return Comparison(rows=tuple(rows))
