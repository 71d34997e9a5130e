# SPDX-License-Identifier: Apache-2.0
"""The built-in methods: ours, and what people use without a library for learning curves.

Each is a method of `protocol`, and is called as anybody else's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from glidepath import _core
from glidepath._answer import SHOWN_LEVELS
from glidepath._bench.accuracy.curves import TURNED
from glidepath._bench.accuracy.protocol import NORMAL_QUANTILES, Answer, Method, imported, wrapped
from glidepath._columns import Floats
from glidepath._core import InputError
from glidepath._fit import fit
from glidepath._forecast import forecast
from glidepath._past_runs import PastRuns, Widths, constants_of
from glidepath._reach import reach
from glidepath._results import require
from glidepath._trace import Trace

Given = dict[str, Any]

FINISHED_RUNS = (5, 12)  # fewest and most that widths are learned from
FAMILIES = ("pow3", "exp3", "log2", "weibull4", "mmf4")
NEIGHBOURS = 10
BLOCKS = 200  # that fitted baselines see of a longer log


# -------------------------------------------------------------------------------------- ours


class _Ours:
    """Our forecasts; `given` says what else they know: the schedule, past runs, widths by them."""

    def __init__(self, given: tuple[str, ...], constants: str | None) -> None:
        self._given, self._constants = given, constants
        # By the tuple of past runs, which is one for all curves of a group.
        self._learned: dict[int, tuple[tuple[Trace, ...], PastRuns | None]] = {}

    def __call__(
        self, trace: Trace, at: Floats, *, schedule: Any = None, past: tuple[Trace, ...] = ()
    ) -> Any:
        turned = trace.metric == TURNED
        found = forecast(
            _as_score(trace),
            at,
            schedule=schedule,
            past=self._past_of(past),
            constants=self._constants,
        )
        if not turned:
            return found
        return Answer(
            -found.median,
            -found.quantiles[::-1],
            lambda target: 1.0 - float(found.prob_below(-target)[-1]),
        )

    def reach(
        self,
        trace: Trace,
        target: float,
        *,
        budget: float,
        reached_by: str,
        schedule: Any = None,
        past: tuple[Trace, ...] = (),
    ) -> Any:
        return reach(
            _as_score(trace),
            -target if trace.metric == TURNED else target,
            budget=budget,
            reached_by=reached_by,
            schedule=schedule,
            past=self._past_of(past),
            constants=self._constants,
        )

    def _past_of(self, runs: tuple[Trace, ...]) -> PastRuns | None:
        if id(runs) not in self._learned:
            self._learned[id(runs)] = runs, self._learn([_as_score(run) for run in runs])
        return self._learned[id(runs)][1]

    def _learn(self, runs: list[Trace]) -> PastRuns | None:
        shapes, widths = runs if "past" in self._given else [], None
        fewest, most = FINISHED_RUNS
        if "calibrated" in self._given and len(runs) >= fewest:
            order = np.random.default_rng(2).permutation(len(runs))[:most]
            learned = _core.learn_widths(
                [runs[i] for i in order],
                shapes,
                constants=constants_of(self._constants),
                threads=0,
            )
            widths = Widths._from_record(learned)
        if not shapes and widths is None:
            return None
        return PastRuns._restored(shapes, widths or Widths())


def _as_score(trace: Trace) -> Trace:
    """Turn a score of the benchmark back, up to its unit and the 1: ours know the direction."""
    if trace.metric != TURNED:
        return trace
    return Trace(trace.step, -trace.loss, lr=trace.lr, name=trace.name, direction="max")


def _ours(name: str, constants: str | None) -> Method:
    given = tuple(name.split("+")[1:])
    made = _Ours(given, constants)
    past = ("past",) if {"past", "calibrated"} & set(given) else ()
    schedule = ("schedule",) if "lr" in given else ()
    known = (*schedule, *past)
    return Method(name, made, known, made.reach, ("budget", "reached_by", *known))


OURS = tuple(
    "glidepath" + lr + past + calibrated
    for calibrated, past, lr in product(("", "+calibrated"), ("", "+past"), ("", "+lr"))
)


# -------------------------------------------------------------------------------- baselines


def last(trace: Trace, at: Floats) -> Floats:
    """Give the last value."""
    return np.full(at.shape, trace.loss[-1])


def best(trace: Trace, at: Floats) -> Floats:
    """Give the best value so far."""
    return np.full(at.shape, trace.loss.min())


def walk(trace: Trace, at: Floats) -> Given:
    """Give the mean of the last tenth, its noise, and a random walk in log step around it."""
    loss = trace.loss
    level, late = loss[-max(1, len(loss) // 10) :].mean(), loss[len(loss) // 2 :]
    change = abs(late[: max(1, len(late) // 5)].mean() - level)  # over the last doubling
    spread = np.sqrt(
        noise(loss) ** 2 + (0.6 * change) ** 2 * np.log2(np.maximum(at / trace.step[-1], 1.0))
    )
    return {"quantiles": level + NORMAL_QUANTILES[:, None] * spread}


def noise(loss: Floats) -> float:
    """Noise of the points: the median absolute second difference, scaled as a normal law's."""
    if loss.size < 4:
        return float(np.std(loss))
    return float(np.median(np.abs(np.diff(loss, 2))) / _core.MAD_PER_DEVIATION / np.sqrt(6.0))


