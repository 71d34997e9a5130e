#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes and checks what a release consists of, in dist/, and prints the command that publishes it. It
# uploads nothing itself. RELEASING.md is the list of what comes before and after.
#   scripts/release.sh [PYTHON...]     the interpreters to make wheels for, as in scripts/wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
rm -rf dist
scripts/check_package.sh
scripts/check_sdist.sh
scripts/wheel.sh "$@"
if [ "$(uname -m)" = aarch64 ] || ! command -v qemu-aarch64-static >/dev/null; then
  echo 'release: no wheel for aarch64 of another machine, it needs apt-get install qemu-user-static'
else
  ARCH=aarch64 scripts/wheel.sh "$@"
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check "twine>=6"
.venv/bin/python -m twine check --strict dist/*
(cd dist && sha256sum -- * | tee SHA256SUMS)

if [ -n "$(git status --porcelain)" ]; then missing='these changes in a commit: git status'; fi
grep -q "^## $version" CHANGELOG.md || missing="a section '## $version' in CHANGELOG.md"
if [ -n "${missing:-}" ]; then
  echo "release: everything above was checked, but a release needs $missing" >&2
  exit 1
fi
echo "
Everything above was checked. To publish it:
  git tag -s v$version -m 'glidepath $version' && git push origin v$version
  .venv/bin/python -m twine upload dist/*.whl dist/*.tar.gz     # asks for a token of the package index"
