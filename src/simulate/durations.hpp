// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/kernels.hpp"

namespace glidepath::detail {

/// What forecasts with a known error, the durations of ended jobs and the service of the others
/// tell of the duration of each job.
///
/// For each job there is a forecast y = log(work) + sigma z; of ended ones the work itself is
/// known, of the others that it is more than what they have had. People submit alike jobs one after
/// the other: the log durations x of the jobs of one user and gang size, in order of submission,
/// are a chain that stays near where it was with a probability that depends on the time between the
/// two submissions, or else draws from the law of durations:
///
///   p(x_i | x_i-1) = s(gap) near(x_i - x_i-1) + (1 - s(gap)) law(x_i)
///
/// All three are learned by expectation-maximisation on a grid (Baum, Petrie, Soules and Weiss
/// 1970; of the law alone, Laird 1978), the law for each size of gang and drawn to that of all
/// jobs.
class Durations {
 public:
  static constexpr int kGrid = kWorkGrid;    ///< points of log work, from one second
  static constexpr double kGridStep = 0.32;  ///< up to 4e7 seconds

  /// `log_forecast` of each job in order of submission, in log ticks.
  Durations(const Cluster& cluster, double sigma, std::vector<double> log_forecast);

  /// All jobs up to this one have arrived: what those before it tell of it.
  void meet(int job);

  /// Looks again at what is known by now, when a hundredth more has happened; whether it did.
  bool refresh();

  /// What the others tell of a job that has ended: log_weights() as if it had not.
  void recall(int job);

  /// Another number whenever log_weights() of a job have changed.
  [[nodiscard]] std::int64_t version(int job) const { return version_[job]; }

  /// Log weights, but for a constant, of cells of log work, so wide and from `low` on, given all
  /// that is known of a job but its own service.
  void log_weights(int job, double low, double width, std::span<double> out) const;

  /// The range of log work in ticks that is thought possible.
  [[nodiscard]] double lowest() const { return origin_; }
  [[nodiscard]] double highest() const { return origin_ + kGridStep * (kGrid - 1); }

 private:
  using Grid = std::array<double, kGrid>;
  static constexpr int kReach = kWorkReach;
  static constexpr int kGaps = 7;  ///< decades of seconds between submissions
  static constexpr int kEnded = kGrid + 1;
  struct Chain {
    int gpus = 1;
    std::vector<int> jobs;
    std::size_t settled = 0;  ///< the first so many have ended
    bool stale = false;       ///< their backward_ is of an older refresh
  };
  /// What the jobs after one tell of the next one, and its mean by the law of durations.
  struct Ahead {
    Grid next{};
    double moved = 0;
  };
  /// Expected counts of an E-step.
  struct Counts {
    std::array<double, kGaps> stays{}, moves{};
    std::array<Grid, kReach + 1> near{};  ///< by where they start, without near_
  };

  void join(int job);
  Chain& chain_of(int job);
  void observe(int job);
  void forward(const Chain& chain, std::size_t i, const Grid& law, Grid& prior);
  Ahead backward(const Chain& chain, std::size_t i, const Grid& law, const Grid& behind,
                 Grid& out) const;
  void renew_backward(const Chain& chain, std::size_t i, const Grid& law);
  enum class Renewal : std::uint8_t { what_is_new, all };
  void renew(Chain& chain, Renewal renewal);
  void remember(int job, Grid prior);
  void start();
  void learn();
  /// An E-step over a chain with the law of its gang.
  void count(const Chain& chain, const Grid& law, Counts& counts, Grid& drawn);
  [[nodiscard]] int decade(int before, int job) const;
  [[nodiscard]] const Grid& law_of(int gpus) const;

  const Cluster& cluster_;
  double sigma_, origin_;
  std::vector<double> log_forecast_;
  std::map<std::pair<std::string_view, int>, Chain> chains_;               ///< by user and gang
  std::vector<Grid> likelihood_, forward_, backward_, prior_, log_prior_;  ///< of each job
  std::vector<double> scale_;
  std::vector<int> gap_;     ///< decade of the time since the job before it in its chain
  std::vector<int> passed_;  ///< grid points that its service excludes, kEnded for a job that has
  std::vector<bool> new_;    ///< what is observed of a job, since the last refresh
  std::vector<std::int64_t> version_;
  Grid any_{};
  std::map<int, Grid> of_gang_;
  std::array<double, kReach + 1> near_{};  ///< of so many grid points up, and down
  std::array<double, kGaps> stays_{};
  int learn_at_ = 1, look_at_ = 1;  ///< arrivals, arrivals and ends
};

}  // namespace glidepath::detail
