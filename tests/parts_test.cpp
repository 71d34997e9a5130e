// SPDX-License-Identifier: Apache-2.0
#include "glidepath/parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"

namespace glidepath {
namespace {

const std::vector<std::string> kModels{"A", "B"};

struct Case {
  std::vector<FreeNode> nodes{};
  std::vector<Pod> pods{};
};

Case random_case(std::uint64_t seed, int nodes, int pods) {
  const detail::Rng rng{seed};
  std::uint64_t draw = 0;
  const auto below = [&](int n) { return static_cast<int>(rng.uniform(0, draw++) * n); };
  Case made;
  for (int i = 0; i < nodes; ++i) {
    const int gpus = below(4);
    FreeNode node{.name = "n" + std::to_string(i), .cpu_milli = 4000 + 4000 * below(4)};
    node.memory_mib = 1024 * (4 + below(12));
    node.gpu_milli.assign(static_cast<std::size_t>(gpus), 1000);
    node.gpu_model = kModels[static_cast<std::size_t>(below(2))];
    made.nodes.push_back(node);
  }
  for (int i = 0; i < pods; ++i) {
    Pod pod{.name = "p" + std::to_string(i), .cpu_milli = 500 * below(8)};
    pod.memory_mib = 512 * below(6);
    const int kind = below(4);
    pod.gpus = kind == 0 ? 0 : kind == 3 ? 1 + below(2) : 1;
    if (kind == 1 || kind == 2) pod.gpu_milli = 100 + 50 * below(18);
    if (below(4) == 0) pod.gpu_models = {kModels[static_cast<std::size_t>(below(2))]};
    made.pods.push_back(pod);
  }
  return made;
}

std::vector<PodPlace> placed(const Case& c, const PodPolicyInfo& policy, std::uint64_t seed = 0,
                             int pods_per_gpu = 0) {
  PodOptions options{.policy = policy.name, .seed = seed, .pods_per_gpu = pods_per_gpu};
  if (policy.reads_expected) options.expected = c.pods;
  return place_pods(c.nodes, c.pods, options);
}

void subtract(FreeNode& node, const Pod& pod, const std::vector<int>& gpus) {
  node.cpu_milli -= pod.cpu_milli;
  node.memory_mib -= pod.memory_mib;
  for (const int gpu : gpus) node.gpu_milli[static_cast<std::size_t>(gpu)] -= pod.gpu_milli;
}

/// Every way of putting a pod on a node: sets of GPUs, or the empty one.
std::vector<std::vector<int>> ways(const FreeNode& node, const Pod& pod) {
  if (node.cpu_milli < pod.cpu_milli || node.memory_mib < pod.memory_mib) return {};
  if (pod.gpus == 0) return {{}};
  const auto& models = pod.gpu_models;
  if (!models.empty() && std::find(models.begin(), models.end(), node.gpu_model) == models.end()) {
    return {};
  }
  std::vector<std::vector<int>> found;
  for (unsigned set = 1; set < 1u << node.gpu_milli.size(); ++set) {
    std::vector<int> gpus;
    bool room = true;
    for (std::size_t i = 0; i < node.gpu_milli.size(); ++i) {
      if ((set >> i & 1u) == 0) continue;
      gpus.push_back(static_cast<int>(i));
      room = room && node.gpu_milli[i] >= pod.gpu_milli;
    }
    if (room && static_cast<int>(gpus.size()) == pod.gpus) found.push_back(gpus);
  }
  return found;
}

double share(const Pod& pod) { return 0.001 * pod.gpus * pod.gpu_milli; }

double allocated(const Case& c, const std::vector<PodPlace>& places) {
  double sum = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].node >= 0) sum += share(c.pods[i]);
  }
  return sum;
}

/// Most GPU share that any choice of nodes and GPUs gives, pods left out as one likes.
double most_allocated(std::vector<FreeNode>& nodes, const std::vector<Pod>& pods, std::size_t i) {
  if (i == pods.size()) return 0;
  double best = most_allocated(nodes, pods, i + 1);
  for (FreeNode& node : nodes) {
    for (const auto& gpus : ways(node, pods[i])) {
      const FreeNode before = node;
      subtract(node, pods[i], gpus);
      best = std::max(best, share(pods[i]) + most_allocated(nodes, pods, i + 1));
      node = before;
    }
  }
  return best;
}

