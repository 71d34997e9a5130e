# SPDX-License-Identifier: Apache-2.0
"""Runs of an MLflow server, through its client: two questions a run, whatever it logged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

from glidepath._core import AbsentError, IoError, Series, choose, is_rate_name, settings_of_texts
from glidepath._results import require
from glidepath._trace import Trace
from glidepath.readers._series import refused_address, to_trace, without_secrets

_PAGE = re.compile(r"(?P<server>https?://[^#]*?)/?(?:#(?P<page>.*))?$")


def open_url(url: str) -> tuple[Any, str | None, str | None]:
    """Give the client of a server, and the experiment and run whose page has this address."""
    match = _PAGE.fullmatch(url)
    assert match is not None
    page = match["page"] or ""
    run, experiment = re.search(r"/runs/(\w+)", page), re.search(r"/experiments/(\w+)", page)
    client = require("mlflow").MlflowClient(tracking_uri=match["server"])
    return client, experiment and experiment[1], run and run[1]


def read_url(url: str, metric: str | None) -> list[Trace]:
    """Read what stands on a page of a server: a run, those of an experiment, or all."""
    try:  # its client would try for minutes
        at = urlsplit(url)
        create_connection((at.hostname, at.port or {"https": 443}.get(at.scheme, 80)), 10).close()
    except ConnectionRefusedError as error:
        raise IoError(without_secrets(f"{url}: {error.strerror}")) from None
    except ValueError as error:
        raise refused_address(url, error) from None
    except OSError:
        pass  # there may be a proxy in between: let the client try
    client, experiment, run = open_url(url)
    return read(client, metric, experiment=experiment, run=run)


def read(
    client: Any, metric: str | None, *, experiment: str | None = None, run: str | None = None
) -> list[Trace]:
    """Read every run that is not deleted, named by its id; runs without the metric are left out."""
    label = without_secrets(f"MLflow {getattr(client, 'tracking_uri', '')}".rstrip())
    traces, absent = [], None
    try:
        for found in [client.get_run(run)] if run else _runs(client, experiment):
            try:
                traces.append(_read(client, found, metric, label))
            except AbsentError as error:
                absent = error
    except IoError:
        raise
    except Exception as error:  # MlflowException, and what the network library raises
        raise IoError(without_secrets(f"{label}: {error}")) from None
    if not traces:
        raise absent or AbsentError(f"{label}: no metric was logged")
    return traces


def _pages(question: Callable[..., Any], **options: Any) -> Iterator[Any]:
    token = None
    while True:
        page = question(**options, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _runs(client: Any, experiment: str | None) -> list[Any]:
    ids = (
        [experiment] if experiment else [e.experiment_id for e in _pages(client.search_experiments)]
    )
    runs = _pages(client.search_runs, experiment_ids=ids) if ids else []
    return sorted(runs, key=lambda run: (run.info.start_time, run.info.run_id))


def _read(client: Any, run: Any, metric: str | None, label: str) -> Trace:
    name = run.info.run_id
    logged = run.data.metrics  # the last value of each
    key = choose(dict.fromkeys(logged, 1), metric, f"{label}: run {name}")
    rate = next((other for other in logged if is_rate_name(other) and other != key), None)
    series: dict[str, Series] = {}
    began = float(run.info.start_time)
    for wanted in (key, rate):
        if wanted is None:
            continue
        column = series[wanted] = Series()
        for point in sorted(client.get_metric_history(name, wanted), key=lambda p: p.timestamp):
            column.add(float(point.step), float(point.value), (point.timestamp - began) / 1e3)
    params = getattr(run.data, "params", None) or {}
    settings = settings_of_texts({str(key): str(value) for key, value in params.items()})
    return to_trace(series, metric, f"{label}: run {name}", name, settings=settings)
