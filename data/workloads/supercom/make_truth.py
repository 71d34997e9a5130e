# SPDX-License-Identifier: Apache-2.0
"""Write truth/curves.csv.gz: the recorded runs that stand for the classes, logged every 25 steps.

A recorded value is the mean loss since the previous logged step, so that the mean over the rows of
25 steps is what the run would have logged at that interval.
"""

from __future__ import annotations

import csv
import gzip
import io
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
CURVES = HERE.parents[1] / "curves"
COLLECTIONS = ("docstring-t5", "docs-transformer")
INTERVAL = 25


def relogged(collection: str) -> list[tuple[str, int, float, float]]:
    """Rows (curve, step, value, lr) of a collection at the coarser interval."""
    with gzip.open(CURVES / f"{collection}.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    out = []
    for (curve, _), block in groupby(
        rows, key=lambda row: (row["curve"], (int(row["step"]) - 1) // INTERVAL)
    ):
        group = list(block)
        mean = sum(float(row["value"]) for row in group) / len(group)
        out.append((f"{collection}/{curve}", int(group[-1]["step"]), mean, float(group[-1]["lr"])))
    return out


def main() -> None:
    """Write the file; the same bytes each time."""
    text = io.StringIO()
    text.write("curve,step,value,lr\n")
    for collection in COLLECTIONS:
        for curve, step, value, lr in relogged(collection):
            text.write(f"{curve},{step},{value:.6g},{lr:.6g}\n")
    packed = gzip.compress(text.getvalue().encode(), 9, mtime=0)
    (HERE / "truth" / "curves.csv.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
