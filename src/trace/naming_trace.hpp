// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "common/require.hpp"

namespace glidepath::detail {

/// Calls; of several traces a refusal says which one it is of.
template <class Call>
void naming_trace(std::string_view verb, std::size_t i, std::size_t count, Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    if (count == 1) throw;
    refuse(verb, ": trace ", i, ": ", error.what());
  }
}

}  // namespace glidepath::detail
