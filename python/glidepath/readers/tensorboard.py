# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's event files: records of protobuf, of which every scalar is read.

The layout is that of TFRecord (length, its CRC-32C, data, its CRC-32C) around `tensorflow.Event`:
wall_time 1 (double), step 2, summary 5; `Summary.Value`: tag 1, simple_value 2, tensor 8;
`TensorProto`: dtype 1, tensor_content 4, float_val 5, double_val 6. Lengths are checked, and their
checksum where a file ends too early; those of the data are not.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError, Series, settings_of_file
from glidepath._trace import Trace
from glidepath.readers._protobuf import skip, varint
from glidepath.readers._series import open_log, read_whole, to_trace

_CONTENT = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}  # DataType: how its bytes read
_FLOAT, _DOUBLE, _LENGTH = struct.Struct("<f"), struct.Struct("<d"), struct.Struct("<Q")


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first record says the version of an event file, or its name and checksum do."""
    if b"brain.Event:" in head[12:64]:
        return True
    return "tfevents" in path.name and len(head) >= 12 and _is_length(head, 0)


def unit(path: Path) -> Path:
    """Read the folder: a run that restarts begins another file in it."""
    return path.parent


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read a file, or all event files of a folder as one run, a later file over an earlier one."""
    if path.is_file():
        files = [path]
    else:
        # By name is by time: "events.out.tfevents.SECONDS.HOST…".
        files = sorted(file for file in path.iterdir() if file.is_file() and _is_events(file))
    series: dict[str, Series] = defaultdict(Series)
    notes: list[str] = []
    for file in files:
        left = _scalars(read_whole(file), file, series)
        if left:
            notes.append(f"{file.name} ends within a record: its last {left} bytes were left out")
    origin = min((min(column.seconds) for column in series.values() if column.seconds), default=0.0)
    for column in series.values():
        column.count_seconds(origin, 1.0)
    # What Lightning writes into the folder of its logger.
    settings, damaged = settings_of_file(files[0].parent / "hparams.yaml") if files else ({}, [])
    return [to_trace(series, metric, path, path.name, notes + damaged, settings=settings)]


def _is_events(path: Path) -> bool:
    with open_log(path) as file:
        return recognises(path, file.read(64))


def _scalars(data: bytes, path: Path, series: dict[str, Series]) -> int:
    """Add the scalars of a file; give how many bytes at its end are no whole record."""
    at, end = 0, len(data)
    while at < end:
        if end - at < 12:
            return end - at
        (length,) = _LENGTH.unpack_from(data, at)
        stop = at + 12 + length
        if stop + 4 > end:
            if not _is_length(data, at):
                raise IoError(f"{path}: damaged record at byte {at}")
            return end - at
        try:
            _event(data, at + 12, stop, series)
        except (IndexError, struct.error, ValueError, UnicodeDecodeError):
            raise IoError(f"{path}: damaged record at byte {at}") from None
        at = stop + 4
    return 0


def _event(data: bytes, at: int, stop: int, series: dict[str, Series]) -> None:
    wall, step = math.nan, 0
    summary: tuple[int, int] | None = None
    while at < stop:
        key = data[at]
        at += 1
        if key == 0x09:  # wall_time
            (wall,) = _DOUBLE.unpack_from(data, at)
            at += 8
        elif key == 0x10:  # step
            step, at = varint(data, at)
        elif key == 0x2A:  # summary
            length, at = varint(data, at)
            summary = at, at + length
            at += length
        else:
            at = skip(data, at, key & 7)
    if at != stop:
        raise ValueError("fields beyond the record")
    if summary is not None:
        if step >= 1 << 63:
            step -= 1 << 64
        _summary(data, *summary, step, wall, series)


def _summary(
    data: bytes, at: int, stop: int, step: int, wall: float, series: dict[str, Series]
) -> None:
    while at < stop:
        key = data[at]
        if key != 0x0A:  # value
            at = skip(data, at + 1, key & 7)
            continue
        length, at = varint(data, at + 1)
        end = at + length
        if end > stop:
            raise ValueError("a value beyond its summary")
        tag, value = "", None
        while at < end:
            key = data[at]
            at += 1
            if key == 0x0A:  # tag
                length, at = varint(data, at)
                tag = data[at : at + length].decode()
                at += length
            elif key == 0x15:  # simple_value
                (value,) = _FLOAT.unpack_from(data, at)
                at += 4
            elif key == 0x42:  # tensor
                length, at = varint(data, at)
                value = _tensor(data, at, at + length)
                at += length
            else:
                at = skip(data, at, key & 7)
        if value is not None:
            series[tag].add(step, value, wall)


def _tensor(data: bytes, at: int, stop: int) -> float | None:
    """Read a tensor of one number; None of any other."""
    kind, content = 0, b""
    while at < stop:
        key = data[at]
        at += 1
        if key == 0x08:  # dtype
            kind, at = varint(data, at)
        elif key in (0x22, 0x2A, 0x32):  # tensor_content, float_val, double_val, both packed
            length, at = varint(data, at)
            content = data[at : at + length]
            at += length
        elif key in (0x2D, 0x31):  # float_val, double_val
            size = 4 if key == 0x2D else 8
            content = data[at : at + size]
            at += size
        else:
            at = skip(data, at, key & 7)
    form = _CONTENT.get(kind)
    if form is None or len(content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, content)[0])


def _is_length(data: bytes, at: int) -> bool:
    """Whether the length of a record is there, as its checksum says."""
    return _masked_crc(data[at : at + 8]) == int.from_bytes(data[at + 8 : at + 12], "little")


def _masked_crc(data: bytes) -> int:
    """CRC-32C (reflected polynomial 0x82F63B78), rotated and shifted as TFRecord stores it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
