/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - modules and their kernels, translated when first needed.
 *
 * A module with variables is translated whole, since all its kernels share them. Without, each
 * kernel is translated when it is first launched: programs carry many that they never use.
 */
#include "simt/cuda/cuda.h"
#include "simt/emit/translate.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static struct cu_module *modules;

/* Strings of printf and assert hold no state. */
static bool is_state(const char *name)
{
    static const char *const strings[] = {"$str", "__unnamed_", "__func__", "__PRETTY_FUNCTION__",
                                          "_$_str"};

    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        if (strncmp(name, strings[i], strlen(strings[i])) == 0)
            return false;
    return true;
}

/* It is named a second time. Headers define objects that hold nothing and that no kernel uses. */
static bool is_used(struct text ptx, const char *name)
{
    size_t len = strcspn(name, " \t[;=");
    const char *end = ptx.data + ptx.len, *at = name + len;

    while ((at = memmem(at, (size_t)(end - at), name, len))) {
        at += len;
        if (at == end ||
            !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$", *at))
            return true;
    }
    return false;
}

static bool line_has_variable(struct text ptx, const char *line, const char *end)
{
    static const char *const skipped[] = {".visible", ".weak", ".extern", ".common"};
    bool space = false;

    while (line < end) {
        size_t len;

        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        len = 0;
        while (line + len < end && !strchr(" \t[;=", line[len]))
            len++;
        if (!len)
            return false;
        if (!space) {
            bool skip = false;

            for (size_t i = 0; i < ARRAY_LEN(skipped); i++)
                skip |= len == strlen(skipped[i]) && strncmp(line, skipped[i], len) == 0;
            space = (len == 7 && strncmp(line, ".global", 7) == 0) ||
                    (len == 6 && strncmp(line, ".const", 6) == 0);
            if (!space && !skip)
                return false;
        } else if (*line != '.' && !(*line >= '0' && *line <= '9')) {
            return is_state(line) && is_used(ptx, line);
        }
        line += len;
    }
    return false;
}

static bool has_variables(struct text ptx)
{
    const char *end = ptx.data + ptx.len;

    for (const char *p = ptx.data; p < end;) {
        const char *next = memchr(p, '\n', (size_t)(end - p));

        if (line_has_variable(ptx, p, next ? next : end))
            return true;
        p = next ? next + 1 : end;
    }
    return false;
}

int module_load(struct cuda *c, const void *image, struct cu_module **out)
{
    struct cu_module *m;
    struct arena *a;
    struct error err = {0};
    int rc;

    if (!image)
        return CU_INVALID_VALUE;
    a = arena_new();
    m = arena_alloc(a, sizeof *m);
    m->a = a;
    rc = fatbin_ptx(image, &c->gpu, a, &m->ptx);
    if (rc == CU_OK && !simt_kernel_names(m->ptx, a, &m->kernels, &m->kernel_count, &err)) {
        report_refusal(c, "module", &err);
        rc = CU_INVALID_PTX;
    }
    if (rc) {
        arena_free(a);
        return rc;
    }
    m->has_variables = has_variables(m->ptx);
    m->next = modules;
    modules = m;
    *out = m;
    return CU_OK;
}

/* Its code stays loaded: simt unloads when the device closes. */
void module_unload(struct cu_module *m)
{
    for (struct cu_module **at = &modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            arena_free(m->a);
            return;
        }
}

bool is_function(const void *handle)
{
    for (const struct cu_module *m = modules; m; m = m->next)
        for (const struct cu_function *f = m->functions; f; f = f->next)
            if (f == handle)
                return true;
    return false;
}

int module_function(struct cu_module *m, const char *name, struct cu_function **out)
{
    struct cu_function *f;

    for (f = m->functions; f; f = f->next)
        if (strcmp(f->name, name) == 0) {
            *out = f;
            return CU_OK;
        }
    for (size_t i = 0; i < m->kernel_count; i++)
        if (strcmp(m->kernels[i], name) == 0) {
            f = arena_alloc(m->a, sizeof *f);
            f->module = m;
            f->name = m->kernels[i];
            f->max_dynamic = 48 << 10;
            f->carveout = -1;
            f->next = m->functions;
            m->functions = f;
            *out = f;
            return CU_OK;
        }
    return CU_NOT_FOUND;
}

/* Its code, with the kernels named; *refused, if an instruction is: in which of them. */
static int translate(struct cuda *c, struct cu_module *m, const char *const *names, size_t n,
                     struct simt_module **out, const char **refused, struct error *err)
{
    struct simt_refusal refusal = {0};
    struct translate_options opt = {.refusal = &refusal};
    struct simt_built built = {0};
    struct arena *a = arena_new();
    bool ok = simt_compile(m->ptx, names, n, &opt, a, &built, err) &&
              simt_load(c->simt, built.so_path, out, err);

    *refused = NULL;
    for (size_t i = 0; refusal.kernel && i < n; i++)
        if (strcmp(names[i], refusal.kernel) == 0)
            *refused = names[i];
    arena_free(a);
    return ok ? CU_OK : err->kind == ERROR_JUDGED ? CU_INVALID_PTX : CU_OPERATING_SYSTEM;
}

static void leave_out(const char **names, size_t *n, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++)
        if (names[i] != name)
            names[kept++] = names[i];
    *n = kept;
}

