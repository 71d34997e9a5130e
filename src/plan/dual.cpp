// SPDX-License-Identifier: Apache-2.0
// min over lambda >= 0 of D(lambda) = lambda' C + sum_j max(0, max_o v_o - lambda_t(o) k_o).
//
// D is convex and piecewise linear with subgradient C - usage(lambda). A cutting-plane model inside
// a box around the best point so far (a trust region; Marsten, Hogan, Blankenship 1975) is
// minimised by a small simplex method, D is evaluated at its minimiser, the cut is added. Every
// evaluation is a bound, so stopping early costs tightness and nothing else.
#include <algorithm>
#include <limits>
#include <utility>

#include "common/interrupt.hpp"
#include "common/parallel.hpp"
#include "plan/kernels.hpp"
#include "plan/round.hpp"
#include "plan/tiles.hpp"

namespace glidepath::detail {
namespace {

constexpr std::ptrdiff_t kBlock = 8192;  // jobs per block: sums do not depend on the threads
constexpr double kTolerance = 3e-5;      // relative decrease of D not worth an evaluation
constexpr int kMaxEvaluations = 120;
constexpr std::int32_t kMinJobsToSample = 3000;  // jobs from which a sample finds the first prices
constexpr std::int32_t kSampleJobs = 1000;

using Vector = std::vector<double>;

struct Evaluation {
  double value = 0;
  Vector usage;

  void add(const Evaluation& other, double share = 1) {
    value += share * other.value;
    for (std::size_t r = 0; r < usage.size(); ++r) usage[r] += share * other.usage[r];
  }
};

/// v - lambda' a of one option.
template <bool limited>
double profit_of(const Round& round, std::int32_t o, const double* price) {
  const Choice& choice = round.option[o];
  const double gpus = choice.gpus;
  double cost = price[choice.tier] * gpus;
  if constexpr (limited) {
    const Limits& limits = round.limits[o];
    if (limits.power != kNone) cost += price[limits.power] * static_cast<double>(limits.draw);
    if (limits.group != kNone) cost += price[limits.group] * gpus;
    if (limits.user != kNone) cost += price[limits.user] * gpus;
  }
  return static_cast<double>(choice.value) - cost;
}

/// Adds max(0, max_o profit) and the uses of its maximiser.
template <bool limited>
void add_job(const Round& round, std::size_t job, const double* price, Evaluation& sum) {
  double best = 0;
  std::int32_t arg = kNone;
  for (std::int32_t o = round.first[job]; o < round.first[job + 1]; ++o) {
    const double profit = profit_of<limited>(round, o, price);
    arg = profit > best ? o : arg;
    best = profit > best ? profit : best;
  }
  if (arg == kNone) return;
  sum.value += best;
  if constexpr (limited) {
    for_each_use(round, arg,
                 [&](std::size_t r, std::int64_t a) { sum.usage[r] += static_cast<double>(a); });
  } else {
    sum.usage[round.at(arg).tier] += round.at(arg).gpus;
  }
}

/// What is as long as the jobs or their options.
struct DualMemory {
  std::vector<std::int32_t> free_jobs;
  Tiled tiled;
  AlikeTiles alike;

  [[nodiscard]] std::size_t bytes() const {
    return bytes_of(free_jobs) + tiled.bytes() + alike.bytes();
  }
};

/// The part of D that is a sum over jobs, at some prices. Quotas of users couple only the jobs of
/// one user, so their prices are minimised inside (by bisection) and the cutting planes see the
/// other rows alone.
class DualFunction {
 public:
  DualFunction(const Round& round, std::int32_t stride, Execution execution)
      : round_(round), rows_(round.first_user), execution_(execution) {
    const std::size_t users = round.capacity.size() - rows_;
    quota_price_.assign(users, 0.0);
    user_jobs_.resize(users);
    free_jobs_.clear();
    for (std::int32_t j = 0; j < round.jobs(); j += stride) {
      const std::size_t o = round.first[j];
      const std::int32_t user = round.limits.empty() ? kNone : round.limits[o].user;
      (user == kNone ? free_jobs_ : user_jobs_[user - rows_]).push_back(j);
    }
    share_ = 1.0 / stride;
    are_alike_ = round.limits.empty() && memory_->alike.fill(round, free_jobs_);
    if (!are_alike_) tile();
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] double capacity(std::size_t r) const {
    return share_ * static_cast<double>(round_.capacity[r]);
  }
  [[nodiscard]] const Vector& quota_price() const { return quota_price_; }

