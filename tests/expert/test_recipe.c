/* test_recipe.c - recipes read and composed, sources tidied, changes as edits. */
#include "base/fs.h"
#include "base/json.h"
#include "expert/compose/format_source.h"
#include "expert/compose/recipe.h"
#include "expert/compose/source_edits.h"
#include "expert/graph/expr.h"
#include "expert/graph/graph.h"
#include "llm/edit/edit.h"

#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "//! recipe toy: a toy\n//! fact big: x\n//! step one: do one\n//! step two: do two\n"         \
    "//!   needs: one\n//! step three: do three\n//!   needs: one\n//!   always: big\n//! text\n"

static const struct compose_case {
    const char *name, *body;
    unsigned steps;
    const char *want;
} compositions[] = {
    {"a slot is filled", "int $x;\n", 0, "int size;\n"},
    {"braces end a slot's name", "int ${x}s;\n", 0, "int sizes;\n"},
    {"the first branch that holds is taken",
     "//! if one\na\n//! elif two\nb\n//! else\nc\n//! end\n", 3, "a\n"},
    {"a later branch when the first does not hold",
     "//! if one\na\n//! elif two\nb\n//! else\nc\n//! end\n", 2, "b\n"},
    {"else when none holds", "//! if one\na\n//! elif two\nb\n//! else\nc\n//! end\n", 0, "c\n"},
    {"facts and steps mix, or binds least", "//! if one and not big or two\na\n//! end\nz\n", 1,
     "z\n"},
    {"what is always done comes with what it needs", "//! if three\na\n//! end\nz\n", 1, "a\nz\n"},
    {"and not before", "//! if three\na\n//! end\nz\n", 2, "z\n"},
    {"not", "//! if not one\na\n//! end\nz\n", 0, "a\nz\n"},
    {"nested blocks", "//! if big\n//! if one\na\n//! end\nb\n//! end\n", 0, "b\n"},
    {"each runs once per item and sees the outer slots", "//! each item\n$n of $x;\n//! end\n", 0,
     "1 of size;\n2 of size;\n"},
    {"facts of an item", "//! each item\n//! if odd\n$n\n//! end\n//! end\n", 0, "1\n"},
    {"an empty slot takes its line with it", "a\n    $nothing\nb\n", 0, "a\nb\n"},
    {"a value of several lines is indented as its line", "    $lines\n", 0, "    p;\n    q;\n"},
    {"blank lines come singly", "\n\na\n\n\nb\n\n", 0, "a\n\nb\n"},
    {"comments at line ends are aligned", "int a; // (M)\nint bcd; // (N)\n", 0,
     "int a;   // (M)\nint bcd; // (N)\n"},
};

static struct scope *toy(struct arena *a)
{
    struct scope *s = scope_new(a, NULL), *item;

    scope_fact(s, "big");
    scope_set(s, "x", "size");
    scope_set(s, "nothing", "%s", "");
    scope_set(s, "lines", "p;\nq;");
    item = scope_item(s, "item");
    scope_set(item, "n", "1");
    scope_fact(item, "odd");
    item = scope_item(s, "item");
    scope_set(item, "n", "2");
    return s;
}

static void a_recipe_composes_for_its_scope_and_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(compositions); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        struct recipe r;
        struct text got;
        char *source = arena_printf(a, "//! fact odd: x\n" HEAD "%s", compositions[i].body);

        if (!recipe_parse("toy.cu", text_of(source), a, &r, &err) ||
            !recipe_compose(&r, toy(a), compositions[i].steps, a, &got, &err))
            fail_msg("%s: %s", compositions[i].name, err.text);
        if (strcmp(got.data, compositions[i].want) != 0)
            fail_msg("%s: got\n%s", compositions[i].name, got.data);
        arena_free(a);
    }
}

static const struct broken_case {
    const char *name, *source, *says;
} broken[] = {
    {"no text", "//! recipe toy: x\n", "does not end with"},
    {"no name", "//! text\n", "no `recipe NAME`"},
    {"unknown directive in the head", "//! recipe toy: x\n//! stop\n//! text\n", "line 2"},
    {"a need that comes later", "//! recipe t: x\n//! step a: x\n//!  needs: b\n//! text\n",
     "must be declared before"},
    {"misspelt fact", HEAD "//! if bigg\na\n//! end\n", "line 10: unknown fact"},
    {"misspelt fact in a branch not taken", HEAD "//! if one\n//! if bigg\n//! end\n//! end\n",
     "line 11: unknown fact"},
    {"slot that is not filled", HEAD "int $y;\n", "nothing fills the slot 'y'"},
    {"if without end", HEAD "//! if one\na\n", "no `end` for 'if'"},
    {"end without if", HEAD "a\n//! end\n", "without an `if`"},
    {"unknown directive in the body", HEAD "//! whenever\n", "unknown directive"},
};

