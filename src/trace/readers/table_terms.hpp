// SPDX-License-Identifier: Apache-2.0
// DeepXDE's loss.dat: its header has one name for all terms of a loss, each a column of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trace/readers/table_fields.hpp"

namespace glidepath::detail {

/// How many columns a name of the header stands for; 0 where each has a name.
struct Terms {
  std::size_t of_loss = 0;  ///< of training, and as many of the test
  std::size_t of_metrics = 0;
};

/// The terms of the rows below a header "step, loss_train, loss_test, metrics_test", by one of
/// them.
[[nodiscard]] Terms terms_of(const Fields& header, std::string_view row);
/// The names of all columns, behind those of the sums of both losses.
[[nodiscard]] Fields names_of(const Terms& terms);
/// A row with the sums of both losses before its terms; as it is where its width is another one.
[[nodiscard]] Fields with_sums(const Fields& row, const Terms& terms);

}  // namespace glidepath::detail
