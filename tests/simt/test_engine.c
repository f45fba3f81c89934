/* test_engine.c - what the engine does to be fast must not show: small kernels in PTX. */
#include "support.h"

#include "simt/emit/abi.h"
#include "simt/ir/narrow_addresses.h"

#include <stdio.h>

enum { THREADS = 64 };

static const char head[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<8>;\n"
                           ".reg .b32 %r<16>;\n.reg .b64 %rd<24>;\n"
                           "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n";

static void run_checked(const char *body, int outputs, uint64_t *out, enum simt_check check,
                        struct arena *a)
{
    struct error err = {0};
    struct simt *dev;
    struct simt_module *m;
    struct simt_result res;
    size_t bytes = (size_t)THREADS * (size_t)outputs * sizeof *out;
    struct simt_config config = {.threads = 1, .check = check, .counters = true};
    char *so = compile_text(text_of(arena_printf(a, "%s%s\nret;\n}\n", head, body)), a);
    memset(out, 0xee, bytes);
    assert_true(simt_open(&config, &dev, &err));
    simt_alloc_register(dev, out, bytes, "out", SIMT_ALLOC_WRITTEN);
    if (!simt_load(dev, so, &m, &err))
        fail_msg("%s", err.text);
    struct simt_launch l = {.kernel = "k",
                            .grid = {1, 1, 1},
                            .block = {THREADS, 1, 1},
                            .params = &out,
                            .param_bytes = sizeof out};
    if (!simt_launch(dev, m, &l, a, &res, &err))
        fail_msg("%s", err.text);
    if (res.outcome != SIMT_OK || res.finding_count)
        fail_msg("%s: %s", simt_outcome_name(res.outcome),
                 res.finding_count ? res.findings[0].text : res.text);
    simt_close(dev);
}

static void run_text(const char *body, int outputs, uint64_t *out, struct arena *a)
{
    run_checked(body, outputs, out, SIMT_CHECK_FULL, a);
}

/* base + stride * lane is exact modulo 2^32; where it is widened, some lanes lie behind the wrap.
 */
static void indexes_that_wrap_within_a_warp_are_exact(void **state)
{
    static uint64_t out[THREADS * 6];
    struct arena *a = arena_new();
    (void)state;
    run_text("add.s32 %r2, %r1, -5;\n"
             "cvt.u64.u32 %rd2, %r2;\nshl.b64 %rd3, %rd2, 2;\nadd.s64 %rd3, %rd3, 7;\n"
             "mul.wide.u32 %rd4, %r2, 12;\n"
             "cvt.s64.s32 %rd5, %r2;\n"
             "add.s32 %r3, %r1, 2147483640;\nmul.wide.s32 %rd6, %r3, 4;\n"
             "sub.s32 %r4, 9, %r1;\ncvt.u64.u32 %rd7, %r4;\nsub.s64 %rd8, 3, %rd7;\n"
             "cvt.u32.u64 %r5, %rd4;\nadd.s32 %r5, %r5, %r1;\ncvt.u64.u32 %rd9, %r5;\n"
             "mul.wide.u32 %rd10, %r1, 48;\nadd.s64 %rd11, %rd1, %rd10;\n"
             "st.global.u64 [%rd11], %rd3;\nst.global.u64 [%rd11+8], %rd4;\n"
             "st.global.u64 [%rd11+16], %rd5;\nst.global.u64 [%rd11+24], %rd6;\n"
             "st.global.u64 [%rd11+32], %rd8;\nst.global.u64 [%rd11+40], %rd9;",
             6, out, a);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t below = t - 5, above = t + 2147483640u, back = 9 - t;
        const uint64_t want[] = {(uint64_t)below * 4 + 7,
                                 (uint64_t)below * 12,
                                 (uint64_t)(int64_t)(int32_t)below,
                                 (uint64_t)((int64_t)(int32_t)above * 4),
                                 3 - (uint64_t)back,
                                 (uint32_t)((uint64_t)below * 12) + t};
        for (int i = 0; i < 6; i++)
            if (out[t * 6 + (uint32_t)i] != want[i])
                fail_msg("thread %u, value %d: %#llx, not %#llx", t, i,
                         (unsigned long long)out[t * 6 + (uint32_t)i], (unsigned long long)want[i]);
    }
    arena_free(a);
}

/* base + lane against a limit is two scalars; where it wraps some lanes are below and some above.
 */
