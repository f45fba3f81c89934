/*
 * test_cuda.c - the runner's protocol and what it asks of a CUDA driver.
 *
 * The driver is fake_cuda.c: host memory and a log. What only a GPU can show
 * (real faults, real times) is not shown here.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { GUARD = 4096, ELEMENTS = 256 };

struct bench {
    struct arena *a;
    char *dir;
    const char *log;
    struct child *child;
    struct error err;
};

static void open_bench(struct bench *b, const char *fail)
{
    const char *libraries = getenv("FAKE_CUDA_DIR"), *runner = getenv("RUNNER");
    const char *env[5] = {0};

    assert_non_null(libraries);
    assert_non_null(runner);
    memset(b, 0, sizeof *b);
    b->a = arena_new();
    assert_true(dir_temp("runner-test", b->a, &b->dir, &b->err));
    b->log = path_join(b->a, b->dir, "log");
    env[0] = arena_printf(b->a, "LD_LIBRARY_PATH=%s", libraries);
    env[1] = arena_printf(b->a, "FAKE_CUDA_LOG=%s", b->log);
    if (fail)
        env[2] = arena_printf(b->a, "FAKE_CUDA_FAIL=%s", fail);
    assert_true(child_start(&(struct proc_spec){.argv = (const char *const[]){runner, NULL},
                                                .env = env,
                                                .clean_env = true},
                            &b->child, &b->err));
}

static void close_bench(struct bench *b)
{
    child_stop(b->child);
    assert_true(dir_remove(b->dir, &b->err));
    arena_free(b->a);
}

/* Single quotes in the request stand for double ones. */
static json_t *ask(struct bench *b, const char *request)
{
    char *line = arena_strdup(b->a, request);
    enum child_answer how;
    struct text answer;
    json_t *v = NULL;

    for (char *c = line; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_true(child_ask(b->child, text_of(line), 20000, 1 << 20, b->a, &how, &answer, &b->err));
    assert_int_equal(how, CHILD_LINE);
    if (!json_parse(answer, "answer", &v, &b->err))
        fail_msg("%s: %s", b->err.text, answer.data);
    return v;
}

static void expect(struct bench *b, const char *request, const char *outcome, const char *text)
{
    json_t *v = ask(b, request);

    if (!json_bool_or(v, "ok", false) || strcmp(json_string_or(v, "outcome", ""), outcome) != 0 ||
        !strstr(json_string_or(v, "text", ""), text))
        fail_msg("%s\n-> %s", request, json_dumps(v, JSON_COMPACT));
    json_decref(v);
}

static const char *make_module(struct bench *b)
{
    const char *path = path_join(b->a, b->dir, "module");

    assert_true(file_write(
        path, text_of("scale 8 8 4\nlazy 8 8 4\nstomp 8 8\nhoard 8 8\nstray 8 8\nmapped 128\n"),
        &b->err));
    return path;
}

static const char *load_request(struct bench *b, const char *plan)
{
    return arena_printf(b->a,
                        "{'do':'load','device':'cuda:0','module':'%s','names':{'scale<2>':'scale',"
                        "'lazy<2>':'lazy','stomp':'stomp','hoard':'hoard','stray':'stray','mapped':"
                        "'mapped'},'plan':%s}",
                        make_module(b), plan);
}

/* A file with guards and 256 floats 0, 1, 2, ...; as the oracle would share it. */
static const char *make_buffer(struct bench *b, const char *name)
{
    static float data[(2 * GUARD) / 4 + ELEMENTS];
    const char *path = path_join(b->a, b->dir, name);
    char hex[129];

    for (int i = 0; i < ELEMENTS; i++)
        data[GUARD / 4 + i] = (float)i;
    assert_true(file_write(path, (struct text){(const char *)data, sizeof data}, &b->err));
    assert_true(strlen(path) < 64);
    memset(hex, '0', 128);
    hex[128] = '\0';
    for (size_t i = 0; path[i]; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)path[i]);
    for (char *c = hex; c < hex + 128; c++)
        *c = *c ? *c : '0';
    return arena_printf(b->a, "'%s':{'ipc':'%s','offset':%d,'bytes':%d}", name, hex, GUARD,
                        ELEMENTS * 4);
}

