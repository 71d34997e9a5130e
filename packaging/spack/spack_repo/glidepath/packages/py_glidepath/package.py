# SPDX-License-Identifier: Apache-2.0
"""The Python package and the command line."""

from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyGlidepath(PythonPackage):
    """Forecasts training-loss curves and schedules training jobs on tiered GPUs."""

    license("Apache-2.0", checked_by="glidepath")

    # Not released yet: a copy of the tree that this file lies in.
    git = Path(__file__).resolve().parents[6].as_uri()

    version("0.1.0", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-pybind11@2.12:", type="build")
    depends_on("eigen@3.4:3", type="build")
    depends_on("highway@1.0.3:")
    depends_on("zlib-api")
    depends_on("ceres-solver@2.1:")
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-typer@0.15.4:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))

    conflicts("%gcc@:11", msg="needs the library of C++20")

    import_modules = ["glidepath", "glidepath.engines.slurm"]