static void comparisons_that_wrap_within_a_warp_are_exact(void **state)
{
    static uint64_t out[THREADS * 6];
    struct arena *a = arena_new();
    (void)state;
    run_text("add.s32 %r2, %r1, -5;\nadd.s32 %r3, %r1, 2147483640;\nmov.u32 %r4, %ntid.x;\n"
             "setp.lt.s32 %p1, %r2, 7;\nsetp.ge.u32 %p2, %r2, 3;\n"
             "setp.gt.s32 %p3, %r3, -2147483647;\nsetp.le.u32 %p4, %r3, 2147483647;\n"
             "setp.lt.u32 %p5, %r1, %r4;\nsetp.ge.s32 %p6, %r1, 33;\n"
             "mul.wide.u32 %rd2, %r1, 48;\nadd.s64 %rd3, %rd1, %rd2;\nmov.u64 %rd4, 1;\n"
             "@%p1 st.global.u64 [%rd3], %rd4;\n@%p2 st.global.u64 [%rd3+8], %rd4;\n"
             "@%p3 st.global.u64 [%rd3+16], %rd4;\n@%p4 st.global.u64 [%rd3+24], %rd4;\n"
             "@%p5 st.global.u64 [%rd3+32], %rd4;\n@%p6 st.global.u64 [%rd3+40], %rd4;",
             6, out, a);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t below = t - 5, above = t + 2147483640u;
        const bool want[] = {(int32_t)below<7, below >= 3, (int32_t)above> - 2147483647,
                             above <= 2147483647u, true, t >= 33};
        for (uint32_t i = 0; i < 6; i++)
            if ((out[t * 6 + i] == 1) != want[i])
                fail_msg("thread %u, comparison %u is not %d", t, i, want[i]);
    }
    arena_free(a);
}

/* Where there are many, pairs of halves are calls: with the same bits. */
static void many_pairs_of_halves_are_what_few_are(void **state)
{
    static const char *const ops[] = {
        "add.f16x2 %r3, %r3, %r2;\n",         "mul.ftz.f16x2 %r4, %r3, %r2;\n",
        "sub.sat.f16x2 %r5, %r4, %r3;\n",     "max.f16x2 %r3, %r4, %r5;\n",
        "min.bf16x2 %r6, %r3, %r2;\n",        "fma.rn.f16x2 %r3, %r2, %r5, %r4;\n",
        "add.ftz.sat.f16x2 %r4, %r2, %r6;\n", "max.bf16x2 %r5, %r6, %r4;\n",
        "mul.f16x2 %r6, %r5, %r2;\n",         "min.ftz.f16x2 %r4, %r6, %r3;\n"};
    static uint64_t out[2][THREADS * 2];
    struct arena *a = arena_new();
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct buf b = buf_init(1 << 16);
        buf_puts(&b,
                 "mul.lo.u32 %r2, %r1, 0x04f107c3;\nxor.b32 %r2, %r2, 0x3c11b955;\n"
                 "shl.b32 %r3, %r2, 3;\nmul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd3, %rd1, %rd2;\n");
        for (size_t i = 0; i < 50; i++)
            buf_puts(&b, ops[i % ARRAY_LEN(ops)]);
        buf_puts(&b, "mov.b64 %rd4, {%r3, %r4};\nmov.b64 %rd5, {%r5, %r6};\n");
        for (size_t i = 0; many && i < 50; i++)
            buf_puts(&b, ops[i % ARRAY_LEN(ops)]);
        buf_puts(&b, "st.global.u64 [%rd3], %rd4;\nst.global.u64 [%rd3+8], %rd5;");
        run_text(b.data, 2, out[many], a);
        buf_release(&b);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    arena_free(a);
}

/* An address that wraps only in lanes that do not use it. */
static void a_guarded_neighbour_is_read(void **state)
{
    static uint64_t out[THREADS * 2];
    struct arena *a = arena_new();
    (void)state;
    run_text("mul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd3, %rd1, %rd2;\n"
             "cvt.u64.u32 %rd4, %r1;\nst.global.u64 [%rd3], %rd4;\nbar.sync 0;\n"
             "mov.u64 %rd5, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra SKIP;\n"
             "add.s32 %r2, %r1, -1;\nmul.wide.u32 %rd6, %r2, 16;\nadd.s64 %rd7, %rd1, %rd6;\n"
             "ld.global.u64 %rd5, [%rd7];\nadd.s64 %rd5, %rd5, 100;\n"
             "SKIP:\nst.global.u64 [%rd3+8], %rd5;",
             2, out, a);
    for (uint32_t t = 0; t < THREADS; t++)
        assert_int_equal(out[2 * t + 1], t ? t + 99 : 0);
    arena_free(a);
}

