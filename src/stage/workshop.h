/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop.h - state shared by the stages (private to src/stage).
 *
 * workshop.c opens it; each stage uses the parts it needs. No policy here.
 */
#ifndef STAGE_WORKSHOP_H
#define STAGE_WORKSHOP_H

#include "eval/judge.h"
#include "eval/oracle.h"
#include "llm/llm.h"
#include "llm/prompt/prompt.h"
#include "server/warm.h"
#include "stage/settings.h"
#include "stage/stage.h"
#include "toolchain/builder.h"
#include "toolchain/tools.h"

#include <pthread.h>

#define WORKSHOP_SOURCE_NAME "candidate.cu" /* the name of a CUDA C++ kernel file in verdicts */

enum { MAX_SHAPES = 16, MAX_PARALLEL = 16 }; /* parallel: questions, or builds, at the same time */

struct task_shape {
    const char *label; /* "BATCH=8"; "": the task's own sizes */
    json_t *set;       /* constants */
    int variant;       /* of get_inputs_list() */
    double weight;
};

struct stage {
    struct settings settings;
    struct arena *a;      /* lives as long as the workshop */
    const char *work_dir; /* one job's files; removed at the end */
    struct tools tools;
    struct device device;
    const char *engineer;
    const char *torch_version;
    bool builtin; /* the built-in engineer answers; llm and book are NULL */
    struct llm *llm;
    struct llm *more_llms[MAX_PARALLEL]; /* of questions asked at the same time, by slot */
    pthread_mutex_t asking;              /* while one of them is opened or a prompt is made */
    struct budget *budget;
    struct prompt_book *book;
    /* separate, because a question may be asked in parallel with other work */
    struct arena *book_arena;
    enum {
        AHEAD_PEAKS,
        AHEAD_COMPILE,
        AHEAD_NOTHING
    } ahead; /* what stage_work_ahead() does next */
    /* baselines of the next measurement; none: the usual two */
    const char *baselines[MAX_BASELINES + 1];
    struct composer *composer;                   /* NULL: another language */
    struct retriever *retriever;                 /* opened on the first compile error */
    struct builder *builder;                     /* started at the first build */
    struct builder *more_builders[MAX_PARALLEL]; /* of builds at the same time */
    struct oracle *oracle;                       /* started by stage_describe() */
    struct oracle_load load;                     /* the task it was asked to load */
    struct task_shape shapes[MAX_SHAPES];
    int shape_count, shape_now, shape_main;
    struct warm *warm;  /* the warm server; NULL: everything is started here */
    struct lock *lease; /* held while something runs on the GPU */
    bool alone;         /* no other command shares it */
};

/* Asks the model or the built-in engineer (ask.c): fills out->request and out->reply. */
bool workshop_ask(struct stage *st, enum stage_kind kind, const struct question *q, struct arena *a,
                  struct proposal *out, struct error *err);
/* Only makes the messages (ask.c), to show what would be sent. */
bool workshop_render(struct stage *st, enum stage_kind kind, const struct question *q,
                     struct arena *a, struct proposal *out, struct error *err);
/* A sentence: how near the best known kernels of a class are to their floor; NULL: unknown. */
const char *workshop_reached(enum kernel_class of, struct arena *a);
/* Takes edits, or a whole file, out of out->reply (ask.c). */
void workshop_take_edits(const struct candidate *current, struct arena *a, struct proposal *out);

/* Fills in a request without messages (ask.c). */
void workshop_request(const struct stage *st, enum stage_kind kind, const struct question *q,
                      struct proposal *out);

void workshop_no_code(struct proposal *out, const char *summary, const char *detail);

/*
 * The warm server and the GPU (workshop_warm.c).
 *
 * workshop_source(): where builders, oracles and runners come from; decided only here.
 * workshop_oracle(): an oracle with st->load loaded.
 * workshop_renew(): after a failure, true if the oracle was lost with the server and has been
 * replaced: the failed action may be retried.
 * workshop_lease(): on a GPU, waits until no other cutegen uses it: for what takes times.
 * workshop_share(): waits until no other cutegen is alone with it; several judge side by side. For
 * a task too large for that (NULL: not yet known) it is workshop_lease(). Every process that runs
 * kernels there holds one of them. This includes the GPU's memory: workshop_unlease() makes the
 * oracle release its own.
 * workshop_room(): after a failure, true if it failed for memory that others hold and some of that
 * may be free now: the failed action may be retried.
 */
const struct child_source *workshop_source(const struct stage *st);
bool workshop_oracle(struct stage *st, struct arena *a, struct task *out, struct error *err);
bool workshop_renew(struct stage *st, struct error *err);
bool workshop_lease(struct stage *st, struct error *err);
bool workshop_share(struct stage *st, const struct task *task, struct error *err);
void workshop_unlease(struct stage *st);
/* The machine on which times are taken, as JSON: {"host"} and on a GPU "gpu_uuid", "driver",
 * "sm_mhz", "memory_mhz", "sm_max_mhz", "temperature_c", as far as the driver says (machine.c). */
const char *workshop_machine(const struct stage *st, struct arena *a);
/* parses its output line; public for tests */
void machine_add_gpu(json_t *o, const char *line, struct arena *a);
bool workshop_room(struct stage *st, int attempt, struct error *err);

/* The shapes at which a task is judged (shapes.c): --shapes is read before the first load, the
 * others after it. */
bool shapes_read(struct stage *st, struct error *err);
bool shapes_describe(struct stage *st, struct arena *a, struct task *out, struct error *err);

/* Measures and stores the GPU's peaks (peaks.c). */
bool workshop_peaks(struct stage *st, struct arena *a, struct error *err);

/* Builds jobs, `step` at a time, each with a builder of its own (build.c). */
void workshop_build_jobs(struct stage *st, const struct task *task, struct build_job *jobs,
                         size_t n, size_t step);
/* A Python that has the target's language, or what to install. */
bool workshop_find_composer(struct stage *st, struct error *err);
/* From a Python file with a plan to PTX, cubin and launch list (python_plan.c). */
bool workshop_compose(struct stage *st, const struct task *task, const struct candidate *cand,
                      struct arena *a, struct build_result *out, struct error *err);
/* The worked example of a synthesis prompt; *out stays as it is where there is none (example.c). */
bool workshop_example(const struct stage *st, const struct task *task, bool other, struct arena *a,
                      const char **name, struct text *out, struct error *err);
/* The parts of a kernel of several, the costliest first, as lines for a prompt; "": it has none.
 * *costliest: its number. `about`: the question about that kernel, whose times order the parts;
 * NULL: nothing is known of it (work_plan.c). */
const char *workshop_plan(struct text source, const struct question *about, struct arena *a,
                          int *costliest);
/* The name of a candidate's file in verdicts: "candidate.cu", "candidate.py". */
const char *workshop_source_name(const struct stage *st);

/* Called once the task is known: chooses who answers, and checks whether the built-in engineer has
 * a recipe. */
bool workshop_meet_task(struct stage *st, const struct task *task, struct error *err);
struct judge_config workshop_judge_config(const struct stage *st, const struct task *task);
struct llm_config workshop_llm_config(const struct settings *s);
/* The model for this slot; each is used by one thread at a time. */
bool workshop_llm(struct stage *st, int slot, struct llm **out, struct error *err);
/* A further builder, started when first needed. */
bool workshop_builder(struct stage *st, size_t number, struct builder **out, struct error *err);

#endif
