// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "common/csv.hpp"
#include "common/numbers.hpp"

namespace glidepath::detail {
namespace {

using Kind = Json::Kind;

constexpr int kMaxDepth = 900;
constexpr std::size_t kFewMembers = 16;  // names to compare one by one

/// A recursive descent; its sentences are those of Python's json.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    skip_blanks();
    Json value = any();
    skip_blanks();
    if (at_ != text_.size()) fail("Extra data", at_);
    return value;
  }

 private:
  [[noreturn]] static void fail(const std::string& why, std::size_t at) {
    throw JsonError(why, at);
  }
  [[nodiscard]] bool is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Json any() {
    Json value;
    if (is('"')) {
      value.kind = Kind::text;
      value.text = string();
    } else if (is('{') || is('[')) {
      const bool object = is('{');
      if (++depth_ > kMaxDepth) {
        fail(std::string("maximum recursion depth exceeded while decoding a JSON ") +
                 (object ? "object" : "array") + " from a unicode string",
             at_);
      }
      value.kind = object ? Kind::object : Kind::list;
      ++at_;
      skip_blanks();
      object ? members(value.members) : items(value.items);
      --depth_;
    } else if (take("true") || take("false")) {
      value.kind = Kind::boolean;
      value.truth = text_[at_ - 2] == 'u';
    } else if (!take("null")) {
      value.kind = Kind::number;
      value.number = number();
    }
    return value;
  }

  void items(std::vector<Json>& into) {
    if (is(']')) {
      ++at_;
      return;
    }
    while (true) {
      into.push_back(any());
      skip_blanks();
      if (is(']')) break;
      if (!is(',')) fail("Expecting ',' delimiter", at_);
      ++at_;
      skip_blanks();
    }
    ++at_;
  }

  void members(std::vector<std::pair<std::string, Json>>& into) {
    if (is('}')) {
      ++at_;
      return;
    }
    while (true) {
      if (!is('"')) fail("Expecting property name enclosed in double quotes", at_);
      std::string name = string();
      skip_blanks();
      if (!is(':')) fail("Expecting ':' delimiter", at_);
      ++at_;
      skip_blanks();
      into.emplace_back(std::move(name), any());
      skip_blanks();
      if (is('}')) break;
      if (!is(',')) fail("Expecting ',' delimiter", at_);
      ++at_;
      skip_blanks();
    }
    ++at_;
    keep_last(into);
  }

  static void keep_last(std::vector<std::pair<std::string, Json>>& members) {
    if (members.size() <= kFewMembers) {
      for (std::size_t i = 1; i < members.size(); ++i) {
        const auto first = std::find_if(members.begin(), members.begin() + i, [&](const auto& one) {
          return one.first == members[i].first;
        });
        if (first == members.begin() + i) continue;
        first->second = std::move(members[i].second);
        members.erase(members.begin() + i--);
      }
      return;
    }
    std::unordered_map<std::string, std::size_t> place;
    std::size_t kept = 0;
    for (auto& member : members) {
      const auto [entry, fresh] = place.try_emplace(member.first, kept);
      if (!fresh) {
        members[entry->second].second = std::move(member.second);
      } else if (&members[kept++] != &member) {
        members[kept - 1] = std::move(member);
      }
    }
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
  }

  /// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?, NaN, Infinity or -Infinity.
  double number() {
    if (take("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (take("Infinity")) return kInfinity;
    if (take("-Infinity")) return -kInfinity;
    const auto digit = [&](std::size_t at) {
      return at < text_.size() && text_[at] >= '0' && text_[at] <= '9';
    };
    const std::size_t start = at_;
    std::size_t end = start + (is('-') ? 1 : 0);
    if (!digit(end)) fail("Expecting value", start);
    if (text_[end] == '0') {
      ++end;
    } else {
      while (digit(end)) ++end;
    }
    if (end < text_.size() && text_[end] == '.' && digit(end + 1)) {
      for (++end; digit(end);) ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t at = end + 1;
      if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
      while (digit(at)) end = ++at;
    }
    double value = 0;
    (void)parse_number(text_.substr(start, end - start), value);
    at_ = end;
    return value;
  }

  std::string string() {
    const std::size_t start = at_++;
    std::string out;
    while (true) {
      const std::size_t plain = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      out += text_.substr(plain, at_ - plain);
      if (at_ >= text_.size()) fail("Unterminated string starting at", start);
      if (text_[at_] == '"') break;
      if (text_[at_] != '\\') fail("Invalid control character at", at_);
      escape(out, start);
    }
    ++at_;
    return out;
  }

  void escape(std::string& out, std::size_t start) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (++at_ >= text_.size()) fail("Unterminated string starting at", start);
    if (text_[at_] != 'u') {
      const std::size_t place = kEscapes.find(text_[at_]);
      if (place == kEscapes.npos) fail("Invalid \\escape", at_ - 1);
      out += kMeanings[place];
      ++at_;
      return;
    }
    unsigned code = hex(at_ + 1);
    at_ += 5;
    if ((code & 0xFC00U) == 0xD800U && text_.substr(at_).starts_with("\\u")) {
      const unsigned low = hex(at_ + 2);
      if ((low & 0xFC00U) == 0xDC00U) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at_ += 6;
      }
    }
    append(out, code);
  }

  [[nodiscard]] unsigned hex(std::size_t at) const {
    unsigned code = 0;
    const std::string_view digits = text_.substr(std::min(at, text_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || error != std::errc{} || end != digits.data() + 4) {
      fail("Invalid \\uXXXX escape", at - 1);
    }
    return code;
  }

  /// A character as UTF-8; half of a pair, which has none, as its escape.
  static void append(std::string& out, unsigned code) {
    const auto byte = [&](unsigned bits) { out += static_cast<char>(bits); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | code >> 6), byte(0x80 | (code & 63));
    } else if ((code & 0xF800U) == 0xD800U) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'u', 'd', kHex[code >> 8 & 15], kHex[code >> 4 & 15], kHex[code & 15]};
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63));
    } else {
      byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63));
      byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(members, [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Json parse_json(std::string_view text) { return Parser(text).document(); }

}  // namespace glidepath::detail
