// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/error.hpp"

#include <string>

namespace glidepath {

/// What a call says when it refuses; empty when it does not.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace glidepath
