// SPDX-License-Identifier: Apache-2.0
// Paths from Python, in place of pybind11/stl/filesystem.h: that one takes a path that no file can
// have, such as one with a NUL, for an argument of another type.
#pragma once

#include "glidepath/error.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <pybind11/pybind11.h>

#include "convert.hpp"

namespace glidepath::python {

/// The path that `value` is, or none where it has another type. Throws InputError, in which it is
/// called `name`, where no file can have that path.
inline std::optional<std::filesystem::path> path_of(py::handle value, std::string_view name) {
  const auto text = py::reinterpret_steal<py::object>(PyOS_FSPath(value.ptr()));
  if (!text) {
    if (py::hasattr(value, "__fspath__")) throw py::error_already_set();
    PyErr_Clear();
    return std::nullopt;
  }
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(text.ptr(), &encoded) == 0) {
    const bool has_nul = PyErr_ExceptionMatches(PyExc_UnicodeError) == 0;
    PyErr_Clear();
    throw InputError(std::string(name) + " is " + on_one_line(text) +
                     (has_nul ? ", expected a path without a NUL" : ", expected text in Unicode"));
  }
  const auto bytes = py::reinterpret_steal<py::bytes>(encoded);
  return std::filesystem::path(std::string(bytes));
}

}  // namespace glidepath::python

template <>
struct pybind11::detail::type_caster<std::filesystem::path> {
  PYBIND11_TYPE_CASTER(std::filesystem::path, const_name("os.PathLike | str | bytes"));
  bool load(handle given, bool /*convert*/) {
    auto found = glidepath::python::path_of(given, "path");
    if (found) value = std::move(*found);
    return found.has_value();
  }
};
