# SPDX-License-Identifier: Apache-2.0
"""Readers of what monitors of GPUs write, one small module each, imported when a file is read.

A module has two functions:

``recognises(head)``
    Whether a file is its own, by how it begins, unpacked where it is gzip.
``read(path, options)``
    Its samples, as `glidepath.readers.monitors._samples.Samples` collects them.
"""
