/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - a text that processes on many machines change in turns.
 *
 *     if (!t->begin(t->ctx, a, &text, err)) ...      exclusive from here to end()
 *     t->end(t->ctx, changed, err)                   NULL: it stays as it was
 *
 * Whoever keeps texts (the store) gives one to whoever needs it, so that neither knows the other.
 * shared_files is the same for what is written once under a key and never changed.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"

struct shared_text {
    /* `text` lives in the arena; empty: it was never written. */
    bool (*begin)(void *ctx, struct arena *a, struct text *text, struct error *err);
    bool (*end)(void *ctx, const char *changed, struct error *err);
    void *ctx;
    const char *owner; /* who holds what is held in it: one at a time has that name */
};

struct shared_files {
    /* Exactly what was put under that key; false: there is nothing, or it cannot be had now. */
    bool (*get)(void *ctx, const char *key, struct arena *a, struct text *data);
    void (*put)(void *ctx, const char *key, struct text data); /* failure is not an error */
    /* Has it made by others from a source and a request (JSON); true once they say that it is
     * there, false: none does. NULL: there are no others to ask. From any thread. */
    bool (*make)(void *ctx, const char *key, struct text source, const char *request);
    bool offer; /* also what was here before is put there */
    void *ctx;
};

#endif
