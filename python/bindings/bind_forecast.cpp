// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "forecast/law.hpp"
#include "forecast_records.hpp"

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

/// None stands for what is not given.
ForecastOptions options_of(const Maybe<Schedule>& schedule, const Maybe<PastRuns>& past,
                           const std::optional<DoubleArray>& levels, const std::string& direction,
                           const Maybe<ConstantsRecord>& constants) {
  ForecastOptions options{.schedule = pointer(schedule),
                          .past = pointer(past),
                          .direction = direction_named(direction),
                          .constants = table_of(constants)};
  if (levels) options.levels = view(*levels);
  return options;
}

Execution execution_of(int threads) {
  if (threads < 0) glidepath::detail::refuse("threads is ", threads, ", must not be negative");
  return {.threads = threads};
}

ForecastStatus status_named(const std::string& text) {
  for (const ForecastStatus status : {ForecastStatus::good, ForecastStatus::too_few_points,
                                      ForecastStatus::flat, ForecastStatus::not_finite}) {
    if (name(status) == text) return status;
  }
  glidepath::detail::refuse("forecast: status '", text, "' is not known");
}

// A matrix as pickle keeps it: row by row.

std::vector<double> flat(const Rows& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}
Rows rows_of(const std::vector<double>& values, std::size_t rows) {
  const auto count = static_cast<Eigen::Index>(rows);
  const auto size = static_cast<Eigen::Index>(values.size());
  return Eigen::Map<const Rows>(values.data(), count, count == 0 ? 0 : size / count);
}

std::vector<std::string> names_of(const std::vector<ForecastStatus>& status) {
  std::vector<std::string> names;
  names.reserve(status.size());
  for (const ForecastStatus each : status) names.emplace_back(name(each));
  return names;
}

// The fields of each record by name: `state` gives what `of` takes.

py::dict forecast_state(const Forecast& f) {
  return py::dict("at"_a = f.at, "levels"_a = f.levels, "median"_a = f.median,
                  "quantiles"_a = flat(f.quantiles), "curve_quantiles"_a = flat(f.curve_quantiles),
                  "status"_a = std::string(name(f.status)),
                  "law"_a = glidepath::detail::pack_law(*f.law));
}

Forecast forecast_of(std::vector<double> at, std::vector<double> levels, std::vector<double> median,
                     const std::vector<double>& quantiles,
                     const std::vector<double>& curve_quantiles, const std::string& status,
                     const std::vector<double>& law) {
  const std::size_t count = levels.size() * at.size();
  if (median.size() != at.size() || quantiles.size() != count || curve_quantiles.size() != count) {
    glidepath::detail::refuse("forecast: ", at.size(), " steps and ", levels.size(),
                              " levels, but ", median.size(), " medians and ", quantiles.size(),
                              " quantiles");
  }
  const std::size_t rows = levels.size();
  return {
      .at = std::move(at),
      .levels = std::move(levels),
      .median = std::move(median),
      .quantiles = rows_of(quantiles, rows),
      .curve_quantiles = rows_of(curve_quantiles, rows),
      .status = status_named(status),
      .law = std::make_shared<const glidepath::detail::Law>(glidepath::detail::unpack_law(law))};
}

py::dict batch_state(const ForecastBatch& f) {
  return py::dict("at"_a = f.at, "levels"_a = f.levels, "median"_a = flat(f.median),
                  "quantiles"_a = flat(f.quantiles), "status"_a = names_of(f.status));
}

ForecastBatch batch_of(std::vector<double> at, std::vector<double> levels,
                       const std::vector<double>& median, const std::vector<double>& quantiles,
                       const std::vector<std::string>& status) {
  const std::size_t count = status.size() * at.size();
  if (median.size() != count || quantiles.size() != levels.size() * count) {
    glidepath::detail::refuse("forecast_batch: ", status.size(), " rows at ", at.size(),
                              " steps, but ", median.size(), " medians and ", quantiles.size(),
                              " quantiles");
  }
  const std::size_t rows = levels.size() * status.size();
  ForecastBatch batch{.at = std::move(at),
                      .levels = std::move(levels),
                      .median = rows_of(median, status.size()),
                      .quantiles = rows_of(quantiles, rows),
                      .status = {}};
  for (const std::string& each : status) batch.status.push_back(status_named(each));
  return batch;
}

py::dict reach_state(const Reach& r) {
  return py::dict("step"_a = r.step, "cdf"_a = r.cdf, "prob_never"_a = r.prob_never,
                  "target"_a = r.target, "budget"_a = r.budget,
                  "status"_a = std::string(name(r.status)));
}

Reach reach_of(std::vector<double> step, std::vector<double> cdf, double prob_never, double target,
               double budget, const std::string& status) {
  if (step.size() != cdf.size() || step.empty()) {
    glidepath::detail::refuse("reach: ", step.size(), " steps but ", cdf.size(), " probabilities");
  }
  return {std::move(step), std::move(cdf), prob_never, target, budget, status_named(status)};
}