static void bind_buffers(struct bench *b)
{
    expect(b,
           arena_printf(b->a, "{'do':'bind','buffers':{%s,%s}}", make_buffer(b, "in0"),
                        make_buffer(b, "out0")),
           "ok", "");
}

static const char *read_log(struct bench *b)
{
    struct text log = {"", 0};

    if (file_exists(b->log))
        assert_true(file_read(b->log, 1 << 20, b->a, &log, &b->err));
    unlink(b->log);
    return log.data;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void expect_machine(struct bench *b, const char *request, const char *text)
{
    json_t *v = ask(b, request);

    if (json_bool_or(v, "ok", true) || strcmp(json_string_or(v, "kind", ""), "machine") != 0 ||
        !strstr(json_string_or(v, "text", ""), text))
        fail_msg("%s\n-> %s", request, json_dumps(v, JSON_COMPACT));
    json_decref(v);
}

/* Addresses of the runner that are in use, in KiB. */
static long virtual_kib(struct bench *b)
{
    struct text status;
    const char *line;

    assert_true(file_read(arena_printf(b->a, "/proc/%d/status", child_pid(b->child)), 1 << 16, b->a,
                          &status, &b->err));
    line = strstr(status.data, "VmSize:");
    assert_non_null(line);
    return strtol(line + strlen("VmSize:"), NULL, 10);
}

#define SCALE(dims)                                                                                \
    "{'op':'launch','kernel':'scale<2>','line':9," dims                                            \
    "'args':[{'buffer':'out0','offset':0},{'buffer':'in0','offset':0},{'bytes':'00010000'}]}"
#define ONE       "'grid':[4,1,1],'block':[64,1,1],'cluster':[1,1,1],'smem':0,"
#define GOOD_PLAN "{'workspace':[{'bytes':512}],'maps':[],'ops':[" SCALE(ONE) "]}"
#define CLEAR     "{'op':'memset','buffer':'ws0','offset':0,'bytes':512,'value':7,'line':8}"
#define TWO_STEPS "{'workspace':[{'bytes':512}],'maps':[],'ops':[" CLEAR "," SCALE(ONE) "]}"

/* ---- the plan is carried out -------------------------------------------- */

static void a_plan_is_run_on_the_oracles_buffers(void **state)
{
    struct bench b;
    struct text out;
    const float *values;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    bind_buffers(&b);
    expect(&b, "{'do':'run'}", "ok", "");
    assert_true(file_read(path_join(b.a, b.dir, "out0"), 1 << 20, b.a, &out, &b.err));
    values = (const float *)(const void *)(out.data + GUARD);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(values[i] == 2.0f * (float)i);
    expect(&b, "{'do':'end'}", "ok", "");
    close_bench(&b);
}

static void the_first_run_goes_step_by_step_and_later_ones_replay_a_graph(void **state)
{
    struct bench b;
    const char *log;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, TWO_STEPS), "ok", "");
    bind_buffers(&b);
    read_log(&b);
    expect(&b, "{'do':'run'}", "ok", "");
    log = read_log(&b);
    assert_int_equal(count(log, "graph\n"), 0);
    assert_int_equal(count(log, "memset ff 512\nmemset 07 512\nlaunch scale"), 1);
    expect(&b, "{'do':'run'}", "ok", "");
    log = read_log(&b);
    assert_int_equal(count(log, "memset ff 512\nbegin capture\nend capture\ngraph\nmemset 07 512\n"
                                "launch scale"),
                     1);
    close_bench(&b);
}

static void a_run_says_the_same_hash_for_the_same_outputs(void **state)
{
    struct bench b;
    json_t *one, *two;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    bind_buffers(&b);
    one = ask(&b, "{'do':'run','hash':true}");
    two = ask(&b, "{'do':'run','hash':true}");
    assert_int_equal(strlen(json_string_or(one, "hash", "")), 16);
    assert_string_equal(json_string_or(one, "hash", ""), json_string_or(two, "hash", ""));
    json_decref(one);
    json_decref(two);
    close_bench(&b);
}

