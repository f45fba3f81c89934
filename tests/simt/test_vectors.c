/*
 * test_vectors.c - every line of vectors.txt gives what the GPU gave, on
 * varying and on uniform registers and for other widths of vectors; and every
 * row of ptx_ops.def and of the matrix table has a line.
 *
 *   test_simt_vectors                  as in the test suite
 *   test_simt_vectors LIST HARDWARE [PART]   others, of names that hold PART
 *
 * hardware.txt is written by bench/simt/vectors.c on a GPU.
 */
#include "support.h"
#include "vectors.h"

#include "simt/emit/emit.h"
#include "simt/ptx/mma_shapes.h"

#include "base/buf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static struct {
    const char *list, *hardware, *part;
    struct vector_line *v;
    size_t count;
    char **want; /* per line: "hash value value ..." or NULL */
} all = {SIMT_TESTS_DIR "/vectors.txt", SIMT_TESTS_DIR "/hardware.txt", "", NULL, 0, NULL};

/* ---- hardware.txt ---- */

static void read_hardware(void)
{
    size_t cap = 1 << 20, at = 0;
    char *line = malloc(cap);
    FILE *f = fopen(all.hardware, "r");
    if (!f || !line)
        fail_msg("cannot read %s", all.hardware);
    all.v = vectors_read(all.list, &all.count);
    all.want = calloc(all.count, sizeof *all.want);
    while (fgets(line, (int)cap, f)) {
        char name[80], sig[32];
        int used = 0;
        if (sscanf(line, "%79s %31s %n", name, sig, &used) < 2 || name[0] == '#')
            continue;
        /* Both files are in one order, save for lines one of them lacks. */
        for (size_t n = 0; n < all.count; n++) {
            size_t i = (at + n) % all.count;
            if (strcmp(all.v[i].name, name) == 0 && strcmp(all.v[i].sig, sig) == 0) {
                all.want[i] = strdup(line + used);
                at = i + 1;
                break;
            }
        }
    }
    fclose(f);
    free(line);
}

/* ---- comparing ---- */

