/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_chain.c - combine the kernels of several parts in one file, with a plan that launches
 * them.
 *
 * Every recipe writes a whole file: constants, kernels, a plan. Here these files are split and
 * combined: kernels of different forms get their own namespaces, plans become functions whose call
 * has the part's tensors, and names at file scope that both halves use get a number where two forms
 * define them differently.
 */
#include "base/text.h"
#include "expert/match/partition.h"

#include "base/buf.h"
#include "expert/compose/attention_parts.h"
#include "expert/compose/format_source.h"
#include "expert/compose/joined_weights.h"
#include "expert/compose/launch_order.h"
#include "expert/compose/part_table.h"
#include "expert/match/size_constants.h"

#include <ctype.h>
#include <string.h>

enum { CHAIN_BYTES = 2 * 1024 * 1024, CHAIN_NAMES = 160, CHAIN_INCLUDES = 16 };

struct chain {
    const struct parts *p;
    struct recipe recipe[PARTS_MAX]; /* of each part that is a form */
    unsigned possible[PARTS_MAX], likely[PARTS_MAX];
    unsigned without[PARTS_MAX]; /* steps that a form must not have */
    const struct attention_parts *parts;
};

/* A composed file, taken apart. */
struct sections {
    struct text title, head, device, helpers, plan;
};

bool chain_open(const struct parts *p, struct arena *a, struct chain **out, unsigned *steps,
                struct error *err)
{
    struct chain *c = *out = arena_alloc(a, sizeof(*c));
    struct attention_parts *none = arena_alloc(a, sizeof(*none));
    const char *main = p->at[p->main].match.recipe;

    memset(c->without, 0, sizeof(c->without));
    memset(none, 0, sizeof(*none));
    c->parts = none;
    c->p = p;
    *steps = 0;
    for (int i = 0; i < p->count; i++) {
        const struct match *m = &p->at[i].match;

        if (p->at[i].form != i)
            continue;
        if (!recipe_load(m->recipe, a, &c->recipe[i], err) ||
            !recipe_steps(&c->recipe[i], m->scope, &c->possible[i], err) ||
            !recipe_likely(&c->recipe[i], m->scope, &c->likely[i], err))
            return false;
        if (strcmp(m->recipe, main) == 0)
            *steps |= c->possible[i];
    }
    return true;
}

/* All compatible steps of those that are likely to pay, except those that reduce accuracy. */
static unsigned top_of(const struct recipe *r, unsigned possible)
{
    unsigned top = possible;

    for (int i = 0; i < r->step_count; i++)
        if (strncmp(r->steps[i].name, "fast", 4) == 0)
            top &= ~(1u << i);
    for (int i = 0; i < r->step_count; i++)
        if (top >> i & 1)
            top &= ~r->steps[i].excludes;
    for (int i = 0; i < r->step_count; i++)
        if ((top >> i & 1) && (r->steps[i].needs & ~top))
            top &= ~(1u << i);
    return top;
}

static unsigned steps_for(const struct chain *c, int form, unsigned steps)
{
    const char *main = c->p->at[c->p->main].match.recipe, *recipe = c->p->at[form].match.recipe;

    return strcmp(recipe, main) == 0
               ? steps & c->possible[form] & ~c->without[form]
               : top_of(&c->recipe[form], c->possible[form] & c->likely[form] & ~c->without[form]);
}

bool chain_has_attention_parts(const struct chain *c)
{
    return attention_parts_any(c->p);
}

/* The chain whose products write the parts that attention reads, where steps allow it: such a
 * product, and such an attention, has another form than one that does not. */
