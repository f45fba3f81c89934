/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what a run of the loop knows; private to src/loop.
 *
 *     run.c -> loop.c -> step.c -> ask.c, judge.c
 *
 * run.c opens and closes a run and tells its events; loop.c decides what to do next; step.c turns
 * one question into a judged candidate; ask.c and judge.c are its two halves. accept.c decides
 * which of the correct kernels wins.
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
    struct attempt_outcome outcome; /* points at the three below */
    struct build_result build;
    struct test_result test;
    struct measurement time;
    const struct profile *profile;       /* once it was needed; NULL: not yet */
    const struct acceptance *acceptance; /* once it was checked; NULL: not yet */
    struct settled *slower;              /* the next of the correct kernels */
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
    bool *used;              /* of past.calls: its answer was taken */
    int attempt;             /* number of the last attempt */
    int depth;               /* being worked on */
    int profile_from;        /* depth from which a profile is read at the latest */
    bool profile_early;      /* already when structure brings no more gains */
    bool profiled;           /* it is read from now on */
    bool profile_told;       /* and the store knows from which depth */
    pthread_mutex_t asking;  /* threads that ask write the store under it */
    const char *known;       /* what the store knows of similar tasks; NULL: nothing */
    bool accept_later;       /* checking the best kernel failed once: not before the end again */
    bool seeding;            /* the built-in engineer answers */
    json_t *history;         /* what it has tried, for the model's prompt */
    struct settled *first, *best, *last; /* correct kernels; NULL: none yet */
    struct settled *correct;             /* all of them, the fastest first */
    double bar_us; /* a correct kernel must be faster to be gone on from; 0: any is */
    int stops;     /* how often the model said STOP */
    int calls, unpriced;
    int64_t tokens;
    double cost_usd;
    const char *ended;
};

/* run.c */
void loop_event(struct loop *l, struct event ev);
bool loop_stop_now(struct loop *l, struct error *err);

/* loop.c: what the policies of search.c are made of. */
enum { MAX_FAILED_STEPS = 3 }; /* in a row; then the model has nothing more to give */

/* One line of development: the kernels it goes on from. */
struct lineage {
    struct settled *best, *last;
};
bool loop_iterate(struct loop *l, struct error *err);
/* The first correct kernel: depth 0. False in *found: there is none. */
bool loop_first(struct loop *l, bool *found, struct error *err);
/* The question that takes this kernel on, with its profile when it is time for one. */
bool loop_question(struct loop *l, struct settled *from, struct question *q, struct error *err);
/* From now on a profile is read, if this is the depth for it or gains have stayed away. */
void loop_profile_when(struct loop *l, int depth, int stale);
/* Takes a line on from *depth to depth `end`, until it fails or gains nothing more. *over: so is
 * the search, and l->ended says why. */
bool loop_follow(struct loop *l, struct lineage *line, int *depth, int end, bool *over,
                 struct error *err);
/* Whether the best kernel is as near to its floor as is worth paying for; l->ended says so. */
bool loop_near_floor(struct loop *l);

/* search.c: `--search beam` and `--search restarts`. */
bool loop_beam(struct loop *l, struct error *err);
bool loop_restarts(struct loop *l, struct error *err);
/* A ladder is finite and ends by itself: the step that matters may come after many that do not. */
bool loop_is_ladder(const struct settings *s);

/* step.c: asks until there is code, judges it, repairs it. *out stays NULL when the model is done.
 */
bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
               struct settled **out, struct error *err);
/*
 * Several candidates of one step, got[i] from q[i], adopted where they are correct. With parallel
 * calls they are asked for and built at the same time, and judged one after the other before any is
 * repaired; without, each sees those before it. *done: there is nothing more to propose.
 */
bool loop_branches(struct loop *l, enum stage_kind kind, struct question *q, size_t n, int depth,
                   struct settled **got, bool *done, struct error *err);
/* Takes a step's result into the run; says whether it is a correct kernel. */
bool loop_adopt(struct loop *l, struct settled *s);

/* tune.c: searches the tunables of the best kernel; depth 0 of `cutegen tune`. */
bool loop_tune(struct loop *l, struct error *err);
bool loop_given(struct loop *l, struct error *err);

/* ask.c: asks for the attempt that comes next; an answer already in the store is used again. */
bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
              struct error *err);
/* Several for the same step, `parallel_calls` at a time. */
bool loop_ask_many(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
                   size_t n, struct error *err);
size_t loop_parallel(const struct loop *l);
/* A resumed run: calls that brought nothing count as spent. */
void loop_recall_calls(struct loop *l);

/* judge.c: gives a candidate its number and its verdict. `proposed` is the proposal's own verdict:
 * a reply without usable code is an attempt too. */
bool loop_judge(struct loop *l, struct settled *s, const struct verdict *proposed,
                enum stage_kind by, int parent, struct error *err);
/* Builds at the same time what loop_judge() will be given next, in this order; NULLs are skipped.
 */
void loop_build_ahead(struct loop *l, struct settled *const *list, const struct proposal *proposals,
                      size_t n);
/* A correct kernel counts, however the run goes on from here. */
bool loop_take(struct loop *l, struct settled *s);

/* memory.c: what other runs learnt, into l->known; NULL when there is nothing to say. */
bool loop_memory(struct loop *l, struct store *store, struct error *err);
bool memory_read(struct store *store, const struct task *task, const struct device *d,
                 enum language target, const char *not_run, struct arena *a, const char **text,
                 struct error *err);

/* accept.c: whether checking the best kernel is work that may be done before the end. */
bool loop_may_accept(const struct loop *l);
/* A correct kernel under sanitizers and simt, stored; once is enough. */
bool loop_accept_one(struct loop *l, struct settled *s, struct error *err);
/* At the end: `best` becomes the fastest kernel that is accepted. */
bool loop_accept_best(struct loop *l, struct error *err);

/* On a server: opens the store, if it is not open, and lets the stages use kernels that other
 * machines compiled (run.c). */
bool loop_share_kernels(struct settings *set, struct store **store, struct arena *a,
                        struct error *err);

#endif