static double as_double(char letter, uint64_t bits)
{
    switch (letter) {
    case 'g': {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    case 'e': {
        uint32_t e = bits >> 10 & 31, f = bits & 1023;
        double x = e == 31 ? (f ? (double)NAN : (double)INFINITY)
                   : e     ? ldexp(1.0 + f / 1024.0, (int)e - 15)
                           : ldexp(f, -24);
        return bits >> 15 & 1 ? -x : x;
    }
    default: {
        uint32_t u = (uint32_t)(letter == 'b' ? bits << 16 : bits);
        float x;
        memcpy(&x, &u, sizeof x);
        return (double)x;
    }
    }
}

/* Documented errors of approximate instructions: rel=2^X, or by name. */
static bool near_enough(const struct vector_line *v, char letter, uint64_t arg, uint64_t got,
                        uint64_t want)
{
    double a = as_double(letter, got), b = as_double(letter, want), x = as_double(letter, arg);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    if (strcmp(v->bound, "mma") == 0)
        return fabs(a - b) <= (letter == 'e' ? 0x1p-9 : 0x1p-14) * (fabs(b) + 512);
    if (strcmp(v->bound, "trig") == 0)
        return fabs(x) > 6.2831853 || fabs(a - b) <= 0x1p-20;
    if (strcmp(v->bound, "lg2") == 0 && x > 0.5 && x < 2)
        return fabs(a - b) <= 0x1p-22;
    double rel = strcmp(v->bound, "lg2") == 0 ? 0x1p-22 : 0;
    sscanf(v->bound, "rel=2^%lf", &rel);
    if (v->bound[0] == 'r')
        rel = exp2(rel);
    /* The smallest number of the form: results below it are rounded there. */
    double tiny = letter == 'e' ? 0x1p-14 : letter == 'b' || letter == 'f' ? 0x1p-126 : 0;
    return fabs(a - b) <= rel * fmax(fabs(b), tiny);
}

static bool same(const struct vector_line *v, uint64_t arg, uint64_t got, uint64_t want)
{
    char l = v->letter[0];
    got = vector_canonical(l, got);
    if (got == want)
        return true;
    if (!v->bound[0])
        return false;
    if (l == 'F' || l == 'K')
        l = l == 'F' ? 'f' : 'k';
    if (l != 'k' && l != 'l')
        return near_enough(v, l, arg, got, want);
    char h = l == 'k' ? 'e' : 'b';
    return near_enough(v, h, arg & 0xffff, got & 0xffff, want & 0xffff) &&
           near_enough(v, h, arg >> 16, got >> 16, want >> 16);
}

static void tell(const struct vector_line *v, const char *form, uint32_t i, int k, uint64_t got,
                 uint64_t want)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s, input %u:", v->name, form, i);
    if (!v->regs[0])
        for (int a = 1; a <= v->args; a++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %" PRIx64, vector_input(v, a, 0, i));
    snprintf(line + n, sizeof line - (size_t)n,
             " gives %" PRIx64 " (register %d), the GPU %" PRIx64, got, k, want);
    print_error("%s\n", line);
}

/* out: [register][input]. Returns whether all is as the GPU has it. */
static bool compare(const struct vector_line *v, const char *wanted, const uint64_t *out,
                    const char *form)
{
    int regs = vector_width(v, 0), used = 0;
    uint64_t hash = 0, mine = 0xcbf29ce484222325u, want;
    if (!wanted) {
        print_error("%s: no result from a GPU; run bench/simt/vectors.c\n", v->name);
        return false;
    }
    sscanf(wanted, "%" SCNx64 "%n", &hash, &used);
    wanted += used;
    for (uint32_t i = 0; i < VECTOR_INPUTS; i++)
        for (int k = 0; k < regs; k++) {
            if (sscanf(wanted, "%" SCNx64 "%n", &want, &used) != 1) {
                i = VECTOR_INPUTS;
                break;
            }
            wanted += used;
            uint64_t got = out[(size_t)k * VECTOR_INPUTS + i];
            if (!same(v, vector_input(v, 1, 0, i), got, want)) {
                tell(v, form, i, k, got, want);
                return false;
            }
        }
    if (v->bound[0])
        return true;
    for (int k = 0; k < regs; k++)
        for (uint32_t i = 0; i < VECTOR_INPUTS; i++) {
            uint64_t x = vector_canonical(v->letter[0], out[(size_t)k * VECTOR_INPUTS + i]);
            mine = vector_hash(&x, sizeof x, mine);
        }
    if (mine != hash)
        print_error("%s %s: the first results are right, a later one is not\n", v->name, form);
    return mine == hash;
}

/* ---- running ---- */

enum form { VARYING, UNIFORM };
static const char *const form_names[] = {"varying", "uniform"};

/* Lines with PTX of their own may speak of the warp: they run as varying only. */
static bool takes_part(const struct vector_line *v, enum form form)
{
    return form == VARYING || (!v->ptx && strncmp(v->name, "mma", 3) != 0);
}

/* A GPU's memory begins at multiples of 256, and lines count on 16 of them. */
static _Alignas(256) uint64_t inputs[VECTOR_GROUP][VECTOR_ARGS][VECTOR_REGS][VECTOR_INPUTS];
static _Alignas(256) uint64_t results[VECTOR_GROUP][VECTOR_REGS][VECTOR_INPUTS];
static _Alignas(256) uint64_t scratch[VECTOR_SCRATCH / 8];

static size_t run_group(const struct vector_line *const *v, char *const *want, int n,
                        enum form form, int lanes)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct translate_options opt = {.cache_dir = cache_dir(a), .lanes = lanes};
    struct simt_config config = {.threads = 1, .check = SIMT_CHECK_MEMORY, .exact_mma = true};
    struct simt_built built;
    struct simt *dev;
    struct simt_module *m;
    struct simt_result r;
    const char *name = "vectors";
    char *text = NULL;
    size_t len = 0, bad = 0;
    FILE *f = open_memstream(&text, &len);
    vectors_head(f);
    vectors_kernel(f, name, v, n, form == UNIFORM);
    fclose(f);
    if (!simt_compile((struct text){text, len}, &name, 1, &opt, a, &built, &err)) {
        if (n == 1)
            print_error("%s: %s\n", v[0]->name, err.text);
        free(text);
        arena_free(a);
        if (n == 1)
            return 1;
        return run_group(v, want, n / 2, form, lanes) +
               run_group(v + n / 2, want + n / 2, n - n / 2, form, lanes);
    }
    memset(results, 0, sizeof results);
    for (int s = 0; s < n; s++)
        for (int i = 1; i <= v[s]->args; i++)
            for (int k = 0; k < vector_width(v[s], i); k++)
                for (uint32_t x = 0; x < VECTOR_INPUTS; x++)
                    inputs[s][i - 1][k][x] = vector_input(v[s], i, k, x);
    assert_true(simt_open(&config, &dev, &err));
    simt_alloc_register(dev, inputs, sizeof inputs, "in", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, results, sizeof results, "out", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, scratch, sizeof scratch, "scratch", SIMT_ALLOC_WRITTEN);
    if (!simt_load(dev, built.so_path, &m, &err))
        fail_msg("%s", err.text);
    const void *params[] = {inputs, results, scratch};
    struct simt_launch l = {
        .kernel = name,
        .grid = {form == UNIFORM ? VECTOR_INPUTS : VECTOR_INPUTS / VECTOR_BLOCK, 1, 1},
        .block = {form == UNIFORM ? 32 : VECTOR_BLOCK, 1, 1},
        .params = params,
        .param_bytes = sizeof params};
    assert_true(simt_launch(dev, m, &l, a, &r, &err));
    if (r.outcome != SIMT_OK)
        fail_msg("%s: %s", v[0]->name, r.text);
    for (int s = 0; s < n; s++)
        bad += !compare(v[s], want[s], &results[s][0][0], form_names[form]);
    simt_close(dev);
    free(text);
    arena_free(a);
    return bad;
}

