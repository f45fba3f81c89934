/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop.h - what the stages share (private to src/stage).
 *
 * workshop.c opens it all; each stage uses the parts it needs. Nothing here
 * decides anything.
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

#define WORKSHOP_SOURCE_NAME "candidate.cu" /* how verdicts call a kernel file in CUDA C++ */

enum { MAX_SHAPES = 16, MAX_PARALLEL = 16 }; /* parallel: questions, or builds, at the same time */

struct task_shape {
    const char *label; /* "BATCH=8"; "": as the task has it */
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
    struct arena *book_arena; /* its own: a question may be asked beside other work */
    enum {
        AHEAD_PEAKS,
        AHEAD_COMPILE,
        AHEAD_NOTHING
    } ahead;                                     /* what stage_work_ahead() does next */
    const char *baselines[MAX_BASELINES + 1];    /* of the next measurement; none: the usual two */
    struct composer *composer;                   /* NULL: another language */
    struct retriever *retriever;                 /* opened at the first compile error */
    struct builder *builder;                     /* started at the first build */
    struct builder *more_builders[MAX_PARALLEL]; /* of builds at the same time */
    struct oracle *oracle;                       /* started by stage_describe() */
    struct oracle_load load;                     /* what it was asked to load */
    struct task_shape shapes[MAX_SHAPES];
    int shape_count, shape_now, shape_main;
    struct warm *warm;  /* the warm server; NULL: everything is started here */
    struct lock *lease; /* of the GPU, while something runs on it */
};

/* Asks whoever answers (ask.c): fills out->request and out->reply. */
bool workshop_ask(struct stage *st, enum stage_kind kind, const struct question *q, struct arena *a,
                  struct proposal *out, struct error *err);
/* Only makes the messages (ask.c): for showing what would be sent. */
bool workshop_render(struct stage *st, enum stage_kind kind, const struct question *q,
                     struct arena *a, struct proposal *out, struct error *err);
/* What the best kernels known of a class reach of their floor, a sentence; NULL: not known. */
const char *workshop_reached(enum kernel_class of, struct arena *a);
/* Takes edits, or a whole file, out of out->reply (ask.c). */
void workshop_take_edits(const struct candidate *current, struct arena *a, struct proposal *out);

/* What a question asks, without messages (ask.c). */
void workshop_request(const struct stage *st, enum stage_kind kind, const struct question *q,
                      struct proposal *out);

void workshop_no_code(struct proposal *out, const char *summary, const char *detail);

/*
 * The warm server and the GPU (workshop_warm.c).
 *
 * workshop_source(): where builders, oracles and runners come from; the one
 * place that decides. workshop_oracle(): an oracle with st->load loaded.
 * workshop_renew(): after a failure, true when the oracle was lost with the
 * server and another one stands in its place: what failed may be tried again.
 * workshop_lease(): on a GPU, waits until no other cutegen uses it; every
 * process that runs or times kernels there holds it. The GPU's memory goes
 * with it: workshop_unlease() has the oracle give its own back.
 * workshop_room(): after a failure, true when it was for memory that others
 * hold and some of that may be free now: what failed may be tried again.
 */
const struct child_source *workshop_source(const struct stage *st);
bool workshop_oracle(struct stage *st, struct arena *a, struct task *out, struct error *err);
bool workshop_renew(struct stage *st, struct error *err);
bool workshop_lease(struct stage *st, struct error *err);
void workshop_unlease(struct stage *st);
/* Where times are taken, JSON: {"host"} and on a GPU "gpu_uuid", "driver", "sm_mhz", "memory_mhz",
 * "sm_max_mhz", "temperature_c", as far as the driver says (machine.c). */
const char *workshop_machine(const struct stage *st, struct arena *a);
void machine_add_gpu(json_t *o, const char *line, struct arena *a); /* its line, for tests */
bool workshop_room(struct stage *st, int attempt, struct error *err);

/* The shapes a task is judged at (shapes.c): read before the first load; the others after it. */
bool shapes_read(struct stage *st, struct error *err);
bool shapes_describe(struct stage *st, struct arena *a, struct task *out, struct error *err);

/* Measures what the GPU can do at most and keeps it (peaks.c). */
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
/* How verdicts call the file of a candidate: "candidate.cu", "candidate.py". */
const char *workshop_source_name(const struct stage *st);

/* Once the task is known: can the built-in engineer write it, and who is the engineer. */
bool workshop_meet_task(struct stage *st, const struct task *task, struct error *err);
struct judge_config workshop_judge_config(const struct stage *st, const struct task *task);
struct llm_config workshop_llm_config(const struct settings *s);
/* Whoever answers the question in this slot; one of them is used by one thread at a time. */
bool workshop_llm(struct stage *st, int slot, struct llm **out, struct error *err);
/* A further builder, started when it is first wanted. */
bool workshop_builder(struct stage *st, size_t number, struct builder **out, struct error *err);

#endif
