// SPDX-License-Identifier: Apache-2.0
// Internals that bench/ learns and measures with: not what users see.
#include "glidepath/forecast.hpp"

#include <string>
#include <utility>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"
#include "forecast_records.hpp"
#include "long_call.hpp"

namespace glidepath::python {
namespace {

/// Every node before priors and tempering, or None where the run cannot be modelled.
py::object forecast_nodes(const DoubleArray& step, const DoubleArray& loss, const DoubleArray& at,
                          const ForecastConstants& c) {
  auto p = glidepath::detail::prepare({view(step), view(loss)}, Direction::min, c);
  if (!p.modelled) return py::none();
  std::vector<double> queries;
  for (const double q : view(at)) queries.push_back(q + p.step_shift);
  auto t = glidepath::detail::node_table(p, queries, c);
  const auto nodes = static_cast<py::ssize_t>(t.structures * t.shapes);
  const auto count = static_cast<py::ssize_t>(t.queries);
  py::dict d;
  d["features"] = std::vector<double>(t.features.begin(), t.features.end());
  d["late"] = t.late;
  d["freedom"] = t.freedom;
  d["noise"] = p.noise;
  d["lowest"] = p.lowest;
  d["highest"] = p.highest;
  d["logarithmic"] = p.coordinate.logarithmic;
  d["unit"] = p.coordinate.unit;
  d["log_evidence"] = adopt(std::move(t.log_evidence));
  d["rss"] = adopt(std::move(t.rss));
  d["amplitude"] = adopt(std::move(t.amplitude));
  d["last"] = adopt(std::move(t.last));
  d["location"] = adopt(std::move(t.location), {nodes, count});
  d["kriging"] = adopt(std::move(t.kriging), {nodes, count});
  d["log_distance"] = adopt(std::move(t.log_distance));
  return d;
}

Widths learn_widths(const py::sequence& teachers, const py::sequence& shapes,
                    const Maybe<ForecastConstants>& constants, int threads) {
  const std::vector<Trace> taught = traces_of(teachers), past = traces_of(shapes);
  const LongCall call;
  return glidepath::detail::learn_widths(taught, past, constants.value_or(nullptr),
                                         {.threads = threads});
}

}  // namespace
}  // namespace glidepath::python

void bind_training(pybind11::module_& module) {
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a
  module.def("learned_table", [] { return std::string(glidepath::detail::learned_table()); });
  module.def("forecast_nodes", &forecast_nodes, "step"_a, "loss"_a, "at"_a, "constants"_a);
  module.def("learn_widths", &learn_widths, "teachers"_a, "shapes"_a, py::kw_only(), "constants"_a,
             "threads"_a);
}
