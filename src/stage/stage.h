/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - the steps from a task to a kernel, one function and one file each.
 *
 *     describe -> synthesize -> build -> test -> (diagnose -> repair -> build -> test)*
 *              -> measure -> (profile) -> optimize -> build ... -> export
 *
 * A `struct stage` holds what all steps share: the model or the built-in engineer, the builder, the
 * oracle, the device. Stages do not call each other, keep no policy and do not write the store; the
 * loop does both.
 *
 *     stage_open(&settings, &st, err);
 *     stage_describe(st, "task.py", a, &task, err);
 *     ...
 *     stage_close(st);                            also after errors; NULL is fine
 *
 * Results, including their json_t, live as long as the arena they were made in. False is a broken
 * machine, wrong use or a spent budget. A bad kernel, and a reply without usable code, is a verdict
 * in the result.
 */
#ifndef STAGE_STAGE_H
#define STAGE_STAGE_H

#include "base/error.h"
#include "model.h"

struct settings;
struct stage;

bool stage_open(const struct settings *settings, struct stage **out, struct error *err);
void stage_close(struct stage *st);

/* Starts the builder, which precompiles CuTe in the background. Optional; call it once. */
bool stage_warm(struct stage *st, struct error *err);

/* For `cutegen server`: *out is NULL if none runs, else a new reference. */
bool stage_server_status(json_t **out, struct error *err);
bool stage_server_stop(bool *was_there, struct error *err);
/* For the runs of a suite, since a server started by a run would end with it: returns a descriptor
 * that keeps a server alive until closed; -1: none. */
int stage_server_hold(const struct settings *settings);

/* Known once stage_describe() has run. */
const struct device *stage_device(const struct stage *st);
/* "builtin: recipe pointwise", "openai:gpt-5", ... */
const char *stage_engineer(const struct stage *st);
/* The model's base URL; NULL: not over HTTP. */
const char *stage_base_url(const struct stage *st);
/* Versions and tools, for the record: {"cutegen", "nvrtc", "cutlass", "torch", ...}. New
 * reference. */
json_t *stage_environment(const struct stage *st);

bool stage_describe(struct stage *st, const char *task_path, struct arena *a, struct task *out,
                    struct error *err);

/* Many shapes (--shapes, get_inputs_list): each is judged. stage_describe() loads the main one;
 * stage_shape() loads another, and from then on that shape is built, tested and measured. */
int stage_shape_count(const struct stage *st);
int stage_shape_main(const struct stage *st);
const char *stage_shape_label(const struct stage *st, int shape, double *weight);
bool stage_shape(struct stage *st, int shape, struct arena *a, struct task *out, struct error *err);

/*
 * Work for the judge that can be done while a model thinks. On a GPU: measuring its peaks if that
 * was not done yet, and torch.compile, which takes long once and is then one more baseline.
 * stage_work_ahead() does the next piece. It shares no state with the asking functions, so it may
 * run in parallel with them.
 */
bool stage_has_work(const struct stage *st);
/* Does this model take time to think? Then stage_build() and stage_accept() may run meanwhile,
 * too. */
bool stage_may_work(const struct stage *st);
void stage_work_ahead(struct stage *st, const struct task *task);
/* After the last step: prepares torch.compile, and lets the next measurement time all baselines,
 * including eager under the other fp32 settings. False: there are none to add (simt). */
bool stage_all_baselines(struct stage *st, const struct task *task);

/* For a suite that is resumed: idle time does not count as minutes. */
bool stage_budget_unpause(const char *path, struct error *err);
struct shared_text;
bool stage_budget_unpause_shared(const struct shared_text *place, struct error *err);

/* ---- asking a model ------------------------------------------------------ */