static void a_broken_recipe_is_told_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        struct recipe r;
        struct text got;

        if (recipe_parse("toy.cu", text_of(broken[i].source), a, &r, &err) &&
            recipe_compose(&r, toy(a), 0, a, &got, &err))
            fail_msg("%s: accepted", broken[i].name);
        assert_int_equal(err.kind, ERROR_MACHINE);
        if (!strstr(err.text, broken[i].says) || !strstr(err.text, "toy.cu"))
            fail_msg("%s: %s", broken[i].name, err.text);
        arena_free(a);
    }
}

/* Source lines go as far in as the directive is; each file is within the limit, what they come to
 * is not. */
static void includes_are_indented_and_limited(void **state)
{
    static const struct {
        const char *file, *says;
    } cases[] = {{"twice", "longer than 262144 bytes"}, {"circle", "deeper than"}};
    struct arena *a = arena_new();
    struct recipe indented;
    const char *home = getenv("CUTEGEN_HOME");
    char *dir, *recipes, *big = arena_alloc(a, 150000);
    struct error err = {0};

    (void)state;
    memset(big, '\n', 149999);
    assert_true(dir_temp("test-recipe", a, &dir, &err));
    recipes = path_join(a, dir, "recipes");
    assert_true(
        dir_make(recipes, &err) &&
        file_write(path_join(a, recipes, "big.cuh"), text_of(big), &err) &&
        file_write(path_join(a, recipes, "circle.cuh"), text_of("//! include circle\n"), &err) &&
        file_write(path_join(a, recipes, "twice.cu"),
                   text_of("//! recipe x: y\n//! text\n//! include big\n//! include big\nend\n"),
                   &err) &&
        file_write(path_join(a, recipes, "part.cuh"),
                   text_of("// part.cuh - a part\n//! if f\n  b;\n\n//! end\n"), &err) &&
        file_write(
            path_join(a, recipes, "part.cu"),
            text_of("//! recipe x: y\n//! text\na;\n    //! include part\n//! include part\n"),
            &err) &&
        file_write(path_join(a, recipes, "circle.cu"),
                   text_of("//! recipe x: y\n//! text\n//! include circle\n"), &err));
    home = home ? arena_strdup(a, home) : NULL;
    setenv("CUTEGEN_HOME", dir, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct recipe r;

        err = (struct error){0};
        if (recipe_load(cases[i].file, a, &r, &err) || !strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].file, err.text);
    }
    err = (struct error){0};
    if (!recipe_load("part", a, &indented, &err))
        fail_msg("%s", err.text);
    assert_string_equal(arena_strndup(a, indented.body.data, indented.body.len),
                        "a;\n//! if f\n      b;\n\n//! end\n//! if f\n  b;\n\n//! end\n");
    if (home)
        setenv("CUTEGEN_HOME", home, 1);
    else
        unsetenv("CUTEGEN_HOME");
    err = (struct error){0};
    dir_remove(dir, &err);
    arena_free(a);
}

static void long_lists_break_at_their_commas(void **state)
{
    struct arena *a = arena_new();
    struct text got = tidy_source(
        text_of("    return launch(first_argument_of_the_call, make_pair(second_argument, "
                "third_argument), fourth_argument_of_the_call, fifth);\n"),
        a);

    (void)state;
    assert_string_equal(
        got.data, "    return launch(first_argument_of_the_call, make_pair(second_argument, "
                  "third_argument),\n                  fourth_argument_of_the_call, fifth);\n");
    got = tidy_source(
        text_of("// a comment of many words, with commas, is left as it is, however long "
                "it may be, since a piece of it, on a line of its own, would be code\n"),
        a);
    assert_int_equal(strcspn(got.data, "\n"), got.len - 1);
    arena_free(a);
}