static const struct chain *with_planes(const struct chain *c, unsigned steps, struct arena *a)
{
    struct chain *own = arena_alloc(a, sizeof(*own));
    struct parts *p = arena_alloc(a, sizeof(*p));
    struct attention_parts *h = arena_alloc(a, sizeof(*h));
    unsigned taken[PARTS_MAX] = {0};

    *own = *c;
    for (int i = 0; i < c->p->count; i++)
        if (c->p->at[i].form == i)
            taken[i] = steps_for(c, i, steps);
    attention_parts_find(c->p, c->recipe, taken, h);
    *p = *c->p;
    for (int i = 0; i < p->count; i++) {
        int form = 0, old = c->p->at[i].form;

        while (!attention_parts_alike(h, form, i))
            form++;
        p->at[i].form = form;
        if (form != i)
            continue;
        own->recipe[i] = c->recipe[old];
        own->possible[i] = c->possible[old];
        own->likely[i] = c->likely[old];
        own->without[i] = h->reader[i] ? attention_parts_excludes(&c->recipe[old]) : 0;
        p->at[i].match.scope = attention_parts_scope(h, i, a);
    }
    own->p = p;
    own->parts = h;
    return own;
}

/* ---- taking apart ----------------------------------------------------------------- */

/* The text before the line `mark`; *rest is the text after it. */
static struct text before(struct text *rest, const char *mark)
{
    const char *at = strstr(rest->data, mark);
    size_t skip = strlen(mark);
    struct text t = *rest;

    if (!at || at + skip > rest->data + rest->len)
        BUG("a recipe without the line %s", mark);
    t.len = (size_t)(at - rest->data);
    rest->data = at + skip;
    rest->len -= t.len + skip;
    return t;
}

static struct sections take_apart(struct text source)
{
    struct sections s;

    s.title = before(&source, "#include <cutegen/kernel.h>\n");
    s.head = before(&source, "#ifdef CUTEGEN_DEVICE\n");
    s.device = before(&source, "#endif\n\n#ifdef CUTEGEN_HOST\n");
    s.helpers = before(&source, "CUTEGEN_PLAN(call)\n{\n");
    s.plan = before(&source, "#endif\n");
    return s;
}

/* ---- names at file scope ------------------------------------------------------------ */

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The name that ends before `end`. */
static struct text name_before(const char *from, const char *end)
{
    const char *p;

    while (end > from && !in_name(end[-1]))
        end--;
    for (p = end; p > from && in_name(p[-1]); p--)
        ;
    return (struct text){p, (size_t)(end - p)};
}

/* Does a name end before this mark? Not before a comparison, nor behind the start of a comment. */
static bool ends_name(struct text line, const char *at)
{
    char before = at > line.data ? at[-1] : ' ',
         after = at + 1 < line.data + line.len ? at[1] : ' ';

    for (const char *p = line.data; p + 1 < at; p++)
        if (p[0] == '/' && p[1] == '/')
            return false;
    return after != '=' && !strchr("=<>!", before);
}

/* Does a declaration go on in the next line? */
static bool goes_on(struct text line)
{
    while (line.len && isspace((unsigned char)line.data[line.len - 1]))
        line.len--;
    return line.len && line.data[line.len - 1] == ',';
}

/* Constants and functions that the plan's half declares at file scope; a declaration may have
 * several constants, in several lines. */
static int names_of(struct text t, const char *starts, char mark, struct text *out, int count)
{
    bool on = false;

    for (struct text line; text_next_whole_line(&t, &line);) {
        const char *end = line.data + line.len, *at = line.data;

        on = on || text_starts(line, starts);
        while (on && (at = memchr(at, mark, (size_t)(end - at)))) {
            if (ends_name(line, at) && count < CHAIN_NAMES)
                out[count++] = name_before(line.data, at);
            if (mark == '(')
                break;
            at++;
        }
        on = on && goes_on(line);
    }
    return count;
}

/* Tunables, and functions that both halves have: `constexpr` lines with a parenthesis before any
 * value. */
static int functions_of(struct text t, struct text *out, int count)
{
    for (struct text line; text_next_whole_line(&t, &line);) {
        bool tuned = text_starts(line, "CUTEGEN_TUNE(");
        const char *at = tuned                             ? memchr(line.data, ',', line.len)
                         : text_starts(line, "constexpr ") ? memchr(line.data, '(', line.len)
                                                           : NULL;

        if (at && !memchr(line.data, '=', (size_t)(at - line.data)) && count < CHAIN_NAMES)
            out[count++] = name_before(line.data, at);
    }
    return count;
}

/* The word at the start of t, or its first byte. */
static struct text word_at(struct text t)
{
    struct text word = {t.data, 1};

