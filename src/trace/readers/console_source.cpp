// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_source.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "trace/readers/chinese_words.hpp"
#include "trace/readers/console_numbers.hpp"
#include "trace/readers/console_runs.hpp"
#include "trace/readers/console_table.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kPieceLetters = std::size_t{1} << 20;  // of a line that are read at once
// A line after which the next one says again what was said before: LightGBM's, and XGBoost's, which
// ends so.
constexpr std::string_view kRepeats = "est iteration is", kRepeatsBelow = "est iteration:";
constexpr std::size_t kLongestHeading = 20, kLongestStarred = 60;
constexpr std::string_view kSettings = "Namespace(";  // as which Python prints all of them
constexpr std::string_view kStars = "***";
// Of the Trainer's rows: half the last digit of an epoch, and from where on that is little.
constexpr double kHalfDigit = 0.005, kFirstEpoch = 0.2;

/// What stands between stars, as in "INFO - ***** Eval results *****".
std::string_view between_stars(std::string_view text) {
  const std::size_t first = text.find(kStars), last = text.rfind(kStars);
  if (first == text.npos || last < first + kStars.size()) return {};
  return without(text.substr(first, last - first), " *");
}

/// How many epochs a run has, where a bar says that the step at this epoch is one of so many: a
/// whole number of them, if one rounds to that epoch.
std::optional<double> epochs_by_bar(double epoch, double step, double steps) {
  if (epoch < kFirstEpoch || !(step > 0)) return {};
  const double least = std::ceil(steps * (epoch - kHalfDigit) / step);
  const double most = std::floor(steps * (epoch + kHalfDigit) / step);
  return least == most ? least : steps * epoch / step;
}

/// Gives the lines of a file that have numbers; a table between rules is one.
class LineSource {
 public:
  LineSource(const std::filesystem::path& file, LogPart part, std::size_t most)
      : lines_(file), part_(part), most_(most), commas_(has_decimal_commas(file)) {}

  void run(NameReader& names, const Take& take) {
    while (lines_.next()) {
      const std::string_view whole = lines_.line();
      if (whole.size() + 1 > most_) break;
      most_ -= whole.size() + 1;
      for (std::string_view rest = whole; !rest.empty();) {
        std::string_view part = rest.substr(0, rest.find('\r'));
        cut_ = part.size() == rest.size() && !lines_.finished();
        if (cut_) break;  // its last number may be half of one
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        while (!part.empty()) {
          const std::string_view piece = first_characters(part, kPieceLetters);
          if (!add(piece, names, take)) return;
          part.remove_prefix(piece.size());
        }
      }
    }
    // The counter may be what a block lacks that is not finished.
    if (!block_.cells.empty() && !block_.counters.empty()) take(block_);
  }
  /// Whether the last line was left out, as it has no end.
  [[nodiscard]] bool cut() const noexcept { return cut_; }
  /// The run that is going on, by what the lines said.
  [[nodiscard]] std::string run_name() const { return runs_.now(); }

 private:
  /// Whether numbers are written with decimal commas, by how the file begins.
  static bool has_decimal_commas(const std::filesystem::path& file) {
    LineReader lines(file);
    NameReader names;
    std::ptrdiff_t count = 0;
    for (std::size_t left = kPieceLetters; left > 0 && lines.next();) {
      left -= std::min(left, lines.line().size() + 1);
      if (contains(lines.line(), ",") && has_hint(lines.line())) {
        count += decimal_commas(first_characters(lines.line(), kPieceLetters), names);
      }
    }
    return count >= static_cast<std::ptrdiff_t>(kMinMentions);
  }

  bool add(std::string_view text, NameReader& names, const Take& take) {
    if (has_chinese(text)) return add_english(in_english(text), names, take);
    return add_english(text, names, take);
  }

  bool add_english(std::string_view text, NameReader& names, const Take& take) {
    if (!commas_ || !contains(text, ",")) return add_line(text, names, take);
    return add_line(with_points(text), names, take);
  }

