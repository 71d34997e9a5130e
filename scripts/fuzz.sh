#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz programs and runs them, one on each processor, SECONDS in all. What they learn is
# kept in CORPUS, by default build/fuzz/corpus; what breaks one lies in build/fuzz/found afterwards,
# and `build/fuzz/tests/fuzz/fuzz_NAME FILE` repeats it.
# A case may take LONGEST=10 seconds. SEED=N tries the same cases again.
#   [CORPUS=FOLDER] [LONGEST=S] [SEED=N] scripts/fuzz.sh [SECONDS [fuzz_NAME...]]
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

# libFuzzer takes 0 for no limit. A case that takes ten seconds hangs for a user. Short cases are many.
export LONGEST=${LONGEST:-10} SEED=${SEED:-0}
at_once=$(($(nproc) < $# ? $(nproc) : $#))
each=$((seconds * at_once / $#))
[ "$each" -gt 0 ] || each=1
mkdir -p build/fuzz/found
export each OMP_NUM_THREADS=1 CORPUS=${CORPUS:-build/fuzz/corpus}
# What was freed stays guarded for a thousand cases, not for a million.
export ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=4:detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
fuzz() {
  local target=$1 log=build/fuzz/$1.log
  mkdir -p "$CORPUS/$target"
  if ! build/fuzz/tests/fuzz/"$target" -max_total_time="$each" -timeout="$LONGEST" -seed="$SEED" -rss_limit_mb=3072 \
    -max_len=512 -print_funcs=0 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" \
    "$CORPUS/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    return 1
  fi
  awk -v target="$target" '/number_of_executed_units/ { print target ": " $2 " executions" }' "$log"
}
export -f fuzz
printf '%s\n' "$@" | xargs -P "$at_once" -I{} bash -c 'fuzz {}'
