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


@pytest.mark.parametrize("check", CHECKS, ids=lambda path: path.stem.removeprefix("check_"))
def test_in_a_process_of_its_own(check: Path, tmp_path: Path) -> None:
    result = run(check, tmp_path)
    excuse = re.search(
        r"SKIPPED \[\d\] [^:]*:(?:\d+:)? (.* is not installed|this machine is too busy .*)",
        result.stdout,
    )
    if excuse and result.returncode in (0, 5):  # passed, or nothing to run
        pytest.skip(excuse[1])
    assert result.returncode == 0, result.stdout + result.stderr
    assert " skipped" not in result.stdout, result.stdout
