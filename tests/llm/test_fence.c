/* test_fence.c - which block of a reply is the source, and that no letter of it is lost. */
#include "llm/edit/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define PLAN   "CUTEGEN_PLAN(call) { return 0; }\n"
#define KERNEL "__global__ void k() {}\n"

static const struct code_case {
    const char *name, *reply, *want; /* want NULL: no code */
} cases[] = {
    {"a plain block", "Here:\n```cpp\n" PLAN "```\nDone.", PLAN},
    {"a block without a language", "```\n" PLAN "```", PLAN},
    {"tildes", "~~~cuda\n" PLAN "~~~\n", PLAN},
    {"CRLF fences", "```cpp\r\n" PLAN "```\r\n", PLAN},
    {"longer fences hold shorter ones", "````\n```\n" PLAN "````\n", "```\n" PLAN},
    {"code that begins with the letters of the language", "```cuda\ncuda_x = 1; " PLAN "```\n",
     "cuda_x = 1; " PLAN},
    {"code that begins with json", "```json\njson " PLAN "```\n", "json " PLAN},
    {"blank lines at both ends stay", "```cpp\n\n" PLAN "\n```", "\n" PLAN "\n"},
    {"an indented fence loses its own indentation only",
     "1. so:\n   ```cpp\n     " PLAN "   x\n   ```\n", "  " PLAN "x\n"},
    {"a quoted fence", "> ```cpp\n> " PLAN "> ```\n", PLAN},
    {"a fence behind prose", "Here it is: ```cpp\n" PLAN "```\n", PLAN},
    {"code on the line of the fence", "```#include <a>\n" PLAN "```\n", "#include <a>\n" PLAN},
    {"a fence closed behind the last line", "```cpp\n" PLAN "int x;```\nSo.", PLAN "int x;"},
    {"a plan wins over a later sketch", "```cpp\n" PLAN "```\nlike\n```cpp\nint x;\n```\n", PLAN},
    {"a kernel wins over a sketch", "```cpp\n" KERNEL "```\n```cpp\nint x;\n```\n", KERNEL},
    {"a plan wins over a kernel", "```cpp\n" PLAN "```\n```cpp\n" KERNEL "```\n", PLAN},
    {"the last of two plans wins", "```cpp\nA " PLAN "```\nNo, rather:\n```cpp\nB " PLAN "```\n",
     "B " PLAN},
    {"reasoning does not win", "```cpp\nA " PLAN "```\n<think>\n```cpp\nB " PLAN "```\n</think>",
     "A " PLAN},
    {"reasoning without an opening tag",
     "hm\n```cpp\nB " PLAN "```\n</think>\n```cpp\nA " PLAN "```", "A " PLAN},
    {"reasoning is better than nothing", "<think>\n```cpp\n" PLAN "```\n</think>\nas above", PLAN},
    {"a block never closed but whole", "```cpp\n" PLAN, PLAN},
    {"a block cut in the middle", "```cpp\n" PLAN "void f() {\n  int x", NULL},
    {"a block cut inside an #if", "```cpp\n#ifdef X\n" PLAN, NULL},
    {"no fence at all", PLAN, PLAN},
    {"prose only", "I cannot do that.", NULL},
    {"a page of markdown around it", "```markdown\nText\n```cpp\n" PLAN "```\nmore\n```\n", PLAN},
    {"a diff is not source", "```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-" PLAN "```\n", NULL},
    {"inline code is not a block", "use ```x``` and ```y``` then\n```cpp\n" PLAN "```\n", PLAN},
    {"a brace in a string does not count", "```cpp\n" PLAN "const char *s = \"{\"; // {\n",
     PLAN "const char *s = \"{\"; // {\n"},
    {"empty", "", NULL},
};

#define IMPORT  "import triton\n"
#define PYKERN  "@triton.jit\ndef k(x):\n    pass\n"
#define PYPLAN  IMPORT PYKERN "def plan(p):\n    k[(1,)](p.inputs[0])\n"
#define DSLPLAN "import cutlass\n@cute.kernel\ndef k(x):\n    pass\ndef plan(p):\n    pass\n"

