# SPDX-License-Identifier: Apache-2.0
"""The keys and words of every answer: the same for the same thing, whatever part of glidepath asks.

================================  ================================================================
run, metric                       name of the run, and what is measured
points, notes                     how many points were observed, and what a reader repaired
status                            status of the fit or forecast
observed_to, loss                 the last observation: its step and value
at, median, q10, q90              the forecast at step `at`: median and 80 % interval
best, best_step, prob_best_past   the best so far, and the probability that it is past already
target, budget, probability       probability of reaching the target by step `budget`
reached_by                        the reading by which it is reached: ``"curve"``, ``"point"``
budget_from, schedule_from        why this budget and these learning rates: `glidepath._horizon`
reach_q10, reach_q50, reach_q90   quantiles of the step at which the target is reached; inf = never
steps_q10, steps_q50, steps_q90   the same as steps that are still needed
verdict, reason                   as in `glidepath.Decision`
================================  ================================================================

Every answer of a kind has all keys of its kind: without a target, its keys are null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glidepath import _core, _words

if TYPE_CHECKING:
    from glidepath._forecast import Forecast
    from glidepath._reach import BestSoFar, Reach
    from glidepath._simulate import Simulation
    from glidepath._trace import Trace

SHOWN_LEVELS: tuple[float, ...] = _core.SHOWN_LEVELS  # of the quantiles that answers show
# Of a table: heading, and the cell as a format of the keys of a row or as a function of the row.
Columns = Mapping[str, str | Callable[[Any], str]]
SIMULATION_METRICS = {  # heading: metric, divisor, digits
    "total wait h": ("total_wait_s", 3600.0, 1),
    "wait per user h": ("mean_wait_per_user_s", 3600.0, 2),
    "mean JCT h": ("mean_jct_s", 3600.0, 2),
    "p95 JCT h": ("p95_jct_s", 3600.0, 2),
    "makespan h": ("makespan_s", 3600.0, 1),
    "GPU-hours": ("gpu_seconds", 3600.0, 1),
    "kWh": ("energy_kwh", 1.0, 1),
    "preemptions": ("preemptions", 1.0, 0),
}
_FAILURES = {
    "failures": ("failures", 1.0, 0),
    "lost GPU-hours": ("lost_gpu_seconds", 3600.0, 1),
}
ASKED_METRICS = {  # the same, by the option or the column of jobs that asks for it
    "carbon_g_per_kwh": {"kg CO2": ("carbon_kg", 1.0, 1)},
    "unfair_above": {"unfair jobs %": ("share_unfair", 0.01, 1)},
    "node_every_h": _FAILURES,
    "job_every_h": _FAILURES,
    "deadline_s": {"in time %": ("share_in_time", 0.01, 1)},
}
UNKNOWN = "–"  # in a cell of a table


def cells(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Write the cells of a table."""
    return [
        [cell.format(**row) if isinstance(cell, str) else cell(row) for cell in columns.values()]
        for row in rows
    ]


def run_keys(trace: Trace) -> dict[str, Any]:
    """Which run, and how far it has been observed."""
    return {
        "run": trace.name,
        "metric": trace.metric,
        "points": len(trace),
        "notes": list(trace.notes),
        "observed_to": float(trace.step[-1]) if len(trace) else None,
        "loss": float(trace.loss[-1]) if len(trace) else None,
    }


def forecast_keys(ahead: Forecast) -> dict[str, Any]:
    """The forecast at its last step; None for the values where nothing observed was finite."""
    known = not ahead._is_blind
    return {
        "status": ahead.status,
        "at": float(ahead.at[-1]),
        "median": float(ahead.median[-1]) if known else None,
        "q10": float(ahead.quantile(SHOWN_LEVELS[0])[-1]) if known else None,
        "q90": float(ahead.quantile(SHOWN_LEVELS[-1])[-1]) if known else None,
    }


def forecast_cells(keys: Mapping[str, Any]) -> tuple[str, str]:
    """Write the median of a forecast and its 80 % interval; dashes where they are not known."""
    if keys["median"] is None:
        return UNKNOWN, UNKNOWN
    return "{median:.4g}".format(**keys), "{q10:.4g} to {q90:.4g}".format(**keys)


def best_keys(best: BestSoFar) -> dict[str, Any]:
    """The best so far, and the probability that it stays the best; None where nothing is finite."""
    found = {"best": best.value, "best_step": best.step, "prob_best_past": best.prob_past}
    return {key: None if math.isnan(value) else value for key, value in found.items()}


def best_in_words(keys: Mapping[str, Any]) -> str:
    """Say the same in a sentence."""
    if keys["best"] is None:
        return _words.NO_VALUE
    step, chance = _words.count(keys["best_step"]), _words.percent(keys["prob_best_past"])
    return f"best so far {keys['best']:.4g} at step {step}: already past with probability {chance}"