/* Lanes leave a loop one by one; what they take along is theirs, what stays is not blended. */
static void lanes_leave_a_loop_with_their_own_values(void **state)
{
    static uint64_t out[THREADS * 2];
    struct arena *a = arena_new();
    (void)state;
    run_text("mov.u32 %r2, 0;\nmov.u32 %r3, 1;\nmov.u32 %r6, 0;\nand.b32 %r4, %r1, 7;\n"
             "LOOP:\nadd.s32 %r2, %r2, 1;\nmul.lo.s32 %r3, %r3, 3;\nadd.s32 %r6, %r6, %r2;\n"
             "setp.le.u32 %p1, %r2, %r4;\n@%p1 bra LOOP;\n"
             "add.s32 %r5, %r3, %r6;\ncvt.u64.u32 %rd2, %r5;\ncvt.u64.u32 %rd3, %r2;\n"
             "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd5, %rd1, %rd4;\n"
             "st.global.u64 [%rd5], %rd2;\nst.global.u64 [%rd5+8], %rd3;",
             2, out, a);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t turns = (t & 7) + 1, power = 1;
        for (uint32_t i = 0; i < turns; i++)
            power *= 3;
        assert_int_equal(out[2 * t], power + turns * (turns + 1) / 2);
        assert_int_equal(out[2 * t + 1], turns);
    }
    arena_free(a);
}

/* Both sides of a branch become guarded instructions. */
static void short_branches_become_guards(void **state)
{
    static uint64_t out[THREADS];
    struct arena *a = arena_new();
    (void)state;
    run_text(
        "and.b32 %r2, %r1, 3;\nmov.u32 %r3, 50;\nsetp.ne.u32 %p1, %r2, 2;\n@%p1 bra ELSE;\n"
        "add.s32 %r3, %r1, 7;\nmul.lo.s32 %r3, %r3, %r3;\nbra JOIN;\n"
        "ELSE:\nsub.s32 %r3, %r3, %r2;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra JOIN;\n"
        "add.s32 %r3, %r3, 1000;\n"
        "JOIN:\ncvt.u64.u32 %rd2, %r3;\nmul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd4, %rd1, %rd3;\n"
        "st.global.u64 [%rd4], %rd2;",
        1, out, a);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t q = t & 3, want = q == 2 ? (t + 7) * (t + 7) : 50 - q + (q ? 1000 : 0);
        assert_int_equal(out[t], want);
    }
    arena_free(a);
}

/* Neither side of a guard sees what the other did, also when the guard itself changes. */
static void sides_of_a_guard_keep_to_themselves(void **state)
{
    static uint64_t out[THREADS * 2];
    struct arena *a = arena_new();
    (void)state;
    run_text("and.b32 %r2, %r1, 1;\nmul.lo.u32 %r3, %r1, %r1;\nmov.u32 %r4, 7;\n"
             "setp.eq.u32 %p1, %r2, 0;\n"
             "@%p1 add.u32 %r3, %r3, 10;\n@!%p1 mul.lo.u32 %r3, %r3, 3;\n"
             "@%p1 add.u32 %r4, %r4, %r3;\n@!%p1 sub.u32 %r4, %r3, %r4;\n"
             "@%p1 add.u32 %r3, %r3, %r4;\nadd.u32 %r3, %r3, 1;\n"
             "@%p1 setp.gt.u32 %p1, %r3, 100;\n@%p1 add.u32 %r3, %r3, 1000;\n"
             "@!%p1 add.u32 %r3, %r3, %r4;\n@%p1 add.u32 %r4, %r4, %r3;\n"
             "cvt.u64.u32 %rd2, %r3;\ncvt.u64.u32 %rd3, %r4;\n"
             "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd5, %rd1, %rd4;\n"
             "st.global.u64 [%rd5], %rd2;\nst.global.u64 [%rd5+8], %rd3;",
             2, out, a);
    for (uint32_t t = 0; t < THREADS; t++) {
        bool p = !(t & 1);
        uint32_t x = t * t, y = 7;
        x = p ? x + 10 : x * 3;
        y = p ? y + x : x - y;
        x = p ? x + y + 1 : x + 1;
        p = p && x > 100;
        x = p ? x + 1000 : x + y;
        y = p ? y + x : y;
        assert_int_equal(out[2 * t], x);
        assert_int_equal(out[2 * t + 1], y);
    }
    arena_free(a);
}