static const struct python_case {
    const char *name, *reply;
    enum language want;
    const char *code, *reason; /* one of the two is NULL */
} python_cases[] = {
    {"a plan in Python", "So:\n```python\n" PYPLAN "```\n", LANGUAGE_TRITON, PYPLAN, NULL},
    {"a block without a language", "```\n" PYPLAN "```\n", LANGUAGE_TRITON, PYPLAN, NULL},
    {"a plan wins over a later kernel", "```py\n" PYPLAN "```\n```python\n" PYKERN "```\n",
     LANGUAGE_TRITON, PYPLAN, NULL},
    {"a kernel wins over a later sketch", "```py\n" PYKERN "```\n```python\nx = 1\n```\n",
     LANGUAGE_TRITON, PYKERN, NULL},
    {"a block of C++ beside it does not count",
     "```python\n" PYPLAN "```\nIn CUDA:\n```cpp\n" PLAN KERNEL "```\n", LANGUAGE_TRITON, PYPLAN,
     NULL},
    {"no fence at all", PYPLAN, LANGUAGE_TRITON, PYPLAN, NULL},
    {"a block never closed but whole", "```python\n" PYPLAN, LANGUAGE_TRITON, PYPLAN, NULL},
    {"a block cut in the middle", "```python\n" PYPLAN "    k[(2,)](p.inp", LANGUAGE_TRITON, NULL,
     "ends in the middle: brackets"},
    {"a block cut in a string", "```python\n" PYPLAN "x = 'abc", LANGUAGE_TRITON, NULL,
     "ends in the middle: brackets or strings"},
    {"brackets in strings and comments do not count", "```python\n" PYPLAN "x = '(' # [\n",
     LANGUAGE_TRITON, PYPLAN "x = '(' # [\n", NULL},
    {"CUDA for Triton", "```cpp\n" PLAN KERNEL "```\n", LANGUAGE_TRITON, NULL,
     "written in CUDA C++, and this run wants Triton"},
    {"CUDA that says it is Python", "```python\n" PLAN KERNEL "```\n", LANGUAGE_TRITON, NULL,
     "written in CUDA C++, and this run wants Triton"},
    {"the DSL for Triton", "```python\n" DSLPLAN "```\n", LANGUAGE_TRITON, NULL,
     "written in the CuTe DSL, and this run wants Triton"},
    {"Triton for the DSL", "```python\n" PYPLAN "```\n", LANGUAGE_CUTEDSL, NULL,
     "written in Triton, and this run wants the CuTe DSL"},
    {"the DSL", "```python\n" DSLPLAN "```\n", LANGUAGE_CUTEDSL, DSLPLAN, NULL},
    {"Triton for CuTe", "```python\n" PYPLAN "```\n", LANGUAGE_CUTE, NULL,
     "written in Python, and this run wants CuTe C++"},
    {"Triton for CUDA", "```python\n" PYPLAN "```\n", LANGUAGE_CUDA, NULL,
     "written in Python, and this run wants CUDA C++"},
    {"prose only", "I cannot do that.", LANGUAGE_TRITON, NULL, "```python"},
};

static void a_language_of_python_is_told_from_others(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(python_cases); i++) {
        const struct python_case *c = &python_cases[i];
        struct arena *a = arena_new();
        const char *reason = "";
        struct text got = {"", 0};
        bool found = fence_code(text_of(c->reply), c->want, a, &got, &reason);

        if (c->code ? !found || !text_equal(got, text_of(c->code))
                    : found || !strstr(reason, c->reason)) {
            print_error("case '%s': %s\n", c->name, found ? got.data : reason);
            bad++;
        }
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

static void the_right_block_is_the_source_to_the_letter(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *a = arena_new();
        struct text got = {"", 0};
        const char *reason = NULL;
        bool found = fence_code(text_of(cases[i].reply), LANGUAGE_CUTE, a, &got, &reason);
        bool ok = cases[i].want ? found && text_equal(got, text_of(cases[i].want))
                                : !found && reason && reason[0];

        if (!ok) {
            print_error("case '%s': %s '%.*s'\n", cases[i].name, found ? "found" : "not found",
                        (int)got.len, got.data);
            bad++;
        }
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

static void the_change_line_is_taken_from_prose_only(void **state)
{
    struct arena *a = arena_new();

    (void)state;
    assert_string_equal(
        fence_change(text_of("x\n**CHANGE:** wider loads\n```\nCHANGE: no\n```\n"), a),
        "wider loads");
    assert_string_equal(fence_change(text_of("CHANGE: one\nChange: two"), a), "two");
    assert_null(fence_change(text_of("nothing to say"), a));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_language_of_python_is_told_from_others),
        cmocka_unit_test(the_right_block_is_the_source_to_the_letter),
        cmocka_unit_test(the_change_line_is_taken_from_prose_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
