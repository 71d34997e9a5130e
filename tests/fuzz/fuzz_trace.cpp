// SPDX-License-Identifier: Apache-2.0
// Raw logs and schedules of arbitrary numbers: what `clean` makes is a trace that it leaves alone,
// a schedule stays between its rates, and a level is reached as its definition has it.
#include "glidepath/trace.hpp"

#include <algorithm>
#include <vector>

#include "case.hpp"
#include "forecast/level.hpp"

namespace {

using namespace glidepath;
using fuzz::Case;

void clean_log(Case& given) {
  const int count = given.between(0, 24), what = given.byte();
  Trace raw{.step = what & 1 ? given.numbers(count) : given.steps(count),
            .loss = given.numbers(count)};
  if (what & 2) raw.lr = given.numbers(count);
  if (what & 4) raw.wall_seconds = given.numbers(count);
  const CleanOptions options{.max_points = given.between(0, 20),
                             .winsorize_sigmas = what & 8 ? given.number() : 0.0};
  const Cleaned once = clean(raw, options);
  validate(once.trace.view());
  GLIDEPATH_HOLDS(fuzz::finite(once.trace.loss));
  GLIDEPATH_HOLDS(once.trace.step.size() + once.dropped_nonfinite + once.dropped_repeats +
                      once.thinned ==
                  raw.step.size());
  const Cleaned twice = clean(once.trace, {.max_points = options.max_points});
  GLIDEPATH_HOLDS(twice.trace.step == once.trace.step && twice.trace.loss == once.trace.loss);
  const double from = given.number();
  const TraceView head = until(once.trace.view(), from);
  GLIDEPATH_HOLDS(head.step.empty() || head.step.back() <= from);
  if (const auto schedule = Schedule::logged(once.trace)) schedule->validate();
}

void check(const Schedule& schedule, double at) {
  schedule.validate();
  if (std::isnan(at)) return;
  const auto [least, most] = std::ranges::minmax(schedule.lr);
  const double lr = schedule.at(at);
  GLIDEPATH_HOLDS(lr >= least * (1 - 1e-12) - 1e-300 && lr <= most * (1 + 1e-12) + 1e-300);
}

void follow_schedule(Case& given) {
  const int kind = given.between(0, 3), count = given.between(0, 8);
  const double peak = given.number(), steps = given.number(), at = given.number();
  const double warmup = given.number(), final = given.number(), decay = given.number();
  if (kind == 0) check({given.steps(count), given.numbers(count)}, at);
  if (kind == 1) check(Schedule::cosine(peak, steps, {.warmup = warmup, .final = final}), at);
  if (kind == 2) check(Schedule::linear(peak, steps, {.warmup = warmup, .final = final}), at);
  if (kind == 3) {
    check(Schedule::wsd(peak, steps, {.warmup = warmup, .decay = decay, .final = final}), at);
  }
}

/// Level::add value by value, beside the definition: the median of the newest ones.
void reach_level(Case& given) {
  const auto by = given.byte() % 2 == 0 ? ReachedBy::curve : ReachedBy::point;
  const double target = given.number();
  detail::Level level{.target = target, .reached_by = by};
  std::vector<double> finite;
  while (!given.empty()) {
    const double value = given.number();
    const bool reached = level.add(value);
    if (!std::isfinite(value)) {
      GLIDEPATH_HOLDS(!reached);
      continue;
    }
    finite.push_back(value);
    const std::size_t window = level_window(by, finite.size());
    GLIDEPATH_HOLDS(window % 2 == 1 && window <= finite.size());
    std::vector<double> newest(finite.end() - static_cast<std::ptrdiff_t>(window), finite.end());
    const auto middle = newest.begin() + static_cast<std::ptrdiff_t>(window / 2);
    std::nth_element(newest.begin(), middle, newest.end());
    GLIDEPATH_HOLDS(reached == (*middle <= target));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const int which = given.byte() % 3;
  fuzz::allow_refusal([&] {
    if (which == 0) clean_log(given);
    if (which == 1) follow_schedule(given);
    if (which == 2) reach_level(given);
  });
  return 0;
}