TEST(PodsTest, NoNodeAndNoGpuGivesMoreThanItHasAndNoPodIsLeftOutThatFits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed, 5, 40);
    for (const PodPolicyInfo& policy : pod_policies()) {
      const auto places = placed(c, policy, seed);
      EXPECT_EQ(pod_violations(c.nodes, c.pods, places), std::vector<std::string>{});
      std::vector<FreeNode> left = c.nodes;
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i].node >= 0) {
          subtract(left[static_cast<std::size_t>(places[i].node)], c.pods[i], places[i].gpus);
          continue;
        }
        for (const FreeNode& node : left) {
          EXPECT_TRUE(ways(node, c.pods[i]).empty()) << policy.name << " left out " << i;
        }
      }
    }
  }
}

TEST(PodsTest, AGpuHasNoMorePodsThanItMayHave) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Case c = random_case(3000 + seed, 4, 40);
    for (Pod& pod : c.pods) pod.gpu_milli = pod.gpus == 1 ? pod.gpu_milli / 4 + 1 : 1000;
    for (const PodPolicyInfo& policy : pod_policies()) {
      for (const int most : {1, 2, 4}) {
        const auto places = placed(c, policy, seed, most);
        EXPECT_EQ(pod_violations(c.nodes, c.pods, places, most), std::vector<std::string>{});
        EXPECT_EQ(most == 1 && places == placed(c, policy, seed), false) << policy.name;
      }
    }
  }
  const std::vector<FreeNode> taken{{.name = "n", .gpu_milli = {400, 900}, .gpu_pods = {1, 3}}};
  const std::vector<Pod> part{{.gpus = 1, .gpu_milli = 500}};
  const PodOptions four{.policy = "best_fit", .pods_per_gpu = 4};
  const PodOptions three{.policy = "best_fit", .pods_per_gpu = 3};
  EXPECT_EQ(place_pods(taken, part, four)[0].gpus, std::vector<int>{1});
  EXPECT_EQ(place_pods(taken, part, three)[0].node, -1);
  EXPECT_EQ(pod_violations(taken, part, std::vector<PodPlace>{{0, {1}}}, 3),
            std::vector<std::string>{"node 'n' has 4 pods on GPU 1, at most 3"});
}

TEST(PodsTest, PodsThatWereTooManyOnAGpuBeforeAreNoFaultOfThePlaces) {
  const std::vector<FreeNode> nodes{{.name = "n", .gpu_milli = {1000, 1000}, .gpu_pods = {3, 0}}};
  const std::vector<Pod> pods{{.gpus = 1}};
  const auto places = place_pods(nodes, pods, {.policy = "best_fit", .pods_per_gpu = 1});
  EXPECT_EQ(places[0].gpus, std::vector<int>{1});
  EXPECT_EQ(pod_violations(nodes, pods, places, 1), std::vector<std::string>{});
  EXPECT_EQ(pod_violations(nodes, pods, std::vector<PodPlace>{{0, {0}}}, 1),
            std::vector<std::string>{"node 'n' has 4 pods on GPU 0, at most 1"});
  EXPECT_EQ(refusal([&] { (void)pod_violations(nodes, pods, places, -1); }),
            "pod_violations: pods_per_gpu is -1, expected 0 or more");
}

