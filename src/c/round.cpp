// SPDX-License-Identifier: Apache-2.0
// One round of a scheduler.
#include "glidepath/plan.hpp"

#include "c/boundary.hpp"

struct glidepath_round_plan_t {
  glidepath::RoundPlan plan{};
};

namespace glidepath::c {
namespace {

RoundView round_view(const glidepath_round_t* given) {
  const glidepath_round_t r = read(needed(given, "round"), "round");
  RoundView view{
      .job = column(r.job, r.options, "round: job"),
      .tier = column(r.tier, r.options, "round: tier"),
      .gpus = column(r.gpus, r.options, "round: gpus"),
      .value = column(r.value, r.options, "round: value"),
      .capacity = column(r.capacity, r.tiers, "round: capacity"),
      .watts = column_or_empty(r.watts, r.options),
      .user = column_or_empty(r.user, r.options),
      .group = column_or_empty(r.group, r.options),
      .user_quota = column(r.user_quota, r.users, "round: user_quota"),
      .group_quota = column(r.group_quota, r.groups, "round: group_quota"),
      .node_gpus = column_or_empty(r.node_gpus, r.tiers),
      .taken_tier = column(r.taken_tier, r.taken, "round: taken_tier"),
      .taken_gpus = column(r.taken_gpus, r.taken, "round: taken_gpus"),
  };
  if (r.power_cap_w != nullptr) view.power_cap_w = *r.power_cap_w;
  return view;
}

}  // namespace
}  // namespace glidepath::c

using namespace glidepath;     // NOLINT(google-build-using-namespace)
using namespace glidepath::c;  // NOLINT(google-build-using-namespace)

glidepath_status glidepath_solve_round(const glidepath_round_t* round,
                                       const glidepath_round_options_t* options,
                                       glidepath_round_plan_t** plan) {
  return handed_over(plan, "plan", [&] {
    const RoundView view = round_view(round);
    const auto given = read_or_default(options, "round options");
    RoundOptions how{.prices = column_or_empty(given.prices, view.capacity.size())};
    if (given.gap != nullptr) how.gap = *given.gap;
    auto solved = std::make_unique<glidepath_round_plan_t>();
    const int threads = given.threads == nullptr ? 1 : *given.threads;
    solved->plan = solve_round(view, how, {.threads = threads});
    return solved;
  });
}

glidepath_status glidepath_round_plan_get(const glidepath_round_plan_t* plan,
                                          glidepath_round_plan_view_t* view) {
  return guarded([&] {
    const RoundPlan& p = needed(plan, "plan").plan;
    glidepath_round_plan_view_t out{};
    out.chosen_count = p.chosen.size();
    out.tiers = p.prices.size();
    out.chosen = p.chosen.data();
    out.prices = p.prices.data();
    out.value = p.value;
    out.bound = p.bound;
    out.gap = p.gap;
    write(out, view, "view");
  });
}

void glidepath_round_plan_free(glidepath_round_plan_t* plan) { delete plan; }

glidepath_status glidepath_gittins_index(const double* samples, size_t count, double* index) {
  return guarded([&] {
    double& found = needed(index, "index");
    found = gittins_index(column(samples, count, "samples"));
  });
}
