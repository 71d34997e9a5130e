// SPDX-License-Identifier: Apache-2.0
// Console logs: what training loops print, found by its form and not by the tool that wrote it. A
// line is a list of numbers, each with the words before it: "Step 140/6501 | Loss: 0.82" holds a
// counter, how far it will count, and a metric. A line without a counter belongs to the last one
// seen. Lines of several ranks, progress bars and tables between rules are brought into that form.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>

#include "common/csv.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

// Letters and words of the longest name; letters of a line that are shown, that stand before a
// number, and that are read at once; of a file in which a first metric is looked for.
constexpr std::size_t kLongestName = 64;
constexpr std::ptrdiff_t kMostWords = 8;
constexpr std::size_t kShown = 100;
constexpr std::size_t kGap = 200;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kSearched = std::size_t{1} << 26;
constexpr std::size_t kCached = 4096;  // names that are remembered
constexpr std::size_t kRepeatedNames = 20;
constexpr std::size_t kCountingEnds = 5;  // ends of a counter that are so many count themselves
constexpr std::size_t kFewest = 3;        // times that a log says what is no metric by its name
constexpr std::string_view kAsciiBlanks = " \t\n\r\v\f";

constexpr std::string_view kNotLogs[] = {
    ".py", ".md",  ".ipynb", ".sh", ".yml", ".yaml", ".toml", ".htm", ".html", ".js",
    ".ts", ".rst", ".tex",   ".c",  ".cc",  ".cpp",  ".h",    ".hpp", ".cu",   ".json"};
// Words beside that of a counter: those that say no more, besides those of data.
constexpr std::string_view kTags[] = {"train", "training", "meta",    "id", "idx", "index",
                                      "no",    "global",   "current", "at", "the", "completed"};
// What may stand between a metric and the counter at which it was taken.
constexpr std::string_view kPrepositions[] = {"after ", "at ", "for ", "in ", "of "};
// Words of a logger: what is named stands after them.
constexpr std::string_view kLevels[] = {"TRACE", "DEBUG",  "INFO",  "NOTICE", "WARNING",
                                        "WARN",  "ERROR",  "debug", "info",   "warning",
                                        "root",  "stdout", "stderr"};
// A line after which the next one says again what was said before: LightGBM's.
constexpr std::string_view kRepeats = "est iteration is";
constexpr std::string_view kPlural[] = {"epochs",      "iterations", "iters",
                                        "total_steps", "i",          "index"};
constexpr std::string_view kYolo[] = {"box", "obj", "cls", "total", "l1"};

