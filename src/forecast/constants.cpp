// SPDX-License-Identifier: Apache-2.0
#include "forecast/constants.hpp"

#include <algorithm>
#include <cmath>
#include <locale>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

#include "common/names.hpp"
#include "common/require.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

constexpr std::string_view kLearned =
#include "forecast/learned_constants.inc"
    ;

ForecastConstants::ShapeKind family_from(const std::string& text, int line) {
  using ShapeKind = ForecastConstants::ShapeKind;
  static const std::map<std::string, ShapeKind> kNames{{"power", ShapeKind::power},
                                                       {"weibull", ShapeKind::weibull},
                                                       {"hill", ShapeKind::hill},
                                                       {"log", ShapeKind::log},
                                                       {"constant", ShapeKind::constant}};
  const auto found = kNames.find(text);
  if (found == kNames.end()) {
    detail::refuse("forecast constants: line ", line, ": shape is '", text, "', expected one of ",
                   detail::listed(kNames, [](const auto& each) { return each.first; }));
  }
  return found->second;
}

/// A number for each of the values.
bool read_all(std::istringstream& words, std::span<double> values) {
  return std::ranges::all_of(values,
                             [&](double& value) { return static_cast<bool>(words >> value); });
}

/// "gate structure 3 ..." for the structure read third, "gate family weibull ...", "gate width
/// ...".
bool read_gate(std::istringstream& words, int line, ForecastConstants& c) {
  ForecastConstants::Gate& gate = c.gate;
  std::string of;
  if (!(words >> of)) return false;
  if (of == "structure") {
    std::size_t index = 0;
    if (!(words >> index) || index >= c.structures.size()) return false;
    gate.structure.resize(c.structures.size());
    return read_all(words, gate.structure[index]);
  }
  if (of == "family") {
    std::string family;
    if (!(words >> family)) return false;
    return read_all(words, gate.family[static_cast<std::size_t>(family_from(family, line))]);
  }
  const std::map<std::string, ForecastConstants::Row*> rows{
      {"rising", &gate.rising}, {"temper", &gate.temper},     {"inflation", &gate.inflation},
      {"drop", &gate.drop},     {"distance", &gate.distance}, {"width", &gate.width}};
  const auto found = rows.find(of);
  return found != rows.end() && read_all(words, *found->second);
}

/// "ahead lean -0.2 ...": the constant and a coefficient of each feature.
bool read_ahead(std::istringstream& words, ForecastConstants::Ahead& ahead) {
  const std::map<std::string, ForecastConstants::Affine*> known{
      {"lean", &ahead.lean}, {"lean_far", &ahead.lean_far}, {"widen", &ahead.widen}};
  std::string of;
  if (!(words >> of)) return false;
  const auto found = known.find(of);
  return found != known.end() && words >> found->second->constant &&
         read_all(words, found->second->slope);
}

/// "best 0.1 ...": the constant and a coefficient of each sign.
bool read_best(std::istringstream& words, ForecastConstants::Best& best) {
  return words >> best.constant && read_all(words, best.slope);
}

/// "shape power 0.3 0.01 -3.9" and the other lines that a table has any number of.
bool read_row(const std::string& key, std::istringstream& words, int line, ForecastConstants& c) {
  if (key == "shape") {
    std::string family;
    ForecastConstants::Shape shape;
    if (!(words >> family >> shape.p >> shape.q >> shape.log_prior)) return false;
    shape.family = family_from(family, line);
    c.shapes.push_back(shape);
    return true;
  }
  if (key == "structure") {
    ForecastConstants::Structure& s = c.structures.emplace_back();
    return static_cast<bool>(words >> s.lambda >> s.eta >> s.log_prior);
  }
  if (key == "gain") {
    ForecastConstants::Gain& gain = c.gains.emplace_back();
    return static_cast<bool>(words >> gain.gain >> gain.log_prior);
  }
  if (key == "ahead") return read_ahead(words, c.ahead);
  if (key == "best") return read_best(words, c.best);
  return key == "gate" && read_gate(words, line, c);
}

/// The numbers by name, each of which a table has once.
using Numbers = std::map<std::string, std::variant<double*, int*>>;

