// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "forecast/constants.hpp"
#include "forecast/law.hpp"
#include "forecast/stored_law.hpp"
#include "forecast/widths.hpp"
#include "forecast_records.hpp"
#include "long_call.hpp"

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

/// None stands for what is not given.
ForecastOptions options_of(const Maybe<Schedule>& schedule, const Maybe<PastRuns>& past,
                           const std::optional<DoubleArray>& levels, const std::string& direction,
                           const Maybe<ForecastConstants>& constants) {
  ForecastOptions options{.schedule = pointer(schedule),
                          .past = pointer(past),
                          .direction = direction_named(direction),
                          .constants = constants.value_or(nullptr)};
  if (levels) options.levels = view(*levels);
  return options;
}

}  // namespace

template <>
struct Names<ForecastStatus> {
  static ForecastStatus parse(const std::string& text) {
    using enum ForecastStatus;
    return named(std::array{good, too_few_points, flat, not_finite}, text, "forecast: status is");
  }
};

namespace {

/// Refuses levels and steps that no forecast has, and values out of the order of their levels: the
/// quantiles of a level stand together, as many as medians.
void check_order(const char* what, const std::vector<double>& levels, const std::vector<double>& at,
                 const auto& medians, const Rows& quantiles) {
  double before = 0;
  for (const double level : levels) {
    if (!(level > before && level < 1)) {
      glidepath::detail::refuse(what, ": level ", level, " after ", before,
                                ": levels must increase and lie between 0 and 1");
    }
    before = level;
  }
  before = std::numeric_limits<double>::lowest();
  for (const double step : at) {
    if (!(step > before) || std::isinf(step)) {
      glidepath::detail::refuse(what, ": step ", step, " after ", before, ": steps must increase");
    }
    before = step;
  }
  constexpr double kSlack = 1e-6;  // of a value: each quantile is found on its own
  const auto count = static_cast<std::size_t>(medians.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double median = medians.data()[i];
    for (std::size_t level = 0; level < levels.size(); ++level) {
      const double value = quantiles.data()[level * count + i];
      const double slack = kSlack * (std::abs(value) + std::abs(median));
      const bool below = levels[level] > 0.5 || value <= median + slack;
      const bool above = levels[level] < 0.5 || value >= median - slack;
      if (!std::isfinite(value) || !std::isfinite(median) || !below || !above) {
        glidepath::detail::refuse(what, ": a median of ", median, " beside ", value,
                                  " of the level ", levels[level]);
      }
    }
  }
}

void check(const Forecast& f) {
  const auto count = std::ssize(f.levels) * std::ssize(f.at);
  if (f.median.size() != f.at.size() || f.quantiles.size() != count ||
      f.curve_quantiles.size() != count) {
    glidepath::detail::refuse("forecast: ", f.at.size(), " steps and ", f.levels.size(),
                              " levels, but ", f.median.size(), " medians and ", f.quantiles.size(),
                              " quantiles");
  }
  check_order("forecast", f.levels, f.at, f.median, f.quantiles);
}

void check(const ForecastBatch& f) {
  const auto count = std::ssize(f.status) * std::ssize(f.at);
  if (f.median.size() != count || f.quantiles.size() != std::ssize(f.levels) * count) {
    glidepath::detail::refuse("forecast_batch: ", f.status.size(), " rows at ", f.at.size(),
                              " steps, but ", f.median.size(), " medians and ", f.quantiles.size(),
                              " quantiles");
  }
  check_order("forecast_batch", f.levels, f.at, f.median, f.quantiles);
}

/// Whether the probabilities rise with the steps, and what is left of 1 is that of never.
bool is_law(const Reach& r) {
  double step = std::numeric_limits<double>::lowest(), probability = 0;
  for (std::size_t i = 0; i < r.step.size(); ++i) {
    if (!(r.step[i] >= step) || std::isinf(r.step[i]) || !(r.cdf[i] >= probability)) return false;
    step = r.step[i];
    probability = r.cdf[i];
  }
  return probability <= 1 && std::abs(r.prob_never - (1 - probability)) <= 1e-9;
}

void check(const Reach& r) {
  if (r.step.size() != r.cdf.size() || r.step.empty()) {
    glidepath::detail::refuse("reach: ", r.step.size(), " steps but ", r.cdf.size(),
                              " probabilities");
  }
  if (!is_law(r)) {
    glidepath::detail::refuse("reach: this is no law: probabilities up to ", r.cdf.back(),
                              " by step ", r.step.back(), ", and ", r.prob_never, " of never");
  }
  if (std::isnan(r.target)) {
    glidepath::detail::refuse("reach: target is nan, expected a number");
  }
  // One step: that of a run which is there already, or has spent its budget.
  if (!std::isfinite(r.budget) || (r.step.size() > 1 && r.step.back() != r.budget)) {
    glidepath::detail::refuse("reach: a budget of ", r.budget, " beside steps up to ",
                              r.step.back());
  }
}

void check(const BestSoFar& b) {
  if (b.prob_past < 0 || b.prob_past > 1) {
    glidepath::detail::refuse("best_so_far: prob_past is ", b.prob_past, ", expected 0 to 1");
  }
  if (!std::isfinite(b.budget)) {
    glidepath::detail::refuse("best_so_far: budget is ", b.budget, ", expected a finite number");
  }
}

Forecast forecast_trace(const AnyTrace& trace, const DoubleArray& at,
                        const Maybe<Schedule>& schedule, const Maybe<PastRuns>& past,
                        const std::optional<DoubleArray>& levels,
                        const Maybe<ForecastConstants>& constants) {
  const Trace run = trace_of(trace);
  ForecastOptions options = options_of(schedule, past, levels, "min", constants);
  options.direction = run.direction;
  const LongCall call;
  return forecast(run.view(), view(at), options);
}

ForecastBatch forecast_rows(const DoubleArray& step, const DoubleArray& loss, const DoubleArray& at,
                            const Maybe<Schedule>& schedule, const Maybe<PastRuns>& past,
                            int threads, const std::optional<DoubleArray>& levels,
                            const std::string& direction,
                            const Maybe<ForecastConstants>& constants) {
  const ForecastOptions options = options_of(schedule, past, levels, direction, constants);
  const Execution execution = execution_of(threads);
  const auto losses = rows(loss);
  // Copies: another thread may change a step after all were found to increase.
  const std::vector<double> steps(step.data(), step.data() + step.size());
  const std::vector<double> ahead(at.data(), at.data() + at.size());
  const LongCall call;
  return forecast_batch(steps, losses, ahead, options, execution);
}

std::vector<Reach> reach_traces(const AnyTraces& traces, const DoubleArray& targets,
                                const DoubleArray& budgets, const Maybe<Schedule>& schedule,
                                const Maybe<PastRuns>& past, const std::string& direction,
                                const Maybe<ForecastConstants>& constants,
                                const std::optional<std::string>& reached_by, int threads) {
  const std::vector<Trace> runs = traces_of(traces);
  std::vector<TraceView> views;
  for (const Trace& run : runs) views.push_back(run.view());
  ForecastOptions options = options_of(schedule, past, {}, direction, constants);
  if (reached_by) options.reached_by = reached_by_named(*reached_by);
  const Execution execution = execution_of(threads);
  const LongCall call;
  return reach_batch(views, view(targets), view(budgets), options, execution);
}

BestSoFar best_of_trace(const AnyTrace& trace, double budget, const Maybe<Schedule>& schedule,
                        const Maybe<PastRuns>& past, const std::optional<std::string>& reached_by,
                        const Maybe<ForecastConstants>& constants) {
  const Trace run = trace_of(trace);
  ForecastOptions options = options_of(schedule, past, {}, "min", constants);
  options.direction = run.direction;
  if (reached_by) options.reached_by = reached_by_named(*reached_by);
  const LongCall call;
  return best_so_far(run.view(), budget, options);
}

void bind_best(py::module_& module) {
  Record<BestSoFar>(module, "BestSoFarRecord")
      .required("step", &BestSoFar::step)
      .required("value", &BestSoFar::value)
      .required("prob_past", &BestSoFar::prob_past)
      .required("budget", &BestSoFar::budget)
      .required("status", &BestSoFar::status)
      .init([](const BestSoFar& b) { check(b); });
  module.def("best_so_far", &best_of_trace, "trace"_a, py::kw_only(), "budget"_a, "schedule"_a,
             "past"_a, "reached_by"_a, "constants"_a);
}

void bind_forecasts(py::module_& module) {
  Record<Forecast>(module, "ForecastRecord")
      .shown("at", &Forecast::at)
      .shown("levels", &Forecast::levels)
      .shown("median", &Forecast::median)
      .shown("quantiles", &Forecast::quantiles)
      .shown("curve_quantiles", &Forecast::curve_quantiles)
      .required("status", &Forecast::status)
      .required(
          "law", [](const Forecast& f) { return glidepath::detail::pack_law(*f.law); },
          [](Forecast& f, const std::vector<double>& law) {
            f.law =
                std::make_shared<const glidepath::detail::Law>(glidepath::detail::unpack_law(law));
          })
      .init([](const Forecast& f) { check(f); })
      .cls()
      .def(
          "quantile", [](const Forecast& f, double p) { return adopt(quantile(f, p)); }, "p"_a)
      .def(
          "curve_quantile", [](const Forecast& f, double p) { return adopt(curve_quantile(f, p)); },
          "p"_a)
      .def(
          "prob_below",
          [](const Forecast& f, double target) { return adopt(prob_below(f, target)); },
          "target"_a);

  Record<ForecastBatch>(module, "ForecastBatchRecord")
      .shown("at", &ForecastBatch::at)
      .shown("levels", &ForecastBatch::levels)
      .shown("median", &ForecastBatch::median)
      .shown("quantiles", &ForecastBatch::quantiles)
      .required("status", &ForecastBatch::status)
      .init([](const ForecastBatch& f) { check(f); });

  module.def("forecast", &forecast_trace, "trace"_a, "at"_a, py::kw_only(), "schedule"_a, "past"_a,
             "levels"_a, "constants"_a);
  module.def("forecast_batch", &forecast_rows, py::kw_only(), "step"_a, "loss"_a, "at"_a,
             "schedule"_a, "past"_a, "threads"_a.noconvert(), "levels"_a, "direction"_a,
             "constants"_a);
}

void bind_reach(py::module_& module) {
  Record<Reach>(module, "ReachRecord")
      .shown("step", &Reach::step)
      .shown("cdf", &Reach::cdf)
      .required("prob_never", &Reach::prob_never)
      .required("target", &Reach::target)
      .required("budget", &Reach::budget)
      .required("status", &Reach::status)
      .init([](const Reach& r) { check(r); })
      .cls()
      .def("prob_by", &Reach::prob_by, "step"_a)
      .def("quantile", &Reach::quantile, "p"_a)
      .def("quantile_if_reached", &Reach::quantile_if_reached, "p"_a)
      .def(
          "remaining_steps", [](const Reach& r, int n) { return adopt(r.remaining_steps(n)); },
          "n"_a.noconvert());
  module.def("reach_batch", &reach_traces, "traces"_a, "targets"_a, "budgets"_a, py::kw_only(),
             "schedule"_a, "past"_a, "direction"_a, "constants"_a, "reached_by"_a,
             "threads"_a.noconvert());
}

Widths learn_widths(const AnyTraces& teachers, const AnyTraces& shapes,
                    const Maybe<ForecastConstants>& constants, int threads) {
  const std::vector<Trace> taught = traces_of(teachers), past = traces_of(shapes);
  const LongCall call;
  return glidepath::detail::learn_widths(taught, past, constants.value_or(nullptr),
                                         {.threads = threads});
}

void bind_past_runs(py::module_& module) {
  Record<Widths>(module, "WidthsRecord")
      .shown("horizon", &Widths::horizon)
      .shown("factor", &Widths::factor)
      .required("runs", &Widths::runs)
      .shown("scheduled_factor", &Widths::scheduled_factor)
      .required("scheduled_runs", &Widths::scheduled_runs)
      .required("schedule_helps", &Widths::schedule_helps)
      .init();

  py::class_<PastRuns, std::shared_ptr<PastRuns>>(module, "PastRunsRecord")
      .def(py::init(
               [](const AnyTraces& runs, const Maybe<ForecastConstants>& constants, int threads) {
                 std::vector<Trace> traces = traces_of(runs);
                 const Execution execution = execution_of(threads);
                 const LongCall call;
                 return PastRuns(std::move(traces), execution, constants.value_or(nullptr));
               }),
           "runs"_a, py::kw_only(), "constants"_a, "threads"_a.noconvert())
      .def_static(
          "restored",
          [](const AnyTraces& runs, const Widths& widths) {
            return PastRuns::restored(traces_of(runs), widths);
          },
          "runs"_a, "widths"_a)
      .def_static(
          "unlearned", [](const AnyTraces& runs) { return PastRuns::unlearned(traces_of(runs)); },
          "runs"_a)
      .def(
          "update",
          [](const PastRuns& past, const AnyTrace& finished,
             const Maybe<ForecastConstants>& constants) {
            Trace run = trace_of(finished);
            const LongCall call;
            return past.update(std::move(run), constants.value_or(nullptr));
          },
          "finished"_a, py::kw_only(), "constants"_a)
      .def_property_readonly("widths", &PastRuns::widths)
      .def_property_readonly("relevance", [](const PastRuns& past) {
        NumbersByName weights;
        for (const Relevance& each : past.relevance()) {
          weights[Convert<std::string>::out(each.setting)] = each.weight;
        }
        return weights;
      });
  module.def("learn_widths", &learn_widths, "teachers"_a, "shapes"_a, py::kw_only(), "constants"_a,
             "threads"_a.noconvert());
}

}  // namespace
}  // namespace glidepath::python

void bind_forecast(pybind11::module_& module) {
  using namespace glidepath;           // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a

  py::class_<ForecastConstants, std::shared_ptr<ForecastConstants>>(module, "ForecastConstants");
  module.def("learned_table", [] { return std::string(glidepath::detail::learned_table()); });
  module.def(
      "read_constants",
      [](const std::string& text) {
        return std::const_pointer_cast<ForecastConstants>(read_constants(text));
      },
      "text"_a);
  bind_past_runs(module);
  bind_forecasts(module);
  bind_reach(module);
  bind_best(module);
}
