#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the C++ tests under a preset that looks deeper.
#   scripts/sanitize.sh asan|tsan|hardened
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
if [ "$preset" = tsan ]; then
  # libgomp's barriers are invisible to the sanitizer; Archer shows it those of LLVM's OpenMP.
  archer=$(find /usr/lib/llvm-* -name libarcher.so 2>/dev/null | sort | tail -n 1 || true)
  if [ -z "$archer" ] || ! command -v clang++ >/dev/null; then
    echo 'tsan needs clang and its OpenMP: apt-get install clang libomp-dev libclang-rt-14-dev' >&2
    exit 1
  fi
  export OMP_TOOL_LIBRARIES=$archer
fi
targets=(all) only=()
if [ "$preset" = tsan ]; then # what runs on one thread has no races
  mapfile -t targets < <(
    grep -lE 'std::thread|Execution|\.threads = |PastRuns|for_each_block' tests/*_test.cpp |
      xargs -n 1 basename -s .cpp
  )
  only=(--tests-regex "^($(IFS='|' && echo "${targets[*]}"))\$")
fi
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset "$preset" -DGLIDEPATH_BUILD_EXAMPLES=OFF >/dev/null
cmake --build --preset "$preset" --parallel "$(nproc)" --target "${targets[@]}"
ctest --preset "$preset" "${only[@]}"