static const struct change_case {
    const char *name, *from, *to;
    int blocks;
} changes[] = {
    {"one line", "a\nb\nc\n", "a\nB\nc\n", 1},
    {"two places", "a\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n", 2},
    {"an insertion takes its neighbours in", "a\nb\n", "a\nx\nb\n", 1},
    {"a line that stands twice is made unique", "x\na\ny\nx\nb\ny\n", "x\na\ny\nX\nb\ny\n", 1},
    {"an insertion among equal lines", "{\n}\n{\n}\n{\n}\n", "{\n}\n{\nx\n}\n{\n}\n", 1},
    {"a removal", "a\nb\nc\nd\n", "a\nd\n", 1},
    {"at the start", "a\nb\n", "x\na\nb\n", 1},
    {"at the end", "a\nb\n", "a\nb\nx\n", 1},
    {"everything", "a\n", "b\n", 1},
    {"close together becomes one", "a\nb\nc\n", "A\nb\nC\n", 1},
    {"a blank line", "a\n\nb\n\nc\n", "a\n\nb\nc\n", 1},
};

static void a_change_applies_to_exactly_the_other_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct arena *a = arena_new();
        struct text blocks = change_blocks(text_of(changes[i].from), text_of(changes[i].to), a);
        char *reply = arena_printf(a, "CHANGE: x\n\n```\n%s```\n", blocks.data);
        struct edit_result r;

        edit_apply(text_of(changes[i].from), text_of(reply), a, &r);
        if (r.status != EDIT_APPLIED || strcmp(r.source.data, changes[i].to) != 0)
            fail_msg("%s: %s\n%s", changes[i].name, r.reason, reply);
        assert_int_equal(r.edits, changes[i].blocks);
        arena_free(a);
    }
}

/* Random edits of random sources with few different lines: the worst for uniqueness. */
static void any_change_applies_to_exactly_the_other_source(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct arena *a = arena_new();
        char from[256] = "", to[256] = "";
        struct edit_result r;
        struct text blocks;

        for (int i = 0; i < 40; i++) {
            char line[3] = {(char)('a' + (seed = seed * 1103515245u + 12345u) / 65536 % 3), '\n',
                            0};
            unsigned dice = (seed = seed * 1103515245u + 12345u) / 65536 % 16;

            memcpy(from + strlen(from), line, 3);
            if (dice == 0)
                line[0] = 'z';
            if (dice != 1)
                memcpy(to + strlen(to), line, 3);
            if (dice == 2)
                memcpy(to + strlen(to), "y\n", 3);
        }
        blocks = change_blocks(text_of(from), text_of(to), a);
        if (strcmp(from, to) == 0) {
            assert_int_equal(blocks.len, 0);
        } else {
            edit_apply(text_of(from), text_of(arena_printf(a, "```\n%s```\n", blocks.data)), a, &r);
            if (r.status != EDIT_APPLIED || strcmp(r.source.data, to) != 0)
                fail_msg("round %d: %s\n%s", round, r.reason, blocks.data);
        }
        arena_free(a);
    }
}

static const struct expr_case {
    const char *op, *args, *kwargs, *want; /* want NULL: not known */
} exprs[] = {
    {"aten.add.Tensor", "[{\"node\":0},{\"value\":2}]", "{}", "return x + 2.0f;"},
    {"aten.add_.Tensor", "[{\"node\":0},{\"value\":2}]", "{}", "return x + 2.0f;"},
    {"aten.add.Tensor", "[{\"node\":0},{\"value\":2}]", "{\"alpha\":{\"value\":3}}",
     "return x + 3.0f * 2.0f;"},
    {"aten.gelu.default", "[{\"node\":0}]", "{\"approximate\":{\"text\":\"tanh\"}}",
     "return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));"},
    {"aten.gelu.default", "[{\"node\":0}]", "{}",
     "return 0.5f * x * (1.0f + erff(0.707106781f * x));"},
    {"aten.clamp.default", "[{\"node\":0},{\"none\":true},{\"value\":1}]", "{}",
     "return x > 1.0f ? 1.0f : x;"},
    {"aten.clamp.default", "[{\"node\":0},{\"value\":-1}]", "{}", "return x < -1.0f ? -1.0f : x;"},
    {"aten.pow.Tensor_Scalar", "[{\"node\":0},{\"value\":2}]", "{}", "return x * x;"},
    {"aten.pow.Tensor_Scalar", "[{\"node\":0},{\"value\":1.5}]", "{}", "return powf(x, 1.5f);"},
    {"aten.leaky_relu.default", "[{\"node\":0}]", "{}", "return x > 0.0f ? x : 0.01f * x;"},
    {"aten.leaky_relu.default", "[{\"node\":0},{\"value\":0.2}]", "{}",
     "return x > 0.0f ? x : 0.2f * x;"},
    {"aten.mul.Tensor", "[{\"node\":0},{\"text\":\"inf\"}]", "{}",
     "return x * __int_as_float(0x7f800000);"},
    {"aten.div.Tensor_mode", "[{\"node\":0},{\"value\":3}]",
     "{\"rounding_mode\":{\"text\":\"floor\"}}", "return floorf(x / 3.0f);"},
    {"aten.softplus.default", "[{\"node\":0}]", "{}", "return x > 20.0f ? x : log1pf(expf(x));"},
    {"aten.cumsum.default", "[{\"node\":0},{\"value\":1}]", "{}", NULL},
    {"aten.mul.Tensor", "[{\"node\":0},{\"text\":\"what\"}]", "{}", NULL},
};