def thinned(trace: Trace, most: int = BLOCKS) -> Trace:
    """Give block means of at most `most` equal blocks: what the fitted baselines see."""
    if len(trace) <= most:
        return trace
    edges = np.linspace(0, len(trace), most + 1).astype(int)
    pairs = list(pairwise(edges))

    def mean(column: Floats) -> list[float]:
        return [float(column[a:b].mean()) for a, b in pairs]

    return Trace(mean(trace.step), mean(trace.loss))


def _fitted(family: str) -> Callable[[Trace, Floats], Given]:
    def method(trace: Trace, at: Floats) -> Given:
        result = fit(thinned(trace), family=family)
        median = np.asarray(result.predict(at), dtype=float)
        if result.status in ("too_few_points", "not_finite"):
            raise InputError(f"no fit: {result.status}")
        # Residual spread as a normal law: what people draw around a fit.
        spread = max(float(result.sigma), 0.0)
        return {"median": median, "quantiles": median + NORMAL_QUANTILES[:, None] * spread}

    return method


def median(trace: Trace, at: Floats) -> Floats:
    """Give the median of five fitted families."""
    thin, found = thinned(trace), []
    for family in FAMILIES:
        try:
            curve = np.asarray(fit(thin, family=family).predict(at), dtype=float)
        except InputError:
            continue
        if np.isfinite(curve).all():
            found.append(curve)
    if not found:
        raise InputError("no family could be fitted")
    return np.asarray(np.median(found, axis=0))