TEST(PodsTest, NoPolicyGivesMoreThanTheBestOfAllChoicesAndOursMoreThanRandom) {
  double most = 0;
  std::vector<std::pair<std::string, double>> sums;
  for (const PodPolicyInfo& policy : pod_policies()) sums.emplace_back(policy.name, 0);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = random_case(1000 + seed, 2, 7);
    const double best = most_allocated(c.nodes, c.pods, 0);
    most += best;
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const double sum = allocated(c, placed(c, pod_policies()[k], seed));
      EXPECT_LE(sum, best + 1e-9) << sums[k].first;
      sums[k].second += sum;
    }
  }
  const auto of = [&](const std::string& name) {
    return std::find_if(sums.begin(), sums.end(), [&](auto& s) { return s.first == name; })->second;
  };
  EXPECT_GT(of("fgd_cpu"), 0.85 * most);  // of what hindsight gives, which leaves pods out
  EXPECT_GT(of("fgd_cpu"), of("random"));
}

/// Expected fragmentation as the paper defines it, over the whole mix, memory aside.
double fragmentation(const FreeNode& node, const std::vector<Pod>& mix) {
  const double total = std::accumulate(node.gpu_milli.begin(), node.gpu_milli.end(), 0);
  double sum = 0;
  for (Pod pod : mix) {
    pod.memory_mib = 0;
    double lost = 0;
    for (const int gpu : node.gpu_milli) lost += gpu < pod.gpu_milli ? gpu : 0;
    sum += pod.gpus == 0 || ways(node, pod).empty() ? total : lost;
  }
  return sum / static_cast<double>(mix.size());
}

TEST(PodsTest, FgdTakesTheNodeAndGpuThatRaiseTheExpectedFragmentationLeast) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Case c = random_case(2000 + seed, 4, 25);
    // Twelve kinds at most, as many of each: all of them belong to the most frequent 95 %.
    for (std::size_t i = 12; i < c.pods.size(); ++i) c.pods[i] = c.pods[i % 12];
    std::vector<Pod> mix(c.pods.begin(), c.pods.begin() + 12);
    PodOptions options{.policy = "fgd", .seed = seed, .expected = mix};
    const auto places = place_pods(c.nodes, c.pods, options);
    std::vector<FreeNode> left = c.nodes;
    for (std::size_t i = 0; i < places.size(); ++i) {
      double best = -1, own = -1;
      for (std::size_t n = 0; n < left.size(); ++n) {
        for (const auto& gpus : ways(left[n], c.pods[i])) {
          FreeNode after = left[n];
          subtract(after, c.pods[i], gpus);
          const double rise = fragmentation(after, mix) - fragmentation(left[n], mix);
          const double score = std::trunc(100 / (1 + std::exp(rise / 1000)));
          best = std::max(best, score);
          if (static_cast<int>(n) == places[i].node && gpus == places[i].gpus) own = score;
        }
      }
      EXPECT_EQ(own, best) << "pod " << i << ", seed " << seed;
      if (places[i].node >= 0) {
        subtract(left[static_cast<std::size_t>(places[i].node)], c.pods[i], places[i].gpus);
      }
    }
  }
}

TEST(PodsTest, WhatIsPlacedInTwoCallsIsPlacedAsInOne) {
  for (const PodPolicyInfo& policy : pod_policies()) {
    // `random` counts its pods, `gpu_clustering` knows the pods that it placed itself.
    if (policy.name == "random" || policy.name == "gpu_clustering") continue;
    const Case c = random_case(7, 6, 30);
    const auto whole = placed(c, policy);
    PodOptions options{.policy = policy.name};
    if (policy.reads_expected) options.expected = c.pods;
    Case rest = c;
    for (std::size_t i = 0; i < 15; ++i) {
      if (whole[i].node < 0) continue;
      subtract(rest.nodes[static_cast<std::size_t>(whole[i].node)], c.pods[i], whole[i].gpus);
    }
    rest.pods.erase(rest.pods.begin(), rest.pods.begin() + 15);
    const auto second = place_pods(rest.nodes, rest.pods, options);
    EXPECT_TRUE(std::equal(second.begin(), second.end(), whole.begin() + 15)) << policy.name;
  }
}