  bool add_line(std::string_view text, NameReader& names, const Take& take) {
    const bool repeats = contains(text, kRepeats) || stripped(text).ends_with(kRepeatsBelow);
    if (std::exchange(repeats_, repeats)) return true;
    if (std::optional<Line> row = tables_.ruled(text)) return row->counters.empty() || take(*row);
    if (part_ == LogPart::tables || row_between_rules(text)) return true;
    if (!block_.cells.empty() || !block_.counters.empty()) {
      block_.text = block_.cells.empty() ? "" : block_.cells.begin()->first;
      Line block = std::exchange(block_, {});
      section_.clear();
      if (!take(block)) return false;
    }
    runs_.hear(text);
    if (std::optional<Line> row = tables_.of_classes(text)) return row->cells.empty() || take(*row);
    if (std::optional<Line> row = tables_.of_coco(text)) return row->cells.empty() || take(*row);
    if (std::optional<Line> row = tables_.spaced(text)) return take(*row);
    if (is_layer_of_darknet(text)) return true;
    if (const std::optional<std::string> data = data_of_heading(text)) {
      heading_ = *data;
      return true;
    }
    if (!has_hint(text) && !(counted_ && has_short_hint(text))) return true;
    Line line = parse_line(text, names);
    counted_ = counted_ || !line.counters.empty();
    if (contains(text, kSettings)) {
      line.cells.erase_if([&](const std::string& name) { return names.is_metric(name); });
    }
    name_by_heading(line);
    return (line.cells.empty() && line.counters.empty()) || take(line);
  }

  /// The data that a heading such as "Validation", "train:" or "*** Eval results ***" names, "" of
  /// training.
  static std::optional<std::string> data_of_heading(std::string_view text) {
    if (const std::string_view said = between_stars(text); !said.empty()) {
      if (first_characters(said, kLongestStarred).size() < said.size()) return {};
      for (const std::string_view each : words_of(said)) {
        if (is_held_out(each)) return lower(each);
        if (has_train(each)) return "";
      }
      return {};
    }
    std::string_view word = without(text, " \t-=#*:");
    const std::size_t verb = word.rfind("evaluate:");  // behind what a logger says: "evaluate:dev"
    if (verb != word.npos) word = stripped(word.substr(verb + 9));
    if (first_characters(word, kLongestHeading).size() < word.size()) return {};
    if (is_held_out(word)) return lower(word);
    const std::string spelled = lower(word);
    if (spelled == "train" || spelled == "training") return "";
    return {};
  }

  /// Names what stands below a heading, up to the next line that counts, by its data.
  void name_by_heading(Line& line) {
    if (!line.counters.empty()) heading_.clear();
    if (heading_.empty() || line.held_out) return;
    Numbers cells;
    for (const auto& [name, value] : line.cells) {
      const bool plain = !held_out_in(name) && !has_train(name);
      cells.put(plain ? heading_ + " " + name : name, value);
    }
    line.cells = std::move(cells);
    line.held_out = true;
  }

  /// "| name | 1.5 |" of Stable-Baselines3.
  bool row_between_rules(std::string_view text) {
    if (first_characters(text, 199).size() < text.size() || !stripped(text).starts_with('|')) {
      return false;
    }
    std::vector<std::string_view> cells;
    for (std::string_view rest = text;;) {
      const std::size_t end = rest.find('|');
      cells.push_back(rest.substr(0, end));
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
    }
    if (cells.size() != 4 || !stripped(cells[0]).empty() || !stripped(cells[3]).empty()) {
      return false;
    }
    const std::string_view name = stripped(cells[1]);
    const std::optional<double> value = number_in(stripped(cells[2]));
    if (!value) {
      section_ = name.ends_with('/') ? name : std::string_view();
      return true;
    }
    const std::string key = (cells[1].starts_with("   ") ? section_ : "") + std::string(name);
    (counts_steps(normal(key)) ? block_.counters : block_.cells).put(key, *value);
    return true;
  }

