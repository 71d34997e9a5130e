// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/names.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "trace/metric_name.hpp"
#include "trace/readers/chinese_words.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kLettersOfName = 200;  // letters of a name that are looked at
constexpr double kFewPoints = 10;  // a metric of fewer gives way to one that has twice as many

// Words of names as `normal` spells them. In them `#` stands for any digits, `+` for at least one,
// `*` for all that follows.
using Words = std::span<const std::string_view>;

constexpr std::string_view kScoreWords[] = {
    "acc#",      "accuracy", "f1",           "auc",
    "auroc",     "auprc",    "bleu#",        "sacrebleu",
    "chrf",      "cider",    "meteor",       "rouge*",
    "precision", "recall",   "ap#",          "map#",
    "iou*",      "miou*",    "dice",         "r2",
    "reward",    "rewards",  "rew",          "return",
    "returns",   "psnr",     "ssim",         "average_precision",
    "hellaswag", "mrr",      "hits",         "ndcg",
    "mcc",       "kappa",    "jaccard",      "aucpr",
    "spearman*", "pearson*", "success_rate", "win_rate",
    "top+",      "top_+",    "prec",         "fscore",
    "fmeasure"};
// One value of these is a whole evaluation, unless the name says that it is of training.
constexpr std::string_view kScores[] = {"wer", "cer", "fid", "fid50k", "kid50k"};
constexpr std::string_view kNoisyNames[] = {"train", "training", "reward", "rewards",
                                            "rew",   "return",   "returns"};
constexpr std::string_view kErrors[] = {"error", "errors", "err", "perplexity", "ppl", "wer", "cer",
                                        "rmse", "mse", "mae", "mape", "nll", "bpb", "bpc",
                                        "bits_per_*", "fid", "fid50k", "kid50k", "xent", "ce",
                                        "crossentropy", "cross_entropy", "cost",
                                        // of boosting: "train-merror"
                                        "merror", "rmsle", "nloglik", "deviance",
                                        // parts of a loss as BasicSR calls them
                                        "l_pix*", "l_g_*"};
// Errors of LightGBM, by its data alone: "valid_0's l2", "training l2", "valid_1 l2".
constexpr std::string_view kErrorsOfData[] = {"l1",       "l2",      "huber", "fair",
                                              "quantile", "poisson", "gamma", "tweedie"};
constexpr std::string_view kValue[] = {"value"};
constexpr std::string_view kOfBatch = "mini_batch_";  // what MATLAB calls its metrics in training
// A metric of which no more is said than that it is of training.
constexpr std::string_view kTrainedNames[] = {"train", "training", "learn"};
constexpr std::string_view kTrainedInShort[] = {"tr", "trn"};
// Words beside a loss by which it is no part of one: a mean, the loss of one batch, where it
// stands.
constexpr std::string_view kOfTheWhole[] = {"",        "avg",     "average", "mean",   "total",
                                            "running", "reduced", "mini",    "batch",  "final",
                                            "epoch",   "metrics", "metric",  "history"};
// What a GAN says of its losses below the same key: "Loss/scores/fake" beside "Loss/G/loss".
constexpr std::string_view kOfLosses[] = {"scores", "signs"};
constexpr int kRankOfTrained = 1000, kRankOfHeldOut = 1001;
constexpr std::string_view kRates[] = {"lr#", "learning_rate"};
// What a log counts or measures beside its metrics: never read unless it is named.
constexpr std::string_view kAsideWords[] = {
    "best",      "percentage", "progress", "eta",        "time",    "seconds", "sec",
    "secs",      "ms",         "fps",      "throughput", "memory",  "mem",     "tokens",
    "samples",   "grad_norm",  "gnorm",    "norm",       "runtime", "elapsed", "remaining",
    "timestamp", "speed",      "usd",      "size",       "scale",   "num",     "std",
    "weight",    "coef",       "coeff",    "lambda"};
