#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs the consumer with what pkg-config says of an install:
#   pkg_config.sh PREFIX CXX [FLAG...]
set -euo pipefail
prefix=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name glidepath.pc)")
export PKG_CONFIG_PATH
read -ra flags < <(pkg-config --cflags --libs glidepath)
"$@" -std=c++20 "$(dirname "$0")/consumer.cpp" -o "$folder/consumer" "${flags[@]}"
"$folder/consumer"
