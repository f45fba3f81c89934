/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - READ FIRST: the nouns of cutegen.
 *
 *     task -> candidate -> launch plan + binary -> verdict -> measurement -> next candidate
 *
 * Plain data, no behaviour. Everything points into an arena of its maker; nothing here is freed on
 * its own. Stages hand these to each other through the loop; the store writes them; the report
 * reads them.
 */
#ifndef CUTEGEN_MODEL_H
#define CUTEGEN_MODEL_H

#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

enum {
    MAX_TENSORS = 512, /* inputs, or outputs, of one task */
    MAX_DIMS = 8,
    MAX_FINDINGS = 32,
    MAX_BASELINES = 8,
};

/* ---- task: what to compute ----------------------------------------------- */

enum kernel_class {
    CLASS_POINTWISE,
    CLASS_REDUCTION,
    CLASS_GEMM,
    CLASS_CONVOLUTION,
    CLASS_ATTENTION,
    CLASS_OTHER,
    CLASS_COUNT
};

struct tensor_info {
    const char *name;  /* forward argument, or state_dict key */
    const char *dtype; /* "f32" "f16" "bf16" "f64" "i64" "i32" "i16" "i8" "u8" "bool" */
    const char *role;  /* "input" "parameter" "buffer" "output" */
    int dims;
    int64_t shape[MAX_DIMS], strides[MAX_DIMS]; /* in elements */
};

struct task {
    const char *name;   /* file stem */
    const char *path;   /* absolute */
    struct text source; /* the Python file */
    struct tensor_info in[MAX_TENSORS], out[MAX_TENSORS];
    int in_count, out_count;
    enum kernel_class class;
    const char *class_evidence;  /* one line: why it has this class */
    const char *scaled;          /* "N 2048 -> 256" or NULL: sizes as written */
    double bytes_min, flops_min; /* unavoidable memory traffic and arithmetic */
    json_t *description;         /* the oracle's complete answer (docs/architecture.md) */
};

/* ---- language: what a candidate is written in ------------------------------ */

enum language { LANGUAGE_CUTE, LANGUAGE_CUDA, LANGUAGE_TRITON, LANGUAGE_CUTEDSL, LANGUAGE_COUNT };

/* What differs between them for everyone but their compilers. */
struct language_facts {
    const char *name;   /* of --target, in JSON and in the store: "cutedsl" */
    const char *words;  /* in sentences: "the CuTe DSL" */
    const char *source; /* how verdicts call the file: "candidate.py" */
    const char *page;   /* the document on it; NULL: none */
    bool python;        /* a Python file with plan(p), not CUDA C++ */
};

extern const struct language_facts languages[LANGUAGE_COUNT]; /* src/model.c */
enum language language_named(const char *name); /* LANGUAGE_CUTE when the name is unknown */

/* ---- device: what it runs on ------------------------------------------- */

enum device_kind { DEVICE_SIMT, DEVICE_CUDA };

struct device {
    enum device_kind kind;
    int index;          /* of the CUDA device */
    const char *place;  /* CUDA: PCI bus address; "" when not known */
    const char *name;   /* "simt", "NVIDIA H200" */
    const char *models; /* simt: the GPU whose time is modelled, "H200" */
    const char *arch;   /* what code is built for: "sm_90a"; simt: "compute_80" */
    int sm_count;
    int cluster_blocks; /* simt: most blocks in a cluster; 0: not known */
    int64_t smem_block_bytes, l2_bytes, memory_bytes;
    /* Not in this machine: tasks are described and kernels built for it, but not run. */
    bool absent;
};

/* The label of a time that simt models for a GPU: "modelled", or "modelled, unvalidated" if no
 * kernel was ever measured on such a GPU. NULL: "modelled". */
const char *modelled_words(const char *models);
bool modelled_validated(const char *models);

/* ---- verdict: a closed list -------------------------------------------- */

