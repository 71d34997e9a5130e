// SPDX-License-Identifier: Apache-2.0
// How a value travels between Python and C++, type by type: read in, refused in a sentence, given
// back, and what the stub says of it. A stage specialises `Convert` for its own types, and `Names`
// for an enum that Python knows by name.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "numpy_view.hpp"

namespace glidepath::python {
class ArrayLike;
class JsonLike;
class Anything;
}  // namespace glidepath::python
template <>
struct pybind11::detail::handle_type_name<glidepath::python::ArrayLike> {
  static constexpr auto name = const_name("numpy.typing.ArrayLike");
};
template <>
struct pybind11::detail::handle_type_name<glidepath::python::JsonLike> {
  static constexpr auto name = const_name("collections.abc.Mapping[str, typing.Any]");
};
template <>
struct pybind11::detail::handle_type_name<glidepath::python::Anything> {
  static constexpr auto name = const_name("object");
};

namespace glidepath::python {

/// An argument that numpy can read; the stub says so.
class ArrayLike : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(ArrayLike, py::object, anything)
 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};

/// A document of JSON that `from_dict` reads; what is none it refuses itself.
class JsonLike : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(JsonLike, py::object, anything)
 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};

/// What no type narrows.
class Anything : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(Anything, py::object, anything)
 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};

// What the stub says of dicts that Python gets.
using Document = py::typing::Dict<py::str, py::object>;
using ArraysByName = py::typing::Dict<py::str, py::array>;
using NumbersByName = py::typing::Dict<py::str, py::float_>;
using MaybeArray = py::typing::Optional<py::array>;

/// How Python shows a value, no longer than one line is.
inline std::string on_one_line(py::handle value) {
  const py::str line(py::str(" ").attr("join")(py::repr(value).attr("split")()));
  if (py::len(line) <= 80) return std::string(line);
  return std::string(py::str(line[py::slice(0, 77, 1)])) + "...";
}

/// The argument that is being read, for the sentence that refuses it.
struct Where {
  std::string_view record{}, field{};

  [[noreturn]] void refuse(py::handle value, std::string_view expected) const {
    throw py::type_error(std::string(record) + ": " + std::string(field) + " is " +
                         on_one_line(value) + ", expected " + std::string(expected));
  }
  /// Refuses a whole number that so many bits do not hold: its type is right, its value is not.
  [[noreturn]] void refuse_range(py::handle value, bool from_zero, std::size_t bits) const {
    const bool negative = from_zero && value.attr("__index__")() < py::int_(0);
    throw InputError(
        std::string(record) + ": " + std::string(field) + " is " + on_one_line(value) +
        ", expected " +
        (negative ? "0 or more" : "a whole number of at most " + std::to_string(bits) + " bits"));
  }
};

/// What `name_of` gives of each, as a sentence lists it.
template <class Range, class Name>
std::string listed(const Range& all, Name name_of) {
  std::string list;
  for (const auto& each : all) {
    list += (list.empty() ? "" : ", ") + std::string(std::invoke(name_of, each));
  }
  return list;
}

/// Names<E>::parse(text) gives the enumerator; `name(E)` gives the text.
template <class E>
struct Names;

/// The enumerator of `all` with this name; `what` says of which kind, where there is none.
template <class E, std::size_t size>
E named(const std::array<E, size>& all, const std::string& text, const char* what) {
  const auto name_of = [](E each) { return name(each); };
  const auto found = std::ranges::find(all, text, name_of);
  if (found != all.end()) return *found;
  const std::string known =
      size == 2 ? std::string(name(all.front())) + " or " + std::string(name(all.back()))
                : "one of " + listed(all, name_of);
  throw InputError(std::string(what) + " '" + text + "', expected " + known);
}

/// The names of `all`, as Python has them.
template <class E, std::size_t size>
py::tuple names_of(const std::array<E, size>& all) {
  py::list names;
  for (const E each : all) names.append(name(each));
  return py::tuple(names);
}

/// `name` of a module of Python.
inline py::object imported(const char* module, const char* name) {
  return py::module_::import(module).attr(name);
}

