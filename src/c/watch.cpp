// SPDX-License-Identifier: Apache-2.0
// One live run.
#include "glidepath/watch.hpp"

#include "c/boundary.hpp"
#include "c/handles.hpp"

struct glidepath_watch_t {
  explicit glidepath_watch_t(glidepath::WatchOptions options) : watch(std::move(options)) {}
  glidepath::Watch watch;
  glidepath::Decision decision{};  ///< whose reason the caller reads
};

namespace glidepath::c {
namespace {

WatchOptions watch_options(const glidepath_watch_options_t* given) {
  const auto read_in = read_or_default(given, "watch options");
  WatchOptions options;
  if (read_in.target != nullptr) options.target = *read_in.target;
  if (read_in.budget != nullptr) options.budget = *read_in.budget;
  options.direction = direction_of(read_in.direction);
  if (read_in.reached_by != nullptr) options.reached_by = reached_by_named(read_in.reached_by);
  if (read_in.alpha != 0) options.alpha = read_in.alpha;
  if (read_in.past != nullptr) options.past = read_in.past->runs;
  options.schedule = schedule_of(read_in.schedule);
  return options;
}

}  // namespace
}  // namespace glidepath::c

using namespace glidepath;     // NOLINT(google-build-using-namespace)
using namespace glidepath::c;  // NOLINT(google-build-using-namespace)

glidepath_status glidepath_watch(const glidepath_watch_options_t* options,
                                 glidepath_watch_t** watch) {
  return handed_over(watch, "watch",
                     [&] { return std::make_unique<glidepath_watch_t>(watch_options(options)); });
}

glidepath_status glidepath_watch_add(glidepath_watch_t* watch, double step, double loss,
                                     double lr) {
  return guarded([&] { needed(watch, "watch").watch.add(step, loss, lr); });
}

glidepath_status glidepath_watch_decision(glidepath_watch_t* watch,
                                          glidepath_decision_t* decision) {
  return guarded([&] {
    // First, as the reason of the decision before is the caller's until the next is handed over.
    check_size(needed(decision, "decision").size, "decision");
    glidepath_watch_t& live = needed(watch, "watch");
    live.decision = live.watch.decision();
    glidepath_decision_t out{};
    out.verdict = name(live.decision.verdict).data();
    out.probability = live.decision.probability;
    std::ranges::copy(live.decision.steps_to_target, out.steps_to_target);
    out.reason = live.decision.reason.c_str();
    write(out, decision, "decision");
  });
}

void glidepath_watch_free(glidepath_watch_t* watch) { delete watch; }
