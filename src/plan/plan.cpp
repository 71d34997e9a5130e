// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "common/require.hpp"
#include "plan/value.hpp"

namespace glidepath {
namespace {

using detail::refuse;

constexpr std::array kObjectives{std::pair{Objective::jct, std::string_view{"jct"}}};

bool finite_from_zero(double x) { return x >= 0 && std::isfinite(x); }

void check(const Job& job, const Snapshot& snapshot) {
  if (!finite_from_zero(job.weight)) refuse("plan: job ", job.id, " has weight ", job.weight);
  if (!finite_from_zero(job.restart_s)) {
    refuse("plan: job ", job.id, " restarts in ", job.restart_s, " s");
  }
  if (!finite_from_zero(job.memory_gb)) {
    refuse("plan: job ", job.id, " needs ", job.memory_gb, " GB");
  }
  for (const Option& option : job.options) {
    if (option.tier < 0 || option.tier >= static_cast<int>(snapshot.tiers.size())) {
      refuse("plan: job ", job.id, " names tier ", option.tier, ", there are ",
             snapshot.tiers.size());
    }
    if (option.gpus < 1) refuse("plan: job ", job.id, " asks ", option.gpus, " GPUs");
    if (!finite_from_zero(option.steps_per_s)) {
      refuse("plan: job ", job.id, " runs at ", option.steps_per_s, " steps per second");
    }
  }
  for (const double s : job.remaining_steps) {
    if (!(s >= 0)) refuse("plan: job ", job.id, " has ", s, " remaining steps");
  }
}

bool feasible(const Job& job, const Option& option, const Tier& tier) {
  return option.gpus <= tier.gpus() && (tier.memory_gb <= 0 || job.memory_gb <= tier.memory_gb);
}

/// Why no option of the job fits.
[[noreturn]] void refuse_unfit(const Job& job, const Snapshot& snapshot) {
  if (job.options.empty()) refuse("plan: job ", job.id, " has no options");
  int least = job.options.front().gpus;
  const Tier* largest = nullptr;
  for (const Option& option : job.options) {
    least = std::min(least, option.gpus);
    const Tier& tier = snapshot.tiers[static_cast<std::size_t>(option.tier)];
    if (!largest || tier.gpus() > largest->gpus()) largest = &tier;
  }
  if (least > largest->gpus()) {
    refuse("plan: job ", job.id, " asks ", least, " GPUs, largest tier '", largest->name, "' has ",
           largest->gpus());
  }
  refuse("plan: job ", job.id, " needs ", job.memory_gb,
         " GB per GPU, more than the tiers it may run on");
}

template <class... Parts>
std::string line(const char* format, Parts... parts) {
  char text[256];
  std::snprintf(text, sizeof text, format, parts...);
  return text;
}

}  // namespace

std::string_view name(Objective objective) noexcept {
  for (const auto& [value, text] : kObjectives) {
    if (value == objective) return text;
  }
  return "?";
}

Objective objective_named(std::string_view text) {
  std::string known;
  for (const auto& [value, objective] : kObjectives) {
    if (objective == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(objective);
  }
  refuse("plan: unknown objective '", text, "', known: ", known);
}

Plan plan(const Snapshot& snapshot, const PlanOptions& options) {
  if (!(options.round_s > 0)) refuse("plan: the round is ", options.round_s, " s");
  const std::size_t jobs = snapshot.jobs.size();
  for (const Tier& tier : snapshot.tiers) validate(tier);
  std::unordered_map<std::int64_t, std::size_t> index;
  index.reserve(jobs);
  for (std::size_t j = 0; j < jobs; ++j) {
    check(snapshot.jobs[j], snapshot);
    if (!index.emplace(snapshot.jobs[j].id, j).second) {
      refuse("plan: job ", snapshot.jobs[j].id, " appears twice");
    }
  }
  std::vector<const Allocation*> holds(jobs, nullptr);
  for (const Allocation& allocation : snapshot.running) {
    const auto found = index.find(allocation.job);
    if (found == index.end()) refuse("plan: job ", allocation.job, " runs but is not in the queue");
    if (holds[found->second]) refuse("plan: job ", allocation.job, " holds two allocations");
    holds[found->second] = &allocation;
  }

  // The options of the jobs that go on, as columns.
  Plan plan;
  std::vector<std::int64_t> job, tier, gpus, capacity;
  std::vector<double> value;
  std::vector<std::string> ended(jobs);
  for (const Tier& t : snapshot.tiers) capacity.push_back(t.gpus());
  for (std::size_t j = 0; j < jobs; ++j) {
    const Job& candidate = snapshot.jobs[j];
    const detail::Ends ends = detail::ends_of(candidate);
    if (std::max(ends.reached, ends.never) >= options.stop_probability) {
      plan.stop.push_back(candidate.id);
      ended[j] = ends.reached >= ends.never
                     ? line("ends: target reached with probability %.3g", ends.reached)
                     : line("ends: target out of reach with probability %.3g", ends.never);
      continue;
    }
    const double per_step = detail::index_per_step(candidate, options.round_s);
    bool fits = false;
    for (const Option& option : candidate.options) {
      if (!feasible(candidate, option, snapshot.tiers[static_cast<std::size_t>(option.tier)])) {
        continue;
      }
      fits = true;
      const bool keeps = holds[j] && holds[j]->tier == option.tier && holds[j]->gpus == option.gpus;
      double worth =
          detail::value_per_second(candidate, option, per_step, !keeps && candidate.attained_s > 0);
      if (keeps) worth *= 1 + options.hysteresis;
      job.push_back(static_cast<std::int64_t>(j));
      tier.push_back(option.tier);
      gpus.push_back(option.gpus);
      value.push_back(worth);
    }
    if (!fits) refuse_unfit(candidate, snapshot);
  }
  const RoundPlan round = solve_round({job, tier, gpus, value, capacity},
                                      {.gap = options.gap, .prices = options.prices});
  plan.value = round.value;
  plan.bound = round.bound;
  plan.gap = round.gap;
  plan.prices = round.prices;

  std::vector<std::int64_t> chosen(jobs, -1);
  for (const std::int64_t o : round.chosen) {
    const auto i = static_cast<std::size_t>(o);
    const auto j = static_cast<std::size_t>(job[i]);
    chosen[j] = o;
    const Allocation* held = holds[j];
    const bool keeps = held && held->tier == tier[i] && held->gpus == gpus[i];
    plan.allocations.push_back({snapshot.jobs[j].id, static_cast<int>(tier[i]),
                                static_cast<int>(gpus[i]), keeps ? held->since_s : snapshot.now_s});
  }
  if (!options.reasons) return plan;

  std::vector<std::size_t> dearest(jobs, value.size());  // best net offer of each job
  const auto net = [&](std::size_t i) {
    return value[i] -
           round.prices[static_cast<std::size_t>(tier[i])] * static_cast<double>(gpus[i]);
  };
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::size_t& best = dearest[static_cast<std::size_t>(job[i])];
    if (best == value.size() || net(i) > net(best)) best = i;
  }
  plan.reasons.reserve(jobs);
  for (std::size_t j = 0; j < jobs; ++j) {
    std::string text = std::move(ended[j]);
    if (text.empty()) {
      const std::size_t i = chosen[j] >= 0 ? static_cast<std::size_t>(chosen[j]) : dearest[j];
      const char* where = snapshot.tiers[static_cast<std::size_t>(tier[i])].name.c_str();
      const double cost = value[i] - net(i);
      const auto k = static_cast<long long>(gpus[i]);
      const Allocation* held = holds[j];
      const bool keeps = held && held->tier == tier[i] && held->gpus == gpus[i];
      if (chosen[j] >= 0) {
        text = line("%s %lld x %s: worth %.3g per s, these GPUs cost %.3g",
                    keeps ? "keeps" : "gets", k, where, value[i], cost);
      } else if (value[i] < cost) {
        text = line("%s: worth %.3g per s on %lld x %s, these GPUs cost %.3g",
                    held ? "gives way" : "waits", value[i], k, where, cost);
      } else {
        text = line("%s: no gang of %lld is left on %s", held ? "gives way" : "waits", k, where);
      }
    }
    plan.reasons.push_back({snapshot.jobs[j].id, std::move(text)});
  }
  return plan;
}

}  // namespace glidepath
