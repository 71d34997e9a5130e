// SPDX-License-Identifier: Apache-2.0
#include "simulate/fair_share.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/interrupt.hpp"

namespace glidepath::detail {

Eigen::MatrixXd max_min_shares(const Eigen::MatrixXd& a, const Eigen::VectorXd& gang,
                               const Eigen::VectorXd& capacity) {
  using Eigen::Index;
  const Index n = a.rows();
  const Index tiers = a.cols();
  // Columns: x row by row, t, the right-hand side. Rows: t - sum a x <= 0, sum x <= 1, capacities,
  // the objective. x = t = 0 is feasible, so there is no first phase.
  const Index variables = n * tiers + 1;
  const Index rows = 2 * n + tiers;
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> table =
      Eigen::MatrixXd::Zero(rows + 1, variables + 1);
  for (Index i = 0; i < n; ++i) {
    table(i, variables - 1) = 1;
    for (Index j = 0; j < tiers; ++j) {
      table(i, i * tiers + j) = -a(i, j);
      table(n + i, i * tiers + j) = 1;
      table(2 * n + j, i * tiers + j) = gang(i);
    }
    table(n + i, variables) = 1;
  }
  for (Index j = 0; j < tiers; ++j) table(2 * n + j, variables) = capacity(j);
  table(rows, variables - 1) = -1;  // minimise -t

  // Nonbasic variables sit in columns, basic ones in rows; a pivot swaps two labels. Labels at or
  // above `variables` are slacks.
  std::vector<Index> column_of(variables);
  std::vector<Index> row_of(rows);
  for (Index j = 0; j < variables; ++j) column_of[j] = j;
  for (Index i = 0; i < rows; ++i) row_of[i] = variables + i;
  constexpr double kZero = 1e-10;
  for (Index pivots = 0; pivots < 60 * rows; ++pivots) {
    check_interrupt();
    const bool bland = pivots > 20 * rows;  // cannot cycle
    Index enter = -1;
    for (Index j = 0; j < variables; ++j) {
      if (table(rows, j) >= -kZero) continue;
      if (enter < 0 ||
          (bland ? column_of[j] < column_of[enter] : table(rows, j) < table(rows, enter))) {
        enter = j;
      }
    }
    if (enter < 0) break;
    Index leave = -1;
    double least = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < rows; ++i) {
      if (table(i, enter) <= kZero) continue;
      const double ratio = table(i, variables) / table(i, enter);
      if (ratio < least - 1e-13 ||
          (ratio < least + 1e-13 && leave >= 0 && row_of[i] < row_of[leave])) {
        least = ratio;
        leave = i;
      }
    }
    if (leave < 0) break;  // unbounded: capacities forbid it
    const double pivot = table(leave, enter);
    table.row(leave) /= pivot;
    table(leave, enter) = 1 / pivot;
    for (Index i = 0; i <= rows; ++i) {
      if (i == leave || table(i, enter) == 0) continue;
      const double factor = table(i, enter);
      table(i, enter) = 0;
      table.row(i) -= factor * table.row(leave);
    }
    std::swap(column_of[enter], row_of[leave]);
  }
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(n, tiers);
  for (Index i = 0; i < rows; ++i) {
    const Index label = row_of[i];
    if (label < n * tiers) {
      x(label / tiers, label % tiers) = std::min(1.0, std::max(0.0, table(i, variables)));
    }
  }
  return x;
}

Eigen::MatrixXd even_shares(const Eigen::MatrixXd& cost, const Eigen::VectorXd& gang,
                            const Eigen::VectorXd& capacity) {
  using Eigen::Index;
  const Index n = cost.rows();
  const Index tiers = cost.cols();
  constexpr double kNegligibleTime = 1e-9;  // of GPU-time
  const double even = std::min(gang.minCoeff(), capacity.sum() / static_cast<double>(n));
  Eigen::VectorXd room = capacity;
  Eigen::MatrixXd time = Eigen::MatrixXd::Zero(n, tiers);  // in GPUs
  const auto per_gpu = [&](Index i, Index j) { return cost(i, j) / gang(i); };
  struct Step {
    double length;  // from job i to this tier
    Index from;     // the tier before, -1 at the first
    Index job;      // that moves from there to here
  };
  std::vector<Step> path(tiers);
  const auto step = [&](Index j) -> Step& { return path[j]; };
  for (Index i = 0; i < n; ++i) {
    for (double left = even; left > kNegligibleTime;) {
      check_interrupt();
      // Bellman and Ford: to a tier at once, or by moving an earlier job on from it.
      for (Index j = 0; j < tiers; ++j) step(j) = {per_gpu(i, j), -1, i};
      for (Index round = 1; round < tiers; ++round) {
        for (Index k = 0; k < i; ++k) {
          for (Index from = 0; from < tiers; ++from) {
            if (time(k, from) <= kNegligibleTime) continue;
            for (Index to = 0; to < tiers; ++to) {
              const double length = step(from).length + per_gpu(k, to) - per_gpu(k, from);
              if (length < step(to).length - 1e-12) step(to) = {length, from, k};
            }
          }
        }
      }
      Index last = -1;
      for (Index j = 0; j < tiers; ++j) {
        if (room(j) <= kNegligibleTime) continue;
        if (last < 0 || step(j).length < step(last).length) last = j;
      }
      if (last < 0) break;
      double amount = std::min(left, room(last));
      for (Index j = last; step(j).from >= 0; j = step(j).from) {
        amount = std::min(amount, time(step(j).job, step(j).from));
      }
      left -= amount;
      room(last) -= amount;
      for (Index j = last; j >= 0; j = step(j).from) {
        time(step(j).job, j) += amount;
        if (step(j).from >= 0) time(step(j).job, step(j).from) -= amount;
      }
    }
  }
  return time.array().colwise() / gang.array();
}

}  // namespace glidepath::detail
