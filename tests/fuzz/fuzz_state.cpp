// SPDX-License-Identifier: Apache-2.0
// What was stored and comes back in other bytes: the numbers of the model as text, a forecast, what
// past runs taught, a watch. It is refused in a sentence, or can be used.
#include "glidepath/forecast.hpp"
#include "glidepath/watch.hpp"

#include <string>
#include <vector>

#include "case.hpp"
#include "forecast/constants.hpp"
#include "forecast/stored_law.hpp"
#include "small_table.hpp"

namespace {

using namespace glidepath;
using fuzz::Case;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool probability(double p) { return p >= 0 && p <= 1; }

Forecast forecast_of_a_run(ForecastOptions options = {}) {
  static const std::vector<double> steps{1, 2, 3, 4, 6, 8, 12, 16}, at{32, 64},
      losses{5, 4, 3.5, 3.2, 2.9, 2.8, 2.7, 2.6};
  if (!options.constants) options.constants = fuzz::small_table();
  return forecast({steps, losses}, at, options);
}

bool finite(const Forecast& f) {
  return fuzz::finite({f.quantiles.data(), static_cast<std::size_t>(f.quantiles.size())}) &&
         fuzz::finite(f.median);
}

/// Lines of the learned table replaced, cut or doubled.
void read_text(Case& given) {
  static const std::string learned(detail::learned_table());
  std::string text = learned;
  for (int edit = given.between(1, 4); edit > 0; --edit) {
    const std::size_t at = (given.byte() * 256U + given.byte()) % text.size();
    const auto length = static_cast<std::size_t>(given.byte() % 32);
    text.replace(at, length, given.byte() % 2 == 0 ? std::to_string(given.number()) : "");
    if (text.empty()) break;
  }
  GLIDEPATH_HOLDS(finite(forecast_of_a_run({.constants = read_constants(text)})));
}

void unpack(Case& given) {
  static const Forecast made = forecast_of_a_run();
  static const std::vector<double> packed = detail::pack_law(*made.law);
  std::vector<double> numbers = packed;
  for (int edit = given.between(0, 4); edit > 0; --edit) {
    numbers[(given.byte() * 256U + given.byte()) % numbers.size()] = given.number();
  }
  if (given.byte() % 16 == 0) numbers.resize(given.byte());
  Forecast stored = made;
  stored.law = std::make_shared<const detail::Law>(detail::unpack_law(numbers));
  const std::vector<double> low = quantile(stored, 0.25), high = quantile(stored, 0.75);
  for (std::size_t i = 0; i < low.size(); ++i) {  // each has a search of its own
    GLIDEPATH_HOLDS(low[i] <= high[i] + 1e-12 * (std::abs(low[i]) + std::abs(high[i])));
  }
  for (const double p : prob_below(stored, given.number())) GLIDEPATH_HOLDS(probability(p));
}

void restore(Case& given) {
  const int count = given.between(0, 6);
  const PastRuns past = PastRuns::restored(
      {}, {.horizon = given.numbers(count), .factor = given.numbers(given.between(0, 6))});
  GLIDEPATH_HOLDS(finite(forecast_of_a_run({.past = &past})));
}

/// A watch in a state of arbitrary numbers goes on; where it has no target it decides without a
/// forecast.
void go_on(Case& given) {
  const int count = given.between(0, 12), what = given.byte();
  WatchState state{.step = given.steps(count),
                   .loss = given.numbers(count),
                   .weight = what & 1 ? given.numbers(count) : std::vector<double>(count, 1.0),
                   .lr = what & 2 ? given.numbers(count) : std::vector<double>(count, kNaN),
                   .newest = given.numbers(given.between(0, 11))};
  state.last_step = what & 4 || state.step.empty() ? given.number() : state.step.back();
  state.first_loss = what & 8 ? given.number() : 1;
  state.best_loss = what & 8 ? given.number() : 1;
  state.reached_step = what & 16 ? given.number() : kNaN;
  state.points = what & 32 ? given.byte() - 128 : 1 << 20;
  Watch watch(what >= 252 ? WatchOptions{.target = given.number()} : WatchOptions{});
  watch.restore(state);
  for (int more = given.between(0, 160); more > 0 && !given.empty(); --more) {
    const double last = watch.state().last_step;
    const double step = given.byte() < 240 ? last + 1 : given.number();
    fuzz::allow_refusal([&] { watch.add(step, given.number()); });
  }
  const double p = watch.decision().probability;
  GLIDEPATH_HOLDS(probability(p) == watch.options().target.has_value());
  watch.restore(watch.state());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const int which = given.byte() % 32;  // a table is read in a millisecond
  fuzz::allow_refusal([&] {
    if (which == 0) return read_text(given);
    if (which % 3 == 0) return unpack(given);
    if (which % 3 == 1) return restore(given);
    go_on(given);
  });
  return 0;
}
