/* test_plan.c - a launch list is checked as data before anything runs. */
#include "runner/device.h"
#include "runner/runner_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A device whose one kernel, "_Zk", takes a pointer, an int and a tensor map. */
static void stub_facts(struct run_device *d, struct device_facts *out)
{
    (void)d;
    *out = (struct device_facts){.name = "stub",
                                 .arch = 90,
                                 .grid = {2147483647, 65535, 65535},
                                 .block = {1024, 1024, 64},
                                 .threads_block = 1024,
                                 .smem_block_bytes = 100000,
                                 .cluster_blocks = 16,
                                 .tensor_maps = true};
}

static bool stub_kernel(struct run_device *d, const char *lowered, struct kernel_facts *out)
{
    (void)d;
    if (strcmp(lowered, "_Zk") != 0)
        return false;
    *out = (struct kernel_facts){.function = out,
                                 .params_known = true,
                                 .param_count = 3,
                                 .param_bytes = {8, 4, 128},
                                 .max_threads = 512,
                                 .static_smem_bytes = 1024};
    return true;
}

static bool stub_map(struct run_device *d, const struct plan *plan, struct plan_map *map, char *why,
                     size_t why_size)
{
    (void)d;
    (void)plan;
    snprintf(why, why_size, "the box is wider than the tensor");
    return map->box[0] <= map->dims[0];
}

static const struct device_ops stub_ops = {
    .facts = stub_facts, .kernel = stub_kernel, .encode_map = stub_map};

#define MAP                                                                                        \
    "{'buffer':'in0','offset':0,'dtype':'f32','dims':[64,8],'strides_bytes':[256],'box':[32,8],"   \
    "'element_strides':[1,1],'swizzle':'128','fill':'zero','l2':'none'}"
#define DIMS      "'grid':[8,1,1],'block':[256,1,1],'cluster':[1,1,1],'smem':0,"
#define GOOD_ARGS "'args':[{'buffer':'in0','offset':16},{'bytes':'00020000'},{'map':0}]"
#define LAUNCH(dims, args)                                                                         \
    "{'workspace':[{'bytes':4096}],'maps':[" MAP "],'ops':[{'op':'launch','kernel':'k<1>',"        \
    "'line':57," dims args "}]}"
#define ARGS(args) LAUNCH(DIMS, "'args':[" args "]")
#define ZEROS16    "00000000000000000000000000000000"
#define ZEROS64    ZEROS16 ZEROS16 ZEROS16 ZEROS16
#define STRUCT(pointers)                                                                           \
    ARGS("{'buffer':'in0','offset':0},{'bytes':'00020000'},{'bytes':'" ZEROS64 ZEROS64             \
         "','pointers':[" pointers "]}")
#define OPS(ops) "{'workspace':[{'bytes':4096}],'maps':[],'ops':[" ops "]}"
#define MEMSET(buffer, offset, bytes, value)                                                       \
    OPS("{'op':'memset','buffer':'" buffer "','offset':" offset ",'bytes':" bytes                  \
        ",'value':" value ",'line':3}")