def neighbours(trace: Trace, at: Floats, *, past: tuple[Trace, ...]) -> Given:
    """Follow the ten past runs most like this one, each fitted to it by level and scale.

    Runs are compared at equal shares of their length; the last step of `at` is this one's end.
    """
    share = np.linspace(0.01, 1.0, 100)
    known = share <= trace.step[-1] / at[-1] + 1e-9
    if len(past) < 5 or known.sum() < 3:
        return walk(trace, at)
    runs = np.array([np.interp(share, run.step / run.step[-1], run.loss) for run in past])
    seen = np.interp(share[known], trace.step / at[-1], trace.loss)
    weight = np.linspace(0.2, 1.0, int(known.sum()))
    theirs = runs[:, known] - (runs[:, known] @ weight / weight.sum())[:, None]
    mine = seen - seen @ weight / weight.sum()
    size = (weight * theirs * theirs).sum(1)
    ridge = 0.05 * float(np.median(size)) + 1e-12  # pulls the scale to 1
    scale = np.clip(((weight * theirs * mine).sum(1) + ridge) / (size + ridge), 0.2, 5.0)
    misfit = (weight * (mine - scale[:, None] * theirs) ** 2).sum(1)
    level = trace.loss[-max(1, len(trace) // 10) :].mean()
    now = np.flatnonzero(known)[-1]
    chosen = np.argsort(misfit)[:NEIGHBOURS]
    ahead = np.array(
        [level + scale[i] * (np.interp(at / at[-1], share, runs[i]) - runs[i, now]) for i in chosen]
    )
    spread = np.sqrt(noise(trace.loss) ** 2 + ahead.std(0) ** 2 * (1 + 1 / NEIGHBOURS))
    return {"quantiles": np.median(ahead, 0) + NORMAL_QUANTILES[:, None] * spread}


def past_times(
    trace: Trace, target: float, *, past: tuple[Trace, ...], budget: float
) -> dict[str, Any] | Floats:
    """Give the steps at which past runs came to the target, as far as they are ahead."""
    found = [(run, first_at(run.loss, target)) for run in past]
    steps = [float(run.step[k]) for run, k in found if k is not None]
    return _times([step for step in steps if step > trace.step[-1]], trace, budget)


def past_times_scaled(
    trace: Trace, target: float, *, past: tuple[Trace, ...], budget: float
) -> dict[str, Any] | Floats:
    """Give them times how late this run is at its best value, compared with each past run."""
    steps = []
    for run in past:
        k, now = first_at(run.loss, target), first_at(run.loss, float(trace.loss.min()))
        if k is not None and now is not None and k > now:
            steps.append(float(trace.step[-1] * run.step[k] / run.step[now]))
    if len(steps) < 3:
        return past_times(trace, target, past=past, budget=budget)
    return _times(steps, trace, budget)


def _times(steps: list[float], trace: Trace, budget: float) -> dict[str, Any]:
    if not steps:
        now = float(trace.step[-1])
        return {"probability": 0.5, "quantiles": (now, np.sqrt(now * budget), budget)}
    chance = float(np.mean(np.array(steps) <= budget))
    return {"probability": chance, "quantiles": np.quantile(steps, SHOWN_LEVELS)}


def first_at(loss: Floats, target: float) -> int | None:
    """Index of the first value at or below the target."""
    below = np.flatnonzero(loss <= target)
    return int(below[0]) if below.size else None


# ------------------------------------------------------------------- other people's, if installed


def _arima() -> Callable[[Trace, Floats], Given]:
    """Make ARIMA(1, 1, 1) of statsmodels, fitted to the rows as if they were equally far."""
    model = require("statsmodels.tsa.arima.model")

    def arima(trace: Trace, at: Floats) -> Given:
        thin = thinned(trace)
        ahead = np.maximum((at - thin.step[-1]) / np.median(np.diff(thin.step)), 1.0)
        rows = np.arange(1, int(np.ceil(ahead[-1])) + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the optimiser has not converged
            fitted = model.ARIMA(np.array(thin.loss), order=(1, 1, 1)).fit()
        found = fitted.get_forecast(rows.size)
        middle = np.interp(ahead, rows, found.predicted_mean)
        spread = np.interp(ahead, rows, np.sqrt(found.var_pred_mean))
        return {"quantiles": middle + NORMAL_QUANTILES[:, None] * spread}

    return arima


# ------------------------------------------------------------------------------------ by name

METHODS: dict[str, Callable[[], Callable[..., Any]]] = {
    "last": lambda: last,
    "best": lambda: best,
    "walk": lambda: walk,
    "pow3": lambda: _fitted("pow3"),
    "aic": lambda: _fitted("auto"),
    "median": lambda: median,
    "neighbours": lambda: neighbours,
    "arima": _arima,
}
NAMES = (*OURS, *METHODS)
DEFAULT_METHODS = ("glidepath", "last", "pow3", "aic", "median")
# Methods that say when a target is reached, and nothing else.
TIMES: dict[str, Callable[..., Any]] = {
    "past-times": past_times,
    "past-times-scaled": past_times_scaled,
}
One = str | Callable[..., Any]
Named = One | Iterable[One] | Mapping[str, One]


def methods_of(
    named: Named, *, constants: str | None = None, times: Mapping[str, Any] | None = None
) -> dict[str, Method]:
    """Give the methods by their names: built-in ones, ``module:callable``, or callables.

    A callable goes by its ``__name__``; a mapping says other names. `times` has built-in names of
    time to target alone. InputError where a name is unknown, twice there, or `constants` are given
    and no method is ours; ImportError where a method needs what is not installed.
    """
    if isinstance(named, str) or callable(named):
        named = [named]
    if not isinstance(named, Iterable):
        raise InputError(f"bench: methods is {named!r}, expected names or callables")
    items = named.items() if isinstance(named, Mapping) else [(None, each) for each in named]
    found: dict[str, Method] = {}
    for said, each in items:
        method = _method(each, constants, times or {})
        name = said or method.name
        if name in found:
            raise InputError(f"bench: two methods are called {name!r}")
        found[name] = replace(method, name=name)
    if not found:
        raise InputError("bench: no method")
    if constants is not None and not any(isinstance(m.call, _Ours) for m in found.values()):
        raise InputError("bench: constants are for our own methods, and none of these is")
    return found


def _method(each: One, constants: str | None, times: Mapping[str, Any]) -> Method:
    if not isinstance(each, str):
        return wrapped(getattr(each, "__name__", type(each).__name__), each)
    if each in OURS:
        return _ours(each, constants)
    if each in METHODS:
        return wrapped(each, METHODS[each]())
    if each in times:
        return Method(each, _no_forecast, (), times[each], ("past", "budget"))
    if ":" in each:
        return imported(each)
    known = ", ".join([*NAMES, *times])
    raise InputError(f"bench: method is {each!r}, expected module:callable or one of {known}")


def _no_forecast(trace: Trace, at: Floats) -> Floats:
    raise InputError("it says when, not what")
