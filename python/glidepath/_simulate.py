# SPDX-License-Identifier: Apache-2.0
"""The simulator: a workload run to its end under a policy, and policies compared over seeds."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import re
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
        ``job_class``, ``memory_gb`` (per GPU), ``utilisation`` (0 to 1), ``sm_activity`` (alone,
        for sharing), ``weight``, ``priority``, ``deadline_s`` and ``steps_per_s`` of shape
        (n, tiers), 0 where a job cannot run.
    curves : sequence of Trace, optional
        Hidden truths: no policy sees more of one than the job has run.
    pairs : sequence of tuple, optional
        Measured ``(class, other class, tier, speed, other's speed)`` of two jobs on the same GPUs,
        as shares of each alone; `shared_speeds` predicts the pairs that are not there.
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
        pairs: Sequence[tuple[str, str, int, float, float]] = (),
        name: str = "",
    ) -> None:
        columns = {
            key: list(map(str, np.asarray(values)))
            if key in ("user", "job_class")
            else np.asarray(values)
            for key, values in jobs.items()
        }
        plain = [(curve.name, curve.step, curve.loss) for curve in curves]
        self._record = _core.make_workload(list(tiers), columns, plain, list(pairs), name)

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
            ``user``, or a trace of Tiresias (``job_id,submit_time,num_gpu,duration``).
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
        sharing: bool = False,
    ) -> Workload:
        """Read a trace with the measured rate of each job on each type of GPU.

        Parameters
        ----------
        path : path
            CSV, plain or gzip, with the columns ``job,submit_s,gpus,model,batch,total_steps``, or
            one of Gavel's own ``.trace`` files.
        throughputs : path
            CSV with the columns ``gpu_type,consolidated,model,batch,gpus,other_model,other_batch,
            other_gpus,steps_per_s,other_steps_per_s`` (rows spread over servers are left out), or
            Gavel's own ``simulation_throughputs.json``.
        cluster : mapping of str to int
            GPUs of each type, such as ``{"v100": 8, "p100": 16, "k80": 24}``.
        sharing : bool
            Keep the measured pairs of jobs on the same GPUs, for ``simulate(..., sharing="mps")``.

        Returns
        -------
        Workload

        Raises
        ------
        IoError
            A file that cannot be read; a job without a rate.
        """
        rows = _throughputs(throughputs)
        rates = {
            (row["gpu_type"], row["model"], row["batch"], row["gpus"]): float(row["steps_per_s"])
            for row in rows
            if not row["other_model"]
        }
        jobs: dict[str, list[Any]] = {
            "job": [], "submit_s": [], "gpus": [], "budget_steps": [], "steps_per_s": [],
            "job_class": [],
        }  # fmt: skip
        for row in _gavel_jobs(path):
            kind = (row["model"], row["batch"], row["gpus"])
            speed = [rates.get((gpu, *kind), 0.0) for gpu in cluster]
            if not any(speed):
                raise IoError(f"{os.fspath(path)}: job {row['job']} has no rate in the throughputs")
            jobs["job"].append(int(row["job"]))
            jobs["submit_s"].append(float(row["submit_s"]))
            jobs["gpus"].append(int(row["gpus"]))
            jobs["budget_steps"].append(float(row["total_steps"]))
            jobs["steps_per_s"].append(speed)
            jobs["job_class"].append(" ".join(kind))
        tiers = [Tier(gpu, count) for gpu, count in cluster.items()]
        pairs: list[tuple[str, str, int, float, float]] = []
        if sharing:
            pairs = _gavel_pairs(rows, rates, list(cluster), set(jobs["job_class"]))
        name = os.path.basename(os.fspath(path)).split(".")[0]  # noqa: PTH119
        return cls(tiers, jobs, pairs=pairs, name=name)

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
    def pairs(self) -> list[tuple[str, str, int, float, float]]:
        """Measured speeds of pairs of classes on the same GPUs."""
        return list(self._record.pairs())

    @property
    def lower_bound_jct_s(self) -> float:
        """Mean JCT that no schedule without sharing can beat; NaN for jobs with curves.

        The larger of pooled preemptive SRPT and, where speeds differ by tier, a Lagrangian bound
        of the linear program over jobs, tiers and intervals of time.
        """
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
            and self.pairs == other.pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.tiers, self.jobs, self.curves, self.pairs, self.name)

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


def _gavel_jobs(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a trace: ours, or Gavel's ten columns without a header, between tabs."""
    if not os.fspath(path).endswith(".trace"):
        return _rows(path)
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise IoError(f"{os.fspath(path)}: {error}") from None
    rows = []
    for number, line in enumerate(lines):
        fields = line.split("\t")
        found = re.fullmatch(r"(.+?)(?: \(batch size (\d+)\))?", fields[0])
        if len(fields) < 10 or found is None:
            raise IoError(f"{os.fspath(path)}:{number + 1}: expected ten fields between tabs")
        rows.append({
            "job": str(number), "submit_s": fields[-1], "gpus": fields[6], "total_steps": fields[5],
            "model": found[1], "batch": found[2] or "",
        })  # fmt: skip
    return rows


