/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - the steps from a task to a kernel, one function and one file each.
 *
 *     describe -> synthesize -> build -> test -> (diagnose -> repair -> build -> test)*
 *              -> measure -> (profile) -> optimize -> build ... -> export
 *
 * A `struct stage` is the workshop all steps use: the model or the built-in
 * engineer, the builder, the oracle, the device. Stages do not call each
 * other, keep no policy and do not write the store; the loop does both.
 *
 *     stage_open(&settings, &st, err);
 *     stage_describe(st, "task.py", a, &task, err);
 *     ...
 *     stage_close(st);                            also after errors; NULL is fine
 *
 * Results, their json_t included, live as long as the arena they were made in.
 * False is a broken machine, wrong use or a spent budget. A bad kernel, and a
 * reply without usable code, is a verdict in the result.
 */
#ifndef STAGE_STAGE_H
#define STAGE_STAGE_H

#include "base/error.h"
#include "model.h"

struct settings;
struct stage;

bool stage_open(const struct settings *settings, struct stage **out, struct error *err);
void stage_close(struct stage *st);

/* Starts the builder, which precompiles CuTe while other things go on. Optional, and once. */
bool stage_warm(struct stage *st, struct error *err);

/* The warm server by hand: *out is NULL when none runs, else a new reference. */
bool stage_server_status(json_t **out, struct error *err);
bool stage_server_stop(bool *was_there, struct error *err);
/* For the runs of a suite, which would take a server of their own with them: a descriptor that
 * keeps one alive until it is closed; -1: none. */
int stage_server_hold(const struct settings *settings);

/* Known once stage_describe() has run. */
const struct device *stage_device(const struct stage *st);
/* "builtin: recipe pointwise", "openai:gpt-5", ... */
const char *stage_engineer(const struct stage *st);
/* Where the model is asked; NULL: not over HTTP. */
const char *stage_base_url(const struct stage *st);
/* Versions and tools, for the record: {"cutegen", "nvrtc", "cutlass", "torch", ...}. New reference.
 */
json_t *stage_environment(const struct stage *st);

bool stage_describe(struct stage *st, const char *task_path, struct arena *a, struct task *out,
                    struct error *err);

/* Many shapes (--shapes, get_inputs_list): each is judged. stage_describe() loads the main one;
 * stage_shape() loads another, and building, testing and measuring is of that one from then on. */
int stage_shape_count(const struct stage *st);
int stage_shape_main(const struct stage *st);
const char *stage_shape_label(const struct stage *st, int shape, double *weight);
bool stage_shape(struct stage *st, int shape, struct arena *a, struct task *out, struct error *err);

/*
 * While a model thinks: what the judge will want later and can be done now. On a GPU those are
 * its peaks, if not measured yet, and torch.compile, which takes long once and then stands
 * beside the other baselines. stage_work_ahead() does the next of them. It touches nothing that
 * the asking functions use, so it may run beside one of them.
 */
bool stage_has_work(const struct stage *st);
/* Whether this model takes time to think: stage_build() and stage_accept() may run meanwhile too.
 */
bool stage_may_work(const struct stage *st);
void stage_work_ahead(struct stage *st, const struct task *task);
/* After the last step: torch.compile is made ready, and the next measurement times all columns,
 * eager under the other settings of fp32 among them. False: there are none to add (simt). */
bool stage_all_baselines(struct stage *st, const struct task *task);

/* A suite goes on: idle time does not count as minutes. */
bool stage_budget_unpause(const char *path, struct error *err);
struct shared_text;
bool stage_budget_unpause_shared(const struct shared_text *place, struct error *err);

/* ---- asking a model ------------------------------------------------------ */