py::dict widths_state(const Widths& w) {
  return py::dict("horizon"_a = w.horizon, "factor"_a = w.factor, "runs"_a = w.runs,
                  "scheduled_factor"_a = w.scheduled_factor, "scheduled_runs"_a = w.scheduled_runs,
                  "schedule_helps"_a = w.schedule_helps);
}

Widths widths_of(std::vector<double> horizon, std::vector<double> factor, int runs,
                 std::vector<double> scheduled_factor, int scheduled_runs, bool schedule_helps) {
  return {std::move(horizon),          std::move(factor), runs,
          std::move(scheduled_factor), scheduled_runs,    schedule_helps};
}

std::shared_ptr<PastRuns> past_of(const py::sequence& runs, const Maybe<ConstantsRecord>& constants,
                                  int threads) {
  std::vector<Trace> traces = traces_of(runs);
  const Execution execution = execution_of(threads);
  const py::gil_scoped_release release;
  return std::make_shared<PastRuns>(std::move(traces), execution, table_of(constants));
}

Forecast forecast_trace(const DoubleArray& step, const DoubleArray& loss,
                        const std::optional<DoubleArray>& lr, const DoubleArray& at,
                        const Maybe<Schedule>& schedule, const Maybe<PastRuns>& past,
                        const std::optional<DoubleArray>& levels, const std::string& direction,
                        const Maybe<ConstantsRecord>& constants) {
  const ForecastOptions options = options_of(schedule, past, levels, direction, constants);
  TraceView trace{view(step), view(loss)};
  if (lr) trace.lr = view(*lr);
  const py::gil_scoped_release release;
  return forecast(trace, view(at), options);
}

ForecastBatch forecast_rows(const DoubleArray& step, const DoubleArray& loss, const DoubleArray& at,
                            int threads, const std::optional<DoubleArray>& levels,
                            const std::string& direction, const Maybe<ConstantsRecord>& constants) {
  const ForecastOptions options = options_of({}, {}, levels, direction, constants);
  const Execution execution = execution_of(threads);
  const auto losses = rows(loss);
  const py::gil_scoped_release release;
  return forecast_batch(view(step), losses, view(at), options, execution);
}

std::vector<Reach> reach_traces(const py::sequence& traces, const DoubleArray& targets,
                                const DoubleArray& budgets, const Maybe<Schedule>& schedule,
                                const Maybe<PastRuns>& past, const std::string& direction,
                                const Maybe<ConstantsRecord>& constants, int threads) {
  std::vector<TraceColumns> columns;
  std::vector<TraceView> views;
  for (const py::handle trace : traces) columns.emplace_back(trace);
  for (const TraceColumns& each : columns) views.push_back(each.view());
  const ForecastOptions options = options_of(schedule, past, {}, direction, constants);
  const Execution execution = execution_of(threads);
  const py::gil_scoped_release release;
  return reach_batch(views, view(targets), view(budgets), options, execution);
}

/// Read-only arrays of a record: `f` gives the array of one that is at hand as `self`.
template <typename T, typename F>
auto property(F f) {
  return [f](const py::object& self) { return f(py::cast<const T&>(self), self); };
}
py::ssize_t length(const std::vector<double>& column) {
  return static_cast<py::ssize_t>(column.size());
}

void bind_forecasts(py::module_& module) {
  opaque_record<Forecast>(module, "ForecastRecord")
      .def_property_readonly(
          "at", property<Forecast>(
                    [](const Forecast& f, const py::object& self) { return field(f.at, self); }))
      .def_property_readonly("levels",
                             property<Forecast>([](const Forecast& f, const py::object& self) {
                               return field(f.levels, self);
                             }))
      .def_property_readonly("median",
                             property<Forecast>([](const Forecast& f, const py::object& self) {
                               return field(f.median, self);
                             }))
      .def_property_readonly(
          "quantiles", property<Forecast>([](const Forecast& f, const py::object& self) {
            return field(f.quantiles.data(), {length(f.levels), length(f.at)}, self);
          }))
      .def_property_readonly(
          "curve_quantiles", property<Forecast>([](const Forecast& f, const py::object& self) {
            return field(f.curve_quantiles.data(), {length(f.levels), length(f.at)}, self);
          }))
      .def_property_readonly("status",
                             [](const Forecast& f) { return std::string(name(f.status)); })
      .def(
          "quantile", [](const Forecast& f, double p) { return adopt(quantile(f, p)); }, "p"_a)
      .def(
          "curve_quantile", [](const Forecast& f, double p) { return adopt(curve_quantile(f, p)); },
          "p"_a)
      .def(
          "prob_below",
          [](const Forecast& f, double target) { return adopt(prob_below(f, target)); }, "target"_a)
      .def("state", &forecast_state)
      .def_static("of", &forecast_of, py::kw_only(), "at"_a, "levels"_a, "median"_a, "quantiles"_a,
                  "curve_quantiles"_a, "status"_a, "law"_a);

  opaque_record<ForecastBatch>(module, "ForecastBatchRecord")
      .def_property_readonly(
          "at", property<ForecastBatch>([](const ForecastBatch& f, const py::object& self) {
            return field(f.at, self);
          }))
      .def_property_readonly(
          "levels", property<ForecastBatch>([](const ForecastBatch& f, const py::object& self) {
            return field(f.levels, self);
          }))
      .def_property_readonly(
          "median", property<ForecastBatch>([](const ForecastBatch& f, const py::object& self) {
            return field(f.median.data(), {std::ssize(f.status), length(f.at)}, self);
          }))
      .def_property_readonly(
          "quantiles", property<ForecastBatch>([](const ForecastBatch& f, const py::object& self) {
            return field(f.quantiles.data(), {length(f.levels), std::ssize(f.status), length(f.at)},
                         self);
          }))
      .def_property_readonly("status", [](const ForecastBatch& f) { return names_of(f.status); })
      .def("state", &batch_state)
      .def_static("of", &batch_of, py::kw_only(), "at"_a, "levels"_a, "median"_a, "quantiles"_a,
                  "status"_a);

  module.def("forecast", &forecast_trace, py::kw_only(), "step"_a, "loss"_a, "lr"_a, "at"_a,
             "schedule"_a, "past"_a, "levels"_a, "direction"_a, "constants"_a);
  module.def("forecast_batch", &forecast_rows, py::kw_only(), "step"_a, "loss"_a, "at"_a,
             "threads"_a, "levels"_a, "direction"_a, "constants"_a);
}

