# SPDX-License-Identifier: Apache-2.0
"""Policies compared: every one on every workload with every seed, means with intervals."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._answer import simulation_keys
from glidepath._arguments import check_threads, checked, refuse_twice
from glidepath._core import InputError
from glidepath._results import Result, counted, require
from glidepath._simulate import _OPTIONS, METRICS, Policy, _run, name_of, options_by_policy
from glidepath._workload import Column, Workload

# Of `simulate`; the others are the same in all runs.
OPTIONS = tuple(name for name in _OPTIONS if name not in ("seed", "spans"))
SEED_LIMIT = 10**6  # more runs than anyone waits for
# Two-sided 97.5 % points of Student's t for 1, 2 ... degrees of freedom.
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
        ``workload``, ``policy``, ``seed``, every metric of a `Simulation`, ``outcomes``, how many
        jobs ended in which way, and `fallback`, as there.
    """

    rows: tuple[dict[str, Any], ...]

    @property
    def policies(self) -> list[str]:
        """In the order given."""
        return list(dict.fromkeys(row["policy"] for row in self.rows))

    def values(self, policy: str, metric: str) -> Column:
        """Metric of each run of a policy, in the order and unit of `rows`: shape (runs,).

        Raises
        ------
        InputError
            Naming a policy or a metric that is not there.
        """
        if policy not in self.policies:
            known = ", ".join(self.policies)
            raise InputError(f"comparison: no policy {policy!r}, expected one of {known}")
        if metric not in METRICS:
            known = ", ".join(METRICS)
            raise InputError(f"comparison: no metric {metric!r}, expected one of {known}")
        return np.array([row[metric] for row in self.rows if row["policy"] == policy])

    def mean(self, metric: str) -> dict[str, tuple[float, float]]:
        """By policy: mean of a metric and the half-width of its 95 % interval (Student's t).

        Both in the unit of the metric; the half-width is 0 with one run.

        Raises
        ------
        InputError
            As for `values`.
        """
        return {policy: _mean(self.values(policy, metric)) for policy in self.policies}

    def ratio(self, metric: str, *, to: str) -> dict[str, tuple[float, float]]:
        """By policy: geometric mean over runs of the metric over that of `to`, and its half-width.

        Both are pure numbers; the runs of two policies are paired in the order of `rows`.

        Raises
        ------
        InputError
            As for `values`.
        """
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
        what = f"{counted(len(means), 'policy')} over {counted(runs, 'run')}"
        return f"{what}, least mean JCT {best} {means[best][0]:.6g} s"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for policy, (mean, half) in self.mean("mean_jct_s").items():
            yield policy, f"mean JCT {mean:.6g} ± {half:.3g} s"

    def plot(self, ax: Any = None, *, metric: str = "mean_jct_s") -> Any:
        """One bar per policy with its confidence interval."""
        from glidepath._pictures import clusters

        means = self.mean(metric)
        return clusters.policies(
            {policy: mean for policy, (mean, _) in means.items()},
            label=metric,
            errors={policy: half for policy, (_, half) in means.items()},
            ax=ax,
        )

    def to_pandas(self) -> Any:
        """One row per run."""
        return require("pandas").DataFrame(list(self.rows))


def _mean(values: Column) -> tuple[float, float]:
    n = len(values)
    if values.ndim != 1:
        raise InputError("compare: a metric of a row is several numbers")
    if n < 2:
        return float(values.mean()) if n else math.nan, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.mean()), float(_t975(n - 1) * values.std(ddof=1) / math.sqrt(n))


def _t975(degrees: int) -> float:
    """97.5 % point of Student's t: from the table, beyond it by its expansion about the normal."""
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z = 1.959964
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2


@checked
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
        0 = one for each core that the process may use, or as many as ``OMP_NUM_THREADS`` says.
        Changes no number.
    progress : callable, optional
        Called with (runs done, runs) after each.
    **options
        Options of `simulate`, but for ``seed``, ``spans``, ``stream`` and ``progress``. A policy
        gets those that it reads; one of them at least must read each.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        An unknown policy, no policies, workloads or seeds, one of them twice, or an option that is
        out of range or read by none of the policies.

    Examples
    --------
    >>> c = gp.compare(lambda s: gp.generate_workload(folder, users=20, seed=s),
    ...                ["fifo", "dare"], seeds=10)
    >>> c.ratio("mean_jct_s", to="fifo")
    """
    chosen = _chosen(seeds)
    if isinstance(policies, str) or not len(policies):
        raise InputError(f"compare: policies is {policies!r}, expected a sequence of policies")
    for policy in policies:
        if not (isinstance(policy, str) or callable(policy)):
            raise TypeError(f"compare: a policy is {policy!r}, expected text or a function")
    refuse_twice("compare: the policy", [name_of(policy) for policy in policies])
    check_threads(threads)
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        known = ", ".join(OPTIONS)
        raise TypeError(f"compare: no option '{unknown[0]}', expected one of {known}")
    shares = options_by_policy(policies, options)
    runs: list[tuple[Workload, Policy, int, dict[str, Any]]] = []
    for seed in chosen:
        if callable(workloads):
            drawn: Sequence[Workload] = (workloads(seed),)
        elif isinstance(workloads, Workload):
            drawn = (workloads,)
        else:
            drawn = workloads
        for workload in drawn:
            if not isinstance(workload, Workload):
                raise TypeError(f"compare: a workload is {workload!r}, expected a Workload")
        runs += [
            (workload, policy, seed, share)
            for workload in drawn
            for policy, share in zip(policies, shares, strict=True)
        ]
    if not runs:
        raise InputError("compare: no workloads")
    return Comparison(rows=tuple(run_all(runs, threads, progress)))


def run_all(
    runs: Sequence[tuple[Workload, Policy, int, dict[str, Any]]],
    threads: int,
    progress: Callable[[int, int], object] | None,
) -> Iterator[dict[str, Any]]:
    """Give a row for each workload, policy, seed and options, in this order."""
    memo = _core.ForecastMemo()  # what one run forecasts the others find

    stopped = threading.Event()

    def go_on() -> None:
        if stopped.is_set():
            raise CancelledError

    def one(run: tuple[Workload, Policy, int, dict[str, Any]]) -> dict[str, Any]:
        workload, policy, seed, options = run
        how = _core.SimulationOptions(**options | {"seed": seed, "spans": False})
        with _core.Interruptible(go_on):
            result = _run(workload, policy, how, memo=memo)
        return simulation_keys(result, seed=seed)

    with ThreadPoolExecutor(threads or _core.available_threads()) as pool:
        try:
            for done, future in enumerate([pool.submit(one, run) for run in runs]):
                # A signal that another thread receives wakes nobody who waits without end.
                while not wait([future], timeout=0.05).done:
                    pass
                row = future.result()
                if progress is not None:
                    progress(done + 1, len(runs))
                yield row
        except BaseException:  # Ctrl-C among them: the runs at work end as well
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _chosen(seeds: int | Iterable[int]) -> list[int]:
    """Which seeds."""
    if isinstance(seeds, bool) or not isinstance(seeds, int | Iterable):
        raise TypeError(f"compare: seeds is {seeds!r}, expected how many or which")
    if isinstance(seeds, int) and seeds < 1:
        raise InputError(f"compare: seeds is {seeds}, expected at least 1")
    if isinstance(seeds, int) and seeds > SEED_LIMIT:
        raise InputError(f"compare: seeds is {seeds}, expected at most {SEED_LIMIT}")
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(map(operator.index, seeds))
    if not chosen:
        raise InputError("compare: no seeds")
    refuse_twice("compare: the seed", chosen)
    return chosen
