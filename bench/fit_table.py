# SPDX-License-Identifier: Apache-2.0
"""Fits a Parquet table of runs through Dask: time, processor time and memory, end to end.

python bench/fit_table.py [runs] [family]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import glidepath as gp
from glidepath.engines.dask import fit_table

POINTS = 50


def write(path: Path, runs: int) -> None:
    """Write power laws with 1 % noise in long form, 20 000 runs at a time."""
    steps, rng = np.arange(1.0, POINTS + 1), np.random.default_rng(0)
    writer = None
    for first in range(0, runs, 20_000):
        count = min(20_000, runs - first)
        floor, rate = rng.uniform(0.1, 0.5, (count, 1)), rng.uniform(0.3, 0.9, (count, 1))
        noise = rng.normal(0, 0.01, (count, POINTS))
        table = pa.table(
            {
                "run": np.repeat(np.arange(first, first + count), POINTS),
                "step": np.tile(steps, count),
                "value": ((floor + 2 * steps**-rate) * np.exp(noise)).ravel(),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def main() -> None:
    """Time the whole of it, and the fits alone beside it."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    family = sys.argv[2] if len(sys.argv) > 2 else "pow3"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.parquet"
        write(path, runs)
        wall, processor = time.perf_counter(), time.process_time()
        found = fit_table(path, family=family)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        sample = pq.ParquetFile(path).read_row_group(0, columns=["value"])["value"].to_numpy()
    rows = sample[: len(sample) // POINTS * POINTS].reshape(-1, POINTS)
    alone = time.process_time()
    gp.fit_batch(np.arange(1.0, POINTS + 1), rows, family=family, threads=1)
    alone = (time.process_time() - alone) / len(rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(found)} {family} fits of {POINTS} points in {wall:.1f} s, {processor:.1f} s of")
    print(f"processor time, {alone * runs:.1f} s of which are the fits; peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