enum { REGION = 2048, TURNS = 3 };

static void quad_turn(uint32_t *at, uint32_t stride, uint32_t off)
{
    uint32_t x[32][4];
    for (uint32_t l = 0; l < 32; l++)
        memcpy(x[l], at + l * stride / 4, sizeof x[l]);
    for (uint32_t l = 0; l < 32; l++) {
        uint32_t a = x[l][0] + 1, b = x[l][1] * 3, y[4] = {x[l][3] + b, x[l][2] ^ a, b, a};
        memcpy(at + (l * stride + off) / 4, y, sizeof y);
    }
}

/* A warp reads its four words a lane before it writes any, wherever the rows lie. To the full check
 * that is a race. */
static void rows_of_four_words_may_overlap(void **state)
{
    static const struct {
        uint32_t stride, off;
    } cases[] = {{16, 0}, {16, 16}, {16, 64}, {16, 512}, {32, 0}, {32, 16}};
    static uint64_t out[THREADS * 8];
    struct arena *a = arena_new();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t want[REGION / 4], stride = cases[i].stride, off = cases[i].off;
        run_checked(arena_printf(a,
                                 "and.b32 %%r2, %%r1, 31;\nshr.u32 %%r3, %%r1, 5;\n"
                                 "mov.u32 %%r4, %%ctaid.x;\nxor.b32 %%r4, %%r2, %%r4;\n"
                                 "mul.wide.u32 %%rd2, %%r4, %u;\nmul.wide.u32 %%rd3, %%r3, %d;\n"
                                 "add.s64 %%rd4, %%rd1, %%rd2;\nadd.s64 %%rd4, %%rd4, %%rd3;\n"
                                 "mul.lo.u32 %%r9, %%r2, %%r2;\nadd.u32 %%r15, %%r9, 5;\n"
                                 "st.global.v4.u32 [%%rd4], {%%r2, %%r9, %%r15, %%r2};\n"
                                 "mov.u32 %%r5, 0;\n"
                                 "LOOP:\nld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%rd4];\n"
                                 "add.u32 %%r6, %%r10, 1;\nmul.lo.u32 %%r7, %%r11, 3;\n"
                                 "xor.b32 %%r8, %%r12, %%r6;\nadd.u32 %%r14, %%r13, %%r7;\n"
                                 "st.global.v4.u32 [%%rd4+%u], {%%r14, %%r8, %%r7, %%r6};\n"
                                 "add.u32 %%r5, %%r5, 1;\nsetp.lt.u32 %%p1, %%r5, %d;\n"
                                 "@%%p1 bra LOOP;",
                                 stride, REGION, off, TURNS),
                    8, out, SIMT_CHECK_MEMORY, a);
        memset(want, 0xee, sizeof want);
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t first[4] = {l, l * l, l * l + 5, l};
            memcpy(want + l * stride / 4, first, sizeof first);
        }
        for (int turn = 0; turn < TURNS; turn++)
            quad_turn(want, stride, off);
        assert_memory_equal(out, want, sizeof want);
        assert_memory_equal((const char *)out + REGION, want, sizeof want);
    }
    arena_free(a);
}

/* Shared memory as NVRTC addresses it. %rd3 is an offset in global and in shared memory, %rd8 goes
 * around a loop, %rd12 has bits above the lower 32 on its way, %rd14 comes from shifts to the
 * right, %rd16 depends on the thread's number, %rd17 is stored, too. */
