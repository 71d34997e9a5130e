# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files: bundled and shared data, a simulated cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import glidepath as gp

if TYPE_CHECKING:
    from collections.abc import Generator

    from slurm_world import World

ROOT = Path(__file__).resolve().parents[2]

# Of random attacks: a few that are the same each time, or as many others as a longer hunt wants.
settings.register_profile("usual", max_examples=100, derandomize=True, database=None, deadline=None)
settings.register_profile(
    "hunt",
    max_examples=int(os.environ.get("GLIDEPATH_FUZZ") or 1),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hunt" if os.environ.get("GLIDEPATH_FUZZ") else "usual")

# What a shell starts in the background ignores Ctrl-C, and tests of what that ends would not end.
signal.signal(signal.SIGINT, signal.default_int_handler)


def skip_without_ceres() -> Generator[None, None, None]:
    """Skips, with the sentence of the library, where a build without Ceres refuses."""
    try:
        yield
    except gp.InputError as error:
        if "this glidepath was built without it" in str(error):
            pytest.skip(str(error))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    yield from skip_without_ceres()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    yield from skip_without_ceres()


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    return ROOT / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared folder with the larger data sets")
    return folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A simulated cluster behind the commands of Slurm, and a pilot."""
    from slurm_world import World

    return World(tmp_path)