  Evaluation operator()(const Vector& lambda) {
    Evaluation total{0, Vector(rows_, 0.0)};
    add_free_jobs(lambda, total);
    for (std::size_t u = 0; u < user_jobs_.size(); ++u) {
      check_interrupt();
      add_user(u, lambda, total);
    }
    return total;
  }

 private:
  void tile() {
    looked_at_tiles_ = true;
    is_tiled_ = round_.limits.empty() && memory_->tiled.fill(round_, free_jobs_);
  }

  void add_free_jobs(const Vector& lambda, Evaluation& total) {
    const std::ptrdiff_t n = free_jobs_.size();
    std::vector<Evaluation> part((n + kBlock - 1) / kBlock);
    std::vector<char> done(part.size(), 0);  // blocks that could be added by what is alike
    if (are_alike_ && memory_->alike.set_prices(lambda.data())) {
      for_each_block(n, kBlock, execution_, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        Evaluation sum{0, Vector(rows_, 0.0)};
        done[begin / kBlock] = memory_->alike.add(begin, end, sum.value, sum.usage.data());
        part[begin / kBlock] = std::move(sum);
      });
    }
    if (std::ranges::find(done, 0) != done.end()) {
      if (!looked_at_tiles_) tile();
      for_each_block(n, kBlock, execution_, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        if (done[begin / kBlock] != 0) return;
        Evaluation sum{0, Vector(rows_, 0.0)};
        add_block(begin, end, lambda, sum);
        part[begin / kBlock] = std::move(sum);
      });
    }
    for (const Evaluation& sum : part) total.add(sum);
  }

  void add_block(std::ptrdiff_t begin, std::ptrdiff_t end, const Vector& lambda,
                 Evaluation& sum) const {
    static_assert(kBlock % kTileJobs == 0);
    if (is_tiled_) {
      sum.value = memory_->tiled.add(begin, end, lambda.data(), sum.value, sum.usage);
      return;
    }
    for (std::ptrdiff_t j = begin; j < end; ++j) {
      const std::size_t job = free_jobs_[j];
      if (round_.limits.empty()) {
        add_job<false>(round_, job, lambda.data(), sum);
      } else {
        add_job<true>(round_, job, lambda.data(), sum);
      }
    }
  }

  /// min over the user's price mu of mu Q + sum over the user's jobs. Between the two sides of the
  /// kink at mu the uses are mixed so that the quota holds exactly: the subgradient in mu is 0
  /// there.
  void add_user(std::size_t u, const Vector& lambda, Evaluation& total) {
    const std::size_t row = rows_ + u;
    const double quota = capacity(row);
    Vector price = lambda;
    price.resize(round_.capacity.size(), 0.0);
    const auto at = [&](double mu) {
      price[row] = mu;
      Evaluation sum{0, Vector(round_.capacity.size(), 0.0)};
      for (const std::int32_t j : user_jobs_[u]) {
        add_job<true>(round_, static_cast<std::size_t>(j), price.data(), sum);
      }
      return sum;
    };
    const auto take = [&](const Evaluation& sum, double share, double mu) {
      total.value += share * (sum.value + mu * quota);
      for (std::size_t r = 0; r < rows_; ++r) total.usage[r] += share * sum.usage[r];
    };
    Evaluation low = at(0.0);
    quota_price_[u] = 0;
    if (low.usage[row] <= quota) return take(low, 1, 0);
    double mu_low = 0, mu_high = low.value / std::max(quota, 1.0);
    Evaluation high = at(mu_high);
    while (high.usage[row] > quota) high = at(mu_high *= 2);
    for (int halving = 0; halving < 45; ++halving) {
      const double mu = 0.5 * (mu_low + mu_high);
      Evaluation middle = at(mu);
      if (middle.usage[row] > quota) {
        low = std::move(middle), mu_low = mu;
      } else {
        high = std::move(middle), mu_high = mu;
      }
    }
    quota_price_[u] = mu_high;
    const double share = (quota - high.usage[row]) / (low.usage[row] - high.usage[row]);
    take(low, share, mu_low);
    take(high, 1 - share, mu_high);
  }

