// SPDX-License-Identifier: Apache-2.0
#include "simulate/live.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "common/require.hpp"
#include "simulate/forecasts.hpp"
#include "simulate/policies.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;
Index at(int i) { return static_cast<Index>(i); }

/// Lets a policy decide: builds what it may see, carries out what it says. The truth stays in the
/// Engine: of a curve a Snapshot has the points up to the step that the job has reached.
class Live {
 public:
  Live(Engine& engine, const Policy& policy, std::optional<double> session_s, bool forecasts)
      : engine_(engine),
        policy_(policy),
        forecasts_(forecasts),
        session_(session_s ? std::max<Tick>(1, engine.ticks(*session_s)) : kNever),
        round_(engine.options.round_s ? std::max<Tick>(1, engine.ticks(*engine.options.round_s))
                                      : kNever),
        predict_(engine) {
    for (int t = 0; t < static_cast<int>(engine.workload.tiers.size()); ++t) tiers_.push_back(t);
  }

  /// Also forecast the losses themselves.
  void looks_ahead(bool ahead) { ahead_ = ahead; }

  void arrive(int job) {
    place_.emplace(engine_.asked(job).id, job);
    live_.push_back(job);
    jobs_.push_back(described(job));
  }

  void leave(int job) {
    const auto it = std::lower_bound(live_.begin(), live_.end(), job);
    jobs_.erase(jobs_.begin() + (it - live_.begin()));
    live_.erase(it);
    place_.erase(engine_.asked(job).id);
    session_end_.erase(job);
    seen_.erase(job);
  }

  [[nodiscard]] Tick wake() const {
    Tick next = kNever;
    if (session_ != kNever) {
      for (const auto& [end, job] : engine_.ends) next = std::min(next, session_end_.at(job));
    }
    if (round_ != kNever && !live_.empty()) {
      next = std::min(next, (engine_.now / round_ + 1) * round_);
    }
    return next;
  }

  void schedule() {
    if (live_.empty()) return;
    running_.clear();
    for (Index i = 0; i < live_.size(); ++i) observe(live_[i], jobs_[i]);
    const Snapshot snapshot{.now_s = engine_.seconds(engine_.now),
                            .tiers = engine_.workload.tiers,
                            .jobs = jobs_,
                            .running = running_};
    apply(policy_(snapshot));
    if (session_ == kNever) return;
    for (const auto& [finish, job] : engine_.ends) {  // a job that runs on begins a session
      Tick& end = session_end_[job];
      if (end <= engine_.now) end = engine_.now + session_;
    }
  }

 private:
  /// What does not change while the job lives.
  [[nodiscard]] Job described(int job) const {
    const WorkloadJob& asked = engine_.asked(job);
    Job out{.id = asked.id, .user = asked.user, .submit_s = asked.submit_s};
    out.memory_gb = asked.memory_gb;
    out.target_loss = asked.target_loss;
    out.budget_steps = asked.truth >= 0 ? asked.budget_steps : 0;
    for (const int tier : tiers_) {
      const double rate = engine_.rate(job, tier);
      if (rate <= 0 || !engine_.fits_memory(job, tier)) continue;
      if (asked.gpus > engine_.capacity[at(tier)]) continue;
      out.options.push_back({tier, asked.gpus, rate, asked.utilisation});
    }
    return out;
  }

  void observe(int job, Job& seen) {
    const Run& run = engine_.runs[at(job)];
    const auto per_second = static_cast<double>(engine_.per_second);
    Tick held = run.held;
    if (run.tier >= 0) {
      held += engine_.now - run.began;
      running_.push_back({seen.id, run.tier, run.gpus, engine_.seconds(run.began)});
    }
    seen.steps_done = engine_.done(job) / per_second;
    seen.attained_s = engine_.seconds(held);
    seen.attained_gpu_s = seen.attained_s * run.gpus;
    seen.restart_s = run.first_start < 0 ? 0 : engine_.options.restart_s;
    const WorkloadJob& asked = engine_.asked(job);
    if (asked.truth >= 0) {
      seen.observed = seen_[job].up_to(engine_.workload.curves[at(asked.truth)], seen.steps_done);
      if (forecasts_) predict_.curve(job, seen, ahead_);
    } else if (forecasts_) {
      predict_.service(job, seen);
    }
  }

