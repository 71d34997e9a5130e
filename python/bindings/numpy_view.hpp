// SPDX-License-Identifier: Apache-2.0
// numpy arrays as the spans and matrices that the C++ stages take, and back.
//
// Going in, a C-contiguous float64 array is borrowed; what converts without loss (lists, integers,
// float32, strided views) is copied; another kind is a TypeError that names the argument, another
// number of dimensions an InputError. Coming out, a vector's memory is handed over to numpy.
// Borrowed arrays stay alive as long as the `DoubleArray` that holds them, so views may be used
// after the GIL is released.
#pragma once

#include "glidepath/error.hpp"
#include "glidepath/rows.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace glidepath::python {

namespace py = pybind11;

using DoubleArray = py::array_t<double, py::array::c_style>;
using Int64Array = py::array_t<std::int64_t, py::array::c_style>;

namespace detail {

/// Lists within a list that make no table are refused as such, not as what is no array.
inline void refuse_ragged(py::handle object, const char* name) {
  try {
    py::module_::import("numpy").attr("asarray")(object);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError)) return;
    throw InputError(std::string(name) + ": its rows differ in length");
  }
}

/// No stage knows of values that are there and do not count.
inline void refuse_masked(py::handle object, const char* name) {
  auto* const array = py::detail::npy_api::get().PyArray_Type_;
  if (Py_TYPE(object.ptr()) == array || !py::hasattr(object, "mask")) return;
  if (!py::module_::import("numpy").attr("ma").attr("is_masked")(object).cast<bool>()) return;
  throw InputError(std::string(name) + ": some values are masked, leave them out or fill them");
}

template <typename T>
py::array_t<T, py::array::c_style> borrow(py::handle object, const char* name, int ndim,
                                          const char* kinds, const char* wanted) {
  using Array = py::array_t<T, py::array::c_style>;
  refuse_masked(object, name);
  if (Array::check_(object)) {  // already what is wanted: nothing to convert
    auto array = py::reinterpret_borrow<Array>(object);
    if (array.ndim() == ndim) return array;
  }
  const auto found = py::array::ensure(object);
  if (!found) {
    PyErr_Clear();
    refuse_ragged(object, name);
    throw py::type_error(std::string(name) + ": expected an array of " + wanted + ", got " +
                         std::string(py::str(py::type::handle_of(object).attr("__name__"))));
  }
  // An empty list is an array of float64 to numpy, whatever was meant.
  const char kind = found.dtype().kind();
  if (std::string(kinds).find(kind) == std::string::npos && found.size() > 0) {
    throw py::type_error(std::string(name) + ": expected an array of " + wanted + ", got dtype " +
                         std::string(py::str(found.dtype())));
  }
  if (found.ndim() != ndim) {
    throw InputError(std::string(name) + ": expected " + std::to_string(ndim) +
                     (ndim == 1 ? " dimension, got " : " dimensions, got ") +
                     std::to_string(found.ndim()));
  }
  auto array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(found);
  if (!array) throw py::error_already_set();
  return py::reinterpret_borrow<Array>(array);
}

}  // namespace detail

/// Array argument of `ndim` dimensions. Throws TypeError naming the argument on complex, text or
/// object arrays, InputError on another number of dimensions.
inline DoubleArray borrow(py::handle object, const char* name, int ndim = 1) {
  return detail::borrow<double>(object, name, ndim, "fiub", "numbers");
}

/// The same for columns of indices and counts: no fractions.
inline Int64Array borrow_int64(py::handle object, const char* name, int ndim = 1) {
  return detail::borrow<std::int64_t>(object, name, ndim, "iu", "integers");
}

template <typename T>
std::span<const T> view(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

inline RowsView rows(const DoubleArray& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}
inline MutableRowsView mutable_rows(DoubleArray& array) {
  return {array.mutable_data(), array.shape(0), array.shape(1)};
}

/// The array to write into: a new one for None, else the caller's own, which must be writeable
/// C-contiguous float64 of exactly this shape (a TypeError says what differs; never a copy).
inline DoubleArray output(py::handle out, const std::vector<py::ssize_t>& shape) {
  if (out.is_none()) return DoubleArray(shape);
  if (!py::isinstance<DoubleArray>(out)) {
    throw py::type_error("out: expected a C-contiguous numpy array of float64");
  }
  auto array = py::reinterpret_borrow<DoubleArray>(out);
  if (!array.writeable()) throw py::type_error("out: the array is read-only");
  bool same = array.ndim() == static_cast<py::ssize_t>(shape.size());
  for (std::size_t axis = 0; same && axis < shape.size(); ++axis) {
    same = array.shape(static_cast<py::ssize_t>(axis)) == shape[axis];
  }
  if (!same) {
    throw py::type_error("out: expected shape " + std::string(py::str(py::cast(shape))) + ", got " +
                         std::string(py::str(py::list(array.attr("shape")))));
  }
  return array;
}

/// Hands the memory of a vector or of Rows to numpy without a copy.
template <typename Values>
requires(!std::is_reference_v<Values>) auto adopt(Values&& values,
                                                  std::vector<py::ssize_t> shape = {}) {
  using T = std::remove_cvref_t<decltype(*values.data())>;
  if (shape.empty()) shape = {static_cast<py::ssize_t>(values.size())};
  auto owner = std::make_unique<Values>(std::move(values));
  const T* data = owner->data();
  const py::capsule free(owner.get(), [](void* p) { delete static_cast<Values*>(p); });
  owner.release();  // NOLINT(bugprone-unused-return-value): the capsule owns it now
  return py::array_t<T>(std::move(shape), data, free);
}

/// Makes an array read-only: what is written into a copy that a property gives would be lost.
template <typename Array>
Array read_only(Array array) {
  array.attr("flags").attr("writeable") = false;
  return array;
}

}  // namespace glidepath::python
