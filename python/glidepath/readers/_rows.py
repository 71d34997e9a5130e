# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers by name, as trackers and JSON have them; the core finds where their steps are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from glidepath._core import LogRows, Series, number_in, settings_of_json

# Parts of a row that configure or measure the run.
NOT_METRICS = ("config", "args", "hparams", "hist_stats", "env_info", "vocab")


def flat(row: Mapping[str, Any], mark: str, within: str = "") -> Iterator[tuple[str, Any]]:
    """Give the cells of a row of nested names, joined by a mark."""
    for key, value in row.items():
        if not isinstance(value, Mapping):
            yield within + key, value
        elif key not in NOT_METRICS:
            yield from flat(value, mark, f"{within}{key}{mark}")


def number(value: Any) -> float | None:
    """Read a number, or text that is one; None of anything else."""
    if isinstance(value, str):
        return number_in(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def settings_in(config: Mapping[Any, Any]) -> dict[str, float | str]:
    """Give the settings among the values of a configuration."""
    written = {}
    for key, value in config.items():
        with suppress(TypeError, ValueError, RecursionError):  # odd keys; what contains itself
            written[str(key)] = json.dumps(value, default=repr)
    return settings_of_json(written)


def tracked(rows: Iterable[Mapping[str, Any]]) -> dict[str, Series]:
    """Gather what a tracker holds of a run, a row a call of its `log`.

    Names that begin with ``_`` are the tracker's own: of them its step, which counts calls, is
    taken where the trainer logged none, and the seconds of ``_runtime``.
    """
    found = LogRows()
    for row in rows:
        own = ("_step", "_runtime")
        found.add({name: cell for name, cell in row.items() if name[:1] != "_" or name in own})
    return found.series()
