# SPDX-License-Identifier: Apache-2.0
"""How far laws of scaling and of sharing are off what was measured and not learned from."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath._csv_rows import csv_rows

Measured = tuple[int, int, float, float]  # gpus, nodes, batch per GPU, seconds


def _measurements(table: Path) -> list[list[list[Measured]]]:
    """Models of a throughput table, each a list of jobs that differ in batch size only."""
    models: dict[tuple[str, ...], dict[str, dict[tuple[int, int], list[tuple[float, float]]]]]
    models = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in csv_rows(table):
        if "iter_per_s" in row:  # fixed global batch; nodes of 8 A100 or 4 T4
            if not float(row["iter_per_s"]) > 0:  # NaN and 0: does not run
                continue
            gpus, job = int(row["gpus"]), row["global_batch"]
            nodes = -(-gpus // (8 if row["gpu"] == "A100" else 4))
            model: tuple[str, ...] = (row["gpu"], row["model"])
            batch, seconds = float(job) / gpus, 1 / float(row["iter_per_s"])
        else:  # fixed batch per GPU, dozens of places: every batch size stands alone
            spread, job = row["placement"], row["local_bsz"]
            nodes = len(spread) if spread else int(row["num_nodes"])
            gpus = sum(map(int, spread)) if spread else int(row["num_replicas"])
            model = (row["table"], row["app"], row["node_type"], job)
            batch, seconds = 1.0, float(row["step_time_s"])
        models[model][job][gpus, nodes].append((batch, seconds))
    return [
        [
            [(k, n, v[0][0], float(np.median([s for _, s in v]))) for (k, n), v in places.items()]
            for _, places in sorted(jobs.items())
        ]
        for _, jobs in sorted(models.items())
    ]


def _fit(measured: Sequence[Measured]) -> gp.Scaling:
    gpus, nodes, batch, seconds = (np.array(column) for column in zip(*measured, strict=True))
    return gp.fit_scaling(gpus, seconds, nodes=nodes, batch_per_gpu=batch)


def held_out_scaling_errors(
    table: Path, *, most: int | None = None, strict: bool = False
) -> NDArray[np.float64]:
    """Relative errors of the predicted step times of GPU counts that were not fitted.

    Each count of each job is left out in turn, the smallest and largest included; jobs measured at
    fewer than 4 counts are left out altogether. The fit sees the other counts of the job and what
    was measured of the same model at other batch sizes, with `strict` not at that count either.
    `most` takes that many models, evenly spread.
    """
    models = _measurements(table)
    if most is not None and len(models) > most:
        models = [models[i] for i in np.linspace(0, len(models) - 1, most).astype(int)]
    errors = []
    for jobs in models:
        for job in jobs:
            counts = sorted({row[0] for row in job})
            for held in counts if len(counts) >= 4 else ():
                seen = [
                    row
                    for other in jobs
                    for row in other
                    if row[0] != held or (other is not job and not strict)
                ]
                scaling = _fit(seen)
                errors += [
                    abs(scaling.step_seconds(k, n, b) / s - 1) for k, n, b, s in job if k == held
                ]
    return np.array(errors)


class Kind(NamedTuple):
    """A kind of job of a table of pairs, as it is known alone."""

    name: str
    model: str
    features: tuple[float, ...]


Sharings = dict[str, tuple[list[Kind], dict[tuple[str, str], float]]]


def read_sharing(table: str | Path) -> Sharings:
    """Kinds of each GPU type of Gavel's table, and the speed of the first beside the second.

    Only rows of one GPU on one server; pairs that did not fit are left out. A speed is a share of
    the speed alone. Features are logarithms of the batch size and of the time of a step alone.
    """
    alone: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    together: dict[str, list[tuple[tuple[str, str], tuple[str, str], float]]] = defaultdict(list)
    for row in csv_rows(table):
        if row["gpus"] != "1" or row["consolidated"] != "1":
            continue
        kind, rate = (row["model"], row["batch"]), float(row["steps_per_s"])
        if not row["other_model"]:
            alone[row["gpu_type"]][kind] = rate
        elif rate > 0:
            other = (row["other_model"], row["other_batch"])
            together[row["gpu_type"]].append((kind, other, rate))
    out: Sharings = {}
    for gpu, rates in alone.items():
        kinds = [
            Kind(f"{model} {batch}", model, (math.log2(float(batch or 1)), -math.log2(rate)))
            for (model, batch), rate in rates.items()
        ]
        speeds = {
            (" ".join(kind), " ".join(other)): rate / rates[kind]
            for kind, other, rate in together[gpu]
        }
        out[gpu] = kinds, speeds
    return out


def _held_out_pairs(
    leave: str, kinds: Sequence[Kind], pairs: Sequence[tuple[str, str]]
) -> list[set[tuple[str, str]]]:
    """What is left out together, see `held_out_sharing_errors`."""
    model = {kind.name: kind.model for kind in kinds}
    if leave == "pair":
        part = {pair: zlib.crc32("|".join(sorted(pair)).encode()) % 10 for pair in pairs}
        return [{pair for pair in pairs if part[pair] == p} for p in range(10)]
    if leave == "kind":
        return [{pair for pair in pairs if kind.name in pair} for kind in kinds]
    of_model = {
        name: sorted((kind.features[0], kind.name) for kind in kinds if kind.model == name)
        for name in sorted(set(model.values()))
    }
    middle = {sizes[len(sizes) // 2][1] for sizes in of_model.values()}
    held = []
    for name in of_model:
        of_it = {pair for pair in pairs if name in (model[pair[0]], model[pair[1]])}
        if leave == "profiled":
            of_it -= {
                (a, b)
                for a, b in of_it
                if (a in middle and model[a] != name) or (b in middle and model[b] != name)
            }
        held.append(of_it)
    return held


def held_out_sharing_errors(table: str | Path, leave: str) -> NDArray[np.float64]:
    """Errors of the speeds of pairs that were not learned from, as shares of the speed alone.

    `leave` says what is left out in turn: ``kind`` = every pair of a model at one batch size,
    ``model`` = every pair of a model at all its batch sizes, ``profiled`` = the same except those
    beside the middle batch size of each other model, ``pair`` = single pairs, a tenth at a time.
    """
    errors = []
    for gpu, (kinds, speeds) in read_sharing(table).items():
        alone = [gp.JobKind(k.name, gpu, k.model, k.features) for k in kinds]
        for held in _held_out_pairs(leave, kinds, list(speeds)):
            seen = [
                gp.KindPair(gpu, a, b, 1 / speed, 1 / speeds[b, a])
                for (a, b), speed in speeds.items()
                if a <= b and (a, b) not in held
            ]
            for row in gp.learn_pairs(seen, alone).rows:
                if (row.first, row.second) in held:
                    errors.append(abs(1 / row.first_slowdown - speeds[row.first, row.second]))
    return np.array(errors)


def hindsight_sharing_errors(table: str | Path) -> NDArray[np.float64]:
    """Errors of the best sum of what a kind of job suffers and what its partner does.

    Two numbers for each kind and GPU type, fitted to the very speeds that they are compared with:
    what is left when all is known of the jobs one by one.
    """
    errors = []
    for kinds, speeds in read_sharing(table).values():
        place = {kind.name: i for i, kind in enumerate(kinds)}
        design = np.zeros((len(speeds), 2 * len(kinds)))
        for row, (first, other) in enumerate(speeds):
            design[row, place[first]] = design[row, len(kinds) + place[other]] = 1.0
        measured = np.array(list(speeds.values()))
        best = np.linalg.lstsq(design, measured, rcond=None)[0]
        errors.append(np.abs(design @ best - measured))
    return np.concatenate(errors)
