// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/interrupt.hpp"
#include "common/parallel.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "plan/check.hpp"
#include "simulate/play.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath {

namespace {

using detail::kInfinity;
using detail::Part;
using detail::refuse;
using detail::Script;

constexpr int kMaxSamples = 1'000'000;
constexpr std::ptrdiff_t kJobsPerBlock = 32;
constexpr std::size_t kHalvings = 4;           ///< of the samples that play on, each time half
constexpr double kKeptShare = 0.5;             ///< of the jobs that waited still do
constexpr double kAlikeDistance = 0.8;         ///< between two laws, see laws_apart()
constexpr double kAlikeSeconds = 7 * 86400.0;  ///< between two submissions
constexpr double kRoundingSeconds = 1e-3;      ///< of times that are sums of others
constexpr double kFrontSeconds = detail::kMaxSeconds;  ///< as long as any wait

void check(const StartOptions& options) {
  if (options.samples < 1 || options.samples > kMaxSamples) {
    refuse("start_times: samples is ", options.samples, ", expected 1 to ", kMaxSamples);
  }
  if (!(options.horizon_s > 0)) {
    refuse("start_times: horizon_s is ", options.horizon_s, ", expected a time above 0");
  }
  double before = 0;
  for (const double level : options.levels) {
    if (!(level > before && level < 1)) {
      refuse("start_times: level ", level, " after ", before,
             ": levels must increase and lie between 0 and 1");
    }
    before = level;
  }
  for (const BelievedSteps& believed : options.believed) {
    if (believed.steps >= 0) continue;
    refuse("start_times: job ", believed.job, " has believed steps ", believed.steps,
           ", expected 0 or more");
  }
}

/// Equally likely steps that a job still needs, increasing. One that never reaches its target runs
/// to its budget.
std::vector<double> left_of(const Job& job) {
  const double budget =
      job.budget_steps > 0 ? std::max(0.0, job.budget_steps - job.steps_done) : kInfinity;
  std::vector<double> left = job.remaining_steps;
  if (left.empty() && budget < kInfinity) left.push_back(budget);
  if (left.empty()) {
    refuse("start_times: job ", job.id, " has neither remaining_steps nor budget_steps");
  }
  for (double& steps : left) {
    if (!(steps >= 0)) {
      refuse("start_times: job ", job.id, " has remaining_steps ", steps, ", expected 0 or more");
    }
    if (steps == kInfinity) steps = budget;
  }
  std::sort(left.begin(), left.end());
  return left;
}

/// How far apart the medians of the whole work of two jobs are, over the deviations of their laws,
/// all in logarithms. Infinite where one of them is certain.
double laws_apart(const Part& one, const Part& other) {
  const auto at = [](const Part& part, double level) {
    const std::size_t n = part.left.size();
    return std::log(part.steps_done + part.left[detail::quantile_index(n, level)]);
  };
  const auto deviation = [&](const Part& part) { return (at(part, 0.84) - at(part, 0.16)) / 2; };
  const double width = std::hypot(deviation(one), deviation(other)) / std::numbers::sqrt2;
  const double distance = std::abs(at(one, 0.5) - at(other, 0.5)) / width;
  return std::isfinite(distance) ? distance : kInfinity;
}

/// What the policies of simulate() take it to need: to its budget, or the mean of its law.
double believed_of(const Job& job, const std::vector<double>& left) {
  if (job.budget_steps > 0) return std::max(0.0, job.budget_steps - job.steps_done);
  return std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
}

class Scripting {
 public:
  Scripting(const Snapshot& snapshot, std::string_view policy, const StartOptions& options)
      : snapshot_(snapshot), options_(options) {
    script_.rule = detail::play_rule_named(policy);
    script_.divides = detail::policy_named(policy).info.elastic;
    script_.seed = options.seed;
    script_.samples = options.samples;
    script_.horizon_s = options.horizon_s;
    for (const Tier& tier : snapshot.tiers) script_.capacity.push_back(tier.gpus());
    for (const BelievedSteps& each : options.believed) {
      if (believed_.emplace(each.job, each.steps).second) continue;
      refuse("start_times: two believed steps of job ", each.job);
    }
    check_snapshot();
    make_room();
    find_events();
    take_live();
    line_up();
    take_running();
    take_recent();
    refuse_unread(policy);
    script_.prepare();
  }
  [[nodiscard]] Script result() && { return std::move(script_); }