  LineReader lines_;
  LogPart part_;
  std::size_t most_;
  bool commas_;  ///< they are decimal
  bool cut_ = false, repeats_ = false;
  bool counted_ = false;  ///< whether a line has counted something
  Line block_{};
  std::string section_;
  std::string heading_;  ///< the data of the lines below, if they are not trained on
  TableRows tables_;
  RunNames runs_;
};

/// The last bar of the Trainer, which tells how many epochs the rows below it are of.
class StepBar {
 public:
  void hear(Line& line) {
    const double* const step = line.counters.find(kCounter);
    const double* const steps = line.totals.find(kCounter);
    const double* const epoch = line.counters.find("epoch");
    if (step != nullptr && steps != nullptr && epoch == nullptr && line.cells.empty()) {
      step_ = *step;
      steps_ = *steps;
    } else if (epoch != nullptr && !line.held_out && line.text.starts_with(kRow)) {
      const std::optional<double> epochs = epochs_by_bar(*epoch, step_, steps_);
      if (epochs && line.totals.find("epoch") == nullptr) line.totals.put("epoch", *epochs);
    }
  }

 private:
  static constexpr std::string_view kCounter = "it", kRow = "{'loss'";
  double step_ = 0, steps_ = 0;
};

/// Where epochs begin anew, as those of a run from the beginning do.
class Beginnings {
 public:
  bool at(const Line& line) {
    if (line.held_out) return false;  // an evaluation may count its own
    bool anew = false;
    for (const auto& [name, value] : line.counters) {
      if (!is_epoch(name)) continue;
      anew = anew || (value < last_ && value <= first_);
      last_ = value;
      first_ = std::min(first_, value);
    }
    return anew;
  }

 private:
  double first_ = kInfinity, last_ = -kInfinity;
};

/// The names of counters in one text.
std::string own_counters(const Numbers& counters) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : counters) names.insert(name);
  std::string own;
  for (const std::string_view name : names) own += (own.empty() ? "" : ", ") + std::string(name);
  return own;
}

}  // namespace

bool each_line(const std::filesystem::path& file, LogPart part, std::size_t most, NameReader& names,
               const Take& take) {
  Numbers carried, totals;
  std::optional<Line> bar;
  bool going = true;
  const auto give_bar = [&] {
    if (bar) going = take(*bar);
    bar.reset();
  };
  LineSource source(file, part, most);
  StepBar steps;
  Beginnings beginnings;
  bool anew = false;
  source.run(names, [&](Line& line) {
    steps.hear(line);
    const bool progress = line.by_column || is_bar(line.text);
    if (progress) line.counters.erase_if([](const std::string& name) { return is_within(name); });
    if (beginnings.at(line)) {
      anew = true;
      totals = {};
    }
    for (const auto& [name, far] : line.totals) {
      if (line.counters.find(name) == nullptr) continue;
      if (!line.held_out) {
        totals.put(name, far);
      } else if (!is_within(name)) {  // which is another number of batches
        totals.put_first(name, far);  // so are iterations of an epoch, where training has told its
      }
    }
    line.own = own_counters(line.counters);
    line.run = source.run_name();
    if (!line.counters.empty()) carried.erase_if([](const auto& name) { return !is_epoch(name); });
    for (const auto& [name, value] : line.counters) carried.put(name, value);
    line.counters = carried;
    if (line.cells.empty()) return true;
    if (bar && !(progress && bar->counters.same(line.counters))) give_bar();
    line.totals = totals;
    line.begins = std::exchange(anew, false);
    if (progress && !line.counters.empty()) {
      bar = std::move(line);
    } else if (going) {
      going = take(line);
    }
    return going;
  });
  if (going) give_bar();
  return source.cut();
}

}  // namespace glidepath::detail
