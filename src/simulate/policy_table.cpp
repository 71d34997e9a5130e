// SPDX-License-Identifier: Apache-2.0
#include "simulate/policy_table.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/names.hpp"

namespace glidepath {
namespace detail {
namespace {

constexpr double kSessionS = 3600;
constexpr double kLookIntervalS =
    300;  ///< losses come in between events: look at them now and then
constexpr double kRoundS = 360, kGoodputRoundS = 60;

using Text = std::string_view;
constexpr Text kTiresias = "queue480, Philly", kGavel = "tiers120, Gavel's",
               kSorted = "random workloads", kAllChoices = "small instances",
               kInvariants = "invariants";
constexpr std::array<Text, 1> kSessions{"session_s"}, kReadsRounds{"round_s"};
constexpr std::array<Text, 2> kTimes{"session_s", "round_s"};
constexpr std::array<Text, 3> kTimesAndUsers{"session_s", "round_s", "user_gpus"};
constexpr std::array<Text, 3> kIndex{"session_s", "round_s", "patience"};
constexpr std::array<Text, 5> kFairness{"session_s", "round_s", "max_ftf", "long_share",
                                        "patience"};
constexpr std::array<Text, 5> kPlans{"session_s", "round_s", "sharing", "user_gpus", "planner"};
constexpr std::array<Text, 6> kPlansOrOrder{"session_s", "round_s", "sharing",
                                            "user_gpus", "planner", "patience"};

constexpr std::array kPolicies{
    PolicyTraits{
        .info = {.name = "fifo",
                 .description = "order of arrival; the first that does not fit blocks the others",
                 .checked_on = kTiresias,
                 .compared = true},
        .queue = &run_fifo,
        .play = PlayRule{.unfit = Unfit::blocks}},
    PolicyTraits{.info = {.name = "first_fit",
                          .description = "order of arrival; what does not fit is passed over",
                          .checked_on = kTiresias},
                 .queue = &run_first_fit,
                 .play = PlayRule{}},
    PolicyTraits{.info = {.name = "slurm_backfill",
                          .description = "priority, then arrival, with EASY backfill",
                          .source = "Lifka 1995",
                          .checked_on = kSorted,
                          .sees = Forecasts::all,
                          .reads = kTimesAndUsers},
                 .queue = &run_slurm_backfill,
                 .play = PlayRule{.reserves = true, .classes = true}},
    PolicyTraits{.info = {.name = "sjf",
                          .description = "smallest gang first, preemptive",
                          .source = "Gu et al., NSDI 2019",
                          .checked_on = kTiresias},
                 .queue = &run_sjf,
                 .play = PlayRule{.order = PlayOrder::gang, .preempts = true}},
    PolicyTraits{.info = {.name = "srtf",
                          .description = "shortest remaining time first, preemptive",
                          .source = "Gu et al., NSDI 2019",
                          .checked_on = kTiresias,
                          .sees = Forecasts::durations,
                          .compared = true,
                          .reads = kReadsRounds},
                 .queue = &run_srtf,
                 .play = PlayRule{.order = PlayOrder::time, .preempts = true}},
    PolicyTraits{.info = {.name = "srsf",
                          .description = "least remaining time x GPUs first, preemptive",
                          .source = "Gu et al., NSDI 2019",
                          .checked_on = kTiresias,
                          .sees = Forecasts::durations,
                          .reads = kReadsRounds},
                 .queue = &run_srsf,
                 .play = PlayRule{.order = PlayOrder::service, .preempts = true}},
    PolicyTraits{
        .info = {.name = "edf",
                 .description = "earliest deadline first, preemptive; those without one last",
                 .source = "Liu and Layland 1973",
                 .checked_on = kSorted},
        .queue = &run_edf},
    PolicyTraits{.info = {.name = "las",
                          .description = "discretised 2D-LAS: three queues by attained "
                                         "GPU-seconds",
                          .source = "Gu et al., NSDI 2019",
                          .checked_on = kTiresias,
                          .reads = kReadsRounds},
                 .queue = &run_las,
                 .play = PlayRule{.order = PlayOrder::level, .preempts = true}},
    PolicyTraits{.info = {.name = "gittins",
                          .description = "largest Gittins index of remaining service first",
                          .source = "Gittins 1989; Aalto, Ayesta, Righter 2009",
                          .checked_on = kSorted,
                          .sees = Forecasts::all,
                          .reads = kIndex},
                 .make = &make_gittins,
                 .queue = &run_gittins,
                 .packs = true,
                 .play = PlayRule{.order = PlayOrder::index, .preempts = true}},
    PolicyTraits{.info = {.name = "fair_finish",
                          .description = "late jobs by deadline, the others as gittins",
                          .source = "Mahajan et al. 2020; Bender et al. 1998",
                          .checked_on = kInvariants,
                          .sees = Forecasts::all,
                          .stops_at_target = true,
                          .session_s = kLookIntervalS,
                          .reads = kFairness},
                 .make = &make_fair_finish,
                 .queue = &run_fair_finish,
                 .packs = true,
                 .plans_tiers = true},
    PolicyTraits{.info = {.name = "max_min",
                          .description = "max-min fair shares of time, by each job's rates",
                          .source = "Narayanan et al., OSDI 2020",
                          .checked_on = kGavel,
                          .round_s = kRoundS,
                          .reads = kReadsRounds},
                 .shares = Shares::max_min},
    PolicyTraits{.info = {.name = "max_min_unaware",
                          .description = "equal shares of time, as if all tiers were alike",
                          .source = "Narayanan et al., OSDI 2020",
                          .checked_on = kGavel,
                          .round_s = kRoundS,
                          .reads = kReadsRounds},
                 .shares = Shares::max_min_unaware},
    PolicyTraits{.info = {.name = "fifo_perf",
                          .description = "order of arrival, each on the fastest tier with room",
                          .source = "Narayanan et al., OSDI 2020",
                          .checked_on = kGavel,
                          .round_s = kRoundS,
                          .reads = kReadsRounds},
                 .shares = Shares::in_order},
    PolicyTraits{.info = {.name = "isolated",
                          .description = "1/n of the time of each tier for each of n jobs",
                          .source = "Narayanan et al., OSDI 2020",
                          .checked_on = kGavel,
                          .round_s = kRoundS,
                          .reads = kReadsRounds},
                 .shares = Shares::equal},
    PolicyTraits{
        .info = {.name = "themis",
                 .description = "plan() with the objective fairness, not the paper's auction",
                 .source = "Mahajan et al., NSDI 2020",
                 .checked_on = kAllChoices,
                 .sees = Forecasts::all,
                 .stops_at_target = true,
                 .session_s = kLookIntervalS,
                 .reads = kPlans},
        .make = &make_themis,
        .packs = true},
    PolicyTraits{.info = {.name = "optimus",
                          .description = "plan() with the objective known_size",
                          .source = "Peng et al., EuroSys 2018",
                          .checked_on = kAllChoices,
                          .sees = Forecasts::all,
                          .stops_at_target = true,
                          .session_s = kLookIntervalS,
                          .reads = kPlans},
                 .make = &make_optimus,
                 .packs = true},
    PolicyTraits{.info = {.name = "slaq",
                          .description = "plan() with the objective quality",
                          .source = "Zhang et al., SoCC 2017",
                          .checked_on = kInvariants,
                          .sees = Forecasts::all,
                          .stops_at_target = true,
                          .session_s = kLookIntervalS,
                          .reads = kPlans},
                 .make = &make_slaq,
                 .looks_ahead = true,
                 .packs = true},
    // Nobody ends for a long time where the longest go first: a round shows who is late.
    PolicyTraits{
        .info = {.name = "makespan",
                 .description = "longest remaining time first, each where it is worth most",
                 .checked_on = "Gavel's",
                 .sees = Forecasts::all,
                 .stops_at_target = true,
                 .session_s = kLookIntervalS,
                 .round_s = kRoundS,
                 .reads = kTimes},
        .make = &make_makespan,
        .packs = true},
    PolicyTraits{.info = {.name = "session_fifo",
                          .description = "fifo with a session each, then to the tail",
                          .checked_on = "Philly",
                          .compared = true,
                          .session_s = kSessionS,
                          .reads = kSessions},
                 .queue = &run_session_fifo},
    PolicyTraits{.info = {.name = "dare",
                          .description = "profile for a session, end what is out of reach, run by "
                                         "Gittins index",
                          .checked_on = "supercom",
                          .sees = Forecasts::all,
                          .stops_at_target = true,
                          .compared = true,
                          .session_s = kLookIntervalS,
                          .reads = kTimes},
                 .make = &make_dare,
                 .packs = true},
    PolicyTraits{.info = {.name = "best_value",
                          .description = "plan() with the objectives of `planner`, jct by default",
                          .checked_on = kAllChoices,
                          .sees = Forecasts::all,
                          .stops_at_target = true,
                          .compared = true,
                          .session_s = kLookIntervalS,
                          .elastic = true,
                          .reads = kPlansOrOrder},
                 .make = &make_best_value,
                 .order_queue = &run_gittins,
                 .takes_objective = true,
                 .packs = true,
                 .play = PlayRule{.order = PlayOrder::index,
                                  .preempts = true,
                                  .classes = true,
                                  .weighs = true,
                                  .stays = kStayFactor},
                 .follows_leader = true,
                 .rests = true},
    PolicyTraits{
        .info = {.name = "learned",
                 .description = "best_value, each value corrected by a small learned function",
                 .checked_on = "Philly",
                 .sees = Forecasts::all,
                 .stops_at_target = true,
                 .session_s = kLookIntervalS,
                 .reads = kPlansOrOrder},
        .make = &make_learned,
        .order_queue = &run_learned,
        .packs = true,
        .follows_leader = true},
    PolicyTraits{.info = {.name = "goodput",
                          .description = "largest sum of log goodput; any gang at once",
                          .source = "Kelly 1997; Qiao et al., OSDI 2021",
                          .checked_on = kAllChoices,
                          .round_s = kGoodputRoundS,
                          .elastic = true,
                          .reads = kReadsRounds},
                 .make = &make_goodput,
                 .packs = true},
    PolicyTraits{.info = {.name = "sia",
                          .description = "the program of Sia; gangs at most double",
                          .source = "Jayaram Subramanya et al., SOSP 2023",
                          .checked_on = "Sia's eight",
                          .round_s = kGoodputRoundS,
                          .elastic = true,
                          .reads = kReadsRounds},
                 .make = &make_sia,
                 .packs = true},
    PolicyTraits{.info = {.name = "pollux",
                          .description = "the fitness of Pollux, by a genetic algorithm",
                          .source = "Qiao et al., OSDI 2021",
                          .checked_on = "Sia's eight",
                          .round_s = kGoodputRoundS,
                          .elastic = true,
                          .reads = kReadsRounds},
                 .make = &make_pollux,
                 .packs = true},
};

#ifndef __SANITIZE_ADDRESS__  // with which GCC takes no address of a function for a constant
constexpr bool complete() {
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const PolicyTraits& row = kPolicies[i];
    if (row.info.name.empty() || row.info.description.empty() || row.info.checked_on.empty())
      return false;
    const int ways = (row.make != nullptr || row.queue != nullptr) + row.shares.has_value();
    if (ways != 1) return false;
    if (row.shares && !row.info.round_s) return false;
    for (std::size_t k = 0; k < i; ++k) {
      if (kPolicies[k].info.name == row.info.name) return false;
    }
  }
  return true;
}
static_assert(
    complete(),
    "each row has a name of its own, a description, what it was checked on, and one way to decide");
#endif

template <class Get>
constexpr auto column(Get get) {
  std::array<decltype(get(kPolicies[0])), kPolicies.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = get(kPolicies[i]);
  return out;
}
constexpr auto kInfos = column([](const PolicyTraits& row) { return row.info; });
constexpr auto kNames = column([](const PolicyTraits& row) { return row.info.name; });

}  // namespace

const PolicyTraits& policy_named(std::string_view name) {
  const auto row = std::find_if(kPolicies.begin(), kPolicies.end(),
                                [&](const PolicyTraits& each) { return each.info.name == name; });
  if (row != kPolicies.end()) return *row;
  refuse("simulate: policy is '", name, "', expected one of ", listed(kNames));
}

const PlayRule& play_rule_named(std::string_view policy) {
  std::vector<std::string_view> played;
  for (const PolicyTraits& row : kPolicies) {
    if (!row.play) continue;
    if (row.info.name == policy) return *row.play;
    played.push_back(row.info.name);
  }
  refuse("start_times: policy is '", policy,
         "', expected one that is played forward: ", listed(played));
}

bool for_completion(const std::vector<WeightedObjective>& goals) {
  return goals.size() == 1 && (goals.front().objective == Objective::jct ||
                               goals.front().objective == Objective::learned);
}

bool plain(const Workload& workload, const SimulationOptions& options) {
  if (workload.tiers.size() != 1 || !workload.curves.empty()) return false;
  return !options.in_nodes || workload.tiers.front().gpus_per_node == 1;
}

bool chooses_gangs(const PolicyInfo& policy, const Workload& workload) {
  return policy.elastic &&
         !std::ranges::all_of(workload.jobs, &std::vector<Gang>::empty, &WorkloadJob::gangs);
}

void refuse_unread(const SimulationOptions& options, std::string_view policy,
                   std::span<const std::string_view> reads) {
  for (const auto& [option, given] : {std::pair{"session_s", options.session_s.has_value()},
                                      std::pair{"round_s", options.round_s.has_value()},
                                      std::pair{"sharing", options.sharing != Sharing::exclusive},
                                      std::pair{"user_gpus", options.user_gpus.has_value()},
                                      std::pair{"planner", options.planner.has_value()},
                                      std::pair{"max_ftf", options.max_ftf.has_value()},
                                      std::pair{"long_share", options.long_share.has_value()},
                                      std::pair{"patience", !options.patience}}) {
    if (!given || std::ranges::find(reads, option) != reads.end()) continue;
    std::string others;
    for (const PolicyTraits& row : kPolicies) {
      if (std::ranges::find(row.info.reads, option) == row.info.reads.end()) continue;
      others += (others.empty() ? "" : ", ") + std::string(row.info.name);
    }
    refuse("simulate: ", policy, " does not read ", option, ", known to read it: ", others);
  }
}

SimulationOptions with_defaults_of(const PolicyInfo& policy, const Workload& workload,
                                   SimulationOptions options) {
  const bool has_sessions = !policy.stops_at_target || !workload.curves.empty();
  if (!options.session_s && has_sessions) options.session_s = policy.session_s;
  if (!options.round_s) options.round_s = policy.round_s;
  if (!options.stop_at_target) options.stop_at_target = policy.stops_at_target;
  return options;
}

}  // namespace detail

std::span<const PolicyInfo> policies() noexcept { return detail::kInfos; }
std::span<const std::string_view> policy_names() noexcept { return detail::kNames; }

std::string_view name(Forecasts forecasts) noexcept {
  return detail::name_in(detail::Names<3>{"none", "durations", "all"}, forecasts);
}

}  // namespace glidepath