static void clusters_overlap_and_shared_memory_are_asked_for(void **state)
{
    struct bench b;
    const char *log;

    (void)state;
    open_bench(&b, NULL);
    expect(&b,
           load_request(&b, "{'workspace':[],'maps':[],'ops':[" SCALE(
                                "'grid':[16,1,1],'block':[64,1,1],'cluster':[16,1,1],"
                                "'smem':100000,'overlap':true,") "]}"),
           "ok", "");
    bind_buffers(&b);
    read_log(&b);
    expect(&b, "{'do':'run'}", "ok", "");
    log = read_log(&b);
    assert_int_equal(count(log, "set attribute 8 to 100000\nset attribute 14 to 1\n"
                                "launch scale grid 16 cluster 16 overlap 1 smem 100000"),
                     1);
    close_bench(&b);
}

static void tensor_maps_are_encoded_by_the_driver(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, NULL);
    expect(&b,
           load_request(&b, "{'workspace':[],'maps':[{'buffer':'in0','offset':0,'dtype':'bf16',"
                            "'dims':[64,2],'strides_bytes':[128],'box':[32,2],"
                            "'element_strides':[1,1],'swizzle':'128','fill':'nan','l2':'256'}],"
                            "'ops':[{'op':'launch','kernel':'mapped','line':1," ONE
                            "'args':[{'map':0}]}]}"),
           "ok", "");
    bind_buffers(&b);
    assert_int_equal(
        count(read_log(&b), "map dtype 9 rank 2 dims 64 2 box 32 step 1 swizzle 3 l2 3 fill 1"), 1);
    close_bench(&b);
}

/* ---- the clock ---------------------------------------------------------- */

static void every_cold_sample_is_poisoned_flushed_and_timed_around_the_graph_alone(void **state)
{
    static const char cold[] =
        "nothing is kept\nmemset ff 512\nlaunch cutegen_fill grid 32 cluster 0 overlap 0 smem 0\n"
        "launch cutegen_scrub grid 4 cluster 0 overlap 0 smem 232448\n"
        "launch cutegen_flush grid 32 "
        "cluster "
        "0 overlap 0 smem 0\nlaunch cutegen_wait grid 1 cluster 0 overlap 0 "
        "smem 0\nevent\ngraph\n";
    struct bench b;
    const char *log;
    json_t *v;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, TWO_STEPS), "ok", "");
    bind_buffers(&b);
    read_log(&b);
    v = ask(&b, "{'do':'time','cold':6,'warm':4}");
    assert_string_equal(json_string_or(v, "outcome", ""), "ok");
    assert_int_equal(json_array_size(json_object_get(v, "cold_us")), 6);
    assert_int_equal(json_array_size(json_object_get(v, "warm_us")), 4);
    assert_true(json_number_value(json_array_get(json_object_get(v, "cold_us"), 0)) > 5);
    assert_true(json_number_value(json_array_get(json_object_get(v, "cold_us"), 0)) < 25);
    log = read_log(&b);
    assert_int_equal(count(log, cold), 6);
    assert_int_equal(count(log, "launch cutegen_flush"), 6);
    assert_int_equal(count(log, "launch cutegen_wait"), 10);
    assert_int_equal(json_int_or(v, "other_outputs", -1), 0);
    json_decref(v);
    close_bench(&b);
}

static void a_plan_of_one_launch_is_timed_without_a_graph(void **state)
{
    struct bench b;
    const char *log;
    json_t *v;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    bind_buffers(&b);
    read_log(&b);
    v = ask(&b, "{'do':'time','cold':6,'warm':0}");
    log = read_log(&b);
    assert_int_equal(count(log, "event\nlaunch scale"), 6);
    assert_int_equal(count(log, "event\ngraph"), 0);
    json_decref(v);
    close_bench(&b);
}

