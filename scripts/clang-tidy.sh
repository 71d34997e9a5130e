#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the library's sources, or over those named.
#   scripts/clang-tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || { echo 'clang-tidy is missing: apt-get install clang-tidy libomp-dev' >&2; exit 1; }
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files 'src/*.cpp'); fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/dev --quiet \
  --extra-arg=-Wno-unknown-warning-option
