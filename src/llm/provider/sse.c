/* SPDX-License-Identifier: Apache-2.0 */
/* sse.c - parse an event stream line by line. */
#include "llm/provider/sse.h"

#include <string.h>

struct sse sse_init(size_t event_limit,
                    void (*on_event)(void *ctx, const char *event, struct text data), void *ctx)
{
    return (struct sse){
        .line = buf_init(event_limit + 16),
        .data = buf_init(event_limit),
        .first = true,
        .on_event = on_event,
        .ctx = ctx,
    };
}

void sse_release(struct sse *s)
{
    buf_release(&s->line);
    buf_release(&s->data);
}

static bool is_field(const struct buf *line, size_t name_len, const char *name)
{
    return name_len == strlen(name) && memcmp(line->data, name, name_len) == 0;
}

/* Handles the complete line in s->line; an empty one ends the event. */
static void end_line(struct sse *s)
{
    const char *text = s->line.data, *colon, *value;
    size_t len = s->line.len, name, rest;

    if (s->first && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3, len -= 3;
    s->first = false;
    if (len == 0) {
        if (s->has_data)
            s->on_event(s->ctx, s->event, buf_text(&s->data));
        buf_clear(&s->data);
        s->event[0] = 0;
        s->has_data = false;
        return;
    }
    colon = memchr(text, ':', len);
    name = colon ? (size_t)(colon - text) : len;
    value = colon ? colon + 1 : text + len;
    rest = len - (size_t)(value - text);
    if (rest && *value == ' ')
        value++, rest--;
    if (name == 4 && memcmp(text, "data", 4) == 0) {
        if (s->has_data)
            buf_putc(&s->data, '\n');
        buf_add(&s->data, value, rest);
        s->has_data = true;
    } else if (is_field(&s->line, name, "event")) {
        if (rest >= sizeof(s->event))
            rest = sizeof(s->event) - 1;
        memcpy(s->event, value, rest);
        s->event[rest] = 0;
    }
}

bool sse_feed(struct sse *s, const char *data, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t run = i;

        if (s->after_cr && data[i] == '\n') {
            s->after_cr = false;
            i++;
            continue;
        }
        s->after_cr = false;
        while (run < len && data[run] != '\n' && data[run] != '\r')
            run++;
        buf_add(&s->line, data + i, run - i);
        if (run < len) {
            s->after_cr = data[run] == '\r';
            run++;
            end_line(s);
            buf_clear(&s->line);
        }
        if (s->line.overflowed || s->data.overflowed)
            return false;
        i = run;
    }
    return true;
}
