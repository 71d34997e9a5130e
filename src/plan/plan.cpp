// SPDX-License-Identifier: Apache-2.0
// The plan of one round: who ends, who must stay, who is owed a place, and for the others the
// knapsack of solve_round over what their options are worth.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <unordered_map>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/order.hpp"
#include "plan/round.hpp"
#include "plan/share.hpp"
#include "plan/value.hpp"

namespace glidepath {
namespace {

using detail::Outlook;
using detail::refuse;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSure = 0.9;        // quantile of a job's end that backfill relies on
constexpr double kMostWorth = 1e12;  // of an option in a round; beyond it values are scaled down
constexpr double kTooMuch = 1e100;

template <class... Parts>
std::string line(const char* format, Parts... parts) {
  char text[256];
  std::snprintf(text, sizeof text, format, parts...);
  return text;
}

enum class Fate : std::uint8_t { waits, runs, pinned, owed, guest, ended };

/// A job with what the plan has found out about it.
struct Candidate {
  const Job* job = nullptr;
  const Allocation* held = nullptr;
  std::size_t first = 0, end = 0;  ///< its offers
  Fate fate = Fate::waits;
  std::size_t offer = 0;  ///< the one taken, when it runs
};

/// An option of a job with its value per second.
struct Offer {
  const Option* option = nullptr;
  double value = 0, watts = 0;
  double done_s = 0;   ///< when its GPUs can be had again, at the latest (quantile kSure)
  double time_s = 0;   ///< 1 / its Gittins index: how long it is expected to hold them
  bool keeps = false;  ///< the allocation that the job holds
};

/// GPUs kept for a job that is owed a place and does not fit yet.
struct Reservation {
  std::size_t candidate = 0;
  int tier = -1;
  double shadow_s = 0;     ///< when they are free, from now on
  std::int64_t spare = 0;  ///< GPUs of the tier that will be free beyond them
};

class Planner {
 public:
  Planner(const Snapshot& snapshot, const PlanOptions& options)
      : snapshot_(snapshot), options_(options), valuation_(snapshot, options) {}

  Plan run() {
    detail::check_options(options_, snapshot_);
    candidates();
    for (const Tier& tier : snapshot_.tiers) {
      all_.push_back(tier.gpus());
      nodes_.push_back(tier.gpus_per_node);
    }
    free_ = all_;
    power_left_ = options_.power_cap_w;
    quotas(options_.user_quota, &Job::user, user_);
    quotas(options_.group_quota, &Job::group, group_);
    evaluate();
    pin();
    place_owed();
    // Strict classes: each one takes from what the classes above it leave.
    std::map<int, std::vector<std::size_t>, std::greater<>> classes;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (candidates_[c].fate == Fate::waits) classes[candidates_[c].job->priority].push_back(c);
    }
    plan_.prices.assign(snapshot_.tiers.size(), 0.0);
    for (const auto& [priority, members] : classes) solve(members);
    if (options_.sharing != Sharing::exclusive) share();
    write();
    return std::move(plan_);
  }

 private:
  void candidates() {
    candidates_.resize(snapshot_.jobs.size());
    index_.reserve(candidates_.size());
    for (std::size_t j = 0; j < candidates_.size(); ++j) {
      const Job& job = snapshot_.jobs[j];
      detail::check_job(job, snapshot_);
      if (!index_.emplace(job.id, j).second) refuse("plan: job ", job.id, " appears twice");
      candidates_[j].job = &job;
    }
    for (const Allocation& held : snapshot_.running) {
      const auto found = index_.find(held.job);
      if (found == index_.end()) refuse("plan: job ", held.job, " runs but is not in the queue");
      Candidate& candidate = candidates_[found->second];
      if (candidate.held) refuse("plan: job ", held.job, " holds two allocations");
      if (held.tier < 0 || held.tier >= std::ssize(snapshot_.tiers) || held.gpus < 1) {
        refuse("plan: job ", held.job, " runs on ", held.gpus, " GPUs of tier ", held.tier,
               ", there are ", snapshot_.tiers.size(), " tiers");
      }
      if (!std::isfinite(held.since_s)) {
        refuse("plan: job ", held.job, " runs since ", held.since_s, " s");
      }
      candidate.held = &held;
    }
  }

