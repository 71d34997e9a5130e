// SPDX-License-Identifier: Apache-2.0
// Search over the jobs that lose least by not taking their best option (the core of a knapsack;
// Balas, Zemel 1980). A label is a set of deviations from the inner solution: the GPUs it adds to
// each tier and the loss it costs. Labels of equal GPUs keep the cheapest. With every deviation
// below the gap looked at and no label thrown away, the search is a proof.
#include <algorithm>
#include <limits>

#include "common/interrupt.hpp"
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
    std::int32_t entry = -1;  ///< last deviation, in the arena
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
    return h;
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

struct PastDeviation {  // one deviation of a label's history
  std::int32_t parent = -1, job = 0, option = 0;
};

class CoreSearch {
 public:
  CoreSearch(const Round& round, const Prices& price, const Inner& inner,
             std::vector<std::int32_t>& choice)
      : round_(round), price_(price), inner_(inner), choice_(choice) {}

  /// One search over at most `max_jobs` jobs with at most `max_labels` labels after each of them.
  bool run(std::size_t max_jobs, std::size_t max_labels) {
    const Wide gap = inner_.bound - value_of(round_, choice_);
    if (gap <= 0) return true;
    if (gap >= Wide{1} << 61) return false;
    best_cost_ = static_cast<std::int64_t>(gap);
    unsure_ = false;
    const bool apart =
        !round_.packs && max_labels == kUnlimited;  // equal GPUs may pack differently
    bool proof = collect(max_jobs) && (round_.packs || apart);
    choose_rows();
    reachable();

    const std::size_t R = row_.size();
    Labels labels(R + apart), pending(R + apart), kept(R + apart);
    std::vector<std::int64_t> added(R + apart, 0);
    labels.insert(added.data(), {base_loss_, -1});
    history_.clear();
    std::int32_t best_entry = kUnchanged;
    for (std::size_t stage = 0; stage + 1 < stage_.size(); ++stage) {
      pending.clear();
      for (std::size_t d = stage_[stage]; d < stage_[stage + 1]; ++d) {
        check_interrupt();
        const Deviation& deviation = deviation_[d];
        for (std::size_t i = 0; i < labels.size(); ++i) {
          const std::int64_t loss = labels[i].loss + deviation.loss;
          if (loss - recoverable_[stage + 1] >= best_cost_) continue;
          std::copy_n(labels.added(i), R, added.begin());
          shift(deviation, added);
          if (hopeless(added.data(), loss, stage + 1)) continue;
          const auto entry = static_cast<std::int32_t>(history_.size());
          if (apart) added[R] = entry + 1;
          if (!pending.insert(added.data(), {loss, entry})) continue;
          history_.push_back({labels[i].entry, deviation.job, deviation.option});
          offer(added.data(), loss, entry, best_entry);
        }
      }
      for (std::size_t i = 0; i < pending.size(); ++i) labels.insert(pending.added(i), pending[i]);
      if (labels.size() > max_labels) {
        keep_best(labels, kept, max_labels);
        proof = false;
      }
    }
    if (best_entry != kUnchanged) choice_ = choice_of(best_entry);
    return proof && !unsure_;
  }

  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max() / 2;

 private:
  static constexpr std::int32_t kUnchanged = -2;

  [[nodiscard]] std::vector<std::int32_t> choice_of(std::int32_t entry) const {
    std::vector<std::int32_t> choice = choice_;
    for (std::int32_t n = entry; n >= 0; n = history_[n].parent) {
      const PastDeviation& step = history_[n];
      choice[step.job] = step.option;
    }
    return choice;
  }

