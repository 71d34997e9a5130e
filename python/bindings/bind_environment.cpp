// SPDX-License-Identifier: Apache-2.0
// Environments of simulations, for learners that play many side by side.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "long_call.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

using FloatArray = py::array_t<float, py::array::c_style>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

constexpr int kMaxEnvironments = 1 << 16;  // side by side: a slip is not all of the memory

/// Environments side by side, each with a workload drawn anew at every episode.
class EnvironmentBatch {
 public:
  EnvironmentBatch(std::vector<std::shared_ptr<Workload>> workloads, int count,
                   const SimulationOptions& simulation, int slots, int running,
                   double energy_weight, double weights_for_s)
      : workloads_(std::move(workloads)) {
    if (workloads_.empty()) throw InputError("environment: no workload");
    if (count < 1 || count > kMaxEnvironments) {
      throw InputError("environment: " + std::to_string(count) + " environments, expected 1 to " +
                       std::to_string(kMaxEnvironments));
    }
    for (const auto& workload : workloads_) {
      if (workload->tiers.size() != workloads_.front()->tiers.size()) {
        throw InputError("environment: workload '" + workload->name + "' has " +
                         std::to_string(workload->tiers.size()) + " tiers, the first has " +
                         std::to_string(workloads_.front()->tiers.size()));
      }
    }
    EnvironmentOptions options;
    options.simulation = simulation;
    options.slots = slots;
    options.running = running;
    options.energy_weight = energy_weight;
    options.weights_for_s = weights_for_s;
    for (int i = 0; i < count; ++i) environments_.emplace_back(options);
    over_.assign(environments_.size(), false);
    episodes_.assign(environments_.size(), 0);
  }

  [[nodiscard]] int actions() const { return environments_.front().actions(); }
  [[nodiscard]] int observation_size() const {
    return environments_.front().observation_size(workloads_.front()->tiers.size());
  }

