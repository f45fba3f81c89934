/* match.c - try every matcher; what they share. */
#include "expert/match.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

static const struct matcher {
    const char *recipe;
    bool (*match)(const struct graph *g, struct arena *a, struct match *out);
} matchers[] = {
    {"pointwise", match_pointwise},
    {"row_reduction", match_rows},
    {"gemm", match_gemm},
};

bool match_graph(const struct graph *g, struct arena *a, struct match *out)
{
    struct buf why = buf_init(2000);

    for (size_t i = 0; i < ARRAY_LEN(matchers); i++) {
        *out = (struct match){.recipe = matchers[i].recipe, .why_not = ""};
        if (matchers[i].match(g, a, out)) {
            buf_release(&why);
            return true;
        }
        buf_printf(&why, "%s%s: %s", why.len ? "; " : "", matchers[i].recipe, out->why_not);
    }
    *out = (struct match){.why_not = buf_copy(&why, a).data};
    buf_release(&why);
    return false;
}

/* Small graphs of their kind, for prompts about tasks no recipe fits. */
static const char example_pointwise[] =
    "{\"name\": \"swish\", \"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [4096, "
    "131072], \"strides\": [131072, 1]}], \"outputs\": [{\"name\": \"y\", \"dtype\": \"f32\", "
    "\"shape\": [4096, 131072], \"strides\": [131072, 1]}], \"graph\": [{\"id\": 0, \"op\": "
    "\"input\", \"index\": 0, \"dtype\": \"f32\", \"shape\": [4096, 131072], \"strides\": "
    "[131072, 1]}, {\"id\": 1, \"op\": \"aten.sigmoid.default\", \"args\": [{\"node\": 0}], "
    "\"kwargs\": {}, \"dtype\": \"f32\", \"shape\": [4096, 131072], \"strides\": [131072, 1]}, "
    "{\"id\": 2, \"op\": \"aten.mul.Tensor\", \"args\": [{\"node\": 0}, {\"node\": 1}], "
    "\"kwargs\": {}, \"dtype\": \"f32\", \"shape\": [4096, 131072], \"strides\": [131072, 1]}, "
    "{\"op\": \"output\", \"args\": [{\"node\": 2}], \"index\": 0}]}";
static const char example_gemm[] =
    "{\"name\": \"matmul\", \"inputs\": [{\"name\": \"A\", \"dtype\": \"f32\", \"shape\": [4096, "
    "4096], \"strides\": [4096, 1]}, {\"name\": \"B\", \"dtype\": \"f32\", \"shape\": [4096, "
    "4096], \"strides\": [4096, 1]}], \"outputs\": [{\"name\": \"C\", \"dtype\": \"f32\", "
    "\"shape\": [4096, 4096], \"strides\": [4096, 1]}], \"graph\": [{\"id\": 0, \"op\": "
    "\"input\", \"index\": 0, \"dtype\": \"f32\", \"shape\": [4096, 4096], \"strides\": [4096, "
    "1]}, {\"id\": 1, \"op\": \"input\", \"index\": 1, \"dtype\": \"f32\", \"shape\": [4096, "
    "4096], \"strides\": [4096, 1]}, {\"id\": 2, \"op\": \"aten.mm.default\", \"args\": "
    "[{\"node\": 0}, {\"node\": 1}], \"kwargs\": {}, \"dtype\": \"f32\", \"shape\": [4096, 4096], "
    "\"strides\": [4096, 1]}, {\"op\": \"output\", \"args\": [{\"node\": 2}], \"index\": 0}]}";

void match_nearest(enum kernel_class class, const char **recipe, const char **description)
{
    bool gemm = class == CLASS_GEMM || class == CLASS_OTHER;

    *recipe = gemm ? "gemm" : "pointwise";
    *description = gemm ? example_gemm : example_pointwise;
}

bool match_no(struct match *out, struct arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    out->why_not = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return false;
}

const char *match_kernel_name(const struct graph *g, struct arena *a)
{
    const char *from = g->name;
    char *name;

    while (*from && !isalpha((unsigned char)*from))
        from++;
    name = arena_strdup(a, *from ? from : "task");
    for (char *p = name; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
    return name;
}

char *match_capital(const char *name, struct arena *a)
{
    char *text = arena_strdup(a, name);

    text[0] = (char)toupper((unsigned char)text[0]);
    return text;
}

char *match_lower(const char *name, struct arena *a)
{
    char *text = arena_strdup(a, name);

    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return text;
}

const char *match_size_text(const char *tensor, int first, int last, struct arena *a)
{
    const char *text = "";

    for (int d = first; d < last; d++)
        text = arena_printf(a, "%s%s%s->shape[%d]", text, *text ? " * " : "", tensor, d);
    return *text ? text : "1";
}
