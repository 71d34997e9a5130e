#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what the wheel links: Eigen, Highway and Ceres as static libraries in PREFIX, from Debian's
# source packages. Ceres goes without SuiteSparse (GPL), LAPACK, glog and gflags: a fit is a dense
# problem of a few columns. What NOTICE says of the licences rests on the options below.
#   scripts/wheel_needs.sh PREFIX
set -euo pipefail
script=$(realpath "$0")
prefix=$(mkdir -p "$1" && cd "$1" && pwd)
sources=$prefix/sources
[ -e "$prefix/done" ] && cmp -s "$script" "$prefix/done" && exit 0
mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial"
cd "$sources"

# package, file in the pool, its SHA-256
fetch() {
  local package=$1 file=$2 sum=$3
  if [ ! -e "$file" ]; then
    # With lists of its own, apt needs no root and the machine's sources stay as they are.
    local apt=(apt-get -qq -o "Dir::Etc::SourceList=$PWD/apt/sources.list"
      -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$PWD/apt/lists"
      -o "Dir::Cache=$PWD/apt/cache" -o APT::Sandbox::User=root)
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    if command -v apt-get >/dev/null && [ -e "$keys" ]; then
      echo "deb-src [signed-by=$keys] http://deb.debian.org/debian bookworm main" >apt/sources.list
      "${apt[@]}" update
      "${apt[@]}" source --download-only "$package"
    else
      curl -fsSLO "https://deb.debian.org/debian/pool/main/${package:0:1}/$package/$file"
    fi
  fi
  echo "$sum  $file" | sha256sum --check --quiet
  mkdir -p "$package"
  tar -xf "$file" -C "$package" --strip-components=1
}

build() {
  local package=$1
  shift
  cmake -S "$package" -B "$package/build" "$@" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_CXX_COMPILER_LAUNCHER="${GLIDEPATH_COMPILER_LAUNCHER:-}" \
    >"$package.log" 2>&1 &&
    cmake --build "$package/build" --parallel "$(nproc)" >>"$package.log" 2>&1 &&
    cmake --install "$package/build" >>"$package.log" 2>&1 || {
    tail -n 30 "$package.log" >&2
    exit 1
  }
  echo "==> $package: ready after $SECONDS s"
}

fetch eigen3 eigen3_3.4.0.orig.tar.bz2 \
  b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626
fetch highway highway_1.0.3.orig.tar.gz \
  566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e
fetch ceres-solver ceres-solver_2.1.0+really2.1.0+dfsg.orig.tar.xz \
  acd5774187a8ea92bdf9e6d1faeb22c00bf30b1ad226ef6e2ade8b7636bbc336

build eigen3 -DEIGEN_BUILD_DOC=OFF -DEIGEN_BUILD_PKGCONFIG=OFF
build highway -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_TESTS=OFF
build ceres-solver -DMINIGLOG=ON -DGFLAGS=OFF -DSUITESPARSE=OFF -DCXSPARSE=OFF -DLAPACK=OFF \
  -DEIGENSPARSE=OFF -DCUDA=OFF -DSCHUR_SPECIALIZATIONS=OFF -DBUILD_EXAMPLES=OFF \
  -DBUILD_BENCHMARKS=OFF -DEXPORT_BUILD_DIR=OFF -DPROVIDE_UNINSTALL_TARGET=OFF \
  -DCERES_THREADING_MODEL=NO_THREADS
cp "$script" "$prefix/done"
