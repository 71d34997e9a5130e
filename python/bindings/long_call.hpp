// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"

#include <optional>
#include <utility>

#include <pybind11/pybind11.h>
#include <unistd.h>

namespace glidepath::python {

/// `call()`, a function of Python's C interface that waits for Python's lock. Where the interpreter
/// ends meanwhile, Python before 3.14 ends the thread, a daemon, by unwinding its stack, and the
/// first destructor on the way ends the process. The thread sleeps until the process is over
/// instead, as it does since 3.14.
template <class Call>
auto unless_exiting(Call&& call) {
  try {
    return call();
  } catch (...) {  // C throws nothing else
    while (true) pause();
  }
}

/// Holds Python's lock while it lives.
class Hold {
 public:
  Hold() {
    unless_exiting([this] { hold_.emplace(); });
  }

 private:
  std::optional<pybind11::gil_scoped_acquire> hold_;
};

/// What a function of Python returns; for what it calls the library back with.
template <class... Arguments>
pybind11::object called(const pybind11::object& function, Arguments&&... arguments) {
  const pybind11::tuple given = pybind11::make_tuple(std::forward<Arguments>(arguments)...);
  PyObject* const answer =
      unless_exiting([&] { return PyObject_CallObject(function.ptr(), given.ptr()); });
  if (answer == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(answer);
}

/// While it lives, other threads of Python run, and signals are looked for now and then: what their
/// handlers raise, such as the KeyboardInterrupt of Ctrl-C, leaves the call of the library.
class LongCall {
 public:
  LongCall() {
    if (in_main_thread()) signals_.emplace(&handle_signals);
    pybind11::detail::get_internals();  // which `Hold` needs, and which needs the lock
    thread_ = PyEval_SaveThread();
  }
  ~LongCall() {
    unless_exiting([this] { PyEval_RestoreThread(thread_); });
  }
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;

 private:
  /// The only one in which Python runs the handlers of signals. Another after a fork.
  static bool in_main_thread() {
    const auto threading = pybind11::module_::import("threading");
    const pybind11::object main = threading.attr("main_thread")().attr("ident");
    return main.equal(threading.attr("get_ident")());
  }
  static void handle_signals() {
    const Hold hold;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }

  std::optional<Interruptible> signals_;  // ends last
  PyThreadState* thread_ = nullptr;
};

}  // namespace glidepath::python
