#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes in PREFIX what a wheel is compiled with and what it links: in bin zig's clang, for an old C
# library on this machine or another one; in lib Eigen, Highway, zlib, Ceres and LLVM's OpenMP, static,
# from Debian's source packages. Ceres goes without SuiteSparse (GPL), LAPACK, glog and gflags: a fit is
# a dense problem of a few columns. What NOTICE says of the licences rests on the options below.
#   scripts/wheel_needs.sh PREFIX [ARCH [without-ceres]]     x86_64 or aarch64
set -euo pipefail
script=$(realpath "$0")
prefix=$(mkdir -p "$1" && cd "$1" && pwd)
arch=${2:-$(uname -m)}
ceres=${3:-with-ceres}
glibc=2.28
store=$(dirname "$prefix")/sources # as they were packed, for every PREFIX beside this one
[ -e "$prefix/done" ] && cmp -s "$script" "$prefix/done" && exit 0
case $arch in
  x86_64) cpu=x86_64 ;;
  aarch64) cpu="generic -mno-outline-atomics" ;;
  *)
    echo "wheel_needs.sh: no wheels for $arch" >&2
    exit 1
    ;;
esac

# -------------------------------------------------------------------------------------- the compiler

${PYTHON:-python3} -m venv --clear "$prefix/tools"
export PATH="$prefix/tools/bin:$PATH"
pip install --quiet --disable-pip-version-check "cmake>=3.25,<4.4" ninja ziglang==0.17.1
zig=$(python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')
mkdir -p "$prefix/bin"
for tool in cc c++; do
  # The last folder is empty but for Debian's pyconfig.h, which lies beside its own C library.
  cat >"$prefix/bin/$tool" <<TOOL
#!/bin/sh
exec "$zig" $tool -target $arch-linux-gnu.$glibc -mcpu=$cpu "\$@" -idirafter "$prefix/headers"
TOOL
done
for tool in ar ranlib; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$prefix/bin/$tool"
done
chmod +x "$prefix"/bin/*
# With it CMake does not look for programs and libraries of this machine.
cat >"$prefix/toolchain.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $arch)
set(CMAKE_C_COMPILER "$prefix/bin/cc")
set(CMAKE_CXX_COMPILER "$prefix/bin/c++")
set(CMAKE_AR "$prefix/bin/ar")
set(CMAKE_RANLIB "$prefix/bin/ranlib")
TOOLCHAIN
export CC=$prefix/bin/cc CXX=$prefix/bin/c++ AR=$prefix/bin/ar RANLIB=$prefix/bin/ranlib

# ------------------------------------------------------------------------------------- the libraries

mkdir -p "$prefix/sources" "$store/apt/lists/partial" "$store/apt/cache/archives/partial"
cd "$prefix/sources"

# package, file in the pool, its SHA-256, folders of it that are wanted (all by default)
fetch() {
  local package=$1 file=$2 sum=$3
  shift 3
  if [ ! -e "$store/$file" ]; then
    # With lists of its own, apt needs no root and the machine's sources stay as they are.
    local apt=(apt-get -qq -o "Dir::Etc::SourceList=$store/apt/sources.list"
      -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$store/apt/lists"
      -o "Dir::Cache=$store/apt/cache" -o APT::Sandbox::User=root)
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    if command -v apt-get >/dev/null && [ -e "$keys" ]; then
      echo "deb-src [signed-by=$keys] http://deb.debian.org/debian bookworm main" >"$store/apt/sources.list"
      "${apt[@]}" update
      (cd "$store" && "${apt[@]}" source --download-only "$package")
    else
      (cd "$store" && curl -fsSLO "https://deb.debian.org/debian/pool/main/${package:0:1}/$package/$file")
    fi
  fi
  echo "$sum  $store/$file" | sha256sum --check --quiet
  mkdir -p "$package"
  local top
  top=$(tar -tf "$store/$file" 2>/dev/null | sed -n '1{s,/.*,,;p;q}' || true)
  tar -xf "$store/$file" -C "$package" --strip-components=1 "${@/#/$top/}"
}

build() {
  local package=$1 source=$2
  shift 2
  cmake -S "$source" -B "$package/build" -G Ninja "$@" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_TOOLCHAIN_FILE="$prefix/toolchain.cmake" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
    -DCMAKE_C_FLAGS="-fvisibility=hidden" \
    -DCMAKE_CXX_FLAGS="-ffp-contract=off -fvisibility=hidden -fvisibility-inlines-hidden" \
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
fetch zlib zlib_1.2.13.dfsg.orig.tar.bz2 \
  71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
if [ "$ceres" = with-ceres ]; then
  fetch ceres-solver ceres-solver_2.1.0+really2.1.0+dfsg.orig.tar.xz \
    acd5774187a8ea92bdf9e6d1faeb22c00bf30b1ad226ef6e2ade8b7636bbc336
fi
fetch llvm-toolchain-16 llvm-toolchain-16_16.0.6.orig.tar.xz \
  5ab98480d3bc9f1896de1a1afafb46c318a9baa02bf21a4f6830c644d06c1cc0 \
  openmp cmake compiler-rt/lib/builtins

build eigen3 eigen3 -DEIGEN_BUILD_DOC=OFF -DEIGEN_BUILD_PKGCONFIG=OFF
build highway highway -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_TESTS=OFF
(cd zlib && CFLAGS="-O3 -fPIC -fvisibility=hidden" ./configure --static --prefix="$prefix" &&
  make install) >zlib.log 2>&1 || { tail -n 30 zlib.log >&2; exit 1; }
if [ "$ceres" = with-ceres ]; then # and of its log nothing that is not fatal
  build ceres-solver ceres-solver -DMINIGLOG=ON -DMINIGLOG_MAX_LOG_LEVEL=-3 -DGFLAGS=OFF \
    -DSUITESPARSE=OFF -DCXSPARSE=OFF -DLAPACK=OFF -DEIGENSPARSE=OFF -DCUDA=OFF \
    -DSCHUR_SPECIALIZATIONS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_BENCHMARKS=OFF -DEXPORT_BUILD_DIR=OFF \
    -DPROVIDE_UNINSTALL_TARGET=OFF -DCERES_THREADING_MODEL=NO_THREADS
fi
# A second OpenMP in a process ends it, unless its user says that it may stay. This one is linked
# into our extension and shows no symbol, so it meets no other: it may always stay.
sed -i 's/__kmp_duplicate_library_ok = 0;/__kmp_duplicate_library_ok = 1;/' \
  llvm-toolchain-16/openmp/runtime/src/kmp_global.cpp
grep -q '__kmp_duplicate_library_ok = 1;' llvm-toolchain-16/openmp/runtime/src/kmp_global.cpp
build llvm-toolchain-16 llvm-toolchain-16/openmp -DOPENMP_STANDALONE_BUILD=ON \
  -DLIBOMP_ENABLE_SHARED=OFF -DOPENMP_ENABLE_LIBOMPTARGET=OFF -DLIBOMP_OMPT_SUPPORT=OFF \
  -DLIBOMP_INSTALL_ALIASES=OFF -DOPENMP_ENABLE_OMPT_TOOLS=OFF
# What the compiler calls for 128 bits and the like. Zig has it in one object with exp, log, sin and
# others of its own, which would take the place of the C library's and differ in the last digit.
rm -rf builtins "$prefix/lib/libbuiltins.a"
mkdir builtins
find llvm-toolchain-16/compiler-rt/lib/builtins -maxdepth 1 -name '*.c' |
  grep -vE 'apple|atomic|clear_cache|cpu_model|emutls|enable_execute|eprintf|gcc_pers|os_version|trampoline' |
  xargs -P "$(nproc)" -I{} sh -c '"$CC" -O2 -fPIC -fvisibility=hidden -w -c {} -o builtins/$(basename {}).o'
"$AR" rcs "$prefix/lib/libbuiltins.a" builtins/*.o
cp "$script" "$prefix/done"
