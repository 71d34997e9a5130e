// SPDX-License-Identifier: Apache-2.0
// Values of the planner on their way between Python and C++. The C++ Snapshot and PlanOptions
// borrow; Python's own, so that a policy may keep one as long as it likes.
#pragma once

#include "glidepath/plan.hpp"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "record.hpp"

namespace glidepath::python {
class AnyPlan;
}
template <>
struct pybind11::detail::handle_type_name<glidepath::python::AnyPlan> {
  static constexpr auto name = const_name("glidepath._plan.Plan");
};

namespace glidepath::python {

namespace py = pybind11;

/// A `glidepath.Plan`, or what has its allocations.
class AnyPlan : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(AnyPlan, py::object, anything)
 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <>
struct Names<ReachedBy> {
  static ReachedBy parse(const std::string& text) { return reached_by_named(text); }
};
template <>
struct Names<Sharing> {
  static Sharing parse(const std::string& text) { return sharing_named(text); }
};

/// A job that owns the curve it has observed.
struct OwnedJob : Job {
  std::shared_ptr<Trace> curve = std::make_shared<Trace>();

  OwnedJob() = default;
  explicit OwnedJob(const Job& other) : Job(other) {
    curve->step.assign(other.observed.step.begin(), other.observed.step.end());
    curve->loss.assign(other.observed.loss.begin(), other.observed.loss.end());
    observed = curve->view();
  }
  /// For a job that is being made: nobody else has its curve yet.
  void observe(std::vector<double> Trace::*column, std::vector<double> values) {
    curve.get()->*column = std::move(values);
    observed = curve->view();
  }
};

class OwnedSnapshot {
 public:
  OwnedSnapshot() = default;
  /// Copies what the snapshot borrows.
  explicit OwnedSnapshot(const Snapshot& snapshot)
      : now_s(snapshot.now_s),
        tiers(snapshot.tiers.begin(), snapshot.tiers.end()),
        running(snapshot.running.begin(), snapshot.running.end()) {
    for (const Job& job : snapshot.jobs) add(OwnedJob(job));
  }

  [[nodiscard]] Snapshot view() const { return {now_s, tiers, jobs_, running}; }
  [[nodiscard]] std::vector<OwnedJob> jobs() const {
    std::vector<OwnedJob> jobs(jobs_.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      static_cast<Job&>(jobs[j]) = jobs_[j];
      jobs[j].curve = curves_[j];
    }
    return jobs;
  }
  void set_jobs(const std::vector<OwnedJob>& jobs) {
    jobs_.clear();
    curves_.clear();
    for (const OwnedJob& job : jobs) add(job);
  }

  double now_s = 0;
  std::vector<Tier> tiers{};
  std::vector<Allocation> running{};

 private:
  void add(const OwnedJob& job) {
    jobs_.push_back(job);
    curves_.push_back(job.curve);
  }

  std::vector<Job> jobs_{};
  std::vector<std::shared_ptr<Trace>> curves_{};
};

struct OwnedPlanOptions : PlanOptions {
  std::vector<double> last_prices{};
  std::shared_ptr<Pairs> known{};

  [[nodiscard]] PlanOptions view() const {
    PlanOptions options = *this;
    options.prices = last_prices;
    options.pairs = known.get();
    return options;
  }
};

struct OwnedPlacementOptions : PlacementOptions {
  std::shared_ptr<Pairs> known{};
};

/// What a policy returned: anything with `allocations` and, if it ends jobs, `stop`.
inline Plan plan_from_python(py::handle object) {
  Plan plan;
  const auto take = [&]<class M>(const char* name, M& out) {
    if (py::hasattr(object, name)) out = Convert<M>::in(object.attr(name), {"Plan", name});
  };
  if (!py::hasattr(object, "allocations")) {
    throw py::type_error("expected a Plan or another object with allocations, got " +
                         std::string(py::repr(object)));
  }
  take("allocations", plan.allocations);
  take("stop", plan.stop);
  take("value", plan.value);
  take("bound", plan.bound);
  take("prices", plan.prices);
  return plan;
}

}  // namespace glidepath::python
