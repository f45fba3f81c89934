/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - check a candidate's tokens before anything is built or run.
 *
 * Four groups of rules: allowed includes, forbidden preprocessor tricks, allowed contents of a
 * plan, and state that would outlive a launch.
 */
#include "toolchain/gate.h"

#include "base/fs.h"
#include "toolchain/diag.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- what may be included ---------------------------------------------------- */

static const char *const device_headers[] = {
    "cutegen/kernel.h",
    "cute/*",
    "cutlass/*",
    "cuda/*",
    "cub/*",
    "nv/target",
    "cooperative_groups.h",
    "cooperative_groups/*",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "cuda_fp6.h",
    "cuda_fp4.h",
    "cuda_runtime.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "cuda_awbarrier.h",
    "cuda_awbarrier_primitives.h",
    "mma_shapes.h",
    "math_constants.h",
    "vector_types.h",
    "vector_functions.h",
    "device_launch_parameters.h",
    "stdint.h",
    "cstdint",
    "stddef.h",
    "cstddef",
    "stdbool.h",
};
static const char *const host_headers[] = {"cutegen/kernel.h", "stdint.h", "stddef.h", "stdbool.h"};

static bool name_matches(struct text t, const char *pattern)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*' || pattern[n - 1] == '^')
        return t.len > n - 1 && memcmp(t.data, pattern, n - 1) == 0 &&
               (pattern[n - 1] == '*' || isupper((unsigned char)t.data[n - 1]));
    return t.len == n && memcmp(t.data, pattern, n) == 0;
}

static bool listed(struct text t, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name_matches(t, list[i]))
            return true;
    return false;
}

/* The name between <> or "", taken from the text, because tokens would split it. */
static bool include_name(struct gate *g, size_t first, size_t end, struct text *out)
{
    const struct token *t = &g->t.at[first], *last = &g->t.at[end - 1];
    if (first >= end)
        return false;
    if (t->kind == TOKEN_STRING && end == first + 1 && t->text.len >= 2 && t->text.data[0] == '"') {
        *out = (struct text){t->text.data + 1, t->text.len - 2};
        return true;
    }
    if (!token_is(t, "<") || !token_is(last, ">"))
        return false;
    *out = (struct text){t->text.data + 1, (size_t)(last->text.data - t->text.data) - 1};
    return true;
}

static void check_include(struct gate *g, size_t hash, size_t end)
{
    int sees = gate_sees(g, hash), line = g->t.at[hash].line;
    struct text name;
    if (!include_name(g, hash + 2, end, &name)) {
        gate_add(g, line, "include", "an #include must name its header in <> or \"\"");
        return;
    }
    bool climbs = name.len == 0 || name.data[0] == '/' || memmem(name.data, name.len, "..", 2);
    if (climbs || !listed(name, device_headers, ARRAY_LEN(device_headers)))
        gate_add(
            g, line, "include",
            "<%.*s> may not be included: only cutegen/kernel.h, cute, cutlass and cuda headers",
            (int)(name.len < 80 ? name.len : 80), name.data);
    else if ((sees & HALF_HOST) && !listed(name, host_headers, ARRAY_LEN(host_headers)))
        gate_add(g, line, "include",
                 "<%.*s> stands where the plan sees it: put it under #ifdef CUTEGEN_DEVICE",
                 (int)(name.len < 80 ? name.len : 80), name.data);
}

/* ---- preprocessor ---------------------------------------------------------------- */

static bool starts_with(const struct token *t, const char *prefix)
{
    return text_starts(t->text, prefix);
}

/* What is judged must be what is exported, with any compiler. */
static void check_condition(struct gate *g, size_t hash, size_t end)
{
    static const char *const tells[] = {
        "CUTEGEN_EXPORT", "__CUDACC_RTC__", "__CUDACC__", "__NVCC__", "__cplusplus",
        "__has_include",  "__DATE__",       "__TIME__",   "__FILE__", "__COUNTER__"};
    for (size_t i = hash + 2; i < end; i++) {
        const struct token *t = &g->t.at[i];
        bool told = false;
        for (size_t k = 0; k < ARRAY_LEN(tells); k++)
            told = told || token_is(t, tells[k]);
        if ((gate_sees(g, hash) & HALF_HOST) && starts_with(t, "__"))
            told = true;
        if (told)
            gate_add(g, t->line, "condition",
                     "code may not depend on %.*s: what is judged is what is exported",
                     (int)t->text.len, t->text.data);
    }
}

