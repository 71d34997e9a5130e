# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files: bundled and shared data, a simulated cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from slurm_world import World

ROOT = Path(__file__).resolve().parents[2]


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
