/* SPDX-License-Identifier: Apache-2.0 */
/**
 * glidepath from C99, and from every language that can call C: traces, fits, forecasts, the step at
 * which a target is reached, the best so far, one live run, one round of a scheduler, the plan of
 * its live jobs.
 *
 * - Every function returns a glidepath_status; after one that is not GLIDEPATH_OK,
 *   glidepath_last_error() is its sentence. NULL where something is needed is
 *   GLIDEPATH_INPUT_ERROR, never a crash; no C++ exception comes out.
 * - Handles (glidepath_traces_t and its like) are made by one function and given back to one,
 *   ..._free, which takes NULL. Pointers that a view shows live as long as its handle.
 * - A struct begins with its own size: declare it with GLIDEPATH_INIT, so that a program and a
 *   library of different versions know what the other one has. A field that is 0 or NULL has its
 *   default.
 * - What has kinds (families, verdicts, statuses) is a text, spelled as in Python and C++.
 *   Texts that come out live as long as the process, unless they belong to a handle.
 * - Steps, losses and times are doubles, units and meanings those of the C++ headers, of which each
 *   function names its own. Threads: docs/embed.md.
 */
#ifndef GLIDEPATH_H
#define GLIDEPATH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/** Declares a struct with its size set and all else at its default:
 *  `GLIDEPATH_INIT(glidepath_trace_t, trace);` */
#ifdef __cplusplus
#define GLIDEPATH_INIT(type, name)      \
  type name = [] {                      \
    type glidepath_made = type();       \
    glidepath_made.size = sizeof(type); \
    return glidepath_made;              \
  }()
#else
#define GLIDEPATH_INIT(type, name) type name = {.size = sizeof(type)}
#endif

typedef enum glidepath_status {
  GLIDEPATH_OK = 0,
  GLIDEPATH_INPUT_ERROR = 1, /**< the caller broke what a function needs; nothing was done */
  GLIDEPATH_IO_ERROR = 2,    /**< a file cannot be read or parsed */
  GLIDEPATH_NO_MEMORY = 3,
  GLIDEPATH_INTERNAL_ERROR = 4 /**< a defect of the library */
} glidepath_status;

/** The sentence of the last call of this thread that failed; "" before the first. It lives until
 *  the next such call of the thread. */
const char* glidepath_last_error(void);
/** The version of the library that runs, such as "0.1.0". */
const char* glidepath_version(void);

/* ---- traces: trace.hpp */

/** What a run was started with, as its log has it. */
typedef struct glidepath_settings_t glidepath_settings_t;

/** The observed points of one run. `weight` NULL: each counts once. `lr` NULL: none was logged. */
typedef struct glidepath_trace_t {
  size_t size;
  size_t points;
  const double *step, *loss, *weight, *lr;
  const char* name;      /**< of traces that were read; not used where a trace is taken */
  const char* metric;    /**< NULL where it has no name; a return is no percentage */
  const char* direction; /**< "min" or "max"; NULL = "min" */
  double planned_steps; /**< where the run ends by its own plan; NaN where unknown; not used where a
                             trace is taken */
  /** As glidepath_traces_get shows them, of a trace that was read: they live as long as its handle.
   *  Past runs of alike settings count for more. NULL = none are known. */
  const glidepath_settings_t* settings;
} glidepath_trace_t;

/** The learning rate of a whole run, straight between its steps. */
typedef struct glidepath_schedule_t {
  size_t size;
  size_t points;
  const double *step, *lr;
} glidepath_schedule_t;

typedef struct glidepath_traces_t glidepath_traces_t;
/** read_traces: every run of a log or of a folder of logs. `metric` NULL = what a person would look
 *  at, `format` NULL = by the content of each file. */
glidepath_status glidepath_read_traces(const char* path, const char* metric, const char* format,
                                       glidepath_traces_t** traces);
glidepath_status glidepath_traces_count(const glidepath_traces_t* traces, size_t* count);
glidepath_status glidepath_traces_get(const glidepath_traces_t* traces, size_t index,
                                      glidepath_trace_t* trace);
