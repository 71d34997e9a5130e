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

/// A record, or None.
template <typename T>
using Maybe = std::optional<std::shared_ptr<T>>;
template <typename T>
const T* pointer(const Maybe<T>& record) {
  return record ? record->get() : nullptr;
}

/// A copy of a `glidepath.Trace`.
inline Trace trace_of(py::handle run) { return detail::fields_of<Trace>().read(run); }
inline std::vector<Trace> traces_of(const py::sequence& runs) {
  std::vector<Trace> traces;
  for (const py::handle run : runs) traces.push_back(trace_of(run));
  return traces;
}

inline Execution execution_of(int threads) {
  if (threads < 0) {
    throw InputError("threads is " + std::to_string(threads) + ", must not be negative");
  }
  return {.threads = threads};
}

}  // namespace glidepath::python
