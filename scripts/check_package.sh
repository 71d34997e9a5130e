#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the smallest library, shared and without Ceres, installs it, and runs programs that find it
# by find_package and pkg-config. CTest does the same with the static one.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/small
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset dev -B "$build" -DBUILD_SHARED_LIBS=ON -DGLIDEPATH_WITH_CERES=OFF \
  -DGLIDEPATH_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$build" --target glidepath
ctest --test-dir "$build" --tests-regex '^package\.' --output-on-failure --no-tests=error
