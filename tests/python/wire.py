# SPDX-License-Identifier: Apache-2.0
"""Bytes as tools write them: the protobuf of event files and W&B's logs, and TFRecord's frames."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """A number of seven bits a byte."""
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    """A field of text, or of a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def crc32c(data: bytes) -> int:
    """Masked CRC-32C by a table, as TFRecord has it."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A record of an event file: its length and data, each with a checksum."""
    length = struct.pack("<Q", len(data))
    sums = struct.pack("<I", crc32c(length)), struct.pack("<I", crc32c(data))
    return length + sums[0] + data + sums[1]
