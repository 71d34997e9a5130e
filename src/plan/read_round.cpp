// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/power.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

constexpr double kLargestValue = 1e15;
constexpr double kLargestWatts = 1e9;  // milliwatts of 2^22 jobs stay below 2^62
constexpr std::int64_t kLargestGang = 0x7fffffff;
constexpr std::int64_t kLargestNode = 1 << 20;

void check_index(std::span<const std::int64_t> column, std::size_t n, std::size_t limit,
                 const char* what) {
  if (column.empty()) return;
  if (column.size() != n) {
    refuse("solve_round: ", what, " has ", column.size(), " entries, expected ", n,
           ", one for each option");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (column[i] < 0 || column[i] >= static_cast<std::int64_t>(limit)) {
      refuse("solve_round: option ", i, " names ", what, " ", column[i],
             expected_place(what, limit));
    }
  }
}

void check_counts(std::span<const std::int64_t> column, const char* what) {
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (column[i] >= 0) continue;
    refuse("solve_round: ", what, " ", i, " is ", column[i], ", expected 0 or more");
  }
}

/// A limit means nothing without the column that it is of.
void check_limits(const RoundView& view) {
  struct Limit {
    const char *name, *column;
    bool is_set, has_column;
  };
  const Limit limits[] = {
      {"user_quota", "user", !view.user_quota.empty(), !view.user.empty()},
      {"group_quota", "group", !view.group_quota.empty(), !view.group.empty()},
      {"power_cap_w", "watts", std::isfinite(view.power_cap_w), !view.watts.empty()},
  };
  for (const Limit& limit : limits) {
    if (limit.is_set && !limit.has_column && !view.job.empty()) {
      refuse("solve_round: ", limit.name, " without ", limit.column);
    }
  }
}

void check(const RoundView& view) {
  const std::size_t n = view.job.size();
  if (view.tier.size() != n || view.gpus.size() != n || view.value.size() != n) {
    refuse("solve_round: columns of different length: job ", n, ", tier ", view.tier.size(),
           ", gpus ", view.gpus.size(), ", value ", view.value.size());
  }
  if (n > 0x7fffffff) refuse("solve_round: ", n, " options, expected at most 2147483647");
  for (std::size_t t = 0; t < view.capacity.size(); ++t) {
    if (view.capacity[t] < 0) {
      refuse("solve_round: the capacity of tier ", t, " is ", view.capacity[t],
             ", expected 0 or more");
    }
  }
  const auto tiers = static_cast<std::int64_t>(view.capacity.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (view.tier[i] < 0 || view.tier[i] >= tiers) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " names tier ", view.tier[i],
             expected_place("tier", view.capacity.size()));
    }
    if (view.gpus[i] < 1) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " asks ", view.gpus[i],
             " GPUs, expected at least 1");
    }
    if (view.gpus[i] > kLargestGang) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " asks ", view.gpus[i],
             " GPUs, expected at most ", kLargestGang);
    }
    if (!(view.value[i] >= 0 && view.value[i] <= kLargestValue)) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " has value ", view.value[i],
             ", expected 0 to 1e15");
    }
  }
  check_limits(view);
  check_index(view.user, n, view.user_quota.size(), "user");
  check_index(view.group, n, view.group_quota.size(), "group");
  check_counts(view.user_quota, "user_quota");
  check_counts(view.group_quota, "group_quota");
  check_counts(view.node_gpus, "node_gpus");
  for (const std::int64_t gpus : view.node_gpus) {
    if (gpus > kLargestNode) {
      refuse("solve_round: a node of ", gpus, " GPUs, expected at most ", kLargestNode);
    }
  }
  if (!view.node_gpus.empty() && view.node_gpus.size() != view.capacity.size()) {
    refuse("solve_round: node_gpus has ", view.node_gpus.size(), " entries, expected ", tiers,
           ", one for each tier");
  }
  if (view.taken_tier.size() != view.taken_gpus.size()) {
    refuse("solve_round: taken_tier has ", view.taken_tier.size(), " entries, expected ",
           view.taken_gpus.size(), ", one for each of taken_gpus");
  }
  for (std::size_t i = 0; i < view.taken_tier.size(); ++i) {
    if (view.taken_tier[i] < 0 || view.taken_tier[i] >= tiers || view.taken_gpus[i] < 1) {
      refuse("solve_round: placed gang ", i, " has ", view.taken_gpus[i], " GPUs of tier ",
             view.taken_tier[i], ", expected at least 1 of tiers 0 to ", tiers - 1);
    }
  }
  if (!view.watts.empty() && view.watts.size() != n) {
    refuse("solve_round: watts has ", view.watts.size(), " entries, expected ", n,
           ", one for each option");
  }
  if (!(view.power_cap_w >= 0)) {
    refuse("solve_round: power_cap_w is ", view.power_cap_w, ", expected 0 or more");
  }
  for (std::size_t i = 0; i < view.watts.size(); ++i) {
    if (!(view.watts[i] >= 0 && view.watts[i] <= kLargestWatts)) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " draws ", view.watts[i],
             " W, expected 0 to ", kLargestWatts);
    }
  }
}

