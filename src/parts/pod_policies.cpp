// SPDX-License-Identifier: Apache-2.0
// The six rules of the published comparison (Weng et al., Beware of Fragmentation, USENIX ATC 2023)
// and ours. The published scores are whole numbers of 0 to 100, so that many nodes tie; the
// truncations are part of the rules.
#include "parts/pod_policies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace glidepath::detail {
namespace {

// The largest node of the comparison, by which CPU and GPUs are put on one scale.
constexpr double kLargestCpu = 128000, kLargestGpus = 8000;

// Of `fgd_cpu`, chosen on two of the four workloads of bench/placement.py.
constexpr double kCpuHeadroom = 2.5, kFineStep = 10;

Suit best_fit(const NodeState& node, const Request& pod, std::span<const Expected>) {
  const double left = 0.5 * static_cast<double>(node.cpu - pod.cpu) / kLargestCpu +
                      0.5 * (node.gpu_total() - pod.gpu_total()) / kLargestGpus;
  return {std::trunc(100 * (1 - left))};
}

Suit dot_product(const NodeState& node, const Request& pod, std::span<const Expected>) {
  const double cpu =
      static_cast<double>(node.cpu) / kLargestCpu * static_cast<double>(pod.cpu) / kLargestCpu;
  const double gpu = node.gpu_total() / kLargestGpus * pod.gpu_total() / kLargestGpus;
  return {std::trunc(100 * (1 - (cpu + gpu) / 2))};
}

Suit gpu_packing(const NodeState& node, const Request& pod, std::span<const Expected>) {
  if (pod.gpus == 0) return {};
  const int whole = node.whole_gpus();
  if (whole == static_cast<int>(node.gpus.size())) return {std::max(33.0 - whole, 1.0 * whole)};
  std::vector<int> left = node.gpus;
  std::ranges::sort(left);
  int wanted = pod.gpus, fresh = 0, free_percent = 0;
  for (const int gpu : left) {
    if (wanted == 0 || gpu < pod.share) continue;
    --wanted;
    fresh += gpu == kWholeGpu;
    free_percent += gpu * 100 / kWholeGpu;
  }
  if (fresh > 0) return {std::max(50.0 - fresh, 33.0)};
  const int free_tenths = free_percent / 10;
  return {std::max(100.0 - free_tenths, 50.0)};
}

Suit gpu_clustering(const NodeState& node, const Request& pod, std::span<const Expected>) {
  if (pod.gpus == 0) return {};
  const double fuller = std::trunc(25 * (kLargestGpus - node.gpu_total()) / kLargestGpus);
  const bool same = std::ranges::find(node.kinds, pod.kind) != node.kinds.end();
  if (same) return {fuller + (node.kinds.size() == 1 ? 75 : 50)};
  return {fuller + (node.kinds.empty() ? 25 : 0)};
}

/// Expected GPU share of the node that a pod of the mix could not use, in thousandths of a GPU:
///   F = sum over pods t of w_t x (free share - usable(t, free share of GPUs large enough for t)),
/// where nothing is usable for a t that does not fit.
template <class Usable>
double unusable(const NodeState& node, std::span<const Expected> mix, Usable usable) {
  const int total = node.gpu_total();
  double sum = 0;
  for (const auto& [pod, weight] : mix) {
    int wanted = pod.gpus, large = 0;
    for (const int gpu : node.gpus) {
      if (gpu < pod.share) continue;
      --wanted;
      large += gpu;
    }
    const bool fits =
        pod.gpus > 0 && wanted <= 0 && node.cpu >= pod.cpu && (node.model & pod.models) != 0;
    sum += weight * (fits ? total - usable(pod, large) : total);
  }
  return sum;
}

double fragmentation(const NodeState& node, std::span<const Expected> mix) {
  return unusable(node, mix, [](const Request&, int large) { return large; });
}

/// The best of placing the pod on each GPU, or at all, by `value` of the node afterwards.
template <class Value>
Suit best_after(const NodeState& node, const Request& pod, Value value) {
  NodeState after = node;
  if (pod.kind != kPart) {
    take(after, pod, -1);
    return {value(after), -1};
  }
  after.cpu -= pod.cpu;
  after.memory -= pod.memory;
  Suit best{-1e300, -1};
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    const auto alike = [&](std::size_t other) {
      return node.gpus[other] == node.gpus[gpu] &&
             node.left_after(other, pod) == node.left_after(gpu, pod);
    };
    std::size_t first = 0;
    while (!alike(first)) ++first;
    if (node.gpus[gpu] < pod.share || first < gpu) continue;  // GPUs alike are equally good
    after.gpus[gpu] = node.left_after(gpu, pod);
    const double score = value(after);
    if (score > best.score) best = {score, static_cast<int>(gpu)};
    after.gpus[gpu] = node.gpus[gpu];
  }
  return best;
}

