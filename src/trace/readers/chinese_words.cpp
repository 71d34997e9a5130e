// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/chinese_words.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using ChineseWord = std::pair<std::string_view, std::string_view>;

// Of words that begin alike the longer one stands first.
constexpr ChineseWord kChineseWords[] = {
    {"训练集", "train"},    {"训练", "train"},      {"訓練", "train"},
    {"验证集", "val"},      {"验证", "val"},        {"驗證", "val"},
    {"测试集", "test"},     {"测试", "test"},       {"測試", "test"},
    {"损失值", "loss"},     {"损失函数", "loss"},   {"损失", "loss"},
    {"損失", "loss"},       {"准确率", "accuracy"}, {"准确度", "accuracy"},
    {"準確率", "accuracy"}, {"正确率", "accuracy"}, {"精确率", "precision"},
    {"召回率", "recall"},   {"误差", "error"},      {"困惑度", "perplexity"},
    {"奖励", "reward"},     {"学习率", "lr"},       {"學習率", "lr"},
    {"平均", "avg"},        {"最佳", "best"},       {"最优", "best"},
    {"总", "total"},        {"轮次", "epoch"},      {"轮数", "num epochs"},
    {"步骤", "step"},       {"步数", "step"},       {"迭代次数", "iteration"},
    {"回合", "episode"},    {"批次", "batch"},      {"时间", "time"},
    {"耗时", "time"},       {"用时", "time"}};
// What counts in "第3轮" and "第 3/20 轮".
constexpr std::string_view kChineseOrdinal = "第";
constexpr ChineseWord kChineseCounters[] = {{"轮", "epoch"},         {"步", "step"},
                                            {"次迭代", "iteration"}, {"回合", "episode"},
                                            {"个epoch", "epoch"},    {"批", "batch"}};

/// The word that begins some text; nothing where none does.
template <std::size_t Count>
const ChineseWord* word_in(const ChineseWord (&words)[Count], std::string_view text) {
  const ChineseWord* const found = std::ranges::find_if(
      words, [&](const ChineseWord& word) { return text.starts_with(word.first); });
  return found == std::end(words) ? nullptr : found;
}

bool is_of_a_word(char c) { return (c & 0x80) != 0 || is_letter(c) || is_digit(c); }

}  // namespace

bool has_chinese(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xE4 && byte <= 0xE9;
  });
}

std::string in_english(std::string_view text) {
  std::string out;
  const auto put = [&](std::string_view word) {
    if (!out.empty() && is_of_a_word(out.back())) out += ' ';
    out += word;
  };
  while (!text.empty()) {
    if (text.starts_with(kChineseOrdinal)) {
      const std::size_t end = text.find_first_not_of(" 0123456789/", kChineseOrdinal.size());
      const std::string_view number = stripped(
          text.substr(kChineseOrdinal.size(), std::min(end, text.size()) - kChineseOrdinal.size()));
      const ChineseWord* const counted = end == text.npos || number.empty()
                                             ? nullptr
                                             : word_in(kChineseCounters, text.substr(end));
      if (counted != nullptr) {
        put(counted->second);
        out.append(" ").append(number);
        text.remove_prefix(end + counted->first.size());
        continue;
      }
    }
    if (const ChineseWord* const word = word_in(kChineseWords, text)) {
      put(word->second);
      text.remove_prefix(word->first.size());
      if (!text.empty() && is_of_a_word(text.front())) out += ' ';
      continue;
    }
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace glidepath::detail
