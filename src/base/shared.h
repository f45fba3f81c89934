/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - a text that processes on many machines take turns changing.
 *
 *     if (!t->begin(t->ctx, a, &text, err)) ...      exclusive from here to end()
 *     t->end(t->ctx, changed, err)                   NULL: it is unchanged
 *
 * The store provides one to its users, so that neither depends on the other. shared_files is the
 * same for files that are written once under a key and never changed.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"

struct shared_text {
    /* `text` is in the arena; empty: it was never written. */
    bool (*begin)(void *ctx, struct arena *a, struct text *text, struct error *err);
    bool (*end)(void *ctx, const char *changed, struct error *err);
    void *ctx;
    /* the holder's name, unique at any time, for what the text records as held */
    const char *owner;
};

struct shared_files {
    /* Exactly what was put under that key; false: nothing was, or it cannot be fetched now. */
    bool (*get)(void *ctx, const char *key, struct arena *a, struct text *data);
    void (*put)(void *ctx, const char *key, struct text data); /* failure is not an error */
    /* Lets others make it from a source and a request (JSON). True once it is available; false:
     * no other did. NULL: there are no others to ask. May be called from any thread. */
    bool (*make)(void *ctx, const char *key, struct text source, const char *request);
    bool offer; /* also put what was cached here earlier */
    void *ctx;
};

#endif
