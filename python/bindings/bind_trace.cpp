// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <string>
#include <variant>

#include "long_call.hpp"
#include "path.hpp"
#include "record.hpp"

namespace py = pybind11;

namespace glidepath::python {

template <>
struct Names<Direction> {
  static Direction parse(const std::string& text) { return direction_named(text); }
};

/// A dict of numbers and words; True and False are words.
template <>
struct Convert<Settings> {
  static std::string type() { return "collections.abc.Mapping[str, float | str | bool]"; }
  static Settings in(py::handle value, const Where& where) {
    if (!py::isinstance<py::dict>(value)) where.refuse(value, "a dict of numbers and words");
    Settings settings;
    for (const auto& [key, setting] : py::reinterpret_borrow<py::dict>(value)) {
      const std::string name = Convert<std::string>::in(key, where);
      const std::string field = std::string(where.field) + "['" + name + "']";
      const Where inside{where.record, field};
      if (py::isinstance<py::str>(setting)) {
        settings[name] = Convert<std::string>::in(setting, inside);
      } else if (py::isinstance<py::bool_>(setting)) {
        settings[name] = std::string(setting.cast<bool>() ? "True" : "False");
      } else {
        settings[name] = Convert<double>::in(setting, inside);
      }
    }
    return settings;
  }
  static py::dict out(const Settings& settings) {
    py::dict out;
    for (const auto& [name, setting] : settings) {
      const double* number = std::get_if<double>(&setting);
      out[Convert<std::string>::out(name)] =
          number != nullptr ? py::object(py::float_(*number))
                            : py::object(Convert<std::string>::out(std::get<std::string>(setting)));
    }
    return out;
  }
};

namespace {

Cleaned clean_trace(const Trace& raw, int max_points, double winsorize_sigmas) {
  const LongCall call;
  return clean(raw, {.max_points = max_points, .winsorize_sigmas = winsorize_sigmas});
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
      .keyword("name", &Trace::name)
      .keyword("metric", &Trace::metric)
      .keyword("direction", &Trace::direction)
      .keyword("planned_steps", &Trace::planned_steps)
      .keyword("settings", &Trace::settings)
      .keyword("notes", &Trace::notes)
      .init();
  py::class_<Cleaned>(module, "CleanedRecord", "A cleaned trace and what was done to it.")
      .def_readonly("trace", &Cleaned::trace)
      .def_readonly("dropped_nonfinite", &Cleaned::dropped_nonfinite)
      .def_readonly("dropped_repeats", &Cleaned::dropped_repeats)
      .def_readonly("pulled_in", &Cleaned::pulled_in)
      .def_readonly("thinned", &Cleaned::thinned);
  module.def("read_long_csv", &read_long_csv, "path"_a, "metric"_a, py::call_guard<LongCall>());
  module.attr("CLEAN_POINTS") = CleanOptions{}.max_points;
  module.def("clean", &clean_trace, "trace"_a, py::kw_only(), "max_points"_a.noconvert(),
             "winsorize_sigmas"_a, "The cleaned trace and what was done to it.");
  module.def("validate_trace", &validate_columns, "step"_a, "loss"_a,
             "Throws InputError unless the columns make a trace.");
}
