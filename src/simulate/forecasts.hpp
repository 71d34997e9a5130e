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
  void curve(int job, Job& seen);

  /// Remaining steps of a job without one: its duration, or with SimulationOptions::forecast_sigma
  /// the law of the true duration given a forecast duration x exp(N(0, sigma)) and the time it has
  /// already run.
  void service(int job, Job& seen) const;

  /// The forecast itself in ticks of work: fixed for each job, by seed.
  [[nodiscard]] double total(int job) const { return total_[Engine::index(job)]; }

 private:
  const Engine& engine_;
  double sigma_;
  std::vector<double> total_;
  struct Known {
    std::size_t points = 0;
    std::vector<double> reached_at;  ///< equally likely absolute steps, inf = never
  };
  std::vector<Known> known_;
};

/// Quantile of the standard normal law.
[[nodiscard]] double normal_quantile(double p);

}  // namespace glidepath::detail
