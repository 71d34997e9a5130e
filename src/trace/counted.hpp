// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace glidepath::detail {

/// A trace without its points of weight 0, which count for nothing: what looks at single losses
/// must not see them. The trace is valid.
class Counted {
 public:
  explicit Counted(TraceView trace) : view_(trace) {
    if (std::ranges::find(trace.weight, 0.0) == trace.weight.end()) return;
    for (std::size_t i = 0; i < trace.step.size(); ++i) {
      if (trace.weight[i] == 0) continue;
      step_.push_back(trace.step[i]);
      loss_.push_back(trace.loss[i]);
      weight_.push_back(trace.weight[i]);
      if (!trace.lr.empty()) lr_.push_back(trace.lr[i]);
    }
    view_ = {step_, loss_, weight_, lr_, trace.settings, trace.metric};
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  [[nodiscard]] TraceView view() const { return view_; }

 private:
  TraceView view_;
  std::vector<double> step_{}, loss_{}, weight_{}, lr_{};
};

}  // namespace glidepath::detail
