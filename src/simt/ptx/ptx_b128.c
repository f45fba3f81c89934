/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_b128.c - 128-bit registers: the reader declares each as two 64-bit ones
 * in a row, and here every instruction on them becomes instructions on those.
 *
 * What clusterlaunchcontrol.try_cancel answers is such a register too: x and y of the cluster's
 * first block in the lower half, z in the upper one, which has its bit 32 set if there was a
 * cluster to cancel (hopper/bulk_copy.c). The queries are then moves and a comparison.
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

static struct opnd pair_of(struct arena *a, struct opnd lower, struct opnd upper)
{
    struct opnd list = {.kind = OPND_VEC, .reg = -1, .reg2 = -1, .target = -1, .count = 2};
    list.list = arena_array(a, 2, sizeof *list.list);
    list.list[0] = lower;
    list.list[1] = upper;
    return list;
}

static void plain_insn(struct insn *in, struct arena *a, enum ptx_op op, enum ptx_mod mod, int args)
{
    in->op = op;
    in->mod_count = 0;
    if (op == OP_SETP)
        in->mods[in->mod_count++] = MOD_NE;
    in->mods[in->mod_count++] = (uint16_t)mod;
    in->type = op == OP_SETP ? PT_U64 : PT_B64;
    in->arg_count = args;
    in->args = arena_array(a, (size_t)args, sizeof *in->args);
}

/* clusterlaunchcontrol.query_cancel as instructions on the two halves; 0: not a known form. */
static int split_query(const struct insn *in, struct arena *a, struct insn out[2])
{
    static const struct opnd none = {.kind = OPND_SINK, .reg = -1, .reg2 = -1, .target = -1};
    const struct opnd *d = &in->args[0];
    struct opnd of[2];
    if (!halves(&in->args[1], of))
        return 0;
    if (insn_has_mod(in, MOD_IS_CANCELED)) {
        plain_insn(&out[0], a, OP_SETP, MOD_U64, 3);
        out[0].args[0] = *d;
        out[0].args[1] = of[1];
        out[0].args[2] = (struct opnd){.kind = OPND_INT, .reg = -1, .reg2 = -1, .target = -1};
        return 1;
    }
    bool all = insn_has_mod(in, MOD_FIRST_CTAID), y = insn_has_mod(in, MOD_FIRST_CTAID_Y);
    bool z = insn_has_mod(in, MOD_FIRST_CTAID_Z);
    if (all ? d->kind != OPND_VEC || d->count != 4
            : !y && !z && !insn_has_mod(in, MOD_FIRST_CTAID_X))
        return 0;
    for (int i = 0; i < (all ? 2 : 1); i++) {
        plain_insn(&out[i], a, OP_MOV, MOD_B64, 2);
        out[i].args[0] = all ? pair_of(a, d->list[2 * i], i ? none : d->list[1])
                             : pair_of(a, y ? none : *d, y ? *d : none);
        out[i].args[1] = of[all ? i : z];
    }
    return all ? 2 : 1;
}

int ptx_split_wide(const struct insn *in, struct arena *a, struct insn out[2])
{
    bool mov = in->op == OP_MOV, ld = in->op == OP_LD, st = in->op == OP_ST;
    struct opnd x[2], y[2];
    if (in->type != PT_B128 || in->arg_count != 2 || in->mod_count + 1 >= MAX_MODS)
        return 0;
    out[0] = out[1] = *in;
    if (in->op == OP_CLUSTERLAUNCHCONTROL && insn_has_mod(in, MOD_QUERY_CANCEL))
        return split_query(in, a, out);
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
        struct opnd list = pair_of(a, x[0], x[1]);
        retype(&out[0], true);
        out[0].args = arena_array(a, 2, sizeof *out[0].args);
        memcpy(out[0].args, in->args, 2 * sizeof *out[0].args);
        out[0].args[value] = list;
        return 1;
    }
    return 0;
}