constexpr std::string_view kAsideBeginnings[] = {"system_", "config_", "time_", "perf_", "timers_"};
constexpr std::string_view kIndex = "index";  // of pandas, which numbers rows
constexpr std::string_view kMap[] = {"ap", "map"};
constexpr std::string_view kMetrics[] = {"metrics"};
constexpr std::string_view kGoals[] = {"score", "objective", "elbo", "energy"};
// A run of reinforcement learning is known by the return of its episodes: its loss says little.
constexpr std::string_view kEpisodes[] = {"ep_", "episode_", "episodic_", "rollout_"};
// The return by a mean, such as "Mean reward": of these words and of those.
constexpr std::string_view kMeans[] = {"mean", "average", "avg"};
constexpr std::string_view kReturns[] = {"reward", "rewards", "return", "returns",
                                         "rew",    "epret",   "eprew",  "ret"};
// What may stand behind the word of a return: more of it is a part of the return.
constexpr std::string_view kOfReturns[] = {"mean", "average", "avg", "last",   "moving",
                                           "raw",  "total",   "sum", "smooth", "smoothed"};
constexpr std::string_view kNoReturns[] = {"max", "min", "std", "len"};

constexpr std::string_view kTrainingLosses[] = {"loss",
                                                "train_loss",
                                                "training_loss",
                                                "loss_train",
                                                "lm_loss",
                                                "trl",
                                                "avg_loss",
                                                "average_loss",
                                                "mean_loss",
                                                "total_loss",
                                                "loss_total",
                                                "all_loss",
                                                "train_total_loss",
                                                "loss_step",
                                                "train_loss_step",
                                                "train_loss_epoch",
                                                "loss_epoch"};
constexpr std::string_view kHeldOutLosses[] = {"eval_loss", "val_loss", "valid_loss",
                                               "validation_loss", "test_loss"};

bool small_letter(char c) { return c >= 'a' && c <= 'z'; }

/// Length of the word at the front of some text, or npos where another one stands there.
std::size_t word_length(std::string_view text, std::string_view word) {
  const char tail = word.back();
  const bool open = tail == '#' || tail == '+' || tail == '*';
  if (open) word.remove_suffix(1);
  if (!text.starts_with(word)) return text.npos;
  std::size_t end = word.size();
  if (tail == '*') return text.size();
  while (open && end < text.size() && is_digit(text[end])) ++end;
  if (tail == '+' && end == word.size()) return text.npos;
  return end == text.size() || text[end] == '_' ? end : text.npos;
}

/// Calls `found(rest)` at the beginning of each word until it says yes.
template <class Found>
bool any_word(std::string_view key, const Found& found) {
  while (true) {
    if (found(key)) return true;
    const std::size_t end = key.find('_');
    if (end == key.npos) return false;
    key.remove_prefix(end + 1);
  }
}

bool has_word(std::string_view key, Words words) {
  return any_word(key, [&](std::string_view rest) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return word_length(rest, word) != rest.npos; });
  });
}

/// Whether a name is that of an error, as LightGBM's are where their data stand before them.
bool is_error(std::string_view key) {
  if (has_word(key, kErrors)) return true;
  return any_word(key, [](std::string_view rest) {
    if (rest.starts_with("s_")) {
      return among(kErrorsOfData, rest.substr(2, rest.find('_', 2) - 2));
    }
    if (rest.starts_with("training_")) return among(kErrorsOfData, rest.substr(9));
    if (!rest.starts_with("valid_")) return false;
    rest.remove_prefix(6);
    const std::size_t digits = digits_at(rest, 0);
    return among(kErrorsOfData, rest.substr(std::min(digits > 0 ? digits + 1 : 0, rest.size())));
  });
}

bool is_rate_key(std::string_view key) { return key.starts_with("lr") || has_word(key, kRates); }

bool is_aside_key(std::string_view key) {
  return contains(key, "_per_s") || has_word(key, kAsideWords) ||
         std::any_of(std::begin(kAsideBeginnings), std::end(kAsideBeginnings),
                     [&](std::string_view first) { return key.starts_with(first); });
}

/// Whether one of the words stands somewhere, not within another one, and where it ends.
std::size_t after_letters(std::string_view key, Words words) {
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (at > 0 && small_letter(key[at - 1])) continue;
    for (const std::string_view word : words) {
      if (key.substr(at).starts_with(word)) return at + word.size();
    }
  }
  return key.npos;
}