 private:
  void refuse_unread(std::string_view policy) const {
    if (options_.believed.empty()) return;
    if (!script_.rule.reads_sizes()) {
      refuse("start_times: '", policy, "' does not read believed steps");
    }
    std::unordered_set<std::int64_t> known;
    for (const Job& job : snapshot_.jobs) known.insert(job.id);
    for (const Job& job : options_.recent) known.insert(job.id);
    for (const BelievedSteps& each : options_.believed) {
      if (!known.contains(each.job)) {
        refuse("start_times: believed steps of job ", each.job, ", which is not there");
      }
    }
  }

  [[nodiscard]] Part part_of(const Job& job) {
    Part part;
    const std::size_t first = script_.ways.size();
    for (const Option& option : job.options) {
      const Tier& tier = snapshot_.tiers[option.tier];
      if (option.steps_per_s == 0) continue;
      if (!detail::can_use(job, option, tier, detail::Asked::own_gpus)) continue;
      script_.ways.push_back({option.tier, option.gpus, option.steps_per_s});
    }
    part.ways = std::span(script_.ways).subspan(first);
    part.left = left_of(job);
    const auto never =
        std::count(job.remaining_steps.begin(), job.remaining_steps.end(), kInfinity);
    part.reach = part.left.size() - static_cast<std::size_t>(never);
    if (job.budget_steps > 0) part.most = std::max(0.0, job.budget_steps - job.steps_done);
    const auto believed = believed_.find(job.id);
    part.is_believed = believed != believed_.end();
    part.believed = part.is_believed ? believed->second : believed_of(job, part.left);
    part.steps_done = job.steps_done;
    part.weight = job.weight;
    part.priority = job.priority;
    part.preemptible = job.preemptible;
    part.id = static_cast<std::uint64_t>(job.id);
    return part;
  }

  void check_snapshot() const {
    if (!std::isfinite(snapshot_.now_s)) {
      refuse("start_times: now_s is ", snapshot_.now_s, ", expected a finite time");
    }
    for (const Tier& tier : snapshot_.tiers) validate(tier);
    for (const Job& job : snapshot_.jobs) check_job(job);
    for (const Job& job : options_.recent) check_job(job);
    for (const Allocation& held : snapshot_.running) {
      if (!std::isfinite(held.since_s)) {
        refuse("start_times: since_s of job ", held.job, " is ", held.since_s,
               ", expected a finite time");
      }
    }
  }

  void check_job(const Job& job) const {
    const std::string fault = detail::fault_of(job, snapshot_);
    if (!fault.empty()) refuse("start_times: ", fault);
    const auto shares = [](const Option& option) { return option.sharing != Sharing::exclusive; };
    if (!job.options.empty() && std::ranges::all_of(job.options, shares)) {
      refuse("start_times: job ", job.id, " only shares GPUs; pairs are not played forward");
    }
  }

  /// So that the ways of the parts stay where they are.
  void make_room() {
    std::size_t ways = 0;
    for (const Job& job : snapshot_.jobs) ways += job.options.size();
    for (const Job& job : options_.recent) ways += job.options.size();
    script_.ways.reserve(ways);
  }

  void take_live() {
    const bool queues = script_.rule.order == detail::PlayOrder::level;
    script_.live = static_cast<int>(snapshot_.jobs.size());
    for (const Job& job : snapshot_.jobs) {
      if (!place_.emplace(job.id, static_cast<int>(script_.parts.size())).second) {
        refuse("start_times: job ", job.id, " is there twice");
      }
      Part& part = script_.parts.emplace_back(part_of(job));
      part.attained_gpu_s = job.attained_gpu_s;
      part.restart_s = job.restart_s;
      part.has_run = job.attained_s > 0;
      if (queues) part.place = place_in_queue(job);
    }
  }

