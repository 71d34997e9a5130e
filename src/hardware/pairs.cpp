// SPDX-License-Identifier: Apache-2.0
// Pairs of jobs on one GPU: what was measured, and from it the speed s(a|b) of a kind a beside a
// kind b that were never together. A Gaussian process, apart for each GPU and way of sharing:
//
//   cov(s(a|b), s(c|d)) = alpha K(a, c) + beta K(b, d) + gamma K(a, c) K(b, d)
//
// in words: how much a suffers from anybody, how much b makes anybody suffer, and what is of the
// two together. K falls with the distance of the features, and by a factor from model to model.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <Eigen/Cholesky>

#include "common/csv.hpp"
#include "common/require.hpp"
#include "hardware/sharing.hpp"

namespace glidepath {
namespace {

// Printed by bench/accuracy/learn_pairs.py from Gavel's table (Narayanan et al., OSDI 2020).
constexpr double kAlpha = 0.0096;
constexpr double kBeta = 0.0072;
constexpr double kGamma = 0.011;
constexpr double kPairNoise = 0.00052;     // variance of one measurement
constexpr double kOtherModelShare = 0.28;  // of K between kinds of different models
constexpr double kFeatureLength = 2.5;     // of the features, in their spread
constexpr double kMinSpeed = 0.05;         // of a prediction

auto key(const KindPair& pair) { return std::tie(pair.gpu, pair.sharing, pair.first, pair.second); }

KindPair swapped(const KindPair& pair) {
  return {pair.gpu,      pair.sharing,         pair.second,
          pair.first,    pair.second_slowdown, pair.first_slowdown,
          pair.predicted};
}

void check(const KindPair& pair) {
  detail::refuse_unknown(pair.sharing, "learn_pairs: sharing");
  if (pair.sharing == Sharing::exclusive) {
    detail::refuse("learn_pairs: '", pair.first, "' beside '", pair.second, "' on '", pair.gpu,
                   "' is 'exclusive', which shares no GPU");
  }
  for (const double slowdown : {pair.first_slowdown, pair.second_slowdown}) {
    if (!(slowdown > 0)) {
      detail::refuse("learn_pairs: '", pair.first, "' beside '", pair.second, "' on '", pair.gpu,
                     "' has slowdown ", slowdown, ", expected more than 0");
    }
  }
}

/// Sorted, both ways round, each once.
std::vector<KindPair> both_ways(std::span<const KindPair> measured) {
  std::vector<KindPair> rows;
  for (const KindPair& pair : measured) {
    check(pair);
    rows.push_back(pair);
    rows.push_back(swapped(pair));
  }
  std::sort(rows.begin(), rows.end(),
            [](const KindPair& a, const KindPair& b) { return key(a) < key(b); });
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto twice =
      std::adjacent_find(rows.begin(), rows.end(),
                         [](const KindPair& a, const KindPair& b) { return key(a) == key(b); });
  if (twice != rows.end()) {
    detail::refuse("learn_pairs: '", twice->first, "' beside '", twice->second, "' on '",
                   twice->gpu, "' has two results");
  }
  return rows;
}

/// Refuses kinds that cannot be learned from, also those of a GPU on which no pair was measured.
void check(std::span<const JobKind> alone) {
  std::map<std::string_view, const JobKind*> first_on;
  std::set<std::pair<std::string_view, std::string_view>> described;
  for (const JobKind& kind : alone) {
    if (!described.emplace(kind.gpu, kind.kind).second) {
      detail::refuse("learn_pairs: '", kind.kind, "' is described twice on '", kind.gpu, "'");
    }
    const JobKind& first = *first_on.emplace(kind.gpu, &kind).first->second;
    if (kind.features.size() != first.features.size()) {
      detail::refuse("learn_pairs: '", kind.kind, "' has ", kind.features.size(),
                     " features, others on '", kind.gpu, "' have ", first.features.size());
    }
    for (const double x : kind.features) {
      if (!std::isfinite(x)) {
        detail::refuse("learn_pairs: a feature of '", kind.kind, "' is ", x,
                       ", expected a finite number");
      }
    }
  }
}

/// Kinds of one GPU with their features in units of their spread.
struct Kinds {
  std::vector<const JobKind*> of{};
  std::map<std::string_view, Eigen::Index> index{};
  Eigen::MatrixXd like{};  ///< K
};

Kinds kinds_of(std::string_view gpu, std::span<const JobKind> alone) {
  Kinds kinds;
  for (const JobKind& kind : alone) {
    if (kind.gpu != gpu) continue;
    kinds.index.emplace(kind.kind, std::ssize(kinds.of));
    kinds.of.push_back(&kind);
  }
  const auto n = std::ssize(kinds.of);
  const auto features = n > 0 ? kinds.of.front()->features.size() : 0;
  Eigen::MatrixXd x(n, static_cast<Eigen::Index>(features));
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index f = 0; f < x.cols(); ++f) {
      x(i, f) = kinds.of[i]->features[f];
    }
  }
  for (Eigen::Index f = 0; f < x.cols(); ++f) {
    x.col(f).array() -= x.col(f).mean();
    const double spread = std::sqrt(x.col(f).squaredNorm() / static_cast<double>(n));
    if (spread > 0) x.col(f) /= spread;
  }
  kinds.like.resize(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      const bool same = kinds.of[i]->model == kinds.of[j]->model;
      kinds.like(i, j) = std::exp(-(x.row(i) - x.row(j)).norm() / kFeatureLength) *
                         (same ? 1.0 : kOtherModelShare);
    }
  }
  return kinds;
}

