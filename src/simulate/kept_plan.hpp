// SPDX-License-Identifier: Apache-2.0
// The plan before, changed by what came and went since, without a look at the options of each job.
// What is free goes to those that wait, and some that wait take the GPUs of those that are together
// worth less. The prices of the last plan that was made say how far from the best that may be: the
// bound less the value is a sum over jobs and tiers, see plan/repair.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// For completion times of jobs with known durations that are as fast on each tier, without
/// restarts: what a second of a job is worth follows from the time that is left of it alone.
class KeptPlan {
 public:
  /// Whether the jobs of a cluster are such.
  [[nodiscard]] static bool serves(const Cluster& cluster);

  explicit KeptPlan(const Cluster& cluster);

  /// A plan was made, at these prices per GPU of each tier.
  void renew(std::span<const double> prices) { price_.assign(prices.begin(), prices.end()); }

  /// Changes what runs for the jobs that are live now. False where a plan has to be made: few jobs
  /// are live, or the prices do not show that this one is within the gap of plan().
  [[nodiscard]] bool follow(std::span<const int> live);

  struct Item {
    double worth;    ///< value per second
    int job, shape;  ///< `shape`: of shapes_
    int held, tier;  ///< where it runs, and is to run; -1 = nowhere
  };
  /// The live jobs as the last follow() wants them.
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }

 private:
  /// Jobs that may run in the same ways.
  struct Shape {
    int gpus = 1;
    std::vector<bool> usable{};          ///< each tier
    std::vector<std::size_t> waiting{};  ///< a heap of items, the one worth most on top
    friend bool operator==(const Shape& a, const Shape& b) {
      return a.gpus == b.gpus && a.usable == b.usable;
    }
  };
  /// A job that is to run on a tier.
  struct Seat {
    double density;  ///< value per GPU
    std::size_t item;
    int gpus;
  };
  /// The first of a shape in the place of others.
  struct Swap {
    double profit;  ///< at most
    int shape, tier;
    std::vector<std::size_t> out{};  ///< items
  };

  void gather(std::span<const int> live);
  /// What staying where it runs is worth included.
  [[nodiscard]] double value(const Item& item, int tier) const;
  [[nodiscard]] double density(const Shape& shape) const;
  void wait(std::size_t item);
  std::size_t take_first(Shape& shape);
  void seat(std::size_t item, int tier);
  void unseat(std::size_t item);
  [[nodiscard]] int tightest(const Shape& shape) const;
  [[nodiscard]] bool fill_once();
  void look_at(int shape, int tier);
  [[nodiscard]] bool carry_out(const Swap& swap);
  [[nodiscard]] bool swap_once();
  [[nodiscard]] bool is_proved() const;

  const Cluster& cluster_;
  std::vector<int> shape_of_;  ///< of each job
  std::vector<Shape> shapes_;
  std::vector<double> price_;
  std::vector<Item> items_;
  std::vector<Swap> swaps_;
  std::vector<std::vector<Seat>> seats_;  ///< of each tier
  std::vector<double> lowest_;            ///< no more than the least density on it
  std::vector<int> free_;                 ///< GPUs of it
  double highest_ = 0;                    ///< density of those that wait
};

}  // namespace glidepath::detail
