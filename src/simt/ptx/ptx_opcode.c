/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_opcode.c - the tables made of ptx_ops.def, and looking words up in them. */
#include "simt/ptx/ptx_opcode.h"

#include <string.h>

static const struct type_row {
    const char *name;
    unsigned bytes;
} types[PT_COUNT] = {
    [PT_NONE] = {"", 0},
#define TYPE(name, text, bytes) [PT_##name] = {text, bytes},
#include "simt/ptx/ptx_ops.def"
};

static const char *const mods[MOD_COUNT] = {
    [MOD_NONE] = "",
    [MOD_SHAPE] = "shape",
    [MOD_UNKNOWN] = "?",
#define TYPE(name, text, bytes) [MOD_##name] = text,
#define MOD(name, text)         [MOD_##name] = text,
#include "simt/ptx/ptx_ops.def"
};

static const char *const sregs[SREG_COUNT] = {
    [SREG_UNKNOWN] = "",
#define SREG(name, text, c_text) [SREG_##name] = text,
#include "simt/ptx/ptx_ops.def"
};

static const struct opcode_row {
    const char *name;
    uint16_t traits[4];
} opcodes[OP_COUNT] = {
    [OP_UNKNOWN] = {"?", {0}},
#define OPCODE(name, text, cls, traits) [OP_##name] = {text, {LIST(TRAIT, traits)}},
#include "simt/ptx/ptx_ops.def"
};

enum ptx_type ptx_type_of(const char *name)
{
    for (int t = 1; t < PT_COUNT; t++)
        if (strcmp(types[t].name, name) == 0)
            return (enum ptx_type)t;
    return PT_NONE;
}

const char *ptx_type_name(enum ptx_type t)
{
    return types[t].name;
}

unsigned ptx_type_bytes(enum ptx_type t)
{
    return types[t].bytes;
}

const char *ptx_op_name(enum ptx_op op)
{
    return opcodes[op].name;
}

const char *ptx_mod_name(enum ptx_mod mod)
{
    return mods[mod];
}

bool ptx_op_is(enum ptx_op op, enum ptx_trait trait)
{
    const uint16_t *t = opcodes[op].traits;
    return ((unsigned)(t[0] | t[1] | t[2] | t[3]) & (unsigned)trait) != 0;
}

static void put(struct strmap *map, const char *text, int number)
{
    strmap_put(map, text, strlen(text), number);
}

struct ptx_words ptx_words_init(struct arena *a)
{
    struct ptx_words w = {strmap_init(a), strmap_init(a), strmap_init(a)};
    for (int i = OP_UNKNOWN + 1; i < OP_COUNT; i++)
        if (!ptx_op_is((enum ptx_op)i, TRAIT_INTERNAL))
            put(&w.op, opcodes[i].name, i);
    for (int i = MOD_NONE + 1; i < MOD_SHAPE; i++)
        put(&w.mod, mods[i], i);
    for (int i = SREG_UNKNOWN + 1; i < SREG_COUNT; i++)
        put(&w.sreg, sregs[i], i);
    return w;
}

enum ptx_op ptx_op_find(const struct ptx_words *w, const char *s, size_t len)
{
    int i = strmap_get(&w->op, s, len);
    return i < 0 ? OP_UNKNOWN : (enum ptx_op)i;
}

enum ptx_mod ptx_mod_find(const struct ptx_words *w, const char *s, size_t len)
{
    int i = strmap_get(&w->mod, s, len);
    return i < 0 ? MOD_UNKNOWN : (enum ptx_mod)i;
}

enum ptx_sreg ptx_sreg_find(const struct ptx_words *w, const char *s, size_t len)
{
    int i = strmap_get(&w->sreg, s, len);
    return i < 0 ? SREG_UNKNOWN : (enum ptx_sreg)i;
}
