// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "simulate/clock.hpp"
#include "simulate/phases.hpp"

namespace glidepath {

namespace {

using detail::kMaxSeconds;
using detail::refuse;

template <class... Parts>
[[noreturn]] void refuse_job(const WorkloadJob& job, const Parts&... parts) {
  refuse("workload: job ", job.id, " ", parts...);
}

void validate_pair(const PairSpeeds& pair, const Workload& workload) {
  if (pair.tier < 0 || pair.tier >= static_cast<int>(workload.tiers.size()) ||
      !(pair.first_speed >= 0 && pair.second_speed >= 0)) {
    refuse("workload: the pair of '", pair.first, "' and '", pair.second, "' has tier ", pair.tier,
           " and speeds ", pair.first_speed, " and ", pair.second_speed,
           ", expected a tier of 0 to ", std::ssize(workload.tiers) - 1,
           " and speeds of 0 or more");
  }
}

/// Each pair has one result, whichever way round it is given.
void validate_pairs(const Workload& workload) {
  std::map<std::tuple<std::string_view, std::string_view, int>, std::pair<double, double>> known;
  for (const PairSpeeds& pair : workload.pairs) {
    validate_pair(pair, workload);
    const std::pair speeds{pair.first_speed, pair.second_speed};
    const std::pair swapped{pair.second_speed, pair.first_speed};
    const auto one = known.try_emplace({pair.first, pair.second, pair.tier}, speeds).first;
    const bool alike = pair.first == pair.second;  // which of two is the first nobody can tell
    const auto other = known.try_emplace({pair.second, pair.first, pair.tier}, swapped).first;
    if (one->second != speeds || (!alike && other->second != swapped)) {
      refuse("workload: the pair of '", pair.first, "' and '", pair.second,
             "' has two results on tier ", pair.tier);
    }
  }
}

void validate_work(const WorkloadJob& job) {
  const auto time = [&](const char* what, double value, const char* expected) {
    if (std::isfinite(value) && value >= 0) return;
    refuse_job(job, "has ", what, " ", value, ", expected ", expected);
  };
  time("submit_s", job.submit_s, "0 or more");
  time("duration_s", job.duration_s, "more than 0 and finite");
  time("budget_steps", job.budget_steps, "more than 0 and finite");
  if (job.duration_s == 0 && job.budget_steps == 0) {
    refuse_job(job, "has neither duration_s nor budget_steps above 0");
  }
  if (job.duration_s > 0 && job.budget_steps > 0) {
    refuse_job(job, "has duration_s ", job.duration_s,
               " beside budget_steps, expected one measure of its work");
  }
  if (job.duration_s > kMaxSeconds || job.submit_s > kMaxSeconds) {
    refuse_job(job, "lies beyond ", detail::kMaxSecondsText, " seconds");
  }
}

void validate_trace(const WorkloadJob& job, const Trace& curve) {
  try {
    validate(curve.view());
  } catch (const InputError& error) {
    refuse_job(job, "names curve ", job.truth, " '", curve.name, "': ", error.what());
  }
}

/// No run goes on where its record ends.
void validate_curve(const WorkloadJob& job, const Trace& curve) {
  if (job.duration_s > 0) {
    refuse_job(job, "has duration_s ", job.duration_s,
               " beside a curve, expected budget_steps in its place");
  }
  if (std::isnan(job.target_loss)) refuse_job(job, "has target_loss nan, expected a number");
  if (curve.step.empty()) refuse_job(job, "names a curve without points");
  if (job.budget_steps <= curve.step.back()) return;
  refuse_job(job, "has budget_steps ", job.budget_steps, ", expected at most ", curve.step.back(),
             ", where its curve ends");
}

void validate_columns(const WorkloadJob& job, const Workload& workload) {
  if (job.gpus < 1) refuse_job(job, "asks ", job.gpus, " GPUs, expected at least 1");
  const auto share = [&](const char* what, double value) {
    if (!(value >= 0 && value <= 1)) refuse_job(job, "has ", what, " ", value, ", expected 0 to 1");
  };
  share("utilization", job.utilization);
  share("sm_activity", job.sm_activity);
  if (!(job.memory_activity < 0)) share("memory_activity", job.memory_activity);
  if (!(job.weight >= 0 && std::isfinite(job.weight))) {
    refuse_job(job, "has weight ", job.weight, ", expected 0 or more and finite");
  }
  if (std::isnan(job.deadline_s)) refuse_job(job, "has deadline_s nan, expected a number");
  if (!(job.memory_gb >= 0 && std::isfinite(job.memory_gb))) {
    refuse_job(job, "has memory_gb ", job.memory_gb, ", expected 0 or more and finite");
  }
  if (job.truth >= static_cast<int>(workload.curves.size()) || job.truth < -1) {
    refuse_job(job, "names curve ", job.truth,
               detail::expected_place("curve", workload.curves.size()));
  }
  if (!job.steps_per_s.empty() && job.steps_per_s.size() != workload.tiers.size()) {
    refuse_job(job, "has ", job.steps_per_s.size(), " step rates, expected ", workload.tiers.size(),
               ", one for each tier");
  }
  for (const double rate : job.steps_per_s) {
    if (rate >= 0 && std::isfinite(rate)) continue;
    refuse_job(job, "has steps_per_s ", rate, ", expected 0 or more and finite");
  }
  if (!(job.restart_s <= kMaxSeconds)) {
    refuse_job(job, "has restart_s ", job.restart_s, ", expected at most ",
               detail::kMaxSecondsText);
  }
}

void validate_gangs(const WorkloadJob& job, const Workload& workload) {
  std::unordered_set<int> sizes{job.gpus};
  for (const Gang& gang : job.gangs) {
    if (gang.gpus < 1) refuse_job(job, "has a gang of ", gang.gpus, " GPUs, expected at least 1");
    if (!sizes.insert(gang.gpus).second) {
      refuse_job(job, "has its gang of ", gang.gpus, " GPUs twice");
    }
    if (gang.steps_per_s.size() != workload.tiers.size()) {
      refuse_job(job, "has ", gang.steps_per_s.size(), " step rates with ", gang.gpus,
                 " GPUs, expected ", workload.tiers.size(), ", one for each tier");
    }
    for (const double rate : gang.steps_per_s) {
      if (rate >= 0 && std::isfinite(rate)) continue;
      refuse_job(job, "has steps_per_s ", rate, " with ", gang.gpus,
                 " GPUs, expected 0 or more and finite");
    }
  }
}

void validate_phases(const WorkloadJob& job) {
  if (!job.phases.empty() && job.truth >= 0) {
    refuse_job(job, "has phases and a curve: the steps of a curve are as fast as its rates say");
  }
  double last = -1;
  for (const Phase& phase : job.phases) {
    if (!(phase.from >= 0 && phase.from < 1)) {
      refuse_job(job, "has a phase from ", phase.from, ", expected a share of 0 to below 1");
    }
    if (phase.from <= last) {
      refuse_job(job, "has a phase from ", phase.from, ", expected more than ", last,
                 ", where the one before begins");
    }
    last = phase.from;
    if (!(phase.speed > 0 && std::isfinite(phase.speed))) {
      refuse_job(job, "has speed ", phase.speed, " from ", phase.from, ", expected more than 0");
    }
  }
  if (!job.phases.empty() && !(detail::work_of(job) <= kMaxSeconds)) {
    refuse_job(job, "lies beyond ", detail::kMaxSecondsText, " seconds by its phases");
  }
}

/// Some tier has the GPUs, the memory and a rate for the job.
void validate_room(const WorkloadJob& job, const Workload& workload) {
  int largest = 0;
  double memory = 0;
  bool runs = false;
  for (std::size_t t = 0; t < workload.tiers.size(); ++t) {
    const Tier& tier = workload.tiers[t];
    largest = std::max(largest, tier.gpus());
    memory = std::max(memory, tier.memory_gb);
    runs |= job.gpus <= tier.gpus() && (tier.memory_gb <= 0 || job.memory_gb <= tier.memory_gb) &&
            (job.steps_per_s.empty() || job.steps_per_s[t] > 0);
  }
  if (job.gpus > largest) {
    refuse_job(job, "asks ", job.gpus, " GPUs, the largest tier has ", largest);
  }
  if (!runs) {
    refuse_job(job, "fits no tier: it asks ", job.gpus, " GPUs of ", job.memory_gb,
               " GB each (largest memory ", memory, " GB) and a step rate above 0");
  }
}

/// No tier that the job could be given is so slow that its end is beyond all times.
void validate_ends(const WorkloadJob& job, const Workload& workload) {
  const double work = detail::work_of(job);
  const auto look = [&](int gpus, const std::vector<double>& rates) {
    for (std::size_t t = 0; t < workload.tiers.size(); ++t) {
      const Tier& tier = workload.tiers[t];
      const double rate = rates.empty() ? 1 : rates[t];
      if (rate == 0 || gpus > tier.gpus()) continue;
      if (tier.memory_gb > 0 && job.memory_gb > tier.memory_gb) continue;
      if (work / rate <= kMaxSeconds) continue;
      refuse_job(job, "would take ", work / rate, " s on ", gpus, " GPUs of tier '", tier.name,
                 "', expected at most ", detail::kMaxSecondsText,
                 ", or a rate of 0 where it cannot run");
    }
  };
  look(job.gpus, job.steps_per_s);
  for (const Gang& gang : job.gangs) look(gang.gpus, gang.steps_per_s);
}

}  // namespace

void validate(const Workload& workload) {
  if (workload.tiers.empty()) refuse("workload: it has no tier");
  if (workload.jobs.empty()) refuse("workload: it has no job");
  std::unordered_set<std::string_view> names;
  for (const Tier& tier : workload.tiers) {
    validate(tier);
    if (!names.insert(tier.name).second) refuse("workload: tier '", tier.name, "' is there twice");
  }
  validate_pairs(workload);
  std::unordered_set<std::int64_t> ids;
  std::vector<bool> looked_at(workload.curves.size());
  for (const WorkloadJob& job : workload.jobs) {
    if (job.id < 0) refuse_job(job, "has an id below 0");  // -1 names no partner
    if (!ids.insert(job.id).second) refuse_job(job, "is there twice");
    validate_work(job);
    validate_columns(job, workload);
    if (job.truth >= 0) {
      const Trace& curve = workload.curves[job.truth];
      if (!looked_at[job.truth]) validate_trace(job, curve);
      looked_at[job.truth] = true;
      validate_curve(job, curve);
    }
    validate_gangs(job, workload);
    validate_phases(job);
    validate_room(job, workload);
    validate_ends(job, workload);
  }
}

}  // namespace glidepath
