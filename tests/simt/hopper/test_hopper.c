/*
 * test_hopper.c - the kernels of kernels.cu on simt: results equal to those an
 * H200 gave (h200.def) and to plain loops here, and no finding with every check on.
 */
#include "../support.h"

#include "cases.h"

#include <stdio.h>

static const struct {
    const char *name;
    uint64_t hash;
} measured[] = {
#define HASH(name, hash) {name, hash},
#include "h200.def"
#undef HASH
};

static char *so, *bugs_so;

struct run {
    struct arena *a;
    const char *so;                /* NULL: of the kernels */
    bool profile, exact, hardware; /* maps as the hardware has them, where simt knows how */
    int converted;
    uint64_t sample;
    struct simt *dev;
    struct simt_module *mod;
    uint8_t *buf[3];
};

/* The bits that the CuTe DSL's host code writes for a map; false: not known for such a one. */
static bool hardware_map(const struct hopper_map *m, const struct simt_map *s, uint32_t x[32])
{
    static const char *const types[] = {"u8",  "u16", "u32", "i32", "u64",
                                        "i64", "f16", "f32", "f64", "bf16"};
    uint32_t type = 0;
    while (type < ARRAY_LEN(types) && strcmp(types[type], m->type) != 0)
        type++;
    if (type == ARRAY_LEN(types) || m->nan || m->im2col)
        return false;
    for (int d = 0; d < m->rank; d++)
        if (m->steps[d] > 1)
            return false;
    memset(x, 0, 128);
    x[0] = (uint32_t)s->address;
    x[1] = (uint32_t)(s->address >> 32);
    x[2] = 0x240002u | (uint32_t)(m->rank - 1) << 4 | type << 7 | m->swizzle << 13;
    for (int d = 0; d < m->rank; d++) {
        x[8 + d] = (uint32_t)m->dims[d] - 1;
        if (d > 0)
            x[2 + d] = (uint32_t)(s->strides_bytes[d - 1] / 16);
        if (d > 0)
            x[14] |= (m->box[d] - 1) << 8 * (d - 1);
    }
    x[13] = (m->box[0] - 1) << 24;
    return true;
}

static void fill_maps(const struct hopper_case *x, struct run *r, unsigned char *params)
{
    for (int i = 0; i < 3; i++) {
        struct hopper_map m;
        struct simt_map s = {0};
        char why[200];
        if (!hopper_map_read(x->map[i], &m))
            continue;
        s.address = (uint64_t)(uintptr_t)r->buf[i];
        s.dtype = m.type;
        s.rank = m.rank;
        s.swizzle = m.swizzle;
        s.fill_nan = m.nan;
        s.im2col = m.im2col;
        s.channels = m.channels;
        s.pixels = m.pixels;
        uint64_t stride = hopper_type_bytes(m.type);
        for (int d = 0; d < m.rank; d++) {
            s.dims[d] = m.dims[d];
            s.box[d] = m.box[d];
            s.element_strides[d] = m.steps[d];
            s.strides_bytes[d] = stride *= m.dims[d];
        }
        memcpy(s.lower, m.lower, sizeof s.lower);
        memcpy(s.upper, m.upper, sizeof s.upper);
        if (!simt_map_encode(&s, params + 128 * i, why, sizeof why))
            fail_msg("%s: map %d: %s", x->name, i, why);
        uint32_t bits[32];
        if (r->hardware && hardware_map(&m, &s, bits)) {
            memcpy(params + 128 * i, bits, sizeof bits);
            r->converted++;
        }
    }
}

