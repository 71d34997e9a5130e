// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/error.hpp"

#include <locale>
#include <sstream>
#include <string>

namespace glidepath::detail {

/// Joins its arguments into one sentence; doubles with the digits that name them exactly enough,
/// whatever the program's locale.
template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(12);
  (out << ... << parts);
  return out.str();
}

/// Refuses in one sentence: `if (gpus < 1) refuse("plan: job ", id, " asks ", gpus, " GPUs");`
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw InputError(sentence(parts...));
}

template <class... Parts>
[[noreturn]] void refuse_file(const Parts&... parts) {
  throw IoError(sentence(parts...));
}

}  // namespace glidepath::detail
