// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_names.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::ptrdiff_t kMostWords = 8;    // of a name
constexpr std::size_t kCachedNames = 4096;  // names that are remembered

// Words that may stand beside a counter and say no more of it, as words of data may.
constexpr std::string_view kTags[] = {"train", "training",  "meta",    "id",      "idx",
                                      "index", "no",        "global",  "current", "at",
                                      "the",   "completed", "finished"};
// What may stand before a counter where nothing has been measured yet: "Starting epoch 3".
constexpr std::string_view kBeginnings[] = {"start",     "starting", "begin",
                                            "beginning", "now",      "running"};
// What may stand before a counter beside a word of data, and is no metric: "Time taken for epoch 3
// is 9.5 sec", "validation results at iteration 300".
constexpr std::string_view kNoSubjects[] = {"time",    "taken",    "cost",
                                            "elapsed", "duration", "results"};
// What may stand between a metric and the counter at which it was taken.
constexpr std::string_view kPrepositions[] = {"after ", "at ", "for ", "in ", "of "};
// Words beside a counter by which it is another one: an end, a length, the best one.
constexpr std::string_view kWordsOfOthers[] = {"best",      "last",  "per",   "max",   "min",
                                               "num",       "every", "total", "left",  "next",
                                               "remaining", "each",  "until", "warmup"};
// What stands between a number and its spread.
constexpr std::string_view kSpreads[] = {"+", "+/", "±"};
constexpr std::string_view kPluralNames[] = {"epochs",      "iterations", "iters",
                                             "total_steps", "i",          "index"};

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

/// The counter of a name of two words, such as "Learner Steps" or "pod/train-1 step".
std::optional<std::string> last_counter_in(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  if (words.size() != 2 || among(kWordsOfOthers, lower(words[0]))) return {};
  return counter_in(words[1]);
}

/// The counter behind words such as "Starting" and "Now training"; nothing of other names.
std::optional<std::string> counter_behind_beginning(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  if (words.size() < 2 || words.size() > 3 || !among(kBeginnings, lower(words[0]))) return {};
  if (words.size() == 3 && !among(kTags, lower(words[1]))) return {};
  return counter_in(words.back());
}

