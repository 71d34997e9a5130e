#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets a machine ready and the tree built; what is there already is left alone.
#   scripts/setup.sh run       what `make demo` needs: the command line and its pictures
#   scripts/setup.sh develop   what `make test` needs as well: all targets and the checkers
#   scripts/setup.sh fuzz      what `make fuzz` needs as well: clang, its fuzzer and its OpenMP
#
# Three steps: Debian packages (as root or through sudo), a virtual environment in .venv, the build
# in build/dev. Nothing is written outside this folder but the packages.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
fuzz=no
if [ "$purpose" = fuzz ]; then purpose=develop fuzz=yes; fi
started=$SECONDS
say() { printf '==> %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# ------------------------------------------------------------------------------- Debian packages

has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
has_python() { python3 -c "$1" >/dev/null 2>&1; }
python_header='import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'

# A package is missing when what we need of it is: another source of the same tool is as good.
missing=()
need() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
need g++ command -v c++
need cmake command -v cmake
need ninja-build command -v ninja
need ccache command -v ccache
need pkg-config command -v pkg-config
need python3-venv has_python 'import ensurepip, venv'
need python3-dev has_python "$python_header"
need libeigen3-dev has_header eigen3/Eigen/Core
need libceres-dev has_header ceres/ceres.h
need libhwy-dev has_header hwy/highway.h
need zlib1g-dev has_header zlib.h
if [ "$purpose" = develop ]; then
  need libgtest-dev has_header gtest/gtest.h
  need doxygen command -v doxygen
fi

# The tests of the Slurm engine start a Slurm of their own, those of the reports a browser, the fuzz
# targets are built by clang; without them they skip and say so.
optional=()
if [ "$purpose" = develop ]; then
  has_daemon() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1" >/dev/null; }
  has_daemon slurmctld || optional+=(slurmctld)
  has_daemon slurmd || optional+=(slurmd)
  has_daemon sbatch || optional+=(slurm-client)
  has_daemon munged || optional+=(munge)
  command -v chromium >/dev/null || optional+=(chromium)
fi
if [ "$fuzz" = yes ] && ! scripts/fuzz.sh --can-build; then
  optional+=(clang libclang-rt-14-dev libomp-dev)
fi

install_packages() {
  local prefix=()
  local list="$*"
  command -v apt-get >/dev/null ||
    die "this machine has no apt-get; please install the equivalents of: $list"
  if [ "$(id -u)" != 0 ]; then
    # Without a terminal nobody could type a password.
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      prefix=(sudo)
    else
      die "these Debian packages are missing, and installing them needs root or sudo: $list"
    fi
  fi
  say "installing Debian packages: $list"
  "${prefix[@]}" apt-get update -qq || say "apt-get update failed; trying with the lists at hand"
  "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" </dev/null ||
    die "apt-get could not install: $list"
}
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
[ ${#optional[@]} = 0 ] || (install_packages "${optional[@]}") ||
  say "going on without ${optional[*]}; the tests that need them will be skipped"
has_python 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "Python 3.11 or newer is needed, python3 is $(python3 --version 2>&1)"

# --------------------------------------------------------------------------- virtual environment

# The one list of requirements is pyproject.toml's.
requirements() {
  python3 - "$@" <<'PYTHON'
import sys, tomllib

with open("pyproject.toml", "rb") as file:
    pyproject = tomllib.load(file)
extras = pyproject["project"]["optional-dependencies"]


def expand(requirement: str) -> list[str]:
    name, bracket, rest = requirement.partition("[")
    if name.strip() != pyproject["project"]["name"] or not bracket:
        return [requirement]
    return [r for extra in rest.rstrip("]").split(",") for e in extras[extra] for r in expand(e)]


wanted = pyproject["build-system"]["requires"] + pyproject["project"]["dependencies"]
wanted += [r for extra in sys.argv[1:] for e in extras[extra] for r in expand(e)]
print(*dict.fromkeys(wanted), sep="\n")
PYTHON
}

venv=$PWD/.venv
python=$venv/bin/python
if ! "$python" -c '' 2>/dev/null || ! grep -qF "$PWD" "$venv/bin/activate"; then
  say "creating the virtual environment .venv"
  [ ! -L "$venv" ] || rm "$venv" # --clear would empty the folder that a link leads to
  python3 -m venv --clear "$venv"
fi

if [ "$purpose" = develop ]; then extras=(plot report dev); else extras=(plot report); fi
list=$venv/requirements-$purpose.txt
wanted=$(requirements "${extras[@]}")
if [ "$wanted" != "$(cat "$list" 2>/dev/null)" ]; then
  say "installing Python packages into .venv"
  printf '%s\n' "$wanted" >"$list.new"
  quiet=()
  [ -t 1 ] || quiet=(-qq)
  # Of two gigabytes little is imported: that part compiles itself when it is.
  "$python" -m pip install --disable-pip-version-check --no-compile "${quiet[@]}" -r "$list.new"
  mv "$list.new" "$list"
fi

# The package is used from the tree: python/glidepath, with the extension that the build puts there.
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$PWD/python" >"$site/glidepath.pth"
cat >"$venv/bin/glidepath" <<LAUNCHER
#!$python
import sys

from glidepath.cli import main

sys.exit(main())
LAUNCHER
chmod +x "$venv/bin/glidepath"

# ----------------------------------------------------------------------------------------- build

# Relative paths: another clone finds in the cache what this one compiled.
export GLIDEPATH_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if [ "$purpose" = develop ]; then target=all; else target=_core; fi
say "building $target in build/dev"
# The demo does without GoogleTest; where it is there, `make test` goes on from the same configuration.
if has_header gtest/gtest.h; then tests=ON; else tests=OFF; fi
configured=$(cmake --preset dev -DGLIDEPATH_BUILD_PYTHON=ON -DPython_EXECUTABLE="$python" \
  -DGLIDEPATH_BUILD_TESTS=$tests 2>&1) ||
  die "cmake could not configure the build:"$'\n'"$configured"
# Files that differentiate templates take over 1 GB each to compile.
jobs=$(awk -v cores="$(nproc)" '/MemAvailable/ {
  fit = int($2 / 1.5e6); print fit < 1 ? 1 : fit < cores ? fit : cores }' /proc/meminfo)
cmake --build --preset dev --target "$target" --parallel "$jobs"
say "ready after $((SECONDS - started)) s"
