# SPDX-License-Identifier: Apache-2.0
"""`trainer_state.json` of Hugging Face's Trainer; read by the core."""

from __future__ import annotations

import os
from pathlib import Path

from glidepath import _core
from glidepath._trace import Trace
from glidepath.readers._series import of_run


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is JSON with a `log_history`."""
    return _core.is_trainer_state(os.fsencode(path), head)


def whole(path: Path, folder: Path) -> Path:
    """Give the file, below a folder, of the run that a file holds the beginning of."""
    found = Path(os.fsdecode(_core.whole_state(os.fsencode(path))))
    return found if folder in found.parents else path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run. The loss 0 that the Trainer writes for NaN is NaN again."""
    return [of_run(_core.read_trainer_state(os.fsencode(path), metric), metric, path)]
