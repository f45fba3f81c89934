/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - runs of the store as a page, as text and as JSON.
 *
 * Reads records (store/record.h) and nothing else: what was not stored is not shown. Modelled times
 * are always marked. Everything that came from a model or a task is escaped: markup in the page,
 * control characters everywhere, bytes that are not UTF-8.
 *
 *     store_run_history(s, id, a, &h[0], err)       for each run
 *     report_write(h, n, path, err)
 *     run_history_release(&h[0])
 *
 * The page is one file without outside resources. One run: that run. Several
 * of one task: the first in full, all trajectories overlaid. Several tasks: a
 * suite, one row per run.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/buf.h"
#include "base/error.h"
#include "store/record.h"

bool report_write(const struct run_history *runs, size_t count, const char *path,
                  struct error *err);
void report_html(const struct run_history *runs, size_t count, struct buf *out);

/* A suite: histories[i] is the run of tasks[i]; all zero if it has no run. */
struct suite_view {
    const struct suite_record *suite;
    const struct run_history *histories;
};
bool report_suite_write(const struct suite_view *v, const char *path, struct error *err);
void report_suite_text(const struct suite_view *v, int columns, struct buf *out);
/* One line per task after a line of names (docs/commands.md). */
void report_suite_csv(const struct suite_view *v, struct buf *out);
/* The results table: one line per baseline, kernel class and accuracy class. */
void report_field_csv(const struct suite_view *v, struct buf *out);
/* {"suite", "source", "tasks": [...], "sums": {...}} (docs/commands.md). New reference. */
json_t *report_suite_json(const struct suite_view *v);

/* The live page (live.c): the page that asks for pieces, and the pieces. */
struct live_suite {
    const char *name;
    size_t count, ended, running; /* tasks */
};
struct live_queue {
    int64_t runs;                          /* in the store */
    int64_t waiting, leased, done, failed; /* jobs */
    int64_t done_hour, failed_hour;
    size_t workers, busy;
};
void report_live_shell(const char *nonce, struct buf *out);
/* The newest runs. */
void report_live_overview(const struct live_queue *queue, const struct run_info *runs, size_t count,
                          const struct live_suite *suites, size_t suite_count, struct buf *out);
void report_live_run(const struct run_history *h, struct buf *out);
void report_live_suite(const struct suite_view *v, struct buf *out);

/* `cutegen show RUN` and `cutegen runs`, without colour. Tables leave out columns that do not fit;
 * columns 0: no limit. The caller wraps all other lines. */
void report_text(const struct run_history *h, int columns, struct buf *out);
void report_runs_text(const struct run_info *runs, size_t count, int columns, struct buf *out);

/*
 * New references. Times are in microseconds, dates in Unix milliseconds; what is not known is
 * null.
 *
 * report_runs_json: a list of
 *   {"run", "task", "model", "device", "suite", "owner",
 *    "state": "running|killed|done|stopped|failed", "reason", "started_ms", "ended_ms",
 *    "attempts", "calls", "best_attempt", "best_depth", "first_us",
 *    "best_us", "eager_us", "modelled", "tokens", "cost_usd"}
 * report_run_json: the same object, in which
 *   "attempts" is a list of {"attempt", "depth", "repair", "stage", "parent", "change",
 *     "started_ms", "ended_ms", "kept", "step", "verdict", "summary", "detail", "advice",
 *     "findings": [{"kind", "where", "line", "text"}], "build_ms", "cached", "test_ms", "seed",
 *     "deterministic", "accuracy": {"max_abs", "max_rel", "rms_rel", "reference_max_abs", ...},
 *     "time_us", "warm_us", "spread", "floor_us", "bound", "trivial", "machine",
 *     "modelled", "baselines": {NAME: us}},
 *   "calls" is a list of {"stage", "attempt", "at_ms", "model", "finish_reason", "prompt_tokens",
 *     "cached_tokens", "output_tokens", "cost_usd", "latency_ms", "retries", "prompt_hash"},
 *   "parts" is null or {"attempt", "times": "modelled|profiler|null", "list": [{"part", "recipe",
 *     "operators", "reads", "makes", "after": [PART], "bytes", "kernels", "time_us", "share",
 *     "first_us"}], "other_kernels", "other_us", "between_us"}; an attempt with times by part has
 *     "parts_us", one per part;
 *   and "task_path", "class", "scaled", "options", "environment" are added.
 */
json_t *report_runs_json(const struct run_info *runs, size_t count);
json_t *report_run_json(const struct run_history *h);

#endif