TEST(PodsTest, TheSeedAloneDecidesBetweenEqualNodes) {
  Case c;
  for (int i = 0; i < 20; ++i) {
    c.nodes.push_back({.cpu_milli = 8000, .memory_mib = 8192, .gpu_milli = {1000, 1000}});
    c.pods.push_back({.cpu_milli = 1000, .gpus = 2});
  }
  for (const PodPolicyInfo& policy : pod_policies()) {
    EXPECT_EQ(placed(c, policy, 1), placed(c, policy, 1)) << policy.name;
    EXPECT_NE(placed(c, policy, 1), placed(c, policy, 2)) << policy.name;
  }
}

TEST(PodsTest, GpusThatTheCpusCannotFeedCountAsFragments) {
  // A pod of few CPUs suits the node of few CPUs, which leaves the other to pods of many.
  const std::vector<FreeNode> nodes{{.cpu_milli = 4000, .gpu_milli = {1000, 1000}},
                                    {.cpu_milli = 64000, .gpu_milli = {1000, 1000}}};
  const std::vector<Pod> mix{{.cpu_milli = 2000, .gpus = 1}, {.cpu_milli = 30000, .gpus = 1}};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const PodOptions options{.seed = seed, .expected = mix};
    EXPECT_EQ(place_pods(nodes, std::vector<Pod>{mix[0]}, options)[0].node, 0);
    EXPECT_EQ(place_pods(nodes, std::vector<Pod>{mix[1]}, options)[0].node, 1);
  }
}

TEST(PodsTest, WrongPlacesAreSaidInSentences) {
  const std::vector<FreeNode> nodes{
      {.name = "n", .cpu_milli = 1000, .memory_mib = 10, .gpu_milli = {500}, .gpu_model = "A"}};
  const Pod pod{.name = "p", .cpu_milli = 600, .memory_mib = 6, .gpus = 1, .gpu_milli = 300};
  const auto said = [&](std::vector<Pod> pods, std::vector<PodPlace> places) {
    return pod_violations(nodes, pods, places);
  };
  using Sentences = std::vector<std::string>;
  EXPECT_EQ(said({pod}, {{0, {0}}}), Sentences{});
  EXPECT_EQ(said({pod, pod}, {{0, {0}}, {0, {0}}}),
            (Sentences{"node 'n' has -200 thousandths of a CPU left", "node 'n' has -2 MiB left",
                       "node 'n' has -100 thousandths of GPU 0 left"}));
  EXPECT_EQ(said({pod}, {{0, {}}}), Sentences{"pod 'p' has 0 GPUs, asks 1"});
  EXPECT_EQ(said({pod}, {{0, {1}}}), Sentences{"pod 'p' is on GPU 1 of 1"});
  EXPECT_EQ(said({pod}, {{1, {0}}}), Sentences{"pod 'p' is on node 1 of 1"});
  Pod other = pod;
  other.gpu_models = {"B"};
  EXPECT_EQ(said({other}, {{0, {0}}}), Sentences{"pod 'p' is on a GPU 'A' that it does not allow"});
  EXPECT_EQ(refusal([&] { (void)said({pod}, {}); }), "pod_violations: 1 pods, 0 places");
}