Numbers numbers_of(ForecastConstants& c) {
  return {{"temper", &c.temper},
          {"rss_floor", &c.rss_floor},
          {"rising_penalty", &c.rising_penalty},
          {"inflation", &c.inflation},
          {"drop", &c.drop},
          {"distance", &c.distance},
          {"distance_power", &c.distance_power},
          {"degrees", &c.degrees},
          {"width", &c.width},
          {"decision_width", &c.decision_width},
          {"linear_move", &c.linear_move},
          {"stretch", &c.stretch},
          {"take_off", &c.take_off},
          {"lasting_noise", &c.lasting_noise},
          {"backtest_width", &c.backtest_width},
          {"epochs", &c.epochs},
          {"bins", &c.bins},
          {"count_cap", &c.count_cap},
          {"spike", &c.spike},
          {"max_log_noise", &c.max_log_noise},
          {"max_fall", &c.max_fall},
          {"components", &c.components},
          {"tail_mass", &c.tail_mass},
          {"lag", &c.lag},
          {"backtest", &c.backtest},
          {"backtest_level", &c.backtest_level},
          {"clock", &c.clock},
          {"warm_clock", &c.warm_clock},
          {"warmup", &c.warmup},
          {"gain_range", &c.gain_range},
          {"gain_fall", &c.gain_fall},
          {"template_odds", &c.template_odds},
          {"template_discrepancy", &c.template_discrepancy},
          {"template_shift", &c.template_shift},
          {"template_stretch", &c.template_stretch},
          {"analogy", &c.analogy},
          {"templates", &c.templates}};
}

bool read_number(std::istringstream& words, const std::variant<double*, int*>& target) {
  if (const auto* count = std::get_if<int*>(&target)) return words >> **count && **count > 0;
  double& number = *std::get<double*>(target);
  return words >> number && std::isfinite(number);
}

/// What the text as a whole must have.
void check(const ForecastConstants& c, const Numbers& missing) {
  if (!missing.empty()) {
    detail::refuse("forecast constants: no line gives '", missing.begin()->first, "'");
  }
  if (c.shapes.empty() || c.structures.empty()) {
    detail::refuse("forecast constants: ", c.shapes.size(), " shapes and ", c.structures.size(),
                   " structures, expected at least one of each");
  }
  if (c.bins < 8 || c.bins > 256) {
    detail::refuse("forecast constants: bins is ", c.bins, ", expected 8 to 256");
  }
  if (!(c.degrees >= detail::kMinDegrees)) {
    detail::refuse("forecast constants: degrees is ", c.degrees, ", expected ", detail::kMinDegrees,
                   " or more");
  }
  for (const auto& [share, x] :
       {std::pair{"epochs", c.epochs}, std::pair{"take_off", c.take_off}}) {
    if (!(x >= 0 && x <= 1)) {
      detail::refuse("forecast constants: ", share, " is ", x, ", expected 0 to 1");
    }
  }
  if (!(c.max_fall >= 0)) {
    detail::refuse("forecast constants: max_fall is ", c.max_fall, ", expected 0 or more");
  }
  for (const auto& [divisor, x] :
       {std::pair{"lag", c.lag}, std::pair{"gain_range", c.gain_range},
        std::pair{"gain_fall", c.gain_fall}, std::pair{"template_shift", c.template_shift},
        std::pair{"template_stretch", c.template_stretch}}) {
    if (!(x > 0)) detail::refuse("forecast constants: ", divisor, " is ", x, ", expected above 0");
  }
}

}  // namespace

std::shared_ptr<const ForecastConstants> read_constants(std::string_view text) {
  auto constants = std::make_shared<ForecastConstants>();
  ForecastConstants& c = *constants;
  Numbers missing = numbers_of(c);
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    words.imbue(std::locale::classic());
    std::string key;
    if (!(words >> key) || key.front() == '#') continue;
    const auto found = missing.find(key);
    const bool good = found != missing.end() ? read_number(words, found->second)
                                             : read_row(key, words, number, c);
    if (!good) detail::refuse("forecast constants: line ", number, ": cannot read '", line, "'");
    if (found != missing.end()) missing.erase(found);
  }
  check(c, missing);
  if (c.gains.empty()) c.gains.push_back({});
  c.gate.structure.resize(c.structures.size());
  return constants;
}

namespace detail {

std::string_view learned_table() { return kLearned; }

const ForecastConstants& learned_constants() {
  static const std::shared_ptr<const ForecastConstants> table = read_constants(kLearned);
  return *table;
}

}  // namespace detail
}  // namespace glidepath
