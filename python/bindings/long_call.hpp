// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"

#include <optional>

#include <pybind11/pybind11.h>

namespace glidepath::python {

/// While it lives, other threads of Python run, and signals are looked for now and then: what their
/// handlers raise, such as the KeyboardInterrupt of Ctrl-C, leaves the call of the library.
class LongCall {
 public:
  LongCall() {
    if (in_main_thread()) signals_.emplace(&handle_signals);
    release_.emplace();
  }

 private:
  /// The only one in which Python runs the handlers of signals. Another after a fork.
  static bool in_main_thread() {
    const auto threading = pybind11::module_::import("threading");
    const pybind11::object main = threading.attr("main_thread")().attr("ident");
    return main.equal(threading.attr("get_ident")());
  }
  static void handle_signals() {
    const pybind11::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }

  std::optional<Interruptible> signals_;
  std::optional<pybind11::gil_scoped_release> release_;  // ends first
};

}  // namespace glidepath::python
