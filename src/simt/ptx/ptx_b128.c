/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_b128.c - 128-bit registers: the reader declares each as two 64-bit ones
 * in a row, and here every instruction on them becomes instructions on those.
 */
#include "simt/ptx/ptx_module.h"

#include <string.h>

/* {a, b} as it stands, or the two halves of a register. */
static bool halves(const struct opnd *o, struct opnd out[2])
{
    if (o->kind == OPND_VEC && o->count == 2) {
        memcpy(out, o->list, 2 * sizeof *out);
        return true;
    }
    out[0] = out[1] = *o;
    if (o->kind == OPND_REG)
        out[1].reg = o->reg + 1;
    return o->kind == OPND_REG || o->kind == OPND_SINK;
}

/* .b128 as .b64, or .v2.b64: once, so that there is room for it. */
static void retype(struct insn *in, bool vector)
{
    int at = 0;
    while (in->mods[at] != MOD_B128)
        at++;
    in->mods[at] = MOD_B64;
    in->type = PT_B64;
    if (!vector)
        return;
    memmove(&in->mods[at + 1], &in->mods[at], (size_t)(in->mod_count - at) * sizeof in->mods[0]);
    in->mods[at] = MOD_V2;
    in->mod_count++;
}

int ptx_split_wide(const struct insn *in, struct arena *a, struct insn out[2])
{
    bool mov = in->op == OP_MOV, ld = in->op == OP_LD, st = in->op == OP_ST;
    struct opnd x[2], y[2];
    if (in->type != PT_B128 || in->arg_count != 2 || in->mod_count + 1 >= MAX_MODS)
        return 0;
    out[0] = out[1] = *in;
    if (mov && halves(&in->args[0], x) && halves(&in->args[1], y)) {
        for (int i = 0; i < 2; i++) {
            retype(&out[i], false);
            out[i].args = arena_array(a, 2, sizeof *out[i].args);
            out[i].args[0] = x[i];
            out[i].args[1] = y[i];
        }
        return x[0].kind == OPND_SINK ? 1 : 2;
    }
    int value = ld ? 0 : 1;
    if ((ld || st) && halves(&in->args[value], x)) {
        struct opnd list = {.kind = OPND_VEC, .reg = -1, .reg2 = -1, .target = -1, .count = 2};
        list.list = arena_array(a, 2, sizeof *list.list);
        memcpy(list.list, x, sizeof x);
        retype(&out[0], true);
        out[0].args = arena_array(a, 2, sizeof *out[0].args);
        memcpy(out[0].args, in->args, 2 * sizeof *out[0].args);
        out[0].args[value] = list;
        return 1;
    }
    return 0;
}
