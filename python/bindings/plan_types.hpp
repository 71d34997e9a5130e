// SPDX-License-Identifier: Apache-2.0
// A Snapshot and a Plan on their way between Python and C++. The C++ Snapshot borrows; Python's
// owns, so that a policy may keep one as long as it likes.
#pragma once

#include "glidepath/plan.hpp"

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace glidepath::python {

namespace py = pybind11;

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// None = without.
inline const Pairs* pairs_or_null(const py::object& pairs) {
  return pairs.is_none() ? nullptr : pairs.cast<const Pairs*>();
}

/// A job that owns the curve it has observed.
struct OwnedJob {
  Job job{};
  std::shared_ptr<const Trace> curve{};

  OwnedJob() = default;
  explicit OwnedJob(const Job& other) : job(other) {
    observe({other.observed.step.begin(), other.observed.step.end()},
            {other.observed.loss.begin(), other.observed.loss.end()});
  }
  void observe(std::vector<double> step, std::vector<double> loss) {
    auto trace = std::make_shared<Trace>();
    trace->step = std::move(step);
    trace->loss = std::move(loss);
    job.observed = trace->view();
    curve = std::move(trace);
  }
};

class OwnedSnapshot {
 public:
  OwnedSnapshot(std::vector<Tier> tiers, const std::vector<OwnedJob>& jobs,
                std::vector<Allocation> running, double now_s)
      : now_s_(now_s), tiers_(std::move(tiers)), running_(std::move(running)) {
    for (const OwnedJob& owned : jobs) {
      jobs_.push_back(owned.job);
      curves_.push_back(owned.curve);
    }
  }
  /// Copies what the snapshot borrows.
  explicit OwnedSnapshot(const Snapshot& snapshot)
      : now_s_(snapshot.now_s),
        tiers_(snapshot.tiers.begin(), snapshot.tiers.end()),
        running_(snapshot.running.begin(), snapshot.running.end()) {
    for (const Job& job : snapshot.jobs) {
      const OwnedJob owned(job);
      jobs_.push_back(owned.job);
      curves_.push_back(owned.curve);
    }
  }

  [[nodiscard]] Snapshot view() const { return {now_s_, tiers_, jobs_, running_}; }
  [[nodiscard]] double now_s() const { return now_s_; }
  [[nodiscard]] const std::vector<Tier>& tiers() const { return tiers_; }
  [[nodiscard]] const std::vector<Allocation>& running() const { return running_; }
  [[nodiscard]] std::vector<OwnedJob> jobs() const {
    std::vector<OwnedJob> jobs(jobs_.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      jobs[j].job = jobs_[j];
      jobs[j].curve = curves_[j];
    }
    return jobs;
  }

 private:
  double now_s_;
  std::vector<Tier> tiers_;
  std::vector<Job> jobs_;
  std::vector<std::shared_ptr<const Trace>> curves_;
  std::vector<Allocation> running_;
};

/// What a policy returned: anything with `allocations` and, if it ends jobs, `stop`.
inline Plan plan_from_python(py::handle object) {
  Plan plan;
  plan.allocations = object.attr("allocations").cast<std::vector<Allocation>>();
  if (py::hasattr(object, "stop"))
    plan.stop = object.attr("stop").cast<std::vector<std::int64_t>>();
  if (py::hasattr(object, "value")) plan.value = object.attr("value").cast<double>();
  if (py::hasattr(object, "bound")) plan.bound = object.attr("bound").cast<double>();
  if (py::hasattr(object, "prices")) {
    plan.prices = object.attr("prices").cast<std::vector<double>>();
  }
  return plan;
}

}  // namespace glidepath::python
