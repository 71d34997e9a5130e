#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the smallest library, shared and without Ceres, installs it, and runs programs that find it
# by find_package and pkg-config; then the same with the static one and Ceres. A forecast has the same
# digits in C, in C++ and in Python, whatever library it came from.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/small
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset dev -B "$build" -DBUILD_SHARED_LIBS=ON -DGLIDEPATH_WITH_CERES=OFF \
  -DGLIDEPATH_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$build" --target glidepath
ctest --test-dir "$build" --tests-regex '^package\.' --output-on-failure --no-tests=error
ctest --preset dev --tests-regex '^package\.' --no-tests=error

run=data/curves/docs-transformer.csv.gz
.venv/bin/python tests/package/one_forecast.py "$run" >"$build/one_forecast.txt"
for program in {build/dev,"$build"}/consumer/one_forecast_{c,cpp}; do
  "$program" "$run" | diff "$build/one_forecast.txt" - || { echo "$program: another forecast" >&2; exit 1; }
done
echo 'One forecast, five programs, the same digits:'
cat "$build/one_forecast.txt"
