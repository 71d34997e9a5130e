# SPDX-License-Identifier: Apache-2.0
"""The ``emissions.csv`` of codecarbon: energy of all GPUs of a run together, up to each row."""

from __future__ import annotations

from pathlib import Path

from glidepath._core import IoError
from glidepath.readers.monitors._samples import Options, Samples, bare_number, quantity, table_rows

_NEEDED = ("run_id", "duration", "gpu_power", "gpu_energy")


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    names = head.split("\n", 1)[0].strip().split(",")
    return all(name in names for name in _NEEDED)


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    table = table_rows(path)
    names = next(table, (0, []))[1]
    runs: dict[str, list[tuple[float, float, float, int]]] = {}
    for number, cells in table:
        row = dict(zip(names, cells, strict=False))
        try:
            run_id = row["run_id"]
            values = (
                bare_number(row["duration"], "duration"),
                quantity(row["gpu_power"], name="gpu_power"),
                quantity(row["gpu_energy"], "kWh", name="gpu_energy"),
                int(bare_number(row.get("gpu_count") or "1", "gpu_count")) or 1,
            )
        except KeyError as error:
            raise IoError(f"{path}:{number}: no column {error}") from None
        except ValueError as error:
            raise IoError(f"{path}:{number}: {error}") from None
        runs.setdefault(run_id, []).append(values)
    run = options.run
    if run is None and len(runs) > 1:
        raise IoError(f"{path}: {len(runs)} runs; say run= one of {', '.join(list(runs)[:8])}")
    if run is not None and run not in runs:
        raise IoError(f"{path}: run is {run!r}, expected one of {', '.join(list(runs)[:8])}")
    for rows in [runs[run]] if run is not None else runs.values():
        _add(samples, sorted(rows))
    return samples


def _add(samples: Samples, rows: list[tuple[float, float, float, int]]) -> None:
    """Share what all GPUs drew out equally: the file does not say more."""
    count = rows[0][3]
    if count > 1:
        samples.notes.append(f"the sum of {count} GPUs is shared out equally")
    for gpu in range(count):
        samples.add(str(gpu), 0.0, {"energy_counter_j": 0.0})
    for duration, power, energy, _ in rows:
        for gpu in range(count):
            values = {"energy_counter_j": energy / count, "power_w": power / count}
            samples.add(str(gpu), duration, values)