/* text NULL: the list is good. in0 has 2048 bytes, out0 1024. */
static const struct plan_case {
    const char *name, *list, *text;
} cases[] = {
    {"a good list", LAUNCH(DIMS, GOOD_ARGS), NULL},
    {"argument of another size",
     ARGS("{'buffer':'in0','offset':0},{'bytes':'0002000000000000','type':'int'},{'map':0}"),
     "argument 2 of k<1> (step 1 of the plan, line 57) is 8 bytes (int), the kernel takes 4"},
    {"pointer where a number is taken",
     ARGS("{'buffer':'in0','offset':0},{'buffer':'in0','offset':0},{'map':0}"),
     "argument 2 of k<1> (step 1 of the plan, line 57) is 8 bytes (a pointer), the kernel takes 4"},
    {"too few arguments", ARGS("{'buffer':'in0','offset':0}"),
     "is given 1 arguments, the kernel takes 3"},
    {"too many arguments",
     ARGS("{'buffer':'in0','offset':0},{'bytes':'00020000'},{'map':0},{'bytes':'00'}"),
     "is given 4 arguments, the kernel takes 3"},
    {"a map that is not there", ARGS("{'buffer':'in0','offset':0},{'bytes':'00020000'},{'map':1}"),
     "a tensor map that does not exist"},
    {"pointers inside of a struct", STRUCT("{'at':8,'buffer':'in0','offset':2048}"), NULL},
    {"a pointer past the end of its struct", STRUCT("{'at':121,'buffer':'in0','offset':0}"),
     "a pointer inside of an argument"},
    {"a pointer inside of a struct past its buffer",
     STRUCT("{'at':8,'buffer':'in0','offset':2049}"), "offset 2049 of in0, which has 2048"},
    {"a pointer inside of a struct into what is not there",
     STRUCT("{'at':8,'buffer':'ws1','offset':0}"), "buffer ws1, which does"},
    {"a map that reaches past its buffer",
     "{'workspace':[],'maps':[{'buffer':'in0','offset':16,'dtype':'f32','dims':[64,8],"
     "'strides_bytes':[256],'box':[32,8],'element_strides':[1,1]}],'ops':[{'op':'launch',"
     "'kernel':'k<1>','line':57," DIMS GOOD_ARGS "}]}",
     "tensor map 0 reaches 2048 bytes from offset 16 of in0, which has 2048"},
    {"bytes that are no hex", ARGS("{'bytes':'0g'}"), "the bytes of an argument"},
    {"half a byte", ARGS("{'bytes':'000'}"), "the bytes of an argument"},
    {"offset past the buffer",
     ARGS("{'buffer':'in0','offset':2049},{'bytes':'00020000'},{'map':0}"),
     "offset 2049 of in0, which has 2048"},
    {"one past the end is a pointer still",
     ARGS("{'buffer':'in0','offset':2048},{'bytes':'00020000'},{'map':0}"), NULL},
    {"negative offset", ARGS("{'buffer':'in0','offset':-8},{'bytes':'00020000'},{'map':0}"),
     "not understood: offset"},
    {"buffer the task has not", ARGS("{'buffer':'in7','offset':0},{'bytes':'00020000'},{'map':0}"),
     "uses in7, which this task has not"},
    {"workspace that was not asked for",
     ARGS("{'buffer':'ws1','offset':0},{'bytes':'00020000'},{'map':0}"), "buffer ws1, which does"},
    {"made-up buffer name", ARGS("{'buffer':'../x','offset':0},{'bytes':'00020000'},{'map':0}"),
     "buffer ../x, which does not exist"},
    {"empty grid",
     LAUNCH("'grid':[0,1,1],'block':[256,1,1],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "grid.x is 0, the device takes 1 to 2147483647"},
    {"grid too tall",
     LAUNCH("'grid':[1,65536,1],'block':[256,1,1],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "grid.y is 65536, the device takes 1 to 65535"},
    {"block too deep",
     LAUNCH("'grid':[1,1,1],'block':[1,1,65],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "block.z is 65"},
    {"too many threads",
     LAUNCH("'grid':[1,1,1],'block':[64,32,1],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "2048 threads in a block, the device takes 1024"},
    {"more threads than the kernel's bounds",
     LAUNCH("'grid':[1,1,1],'block':[1024,1,1],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "1024 threads in a block, the kernel allows 512"},
    {"static and dynamic shared memory together",
     LAUNCH("'grid':[1,1,1],'block':[32,1,1],'cluster':[1,1,1],'smem':99000,", GOOD_ARGS),
     "100024 bytes of shared memory (99000 dynamic + 1024 static), the device takes 100000"},
    {"grid that is not a multiple of the cluster",
     LAUNCH("'grid':[9,1,1],'block':[32,1,1],'cluster':[2,1,1],'smem':0,", GOOD_ARGS),
     "grid.x is 9, no multiple of cluster.x, 2"},
    {"cluster too large",
     LAUNCH("'grid':[8,8,1],'block':[32,1,1],'cluster':[8,4,1],'smem':0,", GOOD_ARGS),
     "32 blocks in a cluster, the device takes 16"},
    {"grid of two dimensions",
     LAUNCH("'grid':[8,8],'block':[32,1,1],'cluster':[1,1,1],'smem':0,", GOOD_ARGS),
     "not understood: grid"},
    {"kernel that was not built",
     OPS("{'op':'launch','kernel':'other'," DIMS "'args':[],'line':1}"),
     "no kernel other was built"},
    {"kernel the module lacks", OPS("{'op':'launch','kernel':'gone'," DIMS "'args':[],'line':1}"),
     "the module has no kernel gone"},
    {"nothing to do", OPS(""), "the plan launches nothing"},
    {"a step of another kind", OPS("{'op':'exec','line':1}"), "neither a launch nor a memset"},
    {"a good memset", MEMSET("ws0", "0", "4096", "0"), NULL},
    {"memset past the end", MEMSET("ws0", "1", "4096", "0"), "memset reaches 4096 bytes from"},
    {"memset whose end wraps around", MEMSET("ws0", "8", "4611686018427387900", "0"),
     "memset reaches"},
    {"memset of an input", MEMSET("in0", "0", "4", "0"), "memset of input in0"},
    {"memset with no byte", MEMSET("ws0", "0", "4", "256"), "not a byte"},
    {"no list at all", "{}", "no list of launches"},
};

static json_t *parse(const char *text)
{
    char copy[4096];
    json_t *v;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    v = json_loads(copy, 0, NULL);
    assert_non_null(v);
    return v;
}

static void give_buffers(struct plan *plan)
{
    for (size_t i = 0; i < plan->buffer_count; i++) {
        struct plan_buffer *b = &plan->buffers[i];

        b->address = strcmp(b->name, "in7") == 0 ? 0 : 0x10000 * (i + 1);
        if (b->kind != BUFFER_WORKSPACE)
            b->bytes = b->kind == BUFFER_IN ? 2048 : 1024;
    }
}

static void check_case(const struct plan_case *c)
{
    struct run_device device = {.ops = &stub_ops};
    json_t *list = parse(c->list), *names = parse("{'k<1>':'_Zk','gone':'_Zgone'}");
    struct arena *a = arena_new();
    struct plan *plan = arena_alloc(a, sizeof *plan);
    struct outcome said;

    outcome_init(&said);
    plan_parse(list, names, a, plan, &said);
    if (said.kind == OUTCOME_OK)
        plan_check(plan, &device, &said);
    if (said.kind == OUTCOME_OK) {
        give_buffers(plan);
        plan_bind(plan, &device, &said);
    }
    if (c->text == NULL ? said.kind != OUTCOME_OK
                        : said.kind != OUTCOME_BAD_LAUNCH || !strstr(said.text, c->text))
        fail_msg("%s: got %s: %s", c->name, outcome_name(said.kind), said.text);
    outcome_release(&said);
    arena_free(a);
    json_decref(list);
    json_decref(names);
}

static void every_fault_of_a_list_is_a_bad_launch_that_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_case(&cases[i]);
}

static void addresses_go_into_the_arguments(void **state)
{
    struct run_device device = {.ops = &stub_ops};
    json_t *list = parse(LAUNCH(DIMS, GOOD_ARGS)), *names = parse("{'k<1>':'_Zk'}");
    struct arena *a = arena_new();
    struct plan *plan = arena_alloc(a, sizeof *plan);
    struct outcome said;
    uint64_t address;
    uint32_t number;

    (void)state;
    outcome_init(&said);
    plan_parse(list, names, a, plan, &said);
    plan_check(plan, &device, &said);
    give_buffers(plan);
    plan_bind(plan, &device, &said);
    assert_int_equal(said.kind, OUTCOME_OK);
    memcpy(&address, plan->ops[0].args[0].data, sizeof address);
    memcpy(&number, plan->ops[0].args[1].data, sizeof number);
    assert_int_equal(address, plan_buffer_find(plan, "in0")->address + 16);
    assert_int_equal(number, 512);
    assert_ptr_equal(plan->ops[0].args[2].data, plan->maps[0].encoded);
    assert_int_equal((uintptr_t)plan->maps[0].encoded % 64, 0);
    outcome_release(&said);
    arena_free(a);
    json_decref(list);
    json_decref(names);
}

static void the_hash_sees_every_byte(void **state)
{
    unsigned char data[100] = {0};
    uint64_t first = device_hash_bytes(1, data, sizeof data);

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = 1;
        assert_int_not_equal(first, device_hash_bytes(1, data, sizeof data));
        data[i] = 0;
    }
    assert_int_equal(first, device_hash_bytes(1, data, sizeof data));
    assert_int_not_equal(first, device_hash_bytes(1, data, sizeof data - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_a_list_is_a_bad_launch_that_says_why),
        cmocka_unit_test(addresses_go_into_the_arguments),
        cmocka_unit_test(the_hash_sees_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
