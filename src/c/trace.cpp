// SPDX-License-Identifier: Apache-2.0
// Traces and fits.
#include "glidepath/trace.hpp"

#include "glidepath/curve.hpp"
#include "glidepath/fit.hpp"

#include <algorithm>
#include <limits>

#include "c/boundary.hpp"
#include "c/handles.hpp"

namespace glidepath::c {

namespace {

/// Settings as their trace has them: those of the interface are these, under another name.
const Settings* settings_of(const glidepath_settings_t* given) {
  return reinterpret_cast<const Settings*>(given);
}

}  // namespace

GivenTrace trace_of(const glidepath_trace_t* given) {
  const glidepath_trace_t trace = read(needed(given, "trace"), "trace");
  return {.view = {column(trace.step, trace.points, "trace: step"),
                   column(trace.loss, trace.points, "trace: loss"),
                   column_or_empty(trace.weight, trace.points),
                   column_or_empty(trace.lr, trace.points), settings_of(trace.settings),
                   trace.metric == nullptr ? std::string_view{} : std::string_view(trace.metric)},
          .direction = direction_of(trace.direction)};
}

std::optional<Schedule> schedule_of(const glidepath_schedule_t* given) {
  if (given == nullptr) return {};
  const glidepath_schedule_t read_in = read(*given, "schedule");
  const auto step = column(read_in.step, read_in.points, "schedule: step");
  const auto lr = column(read_in.lr, read_in.points, "schedule: lr");
  return Schedule{{step.begin(), step.end()}, {lr.begin(), lr.end()}};
}

Direction direction_of(const char* text) {
  return text == nullptr ? Direction::min : direction_named(text);
}

namespace {

const double* data_or_null(const std::vector<double>& column) {
  return column.empty() ? nullptr : column.data();
}

FitOptions fit_options(const glidepath_fit_options_t* given) {
  const glidepath_fit_options_t read_in = read_or_default(given, "fit options");
  FitOptions options;
  if (read_in.family != nullptr) options.family = family_named(read_in.family);
  if (read_in.robust != nullptr) options.robust = robust_named(read_in.robust);
  if (read_in.lowest_floor != nullptr) options.lowest_floor = *read_in.lowest_floor;
  if (read_in.from_step != nullptr) options.from_step = *read_in.from_step;
  return options;
}

glidepath_fit_t record_of(const Fit& fit) {
  glidepath_fit_t out{};
  out.family = name(fit.curve.family).data();
  out.status = name(fit.status).data();
  const auto names = parameter_names(fit.curve.family);
  out.parameter_count = static_cast<std::int32_t>(names.size());
  out.points = fit.points;
  for (std::size_t k = 0; k < names.size(); ++k) {
    out.parameter_names[k] = names[k].data();
    out.parameters[k] = fit.curve.parameters[k];
    out.standard_error[k] = fit.standard_error[k];
  }
  out.sigma = fit.sigma;
  out.rss = fit.rss;
  out.aicc = fit.aicc;
  out.bic = fit.bic;
  out.last_step = fit.last_step;
  return out;
}

}  // namespace
}  // namespace glidepath::c

using namespace glidepath;     // NOLINT(google-build-using-namespace)
using namespace glidepath::c;  // NOLINT(google-build-using-namespace)

glidepath_status glidepath_read_traces(const char* path, const char* metric, const char* format,
                                       glidepath_traces_t** traces) {
  return handed_over(traces, "traces", [&] {
    auto read_in = std::make_unique<glidepath_traces_t>();
    ReadOptions options;
    if (metric != nullptr) options.metric = metric;
    if (format != nullptr) options.format = format;
    read_in->traces = read_traces(&needed(path, "path"), options);
    return read_in;
  });
}

glidepath_status glidepath_traces_count(const glidepath_traces_t* traces, size_t* count) {
  return guarded([&] { needed(count, "count") = needed(traces, "traces").traces.size(); });
}

glidepath_status glidepath_traces_get(const glidepath_traces_t* traces, size_t index,
                                      glidepath_trace_t* trace) {
  return guarded([&] {
    const auto& all = needed(traces, "traces").traces;
    if (index >= all.size()) {
      detail::refuse("traces: no trace ", index, " of ", all.size());
    }
    const Trace& one = all[index];
    glidepath_trace_t out{};
    out.points = one.step.size();
    out.step = data_or_null(one.step);
    out.loss = data_or_null(one.loss);
    out.lr = data_or_null(one.lr);
    out.name = one.name.c_str();
    out.metric = one.metric.c_str();
    out.direction = name(one.direction).data();
    out.planned_steps = one.planned_steps.value_or(std::numeric_limits<double>::quiet_NaN());
    if (!one.settings.empty()) {
      out.settings = reinterpret_cast<const glidepath_settings_t*>(&one.settings);
    }
    write(out, trace, "trace");
  });
}

void glidepath_traces_free(glidepath_traces_t* traces) { delete traces; }

glidepath_status glidepath_fit(const glidepath_trace_t* trace,
                               const glidepath_fit_options_t* options, glidepath_fit_t* fit) {
  return guarded([&] {
    needed(fit, "fit");
    write(record_of(glidepath::fit(trace_of(trace).view, fit_options(options))), fit, "fit");
  });
}

glidepath_status glidepath_fit_predict(const glidepath_fit_t* fit, const double* steps,
                                       size_t count, double* loss) {
  return guarded([&] {
    const glidepath_fit_t given = read(needed(fit, "fit"), "fit");
    Curve curve{.family = family_named(&needed(given.family, "fit: family"))};
    const std::size_t expected = parameter_names(curve.family).size();
    if (given.parameter_count != static_cast<std::int32_t>(expected)) {
      detail::refuse("fit: parameter_count is ", given.parameter_count, ", expected ", expected,
                     " of ", given.family);
    }
    std::ranges::copy(given.parameters, curve.parameters.begin());
    const auto at = column(steps, count, "steps");
    column(loss, count, "loss");
    std::ranges::transform(at, loss, [&](double step) { return evaluate(curve, step); });
  });
}
