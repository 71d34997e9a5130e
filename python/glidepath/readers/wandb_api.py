# SPDX-License-Identifier: Apache-2.0
"""Runs of a W&B server, through its client: all rows, not the 500 that `history()` samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from glidepath._core import InputError, IoError
from glidepath._results import require
from glidepath._trace import Trace
from glidepath.readers._rows import flat, settings_in, tracked
from glidepath.readers._series import to_trace, without_secrets


def open_url(url: str) -> Any:
    """Give the run, or all runs of a project, whose page has this address."""
    parts = [part for part in urlsplit(url).path.split("/") if part]
    if len(parts) < 2:
        raise InputError(
            f"{without_secrets(url)}: not the page of a project of W&B or of a run, …/runs/ID"
        )
    wandb = require("wandb")
    try:
        if "runs" in parts[2:-1]:
            return wandb.Api().run("/".join((*parts[:2], parts[3])))
        return wandb.Api().runs("/".join(parts[:2]))
    except Exception as error:  # no key, no such run, no network: each its own kind
        raise IoError(without_secrets(f"{url}: {error}")) from None


def read(run: Any, metric: str | None) -> list[Trace]:
    """Read a run as `wandb.Api().run` gives it, named as on its page."""
    label = "W&B run " + "/".join(getattr(run, "path", None) or [str(getattr(run, "id", "?"))])
    try:
        rows = [dict(flat(row, ".")) for row in run.scan_history()]
    except Exception as error:  # the client's own kinds, and those of three network libraries
        raise IoError(without_secrets(f"{label}: {error}")) from None
    stamps = [row["_timestamp"] for row in rows if isinstance(row.get("_timestamp"), (int, float))]
    for row in rows:
        if "_runtime" not in row and stamps:
            row["_runtime"] = row.get("_timestamp", math.nan) - stamps[0]
    name, config = str(getattr(run, "name", "") or label), getattr(run, "config", None)
    settings = settings_in(config if isinstance(config, Mapping) else {})
    return [to_trace(tracked(rows), metric, label, name, settings=settings)]
