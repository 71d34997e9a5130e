// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/parts.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace glidepath::detail {

inline constexpr int kWholeGpu = 1000;
inline constexpr int kPart = -1;  ///< kind of a request of a part of a GPU

/// What a pod asks, models of GPU as bits. Equal pods share one.
struct Request {
  std::int64_t cpu = 0, memory = 0;
  int gpus = 0, share = kWholeGpu;
  std::uint64_t models = 0;  ///< allowed ones; all bits = any
  int kind = 0;              ///< of GPU request: none, kPart, or how many whole ones

  [[nodiscard]] int gpu_total() const noexcept { return gpus * share; }
  friend bool operator==(const Request&, const Request&) = default;
};

/// What a node has left.
struct NodeState {
  std::int64_t cpu = 0, memory = 0;
  std::vector<int> gpus{};
  std::uint64_t model = 0;   ///< one bit, 0 where it has no GPU
  std::vector<int> pods{};   ///< on each GPU
  int pods_per_gpu = 0;      ///< 0 = any number
  std::vector<int> kinds{};  ///< of the GPU requests placed here, without repeats

  [[nodiscard]] int gpu_total() const noexcept;
  /// What a GPU has left after one more pod: nothing where that is the last one it may have.
  [[nodiscard]] int left_after(std::size_t gpu, const Request& pod) const noexcept;
  [[nodiscard]] int whole_gpus() const noexcept;
  [[nodiscard]] bool has(const Request& pod) const noexcept;
};

/// A request of the expected mix and its share of it.
struct Expected {
  Request pod{};
  double weight = 0;
};

/// How well a request suits a node, higher is better, and the GPU of a part; -1 = the policy leaves
/// the choice to best fit.
struct Suit {
  double score = 0;
  int gpu = -1;
};

struct PodPolicy {
  std::string_view name, rule;
  bool reads_expected = false;
  bool by_default = false;
  /// Null for `random`. Depends on its arguments alone, so that it is called again only for a
  /// node that changed.
  Suit (*suit)(const NodeState& node, const Request& pod, std::span<const Expected> mix) = nullptr;
};

[[nodiscard]] std::span<const PodPolicy> pod_policy_table();

/// The policy that the options name, or the one by default.
[[nodiscard]] const PodPolicy& pod_policy_of(const PodOptions& options);

/// The GPU on which a part leaves least; -1 where there is none.
[[nodiscard]] int best_fit_gpu(const NodeState& node, const Request& pod) noexcept;
/// Takes the request off the node: a part off `gpu` (-1 = best fit), whole GPUs in their order.
/// Returns the GPUs.
std::vector<int> take(NodeState& node, const Request& pod, int gpu);

}  // namespace glidepath::detail