#define SHARED_64                                                                                  \
    ".shared .align 8 .b8 s[2048];\n"                                                              \
    "mul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd4, %rd1, %rd3;\nmov.u64 %rd5, s;\n"                    \
    "add.s64 %rd6, %rd5, %rd3;\ncvt.u64.u32 %rd2, %r1;\nadd.s64 %rd2, %rd2, 1000;\n"               \
    "st.shared.u64 [%rd6+512], %rd2;\nbar.sync 0;\n"                                               \
    "mov.u64 %rd7, 0;\nmov.u32 %r2, 0;\nadd.s64 %rd8, %rd6, 512;\n"                                \
    "LOOP:\nld.shared.u64 %rd9, [%rd8];\nadd.s64 %rd7, %rd7, %rd9;\n"                              \
    "add.s64 %rd8, %rd8, 8;\nadd.s64 %rd10, %rd5, 1016;\n"                                         \
    "setp.gt.u32 %p1, %r1, 56;\nselp.b64 %rd8, %rd10, %rd8, %p1;\n"                                \
    "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 4;\n@%p2 bra LOOP;\n"                             \
    "cvt.s64.s32 %rd11, %r1;\nsub.s64 %rd11, %rd11, 64;\nshl.b64 %rd12, %rd11, 3;\n"               \
    "sub.s64 %rd12, %rd5, %rd12;\nld.shared.u64 %rd13, [%rd12+504];\nadd.s64 %rd7, %rd7, %rd13;\n" \
    "shr.u64 %rd14, %rd3, 4;\nmad.lo.s64 %rd15, %rd14, 16, %rd5;\n"                                \
    "ld.shared.u64 %rd13, [%rd15+512];\nadd.s64 %rd7, %rd7, %rd13;\n"                              \
    "shr.u64 %rd14, %rd3, 5;\nmad.lo.s64 %rd21, %rd14, 32, %rd5;\n"                                \
    "ld.shared.u64 %rd13, [%rd21+512];\nadd.s64 %rd7, %rd7, %rd13;\n"                              \
    "@%p1 ld.shared.u32 %r3, [%rd15+512];\n@!%p1 mov.u32 %r3, 5;\n"                                \
    "and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p3, %r4, 0;\n@%p3 bra EVEN;\n"                             \
    "mov.u64 %rd16, 520;\nbra JOIN;\nEVEN:\nmov.u64 %rd16, 528;\nJOIN:\n"                          \
    "add.s64 %rd17, %rd5, %rd16;\nand.b64 %rd18, %rd17, -8;\nld.shared.u64 %rd13, [%rd18];\n"      \
    "add.s64 %rd7, %rd7, %rd13;\nsub.s64 %rd19, %rd17, %rd5;\nadd.s64 %rd7, %rd7, %rd19;\n"        \
    "cvt.u64.u32 %rd20, %r3;\nadd.s64 %rd7, %rd7, %rd20;\nst.global.u64 [%rd4], %rd7;"

static uint64_t shared_64(uint64_t t)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 4; i++)
        sum += 1000 + (t <= 56 ? t + i : i ? 63 : t);
    sum += 1000 + 63 - t;                                      /* from the other end */
    sum += 1000 + t / 2 * 2 + (t > 56 ? 1000 + t / 2 * 2 : 5); /* by pairs */
    sum += 1000 + t / 4 * 4;
    return sum + (t & 1 ? 1001 + 520 : 1002 + 528);
}

static void shared_memory_may_be_addressed_in_64_bits(void **state)
{
    static uint64_t out[THREADS];
    struct arena *a = arena_new();
    (void)state;
    run_text(SHARED_64, 1, out, a);
    for (uint64_t t = 0; t < THREADS; t++)
        assert_int_equal(out[t], shared_64(t));
    arena_free(a);
}

static void addresses_of_shared_memory_are_made_narrow(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct ptx_module m;
    struct ptx_kernel k;
    int places = 0;
    (void)state;
    assert_true(
        ptx_module_read(text_of(arena_printf(a, "%s%s\nret;\n}\n", head, SHARED_64)), a, &m, &err));
    assert_true(ptx_kernel_read(&m, "k", a, &k, &err));
    narrow_shared(&k);
    for (int i = 0; i < k.insn_count; i++)
        for (int j = 0; insn_has_mod(&k.insn[i], MOD_SHARED) && j < k.insn[i].arg_count; j++) {
            const struct opnd *o = &k.insn[i].args[j];
            if (o->kind != OPND_ADDR || o->reg < 0)
                continue;
            assert_int_equal(ptx_type_bytes(k.reg_type[o->reg]), 4);
            places++;
        }
    assert_int_equal(places, 7);
    arena_free(a);
}