  const Round& round_;
  std::size_t rows_;
  Execution execution_;
  double share_ = 1;
  Vector quota_price_;
  Kept<DualMemory> memory_;
  std::vector<std::int32_t>& free_jobs_ = memory_->free_jobs;
  bool are_alike_ = false;  // options of these jobs, on tiers enough
  bool looked_at_tiles_ = false, is_tiled_ = false;
  std::vector<std::vector<std::int32_t>> user_jobs_;
};

/// min theta subject to theta >= b_i + g_i' x for every cut and lo <= x <= hi, by the simplex
/// method on its dual: one column for a cut (a convex combination of cuts) and two for the bounds
/// of a coordinate. The multipliers of a basis are (theta, x), so pricing looks for the most
/// violated constraint, and the basis of the call before stays feasible when cuts or bounds change.
class CutModel {
 public:
  explicit CutModel(std::size_t dimensions)
      : n_(dimensions + 1), T_(dimensions), g_(dimensions * kMaxEvaluations) {}

  void add(double f, const Vector& x, const Vector& g) {
    double b = f;
    for (std::size_t t = 0; t < T_; ++t) b -= g[t] * x[t];
    for (std::size_t t = 0; t < T_; ++t) slope(b_.size(), t) = g[t];
    b_.push_back(b);
    at_.push_back(0);
  }

  /// Minimiser in `x`; returns theta.
  double minimise(const Vector& lo, const Vector& hi, Vector& x) {
    if (basis_.empty()) first_basis();
    Vector y(n_), column(n_), direction(n_), costs(n_);
    const PlanKernels& kernels = plan_kernels();
    const int limit = 60 * static_cast<int>(n_);
    for (int pivot = 0; pivot < limit; ++pivot) {
      for (std::size_t r = 0; r < n_; ++r) costs[r] = cost(basis_[r], lo, hi);
      kernels.combine_rows(n_, costs.data(), inverse_.data(), y.data());
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
      direction[leave] = 0;
      kernels.eliminate(n_, direction.data(), &inverse_[leave * n_], inverse_.data());
    }
    double theta = -std::numeric_limits<double>::infinity();
    for (std::size_t t = 0; t < T_; ++t) x[t] = std::clamp(y[t + 1], lo[t], hi[t]);
    plan_kernels().cuts_at(b_.size(), T_, kMaxEvaluations, b_.data(), g_.data(), x.data(),
                           at_.data());
    for (const double cut : at_) theta = std::max(theta, cut);
    return theta;
  }

