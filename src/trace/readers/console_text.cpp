// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_text.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/csv.hpp"
#include "trace/readers/console_numbers.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kLongestBar = 300;
constexpr std::size_t kLongestColour = 32;  // bytes of "[38;2;255;100;0m"

// Each of these is the length of what it finds at `at`, 0 where that is something else.

/// 05/31/2024, 31-05-2024, 31.05.2024, 20240531 before a time
std::size_t other_date_at(std::string_view text, std::size_t at) {
  const auto mark = [&](std::size_t i) { return at_or_nul(text, at + i); };
  if (word_before(text, at)) return 0;
  if (digits_at(text, at) == 2 && contains("/-.", text.substr(std::min(at + 2, text.size()), 1)) &&
      mark(5) == mark(2) && digits_at(text, at + 3) == 2 && digits_at(text, at + 6) == 4) {
    return 10;
  }
  if (digits_at(text, at) != 8 || (mark(0) != '1' && mark(0) != '2')) return 0;
  if (mark(8) != '_' && mark(8) != '-' && mark(8) != 'T') return 0;
  if (digits_at(text, at + 9) == 6 && !word_at(text, at + 15)) return 15;
  const bool time = digits_at(text, at + 9) == 2 && mark(11) == ':';
  return time ? 9 : 0;
}

/// 2024-01-31, 2024/1/31
std::size_t date_at(std::string_view text, std::size_t at) {
  if (const std::size_t other = other_date_at(text, at)) return other;
  if (digits_at(text.substr(0, std::min(at + 4, text.size())), at) < 4) return 0;
  std::size_t end = at + 4;
  for (int part = 0; part < 2; ++part) {
    if (at_or_nul(text, end) != '-' && at_or_nul(text, end) != '/') return 0;
    const std::size_t digits = std::min<std::size_t>(2, digits_at(text, end + 1));
    if (digits == 0) return 0;
    end += 1 + digits;
  }
  return end - at;
}

/// The zone or half of the day behind a time: Z, +01:00, +0100, " PM".
std::size_t zone_at(std::string_view text, std::size_t at) {
  const char mark = at_or_nul(text, at);
  if (mark == 'Z' && !word_at(text, at + 1)) return 1;
  if (text.substr(std::min(at, text.size())).starts_with(" AM") ||
      text.substr(std::min(at, text.size())).starts_with(" PM")) {
    return word_at(text, at + 3) ? 0 : 3;
  }
  if (mark != '+' && mark != '-') return 0;
  const bool colon = digits_at(text, at + 1) == 2 && at_or_nul(text, at + 3) == ':';
  const std::size_t length = colon && digits_at(text, at + 4) == 2 ? 6
                             : digits_at(text, at + 1) == 4        ? 5
                                                                   : 0;
  const bool ends = !word_at(text, at + length) && at_or_nul(text, at + length) != ':';
  return ends ? length : 0;
}

/// 12:34, 1:23:45.678
std::size_t time_at(std::string_view text, std::size_t at, std::size_t digits) {
  const auto two = [&](std::size_t from) {
    return at_or_nul(text, from) == ':' && is_digit(at_or_nul(text, from + 1)) &&
           is_digit(at_or_nul(text, from + 2));
  };
  const std::size_t minutes = at + digits;
  if (digits == 0 || digits > 9 || !two(minutes)) return 0;
  for (const bool seconds : {true, false}) {
    if (seconds && !two(minutes + 3)) continue;
    const std::size_t end = minutes + (seconds ? 6 : 3);
    const char mark = at_or_nul(text, end);
    const std::size_t fraction = mark == '.' || mark == ',' ? digits_at(text, end + 1) : 0;
    const bool has_fraction = fraction >= 1 && fraction <= 9;
    const std::size_t last = end + (has_fraction ? 1 + fraction : 0);
    if (has_fraction || !is_digit(mark)) return last + zone_at(text, last) - at;
  }
  return 0;
}

