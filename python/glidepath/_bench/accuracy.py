# SPDX-License-Identifier: Apache-2.0
"""Backtest of the forecasts on any folder of finished curves: `glidepath bench accuracy FOLDER`.

Each curve is cut at 10, 20, 40, 60 and 80 % of its points; a method forecasts the rest. Errors and
scores are in units of the curve's range, so that curves of different metrics average. A method that
fails or refuses counts as error 1: it must always answer.
"""

from __future__ import annotations

import csv
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glidepath import _core
from glidepath._core import InputError, IoError
from glidepath._fit import fit
from glidepath._forecast import Forecast, forecast, reach
from glidepath._past_runs import PastRuns, Widths, constants_of
from glidepath._results import Result
from glidepath._schedule import Schedule
from glidepath._trace import Trace
from glidepath.readers import long_csv
from glidepath.readers._open import read_traces
from glidepath.readers._series import lines, open_log

Floats = NDArray[np.float64]

SCHEMA = 1
CUTOFFS = (0.1, 0.2, 0.4, 0.6, 0.8)
LEVELS = np.arange(1, 20) / 20.0
LAST_SHARE = 0.03  # the final value is the mean of this share of the points
PAST_RUNS = 150
FINISHED_RUNS = (5, 12)  # fewest and most that widths are learned from
FAMILIES = ("pow3", "exp3", "log2", "weibull4", "mmf4")
WITHIN = (0.65, 0.95)  # coverage of a group by its 80 % intervals that is taken as right


@dataclass(frozen=True, slots=True)
class Collection:
    """The usable curves of one file, oriented so that lower is better.

    `curves` is the sample that is forecast, `usable` all that may serve as past runs.
    """

    name: str
    curves: tuple[Trace, ...]
    usable: tuple[Trace, ...]
    dropped: int
    _widths: dict[Any, Widths | None] = field(default_factory=dict, compare=False, repr=False)

    def others(self, curve: Trace) -> list[Trace]:
        """Runs that may help to forecast `curve`: of the collection, but not of its group.

        The group is the name up to its last slash: the same record, task, size or study.
        """
        mine = group_of(curve.name)
        runs = [c for c in self.usable if c is not curve and group_of(c.name) != mine]
        order = np.random.default_rng(1).permutation(len(runs))[:PAST_RUNS]
        return [runs[i] for i in sorted(order)]

    def widths(self, curve: Trace, constants: str | None, *, past: bool) -> Widths | None:
        """Widths by a dozen runs that may help to forecast `curve`; None where there are few."""
        group = group_of(curve.name), past
        if group not in self._widths:
            runs = self.others(curve)
            fewest, most = FINISHED_RUNS
            order = np.random.default_rng(2).permutation(len(runs))[:most]
            self._widths[group] = None
            if len(runs) >= fewest:
                learned = _core.learn_widths(
                    [runs[i] for i in order],
                    runs if past else [],
                    constants=constants_of(constants),
                    threads=0,
                )
                self._widths[group] = Widths._from_record(learned)
        return self._widths[group]

    def known(self, method: str, curve: Trace, k: int, constants: str | None) -> dict[str, Any]:
        """What our own `method`, named ``glidepath+...``, knows besides the first `k` points."""
        given = method.split("+")[1:]
        known: dict[str, Any] = {}
        if "lr" in given and curve.lr is not None and k < len(curve):
            known["schedule"] = Schedule.logged(curve)
        runs = self.others(curve) if "past" in given else []
        widths = (
            self.widths(curve, constants, past="past" in given) if "calibrated" in given else None
        )
        if runs or widths is not None:
            known["past"] = PastRuns._restored(runs, widths or Widths())
        return known


@dataclass(frozen=True, slots=True)
class Prefix:
    """Input of a method: the observed part, the steps ahead, and what else is known."""

    seen: Trace
    steps: Floats
    known: dict[str, Any]


# Point forecast (h,), quantiles at LEVELS (19, h) or None, and the probability that the final
# value is at or below a target, or None.
Answer = tuple[Floats, Floats | None, Callable[[float], float] | None]


def _ours(prefix: Prefix, constants: str | None) -> Answer:
    f: Forecast = forecast(prefix.seen, prefix.steps, constants=constants, **prefix.known)
    return f.median, f.quantiles, lambda target: float(f.prob_below(target)[-1])


