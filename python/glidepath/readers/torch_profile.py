# SPDX-License-Identifier: Apache-2.0
"""Profiles of PyTorch: traces of Kineto, read event by event, and tables of averages."""

from __future__ import annotations

import codecs
import csv
import json
import math
import os
import re
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glidepath._columns import Floats
from glidepath._core import InputError, IoError
from glidepath._step_profile import CATEGORIES, StepProfile, from_parts
from glidepath.readers._formats import refusing
from glidepath.readers._open import name_of
from glidepath.readers._series import lines, open_log

_CHUNK, _LONGEST = 1 << 20, 1 << 26  # bytes read at once, and letters of an event at most
_SPACE = re.compile(r"[\s,]*")
_COMMUNICATION = re.compile(r"nccl|rccl|c10d::|^gloo:|^mpi:", re.IGNORECASE)
_STEP, _LOADING = re.compile(r"^ProfilerStep"), re.compile(r"^enumerate\(DataLoader\)")
# Of an event's `cat`, in all spellings; annotations and Python frames cover what is below them.
_CATS = {
    **dict.fromkeys(("kernel",), "kernel"),
    **dict.fromkeys(("gpu_memcpy", "memcpy"), "memcpy"),
    **dict.fromkeys(("gpu_memset", "memset"), "memset"),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "runtime", "driver", "xpu_runtime", "privateuse1_runtime"),
        "runtime",
    ),
    **dict.fromkeys(("cpu_op", "operator"), "cpu"),
}


def read_profile(
    path: str | os.PathLike[str], *, gpus: int | None = None, nodes: int = 1
) -> StepProfile:
    """Read what the profiler recorded: `glidepath.read_profile`."""
    name = name_of(path, "read_profile")
    file = Path(name)
    with refusing(name):
        with open_log(file) as opened:
            head = opened.read(4096).decode("utf-8-sig", errors="replace").lstrip()
        if head[:1] in ("{", "["):
            return _read_trace(file, gpus, nodes)
        return _read_table(file, gpus or 1, nodes)


# ------------------------------------------------------------------------------------- traces


class _Json:
    """Reads a document of JSON value by value, with no more in memory than one of them."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._parse = json.JSONDecoder().raw_decode
        self._text, self._at, self._line, self._ended = "", 0, 1, False

    def _more(self) -> None:
        """Read on; what was used is dropped."""
        if self._ended:
            raise IoError(f"{self.path}:{self._line}: the document ends within a value")
        # As much as is held already, so that a long value is looked at a few times only.
        data = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._line += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + self._decode.decode(data, final=not data)
        self._at, self._ended = 0, not data
        if len(self._text) > _LONGEST + _CHUNK and not self._ended:
            raise IoError(f"{self.path}:{self._line}: a value of more than {_LONGEST >> 20} MiB")

    def _damaged(self, words: str, at: int) -> IoError:
        line = self._line + self._text.count("\n", 0, at)
        return IoError(f"{self.path}:{line}: {words}")

    def span(self, event: Mapping[str, Any]) -> tuple[float, float]:
        """Begin and length of the event that was read last."""
        given = event.get("ts"), event.get("dur", 0.0)
        try:  # some exporters write numbers as text
            begin, length = (float(each) for each in given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            begin = length = math.nan
        if not (math.isfinite(begin) and math.isfinite(length)):
            raise self._damaged(f"an event has the times {given[0]!r} and {given[1]!r}", self._at)
        if length < 0:
            raise self._damaged(f"an event lasts {length:g} µs", self._at)
        return begin, length

    def peek(self) -> str:
        """Give the next sign that is no blank, comma or colon."""
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._text) and self._text[self._at] == ":":
                self._at += 1
                continue
            if self._at < len(self._text):
                return self._text[self._at]
            self._more()

    def skip(self) -> None:
        """Pass over the sign that `peek` gave."""
        self._at += 1

    def value(self) -> Any:
        """Read the value that begins here."""
        self.peek()
        while True:
            try:
                found, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                whole = error.msg.startswith("Unterminated") or error.pos > len(self._text) - 16
                if not whole or self._ended:
                    raise self._damaged(error.msg, error.pos) from None
            except RecursionError:
                raise self._damaged("nested too deeply", self._at) from None
            else:
                # A number at the end may go on.
                if end < len(self._text) or self._ended or self._text[end - 1] in '}]"':
                    self._at = end
                    return found
            self._more()


def _members(document: _Json) -> Iterator[tuple[str, Any]]:
    """Name and value of each member, of ``traceEvents`` each event by itself."""
    if document.peek() == "[":  # the events alone
        document.skip()
        yield from _events(document)
        return
    document.skip()
    while document.peek() != "}":
        name = document.value()
        if name == "traceEvents" and document.peek() == "[":
            document.skip()
            yield from _events(document)
        else:
            yield str(name), document.value()


def _events(document: _Json) -> Iterator[tuple[str, Any]]:
    while document.peek() != "]":
        yield "traceEvents", document.value()
    document.skip()


class _Spans:
    """Intervals of each category, in microseconds."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, category: str, begin: float, length: float) -> None:
        begins, ends = self.of.setdefault(category, (array("d"), array("d")))
        begins.append(begin)
        ends.append(begin + length)

    def within(self, category: str, begin: float, end: float) -> tuple[Floats, Floats]:
        begins, ends = self.of.get(category, (array("d"), array("d")))
        return np.clip(np.array(begins), begin, end), np.clip(np.array(ends), begin, end)