    while (in_name(t.data[0]) && word.len < t.len && in_name(t.data[word.len]))
        word.len++;
    return word;
}

static struct text rest_of(struct text t, struct text word)
{
    return (struct text){t.data + word.len, t.len - word.len};
}

/* Appends the number to every name that the form defines at file scope. */
static struct text renamed(struct text source, const struct sections *s, int number,
                           struct arena *a)
{
    struct text names[CHAIN_NAMES], result;
    int count = functions_of(s->head, names, names_of(s->head, "constexpr ", '=', names, 0));
    struct buf b = buf_init(CHAIN_BYTES);

    count = names_of(s->helpers, "static ", '(', names, count);
    for (struct text word; source.len; source = rest_of(source, word)) {
        word = word_at(source);
        buf_add(&b, word.data, word.len);
        for (int k = 0; k < count; k++)
            if (text_equal(word, names[k])) {
                buf_printf(&b, "_%d", number);
                break;
            }
    }
    result = buf_copy(&b, a);
    buf_release(&b);
    return result;
}

/* ---- putting together ---------------------------------------------------------------- */

struct file {
    const struct chain *c;
    struct sections s[PARTS_MAX]; /* of each form */
    struct text includes[CHAIN_INCLUDES];
    int include_count, form_count;
    bool overlap, clears; /* launches overlap; parts clear memory */
    struct joined joined;
    uint64_t *literal; /* size_constants.h */
    struct buf out;
    struct arena *a;
};

static void put(struct file *f, struct text t)
{
    buf_add(&f->out, t.data, t.len);
}

/* A plan: kernels' names, which start with `prefix`, with their namespace, workspace from the pool.
 * A memset between two launches would keep them apart. */
static void put_plan(struct file *f, struct text plan, const char *prefix, int number)
{
    static const struct text asks = {"cutegen_workspace", 17}, clears = {"cutegen_memset", 14};

    for (struct text word; plan.len; plan = rest_of(plan, word)) {
        word = word_at(plan);
        if (f->form_count > 1 && prefix && text_starts(word, prefix))
            buf_printf(&f->out, "part_%d::", number);
        if (text_equal(word, asks))
            buf_puts(&f->out, "scratch");
        else if (f->overlap && text_equal(word, clears))
            buf_puts(&f->out, "cleared");
        else
            put(f, word);
    }
}

/* A form with the same constants and helpers as the first form needs no copies. */
static bool compose_forms(struct file *f, unsigned steps, struct error *err)
{
    const struct chain *c = f->c;
    unsigned taken[PARTS_MAX] = {0};
    int first = -1;

    for (int i = 0; i < c->p->count; i++)
        if (c->p->at[i].form == i)
            taken[i] = steps_for(c, i, steps);
    joined_find(c->p, c->recipe, taken, &f->joined);
    for (int i = 0; i < c->p->count; i++) {
        struct text source;

        if (c->p->at[i].form != i)
            continue;
        if (!recipe_compose(&c->recipe[i], joined_scope(&f->joined, i, f->a), taken[i], f->a,
                            &source, err))
            return false;
        f->joined.suffix[i] = "";
        source = size_constants_pass(c->p->at[i].g, "task", source, f->a, f->literal);
        f->s[i] = take_apart(source);
        f->form_count++;
        f->clears = f->clears || memmem(f->s[i].plan.data, f->s[i].plan.len, "cutegen_memset", 14);
        if (f->s[i].head.len <= 1 && f->s[i].helpers.len == 0)
            continue;
        if (first < 0) {
            first = i;
        } else if (text_equal(f->s[i].head, f->s[first].head) &&
                   text_equal(f->s[i].helpers, f->s[first].helpers)) {
            f->s[i].head = f->s[i].helpers = (struct text){"", 0};
        } else {
            f->s[i] = take_apart(renamed(source, &f->s[i], i + 1, f->a));
            f->joined.suffix[i] = arena_printf(f->a, "_%d", i + 1);
        }
    }
    f->joined.spaces = f->form_count > 1;
    return true;
}

