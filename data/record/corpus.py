# SPDX-License-Identifier: Apache-2.0
"""Training data that any machine with Python and scikit-learn already has.

The text comes from the running interpreter: the reference pages behind ``help()`` and the
docstrings of the standard library's own modules, both under the PSF licence. The tables and
images come with scikit-learn.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pydoc_data import topics
from typing import Any

import generated
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

_NOT_LIBRARY = frozenset({"test", "tests", "idle_test", "_bundled"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Split:
    """Inputs and labels or scores, split once and for all."""

    train_x: NDArray[np.float32]
    train_y: NDArray[Any]
    valid_x: NDArray[np.float32]
    valid_y: NDArray[Any]


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode("ascii").replace("\0", "").replace("\1", "")


def reference_pages() -> str:
    """The language reference pages that ``help()`` shows."""
    return _ascii("\n\n".join(text for _, text in sorted(topics.topics.items())))


def _library_sources() -> Iterator[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        name = parts[0].removesuffix(".py")
        if name in sys.stdlib_module_names and _NOT_LIBRARY.isdisjoint(parts):
            yield path


@cache
def docstrings() -> tuple[str, ...]:
    """Every distinct docstring of the standard library, in order of file and line."""
    found: dict[str, None] = {}
    for path in _library_sources():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and (doc := ast.get_docstring(node)):
                found[_ascii(inspect.cleandoc(doc))] = None
    return tuple(found)


def docstring_text() -> str:
    """All docstrings as one text."""
    return "\n\n".join(docstrings())


def summaries() -> list[tuple[str, str]]:
    """(body, summary line) of every docstring that has both."""
    pairs = []
    for doc in docstrings():
        summary, _, body = doc.partition("\n\n")
        if body.strip() and summary and "\n" not in summary:
            pairs.append((body.strip(), summary.strip()))
    return pairs


def digits() -> Split:
    """scikit-learn's 8x8 digits scaled to [0, 1], in random order, the last 360 held out."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = (data.data[order] / 16.0).astype(np.float32)
    y = data.target[order].astype(np.int64)
    return Split(x[:-360], y[:-360], x[-360:], y[-360:])


def _standardised(x: NDArray[np.float64], y: NDArray[Any], held_out: int) -> Split:
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    seen = x[:-held_out]
    x = ((x - seen.mean(axis=0)) / seen.std(axis=0)).astype(np.float32)
    return Split(x[:-held_out], y[:-held_out], x[-held_out:], y[-held_out:])


def cancer() -> Split:
    """scikit-learn's breast cancer data: 30 columns, two classes."""
    data = load_breast_cancer()
    return _standardised(data.data, data.target.astype(np.int64), held_out=169)


def diabetes() -> Split:
    """scikit-learn's diabetes data: 10 columns and a score of progression, standardised."""
    data = load_diabetes()
    score = (data.target - data.target.mean()) / data.target.std()
    return _standardised(data.data, score.astype(np.float32), held_out=132)


def checksums() -> dict[str, str]:
    """SHA-256 of each data set, to tell whether another machine holds the same data."""

    def joined(data: Split) -> bytes:
        parts = (data.train_x, data.train_y, data.valid_x, data.valid_y)
        return b"".join(part.tobytes() for part in parts)

    contents = {
        "reference pages": reference_pages().encode(),
        "docstrings": docstring_text().encode(),
        "summaries": "\0".join("\1".join(pair) for pair in summaries()).encode(),
        "digits": joined(digits()),
        "cancer": joined(cancer()),
        "diabetes": joined(diabetes()),
        **generated.contents(),
    }
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
