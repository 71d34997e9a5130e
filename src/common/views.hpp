// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/rows.hpp"

#include <string_view>

#include "common/require.hpp"

namespace glidepath::detail {

/// Refuses a matrix that is said to have numbers and is nowhere.
template <class Double>
void require_numbers(BasicRowsView<Double> view, std::string_view name) {
  if (view.data() != nullptr || view.rows() <= 0 || view.cols() <= 0) return;
  refuse(name, " is null, expected ", view.rows(), " x ", view.cols(), " numbers");
}

}  // namespace glidepath::detail
