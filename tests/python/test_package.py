# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import importlib.util
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glidepath as gp
from glidepath._results import Result, require, same


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample(Result):
    name: str
    value: float
    curve: np.ndarray
    params: dict[str, np.ndarray]

    def _summary(self) -> str:
        return f"{self.name}, good"


def sample(value: float = 1.5, last: float = 2.0) -> Sample:
    return Sample("a<b", value, np.array([1.0, np.nan]), {"floor": np.array([last])})


def test_version_is_the_one_of_cmake(root: Path) -> None:
    text = (root / "CMakeLists.txt").read_text()
    match = re.search(r"project\(\s*glidepath\s+VERSION\s+([0-9.]+)", text)
    assert match is not None
    assert gp.__version__ == match[1]


def test_errors_are_of_the_kinds_that_python_users_catch() -> None:
    assert issubclass(gp.InputError, ValueError)
    assert issubclass(gp.IoError, OSError)
    assert gp.InputError.__module__ == "glidepath"
    again = pickle.loads(pickle.dumps(gp.InputError("three words here")))
    assert type(again) is gp.InputError
    assert str(again) == "three words here"


def test_import_brings_no_heavy_library() -> None:
    code = "import sys, glidepath; print(*{m.partition('.')[0] for m in sys.modules})"
    heavy = {"pandas", "matplotlib", "plotly", "typer", "rich", "scipy", "click", "torch"}
    assert not heavy & set(run_python(code).split())


def test_import_needs_no_optional_library() -> None:
    code = (
        "import sys\n"
        "absent = 'pandas', 'matplotlib', 'plotly', 'typer', 'rich', 'scipy'\n"
        "sys.modules |= dict.fromkeys(absent)\n"
        "import numpy as np, glidepath as gp\n"
        "t = np.arange(1.0, 41.0)\n"
        "print(gp.fit(gp.Trace(t, 2 + 3 * t**-0.5), family='pow3').status)"
    )
    assert run_python(code).split() == ["converged"]


# Functions of the extension: pybind11 gives no signature to inspect, they are few, and read.
COMPILED = {"catalogue", "partitions", "pod_policies", "slices"}


# A parameter, field or result that is a number or an array: its names, type, what is said of it.
QUANTITY = re.compile(
    r"^([\w, ]+) : (.*\b(?:float|ndarray|array_like)\b.*)\n((?: {4,}.*\n?|\n)*)", re.MULTILINE
)
# One of these words says in what it counts, or that it is a pure number.
UNIT = re.compile(
    r"_(?:s|gb|w|g|kg|kwh|hours?|seconds|steps?|gpus?|watts)\b"
    r"|\b(?:steps?|seconds?|hours?|GB|watts?|W|kWh|joules?|USD|g|kg|milliwatts"
    r"|GPUs?|jobs?|points|loss(?:es)?|metric|units?|rewards?"
    r"|probabilit(?:y|ies)|shares?|fractions?|ratios?|factors?|relative|quantiles?|levels?"
    r"|learning rates?|speeds?|times|power|log|dimensionless|number|indices)\b",
    re.IGNORECASE,
)


def told_in_order(thing: Any) -> list[str]:
    """The parameters that a docstring lists, in its order."""
    section = r"^Parameters\n-+\n(.*?)(?=\n\n?^\w+\n-+$|\Z)"
    found = re.search(section, inspect.getdoc(thing) or "", re.MULTILINE | re.DOTALL)
    entries = re.findall(r"^\**(\w[\w, *]*?)(?: : .*)?$", found[1] if found else "", re.MULTILINE)
    return [name.strip(" *") for entry in entries for name in entry.split(",")]


def out_of_order(thing: Any) -> list[str]:
    """What is wrong with the order in which a docstring lists parameters."""
    told = told_in_order(thing)
    takes = [name for name in inspect.signature(thing).parameters if name in told]
    return [] if told == takes else [f"{', '.join(told)} in the order {', '.join(takes)}"]


def silent_methods(thing: type) -> list[str]:
    """Methods that take something and do not say what they raise."""
    silent = []
    for name, member in vars(thing).items():
        called = inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod))
        if not called or name.startswith("_") or name == "plot":
            continue
        method = getattr(thing, name)
        if not inspect.isroutine(method) or inspect.isbuiltin(method):
            continue  # of the extension
        takes = [each for each in inspect.signature(method).parameters if each != "self"]
        said = inspect.getdoc(method) or ""
        if takes and not re.search(r"^Raises\n---|Error|`cosine`", said, re.MULTILINE):
            silent.append(f"what {name}() raises")
    return silent