bool is_return(std::string_view key) {
  if (key == "eprewmean" || key == "rew" || key == "average_score") return true;
  if (after_letters(key, kNoReturns) != key.npos) return false;
  const std::size_t after = after_letters(key, kEpisodes);
  if (after == key.npos) return false;
  return contains(key.substr(after), "rew") || contains(key.substr(after), "ret") ||
         contains(key.substr(after), "score");
}

/// Whether a return is a part of one, such as episode_reward_of_speed: other words stand behind it.
bool is_part_of_return(std::string_view key) {
  return any_word(key, [](std::string_view rest) {
    const bool is = std::any_of(std::begin(kReturns), std::end(kReturns),
                                [&](auto word) { return word_length(rest, word) != rest.npos; });
    if (!is || rest.find('_') == rest.npos) return false;
    rest.remove_prefix(rest.find('_') + 1);
    return any_word(rest, [](std::string_view word) {
      word = word.substr(0, word.find('_'));
      return !word.empty() && !among(kOfReturns, word) && !is_digit(word[0]);
    });
  });
}

/// The mean return of episodes, by words that tell no episodes. TRL's rewards are parts of one.
bool is_mean_return(std::string_view key) {
  return !key.starts_with("rewards_") && has_word(key, kMeans) && has_word(key, kReturns) &&
         !contains(key, "loss") && after_letters(key, kNoReturns) == key.npos;
}

/// A return of which no more is said than of which data it is: "Train_Return", "test/reward".
bool is_return_of_data(std::string_view key) {
  bool found = false;
  const bool other = any_word(key, [&](std::string_view rest) {
    const std::string_view word = rest.substr(0, rest.find('_'));
    const bool is = among(kReturns, word);
    found = found || is;
    return !is && !is_data(word);
  });
  return found && !other;
}

/// A loss of data that are not trained on: val_loss, eval_x_loss.
bool is_held_out_loss(std::string_view key) {
  return any_word(key, [](std::string_view rest) {
    return std::any_of(kHeldOutNames.begin(), kHeldOutNames.end(), [&](std::string_view word) {
      if (!rest.starts_with(word) || rest.substr(word.size(), 1) != "_") return false;
      const std::string_view last = rest.substr(word.size() + 1);
      return last.starts_with("loss") || contains(last, "_loss");
    });
  });
}

bool is_map_to_95(std::string_view key) {
  return any_word(key, [](std::string_view rest) {
    if (!rest.starts_with("map")) return false;
    std::size_t end = 3;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    return rest.substr(end).starts_with("_95");
  });
}

/// How early a name comes among those of losses and scores: of a run of reinforcement learning its
/// return, then losses of training, of evaluation, errors, and scores. None where it is of neither.
std::optional<int> rank_of(std::string_view key) {
  int rank = 0;
  const auto is = [&](bool it) { return ++rank, it; };
  const bool episodes = is_return(key);
  const bool mean_return = is_mean_return(key);
  if (is(episodes && !is_part_of_return(key)) || is(mean_return && has_word(key, kHeldOutNames)) ||
      is(mean_return && !episodes) || is(is_return_of_data(key) || key.ends_with("rlhf_reward")) ||
      is(episodes)) {
    return rank;
  }
  for (const std::string_view name : kTrainingLosses) {
    if (is(key == name)) return rank;
  }
  const bool loss = contains(key, "loss");
  const bool train = contains(key, "train") || has_word(key, kTrainedInShort);
  if (is(key.ends_with("_total_loss") && !has_word(key, kHeldOutNames))) return rank;
  if (is(loss && train && contains(key, "total"))) return rank;
  if (is(loss && train)) return rank;
  for (const std::string_view name : kHeldOutLosses) {
    if (is(key == name)) return rank;
  }
  const bool held_out = has_word(key, kHeldOutNames);
  const bool high = has_word(key, kScoreWords);
  if (is(key == "tel") || is(loss && is_held_out_loss(key))) return rank;
  if (is(loss && key.starts_with("total")) || is(key == "batch_loss")) return rank;
  if (is(loss && !has_word(key, kOfLosses)) || is(loss)) return rank;
  if (is(is_error(key)) || is(is_map_to_95(key)) || is(has_word(key, kMap))) return rank;
  if (is(high && (held_out || has_word(key, kMetrics)))) return rank;
  if (is(high)) return rank;
  if (is(has_word(key, kGoals)) || is(key == "metric") || is(key == "value")) return rank;
  return {};
}

