// SPDX-License-Identifier: Apache-2.0
// Columns of rows of C++ structs, as arrays in Python.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "record.hpp"

namespace glidepath::python {

/// What numpy makes of a list, of texts or of objects.
inline py::array array_of(const py::list& values) { return imported("numpy", "asarray")(values); }

/// Texts of a file, in whatever encoding it has.
inline py::typing::List<py::str> texts_of(const std::vector<std::string>& texts) {
  py::typing::List<py::str> out;
  for (const std::string& text : texts) out.append(Convert<std::string>::out(text));
  return out;
}

template <class Row, class Member>
void add_column(py::dict& columns, const char* name, const std::vector<Row>& rows,
                Member Row::*member) {
  if constexpr (std::is_same_v<Member, std::string>) {
    py::list values;
    for (const Row& row : rows) values.append(Convert<std::string>::out(row.*member));
    columns[name] = array_of(values);
  } else {
    using Value = std::conditional_t<std::is_integral_v<Member>, std::int64_t, double>;
    std::vector<Value> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(row.*member);
    columns[name] = adopt(std::move(values));
  }
}

}  // namespace glidepath::python