static struct simt_result run_case(const struct hopper_case *x, enum simt_check check,
                                   uint64_t seed, struct run *r)
{
    struct simt_config c = {.threads = 2,
                            .check = check,
                            .counters = true,
                            .watchdog_ms = 1200000,
                            .warp_order_seed = seed,
                            .profile = r->profile,
                            .exact_mma = r->exact};
    static const char *const names[] = {"a", "b", "c"};
    struct error err = {0};
    struct simt_result out;
    unsigned char params[512] = {0};
    *r = (struct run){.a = arena_new(), .so = r->so, .sample = r->sample, .hardware = r->hardware};
    assert_true(simt_open(&c, &r->dev, &err));
    if (!simt_load(r->dev, r->so ? r->so : so, &r->mod, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        r->buf[i] = aligned_alloc(256, (x->bytes[i] + 511) / 256 * 256);
        hopper_fill(x->fill[i], r->buf[i], x->bytes[i], (uint32_t)i + 1);
        if (x->bytes[i])
            simt_alloc_register(r->dev, r->buf[i], x->bytes[i], names[i],
                                i < 2 ? SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN
                                      : SIMT_ALLOC_WRITTEN);
        memcpy(params + 384 + 8 * i, &r->buf[i], 8);
    }
    fill_maps(x, r, params);
    memcpy(params + 408, &x->m, 4);
    memcpy(params + 412, &x->n, 4);
    memcpy(params + 416, &x->k, 4);
    struct simt_launch l = {.kernel = x->kernel,
                            .grid = {x->gx, x->gy, 1},
                            .block = {x->block, 1, 1},
                            .cluster = {x->cluster, 1, 1},
                            .shared_bytes = x->shared,
                            .params = params,
                            .param_bytes = 420,
                            .sample = r->sample};
    if (!simt_launch(r->dev, r->mod, &l, r->a, &out, &err))
        fail_msg("%s: %s", x->name, err.text);
    return out;
}

static void run_end(struct run *r)
{
    simt_close(r->dev);
    for (int i = 0; i < 3; i++)
        free(r->buf[i]);
    arena_free(r->a);
}

static void every_kernel_runs_without_a_finding(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOPPER_CASES; i++) {
        const struct hopper_case *x = &hopper_cases[i];
        uint64_t first = 0;
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct run r = {0};
            struct simt_result out =
                run_case(x, seed == 2 ? SIMT_CHECK_OFF : SIMT_CHECK_FULL, seed, &r);
            uint64_t hash = hopper_hash(r.buf[2], x->bytes[2]);
            if (out.outcome != SIMT_OK || out.finding_count)
                fail_msg("%s: %s, %zu findings: %s", x->name, simt_outcome_name(out.outcome),
                         out.finding_count, out.finding_count ? out.findings[0].text : out.text);
            if (seed && hash != first)
                fail_msg("%s: the result depends on the order of warps or on checks", x->name);
            first = hash;
            run_end(&r);
        }
    }
}

/* Clusters that end all alike were once taken for ones that cannot go on. */
static void many_clusters_run_to_their_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOPPER_CASES; i++) {
        struct hopper_case x = hopper_cases[i];
        struct run r = {0};
        struct simt_result out;
        size_t share = x.bytes[2] / (size_t)x.gx, written = 0;

        if (strcmp(x.name, "cluster read") != 0)
            continue;
        x.gx *= 32;
        x.bytes[0] *= 32;
        x.bytes[2] *= 32;
        out = run_case(&x, SIMT_CHECK_OFF, 0, &r);
        assert_int_equal(out.outcome, SIMT_OK);
        for (size_t b = 0; b < (size_t)x.gx; b++)
            for (size_t k = 0; k < share; k++)
                if (((unsigned char *)r.buf[2])[b * share + k]) {
                    written++;
                    break;
                }
        assert_int_equal(written, x.gx);
        run_end(&r);
    }
}

static void results_are_those_of_an_h200(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < HOPPER_CASES; i++)
        for (size_t k = 0; k < ARRAY_LEN(measured); k++) {
            struct run r = {.exact = true};
            if (strcmp(measured[k].name, hopper_cases[i].name) != 0)
                continue;
            run_case(&hopper_cases[i], SIMT_CHECK_OFF, 0, &r);
            if (hopper_hash(r.buf[2], hopper_cases[i].bytes[2]) != measured[k].hash) {
                print_message("%s differs\n", hopper_cases[i].name);
                bad++;
            }
            run_end(&r);
        }
    assert_int_equal(bad, 0);
}