Suit fgd(const NodeState& node, const Request& pod, std::span<const Expected> mix) {
  const double before = fragmentation(node, mix);
  return best_after(node, pod, [&](const NodeState& after) {
    return std::trunc(100 / (1 + std::exp((fragmentation(after, mix) - before) / 1000)));
  });
}

/// The same, where the free CPUs limit what a pod t can use, to kCpuHeadroom as much as pods like t
/// alone could: others of the mix ask less of them.
double starved(const NodeState& node, std::span<const Expected> mix) {
  return unusable(node, mix, [&](const Request& pod, int large) {
    const double fed = static_cast<double>(node.cpu) * pod.gpu_total() /
                       static_cast<double>(std::max<std::int64_t>(1, pod.cpu));
    return std::min<double>(large, kCpuHeadroom * fed);
  });
}

Suit fgd_cpu(const NodeState& node, const Request& pod, std::span<const Expected> mix) {
  const double before = starved(node, mix);
  return best_after(node, pod, [&](const NodeState& after) {
    return std::floor((before - starved(after, mix)) / kFineStep);
  });
}

constexpr std::array kPolicies{
    PodPolicy{.name = "random", .rule = "a random node that fits, a random GPU of it"},
    PodPolicy{.name = "best_fit",
              .rule = "least of CPU and GPUs left over",
              .by_default = true,
              .suit = best_fit},
    PodPolicy{
        .name = "dot_product", .rule = "least product of free and requested", .suit = dot_product},
    PodPolicy{
        .name = "gpu_packing", .rule = "GPUs in use first, then nodes in use", .suit = gpu_packing},
    PodPolicy{.name = "gpu_clustering",
              .rule = "nodes with pods of the same GPU request",
              .suit = gpu_clustering},
    PodPolicy{.name = "fgd",
              .rule = "least rise of the expected fragmentation",
              .reads_expected = true,
              .suit = fgd},
    PodPolicy{.name = "fgd_cpu",
              .rule = "the same; GPUs that the free CPUs cannot feed are fragments too",
              .reads_expected = true,
              .by_default = true,
              .suit = fgd_cpu},
};

}  // namespace

int NodeState::gpu_total() const noexcept { return std::accumulate(gpus.begin(), gpus.end(), 0); }

int NodeState::left_after(std::size_t gpu, const Request& pod) const noexcept {
  const bool last = pods_per_gpu > 0 && pods[gpu] + 1 >= pods_per_gpu;
  return last ? 0 : gpus[gpu] - pod.share;
}

int NodeState::whole_gpus() const noexcept {
  return static_cast<int>(std::ranges::count(gpus, kWholeGpu));
}

bool NodeState::has(const Request& pod) const noexcept {
  if (cpu < pod.cpu || memory < pod.memory) return false;
  if (pod.gpus == 0) return true;
  if ((model & pod.models) == 0) return false;
  const auto room = [&](int left) { return left >= pod.share; };
  return std::ranges::count_if(gpus, room) >= pod.gpus;
}

int best_fit_gpu(const NodeState& node, const Request& pod) noexcept {
  int best = -1;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus.size()); ++gpu) {
    const int left = node.gpus[static_cast<std::size_t>(gpu)];
    if (left >= pod.share && (best < 0 || left < node.gpus[static_cast<std::size_t>(best)])) {
      best = gpu;
    }
  }
  return best;
}

std::vector<int> take(NodeState& node, const Request& pod, int gpu) {
  node.cpu -= pod.cpu;
  node.memory -= pod.memory;
  std::vector<int> gpus;
  if (pod.kind == kPart) {
    gpus.push_back(gpu < 0 ? best_fit_gpu(node, pod) : gpu);
  } else {
    for (int i = 0; static_cast<int>(gpus.size()) < pod.gpus; ++i) {
      if (node.gpus[static_cast<std::size_t>(i)] == kWholeGpu) gpus.push_back(i);
    }
  }
  for (const int each : gpus) {
    const auto i = static_cast<std::size_t>(each);
    node.gpus[i] = node.left_after(i, pod);
    ++node.pods[i];
  }
  if (pod.gpus > 0 && std::ranges::find(node.kinds, pod.kind) == node.kinds.end()) {
    node.kinds.push_back(pod.kind);
  }
  return gpus;
}

std::span<const PodPolicy> pod_policy_table() { return kPolicies; }

}  // namespace glidepath::detail
