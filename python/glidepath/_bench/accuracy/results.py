# SPDX-License-Identifier: Apache-2.0
"""The result of a benchmark: rows, their summaries, and the file that keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from glidepath import _core
from glidepath._bench.accuracy.paired import Bootstrap
from glidepath._bench.accuracy.scores import decisions, failures, group_lines, grouped, summary
from glidepath._core import InputError, IoError
from glidepath._json import plain
from glidepath._results import Result

Row = dict[str, Any]

SCHEMA = "glidepath.accuracy/3"
SCORES = ("error", "crps")  # that have intervals and tests
# What each row must have, and of which type; what else it has is text, a number or neither.
_ROW: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("method", "collection", "run"), str),
    **dict.fromkeys(
        ("cutoff", "seen", "truth", "final", "error", "crps", "bias", "cpu_ms", "wall_ms"),
        (int, float),
    ),
    "failed": bool,
}
_TEXTS = ("why", "reach_why")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Accuracy(Result):
    """Rows of a backtest and their summaries.

    Attributes
    ----------
    rows : list of dict
        One per method, run and cutoff: `method, collection, run, cutoff, points, seen, error,
        crps, bias, cov80, cov80_final, pit, prob_target, target_reached, reach_error,
        reach_inside, cpu_ms, wall_ms, failed, why` ...; `docs/benchmark.md` says what each is.
    about : dict
        What was scored: `source`, `seed`, `cutoffs`, `max_curves`, `collections`, `methods`.
    """

    rows: list[Row]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order in which they were given."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def _of(self, method: str) -> list[Row]:
        return [row for row in self.rows if row["method"] == method]

    def table(self, *, by: str | None = None) -> list[dict[str, Any]]:
        """One row per method, or per method and `by` (``"collection"`` or ``"cutoff"``)."""
        return [
            {**head, "method": method, **summary(rows, of.get("last", ()))}
            for head, of in self._parts(by)
            for method, rows in of.items()
        ]

    def _parts(self, by: str | None) -> list[tuple[dict[str, Any], dict[str, list[Row]]]]:
        """The rows of each value of `by`, or all of them, by their methods."""
        if by is None:
            return [({}, grouped(self.rows, itemgetter("method")))]
        parts = grouped(self.rows, itemgetter(by))
        return [
            ({by: value}, grouped(parts[value], itemgetter("method"))) for value in sorted(parts)
        ]

    def intervals(self, *, by: str | None = None) -> list[dict[str, Any]]:
        """95 % intervals of mean error and CRPS, a row for each of `table`.

        `mae_low, mae_high, crps_low, crps_high`, by a bootstrap of curves, see `pairs`.
        """
        out = []
        for head, of in self._parts(by):
            bootstrap = Bootstrap(list(chain(*of.values())))
            for method, rows in of.items():
                found: dict[str, Any] = {**head, "method": method}
                for name, score in (("mae", "error"), ("crps", "crps")):
                    found[f"{name}_low"], found[f"{name}_high"] = bootstrap.interval(rows, score)
                out.append(found)
        return out

    def _with_intervals(self, *, by: str | None = None) -> list[dict[str, Any]]:
        """The rows of `table`, each with its intervals."""
        both = zip(self.table(by=by), self.intervals(by=by), strict=True)
        return [{**row, **interval} for row, interval in both]

    def _by_cutoff(self, score: str) -> dict[str, dict[float, float]]:
        """A score of each method by the share of the run seen."""
        lines: dict[str, dict[float, float]] = {}
        for row in self.table(by="cutoff"):
            lines.setdefault(row["method"], {})[row["cutoff"]] = row[score]
        return lines

    def pairs(
        self, against: str | None = None, *, score: str = "crps", by: str | None = None
    ) -> list[dict[str, Any]]:
        """Compare every method with one on the same prefixes; `difference` below 0 is better.

        Groups of curves are drawn together, of each collection that was drawn (two-stage
        bootstrap); `p_sign` is the exact sign test over them. No p is corrected for the number
        of pairs.

        Parameters
        ----------
        against : str, optional
            A method; by default the first.
        score : {"crps", "error"}, optional
        by : {"collection", "cutoff"}, optional
            One comparison for each, in place of one over all.

        Returns
        -------
        list of dict
            `method, against, score, difference, low, high, p_bootstrap, better, worse, p_sign`.

        Raises
        ------
        InputError
            When there is no such method or score.
        """
        reference = self.methods[0] if against is None else against
        if reference not in self.methods:
            raise InputError(f"bench: no method {reference!r}, there are {', '.join(self.methods)}")
        if score not in SCORES:
            raise InputError(f"bench: no test of {score!r}, there are {', '.join(SCORES)}")
        out = []
        for head, of in self._parts(by):
            bootstrap = Bootstrap(list(chain(*of.values())))
            for method in self.methods:
                if method != reference and method in of and reference in of:
                    names = {**head, "method": method, "against": reference, "score": score}
                    out.append({**names, **bootstrap.pair(of[method], of[reference], score)})
        return out

    def failures(self) -> list[dict[str, Any]]:
        """How often each method that ever failed did, of how many calls, and why (most first)."""
        return failures(self.rows, {"why": "forecast", "reach_why": "time to target"})

    def decisions(
        self, method: str = "glidepath", *, alpha: float = 0.02, seen: float = 0.4
    ) -> dict[str, float]:
        """Score the decision whether the final value is at or below the collection's median final.

        `auc`, `brier`; share `stopped` because the probability is below `alpha` and share `wrong`
        among them; `reach_error`, the median ``|log(predicted / true)|`` of the time to the level
        of 70 % of the run, `seen` a share of it, and `reach_inside`, how often it lies between the
        quantiles 0.1 and 0.9.
        """
        return decisions(self._of(method), alpha, seen)

    def groups(self, method: str = "glidepath") -> list[dict[str, Any]]:
        """Means over groups of curves, each group weighing the same, over all and by share seen.

        A group is the name of a curve up to its last slash, in all collections: one repository,
        task or study. `cov80` is the coverage of 80 % intervals, `within` the share of groups in
        which it is .65 to .95, `bias` the mean of forecast minus truth in ranges of the curve, and
        `skill` the share of the last value's error that the method removes.
        """
        rows = self._of(method)
        return group_lines(rows, self._of("last")) if rows else []

    def to_dict(self) -> dict[str, Any]:
        """Give a document of fixed schema, fit for JSON; `from_dict` needs `rows` alone."""
        return {
            "schema": SCHEMA,
            "glidepath": _core.__version__,
            "about": self.about,
            "overall": self._with_intervals(),
            "by_collection": self._with_intervals(by="collection"),
            "by_cutoff": self.table(by="cutoff"),
            "pairs": [pair for score in SCORES for pair in self.pairs(score=score)],
            "pairs_by_collection": [
                pair for score in SCORES for pair in self.pairs(score=score, by="collection")
            ],
            "groups": [
                {"method": method, **line}
                for method in self.methods
                for line in self.groups(method)
            ],
            "decisions": [
                {"method": method, **found}
                for method in self.methods
                if (found := self.decisions(method))["n"]
            ],
            "failed_calls": self.failures(),
            "rows": self.rows,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Accuracy:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            When it is something else, of another schema, or lacks rows.
        """
        schema = document.get("schema") if isinstance(document, Mapping) else None
        if schema != SCHEMA:
            raise InputError(f"expected a document of schema {SCHEMA!r}, got {schema!r}")
        rows = document.get("rows")
        if not isinstance(rows, list) or not rows:
            raise InputError("the document has no rows: write it with --out or to_dict")
        for number, row in enumerate(rows):
            _check_row(number, row)
        about = document.get("about", {})
        if not isinstance(about, Mapping):
            raise InputError("about is no object")
        return cls(rows, dict(about))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the document of `to_dict` as JSON, whole or not at all; IoError where it cannot."""
        from glidepath._report.page import _write_whole

        _write_whole(Path(path), json.dumps(plain(self.to_dict()), allow_nan=False) + "\n")

    def plot(self, ax: Any = None, *, method: str | None = None) -> Any:
        """Draw the reliability diagram of one method, by default the first."""
        from glidepath._pictures import scores

        rows = self._of(method or self.methods[0])
        return scores.reliability([r["pit"] for r in rows if "pit" in r], ax=ax)

    def plot_cutoffs(self, ax: Any = None) -> Any:
        """Draw the mean error of every method against the share of the run seen."""
        from glidepath._pictures import scores

        return scores.error_by_cutoff(self._by_cutoff("mae"), ax=ax)

    def _summary(self) -> str:
        best = self.table()[0]
        failed = f", {best['n_failed']} of {best['n']} failed" if best["n_failed"] else ""
        holds = f"{best['cov80']:.2f}".replace("nan", "unknown")
        return f"{best['method']}: MAE {best['mae']:.4f}, 80 % holds {holds}{failed}"


def _check_row(number: int, row: Any) -> None:
    """Refuse a row that lacks a key, or has a value of another type than it is written with."""
    if not isinstance(row, Mapping):
        raise InputError(f"row {number} is no object")
    missing = [key for key in _ROW if key not in row]
    if missing:
        raise InputError(f"row {number} lacks {missing[0]!r}")
    for key, value in row.items():
        kind = _ROW.get(key, str if key in _TEXTS else (bool, int, float))
        if not isinstance(value, kind):
            words: dict[Any, str] = {str: "text", bool: "true or false"}
            expected = words.get(kind, "a number")
            raise InputError(f"row {number}: {key!r} is {value!r}, expected {expected}")


def read_accuracy(*paths: str | os.PathLike[str]) -> Accuracy:
    """Read results files, several as one comparison.

    Parameters
    ----------
    *paths : path_like
        Files that `Accuracy.write` wrote. Of several, all must have scored the same prefixes. Where
        a later file has a method of an earlier one's name, it goes by the name and the file's;
        the last value, which is the same in each, is kept once.

    Returns
    -------
    Accuracy

    Raises
    ------
    IoError
        When a file cannot be read, is no results file or of another schema.
    InputError
        When the files have scored different prefixes.
    """
    if not paths:
        raise InputError("bench: no results file")
    found = [(Path(path), _read(Path(path))) for path in paths]
    first, result = found[0]
    for path, more in found[1:]:
        result = _combined(result, more, first, path)
    return result


def _read(path: Path) -> Accuracy:
    try:
        return Accuracy.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None
    except InputError as error:
        raise IoError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise IoError(f"{path}: not the results of a benchmark, which are text") from None
    except ValueError as error:
        raise IoError(f"{path}: no JSON: {error}") from None


def _prefixes(result: Accuracy) -> set[tuple[Any, ...]]:
    return {
        tuple(row[key] for key in ("collection", "run", "cutoff", "seen", "truth"))
        for row in result.rows
    }


def _combined(one: Accuracy, more: Accuracy, first: Path, path: Path) -> Accuracy:
    differing = _prefixes(one) ^ _prefixes(more)
    if differing:
        name, run, cutoff, *_ = min(differing, key=str)
        raise InputError(
            f"{path} scored other prefixes than {first}: {len(differing)} differ, such as "
            f"{run!r} of {name} at {cutoff:g}"
        )
    names = {}
    for method in more.methods:
        if method == "last" and method in one.methods:
            continue
        names[method] = method if method not in one.methods else f"{method} ({path.stem})"
        if names[method] in one.methods:
            raise InputError(f"{path}: its method {method!r} is there already")
    rows = [{**row, "method": names[row["method"]]} for row in more.rows if row["method"] in names]
    kept = [
        {**about, "name": names[about["name"]]}
        for about in more.about.get("methods", [])
        if about["name"] in names
    ]
    about = {**one.about, "methods": [*one.about.get("methods", []), *kept]}
    return Accuracy(one.rows + rows, about)