  /// Places by submission, and whose draws go together: those of one user and gang, from one
  /// submission to the next.
  void line_up() {
    std::vector<int>& order = script_.in_order;
    order.resize(snapshot_.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    const auto submit_s = [&](int job) { return snapshot_.jobs[job].submit_s; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return submit_s(a) < submit_s(b); });
    std::map<std::pair<std::string_view, int>, int> last;
    const bool queues = script_.rule.order == detail::PlayOrder::level;
    for (int nth = 0; nth < script_.live; ++nth) {
      const int job = order[nth];
      Part& part = script_.parts[job];
      if (!queues) part.place = nth - script_.live;  // before all who come
      if (part.ways.empty()) continue;               // it has no gang, and no GPUs ever
      const auto [before, first] = last.try_emplace({snapshot_.jobs[job].user, part.gpus()}, job);
      if (first) continue;
      part.alike = std::exchange(before->second, job);
      const double distance = laws_apart(part, script_.parts[part.alike]) / kAlikeDistance;
      const double apart_s = submit_s(job) - submit_s(part.alike);
      part.kept = std::exp(-distance * distance) / (1 + apart_s / kAlikeSeconds);
    }
  }

  /// Moments at which something is seen to have happened, so that `las` looked at its queues.
  void find_events() {
    std::unordered_set<std::int64_t> running;
    for (const Allocation& held : snapshot_.running) {
      running.insert(held.job);
      events_.push_back(held.since_s);
    }
    for (const Job& job : snapshot_.jobs) {
      events_.push_back(job.submit_s);
      const bool lost = job.attained_s > 0 && !running.contains(job.id);
      if (lost) events_.push_back(snapshot_.now_s - waited(job));
    }
    for (const Job& job : options_.recent) events_.push_back(job.submit_s);
    std::sort(events_.begin(), events_.end());
  }

  [[nodiscard]] double waited(const Job& job) const {
    return job.waiting_s >= 0 ? job.waiting_s : snapshot_.now_s - job.submit_s - job.attained_s;
  }

  /// A queue of `las` has those first that came to it first, but before them those that have run
  /// in it and lost their GPUs, the last of them first. A job has run in it that went on after an
  /// event since it passed the limit.
  [[nodiscard]] double place_in_queue(const Job& job) const {
    const int level = detail::las_level(job.attained_gpu_s);
    if (level == 0) return -waited(job);
    const double past_gpu_s = job.attained_gpu_s - detail::kLasLimitsGpuS[level - 1];
    const double lost_s = snapshot_.now_s - waited(job);
    const double passed_s = lost_s - past_gpu_s * job.attained_s / job.attained_gpu_s;
    const auto next = std::upper_bound(events_.begin(), events_.end(), passed_s + kRoundingSeconds);
    const bool ran = next != events_.end() && *next < lost_s - kRoundingSeconds;
    return ran ? waited(job) - kFrontSeconds : -waited(job);
  }

  void take_running() {
    for (const Allocation& held : snapshot_.running) {
      const auto found = place_.find(held.job);
      if (found == place_.end()) {
        refuse("start_times: job ", held.job, " runs and is not among the jobs");
      }
      if (held.partner >= 0) {
        refuse("start_times: job ", held.job, " shares the GPUs of job ", held.partner,
               "; pairs are not played forward");
      }
      Part& part = script_.parts[found->second];
      if (part.running >= 0) refuse("start_times: job ", held.job, " holds two allocations");
      const auto way = std::find_if(part.ways.begin(), part.ways.end(), [&](const auto& each) {
        return each.tier == held.tier && each.gpus == held.gpus;
      });
      if (way == part.ways.end()) {
        refuse("start_times: job ", held.job, " runs on ", held.gpus, " GPUs of tier ", held.tier,
               ", which is none of the options that it can use");
      }
      part.running = static_cast<int>(way - part.ways.begin());
      part.pending_s = pending_s(snapshot_.jobs[found->second], held);
      script_.running.push_back(found->second);
      if (script_.rule.order == detail::PlayOrder::level) part.place = came_s(found->second, held);
    }
    refuse_crowded();
    std::stable_sort(script_.running.begin(), script_.running.end(),
                     [&](int a, int b) { return script_.parts[a].place < script_.parts[b].place; });
  }

