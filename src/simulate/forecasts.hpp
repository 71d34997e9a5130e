// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "simulate/engine.hpp"

namespace glidepath::detail {

/// What a scheduler is told of the service that jobs still need.
class Predictor {
 public:
  explicit Predictor(const Engine& engine);

  /// Remaining steps of a job with a curve: the law of glidepath::reach on the points so far, made
  /// anew when a quarter more of them is there. Nothing before the first few points.
  /// `ahead`: also the median losses ahead.
  void curve(int job, Job& seen, bool ahead);

  /// Remaining steps of a job without one: its duration, or with SimulationOptions::forecast_sigma
  /// samples of the law below.
  void service(int job, Job& seen);

  /// inf over d of E[min(S, d)] / P(S <= d) of the remaining work S in ticks.
  [[nodiscard]] double gittins_rank(int job) const;

  /// Learns the law of durations anew when a quarter more jobs have arrived; whether it did.
  bool refresh();

  /// The forecast itself in ticks of work: fixed for each job, by seed.
  [[nodiscard]] double total(int job) const { return total_[Engine::index(job)]; }

 private:
  /// Law of the true work given the forecast, the work already done and what jobs of this size of
  /// gang were like: atoms `work`, weights summing to 1; the remaining work of the i-th is
  /// work[i] - done. Empty when the job has outrun everything that was thought possible.
  struct Law {
    std::vector<double> work, weight;
  };
  const Law& law(int job) const;
  [[nodiscard]] double log_prior(int gpus, double log_work) const;

  const Engine& engine_;
  double sigma_;
  std::vector<double> total_;
  int learn_at_ = 1;         ///< arrivals at which to learn next
  std::vector<double> any_;  ///< weights of log work on a grid, jobs of any gang
  std::vector<std::vector<double>> of_gang_;
  mutable Law law_;
  struct Known {
    std::size_t points = 0;
    std::vector<double> reached_at;  ///< equally likely absolute steps, inf = never
    std::vector<double> step, loss;  ///< the median ahead
  };
  std::vector<Known> known_;
};

}  // namespace glidepath::detail
