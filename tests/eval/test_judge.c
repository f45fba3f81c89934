/*
 * test_judge.c - verdicts out of what an oracle and a runner say, and out of
 * what they fail to say. Both are fake_child.c; the real ones meet in
 * tests/e2e.
 */
#include "base/fs.h"
#include "base/json.h"
#include "eval/judge.h"
#include "eval/sanitizer.h"
#include "eval/verdict_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char source[] = "#include <cute/tensor.hpp>\n"
                             "    copy(copy_a, tAgA(_,_,_,k+1), tAsA(_,_,_,0));\n"
                             "  gemm(mma, tCrA, tCrB, tCrC);\n"
                             "CUTEGEN_LAUNCH(call, k<1>, grid, block, 0, A);\n";

/* PATIENCE_MS: for what must happen. HANG_MS: for what never does; the fake starts within it. */
enum { PATIENCE_MS = 1200000, HANG_MS = 8000 };

/* One bench: a fake oracle in one mode, a fake candidate in another. */
struct bench {
    struct arena *a;
    struct oracle *oracle;
    struct task task;
    struct device device;
    struct build_result build;
    struct candidate candidate;
    struct judge_config config;
    struct error err;
};

static bool bench_open(struct bench *b, const char *oracle_mode, const char *runner_mode,
                       enum device_kind kind)
{
    const char *fake = getenv("FAKE_CHILD");
    struct oracle_load load = {.task_path = __FILE__, .device = "cpu", .work_dir = "/tmp"};

    memset(b, 0, sizeof *b);
    b->a = arena_new();
    b->device = (struct device){.kind = kind, .name = "NVIDIA H200", .models = "H200"};
    b->build = (struct build_result){
        .module_path = runner_mode,
        .names = json_pack("{s:s}", "k<1>", "_Zk"),
        .launches = json_pack("{s:[{s:s, s:i}]}", "ops", "op", "launch", "line", 4),
    };
    b->candidate.source = text_of(source);
    b->config =
        (struct judge_config){.device = &b->device,
                              .task = &b->task,
                              .run_ms = strcmp(runner_mode, "hang at run") ? PATIENCE_MS : 2000,
                              .runner_program = fake,
                              .source_name = "my.cu"};
    assert_non_null(fake);
    if (!oracle_start(&(struct oracle_config){.python = fake,
                                              .script = oracle_mode,
                                              .deadline_ms = strncmp(oracle_mode, "hang", 4)
                                                                 ? PATIENCE_MS
                                                                 : HANG_MS},
                      &b->oracle, &b->err))
        return false;
    b->config.oracle = b->oracle;
    return oracle_load(b->oracle, &load, b->a, &b->task, &b->err);
}

static void bench_close(struct bench *b)
{
    oracle_stop(b->oracle);
    json_decref(b->task.description);
    json_decref(b->build.names);
    json_decref(b->build.launches);
    arena_free(b->a);
}

/* ---- verdicts ----------------------------------------------------------- */