_GAVEL_JOB = re.compile(r"\('(.+?)(?: \(batch size (\d+)\))?', (\d+)\)")


def _throughputs(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Rows of a table of throughputs, of gangs on one server."""
    if not os.fspath(path).endswith(".json"):
        return [row for row in _rows(path) if row["consolidated"] == "1"]
    try:
        table = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise IoError(f"{os.fspath(path)}: {error}") from None

    def kind(key: str) -> tuple[str, str, str]:
        found = _GAVEL_JOB.fullmatch(key)
        if found is None:
            raise IoError(f"{os.fspath(path)}: '{key}' is not a job such as ('A3C', 1)")
        return found[1], found[2] or "", found[3]

    rows = []
    for gpu, jobs in table.items():
        if gpu.endswith("_unconsolidated"):
            continue
        for key, partners in jobs.items():
            model, batch, gpus = kind(key)
            for partner, rate in partners.items():
                other = ("", "", "") if partner == "null" else kind(partner)
                own, others = (rate, "") if partner == "null" else rate
                rows.append({
                    "gpu_type": gpu, "model": model, "batch": batch, "gpus": gpus,
                    "other_model": other[0], "other_batch": other[1], "other_gpus": other[2],
                    "steps_per_s": own, "other_steps_per_s": others,
                })  # fmt: skip
    return rows


def _gavel_pairs(
    rows: list[dict[str, Any]],
    rates: dict[tuple[str, str, str, str], float],
    tiers: list[str],
    classes: set[str],
) -> list[tuple[str, str, int, float, float]]:
    """Speeds of pairs of equal gangs as shares of each alone, where both are classes of ours."""
    pairs = []
    for row in rows:
        if (
            not row["other_model"]
            or row["gpu_type"] not in tiers
            or row["gpus"] != row["other_gpus"]
        ):
            continue
        first = (row["model"], row["batch"], row["gpus"])
        second = (row["other_model"], row["other_batch"], row["other_gpus"])
        alone = [rates.get((row["gpu_type"], *kind), 0.0) for kind in (first, second)]
        names = " ".join(first), " ".join(second)
        if not all(alone) or not classes.issuperset(names):
            continue
        speeds = float(row["steps_per_s"]) / alone[0], float(row["other_steps_per_s"]) / alone[1]
        pairs.append((*names, tiers.index(row["gpu_type"]), *speeds))
    return pairs


def _rebuild(
    tiers: list[Tier],
    jobs: dict[str, Column],
    curves: list[Trace],
    pairs: list[tuple[str, str, int, float, float]],
    name: str,
) -> Workload:
    return Workload(tiers, jobs, curves=curves, pairs=pairs, name=name)


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
        failures, gpu_seconds, energy_j, ftf, outcome`` and, where the workload names them,
        ``user``. NaN where a job never started or ended. Outcomes are ``finished``, ``target``
        (reached), ``never`` (stopped as out of reach) and ``unfinished``.
    events : dict of str to ndarray, shape (events,)
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
    decisions : int
        Events.
    """

    policy: str
    workload: str
    tiers: tuple[str, ...]
    jobs: dict[str, Column]
    events: dict[str, Column]
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

    def jct_cdf(self) -> tuple[Column, Column]:
        """Completion times in ascending order, and the share of all jobs that took no longer."""
        jct = np.sort(self.jobs["jct_s"][np.isfinite(self.jobs["jct_s"])])
        return jct, np.arange(1, len(jct) + 1) / max(1, len(self.jobs["jct_s"]))

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
    "carbon_kg",
    "worst_ftf",
    "share_unfair",
    "share_in_time",
    "failures",
    "lost_gpu_seconds",
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
    failures: Mapping[str, float] | None = None,
    sleep: Mapping[str, float] | None = None,
    in_nodes: bool = False,
    sharing: str = "exclusive",
    user_gpus: int | None = None,
    carbon_g_per_kwh: float | Sequence[float] | None = None,
    planner: Mapping[str, Any] | None = None,
    events: bool = True,
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
    events : bool
        Keep ``Simulation.events`` and ``.timeline``.
    stream : path or callable, optional
        A CSV file for the rows of ``events`` as they end, or a callable of their six values; with
        ``events=False`` nothing of them stays in memory.
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
    options = _options(
        seed=seed, restart_s=restart_s, session_s=session_s, round_s=round_s,
        forecast_sigma=forecast_sigma, stop_at_target=stop_at_target, failures=failures,
        sleep=sleep, in_nodes=in_nodes, sharing=sharing, user_gpus=user_gpus,
        carbon_g_per_kwh=carbon_g_per_kwh, planner=planner, events=events, progress=progress,
    )  # fmt: skip
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
    "events": True, "progress": None,
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

    Raises
    ------
    InputError
        An unknown policy, no policies, or an option out of range.

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
