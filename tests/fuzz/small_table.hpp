// SPDX-License-Identifier: Apache-2.0
// The learned table with few shapes, structures and components: a forecast by it takes a tenth of
// the time, and a fuzzer tries ten times as many.
#pragma once

#include <memory>

#include "forecast/constants.hpp"

namespace glidepath::fuzz {

inline std::shared_ptr<const ForecastConstants> small_table() {
  static const auto made = [] {
    auto small = std::make_shared<ForecastConstants>(detail::learned_constants());
    small->shapes.resize(3);
    small->structures.resize(1);
    small->gate.structure.resize(1);
    small->components = 3;
    return small;
  }();
  return made;
}

}  // namespace glidepath::fuzz