def _last(prefix: Prefix, _: str | None) -> Answer:
    return np.full(prefix.steps.shape, prefix.seen.loss[-1]), None, None


def _thinned(trace: Trace, most: int = 200) -> Trace:
    """Block means of at most `most` equal blocks: what the fitted baselines see."""
    if len(trace) <= most:
        return trace
    edges = np.linspace(0, len(trace), most + 1).astype(int)
    pairs = list(pairwise(edges))

    def mean(column: Floats) -> list[float]:
        return [float(column[a:b].mean()) for a, b in pairs]

    return Trace(mean(trace.step), mean(trace.loss))


def _fitted(family: str) -> Callable[[Prefix, str | None], Answer]:
    def method(prefix: Prefix, _: str | None) -> Answer:
        result = fit(_thinned(prefix.seen), family=family)
        mean = np.asarray(result.predict(prefix.steps), dtype=float)
        if result.status in ("too_few_points", "not_finite") or not np.isfinite(mean).all():
            raise InputError(f"no fit: {result.status}")
        # Residual spread as a normal law: what people draw around a fit.
        unit = np.array([_normal(p) for p in LEVELS])
        return mean, mean + unit[:, None] * max(float(result.sigma), 0.0), None

    return method


def _normal(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def _median(prefix: Prefix, _: str | None) -> Answer:
    thin, found = _thinned(prefix.seen), []
    for family in FAMILIES:
        try:
            mean = np.asarray(fit(thin, family=family).predict(prefix.steps), dtype=float)
        except InputError:
            continue
        if np.isfinite(mean).all():
            found.append(mean)
    if not found:
        raise InputError("no family could be fitted")
    return np.median(found, axis=0), None, None


METHODS: dict[str, Callable[[Prefix, str | None], Answer]] = {
    **{
        "glidepath" + lr + past + calibrated: _ours
        for calibrated in ("", "+calibrated")
        for past in ("", "+past")
        for lr in ("", "+lr")
    },
    "last": _last,
    "pow3": _fitted("pow3"),
    "aic": _fitted("auto"),
    "median": _median,
}
DEFAULT_METHODS = ("glidepath", "last", "pow3", "aic", "median")


def group_of(curve: str) -> str:
    """Group of a curve, its name up to the last slash: one repository, task, size or study."""
    return curve.rpartition("/")[0] or curve


def _sorted_traces(file: Path) -> list[Trace]:
    """Sort a long CSV by step; of two rows of one step, as of two runs of one name, take one."""
    beside = file.with_name(file.name.split(".csv")[0] + ".json")
    about = json.loads(beside.read_text()) if beside.exists() else {}
    points: dict[str, dict[float, float]] = {}
    for row in csv.DictReader(lines(file)):
        if row["value"]:
            points.setdefault(row["curve"], {}).setdefault(float(row["step"]), float(row["value"]))
    direction = about.get("direction", "min")
    return [
        Trace(sorted(of), [of[step] for step in sorted(of)], name=name, direction=direction)
        for name, of in points.items()
    ]


def read_file(file: Path, *, in_folder: bool) -> list[Trace]:
    """Read the curves of a file; a table of a folder that has none gives none."""
    try:
        return read_traces(str(file))
    except IoError as error:
        if "is not above" in str(error):  # steps that repeat
            return _sorted_traces(file)
        with open_log(file) as data:
            head = data.readline()
        if in_folder and not long_csv.recognises(file, head):
            return []
        raise


def collections(folder: str | Path, *, max_curves: int, seed: int = 0) -> Iterator[Collection]:
    """Every file of the folder (or the one file) that holds curves, one collection each."""
    path = Path(folder)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    found = False
    for file in files:
        if not re.search(r"\.(csv|csv\.gz)$", file.name) or "nonfinite" in file.name:
            continue
        usable, dropped = [], 0
        for trace in read_file(file, in_folder=path.is_dir()):
            loss = np.array(trace.loss)
            if len(loss) < 10 or not np.isfinite(loss).all() or np.ptp(loss) <= 1e-9:
                dropped += 1
                continue
            if trace.direction == "max":
                loss = 1.0 - (loss / 100.0 if 1.5 < loss.max() <= 100.0 else loss)
            step = np.array(trace.step)
            step = step + (1.0 - step[0]) if step[0] <= 0 else step
            lr = trace.lr if trace.lr is not None and np.isfinite(trace.lr).mean() > 0.5 else None
            usable.append(Trace(step, loss, lr=lr, name=trace.name))
        if not usable:
            continue
        usable.sort(key=lambda t: t.name)
        order = sorted(np.random.RandomState(seed).permutation(len(usable))[:max_curves])
        found = True
        sample = tuple(usable[i] for i in order)
        yield Collection(file.name.split(".")[0], sample, tuple(usable), dropped)
    if not found:
        raise InputError(f"bench: {folder}: no file with a curve of 10 finite points")


def _prefixes(points: int) -> Iterator[tuple[float, int]]:
    seen: set[int] = set()
    for cutoff in CUTOFFS:
        k = max(4, math.ceil(cutoff * points))
        if k <= 0.9 * points and k not in seen:
            seen.add(k)
            yield cutoff, k


def _score(
    method: str,
    collection: Collection,
    trace: Trace,
    k: int,
    target: float,
    constants: str | None,
) -> dict[str, Any]:
    """One row: errors and scores of one method on one prefix."""
    loss = trace.loss
    size, tail = float(np.ptp(loss)), max(1, round(LAST_SHARE * len(loss)))
    truth, ahead = float(loss[-tail:].mean()), loss[k:]
    seen = Trace(trace.step[:k], loss[:k], lr=None if trace.lr is None else trace.lr[:k])
    prefix = Prefix(seen, trace.step[k:], collection.known(method, trace, k, constants))
    began = time.process_time()
    try:
        mean, quantiles, below = METHODS[method](prefix, constants)
        failed = not np.isfinite(mean).all()
    except InputError:
        failed = True
    cpu = time.process_time() - began
    row: dict[str, Any] = {
        "curve": trace.name,
        "points": len(loss),
        "seen": k,
        "truth": truth,
        "last": float(loss[k - 1]),
        "cpu_ms": 1e3 * cpu,
        "failed": failed,
    }
    if failed:
        row.update(final=row["last"], error=1.0, crps=1.0, bias=0.0)
        return row
    final = float(mean[-tail:].mean())
    row.update(final=final, error=min(abs(final - truth) / size, 1.0))
    row["crps"] = float(np.minimum(np.abs(mean - ahead) / size, 1.0).mean())
    row["bias"] = float(np.clip((mean - ahead) / size, -1.0, 1.0).mean())
    if quantiles is not None:
        over = (ahead - quantiles) / size
        pinball = np.where(over >= 0, LEVELS[:, None] * over, (LEVELS[:, None] - 1) * over)
        row["crps"] = float(np.minimum(2 * pinball.mean(0), 1.0).mean())
        row["cov80"] = float(((ahead >= quantiles[1]) & (ahead <= quantiles[17])).mean())
        low, high = quantiles[1, -tail:].mean(), quantiles[17, -tail:].mean()
        row["cov80_final"] = float(low <= truth <= high)
        ends = np.concatenate(([0.0], LEVELS, [1.0]))
        row["pit"] = float(ends[int((quantiles[:, -1] < ahead[-1]).sum())] + 0.025)
    if below is not None:
        row["prob_target"] = below(target)
        row["target_reached"] = truth <= target
        row.update(_time_to_target(prefix, trace, k, constants))
    return row


def _time_to_target(prefix: Prefix, trace: Trace, k: int, constants: str | None) -> dict[str, Any]:
    """Score when the level is reached that the run has at 70 %, with a budget of three runs.

    The run did reach it, so the law given that it does is scored.
    """
    at = round(0.7 * len(trace))
    half = max(1, round(LAST_SHARE * len(trace)))
    target = float(trace.loss[max(0, at - half) : at + half].mean())
    below = np.flatnonzero(trace.loss <= target)
    if below.size == 0 or below[0] < k or at >= len(trace):
        return {}
    truth = float(trace.step[below[0]])
    budget = 3.0 * float(trace.step[-1])
    law = reach(prefix.seen, target, budget=budget, reached_by="point", constants=constants)
    low, middle, high = (law.quantile(p, if_reached=True) for p in (0.1, 0.5, 0.9))
    return {
        "reach_error": abs(math.log(min(middle, budget) / truth)),
        "reach_inside": float(low <= truth <= high),
    }


def _ranks(values: Floats) -> Floats:
    """Average ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1))[inverse]


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float:
    values = [row[key] for row in rows if key in row]
    return float(np.mean(values)) if values else math.nan


def _by_group(
    rows: Sequence[dict[str, Any]], seen: float | None
) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if seen is None or row["cutoff"] == seen:
            groups.setdefault(group_of(row["curve"]), []).append(row)
    return groups


def _mean_of_groups(groups: dict[str, list[dict[str, Any]]], key: str) -> float:
    means = [_mean(rows, key) for rows in groups.values()]
    known = [mean for mean in means if not math.isnan(mean)]
    return float(np.mean(known)) if known else math.nan


def _auc(probability: Floats, reached: NDArray[np.bool_]) -> float:
    if reached.all() or not reached.any():
        return math.nan
    rank = _ranks(probability)
    positive = int(reached.sum())
    area = rank[reached].sum() - positive * (positive + 1) / 2
    return float(area / (positive * (reached.size - positive)))


def _summary(rows: Sequence[dict[str, Any]], last: Sequence[dict[str, Any]]) -> dict[str, float]:
    ranks = []
    for key in sorted({(r["collection"], r["cutoff"]) for r in rows}):
        group = [r for r in rows if (r["collection"], r["cutoff"]) == key]
        if len(group) >= 8:
            a = _ranks(np.array([r["final"] for r in group]))
            b = _ranks(np.array([r["truth"] for r in group]))
            if a.std() > 0 and b.std() > 0:
                ranks.append(float(np.corrcoef(a, b)[0, 1]))
    errors = np.array([r["error"] for r in rows])
    base = float(np.mean([r["error"] for r in last])) if last else math.nan
    return {
        "n": len(rows),
        "mae": float(errors.mean()),
        "median": float(np.median(errors)),
        "crps": _mean(rows, "crps"),
        "bad": float(np.mean([r["failed"] or r["error"] > 0.5 for r in rows])),
        "skill": 1.0 - float(errors.mean()) / max(base, 1e-12),
        "cov80": _mean(rows, "cov80"),
        "cov80_final": _mean(rows, "cov80_final"),
        "rank": float(np.mean(ranks)) if ranks else math.nan,
        "cpu_ms": _mean(rows, "cpu_ms"),
    }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Accuracy(Result):
    """Rows of a backtest and their summaries.

    Attributes
    ----------
    rows : list of dict
        One per method, curve and cutoff: `method, collection, curve, cutoff, error, crps, bias,
        cov80, cov80_final, pit, prob_target, target_reached, reach_error, reach_inside, cpu_ms,
        failed` ...
    """

    rows: list[dict[str, Any]]

    def table(self, *, by: str | None = None) -> list[dict[str, Any]]:
        """One row per method, or per method and `by` (``"collection"`` or ``"cutoff"``)."""
        out = []
        values = sorted({row[by] for row in self.rows}) if by else [None]
        for value in values:
            part = [r for r in self.rows if by is None or r[by] == value]
            last = [r for r in part if r["method"] == "last"]
            for method in dict.fromkeys(r["method"] for r in part):
                rows = [r for r in part if r["method"] == method]
                head = {"method": method} if by is None else {by: value, "method": method}
                out.append({**head, **_summary(rows, last)})
        return out

    def decisions(self, method: str = "glidepath", *, alpha: float = 0.02) -> dict[str, float]:
        """Score the decision whether the final value is at or below the collection's median final.

        `auc`, `brier`; share `stopped` because the probability is below `alpha` and share `wrong`
        among them; `reach_error`, the median |log(predicted / true)| of the time to the level of
        70 % of the run, seen 40 %, and `reach_inside`, how often it lies between the quantiles
        0.1 and 0.9.
        """
        rows = [r for r in self.rows if r["method"] == method and "prob_target" in r]
        probability = np.array([r["prob_target"] for r in rows])
        reached = np.array([r["target_reached"] for r in rows], dtype=bool)
        stopped = probability < alpha
        timed = [r for r in rows if "reach_error" in r and r["cutoff"] == 0.4]
        errors = [r["reach_error"] for r in timed]
        return {
            "n": len(rows),
            "auc": _auc(probability, reached) if rows else math.nan,
            "brier": float(np.mean((probability - reached) ** 2)) if rows else math.nan,
            "stopped": float(stopped.mean()) if rows else math.nan,
            "wrong": float(reached[stopped].mean()) if stopped.any() else math.nan,
            "reach_n": len(timed),
            "reach_error": float(np.median(errors)) if errors else math.nan,
            "reach_inside": _mean(timed, "reach_inside"),
        }

    def groups(self, method: str = "glidepath") -> list[dict[str, Any]]:
        """Means over groups of curves, each group weighing the same, over all and by share seen.

        A group is the name of a curve up to its last slash, in all collections: one repository,
        task or study. `cov80` is the coverage of 80 % intervals, `within` the share of groups in
        which it is .65 to .95, `bias` the mean of forecast minus truth in ranges of the curve, and
        `skill` the share of the last value's error that the method removes.
        """
        out = []
        for seen in (None, *CUTOFFS):
            parts = [
                _by_group([r for r in self.rows if r["method"] == name], seen)
                for name in (method, "last")
            ]
            if not parts[0]:
                continue
            mean = {k: _mean_of_groups(parts[0], k) for k in ("error", "crps", "cov80", "bias")}
            cov = np.array([_mean(rows, "cov80") for rows in parts[0].values()])
            base = _mean_of_groups(parts[1], "error")
            out.append(
                {
                    "seen": "all" if seen is None else f"{seen:g}",
                    "groups": len(parts[0]),
                    "n": sum(map(len, parts[0].values())),
                    "mae": mean["error"],
                    "crps": mean["crps"],
                    "cov80": mean["cov80"],
                    "within": float(np.mean((cov >= WITHIN[0]) & (cov <= WITHIN[1]))),
                    "bias": mean["bias"],
                    "skill": 1.0 - mean["error"] / max(base, 1e-12),
                }
            )
        return out

    def to_dict(self) -> dict[str, Any]:
        """Give a document of fixed schema, fit for JSON."""
        return {
            "schema": SCHEMA,
            "overall": self.table(),
            "by_collection": self.table(by="collection"),
            "by_cutoff": self.table(by="cutoff"),
            "groups": self.groups(),
            "decisions": self.decisions(),
            "rows": self.rows,
        }

    def plot(self, ax: Any = None, *, method: str = "glidepath") -> Any:
        """Draw the reliability diagram of one method."""
        from glidepath._pictures import plots

        values = [r["pit"] for r in self.rows if r["method"] == method and "pit" in r]
        return plots.reliability(values, ax=ax)

    def plot_cutoffs(self, ax: Any = None) -> Any:
        """Draw the mean error of every method against the share of the run seen."""
        from glidepath._pictures import plots

        errors: dict[str, dict[float, float]] = {}
        for row in self.table(by="cutoff"):
            errors.setdefault(row["method"], {})[row["cutoff"]] = row["mae"]
        return plots.error_by_cutoff(errors, ax=ax)

    def _summary(self) -> str:
        best = self.table()[0]
        return f"{best['method']}: MAE {best['mae']:.4f}, 80 % holds {best['cov80']:.2f}"


def run(
    folder: str | Path,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    max_curves: int = 20,
    constants: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Accuracy:
    """Backtest `methods` on every collection of a folder of finished curves, or on one file.

    Methods are names from `METHODS`; ``"last"`` is always there, for the skill. Ours take more:
    ``"glidepath+lr"`` the schedule where one was logged, ``"+past"`` runs of other groups,
    ``"+calibrated"`` widths by a dozen of them, where there are five or more; together in this
    order. `max_curves` of each collection are drawn with a fixed seed; `constants` is a table for
    our own methods, such as one learned without this collection. InputError for an unknown method.
    """
    unknown = [m for m in methods if m not in METHODS]
    if unknown:
        raise InputError(f"bench: unknown method {unknown[0]!r}, known are {', '.join(METHODS)}")
    chosen = list(dict.fromkeys([*methods, "last"]))
    found = list(collections(folder, max_curves=max_curves))
    total, done = sum(len(c.curves) for c in found), 0
    rows: list[dict[str, Any]] = []
    for collection in found:
        finals = [
            float(c.loss[-max(1, round(LAST_SHARE * len(c))) :].mean()) for c in collection.curves
        ]
        target = float(np.median(finals))
        for trace in collection.curves:
            for cutoff, k in _prefixes(len(trace)):
                for name in chosen:
                    row = _score(name, collection, trace, k, target, constants)
                    head = {"method": name, "collection": collection.name, "cutoff": cutoff}
                    rows.append({**head, **row})
            done += 1
            if progress is not None:
                progress(done, total)
    return Accuracy(rows)