TEST(PodsTest, WhatCannotBePlacedIsRefused) {
  const auto refused = [](const FreeNode& node, const Pod& pod, PodOptions options) {
    return refusal(
        [&] { (void)place_pods(std::vector<FreeNode>{node}, std::vector<Pod>{pod}, options); });
  };
  const PodOptions plain{.policy = "best_fit"};
  EXPECT_EQ(refused({}, {}, plain), "");
  EXPECT_EQ(refused({.name = "n", .cpu_milli = -1}, {}, plain),
            "node 'n': cpu_milli is -1, expected 0 to 10^12");
  EXPECT_EQ(refused({}, {.name = "p", .memory_mib = std::int64_t{1} << 60}, plain),
            "pod 'p': memory_mib is 1152921504606846976, expected 0 to 10^12");
  EXPECT_EQ(refused({}, {.gpus = std::numeric_limits<int>::max()}, plain), "");
  EXPECT_EQ(refused({.name = "n", .gpu_milli = {1001}}, {}, plain),
            "node 'n': gpu_milli is 1001, expected 0 to 1000");
  EXPECT_EQ(refused({.name = "n", .gpu_milli = {1000}, .gpu_pods = {1, 1}}, {}, plain),
            "node 'n': gpu_pods of 2 GPUs, it has 1");
  EXPECT_EQ(refused({.name = "n", .gpu_milli = {1000}, .gpu_pods = {-1}}, {}, plain),
            "node 'n': gpu_pods is -1, expected 0 or more");
  EXPECT_EQ(refused({}, {}, {.policy = "best_fit", .pods_per_gpu = -1}),
            "place_pods: pods_per_gpu is -1, expected 0 or more");
  EXPECT_EQ(refused({}, {.name = "p", .gpus = -1}, plain),
            "pod 'p': gpus is -1, expected 0 or more");
  EXPECT_EQ(refused({}, {.name = "p", .gpus = 1, .gpu_milli = 0}, plain),
            "pod 'p': gpu_milli is 0, expected 1 to 1000");
  EXPECT_EQ(refused({}, {.name = "p", .gpus = 0, .gpu_milli = 500}, plain),
            "pod 'p': gpu_milli is 500 of no GPU");
  EXPECT_EQ(refused({}, {}, {}), "") << "a policy of its own where none is named";
  EXPECT_EQ(refused({}, {.name = "p", .gpus = 2, .gpu_milli = 500}, plain),
            "pod 'p': a part of each of 2 GPUs; parts are of one GPU");
  EXPECT_EQ(
      refused({}, {}, {.policy = "luck"}),
      "place_pods: policy is 'luck', expected one of random, best_fit, dot_product, gpu_packing, "
      "gpu_clustering, fgd, fgd_cpu");
  EXPECT_EQ(refused({}, {}, {.policy = "fgd"}), "place_pods: the policy 'fgd' needs expected pods");
  const std::vector<Pod> mix(1);
  EXPECT_EQ(refused({}, {}, {.policy = "best_fit", .expected = mix}),
            "place_pods: the policy 'best_fit' does not read expected pods");
}

// ---- mixes

const Tier kCard{
    .name = "card", .gpu = "A100", .memory_gb = 40, .idle_watts = 45, .busy_watts = 250};

TEST(MixesTest, TwoJobsShareAsAPairAndMoreByTheProductOfTheirPairs) {
  const std::vector<Profile> jobs{{.sm_activity = 0.9, .memory_gb = 4},
                                  {.sm_activity = 0.5, .memory_gb = 4},
                                  {.sm_activity = 0.2, .memory_gb = 4}};
  const auto pair = [&](std::size_t i, std::size_t j) {
    return shared_speeds(jobs[i], jobs[j], Sharing::mps, kCard, nullptr).first;
  };
  const auto two = mix_speeds(std::span(jobs).first(2), Sharing::mps, kCard);
  EXPECT_EQ(two, (std::vector<double>{pair(0, 1), pair(1, 0)}));
  const auto three = mix_speeds(jobs, Sharing::mps, kCard);
  EXPECT_DOUBLE_EQ(three[1], pair(1, 0) * pair(1, 2));
  EXPECT_LT(three[1], two[1]);
  EXPECT_EQ(mix_speeds(std::span(jobs).first(1), Sharing::naive, kCard), std::vector<double>{1.0});
}

TEST(MixesTest, JobsThatFillACardTakeTurnsUnderTimeSlices) {
  const std::vector<Profile> jobs(4, {.sm_activity = 1, .memory_gb = 4, .memory_activity = 1});
  const double pair = shared_speeds(jobs[0], jobs[1], Sharing::naive, kCard, nullptr).first;
  for (const double speed : mix_speeds(jobs, Sharing::naive, kCard)) {
    EXPECT_DOUBLE_EQ(speed, 1 / (1 + 3 * (1 / pair - 1)));
    EXPECT_NEAR(speed, 0.25, 0.01);
  }
  const std::vector<KindPair> measured{{"A100", Sharing::naive, "a", "b", 0.8, 1.0},
                                       {"A100", Sharing::naive, "a", "c", 2.0, 2.0}};
  const Pairs pairs = learn_pairs(measured);
  const std::vector<Profile> mix{{.kind = "a"}, {.kind = "b"}, {.kind = "c"}};
  EXPECT_DOUBLE_EQ(mix_speeds(mix, Sharing::naive, kCard, &pairs)[0], 1.25 * 0.5);
}

