// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <string>
#include <utility>
#include <vector>

#include "numpy_view.hpp"
#include "record.hpp"

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

/// The bytes of a name.
struct Text {
  std::string bytes{};
  friend bool operator==(const Text&, const Text&) = default;
};

}  // namespace

template <>
struct Convert<Text> {
  static std::string type() { return "str"; }
  static Text in(py::handle value, const Where& where) {
    return {Convert<std::string>::in(value, where)};
  }
  static py::str out(const Text& text) { return name_of(text.bytes); }
};

template <>
struct Names<Direction> {
  static Direction parse(const std::string& text) { return direction_named(text); }
};

namespace {

template <std::string Trace::*member>
Text text_of(const Trace& trace) {
  return {trace.*member};
}
template <std::string Trace::*member>
void set_text(Trace& trace, Text text) {
  trace.*member = std::move(text.bytes);
}

std::vector<Trace> read_curves(const py::bytes& path, const std::string& metric) {
  const std::string file = path;
  const py::gil_scoped_release release;
  return read_long_csv(file, metric);
}

Cleaned clean_trace(const Trace& raw, int max_points, double winsorise_sigmas) {
  const py::gil_scoped_release release;
  return clean(raw, {.max_points = max_points, .winsorise_sigmas = winsorise_sigmas});
}

void validate_columns(const ArrayLike& step, const ArrayLike& loss) {
  const DoubleArray steps = borrow(step, "step");
  const DoubleArray losses = borrow(loss, "loss");
  validate({view(steps), view(losses), {}});
}

}  // namespace
}  // namespace glidepath::python

void bind_trace(py::module_& module) {
  using namespace glidepath;          // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  using namespace py::literals;       // NOLINT(google-build-using-namespace): "name"_a

  Record<Trace>(module, "TraceRecord", "A trace as the library has it; an empty column is absent.")
      .required("step", &Trace::step)
      .required("loss", &Trace::loss)
      .keyword("lr", &Trace::lr)
      .keyword("wall_seconds", &Trace::wall_seconds)
      .keyword("name", &text_of<&Trace::name>, &set_text<&Trace::name>)
      .keyword("metric", &text_of<&Trace::metric>, &set_text<&Trace::metric>)
      .keyword("direction", &Trace::direction)
      .keyword("planned_steps", &Trace::planned_steps)
      .init();
  py::class_<Cleaned>(module, "CleanedRecord", "A cleaned trace and what was done to it.")
      .def_readonly("trace", &Cleaned::trace)
      .def_readonly("dropped_nonfinite", &Cleaned::dropped_nonfinite)
      .def_readonly("dropped_repeats", &Cleaned::dropped_repeats)
      .def_readonly("pulled_in", &Cleaned::pulled_in)
      .def_readonly("thinned", &Cleaned::thinned);
  module.def("read_long_csv", &read_curves, "path"_a, "metric"_a, "Every curve of a long CSV.");
  module.def("clean", &clean_trace, "trace"_a, py::kw_only(), "max_points"_a, "winsorise_sigmas"_a,
             "The cleaned trace and what was done to it.");
  module.def("validate_trace", &validate_columns, "step"_a, "loss"_a,
             "Throws InputError unless the columns make a trace.");
}
