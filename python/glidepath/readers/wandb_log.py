# SPDX-License-Identifier: Apache-2.0
"""The log that W&B keeps of a run on disk, ``run-ID.wandb``: online, offline and while it grows.

LevelDB's framing around protobuf: after seven bytes, blocks of 32 KiB, in them records of a CRC-32
(4 bytes), a length (2) and whether it is whole, the first, a middle or the last part of a message
(1). The messages are `Record` of W&B's wandb_internal.proto, whose numbers are kept as they are on
disk for good: history 2 (its items 1: key 1, nested_key 2, value_json 16), config 5 (its update 1,
items of the same form) and run 17 (run_id 1, config 4).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from glidepath._core import IoError, settings_of_file, settings_of_json
from glidepath._trace import Trace
from glidepath.readers._protobuf import fields
from glidepath.readers._rows import flat, tracked
from glidepath.readers._series import read_whole, to_trace

_HEADER, _BLOCK, _FRAME = 7, 32768, 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_HISTORY, _CONFIG, _RUN, _CONFIG_OF_RUN = 2, 5, 17, 4


def recognises(path: Path, head: bytes) -> bool:
    """Whether it begins as W&B's logs do."""
    return head.startswith(b":W&B")


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read one run, named by its id; a last record that is not complete yet is left out."""
    data = read_whole(path)
    if not data.startswith(b":W&B"):
        raise IoError(f"{path}: not a log of W&B")
    rows: list[dict[str, Any]] = []
    config: dict[str, str] = {}
    name = path.stem.removeprefix("run-")
    try:
        for message in _messages(data, path):
            for number, part in fields(message):
                if number == _HISTORY:
                    rows.append(dict(flat(_row(part), ".")))
                elif number == _CONFIG:
                    config |= _config(part)
                elif number == _RUN:
                    for inner, given in fields(part):
                        config |= _config(given) if inner == _CONFIG_OF_RUN else {}
                    name = next((v.decode() for n, v in fields(part) if n == 1), name)
    except (IndexError, ValueError, RecursionError) as error:
        raise IoError(f"{path}: damaged record: {error}") from None
    cut = ["the last record is cut: left out"] if _is_cut(data) else []
    settings, damaged = settings_of_json(config), list[str]()
    if not settings:
        settings, damaged = settings_of_file(path.parent / "files" / "config.yaml")
    return [to_trace(tracked(rows), metric, path, name, cut + damaged, settings=settings)]


def _config(record: bytes) -> dict[str, str]:
    """Give the values of a configuration by their names, as JSON; nested names are joined."""
    found: dict[str, str] = {}
    for number, item in fields(record):
        if number != 1:
            continue
        names, value = [], ""
        for field, text in fields(item):
            if field in (1, 2):
                names.append(text.decode(errors="replace"))
            elif field == 16:
                value = text.decode(errors="replace")
        found[".".join(filter(None, names))] = value
    return found


def _frames(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Give the kind of each record, where its data begin, and where they end."""
    at = _HEADER
    while len(data) - at >= _FRAME:
        left = _BLOCK - at % _BLOCK
        if left < _FRAME:  # the end of a block, too short for a record
            at += left
            continue
        stop = at + _FRAME + int.from_bytes(data[at + 4 : at + 6], "little")
        yield data[at + 6], at + _FRAME, stop
        at = stop


def _is_cut(data: bytes) -> bool:
    kind, _, stop = next(iter(deque(_frames(data), maxlen=1)), (_WHOLE, 0, 0))
    return stop > len(data) or kind in (_FIRST, _MIDDLE)


def _messages(data: bytes, path: Path) -> Iterator[bytes]:
    parts: list[bytes] = []
    for kind, at, stop in _frames(data):
        if stop > len(data):
            return
        part = data[at:stop]
        if crc32(bytes([kind]) + part) != int.from_bytes(data[at - 7 : at - 3], "little"):
            raise IoError(f"{path}: damaged record at byte {at - _FRAME}")
        if kind in (_WHOLE, _FIRST):
            parts = []
        parts.append(part)
        if kind in (_WHOLE, _LAST):
            yield b"".join(parts)


def _row(history: bytes) -> dict[str, Any]:
    """Read a row of the history; what is no number, such as a histogram, goes later."""
    row: dict[str, Any] = {}
    for number, item in fields(history):
        if number != 1:
            continue
        key, value = "", b"null"
        nested = []
        for field, text in fields(item):
            if field == 1:
                key = text.decode()
            elif field == 2:
                nested.append(text.decode())
            elif field == 16:
                value = text
        row[key or ".".join(nested)] = json.loads(value, parse_int=float)
    return row