static void vectors_hold(enum form form, int lanes, size_t every)
{
    /* A slow build (sanitizers) takes a part of the lines. */
    const char *slow = getenv("SIMT_VECTORS_EVERY");
    every *= slow ? strtoul(slow, NULL, 10) : 1;
    const struct vector_line *v[VECTOR_GROUP];
    char *want[VECTOR_GROUP];
    int n = 0;
    size_t bad = 0, ran = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (takes_part(&all.v[i], form) && i % every == 0 && strstr(all.v[i].name, all.part)) {
            v[n] = &all.v[i];
            want[n++] = all.want[i];
            ran++;
        }
        if (n == VECTOR_GROUP || (n && i + 1 == all.count)) {
            bad += run_group(v, want, n, form, lanes);
            n = 0;
        }
    }
    if (bad)
        fail_msg("%zu of %zu lines are not as on the GPU", bad, ran);
}

/* ---- every row has a line ---- */

static const struct op_row rows[] = {
#define EACH HOW_EACH
#define CALL HOW_CALL
#define LANE HOW_LANE
#define OP(op, required, optional, types, sig, how, cls, text)                                     \
    {OP_##op,                                                                                      \
     {LIST(MOD, required)},                                                                        \
     {LIST(MOD, optional)},                                                                        \
     {LIST(MOD, types)},                                                                           \
     sig,                                                                                          \
     how,                                                                                          \
     SW_C_##cls,                                                                                   \
     text},
#include "simt/ptx/ptx_ops.def"
#undef EACH
#undef CALL
#undef LANE
};

/* "setp.lt.ftz.f32" as the reader would have it. */
static struct insn insn_of(const char *name, const struct ptx_words *words)
{
    struct insn in = {0};
    size_t len = strcspn(name, " ");
    assert_true(insn_words_read(words, name, len, &in));
    return in;
}

