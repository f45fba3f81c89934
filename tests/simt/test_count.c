/* test_count.c - what one warp's access counts, by hand: sectors, lines, passes, meetings, reuse.
 */
#include "support.h"

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    /* a load and a store, `stride` bytes from lane to lane, `times` times */
    ".visible .entry global(.param .u64 a, .param .u32 stride, .param .u32 times)\n{\n"
    ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<3>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [stride];\nld.param.u32 %r3, [times];\n"
    "mov.u32 %r2, %tid.x;\nmad.wide.u32 %rd2, %r2, %r1, %rd1;\n"
    "L:\nld.global.f32 %f1, [%rd2];\nst.global.f32 [%rd2], %f1;\n"
    "sub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra L;\nret;\n}\n"
    /* 16 bytes at (lane >> shift) * 16 */
    ".visible .entry shared(.param .u64 a, .param .u32 shift, .param .u32 times)\n{\n"
    ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.shared .align 16 .b8 s[4096];\n"
    "ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [shift];\nmov.u32 %r2, %tid.x;\n"
    "shr.u32 %r3, %r2, %r1;\nshl.b32 %r3, %r3, 4;\nmov.u32 %r4, s;\nadd.u32 %r4, %r4, %r3;\n"
    "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r4];\nadd.f32 %f1, %f1, %f2;\n"
    "add.f32 %f3, %f3, %f4;\nadd.f32 %f1, %f1, %f3;\nst.global.f32 [%rd1], %f1;\nret;\n}\n"
    /* an atomic at (lane >> shift) * 4 */
    ".visible .entry atomic(.param .u64 a, .param .u32 shift, .param .u32 times)\n{\n"
    ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
    "ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [shift];\nmov.u32 %r2, %tid.x;\n"
    "shr.u32 %r3, %r2, %r1;\nmad.wide.u32 %rd2, %r3, 4, %rd1;\nmov.u32 %r4, 1;\n"
    "red.global.add.u32 [%rd2], %r4;\nret;\n}\n";

static struct simt_counters run(const char *kernel, uint32_t how, uint32_t times, uint32_t blocks)
{
    static char *so;
    static struct arena *kept;
    static float data[1 << 16] __attribute__((aligned(256)));
    struct simt_config c = {.threads = 1, .counters = true};
    struct arena *a = arena_new();
    struct error err = {0};
    struct simt *dev;
    struct simt_module *mod;
    struct simt_result out;
    struct bench_args args = {.len = 0};
    void *p = data;

    if (!so) {
        kept = arena_new();
        so = compile_text(text_of(ptx), kept);
    }
    assert_true(simt_open(&c, &dev, &err));
    assert_true(simt_load(dev, so, &mod, &err));
    simt_alloc_register(dev, data, sizeof data, "a", SIMT_ALLOC_WRITTEN);
    put_arg(&args, &p, 8);
    put_arg(&args, &how, 4);
    put_arg(&args, &times, 4);
    struct simt_launch l = {.kernel = kernel,
                            .grid = {blocks, 1, 1},
                            .block = {32, 1, 1},
                            .params = args.data,
                            .param_bytes = args.len};
    if (!simt_launch(dev, mod, &l, a, &out, &err) || out.outcome != SIMT_OK)
        fail_msg("%s: %s%s", kernel, err.text, out.text);
    simt_close(dev);
    arena_free(a);
    return out.counters;
}

static void a_request_takes_the_sectors_and_lines_it_touches(void **state)
{
    static const struct {
        uint32_t stride, sectors, lines;
    } cases[] = {{4, 4, 1}, {8, 8, 2}, {32, 32, 8}, {64, 32, 16}, {128, 32, 32}, {0, 1, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct simt_counters n = run("global", cases[i].stride, 3, 1);
        assert_int_equal(n.global_load_requests, 3);
        assert_int_equal(n.global_load_sectors, 3 * cases[i].sectors);
        assert_int_equal(n.global_load_lines, 3 * cases[i].lines);
        assert_int_equal(n.global_store_sectors, 3 * cases[i].sectors);
        assert_int_equal(n.global_store_lines, 3 * cases[i].lines);
    }
}

/* The second and third turn find what the first has read; another block does not. */
static void a_block_comes_back_to_what_it_has_read(void **state)
{
    struct simt_counters n = run("global", 32, 3, 2);
    (void)state;
    assert_int_equal(n.global_load_sectors, 2 * 96);
    assert_int_equal(n.block_load_sectors, 2 * 32);
    assert_int_equal(n.far_load_sectors, 2 * 32);
    assert_int_equal(n.block_load_chunks, 2 * 16);
    assert_int_equal(n.buffer_bytes[0], (1 << 16) * 4);
    assert_int_equal(n.buffer_sectors[0], 2 * 64);
    n = run("global", 128, 1, 1); /* each alone in its 64 bytes */
    assert_int_equal(n.block_load_chunks, 32);
}

static void wide_loads_of_few_places_take_fewer_passes(void **state)
{
    static const struct {
        uint32_t shift, passes;
    } cases[] = {{0, 4}, {1, 2}, {4, 2}, {5, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct simt_counters n = run("shared", cases[i].shift, 1, 1);
        assert_int_equal(n.shared_requests, 1);
        assert_int_equal(n.shared_wavefronts, cases[i].passes);
        assert_int_equal(n.shared_conflicts, 0);
    }
}

static void atomics_that_meet_are_counted(void **state)
{
    static const struct {
        uint32_t shift, met, sectors;
    } cases[] = {{0, 0, 4}, {1, 16, 2}, {5, 31, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct simt_counters n = run("atomic", cases[i].shift, 1, 2);
        assert_int_equal(n.global_atomics, 64);
        assert_int_equal(n.atomic_conflicts, 2 * cases[i].met);
        assert_int_equal(n.global_atomic_sectors, 2 * cases[i].sectors);
        assert_int_equal(n.global_atomic_lines, 2);
        assert_int_equal(n.atomic_span, 4 * ((31 >> cases[i].shift) + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_takes_the_sectors_and_lines_it_touches),
        cmocka_unit_test(a_block_comes_back_to_what_it_has_read),
        cmocka_unit_test(wide_loads_of_few_places_take_fewer_passes),
        cmocka_unit_test(atomics_that_meet_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
