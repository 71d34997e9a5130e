// SPDX-License-Identifier: Apache-2.0
// What was stored and comes back in other bytes: the numbers of the model as text, a forecast, what
// past runs taught. It is refused in a sentence, or can be used.
#include "glidepath/forecast.hpp"

#include <string>
#include <vector>

#include "case.hpp"
#include "forecast/constants.hpp"
#include "forecast/law.hpp"

namespace {

using namespace glidepath;
using fuzz::Case;

Forecast forecast_of_a_run(const ForecastOptions& options = {}) {
  const std::vector<double> steps{1, 2, 3, 4, 6, 8, 12, 16}, at{32, 64},
      losses{5, 4, 3.5, 3.2, 2.9, 2.8, 2.7, 2.6};
  return forecast({steps, losses}, at, options);
}

/// A line of the learned table replaced, cut or doubled.
void read_text(Case& given) {
  static const std::string learned(detail::learned_table());
  std::string text = learned;
  for (int edit = given.between(1, 4); edit > 0; --edit) {
    const std::size_t at = (given.byte() * 256U + given.byte()) % text.size();
    const auto length = static_cast<std::size_t>(given.byte() % 32);
    text.replace(at, length, given.byte() % 2 == 0 ? std::to_string(given.number()) : "");
    if (text.empty()) break;
  }
  const Forecast found = forecast_of_a_run({.constants = read_constants(text)});
  (void)found;
}

void unpack(Case& given) {
  std::vector<double> numbers = detail::pack_law(*forecast_of_a_run().law);
  for (int edit = given.between(0, 4); edit > 0; --edit) {
    numbers[(given.byte() * 256U + given.byte()) % numbers.size()] = given.number();
  }
  if (given.byte() % 4 == 0) numbers.resize(given.byte());
  Forecast stored = forecast_of_a_run();
  stored.law = std::make_shared<const detail::Law>(detail::unpack_law(numbers));
  (void)quantile(stored, 0.25);
  (void)prob_below(stored, given.number());
}

void restore(Case& given) {
  const int count = given.between(0, 6);
  const PastRuns past = PastRuns::restored(
      {}, {.horizon = given.numbers(count), .factor = given.numbers(given.between(0, 6))});
  const Forecast f = forecast_of_a_run({.past = &past});
  GLIDEPATH_HOLDS(fuzz::finite({f.quantiles.data(), static_cast<std::size_t>(f.quantiles.size())}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const int which = given.byte() % 3;
  fuzz::allow_refusal([&] {
    if (which == 0) read_text(given);
    if (which == 1) unpack(given);
    if (which == 2) restore(given);
  });
  return 0;
}
