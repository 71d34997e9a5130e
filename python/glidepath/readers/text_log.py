# SPDX-License-Identifier: Apache-2.0
"""Console logs, what training loops print; read by the core, or by an expression of one's own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from glidepath import _core
from glidepath._core import AbsentError, IoError, LogRows, Series
from glidepath._trace import Trace
from glidepath.readers._series import lines, of_run, to_trace

_GROUPS = ("step", "epoch", "value", "lr", "planned_steps")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def recognises(path: Path, head: bytes) -> bool:
    """Whether any of its lines has a metric at a step: they may come after thousands of others."""
    return _core.is_console(os.fsencode(path), head)


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, or each that lines such as "Fold 2" tell apart.

    Lines without numbers of interest are passed over, as logs are full of them.
    """
    return [of_run(run, metric, path) for run in _core.read_console(os.fsencode(path), metric)]


def read_pattern(path: Path, metric: str | None, expression: re.Pattern[str]) -> Trace:
    """Read one run by an expression with groups ``step`` and ``value`` or ``loss``.

    Steps that begin anew in each ``epoch`` count on from the one before.
    """
    key = metric or "loss"
    series = {key: Series(), "lr": Series()}
    rows = LogRows()
    planned: float | None = None
    for count, line in enumerate(lines(path), 1):
        match = expression.search(line)
        if match is None:
            continue
        found: dict[str, float] = {}
        for name, text in match.groupdict().items():
            group = "value" if name == "loss" else name
            if text is None or group not in _GROUPS:
                continue
            try:
                found[group] = float(_THOUSANDS.sub("", text))
            except ValueError:
                message = f"{path}:{count}: {group} {text!r} is not a number"
                raise IoError(message) from None
        if "epoch" in expression.groupindex:
            rows.add({**found})
        elif "step" in found and "value" in found:
            series[key].add(found["step"], found["value"])
        if "step" in found and "lr" in found:
            series["lr"].add(found["step"], found["lr"])
        planned = found.get("planned_steps", planned)
    if rows.names:
        columns = rows.series()
        series = {key: columns.get("value", Series()), "lr": columns.get("lr", Series())}
    if not len(series[key]):
        raise AbsentError(f"{path}: no line has '{expression.pattern}'")
    return to_trace(series, key, path, path.name, planned_steps=planned)