#define VERDICTS(X)                                                                                \
    X(PASS, "pass", "built, ran, right")                                                           \
    X(UNATTESTED, "pass, unattested",                                                              \
      "right, but what computed it cannot be proven; never ranked")                                \
    X(REFUSED, "refused", "the gate does not let such code run")                                   \
    X(NO_CODE, "no code", "the reply held no kernel, or edits that do not apply")                  \
    X(COMPILE_ERROR, "compile error", "the compiler rejects the source")                           \
    X(COMPILE_TIMEOUT, "compile timeout", "the compiler was stopped at its deadline")              \
    X(BAD_PLAN, "bad plan", "the plan crashed, did not return, or described nonsense")             \
    X(BAD_LAUNCH, "bad launch", "a launch the device would reject")                                \
    X(CRASH, "crash", "the kernel faulted")                                                        \
    X(HANG, "hang", "the kernel did not end")                                                      \
    X(OUT_OF_MEMORY, "out of memory", "it asked for more memory than there is")                    \
    X(WRONG_VALUES, "wrong values", "outputs differ from the reference")                           \
    X(NON_FINITE, "non-finite", "NaN or infinity where the reference has a number")                \
    X(NOT_WRITTEN, "not written", "some outputs were never written")                               \
    X(GUARD_HIT, "guard hit", "it wrote past an output")                                           \
    X(INPUT_MODIFIED, "input modified", "it changed an input")                                     \
    X(UNSAFE_MEMORY, "unsafe memory", "out-of-bounds, misaligned or uninitialised access")         \
    X(RACE, "race", "two threads meet without synchronisation")                                    \
    X(IMPRECISE, "imprecise", "right in kind, but worse than the dtype's arithmetic allows")       \
    X(IMPOSSIBLE_TIME, "impossible time", "faster than the bytes and flops allow")                 \
    X(UNSTABLE, "unstable", "results or times differ from run to run")

enum verdict_kind {
#define VERDICT_ENUM(id, name, help) VERDICT_##id,
    VERDICTS(VERDICT_ENUM)
#undef VERDICT_ENUM
        VERDICT_COUNT
};

/* One observed defect, with its place in the source. */
struct finding {
    const char *kind;  /* "shared-memory race", "compile error", ... */
    const char *where; /* "kernel.cu:87", the user's line */
    const char *line;  /* that source line */
    const char *text;  /* what was seen: block, thread, address, both sides */
};

struct verdict {
    enum verdict_kind kind;
    const char *summary; /* one line for people */
    const char *detail;  /* several lines for the model and `show`; may be "" */
    const char *advice;  /* what to try; may be NULL */
    struct finding findings[MAX_FINDINGS];
    int finding_count;
};

/* ---- candidate: one source file and its build ------------------- */

struct candidate {
    int depth;   /* 0: first correct kernel */
    int attempt; /* number within the run, from 1 */
    int repair;  /* 0: as proposed; n: after the n-th repair */
    struct text source;
    const char *change;  /* one line: what was done */
    const char *steps;   /* builtin: names of its recipe steps, "a b c"; NULL: not known */
    const char *foreign; /* absolute path of a ModelNew module; NULL: `source` is a .cu file,
                            or Python with a plan */
};

struct build_result {
    struct verdict verdict;
    const char *work_dir; /* holds the files below */
    const char *ptx_path, *cubin_path, *log_path;
    const char *module_path; /* what the runner loads: .cubin, or simt's .so */
    const char *module_hash; /* its SHA-256 when it was built: the runner refuses any other */
    /* What is judged and exported: the cubin, or the PTX on simt; not read back. */
    struct text code, ptx;
    const char *code_hash, *ptx_hash; /* their SHA-256 */
    json_t *launches;                 /* launch list from the planner (docs/architecture.md) */
    json_t *names;                    /* name expression -> lowered name */
    json_t *resources;                /* kernel -> registers, smem, spills */
    bool trusted;    /* foreign: the user allows it to run unconfined where it has to */
    json_t *foreign; /* replaces all the above for a guest; NULL: a .cu file */
    int build_ms;
    bool cached;
};

/* An output's distance from the float64 truth, with the reference's own for comparison. */
struct accuracy {
    double max_abs, max_rel, rms_rel;
    double reference_max_abs, reference_max_rel, reference_rms_rel;
    int draws, distributions;
};

struct test_result {
    struct verdict verdict;
    struct accuracy accuracy;
    bool deterministic;
    const char *seed;         /* hex, to repeat it */
    const char *unchecked_by; /* acceptance: tools that could not run, "racecheck"; NULL: all did */
    /* A trivial answer, such as "zeros", that also passed every draw; or NULL. */
    const char *trivial;
    const char
        *accuracy_class;    /* "fp32", "TF32-class", "16-bit", "fp64", "exact"; NULL, "": none */
    const char *way;        /* how it was compared: "whole", "in 55 parts of 75 rows", or NULL */
    const char *unconfined; /* CUDA: what ran unconfined because the driver does not start in
                               confinement: "the task"; NULL: nothing did */
    json_t *counters;       /* simt: list, one object per launch; else NULL */
    int test_ms;
};

/* A candidate at one of many shapes (--shapes). */
struct shape_result {
    const char *label;        /* "BATCH=8" */
    double weight;            /* its weight in the geometric mean of times */
    json_t *inputs, *outputs; /* lists of TENSOR (docs/architecture.md) */
    struct verdict verdict;
    double time_us, floor_us;
    json_t *launches; /* its launch list; with it the call's scalars and how it was written */
    /* Hash of the code it ran: the same where one build serves several shapes. */
    const char *module_hash;
};

