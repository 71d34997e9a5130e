// SPDX-License-Identifier: Apache-2.0
// Values whose inside Python does not see: made by functions, read by properties.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace glidepath::python {

namespace py = pybind11;

template <typename T>
using OpaqueRecord = py::class_<T, std::shared_ptr<T>>;

/// The class of a record, whose objects come from C++ alone: `of` makes one from its fields by
/// name, which are what `state` gives. pybind11 would let `__new__` make one that holds no value,
/// and crash where it is used.
template <typename T>
OpaqueRecord<T> opaque_record(py::module_& module, const char* name) {
  OpaqueRecord<T> type(module, name);
  type.def_static("__new__", [](const py::object& self, const py::args&, const py::kwargs&) {
    throw py::type_error("this " + std::string(py::str(self.attr("__name__"))) +
                         " was never initialized: functions make it, not __new__");
  });
  return type;
}

/// A column or matrix of a record as a read-only array that keeps the record alive.
inline py::array_t<double> field(const double* data, std::vector<py::ssize_t> shape,
                                 const py::object& record) {
  py::array_t<double> array(std::move(shape), data, record);
  array.attr("flags").attr("writeable") = false;
  return array;
}
inline py::array_t<double> field(const std::vector<double>& column, const py::object& record) {
  return field(column.data(), {static_cast<py::ssize_t>(column.size())}, record);
}

}  // namespace glidepath::python