/// 12%|####    |
std::size_t percent_bar_at(std::string_view text, std::size_t at, std::size_t digits) {
  if (digits == 0 || digits > 3 || !has_at(text, at + digits, "%|")) return 0;
  std::size_t end = at + digits + 2;
  for (std::size_t left = kLongestBar; left > 0 && end < text.size() && text[end] != '|'; --left) {
    end += std::max<std::size_t>(1, character_length(text.substr(end)));
  }
  return at_or_nul(text, end) == '|' ? end + 1 - at : 0;
}

/// [=====>....]
std::size_t arrow_bar_at(std::string_view text, std::size_t at) {
  if (text[at] != '[') return 0;
  std::size_t end = at + 1;
  while (end < text.size() && contains("=>.", text.substr(end, 1))) ++end;
  const std::size_t length = end - at - 1;
  return length >= 9 && length <= kLongestBar && at_or_nul(text, end) == ']' ? end + 1 - at : 0;
}

/// ━━━╸
std::size_t line_bar_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kParts[] = {"━", "╸", "╺", "╴"};
  std::size_t count = 0;
  std::size_t end = at;
  while (count < kLongestBar && std::ranges::any_of(kParts, [&](std::string_view part) {
           return text.substr(end).starts_with(part);
         })) {
    end += 3;
    ++count;
  }
  return count >= 2 ? end - at : 0;
}

/// Dates, times and progress bars as `;`.
std::string without_noise(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    if (is_digit(text[at])) {
      const std::size_t digits = digits_at(text.substr(0, std::min(at + 10, text.size())), at);
      length = date_at(text, at);
      const bool time_follows = at_or_nul(text, at + length) == 'T';
      if (length > 0 && time_follows && is_digit(at_or_nul(text, at + length + 1))) ++length;
      if (length == 0) length = time_at(text, at, digits);
      if (length == 0) length = percent_bar_at(text, at, digits);
    } else if (text[at] == '[') {
      length = arrow_bar_at(text, at);
    } else if (text[at] == '\xE2') {
      length = line_bar_at(text, at);
    }
    out += length > 0 ? ';' : text[at];
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

/// Length of "th " at `at`, as in "13th epoch"; 0 of anything else.
std::size_t ordinal_at(std::string_view text, std::size_t at) {
  static constexpr std::string_view kEnds[] = {"st ", "nd ", "rd ", "th "};
  for (const std::string_view end : kEnds) {
    if (has_at(text, at, end)) return end.size();
  }
  return 0;
}

/// "13epoch" and "13th epoch" as "epoch 13".
std::string without_glue(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  static constexpr std::string_view kCounters[] = {"epoch", "batch", "iter",   "iteration",
                                                   "step",  "round", "episode"};
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      out += text[at++];
      continue;
    }
    const std::size_t digits = digits_at(text, at);
    const bool alone = digits <= 9 && (at == 0 || text[at - 1] != '.') && !word_before(text, at);
    const std::size_t from = at + digits + ordinal_at(text, at + digits);
    std::size_t length = 0;
    for (const std::string_view word : kCounters) {
      if (!alone || !has_at(text, from, word)) continue;
      const std::size_t end = from + word.size();
      const std::size_t plural = has_at(text, end, "s") ? 1 : 0;
      if (word_at(text, end + plural)) continue;
      length = end + plural - at;
      out += text.substr(from, word.size());
      out += ' ';
      out += text.substr(at, digits);
    }
    if (length == 0) {
      length = digits;
      out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

/// "epoch001", "Iter_12", "ep#3" as a name and a number.
std::string without_stuck(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    const char first = lower_letter(text[at]);
    const bool begins = first == 'e' || first == 'i' || first == 's';
    if (begins && (at == 0 || !is_letter(text[at - 1]))) {
      for (const std::string_view word : {"epoch", "iter", "step", "ep"}) {
        if (!has_at(text, at, word)) continue;
        const std::size_t end = at + word.size();
        const char mark = at_or_nul(text, end);
        const std::size_t marks = mark != '\0' && contains("_#-.", {&mark, 1}) ? 1 : 0;
        if (!is_digit(at_or_nul(text, end + marks))) continue;
        out += text.substr(at, word.size());
        out += ' ';
        length = word.size() + marks;
        break;
      }
    }
    if (length == 0) {
      out += text[at];
      length = 1;
    }
    at += length;
  }
  return out;
}

/// What signs beyond ASCII stand for, as logs in Chinese and typographers write them; nothing of
/// others.
std::string_view plain_sign(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"\u2212", "-"},  {"\u00A0", " "},  {"\u3000", " "}, {"\uFF0C", ", "}, {"\u3001", ", "},
      {"\uFF1B", ";"},  {"\uFF1A", ":"},  {"\uFF08", "("}, {"\uFF09", ")"},  {"\uFF1D", "="},
      {"\u2192", "->"}, {"\u21D2", "=>"}, {"\u2248", "="}};
  if ((text[0] & 0x80) == 0) return {};
  for (const auto& [sign, plain] : kSigns) {
    if (text.starts_with(sign)) return plain;
  }
  return {};
}

