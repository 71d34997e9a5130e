// SPDX-License-Identifier: Apache-2.0
#include "simulate/live.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/value.hpp"
#include "simulate/observer.hpp"
#include "simulate/sessions.hpp"

namespace glidepath::detail {

namespace {

/// Where a plan puts a job.
struct Wanted {
  int tier = -1;  ///< nowhere
  int gpus = 0;
  int partner = -1;  ///< a job on the same GPUs, -1 without
};

/// What the last plan wants of each job by index, in memory that stays from plan to plan.
class Wishes {
 public:
  explicit Wishes(std::size_t jobs) : of_job_(jobs) {}
  void clear() {
    for (const int job : named_) of_job_[job] = {};
    named_.clear();
  }
  /// False where the job has one.
  bool add(int job, const Wanted& wanted) {
    if (of_job_[job].tier >= 0) return false;
    of_job_[job] = wanted;
    named_.push_back(job);
    return true;
  }
  [[nodiscard]] const Wanted& of(int job) const { return of_job_[job]; }

 private:
  std::vector<Wanted> of_job_;
  std::vector<int> named_;
};

void check_place(const Allocation& allocation, int job, const Cluster& cluster) {
  const int tiers = static_cast<int>(cluster.capacity.size());
  if (allocation.tier < 0 || allocation.tier >= tiers) {
    refuse("simulate: the policy puts job ", allocation.job, " on tier ", allocation.tier,
           expected_place("tier", cluster.capacity.size()));
  }
  const Run& run = cluster.runs[job];
  if (run.tier == allocation.tier && run.gpus == allocation.gpus) return;  // runs there
  const WorkloadJob& submitted = cluster.submitted(job);
  if (allocation.gpus != submitted.gpus &&
      std::ranges::find(submitted.gangs, allocation.gpus, &Gang::gpus) == submitted.gangs.end()) {
    refuse("simulate: the policy gives job ", allocation.job, " ", allocation.gpus,
           " GPUs, it asks for ", submitted.gpus,
           submitted.gangs.empty() ? "" : " or another of its gangs");
  }
  if (!(cluster.rate(job, allocation.tier, allocation.gpus) > 0) ||
      !cluster.fits_memory(job, allocation.tier)) {
    refuse("simulate: the policy puts job ", allocation.job, " on tier '",
           cluster.workload.tiers[allocation.tier].name, "', where it cannot run");
  }
}

/// Both name each other, on the same tier, with equal gangs that share memory and make progress.
void check_pair(const Allocation& allocation, const Wishes& all, const Cluster& cluster,
                const Observer& observer) {
  const int job = observer.job_of(allocation.job);
  const int partner = observer.job_of(allocation.partner);
  const Wanted& other = all.of(partner);
  if (job == partner || other.partner != job || other.tier != allocation.tier ||
      other.gpus != allocation.gpus) {
    refuse("simulate: the policy lets job ", allocation.job, " share the GPUs of job ",
           allocation.partner, ", which does not share them");
  }
  if (cluster.options.sharing == Sharing::exclusive) {
    refuse("simulate: the policy lets jobs ", allocation.job, " and ", allocation.partner,
           " share GPUs, sharing is exclusive");
  }
  const SharedSpeeds speeds = cluster.shared(job, partner, allocation.tier);
  if (!(speeds.first > 0 && speeds.second > 0)) {
    refuse("simulate: jobs ", allocation.job, " and ", allocation.partner, " cannot share GPUs (",
           name(cluster.options.sharing), ")");
  }
}

/// The index of a live job that a plan names.
int named_job(const Observer& observer, std::int64_t id) {
  const int job = observer.job_of(id);
  if (job < 0) refuse("simulate: the policy names job ", id, ", which is not live");
  return job;
}

/// Reads a plan. Throws InputError naming the job on one that the cluster cannot carry out.
void read_plan(const Plan& plan, const Cluster& cluster, const Observer& observer, Wishes& out) {
  out.clear();
  std::vector<int> used(cluster.capacity.size(), 0);
  for (const Allocation& allocation : plan.allocations) {
    const int job = named_job(observer, allocation.job);
    check_place(allocation, job, cluster);
    const int partner = allocation.partner < 0 ? -1 : named_job(observer, allocation.partner);
    if (!out.add(job, {allocation.tier, allocation.gpus, partner})) {
      refuse("simulate: the policy runs job ", allocation.job, " twice");
    }
    if (partner < 0 || job < partner) used[allocation.tier] += allocation.gpus;
  }
  for (const Allocation& allocation : plan.allocations) {
    if (allocation.partner >= 0) check_pair(allocation, out, cluster, observer);
  }
  for (std::size_t t = 0; t < used.size(); ++t) {
    if (used[t] > cluster.capacity[t]) {
      refuse("simulate: the policy uses ", used[t], " GPUs of tier '",
             cluster.workload.tiers[t].name, "', which has ", cluster.capacity[t]);
    }
  }
}

/// What those do that are in the way of a gang for which nodes have no room.
enum class Gangs : std::uint8_t { stay, move };

/// How a policy is let decide.
struct LiveRules {
  Gangs gangs = Gangs::stay;
  bool rests = false;   ///< it changes nothing where each job runs on its fastest tier
  bool starts = false;  ///< one more that can start on its fastest does so, beside all of these
  /// The limits in time of the planner: at their ends it decides again.
  double min_run_s = 0, max_wait_s = kInfinity;
};

/// Lets a policy decide: shows it what it may see, carries out what it wants.
class Live {
 public:
  Live(Cluster& cluster, const Policy& policy, const Foresight& foresight, LiveRules rules = {})
      : cluster_(cluster),
        policy_(policy),
        observer_(cluster, foresight),
        rules_(rules),
        wishes_(cluster.runs.size()),
        sessions_(cluster) {}

