/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the state of a run of the loop; private to src/loop.
 *
 *     run.c -> loop.c -> step.c -> ask.c, judge.c
 *
 * run.c opens and closes a run and reports its events; loop.c decides what to do next; step.c turns
 * one question into a judged candidate, with ask.c and judge.c. accept.c decides which of the
 * correct kernels wins.
 */
#ifndef LOOP_STATE_H
#define LOOP_STATE_H

#include "loop/loop.h"
#include "stage/stage.h"
#include "store/store.h"

#include <pthread.h>

/* One candidate and everything known about it. */
struct settled {
    struct candidate cand;
    struct attempt_outcome outcome; /* points to the three below */
    struct build_result build;
    struct test_result test;
    struct measurement time;
    const struct profile *profile;       /* taken when first needed; NULL: not yet */
    const struct acceptance *acceptance; /* set when it was checked; NULL: not yet */
    struct settled *slower;              /* the next slower correct kernel */
    bool built;                          /* `build` is there already */
};

struct loop {
    const struct settings *settings;
    struct run_options opt;
    struct progress *progress;
    struct arena *a; /* lives as long as the run */
    struct stage *st;
    struct run *run;
    struct task task;
    struct run_history past; /* what a resumed run has already done */
    bool *used;              /* of past.calls: this answer has been reused */
    int attempt;             /* number of the last attempt */
    int depth;               /* the depth in progress */
    int profile_from;        /* depth from which a profile is read at the latest */
    bool profile_early;      /* read profiles earlier if gains stay away */
    bool profiled;           /* profiles are read from now on */
    bool profile_told;       /* the store knows from which depth */
    pthread_mutex_t asking;  /* held by asking threads while they write the store */
    const char *known;       /* what the store knows of similar tasks; NULL: nothing */
    /* checking the best kernel failed once: do not try again before the end */
    bool accept_later;
    bool seeding;    /* the built-in engineer answers */
    json_t *history; /* what the built-in engineer has tried, for the model's prompt */
    struct settled *first, *best, *last; /* correct kernels; NULL: none yet */
    struct settled *correct;             /* all of them, the fastest first */
    double bar_us; /* a correct kernel must be faster than this to be continued from; 0: any is */
    int stops;     /* how often the model said STOP */
    int calls, unpriced;
    int64_t tokens;
    double cost_usd;
    const char *ended;
};

/* run.c */
void loop_event(struct loop *l, struct event ev);
bool loop_stop_now(struct loop *l, struct error *err);

/* loop.c: building blocks of the policies in search.c. */
enum { MAX_FAILED_STEPS = 3 }; /* after this many in a row the search ends */

/* One line of development: the kernels from which it continues. */
struct lineage {
    struct settled *best, *last;
};
bool loop_iterate(struct loop *l, struct error *err);
/* The first correct kernel: depth 0. False in *found: there is none. */
bool loop_first(struct loop *l, bool *found, struct error *err);
/* The question that asks to improve this kernel, with its profile when it is time for one. */
bool loop_question(struct loop *l, struct settled *from, struct question *q, struct error *err);
/* Decides whether profiles are read from now on: at the planned depth, or when gains stay away. */
void loop_profile_when(struct loop *l, int depth, int stale);
/* Continues a line from *depth to `end`, until it fails or gains nothing more. *over: the whole
 * search is over, and l->ended says why. */
bool loop_follow(struct loop *l, struct lineage *line, int *depth, int end, bool *over,
                 struct error *err);
/* Is the best kernel so near its floor that going on is not worth the cost? Then l->ended says
 * so. */
bool loop_near_floor(struct loop *l);

/* search.c: `--search beam` and `--search restarts`. */
bool loop_beam(struct loop *l, struct error *err);
bool loop_restarts(struct loop *l, struct error *err);
/* Does the built-in engineer answer? Its ladder is finite, so patience does not apply: a step that
 * gains may follow many that do not. */
bool loop_is_ladder(const struct settings *s);

/* step.c: asks until there is code, judges it, repairs it. *out stays NULL when the model is
 * done. */
bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
               struct settled **out, struct error *err);
/*
 * Several candidates of one step, got[i] from q[i]; correct ones are adopted. With parallel calls
 * they are asked for and built at the same time, then judged one by one before any is repaired;
 * otherwise each prompt includes the candidates before it. *done: there is nothing more to propose.
 */
bool loop_branches(struct loop *l, enum stage_kind kind, struct question *q, size_t n, int depth,
                   struct settled **got, bool *done, struct error *err);
/* Takes a step's result into the run; says whether it is a correct kernel. */
bool loop_adopt(struct loop *l, struct settled *s);

/* tune.c: searches the tunables of the best kernel; depth 0 of `cutegen tune`. */
bool loop_tune(struct loop *l, struct error *err);
bool loop_given(struct loop *l, struct error *err);

/* ask.c: asks for the next attempt; an answer that is already in the store is reused. */
bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
              struct error *err);
/* Several for the same step, `parallel_calls` at a time. */
bool loop_ask_many(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
                   size_t n, struct error *err);
size_t loop_parallel(const struct loop *l);
/* For a resumed run: calls without a usable answer count as spent. */
void loop_recall_calls(struct loop *l);

/* judge.c: gives a candidate its number and its verdict. `proposed` is the proposal's own verdict:
 * a reply without usable code is an attempt too. */
bool loop_judge(struct loop *l, struct settled *s, const struct verdict *proposed,
                enum stage_kind by, int parent, struct error *err);
/* Builds in parallel what loop_judge() will be given next, in this order; NULLs are
 * skipped. */
void loop_build_ahead(struct loop *l, struct settled *const *list, const struct proposal *proposals,
                      size_t n);
/* Records a correct kernel, so that it counts however the run continues. */
bool loop_take(struct loop *l, struct settled *s);

/* memory.c: stores what other runs learnt in l->known; NULL if there is nothing. */
bool loop_memory(struct loop *l, struct store *store, struct error *err);
bool memory_read(struct store *store, const struct task *task, const struct device *d,
                 enum language target, const char *not_run, struct arena *a, const char **text,
                 struct error *err);

/* accept.c: may the best kernel be checked before the end of the run? */
bool loop_may_accept(const struct loop *l);
/* Checks a correct kernel with sanitizers and simt and stores the result; does so only once. */
bool loop_accept_one(struct loop *l, struct settled *s, struct error *err);
/* At the end: `best` becomes the fastest kernel that is accepted. */
bool loop_accept_best(struct loop *l, struct error *err);

/* On a server: opens the store, if it is not open, and lets the stages use kernels that other
 * machines compiled (run.c). */
bool loop_share_kernels(struct settings *set, struct store **store, struct arena *a,
                        struct error *err);

#endif
