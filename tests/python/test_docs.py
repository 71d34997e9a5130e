# SPDX-License-Identifier: Apache-2.0
"""Documents are promises: snippets come from programs that run, links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# <!-- from examples/01_fit_one_trace.py --> says that the block below is an excerpt of that file.
SNIPPET = re.compile(r"<!-- from (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def excerpts(text: str) -> list[tuple[str, str]]:
    return SNIPPET.findall(text)


def parts_of(snippet: str) -> list[str]:
    """A snippet may leave lines out where it says so with a line of three dots."""
    return [part.strip("\n") for part in re.split(r"^\s*(?:#|//) \.\.\.\n", snippet, flags=re.M)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_snippets_are_excerpts_of_programs(document: Path) -> None:
    for source, snippet in excerpts(document.read_text()):
        program = (ROOT / source).read_text()
        for part in parts_of(snippet):
            assert part in program, f"{document.name}: not in {source}:\n{part}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text()):
        if "://" not in link:
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_a_wrong_snippet_would_be_found() -> None:
    source = "examples/03_plan_one_round.py"
    block = "plan = gp.solve_round(\n# ...\nx\n"
    ((found, snippet),) = excerpts(f"<!-- from {source} -->\n```python\n{block}```\n")
    assert found == source
    first, second = parts_of(snippet)
    program = (ROOT / source).read_text()
    assert first in program
    assert second == "x"
    assert "gp.fit(other)" not in program


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Of what only Python has; those of training frameworks are run by the tests of their adapters.
PYTHON_ONLY = sorted((ROOT / "examples" / "python").glob("[!w]*.py"))


def test_examples_have_a_twin() -> None:
    assert all(example.with_suffix(".cpp").exists() for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES + PYTHON_ONLY, ids=lambda path: path.name)
def test_examples_run(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def block_of_readme(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    return found.group(1)


def test_the_python_of_the_readme_runs() -> None:
    environment = os.environ | {"MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error", "-c", block_of_readme("python")]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "<Fit:" in done.stdout
    assert "<Reach: target 2.25" in done.stdout


def test_the_cpp_of_the_readme_compiles(tmp_path: Path) -> None:
    generated = sorted((ROOT / "build").glob("*/include"))
    if not generated or shutil.which("c++") is None:
        pytest.skip("no build of the library beside the sources, or no compiler")
    source = tmp_path / "readme.cpp"
    source.write_text(block_of_readme("cpp"))
    eigen = subprocess.run(
        ["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True, check=True
    ).stdout.split()
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *eigen]
    command += [f"-I{ROOT / 'include'}", f"-I{generated[0]}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
