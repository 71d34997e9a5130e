// SPDX-License-Identifier: Apache-2.0
// Laws that know the learning rate. Inside, η is in units of the largest one and S in units of the
// largest sum, so that every parameter is of order one.
#include "glidepath/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/least_squares.hpp"
#include "common/names.hpp"
#include "common/numbers.hpp"

namespace glidepath {
namespace {

using detail::kInfinity;
using detail::refuse;

constexpr detail::Names<2> kKindNames{"annealing", "multi_power"};
constexpr double kSmallestRate = 1e-6;  ///< of the largest η: a schedule may end at 0

/// One run: S since its first step, by the trapezoid rule, and where η changed. A change lies in
/// the middle of its interval.
struct ScheduledRun {
  std::vector<double> t, eta, sum;
  struct Change {
    std::size_t before;       ///< it is seen from this point on
    double at, sum, by, eta;  ///< step, S there, η before - η after, log η after
  };
  std::vector<Change> changes;
};

ScheduledRun scheduled_run(std::span<const double> step, std::span<const double> lr,
                           double largest_eta) {
  ScheduledRun run;
  // Unrecorded: as it was, at first as it will be.
  double last = *std::ranges::find_if(lr, [](double rate) { return std::isfinite(rate); });
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (std::isfinite(lr[i])) last = lr[i];
    run.t.push_back(step[i]);
    run.eta.push_back(last / largest_eta);
    const double gap = i > 0 ? step[i] - step[i - 1] : 0.0;
    const double before = i > 0 ? run.eta[i - 1] : run.eta[0];
    run.sum.push_back((i > 0 ? run.sum.back() : 0.0) + 0.5 * gap * (before + run.eta[i]));
    if (run.eta[i] != before) {
      run.changes.push_back({i, step[i] - 0.5 * gap, run.sum[i - 1] + 0.5 * gap * before,
                             before - run.eta[i], std::log(std::max(run.eta[i], kSmallestRate))});
    }
  }
  return run;
}

/// The parameters in order: floor, log scale, rate, drop, warm-up as a share of the first step,
/// then log memory, or log speed, log shape and power.
constexpr int kMaxLawParameters = 8;
int count_of(ScheduleLawKind kind) { return kind == ScheduleLawKind::annealing ? 6 : 8; }

/// What the law is made of at one point, and the derivatives of the drop in the last three
/// parameters and in the share of the warm-up.
struct Terms {
  double sum = 0, drop = 0;
  std::array<double, 3> slope{};
  double warmup_slope = 0;
};

class Response {
 public:
  Response(ScheduleLawKind kind, const double* p, double sum_unit)
      : kind_(kind), p_(p), sum_unit_(sum_unit) {}

  /// Terms at every point of a run. A rise of the learning rate counts as a fall does, and so does
  /// that from 0, in a straight line, which a trace without its warm-up began with.
  std::vector<Terms> terms(const ScheduledRun& run) const {
    std::vector<Terms> all(run.t.size());
    const double before = run.eta[0] * run.t[0], share = p_[4];
    for (std::size_t i = 0; i < run.t.size(); ++i) {
      all[i].sum = (before * (1.0 - 0.5 * share) + run.sum[i]) / sum_unit_;
    }
    for (const ScheduledRun::Change& change : run.changes) add(run, change, 0.0, 0.0, all);
    for (int k = 0; k < kWarmupPieces && before > 0 && share > 0; ++k) {
      const double u = (k + 0.5) / kWarmupPieces, eta = run.eta[0] * u;
      const double sum = before * (0.5 * share * (1.0 + u * u) - 1.0);  // from the first point
      add(run,
          {0, share * run.t[0] * u, sum, -run.eta[0] / kWarmupPieces,
           std::log(std::max(eta, kSmallestRate))},
          run.t[0] * u, 0.5 * before * (1.0 + u * u), all);
    }
    return all;
  }

 private:
  static constexpr int kWarmupPieces = 8;  ///< of a warm-up

  /// The last two are the derivatives of the change's place and sum in the share of the warm-up.
  void add(const ScheduledRun& run, const ScheduledRun::Change& change, double at_slope,
           double sum_slope, std::vector<Terms>& all) const {
    if (kind_ == ScheduleLawKind::annealing) {
      // memory in units of the run, so that the drop is of order one: τ / T (1 - e^(-age / τ))
      const double span = sum_unit_, tau = std::exp(p_[5]) * span, size = change.by * tau / span;
      for (std::size_t i = change.before; i < all.size(); ++i) {
        const double age = (run.t[i] - change.at) / tau, fading = std::exp(-age);
        all[i].drop += size * (1.0 - fading);
        all[i].slope[0] += size * (1.0 - fading - age * fading);
        all[i].warmup_slope -= size * fading * at_slope / tau;
      }
      return;
    }
    const double speed = std::exp(p_[5]), shape = std::exp(p_[6]), power = p_[7];
    const double by_eta = speed * std::exp(-power * change.eta) / sum_unit_;
    for (std::size_t i = change.before; i < all.size(); ++i) {
      const double x = by_eta * std::max(0.0, run.sum[i] - change.sum);
      const double log_base = std::log1p(x), left = std::exp(-shape * log_base);
      const double by_base = change.by * shape * left / (1.0 + x), by_x = by_base * x;
      all[i].drop += change.by * (1.0 - left);
      all[i].slope[0] += by_x;  // d / d log x
      all[i].slope[1] += change.by * left * shape * log_base;
      all[i].slope[2] -= by_x * change.eta;
      all[i].warmup_slope -= by_base * by_eta * sum_slope;
    }
  }

