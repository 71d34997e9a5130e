# SPDX-License-Identifier: Apache-2.0
"""The command line: one module a verb, `_app` puts them together, `_console` is what they share."""

from glidepath.cli._app import app, main

__all__ = ["app", "main"]
