/* SPDX-License-Identifier: Apache-2.0 */
/* handed_planes.c - see handed_planes.h. */
#include "expert/compose/handed_planes.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    OWNERS = 1000,    /* planes belong to OWNERS + the number of the part that reads them */
    LAUNCH_ARGS = 32, /* of a kernel */
    PRODUCT_ARGS = 8, /* of the product, beside those of the form; one more where TMA stores */
    PARTS_ARGS = 3,   /* of the kernel that adds up parts */
    HANDED_ARGS = 3,  /* more of them */
};

static const struct scope *scope_at(const struct parts *p, int part)
{
    return p->at[p->at[part].form].match.scope;
}

static int64_t number(const struct scope *s, const char *name)
{
    return strtoll(scope_get(s, name), NULL, 10);
}

static bool is_convolution(const struct parts *p, int part)
{
    return strcmp(p->at[p->at[part].form].match.recipe, "convolution") == 0;
}

/* The convolution that makes a convolution's x, or -1. */
static int writer_of(const struct parts *p, int part)
{
    const struct scope *s = scope_at(p, part), *of;
    int writer = -1 - p->at[part].from[number(s, "x_index")];

    if (writer < 0 || !is_convolution(p, writer))
        return -1;
    of = scope_at(p, writer);
    return number(of, "c_out") == number(s, "c_in") &&
                   number(of, "out_d") * number(of, "out_h") * number(of, "out_w") ==
                       number(s, "in_d") * number(s, "in_h") * number(s, "in_w")
               ? writer
               : -1;
}

/* By what the two are, whatever their steps. */
static bool may_hand(const struct parts *p, int writer, int reader)
{
    const struct scope *of = scope_at(p, writer), *to = scope_at(p, reader);

    return scope_has(to, "products") && !scope_has(of, "narrow") && !scope_has(of, "depthwise") &&
           scope_has(of, "bounded") && !scope_has(of, "interleaved") && !scope_has(of, "y_last") &&
           !scope_has(to, "expand");
}

bool handed_may(const struct parts *p, int form)
{
    for (int i = 0; i < p->count; i++) {
        int writer = is_convolution(p, i) ? writer_of(p, i) : -1;

        if (writer >= 0 && may_hand(p, writer, i) &&
            (p->at[i].form == form || p->at[writer].form == form))
            return true;
    }
    return false;
}

/* Arguments of the kernel that writes a form's results, with what handing over takes. */
static int args_of(const struct scope *s, const struct recipe *r, unsigned steps)
{
    int count = 1;

    for (const char *c = scope_get(s, "params"); *c; c++)
        count += *c == ',';
    count += joined_has_step(r, steps, "split_sums") ? PARTS_ARGS : PRODUCT_ARGS;
    return count + joined_has_step(r, steps, "bulk") + HANDED_ARGS;
}

/* Is the largest magnitude of what a part adds to its sum there, if it adds something? */
static bool beside_is_known(const struct joined *j, int part, int *maker)
{
    const char *input = scope_get(scope_at(j->p, part), "beside_input");
    int from;

    *maker = -1;
    if (!input)
        return true;
    from = j->p->at[part].from[strtol(input, NULL, 10)];
    *maker = joined_maker(j, from);
    return *maker >= 0 || (j->x_part >= 0 && from == joined_from(j, j->x_part, "x_index"));
}

/* A form whose threads compute results by themselves. */
static bool is_plain(const struct joined *j, const struct recipe *recipes, const unsigned *steps,
                     int part)
{
    int form = j->p->at[part].form;

    return is_convolution(j->p, part) && !joined_has_step(&recipes[form], steps[form], "tensor") &&
           !scope_has(scope_at(j->p, part), "w_last") && joined_from(j, part, "w_index") >= 0;
}

/* Does this part write planes for the one behind, by the forms' steps? */
static bool hands_to(const struct joined *j, const struct recipe *recipes, const unsigned *steps,
                     int writer, int reader)
{
    int of = j->p->at[writer].form, to = j->p->at[reader].form, maker;

    return (j->has_form[of] || j->has_norms[of]) && j->has_form[to] &&
           may_hand(j->p, writer, reader) && joined_has_step(&recipes[of], steps[of], "chained") &&
           joined_has_step(&recipes[to], steps[to], "chained") &&
           joined_has_step(&recipes[to], steps[to], "wgmma") &&
           !joined_has_step(&recipes[of], steps[of], "aligned") && joined_is_ready(j, writer) &&
           args_of(scope_at(j->p, writer), &recipes[of], steps[of]) <= LAUNCH_ARGS &&
           beside_is_known(j, writer, &maker);
}

