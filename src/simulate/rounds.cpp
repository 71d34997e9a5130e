// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "common/rng.hpp"
#include "simulate/fair_share.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

constexpr double kResetS = 1920;  ///< least time between two computations of the shares
constexpr double kStartPriority = 1e9;

/// Seeds std::mt19937 as Python's random.seed(small integer) does (init_by_array, Matsumoto 2002):
/// Gavel shuffles the order of GPU types with it.
struct PythonSeed {
  using result_type = std::uint32_t;
  std::uint32_t key;
  template <class It>
  void generate(It begin, It end) const {
    const auto n = static_cast<std::uint32_t>(end - begin);
    std::vector<std::uint32_t> mt(n);
    mt[0] = 19650218;
    for (std::uint32_t i = 1; i < n; ++i) {
      mt[i] = 1812433253U * (mt[i - 1] ^ (mt[i - 1] >> 30)) + i;
    }
    std::uint32_t i = 1;
    for (std::uint32_t k = n; k > 0; --k) {
      mt[i] = (mt[i] ^ ((mt[i - 1] ^ (mt[i - 1] >> 30)) * 1664525U)) + key;
      if (++i >= n) {
        mt[0] = mt[n - 1];
        i = 1;
      }
    }
    for (std::uint32_t k = n - 1; k > 0; --k) {
      mt[i] = (mt[i] ^ ((mt[i - 1] ^ (mt[i - 1] >> 30)) * 1566083941U)) - i;
      if (++i >= n) {
        mt[0] = mt[n - 1];
        i = 1;
      }
    }
    mt[0] = 0x80000000U;
    std::copy(mt.begin(), mt.end(), begin);
  }
};

class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) {
    PythonSeed sequence{static_cast<std::uint32_t>(seed)};
    random_ = std::mt19937(sequence);
  }
  void operator()(std::vector<int>& items) {
    for (Index i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }

 private:
  Index below(Index n) {
    int bits = 0;
    while ((Index{1} << bits) <= n) ++bits;
    Index value = n;
    while (value >= n) value = random_() >> (32 - bits);
    return value;
  }
  std::mt19937 random_;
};

/// What the round mechanism keeps of a live job.
struct Member {
  int job;
  bool shared = false;  ///< the shares were computed with it
  double steps_done = 0, work = 0;
  std::vector<double> rate{}, share{}, time{}, deficit{}, priority{};
};

class Rounds {
 public:
  Rounds(Cluster& cluster, Shares shares)
      : cluster_(cluster),
        shares_(shares),
        round_s_(*cluster.options.round_s),
        origin_(cluster.runs.empty() ? 0 : cluster.runs.front().submit),
        shuffle_(cluster.options.seed + 5),
        fastest_first_(shares == Shares::in_order || shares == Shares::max_min),
        tier_time_(cluster.capacity.size()) {}

  void run() {
    const int jobs = static_cast<int>(cluster_.runs.size());
    double now = 0;
    double round_start = 0;
    double round_end = -1;
    DecisionLimit limit(cluster_);
    while (cluster_.arrived < jobs || !members_.empty()) {
      check_interrupt();
      if (cluster_.arrived == jobs && ran_.empty()) last_reset_ = 0;
      if (!ran_.empty()) {
        double latest = 0;
        for (const Ran& ran : ran_) latest = std::max(latest, ran.finish);
        if (round_end >= 0) round_start = round_end;
        now = round_end = latest;
      } else if (cluster_.arrived < jobs) {
        now = std::max(now, std::min(submit(cluster_.arrived), next_reset()));
      }
      end_round(round_start);
      for (; cluster_.arrived < jobs && submit(cluster_.arrived) <= now; ++cluster_.arrived)
        admit();
      update_priorities(now);
      start_round(now);
      ++cluster_.events;
      limit.spend();
      const auto& progress = cluster_.options.progress;
      if (progress) progress(cluster_.arrived - cluster_.live, jobs);
    }
  }

 private:
  struct Ran {
    int job, tier;
    double steps, finish;
  };

  /// Seconds since the first submission, as all times here: Gavel's traces begin at 0.
  [[nodiscard]] double submit(int job) const {
    return cluster_.seconds(cluster_.runs[job].submit - origin_);
  }
  [[nodiscard]] Tick clock(double s) const { return origin_ + cluster_.ticks(s); }
  [[nodiscard]] int tiers() const { return static_cast<int>(cluster_.capacity.size()); }
  [[nodiscard]] int gpus(const Member& member) const { return cluster_.runs[member.job].gpus; }

  /// When jobs that have no share yet get one.
  [[nodiscard]] double next_reset() const {
    return stale_ && !members_.empty() ? last_reset_ + kResetS : kInfinity;
  }