/* Takes includes and `using` out of a device half. They are written once, before all forms. */
static struct text without_includes(struct file *f, struct text device)
{
    struct buf b = buf_init(CHAIN_BYTES);
    struct text body;

    for (struct text line; text_next_whole_line(&device, &line);) {
        bool known = false;

        if (!text_starts(line, "#include") && !text_starts(line, "using namespace cute;")) {
            buf_add(&b, line.data, line.len);
            continue;
        }
        for (int i = 0; i < f->include_count && !known; i++)
            known = text_equal(line, f->includes[i]);
        if (!known && text_starts(line, "#include") && f->include_count < CHAIN_INCLUDES)
            f->includes[f->include_count++] = line;
    }
    body = buf_copy(&b, f->a);
    buf_release(&b);
    return body;
}

/* The name of a copy operation whose traits a line gives to CuTe, or nothing. */
static struct text traits_of(struct text line)
{
    static const char start[] = "struct cute::Copy_Traits<";
    const char *end = memchr(line.data, '>', line.len);

    if (!text_starts(line, start) || !end)
        return (struct text){NULL, 0};
    line.data += sizeof(start) - 1;
    return (struct text){line.data, (size_t)(end - line.data)};
}

/* Puts a form into its namespace, which is closed around specialisations of CuTe's traits. */
static void put_form(struct file *f, struct text body, int number)
{
    struct text held = {NULL, 0}; /* a line `template <>` */

    buf_printf(&f->out, "namespace part_%d {\n", number);
    for (struct text line; text_next_whole_line(&body, &line);) {
        struct text name = traits_of(line);

        if (held.data && name.data) {
            buf_printf(&f->out, "} // namespace part_%d\n", number);
            put(f, held);
            buf_printf(&f->out, "struct cute::Copy_Traits<part_%d::", number);
            buf_add(&f->out, name.data, (size_t)(line.data + line.len - name.data));
            buf_printf(&f->out, "namespace part_%d {\n", number);
            held.data = NULL;
            continue;
        }
        if (held.data)
            put(f, held);
        held = text_equal(line, (struct text){"template <>\n", 12}) ? line : (struct text){NULL, 0};
        if (!held.data)
            put(f, line);
    }
    if (held.data)
        put(f, held);
    buf_printf(&f->out, "} // namespace part_%d\n\n", number);
}

static void put_device(struct file *f)
{
    const struct parts *p = f->c->p;
    struct text body[PARTS_MAX];

    for (int i = 0; i < p->count; i++)
        if (p->at[i].form == i)
            body[i] = without_includes(f, f->s[i].device);
    buf_puts(&f->out, "#ifdef CUTEGEN_DEVICE\n");
    for (int i = 0; i < f->include_count; i++)
        put(f, f->includes[i]);
    buf_puts(&f->out, "\nusing namespace cute;\n\n");
    for (int i = 0; i < p->count; i++) {
        if (p->at[i].form != i)
            continue;
        put(f, f->s[i].title);
        if (f->form_count > 1)
            put_form(f, body[i], i + 1);
        else
            put(f, body[i]);
    }
    joined_put_kernels(&f->joined, f->a, &f->out);
    buf_puts(&f->out, "#endif\n\n");
}

static const char *dtype_text(const char *dtype)
{
    static const struct {
        const char *dtype, *text;
    } rows[] = {{"f64", "2, 64"}, {"f32", "2, 32"}, {"f16", "2, 16"}, {"bf16", "4, 16"},
                {"i64", "0, 64"}, {"i32", "0, 32"}, {"i16", "0, 16"}, {"i8", "0, 8"},
                {"u8", "1, 8"},   {"bool", "6, 8"}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].dtype, dtype) == 0)
            return rows[i].text;
    BUG("a result of dtype %s between parts", dtype);
}