/// Numbers by name, in the order of the line.
class Numbers {
 public:
  [[nodiscard]] const double* find(std::string_view name) const {
    const auto found = std::find_if(values_.begin(), values_.end(),
                                    [&](const auto& each) { return each.first == name; });
    return found == values_.end() ? nullptr : &found->second;
  }
  void put(std::string_view name, double value) {
    if (const double* there = find(name)) {
      *const_cast<double*>(there) = value;
    } else {
      values_.emplace_back(name, value);
    }
  }
  void put_first(std::string_view name, double value) {
    if (find(name) == nullptr) values_.emplace_back(name, value);
  }
  void rename(std::string_view from, std::string_view to) {
    for (auto& [name, value] : values_) {
      if (name == from) name = to;
    }
  }
  template <class Gone>
  void erase_if(const Gone& gone) {
    std::erase_if(values_, [&](const auto& each) { return gone(each.first); });
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  /// Whatever the order.
  [[nodiscard]] bool same(const Numbers& other) const {
    return values_.size() == other.values_.size() &&
           std::all_of(values_.begin(), values_.end(), [&](const auto& each) {
             const double* const there = other.find(each.first);
             return there != nullptr && *there == each.second;
           });
  }

 private:
  std::vector<std::pair<std::string, double>> values_{};
};

/// The numbers of a line: what counts, how far, and the rest.
struct Line {
  Numbers counters{}, totals{}, cells{};
  std::string own{};  ///< the counters that it names itself
  std::optional<int> rank{};
  std::string text{};
  bool by_column = false;
  bool held_out = false;  ///< it speaks of data that are not trained on
};

std::string shown_line(std::string_view text) {
  return std::string(first_characters(stripped(text), kShown));
}

/// What stands before a number: its name, the counter that it is, and the data that it is of: "" of
/// training, and none where the words do not say.
struct Named {
  std::string name{};
  std::optional<std::string> counter{};
  std::optional<std::string> data{};
  std::string subject{};  ///< of a counter: the metric that was taken at it, whose value follows
};

/// The word that counts, if a name is that of a counter.
std::optional<std::string> counter_in(std::string_view name) {
  const std::string key(without(normal(name), "_"));
  const auto counts = [](std::string_view word) {
    return counts_steps(word) && !among(kPlural, word);
  };
  if (counts(key)) return key;
  std::vector<std::string_view> words;
  for (std::string_view rest = key;;) {
    const std::size_t end = rest.find('_');
    const std::string_view word = rest.substr(0, end);
    if (!among(kTags, word) && !among(kHeldOut, word)) words.push_back(word);
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  const bool one = words.size() == 1 || (words.size() == 2 && words[0] == "loss");
  if (one && counts(words.back())) return std::string(words.back());
  return {};
}

/// "loss after epoch" as the metric and what counts; of other names the counter is none.
std::pair<std::string_view, std::string_view> metric_at(std::string_view name) {
  const std::string spelled = lower(name);
  for (const std::string_view word : kPrepositions) {
    const std::size_t at = spelled.rfind(word);
    if (at == spelled.npos || (at > 0 && name[at - 1] != ' ')) continue;
    return {stripped(name.substr(0, at)), stripped(name.substr(at + word.size()))};
  }
  return {};
}

/// A name without the level and the module of a logger before it.
std::string_view without_logger(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  std::size_t first = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (among(kLevels, words[i])) first = i + 1;
  }
  const auto is_module = [](std::string_view word) {
    return contains(word, ".") || word.starts_with("__") || word == "F" || word == "P";
  };
  if (first == 0) return name;
  while (first + 1 < words.size() && is_module(words[first])) ++first;
  return name.substr(static_cast<std::size_t>(words[first].data() - name.data()));
}

/// What names say, remembered: the lines of a log repeat theirs.
class NameReader {
 public:
  bool is_metric(std::string_view name) {
    return remembered(metrics_, name,
                      [](std::string_view each) { return detail::is_metric(each); });
  }
  const Named& before_number(std::string_view gap) {
    return remembered(gaps_, gap, [](std::string_view each) { return read(each); });
  }

 private:
  template <class Value>
  using Map = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

  template <class Value, class Make>
  static const Value& remembered(Map<Value>& map, std::string_view text, const Make& make) {
    const auto found = map.find(text);
    if (found != map.end()) return found->second;
    if (map.size() >= kCached) map.clear();
    return map.emplace(text, make(text)).first->second;
  }

  static Named read(std::string_view gap) {
    const std::size_t end = gap.find_last_not_of(" \t:=[('\"<~-");
    std::vector<std::string_view> words = cut(gap.substr(0, end == gap.npos ? 0 : end + 1));
    std::string_view name = without_logger(without(words.back(), " -#*>."));
    if (name.starts_with('/')) name = {};  // of a unit, such as "2s/epoch"
    const auto is_long = [&] { return first_characters(name, kLongestName).size() < name.size(); };
    if (is_long() || std::count(name.begin(), name.end(), ' ') >= kMostWords) {
      const std::vector<std::string_view> parts = words_of(name);
      name = parts.empty() ? std::string_view() : parts.back();
    }
    Named named;
    if (!is_long()) {
      named.name = name;
      named.counter = counter_in(name);
      find_subject(name, words, named);
      if (name.empty()) find_counter_of_data(words, named);
    }
    words.back() = named.counter ? name : std::string_view();
    for (const std::string_view word : words) {
      if (has_train(word)) {
        named.data = "";
      } else if (std::optional<std::string> found = held_out_in(word)) {
        named.data = std::move(found);
      }
    }
    return named;
  }

  /// Finds the loss in "Loss at step", also in "Training loss (for one batch) at step".
  static void find_subject(std::string_view name, const std::vector<std::string_view>& words,
                           Named& named) {
    auto [subject, counting] = metric_at(name);
    if (counting.empty() || (!subject.empty() && !detail::is_metric(subject))) return;
    const std::optional<std::string> counter = counter_in(counting);
    if (!counter) return;
    for (std::size_t i = words.size() - 1; subject.empty() && i-- > 0;) {
      if (detail::is_metric(words[i])) subject = stripped(words[i]);
    }
    named.counter = counter;
    named.subject = subject;
  }