/* Final acceptance (--accept): what the additional checkers say about a kernel that passed. */
struct acceptance {
    struct verdict verdict; /* PASS: accepted */
    const char *note;       /* accepted: which tools checked it and which could not; else "" */
};

struct baseline {
    const char *name; /* "eager", "eager graph", "compile", "eager strict", ... */
    double cold_us, warm_us;
};

struct measurement {
    struct verdict verdict; /* PASS, UNATTESTED, IMPOSSIBLE_TIME or UNSTABLE */
    bool modelled;          /* simt: never printed as a measurement */
    double time_us;         /* the time candidates are ranked by: cold median, or modelled */
    double claimed_us;      /* the time a guest claims; time_us is 0 then: never ranked */
    double warm_us, spread; /* spread: relative, of the cold median */
    double floor_us;        /* roofline: no kernel can be faster than this */
    const char *bound;      /* "memory", "fp32", "issue", ... */
    const char *trivial; /* a sentence: why the time is meaningless; NULL or "": it is meaningful */
    struct baseline baselines[MAX_BASELINES];
    int baseline_count;
    json_t *parts; /* modelled: microseconds by resource */
    /* The machine it was taken on: JSON (stage/machine.c); NULL or "": unknown. */
    const char *machine;
};

/* modelled_words() of the GPU that a modelled time is for. */
const char *measurement_words(const struct measurement *m);

struct profile {
    const char *source; /* "ncu", "simt counters" */
    const char *text;   /* what the model reads */
    json_t *data;
};

/* ---- model calls -------------------------------------------------------- */

enum stage_kind {
    STAGE_SYNTHESIZE,
    STAGE_DIAGNOSE,
    STAGE_REPAIR,
    STAGE_OPTIMIZE,
    STAGE_KIND_COUNT
};

struct message {
    const char *role; /* "system" "user" "assistant" */
    struct text content;
};

struct error;
struct reply;
struct request;

struct call_order {
    const json_t *what; /* all but the key */
    const char *key;    /* borrowed from the vault; NULL: none */
};

/* Notified of a call while it is under way, from the thread that asks. */
struct call_watch {
    void *ctx;
    /* Called before each of its requests is sent, with the most the call can have cost once that
     * request has ended; cost_usd < 0: no price is known. False: the request is not sent. */
    bool (*begins)(void *ctx, const struct request *req, int64_t prompt_tokens,
                   int64_t output_tokens, double cost_usd, struct error *err);
    /* Makes a request in a process that outlives this one, so that a reply that is paid for is kept
     * even if this process is killed. Order and answer are those of llm_carry(). False: nothing was
     * sent; true without an answer: the outcome is unknown. NULL: requests are made in this
     * process. */
    bool (*carry)(void *ctx, const struct call_order *order, json_t **answer);
    /* Called as soon as the reply is complete, before anything else is done with it. */
    void (*received)(void *ctx, const struct reply *reply);
};

/* One question, stated twice: as messages for a language model and as data for the built-in
 * engineer. Messages are ordered from what never changes to what changes most, so that a provider's
 * prompt cache hits. */
struct request {
    enum stage_kind stage;
    const struct message *messages;
    size_t message_count;
    int max_output_tokens;
    const char *prompt_hash;        /* of the templates used */
    enum language target;           /* what is asked for */
    const struct call_watch *watch; /* NULL: no watcher */
    /* for `builtin` */
    bool predicted; /* begin with the composition predicted to be fastest, not the plain one */
    const struct task *task;
    const struct device *device;
    const struct candidate *current; /* synthesizing: the best kernel of earlier runs, or NULL */
    const struct verdict *verdict;   /* what is to be repaired; else NULL */
    const struct profile *profile;   /* NULL before its time */
    json_t *history;                 /* [{depth, change, verdict, time_us}], oldest first */
};

struct reply {
    struct text text;
    const char *model;                                   /* as the provider names it */
    const char *finish_reason;                           /* "stop" "length" ... */
    int64_t prompt_tokens, cached_tokens, output_tokens; /* -1: unknown */
    double cost_usd;                                     /* < 0: unknown */
    int latency_ms, retries;
    bool done; /* builtin, replay: it has nothing more to propose; text says why */
};

/* Whether the verdict's detail already contains this finding, so that it is not shown twice. */
bool finding_is_told(const struct verdict *v, const struct finding *f);

extern const char *const verdict_names[VERDICT_COUNT]; /* their printed names: src/model.c */
extern const char *const verdict_helps[VERDICT_COUNT];
extern const char *const class_names[CLASS_COUNT];
extern const char *const stage_names[STAGE_KIND_COUNT];

#endif
