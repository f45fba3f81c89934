/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc.h - JSON-RPC messages, and which revision of the protocol each belongs to.
 *
 * Private to src/mcp. A message is untrusted: size and depth are limited, and any fault in it only
 * leads to an error answer.
 */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include "base/json.h"

enum revision { REVISION_NONE, REVISION_2025_06, REVISION_2025_11, REVISION_2026_07 };

enum rpc_code {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002, /* until 2025-11-25; from then on RPC_INVALID_PARAMS */
    RPC_HEADER_MISMATCH = -32020,
    RPC_UNSUPPORTED_VERSION = -32022,
};

enum { RPC_MAX_BYTES = 8 << 20, RPC_MAX_DEPTH = 64 };

#define RPC_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define RPC_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define RPC_META_SERVER       "io.modelcontextprotocol/serverInfo"

/* A message that was read; id NULL: a notification. All borrowed from `whole`. */
struct rpc_call {
    json_t *whole; /* owned: rpc_call_release() */
    json_t *id, *params, *meta;
    const char *method;
    enum revision revision; /* revision in this request's _meta; REVISION_NONE: none given */
};

/* An error answer under construction. */
struct rpc_fault {
    int code; /* 0: none */
    char text[512];
    json_t *data; /* owned, or NULL */
};

extern const char *const revision_names[4];
enum revision revision_named(const char *name); /* REVISION_NONE: not supported */
json_t *revision_list(void);                    /* newest first; new reference */

/* False: *fault says why, and call->id is the request's id if known. An unexpected response becomes
 * a call without a method. */
bool rpc_read(struct text line, struct rpc_call *call, struct rpc_fault *fault);
void rpc_call_release(struct rpc_call *call);
bool rpc_fail(struct rpc_fault *fault, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* false */

/* All three take ownership of `result`, `fault->data` or `params` and return a new message. */
json_t *rpc_answer(const json_t *id, enum revision revision, json_t *result);
json_t *rpc_error(const json_t *id, struct rpc_fault *fault);
json_t *rpc_notice(const char *method, json_t *params);

#endif
