/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precompiler.h - a second process of a builder that has the last kernel precompiled
 * (precompiled_source.h).
 *
 * The builder forks it after a slow compile and continues; once the child is ready it gets the
 * requests that begin like that kernel. Its death does no harm: the builder then compiles itself.
 *
 *     struct precompiler *l = precompiler_new(3000);
 *     if (!precompiler_ask(l, request, device, line, a, &answer)) ... compile here
 *     precompiler_see(l, request, device, answer, serve, ctx);        after the answer was sent
 *
 * A builder's lives until the builder ends.
 */
#ifndef TOOLCHAIN_PRECOMPILER_H
#define TOOLCHAIN_PRECOMPILER_H

#include "base/mem.h"

#include <jansson.h>

struct precompiler;

/* The child's compile options. */
struct prelude {
    const char *header; /* the text of PRELUDE_NAME */
    const char *dir;    /* for its precompiled headers */
};
#define PRELUDE_NAME "cutegen_learned.h"

/* Compiles one request; one without "source" precompiles the prelude. NULL: it failed. */
typedef json_t *precompiler_compile(void *ctx, const json_t *request, const struct prelude *prelude,
                                    struct arena *a);

/* least_ms: precompile kernels whose compile took at least this long; 0: never. */
struct precompiler *precompiler_new(int least_ms);
void precompiler_free(struct precompiler *l); /* its child ends */
bool precompiler_ask(struct precompiler *l, const json_t *request, struct text device,
                     struct text line, struct arena *a, json_t **answer);
void precompiler_see(struct precompiler *l, const json_t *request, struct text device,
                     const json_t *answer, precompiler_compile *compile, void *ctx);

#endif