  /// Finds the epoch in "Epoch(train) [".
  static void find_counter_of_data(const std::vector<std::string_view>& words, Named& named) {
    std::vector<std::string_view> said;
    for (const std::string_view word : words) {
      if (!stripped(word).empty()) said.push_back(stripped(word));
    }
    if (said.size() < 2 || !(has_train(said.back()) || is_held_out(said.back()))) return;
    named.counter = counter_in(said[said.size() - 2]);
    if (named.counter) named.name = said[said.size() - 2];
  }

  Map<bool> metrics_{};
  Map<Named> gaps_{};
};

/// Reads the numbers of one line, each named by the words before it.
class LineParser {
 public:
  explicit LineParser(NameReader& names) : names_(names) {}

  Line parse(std::string_view raw) && {
    line_.text = shown_line(raw);
    const std::string plain = undressed(raw);
    text_ = cleared(plain);
    while (const std::optional<Number> number = next_number(text_, from_)) {
      from_ = number->end;
      add(*number);
    }
    const bool metric = std::any_of(line_.cells.begin(), line_.cells.end(),
                                    [&](const auto& cell) { return names_.is_metric(cell.first); });
    const bool uncounted = line_.counters.empty() && metric;
    if (uncounted && leading_ && second_) {  // "[1, 2000] loss: 2.1"
      line_.counters.put("epoch", *leading_);
      line_.counters.put("batch", *second_);
    } else if (uncounted && (leading_ || bracketed_)) {
      line_.counters.put("step", leading_ ? *leading_ : *bracketed_);
    } else {
      line_.rank = rank_of_line(plain);
    }
    line_.held_out = !data_.empty();
    return std::move(line_);
  }

 private:
  /// The text before a number, as far as its name may reach.
  [[nodiscard]] std::string_view gap_before(std::size_t start) const {
    std::size_t at = start;
    for (std::size_t left = kGap; left > 0 && at > end_; --left) {
      --at;
      while (at > end_ && (text_[at] & 0xC0) == 0x80) --at;
    }
    return std::string_view(text_).substr(at, start - at);
  }

  void add(const Number& number) {
    const std::string_view gap = gap_before(number.start);
    const Named& named = names_.before_number(gap);
    if (number.word) {  // of nan and inf the words are no numbers, such as in "nan iterations"
      const std::size_t last = gap.find_last_not_of(kAsciiBlanks);
      const bool said = last != gap.npos && contains(":=[('", gap.substr(last, 1));
      if (!said && !names_.is_metric(named.name)) return;
    }
    const bool first = end_ == 0;
    end_ = number.end;
    if (part_of_counter(number, stripped(gap))) return;
    if (named.data) data_ = *named.data;
    last_.clear();
    loose_.reset();
    const std::string subject = std::exchange(subject_, {});
    const std::string before = std::exchange(whole_metric_, {});
    if (!named.name.empty()) {
      add_named(named, number, first);
    } else if (!subject.empty()) {
      add_cell(subject, number);
    } else if (!before.empty() && !number.whole && stripped(gap).empty() &&
               line_.counters.empty()) {  // "Train loss 10 3.44" of Tacotron
      line_.counters.put("step", *line_.cells.find(before));
      line_.cells.put(before, number.value);
    } else {
      add_nameless(number, gap, first);
    }
  }

  void add_nameless(const Number& number, std::string_view gap, bool first) {
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    if (number.whole) loose_ = number.value;
    if (first && without(gap, " [").empty() && number.whole) {
      leading_ = number.value;
    } else if (leading_ && !second_ && number.whole && stripped(gap) == ",") {
      second_ = number.value;
    } else if (std::string_view(text_).substr(end_).starts_with(" avg loss")) {  // darknet
      line_.cells.put("avg loss", number.value);
    } else if (number.whole && gap.ends_with('[') && at(number.end) == ']') {
      if (line_.cells.empty()) bracketed_ = number.value;
    }
  }