TEST(MixesTest, AMeasuredSpeedAboveOneIsKept) {
  const std::vector<KindPair> measured{{"A100", Sharing::mps, "a", "b", 0.8, 1.25},
                                       {"A100", Sharing::mps, "a", "c", 1.0, 2.0}};
  const Pairs pairs = learn_pairs(measured);
  const std::vector<Profile> jobs{{.kind = "a"}, {.kind = "b"}, {.kind = "c"}};
  EXPECT_EQ(mix_speeds(std::span(jobs).first(2), Sharing::mps, kCard, &pairs),
            (std::vector<double>{1.25, 0.8}));
  EXPECT_DOUBLE_EQ(mix_speeds(jobs, Sharing::mps, kCard, &pairs)[0], 1.25);
  Rows speeds(2, 5);
  speeds(0, 2) = 1.02;  // as logged: a step on 3g can be shorter than on the whole card
  speeds(1, 2) = 0.5;
  EXPECT_DOUBLE_EQ(best_partition(speeds).throughput, 1.52);
}

TEST(MixesTest, WhatDoesNotFitStandsStillAndTheRestIsRefused) {
  const std::vector<Profile> large(4, Profile{.memory_gb = 11});
  EXPECT_EQ(mix_speeds(large, Sharing::mps, kCard), std::vector<double>(4, 0.0));
  const std::vector<Profile> five(5);
  EXPECT_EQ(refusal([&] { (void)mix_speeds(five, Sharing::mps, kCard); }),
            "mix_speeds: 5 jobs, expected 1 to 4");
  EXPECT_EQ(refusal([&] { (void)mix_speeds({}, Sharing::mps, kCard); }),
            "mix_speeds: 0 jobs, expected 1 to 4");
  EXPECT_EQ(refusal([&] { (void)mix_speeds(large, Sharing::mig, kCard); }),
            "mix_speeds: 'mig', expected naive or mps");
  const auto alone = [](const Profile& job) {
    return refusal([&] { (void)mix_speeds({&job, 1}, Sharing::mps, kCard); });
  };
  EXPECT_EQ(alone({.sm_activity = 7}), "mix_speeds: activity is 7, expected 0 to 1");
  EXPECT_EQ(alone({.memory_gb = -3}), "mix_speeds: memory is -3 GB, expected 0 or more");
}

// ---- slices

TEST(SlicesTest, ACardIsCutInNineteenWaysEachWithinItsComputeAndMemory) {
  std::vector<std::vector<std::string>> seen;
  for (const Partition& partition : partitions()) {
    int compute = 0, memory = 0;
    for (const std::string& name : partition.slices) {
      for (const Slice& slice : slices()) {
        compute += slice.name == name ? slice.compute : 0;
        memory += slice.name == name ? slice.memory : 0;
      }
    }
    EXPECT_LE(compute, 7);
    EXPECT_LE(memory, 8);
    EXPECT_EQ(partition.jobs, std::vector<int>(partition.slices.size(), -1));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), partition.slices), 0);
    seen.push_back(partition.slices);
  }
  EXPECT_EQ(seen.size(), 19u);
}

TEST(SlicesTest, TheWholeCardIsFullSpeedAndASmallerSliceIsNeverFaster) {
  for (const double watts : {0.0, 45.0, 100.0, 250.0}) {
    const std::vector<Profile> job{{.sm_activity = 0.7, .memory_gb = 9, .mean_watts = watts}};
    const Rows speeds = slice_speeds(job, kCard);
    EXPECT_DOUBLE_EQ(speeds(0, 0), 1);
    for (int s = 1; s < 5; ++s) EXPECT_LE(speeds(0, s), speeds(0, s - 1));
    EXPECT_GT(speeds(0, 3), 0);
    EXPECT_EQ(speeds(0, 4), 0) << "9 GB on 5";
  }
  const std::vector<Profile> idle{{.mean_watts = 45}};
  EXPECT_DOUBLE_EQ(slice_speeds(idle, kCard)(0, 4), 1);
  const std::vector<Profile> hot{{.mean_watts = 251}};
  EXPECT_NE(refusal([&] { (void)slice_speeds(hot, kCard); }).find("watts is 251"),
            std::string::npos);
}

