# SPDX-License-Identifier: Apache-2.0
# Written by scripts/update_stub.py
"""
The C++ library behind glidepath; private.
"""
from __future__ import annotations
class InputError(ValueError): ...
class IoError(OSError): ...
__all__: list[str] = ['InputError', 'IoError', 'available_threads', 'best_isa']
def available_threads() -> int:
    """
    Number of threads that threads=0 means here.
    """
def best_isa() -> str:
    """
    Instruction set that the batch kernels use here.
    """
__version__: str