/// in(): from Python, refusing in a sentence; out(): to Python; type(): what a stub says of in();
/// hint(): the type of out(), where there is one, for `from_dict`. This one is of a bound class.
template <class M>
struct Convert {
  static std::string type() {
    const auto cls = py::type::of<M>();
    return std::string(py::str(cls.attr("__module__"))) + "." +
           std::string(py::str(cls.attr("__qualname__")));
  }
  static M in(py::handle value, const Where& where) {
    if (!py::isinstance<M>(value)) {
      const std::string cls(py::str(py::type::of<M>().attr("__name__")));
      const bool vowel = std::string_view("AEIO").find(cls.front()) != std::string_view::npos;
      where.refuse(value, (vowel ? "an " : "a ") + cls);
    }
    return value.cast<M>();
  }
  static const M& out(const M& value) { return value; }
  static py::object hint() { return py::type::of<M>(); }
};

template <>
struct Convert<bool> {
  static std::string type() { return "bool"; }
  static py::object hint() { return imported("builtins", "bool"); }
  static bool in(py::handle value, const Where& where) {
    py::detail::make_caster<bool> caster;  // also numpy's
    if (!caster.load(value, false)) where.refuse(value, "True or False");
    return py::detail::cast_op<bool>(caster);
  }
  static bool out(bool value) { return value; }
};

template <std::integral M>
struct Convert<M> {
  static std::string type() { return "typing.SupportsIndex"; }
  static py::object hint() { return imported("builtins", "int"); }
  static M in(py::handle value, const Where& where) {
    const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!whole) {  // an array of one number, too, that is none
      PyErr_Clear();
      where.refuse(value, "a whole number");
    }
    py::detail::make_caster<M> caster;
    if (!caster.load(whole, true)) {
      PyErr_Clear();
      where.refuse_range(value, std::is_unsigned_v<M>, 8 * sizeof(M));
    }
    return py::detail::cast_op<M>(caster);
  }
  static M out(M value) { return value; }
};

template <std::floating_point M>
struct Convert<M> {
  static std::string type() { return "typing.SupportsFloat | typing.SupportsIndex"; }
  static py::object hint() { return imported("builtins", "float"); }
  static M in(py::handle value, const Where& where) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      where.refuse(value, "a number");
    }
    return number;
  }
  static M out(M value) { return value; }
};

/// Text in whatever encoding a file has: UTF-8, else each byte is a character (Latin-1).
template <>
struct Convert<std::string> {
  static std::string type() { return "str"; }
  static py::object hint() { return imported("builtins", "str"); }
  static std::string in(py::handle value, const Where& where) {
    if (!py::isinstance<py::str>(value)) where.refuse(value, "text");
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
      where.refuse(value, "text that UTF-8 can hold");
    }
    return {text, static_cast<std::size_t>(size)};
  }
  static py::str out(const std::string& value) {
    const auto size = static_cast<Py_ssize_t>(value.size());
    PyObject* text = PyUnicode_DecodeUTF8(value.data(), size, nullptr);
    if (text == nullptr) {
      PyErr_Clear();
      text = PyUnicode_DecodeLatin1(value.data(), size, nullptr);
    }
    if (text == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(text);
  }
};

template <class M>
requires std::is_enum_v<M>
struct Convert<M> {
  static std::string type() { return "str"; }
  static py::object hint() { return imported("builtins", "str"); }
  static M in(py::handle value, const Where& where) {
    return Names<M>::parse(Convert<std::string>::in(value, where));
  }
  static std::string out(M value) { return std::string(name(value)); }
};

/// Arrays of a type of numpy's.
inline py::object array_hint(const char* dtype) {
  return imported("numpy.typing", "NDArray")[imported("numpy", dtype)];
}

/// Dicts of two types of the language.
inline py::object dict_hint(const char* key, const char* value) {
  return imported("builtins",
                  "dict")[py::make_tuple(imported("builtins", key), imported("builtins", value))];
}

/// A column of numbers: any array-like, one number, None is empty; to Python a read-only copy.
template <>
struct Convert<std::vector<double>> {
  static std::string type() { return "numpy.typing.ArrayLike | None"; }
  static py::object hint() { return array_hint("float64"); }
  static std::vector<double> in(py::handle value, const Where& where) {
    if (value.is_none()) return {};
    if (PyFloat_Check(value.ptr()) != 0 || PyLong_CheckExact(value.ptr()) != 0) {
      return {Convert<double>::in(value, where)};
    }
    const DoubleArray array = borrow(value, std::string(where.field).c_str());
    return {array.data(), array.data() + array.size()};
  }
  static py::array_t<double> out(std::vector<double> values) {
    return read_only(adopt(std::move(values)));
  }
};

