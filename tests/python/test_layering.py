# SPDX-License-Identifier: Apache-2.0
"""Includes point left, heavy libraries stay in their one place, each source carries its licence.

The checker is a function of (path, text), so the tests below also plant every violation it should
see: a checker that finds nothing is worth nothing.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# What each stage may include of the others, besides itself. trace, hardware and
# parts stand beside curve.
MAY_INCLUDE = {
    "common": set[str](),
    "curve": {"common"},
    "trace": {"common"},
    "hardware": {"common"},
    "parts": {"common", "hardware"},
}
MAY_INCLUDE["fit"] = {"common", "curve", "trace"}
MAY_INCLUDE["forecast"] = MAY_INCLUDE["fit"] | {"fit"}
MAY_INCLUDE["watch"] = MAY_INCLUDE["forecast"] | {"forecast"}
MAY_INCLUDE["plan"] = MAY_INCLUDE["watch"] | {"watch", "hardware"}
MAY_INCLUDE["simulate"] = MAY_INCLUDE["plan"] | {"plan"}
MAY_INCLUDE["c"] = MAY_INCLUDE["plan"] | {"plan"}  # glidepath.h, over all stages that it shows
# Public headers that are not a stage's own: who they belong to.
HEADER_STAGE = dict.fromkeys(("eigen", "error", "execution", "rows", "version"), "common")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
HEAVY = {
    "ceres": re.compile(r"^(ceres|glog|gflags)/"),
    "threads": re.compile(r"^(omp\.h|thread|future|condition_variable|pthread\.h)$"),
    "highway": re.compile(r"^hwy/"),
    "json": re.compile(r"json"),
}
SOURCES = (".hpp", ".cpp", ".inl", ".h", ".c", ".rs", ".py", ".sh", ".cmake", ".in")
SPDX = "SPDX-License-Identifier: Apache-2.0"


def stage_of(include: str) -> str | None:
    """Stage of an included path of ours; None when it is another's."""
    head, _, rest = include.partition("/")
    if head == "glidepath":
        name = rest.removesuffix(".hpp")
        return HEADER_STAGE.get(name, name)
    return head if head in MAY_INCLUDE and rest else None


def violations(path: str, text: str) -> Iterator[str]:
    """What is wrong with one source file, in sentences."""
    if SPDX not in "\n".join(text.splitlines()[:3]):
        yield f"{path}: no SPDX line at the top"
    if not path.endswith((".hpp", ".cpp", ".inl")):
        return
    if "#pragma omp" in text and path != "src/common/parallel.cpp":
        yield f"{path}: OpenMP belongs to src/common/parallel.cpp"
    public = path.startswith("include/glidepath/")
    name = Path(path).stem
    if public:
        owner: str | None = HEADER_STAGE.get(name, name)
    else:
        owner = path.split("/")[1] if path.startswith("src/") else None
    for quote, include in INCLUDE.findall(text):
        heavy = next((kind for kind, pattern in HEAVY.items() if pattern.search(include)), None)
        if public and heavy:
            yield f"{path}: a public header includes {include}"
        # A rival is measured as it is, without our library in between.
        rival = path.startswith("bench/rivals/")
        if heavy == "ceres" and owner != "common" and not rival:
            yield f"{path}: {include} belongs to src/common"
        if heavy == "threads" and path.startswith(("include/", "src/")) and owner != "common":
            yield f"{path}: {include} belongs to src/common"
        if path.startswith("examples/") and quote == '"':
            head = include.split("/")[0]
            if head in MAY_INCLUDE:
                yield f"{path}: {include} is not a public header"
        stage = stage_of(include)
        if public and quote == '"' and not include.startswith("glidepath/"):
            yield f"{path}: a public header includes {include}"
        if owner in MAY_INCLUDE and stage in MAY_INCLUDE and stage != owner:
            assert owner is not None
            if stage not in MAY_INCLUDE[owner]:
                yield f"{path}: {owner} may not include {include}"


