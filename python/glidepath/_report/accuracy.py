# SPDX-License-Identifier: Apache-2.0
"""The page of a benchmark: how methods compare on the same prefixes of finished runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._answer import Columns
from glidepath._bench.accuracy.protocol import LEVELS
from glidepath._bench.accuracy.results import Accuracy
from glidepath._bench.accuracy.scores import WITHIN
from glidepath._report import figures
from glidepath._report.page import Page
from glidepath._results import counted

Row = Mapping[str, Any]
_ENDS = ("low", "high")


def number(key: str, digits: int = 4) -> Callable[[Row], str]:
    """Write a figure of a row; a dash where there is none."""
    return lambda row: "–" if math.isnan(row[key]) else f"{row[key]:.{digits}f}"


def ranged(key: str, sign: str = "") -> Callable[[Row], str]:
    """Write a mean and its interval, where there is one."""

    def cell(row: Row) -> str:
        low, high = (row[f"{key}_{end}"] if key != "difference" else row[end] for end in _ENDS)
        mean = f"{row[key]:{sign}.4f}"
        return mean if math.isnan(low) else f"{mean} ({low:{sign}.4f} to {high:{sign}.4f})"

    return cell


def chance(key: str) -> Callable[[Row], str]:
    """Write the p of a test; nothing where there is none."""
    return lambda row: "" if row.get(key) is None or math.isnan(row[key]) else f"{row[key]:.3g}"


def milliseconds(key: str) -> Callable[[Row], str]:
    """Write the time of a forecast."""
    return lambda row: f"{row[key]:.3g}"


SCORE_COLUMNS: Columns = {
    "method": "{method}",
    "n": "{n}",
    "failed": "{n_failed}",
    "error": ranged("mae"),
    "CRPS": ranged("crps"),
    "error > half": number("bad", 3),
    "skill": number("skill", 3),
    "80 % holds": number("cov80", 3),
    "bias": number("bias", 3),
    "rank": number("rank", 3),
    "ms each": milliseconds("wall_ms"),
    "CPU ms": milliseconds("cpu_ms"),
}
PAIR_COLUMNS: Columns = {
    "method": "{method}",
    "against": "{against}",
    "score": "{score}",
    "difference": ranged("difference", "+"),
    "p (bootstrap)": chance("p_bootstrap"),
    "better / worse": "{better} / {worse}",
    "p (sign)": chance("p_sign"),
}
GROUP_COLUMNS: Columns = {
    "share seen": "{seen}",
    "groups": "{n_groups}",
    "n": "{n}",
    "error": number("mae"),
    "CRPS": number("crps"),
    "80 % holds": number("cov80", 3),
    f"groups with {WITHIN[0]:g} to {WITHIN[1]:g}": number("within", 3),
    "bias": number("bias", 3),
    "skill": number("skill", 3),
}
DECISION_COLUMNS: Columns = {
    "method": "{method}",
    "n": "{n}",
    "AUC": number("auc", 3),
    "Brier": number("brier", 3),
    "stopped": number("stopped", 3),
    "of these wrong": number("wrong", 3),
    "targets": "{reach_n}",
    "median |log|": number("reach_error", 3),
    "10 to 90 % holds": number("reach_inside", 3),
    "no time": "{reach_failed}",
}
FAILURE_COLUMNS: Columns = {
    "method": "{method}",
    "what": "{what}",
    "failed": "{n_failed} of {n}",
    "why": "{why}",
}


def by_collection(result: Accuracy) -> tuple[Columns, list[dict[str, Any]]]:
    """The table by collection: scores with intervals, and the test against the first method."""
    tests = {
        (pair["collection"], pair["method"]): pair["p_bootstrap"]
        for pair in result.pairs(by="collection")
    }
    rows = [
        {**row, "p": tests.get((row["collection"], row["method"]))}
        for row in result._with_intervals(by="collection")
    ]
    kept = ("n", "failed", "error", "CRPS", "skill", "80 % holds")
    columns: dict[str, Any] = {"collection": "{collection}", "method": "{method}"}
    columns |= {name: SCORE_COLUMNS[name] for name in kept}
    columns[f"p of the CRPS against {result.methods[0]}"] = chance("p")
    return columns, rows


def write_accuracy(path: Path, result: Accuracy) -> None:
    """Write the comparison of a benchmark; IoError, ImportError as for the other pages."""
    about = result.about
    count = len(result.rows) // max(len(result.methods), 1)
    collections = sorted({row["collection"] for row in result.rows})
    page = Page(
        f"Forecasts compared on {about.get('source', 'finished runs')}",
        f"{counted(len(result.methods), 'method')} on the same {count} prefixes of finished runs, "
        f"{len(collections)} collections. Errors and CRPS are in units of the curve's range, "
        "smaller is better; a failure counts as error 1. In brackets the 95 % interval by a "
        "bootstrap of curves.",
    )
    rows = result._with_intervals()
    page.heading("All collections")
    page.rows(SCORE_COLUMNS, rows, best=int(np.argmin([row["crps"] for row in rows])))
    failures = result.failures()
    if failures:
        page.heading("Failures", "What methods raised, or what was wrong with their answers.")
        page.rows(FAILURE_COLUMNS, failures)
    page.grid(
        {
            "Reliability: observations below a quantile": figures.reliability(_reliability(result)),
            "Error of the final value by share seen": figures.by_share(result._by_cutoff("mae")),
            "CRPS by share seen": figures.by_share(result._by_cutoff("crps")),
            "Milliseconds for a forecast": figures.bars(
                {row["method"]: row["wall_ms"] for row in rows}
            ),
        }
    )
    pairs = [pair for score in ("crps", "error") for pair in result.pairs(score=score)]
    if pairs:
        page.heading(
            f"Against {result.methods[0]}",
            "Differences on the same prefixes, below 0 is better. p (bootstrap) draws collections "
            "and their curves, p (sign) counts curves; neither is corrected for their number.",
        )
        page.rows(PAIR_COLUMNS, pairs)
    page.heading("By collection")
    page.rows(*by_collection(result))
    document = {key: value for key, value in result.to_dict().items() if key != "rows"}
    page.write(path, document)


def _reliability(result: Accuracy) -> dict[str, list[float]]:
    """Share of last values below each quantile, of the methods that give quantiles."""
    found = {}
    for method in result.methods:
        pit = np.array([r["pit"] for r in result.rows if r["method"] == method and "pit" in r])
        if pit.size:
            found[method] = [float(np.mean(pit < level)) for level in LEVELS]
    return found
