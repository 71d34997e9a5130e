// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <Eigen/Core>

namespace glidepath::detail {

/// maximise t subject to sum_j a(i,j) x(i,j) >= t for each job i, sum_j x(i,j) <= 1,
/// sum_i gang(i) x(i,j) <= capacity(j), x >= 0: the shares of time of a max-min fair cluster.
/// Returns x. Dense simplex: some milliseconds for 100 jobs on 3 tiers.
[[nodiscard]] Eigen::MatrixXd max_min_shares(const Eigen::MatrixXd& a, const Eigen::VectorXd& gang,
                                             const Eigen::VectorXd& capacity);

/// The same where all rates are equal: each job has the GPU-time min(gang, total capacity / jobs),
/// and any split of it among the tiers is an optimum. Returns the one that minimises
/// sum_ij cost(i,j) x(i,j), by successive shortest paths.
[[nodiscard]] Eigen::MatrixXd even_shares(const Eigen::MatrixXd& cost, const Eigen::VectorXd& gang,
                                          const Eigen::VectorXd& capacity);

}  // namespace glidepath::detail
