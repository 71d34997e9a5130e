/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler written in C: forecast a run, watch it, share the GPUs. Usage: from_c [FILE] */
#include "glidepath/glidepath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(glidepath_status status) {
  if (status == GLIDEPATH_OK) return;
  fprintf(stderr, "%s\n", glidepath_last_error());
  exit(1);
}

static void forecast_and_reach(const glidepath_trace_t* seen, double budget, double* target) {
  const double at[2] = {budget / 2, budget};
  glidepath_forecast_t* forecast = NULL;
  check(glidepath_forecast(seen, at, 2, NULL, &forecast));
  double low[2], high[2];
  check(glidepath_forecast_quantile(forecast, 0.05, low));
  check(glidepath_forecast_quantile(forecast, 0.95, high));
  GLIDEPATH_INIT(glidepath_forecast_view_t, view);
  check(glidepath_forecast_get(forecast, &view));
  for (size_t j = 0; j < view.at_count; ++j) {
    printf("step %6.0f: %.4f, 90%% inside [%.4f, %.4f]\n", view.at[j], view.median[j], low[j],
           high[j]);
  }
  *target = view.median[1];
  glidepath_forecast_free(forecast);

  glidepath_reach_t* reach = NULL;
  double probability = 0;
  check(glidepath_reach(seen, *target, budget, NULL, &reach));
  check(glidepath_reach_prob_by(reach, budget, &probability));
  printf("loss %.4f by step %.0f: probability %.2f\n", *target, budget, probability);
  glidepath_reach_free(reach);
}

static void watch(const glidepath_trace_t* seen, double target, double budget) {
  GLIDEPATH_INIT(glidepath_watch_options_t, options);
  options.target = &target;
  options.budget = &budget;
  glidepath_watch_t* live = NULL;
  check(glidepath_watch(&options, &live));
  for (size_t i = 0; i < seen->points; ++i) {
    check(glidepath_watch_add(live, seen->step[i], seen->loss[i], NAN));
  }
  GLIDEPATH_INIT(glidepath_decision_t, decision);
  check(glidepath_watch_decision(live, &decision));
  printf("verdict %s: %s\n", decision.verdict, decision.reason);
  glidepath_watch_free(live);
}

/* Two tiers of 8 and 4 GPUs; the value says what a round of each option is worth. */
static void share_the_gpus(void) {
  const int64_t job[] = {0, 0, 1, 2, 2, 3, 3}, tier[] = {0, 1, 0, 0, 1, 0, 1};
  const int64_t gpus[] = {4, 4, 8, 2, 2, 4, 2}, capacity[] = {8, 4};
  const double value[] = {4.0, 7.0, 8.0, 2.5, 3.0, 4.5, 3.5};
  GLIDEPATH_INIT(glidepath_round_t, round);
  round.options = 7;
  round.job = job;
  round.tier = tier;
  round.gpus = gpus;
  round.value = value;
  round.tiers = 2;
  round.capacity = capacity;
  glidepath_round_plan_t* plan = NULL;
  check(glidepath_solve_round(&round, NULL, &plan));
  GLIDEPATH_INIT(glidepath_round_plan_view_t, view);
  check(glidepath_round_plan_get(plan, &view));
  for (size_t i = 0; i < view.chosen_count; ++i) {
    const int64_t chosen = view.chosen[i];
    printf("job %d: %d GPUs of tier %d\n", (int)job[chosen], (int)gpus[chosen], (int)tier[chosen]);
  }
  printf("value %.2f, no plan is worth more than %.2f\n", view.value, view.bound);
  glidepath_round_plan_free(plan);
}

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  glidepath_traces_t* traces = NULL;
  check(glidepath_read_traces(file, NULL, NULL, &traces));
  GLIDEPATH_INIT(glidepath_trace_t, run);
  check(glidepath_traces_get(traces, 0, &run));

  GLIDEPATH_INIT(glidepath_fit_t, fit);
  check(glidepath_fit(&run, NULL, &fit));
  printf("%s %s: best fit %s, %s\n", run.name, run.metric, fit.family, fit.status);

  /* Only the first third is known. */
  const double budget = run.step[run.points - 1];
  glidepath_trace_t seen = run;
  while (seen.points > 0 && seen.step[seen.points - 1] > budget / 3) --seen.points;
  double target = 0;
  forecast_and_reach(&seen, budget, &target);
  watch(&seen, target, budget);
  share_the_gpus();
  glidepath_traces_free(traces);
  return 0;
}