static const struct verdict_case {
    const char *name, *oracle, *runner;
    enum verdict_kind kind;
    const char *summary, *detail;
} verdict_cases[] = {
    {"a right kernel passes", "right", "ok", VERDICT_PASS, "5 draws of 5 distributions", ""},
    {"wrong values come with worst elements", "wrong", "ok", VERDICT_WRONG_VALUES,
     "128 of 1024 output elements are wrong: rows 64..127 of every 128", "[3, 17] 0.5 -> nan"},
    {"one bad draw of five is enough", "wrong in draw 3", "ok", VERDICT_WRONG_VALUES, "128 of 1024",
     "wrong values in 1 of 5 draws"},
    {"NaN goes before wrong values", "wrong and nan", "ok", VERDICT_NON_FINITE, "7 NaN",
     "128 of 1024 elements are wrong"},
    {"not written", "unwritten", "ok", VERDICT_NOT_WRITTEN, "32 of 1024", "never written"},
    {"guard hit", "guard", "ok", VERDICT_GUARD_HIT, "12 bytes after out0 were overwritten", "out0"},
    {"input modified", "modified", "ok", VERDICT_INPUT_MODIFIED, "input in0 was changed", "in0"},
    {"imprecise", "imprecise", "ok", VERDICT_IMPRECISE, "rms error 1e-07", "reference's own"},
    {"a race is found at the user's line, and quoted", "right", "race", VERDICT_RACE,
     "shared-memory race in k<1> at my.cu:3", "gemm(mma, tCrA, tCrB, tCrC);"},
    {"a race goes before the wrong values it causes", "wrong", "race", VERDICT_RACE, "my.cu:3",
     "128 of 1024 elements are wrong"},
    {"a fence of tensor memory that is missing is a race", "right", "fence", VERDICT_RACE,
     "missing tcgen05 fence in k<1> at my.cu:2", "no tcgen05.fence"},
    {"out of bounds", "right", "bounds", VERDICT_UNSAFE_MEMORY,
     "out-of-bounds write in k<1> at my.cu:2", "4 bytes past out0"},
    {"bad launch", "right", "bad launch", VERDICT_BAD_LAUNCH,
     "argument 4 of k<1> is 4 bytes, the kernel takes 8", "CUTEGEN_LAUNCH(call"},
    {"a fault on the GPU", "right", "gpu fault", VERDICT_CRASH, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "my.cu:4"},
    {"more memory than there is", "right", "greedy", VERDICT_OUT_OF_MEMORY,
     "workspace ws0 of 512 bytes", ""},
    {"no answer in time is a hang", "right", "hang at run", VERDICT_HANG,
     "no end of the run within 2 s", ""},
    {"a runner that dies is a crash", "right", "crash at run", VERDICT_CRASH,
     "the candidate's process died during the run", "fake: about to die"},
    {"a runner that dies while loading is a crash", "right", "crash at load", VERDICT_CRASH,
     "died during loading the module", ""},
    {"a line that is no JSON is a crash", "right", "garbage at run", VERDICT_CRASH,
     "gave a malformed answer during the run", ""},
    {"JSON that is not an object is a crash", "right", "array at run", VERDICT_CRASH,
     "gave a malformed answer", ""},
    {"an outcome that does not exist is a crash", "right", "odd outcome", VERDICT_CRASH,
     "gave a malformed answer", ""},
    {"a line of 200 MB is a crash", "right", "huge at run", VERDICT_CRASH,
     "gave a malformed answer", ""},
};

static void check_verdict(const struct verdict_case *c)
{
    struct bench b;
    struct test_result test;

    if (!bench_open(&b, c->oracle, c->runner, DEVICE_SIMT))
        fail_msg("%s: %s", c->name, b.err.text);
    if (!judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err))
        fail_msg("%s: %s", c->name, b.err.text);
    if (test.verdict.kind != c->kind || !strstr(test.verdict.summary, c->summary) ||
        !strstr(test.verdict.detail, c->detail))
        fail_msg("%s: got %s: %s\n%s", c->name, verdict_names[test.verdict.kind],
                 test.verdict.summary, test.verdict.detail);
    json_decref(test.counters);
    bench_close(&b);
}

static void the_relation_of_values_decides_the_advice(void **state)
{
    struct bench b;
    struct test_result test;

    (void)state;
    if (!bench_open(&b, "doubled", "ok", DEVICE_SIMT) ||
        !judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err))
        fail_msg("%s", b.err.text);
    assert_int_equal(test.verdict.kind, VERDICT_WRONG_VALUES);
    assert_non_null(strstr(test.verdict.advice, "off by the same factor"));
    json_decref(test.counters);
    bench_close(&b);
}

static void what_was_seen_decides_the_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(verdict_cases); i++)
        check_verdict(&verdict_cases[i]);
}

static void memory_that_others_hold_is_an_error_to_wait_for_and_no_verdict(void **state)
{
    static const struct {
        const char *oracle, *runner;
        int64_t memory_bytes;
        bool verdict;
    } cases[] = {
        {"right", "greedy", INT64_C(80) << 30, false}, /* 512 bytes would fit an empty device */
        {"right", "greedy", INT64_C(4) << 30, true},   /* and never fit this one */
        {"full device", "ok", INT64_C(80) << 30, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        struct test_result test;
        bool ok;

        assert_true(bench_open(&b, cases[i].oracle, cases[i].runner, DEVICE_CUDA));
        b.device.memory_bytes = cases[i].memory_bytes;
        ok = judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err);
        assert_int_equal(ok, cases[i].verdict);
        if (ok)
            assert_int_equal(test.verdict.kind, VERDICT_OUT_OF_MEMORY);
        else
            assert_int_equal(b.err.kind, ERROR_BUSY);
        json_decref(ok ? test.counters : NULL);
        bench_close(&b);
    }
}

