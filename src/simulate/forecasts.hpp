// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/cluster.hpp"
#include "simulate/durations.hpp"

namespace glidepath {

/// Laws by what they depend on. Two threads that miss the same one both make it, and agree.
class ForecastMemo {
 public:
  struct Key {
    std::uint64_t curve = 0;  ///< hash of its columns
    std::size_t points = 0;   ///< that were seen of it
    double target = 0, budget = 0;
    bool ahead = false;
    auto operator<=>(const Key&) const = default;
  };
  struct ReachLaw {
    std::vector<double> reached_at;  ///< equally likely absolute steps, inf = never
    std::vector<double> step, loss;  ///< the median ahead, where it is needed
  };
  std::shared_ptr<const ReachLaw> find(const Key& key, const std::function<ReachLaw()>& make);

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const ReachLaw>> laws_;
};

}  // namespace glidepath

namespace glidepath::detail {

enum class LossesAhead : std::uint8_t { unwanted, wanted };

/// Forecasts of the service that jobs still need.
class Predictor {
 public:
  explicit Predictor(const Cluster& cluster);

  /// Remaining steps of a job with a curve: the law of glidepath::reach on its first 5, 7, 9, 11,
  /// 13, 16, 20 ... points, a quarter more each time, whoever decides when: so that policies share
  /// forecasts. Nothing before the first few points. Where they are wanted, also the median losses
  /// ahead.
  void curve(int job, Job& seen, LossesAhead ahead);

  /// Remaining steps of a job without one: its duration, or with SimulationOptions::forecast_sigma
  /// samples of the law below.
  void service(int job, Job& seen);

  /// The same of the whole work of a job that has arrived, as if it had not run.
  [[nodiscard]] std::vector<double> at_arrival(int job);

  /// inf over d of E[min(S, d)] / P(S <= d) of the remaining work S in ticks.
  [[nodiscard]] double gittins_rank(int job) const;

  /// No less than gittins_rank(), and so until so much work is done if what is known of durations
  /// stays as it is: while the job stays in a cell of its law.
  struct Ceiling {
    double rank = 0, until = -1;
  };
  [[nodiscard]] Ceiling rank_ceiling(int job) const;

  /// gittins_rank(), and log(q75 / q25) of the remaining work over that of a normal law.
  struct Outlook {
    double rank = 0, spread = 0;
  };
  [[nodiscard]] Outlook outlook(int job) const;
  /// What the spread of outlook() lies between until so much work is done, see Ceiling.
  struct SpreadWithin {
    double low = 0, high = 0, until = kInfinity;
  };
  [[nodiscard]] SpreadWithin spread_within(int job) const;

  /// Looks again at what jobs tell of each other's durations; whether any law changed.
  bool refresh();

  /// Another number whenever what others tell of a job has changed.
  [[nodiscard]] std::int64_t version(int job) const {
    return durations_ ? durations_->version(job) : 0;
  }

  /// The work in ticks as all that is known makes it most likely: geometric mean of its law.
  [[nodiscard]] double likely(int job) const;

  /// A quantile of the remaining work in ticks. Until so much work is done it is `work` less that,
  /// see Ceiling.
  struct Quantile {
    double left = 0, work = 0, until = -1;
  };
  [[nodiscard]] Quantile quantile(int job, double p) const;
  [[nodiscard]] double left(int job, double p) const { return quantile(job, p).left; }

  /// The value of service() at a share of its values: a quantile, and a tick at least.
  [[nodiscard]] Quantile sample(int job, double share) const;

  /// All jobs that have arrived: what those before them tell of them, as law after law would ask.
  void meet();

  /// The forecast itself in ticks of work: fixed for each job, by seed, where phases are known.
  [[nodiscard]] double total(int job) const;

 private:
  static constexpr int kLawCells = kWorkCells;
  /// Law of the true work given the forecast, the work `from` already done and what other jobs were
  /// like: weights of cells of equal width in log work.
  struct WorkLaw {
    double from = -1;
    double renew_at = 0;        ///< work done
    std::int64_t version = -1;  ///< of what durations_ knows of the job
    bool empty = true;          ///< the job has outrun everything that was thought possible
    /// A value that holds from so much work done until so much.
    struct Stretch {
      double from = 0, until = -1, value = 0;
      [[nodiscard]] bool holds(double done) const { return from <= done && done < until; }
    };
    Stretch ceiling;   ///< of gittins_rank()
    Stretch quantile;  ///< the work that quantile_p of the law does not exceed
    double quantile_p = -1;
    double ranked_at = -1, rank = 0;  ///< gittins_rank() when so much was done
    // What an event asks of each running job lies before the cells, which few events read.
    double low = 0, width = 0;  ///< of the first cell, in log work
    std::array<double, kLawCells + 1> edge{};
    std::array<double, kLawCells> work{}, weight{};
    std::array<double, kLawCells + 1> above{};  ///< weight of the cells from here on
  };
  /// What is left of a law when `done` is done: of the cell where that falls, its upper part.
  struct Left {
    const WorkLaw& law;
    int first = 0;
    double first_work = 0, first_weight = 0, weight = 0;  ///< `weight` of all

    [[nodiscard]] double work(int i) const { return i == first ? first_work : law.work[i]; }
    [[nodiscard]] double part(int i) const { return i == first ? first_weight : law.weight[i]; }
  };
  WorkLaw& law_of(int job) const;
  void make_law(int job, double done, WorkLaw& law) const;
  [[nodiscard]] static Left left_of(const WorkLaw& law, double done);
  /// The cell of a quantile, and until so much is done it is that one.
  struct Cell {
    int i = 0;
    double until = -1;
  };
  [[nodiscard]] static Cell quantile_cell(const Left& known, double done, double p);
  void find_steps(const WorkLaw& law, double done, std::vector<double>& out) const;

  const Cluster& cluster_;
  double sigma_;
  std::vector<double> total_;
  std::unique_ptr<Durations> durations_;                ///< where forecasts have an error
  mutable std::vector<std::unique_ptr<WorkLaw>> laws_;  ///< of each job, if asked while it lives
  mutable std::vector<int> with_law_;
  /// What `service` last made of a job: the same while neither of these changes.
  struct Served {
    double done = -1;
    std::int64_t version = -1;
  };
  std::vector<Served> served_;
  struct Known {
    std::size_t points = 0;  ///< that the law was made of
    bool outrun = false;     ///< the job is past all that the law thought possible
    std::shared_ptr<const ForecastMemo::ReachLaw> law;
  };
  std::vector<Known> known_;
  std::vector<std::uint64_t> hash_;  ///< of each curve
  std::shared_ptr<ForecastMemo> memo_;
};

}  // namespace glidepath::detail