/// The same by trying every order of the jobs, and of nobodies, on every partition.
std::pair<int, double> best_by_trying(const Rows& speeds) {
  std::pair<int, double> best{0, 0};
  const auto all = slices();
  for (const Partition& partition : partitions()) {
    std::vector<int> order(static_cast<std::size_t>(speeds.rows()));
    std::iota(order.begin(), order.end(), 0);
    order.resize(std::max(order.size(), partition.slices.size()), -1);
    std::sort(order.begin(), order.end());
    do {
      std::pair<int, double> found{0, 0};
      for (std::size_t s = 0; s < partition.slices.size(); ++s) {
        if (order[s] < 0) continue;
        const auto column = std::find_if(all.begin(), all.end(), [&](const Slice& slice) {
          return slice.name == partition.slices[s];
        });
        const double speed = speeds(order[s], column - all.begin());
        if (speed > 0) found = {found.first + 1, found.second + speed};
      }
      best = std::max(best, found);
    } while (std::next_permutation(order.begin(), order.end()));
  }
  return best;
}

TEST(SlicesTest, TheBestPartitionIsThatOfAnExhaustiveSearch) {
  const detail::Rng rng{3};
  std::uint64_t draw = 0;
  for (int round = 0; round < 60; ++round) {
    Rows speeds(1 + round % 5, 5);
    for (std::ptrdiff_t j = 0; j < speeds.rows(); ++j) {
      for (int s = 0; s < 5; ++s) {
        const double u = rng.uniform(1, draw++);
        speeds(j, s) = u < 0.2 ? 0 : u;
      }
    }
    const Partition found = best_partition(speeds);
    const auto [count, sum] = best_by_trying(speeds);
    EXPECT_NEAR(found.throughput, sum, 1e-12);
    EXPECT_EQ(std::count_if(found.jobs.begin(), found.jobs.end(), [](int j) { return j >= 0; }),
              count);
  }
}

TEST(SlicesTest, WrongSpeedsAreRefused) {
  EXPECT_EQ(refusal([] { (void)best_partition(Rows(8, 5)); }),
            "best_partition: 8 jobs, expected 0 to 7, the slices of a card");
  EXPECT_EQ(refusal([] { (void)best_partition(RowsView(nullptr, -1, 5)); }),
            "best_partition: -1 jobs, expected 0 to 7, the slices of a card");
  EXPECT_EQ(refusal([] { (void)best_partition(Rows(1, 4)); }),
            "best_partition: 4 columns, expected 5: 7g, 4g, 3g, 2g, 1g");
  EXPECT_EQ(refusal([] { (void)best_partition(RowsView(nullptr, 2, 5)); }),
            "best_partition: speeds is null, expected 2 x 5 numbers");
  Rows below(1, 5);
  below(0, 3) = -0.5;
  EXPECT_EQ(refusal([&] { (void)best_partition(below); }),
            "best_partition: job 0 has the speed -0.5, expected 0 or more and finite");
  EXPECT_EQ(best_partition(Rows(0, 5)).jobs, std::vector<int>{-1});
}

TEST(SlicesTest, APowerBelowZeroIsNotTakenForUnknown) {
  const Tier tier = make_tier("a", "A100 SXM4 80GB", 1, 1);
  for (const double watts : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::vector<Profile> jobs{{.mean_watts = watts}};
    const std::string said = refusal([&] { (void)slice_speeds(jobs, tier); });
    EXPECT_TRUE(said.starts_with("slice_speeds: mean_watts is ")) << said;
  }
}

}  // namespace
}  // namespace glidepath
