# SPDX-License-Identifier: Apache-2.0
"""What is said twice because other packagers want it in files of their own is said alike."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp

RECIPES = (
    "packaging/conda/recipe.yaml",
    "packaging/spack/spack_repo/glidepath/packages/glidepath/package.py",
    "packaging/spack/spack_repo/glidepath/packages/py_glidepath/package.py",
)


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def test_the_oldest_typer_starts_the_command_line_with_any_click(project: dict[str, Any]) -> None:
    """Typer 0.9 knows no `str | None`, and those before 0.15.4 fail beside click 8.2."""
    assert "typer>=0.15.4" in project["project"]["dependencies"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_has_the_one_version(recipe: str, root: Path) -> None:
    found = re.findall(r'version(?:: |\()"([\d.]+)"', (root / recipe).read_text())
    assert found == [gp.__version__]


@pytest.mark.parametrize(
    ("recipe", "style"), [(RECIPES[0], "- {} >={}\n"), (RECIPES[2], '"py-{}@{}:"')]
)
def test_each_recipe_wants_what_the_package_wants(
    recipe: str, style: str, root: Path, project: dict[str, Any]
) -> None:
    text = (root / recipe).read_text()
    wanted = project["project"]["dependencies"] + project["build-system"]["requires"]
    assert len(wanted) >= 5
    for requirement in wanted:
        name, least = requirement.split(">=")
        assert style.format(name, least) in text, requirement
    python = project["project"]["requires-python"].removeprefix(">=")
    assert style.format("python", python).replace("py-", "") in text


def test_the_conda_recipe_is_valid_for_every_python(root: Path, project: dict[str, Any]) -> None:
    """Rattler-build reads and renders it, as it does before a build; no channel is needed."""
    rattler = pytest.importorskip("rattler_build")
    recipe = rattler.Stage0Recipe.from_file(root / RECIPES[0])
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["project"]["classifiers"]))
    variants = {"python": [f"{each}.*" for each in named], "c_stdlib": ["sysroot"]}
    rendered = recipe.render(rattler.VariantConfig(variants))
    assert {str(one.variant["python"]) for one in rendered} == set(variants["python"])
    for one in rendered:
        made = one.recipe.to_dict()
        assert made["package"] == {"name": "glidepath", "version": gp.__version__}
        (files,) = (test["files"]["source"] for test in made["tests"] if "files" in test)
        for file in [*files, *made["about"]["license_file"]]:
            assert (root / file).is_file(), file


def test_a_misspelt_conda_recipe_is_refused(root: Path) -> None:
    rattler = pytest.importorskip("rattler_build")
    text = (root / RECIPES[0]).read_text()
    with pytest.raises(rattler.RattlerBuildError):
        rattler.Stage0Recipe.from_yaml(text.replace("requirements:", "requirement:"))


def test_wheels_are_for_every_python_that_the_package_names(project: dict[str, Any]) -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["project"]["classifiers"]))
    built = re.findall(r"cp3(\d+)-", project["tool"]["cibuildwheel"]["build"])
    assert [f"3.{minor}" for minor in built] == named
    assert project["project"]["requires-python"] == f">={named[0]}"


def test_wheels_are_compiled_for_the_c_library_that_is_checked(
    root: Path, project: dict[str, Any]
) -> None:
    compiled = re.search(r"^glibc=([\d.]+)$", (root / "scripts/wheel_needs.sh").read_text(), re.M)
    checked = re.search(r"^GLIBC = (.*?)  #", (root / "scripts/check_wheel.py").read_text(), re.M)
    assert compiled is not None
    assert checked is not None
    assert checked[1] == f"({compiled[1].replace('.', ', ')})"
    image = project["tool"]["cibuildwheel"]["manylinux-x86_64-image"]
    assert image == f"manylinux_{compiled[1].replace('.', '_')}"
