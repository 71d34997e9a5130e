# SPDX-License-Identifier: Apache-2.0
"""Check the recorded curves and print the tables of data/SOURCES.md; needs only Python.

python data/record/describe.py [data/gpu]
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

CURVES = Path(__file__).resolve().parents[1] / "curves"


@dataclass(frozen=True)
class Curve:
    """One recorded run: the columns of its rows."""

    name: str
    steps: list[int]
    values: list[float]
    lrs: list[float]
    seconds: list[float]


def read(path: Path) -> list[Curve]:
    """Every curve of a file; a row that does not parse or steps that do not increase are errors."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    curves = []
    for name, group in groupby(rows, key=lambda row: row["curve"]):
        part = list(group)
        curve = Curve(
            name,
            steps=[int(row["step"]) for row in part],
            values=[float(row["value"]) for row in part],
            lrs=[float(row["lr"]) for row in part],
            seconds=[float(row["wall_seconds"]) for row in part],
        )
        before = [0, *curve.steps]
        if any(step <= last for last, step in zip(before, curve.steps, strict=False)):
            raise SystemExit(f"{path.name}: the steps of {name} do not increase")
        curves.append(curve)
    if len({curve.name for curve in curves}) != len(curves):
        raise SystemExit(f"{path.name}: the rows of a curve are not together")
    return curves


def _tail(curve: Curve) -> float:
    return median(curve.values[-10:])


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0e}"


def _range(values: Sequence[float]) -> str:
    return f"{_short(min(values))}-{_short(max(values))}"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CURVES
    paths = sorted(folder.glob("*.csv.gz"))
    files = {path: read(path) for path in paths}
    print("| collection | curves | points | points per curve | first | last | seconds |")
    print("|---|---|---|---|---|---|---|")
    for path, curves in files.items():
        lengths = [len(curve.steps) for curve in curves]
        tails = [tail for curve in curves if math.isfinite(tail := _tail(curve))]
        print(
            f"| {path.name.removesuffix('.csv.gz')} | {len(curves)} | {sum(lengths)} "
            f"| {min(lengths)}-{max(lengths)} | {_range([curve.values[0] for curve in curves])} "
            f"| {_range(tails) if tails else 'nan'} "
            f"| {sum(curve.seconds[-1] for curve in curves):.0f} |"
        )
    print("\n| file | bytes | SHA-256 |\n|---|---|---|")
    for path in paths:
        content = path.read_bytes()
        print(f"| {path.name} | {len(content)} | `{hashlib.sha256(content).hexdigest()}` |")


if __name__ == "__main__":
    main()
