# SPDX-License-Identifier: Apache-2.0
# Written by scripts/update_stub.py
"""
The C++ library behind glidepath; private.
"""
from __future__ import annotations
class InputError(ValueError): ...
class IoError(OSError): ...
import typing
__all__: list[str] = ['InputError', 'IoError', 'available_threads', 'best_isa', 'clean_columns', 'read_long_csv', 'validate_trace']
def available_threads() -> int:
    """
    Number of threads that threads=0 means here.
    """
def best_isa() -> str:
    """
    Instruction set that the batch kernels use here.
    """
def clean_columns(step: typing.Any, loss: typing.Any, lr: typing.Any, wall_seconds: typing.Any, max_points: typing.SupportsInt | typing.SupportsIndex, winsorise_sigmas: typing.SupportsFloat | typing.SupportsIndex) -> tuple:
    """
    The cleaned columns and what was done: (columns, dropped_nonfinite, dropped_repeats, pulled_in, thinned).
    """
def read_long_csv(path: bytes, metric: str) -> list:
    """
    Every curve of a long CSV as (step, loss, lr, wall_seconds, name, direction).
    """
def validate_trace(step: typing.Any, loss: typing.Any) -> None:
    """
    Throws InputError unless the columns make a trace.
    """
__version__: str