void glidepath_traces_free(glidepath_traces_t* traces);

/* ---- fit: fit.hpp */

typedef struct glidepath_fit_options_t {
  size_t size;
  const char* family;         /**< "pow3" and so on; NULL = the best by AICc */
  const char* robust;         /**< "huber" or "cauchy"; NULL = least squares */
  const double* lowest_floor; /**< lowest value that the metric can take */
  const double* from_step;    /**< points before it are left out */
} glidepath_fit_options_t;

typedef struct glidepath_fit_t {
  size_t size;
  const char *family, *status;
  int32_t parameter_count;
  int32_t points;
  const char* parameter_names[4];
  double parameters[4], standard_error[4];
  double sigma, rss, aicc, bic, last_step;
} glidepath_fit_t;

/** fit; `options` may be NULL. */
glidepath_status glidepath_fit(const glidepath_trace_t* trace,
                               const glidepath_fit_options_t* options, glidepath_fit_t* fit);
/** evaluate: the loss of the fitted curve at each of `count` steps. */
glidepath_status glidepath_fit_predict(const glidepath_fit_t* fit, const double* steps,
                                       size_t count, double* loss);

/* ---- forecast, reach, best_so_far: forecast.hpp */

/** PastRuns: finished runs of one direction and what was learned from them. */
typedef struct glidepath_past_runs_t glidepath_past_runs_t;
/** `threads` 0 = all cores. The traces may be given back afterwards. */
glidepath_status glidepath_past_runs_learn(const glidepath_traces_t* traces, int32_t threads,
                                           glidepath_past_runs_t** past);
void glidepath_past_runs_free(glidepath_past_runs_t* past);

typedef struct glidepath_forecast_options_t {
  size_t size;
  const glidepath_schedule_t* schedule;
  const glidepath_past_runs_t* past;
  const double* levels; /**< of the quantiles, in (0, 1), increasing; NULL = 0.05, 0.10 ... 0.95 */
  size_t level_count;
  const char* direction;  /**< "max" for an accuracy; NULL = that of the trace */
  const char* reached_by; /**< not of forecast: "curve" or "point"; NULL = by the metric */
} glidepath_forecast_options_t;

typedef struct glidepath_forecast_t glidepath_forecast_t;
typedef struct glidepath_forecast_view_t {
  size_t size;
  const char* status;
  size_t at_count, level_count;
  const double *at, *levels;
  const double* median;          /**< (at_count) */
  const double* quantiles;       /**< of the raw observation: (level_count, at_count), by rows */
  const double* curve_quantiles; /**< of the noise-free curve, in the same way */
} glidepath_forecast_view_t;

/** forecast at `count` steps, increasing and past the last one of the trace. `options` may be NULL.
 */
glidepath_status glidepath_forecast(const glidepath_trace_t* trace, const double* at, size_t count,
                                    const glidepath_forecast_options_t* options,
                                    glidepath_forecast_t** forecast);
glidepath_status glidepath_forecast_get(const glidepath_forecast_t* forecast,
                                        glidepath_forecast_view_t* view);
/** quantile of the raw observation at each step of `at`: writes at_count values. */
glidepath_status glidepath_forecast_quantile(const glidepath_forecast_t* forecast, double p,
                                             double* values);
/** prob_below: P(observation <= target) at each step of `at`. */
glidepath_status glidepath_forecast_prob_below(const glidepath_forecast_t* forecast, double target,
                                               double* probabilities);
void glidepath_forecast_free(glidepath_forecast_t* forecast);

typedef struct glidepath_reach_t glidepath_reach_t;
typedef struct glidepath_reach_view_t {
  size_t size;
  const char* status;
  size_t points;
  const double *step, *cdf; /**< P(reached by step[i]) */
  double prob_never, target, budget;
} glidepath_reach_view_t;

/** reach: the law of the step at which the run has reached `target`, up to the absolute step
 *  `budget`. `options` may be NULL. */