static void an_operator_is_written_as_c(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(exprs); i++) {
        struct arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[8],\"strides\":[1]}],"
            "\"outputs\":[{\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[8],\"strides\":[1]}],"
            "\"graph\":[{\"id\":0,\"op\":\"input\",\"index\":0,\"dtype\":\"f32\",\"shape\":[8]},"
            "{\"id\":1,\"op\":\"%s\",\"args\":%s,\"kwargs\":%s,\"dtype\":\"f32\",\"shape\":[8]},"
            "{\"op\":\"output\",\"args\":[{\"node\":1}],\"index\":0}]}",
            exprs[i].op, exprs[i].args, exprs[i].kwargs);
        struct graph *g = arena_alloc(a, sizeof(*g));
        struct expr e = {.g = g, .a = a};
        const char *body, *why = "";
        struct error err = {0};
        json_t *description = NULL;

        if (!json_parse(text_of(text), "a graph", &description, &err) ||
            !graph_read(description, a, g, &why))
            fail_msg("%s%s", err.text, why);
        e.leaf[0] = "x";
        assert_int_equal(expr_knows(&g->nodes[1], a), exprs[i].want != NULL);
        assert_int_equal(expr_body(&e, &g->nodes[1], &body, &why), exprs[i].want != NULL);
        if (exprs[i].want)
            assert_string_equal(body, exprs[i].want);
        else
            assert_non_null(strstr(why, exprs[i].op));
        json_decref(description);
        arena_free(a);
    }
}

static const struct fast_case {
    const char *dtype, *op, *want, *helpers;
} fasts[] = {
    {"f32", "aten.gelu.default", "return 0.5f * x * (1.0f + erff(0.707106781f * x));", ""},
    {"f16", "aten.gelu.default", "return half_gelu(x);", "fast_exp2\nhalf_gelu\n"},
    {"bf16", "aten.selu.default",
     "return x > 0.0f ? 1.05070099f * x : 1.75809934f * half_expm1(x);", "fast_exp2\nhalf_expm1\n"},
    {"f32", "aten.softplus.default", "return fast_softplus(x);", "fast_exp2\nfast_softplus\n"},
    {"bf16", "aten.softplus.default", "return fast_softplus(x);", "fast_exp2\nfast_softplus\n"},
    {"f32", "aten.sqrt.default", "return sqrtf(x);", ""},
    {"f64", "aten.sqrt.default", "return sqrt(x);", ""},
    {"f64", "aten.selu.default",
     "return x > 0.0 ? 1.0507009873554805 * x : 1.7580993408473766 * expm1(x);", ""},
    {"f64", "aten.sign.default", "return double(x > 0.0) - double(x < 0.0);", ""},
    {"f64", "aten.isinf.default", "return fabs(x) == __longlong_as_double(0x7ff0000000000000);",
     ""},
    {"f16", "aten.nan_to_num.default",
     "return x != x ? 0.0f : (x == __int_as_float(0x7f800000) ? 65504.0f : (x == "
     "-__int_as_float(0x7f800000) ? -65504.0f : x));",
     ""},
};

