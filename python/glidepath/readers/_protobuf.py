# SPDX-License-Identifier: Apache-2.0
"""The little of protobuf's wire format that event files and W&B's logs need."""

from __future__ import annotations

from collections.abc import Iterator


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; give it and where it ends."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than ten bytes")


def skip(data: bytes, at: int, kind: int) -> int:
    """Pass over a field of a wire type."""
    if kind == 0:
        return varint(data, at)[1]
    if kind == 1:
        return at + 8
    if kind == 2:
        length, at = varint(data, at)
        return at + length
    if kind == 5:
        return at + 4
    raise ValueError(f"wire type {kind}")


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the fields of a message that hold text or messages, by number; others are passed over.

    Raises
    ------
    ValueError, IndexError
        When it is no message.
    """
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise ValueError("a field beyond its message")
            yield key >> 3, data[at : at + length]
            at += length
        else:
            at = skip(data, at, key & 7)