  /// Deviations from the choice whose loss is below the gap, job by job: first the jobs that are
  /// not at their best, then the cheapest. True when none is left out.
  bool collect(std::size_t max_jobs) {
    std::vector<Deviation> cheapest;
    base_loss_ = 0;
    const auto each = [&](std::size_t j, auto&& body) {
      const Wide top = reduced(round_, inner_.best[j], price_);
      const auto loss = static_cast<std::int64_t>(top - reduced(round_, choice_[j], price_));
      const auto consider = [&](std::int32_t o) {
        const Wide other = top - reduced(round_, o, price_);
        if (o == choice_[j] || other >= best_cost_) return;
        if (o != kNone && round_.on_closed_tier(o)) {
          unsure_ = true;
          return;
        }
        body(Deviation{static_cast<std::int64_t>(other) - loss, static_cast<std::int32_t>(j), o});
      };
      consider(kNone);
      for (std::int32_t o = round_.first[j]; o < round_.first[j + 1]; ++o) consider(o);
      return loss;
    };
    for (std::size_t j = 0; j < inner_.best.size(); ++j) {
      Deviation least{best_cost_, static_cast<std::int32_t>(j), kNone};
      base_loss_ += each(j, [&](const Deviation& d) {
        if (d.loss < least.loss) least = d;
      });
      if (least.loss < best_cost_) cheapest.push_back(least);
    }
    const auto cheaper = [](const Deviation& a, const Deviation& b) {
      return a.loss != b.loss ? a.loss < b.loss : a.job < b.job;
    };
    const bool all = cheapest.size() <= max_jobs;
    if (!all) {
      std::nth_element(cheapest.begin(), cheapest.begin() + max_jobs, cheapest.end(), cheaper);
      cheapest.resize(max_jobs);
    }
    std::sort(cheapest.begin(), cheapest.end(), cheaper);
    deviation_.clear();
    stage_.assign(1, 0);
    recoverable_.assign(cheapest.size() + 1, 0);
    for (const Deviation& job : cheapest) {
      each(job.job, [&](const Deviation& d) { deviation_.push_back(d); });
      stage_.push_back(deviation_.size());
    }
    for (std::size_t s = cheapest.size(); s-- > 0;) {
      recoverable_[s] = recoverable_[s + 1] + std::max<std::int64_t>(0, -cheapest[s].loss);
    }
    return all;
  }

  /// The rows that a deviation can change; the others keep what the choice leaves free.
  void choose_rows() {
    std::vector<std::int64_t> free = round_.capacity;
    for (const std::int32_t o : choice_) {
      if (o != kNone) for_each_use(round_, o, [&](std::size_t r, std::int64_t a) { free[r] -= a; });
    }
    constexpr std::int32_t kUntouched = -1;
    local_.assign(free.size(), kUntouched);
    row_.clear();
    const auto touch = [&](std::int32_t o) {
      if (o == kNone) return;
      for_each_use(round_, o, [&](std::size_t r, std::int64_t) {
        if (local_[r] != kUntouched) return;
        local_[r] = static_cast<std::int32_t>(row_.size());
        row_.push_back(r);
      });
    };
    for (const Deviation& d : deviation_) {
      touch(choice_[d.job]);
      touch(d.option);
    }
    fixed_cost_ = 0;
    for (std::size_t r = 0; r < free.size(); ++r) {
      if (local_[r] == kUntouched) fixed_cost_ += Wide{price_[r]} * free[r];
    }
    target_.clear();
    for (const std::size_t r : row_) target_.push_back(free[r]);
  }

  /// What the stages from s on can still add to and take from each row.
  void reachable() {
    const std::size_t R = row_.size(), stages = stage_.size() - 1;
    most_.assign((stages + 1) * R, 0);
    least_.assign((stages + 1) * R, 0);
    std::vector<std::int64_t> added(R), most(R), least(R);
    for (std::size_t s = stages; s-- > 0;) {
      std::fill(most.begin(), most.end(), 0);
      std::fill(least.begin(), least.end(), 0);
      for (std::size_t d = stage_[s]; d < stage_[s + 1]; ++d) {
        std::fill(added.begin(), added.end(), 0);
        shift(deviation_[d], added);
        for (std::size_t r = 0; r < R; ++r) {
          most[r] = std::max(most[r], added[r]);
          least[r] = std::min(least[r], added[r]);
        }
      }
      for (std::size_t r = 0; r < R; ++r) {
        most_[s * R + r] = most_[(s + 1) * R + r] + most[r];
        least_[s * R + r] = least_[(s + 1) * R + r] + least[r];
      }
    }
  }

  void shift(const Deviation& deviation, std::vector<std::int64_t>& added) const {
    const auto use = [&](std::int32_t o, std::int64_t sign) {
      if (o == kNone) return;
      for_each_use(round_, o, [&](std::size_t r, std::int64_t a) { added[local_[r]] += sign * a; });
    };
    use(choice_[deviation.job], -1);
    use(deviation.option, 1);
  }

