# SPDX-License-Identifier: Apache-2.0
"""What a pruner saves and what it costs, on recorded sweeps: `glidepath bench stoppers FOLDER`.

A sweep is the finished trials of one task. A study takes some of them in a random order and
replays each, report by report, to a pruner through Optuna's own ask, report, should_prune and tell.

Trials differ in length. Each is resampled to a grid of equal shares of its own budget, at most
`REPORTS` of them: a report is the last logged value at or before that share. Runs of MLPerf end
where they meet a target, so that the best are the shortest: the budget of all is there the last
step that nine in ten reach, and a run that ended at its target before keeps its last value.

The value of a study is that of its best complete trial, as `study.best_value`; where none is
complete, the best last report. Regret is how much better the best trial of the study would have
been, rank the place of the winner among the final values of all its trials (1 is the best).
"""

from __future__ import annotations

import json
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath._bench.accuracy.scores import grouped
from glidepath._columns import Floats
from glidepath._core import InputError
from glidepath._results import require
from glidepath._trace import Trace
from glidepath.readers._open import read_traces

__all__ = ["COLUMNS", "PRUNERS", "Sweep", "limits", "replay", "run", "summary", "sweeps"]

Row = dict[str, Any]

REPORTS = 50
TRIALS = 40  # of a study
FEWEST_TRIALS, FEWEST_POINTS = 6, 5
COLUMNS = ("sweep", "pruner", "epochs", "regret", "worst", "scaled", "rank", "cpu_ms")
MOST_EPOCHS, MOST_REGRET, MOST_CPU_MS = 0.25, 0.5, 5.0  # of what is worth it; regret in Hyperband's

# Which part of a trial's name is its task, by collection; else all up to the last slash.
_TASKS = {
    "algoperf": r"[^/]*/[^/]*",  # workload, and rule set: tuned by the rules or by the submission
    "deepobs-*": r"[^/]*",
    "digits-*": "",
    "docs-*": "",
    "docstring-*": "",
    "mlperf-deepcam": r".*(?=/)",  # its steps are batches, and systems differ in their size
    "mlperf-*": "",
}
_ENDS_AT_TARGET = "mlperf-*"


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Finished trials of one task, on a common grid.

    Attributes
    ----------
    name : str
        Collection and task.
    direction : {"min", "max"}
    values : ndarray, shape (n, reports)
        What each trial reports at each share of its budget; NaN where it has diverged.
    first : ndarray of int, shape (n,)
        The first report of each trial: some evaluate late only.
    """

    name: str
    direction: str
    values: Floats
    first: NDArray[np.int64]

    @property
    def final(self) -> Floats:
        """The last value of each trial, shape (n,)."""
        return self.values[:, -1]

    @property
    def scale(self) -> float:
        """By how much the median trial is worse than the best: what regret is compared with."""
        final = self.final[np.isfinite(self.final)]
        best = final.min() if self.direction == "min" else final.max()
        return float(abs(np.median(final) - best)) or 1.0


def _direction(path: Path) -> str:
    beside = path.with_name(path.name.partition(".")[0] + ".json")
    return str(json.loads(beside.read_text()).get("direction", "min")) if beside.exists() else "min"


def _resampled(trace: Trace, budget: float, reports: int) -> tuple[Floats, int]:
    """Give what a trial reports at each share of its budget, and its first report."""
    shares = budget * np.arange(1, reports + 1) / reports
    at = np.searchsorted(trace.step, shares * (1 + 1e-9), side="right") - 1
    return np.where(at < 0, np.nan, trace.loss[np.maximum(at, 0)]), int(np.argmax(at >= 0))


def _sweep(name: str, direction: str, traces: Sequence[Trace], *, ends_at_target: bool) -> Sweep:
    lasts = np.array([trace.step[-1] for trace in traces])
    budgets = np.full(lasts.size, np.quantile(lasts, 0.1)) if ends_at_target else lasts
    traces = [t for t, budget in zip(traces, budgets, strict=True) if t.step[0] <= budget]
    budgets = budgets[: len(traces)] if ends_at_target else budgets
    points = [int(np.sum(t.step <= b)) for t, b in zip(traces, budgets, strict=True)]
    reports = min(REPORTS, int(np.median(points)))
    pairs = [_resampled(t, b, reports) for t, b in zip(traces, budgets, strict=True)]
    values = np.array([value for value, _ in pairs])
    values[~np.isfinite(values)] = np.nan
    return Sweep(name, direction, values, np.array([first for _, first in pairs], np.int64))


def sweeps(folder: Path, only: Sequence[str] = ()) -> Iterator[Sweep]:
    """Find the sweeps of a folder.

    Parameters
    ----------
    folder : Path
        Its CSV files of curves, and those of its subfolders; or one such file. The JSON beside a
        file says the direction. A file ``x-nonfinite`` belongs to ``x``.
    only : sequence of str, optional
        Patterns of names, such as ``"taskset-*"``; by default all.

    Raises
    ------
    InputError
        Where there is no sweep: six trials of one task, with five points each.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.csv*"))
    found = 0
    for path in files:
        stem = path.name.partition(".")[0]
        if stem.endswith("-nonfinite") or not _wanted(stem, [p.partition(" ")[0] for p in only]):
            continue
        try:
            tasks = _tasks(path, stem)
        except (InputError, OSError):
            continue  # another kind of table
        for task, trials in tasks.items():
            name = f"{stem} {task}".strip()
            if len(trials) < FEWEST_TRIALS or not _wanted(name, only):
                continue
            sweep = _sweep(
                name, _direction(path), trials, ends_at_target=fnmatch(stem, _ENDS_AT_TARGET)
            )
            if sweep.values.shape[1] >= FEWEST_POINTS:
                found += 1
                yield sweep
    if not found:
        raise InputError(
            f"{folder}: no sweep of {FEWEST_TRIALS} trials of one task with {FEWEST_POINTS} points"
        )


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatch(name, pattern) for pattern in only)


