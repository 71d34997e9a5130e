// SPDX-License-Identifier: Apache-2.0
// What one call of `plan` knows and does, in the order in which it does it. The members of each
// part are in the file that it names.
#pragma once

#include "glidepath/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/kept.hpp"
#include "common/numbers.hpp"
#include "plan/learned.hpp"
#include "plan/value.hpp"

namespace glidepath::detail {

inline Profile profile_of(const Job& job) {
  return {job.sm_activity, job.memory_gb, job.kind, job.memory_activity};
}

enum class Fate : std::uint8_t { waits, runs, pinned, owed, guest, ended, broken };

/// A job with what the plan has found out about it.
struct Candidate {
  const Job* job = nullptr;
  const Allocation* held = nullptr;
  std::size_t first = 0, end = 0;  ///< its offers
  Fate fate = Fate::waits;
  int priority = 0;
  std::size_t offer = 0;    ///< the one taken, when it runs
  double index = 0;         ///< Gittins index of the steps still needed
  double likely_steps = 0;  ///< quantile kEndQuantile of them
};

/// An option of a job with its value per second.
struct Offer {
  const Option* option = nullptr;
  double value = 0;
  bool keeps = false;  ///< the allocation that the job holds
};

/// GPUs kept for a job that is owed a place and does not fit yet.
struct Reservation {
  std::size_t candidate = 0;
  int tier = -1;
  double shadow_s = 0;     ///< when they are free, from now on
  std::int64_t spare = 0;  ///< GPUs of the tier that will be free beyond them
};

/// Two jobs on the same GPUs.
struct Pair {
  std::size_t host = 0, guest = 0, guest_offer = 0;
  double host_speed = 1, guest_speed = 1;
  double gain = 0;
};

/// The options of a class of jobs, as a RoundView has them.
struct RoundColumns {
  std::vector<std::int64_t> job, tier, gpus, user, group;
  std::vector<double> value, watts;
  std::vector<std::size_t> offer;  ///< of each option
};

/// What is as long as the jobs or their options: each plan fills it anew.
struct PlanMemory {
  std::vector<std::pair<std::int64_t, std::size_t>> places;  ///< candidates by the ids of the jobs
  std::vector<Candidate> candidates;
  std::vector<const Option*> usable;  ///< options of the job at hand
  RemainingWork work;                 ///< of it
  std::vector<Offer> offers;
  std::vector<std::vector<double>> by_objective;
  RoundColumns columns;

  [[nodiscard]] std::size_t bytes() const;
};

class Planner {
 public:
  Planner(const Snapshot& snapshot, const PlanOptions& options)
      : snapshot_(snapshot), options_(options), valuation_(snapshot, options) {}

  Plan run();

 private:
  struct Quotas {
    std::vector<std::int64_t> left{};    ///< GPUs; the last entry is of everyone without a quota
    std::vector<std::int64_t> of_job{};  ///< index into it
  };

  [[nodiscard]] bool in_order() const { return options_.combine == Combine::in_order; }

  // plan.cpp: who is there, what is left, what is decided
  void candidates();
  /// Sorts the ids; whether one is there twice.
  [[nodiscard]] bool find_places();
  /// The candidate of a job's id; none beyond the last.
  [[nodiscard]] std::size_t place_of(std::int64_t id) const;
  void quotas(const std::vector<Quota>& given, std::string Job::*key, Quotas& out) const;
  /// Power and quotas leave room for GPUs of a job.
  [[nodiscard]] bool allowed(std::size_t c, int gpus, double watts) const;
  void charge(std::size_t c, int gpus, double watts);
  [[nodiscard]] bool fits(std::size_t c, const Offer& offer) const;
  /// Beside the gangs that are placed it also fits in the nodes.
  [[nodiscard]] bool packs(const Offer& offer) const;
  void take(std::size_t c, std::size_t o, Fate fate);
  /// Leaves the job out of the plan: one broken job does not cost the others theirs.
  void leave_out(Candidate& candidate, std::string fault);
  /// Leaves it out where a number of it is broken: to be asked before the job is used.
  bool is_sound(Candidate& candidate);
  void write();

  // offers.cpp
  /// The options that a job may use. Why it cannot be planned, where it has none or may not leave
  /// GPUs that are not one of them; else "".
  [[nodiscard]] std::string find_usable(const Candidate& candidate,
                                        std::vector<const Option*>& usable) const;
  [[nodiscard]] double restart_s(const Candidate& candidate, bool keeps) const {
    return !keeps && candidate.job->attained_s > 0 ? candidate.job->restart_s : 0.0;
  }
  [[nodiscard]] double watts_of(const Offer& offer) const {
    return valuation_.power(*offer.option);
  }
  /// When the GPUs of an offer can be had again, at the latest (quantile kEndQuantile).
  [[nodiscard]] double done_s(const Candidate& candidate, const Offer& offer) const;
  /// 1 / its Gittins index: how long it is expected to hold them.
  [[nodiscard]] double time_s(const Candidate& candidate, const Offer& offer) const {
    return restart_s(candidate, offer.keeps) + 1 / (offer.option->steps_per_s * candidate.index);
  }
  /// For the objective `learned`: what all jobs are like, and whether its values hold for them.
  void look_at_crowd();
  /// What is left of a job; with `values` as far as its budget says where its forecast does not.
  void find_work(const Job& job, const LearnedValues* values, RemainingWork& work) const;
  /// exp(z) of an option, 1 where the values do not hold.
  [[nodiscard]] double corrected(const Candidate& candidate, const RemainingWork& work,
                                 const Option& option, double fastest) const;
  /// Options that fit the hardware, with their values; jobs at either end of their forecast end.
  void evaluate();
  /// Adds the offers of a job that can be planned.
  void add_offers(Candidate& candidate, const RemainingWork& work,
                  const std::vector<const Option*>& usable);
  /// One objective keeps its unit; several are brought to mean 1 and weighted. Objectives in order
  /// stay apart, a later one is worth a little only where nothing else decides.
  void combine();
  [[nodiscard]] double joules_of(std::size_t o) const;
  /// Who gives way pays a restart later: kappa seconds in which the GPUs earn nothing. Spread over
  /// the time H for which the others would hold them, that is r kappa / H per second on top of r.
  /// H is the GPU-time of the waiting jobs of its class that are worth more per GPU, over the GPUs
  /// they take.
  /// For one job against another of equal weight it gives way where T_other + kappa < T.
  void charge_restarts();