  /// With more held than there are, jobs would wait for GPUs that a tier does not have.
  void refuse_crowded() const {
    std::vector<std::int64_t> held(snapshot_.tiers.size());
    for (const Allocation& each : snapshot_.running) held[each.tier] += each.gpus;
    for (std::size_t t = 0; t < held.size(); ++t) {
      if (held[t] <= script_.capacity[t]) continue;
      refuse("start_times: the snapshot holds ", held[t], " GPUs of tier '",
             snapshot_.tiers[t].name, "', expected at most ", script_.capacity[t]);
    }
  }

  /// What is left of the restart of a running job. One that has had GPUs for longer than it has
  /// held these was started again with them, and a start that goes on does not show in what it
  /// needs.
  [[nodiscard]] double pending_s(const Job& job, const Allocation& held) const {
    const double held_s = std::max(0.0, snapshot_.now_s - held.since_s);
    return job.attained_s > held_s + kRoundingSeconds ? std::max(0.0, job.restart_s - held_s) : 0;
  }

  /// When a running job came to run in its queue of `las`.
  [[nodiscard]] double came_s(int index, const Allocation& held) const {
    const Job& job = snapshot_.jobs[index];
    const int level = detail::las_level(job.attained_gpu_s);
    if (level == 0) return held.since_s;
    const double past_gpu_s = job.attained_gpu_s - detail::kLasLimitsGpuS[level - 1];
    return std::max(held.since_s, snapshot_.now_s - past_gpu_s / held.gpus);
  }

  void take_recent() {
    std::vector<std::size_t> order(options_.recent.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto submit_s = [&](std::size_t i) { return options_.recent[i].submit_s; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return submit_s(a) < submit_s(b); });
    if (order.empty()) return;
    script_.window_s = snapshot_.now_s - submit_s(order.front());
    if (!(script_.window_s >= 0) || !(submit_s(order.back()) <= snapshot_.now_s)) {
      refuse("start_times: the recent jobs were submitted from ", submit_s(order.front()), " to ",
             submit_s(order.back()), " s, expected times until now, ", snapshot_.now_s, " s");
    }
    if (script_.window_s == 0) return;  // all of them just now: nothing says how they come
    // The window opens with the jobs of its first moment, as no other of its length need do: they
    // are not of those that come within it.
    const double first_s = submit_s(order.front());
    if (submit_s(order.back()) > first_s) {
      std::erase_if(order, [&](std::size_t i) { return submit_s(i) == first_s; });
    }
    for (const std::size_t i : order) {
      Part part = part_of(options_.recent[i]);
      for (double& steps : part.left) steps += part.steps_done;  // as it arrived
      part.believed += part.steps_done;
      part.steps_done = 0;
      script_.parts.push_back(std::move(part));
      script_.submitted.push_back(submit_s(i) - first_s);
    }
  }

  const Snapshot& snapshot_;
  const StartOptions& options_;
  Script script_;
  std::unordered_map<std::int64_t, double> believed_;
  std::unordered_map<std::int64_t, int> place_;
  std::vector<double> events_;  ///< increasing
};

/// The law of each start, from samples of which ever fewer play on: once half of the waiting jobs
/// have started half of the samples stop, once all but a quarter half of the others, and so on. So
/// a sample costs little, and most of them see what most jobs wait for. Those that play on to the
/// end come first, and tell when.
class StartLaws {
 public:
  StartLaws(const Script& script, Execution execution)
      : script_(script),
        live_(static_cast<std::size_t>(script.live)),
        playing_{static_cast<std::size_t>(script.samples)},
        starts_(playing_.front() * live_) {
    for (int job = 0; job < script.live; ++job) {
      detail::check_interrupt();
      script.draw_uniforms(job, starts_);
    }
    while (playing_.size() <= kHalvings && playing_.back() > 1) {
      playing_.push_back((playing_.back() + 1) / 2);
    }
    stops_.assign(playing_.size() - 1, kInfinity);
    play(0, playing_.back(), execution);
    find_stops();
    play(playing_.back(), playing_.front(), execution);
  }

