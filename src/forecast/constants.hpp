// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace glidepath {

/// What a trace looks like, in numbers without unit (docs/method/forecast.md, "Gates"): points,
/// noise, late variation, resolution, late trend, distance from the best, each centred and scaled.
inline constexpr std::size_t kFeatures = 6;
using Features = std::array<double, kFeatures>;

/// All numbers of the forecast, each of which the table gives. Names follow
/// docs/method/forecast.md.
struct ForecastConstants {
  enum class ShapeKind : std::uint8_t { power, weibull, hill, log, constant };
  /// One candidate shape f(x) in relative time x = step / last observed step.
  struct Shape {
    ShapeKind family = ShapeKind::constant;
    double p = 0, q = 0;
    double log_prior = 0;
    bool operator==(const Shape&) const = default;
  };
  /// How the observations depart from a shape: white noise, and a random walk in the clock
  /// x^(-2 eta) with lambda^2 of its variance per octave; lambda >= 30 = walk only.
  struct Structure {
    double lambda = 0, eta = 0;
    double log_prior = 0;
    bool operator==(const Structure&) const = default;
  };
  /// Annealing gain C: log-loss units per unit of 1 - lr / peak.
  struct Gain {
    double gain = 0, log_prior = 0;
  };

  /// How the numbers depend on what the trace looks like: coefficients of Features, one row for
  /// each structure and each shape family, and for single numbers (of their logarithm where they
  /// are scales). Zero = no dependence.
  using Row = std::array<double, kFeatures>;
  struct Gate {
    std::vector<Row> structure{};
    std::array<Row, 5> family{};
    Row rising{}, temper{}, inflation{}, drop{}, distance{}, width{};
  };
  /// A number that is affine in the features.
  struct Affine {
    double constant = 0;
    Row slope{};
  };
  /// What the nodes get wrong alike, by the features and the distance l = log x: s is multiplied by
  /// exp(widen l), and then m moves by (lean + lean_far l) s.
  struct Ahead {
    Affine lean{}, lean_far{}, widen{};
  };

  /// Log odds that the best is past, affine in five signs (best.cpp), the first of which are the
  /// log odds by the law of the curve: without a line in the table, those.
  static constexpr std::size_t kBestSigns = 5;
  struct Best {
    double constant = 0;
    std::array<double, kBestSigns> slope{1};
  };

  std::vector<Shape> shapes{};
  std::vector<Structure> structures{};
  std::vector<Gain> gains{};
  Gate gate{};
  Ahead ahead{};
  Best best{};

  // Evidence.
  double temper = 0;          ///< exponent of the marginal likelihood
  double rss_floor = 0;       ///< of the variance of z, added to every residual sum of squares
  double rising_penalty = 0;  ///< log prior of a curve that rises or stays
  // Predictive scale.
  double inflation = 0;                     ///< of the kriging variance
  double drop = 0;                          ///< sd per unit of predicted drop
  double distance = 0, distance_power = 0;  ///< sd per unit of late variation, times log^power
  double degrees = 0;                       ///< of freedom of each component
  double width = 0;                         ///< factor of every scale
  double decision_width = 0;                ///< times that, for a decision
  double linear_move = 0;                   ///< share of the move that comes, z no logarithm
  double stretch = 0;        ///< log of the factor of an interval per log of the distance
  double lasting_noise = 0;  ///< share that counts of the noise at longer lags beyond the white one
  double backtest_width = 0;  ///< log of the width per log error of the run's own backtests
  double take_off = 0;        ///< probability that a score near 0 rises at some time
  double epochs = 0;          ///< share of the law that goes on to fall as at the ends of epochs
  // Preparation.
  int bins = 0;
  double count_cap = 0;      ///< a bin's noise falls with at most so many points
  double spike = 0;          ///< pull in isolated points beyond so many neighbour spreads
  double max_log_noise = 0;  ///< of a logarithm that is z
  double max_fall = 0;       ///< of quantiles of a logarithm, below the clip of others
  // Mixture.
  int components = 0;
  double tail_mass = 0;  ///< lightest components with at most this mass together are left out
  // Annealing.
  double lag = 0;       ///< time constant of the loss behind the learning rate, of the whole plan
  double backtest = 0;  ///< log of the width per log of the backtest's error
  double backtest_level = 0;  ///< log error from which on nothing is narrowed
  double clock = 0;           ///< time passes as the learning rate to this power
  double warm_clock = 0;      ///< the same during a warm-up
  double warmup = 0;          ///< share of the steps before a late first point that counts as time
  double gain_range = 0;      ///< range seen in z below which the gains shrink with it
  double gain_fall = 0;       ///< fall in the last octave of the plan above which they grow
  // Past runs.
  double template_odds = 0;         ///< of one past run against all shapes
  double template_discrepancy = 0;  ///< of drop and distance, for past runs
  double template_shift = 0;        ///< shift of a past run, of its range, that is not unlikely
  double template_stretch = 0;      ///< log of its amplitude that is not unlikely
  double analogy = 0;               ///< most mass of what like runs did from here on
  int templates = 0;                ///< most past runs that are shapes
};

namespace detail {

/// Text of the learned table.
[[nodiscard]] std::string_view learned_table();
/// The same, read once.
[[nodiscard]] const ForecastConstants& learned_constants();
[[nodiscard]] inline const ForecastConstants& constants_of(const ForecastOptions& options) {
  return options.constants ? *options.constants : learned_constants();
}

}  // namespace detail
}  // namespace glidepath
