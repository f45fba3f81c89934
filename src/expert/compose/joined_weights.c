/* SPDX-License-Identifier: Apache-2.0 */
/* joined_weights.c - see joined_weights.h. */
#include "expert/compose/joined_weights.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    LAUNCH_WEIGHTS = 27, /* of one launch, beside five other arguments */
    STATE_WORDS = 64,    /* of a part */
    NOTED = 32,          /* from this one on: places for the largest magnitude of its result */
    KEPT_MOST = 8192,    /* weights of a line in shared memory (recipes/conv_planes.cuh) */
};

static const struct scope *scope_of(const struct joined *j, int part)
{
    return j->p->at[j->p->at[part].form].match.scope;
}

/* The tensor that a part reads as its "x_index" or "w_index": as part.from says it. */
static int from_of(const struct joined *j, int part, const char *what)
{
    const char *index = scope_get(scope_of(j, part), what);

    return j->p->at[part].from[strtol(index, NULL, 10)];
}

bool joined_has_step(const struct recipe *r, unsigned steps, const char *name)
{
    for (int i = 0; i < r->step_count; i++)
        if (strcmp(r->steps[i].name, name) == 0)
            return steps >> i & 1;
    return false;
}

/* Does this form bring weights into planes? */
static bool has_planes(const struct part *form, const struct recipe *r, unsigned steps)
{
    return strcmp(form->match.recipe, "convolution") == 0 && joined_has_step(r, steps, "tensor") &&
           !joined_has_step(r, steps, "direct") &&
           !(joined_has_step(r, steps, "boxes") && scope_has(form->match.scope, "w_there"));
}

static bool is_narrow(const struct joined *j, int part)
{
    return scope_has(scope_of(j, part), "narrow");
}

/* The convolution whose largest magnitude is that of a part's x, or bounds it; or -1. Maxima over
 * windows have no other elements. */
static int maker_of(const struct joined *j, int part)
{
    int maker = -1 - from_of(j, part, "x_index");

    for (; maker >= 0; maker = -1 - j->p->at[maker].from[0]) {
        const struct match *m = &j->p->at[j->p->at[maker].form].match;

        if (strcmp(m->recipe, "convolution") == 0)
            return maker;
        if (strcmp(m->recipe, "pooling") != 0 || !scope_has(m->scope, "largest"))
            return -1;
    }
    return -1;
}

/* Is the largest magnitude of a part's x there before its first launch, or not needed? */
static bool is_ready(const struct joined *j, int part)
{
    return is_narrow(j, part) || maker_of(j, part) >= 0 ||
           (j->x_part >= 0 && from_of(j, part, "x_index") == from_of(j, j->x_part, "x_index"));
}

void joined_find(const struct parts *p, const struct recipe *recipes, const unsigned *steps,
                 struct joined *j)
{
    int ready = 0;

    *j = (struct joined){.p = p, .x_part = -1};
    for (int i = 0; i < p->count; i++)
        if (p->at[i].form == i)
            j->has_form[i] = has_planes(&p->at[i], &recipes[i], steps[i]);
    for (int i = 0; i < p->count; i++)
        if (j->has_form[p->at[i].form] && from_of(j, i, "w_index") < 0)
            j->has_form[p->at[i].form] = false; /* weights that a part computes */
    for (int form = 0; form < p->count; form++)
        for (int i = form; i < p->count; i++)
            if (j->has_form[form] && p->at[i].form == form) {
                j->at[j->count++] = i;
                if (!is_narrow(j, i) && from_of(j, i, "x_index") >= 0 &&
                    (j->x_part < 0 || i < j->x_part))
                    j->x_part = i;
            }
    for (int k = 0; k < j->count; k++) {
        int maker = is_narrow(j, j->at[k]) ? -1 : maker_of(j, j->at[k]);

        ready += is_ready(j, j->at[k]);
        if (maker >= 0)
            j->notes[p->at[maker].form] = true;
    }
    if (j->count < 2 || ready == 0) /* there would be more launches */
        *j = (struct joined){.p = p, .x_part = -1};
}

const struct scope *joined_scope(const struct joined *j, int form, struct arena *a)
{
    const struct scope *plain = j->p->at[form].match.scope;
    struct scope *s;

    if (!j->has_form[form] && !j->notes[form])
        return plain;
    s = scope_new(a, plain);
    if (j->has_form[form])
        scope_fact(s, "joined");
    if (j->notes[form]) {
        scope_fact(s, "noted");
        scope_set(s, "params", "%s, unsigned *top", scope_get(plain, "params"));
        scope_set(s, "names", "%s, top", scope_get(plain, "names"));
        scope_set(s, "args", "%s, ((struct pooled_call *)call)->ready.noted",
                  scope_get(plain, "args"));
    }
    return s;
}

/* ---- the launch -------------------------------------------------------------------- */

/* How many parts from the k-th on have the same form, in one launch. */
static int run_of(const struct joined *j, int k)
{
    int n = 1;

    while (k + n < j->count && (k + n) % LAUNCH_WEIGHTS != 0 &&
           j->p->at[j->at[k + n]].form == j->p->at[j->at[k]].form)
        n++;
    return n;
}

