// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "forecast_records.hpp"

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

py::dict watch_state(const WatchState& s) {
  py::dict d;
  d["step"] = s.step;
  d["loss"] = s.loss;
  d["weight"] = s.weight;
  d["lr"] = s.lr;
  d["newest"] = s.newest;
  d["last_step"] = s.last_step;
  d["first_loss"] = s.first_loss;
  d["best_loss"] = s.best_loss;
  d["reached_step"] = s.reached_step;
  d["points"] = s.points;
  d["nonfinite"] = s.nonfinite;
  d["trailing_nonfinite"] = s.trailing_nonfinite;
  d["restarts"] = s.restarts;
  return d;
}

WatchState watch_state_of(const py::dict& d) {
  WatchState s;
  s.step = py::cast<std::vector<double>>(d["step"]);
  s.loss = py::cast<std::vector<double>>(d["loss"]);
  s.weight = py::cast<std::vector<double>>(d["weight"]);
  s.lr = py::cast<std::vector<double>>(d["lr"]);
  s.newest = py::cast<std::vector<double>>(d["newest"]);
  s.last_step = py::cast<double>(d["last_step"]);
  s.first_loss = py::cast<double>(d["first_loss"]);
  s.best_loss = py::cast<double>(d["best_loss"]);
  s.reached_step = py::cast<double>(d["reached_step"]);
  s.points = py::cast<std::int64_t>(d["points"]);
  s.nonfinite = py::cast<std::int64_t>(d["nonfinite"]);
  s.trailing_nonfinite = py::cast<std::int64_t>(d["trailing_nonfinite"]);
  s.restarts = py::cast<std::int64_t>(d["restarts"]);
  return s;
}

Verdict verdict_named(const std::string& text) {
  for (const Verdict verdict : kVerdicts) {
    if (name(verdict) == text) return verdict;
  }
  glidepath::detail::refuse("watch: verdict '", text, "' is not known");
}

/// What decision_of takes.
py::dict decision_fields(const Decision& d) {
  return py::dict("verdict"_a = std::string(name(d.verdict)), "probability"_a = d.probability,
                  "steps_to_target"_a = d.steps_to_target, "reason"_a = d.reason);
}

Decision decision_of(const std::string& verdict, double probability,
                     const std::array<double, 3>& steps_to_target, const std::string& reason) {
  return {verdict_named(verdict), probability, steps_to_target, reason};
}

std::shared_ptr<Watch> watch_of(std::optional<double> target, std::optional<double> budget,
                                const std::string& direction, const Maybe<Schedule>& schedule,
                                const Maybe<PastRuns>& past, double alpha) {
  WatchOptions options{.target = target,
                       .budget = budget,
                       .direction = direction_named(direction),
                       .past = past.value_or(nullptr),
                       .alpha = alpha};
  if (schedule) options.schedule = **schedule;
  return std::make_shared<Watch>(std::move(options));
}

}  // namespace
}  // namespace glidepath::python

void bind_watch(pybind11::module_& module) {
  using namespace glidepath;           // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a

  py::list verdicts;
  for (const Verdict verdict : kVerdicts) verdicts.append(std::string(name(verdict)));
  module.attr("VERDICTS") = py::tuple(verdicts);

  opaque_record<Decision>(module, "DecisionRecord")
      .def_static("of", &decision_of, py::kw_only(), "verdict"_a, "probability"_a,
                  "steps_to_target"_a, "reason"_a)
      .def_property_readonly("verdict",
                             [](const Decision& d) { return std::string(name(d.verdict)); })
      .def_readonly("probability", &Decision::probability)
      .def_property_readonly("steps_to_target",
                             [](const Decision& d) {
                               const auto& steps = d.steps_to_target;
                               return std::tuple(steps[0], steps[1], steps[2]);
                             })
      .def_readonly("reason", &Decision::reason)
      .def("state", &decision_fields);

  opaque_record<Watch>(module, "WatchRecord")
      .def_static("of", &watch_of, py::kw_only(), "target"_a, "budget"_a, "direction"_a,
                  "schedule"_a, "past"_a, "alpha"_a)
      .def("add", &Watch::add, "step"_a, "loss"_a,
           "lr"_a = std::numeric_limits<double>::quiet_NaN())
      .def("decision",
           [](const Watch& watch) {
             const py::gil_scoped_release release;
             return watch.decision();
           })
      .def("state", [](const Watch& watch) { return watch_state(watch.state()); })
      .def(
          "restore", [](Watch& watch, const py::dict& d) { watch.restore(watch_state_of(d)); },
          "state"_a);
}
