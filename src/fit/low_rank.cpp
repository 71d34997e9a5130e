// SPDX-License-Identifier: Apache-2.0
// Why sixteen numbers are enough: the decays exp(-β x), 1/4 <= β <= 24, are so alike on [0, 1] that
// sixteen of them span all others to 1e-12. Which ones, and how, is found once for all grids by
// empirical interpolation (Barrault, Maday, Nguyen and Patera 2004): take the decay that those
// before represent worst, and the place where it is worst; make the rest vanish there. A grid then
// costs sixteen exponentials a point and is worth it from the first curve on.
#include "fit/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "curve/families.hpp"
#include "fit/kernels.hpp"

namespace glidepath::detail {
namespace {

constexpr double kSmallestBeta = 0.25, kLargestBeta = 24.0;
/// Cells reach into their neighbours by this share: the best node need not be the nearest.
constexpr double kCellOverlap = 1.3;
/// Past this x the fastest decay is nearly gone, and a curve that still falls there is no faster
/// one.
constexpr double kTailStart = 0.2;
constexpr int kMinGridPoints = 16;

double spacing() { return std::log(kLargestBeta / kSmallestBeta) / kCells; }
double centre_of(int cell) { return std::log(kSmallestBeta) + (cell + 0.5) * spacing(); }
double half() { return 0.5 * kCellOverlap * spacing(); }

/// (φ - 1) / (1 - exp(-β)): every decay from 0 to -1, the constant left to the floor.
double fall(double beta, double x) { return -std::expm1(-beta * x) / std::expm1(-beta); }

using Rank = std::array<double, kRank>;

/// What does not depend on the grid.
struct Decays {
  Rank beta{}, lift{};               ///< chosen decays: lift (φ - 1) = fall
  std::array<Rank, kRank> factor{};  ///< [k][j > k]: the share of q_k in decay j; [k][k]: 1 / size
  Rank point{};                      ///< where q_k is 1, and all later functions are 0
  std::array<Rank, kRank> q{};       ///< [k][m]: q_k at point m
  /// w of each cell at the Chebyshev points of u, where fall = Σ w_k q_k
  std::array<std::array<Rank, kCoefficients>, kCells> weights{};
  std::array<std::array<double, kCoefficients>, kCells> scale{};  ///< φ - 1 = scale fall

  Decays();
  [[nodiscard]] Rank weights_of(double b) const;
};

double chebyshev_point(int s) { return std::cos((s + 0.5) * std::numbers::pi / kCoefficients); }

Decays::Decays() {
  constexpr int kBetas = 120, kPoints = 240;
  std::vector<double> betas, points, rest;
  for (int i = 0; i < kBetas; ++i) {
    betas.push_back(kSmallestBeta * std::pow(kLargestBeta / kSmallestBeta, i / (kBetas - 1.0)));
    for (int m = 1; m <= kPoints; ++m) {
      const double x = m / double{kPoints};
      if (i == 0) points.push_back(x * x * x);
      rest.push_back(fall(betas[i], x * x * x));
    }
  }
  for (int k = 0; k < kRank; ++k) {
    const auto worst =
        std::ranges::max_element(rest, {}, [](double r) { return std::abs(r); }) - rest.begin();
    const auto i = worst / kPoints, at = worst % kPoints;
    beta[k] = betas[i];
    point[k] = points[at];
    std::vector<double> taken(rest.begin() + i * kPoints, rest.begin() + (i + 1) * kPoints);
    const double pivot = taken[at];
    for (double& value : taken) value /= pivot;
    for (int j = 0; j < kBetas; ++j) {
      const double share = rest[j * kPoints + at];
      for (int m = 0; m < kPoints; ++m) rest[j * kPoints + m] -= share * taken[m];
    }
  }
  // the same elimination at the chosen points, for the chosen decays
  std::array<Rank, kRank> left{};
  for (int j = 0; j < kRank; ++j) {
    lift[j] = -1.0 / std::expm1(-beta[j]);
    for (int m = 0; m < kRank; ++m) left[j][m] = fall(beta[j], point[m]);
  }
  for (int k = 0; k < kRank; ++k) {
    factor[k][k] = 1.0 / left[k][k];
    for (int m = 0; m < kRank; ++m) q[k][m] = left[k][m] * factor[k][k];
    for (int j = k + 1; j < kRank; ++j) {
      factor[k][j] = left[j][k];
      for (int m = 0; m < kRank; ++m) left[j][m] -= factor[k][j] * q[k][m];
    }
  }
  for (int cell = 0; cell < kCells; ++cell) {
    for (int s = 0; s < kCoefficients; ++s) {
      const double b = std::exp(centre_of(cell) + half() * chebyshev_point(s));
      weights[cell][s] = weights_of(b);
      scale[cell][s] = -std::expm1(-b);
    }
  }
}

Rank Decays::weights_of(double b) const {
  Rank rest{}, w{};
  for (int m = 0; m < kRank; ++m) rest[m] = fall(b, point[m]);
  for (int k = 0; k < kRank; ++k) {
    w[k] = rest[k];
    for (int m = k; m < kRank; ++m) rest[m] -= w[k] * q[k][m];
  }
  return w;
}

const Decays& decays() {
  static const Decays once;
  return once;
}

/// From values at the Chebyshev points to coefficients of the powers of u.
struct ToPowers {
  std::array<std::array<double, kCoefficients>, kCoefficients> matrix{};