struct question {
    const struct task *task;
    const struct candidate *current; /* synthesizing: the best kernel of earlier runs, or NULL */
    const struct verdict *verdict;   /* its verdict; NULL: it passed */
    const struct measurement *time;  /* NULL: not measured */
    const json_t *launches;          /* launch list of `current`; NULL: not known */
    const struct profile *profile;   /* NULL before its time */
    const char *diagnosis;           /* the answer of stage_diagnose(); NULL: none */
    const char *rejected;            /* why the last reply could not be used; NULL: it could */
    json_t *history;                 /* [{depth, change, verdict, time_us, kept}] */
    /* let the built-in engineer answer, even if a model is configured */
    bool builtin;
    const struct reply *recorded;   /* an answer from the store, used instead of asking */
    const char *note;               /* an extra instruction for a first kernel; NULL: none */
    const char *known;              /* what the store knows of similar tasks; NULL: nothing */
    const struct call_watch *watch; /* notified during the call; NULL: none */
    int slot;                       /* number among questions asked at the same time: 0, 1, ... */
};

/* How many questions may be asked at the same time, each in its own thread and slot; 1 if the order
 * of answers matters (builtin, replay). */
int stage_parallel(const struct stage *st);
/*
 * Makes a request in a process that outlives this one (src/caller), for call_watch.carry. `where`
 * (ownership taken) says where its reply goes: {"runs", "store", "run", "call", "dir"}; that
 * process keeps `hold` open as long as it lives. *line connects to it until stage_carried(), which
 * tells it whether the reply is stored: if not, it stores the reply itself. -1 is fine.
 */
bool stage_carry(struct stage *st, const struct call_order *order, json_t *where, int hold,
                 int *line, json_t **answer);
void stage_carried(int line, bool stored);
/* Charges a failed call to this process's own budget. */
void stage_charge(struct stage *st, const struct reply *spent);

struct proposal {
    struct request request; /* the request as sent, for the store */
    struct reply reply;
    bool done; /* nothing more to propose: reply.text says why */
    /* the model's reason for saying STOP instead of sending edits; NULL: it did not */
    const char *stop;
    struct verdict verdict; /* PASS: `source` holds a kernel; NO_CODE: why not */
    struct text source;
    const char *change; /* one line: what was done */
    const char *steps;  /* as candidate.steps */
};

/* All four return false with ERROR_INTERRUPTED if a call was interrupted; out->reply then has the
 * finish reason "interrupted" and no text, and should be stored. */
bool stage_synthesize(struct stage *st, const struct question *q, struct arena *a,
                      struct proposal *out, struct error *err);
/* Uses only reply.text: what the model thinks is wrong. */
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
/* The same for a device that this machine need not have, to compare the result. */
bool stage_build_for(struct stage *st, const struct device *device, const struct task *task,
                     const struct candidate *cand, struct arena *a, struct build_result *out,
                     struct error *err);
/* Compiles only device code into the caches, for an architecture that this machine need not have.
 * Names as in ["gemm<128, 128>"]. */
bool stage_compile(struct stage *st, struct text source, const char *arch, const json_t *names,
                   struct arena *a, struct build_result *out, struct error *err);
/* Several builds in parallel, each with its own builder and arena. */
struct build_job {
    const struct candidate *cand;
    struct arena *a;
    struct build_result *out;
    bool ok;
    struct error err;
};
void stage_build_many(struct stage *st, const struct task *task, struct build_job *jobs, size_t n);
/* Compiles the built-in engineer's next kernels in parallel, as cores and memory allow
 * (settings.ahead); they are found in the cache when needed. */
void stage_ladder_ahead(struct stage *st, const struct task *task, const struct candidate *current,
                        json_t *history);

enum { LADDER_MOST = 24 }; /* kernels compiled ahead */

/* Compiles into the cache the kernels that a run of the built-in engineer begins with, and the next
 * `depth`, for this device, which may be absent (struct device). The first is also written into
 * `dir` with its launch list, unless `dir` is NULL. */
struct ladder_built {
    int kernels, found, failed; /* found: already in the cache */
    const char *why_not;        /* why the engineer has no kernel for this task; NULL: it has */
    const char *why_failed;     /* the first verdict that is not a pass; NULL: none */
};
bool stage_ladder_build(struct stage *st, const struct task *task, int depth, const char *dir,
                        struct arena *a, struct ladder_built *out, struct error *err);
bool stage_test(struct stage *st, const struct task *task, const struct candidate *cand,
                const struct build_result *build, struct arena *a, struct test_result *out,
                struct error *err);