/// How early a name that is nothing but that of data comes: behind all others.
std::optional<int> rank_of_data(std::string_view key) {
  if (!is_data(key)) return {};
  return among(kTrainedNames, key) ? kRankOfTrained : kRankOfHeldOut;
}

/// The name that a loss of other data has in training: "main_loss" of "validation/main/loss", and
/// "adam_loss" of "adam/val_loss"; nothing of other names.
std::string in_training(std::string_view key) {
  if (!is_held_out_loss(key)) return {};
  std::string found;
  (void)any_word(key, [&](std::string_view rest) {
    const std::string_view word = rest.substr(0, rest.find('_'));
    if (word.size() == rest.size() || !among(kHeldOutNames, word)) return false;
    found = std::string(key.substr(0, key.size() - rest.size()));
    found += rest.substr(word.size() + 1);
    return true;
  });
  return found;
}

/// Calls `found(word)` for each run of letters until it says yes.
template <class Found>
bool any_letters(std::string_view text, const Found& found) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > at && found(text.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::span<const std::string_view> step_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names{
        "global_step", "step", "current_steps", "num_updates", "update", "updates",
        "total_timesteps", "time_total_timesteps", "misc_total_timesteps", "timesteps",
        "timesteps_sofar", "env_step", "timesteps_total", "num_env_steps_sampled_lifetime",
        "num_env_steps_sampled", "total_env_interacts", "total_steps", "train_step",
        "training_step", "global_steps", "iteration", "iter", "num_timesteps", "kimg",
        "progress_kimg_mean",
        // Under which Hugging Face and Lightning log their step to a tracker whose own counts
        // calls.
        "train_global_step", "trainer_global_step", "_step", "n_iter", "steps", "iterations",
        "iters", "up", "time_iterations", "training_iteration", "nupdates", "samples_count",
        "timestep", "optimizer_step", "optimizer_steps"};
    std::copy_if(kInnerCounters.begin(), kInnerCounters.end(), std::back_inserter(names),
                 [](std::string_view name) { return name != kIndex; });
    names.insert(names.end(), kEpochs.begin(), kEpochs.end());
    names.insert(names.end(),
                 {"episode", "episodes", "num_episodes", "round", "generation", "gen", kIndex});
    return names;
  }();
  return kNames;
}

bool counts_steps(std::string_view key) {
  static const std::unordered_set<std::string_view> kNames(step_names().begin(),
                                                           step_names().end());
  return kNames.contains(key);
}
bool is_within(std::string_view key) { return among(kInnerCounters, key); }
bool is_epoch(std::string_view key) { return among(kEpochs, key); }
bool is_clock(std::string_view key) { return among(kClocks, key); }
bool is_time(std::string_view key) {
  return is_clock(key) || among(kStamps, key) || among(kDates, key);
}
bool is_training_loss(std::string_view key) {
  if (among(kTrainingLosses, key)) return true;
  std::string rest;  // "loss" of "train/train_loss" and of "reduced_train_loss"
  bool train = false;
  (void)any_word(key, [&](std::string_view from) {
    const std::string_view word = from.substr(0, from.find('_'));
    const bool trained = among(kTrainedNames, word) || among(kTrainedInShort, word);
    train = train || trained;
    if (!trained && !among(kOfTheWhole, word)) rest.append(rest.empty() ? "" : "_").append(word);
    return false;
  });
  return train && among(kTrainingLosses, rest);
}
bool is_data(std::string_view key) {
  return among(kTrainedNames, key) || among(kHeldOutNames, key);
}

bool is_held_out(std::string_view text) {
  const std::string word = lower(text);
  return word == "validating" || word == "evaluating" || among(kHeldOutNames, word);
}

