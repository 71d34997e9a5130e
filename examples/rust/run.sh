#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs from_rust.rs with the shared library in a folder: run.sh FOLDER
set -euo pipefail
if ! command -v rustc >/dev/null; then
  echo 'no rustc: apt-get install rustc'
  exit 77 # skipped, as CTest knows it
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rustc --edition 2021 -D warnings -L "$1" -C "link-arg=-Wl,-rpath,$1" -o "$folder/from_rust" \
  "$(dirname "$0")/from_rust.rs"
"$folder/from_rust"