/* Translated for the blocks a plan has, a kernel runs with those; others are refused. */
static void a_kernel_runs_with_the_blocks_it_was_translated_for(void **state)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n"
        "mov.u32 %r2, %tid.y;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r1;\n"
        "mul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd3, %rd1, %rd2;\nshl.b32 %r5, %r2, 8;\n"
        "or.b32 %r5, %r5, %r1;\nst.global.u32 [%rd3], %r5;\nret;\n}\n";
    static const uint32_t shapes[2][3] = {{32, 2, 1}, {16, 4, 1}};
    const char *name = "k";
    struct arena *a = arena_new();
    (void)state;
    for (unsigned forms = 0; forms <= (SW_ROWS | SW_GENERAL); forms++)
        for (int shape = 0; shape < 2; shape++) {
            uint32_t out[THREADS] = {0}, *to = out;
            struct error err = {0};
            struct simt *dev;
            struct simt_module *m;
            struct simt_result res;
            struct simt_built built;
            struct simt_config config = {.threads = 1};
            struct translate_options opt = {.cache_dir = cache_dir(a), .forms = &forms};
            const uint32_t *block = shapes[shape];
            bool wanted = !forms || forms & sw_form_for(block);
            struct simt_launch l = {.kernel = "k",
                                    .grid = {1, 1, 1},
                                    .block = {block[0], block[1], 1},
                                    .params = &to,
                                    .param_bytes = sizeof to};
            assert_true(simt_compile(text_of(ptx), &name, 1, &opt, a, &built, &err));
            assert_true(simt_open(&config, &dev, &err));
            simt_alloc_register(dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
            assert_true(simt_load(dev, built.so_path, &m, &err));
            assert_int_equal(simt_launch(dev, m, &l, a, &res, &err), wanted);
            for (uint32_t t = 0; t < THREADS && wanted; t++)
                assert_int_equal(out[t], t / block[0] << 8 | t % block[0]);
            if (!wanted)
                assert_non_null(strstr(err.text, "other blocks"));
            simt_close(dev);
        }
    arena_free(a);
}

/* Host threads take runs of blocks, shorter towards the end: none is left out or run twice. */
static void each_block_runs_once_on_any_number_of_threads(void **state)
{
    enum { MOST = 2000 };
    static uint32_t out[MOST], *to = out;
    static const uint32_t grids[] = {1, 2, 3, 17, 64, 509, MOST};
    struct arena *a = arena_new();
    struct error err = {0};
    char *so = compile_text(
        text_of(arena_printf(a,
                             "%smov.u32 %%r2, %%ctaid.x;\nmul.wide.u32 %%rd2, %%r2, 4;\n"
                             "add.s64 %%rd3, %%rd1, %%rd2;\nsetp.eq.u32 %%p1, %%r1, 0;\n"
                             "@%%p1 ld.global.u32 %%r3, [%%rd3];\nadd.s32 %%r3, %%r3, 1;\n"
                             "@%%p1 st.global.u32 [%%rd3], %%r3;\nret;\n}\n",
                             head)),
        a);
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        struct simt_config config = {.threads = threads, .check = SIMT_CHECK_MEMORY};
        struct simt *dev;
        struct simt_module *m;
        assert_true(simt_open(&config, &dev, &err));
        simt_alloc_register(dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
        assert_true(simt_load(dev, so, &m, &err));
        for (size_t g = 0; g < ARRAY_LEN(grids); g++) {
            struct simt_result res;
            struct simt_launch l = {.kernel = "k",
                                    .grid = {grids[g], 1, 1},
                                    .block = {THREADS, 1, 1},
                                    .params = &to,
                                    .param_bytes = sizeof to};
            memset(out, 0, sizeof out);
            assert_true(simt_launch(dev, m, &l, a, &res, &err));
            for (uint32_t i = 0; i < MOST; i++)
                if (out[i] != (i < grids[g]))
                    fail_msg("block %u of %u, %d threads: ran %u times", i, grids[g], threads,
                             out[i]);
        }
        simt_close(dev);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_that_wrap_within_a_warp_are_exact),
        cmocka_unit_test(comparisons_that_wrap_within_a_warp_are_exact),
        cmocka_unit_test(many_pairs_of_halves_are_what_few_are),
        cmocka_unit_test(a_guarded_neighbour_is_read),
        cmocka_unit_test(lanes_leave_a_loop_with_their_own_values),
        cmocka_unit_test(short_branches_become_guards),
        cmocka_unit_test(sides_of_a_guard_keep_to_themselves),
        cmocka_unit_test(rows_of_four_words_may_overlap),
        cmocka_unit_test(shared_memory_may_be_addressed_in_64_bits),
        cmocka_unit_test(addresses_of_shared_memory_are_made_narrow),
        cmocka_unit_test(a_kernel_runs_with_the_blocks_it_was_translated_for),
        cmocka_unit_test(each_block_runs_once_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
