// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_line.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "common/csv.hpp"
#include "trace/readers/console_names.hpp"
#include "trace/readers/console_numbers.hpp"
#include "trace/readers/console_ranks.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

// Letters of a line that are shown, and letters before a number in which its name stands.
constexpr std::size_t kLineLetters = 100;
constexpr std::size_t kGap = 200;
constexpr std::size_t kLongestJoint = 8;  // letters between a number in brackets and its value
constexpr std::size_t kMostBehind = 32;   // metrics of a line that may be of the data before them
constexpr std::size_t kLongestList = 64;  // numbers of a list that are read
constexpr std::string_view kAsciiBlanks = " \t\n\r\v\f";
// Names of fractions that count no rows: "patience 3/10", "mem 12/80GB".
constexpr std::string_view kNoCounts[] = {"patience", "mem", "memory", "vram"};

// Units of time, and their seconds.
constexpr std::pair<std::string_view, double> kUnitsOfTime[] = {
    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},     {"sec", 1},      {"secs", 1}, {"seconds", 1},
    {"m", 60},    {"min", 60},  {"mins", 60}, {"minutes", 60}, {"h", 3600}, {"hours", 3600}};

/// How often a part stands in some text.
std::size_t times_in(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++times;
  }
  return times;
}

/// Whether a fraction of this name may count rows.
bool counts_rows(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  return std::none_of(words.begin(), words.end(),
                      [](std::string_view word) { return among(kNoCounts, lower(word)); });
}

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
    if (const std::optional<Rank> rank = rank_of_line(plain)) {
      line_.rank = rank->number;
      line_.rank_form = rank->sure ? RankForm::sure : RankForm::passing;
    }
    if (rank_of_fraction(plain)) {  // "(0/4) Epoch 1": of four ranks, no iteration
      line_.counters.erase_if([](const std::string& name) { return name == "it"; });
      line_.totals.erase_if([](const std::string& name) { return name == "it"; });
    }
    round_ = is_round(plain);
    if (line_.counters.empty() && (has_metric() || round_)) {
      count_by_place();
    } else if (!line_.rank) {
      line_.rank = rank_in_brackets(plain);
      line_.rank_form = RankForm::bare;
    }
    line_.held_out = !data_.empty();
    return std::move(line_);
  }

 private:
  /// Finds what counts in a line with a metric whose names do not say so.
  void count_by_place() {
    if (leading_ && second_) {  // "[1, 2000] loss: 2.1"
      line_.counters.put("epoch", *leading_);
      line_.counters.put("batch", *second_);
    } else if (leading_ && !(line_.rank && bracketed_)) {
      line_.counters.put("step", *leading_);
    } else if (bracketed_) {
      line_.counters.put("step", *bracketed_);
      return;
    } else if (last_counter_) {
      const std::string name = last_counter_->first;
      line_.counters.put(last_counter_->second, *line_.cells.find(name));
      line_.cells.erase_if([&](const std::string& each) { return each == name; });
      return;
    } else {
      return;
    }
    line_.rank.reset();
  }

  [[nodiscard]] bool has_metric() const {
    return line_.of_data ||
           std::any_of(line_.cells.begin(), line_.cells.end(),
                       [&](const auto& cell) { return names_.is_metric(cell.first); });
  }

  [[nodiscard]] char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  /// "[10]", also with blanks before the number, "[    10]".
  [[nodiscard]] bool is_bracketed(const Number& number) const {
    const std::size_t from = number.start - std::min(number.start, kLongestJoint);
    const std::string_view before = std::string_view(text_).substr(from, number.start - from);
    return number.whole && at(number.end) == ']' && stripped(before).ends_with('[');
  }

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
    if (part_of_list(number, stripped(gap))) return;
    const Named& named = names_.before_number(gap);
    if (number.word) {  // of nan and inf the words are no numbers, such as in "nan iterations"
      const std::size_t last = gap.find_last_not_of(kAsciiBlanks);
      const bool said = last != gap.npos && contains(":=[('", gap.substr(last, 1));
      if (!said && !names_.is_metric(named.name)) return;
    }
    first_ = end_ == 0;
    end_ = number.end;
    if (part_of_counter(number, stripped(gap))) return;
    if (named.data) data_ = *named.data;
    if (number.whole && at(number.end) == ':' && !named.counter &&
        !names_.is_metric(named.name)) {  // "Test net output #0: loss = 2.3"
      if (std::optional<std::string> found = held_out_in(named.name)) data_ = *std::move(found);
    }
    last_.clear();
    loose_.reset();
    const std::string subject = std::exchange(subject_, {});
    const std::string before = std::exchange(whole_metric_, {});
    const bool verb = !subject.empty() && among(kVerbs, named.name);
    if (const std::string rate = std::exchange(rate_, {}); !rate.empty()) {
      line_.cells.put(rate, number.value);
      return;
    }
    if (is_unit_of_rate(named, number)) {
      rate_ = named.name + text_.substr(number.start - 1, number.end + 2 - number.start);
      return;
    }
    if (const std::string said = name_with_index(named, number); !said.empty()) {
      subject_ = said;
    } else if (is_step_in_brackets(named, number, gap)) {
      if (!has_metric()) bracketed_ = number.value;
    } else if (!named.name.empty() && !verb) {
      add_named(named, number);
    } else if (!subject.empty()) {
      add_cell(subject, number);
    } else if (!before.empty() && !number.whole && stripped(gap).empty() &&
               line_.counters.empty()) {  // "Train loss 10 3.44" of Tacotron
      line_.counters.put("step", *line_.cells.find(before));
      line_.cells.put(before, number.value);
    } else {
      add_nameless(number, gap);
    }
  }

  /// Whether a number is what verl gives a learning rate in: "train/lr(1e-3):0.27".
  [[nodiscard]] bool is_unit_of_rate(const Named& named, const Number& number) const {
    const std::string_view behind = std::string_view(text_).substr(number.end);
    if (number.start == 0 || at(number.start - 1) != '(' || !behind.starts_with("):")) return false;
    const std::string_view value = stripped(behind.substr(2, kLongestJoint));
    return !value.empty() && is_digit(value[0]) && is_rate(named.name);
  }

  /// Whether a number stands behind another one in a list of a metric, of which the first has its
  /// name: "dice [0.81, 0.75]" has "dice" and "dice[1]".
  bool part_of_list(const Number& number, std::string_view joint) {
    if (list_.empty() || !(joint.empty() || joint == "," || joint == "),")) {  // of "float32("
      list_.clear();
      return false;
    }
    if (++listed_ < kLongestList) {
      line_.cells.put_first(list_ + "[" + std::to_string(listed_) + "]", number.value);
    }
    end_ = number.end;
    return true;
  }

  void add_nameless(const Number& number, std::string_view gap) {
    if (number.whole && contains(gap, ";") && of_follows() && line_.counters.empty()) {
      const std::optional<std::string> counter = counter_in(without(gap, " :;"));
      if (counter == "steps" || counter == "step") {  // "steps: 2%|# | 1/40", over all epochs
        line_.counters.put(*counter, number.value);
        last_ = *counter;
        return;
      }
    }
    if (number.whole) loose_ = number.value;
    if (first_ && without(gap, " [").empty() && number.whole) {
      leading_ = number.value;
    } else if (leading_ && !second_ && number.whole && without(gap, " ,").empty()) {
      // "[1, 2000] loss: 2.1", "0 10 loss - 2.1": an epoch and a batch
      second_ = number.value;
    } else if (std::string_view(text_).substr(end_).starts_with(" avg loss") ||
               std::string_view(text_).substr(end_).starts_with(" avg, ")) {  // darknet
      line_.cells.put("avg loss", number.value);
    } else if (is_bracketed(number) && !has_metric()) {
      bracketed_ = number.value;
    }
  }

  /// The metric whose number comes behind one in brackets: "loss[20] = 2.1" at step 20 where all
  /// brackets of a line say 20, else one of several, "loss[1] = 2.1".
  std::string name_with_index(const Named& named, const Number& number) {
    const bool square = at(number.end) == ']', round = at(number.end) == ')';
    if (!number.whole || number.start < 2 || !(square || round)) return {};
    if (at(number.start - 1) != (square ? '[' : '(') || named.counter) return {};
    const std::string_view rest = std::string_view(text_).substr(number.end + 1);
    const std::string_view mark = stripped(rest.substr(0, kLongestJoint));
    const char last = at(number.start - 2);
    if (!(mark.starts_with('=') || mark.starts_with(':')) || !(is_letter(last) || is_digit(last)) ||
        !names_.is_metric(named.name)) {
      return {};
    }
    const std::string index = text_.substr(number.start - 1, number.end + 2 - number.start);
    if (first_ && times_in(rest, index.substr(0, 1)) == times_in(rest, index)) {
      line_.counters.put("step", number.value);
      at_index_ = true;
    }
    return at_index_ ? named.name : named.name + index;
  }

  /// Whether a number in brackets counts although words stand before it: "gpu01: [10] loss: 2.3".
  [[nodiscard]] bool is_step_in_brackets(const Named& named, const Number& number,
                                         std::string_view gap) const {
    if (named.name.empty() || named.counter || !is_bracketed(number)) return false;
    const std::size_t last = gap.find_last_not_of(" \t[");
    if (last == gap.npos || names_.is_metric(named.name)) return false;
    return contains(":)]>", gap.substr(last, 1)) || among(kLevels, named.name);
  }

  void add_named(const Named& named, const Number& number) {
    std::optional<std::string> counter = named.counter;
    if (named.name == "s" && first_) {  // llm.c
      counter = "step";
    } else if (!counter && ((number.whole && of_follows()) || is_tqdm_fraction(number))) {
      if (!names_.is_metric(named.name) && counts_rows(named.name)) counter = "it";
      if (is_held_out(named.name)) data_ = lower(named.name);
    }
    if (!counter) {
      if (is_place_in_source(named.name, number)) return;
      if (is_data(normal(named.name)) && unit_of_time(number)) return;  // "train: 12.5s"
      const bool data = !number.whole && is_data(normal(named.name));
      add_cell(data ? name_by_data(named, number) : named.name, number);
      if (number.whole && named.last_counter && !last_counter_) {
        last_counter_.emplace(last_cell_, *named.last_counter);
      }
      // Behind "Prec@1" a whole number is no step but 0 or 100.
      const bool step = number.whole && !contains(named.name, "@");
      if (step && names_.is_metric(named.name)) whole_metric_ = last_cell_;
    } else if (number.whole || thousands_of(number) > 0 || is_epoch(*counter) ||
               is_tqdm_fraction(number)) {
      line_.counters.put_first(*counter, in_thousands(number));
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

  /// Seconds of the unit of time that stands behind a number, "12.5s" or "12.5 sec".
  [[nodiscard]] std::optional<double> unit_of_time(const Number& number) const {
    std::string unit = lower(number.unit);
    if (unit.empty() && at(number.end) == ' ') {
      std::size_t end = number.end + 1;
      while (is_letter(at(end))) ++end;
      unit = lower(std::string_view(text_).substr(number.end + 1, end - number.end - 1));
    }
    for (const auto& [name, seconds] : kUnitsOfTime) {
      if (unit == name) return seconds;
    }
    return {};
  }

  /// Whether a number is how far a counter counts, or counts batches beside an epoch.
  bool part_of_counter(const Number& number, std::string_view joint) {
    const bool of = joint == "/" || joint == "]/[" || (joint == "of" && !last_.empty());
    if (of && (!last_.empty() || loose_)) {
      if (last_.empty()) {
        last_ = "it";
        line_.counters.put_first(last_, loose_.value_or(0));
      }
      line_.totals.put(last_, in_thousands(number));
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

  /// What the unit of a number multiplies: "10k", "1.5M", "1.00kit" of tqdm; 0 of others.
  static double thousands_of(const Number& number) {
    if (lower(number.unit) == "k" || number.unit == "kit") return 1e3;
    return number.unit == "M" || number.unit == "Mit" ? 1e6 : 0;
  }

  static double in_thousands(const Number& number) {
    const double by = thousands_of(number);
    return by > 0 ? std::round(number.value * by) : number.value;
  }

  /// Whether a number is the first of "100it/10.0kit", as tqdm prints it into a log.
  [[nodiscard]] bool is_tqdm_fraction(const Number& number) const {
    return number.unit.ends_with("it") && at(number.end) == '/' && is_digit(at(number.end + 1));
  }

  [[nodiscard]] bool of_follows() const {
    const std::string_view rest = std::string_view(text_).substr(end_);
    return stripped(first_characters(rest, 9)).starts_with('/');
  }

  /// Whether a line is nothing but a number, a word and this number.
  [[nodiscard]] bool is_whole_line(const Number& number) const {
    return number.start < kLongestName && number.end + kLongestName > text_.size() &&
           words_of(std::string_view(text_).substr(0, number.start)).size() == 2 &&
           stripped(std::string_view(text_).substr(number.end)).empty();
  }

  /// What is meant by a number that is named by nothing but its data; a whole one would be that of
  /// samples. Without a metric before it, it may be a loss or a score: nothing is added to its
  /// name.
  std::string name_by_data(const Named& named, const Number& number) {
    if (line_.text.starts_with("s:") && named.name == "eval") return "hellaswag";
    if (leading_ && is_whole_line(number)) {  // "250 val 3.5" of build-nanogpt
      return is_held_out(named.name) ? "val_loss" : "train_loss";
    }
    std::string said = named.subject.empty() ? of_other_data(of_data_, named.name)
                                             : named.name + " " + named.subject;
    if (!said.empty() && !line_.of_data && line_.cells.find(said) == nullptr) return said;
    line_.of_data = true;
    return named.name;
  }

  void add_cell(const std::string& name, const Number& number) {
    std::string_view key = name;
    if (key.ends_with(" value")) key.remove_suffix(6);
    std::string cell = named_bare(lower(name), key);
    if (cell == "total" && contains(text_, "Losses: ")) cell = "total loss";
    if (is_error(cell) || contains(lower(cell), "improve")) return;
    const std::optional<std::string> found = held_out_in(cell);
    const bool there = line_.cells.find(cell) != nullptr;
    if (!found && !has_train(cell) && (!data_.empty() || there)) {
      const std::string& before = data_.empty() ? held_ : data_;
      if (!before.empty()) cell = before + " " + cell;
    }
    note_data(cell);
    const std::optional<double> unit = unit_of_time(number);
    const bool time = unit && (is_clock(normal(cell)) || among(kTimes, normal(cell)));
    line_.cells.put_first(cell, time ? number.value * *unit : number.value);
    last_cell_ = cell;
    if (!number.whole && number.start > 0 && at(number.start - 1) == '[' &&
        names_.is_metric(cell)) {
      list_ = cell;
      listed_ = 0;
    }
    if (cell == "train_time" && (number.unit == "ms" || number.unit == "s")) {
      line_.cells.put("elapsed_seconds", number.value / (number.unit == "ms" ? 1e3 : 1));
    }
    if (found) held_ = *found;
  }

  /// Notes which data a metric is of, for those behind it; or that it stands behind such a one.
  void note_data(const std::string& cell) {
    if (!names_.is_metric(cell)) return;
    const std::optional<std::string> held_out = held_out_in(cell);
    if (held_out || has_train(cell)) {
      of_data_ = cell;
      behind_data_ = has_train(cell) ? "" : *held_out;
    } else if (!behind_data_.empty() && data_.empty() && line_.behind.size() < kMostBehind) {
      line_.behind.emplace_back(cell, behind_data_);
    }
  }

  /// The name of a metric that is called by a short word.
  static std::string named_bare(const std::string& word, std::string_view otherwise) {
    if (word == "trl") return "train_loss";
    if (word == "tel") return "val_loss";
    if (word == "hella") return "hellaswag";
    return std::string(otherwise);
  }

  /// Whether a name has the word of an error of Python, or is the "mAP@" of "mAP@.5".
  static bool is_error(std::string_view name) {
    if (name.ends_with('@')) return true;
    const std::vector<std::string_view> words = words_of(name);
    return std::any_of(words.begin(), words.end(), is_word_of_error);
  }

  static bool is_word_of_error(std::string_view name) {
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
  std::size_t from_ = 0;   ///< where the next number is looked for
  std::size_t end_ = 0;    ///< of the last number that was one
  bool first_ = false;     ///< whether the number being added is the first
  bool round_ = false;     ///< whether the line is one of boosting
  bool at_index_ = false;  ///< whether numbers in brackets behind names are the step
  std::string data_, held_;
  std::string of_data_;            ///< the last metric whose name says of which data it is
  std::string behind_data_;        ///< those data, if they are not trained on
  std::string last_;               ///< the counter that stands before
  std::optional<double> loose_;    ///< a number without a name, perhaps of a fraction
  std::optional<double> leading_;  ///< a number that begins the line
  std::optional<double> second_;   ///< one behind it, as in "[1, 2000]"
  std::optional<double>
      bracketed_;  ///< the last one in brackets before the metrics, without a name
  /// The name of a cell whose last word counts, and that word.
  std::optional<std::pair<std::string, std::string>> last_counter_{};
  std::string subject_;       ///< the metric whose value comes after a counter
  std::string rate_;          ///< the learning rate whose unit stands before its number
  std::string list_;          ///< the metric whose list goes on
  std::size_t listed_ = 0;    ///< how many numbers of that list stand before
  std::string last_cell_;     ///< the metric that was put last
  std::string whole_metric_;  ///< it, where it has a whole number, which may be a step
};

}  // namespace

std::string shown_line(std::string_view text) {
  return std::string(first_characters(stripped(text), kLineLetters));
}

std::ptrdiff_t decimal_commas(std::string_view line, NameReader& names) {
  const std::string text = cleared(undressed(line));
  std::ptrdiff_t count = 0;
  std::size_t end = 0;
  for (const Decimal& number : decimals_in(text)) {
    std::string_view gap = std::string_view(text).substr(end, number.start - end);
    end = number.end;
    const std::size_t digit = gap.find_last_of("0123456789");
    if (digit != gap.npos) gap.remove_prefix(digit + 1);
    if (gap.size() > kGap) continue;
    const std::string& name = names.before_number(gap).name;
    if (names.is_metric(name) || is_rate(name) || is_data(normal(name))) {
      count += number.comma ? 1 : -1;
    }
  }
  return count;
}

Line parse_line(std::string_view text, NameReader& names) { return LineParser(names).parse(text); }

}  // namespace glidepath::detail
