// SPDX-License-Identifier: Apache-2.0
// What the bindings of traces, schedules, forecasts, watches and workloads share.
#pragma once

#include "glidepath/forecast.hpp"
#include "glidepath/trace.hpp"

#include <memory>
#include <optional>
#include <vector>

#include "record.hpp"

namespace glidepath::python {
class AnyTrace;
class AnyTraces;
}  // namespace glidepath::python
template <>
struct pybind11::detail::handle_type_name<glidepath::python::AnyTrace> {
  static constexpr auto name = const_name("glidepath._trace.Trace");
};
template <>
struct pybind11::detail::handle_type_name<glidepath::python::AnyTraces> {
  static constexpr auto name = const_name("collections.abc.Sequence[glidepath._trace.Trace]");
};

namespace glidepath::python {

/// A `glidepath.Trace`, and several.
class AnyTrace : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(AnyTrace, py::object, anything)
 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};
class AnyTraces : public py::sequence {
 public:
  PYBIND11_OBJECT_DEFAULT(AnyTraces, py::sequence, PySequence_Check)
};

/// A record, or None.
template <typename T>
using Maybe = std::optional<std::shared_ptr<T>>;
template <typename T>
const T* pointer(const Maybe<T>& record) {
  return record ? record->get() : nullptr;
}

/// A copy of a `glidepath.Trace`.
inline Trace trace_of(py::handle run) { return detail::fields_of<Trace>().read(run); }
inline std::vector<Trace> traces_of(const AnyTraces& runs) {
  std::vector<Trace> traces;
  for (const py::handle run : runs) traces.push_back(trace_of(run));
  return traces;
}

inline Execution execution_of(int threads) {
  if (threads < 0) {
    throw InputError("threads is " + std::to_string(threads) + ", expected 0 or more");
  }
  return {.threads = threads};
}

}  // namespace glidepath::python
