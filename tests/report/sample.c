/* sample.c - invented runs, put into the store the way loop.c does it. */
#include "sample.h"

#include "base/buf.h"
#include "base/fs.h"

#include <sqlite3.h>
#include <string.h>

/* One attempt: its text is made from `level`, how far the kernel has come. */
struct step {
    int depth, repair, level, parent;
    enum verdict_kind kind;
    double us;
    const char *change, *summary;
};

struct sample {
    const char *task, *model, *path;
    bool gpu;
    double floor_us, eager_us;
    const struct step *steps;
    int count, profile_from;
    const char *source;
};

static const struct step gemm_steps[] = {
    {0, 0, 0, 0, VERDICT_COMPILE_ERROR, 0, "tiled product through shared memory",
     "kernel.cu:31: no matching function for call to 'make_tensor'"},
    {0, 1, 1, 1, VERDICT_PASS, 2890, "give make_tensor a layout", "built, ran, right"},
    {1, 0, 2, 2, VERDICT_PASS, 1710, "move 16 bytes per load into shared memory", ""},
    {2, 0, 3, 3, VERDICT_RACE, 0, "two buffers of shared memory",
     "shared-memory race in gemm<128, 128, 16> at kernel.cu:44"},
    {2, 1, 4, 4, VERDICT_WRONG_VALUES, 0, "a barrier before the second buffer is read",
     "128 of 262144 elements differ: whole columns 64..67 of each tile"},
    {2, 2, 5, 5, VERDICT_PASS, 1240, "swap the buffers after the barrier", ""},
    {3, 0, 6, 6, VERDICT_PASS, 1262, "unroll the inner loop by 4", ""},
    {4, 0, 7, 6, VERDICT_PASS, 871, "tensor cores: three fp16 products per fp32 product", ""},
    {5, 0, 8, 8, VERDICT_IMPRECISE, 0, "one TF32 product instead of three",
     "rms error 3.1e-4, the reference has 2.8e-8"},
    {6, 0, 9, 8, VERDICT_PASS, 742, "swizzle shared memory by 128 bytes", ""},
    {7, 0, 10, 10, VERDICT_PASS, 655, "asynchronous copies, three stages", ""},
    {8, 0, 11, 11, VERDICT_HANG, 0, "wait for the copy by a barrier of its own",
     "no answer within 2000 ms; block (0, 0) waits at kernel.cu:58"},
    {9, 0, 12, 11, VERDICT_PASS, 611, "wider tiles: 128 by 256", ""},
};

static const struct step gemm_other[] = {
    {0, 0, 0, 0, VERDICT_PASS, 3105, "plain: one output per thread", ""},
    {1, 0, 1, 1, VERDICT_PASS, 2210, "tiles of shared memory", ""},
    {2, 0, 2, 2, VERDICT_PASS, 1530, "eight outputs per thread", ""},
    {3, 0, 3, 3, VERDICT_CRASH, 0, "asynchronous copies", "misaligned address at kernel.cu:40"},
    {4, 0, 4, 3, VERDICT_PASS, 1410, "16-byte loads", ""},
    {5, 0, 6, 5, VERDICT_PASS, 1105, "two buffers", ""},
    {6, 0, 7, 6, VERDICT_PASS, 930, "tensor cores", ""},
};

static const struct step swish_steps[] = {
    {0, 0, 0, 0, VERDICT_PASS, 3.91, "plain: one element per thread", ""},
    {1, 0, 2, 1, VERDICT_PASS, 2.2, "move 16 bytes per load and store", ""},
    {2, 0, 3, 2, VERDICT_WRONG_VALUES, 0, "four vectors per thread",
     "4096 of 65536 elements differ: the last block of every row"},
    {2, 1, 5, 3, VERDICT_PASS, 1.31, "guard the tail", ""},
    {3, 0, 7, 4, VERDICT_PASS, 0.93, "use the hardware's exponential", ""},
};