  ToPowers() {
    std::array<std::array<double, kCoefficients>, kCoefficients> t{};  // T_d in powers
    t[0][0] = t[1][1] = 1;
    for (int d = 2; d < kCoefficients; ++d) {
      for (int p = 0; p < kCoefficients; ++p) {
        t[d][p] = (p > 0 ? 2.0 * t[d - 1][p - 1] : 0.0) - t[d - 2][p];
      }
    }
    for (int s = 0; s < kCoefficients; ++s) {
      for (int d = 0; d < kCoefficients; ++d) {
        const double share = (d == 0 ? 1.0 : 2.0) / kCoefficients *
                             std::cos(d * (s + 0.5) * std::numbers::pi / kCoefficients);
        for (int p = 0; p < kCoefficients; ++p) matrix[p][s] += share * t[d][p];
      }
    }
  }
  void operator()(const double* values, std::ptrdiff_t apart, double* powers) const {
    for (int p = 0; p < kCoefficients; ++p) {
      powers[p] = 0;
      for (int s = 0; s < kCoefficients; ++s) powers[p] += matrix[p][s] * values[s * apart];
    }
  }
};

/// What depends on β in each cell, from the means of q and its sums of products over the points.
/// False where a decay does not vary over them.
bool fill_cells(const std::array<Rank, kRank>& gram, const Rank& mean, LowRankGrid& grid) {
  static const ToPowers to_powers;
  const Decays& all = decays();
  grid.first_centre = centre_of(0);
  grid.spacing = spacing();
  grid.half = half();
  for (int cell = 0; cell < kCells; ++cell) {
    std::array<Rank, kCoefficients> weights = all.weights[cell];
    std::array<double, kCoefficients> inverse{}, means{};
    for (int s = 0; s < kCoefficients; ++s) {
      Rank& w = weights[s];
      double square = 0, of_q = 0;
      for (int k = 0; k < kRank; ++k) {
        double row = 0;
        for (int j = 0; j < kRank; ++j) row += gram[k][j] * w[j];
        square += w[k] * row;
        of_q += w[k] * mean[k];
      }
      const double norm = std::sqrt(square);
      if (!(norm > 0)) return false;
      for (double& each : w) each /= norm;
      inverse[s] = 1.0 / (norm * all.scale[cell][s]);
      means[s] = 1.0 + of_q * all.scale[cell][s];
    }
    to_powers(inverse.data(), 1, &grid.inverse_norm[cell * kCoefficients]);
    to_powers(means.data(), 1, &grid.mean[cell * kCoefficients]);
    for (int k = 0; k < kRank; ++k) {
      double* powers = &grid.weights[(cell * kRank + k) * kCoefficients];
      to_powers(&weights[0][k], kRank, powers);
      grid.nodes[k * kCells + cell] = powers[0];
    }
  }
  return true;
}

std::shared_ptr<const LowRankGrid> make_grid(Family family, std::span<const double> step, Isa isa) {
  const auto n = static_cast<int>(step.size());
  if ((family != Family::pow3 && family != Family::exp3) || n < kMinGridPoints) return {};
  const auto made = std::make_shared<LowRankGrid>();
  LowRankGrid& grid = *made;
  grid.n = n;
  const double first = step.front();
  std::vector<double> x(step.size() + 16);  // the kernels store whole vectors
  if (family == Family::pow3) {
    grid.origin = std::log(first);
    grid.unit = std::log(step.back() / first);
    kernels(isa).logs(step.data(), n, 1.0 / first, 1.0 / grid.unit, x.data());
  } else {
    grid.origin = first;
    grid.unit = step.back() - first;
    kernels(isa).rescale(step.data(), n, first, 1.0 / grid.unit, 0.0, x.data());
  }
  if (!std::isfinite(grid.unit) || !(grid.unit > 0)) return {};
  const auto after =
      std::find_if(x.begin(), x.begin() + n, [](double at) { return at >= kTailStart; });
  grid.tail = static_cast<int>(after - x.begin());
  double sum = 0, squares = 0;
  for (int i = grid.tail; i < n; ++i) {
    const double phi = std::exp(-kLargestBeta * x[i]);
    sum += phi;
    squares += phi * phi;
  }
  grid.leak = std::sqrt(std::max(0.0, squares - sum * sum / std::max(1, n - grid.tail)));

  const Decays& all = decays();
  const LowRankKernels& simd = low_rank_kernels(isa);
  grid.columns.resize(step.size() * kRank);
  Rank mean{};
  simd.columns(x.data(), n, all.beta.data(), all.lift.data(), all.factor[0].data(),
               grid.columns.data(), mean.data());
  for (double& each : mean) each /= n;
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < kRank; ++k)
      grid.columns[static_cast<std::size_t>(i) * kRank + k] -= mean[k];
  }
  std::array<Rank, kRank> gram{};
  simd.gram(grid.columns.data(), n, gram[0].data());
  if (!fill_cells(gram, mean, grid)) return {};
  return made;
}
}  // namespace

std::shared_ptr<const LowRankGrid> low_rank_grid(Family family, std::span<const double> step,
                                                 Isa isa) {
  struct Kept {
    Family family{};
    Isa isa{};
    std::vector<double> step;
    std::shared_ptr<const LowRankGrid> grid;
  };
  static thread_local Kept kept;
  if (kept.grid != nullptr && kept.family == family && kept.isa == isa &&
      std::ranges::equal(kept.step, step)) {
    return kept.grid;
  }
  std::shared_ptr<const LowRankGrid> grid = make_grid(family, step, isa);
  if (grid != nullptr && step.size() <= kMaxKeptGridPoints) {
    kept = {family, isa, {step.begin(), step.end()}, grid};
  }
  return grid;
}

}  // namespace glidepath::detail