static void maps_as_the_hardware_has_them_are_read(void **state)
{
    int converted = 0;
    (void)state;
    for (size_t i = 0; i < HOPPER_CASES; i++) {
        struct run own = {0}, hardware = {.hardware = true};
        const struct hopper_case *x = &hopper_cases[i];
        if (strncmp(x->name + 1, "d ", 2) != 0 && strcmp(x->name, "1d") != 0)
            continue;
        run_case(x, SIMT_CHECK_OFF, 0, &own);
        run_case(x, SIMT_CHECK_OFF, 0, &hardware);
        if (hopper_hash(own.buf[2], x->bytes[2]) != hopper_hash(hardware.buf[2], x->bytes[2]))
            fail_msg("%s differs", x->name);
        converted += hardware.converted;
        run_end(&own);
        run_end(&hardware);
    }
    assert_in_range(converted, 8, 1000);
}

/* ---- mistakes ---- */

static const struct hopper_bug {
    const char *name;
    enum simt_finding_kind kind;
    uint32_t cluster;
    const char *mark; /* NULL: the name */
} bugs[] = {
    {"no_expect", SIMT_MBARRIER, 1, NULL},
    {"tx_small", SIMT_MBARRIER, 1, NULL},
    {"tx_large", SIMT_MBARRIER, 1, NULL},
    {"parity", SIMT_ASYNC_NOT_WAITED, 1, NULL},
    {"no_wait", SIMT_ASYNC_NOT_WAITED, 1, NULL},
    {"init_no_sync", SIMT_MBARRIER, 1, NULL},
    {"not_initialised", SIMT_MBARRIER, 1, NULL},
    {"too_many", SIMT_MBARRIER, 1, NULL},
    {"two_rounds", SIMT_ASYNC_NOT_WAITED, 1, NULL},
    {"ring_no_empty", SIMT_ASYNC_OVERWRITE, 1, "ring"},
    {"ring_no_fence", SIMT_PROXY_READ, 1, "ring"},
    {"store_no_fence", SIMT_PROXY, 1, NULL},
    {"store_no_sync", SIMT_RACE_SHARED, 1, NULL},
    {"store_reuse", SIMT_ASYNC_OVERWRITE, 1, NULL},
    {"store_no_wait", SIMT_COPY_EXIT, 1, NULL},
    {"wgmma_no_fence", SIMT_PROXY, 1, NULL},
    {"wgmma_overwrite", SIMT_ASYNC_OVERWRITE, 1, NULL},
    {"wgmma_early", SIMT_WGMMA, 1, NULL},
    {"wgmma_unfenced", SIMT_WGMMA_FENCE, 1, NULL},
    {"wgmma_wait_one", SIMT_WGMMA, 1, NULL},
    {"wgmma_in_flight", SIMT_ASYNC_NOT_WAITED, 1, NULL},
    {"wgmma_refill", SIMT_ASYNC_OVERWRITE, 1, NULL},
    {"wgmma_outside", SIMT_OUT_OF_BOUNDS, 1, NULL},
    {"cluster_start", SIMT_CLUSTER, 2, NULL},
    {"cluster_exit", SIMT_CLUSTER, 2, NULL},
    {"cluster_rank", SIMT_CLUSTER, 2, NULL},
    {"cluster_mask", SIMT_CLUSTER, 2, NULL},
    {"cluster_twice", SIMT_CLUSTER, 2, NULL},
    {"cluster_bars", SIMT_MBARRIER, 2, NULL},
    {"cluster_race_read", SIMT_RACE_SHARED, 2, NULL},
    {"cluster_race_write", SIMT_RACE_SHARED, 2, NULL},
    {"cluster_race_reuse", SIMT_RACE_SHARED, 2, NULL},
    {"cluster_race_arrive", SIMT_RACE_SHARED, 2, NULL},
    {"tile_align", SIMT_MISALIGNED, 1, NULL},
    {"bulk_size", SIMT_MISALIGNED, 1, NULL},
    {"bulk_address", SIMT_MISALIGNED, 1, NULL},
    {"map_rank", SIMT_TENSOR_MAP, 1, NULL},
    {"map_none", SIMT_TENSOR_MAP, 1, NULL},
    {"map_too_large", SIMT_OUT_OF_BOUNDS, 1, NULL},
    {"coordinate", SIMT_TENSOR_MAP, 1, NULL},
    {"store_below", SIMT_TENSOR_MAP, 1, NULL},
};