void handed_norms(struct joined *j, const struct recipe *recipes, const unsigned *steps)
{
    for (int i = 0; i < j->p->count; i++) {
        int writer = is_convolution(j->p, i) ? writer_of(j->p, i) : -1;
        bool *some = writer >= 0 ? &j->has_norms[j->p->at[writer].form] : NULL;

        if (!some || *some || !is_plain(j, recipes, steps, writer))
            continue;
        *some = true;
        *some = hands_to(j, recipes, steps, writer, i);
    }
    for (int i = 0; i < j->p->count; i++)
        if (j->has_norms[j->p->at[i].form] && !is_plain(j, recipes, steps, i))
            j->has_norms[j->p->at[i].form] = false; /* weights that a part computes */
}

static int64_t parts_of(const struct scope *s)
{
    return number(s, "parts_d") * number(s, "parts_h") * number(s, "parts_w");
}

void handed_find(struct joined *j, const struct recipe *recipes, const unsigned *steps)
{
    for (int i = 0; i < j->p->count && j->count; i++) {
        int writer = is_convolution(j->p, i) ? writer_of(j->p, i) : -1, before, maker;

        if (writer < 0 || !hands_to(j, recipes, steps, writer, i))
            continue;
        before = j->reader[writer] - 1;
        if (before >= 0 && parts_of(scope_at(j->p, before)) >= parts_of(scope_at(j->p, i)))
            continue; /* the one that is spared more */
        j->reader[writer] = i + 1;
        if (beside_is_known(j, writer, &maker) && maker >= 0)
            j->notes[j->p->at[maker].form] = true;
    }
    for (int i = 0; i < j->p->count; i++)
        if (j->reader[i]) {
            j->writer[j->reader[i] - 1] = i + 1;
            j->hands[j->p->at[i].form] = j->handed[j->p->at[j->reader[i] - 1].form] = true;
            j->hands_some = true;
        }
}

void handed_scope(const struct joined *j, int form, struct scope *s)
{
    const struct scope *plain = j->p->at[form].match.scope;

    if (j->handed[form])
        scope_fact(s, "handed");
    if (!j->hands[form])
        return;
    scope_fact(s, "hands");
    scope_set(s, "params", "%s, Handed behind, uint16_t *planes_behind, unsigned *words",
              scope_get(plain, "params"));
    scope_set(s, "names", "%s, behind, planes_behind, words", scope_get(plain, "names"));
    scope_set(s, "args",
              "%s, ((struct pooled_call *)call)->ready.behind, ((struct pooled_call "
              "*)call)->ready.planes_behind, ((struct pooled_call *)call)->ready.words",
              scope_get(plain, "args"));
}

void handed_put_type(const struct joined *j, struct buf *out)
{
    if (j->hands_some)
        buf_puts(out,
                 "// What a kernel must know that writes planes for the convolution behind. Places "
                 "are counted in words of `state`.\n"
                 "struct Handed {\n"
                 "    int there;               // 0: no planes are wanted\n"
                 "    int noted;               // 32 places for the largest magnitude of its "
                 "results\n"
                 "    int tops, tops_count;    // among them is that of its x\n"
                 "    int beside, beside_count; // and of what it adds\n"
                 "    int norms, norms_each;   // sums of its weights' magnitudes, so many lines "
                 "for an output channel\n"
                 "    int state;               // of the convolution behind\n"
                 "    int lost, lost_count;    // its weights that lose bits\n"
                 "    int top;                 // its scale: the largest becomes 2^top\n"
                 "    int row, channels, chunks; // of its planes: elements, of them high parts; "
                 "rows of a pixel\n"
                 "    int in_d, in_h, in_w, walk_d, walk_h, walk_w, lead_d, lead_h, lead_w;\n"
                 "    int stride_d, stride_h, stride_w;\n"
                 "    unsigned used_d, used_h, used_w;\n"
                 "};\n\n");
}

/* ---- the plan ---------------------------------------------------------------------- */

static const char *suffix_at(const struct joined *j, int part)
{
    return j->suffix[j->p->at[part].form];
}