/// Option indices job by job, in order of the job's id; empty when they already are.
std::vector<std::int32_t> grouped(std::span<const std::int64_t> job) {
  if (std::is_sorted(job.begin(), job.end())) return {};
  std::vector<std::int32_t> order(job.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return job[a] < job[b]; });
  return order;
}

bool fits_alone(const RoundView& view, const Round& round, std::size_t o) {
  std::int64_t room = round.capacity[view.tier[o]];
  const auto within = [&](std::span<const std::int64_t> row, std::span<const std::int64_t> quota) {
    if (!row.empty()) room = std::min(room, quota[row[o]]);
  };
  within(view.user, view.user_quota);
  within(view.group, view.group_quota);
  return view.gpus[o] <= room &&
         (view.watts.empty() || view.watts[o] <= most_watts(view.power_cap_w));
}

/// Copies the options that fit an empty cluster, job by job.
void copy_options(const RoundView& view, Round& round) {
  const std::size_t n = view.job.size();
  const std::vector<std::int32_t> order = grouped(view.job);
  const auto at = [&](std::size_t i) { return order.empty() ? i : std::size_t(order[i]); };
  const bool limited = !view.user.empty() || !view.group.empty() || !view.watts.empty();
  round.first.reserve(n / 4 + 2);
  round.option.resize(n);
  round.original.resize(n);
  round.first.push_back(0);
  std::int32_t end = 0;
  const auto close_job = [&] {
    if (end != round.first.back()) round.first.push_back(end);
  };
  std::int64_t before = n > 0 ? view.job[at(0)] : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t o = at(i);
    if (view.job[o] != before) close_job();
    before = view.job[o];
    const bool fits =
        limited ? fits_alone(view, round, o) : view.gpus[o] <= round.capacity[view.tier[o]];
    if (view.value[o] == 0 || !fits) continue;
    round.option[end] = {0, static_cast<std::int32_t>(view.tier[o]),
                         static_cast<std::int32_t>(view.gpus[o])};
    round.original[end] = static_cast<std::int64_t>(o);
    ++end;
  }
  close_job();
  round.option.resize(end);
  round.original.resize(end);
}

/// Bits of a value with which one for each job adds up to less than 2^62.
int bits_of_values(const Round& round) {
  const auto jobs = static_cast<std::uint64_t>(round.jobs());
  return std::min(52, 61 - static_cast<int>(std::bit_width(jobs)));
}

