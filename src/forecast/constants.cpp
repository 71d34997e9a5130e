// SPDX-License-Identifier: Apache-2.0
#include "forecast/constants.hpp"

#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr std::string_view kPrototype =
#include "forecast/prototype_constants.inc"
    ;
constexpr std::string_view kLearned =
#include "forecast/learned_constants.inc"
    ;

ForecastConstants::Family family_from(const std::string& text, int line) {
  using Family = ForecastConstants::Family;
  static const std::map<std::string, Family> kNames{{"power", Family::power},
                                                    {"weibull", Family::weibull},
                                                    {"hill", Family::hill},
                                                    {"log", Family::log},
                                                    {"constant", Family::constant}};
  const auto found = kNames.find(text);
  if (found == kNames.end()) {
    detail::refuse("forecast constants: line ", line, ": unknown shape '", text, "'");
  }
  return found->second;
}

/// "gate structure 3 ..." for the structure read third, "gate family weibull ...", "gate width
/// ...".
bool read_gate(std::istringstream& words, ForecastConstants& c) {
  ForecastConstants::Gate& gate = c.gate;
  std::string of;
  if (!(words >> of)) return false;
  ForecastConstants::Row row{};
  ForecastConstants::Row* target = nullptr;
  if (of == "structure") {
    std::size_t index = 0;
    if (!(words >> index) || index >= c.structures.size()) return false;
    gate.structure.resize(c.structures.size());
    target = &gate.structure[index];
  } else if (of == "family") {
    std::string family;
    if (!(words >> family)) return false;
    target = &gate.family[static_cast<std::size_t>(family_from(family, 0))];
  } else {
    const std::map<std::string, ForecastConstants::Row*> rows{
        {"rising", &gate.rising}, {"temper", &gate.temper},     {"inflation", &gate.inflation},
        {"drop", &gate.drop},     {"distance", &gate.distance}, {"width", &gate.width}};
    const auto found = rows.find(of);
    if (found == rows.end()) return false;
    target = found->second;
  }
  for (double& value : row) {
    if (!(words >> value)) return false;
  }
  *target = row;
  return true;
}

}  // namespace

std::shared_ptr<const ForecastConstants> read_constants(std::string_view text) {
  auto constants = std::make_shared<ForecastConstants>();
  ForecastConstants& c = *constants;
  const std::map<std::string, double*> numbers{
      {"temper", &c.temper},
      {"rss_floor", &c.rss_floor},
      {"jitter", &c.jitter},
      {"rising_penalty", &c.rising_penalty},
      {"inflation", &c.inflation},
      {"drop", &c.drop},
      {"distance", &c.distance},
      {"distance_power", &c.distance_power},
      {"degrees", &c.degrees},
      {"width", &c.width},
      {"backtest", &c.backtest},
      {"backtest_level", &c.backtest_level},
      {"count_cap", &c.count_cap},
      {"spike", &c.spike},
      {"tail_mass", &c.tail_mass},
      {"lag", &c.lag},
      {"warmup", &c.warmup},
      {"clock", &c.clock},
      {"warm_clock", &c.warm_clock},
      {"gain_range", &c.gain_range},
      {"gain_fall", &c.gain_fall},
      {"template_mass", &c.template_mass},
      {"template_odds", &c.template_odds},
      {"template_discrepancy", &c.template_discrepancy},
      {"template_shift", &c.template_shift},
      {"template_stretch", &c.template_stretch},
      {"analogy", &c.analogy},
  };
  const std::map<std::string, int*> counts{
      {"bins", &c.bins}, {"components", &c.components}, {"templates", &c.templates}};
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key) || key.front() == '#') continue;
    bool good = true;
    if (key == "shape") {
      std::string family;
      ForecastConstants::Shape shape;
      good = static_cast<bool>(words >> family >> shape.p >> shape.q >> shape.log_prior);
      if (good) shape.family = family_from(family, number);
      c.shapes.push_back(shape);
    } else if (key == "structure") {
      ForecastConstants::Structure structure;
      good = static_cast<bool>(words >> structure.lambda >> structure.eta >> structure.log_prior);
      c.structures.push_back(structure);
    } else if (key == "gain") {
      ForecastConstants::Gain gain;
      good = static_cast<bool>(words >> gain.gain >> gain.log_prior);
      c.gains.push_back(gain);
    } else if (key == "gate") {
      good = read_gate(words, c);
    } else if (key == "signed_metrics") {
      std::string how;
      good = static_cast<bool>(words >> how) && (how == "linear" || how == "shifted_log");
      c.signed_linear = how == "linear";
    } else if (const auto real = numbers.find(key); real != numbers.end()) {
      good = static_cast<bool>(words >> *real->second) && std::isfinite(*real->second);
    } else if (const auto count = counts.find(key); count != counts.end()) {
      good = static_cast<bool>(words >> *count->second) && *count->second > 0;
    } else {
      good = false;
    }
    if (!good) detail::refuse("forecast constants: line ", number, ": cannot read '", line, "'");
  }
  if (c.shapes.empty() || c.structures.empty()) {
    detail::refuse("forecast constants: ", c.shapes.size(), " shapes and ", c.structures.size(),
                   " structures, at least one of each is needed");
  }
  if (c.gains.empty()) c.gains.push_back({});
  c.gate.structure.resize(c.structures.size());
  if (c.bins < 8 || c.bins > 256) {
    detail::refuse("forecast constants: bins ", c.bins, " is not in 8 to 256");
  }
  return constants;
}

std::string_view constants_named(std::string_view name) {
  if (name == "learned") return kLearned;
  if (name == "prototype") return kPrototype;
  detail::refuse("forecast: unknown constants '", name, "', known are learned and prototype");
}

namespace detail {

const ForecastConstants& learned_constants() {
  static const std::shared_ptr<const ForecastConstants> table = read_constants(kLearned);
  return *table;
}

}  // namespace detail
}  // namespace glidepath