  void apply(const Plan& plan) {
    const auto known = [&](std::int64_t id) {
      const auto it = place_.find(id);
      if (it == place_.end()) refuse("simulate: the policy names job ", id, ", which is not live");
      return it->second;
    };
    for (const std::int64_t id : plan.stop) {
      const int job = known(id);
      const WorkloadJob& asked = engine_.asked(job);
      const Job& seen =
          jobs_[Index(std::lower_bound(live_.begin(), live_.end(), job) - live_.begin())];
      const bool reached =
          asked.truth >= 0 && std::any_of(seen.observed.loss.begin(), seen.observed.loss.end(),
                                          [&](double loss) { return loss <= asked.target_loss; });
      engine_.finish(job, reached ? Outcome::target : Outcome::never);
      leave(job);
    }
    wanted_.clear();
    std::vector<int> used(engine_.capacity.size(), 0);
    for (const Allocation& allocation : plan.allocations) {
      const int job = known(allocation.job);
      const int tiers = static_cast<int>(engine_.capacity.size());
      if (allocation.tier < 0 || allocation.tier >= tiers) {
        refuse("simulate: the policy puts job ", allocation.job, " on tier ", allocation.tier,
               " of ", tiers);
      }
      if (allocation.gpus != engine_.runs[at(job)].gpus) {
        refuse("simulate: the policy gives job ", allocation.job, " ", allocation.gpus,
               " GPUs, it asks for ", engine_.runs[at(job)].gpus);
      }
      if (!(engine_.rate(job, allocation.tier) > 0) || !engine_.fits_memory(job, allocation.tier)) {
        refuse("simulate: the policy puts job ", allocation.job, " on tier '",
               engine_.workload.tiers[at(allocation.tier)].name, "', where it cannot run");
      }
      if (!wanted_.emplace(job, allocation.tier).second) {
        refuse("simulate: the policy runs job ", allocation.job, " twice");
      }
      used[at(allocation.tier)] += allocation.gpus;
    }
    for (Index t = 0; t < used.size(); ++t) {
      if (used[t] > engine_.capacity[t]) {
        refuse("simulate: the policy uses ", used[t], " GPUs of tier '",
               engine_.workload.tiers[t].name, "', which has ", engine_.capacity[t]);
      }
    }
    suspended_.clear();
    for (const auto& [finish, job] : engine_.ends) {
      const auto it = wanted_.find(job);
      if (it == wanted_.end() || it->second != engine_.runs[at(job)].tier) {
        suspended_.push_back(job);
      } else {
        wanted_.erase(it);
      }
    }
    for (const int job : suspended_) engine_.suspend(job);
    for (const int job : live_) {  // in order of submission, not of a hash
      const auto it = wanted_.find(job);
      if (it == wanted_.end()) continue;
      engine_.start(job, it->second);
      if (session_ != kNever) session_end_[job] = engine_.runs[at(job)].resumes + session_;
    }
  }

  /// A copy of the points that a job has logged: a view of the truth itself would end where the
  /// future begins, one element further.
  struct Logged {
    std::vector<double> step, loss;
    TraceView up_to(const Trace& truth, double last_step) {
      while (step.size() < truth.step.size() && truth.step[step.size()] <= last_step) {
        loss.push_back(truth.loss[step.size()]);
        step.push_back(truth.step[step.size()]);
      }
      return {step, loss, {}};
    }
  };

  Engine& engine_;
  const Policy& policy_;
  bool forecasts_;
  bool ahead_ = false;
  Tick session_, round_;
  Predictor predict_;
  std::vector<int> tiers_;
  std::vector<int> live_;  ///< in order of submission
  std::vector<Job> jobs_;  ///< what the policy sees of them
  std::vector<Allocation> running_;
  std::unordered_map<std::int64_t, int> place_;
  std::unordered_map<int, int> wanted_;
  std::unordered_map<int, Tick> session_end_;
  std::unordered_map<int, Logged> seen_;
  std::vector<int> suspended_;
};

}  // namespace

void run_policy(Engine& engine, const Policy& policy) {
  Live live(engine, policy, engine.options.session_s, true);
  run(engine, live);
}

bool stops_at_target(std::string_view policy) {
  return policy == "dare" || policy == "best_value" || policy == "optimus" || policy == "slaq" ||
         policy == "themis" || policy == "makespan";
}

void run_named(Engine& engine, std::string_view policy) {
  std::optional<double> session_s = engine.options.session_s;
  if (policy == "session_fifo" && !session_s) session_s = 3600;
  // Losses come in between events: look at them now and then.
  if (stops_at_target(policy) && !session_s && !engine.workload.curves.empty()) session_s = 300;
  const bool forecasts = policy != "fifo" && policy != "first_fit" && policy != "session_fifo";
  const Policy decide = make_policy(policy, engine.options);
  Live live(engine, decide, session_s, forecasts);
  live.looks_ahead(policy == "slaq");
  run(engine, live);
}

}  // namespace glidepath::detail
