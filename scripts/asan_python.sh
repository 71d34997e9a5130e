#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of the Python package under the address and undefined-behaviour sanitizers, by an
# extension of its own in build/asan/python: that of the tree stays as it is.
#   scripts/asan_python.sh [pytest arguments]   by default what crosses the binding
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
copy=$PWD/build/asan/python

export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset asan -DGLIDEPATH_BUILD_EXAMPLES=OFF -DGLIDEPATH_BUILD_PYTHON=ON \
  -DPython_EXECUTABLE="$python" -DGLIDEPATH_CORE_FOLDER="$copy/glidepath" >/dev/null
cmake --build --preset asan --parallel "$(nproc)" --target _core
mkdir -p "$copy"
# Links, so that the package is the one of the tree but for its extension.
for each in python/glidepath/*; do
  case $each in
  *_core*.so | *__pycache__) ;;
  *) ln -sfn "$PWD/$each" "$copy/glidepath/" ;;
  esac
done

# Readers, records, stages: what hands bytes, arrays and objects of the user to the compiled module.
# Left out is what starts other processes or a clock (the engines, the command line, long calls), what
# has no binding under it (documents, pictures, protocols) and the C interface, a library of its own.
if [ $# -eq 0 ]; then
  set -- tests/python/test_{arguments,attacks,fit,forecast,hardware,invariance,learned,parts,past_runs}.py \
    tests/python/test_{plan,plan_round,reach,records,restored,schedule,states,step_profile}.py \
    tests/python/test_{simulate,simulate_gym,simulate_records,simulate_refusals,starts,trace,watch}.py \
    tests/python/test_{wrong_types,readers*}.py
fi
# The interpreter is not built by the sanitizer, so its library comes first; that of C++ beside it,
# or it finds no exceptions to catch. Python itself never gives all memory back.
preload="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libstdc++.so)"
LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  PYTHONPATH=$copy "$python" -X faulthandler -m pytest -q -p no:cacheprovider "$@"