def sources(root: Path) -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [
        path
        for path in listing.stdout.splitlines()
        if (path.endswith(SOURCES) or Path(path).name in ("CMakeLists.txt", "Makefile"))
        and (root / path).is_file()
    ]


def test_the_tree_keeps_its_layers(root: Path) -> None:
    paths = sources(root)
    assert len([path for path in paths if path.startswith("include/")]) >= 10
    found = [line for path in paths for line in violations(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def test_every_stage_is_known(root: Path) -> None:
    stages = {folder.name for folder in (root / "src").iterdir() if folder.is_dir()}
    assert stages <= MAY_INCLUDE.keys()
    headers = {file.stem for file in (root / "include" / "glidepath").glob("*.hpp")}
    assert headers - HEADER_STAGE.keys() - {"glidepath"} <= MAY_INCLUDE.keys()


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("src/fit/fit.cpp", '#include "glidepath/forecast.hpp"', "fit may not include"),
        ("src/fit/fit.cpp", '#include "plan/dual.hpp"', "fit may not include"),
        ("src/curve/curve.cpp", '#include "glidepath/trace.hpp"', "curve may not include"),
        ("src/common/csv.cpp", "#include <glidepath/trace.hpp>", "common may not include"),
        ("src/trace/csv.cpp", '#include "glidepath/hardware.hpp"', "trace may not include"),
        ("include/glidepath/fit.hpp", '#include "glidepath/plan.hpp"', "fit may not include"),
        ("include/glidepath/fit.hpp", '#include "common/rng.hpp"', "public header includes"),
        ("include/glidepath/fit.hpp", "#include <ceres/ceres.h>", "public header includes"),
        ("include/glidepath/plan.hpp", "  #  include <omp.h>", "public header includes"),
        ("include/glidepath/curve.hpp", "#include <hwy/highway.h>", "public header includes"),
        ("include/glidepath/plan.hpp", "#include <nlohmann/json.hpp>", "public header includes"),
        ("src/fit/fit.cpp", "#include <ceres/ceres.h>", "belongs to src/common"),
        ("tests/fit_test.cpp", "#include <ceres/ceres.h>", "belongs to src/common"),
        ("src/plan/plan.cpp", "#include <thread>", "belongs to src/common"),
        ("src/plan/plan.cpp", "#pragma omp parallel for", "belongs to src/common/parallel.cpp"),
        ("examples/a.cpp", '#include "common/rng.hpp"', "is not a public header"),
    ],
)
def test_a_planted_violation_is_caught(path: str, line: str, complaint: str) -> None:
    clean = f"// {SPDX}\n#include <vector>\n"
    assert not list(violations(path, clean))
    assert any(complaint in each for each in violations(path, f"{clean}{line}\n"))


def test_allowed_includes_pass() -> None:
    for path, line in [
        ("src/common/least_squares.cpp", "#include <ceres/ceres.h>"),
        ("bench/rivals/fit_rivals.cpp", "#include <ceres/ceres.h>"),
        ("src/curve/kernels.cpp", "#include <hwy/highway.h>"),
        ("src/common/parallel.cpp", "#include <omp.h>"),
        ("src/common/parallel.cpp", "#pragma omp parallel"),
        ("tests/common_test.cpp", "#include <thread>"),
        ("src/simulate/planner_policies.cpp", '#include "glidepath/plan.hpp"'),
        ("src/plan/plan.cpp", '#include "glidepath/hardware.hpp"'),
        ("include/glidepath/glidepath.hpp", '#include "glidepath/simulate.hpp"'),
    ]:
        assert not list(violations(path, f"// {SPDX}\n{line}\n")), path


def test_a_source_without_a_licence_line_is_caught() -> None:
    assert list(violations("python/glidepath/x.py", '"""Doc."""\n'))
    assert not list(violations("scripts/x.sh", f"#!/usr/bin/env bash\n# {SPDX}\n"))