static int end_of(const struct joined *j, int start)
{
    return start + LAUNCH_WEIGHTS < j->count ? start + LAUNCH_WEIGHTS : j->count;
}

static const char *space_of(const struct joined *j, int part, struct arena *a)
{
    return j->spaces ? arena_printf(a, "part_%d::", j->p->at[part].form + 1) : "";
}

static const char *suffix_of(const struct joined *j, int part)
{
    return j->suffix[j->p->at[part].form];
}

static const char *type_of(const struct joined *j, int part)
{
    return scope_get(scope_of(j, part), "w_type");
}

/* Elements of shared memory: the longest line that is kept. */
static int64_t kept(const struct joined *j, int start)
{
    int64_t most = 1;

    for (int k = start; k < end_of(j, start); k++) {
        const struct part *part = &j->p->at[j->at[k]];
        const struct scope *s = scope_of(j, j->at[k]);
        int64_t each =
            strtol(scope_get(s, "c_in"), NULL, 10) / strtol(scope_get(s, "groups"), NULL, 10) *
            strtol(scope_get(s, "taps_d"), NULL, 10) * strtol(scope_get(s, "taps_h"), NULL, 10) *
            strtol(scope_get(s, "taps_w"), NULL, 10);

        if (!scope_has(part->match.scope, "narrow") && each <= KEPT_MOST && each > most)
            most = each;
    }
    return most;
}

/* The blocks of one form: a line each. */
static void put_form(const struct joined *j, int k, struct arena *a, struct buf *out)
{
    int n = run_of(j, k), part = j->at[k];
    const char *suffix = suffix_of(j, part), *space = space_of(j, part, a);

    if (n == 1) {
        buf_printf(out,
                   "    if (line < ROWS%s) {\n"
                   "        %sjoin_weights(w%d, weights, kept, line);\n",
                   suffix, space, part + 1);
    } else {
        buf_printf(out,
                   "    if (line < %d * ROWS%s) {\n"
                   "        int const i = line / ROWS%s;\n"
                   "        %sjoin_weights(",
                   n, suffix, suffix, space);
        for (int i = 0; i < n - 1; i++)
            buf_printf(out, "i == %d ? w%d :%s", i, j->at[k + i] + 1,
                       i % 8 == 7 ? "\n                     " : " ");
        buf_printf(out, "w%d, weights + i * WEIGHTS_BYTES%s, kept, line %% ROWS%s);\n",
                   j->at[k + n - 1] + 1, suffix, suffix);
    }
    buf_printf(out,
               "        return;\n"
               "    }\n"
               "    line -= %d * ROWS%s;\n"
               "    weights += %d * WEIGHTS_BYTES%s;\n",
               n, suffix, n, suffix);
}

static void put_kernel(const struct joined *j, int start, struct arena *a, struct buf *out)
{
    bool first = start == 0;

    buf_printf(out,
               "// The weights of convolutions, a block for each line%s.\n"
               "__global__ void __launch_bounds__(256)\n    prepare_weights_%d("
               "unsigned char *weights",
               !first           ? ""
               : j->x_part >= 0 ? "; zeros for what parts count; the largest magnitudes of an x"
                                : "; zeros for what parts count",
               start / LAUNCH_WEIGHTS + 1);
    if (first)
        buf_puts(out, ", unsigned *state");
    if (first && j->x_part >= 0)
        buf_puts(out, ", float const *x, int64_t count, int tops");
    for (int k = start; k < end_of(j, start); k++)
        buf_printf(out, ", %s const *w%d", type_of(j, j->at[k]), j->at[k] + 1);
    buf_printf(out,
               ")\n{\n"
               "    __shared__ float kept[%lld];\n"
               "    int line = blockIdx.x;\n",
               (long long)kept(j, start));
    if (first)
        buf_printf(out,
                   "    Tensor mState = make_tensor(make_gmem_ptr(state), Int<STATES>{}); "
                   "// (STATES)\n"
                   "    for (int i = line * 256 + threadIdx.x; i < STATES; i += gridDim.x * 256)\n"
                   "        mState(i) = 0;\n");
    for (int k = start; k < end_of(j, start); k += run_of(j, k))
        put_form(j, k, a, out);
    if (first && j->x_part >= 0)
        buf_printf(out, "    %slargest_of(x, state + STATES, count, line, tops);\n",
                   space_of(j, j->x_part, a));
    buf_puts(out, "}\n\n");
}

void joined_put_kernels(const struct joined *j, struct arena *a, struct buf *out)
{
    if (j->count)
        buf_printf(out, "constexpr int STATES = %d; // words of all parts\n\n",
                   STATE_WORDS * j->p->count);
    for (int start = 0; start < j->count; start += LAUNCH_WEIGHTS)
        put_kernel(j, start, a, out);
}

/* ---- the plan ---------------------------------------------------------------------- */

