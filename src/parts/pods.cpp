// SPDX-License-Identifier: Apache-2.0
#include "glidepath/parts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "common/require.hpp"
#include "common/rng.hpp"
#include "parts/pod_policies.hpp"

namespace glidepath {
namespace {

using detail::Expected;
using detail::kWholeGpu;
using detail::NodeState;
using detail::PodPolicy;
using detail::refuse;
using detail::Request;
using detail::sentence;
using detail::Suit;

constexpr int kModelBits = 63;
constexpr std::int64_t kLargestAmount = 1'000'000'000'000;  // so that sums of millions hold
constexpr double kExpectedShare = 0.95;  // of the mix that is kept, the most frequent ones first

void validate_amount(const char* what, const std::string& name, const char* column,
                     std::int64_t amount) {
  if (amount >= 0 && amount <= kLargestAmount) return;
  refuse(what, " '", name, "': ", column, " is ", amount, ", expected 0 to 10^12");
}

void validate(const FreeNode& node) {
  validate_amount("node", node.name, "cpu_milli", node.cpu_milli);
  validate_amount("node", node.name, "memory_mib", node.memory_mib);
  for (const int gpu : node.gpu_milli) {
    if (gpu < 0 || gpu > kWholeGpu) {
      refuse("node '", node.name, "': gpu_milli is ", gpu, ", expected 0 to 1000");
    }
  }
  if (!node.gpu_pods.empty() && node.gpu_pods.size() != node.gpu_milli.size()) {
    refuse("node '", node.name, "': gpu_pods of ", node.gpu_pods.size(), " GPUs, it has ",
           node.gpu_milli.size());
  }
  for (const int pods : node.gpu_pods) {
    if (pods < 0) refuse("node '", node.name, "': gpu_pods is ", pods, ", expected 0 or more");
  }
}

void validate(const Pod& pod) {
  validate_amount("pod", pod.name, "cpu_milli", pod.cpu_milli);
  validate_amount("pod", pod.name, "memory_mib", pod.memory_mib);
  if (pod.gpus < 0) refuse("pod '", pod.name, "': gpus is ", pod.gpus, ", expected 0 or more");
  if (pod.gpu_milli < 1 || pod.gpu_milli > kWholeGpu) {
    refuse("pod '", pod.name, "': gpu_milli is ", pod.gpu_milli, ", expected 1 to 1000");
  }
  if (pod.gpus == 0 && pod.gpu_milli != kWholeGpu) {
    refuse("pod '", pod.name, "': gpu_milli is ", pod.gpu_milli, " of no GPU");
  }
  if (pod.gpus > 1 && pod.gpu_milli != kWholeGpu) {
    refuse("pod '", pod.name, "': a part of each of ", pod.gpus, " GPUs; parts are of one GPU");
  }
}

/// Models of GPU by bit.
class Models {
 public:
  explicit Models(std::span<const FreeNode> nodes) {
    for (const FreeNode& node : nodes) {
      if (node.gpu_milli.empty()) continue;
      bits_.emplace(node.gpu_model, bits_.size());
    }
    if (bits_.size() > kModelBits) refuse("place_pods: more than 63 models of GPU");
  }
  [[nodiscard]] std::uint64_t bit(const std::string& model) const {
    const auto found = bits_.find(model);
    return found == bits_.end() ? 0 : std::uint64_t{1} << found->second;
  }
  [[nodiscard]] Request request(const Pod& pod) const {
    validate(pod);
    Request made{.cpu = pod.cpu_milli, .memory = pod.memory_mib, .gpus = pod.gpus};
    if (pod.gpus == 0) return made;
    made.share = pod.gpu_milli;
    made.kind = pod.gpu_milli < kWholeGpu ? detail::kPart : pod.gpus;
    made.models = pod.gpu_models.empty() ? ~std::uint64_t{0} : 0;
    for (const std::string& model : pod.gpu_models) made.models |= bit(model);
    return made;
  }
  [[nodiscard]] NodeState state(const FreeNode& node, int pods_per_gpu) const {
    validate(node);
    NodeState made{.cpu = node.cpu_milli,
                   .memory = node.memory_mib,
                   .gpus = node.gpu_milli,
                   .model = node.gpu_milli.empty() ? 0 : bit(node.gpu_model),
                   .pods = node.gpu_pods,
                   .pods_per_gpu = pods_per_gpu};
    made.pods.resize(made.gpus.size());
    for (std::size_t gpu = 0; gpu < made.gpus.size(); ++gpu) {
      if (pods_per_gpu > 0 && made.pods[gpu] >= pods_per_gpu) made.gpus[gpu] = 0;
    }
    return made;
  }