/* Repeats the test for the final acceptance, on a GPU with compute-sanitizer's tools. */
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

/* One judged set of shapes: its description, code, names and launch list. */
struct export_case {
    const char *label; /* "N=64": how its sizes differ from the main shape's; "" */
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
    bool fallback;  /* ModelNew falls back to Model for inputs that were not judged */
    bool gradients; /* use the reference's gradients; else requires_grad is an error */
    const struct export_request *backward; /* the gradients' own kernel, or NULL */
    bool ptx; /* include PTX for GPUs of other architectures, where it is not judged */
};

enum { EXPORT_ALIGNMENT = 256 /* bytes: the judge's buffers begin at multiples of it */ };
#define EXPORT_BACKWARD "backward" /* the folder of the gradients' own kernel */

struct export_files {
    const char *dir;
    const char *module_path, *source_path, *record_path; /* NULL in a wheel */
    const char *wheel_path;                              /* NULL: no wheel */
};

bool stage_export(const struct export_request *req, struct arena *a, struct export_files *out,
                  struct error *err);

/* An exported folder, read back. The json_t's are in the arena. */
struct exported {
    const char *dir;
    json_t *table, *record; /* launches.json, record.json */
    const char *name;       /* name of the package */
    struct device device;   /* it was judged on */
    enum language target;   /* of its source, as the record says */
    struct text source;     /* NAME.cu, NAME.triton */
};

/* How the source in an export is called. Not .py: nothing there may be run but what is ours. */
const char *stage_export_source(const char *name, enum language target, struct arena *a);
/* The language of a run, from its options. */
enum language stage_export_target(const json_t *record);

bool stage_export_read(const char *dir, struct arena *a, struct exported *out, struct error *err);
/* Is its Python what this cutegen writes, and does the folder hold nothing else? *why is NULL if
 * so, else the difference. */
bool stage_export_python(const struct exported *e, struct arena *a, const char **why,
                         struct error *err);
/* Its C loader: none, this cutegen's own, a different one, or for another processor. */
enum export_native {
    EXPORT_NATIVE_NONE,
    EXPORT_NATIVE_SAME,
    EXPORT_NATIVE_DIFFERS,
    EXPORT_NATIVE_ELSEWHERE
};
enum export_native stage_export_native(const struct exported *e, struct arena *a,
                                       const char **name);
/* The code of a case in the form the runner loads; a file that differs from what was judged is an
 * error. */
bool stage_adopt(struct stage *st, const struct exported *from, size_t number, struct arena *a,
                 struct build_result *out, struct error *err);

/* ---- single commands: doctor, ask, models, prompt, edit, simt -------- */

bool stage_doctor(const struct settings *settings, struct arena *a, json_t **report,
                  struct error *err);

/* The device's peaks: measured now and stored, or as already known. New reference. */
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
    const char *task_path, *source_path; /* source: the kernel that the prompt is about, if any */
    const struct verdict *verdict;       /* its verdict; NULL: a placeholder text is used */
    /* Returns what the store knows about the described task; NULL: nothing is added. */
    bool (*known)(void *ctx, const struct task *task, const struct device *device, struct arena *a,
                  const char **text, struct error *err);
    void *ctx;
};
bool stage_prompt(const struct settings *settings, const struct prompt_preview *what,
                  struct arena *a, struct request *out, struct error *err);

/* Passages of CuTe's headers and sections of the guides that match some words or a compile error:
 * {"passages": [{"where", "text"}]}, best first. New reference. */
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
    int sample;   /* run only this many blocks of each grid; 0: all */
};
bool stage_simt_run(const struct settings *settings, const struct simt_options *options,
                    struct arena *a, json_t **report, struct error *err);

/* Runs a program with simt as its GPU. {"program", "exit", "launches", "findings": [FINDING],
 * "refused": [{"kernel", "text"}], "device"}; a new reference. */
bool stage_simt_exec(const struct settings *settings, const char *const *argv, struct arena *a,
                     json_t **report, struct error *err);
json_t *stage_sarif(const json_t *report); /* its findings; a new reference */

#endif