  /// Options that fit the hardware, with their values; jobs at either end of their forecast end.
  void evaluate() {
    std::vector<const Option*> usable;
    goal_.resize(options_.goals.size());
    for (Candidate& candidate : candidates_) {
      const Job& job = *candidate.job;
      candidate.first = candidate.end = offers_.size();
      const Outlook outlook = detail::outlook_of(job, options_);
      if (std::max(outlook.reached, outlook.never) >= options_.stop_probability &&
          !job.remaining_steps.empty()) {
        candidate.fate = Fate::ended;
        plan_.stop.push_back(job.id);
        continue;
      }
      usable.clear();
      for (const Option& option : job.options) {
        const Tier& tier = snapshot_.tiers[static_cast<std::size_t>(option.tier)];
        const bool fits = tier.memory_gb <= 0 || job.memory_gb <= tier.memory_gb;
        if (fits && option.gpus <= tier.gpus()) usable.push_back(&option);
      }
      if (usable.empty()) detail::refuse_unfit(job, snapshot_);
      if (const Allocation* held = candidate.held; held && !job.preemptible) {
        const auto same = [held](const Option* option) {
          return option->tier == held->tier && option->gpus == held->gpus;
        };
        if (std::none_of(usable.begin(), usable.end(), same)) {
          refuse("plan: job ", job.id, " may not be preempted and holds ", held->gpus,
                 " GPUs of tier ", held->tier, ", not one of its options");
        }
      }
      valuation_.set_job(job, outlook, usable);
      const double age = detail::waited_s(job, snapshot_.now_s) / options_.ageing_s;
      const double likely_steps = outlook.quantile(kSure);
      for (const Option* option : usable) {
        const Allocation* held = candidate.held;
        const bool keeps = held && held->tier == option->tier && held->gpus == option->gpus;
        const double restart_s = !keeps && job.attained_s > 0 ? job.restart_s : 0.0;
        const double worth = (keeps ? 1 + options_.hysteresis : 1.0) * (1 + age * age);
        for (std::size_t g = 0; g < goal_.size(); ++g) {
          const double v =
              worth * valuation_.value(options_.goals[g].objective, *option, restart_s);
          if (!(v <= kTooMuch)) refuse("plan: job ", job.id, " is worth ", v, " per second");
          goal_[g].push_back(v);
        }
        const double ends_s =
            option->steps_per_s > 0 ? restart_s + likely_steps / option->steps_per_s : kInfinity;
        const double exempt_s =
            keeps ? std::max(0.0, options_.min_run_s - (snapshot_.now_s - held->since_s))
                  : options_.min_run_s;
        const double time_s = restart_s + 1 / (option->steps_per_s * outlook.index);
        offers_.push_back({option, 0, valuation_.power(*option),
                           job.preemptible ? std::min(exempt_s, ends_s) : ends_s, time_s, keeps});
      }
      candidate.end = offers_.size();
    }
    combine();
    charge_restarts();
    double top = 0;
    for (const Offer& offer : offers_) top = std::max(top, offer.value);
    if (top > kMostWorth) scale_ = std::ldexp(1.0, -std::ilogb(top / kMostWorth) - 1);
  }

