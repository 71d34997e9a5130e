// SPDX-License-Identifier: Apache-2.0
// Past runs, forecasts, the step at which a target is reached and the best of a run so far.
#include "glidepath/forecast.hpp"

#include <algorithm>

#include "c/boundary.hpp"
#include "c/handles.hpp"

struct glidepath_forecast_t {
  glidepath::Forecast forecast{};
};

struct glidepath_reach_t {
  glidepath::Reach reach{};
};

namespace glidepath::c {
namespace {

/// The options for a trace, and the schedule that they point to.
struct OwnedOptions {
  OwnedOptions(const glidepath_forecast_options_t* given, Direction of_trace) {
    const auto read_in = read_or_default(given, "forecast options");
    schedule = schedule_of(read_in.schedule);
    if (schedule) options.schedule = &*schedule;
    if (read_in.past != nullptr) options.past = read_in.past->runs.get();
    if (read_in.levels != nullptr && read_in.level_count == 0) {
      detail::refuse("forecast options: level_count is 0 beside levels, expected 1 or more");
    }
    options.levels = column(read_in.levels, read_in.level_count, "forecast options: levels");
    options.direction = read_in.direction == nullptr ? of_trace : direction_of(read_in.direction);
    if (read_in.reached_by != nullptr) options.reached_by = reached_by_named(read_in.reached_by);
  }
  OwnedOptions(const OwnedOptions&) = delete;
  OwnedOptions& operator=(const OwnedOptions&) = delete;

  std::optional<Schedule> schedule{};
  ForecastOptions options{};
};

}  // namespace
}  // namespace glidepath::c

using namespace glidepath;     // NOLINT(google-build-using-namespace)
using namespace glidepath::c;  // NOLINT(google-build-using-namespace)

glidepath_status glidepath_past_runs_learn(const glidepath_traces_t* traces, int32_t threads,
                                           glidepath_past_runs_t** past) {
  return handed_over(past, "past", [&] {
    auto learned = std::make_unique<glidepath_past_runs_t>();
    learned->runs = std::make_shared<const PastRuns>(needed(traces, "traces").traces,
                                                     Execution{.threads = threads});
    return learned;
  });
}

void glidepath_past_runs_free(glidepath_past_runs_t* past) { delete past; }

glidepath_status glidepath_forecast(const glidepath_trace_t* trace, const double* at, size_t count,
                                    const glidepath_forecast_options_t* options,
                                    glidepath_forecast_t** forecast) {
  return handed_over(forecast, "forecast", [&] {
    const GivenTrace run = trace_of(trace);
    const OwnedOptions owned(options, run.direction);
    auto made = std::make_unique<glidepath_forecast_t>();
    made->forecast = glidepath::forecast(run.view, column(at, count, "at"), owned.options);
    return made;
  });
}

glidepath_status glidepath_forecast_get(const glidepath_forecast_t* forecast,
                                        glidepath_forecast_view_t* view) {
  return guarded([&] {
    const Forecast& f = needed(forecast, "forecast").forecast;
    glidepath_forecast_view_t out{};
    out.status = name(f.status).data();
    out.at_count = f.at.size();
    out.level_count = f.levels.size();
    out.at = f.at.data();
    out.levels = f.levels.data();
    out.median = f.median.data();
    out.quantiles = f.quantiles.data();
    out.curve_quantiles = f.curve_quantiles.data();
    write(out, view, "view");
  });
}

glidepath_status glidepath_forecast_quantile(const glidepath_forecast_t* forecast, double p,
                                             double* values) {
  return guarded([&] {
    const Forecast& f = needed(forecast, "forecast").forecast;
    std::ranges::copy(quantile(f, p), &needed(values, "values"));
  });
}

glidepath_status glidepath_forecast_prob_below(const glidepath_forecast_t* forecast, double target,
                                               double* probabilities) {
  return guarded([&] {
    const Forecast& f = needed(forecast, "forecast").forecast;
    std::ranges::copy(prob_below(f, target), &needed(probabilities, "probabilities"));
  });
}

void glidepath_forecast_free(glidepath_forecast_t* forecast) { delete forecast; }

glidepath_status glidepath_reach(const glidepath_trace_t* trace, double target, double budget,
                                 const glidepath_forecast_options_t* options,
                                 glidepath_reach_t** reach) {
  return handed_over(reach, "reach", [&] {
    const GivenTrace run = trace_of(trace);
    const OwnedOptions owned(options, run.direction);
    auto made = std::make_unique<glidepath_reach_t>();
    made->reach = glidepath::reach(run.view, target, budget, owned.options);
    return made;
  });
}

glidepath_status glidepath_reach_get(const glidepath_reach_t* reach, glidepath_reach_view_t* view) {
  return guarded([&] {
    const Reach& r = needed(reach, "reach").reach;
    glidepath_reach_view_t out{};
    out.status = name(r.status).data();
    out.points = r.step.size();
    out.step = r.step.data();
    out.cdf = r.cdf.data();
    out.prob_never = r.prob_never;
    out.target = r.target;
    out.budget = r.budget;
    write(out, view, "view");
  });
}

glidepath_status glidepath_reach_prob_by(const glidepath_reach_t* reach, double step,
                                         double* probability) {
  return guarded(
      [&] { needed(probability, "probability") = needed(reach, "reach").reach.prob_by(step); });
}

glidepath_status glidepath_reach_quantile(const glidepath_reach_t* reach, double p, double* step) {
  return guarded([&] { needed(step, "step") = needed(reach, "reach").reach.quantile(p); });
}

glidepath_status glidepath_reach_remaining_steps(const glidepath_reach_t* reach, int32_t count,
                                                 double* steps) {
  return guarded([&] {
    std::ranges::copy(needed(reach, "reach").reach.remaining_steps(count), &needed(steps, "steps"));
  });
}

void glidepath_reach_free(glidepath_reach_t* reach) { delete reach; }

glidepath_status glidepath_best_so_far(const glidepath_trace_t* trace, double budget,
                                       const glidepath_forecast_options_t* options,
                                       glidepath_best_so_far_t* best) {
  return guarded([&] {
    needed(best, "best");
    const GivenTrace run = trace_of(trace);
    const OwnedOptions owned(options, run.direction);
    const BestSoFar found = best_so_far(run.view, budget, owned.options);
    glidepath_best_so_far_t out{};
    out.status = name(found.status).data();
    out.step = found.step;
    out.value = found.value;
    out.prob_past = found.prob_past;
    out.budget = found.budget;
    write(out, best, "best");
  });
}
