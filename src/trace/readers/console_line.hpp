// SPDX-License-Identifier: Apache-2.0
// The grammar of a line that a training loop printed: numbers, each with the words before it.
// "Step 140/6501 | Loss: 0.82" holds a counter, how far it will count, and a metric.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/readers/console_names.hpp"

namespace glidepath::detail {

/// Numbers by name, in the order of the line.
class Numbers {
 public:
  [[nodiscard]] const double* find(std::string_view name) const {
    const auto found = std::ranges::find(values_, name, &Cell::first);
    return found == values_.end() ? nullptr : &found->second;
  }
  void put(std::string_view name, double value) {
    const auto found = std::ranges::find(values_, name, &Cell::first);
    if (found == values_.end()) {
      values_.emplace_back(name, value);
    } else {
      found->second = value;
    }
  }
  void put_first(std::string_view name, double value) {
    if (find(name) == nullptr) values_.emplace_back(name, value);
  }
  void rename(std::string_view from, std::string_view to) {
    for (auto& [name, value] : values_) {
      if (name == from) name = to;
    }
  }
  template <class Gone>
  void erase_if(const Gone& gone) {
    std::erase_if(values_, [&](const auto& each) { return gone(each.first); });
  }
  void erase(std::string_view name) {
    std::erase_if(values_, [&](const auto& each) { return each.first == name; });
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  /// Whatever the order.
  [[nodiscard]] bool same(const Numbers& other) const {
    return values_.size() == other.values_.size() &&
           std::ranges::all_of(values_, [&](const auto& each) {
             const double* const there = other.find(each.first);
             return there != nullptr && *there == each.second;
           });
  }

 private:
  using Cell = std::pair<std::string, double>;
  std::vector<Cell> values_{};
};

/// How a line says which process printed it: as its rank, as something that another one may take
/// over in the course of a run, such as a machine, or as a bare number in brackets, which may be
/// that of an epoch.
enum class RankForm { sure, passing, bare };

/// The numbers of a line: what counts, how far, and the rest.
struct Line {
  Numbers counters{}, totals{}, cells{};
  std::string own{};  ///< the counters that it names itself
  std::optional<int> rank{};
  RankForm rank_form = RankForm::sure;
  std::string text{};
  std::string run{};  ///< the last run that was named before it or by itself, "fold 2"
  bool by_column = false;
  bool held_out = false;  ///< it speaks of data that are not trained on
  bool begins = false;    ///< epochs begin anew at it or before it: another run goes on from here
  bool of_data = false;   ///< a number of it is named by nothing but its data, as "Train: 0.51"
  /// Metrics without a word of data that stand behind one of data that are not trained on, and
  /// those data.
  std::vector<std::pair<std::string, std::string>> behind{};
};

/// How many numbers that are called a metric can only have a decimal comma, less those with a
/// point.
[[nodiscard]] std::ptrdiff_t decimal_commas(std::string_view line, NameReader& names);

/// The numbers of a line, each named by the words before it.
[[nodiscard]] Line parse_line(std::string_view text, NameReader& names);

/// The text of a line as far as it is shown.
[[nodiscard]] std::string shown_line(std::string_view text);

}  // namespace glidepath::detail
