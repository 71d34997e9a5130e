// SPDX-License-Identifier: Apache-2.0
// bench/accuracy/_training: the nodes of a forecast, from which learn_prior.py learns its
// constants. Built with GLIDEPATH_BUILD_BENCH, and never installed.
#include "glidepath/forecast.hpp"

#include <utility>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/nodes.hpp"
#include "forecast/prepare.hpp"
#include "forecast_records.hpp"

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

}  // namespace
}  // namespace glidepath::python

PYBIND11_MODULE(_training, module) {
  using namespace pybind11::literals;      // NOLINT(google-build-using-namespace): "name"_a
  pybind11::module_::import("glidepath");  // which knows ForecastConstants and the errors
  module.def("forecast_nodes", &glidepath::python::forecast_nodes, "step"_a, "loss"_a, "at"_a,
             "constants"_a);
}