glidepath_status glidepath_reach(const glidepath_trace_t* trace, double target, double budget,
                                 const glidepath_forecast_options_t* options,
                                 glidepath_reach_t** reach);
glidepath_status glidepath_reach_get(const glidepath_reach_t* reach, glidepath_reach_view_t* view);
glidepath_status glidepath_reach_prob_by(const glidepath_reach_t* reach, double step,
                                         double* probability);
/** Infinity where the target is reached with a probability below p. */
glidepath_status glidepath_reach_quantile(const glidepath_reach_t* reach, double p, double* step);
/** `count` equally likely numbers of steps still needed, infinity = never. */
glidepath_status glidepath_reach_remaining_steps(const glidepath_reach_t* reach, int32_t count,
                                                 double* steps);
void glidepath_reach_free(glidepath_reach_t* reach);

typedef struct glidepath_best_so_far_t {
  size_t size;
  const char* status;
  double step, value; /**< where the best level so far was reached; NaN: no value is finite */
  double prob_past;   /**< probability that no later level, up to the budget, is better; or NaN */
  double budget;
} glidepath_best_so_far_t;

/** best_so_far: the best level of a run, and the probability that it stays the best up to the
 *  absolute step `budget`. `options` may be NULL. */
glidepath_status glidepath_best_so_far(const glidepath_trace_t* trace, double budget,
                                       const glidepath_forecast_options_t* options,
                                       glidepath_best_so_far_t* best);

/* ---- one live run: watch.hpp */

typedef struct glidepath_watch_options_t {
  size_t size;
  const double *target, *budget; /**< NULL = none; ten times the steps seen */
  const char* direction;         /**< "max" for an accuracy; NULL = "min" */
  const char* reached_by;        /**< "point" for evaluations; NULL = "curve" */
  double alpha;                  /**< error rate of the verdicts; 0 = 0.02 */
  const glidepath_past_runs_t* past;
  const glidepath_schedule_t* schedule;
} glidepath_watch_options_t;

typedef struct glidepath_watch_t glidepath_watch_t;
typedef struct glidepath_decision_t {
  size_t size;
  const char* verdict; /**< "unknown", "reached", "will_reach", "never" or "diverged" */
  double probability;  /**< of reaching the target within the budget; NaN without a target */
  double steps_to_target[3]; /**< quantiles 0.1, 0.5, 0.9; infinity where it is not reached */
  const char* reason;        /**< lives until the next decision of the watch */
} glidepath_decision_t;

/** What the options point to may be given back afterwards. */
glidepath_status glidepath_watch(const glidepath_watch_options_t* options,
                                 glidepath_watch_t** watch);
/** Watch::add; `lr` NaN = as planned. */
glidepath_status glidepath_watch_add(glidepath_watch_t* watch, double step, double loss, double lr);
glidepath_status glidepath_watch_decision(glidepath_watch_t* watch, glidepath_decision_t* decision);
void glidepath_watch_free(glidepath_watch_t* watch);

/* ---- a round of a scheduler, and its plan of live jobs: plan.hpp */

/** RoundView: option i lets job[i] hold gpus[i] GPUs of tier[i] for value[i]. A column that is NULL
 *  is no limit. */
typedef struct glidepath_round_t {
  size_t size;
  size_t options;
  const int64_t *job, *tier, *gpus;
  const double* value;
  size_t tiers;
  const int64_t* capacity;  /**< GPUs of each tier */
  const int64_t* node_gpus; /**< GPUs per node of each tier */
  const double* watts;      /**< of each option */
  const double* power_cap_w; /**< needs `watts` */
  const int64_t *user, *group; /**< of each option: indices into the quotas */
  const int64_t *user_quota, *group_quota;
  size_t users, groups;
  size_t taken; /**< gangs that stay where they are */
  const int64_t *taken_tier, *taken_gpus;
} glidepath_round_t;

typedef struct glidepath_round_options_t {
  size_t size;
  const double* gap;    /**< search on while (bound - value) / bound is above; NULL = 0.001 */
  const double* prices; /**< of the round before, one per tier; NULL = none */
  const int32_t* threads; /**< 0 = all cores, which pay from some 10 000 jobs; NULL = 1 */
} glidepath_round_options_t;

