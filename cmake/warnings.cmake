# SPDX-License-Identifier: Apache-2.0
# Warnings for our own code only: linked PRIVATE, never exported to a consumer.
add_library(glidepath_warnings INTERFACE)
target_compile_options(
  glidepath_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wdouble-promotion
            # GCC 12 takes the `+` of a literal and a string at -O3 for an overlap (its bug 105651).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
            $<$<BOOL:${GLIDEPATH_WERROR}>:-Werror>
)
