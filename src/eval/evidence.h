/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.h - what was observed in all draws of one test, and the verdict that follows (private to
 * src/eval).
 *
 *     evidence_init(&e, ...);
 *     per draw:  evidence_draw(&e);
 *                evidence_answer(&e, &said);  evidence_compare(&e, &set, "normal");
 *     evidence_apart(&e);  evidence_answer(&e, &said);        a run that is not a draw
 *     evidence_verdict(&e, &verdict);
 */
#ifndef EVAL_EVIDENCE_H
#define EVAL_EVIDENCE_H

#include "base/finding_kind.h"
#include "eval/oracle.h"
#include "eval/runner_client.h"
#include "model.h"

/* One finding. The same defect in several threads, blocks and draws is merged into one. */
struct seen {
    enum finding_kind kind;
    const char *name, *kernel, *file, *text; /* name: the name of its kind, as reported */
    int line, other_line;
    const char *block, *thread, *other_thread, *path, *callers; /* where it was first seen */
    int64_t count;
    enum verdict_kind verdict;
};

struct evidence {
    struct arena *a;
    const struct task *task;
    struct text source;      /* the candidate's source */
    const char *source_name; /* the user's name for the file */
    const json_t *launches;
    int draws, compared; /* draws begun; comparisons of outputs that were all finite */
    int stopped;         /* draws that simt ended early: their outputs are ignored */
    bool in_draw[VERDICT_COUNT], stopped_now, apart; /* of the current draw */
    const char *distributions[8];
    int distribution_count;
    int draws_with[VERDICT_COUNT]; /* draws in which this was seen */
    bool ever[VERDICT_COUNT];      /* in a draw or apart */
    enum verdict_kind fatal;       /* PASS: none */
    const char *fatal_text;
    int fatal_op;
    struct seen seen[MAX_FINDINGS];
    int seen_count, seen_more;
    struct comparison_set *worst; /* the gravest comparison of a draw; NULL: all were right */
    enum verdict_kind worst_kind;
    const char *worst_distribution;
    struct accuracy accuracy;
};

void evidence_init(struct evidence *e, struct arena *a, const struct task *task,
                   const struct candidate *cand, const char *source_name, const json_t *launches);
/* Begins the next draw; or a separate run, which does not count as a draw. */
void evidence_draw(struct evidence *e);
void evidence_apart(struct evidence *e);
void evidence_answer(struct evidence *e, const struct runner_answer *said);
void evidence_compare(struct evidence *e, const struct comparison_set *set,
                      const char *distribution);
void evidence_verdict(struct evidence *e, struct verdict *out);
/* Lower is graver; VERDICT_PASS last. */
int evidence_rank(enum verdict_kind kind);

#endif
