// SPDX-License-Identifier: Apache-2.0
#include "simulate/live.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "simulate/forecasts.hpp"
#include "simulate/leader.hpp"
#include "simulate/policies.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

/// What a policy looks at, and so what has to be forecast for it.
enum class Forecasts : std::uint8_t { none, durations, all };

/// Lets a policy decide: builds what it may see, carries out what it says. The truth stays in the
/// Engine: of a curve a Snapshot has the points up to the step that the job has reached.
class Live {
 public:
  Live(Engine& engine, const Policy& policy, std::optional<double> session_s, Forecasts forecasts)
      : engine_(engine),
        policy_(policy),
        forecasts_(forecasts),
        session_(session_s ? std::max<Tick>(1, engine.ticks(*session_s)) : kNever),
        round_(engine.options.round_s ? ticks_of(*engine.options.round_s) : kNever),
        predict_(engine),
        tiers_(engine.workload.tiers) {}

  /// Decides every so often even if it was not asked to.
  void decides_every(double seconds) {
    if (round_ == kNever) round_ = ticks_of(seconds);
  }

  /// The planner's values are those of the leader of SRTF and SRSF.
  void follows_leader() { leader_.emplace(engine_); }

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
    if (leader_) leader_->refresh([&](int job) { return predict_.likely(job); });
    for (Index i = 0; i < live_.size(); ++i) observe(live_[i], jobs_[i]);
    const Snapshot snapshot{.now_s = engine_.seconds(engine_.now),
                            .tiers = tiers_,
                            .jobs = in_service(),
                            .running = running_};
    apply(policy_(snapshot));
    if (session_ == kNever) return;
    for (const auto& [finish, job] : engine_.ends) {  // a job that runs on begins a session
      Tick& end = session_end_[job];
      if (end <= engine_.now) end = engine_.now + session_;
    }
  }

 private:
  [[nodiscard]] Tick ticks_of(double seconds) const {
    return std::max<Tick>(1, engine_.ticks(seconds));
  }

  /// The live jobs; with nodes out, those of them that still fit somewhere.
  std::span<const Job> in_service() {
    if (!engine_.nodes) return jobs_;
    for (Index t = 0; t < tiers_.size(); ++t) {
      tiers_[t].nodes = engine_.capacity[t] / tiers_[t].gpus_per_node;
    }
    if (engine_.nodes->all_up()) return jobs_;
    shown_.clear();
    for (const Job& job : jobs_) {
      Job shown = job;
      std::erase_if(shown.options, [&](const Option& option) {
        return option.gpus > engine_.capacity[at(option.tier)];
      });
      if (!shown.options.empty()) shown_.push_back(std::move(shown));
    }
    return shown_;
  }

  /// What does not change while the job lives.
  [[nodiscard]] Job described(int job) const {
    const WorkloadJob& asked = engine_.asked(job);
    Job out{.id = asked.id, .user = asked.user, .submit_s = asked.submit_s};
    out.memory_gb = asked.memory_gb;
    out.target_loss = asked.target_loss;
    out.budget_steps = asked.truth >= 0 ? asked.budget_steps : 0;
    out.weight = asked.weight;
    out.priority = asked.priority;
    out.deadline_s = asked.deadline_s;
    out.sm_activity = asked.sm_activity;
    out.kind = asked.job_class;
    for (int tier = 0; tier < static_cast<int>(engine_.workload.tiers.size()); ++tier) {
      const double rate = engine_.rate(job, tier);
      if (rate <= 0 || !engine_.fits_memory(job, tier)) continue;
      if (asked.gpus > engine_.workload.tiers[at(tier)].gpus()) continue;
      out.options.push_back({tier, asked.gpus, rate, asked.utilization});
    }
    return out;
  }

  void observe(int job, Job& seen) {
    const Run& run = engine_.runs[at(job)];
    const auto per_second = static_cast<double>(engine_.per_second);
    Tick held = run.held;
    if (run.tier >= 0) {
      held += engine_.now - run.began;
      const std::int64_t partner = run.partner < 0 ? -1 : engine_.asked(run.partner).id;
      running_.push_back({seen.id, run.tier, run.gpus, engine_.seconds(run.since), partner});
    }
    seen.steps_done = engine_.done(job) / per_second;
    seen.attained_s = engine_.seconds(held);
    seen.attained_gpu_s = seen.attained_s * run.gpus;
    // Value per GPU is weight / (time x gang): the gang counts as the leader says.
    if (leader_) seen.weight = engine_.asked(job).weight * run.gpus / leader_->factor(run.gpus);
    seen.restart_s = run.first_start < 0 ? 0 : engine_.options.restart_s;
    const WorkloadJob& asked = engine_.asked(job);
    if (asked.truth >= 0) {
      seen.observed = seen_[job].up_to(engine_.workload.curves[at(asked.truth)], seen.steps_done);
      if (forecasts_ == Forecasts::all) predict_.curve(job, seen, ahead_);
    } else if (forecasts_ != Forecasts::none) {
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
      const int partner = allocation.partner < 0 ? -1 : known(allocation.partner);
      if (!wanted_.emplace(job, Wanted{allocation.tier, partner}).second) {
        refuse("simulate: the policy runs job ", allocation.job, " twice");
      }
      if (partner < 0 || job < partner) used[at(allocation.tier)] += allocation.gpus;
    }
    for (const Allocation& allocation : plan.allocations) {
      if (allocation.partner >= 0) check_pair(allocation);
    }
    for (Index t = 0; t < used.size(); ++t) {
      if (used[t] > engine_.capacity[t]) {
        refuse("simulate: the policy uses ", used[t], " GPUs of tier '",
               engine_.workload.tiers[t].name, "', which has ", engine_.capacity[t]);
      }
    }
    carry_out();
  }

  /// Both name each other, on the same tier, with equal gangs that share memory and make progress.
  void check_pair(const Allocation& allocation) const {
    const int job = place_.at(allocation.job);
    const int partner = place_.at(allocation.partner);
    const auto other = wanted_.find(partner);
    if (job == partner || other == wanted_.end() || other->second.partner != job ||
        other->second.tier != allocation.tier ||
        engine_.runs[at(partner)].gpus != allocation.gpus) {
      refuse("simulate: the policy lets job ", allocation.job, " share the GPUs of job ",
             allocation.partner, ", which does not share them");
    }
    const SharedSpeeds speeds = engine_.shared(job, partner, allocation.tier);
    if (!(speeds.first > 0 && speeds.second > 0)) {
      refuse("simulate: jobs ", allocation.job, " and ", allocation.partner, " cannot share GPUs (",
             name(engine_.options.sharing), ")");
    }
  }

  void carry_out() {
    // Who stays where it is. Of two that part, and of two that both have GPUs and shall share, the
    // later one moves.
    std::set<int> stays;
    for (const auto& [finish, job] : engine_.ends) {
      const auto it = wanted_.find(job);
      if (it != wanted_.end() && it->second.tier == engine_.runs[at(job)].tier) stays.insert(job);
    }
    suspended_.clear();
    for (const auto& [finish, job] : engine_.ends) {
      if (!stays.contains(job)) {
        suspended_.push_back(job);
        continue;
      }
      const int had = engine_.runs[at(job)].partner;
      const int has = wanted_.at(job).partner;
      const bool moves = had != has && ((had >= 0 && had < job && stays.contains(had)) ||
                                        (has >= 0 && has < job && stays.contains(has)));
      if (moves) suspended_.push_back(job);
    }
    for (const int job : suspended_) engine_.suspend(job);
    for (const int job : live_) {  // in order of submission, not of a hash
      const auto it = wanted_.find(job);
      if (it == wanted_.end() || engine_.runs[at(job)].tier >= 0) continue;
      const int partner = it->second.partner;
      const bool joins = partner >= 0 && engine_.runs[at(partner)].tier == it->second.tier;
      if (joins) {
        engine_.join(job, partner);
      } else if (!engine_.start(job, it->second.tier)) {
        continue;  // no nodes have room for the gang
      }
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
  Forecasts forecasts_;
  bool ahead_ = false;
  Tick session_, round_;
  Predictor predict_;
  std::optional<Leader> leader_;
  std::vector<Tier> tiers_;  ///< without the nodes that are out
  std::vector<Job> shown_;   ///< jobs that some tier can hold while nodes are out
  std::vector<int> live_;    ///< in order of submission
  std::vector<Job> jobs_;    ///< what the policy sees of them
  std::vector<Allocation> running_;
  std::unordered_map<std::int64_t, int> place_;
  struct Wanted {
    int tier, partner;
  };
  std::unordered_map<int, Wanted> wanted_;
  std::unordered_map<int, Tick> session_end_;
  std::unordered_map<int, Logged> seen_;
  std::vector<int> suspended_;
};

}  // namespace