  void arrive(int job) { observer_.arrive(job); }

  void leave(int job) {
    observer_.leave(job);
    sessions_.leave(job);
  }

  void fail(int) {}

  /// See Facts.
  [[nodiscard]] bool in_session(std::int64_t id, double session_s) const {
    const Tick passed = cluster_.now - cluster_.runs[observer_.job_of(id)].resumes;
    return passed <= 0 || passed % std::max<Tick>(1, cluster_.ticks(session_s)) != 0;
  }

  [[nodiscard]] Tick wake() const { return std::min(sessions_.wake(), next_limit()); }

  void schedule() {
    if (observer_.live().empty() || (rules_.rests && settles_at_best())) return;
    const Plan plan = policy_(observer_.snapshot());
    cluster_.fallback.note(plan.fallback);
    for (const std::int64_t id : plan.stop) {
      const int job = named_job(observer_, id);
      const bool reached = observer_.has_reached_target(job);
      cluster_.finish(job, reached ? JobOutcome::target : JobOutcome::never);
      leave(job);
    }
    read_plan(plan, cluster_, observer_, wishes_);
    suspend_others();
    start_wanted();
    sessions_.begin();
  }

 private:
  /// When the planner's answer may change by time alone; with rounds the first of them from then
  /// on.
  [[nodiscard]] Tick next_limit() const {
    if (rules_.min_run_s == 0 && rules_.max_wait_s == kInfinity) return kNever;
    const double now_s = cluster_.seconds(cluster_.now);
    Tick next = kNever;
    const auto look = [&](double passed_s, double limit_s) {
      if (passed_s >= limit_s) return;
      const double left = (limit_s - passed_s) * static_cast<double>(cluster_.per_second);
      if (left > static_cast<double>(kLastTick - cluster_.now)) return;
      const Tick whole = static_cast<Tick>(std::ceil(left - 1e-6));
      next = std::min(next, cluster_.now + std::max<Tick>(1, whole));
    };
    for (const int job : observer_.live()) {
      const Run& run = cluster_.runs[job];
      const double attained_s = cluster_.seconds(cluster_.attained(job));
      const double waited_s = now_s - cluster_.submitted(job).submit_s - attained_s;
      if (run.tier < 0) {
        look(waited_s, rules_.max_wait_s);
        continue;
      }
      const double ran_s = now_s - cluster_.seconds(run.since);
      look(ran_s, rules_.min_run_s);
      if (waited_s >= rules_.max_wait_s) look(ran_s, rules_.max_wait_s);  // what it is owed
    }
    const Tick round = cluster_.round;
    return next == kNever || round == kNever ? next : (next + round - 1) / round * round;
  }

