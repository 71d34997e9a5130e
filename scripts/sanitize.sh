#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the C++ tests under a sanitizer preset.
#   scripts/sanitize.sh asan|tsan
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset "$preset" -DGLIDEPATH_BUILD_EXAMPLES=OFF >/dev/null
cmake --build --preset "$preset" --parallel "$(nproc)"
ctest --preset "$preset"
