// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/table_fields.hpp"

#include "common/csv.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kLongestField = 131072;

}  // namespace

NextLine lines_of(LineReader& lines) {
  return [&lines]() -> std::optional<std::string_view> {
    if (!lines.next()) return {};
    return lines.line();
  };
}

NextLine lines_of(std::string_view& text) {
  return [&text, ended = false]() mutable -> std::optional<std::string_view> {
    if (ended) return {};
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ended = end == text.npos;
    text.remove_prefix(ended ? text.size() : end + 1);
    return line;
  };
}

// ---- what every character passes, inlined

inline std::optional<std::string_view> Splitter::next_line() {
  std::optional<std::string_view> line = next_();
  lines_ += line.has_value();
  return line;
}

inline void Splitter::save(Fields& fields) {
  fields.push_back(std::move(field_));
  field_.clear();
}

inline void Splitter::add(char c) {
  if (field_.size() >= kLongestField) {
    throw NoRow{sentence("field larger than field limit (", kLongestField, ")")};
  }
  field_ += c;
}

inline void Splitter::step(char c, Fields& fields) {
  const bool end = c == '\r' || c == '\n';
  if (state_ == State::start_row)
    state_ = end ? State::line_end : State::start_field;
  else if (state_ == State::line_end && !end) {
    throw NoRow{"new-line character seen in unquoted field"};
  }
  if (state_ == State::line_end) return;
  if (state_ == State::quoted) {
    if (c == '"')
      state_ = State::quote_in_quoted;
    else
      add(c);
  } else if (c == '"' && state_ == State::start_field) {
    state_ = State::quoted;
  } else if (c == '"' && state_ == State::quote_in_quoted) {
    add(c);
    state_ = State::quoted;
  } else if (c == mark_ || end) {
    save(fields);
    state_ = end ? State::line_end : State::start_field;
  } else {
    add(c);
    state_ = State::plain;
  }
}

inline void Splitter::split(std::string_view line, Fields& fields) {
  for (const char c : line) step(c, fields);
  if (state_ == State::start_row || state_ == State::quoted) return;
  if (state_ != State::line_end) save(fields);
  state_ = State::start_row;
}

bool Splitter::row(Fields& fields) {
  fields.clear();
  if (mark_ == kBlanks) {
    const std::optional<std::string_view> line = next_line();
    if (line) {
      for (const std::string_view word : words_of(*line)) fields.emplace_back(word);
    }
    return line.has_value();
  }
  state_ = State::start_row;
  field_.clear();
  do {
    const std::optional<std::string_view> line = next_line();
    if (!line) {
      if (state_ == State::start_row) return false;
      save(fields);  // a quote is open at the end of the file
      return true;
    }
    split(*line, fields);
  } while (state_ != State::start_row);
  return true;
}

}  // namespace glidepath::detail