/// Length of a colour or another sequence of a terminal that begins some text, also where a tool
/// wrote its escape in letters, as SageMaker's "#033[34m", or dropped it; 0 of anything else.
std::size_t colour_at(std::string_view text, bool bare) {
  static constexpr std::string_view kEscapes[] = {"\x1b",    "#033", "\\033", "\\x1b",
                                                  "\\u001b", "\\e",  "^["};
  if (!contains("\x1b#\\^[", text.substr(0, 1))) return 0;  // of each letter of a log
  std::size_t start = bare && text[0] == '[' ? 0 : text.npos;
  for (const std::string_view escape : kEscapes) {
    if (text.starts_with(escape) && at_or_nul(text, escape.size()) == '[') start = escape.size();
  }
  if (start == text.npos) return 0;
  std::size_t end = start + 1;
  while (end < start + kLongestColour &&
         (is_digit(at_or_nul(text, end)) || at_or_nul(text, end) == ';')) {
    ++end;
  }
  const char last = at_or_nul(text, end);
  return is_letter(last) && (start > 0 || (last == 'm' && end > 1)) ? end + 1 : 0;
}

}  // namespace

std::string_view without(std::string_view text, std::string_view letters) {
  const std::size_t start = text.find_first_not_of(letters);
  if (start == text.npos) return {};
  return text.substr(start, text.find_last_not_of(letters) + 1 - start);
}

bool has_hint(std::string_view line) {
  static constexpr std::string_view kHints[] = {"loss",  "acc",   "auc",   "epoch", "err",  "step",
                                                "iter",  "train", "learn", "val",   "rew",  "ret",
                                                "rouge", "bleu",  "ppl",   "wer",   "f1",   "batch",
                                                "score", "cost",  "test:", "hella", "rate,"};
  constexpr auto kFirst = [] {
    std::array<bool, 256> first{};
    for (const std::string_view hint : kHints) {
      first[static_cast<unsigned char>(hint[0])] = true;
      first[static_cast<unsigned char>(hint[0] - 32)] = true;
    }
    return first;
  }();
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '|') return true;
    if (line[at] == '@' && digits_of_name(line, at + 1) > 0) return true;
    if (!kFirst[static_cast<unsigned char>(line[at])]) continue;
    if (has_at(line, at, "s:") && is_digit(at_or_nul(line, at + 2)) && !word_before(line, at)) {
      return true;  // "s:12 ..." of llm.c
    }
    for (const std::string_view hint : kHints) {
      if (has_at(line, at, hint)) return true;
    }
  }
  return is_round(line);
}

bool has_short_hint(std::string_view line) {
  constexpr std::string_view kWords[] = {"dice", "iou",  "miou", "map", "psnr", "ssim", "mae",
                                         "mse",  "rmse", "mape", "fid", "cer",  "lr"};
  constexpr std::string_view kFirst = "dimpsrfclDIMPSRFCL";
  for (std::size_t at = line.find_first_of(kFirst); at != line.npos;
       at = line.find_first_of(kFirst, at + 1)) {
    if (at > 0 && is_letter(line[at - 1])) continue;
    for (const std::string_view word : kWords) {
      if (has_at(line, at, word) && !is_letter(at_or_nul(line, at + word.size()))) return true;
    }
  }
  return false;
}