namespace {

/// Those that order jobs by the time asked for, or the service had, look at no curve.
Forecasts forecasts_for(std::string_view policy) {
  if (policy == "fifo" || policy == "first_fit" || policy == "session_fifo") return Forecasts::none;
  const bool blind = policy == "sjf" || policy == "srtf" || policy == "srsf" || policy == "las";
  return blind ? Forecasts::durations : Forecasts::all;
}

std::optional<double> session_of(const Engine& engine, std::string_view policy) {
  if (engine.options.session_s) return engine.options.session_s;
  if (policy == "session_fifo") return 3600;
  // Losses come in between events: look at them now and then.
  if (stops_at_target(policy) && !engine.workload.curves.empty()) return 300;
  return {};
}

}  // namespace

std::function<bool()> stepwise(Engine& engine, Policy policy) {
  struct AtWork {
    AtWork(Engine& e, Policy p)
        : policy(std::move(p)), live(e, policy, session_of(e, "best_value"), Forecasts::all) {
      live.looks_ahead(true);
    }
    Policy policy;
    Live live;
  };
  return [&engine, work = std::make_shared<AtWork>(engine, std::move(policy))] {
    return advance(engine, work->live);
  };
}

void run_policy(Engine& engine, const Policy& policy) {
  Live live(engine, policy, engine.options.session_s, Forecasts::all);
  run(engine, live);
}

