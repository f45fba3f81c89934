/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.h - figures derived from a run's records: the best kernel, what it is compared with, sums.
 *
 * One place for every derived figure, so that page, text and JSON never
 * disagree. Unknown figures are 0 or NULL and are shown as a dash.
 */
#ifndef REPORT_FACTS_H
#define REPORT_FACTS_H

#include "store/record.h"

struct stage_sum {
    int calls, retries;
    int64_t prompt_tokens, cached_tokens, output_tokens, ms;
    double cost_usd;
    bool cost_known;
};

struct facts {
    const struct run_history *h;
    const struct attempt_record *best, *first; /* of those that passed; NULL: none */
    bool modelled;
    double best_us, first_us;
    const char *reference;      /* "PyTorch eager", "the first correct kernel" */
    double reference_us;        /* the time that speed-ups refer to; 0: none */
    double speedup;             /* 0: unknown */
    const char *setting;        /* of PyTorch's arithmetic: "defaults", "strict", "tf32" */
    const char *accuracy_class; /* of the best: "fp32", "TF32-class", "16-bit"; "": not known */
    double compile_us;          /* torch.compile, the faster of its modes; 0: not timed */
    const char *trivial;        /* a sentence: why there is no speed-up; "": there is one */
    double roofline;            /* fraction of the floor reached; 0: unknown */
    int depth_max;              /* -1: no attempt */
    int passed, failed, open;   /* attempts */
    int profile_from;           /* the first depth with a profile; -1: none */
    struct stage_sum stages[STAGE_KIND_COUNT], all;
    int64_t wall_ms, model_ms, build_ms, test_ms, measure_ms;
};

struct facts facts_of(const struct run_history *h);

bool attempt_passed(const struct attempt_record *r);
const struct attempt_record *attempt_find(const struct run_history *h, int number); /* or NULL */
double attempt_us(const struct attempt_record *r);                                  /* 0: none */
/* The kernel with a time that it was made from, through repairs; NULL: none. */
const struct attempt_record *attempt_base(const struct run_history *h,
                                          const struct attempt_record *r);
const char *state_text(const struct run_info *r); /* "killed": running, but without a process */

/* "3.91 us", "0.611 ms"; `micro` is how the letter is written. */
const char *us_text(double us, const char *micro, struct arena *a);
const char *ratio_text(double ratio, struct arena *a);                /* "4.42" */
const char *ms_text(int64_t ms, struct arena *a);                     /* "0.4 s", "12 min 3 s" */
const char *error_text(double v, struct arena *a);                    /* "2.1e-7" */
const char *count_text(int64_t n, struct arena *a);                   /* "12 345" */
const char *money_text(double usd, struct arena *a);                  /* "$0.034" */
const char *shape_text(const struct tensor_info *t, struct arena *a); /* "(16, 128) f32" */

#endif