  /// No completion by the stages from s on is feasible and cheaper than the best.
  [[nodiscard]] bool hopeless(const std::int64_t* added, std::int64_t loss, std::size_t s) const {
    const std::size_t R = row_.size();
    Wide cost = fixed_cost_ + loss - recoverable_[s];
    for (std::size_t r = 0; r < R; ++r) {
      if (added[r] + least_[s * R + r] > target_[r]) return true;
      const std::int64_t idle = target_[r] - added[r] - most_[s * R + r];
      if (idle > 0) cost += Wide{price_[row_[r]]} * idle;
    }
    return cost >= best_cost_;
  }

  /// Takes the label as it is, with all later jobs unchanged, if that is feasible and cheaper.
  void offer(const std::int64_t* added, std::int64_t loss, std::int32_t entry,
             std::int32_t& best_entry) {
    Wide cost = fixed_cost_ + loss;
    for (std::size_t r = 0; r < row_.size(); ++r) {
      if (added[r] > target_[r]) return;
      cost += Wide{price_[row_[r]]} * (target_[r] - added[r]);
    }
    if (cost >= best_cost_) return;
    const Fit fit = round_.packs ? Fit::yes : fits_nodes(round_, choice_of(entry));
    unsure_ = unsure_ || fit == Fit::unknown;
    if (fit != Fit::yes) return;
    best_cost_ = static_cast<std::int64_t>(cost);
    best_entry = entry;
  }

  /// The labels nearest to a full cluster at the least loss.
  void keep_best(Labels& labels, Labels& kept, std::size_t count) const {
    std::vector<std::pair<double, std::size_t>> rank(labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      double cost = static_cast<double>(labels[i].loss);
      for (std::size_t r = 0; r < row_.size(); ++r) {
        const std::int64_t off = target_[r] - labels.added(i)[r];
        cost += static_cast<double>(price_[row_[r]]) * static_cast<double>(off < 0 ? -off : off);
      }
      rank[i] = {cost, i};
    }
    std::nth_element(rank.begin(), rank.begin() + count, rank.end());
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
  std::vector<std::int32_t>& choice_;
  std::vector<Deviation> deviation_;
  std::vector<std::size_t> stage_;  ///< deviations of the job of stage s: stage_[s], stage_[s + 1]
  std::vector<std::int64_t> recoverable_;  ///< loss that the stages from s on could give back
  std::int64_t base_loss_ = 0;
  std::vector<std::size_t> row_;      ///< rows that change
  std::vector<std::int32_t> local_;   ///< their place in `row_`
  std::vector<std::int64_t> target_;  ///< what the choice leaves free of them
  Wide fixed_cost_ = 0;               ///< price of what is free of the other rows
  std::vector<std::int64_t> most_, least_;
  std::vector<PastDeviation> history_;
  std::int64_t best_cost_ = 0;
  bool unsure_ = false;  ///< of a better choice it is not known whether it fits in the nodes
};

}  // namespace

bool search_core(const Round& round, const Prices& price, const Inner& inner, double gap,
                 std::vector<std::int32_t>& choice) {
  constexpr std::int32_t kExactJobs = 8;  // no limit up to these many: always exact
  constexpr std::int32_t kFewJobs = 32;   // up to these the long search often ends with a proof
  constexpr std::size_t kShortJobs = 24, kShortLabels = 32;
  constexpr std::size_t kLongJobs = 200, kLongLabels = 4'000, kLongLabelsOfFewJobs = 20'000;
  CoreSearch search(round, price, inner, choice);
  if (round.jobs() <= kExactJobs) {
    return search.run(CoreSearch::kUnlimited, CoreSearch::kUnlimited);
  }
  const auto within = [&](double share) {
    const Wide value = value_of(round, choice);
    return static_cast<double>(inner.bound - value) <= share * static_cast<double>(inner.bound);
  };
  // A short search is worth its time until well inside the gap, a long one only outside of it.
  if (within(gap / 4)) return false;
  if (search.run(kShortJobs, kShortLabels)) return true;
  if (within(gap)) return false;
  return search.run(kLongJobs, round.jobs() <= kFewJobs ? kLongLabelsOfFewJobs : kLongLabels);
}

}  // namespace glidepath::detail
