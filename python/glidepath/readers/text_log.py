# SPDX-License-Identifier: Apache-2.0
"""Console logs: Megatron-LM, DeepSpeed, nanoGPT, llm.c and modded-nanogpt, line by line."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import AbsentError, Series, lines, open_log, to_trace

__all__ = ["read", "recognises", "unit"]

_NUMBER = r"[-+]?(?:nan|inf|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"
# What a line of a log begins with, after a rank or a time stamp: the step, perhaps of how many,
# then its metrics.
_LINES = (
    # Megatron: " iteration  20/ 1000 | consumed samples: 80 | learning rate: 3E-05 | lm loss: 12.0"
    (re.compile(r"\biteration\s+(?P<step>\d+)/\s*(?P<planned>\d+) \|(?P<cells>.*)"), ""),
    (re.compile(r"\bvalidation loss at iteration (?P<step>\d+) \|(?P<cells>.*)"), "validation "),
    # nanoGPT: "iter 10: loss 3.1, time 120ms, mfu 4%" and "step 250: train loss 1.9, val loss 2.0"
    (re.compile(r"^(?:iter|step) (?P<step>\d+): (?P<cells>(?:train |val )?loss .*)"), ""),
    # llm.c: "s:10 trl:3.2 lr:0.0006 norm:0.3" and "step   10/19560 | loss 3.2 (+0.1z)| norm 0.3 …"
    (re.compile(r"^s:(?P<step>\d+) (?P<cells>(?:trl|tel|eval):.*)"), ""),
    (re.compile(r"^step\s+(?P<step>\d+)/(?P<planned>\d+) \| (?P<cells>(?:train )?loss .*)"), ""),
    # modded-nanogpt: "step:10/6200 train_loss:7.7 train_time:76178ms step_avg:216ms"
    (re.compile(r"^step:(?P<step>\d+)/(?P<planned>\d+) (?P<cells>.*)"), ""),
    # DeepSpeed's pipeline: "steps: 10 loss: 9.0 iter time (s): 1.2 samples/sec: 3.4"
    (re.compile(r"\bsteps: (?P<step>\d+) (?P<cells>loss: .*)"), ""),
)
_ANY = re.compile(
    rb"\biteration\s+\d+/\s*\d+ \|.*loss|\bsteps: \d+ loss: "
    rb"|^(?:iter|step) \d+: (?:train |val )?loss |^s:\d+ (?:trl|tel):|^step:\d+/\d+ .*_loss:"
    rb"|^step\s+\d+/\d+ \| (?:train )?loss ",
    re.MULTILINE,
)
# "lm loss: 1.2E+01", "loss 3.1", "lr:0.1": a name of words, then a number, perhaps with its unit.
# As many as names have: a line of a thousand words takes no longer than it must.
_CELL = re.compile(
    r"(?<![A-Za-z_/])([A-Za-z][A-Za-z_/]{0,63}(?: [A-Za-z(][A-Za-z_/()]{0,63}){0,7})"
    rf"\s{{0,9}}[: ]\s{{0,9}}({_NUMBER})(ms|s|%)?(?![\w.])"
)
_NAMES = {"trl": "train_loss", "tel": "val_loss", "eval": "hellaswag"}
_CHUNK = 1 << 22


def recognises(path: Path, head: bytes) -> bool:
    """Whether any of its lines is a step: they may come after thousands of others."""
    if b"\x00" in head or path.suffix in (".py", ".md", ".ipynb"):
        return False
    if _ANY.search(head):
        return True
    try:
        with open_log(path) as file:
            before = b""
            while chunk := file.read(_CHUNK):
                if _ANY.search(before + chunk):
                    return True
                before = chunk[-1024:]
    except (OSError, EOFError):
        return False
    return False


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run; lines that are not of a step are passed over, as logs are full of them."""
    series: dict[str, Series] = defaultdict(Series)
    planned: float | None = None
    for line in lines(path):
        for pattern, before in _LINES:
            match = pattern.search(line)
            if match is not None:
                found = match.groupdict()
                _cells(series, float(found["step"]), found["cells"], before)
                if found.get("planned"):
                    planned = float(found["planned"])
                break
    return [to_trace(series, metric, path, path.name, planned_steps=planned)]


def read_pattern(path: Path, metric: str | None, expression: re.Pattern[str]) -> Trace:
    """Read one run by an expression with groups ``step`` and ``value``."""
    key = metric or "loss"
    series = {key: Series(), "lr": Series()}
    planned: float | None = None
    for number, line in enumerate(lines(path), 1):
        match = expression.search(line)
        if match is None:
            continue
        found: dict[str, float] = {}
        for group, text in match.groupdict().items():
            if text is None or group not in ("step", "value", "lr", "planned_steps"):
                continue
            try:
                found[group] = float(text)
            except ValueError:
                message = f"{path}:{number}: {group} {text!r} is not a number"
                raise IoError(message) from None
        if "step" in found and "value" in found:
            series[key].add(found["step"], found["value"])
        if "step" in found and "lr" in found:
            series["lr"].add(found["step"], found["lr"])
        planned = found.get("planned_steps", planned)
    if not series[key].step:
        raise AbsentError(f"{path}: no line has {expression.pattern!r}")
    return to_trace(series, key, path, path.name, planned_steps=planned)


def _cells(series: dict[str, Series], step: float, text: str, before: str) -> None:
    """Put the metrics of one line where they belong."""
    found = [(cell[1].strip(), float(cell[2]), cell[3]) for cell in _CELL.finditer(text)]
    seconds = math.nan
    for name, value, measure in found:
        if name == "train_time":
            seconds = value / 1e3 if measure == "ms" else value
    for name, value, _ in found:
        key = before + _NAMES.get(name, name).removesuffix(" value")
        series[key].add(step, value, seconds)
