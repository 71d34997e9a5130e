// SPDX-License-Identifier: Apache-2.0
// Which of several runs the lines of a console log are of: "Fold 1" before the epochs of a fold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/readers/console_line.hpp"

namespace glidepath::detail {

/// The run that is going on by what lines say: "fold 2" of a fold that stands anywhere in one, and
/// "seed 2", "trial 2" or "run 2" of one that says no more.
class RunNames {
 public:
  void hear(std::string_view text);
  /// "seed 1/fold 2"; empty before any was named.
  [[nodiscard]] std::string now() const;

 private:
  std::string heading_, fold_;
};

/// The names of the runs that lines are of; none where they tell none apart. A run is named before
/// its lines or, where some stand before the first name, behind them.
[[nodiscard]] std::vector<std::string> run_names(const std::vector<Line>& lines);

}  // namespace glidepath::detail
