// SPDX-License-Identifier: Apache-2.0
// Records: C++ structs that Python makes by keyword, reads, compares, prints, copies and pickles.
// All of it follows from one table of fields:
//
//   Record<Tier>(module, "Tier", "A pool of equal GPUs. ...")
//       .required("name", &Tier::name)       // also by position, in this order
//       .optional("nodes", &Tier::nodes)     // the same, with the struct's own default
//       .keyword("gpu", &Tier::gpu)          // by keyword only
//       .shown("prices", &Tier::prices)      // required, and read without a copy
//       .init(&validate);                    // left out where only functions make the record
//
// `to_dict` and `from_dict` are those of glidepath._json, by the annotations of the class.
// A field that is no member has a getter and a setter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "convert.hpp"

namespace glidepath::python {

namespace detail {

template <class M>
py::object object(M&& value) {
  if constexpr (std::is_base_of_v<py::object, std::remove_cvref_t<M>>) {
    return std::forward<M>(value);
  } else {
    return py::cast(std::forward<M>(value));
  }
}

template <class T>
struct Fields;
template <class T>
Fields<T>& fields_of();

template <class M>
constexpr bool kIsVector = false;
template <class M>
constexpr bool kIsVector<std::vector<M>> = true;

/// Equal, NaN with NaN: as results compare in Python. Structs without == by their fields.
template <class M>
bool same(const M& a, const M& b) {
  if constexpr (std::is_floating_point_v<M>) {
    return a == b || (a != a && b != b);
  } else if constexpr (std::is_same_v<M, Rows>) {
    return a.rows() == b.rows() &&
           std::equal(a.data(), a.data() + a.size(), b.data(), b.data() + b.size(), same<double>);
  } else if constexpr (kIsVector<M> || requires { std::tuple_size<M>::value; }) {
    return std::ranges::equal(a, b, same<typename M::value_type>);
  } else if constexpr (requires { a.use_count(); }) {
    return a != nullptr && b != nullptr ? same(*a, *b) : a == b;
  } else if constexpr (requires { a == b; }) {
    return a == b;
  } else {
    return fields_of<M>().same(a, b);
  }
}

/// How a field may be given.
enum class Given : std::uint8_t { required, positional, keyword };

template <class T>
struct Field {
  std::string name{};
  Given given = Given::keyword;
  std::string type{};
  std::function<py::object(const T&)> get{};
  std::function<void(T&, py::handle)> set{};
  std::function<bool(const T&, const T&)> same{};
};

template <class T>
struct Fields {
  std::string record{};
  std::vector<Field<T>> list{};
  std::function<void(const T&)> check{};
  std::function<std::string(const T&)> repr{};

  template <class M, class C>
  Fields& add(const char* name, M C::*member) {
    return add(
        name, [member](const T& t) -> const M& { return t.*member; },
        [member](T& t, M value) { t.*member = std::move(value); });
  }
  /// get(const T&) gives a value, set(T&, value) takes one of the same type.
  template <class Get, class Set>
  Fields& add(const char* name, Get get, Set set, Given given = Given::keyword) {
    using M = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    list.push_back(
        {.name = name,
         .given = given,
         .type = Convert<M>::type(),
         .get = [get](const T& t) { return object(Convert<M>::out(std::invoke(get, t))); },
         .set =
             [set, record = record, field = std::string(name)](T& t, py::handle value) {
               std::invoke(set, t, Convert<M>::in(value, {record, field}));
             },
         .same =
             [get](const T& a, const T& b) {
               return detail::same<M>(std::invoke(get, a), std::invoke(get, b));
             }});
    return *this;
  }

  const Field<T>& named(std::string_view name) const {
    const auto found = std::ranges::find(list, name, &Field<T>::name);
    if (found != list.end()) return *found;
    throw py::type_error(record + ": no field '" + std::string(name) + "', expected one of " +
                         listed(list, &Field<T>::name));
  }

  T make(const py::args& by_position, const py::kwargs& by_name) const {
    T out{};
    const std::size_t given = by_position.size();
    for (std::size_t i = 0; i < given; ++i) {
      if (i == list.size() || list[i].given == Given::keyword) {
        throw py::type_error(record + ": takes " + std::to_string(i) +
                             " values without a name, got " + std::to_string(given));
      }
      list[i].set(out, by_position[i]);
    }
    for (std::size_t i = given; i < list.size(); ++i) {
      if (list[i].given == Given::required && !by_name.contains(list[i].name)) {
        throw py::type_error(record + ": " + list[i].name + " is missing");
      }
    }
    for (const auto& [key, value] : by_name) {
      const Field<T>& field = named(key.template cast<std::string>());
      if (static_cast<std::size_t>(&field - list.data()) < given) {
        throw py::type_error(record + ": " + field.name + " is given twice");
      }
      field.set(out, value);
    }
    if (check) check(out);
    return out;
  }

