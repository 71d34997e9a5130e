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


@pytest.mark.parametrize("check", CHECKS, ids=lambda path: path.stem.removeprefix("check_"))
def test_in_a_process_of_its_own(check: Path, tmp_path: Path) -> None:
    done = subprocess.run(
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
        cwd=tmp_path,  # what they leave behind goes with it
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
        },
    )
    missing = re.search(r"SKIPPED \[1\] .*: (.* is not installed)", done.stdout)
    if missing and " passed" not in done.stdout:
        pytest.skip(missing[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout, done.stdout
