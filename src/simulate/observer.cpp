// SPDX-License-Identifier: Apache-2.0
#include "simulate/observer.hpp"

#include <algorithm>
#include <utility>

#include "common/numbers.hpp"

namespace glidepath::detail {

Observer::Observer(const Cluster& cluster, const Foresight& foresight)
    : cluster_(cluster), foresight_(foresight), predict_(cluster), tiers_(cluster.workload.tiers) {
  if (foresight.follows_leader) leader_.emplace(cluster);
}

std::vector<Option> shown_options(const Cluster& cluster, int job, const Foresight& foresight) {
  const WorkloadJob& submitted = cluster.submitted(job);
  std::vector<Option> out;
  const auto add = [&](int gpus) {
    for (int tier = 0; tier < static_cast<int>(cluster.workload.tiers.size()); ++tier) {
      const double rate = cluster.rate(job, tier, gpus);
      if (rate <= 0 || !cluster.fits_memory(job, tier)) continue;
      if (gpus > cluster.workload.tiers[tier].gpus()) continue;
      out.push_back({tier, gpus, rate, submitted.utilization});
    }
  };
  add(submitted.gpus);
  if (!foresight.elastic) return out;
  for (const Gang& gang : submitted.gangs) add(gang.gpus);
  return out;
}

void Observer::arrive(int job) {
  index_.emplace(cluster_.submitted(job).id, job);
  live_.push_back(job);
  jobs_.push_back(described(job));
}

void Observer::leave(int job) {
  const auto it = std::lower_bound(live_.begin(), live_.end(), job);
  jobs_.erase(jobs_.begin() + (it - live_.begin()));
  live_.erase(it);
  index_.erase(cluster_.submitted(job).id);
  logged_.erase(job);
}

Snapshot Observer::snapshot() {
  running_.clear();
  leads_ = leader_ && foresight_.follows_leader();
  if (leads_) leader_->refresh([&](int job) { return predict_.likely(job); });
  for (std::size_t i = 0; i < live_.size(); ++i) observe(live_[i], jobs_[i]);
  return {.now_s = cluster_.seconds(cluster_.now),
          .tiers = tiers_,
          .jobs = in_service(),
          .running = running_};
}

int Observer::job_of(std::int64_t id) const {
  const auto it = index_.find(id);
  return it == index_.end() ? -1 : it->second;
}

const Job& Observer::seen(int job) const {
  return jobs_[std::lower_bound(live_.begin(), live_.end(), job) - live_.begin()];
}

bool Observer::has_reached_target(int job) const {
  const WorkloadJob& submitted = cluster_.submitted(job);
  const std::span<const double> losses = seen(job).observed.loss;
  return submitted.truth >= 0 &&
         std::ranges::any_of(losses, [&](double loss) { return loss <= submitted.target_loss; });
}

/// The live jobs; with nodes out, those of them that still fit somewhere.
std::span<const Job> Observer::in_service() {
  if (!cluster_.nodes) return jobs_;
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    tiers_[t].nodes = cluster_.capacity[t] / tiers_[t].gpus_per_node;
  }
  if (cluster_.nodes->all_up()) return jobs_;
  shown_.clear();
  for (const Job& job : jobs_) {
    Job shown = job;
    std::erase_if(shown.options, [&](const Option& option) {
      return option.gpus > cluster_.capacity[option.tier];
    });
    if (!shown.options.empty()) shown_.push_back(std::move(shown));
  }
  return shown_;
}

/// What does not change while the job lives.
Job Observer::described(int job) const {
  const WorkloadJob& submitted = cluster_.submitted(job);
  Job out{.id = submitted.id, .user = submitted.user, .submit_s = submitted.submit_s};
  out.memory_gb = submitted.memory_gb;
  out.target_loss = submitted.target_loss;
  out.budget_steps = submitted.truth >= 0 ? submitted.budget_steps : 0;
  out.weight = submitted.weight;
  out.priority = submitted.priority;
  out.deadline_s = submitted.deadline_s;
  out.sm_activity = submitted.sm_activity;
  out.memory_activity = submitted.memory_activity;
  out.kind = submitted.job_class;
  out.restart_s = cluster_.seconds(cluster_.restart_of(job));
  out.options = shown_options(cluster_, job, foresight_);
  return out;
}

void Observer::observe(int job, Job& seen) {
  const Run& run = cluster_.runs[job];
  const auto per_second = static_cast<double>(cluster_.per_second);
  // The stretch that runs counts as it will be booked, see Cluster::settle().
  const Tick length = run.tier < 0 ? 0 : cluster_.now - run.began;
  const double part = run.partner < 0 ? 1.0 : 0.5;
  const Tick held = run.held + length;
  const Tick shared = run.shared + (run.partner < 0 ? 0 : length);
  const int gang = cluster_.submitted(job).gpus;
  const double extra = run.extra_gpu + (run.gpus - gang) * part * static_cast<double>(length);
  if (run.tier >= 0) {
    const std::int64_t partner = run.partner < 0 ? -1 : cluster_.submitted(run.partner).id;
    running_.push_back({seen.id, run.tier, run.gpus, cluster_.seconds(run.since), partner});
  }
  seen.steps_done = cluster_.done(job) / per_second;
  seen.attained_s = cluster_.seconds(held);
  seen.attained_gpu_s =
      (seen.attained_s - 0.5 * cluster_.seconds(shared)) * gang + extra / per_second;
  // Value per GPU is weight / (time x gang): the gang counts as the leader says.
  if (leader_) {
    const double weight = cluster_.submitted(job).weight;
    seen.weight = leads_ ? weight * run.gpus / leader_->factor(run.gpus) : weight;
  }
  const WorkloadJob& submitted = cluster_.submitted(job);
  if (submitted.truth >= 0) {
    const Trace& truth = cluster_.workload.curves[submitted.truth];
    seen.observed = logged_[job].up_to(truth, seen.steps_done);
    if (foresight_.sees == Forecasts::all)
      predict_.curve(job, seen,
                     foresight_.looks_ahead ? LossesAhead::wanted : LossesAhead::unwanted);
  } else if (foresight_.sees != Forecasts::none) {
    predict_.service(job, seen);
  }
}

}  // namespace glidepath::detail