/* Half of the samples do nothing, and the median would be theirs. */
static void a_kernel_that_works_every_other_time_is_noticed(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b, NULL);
    expect(&b,
           load_request(&b, "{'workspace':[],'maps':[],'ops':[{'op':'launch','kernel':'lazy<2>',"
                            "'grid':[1,1,1],'block':[32,1,1],'cluster':[1,1,1],'smem':4096,"
                            "'overlap':false,'line':9,'args':[{'buffer':'out0','offset':0},"
                            "{'buffer':'in0','offset':0},{'bytes':'00010000','type':'int'}]}]}"),
           "ok", "");
    bind_buffers(&b);
    v = ask(&b, "{'do':'time','cold':6,'warm':0}");
    assert_string_equal(json_string_or(v, "outcome", ""), "ok");
    assert_int_equal(json_int_or(v, "other_outputs", 0), 3);
    /* shared memory is scrubbed before each of them */
    assert_int_equal(
        count(read_log(&b),
              "launch cutegen_scrub grid 4 cluster 0 overlap 0 smem 232448\nlaunch cutegen_flush"),
        6);
    json_decref(v);
    close_bench(&b);
}

/* It puts everything back before the measurement ends; only who looks in between can tell. */
static void what_is_kept_between_timed_runs_is_a_finding(void **state)
{
    static const struct keeping {
        const char *where, *buffer, *bytes;
        size_t findings;
    } cases[] = {
        {"in its output", "out0", "0000000000000000", 0},
        {"in its workspace", "ws0", "0000000000000000", 0},
        {"in an input", "in0", "0000000000000000", 1},
        {"behind an input", "in0", "0004000000000000", 1},
        {"before its output", "out0", "ffffffffffffffff", 1},
        {"behind its output", "out0", "0004000000000000", 1},
        {"behind its workspace", "ws0", "0302000000000000", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        json_t *v;

        open_bench(&b, NULL);
        expect(
            &b,
            load_request(&b, arena_printf(b.a,
                                          "{'workspace':[{'bytes':515}],'maps':[],'ops':["
                                          "{'op':'launch','kernel':'hoard','line':2," ONE
                                          "'args':[{'buffer':'%s','offset':0},{'bytes':'%s'}]}]}",
                                          cases[i].buffer, cases[i].bytes)),
            "ok", "");
        bind_buffers(&b);
        v = ask(&b, "{'do':'time','cold':300,'warm':0}");
        assert_string_equal(json_string_or(v, "outcome", ""), "ok");
        if (json_array_size(json_object_get(v, "findings")) != cases[i].findings)
            fail_msg("%s: %s", cases[i].where, json_dumps(v, JSON_COMPACT));
        json_decref(v);
        close_bench(&b);
    }
}

/* A short kernel is timed on buffer after buffer, and the former ones stay where they are. */
static void what_is_kept_in_buffers_of_an_earlier_round_is_a_finding(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b, NULL);
    expect(&b,
           load_request(&b, "{'workspace':[],'maps':[],'ops':[{'op':'launch','kernel':'stray',"
                            "'line':2," ONE "'args':[{'buffer':'out0','offset':0},"
                            "{'bytes':'0010000000000000'}]}]}"),
           "ok", "");
    for (int round = 0; round < 2; round++) {
        const char *in = make_buffer(&b, round ? "in1" : "in0");
        const char *out = make_buffer(&b, round ? "out1" : "out0");

        expect(&b,
               arena_printf(b.a, "{'do':'bind','buffers':{'in0'%s,'out0'%s}}", strchr(in, ':'),
                            strchr(out, ':')),
               "ok", "");
    }
    v = ask(&b, "{'do':'time','cold':300,'warm':0}");
    if (json_array_size(json_object_get(v, "findings")) != 1)
        fail_msg("%s", json_dumps(v, JSON_COMPACT));
    json_decref(v);
    close_bench(&b);
}

/* ---- faults ------------------------------------------------------------- */

