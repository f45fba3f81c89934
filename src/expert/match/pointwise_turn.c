/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise_turn.c - inputs that lie along another dimension than the output: tiles turned in
 * shared memory.
 */
#include "expert/match/pointwise.h"

#include <string.h>

/* The mode along which inputs lie that do not lie along the output's; 0: there is none. */
static int turn_mode(const struct fused *f)
{
    int turn = 0;

    for (int t = f->target_count; t < f->modes.tensors; t++) {
        if (f->modes.axis[t][0].stride < 2)
            continue;
        for (int m = 1; m < f->modes.count && !turn; m++)
            if (f->modes.axis[t][m].stride == 1)
                turn = m;
        if (!turn || f->modes.axis[t][turn].stride != 1)
            return 0;
    }
    for (int k = 0; k < f->target_count; k++)
        if (f->modes.axis[k][0].stride != 1)
            return 0;
    return turn && f->modes.size[0] >= 16 && f->modes.size[turn] >= 16 ? turn : 0;
}

enum { TURN_TILE = 64, TURN_BYTES = 48 * 1024 };

static int64_t offset_of(const struct fused *f, int t)
{
    const struct view *v =
        t < f->target_count ? &f->targets[t].view : &f->leaves[t - f->target_count].view;

    return view_offset(v, t < f->target_count ? &f->g->out[v->input] : &f->g->in[v->input]);
}

/* Can tiles be turned with 16-byte accesses on both sides? Each tensor lies along one of the two
 * modes, or along neither; the tiles of those that turn fit into shared memory. */
static bool turns_in_vectors(const struct fused *f, int turn, int vec)
{
    int64_t elements = 1, bytes = 0;

    for (int m = 0; m < f->modes.count; m++)
        elements *= f->modes.size[m];
    if (vec < 2 || vec > 8 || f->modes.size[0] % vec || f->modes.size[turn] % vec ||
        f->modes.size[0] < TURN_TILE || f->modes.size[turn] < TURN_TILE ||
        elements < (int64_t)2 * TURN_TILE * TURN_TILE * f->g->sm_count)
        return false;
    for (int t = 0; t < f->modes.tensors; t++) {
        const struct axis *x = f->modes.axis[t];
        int unit = x[0].stride > 1 ? turn : 0;

        if (x[unit].stride == 0)
            continue;
        if (offset_of(f, t) % vec)
            return false;
        for (int m = 0; m < f->modes.count; m++)
            if (m != unit && x[m].stride % vec)
                return false;
        if (unit)
            bytes += (int64_t)TURN_TILE * TURN_TILE *
                     expr_bytes(f->leaves[t - f->target_count].node->t.dtype);
    }
    return bytes <= TURN_BYTES;
}

/* Strides with the turned mode second and the others together. */
void pointwise_turn_tensor(const struct fused *f, struct scope *item, int t, const char *name)
{
    int turn = turn_mode(f);
    const char *rest = "";

    if (!turn)
        return;
    for (int m = 1; m < f->modes.count; m++)
        if (m != turn)
            rest = arena_printf(f->a, "%s%s%s", rest, *rest ? ", " : "",
                                pointwise_stride(f, t, m, name));
    scope_set(item, "turn_stride", "make_stride(%s, %s, make_stride(%s))",
              pointwise_stride(f, t, 0, name), pointwise_stride(f, t, turn, name),
              *rest ? rest : "_0{}");
    if (f->modes.axis[t][0].stride > 1)
        scope_fact(item, "turns");
}

/* What 16-byte accesses along both modes assume of tensor t. */
static void turn_checks(struct fused *f, struct scope *s, int t, int turn, int vec)
{
    const struct axis *x = f->modes.axis[t];
    const char *name = t < f->target_count ? f->out_name[f->targets[t].view.input]
                                           : f->in_name[f->leaves[t - f->target_count].view.input];
    int unit = x[0].stride > 1 ? turn : 0;

    if (x[unit].stride == 0)
        return;
    for (int m = -1; m < f->modes.count; m++) {
        struct scope *item;

        if (m == unit || (m >= 0 && x[m].stride == 0))
            continue;
        item = scope_item(s, "turn_check");
        if (m < 0)
            scope_set(item, "condition", "cutegen_aligned(%s, 16)", name);
        else
            scope_set(item, "condition", "%s %% %d == 0", match_axis_stride(name, &x[m], f->a),
                      vec);
        scope_set(item, "text", "%s must lie on multiples of 16 bytes", name);
    }
}

void pointwise_turn(struct fused *f, struct match *out, int vec)
{
    struct scope *s = out->scope;
    int turn = turn_mode(f);
    const char *rest = "";

    for (int t = f->target_count; t < f->modes.tensors; t++)
        out->scattered = out->scattered || (!turn && f->modes.axis[t][0].stride > 1);
    if (turn)
        scope_fact(s, "turned");
    if (turn && turns_in_vectors(f, turn, vec)) {
        struct scope *item = scope_item(s, "turn_check");

        scope_fact(s, "turned_vectors");
        scope_set(item, "condition", "n0 %% %d == 0 && n%d %% %d == 0", vec, turn, vec);
        scope_set(item, "text", "the dimensions that are turned must be multiples of %d", vec);
        for (int t = 0; t < f->modes.tensors; t++)
            turn_checks(f, s, t, turn, vec);
    }
    for (int m = 1; m < f->modes.count; m++)
        if (m != turn)
            rest = arena_printf(f->a, "%s%sn%d", rest, *rest ? ", " : "", m);
    scope_set(s, "turn", "%d", turn);
    scope_set(s, "turn_rest", "make_shape(%s)", *rest ? rest : "_1{}");
}