void joined_put_type(const struct joined *j, struct buf *out)
{
    if (j->count)
        buf_puts(out, "// What is there before a part's first launch.\n"
                      "struct ready_part {\n"
                      "    void *weights;        // of a convolution\n"
                      "    uint32_t *state;      // zeros\n"
                      "    uint32_t *noted;      // zeros: 32 places for what it makes\n"
                      "    const uint32_t *tops; // among them is the largest magnitude of its x\n"
                      "    int tops_count;       // 0: nothing has looked for it\n"
                      "};\n\n");
}

/* The launch relies on sizes that the parts check. */
static void put_checks(const struct joined *j, int k, struct buf *out)
{
    int part = j->at[k], w = from_of(j, part, "w_index");
    const struct tensor *t =
        &j->p->at[part].g->in[strtol(scope_get(scope_of(j, part), "w_index"), NULL, 10)];

    buf_printf(out,
               "    CUTEGEN_REQUIRE(call, cutegen_numel(&call->in[%d]) == %lld, "
               "\"the size of input %d is written into the kernel\");\n",
               w, (long long)tensor_numel(t), w);
}

static void put_launch(const struct joined *j, int start, struct buf *out)
{
    bool first = start == 0, looks = first && j->x_part >= 0;
    int number = start / LAUNCH_WEIGHTS + 1;

    buf_printf(out, "    int64_t lines%d = %s;\n", number, looks ? "tops" : "0");
    for (int k = start; k < end_of(j, start); k += run_of(j, k))
        buf_printf(out, "    lines%d += %d * ROWS%s;\n", number, run_of(j, k),
                   suffix_of(j, j->at[k]));
    buf_printf(out,
               "    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, prepare_weights_%d, "
               "cutegen_dim3(lines%d, 1, 1), cutegen_dim3(256, 1, 1), 0, weights%d",
               number, number, j->at[start] + 1);
    if (first)
        buf_puts(out, ", state");
    if (looks) {
        int x = from_of(j, j->x_part, "x_index");

        buf_printf(out,
                   ", CUTEGEN_DATA(float const, &call->in[%d]), cutegen_numel(&call->in[%d]), "
                   "(int)tops",
                   x, x);
    }
    for (int k = start; k < end_of(j, start); k++)
        buf_printf(out, ", CUTEGEN_DATA(%s const, &call->in[%d])", type_of(j, j->at[k]),
                   from_of(j, j->at[k], "w_index"));
    buf_puts(out, "));\n");
}

void joined_put_launches(const struct joined *j, struct buf *out)
{
    if (!j->count)
        return;
    for (int k = 0; k < j->count; k++)
        put_checks(j, k, out);
    buf_puts(out, "    int64_t weights_bytes = 0;\n");
    for (int k = 0; k < j->count; k += run_of(j, k))
        buf_printf(out, "    weights_bytes += %d * WEIGHTS_BYTES%s;\n", run_of(j, k),
                   suffix_of(j, j->at[k]));
    if (j->x_part >= 0) {
        int x = from_of(j, j->x_part, "x_index");

        buf_printf(out,
                   "    CUTEGEN_REQUIRE(call, cutegen_aligned(&call->in[%d], 16), "
                   "\"input %d must start on 16 bytes\");\n"
                   "    int64_t tops = cutegen_min(call->device.sm_count * 4, "
                   "cutegen_ceil_div(cutegen_numel(&call->in[%d]), 1024 * EVERY%s));\n",
                   x, x, x, suffix_of(j, j->x_part));
    }
    buf_printf(out,
               "    uint32_t *state = (uint32_t *)cutegen_workspace(call, (%d%s) * 4);\n"
               "    unsigned char *weights%d = (unsigned char *)cutegen_workspace(call, "
               "weights_bytes);\n",
               STATE_WORDS * j->p->count, j->x_part >= 0 ? " + tops" : "", j->at[0] + 1);
    for (int k = 1; k < j->count; k++)
        buf_printf(out, "    unsigned char *weights%d = weights%d + WEIGHTS_BYTES%s;\n",
                   j->at[k] + 1, j->at[k - 1] + 1, suffix_of(j, j->at[k - 1]));
    for (int start = 0; start < j->count; start += LAUNCH_WEIGHTS)
        put_launch(j, start, out);
}

void joined_put_ready(const struct joined *j, int part, struct buf *out)
{
    bool mine = false, looked;
    int maker;

    if (!j->count)
        return;
    for (int k = 0; k < j->count; k++)
        mine = mine || j->at[k] == part;
    looked = mine && !is_narrow(j, part) && is_ready(j, part);
    maker = looked ? maker_of(j, part) : -1;
    buf_printf(out, "    struct ready_part ready%d = {", part + 1);
    if (mine)
        buf_printf(out, "weights%d, ", part + 1);
    else
        buf_puts(out, "0, ");
    buf_printf(out, "state + %d, state + %d, ", STATE_WORDS * part, STATE_WORDS * part + NOTED);
    if (maker >= 0)
        buf_printf(out, "state + %d, 32};\n", STATE_WORDS * maker + NOTED);
    else if (looked)
        buf_printf(out, "state + %d, (int)tops};\n", STATE_WORDS * j->p->count);
    else
        buf_puts(out, "0, 0};\n");
}
