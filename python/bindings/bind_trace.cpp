// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <optional>
#include <string>
#include <utility>

#include "numpy_view.hpp"

namespace py = pybind11;

namespace glidepath::python {
namespace {

/// Names come in whatever encoding a file has: UTF-8, else each byte is a character (Latin-1).
py::str name_of(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), size, nullptr);
  if (text == nullptr) {
    PyErr_Clear();
    text = PyUnicode_DecodeLatin1(bytes.data(), size, nullptr);
  }
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

py::object column_or_none(std::vector<double>&& column) {
  if (column.empty()) return py::none();
  return adopt(std::move(column));
}

/// (step, loss, lr or None, wall_seconds or None, name, direction)
py::tuple columns_of(Trace&& trace) {
  return py::make_tuple(adopt(std::move(trace.step)), adopt(std::move(trace.loss)),
                        column_or_none(std::move(trace.lr)),
                        column_or_none(std::move(trace.wall_seconds)), name_of(trace.name),
                        py::str(std::string(name(trace.direction))));
}

py::list read_curves(const py::bytes& path, const std::string& metric) {
  const std::string file = path;
  std::vector<Trace> traces;
  {
    const py::gil_scoped_release release;
    traces = read_long_csv(file, metric);
  }
  py::list columns;
  for (Trace& trace : traces) columns.append(columns_of(std::move(trace)));
  return columns;
}

py::tuple clean_columns(const py::object& step, const py::object& loss, const py::object& lr,
                        const py::object& wall_seconds, int max_points, double winsorise_sigmas) {
  const auto owned = [](const py::object& object, const char* what) {
    const DoubleArray array = borrow_or_empty(object, what);
    return std::vector<double>(array.data(), array.data() + array.size());
  };
  Trace raw;
  raw.step = owned(step, "step");
  raw.loss = owned(loss, "loss");
  raw.lr = owned(lr, "lr");
  raw.wall_seconds = owned(wall_seconds, "wall_seconds");
  Cleaned cleaned;
  {
    const py::gil_scoped_release release;
    cleaned = clean(raw, {.max_points = max_points, .winsorise_sigmas = winsorise_sigmas});
  }
  return py::make_tuple(columns_of(std::move(cleaned.trace)), cleaned.dropped_nonfinite,
                        cleaned.dropped_repeats, cleaned.pulled_in, cleaned.thinned);
}

void validate_columns(const py::object& step, const py::object& loss) {
  const DoubleArray steps = borrow(step, "step");
  const DoubleArray losses = borrow(loss, "loss");
  validate({view(steps), view(losses), {}});
}

}  // namespace
}  // namespace glidepath::python

void bind_trace(py::module_& module) {
  using namespace glidepath::python;
  module.def("read_long_csv", &read_curves, py::arg("path"), py::arg("metric"),
             "Every curve of a long CSV as (step, loss, lr, wall_seconds, name, direction).");
  module.def("clean_columns", &clean_columns, py::arg("step"), py::arg("loss"), py::arg("lr"),
             py::arg("wall_seconds"), py::arg("max_points"), py::arg("winsorise_sigmas"),
             "The cleaned columns and what was done: (columns, dropped_nonfinite, "
             "dropped_repeats, pulled_in, thinned).");
  module.def("validate_trace", &validate_columns, py::arg("step"), py::arg("loss"),
             "Throws InputError unless the columns make a trace.");
}
