#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz programs and runs them in turn, SECONDS in all. What they learn is kept in
# CORPUS, by default build/fuzz/corpus; what breaks one lies in build/fuzz/found afterwards, and
# `build/fuzz/tests/fuzz/fuzz_NAME FILE` repeats it.
#   [CORPUS=FOLDER] scripts/fuzz.sh [SECONDS [fuzz_NAME...]]
#   scripts/fuzz.sh --can-build   whether clang, its fuzzer and its OpenMP are here
set -euo pipefail
cd "$(dirname "$0")/.."

can_build() {
  clang++ -x c++ -fopenmp -fsanitize=fuzzer,address,undefined -o /dev/null - <<<'#include <omp.h>
    extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }
  ' >/dev/null 2>&1
}
if [ "${1:-}" = --can-build ]; then
  can_build
  exit
fi
if ! can_build; then
  echo 'fuzz: skipped, it needs apt-get install clang libclang-rt-14-dev libomp-dev'
  exit 0
fi

seconds=${1:-60}
shift $(($# > 0 ? 1 : 0))
if [ $# -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do set -- "$@" "$(basename "$source" .cpp)"; done
fi
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)" --target "$@"

each=$((seconds / $#))
[ "$each" -gt 0 ] || each=1 # libFuzzer takes 0 for no limit
mkdir -p build/fuzz/found
for target in "$@"; do
  grown=${CORPUS:-build/fuzz/corpus}/$target
  mkdir -p "$grown"
  log=build/fuzz/$target.log
  # A case that takes ten seconds hangs for a user.
  if ! OMP_NUM_THREADS=1 build/fuzz/tests/fuzz/"$target" -max_total_time="$each" -timeout=10 \
    -rss_limit_mb=3072 -max_len=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" "$grown" "tests/fuzz/corpus/$target" \
    >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    exit 1
  fi
  awk -v target="$target" '/number_of_executed_units/ { print target ": " $2 " executions" }' "$log"
done
