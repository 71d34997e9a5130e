/* SPDX-License-Identifier: Apache-2.0 */
/* One forecast with every digit, in C: one_forecast FILE. The programs of this name in C++ and Python
   print the same text, whichever library, compiler or wheel they use. */
#include <glidepath/glidepath.h>

#include <stdio.h>
#include <stdlib.h>

static void check(glidepath_status status) {
  if (status == GLIDEPATH_OK) return;
  fprintf(stderr, "%s\n", glidepath_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  glidepath_traces_t* traces = NULL;
  check(glidepath_read_traces(argv[1], NULL, NULL, &traces));
  GLIDEPATH_INIT(glidepath_trace_t, run);
  check(glidepath_traces_get(traces, 0, &run));
  const double budget = run.step[run.points - 1];
  while (run.step[run.points - 1] > budget / 3) --run.points;

  const double at[2] = {budget / 2, budget};
  double low[2], high[2];
  glidepath_forecast_t* ahead = NULL;
  check(glidepath_forecast(&run, at, 2, NULL, &ahead));
  check(glidepath_forecast_quantile(ahead, 0.1, low));
  check(glidepath_forecast_quantile(ahead, 0.9, high));
  GLIDEPATH_INIT(glidepath_forecast_view_t, view);
  check(glidepath_forecast_get(ahead, &view));
  for (int j = 0; j < 2; ++j) {
    printf("%.17g %.17g %.17g %.17g\n", at[j], low[j], view.median[j], high[j]);
  }
  glidepath_reach_t* reach = NULL;
  double probability = 0;
  check(glidepath_reach(&run, view.median[1], budget, NULL, &reach));
  check(glidepath_reach_prob_by(reach, budget, &probability));
  printf("%.17g\n", probability);
  glidepath_reach_free(reach);
  glidepath_forecast_free(ahead);
  glidepath_traces_free(traces);
  return 0;
}