static void a_test_says_how_it_was_compared(void **state)
{
    struct bench b;
    struct test_result test;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_SIMT));
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
    assert_string_equal(test.way, "in 4 parts of 9 rows");
    json_decref(test.counters);
    bench_close(&b);
}

static void the_same_race_in_many_threads_is_one_finding_with_advice(void **state)
{
    struct bench b;
    struct test_result test;

    (void)state;
    assert_true(bench_open(&b, "right", "race", DEVICE_SIMT));
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
    assert_int_equal(test.verdict.finding_count, 1);
    assert_string_equal(test.verdict.findings[0].where, "my.cu:3");
    assert_string_equal(test.verdict.findings[0].line, "gemm(mma, tCrA, tCrB, tCrC);");
    assert_non_null(strstr(test.verdict.findings[0].text, "seen 12 times"));
    assert_non_null(strstr(test.verdict.findings[0].text, "copy(copy_a"));
    assert_string_equal(test.verdict.advice,
                        "__syncthreads() between lines 2 and 3 (or a second buffer)");
    json_decref(test.counters);
    bench_close(&b);
}

static void determinism_is_told_by_two_runs_of_the_same_inputs(void **state)
{
    static const struct {
        const char *runner;
        bool deterministic;
    } cases[] = {{"ok", true}, {"restless", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        struct test_result test;

        assert_true(bench_open(&b, "right", cases[i].runner, DEVICE_SIMT));
        assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
        assert_int_equal(test.verdict.kind, VERDICT_PASS);
        assert_int_equal(test.deterministic, cases[i].deterministic);
        json_decref(test.counters);
        bench_close(&b);
    }
}

static void seeds_are_fresh_unless_one_is_repeated(void **state)
{
    struct bench b;
    struct test_result one, two, three;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_SIMT));
    b.config.draws = 1;
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &one, &b.err));
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &two, &b.err));
    assert_string_not_equal(one.seed, two.seed);
    b.config.seed = one.seed;
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &three, &b.err));
    assert_string_equal(one.seed, three.seed);
    json_decref(one.counters);
    json_decref(two.counters);
    json_decref(three.counters);
    bench_close(&b);
}

static void a_fault_on_the_gpu_is_looked_at_again_for_its_line(void **state)
{
    struct error ignored = {0};
    struct test_result test;
    struct bench b;
    char *dir;

    (void)state;
    assert_true(bench_open(&b, "right", "gpu fault", DEVICE_CUDA));
    assert_true(dir_temp("judge-test", b.a, &dir, &b.err));
    b.build.work_dir = dir;
    b.config.sanitizer = getenv("FAKE_CHILD");
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
    assert_int_equal(test.verdict.kind, VERDICT_UNSAFE_MEMORY);
    assert_string_equal(test.verdict.summary, "out-of-bounds access at my.cu:3");
    assert_non_null(strstr(test.verdict.detail, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_non_null(strstr(test.verdict.detail, "gemm(mma, tCrA, tCrB, tCrC);"));
    dir_remove(dir, &ignored);
    bench_close(&b);
}

static void a_tool_that_cannot_look_is_named_and_not_taken_for_content(void **state)
{
    static const char *const sanitizers[] = {NULL, "/bin/false"};
    static const char *const said[] = {"compute-sanitizer",
                                       "memcheck, racecheck, synccheck, initcheck"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sanitizers); i++) {
        struct error ignored = {0};
        struct test_result test;
        struct bench b;
        char *dir;

        assert_true(bench_open(&b, "right", "ok", DEVICE_CUDA));
        assert_true(dir_temp("judge-test", b.a, &dir, &b.err));
        b.build.work_dir = dir;
        b.config.accept = true;
        b.config.sanitizer = sanitizers[i];
        assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
        assert_int_equal(test.verdict.kind, VERDICT_PASS);
        assert_non_null(test.unchecked_by);
        assert_non_null(strstr(test.unchecked_by, said[i]));
        json_decref(test.counters);
        dir_remove(dir, &ignored);
        bench_close(&b);
    }
}

static const char sanitizer_log[] =
    "========= COMPUTE-SANITIZER\n"
    "========= Invalid __global__ read of size 16 bytes\n"
    "=========     at cute::copy(int)+0x1b0 in /c/cute/arch/copy.hpp:120\n"
    "=========     by thread (33,0,0) in block (2,1,0)\n"
    "=========     Access to 0x7f8c68a00001 is misaligned\n"
    "=========     and is inside the nearest allocation at 0x7f8c68a00000 of size 4,096 bytes\n"
    "=========         Device Frame: gemm(float *)+0x20 in /w/candidate.cu:87\n"
    "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
    "=========         Host Frame: main in runner_main.c:9\n"
    "========= Error: Race reported between Write access at k(int *)+0x120 in /w/candidate.cu:7\n"
    "=========     and Read access at k(int *)+0x160 in /w/candidate.cu:9 [252 hazards]\n"
    "=========\n"
    "========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719)\n"
    "=========     at something in /w/candidate.cu:1\n"
    "not ours\n"
    "========= ERROR SUMMARY: 2 errors";

static void a_sanitizers_log_is_read_to_the_users_lines(void **state)
{
    json_t *list = sanitizer_findings(text_of(sanitizer_log), "candidate.cu");
    json_t *one = json_array_get(list, 0), *two = json_array_get(list, 1);

    (void)state;
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_object_get(one, "kind")), "misaligned access");
    assert_int_equal(json_integer_value(json_object_get(one, "line")), 87);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(one, "thread"), 0)), 33);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(one, "block"), 1)), 1);
    assert_string_equal(json_string_value(json_object_get(two, "kind")), "shared-memory race");
    assert_int_equal(json_integer_value(json_object_get(two, "line")), 7);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(two, "other"), "line")), 9);
    assert_int_equal(json_integer_value(json_object_get(two, "count")), 252);
    json_decref(list);
}

