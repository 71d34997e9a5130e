// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/table_terms.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "common/csv.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::string_view kTermNames[] = {"step", "loss_train", "loss_test", "metrics_test"};

std::string text_of_sum(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::size_t width_of_terms(const Terms& terms) { return 1 + 2 * terms.of_loss + terms.of_metrics; }

}  // namespace

Terms terms_of(const Fields& header, std::string_view row) {
  const std::vector<std::string_view> cells = words_of(row);
  const bool named =
      std::equal(header.begin(), header.end(), std::begin(kTermNames), std::end(kTermNames));
  if (!named || contains(row, ",") || cells.size() < 3) return {};
  const auto is_number = [](std::string_view cell) { return number_in(cell).has_value(); };
  if (!std::ranges::all_of(cells, is_number)) return {};
  const std::size_t rest = cells.size() - 1;  // two of each term, and hardly more than one metric
  return {.of_loss = rest / 2, .of_metrics = rest % 2};
}

Fields names_of(const Terms& terms) {
  Fields names{std::string(kTermNames[0]), std::string(kTermNames[1]), std::string(kTermNames[2])};
  for (const std::string_view loss : {kTermNames[1], kTermNames[2]}) {
    for (std::size_t i = 0; i < terms.of_loss; ++i) {
      names.push_back(std::string(loss) + "[" + std::to_string(i) + "]");
    }
  }
  if (terms.of_metrics > 0) names.emplace_back(kTermNames[3]);
  return names;
}

Fields with_sums(const Fields& row, const Terms& terms) {
  if (row.size() != width_of_terms(terms)) return row;
  Fields cells{row[0]};
  for (const std::size_t first : {std::size_t{1}, 1 + terms.of_loss}) {
    double sum = 0;
    for (std::size_t i = first; i < first + terms.of_loss; ++i) {
      sum += number_in(row[i]).value_or(std::numeric_limits<double>::quiet_NaN());
    }
    cells.push_back(text_of_sum(sum));
  }
  cells.insert(cells.end(), row.begin() + 1, row.end());
  return cells;
}

}  // namespace glidepath::detail
