// SPDX-License-Identifier: Apache-2.0
// GPUs of several tiers divided among jobs by prices: each job takes what is worth most to it
// beyond its price, and what does not fit, or is left, is moved at the least loss. The prices move
// with it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace glidepath::detail {

class Market {
 public:
  /// A way in which a job could run, and what that is worth.
  struct Bid {
    int tier = 0, gpus = 0, way = 0;
    double value = 0;
  };

  /// Prices of a GPU of each tier. From one division to the next they change little.
  std::vector<double> prices{};

  void open(std::span<const int> room);
  /// The bids that follow are this job's.
  void come(int job);
  void bid(const Bid& bid) { bids_.push_back(bid); }
  void divide();

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] int job(std::size_t i) const { return jobs_[i]; }
  /// The way that the i-th job is given, -1 for none.
  [[nodiscard]] int way(std::size_t i) const {
    return best_[i] == kNoBid ? -1 : bids_[best_[i]].way;
  }

 private:
  static constexpr int kNoBid = -1;

  struct Move {
    std::size_t job = 0;
    int bid = kNoBid;
    double cost = 0;
  };
  struct Open {
    std::size_t job = 0, begin = 0, end = 0;  ///< in open_bids_
  };
  /// At the prices of this pass.
  [[nodiscard]] double profit(int bid) const { return bid == kNoBid ? 0 : profits_[bid]; }
  [[nodiscard]] double value(int bid) const { return bid == kNoBid ? 0 : bids_[bid].value; }
  /// GPUs of the tier of a bid that it takes more than what the job is given.
  [[nodiscard]] int more(std::size_t i, int bid) const;
  void choose();
  void shed();
  void fill();
  void move(const Move& move);
  [[nodiscard]] double find_open(double gap);
  void search(double most);
  void take(int b, std::span<int> choices);

  std::vector<int> room_, free_;
  std::vector<int> jobs_, first_;  ///< the first bid of each job, and the end
  std::vector<Bid> bids_;
  std::vector<double> profits_;      ///< of the bids
  std::vector<int> given_, best_;    ///< bid of each job: now, and in the best division so far
  std::vector<double> rise_, fall_;  ///< of the prices
  double bound_ = 0;                 ///< no division is worth more
  std::vector<double> tops_;         ///< most profit of each job
  std::vector<Open> open_;           ///< jobs that may be given one bid or another
  std::vector<int> open_bids_;
  std::vector<std::size_t> strides_;    ///< of the tiers in the numbers of GPUs
  std::vector<double> worth_, before_;  ///< the most of so many GPUs, and without the last job
  std::vector<int> choices_;            ///< the bid with which, of each of `open_`
};

}  // namespace glidepath::detail