static const struct step no_steps[] = {
    {0, 0, 0, 0, VERDICT_NO_CODE, 0, "", "the reply held no fenced block with a kernel"},
    {0, 1, 0, 1, VERDICT_COMPILE_ERROR, 0, "first kernel", "kernel.cu:12: expected ';'"},
    {0, 2, 1, 2, VERDICT_NOT_WRITTEN, 0, "semicolon", "65536 of 65536 elements were never written"},
};

static const char task_source[] =
    "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
    "    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:\n"
    "        return torch.matmul(a, b)\n\n\nN = 2048\n\n\ndef get_inputs():\n"
    "    return [torch.rand(N, N), torch.rand(N, N)]\n\n\ndef get_init_inputs():\n"
    "    return []\n";

static const struct sample samples[SAMPLE_COUNT] = {
    {"square_matmul", "anthropic:large-1", "/tasks/square_matmul.py", true, 519, 2700, gemm_steps,
     ARRAY_LEN(gemm_steps), 9, task_source},
    {"square_matmul", "openai:coder-2", "/tasks/square_matmul.py", true, 519, 2700, gemm_other,
     ARRAY_LEN(gemm_other), 0, task_source},
    {"swish", "builtin", "/tasks/swish.py", false, 0.83, 0, swish_steps, ARRAY_LEN(swish_steps), 1,
     "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
     "        return x * torch.sigmoid(x)\n"},
    {"cumsum", "openai:coder-2", "/tasks/cumsum.py", true, 10, 40, no_steps, ARRAY_LEN(no_steps), 0,
     "import torch\n"},
};

/* A kernel that has come `level` steps far: texts differ by a few lines each. */
static const char *kernel_text(const struct sample *s, int level, struct arena *a)
{
    struct buf b = buf_init(1 << 16);

    buf_puts(&b, "#include <cutegen/kernel.h>\n\n#ifdef CUTEGEN_DEVICE\n#include <cute/tensor.hpp>"
                 "\n\nusing namespace cute;\n\n");
    buf_printf(&b,
               "/* %s: one block computes a tile of C,\n * a thread an 8 by 8 piece of it. */\n",
               s->task);
    buf_puts(&b, "template <int BM, int BN, int BK>\n__global__ void __launch_bounds__(256)\n"
                 "    gemm(float const *A, float const *B, float *C, int M, int N, int K)\n{\n");
    buf_printf(&b, "    Tensor mA = make_tensor(make_gmem_ptr(A)%s); // (M,K)\n",
               level ? ", make_layout(make_shape(M, K), make_stride(K, Int<1>{}))"
                     : ", make_shape(M, K), K");
    buf_puts(&b, "    Tensor gA = local_tile(mA, Shape<Int<BM>, Int<BK>>{}, make_coord(blockIdx.x, "
                 "_)); // (BLK_M,BLK_K,k)\n");
    buf_printf(&b, "    __shared__ float smem_a[%s];\n",
               level >= 10  ? "3 * BM * BK"
               : level >= 3 ? "2 * BM * BK"
                            : "BM * BK");
    if (level >= 9)
        buf_puts(&b, "    auto layout_a = composition(Swizzle<3, 2, 3>{}, Layout<Shape<Int<BM>, "
                     "Int<BK>>>{});\n");
    if (level >= 7)
        buf_puts(&b, "    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, "
                     "Layout<Shape<_2, _4>>{});\n");
    buf_printf(&b,
               "    auto copy_a = make_tiled_copy(%s,\n        Layout<Shape<_32, _8>>{}, "
               "Layout<Shape<_1, %s>>{});\n\n",
               level >= 10  ? "Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, float>{}"
               : level >= 2 ? "Copy_Atom<UniversalCopy<uint128_t>, float>{}"
                            : "Copy_Atom<UniversalCopy<float>, float>{}",
               level >= 2 ? "_4" : "_1");
    buf_puts(&b, "    for (int k = 0; k < size<2>(gA); ++k) {\n");
    if (level >= 3)
        buf_printf(&b, "        int const stage = k %% %d;\n", level >= 10 ? 3 : 2);
    buf_puts(&b, "        copy(copy_a, tAgA(_, _, _, k), tAsA(_, _, _, 0));\n");
    if (level >= 4)
        buf_puts(&b, "        __syncthreads();\n");
    if (level >= 6)
        buf_puts(&b, "#pragma unroll 4\n");
    buf_printf(&b, "        gemm(%s, tCrA(_, _, k), tCrB(_, _, k), tCrC);\n",
               level >= 7 ? "mma" : "tCrC");
    buf_printf(&b,
               "%s    }\n    copy(tCrC, tCgC); // \"all\" of it\n}\n#endif\n\n#ifdef "
               "CUTEGEN_HOST\nCUTEGEN_PLAN(call)\n{\n    int const M = (int)call->in[0]"
               ".shape[0];\n    return CUTEGEN_LAUNCH(call, (gemm<128, %d, 16>), "
               "cutegen_grid(M / 128, M / %d), cutegen_block(256), 0);\n}\n#endif\n",
               level >= 5 ? "        stage_swap();\n" : "", level >= 12 ? 256 : 128,
               level >= 12 ? 256 : 128);
    const char *out = buf_copy(&b, a).data;
    buf_release(&b);
    return out;
}

