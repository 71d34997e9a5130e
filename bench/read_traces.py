# SPDX-License-Identifier: Apache-2.0
"""Read the same long CSV with glidepath, Python's csv and, where it is installed, pandas.

Prints CPU seconds and megabytes a second of each, and their ratio to glidepath's.
Usage: bench/read_traces.py [MEGABYTES]
"""

import csv
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import glidepath as gp


def write(file: Path, megabytes: float) -> None:
    """Write runs of 1000 points with full-precision values."""
    with file.open("w") as out:
        out.write("curve,step,value,lr\n")
        run = 0
        while out.tell() < megabytes * 1e6:
            out.writelines(
                f"study/run{run},{s},{2 + (1 + s) ** -0.5 + 1e-3 * (s % 7)!r},0.001\n"
                for s in range(1, 1001)
            )
            run += 1


def with_csv(file: Path) -> int:
    """Group the rows as the reader does."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    with file.open(newline="") as stream:
        rows = csv.reader(stream)
        next(rows)
        for curve, step, value, lr in rows:
            curves.setdefault(curve, []).append((float(step), float(value), float(lr)))
    return len(curves)


def with_pandas(file: Path) -> int:
    """Read the table; the runs are not even separated."""
    import pandas as pd

    return int(pd.read_csv(file)["curve"].nunique())


def seconds(read: Callable[[Path], int], file: Path) -> float:
    """Give the best of three, in CPU time of this thread's process."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        read(file)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Measure side by side."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    readers: dict[str, Callable[[Path], int]] = {
        "glidepath": lambda file: len(gp.read_traces(file)),
        "csv": with_csv,
    }
    if importlib.util.find_spec("pandas"):
        readers["pandas"] = with_pandas
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.csv"
        write(file, megabytes)
        size = file.stat().st_size / 1e6
        ours = 0.0
        for name, read in readers.items():
            taken = seconds(read, file)
            ours = ours or taken
            print(f"{name:10} {taken:7.3f} s {size / taken:7.1f} MB/s  x {taken / ours:.1f}")


if __name__ == "__main__":
    main()
