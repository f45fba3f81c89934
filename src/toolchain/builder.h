/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - turn device code into PTX and cubin.
 *
 * A builder is a warm process that holds NVRTC with CuTe precompiled. Start
 * one per core and keep it. A crash or a missed deadline inside it is a
 * verdict on the kernel; the next compile gets a new process. It is confined: it can read NVRTC and
 * headers, but no user files.
 *
 *     if (!builder_start(&config, &b, err)) ...              the machine is broken
 *     if (!builder_compile(b, &req, a, &built, err)) ...     likewise
 *     if (built.verdict.kind != VERDICT_PASS) ...            the kernel is bad
 *     builder_stop(b);                                       also after errors; NULL is fine
 *
 * A build with the same source, names, options, headers and compiler comes from the cache
 * (build_cache.h) without asking the process.
 */
#ifndef TOOLCHAIN_BUILDER_H
#define TOOLCHAIN_BUILDER_H

#include "base/error.h"
#include "base/proc.h"
#include "model.h"
#include "toolchain/tools.h"

struct builder;

struct builder_config {
    const struct tools *tools; /* borrowed until builder_stop() */
    const char *warm_arch;     /* precompile CuTe for it at once, in the background; NULL: later */
    bool no_cache;
    const struct shared_files *share; /* kernels of other machines; NULL: none. Also borrowed */
    /* kernels that take longer are precompiled for their next edit, in parallel; 0: never */
    int learn_ms;
    const struct child_source *source; /* provides its process; NULL: started here */
};

struct build_request {
    struct text source;         /* borrowed */
    const char *name;           /* the user's name for the file; NULL: candidate.cu */
    const json_t *launches;     /* from plan_run(): its kernels are built, its arguments checked */
    const json_t *names;        /* without launches: kernel instantiations, ["gemm<128, 128>"] */
    const char *arch;           /* "sm_90a", "compute_80" */
    bool cubin;                 /* also make a cubin; without one resources are unknown */
    const char *work_dir;       /* exists; takes the files */
    bool cute;                  /* refuse code that does not access memory through CuTe */
    const char *mark;           /* builder.c's own: NULL */
    const char *const *defines; /* "X=1", NULL-terminated; may be NULL */
    int deadline_ms; /* CPU time of the compiler; on a busy machine more wall time is allowed */
};

bool builder_start(const struct builder_config *config, struct builder **out, struct error *err);
/*
 * Fills verdict, work_dir, ptx_path, cubin_path, log_path, names, resources,
 * build_ms and cached; module_path is the cubin's where there is one. Other members are not
 * changed. Besides compile errors the verdict may be BAD_LAUNCH (arguments that do not fit the
 * kernel) or REFUSED (the code keeps state, or only shows CuTe): ptx_check.h, ptx_cute.h.
 */
bool builder_compile(struct builder *b, const struct build_request *req, struct arena *a,
                     struct build_result *out, struct error *err);
void builder_stop(struct builder *b);

/* ---- for plan.c ------------------------------------------------------------- */

struct builder_question {
    const char *line;   /* docs/architecture.md, Builder */
    struct text source; /* what is being compiled, for the verdict */
    int deadline_ms;    /* as in build_request */
};

/*
 * Asks the process, starting one if necessary. *answer is NULL if it was late or died, which the
 * verdict says; else a new reference.
 */
bool builder_ask(struct builder *b, const struct builder_question *q, struct arena *a,
                 json_t **answer, struct verdict *v, struct error *err);
/* As in a request. */
const char *builder_source(struct text source, struct arena *a);
const struct tools *builder_tools(const struct builder *b);
bool builder_caches(const struct builder *b);
const struct shared_files *builder_share(const struct builder *b);
const char *builder_headers(const struct builder *b); /* hash of include/cutegen */

#endif