def _tasks(path: Path, stem: str) -> dict[str, list[Trace]]:
    """Read the trials of a file by their task, with those that were kept apart."""
    traces = read_traces(path)
    lost = path.with_name(path.name.replace(stem, f"{stem}-nonfinite", 1))
    if lost.exists():
        traces += read_traces(lost)
    rule = next((rule for known, rule in _TASKS.items() if fnmatch(stem, known)), r".*(?=/)|")
    tasks: dict[str, list[Trace]] = {}
    for trace in traces:
        task = re.match(rule, trace.name)
        if len(trace) >= FEWEST_POINTS:
            tasks.setdefault(task[0] if task else "", []).append(trace)
    return tasks


def _ours(reports: int, **options: Any) -> Any:
    from glidepath.adapters.optuna import ForecastPruner

    return ForecastPruner(reports, **options)


def _optuna(name: str, *args: Any, **options: Any) -> Any:
    if name == "WilcoxonPruner":
        require("scipy.stats")  # which its first decision would import
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are experimental
        return getattr(require("optuna").pruners, name)(*args, **options)


# Each at its defaults, but for what needs the number of reports.
PRUNERS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: _optuna("NopPruner"),
    "median": lambda n: _optuna("MedianPruner"),
    "percentile": lambda n: _optuna("PercentilePruner", 25.0),
    "patient": lambda n: _optuna(
        "PatientPruner", _optuna("MedianPruner"), patience=max(1, n // 10)
    ),
    "wilcoxon": lambda n: _optuna("WilcoxonPruner"),
    "sha": lambda n: _optuna("SuccessiveHalvingPruner"),
    # Optuna promotes at once, which is the asynchronous rule: this one with Hyperband's factor.
    "asha": lambda n: _optuna("SuccessiveHalvingPruner", min_resource=1, reduction_factor=3),
    "hyperband": lambda n: _optuna("HyperbandPruner", 1, n, 3),
    "forecast": _ours,
    "forecast_36": lambda n: _ours(n, spend=0.36),  # about the epochs that Hyperband uses
}


def replay(
    sweep: Sweep,
    pruner: Any,
    order: Sequence[int],
    *,
    seed: int = 0,
    workers: int = 1,
) -> Row:
    """Replay trials of a sweep as one study.

    Parameters
    ----------
    sweep : Sweep
    pruner : optuna.pruners.BasePruner
    order : sequence of int
        The trials, in the order in which they begin.
    seed : int, optional
        Names the study, from which Hyperband draws its brackets.
    workers : int, optional
        Trials that run at a time, each with a report in turn.

    Returns
    -------
    dict
        ``epochs`` (share of all reports), ``regret``, ``scaled`` (by `Sweep.scale`), ``rank``,
        ``cpu_ms`` (thread CPU of a report and its decision) and ``complete`` (trials).
    """
    optuna = require("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name=f"{sweep.name} {seed}",
        direction="minimize" if sweep.direction == "min" else "maximize",
        pruner=pruner,
        sampler=optuna.samplers.RandomSampler(seed=seed),
    )
    states = optuna.trial.TrialState
    waiting = list(order)
    running: list[tuple[int, Any, Iterator[int]]] = []
    ends: dict[int, tuple[float, bool]] = {}
    seconds, used = 0.0, 0
    reports = sweep.values.shape[1]
    while waiting or running:
        while waiting and len(running) < workers:
            number = waiting.pop(0)
            running.append((number, study.ask(), iter(range(int(sweep.first[number]), reports))))
        for entry in list(running):
            number, trial, left = entry
            k = next(left)
            value = float(sweep.values[number, k])
            begin = time.thread_time()
            trial.report(value, k + 1)
            prune = trial.should_prune()
            seconds += time.thread_time() - begin
            used += 1 if k > sweep.first[number] else k + 1
            if not prune and k + 1 < reports:
                continue
            running.remove(entry)
            ends[number] = (value, not prune)
            if prune:
                study.tell(trial, state=states.PRUNED)
            elif math.isnan(value):
                study.tell(trial, state=states.FAIL)
            else:
                study.tell(trial, value)
    return _score(sweep, order, ends, used, seconds)


