# SPDX-License-Identifier: Apache-2.0
"""Answers of every stage, by which a change that must not move a number is judged.

`compute` gives the answers of each stage through the public Python API; run as a script this file
writes them to ``answers.json.gz`` beside it, and ``tests/python/test_golden_answers.py`` computes
them again and compares. The answers in the repository were recorded before the names of the API
changed, with `ADAPTERS` replaced by the old names, so that the comparison spans the change. Record
again only where a number is meant to change, and say so in the change log.

Inputs are the bundled curves and workload, and columns drawn from PCG64 with sums, products,
quotients and square roots alone, which are the same on any machine.

Usage: ``python tests/golden/record_answers.py [file]``
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath._simulate import options_by_policy

Floats = NDArray[np.float64]
Answers = dict[str, Any]

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "data"
ANSWERS = HERE / "answers.json.gz"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


# Adapters: the few places where the name of something in the API matters.


def _schedule(run: gp.Trace) -> Any:
    """Learning rate of a whole run."""
    return gp.Schedule(step=run.step, lr=run.lr)


@cache
def _past(collection: str, calibrated: bool) -> Any:
    """Past runs of a collection, with widths learned from them or without."""
    runs = past_runs(collection)
    return gp.PastRuns(runs) if calibrated else runs


def _known(trace: gp.Trace, run: gp.Trace | None, collection: str, calibrated: bool) -> Any:
    """Options of a forecast that knows the schedule of `run` and the past of a collection."""
    known: dict[str, Any] = {}
    if run is not None:
        known["schedule"] = _schedule(run)
    if collection:
        known["past"] = _past(collection, calibrated)
    return known


def _median(forecast: Any) -> Floats:
    """Median of a forecast, single or of a batch."""
    median: Floats = forecast.median
    return median


def _until(trace: gp.Trace, step: float) -> gp.Trace:
    """Points of a trace up to a step."""
    return trace.until(step)


def _fit_traces(traces: Sequence[gp.Trace], **options: Any) -> list[gp.Fit]:
    """Fit traces that have steps of their own."""
    return gp.fit_batch(traces, **options)


def _watch(run: gp.Trace | None, collection: str, **settings: Any) -> gp.Watch:
    """Watch a run with the schedule of `run` and the past of a collection, where they are given."""
    if run is not None:
        settings["schedule"] = _schedule(run)
    if collection:
        settings["past"] = _past(collection, calibrated=False)
    if "target" in settings:
        settings["reached_by"] = "point"
    return gp.Watch(**settings)


def _watch_again(watch: gp.Watch) -> gp.Watch:
    """Write a watch down and read it again."""
    return gp.Watch.from_dict(watch.to_dict())


def _verdict(decision: gp.Decision) -> str:
    """Verdict in lower case."""
    return decision.verdict.lower()


def _utilization() -> str:
    """Name of the share of a GPU in options and columns of jobs."""
    return "utilization"


def _spans(simulation: gp.Simulation) -> Mapping[str, Any]:
    """Stretches during which jobs held GPUs."""
    return simulation.spans


def _event_count(simulation: gp.Simulation) -> int:
    """Events at which the policy was asked."""
    return int(simulation.events)


ADAPTERS = (
    "_known",
    "_past",
    "_median",
    "_until",
    "_fit_traces",
    "_watch",
    "_watch_again",
    "_verdict",
    "_utilization",
    "_spans",
    "_event_count",
)


# Inputs.


COLLECTIONS = (
    "digits-cnn",
    "digits-mlp",
    "docs-lstm",
    "docs-transformer-nonfinite",
    "docs-transformer",
    "docstring-t5",
)


@cache
def collections() -> dict[str, list[gp.Trace]]:
    """Bundled curves by collection; those added later are not among them, to keep the answers."""
    return {name: gp.read_traces(DATA / "curves" / f"{name}.csv.gz") for name in COLLECTIONS}


@cache
def chosen_runs() -> list[tuple[str, gp.Trace]]:
    """Every fourth bundled curve with its collection."""
    every = [(name, run) for name, runs in collections().items() for run in runs]
    return every[::4]


@cache
def past_runs(collection: str) -> list[gp.Trace]:
    """Up to eight runs of a collection that are not among the chosen ones."""
    chosen = {run.name for name, run in chosen_runs() if name == collection}
    return [run for run in collections()[collection] if run.name not in chosen][:8]


def generator(seed: int) -> np.random.Generator:
    """Source of the numbers that are drawn."""
    return np.random.Generator(np.random.PCG64(seed))


def draw(rng: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """Draw numbers between two bounds."""
    return low + (high - low) * rng.random(count)


def draw_integers(rng: np.random.Generator, end: int, count: int) -> NDArray[np.int64]:
    """Draw integers from 0 to one below `end`."""
    return (end * rng.random(count)).astype(np.int64)


def falling(
    rng: np.random.Generator, count: int, *, noise: float = 0.02, every: float = 10.0
) -> tuple[Floats, Floats]:
    """Draw a curve that falls to a floor, with noise that is the sum of uniform numbers."""
    step = every * np.arange(1, count + 1)
    floor, scale, half = draw(rng, 0.5, 2.0, 1), draw(rng, 1.0, 4.0, 1), draw(rng, 20.0, 400.0, 1)
    around = rng.random(count) + rng.random(count) + rng.random(count) - 1.5
    return step, floor + scale / np.sqrt(1.0 + step / half) + noise * around


def rising(trace: gp.Trace) -> gp.Trace:
    """Turn a falling curve into one that rises to at most 1."""
    gain = 1.0 / (1.0 + trace.loss)
    return gp.Trace(trace.step, gain, lr=trace.lr, name=trace.name, direction="max")


def odd_traces() -> dict[str, gp.Trace]:
    """Short, flat, broken and badly scaled traces."""
    step, loss = falling(generator(7), 40)
    holes, spikes, infinite = loss.copy(), loss.copy(), loss.copy()
    holes[[3, 11, 12]] = np.nan
    spikes[[9, 21]] += 50.0
    infinite[-1] = np.inf
    found = {f"first {n}": gp.Trace(step[:n], loss[:n]) for n in (0, 1, 2, 3, 5, 8)}
    return found | {
        "flat": gp.Trace(step, np.full(40, 1.5)),
        "zero": gp.Trace(step, np.zeros(40)),
        "holes": gp.Trace(step, holes),
        "all nan": gp.Trace(step, np.full(40, np.nan)),
        "infinite": gp.Trace(step, infinite),
        "spikes": gp.Trace(step, spikes),
        "tiny": gp.Trace(step, loss * 1e-12),
        "huge": gp.Trace(step * 1e6, loss * 1e12),
        "negative": gp.Trace(step, loss - 10.0),
        "up": gp.Trace(step, loss[::-1]),
        "from zero": gp.Trace(step - step[0], loss),
        "noise": gp.Trace(step, draw(generator(8), 1.0, 2.0, 40)),
    }


def tried(call: Callable[[], Answers]) -> Answers:
    """Give the answers of a call, or the kind of error that it raised."""
    try:
        return call()
    except gp.InputError:
        return {"error": "InputError"}


def put(answers: Answers, key: str, found: Mapping[str, Any]) -> None:
    """Add answers under a key."""
    for name, value in found.items():
        whole = f"{key}/{name}"
        assert whole not in answers, whole
        answers[whole] = value


def words(values: Iterable[Any]) -> str:
    """Join integers or names."""
    return " ".join(str(value) for value in values)


def digest(*columns: Any) -> str:
    """Digest of columns of floats, every NaN alike."""
    made = hashlib.sha256()
    for column in columns:
        values = np.asarray(column, dtype="<f8")
        made.update(np.where(np.isnan(values), np.nan, values).tobytes())
    return made.hexdigest()[:24]


# Fit.


def _of_fit(fit: gp.Fit) -> Answers:
    return {
        "family": fit.family,
        "status": fit.status,
        "params": list(fit.params.values()),
        "sigma": fit.sigma,
        "aicc": fit.aicc,
    }


def fit_answers() -> Answers:
    """Answers of the stage that fits."""
    answers: Answers = {}
    families = ("pow2", "pow3", "pow4", "exp3", "weibull4", "mmf4", "log2", "powexp")
    runs = chosen_runs()[:20]
    for i, (collection, run) in enumerate(runs):
        key = f"{collection}/{run.name}"
        seen = _until(run, run.step[-1] * (0.15, 0.4, 1.0)[i % 3])
        for family in families:
            put(answers, f"{key}/{family}", _of_fit(gp.fit(seen, family=family)))
        for share in (0.1, 0.5, 1.0):
            found = gp.fit(_until(run, run.step[-1] * share))
            more = {"bic": found.bic, "stderr": list(found.stderr.values())}
            more["scores"] = [score.aicc for score in found.scores]
            more["predict"] = found.predict(run.step[-1] * np.array([0.5, 1.0, 2.0]))
            put(answers, f"{key}/auto {share}", _of_fit(found) | more)
        least = float(np.nanmin(run.loss))
        for robust in ("huber", "cauchy"):
            found = gp.fit(seen, family="pow3", robust=robust)
            put(answers, f"{key}/{robust}", _of_fit(found))
        bound = gp.fit(seen, family="pow4", lowest_floor=0.9 * least)
        put(answers, f"{key}/floor", _of_fit(bound) | {"at_bound": words(bound.at_bound)})
        weight = 1.0 + np.arange(len(seen)) / max(1, len(seen))
        put(answers, f"{key}/weight", _of_fit(gp.fit(seen, family="exp3", weight=weight)))
    for name, trace in odd_traces().items():
        for family in ("auto", "pow3", "mmf4"):
            found = tried(lambda t=trace, f=family: _of_fit(gp.fit(t, family=f)))
            put(answers, f"odd/{name}/{family}", found)

    step, _ = falling(generator(0), 60)
    rows = np.array([falling(generator(seed), 60)[1] for seed in range(24)])
    rows[5, 7] = np.nan
    rows[6] = 1.0
    at = np.array([30.0, 600.0, 2400.0])
    for family in families:
        lowest_floor = None if family in ("pow2", "log2") else 0.1  # these do not level off
        batch = gp.fit_batch(step, rows, family=family, lowest_floor=lowest_floor, threads=1)
        params = {name: np.where(np.isnan(v), 1.0, v) for name, v in batch.params.items()}
        found = {f"params {name}": values for name, values in batch.params.items()}
        found |= {"sigma": batch.sigma, "status": words(batch.status)}
        found["predict"] = batch.predict(at, threads=1)[:6]
        found["evaluate_batch"] = gp.evaluate_batch(family, params, at, threads=2)[-6:]
        put(answers, f"batch/{family}", found)

    traces = [run for _, run in runs[::2]] + list(odd_traces().values())
    for options in (
        {"family": "auto"},
        {"family": "pow3", "robust": "cauchy"},
        {"lowest_floor": 0.5},
    ):
        for i, found in enumerate(_fit_traces(traces, threads=2, **options)):
            put(answers, f"traces/{words(options.values())}/{i}", _of_fit(found))

    for start in ("base-b8x900", "large-b8x900"):
        logged = [run for run in collections()["docstring-t5"] if run.name.startswith(start)]
        kept = (*logged[:3], logged[-1])
        group = [gp.Trace(run.step[::4], run.loss[::4], lr=run.lr[::4]) for run in kept]
        for law in ("annealing", "multi_power"):
            made = gp.fit_schedule_law(group[:3], kind=law)
            found = {"status": made.status, "params": list(made.params.values())}
            found |= {"sigma": made.sigma, "rss": made.rss, "points": made.points}
            found["predict"] = made.predict(group[-1].step, group[-1].lr)[::8]
            put(answers, f"law/{start}/{law}", found)
    return answers


# Forecast.


def _of_forecast(forecast: gp.Forecast, target: float, *, every: bool = True) -> Answers:
    found: Answers = {
        "median": _median(forecast),
        "quantiles": forecast.quantiles,
        "status": forecast.status,
    }
    if every:
        found |= {
            "quantile 0.1": forecast.quantile(0.1),
            "curve_quantile 0.9": forecast.curve_quantile(0.9),
            "curve_quantiles": forecast.curve_quantiles,
            "prob_below": forecast.prob_below(target),
        }
    return found


def _of_reach(reach: gp.Reach) -> Answers:
    first, last = float(reach.step[0]), float(reach.step[-1])
    return {
        "prob_never": reach.prob_never,
        "quantile": [reach.quantile(p) for p in (0.1, 0.5, 0.9)],
        "if_reached": [reach.quantile(p, if_reached=True) for p in (0.1, 0.5, 0.9)],
        "cdf": [reach.prob_by(first + (last - first) * s) for s in (0.0, 0.1, 0.3, 0.6, 1.0)],
        "step": [first, last, len(reach.step)],
        "status": reach.status,
    }


def _of_decision(decision: gp.Decision) -> Answers:
    return {
        "verdict": _verdict(decision),
        "probability": decision.probability,
        "steps_to_target": list(decision.steps_to_target),
    }


def _ahead(seen: gp.Trace, run: gp.Trace, end: float) -> Floats:
    """Three steps past what was seen; the last is near the end of the run."""
    last = float(seen.step[-1]) if len(seen) else 0.0
    return last + (max(end, 2.0 * last) - last) * np.array([0.1, 0.5, 1.0])


def _forecasts_of_runs(answers: Answers, levels: Any) -> None:
    for i, (collection, run) in enumerate(chosen_runs()):
        end = float(run.step[-1])
        finite = run.loss[np.isfinite(run.loss)]
        for share in (0.1, 0.3, 0.6):
            key = f"{collection}/{run.name}/{share}"
            seen = _until(run, end * share)
            at = _ahead(seen, run, end)
            target = float(finite[int(0.7 * finite.size)])
            ways = {
                "plain": (None, "", False),
                "schedule": (run, "", False),
                "past": (None, collection, False),
                "PastRuns": (None, collection, True),
                "PastRuns and schedule": (run, collection, True),
            }
            if not past_runs(collection):
                ways = {name: way for name, way in ways.items() if not way[1]}
            for name, way in ways.items():
                known = _known(seen, *way)
                forecast = gp.forecast(seen, at, levels=levels, **known)
                found = _of_forecast(forecast, target, every=name == "plain")
                put(answers, f"{key}/{name}", found)
                if share == 0.3 or (name == "plain" and i % 2):
                    reach = gp.reach(seen, target, budget=1.2 * end, reached_by="point", **known)
                    put(answers, f"{key}/{name}/reach", _of_reach(reach))
        seen = _until(run, 0.5 * end)
        cases = {
            "met": (float(finite[1]) + 1.0, end),
            "far": (0.01 * float(finite.min()), 2.0 * end),
            "spent": (0.9 * float(finite.min()), 0.25 * end),
        }
        for name, (target, budget) in cases.items():
            found = tried(
                lambda s=seen, t=target, b=budget: _of_reach(
                    gp.reach(s, t, budget=b, reached_by="point")
                )
            )
            put(answers, f"{collection}/{run.name}/reach {name}", found)
        if i % 4 == 0:
            up = _until(rising(run), 0.4 * end)
            goal = 1.0 / (1.0 + float(finite[-1]))
            forecast = gp.forecast(up, _ahead(up, run, end), levels=levels)
            key = f"{collection}/{run.name}/max"
            put(answers, key, _of_forecast(forecast, goal))
            put(
                answers,
                f"{key}/reach",
                _of_reach(gp.reach(up, goal, budget=1.5 * end, reached_by="point")),
            )


def _forecasts_of_odd_traces(answers: Answers, levels: Any) -> None:
    for name, trace in odd_traces().items():
        at = _ahead(trace, trace, 0.0) if len(trace) else np.array([10.0, 20.0])
        put(
            answers,
            f"odd/{name}",
            tried(lambda t=trace, a=at: _of_forecast(gp.forecast(t, a, levels=levels), 1.0)),
        )
        put(
            answers,
            f"odd/{name}/reach",
            tried(
                lambda t=trace, a=at: _of_reach(
                    gp.reach(t, 0.7, budget=float(a[-1]), reached_by="point")
                )
            ),
        )


def _forecasts_of_rows(answers: Answers, levels: Any) -> None:
    step, _ = falling(generator(0), 60)
    rows = np.array([falling(generator(100 + seed), 60)[1] for seed in range(20)])
    rows[3, 5:8] = np.nan
    rows[4] = 2.0
    for direction in ("min", "max"):
        batch = gp.forecast_batch(
            step, rows, [700.0, 2400.0], levels=levels, direction=direction, threads=2
        )
        found = {"median": _median(batch), "quantiles": batch.quantiles}
        put(answers, f"batch/{direction}", found | {"status": words(batch.status)})


def _watched_runs(answers: Answers) -> None:
    for i, (collection, run) in enumerate(chosen_runs()[::2]):
        end = float(run.step[-1])
        finite = run.loss[np.isfinite(run.loss)]
        settings = {"target": float(finite[int((0.4, 0.7, 0.95)[i % 3] * (finite.size - 1))])}
        settings["budget"] = (1.0, 0.8, 1.5)[i % 3] * end
        if i % 4 == 3:
            settings["target"] *= 0.5
        ways = {
            "plain": (None, ""),
            "schedule": (run, ""),
            "past": (None, collection),
            "past and schedule": (run, collection),
        }
        if not past_runs(collection):
            ways = {name: way for name, way in ways.items() if not way[1]}
        for name, way in ways.items():
            watch = _watch(*way, **settings)
            marks = {int(share * len(run)) for share in (0.05, 0.2, 0.5, 0.8, 1.0)}
            for n, (at, loss) in enumerate(zip(run.step, run.loss, strict=True), 1):
                watch.add(float(at), float(loss))
                if n in marks:
                    key = f"watch/{collection}/{run.name}/{name}/{n}"
                    put(answers, key, _of_decision(watch.decision()))
                if n == len(run) // 2 and not way[1]:
                    watch = _watch_again(watch)
    for name, settings in {
        "no target": {},
        "no budget": {"target": 1.2},
        "alpha": {"target": 1.2, "budget": 900.0, "alpha": 0.2},
        "max": {"target": 0.45, "budget": 900.0, "direction": "max"},
    }.items():
        watch = _watch(None, "", **settings)
        trace = gp.Trace(*falling(generator(11), 60))
        for n, (at, loss) in enumerate(zip(trace.step, rising(trace).loss, strict=True), 1):
            watch.add(float(at), float(loss if name == "max" else 1.0 / loss - 1.0))
            if n in (2, 10, 30, 60):
                put(answers, f"watch/{name}/{n}", _of_decision(watch.decision()))


def forecast_answers() -> Answers:
    """Answers of the stage that forecasts."""
    answers: Answers = {}
    levels = np.array(LEVELS)
    _forecasts_of_runs(answers, levels)
    _forecasts_of_odd_traces(answers, levels)
    _forecasts_of_rows(answers, levels)
    _watched_runs(answers)
    return answers


# Plan.


def _tiers() -> list[gp.Tier]:
    return [
        gp.Tier("bronze", 3, 4, gpu="RTX 2080 Ti", memory_gb=11, idle_watts=14, busy_watts=250),
        gp.Tier(
            "silver",
            2,
            4,
            gpu="RTX 3090",
            memory_gb=24,
            idle_watts=20,
            busy_watts=350,
            price_per_gpu_hour=0.5,
        ),
        gp.Tier(
            "gold",
            2,
            8,
            gpu="A100",
            memory_gb=40,
            idle_watts=50,
            busy_watts=400,
            price_per_gpu_hour=1.75,
        ),
    ]


def _round(jobs: int, seed: int) -> dict[str, Any]:
    """Columns of a round of a busy cluster."""
    rng = generator(seed)
    grid = np.arange(jobs * 12)
    kept = rng.random(grid.size) < 0.6
    kept[0] = True
    job, tier, gpus = grid // 12, grid // 4 % 3, 2 ** (grid % 4)
    worth = 1.0 / draw(rng, 0.1, 2.0, jobs)
    speed = (1.0 + 0.5 * np.arange(3)) * draw(rng, 0.7, 1.3, 3 * jobs).reshape(jobs, 3)
    value = worth[job] * speed[job, tier] * gpus / np.sqrt(1.0 + 0.2 * gpus)
    return {
        "job": job[kept],
        "tier": tier[kept],
        "gpus": gpus[kept],
        "value": value[kept],
        "capacity": np.array([12, 8, 16]) * max(1, jobs // 20),
    }


def _limits(columns: dict[str, Any], seed: int) -> dict[str, Any]:
    """Limits of a round beyond its capacity, by turns."""
    rng = generator(1000 + seed)
    options = len(columns["job"])
    jobs = int(columns["job"].max()) + 1
    most = int(columns["capacity"].sum())
    users = draw_integers(rng, 4, jobs)[columns["job"]]
    groups = draw_integers(rng, 2, jobs)[columns["job"]]
    watts = columns["gpus"] * np.array([250.0, 350.0, 400.0])[columns["tier"]]
    turns: list[dict[str, Any]] = [
        {},
        {"node_gpus": np.array([4, 4, 8])},
        {"watts": watts, "power_cap_w": 200.0 * most},
        {"user": users, "user_quota": np.full(4, max(1, most // 6))},
        {
            "user": users,
            "user_quota": np.full(4, max(1, most // 5)),
            "group": groups,
            "group_quota": np.array([most // 2, most // 4]),
            "node_gpus": np.array([4, 0, 8]),
        },
        {"gap": 0.05, "prices": draw(rng, 0.0, 1.0, 3), "threads": 2},
    ]
    assert options == len(users)
    return turns[seed % len(turns)]


def _snapshot(jobs: int, seed: int, *, sharing: str = "", observed: bool = False) -> gp.Snapshot:
    """Live jobs with forecasts, some of which run."""
    rng = generator(2000 + seed)
    tiers = _tiers()
    left = [tier.gpus // 3 for tier in tiers]
    live, running = [], []
    for j in range(jobs):
        most = 1 + int(3.0 * rng.random())
        ways = []
        for t in range(3):
            for k in range(most):
                if rng.random() < 0.75:
                    gang, rate = 2**k, float((1.0 + t) * draw(rng, 0.7, 1.3, 1)[0])
                    rate = rate * gang / math.sqrt(1.0 + 0.3 * gang)
                    use = {_utilization(): float(draw(rng, 0.5, 1.0, 1)[0])}
                    ways.append(gp.Option(t, gang, rate, **use))
                    if sharing and rng.random() < 0.5:
                        ways.append(gp.Option(t, gang, 0.7 * rate, sharing=sharing, **use))
        ways = ways or [gp.Option(0, 1, 1.0)]
        size = float(1000.0 / draw(rng, 0.05, 1.0, 1)[0])
        steps = np.sort(size * draw(rng, 0.5, 1.8, 32))
        steps[int(32 * draw(rng, 0.5, 1.05, 1)[0]) :] = np.inf
        if rng.random() < 0.05:
            steps[:] = np.inf
        done = float(draw(rng, 0.0, 400.0, 1)[0])
        deadline = float(draw(rng, 1500.0, 20000.0, 1)[0]) if rng.random() < 0.6 else math.inf
        more: dict[str, Any] = {}
        if observed:
            ahead, loss = falling(rng, 8, noise=0.0)
            more = {"ahead_steps": ahead, "ahead_loss": np.sort(loss)[::-1]}
        live.append(
            gp.Job(
                j,
                ways,
                user=f"user{int(5 * rng.random())}",
                group=f"group{int(2 * rng.random())}",
                submit_s=float(draw(rng, 0.0, 900.0, 1)[0]),
                weight=float(draw(rng, 0.5, 2.0, 1)[0]),
                memory_gb=float(draw(rng, 2.0, 10.0, 1)[0]),
                steps_done=done,
                attained_s=float(draw(rng, 0.0, 300.0, 1)[0]),
                attained_gpu_s=float(draw(rng, 0.0, 900.0, 1)[0]),
                remaining_steps=steps,
                budget_steps=done + 4.0 * size,
                restart_s=30.0,
                priority=int(rng.random() < 0.1),
                preemptible=bool(rng.random() < 0.9),
                deadline_s=deadline,
                sm_activity=float(draw(rng, 0.1, 0.9, 1)[0]),
                kind=("resnet", "dlrm", "bert", "")[int(4 * rng.random())],
                **more,
            )
        )
        if ways[0].sharing == "exclusive" and ways[0].gpus <= left[ways[0].tier]:
            left[ways[0].tier] -= ways[0].gpus
            since = float(draw(rng, 0.0, 900.0, 1)[0])
            running.append(gp.Allocation(j, ways[0].tier, ways[0].gpus, since))
    return gp.Snapshot(tiers, live, running=running, now_s=1000.0)


def _measured(seed: int) -> tuple[list[gp.KindPair], list[gp.JobKind]]:
    """Some pairs of kinds, and what tells all kinds from one another."""
    rng = generator(seed)
    kinds = ("resnet", "dlrm", "bert", "gpt", "vit")
    pairs = [
        gp.KindPair(
            gpu, a, b, float(1.0 + rng.random()), float(1.0 + rng.random()), sharing=sharing
        )
        for gpu in ("A100", "RTX 3090")
        for sharing in ("mps", "naive")
        for i, a in enumerate(kinds)
        for b in kinds[i + 1 :]
        if rng.random() < 0.6
    ]
    alone = [
        gp.JobKind(kind, gpu, kind[:1], list(draw(rng, 0.0, 2.0, 3)))
        for gpu in ("A100", "RTX 3090")
        for kind in kinds
    ]
    return pairs, alone


def _of_plan(plan: gp.Plan) -> Answers:
    return {
        "allocations": words(
            f"{a.job}:{a.tier}:{a.gpus}:{a.partner}"
            for a in sorted(plan.allocations, key=lambda a: a.job)
        ),
        "since_s": [a.since_s for a in sorted(plan.allocations, key=lambda a: a.job)],
        "stop": words(sorted(plan.stop)),
        "value": plan.value,
        "bound": plan.bound,
        "gap": plan.gap,
        "prices": plan.prices,
    }


def _of_options(options: Iterable[gp.Option]) -> Answers:
    options = list(options)
    return {
        "ways": words(f"{o.tier}:{o.gpus}:{o.sharing}" for o in options),
        "steps_per_s": [o.steps_per_s for o in options],
        "utilization": [getattr(o, _utilization()) for o in options],
    }


def _of_choices(choices: Iterable[gp.AcceleratorChoice]) -> Answers:
    choices = list(choices)
    return {
        "order": words(f"{c.tier}:{c.option.gpus}:{c.good:d}:{c.pareto:d}" for c in choices),
        **{
            name: [getattr(c, name) for c in choices]
            for name in ("probability", "hours", "hours_low", "hours_high", "watts", "kwh", "cost")
        },
    }


def _plan_settings(pairs: gp.Pairs) -> dict[str, dict[str, Any]]:
    """Ways of asking for a plan, by name."""
    objectives = ("jct", "known_size", "quality", "deadline", "fairness", "energy", "cost", "edp")
    settings: dict[str, dict[str, Any]] = {name: {"objective": name} for name in objectives}
    settings |= {
        "weighed": {"objective": {"jct": 1.0, "edp": 0.5}},
        "in order": {"objective": ["deadline", "jct", "energy"], "slack": 0.1},
        "in_nodes": {"in_nodes": True},
        "naive": {"sharing": "naive"},
        "mps": {"sharing": "mps"},
        "mps with pairs": {"sharing": "mps", "pairs": pairs},
        "mig": {"sharing": "mig"},
        "mps in_nodes": {"sharing": "mps", "in_nodes": True},
        "max_wait_s": {"max_wait_s": 300.0},
        "max_wait_s in_nodes": {"max_wait_s": 500.0, "in_nodes": True},
        "hysteresis": {"hysteresis": 0.5},
        "no hysteresis": {"hysteresis": 0.0},
        "min_run_s": {"min_run_s": 500.0},
        "ageing_s": {"ageing_s": 200.0},
        "power_cap_w": {"power_cap_w": 6000.0},
        "quotas": {"user_quota": {"user0": 3, "user1": 6}, "group_quota": {"group0": 10}},
        "joule_value": {"joule_value": 1e-6},
        "stop_probability": {"stop_probability": 0.6},
        "outrun_probability": {"outrun_probability": 0.5},
        "round_s": {"round_s": 3600.0, "gap": 0.001},
        "prices": {"prices": [0.0001, 0.0002, 0.0003]},
    }
    return settings


def _rounds(answers: Answers) -> None:
    for seed in range(66):
        columns = _round((6, 20, 60)[seed // 6 % 3], seed)
        found = gp.solve_round(**columns, **_limits(columns, seed))
        values = {"chosen": words(found.chosen), "value": found.value, "bound": found.bound}
        put(answers, f"solve_round/{seed}", values | {"gap": found.gap, "prices": found.prices})


def _pairs(answers: Answers) -> gp.Pairs:
    measured, alone = _measured(3)
    pairs = gp.learn_pairs(measured, alone)
    rows = sorted(pairs.rows, key=lambda r: (r.gpu, r.sharing, r.first, r.second, r.predicted))
    for r in rows:
        put(
            answers,
            f"learn_pairs/{r.gpu}/{r.sharing}/{r.first}/{r.second}",
            {"slowdowns": [r.first_slowdown, r.second_slowdown], "predicted": r.predicted},
        )
    for sharing in ("naive", "mps", "mig"):
        for i in range(12):
            rng = generator(400 + i)
            first, second = (float(v) for v in draw(rng, 0.0, 1.0, 2))
            memory = [float(v) for v in draw(rng, 2.0, 24.0, 2)]
            known: dict[str, Any] = {"gpu_memory_gb": 40.0}
            kinds = ("", "")
            if i % 3 == 2:
                known |= {"gpu": "A100", "pairs": pairs}
                kinds = (("resnet", "bert"), ("gpt", "vit"))[i % 2]
            alone_of = [
                gp.Profile(activity, gb, kind)
                for activity, gb, kind in zip((first, second), memory, kinds, strict=True)
            ]
            found = gp.shared_speeds(*alone_of, sharing, **known)
            put(answers, f"shared_speeds/{sharing}/{i}", {"speeds": list(found)})
    return pairs


def _indices(answers: Answers) -> None:
    for i in range(40):
        rng = generator(500 + i)
        samples = 10.0 / draw(rng, 0.02, 1.0, 1 + 7 * i)
        samples[: i % 5] = np.inf
        put(answers, f"gittins_index/{i}", {"index": gp.gittins_index(samples)})


def _plans(answers: Answers, pairs: gp.Pairs) -> None:
    for kind in ("few", "observed", "sharing"):
        for jobs in (8, 40):
            for seed in range(2):
                for name, settings in _plan_settings(pairs).items():
                    sharing = str(settings.get("sharing", "mps")) if kind == "sharing" else ""
                    snapshot = _snapshot(jobs, seed, sharing=sharing, observed=kind == "observed")
                    key = f"plan/{kind}/{jobs}/{seed}/{name}"
                    found = tried(lambda s=snapshot, g=settings: _of_plan(gp.plan(s, **g)))
                    put(answers, key, found)
    snapshot = _snapshot(300, 5, observed=True)
    first = gp.plan(snapshot)
    put(answers, "plan/300/first", _of_plan(first))
    put(answers, "plan/300/again", _of_plan(gp.plan(snapshot, prices=first.prices, reasons=False)))


def _options_and_choices(answers: Answers, pairs: gp.Pairs) -> None:
    tiers = _tiers()
    gangs = np.array([1, 2, 4, 4, 8, 8, 16])
    nodes = np.array([1, 1, 1, 2, 1, 2, 2])
    for i in range(8):
        rng = generator(600 + i)
        compute, inside, between = draw(rng, 0.5, 2.0, 3)
        seconds = compute / gangs + 0.02 * inside * (gangs - 1) / gangs + 0.05 * between
        seconds = (seconds + 0.03 * between * (nodes - 1)) * draw(rng, 0.97, 1.03, 7)
        fit = gp.fit_scaling(gangs, seconds, nodes=nodes)
        more = gp.fit_scaling(
            gangs, seconds, nodes=nodes, batch_per_gpu=64.0 / gangs if i % 2 else None
        )
        found = {"terms": list(fit.terms.values()), "error": fit.typical_error}
        found["seconds"] = [fit.step_seconds(g, n) for g, n in ((1, 1), (3, 1), (8, 2), (16, 4))]
        found["by batch"] = [more.step_seconds(g, 1, 64.0 / g) for g in (1, 2, 8)]
        put(answers, f"fit_scaling/{i}", found)
        profile = gp.Profile(0.6, 8.0, "resnet")
        listed = gp.options_of(tiers, [None if i % 3 == 0 else fit, fit, fit], alone=profile)
        put(answers, f"options_of/{i}/alone", _of_options(listed))
        listed = gp.options_of(
            tiers,
            {"silver": fit, "gold": more},
            alone=profile,
            batch=64.0,
            max_gpus=8,
            sharing=("mps", "naive", "mig")[i % 3],
            partner=gp.Profile(0.3, 9.0, "bert"),
            pairs=pairs if i % 2 else None,
            **{_utilization(): 0.8},
        )
        put(answers, f"options_of/{i}/shared", _of_options(listed))
        steps = np.sort(5000.0 / draw(rng, 0.1, 1.0, 64))
        steps[60:] = np.inf
        step, loss = falling(rng, 80)
        job = gp.Job(
            i,
            listed,
            remaining_steps=steps,
            observed_step=step,
            observed_loss=loss,
            steps_done=float(step[-1]),
            budget_steps=8.0 * float(step[-1]),
            memory_gb=8.0,
        )
        for prefer in ("hours", "kwh", "cost", "watts"):
            limits = {"max_hours": 6.0, "max_kwh": 9.0} if i % 2 else {"max_cost": 4.0}
            choices = gp.choose_accelerator(job, tiers, prefer=prefer, confidence=0.8, **limits)
            put(answers, f"choose_accelerator/{i}/{prefer}", _of_choices(choices))
        choices = gp.choose_accelerator(
            job, tiers, target=0.97 * float(loss[-1]), reached_by="point", max_hours=1.0
        )
        put(answers, f"choose_accelerator/{i}/target", _of_choices(choices))


def plan_answers() -> Answers:
    """Answers of the stage that plans."""
    answers: Answers = {}
    _rounds(answers)
    pairs = _pairs(answers)
    _indices(answers)
    _plans(answers, pairs)
    _options_and_choices(answers, pairs)
    return answers


# Simulate.


def _synthetic(
    jobs: int, seed: int, *, rates: bool = False, pairs: bool = False, deadlines: bool = False
) -> gp.Workload:
    """Jobs of several users on three tiers."""
    rng = generator(3000 + seed)
    columns: dict[str, Any] = {
        "job": np.arange(jobs),
        "submit_s": np.sort(draw(rng, 0.0, 30.0 * jobs, jobs)),
        "gpus": 2 ** draw_integers(rng, 4, jobs),
        "user": [f"user{n}" for n in draw_integers(rng, 5, jobs)],
        "memory_gb": draw(rng, 2.0, 5.0, jobs),
        "weight": draw(rng, 0.5, 2.0, jobs),
        _utilization(): draw(rng, 0.3, 1.0, jobs),
        "sm_activity": draw(rng, 0.1, 0.8, jobs),
    }
    work = 200.0 / draw(rng, 0.05, 1.0, jobs)
    if rates:
        alone = np.array([1.0, 1.7, 2.6]) * draw(rng, 0.7, 1.3, 3 * jobs).reshape(jobs, 3)
        alone[rng.random(jobs) < 0.2, 0] = 0.0
        columns |= {"budget_steps": np.ceil(work), "steps_per_s": alone}
        columns["job_class"] = [("a", "b", "c")[n] for n in draw_integers(rng, 3, jobs)]
    else:
        columns["duration_s"] = work
    if deadlines:
        columns["deadline_s"] = columns["submit_s"] + 6.0 * work
        columns["priority"] = (rng.random(jobs) < 0.15).astype(np.int64)
    table = [
        (a, b, tier, float(draw(rng, 0.5, 1.0, 1)[0]), float(draw(rng, 0.5, 1.0, 1)[0]))
        for tier in range(3)
        for a, b in (("a", "b"), ("b", "c"), ("a", "a"))
        if pairs
    ]
    tiers = _tiers()
    return gp.Workload(tiers, columns, pairs=table, name=f"synthetic{seed}")


def _of_simulation(simulation: gp.Simulation) -> Answers:
    names = (
        "mean_jct_s",
        "median_jct_s",
        "p95_jct_s",
        "mean_wait_s",
        "mean_wait_per_user_s",
        "makespan_s",
        "gpu_seconds",
        "utilization",
        "energy_kwh",
        "carbon_kg",
        "worst_ftf",
        "share_unfair",
        "share_in_time",
        "lost_gpu_seconds",
    )
    jobs, spans = simulation.jobs, _spans(simulation)
    return {
        **{name: float(getattr(simulation, name)) for name in names},
        "preemptions": int(simulation.preemptions),
        "failures": int(simulation.failures),
        "events": _event_count(simulation),
        "spans": len(spans["job"]),
        "outcomes": words(jobs["outcome"][:12]),
        "end_s": jobs["end_s"][:3],
        "jobs digest": digest(jobs["start_s"], jobs["end_s"], jobs["energy_j"], jobs["ftf"]),
        "spans digest": digest(
            *(spans[name] for name in ("job", "tier", "gpus", "start_s", "end_s", "partner"))
        ),
        "timeline digest": digest(*(simulation.timeline[name] for name in ("time_s", "busy"))),
        "users": simulation.user_accounts["gpu_seconds"].tolist(),
        "tiers": simulation.tier_accounts["energy_kwh"].tolist(),
    }


def simulate_answers() -> Answers:
    """Answers of the stage that simulates."""
    answers: Answers = {}
    folder = DATA / "workloads" / "supercom"
    few = gp.generate_workload(folder, users=12, seed=1)
    bundled = gp.read_workload(folder)
    plain = _synthetic(80, 0)
    rated = _synthetic(100, 1, rates=True, deadlines=True)
    paired = _synthetic(90, 2, rates=True, pairs=True)
    node_failures = {"node_every_s": 9000.0, "repair_s": 600.0}
    job_failures = {"job_every_s": 4000.0, "checkpoint_s": 300.0}
    cases: dict[str, tuple[gp.Workload, dict[str, Any]]] = {
        "supercom": (few, {}),
        "supercom, told": (few, {"restart_s": 60.0, "session_s": 1200.0, "stop_at_target": True}),
        "plain": (plain, {}),
        "errors": (plain, {"forecast_sigma": 0.7, "restart_s": 30.0, "seed": 3}),
        "rounds": (plain, {"round_s": 360.0, "session_s": 900.0, "restart_s": 20.0}),
        "rated": (rated, {"carbon_g_per_kwh": [100.0, 400.0, 250.0]}),
        "rated in_nodes": (rated, {"in_nodes": True, "restart_s": 15.0}),
        "failures": (plain, {"failures": job_failures | node_failures, "seed": 5}),
        "failing jobs": (rated, {"failures": job_failures, "seed": 6, "restart_s": 10.0}),
        "mps": (paired, {"sharing": "mps"}),
        "sleep": (
            plain,
            {"sleep": {"after_s": 300.0, "watts": 5.0, "wake_s": 60.0}, "user_gpus": 12},
        ),
    }
    more = (
        "best_value:energy",
        "best_value:fairness",
        "best_value:known_size",
        "best_value:deadline",
    )
    for name, (workload, options) in cases.items():
        for policy in (*gp.POLICIES, *more):
            found = tried(
                lambda w=workload, p=policy, o=options: _of_simulation(
                    gp.simulate(w, p, **options_by_policy([p, "best_value"], o)[0])
                )
            )
            put(answers, f"{name}/{policy}", found)
    for policy in ("fifo", "srtf", "dare", "best_value"):
        put(answers, f"bundled/{policy}", _of_simulation(gp.simulate(bundled, policy)))
    for name, planner in {
        "max_wait_s": {"max_wait_s": 1800.0},
        "energy": {"objective": ["jct", "energy"], "slack": 0.05},
        "hysteresis": {"hysteresis": 0.3, "min_run_s": 200.0, "ageing_s": 3600.0},
        "power_cap_w": {"power_cap_w": 9000.0},
    }.items():
        found = gp.simulate(rated, "best_value", planner=planner, restart_s=20.0)
        put(answers, f"planner/{name}", _of_simulation(found))
    for sharing in ("naive", "mig"):
        found = gp.simulate(paired, "best_value", sharing=sharing)
        put(answers, f"sharing/{sharing}", _of_simulation(found))

    def by_plan(snapshot: gp.Snapshot) -> gp.Plan:
        return gp.plan(snapshot, objective="known_size", hysteresis=0.1)

    found = gp.simulate(plain, by_plan, round_s=600.0)
    put(answers, "callable", _of_simulation(found))
    for workload in (plain, rated, paired, _synthetic(20, 9), bundled):
        key = f"lower_bound/{workload.name}/{len(workload)}"
        put(answers, key, {"lower_bound_jct_s": workload.lower_bound_jct_s})
    compared = gp.compare(
        lambda seed: _synthetic(30, 20 + seed),
        ["fifo", "sjf", "las", "best_value"],
        seeds=2,
        restart_s=10.0,
        threads=1,
    )
    for metric in ("mean_jct_s", "p95_jct_s", "makespan_s", "energy_kwh"):
        for policy, values in compared.ratio(metric, to="fifo").items():
            put(answers, f"compare/{metric}/{policy}", {"ratio": list(values)})
            put(
                answers, f"compare/{metric}/{policy}", {"mean": list(compared.mean(metric)[policy])}
            )
            put(answers, f"compare/{metric}/{policy}", {"runs": compared.values(policy, metric)})
    return answers


STAGES: dict[str, Callable[[], Answers]] = {
    "fit": fit_answers,
    "forecast": forecast_answers,
    "plan": plan_answers,
    "simulate": simulate_answers,
}


# The file.


def encoded(value: Any) -> Any:
    """Give a value as the file holds it: floats as `float.hex` writes them, arrays flat."""
    if isinstance(value, np.ndarray):
        return [encoded(item) for item in value.ravel()]
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return "nan" if math.isnan(value) else float(value).hex()
    return str(value)


def compute(stage: str) -> Answers:
    """Compute the answers of a stage, encoded, in the order in which they are asked for."""
    return {key: encoded(value) for key, value in STAGES[stage]().items()}


def machine() -> dict[str, str]:
    """What the last bits of an answer may depend on."""
    from glidepath import _core

    return {
        "isa": _core.best_isa(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
    }


def count(answers: Answers) -> int:
    """Scalars among the answers."""
    return sum(len(value) if isinstance(value, list) else 1 for value in answers.values())


def read(file: Path = ANSWERS) -> dict[str, Any]:
    """Read recorded answers: ``machine`` and ``stages``."""
    with gzip.open(file, "rt", encoding="utf-8") as text:
        recorded: dict[str, Any] = json.load(text)
    return recorded


def write(file: Path = ANSWERS) -> None:
    """Compute and write every answer; the same answers give the same bytes."""
    stages = {}
    for stage in STAGES:
        begun = time.process_time()
        stages[stage] = compute(stage)
        spent = time.process_time() - begun
        sys.stderr.write(
            f"{stage}: {count(stages[stage])} answers, {spent:.1f} s of processor time\n"
        )
    document = {"machine": machine(), "stages": stages}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:2]))