  /// One goal keeps its unit; several are brought to mean 1 and weighted. Goals in order stay
  /// apart, a later one is worth a little only where nothing else decides.
  void combine() {
    for (std::size_t g = 0; g < goal_.size(); ++g) {
      std::vector<double>& goal = goal_[g];
      const auto top = [](const std::vector<double>& of) {
        return of.empty() ? 0.0 : *std::max_element(of.begin(), of.end());
      };
      double share = options_.in_order ? 1.0 : options_.goals[g].weight;
      if (options_.in_order && g > 0) {
        share = top(goal) > 0 ? std::ldexp(top(goal_[0]) / top(goal), -20) : 0;
      } else if (goal_.size() > 1 && !options_.in_order) {
        double sum = 0;
        for (const double v : goal) sum += v;
        share *= sum > 0 ? static_cast<double>(goal.size()) / sum : 0;
      }
      for (std::size_t o = 0; o < offers_.size(); ++o) {
        const double joules = g == 0 && options_.in_order ? joules_of(o) : 0;
        goal[o] = std::max(0.0, goal[o] - joules);
        offers_[o].value += share * goal[o];
      }
    }
    if (options_.in_order) return;
    goal_.clear();
    for (std::size_t o = 0; o < offers_.size(); ++o) {
      offers_[o].value = std::max(0.0, offers_[o].value - joules_of(o));
    }
  }
  [[nodiscard]] double joules_of(std::size_t o) const {  // value of what its power costs
    return options_.joule_value * offers_[o].watts;
  }

  /// Who gives way pays a restart later: kappa seconds in which the GPUs earn nothing. Spread over
  /// the time H for which the others would hold them, that is r kappa / H per second on top of r.
  /// H is the GPU-time of the waiting jobs that are worth more per GPU, over the GPUs they take.
  /// For one job against another of equal weight it gives way where T_other + kappa < T.
  void charge_restarts() {
    const auto pays = [&](const Candidate& candidate) {
      return candidate.held && candidate.fate != Fate::ended && candidate.job->restart_s > 0 &&
             (candidate.job->attained_s > 0 || candidate.held->since_s < snapshot_.now_s);
    };
    if (std::none_of(candidates_.begin(), candidates_.end(), pays)) return;
    struct Challenger {
      double density = 0, gpus = 0, gpu_s = 0;
    };
    std::vector<std::vector<Challenger>> of_tier(snapshot_.tiers.size());
    const auto density = [](const Offer& offer) { return offer.value / offer.option->gpus; };
    std::vector<const Candidate*> last(of_tier.size(), nullptr);
    for (const Candidate& candidate : candidates_) {
      if (candidate.held || candidate.fate == Fate::ended) continue;
      for (std::size_t o = candidate.first; o < candidate.end; ++o) {
        const Offer& offer = offers_[o];
        if (offer.value <= 0) continue;
        // A job counts once on a tier, with the option worth most per GPU.
        const auto t = static_cast<std::size_t>(offer.option->tier);
        if (last[t] != &candidate) of_tier[t].emplace_back();
        last[t] = &candidate;
        if (density(offer) <= of_tier[t].back().density) continue;
        const double gpus = offer.option->gpus;
        of_tier[t].back() = {density(offer), gpus, gpus * offer.time_s};
      }
    }
    for (auto& tier : of_tier) {
      std::sort(tier.begin(), tier.end(),
                [](const Challenger& a, const Challenger& b) { return a.density > b.density; });
      for (std::size_t i = 1; i < tier.size(); ++i) {
        tier[i].gpus += tier[i - 1].gpus;
        tier[i].gpu_s += tier[i - 1].gpu_s;
      }
    }
    for (const Candidate& candidate : candidates_) {
      if (!pays(candidate)) continue;
      for (std::size_t o = candidate.first; o < candidate.end; ++o) {
        Offer& offer = offers_[o];
        if (!offer.keeps || offer.value <= 0) continue;
        const auto t = static_cast<std::size_t>(offer.option->tier);
        const double own = density(offer);
        const auto better =
            std::partition_point(of_tier[t].begin(), of_tier[t].end(),
                                 [own](const Challenger& other) { return other.density > own; });
        if (better == of_tier[t].begin()) continue;
        const Challenger& all = *(better - 1);
        const double held_s = all.gpu_s / std::min(all.gpus, static_cast<double>(free_[t]));
        const double factor = 1 + candidate.job->restart_s / held_s;
        offer.value *= factor;
        for (auto& goal : goal_) goal[o] *= factor;
      }
    }
  }

