// SPDX-License-Identifier: Apache-2.0
// The readers of logs: those of the common formats, and what the ones in Python share with them.
#include "glidepath/error.hpp"
#include "glidepath/trace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "common/utf16.hpp"
#include "long_call.hpp"
#include "path.hpp"
#include "record.hpp"
#include "trace/metric_name.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/names.hpp"
#include "trace/readers/rows.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/series.hpp"
#include "trace/readers/text.hpp"

namespace py = pybind11;

namespace glidepath::python {
namespace {

using namespace glidepath::detail;  // NOLINT(google-build-using-namespace)
using Path = std::filesystem::path;

/// A text of Python as UTF-8: what has no form in it, half a pair of surrogates, as its escape.
std::string text_of(py::handle text) {
  PyObject* const bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace");
  if (bytes == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes);
}

std::optional<std::string> metric_of(const std::optional<py::str>& metric) {
  if (!metric) return {};
  return text_of(*metric);
}

/// Adds the cells of a row to what was read so far; what is no number is left out.
void add_row(LogRows& rows, const py::typing::Dict<py::str, Anything>& cells) {
  for (const auto& [key, value] : cells) {
    PyObject* const given = value.ptr();
    if (PyFloat_Check(given) != 0) {
      rows.put_cell(text_of(key), PyFloat_AS_DOUBLE(given));
    } else if (PyLong_Check(given) != 0 && PyBool_Check(given) == 0) {
      const double number = PyLong_AsDouble(given);
      const bool fits = !(number == -1.0 && PyErr_Occurred() != nullptr);
      if (fits) rows.put_cell(text_of(key), number);
      PyErr_Clear();
    } else if (PyBool_Check(given) != 0) {
      rows.label(text_of(key), given == Py_True ? "true" : "false");
    } else if (PyUnicode_Check(given) != 0) {
      rows.put(text_of(key), std::string_view(text_of(value)));
    }
  }
  rows.end_row();
}

py::typing::Dict<py::str, Series> by_name(const SeriesByName& series) {
  py::typing::Dict<py::str, Series> found;
  for (const auto& [name, column] : series) found[py::str(name)] = column;
  return found;
}

Points points_of(const NumbersByName& given) {
  Points points;
  for (const auto& [name, count] : given) points.emplace_back(text_of(name), count.cast<double>());
  return points;
}

Trace trace_of(const py::typing::Dict<py::str, Series>& series,
               const std::optional<py::str>& metric, const py::str& label, const py::str& name,
               std::vector<std::string> notes, std::optional<double> planned_steps,
               Settings settings) {
  LoggedRun run{
      .notes = std::move(notes), .planned = planned_steps, .settings = std::move(settings)};
  for (const auto& [key, column] : series) {
    run.series.emplace_back(text_of(key), column.cast<std::shared_ptr<Series>>());
  }
  return to_trace(run, metric_of(metric), text_of(label), text_of(name));
}

using TextsByName = py::typing::Dict<py::str, py::str>;

/// The settings that texts spell, each read by `read`; one that cannot be read is left out.
template <class Read>
Settings settings_of(const TextsByName& texts, const Read& read) {
  Json all{.kind = Json::Kind::object};
  for (const auto& [name, text] : texts) {
    try {
      all.members.emplace_back(text_of(name), read(text_of(text)));
    } catch (const JsonError&) {
      continue;
    }
  }
  Settings found;
  put_settings(found, all);
  return found;
}

/// For the readers in Python, which open files by themselves.
void bind_utf16(py::module_& module) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a
  module.attr("UTF16_FRONT") = kUtf16Front;
  module.def(
      "is_utf16", [](const py::bytes& front) { return is_utf16(std::string_view(front)); },
      "front"_a, "Whether a file that begins so is UTF-16.");
  module.def(
      "utf8_of_utf16",
      [](const py::bytes& data) { return py::bytes(utf8_of_utf16(std::string_view(data))); },
      "data"_a, "The bytes of such a file as UTF-8.");
}

void bind_settings(py::module_& module) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a
  module.def(
      "settings_of_texts",
      [](const TextsByName& texts) {
        return settings_of(texts, [](const std::string& text) { return plain_scalar(text); });
      },
      "texts"_a, "The settings among plain texts by name.");
  module.def(
      "settings_of_json",
      [](const TextsByName& texts) {
        return settings_of(texts, [](const std::string& text) { return parse_json(text); });
      },
      "texts"_a, "The settings among values by name, each as JSON.");
  module.def(
      "settings_of_file",
      [](const Path& file) {
        LoggedRun run;
        put_settings_of_file(file, run);
        return std::pair{run.settings, run.notes};
      },
      "path"_a, "The settings that a JSON or YAML file has, and notes of what it is wrong with.");
}