struct question {
    const struct task *task;
    const struct candidate *current; /* synthesizing: the best one known from before, or NULL */
    const struct verdict *verdict;   /* what is wrong with it; NULL: nothing */
    const struct measurement *time;  /* NULL: not measured */
    const struct profile *profile;   /* NULL before its time */
    const char *diagnosis;           /* what stage_diagnose() found; NULL: none */
    const char *rejected;            /* why the last reply could not be used; NULL: it could */
    json_t *history;                 /* [{depth, change, verdict, time_us, kept}] */
    bool builtin;                    /* the built-in engineer is to answer, whoever else could */
    const struct reply *recorded;    /* an answer already paid for: used instead of asking */
    const char *note;                /* what a first kernel is to be; NULL: nothing special */
    const char *known;               /* what the store knows of similar tasks; NULL: nothing */
    const struct call_watch *watch;  /* told of the call while it is under way; NULL: none */
    int slot;                        /* of questions asked at the same time: 0, 1, ... */
};

/* How many questions may be asked at the same time, each in a thread of its own and with another
 * slot: 1 where answers come in an order (builtin, replay). */
int stage_parallel(const struct stage *st);
/*
 * A request of a call, made by a process that outlives this one (src/caller), for
 * call_watch.carry. `where` (taken) says where its reply goes: {"runs", "store", "run", "call",
 * "dir"}; `hold` is open in that process as long as it lives. *line leads to it until
 * stage_carried(), which says whether the reply is stored: if not, it does that itself. -1 is fine.
 */
bool stage_carry(struct stage *st, const struct call_order *order, json_t *where, int hold,
                 int *line, json_t **answer);
void stage_carried(int line, bool stored);
/* Counts a call that brought nothing in this process's own budget. */
void stage_charge(struct stage *st, const struct reply *spent);

struct proposal {
    struct request request; /* as asked, for the store */
    struct reply reply;
    bool done;              /* nothing more to propose: reply.text says why */
    const char *stop;       /* a model says so, in place of edits, and why; NULL: it does not */
    struct verdict verdict; /* PASS: `source` holds a kernel; NO_CODE: why not */
    struct text source;
    const char *change; /* one line: what was done */
    const char *steps;  /* as candidate.steps */
};

/* All four: false with ERROR_INTERRUPTED when a call was cut; out->reply then has the finish
 * reason "interrupted" and no text, and is worth storing. */
bool stage_synthesize(struct stage *st, const struct question *q, struct arena *a,
                      struct proposal *out, struct error *err);
/* Only reply.text counts: what the model thinks is wrong. */
bool stage_diagnose(struct stage *st, const struct question *q, struct arena *a,
                    struct proposal *out, struct error *err);
bool stage_repair(struct stage *st, const struct question *q, struct arena *a, struct proposal *out,
                  struct error *err);
bool stage_optimize(struct stage *st, const struct question *q, struct arena *a,
                    struct proposal *out, struct error *err);

/* What kind of candidate a .py file is: a ModelNew (*foreign), or kernels with a plan(p), then
 * *target says in which language. One of Python given: it is that. Neither is wrong use. */
bool stage_python_door(struct text source, const char *path, enum language *target, bool *foreign,
                       struct error *err);

/* ---- judging a candidate ------------------------------------------------- */

bool stage_build(struct stage *st, const struct task *task, const struct candidate *cand,
                 struct arena *a, struct build_result *out, struct error *err);
/* The same for a device that need not be here: to compare what comes out. */
bool stage_build_for(struct stage *st, const struct device *device, const struct task *task,
                     const struct candidate *cand, struct arena *a, struct build_result *out,
                     struct error *err);
/* Device code alone, for an architecture that need not be here: into the caches. Names as in
 * ["gemm<128, 128>"]. */
bool stage_compile(struct stage *st, struct text source, const char *arch, const json_t *names,
                   struct arena *a, struct build_result *out, struct error *err);
