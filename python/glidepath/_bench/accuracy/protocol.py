# SPDX-License-Identifier: Apache-2.0
"""What a method gets and gives: any callable ``method(trace, at)``; see `docs/benchmark.md`.

A method that raises, or answers in a wrong shape or with numbers that are not finite, has failed:
the benchmark counts it, says why, and goes on.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from glidepath._answer import SHOWN_LEVELS
from glidepath._columns import Floats, unmasked
from glidepath._core import InputError
from glidepath._forecast import Forecast
from glidepath._reach import Reach
from glidepath._schedule import Schedule
from glidepath._trace import Trace

LEVELS = np.arange(1, 20) / 20.0
LEVELS.flags.writeable = False
NORMAL_QUANTILES = np.array([NormalDist().inv_cdf(p) for p in LEVELS])
# What a method may take besides its first two arguments, by the name of the keyword.
FORECAST_KEYWORDS = ("schedule", "past", "levels", "seed")
REACH_KEYWORDS = ("budget", "schedule", "past", "reached_by", "seed")
_KEYS = ("median", "quantiles", "samples")


@dataclass(frozen=True, slots=True)
class Method:
    """A forecaster under test, and which keywords it takes."""

    name: str
    call: Callable[..., Any]
    takes: tuple[str, ...] = ()
    reach: Callable[..., Any] | None = None
    reach_takes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A checked answer: median (h,), quantiles at LEVELS (19, h) or None, chance of the last step.

    `prob_below` gives the probability that the last value is at or below a target.
    """

    median: Floats
    quantiles: Floats | None = None
    prob_below: Callable[[float], float] | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a target is reached: probability by the budget; if so, quantiles .1, .5, .9 of when."""

    probability: float
    quantiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call: an answer, or why there is none; its time."""

    answer: Any
    why: str
    cpu_ms: float
    wall_ms: float


# --------------------------------------------------------------------------------- from a name


def imported(spec: str) -> Method:
    """Import ``module:callable``; a class is made without arguments. The folder is searched too.

    InputError where there is no such thing, it cannot be made, or it takes what the benchmark does
    not give; ImportError where the module, or one that it imports, is not installed.
    """
    module_name, _, path = spec.partition(":")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - the string that sys.path has
        sys.path.insert(0, here)
    found = _made(spec, "import it", lambda: importlib.import_module(module_name))
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"bench: method {spec!r}: {module_name} has no {part!r}")
        found = getattr(found, part)
    return wrapped(spec, found)


def _made(name: str, what: str, make: Callable[[], Any]) -> Any:
    """Import or make what a name stands for; whatever that raises becomes one sentence."""
    try:
        return make()
    except ImportError as error:
        raise ImportError(f"bench: method {name!r}: cannot {what}: {error}") from error
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(f"bench: method {name!r}: cannot {what}: {said}") from error


def wrapped(name: str, found: Any) -> Method:
    """Make a method of a callable, or of a class without arguments."""
    made = _made(name, "make one", found) if inspect.isclass(found) else found
    if not callable(made):
        raise InputError(f"bench: method {name!r} is a {type(made).__name__}, not callable")
    reach = getattr(made, "reach", None)
    return Method(
        name,
        made,
        _keywords(name, made, FORECAST_KEYWORDS),
        reach,
        () if reach is None else _keywords(f"{name}.reach", reach, REACH_KEYWORDS),
    )


