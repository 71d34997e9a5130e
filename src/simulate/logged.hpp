// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/trace.hpp"

#include <vector>

namespace glidepath::detail {

/// A copy of the points that a job has logged: a view of the truth itself would end where the
/// future begins, one element further.
class Logged {
 public:
  /// The points up to a step, and those that were logged before.
  TraceView up_to(const Trace& truth, double last_step) {
    while (step_.size() < truth.step.size() && truth.step[step_.size()] <= last_step) {
      loss_.push_back(truth.loss[step_.size()]);
      step_.push_back(truth.step[step_.size()]);
    }
    return {step_, loss_, {}};
  }

 private:
  std::vector<double> step_, loss_;
};

}  // namespace glidepath::detail