template <std::size_t size>
py::tuple texts(const std::array<std::string_view, size>& names) {
  return py::tuple(py::cast(std::vector<std::string_view>(names.begin(), names.end())));
}

void bind_names(py::module_& module) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a
  module.attr("CLOCKS") = texts(kClocks);
  module.attr("STAMPS") = texts(kStamps);
  module.attr("TIMES") = texts(kTimes);
  module.attr("DATES") = texts(kDates);
  module.attr("SETTINGS_KEYS") = texts(kSettingsKeys);
  module.def(
      "normal_name", [](const py::str& name) { return normal(text_of(name)); }, "name"_a);
  module.def(
      "is_step_name", [](const py::str& name) { return counts_steps(normal(text_of(name))); },
      "name"_a);
  module.def(
      "is_step_within_epoch", [](const py::str& name) { return is_within(normal(text_of(name))); },
      "name"_a);
  module.def(
      "step_columns", [](const std::vector<std::string>& names) { return counters(names); },
      "names"_a, "The names that count steps, best first.");
  module.def(
      "names_run", [](const py::str& name) { return names_run(text_of(name)); }, "name"_a,
      "Whether a column tells of which run a row is.");
  module.def(
      "is_rate_name", [](const py::str& name) { return is_rate(text_of(name)); }, "name"_a);
  module.def(
      "is_metric_name", [](const py::str& name) { return is_metric(text_of(name)); }, "name"_a);
  module.def(
      "best_name", [](const NumbersByName& points) { return best_name(points_of(points)); },
      "points"_a);
  module.def(
      "direction_by_name",
      [](const py::str& name) -> std::optional<std::string_view> {
        const std::optional<Direction> known = direction_by_name(text_of(name));
        if (!known) return {};
        return glidepath::name(*known);
      },
      "name"_a);
  module.def(
      "reached_by_name", [](const py::str& name) { return reached_by_name(text_of(name)); },
      "name"_a);
}

/// The formats that the library reads: whether a file is of one, by how it begins, and its runs.
void bind_formats(py::module_& module) {
  using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a
  const auto head = [](const py::bytes& bytes) { return std::string_view(bytes); };
  const auto define = [&](const char* name, auto recognises, auto read) {
    module.def(
        (std::string("is_") + name).c_str(),
        [=](const Path& file, const py::bytes& bytes) { return recognises(file, head(bytes)); },
        "path"_a, "head"_a);
    module.def((std::string("read_") + name).c_str(),
               [=](const Path& file, const std::optional<py::str>& metric) {
                 const std::optional<std::string> wanted = metric_of(metric);
                 const LongCall call;
                 return read(file, wanted);
               },
               "path"_a, "metric"_a);
  };
  module.def(
      "header_of", [=](const py::bytes& bytes) { return header_of(head(bytes)); }, "head"_a,
      "The names of the columns in the first line of a CSV.");
  module.def(
      "is_long",
      [=](const Path& file, const py::bytes& bytes) { return is_long(file, head(bytes)); },
      "path"_a, "head"_a);
  module.def(
      "require_column",
      [=](const Path& file, const py::bytes& bytes, const std::optional<py::str>& metric) {
        require_column(file, head(bytes), metric_of(metric));
      },
      "path"_a, "head"_a, "metric"_a);
  module.def(
      "unknown_format",
      [=](const Path& file, const py::bytes& bytes, const std::string& formats) {
        return unknown_format(file, head(bytes), formats);
      },
      "path"_a, "head"_a, "formats"_a,
      "The format whose reader says what a file of none of them lacks.");
  define("trainer_state", &is_trainer_state, &read_trainer_state);
  module.def(
      "whole_state", [](const Path& file) { return py::bytes(whole_state(file).native()); },
      "path"_a, "The longest state of a run of the Trainer that begins as a file does.");
  define("json_lines", &is_json_lines, &read_json_lines);
  define("table", &is_table, &read_table);
  define("console", &is_console, &read_console);
}

}  // namespace
}  // namespace glidepath::python