 private:
  std::map<std::string, std::size_t> bits_{};
};

auto key(const Request& r) { return std::tuple(r.cpu, r.memory, r.gpus, r.share, r.models); }

/// The most frequent requests of the mix, memory aside, with weights that add up to 1.
std::vector<Expected> frequent(std::span<const Pod> expected, const Models& models) {
  std::map<std::tuple<std::int64_t, int, int, std::uint64_t>, Expected> found;
  for (const Pod& pod : expected) {
    Request request = models.request(pod);
    request.memory = 0;
    Expected& row = found[{request.cpu, request.share, request.gpus, request.models}];
    row.pod = request;
    row.weight += 1;
  }
  std::vector<Expected> mix;
  for (auto it = found.rbegin(); it != found.rend(); ++it) mix.push_back(it->second);
  std::ranges::stable_sort(mix, [](const auto& a, const auto& b) { return a.weight > b.weight; });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < mix.size() && sum < kExpectedShare * static_cast<double>(expected.size())) {
    sum += mix[kept++].weight;
  }
  mix.resize(kept);
  for (auto& row : mix) row.weight /= sum;
  return mix;
}

/// Nodes, and what the policy thought of each request on each when the node last changed.
class ScoredNodes {
 public:
  ScoredNodes(std::vector<NodeState> nodes, const PodPolicy& policy, std::vector<Expected> mix,
              std::uint64_t seed)
      : nodes_(std::move(nodes)), policy_(policy), mix_(std::move(mix)), random_{seed} {
    order_.resize(nodes_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::vector<std::uint64_t> rank(nodes_.size());
    for (std::size_t i = 0; i < rank.size(); ++i) rank[i] = random_.bits(kRanks, i);
    std::ranges::stable_sort(order_, [&](int a, int b) {
      return rank[static_cast<std::size_t>(a)] < rank[static_cast<std::size_t>(b)];
    });
    changes_.assign(nodes_.size(), 1);
  }

  PodPlace place(const Request& pod) {
    const auto [node, gpu] = policy_.suit == nullptr ? random_place(pod) : best_place(pod);
    ++placed_;
    if (node < 0) return {};
    ++changes_[static_cast<std::size_t>(node)];
    return {node, take(nodes_[static_cast<std::size_t>(node)], pod, gpu)};
  }

 private:
  struct Thought {
    Suit suit{};
    int change = 0;
    bool fits = false;
  };

  std::pair<int, int> best_place(const Request& pod) {
    std::vector<Thought>& thoughts = thoughts_[key(pod)];
    thoughts.resize(nodes_.size());
    std::pair<int, int> best{-1, -1};
    double score = 0;
    for (const int node : order_) {
      const auto n = static_cast<std::size_t>(node);
      Thought& thought = thoughts[n];
      if (thought.change != changes_[n]) {
        thought.change = changes_[n];
        thought.fits = nodes_[n].has(pod);
        if (thought.fits) thought.suit = policy_.suit(nodes_[n], pod, mix_);
      }
      if (thought.fits && (best.first < 0 || thought.suit.score > score)) {
        best = {node, thought.suit.gpu};
        score = thought.suit.score;
      }
    }
    return best;
  }

  std::pair<int, int> random_place(const Request& pod) {
    std::vector<int> fits;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].has(pod)) fits.push_back(static_cast<int>(n));
    }
    if (fits.empty()) return {-1, -1};
    const int node = fits[drawn(fits.size(), 0)];
    std::vector<int> gpus;
    const std::vector<int>& left = nodes_[static_cast<std::size_t>(node)].gpus;
    for (std::size_t gpu = 0; pod.kind == detail::kPart && gpu < left.size(); ++gpu) {
      if (left[gpu] >= pod.share) gpus.push_back(static_cast<int>(gpu));
    }
    return {node, gpus.empty() ? -1 : gpus[drawn(gpus.size(), 1)]};
  }

  std::size_t drawn(std::size_t count, std::uint64_t draw) const {
    return static_cast<std::size_t>(random_.uniform(placed_, draw) * static_cast<double>(count));
  }

  static constexpr std::uint64_t kRanks = ~std::uint64_t{0};
  std::vector<NodeState> nodes_;
  const PodPolicy& policy_;
  std::vector<Expected> mix_;
  detail::Rng random_;
  std::vector<int> order_{}, changes_{};
  std::map<decltype(key(Request{})), std::vector<Thought>> thoughts_{};
  std::uint64_t placed_ = 0;  ///< pods, also those that fit nowhere
};

/// Takes a pod's GPUs off a node, without a look at how much is left of them.
void take_gpus(const Pod& pod, std::span<const int> gpus, FreeNode& node,
               std::vector<std::string>& found) {
  const std::string who = sentence("pod '", pod.name, "' ");
  if (static_cast<int>(gpus.size()) != pod.gpus) {
    found.push_back(sentence(who, "has ", gpus.size(), " GPUs, asks ", pod.gpus));
  }
  if (std::set<int>(gpus.begin(), gpus.end()).size() != gpus.size()) {
    found.push_back(who + "has a GPU twice");
  }
  const auto& models = pod.gpu_models;
  if (!gpus.empty() && !models.empty() &&
      std::ranges::find(models, node.gpu_model) == models.end()) {
    found.push_back(sentence(who, "is on a GPU '", node.gpu_model, "' that it does not allow"));
  }
  for (const int gpu : gpus) {
    if (gpu < 0 || gpu >= static_cast<int>(node.gpu_milli.size())) {
      found.push_back(sentence(who, "is on GPU ", gpu, " of ", node.gpu_milli.size()));
      continue;
    }
    node.gpu_milli[static_cast<std::size_t>(gpu)] -= pod.gpu_milli;
    ++node.gpu_pods[static_cast<std::size_t>(gpu)];
  }
}

