#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ file that git knows or would add, with the pinned clang-format of .venv.
#   scripts/clang-format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
git ls-files -z --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.inl' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r .venv/bin/clang-format "${mode[@]}"