  ScheduleLawKind kind_;
  const double* p_;
  double sum_unit_;
};

double value(const double* p, const Terms& terms) {
  return p[0] + std::exp(p[1] - p[2] * std::log(terms.sum)) - p[3] * terms.drop;
}

/// The largest learning rate. Throws InputError on one that cannot be.
double largest_of(const char* function, std::span<const double> lr) {
  double largest = 0;
  for (const double rate : lr) {
    if (rate < 0 || std::isinf(rate)) {
      refuse(function, ": a learning rate is ", rate, ", expected 0 or more and finite");
    }
    if (std::isfinite(rate)) largest = std::max(largest, rate);
  }
  return largest;
}

/// The runs that a law is fitted to, in units of the largest η, the largest sum and the spread of
/// their losses.
struct Runs {
  double largest_eta = 0, sum_unit = 0, lowest = kInfinity, highest = -kInfinity;
  bool finite = true;
  int points = 0;
  std::vector<ScheduledRun> all;
  std::vector<double> losses;

  explicit Runs(std::span<const Trace> traces) {
    for (const Trace& trace : traces) {
      validate(trace.view());
      if (!trace.step.empty()) measure(trace);
    }
  }
  void fill(std::span<const Trace> traces) {
    for (const Trace& trace : traces) {
      if (trace.step.empty()) continue;
      all.push_back(scheduled_run(trace.step, trace.lr, largest_eta));
      for (const double y : trace.loss) losses.push_back((y - lowest) / (highest - lowest));
      sum_unit = std::max(sum_unit, all.back().eta[0] * all.back().t[0] + all.back().sum.back());
    }
  }

 private:
  void measure(const Trace& trace) {
    if (trace.lr.size() != trace.step.size()) {
      refuse("fit_schedule_law: trace '", trace.name, "' has ", trace.step.size(), " steps but ",
             trace.lr.size(), " learning rates");
    }
    if (!(trace.step[0] >= 0)) {
      refuse("fit_schedule_law: trace '", trace.name, "' begins at step ", trace.step[0],
             ", expected 0 or more");
    }
    const double largest = largest_of("fit_schedule_law", trace.lr);
    if (!(largest > 0)) {
      refuse("fit_schedule_law: trace '", trace.name, "' has no learning rate above 0");
    }
    largest_eta = std::max(largest_eta, largest);
    for (const double y : trace.loss) {
      finite = finite && std::isfinite(y);
      lowest = std::min(lowest, y);
      highest = std::max(highest, y);
      ++points;
    }
  }
};

/// A law without a fit, and the reason; `converged` where there is one to make.
ScheduleLaw unfitted_law(ScheduleLawKind kind, const Runs& runs) {
  ScheduleLaw law{.kind = kind, .points = runs.points};
  if (!runs.finite) {
    law.status = FitStatus::not_finite;
  } else if (law.points < count_of(kind)) {
    law.status = FitStatus::too_few_points;
  } else if (!(runs.highest > runs.lowest)) {
    law.status = FitStatus::flat;
    law.floor = runs.lowest;
  } else {
    law.status = FitStatus::converged;
  }
  if (!usable(law.status)) {
    law.floor = law.sigma = law.rss = std::numeric_limits<double>::quiet_NaN();
  }
  return law;
}

detail::LeastSquares squares_of(ScheduleLawKind kind, const Runs& runs) {
  const int count = count_of(kind);
  detail::LeastSquares problem{.residuals = runs.points};
  problem.lower = {-kInfinity, -20, 1e-3, -kInfinity, 0.0, std::log(1e-5), std::log(1e-3), -2.0};
  problem.upper = {kInfinity, 20, 5.0, kInfinity, 1.0, std::log(1e2), std::log(20.0), 3.0};
  if (kind == ScheduleLawKind::multi_power) {
    problem.lower[5] = std::log(1e-3);
    problem.upper[5] = std::log(1e6);
  }
  problem.lower.resize(count);
  problem.upper.resize(count);
  problem.evaluate = [&runs, kind, count](const double* p, int, int, double* r, double* jacobian) {
    const Response at(kind, p, runs.sum_unit);
    std::size_t row = 0;
    for (const ScheduledRun& run : runs.all) {
      const std::vector<Terms> all = at.terms(run);
      for (const Terms& terms : all) {
        if (!(terms.sum > 0)) return false;
        r[row] = value(p, terms) - runs.losses[row];
        if (jacobian != nullptr) {
          double* j = jacobian + row * count;
          const double log_sum = std::log(terms.sum), decay = std::exp(p[1] - p[2] * log_sum);
          j[0] = 1.0;
          j[1] = decay;
          j[2] = -decay * log_sum;
          j[3] = -terms.drop;
          j[4] = 0.5 * p[2] * decay * run.eta[0] * run.t[0] / (runs.sum_unit * terms.sum) -
                 p[3] * terms.warmup_slope;
          for (int k = 5; k < count; ++k) j[k] = -p[3] * terms.slope[k - 5];
        }
        ++row;
      }
    }
    return true;
  };
  return problem;
}

using LawStart = std::array<double, kMaxLawParameters>;
/// A few memories or speeds; the rest follows from there.
std::vector<LawStart> starts_of(ScheduleLawKind kind) {
  std::vector<LawStart> starts;
  const auto start = [&](double p5, double p6, double p7) {
    starts.push_back({-0.2, std::log(0.3), 0.5, 0.3, 0.9, p5, p6, p7});
  };
  if (kind == ScheduleLawKind::annealing) {
    for (const double memory : {0.01, 0.05, 0.3}) start(std::log(memory), 0, 0);
  } else {
    for (const double speed : {10.0, 300.0}) start(std::log(speed), std::log(0.5), 0.5);
  }
  return starts;
}

/// The parameters in the user's units.
void fill_parameters(const std::vector<double>& p, const Runs& runs, ScheduleLaw& law) {
  const double spread = runs.highest - runs.lowest, sum_scale = runs.sum_unit * runs.largest_eta;
  law.floor = runs.lowest + spread * p[0];
  law.rate = p[2];
  law.scale = spread * std::exp(p[1] + p[2] * std::log(sum_scale));
  law.warmup = p[4] * runs.all[0].t[0];
  if (law.kind == ScheduleLawKind::annealing) {
    law.memory = std::exp(p[5]) * runs.sum_unit;
    law.drop = spread * p[3] / (runs.largest_eta * runs.sum_unit);
  } else {
    law.drop = spread * p[3] / runs.largest_eta;
    law.speed = std::exp(p[5] + p[7] * std::log(runs.largest_eta)) / sum_scale;
    law.shape = std::exp(p[6]);
    law.power = p[7];
  }
}

}  // namespace