def quantile_name(level: float) -> str:
    """What a column or key of the quantile of a level is called: q10 for 0.1."""
    return f"q{100.0 * level:g}"


def quantile_keys(name: str, values: Sequence[float] | None) -> dict[str, Any]:
    """Quantiles 0.1, 0.5 and 0.9 of a quantity; None where they are unknown."""
    known = [None] * len(SHOWN_LEVELS) if values is None else values
    return {
        f"{name}_{quantile_name(p)}": value for p, value in zip(SHOWN_LEVELS, known, strict=True)
    }


def _target_keys(
    target: float | None, budget: float | None, reached_by: str | None, probability: float | None
) -> dict[str, Any]:
    """The target of a run, if it has one, and the probability of reaching it."""
    return {
        "target": target,
        "budget": budget,
        "reached_by": None if target is None else reached_by,
        "probability": None if target is None else probability,
    }


def reach_keys(
    reach: Reach | None, observed_to: float, reached_by: str, *, budget: float
) -> dict[str, Any]:
    """Whether and when a run reaches its target."""
    if reach is None:
        none = _target_keys(None, budget, None, None)
        return none | quantile_keys("reach", None) | quantile_keys("steps", None)
    steps = [reach.quantile(p) for p in SHOWN_LEVELS]
    return {
        **_target_keys(reach.target, reach.budget, reached_by, 1.0 - reach.prob_never),
        **quantile_keys("reach", steps),
        **quantile_keys("steps", [max(0.0, step - observed_to) for step in steps]),
    }


def decision_keys(
    *,
    target: float | None,
    budget: float | None,
    reached_by: str | None,
    verdict: str,
    probability: float,
    reason: str,
    observed_to: float,
    reach: Sequence[float] | None,
) -> dict[str, Any]:
    """A verdict on a run, the step at which it is at its target, and the steps to there."""
    return {
        **_target_keys(target, budget, reached_by, probability),
        "verdict": verdict,
        "reason": reason,
        **quantile_keys("reach", reach),
        **quantile_keys("steps", reach and [max(0.0, step - observed_to) for step in reach]),
    }


def simulation_keys(result: Simulation, *, seed: int = 0) -> dict[str, Any]:
    """The metrics of a simulation, and how many of its jobs ended how."""
    kinds, counts = np.unique(result.jobs["outcome"], return_counts=True)
    outcomes = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
    named = {"workload": result.workload, "policy": result.policy, "seed": seed}
    more = {"outcomes": outcomes, "fallback": result.fallback}
    return named | result.metrics() | more


def with_energy(row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out an energy of 0 where GPUs were held: the power of none is known."""
    known = row["energy_kwh"] > 0 or row["gpu_seconds"] == 0
    return {
        name: None if name in ("energy_kwh", "carbon_kg") and not known else value
        for name, value in row.items()
    }


def simulation_metrics(asked: Iterable[str] = ()) -> dict[str, tuple[str, float, int]]:
    """Metrics of a table of simulations, with those for which options of `simulate` ask."""
    metrics = dict(SIMULATION_METRICS)
    for option in asked:
        metrics |= ASKED_METRICS[option]
    return metrics


def simulation_columns(asked: Iterable[str] = ()) -> Columns:
    """Columns of a table of `simulation_keys`."""

    def metric(name: str, divisor: float, digits: int) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: UNKNOWN if row[name] is None else _fixed(row[name] / divisor, digits)

    def jobs(row: Mapping[str, Any]) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in row["outcomes"].items())

    metrics = {heading: metric(*how) for heading, how in simulation_metrics(asked).items()}
    return {"policy": "{policy}", **metrics, "jobs": jobs}


def _fixed(value: float, digits: int) -> str:
    """Write so many decimals of a number, or more where it would have but one digit."""
    small = digits > 0 and 0 < abs(value) < 10 ** (1 - digits)
    return f"{value:.2g}" if small else f"{value:.{digits}f}"


def when(keys: Mapping[str, Any]) -> str:
    """Write the quantiles of the step at which a target is reached.

    Steps have three digits: the interval is wider than that.
    """
    low, middle, high = (keys[f"reach_q{q}"] for q in (10, 50, 90))
    if not math.isfinite(low):
        return "very likely never" if keys["probability"] > 0 else "never"
    first, usual, last = (
        _words.count(float(f"{round(step):.3g}")) if math.isfinite(step) else ""
        for step in (low, middle, high)
    )
    if not usual:
        return f"probably never; earliest (10 %) at step {first}"
    if not last:
        return f"at step {usual} (from {first}, or never)"
    return f"at step {usual}" if low == high else f"at step {usual} ({first} to {last})"


def starts(seconds: Sequence[float]) -> str:
    """Write quantiles 0.1, 0.5 and 0.9 of the time until a job starts."""
    low, middle, high = (
        "now" if t < 1.0 else "later" if math.isinf(t) else _words.duration(t) for t in seconds
    )
    return _words.between(low, middle, high)