  /// Environment i plays `first + i` of the workloads, or with first < 0 one that the seed draws.
  void reset(std::uint64_t seed, std::int64_t first, FloatArray& observation, ByteArray& mask) {
    seed_ = seed;
    first_ = first;
    std::fill(episodes_.begin(), episodes_.end(), 0);
    check(observation, mask);
    float* seen = observation.mutable_data();
    std::uint8_t* may = mask.mutable_data();
    const Turn turn(busy_);
    const LongCall call;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      begin(i);
      show(i, seen, may);
    }
  }

  void step(const Int64Array& chosen, FloatArray& observation, DoubleArray& reward,
            ByteArray& terminated, ByteArray& mask) {
    take(chosen.size(), 1, observation, reward, terminated, mask,
         [&, action = chosen.data()](std::size_t i) {
           return environments_[i].step(static_cast<int>(action[i]));
         });
  }
  void weigh(const DoubleArray& weights, FloatArray& observation, DoubleArray& reward,
             ByteArray& terminated, ByteArray& mask) {
    const auto each = static_cast<std::size_t>(actions());
    take(weights.size(), actions(), observation, reward, terminated, mask,
         [&, weight = weights.data()](std::size_t i) {
           return environments_[i].step(std::span(weight + i * each, each));
         });
  }

  Simulation simulation(std::size_t i) {
    const Turn turn(busy_);
    return environments_.at(i).simulation();
  }

 private:
  /// Refuses a call while another thread, or a handler of a signal, finds one at work. Made and
  /// ended under Python's lock.
  class Turn {
   public:
    explicit Turn(bool& busy) : busy_(busy) {
      if (busy) throw InputError("environment: one call at a time, another thread is in it");
      busy = true;
    }
    ~Turn() { busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    bool& busy_;
  };

  void check(const FloatArray& observation, const ByteArray& mask) const {
    const auto n = static_cast<py::ssize_t>(environments_.size());
    if (observation.size() != n * observation_size() || mask.size() != n * actions()) {
      throw InputError("environment: the arrays are not of the spaces' shapes");
    }
  }
  /// Steps each environment by `act`, given `size` numbers of which each takes `each`.
  template <class Act>
  void take(py::ssize_t size, int each, FloatArray& observation, DoubleArray& reward,
            ByteArray& terminated, ByteArray& mask, Act&& act) {
    check(observation, mask);
    const auto n = static_cast<py::ssize_t>(environments_.size());
    if (size != n * each || reward.size() != n || terminated.size() != n) {
      throw InputError("environment: expected " + std::to_string(n * each) + " numbers");
    }
    float* seen = observation.mutable_data();
    double* gain = reward.mutable_data();
    std::uint8_t* over = terminated.mutable_data();
    std::uint8_t* may = mask.mutable_data();
    const Turn turn(busy_);
    const LongCall call;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      if (over_[i]) {  // the step after an end begins the next episode, as gymnasium's vectors do
        begin(i);
        gain[i] = 0;
      } else {
        gain[i] = act(i);
      }
      over_[i] = environments_[i].done();
      over[i] = over_[i] ? 1 : 0;
      show(i, seen, may);
    }
  }
  void begin(std::size_t i) {
    const std::uint64_t episode = episodes_[i]++;
    const std::size_t of = workloads_.size();
    std::uint64_t z = seed_ + 0x9e3779b97f4a7c15ULL * (episode * environments_.size() + i + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;  // splitmix64
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    const std::size_t which =
        first_ < 0 ? z % of : (static_cast<std::size_t>(first_) + i + episode * of) % of;
    environments_[i].reset(*workloads_[which], first_ < 0 ? z : seed_);
    over_[i] = false;
  }
  void show(std::size_t i, float* seen, std::uint8_t* may) {
    const auto size = static_cast<std::size_t>(observation_size());
    const auto count = static_cast<std::size_t>(actions());
    environments_[i].observe({seen + i * size, size});
    environments_[i].mask({may + i * count, count});
  }

  std::vector<std::shared_ptr<Workload>> workloads_;
  std::vector<Environment> environments_;
  std::vector<bool> over_;
  std::vector<std::uint64_t> episodes_;
  std::uint64_t seed_ = 0;
  std::int64_t first_ = -1;
  bool busy_ = false;
};

}  // namespace
}  // namespace glidepath::python

void bind_environment(pybind11::module_& module) {
  using namespace glidepath;          // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  module.attr("ENVIRONMENT_SLOTS") = EnvironmentOptions{}.slots;
  module.attr("ENVIRONMENT_RUNNING") = EnvironmentOptions{}.running;
  py::class_<EnvironmentBatch>(module, "EnvironmentBatch")
      .def(py::init<std::vector<std::shared_ptr<Workload>>, int, const SimulationOptions&, int, int,
                    double, double>(),
           py::arg("workloads"), py::arg("count"), py::arg("simulation"), py::arg("slots"),
           py::arg("running"), py::arg("energy_weight"), py::arg("weights_for_s"))
      .def_property_readonly("actions", &EnvironmentBatch::actions)
      .def_property_readonly("observation_size", &EnvironmentBatch::observation_size)
      .def("reset", &EnvironmentBatch::reset, py::arg("seed"), py::arg("first"),
           py::arg("observation").noconvert(), py::arg("mask").noconvert())
      .def("step", &EnvironmentBatch::step, py::arg("actions"), py::arg("observation").noconvert(),
           py::arg("reward").noconvert(), py::arg("terminated").noconvert(),
           py::arg("mask").noconvert())
      .def("weigh", &EnvironmentBatch::weigh, py::arg("weights"),
           py::arg("observation").noconvert(), py::arg("reward").noconvert(),
           py::arg("terminated").noconvert(), py::arg("mask").noconvert())
      .def("simulation", &EnvironmentBatch::simulation, py::arg("environment"));
}