/// A matrix, in the same way.
template <>
struct Convert<Rows> {
  static std::string type() { return "numpy.typing.ArrayLike"; }
  static py::object hint() { return array_hint("float64"); }
  static Rows in(py::handle value, const Where& where) {
    return Rows(rows(borrow(value, std::string(where.field).c_str(), 2)));
  }
  static py::array_t<double> out(Rows matrix) {
    const std::vector<py::ssize_t> shape{matrix.rows(), matrix.cols()};
    return read_only(adopt(std::move(matrix), shape));
  }
};

/// As many values as the struct has: a tuple in Python.
template <class M, std::size_t size>
struct Convert<std::array<M, size>> {
  static std::string type() { return "collections.abc.Sequence[" + Convert<M>::type() + "]"; }
  static std::array<M, size> in(py::handle value, const Where& where) {
    const auto values = Convert<std::vector<M>>::in(value, where);
    if (values.size() != size) where.refuse(value, std::to_string(size) + " values");
    std::array<M, size> out{};
    std::copy(values.begin(), values.end(), out.begin());
    return out;
  }
  static auto out(const std::array<M, size>& values) { return std::tuple_cat(values); }
  static py::object hint() {
    return imported("builtins", "tuple")[py::make_tuple(Convert<M>::hint(), py::ellipsis())];
  }
};

/// A column of whole numbers, as an array; a plain vector of them is a list in Python.
struct Indices {
  std::vector<std::int64_t> values{};
  friend bool operator==(const Indices&, const Indices&) = default;
};
template <>
struct Convert<Indices> {
  static std::string type() { return "numpy.typing.ArrayLike"; }
  static py::object hint() { return array_hint("int64"); }
  static Indices in(py::handle value, const Where& where) {
    const Int64Array array = borrow_int64(value, std::string(where.field).c_str());
    return {{array.data(), array.data() + array.size()}};
  }
  static py::array_t<std::int64_t> out(Indices column) {
    return read_only(adopt(std::move(column.values)));
  }
};

/// A list; any iterable goes in.
template <class M>
struct Convert<std::vector<M>> {
  static std::string type() { return "collections.abc.Sequence[" + Convert<M>::type() + "]"; }
  static py::object hint() { return imported("builtins", "list")[Convert<M>::hint()]; }
  static std::vector<M> in(py::handle value, const Where& where) {
    if (!py::isinstance<py::iterable>(value) || py::isinstance<py::str>(value)) {
      where.refuse(value, "a list");
    }
    std::vector<M> out;
    for (const py::handle item : value) {
      const std::string field = std::string(where.field) + "[" + std::to_string(out.size()) + "]";
      out.push_back(Convert<M>::in(item, {where.record, field}));
    }
    return out;
  }
  static decltype(auto) out(const std::vector<M>& values) {
    if constexpr (std::is_enum_v<M>) {
      std::vector<std::string> names;
      for (const M each : values) names.push_back(Convert<M>::out(each));
      return names;
    } else {
      return (values);
    }
  }
};

/// None is without.
template <class M>
struct Convert<std::optional<M>> {
  static std::string type() { return Convert<M>::type() + " | None"; }
  static std::optional<M> in(py::handle value, const Where& where) {
    if (value.is_none()) return std::nullopt;
    return Convert<M>::in(value, where);
  }
  static auto out(const std::optional<M>& value) {
    using Out = std::decay_t<decltype(Convert<M>::out(*value))>;
    return value ? std::optional<Out>(Convert<M>::out(*value)) : std::nullopt;
  }
  static py::object hint() { return imported("typing", "Optional")[Convert<M>::hint()]; }
};

/// A record that is shared; None is without.
template <class M>
struct Convert<std::shared_ptr<M>> {
  static std::string type() { return Convert<M>::type() + " | None"; }
  static std::shared_ptr<M> in(py::handle value, const Where& where) {
    if (value.is_none()) return nullptr;
    if (!py::isinstance<M>(value)) {
      where.refuse(value, std::string(py::str(py::type::of<M>().attr("__name__"))) + " or None");
    }
    return value.cast<std::shared_ptr<M>>();
  }
  static std::optional<std::shared_ptr<M>> out(const std::shared_ptr<M>& value) { return value; }
  static py::object hint() { return imported("typing", "Optional")[Convert<M>::hint()]; }
};

/// What `from_dict` knows of a field; a type without a hint is read as JSON has it.
template <class M>
py::object hint_of() {
  if constexpr (requires { Convert<M>::hint(); }) {
    return Convert<M>::hint();
  } else {
    return imported("typing", "Any");
  }
}

}  // namespace glidepath::python
