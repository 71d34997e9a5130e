// SPDX-License-Identifier: Apache-2.0
// The options of jobs side by side, as the dual function looks at them for some prices. Both ways
// give what looking at job after job gives, to the last bit: the sum of the best values is taken in
// the order of the jobs, and GPUs are whole numbers, whose sum has no order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/kernels.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {

/// The options of jobs without limits, a tile of jobs side by side.
class Tiled {
 public:
  /// False where the options of a job do not go up by tier, or where the jobs of a tile are so
  /// unlike that most of a slot would be empty.
  bool fill(const Round& round, std::span<const std::int32_t> jobs);

  /// `value` plus what jobs [begin, end) add to D at some prices, and their GPUs to `usage`. The
  /// first of them is the first of a tile.
  [[nodiscard]] double add(std::size_t begin, std::size_t end, const double* price, double value,
                           std::span<double> usage) const;

  [[nodiscard]] std::size_t bytes() const { return bytes_of(first_, tier_, value_, gpus_, slots_); }

 private:
  static constexpr std::size_t kMaxSlots = 64;         // of few jobs, however empty
  static constexpr std::size_t kMinOptionsOfSlot = 2;  // in the mean

  bool add_tile(const Round& round, std::span<const std::int32_t> jobs);

  std::vector<std::uint32_t> first_;
  std::vector<std::int32_t> tier_;
  std::vector<double> value_, gpus_;  // at least as long as the slots
  std::vector<std::int32_t> slots_;   // of the tile at hand: of each tier, then the first of them
};

/// Jobs that are as fast on many tiers: options of one job with the same value and GPUs differ by
/// the price of their tier alone, and the cheapest of a set of tiers is found once for all jobs.
class AlikeTiles {
 public:
  /// False where too few options are alike for it to pay.
  bool fill(const Round& round, std::span<const std::int32_t> jobs);

  /// Finds the cheapest tiers. False where two costs are so near that their order may be lost when
  /// they are taken off a value: then the first of the tiers would have to be found option by
  /// option.
  [[nodiscard]] bool set_prices(const double* price);

  /// As Tiled::add at these prices. False, and nothing is right, where two sets of tiers are worth
  /// the same to a job.
  [[nodiscard]] bool add(std::size_t begin, std::size_t end, double& value, double* usage) const;

  [[nodiscard]] std::size_t bytes() const {
    return bytes_of(first_, set_, value_, sets_, cost_, tier_, place_);
  }

 private:
  /// So many GPUs on one of some tiers. The first one has no tiers: it fills empty places.
  struct TierSet {
    std::uint64_t tiers = 0;  ///< a bit for each
    std::int32_t gpus = 0;
    friend bool operator==(const TierSet&, const TierSet&) = default;
  };
  struct Part {
    std::int64_t value = 0;
    TierSet set;
  };
  static constexpr std::int32_t kMaxTiers = 64;
  static constexpr std::size_t kMaxSets = 256, kPlaces = 1024;
  static constexpr std::size_t kMaxParts = 4;           // of the options of a job
  static constexpr std::size_t kMinOptionsOfPlace = 2;  // in the mean, for it to pay
  static constexpr std::size_t kTrialJobs = 256;        // after which that is looked at first

  /// The options of a job in parts that are alike; 0 where they do not go up by tier or where
  /// there are too many.
  std::size_t split(const Round& round, std::int32_t job);
  /// kMaxSets where there is no room for it.
  std::size_t index_of(const TierSet& set);

  std::vector<std::uint32_t> first_;  // slots of each tile
  std::vector<std::int64_t> set_;     // of each place of a slot
  std::vector<double> value_;
  std::vector<TierSet> sets_;
  std::vector<double> cost_;          // of the cheapest tier of each set
  std::vector<std::int32_t> tier_;    // that tier
  std::vector<std::uint16_t> place_;  // a hash of the sets: their indices and one more
  Part part_[kMaxParts];
};

}  // namespace glidepath::detail