  // stay.cpp
  /// The job that keeps the GPUs that both share; none beyond the last.
  [[nodiscard]] std::size_t pinned_partner(std::size_t c) const;
  /// A job that may not be preempted and shares GPUs with one that just kept them.
  bool rejoin(std::size_t c);
  /// Seconds for which a job keeps the GPUs that it is given. One that was owed them would lose
  /// them at once to those that are worth more, and be owed them again: it keeps them for as long
  /// as it may have to wait.
  [[nodiscard]] double stays_s(const Job& job) const;
  /// Jobs that may not be preempted keep their GPUs, the oldest first should there be too few.
  void pin();
  /// Jobs that have waited for too long come first, the longest wait first. The first one that
  /// does not fit gets the GPUs that are free next, and those behind it may not be on them then.
  void place_owed();
  /// Shadow time of EASY backfill (Lifka 1995): when, by the ends of the jobs that stay, enough
  /// GPUs for the smallest wait of the job's options are free, and the power cap and the quotas
  /// leave it as many. Nothing is kept for a job that they never let run.
  void reserve(std::size_t c);
  [[nodiscard]] const Option& host_of(std::size_t guest) const {
    return *offers_[candidates_[partner_.at(guest).host].offer].option;
  }
  [[nodiscard]] static std::int64_t left_of(const Quotas& quotas, std::size_t c);
  [[nodiscard]] static bool shares(const Quotas& quotas, std::size_t c, std::size_t other) {
    return !quotas.left.empty() && quotas.of_job[c] == quotas.of_job[other];
  }

  // choose.cpp
  /// An offer that would sit on reserved GPUs when their time comes.
  [[nodiscard]] bool in_the_way(const Candidate& candidate, const Offer& offer) const;
  /// Such an offer of more GPUs than are spare.
  [[nodiscard]] bool too_late(const Candidate& candidate, const Offer& offer) const {
    return in_the_way(candidate, offer) && offer.option->gpus > reservation_.spare;
  }
  /// The knapsack of one class. Fillers of reserved GPUs that stay too long may together use no
  /// more than what is spare; those of least value go until that holds.
  void solve(const std::vector<std::size_t>& members);
  RoundPlan best_choice(const RoundView& round);
  RoundView columns(const std::vector<std::size_t>& members, const std::vector<bool>& barred);
  void adopt(const RoundPlan& round);

  // share.cpp
  /// Power that a guest adds: together the two keep a GPU busy at most all the time.
  [[nodiscard]] double watts_of_guest(const Option& host, const Option& guest) const;
  void seat(const Pair& pair);
  /// The offers on which a job may be paired: those of its shared options, or all without any.
  [[nodiscard]] std::vector<std::size_t> offers_to_share(const Candidate& candidate) const;
  /// Waiting jobs join running ones where the pair is worth more than the host alone.
  void share();

  // reasons.cpp
  [[nodiscard]] double rent(const Offer& offer) const;
  /// It may not be preempted, or not yet.
  [[nodiscard]] bool guaranteed(const Candidate& candidate) const;
  /// Why a guaranteed job does not keep what it holds.
  [[nodiscard]] std::string why_not_kept(std::size_t c) const;
  [[nodiscard]] std::string reason(std::size_t c) const;
  [[nodiscard]] std::string reason_of_end(const Job& job) const;
  [[nodiscard]] std::string reason_of_wait(std::size_t c) const;

  const Snapshot& snapshot_;
  const PlanOptions& options_;
  Valuation valuation_;
  Kept<PlanMemory> memory_;
  std::vector<Candidate>& candidates_ = memory_->candidates;
  std::unordered_map<std::size_t, std::string> faults_;  // why a broken candidate is not planned
  std::vector<Offer>& offers_ = memory_->offers;
  // Values of the offers, apart for objectives in order.
  std::vector<std::vector<double>>& by_objective_ = memory_->by_objective;
  bool by_speed_alone_ = false;  // options of a job that are as fast are worth the same
  double scale_ = 1;             // of the values in a round
  Crowd crowd_;
  std::optional<LearnedValues> learned_;
  std::span<const double> weights_;  // of these, those for the jobs at hand
  std::vector<std::int64_t> all_, free_;
  std::vector<std::int64_t> nodes_, taken_tier_, taken_gpus_;
  double power_left_ = kInfinity;
  Quotas user_, group_;
  Reservation reservation_;
  std::size_t waiting_ = 0;  // jobs that might run and do not
  std::unordered_map<std::size_t, Pair> partner_;
  RoundColumns& columns_ = memory_->columns;
  Plan plan_;
};

}  // namespace glidepath::detail
