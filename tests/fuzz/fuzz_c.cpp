// SPDX-License-Identifier: Apache-2.0
// The C interface on structs of arbitrary fields, sizes and NULLs: each call is done or refused in
// a sentence, and what it gives can be read and given back.
#include "glidepath/glidepath.h"

#include <array>
#include <vector>

#include "case.hpp"

namespace {

using glidepath::fuzz::Case;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Done, or refused as the caller's own fault.
bool done(glidepath_status status) {
  if (status == GLIDEPATH_OK) return true;
  GLIDEPATH_HOLDS(status == GLIDEPATH_INPUT_ERROR);
  GLIDEPATH_HOLDS(glidepath_last_error()[0] != '\0');
  return false;
}

/// Mostly the right size, else that of another version.
template <class T>
T sized(Case& given) {
  T made{};
  const int odd = given.byte();
  made.size = odd < 240 ? sizeof(T) : odd % sizeof(T);
  return made;
}

/// Mostly the column, else NULL.
template <class T>
const T* maybe(Case& given, const std::vector<T>& column) {
  return given.byte() < 224 ? column.data() : nullptr;
}

const char* text(Case& given) {
  constexpr std::array<const char*, 12> kTexts{nullptr, nullptr, nullptr,    "min", "max",  "point",
                                               "curve", "jct",   "deadline", "",    "pow3", "\xff"};
  return kTexts[given.byte() % kTexts.size()];
}

std::vector<std::int64_t> whole(Case& given, int count, int most) {
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(given.between(0, most));
  return numbers;
}

void watch(Case& given) {
  const double target = given.number(), budget = given.number();
  const std::vector<double> steps = given.steps(3), rates = given.numbers(3);
  auto schedule = sized<glidepath_schedule_t>(given);
  schedule.points = 3;
  schedule.step = maybe(given, steps);
  schedule.lr = maybe(given, rates);
  auto options = sized<glidepath_watch_options_t>(given);
  if (given.byte() % 64 == 0) options.target = &target;  // a decision is then a forecast
  if (given.byte() % 4 == 0) options.budget = &budget;
  options.direction = text(given);
  options.reached_by = text(given);
  if (given.byte() % 4 == 0) options.alpha = given.number();
  if (given.byte() % 4 == 0) options.schedule = &schedule;
  glidepath_watch_t* live = nullptr;
  if (!done(glidepath_watch(&options, &live))) return;
  while (!given.empty()) {
    const double step = given.number(), loss = given.number();
    (void)done(
        glidepath_watch_add(live, step, loss, given.byte() % 8 == 0 ? given.number() : kNaN));
  }
  auto decision = sized<glidepath_decision_t>(given);
  if (done(glidepath_watch_decision(live, &decision)) && decision.size == sizeof decision) {
    GLIDEPATH_HOLDS(decision.verdict != nullptr && decision.reason != nullptr);
    GLIDEPATH_HOLDS(!(decision.probability < 0) && !(decision.probability > 1));
  }
  glidepath_watch_free(live);
}

void solve(Case& given) {
  const int n = given.between(0, 12), tiers = given.between(1, 3);
  const std::vector<std::int64_t> job = whole(given, n, 5), tier = whole(given, n, tiers),
                                  gpus = whole(given, n, 9), capacity = whole(given, tiers, 16),
                                  node = whole(given, tiers, 8), user = whole(given, n, 2),
                                  quota = whole(given, 2, 8);
  const std::vector<double> value = given.numbers(n), watts = given.numbers(n),
                            prices = given.numbers(tiers);
  const double cap = given.number(), gap = given.number();
  auto round = sized<glidepath_round_t>(given);
  round.options = n;
  round.job = maybe(given, job);
  round.tier = maybe(given, tier);
  round.gpus = maybe(given, gpus);
  round.value = maybe(given, value);
  round.tiers = tiers;
  round.capacity = maybe(given, capacity);
  const int limits = given.byte();
  if (limits & 1) round.node_gpus = node.data();
  if (limits & 2) round.watts = watts.data();
  if (limits & 4) round.power_cap_w = &cap;
  if (limits & 8) round.user = user.data(), round.user_quota = quota.data(), round.users = 2;
  auto options = sized<glidepath_round_options_t>(given);
  if (limits & 16) options.gap = &gap;
  if (limits & 32) options.prices = prices.data();
  const std::int32_t threads = given.between(0, 2) - 1;
  if (limits & 64) options.threads = &threads;
  glidepath_round_plan_t* plan = nullptr;
  if (!done(glidepath_solve_round(&round, limits & 128 ? nullptr : &options, &plan))) return;
  glidepath_round_plan_view_t view{};
  view.size = sizeof view;
  GLIDEPATH_HOLDS(glidepath_round_plan_get(plan, &view) == GLIDEPATH_OK);
  GLIDEPATH_HOLDS(view.chosen_count <= round.options && view.value <= view.bound);
  for (std::size_t i = 0; i < view.chosen_count; ++i) GLIDEPATH_HOLDS(view.chosen[i] < n);
  glidepath_round_plan_free(plan);
}

void plan(Case& given) {
  const int jobs = given.between(0, 4), n = given.between(0, 8), tiers = given.between(1, 2);
  const int running = given.between(0, 2), samples = given.between(0, 3);
  std::vector<std::int64_t> ids;
  for (int j = 0; j < jobs; ++j) ids.push_back(j);
  const std::vector<std::int64_t> nodes = whole(given, tiers, 4), gpus_per = whole(given, tiers, 8),
                                  priority = whole(given, jobs, 2), of = whole(given, n, 4),
                                  on = whole(given, n, 2), gpus = whole(given, n, 8),
                                  held_by = whole(given, running, 4),
                                  held_on = whole(given, running, 2),
                                  held = whole(given, running, 4);
  const std::vector<double> submit = given.numbers(jobs), weight = given.numbers(jobs),
                            left = given.numbers(jobs * samples), rate = given.numbers(n),
                            since = given.numbers(running);
  const double cap = given.number();
  auto snapshot = sized<glidepath_snapshot_t>(given);
  snapshot.now_s = given.byte() % 8 == 0 ? given.number() : 0;
  snapshot.tiers = tiers;
  snapshot.nodes = maybe(given, nodes);
  snapshot.gpus_per_node = maybe(given, gpus_per);
  snapshot.jobs = jobs;
  snapshot.job = maybe(given, ids);
  const int what = given.byte();
  if (what & 1) snapshot.submit_s = submit.data();
  if (what & 2) snapshot.weight = weight.data();
  if (what & 4) snapshot.priority = priority.data();
  if (what & 8) snapshot.remaining_steps = left.data(), snapshot.samples = samples;
  snapshot.options = n;
  snapshot.option_job = maybe(given, of);
  snapshot.option_tier = maybe(given, on);
  snapshot.option_gpus = maybe(given, gpus);
  snapshot.option_steps_per_s = maybe(given, rate);
  snapshot.running = running;
  snapshot.running_job = maybe(given, held_by);
  snapshot.running_tier = maybe(given, held_on);
  snapshot.running_gpus = maybe(given, held);
  snapshot.running_since_s = maybe(given, since);
  auto options = sized<glidepath_plan_options_t>(given);
  options.objective = text(given);
  if (what & 16) options.power_cap_w = &cap;
  if (what & 32) options.round_s = given.number();
  options.in_nodes = what & 64 ? given.between(0, 2) : 0;
  glidepath_plan_t* made = nullptr;
  if (!done(glidepath_plan(&snapshot, what & 128 ? nullptr : &options, &made))) return;
  glidepath_plan_view_t view{};
  view.size = sizeof view;
  GLIDEPATH_HOLDS(glidepath_plan_get(made, &view) == GLIDEPATH_OK);
  GLIDEPATH_HOLDS(view.reason_count <= static_cast<std::size_t>(jobs));
  GLIDEPATH_HOLDS(view.allocations + view.stop_count <= static_cast<std::size_t>(jobs));
  glidepath_plan_free(made);
}

void index_of(Case& given) {
  const std::vector<double> samples = given.numbers(given.between(0, 8));
  double index = 0;
  if (done(glidepath_gittins_index(maybe(given, samples), samples.size(), &index))) {
    GLIDEPATH_HOLDS(index >= 0);
  }
}

/// A forecast, a reach and the best so far of what is left of the case, which takes its time.
void foretell(Case& given) {
  const int n = given.between(0, 12);
  const std::vector<double> steps = given.steps(n), losses = given.numbers(n);
  auto run = sized<glidepath_trace_t>(given);
  run.points = n;
  run.step = maybe(given, steps);
  run.loss = maybe(given, losses);
  if (given.byte() % 4 == 0) run.weight = losses.data();
  auto options = sized<glidepath_forecast_options_t>(given);
  options.direction = text(given);
  options.reached_by = text(given);
  const double target = given.number(), budget = given.number();

  glidepath_forecast_t* forecast = nullptr;
  const glidepath_forecast_options_t* chosen = given.byte() % 2 ? &options : nullptr;
  if (done(glidepath_forecast(&run, &budget, 1, chosen, &forecast))) {
    double below = kNaN;
    GLIDEPATH_HOLDS(glidepath_forecast_prob_below(forecast, 0, &below) == GLIDEPATH_OK);
    GLIDEPATH_HOLDS(!(below < 0) && !(below > 1));
    glidepath_forecast_free(forecast);
  }
  glidepath_reach_t* reach = nullptr;
  if (done(glidepath_reach(&run, target, budget, chosen, &reach))) {
    double by = kNaN;
    if (done(glidepath_reach_prob_by(reach, budget, &by))) GLIDEPATH_HOLDS(by >= 0 && by <= 1);
    glidepath_reach_free(reach);
  }
  auto best = sized<glidepath_best_so_far_t>(given);
  const bool whole = best.size == sizeof best;
  if (done(glidepath_best_so_far(&run, budget, chosen, &best)) && whole) {
    GLIDEPATH_HOLDS(best.status != nullptr);
    GLIDEPATH_HOLDS(!(best.prob_past < 0) && !(best.prob_past > 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const int which = given.byte() % 4;
  if (which == 0) watch(given);
  if (which == 1) solve(given);
  if (which == 2) plan(given);
  if (which == 3) {
    index_of(given);
    if (given.byte() % 16 == 1) foretell(given);
  }
  return 0;
}