typedef struct glidepath_round_plan_t glidepath_round_plan_t;
typedef struct glidepath_round_plan_view_t {
  size_t size;
  size_t chosen_count, tiers;
  const int64_t* chosen; /**< indices of options, increasing */
  const double* prices;  /**< value of one more GPU of each tier */
  double value, bound, gap;
} glidepath_round_plan_view_t;

/** solve_round; `options` may be NULL. */
glidepath_status glidepath_solve_round(const glidepath_round_t* round,
                                       const glidepath_round_options_t* options,
                                       glidepath_round_plan_t** plan);
glidepath_status glidepath_round_plan_get(const glidepath_round_plan_t* plan,
                                          glidepath_round_plan_view_t* view);
void glidepath_round_plan_free(glidepath_round_plan_t* plan);

/** Snapshot, in columns. A column that is NULL has its default for each row. */
typedef struct glidepath_snapshot_t {
  size_t size;
  double now_s;
  size_t tiers;
  const int64_t *nodes, *gpus_per_node;
  const double *idle_watts, *busy_watts; /**< of one GPU; for power and energy */
  const double* price_per_gpu_hour;
  size_t jobs;
  const int64_t* job; /**< the id of each; other columns name jobs by it */
  const double *submit_s, *weight;
  const int64_t* priority; /**< a higher class is served strictly first */
  const double *steps_done, *attained_s, *attained_gpu_s;
  const double* restart_s;  /**< cost of a start after a preemption */
  const double* deadline_s; /**< for the objective "deadline" */
  /** (jobs, samples) by rows: equally likely numbers of steps still needed, such as
   *  glidepath_reach_remaining_steps writes; a row that begins with NaN: nothing is known. Needs
   *  `samples`. */
  const double* remaining_steps;
  size_t samples;
  size_t options; /**< ways to run a job */
  const int64_t *option_job, *option_tier, *option_gpus;
  const double* option_steps_per_s;
  size_t running; /**< GPUs that jobs hold now */
  const int64_t *running_job, *running_tier, *running_gpus;
  const double* running_since_s;
} glidepath_snapshot_t;

typedef struct glidepath_plan_options_t {
  size_t size;
  const char* objective;     /**< "jct", "known_size", ...; NULL = "jct" */
  double round_s;            /**< until the next plan; 0 = 360 */
  const double* hysteresis;  /**< share by which a challenger must be worth more; NULL = 0.05 */
  const double* power_cap_w; /**< of all GPUs in use */
  const double* max_wait_s;  /**< after this wait a job is placed before all others */
  double min_run_s;          /**< for which a job that was started is not preempted */
  int32_t in_nodes;          /**< 1: gangs must fit in nodes, 0: they need not */
} glidepath_plan_options_t;

typedef struct glidepath_plan_t glidepath_plan_t;
typedef struct glidepath_plan_view_t {
  size_t size;
  size_t allocations; /**< every job that shall run now, the kept ones included */
  const int64_t *job, *tier, *gpus;
  size_t stop_count;
  const int64_t* stop; /**< jobs to end for good: target reached, or out of reach */
  size_t reason_count;
  const char* const* reasons; /**< why each job waits, runs or ends, in the order of the snapshot */
  double value, bound, gap;
} glidepath_plan_view_t;

/** plan; `options` may be NULL. Jobs have no curves here, so "quality" values none. */
glidepath_status glidepath_plan(const glidepath_snapshot_t* snapshot,
                                const glidepath_plan_options_t* options, glidepath_plan_t** plan);
glidepath_status glidepath_plan_get(const glidepath_plan_t* plan, glidepath_plan_view_t* view);
void glidepath_plan_free(glidepath_plan_t* plan);

/** gittins_index of `count` equally likely values of the remaining service. */
glidepath_status glidepath_gittins_index(const double* samples, size_t count, double* index);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