bool stops_at_target(std::string_view policy) {
  return policy == "dare" || policy == "best_value" || policy == "optimus" || policy == "slaq" ||
         policy == "themis" || policy == "makespan";
}

void run_named(Engine& engine, std::string_view policy) {
  const std::vector<WeightedObjective>& goals = engine.options.planner.objectives;
  const std::optional<double> session_s = session_of(engine, policy);
  const Forecasts forecasts = forecasts_for(policy);
  // A pair that was measured is known to the cluster, as a table of job classes.
  std::unordered_map<std::int64_t, int> of_id;
  PairTable pairs;
  if (!engine.workload.pairs.empty() && engine.options.sharing != Sharing::exclusive) {
    for (int job = 0; job < static_cast<int>(engine.runs.size()); ++job) {
      of_id.emplace(engine.asked(job).id, job);
    }
    pairs = [&](std::int64_t first, std::int64_t second, int tier) {
      return engine.shared(of_id.at(first), of_id.at(second), tier);
    };
  }
  const Policy decide = make_policy(policy, engine.options, pairs);
  Live live(engine, decide, session_s, forecasts);
  live.looks_ahead(policy == "slaq" ||
                   std::any_of(goals.begin(), goals.end(), [](const WeightedObjective& goal) {
                     return goal.objective == Objective::quality;
                   }));
  // Nobody ends for a long time where the longest go first: who is late is seen in between.
  if (policy == "makespan") live.decides_every(360);
  const bool for_jct = goals.size() == 1 && goals.front().objective == Objective::jct;
  if (policy == "best_value" && for_jct && engine.capacity.size() == 1 &&
      engine.workload.curves.empty()) {
    live.follows_leader();
  }
  run(engine, live);
}

}  // namespace glidepath::detail
