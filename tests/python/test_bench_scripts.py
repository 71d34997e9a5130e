# SPDX-License-Identifier: Apache-2.0
"""The scripts of bench/ run for minutes: here each name that they use is looked up.

The one that learns the constants of the forecast is run, on a few curves.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import glidepath as gp

ROOT = Path(__file__).resolve().parents[2]
# Members that SciPy's results make up as they go.
SCIPY = {"x", "fun", "cost", "nfev"}
SCRIPTS = sorted((ROOT / "bench").rglob("*.py"))
# What values have that no import names: arrays, records, files, text, numbers.
VALUES: tuple[type, ...] = (
    *(np.ndarray, np.random.Generator, np.random.RandomState, np.generic),
    *(Path, os.stat_result, types.SimpleNamespace),
    *(each for each in vars(builtins).values() if isinstance(each, type)),
)


def members(holder: object) -> Iterator[str]:
    """Names that a module, a class or a function's result may have."""
    yield from dir(holder)
    if inspect.isclass(holder):
        yield from getattr(holder, "__annotations__", ())
    for each in vars(holder).values() if inspect.ismodule(holder) else ():
        if inspect.isclass(each):
            yield from dir(each)
            yield from getattr(each, "__annotations__", ())
        elif inspect.ismodule(each):  # np.random
            yield from dir(each)


def imported(tree: ast.AST) -> tuple[dict[str, object], list[str]]:
    """What a script imports, by the name that it gives it; and imports of glidepath that fail."""
    found: dict[str, object] = {}
    broken = []
    for node in ast.walk(tree):
        wanted: list[tuple[str, str, str | None]] = []
        if isinstance(node, ast.Import):
            wanted = [(a.asname or a.name.split(".")[0], a.name, None) for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            wanted = [(a.asname or a.name, node.module, a.name) for a in node.names]
        for name, module, member in wanted:
            try:
                source = importlib.import_module(module)
            except ImportError:
                continue  # another project, which is not installed here
            if member is None:
                found[name] = (
                    importlib.import_module(name) if name == module.split(".")[0] else source
                )
                continue
            try:
                held = (
                    getattr(source, member)
                    if hasattr(source, member)
                    else importlib.import_module(f"{module}.{member}")
                )
            except ImportError:
                broken.append(f"{module} has no {member}")
                continue
            found[name] = held
            found[f"{module} of {member}"] = source
    return found, broken


def unknown_names(text: str) -> list[str]:
    """Members that neither what a script imports nor the script itself has."""
    tree = ast.parse(text)
    found, broken = imported(tree)
    known = SCIPY | {name for value in VALUES for name in members(value)}
    for holder in found.values():
        known.update(members(holder))
    if any(name.startswith(("torch", "simulator")) for name in _modules(tree)):
        return broken  # what such a library makes has members of any name
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                known.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                known.add(name)
            case ast.keyword(arg=str(name)):
                known.add(name)
            case ast.Constant(value=str(option)) if option.isprintable():
                known.update(option.lstrip("-").replace("-", "_").split())  # of an argparse
    used = {
        node.attr: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    lost = [f"line {line}: nothing has .{name}" for name, line in used.items() if name not in known]
    return broken + lost + list(_lost_in_modules(tree, found))


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _has(module: types.ModuleType, name: str) -> bool:
    if hasattr(module, name):
        return True
    package = hasattr(module, "__path__")
    return package and importlib.util.find_spec(f"{module.__name__}.{name}") is not None


def _lost_in_modules(tree: ast.AST, found: dict[str, object]) -> Iterator[str]:
    """`gp.name` that the module gp does not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = found.get(node.value.id)
            if inspect.ismodule(holder) and not _has(holder, node.attr):
                yield f"line {node.lineno}: {holder.__name__} has no {node.attr}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_name_that_a_script_uses_is_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "python"))
    assert unknown_names(path.read_text()) == []


def test_a_name_that_is_not_there_is_found() -> None:
    planted = "import glidepath as gp\nrun = gp.read_traces('a')[0]\nprint(run.head(3), run.until)"
    assert unknown_names(planted) == ["line 3: nothing has .head"]
    assert unknown_names("import glidepath as gp\ngp.head") != []
    assert unknown_names("from glidepath import head") == ["glidepath has no head"]


def test_constants_are_learned_and_judged_on_curves_that_they_did_not_see(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    module = f"_training{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not (ROOT / "bench" / "accuracy" / module).exists():
        pytest.skip(f"bench/accuracy/{module} is built with the tests, not by `pip install`")
    data = tmp_path / "data"
    data.mkdir()
    for name in ("digits-mlp", "cancer-mlp"):
        shutil.copy(ROOT / "data" / "curves" / f"{name}.csv.gz", data)
    (data / "index.csv").write_text("file,licence\ndigits-mlp.csv.gz,Apache-2.0\n")  # no curves
    learning = [sys.executable, str(ROOT / "bench" / "accuracy" / "learn_prior.py"), str(data)]
    few = ["--folds", "2", "--curves", "3", "--epochs", "2", "--report", "2"]
    ran = subprocess.run(
        [*learning, *few, "--out", str(tmp_path / "{source}.txt")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    line = next(line for line in ran.stdout.splitlines() if line.startswith("cancer-mlp "))
    _, in_sample, *_, left_out, _, _, _, _, _ = line.split()
    assert in_sample == left_out == "10"  # two curves, five prefixes each
    run = gp.read_traces(data / "digits-mlp.csv.gz")[0]
    medians = {
        gp.forecast(run, run.step[-1] * 2.0, constants=table.read_text()).quantile(0.5)[0]
        for table in (tmp_path / "fold0.txt", tmp_path / "fold1.txt")
    }
    assert len(medians) == 2  # each fold learned from other runs
