// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/forecasts.hpp"
#include "simulate/leader.hpp"

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

/// What is made for a policy beside what everybody may see.
struct Foresight {
  Forecasts sees = Forecasts::all;
  bool looks_ahead = false;  ///< also forecast the losses on the way
  bool elastic = false;      ///< shows the gangs beside the one that a job asks for
  /// Whether weights are to make the planner's values those of the leader now; empty = never.
  std::function<bool()> follows_leader{};
};

/// The tiers and gangs on which a job may run, as a policy sees them.
[[nodiscard]] std::vector<Option> shown_options(const Cluster& cluster, int job,
                                                const Foresight& foresight);

/// Builds what a policy may see of a Cluster. The truth stays there: of a curve a Snapshot has the
/// points up to the step that the job has reached.
class Observer {
 public:
  Observer(const Cluster& cluster, const Foresight& foresight);

  void arrive(int job);
  void leave(int job);

  /// The cluster now. Valid until the next call.
  [[nodiscard]] Snapshot snapshot();

  [[nodiscard]] const std::vector<int>& live() const { return live_; }
  /// The index of a live job; -1 for another id.
  [[nodiscard]] int job_of(std::int64_t id) const;
  /// What the last snapshot said of a live job, with all of its options.
  [[nodiscard]] const Job& seen(int job) const;
  /// Whether the points that a live job has logged reach its target.
  [[nodiscard]] bool has_reached_target(int job) const;

 private:
  [[nodiscard]] Job described(int job) const;
  void observe(int job, Job& seen);
  [[nodiscard]] std::span<const Job> in_service();

  const Cluster& cluster_;
  Foresight foresight_;
  Predictor predict_;
  std::optional<Leader> leader_;
  bool leads_ = false;       ///< in this snapshot
  std::vector<Tier> tiers_;  ///< without the nodes that are out
  std::vector<Job> shown_;   ///< jobs that some tier can hold while nodes are out
  std::vector<int> live_;    ///< in order of submission
  std::vector<Job> jobs_;    ///< what the policy sees of them
  std::vector<Allocation> running_;
  std::unordered_map<std::int64_t, int> index_;  ///< of a live job by its id
  std::unordered_map<int, Logged> logged_;
};

}  // namespace glidepath::detail