static void check_define(struct gate *g, size_t hash, size_t end)
{
    const struct token *name = hash + 2 < end ? &g->t.at[hash + 2] : NULL;
    if (name == NULL)
        return;
    if (starts_with(name, "CUTEGEN_") || starts_with(name, "cutegen_") || starts_with(name, "__"))
        gate_add(g, name->line, "macro", "%.*s may not be defined or undefined here",
                 (int)name->text.len, name->text.data);
    for (size_t i = hash + 3; i + 1 < end; i++)
        if ((gate_sees(g, hash) & HALF_HOST) && token_is(&g->t.at[i], "#") &&
            token_is(&g->t.at[i + 1], "#"))
            gate_add(g, name->line, "macro", "## may not be used where the plan sees it");
}

static void check_directive(struct gate *g, size_t hash, size_t end)
{
    const struct token *word = hash + 1 < end ? &g->t.at[hash + 1] : NULL;
    if (word == NULL)
        return;
    if (token_is(word, "include"))
        check_include(g, hash, end);
    else if (token_is(word, "define") || token_is(word, "undef"))
        check_define(g, hash, end);
    else if (token_is(word, "if") || token_is(word, "ifdef") || token_is(word, "ifndef") ||
             token_is(word, "elif"))
        check_condition(g, hash, end);
    else if (token_is(word, "pragma")) {
        if ((gate_sees(g, hash) & HALF_HOST) && end > hash + 2 &&
            !token_is(&g->t.at[hash + 2], "once") && !token_is(&g->t.at[hash + 2], "unroll"))
            gate_add(g, word->line, "directive", "no #pragma where the plan sees it");
    } else if (!token_is(word, "else") && !token_is(word, "endif") && !token_is(word, "error") &&
               !token_is(word, "warning"))
        gate_add(g, word->line, "directive", "#%.*s may not be used", (int)word->text.len,
                 word->text.data);
}

/* Some compilers treat this as a splice and others do not, so they would read different sources. */
static void check_splices(struct gate *g)
{
    int line = 1;
    for (size_t i = 0; i < g->source.len; i++) {
        size_t k = i + 1;
        line += g->source.data[i] == '\n';
        if (g->source.data[i] != '\\')
            continue;
        while (k < g->source.len && (g->source.data[k] == ' ' || g->source.data[k] == '\t' ||
                                     g->source.data[k] == '\f' || g->source.data[k] == '\v'))
            k++;
        if (k > i + 1 && k < g->source.len &&
            (g->source.data[k] == '\n' || g->source.data[k] == '\r'))
            gate_add(g, line, "directive",
                     "a backslash with nothing but space behind it: remove one");
    }
}

static void check_directives(struct gate *g)
{
    for (size_t i = 0; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i];
        if (!t->first)
            continue;
        if (token_is(t, "%") && i + 1 < g->t.count && token_is(&g->t.at[i + 1], ":"))
            gate_add(g, t->line, "directive", "%%: may not stand for #");
        if (token_is(t, "#")) {
            size_t end = lex_directive_end(g->t, i);
            check_directive(g, i, end);
            i = end - 1;
        }
    }
}

/* ---- words ------------------------------------------------------------------------- */

static const struct word_rule {
    const char *word; /* a trailing * matches any rest, ^ one that begins with a capital */
    int half;         /* where it is refused */
    const char *reason;
} word_rules[] = {
    /* Harmless in the planner, but the exported plan is host code, which must not contain them. */
    {"asm", HALF_HOST, "no assembly in a plan"},
    {"__asm*", HALF_HOST, "no assembly in a plan"},
    {"__attribute__", HALF_HOST, "no attributes in a plan"},
    {"__declspec", HALF_HOST, "no attributes in a plan"},
    {"__builtin_*", HALF_HOST, "no compiler built-ins in a plan: arithmetic and the plan API only"},
    {"__sync_*", HALF_HOST, "no compiler built-ins in a plan: arithmetic and the plan API only"},
    {"__atomic_*", HALF_HOST, "no compiler built-ins in a plan: arithmetic and the plan API only"},
    {"_Pragma", HALF_HOST, "no pragmas in a plan"},
    {"extern", HALF_HOST, "a plan declares nothing from outside"},
    {"thread_local", HALF_HOST, "a plan keeps no state"},
    {"_Thread_local", HALF_HOST, "a plan keeps no state"},
    {"__thread", HALF_HOST, "a plan keeps no state"},
    {"__FILE__", HALF_HOST | HALF_DEVICE, "results may not depend on where they are compiled"},
    {"__DATE__", HALF_HOST | HALF_DEVICE, "results may not depend on when they are compiled"},
    {"__TIME__", HALF_HOST | HALF_DEVICE, "results may not depend on when they are compiled"},
    {"__managed__", HALF_DEVICE, "kernels keep no state between launches: no managed variables"},
    {"printf", HALF_DEVICE, "kernels do not print"},
    {"malloc", HALF_DEVICE, "kernels do not allocate: ask for cutegen_workspace() in the plan"},
    {"new", HALF_DEVICE, "kernels do not allocate: ask for cutegen_workspace() in the plan"},
    {"cudaMalloc*", HALF_HOST | HALF_DEVICE, "ask for cutegen_workspace() in the plan"},
    {"cudaLaunch*", HALF_HOST | HALF_DEVICE, "launches are the plan's: CUTEGEN_LAUNCH"},
    {"cublas^", HALF_HOST | HALF_DEVICE, "no libraries: the kernel is to be written"},
    {"cudnn^", HALF_HOST | HALF_DEVICE, "no libraries: the kernel is to be written"},
};

