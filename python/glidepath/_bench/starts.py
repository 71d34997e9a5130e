# SPDX-License-Identifier: Apache-2.0
"""Forecast starts of waiting jobs beside the true ones: the program of `glidepath bench starts`.

A trace runs under a policy whose forecasts have an error. At random moments each waiting job's
start is forecast, by `start_times` and from time limits, and compared with when it has GPUs next.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath import _core
from glidepath._answer import SHOWN_LEVELS
from glidepath._columns import Floats
from glidepath._core import Job, SimulationOptions
from glidepath._simulate import Simulation, policy_named, simulate
from glidepath._starts import StartTimes, start_times
from glidepath._workload import Workload

POLICIES = ("fifo", "first_fit", "las", "srsf", "best_value")
SIGMAS = (0.5, 1.0)
SAMPLES = _core.StartOptions().samples
_LIMIT = 2.0  # how many times its duration a job asks for
_LEVELS = tuple(k / 20 for k in range(1, 20))
_HORIZON_S = 180 * 86400.0


def run(
    workload: Workload,
    *,
    policies: Sequence[str] = POLICIES,
    sigmas: Sequence[float] = SIGMAS,
    moments: int = 40,
    samples: int = SAMPLES,
    recent: int = 300,
    seeds: int = 1,
    redraw: bool = False,
) -> list[dict[str, Any]]:
    """Score each policy and error of forecasts: one row each, over all seeds."""
    rows = []
    workloads = [_drawn_again(workload, seed) if redraw else workload for seed in range(seeds)]
    for policy in policies:
        for sigma in sigmas:
            scores = _Scores(by_run=redraw)
            for seed, given in enumerate(workloads):
                scores.take(_Case(given, policy, sigma, seed), moments, samples, recent)
            rows.append({"policy": policy, "forecast_sigma": sigma, **scores.row()})
    return rows


def _drawn_again(workload: Workload, seed: int) -> Workload:
    """Draw as many of its jobs with replacement, the times between them in another order."""
    rng = np.random.default_rng(seed)
    jobs = workload.jobs
    submit_s = np.sort(jobs["submit_s"])
    drawn = rng.integers(len(submit_s), size=len(submit_s))
    columns = {name: values[drawn] for name, values in jobs.items()}
    columns["job"] = np.arange(len(drawn))
    columns["submit_s"] = np.cumsum([submit_s[0], *rng.permutation(np.diff(submit_s))])
    return Workload(workload.tiers, columns, name=workload.name)


class _Case:
    """A run whose starts are known."""

    def __init__(self, workload: Workload, policy: str, sigma: float, seed: int) -> None:
        self.workload, self.policy, self.seed = workload, policy, seed
        options: dict[str, Any] = {"seed": seed, "forecast_sigma": sigma}
        self._options = SimulationOptions(**options)
        self._run = simulate(workload, policy, **options)
        self._starts = _starts_of(self._run)
        jobs = workload.jobs
        self.durations: dict[int, float] = dict(
            zip(jobs["job"].tolist(), jobs["duration_s"].tolist(), strict=True)
        )

    def drawn(self, count: int, recent: int) -> Iterator[_core.Moment]:
        """Random moments at which jobs wait, while jobs are still submitted."""
        timeline = self._run.timeline
        # After the last submission nobody comes because the trace was cut.
        inside = timeline["time_s"] < self.workload.jobs["submit_s"].max()
        waits = np.flatnonzero((timeline["queued"] > 0) & inside)
        if len(waits) == 0:
            return
        # By the time before them: that after them is not known then, and no event is likely in a
        # moment before which a long time without one is known to come.
        length = np.diff(timeline["time_s"], prepend=0.0)[waits]
        rng = np.random.default_rng(self.seed)
        drawn = rng.choice(waits, size=count, p=length / length.sum())
        at_s = np.unique(timeline["time_s"][drawn])
        yield from _core.moments_of(
            self.workload._record, self.policy, self._options, at_s.tolist(), recent
        )

    def next_start(self, job: int, now_s: float) -> float:
        """Seconds until a job has GPUs again."""
        starts = self._starts.get(job, np.empty(0))
        later = np.searchsorted(starts, now_s, side="right")
        return float(starts[later] - now_s) if later < len(starts) else math.inf


def _played(
    policy: str,
    believed: Mapping[int, float],
    snapshot: _core.Snapshot,
    *,
    samples: int,
    recent: Sequence[Job],
) -> StartTimes:
    """Play a snapshot forward by what the policy ranks by: a point forecast, or the laws."""
    counted = [*snapshot.jobs, *recent] if policy_named(policy).sees == "durations" else []
    return start_times(
        snapshot,
        policy,
        samples=samples,
        recent=recent,
        believed={job.id: believed[job.id] for job in counted if job.id in believed},
        levels=_LEVELS,
        horizon_s=_HORIZON_S,
    )


class _Scores:
    """What forecasts are worth; `by_run`: the standard error is that of draws of the runs."""

    def __init__(self, *, by_run: bool) -> None:
        self._by_run = by_run
        self._true: list[Floats] = []
        self._ours: list[Floats] = []
        self._limits: list[Floats] = []
        self._known: list[Floats] = []
        self._seconds: list[float] = []
        self._moments: list[int] = []  # of each run

    def take(self, case: _Case, moments: int, samples: int, recent: int) -> None:
        """Forecast at random moments."""
        for moment in case.drawn(moments, recent):
            snapshot = moment.snapshot(case.workload.tiers)
            came = [job for job in moment.recent if job.submit_s < moment.now_s]
            play = functools.partial(_played, case.policy, moment.believed)
            begin = time.perf_counter()
            ours = play(snapshot, samples=samples, recent=came)
            self._seconds.append(time.perf_counter() - begin)
            limits = play(_lasting(snapshot, case.durations, _LIMIT), samples=1, recent=())
            known = play(_lasting(snapshot, case.durations, 1.0), samples=samples, recent=came)
            now_s = snapshot.now_s
            self._true.append(np.array([case.next_start(j, now_s) for j in ours.job.tolist()]))
            self._ours.append(ours.quantiles)
            self._limits.append(limits.quantiles[_LEVELS.index(0.5)])
            self._known.append(known.quantiles[_LEVELS.index(0.5)])
        self._moments.append(len(self._true) - sum(self._moments))

    def row(self) -> dict[str, Any]:
        """Sum up."""
        if not self._true:
            raise _core.InputError("bench starts: no job of the trace has to wait")
        true = np.concatenate(self._true)
        quantiles = np.concatenate(self._ours, axis=1)
        low, middle, high = quantiles[[_LEVELS.index(level) for level in SHOWN_LEVELS]]
        inside = (low <= true) & (true <= high)
        counts = np.array([len(jobs) for jobs in self._true])
        together = counts
        if self._by_run:  # its moments share what comes after them
            runs = np.repeat(np.arange(len(self._moments)), self._moments)
            together = np.bincount(runs, counts).astype(int)
        ours, limits = _error(true, middle), _error(true, np.concatenate(self._limits))
        return {
            "moments": int((counts > 0).sum()),
            "waiting": len(true),
            "coverage": float(inside.mean()),
            "coverage_se": _standard_error(inside, together[together > 0]),
            "below": float((true < low).mean()),
            "error": float(np.median(ours)),
            "error_expected": float(np.median(_error(quantiles, middle))),
            "error_of_known": float(np.median(_error(true, np.concatenate(self._known)))),
            "error_of_limits": float(np.median(limits)),
            "ratio": float(np.median(ours) / np.median(limits)),
            "wall_ms": 1e3 * float(np.median(self._seconds)),
        }


def _lasting(
    snapshot: _core.Snapshot, durations: Mapping[int, float], times: float
) -> _core.Snapshot:
    """Let each job take so many times its true duration, without a doubt."""
    return _core.Snapshot(
        snapshot.tiers,
        [
            job.with_remaining([max(0.0, times * durations[job.id] - job.steps_done)])
            for job in snapshot.jobs
        ],
        running=snapshot.running,
        now_s=snapshot.now_s,
    )


def _starts_of(result: Simulation) -> dict[int, Floats]:
    """When each job was given GPUs, in order."""
    jobs, starts = result.spans["job"], result.spans["start_s"]
    order = np.lexsort((starts, jobs))
    jobs, starts = jobs[order], starts[order]
    cuts = np.flatnonzero(np.diff(jobs)) + 1
    return dict(zip(jobs[np.append(0, cuts)].tolist(), np.split(starts, cuts), strict=True))


def _standard_error(inside: NDArray[np.bool_], counts: NDArray[np.int64]) -> float:
    """Standard error of the mean, where so many jobs, one after the other, go together.

    Linearised, as that of a ratio of sums; NaN where all go together.
    """
    if len(counts) < 2:
        return math.nan
    beyond = inside - inside.mean()
    sums = np.add.reduceat(beyond, np.append(0, np.cumsum(counts)[:-1]))
    return float(np.sqrt((sums**2).sum()) / len(inside))


def _error(true: Floats, guess: Floats) -> Floats:
    """|log(1 + wait in minutes)| apart; both beyond the horizon are equal."""
    with np.errstate(invalid="ignore"):
        error = np.abs(np.log1p(true / 60.0) - np.log1p(guess / 60.0))
    return np.where(np.isinf(true) & np.isinf(guess), 0.0, error)