/// Values in the finest quantum 2^e at which one value per job adds up to less than 2^62.
void count_values(const RoundView& view, Round& round) {
  double top = 0;
  for (const std::int64_t o : round.original) {
    top = std::max(top, view.value[o]);
  }
  if (top == 0) return;
  round.quantum = std::ldexp(1.0, std::max(std::ilogb(top) + 1 - bits_of_values(round), -1020));
  const double per_quantum = 1.0 / round.quantum;
  for (std::size_t i = 0; i < round.option.size(); ++i) {
    const double quanta = view.value[round.original[i]] * per_quantum;
    // At least one: what is worth anything is placed where nothing else is.
    round.option[i].value = std::max<std::int64_t>(1, static_cast<std::int64_t>(quanta));
    round.exact = round.exact && static_cast<double>(round.option[i].value) == quanta;
  }
}

/// Units in which power is counted, in a watt: milliwatts where all draws are whole ones. Else they
/// are at most 1e-8 of the largest draw, and no smaller than leaves prices ten bits of their own,
/// or twenty with few jobs: the bound is as tight as prices are fine. Draws are rounded down, so
/// that no set within the cap is refused; one of k jobs may pass it by k units.
double units_per_watt(const RoundView& view, const Round& round) {
  constexpr double kMilliwattsPerWatt = 1e3;
  constexpr int kBitsOfPrices = 10, kBitsOfDraws = 32;
  double top = 0;
  bool whole = true;
  for (const std::int64_t o : round.original) {
    const double milliwatts = view.watts[o] * kMilliwattsPerWatt;
    top = std::max(top, view.watts[o]);
    const double part = std::abs(milliwatts - std::round(milliwatts));
    whole = whole && part <= milliwatts * kPowerTolerance / 4;
  }
  if (whole) return kMilliwattsPerWatt;
  const int bits = std::min(kBitsOfDraws, bits_of_values(round) - kBitsOfPrices);
  return std::max(kMilliwattsPerWatt, std::ldexp(1.0, std::min(bits - std::ilogb(top) - 1, 1000)));
}

/// Rows of power, groups and users, where they are limited at all.
void add_limits(const RoundView& view, Round& round) {
  const bool power = !view.watts.empty() && std::isfinite(view.power_cap_w);
  round.first_user = round.tiers;
  if (!power && view.user.empty() && view.group.empty()) return;
  const auto row = [&](std::span<const std::int64_t> quota) {
    const auto start = static_cast<std::int32_t>(round.capacity.size());
    round.capacity.insert(round.capacity.end(), quota.begin(), quota.end());
    return start;
  };
  const auto power_row = static_cast<std::int32_t>(round.capacity.size());
  const double per_watt = power ? units_per_watt(view, round) : 0;
  if (power) {
    round.capacity.push_back(
        static_cast<std::int64_t>(std::min(most_watts(view.power_cap_w) * per_watt, 4e18)));
  }
  const std::int32_t groups = row(view.group_quota);
  round.first_user = row(view.user_quota);
  round.limits.resize(round.option.size());
  for (std::int32_t j = 0; j < round.jobs() && !view.user.empty(); ++j) {
    const std::size_t first = round.first[j];
    const std::size_t end = round.first[j + 1];
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t o = round.original[i];
      const std::size_t other = round.original[first];
      if (view.user[o] != view.user[other]) {
        refuse("solve_round: job ", view.job[o], " belongs to the users ", view.user[other],
               " and ", view.user[o]);
      }
    }
  }
  for (std::size_t i = 0; i < round.option.size(); ++i) {
    const std::size_t o = round.original[i];
    Limits& limits = round.limits[i];
    if (power) {
      limits.power = power_row;
      // Half the tolerance for draws that miss a whole number by rounding, half for their sum.
      const double units = view.watts[o] * per_watt * (1 + kPowerTolerance / 2);
      // One that draws all of the cap takes all.
      limits.draw = std::min(static_cast<std::int64_t>(units), round.capacity[power_row]);
    }
    if (!view.group.empty()) limits.group = groups + static_cast<std::int32_t>(view.group[o]);
    if (!view.user.empty()) {
      limits.user = round.first_user + static_cast<std::int32_t>(view.user[o]);
    }
  }
}