/* Logs of compute-sanitizer 2025.3 on an H200: tests/eval/sanitizer/candidate.cu, one kernel each,
 * cut after the first reports. `line` is the text of the user's line that must be found. */
static const struct log_case {
    const char *file, *kind, *line;
} log_cases[] = {
    {"oob_write.memcheck", "out-of-bounds access", "gY(i) = x[0];"},
    {"oob_copy.memcheck", "out-of-bounds access", "copy(AutoVectorizing"},
    {"oob_shared.memcheck", "out-of-bounds access", "s[threadIdx.x + n * 100]"},
    {"null_write.memcheck", "out-of-bounds access", "*(float *)8 = x[0];"},
    {"trap.memcheck", "trap", "__trap();"},
    {"race_read.racecheck", "shared-memory race", "sX(threadIdx.x) = x[threadIdx.x];"},
    {"race_reuse.racecheck", "shared-memory race", "sum += s[127 - threadIdx.x];"},
    {"async_race.racecheck", "shared-memory race", "y[threadIdx.x] = s[511 - 4"},
    {"uninit_read.initcheck", "uninitialised read", "gY(i) += x[i];"},
    {"divergent.synccheck", "divergent barrier", "__syncthreads();"},
    {"divergent_warp.synccheck", NULL, NULL},
    {"fine.memcheck", NULL, NULL},
    {"fine.racecheck", NULL, NULL},
    {"fine.initcheck", NULL, NULL},
    {"fine.synccheck", NULL, NULL},
};

static void real_logs_of_a_gpu_are_read_to_the_users_lines(void **state)
{
    const char *dir = getenv("SANITIZER_LOGS");
    struct arena *a = arena_new();
    struct error err = {0};
    struct text faults, log;

    (void)state;
    assert_true(file_read(path_join(a, dir, "candidate.cu"), 1 << 20, a, &faults, &err));
    for (size_t i = 0; i < ARRAY_LEN(log_cases); i++) {
        const struct log_case *c = &log_cases[i];
        const char *path = path_join(a, dir, arena_printf(a, "%s.log", c->file));
        json_t *list, *one;
        int line;

        assert_true(file_read(path, 1 << 20, a, &log, &err));
        list = sanitizer_findings(log, "candidate.cu");
        one = json_array_get(list, 0);
        line = (int)json_int_or(one, "line", 0);
        if (!c->kind != !one)
            fail_msg("%s: %zu findings", c->file, json_array_size(list));
        if (one && (strcmp(json_string_or(one, "kind", ""), c->kind) != 0 ||
                    strcmp(json_string_or(one, "file", ""), "candidate.cu") != 0 ||
                    !strstr(words_source_line(faults, line, a), c->line)))
            fail_msg("%s: %s at %s:%d: %s", c->file, json_string_or(one, "kind", "?"),
                     json_string_or(one, "file", "?"), line, words_source_line(faults, line, a));
        json_decref(list);
    }
    arena_free(a);
}

