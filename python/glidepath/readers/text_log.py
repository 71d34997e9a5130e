# SPDX-License-Identifier: Apache-2.0
r"""Console logs: what training loops print, found by its form and not by the tool that wrote it.

A line is a list of numbers, each with the words before it: ``Step 140/6501 | Loss: 0.82`` holds a
counter, how far it will count, and a metric. A line without a counter belongs to the last one
seen. Lines of several ranks, progress bars and tables between rules are brought into that form.
Every expression is linear in its line.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from glidepath._core import IoError
from glidepath._metrics import EPOCHS, HELD_OUT, STEPS, WITHIN, is_metric, normal
from glidepath._trace import Trace
from glidepath.readers._rows import Rows, number
from glidepath.readers._series import AbsentError, Series, lines, to_trace

_NOT_LOGS = re.compile(r"\.(py|md|ipynb|sh|ya?ml|toml|html?|js|ts|rst|tex|c|cc|cpp|h|hpp|cu|json)$")
# What a line must have to be looked at.
_HINT = re.compile(
    r"loss|acc|epoch|step|iter|train|learn|val|rew|ret|rouge|bleu|err|\bs:\d|ppl|wer|auc|f1|\|",
    re.I,
)
# What is taken out of a line first: colours, wrappings of numbers; dates, times, progress bars.
_DRESS = re.compile(r"\x00|\x1b\[[0-9;]{0,9}[A-Za-z]|\x08|np\.\w{1,9}\(|tensor\(")
_NOISE = re.compile(
    r"\d{4}[-/]\d\d?[-/]\d\d?|\d{1,9}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?!\d)"
    r"|\d{1,3}%\|[^|]{0,300}\||[━╸╺╴]{2,300}|\[[=>.]{9,300}\]"
)
# Keras' lines of progress: each stands for its epoch until the next one.
_BAR = re.compile(r"\[[=>.]{9}|━━|^\s{0,9}\d{1,9}/\d{1,9} - |\ds/(?:step|epoch)|[mu]s/step|- ETA: ")
# "13epoch", "50batch", "epoch001", "Iter12" as a name and a number.
_GLUED = re.compile(r"(?<![\w.])(\d{1,9})(epoch|batch|iter|step)s?\b", re.I)
_STUCK = re.compile(r"(?<![A-Za-z])(epoch|iter|step|ep)[_#-]?(?=\d)", re.I)
_NUMBER = re.compile(
    r"(?<![\w.])([-+]?(?:\d{1,400}(?:\.\d*)?|\.\d+|nan|inf)(?:e[-+]?\d{1,9})?)"
    r"(ms|us|s|m|h|it|[kMGB]|%|x)?(?![A-Za-z_\d]|\.\d)",
    re.I,
)
_RANK = re.compile(
    r"\s{0,9}\[?(?:(?:rank|default|worker|gpu|proc|process)[ _:=]?|1,|(?=\d{1,6}\]?:))(\d{1,6})\b"
    r"\]?(?:<std\w{3}>)?:?",
    re.I,
)
_NAMES_ABOVE = re.compile(r"\s{0,20}(?:\x1b\[\d{0,3}m)?(?:epoch|step|iter|batch|round)", re.I)
_DIGIT, _OF = re.compile(r"\d"), re.compile(r"(\d{1,15})(?:/(\d{1,15}))?")
_ERROR = re.compile(r".*@|[A-Z]\w*(Error|Exception|Warning)")  # of Python, and "mAP@.5"
_CUT = re.compile(r"[|,;\t(){}\[\]\"'<>:=]| - |  |\. ")
_HELD = re.compile(rf"(?<![A-Za-z])(?:{HELD_OUT}|validating|evaluating)(?![A-Za-z])", re.I)
_TRAIN = re.compile(r"(?<![A-Za-z])train(?:ing|_inner)?(?![A-Za-z])", re.I)
_NAMES = {"trl": "train_loss", "tel": "val_loss", "hella": "hellaswag"}
_BARE = dict.fromkeys(HELD_OUT.split("|"), "val_loss")
_BARE |= {"train": "train_loss", "learn": "train_loss"}
# Words beside that of a counter: those that say no more, and those with which it is none.
_TAGS = {"train", "training", "meta", "id", "idx", "index", "no", "global", "current", "at", "the"}
_TAGS |= {"testing", *HELD_OUT.split("|")}
_YOLO = ("box", "obj", "cls", "total", "l1")
_PLURAL = {"epochs", "iterations", "iters", "total_steps", "i", "index"}
_WORDS = 64, 8  # letters and words of the longest name
# Letters of a line that are read at once, and of a file in which a first metric is looked for.
_PIECE, _SEARCHED = 1 << 20, 1 << 26


@dataclass(slots=True)
class _Line:
    """The numbers of a line: what counts, how far, and the rest."""

    counters: dict[str, float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    cells: dict[str, float] = field(default_factory=dict)
    own: frozenset[str] = frozenset()  # the counters that it names itself
    rank: int | None = None
    text: str = ""
    by_column: bool = False


def recognises(path: Path, head: bytes) -> bool:
    """Whether any of its lines has a metric at a step: they may come after thousands of others."""
    if _is_binary(head) or _NOT_LOGS.search(path.name):
        return False
    alone: Counter[str] = Counter()
    for line in _lines_of(path, _SEARCHED):
        for name in line.cells:
            if is_metric(name) and name.count(" ") < 4:
                alone[name] += 1
                if line.counters or alone[name] == 3:
                    return True
    return False


def _is_binary(head: bytes) -> bool:
    return head.count(0) > len(head) / 100  # a writer that crashed may leave some


def has_numbers(path: Path, head: bytes) -> bool:
    """Whether a log without a loss has numbers at steps, one of which may be named."""
    if _is_binary(head) or _NOT_LOGS.search(path.name):
        return False
    found = _lines_of(path, _SEARCHED)
    names = Counter(name for line in found if line.counters for name in line.cells)
    return names.total() > 0 and names.most_common(1)[0][1] > 2


def unit(path: Path) -> Path:
    """Read each file alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run; lines without numbers of interest are passed over, as logs are full of them."""
    found = list(_lines_of(path))
    ranks = {line.rank for line in found} - {None}
    if 1 < len(ranks) <= len(found) / 3:  # else they are no ranks
        first = min(rank for rank in ranks if rank is not None)
        found = [line for line in found if line.rank in (first, None)]
    # The same name on lines of another form is another metric: a mean over the epoch, say.
    forms = Counter((name, line.own) for line in found for name in line.cells)
    usual: dict[str, frozenset[str]] = {}
    for (name, own), _ in forms.most_common():
        usual.setdefault(name, own)
    rows, example = Rows(), dict[str, str]()
    for line in found:
        rows.planned |= line.totals
        cells = {}
        for name, value in line.cells.items():
            if usual[name] != line.own:
                name = f"{name} ({', '.join(sorted(line.own)) or 'alone'})"
            cells[name] = value
            example.setdefault(name, line.text)
        rows.add(line.counters | cells)
    series = rows.series()
    for name, column in series.items():
        by = f" by {column.counter!r}" if column.counter else ""
        column.notes.insert(0, f"{name!r}{by} of lines as {example.get(name, '')!r}")
    if metric is None and not any(map(is_metric, series)):
        repeated = [name for name, column in series.items() if len(column.step) > 2]
        raise AbsentError(
            f"{path}: no line has a loss or a score at a step; say metric= one of "
            f"{', '.join(repeated[:20]) or '(none)'}, or "
            r"pattern=r'step (?P<step>\d+) .* loss (?P<value>\S+)' as the lines are"
        )
    return [to_trace(series, metric, path, path.name)]


def _lines_of(path: Path, most: float = math.inf) -> Iterator[_Line]:
    """Give the lines with metrics, each with the counters that stand for it.

    No more than the first `most` letters of the file are read.
    """
    carried: dict[str, float] = {}
    bar: _Line | None = None
    totals: dict[str, float] = {}
    for line in _parsed_lines(path, most):
        within = [name for name in line.counters if name in WITHIN]
        is_bar = line.by_column or bool(_BAR.search(line.text))
        for name in within if is_bar else ():
            del line.counters[name]
        totals |= {name: far for name, far in line.totals.items() if name in line.counters}
        line.own = frozenset(line.counters)
        epoch = {name: value for name, value in carried.items() if name in EPOCHS}
        line.counters = epoch | line.counters if line.own else dict(carried)
        carried = line.counters
        if not line.cells:
            continue
        if bar is not None and not (is_bar and bar.counters == line.counters):
            yield bar
            bar = None
        line.totals = dict(totals)
        if is_bar and line.counters:
            bar = line
        else:
            yield line
    if bar is not None:
        yield bar


def _by_column(text: str, columns: list[str]) -> tuple[list[str], _Line | None]:
    """Read a line of a table with blanks between: skorch, fastai, YOLO.

    The columns are those of the last line of names, of which the first counts.
    """
    fields = _DRESS.sub("", text[:1000]).split() if columns or _NAMES_ABOVE.match(text) else []
    if len(fields) > 2 and _counter(fields[0]) and not any(map(_DIGIT.search, fields)):
        if fields[1].lower() == "gpu_mem":  # YOLO's, of losses without that word
            fields = [f"{each}_loss" if each in _YOLO else each for each in fields]
        return fields, None
    if len(fields) < max(len(columns) - 1, 3):
        return columns, None
    match = _OF.fullmatch(fields[0])
    if match is None or not columns:
        return columns, None
    cells = dict(zip(columns[1:], map(number, fields[1:]), strict=False))
    found = {name: cell for name, cell in cells.items() if cell is not None}
    if len(found) < 2:
        return columns, None
    key = _counter(columns[0]) or ""
    totals = {key: float(match[2])} if match[2] else {}
    return columns, _Line(
        {key: float(match[1])}, totals, found, text=text.strip()[:100], by_column=True
    )


def _parsed_lines(path: Path, most: float) -> Iterator[_Line]:
    """Give the lines with numbers; a table between rules is one."""
    block, section = _Line(), ""
    columns: list[str] = []
    for whole in lines(path):
        most -= len(whole) + 1
        if most < 0:
            break
        for part in whole.split("\r"):
            for at in range(0, len(part), _PIECE):
                text = part[at : at + _PIECE]
                cells = text.split("|") if len(text) < 200 and text.lstrip()[:1] == "|" else []
                if len(cells) == 4 and not cells[0].strip() and not cells[3].strip():
                    name, value = cells[1], number(cells[2].strip())
                    if value is None:
                        section = name.strip() if name.strip()[-1:] == "/" else ""
                        continue
                    key = (section if name.startswith("   ") else "") + name.strip()
                    (block.counters if normal(key) in STEPS else block.cells)[key] = value
                    continue
                if block.cells or block.counters:
                    block.text = next(iter(block.cells), "")
                    yield block
                    block, section = _Line(), ""
                columns, row = _by_column(text, columns)
                if row is not None:
                    yield row
                elif _HINT.search(text):
                    line = _parsed(text)
                    if line.cells or line.counters:
                        yield line
    if block.cells:
        yield block


def _counter(name: str) -> str | None:
    """Give the word that counts, if a name is that of a counter."""
    key = normal(name).strip("_")
    words = [word for word in key.split("_") if word not in _TAGS]
    if key in STEPS and key not in _PLURAL:
        return key
    if len(words) == 1 or (len(words) == 2 and words[0] == "loss"):
        return words[-1] if words[-1] in STEPS and words[-1] not in _PLURAL else None
    return None


@lru_cache(maxsize=4096)
def _named(gap: str) -> tuple[str, str | None, str | None]:
    """Read what stands before a number: its name, the counter that it is, and the data it is of.

    The data are "" of training, and None where the words do not say.
    """
    *rest, name = _CUT.split(gap.rstrip(" \t:=[('\"<~-"))
    name = name.strip(" -#*>.")
    if len(name) > _WORDS[0] or name.count(" ") >= _WORDS[1]:
        name = name.split()[-1]
    counter = _counter(name) if len(name) <= _WORDS[0] else None
    data = None
    for words in (*rest, name) if counter else rest:
        if _TRAIN.search(words):
            data = ""
        elif found := _HELD.search(words):
            data = found[0].lower()
    return (name if len(name) <= _WORDS[0] else ""), counter, data


def _parsed(raw: str) -> _Line:
    """Read the numbers of a line, each named by the words before it."""
    line = _Line(text=raw.strip()[:100])
    rank = _RANK.match(raw)
    text = _NOISE.sub(";", _DRESS.sub("", raw))
    text = _STUCK.sub(r"\1 ", _GLUED.sub(r"\2 \1", text))
    end, data, held = 0, "", ""
    last: str | None = None  # the counter that stands before
    loose: float | None = None  # a number without a name, perhaps of a fraction
    leading: float | None = None
    for match in _NUMBER.finditer(text):
        gap = text[max(end, match.start() - 200) : match.start()]
        name, counter, of = _named(gap)
        # Of nan and inf the words are no numbers, such as in "nan iterations".
        said = gap.rstrip()[-1:] in (":", "=", "[", "(", "'") or is_metric(name)
        if match[1][-1] not in "0123456789." and not said:
            continue
        first, end = end == 0, match.end()
        value, whole, joint = float(match[1]), match[0].isdecimal(), gap.strip()
        if joint == "/" and (last or loose is not None):
            if last is None:
                last = "it"
                line.counters.setdefault(last, loose or 0.0)
            line.totals[last] = value
            loose = None
            continue
        if joint == "][" and last in EPOCHS and whole:
            last = "batch"
            line.counters.setdefault(last, value)
            continue
        data = data if of is None else of
        last, loose = None, None
        if not name:
            loose = value if whole else None
            if first and not gap.strip(" [") and whole:
                leading = value
            elif text.startswith(" avg loss", end):  # darknet
                line.cells["avg loss"] = value
            continue
        if name == "s" and first:  # llm.c
            counter = "step"
        elif counter is None and whole and text[end : end + 9].lstrip()[:1] == "/":
            counter = None if is_metric(name) else "it"
            data = name.lower() if _HELD.fullmatch(name) else data
        if counter is not None and (whole or counter in EPOCHS):
            line.counters.setdefault(counter, value)
            last = counter
        elif counter is None:
            held = _cell(line, name, match, data, held)
    if leading is not None and not line.counters and any(map(is_metric, line.cells)):
        line.counters["step"] = leading
    elif rank is not None:
        line.rank = int(rank[1])
    return line


def _cell(line: _Line, name: str, match: re.Match[str], tag: str, held: str) -> str:
    """Put a metric into a line, and give the held-out set that the line speaks of now."""
    value, unit, key = float(match[1]), match[2], name.removesuffix(" value")
    whole = match[0].isdecimal()  # such as the number of samples to train on
    key = (_NAMES if whole else _BARE | _NAMES).get(name.lower(), key)
    if line.text[:2] == "s:" and name == "eval":
        key = "hellaswag"
    if _ERROR.fullmatch(key):
        return held
    found = _HELD.search(key)
    if found is None and _TRAIN.search(key) is None and (tag or key in line.cells):
        before = tag or held
        key = f"{before} {key}" if before else key
    line.cells.setdefault(key, value)
    if key == "train_time" and unit in ("ms", "s"):
        line.cells["elapsed_seconds"] = value / (1e3 if unit == "ms" else 1)
    return held if found is None else found[0].lower()


def read_pattern(path: Path, metric: str | None, expression: re.Pattern[str]) -> Trace:
    """Read one run by an expression with groups ``step`` and ``value`` or ``loss``."""
    key = metric or "loss"
    series = {key: Series(), "lr": Series()}
    planned: float | None = None
    for count, line in enumerate(lines(path), 1):
        match = expression.search(line)
        if match is None:
            continue
        found: dict[str, float] = {}
        for name, text in match.groupdict().items():
            group = "value" if name == "loss" else name
            if text is None or group not in ("step", "value", "lr", "planned_steps"):
                continue
            try:
                found[group] = float(text)
            except ValueError:
                message = f"{path}:{count}: {group} {text!r} is not a number"
                raise IoError(message) from None
        if "step" in found and "value" in found:
            series[key].add(found["step"], found["value"])
        if "step" in found and "lr" in found:
            series["lr"].add(found["step"], found["lr"])
        planned = found.get("planned_steps", planned)
    if not series[key].step:
        raise AbsentError(f"{path}: no line has {expression.pattern!r}")
    return to_trace(series, key, path, path.name, planned_steps=planned)
