// SPDX-License-Identifier: Apache-2.0
// Indexed schedulers for one tier and jobs without curves, each run to the end. Per event they look
// at the heads of their queues and at the few running jobs behind them, never at all waiting jobs.
#pragma once

#include "simulate/cluster.hpp"

namespace glidepath::detail {

void run_fifo(Cluster& cluster);
void run_first_fit(Cluster& cluster);
void run_sjf(Cluster& cluster);
void run_srtf(Cluster& cluster);
void run_srsf(Cluster& cluster);
void run_las(Cluster& cluster);
/// Sessions of SimulationOptions::session_s, which must be set.
void run_session_fifo(Cluster& cluster);
/// The better of SRTF and SRSF so far, or by Gittins index where durations are forecast; with
/// patience where starts cost.
void run_gittins(Cluster& cluster);

}  // namespace glidepath::detail