  void admit() {
    Member member{.job = cluster_.arrived};
    member.work = cluster_.runs[member.job].work / static_cast<double>(cluster_.per_second);
    for (int t = 0; t < tiers(); ++t) {
      member.rate.push_back(cluster_.usable(member.job, t) ? cluster_.rate(member.job, t) : 0);
    }
    member.share.assign(tiers(), 0.0);
    member.time.assign(tiers(), round_s_ / 2);
    member.deficit.assign(tiers(), 0.0);
    member.priority.assign(tiers(), 0.0);
    members_.push_back(std::move(member));
    ++cluster_.live;
    stale_ = true;
  }

  /// Books what ran. A job that ended did so at its own time, before the end of the round.
  void end_round(double round_start) {
    const auto member_of = [&](const Ran& ran) {
      return std::find_if(members_.begin(), members_.end(),
                          [&](const Member& member) { return member.job == ran.job; });
    };
    // The last to finish is booked first, as there: equal priorities differ in the last bit.
    std::sort(ran_.begin(), ran_.end(), [](const Ran& a, const Ran& b) {
      return std::tie(b.finish, a.job) < std::tie(a.finish, b.job);
    });
    for (const Ran& ran : ran_) {
      const auto it = member_of(ran);
      it->steps_done += ran.steps;
      it->time[ran.tier] += ran.finish - round_start;
      tier_time_[ran.tier] += ran.finish - round_start;
    }
    std::sort(ran_.begin(), ran_.end(), [](const Ran& a, const Ran& b) {
      return std::tie(a.finish, a.job) < std::tie(b.finish, b.job);
    });
    for (const Ran& ran : ran_) {
      const auto it = member_of(ran);
      if (it->steps_done < it->work) continue;
      cluster_.now = std::max(cluster_.now, clock(ran.finish));
      cluster_.finish(ran.job, cluster_.runs[ran.job].at_end);
      members_.erase(it);
      stale_ = true;
    }
    ran_.clear();
  }

  void update_priorities(double now) {
    // The sum that next_reset() waits for: a difference may be less by rounding, for ever.
    if (stale_ && (now >= last_reset_ + kResetS || last_reset_ == 0)) {
      for (int t = 0; t < tiers(); ++t) {
        tier_time_[t] = 0;
        for (Member& member : members_) {
          member.deficit[t] += (member.shared ? member.share[t] : 0) * (now - last_reset_) -
                               (member.time[t] - round_s_ / 2);
          member.time[t] = round_s_ / 2;
          tier_time_[t] += round_s_ / 2;
        }
      }
      last_reset_ = now;
      compute_shares();
      stale_ = false;
    }
    for (Member& member : members_) {
      for (int t = 0; t < tiers(); ++t) {
        const double fraction = tier_time_[t] == 0 ? 0 : member.time[t] / tier_time_[t];
        member.priority[t] = !member.shared || member.rate[t] == 0 ? 0
                             : fraction > 0                        ? member.share[t] / fraction
                                            : member.share[t] * kStartPriority;
      }
    }
  }