std::string_view name(ScheduleLawKind kind) noexcept { return detail::name_in(kKindNames, kind); }

ScheduleLawKind schedule_law_named(std::string_view text) {
  return detail::value_named<ScheduleLawKind>(kKindNames, text, "schedule law: kind is '",
                                              "', expected annealing or multi_power");
}

ScheduleLaw fit_schedule_law(std::span<const Trace> traces, ScheduleLawKind kind) {
  detail::refuse_unnamed(kKindNames, kind, "schedule law: kind");
  Runs runs(traces);
  detail::require_ceres("schedule law: a fit");
  ScheduleLaw law = unfitted_law(kind, runs);
  if (law.status != FitStatus::converged) return law;
  runs.fill(traces);
  const detail::LeastSquares problem = squares_of(kind, runs);
  const std::size_t count = count_of(kind);
  detail::LeastSquaresSolution best;
  for (const LawStart& from : starts_of(kind)) {
    detail::LeastSquaresSolution found = detail::minimise(problem, std::span(from.data(), count));
    if (best.parameters.empty() || found.cost < best.cost) best = std::move(found);
  }
  if (best.status != detail::LeastSquaresStatus::converged) {
    law.status = FitStatus::iteration_limit;
  }
  fill_parameters(best.parameters, runs, law);
  const double spread = runs.highest - runs.lowest;
  law.rss = 2.0 * best.cost * spread * spread;
  law.sigma =
      law.points > count_of(kind) ? std::sqrt(law.rss / (law.points - count_of(kind))) : 0.0;
  return law;
}

std::vector<double> predict(const ScheduleLaw& law, std::span<const double> step,
                            std::span<const double> lr) {
  detail::refuse_unnamed(kKindNames, law.kind, "schedule law: kind");
  if (step.size() != lr.size()) {
    refuse("ScheduleLaw.predict: ", step.size(), " steps but ", lr.size(), " learning rates");
  }
  if (step.empty()) return {};
  validate(TraceView{step, step, {}});
  if (!(largest_of("ScheduleLaw.predict", lr) > 0)) {
    refuse("ScheduleLaw.predict: no learning rate is above 0");
  }
  const ScheduledRun run = scheduled_run(step, lr, 1.0);
  // the same law with η and S in their own units
  const bool annealing = law.kind == ScheduleLawKind::annealing;
  const std::array<double, kMaxLawParameters> p{
      law.floor,
      std::log(law.scale),
      law.rate,
      law.drop,
      std::min(law.warmup / std::max(step[0], 1e-300), 1.0),
      std::log(annealing ? law.memory : law.speed),
      annealing ? 0.0 : std::log(law.shape),
      law.power};
  std::vector<double> losses;
  for (const Terms& terms : Response(law.kind, p.data(), 1.0).terms(run)) {
    losses.push_back(law.scale > 0 ? value(p.data(), terms) : law.floor);
  }
  return losses;
}

}  // namespace glidepath