def covered(begins: Floats, ends: Floats) -> float:
    """Length of the union of intervals."""
    if begins.size == 0:
        return 0.0
    order = np.argsort(begins)
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    gaps = np.maximum(0.0, begins[1:] - ends[:-1])
    return float(ends[-1] - begins[0] - gaps.sum())


def _category(event: Mapping[str, Any]) -> str | None:
    name, cat = str(event.get("name", "")), str(event.get("cat", "")).lower()
    if cat == "gpu_user_annotation":
        return None
    if _STEP.match(name):
        return "step"
    if _LOADING.match(name):
        return "data_loading"
    found = _CATS.get(cat)
    if found in ("kernel", "cpu") and _COMMUNICATION.search(name):
        return "communication"
    return found


def _read_trace(path: Path, gpus: int | None, nodes: int) -> StepProfile:
    spans, world, device = _Spans(), None, ""
    with open_log(path) as file:
        document = _Json(path, file)
        for name, value in _members(document):
            if name == "distributedInfo" and isinstance(value, dict):
                world = value.get("world_size")
            elif name == "deviceProperties" and isinstance(value, list) and value:
                device = str(value[0].get("name", "")) if isinstance(value[0], dict) else ""
            elif name == "traceEvents" and isinstance(value, dict) and value.get("ph") == "X":
                category = _category(value)
                if category is not None:
                    spans.add(category, *document.span(value))
    if not spans.of:
        raise IoError(f"{path}: no event of PyTorch's profiler")
    if gpus is not None and isinstance(world, int) and world != gpus:
        raise InputError(f"read_profile: {path} is of {world} processes, not of gpus={gpus}")
    return from_parts(
        **_sum_up(spans),
        gpus=gpus or (world if isinstance(world, int) else 1),
        nodes=nodes,
        device=device,
        name=path.name,
    )


def _sum_up(spans: _Spans) -> dict[str, Any]:
    """Seconds of a step by category: what each covers that those before it do not."""
    notes: tuple[str, ...] = ()
    marks = spans.of.pop("step", None)
    count = len(marks[0]) if marks else 1
    window = [marks] if marks else list(spans.of.values())
    if not marks:
        notes = ("no steps are marked: all of it is taken for one",)
    begin = min(min(begins) for begins, _ in window)
    end = max(max(ends) for _, ends in window)
    scale = 1e-6 / count
    parts: dict[str, float] = {}
    before, union = 0.0, (np.empty(0), np.empty(0))
    for category in list(CATEGORIES)[:-1]:
        begins, ends = spans.within(category, begin, end)
        union = np.concatenate([union[0], begins]), np.concatenate([union[1], ends])
        now = covered(*union)
        parts[category], before = (now - before) * scale, now
    host = [spans.within(category, begin, end) for category in ("cpu", "data_loading")]
    busy = covered(np.concatenate([h[0] for h in host]), np.concatenate([h[1] for h in host]))
    return {
        "parts": parts,
        "step_seconds": (end - begin) * scale,
        "host_s": busy * scale,
        "steps": count,
        "notes": notes,
    }


