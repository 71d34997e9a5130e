# SPDX-License-Identifier: Apache-2.0
"""The formats of logs, which of them a file has, and what may leave their readers."""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from glidepath._core import InputError, IoError, head_of
from glidepath.readers._series import without_secrets

# What recognises and reads each format: a module of `glidepath.readers`, imported when a file is
# read. In the order in which they get to judge whether a file is theirs.
FORMATS = {
    "csv": "long_csv",
    "wandb": "wandb_log",
    "wandb_csv": "wandb_csv",
    "wandb_summary": "wandb_summary",
    "trainer_state": "trainer_state",
    "jsonl": "json_lines",
    "json": "json_document",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow_files",
    "trackio": "trackio",
    "mlflow_sqlite": "mlflow_sqlite",
    "parquet": "parquet",
    "dvclive": "dvclive",
    "table": "wide_csv",
    "text": "text_log",
}
# What a look at a file that is damaged, or of another format, may end in; all else is a fault.
_NOT_ITS_OWN = (OSError, UnicodeError, csv.Error)


def _reader(format: str) -> Any:  # noqa: A002
    return importlib.import_module(f"glidepath.readers.{FORMATS[format]}")


@contextmanager
def refusing(source: str) -> Iterator[None]:
    """The one boundary of all readers: whatever a log holds, only errors of ours leave it."""
    try:
        yield
    except (IoError, InputError, ImportError):
        raise
    except OSError as error:  # such as a folder or file that may not be read
        raise IoError(f"{error.filename or source}: {error.strerror or error}") from None
    except Exception as error:  # whatever damage made of a parser, ours or a library's
        said = f"{type(error).__name__}: {without_secrets(str(error)[:300])}"
        raise IoError(f"{source}: {said}") from error


def _head(path: Path) -> bytes:
    """How a file begins, unpacked where it is gzip, as far as it can be read.

    The first line of a table is whole, as its columns may be many.
    """
    return head_of(os.fsencode(path))


def _format_of(path: Path, head: bytes) -> str | None:
    for name in FORMATS:
        with refusing(str(path)), suppress(*_NOT_ITS_OWN):
            if _reader(name).recognises(path, head):
                return name
    return None
