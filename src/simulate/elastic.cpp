// SPDX-License-Identifier: Apache-2.0
// Policies that choose gangs by goodput alone, every round.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/history.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

/// How a gang may grow.
enum class Growth : std::uint8_t { at_once, twice_the_largest };

/// What an option of scaled goodput x = r G is worth, and which options a job has.
struct GoodputRule {
  double (*worth)(double x);
  Growth growth;
  double gap;  ///< as in RoundOptions
};

/// The program of Sia (Jayaram Subramanya et al., SOSP 2023, section 3.3): with G = goodput over
/// the least of the job's options, times the GPUs that it needs at least, every round
///
///   min  sum_o A_o (r G_o)^p + lambda sum_j (1 - sum_o A_o),    p = -0.5, lambda = 1.1
///
/// over A in {0, 1}, at most one option of a job, no more GPUs of a type than there are: the
/// planner's knapsack with the value lambda - (r G)^p. Sia solves it to a gap of 1e-4.
constexpr GoodputRule kSia{[](double x) { return 1.1 - 1 / std::sqrt(x); },
                           Growth::twice_the_largest, 1e-4};

/// p -> 0 of the same, proportional fairness: a gang is worth taking where it multiplies the speed
/// of a job by more than it divides that of others. A job that runs is worth one more e-fold.
constexpr GoodputRule kGoodput{[](double x) { return 1 + std::log(x); }, Growth::at_once,
                               PlanOptions{}.gap};

/// Chooses gangs by a rule. r = (T - N S) / (T + S) for options other than the one that a job
/// holds: T its age, N its restarts so far, S the time of one; 1 while it is younger than that. A
/// job that is starting again keeps its GPUs.
class GoodputPolicy {
 public:
  GoodputPolicy(const PolicySetup& setup, const GoodputRule& rule)
      : rule_(rule), begins_round_(setup.facts.begins_round), in_nodes_(setup.options.in_nodes) {}

  Plan operator()(const Snapshot& snapshot) {
    history_.look(snapshot);
    if (!begins_round_()) return go_on(snapshot);
    Plan plan;
    columns(snapshot, plan);
    const RoundPlan round = solve_round({.job = job_,
                                         .tier = tier_,
                                         .gpus = gpus_,
                                         .value = value_,
                                         .capacity = capacity_,
                                         .node_gpus = node_gpus_,
                                         .taken_tier = taken_tier_,
                                         .taken_gpus = taken_gpus_},
                                        {.gap = rule_.gap});
    plan.value = round.value;
    plan.bound = round.bound;
    plan.gap = round.gap;
    plan.prices = round.prices;
    for (const std::int64_t chosen : round.chosen) {
      const auto o = static_cast<std::size_t>(chosen);
      const Job& job = snapshot.jobs[job_[o]];
      plan.allocations.push_back(kept_or_new(snapshot, job, history_.of(job.id).held,
                                             static_cast<int>(tier_[o]),
                                             static_cast<int>(gpus_[o])));
    }
    return plan;
  }

 private:
  void columns(const Snapshot& snapshot, Plan& plan) {
    job_.clear(), tier_.clear(), gpus_.clear(), value_.clear();
    capacity_.clear(), node_gpus_.clear(), taken_tier_.clear(), taken_gpus_.clear();
    for (const Tier& tier : snapshot.tiers) {
      capacity_.push_back(tier.gpus());
      if (in_nodes_) node_gpus_.push_back(tier.gpus_per_node);
    }
    for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      const History::Known& known = history_.of(job.id);
      if (known.held != nullptr && known.starts > 1 &&
          snapshot.now_s < known.since_s + job.restart_s) {
        plan.allocations.push_back(*known.held);
        taken_tier_.push_back(known.held->tier);
        taken_gpus_.push_back(known.held->gpus);
      } else {
        add_options(snapshot, i, known);
      }
    }
    for (std::size_t k = 0; k < taken_tier_.size(); ++k) {
      if (!in_nodes_) capacity_[taken_tier_[k]] -= taken_gpus_[k];
    }
    if (!in_nodes_) taken_tier_.clear(), taken_gpus_.clear();
  }

  void add_options(const Snapshot& snapshot, std::size_t i, const History::Known& known) {
    const Job& job = snapshot.jobs[i];
    double least_rate = kInfinity;
    int least_gpus = std::numeric_limits<int>::max();
    for (const Option& option : job.options) {
      least_rate = std::min(least_rate, option.steps_per_s);
      least_gpus = std::min(least_gpus, option.gpus);
    }
    const double age_s = snapshot.now_s - job.submit_s;
    const double lost_s = known.restarts() * job.restart_s;
    const double factor =
        age_s < job.restart_s ? 1 : std::max(0.0, age_s - lost_s) / (age_s + job.restart_s);
    for (const Option& option : job.options) {
      const bool grown = option.gpus > std::max(least_gpus, 2 * known.largest);
      if (rule_.growth == Growth::twice_the_largest && grown) continue;
      const bool keeps = known.held != nullptr && known.held->tier == option.tier &&
                         known.held->gpus == option.gpus;
      const double scaled = option.steps_per_s / least_rate * least_gpus *
                            (keeps || known.held == nullptr ? 1 : factor);
      const double value = rule_.worth(scaled);
      if (!(value > 0)) continue;
      job_.push_back(static_cast<std::int64_t>(i));
      tier_.push_back(option.tier);
      gpus_.push_back(option.gpus);
      value_.push_back(value);
    }
  }

  GoodputRule rule_;
  std::function<bool()> begins_round_;
  bool in_nodes_;
  History history_;
  std::vector<std::int64_t> job_, tier_, gpus_, capacity_, node_gpus_, taken_tier_, taken_gpus_;
  std::vector<double> value_;
};

}  // namespace

Policy make_goodput(const PolicySetup& setup) { return GoodputPolicy(setup, kGoodput); }
Policy make_sia(const PolicySetup& setup) { return GoodputPolicy(setup, kSia); }

}  // namespace glidepath::detail
