// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "forecast_records.hpp"
#include "long_call.hpp"
#include "watch/points.hpp"

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

Watch watch_of(std::optional<double> target, std::optional<double> budget,
               const std::string& direction, const Maybe<Schedule>& schedule,
               const Maybe<PastRuns>& past, double alpha, const std::string& reached_by) {
  WatchOptions options{.target = target,
                       .budget = budget,
                       .direction = named(std::array{Direction::min, Direction::max}, direction,
                                          "watch: direction is"),
                       .past = past.value_or(nullptr),
                       .alpha = alpha,
                       .reached_by = reached_by_named(reached_by)};
  if (schedule) options.schedule = **schedule;
  return Watch(std::move(options));
}

}  // namespace

template <>
struct Names<Verdict> {
  static Verdict parse(const std::string& text) {
    return named(kVerdicts, text, "watch: verdict is");
  }
};

}  // namespace glidepath::python

void bind_watch(pybind11::module_& module) {
  using namespace glidepath;           // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a

  module.attr("VERDICTS") = names_of(kVerdicts);
  module.attr("WATCH_ALPHA") = WatchOptions{}.alpha;
  module.attr("READING") = name(WatchOptions{}.reached_by);
  module.attr("SHOWN_LEVELS") = py::cast(std::tuple_cat(kShownLevels));
  module.attr("WATCH_PATIENCE") = kPatience;
  module.attr("WATCH_LOOKS") = kLooks;
  module.attr("MIN_WATCHED_POINTS") = glidepath::detail::kMinWatchedPoints;
  module.def("open_budget", &open_budget, "first_step"_a, "last_step"_a,
             "Step to which a run may go on where nothing says how far.");

  Record<Decision>(module, "DecisionRecord")
      .keyword("verdict", &Decision::verdict)
      .keyword("probability", &Decision::probability)
      .keyword("steps_to_target", &Decision::steps_to_target)
      .keyword("reason", &Decision::reason);

  Record<WatchState>(module, "WatchState")
      .keyword("step", &WatchState::step)
      .keyword("loss", &WatchState::loss)
      .keyword("weight", &WatchState::weight)
      .keyword("lr", &WatchState::lr)
      .keyword("newest", &WatchState::newest)
      .keyword("last_step", &WatchState::last_step)
      .keyword("first_loss", &WatchState::first_loss)
      .keyword("best_loss", &WatchState::best_loss)
      .keyword("reached_step", &WatchState::reached_step)
      .keyword("at_target", &WatchState::at_target)
      .keyword("points", &WatchState::points)
      .keyword("nonfinite", &WatchState::nonfinite)
      .keyword("trailing_nonfinite", &WatchState::trailing_nonfinite)
      .keyword("restarts", &WatchState::restarts)
      .keyword("longest_gap", &WatchState::longest_gap);

  py::class_<Watch>(module, "WatchRecord")
      .def(py::init(&watch_of), py::kw_only(), "target"_a, "budget"_a, "direction"_a, "schedule"_a,
           "past"_a, "alpha"_a, "reached_by"_a)
      .def("add", &Watch::add, "step"_a, "loss"_a, "lr"_a)
      .def("decision",
           [](const Watch& watch) {
             const Watch seen = watch;  // another thread may add to it meanwhile
             const LongCall call;
             return seen.decision();
           })
      .def(
          "judge",
          [](Watch& watch, const std::vector<double>& steps, const std::vector<double>& losses) {
            Watch seen = watch;  // as above
            const Ruling ruling = [&] {
              const LongCall call;
              return judge(seen, steps, losses);
            }();
            watch = std::move(seen);
            return py::make_tuple(ruling.decision, ruling.stop);
          },
          "steps"_a, "losses"_a)
      .def_property_readonly("state", [](const Watch& watch) { return watch.state(); })
      .def("restore", &Watch::restore, "state"_a);
}