std::optional<std::string> held_out_in(std::string_view text) {
  std::optional<std::string> found;
  any_letters(text, [&](std::string_view word) {
    if (is_held_out(word)) found = lower(word);
    return found.has_value();
  });
  return found;
}

bool has_train(std::string_view text) {
  return any_letters(text, [](std::string_view word) {
    const std::string spelled = lower(word);
    return spelled == "train" || spelled == "training";
  });
}

std::string normal(std::string_view name) {
  if (has_chinese(name)) {
    const std::string english = in_english(name);
    if (english != name) return normal(english);
  }
  name = first_characters(stripped(name), kLettersOfName);
  std::string spelled;
  spelled.reserve(name.size() + 4);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool upper = name[i] >= 'A' && name[i] <= 'Z';
    if (upper && i >= 2 && small_letter(name[i - 1]) && small_letter(name[i - 2])) spelled += '_';
    spelled += lower_letter(name[i]);
  }
  for (const auto& [many, one] : {std::pair<std::string_view, std::string_view>{"losses", "loss"},
                                  {"accuracies", "accuracy"}}) {
    for (std::size_t at = spelled.find(many); at != spelled.npos;
         at = spelled.find(many, at + one.size())) {
      spelled.replace(at, many.size(), one);
    }
  }
  std::size_t to = 0;
  bool other = false;
  for (const char c : spelled) {
    const bool plain = small_letter(c) || is_digit(c) || c == '_';
    if (plain || !other) spelled[to++] = plain ? c : '_';
    other = !plain;
  }
  spelled.resize(to);
  return spelled;
}

bool is_rate(std::string_view name) { return is_rate_key(normal(name)); }

bool is_aside(std::string_view name) {
  const std::string key = normal(name);
  return is_aside_key(key) || is_rate_key(key) || counts_steps(key);
}

bool is_metric(std::string_view name) {
  const std::string key = normal(name);
  return rank_of(key).has_value() && !is_rate_key(key) && !is_aside_key(key);
}

std::optional<std::string> best_name(const Points& points) {
  std::unordered_set<std::string> seen;
  std::optional<std::string> alone;
  std::vector<std::pair<int, const std::pair<std::string, double>*>> ranked;
  double most = 0;
  for (const auto& point : points) {
    std::string key = normal(point.first);
    if (is_rate_key(key) || is_aside_key(key) || counts_steps(key)) continue;
    std::optional<int> rank = rank_of(key);
    if (!rank) rank = rank_of_data(key);
    if (!seen.insert(std::move(key)).second) continue;
    if (seen.size() == 1) alone = point.first;
    if (!rank) continue;
    ranked.emplace_back(*rank, &point);
    most = std::max(most, point.second);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const double fewest = std::min(kFewPoints, most / 2);
  const auto enough = [&](const auto& each) { return each.second->second >= fewest; };
  const auto best = std::find_if(ranked.begin(), ranked.end(), enough);
  if (best != ranked.end()) {
    const std::string key = in_training(normal(best->second->first));
    const auto trained = std::find_if(ranked.begin(), ranked.end(), [&](const auto& each) {
      const std::string name = normal(each.second->first);
      return enough(each) && (name == key || name == std::string(kOfBatch) + key);
    });
    return (trained != ranked.end() ? trained : best)->second->first;
  }
  if (seen.size() != 1) return {};
  return alone;
}

std::optional<Direction> direction_by_name(std::string_view name) {
  const std::string key = normal(name);
  if (contains(key, "loss") || is_error(key) || has_word(key, kValue)) {
    return Direction::min;
  }
  if (has_word(key, kScoreWords) || is_return(key) || is_mean_return(key)) return Direction::max;
  return {};
}

bool is_return_by_name(std::string_view name) {
  const std::string key = normal(name);
  return (has_word(key, kReturns) || is_return(key)) && !contains(key, "accurac");
}

std::string_view reached_by_name(std::string_view name) {
  const std::string key = normal(name);
  if (has_word(key, kHeldOutNames)) return "point";
  if (has_word(key, kNoisyNames)) return "curve";
  return has_word(key, kScores) || direction_by_name(name) == Direction::max ? "point" : "curve";
}

}  // namespace glidepath::detail
