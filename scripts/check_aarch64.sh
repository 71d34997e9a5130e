#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whether a forecast on 64-bit ARM has the digits of this tree's build: the library without Ceres and
# tests/package/one_forecast.c, by zig's clang for the C library of the wheels, run under qemu
# with the C library of SYSROOT, by default what scripts/arm_system.sh makes.
#   scripts/check_aarch64.sh [SYSROOT]
set -euo pipefail
cd "$(dirname "$0")/.."
sysroot=${1:-build/wheels/system/aarch64}
[ $# -gt 0 ] || scripts/arm_system.sh "$sysroot" "$(basename "$(realpath .venv/bin/python)")"
needs=$PWD/build/wheels/needs/aarch64-without-ceres build=build/aarch64
run=data/curves/docs-transformer.csv.gz
PYTHON=.venv/bin/python scripts/wheel_needs.sh "$needs" aarch64 without-ceres

mkdir -p "$needs/headers"
export PATH=$needs/tools/bin:$PATH PKG_CONFIG_PATH=$needs/lib/pkgconfig
export CXXFLAGS="-isystem $needs/include"
cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$needs/toolchain.cmake" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$needs" -DCMAKE_FIND_ROOT_PATH="$needs" \
  -DGLIDEPATH_WITH_CERES=OFF -DGLIDEPATH_UNITY=ON -DGLIDEPATH_BUILD_TESTS=OFF \
  -DGLIDEPATH_BUILD_EXAMPLES=OFF -DOpenMP_CXX_FLAGS=-fopenmp=libomp -DOpenMP_CXX_LIB_NAMES=omp \
  -DOpenMP_omp_LIBRARY="$needs/lib/libomp.a" >/dev/null
cmake --build "$build" --parallel "$(nproc)" --target glidepath
"$needs/bin/cc" -O2 -Iinclude -I"$build/include" -c tests/package/one_forecast.c -o "$build/one.o"
"$needs/bin/c++" "$build/one.o" "$build/src/libglidepath.a" "$needs"/lib/lib{omp,hwy,z,builtins}.a \
  -o "$build/one_forecast"

expected=$(.venv/bin/python tests/package/one_forecast.py "$run")
got=$(qemu-aarch64-static -L "$sysroot" "$build/one_forecast" "$run")
[ "$got" = "$expected" ] || {
  printf 'aarch64 forecasts\n%s\nand the build of this tree\n%s\n' "$got" "$expected" >&2
  exit 1
}
echo "aarch64: a forecast has the digits of this tree's build"
