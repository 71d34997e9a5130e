# SPDX-License-Identifier: Apache-2.0
"""The bundled files are what data/SOURCES.md says, and the recordings enough to work with alone."""

import hashlib
import re
from pathlib import Path

import numpy as np

import glidepath as gp

DATA = Path(__file__).resolve().parents[2] / "data"
FILES = sorted((DATA / "curves").glob("*.csv.gz"))
TRACES = sorted((DATA / "traces").glob("*.csv.gz"))


def test_sixty_runs_or_more_fit_into_six_megabytes() -> None:
    assert sum(len(gp.read_traces(path)) for path in FILES) >= 60
    assert sum(path.stat().st_size for path in (DATA / "curves").iterdir()) <= 6e6


def test_the_checksums_are_those_of_the_sources_page() -> None:
    page = (DATA / "SOURCES.md").read_text()
    assert len(TRACES) == 3
    for path in FILES + TRACES:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        size = path.stat().st_size
        assert re.search(rf"\| {path.name} \| {size} \| `{digest}` \|", page), path.name


def test_every_run_has_a_learning_rate_and_a_clock() -> None:
    for path in FILES:
        for trace in gp.read_traces(path):
            assert trace.lr is not None, trace.name
            assert np.all(trace.lr >= 0)
            assert trace.wall_seconds is not None
            assert np.all(np.diff(trace.wall_seconds) >= 0)


def test_one_run_is_lost_to_nan_and_only_where_the_name_says_so() -> None:
    lost = {
        path.name
        for path in FILES
        if any(not np.isfinite(trace.loss).all() for trace in gp.read_traces(path))
    }
    assert lost == {"docs-transformer-nonfinite.csv.gz"}


def test_most_runs_learn_some_do_not_and_some_diverge() -> None:
    learned, hardly, diverged = 0, 0, 0
    for path in FILES:
        for trace in gp.read_traces(path):
            start, end = trace.loss[0], np.median(trace.loss[-10:])
            learned += end < 0.8 * start
            hardly += 0.95 * start < end < 1.05 * start
            diverged += not end < 1.5 * np.nanmin(trace.loss) + 0.5
    assert learned > 60
    assert hardly >= 3
    assert diverged >= 3
