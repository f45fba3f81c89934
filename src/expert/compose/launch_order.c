/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_order.c - waits for kernels, flags for plans; see launch_order.h.
 *
 * Composed source is formatted, so a kernel ends at the first line that is only a brace.
 */
#include "expert/compose/launch_order.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

enum { ORDERED_BYTES = 4 * 1024 * 1024 };

const char launches_overlap[] = "call->launch_flags = CUTEGEN_OVERLAP;";

static const char host_half[] = "#ifdef CUTEGEN_HOST\n";

bool launches_several(struct text source)
{
    const char *at = strstr(source.data, host_half);

    at = at ? strstr(at, "CUTEGEN_LAUNCH") : NULL;
    return at && strstr(at + 1, "CUTEGEN_LAUNCH");
}

/* The end of the line in which the body of the kernel at `at` opens. */
static const char *body_of(const char *at, const char *end)
{
    int depth = 0;

    for (; at < end && (depth || *at != '{'); at++)
        depth += (*at == '(') - (*at == ')');
    at = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return at ? at + 1 : end;
}

static bool has(struct text t, const char *what)
{
    const char *at = strstr(t.data, what);

    return at && at < t.data + t.len;
}

static void put_waits(struct buf *out, struct text body)
{
    static const char wait[] = "cutegen_wait_for_earlier();",
                      release[] = "cutegen_let_next_begin();";

    if (has(body, wait))
        return;
    buf_printf(out, "    %s\n", wait);
    if (!has(body, release))
        buf_printf(out, "    %s\n", release);
}

struct text launches_ordered(struct text source, bool overlap, struct arena *a)
{
    static const char plan[] = "CUTEGEN_PLAN(call)\n{\n";
    struct buf b = buf_init(ORDERED_BYTES);
    const char *at = source.data, *host = strstr(at, host_half), *kernel, *body, *end;
    struct text result;

    if (!host)
        BUG("a kernel file without a plan");
    while ((kernel = strstr(at, "__global__ ")) && kernel < host) {
        body = body_of(kernel, host);
        end = strstr(body, "\n}\n");
        buf_add(&b, at, (size_t)(body - at));
        put_waits(&b, (struct text){body, (size_t)((end ? end : host) - body)});
        at = body;
    }
    kernel = strstr(host, plan);
    if (overlap && kernel) {
        buf_add(&b, at, (size_t)(kernel + strlen(plan) - at));
        buf_printf(&b, "    %s // every kernel waits for the launch before it\n", launches_overlap);
        at = kernel + strlen(plan);
    }
    buf_add(&b, at, (size_t)(source.data + source.len - at));
    if (b.overflowed)
        BUG("a kernel file of more than %d bytes", ORDERED_BYTES);
    result = buf_copy(&b, a);
    buf_release(&b);
    return result;
}
