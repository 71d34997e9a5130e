// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#pragma GCC visibility push(default)
namespace glidepath {

/// The caller broke a documented precondition; nothing was computed. what() names the value.
class InputError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A file could not be read, parsed or written; what() names the file and, where it has one, the
/// line.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace glidepath
#pragma GCC visibility pop