/* The line of bugs.cu that carries the mark. */
static int line_of(const char *name, struct arena *a)
{
    struct error err = {0};
    struct text src;
    if (!file_read(SIMT_TESTS_DIR "/hopper/bugs.cu", 1 << 20, a, &src, &err))
        fail_msg("%s", err.text);
    const char *at = strstr(src.data, arena_printf(a, "BUG:%s\n", name));
    int line = 1;
    if (!at)
        fail_msg("no mark for %s", name);
    for (const char *p = src.data; p < at; p++)
        line += *p == '\n';
    return line;
}

static struct hopper_case bug_case(const struct hopper_bug *b, bool ok, struct arena *a)
{
    bool wgmma = strncmp(b->name, "wgmma", 5) == 0;
    struct hopper_case x = {.name = b->name,
                            .kernel = arena_printf(a, "%s_%s", b->name, ok ? "ok" : "bug"),
                            .gx = b->cluster,
                            .gy = 1,
                            .block = 128,
                            .cluster = b->cluster,
                            .shared = 65536,
                            .map = {wgmma ? "f16/64,64/64,64/3/" : "f32/32,24/32,8/0/",
                                    wgmma ? "f16/64,64/64,64/3/" : "f32/32,64/32,8/0/",
                                    wgmma ? "" : "f32/32,8/32,8/0/"},
                            .fill = {wgmma ? "f16" : "f32", "f16", ""},
                            .bytes = {wgmma ? 8192 : 3072, wgmma ? 8192 : 2048, 16384}};
    return x;
}

static bool names_line(const struct simt_result *out, enum simt_finding_kind kind, int line)
{
    for (size_t i = 0; i < out->finding_count; i++)
        if (out->findings[i].kind == kind && out->findings[i].path_len &&
            out->findings[i].path[0].line == line)
            return true;
    return false;
}

static void each_hopper_mistake_is_found_on_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
        for (uint64_t seed = 0; seed < 1; seed++) {
            struct arena *a = arena_new();
            struct run r = {.so = bugs_so};
            struct hopper_case x = bug_case(&bugs[i], false, a);
            struct simt_result out = run_case(&x, SIMT_CHECK_FULL, seed, &r);
            int line = line_of(bugs[i].mark ? bugs[i].mark : bugs[i].name, a);
            if (!names_line(&out, bugs[i].kind, line))
                fail_msg("%s, seed %d: no %s on line %d; %s, %zu findings, first: %s", x.kernel,
                         (int)seed, simt_finding_name(bugs[i].kind), line,
                         simt_outcome_name(out.outcome), out.finding_count,
                         out.finding_count ? out.findings[0].text : "none");
            run_end(&r);
            arena_free(a);
        }
}

static void the_correct_twin_of_each_gives_no_finding(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct arena *a = arena_new();
            struct run r = {.so = bugs_so};
            struct hopper_case x = bug_case(&bugs[i], true, a);
            struct simt_result out = run_case(&x, SIMT_CHECK_FULL, seed, &r);
            if (out.outcome != SIMT_OK || out.finding_count)
                fail_msg("%s, seed %d: %s, %zu findings: %s", x.kernel, (int)seed,
                         simt_outcome_name(out.outcome), out.finding_count,
                         out.finding_count ? out.findings[0].text : out.text);
            run_end(&r);
            arena_free(a);
        }
}

/* ---- plain loops ---- */