void bind_reach(py::module_& module) {
  opaque_record<Reach>(module, "ReachRecord")
      .def_static("of", &reach_of, py::kw_only(), "step"_a, "cdf"_a, "prob_never"_a, "target"_a,
                  "budget"_a, "status"_a)
      .def_property_readonly("step", property<Reach>([](const Reach& r, const py::object& self) {
                               return field(r.step, self);
                             }))
      .def_property_readonly("cdf", property<Reach>([](const Reach& r, const py::object& self) {
                               return field(r.cdf, self);
                             }))
      .def_readonly("prob_never", &Reach::prob_never)
      .def_readonly("target", &Reach::target)
      .def_readonly("budget", &Reach::budget)
      .def_property_readonly("status", [](const Reach& r) { return std::string(name(r.status)); })
      .def("prob_by", &Reach::prob_by, "step"_a)
      .def("quantile", &Reach::quantile, "p"_a)
      .def("quantile_if_reached", &Reach::quantile_if_reached, "p"_a)
      .def(
          "remaining_steps", [](const Reach& r, int n) { return adopt(r.remaining_steps(n)); },
          "n"_a)
      .def("state", &reach_state);
  module.def("reach_batch", &reach_traces, "traces"_a, "targets"_a, "budgets"_a, py::kw_only(),
             "schedule"_a, "past"_a, "direction"_a, "constants"_a, "threads"_a);
}

void bind_past_runs(py::module_& module) {
  opaque_record<Widths>(module, "WidthsRecord")
      .def_static("of", &widths_of, py::kw_only(), "horizon"_a, "factor"_a, "runs"_a,
                  "scheduled_factor"_a, "scheduled_runs"_a, "schedule_helps"_a)
      .def_property_readonly("horizon",
                             property<Widths>([](const Widths& w, const py::object& self) {
                               return field(w.horizon, self);
                             }))
      .def_property_readonly("factor",
                             property<Widths>([](const Widths& w, const py::object& self) {
                               return field(w.factor, self);
                             }))
      .def_property_readonly("scheduled_factor",
                             property<Widths>([](const Widths& w, const py::object& self) {
                               return field(w.scheduled_factor, self);
                             }))
      .def_readonly("runs", &Widths::runs)
      .def_readonly("scheduled_runs", &Widths::scheduled_runs)
      .def_readonly("schedule_helps", &Widths::schedule_helps)
      .def("state", &widths_state);

  opaque_record<PastRuns>(module, "PastRunsRecord")
      .def_static("of", &past_of, "runs"_a, py::kw_only(), "constants"_a, "threads"_a)
      .def_static(
          "restored",
          [](const py::sequence& runs, const Widths& widths) {
            return PastRuns::restored(traces_of(runs), widths);
          },
          "runs"_a, "widths"_a)
      .def_static(
          "unlearned",
          [](const py::sequence& runs) { return PastRuns::unlearned(traces_of(runs)); }, "runs"_a)
      .def(
          "update",
          [](const PastRuns& past, const py::sequence& finished,
             const Maybe<ConstantsRecord>& constants) {
            std::vector<Trace> runs = traces_of(finished);
            const py::gil_scoped_release release;
            return past.update(std::move(runs.at(0)), table_of(constants));
          },
          "finished"_a, py::kw_only(), "constants"_a, "Learns from the one run of the list.")
      .def_property_readonly("widths", [](const PastRuns& past) { return past.widths(); });
}

}  // namespace
}  // namespace glidepath::python

void bind_forecast(pybind11::module_& module) {
  using namespace glidepath;           // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a

  opaque_record<ConstantsRecord>(module, "ForecastConstants");
  module.def(
      "read_constants",
      [](const std::string& text) { return ConstantsRecord{read_constants(text)}; }, "text"_a);
  bind_past_runs(module);
  bind_forecasts(module);
  bind_reach(module);
}
