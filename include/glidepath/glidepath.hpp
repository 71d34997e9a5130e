// SPDX-License-Identifier: Apache-2.0
/// glidepath: trace -> fit -> forecast -> plan -> simulate.
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/error.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/fit.hpp"
#include "glidepath/forecast.hpp"
#include "glidepath/hardware.hpp"
#include "glidepath/parts.hpp"
#include "glidepath/plan.hpp"
#include "glidepath/simulate.hpp"
#include "glidepath/trace.hpp"
#include "glidepath/version.hpp"
#include "glidepath/watch.hpp"