  void add_named(const Named& named, const Number& number, bool first) {
    std::optional<std::string> counter = named.counter;
    if (named.name == "s" && first) {  // llm.c
      counter = "step";
    } else if (!counter && number.whole && of_follows()) {
      if (!names_.is_metric(named.name)) counter = "it";
      if (is_held_out(named.name)) data_ = lower(named.name);
    }
    const double thousands = lower(number.unit) == "k" ? 1e3 : number.unit == "M" ? 1e6 : 0;
    if (!counter) {
      if (is_place_in_source(named.name, number)) return;
      add_cell(named.name, number);
      if (number.whole && names_.is_metric(named.name)) whole_metric_ = last_cell_;
    } else if (number.whole || thousands > 0 || is_epoch(*counter)) {
      const double value = number.value * (thousands > 0 ? thousands : 1);
      line_.counters.put_first(*counter, value);
      last_ = *counter;
      subject_ = named.subject;
    }
  }

  /// Whether a number is that of a line of a program: "(trainer:280)", "(main.py 189)".
  [[nodiscard]] bool is_place_in_source(const std::string& name, const Number& number) const {
    if (name.ends_with(".py")) return true;
    const char after = number.end < text_.size() ? text_[number.end] : '\0';
    return number.whole && number.start > 0 && text_[number.start - 1] == ':' &&
           (after == ')' || after == ']') && !names_.is_metric(name);
  }

  /// Whether a number is how far a counter counts, or counts batches beside an epoch.
  bool part_of_counter(const Number& number, std::string_view joint) {
    if (joint == "/" && (!last_.empty() || loose_)) {
      if (last_.empty()) {
        last_ = "it";
        line_.counters.put_first(last_, loose_.value_or(0));
      }
      line_.totals.put(last_, number.value);
      loose_.reset();
      return true;
    }
    const bool brackets = joint.size() > 1 && joint.front() == ']' && joint.back() == '[' &&
                          stripped(joint.substr(1, joint.size() - 2)).empty();
    if (!brackets || !number.whole) return false;
    if (last_ == "it") {  // "[0/300][100/1251]": the first of two counts epochs
      line_.counters.rename("it", "epoch");
      line_.totals.rename("it", "epoch");
    } else if (last_.empty() && loose_) {  // "[0][100/1251]"
      line_.counters.put_first("epoch", *loose_);
    } else if (!is_epoch(last_)) {
      return false;
    }
    loose_.reset();
    last_ = "batch";
    line_.counters.put_first(last_, number.value);
    return true;
  }

  [[nodiscard]] bool of_follows() const {
    const std::string_view rest = std::string_view(text_).substr(end_);
    return stripped(first_characters(rest, 9)).starts_with('/');
  }

  void add_cell(const std::string& name, const Number& number) {
    std::string_view key = name;
    if (key.ends_with(" value")) key.remove_suffix(6);
    std::string cell = named_bare(lower(name), number.whole, key);
    if (line_.text.starts_with("s:") && name == "eval") cell = "hellaswag";
    if (is_error(cell) || contains(lower(cell), "improve")) return;
    const std::optional<std::string> found = held_out_in(cell);
    const bool there = line_.cells.find(cell) != nullptr;
    if (!found && !has_train(cell) && (!data_.empty() || there)) {
      const std::string& before = data_.empty() ? held_ : data_;
      if (!before.empty()) cell = before + " " + cell;
    }
    line_.cells.put_first(cell, number.value);
    last_cell_ = cell;
    if (cell == "train_time" && (number.unit == "ms" || number.unit == "s")) {
      line_.cells.put("elapsed_seconds", number.value / (number.unit == "ms" ? 1e3 : 1));
    }
    if (found) held_ = *found;
  }

  /// The name of a metric that is called by a short word; a whole number beside a word of data is
  /// that of samples.
  static std::string named_bare(const std::string& word, bool whole, std::string_view otherwise) {
    if (word == "trl") return "train_loss";
    if (word == "tel") return "val_loss";
    if (word == "hella") return "hellaswag";
    if (!whole && (word == "train" || word == "learn")) return "train_loss";
    if (!whole && among(kHeldOut, word)) return "val_loss";
    return std::string(otherwise);
  }