const PodPolicy& policy_named(std::string_view name) {
  for (const PodPolicy& policy : detail::pod_policy_table()) {
    if (policy.name == name) return policy;
  }
  refuse("place_pods: policy is '", name, "', expected one of ",
         detail::listed(detail::pod_policy_table(), [](const PodPolicy& p) { return p.name; }));
}

const PodPolicy& policy_by_default(std::span<const Pod> expected) {
  return *std::ranges::find_if(detail::pod_policy_table(), [&](const PodPolicy& policy) {
    return policy.by_default && policy.reads_expected == !expected.empty();
  });
}

}  // namespace

const PodPolicy& detail::pod_policy_of(const PodOptions& options) {
  return options.policy.empty() ? policy_by_default(options.expected)
                                : policy_named(options.policy);
}

std::vector<PodPolicyInfo> pod_policies() {
  std::vector<PodPolicyInfo> rows;
  for (const PodPolicy& p : detail::pod_policy_table()) {
    rows.push_back({std::string(p.name), std::string(p.rule), p.reads_expected, p.by_default});
  }
  return rows;
}

std::vector<PodPlace> place_pods(std::span<const FreeNode> nodes, std::span<const Pod> pods,
                                 const PodOptions& options) {
  const PodPolicy& policy = detail::pod_policy_of(options);
  if (policy.reads_expected && options.expected.empty()) {
    refuse("place_pods: the policy '", policy.name, "' needs expected pods");
  }
  if (!policy.reads_expected && !options.expected.empty()) {
    refuse("place_pods: the policy '", policy.name, "' does not read expected pods");
  }
  if (options.pods_per_gpu < 0) {
    refuse("place_pods: pods_per_gpu is ", options.pods_per_gpu, ", expected 0 or more");
  }
  const Models models(nodes);
  std::vector<NodeState> states;
  for (const FreeNode& node : nodes) states.push_back(models.state(node, options.pods_per_gpu));
  ScoredNodes cluster(std::move(states), policy, frequent(options.expected, models), options.seed);
  std::vector<Request> requests;
  for (const Pod& pod : pods) requests.push_back(models.request(pod));
  std::vector<PodPlace> places;
  for (const Request& request : requests) {
    detail::check_interrupt();
    places.push_back(cluster.place(request));
  }
  return places;
}

std::vector<std::string> pod_violations(std::span<const FreeNode> nodes, std::span<const Pod> pods,
                                        std::span<const PodPlace> places, int pods_per_gpu) {
  if (pods.size() != places.size()) {
    refuse("pod_violations: ", pods.size(), " pods, ", places.size(), " places");
  }
  if (pods_per_gpu < 0) {
    refuse("pod_violations: pods_per_gpu is ", pods_per_gpu, ", expected 0 or more");
  }
  for (const FreeNode& node : nodes) validate(node);
  for (const Pod& pod : pods) validate(pod);
  std::vector<FreeNode> left(nodes.begin(), nodes.end());
  for (FreeNode& node : left) node.gpu_pods.resize(node.gpu_milli.size());
  const std::vector<FreeNode> before = left;
  std::vector<std::string> found;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (places[i].node < 0) continue;
    if (places[i].node >= static_cast<int>(nodes.size())) {
      found.push_back(
          sentence("pod '", pods[i].name, "' is on node ", places[i].node, " of ", nodes.size()));
      continue;
    }
    FreeNode& node = left[static_cast<std::size_t>(places[i].node)];
    node.cpu_milli -= pods[i].cpu_milli;
    node.memory_mib -= pods[i].memory_mib;
    take_gpus(pods[i], places[i].gpus, node, found);
  }
  for (std::size_t n = 0; n < left.size(); ++n) {
    const FreeNode& node = left[n];
    const auto over = [&](const std::string& what, std::int64_t amount) {
      if (amount < 0) found.push_back(sentence("node '", node.name, "' has ", amount, " ", what));
    };
    over("thousandths of a CPU left", node.cpu_milli);
    over("MiB left", node.memory_mib);
    for (std::size_t gpu = 0; gpu < node.gpu_milli.size(); ++gpu) {
      over(sentence("thousandths of GPU ", gpu, " left"), node.gpu_milli[gpu]);
      const bool added = node.gpu_pods[gpu] > before[n].gpu_pods[gpu];  // by a place
      if (pods_per_gpu > 0 && added && node.gpu_pods[gpu] > pods_per_gpu) {
        found.push_back(sentence("node '", node.name, "' has ", node.gpu_pods[gpu], " pods on GPU ",
                                 gpu, ", at most ", pods_per_gpu));
      }
    }
  }
  return found;
}

}  // namespace glidepath
