/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - reading and writing JSON-RPC messages; see rpc.h. */
#include "mcp/rpc.h"

#include <stdio.h>
#include <string.h>

const char *const revision_names[4] = {"", "2025-06-18", "2025-11-25", "2026-07-28"};

enum revision revision_named(const char *name)
{
    for (int i = REVISION_2026_07; i > REVISION_NONE; i--)
        if (name && !strcmp(name, revision_names[i]))
            return (enum revision)i;
    return REVISION_NONE;
}

json_t *revision_list(void)
{
    json_t *list = json_array();

    for (int i = REVISION_2026_07; i > REVISION_NONE; i--)
        json_array_append_new(list, json_string(revision_names[i]));
    return list;
}

bool rpc_fail(struct rpc_fault *fault, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
    va_end(ap);
    fault->code = code;
    return false;
}

/* The parser recurses, and so does code that walks the value: depth is checked before parsing. */
static bool too_deep(struct text t)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < t.len; i++) {
        char c = t.data[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{') && ++depth > RPC_MAX_DEPTH)
            return true;
        else if (!quoted && (c == ']' || c == '}') && depth)
            depth--;
    }
    return false;
}

static bool read_revision(struct rpc_call *call, struct rpc_fault *fault)
{
    json_t *version = json_object_get(call->meta, RPC_META_VERSION);

    if (!version)
        return true;
    if (!json_is_string(version))
        return rpc_fail(fault, RPC_INVALID_PARAMS, RPC_META_VERSION " is not a string");
    if (!json_is_object(json_object_get(call->meta, RPC_META_CAPABILITIES)))
        return rpc_fail(fault, RPC_INVALID_PARAMS,
                        "params._meta has no " RPC_META_CAPABILITIES " object");
    call->revision = revision_named(json_string_value(version));
    if (call->revision == REVISION_2026_07)
        return true;
    fault->data = json_pack("{s:o, s:O}", "supported", revision_list(), "requested", version);
    return rpc_fail(fault, RPC_UNSUPPORTED_VERSION, "Unsupported protocol version");
}

bool rpc_read(struct text line, struct rpc_call *call, struct rpc_fault *fault)
{
    struct error why = {0};
    json_t *method, *id;

    *call = (struct rpc_call){0};
    *fault = (struct rpc_fault){0};
    if (line.len > RPC_MAX_BYTES)
        return rpc_fail(fault, RPC_INVALID_REQUEST, "a message of more than %d bytes",
                        RPC_MAX_BYTES);
    if (too_deep(line))
        return rpc_fail(fault, RPC_PARSE_ERROR, "nested more than %d deep", RPC_MAX_DEPTH);
    if (!json_parse(line, "a message", &call->whole, &why))
        return rpc_fail(fault, RPC_PARSE_ERROR, "%.400s", why.text);
    if (!json_is_object(call->whole))
        return rpc_fail(fault, RPC_INVALID_REQUEST, "a message is one object; batches are not");
    id = json_object_get(call->whole, "id");
    if (id && !json_is_string(id) && !json_is_integer(id))
        return rpc_fail(fault, RPC_INVALID_REQUEST, "an id is a string or an integer");
    call->id = id;
    if (strcmp(json_string_or(call->whole, "jsonrpc", ""), "2.0") != 0)
        return rpc_fail(fault, RPC_INVALID_REQUEST, "jsonrpc is not \"2.0\"");
    method = json_object_get(call->whole, "method");
    if (!method &&
        (json_object_get(call->whole, "result") || json_object_get(call->whole, "error")))
        return true;
    if (!json_is_string(method))
        return rpc_fail(fault, RPC_INVALID_REQUEST, "there is no method");
    call->method = json_string_value(method);
    call->params = json_object_get(call->whole, "params");
    if (call->params && !json_is_object(call->params))
        return rpc_fail(fault, RPC_INVALID_PARAMS, "params is not an object");
    call->meta = json_object_get(call->params, "_meta");
    if (call->meta && !json_is_object(call->meta))
        return rpc_fail(fault, RPC_INVALID_PARAMS, "params._meta is not an object");
    return read_revision(call, fault);
}

void rpc_call_release(struct rpc_call *call)
{
    json_decref(call->whole);
    *call = (struct rpc_call){0};
}

json_t *rpc_answer(const json_t *id, enum revision revision, json_t *result)
{
    if (revision == REVISION_2026_07) {
        json_t *meta = json_object_get(result, "_meta");

        if (!json_object_get(result, "resultType"))
            json_object_set_new(result, "resultType", json_string("complete"));
        if (!meta)
            json_object_set_new(result, "_meta", meta = json_object());
        json_object_set_new(meta, RPC_META_SERVER,
                            json_pack("{s:s, s:s}", "name", "cutegen", "version", CUTEGEN_VERSION));
    }
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_error(const json_t *id, struct rpc_fault *fault)
{
    json_t *error =
        json_pack("{s:i, s:o}", "code", fault->code, "message", json_from_string(fault->text));

    if (fault->data)
        json_object_set_new(error, "data", fault->data);
    fault->data = NULL;
    if (!id)
        return json_pack("{s:s, s:n, s:o}", "jsonrpc", "2.0", "id", "error", error);
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "error", error);
}

json_t *rpc_notice(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}
