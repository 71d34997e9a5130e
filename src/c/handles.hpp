// SPDX-License-Identifier: Apache-2.0
// What is behind the handles of glidepath.h that more than one file looks into.
#pragma once

#include "glidepath/forecast.hpp"
#include "glidepath/glidepath.h"
#include "glidepath/trace.hpp"

#include <memory>
#include <vector>

struct glidepath_traces_t {
  std::vector<glidepath::Trace> traces{};
};

struct glidepath_past_runs_t {
  std::shared_ptr<const glidepath::PastRuns> runs{};
};