static double element(const char *type, const uint8_t *p, size_t i, bool is_unsigned)
{
    if (strcmp(type, "bits") == 0)
        return is_unsigned ? p[i] : (signed char)p[i];
    if (strcmp(type, "f32") == 0) {
        float f;
        memcpy(&f, p + 4 * i, 4);
        return (double)f;
    }
    if (strcmp(type, "e4m3") == 0 || strcmp(type, "e5m2") == 0) {
        int bits = strcmp(type, "e4m3") == 0 ? 3 : 2, e = p[i] >> bits & (bits == 3 ? 15 : 31);
        double v = e ? (1 + (p[i] & ((1 << bits) - 1)) / (double)(1 << bits)) : 0;
        for (int q = bits == 3 ? 7 : 15; q < e; q++)
            v *= 2;
        return p[i] & 128 ? -v : v;
    }
    uint16_t h;
    memcpy(&h, p + 2 * i, 2);
    int bf = strcmp(type, "bf16") == 0, mb = bf ? 7 : 10, e = h >> mb & (bf ? 255 : 31);
    double v = e ? 1 + (h & ((1 << mb) - 1)) / (double)(1 << mb) : 0;
    for (int q = bf ? 127 : 15; q < e; q++)
        v *= 2;
    return h & 0x8000 ? -v : v;
}

static void wgmma_gives_the_products_of_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOPPER_CASES; i++) {
        const struct hopper_case *x = &hopper_cases[i];
        if ((strncmp(x->kernel, "wg_", 3) != 0 && strncmp(x->kernel, "gemm_ws", 7) != 0) ||
            strchr(x->fill[0], ' ')) /* their sums are rounded */
            continue;
        struct run r = {0};
        bool gemm = x->kernel[0] == 'g', ints = strcmp(x->fill[0], "bits") == 0;
        bool ua = strstr(x->name, "u8") && !strstr(x->name, "s8"), ub = strstr(x->name, "u8");
        int n = x->n, m = gemm ? x->m : 64,
            es = ints || x->fill[0][0] == 'e'     ? 1
                 : strcmp(x->fill[0], "f32") == 0 ? 4
                                                  : 2;
        int kk = gemm ? x->k : 128 / es;
        bool half = x->bytes[2] == (uint32_t)(m * n * 2);
        run_case(x, SIMT_CHECK_OFF, 0, &r);
        for (int row = 0; row < m; row++)
            for (int col = 0; col < n; col++) {
                double want = 0, got;
                for (int k = strcmp(x->kernel, "x") == 0; k < kk; k++)
                    want += element(x->fill[0], r.buf[0], (size_t)(row * kk + k), ua) *
                            element(x->fill[1], r.buf[1], (size_t)(col * kk + k), ub);
                if (strstr(x->name, "minus"))
                    want = -want;
                size_t at = (size_t)(row * n + col);
                if (half)
                    got = element("f16", r.buf[2], at, false);
                else if (ints) {
                    int32_t v;
                    memcpy(&v, r.buf[2] + 4 * at, 4);
                    got = v;
                } else {
                    got = element("f32", r.buf[2], at, false);
                }
                if (got != want)
                    fail_msg("%s: row %d column %d is %g, not %g", x->name, row, col, got, want);
            }
        run_end(&r);
    }
}

static const struct hopper_case *case_named(const char *name)
{
    for (size_t i = 0; i < HOPPER_CASES; i++)
        if (strcmp(hopper_cases[i].name, name) == 0)
            return &hopper_cases[i];
    fail_msg("no case %s", name);
    return NULL;
}

static void a_sample_of_blocks_stands_for_the_grid(void **state)
{
    struct run all = {0}, some = {.sample = 4};
    (void)state;
    struct simt_counters a = run_case(case_named("transpose"), SIMT_CHECK_OFF, 0, &all).counters;
    struct simt_counters b = run_case(case_named("transpose"), SIMT_CHECK_OFF, 0, &some).counters;
    assert_int_equal(a.blocks, 12);
    assert_int_equal(b.blocks, 12);
    assert_int_equal(a.warp_instructions, b.warp_instructions);
    assert_int_equal(a.shared_wavefronts, b.shared_wavefronts);
    assert_int_equal(a.global_load_sectors, b.global_load_sectors);
    run_end(&all);
    run_end(&some);
}