def lacks(thing: Any) -> list[str]:
    """What the docstring of a public class or function does not say."""
    text = inspect.getdoc(thing) or ""
    missing = [] if text.strip() else ["any words"]

    def names(words: Iterable[str]) -> None:
        entries = re.findall(r"^\**([\w, *]+?)(?: : .*)?$", text, re.M)
        told = {name.strip(" *") for entry in entries for name in entry.split(",")}
        missing.extend(word for word in words if word not in told)

    if inspect.isclass(thing):
        if is_dataclass(thing):
            names(field.name for field in fields(thing) if not field.name.startswith("_"))
        for name, member in vars(thing).items():
            called = inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod))
            if called and not name.startswith("_") and not inspect.getdoc(getattr(thing, name)):
                missing.append(f"{name}()")
        missing.extend(silent_methods(thing))
    else:
        missing.extend(out_of_order(thing))
        names(inspect.signature(thing).parameters)
        takes = ("Parameters", "Raises") if inspect.signature(thing).parameters else ()
        for section in (*takes, "Returns"):
            if not re.search(rf"^{section}\n---", text, re.M):
                missing.append(section)
    arrays = re.findall(r"^.* : .*(?:ndarray|array_like).*$", text, re.M)
    missing.extend(f"shape of {entry.strip()}" for entry in arrays if "shape" not in entry)
    missing.extend(
        f"unit of {name}"
        for name, kind, said in QUANTITY.findall(text)
        if "ndarray of str" not in kind and not UNIT.search(f"{name} {kind} {said}")
    )
    return missing


def test_every_public_name_tells_its_parameters_shapes_and_errors() -> None:
    said = {
        name: lacks(getattr(gp, name))
        for name in gp.__all__
        if callable(getattr(gp, name)) and name not in COMPILED
    }
    assert len(said) > 40
    assert {name: missing for name, missing in said.items() if missing} == {}
    assert all((getattr(gp, name).__doc__ or "").strip() for name in COMPILED)


def test_a_docstring_that_says_too_little_is_found() -> None:
    def half(step: np.ndarray, size: float, loss: np.ndarray) -> np.ndarray:
        """Do half.

        Parameters
        ----------
        step : ndarray
        size : float
            How large.

        Returns
        -------
        ndarray, shape (n,)
        """
        return step

    assert lacks(half) == ["loss", "Raises", "shape of step : ndarray", "unit of size"]


def test_results_compare_arrays_by_value_and_nan_equals_nan() -> None:
    assert sample() == sample()
    assert sample() != sample(value=1.6)
    assert sample() != sample(last=2.1)
    assert sample(value=float("nan")) == sample(value=float("nan"))
    assert sample() != "something else"
    with pytest.raises(TypeError):
        hash(sample())


def test_same_tells_shapes_kinds_and_types_apart() -> None:
    assert same(np.arange(3), np.arange(3))
    assert not same(np.arange(3), np.arange(4))
    assert not same(np.arange(3), np.arange(3.0))
    assert not same(np.arange(3), [0, 1, 2])
    assert same([np.ones(2), {"a": np.zeros(1)}], [np.ones(2), {"a": np.zeros(1)}])
    assert not same({"a": 1}, {"b": 1})


def test_results_survive_pickle_and_copy() -> None:
    assert pickle.loads(pickle.dumps(sample())) == sample()
    assert copy.deepcopy(sample()) == sample()


def test_results_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        sample().name = "b"  # type: ignore[misc]


def test_repr_is_one_line_and_html_is_escaped() -> None:
    assert repr(sample()) == "<Sample: a<b, good>"
    assert "a&lt;b" in sample()._repr_html_()
    assert "a<b" not in sample()._repr_html_()


def test_missing_extra_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'glidepath\[pandas\]'"):
        require("pandas")


@pytest.mark.skipif(
    importlib.util.find_spec("pybind11_stubgen") is None, reason="needs pybind11-stubgen"
)
def test_committed_stub_describes_the_extension(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root / "python")}
    if Path(gp.__file__).parents[1] != root / "python":
        environment["PYTHONPATH"] = str(Path(gp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(root / "scripts" / "update_stub.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


EXTRAS = {
    "distributed": "dask",
    "keras": "keras",
    "lightning.pytorch": "lightning",
    "matplotlib.figure": "plot",
    "mlflow": "mlflow",
    "optuna": "optuna",
    "plotly.graph_objects": "report",
    "pyarrow.parquet": "arrow",
    "pytorch_lightning": "lightning",
    "ray.tune": "ray",
    "skorch.callbacks": "skorch",
    "transformers": "transformers",
    "wandb": "wandb",
}


@pytest.mark.parametrize(("module", "extra"), EXTRAS.items())
def test_what_is_missing_is_told_with_the_line_to_type(
    module: str, extra: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module.partition(".")[0]
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"{name} is not installed: pip install '.*\[{extra}\]'"):
        require(module)
    assert f"\n{extra} = [" in (root / "pyproject.toml").read_text()
