// SPDX-License-Identifier: Apache-2.0
// min over lambda >= 0 of D(lambda) = lambda' C + sum_j max(0, max_o v_o - lambda_t(o) k_o).
//
// D is convex and piecewise linear with subgradient C - usage(lambda). A cutting-plane model inside
// a box around the best point so far (a trust region; Marsten, Hogan, Blankenship 1975) is
// minimised by a small simplex method, D is evaluated at its minimiser, the cut is added. Every
// evaluation is a bound, so stopping early costs tightness and nothing else.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/parallel.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

constexpr std::ptrdiff_t kBlock = 8192;  // jobs per block: sums do not depend on the threads
constexpr double kTolerance = 2e-6;      // relative decrease of D not worth an evaluation
constexpr int kMaxEvaluations = 120;
constexpr std::int32_t kSampleAbove = 3000;  // jobs from which a sample finds the first prices
constexpr std::int32_t kSample = 1000;

using Vector = std::vector<double>;

struct Evaluation {
  double value = 0;
  Vector usage;
};

/// sum_j max(0, ...) and the usage of the maximisers, for every `stride`-th job.
Evaluation evaluate(const Round& round, const Vector& lambda, std::int32_t stride, int threads) {
  const std::size_t T = lambda.size();
  const std::ptrdiff_t jobs = (round.jobs() + stride - 1) / stride;
  const auto blocks = static_cast<std::size_t>((jobs + kBlock - 1) / kBlock);
  std::vector<Evaluation> part(blocks);
  for_each_block(jobs, kBlock, {.threads = threads}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    Evaluation& sum = part[static_cast<std::size_t>(begin / kBlock)];
    sum.usage.assign(T, 0.0);
    const Choice* const option = round.option.data();
    const double* const price = lambda.data();
    for (std::ptrdiff_t j = begin; j < end; ++j) {
      const auto job = static_cast<std::size_t>(j * stride);
      double best = 0;
      std::int32_t arg = kNone;
      for (std::int32_t o = round.first[job]; o < round.first[job + 1]; ++o) {
        const double profit =
            static_cast<double>(option[o].value) - price[option[o].tier] * option[o].gpus;
        arg = profit > best ? o : arg;
        best = profit > best ? profit : best;
      }
      if (arg == kNone) continue;
      sum.value += best;
      sum.usage[static_cast<std::size_t>(option[arg].tier)] += option[arg].gpus;
    }
  });
  Evaluation total{0, Vector(T, 0.0)};
  for (const Evaluation& sum : part) {
    total.value += sum.value;
    for (std::size_t t = 0; t < T; ++t) total.usage[t] += sum.usage[t];
  }
  return total;
}

/// min theta subject to theta >= b_i + g_i' x for every cut and lo <= x <= hi, by the simplex
/// method on its dual: one column for a cut (a convex combination of cuts) and two for the bounds
/// of a coordinate. The multipliers of a basis are (theta, x), so pricing looks for the most
/// violated constraint, and the basis of the call before stays feasible when cuts or bounds change.
class CutModel {
 public:
  explicit CutModel(std::size_t dimensions) : n_(dimensions + 1), T_(dimensions) {}

  void add(double f, const Vector& x, const Vector& g) {
    double b = f;
    for (std::size_t t = 0; t < T_; ++t) b -= g[t] * x[t];
    b_.push_back(b);
    g_.insert(g_.end(), g.begin(), g.end());
  }

