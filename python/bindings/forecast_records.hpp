// SPDX-License-Identifier: Apache-2.0
// What the bindings of forecast, watch and training share.
#pragma once

#include "glidepath/forecast.hpp"
#include "glidepath/trace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "numpy_view.hpp"
#include "opaque_record.hpp"

namespace glidepath::python {

/// A table of constants, parsed once.
struct ConstantsRecord {
  std::shared_ptr<const ForecastConstants> table;
};

/// A record, or None.
template <typename T>
using Maybe = std::optional<std::shared_ptr<T>>;
template <typename T>
const T* pointer(const Maybe<T>& record) {
  return record ? record->get() : nullptr;
}

/// None = the learned table.
inline std::shared_ptr<const ForecastConstants> table_of(const Maybe<ConstantsRecord>& constants) {
  return constants ? (*constants)->table : nullptr;
}

inline std::vector<double> copied(const DoubleArray& array) {
  return {array.data(), array.data() + array.size()};
}

/// The columns of one `glidepath.Trace`, borrowed.
struct TraceColumns {
  DoubleArray step, loss, lr;

  explicit TraceColumns(py::handle trace)
      : step(borrow(trace.attr("step"), "step")),
        loss(borrow(trace.attr("loss"), "loss")),
        lr(borrow_or_empty(trace.attr("lr"), "lr")) {}
  [[nodiscard]] TraceView view() const {
    return {python::view(step), python::view(loss), {}, python::view(lr)};
  }
};

/// Copies of a sequence of `glidepath.Trace`.
inline std::vector<Trace> traces_of(const py::sequence& runs) {
  std::vector<Trace> traces;
  traces.reserve(runs.size());
  for (const py::handle run : runs) {
    const TraceColumns columns(run);
    Trace trace{.name = py::cast<std::string>(run.attr("name"))};
    trace.step = copied(columns.step);
    trace.loss = copied(columns.loss);
    trace.lr = copied(columns.lr);
    trace.direction = direction_named(py::cast<std::string>(run.attr("direction")));
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace glidepath::python
