# SPDX-License-Identifier: Apache-2.0
"""The command line: one module a verb, and `_console` with what they share."""

from glidepath.cli._app import app, main

__all__ = ["app", "main"]