static void check_words(struct gate *g)
{
    for (size_t i = 0; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i];
        int sees = gate_sees(g, i);
        if (t->kind == TOKEN_PUNCT && token_is(t, "<") && i + 2 < g->t.count &&
            token_is(&g->t.at[i + 1], "<") && token_is(&g->t.at[i + 2], "<"))
            gate_add(g, t->line, "launch", "launches are the plan's: CUTEGEN_LAUNCH, not <<<>>>");
        if (t->kind != TOKEN_NAME)
            continue;
        for (size_t r = 0; r < ARRAY_LEN(word_rules); r++)
            if ((sees & word_rules[r].half) && name_matches(t->text, word_rules[r].word))
                gate_add(g, t->line, "forbidden word", "%.*s: %s", (int)t->text.len, t->text.data,
                         word_rules[r].reason);
    }
}

/* ---- strings ------------------------------------------------------------------------- */

/* The character at *p with escapes decoded; advances *p. */
static int unescaped(const char **p, const char *end)
{
    const char *s = *p;
    long value = 0;
    int base = 0, most = 0, digit;

    *p = s + 1;
    if (*s != '\\' || s + 1 == end)
        return (unsigned char)*s;
    base = s[1] == 'x' || s[1] == 'u' || s[1] == 'U' ? 16 : s[1] >= '0' && s[1] <= '7' ? 8 : 0;
    most = s[1] == 'x' ? 16 : s[1] == 'U' ? 8 : s[1] == 'u' ? 4 : 3;
    s += base == 16 ? 2 : 1;
    for (; base > 0 && most > 0 && s < end && isxdigit((unsigned char)*s); s++, most--) {
        digit = isdigit((unsigned char)*s) ? *s - '0' : (*s | 32) - 'a' + 10;
        if (digit >= base)
            break;
        value = (value * base + digit) & 0xffffff;
    }
    *p = base > 0 ? s : s + 1;
    return base > 0 ? (int)value : '\\';
}

/* The compiler's comments mark where inline assembly begins and ends; a comment inside could
 * imitate them, so that what follows would look like the compiler's code (ptx_statements.h).
 * Adjacent strings are one. */
static void check_strings(struct gate *g)
{
    int before = 0;

    for (size_t i = 0; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i];
        const char *p = t->text.data, *end = p + t->text.len;

        if (t->first && token_is(t, "#")) {
            size_t stop = lex_directive_end(g->t, i);

            if (i + 1 < stop && token_is(&g->t.at[i + 1], "include")) {
                i = stop - 1;
                continue;
            }
        }
        if (t->kind != TOKEN_STRING || !(gate_sees(g, i) & HALF_DEVICE)) {
            before = t->kind == TOKEN_STRING ? before : 0;
            continue;
        }
        while (p < end) {
            int c = unescaped(&p, end);

            if (before == '/' && (c == '/' || c == '*')) {
                gate_add(g, t->line, "comment", "no comments in assembly, nor in other strings");
                before = 0;
                break;
            }
            before = c == '"' ? before : c;
        }
    }
}

/* ---- state ---------------------------------------------------------------------------- */

