// SPDX-License-Identifier: Apache-2.0
// Search over the jobs that lose least by not taking their best option (the core of a knapsack;
// Balas, Zemel 1980). A label is a set of deviations from the inner solution: the GPUs it adds to
// each tier and the loss it costs. Labels of equal GPUs keep the cheapest. With every deviation
// below the gap looked at and no label thrown away, the search is a proof.
#include <algorithm>
#include <limits>

#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

struct Deviation {
  std::int64_t loss = 0;
  std::int32_t job = 0, option = 0;
};

/// Sets of labels with a hash over their GPU vectors.
class Labels {
 public:
  explicit Labels(std::size_t tiers) : T_(tiers), table_(64, kEmpty) {}

  struct Label {
    std::int64_t loss = 0;
    std::int32_t node = -1;  ///< last deviation, in the arena
  };

  [[nodiscard]] std::size_t size() const { return label_.size(); }
  [[nodiscard]] const Label& operator[](std::size_t i) const { return label_[i]; }
  [[nodiscard]] const std::int64_t* added(std::size_t i) const { return &added_[i * T_]; }

  /// Keeps the cheaper of two labels with equal GPUs; true when the new one stays.
  bool insert(const std::int64_t* added, Label label) {
    if (2 * (label_.size() + 1) > table_.size()) grow();
    std::size_t slot = hash(added) & (table_.size() - 1);
    while (table_[slot] != kEmpty) {
      Label& other = label_[table_[slot]];
      if (std::equal(added, added + T_, &added_[table_[slot] * T_])) {
        if (label.loss >= other.loss) return false;
        other = label;
        return true;
      }
      slot = (slot + 1) & (table_.size() - 1);
    }
    table_[slot] = static_cast<std::uint32_t>(label_.size());
    label_.push_back(label);
    added_.insert(added_.end(), added, added + T_);
    return true;
  }

  void clear() {
    label_.clear();
    added_.clear();
    std::fill(table_.begin(), table_.end(), kEmpty);
  }

 private:
  static constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::size_t hash(const std::int64_t* added) const {
    std::uint64_t h = 0;
    for (std::size_t t = 0; t < T_; ++t) {
      h = (h ^ static_cast<std::uint64_t>(added[t])) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 29;
    }
    return static_cast<std::size_t>(h);
  }
  void grow() {
    table_.assign(2 * table_.size(), kEmpty);
    for (std::size_t i = 0; i < label_.size(); ++i) {
      std::size_t slot = hash(added(i)) & (table_.size() - 1);
      while (table_[slot] != kEmpty) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = static_cast<std::uint32_t>(i);
    }
  }

  std::size_t T_;
  std::vector<Label> label_;
  std::vector<std::int64_t> added_;
  std::vector<std::uint32_t> table_;
};

struct Node {  // one deviation of a label's history
  std::int32_t parent = -1, job = 0, option = 0;
};

class CoreSearch {
 public:
  CoreSearch(const Round& round, const Prices& price, const Inner& inner)
      : round_(round), price_(price), inner_(inner), T_(price.size()), target_(T_) {
    for (std::size_t t = 0; t < T_; ++t) target_[t] = round.capacity[t] - inner.usage[t];
  }

