#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learn the constants of the forecast from folders of finished curves.

    python bench/accuracy/learn_prior.py FOLDER ... --out constants.txt [--leave-out SOURCE]

Every collection (one CSV of the folder) belongs to a source, the part of its name before the first
dash, and every curve to a group: one workload, task, model or repository. The program looks at
prefixes of the curves of all sources but the one left out, gives each group the weight of the root
of its prefixes, and descends (Adam) on what the forecasts are judged by: the CRPS of observations
after the prefix in units of the range of the curve, and how far the 80 % intervals of the prefixes
seen to 10, 20, 40, 60 and 80 % are from holding .8 of them, and as many above as below. Learned are
the log priors of shapes and structures, the exponent of the evidence, the widths, how these depend
on six features of the prefix, and the corrections by features and distance. It prints the loss on
the sources it learned from and on the one left out, and writes the table that `src/forecast`
compiles in. With `--report N` it also prints the protocol's figures on N curves of each collection
left out, by the tables learned without them, beside those by the table compiled in, which has seen
them.

Needs torch, and the module `_training` beside this file, which a build of the tests or benchmarks
makes with `-DGLIDEPATH_BUILD_PYTHON=ON`: everything about the model itself comes from its
`forecast_nodes`.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import zlib
from collections.abc import Container
from pathlib import Path
from typing import Any

import _training
import numpy as np
import torch

import glidepath as gp
from glidepath import _core, bench
from glidepath._bench.accuracy.curves import read_logs

# The table published with the method.
PUBLISHED = Path(__file__).parents[2] / "tests" / "golden" / "forecast_prototype.txt"
CUTOFFS = (0.1, 0.2, 0.4, 0.6, 0.8)
FEATURES = 6
FAMILIES = ("power", "weibull", "hill", "log", "constant")
SQRT3 = math.sqrt(3.0)
# Where the forecast is judged: shares of the points after the prefix.
SHARES = (0.02, 0.2, 0.45, 0.75, 1.0)
KEPT = 24  # heaviest nodes of a prefix
MAX_LOG_AHEAD = 2.5  # kMaxLogAhead of src/forecast/predict.hpp
WORKLOADS = ("digits", "docs", "docstring", "mlperf")  # sources whose collections are one each
AHEAD = ("lean", "lean_far", "widen")


def oriented(trace: gp.Trace) -> tuple[np.ndarray, np.ndarray]:
    """Steps from 1 up and values that are better when lower, as the benchmark sees them."""
    step, value = np.array(trace.step), np.array(trace.loss)
    if step[0] <= 0:
        step = step + (1.0 - step[0])
    if trace.direction == "max":
        value = 1.0 - (value / 100.0 if 1.5 < value.max() <= 100.0 else value)
    return step, value


def group_of(collection: str, curve: str) -> str:
    """Group of a curve: all runs of one workload, task, model or repository share it."""
    source, names = collection.split("-")[0], re.split(r"[|/]", curve)
    if source in WORKLOADS:
        return collection
    if source == "rl" and len(names) > 2:  # algorithm/task_seed/...
        return f"{source}:{names[1].rpartition('_')[0]}"
    return f"{source}:{names[0]}"


def fold_of(collection: str, curve: str, folds: int) -> int:
    """Fold of a curve, that of its group."""
    return zlib.crc32(group_of(collection, curve).encode()) % folds


def read_cases(
    folders: list[str], curves: int, text: str, seed: int, folds: int
) -> list[dict[str, Any]]:
    """One record per prefix: the nodes at five queries, and the observations there."""
    constants = _core.read_constants(text)
    cases = []
    for logs in (logs for folder in folders for logs in read_logs(folder, None)):
        name = logs.name
        if "nonfinite" in name:
            continue
        traces = [
            t
            for t in logs.traces
            if len(t) >= 10 and np.isfinite(t.loss).all() and np.ptp(t.loss) > 1e-9
        ]
        order = np.random.RandomState(seed).permutation(len(traces))[:curves]
        for index in order:
            step, value = oriented(traces[index])
            total = len(value)
            seen: set[int] = set()
            for cutoff in CUTOFFS:
                k = max(4, math.ceil(cutoff * total))
                if k > 0.9 * total or k in seen:
                    continue
                seen.add(k)
                at = [k + int(share * (total - k - 1)) for share in SHARES]
                queries = np.maximum.accumulate(step[at])
                unique, back = np.unique(queries, return_inverse=True)
                nodes = _training.forecast_nodes(step[:k], value[:k], unique, constants)
                if nodes is None or not nodes["logarithmic"]:
                    continue
                cases.append(
                    dict(
                        nodes,
                        back=back,
                        truth=value[at],
                        cutoff=cutoff,
                        range=np.ptp(value),
                        collection=name,
                        source=name.split("-")[0],
                        group=group_of(name, traces[index].name),
                        fold=fold_of(name, traces[index].name, folds),
                    )
                )
        print(f"{name}: {len(order)} curves, {len(cases)} prefixes so far", file=sys.stderr)
    return cases


