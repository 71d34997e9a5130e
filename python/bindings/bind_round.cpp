// SPDX-License-Identifier: Apache-2.0
// The bare round: columns in, columns out.
#include "glidepath/plan.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "long_call.hpp"
#include "numpy_view.hpp"
#include "record.hpp"

namespace glidepath::python {
namespace {

void bind_knapsack(py::module_& module) {
  Record<RoundPlan>(module, "RoundPlanRecord", "What `solve_round` found.")
      .keyword(
          "chosen", [](const RoundPlan& plan) { return Indices{plan.chosen}; },
          [](RoundPlan& plan, Indices chosen) { plan.chosen = std::move(chosen.values); })
      .keyword("value", &RoundPlan::value)
      .keyword("bound", &RoundPlan::bound)
      .keyword("gap", &RoundPlan::gap)
      .keyword("prices", &RoundPlan::prices);
  using Column = std::optional<ArrayLike>;
  module.def(
      "solve_round",
      [](const ArrayLike& job, const ArrayLike& tier, const ArrayLike& gpus, const ArrayLike& value,
         const ArrayLike& capacity, double gap, const Column& prices, int threads,
         const Column& watts, double power_cap_w, const Column& user, const Column& user_quota,
         const Column& group, const Column& group_quota, const Column& node_gpus,
         const Column& taken_tier, const Column& taken_gpus) {
        // Copies: another thread may change an index after it was found to be within its bounds.
        const auto copy = [](const auto& array) {
          return std::vector(array.data(), array.data() + array.size());
        };
        const auto whole = [&](const Column& column, const char* name) {
          return copy(column ? borrow_int64(*column, name) : Int64Array(0));
        };
        const auto real = [&](const Column& column, const char* name) {
          return copy(column ? borrow(*column, name) : DoubleArray(0));
        };
        const auto jobs = whole(job, "job"), tiers = whole(tier, "tier"),
                   gangs = whole(gpus, "gpus"), room = whole(capacity, "capacity"),
                   users = whole(user, "user"), user_quotas = whole(user_quota, "user_quota"),
                   groups = whole(group, "group"), group_quotas = whole(group_quota, "group_quota"),
                   nodes = whole(node_gpus, "node_gpus"),
                   gone_tiers = whole(taken_tier, "taken_tier"),
                   gone_gpus = whole(taken_gpus, "taken_gpus");
        const auto values = real(value, "value"), warm = real(prices, "prices"),
                   draws = real(watts, "watts");
        const LongCall call;
        return solve_round({.job = jobs,
                            .tier = tiers,
                            .gpus = gangs,
                            .value = values,
                            .capacity = room,
                            .watts = draws,
                            .power_cap_w = power_cap_w,
                            .user = users,
                            .group = groups,
                            .user_quota = user_quotas,
                            .group_quota = group_quotas,
                            .node_gpus = nodes,
                            .taken_tier = gone_tiers,
                            .taken_gpus = gone_gpus},
                           {.gap = gap, .prices = warm}, {.threads = threads});
      },
      py::arg("job"), py::arg("tier"), py::arg("gpus"), py::arg("value"), py::arg("capacity"),
      py::kw_only(), py::arg("gap"), py::arg("prices"), py::arg("threads").noconvert(),
      py::arg("watts"), py::arg("power_cap_w"), py::arg("user"), py::arg("user_quota"),
      py::arg("group"), py::arg("group_quota"), py::arg("node_gpus"), py::arg("taken_tier"),
      py::arg("taken_gpus"));
}

}  // namespace
}  // namespace glidepath::python

void bind_round(pybind11::module_& module) { glidepath::python::bind_knapsack(module); }