void bind_readers(py::module_& module) {
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  using namespace py::literals;       // NOLINT(google-build-using-namespace): "name"_a

  const py::object base = module.attr("IoError");
  py::register_exception<AbsentError>(module, "AbsentError", base);
  py::register_exception<RefusedError>(module, "RefusedError", base);
  bind_names(module);
  py::class_<Series, std::shared_ptr<Series>>(module, "Series",
                                              "One metric as it was logged, nothing repaired yet.")
      .def(py::init<>())
      .def("add", &Series::add, "step"_a, "value"_a,
           "seconds"_a = std::numeric_limits<double>::quiet_NaN(), "Append a row.")
      .def("__len__", [](const Series& series) { return series.step.size(); })
      .def_readonly("value", &Series::value)
      .def_readonly("seconds", &Series::seconds)
      .def("count_seconds", &Series::count_seconds, "origin"_a, "ticks"_a,
           "Count the seconds from an origin, of so many ticks in each.");
  py::class_<LoggedRun>(module, "RunRecord", "What a reader found in a file of one run.")
      .def_readonly("name", &LoggedRun::name, "Of a file with several runs; else empty.")
      .def_property_readonly("series", [](const LoggedRun& run) { return by_name(run.series); })
      .def_readonly("notes", &LoggedRun::notes)
      .def_readonly("planned_steps", &LoggedRun::planned)
      .def_readonly("settings", &LoggedRun::settings);
  py::class_<LogRows>(module, "LogRows", "Rows as they were logged, a column a name.")
      .def(py::init<>())
      .def("add", &add_row, "cells"_a, "Append a row; what is no number is left out.")
      .def("put_column", &LogRows::put_column, "name"_a, "rows"_a, "values"_a,
           "Put a column: its values, and the rows in which they stand.")
      .def("put_labels", &LogRows::put_labels, "name"_a, "rows"_a, "codes"_a, "texts"_a,
           "Put a column of names: the rows in which they stand, and of each which of the texts.")
      .def_property_readonly("names", &LogRows::names)
      .def(
          "series", [](const LogRows& rows) { return by_name(rows.series()); },
          "Each metric by its steps.")
      .def(
          "runs", [](const LogRows& rows) { return runs_of(rows, {}); },
          "The run, or each that a column tells apart.");
  module.def("trace_of", &trace_of, "series"_a, "metric"_a, "label"_a, "name"_a, "notes"_a,
             "planned_steps"_a, "settings"_a, "The trace of one run.");
  module.def(
      "choose",
      [](const NumbersByName& points, const std::optional<py::str>& metric, const py::str& label) {
        return choose(points_of(points), metric_of(metric), text_of(label));
      },
      "points"_a, "metric"_a, "label"_a, "The metric to read.");
  module.def(
      "number_in", [](const py::str& text) { return number_in(text_of(text)); }, "text"_a,
      "The number that a text spells, or None.");
  module.def(
      "head_of", [](const Path& file) { return py::bytes(head_of(file)); }, "path"_a,
      "How a file begins, unpacked.");
  bind_settings(module);
  bind_utf16(module);
  bind_formats(module);
}
