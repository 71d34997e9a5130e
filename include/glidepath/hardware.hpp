// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

/// A pool of equal GPUs. Power and memory are per GPU.
struct Tier {
  std::string name{}, gpu{};
  int nodes = 0;
  int gpus_per_node = 1;
  double memory_gb = 0;           ///< of one GPU; 0 = not known, so no job is refused for memory
  double host_memory_gb = 0;      ///< of one node
  double idle_watts = 0;          ///< of one GPU that does nothing, W
  double busy_watts = 0;          ///< of one GPU at full utilization, W
  double price_per_gpu_hour = 0;  ///< in any currency; 0 = not priced

  [[nodiscard]] int gpus() const noexcept { return nodes * gpus_per_node; }
  friend bool operator==(const Tier&, const Tier&) = default;
};

/// Throws InputError naming the tier and the value: counts below 0, memory, power or price negative
/// or not finite, more than 2^31 - 1 GPUs.
void validate(const Tier& tier);

/// Power of one GPU at `utilization` in [0, 1]: idle + utilization (busy - idle).
[[nodiscard]] double watts(const Tier& tier, double utilization) noexcept;
/// The utilization at which one GPU draws `watts`, for power that was measured. Throws InputError
/// naming the tier where that is not between its idle and its busy power.
[[nodiscard]] double utilization(const Tier& tier, double watts);

// ---- catalogue

/// A GPU as its vendor describes it; 0 where a figure is not published. The rows and the source of
/// each are those of data/gpus.csv.
struct Gpu {
  std::string name{}, vendor{}, architecture{};
  int year = 0;
  double memory_gb = 0, bandwidth_gb_s = 0;
  double busy_watts = 0;  ///< board power limit
  double idle_watts = 0;
  double fp32_tflops = 0, fp16_tflops = 0;  ///< peak, dense; fp16 with FP32 accumulation
  double relative_speed = 0;                ///< measured training speed, V100 SXM2 = 1
  std::string source{};
};

/// Every GPU of data/gpus.csv, in its order.
[[nodiscard]] std::span<const Gpu> catalogue();
/// Throws InputError naming the GPU and the known ones.
[[nodiscard]] const Gpu& gpu_named(std::string_view name);
/// A tier of `nodes` nodes with memory and power from the catalogue.
[[nodiscard]] Tier make_tier(std::string name, std::string_view gpu, int nodes, int gpus_per_node);

// ---- scaling: how step time falls with GPUs and nodes

/// One measured step: a gang of `gpus` on `nodes` nodes.
struct StepTime {
  int gpus = 1, nodes = 1;
  double batch_per_gpu = 1;  ///< any unit: global batch / gpus, or 1 where it does not change
  double seconds = 0;

  friend bool operator==(const StepTime&, const StepTime&) = default;
};

/// Step time of a gang: other + compute x batch_per_gpu + communication inside a node and between
/// nodes, every coefficient at least 0, times a correction that follows the measurements nearby.
struct Scaling {
  static constexpr int kTerms = 10;
  std::array<double, kTerms> terms{};  ///< coefficient of each term, see scaling_term
  std::vector<StepTime> measured{};
  std::vector<double> correction{};  ///< weight of each measurement in the log of the correction
  double typical_error = 0;          ///< median |prediction / measurement - 1| of what was fitted
};

/// Least squares in relative error on at least one measurement. Both throw InputError: gpus or
/// nodes below 1, more nodes than gpus, a time or batch not above 0, a scaling without terms; the
/// fit names the measurement.
[[nodiscard]] Scaling fit_scaling(std::span<const StepTime> measured);
[[nodiscard]] double step_seconds(const Scaling& scaling, int gpus, int nodes,
                                  double batch_per_gpu = 1);
/// "other", "compute" and so on: the names of `Scaling::terms`.
[[nodiscard]] std::string_view scaling_term(int term) noexcept;

// ---- goodput: the batch of a gang

/// The batches that a job may take, in examples of all GPUs together unless a line says otherwise,
/// and how much the job learns from a large one.
struct BatchLimits {
  double reference = 1;          ///< M0: the batch that its user chose; none is smaller
  double largest = 1;            ///< of all GPUs
  double largest_per_gpu = 1e9;  ///< in one pass, for its memory; larger batches take several
  double noise_scale = 0;        ///< phi: summed variance of the gradient of one example over the
                                 ///< square of its mean (McCandlish et al. 2018)
  friend bool operator==(const BatchLimits&, const BatchLimits&) = default;
};

/// Progress by an example of a batch over that by one of the reference batch: (phi + M0) / (phi +
/// M). Pollux, Qiao et al., OSDI 2021.
[[nodiscard]] double statistical_efficiency(const BatchLimits& limits, double batch) noexcept;

