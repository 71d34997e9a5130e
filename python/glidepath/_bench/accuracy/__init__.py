# SPDX-License-Identifier: Apache-2.0
"""Backtest of forecasts on finished curves: `glidepath bench accuracy`, `glidepath.bench`.

`curves` reads what is forecast, `protocol` is what a method gets and gives, `methods` are the
built-in ones, `scores` what an answer is worth, `paired` how sure the means are, `results` the
tables and the file that keeps them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from glidepath._arguments import checked, refuse_twice
from glidepath._bench.accuracy.curves import Collection, Source, check_seed, collections
from glidepath._bench.accuracy.methods import DEFAULT_METHODS, NAMES, Named, methods_of
from glidepath._bench.accuracy.protocol import LEVELS, Method
from glidepath._bench.accuracy.results import SCHEMA, Accuracy, read_accuracy
from glidepath._bench.accuracy.scores import (
    CUTOFFS,
    FEWEST_SEEN,
    MOST_SEEN,
    Row,
    final_of,
    prefixes,
    score,
)
from glidepath._core import InputError

__all__ = [
    "CUTOFFS",
    "DEFAULT_METHODS",
    "LEVELS",
    "NAMES",
    "SCHEMA",
    "Accuracy",
    "accuracy",
    "collections",
    "read_accuracy",
]


@checked
def accuracy(
    source: Source,
    methods: Named = DEFAULT_METHODS,
    *,
    max_curves: int = 20,
    cutoffs: Sequence[float] = CUTOFFS,
    seed: int = 0,
    metric: str | None = None,
    constants: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Accuracy:
    """Cut finished curves, let each method forecast the rest, and score what it says.

    Each curve is cut at each of `cutoffs`; a method sees what is before and forecasts every point
    that follows. Lower values are better: a method gets a score as 1 - score. Methods run in this
    process, one after the other. Whatever a method raises, and an answer of a wrong shape or with
    numbers that are not finite, is a failure: it counts as error 1, is shown, and ends nothing.

    Parameters
    ----------
    source : path_like or iterable of Trace
        A file or folder of any format of `read_traces`, or finished runs. Each file or folder
        directly within a folder that holds several runs is a collection, as is each file of the
        long form; those that hold one run make one together.
    methods : iterable of str or callable, or mapping of names to them, optional
        Built-in names (`NAMES`), ``"module:callable"``, or callables ``method(trace, at)``:
        `docs/benchmark.md` is the protocol. ``"last"`` is always there, for the skill. Ours know
        more: ``"glidepath+lr"`` the schedule where one was logged, ``"+past"`` runs of other
        groups, ``"+calibrated"`` widths by a dozen of them; together in this order.
    max_curves : int, optional
        Curves of each collection, drawn with `seed`.
    cutoffs : sequence of float, optional
        Shares of the points of a curve that a method sees, in (0, 1).
    seed : int, optional
        Draws the curves; methods that take ``seed`` get it.
    metric : str, optional
        As for `read_traces`.
    constants : str, optional
        Text of a table of constants for our own methods, such as one learned without these curves.
    progress : callable, optional
        Called with the curves done and their number.

    Returns
    -------
    Accuracy

    Raises
    ------
    InputError
        When a method is unknown or takes what there is not, an option is out of range, or no curve
        is usable.
    IoError
        When the source cannot be read.
    ImportError
        When a method needs a package that is not installed.
    """
    _check(max_curves, cutoffs, seed)
    chosen = methods_of(_with_last(methods), constants=constants)
    found = collections(source, max_curves=max_curves, seed=seed, metric=metric)
    total, done = sum(len(c.curves) for c in found), 0
    rows: list[Row] = []
    for collection in found:
        target = float(np.median([final_of(curve) for curve in collection.curves] or [np.nan]))
        for curve in collection.curves:
            for prefix in prefixes(collection, curve, cutoffs, seed):
                rows += [score(method, prefix, target) for method in chosen.values()]
            done += 1
            if progress is not None:
                progress(done, total)
    if not rows:
        raise InputError(
            "bench: no curve can be cut at any of the cutoffs: a method sees at least"
            f" {FEWEST_SEEN} points and at most {MOST_SEEN:.0%} of a curve"
        )
    about = {
        "source": os.fspath(source) if isinstance(source, (str, os.PathLike)) else "traces",
        "metric": metric,
        "seed": seed,
        "cutoffs": [float(cutoff) for cutoff in cutoffs],
        "max_curves": max_curves,
        "levels": LEVELS.tolist(),
        "collections": [_of_collection(each) for each in found],
        "methods": [_of_method(each) for each in chosen.values()],
    }
    return Accuracy(rows, about)


def _of_collection(collection: Collection) -> dict[str, object]:
    return {
        "name": collection.name,
        "curves": len(collection.curves),
        "usable": len(collection.usable),
        "dropped": collection.dropped,
        "trouble": collection.trouble,
    }


def _of_method(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "takes": list(method.takes),
        "says_when": method.reach is not None,
    }


def _with_last(methods: Named) -> Named:
    """Add the last value, which the skill is measured by, where it is not there."""
    if isinstance(methods, Mapping):
        return dict(methods) | ({} if "last" in methods else {"last": "last"})
    if not isinstance(methods, Iterable) and not callable(methods):
        return methods  # which `methods_of` refuses
    named = [methods] if isinstance(methods, str) or callable(methods) else list(methods)
    return named if "last" in named else [*named, "last"]


def _check(max_curves: int, cutoffs: Sequence[float], seed: int) -> None:
    if max_curves < 1:
        raise InputError(f"bench: max_curves is {max_curves}, expected 1 or more")
    check_seed(seed)
    refuse_twice("bench: the cutoff", cutoffs)
    bad = [cutoff for cutoff in cutoffs if not 0.0 < cutoff < 1.0]
    if bad or not len(cutoffs):
        raise InputError(
            f"bench: a cutoff is {bad[0]:g}, expected between 0 and 1"
            if bad
            else "bench: no cutoff"
        )
