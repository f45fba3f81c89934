/* support.h - what the ABI tests share: compile a plan from text, run it in the planner. */
#ifndef TESTS_ABI_SUPPORT_H
#define TESTS_ABI_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "toolchain/builder.h"
#include "toolchain/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct arena *a;
    struct tools tools;
    struct builder *builder; /* NULL: no NVRTC on this machine */
    char *dir;
    json_t *request;
};

static const char request_text[] =
    "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": [128, "
    "1]}],"
    " \"outputs\": [{\"name\": \"y\", \"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": [128, "
    "1]},"
    " {\"name\": \"sum\", \"dtype\": \"f32\", \"shape\": [16], \"strides\": [1]}],"
    " \"scalars\": [{\"name\": \"scale\", \"type\": \"float\", \"value\": 1.5}],"
    " \"device\": {\"arch\": 90, \"sm_count\": 132, \"smem_block_bytes\": 232448, \"l2_bytes\": "
    "62914560}}";

static int fixture_open(void **state)
{
    struct fixture *f = xmalloc(sizeof *f);
    struct error err = {0};
    f->a = arena_new();
    tools_look(&(struct tools_config){0}, f->a, &f->tools);
    if (f->tools.kernel_include == NULL)
        return -1;
    if (f->tools.nvrtc == NULL)
        print_message("[  SKIPPED ] no NVRTC on this machine: no plan is compiled\n");
    else if (!builder_start(&(struct builder_config){.tools = &f->tools,
                                                     .no_cache = getenv("CUTEGEN_CACHE") == NULL},
                            &f->builder, &err))
        return -1;
    if (!dir_temp("abi", f->a, &f->dir, &err) ||
        !json_parse(text_of(request_text), "request", &f->request, &err))
        return -1;
    *state = f;
    return 0;
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    builder_stop(f->builder);
    dir_remove(f->dir, &err);
    json_decref(f->request);
    arena_free(f->a);
    xfree(f);
    return 0;
}

static void check_machine(bool ok, const struct error *err)
{
    if (!ok)
        fail_msg("the machine: %s (%s)", err->text, err->hint);
}

/* Compiles and runs a plan; the verdict is the first that is not PASS. */
static inline struct verdict judge(struct fixture *f, const char *source, json_t **launches)
{
    struct verdict v;
    struct error err = {0};
    const char *ptx;
    *launches = NULL;
    check_machine(
        plan_compile(f->builder, text_of(source), "candidate.cu", f->dir, f->a, &ptx, &v, &err),
        &err);
    if (v.kind == VERDICT_PASS)
        check_machine(
            plan_run(ptx, f->request, text_of(source), "candidate.cu", f->a, launches, &v, &err),
            &err);
    return v;
}

static bool has(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

#endif