/* Every block gets what the others of its cluster fetch, but each byte is fetched once. */
static void a_multicast_reads_memory_once(void **state)
{
    struct run r = {0};
    struct simt_counters c = run_case(case_named("multicast"), SIMT_CHECK_OFF, 0, &r).counters;
    (void)state;
    assert_int_equal(c.global_load_bytes, case_named("multicast")->bytes[0]);
    assert_int_equal(c.global_load_sectors, case_named("multicast")->bytes[0] / 32);
    run_end(&r);
}

static void a_profile_gives_every_count_to_a_line(void **state)
{
    struct run r = {.profile = true};
    uint64_t instructions = 0, sectors = 0, waves = 0;
    (void)state;
    struct simt_result out = run_case(case_named("bulk ring"), SIMT_CHECK_OFF, 0, &r);
    assert_true(out.line_count > 5);
    for (size_t i = 0; i < out.line_count; i++) {
        instructions += out.lines[i].instructions;
        sectors += out.lines[i].sectors;
        waves += out.lines[i].shared_wavefronts;
    }
    assert_int_equal(instructions, out.counters.warp_instructions);
    assert_int_equal(sectors, out.counters.global_load_sectors + out.counters.global_store_sectors);
    assert_int_equal(waves, out.counters.shared_wavefronts);
    json_t *j = simt_lines_json(&out);
    assert_int_equal(json_array_size(j), out.line_count);
    json_decref(j);
    run_end(&r);
}

static void a_profile_names_products_and_copies_by_line(void **state)
{
    struct run r = {.profile = true};
    uint64_t flops = 0, copies = 0, waits = 0, left = 0;
    (void)state;
    struct simt_result out = run_case(case_named("gemm f16"), SIMT_CHECK_OFF, 0, &r);
    for (size_t i = 0; i < out.line_count; i++) {
        flops += out.lines[i].tensor_flops[SIMT_TENSOR_F16];
        copies += out.lines[i].async_copies;
        waits += out.lines[i].async_waits;
        left += out.lines[i].async_left;
    }
    assert_int_equal(flops, 2 * 128 * 192 * 192);
    assert_int_equal(out.counters.tensor_flops, flops);
    assert_int_equal(out.counters.tensor_flops_of[SIMT_TENSOR_F16], flops);
    assert_int_equal(copies, 6 * 3 * 2); /* blocks, chunks of K, A and B */
    assert_int_equal(out.counters.async_copies, copies);
    assert_int_equal(out.counters.async_waits, waits);
    assert_true(left > 0 && left == out.counters.async_left);
    run_end(&r);
}

