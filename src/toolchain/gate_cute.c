/*
 * gate_cute.c - is CuTe used, or only shown?
 *
 * A kernel counts as CuTe when it includes a cute header and a tensor or
 * layout of CuTe does some of its work: a variable made by one of `makers`
 * that is used again, or an algorithm of CuTe applied. Layouts that are built
 * and never used do not count.
 */
#include "toolchain/gate.h"

#include <string.h>

static const char *const makers[] = {
    "make_tensor",
    "make_tensor_like",
    "make_fragment_like",
    "make_layout",
    "local_tile",
    "local_partition",
    "flat_divide",
    "tiled_divide",
    "zipped_divide",
    "logical_divide",
    "composition",
    "partition_S",
    "partition_D",
    "partition_A",
    "partition_B",
    "partition_C",
    "recast",
    "make_identity_tensor",
    "partition_fragment_A",
    "partition_fragment_B",
    "partition_fragment_C",
    "make_coord_tensor",
    "tile_to_shape",
    "make_ordered_layout",
    "Layout",
    "group_modes",
    "coalesce",
    "retile_S",
    "retile_D",
};

static bool is_maker(const struct token *t)
{
    for (size_t i = 0; i < ARRAY_LEN(makers); i++)
        if (token_is(t, makers[i]))
            return true;
    return false;
}

/* "NAME = ... maker(" within one statement: the name, or NULL. */
static const struct token *made_variable(const struct gate *g, size_t maker)
{
    for (size_t i = maker; i > 0 && maker - i < 24; i--) {
        const struct token *t = &g->t.at[i - 1];
        if (token_is(t, ";") || token_is(t, "{") || token_is(t, "}"))
            return NULL;
        if (token_is(t, "=") && i >= 2 && g->t.at[i - 2].kind == TOKEN_NAME)
            return &g->t.at[i - 2];
    }
    return NULL;
}

/* Used means more than `(void)name`. */
static bool used_later(const struct gate *g, size_t from, struct text name)
{
    size_t i = from;
    while (i < g->t.count && !token_is(&g->t.at[i], ";"))
        i++;
    for (; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i];
        if (t->kind != TOKEN_NAME || !text_equal(t->text, name) || !(gate_sees(g, i) & HALF_DEVICE))
            continue;
        if (i >= 2 && token_is(&g->t.at[i - 1], ")") && token_is(&g->t.at[i - 2], "void"))
            continue;
        return true;
    }
    return false;
}

static bool includes_cute(const struct gate *g)
{
    for (size_t i = 0; i + 3 < g->t.count; i++)
        if (g->t.at[i].first && token_is(&g->t.at[i], "#") &&
            token_is(&g->t.at[i + 1], "include") && (gate_sees(g, i) & HALF_DEVICE)) {
            const struct token *t = &g->t.at[i + 2];
            if (text_starts(t->text, "\"cute/") ||
                (token_is(t, "<") &&
                 (token_is(&g->t.at[i + 3], "cute") || token_is(&g->t.at[i + 3], "cutlass"))))
                return true;
        }
    return false;
}

/* An algorithm applied directly: copy(tiled, src, dst), gemm(mma, a, b, c). */
static bool applies_algorithm(const struct gate *g, size_t i)
{
    const struct token *t = &g->t.at[i];
    return (token_is(t, "copy") || token_is(t, "gemm") || token_is(t, "copy_if") ||
            token_is(t, "axpby")) &&
           i + 1 < g->t.count && token_is(&g->t.at[i + 1], "(");
}

void gate_check_cute(struct gate *g)
{
    int kernel_line = 0;
    bool works = false, built = false;
    for (size_t i = 0; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i], *name;
        if (!(gate_sees(g, i) & HALF_DEVICE) || t->kind != TOKEN_NAME)
            continue;
        if (token_is(t, "__global__") && kernel_line == 0)
            kernel_line = t->line;
        if (!is_maker(t))
            continue;
        built = true;
        name = made_variable(g, i);
        works = works || (name != NULL && used_later(g, i, name->text));
    }
    for (size_t i = 0; i < g->t.count && built && !works; i++)
        works = (gate_sees(g, i) & HALF_DEVICE) && applies_algorithm(g, i);
    if (kernel_line == 0)
        gate_add(g, 0, "no kernel", "no __global__ function under #ifdef CUTEGEN_DEVICE");
    else if (!includes_cute(g))
        gate_add(g, kernel_line, "no CuTe",
                 "the kernel must be written in CuTe: include "
                 "<cute/tensor.hpp> and index through its tensors");
    else if (!works)
        gate_add(g, kernel_line, "fake CuTe",
                 "%s: index global or shared memory through CuTe tensors or layouts",
                 built ? "CuTe layouts are built but never used" : "CuTe is included but not used");
}

void gate_check_cuda(struct gate *g)
{
    int kernel_line = 0;

    for (size_t i = 0; i < g->t.count && !kernel_line; i++)
        if ((gate_sees(g, i) & HALF_DEVICE) && token_is(&g->t.at[i], "__global__"))
            kernel_line = g->t.at[i].line;
    if (kernel_line == 0)
        gate_add(g, 0, "no kernel", "no __global__ function under #ifdef CUTEGEN_DEVICE");
    else if (includes_cute(g))
        gate_add(g, kernel_line, "CuTe",
                 "the target is plain CUDA C++: include no header of CuTe or CUTLASS");
}