 private:
  // Columns: 0 .. 2T-1 are the bounds (2t: x_t >= lo_t, 2t + 1: x_t <= hi_t), 2T + i is cut i.
  [[nodiscard]] double& slope(std::size_t i, std::size_t t) { return g_[t * kMaxEvaluations + i]; }
  [[nodiscard]] double slope(std::size_t i, std::size_t t) const {
    return g_[t * kMaxEvaluations + i];
  }
  [[nodiscard]] double cost(int column, const Vector& lo, const Vector& hi) const {
    const std::size_t c = column;
    if (c >= 2 * T_) return b_[c - 2 * T_];
    return c % 2 == 0 ? lo[c / 2] : -hi[c / 2];
  }
  void fill(int column, Vector& out) const {
    const std::size_t c = column;
    std::fill(out.begin(), out.end(), 0.0);
    if (c < 2 * T_) {
      out[c / 2 + 1] = c % 2 == 0 ? 1.0 : -1.0;
      return;
    }
    out[0] = 1.0;
    for (std::size_t t = 0; t < T_; ++t) out[t + 1] = -slope(c - 2 * T_, t);
  }
  [[nodiscard]] int most_violated(const Vector& y, const Vector& lo, const Vector& hi) {
    double worst = 1e-12;
    int column = -1;
    for (std::size_t t = 0; t < T_; ++t) {
      const double below = lo[t] - y[t + 1];
      const double above = y[t + 1] - hi[t];
      if (below > worst) worst = below, column = static_cast<int>(2 * t);
      if (above > worst) worst = above, column = static_cast<int>(2 * t + 1);
    }
    const std::size_t cut = plan_kernels().highest_cut(b_.size(), T_, kMaxEvaluations, b_.data(),
                                                       g_.data(), y.data() + 1, y[0], &worst);
    return cut < b_.size() ? static_cast<int>(2 * T_ + cut) : column;
  }
  /// Cut 0 and, for each coordinate, the bound that its slope pushes against.
  void first_basis() {
    basis_.assign(n_, static_cast<int>(2 * T_));
    inverse_.assign(n_ * n_, 0.0);
    inverse_[0] = 1.0;
    for (std::size_t t = 0; t < T_; ++t) {
      const double g = slope(0, t);
      const double sign = g >= 0 ? 1.0 : -1.0;
      basis_[t + 1] = static_cast<int>(2 * t + (g >= 0 ? 0 : 1));
      inverse_[(t + 1) * n_] = sign * g;
      inverse_[(t + 1) * n_ + t + 1] = sign;
    }
  }

  std::size_t n_, T_;
  Vector b_, g_;  // of each cut; slopes by coordinate, so that cuts stand side by side
  Vector at_;     // the cuts at the minimiser
  std::vector<int> basis_;
  Vector inverse_;
};

/// Trust-region cutting planes from `lambda`; `radius` is relative to the largest useful price.
void descend(DualFunction& function, Vector& lambda, double radius) {
  const std::size_t T = lambda.size();
  // x_r = lambda_r C_r / D(0): D(0) >= lambda*' C, so the minimiser lies in [0, 1]^T.
  const double scale = function(Vector(T, 0.0)).value;
  if (scale <= 0) {
    std::fill(lambda.begin(), lambda.end(), 0.0);
    return;
  }
  Vector unit(T), price(T), gradient(T);
  for (std::size_t t = 0; t < T; ++t) unit[t] = scale / std::max(function.capacity(t), 1e-3);
  const auto at = [&](const Vector& x) {  // D / scale and its subgradient in x
    for (std::size_t t = 0; t < T; ++t) price[t] = x[t] * unit[t];
    const Evaluation inner = function(price);
    double value = inner.value;
    for (std::size_t t = 0; t < T; ++t) {
      value += price[t] * function.capacity(t);
      gradient[t] = (function.capacity(t) - inner.usage[t]) * unit[t] / scale;
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
  (void)function(lambda);  // leaves the users' prices that belong to it
}

}  // namespace

Prices minimise_dual(const Round& round, std::span<const double> start, Execution execution) {
  DualFunction function(round, 1, execution);
  Vector lambda(function.rows(), 0.0);
  if (round.jobs() > 0) {
    double radius = 1.0;
    if (!start.empty()) {
      for (std::size_t t = 0; t < start.size(); ++t) lambda[t] = start[t] / round.quantum;
      radius = 0.01;
    } else if (round.jobs() > kMinJobsToSample) {
      DualFunction sample(round, round.jobs() / kSampleJobs, {.threads = 1});
      descend(sample, lambda, radius);
      radius = 0.02;
    }
    descend(function, lambda, radius);
  }
  lambda.insert(lambda.end(), function.quota_price().begin(), function.quota_price().end());
  Prices price(lambda.size());
  for (std::size_t r = 0; r < price.size(); ++r) {
    price[r] = static_cast<std::int64_t>(std::min(lambda[r], 0x1p52));
  }
  return price;
}

}  // namespace glidepath::detail
