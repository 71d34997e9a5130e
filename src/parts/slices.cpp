// SPDX-License-Identifier: Apache-2.0
// MIG slices. Amdahl's law: a share b of the step needs the whole card, and takes as much longer on
// a slice as the slice is smaller, by the geometric mean of its compute and memory:
//
//   slowdown = 1 + b (1 / sqrt(compute / 7 x memory / 8) - 1)
//   b = 5/6 (watts - idle) / (busy - idle), or without watts sqrt(u m), as for the halves of
//       `shared_speeds`
//
// 5/6 is the one constant that was fitted, to what MISO measured on an A100 (Li, Patel, Samsi,
// Gadepalli, Tiwari, SoCC 2022); bench/accuracy/slices.py prints the errors for models left out.
#include "glidepath/parts.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "common/require.hpp"
#include "common/views.hpp"
#include "hardware/sharing.hpp"

namespace glidepath {
namespace {

using detail::refuse;

constexpr double kWattsShare = 5.0 / 6;
constexpr int kComputes = 7, kMemories = 8;

struct Size {
  const char* name;
  int compute, memory;
};
constexpr std::array<Size, 5> kSizes{
    {{"7g", 7, 8}, {"4g", 4, 4}, {"3g", 3, 4}, {"2g", 2, 2}, {"1g", 1, 1}}};
constexpr std::size_t kWhole = 0, kFour = 1, kThree = 2, kTwo = 3, kOne = 4;

/// The ways to fill a card, as columns of `kSizes`: all of it, or its first four sevenths and its
/// last three each by themselves, since no slice but the whole card lies across.
std::vector<std::vector<std::size_t>> cuts() {
  const std::vector<std::vector<std::size_t>> first{{kFour},
                                                    {kThree},
                                                    {kTwo, kTwo},
                                                    {kTwo, kOne, kOne},
                                                    {kOne, kOne, kTwo},
                                                    {kOne, kOne, kOne, kOne}};
  const std::vector<std::vector<std::size_t>> last{{kThree}, {kTwo, kOne}, {kOne, kOne, kOne}};
  std::vector<std::vector<std::size_t>> found{{kWhole}};
  for (const auto& left : first) {
    for (const auto& right : last) {
      found.push_back(left);
      found.back().insert(found.back().end(), right.begin(), right.end());
    }
  }
  return found;
}

double whole_card_share(const Profile& job, const Tier& tier) {
  const double by_activity = detail::whole_card_share(job);
  if (!(job.mean_watts >= 0)) {
    refuse("slice_speeds: mean_watts is ", job.mean_watts, ", expected 0 or more");
  }
  return job.mean_watts > 0 ? kWattsShare * utilization(tier, job.mean_watts) : by_activity;
}

/// Jobs that run and the sum of their speeds: more jobs are better, then a greater sum.
using Worth = std::pair<int, double>;

/// The best use of one cut: worth[s][set] = the best that the slices from s on can do without the
/// jobs of the set.
class Cut {
 public:
  Cut(const std::vector<std::size_t>& cut, RowsView speeds)
      : cut_(cut),
        speeds_(speeds),
        sets_(std::size_t{1} << speeds.rows()),
        worth_((cut.size() + 1) * sets_) {
    for (std::size_t s = cut.size(); s-- > 0;) {
      for (std::size_t set = 0; set < sets_; ++set) at(s, set) = best(s, set).first;
    }
  }
  [[nodiscard]] Worth worth() const { return worth_[0]; }
  [[nodiscard]] std::vector<int> jobs() {
    std::vector<int> found;
    std::size_t set = 0;
    for (std::size_t s = 0; s < cut_.size(); ++s) {
      const int job = best(s, set).second;
      found.push_back(job);
      if (job >= 0) set |= std::size_t{1} << job;
    }
    return found;
  }

 private:
  Worth& at(std::size_t s, std::size_t set) { return worth_[s * sets_ + set]; }
  std::pair<Worth, int> best(std::size_t s, std::size_t set) {
    std::pair<Worth, int> found{at(s + 1, set), -1};
    for (std::ptrdiff_t job = 0; job < speeds_.rows(); ++job) {
      const std::size_t bit = std::size_t{1} << job;
      const double speed = speeds_(job, static_cast<std::ptrdiff_t>(cut_[s]));
      if ((set & bit) != 0 || speed <= 0) continue;
      const Worth& rest = at(s + 1, set | bit);
      const Worth worth{rest.first + 1, rest.second + speed};
      if (worth > found.first) found = {worth, static_cast<int>(job)};
    }
    return found;
  }

  const std::vector<std::size_t>& cut_;
  RowsView speeds_;
  std::size_t sets_;
  std::vector<Worth> worth_;
};

Partition named(const std::vector<std::size_t>& cut) {
  Partition made;
  for (const std::size_t size : cut) made.slices.emplace_back(kSizes[size].name);
  made.jobs.assign(cut.size(), -1);
  return made;
}

}  // namespace

std::vector<Slice> slices() {
  std::vector<Slice> found;
  for (const Size& size : kSizes) found.push_back({size.name, size.compute, size.memory});
  return found;
}

Rows slice_speeds(std::span<const Profile> jobs, const Tier& tier) {
  validate(tier);
  Rows speeds(static_cast<std::ptrdiff_t>(jobs.size()), kSizes.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const double share = whole_card_share(jobs[j], tier);
    for (std::size_t s = 0; s < kSizes.size(); ++s) {
      const double compute = kSizes[s].compute / static_cast<double>(kComputes);
      const double memory = kSizes[s].memory / static_cast<double>(kMemories);
      if (tier.memory_gb > 0 && jobs[j].memory_gb > memory * tier.memory_gb) continue;
      speeds.row(static_cast<std::ptrdiff_t>(j))[s] =
          1 / (1 + share * (1 / std::sqrt(compute * memory) - 1));
    }
  }
  return speeds;
}

std::vector<Partition> partitions() {
  std::vector<Partition> found;
  for (const auto& cut : cuts()) found.push_back(named(cut));
  return found;
}

Partition best_partition(RowsView speeds) {
  if (speeds.rows() < 0 || speeds.rows() > kComputes) {
    refuse("best_partition: ", speeds.rows(), " jobs, expected 0 to 7, the slices of a card");
  }
  if (speeds.cols() != static_cast<std::ptrdiff_t>(kSizes.size())) {
    refuse("best_partition: ", speeds.cols(), " columns, expected 5: 7g, 4g, 3g, 2g, 1g");
  }
  detail::require_numbers(speeds, "best_partition: speeds");
  for (std::ptrdiff_t job = 0; job < speeds.rows(); ++job) {
    for (const double speed : speeds.row(job)) {
      if (!(speed >= 0 && std::isfinite(speed))) {
        refuse("best_partition: job ", job, " has the speed ", speed,
               ", expected 0 or more and finite");
      }
    }
  }
  Partition best;
  Worth most{-1, 0};
  for (const auto& cut : cuts()) {
    Cut filled(cut, speeds);
    if (filled.worth() <= most) continue;
    most = filled.worth();
    best = named(cut);
    best.jobs = filled.jobs();
    best.throughput = most.second;
  }
  return best;
}

}  // namespace glidepath