/// A batch of a gang and what it brings.
struct BatchChoice {
  double batch = 0;        ///< of all GPUs, passes x gpus x per_gpu
  double per_gpu = 0;      ///< of one pass, a whole number
  int passes = 1;          ///< of a step: gradients are added up before GPUs exchange them
  double step_s = 0;       ///< time of a step
  double efficiency = 0;   ///< statistical_efficiency
  double steps_per_s = 0;  ///< goodput: steps of the reference batch that would learn as much
};

/// The batch of largest goodput, throughput x statistical efficiency, in whole examples per GPU and
/// whole passes, with every value of each up to 134, then a grid 1.5 % apart. A pass without
/// exchange takes the time of a step on one GPU. Empty where no whole number of examples for each
/// GPU lies between the reference and the largest batch.
/// Throws InputError naming the value: a limit below 1 or above 1e9, the largest batch below the
/// reference, a noise scale that is negative or not finite.
[[nodiscard]] std::optional<BatchChoice> best_batch(const Scaling& scaling, int gpus, int nodes,
                                                    const BatchLimits& limits);

// ---- sharing: two jobs on the same GPUs

enum class Sharing : std::uint8_t {
  exclusive,
  naive,  ///< the driver's time slices
  mps,    ///< one process server: kernels run side by side
  mig,    ///< fixed slices of one card, a half to each
};
[[nodiscard]] std::string_view name(Sharing sharing) noexcept;
/// Throws InputError naming the text and the known modes.
[[nodiscard]] Sharing sharing_named(std::string_view text);

/// What is known of a job that runs alone.
struct Profile {
  double sm_activity = 1;  ///< share of the multiprocessors busy, averaged over time, in [0, 1]
  double memory_gb = 0;    ///< per GPU
  std::string kind{};      ///< as `KindPair` names it; empty = of no measured kind
  /// Share of the time in which the card's memory is read or written, in [0, 1]; < 0 = not known.
  double memory_activity = -1;
  double step_seconds = 0;  ///< time of a step; 0 = not known, here and below
  double mean_watts = 0;    ///< of one GPU
  double peak_watts = 0;    ///< of one GPU
  double step_joules = 0;   ///< of all its GPUs together, one step
  friend bool operator==(const Profile&, const Profile&) = default;
};

/// Speeds of two jobs on the same GPUs, each as a share of its own speed alone; above 1 where that
/// was measured.
struct SharedSpeeds {
  double first = 0, second = 0;
};
/// Predicted from the activities: for a pair of which nothing was measured. 0 and 0 when it needs
/// more than `gpu_memory_gb` (0 = not known). Throws InputError on an activity above 1, one of the
/// multiprocessors below 0, a memory below 0 or NaN, or where they do not share: `exclusive`.
[[nodiscard]] SharedSpeeds shared_speeds(const Profile& first, const Profile& second,
                                         Sharing sharing, double gpu_memory_gb = 0);

/// Two kinds of job together on a kind of GPU. A slowdown is the time of a step together over that
/// alone: 1 = as fast as alone, infinity = they did not run.
struct KindPair {
  std::string gpu{};  ///< as in Tier::gpu
  Sharing sharing = Sharing::naive;
  std::string first{}, second{};
  double first_slowdown = 1, second_slowdown = 1;
  bool predicted = false;  ///< not measured

  friend bool operator==(const KindPair&, const KindPair&) = default;
};

/// What tells a kind of job from others on a kind of GPU, all of it measured alone.
struct JobKind {
  std::string kind{}, gpu{};
  std::string model{};             ///< what kinds have in common that differ in batch size only
  std::vector<double> features{};  ///< any numbers, the same for all kinds on this GPU: logarithms
                                   ///< of the batch size, of the step time, ...

  friend bool operator==(const JobKind&, const JobKind&) = default;
};

/// Reads measured pairs: `gpu,job_a,job_b,slowdown_a,slowdown_b`, perhaps `sharing` (naive where
/// there is none). Throws IoError naming file and line.
[[nodiscard]] std::vector<KindPair> read_pairs(const std::filesystem::path& path);

/// The measured pairs and, for each GPU and way of sharing that has any, predictions for the other
/// pairs of the kinds described: how much a kind slows down, and slows others, is learned from
/// kinds of the same model or with similar features (a Gaussian process, cubic in the pairs of a
/// GPU). Throws InputError naming the pair or kind: a slowdown that is not above 0, one pair with
/// two results, features that are not finite or not the same number for all kinds of a GPU.
struct Pairs {
  std::vector<KindPair> rows{};  ///< sorted, each pair both ways round
};
[[nodiscard]] Pairs learn_pairs(std::span<const KindPair> measured,
                                std::span<const JobKind> alone = {});

/// The speeds measured; else those learned; else, or without `pairs`, those predicted from the
/// activities. 0 and 0 when the pair needs more than the card's memory, whatever was measured.
[[nodiscard]] SharedSpeeds shared_speeds(const Profile& first, const Profile& second,
                                         Sharing sharing, const Tier& tier, const Pairs* pairs);

}  // namespace glidepath
#pragma GCC visibility pop
