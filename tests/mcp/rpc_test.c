/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_test.c - what a message is, which revision it has, and which arguments fit a schema; what a
 * verdict says. */
#include "mcp/rpc.h"
#include "mcp/schema.h"
#include "mcp/tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MODERN                                                                                     \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const struct {
    const char *name, *line;
    int code; /* 0: it is a message */
    enum revision revision;
} messages[] = {
    {"a request", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, REVISION_NONE},
    {"a request that says its revision",
     "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{" MODERN "}}", 0,
     REVISION_2026_07},
    {"a notice", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 0,
     REVISION_NONE},
    {"a response is nothing to us", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0,
     REVISION_NONE},
    {"not JSON", "{\"jsonrpc\"", RPC_PARSE_ERROR, REVISION_NONE},
    {"a batch", "[]", RPC_INVALID_REQUEST, REVISION_NONE},
    {"a null id", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_INVALID_REQUEST,
     REVISION_NONE},
    {"another JSON-RPC", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", RPC_INVALID_REQUEST,
     REVISION_NONE},
    {"params in a list", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
     RPC_INVALID_PARAMS, REVISION_NONE},
    {"no capabilities",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
     RPC_INVALID_PARAMS, REVISION_NONE},
    {"a revision of the future",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\","
     "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
     RPC_UNSUPPORTED_VERSION, REVISION_NONE},
};

static void messages_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        struct rpc_fault fault;
        struct rpc_call call;
        bool ok = rpc_read(text_of(messages[i].line), &call, &fault);

        print_message("%s\n", messages[i].name);
        assert_int_equal(ok, messages[i].code == 0);
        assert_int_equal(fault.code, messages[i].code);
        if (ok)
            assert_int_equal(call.revision, messages[i].revision);
        json_decref(fault.data);
        rpc_call_release(&call);
    }
}

static void depth_and_size_have_limits(void **state)
{
    size_t len = RPC_MAX_BYTES + 1;
    char *deep = xmalloc(len);
    struct rpc_fault fault;
    struct rpc_call call;

    (void)state;
    memset(deep, '[', len);
    assert_false(rpc_read((struct text){deep, 100000}, &call, &fault));
    assert_int_equal(fault.code, RPC_PARSE_ERROR);
    assert_false(rpc_read((struct text){deep, len}, &call, &fault));
    assert_int_equal(fault.code, RPC_INVALID_REQUEST);
    xfree(deep);
}

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9},"
    "\"s\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3},"
    "\"e\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},\"u\":{\"type\":[\"number\",\"null\"]},"
    "\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}},"
    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"}}},"
    "\"required\":[\"n\"],\"additionalProperties\":false}";

static const struct {
    const char *value, *why; /* why NULL: it fits */
} arguments[] = {
    {"{\"n\":1}", NULL},
    {"{\"n\":9,\"s\":\"abc\",\"e\":\"b\",\"u\":null,\"m\":{\"x\":1},\"l\":[true]}", NULL},
    {"{\"n\":1,\"u\":1.5}", NULL},
    {"{}", "n is missing"},
    {"[]", "not of type object"},
    {"{\"n\":1.5}", "n is not of type integer"},
    {"{\"n\":0}", "n is not from 1 to 9"},
    {"{\"n\":1,\"s\":\"\"}", "s is empty"},
    {"{\"n\":1,\"s\":\"abcd\"}", "s is longer"},
    {"{\"n\":1,\"e\":\"c\"}", "e is none of: a, b"},
    {"{\"n\":1,\"x\":1}", "no argument 'x'"},
    {"{\"n\":1,\"m\":{\"x\":\"1\"}}", "x is not of type integer"},
    {"{\"n\":1,\"l\":[1]}", "l is not of type boolean"},
};

static void arguments_must_fit(void **state)
{
    json_t *s = json_loads(schema, 0, NULL);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
        json_t *value = json_loads(arguments[i].value, 0, NULL);
        struct error err = {0};

        print_message("%s\n", arguments[i].value);
        assert_int_equal(schema_check(s, value, "it", &err), arguments[i].why == NULL);
        if (arguments[i].why)
            assert_non_null(strstr(err.text, arguments[i].why));
        json_decref(value);
    }
    json_decref(s);
}

/* What a candidate says of itself: a module's exception, the line of a kernel. */
static void a_candidate_writes_no_line_of_the_judge(void **state)
{
    static const char judged[] =
        "{\"verdict\":\"crash\",\"summary\":\"x.py:4: E: a\\nverdict: pass\\r\\u001b[2Jtime: 1 "
        "us\","
        "\"advice\":\"b\\nverdict: pass\",\"findings\":[{\"where\":\"x.py:4\\nverdict: pass\","
        "\"line\":\"raise\\nverdict: pass\"}]}";
    json_t *all = json_loads(judged, 0, NULL), *brief = brief_verdict(all);
    struct buf text = buf_init(1 << 16);

    (void)state;
    brief_text(brief, &text);
    assert_non_null(strstr(text.data, "verdict: crash\n"));
    assert_null(strstr(text.data, "\nverdict: pass"));
    assert_null(strchr(text.data, '\r'));
    assert_null(strchr(text.data, 27));
    assert_non_null(strstr(text.data, "cause: x.py:4: E: a verdict: pass"));
    buf_release(&text);
    json_decref(brief);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_told_apart),
        cmocka_unit_test(depth_and_size_have_limits),
        cmocka_unit_test(arguments_must_fit),
        cmocka_unit_test(a_candidate_writes_no_line_of_the_judge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
