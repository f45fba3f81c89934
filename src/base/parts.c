/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - read the parts that a kernel file describes, and divide its time; see parts.h. */
#include "base/parts.h"

#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The text between two marks of a line; the second may be missing. */
static const char *between(const char *line, const char *from, const char *to, struct arena *a)
{
    const char *at = strstr(line, from), *end;

    if (!at)
        return "";
    at += strlen(from);
    end = strstr(at, to);
    return end ? arena_strndup(a, at, (size_t)(end - at)) : arena_strdup(a, at);
}

/* "part 1, part 3, weight": the parts among them that come before number `own`. */
static void read_from(const char *reads, int own, struct kernel_part *out)
{
    for (const char *at = reads; strncmp(at, "part ", 5) == 0;) {
        long n = strtol(at + 5, NULL, 10);
        const char *next = strstr(at, ", ");

        if (n >= 1 && n < own && out->from_count < PART_FROM_MAX)
            out->from[out->from_count++] = (int)n - 1;
        if (!next)
            break;
        at = next + 2;
    }
}

/* The line of part `own`; false: it is none. */
static bool read_line(const char *line, int own, struct arena *a, struct kernel_part *out)
{
    char *end;

    *out = (struct kernel_part){.bytes = 0};
    if (strncmp(line, PARTS_LINE, strlen(PARTS_LINE)) != 0 ||
        strtol(line + strlen(PARTS_LINE), &end, 10) != own || strncmp(end, ", ", 2) != 0 ||
        !strstr(end, ": "))
        return false;
    out->recipe = between(end, ", ", ": ", a);
    out->ops = between(end, ": ", "; ", a);
    out->reads = between(end, PARTS_READS, "; ", a);
    out->made = between(end, PARTS_MAKES, "; ", a);
    out->bytes = strtod(between(end, PARTS_MOVES, " ", a), NULL);
    if (!isfinite(out->bytes) || out->bytes < 0)
        out->bytes = 0;
    read_from(out->reads, own, out);
    return true;
}

void parts_read(struct text source, struct arena *a, struct kernel_parts *out)
{
    *out = (struct kernel_parts){.count = 0};
    for (struct text line; out->count < PARTS_LIMIT && text_next_line(&source, &line);) {
        if (line.len < strlen(PARTS_LINE) ||
            strncmp(line.data, PARTS_LINE, strlen(PARTS_LINE)) != 0)
            continue;
        if (!out->at)
            out->at = arena_array(a, PARTS_LIMIT, sizeof(*out->at));
        out->count += read_line(arena_strndup(a, line.data, line.len), out->count + 1, a,
                                &out->at[out->count]);
    }
    if (out->count < 2)
        out->count = 0;
}

static void clear(struct kernel_parts *p)
{
    for (int i = 0; i < p->count; i++) {
        p->at[i].launches = 0;
        p->at[i].us = 0;
    }
    p->other_launches = 0;
    p->other_us = p->sum_us = 0;
}

static bool is_launch(const json_t *op)
{
    return strcmp(json_string_or(op, "op", ""), "launch") == 0;
}

void parts_time(struct kernel_parts *p, const json_t *launches, const json_t *timed)
{
    const json_t *ops = json_object_get(launches, "ops"), *op;
    size_t i, count = 0, next = 0;
    bool known;

    clear(p);
    json_array_foreach((json_t *)ops, i, op) count += is_launch(op);
    known = count && json_array_size(timed) == count;
    json_array_foreach((json_t *)ops, i, op)
    {
        int64_t part = json_int_or(op, "part", 0);
        double us;

        if (!is_launch(op))
            continue;
        us = known ? json_double_or(json_array_get(timed, next++), "time_us", 0) : 0;
        us = isfinite(us) && us > 0 ? us : 0;
        p->sum_us += us;
        if (part >= 1 && part <= p->count) {
            p->at[part - 1].launches++;
            p->at[part - 1].us += us;
        } else {
            p->other_launches++;
            p->other_us += us;
        }
    }
}