static const struct fault_case {
    const char *name, *fail, *outcome, *text;
} fault_cases[] = {
    {"a fault names its step", "cuStreamSynchronize:3:700", "crash",
     "scale<2> (step 2 of the plan, line 9): CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
    {"a fault of the first step", "cuStreamSynchronize:2:700", "crash", "memset (step 1"},
    {"a launch the driver rejects", "cuLaunchKernelEx:1:701", "bad launch", "scale<2>"},
    {"a cluster the driver rejects", "cuLaunchKernelEx:1:912", "bad launch", "scale<2>"},
    {"a launch that ran out of time", "cuStreamSynchronize:3:702", "hang", "scale<2>"},
};

static void a_fault_is_told_and_the_process_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fault_cases / sizeof *fault_cases; i++) {
        const struct fault_case *c = &fault_cases[i];
        enum child_answer how;
        struct text answer;
        struct bench b;

        open_bench(&b, c->fail);
        expect(&b, load_request(&b, TWO_STEPS), "ok", "");
        bind_buffers(&b);
        expect(&b, "{'do':'run'}", c->outcome, c->text);
        assert_true(child_ask(b.child, text_of("{\"do\":\"run\"}"), 5000, 1 << 20, b.a, &how,
                              &answer, &b.err));
        assert_int_equal(how, CHILD_ENDED);
        close_bench(&b);
    }
}

static void a_fault_while_timing_is_told(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, "cuGraphLaunch:30:719");
    expect(&b, load_request(&b, TWO_STEPS), "ok", "");
    bind_buffers(&b);
    expect(&b, "{'do':'time','cold':20,'warm':20}", "crash", "the plan: CUDA_ERROR_OTHER (719)");
    close_bench(&b);
}

static void workspace_that_does_not_fit_is_out_of_memory(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, "cuMemAlloc_v2:1:2");
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    expect(&b,
           arena_printf(b.a, "{'do':'bind','buffers':{%s,%s}}", make_buffer(&b, "in0"),
                        make_buffer(&b, "out0")),
           "out of memory", "workspace ws0 of 512 bytes");
    close_bench(&b);
}

/* The driver's failure to set memory says nothing about how much there is. */
static void workspace_that_cannot_be_set_is_the_machines_fault(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, "cuMemsetD8Async:1:719");
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    expect_machine(&b,
                   arena_printf(b.a, "{'do':'bind','buffers':{%s,%s}}", make_buffer(&b, "in0"),
                                make_buffer(&b, "out0")),
                   "workspace ws0 of 512 bytes: preparing it: CUDA_ERROR_OTHER (719)");
    close_bench(&b);
}

static void many_runs_take_no_more_memory_than_a_few(void **state)
{
    struct bench b;
    long before;

    (void)state;
    open_bench(&b, NULL);
    expect(&b, load_request(&b, GOOD_PLAN), "ok", "");
    bind_buffers(&b);
    for (int i = 0; i < 3; i++)
        expect(&b, "{'do':'run'}", "ok", "");
    before = virtual_kib(&b);
    for (int i = 0; i < 50; i++)
        expect(&b, "{'do':'run'}", "ok", "");
    assert_true(virtual_kib(&b) - before < 16 * 1024);
    close_bench(&b);
}

static void a_write_past_a_workspace_is_a_finding(void **state)
{
    struct bench b;
    json_t *v, *finding;

    (void)state;
    open_bench(&b, NULL);
    expect(&b,
           load_request(&b, "{'workspace':[{'bytes':512}],'maps':[],'ops':[{'op':'launch','kernel':"
                            "'stomp','line':2," ONE "'args':[{'buffer':'ws0','offset':0},"
                            "{'bytes':'0802000000000000'}]}]}"),
           "ok", "");
    bind_buffers(&b);
    v = ask(&b, "{'do':'run'}");
    finding = json_array_get(json_object_get(v, "findings"), 0);
    assert_string_equal(json_string_or(finding, "kind", ""), "out-of-bounds write");
    assert_string_equal(json_string_or(finding, "text", ""),
                        "8 bytes just after workspace ws0 (512 bytes) were overwritten");
    json_decref(v);
    close_bench(&b);
}

