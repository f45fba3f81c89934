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

/* One candidate and everything known about it. */
struct settled {
    struct candidate cand;
    struct attempt_outcome outcome; /* points at the three below */
    struct build_result build;
    struct test_result test;
    struct measurement time;
    const struct profile *profile;       /* once somebody wanted to read it; NULL: not yet */
    const struct acceptance *acceptance; /* once it was checked; NULL: not yet */
    struct settled *slower;              /* the next of the correct kernels */
};

struct loop {
    const struct settings *settings;
    struct run_options opt;
    struct progress *progress;
    struct arena *a; /* lives as long as the run */
    struct stage *st;
    struct run *run;
    struct task task;
    struct run_history past;   /* what a resumed run has already done */
    size_t next_call;          /* of past.calls */
    int attempt;               /* number of the last attempt */
    int depth;                 /* being worked on */
    int profile_from;          /* depth from which a profile is read at the latest */
    bool profile_early;        /* already when structure brings no more gains */
    bool profiled;             /* it is read from now on */
    struct arena *answers[16]; /* of questions that were asked in a thread of their own */
    size_t answer_count;
    bool accept_later; /* checking the best kernel failed once: not before the end again */
    bool seeding;      /* the built-in engineer answers */
    json_t *history;   /* what the model is told it has tried */
    struct settled *first, *best, *last; /* correct kernels; NULL: none yet */
    struct settled *correct;             /* all of them, the fastest first */
    int stops;                           /* how often the model said STOP */
    int calls, unpriced;
    int64_t tokens;
    double cost_usd;
    const char *ended;
};

/* run.c */
void loop_event(struct loop *l, struct event ev);
bool loop_stop_now(struct loop *l, struct error *err);

/* loop.c */
bool loop_iterate(struct loop *l, struct error *err);
/* A ladder is finite and ends by itself: the step that matters may come after many that do not. */
bool loop_is_ladder(const struct settings *s);

/* step.c: asks until there is code, judges it, repairs it. *out stays NULL when the model is done.
 */
bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
               struct settled **out, struct error *err);
/* Takes a step's result into the run; says whether it is a correct kernel. */
bool loop_adopt(struct loop *l, struct settled *s);

/* ask.c: asks for the attempt that comes next; an answer already in the store is used again. */
bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
              struct error *err);

/* judge.c: gives a candidate its number and its verdict. `proposed` is the proposal's own verdict:
 * a reply without usable code is an attempt too. */
bool loop_judge(struct loop *l, struct settled *s, const struct verdict *proposed,
                enum stage_kind by, int parent, struct error *err);
/* A correct kernel counts, however the run goes on from here. */
bool loop_take(struct loop *l, struct settled *s);

/* accept.c: whether checking the best kernel is work that may be done before the end. */
bool loop_may_accept(const struct loop *l);
/* A correct kernel under sanitizers and simt, stored; once is enough. */
bool loop_accept_one(struct loop *l, struct settled *s, struct error *err);
/* At the end: `best` becomes the fastest kernel that is accepted. */
bool loop_accept_best(struct loop *l, struct error *err);

#endif
