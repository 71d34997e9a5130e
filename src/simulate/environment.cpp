// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "simulate/live.hpp"
#include "simulate/observer.hpp"

namespace glidepath {

namespace {

constexpr int kMaxShown = 1 << 20;  // jobs of an observation
constexpr std::size_t kObjectives = 1 + static_cast<std::size_t>(Objective::cost);

/// A time as a feature.
float feature(double seconds) {
  if (!std::isfinite(seconds)) return 1;
  return static_cast<float>(std::min(1.0, std::log1p(std::max(0.0, seconds)) / 16));
}

/// Options under which the planner decides as best_value does; what is shown and what the planner
/// sees is forecast once.
SimulationOptions planner_options(const Workload& workload, SimulationOptions options) {
  if (!options.memo) options.memo = make_forecast_memo();
  return detail::with_defaults_of(detail::policy_named("best_value").info, workload,
                                  std::move(options));
}

float share(double part, double whole) {
  return whole > 0 ? static_cast<float>(std::clamp(part / whole, 0.0, 1.0)) : 0.0F;
}

}  // namespace

struct Environment::State {
  State(const Workload& workload, const SimulationOptions& how)
      : options(planner_options(workload, how)),
        cluster(workload, options),
        predict(cluster),
        touched(workload.jobs.size(), -1) {
    for (const Tier& tier : workload.tiers) {
      gpus += tier.gpus();
      largest = std::max(largest, tier.gpus());
    }
    if (workload.curves.empty()) return;
    seen.resize(workload.jobs.size());
    logged.resize(workload.jobs.size());
  }

  // What the cluster's run asks of a scheduler: the agent decides elsewhere.
  void arrive(int job) { waiting.push_back(job); }
  void leave(int) {}
  void fail(int job) { waiting.insert(std::lower_bound(waiting.begin(), waiting.end(), job), job); }
  void schedule() {}
  [[nodiscard]] detail::Tick wake() const { return detail::kNever; }

  [[nodiscard]] bool may_start(int job) const {
    return touched[job] != cluster.now && cluster.tier_with_room(job) >= 0;
  }
  [[nodiscard]] bool may_preempt(int job) const { return touched[job] != cluster.now; }

  struct Prospect {
    double seconds = 0, reached = 1;
  };
  /// Seconds to go on the fastest tier, as far as a forecast says, and the chance to get there.
  [[nodiscard]] Prospect outlook(int job) {
    const double done = cluster.done(job);
    const auto per_second = static_cast<double>(cluster.per_second);
    const WorkloadJob& submitted = cluster.submitted(job);
    if (submitted.truth < 0) {
      const double total = predict.total(job);
      return {(done < total ? total - done : std::max(done, 1.0)) / per_second /
                  cluster.runs[job].fastest,
              1};
    }
    Job& view = seen[job];
    const Trace& truth = cluster.workload.curves[submitted.truth];
    view.steps_done = done / per_second;
    view.target_loss = submitted.target_loss;
    view.budget_steps = submitted.budget_steps;
    view.observed = logged[job].up_to(truth, view.steps_done);
    predict.curve(job, view, detail::LossesAhead::unwanted);
    const double budget_s = (submitted.budget_steps - view.steps_done) / cluster.runs[job].fastest;
    if (view.remaining_steps.empty()) return {budget_s, 1};
    double sum = 0, reached = 0;
    for (const double steps : view.remaining_steps) {
      if (!std::isfinite(steps)) continue;
      sum += steps;
      ++reached;
    }
    const auto n = static_cast<double>(view.remaining_steps.size());
    return {reached > 0 ? sum / reached / cluster.runs[job].fastest : budget_s, reached / n};
  }

  [[nodiscard]] double watts_awake() const {
    double sum = 0;
    for (std::size_t t = 0; t < cluster.capacity.size(); ++t) {
      sum += cluster.workload.tiers[t].idle_watts * cluster.free[t];
    }
    for (const detail::Running& running : cluster.running) {
      const detail::Run& run = cluster.runs[running.job];
      sum += run.gpus *
             watts(cluster.workload.tiers[run.tier], cluster.submitted(running.job).utilization);
    }
    return sum;
  }

