# SPDX-License-Identifier: Apache-2.0
"""The command line: one module a verb, which `_app` puts together.

The verbs share `_options`, what they read (`_inputs`), write (`_outputs`) and print (`_console`).
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        from glidepath.cli import _app  # takes time to load, in which somebody may press Ctrl-C
    except KeyboardInterrupt:
        return 130
    try:
        return _app.main(arguments)
    except Exception:  # of which Python would make 1, the code that stops a run
        traceback.print_exc()
        return 70


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from glidepath.cli import _app

    return _app.app