  /// Minimiser in `x`; returns theta.
  double minimise(const Vector& lo, const Vector& hi, Vector& x) {
    if (basis_.empty()) first_basis();
    Vector y(n_), column(n_), direction(n_);
    const int limit = 60 * static_cast<int>(n_);
    for (int pivot = 0; pivot < limit; ++pivot) {
      for (std::size_t c = 0; c < n_; ++c) {
        double sum = 0;
        for (std::size_t r = 0; r < n_; ++r) sum += cost(basis_[r], lo, hi) * inverse_[r * n_ + c];
        y[c] = sum;
      }
      const int entering = most_violated(y, lo, hi);
      if (entering < 0) break;
      fill(entering, column);
      std::size_t leave = n_;
      double ratio = std::numeric_limits<double>::infinity();
      for (std::size_t r = 0; r < n_; ++r) {
        double sum = 0;
        for (std::size_t c = 0; c < n_; ++c) sum += inverse_[r * n_ + c] * column[c];
        direction[r] = sum;
        // x_B = inverse (1, 0, ..., 0): its first column.
        const double level = std::max(inverse_[r * n_], 0.0);
        if (sum > 1e-11 && level / sum < ratio) {
          ratio = level / sum;
          leave = r;
        }
      }
      if (leave == n_) break;
      basis_[leave] = entering;
      const double scale = 1.0 / direction[leave];
      for (std::size_t c = 0; c < n_; ++c) inverse_[leave * n_ + c] *= scale;
      for (std::size_t r = 0; r < n_; ++r) {
        if (r == leave || direction[r] == 0) continue;
        for (std::size_t c = 0; c < n_; ++c) {
          inverse_[r * n_ + c] -= direction[r] * inverse_[leave * n_ + c];
        }
      }
    }
    double theta = -std::numeric_limits<double>::infinity();
    for (std::size_t t = 0; t < T_; ++t) x[t] = std::clamp(y[t + 1], lo[t], hi[t]);
    for (std::size_t i = 0; i < b_.size(); ++i) theta = std::max(theta, cut_at(i, x.data()));
    return theta;
  }

 private:
  // Columns: 0 .. 2T-1 are the bounds (2t: x_t >= lo_t, 2t + 1: x_t <= hi_t), 2T + i is cut i.
  [[nodiscard]] double cut_at(std::size_t i, const double* x) const {
    double sum = b_[i];
    for (std::size_t t = 0; t < T_; ++t) sum += g_[i * T_ + t] * x[t];
    return sum;
  }
  [[nodiscard]] double cost(int column, const Vector& lo, const Vector& hi) const {
    const auto c = static_cast<std::size_t>(column);
    if (c >= 2 * T_) return b_[c - 2 * T_];
    return c % 2 == 0 ? lo[c / 2] : -hi[c / 2];
  }
  void fill(int column, Vector& out) const {
    const auto c = static_cast<std::size_t>(column);
    std::fill(out.begin(), out.end(), 0.0);
    if (c < 2 * T_) {
      out[c / 2 + 1] = c % 2 == 0 ? 1.0 : -1.0;
      return;
    }
    out[0] = 1.0;
    for (std::size_t t = 0; t < T_; ++t) out[t + 1] = -g_[(c - 2 * T_) * T_ + t];
  }
  [[nodiscard]] int most_violated(const Vector& y, const Vector& lo, const Vector& hi) const {
    double worst = 1e-12;
    int column = -1;
    for (std::size_t t = 0; t < T_; ++t) {
      const double below = lo[t] - y[t + 1];
      const double above = y[t + 1] - hi[t];
      if (below > worst) worst = below, column = static_cast<int>(2 * t);
      if (above > worst) worst = above, column = static_cast<int>(2 * t + 1);
    }
    for (std::size_t i = 0; i < b_.size(); ++i) {
      const double violation = cut_at(i, y.data() + 1) - y[0];
      if (violation > worst) worst = violation, column = static_cast<int>(2 * T_ + i);
    }
    return column;
  }
  /// Cut 0 and, for each coordinate, the bound that its slope pushes against.
  void first_basis() {
    basis_.assign(n_, static_cast<int>(2 * T_));
    inverse_.assign(n_ * n_, 0.0);
    inverse_[0] = 1.0;
    for (std::size_t t = 0; t < T_; ++t) {
      const double g = g_[t];
      const double sign = g >= 0 ? 1.0 : -1.0;
      basis_[t + 1] = static_cast<int>(2 * t + (g >= 0 ? 0 : 1));
      inverse_[(t + 1) * n_] = sign * g;
      inverse_[(t + 1) * n_ + t + 1] = sign;
    }
  }