/// Closes the tiers whose gangs that stay are not found to fit in the nodes, so that they do not
/// cost the others theirs. Where it is certain that none fits beside them, no GPU is left either.
void close_overfull(const RoundView& view, Round& round) {
  round.closed.assign(round.tiers, false);
  for (std::size_t t = 0; t < view.node_gpus.size(); ++t) {
    if (view.node_gpus[t] < 2 || round.taken[t].empty()) continue;
    const Fit fit = gangs_fit(round.taken[t], round.nodes[t], view.node_gpus[t]);
    round.closed[t] = fit == Fit::unknown;
    if (fit == Fit::no) round.capacity[t] = 0;
  }
}

/// Marks the tiers whose gangs might not pack although they fit in number: those where the parts
/// of a node that gangs take do not divide one another and the node.
void find_unpackable(const RoundView& view, Round& round) {
  round.node.assign(round.tiers, 0);
  if (view.node_gpus.empty()) return;
  constexpr std::int64_t kSmallParts = 64;
  std::vector<std::vector<std::int64_t>> parts(view.node_gpus.size());
  std::vector<std::uint64_t> small(view.node_gpus.size(), 0);  // a bit for each part that is there
  const auto add = [&](std::size_t tier, std::int64_t gpus) {
    const std::int64_t node = view.node_gpus[tier];
    if (node < 2) return;
    const std::int64_t part = gpus < node ? gpus : gpus % node;
    if (part < kSmallParts) {
      small[tier] |= std::uint64_t{1} << part;
    } else if (parts[tier].empty() || part != parts[tier].back()) {
      parts[tier].push_back(part);
    }
  };
  for (const Choice& o : round.option) add(o.tier, o.gpus);
  for (std::size_t t = 0; t < parts.size(); ++t) {
    const std::int64_t node = view.node_gpus[t];
    if (node < 2) continue;
    for (const std::int64_t gpus : round.taken[t]) add(t, gpus);
    for (std::int64_t part = 1; part < kSmallParts; ++part) {
      if ((small[t] >> part & 1) != 0) parts[t].push_back(part);
    }
    parts[t].push_back(node);
    std::sort(parts[t].begin(), parts[t].end());
    for (std::size_t i = 1; i < parts[t].size(); ++i) {
      if (parts[t][i] % parts[t][i - 1] != 0) round.node[t] = node, round.packs = false;
    }
  }
}

}  // namespace

void read_round(const RoundView& view, Round& round) {
  check(view);
  round.first.clear(), round.option.clear(), round.limits.clear(), round.original.clear();
  round.quantum = 1;
  round.exact = round.packs = true;
  round.tiers = static_cast<std::int32_t>(view.capacity.size());
  round.capacity.assign(view.capacity.begin(), view.capacity.end());
  round.nodes.assign(view.node_gpus.size(), 0);
  for (std::size_t t = 0; t < view.node_gpus.size(); ++t) {  // no gang reaches half a node
    if (view.node_gpus[t] < 2) continue;
    round.capacity[t] -= round.capacity[t] % view.node_gpus[t];
    round.nodes[t] = round.capacity[t] / view.node_gpus[t];
  }
  round.taken.resize(view.capacity.size());
  for (std::vector<std::int64_t>& gangs : round.taken) gangs.clear();
  for (std::size_t i = 0; i < view.taken_gpus.size(); ++i) {
    const std::size_t t = view.taken_tier[i];
    round.capacity[t] -= std::min(view.taken_gpus[i], round.capacity[t]);
    round.taken[t].push_back(view.taken_gpus[i]);
  }
  close_overfull(view, round);
  copy_options(view, round);
  count_values(view, round);
  add_limits(view, round);
  find_unpackable(view, round);
}

}  // namespace glidepath::detail
