// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// Follows the leader of two orders: remaining time (SRTF) and remaining GPU-time (SRSF). Neither
/// is the better one on every cluster: GPU-time counts where much waits, time where large gangs
/// find no room later. When jobs first have to wait, and whenever the number of jobs has doubled
/// since, the last thousand are played again under both, and the one with the smaller mean JCT
/// decides from then on. On several tiers it is GPU-time throughout.
class Leader {
 public:
  explicit Leader(const Cluster& cluster)
      : cluster_(cluster), by_gpu_time_(cluster.capacity.size() > 1) {}
  /// Whether the order changed. `work` of a job that has not ended, in ticks.
  bool refresh(const std::function<double(int)>& work);
  /// What a gang of so many GPUs multiplies the remaining time with.
  [[nodiscard]] double factor(int gpus) const { return by_gpu_time_ ? gpus : 1.0; }
  /// Whether GPU-time decides; nothing while neither was ahead.
  [[nodiscard]] std::optional<bool> by_gpu_time() const {
    return led_ ? std::optional(by_gpu_time_) : std::nullopt;
  }

 private:
  bool due();
  bool have_one_gang(int first);

  const Cluster& cluster_;
  bool by_gpu_time_;
  bool led_ = false;  ///< one was ahead of the other
  int look_at_ = 0;   ///< jobs that have arrived
  int arrived_ = 0;   ///< by the last question
  int compared_ = 1;  ///< jobs whose gang was compared with that of the one before
  int changed_ = 0;   ///< the last of them whose gang is another one
};

}  // namespace glidepath::detail