def _keywords(name: str, function: Callable[..., Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the known keywords a function takes; InputError where it needs another."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of C that does not say
        return ()
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_KEYWORD for p in parameters):
        return known
    placed = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(placed) < 2 and not any(p.kind is kinds.VAR_POSITIONAL for p in parameters):
        raise InputError(f"bench: method {name!r} takes {len(placed)} arguments, not (trace, at)")
    rest = [p for p in parameters if p not in placed[:2] and p.kind is not kinds.VAR_POSITIONAL]
    needs = [p.name for p in rest if p.default is p.empty and p.name not in known]
    if needs:
        raise InputError(
            f"bench: method {name!r} needs {needs[0]!r}; besides the trace and the steps there are "
            + ", ".join(known)
        )
    return tuple(p.name for p in rest if p.name in known and p.kind is not p.POSITIONAL_ONLY)


# ------------------------------------------------------------------------------------ the call


def offers(
    takes: tuple[str, ...], curve: Trace, past: Callable[[], tuple[Trace, ...]], **more: Any
) -> dict[str, Any]:
    """Give what a method takes: the logged schedule, past runs, and `more`."""
    known: dict[str, Callable[[], Any]] = {
        "schedule": lambda: None if curve.lr is None else Schedule.logged(curve),
        "past": past,
        "levels": LEVELS.copy,
    }
    return {name: more[name] if name in more else known[name]() for name in takes}


def reply_to(call: Callable[[], Any], check: Callable[[Any], Any]) -> Reply:
    """Call a method and check what it gives; whatever it raises is a failure with a sentence."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer, why = None, ""
    try:
        answer = check(call())
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())[:300]
        why = said if isinstance(error, InputError) else f"{type(error).__name__}: {said}"
    return Reply(answer, why, 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall))


# ---------------------------------------------------------------------------------- the answer


def answer_of(given: Any, at: Floats) -> Answer:
    """Check what a method gave for the steps `at`; InputError says what is wrong with it."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, Forecast):
        own = np.array_equal(given.levels, LEVELS)
        rows = given.quantiles if own else np.stack([given.quantile(p) for p in LEVELS])
        return Answer(
            _checked("median", given.median, (at.size,)),
            _checked("quantiles", rows, (LEVELS.size, at.size)),
            lambda target: float(given.prob_below(target)[-1]),
        )
    if isinstance(given, Mapping):
        return _of_mapping(given, at)
    array = _array("the answer", given)
    if array.shape == at.shape:
        return Answer(_checked("median", array, at.shape))
    if array.shape == (LEVELS.size, at.size):
        return _of_mapping({"quantiles": array}, at)
    raise InputError(
        f"an answer of shape {array.shape}: expected a median {at.shape} or quantiles "
        f"{(LEVELS.size, at.size)}; samples go as {{'samples': ...}}"
    )


def _of_mapping(given: Mapping[str, Any], at: Floats) -> Answer:
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        raise InputError(f"an answer with {unknown[0]!r}: expected {', '.join(_KEYS)}")
    quantiles: Floats | None = None
    prob: Callable[[float], float] | None = None
    if "samples" in given:
        if "quantiles" in given:
            raise InputError("an answer with both samples and quantiles")
        samples = _array("samples", given["samples"])
        if samples.ndim != 2 or samples.shape[0] < 2 or samples.shape[1] != at.size:
            raise InputError(f"samples of shape {samples.shape}: expected (n, {at.size}), n >= 2")
        _checked("samples", samples, samples.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.quantile(samples, LEVELS, axis=0)
        quantiles = _checked("quantiles of the samples", rows, rows.shape)
        last = samples[:, -1]
        prob = lambda target: float(np.mean(last <= target))  # noqa: E731
    elif "quantiles" in given:
        rows = _array("quantiles", given["quantiles"])
        quantiles = _checked("quantiles", rows, (LEVELS.size, at.size))
        prob = chances(quantiles[:, -1])
    middle = given.get("median")
    if middle is None:
        if quantiles is None:
            raise InputError("an answer without a median, quantiles or samples")
        middle = quantiles[LEVELS.size // 2]
    return Answer(_checked("median", _array("median", middle), at.shape), quantiles, prob)


def _array(what: str, given: Any) -> Floats:
    if hasattr(given, "detach"):  # a tensor of torch
        given = given.detach().cpu()
    given = unmasked(given)  # no answer is where it is masked
    with suppress(TypeError, ValueError):
        if given is None or np.asarray(given).dtype.kind == "c":
            raise TypeError  # where NumPy would take NaN, or the real part
        return np.asarray(given, dtype=np.float64)
    raise InputError(f"{what}: {type(given).__name__} is no array of numbers")


def _checked(what: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    if array.shape != shape:
        raise InputError(f"{what} of shape {array.shape}: expected {shape}")
    broken = int(array.size - np.isfinite(array).sum())
    if broken:
        raise InputError(f"{what}: {broken} of {array.size} values are not finite")
    return array


def chances(quantiles: Floats) -> Callable[[float], float]:
    """Probability of being at or below a target by quantiles, normal between and beyond them."""
    rising = np.maximum.accumulate(quantiles)

    def below(target: float) -> float:
        low, high = (0, 1) if target < rising[0] else (-2, -1)
        if rising[0] <= target <= rising[-1]:
            score = float(np.interp(target, rising, NORMAL_QUANTILES))
        elif rising[high] > rising[low]:
            slope = (NORMAL_QUANTILES[high] - NORMAL_QUANTILES[low]) / (rising[high] - rising[low])
            score = float(NORMAL_QUANTILES[low] + slope * (target - rising[low]))
        else:
            score = -math.inf if target < rising[0] else math.inf
        return NormalDist().cdf(score)

    return below


def arrival_of(given: Any) -> Arrival:
    """Check a time to target: a `gp.Reach`, sampled steps (inf = never), or a mapping.

    The mapping has `probability` and `quantiles`, three steps at 0.1, 0.5 and 0.9 given that the
    target is reached. InputError says what is wrong.
    """
    if isinstance(given, Reach):
        low, middle, high = (given.quantile(p, if_reached=True) for p in SHOWN_LEVELS)
        return Arrival(1.0 - given.prob_never, (low, middle, high))
    if isinstance(given, Mapping):
        if set(given) != {"probability", "quantiles"}:
            raise InputError(f"reach gave {', '.join(given)}: expected probability, quantiles")
        probability = float(_array("probability", given["probability"]))
        at = _array("quantiles", given["quantiles"])
        if at.shape != (3,) or np.isnan(at).any() or not 0.0 <= probability <= 1.0:
            raise InputError(
                f"reach gave probability {probability:g} and quantiles {at.tolist()}, expected 0 "
                "to 1 and three numbers"
            )
        return Arrival(probability, (float(at[0]), float(at[1]), float(at[2])))
    steps = _array("reach", given)
    if steps.ndim != 1 or not steps.size or np.isnan(steps).any():
        raise InputError(f"reach gave an array of shape {steps.shape}: expected steps (n,), no NaN")
    reached = steps[np.isfinite(steps)]
    low, middle, high = (
        np.quantile(reached, SHOWN_LEVELS).tolist() if reached.size else 3 * [math.inf]
    )
    return Arrival(reached.size / steps.size, (low, middle, high))