  /// Index of each job's quota, kNone where it has none.
  struct Quotas {
    std::vector<std::int64_t> left{};
    std::vector<std::int64_t> of_job{};
  };
  void quotas(const std::vector<Quota>& given, std::string Job::*key, Quotas& out) const {
    if (given.empty()) return;
    std::map<std::string_view, std::int64_t> index;
    for (const Quota& quota : given) {
      if (!index.emplace(quota.name, std::ssize(out.left)).second) {
        refuse("plan: two quotas for '", quota.name, "'");
      }
      out.left.push_back(quota.gpus);
    }
    out.left.push_back(std::numeric_limits<std::int64_t>::max());  // of everyone else
    for (const Job& job : snapshot_.jobs) {
      const auto found = index.find(job.*key);
      out.of_job.push_back(found != index.end() ? found->second : std::ssize(out.left) - 1);
    }
  }

  /// Power and quotas leave room for GPUs of a job.
  [[nodiscard]] bool allowed(std::size_t c, int gpus, double watts) const {
    const auto within = [&](const Quotas& quotas) {
      return quotas.left.empty() || gpus <= quotas.left[static_cast<std::size_t>(quotas.of_job[c])];
    };
    return watts <= power_left_ && within(user_) && within(group_);
  }
  void charge(std::size_t c, int gpus, double watts) {
    power_left_ -= watts;
    for (Quotas* quotas : {&user_, &group_}) {
      if (quotas->left.empty()) continue;
      std::int64_t& left = quotas->left[static_cast<std::size_t>(quotas->of_job[c])];
      left = std::max<std::int64_t>(0, left - gpus);
    }
  }
  [[nodiscard]] bool fits(std::size_t c, const Offer& offer) const {
    const int gpus = offer.option->gpus;
    return gpus <= free_[static_cast<std::size_t>(offer.option->tier)] &&
           allowed(c, gpus, offer.watts);
  }
  /// Beside the gangs that are placed it also fits in the nodes.
  [[nodiscard]] bool packs(const Offer& offer) const {
    if (!options_.in_nodes) return true;
    const Tier& tier = snapshot_.tiers[static_cast<std::size_t>(offer.option->tier)];
    std::vector<std::int64_t> gangs{offer.option->gpus};
    for (std::size_t i = 0; i < taken_tier_.size(); ++i) {
      if (taken_tier_[i] == offer.option->tier) gangs.push_back(taken_gpus_[i]);
    }
    return detail::gangs_fit(gangs, tier.nodes, tier.gpus_per_node);
  }

  void take(std::size_t c, std::size_t o, Fate fate) {
    const Offer& offer = offers_[o];
    free_[static_cast<std::size_t>(offer.option->tier)] -= offer.option->gpus;
    charge(c, offer.option->gpus, offer.watts);
    taken_tier_.push_back(offer.option->tier);
    taken_gpus_.push_back(offer.option->gpus);
    candidates_[c].fate = fate;
    candidates_[c].offer = o;
    plan_.value += offer.value;
    plan_.bound += offer.value;
  }

  /// Power that a guest adds: together the two keep a GPU busy at most all the time.
  [[nodiscard]] double watts_of_guest(const Option& host, const Option& guest) const {
    const Tier& tier = snapshot_.tiers[static_cast<std::size_t>(host.tier)];
    const double both = std::min(1.0, host.utilisation + guest.utilisation);
    return host.gpus * (watts(tier, both) - watts(tier, host.utilisation));
  }
  void seat(const detail::Pair& pair) {
    const Option& guest = *offers_[pair.guest_offer].option;
    charge(pair.guest, guest.gpus,
           watts_of_guest(*offers_[candidates_[pair.host].offer].option, guest));
    candidates_[pair.guest].fate = Fate::guest;
    candidates_[pair.guest].offer = pair.guest_offer;
    partner_[pair.guest] = partner_[pair.host] = pair;
    plan_.value += pair.gain;
  }

