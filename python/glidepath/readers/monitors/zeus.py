# SPDX-License-Identifier: Apache-2.0
"""Zeus: the power that its monitors sample, and the energy of the windows that it measures.

``Time,Power`` in milliwatts is of its first monitor, ``time,power0,power1,…`` in watts of its power
monitor, ``start_time,window_name,elapsed_time,gpu0_energy,…`` in joules the log of `ZeusMonitor`.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from glidepath._core import IoError
from glidepath.readers.monitors._samples import (
    Options,
    Samples,
    bare_number,
    quantity,
    seconds,
    table_rows,
)

_WINDOWS = ["start_time", "window_name", "elapsed_time"]


def _names(line: str) -> list[str]:
    return [name.strip() for name in line.split(",")]


def recognises(head: str) -> bool:
    """Tell whether a file begins as these do."""
    names = _names(head.split("\n", 1)[0])
    powers = names[0] == "time" and all(re.fullmatch(r"power\d+", name) for name in names[1:])
    return names[:3] == _WINDOWS or names == ["Time", "Power"] or (powers and len(names) > 1)


def read(path: Path, options: Options) -> Samples:
    """Collect the samples of a file; IoError with its line where it is damaged."""
    samples = Samples(path, options)
    table = table_rows(path, samples)
    names = [name.strip() for name in next(table, (0, []))[1]]
    windows: list[tuple[str, float, float, dict[str, float]]] = []
    if names == ["Time", "Power"]:
        samples.notes.append("Power was read as milliwatts, in which Zeus writes this column")
    for number, row in table:
        try:
            if len(row) != len(names):
                raise ValueError(f"{len(row)} cells for {len(names)} names")
            if names[:3] == _WINDOWS:
                energy = {
                    match[1]: quantity(cell, name=name)
                    for name, cell in zip(names, row, strict=True)
                    if (match := re.fullmatch(r"gpu(\d+)_energy", name))
                }
                began, length = seconds(row[0], names[0]), bare_number(row[2], names[2])
                windows.append((row[1], began, length, energy))
                continue
            milli = 1e-3 if names == ["Time", "Power"] else 1.0
            for name, cell in zip(names[1:], row[1:], strict=True):
                gpu = name.removeprefix("power") if milli == 1.0 else "0"
                watts = quantity(cell, name=name) * milli
                samples.add(gpu, seconds(row[0], names[0]), {"power_w": watts})
        except ValueError as error:
            raise IoError(f"{path}:{number}: {error}") from None
    if names[:3] == _WINDOWS:
        _add_windows(samples, windows, options.run)
    return samples


def _add_windows(
    samples: Samples, windows: list[tuple[str, float, float, dict[str, float]]], run: str | None
) -> None:
    """Count the energy of the windows of one name up: between two of them it is not known."""
    counts = Counter(window[0] for window in windows)
    if not counts:
        return
    name = counts.most_common(1)[0][0] if run is None else run
    if name not in counts:
        known = ", ".join(list(counts)[:8])
        raise IoError(f"{samples.path}: run is {name!r}, expected a window: {known}")
    others = [other for other in counts if other != name]
    if others and run is None:
        samples.notes.append(f"windows {name!r} were read, not {', '.join(others[:8])}")
    total: dict[str, float] = {}
    ended = -float("inf")
    for _, begin, length, energy in sorted(w for w in windows if w[0] == name):
        if begin < ended - 1e-3:
            raise IoError(f"{samples.path}: windows {name!r} overlap at {begin:g} s")
        for at in (begin, begin + length):
            if at <= ended:
                continue
            for gpu, joules in energy.items():
                total[gpu] = total.get(gpu, 0.0) + (joules if at > begin else 0.0)
                samples.add(gpu, at, {"energy_counter_j": total[gpu]})
        ended = begin + length
