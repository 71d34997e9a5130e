// SPDX-License-Identifier: Apache-2.0
#include "forecast/past_runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/parallel.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "forecast/passages.hpp"
#include "forecast/settings.hpp"
#include "forecast/widths.hpp"
#include "trace/direction.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kMaxTeachers = 50;  // newest runs; more take their time and teach little

void refuse_other_kinds(std::span<const Trace> runs) {
  for (const Trace& run : runs) {
    try {
      validate(run.view());
    } catch (const InputError& error) {
      detail::refuse("past: '", run.name, "': ", error.what());
    }
    detail::refuse_unknown(run.direction, "past: '" + run.name + "': direction");
    if (run.direction != runs.front().direction) {
      detail::refuse("past: '", run.name, "' has direction '", name(run.direction),
                     "', the first run '", name(runs.front().direction), "'");
    }
  }
}

void refuse_broken(const Widths& widths) {
  const std::size_t horizons = widths.horizon.size();
  if (widths.factor.size() != horizons) {
    detail::refuse("past: ", horizons, " horizons, ", widths.factor.size(), " factors");
  }
  if (!widths.scheduled_factor.empty() && widths.scheduled_factor.size() != horizons) {
    detail::refuse("past: ", horizons, " horizons, ", widths.scheduled_factor.size(),
                   " scheduled factors");
  }
  for (std::size_t h = 0; h < horizons; ++h) {
    const double before = h > 0 ? widths.horizon[h - 1] : -detail::kInfinity;
    if (!(widths.horizon[h] > before) || !std::isfinite(widths.horizon[h])) {
      detail::refuse("past: horizon[", h, "] is ", widths.horizon[h],
                     ", expected a finite number above ", before);
    }
  }
  for (const std::vector<double>* factors : {&widths.factor, &widths.scheduled_factor}) {
    for (const double factor : *factors) {
      if (!(factor > 0) || std::isinf(factor)) {
        detail::refuse("past: factor is ", factor, ", expected above 0 and finite");
      }
    }
  }
  if (widths.runs < 0 || widths.scheduled_runs < 0) {
    detail::refuse("past: runs is ", std::min(widths.runs, widths.scheduled_runs),
                   ", expected 0 or more");
  }
}

}  // namespace

/// Learning the widths makes past runs by the dozen, and asks none of them for its passages.
struct detail::SharedPassages {
  std::once_flag once{}, range_once{};
  std::vector<Passages> all{};
  MetricRange range{};

  static std::span<const Passages> of(const PastRuns& past) {
    if (past.passages_ == nullptr) return {};
    SharedPassages& shared = *past.passages_;
    std::call_once(shared.once, [&] { shared.all = {past.runs_.begin(), past.runs_.end()}; });
    return shared.all;
  }

  static MetricRange range_of(const PastRuns& past) {
    if (past.passages_ == nullptr) return {};
    SharedPassages& shared = *past.passages_;
    std::call_once(shared.range_once, [&] { shared.range = middle_range(past.runs_); });
    return shared.range;
  }

 private:
  static MetricRange middle_range(std::span<const Trace> runs) {
    std::vector<double> lowest, highest;
    for (const Trace& run : runs) {
      MetricRange own;
      own.include(run.loss);
      if (own.lowest > own.highest) continue;
      lowest.push_back(own.lowest);
      highest.push_back(own.highest);
    }
    MetricRange middle;
    if (lowest.empty()) return middle;
    middle.include(upper_median(lowest));
    middle.include(upper_median(highest));
    return middle;
  }
};

std::span<const detail::Passages> detail::passages_of(const PastRuns& past) {
  return SharedPassages::of(past);
}

detail::MetricRange detail::metric_range_of(const PastRuns* past) {
  return past == nullptr ? MetricRange{} : SharedPassages::range_of(*past);
}

void detail::refuse_other_direction(const PastRuns* past, Direction live) {
  if (past == nullptr || past->runs().empty()) return;
  const Trace& run = past->runs().front();
  if (run.direction != live) {
    refuse("past: '", run.name, "' has direction '", glidepath::name(run.direction),
           "', the live run '", glidepath::name(live), "'");
  }
}

PastRuns::PastRuns(std::vector<Trace> traces, const Execution& execution,
                   const std::shared_ptr<const ForecastConstants>& constants)
    : runs_(std::move(traces)) {
  detail::check(execution);
  refuse_other_kinds(runs_);
  if (runs_.empty()) return;
  passages_ = std::make_shared<detail::SharedPassages>();
  const std::span<const Trace> all = runs_;
  widths_ =
      detail::learn_widths(all.last(std::min(all.size(), kMaxTeachers)), all, constants, execution);
  relevance_ = detail::learn_relevance(all);
}

PastRuns PastRuns::unlearned(std::vector<Trace> traces) { return restored(std::move(traces), {}); }

PastRuns PastRuns::restored(std::vector<Trace> traces, Widths widths) {
  refuse_other_kinds(traces);
  refuse_broken(widths);
  PastRuns past;
  past.runs_ = std::move(traces);
  past.passages_ = std::make_shared<detail::SharedPassages>();
  past.widths_ = std::move(widths);
  past.relevance_ = detail::learn_relevance(past.runs_);
  return past;
}

PastRuns PastRuns::update(Trace trace,
                          const std::shared_ptr<const ForecastConstants>& constants) const {
  std::vector<Trace> runs = runs_;
  runs.push_back(std::move(trace));
  refuse_other_kinds(runs);
  Widths widths = detail::learn_one_more(widths_, runs.back(), runs_, constants);
  return restored(std::move(runs), std::move(widths));
}

}  // namespace glidepath
