// SPDX-License-Identifier: Apache-2.0
// Rows of numbers by name, as tables, JSON and console logs have them, and where their steps are. A
// row may be sparse. The steps of a metric come from the best counter that its rows have; one that
// begins anew in each epoch counts on from the epoch before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/readers/json.hpp"
#include "trace/readers/series.hpp"

namespace glidepath::detail {

/// The cells of a row of nested names, joined by '/'; of a name that repeats, the last one.
using Cells = std::vector<std::pair<std::string, const Json*>>;
[[nodiscard]] Cells flat(const Json& object);
/// The number that a value is or spells.
[[nodiscard]] std::optional<double> number_of(const Json& value);

/// Texts by which maps are searched without a copy.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

class LogRows {
 public:
  /// A cell of the row that is being made; a text only where it spells a number or, in a column of
  /// time, a duration.
  void put(std::string_view name, double value);
  void put(std::string_view name, std::string_view text);
  /// A number that may be the name of a run, as a seed is.
  void put_cell(std::string_view name, double value);
  void end_row() { ++count_, next_ = 0; }
  /// Ends a row that may be cut. Where one of its counters goes back the row is left out: half a
  /// number is no restart. False then.
  bool end_unfinished_row();
  void add(const Cells& cells);
  /// A whole column: its values, and the rows in which they stand, increasing.
  void put_column(std::string_view name, std::vector<std::int64_t> rows,
                  std::vector<double> values);

  /// A name that a cell has, of a run or a part of the data.
  void label(std::string_view name, std::string_view text);
  /// The names that a whole column has: of each of its rows, which are increasing, one of `texts`.
  void put_labels(const std::string& name, const std::vector<std::int64_t>& rows,
                  const std::vector<std::size_t>& codes, const std::vector<std::string>& texts);
  /// Puts the part of the data before the names of the metrics, where a column of words such as
  /// "train" tells rows at one step apart.
  void name_data();

  /// Leaves out the columns that only the first row has: it says how the run was started. Nothing
  /// where no other column counts or is a metric.
  void forget_first_row();

  /// Keeps the rows of the first of several processes that wrote some at the same steps. How
  /// many processes there were; 0 where they are not such rows.
  std::size_t keep_first_rank();

  /// How far a counter will count.
  void plan(const std::string& counter, double length);
  /// Forgets how far counters were to count: another run begins.
  void forget_plans() { planned_.clear(); }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::vector<std::string> names() const;
  /// All metrics by their steps.
  [[nodiscard]] SeriesByName series() const;

 private:
  struct Column {
    std::string name, key;
    std::vector<std::int64_t> rows{};
    std::vector<double> values{};
  };
  /// Steps, and which of some rows have them.
  struct Steps {
    std::vector<std::size_t> kept{};
    Series series{};
  };
  using RowNumbers = std::vector<std::int64_t>;
  /// The names in a column, and which of them rows have.
  struct Labels {
    std::string name{};
    bool of_runs = false;  ///< else of parts of the data
    bool may_tell = true;  ///< its words are few and may be such names
    std::vector<std::string> texts{};
    std::unordered_map<std::string, std::size_t> codes{};
    RowNumbers rows{};
    std::vector<std::size_t> of_row{};
  };
  static constexpr std::size_t kMostRuns = 1000;  ///< of a log: more names are no names of runs
  friend std::vector<LoggedRun> runs_of(LogRows rows, const std::vector<std::string>& notes);

  [[nodiscard]] static std::optional<std::vector<std::size_t>> labels_at(const Labels& labels,
                                                                         const RowNumbers& rows);
  [[nodiscard]] std::size_t repeats(const RowNumbers& rows,
                                    const std::vector<std::size_t>& labels) const;
  [[nodiscard]] std::optional<std::string> best_metric() const;
  [[nodiscard]] const Labels* parts_of_data() const;
  using NamedRows = std::vector<std::pair<std::string, LogRows>>;
  static void put_label(Labels& into, std::int64_t row, std::string_view text);
  [[nodiscard]] Labels& labels_called(std::string_view name);
  [[nodiscard]] bool steps_repeat() const;
  [[nodiscard]] static bool share_steps(const std::vector<std::vector<double>>& steps);
  [[nodiscard]] NamedRows by_label(const Labels& labels) const;
  [[nodiscard]] std::optional<NamedRows> runs_by(const Labels& labels) const;
  [[nodiscard]] NamedRows told_apart() const;
  [[nodiscard]] Settings settings() const;
  [[nodiscard]] std::vector<std::size_t> finite_in_rows() const;
  [[nodiscard]] static std::optional<Column> without_gaps(const Column& column,
                                                          const std::vector<std::size_t>& finite);
  Column& column(std::string_view name);
  [[nodiscard]] const Column* find(std::string_view name) const;
  [[nodiscard]] const Column* clock() const;
  [[nodiscard]] std::vector<Column> counters_in_parts() const;
  [[nodiscard]] const Column* counter_of_data(const Column& metric,
                                              const std::vector<const Column*>& own) const;
  [[nodiscard]] static std::vector<const Column*> counters_for(
      const Column& metric, const std::vector<const Column*>& own,
      const std::vector<Column>& in_parts);
  [[nodiscard]] static bool is_length(const Column& counter, const std::vector<double>& values,
                                      const RowNumbers& rows,
                                      const std::vector<const Column*>& counting);
  [[nodiscard]] Steps steps_of(const RowNumbers& rows,
                               const std::vector<const Column*>& counting) const;
  [[nodiscard]] std::optional<Series> counted_by(const Column& counter, const RowNumbers& rows,
                                                 std::vector<double> value,
                                                 const std::vector<const Column*>& counting) const;
  void within_epochs(const std::vector<const Column*>& counting, Series& found) const;
  void count_on(const Column& counter, const RowNumbers& rows, Series& found,
                const std::vector<const Column*>& counting) const;

  std::vector<Column> columns_{};
  std::vector<Labels> labels_{};
  std::map<std::string, std::size_t> label_places_{};
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> place_{};
  std::map<std::string, double> planned_{};
  std::vector<std::pair<std::string, Json>> settings_{};  ///< by which other rows differ
  std::size_t count_ = 0;
  std::size_t next_ = 0;  ///< the column that comes next where rows are alike
};

/// The runs of some rows, each with the notes: one, or several where a column tells them apart.
[[nodiscard]] std::vector<LoggedRun> runs_of(LogRows rows, const std::vector<std::string>& notes);

}  // namespace glidepath::detail
