/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse.h - parse server-sent events: bytes in, complete events out.
 *
 *     struct sse s = sse_init(limit, on_event, ctx);
 *     while (bytes come) if (!sse_feed(&s, data, len)) ...   an event is over the limit
 *     sse_release(&s);
 *
 * Bytes may come in any pieces. Comments and unused fields are skipped;
 * line ends are \n, \r\n or \r. An event truncated by the stream's end is not delivered.
 */
#ifndef LLM_SSE_H
#define LLM_SSE_H

#include "base/buf.h"

struct sse {
    struct buf line, data;
    char event[64];
    bool has_data, after_cr, first;
    void (*on_event)(void *ctx, const char *event, struct text data);
    void *ctx;
};

struct sse sse_init(size_t event_limit,
                    void (*on_event)(void *ctx, const char *event, struct text data), void *ctx);
bool sse_feed(struct sse *s, const char *data, size_t len);
void sse_release(struct sse *s);

#endif
