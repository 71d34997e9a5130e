#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs programs in C++ and C with what pkg-config prints of an install:
#   pkg_config.sh PREFIX CC CXX [FLAG...]
set -euo pipefail
prefix=$1 cc=$2 cxx=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name glidepath.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
read -ra found < <(pkg-config --cflags --libs glidepath)
"$cxx" -std=c++20 "$@" "$here/consumer.cpp" -o "$folder/consumer" "${found[@]}"
"$folder/consumer"
"$cc" -std=c99 "$@" "$here/../../examples/c/from_c.c" -o "$folder/from_c" "${found[@]}"
"$folder/from_c" "$here/../../data/curves/docs-transformer.csv.gz"