static bool add_call(struct run *r, const struct sample *s, const struct step *p, int n,
                     enum stage_kind stage, const char *source, struct arena *a, struct error *err)
{
    bool paid = strcmp(s->model, "builtin") != 0;
    struct message m[] = {
        {"system", text_of("You are a CUDA kernel engineer. You write CuTe.\n\nOne change per "
                           "step. Answer with a fenced block.\nNever call cuBLAS or cuDNN.")},
        {"user", text_of(arena_printf(a, "Task\n\n%s", s->source))},
        {"user", text_of(arena_printf(a,
                                      "Depth %d, attempt %d. The kernel now:\n\n```cuda\n%s```\n\n"
                                      "Make exactly one change that makes it faster.",
                                      p->depth, n, source))},
    };
    struct request req = {
        .stage = stage, .messages = m, .message_count = 3, .prompt_hash = "5f0c9a11"};
    struct reply reply = {
        .text = text_of(arena_printf(a,
                                     "I will %s, because memory is waited for.\n\n```cuda\n%s"
                                     "```\n",
                                     p->change, source)),
        .model = paid ? strchr(s->model, ':') + 1 : "builtin",
        .finish_reason = "stop",
        .prompt_tokens = paid ? 6200 + 420 * n : -1,
        .cached_tokens = paid ? 5100 : -1,
        .output_tokens = paid ? 1300 + 61 * n : -1,
        .cost_usd = paid ? 0.0161 + 0.0007 * n : -1,
        .latency_ms = paid ? 14000 + 730 * n : 2,
        .retries = paid && n == 7,
    };
    return run_call_add(r, n, 0, &req, &reply, err);
}

static void fill_verdict(const struct step *p, struct verdict *v)
{
    v->kind = p->kind;
    v->summary = p->summary;
    v->detail = p->kind == VERDICT_WRONG_VALUES
                    ? "worst elements\n  [3, 64]   expected  0.5012   got  0.2499\n"
                      "  [3, 65]   expected  0.4871   got  0.2380"
                    : "";
    if (p->kind == VERDICT_RACE) {
        v->advice = "__syncthreads() between lines 41 and 44, or a second buffer";
        v->finding_count = 2;
        v->findings[0] = (struct finding){
            "shared-memory race", "kernel.cu:44",
            "        gemm(tCrC, tCrA(_, _, k), tCrB(_, _, k), tCrC);",
            "read by block (0, 0) thread 33; written without a barrier by thread 2"};
        v->findings[1] = (struct finding){"shared-memory race", "kernel.cu:41",
                                          "        copy(copy_a, tAgA(_, _, _, k), tAsA(_, _, _, "
                                          "0));",
                                          "the write"};
    }
}

static enum attempt_step step_of(enum verdict_kind kind)
{
    return kind == VERDICT_PASS                                          ? STEP_MEASURE
           : kind == VERDICT_COMPILE_ERROR || kind == VERDICT_BAD_LAUNCH ? STEP_BUILD
           : kind == VERDICT_NO_CODE                                     ? STEP_PROPOSE
                                                                         : STEP_TEST;
}