/* ---- the machine -------------------------------------------------------- */

static const struct error_case {
    const char *oracle, *runner, *text, *hint;
} error_cases[] = {
    {"no torch", "ok", "has no torch", "make demo"},
    {"crash at load", "ok", "fake: about to die", ""},
    {"garbage at load", "ok", "not JSON", ""},
    {"hang at draw", "ok", "no answer to drawing inputs within 8 s", ""},
    {"refuse at compare", "ok", "no GPU", "buy one"},
    {"blind", "ok", "an error planted into a right result was not found", "server stop"},
    {"of another version", "ok", "the oracle is of another version", "server stop"},
    {"huge at compare", "ok", "more than", ""},
    {"right", "refuse at load", "no GPU", "buy one"},
    {"right", "refuse at run", "no GPU", ""},
};

static void a_broken_machine_is_an_error_and_never_a_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(error_cases); i++) {
        const struct error_case *c = &error_cases[i];
        struct bench b;
        struct test_result test;

        if (bench_open(&b, c->oracle, c->runner, DEVICE_SIMT) &&
            judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err))
            fail_msg("%s, %s: no error", c->oracle, c->runner);
        if (b.err.kind != ERROR_MACHINE || !strstr(b.err.text, c->text) ||
            !strstr(b.err.hint, c->hint))
            fail_msg("%s, %s: %s (%s)", c->oracle, c->runner, b.err.text, b.err.hint);
        bench_close(&b);
    }
}

static void a_missing_runner_is_an_error(void **state)
{
    struct bench b;
    struct test_result test;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_SIMT));
    b.config.runner_program = "/nowhere/cutegen-runner";
    assert_false(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
    assert_non_null(strstr(b.err.text, "cannot start the runner"));
    bench_close(&b);
}

/* ---- measuring ---------------------------------------------------------- */

static const struct measure_case {
    const char *name, *oracle, *runner;
    enum verdict_kind kind;
    double time_us;
    const char *summary;
} measure_cases[] = {
    {"a steady kernel", "right", "ok", VERDICT_PASS, 300, "300.00 us"},
    {"faster than the bytes allow", "right", "too fast", VERDICT_IMPOSSIBLE_TIME, 1.25,
     "H200 takes"},
    {"events that the wall clock does not bear out", "right", "slow clock", VERDICT_IMPOSSIBLE_TIME,
     305, "by the wall clock"},
    {"a short one: the middle of six rounds", "right", "short", VERDICT_IMPOSSIBLE_TIME, 33.75,
     "33.75 us measured, but"},
    {"a very short one: the middle of four rounds in each of eight processes", "right",
     "very short", VERDICT_IMPOSSIBLE_TIME, 9.25, "9.25 us measured, but"},
    {"other outputs from time to time, all of them right", "right", "now and then", VERDICT_PASS,
     300, "300.00 us"},
    {"rounds that disagree", "right", "drifting", VERDICT_UNSTABLE, -1, "differ by a factor"},
    {"wrong after the clock stopped", "wrong", "ok", VERDICT_UNSTABLE, 300, "128 of 1024"},
    {"dies when verified again", "right", "crash at run", VERDICT_UNSTABLE, 300, "died during"},
};

static void a_time_counts_only_when_it_is_steady_possible_and_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(measure_cases); i++) {
        const struct measure_case *c = &measure_cases[i];
        struct test_result test = {.seed = "1"};
        struct measurement m;
        struct bench b;

        if (!bench_open(&b, c->oracle, c->runner, DEVICE_CUDA) ||
            !judge_measure(&b.config, &b.build, &test, b.a, &m, &b.err))
            fail_msg("%s: %s", c->name, b.err.text);
        if (m.verdict.kind != c->kind || !strstr(m.verdict.summary, c->summary) ||
            (c->time_us > 0 && m.time_us != c->time_us))
            fail_msg("%s: got %s: %s (%g)", c->name, verdict_names[m.verdict.kind],
                     m.verdict.summary, m.time_us);
        bench_close(&b);
    }
}

static void baselines_take_turns_and_one_that_fails_is_left_out(void **state)
{
    struct test_result test = {.seed = "1"};
    struct measurement m;
    struct bench b;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_CUDA));
    assert_true(judge_measure(&b.config, &b.build, &test, b.a, &m, &b.err));
    assert_int_equal(m.baseline_count, 1);
    assert_string_equal(m.baselines[0].name, "eager");
    assert_true(m.baselines[0].cold_us == 1000);
    assert_false(m.modelled);
    bench_close(&b);
}

