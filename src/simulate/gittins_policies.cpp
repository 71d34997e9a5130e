// SPDX-License-Identifier: Apache-2.0
// Policies that run jobs by the Gittins index of their remaining time: `gittins` and `dare`.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/snapshots.hpp"

namespace glidepath::detail {

namespace {

/// Greedy fill, ties by submission.
Plan by_gittins_index(const Snapshot& snapshot, Packing packing) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    order.emplace_back(gittins_rank(snapshot.jobs[i]), i);
  }
  std::sort(order.begin(), order.end());
  Plan plan;
  Filling filling(snapshot, packing);
  for (const auto& [value, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
  return plan;
}

/// DARE: every job is profiled for a session at once, then forecast; it ends when the forecast says
/// that the target is out of reach, and runs by Gittins index of its remaining time, for sessions,
/// until the target is reached.
class DarePolicy {
 public:
  explicit DarePolicy(const PolicySetup& setup)
      : session_s_(setup.options.session_s.value_or(kInfinity)),
        in_session_(setup.facts.in_session),
        packing_(packing_of(setup.options)) {}

  Plan operator()(const Snapshot& snapshot) const {
    Plan plan;
    Filling filling(snapshot, packing_);
    std::vector<Turn> order;
    for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      if (out_of_reach(job)) {
        plan.stop.push_back(job.id);
      } else {
        order.push_back(turn_of(job, i, filling.holds(job)));
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [stage, key, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
    return plan;
  }

 private:
  /// Those inside a session go first, then those to be profiled, then those with a forecast.
  enum class Stage : std::uint8_t { in_session, unprofiled, forecast };
  using Turn = std::tuple<Stage, double, std::size_t>;  // key within the stage, index of the job

  [[nodiscard]] Turn turn_of(const Job& job, std::size_t index, const Allocation* held) const {
    if (held != nullptr && in_session_(job.id, session_s_)) {
      return {Stage::in_session, 0, index};
    }
    if (job.remaining_steps.empty()) return {Stage::unprofiled, job.attained_s, index};
    return {Stage::forecast, gittins_rank(job), index};
  }

  [[nodiscard]] static bool out_of_reach(const Job& job) {
    if (job.budget_steps <= 0 || job.remaining_steps.empty()) return false;
    const auto never =
        std::count(job.remaining_steps.begin(), job.remaining_steps.end(), kInfinity);
    return static_cast<double>(never) >=
           PlanOptions{}.stop_probability * static_cast<double>(job.remaining_steps.size());
  }

  double session_s_;
  InSession in_session_;
  Packing packing_;
};

}  // namespace

Policy make_gittins(const PolicySetup& setup) {
  return [packing = packing_of(setup.options)](const Snapshot& s) {
    return by_gittins_index(s, packing);
  };
}

Policy make_dare(const PolicySetup& setup) { return DarePolicy(setup); }

}  // namespace glidepath::detail