  /// Whether each job runs where it is fastest; the one that waits, if there is only one, is
  /// started on the first of its fastest tiers that has room.
  bool settles_at_best() {
    const std::size_t waiting = observer_.live().size() - cluster_.running.size();
    const auto at_best = [&](const Running& running) {
      const Run& run = cluster_.runs[running.job];
      return run.rate == run.fastest;
    };
    if (waiting > (rules_.starts ? 1 : 0) || !std::ranges::all_of(cluster_.running, at_best)) {
      return false;
    }
    if (waiting == 0) return true;
    const auto waits = [&](int job) { return cluster_.runs[job].tier < 0; };
    return start_at_best(*std::find_if(observer_.live().rbegin(), observer_.live().rend(), waits));
  }

  bool start_at_best(int job) {
    const WorkloadJob& submitted = cluster_.submitted(job);
    if (submitted.weight == 0) return false;
    for (int tier = 0; tier < static_cast<int>(cluster_.free.size()); ++tier) {
      const bool best =
          cluster_.usable(job, tier) && cluster_.rate(job, tier) == cluster_.runs[job].fastest;
      if (best && submitted.gpus <= cluster_.free[tier]) return cluster_.start(job, tier);
    }
    return false;
  }

  /// Whether the job has the GPUs that the plan wants for it.
  [[nodiscard]] bool stays(int job) const {
    const Run& run = cluster_.runs[job];
    const Wanted& wanted = wishes_.of(job);
    return run.tier >= 0 && wanted.tier == run.tier && wanted.gpus == run.gpus;
  }

  /// The later one moves of two that part, and of two that both have GPUs and shall share.
  void suspend_others() {
    suspended_.clear();
    for (const Running& running : cluster_.running) {
      const int job = running.job;
      if (!stays(job)) {
        suspended_.emplace_back(running.finishes, job);
        continue;
      }
      const int had = cluster_.runs[job].partner;
      const int has = wishes_.of(job).partner;
      const bool moves = had != has && ((had >= 0 && had < job && stays(had)) ||
                                        (has >= 0 && has < job && stays(has)));
      if (moves) suspended_.emplace_back(running.finishes, job);
    }
    std::sort(suspended_.begin(), suspended_.end());  // as they would end
    for (const auto& [finish, job] : suspended_) cluster_.suspend(job);
  }

  void start_wanted() {
    for (const int job : observer_.live()) {  // in order of submission
      const auto [tier, gpus, partner] = wishes_.of(job);
      if (tier < 0 || cluster_.runs[job].tier >= 0) continue;
      if (partner >= 0 && cluster_.runs[partner].tier == tier) {
        cluster_.join(job, partner);
      } else if (rules_.gangs == Gangs::move) {  // waits where no nodes have room for the gang
        (void)cluster_.start_moving(job, tier, gpus);
      } else {
        (void)cluster_.start(job, tier, gpus);
      }
    }
  }