/* Where the largest magnitude of a tensor is: a place and how many. */
static void put_top(const struct joined *j, int maker, struct buf *out)
{
    if (maker >= 0)
        buf_printf(out, "%d, 32, ", joined_noted(maker));
    else
        buf_printf(out, "%d, (int)tops, ", joined_words(j));
}

/* The sizes of the reader's planes. */
static void put_sizes(const struct joined *j, int reader, struct buf *out)
{
    static const char *const names[] = {"IN_D",   "IN_H",   "IN_W",   "WALK_D", "WALK_H",
                                        "WALK_W", "LEAD_D", "LEAD_H", "LEAD_W"};
    static const char *const strides[] = {"STRIDE_D", "STRIDE_H", "STRIDE_W"};
    static const char *const used[] = {"USED_D", "USED_H", "USED_W"};
    const char *x = suffix_at(j, reader);
    bool turned = scope_has(scope_at(j->p, reader), "transposed"); /* strides are not of x */

    buf_printf(out, "TOP%s, ROW%s, CHANNELS%s, CHUNKS_X%s,\n        ", x, x, x, x);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        buf_printf(out, "%s%s, ", names[i], x);
    for (size_t i = 0; i < ARRAY_LEN(strides); i++)
        buf_printf(out, "%s%s, ", turned ? "1" : strides[i], turned ? "" : x);
    for (size_t i = 0; i < ARRAY_LEN(used); i++)
        buf_printf(out, "%s%s%s", i ? ", " : "", used[i], x);
}

static void put_handed(const struct joined *j, int part, int reader, struct buf *out)
{
    const char *own = suffix_at(j, part), *x = suffix_at(j, reader);
    const char *input = scope_get(scope_at(j->p, part), "beside_input");
    int maker;

    buf_printf(out, "    struct Handed behind%d = {1, %d, ", part + 1, joined_noted(part));
    put_top(j, joined_maker(j, joined_from(j, part, "x_index")), out);
    beside_is_known(j, part, &maker);
    if (input)
        put_top(j, maker, out);
    else
        buf_puts(out, "0, 0, ");
    buf_printf(out, "\n        (int)((weights%d - (unsigned char *)state) / 4)", part + 1);
    if (j->has_form[j->p->at[part].form])
        buf_printf(out, " + ROWS%s * (STEPS%s * ROW%s / 2 + 2), EACH_K%s, ", own, own, own, own);
    else
        buf_puts(out, ", 1, ");
    buf_printf(out,
               "%d,\n        (int)((weights%d - (unsigned char *)state) / 4) + ROWS%s * (STEPS%s * "
               "ROW%s / 2 + 1), ROWS%s,\n        ",
               joined_state(reader), reader + 1, x, x, x, x);
    put_sizes(j, reader, out);
    buf_puts(out, "};\n");
}

void handed_put_planes(const struct joined *j, int part, struct arena *a, struct buf *out)
{
    int reader = j->reader[part] - 1;

    if (!j->hands[j->p->at[part].form])
        return;
    if (reader < 0) {
        buf_printf(out, "    struct Handed behind%d = {0, %d};\n", part + 1, joined_noted(part));
        return;
    }
    put_handed(j, part, reader, out);
    buf_printf(out,
               "    uint16_t *planes%d = (uint16_t *)pooled(call, &pool, %d, %s.shape[0] * "
               "PARTS%s * WALK%s * CHUNKS_X%s * ROW%s * 2);\n",
               reader + 1, OWNERS + reader + 1, part_tensor(j->p, -1 - part, a),
               suffix_at(j, reader), suffix_at(j, reader), suffix_at(j, reader),
               suffix_at(j, reader));
}

void handed_put_ready(const struct joined *j, int part, struct buf *out)
{
    if (!j->hands_some)
        return;
    if (j->writer[part])
        buf_printf(out, ", planes%d", part + 1);
    else
        buf_puts(out, ", 0");
    if (!j->hands[j->p->at[part].form])
        return;
    buf_printf(out, ", behind%d, ", part + 1);
    if (j->reader[part])
        buf_printf(out, "planes%d, state", j->reader[part]);
    else
        buf_puts(out, "(uint16_t *)state, state");
}

void handed_put_release(const struct joined *j, int part, struct buf *out)
{
    if (j->writer[part])
        buf_printf(out, "    give_back(&pool, %d);\n", OWNERS + part + 1);
}