static bool is_for(const struct op_row *row, enum ptx_mod type, const struct insn *in)
{
    if (in->op == OP_CVT && insn_has_mod(in, MOD_PACK)) /* cvt.pack.sat.u8.s32.b32 */
        return row->op == OP_CVTPACK && insn_has_mod(in, row->required[0]);
    const struct op_row *found = op_find(in, in->op == OP_SETP ? OP_CMP : in->op);
    return found && (enum ptx_mod)in->type == type && found->op == row->op &&
           memcmp(found->required, row->required, sizeof row->required) == 0 &&
           memcmp(found->types, row->types, sizeof row->types) == 0;
}

static void every_row_of_the_table_has_a_line(void **state)
{
    struct arena *a = arena_new();
    struct ptx_words words = ptx_words_init(a);
    struct insn *in = arena_array(a, all.count, sizeof *in);
    int missing = 0;
    (void)state;
    for (size_t i = 0; i < all.count; i++)
        in[i] = insn_of(all.v[i].name, &words);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++)
        for (int t = 0; t < MAX_LIST && rows[r].types[t]; t++) {
            size_t i = 0;
            while (i < all.count && !is_for(&rows[r], rows[r].types[t], &in[i]))
                i++;
            if (i == all.count) {
                print_error("no line in vectors.txt for %s.%s.%s\n", ptx_op_name(rows[r].op),
                            ptx_mod_name(rows[r].required[0]), ptx_mod_name(rows[r].types[t]));
                missing++;
            }
        }
    arena_free(a);
    assert_int_equal(missing, 0);
}

/* But those of MMA_LOW: test_low.c has every pair of such factors, and no GPU gave lines yet. */
static void every_matrix_shape_has_a_line(void **state)
{
    struct arena *a = arena_new();
    struct ptx_words words = ptx_words_init(a);
    (void)state;
    for (uint32_t kind = 1; mma_row(kind); kind++) {
        const struct mma_shape *s = mma_row(kind);
        char want[64];
        bool found = s->op == MMA_LOW;
        for (size_t i = 0; i < all.count && !found; i++) {
            const struct vector_line *v = &all.v[i];
            struct insn in = insn_of(v->name, &words);
            if (strncmp(v->name, "mma.", 4) == 0)
                found = (mma_find(&in) & 0xffff) == kind;
            else if (strncmp(v->name, "wmma.", 5) == 0) {
                snprintf(want, sizeof want, ".%s.%s.%s", ptx_type_name(s->d), ptx_type_name(s->a),
                         ptx_type_name(s->c));
                found = in.shape.m == s->m && in.shape.n == s->n && in.shape.k == s->k &&
                        strstr(v->name, want) != NULL;
            }
        }
        if (!found)
            fail_msg("no line in vectors.txt for m%dn%dk%d %s", s->m, s->n, s->k,
                     ptx_type_name(s->a));
    }
    arena_free(a);
}

/* ---- the tests; forms that share most of their code run a part of the lines ---- */

static void every_line_is_as_on_the_gpu(void **state)
{
    (void)state;
    vectors_hold(VARYING, 0, 1);
}

static void lines_on_uniform_registers_are_as_on_the_gpu(void **state)
{
    (void)state;
    vectors_hold(UNIFORM, 0, 3);
}

static void lines_hold_sixteen_lanes_at_a_time(void **state)
{
    (void)state;
    vectors_hold(VARYING, 16, 7);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_has_a_line),
        cmocka_unit_test(every_matrix_shape_has_a_line),
        cmocka_unit_test(every_line_is_as_on_the_gpu),
        cmocka_unit_test(lines_on_uniform_registers_are_as_on_the_gpu),
        cmocka_unit_test(lines_hold_sixteen_lanes_at_a_time),
    };
    if (argc > 2) {
        all.list = argv[1];
        all.hardware = argv[2];
        all.part = argc > 3 ? argv[3] : "";
    }
    read_hardware();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