/* Sizes written as numbers are valid only for these inputs. */
static void put_checks(struct file *f, const struct part *part)
{
    for (int i = 0; part->fixed && i < part->g->in_count; i++)
        for (int d = 0; part->from[i] < 0 && d < part->g->in[i].dims; d++)
            buf_printf(&f->out,
                       "    CUTEGEN_REQUIRE(call, %s.shape[%d] == %lld, "
                       "\"sizes of inputs are written into the plan\");\n",
                       part_tensor(f->c->p, part->from[i], f->a), d,
                       (long long)part->g->in[i].shape[d]);
    for (int i = 0; part->fixed && i < part->g->in_count; i++)
        for (int d = 0; part->from[i] >= 0 && d < part->g->in[i].dims; d++)
            buf_printf(&f->out,
                       "    CUTEGEN_REQUIRE(call, call->in[%d].ndim == %d && "
                       "call->in[%d].shape[%d] == %lld,\n                    "
                       "\"the shape of input %d is written into the plan\");\n",
                       part->from[i], part->g->in[i].dims, part->from[i], d,
                       (long long)part->g->in[i].shape[d], part->from[i]);
}

/* Results that no later part reads. */
static void put_release(struct file *f, int i)
{
    const struct parts *p = f->c->p;
    const struct part *part = &p->at[i];

    for (int k = 0; k < part->g->in_count; k++) {
        bool again = part->from[k] >= 0 || p->at[-1 - part->from[k]].out >= 0;

        for (int j = 0; j < k; j++)
            again = again || part->from[j] == part->from[k];
        for (int j = i + 1; j < p->count; j++)
            for (int n = 0; n < p->at[j].g->in_count; n++)
                again = again || p->at[j].from[n] == part->from[k];
        if (!again)
            buf_printf(&f->out, "    give_back(&pool, %d);\n", -part->from[k]);
    }
}

static void put_part(struct file *f, int i)
{
    const struct part *part = &f->c->p->at[i];
    const struct tensor *y = &part->g->out[0];
    bool last = i + 1 == f->c->p->count;
    char result[32];

    put_checks(f, part);
    if (part->out >= 0) {
        snprintf(result, sizeof(result), "&call->out[%d]", part->out);
    } else {
        int dims = y->dims > 0 ? y->dims : 1;

        snprintf(result, sizeof(result), "&t%d", i + 1);
        buf_printf(&f->out, "    int64_t shape%d[%d] = {", i + 1, dims);
        for (int d = 0; d < y->dims; d++)
            buf_printf(&f->out, "%s%s", d ? ", " : "", part->shape[d]);
        buf_printf(&f->out, "%s}, strides%d[%d];\n", y->dims ? "" : "1", i + 1, dims);
        buf_printf(&f->out,
                   "    struct cutegen_tensor t%d = between(call, &pool, %d, %s, %d, shape%d, "
                   "strides%d);\n",
                   i + 1, i + 1, dtype_text(y->dtype), y->dims, i + 1, i + 1);
    }
    buf_printf(&f->out, "    const struct cutegen_tensor in%d[] = {", i + 1);
    if (part->g->in_count == 0) /* made of nothing: it reads none, but an array has an element */
        buf_puts(&f->out, "call->out[0]");
    for (int k = 0; k < part->g->in_count; k++)
        buf_printf(&f->out, "%s%s", k ? ", " : "", part_tensor(f->c->p, part->from[k], f->a));
    buf_puts(&f->out, "};\n");
    joined_put_ready(&f->joined, i, &f->out);
    attention_parts_put_part(f->c->parts, i, &f->out);
    part_table_put_mark(i, &f->out);
    buf_printf(&f->out, "    %sdo_part_%d(call, &pool, in%d, %s", last ? "return " : "CUTEGEN_TRY(",
               part->form + 1, i + 1, result);
    if (f->joined.count)
        buf_printf(&f->out, ", ready%d", i + 1);
    if (f->c->parts->reader[i] || f->c->parts->given[i])
        buf_printf(&f->out, ", of_parts%d", i + 1);
    else if (f->c->parts->count)
        buf_puts(&f->out, ", 0");
    buf_puts(&f->out, last ? ");\n" : "));\n");
    if (!last)
        put_release(f, i);
}

