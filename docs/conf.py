# SPDX-License-Identifier: Apache-2.0
"""The documentation site, `make docs`: Sphinx over the Markdown that a reader of the tree sees."""

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

project = "glidepath"
cmake = (ROOT / "CMakeLists.txt").read_text()
(release,) = re.findall(r"project\(\s*glidepath\s+VERSION\s+([0-9.]+)", cmake)
extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
suppress_warnings = ["duplicate_declaration.cpp"]  # each header opens the one namespace again
html_theme = "furo"
html_title = f"glidepath {release}"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say types in words, with shapes and units
# Of the adapters only their own words are shown: gigabytes of frameworks need not be there.
autodoc_mock_imports = ["keras", "lightning", "optuna", "ray", "skorch", "transformers"]
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

breathe_projects = {"glidepath": str(ROOT / "build" / "docs" / "xml")}
breathe_default_project = "glidepath"
breathe_default_members = ("members",)


def _leave_out(app: Any, name: str, source: list[str]) -> None:
    """Turn links to what is in the tree and not on the site into the path as text."""
    folder = ROOT / "docs" / Path(name).parent

    def text(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if "://" in target or target.startswith("#"):
            return link[0]
        path = (folder / target.partition("#")[0]).resolve()
        if path.is_relative_to(ROOT / "docs") and path.is_file():
            return link[0]
        return f"{words} (`{os.path.relpath(path, ROOT)}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", text, source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _leave_out)