  py::dict state(const T& value) const {
    py::dict out;
    for (const Field<T>& field : list) out[py::str(field.name)] = field.get(value);
    return out;
  }

  /// In the order of the fields: one may say how those after it are read.
  T restore(const py::dict& state) const {
    for (const auto& [key, value] : state) named(key.template cast<std::string>());
    T out{};
    for (const Field<T>& field : list) {
      if (state.contains(field.name)) field.set(out, state[field.name.c_str()]);
    }
    if (check) check(out);
    return out;
  }

  /// A copy of an object of Python's with attributes of the same names.
  T read(py::handle object) const {
    T out{};
    for (const Field<T>& field : list) field.set(out, object.attr(field.name.c_str()));
    return out;
  }

  bool same(const T& a, const T& b) const {
    for (const Field<T>& field : list) {
      if (!field.same(a, b)) return false;
    }
    return true;
  }

  /// The call that makes it, without what is as by default; columns and long lists by their length.
  std::string print(const T& value) const {
    if (repr) return repr(value);
    const T plain{};
    std::string inside;
    for (const Field<T>& field : list) {
      if (field.given == Given::keyword && field.same(value, plain)) continue;
      inside += (inside.empty() ? "" : ", ") + field.name + "=" + brief(field.get(value));
    }
    return record + "(" + inside + ")";
  }

  static std::string brief(const py::object& value) {
    constexpr std::size_t kLongList = 4;
    if (py::isinstance<py::array>(value) ||
        (py::isinstance<py::list>(value) && py::len(value) > kLongList)) {
      return "<" + std::to_string(py::len(value)) + " values>";
    }
    return std::string(py::repr(value));
  }

  /// As pybind11 would write it for typed arguments.
  std::string signature(const std::string& self) const {
    const T plain{};
    std::string out = "__init__(self: " + self;
    bool star = false;
    for (const Field<T>& field : list) {
      if (field.given == Given::keyword && !std::exchange(star, true)) out += ", *";
      out += ", " + field.name + ": " + field.type;
      if (field.given != Given::required) out += " = " + fallback(field.get(plain));
    }
    return out + ") -> None";
  }

  static std::string fallback(const py::object& value) {
    if (py::isinstance<py::array>(value)) return "None";
    const std::string text(py::repr(value));
    return text == "inf" || text == "nan" || text.find('<') != std::string::npos ? "..." : text;
  }
};

/// The one table of a record.
template <class T>
Fields<T>& fields_of() {
  static Fields<T> fields;
  return fields;
}

}  // namespace detail

/// Numbers of a record as a read-only array that keeps it alive.
inline py::array_t<double> shown(const double* data, std::vector<py::ssize_t> shape,
                                 const py::object& record) {
  return read_only(py::array_t<double>(std::move(shape), data, record));
}

template <class T>
class Record {
 public:
  using Class = py::class_<T, std::shared_ptr<T>>;

  Record(py::module_& module, const char* name, const char* doc = nullptr)
      : class_(module, name, doc) {
    fields().record = name;
    class_
        .def("__eq__",
             [](const T& a, const py::object& b) {
               return py::isinstance<T>(b) && fields().same(a, b.cast<const T&>());
             })
        .def("__repr__", [](const T& value) { return fields().print(value); })
        .def(
            "to_dict",
            [](const py::object& self) -> Document {
              return py::reinterpret_borrow<Document>(imported("glidepath._json", "plain")(self));
            },
            "Give plain lists and numbers, fit for JSON: NaN is None, the infinities are text.")
        .def_static(
            "from_dict",
            [](const JsonLike& state) {
              return imported("glidepath._json", "record_from")(py::type::of<T>(), state)
                  .template cast<std::shared_ptr<T>>();
            },
            py::arg("state"),
            "Read what `to_dict` wrote; InputError where it is something else or damaged.")
        .def(py::pickle([](const T& value) { return fields().state(value); },
                        [](const py::dict& state) { return fields().restore(state); }));
  }