  /// Whether a name is that of an error of Python, or the "mAP@" of "mAP@.5".
  static bool is_error(std::string_view name) {
    if (name.ends_with('@')) return true;
    if (name.empty() || name[0] < 'A' || name[0] > 'Z') return false;
    const bool word = std::all_of(name.begin(), name.end(), [](char c) {
      return (c & 0x80) != 0 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z');
    });
    name.remove_prefix(1);
    return word &&
           (name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning"));
  }

  NameReader& names_;
  Line line_{};
  std::string text_;
  std::size_t from_ = 0;  ///< where the next number is looked for
  std::size_t end_ = 0;   ///< of the last number that was one
  std::string data_, held_;
  std::string last_;               ///< the counter that stands before
  std::optional<double> loose_;    ///< a number without a name, perhaps of a fraction
  std::optional<double> leading_;  ///< a number that begins the line
  std::optional<double> second_;   ///< one behind it, as in "[1, 2000]"
  std::optional<double>
      bracketed_;             ///< the last one in brackets before the metrics, without a name
  std::string subject_;       ///< the metric whose value comes after a counter
  std::string last_cell_;     ///< the metric that was put last
  std::string whole_metric_;  ///< it, where it has a whole number, which may be a step
};

/// Takes a line; false to end.
using Take = std::function<bool(Line&)>;

/// Gives the lines of a file that have numbers; a table between rules is one.
class LineSource {
 public:
  LineSource(const std::filesystem::path& file, std::size_t most) : lines_(file), most_(most) {}

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
          const std::string_view piece = first_characters(part, kPiece);
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