static void put_pool(struct file *f)
{
    buf_puts(&f->out,
             "#ifdef CUTEGEN_HOST\n"
             "// Workspace: what nothing reads any more serves later parts that ask for about as "
             "much. Each piece has an owner:\n"
             "// a result by its number, SCRATCH of the part whose turn it is, or 0: none.\n"
             "enum { SCRATCH = -1, PIECES_MAX = 64 };\n"
             "struct workspace_pool {\n"
             "    int count;\n"
             "    int owner[PIECES_MAX];\n"
             "    int64_t bytes[PIECES_MAX];\n"
             "    void *at[PIECES_MAX];\n");
    if (f->clears)
        buf_puts(&f->out, "    char *clear; // cleared before the first launch, and not used yet\n"
                          "    int64_t clear_bytes;\n");
    buf_puts(&f->out, "};\n\n");
    joined_put_type(&f->joined, &f->out);
    buf_printf(&f->out,
               "struct pooled_call {\n"
               "    struct cutegen_call call; // first: a part's plan sees this alone\n"
               "    struct workspace_pool *pool;\n%s%s"
               "};\n\n",
               f->joined.count ? "    struct ready_part ready;\n" : "",
               f->c->parts->count ? "    const struct part_planes *of_parts;\n" : "");
}

/* What plans of chains share: workspace by owner, results between parts. */
static void put_workspace(struct file *f)
{
    put_pool(f);
    buf_puts(
        &f->out,
        "static void give_back(struct workspace_pool *pool, int owner)\n"
        "{\n"
        "    for (int i = 0; i < pool->count; i++)\n"
        "        if (pool->owner[i] == owner)\n"
        "            pool->owner[i] = 0;\n"
        "}\n\n"
        "static void *pooled(struct cutegen_call *call, struct workspace_pool *pool, int owner, "
        "int64_t bytes)\n"
        "{\n"
        "    int best = -1;\n\n"
        "    for (int i = 0; i < pool->count; i++)\n"
        "        if (pool->owner[i] == 0 && pool->bytes[i] >= bytes &&\n"
        "            pool->bytes[i] <= 4 * bytes + 4096 &&\n"
        "            (best < 0 || pool->bytes[i] < pool->bytes[best]))\n"
        "            best = i;\n"
        "    if (best < 0) {\n"
        "        if (pool->count == PIECES_MAX)\n"
        "            return cutegen_workspace(call, bytes);\n"
        "        best = pool->count++;\n"
        "        pool->bytes[best] = bytes;\n"
        "        pool->at[best] = cutegen_workspace(call, bytes);\n"
        "    }\n"
        "    pool->owner[best] = owner;\n"
        "    return pool->at[best];\n"
        "}\n\n"
        "static void *scratch(struct cutegen_call *call, int64_t bytes)\n"
        "{\n"
        "    return pooled(call, ((struct pooled_call *)call)->pool, SCRATCH, bytes);\n"
        "}\n\n"
        "// A result for the parts that follow: without gaps, in workspace.\n"
        "static struct cutegen_tensor between(struct cutegen_call *call, struct workspace_pool "
        "*pool,\n"
        "                                     int number, int code, int bits, int ndim,\n"
        "                                     int64_t *shape, int64_t *strides)\n"
        "{\n"
        "    struct cutegen_tensor t = call->out[0];\n"
        "    int64_t stride = 1;\n\n"
        "    t.dtype.code = (uint8_t)code;\n"
        "    t.dtype.bits = (uint8_t)bits;\n"
        "    t.ndim = ndim;\n"
        "    t.shape = shape;\n"
        "    t.strides = strides;\n"
        "    t.byte_offset = 0;\n"
        "    for (int d = ndim - 1; d >= 0; d--) {\n"
        "        strides[d] = stride;\n"
        "        stride *= shape[d];\n"
        "    }\n"
        "    t.data = pooled(call, pool, number, stride * (bits / 8));\n"
        "    return t;\n"
        "}\n\n");
}