class Table:
    """A text of constants as numbers, and back."""

    def __init__(self, text: str) -> None:
        self.shapes: list[list[str]] = []
        self.structures: list[list[str]] = []
        self.rest: dict[str, str] = {}
        self.gains: list[str] = []
        self.gates: dict[str, list[float]] = {}
        self.ahead: dict[str, list[float]] = {name: [0.0] * (1 + FEATURES) for name in AHEAD}
        for line in text.splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "shape":
                self.shapes.append(words[1:])
            elif words[0] == "structure":
                self.structures.append(words[1:])
            elif words[0] == "gain":
                self.gains.append(line)
            elif words[0] == "ahead":
                self.ahead[words[1]] = [float(w) for w in words[2:]]
            elif words[0] == "gate":
                self.gates[" ".join(words[1:-FEATURES])] = [float(w) for w in words[-FEATURES:]]
            else:
                self.rest[words[0]] = " ".join(words[1:])


class Model(torch.nn.Module):
    """The mixture as a function of the constants."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        par = lambda values: torch.nn.Parameter(torch.tensor(values, dtype=torch.float32))  # noqa: E731
        self.shape = par([float(s[3]) for s in table.shapes])
        self.structure = par([float(s[2]) for s in table.structures])
        self.family = torch.tensor([FAMILIES.index(s[0]) for s in table.shapes])
        number = lambda key: par(math.log(float(table.rest[key])))  # noqa: E731
        self.temper, self.inflation = number("temper"), number("inflation")
        self.drop, self.distance, self.width = number("drop"), number("distance"), number("width")
        self.power = number("distance_power")
        self.rising = par(float(table.rest["rising_penalty"]))
        gate = lambda key: par(table.gates.get(key, [0.0] * FEATURES))  # noqa: E731
        self.gates = torch.nn.ParameterDict(
            {k: gate(k) for k in ("rising", "temper", "inflation", "drop", "distance", "width")}
        )
        self.ahead = torch.nn.ParameterDict({k: par(v) for k, v in table.ahead.items()})
        row = lambda key: table.gates.get(key, [0.0] * FEATURES)  # noqa: E731
        self.gate_structure = par([row(f"structure {i}") for i in range(len(table.structures))])
        self.gate_family = par([row(f"family {f}") for f in FAMILIES])
        self.start = {name: p.detach().clone() for name, p in self.named_parameters()}

    def forward(
        self, d: dict[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights (B, K), locations and scales of observations (B, K, Q) of the heaviest nodes."""
        x = d["features"]  # (B, F)
        bent = lambda name: torch.exp(getattr(self, name) + x @ self.gates[name])  # noqa: E731
        ahead = lambda name: (self.ahead[name][0] + x @ self.ahead[name][1:])[:, None, None]  # noqa: E731
        count, structures, shapes = x.shape[0], len(self.structure), len(self.shape)
        evidence = d["log_evidence"] - 0.5 * d["freedom"][:, None] * d["log_rss"]
        weight = bent("temper")[:, None] * evidence
        weight = weight + d["flat"] * (self.rising + x @ self.gates["rising"])[:, None]
        prior = (self.structure + x @ self.gate_structure.T)[:, :, None] + (
            self.shape + (x @ self.gate_family.T)[:, self.family]
        )[:, None, :]
        weight = weight + prior.reshape(count, structures * shapes)
        weight, top = torch.topk(torch.log_softmax(weight, 1), KEPT, dim=1)
        weight = torch.softmax(weight, 1)
        pick = lambda key: torch.gather(d[key], 1, top)  # noqa: E731
        wide = top[:, :, None].expand(-1, -1, d["location"].shape[2])
        location = torch.gather(d["location"], 1, wide)
        kriging = torch.gather(d["kriging"], 1, wide)
        variance = torch.exp(pick("log_rss")) / d["freedom"][:, None]
        variance = bent("inflation")[:, None, None] * variance[:, :, None] * kriging
        drop = bent("drop")[:, None, None] * (location - pick("last")[:, :, None])
        power = torch.exp(self.power)
        distance = (bent("distance") * d["late"])[:, None] * d["log_distance"] ** power
        scale = bent("width")[:, None, None] * torch.sqrt(
            variance + drop**2 + (distance**2)[:, None, :] + 1e-12
        )
        far = d["log_distance"].clamp_max(MAX_LOG_AHEAD)[:, None, :]
        scale = scale * torch.exp(ahead("widen") * far)
        location = location + (ahead("lean") + ahead("lean_far") * far) * scale
        return weight, location, torch.sqrt(scale**2 + (d["noise"] ** 2)[:, None, None])

    def penalty(self) -> torch.Tensor:
        """Squares of how far the numbers moved from the start, a tenth of that for priors."""
        moved = {name: ((p - self.start[name]) ** 2).sum() for name, p in self.named_parameters()}
        priors = moved.pop("shape") + moved.pop("structure")
        return torch.stack(list(moved.values())).sum() + 0.1 * priors