  /// A job that may not be preempted and shares GPUs with one that just kept them.
  bool rejoin(std::size_t c) {
    const Allocation& held = *candidates_[c].held;
    const auto found = held.partner < 0 ? index_.end() : index_.find(held.partner);
    if (found == index_.end()) return false;
    const Candidate& host = candidates_[found->second];
    if (host.fate != Fate::pinned || partner_.contains(found->second) || !host.held ||
        host.held->partner != held.job || host.held->tier != held.tier ||
        host.held->gpus != held.gpus) {
      return false;
    }
    for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
      if (!offers_[o].keeps) continue;
      const Sharing sharing =
          options_.sharing == Sharing::exclusive ? Sharing::naive : options_.sharing;
      const auto profile = [](const Job& job) { return Profile{job.sm_activity, job.memory_gb}; };
      const SharedSpeeds speed =
          shared_speeds(profile(*host.job), profile(*candidates_[c].job), sharing);
      const double gain =
          offers_[host.offer].value * (speed.first - 1) + offers_[o].value * speed.second;
      seat({found->second, c, o, speed.first, speed.second, gain});
      plan_.bound += gain;
      return true;
    }
    return false;
  }

  /// Jobs that may not be preempted keep their GPUs, the oldest first should there be too few.
  void pin() {
    std::vector<std::pair<double, std::size_t>> pinned;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      if (!candidate.held || candidate.fate == Fate::ended) continue;
      const bool exempt = snapshot_.now_s - candidate.held->since_s < options_.min_run_s;
      if (exempt || !candidate.job->preemptible) pinned.emplace_back(candidate.held->since_s, c);
    }
    std::sort(pinned.begin(), pinned.end());
    for (const auto& [since, c] : pinned) {
      if (rejoin(c)) continue;
      for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
        if (offers_[o].keeps && fits(c, offers_[o])) {
          take(c, o, Fate::pinned);
          break;
        }
      }
    }
  }

  /// Jobs that have waited for too long come first, the longest wait first. The first one that
  /// does not fit gets the GPUs that are free next.
  void place_owed() {
    if (options_.max_wait_s == kInfinity) return;
    std::vector<std::pair<double, std::size_t>> owed;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      const double waited = detail::waited_s(*candidate.job, snapshot_.now_s);
      if (candidate.fate != Fate::waits || candidate.held || waited < options_.max_wait_s) continue;
      owed.emplace_back(-waited, c);
    }
    std::sort(owed.begin(), owed.end());
    for (const auto& [waited, c] : owed) {
      const Candidate& candidate = candidates_[c];
      std::size_t best = candidate.end;
      for (std::size_t o = candidate.first; o < candidate.end; ++o) {
        if (!fits(c, offers_[o]) || offers_[o].option->steps_per_s <= 0) continue;
        if (best != candidate.end && offers_[o].value <= offers_[best].value) continue;
        if (packs(offers_[o])) best = o;
      }
      if (best < candidate.end) {
        take(c, best, Fate::owed);
      } else if (reservation_.tier < 0) {
        reserve(c);
      }
    }
  }

  /// Shadow time of EASY backfill (Lifka 1995): when, by the ends of the jobs that stay, enough
  /// GPUs for the smallest wait of the job's options are free.
  void reserve(std::size_t c) {
    double soonest = kInfinity;
    for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
      const Option& option = *offers_[o].option;
      if (option.steps_per_s <= 0) continue;
      std::vector<std::pair<double, std::int64_t>> ends;
      for (const Candidate& other : candidates_) {
        if (other.fate != Fate::pinned && other.fate != Fate::owed) continue;
        const Offer& offer = offers_[other.offer];
        if (offer.option->tier == option.tier) ends.emplace_back(offer.done_s, offer.option->gpus);
      }
      std::sort(ends.begin(), ends.end());
      std::int64_t room = free_[static_cast<std::size_t>(option.tier)];
      double shadow = 0;
      for (const auto& [end, gpus] : ends) {
        if (room >= option.gpus) break;
        room += gpus;
        shadow = end;
      }
      if (room < option.gpus || shadow >= soonest) continue;
      soonest = shadow;
      reservation_ = {c, option.tier, shadow, room - option.gpus};
    }
  }

  /// An offer that would sit on reserved GPUs when their time comes.
  [[nodiscard]] bool in_the_way(const Offer& offer) const {
    return offer.option->tier == reservation_.tier && offer.done_s > reservation_.shadow_s;
  }

  /// The knapsack of one class. Fillers of reserved GPUs that stay too long may together use no
  /// more than what is spare; those of least value go until that holds.
  void solve(const std::vector<std::size_t>& members) {
    std::vector<bool> barred(offers_.size(), false);
    for (;;) {
      std::vector<std::size_t> offer_of;
      const RoundPlan round = best_choice(columns(members, barred, offer_of), offer_of);
      std::vector<std::pair<double, std::size_t>> late;
      std::int64_t late_gpus = 0;
      for (const std::int64_t i : round.chosen) {
        const std::size_t o = offer_of[static_cast<std::size_t>(i)];
        if (!in_the_way(offers_[o])) continue;
        late.emplace_back(offers_[o].value / offers_[o].option->gpus, o);
        late_gpus += offers_[o].option->gpus;
      }
      if (late_gpus > reservation_.spare && !late.empty()) {
        std::sort(late.begin(), late.end());
        for (const auto& [density, o] : late) {
          if (late_gpus <= reservation_.spare) break;
          barred[o] = true;
          late_gpus -= offers_[o].option->gpus;
        }
        continue;
      }
      reservation_.spare -= late_gpus;
      adopt(round, offer_of);
      return;
    }
  }

  RoundPlan best_choice(const RoundView& round, const std::vector<std::size_t>& offer_of) {
    std::vector<double> prices(options_.prices.begin(), options_.prices.end());
    for (double& price : prices) price *= scale_;
    const RoundOptions options{.gap = options_.gap, .prices = prices};
    if (!options_.in_order) return solve_round(round, options);
    std::vector<std::vector<double>> values(goal_.size());
    for (std::size_t g = 0; g < goal_.size(); ++g) {
      for (const std::size_t o : offer_of) values[g].push_back(scale_ * goal_[g][o]);
    }
    detail::Ordered ordered = detail::solve_in_order(round, values, options_.slack, options);
    for (const std::size_t o : offer_of) {
      offers_[o].value = 0;
      for (std::size_t g = 0; g < goal_.size(); ++g) {
        offers_[o].value += ordered.weight[g] * goal_[g][o];
      }
    }
    return std::move(ordered.round);
  }

  RoundView columns(const std::vector<std::size_t>& members, const std::vector<bool>& barred,
                    std::vector<std::size_t>& offer_of) {
    job_.clear(), tier_.clear(), gpus_.clear(), value_.clear();
    watts_.clear(), users_.clear(), groups_.clear();
    for (const std::size_t c : members) {
      for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
        const Offer& offer = offers_[o];
        if (barred[o] || (in_the_way(offer) && offer.option->gpus > reservation_.spare)) continue;
        offer_of.push_back(o);
        job_.push_back(static_cast<std::int64_t>(c));
        tier_.push_back(offer.option->tier);
        gpus_.push_back(offer.option->gpus);
        value_.push_back(scale_ * offer.value);
        if (power_left_ < kInfinity) watts_.push_back(offer.watts);
        if (!user_.left.empty()) users_.push_back(user_.of_job[c]);
        if (!group_.left.empty()) groups_.push_back(group_.of_job[c]);
      }
    }
    RoundView round{.job = job_,
                    .tier = tier_,
                    .gpus = gpus_,
                    .value = value_,
                    .capacity = free_,
                    .watts = watts_,
                    .power_cap_w = std::max(0.0, power_left_),
                    .user = users_,
                    .group = groups_,
                    .user_quota = user_.left,
                    .group_quota = group_.left};
    if (options_.in_nodes) {
      round.capacity = all_;
      round.node_gpus = nodes_;
      round.taken_tier = taken_tier_;
      round.taken_gpus = taken_gpus_;
    }
    return round;
  }

  void adopt(const RoundPlan& round, const std::vector<std::size_t>& offer_of) {
    for (const std::int64_t i : round.chosen) {
      const auto row = static_cast<std::size_t>(i);
      take(static_cast<std::size_t>(job_[row]), offer_of[row], Fate::runs);
    }
    plan_.bound += std::max(0.0, round.bound - round.value) / scale_;
    for (std::size_t t = 0; t < round.prices.size(); ++t) {
      plan_.prices[t] = std::max(plan_.prices[t], round.prices[t] / scale_);
    }
  }

  /// Waiting jobs join running ones where the pair is worth more than the host alone.
  void share() {
    std::vector<detail::Seat> hosts, guests;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      if (candidate.fate == Fate::ended || partner_.contains(c)) continue;
      const bool waits = candidate.fate == Fate::waits;
      const std::size_t first = waits ? candidate.first : candidate.offer;
      const std::size_t end = waits ? candidate.end : candidate.offer + 1;
      for (std::size_t o = first; o < end; ++o) {
        const Option& option = *offers_[o].option;
        (waits ? guests : hosts)
            .push_back({c,
                        o,
                        option.tier,
                        option.gpus,
                        offers_[o].value,
                        {candidate.job->sm_activity, candidate.job->memory_gb}});
      }
    }
    for (const detail::Pair& pair :
         detail::match(hosts, guests, snapshot_.tiers, options_.sharing, plan_.bound)) {
      const Option& guest = *offers_[pair.guest_offer].option;
      const Option& host = *offers_[candidates_[pair.host].offer].option;
      if (allowed(pair.guest, guest.gpus, watts_of_guest(host, guest))) seat(pair);
    }
    plan_.bound = std::max(plan_.bound, plan_.value);
  }

  void write() {
    plan_.gap = plan_.bound > 0 ? (plan_.bound - plan_.value) / plan_.bound : 0.0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      if (candidate.fate != Fate::waits && candidate.fate != Fate::ended) {
        const Offer& offer = offers_[candidate.offer];
        const auto pair = partner_.find(c);
        const std::size_t other =
            pair == partner_.end() ? c : pair->second.host ^ pair->second.guest ^ c;
        plan_.allocations.push_back({candidate.job->id, offer.option->tier, offer.option->gpus,
                                     offer.keeps ? candidate.held->since_s : snapshot_.now_s,
                                     other == c ? -1 : candidates_[other].job->id});
      }
      if (options_.reasons) plan_.reasons.push_back({candidate.job->id, reason(c)});
    }
  }

  [[nodiscard]] double rent(const Offer& offer) const {  // what its GPUs cost at today's prices
    return plan_.prices[static_cast<std::size_t>(offer.option->tier)] * offer.option->gpus;
  }

  [[nodiscard]] std::string reason(std::size_t c) const {
    const Candidate& candidate = candidates_[c];
    if (candidate.fate == Fate::ended) return reason_of_end(*candidate.job);
    if (candidate.fate == Fate::waits) return reason_of_wait(c);
    const Offer& offer = offers_[candidate.offer];
    const int k = offer.option->gpus;
    const char* where = snapshot_.tiers[static_cast<std::size_t>(offer.option->tier)].name.c_str();
    switch (candidate.fate) {
      case Fate::pinned:
        return line(candidate.job->preemptible ? "keeps %d x %s: its guaranteed run is not over"
                                               : "keeps %d x %s: it cannot be preempted",
                    k, where);
      case Fate::owed:
        return line("gets %d x %s: it has waited %.3g h, the limit is %.3g h", k, where,
                    detail::waited_s(*candidate.job, snapshot_.now_s) / 3600,
                    options_.max_wait_s / 3600);
      case Fate::guest: {
        const detail::Pair& pair = partner_.at(c);
        return line(
            "shares %d x %s with job %lld (%s): at %.0f %% of its speed, the other at %.0f %%", k,
            where, static_cast<long long>(candidates_[pair.host].job->id),
            std::string(name(options_.sharing)).c_str(), 100 * pair.guest_speed,
            100 * pair.host_speed);
      }
      default:
        const char* verb = offer.keeps ? "keeps" : (candidate.held ? "moves to" : "gets");
        return rent(offer) > 0 ? line("%s %d x %s: worth %.3g times what these GPUs cost now", verb,
                                      k, where, offer.value / rent(offer))
                               : line("%s %d x %s: there are enough for all", verb, k, where);
    }
  }

  [[nodiscard]] std::string reason_of_end(const Job& job) const {
    const Outlook outlook = detail::outlook_of(job, options_);
    return outlook.reached >= outlook.never
               ? line("ends: target reached with probability %.3g", outlook.reached)
               : line("ends: target out of reach with probability %.3g", outlook.never);
  }

  [[nodiscard]] std::string reason_of_wait(std::size_t c) const {
    const Candidate& candidate = candidates_[c];
    const char* what = candidate.held ? "gives way" : "waits";
    if (reservation_.tier >= 0 && reservation_.candidate == c) {
      return line("waits: GPUs on %s are kept for it, free within %.3g h",
                  snapshot_.tiers[static_cast<std::size_t>(reservation_.tier)].name.c_str(),
                  reservation_.shadow_s / 3600);
    }
    const Offer* best = &offers_[candidate.first];
    bool fits_somewhere = false;
    for (std::size_t o = candidate.first; o < candidate.end; ++o) {
      if (offers_[o].value * rent(*best) > best->value * rent(offers_[o])) best = &offers_[o];
      fits_somewhere = fits_somewhere || (!options_.in_nodes && fits(c, offers_[o]));
    }
    const int k = best->option->gpus;
    const char* where = snapshot_.tiers[static_cast<std::size_t>(best->option->tier)].name.c_str();
    if (best->value <= 0) return line("%s: running it now is worth nothing", what);
    if (best->value <= rent(*best)) {
      return line("%s: on %d x %s worth %.3g times what these GPUs cost now", what, k, where,
                  best->value / rent(*best));
    }
    if (fits_somewhere) return line("%s: the GPUs that are free are kept for another job", what);
    return line("%s: no gang of %d is left on %s within the limits", what, k, where);
  }

  const Snapshot& snapshot_;
  const PlanOptions& options_;
  detail::Valuation valuation_;
  std::vector<Candidate> candidates_;
  std::unordered_map<std::int64_t, std::size_t> index_;  // candidate of a job's id
  std::vector<Offer> offers_;
  std::vector<std::vector<double>> goal_;  // values of the offers, apart for goals in order
  double scale_ = 1;                       // of the values in a round
  std::vector<std::int64_t> all_, free_;
  std::vector<std::int64_t> nodes_, taken_tier_, taken_gpus_;
  double power_left_ = kInfinity;
  Quotas user_, group_;
  Reservation reservation_;
  std::unordered_map<std::size_t, detail::Pair> partner_;
  std::vector<std::int64_t> job_, tier_, gpus_, users_, groups_;  // columns of a round
  std::vector<double> value_, watts_;
  Plan plan_;
};

}  // namespace

Plan plan(const Snapshot& snapshot, const PlanOptions& options) {
  return Planner(snapshot, options).run();
}

}  // namespace glidepath
