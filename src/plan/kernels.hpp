// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace glidepath::detail {

inline constexpr std::size_t kTileJobs = 8;  ///< jobs whose options stand side by side

/// Options of kTileJobs jobs each, in slots: a slot has at most one option of each job of its tile,
/// all of one tier, so that one price holds for it. A job without an option in a slot has zeros
/// there. The options of a job stand in the order of the round.
struct OptionTiles {
  std::size_t tiles = 0;
  const std::uint32_t* first = nullptr;  ///< slots of tile i: first[i] <= s < first[i + 1]
  const std::int32_t* tier = nullptr;    ///< of each slot
  const double* value = nullptr;         ///< of each slot, kTileJobs numbers
  const double* gpus = nullptr;
};

/// The same of jobs whose options stand in sets of tiers, each at the cost of its cheapest tier.
struct AlikeOptions {
  std::size_t tiles = 0;
  const std::uint32_t* first = nullptr;  ///< slots of tile i: first[i] <= s < first[i + 1]
  const std::int64_t* set = nullptr;     ///< of each slot, kTileJobs numbers; 0 = none
  const double* value = nullptr;
};

/// The loops in which the prices of a round are found. Each number is computed by the same
/// operations in the same order as without vectors, so every instruction set gives the same bytes.
struct PlanKernels {
  /// `value` plus the sum, job after job, of max(0, max_o v - lambda k). Adds to `usage` the GPUs
  /// of the first maximisers where that is above 0: kTileJobs numbers of each tier, for those that
  /// are first in their tiles, second and so on.
  double (*best_options)(const OptionTiles& tiles, const double* price, double value,
                         double* usage);
  /// Adds to `value` the sum, job after job, of max(0, max_s v - cost_s), and to `times`, of each
  /// set, 1 where it is that of the maximiser: kTileJobs numbers as in `usage` above. False where
  /// two of a job are worth the same.
  bool (*best_sets)(const AlikeOptions& tiles, const double* cost, double* value, double* times);
  /// out_i = b_i + sum_t g_ti x_t for n cuts; the slopes by t lie `stride` apart.
  void (*cuts_at)(std::size_t n, std::size_t dimensions, std::size_t stride, const double* b,
                  const double* g, const double* x, double* out);
  /// The first of the cuts that is furthest above `floor`, and in `above` how far; n where none is
  /// further than `above` was.
  std::size_t (*highest_cut)(std::size_t n, std::size_t dimensions, std::size_t stride,
                             const double* b, const double* g, const double* x, double floor,
                             double* above);
  /// y_c = sum_r a_r m_rc, of n rows and columns
  void (*combine_rows)(std::size_t n, const double* a, const double* m, double* y);
  /// m_rc -= a_r x_c where a_r is not 0, of n rows and columns
  void (*eliminate)(std::size_t n, const double* a, const double* x, double* m);
};

[[nodiscard]] const PlanKernels& plan_kernels();

}  // namespace glidepath::detail