static void fill_measurement(const struct sample *s, const struct step *p, struct measurement *m)
{
    *m = (struct measurement){.modelled = !s->gpu,
                              .time_us = p->us,
                              .warm_us = s->gpu ? p->us * 0.985 : 0,
                              .spread = 0.004,
                              .floor_us = s->floor_us,
                              .bound = s->gpu ? "tensor" : "dram"};
    if (s->gpu) {
        m->baselines[0] = (struct baseline){"eager", s->eager_us, s->eager_us * 0.98};
        m->baselines[1] = (struct baseline){"graph", s->eager_us * 1.01, s->eager_us};
        m->baselines[2] = (struct baseline){"compile", s->eager_us * 1.043, s->eager_us * 1.03};
        m->baseline_count = 3;
    } else {
        m->parts = json_pack("{s:f, s:s, s:[{s:s, s:f, s:f, s:f, s:f, s:f}]}", "total_us", p->us,
                             "bound", "dram", "launches", "kernel", "swish_kernel<128>", "dram",
                             p->us * 0.97, "l2", p->us * 0.55, "fp32", p->us * 0.2, "sfu",
                             p->us * 0.31, "issue", p->us * 0.42);
    }
}

static bool add_outcome(struct run *r, const struct sample *s, const struct step *p, int n,
                        struct error *err)
{
    struct build_result build = {.build_ms = 5400 + 310 * n, .cached = n == 7};
    struct test_result test = {.seed = "81c3f0aa",
                               .test_ms = 900,
                               .deterministic = true,
                               .accuracy_class = s->gpu ? "TF32-class" : "fp32",
                               .accuracy = {.max_abs = 1.5e-3,
                                            .max_rel = 6.0e-8,
                                            .rms_rel = 4.9e-9,
                                            .reference_max_abs = 2.5e-3,
                                            .reference_max_rel = 3.8e-7,
                                            .reference_rms_rel = 2.8e-8,
                                            .draws = 5,
                                            .distributions = 3}};
    struct measurement m;
    struct attempt_outcome o = {.step = step_of(p->kind), .kept = p->us > 0};

    fill_verdict(p, &o.verdict);
    fill_measurement(s, p, &m);
    build.resources = json_pack("{s:{s:i, s:i, s:i}}", "gemm<128, 128, 16>", "registers", 96 + n,
                                "smem", 16384, "spills", 0);
    o.build = o.step >= STEP_BUILD ? &build : NULL;
    o.test = o.step >= STEP_TEST ? &test : NULL;
    o.measurement = o.step >= STEP_MEASURE ? &m : NULL;
    bool ok = run_attempt_end(r, n, &o, err);
    json_decref(build.resources);
    json_decref(m.parts);
    return ok;
}

static bool add_step(struct run *r, const struct sample *s, int n, struct arena *a,
                     struct error *err)
{
    const struct step *p = &s->steps[n - 1];
    enum stage_kind stage = n == 1 ? STAGE_SYNTHESIZE : p->repair ? STAGE_REPAIR : STAGE_OPTIMIZE;
    const char *source = p->kind == VERDICT_NO_CODE ? "" : kernel_text(s, p->level, a);
    struct candidate c = {.depth = p->depth,
                          .attempt = n,
                          .repair = p->repair,
                          .source = text_of(source),
                          .change = p->change};
    struct profile prof = {.source = s->gpu ? "ncu" : "simt counters",
                           .text = "dram throughput      91.2 %\nl2 hit rate          37.0 %\n"
                                   "achieved occupancy   48.1 %\nstall long scoreboard 61 %"};

    if (p->repair && !add_call(r, s, p, n, STAGE_DIAGNOSE, source, a, err))
        return false;
    if (!add_call(r, s, p, n, stage, source, a, err) ||
        !run_attempt_begin(r, &c, stage, p->parent, err) || !add_outcome(r, s, p, n, err))
        return false;
    return p->us <= 0 || !s->profile_from || p->depth + 1 < s->profile_from ||
           run_profile_add(r, n, &prof, err);
}