def _score(
    sweep: Sweep,
    order: Sequence[int],
    ends: dict[int, tuple[float, bool]],
    used: int,
    seconds: float,
) -> Row:
    sign = 1.0 if sweep.direction == "min" else -1.0
    final = sign * sweep.final[list(order)]
    ok = final[np.isfinite(final)]
    complete = [n for n, (value, whole) in ends.items() if whole and math.isfinite(value)]
    pool = complete or [n for n, (value, _) in ends.items() if math.isfinite(value)]
    # A study whose trials have all diverged found what the worst of the others would have been.
    worst = float(ok.max()) if ok.size else 0.0
    got = min((sign * ends[n][0] for n in pool), default=worst)
    regret = max(float(got - ok.min()), 0.0) if ok.size else 0.0
    reports = sweep.values.shape[1]
    return {
        "epochs": used / (len(order) * reports),
        "regret": regret,
        "scaled": regret / sweep.scale,
        "rank": int(np.sum(ok < got)) + 1,
        "cpu_ms": 1e3 * seconds / used,
        "complete": len(complete),
    }


def run(
    found: Sequence[Sweep],
    *,
    pruners: Sequence[str] = tuple(PRUNERS),
    seeds: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Replay every sweep in `seeds` orders with every pruner; one row per study."""
    unknown = [name for name in pruners if name not in PRUNERS]
    if unknown:
        known = ", ".join(PRUNERS)
        raise InputError(f"bench stoppers: pruner is {unknown[0]!r}, expected one of {known}")
    rows: list[Row] = []
    for done, sweep in enumerate(found):
        if progress is not None:
            progress(done, len(found))
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(sweep.values))[:TRIALS].tolist()
            for name in pruners:
                pruner = PRUNERS[name](sweep.values.shape[1])
                row = replay(sweep, pruner, order, seed=seed)
                rows.append({"sweep": sweep.name, "pruner": name, "seed": seed, **row})
    return rows


def summary(rows: Sequence[Row]) -> list[Row]:
    """Average the studies of each sweep and pruner, and the sweeps of each pruner (last)."""

    def means(of: Sequence[Row]) -> Row:
        keys = ("epochs", "regret", "scaled", "rank", "cpu_ms")
        return {key: float(np.mean([row[key] for row in of])) for key in keys}

    table = [
        {"sweep": sweep, "pruner": pruner, **means(of), "worst": max(row["regret"] for row in of)}
        for (sweep, pruner), of in grouped(rows, itemgetter("sweep", "pruner")).items()
    ]
    if len({row["sweep"] for row in table}) > 1:
        for pruner, of in grouped(table, itemgetter("pruner")).items():
            # Regrets of different metrics have no mean.
            none = {"regret": math.nan, "worst": math.nan}
            table.append({"sweep": "all", "pruner": pruner, **means(of), **none})
    return [{key: row[key] for key in COLUMNS} for row in table]


def limits(table: Sequence[Row]) -> list[Row]:
    """Compare our pruner with Hyperband on each sweep.

    The limits: a quarter of the epochs, 5 ms a report and half the regret of Hyperband.
    """
    found = []
    for ours in table:
        others = [r for r in table if (r["sweep"], r["pruner"]) == (ours["sweep"], "hyperband")]
        if ours["pruner"] != "forecast" or ours["sweep"] == "all" or not others:
            continue
        allowed = MOST_REGRET * others[0]["regret"]
        cheap = ours["epochs"] <= MOST_EPOCHS and ours["cpu_ms"] <= MOST_CPU_MS
        found.append(
            {
                "sweep": ours["sweep"],
                "epochs": ours["epochs"],
                "regret": ours["regret"],
                "limit": allowed,
                "holds": cheap and ours["regret"] <= allowed,
            }
        )
    return found