bool is_round(std::string_view line) {
  const std::size_t end = line.find("]\t");
  if (end == line.npos) return false;
  std::size_t start = end;
  while (start > 0 && is_digit(line[start - 1])) --start;
  return start < end && start > 0 && line[start - 1] == '[' &&
         line.find_first_not_of("[]:0123456789 ") == end + 1;
}

bool is_layer_of_darknet(std::string_view line) {
  line = stripped(line);
  const std::size_t avg = line.find("Avg ");
  return (line.starts_with("v3 (") || line.starts_with("Region ")) && avg != line.npos &&
         contains(line.substr(avg), "IOU: ");
}

bool is_bar(std::string_view line) {
  std::size_t at = leading_blanks(line, 9);
  const std::size_t of = at + digits_at(line, at);
  const std::size_t end = of + 1 + digits_at(line, of + 1);
  if (of > at && of - at <= 9 && at_or_nul(line, of) == '/' && end > of + 1 && end - of <= 10 &&
      line.substr(std::min(end, line.size())).starts_with(" - ")) {
    return true;
  }
  if (contains(line, "━━") || contains(line, "- ETA: ") || contains(line, "ms/step") ||
      contains(line, "us/step")) {
    return true;
  }
  std::size_t marks = 0;
  for (at = 0; at < line.size(); ++at) {
    const bool mark = line[at] == '=' || line[at] == '>' || line[at] == '.';
    marks = line[at] == '[' ? 1 : mark && marks > 0 ? marks + 1 : 0;
    if (marks == 10) return true;
    const std::string_view rest = line.substr(at);
    if (is_digit(line[at]) &&
        (rest.substr(1).starts_with("s/step") || rest.substr(1).starts_with("s/epoch"))) {
      return true;
    }
  }
  return false;
}

bool begins_with_counter(std::string_view line) {
  std::size_t at = leading_blanks(line, 20);
  if (line.substr(at).starts_with("\x1b[")) {
    const std::size_t end = at + 2 + std::min<std::size_t>(3, digits_at(line, at + 2));
    if (at_or_nul(line, end) == 'm') at = end + 1;
  }
  for (const std::string_view word : {"epoch", "step", "iter", "batch", "round"}) {
    if (has_at(line, at, word)) return true;
  }
  return false;
}

std::string undressed(std::string_view line) {
  const std::size_t last = line.find("[0m");  // with which colours end
  const bool bare = last != line.npos && (last == 0 || line[last - 1] != '\x1b');
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    std::size_t length = line[at] == '\0' || line[at] == '\b' ? 1 : 0;
    const std::string_view rest = line.substr(at);
    if (const std::string_view sign = plain_sign(rest); !sign.empty()) {
      out += sign;
      length = character_length(rest);
    } else if (const std::size_t groups = is_digit(line[at]) ? groups_at(line, at) : 0) {
      length = groups;
      std::copy_if(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(groups),
                   std::back_inserter(out), is_digit);
    } else if (const std::size_t colour = colour_at(rest, bare)) {
      length = colour;
    } else if (const std::size_t wrapper = wrapper_length(rest)) {
      length = wrapper;
    }
    if (length == 0) out += line[at];
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string cleared(std::string_view line) {
  return without_stuck(without_glue(without_noise(line)));
}

std::vector<std::string_view> cut(std::string_view text) {
  constexpr std::string_view kMarks = "|,;\t(){}[]\"'<>:=";
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool genitive = rest.starts_with("'s ") && at > 0 && word_before(text, at);
    const bool to_95 = (rest.starts_with(":.95") || rest.starts_with(":0.95")) && at > 0 &&
                       is_digit(text[at - 1]);  // "mAP@.5:.95"
    const bool mark = kMarks.find(text[at]) != kMarks.npos && !genitive && !to_95;
    const std::size_t length = mark                                               ? 1
                               : rest.starts_with(" - ")                          ? 3
                               : rest.starts_with("  ") || rest.starts_with(". ") ? 2
                                                                                  : 0;
    if (length > 0) {
      parts.push_back(text.substr(start, at - start));
      start = at + length;
    }
    at += std::max<std::size_t>(1, length);
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace glidepath::detail