  /// What nodes drew less than that because they slept.
  [[nodiscard]] double joules_saved(detail::Tick from, detail::Tick to) const {
    if (!cluster.nodes || options.sleep.after_s == detail::kInfinity) return 0;
    const std::vector<detail::Nodes::Off> off = cluster.nodes->off_between(from, to);
    double sum = 0;
    for (std::size_t t = 0; t < off.size(); ++t) {
      sum += (cluster.workload.tiers[t].idle_watts - options.sleep.watts) * off[t].asleep.s;
    }
    return sum;
  }

  /// Goes to the next event by `next` and takes what it cost off the reward. False where nothing is
  /// left.
  template <class Next>
  bool elapse(Next&& next, double energy_weight, double& reward) {
    const detail::Tick before = cluster.now;
    const double jobs = cluster.live;
    const bool began = cluster.arrived > 0;  // before the first submission nothing counts
    const bool costs = energy_weight > 0 && began;
    const double watts = costs ? watts_awake() : 0;
    if (!next()) return false;
    const double hours = cluster.seconds(cluster.now - before) / 3600;
    if (began) reward -= hours * (jobs + energy_weight * watts / 1000);
    if (costs) reward += energy_weight * joules_saved(before, cluster.now) / detail::kJoulesPerKwh;
    return true;
  }

  /// Lets time pass to the next event at which a job waits. Returns the reward.
  double pass(double energy_weight) {
    double reward = 0;
    do {
      if (elapse([&] { return advance(cluster, *this); }, energy_weight, reward)) continue;
      if (waiting.empty()) break;
      // Nothing runs and nothing will come: the agent waits for nothing, so the first one runs.
      const auto first = std::find_if(waiting.begin(), waiting.end(),
                                      [&](int job) { return cluster.tier_with_room(job) >= 0; });
      if (first == waiting.end() || !start(*first)) break;
    } while (waiting.empty() && !done());
    look();
    return reward;
  }

  /// Lets the planner decide by `goals` for a while. Returns the reward.
  double plan_for(double seconds, double energy_weight) {
    double reward = 0;
    if (!planned) planned = detail::stepwise(cluster, goals);
    if (cluster.arrived == 0) elapse(planned, energy_weight, reward);
    const detail::Tick until = cluster.now + cluster.ticks(seconds);
    while (!done() && cluster.now < until && !stuck) {
      stuck = !elapse(planned, energy_weight, reward);
    }
    waiting.clear();
    for (int job = 0; job < cluster.arrived; ++job) {
      const detail::Run& run = cluster.runs[job];
      if (run.end < 0 && run.tier < 0) waiting.push_back(job);
    }
    look();
    return reward;
  }

  bool start(int job) {
    if (!cluster.start(job, cluster.tier_with_room(job))) return false;
    touched[job] = cluster.now;
    waiting.erase(std::lower_bound(waiting.begin(), waiting.end(), job));
    return true;
  }

  void preempt(int job) {
    cluster.suspend(job);
    touched[job] = cluster.now;
    waiting.insert(std::lower_bound(waiting.begin(), waiting.end(), job), job);
  }

  /// What is shown of the jobs now: forecasts are made once for each instant.
  void look() {
    outlooks.clear();
    for (std::size_t k = 0; k < std::min(waiting.size(), slots); ++k) {
      outlooks.push_back(outlook(waiting[k]));
    }
    longest.clear();
    for (const detail::Running& running : cluster.running) {
      longest.push_back({outlook(running.job), running.job});
    }
    const std::ptrdiff_t shown = std::min(longest.size(), shown_running);
    std::partial_sort(
        longest.begin(), longest.begin() + shown, longest.end(), [](const Seen& a, const Seen& b) {
          return a.outlook.seconds != b.outlook.seconds ? a.outlook.seconds > b.outlook.seconds
                                                        : a.job < b.job;
        });
    longest.resize(shown);
  }

  [[nodiscard]] bool done() const {
    return stuck || (cluster.live == 0 && cluster.arrived == static_cast<int>(cluster.runs.size()));
  }

