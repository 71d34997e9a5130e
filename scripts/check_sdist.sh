#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes dist/glidepath-*.tar.gz, and builds and installs it where nothing else of this tree is: a fresh
# environment outside of it, with this machine's compiler and libraries. A forecast made there has the
# digits of this tree's build.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p dist
rm -f dist/glidepath-*.tar.gz
sdist=$PWD/dist/$(.venv/bin/python -c 'from scikit_build_core.build import build_sdist as b; print(b("dist"))' | tail -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run=$PWD/data/curves/docs-transformer.csv.gz
expected=$(.venv/bin/python tests/package/one_forecast.py "$run")

cd "$folder"
tar -xzf "$sdist" --strip-components=1 --wildcards '*/tests/package/one_forecast.py'
unset PYTHONPATH
python3 -m venv venv
# Relative paths: the next one finds in the cache what this one compiled.
! command -v ccache >/dev/null ||
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$folder CCACHE_NOHASHDIR=1
TMPDIR=$folder timeout 3600 venv/bin/pip install --quiet --disable-pip-version-check "$sdist"
venv/bin/glidepath --version
got=$(venv/bin/python tests/package/one_forecast.py "$run")
[ "$got" = "$expected" ] || {
  printf '%s forecasts\n%s\nand the build of this tree\n%s\n' "$sdist" "$got" "$expected" >&2
  exit 1
}
echo "$(basename "$sdist"), $(du -k "$sdist" | cut -f 1) kB: builds alone, with the same digits"
