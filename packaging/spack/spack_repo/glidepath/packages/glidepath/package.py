# SPDX-License-Identifier: Apache-2.0
"""The library for programs in C and C++."""

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Glidepath(CMakePackage):
    """Forecasts training-loss curves and schedules training jobs on tiered GPUs."""

    license("Apache-2.0", checked_by="glidepath")

    # Not released yet: a copy of the tree that this file lies in.
    git = Path(__file__).resolve().parents[6].as_uri()

    version("0.1.0", branch="main")

    variant("shared", default=True, description="Build the shared library")
    variant("ceres", default=True, description="Robust fits and laws of a schedule, by Ceres")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("eigen@3.4:3", type="build")
    depends_on("highway@1.0.3:")
    depends_on("zlib-api")
    depends_on("ceres-solver@2.1:", when="+ceres")

    conflicts("%gcc@:11", msg="needs the library of C++20")

    def cmake_args(self):
        """Build what is installed, and nothing else."""
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("GLIDEPATH_WITH_CERES", "ceres"),
            self.define("GLIDEPATH_BUILD_TESTS", self.run_tests),
            self.define("GLIDEPATH_BUILD_EXAMPLES", False),
        ]