  struct Seen {
    Prospect outlook;
    int job;
  };
  SimulationOptions options;
  detail::Cluster cluster;
  detail::Predictor predict;
  std::vector<int> waiting;            ///< in order of submission
  std::vector<detail::Tick> touched;   ///< started or preempted last; once at one instant
  std::vector<Job> seen;               ///< jobs with curves
  std::vector<detail::Logged> logged;  ///< their curves so far
  std::vector<Prospect> outlooks;      ///< of the first waiting jobs
  std::vector<Seen> longest;           ///< running jobs
  std::size_t slots = 0, shown_running = 0;
  int gpus = 0, largest = 1;
  std::vector<WeightedObjective> goals;  ///< of the planner, where it decides
  std::function<bool()> planned;         ///< the next event under its decisions
  bool stuck = false;                    ///< it leaves jobs waiting for ever
};

Environment::Environment(const EnvironmentOptions& options) : options_(options) {
  detail::refuse_unread(options.simulation, "an environment", {});
  if (options.simulation.seed != 0) {
    detail::refuse("environment: simulation.seed is ", options.simulation.seed,
                   ", expected 0: reset() takes the seed");
  }
  if (options.slots < 1 || options.running < 0 || options.slots > kMaxShown ||
      options.running > kMaxShown) {
    detail::refuse("environment: ", options.slots, " slots and ", options.running,
                   " running jobs, expected at least 1 and 0, at most ", kMaxShown);
  }
  if (!(options.energy_weight >= 0 && std::isfinite(options.energy_weight))) {
    detail::refuse("environment: energy_weight is ", options.energy_weight,
                   ", expected 0 or more and finite");
  }
  if (!(options.weights_for_s >= 0 && std::isfinite(options.weights_for_s))) {
    detail::refuse("environment: weights_for_s is ", options.weights_for_s,
                   ", expected 0 or more and finite");
  }
  detail::refuse_above_max_seconds("environment", "weights_for_s", options.weights_for_s);
}
Environment::~Environment() = default;
Environment::Environment(Environment&&) noexcept = default;
Environment& Environment::operator=(Environment&&) noexcept = default;

void Environment::reset(const Workload& workload, std::uint64_t seed) {
  SimulationOptions how = options_.simulation;
  how.seed = seed;
  detail::check_options(how);
  detail::check_run(workload, how);
  state_ = std::make_unique<State>(workload, how);
  state_->slots = options_.slots;
  state_->shown_running = options_.running;
  if (options_.weights_for_s == 0) state_->pass(0);
}

Environment::State& Environment::state() const {
  if (state_ == nullptr) detail::refuse("environment: reset() begins an episode, it comes first");
  return *state_;
}

double Environment::step(int action) {
  State& now = state();
  if (action < 0 || action >= actions()) {
    detail::refuse("environment: action is ", action, ", expected 0 to ", actions() - 1);
  }
  if (now.done()) return 0;
  if (options_.weights_for_s > 0) detail::refuse("environment: expected weights, not an action");
  const std::size_t k = action;
  if (k < std::min(now.slots, now.waiting.size()) && now.may_start(now.waiting[k]) &&
      now.start(now.waiting[k])) {
    // Time stands still while there is something left to decide.
    if (!now.waiting.empty()) {
      now.look();
      return 0;
    }
  } else if (k >= now.slots && k - now.slots < now.longest.size()) {
    const int job = now.longest[k - now.slots].job;
    if (now.may_preempt(job)) {
      now.preempt(job);
      now.look();
      return 0;
    }
  }
  return now.pass(options_.energy_weight);
}

double Environment::step(std::span<const double> weights) {
  State& now = state();
  if (options_.weights_for_s == 0 || weights.size() != kObjectives) {
    detail::refuse("environment: ", weights.size(), " weights, expected ",
                   options_.weights_for_s == 0 ? 0 : kObjectives);
  }
  if (now.done()) return 0;
  now.goals.clear();
  for (std::size_t k = 0; k < kObjectives; ++k) {
    if (!(weights[k] >= 0 && std::isfinite(weights[k]))) {
      detail::refuse("environment: weights[", k, "] is ", weights[k],
                     ", expected 0 or more and finite");
    }
    if (weights[k] > 0) now.goals.push_back({static_cast<Objective>(k), weights[k]});
  }
  if (now.goals.empty()) now.goals = {{}};
  return now.plan_for(options_.weights_for_s, options_.energy_weight);
}

bool Environment::done() const { return state().done(); }

int Environment::actions() const {
  return options_.weights_for_s > 0 ? static_cast<int>(kObjectives)
                                    : options_.slots + options_.running + 1;
}

void Environment::mask(std::span<std::uint8_t> out) const {
  const bool weighs = options_.weights_for_s > 0;
  const State& now = state();
  if (out.size() != static_cast<std::size_t>(actions())) {
    detail::refuse("environment: a mask of ", out.size(), " bytes, expected ", actions());
  }
  std::fill(out.begin(), out.end(), std::uint8_t{weighs});
  if (weighs) return;
  for (std::size_t k = 0; k < std::min(now.waiting.size(), now.slots); ++k) {
    out[k] = now.may_start(now.waiting[k]) ? 1 : 0;
  }
  for (std::size_t k = 0; k < now.longest.size(); ++k) {
    out[now.slots + k] = now.may_preempt(now.longest[k].job) ? 1 : 0;
  }
  out.back() = 1;
}

int Environment::observation_size(std::size_t tiers) const {
  return options_.slots * kSlotFeatures + options_.running * kRunningFeatures +
         static_cast<int>(tiers) * kTierFeatures + kClusterFeatures;
}

void Environment::observe(std::span<float> out) const {
  const State& now = state();
  const detail::Cluster& cluster = now.cluster;
  const int expected = observation_size(cluster.workload.tiers.size());
  if (out.size() != static_cast<std::size_t>(expected)) {
    detail::refuse("environment: an observation of ", out.size(), " numbers, expected ", expected);
  }
  std::fill(out.begin(), out.end(), 0.0F);
  float* to = out.data();
  for (std::size_t k = 0; k < now.outlooks.size() && k < now.waiting.size(); ++k) {
    const int job = now.waiting[k];
    const detail::Run& run = cluster.runs[job];
    float* slot = to + k * kSlotFeatures;
    slot[0] = 1;
    slot[1] = feature(now.outlooks[k].seconds);
    slot[2] = static_cast<float>(now.outlooks[k].reached);
    slot[3] = share(run.gpus, now.largest);
    slot[4] = feature(cluster.seconds(cluster.now - run.submit));
    slot[5] = feature(cluster.seconds(run.held));
    const int tier = now.cluster.tier_with_room(job);
    slot[6] = tier < 0 ? 0 : share(cluster.rate(job, tier), now.cluster.runs[job].fastest);
  }
  to += now.slots * kSlotFeatures;
  for (std::size_t k = 0; k < now.longest.size(); ++k) {
    const int job = now.longest[k].job;
    const detail::Run& run = cluster.runs[job];
    float* seat = to + k * kRunningFeatures;
    seat[0] = 1;
    seat[1] = feature(now.longest[k].outlook.seconds);
    seat[2] = static_cast<float>(now.longest[k].outlook.reached);
    seat[3] = share(run.gpus, now.largest);
    seat[4] = feature(cluster.seconds(cluster.now - run.since));
    seat[5] = share(cluster.rate(job, run.tier), now.cluster.runs[job].fastest);
  }
  to += now.shown_running * kRunningFeatures;
  for (std::size_t t = 0; t < cluster.capacity.size(); ++t) {
    to[0] = share(cluster.free[t], cluster.workload.tiers[t].gpus());
    to[1] = share(cluster.workload.tiers[t].gpus(), now.gpus);
    to += kTierFeatures;
  }
  to[0] = static_cast<float>(std::min(1.0, std::log1p(now.waiting.size()) / 8));
  to[1] = static_cast<float>(std::min(1.0, std::log1p(cluster.running.size()) / 8));
  to[2] = cluster.arrived < static_cast<int>(cluster.runs.size()) ? 1.0F : 0.0F;  // more will come
}

Simulation Environment::simulation() { return detail::results(state().cluster, "agent"); }

}  // namespace glidepath