  template <class M, class C>
  Record& required(const char* name, M C::*member) {
    return add(name, detail::Given::required, member);
  }
  template <class M, class C>
  Record& optional(const char* name, M C::*member) {
    return add(name, detail::Given::positional, member);
  }
  template <class M, class C>
  Record& keyword(const char* name, M C::*member) {
    return add(name, detail::Given::keyword, member);
  }
  /// A member of a member: Python's keywords are flat.
  template <class Part, class C, class M>
  requires std::is_class_v<Part> Record& keyword(const char* name, Part C::*part, M Part::*member) {
    return keyword(
        name, [=](const T& t) -> const M& { return t.*part.*member; },
        [=](T& t, M value) { t.*part.*member = std::move(value); });
  }
  /// get(const T&) gives a value, set(T&, value) takes one of the same type.
  template <class Get, class Set>
  Record& keyword(const char* name, Get get, Set set) {
    return add(name, detail::Given::keyword, std::move(get), std::move(set));
  }
  template <class Get, class Set>
  Record& required(const char* name, Get get, Set set) {
    return add(name, detail::Given::required, std::move(get), std::move(set));
  }

  /// A column or matrix that Python reads without a copy.
  template <class M, class C>
  Record& shown(const char* name, M C::*member) {
    required(name, member);
    class_.def_property_readonly(name, [member](const py::object& self) {
      const M& values = self.cast<const T&>().*member;
      if constexpr (std::is_same_v<M, Rows>) {
        return python::shown(values.data(), {values.rows(), values.cols()}, self);
      } else {
        return python::shown(values.data(), {std::ssize(values)}, self);
      }
    });
    return *this;
  }

  /// Python may call the class; `check` throws on values that do not go together.
  Record& init(std::function<void(const T&)> check = {}) {
    fields().check = std::move(check);
    py::options written_by_hand;
    written_by_hand.disable_function_signatures();
    const std::string signature = fields().signature(Convert<T>::type());
    class_.def(py::init([](const py::args& by_position, const py::kwargs& by_name) {
                 return fields().make(by_position, by_name);
               }),
               signature.c_str());
    return *this;
  }

  /// Instead of the call that makes it.
  Record& repr(std::function<std::string(const T&)> print) {
    fields().repr = std::move(print);
    return *this;
  }

  /// For methods, and for what is computed from the fields.
  Class& cls() { return class_; }

 private:
  template <class M, class C>
  Record& add(const char* name, detail::Given given, M C::*member) {
    return add(
        name, given, [member](const T& t) -> const M& { return t.*member; },
        [member](T& t, M value) { t.*member = std::move(value); });
  }
  template <class Get, class Set>
  Record& add(const char* name, detail::Given given, Get get, Set set) {
    using M = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    fields().add(name, get, set, given);
    class_.def_property_readonly(
        name, [get](const T& t) { return Convert<M>::out(std::invoke(get, t)); });
    py::list names;  // what `match` and the sentences of others go by
    for (const auto& field : fields().list) names.append(field.name);
    class_.attr("__match_args__") = py::tuple(names);
    hints_[py::str(name)] = hint_of<M>();
    class_.attr("__annotations__") = hints_;
    return *this;
  }

  static detail::Fields<T>& fields() { return detail::fields_of<T>(); }

  Class class_;
  py::dict hints_{};  ///< of the fields, by name
};

/// Makes methods of an object whose __init__ never ran raise: pybind11 would give them memory that
/// nothing has written. And makes pickles as those of protocol 2, whatever asks for them: object's
/// own __reduce__ would call the class that pybind11 derives all from, which ends the process.
inline void refuse_uninitialized(const py::module_& module) {
  const py::object make_new = py::module_::import("copyreg").attr("__newobj__");
  for (const auto& [name, value] : py::dict(module.attr("__dict__"))) {
    if (!PyType_Check(value.ptr())) continue;
    auto* type = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(value.ptr()));
    if (type == nullptr) continue;
    type->operator_new = [](std::size_t) -> void* {
      throw py::type_error("this object was never initialized: call its class, not __new__");
    };
    py::cpp_function reduce(
        [make_new](const py::object& self) {
          const py::object cls = self.attr("__class__");
          if (!py::hasattr(cls, "__setstate__")) {
            const std::string called(py::str(cls.attr("__qualname__")));
            throw py::type_error("cannot pickle a " + called);
          }
          return py::make_tuple(make_new, py::make_tuple(cls), self.attr("__getstate__")());
        },
        py::name("__reduce__"), py::is_method(value));
    py::setattr(value, "__reduce__", reduce);
  }
}

}  // namespace glidepath::python