/// Speeds of every kind (row) beside every other (column), from the rows of one GPU and mode.
Eigen::MatrixXd learn(std::span<const KindPair> rows, const Kinds& kinds) {
  struct Seen {
    Eigen::Index a, b;
    double speed;
  };
  std::vector<Seen> seen;
  double mean = 0, fastest = 0;
  for (const KindPair& row : rows) {
    const auto a = kinds.index.find(row.first), b = kinds.index.find(row.second);
    if (a == kinds.index.end() || b == kinds.index.end()) continue;
    if (!std::isfinite(row.first_slowdown)) continue;  // it did not run
    seen.push_back({a->second, b->second, 1 / row.first_slowdown});
    mean += seen.back().speed;
    fastest = std::max(fastest, seen.back().speed);
  }
  const auto n = std::ssize(seen);
  if (n == 0) return {};
  mean /= static_cast<double>(n);
  const Eigen::MatrixXd& K = kinds.like;
  Eigen::MatrixXd covariance(n, n);
  Eigen::VectorXd rest(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Seen& p = seen[i];
    rest[i] = p.speed - mean;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Seen& q = seen[j];
      const double suffers = K(p.a, q.a), harms = K(p.b, q.b);
      covariance(i, j) = kAlpha * suffers + kBeta * harms + kGamma * suffers * harms;
    }
    covariance(i, i) += kPairNoise;
  }
  const Eigen::VectorXd weight = covariance.llt().solve(rest);  // reads the lower half
  Eigen::MatrixXd W = Eigen::MatrixXd::Zero(K.rows(), K.rows());
  for (Eigen::Index i = 0; i < n; ++i) {
    W(seen[i].a, seen[i].b) = weight[i];
  }
  Eigen::MatrixXd speed = kGamma * (K * W * K.transpose());
  speed.colwise() += kAlpha * (K * W.rowwise().sum());
  speed.rowwise() += kBeta * (K * W.colwise().sum().transpose()).transpose();
  // A pair may be measured faster than alone; none is predicted faster than any that was measured.
  return (speed.array() + mean).cwiseMax(kMinSpeed).cwiseMin(std::max(1.0, fastest));
}

}  // namespace

std::vector<KindPair> read_pairs(const std::filesystem::path& path) {
  detail::CsvReader csv(path);
  const int gpu = csv.column("gpu");
  const int first = csv.column("job_a"), second = csv.column("job_b");
  const int slowdown_a = csv.column("slowdown_a"), slowdown_b = csv.column("slowdown_b");
  const int mode = csv.find("sharing");
  const auto slowdown = [&](int column) {
    const double x = csv.number(column);
    if (!(x > 0)) csv.fail("a slowdown is ", x, ", expected more than 0");
    return x;
  };
  std::vector<KindPair> pairs;
  while (csv.next()) {
    Sharing sharing = Sharing::naive;
    if (mode >= 0 && !csv.text(mode).empty()) {
      try {
        sharing = sharing_named(csv.text(mode));
      } catch (const InputError& error) {
        csv.fail(error.what());
      }
    }
    pairs.push_back({.gpu = std::string(csv.text(gpu)),
                     .sharing = sharing,
                     .first = std::string(csv.text(first)),
                     .second = std::string(csv.text(second)),
                     .first_slowdown = slowdown(slowdown_a),
                     .second_slowdown = slowdown(slowdown_b)});
  }
  return pairs;
}

Pairs learn_pairs(std::span<const KindPair> measured, std::span<const JobKind> alone) {
  Pairs pairs{both_ways(measured)};
  check(alone);
  const auto less = [](const KindPair& a, const KindPair& b) { return key(a) < key(b); };
  const std::size_t count = pairs.rows.size();
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const KindPair head = pairs.rows[begin];
    while (end < count && pairs.rows[end].gpu == head.gpu &&
           pairs.rows[end].sharing == head.sharing) {
      ++end;
    }
    const Kinds kinds = kinds_of(head.gpu, alone);
    const std::span<const KindPair> known(&pairs.rows[begin], end - begin);
    const Eigen::MatrixXd speed = learn(known, kinds);
    std::vector<KindPair> learned;
    for (Eigen::Index a = 0; a < speed.rows(); ++a) {
      for (Eigen::Index b = 0; b < speed.cols(); ++b) {
        const KindPair pair{.gpu = head.gpu,
                            .sharing = head.sharing,
                            .first = kinds.of[a]->kind,
                            .second = kinds.of[b]->kind,
                            .first_slowdown = 1 / speed(a, b),
                            .second_slowdown = 1 / speed(b, a),
                            .predicted = true};
        if (!std::binary_search(known.begin(), known.end(), pair, less)) learned.push_back(pair);
      }
    }
    pairs.rows.insert(pairs.rows.end(), learned.begin(), learned.end());
  }
  std::sort(pairs.rows.begin(), pairs.rows.end(), less);
  return pairs;
}

SharedSpeeds shared_speeds(const Profile& first, const Profile& second, Sharing sharing,
                           const Tier& tier, const Pairs* pairs) {
  const SharedSpeeds predicted = shared_speeds(first, second, sharing, tier.memory_gb);
  if (!pairs || predicted.first <= 0) return predicted;  // of no use, or beyond the card
  const auto asked = std::tie(tier.gpu, sharing, first.kind, second.kind);
  const auto found =
      std::lower_bound(pairs->rows.begin(), pairs->rows.end(), asked,
                       [](const KindPair& row, const auto& wanted) { return key(row) < wanted; });
  if (found == pairs->rows.end() || key(*found) != asked) return predicted;
  return {1 / found->first_slowdown, 1 / found->second_slowdown};
}

}  // namespace glidepath