  /// One search with at most `max_labels` labels over at most `max_jobs` jobs.
  bool run(std::size_t max_jobs, std::size_t max_labels, std::vector<std::int32_t>& choice) {
    const Wide gap = inner_.bound - value_of(round_, choice);
    if (gap <= 0) return true;
    if (gap >= Wide{1} << 61) return false;
    best_cost_ = static_cast<std::int64_t>(gap);
    bool proof = collect(max_jobs);
    Labels labels(T_), pending(T_), kept(T_);
    std::vector<std::int64_t> added(T_, 0);
    labels.insert(added.data(), {0, -1});
    node_.clear();
    std::int32_t best_node = kUnchanged;
    offer(added.data(), 0, -1, best_node);

    for (std::size_t stage = 0; stage + 1 < stage_.size(); ++stage) {
      pending.clear();
      for (std::size_t d = stage_[stage]; d < stage_[stage + 1]; ++d) {
        const Deviation& deviation = deviation_[d];
        for (std::size_t i = 0; i < labels.size(); ++i) {
          const std::int64_t loss = labels[i].loss + deviation.loss;
          if (loss >= best_cost_) continue;
          std::copy_n(labels.added(i), T_, added.begin());
          shift(deviation, added);
          if (hopeless(added.data(), loss, stage + 1)) continue;
          const auto node = static_cast<std::int32_t>(node_.size());
          if (!pending.insert(added.data(), {loss, node})) continue;
          node_.push_back({labels[i].node, deviation.job, deviation.option});
          offer(added.data(), loss, node, best_node);
        }
      }
      for (std::size_t i = 0; i < pending.size(); ++i) labels.insert(pending.added(i), pending[i]);
      if (labels.size() > max_labels) {
        keep_best(labels, kept, max_labels);
        proof = false;
      }
      if (node_.size() > kMaxNodes) return false;
    }
    if (best_node != kUnchanged) {
      choice = inner_.best;
      for (std::int32_t n = best_node; n >= 0; n = node_[static_cast<std::size_t>(n)].parent) {
        const Node& node = node_[static_cast<std::size_t>(n)];
        choice[static_cast<std::size_t>(node.job)] = node.option;
      }
    }
    return proof;
  }

 private:
  static constexpr std::int32_t kUnchanged = -2;
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 30;

  [[nodiscard]] const Choice& at(std::int32_t o) const {
    return round_.option[static_cast<std::size_t>(o)];
  }

  /// Deviations cheaper than the gap, job by job, the cheapest job first. True when none is left
  /// out.
  bool collect(std::size_t max_jobs) {
    deviation_.clear();
    std::vector<Deviation> cheapest;
    const auto each = [&](std::size_t j, auto&& body) {
      const std::int32_t best = inner_.best[j];
      const Wide top = best == kNone ? Wide{0} : reduced(at(best), price_);
      const auto consider = [&](std::int32_t o) {
        const Wide loss = top - (o == kNone ? Wide{0} : reduced(at(o), price_));
        if (o != best && loss < best_cost_) {
          body(Deviation{static_cast<std::int64_t>(loss), static_cast<std::int32_t>(j), o});
        }
      };
      consider(kNone);
      for (std::int32_t o = round_.first[j]; o < round_.first[j + 1]; ++o) consider(o);
    };
    for (std::size_t j = 0; j < inner_.best.size(); ++j) {
      Deviation least{best_cost_, static_cast<std::int32_t>(j), kNone};
      each(j, [&](const Deviation& d) {
        if (d.loss < least.loss) least = d;
      });
      if (least.loss < best_cost_) cheapest.push_back(least);
    }
    const auto cheaper = [](const Deviation& a, const Deviation& b) {
      return a.loss != b.loss ? a.loss < b.loss : a.job < b.job;
    };
    const bool all = cheapest.size() <= max_jobs;
    if (!all) {
      std::nth_element(cheapest.begin(), cheapest.begin() + static_cast<std::ptrdiff_t>(max_jobs),
                       cheapest.end(), cheaper);
      cheapest.resize(max_jobs);
    }
    std::sort(cheapest.begin(), cheapest.end(), cheaper);
    stage_.assign(1, 0);
    for (const Deviation& job : cheapest) {
      each(static_cast<std::size_t>(job.job), [&](const Deviation& d) { deviation_.push_back(d); });
      stage_.push_back(deviation_.size());
    }
    reachable();
    return all;
  }

  /// What the stages from s on can still add to and take from each tier.
  void reachable() {
    const std::size_t stages = stage_.size() - 1;
    most_.assign((stages + 1) * T_, 0);
    least_.assign((stages + 1) * T_, 0);
    std::vector<std::int64_t> added(T_);
    for (std::size_t s = stages; s-- > 0;) {
      std::vector<std::int64_t> most(T_, 0), least(T_, 0);
      for (std::size_t d = stage_[s]; d < stage_[s + 1]; ++d) {
        std::fill(added.begin(), added.end(), 0);
        shift(deviation_[d], added);
        for (std::size_t t = 0; t < T_; ++t) {
          most[t] = std::max(most[t], added[t]);
          least[t] = std::min(least[t], added[t]);
        }
      }
      for (std::size_t t = 0; t < T_; ++t) {
        most_[s * T_ + t] = most_[(s + 1) * T_ + t] + most[t];
        least_[s * T_ + t] = least_[(s + 1) * T_ + t] + least[t];
      }
    }
  }