  void compute_shares() {
    for (Member& member : members_) {
      member.shared = true;
      member.share.assign(tiers(), 0.0);
    }
    if (members_.empty()) return;
    if (shares_ == Shares::in_order) return share_in_order();
    const auto n = static_cast<Eigen::Index>(members_.size());
    Eigen::VectorXd gang(n), capacity(tiers());
    for (int t = 0; t < tiers(); ++t) capacity(t) = cluster_.capacity[t];
    for (Eigen::Index i = 0; i < n; ++i) gang(i) = gpus(members_[static_cast<Index>(i)]);
    const Eigen::MatrixXd x = shares_ == Shares::equal             ? equal_time(gang, capacity)
                              : shares_ == Shares::max_min_unaware ? even_time(gang, capacity)
                                                                   : fair_time(gang, capacity);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (int t = 0; t < tiers(); ++t) members_[static_cast<Index>(i)].share[t] = x(i, t);
    }
  }

  /// 1/n of each tier, within the time of one job. Divided and summed in the order of Gavel's
  /// names, so that ties stay ties.
  [[nodiscard]] Eigen::MatrixXd equal_time(const Eigen::VectorXd& gang,
                                           const Eigen::VectorXd& capacity) const {
    std::vector<int> by_name(tiers());
    std::iota(by_name.begin(), by_name.end(), 0);
    std::sort(by_name.begin(), by_name.end(), [&](int a, int b) {
      return cluster_.workload.tiers[a].name < cluster_.workload.tiers[b].name;
    });
    const Eigen::Index n = gang.size();
    Eigen::MatrixXd x(n, tiers());
    for (Eigen::Index i = 0; i < n; ++i) {
      double sum = 0;
      for (const int t : by_name) {
        x(i, t) = capacity(t) / static_cast<double>(n) / gang(i);
        sum += x(i, t);
      }
      x.row(i) /= std::max(1.0, sum);
    }
    return x;
  }

  /// Which of the many optima a solver returns decides mean completion times by a fifth. Simplex
  /// codes perturb the costs of all variables at random against degenerate steps, and so return the
  /// optimum that is the cheapest by those; a unit of time costs a wide gang no more than a narrow
  /// one, which leaves the scarce types to the narrow ones.
  [[nodiscard]] Eigen::MatrixXd even_time(const Eigen::VectorXd& gang,
                                          const Eigen::VectorXd& capacity) const {
    const Rng random{cluster_.options.seed};
    Eigen::MatrixXd cost(gang.size(), tiers());
    for (Eigen::Index i = 0; i < gang.size(); ++i) {
      for (int t = 0; t < tiers(); ++t) {
        cost(i, t) =
            1 + random.uniform(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(t));
      }
    }
    return even_shares(cost, gang, capacity);
  }

  [[nodiscard]] Eigen::MatrixXd fair_time(const Eigen::VectorXd& gang,
                                          const Eigen::VectorXd& capacity) const {
    Eigen::MatrixXd a(gang.size(), tiers());
    for (Eigen::Index i = 0; i < gang.size(); ++i) {
      const Member& member = members_[static_cast<Index>(i)];
      double even = 0;  // rate with the same share of each tier
      for (int t = 0; t < tiers(); ++t) {
        const double rate = member.rate[t];
        a(i, t) = rate * gang(i);
        even += rate * capacity(t) / capacity.sum();
      }
      a.row(i) /= even;
    }
    return max_min_shares(a, gang, capacity);
  }

  /// FIFO: all the time of the fastest tier that still has room; the first that fits nowhere ends
  /// it. As in Gavel, which knows no memory, a job may get that of a tier on which its rate is 0.
  void share_in_order() {
    std::vector<int> room = cluster_.capacity;
    for (Member& member : members_) {
      int best = -1;
      for (int t = 0; t < tiers(); ++t) {
        if (room[t] < gpus(member) || !cluster_.fits_memory(member.job, t)) continue;
        if (best < 0 || member.rate[t] > member.rate[best]) best = t;
      }
      if (best < 0) return;
      room[best] -= gpus(member);
      member.share[best] = 1;
    }
  }

  /// Lets a job run; the seconds until it makes progress.
  double begin(int job, int tier) {
    const Run& run = cluster_.runs[job];
    if (run.tier >= 0) return 0;
    const bool again = run.first_start >= 0;
    cluster_.start(job, tier);
    return again ? cluster_.seconds(cluster_.restart_of(job)) : 0;
  }

  /// Tier by tier, the jobs that are furthest behind their share first.
  void start_round(double now) {
    std::vector<int> order(tiers());
    std::iota(order.begin(), order.end(), 0);
    if (!fastest_first_) shuffle_(order);
    std::vector<int> chosen(members_.size(), -1);
    for (const int t : order) {
      std::vector<Index> queue(members_.size());
      std::iota(queue.begin(), queue.end(), Index{0});
      std::stable_sort(queue.begin(), queue.end(), [&](Index a, Index b) {
        const Member &x = members_[a], &y = members_[b];
        return std::tie(x.priority[t], x.deficit[t], x.share[t]) >
               std::tie(y.priority[t], y.deficit[t], y.share[t]);
      });
      int room = cluster_.capacity[t];
      for (const Index i : queue) {
        const Member& member = members_[i];
        if (chosen[i] >= 0 || member.rate[t] <= 0 || gpus(member) > room) continue;
        if (shares_ == Shares::in_order && member.priority[t] <= 0) continue;
        chosen[i] = t;
        room -= gpus(member);
      }
    }
    cluster_.now = std::max(cluster_.now, clock(now));
    for (Index i = 0; i < members_.size(); ++i) {
      const int running_on = cluster_.runs[members_[i].job].tier;
      if (running_on >= 0 && running_on != chosen[i]) cluster_.suspend(members_[i].job);
    }
    for (Index i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      if (chosen[i] < 0 || !member.shared) continue;  // the unshared hold room, and do not run yet
      const double restart = begin(member.job, chosen[i]);
      const double rate = member.rate[chosen[i]];
      const double most = rate * std::max(0.0, round_s_ - restart);
      const double whole = std::floor(most);  // a round makes whole steps
      const double steps = std::min(whole > 0 ? whole : most, member.work - member.steps_done);
      ran_.push_back({member.job, chosen[i], steps, now + restart + steps / rate});
    }
  }

  Cluster& cluster_;
  Shares shares_;
  double round_s_;
  Tick origin_;  ///< the first submission
  Shuffler shuffle_;
  bool fastest_first_;
  std::vector<Member> members_;  ///< in order of arrival
  std::vector<double> tier_time_;
  std::vector<Ran> ran_;
  double last_reset_ = 0;
  bool stale_ = true;
};

}  // namespace

void run_rounds(Cluster& cluster, Shares shares) { Rounds(cluster, shares).run(); }

}  // namespace glidepath::detail