/* A kernel with a refused instruction is left out; it is reported if it is launched. */
static int module_ready(struct cuda *c, struct cu_module *m)
{
    size_t n = m->kernel_count;
    const char **names;

    if (m->code || m->refused)
        return m->refused;
    names = arena_array(m->a, n, sizeof *names);
    memcpy(names, m->kernels, n * sizeof *names);
    for (;;) {
        struct left_out *x = arena_alloc(m->a, sizeof *x);

        m->refused = translate(c, m, names, n, &m->code, &x->kernel, &x->err);
        if (m->refused && x->kernel && n > 1) {
            x->next = m->left_out;
            m->left_out = x;
            leave_out(names, &n, x->kernel);
            continue;
        }
        if (m->refused)
            report_refusal(c, n == 1 ? names[0] : "module", &x->err);
        return m->refused;
    }
}

static int kernel_ready(struct cuda *c, struct cu_function *f)
{
    struct error err = {0};
    const char *refused;
    int rc = translate(c, f->module, &f->name, 1, &f->code, &refused, &err);

    if (rc)
        report_refusal(c, f->name, &err);
    return rc;
}

int function_ready(struct cuda *c, struct cu_function *f)
{
    int rc;

    if (f->ready)
        return CU_OK;
    rc = f->module->has_variables ? module_ready(c, f->module) : kernel_ready(c, f);
    if (rc)
        return rc;
    for (const struct left_out *x = f->module->left_out; x; x = x->next)
        if (strcmp(x->kernel, f->name) == 0) {
            report_refusal(c, f->name, &x->err);
            return CU_INVALID_PTX;
        }
    if (f->module->has_variables)
        f->code = f->module->code;
    if (!simt_kernel_info(f->code, f->name, &f->info))
        return CU_NOT_FOUND;
    f->ready = true;
    return CU_OK;
}

int module_variable(struct cuda *c, struct cu_module *m, const char *name, void **base,
                    size_t *bytes)
{
    bool named = memmem(m->ptx.data, m->ptx.len, name, strlen(name)) != NULL;
    int rc = named && m->kernel_count ? module_ready(c, m) : CU_NOT_FOUND;

    if (rc)
        return rc;
    if (!simt_module_variable(m->code, name, base, bytes))
        return CU_NOT_FOUND;
    memory_module_variable(*base, *bytes);
    return CU_OK;
}

/* ---- attributes and occupancy ---------------------------------------------- */

/* ptxas decides how many registers a kernel gets; this is what most need. */
enum { USUAL_REGISTERS = 32 };

/* Of ".target sm_80": 80. */
static int ptx_target(struct text ptx)
{
    const char *at = memmem(ptx.data, ptx.len < 4096 ? ptx.len : 4096, ".target sm_", 11);

    return at ? (int)strtol(at + 11, NULL, 10) : 0;
}

int function_attribute(struct cuda *c, struct cu_function *f, int attribute, int *out)
{
    int rc = function_ready(c, f);

    if (rc)
        return rc;
    switch (attribute) {
    case 0:
        *out = f->info.max_threads ? (int)f->info.max_threads : 1024;
        return CU_OK;
    case 1:
        *out = (int)f->info.static_shared;
        return CU_OK;
    case 3:
        *out = (int)f->info.local_bytes;
        return CU_OK;
    case 4:
        *out = USUAL_REGISTERS;
        return CU_OK;
    case 5: /* libraries choose by it which kernels they have */
        *out = ptx_target(f->module->ptx);
        return CU_OK;
    case 6:
        *out = c->gpu.major * 10 + c->gpu.minor;
        return CU_OK;
    case 8:
        *out = f->max_dynamic;
        return CU_OK;
    case 9:
        *out = f->carveout;
        return CU_OK;
    case 14:
        *out = f->cluster_allowed;
        return CU_OK;
    default:
        *out = 0;
        return attribute < 0 || attribute > 15 ? CU_INVALID_VALUE : CU_OK;
    }
}

int function_set(struct cu_function *f, int attribute, int value)
{
    if (attribute == 8)
        f->max_dynamic = value;
    else if (attribute == 9)
        f->carveout = value;
    else if (attribute == 14)
        f->cluster_allowed = value;
    return CU_OK;
}

int function_occupancy(struct cuda *c, struct cu_function *f, int threads, size_t dynamic, int *out)
{
    int rc = function_ready(c, f), warps = (threads + 31) / 32, blocks;
    size_t shared;

    if (rc)
        return rc;
    if (threads <= 0)
        return CU_INVALID_VALUE;
    shared = f->info.static_shared + dynamic + 1024; /* what the driver keeps of each block */
    blocks = c->gpu.threads_sm / 32 / warps;
    if (blocks > c->gpu.blocks_sm)
        blocks = c->gpu.blocks_sm;
    if (blocks > c->gpu.regs_sm / (USUAL_REGISTERS * 32 * warps))
        blocks = c->gpu.regs_sm / (USUAL_REGISTERS * 32 * warps);
    if ((size_t)blocks > (size_t)c->gpu.smem_sm_bytes / shared)
        blocks = (int)((size_t)c->gpu.smem_sm_bytes / shared);
    *out = threads > 1024 ? 0 : blocks;
    return CU_OK;
}
