# SPDX-License-Identifier: Apache-2.0
"""`pip install .` gives a complete, typed package that needs nothing of this tree."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp


def pip(command: str, *arguments: object, root: Path | None = None) -> None:
    environment = {"CXX": "c++", **os.environ}  # as CMake calls it, for the cache
    if shutil.which("ccache"):
        environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        if root is not None:  # relative paths: another clone has compiled the same
            environment |= {"CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--no-deps", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("scikit_build_core") is None:
        pytest.skip("scikit-build-core is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation: what .venv has is what pyproject.toml asks for, and nothing is downloaded.
    # With the flags of the preset dev: what that compiled is in the cache, and it is the same code.
    settings: dict[str, object] = {"build-dir": root / "build" / "wheel", "install.strip": "true"}
    settings["cmake.build-type"] = "RelWithDebInfo"
    dev = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    named = {each["name"]: each["cacheVariables"] for each in dev}
    flags = {"GLIDEPATH_UNITY": "OFF", "GLIDEPATH_WERROR": named["base"]["GLIDEPATH_WERROR"]}
    flags["CMAKE_CXX_FLAGS_RELWITHDEBINFO"] = named["dev"]["CMAKE_CXX_FLAGS_RELWITHDEBINFO"]
    settings |= {f"cmake.define.{name}": value for name, value in flags.items()}
    given = [f"--config-settings={name}={value}" for name, value in settings.items()]
    pip("wheel", "--no-build-isolation", *given, "--wheel-dir", folder, root, root=root)
    (file,) = folder.glob("*.whl")
    return file


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"glidepath/py.typed", "glidepath/_core.pyi", "glidepath/__init__.py"} <= set(names)
    assert len([name for name in names if name.startswith("glidepath/_core.cpython")]) == 1
    assert any(name.endswith("/LICENSE") for name in names)
    assert any(name.endswith("/NOTICE") for name in names)
    assert all(name.startswith(("glidepath/", "glidepath-")) for name in names), names


def test_wheel_has_the_one_version_and_runs_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    assert f"glidepath-{gp.__version__}-" in wheel.name
    pip("install", "--no-index", "--target", tmp_path / "site", wheel)
    code = (
        "import glidepath as gp, importlib.metadata as m\n"
        "assert gp.__file__.startswith({site!r}), gp.__file__\n"
        "assert m.version('glidepath') == gp.__version__\n"
        "steps = [float(t) for t in range(1, 41)]\n"
        "fit = gp.fit(gp.Trace(steps, [2 + 3 * t**-0.5 for t in steps]), family='pow3')\n"
        "assert abs(fit.params['floor'] - 2) < 1e-6, fit\n"
    ).format(site=str(tmp_path / "site"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path)
    assert (tmp_path / "site" / "bin" / "glidepath").exists()


@pytest.fixture(scope="module")
def check(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("check", root / "scripts" / "check_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_that_was_not_repaired_is_refused(wheel: Path, root: Path) -> None:
    command = [sys.executable, str(root / "scripts" / "check_wheel.py"), str(wheel)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"{wheel.name} is not repaired: it has no tag of manylinux\n"


def test_the_extension_shows_what_python_looks_for_and_nothing_else(
    wheel: Path, check: Any, tmp_path: Path
) -> None:
    def tagged(platform: str) -> list[str]:
        copy = tmp_path / wheel.name.replace("linux_", f"{platform}_")
        shutil.copy(wheel, copy)
        # A static Ceres of this machine has its log, by glog, which the library silences.
        return [each for each in check.troubles(copy) if "log of Ceres" not in each]

    # What this machine's compiler makes may say so, and say nothing older than it uses.
    assert tagged("manylinux_2_99") == ["needs glibc 2.99"]
    (behind,) = tagged("manylinux_2_5")
    assert re.fullmatch(r"asks for glibc (2[.\d]+(, )?)+ behind its tag", behind)


def test_a_library_of_this_machine_is_told_from_one_that_is_everywhere(
    check: Any, tmp_path: Path
) -> None:
    inside = str(tmp_path / "glidepath.libs" / "libgomp-f9a9ad78.so.1.0.0")
    ceres, everywhere = "/usr/lib/x86_64-linux-gnu/libceres.so.3", "/lib64/libm.so.6"
    assert check.foreign([inside, ceres, everywhere], tmp_path) == [ceres]