 private:
  bool add(std::string_view text, NameReader& names, const Take& take) {
    if (std::exchange(repeats_, contains(text, kRepeats))) return true;
    if (row_between_rules(text)) return true;
    if (!block_.cells.empty() || !block_.counters.empty()) {
      block_.text = block_.cells.empty() ? "" : block_.cells.begin()->first;
      Line block = std::exchange(block_, {});
      section_.clear();
      if (!take(block)) return false;
    }
    if (std::optional<Line> row = row_by_column(text)) return take(*row);
    if (!has_hint(text)) return true;
    Line line = LineParser(names).parse(text);
    return (line.cells.empty() && line.counters.empty()) || take(line);
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

  /// A row of a table with blanks between: skorch, fastai, YOLO. The columns are those of the last
  /// line of names, of which the first counts.
  std::optional<Line> row_by_column(std::string_view text) {
    if (columns_.empty() && !begins_with_counter(text)) return {};
    const std::string plain = undressed(first_characters(text, 1000));
    const std::vector<std::string_view> fields = words_of(plain);
    const auto has_digit = [](std::string_view field) {
      return field.find_first_of("0123456789") != field.npos;
    };
    if (fields.size() > 2 && std::none_of(fields.begin(), fields.end(), has_digit) &&
        counter_in(fields[0])) {
      columns_.assign(fields.begin(), fields.end());
      if (lower(fields[1]) == "gpu_mem") {  // YOLO's, of losses without that word
        for (std::string& column : columns_) {
          if (among(kYolo, column)) column += "_loss";
        }
      }
      return {};
    }
    const std::size_t fewest = std::max<std::size_t>(columns_.empty() ? 0 : columns_.size() - 1, 3);
    if (fields.size() < fewest || columns_.empty()) return {};
    return row_of(fields, text);
  }

  [[nodiscard]] std::optional<Line> row_of(const std::vector<std::string_view>& fields,
                                           std::string_view text) const {
    const std::size_t of = fields[0].find('/');
    const auto digits = [](std::string_view field) {
      return !field.empty() && field.size() <= 15 &&
             field.find_first_not_of("0123456789") == field.npos;
    };
    if (!digits(fields[0].substr(0, of))) return {};
    if (of != std::string_view::npos && !digits(fields[0].substr(of + 1))) return {};
    std::vector<std::pair<std::string_view, std::optional<double>>> cells;
    for (std::size_t i = 1; i < std::min(columns_.size(), fields.size()); ++i) {
      const std::optional<double> value = number_in(fields[i]);
      const auto there = std::find_if(cells.begin(), cells.end(),
                                      [&](const auto& cell) { return cell.first == columns_[i]; });
      if (there == cells.end()) {
        cells.emplace_back(columns_[i], value);
      } else {
        there->second = value;
      }
    }
    Line line;
    for (const auto& [name, value] : cells) {
      if (value) line.cells.put(name, *value);
    }
    if (std::distance(line.cells.begin(), line.cells.end()) < 2) return {};
    const std::string key = counter_in(columns_[0]).value_or("");
    line.counters.put(key, number_in(fields[0].substr(0, of)).value_or(0));
    if (of != std::string_view::npos) {
      line.totals.put(key, number_in(fields[0].substr(of + 1)).value_or(0));
    }
    line.text = shown_line(text);
    line.by_column = true;
    return line;
  }

  LineReader lines_;
  std::size_t most_;
  bool cut_ = false, repeats_ = false;
  Line block_{};
  std::string section_;
  std::vector<std::string> columns_;
};

/// NameReader of counters in one text.
std::string own_counters(const Numbers& counters) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : counters) names.insert(name);
  std::string own;
  for (const std::string_view name : names) own += (own.empty() ? "" : ", ") + std::string(name);
  return own;
}

/// Gives the lines with metrics, each with the counters that stand for it. No more than the first
/// `most` bytes of the file are read. True where the last line was left out, as it has no end.
bool each_line(const std::filesystem::path& file, std::size_t most, NameReader& names,
               const Take& take) {
  Numbers carried, totals;
  std::optional<Line> bar;
  bool going = true;
  const auto give_bar = [&] {
    if (bar) going = take(*bar);
    bar.reset();
  };
  LineSource source(file, most);
  source.run(names, [&](Line& line) {
    const bool progress = line.by_column || is_bar(line.text);
    if (progress) line.counters.erase_if([](const std::string& name) { return is_within(name); });
    for (const auto& [name, far] : line.totals) {
      const bool of_others = line.held_out && is_within(name);  // another number of batches
      if (line.counters.find(name) != nullptr && !of_others) totals.put(name, far);
    }
    line.own = own_counters(line.counters);
    if (!line.counters.empty()) carried.erase_if([](const auto& name) { return !is_epoch(name); });
    for (const auto& [name, value] : line.counters) carried.put(name, value);
    line.counters = carried;
    if (line.cells.empty()) return true;
    if (bar && !(progress && bar->counters.same(line.counters))) give_bar();
    line.totals = totals;
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

/// Takes "Batch 2/100" for an epoch and a batch, where what stands behind the line is no end but
/// counts.
void split_epochs(std::vector<Line>& lines) {
  constexpr std::string_view kCounter = "batch";
  std::set<double> counts, ends;
  for (const Line& line : lines) {
    const double* const count = line.counters.find(kCounter);
    const double* const end = line.totals.find(kCounter);
    if (count == nullptr || end == nullptr) continue;
    counts.insert(*count);
    ends.insert(*end);
  }
  if (ends.size() < kCountingEnds || ends.size() <= counts.size()) return;
  for (Line& line : lines) {
    const double* const end = line.totals.find(kCounter);
    if (end == nullptr || line.counters.find(kCounter) == nullptr) continue;
    line.counters.rename(kCounter, "epoch");
    line.counters.put(kCounter, *end);
    line.totals.erase_if([&](const auto& name) { return name == kCounter; });
  }
}

bool is_no_log(const std::filesystem::path& file, std::string_view head) {
  // A writer that crashed may leave some zeros.
  const auto zeros = std::count(head.begin(), head.end(), '\0');
  const std::string name = file.filename().string();
  return static_cast<double>(zeros) > static_cast<double>(head.size()) / 100 ||
         std::any_of(std::begin(kNotLogs), std::end(kNotLogs),
                     [&](std::string_view end) { return name.ends_with(end); });
}

/// Keeps the lines of the first of several ranks.
void keep_first_rank(std::vector<Line>& lines) {
  std::set<int> ranks;
  for (const Line& line : lines) {
    if (line.rank) ranks.insert(*line.rank);
  }
  if (ranks.size() < 2 || 3 * ranks.size() > lines.size()) return;  // else they are no ranks
  std::erase_if(lines, [&](const Line& line) { return line.rank && *line.rank != *ranks.begin(); });
}

/// Leaves out what only some lines say and is no metric by its name: words of a sentence.
void leave_out_words(std::vector<Line>& lines, NameReader& names, const Metric& metric) {
  std::unordered_map<std::string, std::size_t> count;
  for (const Line& line : lines) {
    for (const auto& [name, value] : line.cells) ++count[name];
  }
  std::erase_if(count, [&](const auto& each) {
    const std::string& name = each.first;
    return each.second >= kFewest || name == metric || names.is_metric(name) || is_rate(name) ||
           is_clock(normal(name));
  });
  if (count.empty()) return;
  for (Line& line : lines) {
    line.cells.erase_if([&](const std::string& name) { return count.contains(name); });
  }
}

/// On lines of which form each name mostly stands, by the counters of the line.
std::unordered_map<std::string, std::string> usual_forms(const std::vector<Line>& lines) {
  std::unordered_map<std::string, std::size_t> place;
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> forms;
  for (const Line& line : lines) {
    for (const auto& [name, value] : line.cells) {
      const auto [entry, fresh] = place.try_emplace(name + '\0' + line.own, forms.size());
      if (fresh) forms.push_back({{name, line.own}, 0});
      ++forms[entry->second].second;
    }
  }
  std::stable_sort(forms.begin(), forms.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::unordered_map<std::string, std::string> usual;
  for (const auto& [form, count] : forms) usual.try_emplace(form.first, form.second);
  return usual;
}

}  // namespace

bool is_console(const std::filesystem::path& file, std::string_view head) {
  if (is_no_log(file, head)) return false;
  NameReader names;
  std::unordered_map<std::string, int> alone;
  bool found = false;
  (void)each_line(file, kSearched, names, [&](Line& line) {
    for (const auto& [name, value] : line.cells) {
      if (!names.is_metric(name) || std::count(name.begin(), name.end(), ' ') >= 4) continue;
      found = found || ++alone[name] == 3 || !line.counters.empty();
    }
    return !found;
  });
  return found;
}

bool has_numbers_at_steps(const std::filesystem::path& file, std::string_view head) {
  if (is_no_log(file, head)) return false;
  NameReader names;
  std::unordered_map<std::string, int> count;
  bool found = false;
  (void)each_line(file, kSearched, names, [&](Line& line) {
    for (const auto& [name, value] : line.cells) {
      found = found || (!line.counters.empty() && ++count[name] > 2);
    }
    return !found;
  });
  return found;
}

Run read_console(const std::filesystem::path& file, const Metric& metric) {
  NameReader names;
  std::vector<Line> lines;
  const auto keep = [&](Line& line) {
    lines.push_back(std::move(line));
    return true;
  };
  const bool cut = each_line(file, std::numeric_limits<std::size_t>::max(), names, keep);
  keep_first_rank(lines);
  split_epochs(lines);
  leave_out_words(lines, names, metric);
  // The same name on lines of another form is another metric: a mean over the epoch, say.
  const std::unordered_map<std::string, std::string> usual = usual_forms(lines);
  LogRows rows;
  std::unordered_map<std::string, std::string> example;
  for (const Line& line : lines) {
    for (const auto& [name, far] : line.totals) rows.plan(name, far);
    for (const auto& [name, value] : line.counters) rows.put(name, value);
    for (const auto& [name, value] : line.cells) {
      const bool other = usual.at(name) != line.own;
      const std::string form = " (" + (line.own.empty() ? "alone" : line.own) + ")";
      const std::string called = other ? name + form : name;
      rows.put(called, value);
      example.try_emplace(called, line.text);
    }
    rows.end_row();
  }
  Run run{.series = rows.series()};
  if (cut) run.notes.emplace_back("the last line has no end: left out");
  bool known = metric.has_value();
  std::string repeated;
  std::size_t count = 0;
  for (const auto& [name, column] : run.series) {
    const std::string by = column->counter.empty() ? "" : " by " + repr(column->counter);
    column->notes.insert(column->notes.begin(),
                         repr(name) + by + " of lines as " + repr(example[name]));
    known = known || names.is_metric(name);
    if (column->step.size() < 3 || ++count > kRepeatedNames) continue;
    repeated += (repeated.empty() ? "" : ", ") + name;
  }
  if (known) return run;
  throw AbsentError(
      shown_path(file) + ": no line has a loss or a score at a step; say metric= one of " +
      (repeated.empty() ? "(none)" : repeated) + ", or " + std::string(kPatternAdvice));
}

}  // namespace glidepath::detail
