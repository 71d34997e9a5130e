// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "long_call.hpp"
#include "plan_types.hpp"

namespace glidepath::python {

/// Steps by job: a dict in Python, None is empty.
template <>
struct Convert<std::vector<BelievedSteps>> {
  static std::string type() { return "collections.abc.Mapping[int, float] | None"; }
  static std::vector<BelievedSteps> in(py::handle value, const Where& where) {
    std::vector<BelievedSteps> out;
    if (value.is_none()) return out;
    if (!py::hasattr(value, "items")) where.refuse(value, "a dict of jobs and steps");
    for (const auto& [job, steps] : py::dict(py::reinterpret_borrow<py::object>(value))) {
      out.push_back({Convert<std::int64_t>::in(job, where), Convert<double>::in(steps, where)});
    }
    return out;
  }
  static py::typing::Dict<py::int_, py::float_> out(const std::vector<BelievedSteps>& all) {
    py::typing::Dict<py::int_, py::float_> steps;
    for (const BelievedSteps& each : all) steps[py::int_(each.job)] = each.steps;
    return steps;
  }
};

namespace {

/// The C++ options borrow; these are Python's own.
struct OwnedStartOptions : StartOptions {
  std::vector<OwnedJob> recent_jobs{};
  std::vector<BelievedSteps> believed_steps{};
};

void bind_start_times(py::module_& module) {
  using Options = OwnedStartOptions;
  Record<Options>(module, "StartOptions", "Options of `start_times`.")
      .keyword("samples", &Options::samples)
      .keyword("seed", &Options::seed)
      .keyword("horizon_s", &Options::horizon_s)
      .keyword("levels", &Options::levels)
      .keyword("recent", &Options::recent_jobs)
      .keyword("believed", &Options::believed_steps)
      .init();
  Record<StartTimes>(module, "StartTimesRecord", "What `start_times` found.")
      .keyword(
          "job", [](const StartTimes& times) { return Indices{times.job}; },
          [](StartTimes& times, Indices job) { times.job = std::move(job.values); })
      .keyword("levels", &StartTimes::levels)
      .keyword("quantiles", &StartTimes::quantiles);
  module.def(
      "start_times",
      [](const OwnedSnapshot& snapshot, const std::string& policy, const Options& given,
         int threads) {
        const std::vector<Job> recent(given.recent_jobs.begin(), given.recent_jobs.end());
        StartOptions options = given;
        options.recent = recent;
        options.believed = given.believed_steps;
        const LongCall call;
        return start_times(snapshot.view(), policy, options, Execution{threads});
      },
      py::arg("snapshot"), py::arg("policy"), py::arg("options"), py::arg("threads").noconvert());
}

void bind_moments(py::module_& module) {
  py::class_<Moment>(module, "Moment", "A moment of a simulation, as `start_times` takes it.")
      .def_readonly("now_s", &Moment::now_s)
      .def(
          "snapshot",
          [](const Moment& moment, const std::vector<Tier>& tiers) {
            return OwnedSnapshot(Snapshot{moment.now_s, tiers, moment.jobs, moment.running});
          },
          py::arg("tiers"))
      .def_property_readonly("recent",
                             [](const Moment& moment) {
                               return std::vector<OwnedJob>(moment.recent.begin(),
                                                            moment.recent.end());
                             })
      .def_property_readonly("believed", [](const Moment& moment) {
        return Convert<std::vector<BelievedSteps>>::out(moment.believed);
      });
  module.def(
      "moments_of",
      [](const std::shared_ptr<Workload>& workload, const std::string& policy,
         const SimulationOptions& options, const std::vector<double>& at_s, int recent) {
        const LongCall call;
        return moments_of(*workload, policy, options, at_s, recent);
      },
      py::arg("workload"), py::arg("policy"), py::arg("options"), py::arg("at_s"),
      py::arg("recent"));
}

}  // namespace
}  // namespace glidepath::python

void bind_starts(pybind11::module_& module) {
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  bind_start_times(module);
  bind_moments(module);
}