static const struct use_case {
    const char *request, *kind, *text;
} use_cases[] = {
    {"{'do':'run'}", "use", "run before a bind"},
    {"{'do':'time'}", "use", "time before a bind"},
    {"{'do':'bind','buffers':{}}", "use", "bind before a load"},
    {"{'do':'dance'}", "use", "cannot do dance"},
    {"{'do':'load','device':'tpu','module':'x','names':{},'plan':{}}", "use",
     "no device is called"},
    {"{'do':'load','device':'cuda:9','module':'x','names':{},'plan':{}}", "use",
     "no CUDA device 9"},
    {"{'do':'load','device':'cuda:0','module':'/nowhere','names':{},'plan':{}}", "machine",
     "nowhere"},
    {"{'do':'load'}", "machine", "'device' is missing"},
    {"hello", "machine", "not JSON"},
    {"", "machine", "not JSON"},
    {"[]", "machine", "'do' is missing"},
};

static void a_request_without_sense_is_refused_and_the_next_one_heard(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof use_cases / sizeof *use_cases; i++) {
        const struct use_case *c = &use_cases[i];
        struct bench b;
        json_t *v;

        open_bench(&b, NULL);
        v = ask(&b, c->request);
        if (json_bool_or(v, "ok", true) || strcmp(json_string_or(v, "kind", ""), c->kind) != 0 ||
            !strstr(json_string_or(v, "text", ""), c->text))
            fail_msg("%s\n-> %s", c->request, json_dumps(v, JSON_COMPACT));
        json_decref(v);
        expect(&b, "{'do':'end'}", "ok", "");
        close_bench(&b);
    }
}

static void without_a_driver_the_machine_is_to_blame(void **state)
{
    const char *runner = getenv("RUNNER");
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b, NULL);
    child_stop(b.child);
    assert_true(child_start(&(struct proc_spec){.argv = (const char *const[]){runner, NULL},
                                                .env = (const char *const[]){"PATH=/", NULL},
                                                .clean_env = true},
                            &b.child, &b.err));
    v = ask(&b, load_request(&b, GOOD_PLAN));
    /* A machine with a real driver has no device for this module, or has: both are fine. */
    if (!json_bool_or(v, "ok", false))
        assert_string_equal(json_string_or(v, "kind", ""), "machine");
    json_decref(v);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_run_on_the_oracles_buffers),
        cmocka_unit_test(the_first_run_goes_step_by_step_and_later_ones_replay_a_graph),
        cmocka_unit_test(a_run_says_the_same_hash_for_the_same_outputs),
        cmocka_unit_test(clusters_overlap_and_shared_memory_are_asked_for),
        cmocka_unit_test(tensor_maps_are_encoded_by_the_driver),
        cmocka_unit_test(a_kernel_that_works_every_other_time_is_noticed),
        cmocka_unit_test(every_cold_sample_is_poisoned_flushed_and_timed_around_the_graph_alone),
        cmocka_unit_test(a_plan_of_one_launch_is_timed_without_a_graph),
        cmocka_unit_test(what_is_kept_between_timed_runs_is_a_finding),
        cmocka_unit_test(what_is_kept_in_buffers_of_an_earlier_round_is_a_finding),
        cmocka_unit_test(a_fault_is_told_and_the_process_ends),
        cmocka_unit_test(a_fault_while_timing_is_told),
        cmocka_unit_test(workspace_that_does_not_fit_is_out_of_memory),
        cmocka_unit_test(workspace_that_cannot_be_set_is_the_machines_fault),
        cmocka_unit_test(many_runs_take_no_more_memory_than_a_few),
        cmocka_unit_test(a_write_past_a_workspace_is_a_finding),
        cmocka_unit_test(a_request_without_sense_is_refused_and_the_next_one_heard),
        cmocka_unit_test(without_a_driver_the_machine_is_to_blame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