  void shift(const Deviation& deviation, std::vector<std::int64_t>& added) const {
    const std::int32_t from = inner_.best[static_cast<std::size_t>(deviation.job)];
    if (from != kNone) added[static_cast<std::size_t>(at(from).tier)] -= at(from).gpus;
    if (deviation.option != kNone) {
      added[static_cast<std::size_t>(at(deviation.option).tier)] += at(deviation.option).gpus;
    }
  }

  /// No completion by the stages from s on is feasible and cheaper than the best.
  [[nodiscard]] bool hopeless(const std::int64_t* added, std::int64_t loss, std::size_t s) const {
    Wide cost = loss;
    for (std::size_t t = 0; t < T_; ++t) {
      if (added[t] + least_[s * T_ + t] > target_[t]) return true;
      const std::int64_t idle = target_[t] - added[t] - most_[s * T_ + t];
      if (idle > 0) cost += Wide{price_[t]} * idle;
    }
    return cost >= best_cost_;
  }

  /// Takes the label as it is, with all later jobs at their best, if that is feasible and cheaper.
  void offer(const std::int64_t* added, std::int64_t loss, std::int32_t node,
             std::int32_t& best_node) {
    Wide cost = loss;
    for (std::size_t t = 0; t < T_; ++t) {
      if (added[t] > target_[t]) return;
      cost += Wide{price_[t]} * (target_[t] - added[t]);
    }
    if (cost >= best_cost_) return;
    best_cost_ = static_cast<std::int64_t>(cost);
    best_node = node;
  }

  /// The labels nearest to a full cluster at the least loss.
  void keep_best(Labels& labels, Labels& kept, std::size_t count) const {
    std::vector<std::pair<double, std::size_t>> rank(labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      double cost = static_cast<double>(labels[i].loss);
      for (std::size_t t = 0; t < T_; ++t) {
        const std::int64_t off = target_[t] - labels.added(i)[t];
        cost += static_cast<double>(price_[t]) * static_cast<double>(off < 0 ? -off : off);
      }
      rank[i] = {cost, i};
    }
    std::nth_element(rank.begin(), rank.begin() + static_cast<std::ptrdiff_t>(count), rank.end());
    rank.resize(count);
    std::sort(rank.begin(), rank.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    kept.clear();
    for (const auto& [cost, i] : rank) kept.insert(labels.added(i), labels[i]);
    std::swap(labels, kept);
  }

  const Round& round_;
  const Prices& price_;
  const Inner& inner_;
  std::size_t T_;
  std::vector<std::int64_t> target_;  ///< GPUs to add to the inner solution for a full tier
  std::vector<Deviation> deviation_;
  std::vector<std::size_t> stage_;  ///< deviations of the job of stage s: stage_[s], stage_[s + 1]
  std::vector<std::int64_t> most_, least_;
  std::vector<Node> node_;
  std::int64_t best_cost_ = 0;
};

}  // namespace

bool search_core(const Round& round, const Prices& price, const Inner& inner, double gap,
                 std::vector<std::int32_t>& choice) {
  constexpr std::int32_t kAlwaysExact = 8;
  constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max() / 2;
  CoreSearch search(round, price, inner);
  if (round.jobs() <= kAlwaysExact) return search.run(kUnlimited, kUnlimited, choice);
  const auto wide_enough = [&] {
    const Wide value = value_of(round, choice);
    return static_cast<double>(inner.bound - value) <= gap * static_cast<double>(inner.bound);
  };
  if (search.run(40, 200, choice)) return true;
  if (wide_enough()) return false;
  return search.run(400, 4000, choice);
}

}  // namespace glidepath::detail