/* After a storage keyword: is this a mutable variable, a function, or a constant? */
static bool declares_state(const struct gate *g, size_t i)
{
    int angle = 0;
    for (size_t end = i + 64; i < g->t.count && i < end; i++) {
        const struct token *t = &g->t.at[i];
        if (token_is(t, "const") || token_is(t, "constexpr") || token_is(t, "__shared__") ||
            token_is(t, "__constant__") || token_is(t, "operator") || token_is(t, "struct") ||
            token_is(t, "class") || token_is(t, "__global__") || token_is(t, "CUTEGEN_PLAN"))
            return false;
        if (token_is(t, "<"))
            angle++;
        else if (token_is(t, ">"))
            angle -= angle > 0;
        else if (angle > 0)
            continue;
        else if (token_is(t, "__launch_bounds__") || token_is(t, "__attribute__") ||
                 token_is(t, "alignas") || token_is(t, "__align__")) {
            int depth = 0;
            do { /* their own parentheses */
                i++;
                depth += i < g->t.count && token_is(&g->t.at[i], "(");
                depth -= i < g->t.count && token_is(&g->t.at[i], ")");
            } while (i < g->t.count && depth > 0);
        } else if (token_is(t, "(") || token_is(t, "}") || token_is(t, "~"))
            return false;
        else if (token_is(t, ";") || token_is(t, "=") || token_is(t, "[") || token_is(t, "{"))
            return true;
    }
    return false;
}

static void check_state(struct gate *g)
{
    for (size_t i = 0; i < g->t.count; i++) {
        const struct token *t = &g->t.at[i];
        bool lambda = i > 0 && (token_is(&g->t.at[i - 1], ")") || token_is(&g->t.at[i - 1], "]"));
        bool device = token_is(t, "__device__") && !lambda;
        bool constant =
            i > 0 && (token_is(&g->t.at[i - 1], "constexpr") || token_is(&g->t.at[i - 1], "const"));
        if (t->kind != TOKEN_NAME || constant || (!device && !token_is(t, "static")))
            continue;
        if (declares_state(g, i + 1))
            gate_add(g, t->line, "state", "%s",
                     gate_sees(g, i) == HALF_HOST
                         ? "a plan keeps no state: no static variables"
                         : "kernels keep no state between launches: no __device__ or static "
                           "variables");
    }
}

/* ---- the whole ---------------------------------------------------------------------------- */

int gate_sees(const struct gate *g, size_t i)
{
    int line = g->t.at[i].line;
    return line <= g->h.lines ? g->h.seen[line] : 0;
}

void gate_add(struct gate *g, int line, const char *kind, const char *fmt, ...)
{
    struct verdict *v = g->out;
    struct finding *f = &v->findings[v->finding_count];
    va_list ap;
    if (v->finding_count == MAX_FINDINGS)
        return;
    va_start(ap, fmt);
    *f = (struct finding){.kind = kind,
                          .where = line > 0 ? arena_printf(g->a, "%s:%d", g->name, line) : g->name,
                          .line = diag_source_line(g->source, line, g->a),
                          .text = arena_vprintf(g->a, fmt, ap)};
    va_end(ap);
    v->finding_count++;
}

static void tell(struct gate *g)
{
    struct verdict *v = g->out;
    char *detail = "";
    v->kind = VERDICT_REFUSED;
    v->summary = arena_printf(g->a, "%s: %s", v->findings[0].where, v->findings[0].text);
    for (int i = 0; i < v->finding_count && i < 8; i++)
        detail = arena_printf(g->a, "%s%s: %s\n    %s\n", detail, v->findings[i].where,
                              v->findings[i].text, v->findings[i].line);
    v->detail = detail;
    v->advice = "write only what docs/kernel-abi.md allows; the rest is refused before it is built";
}

bool gate_refuses(struct text source, const char *name, struct arena *a, struct verdict *out)
{
    return gate_refuses_as(GATE_CUTE, source, name, a, out);
}

bool gate_refuses_as(enum gate_target target, struct text source, const char *name, struct arena *a,
                     struct verdict *out)
{
    struct gate g = {.source = source, .name = path_base(name), .a = a, .out = out};

    memset(out, 0, sizeof *out);
    out->kind = VERDICT_PASS;
    out->summary = "nothing to refuse";
    out->detail = "";
    if (source.len > GATE_SOURCE_MAX || (source.len && memchr(source.data, '\0', source.len))) {
        gate_add(&g, 0, "file", "a candidate is text of at most %d bytes", GATE_SOURCE_MAX);
    } else {
        g.t = lex(source, a);
        g.h = halves_of(source, g.t, a);
        check_splices(&g);
        check_directives(&g);
        check_words(&g);
        check_strings(&g);
        check_state(&g);
        if (target == GATE_CUTE)
            gate_check_cute(&g);
        else
            gate_check_cuda(&g);
    }
    if (out->finding_count == 0)
        return false;
    tell(&g);
    return true;
}
