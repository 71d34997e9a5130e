# SPDX-License-Identifier: Apache-2.0
"""Readers of what training tools write, one small module each, imported when a file is read.

A reader module has two functions, and a third where several files may be one run:

``recognises(path, head)``
    Whether the file is its own, judged by its content: `head` is how the file begins, unpacked
    where it is gzip. An error, as of a damaged file, counts as no.
``read(path, metric)``
    The runs of a unit, or of a single file of it; `metric` None is the training loss as
    `glidepath._core.choose` finds it.
``unit(path)``
    What of the file's surroundings makes one run: the file itself, or a folder of several.
"""