static json_t *description(const struct sample *s)
{
    int n = s->gpu ? 2048 : 256;
    json_t *x = json_pack("{s:s, s:s, s:s, s:[i, i], s:[i, i]}", "name", "a", "role", "input",
                          "dtype", "f32", "shape", n, n, "strides", n, 1);
    json_t *d = json_pack("{s:s, s:[O], s:[O]}", "name", s->task, "inputs", x, "outputs", x);
    if (s->gpu)
        json_array_append(json_object_get(d, "inputs"), x);
    json_decref(x);
    return d;
}

static const struct device gpu = {
    .kind = DEVICE_CUDA, .name = "NVIDIA H200", .arch = "sm_90a", .sm_count = 132};
static const struct device simt = {
    .kind = DEVICE_SIMT, .name = "simt", .models = "H200", .arch = "compute_80", .sm_count = 132};

static bool fill_one(struct store *st, const struct sample *s, struct arena *a, const char **id,
                     struct error *err)
{
    json_t *d = description(s);
    struct task task = {.name = s->task,
                        .path = s->path,
                        .source = text_of(s->source),
                        .class = s->gpu ? CLASS_GEMM : CLASS_POINTWISE,
                        .class_evidence = "one aten.mm",
                        .scaled = s->gpu ? NULL : "N 2048 -> 256",
                        .description = d};
    json_t *options = json_pack("{s:[s, s, s, s, s], s:i, s:i, s:s}", "command", "cutegen", "run",
                                s->path, "--model", s->model, "profile_from", s->profile_from,
                                "depths", 10, "advance", "best");
    json_t *environment =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "cutegen", "0.1.0", "nvrtc", "13.0", "cutlass",
                  "4.2.0", "torch", "2.9.1", "driver", s->gpu ? "580.95" : "none");
    struct run_spec spec = {.task = &task,
                            .device = s->gpu ? &gpu : &simt,
                            .model = s->model,
                            .suite = s->model, /* a suite has one run of a task */
                            .options = options,
                            .environment = environment};
    struct run *r = NULL;
    bool ok = run_create(st, &spec, &r, err);

    for (int n = 1; ok && n <= s->count; n++)
        ok = add_step(r, s, n, a, err);
    ok = ok &&
         run_end(r, s->steps == no_steps ? RUN_FAILED : RUN_DONE,
                 s->steps == no_steps ? "no correct kernel after 2 repairs" : "all depths", err);
    if (ok)
        *id = arena_strdup(a, run_id(r));
    run_release(r);
    json_decref(d);
    json_decref(options);
    json_decref(environment);
    return ok;
}

/* The calls of the store stamp with the clock; a sample should look as if it took its time. */
static void spread_times(const char *runs_dir, struct arena *a)
{
    sqlite3 *db;

    if (sqlite3_open(path_join(a, runs_dir, "store.db"), &db) == SQLITE_OK)
        sqlite3_exec(db,
                     "UPDATE runs SET started_ms = 1794736800000 + rowid * 60000, "
                     "  ended_ms = 1794736800000 + rowid * 60000 + 31000 * (SELECT count(*) FROM "
                     "  attempts WHERE run = runs.id) + 4000;"
                     "UPDATE attempts SET started_ms = 1794736800000 + number * 31000 + 18000, "
                     "  ended_ms = 1794736800000 + number * 31000 + 29500;",
                     NULL, NULL, NULL);
    sqlite3_close(db);
}

bool sample_fill(const char *runs_dir, struct arena *a, const char *ids[SAMPLE_COUNT],
                 struct error *err)
{
    struct store *st;

    if (!store_open(runs_dir, NULL, STORE_WRITE, &st, err))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < SAMPLE_COUNT; i++)
        ok = fill_one(st, &samples[i], a, &ids[i], err);
    store_close(st);
    if (ok)
        spread_times(runs_dir, a);
    return ok;
}
