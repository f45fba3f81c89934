/*
 * sample.h - a store filled as real runs fill it, for tests and for looking at the page.
 *
 * Four runs: a matrix product on a GPU by a paid model (repairs, a failed
 * depth, a profile, cost), the same by another model, a pointwise task on
 * simt by the built-in engineer (all modelled), and one that found nothing.
 * Every figure is invented.
 */
#ifndef TESTS_REPORT_SAMPLE_H
#define TESTS_REPORT_SAMPLE_H

#include "store/store.h"

enum { SAMPLE_GEMM, SAMPLE_GEMM_2, SAMPLE_SWISH, SAMPLE_NONE, SAMPLE_COUNT };

/* Ids come back in the arena. */
bool sample_fill(const char *runs_dir, struct arena *a, const char *ids[SAMPLE_COUNT],
                 struct error *err);

#endif