/// Whether a name is nothing but such words, "Time taken".
bool is_no_subject(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  return !words.empty() && std::ranges::all_of(words, [](std::string_view word) {
    return among(kNoSubjects, lower(word)) || is_held_out(word) || has_train(word);
  });
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

/// A name without what is left of the unit of the number before it: "2s/epoch", "9.5 samples/s LR".
std::string_view without_unit(std::string_view name) {
  const std::size_t end = name.find(' ');
  const std::string_view first = name.substr(0, end);
  const bool speed = first.ends_with("/s") || first.ends_with("/sec") || first.ends_with("/second");
  if (first.starts_with('/') || (speed && end != name.npos)) {
    return end == name.npos ? std::string_view() : stripped(name.substr(end));
  }
  return name;
}

/// Finds the loss in "Loss at step", also in "Training loss (for one batch) at step".
void find_subject(std::string_view name, const std::vector<std::string_view>& words, Named& named) {
  auto [subject, counting] = metric_at(name);
  if (!detail::is_metric(subject) && is_no_subject(subject)) subject = {};
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
void find_counter_of_data(const std::vector<std::string_view>& words, Named& named) {
  std::vector<std::string_view> said;
  for (const std::string_view word : words) {
    if (!stripped(word).empty()) said.push_back(stripped(word));
  }
  if (said.size() < 2 || !(has_train(said.back()) || is_held_out(said.back()))) return;
  named.counter = counter_in(said[said.size() - 2]);
  if (named.counter) named.name = said[said.size() - 2];
}

/// The metric or the learning rate of which more is said in brackets, with these: "lr(Cosine)",
/// "F1 (macro)"; nothing of others.
std::string_view name_with_brackets(std::string_view gap) {
  if (!gap.ends_with(')')) return {};
  const std::size_t open = gap.rfind('(');
  if (open == gap.npos || gap.size() - open > kLongestName) return {};
  const std::vector<std::string_view> before = cut(gap.substr(0, open));
  const std::string_view name = without_logger(without(before.back(), " -#*>."));
  if (name.empty() || !(detail::is_metric(name) || is_rate(name))) return {};
  return gap.substr(static_cast<std::size_t>(name.data() - gap.data()));
}

/// A gap without the signs before its number, such as ": [", " = " and " -> ".
std::string_view without_signs(std::string_view gap) {
  while (true) {
    const std::size_t end = gap.find_last_not_of(" \t:=[('\"<~-|");
    if (end == gap.npos) return {};
    const bool arrow = gap[end] == '>' && end > 0 && contains("-=>", gap.substr(end - 1, 1));
    gap = gap.substr(0, arrow ? end : end + 1);
    if (!arrow) return gap;
  }
}

/// Empties what a logger is called before its level, but for one that is called as data are: a run
/// "mi-test" tests nothing.
void drop_logger(std::vector<std::string_view>& words) {
  for (std::size_t level = words.size(); level-- > 0;) {
    if (!among(kLevels, stripped(words[level]))) continue;
    for (std::size_t i = 0; i < level; ++i) {
      if (!is_data(lower(stripped(words[i])))) words[i] = {};
    }
    return;
  }
}

Named named_by(std::string_view gap) {
  const std::string_view plain = without_signs(gap);
  std::vector<std::string_view> words = cut(plain);
  std::string_view name = without_logger(without(words.back(), " -#*>."));
  if (name.empty()) name = name_with_brackets(plain);
  for (const std::string_view verb : kVerbs) {  // "loss is 2.3" of MindSpore
    const bool said = name.size() > verb.size() && name.ends_with(verb);
    const std::string_view before = name.substr(0, name.size() - (said ? verb.size() : 0));
    if (said && before.ends_with(' ')) name = stripped(before);
  }
  name = without_unit(name);
  if (among(kSpreads, name)) name = {};
  const auto is_long = [&] { return first_characters(name, kLongestName).size() < name.size(); };
  if (is_long() || std::ranges::count(name, ' ') >= kMostWords) {
    const std::vector<std::string_view> parts = words_of(name);
    name = parts.empty() ? std::string_view() : parts.back();
  }
  Named named;
  if (!is_long()) {
    named.name = name;
    named.counter = counter_in(name);
    if (!named.counter) named.counter = counter_behind_beginning(name);
    if (!named.counter) named.last_counter = last_counter_in(name);
    find_subject(name, words, named);
    if (name.empty()) find_counter_of_data(words, named);
    for (std::size_t i = words.size() - 1; is_data(normal(name)) && i-- > 0;) {
      if (detail::is_metric(words[i])) named.subject = stripped(words[i]);  // "accuracy: train"
    }
  }
  words.back() = named.counter ? name : std::string_view();
  drop_logger(words);
  for (const std::string_view word : words) {
    if (has_train(word)) {
      named.data = "";
    } else if (std::optional<std::string> found = held_out_in(word)) {
      named.data = std::move(found);
    }
  }
  return named;
}

template <class Map, class Make>
const typename Map::mapped_type& remembered(Map& map, std::string_view text, const Make& make) {
  const auto found = map.find(text);
  if (found != map.end()) return found->second;
  if (map.size() >= kCachedNames) map.clear();
  return map.emplace(text, make(text)).first->second;
}

}  // namespace

std::optional<std::string> counter_in(std::string_view name) {
  const std::string key(without(normal(name), "_"));
  const auto counts = [](std::string_view word) {
    return counts_steps(word) && !among(kPluralNames, word);
  };
  if (counts(key)) return key;
  if (contains(lower(name), "loss_")) return {};  // Lightning's train_loss_step is a loss
  std::vector<std::string_view> words = split_at(key, '_');
  std::erase_if(words, [](auto word) { return among(kTags, word) || among(kHeldOutNames, word); });
  const bool one = words.size() == 1 || (words.size() == 2 && words[0] == "loss");
  if (one && counts(words.back())) return std::string(words.back());
  return {};
}

bool NameReader::is_metric(std::string_view name) {
  return remembered(metrics_, name, [](std::string_view each) { return detail::is_metric(each); });
}

const Named& NameReader::before_number(std::string_view gap) {
  return remembered(gaps_, gap, named_by);
}

std::string of_other_data(std::string_view name, std::string_view data) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_letter(name[end])) ++end;
    if (end > at && is_data(lower(name.substr(at, end - at)))) {
      return std::string(name.substr(0, at)) + std::string(data) + std::string(name.substr(end));
    }
    at = end + 1;
  }
  return {};
}

}  // namespace glidepath::detail
