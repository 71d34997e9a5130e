// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_ranks.hpp"

#include <algorithm>
#include <utility>

#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr int kMasterRank = -1;  // beside workers, which count from 0
constexpr int kAddresses = 256;  // in the last part of an address
// Words that begin a line before the number of who printed it, and whether it is surely a rank.
constexpr std::pair<std::string_view, bool> kFirstWords[] = {
    {"rank", true},     {"default", true},  {"worker", false},   {"gpu", false}, {"proc", false},
    {"process", false}, {"worker-", false}, {"trainer/", false}, {"xla", false}, {"mpirank", true}};

/// The whole number at `at`, that of a process.
std::optional<int> rank_at(std::string_view line, std::size_t at) {
  const std::size_t digits = digits_at(line, at);
  if (digits == 0 || digits > 9 || word_at(line, at + digits)) return {};
  return static_cast<int>(number_in(line.substr(at, digits)).value_or(0));
}

/// The number of the machine that printed a line, where the line begins with its name: "node0:",
/// "10.0.0.3:", "[pod/job-worker-0/pytorch]".
std::optional<int> rank_of_node(std::string_view line, std::size_t start) {
  if (has_at(line, start, "[pod/")) {
    const std::size_t end = line.find('/', start + 5);
    std::size_t from = std::min(end, line.size());
    while (from > start && is_digit(line[from - 1])) --from;
    const std::string_view name = line.substr(start, from - start);
    if (end == line.npos || !name.ends_with('-')) return {};
    return name.ends_with("master-") ? kMasterRank : rank_at(line, from);
  }
  std::size_t at = start;
  int parts = 0, last = 0;
  if (has_at(line, start, "node")) {
    at += 4;
    parts = 3;
  }
  for (; parts < 4 && is_digit(at_or_nul(line, at)); ++parts) {
    const int part = rank_at(line, at).value_or(kAddresses);
    if (parts < 3 && part >= kAddresses) return {};
    last = part + (parts == 3 ? kAddresses * last : 0);
    at += digits_at(line, at);
    if (parts < 3 && at_or_nul(line, at++) != '.') return {};
  }
  const bool named = parts == 4 && at_or_nul(line, at) == ':' && at_or_nul(line, at + 1) == ' ';
  return named ? std::optional(last) : std::nullopt;
}

}  // namespace

std::optional<int> rank_of_fraction(std::string_view line) {
  for (std::size_t at = line.find('('); at != line.npos; at = line.find('(', at + 1)) {
    const std::size_t digits = std::min<std::size_t>(5, digits_at(line, at + 1));
    const std::size_t of = at + 1 + digits;
    const std::size_t more = std::min<std::size_t>(5, digits_at(line, of + 1));
    const std::size_t end = of + 1 + more;
    if (digits == 0 || more == 0 || at_or_nul(line, of) != '/' || at_or_nul(line, end) != ')') {
      continue;
    }
    if (!begins_with_counter(line.substr(end + 1))) continue;
    return static_cast<int>(number_in(line.substr(at + 1, digits)).value_or(0));
  }
  return {};
}

std::optional<int> rank_in_brackets(std::string_view line) {
  const std::size_t start = leading_blanks(line, 9);
  const std::size_t digits = digits_at(line, start + 1);
  if (at_or_nul(line, start) != '[' || digits > 9) return {};
  return line.substr(start + 1 + digits).starts_with("] ") ? rank_at(line, start + 1)
                                                           : std::nullopt;
}

std::optional<Rank> rank_of_line(std::string_view line) {
  const auto after = [&](std::size_t at, std::string_view word) -> std::optional<int> {
    if (!has_at(line, at, word)) return {};
    const char mark = at_or_nul(line, at + word.size());
    const bool marked = mark == ' ' || mark == '_' || mark == ':' || mark == '=';
    const std::size_t from = at + word.size() + (marked ? 1 : 0);
    return rank_at(line, from + (marked && at_or_nul(line, from) == ' ' ? 1 : 0));
  };
  std::size_t start = leading_blanks(line, 9);
  if (const std::optional<int> node = rank_of_node(line, start)) return Rank{*node};
  if (at_or_nul(line, start) == '[') ++start;
  if (has_at(line, start, "1,")) {  // "[1,0]<stdout>" of Open MPI
    if (const std::optional<int> rank = rank_at(line, start + 2)) return Rank{*rank, true};
    start += 2;
  }
  for (const auto& [word, sure] : kFirstWords) {
    if (const std::optional<int> rank = after(start, word)) return Rank{*rank, sure};
  }
  std::size_t end = start + digits_at(line, start);
  if (at_or_nul(line, end) == ']') ++end;
  if (line.substr(std::min(end, line.size())).starts_with("<stdout>")) end += 8;
  // "0: step 1" of srun; "10:30:00 step 1" begins with a time.
  if (at_or_nul(line, end) == ':' && !is_digit(at_or_nul(line, end + 1))) {
    if (const std::optional<int> rank = rank_at(line, start)) return Rank{*rank};
  }
  if (const std::optional<int> rank = rank_of_fraction(line)) return Rank{*rank, true};
  // Within the line: "rank=1", "[RANK:0]", "cuda:1", "(RayTrainWorker pid=12, ip=…)".
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = std::string_view("rlgcp").find(lower_letter(line[at])) != line.npos;
    if (!begins || word_before(line, at)) continue;
    for (const std::string_view word : {"rank", "local_rank", "global_rank", "cuda", "pid"}) {
      if (word == "pid" && !line.starts_with('(')) continue;
      const std::optional<int> rank = after(at, word);
      if (rank) return Rank{*rank, word.ends_with("rank")};
    }
  }
  return {};
}

}  // namespace glidepath::detail