static void a_map_that_breaks_a_rule_is_refused_with_the_rule(void **state)
{
    static const struct {
        const char *name;
        struct simt_map map;
        const char *says;
    } cases[] = {
        {"rank", {.dtype = "f32", .rank = 6}, "1 to 5"},
        {"type", {.dtype = "f8", .rank = 1, .dims = {64}, .box = {16}}, "f8"},
        {"address", {.dtype = "f32", .rank = 1, .address = 8, .dims = {64}, .box = {16}}, "16"},
        {"box", {.dtype = "f32", .rank = 1, .dims = {999}, .box = {257}}, "257"},
        {"width", {.dtype = "f32", .rank = 1, .dims = {64}, .box = {3}}, "12 bytes wide"},
        {"stride",
         {.dtype = "f32", .rank = 2, .dims = {63, 4}, .strides_bytes = {252}, .box = {32, 1}},
         "252"},
        {"swizzle",
         {.dtype = "f32",
          .rank = 2,
          .dims = {64, 4},
          .strides_bytes = {256},
          .box = {32, 1},
          .swizzle = 2},
         "at most 64"},
        {"nan", {.dtype = "i32", .rank = 1, .dims = {64}, .box = {16}, .fill_nan = true}, "NaN"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned char out[128];
        char why[200] = "";
        assert_false(simt_map_encode(&cases[i].map, out, why, sizeof why));
        if (!strstr(why, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].name, why, cases[i].says);
    }
}

static void a_form_that_is_none_is_refused(void **state)
{
    static const char *const lines[] = {
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
        "[%rd1, {%r2}], [%r3];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%r1], [%rd1, {%r2}], [%r3];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.u32 [%rd1], [%r1], 16;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3}, %rd1, %rd1, 1, 1, 1, 0, "
        "0;",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, "
        "0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,0f00000000}, %rd1, %rd1, "
        "1, "
        "1, 1, 0, 0;",
        "setmaxnreg.inc.sync.aligned.u32 20;",
        "mbarrier.sleep.shared::cta.b64 [%r1];",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        struct translate_options opt = {0};
        struct text c;
        const char *name = "k";
        int n;
        char *ptx = arena_printf(a,
                                 ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry "
                                 "k()\n{\n.reg .b32 %%r<9>;\n.reg .b64 %%rd<9>;\n.reg .f32 "
                                 "%%f<9>;\n%s\nret;\n}\n",
                                 lines[i]);
        if (simt_translate(text_of(ptx), &name, 1, &opt, a, &c, &n, &err))
            fail_msg("taken: %s", lines[i]);
        assert_int_equal(err.kind, ERROR_JUDGED);
        arena_free(a);
    }
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_runs_without_a_finding),
        cmocka_unit_test(wgmma_gives_the_products_of_plain_loops),
        cmocka_unit_test(many_clusters_run_to_their_end),
        cmocka_unit_test(results_are_those_of_an_h200),
        cmocka_unit_test(maps_as_the_hardware_has_them_are_read),
        cmocka_unit_test(each_hopper_mistake_is_found_on_its_line),
        cmocka_unit_test(the_correct_twin_of_each_gives_no_finding),
        cmocka_unit_test(a_sample_of_blocks_stands_for_the_grid),
        cmocka_unit_test(a_multicast_reads_memory_once),
        cmocka_unit_test(a_profile_gives_every_count_to_a_line),
        cmocka_unit_test(a_profile_names_products_and_copies_by_line),
        cmocka_unit_test(a_form_that_is_none_is_refused),
        cmocka_unit_test(a_map_that_breaks_a_rule_is_refused_with_the_rule),
    };
    so = compile_file("hopper_kernels.ptx", a);
    bugs_so = compile_file("hopper_bugs.ptx", a);
    if (argc > 1) { /* by hand: one case, all findings */
        for (size_t i = 0; i < HOPPER_CASES; i++) {
            struct run r = {0};
            if (strcmp(argv[1], "bugs") == 0)
                break;
            if (strcmp(argv[1], "all") != 0 && !strstr(hopper_cases[i].name, argv[1]))
                continue;
            struct simt_result out = run_case(&hopper_cases[i], SIMT_CHECK_FULL, 0, &r);
            printf("HASH(\"%s\", 0x%016llx) %s\n", hopper_cases[i].name,
                   (unsigned long long)hopper_hash(r.buf[2], hopper_cases[i].bytes[2]),
                   simt_outcome_name(out.outcome));
            for (size_t k = 0; k < out.finding_count; k++)
                printf("    %s: %s\n", simt_finding_name(out.findings[k].kind),
                       out.findings[k].text);
            FILE *f = argc > 2 ? fopen(path_join(a, argv[2], hopper_cases[i].name), "wb") : NULL;
            if (f) {
                fwrite(r.buf[2], 1, hopper_cases[i].bytes[2], f);
                fclose(f);
            }
            run_end(&r);
        }
        for (size_t i = 0; strcmp(argv[1], "bugs") == 0 && i < 2 * ARRAY_LEN(bugs); i++) {
            struct run r = {.so = bugs_so};
            struct hopper_case x = bug_case(&bugs[i / 2], i & 1, a);
            struct simt_result out = run_case(&x, SIMT_CHECK_FULL, 0, &r);
            printf("%s: %s, %zu findings\n", x.kernel, simt_outcome_name(out.outcome),
                   out.finding_count);
            for (size_t k = 0; k < out.finding_count && k < 4; k++)
                printf("    %s: %s\n", simt_finding_name(out.findings[k].kind),
                       out.findings[k].text);
            run_end(&r);
        }
        return 0;
    }
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(a);
    return rc;
}
