# SPDX-License-Identifier: Apache-2.0
"""Console logs: Megatron-LM, DeepSpeed, nanoGPT, llm.c and modded-nanogpt, line by line."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from glidepath._trace import Trace
from glidepath.readers._series import Series, lines, open_log, to_trace

__all__ = ["read", "recognises", "unit"]

_NUMBER = r"[-+]?(?:nan|inf|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"
# What a line of a log begins with, after a rank or a time stamp: the step, then its metrics.
_LINES = (
    # Megatron: " iteration  20/ 1000 | consumed samples: 80 | learning rate: 3E-05 | lm loss: 12.0"
    (re.compile(r"\biteration\s+(\d+)/\s*\d+ \|(.*)"), ""),
    (re.compile(r"\bvalidation loss at iteration (\d+) \|(.*)"), "validation "),
    # nanoGPT: "iter 10: loss 3.1, time 120ms, mfu 4%" and "step 250: train loss 1.9, val loss 2.0"
    (re.compile(r"^(?:iter|step) (\d+): ((?:train |val )?loss .*)"), ""),
    # llm.c: "s:10 trl:3.2 lr:0.0006 norm:0.3" and "step   10/19560 | loss 3.2 (+0.1z)| norm 0.3 …"
    (re.compile(r"^s:(\d+) ((?:trl|tel|eval):.*)"), ""),
    (re.compile(r"^step\s+(\d+)/\d+ \| ((?:train )?loss .*)"), ""),
    # modded-nanogpt: "step:10/6200 train_loss:7.7 train_time:76178ms step_avg:216ms"
    (re.compile(r"^step:(\d+)/\d+ (.*)"), ""),
    # DeepSpeed's pipeline: "steps: 10 loss: 9.0 iter time (s): 1.2 samples/sec: 3.4"
    (re.compile(r"\bsteps: (\d+) (loss: .*)"), ""),
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
    for line in lines(path):
        for pattern, before in _LINES:
            match = pattern.search(line)
            if match is not None:
                _cells(series, float(match[1]), match[2], before)
                break
    return [to_trace(series, metric, path, path.name)]


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