# ------------------------------------------------------------------------------------- tables

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DEVICES = ("CUDA", "XPU", "HPU", "MTIA", "PrivateUse1")


def _duration(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)\s*(\D+)?", text.strip())
    if match is None or (match[2] or "us") not in _UNITS:
        raise ValueError(f"{text[:40]!r} is no time")
    return float(match[1]) * _UNITS[match[2] or "us"]


def _host_total(path: Path) -> float:
    """Time of all rows on the host, of which `row_limit` may have left some out; 0 if unknown."""
    for line in lines(path):
        match = re.fullmatch(r"Self CPU time total: (\S+)\s*", line)
        if match is not None:
            return _duration(match[1])
    return 0.0


def _table_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the names of their columns: of a CSV, or of a text ruled by dashes."""
    names: list[str] = []
    above = ""
    for number, line in enumerate(lines(path), 1):
        if not names and "," in line and "Self CPU" in line:
            names = next(csv.reader([line]))
            continue
        if re.fullmatch(r"\s*-+(?:\s+-+)+\s*", line):
            if names:  # the rule below the last row comes before the totals
                if above == "body":
                    return
                above = "body"
            continue
        if not names:
            if "Name" in line and "Self CPU" in line:
                names = re.split(r"\s{2,}", line.strip())
            continue
        if not line.strip():
            continue
        comma = "," in line and not above
        cells = next(csv.reader([line])) if comma else re.split(r"\s{2,}", line.strip())
        if len(cells) != len(names):
            raise IoError(f"{path}:{number}: {len(cells)} cells for {len(names)} columns")
        yield number, dict(zip(names, cells, strict=True))


def _read_table(path: Path, gpus: int, nodes: int) -> StepProfile:
    sums = dict.fromkeys(CATEGORIES, 0.0)
    nested, step, count, shown = 0.0, 0.0, 0, 0.0
    rows = list(_table_rows(path))
    if not rows:
        raise IoError(f"{path}: neither a trace nor a table of PyTorch's profiler")
    on_host = {row.get("Name") for _, row in rows if re.search("[1-9]", row.get("CPU total", ""))}
    for number, row in rows:
        try:
            name, own, total = row["Name"], *(_duration(row[k]) for k in ("Self CPU", "CPU total"))
            device = next(
                (_duration(row[f"Self {d}"]) for d in _DEVICES if f"Self {d}" in row), 0.0
            )
            shown += own
            if _STEP.match(name):
                if total > 0:
                    step, count = total, int(row["# of Calls"])
            elif _LOADING.match(name):
                sums["data_loading"] += total
                nested += total - own
            elif total == 0 and device > 0:
                if name not in on_host:  # else a mark on the GPU of what is a row already
                    sums[_device_category(name)] += device
            else:
                sums[_host_category(name)] += own
        except (KeyError, ValueError) as error:
            raise IoError(f"{path}:{number}: {error}") from None
    sums["cpu"] = max(0.0, sums["cpu"] - nested)
    notes = []
    rest = _host_total(path) - shown
    if count == 0 and rest > 0.01 * shown:
        sums["cpu"] += rest
        notes.append(
            f"rows that the table lacks took {rest:.3g} s of the CPU, counted as operators"
        )
    if count == 0:
        step, count = sum(sums.values()), 1
        notes.append("no steps are marked: all of it is taken for one")
    host = min(step, sums["cpu"] + sums["data_loading"])
    left = step
    for category in CATEGORIES:
        sums[category] = left if category == "other" else min(sums[category], left)
        left -= sums[category]
    return from_parts(
        {key: value / count for key, value in sums.items()},
        step_seconds=step / count,
        host_s=host / count,
        steps=count,
        gpus=gpus,
        nodes=nodes,
        name=path.name,
        notes=tuple(notes),
    )


def _device_category(name: str) -> str:
    if _COMMUNICATION.search(name):
        return "communication"
    return next((k for k in ("memcpy", "memset") if name.lower().startswith(k)), "kernel")


def _host_category(name: str) -> str:
    if _COMMUNICATION.search(name):
        return "communication"
    if name.startswith("Optimizer."):  # a mark above operators, as in a trace
        return "other"
    return "runtime" if re.match(r"(?:cuda|hip|cu|ze|ur)[A-Z]", name) else "cpu"
