// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/durations.hpp"

namespace glidepath {

/// Laws by what they depend on. Two threads that miss the same one both make it, and agree.
class ForecastMemo {
 public:
  struct Key {
    std::uint64_t curve = 0;  ///< hash of its columns
    std::size_t points = 0;   ///< that were seen of it
    double target = 0, budget = 0;
    bool ahead = false;
    auto operator<=>(const Key&) const = default;
  };
  struct ReachLaw {
    std::vector<double> reached_at;  ///< equally likely absolute steps, inf = never
    std::vector<double> step, loss;  ///< the median ahead, where it is needed
  };
  std::shared_ptr<const ReachLaw> find(const Key& key, const std::function<ReachLaw()>& make);

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const ReachLaw>> laws_;
};

}  // namespace glidepath

namespace glidepath::detail {

enum class LossesAhead : std::uint8_t { unwanted, wanted };

/// Forecasts of the service that jobs still need.
class Predictor {
 public:
  explicit Predictor(const Cluster& cluster);

  /// Remaining steps of a job with a curve: the law of glidepath::reach on its first 5, 7, 9, 11,
  /// 13, 16, 20 ... points, a quarter more each time, whoever decides when: so that policies share
  /// forecasts. Nothing before the first few points. Where they are wanted, also the median losses
  /// ahead.
  void curve(int job, Job& seen, LossesAhead ahead);

  /// Remaining steps of a job without one: its duration, or with SimulationOptions::forecast_sigma
  /// samples of the law below.
  void service(int job, Job& seen);

  /// The same of the whole work of a job that has arrived, as if it had not run.
  [[nodiscard]] std::vector<double> at_arrival(int job);

  /// inf over d of E[min(S, d)] / P(S <= d) of the remaining work S in ticks.
  [[nodiscard]] double gittins_rank(int job) const;

  /// gittins_rank(), and log(q75 / q25) of the remaining work over that of a normal law.
  struct Outlook {
    double rank = 0, spread = 0;
  };
  [[nodiscard]] Outlook outlook(int job) const;

  /// Looks again at what jobs tell of each other's durations; whether any law changed.
  bool refresh();

  /// The work in ticks as all that is known makes it most likely: geometric mean of its law.
  [[nodiscard]] double likely(int job) const;

  /// Quantile of the remaining work in ticks.
  [[nodiscard]] double left(int job, double p) const;

  /// The forecast itself in ticks of work: fixed for each job, by seed.
  [[nodiscard]] double total(int job) const { return total_[job]; }

 private:
  /// Law of the true work given the forecast, the work already done and what other jobs were like:
  /// atoms `work`, weights summing to 1; the remaining work of the i-th is work[i] - done. Empty
  /// when the job has outrun everything that was thought possible.
  struct WorkLaw {
    std::vector<double> work, weight;
  };
  const WorkLaw& law(int job, double done) const;
  [[nodiscard]] std::vector<double> steps_of(const WorkLaw& law, double done) const;

  const Cluster& cluster_;
  double sigma_;
  std::vector<double> total_;
  std::unique_ptr<Durations> durations_;  ///< where forecasts have an error
  mutable WorkLaw law_;
  /// What `service` last made of a job: the same while neither of these changes.
  struct Served {
    double done = -1;
    std::int64_t learned = -1;
  };
  std::vector<Served> served_;
  std::int64_t learned_ = 0;  ///< times that what is known of durations has changed
  struct Known {
    std::size_t points = 0;  ///< that the law was made of
    bool outrun = false;     ///< the job is past all that the law thought possible
    std::shared_ptr<const ForecastMemo::ReachLaw> law;
  };
  std::vector<Known> known_;
  std::vector<std::uint64_t> hash_;  ///< of each curve
  std::shared_ptr<ForecastMemo> memo_;
};

}  // namespace glidepath::detail
