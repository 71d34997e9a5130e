#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Print the tests that the last run of CTest skipped, each with the reason that it gave.
# usage: scripts/skipped_tests.sh BUILD_FOLDER
set -euo pipefail
log=$1/Testing/Temporary/LastTest.log
[ -f "$log" ] || exit 0
awk '
  /^\[ RUN /                     { name = $NF }
  /: Skipped$/                   { getline reason; reasons[name] = reason }
  /^\[  SKIPPED \] / && !(name in done) {
    done[name] = 1
    if (!count++) print "Skipped tests of C++ and their reasons:"
    print "  " name ": " (name in reasons ? reasons[name] : "no reason given")
  }
' "$log"
