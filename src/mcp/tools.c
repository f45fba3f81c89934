/* SPDX-License-Identifier: Apache-2.0 */
/* tools.c - the table of tools, tools/list and tools/call. */
#include "mcp/tools.h"

#include "mcp/schema.h"

#include <string.h>

enum { MAX_TEXT = 256 << 10 };

static const struct tool {
    const char *name, *title;
    const char *const *schemas; /* input, output */
    tool_call *call;
    bool writes;    /* it writes outside the store of runs */
    bool long_work; /* may run as a task */
    bool open;      /* may ask a model over the network */
    const char *text;
} tools[] = {
    {"describe_task", "Describe a task", schema_describe, tool_describe, false, true, false,
     "What a PyTorch task is: operators, tensors with shapes and strides, class, the bytes and "
     "flops that cannot be avoided. Call it before writing a kernel."},
    {"evaluate_kernel", "Judge a kernel", schema_evaluate, tool_evaluate, false, true, false,
     "Builds a kernel, runs it on fresh inputs in a sandbox, compares with PyTorch and float64, "
     "and times it. Says the cause, the line and the fix that is known to help; the evidence "
     "resource has everything."},
    {"compare_kernels", "Compare two kernels", schema_compare, tool_compare, false, true, false,
     "Judges two kernels of the same task in turn and says which is faster and by how much. Both "
     "must pass."},
    {"profile_kernel", "Profile a kernel", schema_profile, tool_profile, false, true, false,
     "Judges a kernel and profiles it: what bounds it, time by resource, the worst source lines. "
     "ncu on a GPU, counters on simt."},
    {"start_kernel", "A first kernel", schema_start, tool_start, false, true, false,
     "A correct kernel of the built-in engineer to start from, where it knows the operators: its "
     "first or its best."},
    {"search_cute", "Search CuTe", schema_search, tool_search, false, false, false,
     "Declarations of the installed CuTe headers and sections of the guides that concern some "
     "names or a compile error."},
    {"run_task", "Run the loop", schema_run, tool_run, false, true, true,
     "Starts the whole loop on a task: first kernel, repairs, optimisation. Answers with the run's "
     "id at once; poll run_status. It ends with this server; `cutegen resume` continues it."},
    {"run_status", "Status of a run", schema_status, tool_status, false, false, false,
     "How far a run is: attempts, best time, last verdict. With stop it ends."},
    {"export_kernel", "Export a kernel", schema_export, tool_export, true, true, false,
     "Writes the best kernel of a run as files to use: the judged code and a ModelNew for "
     "PyTorch."},
};

static const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (!strcmp(tools[i].name, name))
            return &tools[i];
    return NULL;
}

bool tool_known(const char *name, bool *long_work)
{
    const struct tool *t = tool_find(name);

    *long_work = t && t->long_work;
    return t != NULL;
}

static json_t *schema_load(const char *text)
{
    char *copy = xstrdup(text);
    json_t *schema;

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    schema = json_loads(copy, 0, NULL);
    xfree(copy);
    if (!schema)
        BUG("a schema that is not JSON: %s", text);
    return schema;
}

json_t *tools_list(enum revision revision)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        const struct tool *t = &tools[i];
        json_t *o = json_pack(
            "{s:s, s:s, s:s, s:o, s:o, s:{s:b, s:b, s:b, s:b}}", "name", t->name, "title", t->title,
            "description", t->text, "inputSchema", schema_load(t->schemas[0]), "outputSchema",
            schema_load(t->schemas[1]), "annotations", "readOnlyHint", !t->writes,
            "destructiveHint", 0, "idempotentHint", !t->open, "openWorldHint", t->open);

        if (revision == REVISION_2025_11)
            json_object_set_new(
                o, "execution",
                json_pack("{s:s}", "taskSupport", t->long_work ? "optional" : "forbidden"));
        json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "tools", list);
}

static json_t *text_block(struct text t)
{
    json_t *text = json_from_text(t);

    if (json_is_null(text)) {
        json_decref(text);
        text = json_string("");
    }
    return json_pack("{s:s, s:o}", "type", "text", "text", text);
}

static json_t *problem_result(const struct error *why)
{
    struct buf b = buf_init(8 << 10);
    json_t *result;

    buf_puts(&b, why->text);
    if (why->hint[0])
        buf_printf(&b, "\n%s", why->hint);
    result = json_pack("{s:[o], s:b}", "content", text_block(buf_text(&b)), "isError", 1);
    buf_release(&b);
    return result;
}

static json_t *reply_result(struct tool_reply *r)
{
    json_t *content = json_array(), *link;
    size_t i;

    json_array_append_new(content, text_block(buf_text(&r->text)));
    json_array_foreach(r->links, i, link) json_array_append(content, link);
    return json_pack("{s:o, s:O, s:b}", "content", content, "structuredContent", r->data, "isError",
                     0);
}

bool tool_work(struct mcp_job *j, struct rpc_fault *fault)
{
    const struct tool *t = tool_find(json_string_or(j->params, "name", ""));
    json_t *args = json_object_get(j->params, "arguments"), *none = NULL;
    json_t *schema = schema_load(t->schemas[0]);
    struct tool_reply reply = {.text = buf_init(MAX_TEXT), .links = json_array()};
    struct error why = {0};
    bool ok;

    if (!args)
        args = none = json_object();
    ok = schema_check(schema, args, "arguments", &why) && t->call(j, args, &reply, &why);
    if (ok && !reply.data)
        BUG("%s has no data", t->name);
    j->result = ok ? reply_result(&reply) : problem_result(&why);
    buf_release(&reply.text);
    json_decref(reply.data);
    json_decref(reply.links);
    json_decref(schema);
    json_decref(none);
    if (job_stopped(j))
        return rpc_fail(fault, RPC_INTERNAL, "cancelled");
    return true;
}
