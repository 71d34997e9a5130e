# SPDX-License-Identifier: Apache-2.0
"""Files that the verbs write: refused before the work where they cannot be, and saved."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import glidepath as gp
from glidepath._drafts import write_whole
from glidepath._results import require

_WRITTEN = (".html", ".png", ".svg", ".pdf")  # what a command may write again


def check_output(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse to write over a folder, or a file that the command reads, by itself or in a folder.

    Before hours of work, not after: a file in a folder that is not there is refused, too.
    """
    if output is None:
        return
    if not output.exists():
        if not output.parent.is_dir():
            raise gp.IoError(f"{option} {output}: no folder {output.parent}")
        return
    if output.is_dir():
        raise gp.InputError(f"{option} {output} is a folder, expected a file")
    for given in (Path(each) for each in inputs if each is not None):
        try:
            within = given.is_dir() and output.resolve().is_relative_to(given.resolve())
            read = given.exists() and given.samefile(output)
        except OSError:  # such as an address that is too long for a name
            continue
        if read or (within and output.suffix not in _WRITTEN):
            raise gp.InputError(f"{option} {output}: this command reads that file")


def check_page(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse what `check_output` refuses, and a name of another kind of file.

    A pipe or a device has a name without an ending.
    """
    check_output(option, output, *inputs)
    if output is not None and output.suffix.lower() not in ("", ".html", ".htm"):
        raise gp.InputError(f"{option} {output}: neither .html nor .htm")


def check_plot(option: str, output: Path | None, *inputs: Path | str | None) -> None:
    """Refuse what `check_output` refuses, and a name that says no kind of picture."""
    check_output(option, output, *inputs)
    if output is None:
        return
    known = require("matplotlib.figure").Figure().canvas.get_supported_filetypes()
    if output.suffix[1:].lower() not in known:
        raise gp.InputError(f"{option} {output}: neither .png nor .svg nor .pdf")


def save(plot: Callable[..., Any], path: Path) -> None:
    figure = require("matplotlib.figure").Figure(figsize=(8.0, 4.5), layout="constrained")
    plot(ax=figure.add_subplot())
    picture = BytesIO()
    figure.savefig(picture, dpi=150, format=path.suffix[1:])
    try:
        write_whole(path, picture.getvalue())
    except OSError as error:
        raise gp.IoError(f"{path}: cannot write the picture: {error.strerror}") from None
