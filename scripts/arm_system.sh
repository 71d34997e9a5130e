#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes in FOLDER what 64-bit ARM machines of this release of Debian have of PYTHON (python3.11), with
# its headers and its C library: its packages, unpacked; nothing is installed and no root is needed.
# FOLDER/usr/bin/python runs it under qemu (Debian: qemu-user-static), and a virtual environment that
# it makes runs under qemu as well.
#   scripts/arm_system.sh FOLDER PYTHON
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=$2
if [ -x "$folder/usr/bin/python" ] && [ -e "$folder/usr/bin/$python" ]; then exit 0; fi
qemu=$(command -v qemu-aarch64-static) || { echo 'arm_system.sh: apt-get install qemu-user-static' >&2; exit 1; }

# With lists of its own, apt leaves the machine's as they are; with an empty status it takes all that
# Python rests on.
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" \
  >"$apt/sources.list"
get() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::status=$apt/status" \
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "Dir::Etc::SourceList=$apt/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}
get update
get install --download-only --yes --no-install-recommends "$python-venv" "lib$python-dev" libstdc++6
for package in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$folder"; done
rm -r "$apt"

# An environment knows the interpreter by the name that it was called by: a link to this file.
cat >"$folder/usr/bin/python" <<RUN
#!/bin/sh
exec "$qemu" -L "$folder" -0 "\$0" "$folder/usr/bin/$python" "\$@"
RUN
chmod +x "$folder/usr/bin/python"