  /// Seconds from now. Those that play on stand for those that stopped: the product-limit estimate
  /// (Kaplan and Meier 1958).
  [[nodiscard]] double quantile(std::size_t job, double level) const {
    auto mass = static_cast<double>(playing_.front());
    auto before = static_cast<double>(detail::quantile_index(playing_.front(), level));
    double since = -1;
    std::vector<double> own;
    for (std::size_t k = 0; k < playing_.size(); ++k) {
      const double until = k < stops_.size() ? stops_[k] : kInfinity;
      std::size_t left = 0;
      own.clear();
      for (std::size_t s = 0; s < playing_[k]; ++s) {
        const double at = start(s, job);
        left += at > since ? 1 : 0;
        if (at > since && at <= until) own.push_back(at);
      }
      if (left == 0) break;  // in none of those that play on
      const double share = mass / static_cast<double>(left);
      const double rounding = 1e-9;
      const auto nth = static_cast<std::size_t>(before / share + rounding);
      if (nth < own.size()) {
        const auto found = own.begin() + static_cast<std::ptrdiff_t>(nth);
        std::nth_element(own.begin(), found, own.end());
        return *found;
      }
      before -= share * static_cast<double>(own.size());
      mass -= share * static_cast<double>(own.size());
      since = until;
    }
    return since;
  }

 private:
  [[nodiscard]] double start(std::size_t sample, std::size_t job) const {
    return starts_[sample * live_ + job];
  }

  void play(std::size_t begin, std::size_t end, Execution execution) {
    const auto count = static_cast<std::ptrdiff_t>(end - begin);
    detail::for_each_block(count, 1, execution, [&](std::ptrdiff_t i, std::ptrdiff_t) {
      const std::size_t s = begin + static_cast<std::size_t>(i);
      detail::Player(script_).play(s, std::min(stop_of(s), script_.horizon_s),
                                   std::span(starts_).subspan(s * live_, live_));
    });
  }

  void find_stops() {
    std::vector<double> first;
    for (std::size_t job = 0; job < live_; ++job) {
      const Part& part = script_.parts[job];
      if (part.running >= 0 || part.ways.empty()) continue;
      for (std::size_t s = 0; s < playing_.back(); ++s) first.push_back(start(s, job));
    }
    std::sort(first.begin(), first.end());
    double left = 1;
    for (double& stop : stops_) {
      left *= kKeptShare;
      if (!first.empty()) stop = first[detail::quantile_index(first.size(), 1 - left)];
    }
  }

  [[nodiscard]] double stop_of(std::size_t sample) const {
    std::size_t k = 0;
    while (k < stops_.size() && sample < playing_[k + 1]) ++k;
    return k < stops_.size() ? stops_[k] : kInfinity;
  }

  const Script& script_;
  std::size_t live_;
  std::vector<std::size_t> playing_;  ///< how many samples play until each of `stops_`: the first
  std::vector<double> starts_;        ///< samples x jobs; at first the uniform number of each
  std::vector<double> stops_;         ///< one fewer, increasing
};

}  // namespace

StartTimes start_times(const Snapshot& snapshot, std::string_view policy,
                       const StartOptions& options, Execution execution) {
  check(options);
  const Script script = Scripting(snapshot, policy, options).result();
  StartTimes out;
  out.levels = options.levels;
  std::vector<std::size_t> waiting;
  for (std::size_t j = 0; j < snapshot.jobs.size(); ++j) {
    if (script.parts[j].running >= 0) continue;
    waiting.push_back(j);
    out.job.push_back(snapshot.jobs[j].id);
  }
  const StartLaws laws(script, execution);
  out.quantiles.resize(std::ssize(out.levels), std::ssize(waiting));
  const auto write = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t w = begin; w < end; ++w) {
      for (std::size_t level = 0; level < out.levels.size(); ++level) {
        out.quantiles(static_cast<std::ptrdiff_t>(level), w) =
            laws.quantile(waiting[static_cast<std::size_t>(w)], out.levels[level]);
      }
    }
  };
  detail::for_each_block(std::ssize(waiting), kJobsPerBlock, execution, write);
  return out;
}

}  // namespace glidepath