# Points where the CDF is looked at, in units of the curve's range around the truth.
GRID = np.array([0.0, 0.006, 0.018, 0.04, 0.08, 0.15, 0.28, 0.55, 1.2])
STEEP = 50.0  # of the steps that count what is outside an interval


def scores_of(model: Model, d: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """CRPS and P(observation below the truth), per prefix and query.

    The CRPS is the integral of (F(u) - [u >= truth])^2 over the metric u.
    """
    weight, location, scale = model(d)
    grid = torch.tensor(GRID, dtype=torch.float32)
    crps, below = torch.zeros(()), torch.zeros(())
    for side in (-1.0, 1.0):
        # z is centred, so metric = size exp(z), in units of the range.
        u = d["truth"][:, :, None] + side * grid
        z = torch.log(u.clamp_min(1e-9)) - torch.log(d["size"])[:, None, None]
        w = (z[:, None] - location[..., None]) / (scale[..., None] * SQRT3)
        each = 0.5 + (w / (1.0 + w * w) + torch.atan(w)) / math.pi
        value = (weight[:, :, None, None] * each).sum(1)
        low, high = d["lowest"][:, None, None], d["highest"][:, None, None]
        value = torch.where(z >= high, torch.ones_like(value), value)
        value = torch.where((z < low) | (u <= 0), torch.zeros_like(value), value)
        below = value[:, :, 0]
        square = value**2 if side < 0 else (1.0 - value) ** 2
        crps = crps + torch.trapezoid(square, grid, dim=2)
    return crps.clamp(max=1.0), below


def loss_of(
    model: Model, d: dict[str, torch.Tensor], weight: torch.Tensor, ask: float
) -> torch.Tensor:
    """Weighted CRPS, and `ask` times how unlike .8 coverage is at each share seen."""
    crps, below = scores_of(model, d)
    loss = (crps.mean(1) * weight).sum()
    low = torch.sigmoid(STEEP * (0.1 - below)).mean(1)
    high = torch.sigmoid(STEEP * (below - 0.9)).mean(1)
    for cutoff in CUTOFFS:
        part = weight * (d["cutoff"] == cutoff)
        part = part / part.sum().clamp_min(1e-12)
        outside, uneven = (part * (low + high)).sum() - 0.2, (part * (low - high)).sum()
        loss = loss + ask * (outside**2 + 0.5 * uneven**2)
    return loss


def tensors(cases: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Columns over prefixes; z is centred on the forecasts' starting points."""
    f32 = lambda values: torch.tensor(np.stack(values), dtype=torch.float32)  # noqa: E731
    one = lambda key: torch.tensor([c[key] for c in cases], dtype=torch.float32)  # noqa: E731
    centre = [np.average(c["last"]) for c in cases]
    back = [c["back"] for c in cases]
    return {
        "features": f32([c["features"] for c in cases]),
        "freedom": f32([c["freedom"] for c in cases]),
        "late": one("late"),
        "noise": one("noise"),
        "cutoff": torch.tensor([c["cutoff"] for c in cases], dtype=torch.float64),
        "lowest": f32([c["lowest"] - z for c, z in zip(cases, centre, strict=True)]),
        "highest": f32([c["highest"] - z for c, z in zip(cases, centre, strict=True)]),
        "log_evidence": f32([c["log_evidence"] for c in cases]),
        "log_rss": f32([np.log(c["rss"]) for c in cases]),
        "flat": f32([c["amplitude"] <= 0 for c in cases]),
        "last": f32([c["last"] - z for c, z in zip(cases, centre, strict=True)]),
        "location": f32(
            [
                np.clip(c["location"][:, b] - z, -60, 60)
                for c, z, b in zip(cases, centre, back, strict=True)
            ]
        ),
        "kriging": f32([c["kriging"][:, b] for c, b in zip(cases, back, strict=True)]),
        "log_distance": f32([c["log_distance"][b] for c, b in zip(cases, back, strict=True)]),
        "truth": f32([c["truth"] / c["range"] for c in cases]),
        "size": f32([np.exp(z) / c["range"] for c, z in zip(cases, centre, strict=True)]),
    }


def weights_of(cases: list[dict[str, Any]]) -> torch.Tensor:
    """A group weighs as the square root of its prefixes."""
    _, group, counts = np.unique(
        [c["group"] for c in cases], return_inverse=True, return_counts=True
    )
    w = 1.0 / np.sqrt(counts[group])
    return torch.tensor(w / w.sum(), dtype=torch.float32)


def learn(data: dict[str, torch.Tensor], weight: torch.Tensor, text: str, a: Any) -> Model:
    """Descend from the constants of `text`; `a` has the options of the command line."""
    torch.manual_seed(0)
    model = Model(Table(text))
    for name, p in model.named_parameters():
        kept = name.startswith("ahead") or a.learn == "all"
        p.requires_grad_(kept and (bool(a.gates) or "gate" not in name))
    moving = [p for p in model.parameters() if p.requires_grad]
    count = len(weight)
    optimiser = torch.optim.Adam(moving, lr=a.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, a.epochs)
    for epoch in range(a.epochs):
        order = torch.randperm(count)
        total = 0.0
        for batch in order.split(400):
            part = weight[batch] / weight[batch].sum()
            value = loss_of(model, {key: of[batch] for key, of in data.items()}, part, a.ask)
            optimiser.zero_grad()
            (value + a.shrink * model.penalty()).backward()
            torch.nn.utils.clip_grad_norm_(moving, 1.0)
            optimiser.step()
            total += value.item() * len(batch) / count
        schedule.step()
        if epoch % 10 == 0 or epoch == a.epochs - 1:
            print(f"  epoch {epoch}: loss {total:.5f}", file=sys.stderr, flush=True)
    return model


def score(model: Model, data: dict[str, torch.Tensor], weight: torch.Tensor) -> float:
    """Weighted CRPS of a model on prefixes; NaN without any."""
    total = 0.0 if len(weight) else math.nan
    with torch.no_grad():
        for begin in range(0, len(weight), 500):
            part = {key: of[begin : begin + 500] for key, of in data.items()}
            total += float((scores_of(model, part)[0].mean(1) * weight[begin : begin + 500]).sum())
    return total


def write(model: Model, table: Table, header: list[str]) -> str:
    """Text of the learned table."""
    lines = [f"# {line}" for line in header]
    e = lambda p: f"{math.exp(float(p.detach())):.5g}"  # noqa: E731
    table.rest.update(
        temper=e(model.temper),
        inflation=e(model.inflation),
        drop=e(model.drop),
        distance=e(model.distance),
        distance_power=e(model.power),
        width=e(model.width),
        rising_penalty=f"{float(model.rising.detach()):.4g}",
    )
    lines += [f"{key} {value}" for key, value in table.rest.items()]
    for words, prior in zip(table.shapes, torch.log_softmax(model.shape, 0).tolist(), strict=True):
        lines.append(f"shape {words[0]} {words[1]} {words[2]} {prior:.3f}")
    structure = torch.log_softmax(model.structure, 0).tolist()
    for words, prior in zip(table.structures, structure, strict=True):
        lines.append(f"structure {words[0]} {words[1]} {prior:.3f}")
    row = lambda values: " ".join(f"{v:.4f}" for v in values)  # noqa: E731
    for i, values in enumerate(model.gate_structure.tolist()):
        lines.append(f"gate structure {i} {row(values)}")
    for name, values in zip(FAMILIES, model.gate_family.tolist(), strict=True):
        lines.append(f"gate family {name} {row(values)}")
    for name, values in model.gates.items():
        lines.append(f"gate {name} {row(values.tolist())}")
    for name, values in model.ahead.items():
        lines.append(f"ahead {name} {row(values.tolist())}")
    lines += table.gains
    return "\n".join(lines) + "\n"


def published(text: str) -> str:
    """The table `text` with what is learned as it was published with the method.

    Those numbers saw half of algoperf, of the text RNNs of TaskSet and of modded-nanogpt; the
    learned ones saw all that is left out.
    """
    before, table = Table(PUBLISHED.read_text()), Table(text)
    prior = {tuple(s[:-1]): s[-1] for s in before.shapes + before.structures}
    rare = min(float(s[-1]) for s in before.structures)
    learned = (
        "temper",
        "rising_penalty",
        "inflation",
        "drop",
        "distance",
        "distance_power",
        "width",
    )
    lines = [f"{key} {before.rest[key] if key in learned else v}" for key, v in table.rest.items()]
    for s in table.shapes:
        if tuple(s[:-1]) in prior:  # not one of those that were added since, by hand
            lines.append(f"shape {' '.join(s[:-1])} {prior[tuple(s[:-1])]}")
    for s in table.structures:
        lines.append(f"structure {' '.join(s[:-1])} {prior.get(tuple(s[:-1]), rare)}")
    return "\n".join(lines + table.gains) + "\n"


def protocol_rows(
    folders: list[str], collections: Container[str], curves: int, text: str | None
) -> list[dict[str, Any]]:
    """Rows of the benchmark for these collections, by the table `text` or the one compiled in."""
    rows = []
    for file in sorted(f for folder in folders for f in Path(folder).glob("*.csv*")):
        if file.name.split(".")[0] in collections:
            rows += bench.accuracy(
                file, methods=("glidepath",), max_curves=curves, constants=text
            ).rows
    return rows


def report(ours: list[dict[str, Any]], left_out: list[dict[str, Any]]) -> None:
    """Print the protocol's figures by the table compiled in, beside those by tables without it."""
    both = [bench.Accuracy(rows) for rows in (ours, left_out)]
    keys = ("mae", "crps", "bad", "cov80", "skill")
    print(f"{'in sample, then left out':24s}" + 2 * ("  n      " + "  ".join(keys)))

    def line(name: str, tables: list[list[dict[str, Any]]]) -> None:
        for_each = []
        for table in tables:
            mean = {k: float(np.mean([row[k] for row in table])) for k in keys}
            count = sum(row["n"] for row in table)
            for_each.append(f"  {count:5d}  " + "  ".join(f"{mean[k]:5.3f}" for k in keys))
        print(f"{name:24s}" + "".join(for_each))

    tables = [
        [row for row in result.table(by="collection") if row["method"] == "glidepath"]
        for result in both
    ]
    for name in sorted({row["collection"] for row in tables[1]}):
        line(name, [[row for row in table if row["collection"] == name] for table in tables])
    line("mean of collections", tables)
    pooled = [[r for r in result.table() if r["method"] == "glidepath"] for result in both]
    line("all prefixes", pooled)
    for name, result in zip(("in sample", "left out"), both, strict=True):
        for row in result.groups():
            known = {key: row[key] for key in row if key not in ("seen", "skill")}
            print(f"{name}, mean over groups, seen {row['seen']}: {listed(known)}")
        print(f"{name}, all prefixes: {listed(result.decisions())}")
        print(f"{name}, mean of collections: {listed(mean_decisions(result.rows))}")


def listed(figures: dict[str, Any]) -> str:
    """Write figures by their names, one after the other."""
    return ", ".join(f"{key} {value:.4g}" for key, value in figures.items())


def mean_decisions(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Decision figures with each collection weighing the same, however many its curves."""
    each = [
        bench.Accuracy([r for r in rows if r["collection"] == name]).decisions()
        for name in sorted({r["collection"] for r in rows})
    ]
    mean = {
        key: float(np.nanmean([d[key] for d in each]))
        for key in ("auc", "stopped", "reach_error", "reach_inside")
    }
    stopped = [d for d in each if d["stopped"] > 0]
    weight = [d["stopped"] for d in stopped] or [math.nan]
    mean["wrong"] = float(np.average([d["wrong"] for d in stopped] or [math.nan], weights=weight))
    return mean


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--out", help="write the table here; {source} is the source left out")
    parser.add_argument(
        "--start",
        help="table to start from, or 'compiled'; default: that with published priors",
    )
    parser.add_argument(
        "--leave-out", nargs="*", default=[], help="sources; 'each' = one after another"
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        help="instead: leave out one fold of the groups after another",
    )
    parser.add_argument("--curves", type=int, default=40, help="curves of each collection")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--shrink", type=float, default=1e-2, help="weight of squared moves")
    parser.add_argument("--ask", type=float, default=0.1, help="weight of coverage beside CRPS")
    parser.add_argument(
        "--learn",
        choices=("all", "ahead"),
        default="all",
        help="what moves; the corrections ahead alone begin at none",
    )
    parser.add_argument("--gates", type=int, default=1, help="0: numbers do not depend on features")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument(
        "--report", type=int, default=0, help="curves of each collection to forecast when left out"
    )
    parser.add_argument(
        "--reported", nargs="*", default=[], help="collections to report on; default: all"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    """Learn, once for each thing left out."""
    a = options()
    torch.set_num_threads(a.threads)
    compiled = _core.learned_table()
    text = published(compiled)
    if a.start is not None:
        text = compiled if a.start == "compiled" else Path(a.start).read_text()
    if a.learn == "ahead":  # else what is left out would have taught where the others begin
        text = "".join(
            line for line in text.splitlines(keepends=True) if not line.startswith("ahead ")
        )
    began = next(
        (line for line in text.splitlines() if line.startswith("# learned")), "# published"
    )
    cases = read_cases(a.folders, a.curves, text, a.seed, max(a.folds, 1))
    sources = sorted({c["source"] for c in cases})
    left = ["", *sources] if a.leave_out == ["each"] else (a.leave_out or [""])
    if a.folds:
        left = [f"fold{i}" for i in range(a.folds)]
    reported = {c["collection"] for c in cases if not a.reported or c["collection"] in a.reported}
    rows: list[dict[str, Any]] = []
    data = tensors(cases)
    for source in left:
        out = np.array([source in (c["source"], f"fold{c['fold']}") for c in cases])
        sides = []
        for chosen in (~out, out):
            index = torch.tensor(np.flatnonzero(chosen))
            part = [cases[i] for i in index]
            weight = weights_of(part) if part else torch.zeros(0)
            sides.append(({key: of[index] for key, of in data.items()}, weight))
        start = Model(Table(text))
        model = learn(*sides[0], text, a)
        inside, outside = ([score(m, *side) for m in (start, model)] for side in sides)
        header = [
            f"learned by bench/accuracy/learn_prior.py from {len(sides[0][1])} prefixes of "
            + ", ".join(s for s in sources if s != source),
            f"left out: {source or 'nothing'}; CRPS inside {inside[0]:.5f} -> {inside[1]:.5f}, "
            f"outside {outside[0]:.5f} -> {outside[1]:.5f}",
            f"{a.learn} numbers moved, drawn by {a.shrink:g} to: {began[2:]}",
        ]
        print("\n".join(header), flush=True)
        learned = write(model, Table(text), header)
        if a.out:
            Path(a.out.replace("{source}", source or "all")).write_text(learned)
        if a.report:
            mine = [n for n in reported if a.folds or n.split("-")[0] == source]
            rows += [
                row
                for row in protocol_rows(a.folders, mine, a.report, learned)
                if not a.folds or f"fold{fold_of(row['collection'], row['run'], a.folds)}" == source
            ]
    if rows:
        report(protocol_rows(a.folders, {r["collection"] for r in rows}, a.report, None), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