/* What the oracle does not time is zero, whatever was in the caller's memory. */
static void times_of_a_baseline_are_all_its_own(void **state)
{
    struct oracle_timing timing = {.name = "eager", .cold = 2, .warm = 2, .budget_ms = 1000};
    struct time_samples s;
    struct bench b;

    (void)state;
    memset(&s, 0x5a, sizeof s);
    assert_true(bench_open(&b, "right", "ok", DEVICE_CUDA));
    assert_true(oracle_baseline(b.config.oracle, &timing, b.a, &s, &b.err));
    assert_true(s.cold_count > 0);
    assert_int_equal(s.other_outputs, 0);
    assert_true(s.wall_us == 0);
    bench_close(&b);
}

/* Whatever was timed slow, the true time of PyTorch is 1000 us and the speed-up is over that. */
static void a_disturbed_baseline_never_flatters_the_candidate(void **state)
{
    static const char *const modes[] = {"baseline disturbed", "baseline always disturbed",
                                        "baseline a little slow"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct test_result test = {.seed = "1"};
        struct measurement m;
        struct bench b;

        assert_true(bench_open(&b, modes[i], "ok", DEVICE_CUDA));
        assert_true(judge_measure(&b.config, &b.build, &test, b.a, &m, &b.err));
        assert_int_equal(m.verdict.kind, VERDICT_PASS);
        assert_int_equal(m.baseline_count, 1);
        if (m.baselines[0].cold_us != 1000 || m.baselines[0].warm_us != 900)
            fail_msg("%s: eager at %g and %g us", modes[i], m.baselines[0].cold_us,
                     m.baselines[0].warm_us);
        bench_close(&b);
    }
}

static void on_simt_the_time_is_modelled_and_says_so(void **state)
{
    struct test_result test;
    struct measurement m;
    struct bench b;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_SIMT));
    assert_true(judge_test(&b.config, &b.candidate, &b.build, b.a, &test, &b.err));
    assert_true(judge_measure(&b.config, &b.build, &test, b.a, &m, &b.err));
    assert_true(m.modelled);
    assert_true(m.time_us > 0);
    assert_non_null(strstr(m.verdict.summary, "modelled for H200"));
    assert_true(json_is_true(json_object_get(m.parts, "modelled")));
    json_decref(m.parts);
    json_decref(test.counters);
    bench_close(&b);
}

static void trivial_answers_are_listed(void **state)
{
    struct bench b;
    const char *passes;

    (void)state;
    assert_true(bench_open(&b, "right", "ok", DEVICE_SIMT));
    assert_true(oracle_trivial(b.oracle, b.a, &passes, &b.err));
    assert_string_equal(passes, "zeros, mean");
    assert_string_equal(b.task.scaled, "N 4096 -> 256");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_seen_decides_the_verdict),
        cmocka_unit_test(the_relation_of_values_decides_the_advice),
        cmocka_unit_test(memory_that_others_hold_is_an_error_to_wait_for_and_no_verdict),
        cmocka_unit_test(a_test_says_how_it_was_compared),
        cmocka_unit_test(the_same_race_in_many_threads_is_one_finding_with_advice),
        cmocka_unit_test(determinism_is_told_by_two_runs_of_the_same_inputs),
        cmocka_unit_test(seeds_are_fresh_unless_one_is_repeated),
        cmocka_unit_test(a_fault_on_the_gpu_is_looked_at_again_for_its_line),
        cmocka_unit_test(a_tool_that_cannot_look_is_named_and_not_taken_for_content),
        cmocka_unit_test(a_sanitizers_log_is_read_to_the_users_lines),
        cmocka_unit_test(real_logs_of_a_gpu_are_read_to_the_users_lines),
        cmocka_unit_test(a_broken_machine_is_an_error_and_never_a_verdict),
        cmocka_unit_test(a_missing_runner_is_an_error),
        cmocka_unit_test(a_time_counts_only_when_it_is_steady_possible_and_right),
        cmocka_unit_test(baselines_take_turns_and_one_that_fails_is_left_out),
        cmocka_unit_test(times_of_a_baseline_are_all_its_own),
        cmocka_unit_test(a_disturbed_baseline_never_flatters_the_candidate),
        cmocka_unit_test(on_simt_the_time_is_modelled_and_says_so),
        cmocka_unit_test(trivial_answers_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
