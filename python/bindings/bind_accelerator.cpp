// SPDX-License-Identifier: Apache-2.0
// The options of one job and the choice among them; the plan of all jobs is in bind_plan.cpp.
#include "glidepath/hardware.hpp"
#include "glidepath/plan.hpp"

#include <optional>
#include <string>
#include <vector>

#include "long_call.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

void bind_one_job(py::module_& module) {
  Record<OwnedPlacementOptions>(module, "PlacementOptions", "Options of `options_of`.")
      .keyword("alone", &OwnedPlacementOptions::alone)
      .keyword("batch", &OwnedPlacementOptions::batch)
      .keyword("batches", &OwnedPlacementOptions::batches)
      .keyword("max_gpus", &OwnedPlacementOptions::max_gpus)
      .keyword("utilization", &OwnedPlacementOptions::utilization)
      .keyword("sharing", &OwnedPlacementOptions::sharing)
      .keyword("partner", &OwnedPlacementOptions::partner)
      .keyword("pairs", &OwnedPlacementOptions::known)
      .init();
  module.def(
      "options_of",
      [](const std::vector<Tier>& tiers, const std::vector<std::optional<Scaling>>& scaling,
         const OwnedPlacementOptions& options) {
        std::vector<Scaling> fits;
        for (const auto& fit : scaling) fits.push_back(fit.value_or(Scaling{}));
        PlacementOptions view = options;
        view.pairs = options.known.get();
        return options_of(tiers, fits, view);
      },
      py::arg("tiers"), py::arg("scaling"), py::arg("options"));
  Record<RunLimits>(module, "RunLimits", "What one run must keep to.")
      .keyword("max_hours", &RunLimits::max_hours)
      .keyword("max_watts", &RunLimits::max_watts)
      .keyword("max_node_watts", &RunLimits::max_node_watts)
      .keyword("max_kwh", &RunLimits::max_kwh)
      .keyword("max_cost", &RunLimits::max_cost)
      .keyword("confidence", &RunLimits::confidence)
      .keyword("target", &RunLimits::target)
      .keyword("reached_by", &RunLimits::reached_by)
      .init();
  Record<AcceleratorChoice>(module, "AcceleratorChoiceRecord", "One option judged.")
      .keyword("option", &AcceleratorChoice::option)
      .keyword("probability", &AcceleratorChoice::probability)
      .keyword("hours", &AcceleratorChoice::hours)
      .keyword("hours_low", &AcceleratorChoice::hours_low)
      .keyword("hours_high", &AcceleratorChoice::hours_high)
      .keyword("watts", &AcceleratorChoice::watts)
      .keyword("kwh", &AcceleratorChoice::kwh)
      .keyword("cost", &AcceleratorChoice::cost)
      .keyword("node_watts", &AcceleratorChoice::node_watts)
      .keyword("good", &AcceleratorChoice::good)
      .keyword("pareto", &AcceleratorChoice::pareto)
      .keyword("reason", &AcceleratorChoice::reason);
  module.def(
      "choose_accelerator",
      [](const OwnedJob& job, const std::vector<Tier>& tiers, const RunLimits& limits,
         const std::string& prefer) {
        const LongCall call;
        return choose_accelerator(job, tiers, limits, preference_named(prefer));
      },
      py::arg("job"), py::arg("tiers"), py::arg("limits"), py::arg("prefer"));
}

}  // namespace
}  // namespace glidepath::python

void bind_accelerator(pybind11::module_& module) { glidepath::python::bind_one_job(module); }