/* Several at the same time, each with a builder of its own. Each job has its own arena. */
struct build_job {
    const struct candidate *cand;
    struct arena *a;
    struct build_result *out;
    bool ok;
    struct error err;
};
void stage_build_many(struct stage *st, const struct task *task, struct build_job *jobs, size_t n);
/* The built-in engineer's next kernels, compiled at the same time where cores and memory allow
 * (settings.ahead); found in the cache when they are asked for. */
void stage_ladder_ahead(struct stage *st, const struct task *task, const struct candidate *current,
                        json_t *history);

enum { LADDER_MOST = 24 }; /* kernels compiled ahead */

/* The kernels that a run of the built-in engineer begins with, and the next `depth`, compiled into
 * the cache: for this device, which need not be here (struct device, `absent`). The first is also
 * written into `dir` (NULL: it is not) with its launch list. */
struct ladder_built {
    int kernels, found, failed; /* found: in the cache already */
    const char *why_not;        /* the engineer has no kernel for this task; NULL: it has */
    const char *why_failed;     /* the first verdict that is not a pass; NULL: none */
};
bool stage_ladder_build(struct stage *st, const struct task *task, int depth, const char *dir,
                        struct arena *a, struct ladder_built *out, struct error *err);
bool stage_test(struct stage *st, const struct task *task, const struct candidate *cand,
                const struct build_result *build, struct arena *a, struct test_result *out,
                struct error *err);
/* The same once more, and on a GPU with compute-sanitizer's tools: before a kernel is accepted for
 * good. */
bool stage_accept(struct stage *st, const struct task *task, const struct candidate *cand,
                  const struct build_result *build, struct arena *a, struct test_result *out,
                  struct error *err);
bool stage_measure(struct stage *st, const struct task *task, const struct build_result *build,
                   const struct test_result *test, struct arena *a, struct measurement *out,
                   struct error *err);
bool stage_profile(struct stage *st, const struct candidate *cand, const struct build_result *build,
                   const struct test_result *test, const struct measurement *time, struct arena *a,
                   struct profile *out, struct error *err);

/* ---- using the result ---------------------------------------------------- */

enum export_layout { LAYOUT_FOLDER, LAYOUT_WHEEL, LAYOUT_HF, LAYOUT_COUNT };

/* One set of judged shapes: its code, names and launch list, and the description they are of. */
struct export_case {
    const json_t *description;
    const struct build_result *build; /* code, code_hash, ptx, ptx_hash, launches, names */
};

struct export_request {
    const struct task *task;
    const struct candidate *best;
    const struct device *device; /* it was judged on */
    const json_t *record;        /* model, versions, timings, accuracy, seed, hashes */
    const char *dir;
    const struct export_case *cases; /* at least one */
    size_t case_count;
    const char *left_out; /* judged shapes that are not among the cases, or NULL */
    enum export_layout layout;
    bool fallback;  /* ModelNew leaves what was not judged to Model */
    bool gradients; /* those of the reference; else requires_grad is an error */
    const struct export_request *backward; /* the gradients' own kernel, or NULL */
    bool ptx; /* PTX too, for GPUs of other architectures: not judged there */
};

#define EXPORT_BACKWARD "backward" /* the folder of the gradients' own kernel */

struct export_files {
    const char *dir;
    const char *module_path, *source_path, *record_path; /* NULL in a wheel */
    const char *wheel_path;                              /* NULL: no wheel */
};

bool stage_export(const struct export_request *req, struct arena *a, struct export_files *out,
                  struct error *err);

/* An exported folder, read again. The json_t's live in the arena. */
struct exported {
    const char *dir;
    json_t *table, *record; /* launches.json, record.json */
    const char *name;       /* of the package */
    struct device device;   /* it was judged on */
    enum language target;   /* of its source, as the record says */
    struct text source;     /* NAME.cu, NAME.triton */
};

/* How the source in an export is called. Not .py: nothing there may be run but what is ours. */
const char *stage_export_source(const char *name, enum language target, struct arena *a);
/* The language of a run, from its options. */
enum language stage_export_target(const json_t *record);

