// SPDX-License-Identifier: Apache-2.0
// The predictive law of a run: what it holds, and how it comes about from a trace.
#pragma once

#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forecast/prepare.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {

/// Quantile levels with what the quantile search needs of them.
struct Levels {
  std::vector<double> level;        ///< of z, increasing, with the median inserted
  std::vector<double> unit, noise;  ///< standard quantiles of a component and of the noise
  std::size_t median = 0;           ///< index of 0.5
  std::vector<std::size_t> row;     ///< of each level that was given
};
/// Throws InputError on a level out of order or out of (0, 1). Where the metric rises as
/// z falls (`best` is max), its level p is the level 1 - p of z.
[[nodiscard]] Levels prepare_levels(std::span<const double> levels, double degrees, Direction best);

constexpr double kValueRounding = 1e-14;  ///< of a value, relative: as of its z and back

/// Whether a probability counts the value itself.
enum class Bound : std::uint8_t { at_most, below };

/// The predictive law of a run. The curve is a mixture of Student-t in z at each knot; an
/// observation lies around it with Student-t noise; stretch widens both about the median of the
/// curve. Between knots quantiles are linear in log step, of a log that begins late by its own
/// clock.
struct Law {
  Coordinate coordinate{};
  double step_shift = 0;           ///< added to every step, see step_shift()
  double before = 0;               ///< shifted steps before a log that begins late
  std::vector<double> knots{};     ///< shifted steps, increasing
  Mixture mixture{};               ///< of the curve, one query per knot
  double noise = 0;                ///< scale of the t with kNoiseDegrees
  std::vector<double> stretch{};   ///< factor of the half-widths, per knot
  double lowest = 0, highest = 0;  ///< clip of z; a target may lie below it

  [[nodiscard]] Direction direction() const {
    return coordinate.sign < 0 ? Direction::max : Direction::min;
  }
  [[nodiscard]] double clip(double z) const { return std::clamp(z, lowest, highest); }
  /// Median of the curve at a knot, in z.
  [[nodiscard]] double median(std::size_t knot) const {
    return clip(mixture_median(mixture.at(knot)));
  }
  /// How far from the median a quantile x of the curve at a knot lies, stretched.
  [[nodiscard]] double half_width(std::size_t knot, double middle, double x) const {
    const double half = clip(x) - middle;
    return stretch[knot] == 1 ? half : clip(middle + stretch[knot] * half) - middle;
  }
  /// P(z of a raw observation at a knot <= z), or < z: these differ at the ends of the clip.
  [[nodiscard]] double cdf(std::size_t knot, double z, Bound bound = Bound::at_most) const;
  /// z quantiles at all knots, (level, knot) row-major: of the curve, and of a raw observation.
  void quantiles(const Levels& levels, std::vector<double>& curve, std::vector<double>& raw) const;
  /// Whether the knots are these steps, so that nothing lies between.
  [[nodiscard]] bool has_knots_at(std::span<const double> steps) const;
  /// Metric at `steps` from z at the knots. Throws InputError on a single knot that is none of
  /// them.
  void spread(std::span<const double> z, std::span<const double> steps,
              std::span<double> metric) const;
  /// P(raw observation <= value) at `steps`, between knots the level whose quantile is there.
  void prob_below(double value, std::span<const double> steps, std::span<double> probability) const;

 private:
  /// The lowest and the highest quantile where many levels have it, infinite where one has none.
  struct Ends {
    double low = 0, high = 0;
    double at_low = 0, below_high = 1;  ///< probability of the low end, and of all below the high

    /// Whether a quantile is one of them.
    [[nodiscard]] bool has(double z) const {
      const double rounding = kValueRounding * std::max(1.0, std::abs(z));
      return z <= low + rounding || z >= high - rounding;
    }
  };
  [[nodiscard]] Ends ends(std::size_t knot) const;
  /// Where steps lie between the knots.
  struct Place {
    std::size_t knot = 0;  ///< the one before
    double part = 0;       ///< of the way to the next
  };
  [[nodiscard]] std::vector<Place> places_of(std::span<const double> steps) const;
  void spread_cdf(double value, Bound bound, std::span<const double> steps,
                  std::span<const Ends> end, std::span<const double> at_knots,
                  std::span<double> probability) const;
  [[nodiscard]] static Ends between(const Ends& a, const Ends& b, double part);
  /// Where `value` lies: its z, or the end that has it.
  [[nodiscard]] double z_of(double value, const Ends& ends) const;
};

/// z quantile of a raw observation, from how far that of the curve lies from the median and that of
/// the noise.
[[nodiscard]] inline double raw_quantile(double middle, double half, double noise) {
  return half == 0 ? middle : middle + std::copysign(std::sqrt(half * half + noise * noise), half);
}

/// Scale of z so far ahead, as a ratio of steps, of a curve of which nothing is known but where it
/// stands.
[[nodiscard]] double scale_of_unknown(double ahead);

/// The law of a trace, with how it came about.
struct Predicted {
  Prepared prepared;
  Law law;
  bool scheduled = false;  ///< a learning rate ahead was known, and moves
};

/// What the law is for: intervals, which the backtest may narrow and past runs stretch, or a
/// decision, which depends on the tails, and those neither can check. So a decision has scales that
/// are `decision_width` times as wide, and takes the whole move of a signed metric, not
/// `linear_move` of it: returns rest and rise again.
enum class Use : std::uint8_t { intervals, decision };

/// `steps` are in the trace's own unit, increasing, past the last observed one; the law has a knot
/// at each, or `max_knots` where they are more (twice as many under a schedule). A target is a
/// value that the metric can have.
[[nodiscard]] Predicted predict_law(TraceView trace, std::span<const double> steps,
                                    std::size_t max_knots, const ForecastOptions& options, Use use,
                                    std::optional<double> target = {});

}  // namespace glidepath::detail