  std::size_t n_, T_;
  Vector b_, g_;
  std::vector<int> basis_;
  Vector inverse_;
};

/// Trust-region cutting planes from `lambda` over every `stride`-th job and 1/stride of each tier.
void descend(const Round& round, Vector& lambda, double radius, std::int32_t stride, int threads) {
  const std::size_t T = lambda.size();
  const double share = 1.0 / stride;
  // x_t = lambda_t C_t / D(0): D(0) >= lambda*' C, so the minimiser lies in [0, 1]^T.
  const double scale = evaluate(round, Vector(T, 0.0), stride, threads).value;
  if (scale <= 0) return;
  Vector unit(T);
  for (std::size_t t = 0; t < T; ++t) {
    unit[t] = scale / (share * static_cast<double>(std::max<std::int64_t>(round.capacity[t], 1)));
  }
  Vector price(T), gradient(T);
  const auto at = [&](const Vector& x) {  // D / scale and its subgradient in x
    for (std::size_t t = 0; t < T; ++t) price[t] = x[t] * unit[t];
    const Evaluation inner = evaluate(round, price, stride, threads);
    double value = inner.value;
    for (std::size_t t = 0; t < T; ++t) {
      const double capacity = share * static_cast<double>(round.capacity[t]);
      value += price[t] * capacity;
      gradient[t] = (capacity - inner.usage[t]) * unit[t] / scale;
    }
    return value / scale;
  };

  Vector x(T), lo(T), hi(T), trial(T);
  for (std::size_t t = 0; t < T; ++t) x[t] = std::clamp(lambda[t] / unit[t], 0.0, 1.0);
  CutModel model(T);
  double best = at(x);
  model.add(best, x, gradient);
  for (int evaluation = 1; evaluation < kMaxEvaluations; ++evaluation) {
    bool at_edge = false;
    for (std::size_t t = 0; t < T; ++t) {
      lo[t] = std::max(0.0, x[t] - radius);
      hi[t] = std::min(1.0, x[t] + radius);
    }
    const double predicted = best - model.minimise(lo, hi, trial);
    for (std::size_t t = 0; t < T; ++t) {
      at_edge = at_edge || (trial[t] <= lo[t] && lo[t] > 0) || (trial[t] >= hi[t] && hi[t] < 1);
    }
    if (predicted <= kTolerance * best) {
      if (!at_edge) break;
      radius *= 8;
      continue;
    }
    const double value = at(trial);
    model.add(value, trial, gradient);
    if (value < best) {
      const bool good = best - value > 0.5 * predicted;
      best = value;
      x = trial;
      if (at_edge && good) radius *= 2;
    } else {
      radius *= 0.5;
    }
  }
  for (std::size_t t = 0; t < T; ++t) lambda[t] = x[t] * unit[t];
}

}  // namespace

Prices minimise_dual(const Round& round, std::span<const double> start, int threads) {
  const auto T = static_cast<std::size_t>(round.tiers());
  Vector lambda(T, 0.0);
  if (round.jobs() > 0) {
    double radius = 1.0;
    if (!start.empty()) {
      for (std::size_t t = 0; t < T; ++t) lambda[t] = start[t] / round.quantum;
      radius = 0.01;
    } else if (round.jobs() > kSampleAbove) {
      descend(round, lambda, radius, round.jobs() / kSample, 1);
      radius = 0.02;
    }
    descend(round, lambda, radius, 1, threads);
  }
  Prices price(T);
  for (std::size_t t = 0; t < T; ++t) {
    price[t] = static_cast<std::int64_t>(std::min(lambda[t], 0x1p52));
  }
  return price;
}

}  // namespace glidepath::detail
