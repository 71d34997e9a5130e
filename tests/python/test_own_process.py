# SPDX-License-Identifier: Apache-2.0
"""Training frameworks and servers, each in a process of its own.

They are heavy, warn of their own affairs, and start threads and processes of their own. The files
are tests as any other: `python -m pytest -W ignore tests/python/own_process/check_keras.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

CHECKS = sorted((Path(__file__).parent / "own_process").glob("check_*.py"))


def run(check: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "ignore",
            "-p",
            "no:cacheprovider",
            str(check),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,  # what they leave behind goes with it
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            # Its patience on a busy machine; one more limit of 30 s is fixed.
            "RAY_gcs_server_port_wait_time_s": "300",
            "RAY_gcs_server_request_timeout_seconds": "300",
            "RAY_worker_register_timeout_seconds": "600",
        },
    )


@pytest.fixture(scope="module")
def done(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[Path], subprocess.CompletedProcess[str]]]:
    """Run those that were asked for two at a time: they mostly load their own libraries."""
    wanted = [
        item.callspec.params["check"]
        for item in request.session.items
        if item.fspath == request.fspath
    ]
    with ThreadPoolExecutor(2) as pool:
        running = {
            check: pool.submit(run, check, tmp_path_factory.mktemp(check.stem)) for check in wanted
        }
        yield lambda check: running[check].result()


@pytest.mark.parametrize("check", CHECKS, ids=lambda path: path.stem.removeprefix("check_"))
def test_in_a_process_of_its_own(
    check: Path, done: Callable[[Path], subprocess.CompletedProcess[str]]
) -> None:
    result = done(check)
    excuse = re.search(
        r"SKIPPED \[\d\] [^:]*:(?:\d+:)? (.* is not installed|this machine is too busy .*)",
        result.stdout,
    )
    if excuse and result.returncode in (0, 5):  # passed, or nothing to run
        pytest.skip(excuse[1])
    assert result.returncode == 0, result.stdout + result.stderr
    assert " skipped" not in result.stdout, result.stdout