bool stage_export_read(const char *dir, struct arena *a, struct exported *out, struct error *err);
/* Is its Python what this cutegen writes, and is nothing else in the folder? *why is NULL, or says
 * what. */
bool stage_export_python(const struct exported *e, struct arena *a, const char **why,
                         struct error *err);
/* Its loader in C: none, this cutegen's own, another, or for a processor that is not this one. */
enum export_native {
    EXPORT_NATIVE_NONE,
    EXPORT_NATIVE_SAME,
    EXPORT_NATIVE_DIFFERS,
    EXPORT_NATIVE_ELSEWHERE
};
enum export_native stage_export_native(const struct exported *e, struct arena *a,
                                       const char **name);
/* The code of a case, as the runner loads it; a file that is not what was judged is an error. */
bool stage_adopt(struct stage *st, const struct exported *from, size_t number, struct arena *a,
                 struct build_result *out, struct error *err);

/* ---- single steps by hand: doctor, ask, models, prompt, edit, simt -------- */

bool stage_doctor(const struct settings *settings, struct arena *a, json_t **report,
                  struct error *err);

/* What the device can do at most: measured now and kept, or as it is known. New reference. */
bool stage_peaks(const struct settings *settings, bool measure, struct arena *a, json_t **report,
                 struct error *err);

/* One prompt, one answer, streamed to `on_text` as it comes. */
bool stage_ask(const struct settings *settings, struct text prompt,
               void (*on_text)(void *ctx, const char *text, size_t len), void *ctx, struct arena *a,
               struct reply *out, struct error *err);
bool stage_models(const struct settings *settings, struct arena *a, json_t **out,
                  struct error *err);
/* The messages that would be sent for a task at a stage, without sending. */
struct prompt_preview {
    enum stage_kind stage;
    const char *task_path, *source_path; /* source: the kernel it is about, where there is one */
    const struct verdict *verdict;       /* what is wrong with it; NULL: words stand for it */
    /* What the store knows of this task, once it is described; NULL: nothing is added. */
    bool (*known)(void *ctx, const struct task *task, const struct device *device, struct arena *a,
                  const char **text, struct error *err);
    void *ctx;
};
bool stage_prompt(const struct settings *settings, const struct prompt_preview *what,
                  struct arena *a, struct request *out, struct error *err);

/* Passages of CuTe's headers and sections of the guides that concern some words or a compile
 * error: {"passages": [{"where", "text"}]}, best first. New reference. */
bool stage_search(const struct settings *settings, const char *query, int max, struct arena *a,
                  json_t **out, struct error *err);

enum edit_outcome { EDITED, EDIT_NOT_FOUND, EDIT_NOT_APPLIED };
/* `report` gets the JSON of the result (a new reference); `reason` is "" when applied. */
enum edit_outcome stage_edit(struct text source, struct text reply, struct arena *a,
                             struct text *result, const char **reason, json_t **report);

struct simt_options {
    const char *file;           /* .cu with a plan, or an exported folder */
    int number;                 /* of the folder's cases */
    const char *const *inputs;  /* "f32[16,128]=normal", NULL-terminated */
    const char *const *outputs; /* "f32[16,128]" */
    const char *const *scalars; /* "float=1.5" */
    const char *check;
    bool profile; /* counters by source line */
    int sample;   /* blocks to run of each grid; 0: all */
};
bool stage_simt_run(const struct settings *settings, const struct simt_options *options,
                    struct arena *a, json_t **report, struct error *err);

/* Runs a program with simt as its GPU. {"program", "exit", "launches", "findings": [FINDING],
 * "refused": [{"kernel", "text"}], "device"}; a new reference. */
bool stage_simt_exec(const struct settings *settings, const char *const *argv, struct arena *a,
                     json_t **report, struct error *err);
json_t *stage_sarif(const json_t *report); /* its findings; a new reference */

#endif