/* Small memory that parts want to be zero is cleared once, before the first launch. */
static void put_cleared(struct file *f)
{
    buf_puts(&f->out,
             "enum { CLEAR_BYTES = 65536 };\n\n"
             "// Memory of zeros: of what was cleared before the first launch, if there is enough "
             "left.\n"
             "template <class T>\n"
             "static int cleared(struct cutegen_call *call, T *&at, int value, int64_t bytes)\n"
             "{\n"
             "    struct workspace_pool *pool = ((struct pooled_call *)call)->pool;\n\n"
             "    if (value != 0 || bytes > pool->clear_bytes)\n"
             "        return cutegen_memset(call, at, value, bytes);\n"
             "    at = (T *)pool->clear;\n"
             "    bytes = cutegen_min(cutegen_round_up(bytes, 256), pool->clear_bytes);\n"
             "    pool->clear += bytes;\n"
             "    pool->clear_bytes -= bytes;\n"
             "    return 0;\n"
             "}\n\n");
}

static void put_host(struct file *f)
{
    const struct parts *p = f->c->p;

    put_workspace(f);
    if (f->clears)
        put_cleared(f);
    for (int i = 0; i < p->count; i++) {
        if (p->at[i].form != i)
            continue;
        put_plan(f, f->s[i].helpers, NULL, 0);
        buf_printf(&f->out,
                   "static int do_part_%d(struct cutegen_call *task, struct workspace_pool *pool,\n"
                   "                     const struct cutegen_tensor *reads, struct cutegen_tensor "
                   "*makes%s%s)\n"
                   "{\n"
                   "    struct pooled_call mine = {*task, pool%s%s};\n"
                   "    struct cutegen_call *call = &mine.call;\n"
                   "    call->in = reads;\n"
                   "    call->in_count = %d;\n"
                   "    call->out = makes;\n"
                   "    call->out_count = 1;\n"
                   "    give_back(pool, SCRATCH);\n\n",
                   i + 1, f->joined.count ? ", struct ready_part given" : "",
                   f->c->parts->count ? ", const struct part_planes *planes_of_part" : "",
                   f->joined.count ? ", given" : "", f->c->parts->count ? ", planes_of_part" : "",
                   p->at[i].g->in_count);
        put_plan(f, f->s[i].plan,
                 arena_printf(f->a, "%s_", scope_get(p->at[i].match.scope, "kernel")), i + 1);
        buf_puts(&f->out, "\n");
    }
    buf_puts(&f->out, "CUTEGEN_PLAN(call)\n{\n    struct workspace_pool pool;\n\n    "
                      "pool.count = 0;\n");
    if (f->clears)
        buf_puts(&f->out, "    pool.clear = (char *)cutegen_workspace(call, CLEAR_BYTES);\n"
                          "    pool.clear_bytes = CLEAR_BYTES;\n"
                          "    CUTEGEN_TRY(cutegen_memset(call, pool.clear, 0, CLEAR_BYTES));\n");
    attention_parts_put_start(f->c->parts, &f->out);
    joined_put_launches(&f->joined, &f->out);
    for (int i = 0; i < p->count; i++)
        put_part(f, i);
    buf_puts(&f->out, "}\n#endif\n");
}

bool chain_compose(const struct chain *c, unsigned steps, bool overlap, bool planes,
                   struct arena *a, struct text *out, uint64_t *literal, struct error *err)
{
    struct file f = {.c = c, .a = a, .literal = literal, .overlap = overlap};
    bool ok;

    if (planes)
        f.c = c = with_planes(c, steps, a);
    if (!compose_forms(&f, steps, err))
        return false;
    f.clears = f.clears && overlap;
    f.out = buf_init(CHAIN_BYTES);
    buf_printf(&f.out, "// %d parts, one after the other: what one makes, others read.\n",
               c->p->count);
    part_table_put(c->p, a, &f.out);
    buf_puts(&f.out, "#include <cutegen/kernel.h>\n");
    for (int i = 0; i < c->p->count; i++)
        if (c->p->at[i].form == i)
            put(&f, f.s[i].head);
    attention_parts_put_types(c->parts, &f.out);
    buf_puts(&f.out, "\n");
    put_device(&f);
    put_host(&f);
    ok = !f.out.overflowed;
    if (ok)
        *out = tidy_source(buf_text(&f.out), a);
    else
        error_set(err, ERROR_MACHINE, "the kernels of %d parts are longer than %d bytes",
                  c->p->count, CHAIN_BYTES);
    buf_release(&f.out);
    return ok;
}
