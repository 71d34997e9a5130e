// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_runs.hpp"

#include <algorithm>
#include <cstddef>

#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::string_view kFold = "fold";
constexpr std::string_view kRunWords[] = {"seed", "trial", "run"};
constexpr std::size_t kLongestNumber = 4;    // digits of the number of a run
constexpr std::size_t kLongestRunName = 40;  // letters of a line that only names one
constexpr std::size_t kHeardLetters = 200;   // of a line, in which a run is looked for

/// The number behind a word that ends at `at`, as in " 2", ": 2", " #2" and "_2"; empty without.
std::string_view number_behind(std::string_view text, std::size_t at) {
  at += std::min(text.find_first_not_of(" :=#_-[(", at), text.size()) - at;
  const std::size_t digits = digits_at(text, at);
  const bool whole = digits > 0 && digits <= kLongestNumber && !word_at(text, at + digits) &&
                     !(at_or_nul(text, at + digits) == '.' && digits_at(text, at + digits + 1) > 0);
  return whole ? text.substr(at, digits) : std::string_view();
}

std::optional<std::string> fold_in(std::string_view text) {
  for (std::size_t at = text.find_first_of("fF"); at != text.npos;
       at = text.find_first_of("fF", at + 1)) {
    if (!has_at(text, at, kFold)) continue;
    const bool k = at > 0 && lower_letter(text[at - 1]) == 'k' && !word_before(text, at - 1);
    if (word_before(text, at) && !k) continue;
    const std::string_view number = number_behind(text, at + kFold.size());
    if (!number.empty()) return std::string(kFold) + " " + std::string(number);
  }
  return {};
}

/// "=== Seed 2/5 ===", of which no more is said.
std::optional<std::string> heading_in(std::string_view text) {
  text = without(text, " \t-=#*_>[]");
  if (text.size() > kLongestRunName) return {};
  for (const std::string_view word : kRunWords) {
    if (!has_at(text, 0, word)) continue;
    const std::string_view number = number_behind(text, word.size());
    if (number.empty()) return {};
    std::string_view rest = text.substr(number.data() + number.size() - text.data());
    rest = stripped(rest);
    for (const std::string_view of : {"/", "of "}) {
      if (rest.starts_with(of)) rest.remove_prefix(of.size());
    }
    if (without(rest, " :.-=#*_0123456789").empty()) {
      return std::string(word) + " " + std::string(number);
    }
  }
  return {};
}

}  // namespace

void RunNames::hear(std::string_view text) {
  text = text.substr(0, kHeardLetters);
  if (std::optional<std::string> fold = fold_in(text)) {
    fold_ = *std::move(fold);
  } else if (std::optional<std::string> heading = heading_in(text)) {
    heading_ = *std::move(heading);
    fold_.clear();
  }
}

std::string RunNames::now() const {
  return heading_ + (heading_.empty() || fold_.empty() ? "" : "/") + fold_;
}

std::vector<std::string> run_names(const std::vector<Line>& lines) {
  const auto counts = [](const Line& line) { return !line.own.empty() && !line.cells.empty(); };
  const auto first =
      std::ranges::find_if(lines, [](const Line& line) { return !line.run.empty(); });
  if (first == lines.end()) return {};
  std::vector<std::string> names;
  for (const Line& line : lines) names.push_back(line.run);
  if (std::none_of(lines.begin(), first, counts)) {
    std::fill_n(names.begin(), first - lines.begin(), first->run);
    return names;
  }
  std::string next;  // the name that comes behind a line
  for (std::size_t i = lines.size(); i-- > 0;) {
    RunNames own;
    own.hear(lines[i].text);
    const bool itself = !own.now().empty() && lines[i].run.ends_with(own.now());
    if (!itself && next.empty() && counts(lines[i])) return {};  // of a run without a name
    if (!itself) names[i] = next.empty() ? lines[i].run : next;
    if (i > 0 && lines[i - 1].run != lines[i].run) next = lines[i].run;
  }
  return names;
}

}  // namespace glidepath::detail