static void a_fast_form_suits_its_dtype_and_brings_its_helper_once(void **state)
{
    static const char *const source =
        "//! recipe r: words\n//! text\n//! each helper\n$helper\n//! end\n";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fasts); i++) {
        struct arena *a = arena_new();
        const char *t = fasts[i].dtype, *body, *why = "";
        const char *text = arena_printf(
            a,
            "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"%s\",\"shape\":[8],\"strides\":[1]}],"
            "\"outputs\":[{\"name\":\"y\",\"dtype\":\"%s\",\"shape\":[8],\"strides\":[1]}],"
            "\"graph\":[{\"id\":0,\"op\":\"input\",\"index\":0,\"dtype\":\"%s\",\"shape\":[8]},"
            "{\"id\":1,\"op\":\"%s\",\"args\":[{\"node\":0}],\"kwargs\":{},\"dtype\":\"%s\","
            "\"shape\":[8]},{\"op\":\"output\",\"args\":[{\"node\":1}],\"index\":0}]}",
            t, t, t, fasts[i].op, t);
        struct graph *g = arena_alloc(a, sizeof(*g));
        struct expr e = {.g = g, .a = a, .fast = true};
        struct scope *s = scope_new(a, NULL);
        struct recipe r;
        struct text composed;
        struct error err = {0};
        json_t *description = NULL;

        if (!json_parse(text_of(text), "a graph", &description, &err) ||
            !graph_read(description, a, g, &why) ||
            !recipe_parse("r.cu", text_of(source), a, &r, &err))
            fail_msg("%s%s", err.text, why);
        e.leaf[0] = "x";
        assert_true(expr_body(&e, &g->nodes[1], &body, &why));
        assert_string_equal(body, fasts[i].want);
        expr_helpers(body, s, a);
        expr_helpers(body, s, a);
        assert_true(recipe_compose(&r, s, 0, a, &composed, &err));
        assert_string_equal(composed.data, fasts[i].helpers);
        json_decref(description);
        arena_free(a);
    }
}

/* A name in C, and nothing that only contains it. */
static const char *find_name(const char *at, const char *end, const char *name)
{
    size_t len = strlen(name);

    for (; (at = strstr(at, name)) && at < end; at += len)
        if (!isalnum((unsigned char)at[-1]) && at[-1] != '_' && !isalnum((unsigned char)at[len]) &&
            at[len] != '_')
            return at;
    return NULL;
}

/* A plan of several parts may give `cutegen_memset` other memory (compose/kernel_chain.c), so the
 * pointer must not have been used before. */
static void what_a_plan_clears_is_not_used_before(void **state)
{
    static const char clear[] = "cutegen_memset(call, ";
    struct arena *mine = arena_new();
    struct error err = {0};
    char *folder;
    DIR *d;
    int clears = 0;

    (void)state;
    assert_true(home_data("recipes", mine, &folder, &err));
    d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        struct arena *a;
        struct text t;
        char *name, *made;
        const char *first, *used;

        if (!strstr(e->d_name, ".cu"))
            continue;
        a = arena_new();
        assert_true(file_read(path_join(a, folder, e->d_name), 1 << 20, a, &t, &err));
        for (const char *at = t.data; (at = strstr(at, clear)); at += strlen(clear), clears++) {
            name = arena_strndup(a, at + strlen(clear), strcspn(at + strlen(clear), ","));
            made = arena_printf(a, "*%s = ", name);
            for (first = NULL, used = t.data; (used = strstr(used, made)) && used < at; used++)
                first = used;
            if (!first)
                fail_msg("%s clears %s, which is no variable of its plan", e->d_name, name);
            if (find_name(first + strlen(made), at, name))
                fail_msg("%s uses %s before it is cleared", e->d_name, name);
        }
        arena_free(a);
    }
    closedir(d);
    arena_free(mine);
    assert_true(clears > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_composes_for_its_scope_and_steps),
        cmocka_unit_test(a_broken_recipe_is_told_with_its_line),
        cmocka_unit_test(includes_are_indented_and_limited),
        cmocka_unit_test(what_a_plan_clears_is_not_used_before),
        cmocka_unit_test(long_lists_break_at_their_commas),
        cmocka_unit_test(a_change_applies_to_exactly_the_other_source),
        cmocka_unit_test(any_change_applies_to_exactly_the_other_source),
        cmocka_unit_test(an_operator_is_written_as_c),
        cmocka_unit_test(a_fast_form_suits_its_dtype_and_brings_its_helper_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
