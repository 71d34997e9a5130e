// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"
#include "glidepath/rows.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

// ---- pods: fractions of GPUs, with CPU and memory

/// What a pod asks of one node.
struct Pod {
  std::string name{};
  std::int64_t cpu_milli = 0;   ///< thousandths of a CPU
  std::int64_t memory_mib = 0;  ///< main memory
  int gpus = 0;
  int gpu_milli = 1000;                   ///< thousandths of each GPU; below 1000 only with one GPU
  std::vector<std::string> gpu_models{};  ///< allowed ones; empty = any

  friend bool operator==(const Pod&, const Pod&) = default;
};

/// What is free on a node.
struct FreeNode {
  std::string name{};
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<int> gpu_milli{};  ///< thousandths of each GPU, 0 to 1000
  std::string gpu_model{};
  std::vector<int> gpu_pods{};  ///< pods that each GPU has already; empty = none on any

  friend bool operator==(const FreeNode&, const FreeNode&) = default;
};

/// Where a pod runs.
struct PodPlace {
  int node = -1;            ///< -1 = it fits nowhere
  std::vector<int> gpus{};  ///< of that node

  friend bool operator==(const PodPlace&, const PodPlace&) = default;
};

struct PodOptions {
  std::string policy{};    ///< of `pod_policies()`; empty = fgd_cpu with `expected`, else best_fit
  std::uint64_t seed = 0;  ///< nodes that tie are tried in the order of this seed
  /// Pods like those to come, for the policies that read them: those of last month, say.
  std::span<const Pod> expected{};
  int pods_per_gpu = 0;  ///< at most so many on one GPU; 0 = as many as it has shares for
};

/// A row of the table of policies.
struct PodPolicyInfo {
  std::string name{}, rule{};
  bool reads_expected = false;
  bool by_default = false;  ///< where none is named: with `expected` the one that reads it

  friend bool operator==(const PodPolicyInfo&, const PodPolicyInfo&) = default;
};
[[nodiscard]] std::vector<PodPolicyInfo> pod_policies();

/// Places pods one after the other, each once and for good; one that fits nowhere is left out and
/// takes nothing. Same bytes for a seed. Throws InputError naming the node, pod or policy: amounts
/// below 0 or above 10^12, a share above 1000 or of several GPUs, `gpu_pods` that do not match the
/// GPUs, `expected` for a policy that does not read it or none for one that does.
[[nodiscard]] std::vector<PodPlace> place_pods(std::span<const FreeNode> nodes,
                                               std::span<const Pod> pods,
                                               const PodOptions& options = {});

/// What is wrong with places: a node over its CPU or memory, a GPU over its share or with more
/// than `pods_per_gpu` pods (0 = any number), a GPU of a model that the pod does not allow, one
/// named twice. One sentence each; none = the places hold.
[[nodiscard]] std::vector<std::string> pod_violations(std::span<const FreeNode> nodes,
                                                      std::span<const Pod> pods,
                                                      std::span<const PodPlace> places,
                                                      int pods_per_gpu = 0);

// ---- mixes: jobs that share a whole GPU

/// Speeds of up to four jobs on one GPU, each as a share of its own speed alone, from its
/// `shared_speeds` with each of the others: their product under `mps`, and under `naive`, whose
/// jobs take turns, the slowdowns added up; above 1 where that was measured. All 0 when together
/// they need more than the card's memory. Throws InputError on no job or more than four, or a way
/// of sharing that is not `naive` or `mps`.
[[nodiscard]] std::vector<double> mix_speeds(std::span<const Profile> jobs, Sharing sharing,
                                             const Tier& tier, const Pairs* pairs = nullptr);

// ---- slices: MIG instances of an A100 or H100

/// An instance: its share of the multiprocessors is compute / 7, of the memory memory / 8.
struct Slice {
  std::string name{};  ///< "1g" to "7g"
  int compute = 0, memory = 0;

  friend bool operator==(const Slice&, const Slice&) = default;
};
/// 7g, 4g, 3g, 2g, 1g.
[[nodiscard]] std::vector<Slice> slices();

/// Speed of each job (row) on each of `slices()` (column), as a share of that on the whole card,
/// from what a monitor read there: power (`mean_watts`) where it is known, else the activities.
/// 0 where the slice has too little memory. Throws InputError naming the tier or value: power below
/// the idle or above the busy one, negative or NaN, activities out of range.
[[nodiscard]] Rows slice_speeds(std::span<const Profile> jobs, const Tier& tier);

/// A card in slices and who runs on which.
struct Partition {
  std::vector<std::string> slices{};  ///< as they lie on the card
  std::vector<int> jobs{};            ///< of each slice; -1 = nobody
  double throughput = 0;              ///< sum of the speeds

  friend bool operator==(const Partition&, const Partition&) = default;
};
/// The 19 ways to cut a card, nobody on them.
[[nodiscard]] std::vector<Partition> partitions();

/// The partition and jobs with the greatest throughput among those that run the most jobs; exact.
/// `speeds` is as `slice_speeds` gives it, or measured. Throws InputError on more than 7 jobs, a
/// speed below 0 or not finite, or another number of columns.
[[nodiscard]] Partition best_partition(RowsView speeds);

}  // namespace glidepath
#pragma GCC visibility pop
