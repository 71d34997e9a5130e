# SPDX-License-Identifier: Apache-2.0
# Warnings for our own code only: linked PRIVATE, never exported to a consumer.
add_library(glidepath_warnings INTERFACE)
target_compile_options(
  glidepath_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wdouble-promotion
            $<$<BOOL:${GLIDEPATH_WERROR}>:-Werror>
)