  Cluster& cluster_;
  const Policy& policy_;
  Observer observer_;
  LiveRules rules_;
  Wishes wishes_;
  Sessions sessions_;
  std::vector<std::pair<Tick, int>> suspended_;
};

bool has_quality(const std::vector<WeightedObjective>& goals) {
  return std::any_of(goals.begin(), goals.end(), [](const WeightedObjective& goal) {
    return goal.objective == Objective::quality;
  });
}

/// Whether the planner would keep what runs at its best, for no other plan has a higher value: for
/// completion times alone, without limits, pairs, sessions, or gangs that may change.
bool rests(const Cluster& cluster, const PolicyTraits& traits) {
  const SimulationOptions& options = cluster.options;
  return traits.rests && !options.planner && !options.session_s &&
         options.sharing == Sharing::exclusive && cluster.workload.curves.empty() &&
         !chooses_gangs(traits.info, cluster.workload);
}

/// Whether the planner would start one more job beside others at their best as Live does: with the
/// same forecasts next time (errors are learned from what it was shown), all jobs of one class, and
/// no limit for users.
bool starts_alike(const Cluster& cluster) {
  const SimulationOptions& options = cluster.options;
  const std::vector<WorkloadJob>& jobs = cluster.workload.jobs;
  return options.forecast_sigma.value_or(0) == 0 && !options.user_gpus &&
         std::ranges::all_of(
             jobs, [&](const WorkloadJob& job) { return job.priority == jobs.front().priority; });
}

/// For Foresight: `now` where the policy may follow a leader at all, which is on one tier.
std::function<bool()> leads(const Cluster& cluster, const PolicyTraits& traits,
                            std::function<bool()> now) {
  const bool one_tier = cluster.capacity.size() == 1 && cluster.workload.curves.empty();
  if (!traits.follows_leader || !one_tier || chooses_gangs(traits.info, cluster.workload)) {
    return {};
  }
  return now;
}

}  // namespace

void run_policy(Cluster& cluster, const Policy& policy) {
  Live live(cluster, policy, {.elastic = true});
  run(cluster, live);
}

void run_named(Cluster& cluster, const PolicyTraits& traits) {
  // A pair that was measured is known to the cluster, as a table of job classes.
  std::unordered_map<std::int64_t, int> of_id;
  PairTable pairs;
  if (!cluster.workload.pairs.empty() && cluster.options.sharing != Sharing::exclusive) {
    for (int job = 0; job < static_cast<int>(cluster.runs.size()); ++job) {
      of_id.emplace(cluster.submitted(job).id, job);
    }
    pairs = [&](std::int64_t first, std::int64_t second, int tier) {
      return cluster.shared(of_id.at(first), of_id.at(second), tier);
    };
  }
  const PlanOptions plans = cluster.options.planner.value_or(PlanOptions{});
  const std::vector<WeightedObjective>& goals = objectives_of(plans);
  const Live* asked = nullptr;  // by the policy, which must be there first
  const Facts facts{
      .begins_round = [&] { return cluster.round == kNever || cluster.now % cluster.round == 0; },
      .in_session = [&](std::int64_t job,
                        double session_s) { return asked->in_session(job, session_s); }};
  const Policy decide = traits.make({traits.info, cluster.options, pairs, facts});
  Live live(cluster, decide,
            {.sees = traits.info.sees,
             .looks_ahead = traits.looks_ahead || has_quality(goals),
             .elastic = traits.info.elastic,
             .follows_leader = leads(cluster, traits, [&] { return for_completion(goals); })},
            {.gangs = traits.packs && plans.limits.min_run_s == 0 ? Gangs::move : Gangs::stay,
             .rests = rests(cluster, traits),
             .starts = rests(cluster, traits) && starts_alike(cluster),
             .min_run_s = plans.limits.min_run_s,
             .max_wait_s = plans.dynamics.max_wait_s});
  asked = &live;
  run(cluster, live);
}

std::function<bool()> stepwise(Cluster& cluster, const std::vector<WeightedObjective>& goals) {
  struct AtWork {
    AtWork(Cluster& on, const std::vector<WeightedObjective>& goals, const PolicyTraits& traits)
        : policy(steered_planner(on.options, goals)),
          live(on, policy,
               {.looks_ahead = true,
                .elastic = traits.info.elastic,
                .follows_leader = leads(on, traits, [&goals] { return for_completion(goals); })},
               {.gangs = traits.packs ? Gangs::move : Gangs::stay}) {}
    Policy policy;
    Live live;
  };
  const PolicyTraits& traits = policy_named("best_value");
  return [&cluster, work = std::make_shared<AtWork>(cluster, goals, traits)] {
    return advance(cluster, work->live);
  };
}

}  // namespace glidepath::detail
